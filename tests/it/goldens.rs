//! Holdfast against the committed output of the real Debezium, without a JVM. `make reference` compares the two live.
//!
//! Goldens and other tests show the cases of the records' specification:
//!
//! | cases | shown by |
//! | --- | --- |
//! | V001 to V291, and the single values they were chosen from | `values.rs`; goldens `types-*`, `converters` |
//! | D001 to D051 | golden `ddl-tables` |
//! | D052 to D055, D065, D066, D107, D113 to D115 | `history/src/ddl/apply/tests.rs`; cases 031, 033 |
//! | D056 to D078 | golden `ddl-other` |
//! | D079 to D124 | golden `ddl-forms` |
//! | D125 to D146 | golden `ddl-own` of MariaDB |
//! | D147 to D159 | golden `ddl-own-more` of MariaDB |
//! | X01 | case 107 |
//! | X02 | `history/src/ddl/apply/tests.rs`: `a_table_that_is_created_again_replaces_the_one_that_is_known` |
//! | X03 | case 033 |
//! | X04 X05 | `history_cases.rs`: `a_statement_that_is_not_understood_ends_the_run_unless_it_may_be_skipped`; `engine_cases`: `rows_of_an_unknown_table_are_an_error_or_left_out` |
//! | X06 | golden `ddl-own` of MariaDB |
//! | X07 X08 S36 | golden `versioning-and-sequences` of MariaDB; case 115 |
//! | X09 | golden `operations-markers-schemas`, `filter-masks-schemas` |
//! | S01 to S11, S14, S15, S17 to S20 | golden `operations` |
//! | S12 S13 S16 | goldens `operations-transactions`, `operations-transactions-no-gtid` |
//! | S21 | goldens `operations-transactions`, `operations-markers-schemas` |
//! | S22 S23 | golden `operations-query` |
//! | S24 S25 | goldens `operations-schemas`, `operations-markers-schemas` |
//! | S26 | golden `operations`: headers are those of key changes only |
//! | S27 | case 069 |
//! | S28 S29 S30 | case 055, `xa.rs` |
//! | S31 | case 049 |
//! | S32 | case 003 |
//! | S33 S34 | `snapshot_cases.rs` |
//! | S35 S39 | not there: notifications, signals |
//! | S37 S42 | case 111 |
//! | S38 | golden `tagged-gtids` |
//! | S40 S41 | golden `failures-passed-over`; `connector/src/convert/tests.rs` |
//! | S43 | `connector/src/assemble/mod.rs` |
//! | F01 | golden `filter-tables-included` |
//! | F02 F03 | golden `filter-tables-excluded`; `connector/src/filter/mod.rs` |
//! | F04 F05 | `history_cases.rs` |
//! | F06 F07 F08 | goldens `filter-columns-included`, `filter-columns-excluded` |
//! | F09 to F14 | goldens `filter-masks`, `filter-masks-schemas`; `connector/src/convert/mapping.rs` |
//! | F15 | golden `filter-message-keys` |
//! | F16 F17 | goldens `names-avro`, `names-avro-unicode` |
//! | F18 F20 | goldens `names-topic-parts`, `names-topic-schema` |
//! | F19 F25 | `connector/src/topic.rs` |
//! | F21 F22 | goldens `names-topic-regex`, `names-topic-regex-key` |
//! | F23 F24 | golden `snapshot-chosen` |
//! | C01 to C13, C16 to C18 | `connector/src/config/tests.rs`, and `validation.rs` beside it: every value that Debezium was asked for |
//! | C14 C15 | `errors/usage.rs` |

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
