use std::time::Duration;

use super::*;
use crate::batch::Batch;
use crate::engine::Engine;
use crate::record::RecordKind;

const FILE: &str = "binlog.000001";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// One table and three transactions of one, two and one row.
fn log() -> LogBuilder {
    let log = LogBuilder::new(FILE).query("shop", "CREATE TABLE t (id INT PRIMARY KEY)");
    transaction(transaction(transaction(log, &[1]), &[2, 3]), &[4])
}

fn transaction(log: LogBuilder, ids: &[i64]) -> LogBuilder {
    let rows: Vec<[TestValue; 1]> = ids.iter().map(|id| [TestValue::Int(*id)]).collect();
    let rows: Vec<&[TestValue]> = rows.iter().map(|row| &row[..]).collect();
    log.begin().table_map(1, "shop", "t", &[TestColumn::int()]).write_rows(1, &rows).xid(1)
}

fn ids(batch: &Batch) -> Vec<String> {
    let data = batch.changes().filter(|change| matches!(change.kind(), RecordKind::Data(_)));
    data.map(|change| String::from_utf8(change.key().to_vec()).unwrap()).collect()
}

/// Everything that comes until the engine ends, acknowledged.
async fn drain(engine: &mut Engine) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    while let Some(batch) = engine.next_batch().await? {
        all.extend(ids(&batch));
        batch.acknowledge();
    }
    Ok(all)
}

fn keys(ids: std::ops::Range<u32>) -> Vec<String> {
    ids.map(|id| format!(r#"{{"id":{id}}}"#)).collect()
}

#[test]
fn a_lost_connection_is_made_again_at_every_event() {
    let events = 14;
    for event in 0..events {
        runtime().block_on(async {
            let server = ScriptedServer::new(log());
            server.complete();
            server.fault_after(event, Fault::Disconnect);
            let stores = TestStores::new();
            let mut engine =
                server.engine(config(&[]).unwrap(), &stores).unwrap().start().await.unwrap();
            // Only what worked before is made again.
            let (first, all) = match drain(&mut engine).await {
                Ok(all) => (false, all),
                Err(error) => (true, vec![error.to_string()]),
            };
            if first {
                assert_eq!(event, 0, "{all:?}");
                return;
            }
            assert_eq!(all, keys(1..5), "before event {event}");
            assert_eq!((server.connections(), server.sent() >= events), (2, true));
            engine.close().await.unwrap();
        });
    }
}

#[test]
fn a_damaged_event_ends_the_engine_and_the_next_one_goes_on() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        server.complete();
        server.fault_after(8, Fault::Corrupt);
        let stores = TestStores::new();
        let config = config(&[]).unwrap();
        let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
        let mut before = Vec::new();
        let error = loop {
            match engine.next_batch().await {
                Ok(batch) => {
                    let batch = batch.unwrap();
                    before.extend(ids(&batch));
                    batch.acknowledge();
                }
                Err(error) => break error,
            }
        };
        assert_eq!(error.class(), crate::error::ErrorClass::Data);
        assert!(error.chain().contains("checksum"), "{}", error.chain());
        engine.close().await.unwrap();
        let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
        before.extend(drain(&mut engine).await.unwrap());
        assert_eq!(before, keys(1..5));
        engine.close().await.unwrap();
    });
}

#[test]
fn what_a_store_refused_or_kept_silently_comes_again_or_not() {
    for (fault, left) in [(StoreFault::Refused, 1..5), (StoreFault::AnswerLost, 5..5)] {
        runtime().block_on(async {
            let server = ScriptedServer::new(log());
            let stores = TestStores::new();
            let config = config(&[("offset.flush.interval.ms", "3600000")]).unwrap();
            let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
            let mut taken = 0;
            while taken < 4 {
                let batch = engine.next_batch().await.unwrap().unwrap();
                taken += ids(&batch).len();
                batch.acknowledge();
            }
            stores.fail_next(fault);
            engine.control().flush().await.unwrap_err();
            engine.abandon().await;
            server.complete();
            let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
            assert_eq!(drain(&mut engine).await.unwrap(), keys(left), "{fault:?}");
            engine.close().await.unwrap();
        });
    }
}

#[test]
fn what_is_written_later_comes_also_in_another_file() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        let stores = TestStores::new();
        let mut engine =
            server.engine(config(&[]).unwrap(), &stores).unwrap().start().await.unwrap();
        assert!(engine.control().streaming().await);
        server.rotate("binlog.000002");
        server.write(|log| transaction(log, &[5]));
        let mut all = Vec::new();
        while all.len() < 5 {
            let batch = engine.next_batch().await.unwrap().unwrap();
            all.extend(ids(&batch));
            batch.acknowledge();
        }
        assert_eq!(all, keys(1..6));
        server.complete();
        assert!(engine.next_batch().await.unwrap().is_none());
        engine.close_within(Duration::from_secs(60)).await.unwrap();
        assert_eq!(stores.offset().unwrap().file, "binlog.000002");
    });
}

#[test]
fn a_restart_finds_its_place_by_gtids_and_by_position() {
    for gtids in [true, false] {
        runtime().block_on(async {
            let mut log = LogBuilder::new(FILE);
            for number in 1..5_i64 {
                if gtids {
                    let gtid = format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}");
                    log = log.gtid(gtid.parse().unwrap());
                }
                log = match number {
                    1 => log.query("shop", "CREATE TABLE t (id INT PRIMARY KEY)"),
                    _ => transaction(log, &[number - 1]),
                };
            }
            let server = ScriptedServer::new(log);
            server.complete();
            let stores = TestStores::new();
            let config = config(&[("max.batch.size", "1")]).unwrap();
            let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
            for _ in 0..2 {
                engine.next_batch().await.unwrap().unwrap().acknowledge();
            }
            engine.control().flush().await.unwrap();
            engine.abandon().await;
            assert_eq!(stores.offset().unwrap().gtids.is_some(), gtids);
            let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
            assert_eq!(drain(&mut engine).await.unwrap(), keys(2..4));
            engine.close().await.unwrap();
        });
    }
}

#[test]
fn an_offset_that_is_not_in_the_log_is_said_to_be_lost() {
    for (file, pos) in [("binlog.000007", 4), (FILE, 5), (FILE, 1 << 40)] {
        runtime().block_on(async {
            let server = ScriptedServer::new(log());
            let stores = TestStores::new();
            let mut offset = server.start();
            offset.file = file.to_owned();
            offset.pos = pos;
            stores.set_offset(Some(offset));
            let mut engine =
                server.engine(config(&[]).unwrap(), &stores).unwrap().start().await.unwrap();
            let error = engine.next_batch().await.unwrap_err();
            assert_eq!(error.class(), crate::error::ErrorClass::Purged, "{error}");
        });
    }
}

#[test]
fn two_engines_cannot_have_the_same_stores() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        let stores = TestStores::new();
        let engine = server.engine(config(&[]).unwrap(), &stores).unwrap().start().await.unwrap();
        assert!(server.engine(config(&[]).unwrap(), &stores).is_err());
        engine.abandon().await;
        assert!(server.engine(config(&[]).unwrap(), &stores).is_ok());
    });
}

#[test]
fn a_group_that_is_given_back_comes_next_and_alone_until_it_was_enough() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        server.complete();
        let stores = TestStores::new();
        let config = config(&[("include.schema.changes", "false")]).unwrap();
        let builder = server.engine(config.clone(), &stores).unwrap().max_redeliveries(2);
        let mut engine = builder.start().await.unwrap();
        let first = engine.next_batch().await.unwrap().unwrap();
        assert_eq!(ids(&first), keys(1..5));
        let handles: Vec<_> = first.changes().map(|change| change.ack_group()).collect();
        let identities: Vec<_> = first.changes().map(|change| change.identity()).collect();
        drop(first);
        handles[0].acknowledge();
        handles[0].reject();
        handles[3].acknowledge();
        for handle in &handles[1..3] {
            handle.reject();
            handle.reject();
        }
        for number in 1..3 {
            let batch = engine.next_batch().await.unwrap().unwrap();
            assert_eq!((batch.redelivery(), batch.len()), (1, 1));
            let change = batch.changes().next().unwrap();
            assert_eq!(change.identity(), identities[number]);
            assert_eq!(change.ack_group().number(), handles[number].number());
            if number == 1 {
                change.acknowledge();
            } else {
                handles[number].reject();
                batch.reject();
            }
        }
        let status = engine.control().status();
        assert_eq!((status.acks.rejected, status.acks.duplicate), (3, 4), "{status:?}");
        assert_eq!(status.open_groups, 2);
        let batch = engine.next_batch().await.unwrap().unwrap();
        assert_eq!((batch.redelivery(), ids(&batch)), (2, keys(3..4)));
        batch.reject();
        let error = engine.next_batch().await.unwrap_err();
        assert!(matches!(error, Error::Rejected { times: 3, .. }), "{error}");
        assert!(error.to_string().contains(&identities[2].to_string()), "{error}");
        engine.close().await.unwrap();
        // The group comes again, and so does what is behind it.
        let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
        assert_eq!(drain(&mut engine).await.unwrap(), keys(3..5));
        engine.close().await.unwrap();
    });
}

#[test]
fn what_was_given_back_comes_while_the_log_is_silent_and_before_what_is_new() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        let stores = TestStores::new();
        let config = config(&[("include.schema.changes", "false")]).unwrap();
        let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
        let batch = engine.next_batch().await.unwrap().unwrap();
        let (waiting, ()) = tokio::join!(engine.next_batch(), async { batch.reject() });
        let again = waiting.unwrap().unwrap();
        assert_eq!(ids(&again), keys(1..2));
        server.write(|log| transaction(log, &[5]));
        for id in 2..=5 {
            assert_eq!(ids(&engine.next_batch().await.unwrap().unwrap()), keys(id..id + 1));
        }
        engine.abandon().await;
    });
}

#[test]
fn a_host_s_own_offset_takes_the_place_of_the_stored_one() {
    runtime().block_on(async {
        let server = ScriptedServer::new(log());
        server.complete();
        let stores = TestStores::new();
        let config = config(&[("include.schema.changes", "false")]).unwrap();
        let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
        let batch = engine.next_batch().await.unwrap().unwrap();
        let offsets: Vec<String> =
            batch.changes().map(|change| change.offset().to_json()).collect();
        batch.acknowledge();
        engine.close().await.unwrap();
        for (done, offset) in offsets.iter().enumerate() {
            let offset = holdfast_history::offset::SourceOffset::from_json(offset).unwrap();
            let builder = server.engine(config.clone(), &stores).unwrap().resume_at(offset);
            let mut engine = builder.start().await.unwrap();
            let done = u32::try_from(done).unwrap();
            assert_eq!(drain(&mut engine).await.unwrap(), keys(done + 2..5));
            engine.close().await.unwrap();
        }
    });
}

#[test]
fn rows_in_fragments_go_on_where_an_engine_stopped() {
    runtime().block_on(async {
        let options = LogOptions { server: TestServer::MariaDb, ..LogOptions::default() };
        let rows = |log: LogBuilder, keys: [i64; 2]| {
            let [first, second] = keys.map(|key| [TestValue::Int(key)]);
            log.table_map(1, "shop", "t", &[TestColumn::int()]).write_rows(1, &[&first, &second])
        };
        let log = LogBuilder::with_options(FILE, options)
            .mariadb_gtid("0-1-1".parse().unwrap(), 1)
            .query("shop", "CREATE TABLE t (id INT PRIMARY KEY)")
            .mariadb_gtid("0-1-2".parse().unwrap(), 0)
            .in_fragments(&[25, 3], |log| rows(rows(log, [1, 2]), [3, 4]))
            .xid(1)
            .mariadb_gtid("0-1-3".parse().unwrap(), 0)
            .in_fragments(&[19], |log| rows(log, [5, 6]))
            .xid(2);
        let server = ScriptedServer::new(log);
        server.complete();
        let class = "io.debezium.connector.mariadb.MariaDbConnector";
        for done in 0..=6 {
            let stores = TestStores::new();
            let config = config(&[("connector.class", class), ("max.batch.size", "1")]).unwrap();
            let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
            // The definition, and so many rows.
            for _ in 0..=done {
                engine.next_batch().await.unwrap().unwrap().acknowledge();
            }
            engine.control().flush().await.unwrap();
            engine.abandon().await;
            let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
            assert_eq!(drain(&mut engine).await.unwrap(), keys(done + 1..7), "{done} rows done");
            engine.close().await.unwrap();
        }
    });
}

#[test]
fn a_mariadb_log_is_read_by_its_gtids() {
    runtime().block_on(async {
        let options = LogOptions { server: TestServer::MariaDb, ..LogOptions::default() };
        let mut log = LogBuilder::with_options(FILE, options);
        for number in 1..5_i64 {
            let gtid = format!("0-1-{number}").parse().unwrap();
            log = match number {
                // A statement that is a unit of its own.
                1 => log.mariadb_gtid(gtid, 1).query("shop", "CREATE TABLE t (id INT PRIMARY KEY)"),
                _ => log
                    .mariadb_gtid(gtid, 0)
                    .table_map(1, "shop", "t", &[TestColumn::int()])
                    .write_rows(1, &[&[TestValue::Int(number - 1)]])
                    .xid(1),
            };
        }
        let server = ScriptedServer::new(log);
        server.complete();
        let stores = TestStores::new();
        let class = "io.debezium.connector.mariadb.MariaDbConnector";
        let config = config(&[("connector.class", class), ("max.batch.size", "1")]).unwrap();
        let mut engine = server.engine(config.clone(), &stores).unwrap().start().await.unwrap();
        for _ in 0..2 {
            engine.next_batch().await.unwrap().unwrap().acknowledge();
        }
        engine.control().flush().await.unwrap();
        engine.abandon().await;
        assert_eq!(stores.offset().unwrap().gtids.as_deref(), Some("0-1-2"));
        server.fault_after(3, Fault::Disconnect);
        let mut engine = server.engine(config, &stores).unwrap().start().await.unwrap();
        assert_eq!(drain(&mut engine).await.unwrap(), keys(2..4));
        engine.close().await.unwrap();
    });
}
