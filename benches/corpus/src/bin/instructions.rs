//! Instructions that decoding a row takes, counted: a measure that a busy machine does not disturb.
//!
//! ```text
//! cargo run --release -p holdfast-corpus --bin instructions             # compares with benches/corpus/instructions.txt
//! cargo run --release -p holdfast-corpus --bin instructions -- --write  # writes it
//! valgrind --tool=callgrind target/release/instructions --own final FILE 3      # FILE from --corpus narrow FILE
//! ```
//!
//! Needs `valgrind` on the PATH; says so and ends with 2 without it. Ends with 1 when a count is more than 3 % above the
//! recorded one. Counted is the difference between three passes over a file and one, so that starting the program does
//! not count. The numbers belong to a compiler, whose version stands in the file: with another nothing is compared, which is
//! said, and they are to be written anew in a commit of its own.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use holdfast_corpus::decode::{self, Work};
use holdfast_corpus::{callgrind, corpus};

/// Bytes of the narrow corpus.
const SIZE: u64 = 3_000_000;

/// Most that a count may grow.
const ALLOWED: f64 = 1.03;

const WORKS: [(&str, Work); 3] =
    [("sink", Work::Sink), ("rows", Work::Row), ("final", Work::Final)];

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--own", work, path, passes] => own(work, path, passes).map(|()| ExitCode::SUCCESS),
        ["--corpus", name, path] => write_corpus(name, path).map(|()| ExitCode::SUCCESS),
        [] => compare(false),
        ["--write"] => compare(true),
        _ => Err("usage: instructions [--write | --corpus NAME FILE]".into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("instructions: {error}");
        ExitCode::from(2)
    })
}

/// The counted process.
fn own(work: &str, path: &str, passes: &str) -> Result<(), Box<dyn Error>> {
    let (_, work) = WORKS.iter().find(|(name, _)| *name == work).ok_or("no such work")?;
    for _ in 0..passes.parse()? {
        std::hint::black_box(decode::run(File::open(path)?, *work)?);
    }
    Ok(())
}

/// Writes a corpus, for a profiler.
fn write_corpus(name: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let corpus = corpus::by_name(name, SIZE).ok_or("no such corpus")?;
    Ok(std::fs::write(path, &corpus.bytes)?)
}

fn compare(is_written: bool) -> Result<ExitCode, Box<dyn Error>> {
    let valgrind = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !valgrind.is_ok_and(|status| status.success()) {
        return Err("valgrind is not installed; nothing was counted".into());
    }
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.txt");
    let recorded = std::fs::read_to_string(&record).unwrap_or_default();
    let compiler = compiler()?;
    let mut text =
        format!("# Instructions per row, written by `instructions --write` with\n# {compiler}\n");
    let is_comparable = recorded.lines().any(|line| line.strip_prefix("# ") == Some(&compiler));
    if !is_comparable && !is_written {
        println!(
            "NOTHING IS COMPARED: the recorded counts are not of {compiler}; write them anew with --write"
        );
        return Ok(ExitCode::SUCCESS);
    }
    let mut is_worse = false;
    for name in ["narrow", "wide", "compressed"] {
        let corpus = corpus::by_name(name, SIZE).ok_or("no such corpus")?;
        let path = std::env::temp_dir().join(format!("{name}-{}.binlog", std::process::id()));
        std::fs::write(&path, &corpus.bytes)?;
        for (work, _) in WORKS {
            let (one, three) = (count(work, &path, 1)?, count(work, &path, 3)?);
            let per_row = (three - one) / 2 / corpus.facts.rows;
            let key = format!("{name} {work} ");
            let before = recorded.lines().find_map(|line| line.strip_prefix(&key)?.parse().ok());
            let before: f64 = before.unwrap_or_default();
            #[expect(clippy::cast_precision_loss, reason = "for a ratio")]
            let ratio = per_row as f64 / before;
            let verdict = if before > 0.0 && ratio > ALLOWED {
                is_worse = true;
                "  MORE THAN 3 % ABOVE"
            } else {
                ""
            };
            println!("{name:10} {work:6} {per_row:6} per row, recorded {before:6}{verdict}");
            writeln!(text, "{key}{per_row}")?;
        }
        std::fs::remove_file(&path)?;
    }
    if is_written {
        std::fs::write(&record, text)?;
        return Ok(ExitCode::SUCCESS);
    }
    Ok(if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What this was built by, as the compiler names itself.
fn compiler() -> Result<String, Box<dyn Error>> {
    let program = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(program).arg("--version").output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Instructions of a process that decodes the file so many times.
fn count(work: &str, path: &Path, passes: u32) -> Result<u64, Box<dyn Error>> {
    let passes = passes.to_string();
    let arguments: [&OsStr; 4] = ["--own".as_ref(), work.as_ref(), path.as_ref(), passes.as_ref()];
    callgrind::instructions(arguments)
}
