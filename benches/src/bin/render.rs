//! Instructions that printing a row takes, counted: a measure that a busy machine does not disturb.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin render                         # a table of all cases
//! cargo run --release -p holdfast-benches --bin render -- --types wide         # the same for each type of a case
//! cargo run --release -p holdfast-benches --bin render -- --print wide FILE    # what is printed, to compare it
//! valgrind --tool=callgrind target/release/render --own wide print 3           # for a profiler
//! ```
//!
//! Needs `valgrind` on the PATH. Counted is the difference between three passes over a log and one, so that starting the
//! program does not count; *reading* is the decoding of the rows alone. Everything is per row image: an update has two.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::process::ExitCode;

use holdfast_benches::callgrind;
use holdfast_benches::render::{CASES, Case};

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--own", case, work, passes] => own(case, work, passes),
        ["--types", case] => types(case),
        ["--print", case, path] => print(case, path),
        [] => table(),
        _ => Err("usage: render [--types CASE | --print CASE FILE]".into()),
    };
    if let Err(error) = result {
        eprintln!("render: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The counted process. `work`: `read`, `print`, or the columns that are to be printed.
fn own(case: &str, work: &str, passes: &str) -> Result<(), Box<dyn Error>> {
    let mut case = Case::named(case)?;
    if !matches!(work, "read" | "print") {
        let columns = work.split(',').filter_map(|column| column.parse().ok());
        case.select(&columns.collect::<Vec<_>>());
    }
    let mut out = Vec::with_capacity(1 << 16);
    for _ in 0..passes.parse()? {
        let out = (work != "read").then_some(&mut out);
        case.run(out, |json| {
            std::hint::black_box(json);
        })?;
    }
    Ok(())
}

fn print(case: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut written = Ok(());
    Case::named(case)?.run(Some(&mut Vec::new()), |json| {
        if written.is_ok() {
            written = file.write_all(json).and_then(|()| file.write_all(b"\n"));
        }
    })?;
    written?;
    Ok(file.flush()?)
}

fn table() -> Result<(), Box<dyn Error>> {
    println!(
        "| case | bytes of JSON | instructions: reading | printing |\n| --- | --- | --- | --- |"
    );
    for name in CASES {
        let case = Case::named(name)?;
        let mut bytes = 0;
        case.run(Some(&mut Vec::new()), |json| bytes += json.len() as u64)?;
        let per_image = |work| Ok::<_, Box<dyn Error>>(count(name, work)? / case.images);
        let (read, all) = (per_image("read")?, per_image("print")?);
        println!("| {name} | {} | {read} | {} |", bytes / case.images, all - read);
    }
    Ok(())
}

fn types(name: &str) -> Result<(), Box<dyn Error>> {
    let case = Case::named(name)?;
    let nothing = count(name, "none")?;
    println!("| type | instructions for a column |\n| --- | --- |");
    for (kind, columns) in case.types() {
        let work = columns.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let of_these = count(name, &work)?.saturating_sub(nothing);
        println!("| {kind} | {} |", of_these / case.images / columns.len() as u64);
    }
    Ok(())
}

/// Instructions of a pass.
fn count(case: &str, work: &str) -> Result<u64, Box<dyn Error>> {
    let passes = |passes| callgrind::instructions(["--own", case, work, passes]);
    Ok((passes("3")? - passes("1")?) / 2)
}
