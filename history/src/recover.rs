//! Replaying a history up to an offset: what every table looked like there.
//!
//! Records are taken in storage order and never sorted: one that was appended later wins. Each is compared with the offset
//! ([`compare`](crate::compare)); those at or before it are applied, as images where they carry definitions, else by their
//! statement. Source: Debezium, `AbstractSchemaHistory#recover`. Different here: the comparator; every skip is counted by
//! its rule; a skip that looks wrong is a warning; and a redelivered statement is told from a new one ([`ReplayGuard`]).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use holdfast_binlog::position::BinlogFile;

use crate::ahead::Ahead;
use crate::codec::{RecordError, RecordLine};
use crate::compare::{Comparator, CompareContext, Rule, Verdict};
use crate::ddl::{DdlContext, apply_statement};
use crate::error::Error;
use crate::offset::{LogPlace, SourceOffset};
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
    /// Records read.
    pub recovered: usize,
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
    /// The tables that it changes, as far as its definitions name them; read as a line, former names among them.
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
    let location = store.location();
    let mut recovery = Recovery::new(server, desired, *options);
    let mut push = |line: u64, record: &RecordLine<'_>| {
        let damaged = |source| Error::Damaged { location: location.clone(), line, source };
        recovery.push_line(record, damaged)
    };
    store.read(&mut push).await?;
    Ok(recovery.finish())
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
    let mut recovery = Recovery::new(server, desired, *options);
    for record in records {
        recovery.push(record)?;
    }
    Ok(recovery.finish())
}

/// A replay that takes its records one by one.
#[derive(Debug)]
pub struct Recovery<'a> {
    server: &'a str,
    desired: &'a SourceOffset,
    comparator: Comparator<'a>,
    replay: Replay<'a>,
    guard: ReplayGuard,
    warned_tables: BTreeSet<TableId>,
    guesses: BTreeMap<(Rule, &'static str), usize>,
}

impl<'a> Recovery<'a> {
    /// Begins with no tables.
    #[must_use]
    pub fn new(server: &'a str, desired: &'a SourceOffset, options: RecoverOptions<'a>) -> Self {
        let context = CompareContext {
            gtid_sources: options.gtid_sources,
            ignore_server_id: desired.holdfast.is_none() && !options.server_id_is_connected,
            event_times_decide: options.event_times_decide,
        };
        Self {
            server,
            desired,
            comparator: Comparator::new(desired, context),
            replay: Replay {
                tables: Tables::new(options.lower_case_names),
                options,
                report: RecoveryReport::default(),
                statements: HashSet::new(),
                ahead: Ahead::default(),
            },
            guard: ReplayGuard::default(),
            warned_tables: BTreeSet::new(),
            guesses: BTreeMap::new(),
        }
    }

    /// Takes the next record in storage order.
    ///
    /// # Errors
    ///
    /// [`Error::Statement`] when its statement cannot be applied and may not be skipped.
    pub fn push(&mut self, record: &HistoryRecord) -> Result<(), Error> {
        let Some(verdict) = self.verdict(&record.source, &record.position) else { return Ok(()) };
        let tables = || record.table_changes.iter().map(|change| change.id().clone()).collect();
        if verdict.apply {
            self.apply(record)
        } else {
            self.skip(&record.position, verdict, tables());
            Ok(())
        }
    }

    /// Takes the next record as a line, of which it reads no more than it needs. `damaged` adds the line's place.
    ///
    /// # Errors
    ///
    /// As [`Self::push`], and what `damaged` makes of a member that cannot be read.
    pub fn push_line(
        &mut self,
        line: &RecordLine<'_>,
        damaged: impl Fn(RecordError) -> Error,
    ) -> Result<(), Error> {
        let Some(verdict) = self.verdict(&line.source, &line.position) else { return Ok(()) };
        if !verdict.apply {
            let tables = line.table_ids().map_err(damaged)?;
            self.skip(&line.position, verdict, tables);
            return Ok(());
        }
        if let Some(wanted) = self.replay.options.tables.filter(|_| !self.replay.options.prefer_ddl)
        {
            let tables = line.table_ids().map_err(&damaged)?;
            if !tables.is_empty() && !tables.iter().any(wanted) {
                self.replay.report.unwanted += 1;
                return Ok(());
            }
        }
        self.apply(&line.to_record().map_err(damaged)?)
    }

    /// The tables at the offset.
    #[must_use]
    pub fn finish(self) -> Recovered {
        for ((rule, why), count) in self.guesses {
            tracing::warn!(rule = %rule, why, count, "positions of history records were compared by a fallback");
        }
        let Replay { mut tables, mut report, mut ahead, .. } = self.replay;
        ahead.restore(self.desired, &mut tables);
        report.origins.retain(|id, _| tables.get(id).is_some());
        tracing::info!(
            recovered = report.recovered,
            applied = report.applied,
            skipped = report.skipped.len(),
            suspicious = report.suspicious().count(),
            tables = tables.len(),
            "schema history recovered"
        );
        Recovered { tables, report, guard: self.guard, ahead }
    }

    /// Counts a record and compares its position; `None` when it is of another source.
    fn verdict(&mut self, source: &str, position: &SourceOffset) -> Option<Verdict> {
        self.replay.report.recovered += 1;
        if source != self.server {
            self.replay.report.foreign += 1;
            return None;
        }
        let verdict = self.comparator.verdict(position);
        if verdict.warn {
            *self.guesses.entry((verdict.rule, verdict.why)).or_default() += 1;
        }
        let report = &mut self.replay.report;
        let counts = if verdict.apply { &mut report.applied_by } else { &mut report.skipped_by };
        *counts.entry(verdict.rule).or_default() += 1;
        Some(verdict)
    }

    fn apply(&mut self, record: &HistoryRecord) -> Result<(), Error> {
        let number = self.replay.report.recovered;
        self.replay.apply(number, record)?;
        if self.comparator.same_log(&record.position) != Some(false) {
            self.replay.ahead.note(record, &self.replay.tables);
        }
        self.guard.note(number, record, self.desired, &self.comparator);
        Ok(())
    }

    fn skip(&mut self, position: &SourceOffset, verdict: Verdict, tables: Vec<TableId>) {
        let skipped = SkippedRecord { record: self.replay.report.recovered, verdict, tables };
        log_skip(position, &skipped, &mut self.warned_tables);
        self.replay.report.skipped.push(skipped);
    }
}

/// Statements that recovery applied and that the stream may deliver again.
///
/// Debezium records a MySQL statement with the GTID set before it, so a restart by GTIDs delivers the statement although
/// its effect is in the recovered tables. Parsing it once more fails (the renamed column is not there any more) or is
/// wrong; such a statement is neither parsed nor recorded again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayGuard {
    statements: BTreeMap<(String, u64), Vec<Guarded>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Guarded {
    record: usize,
    /// The statement's text where only that proves it is the same one; `None` where the lineage does.
    ddl: Option<String>,
}

/// A statement from the stream, to be looked up in a [`ReplayGuard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamedStatement<'a> {
    /// The binlog file, as the stream names it.
    pub file: &'a str,
    /// Position of the unit's first event, bytes from the start of the file: MariaDB's GTID event, which is where Debezium
    /// records a statement there.
    pub unit_position: u64,
    /// Position after the statement's event, bytes from the start of the file.
    pub end_position: u64,
    /// The statement's text.
    pub ddl: &'a str,
}

impl ReplayGuard {
    /// Whether recovery has applied this statement. The stream must be of the offset's log.
    #[must_use]
    pub fn is_replay(&self, statement: &StreamedStatement<'_>) -> bool {
        self.find(statement).is_some()
    }

    /// The number, from 1, of the history record that recovery applied for this statement.
    #[must_use]
    pub fn find(&self, statement: &StreamedStatement<'_>) -> Option<usize> {
        let at = |position: u64| {
            self.statements.get(&(statement.file.to_owned(), position)).into_iter().flatten()
        };
        let same = |ddl: &String| same_statement(ddl, statement.ddl);
        // Where a unit begins, the one before it ends, and our own records are at the end of theirs: the place alone proves
        // nothing there.
        let found = at(statement.end_position)
            .find(|guarded| guarded.ddl.as_ref().is_none_or(same))
            .or_else(|| {
                at(statement.unit_position).find(|guarded| guarded.ddl.as_ref().is_some_and(same))
            });
        found.map(|guarded| guarded.record)
    }

    /// Whether there is nothing to guard against.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Remembers an applied record when its statement can come again: a restart goes back a unit at most, which is in the
    /// offset's file or, after a rotation, in the one before.
    fn note(
        &mut self,
        number: usize,
        record: &HistoryRecord,
        desired: &SourceOffset,
        comparator: &Comparator<'_>,
    ) {
        let Some(ddl) = record.ddl.as_ref().filter(|_| record.position.snapshot.is_none()) else {
            return;
        };
        let proven = match comparator.same_log(&record.position) {
            Some(false) => return,
            Some(true) => true,
            None => false,
        };
        let number_of = |file: &str| BinlogFile::parse(file).map(|file| file.number());
        if let (Ok(recorded), Ok(current)) =
            (number_of(&record.position.file), number_of(&desired.file))
            && recorded.saturating_add(1) < current
        {
            return;
        }
        let place = (record.position.file.clone(), record.position.pos);
        let guarded = Guarded { record: number, ddl: (!proven).then(|| ddl.clone()) };
        self.statements.entry(place).or_default().push(guarded);
    }
}

/// A replay under way.
#[derive(Debug)]
struct Replay<'a> {
    options: RecoverOptions<'a>,
    tables: Tables,
    report: RecoveryReport,
    /// Statements applied by their text: a second record of one is a retry after a lost answer.
    statements: HashSet<(String, u64, String, String)>,
    /// Definitions of which statements on the way may be in effect already.
    ahead: Ahead,
}

impl Replay<'_> {
    fn apply(&mut self, number: usize, record: &HistoryRecord) -> Result<(), Error> {
        if !self.options.prefer_ddl && !record.table_changes.is_empty() {
            for change in &record.table_changes {
                self.apply_image(change);
                self.note_origin(number, change);
            }
            self.report.applied += 1;
        } else if let Some(ddl) = &record.ddl {
            self.apply_statement(number, record, ddl)?;
        } else {
            self.report.without_effect += 1;
        }
        Ok(())
    }

    fn apply_image(&mut self, change: &TableChange) {
        match change {
            TableChange::Create(table) => {
                self.tables.put(table.clone());
            }
            TableChange::Alter { table, previous } => {
                if let Some(previous) = previous {
                    self.tables.remove(previous);
                }
                self.tables.put(table.clone());
            }
            TableChange::Drop(id) => {
                self.tables.remove(id);
            }
        }
    }

    fn apply_statement(
        &mut self,
        number: usize,
        record: &HistoryRecord,
        ddl: &str,
    ) -> Result<(), Error> {
        if self.options.ddl_filter.is_some_and(|filter| filter(ddl)) {
            self.report.without_effect += 1;
            return Ok(());
        }
        if record.position.snapshot.is_none() {
            let place = (record.position.file.clone(), record.position.pos);
            if !self.statements.insert((
                place.0,
                place.1,
                record.database_name.clone(),
                ddl.to_owned(),
            )) {
                self.report.duplicates += 1;
                return Ok(());
            }
        }
        let place = LogPlace { file: record.position.file.clone(), pos: record.position.pos };
        let context = DdlContext {
            database: Some(record.database_name.clone()).filter(|name| !name.is_empty()),
            ..self.options.ddl.clone()
        };
        let context = DdlContext { definitions_are_ahead: self.ahead.covers(&place), ..context };
        let applied = apply_statement(ddl, &context, &mut self.tables)
            .or_else(|error| self.ahead.despite(&place, &error, ddl).ok_or(error));
        match applied {
            Ok(mut events) => {
                self.ahead.keep(&place, &mut self.tables, &mut events);
                for change in events.iter().flat_map(|event| &event.changes) {
                    self.note_origin(number, change);
                }
                self.report.applied += 1;
                Ok(())
            }
            Err(error) if self.options.skip_unparseable => {
                self.report.unparseable += 1;
                tracing::warn!(
                    record = number,
                    binlog_file = %record.position.file,
                    binlog_position = record.position.pos,
                    error = %error,
                    "a statement of the schema history cannot be applied and is left out"
                );
                Ok(())
            }
            Err(source) => Err(Error::Statement {
                record: number,
                file: record.position.file.clone(),
                position: record.position.pos,
                source: Box::new(source),
            }),
        }
    }

    fn note_origin(&mut self, number: usize, change: &TableChange) {
        match change {
            TableChange::Create(table) => {
                self.report.origins.insert(table.id.clone(), number);
            }
            TableChange::Alter { table, previous } => {
                if let Some(previous) = previous {
                    self.report.origins.remove(previous);
                }
                self.report.origins.insert(table.id.clone(), number);
            }
            TableChange::Drop(id) => {
                self.report.origins.remove(id);
            }
        }
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

/// Whether a recorded text and a streamed one at the same place are one statement. Debezium records what its parser saw:
/// without leading comments and the last `;`, clipped at the front, or written anew for one table of a DROP or RENAME.
fn same_statement(recorded: &str, streamed: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").trim_end_matches([';', ' ']).to_lowercase()
    };
    let (recorded, streamed) = (plain(recorded), plain(streamed));
    let rewritten = ["drop table ", "rename table "];
    !recorded.is_empty()
        && (streamed.contains(&recorded)
            || rewritten
                .iter()
                .any(|start| recorded.starts_with(start) && streamed.contains(start)))
}

#[cfg(test)]
mod tests;
