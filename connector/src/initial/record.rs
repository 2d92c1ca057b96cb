//! A row of a snapshot as its record.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_snapshot::SnapshotRow;

use crate::assemble::{TableContext, VERSION, write_identity_header, write_key};
use crate::batch::{BatchBuilder, RecordHead, RecordOrigin};
use crate::config::Config;
use crate::convert::Origin;
use crate::error::{ConvertFailed, Error};
use crate::format::connect_schema::FixedSchemas;
use crate::format::debezium_json::{self as json, EnvelopeEnd, Op, SourceInfo};
use crate::record::RecordKind;
use crate::source::now_ns;

/// What all records of one snapshot share.
#[derive(Clone)]
pub(super) struct RowWriter {
    pub(super) config: Arc<Config>,
    /// The position that the records name.
    pub(super) file: Arc<str>,
    pub(super) pos: u64,
    pub(super) schemas: Arc<FixedSchemas>,
}

/// A vector of values whose memory serves row after row.
#[derive(Default)]
pub(super) struct Scratch(Vec<Value<'static>>);

impl RowWriter {
    /// The `source` block of a record of this snapshot.
    pub(super) fn source<'a>(
        &'a self,
        marker: &'static str,
        db: &'a str,
        table: Option<&'a str>,
    ) -> SourceInfo<'a> {
        SourceInfo {
            version: VERSION,
            connector: self.config.connector.connector_name(),
            name: &self.config.topic_prefix,
            ts_us: now_ns().div_euclid(1_000_000) * 1000,
            snapshot: Some(marker),
            db,
            table,
            server_id: 0,
            gtid: None,
            file: &self.file,
            pos: self.pos,
            row: 0,
            thread: None,
            query: None,
        }
    }

    /// What follows the image in records of a table with this marker.
    pub(super) fn end(&self, context: &TableContext, marker: &'static str) -> EnvelopeEnd {
        let source = self.source(marker, &context.id.database, Some(&context.id.table));
        EnvelopeEnd::new(&source, now_ns())
    }

    /// Appends a row's record to the open group. `number` counts the table's rows from 0.
    pub(super) fn write(
        &self,
        batch: &mut BatchBuilder,
        context: &TableContext,
        row: SnapshotRow<'_>,
        number: u64,
        end: &EnvelopeEnd,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let mut values: Vec<Value<'_>> = std::mem::take(&mut scratch.0);
        row.values(&mut values)?;
        let image = |column: usize| values.get(column);
        let head = RecordHead {
            kind: RecordKind::Data(Op::Read),
            topic: &context.topic,
            origin: RecordOrigin {
                table: &context.id,
                file: &self.file,
                pos: self.pos,
                ordinal: 0,
                row: number,
            },
        };
        let identity =
            self.config.identity_header.then(|| head.origin.identity(batch.lineage(), 0));
        let text_header = &self.schemas.text_header;
        batch
            .record(head, |record| {
                write_identity_header(record, identity.as_ref(), text_header);
                write_key(record, context, image, Origin::Snapshot)?;
                let out = record.out();
                context.schemas.value.begin(out);
                json::begin_before(out);
                out.extend_from_slice(b"null");
                json::begin_after(out);
                context.converter.write_row(image, Origin::Snapshot, out)?;
                end.write(0, None, Op::Read, out);
                context.schemas.value.end(out);
                Ok(())
            })
            .map_err(|source| {
                Error::Convert(Box::new(ConvertFailed {
                    table: (*context.id).clone(),
                    file: "the snapshot".to_owned(),
                    position: self.pos,
                    source,
                }))
            })?;
        scratch.0 = emptied(values);
        check_transforms(batch)
    }
}

/// The failure of a transform, if there was one.
pub(super) fn check_transforms(batch: &mut BatchBuilder) -> Result<(), Error> {
    match batch.take_failure() {
        Some(failure) => Err(Error::Transform { failure, place: "the snapshot".to_owned() }),
        None => Ok(()),
    }
}

/// The same memory, for values of another row. Collecting from a vector's own iterator keeps its allocation.
fn emptied(mut values: Vec<Value<'_>>) -> Vec<Value<'static>> {
    values.clear();
    values.into_iter().map(|_| Value::Null).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_values_is_kept() {
        let text = String::from("x");
        let mut values = vec![Value::Bytes(text.as_bytes()); 100];
        values.truncate(7);
        let (at, capacity) = (values.as_ptr().addr(), values.capacity());
        let empty = emptied(values);
        assert_eq!((empty.as_ptr().addr(), empty.capacity(), empty.len()), (at, capacity, 0));
    }
}
