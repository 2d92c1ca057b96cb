//! Holdfast against the committed output of the real Debezium, without a JVM. `make reference` compares the two live.

use holdfast_tests::engine::Engine;
use holdfast_tests::golden;
use holdfast_tests::server::{Flavour, shared};

#[test]
fn holdfast_gives_the_records_that_debezium_gave_on_mysql() {
    compare_all(Flavour::MySql);
}

#[test]
fn holdfast_gives_the_records_that_debezium_gave_on_mariadb() {
    compare_all(Flavour::MariaDb);
}

/// All goldens of a server in one test: they take turns on the same servers anyway.
///
/// `HOLDFAST_GOLDEN` runs only those with that in their name.
///
/// A case with the field `waiting` is run too: it fails when nothing differs any more, so that the field is taken out.
fn compare_all(flavour: Flavour) {
    let mut failures = Vec::new();
    let mut waiting = 0;
    let cases = golden::cases(flavour).unwrap();
    let only = std::env::var("HOLDFAST_GOLDEN").unwrap_or_default();
    for case in cases.iter().filter(|case| case.name().contains(&only)) {
        let outcome = shared(&case.server()).and_then(|server| {
            let captured = golden::capture(case, &server, &[Engine::Holdfast])?;
            let records = captured.first().map(Vec::as_slice).unwrap_or_default();
            golden::compare(case, &golden::expected(case)?, &golden::normalised(case, records))
        });
        match (outcome, case.field("waiting")) {
            (Ok(()), None) => println!("golden {} ... ok", case.name()),
            (Ok(()), Some(_)) => {
                failures.push(format!("golden {} is right: take `waiting` out", case.name()))
            }
            (Err(error), None) => {
                failures.push(format!("golden {} ... FAILED\n{error}", case.name()))
            }
            (Err(error), Some(what)) => {
                waiting += 1;
                println!("golden {} ... NOT YET, waits for {what}\n{error}", case.name());
            }
        }
    }
    println!(
        "{} goldens on {flavour:?}: {} failed, {waiting} not yet",
        cases.len(),
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} of {} failed\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}
