//! What a refresh found, planned and did, for people and for scripts.

use std::collections::BTreeMap;

use holdfast_history::TableId;
use holdfast_history::offset::{LogPlace, SourceOffset};
use serde_json::{Value, json};

use crate::error::Error;
use crate::source::Followed;

/// A refresh: the plan before it is written, and afterwards what was done.
#[derive(Debug)]
pub struct RefreshReport {
    /// The offset, which stays as it is.
    pub offset: SourceOffset,
    /// Where the server's log was when the definitions were read.
    pub read_at: LogPlace,
    /// Where the history is.
    pub history: String,
    /// Why it can't be read, where it is set aside and begun anew.
    pub damage: Option<String>,
    /// How many records the plan has; 0 when all is as it should be, or when a table is refused.
    pub records: usize,
    /// Whether they are written.
    pub written: bool,
    /// The tables, in the order of a snapshot.
    pub tables: Vec<TableReport>,
    /// What reading the log with the new definitions gave.
    pub proof: Option<Proof>,
    /// What the operator has to know.
    pub warnings: Vec<String>,
}

/// One table of a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub table: TableId,
    /// What becomes of it.
    pub outcome: TableOutcome,
    /// Its definition: the one that is recorded, or the one that is refused.
    pub definition: Option<String>,
    /// The first rows that are not done, and their columns in the log.
    pub first_rows: Option<(LogPlace, String)>,
    /// The statements about it between the offset and the place where the definitions were read.
    pub statements: Vec<MetStatement>,
}

/// A statement that the stream will meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetStatement {
    /// Start of its event.
    pub place: LogPlace,
    /// Its text.
    pub ddl: String,
}

/// What becomes of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableOutcome {
    /// The history has the right definition already.
    Unchanged,
    /// A definition is recorded at the offset.
    Refreshed {
        /// Where it is from.
        source: DefinitionSource,
        /// What speaks against it, where the operator forced it.
        note: Option<String>,
    },
    /// A statement further on in the log makes the table: it has no definition at the offset.
    CreatedLater,
    /// No definition is right for the offset; nothing is written.
    Refused(Box<RefusedTable>),
}

/// Why a table is refused, and what would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTable {
    /// The reason.
    pub why: String,
    /// The last recorded definition that fits: its record's number from 1, and a CREATE TABLE.
    pub recorded: Option<(usize, String)>,
    /// A CREATE TABLE of what the log says of the columns.
    pub from_log: Option<String>,
}

/// Where a definition is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionSource {
    /// The live server.
    Server,
    /// A statement that the operator gave.
    Operator,
    /// A record of the history.
    History {
        /// Its number, from 1.
        record: usize,
    },
    /// What the log says of the columns (`binlog_row_metadata=FULL`).
    RowMetadata,
}

impl std::fmt::Display for DefinitionSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server => f.write_str("the server"),
            Self::Operator => f.write_str("the operator"),
            Self::History { record } => write!(f, "record {record} of the schema history"),
            Self::RowMetadata => f.write_str("the log"),
        }
    }
}

/// The log read with the new definitions, in memory.
#[derive(Debug)]
pub struct Proof {
    /// How far it was read.
    pub read_to: LogPlace,
    /// Rows events that were looked at, of each captured table.
    pub events: BTreeMap<TableId, u64>,
    /// Tables whose rows do not fit, with the error that would end the stream.
    pub misfits: BTreeMap<TableId, Error>,
    /// What ended the reading before the end of the log.
    pub ended_by: Option<Error>,
}

impl RefreshReport {
    /// Whether nothing may be written.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.refused().next().is_some() || self.misfits().next().is_some()
    }

    fn refused(&self) -> impl Iterator<Item = (&TableId, &RefusedTable)> {
        self.tables.iter().filter_map(|table| match &table.outcome {
            TableOutcome::Refused(refused) => Some((&table.table, &**refused)),
            TableOutcome::Unchanged
            | TableOutcome::Refreshed { .. }
            | TableOutcome::CreatedLater => None,
        })
    }

    /// Tables of the plan that the proof speaks against, and that nobody forced.
    fn misfits(&self) -> impl Iterator<Item = (&TableId, &Error)> {
        let misfits = self.proof.iter().flat_map(|proof| &proof.misfits);
        misfits.filter(|(id, _)| {
            self.tables.iter().any(|table| {
                let forced =
                    matches!(&table.outcome, TableOutcome::Refreshed { note: Some(_), .. });
                table.table == **id && !forced
            })
        })
    }

    /// The refusals, on one line.
    #[must_use]
    pub fn refusals(&self) -> String {
        let refused = self.refused().map(|(id, refused)| format!("{id}: {}", refused.why));
        let misfits = self.misfits().map(|(id, error)| format!("{id}: {error}"));
        let all: Vec<String> = refused.chain(misfits).collect();
        format!(
            "the definitions of today are not those of the offset: {}; nothing was written. `holdfast refresh --dry-run` \
             shows the definitions that fit; give one with --definition, or --force-table",
            all.join("; ")
        )
    }

    pub(super) fn prove(&mut self, followed: Followed) {
        let (file, pos) = followed.end;
        self.proof = Some(Proof {
            read_to: LogPlace { file, pos },
            events: followed.verification.events,
            misfits: followed.verification.findings,
            ended_by: followed.error,
        });
    }

    /// For people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self { offset, read_at, history, damage, records, written, tables, proof, warnings } =
            self;
        let mut lines = vec![
            format!("offset       {}:{}, stays as it is", offset.file, offset.pos),
            format!("definitions  read at {read_at}"),
            format!("history      {history}"),
        ];
        if let Some(damage) = damage {
            lines.push(format!("damage       {damage}; it is set aside and begun anew"));
        }
        for table in tables {
            lines.push(String::new());
            lines.extend(table.lines());
        }
        lines.push(String::new());
        if let Some(proof) = proof {
            lines.push(format!(
                "proof        the log fits up to {}; rows events: {}, tables: {}, not fitting: {}",
                proof.read_to,
                proof.events.values().sum::<u64>(),
                proof.events.len(),
                proof.misfits.len()
            ));
            lines.extend(proof.misfits.values().map(|error| format!("   {error}")));
            if let Some(error) = &proof.ended_by {
                lines.push(format!("   the reading ended there: {}", error.chain()));
            }
        }
        lines.extend(warnings.iter().map(|warning| format!("warning      {warning}")));
        lines.push(if self.is_refused() {
            "refused: nothing was written".to_owned()
        } else if *records == 0 {
            "nothing to do: the schema history has these definitions".to_owned()
        } else if *written {
            format!("{records} records written")
        } else {
            format!("{records} records to write; nothing was written yet")
        });
        lines.join("\n")
    }

    /// For scripts.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let offset: Value = serde_json::from_str(&self.offset.to_json()).unwrap_or(Value::Null);
        let proof = self.proof.as_ref().map(|proof| {
            json!({
                "read_to": place(&proof.read_to),
                "rows_events": proof.events.values().sum::<u64>(),
                "tables": proof.events.keys().map(ToString::to_string).collect::<Vec<_>>(),
                "misfits": proof.misfits.iter()
                    .map(|(id, error)| json!({"table": id.to_string(), "error": error.chain()}))
                    .collect::<Vec<_>>(),
                "ended_by": proof.ended_by.as_ref().map(Error::chain),
            })
        });
        json!({
            "offset": offset,
            "read_at": place(&self.read_at),
            "history": self.history,
            "damage": self.damage,
            "records": self.records,
            "written": self.written,
            "refused": self.is_refused(),
            "tables": self.tables.iter().map(TableReport::to_json).collect::<Vec<_>>(),
            "proof": proof,
            "warnings": self.warnings,
        })
    }
}

impl TableReport {
    fn lines(&self) -> Vec<String> {
        let (verdict, notes) = match &self.outcome {
            TableOutcome::Unchanged => ("as it should be".to_owned(), Vec::new()),
            TableOutcome::Refreshed { source, note } => {
                let notes = note.iter().map(|note| format!("   {note}")).collect();
                (format!("definition from {source}"), notes)
            }
            TableOutcome::CreatedLater => {
                ("none at the offset: the log creates it".to_owned(), Vec::new())
            }
            TableOutcome::Refused(refused) => (format!("REFUSED: {}", refused.why), Vec::new()),
        };
        let mut lines = vec![format!("{}  {verdict}", self.table)];
        lines.extend(notes);
        if let Some(definition) = &self.definition {
            lines.push(format!("   definition  ({definition})"));
        }
        if let Some((place, columns)) = &self.first_rows {
            lines.push(format!("   rows        ({columns}) at {place}"));
        }
        for statement in &self.statements {
            let ddl = statement.ddl.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!("   met again   {ddl} at {}", statement.place));
        }
        if let TableOutcome::Refused(refused) = &self.outcome {
            if let Some((record, sql)) = &refused.recorded {
                lines.push(format!(
                    "   record {record} of the schema history fits (--definition {}=@recorded):",
                    self.table
                ));
                lines.extend(sql.lines().map(|line| format!("      {line}")));
            }
            if let Some(sql) = &refused.from_log {
                lines.push(format!(
                    "   the log names these columns (--definition {}=@log):",
                    self.table
                ));
                lines.extend(sql.lines().map(|line| format!("      {line}")));
            }
            lines.push(format!(
                "   or give a CREATE TABLE that was right at the offset: --definition {}=FILE.sql",
                self.table
            ));
        }
        lines
    }

    fn to_json(&self) -> Value {
        let mut object = json!({
            "table": self.table.to_string(),
            "outcome": match &self.outcome {
                TableOutcome::Unchanged => "unchanged",
                TableOutcome::Refreshed { .. } => "refreshed",
                TableOutcome::CreatedLater => "created_later",
                TableOutcome::Refused(_) => "refused",
            },
            "definition": self.definition,
            "first_rows": self.first_rows.as_ref().map(|(at, columns)| {
                json!({"at": place(at), "columns": columns})
            }),
            "statements": self.statements.iter()
                .map(|statement| json!({"at": place(&statement.place), "ddl": statement.ddl}))
                .collect::<Vec<_>>(),
        });
        let more = match &self.outcome {
            TableOutcome::Refreshed { source, note } => {
                json!({"source": source.to_string(), "forced": note})
            }
            TableOutcome::Refused(refused) => json!({
                "why": refused.why,
                "recorded": refused.recorded.as_ref().map(|(record, sql)| {
                    json!({"record": record, "ddl": sql})
                }),
                "from_log": refused.from_log,
            }),
            TableOutcome::Unchanged | TableOutcome::CreatedLater => json!({}),
        };
        if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
            object.extend(more);
        }
        object
    }
}

fn place(place: &LogPlace) -> Value {
    json!({"file": place.file, "pos": place.pos})
}
