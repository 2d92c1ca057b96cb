//! Another log behind the same address: a replica that took over, a server that was reset. Two servers each, with GTIDs.

use std::collections::BTreeSet;
use std::time::Instant;

use holdfast_connector::refresh::RefreshOptions;
use holdfast_connector::{Batch, EngineState, Error};
use holdfast_history::SourceOffset;
use holdfast_history::offset::HoldfastMembers;
use holdfast_tests::server::{Flavour, Options, Server};

use super::wire::Wire;
use super::{END, Host, PATIENCE, Seen, acknowledge, brief, crash, ids, on, run, seen, until};

/// A server, and a replica of it whose log has files of another name.
fn topology(options: &Options) -> (Server, Server) {
    let source = Server::start(options.clone()).unwrap();
    let replica =
        options.clone().arg("--log-bin=other-bin").arg(if options.flavour() == Flavour::MySql {
            "--log-replica-updates=ON"
        } else {
            "--log-slave-updates=ON"
        });
    let replica = Server::start(replica).unwrap();
    let (host, port) = (source.host(), source.port());
    let (user, password) = (source.user(), source.password());
    let statements = match options.flavour() {
        Flavour::MySql => {
            source.sql("RESET BINARY LOGS AND GTIDS").unwrap();
            format!(
                "RESET BINARY LOGS AND GTIDS; CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, \
                 SOURCE_USER='{user}', SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; \
                 START REPLICA"
            )
        }
        Flavour::MariaDb => {
            source.sql("RESET MASTER").unwrap();
            format!(
                "RESET MASTER; SET GLOBAL gtid_slave_pos = ''; CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, \
                 MASTER_USER='{user}', MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos; START SLAVE"
            )
        }
    };
    replica.sql(&statements).unwrap();
    (source, replica)
}

/// Waits until the replica has a row.
#[expect(clippy::disallowed_methods, reason = "a replica tells nobody when it has a row")]
fn replicated(replica: &Server, database: &str, id: i64) {
    let begun = Instant::now();
    let sql = format!("SELECT COUNT(*) FROM {database}.t WHERE id = {id}");
    while !replica.value(&sql).is_ok_and(|count| count == "1") {
        let status = match replica.flavour() {
            Flavour::MySql => "SHOW REPLICA STATUS",
            Flavour::MariaDb => "SHOW SLAVE STATUS",
        };
        assert!(begun.elapsed() < PATIENCE, "row {id}: {:?}", replica.query(status));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The replica takes over.
fn promote(replica: &Server) {
    let stop = match replica.flavour() {
        Flavour::MySql => "STOP REPLICA",
        Flavour::MariaDb => "STOP SLAVE",
    };
    replica.sql(stop).unwrap();
}

fn members(offset: &SourceOffset) -> HoldfastMembers {
    offset.holdfast.clone().unwrap()
}

#[test]
fn a_stored_offset_goes_on_at_a_replica_that_took_over() {
    for options in [Options::mysql(), Options::mariadb()] {
        let (source, replica) = topology(&options);
        run(restarted(&source, &replica));
    }
}

async fn restarted(source: &Server, replica: &Server) {
    const DATABASE: &str = "ec_restarted";
    let mut host = Host::new(source, DATABASE).await;
    // Inside a transaction, with a statement in the history that is not acknowledged.
    host.sql("BEGIN; INSERT INTO t (id) VALUES (1), (2); INSERT INTO t (id) VALUES (3); UPDATE t SET id = 30 WHERE id = 3; COMMIT");
    host.sql("ALTER TABLE t ADD COLUMN more INT; INSERT INTO t (id, more) VALUES (4, 44)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 4).await;
    let first = seen(&batches);
    assert_eq!(ids(&first), [1, 2, 3, 3, 30, 4]);
    acknowledge(&batches, 2);
    crash(engine).await;
    let stored = host.stored().await;
    let before = members(&stored);
    assert_eq!((before.epoch, before.rows), (1, 2));
    replicated(replica, DATABASE, 4);
    promote(replica);

    host.server = replica;
    host.set("database.port", replica.port().to_string());
    host.sql(
        "ALTER TABLE t ADD COLUMN last INT; INSERT INTO t (id, more, last) VALUES (5, 55, 555)",
    );
    let mut engine = host.start().await;
    let batches = until(&mut engine, 5).await;
    let second = seen(&batches);
    assert_eq!(
        brief(&second),
        [("c", 3), ("d", 3), ("c", 30), ("c", 4), ("c", 5)],
        "what is done does not come, and nothing is missing"
    );
    assert_eq!(second[3].value["after"]["more"], 44);
    assert_eq!(second[4].value["after"]["last"], 555);
    let distinct: BTreeSet<&String> =
        first.iter().chain(&second).map(|row| &row.identity).collect();
    assert_eq!(distinct.len(), first.len() + second.len(), "each log names its own records");

    // The old place stays until something of the new log is done.
    assert_eq!(host.stored().await, stored);
    acknowledge(&batches, 1);
    engine.control().flush().await.unwrap();
    let inside = host.stored().await;
    let ours = members(&inside);
    assert!(inside.file.starts_with("other-bin."), "{inside:?}");
    assert_eq!((ours.epoch, ours.rows, &ours.unit), (2, 3, &before.unit));
    assert_ne!(ours.lineage, before.lineage);
    let closed = format!("1:{}:{}", stored.file, stored.pos);
    assert_eq!(ours.closed.as_deref(), Some(closed.as_str()));
    drop(engine);
    let third = host.rest().await;
    let named = |rows: &[Seen]| -> Vec<(String, String)> {
        rows.iter().map(|row| (row.op.clone(), row.identity.clone())).collect()
    };
    assert_eq!(named(&third), named(&second[1..]), "the same log: the same records and names");

    // Nothing is a failover that is none.
    let mut engine = host.start().await;
    for batch in until(&mut engine, END).await {
        batch.acknowledge();
    }
    engine.close().await.unwrap();
    assert_eq!(members(&host.stored().await).epoch, 2);
}

#[test]
fn an_engine_at_work_goes_on_at_a_replica_that_took_over() {
    for options in [Options::mysql(), Options::mariadb()] {
        let (source, replica) = topology(&options);
        run(at_work(&source, &replica));
    }
}

async fn at_work(source: &Server, replica: &Server) {
    const DATABASE: &str = "ec_at_work";
    let mut host = Host::new(source, DATABASE).await;
    let wire = Wire::to(source);
    host.set("database.port", wire.port.to_string());
    let mut engine = host.start().await;
    host.sql("INSERT INTO t (id) VALUES (1), (2), (3)");
    let batches = until(&mut engine, 3).await;
    acknowledge(&batches, 2);
    replicated(replica, DATABASE, 3);
    promote(replica);
    host.server = replica;
    wire.lead_to(replica);
    host.sql("ALTER TABLE t ADD COLUMN more INT; INSERT INTO t (id, more) VALUES (4, 44)");
    let after = until(&mut engine, 4).await;
    let rows = seen(&after);
    assert_eq!(ids(&rows), [4], "what was given out does not come again");
    assert_eq!(rows[0].value["after"]["more"], 44);
    let control = engine.control();
    assert!(control.status().reconnects >= 1);
    // The frontier is in the old log while a row of it is open.
    control.flush().await.unwrap();
    assert_eq!(members(&host.stored().await).epoch, 1);
    batches.iter().chain(&after).for_each(Batch::acknowledge);
    drop(control);
    crash(engine).await;
    let stored = host.stored().await;
    assert!(stored.file.starts_with("other-bin."), "{stored:?}");
    assert_eq!(members(&stored).epoch, 2);
    host.set("database.port", replica.port().to_string());
    assert_eq!(host.rest().await, [] as [Seen; 0]);
}

#[test]
fn definitions_that_are_ahead_in_one_log_are_not_taken_into_another() {
    let (source, replica) = topology(&Options::mysql());
    run(ahead(&source, &replica));
}

async fn ahead(source: &Server, replica: &Server) {
    const DATABASE: &str = "ec_ahead_elsewhere";
    let mut host = Host::new(source, DATABASE).await;
    let wire = Wire::to(source);
    host.set("database.port", wire.port.to_string());
    let mut engine = host.start().await;
    let control = engine.control();
    control.pause();
    assert!(control.paused().await);
    host.sql("ALTER TABLE t ADD COLUMN more INT");
    host.insert(1);
    let before = host.stored().await;
    let report = control.refresh_schema_history(&[], &RefreshOptions::default()).await.unwrap();
    assert!(report.written, "{}", report.to_text());
    replicated(replica, DATABASE, 1);
    promote(replica);
    wire.lead_to(replica);
    control.resume();
    let error = loop {
        match engine.next_batch().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the engine ended without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::PositionLost { .. }), "{}", error.chain());
    let read_at = report.read_at.to_string();
    for text in [read_at.as_str(), "--new-lineage", "holdfast refresh"] {
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
    drop((engine, control));
    assert_eq!(host.stored().await, before);
    // Where the log has come to the place of the definitions there is nothing in the way.
    host.set("database.port", source.port().to_string());
    let rows = host.rest().await;
    assert_eq!(ids(&rows), [1]);
    assert_eq!(members(&rows[0].offset).epoch, 1);
}

#[test]
fn a_prepared_transaction_of_mariadb_keeps_an_offset_from_another_server() {
    let (source, replica) = topology(&Options::mariadb());
    run(prepared(&source, &replica));
}

async fn prepared(source: &Server, replica: &Server) {
    const DATABASE: &str = "ec_prepared";
    let mut host = Host::new(source, DATABASE).await;
    host.sql("XA START 'held'; INSERT INTO t (id) VALUES (7); XA END 'held'; XA PREPARE 'held'");
    host.insert(1);
    let mut engine = host.start().await;
    until(&mut engine, 1).await.iter().for_each(Batch::acknowledge);
    engine.close().await.unwrap();
    let stored = host.stored().await;
    assert!(members(&stored).held.is_some(), "{stored:?}");
    replicated(replica, DATABASE, 1);
    promote(replica);
    host.set("database.port", replica.port().to_string());
    let error = host.fails().await;
    assert!(matches!(error, Error::PositionLost { .. }), "{}", error.chain());
    assert!(error.to_string().contains("prepared and undecided"), "{error}");
    assert_eq!(host.stored().await, stored);
    // The server that prepared it goes on.
    host.set("database.port", source.port().to_string());
    host.sql("XA COMMIT 'held'");
    assert_eq!(ids(&host.rest().await), [7]);
}

#[test]
fn another_server_without_gtids_is_an_error_that_says_what_to_do() {
    for options in [Options::mysql().without_gtids(), Options::mysql(), Options::mariadb()] {
        on(&options, elsewhere);
    }
}

async fn elsewhere(server: &Server) {
    let mut host = Host::new(server, "ec_elsewhere").await;
    let stored = host.stored().await;
    let known = "11111111-2222-3333-4444-555555555555".to_owned();
    let ours = HoldfastMembers { lineage: Some(known.clone()), ..members(&stored) };
    let foreign = SourceOffset { gtids: None, holdfast: Some(ours), ..stored };
    host.store(&foreign).await;
    let error = host.fails().await;
    assert!(matches!(error, Error::PositionLost { .. }), "{}", error.chain());
    for text in [known.as_str(), "another server", "--new-lineage", "holdfast.source.id"] {
        assert!(error.to_string().contains(text), "{text}: {error}");
    }
    assert_eq!(host.stored().await, foreign);
    // The operator says that it is the same log.
    host.set("holdfast.source.id", known);
    assert_eq!(host.rest().await, [] as [Seen; 0]);
}

#[test]
fn a_log_that_was_reset_is_another_one_also_where_gtids_go_on() {
    let server = Server::start(Options::mysql()).unwrap();
    run(async {
        for files in [1, 2] {
            let host = Host::new(&server, "ec_reset").await;
            for _ in 1..files {
                server.sql("FLUSH BINARY LOGS").unwrap();
            }
            let mut engine = host.start().await;
            host.sql("INSERT INTO t (id) VALUES (1), (2)");
            let batches = until(&mut engine, 2).await;
            let first = seen(&batches);
            batches.iter().for_each(Batch::acknowledge);
            host.insert(3);
            for batch in until(&mut engine, 3).await {
                batch.acknowledge();
            }
            engine.close().await.unwrap();
            let stored = host.stored().await;
            let executed =
                server.value("SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')").unwrap();
            // The second in which a file was made tells it from another of its name.
            let made = members(&stored).birth.unwrap();
            let begun = Instant::now();
            while server.value("SELECT UNIX_TIMESTAMP()").unwrap() == made.to_string() {
                assert!(begun.elapsed() < PATIENCE);
            }
            server
                .sql(&format!("RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{executed}'"))
                .unwrap();
            host.sql("INSERT INTO t (id) VALUES (11), (12)");
            let second = host.rest().await;
            assert_eq!(ids(&second), [11, 12]);
            let distinct: BTreeSet<&String> =
                first.iter().chain(&second).map(|row| &row.identity).collect();
            assert_eq!(distinct.len(), first.len() + second.len());
            assert!(second.iter().all(|row| members(&row.offset).epoch == 2), "{second:?}");
        }
    });
}

#[test]
fn a_server_that_is_away_when_reading_begins_again_is_waited_for() {
    let server = Server::start(Options::mysql()).unwrap();
    run(async {
        let mut host = Host::new(&server, "ec_away").await;
        let wire = Wire::to(&server);
        host.set("database.port", wire.port.to_string());
        host.set("retriable.restart.connector.wait.ms", "50");
        let mut engine = host.start().await;
        host.insert(1);
        let first = engine.next_batch().await.unwrap().unwrap();
        let control = engine.control();
        control.pause();
        assert!(control.paused().await);
        wire.lead_nowhere();
        // Begins anew at the frontier, which is before the row.
        control.redeliver();
        control.resume();
        let reconnecting = async {
            while control.status().state != EngineState::Reconnecting {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reconnecting).await.unwrap();
        wire.lead_to(&server);
        let again = engine.next_batch().await.unwrap().unwrap();
        assert_eq!(ids(&seen(&[again])), ids(&seen(&[first])));
    });
}
