//! The engine as a library: what a host does with a running one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{Stream, TryStreamExt as _};

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::offset::{OffsetOrder, compare};
use holdfast_connector::offset_store::{self, OffsetKey, OffsetStore as _};
use holdfast_connector::{Batch, Config, Engine, EngineState, Error, RecordKind};
use holdfast_history::TableChange;
use holdfast_history::offset::SourceOffset;
use holdfast_history::store::HistoryStore as _;
use holdfast_tests::engine::{Properties, holdfast_binary};
use holdfast_tests::paths;
use holdfast_tests::server::{Flavour, Options, Server, shared};

use self::one_batch_bridge::{Sink, Written};
use self::risingwave_source::{HostHistory, Message, Objects, SplitState};

#[path = "../../connector/examples/one_batch_bridge.rs"]
#[expect(dead_code, reason = "its main is not run")]
mod one_batch_bridge;
#[path = "../../connector/examples/risingwave_source.rs"]
#[expect(dead_code, reason = "its main is not run")]
mod risingwave_source;
#[path = "../../connector/examples/testkit_pipeline.rs"]
mod testkit_pipeline;

const PATIENCE: Duration = Duration::from_secs(30);

fn config(server: &Server, name: &str) -> Config {
    Config::from_properties(&properties(server, name), Path::new(".")).unwrap().0
}

/// Properties that capture one database, as a file has them.
fn properties(server: &Server, name: &str) -> ConnectorProperties {
    let folder = paths::fresh(name).unwrap();
    let mut properties = Properties::new(server, &folder);
    properties.set("snapshot.mode", "no_data");
    properties.set("database.include.list", name);
    properties.set("include.schema.changes", "false");
    properties.set("offset.flush.interval.ms", "0");
    let path = folder.join("connector.properties");
    properties.write(&path).unwrap();
    ConnectorProperties::parse(&std::fs::read_to_string(&path).unwrap()).unwrap()
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

#[test]
fn the_example_of_a_test_without_a_server_runs() {
    testkit_pipeline::main().unwrap();
}

#[test]
fn a_stream_processor_drives_its_source() {
    for options in [Options::mysql(), Options::mariadb()] {
        on(&options, stream_processor);
    }
}

/// Messages of a reader until `enough`, and the batches that they came in.
async fn read_until(
    batches: &mut (impl Stream<Item = Result<Batch, Error>> + Unpin),
    mut enough: impl FnMut(&[Message]) -> bool,
) -> (Vec<Message>, Vec<Batch>) {
    let (mut messages, mut taken) = (Vec::new(), Vec::new());
    while !enough(&messages) {
        let batch = tokio::time::timeout(PATIENCE, batches.try_next()).await.expect("nothing came");
        let batch = batch.unwrap().expect("the reader ended");
        messages.extend(risingwave_source::messages(&batch));
        taken.push(batch);
    }
    (messages, taken)
}

/// The values of a column in the rows among `messages`.
fn values(messages: &[Message], column: &str) -> Vec<serde_json::Value> {
    let payloads = messages.iter().filter_map(|message| {
        if let Message::Data { payload, .. } = message { Some(payload) } else { None }
    });
    payloads
        .map(|payload| {
            let value: serde_json::Value = serde_json::from_str(payload).unwrap();
            value["after"][column].clone()
        })
        .collect()
}

async fn stream_processor(server: &Server) {
    let name = "processed";
    server
        .sql(
            "DROP DATABASE IF EXISTS processed; CREATE DATABASE processed; \
             CREATE TABLE processed.t (id INT PRIMARY KEY, price DECIMAL(9,2), at DATETIME(3))",
        )
        .unwrap();
    let properties = properties(server, name);
    let folder = paths::fresh("processed-history").unwrap();
    let history = || Arc::new(HostHistory(Objects(folder.clone())));
    let state = Arc::new(SplitState::new(None));
    let engine = risingwave_source::open(&properties, Arc::clone(&state), history()).await.unwrap();
    let control = engine.control();
    let mut reader = pin!(risingwave_source::batches(engine));
    let is_data = |message: &Message| matches!(message, Message::Data { .. });
    let rows = |wanted: usize| {
        move |all: &[Message]| all.iter().filter(|message| is_data(message)).count() >= wanted
    };

    // The definitions that are there come as messages before anything is written.
    let defines = |message: &Message| {
        matches!(message, Message::SchemaChange { payload, .. } if payload.contains("tableChanges")
            && payload.contains("price"))
    };
    let (_, defined) = read_until(&mut reader, |all| all.iter().any(defines)).await;
    assert!(control.streaming().await);
    server
        .sql("INSERT INTO processed.t VALUES (1, 9.90, '2026-01-02 03:04:05.678'), (2, 0.10, NULL)")
        .unwrap();
    let ends = |message: &Message| matches!(message, Message::Transaction { payload, .. } if payload.contains("END"));
    let (messages, taken) = read_until(&mut reader, |all| all.iter().any(ends)).await;
    assert_eq!(values(&messages, "price"), ["9.90", "0.10"], "decimals are text");
    assert_eq!(values(&messages, "at")[0], 1_767_323_045_678_000_i64, "microseconds");
    assert!(state.to_json().is_none_or(|json| json.contains("INITIAL")), "nothing is acknowledged");

    // A barrier: the state is what is done, and every message of it has its offset.
    defined.iter().chain(&taken).for_each(Batch::acknowledge);
    control.flush().await.unwrap();
    let Some(Message::Transaction { offset: last, .. }) = messages.last() else {
        panic!("the last message is the end of the transaction: {messages:?}")
    };
    let kept = state.offset().unwrap().unwrap();
    let last = SourceOffset::from_json(last).unwrap();
    let mariadb = server.flavour() == Flavour::MariaDb;
    assert_eq!(compare(&kept, &last, mariadb), OffsetOrder::Same, "{kept:?} {last:?}");
    assert!(state.to_json().unwrap().starts_with(r#"{"sourcePartition":{"server":"#));

    // Paused, limited, and on its way again, all on one connection.
    risingwave_source::command(&control, "pause").await.unwrap();
    server.sql("INSERT INTO processed.t VALUES (3, 1, NULL)").unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(300), reader.try_next()).await;
    assert!(waits.is_err(), "{waits:?}");
    risingwave_source::command(&control, "rate 1000").await.unwrap();
    risingwave_source::command(&control, "resume").await.unwrap();
    let (messages, _) = read_until(&mut reader, rows(1)).await;
    assert_eq!(values(&messages, "id"), [3]);

    // A history that went wrong is rebuilt at the frontier while the reader runs; what is not acknowledged comes again.
    let mut wrong = history().load().await.unwrap().pop().unwrap();
    for change in &mut wrong.table_changes {
        if let TableChange::Create(table) = change {
            Arc::make_mut(table).columns.pop();
        }
    }
    history().append(&[wrong]).await.unwrap();
    let objects = std::fs::read_dir(&folder).unwrap().count();
    let report = risingwave_source::command(&control, "refresh processed.t").await.unwrap();
    assert!(report.contains("processed.t"), "{report}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), objects + 1, "one append, one object");
    server.sql("ALTER TABLE processed.t ADD COLUMN n INT; INSERT INTO processed.t VALUES (4, 1, NULL, 7)").unwrap();
    let (messages, taken) = read_until(&mut reader, rows(2)).await;
    assert_eq!(values(&messages, "id"), [3, 4]);
    assert_eq!(values(&messages, "n")[1], 7);
    assert!(messages.iter().any(|message| matches!(message, Message::SchemaChange { .. })));
    assert_eq!(control.status().reconnects, 0);
    taken.iter().for_each(Batch::acknowledge);
    control.flush().await.unwrap();
    risingwave_source::command(&control, "stop").await.unwrap();
    while reader.try_next().await.unwrap().is_some() {}

    // A state that Debezium wrote, at the first barrier, and a history that is lost: it is rebuilt there.
    server.sql("DELETE FROM processed.t WHERE id = 1").unwrap();
    let folder = paths::fresh("processed-lost").unwrap();
    let mut old = SourceOffset { holdfast: None, ..kept };
    old.other.clear();
    let old = format!(
        r#"{{"sourcePartition":{{"server":"RW_CDC_1001"}},"sourceOffset":{}}}"#,
        old.to_json()
    );
    let state = Arc::new(SplitState::new(Some(old)));
    let history = Arc::new(HostHistory(Objects(folder)));
    // Today's definition would not fit the rows before the ALTER, and is refused for them.
    let engine = risingwave_source::open(&properties, state, Arc::clone(&history)).await.unwrap();
    let mut reader = pin!(risingwave_source::batches(engine));
    let refused = reader.try_next().await.unwrap_err();
    assert!(refused.to_string().contains("processed.t"), "{refused}");
    assert!(!history.exists().await.unwrap(), "nothing was written");
    let after = Arc::new(SplitState::new(None));
    let at_end = holdfast_connector::current_offset(&config(server, name)).await.unwrap();
    let key = OffsetKey { engine: name.to_owned(), server: "RW_CDC_1001".to_owned() };
    after.store(&key, &SourceOffset { holdfast: None, ..at_end }).await.unwrap();
    server.sql("INSERT INTO processed.t VALUES (5, 1, NULL, 8)").unwrap();
    let engine = risingwave_source::open(&properties, after, history).await.unwrap();
    let mut reader = pin!(risingwave_source::batches(engine));
    let (messages, _) = read_until(&mut reader, rows(1)).await;
    assert_eq!((values(&messages, "id"), values(&messages, "n")), (vec![5.into()], vec![8.into()]));
}

#[test]
fn a_blocking_bridge_with_a_ledger_applies_every_record_once() {
    let server = shared(&Options::mysql()).unwrap();
    let name = "bridged";
    table(&server, name);
    server.sql("DROP DATABASE IF EXISTS bridged_sink; CREATE DATABASE bridged_sink").unwrap();
    let mut properties = properties(&server, name);
    properties.set("max.batch.size", "4");
    properties.set("tombstones.on.delete", "true");
    let config = Config::from_properties(&properties, Path::new(".")).unwrap().0;
    // The bridge waits for batches, so that there has to be a place to start at before there is something to read.
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let engine = Engine::builder(config.clone()).start().await.unwrap();
        assert!(engine.control().streaming().await);
        engine.close().await.unwrap();
    });
    insert(&server, name, 0..10);
    let url = format!(
        "mysql://{}:{}@{}:{}/bridged_sink",
        server.user(),
        server.password(),
        server.host(),
        server.port()
    );
    let mut sink = Sink::open(&url).unwrap();
    let mut all = Written::default();
    // Some batches are written and never acknowledged: a crash between the two.
    let mut writes = |crash_at: usize, until: u64| {
        let mut batches = 0;
        one_batch_bridge::bridge(config.clone(), |batch| {
            let written = sink.write(batch)?;
            all.applied += written.applied;
            all.known += written.known;
            batches += 1;
            if batches == crash_at || all.applied >= until {
                return Err("the bridge breaks".into());
            }
            Ok(())
        })
        .unwrap_err();
        all
    };
    assert_eq!(writes(2, u64::MAX), Written { applied: 8, known: 0 });
    assert_eq!(writes(usize::MAX, 10), Written { applied: 10, known: 4 });
    server
        .sql(
            "UPDATE bridged.t SET v = 1 WHERE id < 3; UPDATE bridged.t SET id = 100 WHERE id = 9; \
             DELETE FROM bridged.t WHERE id = 8; INSERT INTO bridged.t VALUES (11, 4)",
        )
        .unwrap();
    // 3 updates, a delete and a create of the changed key, a delete, a create: 7, and 2 tombstones.
    let before_crash = writes(1, u64::MAX);
    assert!(before_crash.applied < 17, "{before_crash:?}");
    let done = writes(usize::MAX, 17);
    assert_eq!(done.applied, 17);
    assert!(done.known > before_crash.known, "the ledger met what it knew: {done:?}");
    let source = server.query("SELECT id, v FROM bridged.t ORDER BY id").unwrap();
    let sunk = server
        .query(
            "SELECT JSON_EXTRACT(content, '$.id') AS id, JSON_EXTRACT(content, '$.v') AS v \
             FROM bridged_sink.`rows` ORDER BY JSON_EXTRACT(content, '$.id')",
        )
        .unwrap();
    assert_eq!(sunk, source);
}
