//! What a refresh has to hold, one by one.
//!
//! | id | what | test |
//! |---|---|---|
//! | R01 | at a stuck offset: nothing lost | `incident_refresh`, `refresh::a_refresh_makes_a_wrong_history_right` |
//! | R02 | in the middle of a transaction | `refresh::an_offset_inside_a_transaction_is_refreshed_and_no_row_is_lost_or_twice` |
//! | R03 | old records keep their bytes, new ones come last | `incident_refresh`, and every `Story::refreshes` |
//! | R04 | a crash at any step | `a_crash_at_any_step_leaves_the_history_as_it_was_or_complete` |
//! | R05 | a replica that lags | `refresh_guards` |
//! | R06 | statements ahead | `refresh_guards`, `refresh::rows_of_an_older_definition_ahead_are_refused_with_what_would_fit` |
//! | R07 | Debezium and RisingWave read it | `every_comparison_in_use_applies_what_a_refresh_wrote` |
//! | R08 | a statement beyond the offset was recorded before | `a_statement_that_was_recorded_beyond_the_offset_is_met_again` |

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_connector::Error;
use holdfast_connector::refresh::{Reading, Refresh, RefreshOptions, RefreshReport, Step};
use holdfast_history::codec::read_record;
use holdfast_history::store::ObjectUrl;
use holdfast_history::{HistoryRecord, SourceOffset, TableId};
use holdfast_tests::comparator::Comparator;
use holdfast_tests::engine::RunOptions;
use holdfast_tests::json::Json;
use holdfast_tests::s3::{KEY, S3};
use holdfast_tests::server::{Options, shared};

use crate::incident_refresh::{objects, with_key};
use crate::story::{Story, brief};

/// The step at which the refresh breaks off.
static BREAKS_AT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn breaks(step: Step) -> Result<(), Error> {
    if Step::ALL.iter().position(|each| *each == step) == Some(BREAKS_AT.load(Ordering::SeqCst)) {
        panic!("broken off at {step:?}");
    }
    Ok(())
}

/// The step after another. A new one does not compile before it is put here.
fn after(step: Step) -> Option<Step> {
    match step {
        Step::Guards => Some(Step::Definitions),
        Step::Definitions => Some(Step::Scan),
        Step::Scan => Some(Step::Proof),
        Step::Proof => Some(Step::Append),
        Step::Append => Some(Step::Done),
        Step::Done => None,
    }
}

/// What the history's file or objects hold.
fn kept(story: &Story<'_>) -> BTreeMap<String, Vec<u8>> {
    match story.properties.get("holdfast.history.url") {
        Some(url) => objects(&with_key(ObjectUrl::parse(url).unwrap())),
        None => BTreeMap::from([("file".to_owned(), story.bytes("history.jsonl"))]),
    }
}

/// Plans and writes a refresh in this process.
fn refreshed(story: &Story<'_>, options: RefreshOptions) -> Result<RefreshReport, Option<Error>> {
    let config = story.config();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let done = runtime.block_on(async move {
        tokio::spawn(async move { Refresh::prepare(config, &options, true).await?.apply().await })
            .await
    });
    done.map_err(|panicked| {
        assert!(panicked.is_panic());
        None
    })?
    .map_err(Some)
}

#[test]
fn a_crash_at_any_step_leaves_the_history_as_it_was_or_complete() {
    let steps: Vec<Step> = std::iter::successors(Some(Step::Guards), |step| after(*step)).collect();
    assert_eq!(steps, Step::ALL);
    let mysql = shared(&Options::mysql()).unwrap();
    let bucket = S3::start().unwrap();
    let folder = holdfast_tests::paths::fresh("crash-objects").unwrap();
    let urls = [
        None,
        Some(format!("file://{}/source-1", folder.display())),
        Some(bucket.url("crash/source-1")),
    ];
    for (url, database) in urls.iter().zip(["r10", "r10f", "r10s"]) {
        let key = [("holdfast.s3.access.key.id", KEY), ("holdfast.s3.secret.access.key", KEY)];
        let mut settings: Vec<(&str, &str)> = Vec::new();
        if let Some(url) = url {
            settings.push(("holdfast.history.url", url));
            settings.extend(key);
        }
        let mut story = Story::new(&mysql, database, &settings);
        story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1; INSERT INTO t VALUES (2, 2, 2)");
        let (offset, history) = (story.bytes("offsets.dat"), kept(&story));
        for at in 0..Step::ALL.len() {
            BREAKS_AT.store(at, Ordering::SeqCst);
            let options = RefreshOptions { progress: Some(breaks), ..RefreshOptions::default() };
            let crashed = refreshed(&story, options);
            assert!(matches!(crashed, Err(None)), "{database} {:?}: {crashed:?}", Step::ALL[at]);
            assert_eq!(story.bytes("offsets.dat"), offset);
            let now = kept(&story);
            if Step::ALL[at] != Step::Done {
                assert_eq!(now, history, "{database} {:?}", Step::ALL[at]);
            } else if url.is_some() {
                assert_eq!(now.len(), history.len() + 1, "one object, with all records");
                assert!(history.iter().all(|(path, bytes)| now.get(path) == Some(bytes)));
            } else {
                assert!(now["file"].starts_with(&history["file"]) && now != history);
            }
        }
        BREAKS_AT.store(usize::MAX, Ordering::SeqCst);
        // Complete: once more there is nothing to do.
        assert_eq!(refreshed(&story, RefreshOptions::default()).unwrap().records, 0);
        if url.is_none() {
            // What a crash inside the append leaves: every length of it.
            let complete = story.bytes("history.jsonl");
            let before = history["file"].len();
            let added = complete.len() - before;
            for length in [1, added / 3, added / 2, added - 2] {
                let torn = &complete[..before + length];
                std::fs::write(story.files.join("history.jsonl"), torn).unwrap();
                assert!(refreshed(&story, RefreshOptions::default()).unwrap().written, "{length}");
            }
        }
        assert_eq!(story.run(), [r#"c {"id":2,"a":2,"b":2}"#], "{database}");
        story.end();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn records(story: &Story<'_>) -> Vec<HistoryRecord> {
    let text = String::from_utf8(story.bytes("history.jsonl")).unwrap();
    text.lines().map(|line| read_record(line).unwrap().0).collect()
}

fn stored(story: &Story<'_>) -> SourceOffset {
    let stored = Json::parse(&String::from_utf8(story.bytes("offsets.dat")).unwrap()).unwrap();
    let [(_, offset)] = stored.get("offsets").unwrap().members() else { panic!("{stored}") };
    SourceOffset::from_json(&offset.to_string()).unwrap()
}

#[test]
fn every_comparison_in_use_applies_what_a_refresh_wrote() {
    for (options, database) in [
        (Options::mysql(), "r20"),
        (Options::mysql().without_gtids(), "r20p"),
        (Options::mariadb_11(), "r20m"),
    ] {
        let server = shared(&options).unwrap();
        let mut story = Story::new(&server, database, &[]);
        story
            .sql("BEGIN; INSERT INTO t VALUES (2, 2), (3, 3); INSERT INTO t VALUES (4, 4); COMMIT");
        for acknowledged in [0, 1] {
            let ack_first = Some(acknowledged);
            let mut process = story.start(RunOptions { ack_first, ..RunOptions::default() });
            // The second marker comes when what was acknowledged before it is stored.
            story.settle(&mut process);
            story.settle(&mut process);
            process.kill().unwrap();
            story.lose_history();
            story.refreshes(&[]);
            let all = records(&story);
            let offset = stored(&story);
            assert_eq!(offset.row > 0 || offset.event > 0, acknowledged > 0, "{offset:?}");
            let id = TableId::new(database, "t");
            for form in Comparator::ALL {
                let desired = form.loads(offset.clone());
                for record in &all {
                    assert!(
                        form.applies(&record.position, &desired).unwrap(),
                        "{form:?} {record:?}"
                    );
                }
                let table = form.replay(&all, &id, &desired).unwrap().unwrap();
                let names: Vec<&str> =
                    table.columns.iter().map(|column| column.name.as_str()).collect();
                assert_eq!(names, ["id", "a"], "{form:?}");
            }
        }
        assert_eq!(story.run(), [r#"c {"id":3,"a":3}"#, r#"c {"id":4,"a":4}"#], "{database}");
        story.end();
    }
}

#[test]
fn a_statement_that_was_recorded_beyond_the_offset_is_met_again() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r21", &[]);
    story.sql("ALTER TABLE t ADD b INT; INSERT INTO t VALUES (2, 2, 2)");
    let expected = ["ALTER TABLE t ADD b INT", r#"c {"id":2,"a":2,"b":2}"#];
    let briefs = |story: &mut Story<'_>| story.peek().iter().map(brief).collect::<Vec<_>>();
    assert_eq!(briefs(&mut story), expected);
    let is_alter = |record: &HistoryRecord| record.ddl.as_deref() == Some(expected[0]);
    assert!(records(&story).iter().any(is_alter), "the statement is recorded beyond the offset");
    let report = story.refreshes(&[]);
    assert_eq!(report.get("written"), Some(&Json::Bool(true)), "{report}");
    for form in Comparator::ALL {
        let desired = form.loads(stored(&story));
        let table = form.replay(&records(&story), &TableId::new("r21", "t"), &desired).unwrap();
        assert_eq!(table.unwrap().columns.len(), 3, "{form:?}");
    }
    // Before the statement, nothing of it acknowledged; and behind it.
    assert_eq!(briefs(&mut story), expected);
    assert_eq!(story.run(), expected);
    story.sql("INSERT INTO t VALUES (3, 3, 3)");
    assert_eq!(story.run(), [r#"c {"id":3,"a":3,"b":3}"#]);
    story.end();
}

#[test]
fn a_dropped_table_with_rows_ahead_gets_the_definition_that_is_given() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r22", &[]);
    story.sql("INSERT INTO u VALUES (5); DROP TABLE u; INSERT INTO t VALUES (2, 2)");
    story.lose_history();
    let text = story.refuses(&["--yes"], 1);
    assert!(text.contains("r22.u  REFUSED: the server does not have it any more"), "{text}");
    let sql = story.files.join("u.sql");
    std::fs::write(&sql, "CREATE TABLE u (id INT PRIMARY KEY)").unwrap();
    let given = format!("r22.u={}", sql.display());
    for option in ["--definition", "--force-table"] {
        let value = if option == "--definition" { given.as_str() } else { "r22.u" };
        let text = story.refuses(&["--yes", "--table", "r22.t", option, value], 2);
        assert!(text.contains("r22.u is not among the tables that are chosen"), "{text}");
    }
    story.refreshes(&["--definition", &given]);
    let run = story.run();
    assert_eq!(run[0], r#"c {"id":5}"#, "{run:?}");
    assert!(run[1].starts_with("DROP TABLE"), "{run:?}");
    assert_eq!(run[2..], [r#"c {"id":2,"a":2}"#], "{run:?}");
    story.end();
}

#[test]
fn rows_of_a_prepared_transaction_before_the_offset_are_looked_at() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r23", &[]);
    story.sql("XA START 'r23'; INSERT INTO t VALUES (2, 2); XA END 'r23'; XA PREPARE 'r23'");
    story.sql("INSERT INTO u VALUES (3)");
    assert_eq!(story.run(), [r#"c {"id":3}"#]);
    let held = String::from_utf8(story.bytes("offsets.dat")).unwrap();
    assert!(held.contains("holdfast_held"), "{held}");
    story.lose_history();
    let report = story.refreshes(&[]);
    let tables = report.get("tables").unwrap().elements();
    let table = tables.iter().find(|table| table.text("table") == Some("r23.t")).unwrap();
    assert_eq!(
        table.at_path("first_rows.columns").and_then(Json::as_text),
        Some("INT, INT"),
        "{table}"
    );
    story.sql("XA COMMIT 'r23'");
    assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);
    story.end();
}

#[test]
fn rows_in_compressed_transactions_are_looked_at() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r24", &[]);
    let compressed = "SET SESSION binlog_transaction_compression = ON;";
    story.sql(&format!("{compressed} INSERT INTO t VALUES (2, 2); INSERT INTO u VALUES (3)"));
    story.sql(&format!(
        "{compressed} ALTER TABLE t ADD b INT; INSERT INTO t VALUES (4, 4, 4); ALTER TABLE u ADD x INT"
    ));
    story.lose_history();
    let text = story.refuses(&["--yes"], 1);
    for table in ["r24.t  REFUSED", "r24.u  REFUSED"] {
        assert!(text.contains(table), "{text}");
    }
    let mut arguments = Vec::new();
    for (table, columns) in [("t", "id INT PRIMARY KEY, a INT"), ("u", "id INT PRIMARY KEY")] {
        let sql = story.files.join(format!("{table}.sql"));
        std::fs::write(&sql, format!("CREATE TABLE {table} ({columns})")).unwrap();
        arguments.push("--definition".to_owned());
        arguments.push(format!("r24.{table}={}", sql.display()));
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let report = story.refreshes(&arguments);
    assert_eq!(report.at_path("proof.rows_events").and_then(Json::as_i64), Some(3), "{report}");
    assert_eq!(
        story.run(),
        [
            r#"c {"id":2,"a":2}"#,
            r#"c {"id":3}"#,
            "ALTER TABLE t ADD b INT",
            r#"c {"id":4,"a":4,"b":4}"#,
            "ALTER TABLE u ADD x INT"
        ]
    );
    story.end();
}

#[test]
fn a_refresh_is_undone_by_another_one() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r25", &[]);
    story.sql("INSERT INTO t VALUES (2, 2)");
    let sql = story.files.join("t.sql");
    std::fs::write(&sql, "CREATE TABLE t (id INT PRIMARY KEY, a INT, wrong INT)").unwrap();
    let given = format!("r25.t={}", sql.display());
    story.refreshes(&["--table", "r25.t", "--definition", &given, "--force-table", "r25.t"]);
    let (code, log) = story.fails();
    assert_eq!(code, Some(3), "{log}");
    // The definition before it, from the history.
    let report = story.refreshes(&["--table", "r25.t", "--definition", "r25.t=@recorded"]);
    let source = report.get("tables").unwrap().elements()[0].text("source").unwrap().to_owned();
    assert!(source.starts_with("record "), "{report}");
    assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);
    story.end();
}

#[test]
fn of_two_refreshes_at_once_one_writes() {
    let mysql = shared(&Options::mysql()).unwrap();
    let folder = holdfast_tests::paths::fresh("two-refreshes").unwrap();
    let url = format!("file://{}/source-1", folder.display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (settings, database) in
        [(None, "r26"), (Some(("holdfast.history.url", url.as_str())), "r26f")]
    {
        let settings: Vec<(&str, &str)> = settings.into_iter().collect();
        let mut story = Story::new(&mysql, database, &settings);
        story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT; SET sql_log_bin=1; INSERT INTO t VALUES (2, 2, 2)");
        let before = kept(&story);
        let first = runtime
            .block_on(Refresh::prepare(story.config(), &RefreshOptions::default(), true))
            .unwrap();
        if settings.is_empty() {
            // A file is locked from the beginning.
            let output = story.refresh(&["--yes"]);
            assert_eq!(output.status.code(), Some(6), "{output:?}");
            assert_eq!(kept(&story), before);
            assert!(runtime.block_on(first.apply()).unwrap().written);
        } else {
            // Of two that plan the same object, the second finds it there.
            let second = runtime
                .block_on(Refresh::prepare(story.config(), &RefreshOptions::default(), true))
                .unwrap();
            assert!(runtime.block_on(first.apply()).unwrap().written);
            let after = kept(&story);
            assert_eq!(after.len(), before.len() + 1);
            match runtime.block_on(second.apply()) {
                Ok(report) => assert!(report.written, "the same bytes are its own append"),
                Err(error) => assert!(error.to_string().contains("somebody else"), "{error}"),
            }
            assert_eq!(kept(&story), after, "and leaves it");
        }
        assert_eq!(story.run(), [r#"c {"id":2,"a":2,"b":2}"#], "{database}");
        story.end();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

static READINGS: Mutex<Vec<Reading>> = Mutex::new(Vec::new());

#[test]
fn how_far_the_log_is_read_is_told() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "r27", &[]);
    holdfast_tests::refreshed::make_changes(&mysql, "r27", "t", 2..=3000).unwrap();
    story.sql("FLUSH BINARY LOGS; INSERT INTO t VALUES (3001, 1)");
    story.lose_history();
    let reading = |reading| READINGS.lock().unwrap().push(reading);
    let options = RefreshOptions { reading: Some(reading), ..RefreshOptions::default() };
    assert!(refreshed(&story, options).unwrap().written);
    let readings = READINGS.lock().unwrap().clone();
    for step in [Step::Scan, Step::Proof] {
        let of_step: Vec<&Reading> =
            readings.iter().filter(|reading| reading.step == step).collect();
        let done: Vec<u64> = of_step.iter().map(|reading| reading.done_bytes).collect();
        assert!(done.is_sorted() && done.len() > 2, "{readings:?}");
        assert!(of_step.iter().all(|reading| reading.done_bytes <= reading.total_bytes));
        assert_eq!(done.last(), of_step.last().map(|reading| &reading.total_bytes), "{readings:?}");
    }
    assert_eq!(story.run().len(), 3000);
    story.end();
}
