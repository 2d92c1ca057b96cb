//! The engine as a library: what a host does with a running one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::offset_store::{self, OffsetKey};
use holdfast_connector::{Batch, Config, Engine, EngineState, RecordKind};
use holdfast_tests::engine::{Properties, holdfast_binary};
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};

const PATIENCE: Duration = Duration::from_secs(30);

fn config(server: &Server, name: &str) -> Config {
    let folder = paths::fresh(name).unwrap();
    let mut properties = Properties::new(server, &folder);
    properties.set("snapshot.mode", "no_data");
    properties.set("database.include.list", name);
    properties.set("include.schema.changes", "false");
    properties.set("offset.flush.interval.ms", "0");
    let path = folder.join("connector.properties");
    properties.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let parsed = ConnectorProperties::parse(&text).unwrap();
    Config::from_properties(&parsed, Path::new(&folder)).unwrap().0
}

fn table(server: &Server, database: &str) {
    server
        .sql(&format!(
            "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; \
             CREATE TABLE {database}.t (id INT PRIMARY KEY, v INT)"
        ))
        .unwrap();
}

fn insert(server: &Server, database: &str, ids: std::ops::Range<u32>) {
    let rows: Vec<String> = ids.map(|id| format!("({id}, 0)")).collect();
    server.sql(&format!("INSERT INTO {database}.t VALUES {}", rows.join(", "))).unwrap();
}

/// The ids of a batch's rows.
fn ids(batch: &Batch) -> Vec<u32> {
    let rows = batch.changes().filter(|change| matches!(change.kind(), RecordKind::Data(_)));
    rows.map(|change| {
        let value: serde_json::Value = serde_json::from_slice(change.key()).unwrap();
        let id = value.pointer("/payload/id").or_else(|| value.pointer("/id")).unwrap();
        u32::try_from(id.as_u64().unwrap()).unwrap()
    })
    .collect()
}

/// Runs `test` on a server of its own for the time; the guard is held outside of the runtime.
fn on(options: &Options, test: impl AsyncFnOnce(&Server)) {
    let server = shared(options).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(test(&server));
}

async fn next(engine: &mut Engine) -> Option<Batch> {
    tokio::time::timeout(PATIENCE, engine.next_batch()).await.expect("no batch came").unwrap()
}

async fn nothing_comes(engine: &mut Engine) {
    let come = tokio::time::timeout(Duration::from_millis(700), engine.next_batch()).await;
    assert!(come.is_err(), "a batch came: {come:?}");
}

/// Takes rows until there are as many; acknowledges what it takes.
async fn take(engine: &mut Engine, rows: usize) -> Vec<u32> {
    let mut all = Vec::new();
    while all.len() < rows {
        let batch = next(engine).await.expect("the engine ended");
        all.extend(ids(&batch));
        batch.acknowledge();
    }
    all
}

#[test]
fn a_paused_engine_gives_nothing_out_and_goes_on_where_it_stood() {
    on(&Options::mysql(), pause);
}

async fn pause(server: &Server) {
    table(server, "pausing");
    let mut engine = Engine::builder(config(server, "pausing")).paused().start().await.unwrap();
    let control = engine.control();
    assert!(control.paused().await);
    // Nothing was captured yet, so that this is part of the snapshot, which has no data.
    insert(server, "pausing", 0..3);
    nothing_comes(&mut engine).await;
    control.resume();
    assert!(control.streaming().await);
    insert(server, "pausing", 3..6);
    assert_eq!(take(&mut engine, 3).await, [3, 4, 5]);

    control.pause();
    assert!(control.paused().await);
    insert(server, "pausing", 6..9);
    nothing_comes(&mut engine).await;
    // Whoever kills the connection meanwhile is not noticed: it is made again.
    let dump = server
        .value("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        .unwrap();
    server.sql(&format!("KILL {dump}")).unwrap();
    nothing_comes(&mut engine).await;
    assert_eq!(control.status().state, EngineState::Paused);
    control.resume();
    assert_eq!(take(&mut engine, 3).await, [6, 7, 8]);
    let status = control.status();
    assert_eq!((status.open_groups, status.last_error), (0, None), "nothing was lost or told");
    assert!(status.position.is_some() && status.frontier.is_some(), "{:?}", control.status());

    // A stop ends a pause, and what was read is given out.
    control.pause();
    assert!(control.paused().await);
    control.stop();
    assert!(next(&mut engine).await.is_none());
    engine.close().await.unwrap();
}

#[test]
fn a_rate_limit_changes_without_a_new_connection() {
    on(&Options::mysql(), limit);
}

async fn limit(server: &Server) {
    table(server, "limited");
    let mut engine =
        Engine::builder(config(server, "limited")).rate_limit(Some(0)).start().await.unwrap();
    let control = engine.control();
    assert!(control.paused().await);
    nothing_comes(&mut engine).await;
    control.set_rate_limit(Some(100));
    assert!(control.streaming().await);
    insert(server, "limited", 0..200);
    let begun = Instant::now();
    assert_eq!(take(&mut engine, 100).await.len(), 100);
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(700) && took < Duration::from_secs(5), "{took:?}");
    control.set_rate_limit(None);
    let begun = Instant::now();
    assert_eq!(take(&mut engine, 100).await, (100..200).collect::<Vec<_>>());
    assert!(begun.elapsed() < Duration::from_millis(700), "{:?}", begun.elapsed());
    assert_eq!(control.status().reconnects, 0);
    engine.close().await.unwrap();
}

#[test]
fn a_redelivery_begins_at_the_frontier_with_the_definitions_of_then() {
    on(&Options::mysql(), redelivery);
}

async fn redelivery(server: &Server) {
    table(server, "again");
    let mut engine = Engine::builder(config(server, "again")).start().await.unwrap();
    let control = engine.control();
    assert!(control.streaming().await);
    insert(server, "again", 0..2);
    assert_eq!(take(&mut engine, 2).await, [0, 1]);
    insert(server, "again", 2..5);
    server.sql("ALTER TABLE again.t ADD COLUMN w INT").unwrap();
    server.sql("INSERT INTO again.t VALUES (5, 0, 0)").unwrap();
    let mut first: Vec<Batch> = Vec::new();
    while first.iter().map(|batch| ids(batch).len()).sum::<usize>() < 4 {
        first.push(next(&mut engine).await.unwrap());
    }
    // The first row is done, the others could not be processed.
    first[0].changes().next().unwrap().acknowledge();
    control.redeliver();
    assert_eq!(take(&mut engine, 3).await, [3, 4, 5]);
    let stale = control.status().acks.stale;
    first[0].acknowledge();
    assert!(control.status().acks.stale > stale, "handles from before are stale");
    insert_wide(server, 6);
    assert_eq!(take(&mut engine, 1).await, [6]);
    assert_eq!(control.status().open_groups, 0);
    engine.close_within(Duration::from_secs(1)).await.unwrap();
}

fn insert_wide(server: &Server, id: u32) {
    server.sql(&format!("INSERT INTO again.t VALUES ({id}, 0, 0)")).unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "no executor runs in this test")]
fn metrics_are_served_while_records_are_written() {
    let server = shared(&Options::mysql()).unwrap();
    table(&server, "measured");
    let folder = paths::fresh("measured").unwrap();
    let mut properties = Properties::new(&server, &folder);
    properties.set("database.include.list", "measured");
    insert(&server, "measured", 0..5);
    let path = folder.join("connector.properties");
    properties.write(&path).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut process = Command::new(holdfast_binary().unwrap())
        .args(["run", "--idle-timeout", "20", "--metrics", &address, "--config"])
        .arg(&path)
        .arg("--output")
        .arg(folder.join("out.jsonl"))
        .spawn()
        .unwrap();
    let wanted = [
        r#"holdfast_records_total{server="spa",kind="read"} 5"#,
        r#"holdfast_snapshot_rows_total{server="spa"} 5"#,
        r#"holdfast_connected{server="spa"} 1"#,
        r#"holdfast_open_groups{server="spa"} 0"#,
        "# TYPE holdfast_lag_seconds gauge",
        "# HELP holdfast_offset_regressions_total",
    ];
    let wanted = wanted.map(|line| line.replace("spa", holdfast_tests::engine::PREFIX));
    let begun = Instant::now();
    let mut text = String::new();
    while begun.elapsed() < Duration::from_secs(18)
        && !wanted.iter().all(|line| text.contains(line))
    {
        std::thread::sleep(Duration::from_millis(300));
        text = scrape(&address).unwrap_or_default();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    for line in &wanted {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}

fn scrape(address: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn an_idle_restart_leaves_the_stored_offset_as_it_is() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, idle_restart);
    }
}

async fn idle_restart(server: &Server) {
    table(server, "idle");
    let config = config(server, "idle");
    let mut engine = Engine::builder(config.clone()).start().await.unwrap();
    assert!(engine.control().streaming().await);
    insert(server, "idle", 0..2);
    take(&mut engine, 2).await;
    // The commit moves the place behind the transaction.
    tokio::time::sleep(Duration::from_millis(500)).await;
    engine.close().await.unwrap();
    let stored = offset_of(&config).await;
    let engine = Engine::builder(config.clone()).start().await.unwrap();
    let control = engine.control();
    assert!(control.streaming().await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(control.status().offset_commits, 0);
    engine.close().await.unwrap();
    assert_eq!(offset_of(&config).await, stored);
    assert!(stored.server_id.is_some(), "{stored:?}");
}

async fn offset_of(config: &Config) -> holdfast_history::offset::SourceOffset {
    let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
    offset_store::open_offsets(config).unwrap().load(&key).await.unwrap().unwrap()
}
