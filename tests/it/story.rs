//! One table, one engine after the other on the same files, and what its consumer got.

use std::path::PathBuf;

use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::Server;
use holdfast_tests::{case, paths};

/// A database with a table `t (id, a)` and one row, and an engine that has taken its snapshot and ended.
pub(crate) struct Story<'s> {
    pub(crate) server: &'s Server,
    pub(crate) database: &'static str,
    pub(crate) files: PathBuf,
    pub(crate) properties: Properties,
    pub(crate) markers: i64,
    pub(crate) runs: u32,
}

impl<'s> Story<'s> {
    pub(crate) fn new(
        server: &'s Server,
        database: &'static str,
        settings: &[(&str, &str)],
    ) -> Self {
        server
            .sql(&format!(
                "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database};
                 CREATE TABLE t (id INT PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 1);
                 CREATE TABLE u (id INT PRIMARY KEY)"
            ))
            .unwrap();
        case::make_marker(server).unwrap();
        let files = paths::fresh(database).unwrap();
        let mut properties = Properties::new(server, &files);
        properties.set("database.include.list", format!("{database},{}", case::MARKER));
        for (key, value) in settings {
            properties.set(key, *value);
            if *key == "holdfast.history.url" {
                properties.remove("schema.history.internal");
                properties.remove("schema.history.internal.file.filename");
            }
        }
        let mut story = Self { server, database, files, properties, markers: 1, runs: 0 };
        let mut process = story.start(RunOptions::default());
        case::snapshot_end(&mut process).unwrap();
        story.settle(&mut process);
        process.stop().unwrap();
        story
    }

    pub(crate) fn start(&mut self, options: RunOptions) -> Process {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        Process::start(Engine::Holdfast, &self.properties, &self.files, &name, options).unwrap()
    }

    /// Waits until all that was done so far has come.
    pub(crate) fn settle(&mut self, process: &mut Process) {
        self.markers += 1;
        case::settle(process, self.server, self.markers).unwrap();
    }

    pub(crate) fn sql(&self, script: &str) {
        self.server.sql(&format!("USE {}; {script}", self.database)).unwrap();
    }

    /// All rows and statements from the offset on, in short, all of them acknowledged.
    pub(crate) fn run(&mut self) -> Vec<String> {
        let mut process = self.start(RunOptions::default());
        self.settle(&mut process);
        let records = case::records_of_case(process.records());
        process.stop().unwrap();
        assert!(!process.log().contains("ERROR"), "{}", process.log());
        briefs(&records)
    }

    /// The records from the offset on. Nothing of it is acknowledged, and then the engine is killed.
    pub(crate) fn peek(&mut self) -> Vec<Record> {
        let mut process = self.start(RunOptions { ack_first: Some(0), ..RunOptions::default() });
        self.settle(&mut process);
        process.kill().unwrap();
        assert!(!process.log().contains("ERROR"), "{}", process.log());
        case::records_of_case(process.records())
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.files.join(name)).unwrap_or_default()
    }

    pub(crate) fn lose_history(&self) {
        std::fs::remove_file(self.files.join("history.jsonl")).unwrap();
    }

    /// Position and statement of every record of the history.
    pub(crate) fn history(&self) -> Vec<(u64, String)> {
        let text = std::fs::read_to_string(self.files.join("history.jsonl")).unwrap();
        let record = |line: &str| {
            let record = Json::parse(line).unwrap();
            let pos = record.get("position").and_then(|position| position.get("pos")?.as_i64());
            (
                u64::try_from(pos.unwrap()).unwrap(),
                record.text("ddl").unwrap_or_default().to_owned(),
            )
        };
        text.lines().map(record).collect()
    }

    /// File, position and GTIDs of the stored offset. Time and origin of the last event are not kept by a restart after
    /// which no event comes.
    pub(crate) fn offset(&self) -> [Json; 3] {
        let text = std::fs::read_to_string(self.files.join("offsets.dat")).unwrap();
        let stored = Json::parse(&text).unwrap();
        let [(_, offset)] = stored.get("offsets").unwrap().members() else { panic!("{text}") };
        ["file", "pos", "gtids"].map(|name| offset.get(name).unwrap().clone())
    }

    pub(crate) fn end(self) {
        std::fs::remove_dir_all(self.files).unwrap();
    }
}

/// A record in short: its statement, or what happened to which row.
pub(crate) fn brief(record: &Record) -> String {
    let value = record.value();
    if let Some(ddl) = value.text("ddl") {
        return ddl.to_owned();
    }
    let row = value.get("after").map(ToString::to_string).unwrap_or_default();
    format!("{} {row}", value.text("op").unwrap_or_default())
}

pub(crate) fn briefs(records: &[Record]) -> Vec<String> {
    records.iter().map(brief).collect()
}
