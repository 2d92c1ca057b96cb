//! `holdfast refresh`, and the modes that rebuild the schema history: at the stored offset, which stays as it is.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::refresh::RefreshOptions;
use holdfast_connector::{Batch, Config, Engine as Library, Error, RecordKind};
use holdfast_tests::case;
use holdfast_tests::engine::{Record, RunOptions, holdfast_binary};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Options, Server, shared};

use crate::story::{Story, brief, briefs};

const LIMIT: Duration = Duration::from_secs(60);

impl Story<'_> {
    /// A run that ends with an error: its exit code and its log.
    pub(crate) fn fails(&mut self) -> (Option<i32>, String) {
        self.fails_with(RunOptions::default())
    }

    pub(crate) fn fails_with(&mut self, options: RunOptions) -> (Option<i32>, String) {
        let mut process = self.start(options);
        let status = process.wait_end(LIMIT).unwrap();
        (status.code(), process.log())
    }

    pub(crate) fn refresh(&self, arguments: &[&str]) -> Output {
        let config = self.files.join("refresh.properties");
        self.properties.write(&config).unwrap();
        Command::new(holdfast_binary().unwrap())
            .arg("refresh")
            .arg("--config")
            .arg(config)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// A refresh that is done. The offset's bytes and the history's stay.
    pub(crate) fn refreshes(&self, arguments: &[&str]) -> Json {
        let (offset, history) = (self.bytes("offsets.dat"), self.bytes("history.jsonl"));
        let mut all = vec!["--yes", "--format", "json"];
        all.extend(arguments);
        let output = self.refresh(&all);
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        assert_eq!(self.bytes("offsets.dat"), offset, "the offset is what it was");
        let after = self.bytes("history.jsonl");
        assert!(after.starts_with(&history), "what was written stays");
        Json::parse(String::from_utf8_lossy(&output.stdout).trim()).unwrap()
    }

    /// A refresh that writes nothing, with its exit code and all that it says.
    pub(crate) fn refuses(&self, arguments: &[&str], code: i32) -> String {
        let before = (self.bytes("offsets.dat"), self.bytes("history.jsonl"));
        let output = self.refresh(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", both(&output));
        assert_eq!((self.bytes("offsets.dat"), self.bytes("history.jsonl")), before);
        both(&output)
    }

    pub(crate) fn config(&self) -> Config {
        let path = self.files.join("library.properties");
        self.properties.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = ConnectorProperties::parse(&text).unwrap();
        Config::from_properties(&parsed, Path::new(&self.files)).unwrap().0
    }
}

fn both(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn a_lost_history_is_rebuilt_and_every_change_behind_the_head_comes() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r01", &[]);
    let rows: Vec<String> =
        (2..200).map(|id| format!("INSERT INTO t VALUES ({id}, {id})")).collect();
    story.sql(&rows.join(";"));
    story.lose_history();
    let (code, log) = story.fails();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("holdfast refresh --config FILE"), "{log}");

    assert!(story.refuses(&["--dry-run"], 0).contains("records to write; nothing was written yet"));
    assert!(story.refuses(&[], 2).contains("--yes"));
    let report = story.refreshes(&[]);
    // Of the two tables only one has rows behind the offset.
    assert_eq!(report.at_path("proof.tables").unwrap().elements().len(), 1, "{report}");
    // Once more there is nothing to do.
    let again = story.refreshes(&[]);
    assert_eq!(again.get("records").and_then(Json::as_i64), Some(0), "{again}");

    let expected: Vec<String> = (2..200).map(|id| format!(r#"c {{"id":{id},"a":{id}}}"#)).collect();
    assert_eq!(story.run(), expected);
    story.end();
}

#[test]
fn an_offset_inside_a_transaction_is_refreshed_and_no_row_is_lost_or_twice() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r02", &[]);
    story.sql(
        "BEGIN; INSERT INTO t VALUES (2, 2), (3, 3); INSERT INTO t VALUES (4, 4), (5, 5); COMMIT",
    );
    let mut process = story.start(RunOptions { ack_first: Some(3), ..RunOptions::default() });
    process.wait_for("the last row", LIMIT, |record| brief(record).contains(r#""id":5"#)).unwrap();
    // A row behind it comes when what was acknowledged is stored.
    story.settle(&mut process);
    process.kill().unwrap();
    let offset = String::from_utf8(story.bytes("offsets.dat")).unwrap();
    assert!(offset.contains("holdfast_rows"), "{offset}");
    story.lose_history();
    story.refreshes(&[]);
    assert_eq!(story.run(), [r#"c {"id":5,"a":5}"#]);
    story.end();
}

#[test]
fn a_refresh_makes_a_wrong_history_right() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r03", &[]);
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1; INSERT INTO t VALUES (2, 2, 2)");
    let (code, log) = story.fails();
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("holdfast refresh --config FILE --table r03.t"), "{log}");
    story.refreshes(&["--table", "r03.t"]);
    assert_eq!(story.run(), [r#"c {"id":2,"a":2,"b":2}"#]);
    story.end();
}

#[test]
fn a_row_that_does_not_fit_is_repaired_by_itself_where_that_is_wanted() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r04", &[("holdfast.history.on.mismatch", "refresh")]);
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1; INSERT INTO t VALUES (2, 2, 2)");
    assert_eq!(story.run(), [r#"c {"id":2,"a":2,"b":2}"#]);
    // Rows of before and of after, none of them acknowledged: no definition fits both, and the engine stops.
    story.sql(
        "INSERT INTO t VALUES (3, 3, 3); SET sql_log_bin=0; ALTER TABLE t DROP b; SET sql_log_bin=1; \
         INSERT INTO t VALUES (4, 4)",
    );
    let (code, log) = story.fails_with(RunOptions { ack_first: Some(0), ..RunOptions::default() });
    assert_eq!(code, Some(3), "{log}");
    story.end();
}

#[test]
fn rows_of_an_older_definition_ahead_are_refused_with_what_would_fit() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r05", &[]);
    story.sql(
        "INSERT INTO t VALUES (2, 2); ALTER TABLE t ADD b INT; INSERT INTO t VALUES (3, 3, 3)",
    );
    let text = story.refuses(&["--yes"], 1);
    for words in [
        "r05.t  REFUSED",
        "definition  (`id` INT, `a` INT, `b` INT)",
        "rows        (INT, INT)",
        "met again   ALTER TABLE t ADD b INT at mysql-bin.",
        "--definition r05.t=@recorded",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let expected = [r#"c {"id":2,"a":2}"#, "ALTER TABLE t ADD b INT", r#"c {"id":3,"a":3,"b":3}"#];

    // A statement that was right at the offset.
    let sql = story.files.join("t.sql");
    std::fs::write(&sql, "CREATE TABLE t (id INT PRIMARY KEY, a INT, wrong INT);").unwrap();
    let given = format!("r05.t={}", sql.display());
    assert!(story.refuses(&["--yes", "--definition", &given], 1).contains("do not fit"));
    std::fs::write(&sql, "CREATE TABLE t (id INT PRIMARY KEY, a INT);").unwrap();
    story.lose_history();
    let report = story.refreshes(&["--definition", &given]);
    assert_eq!(report.at_path("proof.misfits").unwrap().elements().len(), 0, "{report}");
    assert_eq!(story.run(), expected);

    // The one that the history has.
    story.sql("INSERT INTO t VALUES (4, 4, 4); ALTER TABLE t DROP a; INSERT INTO t VALUES (5, 5)");
    story.refuses(&["--yes"], 1);
    story.refreshes(&["--table", "r05.t", "--definition", "r05.t=@recorded"]);
    assert_eq!(
        story.run(),
        [r#"c {"id":4,"a":4,"b":4}"#, "ALTER TABLE t DROP a", r#"c {"id":5,"b":5}"#]
    );

    // Forced: the first row that does not fit ends the stream, and no wrong row comes.
    story.sql(
        "INSERT INTO t VALUES (6, 6); ALTER TABLE t ADD c INT; INSERT INTO t VALUES (7, 7, 7)",
    );
    story.refreshes(&["--table", "r05.t", "--force-table", "r05.t"]);
    let (code, log) = story.fails();
    assert_eq!(code, Some(3), "{log}");
    story.end();
}

#[test]
fn the_log_itself_gives_a_definition_where_it_names_columns() {
    let server = Server::start(Options::mysql().arg("--binlog-row-metadata=FULL")).unwrap();
    let mut story = Story::new(&server, "r06", &[]);
    story.sql(
        "INSERT INTO t VALUES (2, 2); ALTER TABLE t ADD b INT; INSERT INTO t VALUES (3, 3, 3)",
    );
    story.lose_history();
    assert!(story.refuses(&["--yes"], 1).contains("--definition r06.t=@log"));
    story.refreshes(&["--definition", "r06.t=@log"]);
    assert_eq!(
        story.run(),
        [r#"c {"id":2,"a":2}"#, "ALTER TABLE t ADD b INT", r#"c {"id":3,"a":3,"b":3}"#]
    );
    story.end();
}

/// The statements that change tables without rows of an older definition, and are met again.
const DETOURS: &str = "
    ALTER TABLE t ADD b INT; ALTER TABLE t RENAME COLUMN a TO c; ALTER TABLE t ADD a INT FIRST;
    CREATE TABLE _t_new LIKE t; ALTER TABLE _t_new ADD d INT; RENAME TABLE t TO _t_old, _t_new TO t; DROP TABLE _t_old;
    DROP TABLE u; CREATE TABLE u (id INT PRIMARY KEY, x INT);
    CREATE TABLE w (id INT PRIMARY KEY); INSERT INTO w VALUES (1); ALTER TABLE w ADD y INT; INSERT INTO w VALUES (2, 2);
    ";

#[test]
fn statements_ahead_without_rows_pass_and_are_met_again_without_harm() {
    for (options, database) in [(Options::mysql(), "r07"), (Options::mariadb_11(), "r07m")] {
        let server = shared(&options).unwrap();
        let mut story = Story::new(&server, database, &[]);
        story.sql(DETOURS);
        story.sql("INSERT INTO t (a, id) VALUES (1, 2); INSERT INTO u VALUES (3, 3)");
        story.lose_history();
        story.refreshes(&[]);
        // Nothing is acknowledged: a restart in the middle of it finds the same.
        let mut process = story.start(RunOptions { ack_first: Some(0), ..RunOptions::default() });
        story.settle(&mut process);
        let rows = |records: &[Record]| -> Vec<String> {
            briefs(records).into_iter().filter(|text| text.starts_with("c ")).collect()
        };
        let expected = [
            r#"c {"id":1}"#,
            r#"c {"id":2,"y":2}"#,
            r#"c {"a":1,"id":2,"c":null,"b":null,"d":null}"#,
            r#"c {"id":3,"x":3}"#,
        ];
        assert_eq!(rows(&case::records_of_case(process.records())), expected, "{database}");
        process.kill().unwrap();
        let half = story.start(RunOptions { ack_first: Some(5), ..RunOptions::default() });
        let mut half = half;
        story.settle(&mut half);
        half.kill().unwrap();
        let rest: Vec<String> =
            story.run().into_iter().filter(|text| text.starts_with("c ")).collect();
        assert_eq!(rest, expected, "{database}");
        // Behind the place of reading, a statement counts again.
        story.sql(
            "ALTER TABLE t DROP c; INSERT INTO t (id) VALUES (9); INSERT INTO u VALUES (9, 9)",
        );
        assert_eq!(
            story.run(),
            [
                "ALTER TABLE t DROP c",
                r#"c {"a":null,"id":9,"b":null,"d":null}"#,
                r#"c {"id":9,"x":9}"#
            ]
        );
        story.end();
    }
}

#[test]
fn a_position_that_was_purged_or_belongs_to_another_server_is_refused() {
    let server = Server::start(Options::mysql()).unwrap();
    let mut story = Story::new(&server, "r08", &[]);
    story.sql("INSERT INTO t VALUES (2, 2); FLUSH BINARY LOGS; INSERT INTO t VALUES (3, 3)");
    server.sql("FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY").unwrap();
    assert!(story.refuses(&["--yes"], 4).contains("no longer on the server"));

    let other = Server::start(Options::mysql()).unwrap();
    other
        .sql("CREATE DATABASE r08; CREATE TABLE r08.t (id INT PRIMARY KEY, a INT, b INT)")
        .unwrap();
    case::make_marker(&other).unwrap();
    story.properties.set("database.port", other.port().to_string());
    assert!(story.refuses(&["--yes"], 4).contains("--new-lineage"));
    // The operator names the place in the new server's log; then it is one refresh.
    let status = other.query("SHOW BINARY LOG STATUS").unwrap();
    let config = story.files.join("refresh.properties");
    let set = Command::new(holdfast_binary().unwrap())
        .args(["offset", "set", "--new-lineage", "--file", &status[0][0], "--pos", &status[0][1]])
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    assert!(set.status.success(), "{}", both(&set));
    other.sql("INSERT INTO r08.t VALUES (7, 7, 7)").unwrap();
    story.refreshes(&[]);
    let moved = Story { server: &other, ..story };
    let mut moved = moved;
    assert_eq!(moved.run(), [r#"c {"id":7,"a":7,"b":7}"#]);
    moved.end();
}

#[test]
fn an_engine_at_work_keeps_a_refresh_out() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r09", &[]);
    let mut process = story.start(RunOptions::default());
    story.settle(&mut process);
    let output = story.refresh(&["--yes"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(both(&output).contains("another"), "{}", both(&output));
    process.stop().unwrap();
    story.end();
}

#[test]
fn recovery_and_configured_snapshots_keep_the_offset() {
    let mysql = shared(&Options::mysql()).unwrap();
    let based = "snapshot.mode.configuration.based";
    let modes: [&[(&str, &str)]; 2] = [
        &[("snapshot.mode", "recovery")],
        &[
            ("snapshot.mode", "configuration_based"),
            ("snapshot.mode.configuration.based.start.stream", "true"),
            ("snapshot.mode.configuration.based.snapshot.on.schema.error", "true"),
        ],
    ];
    for (mode, database) in modes.into_iter().zip(["r11", "r11c"]) {
        let mut story = Story::new(&mysql, database, &[]);
        story.sql(
            "INSERT INTO t VALUES (2, 2); ALTER TABLE u ADD x INT; INSERT INTO u VALUES (3, 3)",
        );
        story.lose_history();
        for (key, value) in mode {
            story.properties.set(key, *value);
        }
        let rows: Vec<String> =
            story.run().into_iter().filter(|text| text.starts_with("c ")).collect();
        assert_eq!(rows, [r#"c {"id":2,"a":2}"#, r#"c {"id":3,"x":3}"#], "{mode:?} {based}");
        // A mode that stays on writes nothing more.
        let before = story.bytes("history.jsonl");
        assert_eq!(story.run(), Vec::<String>::new());
        assert_eq!(story.bytes("history.jsonl"), before);
        story.end();
    }
    let mut story = Story::new(&mysql, "r11n", &[]);
    story.properties.set("snapshot.mode", "recovery");
    std::fs::remove_file(story.files.join("offsets.dat")).unwrap();
    let (code, log) = story.fails();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("Could not find existing redo log information"), "{log}");
    story.end();
}

#[expect(
    clippy::await_holding_lock,
    reason = "the test has the server for itself, and its runtime no other task that wants it"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_running_engine_is_refreshed_at_its_frontier() {
    let mysql = shared(&Options::mysql()).unwrap();
    let story = Story::new(&mysql, "r12", &[("include.schema.changes", "false")]);
    let mut engine = Library::builder(story.config()).start().await.unwrap();
    let control = engine.control();
    story.sql("INSERT INTO t VALUES (2, 2)");
    let mut first = None;
    while first.is_none() {
        let batch =
            tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap().unwrap().unwrap();
        if batch.changes().any(|change| is_row(change.key(), 2)) {
            first = Some(batch);
        } else {
            batch.acknowledge();
        }
    }
    // Not acknowledged: it comes again, and this handle is stale.
    let report = control.refresh_schema_history(&[], &RefreshOptions::default()).await.unwrap();
    // The history is right already.
    assert_eq!((report.records, report.written), (0, false), "{}", report.to_text());
    drop(first);
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1");
    let report = control.refresh_schema_history(&[], &RefreshOptions::default()).await;
    // Row 2 is not acknowledged and has the old form.
    assert!(matches!(report, Err(Error::Refused(_))), "{report:?}");
    engine.close().await.unwrap();
    story.end();
}

fn is_row(key: &[u8], id: u32) -> bool {
    let key: serde_json::Value = serde_json::from_slice(key).unwrap_or_default();
    key.pointer("/payload/id").or_else(|| key.pointer("/id")) == Some(&serde_json::json!(id))
}

#[expect(
    clippy::await_holding_lock,
    reason = "the test has the server for itself, and its runtime no other task that wants it"
)]
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_engine_goes_on_with_the_new_definition() {
    let mysql = shared(&Options::mysql()).unwrap();
    let story = Story::new(&mysql, "r13", &[("include.schema.changes", "false")]);
    let mut engine = Library::builder(story.config()).paused().start().await.unwrap();
    let control = engine.control();
    control.resume();
    assert!(control.streaming().await);
    control.pause();
    assert!(control.paused().await);
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1; INSERT INTO t VALUES (2, 2, 2)");
    let report = control
        .refresh_schema_history(&["r13.t".parse().unwrap()], &RefreshOptions::default())
        .await
        .unwrap();
    assert!(report.written, "{}", report.to_text());
    control.resume();
    loop {
        let batch =
            tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap().unwrap().unwrap();
        let row = batch
            .changes()
            .find(|change| matches!(change.kind(), RecordKind::Data(_)) && is_row(change.key(), 2));
        if let Some(row) = row {
            assert!(String::from_utf8_lossy(row.value()).contains(r#""b":2"#));
            break;
        }
        batch.acknowledge();
    }
    engine.close().await.unwrap();
    story.end();
}

/// The next batch that has a row with this key; those before are acknowledged.
async fn batch_with(engine: &mut Library, id: u32) -> Batch {
    loop {
        let batch =
            tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap().unwrap().unwrap();
        if batch.changes().any(|change| is_row(change.key(), id)) {
            return batch;
        }
        batch.acknowledge();
    }
}

#[expect(
    clippy::await_holding_lock,
    reason = "the test has the server for itself, and its runtime no other task that wants it"
)]
#[tokio::test(flavor = "multi_thread")]
async fn what_a_running_engine_gave_out_comes_again_after_a_refresh() {
    let mysql = shared(&Options::mysql()).unwrap();
    let story = Story::new(&mysql, "r14", &[("include.schema.changes", "false")]);
    let mut engine = Library::builder(story.config()).start().await.unwrap();
    let control = engine.control();
    story.sql("INSERT INTO t VALUES (2, 2)");
    batch_with(&mut engine, 2).await.acknowledge();
    story.sql("INSERT INTO u VALUES (3)");
    let given_out = batch_with(&mut engine, 3).await;
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT");
    let report = control
        .refresh_schema_history(&["r14.t".parse().unwrap()], &RefreshOptions::default())
        .await
        .unwrap();
    assert!(report.written, "{}", report.to_text());
    // What was given out before comes again, and its old handle is stale.
    let again = batch_with(&mut engine, 3).await;
    let stale = control.status().acks.stale;
    given_out.acknowledge();
    assert!(control.status().acks.stale > stale, "{:?}", control.status().acks);
    again.acknowledge();
    story.sql("INSERT INTO t VALUES (4, 4, 4)");
    let last = batch_with(&mut engine, 4).await;
    let row = last.changes().find(|change| is_row(change.key(), 4)).unwrap();
    let row = String::from_utf8_lossy(row.value()).into_owned();
    assert!(row.contains(r#""after":{"id":4,"a":4,"b":4}"#), "{row}");
    last.acknowledge();
    engine.close().await.unwrap();
    story.end();
}
