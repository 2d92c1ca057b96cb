//! The servers themselves: what every other test builds on.

use holdfast_tests::server::{Options, Server};

#[test]
fn mysql_starts_writes_rows_to_its_log_and_survives_a_crash() {
    let server = Server::start(Options::mysql().arg("--binlog_row_metadata=FULL")).unwrap();
    assert_eq!(server.value("SELECT @@gtid_mode").unwrap(), "ON");
    assert_eq!(server.value("SELECT @@binlog_row_metadata").unwrap(), "FULL");
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO d.t VALUES (1,'ä\\t|'),(2,NULL)").unwrap();
    server.kill().unwrap();
    server.launch().unwrap();
    assert_eq!(server.query("SELECT * FROM d.t").unwrap(), [["1", "ä\t|"], ["2", "NULL"]]);
    server.restart().unwrap();
    assert_eq!(server.value("SELECT COUNT(*) FROM d.t").unwrap(), "2");
    assert!(server.data().unwrap().join("mysql-bin.000003").exists());
}

#[test]
fn a_server_without_gtids_can_be_had() {
    let server = Server::start(Options::mysql().without_gtids()).unwrap();
    assert_eq!(server.value("SELECT @@gtid_mode").unwrap(), "OFF");
}

#[test]
fn both_mariadbs_start_and_count_gtids() {
    for (options, version) in [(Options::mariadb(), "1"), (Options::mariadb_11(), "11.8.")] {
        let server = Server::start(options).unwrap();
        assert!(server.version().starts_with(version), "{}", server.version());
        server.sql("CREATE DATABASE d").unwrap();
        assert!(server.value("SELECT @@gtid_binlog_pos").unwrap().starts_with("0-"));
    }
}

#[test]
fn a_failing_statement_is_an_error_with_the_servers_text() {
    let server = Server::start(Options::mariadb()).unwrap();
    let error = server.sql("SELECT * FROM nowhere.t").unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}
