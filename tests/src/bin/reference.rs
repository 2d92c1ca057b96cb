//! Regenerates the goldens with the real Debezium and compares Holdfast with it on the same server and the same log.
//!
//! `reference [--goldens-only] [CASE...]`: without names, all cases. Exit code 1 when a golden came out differently or
//! Holdfast differs from Debezium. `--goldens-only` does not start Holdfast.

use std::process::ExitCode;

use holdfast_tests::engine::Engine;
use holdfast_tests::server::{Flavour, shared};
use holdfast_tests::{Failure, Result, golden};

fn main() -> Result<ExitCode> {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    let goldens_only = names.iter().any(|name| name == "--goldens-only");
    names.retain(|name| name != "--goldens-only");
    let engines: &[Engine] =
        if goldens_only { &[Engine::Reference] } else { &[Engine::Reference, Engine::Holdfast] };

    let (mut passed, mut failed) = (0, 0);
    let mut known = 0;
    for case in golden::cases(Flavour::MySql)? {
        known += 1;
        if !names.is_empty() && !names.contains(&case.name()) {
            continue;
        }
        let outcome = shared(&case.server()).and_then(|server| {
            let captured = golden::capture(&case, &server, engines)?;
            let debezium = captured.first().map(Vec::as_slice).unwrap_or_default();
            let changed = golden::write_expected(&case, &golden::normalised(&case, debezium))?;
            if let Some(holdfast) = captured.get(1) {
                golden::compare(&case, &golden::live(debezium), &golden::live(holdfast))?;
            }
            if changed {
                Err(Failure::new("expected.jsonl has changed: look at git diff"))
            } else {
                Ok(debezium.len())
            }
        });
        match outcome {
            Ok(records) => {
                passed += 1;
                println!("reference {} ... ok ({records} records)", case.name());
            }
            Err(error) => {
                failed += 1;
                println!("reference {} ... FAILED\n{error}", case.name());
            }
        }
    }
    let differs = if goldens_only { "" } else { ", Holdfast compared with Debezium 3.6.3.Final" };
    println!("reference result: {passed} passed, {failed} failed of {known} cases{differs}");
    Ok(if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
