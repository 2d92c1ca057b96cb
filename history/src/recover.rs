//! Replaying a history up to an offset: what every table looked like there.
//!
//! Records are taken in storage order and never sorted: one that was appended later wins. Each is compared with the offset
//! ([`compare`](crate::compare)); those at or before it are applied, as images where they carry definitions, else by their
//! statement. Of lines, the definitions that a later record replaces are checked to be JSON and not read any further: most
//! of a long history is such. Source: Debezium, `AbstractSchemaHistory#recover`. Different here: the comparator; every skip is counted by
//! its rule; a skip that looks wrong is a warning; and a redelivered statement is told from a new one ([`ReplayGuard`]).

mod checkpoint;
mod deferred;
mod guard;
mod replay;

pub use checkpoint::{CheckpointCheck, check_checkpoint, write_checkpoint};
pub use guard::{ReplayGuard, StreamedStatement};

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use self::replay::Replay;
use crate::ahead::Ahead;
use crate::codec::{RecordError, RecordLine};
use crate::compare::{Comparator, CompareContext, Judgement, Rule, Verdict};
use crate::ddl::DdlContext;
use crate::error::Error;
use crate::offset::SourceOffset;
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{TableId, Tables};
use crate::store::HistoryStore;

/// How a history is replayed.
#[derive(Clone, Copy)]
pub struct RecoverOptions<'a> {
    /// Apply the statement even where the record carries definitions (`schema.history.internal.prefer.ddl`).
    pub prefer_ddl: bool,
    /// Warn about a statement that cannot be applied and go on, instead of failing
    /// (`schema.history.internal.skip.unparseable.ddl`).
    pub skip_unparseable: bool,
    /// Whether the server's `lower_case_table_names` is not 0.
    pub lower_case_names: bool,
    /// Flavor, server version and comments; the database is that of each record.
    pub ddl: &'a DdlContext,
    /// Statements for which this says true are left out (`internal.schema.history.internal.ddl.filter`).
    pub ddl_filter: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    /// The tables that matter. A record whose definitions are all of other tables is left out unread; those tables are
    /// then not known, and a later rename of one of them to a name that matters finds nothing to rename.
    pub tables: Option<&'a (dyn Fn(&TableId) -> bool + Send + Sync)>,
    /// Which GTID sources count.
    pub gtid_sources: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    /// The operator says that the `server_id` in an offset without lineage is that of the server connected to. Without
    /// that it is only the origin of the last event, and is not compared.
    pub server_id_is_connected: bool,
    /// Start from the checkpoint of the store where it fits, and read only the records after it.
    pub checkpoint: bool,
    /// For tests; see [`CompareContext::event_times_decide`].
    #[doc(hidden)]
    pub event_times_decide: bool,
}

impl<'a> RecoverOptions<'a> {
    /// Debezium's defaults.
    #[must_use]
    pub const fn new(ddl: &'a DdlContext) -> Self {
        Self {
            prefer_ddl: false,
            skip_unparseable: false,
            lower_case_names: false,
            ddl,
            ddl_filter: None,
            tables: None,
            gtid_sources: None,
            server_id_is_connected: false,
            checkpoint: false,
            event_times_decide: false,
        }
    }
}

impl fmt::Debug for RecoverOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecoverOptions")
            .field("prefer_ddl", &self.prefer_ddl)
            .field("skip_unparseable", &self.skip_unparseable)
            .field("lower_case_names", &self.lower_case_names)
            .field("ddl", &self.ddl)
            .field("server_id_is_connected", &self.server_id_is_connected)
            .finish_non_exhaustive()
    }
}

/// What a history says about an offset.
#[derive(Debug)]
pub struct Recovered {
    /// The tables as they were at the offset.
    pub tables: Tables,
    /// What was applied, what was skipped, and why.
    pub report: RecoveryReport,
    /// Tells statements that the stream delivers although they are in [`Self::tables`] already.
    pub guard: ReplayGuard,
    /// The tables whose definitions a refresh has read further on in the log.
    pub ahead: Ahead,
}

/// What recovery did with the records. Record numbers count from 1 in storage order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Records, read or in the checkpoint.
    pub recovered: usize,
    /// Records that were not read, since the checkpoint has what they say.
    pub from_checkpoint: usize,
    /// Records of other sources, left out.
    pub foreign: usize,
    /// Records applied.
    pub applied: usize,
    /// Records at or before the offset whose definitions are all of tables that do not matter.
    pub unwanted: usize,
    /// Records at or before the offset that carry neither definitions nor a statement, or whose statement is filtered.
    pub without_effect: usize,
    /// Streamed statements that were recorded twice, and applied once.
    pub duplicates: usize,
    /// Records whose statement could not be applied and was left out.
    pub unparseable: usize,
    /// Records at or before the offset, by the rule that said so.
    pub applied_by: BTreeMap<Rule, usize>,
    /// Records beyond the offset, by the rule that said so.
    pub skipped_by: BTreeMap<Rule, usize>,
    /// The skipped records.
    pub skipped: Vec<SkippedRecord>,
    /// The record that gave each table its definition.
    pub origins: BTreeMap<TableId, usize>,
}

/// A record beyond the offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedRecord {
    /// Its number.
    pub record: usize,
    /// Why it was skipped.
    pub verdict: Verdict,
    /// The tables that it changes, as far as its definitions name them; former names among them.
    pub tables: Vec<TableId>,
}

impl RecoveryReport {
    /// Records that were skipped although their coordinates are at or before the offset.
    pub fn suspicious(&self) -> impl Iterator<Item = &SkippedRecord> {
        self.skipped.iter().filter(|skipped| skipped.verdict.suspicious)
    }
}

/// Replays the history in `store`, one record at a time, for the source `server` up to `desired`.
///
/// # Errors
///
/// [`Error::Statement`] when a statement cannot be applied and may not be skipped; what reading the store gives.
pub async fn recover_store(
    store: &dyn HistoryStore,
    server: &str,
    desired: &SourceOffset,
    options: &RecoverOptions<'_>,
) -> Result<Recovered, Error> {
    if options.checkpoint
        && let Some(checkpoints) = store.checkpoints()
        && let Some((mut recovery, place)) =
            checkpoint::resume_or_say_why(store, checkpoints, server, desired, *options).await
    {
        let mut push = |number: u64, line: &RecordLine<'_>| recovery.push_line(number, line);
        checkpoints.read_after(place, &mut push).await?;
        return recovery.finish();
    }
    let mut recovery = Recovery::new(server, desired, *options, store.location());
    store.read(&mut |number, line| recovery.push_line(number, line)).await?;
    recovery.finish()
}

/// Replays records that are in memory.
///
/// # Errors
///
/// [`Error::Statement`] when a statement cannot be applied and may not be skipped.
pub fn recover(
    records: &[HistoryRecord],
    server: &str,
    desired: &SourceOffset,
    options: &RecoverOptions<'_>,
) -> Result<Recovered, Error> {
    let mut recovery = Recovery::new(server, desired, *options, String::new());
    for record in records {
        recovery.push(record)?;
    }
    recovery.finish()
}

/// A replay that takes its records one by one.
#[derive(Debug)]
struct Recovery<'a> {
    server: &'a str,
    desired: &'a SourceOffset,
    comparator: Comparator<'a>,
    /// The store of the lines, for messages.
    location: String,
    replay: Replay<'a>,
    guard: ReplayGuard,
    warned_tables: BTreeSet<TableId>,
    /// The positions of the skipped records.
    skip_positions: Vec<SourceOffset>,
    guesses: BTreeMap<(Rule, &'static str), usize>,
}

impl<'a> Recovery<'a> {
    /// Begins with no tables.
    fn new(
        server: &'a str,
        desired: &'a SourceOffset,
        options: RecoverOptions<'a>,
        location: String,
    ) -> Self {
        let context = CompareContext::for_history(desired);
        let context = CompareContext {
            gtid_sources: options.gtid_sources,
            ignore_server_id: context.ignore_server_id && !options.server_id_is_connected,
            event_times_decide: options.event_times_decide,
        };
        Self {
            server,
            desired,
            comparator: Comparator::new(desired, context),
            location,
            replay: Replay::new(options),
            guard: ReplayGuard::default(),
            warned_tables: BTreeSet::new(),
            skip_positions: Vec::new(),
            guesses: BTreeMap::new(),
        }
    }

    /// Takes the next record in storage order.
    fn push(&mut self, record: &HistoryRecord) -> Result<(), Error> {
        let Some(judged) = self.judge(&record.source, &record.position) else { return Ok(()) };
        if judged.verdict.apply {
            self.apply(record, judged.same_log)
        } else {
            let mut tables = Vec::with_capacity(record.table_changes.len());
            for change in &record.table_changes {
                tables.push(change.id().clone());
                if let TableChange::Alter { previous: Some(previous), .. } = change {
                    tables.push(previous.clone());
                }
            }
            self.skip(&record.position, judged.verdict, tables);
            Ok(())
        }
    }

    /// Takes the next record as a line of a file, by its number there, and reads no more of it than it needs.
    fn push_line(&mut self, number: u64, line: &RecordLine<'_>) -> Result<(), Error> {
        let Some(judged) = self.judge(&line.source, &line.position) else { return Ok(()) };
        if !judged.verdict.apply {
            let tables = line.table_ids().map_err(|source| self.damaged(number, source))?;
            self.skip(&line.position, judged.verdict, tables);
            return Ok(());
        }
        let options = &self.replay.options;
        if let Some(wanted) = options.tables.filter(|_| !options.prefer_ddl) {
            let tables = line.table_ids().map_err(|source| self.damaged(number, source))?;
            if !tables.is_empty() && !tables.iter().any(wanted) {
                self.replay.report.unwanted += 1;
                return Ok(());
            }
        }
        let changes = line.raw_changes().filter(|changes| !changes.is_empty());
        if let Some(changes) = changes.filter(|_| self.replay.may_defer(&line.position)) {
            let record = self.replay.report.recovered;
            let deferred = self.replay.defer(record, number, changes).and_then(|()| {
                let ddl = || line.ddl();
                self.guard.note(record, &line.position, judged.same_log, self.desired, ddl)
            });
            return deferred.map_err(|source| self.damaged(number, source));
        }
        let record = line.to_record().map_err(|source| self.damaged(number, source))?;
        self.apply(&record, judged.same_log)
    }

    /// The tables at the offset.
    fn finish(mut self) -> Result<Recovered, Error> {
        for ((rule, why), count) in &self.guesses {
            tracing::warn!(rule = %rule, why, count, "positions of history records were compared by a fallback");
        }
        self.settle()?;
        let Replay { mut tables, mut report, mut ahead, .. } = self.replay;
        ahead.restore(self.desired, &mut tables);
        report.origins.retain(|id, _| tables.get(id).is_some());
        tracing::info!(
            recovered = report.recovered,
            from_checkpoint = report.from_checkpoint,
            applied = report.applied,
            skipped = report.skipped.len(),
            suspicious = report.suspicious().count(),
            tables = tables.len(),
            "schema history recovered"
        );
        Ok(Recovered { tables, report, guard: self.guard, ahead })
    }

    /// Counts a record and compares its position; `None` when it is of another source.
    fn judge(&mut self, source: &str, position: &SourceOffset) -> Option<Judgement> {
        self.replay.report.recovered += 1;
        if source != self.server {
            self.replay.report.foreign += 1;
            return None;
        }
        let judged = self.comparator.judge(position);
        let verdict = &judged.verdict;
        if verdict.warn {
            *self.guesses.entry((verdict.rule, verdict.why)).or_default() += 1;
        }
        let report = &mut self.replay.report;
        let counts = if verdict.apply { &mut report.applied_by } else { &mut report.skipped_by };
        *counts.entry(verdict.rule).or_default() += 1;
        Some(judged)
    }

    fn apply(&mut self, record: &HistoryRecord, same_log: Option<bool>) -> Result<(), Error> {
        self.settle()?;
        let number = self.replay.report.recovered;
        self.replay.apply(number, record)?;
        if same_log != Some(false) {
            self.replay.ahead.note(record, &self.replay.tables);
        }
        let ddl = || Ok(record.ddl.clone());
        self.guard
            .note(number, &record.position, same_log, self.desired, ddl)
            .map_err(|source| self.damaged(0, source))
    }

    fn settle(&mut self) -> Result<(), Error> {
        self.replay.settle().map_err(|(line, source)| self.damaged(line, source))
    }

    fn skip(&mut self, position: &SourceOffset, verdict: Verdict, tables: Vec<TableId>) {
        let record = self.replay.report.recovered;
        self.note_skip(position, SkippedRecord { record, verdict, tables });
    }

    fn note_skip(&mut self, position: &SourceOffset, skipped: SkippedRecord) {
        log_skip(position, &skipped, &mut self.warned_tables);
        self.replay.report.skipped.push(skipped);
        self.skip_positions.push(position.clone());
    }

    fn damaged(&self, line: u64, source: RecordError) -> Error {
        Error::Damaged { location: self.location.clone(), line, source }
    }
}

fn log_skip(position: &SourceOffset, skipped: &SkippedRecord, warned: &mut BTreeSet<TableId>) {
    let SkippedRecord { record: number, verdict, tables } = skipped;
    tracing::debug!(record = number, rule = %verdict.rule, why = verdict.why, "history record is beyond the offset");
    if !verdict.suspicious {
        return;
    }
    // Records that name no table are warned about once together.
    let unnamed = [TableId::new("", "")];
    let named = if tables.is_empty() { unnamed.as_slice() } else { tables.as_slice() };
    for table in named {
        if warned.insert(table.clone()) {
            tracing::warn!(
                table = %table,
                record = number,
                binlog_file = %position.file,
                binlog_position = position.pos,
                rule = %verdict.rule,
                why = verdict.why,
                "a history record is skipped although its file and position are at or before the offset"
            );
        }
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
