//! A source whose captured tables are quiet: its offset moves on with what the log has, and never too far.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::offset_store::{self, OffsetKey};
use holdfast_connector::{Batch, Config, Engine, RecordKind};
use holdfast_history::SourceOffset;
use holdfast_tests::engine::Properties;
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};

use crate::story::Story;

const LIMIT: Duration = Duration::from_secs(60);

/// An engine for a database of that name, with heartbeats, and a busy table elsewhere.
fn quiet(server: &Server, name: &str) -> Config {
    server
        .sql(&format!(
            "DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; CREATE TABLE {name}.t (id INT PRIMARY KEY);
             DROP DATABASE IF EXISTS {name}_busy; CREATE DATABASE {name}_busy;
             CREATE TABLE {name}_busy.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)"
        ))
        .unwrap();
    let folder = paths::fresh(name).unwrap();
    let mut properties = Properties::new(server, &folder);
    for (key, value) in [
        ("snapshot.mode", "no_data"),
        ("database.include.list", name),
        ("include.schema.changes", "false"),
        ("offset.flush.interval.ms", "0"),
        ("heartbeat.interval.ms", "50"),
    ] {
        properties.set(key, value);
    }
    let path = folder.join("connector.properties");
    properties.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let parsed = ConnectorProperties::parse(&text).unwrap();
    Config::from_properties(&parsed, Path::new(&folder)).unwrap().0
}

/// The next batch with a heartbeat, and the heartbeat's offset.
async fn heartbeat(engine: &mut Engine) -> (Batch, SourceOffset) {
    loop {
        let batch = tokio::time::timeout(LIMIT, engine.next_batch()).await.unwrap().unwrap();
        let batch = batch.expect("the engine goes on");
        let offset = batch
            .changes()
            .filter(|change| matches!(change.kind(), RecordKind::Heartbeat))
            .last()
            .map(|change| change.offset());
        if let Some(offset) = offset {
            return (batch, offset);
        }
        batch.acknowledge();
    }
}

/// Acknowledges heartbeats until one has an offset of which `is_wanted` says so.
async fn until(
    engine: &mut Engine,
    is_wanted: impl Fn(&SourceOffset) -> bool,
) -> Vec<SourceOffset> {
    let mut seen = Vec::new();
    let begun = Instant::now();
    loop {
        let (batch, offset) = heartbeat(engine).await;
        batch.acknowledge();
        let done = is_wanted(&offset);
        seen.push(offset);
        if done {
            return seen;
        }
        assert!(begun.elapsed() < LIMIT, "the offset stays: {:?}", seen.last());
    }
}

/// Where the server's log ends.
fn end_of_log(server: &Server) -> (String, u64) {
    let place = server.query("SHOW BINARY LOG STATUS").unwrap();
    (place[0][0].clone(), place[0][1].parse().unwrap())
}

/// The places between transactions of a file.
fn boundaries(server: &Server, file: &str) -> BTreeSet<u64> {
    let events = server.query(&format!("SHOW BINLOG EVENTS IN '{file}'")).unwrap();
    let starts = events.iter().filter(|event| event[2].to_uppercase().contains("GTID"));
    let mut places: BTreeSet<u64> = starts.map(|event| event[1].parse().unwrap()).collect();
    places.extend(events.last().map(|event| event[4].parse::<u64>().unwrap()));
    places
}

fn on(test: impl AsyncFnOnce(&Server)) {
    let server = shared(&Options::mysql()).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(test(&server));
}

#[test]
fn the_offset_of_an_idle_source_moves_on() {
    on(async |server| {
        let mut engine = Engine::builder(quiet(server, "idle_on")).start().await.unwrap();
        // Nothing at all has happened.
        let (batch, first) = heartbeat(&mut engine).await;
        batch.acknowledge();
        assert_eq!(first.file, end_of_log(server).0);

        let insert = "INSERT INTO idle_on_busy.t (a) VALUES (1), (2);";
        server.sql(&insert.repeat(1000)).unwrap();
        let (file, end) = end_of_log(server);
        let seen = until(&mut engine, |offset| offset.file == file && offset.pos == end).await;
        let boundaries = boundaries(server, &file);
        for offset in &seen {
            assert!(boundaries.contains(&offset.pos), "{offset:?} is inside a transaction");
            assert_eq!((offset.event, offset.row), (0, 0), "{offset:?}");
        }
        assert!(seen.is_sorted_by_key(|offset| offset.pos), "{seen:?}");

        server.sql(&"FLUSH BINARY LOGS;".repeat(5)).unwrap();
        let (newest, _) = end_of_log(server);
        assert_ne!(newest, file);
        until(&mut engine, |offset| offset.file == newest).await;
        engine.close().await.unwrap();
    });
}

#[test]
fn heartbeats_inside_a_transaction_lead_back_to_its_beginning() {
    on(async |server| {
        let mut engine = Engine::builder(quiet(server, "idle_open")).start().await.unwrap();
        heartbeat(&mut engine).await.0.acknowledge();
        let insert =
            format!("INSERT INTO idle_open_busy.t (a) VALUES {};", vec!["(1)"; 1000].join(","));
        let (file, before) = end_of_log(server);
        server.sql(&format!("BEGIN;{}COMMIT", insert.repeat(300))).unwrap();
        let (_, end) = end_of_log(server);
        let seen = until(&mut engine, |offset| offset.pos == end).await;
        for offset in &seen {
            let unit = offset.holdfast.as_ref().and_then(|ours| ours.unit_pos);
            let apart = offset.pos <= before || offset.pos == end;
            assert!(apart || unit == Some(before), "{offset:?} of {file}: {before} to {end}");
        }
        engine.close().await.unwrap();
    });
}

#[test]
fn a_heartbeat_does_not_pass_what_is_not_acknowledged() {
    on(async |server| {
        let config = quiet(server, "idle_held");
        let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
        let stored = async || {
            let store = offset_store::open_offsets(&config).unwrap();
            store.load(&key).await.unwrap().map_or(0, |offset| offset.pos)
        };
        let mut engine = Engine::builder(config.clone()).start().await.unwrap();
        heartbeat(&mut engine).await.0.acknowledge();
        server.sql("INSERT INTO idle_held_busy.t (a) VALUES (1)").unwrap();
        let (_, end) = end_of_log(server);
        let held = loop {
            let (batch, offset) = heartbeat(&mut engine).await;
            if offset.pos == end {
                break batch;
            }
            batch.acknowledge();
        };
        server.sql("INSERT INTO idle_held_busy.t (a) VALUES (2)").unwrap();
        let (_, last) = end_of_log(server);
        until(&mut engine, |offset| offset.pos == last).await;
        until(&mut engine, |_| true).await;
        let place = stored().await;
        // What was filtered in front of it is done.
        assert!(place <= end, "{place} is stored, and {end} is not acknowledged");
        held.acknowledge();
        let begun = Instant::now();
        while stored().await < last {
            assert!(begun.elapsed() < LIMIT, "what was held is acknowledged");
            until(&mut engine, |_| true).await;
        }
        engine.close().await.unwrap();
    });
}

#[test]
fn purged_logs_that_were_read_are_no_loss() {
    let server = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&server, "idle_purged", &[]);
    let (here, _) = end_of_log(&server);
    assert_eq!(story.offset()[0].as_text(), Some(here.as_str()));
    // Everything was read when the log goes.
    server.sql("FLUSH BINARY LOGS").unwrap();
    let (newest, _) = end_of_log(&server);
    server.sql(&format!("PURGE BINARY LOGS TO '{newest}'")).unwrap();
    let oldest = server.query("SHOW BINARY LOGS").unwrap()[0][0].clone();
    assert_eq!(oldest, newest);
    story.sql("INSERT INTO t VALUES (2, 2)");
    assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);
    story.end();
}
