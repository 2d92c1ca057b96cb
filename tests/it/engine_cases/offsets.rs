//! Offsets of records, and restarts inside and between transactions.

use holdfast_connector::Error;
use holdfast_history::SourceOffset;
use holdfast_tests::server::{Flavour, Options, Server};

use super::{END, Host, Seen, acknowledge, brief, crash, ids, next, on, run, seen, until};

/// The transaction of the 39 records: four updates of one row, one of 32 rows, a key that changes, one more.
const THIRTY_NINE: &str = "BEGIN; UPDATE t SET label = 'a' WHERE id = 1; UPDATE t SET label = 'b' WHERE id = 1; \
     UPDATE t SET label = 'c' WHERE id = 1; UPDATE t SET label = 'd' WHERE id = 1; \
     UPDATE t SET label = 'many' WHERE id BETWEEN 2 AND 33; UPDATE t SET id = 150 WHERE id = 50; \
     UPDATE t SET label = 'last' WHERE id = 60; COMMIT";

/// The rows that [`THIRTY_NINE`] changes, as an engine that has acknowledged them.
async fn prepared<'s>(server: &'s Server, database: &'static str) -> Host<'s> {
    let host = Host::unstored(server, database);
    let rows: Vec<String> = (1..=33).chain([50, 60, 100]).map(|id| format!("({id}, '')")).collect();
    host.sql(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    let mut engine = host.start().await;
    host.insert(0);
    for batch in until(&mut engine, 0).await {
        batch.acknowledge();
    }
    engine.close().await.unwrap();
    host
}

fn counts(offset: &SourceOffset) -> (u64, u64) {
    (offset.event, offset.row)
}

#[test]
fn every_record_carries_the_offset_of_its_row() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, offsets_of_records);
    }
}

async fn offsets_of_records(server: &Server) {
    let host = prepared(server, "ec_offsets").await;
    let before = host.stored().await;
    host.sql(THIRTY_NINE);
    let rows = host.rest().await;
    assert_eq!(rows.len(), 39);
    // Of a group of two records, the first carries the offset before the group.
    let expected: Vec<(u64, u64)> = [(2, 1), (4, 1), (6, 1), (8, 1)]
        .into_iter()
        .chain((1..=32).map(|row| (10, row)))
        .chain([(10, 32), (12, 1), (14, 1)])
        .collect();
    let found: Vec<(u64, u64)> = rows.iter().map(|row| counts(&row.offset)).collect();
    assert_eq!(found[..38], expected[..38]);
    // The last one's offset may know of the commit already, which is the same place.
    assert!([expected[38], (0, 0)].contains(&found[38]), "{:?}", rows[38].offset);
    let start = rows[0].offset.pos;
    for row in &rows[..38] {
        assert_eq!(row.offset.gtids, before.gtids, "the set before the transaction");
        assert_eq!((&row.offset.file, row.offset.pos), (&before.file, start), "its start");
    }
    let positions: Vec<u64> =
        rows.iter().map(|row| row.value["source"]["pos"].as_u64().unwrap()).collect();
    assert!(positions.is_sorted() && positions[0] > start, "{positions:?}");
    let in_event: Vec<u64> =
        rows.iter().map(|row| row.value["source"]["row"].as_u64().unwrap()).collect();
    assert_eq!(in_event[4..36], (0..32).collect::<Vec<u64>>());
    if server.flavour() == Flavour::MariaDb {
        // The unit begins at the GTID event, which is where the last one ended.
        assert_eq!(start, before.pos);
    }
    // The first record of the next transaction says that this one is done.
    if before.gtids.is_some() {
        let mut engine = host.start().await;
        let last = seen(&until(&mut engine, END).await).pop().unwrap();
        assert_ne!(last.offset.gtids, before.gtids);
    }
}

#[test]
fn identities_are_the_same_in_batches_of_any_size() {
    on(&Options::mysql(), identities);
}

async fn identities(server: &Server) {
    for compressed in ["OFF", "ON"] {
        let mut host = prepared(server, "ec_identities").await;
        host.sql(&format!(
            "SET SESSION binlog_transaction_compression = {compressed}; {THIRTY_NINE}"
        ));
        let before = host.stored().await;
        host.insert(END);
        let mut all: Vec<Vec<Seen>> = Vec::new();
        for size in ["16", "1", "64"] {
            host.set("max.batch.size", size);
            all.push(host.read_rest().await);
        }
        assert_eq!(all[0].len(), 39, "compression {compressed}");
        let essence = |rows: &[Seen]| -> Vec<(String, String, i64)> {
            rows.iter().map(|row| (row.identity.clone(), row.op.clone(), row.id)).collect()
        };
        assert_eq!(essence(&all[0]), essence(&all[1]));
        assert_eq!(essence(&all[0]), essence(&all[2]));
        let mut distinct = essence(&all[0]);
        distinct.sort();
        distinct.dedup_by(|a, b| a.0 == b.0);
        assert_eq!(distinct.len(), 39, "identities are distinct");
        assert_eq!(host.stored().await, before, "nothing was acknowledged");
    }
}

#[test]
fn a_group_of_which_a_part_is_open_comes_again_as_a_whole() {
    on(&Options::mysql(), parts);
}

async fn parts(server: &Server) {
    // Parts that are acknowledged: DELETE and tombstone; the CREATE alone.
    for (number, done) in [[0, 1].as_slice(), &[2]].into_iter().enumerate() {
        let mut host = Host::new(server, "ec_parts").await;
        host.set("tombstones.on.delete", "true");
        let before = host.stored().await;
        let id = i64::try_from(number).unwrap() + 1;
        let mut engine = host.start().await;
        host.sql(&format!("INSERT INTO t VALUES ({id}, ''); UPDATE t SET id = 50 WHERE id = {id}"));
        let batches = until(&mut engine, 50).await;
        let rows = seen(&batches);
        let group = [("d", id), ("tombstone", id), ("c", 50)];
        assert_eq!(brief(&rows), [&[("c", id)], group.as_slice()].concat());
        let changes: Vec<_> = batches.iter().flat_map(|batch| batch.changes()).collect();
        changes[0].acknowledge();
        for part in done {
            changes[1 + part].acknowledge();
        }
        crash(engine).await;
        assert_ne!(host.stored().await, before);
        assert_eq!(brief(&host.rest().await), group);
    }
}

#[test]
fn counters_of_a_transaction_go_on_after_a_restart() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, transaction_metadata);
    }
}

async fn transaction_metadata(server: &Server) {
    let mut host = Host::new(server, "ec_metadata").await;
    host.set("provide.transaction.metadata", "true");
    host.sql(
        "CREATE TABLE u (id INT PRIMARY KEY); BEGIN; INSERT INTO t (id) VALUES (1), (2), (3); \
         INSERT INTO u VALUES (4), (5); INSERT INTO t (id) VALUES (6); COMMIT",
    );
    let mut engine = host.start().await;
    let batches = until(&mut engine, 6).await;
    let first = seen(&batches);
    // BEGIN and four rows are done.
    acknowledge(&batches, 5);
    crash(engine).await;
    let again = host.rest().await;
    let orders = |rows: &[Seen]| -> Vec<(i64, i64, i64)> {
        rows.iter()
            .filter_map(|row| {
                let order = |name: &str| row.value["transaction"][name].as_i64();
                Some((row.id, order("total_order")?, order("data_collection_order")?))
            })
            .collect()
    };
    let all = [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 1), (5, 5, 2), (6, 6, 4)];
    assert_eq!(orders(&first)[..6], all);
    assert_eq!(orders(&again)[..2], all[4..]);
    let end = again.iter().find(|row| row.op == "END").unwrap();
    assert_eq!(end.id, 6, "records of the transaction: {}", end.value);
    assert_eq!(end.value["id"], first[0].value["id"]);
}

#[test]
fn a_compressed_transaction_goes_on_at_its_row() {
    on(&Options::mysql(), compressed);
}

async fn compressed(server: &Server) {
    let host = Host::new(server, "ec_compressed").await;
    let before = host.stored().await;
    host.sql(
        "SET SESSION binlog_transaction_compression = ON; BEGIN; INSERT INTO t (id) VALUES (1), (2), (3); \
         UPDATE t SET label = 'x' WHERE id = 1; UPDATE t SET id = 20 WHERE id = 2; COMMIT",
    );
    let mut engine = host.start().await;
    let batches = until(&mut engine, 20).await;
    acknowledge(&batches, 2);
    crash(engine).await;
    let stored = host.stored().await;
    assert_eq!(counts(&stored), (2, 2), "{stored:?}");
    assert_eq!(stored.gtids, before.gtids);
    let rows = host.rest().await;
    assert_eq!(brief(&rows), [("c", 3), ("u", 1), ("d", 2), ("c", 20)]);
    assert!(rows.iter().all(|row| row.value["source"]["pos"] == stored.pos), "the payload's place");
}

#[test]
fn the_first_transaction_of_a_server_is_resumed_inside() {
    let server = Server::start(Options::mysql()).unwrap();
    run(async {
        let host = Host::unstored(&server, "ec_first");
        server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
        let engine = host.start().await;
        crash(engine).await;
        let stored = host.stored().await;
        assert_eq!(stored.gtids.as_deref().unwrap_or_default(), "", "nothing is executed");
        host.sql("INSERT INTO t (id) VALUES (1), (2)");
        let mut engine = host.start().await;
        let batches = until(&mut engine, 2).await;
        acknowledge(&batches, 1);
        crash(engine).await;
        assert_eq!(counts(&host.stored().await), (2, 1));
        assert_eq!(ids(&host.rest().await), [2]);
    });
}

#[test]
fn an_offset_inside_another_unit_is_refused_and_loses_nothing() {
    on(&Options::mysql().without_gtids(), foreign_unit);
    on(&Options::mysql(), foreign_unit);
}

async fn foreign_unit(server: &Server) {
    let host = Host::new(server, "ec_foreign").await;
    let before = host.stored().await;
    host.sql("BEGIN; INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (2); COMMIT");
    let rows = host.rest().await;
    let with_gtids = before.gtids.is_some();
    // Not the start of a unit: the place of the second rows event's table map.
    let inside = SourceOffset {
        pos: rows[0].value["source"]["pos"].as_u64().unwrap(),
        event: 5,
        row: 1,
        holdfast: None,
        ..before.clone()
    };
    host.store(&inside).await;
    if with_gtids {
        // GTIDs say what is done; nothing of the transactions after them is skipped.
        assert_eq!(ids(&host.read_rest().await), [1, 2]);
    } else {
        let error = host.fails().await;
        assert!(matches!(error, Error::PositionLost { .. } | Error::Binlog(_)), "{error}");
        assert_eq!(host.stored().await, inside);
    }
}

#[test]
fn a_setting_that_changes_the_count_of_events_loses_nothing() {
    for options in [Options::mariadb(), Options::mysql()] {
        on(&options, annotated);
    }
}

async fn annotated(server: &Server) {
    let mysql = server.flavour() == Flavour::MySql;
    for (first, second) in [("true", "false"), ("false", "true")] {
        let mut host = Host::new(server, "ec_annotated").await;
        let rows_query = if mysql { "SET SESSION binlog_rows_query_log_events = ON;" } else { "" };
        host.sql(&format!(
            "{rows_query} BEGIN; INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (2); \
             INSERT INTO t (id) VALUES (3), (4), (5); UPDATE t SET id = 40 WHERE id = 4; COMMIT"
        ));
        host.set("include.query", first);
        let mut engine = host.start().await;
        let batches = until(&mut engine, 40).await;
        acknowledge(&batches, 4);
        crash(engine).await;
        host.set("include.query", second);
        assert_eq!(brief(&host.rest().await), [("c", 5), ("d", 4), ("c", 40)]);
    }
}

#[test]
fn a_begin_that_was_acknowledged_does_not_come_again() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, begun);
    }
}

async fn begun(server: &Server) {
    let mut host = Host::new(server, "ec_begun").await;
    host.set("provide.transaction.metadata", "true");
    host.sql("INSERT INTO t (id) VALUES (1), (2)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 2).await;
    let begin = seen(&batches).iter().position(|row| row.op == "BEGIN").unwrap();
    acknowledge(&batches, begin + 1);
    crash(engine).await;
    assert_eq!(counts(&host.stored().await), (1, 0));
    let rows = host.rest().await;
    assert_eq!(brief(&rows), [("c", 1), ("c", 2), ("END", 2), ("BEGIN", 0)]);
    assert_eq!(rows[1].value["transaction"]["total_order"], 2);
}

#[test]
fn heartbeats_at_a_restart_leave_the_offset_inside_its_transaction() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, heartbeats);
    }
}

async fn heartbeats(server: &Server) {
    let mut host = Host::new(server, "ec_beats").await;
    host.sql("INSERT INTO t (id) VALUES (1), (2), (3)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 3).await;
    acknowledge(&batches, 2);
    crash(engine).await;
    let stored = host.stored().await;
    assert_eq!(counts(&stored), (2, 2));
    host.set("heartbeat.interval.ms", "1");
    // The log comes whether anybody takes the heartbeats or not.
    let mut engine = host.start().await;
    // Heartbeats before the row that is not done, and those after it.
    let mut beats = 0;
    while beats < 20 {
        for change in next(&mut engine).await.changes() {
            let row = Seen::new(&change);
            if row.op == "heartbeat" {
                beats += 1;
                change.acknowledge();
            }
        }
    }
    crash(engine).await;
    let after = host.stored().await;
    assert_eq!((after.pos, counts(&after)), (stored.pos, (2, 2)));
    host.set("heartbeat.interval.ms", "0");
    assert_eq!(ids(&host.rest().await), [3]);
}

#[test]
fn a_rotated_log_moves_the_offset() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, rotated);
    }
}

async fn rotated(server: &Server) {
    let mut host = Host::new(server, "ec_rotated").await;
    let before = host.stored().await;
    host.set("heartbeat.interval.ms", "50");
    let mut engine = host.start().await;
    host.sql("FLUSH BINARY LOGS");
    let moved = loop {
        let batch = next(&mut engine).await;
        batch.acknowledge();
        let offset = batch.changes().last().unwrap().offset();
        if offset.file != before.file {
            break offset;
        }
    };
    assert_eq!(counts(&moved), (0, 0));
    assert_eq!(moved.gtids, before.gtids);
    crash(engine).await;
    assert_eq!(host.stored().await.file, moved.file);
}

#[test]
fn a_statement_that_debezium_had_done_is_not_applied_twice() {
    on(&Options::mariadb(), statement_done);
}

async fn statement_done(server: &Server) {
    for ignore in ["false", "true"] {
        let mut host = Host::new(server, "ec_statement").await;
        host.set("gtid.ignore.on.recovery", ignore);
        let before = host.stored().await;
        let mut engine = host.start().await;
        host.sql("ALTER TABLE t ADD COLUMN more INT; INSERT INTO t VALUES (1, 'a', 7)");
        drop(until(&mut engine, 1).await);
        drop(engine);
        // Debezium's offset behind the statement: its unit is that of the GTID event, two events of it are done.
        let done = SourceOffset { event: 2, holdfast: None, ..before };
        host.store(&done).await;
        let rows = host.rest().await;
        assert_eq!(brief(&rows), [("c", 1)]);
        assert_eq!(rows[0].value["after"]["more"], 7);
    }
}

#[test]
fn rows_of_an_xa_transaction_count_whatever_the_filter_lets_through() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, filtered_xa);
    }
}

async fn filtered_xa(server: &Server) {
    let mut host = Host::new(server, "ec_xa_filter").await;
    host.set("table.include.list", "ec_xa_filter.t");
    host.sql(
        "CREATE TABLE u (id INT PRIMARY KEY); XA START 'filtered'; INSERT INTO u VALUES (71), (72), (73); \
         INSERT INTO t (id) VALUES (1), (2); INSERT INTO u VALUES (74); INSERT INTO t (id) VALUES (3); \
         XA END 'filtered'; XA PREPARE 'filtered'; XA COMMIT 'filtered'",
    );
    let mut engine = host.start().await;
    let batches = until(&mut engine, 3).await;
    assert_eq!(ids(&seen(&batches)), [1, 2, 3]);
    acknowledge(&batches, 1);
    crash(engine).await;
    assert_eq!(host.stored().await.holdfast.map(|ours| ours.rows), Some(4));
    host.set("table.include.list", "ec_xa_filter.t,ec_xa_filter.u");
    assert_eq!(ids(&host.rest().await), [2, 74, 3]);
}
