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
fn compare_all(flavour: Flavour) {
    let mut failures = Vec::new();
    let cases = golden::cases(flavour).unwrap();
    for case in &cases {
        let outcome = shared(&case.server()).and_then(|server| {
            let captured = golden::capture(case, &server, &[Engine::Holdfast])?;
            let records = captured.first().map(Vec::as_slice).unwrap_or_default();
            golden::compare(case, &golden::expected(case)?, &golden::normalised(case, records))
        });
        match outcome {
            Ok(()) => println!("golden {} ... ok", case.name()),
            Err(error) => failures.push(format!("golden {} ... FAILED\n{error}", case.name())),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} failed\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}
