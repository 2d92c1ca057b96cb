//! `holdfast decode` on the files that the servers write.

use std::process::Command;

use holdfast_tests::engine::holdfast_binary;
use holdfast_tests::server::{Options, Server};

/// Every form a row can take, in a log of its own; the numbers of inserts, updates and deletes.
const WORKLOAD: &str = "
    CREATE DATABASE dec_db CHARACTER SET utf8mb4; USE dec_db;
    CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(20,4), b VARCHAR(300), c DATETIME(6), d ENUM('x','y'), e BLOB, f JSON);
    INSERT INTO t VALUES (1, 1.5, 'a', '2024-02-29 01:02:03.4', 'x', 0x00FF, '{\"a\": [1, 2]}'), (2, -1, NULL, NULL, 'y', NULL, NULL);
    UPDATE t SET b = REPEAT('b', 290) WHERE id = 1;
    UPDATE t SET id = 3 WHERE id = 2;
    ALTER TABLE t ADD COLUMN g BIGINT UNSIGNED DEFAULT 18446744073709551615;
    INSERT INTO t (id) VALUES (4);
    DELETE FROM t WHERE id = 1;
    FLUSH BINARY LOGS;
    INSERT INTO t (id) VALUES (5);";

fn decodes(options: Options) {
    let server = Server::start(options).unwrap();
    server.sql(WORKLOAD).unwrap();
    let files = server.query("SHOW BINARY LOGS").unwrap();
    let data = server.data().expect("a server of our own");
    let paths: Vec<_> =
        files.iter().filter_map(|row| row.first()).map(|name| data.join(name)).collect();
    assert!(paths.len() >= 2, "the log was rotated: {paths:?}");
    let output = Command::new(holdfast_binary().unwrap())
        .args(["decode", "--format", "json"])
        .args(&paths)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}\n{errors}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let ops = |op: &str| {
        let op = format!("\"op\":\"{op}\"");
        text.lines().filter(|line| line.contains(&op) && line.contains("dec_db")).count()
    };
    assert_eq!((ops("c"), ops("u"), ops("d")), (4, 2, 1), "{text}");
    for part in ["1709168523400000", "bbbbbbbbbb", "[1,"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn the_log_of_mysql_decodes() {
    decodes(Options::mysql());
}

#[test]
fn the_compressed_log_of_mysql_decodes() {
    decodes(Options::mysql().arg("--binlog-transaction-compression=ON"));
}

#[test]
fn the_log_of_mysql_with_full_metadata_and_without_checksums_decodes() {
    decodes(Options::mysql().arg("--binlog-row-metadata=FULL").arg("--binlog-checksum=NONE"));
}

#[test]
fn the_log_of_mariadb_decodes() {
    decodes(Options::mariadb());
}

#[test]
fn the_compressed_log_of_mariadb_decodes() {
    decodes(Options::mariadb().arg("--log-bin-compress=ON").arg("--log-bin-compress-min-len=10"));
}
