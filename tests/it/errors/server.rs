//! Servers that are not set up for change data capture, or of the other family.

use holdfast_tests::server::{Options, Server, shared};

use super::{Global, Stage, ids, wait_for_row};

#[test]
fn a_global_setting_that_would_lose_changes_is_named_with_the_statement_that_mends_it() {
    let wrong = [
        ("binlog_format", "STATEMENT"),
        ("binlog_format", "MIXED"),
        ("binlog_row_image", "MINIMAL"),
        ("binlog_row_image", "NOBLOB"),
    ];
    for (options, set) in [(Options::mysql(), "SET PERSIST"), (Options::mariadb(), "SET GLOBAL")] {
        let server = shared(&options).unwrap();
        let stage = Stage::new(&server, "err_settings");
        for (name, value) in wrong {
            let _global = Global::set(&server, name, value);
            let wanted = if name == "binlog_format" { "ROW" } else { "FULL" };
            let is = format!("{name} is {value}");
            let address = format!("127.0.0.1:{}", server.port());
            stage.fails(2, &[&is, &format!("{set} {name}={wanted}"), &address]);
        }
        // A stored offset is no way around.
        let mut process = stage.start("right");
        wait_for_row(&mut process, 1);
        process.stop().unwrap();
        let _global = Global::set(&server, "binlog_row_image", "MINIMAL");
        stage.fails(2, &["binlog_row_image is MINIMAL"]);
    }
}

#[test]
fn a_server_without_binary_log_is_refused() {
    for options in
        [Options::mysql().arg("--skip-log-bin"), Options::mariadb().arg("--skip-log-bin")]
    {
        let server = Server::start(options).unwrap();
        let stage = Stage::new(&server, "err_log_bin");
        stage.fails(2, &["no binary log", "--log-bin", &format!("127.0.0.1:{}", server.port())]);
    }
}

#[test]
fn a_server_of_the_other_family_is_refused_with_the_class_for_it() {
    let mysql = "io.debezium.connector.mysql.MySqlConnector";
    let mariadb = "io.debezium.connector.mariadb.MariaDbConnector";
    for (options, class, right) in
        [(Options::mysql(), mariadb, mysql), (Options::mariadb(), mysql, mariadb)]
    {
        let server = shared(&options).unwrap();
        let mut stage = Stage::new(&server, "err_family");
        stage.set("connector.class", class);
        stage.fails(2, &[server.version(), &format!("connector.class={right}")]);
    }
}

#[test]
fn of_two_readers_with_one_server_id_the_older_stops_and_the_newer_goes_on() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let mut older = Stage::stored(&server, "err_id");
        older.set("database.server.id", "4711");
        let mut first = older.start("older");
        older.insert(2);
        wait_for_row(&mut first, 2);

        let mut newer = Stage::new(&server, "err_id_newer");
        newer.set("database.server.id", "4711");
        let mut second = newer.start("newer");
        wait_for_row(&mut second, 1);
        // The server tells the older reader when it has something to send, at the latest.
        newer.insert(2);
        wait_for_row(&mut second, 2);
        let status = first.wait_end(super::LIMIT).unwrap();
        let texts = ["another client", "server id 4711", "database.server.id"];
        super::judge(status.code(), &first.log(), 2, &texts);

        newer.insert(3);
        wait_for_row(&mut second, 3);
        second.stop().unwrap();
        assert_eq!(ids(second.records()), [1, 2, 3]);
        assert!(!second.log().contains("connecting again"), "{}", second.log());
    }
}
