//! Logs with transactions of several servers, and logs of which a part is purged: on a server of its own.

use std::time::Instant;

use holdfast_connector::{Batch, Error};
use holdfast_history::SourceOffset;
use holdfast_tests::server::{Options, Server};

use super::{END, Host, PATIENCE, brief, ids, run, seen, until};

/// A server that is not there, whose transactions are in the log.
const OTHER: &str = "bbbbbbbb-0000-4000-8000-000000000001";

/// Transaction `number` of the other server inserts the row `id`.
fn insert_of_other(host: &Host<'_>, number: u32, id: i64) {
    host.sql(&format!(
        "SET gtid_next = '{OTHER}:{number}'; INSERT INTO t (id) VALUES ({id}); SET gtid_next = 'AUTOMATIC'"
    ));
}

/// Removes all files but a new one.
fn purge(server: &Server) {
    server.sql("FLUSH BINARY LOGS").unwrap();
    let newest = server.query("SHOW BINARY LOGS").unwrap().last().unwrap()[0].clone();
    let begun = Instant::now();
    // A dump that has ended may hold a file a little longer.
    while server.query("SHOW BINARY LOGS").unwrap()[0][0] != newest {
        assert!(begun.elapsed() < PATIENCE, "the logs before {newest} stay");
        server.sql(&format!("PURGE BINARY LOGS TO '{newest}'")).unwrap();
    }
}

#[test]
fn sources_are_merged_and_left_out_as_configured() {
    let server = Server::start(Options::mysql()).unwrap();
    let uuid = server.value("SELECT @@server_uuid").unwrap();
    run(async {
        let mut host = Host::new(&server, "ec_sources").await;
        let stored = host.stored().await;
        // Of the other server, one transaction is purged and two are there; the offset knows nothing of it.
        insert_of_other(&host, 1, 101);
        purge(&server);
        insert_of_other(&host, 2, 102);
        host.insert(1);
        insert_of_other(&host, 3, 103);
        host.insert(2);
        host.insert(END);
        assert_eq!(ids(&host.read_rest().await), [102, 1, 103, 2], "from the first that is there");

        for (property, source, filter, expected) in [
            ("gtid.source.includes", uuid.as_str(), "true", vec![1, 2, END]),
            ("gtid.source.includes", OTHER, "true", vec![102, 103]),
            ("gtid.source.excludes", OTHER, "true", vec![1, 2, END]),
            ("gtid.source.excludes", uuid.as_str(), "true", vec![102, 103]),
            // Rows come although their source does not count.
            ("gtid.source.includes", OTHER, "false", vec![102, 1, 103, 2, END]),
        ] {
            host.store(&stored).await;
            host.set(property, source);
            host.set("gtid.source.filter.dml.events", filter);
            // What ends the stream must be a row of a source that counts.
            let last = *expected.last().unwrap();
            let mut engine = host.start().await;
            let batches = until(&mut engine, last).await;
            assert_eq!(ids(&seen(&batches)), expected, "{property}={source}, {filter}");
            batches.iter().for_each(Batch::acknowledge);
            drop(engine);
            host.properties.remove(property);
        }

        // The only source that counts has nothing: no rows, and definitions follow.
        host.store(&stored).await;
        host.set("gtid.source.includes", "cccccccc-0000-4000-8000-000000000001");
        host.set("gtid.source.filter.dml.events", "true");
        host.set("heartbeat.interval.ms", "50");
        let mut engine = host.start().await;
        let kept = "SELECT REPLACE(GTID_SUBTRACT(@@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged), '\\n', '')";
        let executed = server.value(kept).unwrap();
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "{executed} was not reached");
            let batch = super::next(&mut engine).await;
            let rows = seen(&[batch]);
            assert!(rows.iter().all(|row| row.op == "heartbeat"), "{:?}", brief(&rows));
            let set = rows[0].offset.gtids.clone().unwrap_or_default();
            let all = format!("SELECT GTID_SUBSET('{executed}', '{set}')");
            if server.value(&all).unwrap() == "1" {
                break;
            }
        }
    });
}

#[test]
fn a_purged_place_is_filled_by_a_snapshot_where_that_is_wanted() {
    let server = Server::start(Options::mysql()).unwrap();
    run(async {
        let mut host = Host::new(&server, "ec_purged").await;
        let stored = host.stored().await;
        host.insert(1);
        purge(&server);
        let error = host.fails().await;
        assert!(matches!(error, Error::PositionLost { .. }), "{error}");
        assert!(error.to_string().contains("no longer on the server"), "{error}");
        assert_eq!(host.stored().await, stored);

        host.set("snapshot.mode", "when_needed");
        filled(&host).await;
        // The other kind: only the dump itself finds out, since the offset has no set.
        host.store(&SourceOffset { gtids: None, holdfast: None, ..stored }).await;
        filled(&host).await;
    });
}

/// A snapshot gives all rows, and what comes then is streamed.
async fn filled(host: &Host<'_>) {
    let mut engine = host.start().await;
    let batches = until(&mut engine, 1).await;
    assert_eq!(brief(&seen(&batches))[..2], [("r", 0), ("r", 1)]);
    batches.iter().for_each(Batch::acknowledge);
    engine.close().await.unwrap();
    host.sql("DELETE FROM t WHERE id = 999");
    let rows = host.rest().await;
    assert!(rows.iter().all(|row| row.op == "d"), "{:?}", brief(&rows));
}
