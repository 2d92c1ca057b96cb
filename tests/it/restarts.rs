//! The 39 records of one transaction, with every prefix acknowledged, killed, and resumed.

use std::time::Duration;

use holdfast_tests::case;
use holdfast_tests::engine::{Engine, Process, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Flavour, Options, shared};
use holdfast_tests::{golden, paths};

/// Records of the transaction: four updates of one key, 32 of one statement, DELETE and CREATE of a changed key, one more.
const RECORDS: u8 = 39;

/// The DELETE is the 37th record and the CREATE the 38th: one group.
const DELETE: u8 = 37;

fn every_prefix(name: &str, options: Option<&Options>) {
    let cases = golden::cases(Flavour::MySql).unwrap();
    let case = cases.iter().find(|case| case.name() == name).unwrap();
    let server = shared(&options.cloned().unwrap_or_else(|| case.server())).unwrap();
    let files = paths::fresh(&format!("{name}-{:?}", server.flavour())).unwrap();
    case.set_up(&server).unwrap();
    let properties = case.properties(&server, &files).unwrap();
    let start = |name: &str, ack_first| {
        let options = RunOptions { ack_first, ..RunOptions::default() };
        Process::start(Engine::Holdfast, &properties, &files, name, options).unwrap()
    };

    // The snapshot and the marker update are acknowledged, and the offset is that of the marker update.
    let mut first = start("snapshot", None);
    let snapshot = case::snapshot_end(&mut first).unwrap() + 1;
    first.stop().unwrap();
    case.script(&server, "workload.sql").unwrap();
    let mut first = start("mark", Some(1));
    first.wait_for("the marker update", Duration::from_secs(60), |_| true).unwrap();
    case::settle(&mut first, &server, 2).unwrap();
    first.kill().unwrap();
    let all = transaction(first.records());
    assert_eq!(
        all.len(),
        usize::from(RECORDS) + 1,
        "the marker update and 39 records after {snapshot} of the snapshot"
    );
    let expected = all.get(1..).unwrap();
    let golden: Vec<Vec<String>> =
        golden::expected(case).unwrap().iter().filter_map(change).skip(1).collect();
    assert_eq!(
        expected.iter().filter_map(change).collect::<Vec<_>>(),
        golden,
        "topics, keys, headers and images are those of the real Debezium, whatever the server"
    );
    let rows = server
        .query(
            "SELECT id, label, revision FROM lab.t WHERE id IN (1, 2, 33, 50, 60, 150) ORDER BY id",
        )
        .unwrap();
    assert_eq!(
        rows,
        [
            ["1", "finish", "2"],
            ["2", "many", "1"],
            ["33", "many", "1"],
            ["60", "sentinel", "1"],
            ["150", "moved", "1"]
        ]
    );
    let stored = std::fs::read(files.join("offsets.dat")).unwrap();

    for acknowledged in 0..=RECORDS {
        std::fs::write(files.join("offsets.dat"), &stored).unwrap();
        let mut original = start("original", Some(u64::from(acknowledged)));
        case::marker_row(&mut original, 2).unwrap();
        case::settle(&mut original, &server, 3 + i64::from(acknowledged)).unwrap();
        original.kill().unwrap();
        assert_eq!(
            transaction(original.records()),
            expected,
            "first run, {acknowledged} acknowledged"
        );

        let mut resumed = start("resumed", Some(0));
        case::marker_row(&mut resumed, 2).unwrap();
        resumed.kill().unwrap();
        // Of a group of which only a part is acknowledged, all comes again.
        let done = usize::from(if acknowledged == DELETE { DELETE - 1 } else { acknowledged });
        assert_eq!(
            transaction(resumed.records()),
            &expected[done..],
            "resumed after {acknowledged} acknowledged"
        );
    }
    std::fs::remove_dir_all(files).unwrap();
}

/// What a streamed row says apart from where it was: topic, headers, key, op and images.
fn change(record: &Json) -> Option<Vec<String>> {
    let value = record.get("value")?;
    let op = value.text("op").filter(|op| *op != "r")?;
    let parts = [
        record.get("topic"),
        record.get("headers"),
        record.get("key"),
        value.get("before"),
        value.get("after"),
    ];
    let parts = parts.into_iter().map(|part| part.map(ToString::to_string).unwrap_or_default());
    Some(parts.chain([op.to_owned()]).collect())
}

/// The records without those of the marker, and without processing times.
fn transaction(records: &[Record]) -> Vec<Json> {
    golden::live(&case::records_of_case(records))
}

#[test]
fn every_acknowledged_prefix_resumes_without_gap_or_duplicate_with_gtids() {
    every_prefix("experiment-gtid", None);
}

#[test]
fn every_acknowledged_prefix_resumes_without_gap_or_duplicate_without_gtids() {
    every_prefix("experiment-no-gtid", None);
}

#[test]
fn every_acknowledged_prefix_resumes_without_gap_or_duplicate_on_mariadb() {
    every_prefix("experiment-gtid", Some(&Options::mariadb()));
}
