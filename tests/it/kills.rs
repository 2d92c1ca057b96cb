//! The engine killed again and again while it streams: what all runs together gave, each identity once, is the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Options, Server, shared};
use holdfast_tests::{case, paths};

/// How often the engine is killed.
const KILLS: u32 = 60;

/// A small generator of pseudo-random numbers: the same seed gives the same workload and the same moments.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn seed() -> u64 {
    let seed = std::env::var("HOLDFAST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_260_101);
    println!("seed {seed}; HOLDFAST_SEED sets another");
    seed
}

/// Some transactions: single rows, many rows, key changes, deletes, and now and then a new column.
fn workload(random: &mut Random, columns: &mut u32, database: &str) -> String {
    let mut script = format!("USE {database};\n");
    for _ in 0..15 {
        let id = random.below(400);
        let text = random.below(1_000_000);
        script.push_str("BEGIN;\n");
        for _ in 0..=random.below(3) {
            let other = random.below(400);
            match random.below(6) {
                0 | 1 => script.push_str(&format!(
                    "REPLACE INTO t(id,a,b) VALUES ({other},{text},'r{text}');\n"
                )),
                2 => script
                    .push_str(&format!("UPDATE t SET a=a+1 WHERE id BETWEEN {id} AND {id}+40;\n")),
                3 => script
                    .push_str(&format!("UPDATE IGNORE t SET id={other}+1000 WHERE id={id};\n")),
                4 => script
                    .push_str(&format!("UPDATE IGNORE t SET id={id} WHERE id={other}+1000;\n")),
                _ => script.push_str(&format!("DELETE FROM t WHERE id={other};\n")),
            }
        }
        script.push_str("COMMIT;\n");
    }
    if random.below(12) == 0 && *columns < 6 {
        *columns += 1;
        script.push_str(&format!("ALTER TABLE t ADD COLUMN c{columns} INT DEFAULT {columns};\n"));
    }
    script
}

/// What a record says of its row: the key, and the row unless it is gone.
fn apply(record: &Record, table: &mut BTreeMap<i64, Json>) {
    let Some(op) = record.value().text("op") else { return };
    let id = record.key().get("id").and_then(Json::as_i64).unwrap();
    match op {
        "d" => {
            assert!(table.remove(&id).is_some(), "a row is deleted that was never made: {id}");
        }
        _ => {
            table.insert(id, record.value().get("after").unwrap().clone());
        }
    }
}

fn identity(record: &Record) -> Option<String> {
    record.0.get("headers")?.text("__holdfast.id").map(ToOwned::to_owned)
}

/// Kills the engine at random moments of a changing table, then compares.
fn campaign(name: &str, server: &Server) {
    let database = format!("kill_{}", name.replace('-', "_"));
    let files = paths::fresh(name).unwrap();
    server
        .sql(&format!(
            "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database};
             CREATE TABLE t(id INT PRIMARY KEY, a INT, b VARCHAR(20));
             INSERT INTO t WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i+1 FROM n WHERE i<199)
             SELECT i, i, CONCAT('s', i) FROM n;"
        ))
        .unwrap();
    case::make_marker(server).unwrap();
    let mut properties = Properties::new(server, &files);
    properties.set("database.include.list", format!("{database},{}", case::MARKER));
    properties.set("holdfast.headers.identity", "true");
    properties.set("max.batch.size", "16");
    properties.set("max.queue.size", "64");
    let mut random = Random(seed());

    let mut records = Vec::new();
    let mut first =
        Process::start(Engine::Holdfast, &properties, &files, "run-0", RunOptions::default())
            .unwrap();
    case::snapshot_end(&mut first).unwrap();
    case::settle(&mut first, server, 2).unwrap();
    first.kill().unwrap();
    records.extend_from_slice(first.records());

    let stop = AtomicBool::new(false);
    // Scripts that may still be written: a few for each run of the engine, however fast the server is.
    let budget = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let mut writer_random = Random(random.below(u64::MAX >> 33));
        let (stop, budget, database) = (&stop, &budget, &database);
        let writer = scope.spawn(move || {
            let mut columns = 0;
            while !stop.load(Ordering::Relaxed) {
                let taken = budget
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if taken.is_err() {
                    server.sql("DO SLEEP(0.01)").unwrap();
                    continue;
                }
                server.sql(&workload(&mut writer_random, &mut columns, database)).unwrap();
            }
        });
        for run in 1..=KILLS {
            let name = format!("run-{run}");
            budget.fetch_add(5, Ordering::Relaxed);
            let mut process =
                Process::start(Engine::Holdfast, &properties, &files, &name, RunOptions::default())
                    .unwrap();
            let moment = Duration::from_millis(20 + random.below(400));
            // No record is waited for: the time is the point, and its end is no failure.
            let _ = process.wait_for("the moment", moment, |_| false);
            process.kill().unwrap();
            let log = process.log();
            assert!(!log.contains("ERROR"), "run {run}:\n{log}");
            records.extend_from_slice(process.records());
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let mut last =
        Process::start(Engine::Holdfast, &properties, &files, "last", RunOptions::default())
            .unwrap();
    case::settle(&mut last, server, 3).unwrap();
    last.stop().unwrap();
    records.extend_from_slice(last.records());

    let mut seen: HashMap<String, Json> = HashMap::new();
    let mut table = BTreeMap::new();
    let mut repeated = 0;
    for record in records.iter().filter(|record| record.source().text("db") == Some(&database)) {
        let Some(id) = identity(record) else { continue };
        let mut live = record.clone();
        holdfast_tests::normalise::live(&mut live);
        match seen.get(&id) {
            None => {
                apply(record, &mut table);
                seen.insert(id, live.0);
            }
            Some(before) => {
                repeated += 1;
                assert_eq!(*before, live.0, "another content under the identity {id}");
            }
        }
    }
    println!("{} records, {repeated} of them repeated, {KILLS} kills", seen.len());
    assert!(
        seen.len() > 1000,
        "the workload is too small to show anything: {} records",
        seen.len()
    );

    let rows = server.query(&format!("SELECT id, a, b FROM {database}.t ORDER BY id")).unwrap();
    let expected: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
    let rebuilt: Vec<String> = table
        .iter()
        .map(|(id, row)| {
            let a = row.get("a").and_then(Json::as_i64).unwrap();
            format!("{id}|{a}|{}", row.text("b").unwrap())
        })
        .collect();
    assert_eq!(rebuilt, expected);
    std::fs::remove_dir_all(files).unwrap();
}

#[test]
fn a_killed_engine_rebuilds_the_table_with_gtids() {
    campaign("kills-gtid", &shared(&Options::mysql()).unwrap());
}

#[test]
fn a_killed_engine_rebuilds_the_table_without_gtids_and_with_compression() {
    let options = Options::mysql().without_gtids().arg("--binlog-transaction-compression=ON");
    campaign("kills-compressed", &Server::start(options).unwrap());
}

#[test]
fn a_killed_engine_rebuilds_the_table_on_mariadb() {
    campaign("kills-mariadb", &shared(&Options::mariadb()).unwrap());
}
