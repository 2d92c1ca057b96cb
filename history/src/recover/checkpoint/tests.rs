use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::ddl::DdlContext;
use crate::offset::HoldfastMembers;
use crate::recover::{Recovered, recover_store};
use crate::schema::{Column, JdbcType};
use crate::store::FileHistoryStore;

#[tokio::test]
async fn a_start_reads_what_follows_the_checkpoint() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.dat");
    let store = FileHistoryStore::open(&path).unwrap();
    store.append(&[create(1), create(2)]).await.unwrap();
    store.append(&[create(3)]).await.unwrap();
    assert_eq!(write(&store, 2).await, Some(2));
    assert_eq!(write(&store, 2).await, None, "there is nothing to add");
    // Another offset, and a record that it does not see.
    store.append(&[create(4)]).await.unwrap();
    assert_eq!(write(&store, 3).await, Some(3));
    drop(store);

    let store = FileHistoryStore::open(&path).unwrap();
    for place in 3..=5 {
        assert_eq!(resumed_from(&store, place).await, 3);
        assert_eq!(check(&store, place).await, CheckpointCheck::Agrees { records: 3 });
    }
    // With records before the checkpoint that can't be read, only the rest is looked at.
    drop(store);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() < 60_000, "the fingerprint holds all of it");
}

#[tokio::test]
async fn what_is_doubtful_is_not_used() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.dat");
    let store = FileHistoryStore::open(&path).unwrap();
    for number in 1..=4 {
        store.append(&[create(number)]).await.unwrap();
    }
    assert_eq!(write(&store, 3).await, Some(3));
    assert_eq!(check(&store, 2).await, unused("it is not of an earlier place in the same log"));
    assert_eq!(resumed_from(&store, 2).await, 0);

    let other = SourceOffset { holdfast: ours("B", 1), ..at(4) };
    let context = DdlContext::default();
    let options = options(&context);
    let checked = check_checkpoint(&store, "inv", &other, &options).await.unwrap();
    assert_eq!(checked, unused("it is not of an earlier place in the same log"));
    let later = SourceOffset { holdfast: ours("A", 2), ..at(4) };
    let checked = check_checkpoint(&store, "inv", &later, &options).await.unwrap();
    assert_eq!(checked, unused("it is not of an earlier place in the same log"));
    let checked = check_checkpoint(&store, "other", &at(4), &options).await.unwrap();
    assert_eq!(checked, unused("it was written with other settings"));
    let folded = RecoverOptions { lower_case_names: true, ..options };
    let checked = check_checkpoint(&store, "inv", &at(4), &folded).await.unwrap();
    assert_eq!(checked, unused("it was written with other settings"));

    // Every part of it damaged, and cut anywhere.
    let beside = folder.path().join("history.dat.checkpoint");
    let good = std::fs::read(&beside).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&beside, &bad).unwrap();
        assert_eq!(resumed_from(&store, 4).await, 0, "byte {at}");
        std::fs::write(&beside, &good[..at]).unwrap();
        assert_eq!(resumed_from(&store, 4).await, 0, "cut at {at}");
    }
    std::fs::write(&beside, &good).unwrap();
    assert_eq!(resumed_from(&store, 4).await, 3);
    drop(store);

    // Another history of the same length.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("table3", "table8")).unwrap();
    let store = FileHistoryStore::open(&path).unwrap();
    assert_eq!(check(&store, 4).await, unused("it is of other records"));
    assert_eq!(resumed_from(&store, 4).await, 0);
    drop(store);
    // A shorter one.
    std::fs::write(&path, text.lines().next().unwrap()).unwrap();
    let store = FileHistoryStore::open(&path).unwrap();
    assert_eq!(check(&store, 4).await, unused("it is of other records"));
}

#[tokio::test]
async fn a_checkpoint_that_says_something_else_is_found_out() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("history.dat");
    let store = FileHistoryStore::open(&path).unwrap();
    store.append(&[create(1)]).await.unwrap();
    store.append(&[create(2)]).await.unwrap();
    assert_eq!(write(&store, 2).await, Some(2));
    forge(&folder.path().join("history.dat.checkpoint"), "column2", "column8");
    let tables = vec![TableId::new("d", "table2")];
    assert_eq!(check(&store, 2).await, CheckpointCheck::Differs { records: 2, tables });
}

#[tokio::test]
async fn a_guess_is_the_end_of_a_checkpoint() {
    let folder = TempDir::new().unwrap();
    let store = FileHistoryStore::open(folder.path().join("history.dat")).unwrap();
    store.append(&[create(1)]).await.unwrap();
    let mut elsewhere = create(2);
    elsewhere.position.file = "other.000001".to_owned();
    elsewhere.position.holdfast = None;
    store.append(&[elsewhere]).await.unwrap();
    store.append(&[create(3)]).await.unwrap();
    assert_eq!(write(&store, 9).await, Some(1));
    assert_eq!(resumed_from(&store, 9).await, 1);

    // An offset that does not know its log is none to write one for.
    let context = DdlContext::default();
    let blind = SourceOffset { holdfast: None, ..at(9) };
    let written = write_checkpoint(&store, "inv", &blind, &options(&context)).await.unwrap();
    assert_eq!(written, None);
}

/// Replaces a text in a checkpoint, and makes its checksum right.
fn forge(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let body = text.lines().next().unwrap().replace(from, to);
    std::fs::write(path, format!("{body}\n{:08x}\n", crc32fast::hash(body.as_bytes()))).unwrap();
}

fn unused(why: &'static str) -> CheckpointCheck {
    CheckpointCheck::Unused(why)
}

async fn write(store: &FileHistoryStore, place: u64) -> Option<usize> {
    let context = DdlContext::default();
    write_checkpoint(store, "inv", &at(place), &options(&context)).await.unwrap()
}

async fn check(store: &FileHistoryStore, place: u64) -> CheckpointCheck {
    let context = DdlContext::default();
    check_checkpoint(store, "inv", &at(place), &options(&context)).await.unwrap()
}

/// Recovers with and without the checkpoint, which must be the same, and says how many records the checkpoint stood for.
async fn resumed_from(store: &FileHistoryStore, place: u64) -> usize {
    let context = DdlContext::default();
    let whole = RecoverOptions { checkpoint: false, ..options(&context) };
    let offset = at(place);
    let whole = recover_store(store, "inv", &offset, &whole).await.unwrap();
    let Recovered { tables, mut report, guard, ahead } =
        recover_store(store, "inv", &offset, &options(&context)).await.unwrap();
    let from = std::mem::take(&mut report.from_checkpoint);
    assert_eq!(
        (tables, report, guard, ahead),
        (whole.tables, whole.report, whole.guard, whole.ahead)
    );
    from
}

const fn options(context: &DdlContext) -> RecoverOptions<'_> {
    RecoverOptions { checkpoint: true, ..RecoverOptions::new(context) }
}

fn ours(lineage: &str, epoch: u64) -> Option<HoldfastMembers> {
    let lineage = Some(lineage.to_owned());
    Some(HoldfastMembers { lineage, epoch, ..HoldfastMembers::default() })
}

fn at(place: u64) -> SourceOffset {
    SourceOffset {
        file: "mysql-bin.000003".to_owned(),
        pos: place * 100,
        holdfast: ours("A", 1),
        ..SourceOffset::default()
    }
}

fn create(number: u64) -> HistoryRecord {
    let column = Column::new(format!("column{number}"), "INT", JdbcType::INTEGER);
    let id = TableId::new("d", format!("table{number}"));
    let table = Table { columns: vec![column], ..Table::new(id) };
    HistoryRecord {
        source: "inv".to_owned(),
        position: at(number),
        ts_ms: 7,
        database_name: "d".to_owned(),
        ddl: Some(format!("create table table{number}")),
        table_changes: vec![TableChange::Create(Arc::new(table))],
    }
}
