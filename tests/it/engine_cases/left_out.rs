//! Rows events that can't be decoded, on made-up logs: an error, or left out where the settings say so, and nothing else with
//! them.

use holdfast_binlog::event::EventType;
use holdfast_connector::testkit::{
    self, Fault, LogBuilder, ScriptedServer, TestColumn, TestStores, TestValue,
};
use holdfast_connector::{Engine, Error, ErrorClass, RecordKind};

use super::metrics::{recorded, values};

/// A rows event of table `id` with `columns` columns, and the bytes of its rows.
fn insert(id: u8, columns: u8, rows: &[u8]) -> Vec<u8> {
    let mut body = vec![id, 0, 0, 0, 0, 0, 1, 0, 2, 0, columns, 0xff];
    body.extend(rows);
    body
}

/// Two rows of `u`: names of three bytes and of one.
const ROWS: &[u8] = b"\0\x03abc\0\x01x";

/// Two rows events of `t` in one transaction, and between them one of `u` with that body.
fn log(body: &[u8], compressed: bool) -> LogBuilder {
    let unit = |log: LogBuilder| {
        rows(rows(log.begin(), &[1]).event(EventType::WriteRows, 0, body), &[2, 3]).xid(1)
    };
    let log = tables();
    let log = if compressed { log.compressed(unit) } else { unit(log) };
    rows(log.begin(), &[4]).xid(2)
}

fn tables() -> LogBuilder {
    LogBuilder::new("binlog.000001")
        .query("shop", "CREATE TABLE t (id INT PRIMARY KEY)")
        .query("shop", "CREATE TABLE u (name VARCHAR(20) CHARACTER SET latin1)")
}

fn rows(log: LogBuilder, ids: &[i64]) -> LogBuilder {
    let rows: Vec<[TestValue; 1]> = ids.iter().map(|id| [TestValue::Int(*id)]).collect();
    let rows: Vec<&[TestValue]> = rows.iter().map(|row| &row[..]).collect();
    log.table_map(1, "shop", "t", &[TestColumn::int()])
        .table_map(2, "shop", "u", &[TestColumn::varchar(20)])
        .write_rows(1, &rows)
}

fn config(mode: &str) -> holdfast_connector::Config {
    let properties = [
        ("event.processing.failure.handling.mode", mode),
        ("include.schema.changes", "false"),
        ("offset.flush.interval.ms", "3600000"),
    ];
    testkit::config(&properties).unwrap()
}

/// Keys and identities of what comes until the engine ends, with the number of groups acknowledged.
async fn read(engine: &mut Engine, acknowledged: usize) -> (Vec<(String, String)>, Option<Error>) {
    let mut seen = Vec::new();
    loop {
        let batch = match engine.next_batch().await {
            Ok(Some(batch)) => batch,
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error)),
        };
        for change in batch.changes() {
            assert!(matches!(change.kind(), RecordKind::Data(_)));
            if seen.len() < acknowledged {
                change.acknowledge();
            }
            let key = String::from_utf8(change.key().to_vec()).unwrap();
            seen.push((key, change.identity().to_string()));
        }
    }
}

async fn start(server: &ScriptedServer, stores: &TestStores, mode: &str) -> Engine {
    server.engine(config(mode), stores).unwrap().start().await.unwrap()
}

/// What an engine reads of a log on its own.
async fn read_all(log: LogBuilder, mode: &str) -> (Vec<(String, String)>, Option<Error>) {
    let server = ScriptedServer::new(log);
    server.complete();
    let mut engine = start(&server, &TestStores::new(), mode).await;
    let read = read(&mut engine, 0).await;
    engine.close().await.unwrap();
    read
}

fn left_out(text: &str) -> Vec<(String, f64)> {
    let text = text.replace("server=\"test\",", "");
    let found = values(&text).into_iter();
    found.filter(|(name, value)| name.starts_with("holdfast_left_out") && *value > 0.0).collect()
}

/// Bodies of a rows event of the size of a whole one, none of which decodes.
fn broken() -> [(&'static str, Vec<u8>); 5] {
    [
        ("a table that no table map introduced", insert(77, 1, ROWS)),
        ("a number of columns that the event has no room for", insert(2, 200, ROWS)),
        ("a number of columns that is not the table's", insert(2, 2, ROWS)),
        ("a first value that is longer than the event", insert(2, 1, b"\0\x63abc\0\x01x")),
        ("a second value that is longer than the event", insert(2, 1, b"\0\x03abc\0\x63x")),
    ]
}

#[test]
fn rows_that_do_not_decode_are_an_error_or_left_out_and_no_other_row_with_them() {
    for compressed in [false, true] {
        recorded(async |_| {
            let (whole, none) = read_all(log(&insert(2, 1, ROWS), compressed), "fail").await;
            assert!(none.is_none() && whole.len() == 6, "{whole:?}");
            let expected: Vec<_> =
                whole.into_iter().filter(|(key, _)| key.contains("id")).collect();
            assert_eq!(expected.len(), 4);
            // A compressed transaction has another size when something in it is broken: what is behind it has another place.
            let same = if compressed { 3 } else { 4 };
            for (what, body) in broken() {
                let (seen, error) = read_all(log(&body, compressed), "fail").await;
                let error = error.expect(what);
                assert_eq!(error.class(), ErrorClass::Data, "{what}: {error}");
                assert!(error.chain().contains("binlog.000001"), "{}", error.chain());
                let before: Vec<_> =
                    seen.into_iter().filter(|(key, _)| key.contains("id")).collect();
                assert!(expected[..1].starts_with(&before), "{what}: {before:?}");
                for mode in ["warn", "skip", "ignore"] {
                    let (seen, error) = read_all(log(&body, compressed), mode).await;
                    assert!(error.is_none(), "{what}: {error:?}");
                    assert_eq!(seen[..same], expected[..same], "{what}, {mode}");
                    assert_eq!((seen.len(), &seen[3].0), (4, &expected[3].0), "{what}, {mode}");
                }
            }
        });
    }
}

#[test]
fn what_is_left_out_is_counted() {
    for (what, body) in broken() {
        recorded(async |recorded| {
            read_all(log(&body, false), "warn").await;
            let expected = ("holdfast_left_out_total{why=\"undecodable\"}".to_owned(), 1.0);
            assert_eq!(left_out(&recorded.render()), [expected], "{what}");
        });
    }
    recorded(async |recorded| {
        read_all(log(&insert(2, 1, ROWS), false), "warn").await;
        assert_eq!(left_out(&recorded.render()), []);
    });
}

#[test]
fn a_restart_before_and_behind_rows_that_are_left_out_finds_its_place() {
    for (what, body) in broken() {
        for compressed in [false, true] {
            recorded(async |_| {
                let (all, _) = read_all(log(&body, compressed), "skip").await;
                for done in 0..=all.len() {
                    let server = ScriptedServer::new(log(&body, compressed));
                    server.complete();
                    let stores = TestStores::new();
                    let mut engine = start(&server, &stores, "skip").await;
                    assert_eq!(read(&mut engine, done).await.0, all);
                    engine.control().flush().await.unwrap();
                    engine.abandon().await;
                    let mut engine = start(&server, &stores, "skip").await;
                    assert_eq!(read(&mut engine, 0).await.0, all[done..], "{what}, {done} done");
                    engine.abandon().await;
                }
            });
        }
    }
}

#[test]
fn nothing_but_rows_is_left_out() {
    let table_map = b"\x03\0\0\0\0\0\x01\0\x04";
    let bodies = [
        (EventType::Xid, b"\x01\x02".as_slice()),
        (EventType::TableMap, table_map),
        (EventType::Query, b"\0\0"),
        (EventType::Gtid, b"\0\0"),
        (EventType::Other(99), b"?"),
    ];
    for (kind, body) in bodies {
        for mode in ["fail", "warn", "skip"] {
            recorded(async |_| {
                let log = rows(rows(tables().begin(), &[1]).event(kind, 0, body), &[2]).xid(1);
                let (_, error) = read_all(log, mode).await;
                let error = error.unwrap_or_else(|| panic!("{kind} was left out with {mode}"));
                assert_eq!(error.class(), ErrorClass::Data, "{error}");
            });
        }
    }
    // Of an event whose checksum is wrong not even the type is sure.
    recorded(async |recorded| {
        let server = ScriptedServer::new(log(&insert(2, 1, ROWS), false));
        server.complete();
        // Format description, two statements, BEGIN, two table maps: then rows.
        server.fault_after(6, Fault::Corrupt);
        let mut engine = start(&server, &TestStores::new(), "skip").await;
        let (seen, error) = read(&mut engine, 0).await;
        let error = error.unwrap().chain();
        assert!(error.contains("WRITE_ROWS") && error.contains("checksum"), "{error}");
        assert!(seen.is_empty(), "{seen:?}");
        engine.close().await.unwrap();
        assert_eq!(left_out(&recorded.render()), []);
    });
}
