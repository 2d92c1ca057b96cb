//! Batches: change records in delivery order, whole ack groups only.
//!
//! A [`Batch`] owns one buffer that holds the JSON text of all its records; a record is a view into it and costs no
//! allocation of its own. What many records share stands once in the batch: topics and tables, files, and the offsets
//! of which a group only keeps its counts.
//!
//! [`BatchBuilder`] is the writing side: a group is opened, its records are appended, and it is closed with the offset
//! after it. Nothing of a group is visible before it is closed, and the ledger learns of a batch's groups when the batch
//! is finished, all at once.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_binlog::txn::RestartPoint;
use holdfast_history::TableId;

use crate::ack::{AckGroup, GroupNumber, SharedLedger};
use crate::config::BATCH_BYTES;
use crate::identity::EventId;
use crate::offset::{OffsetPoint, OffsetView};
use crate::record::{ChangeRecord, RecordKind};
use crate::transform::{Chain, RecordText};

/// Where a record came from, as its identity needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordOrigin<'a> {
    pub(crate) table: &'a Arc<TableId>,
    pub(crate) file: &'a Arc<str>,
    pub(crate) pos: u64,
    pub(crate) ordinal: u64,
    pub(crate) row: u64,
}

impl RecordOrigin<'_> {
    pub(crate) fn identity(&self, lineage: &Arc<str>, part: u32) -> EventId {
        EventId {
            lineage: Arc::clone(lineage),
            table: Arc::clone(self.table),
            file: Arc::clone(self.file),
            pos: self.pos,
            ordinal: self.ordinal,
            row: self.row,
            part,
        }
    }
}

/// One record's place in its batch.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Where its text begins: headers, then key, then value.
    start: usize,
    headers_end: usize,
    key_end: usize,
    end: usize,
    pos: u64,
    ordinal: u64,
    row: u64,
    /// Index of its topic and table.
    subject: u32,
    /// Index of its file.
    file: u32,
    group: u32,
    pub(crate) part: u32,
    pub(crate) kind: RecordKind,
}

impl Entry {
    pub(crate) const fn headers(&self) -> Range<usize> {
        self.start..self.headers_end
    }

    pub(crate) const fn key(&self) -> Range<usize> {
        self.headers_end..self.key_end
    }

    pub(crate) const fn value(&self) -> Range<usize> {
        self.key_end..self.end
    }

    pub(crate) const fn group(&self) -> usize {
        self.group as usize
    }
}

/// What records are about.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) topic: Arc<str>,
    pub(crate) table: Arc<TableId>,
}

/// What many records share, each standing there once or a few times.
#[derive(Debug, Default)]
struct Shared {
    subjects: Vec<Subject>,
    files: Vec<Arc<str>>,
}

/// How many of the last subjects are looked at for one that is there already.
const LOOK_BACK: usize = 8;

impl Shared {
    fn subject(&mut self, topic: &Arc<str>, table: &Arc<TableId>) -> u32 {
        let same = |subject: &Subject| {
            Arc::ptr_eq(&subject.topic, topic) && Arc::ptr_eq(&subject.table, table)
        };
        let first = self.subjects.len().saturating_sub(LOOK_BACK);
        let recent = self.subjects.iter().enumerate().skip(first);
        let found = recent.rev().find(|(_, subject)| same(subject)).map(|(index, _)| index);
        let index = found.unwrap_or_else(|| {
            self.subjects.push(Subject { topic: Arc::clone(topic), table: Arc::clone(table) });
            self.subjects.len() - 1
        });
        index_of(index)
    }

    fn file(&mut self, file: &Arc<str>) -> u32 {
        if self.files.last().is_none_or(|last| !Arc::ptr_eq(last, file)) {
            self.files.push(Arc::clone(file));
        }
        index_of(self.files.len() - 1)
    }
}

/// Indexes count records, and a batch holds fewer than 2³² of them: each has an [`Entry`] of its own.
fn index_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// How far the stream was after each group of a batch.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// One for each unit, shared by its groups.
    points: Vec<OffsetPoint>,
    groups: Vec<GroupEntry>,
}

/// One group: its parts, and what it has done of its unit.
#[derive(Debug, Clone, Copy)]
struct GroupEntry {
    parts: u32,
    /// Index of the point that the counts belong to.
    point: u32,
    events: u64,
    event_row: u64,
    rows: u64,
}

impl Groups {
    /// Number of groups.
    pub(crate) const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Number of records of a group; 0 for one that is not there.
    pub(crate) fn parts(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(0, |group| group.parts)
    }

    /// The offset with a group done; `None` for one that is not there.
    pub(crate) fn offset_after(&self, group: usize) -> Option<OffsetPoint> {
        let group = self.groups.get(group)?;
        let mut point = self.points.get(group.point as usize)?.clone();
        point.restart.events = group.events;
        point.restart.event_row = group.event_row;
        point.restart.rows = group.rows;
        Some(point)
    }

    /// Adds a group of `parts` records.
    #[inline]
    pub(crate) fn push(&mut self, parts: u32, after: OffsetView<'_>) {
        let point = self.point(after);
        let OffsetView { events, event_row, rows, .. } = after;
        self.groups.push(GroupEntry { parts, point, events, event_row, rows });
    }

    /// Adds a group behind which the stream is where the last point says, but for the counts; `false` when the last point
    /// is of another unit, and nothing was added.
    #[inline]
    fn push_counts(&mut self, parts: u32, restart: &RestartPoint) -> bool {
        let RestartPoint { unit, events, event_row, rows } = restart;
        let is_last = |point: &OffsetPoint| Arc::ptr_eq(&point.restart.unit, unit);
        if !self.points.last().is_some_and(is_last) {
            return false;
        }
        let (events, event_row, rows) = (*events, *event_row, *rows);
        let point = index_of(self.points.len() - 1);
        self.groups.push(GroupEntry { parts, point, events, event_row, rows });
        true
    }

    /// The stream went on after the last group; false when there is none.
    fn advance(&mut self, offset: OffsetView<'_>) -> bool {
        let Some(GroupEntry { parts, .. }) = self.groups.pop() else { return false };
        self.push(parts, offset);
        true
    }

    /// Index of the point that has all of `offset` but its counts.
    #[inline]
    fn point(&mut self, offset: OffsetView<'_>) -> u32 {
        if !self.points.last().is_some_and(|point| offset.differs_in_counts_only(point)) {
            self.points.push(offset.to_point());
        }
        index_of(self.points.len() - 1)
    }
}

/// Records and their groups, and the memory that they are in.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    shared: Shared,
    groups: Groups,
}

impl Buffer {
    /// Room for text in a new one, bytes: a batch and the record that fills it. Of what is not written to, only the
    /// addresses are taken.
    const ROOM: usize = BATCH_BYTES + (64 << 10);
    /// Room for entries in a new one.
    const ENTRIES: usize = 256;

    fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(Self::ROOM),
            entries: Vec::with_capacity(Self::ENTRIES),
            ..Self::default()
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.shared.subjects.clear();
        self.shared.files.clear();
        self.groups.points.clear();
        self.groups.groups.clear();
    }
}

/// Buffers that batches gave back, for the next ones: memory that is mapped already.
///
/// A buffer comes back full and is emptied by the one who takes it. What is freed then was allocated by the same thread, more
/// often than not; freed by the consumer's, it would have both wait for each other inside the allocator.
#[derive(Debug, Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Buffer>>>);

impl Buffers {
    /// Buffers that are kept.
    const MOST: usize = 16;
    /// Capacity for text that is kept, bytes; a batch of one huge record does not hold on to its memory.
    const LARGEST: usize = 8 << 20;
    /// Capacity for entries that is kept.
    const MOST_ENTRIES: usize = 1 << 16;

    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Buffer {
        let kept = self.lock().pop();
        kept.map_or_else(Buffer::new, |mut buffer| {
            buffer.clear();
            buffer
        })
    }

    fn give_back(&self, buffer: Buffer) {
        let Buffer { bytes, entries, .. } = &buffer;
        let (text, records) = (bytes.capacity(), entries.capacity());
        if text == 0 || text > Self::LARGEST || records > Self::MOST_ENTRIES {
            return;
        }
        let mut kept = self.lock();
        if kept.len() < Self::MOST {
            kept.push(buffer);
        }
    }
}

/// What a batch holds. Its records are given out again from here when a consumer gives one back.
#[derive(Debug)]
pub(crate) struct BatchData {
    /// Its records; the groups are apart.
    records: Buffer,
    groups: Arc<Groups>,
    lineage: Arc<str>,
    /// Number of the first group.
    first: GroupNumber,
    offset_before: OffsetPoint,
    ledger: SharedLedger,
    buffers: Buffers,
}

impl Drop for BatchData {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.records);
        if let Some(groups) = Arc::get_mut(&mut self.groups) {
            buffer.groups = std::mem::take(groups);
        }
        self.buffers.give_back(buffer);
    }
}

impl BatchData {
    /// The ledger that knows its groups.
    pub(crate) const fn ledger(&self) -> &SharedLedger {
        &self.ledger
    }

    const fn number(&self, group: usize) -> GroupNumber {
        GroupNumber(self.first.0 + group as u64)
    }
}

/// Records in delivery order, whole ack groups only.
///
/// A batch and the [`AckGroup`]s of its records share its text, which is freed with the last of them.
#[derive(Debug)]
pub struct Batch {
    data: Arc<BatchData>,
    /// The records of `data` that are given out.
    entries: Range<usize>,
    redelivery: u32,
}

impl Batch {
    /// The records, in order.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = ChangeRecord<'_>> {
        self.entries().iter().map(|entry| ChangeRecord { batch: self, entry })
    }

    /// Acknowledges every record of the batch.
    pub fn acknowledge(&self) {
        if let Some((first, last)) = self.group_range() {
            let (first, last) = (self.data.number(first), self.data.number(last));
            self.data.ledger.update(|ledger| ledger.acknowledge_range(first, last));
        }
    }

    /// Gives every group of the batch that is not acknowledged back, as [`AckGroup::reject`] does with one.
    pub fn reject(&self) {
        let Some((first, last)) = self.group_range() else { return };
        for group in first..=last {
            self.ack_group(group).reject();
        }
    }

    /// How often its one group was given back before; 0 for a batch that comes for the first time.
    #[must_use]
    pub const fn redelivery(&self) -> u32 {
        self.redelivery
    }

    /// The log that its records came from, `<server uuid>/<epoch>`: positions and identities of another one say nothing
    /// about these.
    #[must_use]
    pub fn lineage(&self) -> &str {
        &self.data.lineage
    }

    /// Number of records, at least 1.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.end - self.entries.start
    }

    /// Whether there is no record; the engine gives out no such batch.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of JSON text in the batch.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        match self.entries() {
            [first, .., last] => last.end - first.start,
            [one] => one.end - one.start,
            [] => 0,
        }
    }

    /// One group of a batch, given out again.
    pub(crate) fn again(data: Arc<BatchData>, group: usize, redelivery: u32) -> Self {
        let entries = &data.records.entries;
        let first = entries.partition_point(|entry| entry.group() < group);
        let end = entries.partition_point(|entry| entry.group() <= group);
        Self { entries: first..end, data, redelivery }
    }

    /// Number of the last group.
    pub(crate) fn last_group(&self) -> u64 {
        self.group_range().map_or(0, |(_, last)| self.data.number(last).0)
    }

    pub(crate) fn ack_group(&self, group: usize) -> AckGroup {
        let number = self.data.number(group);
        AckGroup { data: Arc::clone(&self.data), group, number, redelivery: self.redelivery }
    }

    pub(crate) fn parts(&self, group: usize) -> u32 {
        self.data.groups.parts(group).max(1)
    }

    pub(crate) fn offset_after(&self, group: usize) -> OffsetPoint {
        let after = self.data.groups.offset_after(group);
        after.unwrap_or_else(|| self.data.offset_before.clone())
    }

    pub(crate) fn offset_before(&self, group: usize) -> OffsetPoint {
        match group.checked_sub(1) {
            Some(previous) => self.offset_after(previous),
            None => self.data.offset_before.clone(),
        }
    }

    /// The text of a record's part.
    pub(crate) fn text(&self, range: Range<usize>) -> &[u8] {
        self.data.records.bytes.get(range).unwrap_or_default()
    }

    /// The identity of a record.
    pub(crate) fn identity(&self, entry: &Entry) -> EventId {
        self.origin(entry).identity(&self.data.lineage, entry.part)
    }

    /// What a record of this batch is about.
    #[expect(clippy::indexing_slicing, reason = "an entry names what its own batch holds")]
    pub(crate) fn subject(&self, entry: &Entry) -> &Subject {
        &self.data.records.shared.subjects[entry.subject as usize]
    }

    /// Where a record of this batch came from.
    #[expect(clippy::indexing_slicing, reason = "an entry names what its own batch holds")]
    pub(crate) fn origin(&self, entry: &Entry) -> RecordOrigin<'_> {
        RecordOrigin {
            table: &self.subject(entry).table,
            file: &self.data.records.shared.files[entry.file as usize],
            pos: entry.pos,
            ordinal: entry.ordinal,
            row: entry.row,
        }
    }

    fn entries(&self) -> &[Entry] {
        self.data.records.entries.get(self.entries.clone()).unwrap_or_default()
    }

    /// The first and the last group.
    fn group_range(&self) -> Option<(usize, usize)> {
        let entries = self.entries();
        Some((entries.first()?.group(), entries.last()?.group()))
    }
}

/// What a group's next record is, before its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordHead<'a> {
    pub(crate) kind: RecordKind,
    pub(crate) topic: &'a Arc<str>,
    pub(crate) origin: RecordOrigin<'a>,
}

/// The writing side of a batch.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    /// What was written; without memory of its own until there is a record.
    written: Buffer,
    offset_before: OffsetPoint,
    lineage: Arc<str>,
    ledger: SharedLedger,
    buffers: Buffers,
    /// Records of the group that is open.
    open_parts: u32,
    /// Where the open group's text begins, to take it back.
    open_bytes: usize,
    /// Whether the last point has all that an offset has now, but for the counts.
    placed: bool,
    /// What records go through; none where they stay as they are.
    chain: Option<Box<Chain>>,
    /// Why a record could not be transformed.
    failure: Option<String>,
}

impl BatchBuilder {
    /// Starts empty; `offset` is the offset with everything before the batch done.
    pub(crate) fn new(offset: OffsetPoint, lineage: Arc<str>, ledger: SharedLedger) -> Self {
        Self {
            written: Buffer::default(),
            offset_before: offset,
            lineage,
            ledger,
            buffers: Buffers::default(),
            open_parts: 0,
            open_bytes: 0,
            placed: false,
            chain: None,
            failure: None,
        }
    }

    /// Has all records go through `chain`.
    pub(crate) fn with_chain(mut self, chain: Option<Chain>) -> Self {
        self.chain = chain.map(Box::new);
        self
    }

    /// An empty one that shares this one's memory, log and ledger.
    pub(crate) fn sibling(&self) -> Self {
        let mut sibling =
            Self::new(self.offset_before.clone(), Arc::clone(&self.lineage), self.ledger.clone());
        sibling.buffers = self.buffers.clone();
        sibling
    }

    /// Appends one record to the open group. `write` appends JSON text: headers, which may be nothing and then stand
    /// for none, key and value. On an error nothing of the record stays.
    pub(crate) fn record<E>(
        &mut self,
        head: RecordHead<'_>,
        write: impl FnOnce(&mut RecordWriter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.have_memory();
        let start = self.written.bytes.len();
        let mut writer =
            RecordWriter { out: &mut self.written.bytes, headers_end: None, key_end: None };
        if let Err(error) = write(&mut writer) {
            self.written.bytes.truncate(start);
            return Err(error);
        }
        let mut headers_end = writer.headers_end.unwrap_or(start);
        let mut key_end = writer.key_end.unwrap_or(headers_end);
        let RecordHead { kind, topic, origin } = head;
        let mut topic = Cow::Borrowed(topic);
        if let Some(chain) = &mut self.chain {
            let part = |range: Range<usize>| self.written.bytes.get(range).unwrap_or_default();
            let text = RecordText {
                topic: &topic,
                headers: part(start..headers_end),
                key: part(headers_end..key_end),
                value: part(key_end..self.written.bytes.len()),
                envelope: matches!(kind, RecordKind::Data(_)),
            };
            let draft = match chain.apply(text) {
                Ok(draft) => draft,
                Err(failure) => {
                    self.failure.get_or_insert(failure);
                    None
                }
            };
            self.written.bytes.truncate(start);
            let Some(draft) = draft else { return Ok(()) };
            (headers_end, key_end) = draft.write(&mut self.written.bytes);
            if *draft.topic != **topic {
                topic = Cow::Owned(chain.topic(&draft.topic));
            }
        }
        self.written.entries.push(Entry {
            start,
            headers_end,
            key_end,
            end: self.written.bytes.len(),
            pos: origin.pos,
            ordinal: origin.ordinal,
            row: origin.row,
            subject: self.written.shared.subject(&topic, origin.table),
            file: self.written.shared.file(origin.file),
            group: index_of(self.written.groups.len()),
            part: self.open_parts,
            kind,
        });
        self.open_parts += 1;
        Ok(())
    }

    /// Takes a buffer unless there is one. Without one nothing is written: each group has a record.
    #[inline]
    fn have_memory(&mut self) {
        if self.written.bytes.capacity() == 0 {
            self.written = self.buffers.take();
        }
    }

    /// Why a record could not be transformed, once. Its group was taken back.
    pub(crate) const fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Closes the open group. A group without records is progress only.
    pub(crate) fn close_group(&mut self, offset_after: OffsetView<'_>) {
        if self.failure.is_some() {
            self.drop_group();
            return;
        }
        if self.open_parts == 0 {
            self.advance(offset_after);
            return;
        }
        self.written.groups.push(self.open_parts, offset_after);
        self.open_parts = 0;
        self.open_bytes = self.written.bytes.len();
        self.placed = true;
    }

    /// Closes the open group of another row of the same event, whose offset differs in the counts alone. `false` where that
    /// is not known to be so: then [`Self::close_group`] has to.
    #[inline]
    pub(crate) fn close_next_group(&mut self, restart: &RestartPoint) -> bool {
        let closed = self.placed
            && self.open_parts > 0
            && self.failure.is_none()
            && self.written.groups.push_counts(self.open_parts, restart);
        if closed {
            self.open_parts = 0;
            self.open_bytes = self.written.bytes.len();
        }
        closed
    }

    /// Another event: its offsets may differ from those before in more than counts.
    pub(crate) const fn stream_moves(&mut self) {
        self.placed = false;
    }

    /// Closes the open group of records that another builder will append.
    pub(crate) fn close_sibling_group(&mut self) {
        self.written.groups.push(self.open_parts, self.offset_before.view());
        self.open_parts = 0;
        self.open_bytes = self.written.bytes.len();
    }

    /// Takes the open group back.
    pub(crate) fn drop_group(&mut self) {
        let keep =
            self.written.entries.len() - usize::try_from(self.open_parts).unwrap_or_default();
        self.written.entries.truncate(keep);
        self.written.bytes.truncate(self.open_bytes);
        self.open_parts = 0;
    }

    /// Notes that the stream went on to `offset` without a record.
    pub(crate) fn advance(&mut self, offset: OffsetView<'_>) {
        if !self.written.groups.advance(offset) {
            self.offset_before = offset.to_point();
            let offset = self.offset_before.clone();
            self.ledger.update(|ledger| ledger.advance(offset));
        }
    }

    /// Takes all closed groups out, to be pasted, appended, [adopted](Self::adopt) or dropped later. The open group is
    /// dropped.
    pub(crate) fn take_all(&mut self) -> HeldRecords {
        self.drop_group();
        self.open_bytes = 0;
        HeldRecords(std::mem::take(&mut self.written))
    }

    /// Closes the open group where the counts of its unit alone are known; the rest comes when it is [adopted](Self::adopt).
    pub(crate) fn close_counted(&mut self, events: u64, event_row: u64, rows: u64) {
        let parts = std::mem::take(&mut self.open_parts);
        self.written.groups.groups.push(GroupEntry { parts, point: 0, events, event_row, rows });
        self.open_bytes = self.written.bytes.len();
    }

    /// Takes all closed groups out; `None` when there are none.
    pub(crate) fn take_closed(&mut self) -> Option<HeldRecords> {
        (self.written.groups.len() > 0).then(|| self.take_all())
    }

    /// Makes groups that were [closed by counts](Self::close_counted) and taken out the batch, which must be empty. Their
    /// unit is that of `place`, and `rows` of its rows come before them.
    pub(crate) fn adopt(&mut self, records: HeldRecords, rows: u64, place: OffsetView<'_>) {
        self.put(records);
        let Groups { points, groups } = &mut self.written.groups;
        points.push(place.to_point());
        for group in groups {
            group.rows += rows;
        }
    }

    /// Makes records that were taken out those of the batch, which has none.
    fn put(&mut self, HeldRecords(buffer): HeldRecords) {
        self.buffers.give_back(std::mem::replace(&mut self.written, buffer));
        self.open_bytes = self.written.bytes.len();
    }

    /// Appends groups of one record each that were taken out; `offset_after` is the offset after any of them. They
    /// become the batch as they are where it is empty.
    pub(crate) fn append(&mut self, held: HeldRecords, offset_after: OffsetView<'_>) {
        let groups = held.groups();
        if !self.written.entries.is_empty() || self.written.groups.len() > 0 {
            for group in 0..groups {
                self.paste(&held, group, offset_after);
            }
            self.buffers.give_back(held.0);
            return;
        }
        self.put(held);
        let written = &mut self.written.groups;
        written.points.clear();
        written.groups.clear();
        for _ in 0..groups {
            written.push(1, offset_after);
        }
    }

    /// Number of complete groups.
    pub(crate) const fn group_count(&self) -> usize {
        self.written.groups.len()
    }

    /// Appends one group of records that were taken out.
    pub(crate) fn paste(&mut self, held: &HeldRecords, group: usize, offset_after: OffsetView<'_>) {
        self.have_memory();
        let Buffer { bytes, entries, shared, groups } = &mut self.written;
        for entry in held.group(group) {
            let subject = held.0.shared.subjects.get(entry.subject as usize);
            let file = held.0.shared.files.get(entry.file as usize);
            let (Some(subject), Some(file)) = (subject, file) else { continue };
            let start = bytes.len();
            let text = held.0.bytes.get(entry.start..entry.end).unwrap_or_default();
            bytes.extend_from_slice(text);
            entries.push(Entry {
                start,
                headers_end: start + entry.headers().len(),
                key_end: start + entry.headers().len() + entry.key().len(),
                end: bytes.len(),
                subject: shared.subject(&subject.topic, &subject.table),
                file: shared.file(file),
                group: index_of(groups.len()),
                ..entry.clone()
            });
            self.open_parts += 1;
        }
        self.close_group(offset_after);
    }

    /// Gives the batch out and starts the next one; `None` when there is no complete group.
    pub(crate) fn finish(&mut self) -> Option<Batch> {
        let last = self.written.groups.offset_after(self.written.groups.len().checked_sub(1)?)?;
        let mut records = std::mem::take(&mut self.written);
        let groups = Arc::new(std::mem::take(&mut records.groups));
        let mut first = GroupNumber(0);
        self.ledger.update(|ledger| first = ledger.push(Arc::clone(&groups)));
        self.open_bytes = 0;
        let offset_before = std::mem::replace(&mut self.offset_before, last);
        let lineage = Arc::clone(&self.lineage);
        let entries = 0..records.entries.len();
        let data = BatchData {
            records,
            groups,
            lineage,
            first,
            offset_before,
            ledger: self.ledger.clone(),
            buffers: self.buffers.clone(),
        };
        Some(Batch { data: Arc::new(data), entries, redelivery: 0 })
    }

    /// The log that the records' identities name.
    /// Records from here on are of another log.
    pub(crate) fn change_log(&mut self, lineage: Arc<str>) {
        self.lineage = lineage;
    }

    pub(crate) const fn lineage(&self) -> &Arc<str> {
        &self.lineage
    }

    /// Records of the open group so far: the number that its next record gets.
    pub(crate) const fn open_parts(&self) -> u32 {
        self.open_parts
    }

    /// Records in closed groups and the open one.
    pub(crate) const fn len(&self) -> usize {
        self.written.entries.len()
    }

    /// Bytes of text so far.
    pub(crate) const fn size_bytes(&self) -> usize {
        self.written.bytes.len()
    }
}

/// Records that wait outside of any batch, in their groups.
#[derive(Debug)]
pub(crate) struct HeldRecords(Buffer);

impl HeldRecords {
    /// Number of groups.
    pub(crate) const fn groups(&self) -> usize {
        self.0.groups.len()
    }

    /// Bytes of text.
    pub(crate) const fn size_bytes(&self) -> usize {
        self.0.bytes.len()
    }

    /// The same in no more memory than it needs, for what waits long.
    pub(crate) fn compact(mut self) -> Self {
        self.0.bytes.shrink_to_fit();
        self.0.entries.shrink_to_fit();
        self
    }

    /// The entries of a group.
    fn group(&self, group: usize) -> &[Entry] {
        let entries = &self.0.entries;
        let first = entries.partition_point(|entry| entry.group() < group);
        let end = entries.partition_point(|entry| entry.group() <= group);
        entries.get(first..end).unwrap_or_default()
    }
}

/// Writes one record's text: headers, then key, then value.
#[derive(Debug)]
pub(crate) struct RecordWriter<'a> {
    out: &'a mut Vec<u8>,
    headers_end: Option<usize>,
    key_end: Option<usize>,
}

impl RecordWriter<'_> {
    /// The buffer, for the part that is being written.
    pub(crate) const fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// What was appended so far are the headers.
    pub(crate) const fn end_headers(&mut self) {
        self.headers_end = Some(self.out.len());
    }

    /// What was appended since the headers is the key.
    pub(crate) const fn end_key(&mut self) {
        self.key_end = Some(self.out.len());
    }
}
