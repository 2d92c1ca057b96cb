//! XA transactions over restarts: rows come with the commit, once, whatever happens between prepare and outcome.

use std::time::Duration;

use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Options, Server, shared};
use holdfast_tests::{case, paths};

const LIMIT: Duration = Duration::from_secs(60);

fn key_of(record: &Record) -> Option<i64> {
    (record.source().text("db") == Some("xa_db") && record.value().text("op") == Some("c"))
        .then(|| record.key().get("id").and_then(Json::as_i64))
        .flatten()
}

fn inserted(process: &Process) -> Vec<i64> {
    process.records().iter().filter_map(key_of).collect()
}

fn prepare(server: &Server, xid: &str, ids: std::ops::RangeInclusive<i64>) {
    let rows: Vec<String> = ids.map(|id| format!("({id})")).collect();
    server
        .sql(&format!(
            "XA START '{xid}'; INSERT INTO xa_db.t(id) VALUES {}; XA END '{xid}'; XA PREPARE '{xid}';",
            rows.join(",")
        ))
        .unwrap();
}

fn over_restarts(name: &str, server: &Server) {
    let files = paths::fresh(name).unwrap();
    server.sql("DROP DATABASE IF EXISTS xa_db; CREATE DATABASE xa_db; CREATE TABLE xa_db.t(id INT PRIMARY KEY);").unwrap();
    case::make_marker(server).unwrap();
    let mut properties = Properties::new(server, &files);
    properties.set("database.include.list", format!("xa_db,{}", case::MARKER));
    let start = |name: &str, ack_first| {
        let options = RunOptions { ack_first, ..RunOptions::default() };
        Process::start(Engine::Holdfast, &properties, &files, name, options).unwrap()
    };

    let mut first = start("first", None);
    case::snapshot_end(&mut first).unwrap();
    prepare(server, "kept", 1..=3);
    prepare(server, "dropped", 10..=12);
    server.sql("INSERT INTO xa_db.t VALUES (50)").unwrap();
    case::settle(&mut first, server, 2).unwrap();
    case::settle(&mut first, server, 3).unwrap();
    first.kill().unwrap();
    assert_eq!(inserted(&first), [50], "prepared rows do not come before the outcome");

    // The offset is behind both prepares now.
    let mut second = start("second", Some(0));
    server.sql("XA ROLLBACK 'dropped'; XA COMMIT 'kept';").unwrap();
    case::settle(&mut second, server, 4).unwrap();
    second.kill().unwrap();
    assert_eq!(inserted(&second), [1, 2, 3], "nothing acknowledged");

    let mut third = start("third", Some(2));
    third.wait_for("row 3", LIMIT, |record| key_of(record) == Some(3)).unwrap();
    case::settle(&mut third, server, 5).unwrap();
    third.kill().unwrap();
    // Rows of the marker may come before the commit: only what was acknowledged counts.
    let acknowledged: Vec<i64> = third.records().iter().take(2).filter_map(key_of).collect();

    let mut fourth = start("fourth", None);
    case::settle(&mut fourth, server, 6).unwrap();
    fourth.stop().unwrap();
    let left: Vec<i64> = [1, 2, 3].into_iter().filter(|id| !acknowledged.contains(id)).collect();
    assert_eq!(inserted(&fourth), left, "{acknowledged:?} were acknowledged");

    let mut fifth = start("fifth", None);
    case::settle(&mut fifth, server, 7).unwrap();
    fifth.stop().unwrap();
    assert_eq!(inserted(&fifth), [0; 0], "everything was acknowledged");
    std::fs::remove_dir_all(files).unwrap();
}

#[test]
fn xa_rows_come_once_with_gtids() {
    over_restarts("xa-gtid", &shared(&Options::mysql()).unwrap());
}

#[test]
fn xa_rows_come_once_without_gtids() {
    over_restarts("xa-no-gtid", &shared(&Options::mysql().without_gtids()).unwrap());
}

#[test]
fn xa_rows_come_once_on_mariadb() {
    over_restarts("xa-mariadb", &shared(&Options::mariadb()).unwrap());
}
