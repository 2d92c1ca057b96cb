//! Which records are acknowledged, and how far that lets the stored offset move.
//!
//! ```text
//!  delivered    1   2   3   4   5   6   7        groups in delivery order, dense numbers
//!  acknowledged x   x   x   .   x   x   .
//!                       ^
//!                  frontier: it and every group before it are acknowledged
//! ```
//!
//! A *group* is everything that one source step produced: the one record of a row, the DELETE, tombstone and CREATE
//! of a primary-key change, the records of one DDL. Its parts are acknowledged one by one or together, in any order,
//! from any thread. Only the offset *after* the frontier's group may be stored: what it skips at a restart was
//! acknowledged, all of it. So a group of which one part is missing is delivered again as a whole.
//!
//! The ledger is pure: it holds no clock and no store. The engine pushes groups in delivery order and reads the
//! frontier; consumers acknowledge.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::batch::{BatchData, Groups};
use crate::offset::OffsetPoint;

/// The number of a group: dense, in delivery order, starting at 1 in each run of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupNumber(pub u64);

/// How many acknowledgements did nothing, and why; and how many groups were given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AckCounts {
    /// Parts acknowledged again.
    pub duplicate: u64,
    /// Parts of groups that this ledger never gave out, or that a reset made stale.
    pub stale: u64,
    /// Groups that were given back, and came again for it.
    pub rejected: u64,
}

/// Open groups in delivery order, and the frontier.
#[derive(Debug)]
pub(crate) struct AckLedger {
    /// Batches that are not done, in order; they hold every group after the frontier.
    open: VecDeque<OpenBatch>,
    /// Number that the next group gets.
    next: u64,
    frontier: OffsetPoint,
    /// Counts changes of `frontier`, so that a committer sees whether there is something to store.
    version: u64,
    counts: AckCounts,
    /// Groups below this number that are not open were given up, not done.
    stale_below: u64,
    /// Groups that were given back and wait to come again, in that order.
    rejected: VecDeque<Rejected>,
    /// How often open groups were given back, by number.
    rejections: BTreeMap<u64, u32>,
}

/// A group that was given back.
#[derive(Debug)]
pub(crate) struct Rejected {
    number: GroupNumber,
    /// Where its records are.
    pub(crate) data: Arc<BatchData>,
    pub(crate) group: usize,
    /// How often it was given back.
    pub(crate) times: u32,
}

/// The groups of one batch. One that is acknowledged as a whole costs the same whatever its size.
#[derive(Debug)]
struct OpenBatch {
    /// Number of its first group.
    first: u64,
    groups: Arc<Groups>,
    /// The groups from the first on that are done.
    done: usize,
    /// The parts of each group, once a group of the batch was acknowledged by itself.
    parts: Option<Vec<Parts>>,
    /// Where the stream was before the next batch, if it went on after the last group.
    moved_on: Option<OffsetPoint>,
}

impl OpenBatch {
    /// Number of the group after the last.
    fn end(&self) -> u64 {
        self.first + self.groups.len() as u64
    }

    fn is_done(&self) -> bool {
        self.done >= self.groups.len()
    }

    fn parts_mut(&mut self, group: u64) -> Option<&mut Parts> {
        let groups = &self.groups;
        let done = self.done;
        let parts = self.parts.get_or_insert_with(|| {
            let open = (0..groups.len()).map(|group| match group < done {
                true => Parts::Few(0),
                false => Parts::all_open(groups.parts(group).max(1)),
            });
            open.collect()
        });
        let index = usize::try_from(group.checked_sub(self.first)?).ok()?;
        parts.get_mut(index)
    }

    /// Counts the groups at the front that are done; true when there are more than before.
    fn count_done(&mut self) -> bool {
        let Some(parts) = &self.parts else { return false };
        let more = parts.iter().skip(self.done).take_while(|parts| parts.done()).count();
        self.done += more;
        more > 0
    }

    /// The offset with the groups that are done.
    fn offset(&self) -> Option<OffsetPoint> {
        match &self.moved_on {
            Some(offset) if self.is_done() => Some(offset.clone()),
            Some(_) | None => self.groups.offset_after(self.done.checked_sub(1)?),
        }
    }
}

/// Parts that are not acknowledged yet.
#[derive(Debug)]
enum Parts {
    /// Up to 64 parts: one bit each, set while the part is open.
    Few(u64),
    /// More: one flag each, and how many are set.
    Many { open: Vec<bool>, left: usize },
}

impl Parts {
    fn all_open(parts: u32) -> Self {
        match parts {
            0..=63 => Self::Few((1 << parts) - 1),
            64 => Self::Few(u64::MAX),
            _ => {
                let left = usize::try_from(parts).unwrap_or(usize::MAX);
                Self::Many { open: vec![true; left], left }
            }
        }
    }

    /// Closes one part; false when it was closed or does not exist.
    fn close(&mut self, part: u32) -> bool {
        match self {
            Self::Few(bits) => {
                let Some(bit) = 1_u64.checked_shl(part) else { return false };
                let was_open = *bits & bit != 0;
                *bits &= !bit;
                was_open
            }
            Self::Many { open, left } => {
                let flag = usize::try_from(part).ok().and_then(|part| open.get_mut(part));
                match flag {
                    Some(flag) if *flag => {
                        *flag = false;
                        *left -= 1;
                        true
                    }
                    Some(_) | None => false,
                }
            }
        }
    }

    fn close_all(&mut self) -> bool {
        let was_open = !self.done();
        *self = Self::Few(0);
        was_open
    }

    const fn done(&self) -> bool {
        match self {
            Self::Few(bits) => *bits == 0,
            Self::Many { left, .. } => *left == 0,
        }
    }
}

impl AckLedger {
    /// Starts with nothing delivered; `frontier` is the offset that the run began with.
    pub(crate) const fn new(frontier: OffsetPoint) -> Self {
        Self {
            open: VecDeque::new(),
            next: 1,
            frontier,
            version: 0,
            counts: AckCounts { duplicate: 0, stale: 0, rejected: 0 },
            stale_below: 0,
            rejected: VecDeque::new(),
            rejections: BTreeMap::new(),
        }
    }

    /// Adds the groups of the next batch in delivery order; the number of the first of them.
    pub(crate) fn push(&mut self, groups: Arc<Groups>) -> GroupNumber {
        let first = self.next;
        self.next += groups.len() as u64;
        self.open.push_back(OpenBatch { first, groups, done: 0, parts: None, moved_on: None });
        GroupNumber(first)
    }

    /// Notes that the stream went on to `offset` without a record: a commit, filtered rows, a rotated file. It counts
    /// as part of the last group given out, and as done where nothing is open.
    pub(crate) fn advance(&mut self, offset: OffsetPoint) {
        match self.open.back_mut() {
            Some(last) => last.moved_on = Some(offset),
            None => {
                self.frontier = offset;
                self.version += 1;
            }
        }
    }

    /// Acknowledges one part, counted from 0. Acknowledging twice does nothing; both are counted.
    pub(crate) fn acknowledge_part(&mut self, group: GroupNumber, part: u32) {
        self.close(group, |parts| parts.close(part));
    }

    /// Acknowledges all parts of a group.
    pub(crate) fn acknowledge_group(&mut self, group: GroupNumber) {
        self.close(group, Parts::close_all);
    }

    /// Acknowledges all parts of the groups `first` to `last`, both included.
    pub(crate) fn acknowledge_range(&mut self, first: GroupNumber, last: GroupNumber) {
        if first.0 < self.stale_below {
            self.counts.stale += self.stale_below.min(last.0.saturating_add(1)) - first.0;
        }
        let begin = self.open.partition_point(|batch| batch.end() <= first.0);
        for batch in self.open.iter_mut().skip(begin).take_while(|batch| batch.first <= last.0) {
            if first.0 <= batch.first && batch.end() <= last.0.saturating_add(1) {
                batch.done = batch.groups.len();
                batch.parts = None;
                continue;
            }
            for number in first.0.max(batch.first)..batch.end().min(last.0.saturating_add(1)) {
                if let Some(parts) = batch.parts_mut(number) {
                    parts.close_all();
                }
            }
        }
        self.move_frontier();
    }

    /// Opens a group again that could not be processed, and keeps it to be given out once more. `times` counts how often
    /// it was given back before what is given back now came; another number is of a delivery that was given back already.
    fn reject(&mut self, data: &Arc<BatchData>, group: usize, number: GroupNumber, times: u32) {
        if number.0 >= self.next || number.0 < self.stale_below.max(1) {
            self.counts.stale += 1;
            return;
        }
        let before = self.rejections.get(&number.0).copied().unwrap_or_default();
        if before != times || !self.is_open(number) {
            self.counts.duplicate += 1;
            return;
        }
        let index = self.open.partition_point(|batch| batch.end() <= number.0);
        if let Some(batch) = self.open.get_mut(index) {
            let count = batch.groups.parts(group).max(1);
            if let Some(parts) = batch.parts_mut(number.0) {
                *parts = Parts::all_open(count);
            }
        }
        let times = times.saturating_add(1);
        self.rejections.insert(number.0, times);
        self.counts.rejected += 1;
        self.rejected.push_back(Rejected { number, data: Arc::clone(data), group, times });
    }

    /// The next group to be given out again; one that was acknowledged meanwhile is not.
    fn take_rejected(&mut self) -> Option<Rejected> {
        while let Some(rejected) = self.rejected.pop_front() {
            if self.is_open(rejected.number) {
                return Some(rejected);
            }
        }
        None
    }

    /// Whether a part of the group is not acknowledged.
    fn is_open(&mut self, number: GroupNumber) -> bool {
        let index = self.open.partition_point(|batch| batch.end() <= number.0);
        let batch = self.open.get_mut(index).filter(|batch| batch.first <= number.0);
        batch
            .filter(|batch| !batch.is_done())
            .and_then(|batch| batch.parts_mut(number.0))
            .is_some_and(|parts| !parts.done())
    }

    /// Closes parts of one group.
    fn close(&mut self, group: GroupNumber, close: impl FnOnce(&mut Parts) -> bool) {
        if group.0 >= self.next || group.0 < self.stale_below.max(1) {
            self.counts.stale += 1;
            return;
        }
        let index = self.open.partition_point(|batch| batch.end() <= group.0);
        let batch = self.open.get_mut(index).filter(|batch| batch.first <= group.0);
        let closed = batch
            .filter(|batch| !batch.is_done())
            .and_then(|batch| batch.parts_mut(group.0))
            .is_some_and(close);
        if closed {
            self.move_frontier();
        } else {
            self.counts.duplicate += 1;
        }
    }

    fn move_frontier(&mut self) {
        let mut reached = None;
        while let Some(batch) = self.open.front_mut() {
            let moved = batch.count_done() || batch.is_done();
            if moved {
                reached = batch.offset().or(reached);
            }
            if !batch.is_done() {
                break;
            }
            self.open.pop_front();
        }
        if let Some(offset) = reached {
            self.frontier = offset;
            self.version += 1;
            if !self.rejections.is_empty() {
                self.rejections = self.rejections.split_off(&self.first_open());
            }
        }
    }

    /// The offset that may be stored.
    pub(crate) const fn frontier(&self) -> &OffsetPoint {
        &self.frontier
    }

    /// Changes whenever the frontier does.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Number of the first group that is not done.
    pub(crate) fn first_open(&self) -> u64 {
        self.open.front().map_or(self.next, |batch| batch.first + batch.done as u64)
    }

    /// Number that the next group gets.
    pub(crate) const fn next_group(&self) -> u64 {
        self.next
    }

    /// Sets the frontier that a run begins with.
    pub(crate) fn start_at(&mut self, frontier: OffsetPoint) {
        if self.open.is_empty() {
            self.frontier = frontier;
        }
    }

    /// Everything that is not acknowledged is to be given out again: its groups become stale.
    pub(crate) fn rewind(&mut self) -> OffsetPoint {
        self.open.clear();
        self.rejected.clear();
        self.rejections.clear();
        self.stale_below = self.next;
        self.frontier.clone()
    }

    /// Groups delivered and not complete, and those complete behind them.
    pub(crate) fn open_groups(&self) -> usize {
        self.open.iter().map(|batch| batch.groups.len() - batch.done.min(batch.groups.len())).sum()
    }

    /// Acknowledgements that did nothing.
    pub(crate) const fn counts(&self) -> AckCounts {
        self.counts
    }
}

/// The ledger as engine, batches and handles share it.
#[derive(Debug, Clone)]
pub(crate) struct SharedLedger {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    ledger: Mutex<AckLedger>,
    moved: Notify,
    rejected: Notify,
}

impl SharedLedger {
    pub(crate) fn new(frontier: OffsetPoint) -> Self {
        Self {
            inner: Arc::new(Inner {
                ledger: Mutex::new(AckLedger::new(frontier)),
                moved: Notify::new(),
                rejected: Notify::new(),
            }),
        }
    }

    /// The ledger itself. A panic while it was locked leaves plain counters behind, so the lock is taken all the same.
    pub(crate) fn lock(&self) -> MutexGuard<'_, AckLedger> {
        self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `change` on the ledger and wakes the committer when the frontier moved.
    pub(crate) fn update(&self, change: impl FnOnce(&mut AckLedger)) {
        let moved = {
            let mut ledger = self.lock();
            let before = ledger.version();
            change(&mut ledger);
            ledger.version() != before
        };
        if moved {
            self.inner.moved.notify_waiters();
        }
    }

    /// Waits until group `last` and all before it are acknowledged, or stale.
    pub(crate) async fn acknowledged(&self, last: u64) {
        loop {
            let version = {
                let ledger = self.lock();
                if ledger.first_open() > last {
                    return;
                }
                ledger.version()
            };
            self.moved_from(version).await;
        }
    }

    /// Waits for a group that was given back. Cancel-safe: a group is either returned or still to come.
    pub(crate) async fn rejected(&self) -> Rejected {
        loop {
            let more = self.inner.rejected.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if let Some(rejected) = self.lock().take_rejected() {
                return rejected;
            }
            more.await;
        }
    }

    /// Waits for the frontier to move on from `version`.
    pub(crate) async fn moved_from(&self, version: u64) {
        loop {
            let moved = self.inner.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.lock().version() != version {
                return;
            }
            moved.await;
        }
    }
}

/// A handle on one group: acknowledges all its parts, or gives them back, from anywhere, at any time.
#[derive(Clone)]
pub struct AckGroup {
    pub(crate) data: Arc<BatchData>,
    pub(crate) group: usize,
    pub(crate) number: GroupNumber,
    pub(crate) redelivery: u32,
}

impl fmt::Debug for AckGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AckGroup").field("number", &self.number).finish_non_exhaustive()
    }
}

impl AckGroup {
    /// Acknowledges every part of the group.
    pub fn acknowledge(&self) {
        self.data.ledger().update(|ledger| ledger.acknowledge_group(self.number));
    }

    /// Acknowledges one part, counted from 0.
    pub fn acknowledge_part(&self, part: u32) {
        self.data.ledger().update(|ledger| ledger.acknowledge_part(self.number, part));
    }

    /// Gives the group back: it could not be processed. All its parts come again, next and in a batch of their own, with
    /// the same number and identities; nothing else does, and the frontier waits for it. What was given out after it is
    /// not taken back: a consumer to whom order matters more than progress uses [`crate::Control::redeliver`].
    ///
    /// A group that was acknowledged, or whose delivery was given back already, does not come again. One that is given
    /// back more often than [`crate::EngineBuilder::max_redeliveries`] allows ends the engine.
    pub fn reject(&self) {
        let ledger = self.data.ledger();
        ledger.lock().reject(&self.data, self.group, self.number, self.redelivery);
        ledger.inner.rejected.notify_waiters();
    }

    /// The group's number in this run.
    #[must_use]
    pub const fn number(&self) -> GroupNumber {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(pos: u64) -> OffsetPoint {
        OffsetPoint::closed_at("mysql-bin.000001", pos)
    }

    /// Groups of so many parts, in batches of so many groups; the offset after a group is its number.
    fn ledger_of(parts: &[u32], batch: usize) -> AckLedger {
        let mut ledger = AckLedger::new(at(0));
        let mut number = 0;
        for parts in parts.chunks(batch) {
            let mut groups = Groups::default();
            for parts in parts {
                number += 1;
                groups.push(*parts, at(number).view());
            }
            ledger.push(Arc::new(groups));
        }
        ledger
    }

    fn ledger_with(parts: &[u32]) -> AckLedger {
        ledger_of(parts, 2)
    }

    #[test]
    fn the_frontier_waits_for_every_part_of_a_group() {
        let mut ledger = ledger_with(&[1, 3, 1]);
        ledger.acknowledge_part(GroupNumber(1), 0);
        ledger.acknowledge_part(GroupNumber(2), 0);
        ledger.acknowledge_part(GroupNumber(3), 0);
        assert_eq!(ledger.frontier(), &at(1));
        ledger.acknowledge_part(GroupNumber(2), 2);
        assert_eq!(ledger.frontier(), &at(1));
        ledger.acknowledge_part(GroupNumber(2), 1);
        assert_eq!(ledger.frontier(), &at(3));
        assert_eq!(ledger.open_groups(), 0);
    }

    #[test]
    fn progress_without_records_belongs_to_the_last_group() {
        let mut ledger = ledger_with(&[1]);
        ledger.advance(at(50));
        assert_eq!(ledger.frontier(), &at(0));
        ledger.acknowledge_group(GroupNumber(1));
        assert_eq!(ledger.frontier(), &at(50));
        ledger.advance(at(60));
        assert_eq!(ledger.frontier(), &at(60));
    }

    #[test]
    fn acknowledging_twice_or_from_nowhere_is_counted_and_does_nothing() {
        let mut ledger = ledger_with(&[1, 1]);
        ledger.acknowledge_part(GroupNumber(1), 0);
        ledger.acknowledge_part(GroupNumber(1), 0);
        ledger.acknowledge_part(GroupNumber(9), 0);
        ledger.acknowledge_part(GroupNumber(2), 7);
        ledger.acknowledge_part(GroupNumber(2), 70);
        assert_eq!(ledger.frontier(), &at(1));
        assert_eq!(ledger.counts(), AckCounts { duplicate: 3, stale: 1, rejected: 0 });
    }

    #[test]
    fn a_group_of_more_than_64_parts_is_complete_only_with_the_last() {
        for parts in [63, 64, 65, 200] {
            let mut ledger = ledger_with(&[parts]);
            for part in (1..parts).rev() {
                ledger.acknowledge_part(GroupNumber(1), part);
            }
            assert_eq!(ledger.frontier(), &at(0), "{parts} parts");
            ledger.acknowledge_part(GroupNumber(1), 0);
            assert_eq!(ledger.frontier(), &at(1), "{parts} parts");
        }
    }

    proptest! {
        /// Against the plain definition: the last group such that it and all before it are acknowledged.
        #[test]
        fn the_frontier_is_the_longest_acknowledged_prefix(
            parts in prop::collection::vec(1_u32..4, 1..12),
            batch in 1_usize..6,
            acks in prop::collection::vec((1_u64..14, 0_u32..4, 0_u64..5), 0..60),
        ) {
            let mut ledger = ledger_of(&parts, batch);
            let mut model: Vec<Vec<bool>> = parts.iter().map(|parts| vec![false; *parts as usize]).collect();
            for (group, part, more) in acks {
                if part == 3 {
                    // All parts of several groups, as a batch acknowledges them.
                    ledger.acknowledge_range(GroupNumber(group), GroupNumber(group + more));
                    for (parts, _) in model.iter_mut().zip(1..).filter(|(_, n)| (group..=group + more).contains(n)) {
                        parts.fill(true);
                    }
                } else {
                    ledger.acknowledge_part(GroupNumber(group), part);
                    let acked = model.iter_mut().zip(1_u64..).find(|(_, number)| *number == group);
                    if let Some(flag) = acked.and_then(|(parts, _)| parts.iter_mut().zip(0_u32..).find(|(_, n)| *n == part)) {
                        *flag.0 = true;
                    }
                }
                let prefix = model.iter().take_while(|group| group.iter().all(|acked| *acked)).count();
                prop_assert_eq!(ledger.frontier(), &at(prefix as u64));
            }
        }
    }
}
