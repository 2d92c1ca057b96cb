//! The real Debezium and a schema history that is wrong or lost: what it does by itself, and that it goes on after
//! `holdfast refresh`.

use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::engine::{Engine, Process, Properties, Record, RunOptions, holdfast_binary};
use crate::json::Json;
use crate::replica::Pair;
use crate::server::{Server, run};
use crate::{Context, Failure, Result, case, paths};

const LIMIT: Duration = Duration::from_secs(120);
/// How many changes there are between the offset and the head when the history is lost.
const BEHIND: usize = 10_000;

/// A connector with its files.
struct Connector {
    database: &'static str,
    files: PathBuf,
    properties: Properties,
    runs: u32,
}

impl Connector {
    fn new(server: &Server, database: &'static str) -> Result<Self> {
        let files = paths::fresh(database)?;
        let mut properties = Properties::new(server, &files);
        properties.set("database.include.list", format!("{database},{}", case::MARKER));
        Ok(Self { database, files, properties, runs: 0 })
    }

    fn reads(&mut self, server: &Server) {
        self.properties.set("database.hostname", server.host());
        self.properties.set("database.port", server.port().to_string());
    }

    fn start(&mut self, engine: Engine, options: RunOptions) -> Result<Process> {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        Process::start(engine, &self.properties, &self.files, &name, options)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    /// Runs `holdfast` with these arguments and the connector's configuration.
    fn holdfast(&self, arguments: &[&str]) -> Result<String> {
        let config = self.path("holdfast.properties");
        self.properties.write(&config)?;
        let mut command = Command::new(holdfast_binary()?);
        run(command.args(arguments).arg("--config").arg(config).stdin(Stdio::null()))
    }
}

/// The incident with Debezium as the connector: swapped for a replica that replays a backlog, its history falls back to
/// the definition of weeks ago, and it stops at the first row. After `holdfast refresh` it streams on from the same offset.
///
/// # Errors
///
/// When it does not stop before or does not go on after, or a change is missing or comes twice.
pub fn debezium_goes_on(pair: &Pair) -> Result<String> {
    const CHANGES: [&str; 8] = [
        r#"r {"id":1,"a":1,"b":null}"#,
        r#"r {"id":2,"a":2,"b":2}"#,
        r#"c {"id":3,"a":3,"b":3}"#,
        r#"c {"id":4,"a":4,"b":4}"#,
        r#"c {"id":5,"a":5,"b":5}"#,
        r#"u {"id":4,"a":44,"b":4}"#,
        r#"c {"id":6,"a":6,"b":6}"#,
        r#"c {"id":7,"a":7,"b":7}"#,
    ];
    let mut connector = Connector::new(&pair.source, "refreshed")?;
    let days_ago = |days: u32, script: &str| {
        let time = format!("SET timestamp = UNIX_TIMESTAMP() - {days} * 86400");
        pair.source.sql(&format!("{time}; USE refreshed; {script}"))
    };
    pair.source.sql(
        "DROP DATABASE IF EXISTS refreshed; CREATE DATABASE refreshed; CREATE TABLE refreshed.t (id INT PRIMARY KEY)",
    )?;
    case::make_marker(&pair.source)?;

    let mut process = connector.start(Engine::Reference, RunOptions::default())?;
    case::snapshot_end(&mut process)?;
    days_ago(20, "ALTER TABLE t ADD a INT; INSERT INTO t VALUES (1, 1)")?;
    case::settle(&mut process, &pair.source, 2)?;
    process.stop()?;
    let of_old = fs::read(connector.path("history.jsonl"))?;

    days_ago(5, "ALTER TABLE t ADD b INT; INSERT INTO t VALUES (2, 2, 2)")?;
    pair.level()?;
    connector.reads(&pair.replica);
    fs::remove_file(connector.path("offsets.dat"))?;
    let mut process = connector.start(Engine::Reference, RunOptions::default())?;
    case::marker_row(&mut process, 2)?;
    days_ago(4, "INSERT INTO t VALUES (3, 3, 3)")?;
    case::settle(&mut process, &pair.source, 3)?;
    process.stop()?;
    let mut delivered = changes(process.records());
    days_ago(
        4,
        "BEGIN; INSERT INTO t VALUES (4, 4, 4), (5, 5, 5); UPDATE t SET a = 44 WHERE id = 4; \
         INSERT INTO t VALUES (6, 6, 6); COMMIT",
    )?;
    let options = RunOptions { ack_first: Some(2), ..RunOptions::default() };
    let mut process = connector.start(Engine::Reference, options)?;
    // The second marker comes when what was acknowledged before it is stored.
    case::settle(&mut process, &pair.source, 4)?;
    case::settle(&mut process, &pair.source, 5)?;
    process.kill()?;
    delivered.extend(changes(process.records().get(..2).unwrap_or_default()));

    // The definition that was read on the replica does not count any more.
    fs::write(connector.path("history.jsonl"), &of_old)?;
    let mut process = connector.start(Engine::Reference, RunOptions::default())?;
    let log = {
        process.wait_end(LIMIT).context(|| "Debezium had to stop at the first row".to_owned())?;
        process.log()
    };
    if !log.contains("internal schema size 2, but row size 3") {
        return Err(Failure::new(format!("Debezium stopped otherwise: {}", process.log_tail())));
    }

    let offset = fs::read(connector.path("offsets.dat"))?;
    connector.holdfast(&["offset", "import"])?;
    let report = connector.holdfast(&["refresh", "--yes"])?;
    fs::rename(connector.path("offsets.dat.debezium"), connector.path("offsets.dat"))?;
    if fs::read(connector.path("offsets.dat"))? != offset {
        return Err(Failure::new("the offset file changed"));
    }
    if !fs::read(connector.path("history.jsonl"))?.starts_with(&of_old) {
        return Err(Failure::new("what the history held has changed"));
    }

    days_ago(3, "INSERT INTO t VALUES (7, 7, 7)")?;
    let mut process = connector.start(Engine::Reference, RunOptions::default())?;
    case::settle(&mut process, &pair.source, 6)
        .context(|| format!("Debezium had to go on after\n{report}"))?;
    process.stop()?;
    delivered.extend(changes(process.records()));
    if delivered != CHANGES {
        return Err(Failure::new(format!("{delivered:?}\nis not\n{CHANGES:?}")));
    }
    fs::remove_dir_all(&connector.files)?;
    Ok(format!("stopped before, {} changes in all after", CHANGES.len()))
}

/// A lost history behind whose offset there are many changes, with `configuration_based` and a snapshot on a schema error.
/// Says how many of them each engine delivers.
///
/// # Errors
///
/// When Holdfast does not deliver all of them, or Debezium does.
pub fn the_gap(server: &Server) -> Result<String> {
    let mut connector = Connector::new(server, "behind")?;
    server.sql(
        "DROP DATABASE IF EXISTS behind; CREATE DATABASE behind; CREATE TABLE behind.t (id INT PRIMARY KEY, a INT);
         INSERT INTO behind.t VALUES (0, 0)",
    )?;
    case::make_marker(server)?;
    let mut process = connector.start(Engine::Reference, RunOptions::default())?;
    case::snapshot_end(&mut process)?;
    case::settle(&mut process, server, 2)?;
    process.stop()?;
    make_changes(server, connector.database, "t", 1..=BEHIND)?;
    fs::remove_file(connector.path("history.jsonl"))?;

    let based = "snapshot.mode.configuration.based";
    connector.properties.set("snapshot.mode", "configuration_based");
    for (key, value) in [
        ("snapshot.data", "false"),
        ("snapshot.schema", "true"),
        ("start.stream", "true"),
        ("snapshot.on.schema.error", "true"),
        ("snapshot.on.data.error", "false"),
    ] {
        connector.properties.set(&format!("{based}.{key}"), value);
    }
    let mut holdfast = connector.copy("behind-holdfast")?;
    let theirs = connector.delivers(Engine::Reference, server, 3)?;
    holdfast.holdfast(&["offset", "import"])?;
    let ours = holdfast.delivers(Engine::Holdfast, server, 4)?;
    if ours != BEHIND || theirs == BEHIND {
        return Err(Failure::new(format!("of {BEHIND} changes, Debezium: {theirs}, ours: {ours}")));
    }
    for files in [&connector.files, &holdfast.files] {
        fs::remove_dir_all(files)?;
    }
    Ok(format!("of {BEHIND} changes Debezium delivers {theirs}, Holdfast {ours}"))
}

impl Connector {
    /// Another one with the same offset and no history.
    fn copy(&self, label: &str) -> Result<Self> {
        let files = paths::fresh(label)?;
        fs::copy(self.path("offsets.dat"), files.join("offsets.dat"))?;
        let mut properties = self.properties.clone();
        let file = |name: &str| files.join(name).display().to_string();
        properties.set("offset.storage.file.filename", file("offsets.dat"));
        properties.set("schema.history.internal.file.filename", file("history.jsonl"));
        Ok(Self { database: self.database, files, properties, runs: 0 })
    }

    /// How many changes come up to a marker row.
    fn delivers(&mut self, engine: Engine, server: &Server, marker: i64) -> Result<usize> {
        let mut process = self.start(engine, RunOptions::default())?;
        // A marker that is there before an engine starts is skipped by one that begins at the head.
        let mut next = marker * 1000;
        while process
            .wait_for("a marker row", Duration::from_secs(5), |record| {
                record.source().text("db") == Some(case::MARKER)
                    && record.key().get("id").and_then(Json::as_i64).is_some_and(|id| id >= marker)
            })
            .is_err()
        {
            if next > marker * 1000 + 30 {
                return Err(Failure::new(format!("no marker came: {}", process.log_tail())));
            }
            next += 1;
            server.sql(&format!("INSERT INTO {}.marker VALUES ({next})", case::MARKER))?;
        }
        process.stop()?;
        Ok(changes(process.records()).iter().filter(|change| change.starts_with("c ")).count())
    }
}

/// Fills a table of two numbers with ids, a thousand in a transaction.
///
/// # Errors
///
/// A statement that fails.
pub fn make_changes(
    server: &Server,
    database: &str,
    table: &str,
    ids: RangeInclusive<usize>,
) -> Result<()> {
    let ids: Vec<usize> = ids.collect();
    let mut script = format!("USE {database};\n");
    for ids in ids.chunks(1000) {
        let rows: Vec<String> = ids.iter().map(|id| format!("({id}, {id})")).collect();
        script.push_str(&format!("INSERT INTO {table} VALUES {};\n", rows.join(",")));
    }
    server.sql(&script)
}

/// Rows in short, in order: what happened, and the row as it is now, or was.
#[must_use]
pub fn changes(records: &[Record]) -> Vec<String> {
    let rows = case::records_of_case(records);
    let rows = rows.iter().filter_map(|record| {
        let value = record.value();
        let op = value.text("op")?;
        let row = match value.get("after") {
            Some(after) if *after != Json::Null => after,
            _ => value.get("before")?,
        };
        Some(format!("{op} {row}"))
    });
    rows.collect()
}
