//! Whether a recorded position is at or before the offset: which history records apply.
//!
//! Debezium's comparator (`BinlogHistoryRecordComparator#isPositionAtOrBefore`) falls back to clocks and to the origin's
//! server id, reads positions as 32-bit numbers and throws where names differ. Here coordinates decide wherever they mean
//! something, and each verdict says which rule gave it:
//!
//! ```text
//! E  both sides know their epoch, and they differ: an earlier one applies up to where it was closed, a later one never
//! L  the same log for certain: coordinates
//! G  both have GTIDs: containment; equal sets fall back to coordinates, then to what a redelivery needs
//! H  only the offset has GTIDs: the record is older than them
//! C  nothing contradicts that it is one log: coordinates
//! T  different logs, both streaming, both with an event time: the event times
//! P  nothing else is left: apply
//! ```

use std::cmp::Ordering;
use std::fmt;

use holdfast_binlog::gtid::Uuid;
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::{GtidPos, GtidSet};

use crate::offset::{ClosedEpochs, SnapshotKind, SourceOffset};

/// Whether `recorded` is at or before `desired`. For many records against one offset, [`Comparator`] reads it once.
#[must_use]
pub fn at_or_before(
    recorded: &SourceOffset,
    desired: &SourceOffset,
    context: &CompareContext<'_>,
) -> Verdict {
    Comparator::new(desired, *context).verdict(recorded)
}

/// What the comparison needs to know beside the two positions.
#[derive(Clone, Copy, Default)]
pub struct CompareContext<'a> {
    /// Which GTID sources count (`gtid.source.includes`, `gtid.source.excludes`): UUID in lower case, MariaDB
    /// `domain-server`. All of them without a filter.
    pub gtid_sources: Option<&'a (dyn Fn(&str) -> bool + Send + Sync)>,
    /// Do not compare the offset's `server_id`, since it is only the origin of the last event.
    pub ignore_server_id: bool,
    /// For tests: event times decide wherever both sides have one, as in Debezium when the server ids differ. It shows what
    /// this comparator is there to prevent.
    #[doc(hidden)]
    pub event_times_decide: bool,
}

impl CompareContext<'_> {
    /// For the records of a history and this offset: an offset that does not say which server's log it is in has only the
    /// origin of its last event.
    #[must_use]
    pub const fn for_history(desired: &SourceOffset) -> Self {
        Self {
            gtid_sources: None,
            ignore_server_id: desired.holdfast.is_none(),
            event_times_decide: false,
        }
    }
}

impl fmt::Debug for CompareContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompareContext")
            .field("gtid_sources", &self.gtid_sources.is_some())
            .finish()
    }
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// E: epochs.
    Epoch,
    /// L: coordinates inside a proven lineage.
    Lineage,
    /// G: GTIDs on both sides.
    Gtids,
    /// H: GTIDs on the offset's side only.
    PredatesGtids,
    /// C: coordinates, lineage not contradicted.
    Coordinates,
    /// T: event times.
    EventTime,
    /// P: nothing decides.
    Undecided,
}

impl Rule {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 7] = [
        Self::Epoch,
        Self::Lineage,
        Self::Gtids,
        Self::PredatesGtids,
        Self::Coordinates,
        Self::EventTime,
        Self::Undecided,
    ];

    /// Its letter, as logs and reports print it.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Epoch => 'E',
            Self::Lineage => 'L',
            Self::Gtids => 'G',
            Self::PredatesGtids => 'H',
            Self::Coordinates => 'C',
            Self::EventTime => 'T',
            Self::Undecided => 'P',
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.letter())
    }
}

/// The answer for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the record is at or before the offset, and so belongs to what the tables looked like there.
    pub apply: bool,
    /// The rule that decided.
    pub rule: Rule,
    /// Whether somebody should look: the rule guessed, or the sides contradict each other.
    pub warn: bool,
    /// A record is skipped although its coordinates are at or before the offset's in what may be the same log: how a
    /// wrong comparison shows itself.
    pub suspicious: bool,
    /// The reason in words.
    pub why: &'static str,
}

/// What the comparison says of one record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement {
    /// The answer.
    pub(crate) verdict: Verdict,
    /// Whether the record is in the offset's log; `None` when nothing proves or refutes it.
    pub(crate) same_log: Option<bool>,
}

/// An offset, read for comparing many records with it.
#[derive(Debug)]
pub struct Comparator<'a> {
    context: CompareContext<'a>,
    desired: Side<'a>,
    /// `None` when the offset has closing coordinates that cannot be read.
    closed: Option<ClosedEpochs>,
}

impl<'a> Comparator<'a> {
    /// Prepares comparisons with `desired`.
    #[must_use]
    pub fn new(desired: &'a SourceOffset, context: CompareContext<'a>) -> Self {
        let closed = desired.holdfast.as_ref().and_then(|ours| ours.closed.as_deref());
        Self {
            context,
            desired: Side::read(desired, &context, false),
            closed: closed.map_or_else(|| Some(ClosedEpochs::default()), ClosedEpochs::parse),
        }
    }

    /// Whether `recorded` is at or before the offset.
    #[must_use]
    pub fn verdict(&self, recorded: &SourceOffset) -> Verdict {
        self.judge(recorded).verdict
    }

    /// The verdict, and whether `recorded` is in the offset's log.
    pub(crate) fn judge(&self, recorded: &SourceOffset) -> Judgement {
        let recorded = Side::read(recorded, &self.context, true);
        let mut verdict = self.decide(&recorded);
        verdict.warn |= recorded.bad_gtids || self.desired.bad_gtids;
        let relation = relation(&recorded, &self.desired);
        if !verdict.apply && relation != Relation::Different {
            verdict.suspicious = recorded.not_after(&self.desired) == Some(true);
        }
        let same_log = match relation {
            Relation::Same => Some(true),
            Relation::Different => Some(false),
            Relation::Compatible => None,
        };
        Judgement { verdict, same_log }
    }

    /// Whether the verdict on `recorded` is the same for every offset further on in the offset's log, see
    /// [`Self::continues`].
    pub(crate) fn is_lasting(&self, recorded: &SourceOffset) -> bool {
        let verdict = self.verdict(recorded);
        if verdict.warn {
            return false;
        }
        match verdict.rule {
            // Depends on the epochs and on where the earlier ones were closed.
            Rule::Epoch => true,
            Rule::Lineage | Rule::PredatesGtids => verdict.apply,
            Rule::Coordinates => verdict.apply && self.desired.gtids.is_none(),
            Rule::Gtids => {
                let recorded = Side::read(recorded, &self.context, true);
                verdict.apply && recorded.is_contained_in(&self.desired)
            }
            Rule::EventTime | Rule::Undecided => false,
        }
    }

    /// Whether the offset is `earlier` or further on in the same log, and both know it for certain.
    pub(crate) fn continues(&self, earlier: &SourceOffset) -> bool {
        let desired = self.desired.offset;
        let earlier = Side::read(earlier, &self.context, false);
        let closed = |offset: &SourceOffset| {
            offset.holdfast.as_ref().and_then(|ours| ours.closed.clone()).unwrap_or_default()
        };
        let known = |offset: &SourceOffset| {
            offset.epoch().is_some() && offset.lineage().is_some() && offset.snapshot.is_none()
        };
        known(desired)
            && known(earlier.offset)
            && desired.epoch() == earlier.offset.epoch()
            && desired.lineage() == earlier.offset.lineage()
            && closed(desired) == closed(earlier.offset)
            && !self.desired.bad_gtids
            && !earlier.bad_gtids
            && earlier.not_after(&self.desired) == Some(true)
            && (earlier.gtids.is_none() && self.desired.gtids.is_none()
                || earlier.is_contained_in(&self.desired))
    }

    fn decide(&self, recorded: &Side<'_>) -> Verdict {
        let desired = &self.desired;
        if self.context.event_times_decide
            && let (Some(ours), Some(theirs)) = (recorded.offset.ts_sec, desired.offset.ts_sec)
        {
            return Verdict::guess(Rule::EventTime, ours <= theirs, "event times, as a test asked");
        }
        if let (Some(earlier), Some(current)) = (recorded.offset.epoch(), desired.offset.epoch())
            && earlier != current
        {
            return self.decide_by_epoch(recorded, earlier, current);
        }
        let relation = relation(recorded, desired);
        let by_coordinates = recorded.not_after(desired);
        if let (Relation::Same, Some(apply)) = (relation, by_coordinates) {
            return Verdict::sure(Rule::Lineage, apply, "coordinates, same log");
        }
        let comparable = by_coordinates.filter(|_| relation != Relation::Different);
        match (&recorded.gtids, &desired.gtids) {
            (Some(ours), Some(theirs)) => {
                decide_by_gtids(recorded, ours.relate(theirs), comparable)
            }
            (None, Some(_)) => Verdict {
                warn: comparable == Some(false),
                ..Verdict::sure(Rule::PredatesGtids, true, "the record is older than GTIDs")
            },
            (Some(_) | None, None) => self.decide_without_gtids(recorded, relation, comparable),
        }
    }

    fn decide_by_epoch(&self, recorded: &Side<'_>, earlier: u64, current: u64) -> Verdict {
        if earlier > current {
            return Verdict::sure(Rule::Epoch, false, "the record is of a later epoch");
        }
        let Some(closed) = &self.closed else {
            return Verdict::guess(
                Rule::Epoch,
                true,
                "earlier epoch, its closing coordinates cannot be read",
            );
        };
        let Some(end) = closed.find(earlier) else {
            return Verdict::sure(Rule::Epoch, true, "earlier epoch");
        };
        let file = BinlogFile::parse(&end.file).ok();
        let order =
            recorded.file.as_ref().zip(file).and_then(|(ours, closing)| ours.partial_cmp(&closing));
        match order {
            None => {
                Verdict::guess(Rule::Epoch, true, "earlier epoch, closed in a file of another name")
            }
            Some(order) => {
                // The closing position is between units, so the record's counters do not matter.
                let apply = order.then(recorded.offset.pos.cmp(&end.pos)) != Ordering::Greater;
                let why = if apply {
                    "earlier epoch, before its close"
                } else {
                    "earlier epoch, beyond its close"
                };
                Verdict::sure(Rule::Epoch, apply, why)
            }
        }
    }

    fn decide_without_gtids(
        &self,
        recorded: &Side<'_>,
        relation: Relation,
        comparable: Option<bool>,
    ) -> Verdict {
        if let Some(apply) = comparable {
            return Verdict::sure(Rule::Coordinates, apply, "coordinates");
        }
        let streaming =
            recorded.offset.snapshot.is_none() && self.desired.offset.snapshot.is_none();
        match (recorded.offset.ts_sec, self.desired.offset.ts_sec) {
            (Some(ours), Some(theirs)) if streaming && relation == Relation::Different => {
                Verdict::guess(Rule::EventTime, ours <= theirs, "event times, different logs")
            }
            _ if relation == Relation::Different => {
                Verdict::guess(Rule::Undecided, true, "different logs without an order")
            }
            _ => Verdict::guess(Rule::Undecided, true, "coordinates cannot be compared"),
        }
    }
}

impl Verdict {
    const fn sure(rule: Rule, apply: bool, why: &'static str) -> Self {
        Self { apply, rule, warn: false, suspicious: false, why }
    }

    const fn guess(rule: Rule, apply: bool, why: &'static str) -> Self {
        Self { apply, rule, warn: true, suspicious: false, why }
    }
}

fn decide_by_gtids(
    recorded: &Side<'_>,
    relation: GtidRelation,
    comparable: Option<bool>,
) -> Verdict {
    let image = is_image(recorded.offset);
    match (relation, comparable) {
        // A MySQL DDL is recorded by Debezium with the set before it, so that equal sets do not tell which came first.
        (GtidRelation::Equal, Some(apply)) => {
            Verdict::sure(Rule::Gtids, apply, "equal GTIDs, then coordinates")
        }
        (GtidRelation::Equal, None) if image => {
            Verdict::sure(Rule::Gtids, true, "equal GTIDs, a snapshot's image")
        }
        (GtidRelation::Equal, None) => {
            Verdict::sure(Rule::Gtids, false, "equal GTIDs, the statement comes again")
        }
        (GtidRelation::Subset, _) => Verdict::sure(Rule::Gtids, true, "GTIDs contained"),
        (GtidRelation::Superset, _) => Verdict::sure(Rule::Gtids, false, "GTIDs beyond"),
        (GtidRelation::HolesOnly, _) => {
            Verdict::guess(Rule::Gtids, true, "GTIDs beyond in holes only")
        }
        (GtidRelation::Unrelated, Some(apply)) => {
            Verdict::sure(Rule::Coordinates, apply, "GTIDs without an order, then coordinates")
        }
        (GtidRelation::Unrelated, None) if image => {
            Verdict::guess(Rule::Undecided, true, "GTIDs without an order, a snapshot's image")
        }
        (GtidRelation::Unrelated, None) => {
            Verdict::guess(Rule::Undecided, false, "GTIDs without an order")
        }
    }
}

/// One of the two positions, parsed.
#[derive(Debug)]
struct Side<'a> {
    offset: &'a SourceOffset,
    file: Option<BinlogFile>,
    /// `None` when absent, blank, filtered away or not readable.
    gtids: Option<Gtids>,
    bad_gtids: bool,
    /// The origin's id, where it may be compared.
    origin: Option<u64>,
    /// Event and row; 0 in a snapshot's record, since the schema cannot change inside a unit.
    done: (u64, u64),
}

impl<'a> Side<'a> {
    fn read(offset: &'a SourceOffset, context: &CompareContext<'_>, is_record: bool) -> Self {
        let text = offset.gtids.as_deref().unwrap_or_default();
        let (gtids, bad_gtids) = match Gtids::parse(text, context) {
            Ok(gtids) => (gtids, false),
            Err(NotGtids) => (None, true),
        };
        let done = if is_record && is_image(offset) { (0, 0) } else { (offset.event, offset.row) };
        let origin =
            offset.server_id.filter(|&id| id != 0 && (is_record || !context.ignore_server_id));
        Self { offset, origin, file: BinlogFile::parse(&offset.file).ok(), gtids, bad_gtids, done }
    }

    /// Whether both have GTIDs, and these are all among those of `other`.
    fn is_contained_in(&self, other: &Self) -> bool {
        match (&self.gtids, &other.gtids) {
            (Some(Gtids::MySql(ours)), Some(Gtids::MySql(theirs))) => ours.is_subset_of(theirs),
            (Some(Gtids::MariaDb(ours)), Some(Gtids::MariaDb(theirs))) => ours.at_or_before(theirs),
            _ => false,
        }
    }

    /// Whether the coordinates are at or before those of `other`; `None` when they cannot be compared.
    fn not_after(&self, other: &Self) -> Option<bool> {
        let files = self.file.as_ref()?.partial_cmp(other.file.as_ref()?)?;
        let order =
            files.then(self.offset.pos.cmp(&other.offset.pos)).then(self.done.cmp(&other.done));
        Some(order != Ordering::Greater)
    }
}

/// Whether a position is that of a snapshot's schema record. Streaming goes on beside an incremental snapshot.
fn is_image(offset: &SourceOffset) -> bool {
    matches!(offset.snapshot, Some(SnapshotKind::Initial | SnapshotKind::Blocking))
}

/// How the logs of two positions are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// One log.
    Same,
    /// Two logs.
    Different,
    /// Nothing says that they are two.
    Compatible,
}

/// Two epochs of the same number with different servers or names contradict themselves and are different logs.
fn relation(recorded: &Side<'_>, desired: &Side<'_>) -> Relation {
    let bases = recorded
        .file
        .as_ref()
        .zip(desired.file.as_ref())
        .map(|(ours, theirs)| ours.base() == theirs.base());
    let epochs =
        recorded.offset.epoch().zip(desired.offset.epoch()).map(|(ours, theirs)| ours == theirs);
    let lineages = (recorded.offset.lineage(), desired.offset.lineage());
    let servers = match lineages {
        (Some(ours), Some(theirs)) => Some(ours.eq_ignore_ascii_case(theirs)),
        (Some(_), None) | (None, Some(_) | None) => None,
    };
    if bases == Some(false) || epochs == Some(false) || servers == Some(false) {
        return Relation::Different;
    }
    if epochs == Some(true) || (servers == Some(true) && bases == Some(true)) {
        return Relation::Same;
    }
    match (lineages, recorded.origin, desired.origin) {
        ((None, None), Some(ours), Some(theirs)) if ours != theirs => Relation::Different,
        _ => Relation::Compatible,
    }
}

/// A GTID text is neither MySQL's nor MariaDB's.
struct NotGtids;

/// GTIDs of either server. A MySQL set has colons, a MariaDB position has none.
#[derive(Debug)]
enum Gtids {
    MySql(GtidSet),
    MariaDb(GtidPos),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GtidRelation {
    Equal,
    /// The record's are contained in the offset's, where both know the source.
    Subset,
    /// The other way round.
    Superset,
    /// The record has some that the offset lacks, all of them below what the offset has of that source.
    HolesOnly,
    Unrelated,
}

impl Gtids {
    fn parse(text: &str, context: &CompareContext<'_>) -> Result<Option<Self>, NotGtids> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        if text.contains(':') {
            let mut set = GtidSet::parse(text).map_err(|_| NotGtids)?;
            if let Some(keep) = context.gtid_sources {
                set.retain(|uuid, _| keep(&uuid.to_string()));
            }
            Ok((!set.is_empty()).then_some(Self::MySql(set)))
        } else {
            let mut position = GtidPos::parse(text).map_err(|_| NotGtids)?;
            if let Some(keep) = context.gtid_sources {
                position.retain(|gtid| keep(&format!("{}-{}", gtid.domain, gtid.server)));
            }
            Ok((!position.is_empty()).then_some(Self::MariaDb(position)))
        }
    }

    fn relate(&self, desired: &Self) -> GtidRelation {
        match (self, desired) {
            (Self::MySql(ours), Self::MySql(theirs)) => relate_sets(ours, theirs),
            (Self::MariaDb(ours), Self::MariaDb(theirs)) => relate_positions(ours, theirs),
            (Self::MySql(_), Self::MariaDb(_)) | (Self::MariaDb(_), Self::MySql(_)) => {
                GtidRelation::Unrelated
            }
        }
    }
}

fn relate_sets(recorded: &GtidSet, desired: &GtidSet) -> GtidRelation {
    if recorded == desired {
        return GtidRelation::Equal;
    }
    if recorded.is_subset_of(desired) {
        return GtidRelation::Subset;
    }
    if desired.is_subset_of(recorded) {
        return GtidRelation::Superset;
    }
    let (mut ours, mut theirs) = (recorded.clone(), desired.clone());
    ours.retain(|source, tag| desired.has_source(source, tag));
    theirs.retain(|source, tag| recorded.has_source(source, tag));
    if ours.is_empty() {
        return GtidRelation::Unrelated;
    }
    if ours.is_subset_of(&theirs) {
        return GtidRelation::Subset;
    }
    if theirs.is_subset_of(&ours) {
        return GtidRelation::Superset;
    }
    let newest = |wanted: (Uuid, _)| {
        let mut sources = theirs.iter().filter(|&(source, tag, _)| (source, tag) == wanted);
        sources
            .next()
            .and_then(|(_, _, intervals)| intervals.last())
            .map(|interval| interval.last())
    };
    let beyond = ours.subtract(&theirs);
    let only_holes = beyond.iter().all(|(source, tag, intervals)| {
        intervals.last().map(|interval| interval.last()) < newest((source, tag))
    });
    if only_holes { GtidRelation::HolesOnly } else { GtidRelation::Unrelated }
}

fn relate_positions(recorded: &GtidPos, desired: &GtidPos) -> GtidRelation {
    let relate = |ours: &GtidPos, theirs: &GtidPos| match (
        ours.at_or_before(theirs),
        theirs.at_or_before(ours),
    ) {
        (true, true) => GtidRelation::Equal,
        (true, false) => GtidRelation::Subset,
        (false, true) => GtidRelation::Superset,
        (false, false) => GtidRelation::Unrelated,
    };
    let whole = relate(recorded, desired);
    if whole != GtidRelation::Unrelated {
        return whole;
    }
    let has = |position: &GtidPos, domain: u32| position.iter().any(|gtid| gtid.domain == domain);
    let (mut ours, mut theirs) = (recorded.clone(), desired.clone());
    ours.retain(|gtid| has(desired, gtid.domain));
    theirs.retain(|gtid| has(recorded, gtid.domain));
    if ours.is_empty() {
        return GtidRelation::Unrelated;
    }
    match relate(&ours, &theirs) {
        GtidRelation::Equal => GtidRelation::Subset,
        other @ (GtidRelation::Subset
        | GtidRelation::Superset
        | GtidRelation::HolesOnly
        | GtidRelation::Unrelated) => other,
    }
}

#[cfg(test)]
mod tests;
