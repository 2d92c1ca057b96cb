//! The incident that the comparator is for, from real parts: the source was replaced by a replica that replays days of
//! backlog with the original event times.
//!
//! The offset is then older, by its event time, than the snapshot that was taken on the replica before it, and the
//! snapshot's records have no server id (0). Who compares times puts the snapshot into the future, falls back to a
//! definition that is weeks old, and ends at the first row.

use std::io::Write;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::{Config, Engine as Library};
use holdfast_history::codec::{read_record, write_record};
use holdfast_history::compare::Rule;
use holdfast_history::ddl::DdlContext;
use holdfast_history::recover::{RecoverOptions, Recovered, recover};
use holdfast_history::{HistoryRecord, SourceOffset, TableId};
use holdfast_tests::engine::{Engine, PREFIX, Process, Properties, RunOptions, holdfast_binary};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Options, Server};
use holdfast_tests::{case, paths};
use metrics_exporter_prometheus::PrometheusBuilder;

const LIMIT: Duration = Duration::from_secs(60);

/// Statements whose events say that they happened days ago.
fn days_ago(server: &Server, days: u32, script: &str) {
    server
        .sql(&format!("SET timestamp = UNIX_TIMESTAMP() - {days} * 86400; USE incident; {script}"))
        .unwrap();
}

/// Waits until the replica has a row that came last.
#[expect(clippy::disallowed_methods, reason = "a replica tells nobody when it has a row")]
fn replicated(replica: &Server, id: u32) {
    for _ in 0..600 {
        let sql = format!("SELECT COUNT(*) FROM incident.t WHERE id = {id}");
        if replica.value(&sql).is_ok_and(|count| count == "1") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("row {id} is not replicated: {:?}", replica.query("SHOW REPLICA STATUS"));
}

/// Offset or record position as Debezium would have written it: without our members.
fn without_ours(mut offset: SourceOffset) -> SourceOffset {
    offset.holdfast = None;
    offset
}

/// What an engine says that starts with these records at this offset: the metrics, and the log.
fn told(
    properties: &Properties,
    (records, offset): (&[&HistoryRecord], &SourceOffset),
    event_times_decide: bool,
) -> (String, String) {
    let files = paths::fresh("incident-engine").unwrap();
    let mut properties = properties.clone();
    properties.set("offset.storage.file.filename", files.join("offsets.dat").to_str().unwrap());
    let history = files.join("history.jsonl");
    properties.set("schema.history.internal.file.filename", history.to_str().unwrap());
    properties.set("heartbeat.interval.ms", "50");
    let path = files.join("connector.properties");
    properties.write(&path).unwrap();
    let parsed = ConnectorProperties::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let mut config = Config::from_properties(&parsed, &files).unwrap().0;
    config.history.event_times_decide = event_times_decide;

    let mut lines = Vec::new();
    for record in records {
        write_record(record, None, &mut lines);
        lines.push(b'\n');
    }
    std::fs::write(&history, lines).unwrap();
    let key = Json::String(format!(r#"["{}",{{"server":"{PREFIX}"}}]"#, config.name));
    let document =
        format!("{{\"holdfast_offsets\":1,\"offsets\":{{{key}:{}}}}}\n", offset.to_json());
    std::fs::write(files.join("offsets.dat"), document).unwrap();

    let recorder = PrometheusBuilder::new().build_recorder();
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || Log(Arc::clone(&writer)))
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = async {
        let mut engine = Library::builder(config).start().await.unwrap();
        // The history was recovered before anything is given out.
        let batch = tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap().unwrap();
        batch.expect("a heartbeat").acknowledge();
        engine.close().await.unwrap();
    };
    tracing::subscriber::with_default(subscriber, || {
        metrics::with_local_recorder(&recorder, || runtime.block_on(run));
    });
    std::fs::remove_dir_all(files).unwrap();
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    (recorder.handle().render(), log)
}

/// Keeps what is logged.
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_snapshot_of_a_replica_that_replays_a_backlog_is_applied() {
    // Without GTIDs, or they would decide.
    let old = Server::start(Options::mysql().without_gtids()).unwrap();
    let replica = Server::start(Options::mysql().without_gtids()).unwrap();
    let files = paths::fresh("incident").unwrap();
    let run = |server: &Server, name: &str| {
        let mut properties = Properties::new(server, &files);
        properties.set("database.include.list", format!("incident,{}", case::MARKER));
        Process::start(Engine::Holdfast, &properties, &files, name, RunOptions::default()).unwrap()
    };
    let is_row = |id: i64| {
        move |record: &holdfast_tests::engine::Record| {
            record.source().text("db") == Some("incident")
                && record.key().get("id").and_then(Json::as_i64) == Some(id)
        }
    };

    // Weeks ago, on the old source: the definition of then is in the history, with its event time.
    old.sql("CREATE DATABASE incident; CREATE TABLE incident.t (id INT PRIMARY KEY)").unwrap();
    case::make_marker(&old).unwrap();
    let mut process = run(&old, "old");
    case::snapshot_end(&mut process).unwrap();
    days_ago(&old, 20, "ALTER TABLE t ADD a INT; INSERT INTO t VALUES (1, 1)");
    process.wait_for("the row of then", LIMIT, is_row(1)).unwrap();
    case::settle(&mut process, &old, 2).unwrap();
    process.stop().unwrap();
    let history = || {
        let text = std::fs::read_to_string(files.join("history.jsonl")).unwrap();
        let record = |line: &str| {
            let mut record = read_record(line).unwrap().0;
            record.position = without_ours(record.position);
            record
        };
        text.lines().map(record).collect::<Vec<HistoryRecord>>()
    };
    let of_old = history().len();

    // The table gets a column; the replica replays all of it, and the connector takes a snapshot there.
    days_ago(&old, 5, "ALTER TABLE t ADD b INT; INSERT INTO t VALUES (2, 2, 2)");
    replica
        .sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{}', SOURCE_PORT={}, SOURCE_USER='{}', \
             SOURCE_PASSWORD='{}', SOURCE_LOG_FILE='mysql-bin.000001', SOURCE_LOG_POS=4, GET_SOURCE_PUBLIC_KEY=1; \
             START REPLICA",
            old.host(),
            old.port(),
            old.user(),
            old.password()
        ))
        .unwrap();
    replicated(&replica, 2);
    std::fs::remove_file(files.join("offsets.dat")).unwrap();
    let mut process = run(&replica, "replica");
    process.wait_for("the row of the snapshot", LIMIT, is_row(2)).unwrap();
    days_ago(&old, 4, "INSERT INTO t VALUES (3, 3, 3)");
    process.wait_for("the row of the backlog", LIMIT, is_row(3)).unwrap();
    days_ago(&old, 4, "INSERT INTO t VALUES (4, 4, 4)");
    process.wait_for("the row behind it", LIMIT, is_row(4)).unwrap();
    process.stop().unwrap();

    let stored = std::fs::read_to_string(files.join("offsets.dat")).unwrap();
    let stored = Json::parse(&stored).unwrap();
    let [(_, offset)] = stored.get("offsets").unwrap().members() else { panic!("{stored}") };
    let offset = without_ours(SourceOffset::from_json(&offset.to_string()).unwrap());
    let records = history();
    let snapshot = &records[of_old..];
    for record in snapshot {
        assert_eq!(record.position.server_id.unwrap_or(0), 0, "{:?}", record.position);
        assert!(record.position.ts_sec > offset.ts_sec, "{:?} {offset:?}", record.position);
        assert!(record.position.pos <= offset.pos && record.position.file == offset.file);
    }
    assert!(records[..of_old].iter().any(|record| record.position.ts_sec < offset.ts_sec));

    let id = TableId::new("incident", "t");
    let context = DdlContext::default();
    let recovered = |event_times_decide| {
        let options = RecoverOptions {
            server_id_is_connected: true,
            event_times_decide,
            ..RecoverOptions::new(&context)
        };
        recover(&records, PREFIX, &offset, &options).unwrap()
    };
    let columns = |recovered: &Recovered| {
        let table = recovered.tables.get(&id).unwrap();
        table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>().join(",")
    };

    let right = recovered(false);
    let report = &right.report;
    assert_eq!(columns(&right), "id,a,b");
    assert!(report.origins[&id] > of_old, "the definition is the snapshot's: {report:?}");
    assert_eq!(report.suspicious().count(), 0, "{report:?}");
    // Each record has its verdict by a rule, and no clock decided.
    let by_rule: usize = report.applied_by.values().chain(report.skipped_by.values()).sum();
    assert_eq!(by_rule, records.len());
    assert_eq!(report.recovered, records.len());
    assert!(!report.applied_by.contains_key(&Rule::EventTime), "{report:?}");
    assert!(!report.skipped_by.contains_key(&Rule::EventTime), "{report:?}");

    // What it says of every record.
    let arguments = ["history", "explain", "--records", "--offset", &offset.to_json(), "--config"];
    let output = Command::new(holdfast_binary().unwrap())
        .args(arguments)
        .arg(files.join("replica.properties"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), records.len(), "{text}");
    for (number, line) in (1..).zip(text.lines()) {
        let is_told = line.contains(": applied, rule ") || line.contains(": skipped, rule ");
        assert!(line.starts_with(&format!("{number}  ")) && is_told, "{line}");
        assert!(!line.contains("NOTE") && !line.contains("rule T"), "{line}");
        let is_snapshot = number > of_old;
        assert!(!is_snapshot || line.contains("(snapshot): applied, rule "), "{line}");
    }

    let wrong = recovered(true);
    assert_eq!(columns(&wrong), "id,a", "with event times, the definition of weeks ago comes back");
    let definitions = wrong.report.suspicious().filter(|skipped| {
        let record = &records[skipped.record - 1];
        skipped.record > of_old
            && skipped.verdict.rule == Rule::EventTime
            && record.ddl.as_deref().is_some_and(|ddl| ddl.starts_with("CREATE TABLE `t`"))
    });
    assert_eq!(definitions.count(), 1, "{:?}", wrong.report);

    // The statement of weeks ago and the snapshot's definition, to an engine that starts there.
    let is_of_t = |record: &&HistoryRecord| record.table_changes.iter().any(|one| *one.id() == id);
    let weeks_ago = records[..of_old].iter().rfind(is_of_t).unwrap();
    let newest = snapshot.iter().rfind(is_of_t).unwrap();
    assert!(weeks_ago.position.snapshot.is_none() && newest.position.snapshot.is_some());
    let mut properties = Properties::new(&replica, &files);
    properties.set("database.include.list", "incident");
    const WARNING: &str =
        "a history record is skipped although its file and position are at or before the offset";
    for (event_times_decide, skips) in [(false, 0), (true, 1)] {
        let (metrics, log) = told(&properties, (&[weeks_ago, newest], &offset), event_times_decide);
        let metric = format!("holdfast_history_suspicious_skips{{server=\"{PREFIX}\"}} {skips}\n");
        assert!(metrics.contains(&metric), "{metrics}");
        let warnings: Vec<&str> = log.lines().filter(|line| line.contains(WARNING)).collect();
        assert_eq!(warnings.len(), skips, "{log}");
        assert!(warnings.iter().all(|line| line.contains("table=incident.t")), "{warnings:?}");
    }
    std::fs::remove_dir_all(files).unwrap();
}
