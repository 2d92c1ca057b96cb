//! One change record as a consumer sees it: a view into its batch.

use std::ops::Range;

use holdfast_history::TableId;
use holdfast_history::offset::SourceOffset;

use crate::ack::AckGroup;
use crate::batch::{Batch, Entry};
use crate::format::debezium_json::Op;
use crate::format::json::write_string;
use crate::identity::EventId;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// A change of a row or a truncated table.
    Data(Op),
    /// The null value after a delete.
    Tombstone,
    /// A change of the schema, on the topic named as the prefix.
    SchemaChange,
    /// A sign of life with the stream's offset.
    Heartbeat,
    /// The BEGIN or END of a transaction.
    Transaction,
}

/// One record of a batch.
#[derive(Debug, Clone, Copy)]
pub struct ChangeRecord<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) entry: &'a Entry,
}

impl<'a> ChangeRecord<'a> {
    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        self.entry.kind
    }

    /// The topic it belongs to.
    #[must_use]
    pub fn topic(&self) -> &'a str {
        &self.batch.subject(self.entry).topic
    }

    /// The table it is about; both names are empty for records of no table.
    #[must_use]
    pub fn table(&self) -> &'a TableId {
        &self.batch.subject(self.entry).table
    }

    /// The headers, a JSON object.
    #[must_use]
    pub fn headers(&self) -> &'a [u8] {
        let text = self.text(self.entry.headers());
        if text.is_empty() { b"{}" } else { text }
    }

    /// The key as JSON; `null` for a table without a key.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        self.text(self.entry.key())
    }

    /// The value as JSON; `null` for a tombstone.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.text(self.entry.value())
    }

    /// Appends the record as one line without its end: `{"topic":…,"headers":{…},"key":…,"value":…}`.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"topic\":");
        write_string(self.topic(), out);
        out.extend_from_slice(b",\"headers\":");
        out.extend_from_slice(self.headers());
        out.extend_from_slice(b",\"key\":");
        out.extend_from_slice(self.key());
        out.extend_from_slice(b",\"value\":");
        out.extend_from_slice(self.value());
        out.push(b'}');
    }

    /// Which step of which log it came from.
    #[must_use]
    pub fn identity(&self) -> EventId {
        self.batch.identity(self.entry)
    }

    /// The offset to store for a consumer that keeps offsets itself and stores that of the last record it is done
    /// with. Every part of a group but the last carries the offset *before* the group, so that storing it brings the
    /// whole group again.
    #[must_use]
    pub fn offset(&self) -> SourceOffset {
        let group = self.entry.group();
        let point = if self.is_last_of_group() {
            self.batch.offset_after(group)
        } else {
            self.batch.offset_before(group)
        };
        point.to_source_offset()
    }

    /// A handle that acknowledges all parts of the record's group, or gives them back.
    #[must_use]
    pub fn ack_group(&self) -> AckGroup {
        self.batch.ack_group(self.entry.group())
    }

    /// Acknowledges this record alone: the group counts when all its parts are.
    pub fn acknowledge(&self) {
        self.ack_group().acknowledge_part(self.entry.part);
    }

    /// Which part of its group it is, from 0.
    #[must_use]
    pub const fn part(&self) -> u32 {
        self.entry.part
    }

    /// Number of parts of its group.
    #[must_use]
    pub fn parts(&self) -> u32 {
        self.batch.parts(self.entry.group())
    }

    /// Whether it is the last part of its group: where a consumer may cut.
    #[must_use]
    pub fn is_last_of_group(&self) -> bool {
        self.part() + 1 >= self.parts()
    }

    fn text(&self, range: Range<usize>) -> &'a [u8] {
        self.batch.text(range)
    }
}
