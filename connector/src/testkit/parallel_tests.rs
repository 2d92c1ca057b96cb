//! Large transactions, whose rows several tasks render: what comes out is what comes out of one.

use std::time::Duration;

use super::*;
use crate::engine::Engine;

const FILE: &str = "binlog.000001";

/// A record and the offset behind its group.
type Delivered = (String, String);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()
}

fn text(id: i64, length: usize) -> TestValue {
    TestValue::Bytes(format!("row {id} {}", "x".repeat(length)).into_bytes())
}

/// Three transactions: a small one, one with 600 kB of rows in two captured tables and one that is not, and one after a
/// statement that changed a table. `odd` gives the last column of a row.
fn log(odd: impl Fn(i64) -> TestValue) -> LogBuilder {
    let columns = [TestColumn::int(), TestColumn::varchar(400), TestColumn::raw(254, &[247, 1])];
    let mut log = LogBuilder::new(FILE)
        .query("shop", "CREATE TABLE a (id INT PRIMARY KEY, t VARCHAR(100), n ENUM('x', 'y'))")
        .query("shop", "CREATE TABLE b (id INT PRIMARY KEY, t VARCHAR(100), n ENUM('x', 'y'))")
        .query(
            "shop",
            "CREATE TABLE ignored (id INT PRIMARY KEY, t VARCHAR(100), n ENUM('x', 'y'))",
        );
    let row = |id: i64| [TestValue::Int(id), text(id, 180), odd(id)];
    let write = |log: LogBuilder, table: u64, ids: std::ops::Range<i64>| {
        let rows: Vec<[TestValue; 3]> = ids.map(row).collect();
        let rows: Vec<&[TestValue]> = rows.iter().map(|row| &row[..]).collect();
        log.write_rows(table, &rows)
    };
    let maps = |log: LogBuilder| {
        log.table_map(1, "shop", "a", &columns)
            .table_map(2, "shop", "b", &columns)
            .table_map(3, "shop", "ignored", &columns)
    };
    log = write(maps(log.begin()), 1, 0..10).xid(1);
    log = maps(log.begin());
    for part in 0..80 {
        let first = 100 + part * 40;
        log = write(log, if part % 5 == 4 { 2 } else { 1 }, first..first + 40);
        if part % 16 == 15 {
            log = write(log, 3, first..first + 40);
        }
        if part % 9 == 8 {
            // Every other one with another key: three records.
            let rows: Vec<_> =
                (first..first + 20).map(|id| (row(id), row(id + id % 2 * 100_000))).collect();
            let rows: Vec<_> = rows.iter().map(|(old, new)| (&old[..], &new[..])).collect();
            log = log.update_rows(1, &rows);
        }
        if part % 13 == 12 {
            let rows: Vec<_> = (first..first + 30).map(row).collect();
            let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
            log = log.delete_rows(1, &rows);
        }
    }
    log = log.xid(2).query("shop", "ALTER TABLE a COMMENT = 'changed'");
    log = maps(log.begin());
    for part in 0..30 {
        log = write(log, 1, 10_000 + part * 40..10_040 + part * 40);
    }
    log.xid(3)
}

fn settings<'s>(tasks: &'s str, more: &[(&'s str, &'s str)]) -> Vec<(&'s str, &'s str)> {
    let mut settings = vec![
        ("table.include.list", "shop.a,shop.b"),
        ("include.schema.changes", "false"),
        ("holdfast.headers.identity", "true"),
        ("holdfast.tasks", tasks),
    ];
    settings.extend_from_slice(more);
    settings
}

/// Takes up to `most` batches and acknowledges them; what ended the engine, if it was an error.
async fn take(engine: &mut Engine, most: usize) -> (Vec<Delivered>, Vec<usize>, Option<String>) {
    let (mut all, mut sizes) = (Vec::new(), Vec::new());
    while sizes.len() < most {
        let batch = match engine.next_batch().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return (all, sizes, None),
            Err(error) => return (all, sizes, Some(error.to_string())),
        };
        for change in batch.changes() {
            let mut json = Vec::new();
            change.write_json(&mut json);
            let json = String::from_utf8(json).unwrap();
            // The first offsets after a restart have no time.
            let offset = change.offset().to_json().replace("\"ts_sec\":1700000000,", "");
            all.push((format!("{} {json}", change.identity()), offset));
        }
        sizes.push(batch.len());
        batch.acknowledge();
    }
    (all, sizes, None)
}

/// All records of a log, the sizes of their batches, and the error at the end.
fn run(
    log: LogBuilder,
    settings: &[(&str, &str)],
) -> (Vec<Delivered>, Vec<usize>, Option<String>, Option<String>) {
    runtime().block_on(async {
        let server = ScriptedServer::new(log);
        server.complete();
        let stores = TestStores::new();
        let engine = server.engine(config(settings).unwrap(), &stores).unwrap();
        let mut engine = engine.start().await.unwrap();
        let (all, sizes, error) = take(&mut engine, usize::MAX).await;
        engine.close().await.unwrap();
        (all, sizes, error, stores.offset().map(|offset| offset.to_json()))
    })
}

/// Compares record by record, so that a difference can be read. The last record of a transaction has the offset behind it
/// unless a batch ends there.
fn assert_same(got: &[Delivered], expected: &[Delivered], what: &str) {
    let is_first = |record: Option<&Delivered>| {
        record.is_none_or(|(_, offset)| offset.contains("\"holdfast_rows\":1}"))
    };
    let is_closed = |offset: &str| !offset.contains("\"event\"");
    for (number, (got, record)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.0, record.0, "{what}: record {number}");
        let closes = is_closed(&got.1) != is_closed(&record.1);
        if !closes || !is_first(expected.get(number + 1)) {
            assert_eq!(got.1, record.1, "{what}: offset of record {number}");
        }
    }
    assert_eq!(got.len(), expected.len(), "{what}");
}

fn plain(_: i64) -> TestValue {
    TestValue::Raw(vec![1])
}

#[test]
fn records_and_offsets_are_those_of_one_task() {
    for more in [
        &[][..],
        &[("max.batch.size", "7"), ("max.queue.size", "50")],
        &[("tombstones.on.delete", "false"), ("value.converter.schemas.enable", "true")],
        &[("skipped.operations", "u"), ("provide.transaction.metadata", "true")],
    ] {
        let (one, sizes, error, stored) = run(log(plain), &settings("1", more));
        assert_eq!(error, None);
        assert!(one.len() > 4_000, "{}", one.len());
        for tasks in ["2", "4"] {
            let (several, cut, error, stored_by_several) = run(log(plain), &settings(tasks, more));
            assert_eq!(error, None);
            assert_same(&several, &one, &format!("{tasks} tasks, {more:?}"));
            assert_eq!(stored_by_several, stored);
            // Runs end batches elsewhere, where there are some.
            let is_alone = more.iter().any(|(key, _)| *key == "provide.transaction.metadata");
            assert_eq!(cut == sizes, is_alone, "{cut:?}");
            // A group of three records may end a batch of seven.
            let most = if more.iter().any(|(key, _)| *key == "max.batch.size") { 9 } else { 2050 };
            assert!(sizes.iter().chain(&cut).all(|size| *size <= most), "{cut:?}");
        }
    }
}

#[test]
fn compressed_transactions_are_no_different() {
    let compressed = |log: LogBuilder| {
        let columns = [TestColumn::int(), TestColumn::varchar(400)];
        log.compressed(|log| {
            let mut log = log.begin().table_map(1, "shop", "a", &columns);
            for id in 0..2_000 {
                log = log.write_rows(1, &[&[TestValue::Int(id), text(id, 180)]]);
            }
            log.xid(1)
        })
    };
    let log = || {
        compressed(
            LogBuilder::new(FILE)
                .query("shop", "CREATE TABLE a (id INT PRIMARY KEY, t VARCHAR(100))"),
        )
    };
    let one = run(log(), &settings("1", &[]));
    let several = run(log(), &settings("3", &[]));
    assert_eq!((one.0.len(), &one.2), (2_000, &None));
    assert_same(&several.0, &one.0, "compressed");
    assert_eq!((several.2, several.3), (one.2, one.3));
}

#[test]
fn a_huge_row_among_others_keeps_its_place() {
    let log = || {
        let columns = [TestColumn::int(), TestColumn::blob(3)];
        let mut log = LogBuilder::new(FILE)
            .query("shop", "CREATE TABLE a (id INT PRIMARY KEY, t MEDIUMTEXT)")
            .begin()
            .table_map(1, "shop", "a", &columns);
        for id in 0..60 {
            let length = if id % 23 == 20 { 1_100_000 } else { 9_000 };
            log = log.write_rows(1, &[&[TestValue::Int(id), text(id, length)]]);
        }
        log.xid(1)
    };
    let one = run(log(), &settings("1", &[]));
    let several = run(log(), &settings("3", &[]));
    assert_eq!((one.0.len(), &one.2), (60, &None));
    assert_same(&several.0, &one.0, "huge rows");
    assert_eq!((several.2, several.3), (one.2, one.3));
}

#[test]
fn what_comes_before_a_value_that_does_not_convert_is_delivered() {
    // The column has two labels.
    let broken = |id: i64| TestValue::Raw(vec![if id == 2_345 { 9 } else { 2 }]);
    let fail = [("event.converting.failure.handling.mode", "fail")];
    let one = run(log(broken), &settings("1", &fail));
    let several = run(log(broken), &settings("3", &fail));
    assert!(one.0.len() > 1_000 && one.2.is_some(), "{} {:?}", one.0.len(), one.2);
    assert_same(&several.0, &one.0, "before the error");
    assert_eq!(several.2, one.2);
}

#[test]
fn a_restart_anywhere_in_a_transaction_skips_and_repeats_nothing() {
    let more =
        [("max.batch.size", "90"), ("max.queue.size", "500"), ("offset.flush.interval.ms", "0")];
    let settings = settings("3", &more);
    let (all, sizes, ..) = run(log(plain), &settings);
    for taken in [1, 3, 5, 9, 14, 20, 27, 33, 41, sizes.len() - 1] {
        runtime().block_on(async {
            let server = ScriptedServer::new(log(plain));
            server.complete();
            let stores = TestStores::new();
            let config = config(&settings).unwrap();
            let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
            let (mut got, ..) = take(&mut engine, taken).await;
            engine.close().await.unwrap();
            let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
            let (rest, _, error) = take(&mut engine, usize::MAX).await;
            engine.close().await.unwrap();
            got.extend(rest);
            assert_eq!(error, None);
            assert_same(&got, &all, &format!("after {taken} batches"));
        });
    }
}

#[test]
fn a_transaction_that_comes_bit_by_bit_holds_nothing_back() {
    /// Takes batches until `wanted` rows have come, each in its turn.
    async fn take_rows(engine: &mut Engine, taken: &mut i64, wanted: i64) {
        while *taken < wanted {
            let next = tokio::time::timeout(Duration::from_secs(60), engine.next_batch()).await;
            let batch = next.expect("rows that were sent come").unwrap().unwrap();
            for change in batch.changes() {
                assert_eq!(change.key(), format!("{{\"id\":{taken}}}").as_bytes());
                *taken += 1;
            }
            batch.acknowledge();
        }
    }

    runtime().block_on(async {
        let columns = [TestColumn::int(), TestColumn::varchar(400)];
        let log = LogBuilder::new(FILE)
            .query("shop", "CREATE TABLE a (id INT PRIMARY KEY, t VARCHAR(100))")
            .begin()
            .table_map(1, "shop", "a", &columns);
        let server = ScriptedServer::new(log);
        let stores = TestStores::new();
        let engine = server.engine(config(&settings("3", &[])).unwrap(), &stores).unwrap();
        let mut engine = engine.start().await.unwrap();
        let (mut written, mut taken) = (0, 0);
        for burst in 0..90_i64 {
            server.write(|mut log| {
                for _ in 0..=burst * 7 % 12 {
                    let rows: Vec<_> = (written..written + 40)
                        .map(|id| [TestValue::Int(id), text(id, 180)])
                        .collect();
                    let rows: Vec<_> = rows.iter().map(|row| &row[..]).collect();
                    log = log.write_rows(1, &rows);
                    written += 40;
                }
                log
            });
            // Now and then the log stands still, inside the transaction.
            if burst % 3 == 2 {
                take_rows(&mut engine, &mut taken, written).await;
            }
        }
        assert!(taken == written && written > 20_000, "{written}");
        server.write(|log| log.xid(1));
        server.complete();
        while let Some(batch) = engine.next_batch().await.unwrap() {
            assert!(batch.is_empty(), "a row came twice");
        }
        engine.close().await.unwrap();
        let stored = stores.offset().unwrap().to_json();
        assert!(!stored.contains("\"event\""), "the transaction is done: {stored}");
    });
}
