//! One transaction of 39 records through nine processes: the same identities and contents whatever the batch size,
//! the acknowledged prefix and the restart; and a key change of which only the DELETE was acknowledged comes again.
//!
//! On MySQL with and without GTIDs, on MariaDB, and each with its compressed events.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::{Config, Engine as Library};
use holdfast_tests::case::{self, Case};
use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Flavour, Options, Server, shared};
use holdfast_tests::{golden, paths};

const LIMIT: Duration = Duration::from_secs(90);

/// Records of the transaction: four updates of one key, 32 of one statement, DELETE and CREATE of a changed key, one more.
const RECORDS: usize = 39;

/// The DELETE is the 37th record and the CREATE the 38th: one group.
const DELETE: usize = 37;

/// Places of the identity's members in its text form.
const ROW: usize = 7;
const PART: usize = 8;

/// What stays the same over all runs.
struct Bench<'a> {
    properties: Properties,
    files: &'a Path,
}

impl Bench<'_> {
    fn start(&self, name: &str, batch: u32, ack_first: Option<usize>) -> Process {
        let mut properties = self.properties.clone();
        properties.set("max.batch.size", batch.to_string());
        let ack_first = ack_first.map(|count| u64::try_from(count).unwrap());
        let options = RunOptions { ack_first, ..RunOptions::default() };
        Process::start(Engine::Holdfast, &properties, self.files, name, options).unwrap()
    }

    /// One process up to the marker row behind the transaction, then SIGKILL: what it gave of the transaction.
    fn killed(&self, name: &str, batch: u32, acknowledged: usize) -> Vec<Json> {
        let mut process = self.start(name, batch, Some(acknowledged));
        case::marker_row(&mut process, 2).unwrap();
        process.kill().unwrap();
        live(process.records())
    }

    fn stored(&self) -> Vec<u8> {
        std::fs::read(self.files.join("offsets.dat")).unwrap()
    }

    /// The batches that the library gives out from the stored offset up to the marker row behind the transaction, without
    /// any acknowledgement: for each record identity, offset and whether it ends its group.
    fn callbacks(&self, size: u32) -> Vec<Vec<(String, String, bool)>> {
        let mut properties = self.properties.clone();
        properties.set("max.batch.size", size.to_string());
        let path = self.files.join("library.properties");
        properties.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = ConnectorProperties::parse(&text).unwrap();
        let config = Config::from_properties(&parsed, self.files).unwrap().0;
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let mut engine = Library::builder(config).start().await.unwrap();
            let mut batches = Vec::new();
            loop {
                let next = tokio::time::timeout(LIMIT, engine.next_batch()).await;
                let batch = next.expect("no batch came").unwrap().expect("the engine ended");
                let of_case =
                    batch.changes().filter(|change| change.table().database != case::MARKER);
                let records: Vec<_> = of_case
                    .map(|change| {
                        let offset = change.offset().to_json();
                        (change.identity().to_string(), offset, change.is_last_of_group())
                    })
                    .collect();
                let end = records.len() < batch.len();
                if !records.is_empty() {
                    batches.push(records);
                }
                if end {
                    return batches;
                }
            }
        })
    }
}

fn nine_processes(name: &str, server: &Server, case_name: &str, compressed: bool) {
    let cases = golden::cases(Flavour::MySql).unwrap();
    let case = cases.iter().find(|case| case.name() == case_name).unwrap();
    let files = paths::fresh(name).unwrap();
    case.set_up(server).unwrap();
    let mut properties = case.properties(server, &files).unwrap();
    properties.set("holdfast.headers.identity", "true");
    let bench = Bench { properties, files: &files };

    // Everything of the snapshot is acknowledged, then the marker update; the stored offset is the latter's.
    let mut first = bench.start("snapshot", 16, None);
    case::snapshot_end(&mut first).unwrap();
    first.stop().unwrap();
    workload(case, server, compressed);
    let mut first = bench.start("mark", 16, Some(1));
    first.wait_for("the marker update", LIMIT, |_| true).unwrap();
    case::settle(&mut first, server, 2).unwrap();
    first.kill().unwrap();
    let mark = bench.stored();

    let reference = bench.killed("original", 16, 0);
    tells_all_apart(&reference);
    is_the_golden(&reference, case);
    assert_eq!(bench.killed("restart", 16, 0), reference, "after a restart");
    assert_eq!(bench.killed("batch-1", 1, 0), reference, "batches of 1");
    assert_eq!(bench.killed("batch-64", 64, 0), reference, "batches of 64");
    assert_eq!(bench.stored(), mark, "nothing was acknowledged, so nothing was stored");
    groups_are_whole(&bench, &reference);
    assert_eq!(bench.stored(), mark, "the library stores nothing either");

    assert_eq!(bench.killed("prefix", 1, 10), reference, "while 10 are acknowledged");
    let ten = bench.stored();
    assert_ne!(ten, mark, "the prefix was stored");
    assert_eq!(bench.killed("resumed-1", 1, 0), &reference[10..], "resumed, batches of 1");
    assert_eq!(bench.killed("resumed-64", 64, 0), &reference[10..], "resumed, batches of 64");
    assert_eq!(bench.stored(), ten);

    // From there 27 more, of the key change only the DELETE: both of its records come again.
    assert_eq!(bench.killed("delete-only", 1, DELETE - 10), &reference[10..]);
    assert_ne!(bench.stored(), ten, "what is before the key change was stored");
    let mut resumed = bench.start("resumed-pair", 1, None);
    case::marker_row(&mut resumed, 2).unwrap();
    resumed.stop().unwrap();
    assert_eq!(
        live(resumed.records()),
        &reference[DELETE - 1..],
        "DELETE, CREATE and the sentinel"
    );

    let mut done = bench.start("done", 16, Some(0));
    case::settle(&mut done, server, 3).unwrap();
    done.kill().unwrap();
    assert_eq!(live(done.records()), [], "everything was acknowledged");
    std::fs::remove_dir_all(&files).unwrap();
}

/// Writes the marker update and the transaction, in a binlog file of their own.
fn workload(case: &Case, server: &Server, compressed: bool) {
    let script = std::fs::read_to_string(case.folder().join("workload.sql")).unwrap();
    let (on, off) = match (compressed, server.flavour()) {
        (false, _) => ("", ""),
        (true, Flavour::MySql) => ("SET SESSION binlog_transaction_compression=ON;", ""),
        (true, Flavour::MariaDb) => (
            "SET GLOBAL log_bin_compress=ON; SET GLOBAL log_bin_compress_min_len=10;",
            "SET GLOBAL log_bin_compress=OFF; SET GLOBAL log_bin_compress_min_len=DEFAULT;",
        ),
    };
    server.sql(&format!("FLUSH BINARY LOGS; {on}\n{script}\n{off}")).unwrap();
    let logs = server.query("SHOW BINARY LOGS").unwrap();
    let file = logs.last().and_then(|row| row.first()).unwrap();
    let events = server.query(&format!("SHOW BINLOG EVENTS IN '{file}'")).unwrap();
    let kinds = events.iter().filter_map(|row| row.get(2));
    let compressed_events = kinds
        .filter(|kind| kind.contains("Transaction_payload") || kind.contains("compressed"))
        .count();
    assert_eq!(compressed_events > 0, compressed, "{events:?}");
}

/// The records of the transaction, without processing times; the marker update before it is not one of them.
fn live(records: &[Record]) -> Vec<Json> {
    let mut records = golden::live(&case::records_of_case(records));
    records.retain(|record| record.at_path("key.id").and_then(Json::as_i64) != Some(64));
    records
}

fn identity(record: &Json) -> &str {
    record.at_path("headers").and_then(|headers| headers.text("__holdfast.id")).unwrap()
}

/// Distinct values of `of` over all records.
fn distinct(records: &[Json], of: impl Fn(&Json) -> String) -> usize {
    records.iter().map(of).collect::<BTreeSet<_>>().len()
}

/// Every member of the identity is needed, and neither key nor content nor GTID could stand in for it.
fn tells_all_apart(records: &[Json]) {
    let without = |dropped: usize| {
        distinct(records, |record| {
            let members: Vec<&str> = identity(record).split('|').collect();
            assert_eq!(members.len(), 9, "{members:?}");
            let (before, after) = members.split_at(dropped);
            [before, after.get(1..).unwrap()].concat().join("|")
        })
    };
    let with_op = |record: &Json| {
        let (place, _) = identity(record).rsplit_once('|').unwrap();
        format!("{place}|{}", record.at_path("value.op").unwrap())
    };
    let member = |path: &'static str| {
        move |record: &Json| record.at_path(path).map(ToString::to_string).unwrap_or_default()
    };
    let content = |record: &Json| {
        ["key", "value.op", "value.before", "value.after"]
            .map(|path| member(path)(record))
            .join(" ")
    };
    assert_eq!(records.len(), RECORDS);
    assert_eq!(distinct(records, |record| identity(record).to_owned()), RECORDS);
    assert_eq!(distinct(records, with_op), RECORDS, "op does what the part does");
    assert_eq!(without(PART), RECORDS - 1, "without the part, DELETE and CREATE are one");
    assert_eq!(without(ROW), 8, "without the row");
    assert_eq!(distinct(records, content), RECORDS - 1, "two updates have the same content");
    assert_eq!(distinct(records, member("key")), 36, "four updates have the same key");
    assert_eq!(distinct(records, member("value.source.gtid")), 1, "one transaction");
}

/// Topics, keys, headers and images are those of the real Debezium, whatever the server.
fn is_the_golden(records: &[Json], case: &Case) {
    let change = |record: &Json| {
        let mut headers = record.get("headers").unwrap().clone();
        if let Json::Object(members) = &mut headers {
            members.retain(|(name, _)| name != "__holdfast.id");
        }
        let parts = ["topic", "key", "value.op", "value.before", "value.after"]
            .map(|path| record.at_path(path).unwrap().to_string());
        (headers.to_string(), parts)
    };
    let expected = golden::expected(case).unwrap();
    let after_mark = expected.get(expected.len() - RECORDS..).unwrap();
    assert_eq!(
        records.iter().map(change).collect::<Vec<_>>(),
        after_mark.iter().map(change).collect::<Vec<_>>()
    );
}

/// Batches of 16, 1 and 64: the same identities and offsets, no batch over its size but by a group, no group split.
fn groups_are_whole(bench: &Bench<'_>, reference: &[Json]) {
    let expected: Vec<&str> = reference.iter().map(identity).collect();
    let mut offsets: Option<Vec<String>> = None;
    for size in [16, 1, 64] {
        let batches = bench.callbacks(size);
        for batch in &batches {
            let groups = batch.iter().filter(|(_, _, last)| *last).count();
            assert!(batch.last().unwrap().2, "a batch of {size} ends inside a group: {batch:?}");
            let fits = batch.len() <= usize::try_from(size).unwrap();
            assert!(fits || groups == 1, "{} records in a batch of {size}", batch.len());
        }
        if size == 1 {
            assert_eq!(batches.len(), RECORDS - 1, "the key change is one batch");
            assert_eq!(batches[DELETE - 1].len(), 2);
        }
        let records: Vec<_> = batches.into_iter().flatten().collect();
        assert_eq!(records.iter().map(|(id, _, _)| id).collect::<Vec<_>>(), expected);
        // The last one is inside the transaction, or after its commit if that was read before the batch went out.
        let came: Vec<String> = records.into_iter().take(RECORDS - 1).map(|it| it.1).collect();
        let before = offsets.get_or_insert_with(|| came.clone());
        assert!(*before == came, "other offsets in batches of {size}:\n{before:#?}\n{came:#?}");
    }
    let offsets = offsets.unwrap();
    assert_eq!(offsets.iter().collect::<BTreeSet<_>>().len(), RECORDS - 2, "one offset a group");
    assert_eq!(
        offsets[DELETE - 1],
        offsets[DELETE - 2],
        "after the DELETE alone nothing more is done"
    );
}

#[test]
fn nine_processes_give_the_same_39_records_with_gtids() {
    let server = shared(&Options::mysql()).unwrap();
    nine_processes("nine-gtid", &server, "experiment-gtid", false);
    nine_processes("nine-gtid-compressed", &server, "experiment-gtid", true);
}

#[test]
fn nine_processes_give_the_same_39_records_without_gtids() {
    let server = shared(&Options::mysql().without_gtids()).unwrap();
    nine_processes("nine-no-gtid", &server, "experiment-no-gtid", false);
    nine_processes("nine-no-gtid-compressed", &server, "experiment-no-gtid", true);
}

#[test]
fn nine_processes_give_the_same_39_records_on_mariadb() {
    let server = shared(&Options::mariadb()).unwrap();
    nine_processes("nine-mariadb", &server, "experiment-gtid", false);
    nine_processes("nine-mariadb-compressed", &server, "experiment-gtid", true);
}
