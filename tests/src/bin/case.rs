//! Runs case folders: `case FOLDER... [--engine holdfast|reference|both] [--print]` (default: holdfast).
//!
//! `--print` prints what comes, in the form of `expect.jsonl`, and compares nothing (stream cases).
//! A folder may be given by its number alone (`case 080`). The first difference is printed; the files of a failed run
//! stay under `target/holdfast-tests`. Exit code 1 when a case did not give the right outcome.

use std::path::PathBuf;
use std::process::ExitCode;

use holdfast_tests::case::Case;
use holdfast_tests::engine::Engine;
use holdfast_tests::server::{Server, shared};
use holdfast_tests::{Failure, Result, expect, golden, paths};

fn main() -> Result<ExitCode> {
    let mut engines = vec![Engine::Holdfast];
    let mut cases = Vec::new();
    let mut print = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--engine" {
            engines = match args.next().as_deref() {
                Some("holdfast") => vec![Engine::Holdfast],
                Some("reference") => vec![Engine::Reference],
                Some("both") => vec![Engine::Holdfast, Engine::Reference],
                other => {
                    return Err(Failure::new(format!(
                        "--engine holdfast|reference|both, not {other:?}"
                    )));
                }
            };
        } else if arg == "--print" {
            print = true;
        } else {
            cases.push(Case::load(folder(&arg)?)?);
        }
    }
    if cases.is_empty() {
        return Err(Failure::new("usage: case FOLDER... [--engine holdfast|reference|both]"));
    }
    let mut failed = 0;
    for case in &cases {
        for &engine in &engines {
            if print {
                for record in
                    golden::capture(case, &*shared(&case.server())?, &[engine])?.iter().flatten()
                {
                    println!("{}", expect::simplify(record));
                }
                continue;
            }
            match run(case, engine) {
                Ok(()) => println!("case {} with {} ... ok", case.name(), engine.name()),
                Err(error) => {
                    failed += 1;
                    println!("case {} with {} ... FAILED\n{error}", case.name(), engine.name());
                }
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(case: &Case, engine: Engine) -> Result<()> {
    if case.needs_own_server() {
        case.run_apart(engine, &Server::start(case.server())?)
    } else {
        case.run_apart(engine, &*shared(&case.server())?)
    }
}

/// A path, or the number of a case.
fn folder(name: &str) -> Result<PathBuf> {
    let path = PathBuf::from(name);
    if path.join("case.md").exists() {
        return Ok(path);
    }
    for entry in std::fs::read_dir(paths::tests("cases"))? {
        let path = entry?.path();
        if path.file_name().is_some_and(|folder| folder.to_string_lossy().starts_with(name))
            && path.is_dir()
        {
            return Ok(path);
        }
    }
    Err(Failure::new(format!("no case {name}")))
}
