//! One row to its records.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::row::{Row, RowError, RowImage, RowReader, Side};
use holdfast_history::TableId;

use super::context::TableContext;
use crate::batch::{BatchBuilder, RecordHead, RecordOrigin, RecordWriter};
use crate::config::Config;
use crate::convert::{ConvertError, Origin};
use crate::error::{ConvertFailed, Error, RowFailure};
use crate::format::connect_schema::{FixedSchemas, SchemaText};
use crate::format::debezium_json::{self as json, EnvelopeEnd, Op, TransactionBlock};
use crate::format::json::write_string;
use crate::identity::EventId;
use crate::record::RecordKind;
use crate::transaction::Transaction;

/// Writes the records of rows into a batch.
pub(super) struct Renderer<'a> {
    pub(super) config: &'a Config,
    pub(super) schemas: &'a FixedSchemas,
    /// Name of the log.
    pub(super) lineage: &'a Arc<str>,
    /// What all rows of the event share.
    pub(super) end: &'a EnvelopeEnd,
    /// The counts of the transaction, where records carry them.
    pub(super) transaction: Option<&'a mut Transaction>,
    pub(super) batch: &'a mut BatchBuilder,
}

/// Where the rows of an event came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsPlace<'c> {
    pub(super) file: &'c Arc<str>,
    pub(super) position: u64,
    /// Number of the rows event in its unit.
    pub(super) ordinal: u64,
}

/// One row of an event on its way to its records.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowChange<'c, 'r> {
    pub(super) place: RowsPlace<'c>,
    pub(super) context: &'c Arc<TableContext>,
    pub(super) kind: RowsKind,
    pub(super) row: &'c Row<'r>,
    /// Zero-based row in the event.
    pub(super) index: u64,
}

impl<'c> RowChange<'c, '_> {
    fn origin(&self) -> RecordOrigin<'c> {
        let RowsPlace { file, position, ordinal } = self.place;
        RecordOrigin { table: &self.context.id, file, pos: position, ordinal, row: self.index }
    }
}

impl Renderer<'_> {
    /// Writes the records of a row into the open group. An update that changes nothing has none where such are left out.
    pub(super) fn row(&mut self, change: &RowChange<'_, '_>) -> Result<(), ConvertError> {
        let RowChange { context, kind, row, .. } = *change;
        let (before, after) = (&row.before, &row.after);
        match kind {
            RowsKind::Write => self.record(change, Op::Create, None, Some(after), after, None),
            RowsKind::Delete => self.delete(change, before, None),
            RowsKind::Update | RowsKind::PartialUpdate if context.key_changed(kind, row) => {
                self.delete(change, before, Some(("__debezium.newkey", after)))?;
                let oldkey = Some(("__debezium.oldkey", before));
                self.record(change, Op::Create, None, Some(after), after, oldkey)
            }
            RowsKind::Update if self.config.events.skip_unchanged && context.unchanged(row) => {
                Ok(())
            }
            RowsKind::Update | RowsKind::PartialUpdate => {
                self.record(change, Op::Update, Some(before), Some(after), after, None)
            }
        }
    }

    fn delete(
        &mut self,
        change: &RowChange<'_, '_>,
        before: &RowImage<'_>,
        header: Option<(&'static str, &RowImage<'_>)>,
    ) -> Result<(), ConvertError> {
        self.record(change, Op::Delete, Some(before), None, before, header)?;
        if !self.config.events.tombstones {
            return Ok(());
        }
        let context = change.context;
        let origin = change.origin();
        let identity = self.identity_of(origin);
        let head = RecordHead { kind: RecordKind::Tombstone, topic: &context.topic, origin };
        let text_header = &self.schemas.text_header;
        self.batch.record(head, |record| {
            write_headers(record, context, header, identity.as_ref(), text_header)?;
            write_key(record, context, |column| before.get_ref(column), Origin::Stream)?;
            json::write_tombstone(record.out());
            Ok(())
        })
    }

    fn record(
        &mut self,
        change: &RowChange<'_, '_>,
        op: Op,
        before: Option<&RowImage<'_>>,
        after: Option<&RowImage<'_>>,
        key: &RowImage<'_>,
        header: Option<(&'static str, &RowImage<'_>)>,
    ) -> Result<(), ConvertError> {
        let context = change.context;
        let origin = change.origin();
        let identity = self.identity_of(origin);
        let head = RecordHead { kind: RecordKind::Data(op), topic: &context.topic, origin };
        let row = u32::try_from(change.index).unwrap_or(u32::MAX);
        let block = self.transaction.as_mut().map(|transaction| transaction.next(&context.id));
        let block = block.as_ref().and_then(|(total_order, data_collection_order)| {
            self.transaction.as_ref().map(|transaction| TransactionBlock {
                id: transaction.id(),
                total_order: *total_order,
                data_collection_order: *data_collection_order,
            })
        });
        let end = self.end;
        let text_header = &self.schemas.text_header;
        self.batch.record(head, |record| {
            write_headers(record, context, header, identity.as_ref(), text_header)?;
            write_key(record, context, |column| key.get_ref(column), Origin::Stream)?;
            let out = record.out();
            context.schemas.value.begin(out);
            json::begin_before(out);
            write_image(context, before, out)?;
            json::begin_after(out);
            write_image(context, after, out)?;
            end.write(row, block.as_ref(), op, out);
            context.schemas.value.end(out);
            Ok(())
        })
    }

    /// The identity of the next record for the headers, where it was asked for.
    fn identity_of(&self, origin: RecordOrigin<'_>) -> Option<EventId> {
        let part = self.batch.open_parts();
        self.config.identity_header.then(|| origin.identity(self.lineage, part))
    }
}

/// Begins to read the rows of an event. `place`: its file and position.
pub(super) fn row_reader<'a, 't>(
    place: (&str, u64),
    rows: &RowsEvent<'a>,
    map: &'t TableMap,
) -> Result<RowReader<'a, 't>, Error> {
    rows.rows(map).map_err(|error| {
        row_error(place, map, None, RowError { row: 0, side: Side::After, column: None, error })
    })
}

/// The error for a row that does not decode. `place`: file and position of its event.
pub(super) fn row_error(
    (file, position): (&str, u64),
    map: &TableMap,
    context: Option<&TableContext>,
    error: RowError,
) -> Error {
    let column = error.column.map(|index| {
        let name = context
            .and_then(|context| context.table.columns.get(index))
            .map(|column| column.name.as_str());
        match name {
            Some(name) => name.to_owned(),
            None => format!("number {}", index + 1),
        }
    });
    Error::Row(Box::new(RowFailure {
        table: TableId::new(map.database(), map.table()),
        row: error.row,
        column,
        file: file.to_owned(),
        position,
        error: error.error,
    }))
}

/// The error for a row with a value that does not convert.
pub(super) fn convert_error(change: &RowChange<'_, '_>, source: ConvertError) -> Error {
    Error::Convert(Box::new(ConvertFailed {
        table: (*change.context.id).clone(),
        file: change.place.file.to_string(),
        position: change.place.position,
        source,
    }))
}

/// Appends the identity as the only header, and ends the headers.
pub(crate) fn write_identity_header(
    record: &mut RecordWriter<'_>,
    identity: Option<&EventId>,
    schema: &SchemaText,
) {
    if let Some(identity) = identity {
        let out = record.out();
        out.push(b'{');
        write_identity(identity, schema, out);
        out.push(b'}');
    }
    record.end_headers();
}

/// Appends the identity as a member of the headers.
fn write_identity(identity: &EventId, schema: &SchemaText, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"__holdfast.id\":");
    schema.begin(out);
    write_string(&identity.to_string(), out);
    schema.end(out);
}

fn write_headers(
    record: &mut RecordWriter<'_>,
    context: &TableContext,
    header: Option<(&'static str, &RowImage<'_>)>,
    identity: Option<&EventId>,
    text_header: &SchemaText,
) -> Result<(), ConvertError> {
    let Some((name, image)) = header else {
        write_identity_header(record, identity, text_header);
        return Ok(());
    };
    let out = record.out();
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    context.schemas.key_header.begin(out);
    context.converter.write_header_key(|column| image.get_ref(column), Origin::Stream, out)?;
    context.schemas.key_header.end(out);
    if let Some(identity) = identity {
        out.push(b',');
        write_identity(identity, text_header, out);
    }
    out.push(b'}');
    record.end_headers();
    Ok(())
}

/// Appends the key, `null` where the table has none.
pub(crate) fn write_key<'a>(
    record: &mut RecordWriter<'_>,
    context: &TableContext,
    image: impl Fn(usize) -> Option<&'a Value<'a>>,
    origin: Origin,
) -> Result<(), ConvertError> {
    let out = record.out();
    context.schemas.key.begin(out);
    if !context.converter.write_key(image, origin, out)? {
        out.extend_from_slice(b"null");
    }
    context.schemas.key.end(out);
    record.end_key();
    Ok(())
}

fn write_image(
    context: &TableContext,
    image: Option<&RowImage<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    match image {
        Some(image) => {
            context.converter.write_row(|column| image.get_ref(column), Origin::Stream, out)
        }
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}
