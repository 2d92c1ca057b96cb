//! What acknowledgements store, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use holdfast_connector::offset_store::{MemoryOffsetStore, OffsetKey, OffsetStoreError};
use holdfast_connector::{Batch, Control, OffsetStore};
use holdfast_history::SourceOffset;
use holdfast_tests::server::{Options, Server};

use super::{END, Host, PATIENCE, acknowledge, brief, crash, ids, next, on, seen, until};

#[test]
fn rows_acknowledged_out_of_order_are_stored_up_to_the_first_gap() {
    on(&Options::mysql(), out_of_order);
}

async fn out_of_order(server: &Server) {
    let host = Host::new(server, "ec_order").await;
    host.sql("INSERT INTO t (id) VALUES (1), (2), (3), (4)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 4).await;
    let changes: Vec<_> = batches.iter().flat_map(Batch::changes).collect();
    changes[3].acknowledge();
    changes[0].acknowledge();
    let duplicates = engine.control().status().acks.duplicate;
    changes[0].acknowledge();
    assert_eq!(engine.control().status().acks.duplicate, duplicates + 1);
    crash(engine).await;
    assert_eq!((host.stored().await.event, host.stored().await.row), (2, 1));
    assert_eq!(ids(&host.rest().await), [2, 3, 4]);
}

#[test]
fn a_key_change_is_one_delivery_in_batches_of_one() {
    on(&Options::mysql(), split_batch);
}

async fn split_batch(server: &Server) {
    let mut host = Host::new(server, "ec_split").await;
    host.set("max.batch.size", "1");
    host.set("tombstones.on.delete", "true");
    host.sql("INSERT INTO t (id) VALUES (1); UPDATE t SET id = 2 WHERE id = 1");
    host.insert(END);
    let mut engine = host.start().await;
    // Each batch waits for the one before it.
    let mut batches = Vec::new();
    for _ in 0..3 {
        let batch = next(&mut engine).await;
        batch.acknowledge();
        batches.push(seen(&[batch]));
    }
    let all: Vec<_> = batches.iter().map(|rows| brief(rows)).collect();
    assert_eq!(all[0], [("c", 1)]);
    assert_eq!(all[1], [("d", 1), ("tombstone", 1), ("c", 2)]);
    assert_eq!(all[2], [("c", END)]);
}

#[test]
fn rows_that_are_filtered_move_the_offset() {
    for options in [Options::mysql(), Options::mysql().without_gtids(), Options::mariadb()] {
        on(&options, filtered_tail);
    }
}

async fn filtered_tail(server: &Server) {
    let mut host = Host::new(server, "ec_filtered").await;
    host.set("table.include.list", "ec_filtered.t");
    let mut engine = host.start().await;
    host.sql("CREATE TABLE other (id INT PRIMARY KEY); INSERT INTO t (id) VALUES (1)");
    let batches = until(&mut engine, 1).await;
    host.sql("INSERT INTO other VALUES (1); INSERT INTO other VALUES (2)");
    let head = head(server);
    let control = engine.control();
    reaches(&control, |control| control.status().position.is_some_and(|at| at.pos >= head)).await;
    control.flush().await.unwrap();
    assert!(host.stored().await.pos < head, "a group before it is open");
    batches.iter().for_each(Batch::acknowledge);
    control.flush().await.unwrap();
    let stored = host.stored().await;
    assert_eq!((stored.pos, stored.event, stored.row), (head, 0, 0));
    if let Some(position) = control.status().position {
        assert_eq!(stored.gtids, position.gtids);
    }
    engine.close().await.unwrap();
}

/// The end of the server's log, bytes in its last file.
fn head(server: &Server) -> u64 {
    server.query("SHOW BINARY LOGS").unwrap().last().unwrap()[1].parse().unwrap()
}

/// Nobody tells when the reader has passed a place.
async fn reaches(control: &Control, there: impl Fn(&Control) -> bool) {
    let begun = std::time::Instant::now();
    while !there(control) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", control.status());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Counts what is stored, and fails as often as it is told to.
#[derive(Debug, Default)]
struct Counting {
    inner: MemoryOffsetStore,
    stores: AtomicU32,
    failures: AtomicU32,
}

#[async_trait]
impl OffsetStore for Counting {
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        self.inner.load(key).await
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let left = self.failures.load(Ordering::SeqCst);
        if left > 0 {
            self.failures.store(left - 1, Ordering::SeqCst);
            let source = std::io::Error::other("no room");
            return Err(OffsetStoreError::Io {
                action: "write",
                location: self.location(),
                source,
            });
        }
        self.stores.fetch_add(1, Ordering::SeqCst);
        self.inner.store(key, offset).await
    }

    fn location(&self) -> String {
        "a store that counts".to_owned()
    }
}

#[test]
fn offsets_are_written_when_the_interval_says_and_again_after_a_failure() {
    on(&Options::mysql(), intervals);
}

async fn intervals(server: &Server) {
    let mut host = Host::new(server, "ec_interval").await;
    let counting = Arc::new(Counting::default());
    counting.inner.store(&host.key(), &host.stored().await).await.unwrap();
    host.offsets = Arc::clone(&counting) as Arc<dyn OffsetStore>;

    // Far apart: nothing is written before the end.
    host.set("offset.flush.interval.ms", "3600000");
    host.sql("INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (2)");
    let mut engine = host.start().await;
    for batch in until(&mut engine, 2).await {
        batch.acknowledge();
    }
    assert_eq!(counting.stores.load(Ordering::SeqCst), 0);
    engine.close().await.unwrap();
    assert_eq!(counting.stores.load(Ordering::SeqCst), 1, "the last word");

    // At once, and a failure is made good with the newest offset.
    host.set("offset.flush.interval.ms", "0");
    let mut engine = host.start().await;
    let control = engine.control();
    counting.failures.store(1, Ordering::SeqCst);
    host.insert(3);
    for batch in until(&mut engine, 3).await {
        batch.acknowledge();
    }
    reaches(&control, |control| control.status().offset_commit_failures == 1).await;
    host.insert(4);
    for batch in until(&mut engine, 4).await {
        batch.acknowledge();
    }
    reaches(&control, |control| {
        control.status().frontier.is_some_and(|at| at.event == 0 && at.row == 0)
            && control.status().offset_commits > 0
    })
    .await;
    drop((engine, control));
    assert_eq!(ids(&host.rest().await), [0_i64; 0]);
}

#[test]
fn a_stop_stores_what_is_acknowledged_and_no_more() {
    on(&Options::mysql(), stop);
}

async fn stop(server: &Server) {
    let mut host = Host::new(server, "ec_stop").await;
    host.set("offset.flush.interval.ms", "3600000");
    host.sql("INSERT INTO t (id) VALUES (1), (2), (3)");
    let mut engine = host.start().await;
    let batches = until(&mut engine, 3).await;
    acknowledge(&batches, 2);
    engine.close_within(std::time::Duration::from_millis(10)).await.unwrap();
    assert_eq!((host.stored().await.event, host.stored().await.row), (2, 2));
    assert_eq!(ids(&host.rest().await), [3]);
}

#[test]
fn a_snapshot_that_was_cut_short_is_taken_again() {
    on(&Options::mysql(), cut_snapshot);
}

async fn cut_snapshot(server: &Server) {
    let mut host = Host::unstored(server, "ec_cut");
    host.set("snapshot.mode", "initial");
    host.set("max.batch.size", "2");
    host.sql("INSERT INTO t (id) VALUES (1), (2), (3), (4), (5)");
    let mut engine = host.try_start().await;
    next(&mut engine).await.acknowledge();
    crash(engine).await;
    host.sql("INSERT INTO t (id) VALUES (6)");
    host.insert(END);
    let mut engine = host.start().await;
    let rows = seen(&until(&mut engine, END).await);
    let mut all = ids(&rows);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all, [1, 2, 3, 4, 5, 6, END], "{:?}", brief(&rows));
}
