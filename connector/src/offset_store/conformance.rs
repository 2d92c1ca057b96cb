//! What every offset store has to pass: one function per promise, and [`run`] for all of them.
//!
//! A store's tests implement [`Place`] for the thing that outlives it, a file or a table. A broken promise is a panic
//! that says which one.

use async_trait::async_trait;
use holdfast_history::offset::{HoldfastMembers, SourceOffset};

use super::{OffsetKey, OffsetStore, OffsetStoreError};

/// Where offsets live, empty at first.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the store as a new process would.
    async fn open(&self) -> Box<dyn OffsetStore>;

    /// Puts something that is no offset in the place of the only one.
    async fn damage(&self);
}

/// Makes a new, empty place.
pub type MakePlace<'a> = &'a (dyn Fn() -> Box<dyn Place> + Sync);

/// Checks all promises.
pub async fn run(make: MakePlace<'_>) {
    a_new_store_has_no_offset(make).await;
    what_was_stored_last_is_loaded_after_reopening(make).await;
    keys_do_not_touch_each_other(make).await;
    long_offsets_come_back_whole(make).await;
    a_damaged_offset_is_an_error_that_names_the_store(make).await;
}

/// Nothing stored is `None`, and asking makes no offset.
pub async fn a_new_store_has_no_offset(make: MakePlace<'_>) {
    let place = make();
    for _ in 0..2 {
        let store = place.open().await;
        assert_eq!(load(&*store, &key("engine")).await, None, "a new store has no offset");
    }
}

/// The last offset of a key is the one that is loaded, by the same store and by the next one, equal in every member.
pub async fn what_was_stored_last_is_loaded_after_reopening(make: MakePlace<'_>) {
    let place = make();
    let store = place.open().await;
    for number in [7, 9, 8, 8] {
        save(&*store, &key("engine"), &offset(number)).await;
        assert_eq!(load(&*store, &key("engine")).await, Some(offset(number)), "seen at once");
    }
    drop(store);
    let store = place.open().await;
    assert_eq!(load(&*store, &key("engine")).await, Some(offset(8)), "outlives its store");
    save(&*store, &key("engine"), &offset(11)).await;
    assert_eq!(load(&*place.open().await, &key("engine")).await, Some(offset(11)));
}

/// Keys that differ in a character, in case or in one of their two parts are different, and others are kept.
pub async fn keys_do_not_touch_each_other(make: MakePlace<'_>) {
    let place = make();
    let mut keys: Vec<OffsetKey> =
        ["engine", "Engine", "engine ", "éngine", "en\"gi\\ne"].map(key).to_vec();
    keys.push(OffsetKey { engine: "engine".to_owned(), server: "Inventory".to_owned() });
    for round in 0..2 {
        let store = place.open().await;
        for (number, key) in (round * 10..).zip(&keys) {
            save(&*store, key, &offset(number)).await;
        }
    }
    let store = place.open().await;
    for (number, key) in (10..).zip(&keys) {
        assert_eq!(load(&*store, key).await, Some(offset(number)), "{key:?}");
    }
    assert_eq!(load(&*store, &key("engin")).await, None);
}

/// A GTID set has no bound.
pub async fn long_offsets_come_back_whole(make: MakePlace<'_>) {
    let place = make();
    let servers = (0..3_000).map(|n| format!("3e11fa47-71ca-11e1-9e33-c80aa94{n:05}:1-{n}"));
    let long = SourceOffset { gtids: Some(servers.collect::<Vec<_>>().join(",")), ..offset(1) };
    save(&*place.open().await, &key("engine"), &long).await;
    assert_eq!(load(&*place.open().await, &key("engine")).await, Some(long));
}

/// A damaged offset is never "none".
pub async fn a_damaged_offset_is_an_error_that_names_the_store(make: MakePlace<'_>) {
    let place = make();
    save(&*place.open().await, &key("engine"), &offset(1)).await;
    place.damage().await;
    let store = place.open().await;
    let error = store.load(&key("engine")).await.expect_err("a damaged offset cannot be loaded");
    assert!(matches!(error, OffsetStoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(&store.location()), "'{error}' names the store");
}

/// An offset that differs from that of every other number, with text beyond ASCII.
#[must_use]
pub fn offset(number: u64) -> SourceOffset {
    SourceOffset {
        file: "mysql-bin.000007".to_owned(),
        pos: 5_000_000_000 + number,
        gtids: Some(format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-{}", number + 1)),
        server_id: Some(7),
        ts_sec: Some(1_767_225_600),
        holdfast: Some(HoldfastMembers {
            lineage: Some("sörver 数据".to_owned()),
            rows: number,
            ..HoldfastMembers::default()
        }),
        ..SourceOffset::default()
    }
}

fn key(engine: &str) -> OffsetKey {
    OffsetKey { engine: engine.to_owned(), server: "inventory".to_owned() }
}

async fn load(store: &dyn OffsetStore, key: &OffsetKey) -> Option<SourceOffset> {
    store.load(key).await.expect("an offset can be loaded")
}

async fn save(store: &dyn OffsetStore, key: &OffsetKey, offset: &SourceOffset) {
    store.store(key, offset).await.expect("an offset can be stored");
}
