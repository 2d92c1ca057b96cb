//! Offsets of the running engine: the restart point with what an offset says beside it.

use std::cmp::Ordering;
use std::sync::Arc;

use holdfast_binlog::gtid::{GtidPos, GtidSet};
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::txn::{Done, Gtids, RestartPoint, Resume, TransactionGtid, Unit};
use holdfast_history::offset::{HoldfastMembers, SnapshotKind, SourceOffset};

/// The log that positions belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Identity of the server we are connected to: its UUID; on MariaDB `server_uid` or the server id.
    pub server: String,
    /// Raised when the log is found to be another one. From 1.
    pub epoch: u64,
    /// Closing coordinates of earlier epochs, as offsets hold them.
    pub closed: Option<String>,
    /// Where the definitions of the last refresh were read, as offsets hold it.
    pub refresh_head: Option<String>,
}

impl Lineage {
    /// `<server>/<epoch>`, as identities name it.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        format!("{}/{}", self.server, self.epoch).into()
    }
}

/// An offset in the form in which the engine keeps it: cheap to clone, rendered only to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetPoint {
    /// Where a restart begins.
    pub restart: RestartPoint,
    /// Time of the last event in seconds, when one is known.
    pub ts_sec: Option<i64>,
    /// `server_id` of the last event's header: the origin's. 0 when no event was read.
    pub server_id: u32,
    /// When the file of the restart point was made, as its format description says, in seconds. Tells it from another
    /// file of that name.
    pub birth: Option<u32>,
    /// Set while a snapshot is incomplete.
    pub snapshot: Option<SnapshotKind>,
    /// Tables of an incomplete snapshot that are done, as offsets name them.
    pub progress: Option<Arc<str>>,
    /// Prepared XA transactions whose rows are held, as offsets name them.
    pub held: Option<Arc<str>>,
    /// The log, when it is known.
    pub lineage: Option<Arc<Lineage>>,
}

/// An offset that is looked at where its parts are, without a clone of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetView<'a> {
    pub(crate) unit: &'a Arc<Unit>,
    pub(crate) events: u64,
    pub(crate) event_row: u64,
    pub(crate) rows: u64,
    pub(crate) ts_sec: Option<i64>,
    pub(crate) server_id: u32,
    pub(crate) birth: Option<u32>,
    pub(crate) snapshot: Option<SnapshotKind>,
    pub(crate) progress: Option<&'a Arc<str>>,
    pub(crate) held: Option<&'a Arc<str>>,
    pub(crate) lineage: Option<&'a Arc<Lineage>>,
}

impl OffsetView<'_> {
    pub(crate) fn to_point(self) -> OffsetPoint {
        OffsetPoint {
            restart: RestartPoint {
                unit: Arc::clone(self.unit),
                events: self.events,
                event_row: self.event_row,
                rows: self.rows,
            },
            ts_sec: self.ts_sec,
            server_id: self.server_id,
            birth: self.birth,
            snapshot: self.snapshot,
            progress: self.progress.cloned(),
            held: self.held.cloned(),
            lineage: self.lineage.cloned(),
        }
    }

    /// Whether it is `point` but for how much of the unit is done. A copy of what is equal counts as different.
    pub(crate) fn differs_in_counts_only(self, point: &OffsetPoint) -> bool {
        fn same<T: ?Sized>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
            match (a, b) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            }
        }
        Arc::ptr_eq(self.unit, &point.restart.unit)
            && self.ts_sec == point.ts_sec
            && self.server_id == point.server_id
            && self.birth == point.birth
            && self.snapshot == point.snapshot
            && same(self.progress, point.progress.as_ref())
            && same(self.held, point.held.as_ref())
            && same(self.lineage, point.lineage.as_ref())
    }
}

impl OffsetPoint {
    /// The same without owning it.
    pub(crate) fn view(&self) -> OffsetView<'_> {
        OffsetView {
            unit: &self.restart.unit,
            events: self.restart.events,
            event_row: self.restart.event_row,
            rows: self.restart.rows,
            ts_sec: self.ts_sec,
            server_id: self.server_id,
            birth: self.birth,
            snapshot: self.snapshot,
            progress: self.progress.as_ref(),
            held: self.held.as_ref(),
            lineage: self.lineage.as_ref(),
        }
    }

    /// Between units, of no known log.
    #[must_use]
    pub fn closed_at(file: &str, pos: u64) -> Self {
        Self {
            restart: RestartPoint::closed(file.into(), pos, None),
            ts_sec: None,
            server_id: 0,
            birth: None,
            snapshot: None,
            progress: None,
            held: None,
            lineage: None,
        }
    }

    /// Whether it names a place in a log.
    pub(crate) fn is_known(&self) -> bool {
        !self.restart.unit.file.is_empty()
    }

    /// The stored form.
    #[must_use]
    pub fn to_source_offset(&self) -> SourceOffset {
        let RestartPoint { unit, events, event_row, rows } = &self.restart;
        let holdfast = self.lineage.as_ref().map(|lineage| HoldfastMembers {
            lineage: Some(lineage.server.clone()),
            epoch: lineage.epoch,
            birth: self.birth,
            unit: unit.gtid.map(|gtid| gtid.to_string()),
            unit_pos: (unit.gtid_position != unit.position).then_some(unit.gtid_position),
            rows: *rows,
            progress: self.progress.as_ref().map(ToString::to_string),
            held: self.held.as_ref().map(ToString::to_string),
            closed: lineage.closed.clone(),
            refresh_head: lineage.refresh_head.clone(),
            ..HoldfastMembers::default()
        });
        SourceOffset {
            file: unit.file.to_string(),
            pos: unit.position,
            event: *events,
            row: *event_row,
            gtids: unit.gtids.as_ref().map(ToString::to_string),
            ts_sec: self.ts_sec,
            server_id: (self.server_id != 0).then_some(self.server_id.into()),
            snapshot: self.snapshot,
            holdfast,
            ..SourceOffset::default()
        }
    }
}

/// The binlog file of a stored offset.
///
/// # Errors
///
/// [`OffsetMemberError`] when `file` is no name of a binlog file.
pub fn file_of(offset: &SourceOffset) -> Result<BinlogFile, OffsetMemberError> {
    BinlogFile::parse(&offset.file).map_err(|error| OffsetMemberError {
        member: "file",
        reason: format!("{:?}: {error}", offset.file),
    })
}

/// Why a stored offset can't be used on this server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored offset's {member} can't be read: {reason}; restore it from a copy, or set the offset anew"
)]
pub struct OffsetMemberError {
    /// The member's name.
    pub member: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// The transactions that a stored offset has done, an empty set when it says "none"; `None` when it does not say.
///
/// # Errors
///
/// [`OffsetMemberError`] when `gtids` is no GTID set of the server's family.
pub fn gtids_of(offset: &SourceOffset, mariadb: bool) -> Result<Option<Gtids>, OffsetMemberError> {
    let parsed = offset.gtids.as_deref().map(|text| parse_gtids(text, mariadb)).transpose();
    parsed.map_err(|reason| OffsetMemberError { member: "gtids", reason })
}

/// GTIDs of a server's family from their text, which is empty for none; or why it is none.
pub(crate) fn parse_gtids(text: &str, mariadb: bool) -> Result<Gtids, String> {
    let parsed = match (text.is_empty(), mariadb) {
        (true, true) => Ok(Gtids::MariaDb(GtidPos::new())),
        (true, false) => Ok(Gtids::MySql(GtidSet::new())),
        (false, true) => GtidPos::parse(text).map(Gtids::MariaDb),
        (false, false) => GtidSet::parse(text).map(Gtids::MySql),
    };
    parsed.map_err(|error| error.to_string())
}

/// How two offsets lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OffsetOrder {
    /// The first is before the second.
    Before,
    /// A restart begins at the same place.
    Same,
    /// The first is after the second.
    After,
    /// Each has transactions that the other has not.
    Diverged,
    /// They are of different logs, or nothing that both have says where they are: there is no order.
    Unrelated,
}

/// Compares two offsets. Inside one log GTIDs decide alone where both have them and they differ; else file, position and
/// rows done do.
#[must_use]
pub fn compare(a: &SourceOffset, b: &SourceOffset, mariadb: bool) -> OffsetOrder {
    let log = |offset: &SourceOffset| {
        offset.holdfast.as_ref().map(|ours| (ours.lineage.clone(), ours.epoch))
    };
    if let (Some(a), Some(b)) = (log(a), log(b))
        && a != b
    {
        return OffsetOrder::Unrelated;
    }
    let gtids = |offset| gtids_of(offset, mariadb).ok().flatten();
    let contained = match (gtids(a), gtids(b)) {
        (Some(Gtids::MySql(a)), Some(Gtids::MySql(b))) if a != b => {
            Some((a.is_subset_of(&b), b.is_subset_of(&a)))
        }
        (Some(Gtids::MariaDb(a)), Some(Gtids::MariaDb(b))) if a != b => {
            Some((a.at_or_before(&b), b.at_or_before(&a)))
        }
        (_, _) => None,
    };
    match contained {
        Some((true, true)) => return OffsetOrder::Same,
        Some((true, false)) => return OffsetOrder::Before,
        Some((false, true)) => return OffsetOrder::After,
        Some((false, false)) => return OffsetOrder::Diverged,
        None => {}
    }
    let file = |offset: &SourceOffset| BinlogFile::parse(&offset.file).ok();
    let (Some(a_file), Some(b_file)) = (file(a), file(b)) else { return OffsetOrder::Unrelated };
    if a_file.base() != b_file.base() {
        return OffsetOrder::Unrelated;
    }
    let done = |offset: &SourceOffset| match &offset.holdfast {
        Some(ours) => (ours.rows, 0),
        None => (offset.event, offset.row),
    };
    let by_place = (a_file.number(), a.pos).cmp(&(b_file.number(), b.pos));
    // Rows done are counted in other ways by us and by Debezium.
    let comparable = a.holdfast.is_some() == b.holdfast.is_some();
    let by_rows = if comparable { done(a).cmp(&done(b)) } else { Ordering::Equal };
    match by_place.then(by_rows) {
        Ordering::Less => OffsetOrder::Before,
        Ordering::Equal => OffsetOrder::Same,
        Ordering::Greater => OffsetOrder::After,
    }
}

/// What a stored offset says of the unit that was open.
///
/// # Errors
///
/// [`OffsetMemberError`] when `holdfast_unit` is no GTID.
pub fn resume_of(offset: &SourceOffset) -> Result<Resume, OffsetMemberError> {
    let ours = offset.holdfast.as_ref();
    let gtid = match ours.and_then(|ours| ours.unit.as_deref()) {
        None => None,
        Some(text) => Some(text.parse::<TransactionGtid>().map_err(|reason| {
            OffsetMemberError { member: "holdfast_unit", reason: reason.to_string() }
        })?),
    };
    let done = match ours {
        Some(ours) => Done::Rows(ours.rows),
        None => Done::Events { events: offset.event, row: offset.row },
    };
    Ok(Resume {
        gtid,
        file: offset.file.as_str().into(),
        position: offset.pos,
        gtid_position: dump_position(offset),
        done,
        counted: (offset.event, offset.row),
    })
}

/// Where a dump by position begins: at the open unit's GTID event where the offset knows it.
#[must_use]
pub fn dump_position(offset: &SourceOffset) -> u64 {
    offset.holdfast.as_ref().and_then(|ours| ours.unit_pos).unwrap_or(offset.pos)
}
