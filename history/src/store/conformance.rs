//! What every history store has to pass: one function per promise, and [`run`] for all of them.
//!
//! A store's tests implement [`Place`] for the thing that outlives it, a file or a bucket. A broken promise is a panic
//! that says which one.

use std::sync::Arc;

use async_trait::async_trait;

use super::{HistoryStore, Place as End};
use crate::codec::RecordLine;
use crate::error::{Error, ErrorClass};
use crate::offset::SourceOffset;
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{Column, DefaultValue, JdbcType, Table, TableId};

/// Where one history lives, empty at first.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the history for writing, as a new process would.
    async fn open(&self) -> Result<Box<dyn HistoryStore>, Error>;

    /// Leaves what a crash inside an append of `records` leaves when `kept` bytes of it reached the storage, and returns
    /// how many bytes the whole append has. `None` when the storage has no such state: it takes an append as a whole.
    async fn crash_in_append(&self, records: &[HistoryRecord], kept: usize) -> Option<usize>;

    /// Replaces line `number`, from 1 over all records, by something that is none.
    async fn damage(&self, number: u64);
}

/// Makes a new, empty place.
pub type MakePlace<'a> = &'a (dyn Fn() -> Box<dyn Place> + Sync);

/// Checks all promises.
pub async fn run(make: MakePlace<'_>) {
    a_new_history_is_empty(make).await;
    an_append_is_there_after_reopening(make).await;
    order_is_that_of_the_appends(make).await;
    a_crash_in_an_append_leaves_all_of_it_or_nothing(make).await;
    a_damaged_record_is_an_error_that_names_its_place(make).await;
    a_damaged_history_is_set_aside(make).await;
    a_second_writer_is_refused(make).await;
    a_checkpoint_is_beside_the_records(make).await;
}

/// No record is no history, and appending nothing makes none.
pub async fn a_new_history_is_empty(make: MakePlace<'_>) {
    let place = make();
    let store = open(&*place).await;
    store.append(&[]).await.expect("appending nothing works");
    assert!(
        !store.exists().await.expect("a new history can be asked"),
        "a new history does not exist"
    );
    assert_eq!(load(&*store).await, [], "a new history has no records");
}

/// What was appended is read by the same store and by the next one, equal in every member.
pub async fn an_append_is_there_after_reopening(make: MakePlace<'_>) {
    let place = make();
    let store = open(&*place).await;
    store.append(&[record(1)]).await.expect("one record is appended");
    assert_eq!(load(&*store).await, [record(1)], "an append is seen at once");
    store.append(&[record(2), record(3)]).await.expect("two records are appended");
    assert_eq!(
        load(&*store).await,
        [record(1), record(2), record(3)],
        "a second append is seen at once"
    );
    drop(store);
    let store = open(&*place).await;
    assert!(store.exists().await.expect("a history can be asked"), "a history with records exists");
    assert_eq!(
        load(&*store).await,
        [record(1), record(2), record(3)],
        "appends outlive their store"
    );
}

/// Records come back in the order of the appends, over many and over reopening; equal records stay two.
pub async fn order_is_that_of_the_appends(make: MakePlace<'_>) {
    let place = make();
    let mut expected = Vec::new();
    for number in (0..24).chain([5, 5, 1]) {
        let store = open(&*place).await;
        store.append(&[record(number)]).await.expect("a record is appended");
        expected.push(record(number));
    }
    assert_eq!(load(&*open(&*place).await).await, expected, "the order is that of the appends");
}

/// Wherever a crash cuts an append, the next opening finds the old records and all of the new ones or none, and goes on.
pub async fn a_crash_in_an_append_leaves_all_of_it_or_nothing(make: MakePlace<'_>) {
    let groups = [vec![record(10)], vec![record(10), record(11), record(12)]];
    for group in groups {
        let mut kept = 0;
        loop {
            let place = make();
            let store = open(&*place).await;
            store.append(&[record(1), record(2)]).await.expect("the old records are appended");
            drop(store);
            let Some(whole) = place.crash_in_append(&group, kept).await else { return };
            let store = open(&*place).await;
            let mut found = load(&*store).await;
            let old = vec![record(1), record(2)];
            let all: Vec<HistoryRecord> = old.iter().chain(&group).cloned().collect();
            if kept >= whole {
                assert_eq!(found, all, "an append whose bytes are all there is there");
            }
            assert!(
                found == old || found == all,
                "{kept} of {whole} bytes: {} records are there",
                found.len()
            );
            store.append(&[record(20)]).await.expect("a store goes on after a crash");
            found.push(record(20));
            assert_eq!(load(&*store).await, found, "a store goes on after a crash");
            drop(store);
            assert_eq!(
                load(&*open(&*place).await).await,
                found,
                "a repaired history stays repaired"
            );
            if kept >= whole {
                break;
            }
            // Every byte near the ends of the append, and some in between.
            kept =
                if kept < 4 || kept + 40 > whole { kept + 1 } else { (kept + 29).min(whole - 39) };
        }
    }
}

/// A record that cannot be read is an error of class data that names store and line; it is not an empty history.
pub async fn a_damaged_record_is_an_error_that_names_its_place(make: MakePlace<'_>) {
    let place = make();
    let store = open(&*place).await;
    let location = store.location();
    for number in 1..=4 {
        store.append(&[record(number)]).await.expect("a record is appended");
    }
    drop(store);
    place.damage(2).await;
    let error = match place.open().await {
        Err(error) => error,
        Ok(store) => store.load().await.expect_err("a damaged history cannot be loaded"),
    };
    assert_eq!(error.class(), ErrorClass::Data, "{error}");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&location) && text.contains("line "),
        "'{text}' names the store '{location}' and the line"
    );
}

/// A history that can't be read is put under another name, and the next append begins anew; or the store says that it
/// can't do that, and leaves everything as it is.
pub async fn a_damaged_history_is_set_aside(make: MakePlace<'_>) {
    let place = make();
    let mut names = Vec::new();
    for (appended, damaged) in [(1..=4, 3), (5..=6, 1)] {
        let store = open(&*place).await;
        for number in appended {
            store.append(&[record(number)]).await.expect("a record is appended");
        }
        drop(store);
        place.damage(damaged).await;
        let Ok(store) = place.open().await else { return };
        match store.set_aside().await {
            Ok(aside) => names.push(aside),
            Err(error) => {
                assert!(matches!(error, Error::NotSetAside { .. }), "{error}");
                store.load().await.expect_err("it is as damaged as before");
                return;
            }
        }
        assert_eq!(load(&*store).await, [], "what was set aside is not read");
        assert!(!store.exists().await.expect("the store can be asked"));
        store.append(&[record(9)]).await.expect("the next append begins anew");
        assert_eq!(load(&*store).await, [record(9)]);
        drop(store);
        assert_eq!(load(&*open(&*place).await).await, [record(9)], "also when opened again");
    }
    assert_ne!(names.first(), names.last(), "each time under another name");
}

/// While one writer has the history, another gets it neither at opening nor, at the latest, at its first append.
pub async fn a_second_writer_is_refused(make: MakePlace<'_>) {
    let place = make();
    let first = open(&*place).await;
    first.append(&[record(1)]).await.expect("the first writer appends");
    let refused = match place.open().await {
        Err(error) => error,
        Ok(second) => {
            first.append(&[record(2)]).await.expect("the first writer goes on");
            second.append(&[record(3)]).await.expect_err("one of two writers is refused")
        }
    };
    assert_eq!(refused.class(), ErrorClass::Fenced, "{refused}");
    assert!(refused.to_string().contains(&first.location()), "'{refused}' names the store");
    let kept = load(&*first).await;
    drop(first);
    let store = open(&*place).await;
    assert_eq!(load(&*store).await, kept, "a refused writer leaves no trace");
    store.append(&[record(4)]).await.expect("the history is free again");
}

/// A store that keeps checkpoints keeps the last one, takes it for no record, and reads on from the end of every append.
pub async fn a_checkpoint_is_beside_the_records(make: MakePlace<'_>) {
    let place = make();
    let store = open(&*place).await;
    let Some(checkpoints) = store.checkpoints() else { return };
    let loaded = checkpoints.load_checkpoint().await.expect("a checkpoint can be asked for");
    assert_eq!(loaded, None, "a new history has no checkpoint");
    checkpoints.save_checkpoint(b"{first").await.expect("a checkpoint is saved");
    assert!(!store.exists().await.expect("it can be asked"), "a checkpoint is no record");
    assert_eq!(load(&*store).await, [], "a checkpoint is no record");
    let nothing = checkpoints.fingerprint(End { object: 1, line: 1, end: 9 }).await;
    assert_eq!(nothing.expect("it can be asked"), None, "nothing ends where nothing is");

    let appends = [vec![record(1)], vec![record(2), record(3)], vec![record(4)], vec![record(5)]];
    for append in &appends {
        store.append(append).await.expect("records are appended");
    }
    let mut places = Vec::new();
    let mut note = |_: u64, line: &RecordLine<'_>| {
        places.push((line.place.expect("a record has a place"), line.group));
        Ok(())
    };
    store.read(&mut note).await.expect("the history can be read");
    checkpoints.save_checkpoint(b"second").await.expect("a checkpoint is replaced");
    drop(store);

    let store = open(&*place).await;
    let checkpoints = store.checkpoints().expect("it keeps checkpoints");
    let loaded = checkpoints.load_checkpoint().await.expect("a checkpoint is loaded");
    assert_eq!(loaded.as_deref(), Some(b"second".as_slice()), "the last checkpoint is kept");
    let mut seen = Vec::new();
    let all = load(&*store).await;
    for (count, (end, group)) in (1..).zip(places) {
        if group.is_some_and(|group| group.index < group.count) {
            continue;
        }
        let fingerprint = checkpoints.fingerprint(end).await.expect("it can be asked");
        // In an object of its own an append of several ends with its last record.
        let inside = fingerprint.is_none();
        assert!(!inside || count == 2, "record {count} ends an append");
        let mut rest = Vec::new();
        let mut push = |_: u64, line: &RecordLine<'_>| {
            rest.push(line.to_record().expect("a record that was appended can be read"));
            Ok(())
        };
        checkpoints.read_after(end, &mut push).await.expect("the history can be read");
        assert_eq!(rest, all.get(count..).unwrap_or_default(), "the rest follows record {count}");
        seen.push((end, fingerprint));
    }
    store.append(&[record(6)]).await.expect("a record is appended");
    for (end, fingerprint) in &seen {
        let again = checkpoints.fingerprint(*end).await.expect("it can be asked");
        assert_eq!(again, *fingerprint, "what comes after does not matter");
    }
    let mut different: Vec<_> = seen.iter().map(|(_, fingerprint)| fingerprint).collect();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), seen.len(), "other records have other fingerprints");
}

/// A record that differs from that of every other number, with text that needs escapes.
#[must_use]
pub fn record(number: u64) -> HistoryRecord {
    let id = TableId::new("sh\"op", format!("item{number}"));
    let column = Column {
        name: "naïve \u{1f}\n\\ 数据".to_owned(),
        type_name: "ENUM".to_owned(),
        jdbc_type: JdbcType::CHAR,
        length: Some(1),
        scale: None,
        charset: Some("utf8mb4".to_owned()),
        optional: true,
        auto_incremented: false,
        generated: false,
        is_computed: false,
        default: DefaultValue::Null,
        comment: None,
        enum_values: vec!["'it''s'".to_owned()],
    };
    let table = Arc::new(Table {
        id: id.clone(),
        columns: vec![column],
        primary_key: vec!["k".to_owned()],
        default_charset: Some("utf8mb4".to_owned()),
        comment: Some("goods".to_owned()),
    });
    let change = match number % 4 {
        0 => vec![],
        1 => vec![TableChange::Create(table)],
        2 => vec![TableChange::Alter { table, previous: Some(TableId::new("a", "b")) }],
        _ => vec![TableChange::Drop(id)],
    };
    HistoryRecord {
        source: "inventory".to_owned(),
        position: SourceOffset {
            file: "mysql-bin.000007".to_owned(),
            pos: 5_000_000_000 + number,
            server_id: Some(7),
            ts_sec: Some(1_767_225_600),
            ..SourceOffset::default()
        },
        ts_ms: 1_767_225_600_123,
        database_name: "sh\"op".to_owned(),
        ddl: Some(format!("CREATE TABLE `item{number}` (\n  `k` ENUM('it''s')\n)")),
        table_changes: change,
    }
}

async fn open(place: &dyn Place) -> Box<dyn HistoryStore> {
    place.open().await.expect("the history can be opened")
}

async fn load(store: &dyn HistoryStore) -> Vec<HistoryRecord> {
    store.load().await.expect("the history can be loaded")
}
