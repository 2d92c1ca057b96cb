//! Golden cases: what the real Debezium made of a workload, committed.
//!
//! `tests/golden/<server>-<version>/<case>/` is a case folder (header, `setup.sql`, `workload.sql`, `config.properties`)
//! with `expected.jsonl`: whole records, normalised by [`normalise::Golden`]. `make reference` writes them anew; they
//! must come out the same. Where Holdfast differs on purpose, `differs.md` beside it has a table row for each place.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::case::{self, Case, MARKER};
use crate::engine::{Engine, PREFIX, Process, Record, RunOptions};
use crate::json::{Difference, Json};
use crate::normalise::{self, Golden};
use crate::server::{Flavour, Server};
use crate::{Context, Failure, Result, paths, workload};

/// The golden cases for a kind of server: the folder with the highest version.
///
/// # Errors
///
/// When there is none, or a case cannot be read.
pub fn cases(flavour: Flavour) -> Result<Vec<Case>> {
    let prefix = match flavour {
        Flavour::MySql => "mysql-",
        Flavour::MariaDb => "mariadb-",
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(paths::tests("golden"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(version) = name.strip_prefix(prefix) {
            let numbers: Vec<u32> =
                version.split('.').filter_map(|part| part.parse().ok()).collect();
            folders.push((numbers, path));
        }
    }
    let (_, newest) = folders
        .into_iter()
        .max()
        .ok_or_else(|| Failure::new(format!("no tests/golden/{prefix}*")))?;
    Case::all(&newest)
}

/// Runs a golden case with all `engines` at once on one server and gives the case's records of each.
///
/// # Errors
///
/// Whatever kept it from running to its end.
pub fn capture(case: &Case, server: &Server, engines: &[Engine]) -> Result<Vec<Vec<Record>>> {
    case.set_up(server)?;
    let mut processes = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for &engine in engines {
        let folder = case::run_folder(case, engine)?;
        let properties = case.properties(server, &folder)?;
        processes.push(Process::start(engine, &properties, &folder, "run", RunOptions::default())?);
        folders.push(folder);
    }
    for process in &mut processes {
        case::snapshot_end(process)?;
    }
    case.script(server, "workload.sql")?;
    server.sql(&format!("INSERT INTO {MARKER}.marker VALUES (2)"))?;
    let mut captured = Vec::new();
    for process in &mut processes {
        case::marker_row(process, 2)?;
        process.stop()?;
        let records = case::records_of_case(process.records());
        captured.push(if case.field("heartbeats") == Some("first") {
            with_first_heartbeat(records)?
        } else {
            records
        });
    }
    for folder in folders {
        fs::remove_dir_all(folder)?;
    }
    Ok(captured)
}

/// Heartbeats come when their time has come: the first of them is put at the end, and the others are left out.
fn with_first_heartbeat(records: Vec<Record>) -> Result<Vec<Record>> {
    let (heartbeats, mut records): (Vec<_>, Vec<_>) = records
        .into_iter()
        .partition(|record| record.topic() == format!("__debezium-heartbeat.{PREFIX}"));
    let first = heartbeats.into_iter().next();
    records.push(first.ok_or_else(|| Failure::new("no heartbeat came"))?);
    Ok(records)
}

/// The records of a run in the form of the case's `expected.jsonl`.
///
/// The header's field `records` says which those are: all of them whole (no field), `streamed` without those of the
/// snapshot, `reduced` only rows with topic, operation, key and after image, `reduced by table` the same sorted by
/// table.
#[must_use]
pub fn normalised(case: &Case, records: &[Record]) -> Vec<Json> {
    let mut golden = if case.field("positions") == Some("vary") {
        Golden::without_positions()
    } else {
        Golden::default()
    };
    let which = case.field("records").unwrap_or_default();
    let mut out = Vec::new();
    for record in records {
        let mut record = record.clone();
        golden.record(&mut record);
        match which {
            "streamed" if record.is_snapshot() => {}
            "reduced" | "reduced by table" => out.extend(reduced(&record)),
            _ => out.push(record.0),
        }
    }
    if which == "reduced by table" {
        out.sort_by_key(|line| line.text("table").map(str::to_owned));
    }
    out
}

/// A row without what surrounds it; none for any other record.
fn reduced(record: &Record) -> Option<Json> {
    let op = record.value().get("op")?;
    let part = |json: &Json, name: &str| json.get(name).cloned().unwrap_or(Json::Null);
    let members = [
        ("table", part(record.source(), "table")),
        ("topic", Json::string(record.topic())),
        ("op", op.clone()),
        ("key", record.key().clone()),
        ("after", part(record.value(), "after")),
    ];
    Some(Json::Object(members.map(|(name, value)| (name.to_owned(), value)).to_vec()))
}

/// Records compared as two readers of one log.
#[must_use]
pub fn live(records: &[Record]) -> Vec<Json> {
    records
        .iter()
        .cloned()
        .map(|mut record| {
            normalise::live(&mut record);
            record.0
        })
        .collect()
}

/// Reads `expected.jsonl`.
///
/// # Errors
///
/// When it is missing or damaged.
pub fn expected(case: &Case) -> Result<Vec<Json>> {
    let path = expected_path(case);
    let text = fs::read_to_string(&path).context(|| path.display().to_string())?;
    let mut records = text.lines().map(Json::parse).collect::<Result<Vec<_>>>()?;
    if case.field("records") == Some("reduced by table") {
        records.sort_by_key(|line| line.text("table").map(str::to_owned));
    }
    Ok(records)
}

/// Writes `expected.jsonl`; true when it was another one before.
///
/// # Errors
///
/// When it cannot be written.
pub fn write_expected(case: &Case, records: &[Json]) -> Result<bool> {
    let mut text = String::new();
    for record in records {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{record}");
    }
    let path = expected_path(case);
    let changed = fs::read_to_string(&path).map_or(true, |before| before != text);
    fs::write(&path, text)?;
    Ok(changed)
}

fn expected_path(case: &Case) -> PathBuf {
    case.folder().join("expected.jsonl")
}

/// Compares Holdfast's records with Debezium's: equal, except in the places that `differs.md` lists. A listed place
/// that does not differ is a failure too. Where the header says `debezium: stops`, Holdfast must have more at the end.
///
/// # Errors
///
/// The differences that are not listed, [`SHOWN`] of them (all with `HOLDFAST_GOLDEN`), and the first pair of records.
pub fn compare(case: &Case, debezium: &[Json], holdfast: &[Json]) -> Result<()> {
    let mut listed = Differences::read(&case.folder().join("differs.md"))?;
    let mut found: Vec<String> = Vec::new();
    let mut first = None;
    // Records that Debezium gives in addition.
    let debezium: Vec<(usize, &Json)> = (1..)
        .zip(debezium)
        .filter(|(number, _)| !listed.take(*number, "(record)", "there", "not there"))
        .collect();
    let random = case.field("differs") == Some("as random workloads do");
    let goes_on = case.field("debezium") == Some("stops") && holdfast.len() > debezium.len();
    if debezium.len() != holdfast.len() && !goes_on {
        found.push(format!(
            "{} records from Debezium, {} from Holdfast",
            debezium.len(),
            holdfast.len()
        ));
    }
    for (ours, (number, original)) in holdfast.iter().zip(debezium) {
        let mut theirs = original.clone();
        while let Some(Difference { path, left, right }) = theirs.difference(ours) {
            let known = random && workload::is_listed(original, &path, &left, &right);
            if !known && !listed.take(number, &path, &left, &right) {
                found.push(format!("record {number} {path}: Debezium {left}, Holdfast {right}"));
                first.get_or_insert_with(|| format!("debezium: {original}\nholdfast: {ours}"));
            }
            if !theirs.take_over(ours, &path) {
                break;
            }
        }
    }
    if found.is_empty() {
        return listed.none_left();
    }
    let mut text = format!("{} differences that differs.md does not list:\n", found.len());
    let all = std::env::var_os("HOLDFAST_GOLDEN").is_some();
    for line in found.iter().take(if all { usize::MAX } else { SHOWN }) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text.push_str(&first.unwrap_or_default());
    Err(Failure::new(text))
}

/// How many differences a message shows.
const SHOWN: usize = 20;

/// The table of `differs.md`: `| record | path | Debezium | Holdfast | reason |`, the record one-based, values as JSON
/// in backquotes.
#[derive(Debug, Default)]
struct Differences(Vec<[String; 4]>);

impl Differences {
    fn read(file: &Path) -> Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let text = fs::read_to_string(file)?;
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<String> = line
                .trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().trim_matches('`').to_owned())
                .collect();
            let [record, path, debezium, holdfast, reason] = <[String; 5]>::try_from(cells)
                .map_err(|cells| {
                    Failure::new(format!(
                        "{}: {} cells, not 5: {line}",
                        file.display(),
                        cells.len()
                    ))
                })?;
            if record.parse::<usize>().is_ok() {
                if reason.is_empty() {
                    return Err(Failure::new(format!(
                        "{}: no reason given: {line}",
                        file.display()
                    )));
                }
                rows.push([record, path, debezium, holdfast]);
            }
        }
        Ok(Self(rows))
    }

    fn take(&mut self, record: usize, path: &str, debezium: &str, holdfast: &str) -> bool {
        let wanted =
            [record.to_string(), path.to_owned(), debezium.to_owned(), holdfast.to_owned()];
        let found = self.0.iter().position(|row| *row == wanted);
        found.map(|index| self.0.remove(index)).is_some()
    }

    fn none_left(&self) -> Result<()> {
        self.0.first().map_or(Ok(()), |row| {
            Err(Failure::new(format!(
                "differs.md lists a difference that is not there: {}",
                row.join(" | ")
            )))
        })
    }
}
