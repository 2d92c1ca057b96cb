//! Rebuilding the schema history at the stored offset.
//!
//! A history that is wrong or lost for the place at which the engine stands is rebuilt there: the offset is not moved, no
//! row is read, what was written stays as it is. Definitions are read from the live server, which has those of today; so
//! the log between the offset and today is looked at first, and a definition that is not that of the offset is refused.
//!
//! ```text
//! guards ─▶ definitions ─▶ scan of the log ─▶ plan ─▶ proof on a copy in memory ─▶ one append
//! ```
//!
//! Nothing is written before the append, and the append is atomic, so a crash anywhere leaves the history as it was or
//! complete. Doing it again is harmless: what is there already is not written again.

mod definitions;
pub(crate) mod from_log;
mod guards;
mod overlay;
mod plan;
mod report;
mod stamp;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_history::offset::{LogPlace, SourceOffset};
use holdfast_history::store::HistoryStore;
use holdfast_history::{HistoryRecord, TableId};

pub use report::{
    DefinitionSource, MetStatement, Proof, RefreshReport, RefusedTable, TableOutcome, TableReport,
};

use crate::config::Config;
use crate::error::Error;
use crate::offset_store::{OffsetKey, open_offsets};
use crate::source::{LogProgress, scan, server_options, verify};
use crate::stores::{open_history, open_history_read_only};
pub(crate) use definitions::apply_definition;
use overlay::Overlay;

/// What to refresh, and what the operator says about it.
#[derive(Debug, Clone, Default)]
pub struct RefreshOptions {
    /// The tables; none for all whose definitions a snapshot would record.
    pub tables: Vec<TableId>,
    /// Definitions that are used instead of the live server's.
    pub definitions: BTreeMap<TableId, GivenDefinition>,
    /// Tables whose definition is taken although the log contradicts it.
    pub force_tables: BTreeSet<TableId>,
    /// Go on although the server is a replica that lags or has stopped.
    pub allow_replica_lag: bool,
    /// A history that can't be read is set aside, under another name, and a new one is begun.
    pub set_aside_damaged: bool,
    /// Told of each step before it begins; an error ends the refresh there.
    pub progress: Option<fn(Step) -> Result<(), Error>>,
    /// Told how far the log is read, at every percent of it.
    pub reading: Option<fn(Reading)>,
}

impl RefreshOptions {
    /// A definition for a table that is not refreshed would be dropped without a word.
    fn check(&self) -> Result<(), Error> {
        let mut named = self.definitions.keys().chain(&self.force_tables);
        match named.find(|id| !self.tables.is_empty() && !self.tables.contains(id)) {
            Some(id) => Err(Error::Start(format!(
                "{id} is not among the tables that are chosen; choose it too (--table {id}), or none"
            ))),
            None => Ok(()),
        }
    }
}

/// How far a step has read the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// [`Step::Scan`] or [`Step::Proof`].
    pub step: Step,
    /// Bytes of the log that were read.
    pub done_bytes: u64,
    /// Bytes from the offset to the end of the log when the step began.
    pub total_bytes: u64,
}

/// A definition that the operator chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenDefinition {
    /// The last one of the schema history that fits the rows in the log.
    Recorded,
    /// What the log says of its columns, with `binlog_row_metadata=FULL`.
    Log,
    /// A CREATE TABLE statement.
    Sql(String),
}

/// The steps of a refresh, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Whether the server and the offset allow it.
    Guards,
    /// Definitions are read from the server.
    Definitions,
    /// The log is looked at from the offset to the place of the definitions.
    Scan,
    /// The log is read with the new definitions.
    Proof,
    /// The records are appended.
    Append,
    /// Everything is done.
    Done,
}

impl Step {
    /// All steps in order.
    pub const ALL: [Self; 6] =
        [Self::Guards, Self::Definitions, Self::Scan, Self::Proof, Self::Append, Self::Done];
}

/// A refresh that is planned and proved, and not yet written.
pub struct Refresh {
    config: Arc<Config>,
    history: Arc<dyn HistoryStore>,
    records: Vec<HistoryRecord>,
    report: RefreshReport,
    progress: Option<fn(Step) -> Result<(), Error>>,
    /// Whether the offset is that of the store.
    is_stored: bool,
}

impl std::fmt::Debug for Refresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Refresh").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Refresh {
    /// Plans and proves a refresh at the stored offset. No engine may be at work on it. `write`: the history is opened as
    /// its writer, so that no other one gets in between; else [`Self::apply`] fails.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] and [`Error::PositionLost`] when a guard says no; errors of the connection and of the stores.
    pub async fn prepare(
        config: Config,
        options: &RefreshOptions,
        write: bool,
    ) -> Result<Self, Error> {
        let config = Arc::new(config);
        let history =
            if write { open_history(&config).await? } else { open_history_read_only(&config)? };
        let offset = open_offsets(&config)?.load(&key(&config)).await?.ok_or_else(|| {
            Error::Refused(
                "no offset is stored, so there is no place to rebuild the schema history at; start the engine, which \
                 takes a snapshot"
                    .to_owned(),
            )
        })?;
        let mut refresh = Self::prepare_at(config, history, offset, options).await?;
        refresh.is_stored = true;
        Ok(refresh)
    }

    /// Plans and proves a refresh of `history` at `offset`.
    pub(crate) async fn prepare_at(
        config: Arc<Config>,
        history: Arc<dyn HistoryStore>,
        offset: SourceOffset,
        options: &RefreshOptions,
    ) -> Result<Self, Error> {
        let begin = |step: Step| options.progress.map_or(Ok(()), |told| told(step));
        options.check()?;
        begin(Step::Guards)?;
        let mut conn = holdfast_snapshot::connect(&server_options(&config)).await?;
        let facts = holdfast_snapshot::facts(&mut conn).await?;
        let mut warnings = Vec::new();
        guards::check(&config, &mut conn, &facts, &offset, options, &mut warnings).await?;
        begin(Step::Definitions)?;
        let live = definitions::read(&config, conn, &facts, options).await?;
        begin(Step::Scan)?;
        let watch = log_progress(&config, &offset, options, Step::Scan).await?;
        let until = live.read_at.clone();
        let scanned = scan(Arc::clone(&config), &facts, offset.clone(), until, watch).await?;
        let known = plan::Known::read(&config, &*history, &offset, facts.lower_case_names()).await;
        let (known, damage) = match known {
            Ok(known) => (known, None),
            Err(error) if options.set_aside_damaged && is_damaged(&error) => {
                (plan::Known::default(), Some(error.chain()))
            }
            Err(error) => return Err(error),
        };
        let planned = plan::plan(&config, &live, &scanned, &known, options);
        let records = if planned.iter().any(plan::PlannedTable::is_refused)
            || planned.iter().all(plan::PlannedTable::is_unchanged)
        {
            Vec::new()
        } else {
            stamp::records(&config, &facts, &offset, &live, &planned, options)?
        };
        let mut report = RefreshReport {
            offset: offset.clone(),
            read_at: live.read_at,
            history: history.location(),
            damage,
            records: records.len(),
            written: false,
            tables: planned.into_iter().map(plan::PlannedTable::into_report).collect(),
            proof: None,
            warnings,
        };
        if !records.is_empty() {
            begin(Step::Proof)?;
            let kept = report.damage.is_none().then(|| Arc::clone(&history));
            let copy = Arc::new(Overlay::new(kept, history.location(), &records));
            let watch = log_progress(&config, &offset, options, Step::Proof).await?;
            report.prove(verify(Arc::clone(&config), copy, offset, watch).await?);
        }
        let progress = options.progress;
        Ok(Self { config, history, records, report, progress, is_stored: false })
    }

    /// The plan, and what speaks against it.
    #[must_use]
    pub const fn report(&self) -> &RefreshReport {
        &self.report
    }

    /// Appends the records, if there are any and nothing was refused.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] when a table was refused or the stored offset changed meanwhile; [`Error::History`].
    pub async fn apply(mut self) -> Result<RefreshReport, Error> {
        if self.report.is_refused() {
            return Err(Error::Refused(self.report.refusals()));
        }
        if self.records.is_empty() {
            return Ok(self.report);
        }
        if self.is_stored {
            let stored = open_offsets(&self.config)?.load(&key(&self.config)).await?;
            if stored.as_ref() != Some(&self.report.offset) {
                return Err(Error::Refused(
                    "the stored offset changed meanwhile, so an engine is at work; stop it and try again".to_owned(),
                ));
            }
        }
        if let Some(told) = self.progress {
            told(Step::Append)?;
        }
        if let Some(damage) = &self.report.damage {
            let aside = self.history.set_aside().await?;
            tracing::warn!(
                damage,
                kept_as = aside,
                "the schema history can't be read, and was set aside"
            );
            self.report.warnings.push(format!("the damaged history is kept as {aside}"));
        }
        self.history.append(&self.records).await?;
        self.report.written = true;
        tracing::info!(
            records = self.records.len(),
            binlog_file = self.report.offset.file,
            binlog_position = self.report.offset.pos,
            history = self.report.history,
            "the schema history was rebuilt at the offset"
        );
        if let Some(told) = self.progress {
            told(Step::Done)?;
        }
        Ok(self.report)
    }
}

/// What tells of a reading of the log, where somebody wants to know.
async fn log_progress(
    config: &Config,
    offset: &SourceOffset,
    options: &RefreshOptions,
    step: Step,
) -> Result<Option<LogProgress>, Error> {
    let Some(told) = options.reading else { return Ok(None) };
    let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
    let files = holdfast_snapshot::binlog_files(&mut conn).await?;
    let tell = move |done_bytes, total_bytes| told(Reading { step, done_bytes, total_bytes });
    Ok(Some(LogProgress::new(files, offset, Box::new(tell))))
}

/// Whether the history has lines that are no records; everything else that keeps it from being read is no damage.
pub(crate) const fn is_damaged(error: &Error) -> bool {
    matches!(error, Error::History(holdfast_history::Error::Damaged { .. }))
}

fn key(config: &Config) -> OffsetKey {
    OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() }
}

/// `file:pos` of an offset.
fn place_of(offset: &SourceOffset) -> LogPlace {
    LogPlace { file: offset.file.clone(), pos: offset.pos }
}
