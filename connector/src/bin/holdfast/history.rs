//! `holdfast history`.

use std::io::{self, BufWriter, Write};

use clap::{Args, Subcommand, ValueEnum};
use holdfast_connector::history_tool::{
    self as tool, Explanation, RecordPlace, Skipped, TableExplanation, Verified,
};
use holdfast_connector::{Config, Error};
use holdfast_history::compare::Verdict;
use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::CheckpointCheck;
use holdfast_history::{HistoryRecord, TableChange, TableId, cross_check};
use serde_json::{Value, json};

use crate::exit::{Failure, REFUSED, STORAGE, USAGE};
use crate::{ConfigArguments, settings};

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Print the records in the order in which they were written.
    Show(HistoryArguments),
    /// For an offset: the definition of each captured table, the record that gave it, and the records that were skipped.
    Explain {
        #[command(flatten)]
        arguments: HistoryArguments,
        /// Instead, one a line: what the comparison says of every record, and by which rule.
        #[arg(long)]
        records: bool,
    },
    /// Read the log from an offset to its end and check the definitions against it; exit code 1 when one does not fit.
    Verify(HistoryArguments),
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// The place in the log: an offset, such as {"file":"binlog.000003","pos":4}. Default: the stored one.
    #[arg(long, value_name = "JSON")]
    offset: Option<String>,
    /// Only this table.
    #[arg(long, value_name = "DB.TABLE")]
    table: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// Records one a line; an explanation or a check as one object.
    Json,
}

pub(crate) async fn history(command: HistoryCommand) -> Result<(), Failure> {
    match command {
        HistoryCommand::Show(arguments) => show(arguments).await,
        HistoryCommand::Explain { arguments, records: false } => explain(arguments).await,
        HistoryCommand::Explain { arguments, records: true } => verdicts(arguments).await,
        HistoryCommand::Verify(arguments) => verify(arguments).await,
    }
}

async fn show(arguments: HistoryArguments) -> Result<(), Failure> {
    let config = arguments.config().await?;
    let table = arguments.table()?;
    let mut out = BufWriter::new(io::stdout());
    let mut failed = None;
    tool::records(&config, &mut |number, record| {
        let wanted = table.as_ref().is_none_or(|table| names(record).any(|id| id == table));
        if wanted && failed.is_none() {
            let line = match arguments.format {
                Format::Text => record_text(number, record),
                Format::Json => record_json(number, record).to_string(),
            };
            failed = writeln!(out, "{line}").err();
        }
        Ok(())
    })
    .await?;
    failed.map_or_else(|| out.flush(), Err).map_err(unwritten)?;
    Ok(())
}

async fn explain(arguments: HistoryArguments) -> Result<(), Failure> {
    let config = arguments.config().await?;
    let offset = arguments.offset(&config).await?;
    let table = arguments.table()?;
    let explanation = tool::explain(&config, offset, table.as_ref()).await?;
    print(&match arguments.format {
        Format::Text => explanation_text(&explanation),
        Format::Json => explanation_json(&explanation).to_string(),
    })
}

async fn verdicts(arguments: HistoryArguments) -> Result<(), Failure> {
    let config = arguments.config().await?;
    let offset = arguments.offset(&config).await?;
    let table = arguments.table()?;
    let mut out = BufWriter::new(io::stdout());
    let mut failed = None;
    tool::verdicts(&config, &offset, &mut |number, record, verdict| {
        let wanted = table.as_ref().is_none_or(|table| names(record).any(|id| id == table));
        if wanted && failed.is_none() {
            let line = match arguments.format {
                Format::Text => verdict_text(number, record, verdict),
                Format::Json => verdict_json(number, record, verdict).to_string(),
            };
            failed = writeln!(out, "{line}").err();
        }
    })
    .await?;
    failed.map_or_else(|| out.flush(), Err).map_err(unwritten)?;
    Ok(())
}

async fn verify(arguments: HistoryArguments) -> Result<(), Failure> {
    let config = arguments.config().await?;
    let offset = arguments.offset(&config).await?;
    let table = arguments.table()?;
    let verified = tool::verify(config, offset, table.as_ref()).await?;
    print(&match arguments.format {
        Format::Text => verified_text(&verified),
        Format::Json => verified_json(&verified).to_string(),
    })?;
    if let Some(error) = verified.error {
        return Err(error.into());
    }
    if let CheckpointCheck::Differs { .. } = verified.checkpoint {
        let text =
            "the checkpoint does not say what the history says; remove it, a start writes another";
        return Err(Failure::new(REFUSED, text));
    }
    match verified.mismatches.len() {
        0 => Ok(()),
        count => Err(Failure::new(REFUSED, format!("definitions that do not fit: {count}"))),
    }
}

impl HistoryArguments {
    /// The configuration, whose history must be there.
    async fn config(&self) -> Result<Config, Failure> {
        let config = settings::load(&self.config)?;
        if tool::exists(&config).await? {
            Ok(config)
        } else {
            Err(Failure::new(REFUSED, "there is no schema history"))
        }
    }

    fn table(&self) -> Result<Option<TableId>, Failure> {
        let parse = |text: &String| {
            text.parse().map_err(|error| {
                Failure::new(USAGE, format!("--table takes DB.TABLE, not {text:?}: {error}"))
            })
        };
        self.table.as_ref().map(parse).transpose()
    }

    /// The given offset, else the stored one.
    async fn offset(&self, config: &Config) -> Result<SourceOffset, Failure> {
        match &self.offset {
            Some(json) => SourceOffset::from_json(json)
                .map_err(|error| Failure::new(USAGE, format!("--offset is no offset: {error}"))),
            None => tool::stored_offset(config).await?.ok_or_else(|| {
                Failure::new(REFUSED, "no offset is stored; give one with --offset")
            }),
        }
    }
}

/// All tables that a record names, former names among them.
fn names(record: &HistoryRecord) -> impl Iterator<Item = &TableId> {
    record.table_changes.iter().flat_map(|change| {
        let previous = match change {
            TableChange::Alter { previous, .. } => previous.as_ref(),
            TableChange::Create(_) | TableChange::Drop(_) => None,
        };
        std::iter::once(change.id()).chain(previous)
    })
}

/// `CREATE`, `ALTER` or `DROP` and the tables.
const fn verb(change: &TableChange) -> &'static str {
    match change {
        TableChange::Create(_) => "CREATE",
        TableChange::Alter { .. } => "ALTER",
        TableChange::Drop(_) => "DROP",
    }
}

/// `binlog.000003:157`, and what else places it.
fn place(position: &SourceOffset) -> String {
    let mut text = format!("{}:{}", position.file, position.pos);
    if let Some(gtids) = position.gtids.as_deref().filter(|gtids| !gtids.is_empty()) {
        text.push_str(" after ");
        text.push_str(gtids);
    }
    if position.snapshot.is_some() {
        text.push_str(" (snapshot)");
    }
    text
}

fn record_text(number: usize, record: &HistoryRecord) -> String {
    let mut text = format!("{number}  {}", place(&record.position));
    if !record.database_name.is_empty() {
        text.push_str(&format!("  in {}", record.database_name));
    }
    for change in &record.table_changes {
        text.push_str(&format!("\n   {} {}", verb(change), change.id()));
        match change {
            TableChange::Alter { previous: Some(previous), table } => {
                text.push_str(&format!(
                    ", before {previous} ({})",
                    cross_check::definition_shape(table)
                ));
            }
            TableChange::Create(table) | TableChange::Alter { table, .. } => {
                text.push_str(&format!(" ({})", cross_check::definition_shape(table)));
            }
            TableChange::Drop(_) => {}
        }
    }
    if let Some(ddl) = &record.ddl {
        let ddl = ddl.split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(&format!("\n   {ddl}"));
    }
    text
}

fn record_json(number: usize, record: &HistoryRecord) -> Value {
    let changes: Vec<Value> = record
        .table_changes
        .iter()
        .map(|change| json!({ "type": verb(change), "table": change.id().to_string() }))
        .collect();
    json!({
        "record": number,
        "source": record.source,
        "position": position_json(&record.position),
        "ts_ms": record.ts_ms,
        "database": record.database_name,
        "ddl": record.ddl,
        "changes": changes,
    })
}

/// The offset as it is stored.
fn position_json(position: &SourceOffset) -> Value {
    serde_json::from_str(&position.to_json()).unwrap_or(Value::Null)
}

fn explanation_text(explanation: &Explanation) -> String {
    let Explanation { offset, records, foreign, applied, skipped, tables } = explanation;
    let beyond: usize = records - foreign - applied;
    let mut text = format!(
        "offset {}\n{records} records: {applied} applied, {beyond} not, {foreign} of other sources\n",
        place(offset)
    );
    for table in tables {
        text.push_str(&format!("\n{}\n", table.id));
        let TableExplanation { definition, record, skipped, .. } = table;
        match definition {
            None => text.push_str("   no definition\n"),
            Some(definition) => {
                let shape = cross_check::definition_shape(definition);
                text.push_str(&format!("   definition: {shape}\n"));
            }
        }
        if let Some(record) = record {
            text.push_str(&format!("   from record {}\n", record_place(record)));
        }
        for skipped in skipped {
            text.push_str(&skipped_text(skipped));
        }
    }
    if !skipped.is_empty() {
        text.push_str("\nskipped records that define no table\n");
        for skipped in skipped {
            text.push_str(&skipped_text(skipped));
        }
    }
    text.trim_end().to_owned()
}

fn record_place(record: &RecordPlace) -> String {
    format!("{} at {}", record.number, place(&record.position))
}

fn skipped_text(skipped: &Skipped) -> String {
    let Skipped { record, rule, why, suspicious } = skipped;
    let note = note(*suspicious);
    format!("   skipped record {}: rule {rule}, {why}{note}\n", record_place(record))
}

fn verdict_text(number: usize, record: &HistoryRecord, verdict: Option<Verdict>) -> String {
    let at = place(&record.position);
    let Some(Verdict { apply, rule, why, suspicious, .. }) = verdict else {
        return format!("{number}  {at}: of another source");
    };
    let what = if apply { "applied" } else { "skipped" };
    format!("{number}  {at}: {what}, rule {rule}, {why}{}", note(suspicious))
}

fn verdict_json(number: usize, record: &HistoryRecord, verdict: Option<Verdict>) -> Value {
    json!({
        "record": number,
        "position": position_json(&record.position),
        "applied": verdict.map(|verdict| verdict.apply),
        "rule": verdict.map(|verdict| verdict.rule.to_string()),
        "why": verdict.map(|verdict| verdict.why),
        "suspicious": verdict.map(|verdict| verdict.suspicious),
    })
}

const fn note(suspicious: bool) -> &'static str {
    if suspicious { "; NOTE: its file and position are at or before the offset" } else { "" }
}

fn explanation_json(explanation: &Explanation) -> Value {
    let Explanation { offset, records, foreign, applied, skipped, tables } = explanation;
    let skips = |skipped: &[Skipped]| -> Vec<Value> {
        skipped
            .iter()
            .map(|skipped| {
                json!({
                    "record": skipped.record.number,
                    "position": position_json(&skipped.record.position),
                    "rule": skipped.rule.to_string(),
                    "why": skipped.why,
                    "suspicious": skipped.suspicious,
                })
            })
            .collect()
    };
    let tables: Vec<Value> = tables
        .iter()
        .map(|table| {
            json!({
                "table": table.id.to_string(),
                "definition": table.definition.as_deref().map(cross_check::definition_shape),
                "record": table.record.as_ref().map(|record| record.number),
                "position": table.record.as_ref().map(|record| position_json(&record.position)),
                "skipped": skips(&table.skipped),
            })
        })
        .collect();
    json!({
        "offset": position_json(offset),
        "records": records,
        "foreign": foreign,
        "applied": applied,
        "skipped": skips(skipped),
        "tables": tables,
    })
}

fn verified_text(verified: &Verified) -> String {
    let Verified { offset, file, position, events, mismatches, keys, .. } = verified;
    let mut text = String::new();
    for error in mismatches.values() {
        text.push_str(&format!("{error}\n"));
    }
    for (table, (definition, log)) in keys {
        text.push_str(&format!(
            "note: the key of {table} is {definition} in the definition and {log} in the log\n"
        ));
    }
    if let Some(checkpoint) = checkpoint_text(&verified.checkpoint) {
        text.push_str(&format!("{checkpoint}\n"));
    }
    text.push_str(&format!(
        "read from {}:{} to {file}:{position}; rows events: {}, tables: {}, not fitting: {}",
        offset.file,
        offset.pos,
        events.values().sum::<u64>(),
        events.len(),
        mismatches.len(),
    ));
    text
}

/// What there is to say of the checkpoint; nothing when there is none.
fn checkpoint_text(checkpoint: &CheckpointCheck) -> Option<String> {
    match checkpoint {
        CheckpointCheck::None => None,
        CheckpointCheck::Unused(why) => Some(format!("the checkpoint is not used: {why}")),
        CheckpointCheck::Agrees { records } => {
            Some(format!("the checkpoint stands for {records} records and says what they say"))
        }
        CheckpointCheck::Differs { records, tables } => {
            let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
            Some(format!(
                "the checkpoint stands for {records} records and does not say what they say; tables: {}",
                tables.join(", ")
            ))
        }
    }
}

fn verified_json(verified: &Verified) -> Value {
    let mismatches: Vec<Value> = verified
        .mismatches
        .iter()
        .map(|(table, error)| {
            let Error::Mismatch(mismatch) = error else {
                return json!({ "table": table.to_string(), "error": error.chain() });
            };
            json!({
                "table": table.to_string(),
                "file": mismatch.file,
                "position": mismatch.position,
                "column": mismatch.mismatch.index + 1,
                "differs_in": mismatch.mismatch.property.name(),
                "definition": mismatch.mismatch.definition,
                "log": mismatch.mismatch.wire,
                "definition_columns": mismatch.model,
                "log_columns": mismatch.wire,
                "definition_from": mismatch.origin.to_string(),
            })
        })
        .collect();
    let keys: Vec<Value> = verified
        .keys
        .iter()
        .map(|(table, (definition, log))| {
            json!({ "table": table.to_string(), "definition": definition, "log": log })
        })
        .collect();
    let tables: Vec<String> = verified.events.keys().map(ToString::to_string).collect();
    json!({
        "from": position_json(&verified.offset),
        "file": verified.file,
        "position": verified.position,
        "rows_events": verified.events.values().sum::<u64>(),
        "tables": tables,
        "mismatches": mismatches,
        "keys": keys,
        "checkpoint": checkpoint_text(&verified.checkpoint),
        "error": verified.error.as_ref().map(Error::chain),
    })
}

fn print(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}").map_err(unwritten)
}

fn unwritten(error: io::Error) -> Failure {
    Failure::new(STORAGE, format!("cannot write to standard output: {error}"))
}
