//! The demo: a workload on a real MySQL, streamed, killed in the middle, resumed without a gap or a duplicate.

use std::path::Path;

use holdfast_tests::case::{self, Case};
use holdfast_tests::engine::{Engine, Process, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Flavour, Server};
use holdfast_tests::{Failure, Result, golden, paths};

/// Streamed records that are acknowledged before the kill: the third is in the middle of an update of three rows.
const ACKNOWLEDGED: usize = 3;

fn main() -> Result<()> {
    let case = golden::cases(Flavour::MySql)?
        .into_iter()
        .find(|case| case.name() == "demo")
        .ok_or_else(|| Failure::new("no golden case demo"))?;
    let folder = paths::fresh("demo")?;
    let server = Server::start(case.server())?;
    let result = demo(&case, &server, &folder);
    match &result {
        Ok(()) => std::fs::remove_dir_all(&folder)?,
        Err(_) => eprintln!("files of the run: {}", folder.display()),
    }
    result
}

fn demo(case: &Case, server: &Server, folder: &Path) -> Result<()> {
    case.set_up(server)?;
    let properties = case.properties(server, folder)?;

    heading("1. The snapshot");
    let mut run =
        Process::start(Engine::Holdfast, &properties, folder, "snapshot", RunOptions::default())?;
    case::snapshot_end(&mut run)?;
    run.stop()?;
    show(&case::records_of_case(run.records()), None);

    heading("2. The workload");
    print!("{}", std::fs::read_to_string(case.folder().join("workload.sql"))?);
    case.script(server, "workload.sql")?;
    server.sql(&format!("INSERT INTO {}.marker VALUES (2)", case::MARKER))?;

    heading(&format!(
        "3. Streamed; the first {ACKNOWLEDGED} records are acknowledged, then SIGKILL"
    ));
    let options = RunOptions { ack_first: Some(ACKNOWLEDGED as u64), ..RunOptions::default() };
    let mut run = Process::start(Engine::Holdfast, &properties, folder, "first", options)?;
    case::marker_row(&mut run, 2)?;
    case::settle(&mut run, server, 3)?;
    run.kill()?;
    let first = case::records_of_case(run.records());
    show(&first, Some(ACKNOWLEDGED));

    heading("4. Resumed from the stored offset");
    let mut run =
        Process::start(Engine::Holdfast, &properties, folder, "second", RunOptions::default())?;
    case::marker_row(&mut run, 2)?;
    run.stop()?;
    let second = case::records_of_case(run.records());
    show(&second, None);

    let rest = first.get(ACKNOWLEDGED..).unwrap_or_default();
    let (wanted, came) = (golden::live(rest), golden::live(&second));
    if wanted != came {
        let at = wanted.iter().zip(&came).take_while(|(wanted, came)| wanted == came).count();
        return Err(Failure::new(format!(
            "resumed wrongly: {} records came, {} had to; the first difference is at {}",
            came.len(),
            wanted.len(),
            at + 1
        )));
    }
    println!(
        "\n{} records: {ACKNOWLEDGED} before the kill and {} after it, no gap, no duplicate. Server {}.",
        first.len(),
        second.len(),
        server.version()
    );
    Ok(())
}

fn heading(text: &str) {
    println!("\n== {text}");
}

/// Prints records, whole; after `acknowledged` of them a line says that the rest was not acknowledged.
fn show(records: &[Record], acknowledged: Option<usize>) {
    for (index, record) in records.iter().enumerate() {
        if acknowledged == Some(index) {
            println!("-- delivered, not acknowledged:");
        }
        println!("{}", readable(&record.0));
    }
}

/// Leaves the long lists of columns of schema changes out.
fn readable(record: &Json) -> String {
    let mut record = record.clone();
    if let Some(changes @ Json::Array(_)) = record.at_path_mut("value.tableChanges") {
        let kinds: Vec<String> = changes
            .elements()
            .iter()
            .map(|change| {
                format!(
                    "{} {}",
                    change.text("type").unwrap_or_default(),
                    change.text("id").unwrap_or_default()
                )
            })
            .collect();
        *changes = Json::string(kinds.join(", "));
    }
    record.to_string()
}
