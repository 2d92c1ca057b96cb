//! Batches: change records in delivery order, whole ack groups only.
//!
//! A [`Batch`] owns one buffer that holds the JSON text of all its records; a record is a view into it and costs no
//! allocation of its own. [`BatchBuilder`] is the writing side: a group is opened, its records are appended, and it is
//! closed with the offset after it. Nothing of a group is visible before it is closed, and the ledger learns of a
//! batch's groups when the batch is finished, all at once and in order.

use std::ops::Range;
use std::sync::Arc;

use holdfast_history::TableId;

use crate::ack::{AckGroup, GroupNumber, SharedLedger};
use crate::identity::EventId;
use crate::offset::OffsetPoint;
use crate::record::{ChangeRecord, RecordKind};

/// Where a record came from, as its identity needs it.
#[derive(Debug, Clone)]
pub(crate) struct RecordOrigin {
    pub(crate) table: Arc<TableId>,
    pub(crate) file: Arc<str>,
    pub(crate) pos: u64,
    pub(crate) ordinal: u64,
    pub(crate) row: u64,
}

impl RecordOrigin {
    pub(crate) fn identity(&self, lineage: &Arc<str>, part: u32) -> EventId {
        EventId {
            lineage: Arc::clone(lineage),
            table: Arc::clone(&self.table),
            file: Arc::clone(&self.file),
            pos: self.pos,
            ordinal: self.ordinal,
            row: self.row,
            part,
        }
    }
}

/// One record's place in its batch.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: RecordKind,
    pub(crate) topic: Arc<str>,
    pub(crate) headers: Range<usize>,
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
    pub(crate) origin: RecordOrigin,
    pub(crate) part: u32,
    pub(crate) group: usize,
}

#[derive(Debug)]
struct GroupEntry {
    parts: u32,
    offset_after: OffsetPoint,
}

/// Records in delivery order, whole ack groups only.
#[derive(Debug)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lineage: Arc<str>,
    entries: Vec<Entry>,
    groups: Vec<GroupEntry>,
    /// Number of the first group.
    first: GroupNumber,
    offset_before: OffsetPoint,
    ledger: SharedLedger,
}

impl Batch {
    /// The records, in order.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = ChangeRecord<'_>> {
        self.entries.iter().map(|entry| ChangeRecord { batch: self, entry })
    }

    /// Acknowledges every record of the batch.
    pub fn acknowledge(&self) {
        if let Some(last) = self.groups.len().checked_sub(1) {
            self.ledger.update(|ledger| ledger.acknowledge_range(self.first, self.number(last)));
        }
    }

    /// Number of records, at least 1.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no record; the engine gives out no such batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of JSON text in the batch.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn ack_group(&self, group: usize) -> AckGroup {
        AckGroup { ledger: self.ledger.clone(), number: self.number(group) }
    }

    pub(crate) fn parts(&self, group: usize) -> u32 {
        self.groups.get(group).map_or(1, |group| group.parts)
    }

    pub(crate) fn offset_after(&self, group: usize) -> &OffsetPoint {
        self.groups.get(group).map_or(&self.offset_before, |group| &group.offset_after)
    }

    pub(crate) fn offset_before(&self, group: usize) -> &OffsetPoint {
        group.checked_sub(1).map_or(&self.offset_before, |previous| self.offset_after(previous))
    }

    const fn number(&self, group: usize) -> GroupNumber {
        GroupNumber(self.first.0 + group as u64)
    }
}

/// What a group's next record is, before its text.
#[derive(Debug)]
pub(crate) struct RecordHead {
    pub(crate) kind: RecordKind,
    pub(crate) topic: Arc<str>,
    pub(crate) origin: RecordOrigin,
}

/// The writing side of a batch.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    groups: Vec<GroupEntry>,
    offset_before: OffsetPoint,
    lineage: Arc<str>,
    ledger: SharedLedger,
    /// Records of the group that is open.
    open_parts: u32,
    /// Where the open group's text begins, to take it back.
    open_bytes: usize,
}

impl BatchBuilder {
    /// Starts empty; `offset` is the offset with everything before the batch done.
    pub(crate) const fn new(offset: OffsetPoint, lineage: Arc<str>, ledger: SharedLedger) -> Self {
        Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            groups: Vec::new(),
            offset_before: offset,
            lineage,
            ledger,
            open_parts: 0,
            open_bytes: 0,
        }
    }

    /// Appends one record to the open group. The three writers append JSON text; headers may append nothing, which
    /// stands for none. On an error nothing of the record stays.
    pub(crate) fn record<E>(
        &mut self,
        head: RecordHead,
        write: impl FnOnce(&mut RecordWriter<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let mut writer = RecordWriter { out: &mut self.bytes, headers_end: None, key_end: None };
        if let Err(error) = write(&mut writer) {
            self.bytes.truncate(start);
            return Err(error);
        }
        let headers_end = writer.headers_end.unwrap_or(start);
        let key_end = writer.key_end.unwrap_or(headers_end);
        let RecordHead { kind, topic, origin } = head;
        self.entries.push(Entry {
            kind,
            topic,
            headers: start..headers_end,
            key: headers_end..key_end,
            value: key_end..self.bytes.len(),
            origin,
            part: self.open_parts,
            group: self.groups.len(),
        });
        self.open_parts += 1;
        Ok(())
    }

    /// Closes the open group. A group without records is progress only.
    pub(crate) fn close_group(&mut self, offset_after: OffsetPoint) {
        if self.open_parts == 0 {
            self.advance(offset_after);
            return;
        }
        self.groups.push(GroupEntry { parts: self.open_parts, offset_after });
        self.open_parts = 0;
        self.open_bytes = self.bytes.len();
    }

    /// Takes the open group back.
    pub(crate) fn drop_group(&mut self) {
        let keep = self.entries.len() - usize::try_from(self.open_parts).unwrap_or_default();
        self.entries.truncate(keep);
        self.bytes.truncate(self.open_bytes);
        self.open_parts = 0;
    }

    /// Notes that the stream went on to `offset` without a record.
    pub(crate) fn advance(&mut self, offset: OffsetPoint) {
        match self.groups.last_mut() {
            Some(last) => last.offset_after = offset,
            None => {
                self.offset_before = offset.clone();
                self.ledger.update(|ledger| ledger.advance(offset));
            }
        }
    }

    /// Takes all records out, closed groups and the open one, to be pasted or dropped later.
    pub(crate) fn take_all(&mut self) -> HeldRecords {
        self.open_parts = 0;
        self.open_bytes = 0;
        let groups = std::mem::take(&mut self.groups).len();
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain(|entry| entry.group < groups);
        HeldRecords { bytes: std::mem::take(&mut self.bytes), entries, groups }
    }

    /// Appends one group of records that were taken out.
    pub(crate) fn paste(&mut self, held: &HeldRecords, group: usize, offset_after: OffsetPoint) {
        for entry in held.entries.iter().filter(|entry| entry.group == group) {
            let mut copy = |range: &Range<usize>| {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(held.bytes.get(range.clone()).unwrap_or_default());
                start..self.bytes.len()
            };
            let (headers, key, value) =
                (copy(&entry.headers), copy(&entry.key), copy(&entry.value));
            self.entries.push(Entry {
                kind: entry.kind,
                topic: Arc::clone(&entry.topic),
                headers,
                key,
                value,
                origin: entry.origin.clone(),
                part: entry.part,
                group: self.groups.len(),
            });
            self.open_parts += 1;
        }
        self.close_group(offset_after);
    }

    /// Gives the batch out and starts the next one; `None` when there is no complete group.
    pub(crate) fn finish(&mut self) -> Option<Batch> {
        let last = self.groups.last()?.offset_after.clone();
        let groups = std::mem::take(&mut self.groups);
        let capacity = self.bytes.len();
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(capacity));
        let entry_count = self.entries.len();
        let entries = std::mem::replace(&mut self.entries, Vec::with_capacity(entry_count));
        let mut first = GroupNumber(0);
        self.ledger.update(|ledger| {
            first = ledger.next();
            for group in &groups {
                ledger.push(group.parts, group.offset_after.clone());
            }
        });
        self.open_bytes = 0;
        let offset_before = std::mem::replace(&mut self.offset_before, last);
        let lineage = Arc::clone(&self.lineage);
        Some(Batch {
            bytes,
            lineage,
            entries,
            groups,
            first,
            offset_before,
            ledger: self.ledger.clone(),
        })
    }

    /// The log that the records' identities name.
    pub(crate) const fn lineage(&self) -> &Arc<str> {
        &self.lineage
    }

    /// Records of the open group so far: the number that its next record gets.
    pub(crate) const fn open_parts(&self) -> u32 {
        self.open_parts
    }

    /// Records in closed groups and the open one.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of text so far.
    pub(crate) const fn size_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Records that wait outside of any batch, in their groups.
#[derive(Debug)]
pub(crate) struct HeldRecords {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    groups: usize,
}

impl HeldRecords {
    /// Number of groups.
    pub(crate) const fn groups(&self) -> usize {
        self.groups
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
