//! Metrics as Prometheus gets them from the command.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::Instant;

use holdfast_connector::metrics::ALL;
use holdfast_connector::refresh::RefreshOptions;
use holdfast_connector::{Batch, Error};
use holdfast_history::store::{HistoryStore, MemoryHistory};
use holdfast_history::{SourceOffset, TableId};
use holdfast_tests::engine::{PREFIX, holdfast_binary};
use holdfast_tests::server::{Options, shared};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::{Host, PATIENCE, brief, seen, until};

/// The command, which ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn scrape(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Values by name with labels, without the label that all have.
pub(super) fn values(text: &str) -> BTreeMap<String, f64> {
    let server = format!("server=\"{PREFIX}\"");
    let line = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        let name = name.replace(&server, "").replace("{}", "").replace("{,", "{");
        Some((name, value.trim().parse().ok()?))
    };
    text.lines().filter(|line| line.starts_with("holdfast_")).filter_map(line).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "nobody tells when a metric has changed")]
fn metrics_have_the_names_that_are_documented() {
    let server = shared(&Options::mysql()).unwrap();
    let host = Host::unstored(&server, "ec_metrics");
    let path = host.folder.join("connector.properties");
    host.properties.write(&path).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let start = |acknowledged: &str| {
        let child = Command::new(holdfast_binary().unwrap())
            .args(["run", "--metrics", &address, "--ack-first", acknowledged, "--config"])
            .arg(&path)
            .arg("--output")
            .arg(host.folder.join("out.jsonl"))
            .stderr(std::process::Stdio::null())
            .spawn();
        Running(child.unwrap())
    };
    let until = |what: &str, there: &dyn Fn(&BTreeMap<String, f64>) -> bool| {
        let begun = Instant::now();
        loop {
            let text = scrape(&address).unwrap_or_default();
            let found = values(&text);
            if there(&found) {
                return (text, found);
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {text}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    };
    let at = |values: &BTreeMap<String, f64>, name: &str| values.get(name).copied();

    // One row is acknowledged, and one is not.
    let first = start("1");
    until("streaming", &|now| at(now, "holdfast_connected") == Some(1.0));
    host.insert(1);
    until("the first row", &|now| {
        at(now, "holdfast_records_total{kind=\"create\"}") == Some(1.0)
            && at(now, "holdfast_open_groups") == Some(0.0)
    });
    host.sql("ALTER TABLE t ADD COLUMN more INT");
    host.insert(2);
    let (text, now) = until("an open group of some age", &|now| {
        at(now, "holdfast_open_groups") == Some(1.0)
            && at(now, "holdfast_oldest_open_group_age_seconds") > Some(0.5)
            && at(now, "holdfast_frontier_lag_seconds") > Some(0.5)
    });
    for (name, value) in [
        ("holdfast_snapshot_running", 0.0),
        ("holdfast_snapshot_completed", 1.0),
        ("holdfast_snapshot_aborted", 0.0),
        ("holdfast_snapshot_skipped", 0.0),
        ("holdfast_snapshot_tables{state=\"total\"}", 1.0),
        ("holdfast_snapshot_tables{state=\"remaining\"}", 0.0),
    ] {
        assert_eq!(at(&now, name), Some(value), "{name}");
    }
    assert_eq!(at(&now, "holdfast_refresh_runs_total"), Some(0.0));
    assert_eq!(at(&now, "holdfast_refresh_failures_total"), Some(0.0));
    // Names that need a restart or a refresh, or ask the server now and then.
    let later = [
        "holdfast_lag_bytes",
        "holdfast_history_recovered",
        "holdfast_history_applied",
        "holdfast_history_skipped",
        "holdfast_history_suspicious_skips",
        "holdfast_last_refresh_file_number",
        "holdfast_last_refresh_position_bytes",
        "holdfast_errors_total",
    ];
    for metric in ALL.iter().filter(|metric| !later.contains(&metric.name)) {
        let kind = if metric.is_counter() { "counter" } else { "gauge" };
        assert!(text.contains(&format!("# TYPE {} {kind}", metric.name)), "{}", metric.name);
    }
    drop(first);

    // What is not acknowledged comes again.
    let _second = start("0");
    let (_, now) = until("the statement again", &|now| {
        at(now, "holdfast_records_total{kind=\"create\"}") == Some(1.0)
            && at(now, "holdfast_history_recovered") > Some(0.0)
            && at(now, "holdfast_history_suspicious_skips") == Some(0.0)
            && at(now, "holdfast_snapshot_skipped") == Some(1.0)
            && at(now, "holdfast_snapshot_completed") == Some(0.0)
    });
    let sum = |name: &str| -> f64 {
        now.iter().filter(|(key, _)| key.starts_with(name)).map(|(_, value)| value).sum()
    };
    assert_eq!(
        at(&now, "holdfast_history_recovered"),
        Some(sum("holdfast_history_applied") + sum("holdfast_history_skipped"))
    );
    assert_eq!(at(&now, "holdfast_replayed_ddl_suppressed_total"), Some(0.0));
}

/// Runs `test` with a recorder of its own, which sees what the engines publish: once a second, and when they are closed.
pub(super) fn recorded(test: impl AsyncFnOnce(&PrometheusHandle)) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    // A recorder is one thread's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&recorder, || runtime.block_on(test(&handle)));
}

#[test]
fn refreshes_are_counted_and_the_last_one_that_succeeded_has_its_place() {
    let server = shared(&Options::mysql()).unwrap();
    recorded(async |recorded| {
        let host = Host::new(&server, "ec_metrics_refresh").await;
        let mut engine = host.start().await;
        host.insert(1);
        until(&mut engine, 1).await.iter().for_each(Batch::acknowledge);
        let control = engine.control();
        let report = control.refresh_schema_history(&[], &RefreshOptions::default()).await.unwrap();
        let table = |name| TableId::new("ec_metrics_refresh", name);
        let options =
            RefreshOptions { force_tables: [table("other")].into(), ..RefreshOptions::default() };
        let error = control.refresh_schema_history(&[table("t")], &options).await.unwrap_err();
        assert!(matches!(error, Error::Start(_)), "{error}");
        engine.close().await.unwrap();
        let now = values(&recorded.render());
        let (_, number) = report.offset.file.rsplit_once('.').unwrap();
        for (name, value) in [
            ("holdfast_refresh_runs_total", 2.0),
            ("holdfast_refresh_failures_total", 1.0),
            ("holdfast_last_refresh_file_number", number.parse().unwrap()),
            (
                "holdfast_last_refresh_position_bytes",
                report.offset.pos.to_string().parse().unwrap(),
            ),
        ] {
            assert_eq!(now.get(name), Some(&value), "{name}");
        }
    });
}

#[test]
fn a_statement_that_is_met_again_is_counted() {
    let server = shared(&Options::mysql()).unwrap();
    recorded(async |recorded| {
        let mut host = Host::new(&server, "ec_metrics_replay").await;
        let before = host.stored().await;
        let mut engine = host.start().await;
        host.sql("ALTER TABLE t ADD COLUMN more INT");
        host.insert(1);
        drop(until(&mut engine, 1).await);
        drop(engine);
        // As Debezium leaves it behind the statement: record and offset have the GTIDs from before it.
        let mut records = host.own_history().await.load().await.unwrap();
        let alter = records.last_mut().unwrap();
        let SourceOffset { file, pos, .. } = alter.position.clone();
        alter.position = SourceOffset { file, pos, holdfast: None, ..before };
        host.store(&alter.position.clone()).await;
        host.history = MemoryHistory::new();
        host.own_history().await.append(&records).await.unwrap();
        let mut engine = host.start().await;
        assert_eq!(brief(&seen(&until(&mut engine, 1).await)), [("c", 1)]);
        engine.close().await.unwrap();
        let now = values(&recorded.render());
        assert_eq!(now.get("holdfast_replayed_ddl_suppressed_total"), Some(&1.0));
        assert_eq!(host.own_history().await.load().await.unwrap(), records);
    });
}
