//! Recovering a schema history, beside the real Debezium on the same file: seconds and peak memory.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin history_recovery -- [--records N] [--tables N] [--rounds N]
//!     [--checkpoint] [--without-debezium]
//! ```
//!
//! The history is in a file: tables that are created and then changed over and over (`benches/src/history.rs`). Both recover
//! it up to its end, in turn, each in a process of its own. With `--checkpoint` a checkpoint is written first, as of the
//! statement 100 before the end, which Debezium does not look at; ours goes on from there. Measured is the time from opening the file to the tables; what
//! Debezium's engine does before and after, and the start of the JVM, are not in it. A checksum over all columns tells
//! whether both come to the same tables.

use std::error::Error;
use std::fs;
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use holdfast_benches::history::{SERVER, describe, offset_after, write_history};
use holdfast_history::ddl::DdlContext;
use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::{RecoverOptions, recover_store, write_checkpoint};
use holdfast_history::store::FileHistoryStore;
use holdfast_tests::engine;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--recover", file, offset] => recover(Path::new(file), offset),
        ["--write-checkpoint", file, offset] => checkpoint(Path::new(file), offset),
        words => compare(words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("history_recovery: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The measured process: prints what `tests/reference/Recovery.java` prints.
fn recover(file: &Path, offset: &str) -> Result<()> {
    let offset = SourceOffset::from_json(offset)?;
    let context = DdlContext::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (started, cpu_started) = (Instant::now(), cpu_seconds()?);
    let store = FileHistoryStore::open(file)?;
    let options = RecoverOptions { checkpoint: true, ..RecoverOptions::new(&context) };
    let recovered = runtime.block_on(recover_store(&store, SERVER, &offset, &options))?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = cpu_seconds()? - cpu_started;
    let peak = peak_kilobytes()?;
    let mut checksum = crc32fast::Hasher::new();
    for table in recovered.tables.iter() {
        checksum.update(describe(table).as_bytes());
    }
    println!("{seconds}\n{cpu}\n{}\n{}\n{peak}", recovered.tables.len(), checksum.finalize());
    Ok(())
}

/// Prints the seconds and the peak memory of writing a checkpoint, and its size.
fn checkpoint(file: &Path, offset: &str) -> Result<()> {
    let offset = SourceOffset::from_json(offset)?;
    let context = DdlContext::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let started = Instant::now();
    let store = FileHistoryStore::open(file)?;
    let options = RecoverOptions::new(&context);
    let written = runtime.block_on(write_checkpoint(&store, SERVER, &offset, &options))?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "a checkpoint of {} records: {seconds:.3} s, peak {:.0} MB",
        written.ok_or("no checkpoint was written")?,
        peak_kilobytes()? as f64 / 1024.0
    );
    Ok(())
}

/// User and system time of this process, in steps of 10 ms.
fn cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no /proc/self/stat")?;
    let ticks = |field: usize| -> Result<f64> {
        Ok(fields.split_whitespace().nth(field).ok_or("a short /proc/self/stat")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// `VmHWM` of this process.
fn peak_kilobytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// What one run showed.
#[derive(Debug, Clone)]
struct Run {
    seconds: f64,
    cpu: f64,
    tables: u64,
    checksum: u64,
    peak_megabytes: f64,
}

fn run(command: &mut Command) -> Result<Run> {
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    // Before the five lines a logger may have said something.
    let lines: Vec<&str> = text.lines().collect();
    let [seconds, cpu, tables, checksum, peak] =
        lines.last_chunk().ok_or_else(|| format!("a run ended early: {text}"))?;
    Ok(Run {
        seconds: seconds.parse()?,
        cpu: cpu.parse()?,
        tables: tables.parse()?,
        checksum: checksum.parse()?,
        peak_megabytes: peak.parse::<f64>()? / 1024.0,
    })
}

fn compare(words: &[&str]) -> Result<()> {
    let (mut records, mut tables, mut rounds) = (100_000, 5_000, 5);
    let (mut debezium, mut with_checkpoint) = (true, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or("a number is missing");
        match *word {
            "--records" => records = number()?.parse()?,
            "--tables" => tables = number()?.parse()?,
            "--rounds" => rounds = number()?.parse()?,
            "--without-debezium" => debezium = false,
            "--checkpoint" => with_checkpoint = true,
            other => return Err(format!("what is {other}?").into()),
        }
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("history.jsonl");
    write_history(records, tables, BufWriter::new(fs::File::create(&file)?))?;
    let offset = offset_after(records).to_json();
    if with_checkpoint {
        let earlier = offset_after(records.saturating_sub(100)).to_json();
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.arg("--write-checkpoint").arg(&file).arg(&earlier);
        let output = command.stderr(Stdio::inherit()).output()?;
        print!("{}", String::from_utf8(output.stdout)?);
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut command = Command::new(std::env::current_exe()?);
        ours.push(run(command.arg("--recover").arg(&file).arg(&offset))?);
        if debezium {
            let mut command = Command::new("java");
            command.args(["-Duser.timezone=UTC", "-cp"]).arg(engine::reference_class_path()?);
            theirs.push(run(command.arg("Recovery").arg(&file).args([SERVER, &offset]))?);
        }
    }
    let size = fs::metadata(&file)?.len() as f64 / 1e6;
    println!("{records} records, {tables} tables, {size:.0} MB, {rounds} rounds, medians");
    println!("| engine | seconds | CPU s | peak MB | tables |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, runs) in [("Holdfast", &ours), ("Debezium", &theirs)] {
        let Some(last) = runs.last() else { continue };
        let seconds = median(runs.iter().map(|run| run.seconds));
        let peak = median(runs.iter().map(|run| run.peak_megabytes));
        let cpu = median(runs.iter().map(|run| run.cpu));
        println!("| {name} | {seconds:.3} | {cpu:.2} | {peak:.0} | {} |", last.tables);
    }
    if debezium {
        let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| theirs.seconds / ours.seconds);
        // A step of the clock at least.
        let cpu = ours.iter().zip(&theirs).map(|(ours, theirs)| theirs.cpu / ours.cpu.max(0.01));
        let same = ours.iter().zip(&theirs).all(|(ours, theirs)| ours.checksum == theirs.checksum);
        println!(
            "ratio {:.1}, of CPU time {:.1}; {}",
            median(ratios),
            median(cpu),
            if same { "the same tables" } else { "THE TABLES DIFFER" }
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values = values.collect::<Vec<_>>();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
