//! Connections that end while streaming, and signals: nothing is lost, nothing comes twice.

use holdfast_tests::engine::Process;
use holdfast_tests::server::{Options, shared};

use super::{Stage, ids, wait_for_row};

/// Waits until the log is being read, which a row tells.
fn streaming(stage: &Stage<'_>, id: u32) -> Process {
    let mut process = stage.start("streaming");
    stage.insert(id);
    wait_for_row(&mut process, id.into());
    process
}

/// Servers with and without GTIDs, MySQL and MariaDB.
fn all() -> [Options; 3] {
    [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()]
}

#[test]
fn a_server_that_stops_or_crashes_and_comes_back_is_read_on() {
    for (options, crash) in all().into_iter().zip([false, true, false]) {
        let server = shared(&options).unwrap();
        let stage = Stage::stored(&server, "err_restart");
        let mut process = streaming(&stage, 2);
        if crash {
            server.kill().unwrap();
            server.launch().unwrap();
        } else {
            server.restart().unwrap();
        }
        stage.sql("INSERT INTO err_restart.t VALUES (3), (4)");
        wait_for_row(&mut process, 4);
        process.stop().unwrap();
        assert_eq!(ids(process.records()), [2, 3, 4], "{}", process.log());
        assert!(process.log().contains("connecting again"), "{}", process.log());
        // What was read is stored.
        let mut next = streaming(&stage, 5);
        next.stop().unwrap();
        assert_eq!(ids(next.records()), [5]);
    }
}

#[test]
fn a_killed_dump_is_read_on() {
    for options in all() {
        let server = shared(&options).unwrap();
        let stage = Stage::stored(&server, "err_kill");
        let mut process = streaming(&stage, 2);
        for (id, how) in [(3, "KILL"), (4, "KILL QUERY")] {
            let dumps = server.query(super::DUMPS).unwrap();
            // One of an earlier run may not have noticed yet that its reader is gone, and end at any time.
            assert!(!dumps.is_empty());
            for dump in dumps {
                let _ = server.sql(&format!("{how} {}", dump[0]));
            }
            stage.insert(id);
            wait_for_row(&mut process, id.into());
        }
        process.stop().unwrap();
        assert_eq!(ids(process.records()), [2, 3, 4], "{}", process.log());
        assert!(process.log().contains("connecting again"), "{}", process.log());
    }
}

#[test]
fn a_signal_delivers_and_commits_what_was_read() {
    let server = shared(&Options::mysql()).unwrap();
    for signal in ["TERM", "INT"] {
        let stage = Stage::stored(&server, "err_signal");
        let mut process = streaming(&stage, 2);
        // Writers are at work while the signal comes; a run takes up where the one before it ended.
        let rows: String =
            (3..400).map(|id| format!("INSERT INTO err_signal.t VALUES ({id});")).collect();
        let mut all = Vec::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| server.sql(&rows).unwrap());
            wait_for_row(&mut process, 20);
            process.signal(signal).unwrap();
            let status = process.wait_end(super::LIMIT).unwrap();
            super::judge(status.code(), &process.log(), 0, &["stopping"]);
            all.extend(ids(process.records()));
            writer.join().unwrap();
        });
        // The first run may have got all of them, so a row of its own ends the next one.
        let mut next = streaming(&stage, 400);
        next.stop().unwrap();
        all.extend(ids(next.records()));
        let expected: Vec<i64> = (2..=400).collect();
        assert_eq!(all, expected, "{signal}");
    }
}

#[test]
fn retries_end_where_the_configuration_says() {
    let server = shared(&Options::mysql()).unwrap();
    let real = server.port();
    let mut stage = Stage::stored(&server, "err_retries");
    let open = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let is_open = std::sync::Arc::clone(&open);
    let clients = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&clients);
    let (port, _) = super::proxy::front(move |_, client| {
        if is_open.load(std::sync::atomic::Ordering::SeqCst) {
            kept.lock().unwrap().push(client.try_clone().unwrap());
            super::proxy::forward(client, real);
        }
    });
    stage.set("database.port", port.to_string()).set("errors.max.retries", "3");
    let mut process = streaming(&stage, 2);
    open.store(false, std::sync::atomic::Ordering::SeqCst);
    for client in clients.lock().unwrap().drain(..) {
        let _ = client.shutdown(std::net::Shutdown::Both);
    }
    let status = process.wait_end(super::LIMIT).unwrap();
    let log = process.log();
    super::judge(status.code(), &log, 5, &[&format!("127.0.0.1:{port}"), "giving up"]);
    assert_eq!(log.matches("connecting again").count(), 3, "{log}");
}

#[test]
fn rows_changed_by_a_logged_statement_stop_the_stream_whatever_the_statement_looks_like() {
    let server = shared(&Options::mysql()).unwrap();
    let statements = [
        "INSERT INTO err_words.t VALUES (9)",
        "REPLACE err_words.t VALUES (9)",
        "REPLACE INTO err_words.t VALUES (9)",
        "/* lead */ REPLACE INTO err_words.t VALUES (9)",
    ];
    for statement in statements {
        let stage = Stage::stored(&server, "err_words");
        stage.sql(&format!(
            "SET SESSION binlog_format = 'STATEMENT'; {statement}; SET SESSION binlog_format = 'ROW'"
        ));
        let process =
            stage.fails(3, &["err_words.t", "logged as a STATEMENT", "binlog_format=ROW"]);
        assert_eq!(ids(process.records()), [] as [i64; 0], "{statement}");
    }
}
