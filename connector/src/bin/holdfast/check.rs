//! `holdfast check`.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::Args;
use holdfast_connector::check::{Standing, check};

use crate::exit::{Failure, REFUSED, STORAGE};
use crate::{ConfigArguments, settings};

/// `holdfast check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    config: ConfigArguments,
}

/// Prints every precondition; exit code 1 when one fails.
pub(crate) async fn run(arguments: CheckArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let findings = check(&config).await;
    let mut text = String::new();
    let mut failed = 0;
    for finding in &findings {
        let mark = match finding.standing {
            Standing::Holds => "ok  ",
            Standing::Note => "note",
            Standing::Fails => "FAIL",
        };
        failed += u32::from(finding.standing == Standing::Fails);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{mark}  {}: {}", finding.name, finding.found);
        if !finding.fix.is_empty() {
            let _ = writeln!(text, "      {}", finding.fix);
        }
    }
    io::stdout().write_all(text.as_bytes()).map_err(|error| {
        Failure::new(STORAGE, format!("cannot write to standard output: {error}"))
    })?;
    if failed == 0 {
        return Ok(());
    }
    Err(Failure::new(REFUSED, format!("{failed} of {} preconditions fail", findings.len())))
}
