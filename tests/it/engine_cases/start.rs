//! Where streaming starts, and what the log may hold.

use holdfast_connector::{Batch, Error};
use holdfast_history::SourceOffset;
use holdfast_tests::server::{Flavour, Options, Server};

use super::wire::Wire;
use super::{END, Host, acknowledge, brief, crash, ids, on, seen, until};

#[test]
fn an_offset_ahead_of_the_server_is_refused_and_kept() {
    on(&Options::mysql(), ahead);
}

async fn ahead(server: &Server) {
    let host = Host::new(server, "ec_ahead").await;
    let uuid = server.value("SELECT @@server_uuid").unwrap();
    let ahead = SourceOffset { gtids: Some(format!("{uuid}:1-99999999")), ..host.stored().await };
    host.store(&ahead).await;
    let error = host.fails().await;
    assert!(matches!(error, Error::PositionLost { .. }), "{error}");
    assert!(error.to_string().contains("has not executed all transactions"), "{error}");
    assert_eq!(host.stored().await, ahead);
}

#[test]
fn a_start_by_position_on_a_server_with_gtids() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, by_position);
    }
}

async fn by_position(server: &Server) {
    let mut host = Host::new(server, "ec_position").await;
    let stored = host.stored().await;
    // An offset from before the server had GTIDs.
    host.store(&SourceOffset { gtids: None, holdfast: None, ..stored.clone() }).await;
    host.sql("INSERT INTO t (id) VALUES (1), (2)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 2).await;
    assert_eq!(ids(&seen(&batches)), [1, 2]);
    acknowledge(&batches, 1);
    crash(engine).await;
    let mut engine = host.start().await;
    let batches = until(&mut engine, 2).await;
    assert_eq!(ids(&seen(&batches)), [2]);
    batches.iter().for_each(Batch::acknowledge);
    // A new file says what was executed before it, and from then on the set is known.
    host.sql("FLUSH BINARY LOGS; INSERT INTO t (id) VALUES (3), (4)");
    let batches = until(&mut engine, 4).await;
    batches.iter().for_each(Batch::acknowledge);
    host.insert(5);
    let rows = seen(&until(&mut engine, 5).await);
    let known = rows[0].offset.gtids.clone().expect("GTIDs are known again");
    if server.flavour() == Flavour::MySql {
        let contained = format!("SELECT GTID_SUBSET('{known}', @@GLOBAL.gtid_executed)");
        assert_eq!(server.value(&contained).unwrap(), "1", "{known}");
        let left = format!("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{known}')");
        assert!(!server.value(&left).unwrap().contains('-'), "one transaction is left: {known}");
    } else {
        let newest = server.value("SELECT @@gtid_binlog_pos").unwrap();
        let sequence = |gtid: &str| gtid.rsplit('-').next().unwrap().parse::<u64>().unwrap();
        // The last record of a batch may know of the commit already.
        let left = sequence(&newest) - sequence(&known);
        assert!(left <= 1, "{known} and {newest}");
    }
    crash(engine).await;
    assert_eq!(ids(&host.rest().await), [5]);

    // `gtid.ignore.on.recovery`: what the set says does not matter.
    host.set("gtid.ignore.on.recovery", "true");
    let wrong = if server.flavour() == Flavour::MySql {
        "11111111-2222-3333-4444-555555555555:1-5"
    } else {
        "0-77-99999999"
    };
    host.store(&SourceOffset { gtids: Some(wrong.to_owned()), ..stored }).await;
    assert_eq!(ids(&host.read_rest().await), [1, 2, 3, 4, 5]);
}

#[test]
fn tags_stay_in_the_set() {
    on(&Options::mysql(), tags);
}

async fn tags(server: &Server) {
    let host = Host::new(server, "ec_tags").await;
    host.sql(
        "SET gtid_next = 'AUTOMATIC:blue'; INSERT INTO t (id) VALUES (1), (2); INSERT INTO t (id) VALUES (3), (4); \
         SET gtid_next = 'AUTOMATIC'",
    );
    let mut engine = host.start().await;
    let batches = until(&mut engine, 4).await;
    acknowledge(&batches, 3);
    crash(engine).await;
    let stored = host.stored().await;
    assert!(stored.gtids.as_deref().unwrap().contains(":blue:"), "{stored:?}");
    assert_eq!(ids(&host.rest().await), [4]);
}

#[test]
fn a_log_without_checksums_is_read() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, checksums);
    }
}

async fn checksums(server: &Server) {
    let host = Host::new(server, "ec_checksum").await;
    host.insert(1);
    let mut engine = host.start().await;
    let before = until(&mut engine, 1).await;
    before.iter().for_each(Batch::acknowledge);
    // The change begins a new file, on the connection that is open.
    host.sql("SET GLOBAL binlog_checksum = NONE; INSERT INTO t (id) VALUES (2), (3)");
    let without = until(&mut engine, 3).await;
    acknowledge(&without, 1);
    crash(engine).await;
    let mut engine = host.start().await;
    let again = seen(&until(&mut engine, 3).await);
    server.sql("SET GLOBAL binlog_checksum = CRC32").unwrap();
    host.insert(4);
    let last = seen(&until(&mut engine, 4).await);
    assert_eq!((ids(&again).as_slice(), ids(&last).as_slice()), ([3].as_slice(), [4].as_slice()));
}

#[test]
fn a_connection_that_falls_silent_is_made_again() {
    for options in [Options::mysql(), Options::mysql().without_gtids()] {
        on(&options, silence);
    }
}

async fn silence(server: &Server) {
    let mut host = Host::new(server, "ec_silence").await;
    let wire = Wire::to(server);
    host.set("database.port", wire.port.to_string());
    host.set("connect.keep.alive.interval.ms", "1000");
    let mut engine = host.start().await;
    host.sql("INSERT INTO t (id) VALUES (1), (2)");
    let batches = until(&mut engine, 2).await;
    acknowledge(&batches, 1);
    wire.fall_silent();
    host.sql("INSERT INTO t (id) VALUES (3), (4)");
    // The server's heartbeats do not come either.
    let rows = seen(&until(&mut engine, 4).await);
    assert_eq!(ids(&rows), [3, 4], "what was given out does not come again");
    assert!(engine.control().status().reconnects >= 1);
    crash(engine).await;
    host.set("database.port", server.port().to_string());
    assert_eq!(ids(&host.rest().await), [2, 3, 4], "what was not acknowledged does");
}

#[test]
fn a_transaction_comes_whole_whatever_the_buffer_is_set_to() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, buffered);
    }
}

async fn buffered(server: &Server) {
    let mut host = Host::new(server, "ec_buffered").await;
    host.set("binlog.buffer.size", "4");
    let inserts: String = (1..=12).map(|id| format!("INSERT INTO t (id) VALUES ({id});")).collect();
    host.sql(&format!(
        "CREATE TABLE plain (id INT PRIMARY KEY) ENGINE=MyISAM; BEGIN; {inserts} COMMIT"
    ));
    let mut engine = host.start().await;
    let batches = until(&mut engine, 12).await;
    let rows = seen(&batches);
    assert_eq!(ids(&rows), (1..=12).collect::<Vec<_>>());
    assert!(rows[..11].iter().all(|row| row.offset.pos == rows[0].offset.pos), "its start");
    acknowledge(&batches, 7);
    crash(engine).await;
    // Rolled back, with rows of an engine that has no transactions, which stay.
    // MySQL does not have that with GTIDs.
    let mixed = server.flavour() == Flavour::MariaDb || host.stored().await.gtids.is_none();
    let plain = if mixed { "INSERT INTO plain VALUES (21);" } else { "" };
    host.sql(&format!(
        "BEGIN; INSERT INTO t (id) VALUES (20); {plain} ROLLBACK; BEGIN; INSERT INTO t (id) VALUES (22); ROLLBACK"
    ));
    let rows = host.rest().await;
    let kept = server.query("SELECT id FROM ec_buffered.t WHERE id > 12 AND id < 999").unwrap();
    assert_eq!(kept.len(), 0, "what is rolled back is not there");
    let expected: Vec<_> = (8..=12).chain(mixed.then_some(21)).map(|id| ("c", id)).collect();
    assert_eq!(brief(&rows), expected);
}

#[test]
fn rows_of_an_unknown_table_are_an_error_or_left_out() {
    on(&Options::mysql(), unknown_table);
}

async fn unknown_table(server: &Server) {
    let mut host = Host::new(server, "ec_unknown").await;
    // A table that the history never heard of.
    host.sql("SET sql_log_bin = 0; CREATE TABLE u (id INT PRIMARY KEY); SET sql_log_bin = 1; INSERT INTO u VALUES (1)");
    let before = host.stored().await;
    let error = host.fails().await;
    assert!(matches!(error, Error::UnknownTable { .. }), "{error}");
    assert!(
        error.to_string().starts_with(
            "Encountered change event for table ec_unknown.u whose schema isn't known to this connector"
        ),
        "{error}"
    );
    assert_eq!(host.stored().await, before);
    host.insert(END);
    for mode in ["warn", "skip"] {
        host.set("inconsistent.schema.handling.mode", mode);
        assert_eq!(ids(&host.read_rest().await), [0_i64; 0], "{mode}");
    }
}
