//! Units of the log, and where a restart begins.
//!
//! A *unit* is what a restart replays from: a transaction, or a statement that stands alone (a DDL).
//!
//! ```text
//!            gtid      begin                row_done, event_done      close
//! Closed ────────▶ Announced ────────▶ Open ◀────────────────┐ ────────────▶ Closed
//!    ▲                  │                └───────────────────┘
//!    └───── close ──────┘   a statement that stands alone closes its own unit
//! ```
//!
//! The tracker is told what it needs of each event, in log order, and answers with the [`RestartPoint`]: the start of
//! the open unit with the rows of it that are done, or the end of the last closed one. It reads no bytes and holds no
//! rows. Positions inside an open unit are never restart points of their own.
//!
//! Two counts say how much of a unit is done. *Rows* (every changed row of every rows event, an UPDATE is one) are
//! ours: they do not change with server or client settings. *Events* and *row in event* are Debezium's, written beside
//! them so that it can take over: every event from the unit's first on, that one included, counts once it is done.
//!
//! Source of Debezium's counting: Debezium 3.6.3.Final, `BinlogOffsetContext` and
//! `BinlogStreamingChangeEventSource#handleEvent`.

mod executed;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::gtid::{Gtid, GtidError, GtidPos, GtidSet, MariaDbGtid};
use crate::position::BinlogFile;

pub use executed::Executed;

/// The GTID of one transaction, of either family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransactionGtid {
    /// `uuid:n` or `uuid:tag:n`.
    MySql(Gtid),
    /// `domain-server-sequence`.
    MariaDb(MariaDbGtid),
}

impl fmt::Display for TransactionGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(gtid) => gtid.fmt(f),
            Self::MariaDb(gtid) => gtid.fmt(f),
        }
    }
}

impl FromStr for TransactionGtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(':') {
            text.parse().map(Self::MySql)
        } else {
            text.parse().map(Self::MariaDb)
        }
    }
}

/// The transactions done so far, of either family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gtids {
    /// A MySQL GTID set.
    MySql(GtidSet),
    /// A MariaDB GTID position.
    MariaDb(GtidPos),
}

impl Gtids {
    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::MySql(set) => set.is_empty(),
            Self::MariaDb(pos) => pos.is_empty(),
        }
    }

    /// Whether a transaction is in it.
    #[must_use]
    pub fn contains(&self, gtid: TransactionGtid) -> bool {
        match (self, gtid) {
            (Self::MySql(set), TransactionGtid::MySql(gtid)) => set.contains(gtid),
            (Self::MariaDb(pos), TransactionGtid::MariaDb(gtid)) => pos.contains(gtid),
            (Self::MySql(_), TransactionGtid::MariaDb(_))
            | (Self::MariaDb(_), TransactionGtid::MySql(_)) => false,
        }
    }
}

/// The text that offsets hold: intervals always as `a-b`, as Debezium writes them.
impl fmt::Display for Gtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MySql(set) => set.as_ranges().fmt(f),
            Self::MariaDb(pos) => pos.fmt(f),
        }
    }
}

/// Where a unit begins, or where the last one ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Binlog file.
    pub file: Arc<str>,
    /// Byte offset that Debezium restarts from: the BEGIN (MariaDB: the GTID event; compressed: the payload event) of
    /// an open unit, the end of a closed one.
    pub position: u64,
    /// Transactions done before the unit; `None` when they are not known.
    pub gtids: Option<Executed>,
    /// The unit's own GTID; `None` for a closed unit and without GTIDs.
    pub gtid: Option<TransactionGtid>,
    /// Byte offset of the unit's GTID event: a restart by position begins there, so that replayed records keep their
    /// GTID. The same as `position` without one.
    pub gtid_position: u64,
}

/// Where a restart begins, and how much of the unit there is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartPoint {
    /// The open unit's start, or the end of the last closed one.
    pub unit: Arc<Unit>,
    /// Debezium's count of events of the unit that are done.
    pub events: u64,
    /// Debezium's count of rows done of the event after those.
    pub event_row: u64,
    /// Rows of the unit that are done.
    pub rows: u64,
}

impl RestartPoint {
    /// Between units, at a byte offset of a file.
    #[must_use]
    pub fn closed(file: Arc<str>, position: u64, gtids: Option<Executed>) -> Self {
        let unit = Unit { file, position, gtids, gtid: None, gtid_position: position };
        Self { unit: Arc::new(unit), events: 0, event_row: 0, rows: 0 }
    }
}

/// What an earlier run had done of the unit that the log is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// So many rows.
    Rows(u64),
    /// So many events and rows of the next one: an offset that Debezium wrote.
    Events {
        /// Events from the unit's first on.
        events: u64,
        /// Rows of the event after those.
        row: u64,
    },
}

impl Done {
    const fn is_nothing(self) -> bool {
        matches!(self, Self::Rows(0) | Self::Events { events: 0, row: 0 })
    }
}

/// The unit that an earlier run had begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// Its GTID, where the offset says it.
    pub gtid: Option<TransactionGtid>,
    /// File of its restart position.
    pub file: Arc<str>,
    /// Its restart position, as [`Unit::position`].
    pub position: u64,
    /// Position of its GTID event, as [`Unit::gtid_position`].
    pub gtid_position: u64,
    /// What is done of it.
    pub done: Done,
    /// Debezium's counts of the same, to be stored again while nothing more is done: events, and rows of the next.
    pub counted: (u64, u64),
}

/// What opening a unit turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// A unit of which nothing is done.
    Fresh,
    /// The unit that an earlier run had begun: what was done of it will be skipped.
    Resumed,
    /// The first unit of the log is not the one that an earlier run had begun. Nothing of it is skipped.
    Mismatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    /// A GTID event was read, its unit is not open yet.
    Announced {
        gtid: Option<TransactionGtid>,
        position: u64,
    },
    Open,
}

/// Follows the units of one log. See the [module](self) for the order of calls.
#[derive(Debug)]
pub struct TxnTracker {
    file: Arc<str>,
    executed: Option<Executed>,
    /// Transactions done before the announced or open unit.
    before: Option<Executed>,
    state: State,
    point: RestartPoint,
    rows_events: u64,
    resume: Option<Resume>,
    skip: Option<Done>,
    /// What an earlier run had stored, while the unit has not come that far again.
    stored: Option<RestartPoint>,
}

impl TxnTracker {
    /// Starts between units. `gtids` are the transactions done so far: an empty set says "none", `None` says "not
    /// known".
    #[must_use]
    pub fn new(file: Arc<str>, position: u64, gtids: Option<Gtids>) -> Self {
        let executed = gtids.map(Executed::from);
        let point = RestartPoint::closed(Arc::clone(&file), position, executed.clone());
        Self {
            file,
            before: executed.clone(),
            executed,
            state: State::Closed,
            point,
            rows_events: 0,
            resume: None,
            skip: None,
            stored: None,
        }
    }

    /// Says what an earlier run had done of the first unit. Until that unit is open, the restart point stays what the
    /// earlier run had stored.
    #[must_use]
    pub fn resuming(mut self, resume: Resume) -> Self {
        // Behind the BEGIN alone there are no rows to skip, but the unit is begun.
        if !resume.done.is_nothing() || resume.counted != (0, 0) {
            let unit = Unit {
                file: Arc::clone(&resume.file),
                position: resume.position,
                gtids: self.executed.clone(),
                gtid: resume.gtid,
                gtid_position: resume.gtid_position,
            };
            let (events, event_row) = resume.counted;
            let rows = match resume.done {
                Done::Rows(rows) => rows,
                Done::Events { .. } => 0,
            };
            self.point = RestartPoint { unit: Arc::new(unit), events, event_row, rows };
            self.resume = Some(resume);
        }
        self
    }

    /// The log goes on in `file` at `position`: a rotate event, real or artificial.
    ///
    /// A dump by GTIDs begins at the start of a file, before the place that was reached; the restart point stays there
    /// until the log has come that far again, since definitions are known for that place.
    pub fn rotate(&mut self, file: Arc<str>, position: u64) {
        self.file = file;
        self.move_to(position);
    }

    /// What is executed is known from here on: a file begins, and says what was done before it. Nothing changes where it
    /// is known, or inside a unit.
    pub fn learn(&mut self, executed: Gtids) {
        if self.executed.is_some() || self.state != State::Closed || self.resume.is_some() {
            return;
        }
        self.executed = Some(executed.into());
        self.before.clone_from(&self.executed);
        let position = self.point.unit.position;
        if self.point.unit.file == self.file {
            self.close_at(position);
        }
    }

    /// A GTID event at `position` announces a unit; `None` for an anonymous one.
    pub fn gtid(&mut self, position: u64, gtid: Option<TransactionGtid>) {
        self.before = self.executed.clone();
        if let (Some(gtid), Some(executed)) = (gtid, self.executed.as_mut()) {
            executed.add(gtid);
        }
        self.state = State::Announced { gtid, position };
    }

    /// The unit opens at `position`: that of the BEGIN, of the GTID event on MariaDB, of the payload event of a
    /// compressed transaction.
    pub fn begin(&mut self, position: u64) -> Opened {
        let (gtid, gtid_position) = match self.state {
            State::Announced { gtid, position } => (gtid, position),
            State::Closed | State::Open => (None, position),
        };
        let gtids = self.before.clone();
        let unit =
            Arc::new(Unit { file: Arc::clone(&self.file), position, gtids, gtid, gtid_position });
        let opened = match self.resume.take() {
            None => Opened::Fresh,
            Some(resume) if resume.matches(&unit) => {
                self.skip = Some(resume.done);
                // In another log the unit has another place.
                let (events, event_row) = resume.counted;
                let rows = self.point.rows;
                self.stored =
                    Some(RestartPoint { unit: Arc::clone(&unit), events, event_row, rows });
                Opened::Resumed
            }
            Some(_) => Opened::Mismatch,
        };
        self.point = RestartPoint { unit, events: 0, event_row: 0, rows: 0 };
        self.rows_events = 0;
        self.state = State::Open;
        opened
    }

    /// A rows event comes next.
    pub const fn rows_event(&mut self) {
        self.rows_events += 1;
    }

    /// One row of the rows event is done: delivered, filtered, or skipped.
    pub const fn row_done(&mut self) {
        self.point.rows += 1;
        self.point.event_row += 1;
    }

    /// So many rows of rows events that count as [done](Self::event_done) already are done: they were looked at apart.
    pub const fn rows_apart(&mut self, rows: u64) {
        self.point.rows += rows;
    }

    /// An event that ends at byte `end` is done. Inside a unit it is counted, between units the restart point moves to
    /// its end; an announced unit keeps the point before its GTID event.
    pub fn event_done(&mut self, end: u64) {
        match self.state {
            State::Open => {
                self.point.events += 1;
                self.point.event_row = 0;
            }
            State::Closed => self.move_to(end),
            State::Announced { .. } => {}
        }
    }

    /// Moves the restart point between units, forwards only.
    fn move_to(&mut self, position: u64) {
        if self.resume.is_none() && self.state == State::Closed && self.is_forward(position) {
            self.close_at(position);
        }
    }

    /// Whether `position` of the current file is not before the restart point. Files that can't be compared are of
    /// another log.
    fn is_forward(&self, position: u64) -> bool {
        let unit = &self.point.unit;
        if unit.file == self.file {
            return position >= unit.position;
        }
        match (BinlogFile::parse(&unit.file), BinlogFile::parse(&self.file)) {
            (Ok(reached), Ok(file)) => reached <= file || reached.base() != file.base(),
            (_, _) => true,
        }
    }

    /// The unit ends at byte `end`: an XID event, a COMMIT, or a statement that stands alone.
    pub fn close(&mut self, end: u64) {
        self.before.clone_from(&self.executed);
        self.state = State::Closed;
        self.skip = None;
        self.stored = None;
        self.close_at(end);
    }

    fn close_at(&mut self, position: u64) {
        let gtids = self.before.clone();
        // Most events between units move only the position: reuse the unit when nobody else holds it.
        match Arc::get_mut(&mut self.point.unit) {
            Some(unit) => {
                *unit = Unit {
                    file: Arc::clone(&self.file),
                    position,
                    gtids,
                    gtid: None,
                    gtid_position: position,
                };
                self.point.events = 0;
                self.point.event_row = 0;
                self.point.rows = 0;
            }
            None => self.point = RestartPoint::closed(Arc::clone(&self.file), position, gtids),
        }
        self.rows_events = 0;
    }

    /// Where a restart would begin once a statement that ends at byte `end` is done: behind it when it stands alone;
    /// inside a unit a statement moves nothing.
    #[must_use]
    pub fn after_statement(&self, end: u64) -> RestartPoint {
        match self.state {
            State::Open => self.point.clone(),
            State::Closed | State::Announced { .. } => {
                RestartPoint::closed(Arc::clone(&self.file), end, self.executed.clone())
            }
        }
    }

    /// Where a restart would begin now. While rows are skipped that an earlier run had done, that is where the earlier
    /// run had stopped.
    #[must_use]
    pub const fn restart_point(&self) -> &RestartPoint {
        match &self.stored {
            Some(stored) if self.skips_row() => stored,
            Some(_) | None => &self.point,
        }
    }

    /// Whether a transaction is done already, or announced.
    #[must_use]
    pub fn has_executed(&self, gtid: TransactionGtid) -> bool {
        self.executed.as_ref().is_some_and(|executed| executed.contains(gtid))
    }

    /// Rows of the open unit that were met so far.
    #[must_use]
    pub const fn rows_done(&self) -> u64 {
        self.point.rows
    }

    /// Whether a unit is open.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Whether the next row of the rows event was done by an earlier run. It is counted by
    /// [`row_done`](Self::row_done) like any other and has no effect otherwise.
    #[must_use]
    pub const fn skips_row(&self) -> bool {
        match self.skip {
            None => false,
            Some(Done::Rows(rows)) => self.point.rows < rows,
            Some(Done::Events { events, row }) => {
                self.point.events < events
                    || self.point.events == events && self.point.event_row < row
            }
        }
    }

    /// Whether a statement inside the unit was done by an earlier run. With rows alone to go by, one before the last
    /// row done was.
    #[must_use]
    pub const fn skips_statement(&self) -> bool {
        match self.skip {
            None => false,
            Some(Done::Rows(rows)) => self.point.rows < rows,
            Some(Done::Events { events, .. }) => self.point.events < events,
        }
    }

    /// Whether the unit that an earlier run had begun has not come yet.
    #[must_use]
    pub const fn is_resuming(&self) -> bool {
        self.resume.is_some()
    }

    /// The announced unit is a statement that stands alone. When it is what an earlier run had begun (as Debezium says of
    /// MariaDB, whose offset stays inside it), there are no rows to skip, and the history tells whether it is done.
    pub fn standalone(&mut self) {
        let begun = |resume: &Resume| match self.state {
            State::Announced { gtid, position } => {
                resume.file == self.file && resume.position == position
                    || resume.gtid.is_some() && resume.gtid == gtid
            }
            State::Closed | State::Open => false,
        };
        // Counted rows are those of a statement that brings rows: MariaDB's XA COMMIT.
        let counts_events = |resume: &&Resume| matches!(resume.done, Done::Events { .. });
        if self.resume.as_ref().filter(counts_events).is_some_and(begun) {
            self.resume = None;
        }
    }

    /// The GTID of the announced or open unit.
    #[must_use]
    pub fn current_gtid(&self) -> Option<TransactionGtid> {
        match self.state {
            State::Announced { gtid, .. } => gtid,
            State::Open => self.point.unit.gtid,
            State::Closed => None,
        }
    }

    /// Where the GTID event of an announced unit begins.
    #[must_use]
    pub const fn announced_at(&self) -> Option<u64> {
        match self.state {
            State::Announced { position, .. } => Some(position),
            State::Closed | State::Open => None,
        }
    }

    /// Rows events of the open unit so far, the current one included.
    #[must_use]
    pub const fn rows_events(&self) -> u64 {
        self.rows_events
    }

    /// The current binlog file.
    #[must_use]
    pub const fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// Transactions done so far, an announced or open one included.
    #[must_use]
    pub const fn executed(&self) -> Option<&Executed> {
        self.executed.as_ref()
    }
}

impl Resume {
    /// A GTID names a transaction wherever it is read; without one on both sides, only the place can.
    fn matches(&self, unit: &Unit) -> bool {
        match (self.gtid, unit.gtid) {
            (Some(stored), Some(read)) => stored == read,
            (None, _) | (_, None) => self.file == unit.file && self.position == unit.position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> Gtids {
        Gtids::MySql(GtidSet::parse(&text.replace('U', UUID)).unwrap())
    }

    fn gtid(number: u64) -> TransactionGtid {
        format!("{UUID}:{number}").parse().unwrap()
    }

    fn tracker() -> TxnTracker {
        TxnTracker::new("mysql-bin.000001".into(), 3608, Some(set("U:1-10")))
    }

    /// `{pos, event, row, rows, gtids}` of the restart point.
    fn point(tracker: &TxnTracker) -> (u64, u64, u64, u64, String) {
        let RestartPoint { unit, events, event_row, rows } = tracker.restart_point();
        let gtids = unit.gtids.as_ref().map(ToString::to_string).unwrap_or_default();
        (unit.position, *events, *event_row, *rows, gtids.replace(UUID, "U"))
    }

    /// One rows event of `rows` rows behind its table map; gives the points after each delivered row.
    fn rows(tracker: &mut TxnTracker, rows: u64) -> Vec<(u64, u64)> {
        tracker.event_done(0);
        tracker.rows_event();
        let mut points = Vec::new();
        for _ in 0..rows {
            let skipped = tracker.skips_row();
            tracker.row_done();
            if !skipped {
                points.push((tracker.restart_point().events, tracker.restart_point().event_row));
            }
        }
        tracker.event_done(0);
        points
    }

    fn begin(tracker: &mut TxnTracker) -> Opened {
        tracker.gtid(3608, Some(gtid(11)));
        tracker.event_done(3687);
        let opened = tracker.begin(3687);
        tracker.event_done(3772);
        opened
    }

    #[test]
    fn events_and_rows_count_as_debezium_counts_them() {
        let mut tracker = tracker();
        assert_eq!(begin(&mut tracker), Opened::Fresh);
        assert_eq!(point(&tracker), (3687, 1, 0, 0, "U:1-10".to_owned()));
        for event in [2, 4, 6, 8] {
            assert_eq!(rows(&mut tracker, 1), [(event, 1)]);
        }
        assert_eq!(rows(&mut tracker, 32), (1..=32).map(|row| (10, row)).collect::<Vec<_>>());
        assert_eq!(rows(&mut tracker, 1), [(12, 1)]);
        assert_eq!(rows(&mut tracker, 1), [(14, 1)]);
        assert_eq!(tracker.restart_point().rows, 38);
        assert_eq!(tracker.rows_events(), 7);
        tracker.close(5530);
        assert_eq!(point(&tracker), (5530, 0, 0, 0, "U:1-11".to_owned()));
    }

    #[test]
    fn a_statement_that_stands_alone_closes_its_own_unit() {
        let mut tracker = tracker();
        tracker.gtid(3608, Some(gtid(11)));
        tracker.event_done(3687);
        assert_eq!(point(&tracker), (3608, 0, 0, 0, "U:1-10".to_owned()));
        let after = tracker.after_statement(3800);
        tracker.close(3800);
        assert_eq!(point(&tracker), (3800, 0, 0, 0, "U:1-11".to_owned()));
        assert_eq!(tracker.restart_point(), &after);
    }

    #[test]
    fn every_stored_point_of_a_unit_resumes_with_the_rows_after_it() {
        let events = [1, 1, 1, 1, 32, 1, 1];
        for by_rows in [true, false] {
            for done in 1..=38_u64 {
                let mut first = tracker();
                begin(&mut first);
                let mut delivered = 0;
                let mut stored = None;
                for count in events {
                    first.event_done(0);
                    first.rows_event();
                    for _ in 0..count {
                        first.row_done();
                        delivered += 1;
                        if delivered == done {
                            stored = Some(first.restart_point().clone());
                        }
                    }
                    first.event_done(0);
                }
                let stored = stored.unwrap();
                let resume = Resume {
                    gtid: stored.unit.gtid,
                    file: Arc::clone(&stored.unit.file),
                    position: stored.unit.position,
                    gtid_position: stored.unit.gtid_position,
                    counted: (stored.events, stored.event_row),
                    done: if by_rows {
                        Done::Rows(stored.rows)
                    } else {
                        Done::Events { events: stored.events, row: stored.event_row }
                    },
                };
                let mut second = tracker().resuming(resume);
                assert_eq!(second.restart_point().unit.position, 3687);
                second.rotate("mysql-bin.000001".into(), 3608);
                assert_eq!(
                    second.restart_point().unit.position,
                    3687,
                    "a rotate before the unit moves nothing"
                );
                assert_eq!(begin(&mut second), Opened::Resumed);
                if second.skips_row() {
                    assert_eq!(second.restart_point().rows, if by_rows { stored.rows } else { 0 });
                    assert_eq!(second.restart_point().unit.gtid_position, 3608);
                }
                let mut again = 0;
                for count in events {
                    again += rows(&mut second, count).len() as u64;
                }
                assert_eq!(again, 38 - done, "{done} rows done, by rows: {by_rows}");
                assert_eq!(second.restart_point().rows, 38);
                assert!(!second.skips_row());
            }
        }
    }

    #[test]
    fn another_unit_is_never_skipped() {
        let resume = Resume {
            gtid: Some(gtid(12)),
            file: "mysql-bin.000001".into(),
            position: 3687,
            gtid_position: 3608,
            done: Done::Rows(5),
            counted: (2, 1),
        };
        let mut tracker = tracker().resuming(resume);
        assert_eq!(begin(&mut tracker), Opened::Mismatch);
        assert_eq!(rows(&mut tracker, 3).len(), 3);
        tracker.close(5000);
        tracker.gtid(5000, Some(gtid(12)));
        assert_eq!(tracker.begin(5079), Opened::Fresh);
    }

    #[test]
    fn a_dump_from_the_start_of_the_file_does_not_move_the_restart_point_back() {
        let mut tracker = tracker();
        tracker.rotate("mysql-bin.000001".into(), 4);
        tracker.event_done(158);
        assert_eq!(point(&tracker).0, 3608);
        begin(&mut tracker);
        tracker.close(5530);
        assert_eq!(point(&tracker).0, 5530);
        tracker.rotate("mysql-bin.000002".into(), 4);
        assert_eq!(
            (point(&tracker).0, &*tracker.restart_point().unit.file),
            (4, "mysql-bin.000002")
        );
    }

    #[test]
    fn an_empty_set_is_known_and_grows() {
        let mut tracker =
            TxnTracker::new("b.000001".into(), 157, Some(Gtids::MySql(GtidSet::new())));
        tracker.gtid(157, Some(gtid(1)));
        tracker.begin(236);
        tracker.event_done(300);
        assert_eq!(point(&tracker).4, "");
        tracker.close(400);
        assert_eq!(point(&tracker).4, "U:1-1");
    }
}
