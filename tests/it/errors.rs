//! Bad input has its error: exit code, and a message that says what, where, and what to do.
//!
//! Each on the real binary. No run waits longer than it takes: what cannot pass fails at once.

mod attacks;
mod positions;
mod proxy;
mod rights;
mod server;
mod stores;
mod streaming;
mod usage;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::paths;
use holdfast_tests::server::Server;

/// Longest time for anything that has to come.
const LIMIT: Duration = Duration::from_secs(60);

/// An error that cannot pass is told at once: far below the 10 seconds between retries.
const AT_ONCE: Duration = Duration::from_secs(9);

/// When to give up on an engine that should have failed.
const FAILS_WITHIN: Duration = Duration::from_secs(20);

/// The connections that get the log.
const DUMPS: &str =
    "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'";

/// A database with the table `t` and one row in it, and the files of an engine that captures it.
struct Stage<'s> {
    server: &'s Server,
    database: &'static str,
    folder: PathBuf,
    properties: Properties,
}

impl<'s> Stage<'s> {
    fn new(server: &'s Server, database: &'static str) -> Self {
        server
            .sql(&format!(
                "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; \
                 CREATE TABLE {database}.t (id INT PRIMARY KEY); INSERT INTO {database}.t VALUES (1)"
            ))
            .unwrap();
        let folder = paths::fresh(database).unwrap();
        let mut properties = Properties::new(server, &folder);
        properties.set("database.include.list", database);
        properties.set("retriable.restart.connector.wait.ms", "100");
        Self { server, database, folder, properties }
    }

    /// As [`new`](Self::new), with an offset and a history of a run that has ended.
    fn stored(server: &'s Server, database: &'static str) -> Self {
        let stage = Self::new(server, database);
        let mut process = stage.start("stored");
        wait_for_row(&mut process, 1);
        process.stop().unwrap();
        stage
    }

    fn set(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.properties.set(key, value);
        self
    }

    fn sql(&self, script: &str) {
        self.server.sql(script).unwrap();
    }

    fn insert(&self, id: u32) {
        self.sql(&format!("INSERT INTO {}.t VALUES ({id})", self.database));
    }

    fn start(&self, name: &str) -> Process {
        Process::start(
            Engine::Holdfast,
            &self.properties,
            &self.folder,
            name,
            RunOptions::default(),
        )
        .unwrap()
    }

    /// The engine ends by itself, at once, with this code, and its log has all of these texts.
    fn fails(&self, code: i32, texts: &[&str]) -> Process {
        let start = Instant::now();
        let mut process = self.start("failing");
        let status = process.wait_end(FAILS_WITHIN).unwrap();
        let log = process.log();
        judge(status.code(), &log, code, texts);
        assert!(start.elapsed() < AT_ONCE, "it took {:?}:\n{log}", start.elapsed());
        assert!(!log.contains("connecting again"), "tried again:\n{log}");
        process
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces `from` in the stored offset, which must have it.
    fn edit_offset(&self, from: &str, to: &str) {
        let path = self.file("offsets.dat");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in {text}");
        fs::write(&path, text.replace(from, to)).unwrap();
    }

    /// A member of the stored offset.
    fn offset(&self, member: &str) -> Json {
        let text = fs::read_to_string(self.file("offsets.dat")).unwrap();
        let document = Json::parse(&text).unwrap();
        let (_, offset) = document.get("offsets").unwrap().members().first().unwrap();
        offset.get(member).unwrap_or(&Json::Null).clone()
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The code and the texts, and never a panic.
fn judge(found: Option<i32>, log: &str, code: i32, texts: &[&str]) {
    assert_eq!(found, Some(code), "exit code; its log:\n{log}");
    for text in texts {
        assert!(log.contains(text), "{text:?} is missing in its log:\n{log}");
    }
    assert!(!log.contains("panicked"), "{log}");
}

/// The ids of the rows of `t` that came, in their order.
fn ids(records: &[Record]) -> Vec<i64> {
    records.iter().filter_map(|record| record.value().get("after")?.get("id")?.as_i64()).collect()
}

fn wait_for_row(process: &mut Process, id: i64) {
    process
        .wait_for(&format!("row {id}"), LIMIT, |record| ids(std::slice::from_ref(record)) == [id])
        .unwrap();
}

/// A global variable with another value until this is dropped.
struct Global<'s> {
    server: &'s Server,
    name: &'static str,
    before: String,
}

impl<'s> Global<'s> {
    fn set(server: &'s Server, name: &'static str, value: &str) -> Self {
        let before = server.value(&format!("SELECT @@GLOBAL.{name}")).unwrap();
        server.sql(&format!("SET GLOBAL {name} = '{value}'")).unwrap();
        Self { server, name, before }
    }
}

impl Drop for Global<'_> {
    fn drop(&mut self) {
        let restored = self.server.sql(&format!("SET GLOBAL {} = '{}'", self.name, self.before));
        if !std::thread::panicking() {
            restored.unwrap();
        }
    }
}

/// A file that stands where a folder should be, so that nothing can be made below it, not even by root.
fn not_a_folder(folder: &Path) -> PathBuf {
    let path = folder.join("a-file");
    fs::write(&path, "x").unwrap();
    path
}
