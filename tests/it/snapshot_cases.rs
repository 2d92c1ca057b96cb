//! Snapshots.
//!
//! | case | test |
//! | --- | --- |
//! | S01 initial | `the_marks_stand_where_tables_begin_and_end_and_the_last_record_completes_the_snapshot` |
//! | S02 order of schema records | `statements_come_in_the_order_of_the_history` |
//! | S03 `no_data` | `no_data_reads_definitions_and_then_streams` |
//! | S04 recovery keeps the offset | `refresh::recovery_and_configured_snapshots_keep_the_offset` |
//! | S05 recovery without an offset | `modes_that_cannot_begin_say_so` |
//! | S06 lost history, `configuration_based` | `refresh::recovery_and_configured_snapshots_keep_the_offset` |
//! | S07 `initial_only` | `initial_only_ends_and_starts_over_when_it_was_interrupted` |
//! | S08 `always` | `always_reads_all_at_every_start` |
//! | S09 interrupted snapshot | `an_interrupted_snapshot_goes_on_with_the_tables_that_are_not_done` and the two after it |
//! | S10 interrupted, then a mode without snapshots | `modes_that_cannot_begin_say_so` |
//! | S11 locking modes | `writes_meanwhile_are_there_exactly_once` and `without_a_lock_nothing_is_lost`; `minimal_at_least_once` is not in 3.6.3 |
//! | S12 no global lock | `locks_of_the_tables_stand_in_for_the_global_lock` |
//! | S13 no table locks | `the_locks_of_percona_server_are_refused_elsewhere`: only Percona Server could refuse the global lock there |
//! | S14 order of tables | `tables_come_in_the_order_that_is_asked_for` |
//! | S15 select overrides | `a_statement_of_its_own_chooses_the_rows` |
//! | S16 empty last table | `the_marks_stand_where_tables_begin_and_end_and_the_last_record_completes_the_snapshot` |
//! | S17 removed modes | `removed_modes_are_refused_with_the_list` |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_connector::config::{
    ConfiguredSnapshot, Properties as ConnectorProperties, StartState,
};
use holdfast_connector::{Config, Engine as Library};
use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::paths;
use holdfast_tests::server::{Flavour, Options, Server, shared};

const LIMIT: Duration = Duration::from_secs(90);

/// A database, and an engine that captures it without schema records.
struct Place<'s> {
    server: &'s Server,
    database: &'static str,
    files: PathBuf,
    properties: Properties,
    runs: u32,
}

impl<'s> Place<'s> {
    fn new(server: &'s Server, database: &'static str, schema: &str) -> Self {
        server
            .sql(&format!(
                "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database}; {schema}"
            ))
            .unwrap();
        let files = paths::fresh(database).unwrap();
        let mut properties = Properties::new(server, &files);
        properties.set("database.include.list", database);
        properties.set("include.schema.changes", "false");
        Self { server, database, files, properties, runs: 0 }
    }

    fn set(&mut self, settings: &[(&str, &str)]) -> &mut Self {
        for (key, value) in settings {
            self.properties.set(key, *value);
        }
        self
    }

    fn sql(&self, script: &str) {
        self.server.sql(&format!("USE {}; {script}", self.database)).unwrap();
    }

    fn start(&mut self, options: RunOptions) -> Process {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        Process::start(Engine::Holdfast, &self.properties, &self.files, &name, options).unwrap()
    }

    /// A run to the end of its snapshot and no further.
    fn snapshot(&mut self) -> Vec<Record> {
        let mut process = self.start(RunOptions::default());
        last(&mut process);
        process.stop().unwrap();
        assert!(!process.log().contains("ERROR"), "{}", process.log());
        process.records().to_vec()
    }

    /// A run that is killed with its snapshot read and so many of its records acknowledged; the offset it leaves, which
    /// says that tables are done where that is `expected`.
    fn interrupted(&mut self, acknowledged: u64, expected: bool) -> Json {
        let options = RunOptions { ack_first: Some(acknowledged), ..RunOptions::default() };
        let mut process = self.start(options);
        last(&mut process);
        let since = Instant::now();
        while self.offset().get("holdfast_progress").is_some() != expected {
            assert!(since.elapsed() < LIMIT, "{:?}", self.offset());
        }
        process.kill().unwrap();
        let offset = self.offset();
        assert_eq!(offset.text("snapshot"), Some("INITIAL"), "{offset:?}");
        offset
    }

    fn fails(&mut self) -> (Option<i32>, String) {
        let mut process = self.start(RunOptions::default());
        let status = process.wait_end(LIMIT).unwrap();
        (status.code(), process.log())
    }

    fn offset(&self) -> Json {
        let text = std::fs::read_to_string(self.files.join("offsets.dat")).unwrap();
        let document = Json::parse(&text).unwrap();
        document.get("offsets").unwrap().members().first().unwrap().1.clone()
    }

    fn forget(&self) {
        for name in ["offsets.dat", "history.jsonl"] {
            let _ = std::fs::remove_file(self.files.join(name));
        }
    }

    fn config(&self) -> Config {
        let path = self.files.join("library.properties");
        self.properties.write(&path).unwrap();
        let parsed = ConnectorProperties::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        Config::from_properties(&parsed, Path::new(&self.files)).unwrap().0
    }

    fn end(self) {
        std::fs::remove_dir_all(self.files).unwrap();
    }
}

/// Waits for the record that is marked as the snapshot's last.
fn last(process: &mut Process) {
    process
        .wait_for("the last record of the snapshot", LIMIT, |record| {
            record.source().text("snapshot") == Some("last")
        })
        .unwrap();
}

fn number(record: &Record, name: &str) -> Option<i64> {
    let value = record.value();
    let image =
        if value.text("op") == Some("d") { value.get("before") } else { value.get("after") };
    image?.get(name)?.as_i64()
}

/// `<op> <table> <id> <mark>` of rows; the mark of streamed ones is `false`.
fn briefs(records: &[Record]) -> Vec<String> {
    let rows = records.iter().filter(|record| record.value().get("op").is_some());
    rows.map(|record| {
        let source = record.source();
        let (table, mark) =
            (source.text("table").unwrap(), source.text("snapshot").unwrap_or("false"));
        let op = record.value().text("op").unwrap();
        format!("{op} {table} {} {mark}", number(record, "id").unwrap())
    })
    .collect()
}

const THREE: &str =
    "CREATE TABLE a (id INT PRIMARY KEY, v INT); INSERT INTO a VALUES (1, 1), (2, 1), (3, 1);
    CREATE TABLE b (id INT PRIMARY KEY, v INT); INSERT INTO b VALUES (1, 1);
    CREATE TABLE c (id INT PRIMARY KEY, v INT); INSERT INTO c VALUES (1, 1), (2, 1)";

#[test]
fn the_marks_stand_where_tables_begin_and_end_and_the_last_record_completes_the_snapshot() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        // A view has no rows of its own; a table without a key has records without one; the last table is empty.
        let more = "CREATE TABLE d (id INT, v INT); INSERT INTO d VALUES (7, 7), (7, 7);
                    CREATE TABLE e (id INT PRIMARY KEY); CREATE VIEW f AS SELECT * FROM a";
        let mut place = Place::new(&server, "snap_marks", &format!("{THREE}; {more}"));
        let expected = [
            "r a 1 first",
            "r a 2 true",
            "r a 3 last_in_data_collection",
            "r b 1 last_in_data_collection",
            "r c 1 first_in_data_collection",
            "r c 2 last_in_data_collection",
            "r d 7 first_in_data_collection",
            "r d 7 last",
        ];
        place.interrupted(7, true);
        place.forget();
        let records = place.snapshot();
        assert_eq!(briefs(&records), expected);
        let keyless: Vec<bool> =
            records.iter().map(|record| record.key().members().is_empty()).collect();
        assert_eq!(keyless, [false, false, false, false, false, false, true, true]);
        let offset = place.offset();
        assert_eq!((offset.get("snapshot"), offset.get("holdfast_progress")), (None, None));
        place.end();
    }
}

/// Tables with keys whose order the bytes of their text do not tell; `n` counts them in the server's order.
const KEYS: &str = "
    CREATE TABLE ci (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT);
    INSERT INTO ci VALUES ('ZZZZ', 6), ('bbbb', 4), ('0000', 1), ('cccc', 5), ('1111', 2), ('aaaa', 3);
    CREATE TABLE bytes (k VARBINARY(20) PRIMARY KEY, n INT);
    INSERT INTO bytes VALUES ('cccc', 6), ('ZZZZ', 3), ('bbbb', 5), ('0000', 1), ('aaaa', 4), ('1111', 2);
    CREATE TABLE big (k BIGINT UNSIGNED PRIMARY KEY, n INT);
    INSERT INTO big VALUES (18446744073709551615, 3), (9223372036854775808, 2), (1, 1);
    CREATE TABLE digits (k DECIMAL(20,5) PRIMARY KEY, n INT); INSERT INTO digits VALUES (10, 2), (9.5, 1);
    CREATE TABLE moments (k DATETIME(6) PRIMARY KEY, n INT);
    INSERT INTO moments VALUES ('2020-01-01 00:00:00.9', 2), ('2020-01-01 00:00:00.10', 1);
    CREATE TABLE labels (k ENUM('z','a') PRIMARY KEY, n INT); INSERT INTO labels VALUES ('a', 2), ('z', 1);
    CREATE TABLE padded (k CHAR(5) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT);
    INSERT INTO padded VALUES ('a', 1); INSERT IGNORE INTO padded VALUES ('a ', 2), ('A', 3);
    CREATE TABLE pairs (tenant VARCHAR(9) COLLATE utf8mb4_general_ci, id INT, n INT, PRIMARY KEY (tenant, id));
    INSERT INTO pairs VALUES ('b', 1, 4), ('A', 10, 3), ('a', 2, 2), ('B', 9, 5), ('a', -1, 1)";

#[test]
fn keys_come_once_in_the_servers_order_and_nothing_orders_them_here() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let mut place = Place::new(&server, "snap_keys", KEYS);
        place.set(&[("snapshot.max.threads", "3")]);
        // Stopped in the middle of a table, the snapshot reads that table again from its beginning.
        for interrupted in [false, true] {
            if interrupted {
                place.forget();
                place.interrupted(2, false);
            }
            let mut came: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            for record in place.snapshot() {
                let table = record.source().text("table").unwrap().to_owned();
                came.entry(table).or_default().push(number(&record, "n").unwrap());
            }
            let expected = [
                ("big", 3),
                ("bytes", 6),
                ("ci", 6),
                ("digits", 2),
                ("labels", 2),
                ("moments", 2),
                ("padded", 1),
                ("pairs", 5),
            ];
            let expected = expected.map(|(table, last)| (table.to_owned(), (1..=last).collect()));
            assert_eq!(came, BTreeMap::from(expected));
        }
        place.end();
    }
}

#[test]
fn statements_come_in_the_order_of_the_history() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_order", THREE);
    place.set(&[("include.schema.changes", "true"), ("snapshot.mode", "no_data")]);
    let records = place.snapshot();
    let words = |record: &Record| -> String {
        let ddl = record.value().text("ddl").unwrap().to_owned();
        let words: Vec<&str> = ddl.split_whitespace().take(2).collect();
        words.join(" ").split('=').next().unwrap().to_owned()
    };
    let found: Vec<String> = records.iter().map(words).collect();
    let tables = ["DROP TABLE"; 3].into_iter();
    let expected: Vec<&str> = std::iter::once("SET character_set_server")
        .chain(tables)
        .chain(["DROP DATABASE", "CREATE DATABASE", "USE `snap_order`"])
        .chain(["CREATE TABLE"; 3])
        .collect();
    assert_eq!(found, expected);
    let history = std::fs::read_to_string(place.files.join("history.jsonl")).unwrap();
    let recorded: Vec<String> = history
        .lines()
        .map(|line| Json::parse(line).unwrap().text("ddl").unwrap().to_owned())
        .collect();
    let sent: Vec<String> =
        records.iter().map(|record| record.value().text("ddl").unwrap().to_owned()).collect();
    assert_eq!(recorded, sent);
    place.end();
}

#[test]
fn no_data_reads_definitions_and_then_streams() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_nodata", THREE);
    place.set(&[("snapshot.mode", "no_data"), ("include.schema.changes", "true")]);
    let mut process = place.start(RunOptions::default());
    last(&mut process);
    place.sql("INSERT INTO a VALUES (4, 4)");
    process.wait_for("the row", LIMIT, |record| number(record, "id") == Some(4)).unwrap();
    process.stop().unwrap();
    assert_eq!(briefs(process.records()), ["c a 4 false"]);
    place.end();
}

#[test]
fn an_interrupted_no_data_snapshot_keeps_its_position() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_nodata_cut", THREE);
    place.set(&[("snapshot.mode", "no_data"), ("include.schema.changes", "true")]);
    let first = place.interrupted(1, false);
    place.sql(
        "INSERT INTO a VALUES (4, 4); ALTER TABLE b ADD w INT; INSERT INTO b VALUES (2, 2, 2)",
    );
    let mut process = place.start(RunOptions::default());
    process.wait_for("the row", LIMIT, |record| number(record, "w") == Some(2)).unwrap();
    process.stop().unwrap();
    assert_eq!(briefs(process.records()), ["c a 4 false", "c b 2 false"]);
    assert!(process.log().contains("the interrupted snapshot goes on"), "{}", process.log());

    // The same where the position was stored and nothing else.
    place.forget();
    place.sql("DROP TABLE b; CREATE TABLE b (id INT PRIMARY KEY, v INT)");
    place.interrupted(1, false);
    std::fs::remove_file(place.files.join("history.jsonl")).unwrap();
    place.sql("INSERT INTO a VALUES (5, 5)");
    let mut process = place.start(RunOptions::default());
    process.wait_for("the row", LIMIT, |record| number(record, "id") == Some(5)).unwrap();
    process.stop().unwrap();
    assert_eq!(briefs(process.records()), ["c a 5 false"]);
    assert!(first.get("holdfast_progress").is_none());
    place.end();
}

#[test]
fn modes_that_cannot_begin_say_so() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_cannot", THREE);
    place.set(&[("snapshot.mode", "recovery")]);
    let (code, log) = place.fails();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("Could not find existing redo log information"), "{log}");

    place.set(&[("snapshot.mode", "initial")]).interrupted(2, false);
    for mode in ["recovery", "configuration_based"] {
        place.set(&[
            ("snapshot.mode", mode),
            ("snapshot.mode.configuration.based.start.stream", "true"),
        ]);
        let (code, log) = place.fails();
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("previously stopped while taking a snapshot"), "{log}");
    }
    place.end();
}

#[test]
fn initial_only_ends_and_starts_over_when_it_was_interrupted() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_only", THREE);
    place.set(&[("snapshot.mode", "initial_only")]);
    let offset = place.interrupted(5, true);
    assert!(offset.get("holdfast_progress").is_some(), "{offset:?}");
    let mut process = place.start(RunOptions::default());
    let status = process.wait_end(LIMIT).unwrap();
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert_eq!(process.records().len(), 6);
    assert!(process.log().contains("a new snapshot is taken"), "{}", process.log());
    assert_eq!(place.offset().get("snapshot"), None);
    place.end();
}

#[test]
fn rows_that_a_transform_drops_do_not_keep_the_snapshot_from_its_end() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_dropped", THREE);
    place.set(&[
        ("snapshot.mode", "initial_only"),
        ("transforms", "f"),
        ("transforms.f.type", "org.apache.kafka.connect.transforms.Filter"),
        ("transforms.f.predicate", "p"),
        ("predicates", "p"),
        ("predicates.p.type", "org.apache.kafka.connect.transforms.predicates.TopicNameMatches"),
    ]);
    // The last table, one before it, all of them.
    for (pattern, expected) in [
        (
            "srv\\.snap_dropped\\.c",
            &[
                "a 1 first",
                "a 2 true",
                "a 3 last_in_data_collection",
                "b 1 last_in_data_collection",
            ][..],
        ),
        ("srv\\.snap_dropped\\.[ab]", &["c 1 first_in_data_collection", "c 2 last"]),
        (".*", &[]),
    ] {
        place.forget();
        place.set(&[("predicates.p.pattern", pattern)]);
        let mut process = place.start(RunOptions::default());
        let status = process.wait_end(LIMIT).unwrap();
        assert_eq!(status.code(), Some(0), "{}", process.log());
        let expected: Vec<String> = expected.iter().map(|row| format!("r {row}")).collect();
        assert_eq!(briefs(process.records()), expected, "{pattern}");
        let offset = place.offset();
        assert_eq!((offset.get("snapshot"), offset.get("holdfast_progress")), (None, None));
    }
    place.end();
}

#[test]
fn no_row_is_the_first_of_all_where_the_first_table_is_empty() {
    let server = shared(&Options::mysql()).unwrap();
    let schema = format!("{THREE}; DELETE FROM a; DELETE FROM c");
    let mut place = Place::new(&server, "snap_first_empty", &schema);
    place.sql("INSERT INTO c VALUES (1, 1), (2, 1), (3, 1)");
    let expected =
        ["b 1 last_in_data_collection", "c 1 first_in_data_collection", "c 2 true", "c 3 last"];
    assert_eq!(briefs(&place.snapshot()), expected.map(|row| format!("r {row}")));
    place.end();
}

#[test]
fn always_reads_all_at_every_start() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_always", THREE);
    place.set(&[("snapshot.mode", "always")]);
    assert_eq!(place.snapshot().len(), 6);
    place.sql("INSERT INTO c VALUES (9, 9)");
    let again = briefs(&place.snapshot());
    assert_eq!(again.len(), 7);
    assert_eq!((again[0].as_str(), again[6].as_str()), ("r a 1 first", "r c 9 last"));
    place.end();
}

#[test]
fn an_interrupted_snapshot_goes_on_with_the_tables_that_are_not_done() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let mut place = Place::new(&server, "snap_resume", THREE);
        // All of `a`, `b`, and one row of `c`.
        let first = place.interrupted(5, true);
        place.sql("UPDATE a SET v = 2 WHERE id = 1; DELETE FROM c WHERE id = 1; INSERT INTO b VALUES (2, 2)");
        let history = std::fs::read(place.files.join("history.jsonl")).unwrap();
        let mut process = place.start(RunOptions::default());
        process
            .wait_for("the last change", LIMIT, |record| {
                number(record, "v") == Some(2) && number(record, "id") == Some(2)
            })
            .unwrap();
        process.stop().unwrap();
        let records = process.records();
        assert_eq!(briefs(records), ["r c 2 last", "u a 1 false", "d c 1 false", "c b 2 false"]);
        assert!(process.log().contains("the interrupted snapshot goes on"), "{}", process.log());
        let read = records[0].source();
        assert_eq!(
            (read.text("file"), read.get("pos")),
            (first.text("file"), first.get("pos")),
            "the position is the first run's"
        );
        assert_eq!(std::fs::read(place.files.join("history.jsonl")).unwrap(), history);
        assert_eq!(place.offset().get("holdfast_progress"), None);
        place.end();
    }
}

#[test]
fn a_table_that_changed_since_makes_an_interrupted_snapshot_start_over() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_changed", THREE);
    place.interrupted(5, true);
    place.sql("ALTER TABLE c ADD w INT");
    let records = place.snapshot();
    assert_eq!(records.len(), 6);

    // A table that is done already may have changed: its changes are in the log.
    place.forget();
    place.interrupted(5, true);
    place.sql("ALTER TABLE a ADD w INT; INSERT INTO a VALUES (8, 8, 8)");
    let mut process = place.start(RunOptions::default());
    process.wait_for("the row", LIMIT, |record| number(record, "w") == Some(8)).unwrap();
    process.stop().unwrap();
    assert_eq!(briefs(process.records()), ["r c 1 first", "r c 2 last", "c a 8 false"]);

    // Other tables than those of the interrupted one.
    place.forget();
    place.interrupted(5, true);
    place.set(&[("table.include.list", "snap_changed.[abc],snap_changed.x")]);
    place.set(&[("snapshot.include.collection.list", "snap_changed.[ac]")]);
    let records = place.snapshot();
    assert_eq!(records.len(), 6, "all of a and c");
    place.end();
}

#[test]
fn parallel_readers_keep_the_order_of_each_table_and_the_marks() {
    let server = shared(&Options::mysql()).unwrap();
    let mut schema = String::from("SET SESSION cte_max_recursion_depth=100000;");
    for table in 0..6 {
        schema.push_str(&format!(
            "CREATE TABLE t{table} (id INT PRIMARY KEY);
             INSERT INTO t{table} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
             SELECT i FROM n;"
        ));
    }
    let mut place = Place::new(&server, "snap_parallel", &schema);
    place.set(&[
        ("snapshot.max.threads", "4"),
        ("max.batch.size", "500"),
        ("snapshot.fetch.size", "300"),
    ]);
    let offset = place.interrupted(17_999, true);
    let mut process = place.start(RunOptions::default());
    last(&mut process);
    process.stop().unwrap();
    let again = process.records().len();
    assert!(
        again > 0 && again < 18_000 && again.is_multiple_of(3000),
        "{again} records; {offset:?}"
    );

    place.forget();
    let records = place.snapshot();
    assert_eq!(records.len(), 18_000);
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    let mut marks: BTreeMap<String, u32> = BTreeMap::new();
    for record in &records {
        let source = record.source();
        let next = seen.entry(source.text("table").unwrap().to_owned()).or_default();
        *next += 1;
        assert_eq!(number(record, "id"), Some(*next));
        *marks.entry(source.text("snapshot").unwrap().to_owned()).or_default() += 1;
    }
    assert!(seen.len() == 6 && seen.values().all(|rows| *rows == 3000), "{seen:?}");
    let expected = [
        ("first", 1),
        ("first_in_data_collection", 5),
        ("last", 1),
        ("last_in_data_collection", 5),
        ("true", 18_000 - 12),
    ];
    let expected: BTreeMap<String, u32> =
        expected.into_iter().map(|(mark, count)| (mark.to_owned(), count)).collect();
    assert_eq!(marks, expected);
    assert_eq!(records.first().unwrap().source().text("snapshot"), Some("first"));
    assert_eq!(records.last().unwrap().source().text("snapshot"), Some("last"));
    place.end();
}

/// Moves amounts between two tables, and notes each move in a third, until it is told to stop; the number of moves.
fn mover(server: &Server, database: &str, worker: u32, stop: &AtomicBool) -> u32 {
    let mut moves = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut script = format!("USE {database};");
        for _ in 0..20 {
            moves += 1;
            // Rows of its own: a writer that waited for the other's row, which waits for the global lock, would hold that
            // lock up until the server gives up.
            let (id, note) = ((worker - 1) * 5 + moves % 5 + 1, worker * 1_000_000 + moves);
            script.push_str(&format!(
                "BEGIN; UPDATE a SET v = v - 1 WHERE id = {id}; UPDATE b SET v = v + 1 WHERE id = {id};
                 INSERT INTO c VALUES ({note}, 0); COMMIT;"
            ));
        }
        server.sql(&script).unwrap();
    }
    moves
}

/// A snapshot while two writers write, all that follows, and what was found: whether the snapshot is of one moment, and
/// how often notes came twice.
fn while_writing(server: &Server, place: &mut Place<'_>) -> (bool, usize) {
    let mut rows = String::new();
    for id in 1..=10 {
        rows.push_str(&format!("INSERT INTO a VALUES ({id}, 0); INSERT INTO b VALUES ({id}, 0);"));
    }
    place.sql(&rows);
    // The writers keep a slow machine busy.
    place.set(&[("snapshot.lock.timeout.ms", "60000")]);
    let stop = AtomicBool::new(false);
    let database = place.database;
    let (mut process, moves) = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=2)
            .map(|worker| {
                (
                    worker,
                    scope.spawn({
                        let stop = &stop;
                        move || mover(server, database, worker, stop)
                    }),
                )
            })
            .collect();
        let since = Instant::now();
        let notes = format!("SELECT COUNT(*) FROM {database}.c");
        let mut began = false;
        while !began && since.elapsed() < LIMIT {
            began = server.value(&notes).is_ok_and(|notes| notes != "0");
        }
        let mut process = place.start(RunOptions::default());
        let read = process.wait_for("the last record of the snapshot", LIMIT, |record| {
            record.source().text("snapshot") == Some("last")
        });
        // The writers end whatever came of it.
        stop.store(true, Ordering::Relaxed);
        read.unwrap();
        assert!(began, "the writers did not begin");
        let moves: Vec<(u32, u32)> =
            workers.into_iter().map(|(worker, handle)| (worker, handle.join().unwrap())).collect();
        (process, moves)
    });
    place.sql("INSERT INTO c VALUES (9000000, 0)");
    process.wait_for("the end", LIMIT, |record| number(record, "id") == Some(9_000_000)).unwrap();
    process.stop().unwrap();
    assert!(!process.log().contains("ERROR"), "{}", process.log());
    // What a consumer has in the end, and what the snapshot alone said.
    let mut state: BTreeMap<(String, i64), i64> = BTreeMap::new();
    let mut notes: BTreeMap<i64, usize> = BTreeMap::new();
    let mut sum = 0;
    for record in process.records() {
        let table = record.source().text("table").unwrap().to_owned();
        let (id, v) = (number(record, "id").unwrap(), number(record, "v").unwrap());
        if table == "c" {
            *notes.entry(id).or_default() += 1;
        } else {
            state.insert((table, id), v);
            sum += if record.value().text("op") == Some("r") { v } else { 0 };
        }
    }
    for table in ["a", "b"] {
        for row in server.query(&format!("SELECT id, v FROM {database}.{table}")).unwrap() {
            let (id, v): (i64, i64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
            assert_eq!(state.get(&(table.to_owned(), id)), Some(&v), "{table} {id}");
        }
    }
    for (worker, moves) in moves {
        for note in 1..=moves {
            let id = i64::from(worker * 1_000_000 + note);
            assert!(notes.contains_key(&id), "note {id} of {moves} is missing");
        }
    }
    (sum == 0, notes.values().filter(|times| **times > 1).count())
}

const MOVED: &str =
    "CREATE TABLE a (id INT PRIMARY KEY, v INT); CREATE TABLE b (id INT PRIMARY KEY, v INT);
    CREATE TABLE c (id INT PRIMARY KEY, v INT)";

#[test]
fn writes_meanwhile_are_there_exactly_once() {
    for (options, locking) in [
        (Options::mysql(), "minimal"),
        (Options::mysql(), "extended"),
        (Options::mariadb(), "minimal"),
    ] {
        let server = shared(&options).unwrap();
        let mut place = Place::new(&server, "snap_writes", MOVED);
        place.set(&[("snapshot.locking.mode", locking), ("snapshot.max.threads", "3")]);
        let found = while_writing(&server, &mut place);
        assert_eq!(found, (true, 0), "{locking}: of one moment, and nothing twice");
        place.end();
    }
}

#[test]
fn without_a_lock_nothing_is_lost() {
    for (options, by_position) in
        [(Options::mysql(), false), (Options::mysql(), true), (Options::mariadb(), false)]
    {
        let server = shared(&options).unwrap();
        let mut place = Place::new(&server, "snap_unlocked", MOVED);
        place.set(&[("snapshot.locking.mode", "none"), ("snapshot.max.threads", "3")]);
        if by_position {
            place.set(&[("gtid.ignore.on.recovery", "true")]);
        }
        let (consistent, twice) = while_writing(&server, &mut place);
        assert!(consistent, "one view shows one moment");
        if server.flavour() == Flavour::MariaDb {
            assert_eq!(twice, 0, "the position is that of the view");
        }
        place.end();
    }
}

#[test]
fn locks_of_the_tables_stand_in_for_the_global_lock() {
    let both: &[&str] = &["minimal", "extended"];
    for (options, lockings) in [(Options::mysql(), both), (Options::mariadb(), &["minimal"])] {
        let server = shared(&options).unwrap();
        let mut place = Place::new(&server, "snap_locks", MOVED);
        server
            .sql(
                "DROP USER IF EXISTS 'locker'@'%'; CREATE USER 'locker'@'%' IDENTIFIED BY 'secret-word';
                 GRANT SELECT, LOCK TABLES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'locker'@'%'",
            )
            .unwrap();
        place.set(&[("database.user", "locker"), ("database.password", "secret-word")]);
        for locking in lockings {
            place.forget();
            place.sql("DELETE FROM a; DELETE FROM b; DELETE FROM c");
            place.set(&[("snapshot.locking.mode", *locking), ("snapshot.max.threads", "2")]);
            let found = while_writing(&server, &mut place);
            assert_eq!(found, (true, 0), "{locking}: of one moment, and nothing twice");
            let log = std::fs::read_to_string(place.files.join(format!("run-{}.log", place.runs)));
            assert!(log.unwrap().contains("locking the tables instead"));
        }
        place.end();
    }
}

#[test]
fn the_locks_of_percona_server_are_refused_elsewhere() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_percona", THREE);
    for locking in ["minimal_percona", "minimal_percona_no_table_locks"] {
        place.set(&[("snapshot.locking.mode", locking)]);
        let (code, log) = place.fails();
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("which only Percona Server has"), "{log}");
    }
    place.end();
}

#[test]
fn tables_come_in_the_order_that_is_asked_for() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_sorted", THREE);
    server.sql("SET GLOBAL information_schema_stats_expiry = 0").unwrap();
    place.sql("ANALYZE TABLE a, b, c");
    let tables = |records: &[Record]| -> String {
        let firsts = briefs(records).into_iter().filter(|brief| brief.contains(" 1 "));
        firsts.filter_map(|brief| brief.chars().nth(2)).collect()
    };
    place.set(&[("table.include.list", "snap_sorted.c,snap_sorted.[ab]")]);
    for (order, expected) in [("disabled", "cab"), ("ascending", "bca"), ("descending", "acb")] {
        place.forget();
        place.set(&[("snapshot.tables.order.by.row.count", order)]);
        assert_eq!(tables(&place.snapshot()), expected, "{order}");
    }
    server.sql("SET GLOBAL information_schema_stats_expiry = DEFAULT").unwrap();
    place.end();
}

#[test]
fn a_statement_of_its_own_chooses_the_rows() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_select", THREE);
    place.set(&[
        ("snapshot.select.statement.overrides", "snap_select.a,snap_select.c"),
        (
            "snapshot.select.statement.overrides.snap_select.a",
            "SELECT * FROM snap_select.a WHERE id > 1 ORDER BY id DESC;",
        ),
        (
            "snapshot.select.statement.overrides.snap_select.c",
            "SELECT v, id FROM snap_select.c WHERE id = 0",
        ),
    ]);
    let found = briefs(&place.snapshot());
    let mut rows: Vec<&str> = found.iter().map(|brief| brief.split_at(5).0).collect();
    rows.sort_unstable();
    assert_eq!(rows, ["r a 2", "r a 3", "r b 1"]);
    place.forget();
    place.set(&[(
        "snapshot.select.statement.overrides.snap_select.a",
        "SELECT id FROM snap_select.a",
    )]);
    let (code, log) = place.fails();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("snap_select.a") && log.contains("Unknown column"), "{log}");
    place.end();
}

#[test]
fn removed_modes_are_refused_with_the_list() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_modes", "");
    for mode in ["never", "schema_only", "schema_only_recovery"] {
        place.set(&[("snapshot.mode", mode)]);
        let (code, log) = place.fails();
        assert_eq!(code, Some(2), "{log}");
        for known in ["always", "initial_only", "when_needed", "no_data", "recovery", "custom"] {
            assert!(log.contains(known), "{mode}: {log}");
        }
    }
    place.end();
}

#[test]
fn rules_of_the_host_decide_with_mode_custom() {
    let server = shared(&Options::mysql()).unwrap();
    let mut place = Place::new(&server, "snap_custom", THREE);
    place.set(&[("snapshot.mode", "custom"), ("snapshot.mode.custom.name", "mine")]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = |rules: fn(StartState) -> ConfiguredSnapshot, until: i64| {
        runtime.block_on(async {
            let mut engine =
                Library::builder(place.config()).snapshot_rules(rules).start().await.unwrap();
            let mut ids = Vec::new();
            while ids.last() != Some(&until) {
                let batch = tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap();
                let batch = batch.unwrap().expect("it streams");
                for change in batch.changes() {
                    let value: serde_json::Value = serde_json::from_slice(change.value()).unwrap();
                    ids.push(value.pointer("/after/id").unwrap().as_i64().unwrap());
                }
                batch.acknowledge();
            }
            engine.close().await.unwrap();
            ids
        })
    };
    let rules = |found: StartState| ConfiguredSnapshot {
        data: !found.has_offset || found.is_interrupted,
        stream: true,
        ..ConfiguredSnapshot::default()
    };
    assert_eq!(run(rules, 2), [1, 2, 3, 1, 1, 2], "the first start reads all");
    place.sql("INSERT INTO a VALUES (30, 0)");
    assert_eq!(run(rules, 30), [30], "the second nothing");
    let error = runtime.block_on(Library::builder(place.config()).start()).unwrap_err();
    assert!(error.to_string().contains("snapshot_rules"), "{error}");
    place.end();
}
