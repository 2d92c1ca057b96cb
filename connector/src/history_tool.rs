//! Looking at a schema history without changing anything: what it holds, what it says of an offset, and whether the log
//! agrees. An engine may be at work beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_history::compare::{Comparator, CompareContext, Rule, Verdict};
use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::{CheckpointCheck, Recovered};
use holdfast_history::store::HistoryStore;
use holdfast_history::{HistoryRecord, Table, TableId};

use crate::config::Config;
use crate::error::Error;
use crate::offset_store::{OffsetKey, open_offsets};
use crate::source::{server_facts, verify as follow};
use crate::stores::{check_checkpoint, open_history_read_only, recover};

/// The offset that is stored for this configuration, if any.
///
/// # Errors
///
/// [`Error::OffsetStore`] when it can't be read.
pub async fn stored_offset(config: &Config) -> Result<Option<SourceOffset>, Error> {
    let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
    Ok(open_offsets(config)?.load(&key).await?)
}

/// Whether there is a history.
///
/// # Errors
///
/// [`Error::History`] when it can't be read, [`Error::Start`] when it is in memory.
pub async fn exists(config: &Config) -> Result<bool, Error> {
    Ok(open_history_read_only(config)?.exists().await?)
}

/// Hands all records of the history to `visit`, in the order in which they were written, with their numbers from 1.
/// Returns how many there are.
///
/// # Errors
///
/// [`Error::History`] when the history can't be read or `visit` ends the reading, [`Error::Start`] when it is in memory.
pub async fn records(
    config: &Config,
    visit: &mut (dyn FnMut(usize, &HistoryRecord) -> Result<(), holdfast_history::Error> + Send),
) -> Result<usize, Error> {
    let store = open_history_read_only(config)?;
    read(&*store, &mut |number, record| visit(number, &record)).await
}

/// As [`records`], of that store. The records are `visit`'s to keep.
pub(crate) async fn read(
    store: &dyn HistoryStore,
    visit: &mut (dyn FnMut(usize, HistoryRecord) -> Result<(), holdfast_history::Error> + Send),
) -> Result<usize, Error> {
    let location = store.location();
    let mut number = 0;
    store
        .read(&mut |line, record| {
            number += 1;
            let damaged = |source| holdfast_history::Error::Damaged {
                location: location.clone(),
                line,
                source,
            };
            visit(number, record.to_record().map_err(damaged)?)
        })
        .await?;
    Ok(number)
}

/// Hands all records to `visit`, in the order in which they were written, with their numbers from 1 and what the comparison
/// with `offset` says of them; nothing of records of other sources. Returns how many there are.
///
/// # Errors
///
/// As [`records`].
pub async fn verdicts(
    config: &Config,
    offset: &SourceOffset,
    visit: &mut (dyn FnMut(usize, &HistoryRecord, Option<Verdict>) + Send),
) -> Result<usize, Error> {
    let store = open_history_read_only(config)?;
    let comparator = Comparator::new(offset, CompareContext::for_history(offset));
    let mut judge = |number, record: HistoryRecord| {
        let is_ours = record.source == config.topic_prefix;
        let verdict = is_ours.then(|| comparator.verdict(&record.position));
        visit(number, &record, verdict);
        Ok(())
    };
    read(&*store, &mut judge).await
}

/// What the history says of an offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The offset.
    pub offset: SourceOffset,
    /// Records read.
    pub records: usize,
    /// Records of other sources, which are left out.
    pub foreign: usize,
    /// Records applied.
    pub applied: usize,
    /// Skipped records whose definitions name no table: `CREATE DATABASE`, `SET`.
    pub skipped: Vec<Skipped>,
    /// The tables, in name order.
    pub tables: Vec<TableExplanation>,
}

/// What the history says of one table at an offset.
#[derive(Debug, Clone, PartialEq)]
pub struct TableExplanation {
    /// The table.
    pub id: TableId,
    /// Its definition there; `None` when it has none.
    pub definition: Option<Arc<Table>>,
    /// The record that gave the definition.
    pub record: Option<RecordPlace>,
    /// The records about the table that are beyond the offset, in the order of the history.
    pub skipped: Vec<Skipped>,
}

/// A record, and where in the log it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordPlace {
    /// Its number, from 1, in the order of the history.
    pub number: usize,
    /// Its position.
    pub position: SourceOffset,
}

/// A record that is beyond the offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Skipped {
    /// The record.
    pub record: RecordPlace,
    /// The rule of the comparison that decided.
    pub rule: Rule,
    /// The reason in words.
    pub why: &'static str,
    /// Whether its file and position are at or before the offset all the same: how a wrong comparison looks.
    pub suspicious: bool,
}

/// Replays the history up to `offset` and says for each captured table, or for `only`, where its definition is from.
///
/// Whether the case of names matters is the server's to say; when it can't be asked, it matters.
///
/// # Errors
///
/// [`Error::History`] when the history can't be read or replayed, [`Error::Start`] when it is in memory.
pub async fn explain(
    config: &Config,
    offset: SourceOffset,
    only: Option<&TableId>,
) -> Result<Explanation, Error> {
    let store = open_history_read_only(config)?;
    let lower_case_names = match server_facts(config).await {
        Ok(facts) => facts.lower_case_names(),
        Err(error) => {
            tracing::warn!(
                error = error.chain(),
                "the server can't be asked for lower_case_table_names; names are taken as they are written"
            );
            false
        }
    };
    let Recovered { tables, report, .. } =
        recover(config, &*store, &offset, lower_case_names).await?;
    let places = places(&*store, report.origins.values().copied(), &report.skipped).await?;
    let place = |number: usize| {
        let position = places.get(&number).cloned().unwrap_or_default();
        RecordPlace { number, position }
    };
    let wanted = |id: &TableId| only.map_or_else(|| config.tables.captures(id), |only| only == id);
    let mut explained: BTreeMap<TableId, TableExplanation> = BTreeMap::new();
    let empty = |id: &TableId| TableExplanation {
        id: id.clone(),
        definition: None,
        record: None,
        skipped: Vec::new(),
    };
    for table in tables.iter().filter(|table| wanted(&table.id)) {
        let record = report.origins.get(&table.id).map(|number| place(*number));
        let definition = Some(Arc::clone(table));
        explained
            .insert(table.id.clone(), TableExplanation { definition, record, ..empty(&table.id) });
    }
    let mut unnamed = Vec::new();
    for skipped in &report.skipped {
        let entry = Skipped {
            record: place(skipped.record),
            rule: skipped.verdict.rule,
            why: skipped.verdict.why,
            suspicious: skipped.verdict.suspicious,
        };
        let ids: BTreeSet<&TableId> = skipped.tables.iter().collect();
        if ids.is_empty() {
            unnamed.push(entry);
            continue;
        }
        for id in ids.into_iter().filter(|id| wanted(id)) {
            let table = explained.entry(id.clone()).or_insert_with(|| empty(id));
            table.skipped.push(entry.clone());
        }
    }
    if let Some(only) = only {
        explained.entry(only.clone()).or_insert_with(|| empty(only));
    }
    Ok(Explanation {
        offset,
        records: report.recovered,
        foreign: report.foreign,
        applied: report.applied,
        skipped: unnamed,
        tables: explained.into_values().collect(),
    })
}

/// The positions of the records that an explanation names.
async fn places(
    store: &dyn HistoryStore,
    origins: impl Iterator<Item = usize>,
    skipped: &[holdfast_history::recover::SkippedRecord],
) -> Result<BTreeMap<usize, SourceOffset>, Error> {
    let named: BTreeSet<usize> =
        origins.chain(skipped.iter().map(|skipped| skipped.record)).collect();
    let mut places = BTreeMap::new();
    let mut number = 0;
    store
        .read(&mut |_, record| {
            number += 1;
            if named.contains(&number) {
                places.insert(number, record.position.clone());
            }
            Ok(())
        })
        .await?;
    Ok(places)
}

/// How far the definitions fit the log.
#[derive(Debug)]
#[must_use]
pub struct Verified {
    /// Where the reading began.
    pub offset: SourceOffset,
    /// Binlog file that was read last.
    pub file: String,
    /// Byte position in it after the last event that was read.
    pub position: u64,
    /// Rows events that were looked at, of each captured table.
    pub events: BTreeMap<TableId, u64>,
    /// For each table the first rows that do not fit its definition: [`Error::Mismatch`] or [`Error::UnknownTable`].
    pub mismatches: BTreeMap<TableId, Error>,
    /// Tables whose key in the log is not that of the definition: the definition's, then the log's. It is no mismatch: of
    /// several unique indexes either may stand for the key.
    pub keys: BTreeMap<TableId, (String, String)>,
    /// Whether the checkpoint beside the history gives what all of the history gives.
    pub checkpoint: CheckpointCheck,
    /// What ended the reading before the end of the log, such as a statement that can't be understood.
    pub error: Option<Error>,
}

/// Reads the log from `offset` to its end as it is now and checks the definitions of captured tables, or of `only`, on
/// the way. Rows that the offset counts as done are not looked at. The reader has a server id of its own, from 3221225472
/// on, and leaves a running engine alone.
///
/// # Errors
///
/// What keeps an engine from starting at the offset.
pub async fn verify(
    mut config: Config,
    offset: SourceOffset,
    only: Option<&TableId>,
) -> Result<Verified, Error> {
    let store = open_history_read_only(&config)?;
    let checkpoint = match config.history.checkpoint_records {
        0 => CheckpointCheck::None,
        _ => {
            let lower_case_names = server_facts(&config).await?.lower_case_names();
            check_checkpoint(&config, &*store, &offset, lower_case_names).await?
        }
    };
    // The definitions are those of the history itself.
    config.history.checkpoint_records = 0;
    let followed = follow(Arc::new(config), store, offset.clone(), None).await?;
    let mut found = followed.verification;
    if let Some(only) = only {
        found.events.retain(|id, _| id == only);
        found.findings.retain(|id, _| id == only);
        found.keys.retain(|id, _| id == only);
    }
    let (file, position) = followed.end;
    Ok(Verified {
        offset,
        file,
        position,
        events: found.events,
        mismatches: found.findings,
        keys: found.keys,
        checkpoint,
        error: followed.error,
    })
}
