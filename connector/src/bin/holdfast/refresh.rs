//! `holdfast refresh`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, IsTerminal, Write};

use clap::{Args, ValueEnum};
use holdfast_connector::refresh::{
    GivenDefinition, Reading, Refresh, RefreshOptions, RefreshReport, Step,
};
use holdfast_history::TableId;

use crate::exit::{Failure, REFUSED, STORAGE, USAGE};
use crate::{ConfigArguments, settings};

/// `holdfast refresh`.
#[derive(Debug, Args)]
pub(crate) struct RefreshArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Only this table; may be repeated. Default: all tables whose definitions the history holds.
    #[arg(long = "table", value_name = "DB.TABLE")]
    tables: Vec<String>,
    /// Use this CREATE TABLE for a table instead of the server's definition; `@recorded` takes the last recorded one that
    /// fits the rows in the log, `@log` what the log says of the columns. May be repeated.
    #[arg(long = "definition", value_name = "DB.TABLE=FILE.sql")]
    definitions: Vec<String>,
    /// Record this table's definition although the log contradicts it; may be repeated.
    #[arg(long = "force-table", value_name = "DB.TABLE")]
    force_tables: Vec<String>,
    /// Go on although the server is a replica that lags or has stopped.
    #[arg(long)]
    allow_replica_lag: bool,
    /// Keep a history that can't be read under another name, and begin a new one.
    #[arg(long)]
    set_aside_damaged: bool,
    /// Print the plan and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
    /// How to print the report.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object.
    Json,
}

/// Rebuilds the schema history at the stored offset; exit code 1 when a guard or a table says no.
pub(crate) async fn run(arguments: RefreshArguments) -> Result<(), Failure> {
    let options = arguments.options()?;
    let config = settings::load(&arguments.config)?;
    let asks = !arguments.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
    let writes = !arguments.dry_run && (arguments.yes || asks);
    let refresh = Refresh::prepare(config, &options, writes).await?;
    let refused = refresh.report().is_refused();
    let has_work = refresh.report().records > 0;
    if refused || !writes || !has_work {
        print(refresh.report(), arguments.format)?;
        if refused {
            return Err(Failure::new(REFUSED, refresh.report().refusals()));
        }
        if !arguments.dry_run && has_work {
            return Err(Failure::new(
                USAGE,
                "nothing was written: there is no terminal to ask on; add --yes, or --dry-run for the plan alone",
            ));
        }
        return Ok(());
    }
    if asks {
        print(refresh.report(), arguments.format)?;
        if !confirmed()? {
            return Err(Failure::new(REFUSED, "nothing was written"));
        }
    }
    let report = refresh.apply().await?;
    print(&report, arguments.format)
}

impl RefreshArguments {
    fn options(&self) -> Result<RefreshOptions, Failure> {
        let tables =
            self.tables.iter().map(|text| table("--table", text)).collect::<Result<_, _>>()?;
        let force_tables = self
            .force_tables
            .iter()
            .map(|text| table("--force-table", text))
            .collect::<Result<BTreeSet<_>, _>>()?;
        let mut definitions = BTreeMap::new();
        for text in &self.definitions {
            let Some((id, file)) = text.split_once('=') else {
                return Err(Failure::new(
                    USAGE,
                    format!("--definition takes DB.TABLE=FILE.sql, not {text:?}"),
                ));
            };
            let definition = match file {
                "@recorded" => GivenDefinition::Recorded,
                "@log" => GivenDefinition::Log,
                path => GivenDefinition::Sql(std::fs::read_to_string(path).map_err(|error| {
                    Failure::new(USAGE, format!("cannot read the definition {path}: {error}"))
                })?),
            };
            definitions.insert(table("--definition", id)?, definition);
        }
        Ok(RefreshOptions {
            tables,
            definitions,
            force_tables,
            allow_replica_lag: self.allow_replica_lag,
            set_aside_damaged: self.set_aside_damaged,
            progress: Some(progress),
            reading: io::stderr().is_terminal().then_some(draw as fn(Reading)),
        })
    }
}

fn table(argument: &str, text: &str) -> Result<TableId, Failure> {
    text.parse().map_err(|error| {
        Failure::new(USAGE, format!("{argument} takes DB.TABLE, not {text:?}: {error}"))
    })
}

fn progress(step: Step) -> Result<(), holdfast_connector::Error> {
    let text = match step {
        Step::Guards => "checking the server and the offset",
        Step::Definitions => "reading the definitions",
        Step::Scan => "looking at the log between the offset and the definitions",
        Step::Proof => "reading the log with the new definitions",
        Step::Append => "writing",
        Step::Done => return Ok(()),
    };
    tracing::info!("{text}");
    Ok(())
}

/// Draws a bar on the terminal, over the one before.
fn draw(reading: Reading) {
    let mut terminal = io::stderr();
    let end = if reading.done_bytes == reading.total_bytes { "\n" } else { "" };
    // A terminal that can't be written to is no reason to stop.
    let _ = write!(terminal, "\r{}{end}", bar(&reading)).and_then(|()| terminal.flush());
}

/// `[#########···········]  45 %  of 12.3 MiB`
fn bar(reading: &Reading) -> String {
    const WIDTH: u64 = 40;
    let Reading { done_bytes, total_bytes, .. } = *reading;
    let part = |of: u64| {
        let of = u128::from(of);
        of.saturating_mul(u128::from(done_bytes)).checked_div(u128::from(total_bytes)).unwrap_or(of)
    };
    let full = usize::try_from(part(WIDTH)).unwrap_or_default();
    let rest = usize::try_from(WIDTH).unwrap_or_default().saturating_sub(full);
    let tenths = u128::from(total_bytes).saturating_mul(10) >> 20;
    format!(
        "[{}{}] {:3} %  of {}.{} MiB",
        "#".repeat(full),
        ".".repeat(rest),
        part(100),
        tenths / 10,
        tenths % 10
    )
}

/// Asks on the terminal.
fn confirmed() -> Result<bool, Failure> {
    let failed = |error| Failure::new(STORAGE, format!("cannot ask on the terminal: {error}"));
    let mut terminal = io::stderr();
    terminal.write_all(b"write this? [y/N] ").and_then(|()| terminal.flush()).map_err(failed)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(failed)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

fn print(report: &RefreshReport, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Text => report.to_text(),
        Format::Json => report.to_json().to_string(),
    };
    writeln!(io::stdout(), "{text}")
        .map_err(|error| Failure::new(STORAGE, format!("cannot write to standard output: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_as_what_was_read() {
        let bar =
            |done_bytes, total_bytes| bar(&Reading { step: Step::Scan, done_bytes, total_bytes });
        let (ten, ninety) = ("#".repeat(4), ".".repeat(36));
        assert_eq!(bar(2 << 20, 20 << 20), format!("[{ten}{ninety}]  10 %  of 20.0 MiB"));
        assert_eq!(bar(0, 1 << 19), format!("[{}]   0 %  of 0.5 MiB", ".".repeat(40)));
        assert_eq!(bar(u64::MAX, u64::MAX).matches('#').count(), 40);
        assert!(bar(0, 0).contains("100 %"), "nothing to read is all of it");
    }
}
