//! Checkpoints: what a replay has come to, kept beside the history, so that a start need not read it from the beginning.
//!
//! A checkpoint stands for the first records of a history, up to the end of an append. It holds what the replay of these
//! records leaves: definitions, character sets, counters, guards. It is written for an offset, and used for offsets at or
//! after that one in the same log. What it stands for ends before the first record that a later offset may see otherwise:
//! one that is beyond the offset, or whose place was a guess. So the replay of the rest gives what the replay of all
//! would have given.
//!
//! ```text
//! {"holdfast_checkpoint":1,"program":"0.1.0","server":…,"settings":…,"offset":{…},"place":[object,line,end],
//!  "fingerprint":…,"records":…,"counts":[…],…,"tables":[…]}
//! 1a2b3c4d                                             CRC-32 of the line above
//! ```
//!
//! Used is only what nothing speaks against: of this program and version, of the same settings, not damaged, of an
//! offset that is not later, and of a history whose first records have the same fingerprint. Else all is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RecoverOptions, Recovery, SkippedRecord, recover_store};
use crate::codec::{RawChange, RecordLine, write_table_changes};
use crate::compare::Rule;
use crate::error::Error;
use crate::json::{Object, ObjectWriter, write_string, write_string_or_null};
use crate::offset::{LogPlace, SourceOffset};
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{Table, TableId};
use crate::store::{Checkpoints, HistoryStore, Place};

/// The version of the format.
const VERSION: u32 = 1;
/// Another version of this program may understand statements otherwise.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// Writes a checkpoint of `store` as of `desired`, going on from the one that is there where that fits. Returns how many
/// records it stands for; `None` when there is nothing to add to the one that is there, or the store keeps none.
///
/// # Errors
///
/// As [`recover_store`], and [`Error::Read`] when the checkpoint can't be written.
pub async fn write_checkpoint(
    store: &dyn HistoryStore,
    server: &str,
    desired: &SourceOffset,
    options: &RecoverOptions<'_>,
) -> Result<Option<usize>, Error> {
    let Some(checkpoints) = store.checkpoints() else { return Ok(None) };
    let mut recovery = Recovery::new(server, desired, *options, store.location());
    if settings(options).is_none() || !recovery.comparator.continues(desired) {
        return Ok(None);
    }
    let mut place = None;
    if let Ok(Some((resumed, end))) = resume(store, checkpoints, server, desired, *options).await {
        recovery = resumed;
        place = Some(end);
    }
    let before = recovery.replay.report.recovered;
    let mut maker = Maker { recovery, place, group: Vec::new(), stopped: false };
    let mut take = |number: u64, line: &RecordLine<'_>| maker.take(number, line);
    match place {
        Some(place) => checkpoints.read_after(place, &mut take).await?,
        None => store.read(&mut take).await?,
    }
    let Maker { mut recovery, place, .. } = maker;
    let records = recovery.replay.report.recovered;
    let Some(place) = place.filter(|_| records > before) else { return Ok(None) };
    let Some(fingerprint) = checkpoints.fingerprint(place).await? else { return Ok(None) };
    recovery.settle()?;
    checkpoints.save_checkpoint(&encode(&recovery, place, &fingerprint)).await?;
    tracing::info!(records, "a checkpoint of the schema history was written");
    Ok(Some(records))
}

/// What [`check_checkpoint`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointCheck {
    /// There is none.
    None,
    /// There is one that is not used for this offset.
    Unused(&'static str),
    /// It and the records after it give what all records give.
    Agrees {
        /// How many records it stands for.
        records: usize,
    },
    /// They give something else.
    Differs {
        /// How many records it stands for.
        records: usize,
        /// The tables with other definitions; none when what differs is of another kind.
        tables: Vec<TableId>,
    },
}

/// Compares what the checkpoint and the records after it give for `desired` with what all records give.
///
/// # Errors
///
/// As [`recover_store`].
pub async fn check_checkpoint(
    store: &dyn HistoryStore,
    server: &str,
    desired: &SourceOffset,
    options: &RecoverOptions<'_>,
) -> Result<CheckpointCheck, Error> {
    let Some(checkpoints) = store.checkpoints() else { return Ok(CheckpointCheck::None) };
    let (mut recovery, place) = match resume(store, checkpoints, server, desired, *options).await {
        Ok(Some(resumed)) => resumed,
        Ok(None) => return Ok(CheckpointCheck::None),
        Err(why) => return Ok(CheckpointCheck::Unused(why)),
    };
    let records = recovery.replay.report.recovered;
    let mut push = |number: u64, line: &RecordLine<'_>| recovery.push_line(number, line);
    checkpoints.read_after(place, &mut push).await?;
    let mut short = recovery.finish()?;
    let options = RecoverOptions { checkpoint: false, ..*options };
    let whole = recover_store(store, server, desired, &options).await?;
    short.report.from_checkpoint = 0;
    if (&short.tables, &short.report, &short.guard, &short.ahead)
        == (&whole.tables, &whole.report, &whole.guard, &whole.ahead)
    {
        return Ok(CheckpointCheck::Agrees { records });
    }
    let ids = short.tables.iter().chain(whole.tables.iter()).map(|table| &table.id);
    let differs = |id: &&TableId| short.tables.get(id) != whole.tables.get(id);
    let mut tables: Vec<TableId> = ids.filter(differs).cloned().collect();
    tables.sort();
    tables.dedup();
    Ok(CheckpointCheck::Differs { records, tables })
}

/// A replay that goes on from the checkpoint of the store, and from where; `None` when all has to be read, and the log
/// says why.
pub(super) async fn resume_or_say_why<'a>(
    store: &dyn HistoryStore,
    checkpoints: &dyn Checkpoints,
    server: &'a str,
    desired: &'a SourceOffset,
    options: RecoverOptions<'a>,
) -> Option<(Recovery<'a>, Place)> {
    match resume(store, checkpoints, server, desired, options).await {
        Ok(resumed) => resumed,
        Err(why) => {
            tracing::info!(
                history = %store.location(),
                why,
                "the checkpoint is not used, all of the schema history is read"
            );
            None
        }
    }
}

async fn resume<'a>(
    store: &dyn HistoryStore,
    checkpoints: &dyn Checkpoints,
    server: &'a str,
    desired: &'a SourceOffset,
    options: RecoverOptions<'a>,
) -> Result<Option<(Recovery<'a>, Place)>, &'static str> {
    let loaded = checkpoints.load_checkpoint().await.map_err(|error| {
        tracing::warn!(%error, "the checkpoint of the schema history can't be read");
        "it can't be read"
    })?;
    let Some(bytes) = loaded else { return Ok(None) };
    let stored = Stored::read(&bytes)?;
    let settings = settings(&options).ok_or("the history is read in another way")?;
    if stored.server != server || stored.settings != settings {
        return Err("it was written with other settings");
    }
    let mut recovery = Recovery::new(server, desired, options, store.location());
    let offset = SourceOffset::from_json(stored.offset.get()).map_err(|_| DAMAGED)?;
    if !recovery.comparator.continues(&offset) {
        return Err("it is not of an earlier place in the same log");
    }
    let [object, line, end] = stored.place;
    let place = Place { object, line, end };
    let found = checkpoints.fingerprint(place).await.map_err(|error| {
        tracing::warn!(%error, "the schema history can't be compared with its checkpoint");
        "the history can't be compared with it"
    })?;
    if found.as_deref() != Some(&*stored.fingerprint) {
        return Err("it is of other records");
    }
    stored.restore(&mut recovery)?;
    Ok(Some((recovery, place)))
}

const DAMAGED: &str = "it is damaged";

/// What the outcome of a replay depends on beside the offset; `None` when a checkpoint can't hold it.
fn settings(options: &RecoverOptions<'_>) -> Option<String> {
    let RecoverOptions {
        prefer_ddl,
        skip_unparseable,
        lower_case_names,
        ddl,
        ddl_filter,
        tables,
        gtid_sources,
        server_id_is_connected,
        checkpoint: _,
        event_times_decide,
    } = options;
    if *prefer_ddl
        || *event_times_decide
        || ddl_filter.is_some()
        || tables.is_some()
        || gtid_sources.is_some()
    {
        return None;
    }
    Some(format!("{skip_unparseable} {lower_case_names} {server_id_is_connected} {ddl:?}"))
}

/// Takes records as long as they are what every later offset sees too.
struct Maker<'a> {
    recovery: Recovery<'a>,
    /// The end of what was taken.
    place: Option<Place>,
    /// The records of an append that is not complete yet: it is taken as a whole.
    group: Vec<HistoryRecord>,
    stopped: bool,
}

impl Maker<'_> {
    fn take(&mut self, number: u64, line: &RecordLine<'_>) -> Result<(), Error> {
        let ours = line.source == self.recovery.server;
        let lasting = !ours || self.recovery.comparator.is_lasting(&line.position);
        let Some(place) = line.place.filter(|_| lasting && !self.stopped) else {
            self.stopped = true;
            return Ok(());
        };
        match line.group {
            None => self.recovery.push_line(number, line)?,
            Some(group) => {
                let record = line.to_record();
                self.group.push(record.map_err(|source| self.recovery.damaged(number, source))?);
                if group.index < group.count {
                    return Ok(());
                }
                for record in std::mem::take(&mut self.group) {
                    self.recovery.push(&record)?;
                }
            }
        }
        self.place = Some(place);
        Ok(())
    }
}

fn encode(recovery: &Recovery<'_>, place: Place, fingerprint: &str) -> Vec<u8> {
    let replay = &recovery.replay;
    let report = &replay.report;
    let mut out = Vec::new();
    let mut object = ObjectWriter::new(&mut out);
    object.integer("holdfast_checkpoint", VERSION);
    object.string("program", PROGRAM);
    object.string("server", recovery.server);
    object.string("settings", &settings(&replay.options).unwrap_or_default());
    recovery.desired.write_json(object.member("offset"));
    object.integer("place", format_args!("[{},{},{}]", place.object, place.line, place.end));
    object.string("fingerprint", fingerprint);
    object.integer("records", report.recovered);
    let counts = [
        report.foreign,
        report.applied,
        report.without_effect,
        report.duplicates,
        report.unparseable,
    ];
    list(object.member("counts"), counts, number);
    for (name, counts) in [("applied_by", &report.applied_by), ("skipped_by", &report.skipped_by)] {
        let mut rules = ObjectWriter::new(object.member(name));
        for (rule, count) in counts {
            rules.integer(&rule.letter().to_string(), count);
        }
        rules.end();
    }
    list(
        object.member("skipped"),
        recovery.skip_positions.iter().zip(&report.skipped),
        |(position, skipped), out| {
            let mut object = ObjectWriter::new(out);
            object.integer("record", skipped.record);
            position.write_json(object.member("position"));
            list(object.member("tables"), &skipped.tables, |id, out| {
                write_string(&id.quoted(), out)
            });
            object.end();
        },
    );
    list(object.member("origins"), &report.origins, |(id, record), out| {
        list_start(out);
        write_string(&id.quoted(), out);
        out.push(b',');
        number(*record, out);
        out.push(b']');
    });
    write_string_or_null(replay.tables.server_charset(), object.member("server_charset"));
    list(object.member("databases"), replay.tables.databases(), |(name, database), out| {
        list_start(out);
        write_string(name, out);
        out.push(b',');
        write_string_or_null(database.charset.as_deref(), out);
        out.push(b']');
    });
    list(object.member("sequences"), replay.tables.sequences(), |id, out| {
        write_string(&id.quoted(), out);
    });
    let mut statements: Vec<_> = replay.statements.iter().collect();
    statements.sort();
    list(object.member("statements"), statements, |(file, position, database, ddl), out| {
        list_start(out);
        write_string(file, out);
        out.push(b',');
        number(*position, out);
        for text in [database, ddl] {
            out.push(b',');
            write_string(text, out);
        }
        out.push(b']');
    });
    list(object.member("guard"), recovery.guard.entries(), |(file, position, record, ddl), out| {
        list_start(out);
        write_string(file, out);
        out.push(b',');
        number(position, out);
        out.push(b',');
        number(record, out);
        out.push(b',');
        write_string_or_null(ddl, out);
        out.push(b']');
    });
    list(object.member("ahead_at"), replay.ahead.entries(), |(_, place), out| {
        write_string(&place.to_string(), out);
    });
    let create = |table: &Arc<Table>| TableChange::Create(Arc::clone(table));
    let ahead: Vec<_> = replay.ahead.entries().map(|(table, _)| create(table)).collect();
    write_table_changes(&ahead, object.member("ahead"));
    let tables: Vec<_> = replay.tables.iter().map(create).collect();
    write_table_changes(&tables, object.member("tables"));
    object.end();
    let checksum = crc32fast::hash(&out);
    out.extend_from_slice(format!("\n{checksum:08x}\n").as_bytes());
    out
}

fn list_start(out: &mut Vec<u8>) {
    out.push(b'[');
}

fn number(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
}

fn list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    list_start(out);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// A checkpoint as it is written.
#[derive(Deserialize)]
struct Stored<'a> {
    server: String,
    settings: String,
    #[serde(borrow)]
    offset: &'a RawValue,
    place: [u64; 3],
    fingerprint: String,
    records: usize,
    counts: [usize; 5],
    applied_by: BTreeMap<String, usize>,
    skipped_by: BTreeMap<String, usize>,
    #[serde(borrow)]
    skipped: Vec<StoredSkip<'a>>,
    #[serde(borrow)]
    origins: Vec<(Cow<'a, str>, usize)>,
    server_charset: Option<String>,
    databases: Vec<(String, Option<String>)>,
    sequences: Vec<String>,
    statements: Vec<(String, u64, String, String)>,
    guard: Vec<(String, u64, usize, Option<String>)>,
    ahead_at: Vec<String>,
    #[serde(borrow)]
    ahead: Vec<Object<RawChange<'a>>>,
    #[serde(borrow)]
    tables: Vec<Object<RawChange<'a>>>,
}

#[derive(Deserialize)]
struct StoredSkip<'a> {
    record: usize,
    #[serde(borrow)]
    position: &'a RawValue,
    tables: Vec<String>,
}

impl<'a> Stored<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (body, checksum) = bytes
            .strip_suffix(b"\n")
            .and_then(|bytes| bytes.split_last_chunk::<9>())
            .ok_or(DAMAGED)?;
        if *checksum != *format!("\n{:08x}", crc32fast::hash(body)).as_bytes() {
            return Err(DAMAGED);
        }
        #[derive(Deserialize)]
        struct Head {
            holdfast_checkpoint: u32,
            program: String,
        }
        let text = std::str::from_utf8(body).map_err(|_| DAMAGED)?;
        let head: Head = serde_json::from_str(text).map_err(|_| DAMAGED)?;
        if head.holdfast_checkpoint != VERSION || head.program != PROGRAM {
            return Err("another version of this program has written it");
        }
        serde_json::from_str(text).map_err(|_| DAMAGED)
    }

    /// Puts the replay where the checkpoint is.
    fn restore(self, recovery: &mut Recovery<'_>) -> Result<(), &'static str> {
        let id = |text: &str| text.parse::<TableId>().map_err(|_| DAMAGED);
        for skip in self.skipped {
            let position = SourceOffset::from_json(skip.position.get()).map_err(|_| DAMAGED)?;
            let verdict = recovery.comparator.verdict(&position);
            if verdict.apply || !recovery.comparator.is_lasting(&position) {
                return Err("it has skipped what is not to be skipped");
            }
            let tables = skip.tables.iter().map(|text| id(text)).collect::<Result<_, _>>()?;
            let skipped = SkippedRecord { record: skip.record, verdict, tables };
            recovery.note_skip(&position, skipped);
        }
        let replay = &mut recovery.replay;
        let report = &mut replay.report;
        report.recovered = self.records;
        report.from_checkpoint = self.records;
        [
            report.foreign,
            report.applied,
            report.without_effect,
            report.duplicates,
            report.unparseable,
        ] = self.counts;
        report.applied_by = rules(&self.applied_by)?;
        report.skipped_by = rules(&self.skipped_by)?;
        for (text, record) in self.origins {
            report.origins.insert(id(&text)?, record);
        }
        replay.tables.set_server_charset(self.server_charset);
        for (name, charset) in self.databases {
            replay.tables.set_database_charset(&name, charset);
        }
        for text in &self.sequences {
            replay.tables.put_sequence(&id(text)?);
        }
        replay.statements = self.statements.into_iter().collect();
        for statement in self.guard {
            recovery.guard.insert(statement, recovery.desired);
        }
        if self.ahead.len() != self.ahead_at.len() {
            return Err(DAMAGED);
        }
        for (change, place) in self.ahead.iter().zip(&self.ahead_at) {
            replay.ahead.insert(table(change)?, LogPlace::parse(place).ok_or(DAMAGED)?);
        }
        for change in &self.tables {
            replay.tables.put(table(change)?);
        }
        Ok(())
    }
}

fn table(Object(change): &Object<RawChange<'_>>) -> Result<Arc<Table>, &'static str> {
    match change.to_change() {
        Ok(TableChange::Create(table)) => Ok(table),
        Ok(TableChange::Alter { .. } | TableChange::Drop(_)) | Err(_) => Err(DAMAGED),
    }
}

fn rules(counts: &BTreeMap<String, usize>) -> Result<BTreeMap<Rule, usize>, &'static str> {
    let rule = |letter: &str| {
        Rule::ALL.into_iter().find(|rule| letter.chars().eq([rule.letter()])).ok_or(DAMAGED)
    };
    counts.iter().map(|(letter, count)| Ok((rule(letter)?, *count))).collect()
}

#[cfg(test)]
mod tests;
