//! The real Debezium beside Holdfast: `reference [--goldens-only | --cases-only | --without-holdfast] [CASE...]`.
//!
//! Goldens: runs every golden case with both engines at once on one server and one log, compares all records, and
//! writes `expected.jsonl` anew. Cases: runs every case of `tests/cases` with Debezium, and checks that it fares as the
//! header says: `ok` must give the right outcome, `wrong`, `loses` and `stops` must not.
//!
//! Exit code 1 when Holdfast differs from Debezium, a golden came out differently, or a header is wrong.
//! `--without-holdfast` regenerates only. Without an option, `takeover` is run too: each engine goes on with the other's
//! offset and history, in files and in tables, and in the middle of a transaction; `refresh`: Debezium goes on after
//! `holdfast refresh`, and what becomes of changes behind the head when the history is lost; `restart`: in a snapshot, and
//! behind the BEGIN of a transaction; and `random`: random
//! workloads, whose records must be the same. `HOLDFAST_WORKLOADS` says how many (50), `HOLDFAST_SEED` from which seed
//! on (100), and `HOLDFAST_WORKLOAD` runs one of a batch alone.
//!
//! `reference --write-random SEED COUNT FOLDER` writes such workloads as a golden case.

use std::process::ExitCode;

use holdfast_tests::case::{Case, Kind};
use holdfast_tests::engine::Engine;
use holdfast_tests::server::{Flavour, Options, Server, shared};
use holdfast_tests::takeover::Stores;
use holdfast_tests::workload::{self, Batch};
use holdfast_tests::{Context, Failure, Result, golden, paths, refreshed, replica, takeover};

/// Counts what was run.
#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
}

impl Tally {
    fn note(&mut self, what: &str, outcome: Result<String>) {
        match outcome {
            Ok(detail) => {
                self.passed += 1;
                println!("reference {what} ... ok ({detail})");
            }
            Err(error) => {
                self.failed += 1;
                println!("reference {what} ... FAILED\n{error}");
            }
        }
    }
}

fn main() -> Result<ExitCode> {
    let (options, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    if has("--write-random") {
        return write_random(&names);
    }
    if let Some(unknown) = options.iter().find(|option| {
        !["--goldens-only", "--cases-only", "--without-holdfast"].contains(&option.as_str())
    }) {
        return Err(Failure::new(format!("unknown option {unknown}")));
    }
    let engines: &[Engine] = if has("--without-holdfast") {
        &[Engine::Reference]
    } else {
        &[Engine::Reference, Engine::Holdfast]
    };
    let wanted = |case: &Case| {
        names.is_empty() || names.iter().any(|name| case.name().starts_with(name.as_str()))
    };

    let mut tally = Tally::default();
    if !has("--cases-only") {
        for case in golden::cases(Flavour::MySql)?.iter().filter(|case| wanted(case)) {
            tally.note(&format!("golden {}", case.name()), one_golden(case, engines));
        }
    }
    if !has("--goldens-only") {
        for case in Case::all(&paths::tests("cases"))?.iter().filter(|case| wanted(case)) {
            if case.kind()? != Kind::Data && case.server().flavour() == Flavour::MySql {
                tally.note(&format!("case {}", case.name()), one_case(case));
            }
        }
    }
    if options.is_empty() && (names.is_empty() || names.iter().any(|name| name == "takeover")) {
        takeovers(&mut tally)?;
    }
    if options.is_empty() && (names.is_empty() || names.iter().any(|name| name == "refresh")) {
        let pair = replica::shared()?;
        tally.note("refresh: Debezium goes on", refreshed::debezium_goes_on(&pair));
        drop(pair);
        let server = shared(&Options::mysql())?;
        tally.note("refresh: a lost history", refreshed::the_gap(&server));
    }
    if options.is_empty() && (names.is_empty() || names.iter().any(|name| name == "restart")) {
        let server = shared(&Options::mysql())?;
        tally.note("restart: Debezium goes on in a snapshot", takeover::of_a_snapshot(&server));
        let begun = [Engine::Reference, Engine::Holdfast]
            .map(|engine| takeover::behind_a_begin(&server, engine));
        tally.note("restart: behind a BEGIN", both(begun));
    }
    if options.is_empty() && (names.is_empty() || names.iter().any(|name| name == "random")) {
        random_workloads(&mut tally)?;
    }
    println!("reference result: {} passed, {} failed", tally.passed, tally.failed);
    Ok(if tally.failed == 0 && tally.passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Workloads that one run of the engines reads.
const BATCH: u64 = 50;

fn random_workloads(tally: &mut Tally) -> Result<()> {
    let number = |variable: &str| -> Result<Option<u64>> {
        let text = std::env::var(variable).ok().filter(|text| !text.is_empty());
        text.map(|text| text.parse().context(|| variable.to_owned())).transpose()
    };
    let first = number("HOLDFAST_SEED")?.unwrap_or(100);
    let count = number("HOLDFAST_WORKLOADS")?.unwrap_or(BATCH);
    let alone = number("HOLDFAST_WORKLOAD")?;
    let server = shared(&Options::mysql())?;
    for seed in first..first + count.div_ceil(BATCH) {
        let size = BATCH.min(count - (seed - first) * BATCH);
        let mut batch =
            Batch::new(seed, if alone.is_some() { BATCH } else { size }, Flavour::MySql);
        if let Some(number) = alone {
            batch = batch.only(number);
        }
        let what = format!("random: {} workloads of seed {seed}", batch.workloads.len());
        let engines = [Engine::Reference, Engine::Holdfast];
        let outcome = batch.capture(&server, &engines).and_then(|captured| {
            let [debezium, holdfast] = captured.as_slice() else {
                return Err(Failure::new("two engines were to run"));
            };
            match workload::compare(&batch, debezium, holdfast) {
                Ok(listed) => {
                    Ok(format!("{} records, {listed} listed differences", debezium.len()))
                }
                Err(failures) => {
                    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
                    Err(Failure::new(format!("{} differ\n{}", texts.len(), texts.join("\n\n"))))
                }
            }
        });
        tally.note(&what, outcome);
    }
    Ok(())
}

fn write_random(arguments: &[String]) -> Result<ExitCode> {
    let [seed, count, folder] = arguments else {
        return Err(Failure::new("--write-random takes SEED COUNT FOLDER"));
    };
    let number = |text: &String| text.parse::<u64>().context(|| text.clone());
    let batch = Batch::new(number(seed)?, number(count)?, Flavour::MySql);
    batch.write_case(folder.as_ref(), Flavour::MySql)?;
    Ok(ExitCode::SUCCESS)
}

fn takeovers(tally: &mut Tally) -> Result<()> {
    use Engine::{Holdfast, Reference};
    let servers =
        [("with GTIDs", Options::mysql()), ("without GTIDs", Options::mysql().without_gtids())];
    for (gtids, options) in servers {
        let server = shared(&options)?;
        for stores in [Stores::Files, Stores::Tables] {
            let what = format!("takeover {stores:?} {gtids}").to_lowercase();
            tally.note(&what, takeover::both_ways(&server, stores));
            for engines in [[Reference, Holdfast, Reference], [Holdfast, Reference, Holdfast]] {
                let names = engines.map(Engine::name).join(", ");
                let outcome = takeover::in_a_transaction(&server, stores, engines);
                tally.note(&format!("{what} in a transaction: {names}"), outcome);
            }
        }
    }
    Ok(())
}

/// What both engines have given.
fn both([theirs, ours]: [Result<String>; 2]) -> Result<String> {
    let (theirs, ours) = (theirs?, ours?);
    if theirs == ours {
        Ok(theirs)
    } else {
        Err(Failure::new(format!("Debezium: {theirs}; Holdfast: {ours}")))
    }
}

fn one_golden(case: &Case, engines: &[Engine]) -> Result<String> {
    let server = shared(&case.server())?;
    let captured = match golden::capture(case, &server, engines) {
        // What Holdfast refuses to run for now is still regenerated.
        Err(_) if case.field("waiting").is_some() => {
            golden::capture(case, &server, &[Engine::Reference])?
        }
        captured => captured?,
    };
    let debezium = captured.first().map(Vec::as_slice).unwrap_or_default();
    let changed = golden::write_expected(case, &golden::normalised(case, debezium))?;
    let compared = match captured.get(1) {
        None => match case.field("waiting") {
            None => "Holdfast was not run".to_owned(),
            Some(what) => format!("Holdfast NOT YET, waits for {what}"),
        },
        Some(holdfast) => {
            let outcome = golden::compare(case, &golden::live(debezium), &golden::live(holdfast));
            match (outcome, case.field("waiting")) {
                (Ok(()), None) => "Holdfast gives the same".to_owned(),
                (Ok(()), Some(_)) => {
                    return Err(Failure::new("Holdfast gives the same: take `waiting` out"));
                }
                (Err(error), None) => return Err(error),
                (Err(_), Some(what)) => format!("Holdfast NOT YET, waits for {what}"),
            }
        }
    };
    if changed {
        return Err(Failure::new("expected.jsonl has changed: look at git diff"));
    }
    Ok(format!("{} records, {compared}", debezium.len()))
}

fn one_case(case: &Case) -> Result<String> {
    let outcome = if case.needs_own_server() {
        case.run_apart(Engine::Reference, &Server::start(case.server())?)
    } else {
        case.run_apart(Engine::Reference, &*shared(&case.server())?)
    };
    match (case.field("debezium"), outcome) {
        (Some("ok"), outcome) => outcome.map(|()| "right outcome".to_owned()),
        (Some(fares @ ("wrong" | "loses" | "stops")), Ok(())) => Err(Failure::new(format!(
            "Debezium gave the right outcome, but the header says {fares}"
        ))),
        (Some(fares @ ("quirk" | "wrong" | "loses" | "stops")), _) => {
            Ok(format!("{fares}, as known"))
        }
        (other, _) => Err(Failure::new(format!("the header says {other:?} of Debezium"))),
    }
}
