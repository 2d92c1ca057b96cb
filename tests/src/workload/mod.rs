//! Random workloads that Holdfast and the real Debezium read from one log.
//!
//! A [`Batch`] has one configuration and many [`Workload`]s, each in a database of its own, so that one run of an engine
//! reads all of them. The same seed gives the same batch. What both engines gave is compared database by database.

mod compare;
mod generate;
mod kinds;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

pub use compare::compare;
pub(crate) use compare::is_listed;

use crate::case::{self, MARKER};
use crate::engine::{Engine, Process, Properties, Record, RunOptions};
use crate::random::Random;
use crate::server::{Flavour, Server};
use crate::{Result, paths};

/// Stops the session's clock, so that the same statements give the same rows.
const CLOCK: &str = "SET TIMESTAMP=1700000000;\n";

/// What a configuration can't hold, so that no value of the workload may be of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limits {
    /// TIME is a time of day.
    day_times: bool,
    /// Dates are those that fit into 64 bits of nanoseconds.
    near_dates: bool,
    /// Dates that do not exist may come.
    zero_dates: bool,
}

/// One random workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its number in the batch.
    pub number: u64,
    /// Its database.
    pub database: String,
    /// What runs before the engines start.
    pub setup: String,
    /// What runs while they stream.
    pub stream: String,
}

/// Workloads that are read in one go, with one configuration.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What it was made from.
    pub seed: u64,
    /// Properties beside those that every run has.
    pub properties: Vec<(&'static str, String)>,
    /// The workloads.
    pub workloads: Vec<Workload>,
}

impl Batch {
    /// The batch of a seed, for a kind of server.
    #[must_use]
    pub fn new(seed: u64, count: u64, flavour: Flavour) -> Self {
        let mut random = Random::new(seed);
        let mut limits = Limits { zero_dates: true, ..Limits::default() };
        let properties = configuration(&mut random, &mut limits);
        let query = properties.iter().any(|(key, _)| *key == "include.query");
        let truncates = properties.iter().any(|(key, _)| key.starts_with("column.truncate"));
        let workloads = (0..count)
            .map(|number| {
                let mut random = random.split();
                let mut workload = generate::workload(&mut random, number, flavour, limits, query);
                if truncates {
                    for script in [&mut workload.setup, &mut workload.stream] {
                        *script = without_pairs(script);
                    }
                }
                workload
            })
            .collect();
        Self { seed, properties, workloads }
    }

    /// Only one of its workloads, to look into it.
    #[must_use]
    pub fn only(mut self, number: u64) -> Self {
        self.workloads.retain(|workload| workload.number == number);
        self
    }

    /// The statements before the start, of all workloads.
    #[must_use]
    pub fn setup(&self) -> String {
        let scripts = self.workloads.iter().map(|workload| workload.setup.as_str());
        std::iter::once(CLOCK).chain(scripts).collect()
    }

    /// The statements while streaming, of all workloads, for one session.
    #[must_use]
    pub fn stream(&self) -> String {
        let mut script = CLOCK.to_owned();
        for workload in &self.workloads {
            script.push_str("SET SESSION sql_mode=DEFAULT;\n");
            script.push_str(&workload.stream);
        }
        script
    }

    /// Runs it with all `engines` at once on one server, and gives the records of each.
    ///
    /// # Errors
    ///
    /// Whatever kept an engine from reading to the end.
    pub fn capture(&self, server: &Server, engines: &[Engine]) -> Result<Vec<Vec<Record>>> {
        case::make_marker(server)?;
        server.sql_force(self.setup().as_bytes(), "utf8mb4")?;
        let mut processes = Vec::new();
        let mut folders = Vec::new();
        for &engine in engines {
            let folder = paths::fresh(&format!("random-{}-{}", self.seed, engine.name()))?;
            let mut properties = Properties::new(server, &folder);
            properties.set("database.include.list", format!("rnd_.*,{MARKER}"));
            for (key, value) in &self.properties {
                properties.set(key, value.as_str());
            }
            let options = RunOptions::default();
            processes.push(Process::start(engine, &properties, &folder, "run", options)?);
            folders.push(folder);
        }
        for process in &mut processes {
            case::snapshot_end(process)?;
        }
        server.sql_force(self.stream().as_bytes(), "utf8mb4")?;
        server.sql(&format!("INSERT INTO {MARKER}.marker VALUES (2)"))?;
        let mut captured = Vec::new();
        for process in &mut processes {
            case::marker_row(process, 2)?;
            process.stop()?;
            captured.push(case::records_of_case(process.records()));
        }
        for folder in folders {
            fs::remove_dir_all(folder)?;
        }
        self.drop_databases(server)?;
        Ok(captured)
    }

    fn drop_databases(&self, server: &Server) -> Result<()> {
        let mut script = String::new();
        for workload in &self.workloads {
            // Writing to a String cannot fail.
            let _ = writeln!(script, "DROP DATABASE IF EXISTS {};", workload.database);
        }
        server.sql(&script)
    }

    /// Writes it as a golden case, whose `expected.jsonl` `make reference` makes.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_case(&self, folder: &Path, flavour: Flavour) -> Result<()> {
        fs::create_dir_all(folder)?;
        let server = match flavour {
            Flavour::MySql => "mysql",
            Flavour::MariaDb => "mariadb-11",
        };
        let header = format!(
            "---\nkind: stream\nserver: {server}\ndatabase: rnd_.*\npositions: vary\nfailing_statements: yes\ndiffers: as random workloads do\n---\n\n\
             # Random workloads\n\n{} workloads of seed {}, each in a database of its own, made by\n\
             `reference --write-random {} {} FOLDER` (`tests/src/workload`).\n",
            self.workloads.len(),
            self.seed,
            self.seed,
            self.workloads.len()
        );
        fs::write(folder.join("case.md"), header)?;
        fs::write(folder.join("setup.sql"), self.setup())?;
        fs::write(folder.join("workload.sql"), self.stream())?;
        let properties: String = self
            .properties
            .iter()
            .map(|(key, value)| format!("{key}={}\n", value.replace('\\', "\\\\")))
            .collect();
        fs::write(folder.join("config.properties"), properties)?;
        Ok(())
    }
}

/// Characters of one UTF-16 unit alone: half of a pair ends Debezium.
fn without_pairs(script: &str) -> String {
    script
        .chars()
        .map(|character| if character.len_utf16() > 1 { '語' } else { character })
        .collect()
}

/// One value of each setting that changes records, most often the default.
fn configuration(random: &mut Random, limits: &mut Limits) -> Vec<(&'static str, String)> {
    let choices: [(&'static str, &[&str]); 15] = [
        ("decimal.handling.mode", &["precise", "double", "string"]),
        ("bigint.unsigned.handling.mode", &["long", "precise"]),
        (
            "time.precision.mode",
            &["adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"],
        ),
        ("binary.handling.mode", &["bytes", "base64", "base64-url-safe", "hex"]),
        ("tombstones.on.delete", &["true", "false"]),
        ("provide.transaction.metadata", &["false", "true"]),
        ("include.schema.comments", &["false", "true"]),
        ("include.query", &["false", "true"]),
        ("skipped.operations", &["t", "none", "u", "d,t"]),
        ("skip.messages.without.change", &["false", "true"]),
        ("field.name.adjustment.mode", &["none", "avro", "avro_unicode"]),
        ("column.exclude.list", &["rnd_.*\\.none", "rnd_.*\\.t1\\.(b|c)"]),
        ("column.truncate.to.3.chars", &["rnd_.*\\.none", "rnd_.*\\.t2\\..*"]),
        ("value.converter.replace.null.with.default", &["true", "false"]),
        ("value.converter.schemas.enable", &["false", "true"]),
    ];
    let mut properties = Vec::new();
    for (key, values) in choices {
        let first = values.first().copied().unwrap_or_default();
        let value = if random.one_in(2) { first } else { *random.one(values) };
        if value != first {
            properties.push((key, value.to_owned()));
        }
        if key == "value.converter.schemas.enable" && value == "true" {
            properties.push(("key.converter.schemas.enable", value.to_owned()));
        }
        if key == "time.precision.mode" {
            limits.day_times = ["connect", "isostring"].contains(&value);
            limits.near_dates = value == "nanoseconds";
        }
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_batch_and_one_of_its_workloads_alone() {
        let batch = Batch::new(5, 20, Flavour::MySql);
        let again = Batch::new(5, 20, Flavour::MySql);
        assert_eq!(batch.stream(), again.stream());
        assert_eq!(batch.properties, again.properties);
        let alone = again.only(7);
        assert_eq!(alone.workloads.len(), 1);
        assert!(batch.stream().contains(&alone.workloads[0].stream));
        assert_ne!(batch.stream(), Batch::new(6, 20, Flavour::MySql).stream());
    }
}
