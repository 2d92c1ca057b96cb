//! The 39 records of one transaction, with every prefix acknowledged, killed, and resumed.

use std::time::Duration;

use holdfast_tests::case::{self, Case};
use holdfast_tests::engine::{Engine, Process, Record, RunOptions};
use holdfast_tests::server::shared;
use holdfast_tests::{golden, paths};

/// DELETE and CREATE of the changed key are records 37 and 38: one group.
const DELETE: usize = 37;

fn every_prefix(name: &str) {
    let folder = golden::cases(holdfast_tests::server::Flavour::MySql)
        .unwrap()
        .into_iter()
        .find(|case| case.name() == name)
        .unwrap()
        .folder()
        .to_path_buf();
    let case = Case::load(folder).unwrap();
    let server = shared(&case.server()).unwrap();
    let files = paths::fresh(name).unwrap();
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
    server.sql("INSERT INTO zz_marker.marker VALUES (2)").unwrap();
    case::marker_row(&mut first, 2).unwrap();
    first.kill().unwrap();
    let all = transaction(first.records());
    assert_eq!(all.len(), 40, "the marker update and 39 records after {snapshot} of the snapshot");
    let expected = all.get(1..).unwrap();
    let stored = std::fs::read(files.join("offsets.dat")).unwrap();

    for acknowledged in 0..=expected.len() {
        std::fs::write(files.join("offsets.dat"), &stored).unwrap();
        let mut original = start("original", Some(acknowledged as u64));
        case::marker_row(&mut original, 2).unwrap();
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
        let done = if acknowledged == DELETE { DELETE - 1 } else { acknowledged };
        assert_eq!(
            transaction(resumed.records()),
            &expected[done..],
            "resumed after {acknowledged} acknowledged"
        );
    }
    std::fs::remove_dir_all(files).unwrap();
}

/// The records without those of the marker, and without processing times.
fn transaction(records: &[Record]) -> Vec<holdfast_tests::json::Json> {
    golden::live(&case::records_of_case(records))
}

#[test]
fn every_acknowledged_prefix_resumes_without_gap_or_duplicate_with_gtids() {
    every_prefix("experiment-gtid");
}

#[test]
fn every_acknowledged_prefix_resumes_without_gap_or_duplicate_without_gtids() {
    every_prefix("experiment-no-gtid");
}
