//! What an engine says of its snapshot, and definitions that change under it.

use std::collections::BTreeMap;

use holdfast_connector::{Batch, ErrorClass, SnapshotState};
use holdfast_tests::server::{Options, Server};
use serde_json::Value;

use super::{END, Host, next, on, seen, until};

/// More rows than wait anywhere between server and consumer.
const ROWS: i64 = 400;

/// An engine that takes a snapshot row by row.
fn slow<'s>(server: &'s Server, database: &'static str) -> Host<'s> {
    let mut host = Host::unstored(server, database);
    host.set("snapshot.mode", "initial");
    host.set("max.batch.size", "1");
    host.set("max.queue.size", "2");
    let rows: Vec<String> = (1..=ROWS).map(|id| format!("({id})")).collect();
    host.sql(&format!("INSERT INTO t (id) VALUES {}", rows.join(", ")));
    host
}

#[test]
fn a_snapshot_is_aborted_by_a_stop_then_completed_and_skipped_from_then_on() {
    on(&Options::mysql(), states);
}

async fn states(server: &Server) {
    let host = slow(server, "ec_states");
    let mut engine = host.try_start().await;
    let control = engine.control();
    assert_eq!(control.status().snapshot, SnapshotState::Pending);
    next(&mut engine).await.acknowledge();
    assert_eq!(control.status().snapshot, SnapshotState::Running);
    control.stop();
    let mut rows = 1;
    while let Some(batch) = engine.next_batch().await.unwrap() {
        rows += batch.len();
    }
    assert!(rows < usize::try_from(ROWS).unwrap(), "{rows}");
    assert_eq!(control.status().snapshot, SnapshotState::Aborted);
    drop(control);
    engine.close().await.unwrap();

    host.insert(END);
    let mut engine = host.try_start().await;
    let batches = until(&mut engine, END).await;
    assert!(engine.control().streaming().await);
    assert_eq!(engine.control().status().snapshot, SnapshotState::Completed);
    batches.iter().for_each(Batch::acknowledge);
    engine.close().await.unwrap();

    let engine = host.start().await;
    assert_eq!(engine.control().status().snapshot, SnapshotState::Skipped);
}

#[test]
fn a_definition_that_changes_under_the_snapshot_begins_it_again() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, changed);
    }
}

async fn changed(server: &Server) {
    let host = slow(server, "ec_changed");
    let alter = "ALTER TABLE u ADD COLUMN more INT NOT NULL DEFAULT 7, ALGORITHM=COPY";
    host.sql("CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (-1), (-2)");
    let mut engine = host.try_start().await;
    // The rows of t are being read, and those of u are not yet.
    drop(next(&mut engine).await);
    host.sql(alter);
    let mut batches = until(&mut engine, -1).await;
    host.insert(END);
    batches.extend(until(&mut engine, END).await);
    let rows = seen(&batches);
    let latest: BTreeMap<i64, &Value> =
        rows.iter().map(|row| (row.id, &row.value["after"])).collect();
    let expected: Vec<i64> = [-2, -1].into_iter().chain(1..=ROWS).chain([END]).collect();
    assert_eq!(latest.keys().copied().collect::<Vec<_>>(), expected);
    assert_eq!((latest[&-1]["more"].as_i64(), latest[&-2]["more"].as_i64()), (Some(7), Some(7)));
    assert!(engine.control().streaming().await);
    let status = engine.control().status();
    assert_eq!(status.snapshot, SnapshotState::Completed);
    let told = status.last_error.unwrap();
    assert!(told.contains("the definition of ec_changed.u was changed"), "{told}");
    drop(engine);

    // Without retries it is the end, in the same words.
    let mut host = slow(server, "ec_changed");
    host.sql("CREATE TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (-1), (-2)");
    host.set("errors.max.retries", "0");
    let mut engine = host.try_start().await;
    drop(next(&mut engine).await);
    host.sql(alter);
    let error = loop {
        if let Err(error) = engine.next_batch().await {
            break error;
        }
    };
    assert_eq!((error.class(), error.chain()), (ErrorClass::Transient, told));
}
