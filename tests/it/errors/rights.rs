//! Who may log in, and what a login may do.

use holdfast_tests::server::{Options, Server, shared};

use super::{Stage, ids, wait_for_row};

/// Makes the user anew with these rights on `*.*` and more statements, and sets the stage up for it.
fn user(stage: &mut Stage<'_>, name: &str, rights: &str, more: &str) {
    stage.sql(&format!(
        "DROP USER IF EXISTS '{name}'@'%'; CREATE USER '{name}'@'%' IDENTIFIED BY 'secret-word'; \
         GRANT {rights} ON *.* TO '{name}'@'%'; {more}"
    ));
    stage.set("database.user", name).set("database.password", "secret-word");
}

#[test]
fn a_wrong_password_and_an_unknown_user_are_told_at_once() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let mut stage = Stage::new(&server, "err_login");
        user(&mut stage, "reader", "SELECT", "");
        let address = format!("127.0.0.1:{}", server.port());
        let texts = [address.as_str(), "'reader'", "database.user and database.password"];
        stage.set("database.password", "wrong-word");
        let process = stage.fails(5, &texts);
        assert!(!process.log().contains("wrong-word"), "{}", process.log());
        stage.set("database.user", "nobody-here");
        stage.fails(5, &[&address, "'nobody-here'", "database.user and database.password"]);
    }
}

/// Each right is left out in turn, and the message names it.
fn rights(server: &Server, all: &[(&str, &str)]) {
    let mut stage = Stage::new(server, "err_rights");
    for (missing, named) in all.iter().filter(|(right, _)| *right != "SELECT") {
        let granted: Vec<&str> =
            all.iter().map(|(right, _)| *right).filter(|right| right != missing).collect();
        user(&mut stage, "reader", &granted.join(", "), "");
        // What an earlier run left would let this one start behind the snapshot.
        for file in ["offsets.dat", "history.jsonl"] {
            let _ = std::fs::remove_file(stage.file(file));
        }
        stage.fails(2, &["grant", named, "'reader'"]);
    }
    // And with all of them it goes.
    let granted: Vec<&str> = all.iter().map(|(right, _)| *right).collect();
    user(&mut stage, "reader", &granted.join(", "), "");
    let _ = std::fs::remove_file(stage.file("offsets.dat"));
    let _ = std::fs::remove_file(stage.file("history.jsonl"));
    let mut process = stage.start("all-rights");
    wait_for_row(&mut process, 1);
    stage.insert(2);
    wait_for_row(&mut process, 2);
    process.stop().unwrap();
}

#[test]
fn a_missing_right_is_named_by_mysql() {
    let server = shared(&Options::mysql()).unwrap();
    rights(
        &server,
        &[
            ("REPLICATION SLAVE", "REPLICATION SLAVE"),
            ("REPLICATION CLIENT", "REPLICATION CLIENT ON *.*"),
            ("RELOAD", "RELOAD ON *.*"),
            ("SELECT", ""),
        ],
    );
}

#[test]
fn a_missing_right_is_named_by_mariadb() {
    let server = shared(&Options::mariadb()).unwrap();
    rights(
        &server,
        &[
            ("REPLICATION SLAVE", "REPLICATION SLAVE"),
            ("BINLOG MONITOR", "BINLOG MONITOR ON *.*"),
            ("RELOAD", "RELOAD ON *.*"),
            ("SELECT", ""),
        ],
    );
}

#[test]
fn a_captured_table_without_select_is_named() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let mut stage = Stage::new(&server, "err_select");
        let rights = "REPLICATION SLAVE, REPLICATION CLIENT, RELOAD";
        // It may see the table, but not read it.
        let more = "GRANT DELETE ON err_select.t TO 'reader'@'%'; CREATE TABLE err_select.u (id INT PRIMARY KEY); \
                    GRANT SELECT ON err_select.u TO 'reader'@'%'";
        user(&mut stage, "reader", rights, more);
        stage.fails(2, &["err_select.t", "grant SELECT ON", "'reader'"]);
    }
}

#[test]
fn a_table_that_the_user_cannot_see_is_no_silent_loss() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::new(&server, "err_unseen");
    user(&mut stage, "reader", "REPLICATION SLAVE, REPLICATION CLIENT, RELOAD", "");
    let mut process = stage.start("unseen");
    // The rows of the log come whatever the user may read.
    let start = std::time::Instant::now();
    while !process.log().contains("snapshot complete") {
        assert!(start.elapsed() < super::LIMIT, "{}", process.log());
        let _ = process.wait_end(std::time::Duration::ZERO);
    }
    stage.insert(2);
    let status = process.wait_end(super::LIMIT).unwrap();
    let texts = ["no table is captured", "SELECT", "err_unseen.t", "isn't known"];
    super::judge(status.code(), &process.log(), 3, &texts);
}

#[test]
fn a_user_of_caching_sha2_logs_in_over_plain_tcp_on_each_connection_with_a_cold_cache() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::new(&server, "err_cold");
    stage.sql(
        "DROP USER IF EXISTS 'cold'@'%'; CREATE USER 'cold'@'%' IDENTIFIED WITH caching_sha2_password BY 'secret-word'; \
         GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'cold'@'%'",
    );
    stage.set("database.user", "cold").set("database.password", "secret-word");
    stage.set("database.ssl.mode", "disabled");
    // FLUSH PRIVILEGES empties the cache of passwords, so each connection needs the full exchange.
    let real = server.port();
    let mut flush = server.client_command();
    flush.args(["--execute", "FLUSH PRIVILEGES"]);
    let flush = std::sync::Mutex::new(flush);
    let (port, connections) = super::proxy::front(move |_, client| {
        assert!(flush.lock().unwrap().status().unwrap().success());
        super::proxy::forward(client, real);
    });
    stage.set("database.port", port.to_string());
    let mut process = stage.start("cold");
    wait_for_row(&mut process, 1);
    stage.insert(2);
    wait_for_row(&mut process, 2);
    process.stop().unwrap();
    assert_eq!(ids(process.records()), [1, 2]);
    assert!(connections.count() >= 2, "the snapshot and the dump have connections of their own");
}
