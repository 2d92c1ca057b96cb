//! What a connection costs: a server's log, received and decoded, beside a loop that only compares checksums, and beside
//! mysql_async, which only looks at the headers.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin network -- [--rounds N] [--rows N] [--without-peers] [--compression] [narrow|wide]...
//! ```
//!
//! | line | what is done with each event |
//! | --- | --- |
//! | `checksums` | received by our client, its CRC-32 compared |
//! | `values` | received, checked, decoded, every value looked at |
//! | `final values` | besides, brought to the form that records take |
//! | `mysql_async` | received by that crate, its header looked at; no checksum is compared |
//!
//! With `--compression` the first line is read over compressed connections too, and one reading each shows what is sent, by the
//! server's `Bytes_sent`, and the CPU time of the server.
//!
//! Every round runs each of them once, in a process of its own with one thread, which reads the whole log to its end until
//! half a second is over, connecting anew for every pass. Wall time has the server in it, which sends from the page cache
//! of the same machine; CPU time is that of the reading thread. Ratios are medians of the ratios within the rounds.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use holdfast_benches::corpus::Facts;
use holdfast_benches::decode::{Count, Events, Finish, Touch, rows_into};
use holdfast_benches::pass::Pass;
use holdfast_benches::workload::{NARROW, narrow_statements, wide_statements, wide_table};
use holdfast_binlog::client::{BinlogClient, ClientOptions, Compression, DumpStart, Password};
use holdfast_binlog::event::{ChecksumAlgorithm, EventHeader, EventType};
use holdfast_binlog::row::RowSink;
use holdfast_binlog::stream::StreamOptions;
use holdfast_tests::server::{Options, Server};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--own", work, compression, port, user] => own(work, compression, port, user),
        words => compare(words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("network: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The measured process of our own client.
fn own(work: &str, compression: &str, port: &str, user: &str) -> Result<()> {
    let mut options = ClientOptions::new("127.0.0.1", port.parse()?, user, 79_101);
    options.password = Password::default();
    options.stop_at_end = true;
    options.compression = match compression {
        "zlib" => Compression::Zlib,
        "zstd" => Compression::Zstd,
        _ => Compression::Off,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if work == "once" {
        return runtime.block_on(checksums(&options)).map(drop);
    }
    let pass = Pass::measure(|| {
        runtime.block_on(async {
            match work {
                "checksums" => checksums(&options).await,
                "values" => values(&options, &mut Touch::default()).await,
                "final" => values(&options, &mut Finish::default()).await,
                other => Err(format!("no work {other}").into()),
            }
        })
    })?;
    println!("{}", pass.to_line());
    Ok(())
}

/// Compares the checksum of every event and counts transactions.
async fn checksums(options: &ClientOptions) -> Result<Facts> {
    let mut dump = BinlogClient::connect(options).await?.dump(DumpStart::First).await?;
    let mut facts = Facts::default();
    let mut begun = false;
    while let Some(event) = dump.next_event().await? {
        let event = event.memory().ok_or("an event in a file")?;
        let header = EventHeader::parse(event)?;
        let (covered, stored) = event.split_last_chunk::<4>().ok_or("a short event")?;
        // The format description's own is computed before a flag is set.
        begun |= header.event_type == EventType::FormatDescription;
        if begun && header.event_type != EventType::FormatDescription {
            let computed = crc32fast::hash(covered);
            if computed != u32::from_le_bytes(*stored) {
                return Err("a damaged event".into());
            }
        }
        facts.transactions += u64::from(header.event_type == EventType::Gtid);
    }
    Ok(facts)
}

/// Decodes every value.
async fn values<S: Count + for<'a> RowSink<'a>>(
    options: &ClientOptions,
    sink: &mut S,
) -> Result<Facts> {
    let mut dump = BinlogClient::connect(options).await?.dump(DumpStart::First).await?;
    let checksum = Some(ChecksumAlgorithm::Crc32);
    let options = StreamOptions { checksum, ..StreamOptions::default() };
    let mut events = Events::new("", options);
    let mut facts = Facts::default();
    while let Some(event) = dump.next_event().await? {
        events.each(event, &mut |event| rows_into(event, sink, &mut facts))?;
    }
    facts.cells = sink.count().0;
    Ok(facts)
}

/// What is run, and how.
struct Reader {
    name: &'static str,
    command: Vec<String>,
    passes: Vec<Pass>,
}

#[expect(clippy::cast_precision_loss, reason = "printed with few digits")]
fn compare(words: &[&str]) -> Result<()> {
    let (mut rounds, mut rows, mut cases) = (5_usize, 1_000_000_u64, vec![]);
    let (mut with_peers, mut with_compression) = (true, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or("a number is missing");
        match *word {
            "--rounds" => rounds = number()?.parse()?,
            "--rows" => rows = number()?.parse()?,
            "--without-peers" => with_peers = false,
            "--compression" => with_compression = true,
            case => cases.push(case),
        }
    }
    if cases.is_empty() {
        cases = vec!["narrow", "wide"];
    }
    for case in cases {
        let (create, statements) = match case {
            "narrow" => (NARROW.to_owned(), narrow_statements(rows)),
            "wide" => (wide_table(), wide_statements(rows / 8)),
            other => return Err(format!("no case {other}").into()),
        };
        let server = Server::start(
            Options::mysql().arg("--max-binlog-size=1G").arg("--innodb-buffer-pool-size=1G"),
        )?;
        server.sql(&format!("CREATE DATABASE bench; USE bench; {create}"))?;
        for (statement, _) in &statements {
            server.sql(&format!(
                "USE bench; SET SESSION cte_max_recursion_depth=4294967295; {statement}"
            ))?;
        }
        let expected: u64 = statements.iter().map(|(_, rows)| rows).sum();
        let mut readers = readers(&server, with_peers, with_compression)?;
        for round in 0..rounds {
            eprintln!("{case}: round {} of {rounds}", round + 1);
            for reader in &mut readers {
                reader.measure(expected)?;
            }
        }
        println!("\n{case}: {expected} rows, {rounds} rounds, medians\n");
        println!("| reader | seconds | CPU s | M rows/s |");
        println!("| --- | --- | --- | --- |");
        for reader in &readers {
            let seconds = median(reader.passes.iter().map(|pass| pass.seconds));
            let cpu = median(reader.passes.iter().map(|pass| pass.cpu_seconds));
            let rate = expected as f64 / seconds / 1e6;
            println!("| {} | {seconds:.3} | {cpu:.3} | {rate:.2} |", reader.name);
        }
        let (base, others) = readers.split_first().ok_or("no readers")?;
        println!();
        for reader in others {
            let ratio = |value: fn(&Pass) -> f64| {
                let pairs = reader.passes.iter().zip(&base.passes);
                median(pairs.map(|(pass, base)| value(base) / value(pass)))
            };
            println!(
                "final values to {}: seconds {:.2}, CPU {:.2}",
                reader.name,
                ratio(|pass| pass.seconds),
                ratio(|pass| pass.cpu_seconds)
            );
        }
        if with_compression {
            println!("\n| connection | MB sent | server CPU s |\n| --- | --- | --- |");
            for compression in ["none", "zlib", "zstd"] {
                let (bytes, cpu) = cost(&server, compression)?;
                println!("| {compression} | {:.1} | {cpu:.2} |", bytes as f64 / 1e6);
            }
        }
    }
    Ok(())
}

/// What the server sends for one reading of its log, bytes, and the CPU seconds that it takes for it.
fn cost(server: &Server, compression: &str) -> Result<(u64, f64)> {
    let sent = || -> Result<u64> {
        let status = server.query("SHOW GLOBAL STATUS LIKE 'Bytes_sent'")?;
        Ok(status.first().and_then(|row| row.last()).ok_or("no Bytes_sent")?.parse()?)
    };
    let pid = std::fs::read_to_string(server.value("SELECT @@pid_file")?)?;
    let cpu = || -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no /proc/…/stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(ticks.sum::<std::result::Result<f64, _>>()? / 100.0)
    };
    let before = (sent()?, cpu()?);
    own_process(server, "once", compression)?.run()?;
    let after = (sent()?, cpu()?);
    Ok((after.0 - before.0, after.1 - before.1))
}

/// Our own client in a process of its own.
fn own_process(server: &Server, work: &str, compression: &str) -> Result<Reader> {
    let this = std::env::current_exe()?.display().to_string();
    let port = server.port().to_string();
    let command = [&this, "--own", work, compression, &port, server.user()];
    Ok(Reader { name: "", command: command.map(str::to_owned).into(), passes: Vec::new() })
}

/// All readers of a server's log; the first is the one that is compared.
fn readers(server: &Server, with_peers: bool, with_compression: bool) -> Result<Vec<Reader>> {
    let mut all = vec![
        ("final values", "final", "none"),
        ("values", "values", "none"),
        ("checksums", "checksums", "none"),
    ];
    if with_compression {
        all.extend([
            ("final values, zlib", "final", "zlib"),
            ("final values, zstd", "final", "zstd"),
        ]);
    }
    let mut readers = Vec::new();
    for (name, work, compression) in all {
        readers.push(Reader { name, ..own_process(server, work, compression)? });
    }
    if with_peers {
        let program = holdfast_benches::peers::build()?;
        let port = server.port().to_string();
        let command = [program.as_str(), "mysql_async", &port, server.user()];
        let command = command.map(str::to_owned).into();
        readers.push(Reader { name: "mysql_async", command, passes: Vec::new() });
    }
    Ok(readers)
}

impl Reader {
    /// What the process prints.
    fn run(&self) -> Result<String> {
        let (program, arguments) = self.command.split_first().ok_or("no program")?;
        let output = Command::new(Path::new(program)).args(arguments).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {errors}", self.name).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn measure(&mut self, expected: u64) -> Result<()> {
        let line = self.run()?;
        let Some(pass) = Pass::from_line(&line) else {
            return Err(format!("{} printed {line}", self.name).into());
        };
        // Who decodes must have found all rows, and everybody all transactions.
        let rows = pass.facts.rows;
        if rows != 0 && rows != expected || pass.facts.transactions == 0 {
            return Err(format!("{} found {:?}", self.name, pass.facts).into());
        }
        self.passes.push(pass);
        Ok(())
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values = values.collect::<Vec<_>>();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
