//! XA transactions: rows are held from the prepare until the outcome is known.
//!
//! ```text
//! XA START … rows … XA_PREPARE     the unit closes, its records are held
//! XA COMMIT                        the held records are given out, as the rows of this unit
//! XA ROLLBACK                      they are dropped
//! one-phase commit                 the prepare is the commit: nothing is held
//! ```
//!
//! Held units stand beside the frontier: the stored offset names them (`holdfast_held`), and a restart reads them again
//! and nothing else of what is before the offset. Definitions cannot change in between, since a prepared transaction
//! keeps its metadata locks.
//!
//! Source: MySQL 9.7.4 and MariaDB 10.11.19 logs; `XA_prepare_log_event` in MySQL's
//! `libs/mysql/binlog/event/control_events.h`.

use std::sync::Arc;

use holdfast_binlog::event::mariadb::MariaDbGtidEvent;
use holdfast_binlog::event::{Event, EventData};
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::txn::{RestartPoint, TransactionGtid, TxnTracker};

use super::{Assembler, Why};
use crate::batch::HeldRecords;
use crate::error::Error;

/// Where a prepared transaction is in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldRef {
    /// Its identifier as the server writes it: `X'6731',X'',1`.
    pub(crate) xid: String,
    /// GTID of the unit that prepared it.
    pub(crate) gtid: Option<TransactionGtid>,
    /// Binlog file of that unit.
    pub(crate) file: Arc<str>,
    /// Position of its GTID event, bytes.
    pub(crate) position: u64,
}

/// A prepared transaction; the records are absent until a restart has read them again.
#[derive(Debug)]
struct HeldUnit {
    place: HeldRef,
    records: Option<HeldRecords>,
    /// Rows of the unit that are done with each group of the records, those that gave no record included.
    rows: Vec<u64>,
}

/// The XA unit that is open.
#[derive(Debug)]
struct OpenUnit {
    place: HeldRef,
    /// Events, rows in the next event, and rows of it that an earlier run had done.
    done: (u64, u64, u64),
    rows: Vec<u64>,
}

/// Prepared transactions, the open one, and what a restart still has to read again.
#[derive(Debug, Default)]
pub(super) struct XaState {
    held: Vec<HeldUnit>,
    open: Option<OpenUnit>,
    /// The stream's tracker while something before the offset is read again.
    suspended: Option<TxnTracker>,
    /// Reading from an earlier position: everything before this one but held units is passed over.
    catch_up: Option<(Arc<str>, u64)>,
    text: Option<Arc<str>>,
}

impl XaState {
    /// What an offset says is held.
    pub(super) fn from_offset(held: Vec<HeldRef>) -> Self {
        let held = held
            .into_iter()
            .map(|place| HeldUnit { place, records: None, rows: Vec::new() })
            .collect();
        let mut state = Self { held, ..Self::default() };
        state.render();
        state
    }

    /// The member of offsets; `None` when nothing is held.
    pub(super) const fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// Whether records are of an open XA unit, whose outcome is not known.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// What of the open unit counts as done while its outcome is not known: what an earlier run had done.
    pub(super) fn undecided(&self) -> Option<(u64, u64, u64)> {
        self.open.as_ref().filter(|_| !self.is_replaying()).map(|unit| unit.done)
    }

    /// A group of the open unit is complete with so many rows.
    pub(super) fn group_done(&mut self, rows: u64) {
        if let Some(open) = &mut self.open {
            open.rows.push(rows);
        }
    }

    /// The stream's own tracker, while another one follows what is read again.
    pub(super) const fn suspended(&self) -> Option<&TxnTracker> {
        self.suspended.as_ref()
    }

    /// Whether the stream's own place must not move.
    pub(super) const fn is_replaying(&self) -> bool {
        self.suspended.is_some()
    }

    /// Whether what comes is from before the offset.
    pub(super) const fn is_catching_up(&self) -> bool {
        self.catch_up.is_some()
    }

    fn render(&mut self) {
        let units: Vec<String> = self.held.iter().map(|unit| unit.place.to_text()).collect();
        self.text = (!units.is_empty()).then(|| units.join(";").into());
    }
}

impl HeldRef {
    fn to_text(&self) -> String {
        let gtid = self.gtid.map(|gtid| gtid.to_string()).unwrap_or_default();
        let file = self.file.replace('%', "%25").replace(';', "%3B").replace('|', "%7C");
        format!("{}|{gtid}|{file}|{}", self.xid, self.position)
    }

    /// Reads the member of an offset: `xid|gtid|file|position`, joined by `;`. `None` when it is none.
    pub(crate) fn parse_all(text: &str) -> Option<Vec<Self>> {
        text.split(';').filter(|unit| !unit.is_empty()).map(Self::parse).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let (xid, gtid, file, position) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let gtid = if gtid.is_empty() { None } else { Some(gtid.parse().ok()?) };
        let file = file.replace("%7C", "|").replace("%3B", ";").replace("%25", "%");
        Some(Self {
            xid: xid.to_owned(),
            gtid,
            file: file.into(),
            position: position.parse().ok()?,
        })
    }

    /// The earliest place of several; `None` for none.
    pub(crate) fn first(held: &[Self]) -> Option<&Self> {
        held.iter().min_by(|a, b| {
            let files = BinlogFile::parse(&a.file).ok().zip(BinlogFile::parse(&b.file).ok());
            let files =
                files.and_then(|(a, b)| a.partial_cmp(&b)).unwrap_or_else(|| a.file.cmp(&b.file));
            files.then(a.position.cmp(&b.position))
        })
    }
}

impl Assembler {
    /// The log is read from `from`, a place before the offset, so that held units come again.
    pub(crate) fn catch_up_from(&mut self, from: &HeldRef, dump_position: u64) {
        let scratch = TxnTracker::new(Arc::clone(&from.file), from.position, None);
        let file = Arc::clone(&self.tracker.restart_point().unit.file);
        self.xa.suspended = Some(std::mem::replace(&mut self.tracker, scratch));
        self.xa.catch_up = Some((file, dump_position));
    }

    /// Takes an event from before the offset; false when the stream has come to it.
    pub(super) fn catches_up(&mut self, event: &Event<'_>, now_ns: i64) -> Result<bool, Error> {
        let Some((file, position)) = &self.xa.catch_up else { return Ok(false) };
        let is_behind = if event.file == &**file {
            event.position >= *position
        } else {
            // The server may have begun another file without a rotate event, after a crash.
            BinlogFile::parse(event.file).ok() > BinlogFile::parse(file).ok()
        };
        let there = is_behind && !event.header.is_artificial();
        if there && self.xa.open.is_none() {
            self.xa.catch_up = None;
            self.resume_stream();
            return Ok(false);
        }
        match &event.data {
            EventData::Rotate(rotate) => self.tracker.rotate(rotate.file.into(), rotate.position),
            EventData::Gtid(gtid) => {
                self.note_gtid(gtid);
                self.tracker.gtid(event.position, gtid.gtid.map(TransactionGtid::MySql));
            }
            EventData::MariaDbGtid(gtid) => {
                self.note_mariadb_gtid(gtid);
                self.tracker.gtid(event.position, Some(TransactionGtid::MariaDb(gtid.gtid)));
                if let Some(xid) =
                    gtid.xid.filter(|_| gtid.flags & MariaDbGtidEvent::XA_PREPARED != 0)
                {
                    self.replay_start(event, &xid.to_string());
                }
            }
            EventData::Query(query) => {
                if let Some(xid) = xid_of(&String::from_utf8_lossy(query.sql), "XA START ") {
                    self.replay_start(event, xid);
                }
            }
            EventData::TableMap(map) if self.xa.open.is_some() => {
                self.resolve(map)?;
            }
            EventData::Rows { rows, table } if self.xa.open.is_some() => {
                self.rows(event, rows, table, now_ns)?;
            }
            EventData::XaPrepare(_) if self.xa.open.is_some() => {
                self.xa_prepared(event.end, false)?
            }
            EventData::Xid(_) => self.tracker.close(event.end),
            EventData::FormatDescription(_)
            | EventData::Stop
            | EventData::PreviousGtids(_)
            | EventData::TableMap(_)
            | EventData::Rows { .. }
            | EventData::XaPrepare(_)
            | EventData::RowsQuery(_)
            | EventData::Heartbeat(_)
            | EventData::TransactionPayload(_)
            | EventData::Incident(_)
            | EventData::StatementContext
            | EventData::MariaDbGtidList(_)
            | EventData::MariaDbBinlogCheckpoint(_)
            | EventData::Ignored
            | _ => {}
        }
        Ok(true)
    }

    fn replay_start(&mut self, event: &Event<'_>, xid: &str) {
        let at = self.tracker.announced_at().unwrap_or(event.position);
        let wanted = |unit: &HeldUnit| {
            unit.records.is_none()
                && unit.place.xid == xid
                && unit.place.position == at
                && *unit.place.file == *event.file
        };
        if let Some(unit) = self.xa.held.iter().find(|unit| wanted(unit)) {
            let (place, rows) = (unit.place.clone(), Vec::new());
            self.xa.open = Some(OpenUnit { place, done: (0, 0, 0), rows });
            self.tracker.begin(event.position);
        }
    }

    /// A GTID event announced a unit that is held already: it is read for its rows alone.
    pub(super) fn replays(&mut self, event: &Event<'_>, gtid: Option<TransactionGtid>) {
        let held = gtid.is_some()
            && self.xa.held.iter().any(|unit| unit.records.is_none() && unit.place.gtid == gtid);
        if held && self.xa.suspended.is_none() {
            let scratch = TxnTracker::new(Arc::clone(self.tracker.file()), event.position, None);
            self.xa.suspended = Some(std::mem::replace(&mut self.tracker, scratch));
        }
    }

    /// A GTID event announced a unit that is done already: it is passed over, and the stream's place stays.
    pub(super) fn passes_over(&mut self, event: &Event<'_>, gtid: Option<TransactionGtid>) {
        self.passing =
            self.xa.suspended.is_none() && gtid.is_some_and(|gtid| self.tracker.has_executed(gtid));
        if self.passing {
            let scratch = TxnTracker::new(Arc::clone(self.tracker.file()), event.position, None);
            self.xa.suspended = Some(std::mem::replace(&mut self.tracker, scratch));
        }
    }

    pub(super) fn resume_stream(&mut self) {
        if let Some(tracker) = self.xa.suspended.take() {
            self.tracker = tracker;
        }
    }

    /// A new connection begins: the open unit and all held ones come again.
    pub(super) fn xa_reconnected(&mut self) {
        for unit in &mut self.xa.held {
            unit.records = None;
        }
        if self.xa.open.take().is_some() {
            self.batch.take_all();
        }
        self.xa.suspended = None;
        self.xa.catch_up = None;
    }

    /// The open unit is an XA transaction.
    pub(super) fn xa_started(&mut self, event: &Event<'_>, xid: String) {
        // What is assembled so far does not wait for its outcome.
        if let Some(batch) = self.batch.finish() {
            self.ready.push_back(batch);
        }
        let RestartPoint { unit, events, event_row, rows } = self.tracker.restart_point();
        let place =
            HeldRef { xid, gtid: unit.gtid, file: event.file.into(), position: unit.gtid_position };
        let done = (*events, *event_row, *rows);
        self.xa.open = Some(OpenUnit { place, done, rows: Vec::new() });
    }

    /// The open unit ends at byte `end` with a prepare, or with its one-phase commit.
    pub(super) fn xa_prepared(&mut self, end: u64, one_phase: bool) -> Result<(), Error> {
        let Some(OpenUnit { place, rows, .. }) = self.xa.open.take() else {
            return self.close(end);
        };
        if one_phase {
            self.close(end)?;
            self.finish_full();
            return Ok(());
        }
        let records = self.batch.take_all().compact();
        self.xa.held.retain(|unit| unit.place.xid != place.xid);
        self.xa.held.push(HeldUnit { place, records: Some(records), rows });
        self.xa.render();
        if self.xa.catch_up.is_some() {
            self.tracker.close(end);
            return Ok(());
        }
        if self.xa.suspended.is_some() {
            self.resume_stream();
            return Ok(());
        }
        self.close(end)
    }

    /// `XA COMMIT`: the held records are given out as the rows of this unit.
    pub(super) fn xa_committed(&mut self, event: &Event<'_>, xid: &str) -> Result<(), Error> {
        let Some(index) = self.xa.held.iter().position(|unit| unit.place.xid == xid) else {
            return self.unknown_xa(event);
        };
        let unit = self.xa.held.get(index).and_then(|unit| unit.records.as_ref());
        let Some(groups) = unit.map(HeldRecords::groups) else { return self.unknown_xa(event) };
        let rows = self.xa.held.get(index).map(|unit| unit.rows.clone()).unwrap_or_default();
        if !self.tracker.is_open() {
            self.begin(event, None, false)?;
        }
        for group in 0..groups {
            // Rows that gave no record count as well: another run may filter otherwise.
            let rows = rows.get(group).copied().unwrap_or_default();
            while self.tracker.rows_done().saturating_add(1) < rows {
                self.tracker.row_done();
            }
            let skips = self.tracker.skips_row();
            self.tracker.row_done();
            if !skips {
                let offset = self.offset();
                let records = self.xa.held.get(index).and_then(|unit| unit.records.as_ref());
                if let Some(records) = records {
                    self.batch.paste(records, group, offset.view());
                    self.finish_full();
                }
            }
        }
        self.xa.held.remove(index);
        self.xa.render();
        self.close(event.end)
    }

    /// `XA ROLLBACK`: the held records are dropped.
    pub(super) fn xa_rolled_back(&mut self, event: &Event<'_>, xid: &str) -> Result<(), Error> {
        self.xa.held.retain(|unit| unit.place.xid != xid);
        self.xa.render();
        self.close(event.end)
    }

    /// The transaction was prepared before the place that reading began at: nobody knows its rows.
    fn unknown_xa(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let error = Error::UnknownXa { file: event.file.to_owned(), position: event.position };
        self.leave_out(self.config.events.on_processing_failure, Why::Xa, error)?;
        self.close(event.end)
    }
}

/// The identifier in an XA statement that begins with `verb`.
pub(super) fn xid_of<'s>(sql: &'s str, verb: &str) -> Option<&'s str> {
    let start = sql.get(..verb.len())?;
    let xid = sql.get(verb.len()..)?.trim();
    start.eq_ignore_ascii_case(verb).then(|| xid.strip_suffix(" ONE PHASE").unwrap_or(xid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_member_reads_back() {
        let units = vec![
            HeldRef {
                xid: "X'6731',X'',1".to_owned(),
                gtid: Some("3e11fa47-71ca-11e1-9e33-c80aa9429562:7".parse().unwrap()),
                file: "a;b|c%.000001".into(),
                position: 5_000_000_000,
            },
            HeldRef {
                xid: "X'00',X'01',5".to_owned(),
                gtid: None,
                file: "b.000002".into(),
                position: 4,
            },
        ];
        let text = XaState::from_offset(units.clone()).text().unwrap().to_string();
        assert_eq!(HeldRef::parse_all(&text), Some(units));
        assert_eq!(HeldRef::parse_all("X'00'|no gtid|f|4"), None);
        assert_eq!(HeldRef::parse_all("X'00'||f"), None);
    }

    #[test]
    fn statements_name_their_transaction() {
        assert_eq!(xid_of("XA START X'6731',X'',1", "XA START "), Some("X'6731',X'',1"));
        assert_eq!(
            xid_of("xa commit X'6731',X'',1 ONE PHASE", "XA COMMIT "),
            Some("X'6731',X'',1")
        );
        assert_eq!(xid_of("XA END X'6731',X'',1", "XA COMMIT "), None);
    }
}
