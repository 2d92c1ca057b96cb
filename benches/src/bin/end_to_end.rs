//! From a server's log to Debezium JSON records, beside the real Debezium: records a second, CPU time a record, memory,
//! time to the first record, and latency.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin end_to_end -- [--rounds N] [--rows N] [--without-debezium] [--schemas] [--set KEY=VALUE]... [CASE]...
//! ```
//!
//! | case | what is read |
//! | --- | --- |
//! | `narrow` | rows of 5 columns: bulk statements and transactions of 10 rows |
//! | `wide` | rows of 60 columns of all types |
//! | `large` | one transaction of 1 GB, Holdfast alone: its memory |
//! | `large-compressed` | the same, compressed by the server |
//! | `snapshot` | all rows of one table of 5 columns, from `initial` without an offset; rates over the whole of it |
//! | `start` | one row, with one table and with a thousand in the schema history |
//! | `latency` | single-row commits, 100 a second |
//!
//! `--set` gives Holdfast a property more. With `--schemas` the records of `narrow` and `wide` carry their schemas.
//!
//! Both engines run in turn, each in a process of its own, from an offset before the rows, with filters, schema history,
//! queue and offset commits on; the consumer counts. Rates and CPU times are those of the second half of the records, when
//! the JVM is warm. The server shares the machine.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use holdfast_benches::workload::{NARROW, narrow_statements, numbers, wide_statements, wide_table};
use holdfast_connector::{Config, Engine, RecordKind};
use holdfast_tests::engine::{self, Process, Properties, RunOptions};
use holdfast_tests::server::{Options, Server};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--consume", config, records, rest @ ..] => consume(config, records, !rest.is_empty()),
        words => compare(words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("end_to_end: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The measured process of our own engine: counts, and prints what `tests/reference/Counter.java` prints.
fn consume(config: &str, records: &str, latency: bool) -> Result<()> {
    let expected: u64 = records.parse()?;
    let properties = holdfast_connector::config::Properties::parse(&fs::read_to_string(config)?)?;
    let (config, _) = Config::from_properties(&properties, Path::new("."))?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut engine = Engine::builder(config).start().await?;
        let (mut count, mut bytes) = (0_u64, 0_usize);
        let mut lines = String::new();
        while let Some(batch) = engine.next_batch().await? {
            for change in batch.changes() {
                if !matches!(change.kind(), RecordKind::Data(_)) || count == expected {
                    continue;
                }
                count += 1;
                bytes += change.value().len();
                if latency {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
                    let committed = commit_micros(change.value()).ok_or("no ts_us in a record")?;
                    writeln!(lines, "at {}", now.saturating_sub(committed))?;
                }
                if count == 1 {
                    println!("first");
                }
                if count == expected / 2 {
                    println!("half");
                }
                if count == expected {
                    println!("{lines}done {bytes}");
                    std::io::stdin().read_to_end(&mut Vec::new())?;
                }
            }
            batch.acknowledge();
            if count == expected {
                break;
            }
        }
        engine.close().await?;
        Ok(())
    })
}

/// `ts_us` of the source block.
fn commit_micros(value: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(value).ok()?;
    let (_, source) = text.split_once("\"source\":")?;
    let (_, micros) = source.split_once("\"ts_us\":")?;
    micros.split(',').next()?.parse().ok()
}

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Holdfast,
    Debezium,
}

/// What one run showed.
#[derive(Debug, Default, Clone)]
struct Run {
    /// Seconds from the start of the process to the first record.
    first: f64,
    /// Wall and CPU seconds of the second half.
    half: f64,
    half_cpu: f64,
    /// CPU seconds and wall seconds from the first record to the last.
    cpu: f64,
    wall: f64,
    /// Peak of the resident memory, MB.
    peak: f64,
    /// Bytes of the values.
    bytes: f64,
    /// Microseconds from commit to consumer.
    latencies: Vec<f64>,
}

/// A child that counts.
#[expect(clippy::disallowed_methods, reason = "no executor runs in this process")]
fn run(
    who: Who,
    folder: &Path,
    expected: u64,
    latency: bool,
    feed: impl FnOnce() -> Result<()>,
) -> Result<Run> {
    let config = folder.join("engine.properties");
    let mut command = match who {
        Who::Holdfast => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("--consume");
            command
        }
        Who::Debezium => {
            let mut command = Command::new("java");
            command
                .args(["-Duser.timezone=UTC", "-cp"])
                .arg(engine::reference_class_path()?)
                .arg("Counter");
            command
        }
    };
    command.arg(&config).arg(expected.to_string());
    if latency {
        command.arg("latency");
    }
    let log = fs::File::create(folder.join("engine.log"))?;
    let started = Instant::now();
    let mut child =
        Guard(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn()?);
    if latency {
        // Streaming before the first commit.
        std::thread::sleep(Duration::from_secs(if who == Who::Debezium { 8 } else { 1 }));
    }
    feed()?;
    let stdout = child.0.stdout.take().ok_or("no stdout")?;
    let id = child.0.id();
    let mut run = Run::default();
    let (mut at_first, mut at_half) = ((0.0, 0.0), (0.0, 0.0));
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let now = (started.elapsed().as_secs_f64(), cpu_seconds(id)?);
        if line == "first" {
            run.first = now.0;
            at_first = now;
        } else if line == "half" {
            at_half = now;
        } else if let Some(micros) = line.strip_prefix("at ") {
            run.latencies.push(micros.parse()?);
        } else if let Some(bytes) = line.strip_prefix("done ") {
            run.half = now.0 - at_half.0;
            run.half_cpu = now.1 - at_half.1;
            run.wall = now.0 - at_first.0;
            run.cpu = now.1 - at_first.1;
            run.bytes = bytes.parse()?;
            run.peak = peak_megabytes(id)?;
            drop(child.0.stdin.take());
            child.0.wait()?;
            return Ok(run);
        }
    }
    let log = fs::read_to_string(folder.join("engine.log"))?;
    Err(format!("{who:?} ended before the last record:\n{log}").into())
}

/// A process that does not outlive its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // One that has ended can't be killed, and that is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// User and system time of a process: its threads that run now to the nanosecond, or, where that is more, all of them in
/// steps of 10 ms.
fn cpu_seconds(id: u32) -> Result<f64> {
    let mut exact = 0.0;
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        // A thread can end between the two reads.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        exact += text.split_whitespace().next().unwrap_or("0").parse::<f64>()? / 1e9;
    }
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no /proc/…/stat")?;
    let ticks = |field: usize| -> Result<f64> {
        Ok(fields.split_whitespace().nth(field).ok_or("short /proc/…/stat")?.parse()?)
    };
    Ok(exact.max((ticks(11)? + ticks(12)?) / 100.0))
}

/// `VmHWM` of a process.
fn peak_megabytes(id: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1024.0)
}

/// What is measured.
struct Plan {
    rounds: usize,
    rows: u64,
    engines: Vec<Who>,
    /// Records carry their schema (`throughput` alone).
    schemas: bool,
    /// Properties of Holdfast (`throughput` alone).
    properties: Vec<(String, String)>,
}

fn compare(words: &[&str]) -> Result<()> {
    let mut plan = Plan {
        rounds: 3,
        rows: 1_000_000,
        engines: vec![Who::Holdfast, Who::Debezium],
        schemas: false,
        properties: Vec::new(),
    };
    let mut cases = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or("a number is missing");
        match *word {
            "--rounds" => plan.rounds = number()?.parse()?,
            "--rows" => plan.rows = number()?.parse()?,
            "--without-debezium" => plan.engines = vec![Who::Holdfast],
            "--schemas" => plan.schemas = true,
            "--set" => {
                let (key, value) =
                    words.next().and_then(|set| set.split_once('=')).ok_or("KEY=VALUE")?;
                plan.properties.push((key.to_owned(), value.to_owned()));
            }
            case => cases.push(case),
        }
    }
    if cases.is_empty() {
        cases = vec!["narrow", "wide", "large", "start", "latency"];
    }
    for case in cases {
        match case {
            "narrow" => throughput(&plan, "narrow", NARROW, &narrow_statements(plan.rows))?,
            "wide" => throughput(&plan, "wide", &wide_table(), &wide_statements(plan.rows / 8))?,
            "large" => large(false)?,
            "large-compressed" => large(true)?,
            "snapshot" => snapshot(&plan)?,
            "start" => start(&plan)?,
            "latency" => latency(&plan)?,
            other => return Err(format!("no case {other}").into()),
        }
    }
    Ok(())
}

fn options() -> Options {
    // The log is what is measured, not how safely the server writes it.
    Options::mysql()
        .arg("--sync-binlog=0")
        .arg("--innodb-flush-log-at-trx-commit=2")
        .arg("--innodb-buffer-pool-size=1G")
        .arg("--max-binlog-size=1G")
        .arg("--binlog-cache-size=4M")
}

/// An offset at the head of the log, and the schema history up to there.
fn prepare(
    server: &Server,
    who: Who,
    folder: &Path,
    table: &str,
    plan: Option<&Plan>,
) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut properties = Properties::new(server, folder);
    properties.set("snapshot.mode", "no_data");
    properties.set("snapshot.locking.mode", "none");
    properties.set("table.include.list", format!("bench.{table}"));
    properties.set("offset.flush.interval.ms", "1000");
    for converter in ["key", "value", "header"] {
        let schemas = plan.is_some_and(|plan| plan.schemas);
        properties.set(&format!("{converter}.converter.schemas.enable"), schemas.to_string());
    }
    for (key, value) in
        plan.filter(|_| who == Who::Holdfast).iter().flat_map(|plan| &plan.properties)
    {
        properties.set(key, value);
    }
    let kind = match who {
        Who::Holdfast => engine::Engine::Holdfast,
        Who::Debezium => engine::Engine::Reference,
    };
    let options = RunOptions { idle_timeout: Some(1), ..RunOptions::default() };
    let mut process = Process::start(kind, &properties, folder, "prepare", options)?;
    process.wait_end(Duration::from_secs(120))?;
    properties.write(&folder.join("engine.properties"))?;
    Ok(())
}

/// The files that an engine starts from, so that every round starts from the same.
fn saved(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let files = ["offsets.dat", "history.jsonl"].map(|name| folder.join(name));
    let mut saved = Vec::new();
    for file in files {
        let bytes = fs::read(&file)?;
        saved.push((file, bytes));
    }
    Ok(saved)
}

fn throughput(plan: &Plan, name: &str, create: &str, statements: &[(String, u64)]) -> Result<()> {
    let server = Server::start(options())?;
    let folder = tempfile::tempdir()?;
    server.sql(&format!("CREATE DATABASE bench; USE bench; {create}"))?;
    let mut engines = Vec::new();
    for who in &plan.engines {
        let folder = folder.path().join(format!("{who:?}"));
        prepare(&server, *who, &folder, name, Some(plan))?;
        let start = saved(&folder)?;
        engines.push((*who, folder, start, Vec::<Run>::new()));
    }
    let mut expected = 0;
    for (statement, rows) in statements {
        server.sql(&format!(
            "USE bench; SET SESSION cte_max_recursion_depth=4294967295; {statement}"
        ))?;
        expected += rows;
    }
    for _ in 0..plan.rounds {
        for (who, folder, start, runs) in &mut engines {
            for (path, bytes) in start {
                fs::write(path, bytes)?;
            }
            runs.push(run(*who, folder, expected, false, || Ok(()))?);
        }
    }
    let schemas = if plan.schemas { " with schemas" } else { "" };
    println!("{name}{schemas}: {expected} records, {} rounds, medians", plan.rounds);
    println!("| engine | records/s | CPU µs/record | bytes/record | peak MB | first record s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let half = expected as f64 / 2.0;
    for (who, _, _, runs) in &engines {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        println!(
            "| {who:?} | {:.0} | {:.3} | {:.0} | {:.0} | {:.3} |",
            half / of(|run| run.half),
            of(|run| run.half_cpu) * 1e6 / half,
            of(|run| run.bytes) / expected as f64,
            of(|run| run.peak),
            of(|run| run.first),
        );
    }
    if let [(_, _, _, ours), (_, _, _, theirs)] = engines.as_slice() {
        let ratio = |value: fn(&Run) -> f64| {
            median(
                ours.iter().zip(theirs).map(|(ours, theirs)| value(theirs) / value(ours)).collect(),
            )
        };
        println!(
            "ratios: records/s {:.1}, CPU {:.1}, peak memory {:.1}, first record {:.1}\n",
            ratio(|run| run.half),
            ratio(|run| run.half_cpu),
            ratio(|run| run.peak),
            ratio(|run| run.first),
        );
    }
    Ok(())
}

/// One transaction of 1 GB.
fn large(compressed: bool) -> Result<()> {
    const ROWS: u64 = 1_000_000;
    let compression = if compressed { "ON" } else { "OFF" };
    let options = options().arg(format!("--binlog-transaction-compression={compression}"));
    let server = Server::start(options)?;
    let folder = tempfile::tempdir()?;
    server
        .sql("CREATE DATABASE bench; USE bench; CREATE TABLE large (id INT PRIMARY KEY, t TEXT)")?;
    prepare(&server, Who::Holdfast, folder.path(), "large", None)?;
    let text = "CONCAT(LEFT(SHA2(i, 256), 32), REPEAT(LEFT(SHA2(i + 1, 256), 32), 31))";
    server.sql(&format!(
        "USE bench; SET SESSION cte_max_recursion_depth=4294967295; INSERT INTO large {}",
        numbers(1, ROWS, &format!("i, {text}"))
    ))?;
    let run = run(Who::Holdfast, folder.path(), ROWS, false, || Ok(()))?;
    println!(
        "large, compression {compression}: {ROWS} records of one transaction, {:.0} MB of values, {:.2} s, peak {:.1} MB\n",
        run.bytes / 1e6,
        run.wall,
        run.peak,
    );
    Ok(())
}

/// A table that is read from nothing.
fn snapshot(plan: &Plan) -> Result<()> {
    const PART: u64 = 500_000;
    let server = Server::start(options())?;
    server.sql(&format!("CREATE DATABASE bench; USE bench; {NARROW}"))?;
    let mut rows = 0;
    while rows < plan.rows {
        let part = PART.min(plan.rows - rows);
        let columns = "i, CONCAT('row number ', i, ' of many'), i * 7919 % 1000003, \
                       TIMESTAMPADD(MICROSECOND, i * 1237, '2024-01-01'), (i % 200000) / 100 - 300";
        server.sql(&format!(
            "USE bench; SET SESSION sql_log_bin=0, cte_max_recursion_depth=4294967295; INSERT INTO narrow {}",
            numbers(rows + 1, part, columns)
        ))?;
        rows += part;
    }
    let mut engines: Vec<(Who, Vec<Run>)> =
        plan.engines.iter().map(|who| (*who, Vec::new())).collect();
    for _ in 0..plan.rounds {
        for (who, runs) in &mut engines {
            let folder = tempfile::tempdir()?;
            let mut properties = Properties::new(&server, folder.path());
            properties.set("table.include.list", "bench.narrow");
            properties.set("offset.flush.interval.ms", "1000");
            properties.write(&folder.path().join("engine.properties"))?;
            runs.push(run(*who, folder.path(), rows, false, || Ok(()))?);
        }
    }
    println!("snapshot: {rows} records, {} rounds, medians", plan.rounds);
    println!("| engine | records/s | CPU µs/record | bytes/record | peak MB | first record s |");
    println!("| --- | --- | --- | --- | --- | --- |");
    let count = rows as f64;
    for (who, runs) in &engines {
        let of = |value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        println!(
            "| {who:?} | {:.0} | {:.3} | {:.0} | {:.0} | {:.3} |",
            count / of(|run| run.wall),
            of(|run| run.cpu) * 1e6 / count,
            of(|run| run.bytes) / count,
            of(|run| run.peak),
            of(|run| run.first),
        );
    }
    if let [(_, ours), (_, theirs)] = engines.as_slice() {
        let of = |runs: &[Run], value: fn(&Run) -> f64| median(runs.iter().map(value).collect());
        println!(
            "ratios of medians: records/s {:.1}, CPU {:.1}, peak memory {:.1}\n",
            of(theirs, |run| run.wall) / of(ours, |run| run.wall),
            of(theirs, |run| run.cpu) / of(ours, |run| run.cpu),
            of(theirs, |run| run.peak) / of(ours, |run| run.peak),
        );
    }
    Ok(())
}

/// From exec to the first record.
fn start(plan: &Plan) -> Result<()> {
    for tables in [1_u32, 1000] {
        let server = Server::start(options())?;
        let folder = tempfile::tempdir()?;
        let mut sql = "CREATE DATABASE bench; USE bench;".to_owned();
        for table in 0..tables {
            write!(
                sql,
                "CREATE TABLE t{table} (id INT PRIMARY KEY, a VARCHAR(64), b INT, c DATETIME(6), d DECIMAL(12,2));"
            )?;
        }
        server.sql(&sql)?;
        let mut firsts = Vec::new();
        for who in &plan.engines {
            let folder = folder.path().join(format!("{who:?}"));
            prepare(&server, *who, &folder, ".*", None)?;
            firsts.push((*who, folder.clone(), saved(&folder)?, Vec::new()));
        }
        server.sql("INSERT INTO bench.t0 VALUES (1, 'a', 1, NOW(6), 1), (2, 'b', 2, NOW(6), 2)")?;
        for _ in 0..plan.rounds {
            for (who, folder, start, firsts) in &mut firsts {
                for (path, bytes) in start {
                    fs::write(path, bytes)?;
                }
                firsts.push(run(*who, folder, 2, false, || Ok(()))?.first);
            }
        }
        for (who, _, _, firsts) in firsts {
            println!("start, {tables} tables, {who:?}: first record after {:.3} s", median(firsts));
        }
    }
    println!();
    Ok(())
}

/// Single-row commits, 100 a second for 25 seconds; the first 500 are left out.
fn latency(plan: &Plan) -> Result<()> {
    let server = Server::start(options())?;
    server.sql(&format!("CREATE DATABASE bench; USE bench; {NARROW}"))?;
    println!("| engine | p50 ms | p99 ms | max ms | CPU % of a core |");
    println!("| --- | --- | --- | --- | --- |");
    let all = [(Who::Holdfast, None), (Who::Debezium, None), (Who::Debezium, Some("1"))];
    let all = all.into_iter().filter(|(who, _)| plan.engines.contains(who)).collect::<Vec<_>>();
    let mut first = 0;
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let mut round = Vec::new();
        for (who, poll) in &all {
            let delay = delay(&server, *who, *poll, first)?;
            first += COMMITS;
            println!(
                "| {who:?}{} | {:.3} | {:.3} | {:.3} | {:.2} |",
                poll.map(|poll| format!(", poll.interval.ms={poll}")).unwrap_or_default(),
                delay.p50,
                delay.p99,
                delay.max,
                delay.cpu,
            );
            round.push(delay);
        }
        rounds.push(round);
    }
    for (index, (_, poll)) in all.iter().enumerate().skip(1) {
        let ratio = |value: fn(&Delay) -> f64| {
            let of = |round: &Vec<Delay>| Some(value(round.get(index)?) / value(round.first()?));
            median(rounds.iter().filter_map(of).collect())
        };
        println!(
            "ratios to Debezium {}: p50 {:.0}, p99 {:.0}, CPU {:.0}",
            poll.map_or("as it is".to_owned(), |poll| format!("with poll.interval.ms={poll}")),
            ratio(|delay| delay.p50),
            ratio(|delay| delay.p99),
            ratio(|delay| delay.cpu),
        );
    }
    println!();
    Ok(())
}

/// Commits of a run.
const COMMITS: u64 = 2500;

/// From commit to consumer, milliseconds, and CPU time in percent of a core.
struct Delay {
    p50: f64,
    p99: f64,
    max: f64,
    cpu: f64,
}

/// A run from the head of the log, with rows from the key `first` on.
fn delay(server: &Server, who: Who, poll: Option<&str>, first: u64) -> Result<Delay> {
    let folder = tempfile::tempdir()?;
    prepare(server, who, folder.path(), "narrow", None)?;
    if let Some(poll) = poll {
        let config = folder.path().join("engine.properties");
        let mut text = fs::read_to_string(&config)?;
        writeln!(text, "poll.interval.ms={poll}")?;
        fs::write(config, text)?;
    }
    let mut sql = "USE bench; DELETE FROM narrow WHERE 1 = 0;".to_owned();
    for id in first..first + COMMITS {
        write!(
            sql,
            "INSERT INTO narrow VALUES ({id}, 'latency', 1, NOW(6), 1.5); DO SLEEP(0.01);"
        )?;
    }
    let mut run = run(who, folder.path(), COMMITS, true, || Ok(server.sql(&sql)?))?;
    let mut latencies = run.latencies.split_off(500.min(run.latencies.len()));
    latencies.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let index = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
        latencies.get(index).copied().unwrap_or(f64::NAN) / 1000.0
    };
    let cpu = run.half_cpu / run.half * 100.0;
    Ok(Delay { p50: at(50), p99: at(99), max: at(100), cpu })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
