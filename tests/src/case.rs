//! Case folders: a reproduction of a problem, and the outcome that is right. `tests/cases/README.md` describes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engine::{Engine, PREFIX, Process, Properties, Record, RunOptions};
use crate::expect::{Expectation, Leniency, Outcome};
use crate::json::Json;
use crate::server::{Flavour, Options, Server};
use crate::{Context, Failure, Result, paths};

/// The database whose only table marks the ends: of the snapshot (read last, because of its name) and of a workload.
pub const MARKER: &str = "zz_marker";

/// How long an engine may take for one step.
const LIMIT: Duration = Duration::from_secs(90);

/// What a case needs to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One run; the workload comes while it streams.
    Stream,
    /// Two runs; the first one is killed.
    Restart,
    /// No server: test vectors or tables, which a test reads by itself.
    Data,
}

/// A case folder.
#[derive(Clone, Debug)]
pub struct Case {
    folder: PathBuf,
    header: BTreeMap<String, String>,
}

impl Case {
    /// Reads the header of a case.
    ///
    /// # Errors
    ///
    /// When there is no `case.md`, or its header is not `key: value` lines between two `---`.
    pub fn load(folder: impl Into<PathBuf>) -> Result<Self> {
        let folder = folder.into();
        let text = fs::read_to_string(folder.join("case.md"))
            .context(|| folder.join("case.md").display().to_string())?;
        let header = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .map(|(header, _)| header)
            .ok_or_else(|| {
                Failure::new(format!("{}: no header between two lines ---", folder.display()))
            })?;
        let mut fields = BTreeMap::new();
        for line in header.lines() {
            let (key, value) = line.split_once(": ").ok_or_else(|| {
                Failure::new(format!("{}: not key: value: {line}", folder.display()))
            })?;
            fields.insert(key.to_owned(), value.trim().to_owned());
        }
        Ok(Self { folder, header: fields })
    }

    /// All cases of a folder, by name.
    ///
    /// # Errors
    ///
    /// When a case cannot be read.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut cases = Vec::new();
        for entry in fs::read_dir(folder).context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                cases.push(Self::load(path)?);
            }
        }
        cases.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(cases)
    }

    /// The folder's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A header field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.header.get(name).map(String::as_str)
    }

    /// The field `kind`.
    ///
    /// # Errors
    ///
    /// When it is none of those there are.
    pub fn kind(&self) -> Result<Kind> {
        match self.field("kind") {
            Some("stream") => Ok(Kind::Stream),
            Some("restart") => Ok(Kind::Restart),
            Some("data") => Ok(Kind::Data),
            other => Err(Failure::new(format!("{}: unknown kind {other:?}", self.name()))),
        }
    }

    /// True when the case changes what others would see: resets or purges logs, sets globals, adds arguments.
    #[must_use]
    pub fn needs_own_server(&self) -> bool {
        self.field("own_server") == Some("yes")
    }

    /// The server to start for it.
    #[must_use]
    pub fn server(&self) -> Options {
        let mut options = match self.field("server") {
            Some("mariadb") => Options::mariadb(),
            Some("mariadb-11") => Options::mariadb_11(),
            _ => Options::mysql(),
        };
        if self.field("gtid") == Some("off") && options.flavour() == Flavour::MySql {
            options = options.without_gtids();
        }
        for arg in self.field("server_args").unwrap_or_default().split_whitespace() {
            options = options.arg(arg);
        }
        options
    }

    fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        fs::read(self.folder.join(name)).context(|| self.folder.join(name).display().to_string())
    }

    fn text_if_there(&self, name: &str) -> Result<Option<String>> {
        let path = self.folder.join(name);
        if !path.exists() {
            return Ok(None);
        }
        fs::read_to_string(&path).context(|| path.display().to_string()).map(Some)
    }

    /// `expect.jsonl`, or any file `expect-or*.jsonl`: each is an outcome that is right. `phase` is 1 or 2.
    fn expectations(&self, phase: u8) -> Result<Vec<Expectation>> {
        let stem = if phase == 1 { "expect" } else { "expect-phase2" };
        let mut found = Vec::new();
        for name in [format!("{stem}.jsonl"), format!("{stem}-or.jsonl")] {
            if let Some(text) = self.text_if_there(&name)? {
                found
                    .push(Expectation::parse(&text).context(|| format!("{}/{name}", self.name()))?);
            }
        }
        if found.is_empty() {
            return Err(Failure::new(format!("{}: no {stem}.jsonl", self.name())));
        }
        Ok(found)
    }

    fn leniency(&self, phase: u8) -> Leniency {
        Leniency {
            json_blanks: self.field("json") == Some("blanks do not matter"),
            ddl_only: phase == 2 && self.field("second_run_schema") == Some("ddl only"),
            streamed_only: self.field("compare") == Some("streamed"),
        }
    }

    /// The properties of a run, with the marker's database included.
    ///
    /// # Errors
    ///
    /// A properties file that cannot be read.
    pub fn properties(&self, server: &Server, folder: &Path) -> Result<Properties> {
        let mut properties = Properties::new(server, folder);
        properties.set("database.include.list", self.database());
        if let Some(text) = self.text_if_there("config.properties")? {
            properties.read(&text)?;
        }
        for (key, marker) in [
            ("database.include.list", MARKER.to_owned()),
            ("table.include.list", format!("{MARKER}\\.marker")),
        ] {
            if let Some(list) = properties.get(key).map(str::to_owned) {
                properties.set(key, format!("{list},{marker}"));
            }
        }
        Ok(properties)
    }

    /// The case's database: the header's, else `c` and the id.
    #[must_use]
    pub fn database(&self) -> String {
        self.field("database").map_or_else(
            || format!("c{}", self.field("id").unwrap_or_default().trim_matches('"')),
            str::to_owned,
        )
    }

    /// Runs `setup.sql` and makes the marker.
    ///
    /// # Errors
    ///
    /// A statement that fails.
    pub fn set_up(&self, server: &Server) -> Result<()> {
        make_marker(server)?;
        self.script(server, "setup.sql")
    }

    /// Runs one of the case's scripts, in the character set of the header; a statement may fail only if the header says
    /// `failing_statements: yes`.
    ///
    /// # Errors
    ///
    /// A statement that fails.
    pub fn script(&self, server: &Server, name: &str) -> Result<()> {
        let charset = self.field("client_charset").unwrap_or("utf8mb4");
        let errors = server.sql_force(&self.bytes(name)?, charset)?;
        if errors.is_empty() || self.field("failing_statements") == Some("yes") {
            return Ok(());
        }
        Err(Failure::new(format!("{}/{name}: {errors}", self.name())))
    }

    /// Runs the case with an engine and compares. The files of the run are under `folder`.
    ///
    /// # Errors
    ///
    /// The first difference, or whatever kept the case from running.
    pub fn run(&self, engine: Engine, server: &Server, folder: &Path) -> Result<()> {
        self.set_up(server)?;
        let properties = self.properties(server, folder)?;
        let expectations = self.expectations(1)?;
        let ack_first = self.ack_first(&expectations)?;
        let options = RunOptions { ack_first, ..RunOptions::default() };
        let mut process = Process::start(engine, &properties, folder, "run-1", options)?;
        let may_fail = expectations.iter().any(Expectation::ends_with_error);
        let mut outcome =
            self.stream(&mut process, server, 2, may_fail, || self.script(server, "workload.sql"))?;
        self.judge(1, &outcome, engine).context(|| "first run".to_owned())?;
        if let Some(acknowledged) = ack_first {
            let snapshot =
                process.records().iter().take_while(|record| record.is_snapshot()).count();
            if snapshot != acknowledged_from_snapshot(&expectations) {
                return Err(Failure::new(format!(
                    "the snapshot gave {snapshot} lines, so acknowledging the first {acknowledged} is not what the case means"
                )));
            }
        }
        if self.kind()? == Kind::Restart {
            settle(&mut process, server, 90)?;
            process.kill()?;
            outcome = self.second_run(engine, server, folder, properties)?;
            self.judge(2, &outcome, engine).context(|| "second run".to_owned())?;
        } else if outcome.error.is_none() {
            process.stop()?;
        }
        Ok(())
    }

    /// As [`run`](Self::run), in a folder of its own, which stays only when the case fails.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), with the folder in front.
    pub fn run_apart(&self, engine: Engine, server: &Server) -> Result<()> {
        let folder = run_folder(self, engine)?;
        self.run(engine, server, &folder)
            .context(|| format!("case {}, files in {}", self.name(), folder.display()))?;
        Ok(fs::remove_dir_all(&folder)?)
    }

    fn second_run(
        &self,
        engine: Engine,
        server: &Server,
        folder: &Path,
        mut properties: Properties,
    ) -> Result<Outcome> {
        if self.folder.join("between.sql").exists() {
            self.script(server, "between.sql")?;
        }
        if self.field("history_before_second_run") == Some("lost") {
            fs::remove_file(folder.join("history.jsonl"))?;
        }
        if let Some(text) = self.text_if_there("second-run.properties")? {
            properties.read(&text)?;
        }
        let may_fail = self.expectations(2)?.iter().any(Expectation::ends_with_error);
        // A log that was reset has no marker in it any more, so make sure that one comes.
        server.sql(&format!("REPLACE INTO {MARKER}.marker VALUES (3)"))?;
        let mut process =
            Process::start(engine, &properties, folder, "run-2", RunOptions::default())?;
        let outcome = self.collect(&mut process, 3, may_fail)?;
        if outcome.error.is_none() {
            process.stop()?;
        }
        Ok(outcome)
    }

    /// Waits for the end of the snapshot, runs the workload, marks its end, and waits for the mark.
    fn stream(
        &self,
        process: &mut Process,
        server: &Server,
        marker: i64,
        may_fail: bool,
        workload: impl FnOnce() -> Result<()>,
    ) -> Result<Outcome> {
        match snapshot_end(process) {
            Err(_)
                if may_fail
                    && process.wait_end(Duration::ZERO).is_ok_and(|status| !status.success()) =>
            {
                return Ok(Outcome {
                    records: records_of_case(process.records()),
                    error: Some(process.log()),
                });
            }
            result => result?,
        };
        workload()?;
        server.sql(&format!("INSERT INTO {MARKER}.marker VALUES ({marker})"))?;
        self.collect(process, marker, may_fail)
    }

    fn collect(&self, process: &mut Process, marker: i64, may_fail: bool) -> Result<Outcome> {
        let found = process.wait_for("the marker row", LIMIT, |record| is_marker(record, marker));
        let error = match found {
            Ok(_) => None,
            Err(error) => {
                if !may_fail {
                    return Err(error);
                }
                let status = process
                    .wait_end(Duration::ZERO)
                    .context(|| "it had to stop with an error".to_owned())?;
                (!status.success()).then(|| process.log())
            }
        };
        Ok(Outcome { records: records_of_case(process.records()), error })
    }

    /// How many lines to acknowledge in the first run of a restart case: the snapshot's and the header's number.
    fn ack_first(&self, expectations: &[Expectation]) -> Result<Option<u64>> {
        if self.kind()? != Kind::Restart {
            return Ok(None);
        }
        let after: usize =
            self.field("acknowledged_records").unwrap_or("0").parse().context(|| self.name())?;
        u64::try_from(acknowledged_from_snapshot(expectations) + after)
            .context(|| self.name())
            .map(Some)
    }

    /// One of the right outcomes must be it. Debezium is held to the first alone.
    fn judge(&self, phase: u8, outcome: &Outcome, engine: Engine) -> Result<()> {
        let mut reasons = Vec::new();
        let accepted = if engine == Engine::Reference { 1 } else { usize::MAX };
        for expectation in self.expectations(phase)?.iter().take(accepted) {
            match expectation.compare(outcome, self.leniency(phase)) {
                Ok(()) => return Ok(()),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(Failure::new(reasons.join("\nand the other right outcome is not it either: ")))
    }
}

/// The lines that a snapshot gives: the expected ones, and those of the marker's database (drop and create of database
/// and table, `USE`, and its row).
fn acknowledged_from_snapshot(expectations: &[Expectation]) -> usize {
    expectations.first().map_or(0, Expectation::snapshot_records) + MARKER_SNAPSHOT_LINES
}

const MARKER_SNAPSHOT_LINES: usize = 6;

/// Waits until the snapshot has been read: the marker's row comes last.
///
/// # Errors
///
/// When it does not come.
pub fn snapshot_end(process: &mut Process) -> Result<usize> {
    process.wait_for("the end of the snapshot", LIMIT, |record| is_marker(record, 1))
}

/// Waits until the marker row `id` has come through.
///
/// # Errors
///
/// When it does not come.
pub fn marker_row(process: &mut Process, id: i64) -> Result<usize> {
    process.wait_for("the marker row", LIMIT, |record| is_marker(record, id))
}

/// Makes the marker table anew, with row 1, which comes last in the snapshot.
///
/// # Errors
///
/// A statement that fails.
pub fn make_marker(server: &Server) -> Result<()> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {MARKER}; CREATE DATABASE {MARKER}; \
         CREATE TABLE {MARKER}.marker (id INT PRIMARY KEY); INSERT INTO {MARKER}.marker VALUES (1)"
    ))
}

/// Waits until what was acknowledged so far is stored, by sending one more marker row, which must be new: an engine has
/// committed one batch before it hands out the next.
///
/// # Errors
///
/// When the row does not come.
pub fn settle(process: &mut Process, server: &Server, marker: i64) -> Result<usize> {
    server.sql(&format!("INSERT INTO {MARKER}.marker VALUES ({marker})"))?;
    marker_row(process, marker)
}

/// The key tells, because a column filter can empty the row.
fn is_marker(record: &Record, id: i64) -> bool {
    is_of_marker(record) && record.key().get("id").and_then(Json::as_i64) == Some(id)
}

fn is_of_marker(record: &Record) -> bool {
    record.source().text("db") == Some(MARKER)
        || record.value().text("databaseName") == Some(MARKER)
        || record.topic() == format!("{PREFIX}.{MARKER}.marker")
}

/// The records without those of the marker and of its transactions.
#[must_use]
pub fn records_of_case(records: &[Record]) -> Vec<Record> {
    let transactions: Vec<&str> = records
        .iter()
        .filter(|record| is_of_marker(record))
        .filter_map(|record| record.value().get("transaction")?.text("id"))
        .collect();
    records
        .iter()
        .filter(|record| {
            let boundary =
                record.value().text("id").filter(|_| record.value().get("status").is_some());
            !is_of_marker(record) && !boundary.is_some_and(|id| transactions.contains(&id))
        })
        .cloned()
        .collect()
}

/// A new folder for the files of a run.
///
/// # Errors
///
/// When it cannot be made.
pub fn run_folder(case: &Case, engine: Engine) -> Result<PathBuf> {
    paths::fresh(&format!("{}-{}", case.name(), engine.name()))
}
