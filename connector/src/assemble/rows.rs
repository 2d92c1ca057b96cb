//! Rows events to change records and their groups.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_binlog::Value;
use holdfast_binlog::event::Event;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::row::{Row, RowError, RowImage, RowReader, RowSink, Side};
use holdfast_binlog::txn::TxnTracker;
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::wire::DecodeError;
use holdfast_history::{ShapeMismatch, Table, TableId, cross_check};

use super::context::{Resolved, TableContext};
use super::{Assembler, VERSION, Why};
use crate::batch::{RecordHead, RecordOrigin, RecordWriter};
use crate::config::SkippedOperations;
use crate::convert::{ConvertError, FailureMode, Origin, UniformTypes};
use crate::error::{ConvertFailed, Error, Mismatch, RowFailure};
use crate::format::connect_schema::SchemaText;
use crate::format::debezium_json::{self as json, Op, SourceInfo, TransactionBlock};
use crate::format::json::write_string;
use crate::identity::EventId;
use crate::record::RecordKind;

impl Assembler {
    pub(super) fn rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        now_ns: i64,
    ) -> Result<(), Error> {
        self.tracker.rows_event();
        if self.is_undecodable(event, rows, map)? {
            return Ok(());
        }
        if self.filtered || self.passing {
            return self.count_rows(event, rows, map);
        }
        let context = match self.resolve(map)? {
            Resolved::Captured(context) => context,
            Resolved::Ignored => return self.count_rows(event, rows, map),
            Resolved::Unknown(table) => {
                let error = Error::UnknownTable {
                    table,
                    file: event.file.to_owned(),
                    position: event.position,
                };
                let mode = self.config.events.on_unknown_table;
                return self.refuse(event, rows, map, (mode, Why::Definition), error);
            }
            Resolved::Untold(table) => {
                let error = Error::NoMetadata {
                    table,
                    file: event.file.to_owned(),
                    position: event.position,
                };
                let mode = self.config.events.on_unknown_table;
                return self.refuse(event, rows, map, (mode, Why::Definition), error);
            }
            Resolved::Unfit(context, mismatch) => {
                // Another number of columns ends Debezium whatever its settings say.
                let mode = match mismatch.counts {
                    (definition, log) if definition == log => self.config.events.on_unknown_table,
                    _ => FailureMode::Fail,
                };
                let error = self.mismatch(event, map, &context, &mismatch);
                return self.refuse(event, rows, map, (mode, Why::Definition), error);
            }
        };
        if self.verifies(map, None) {
            return self.count_rows(event, rows, map);
        }
        match missing_column(rows, &context.table) {
            Some(Missing::Column(column)) => {
                let error = Error::PartialImage {
                    table: (*context.id).clone(),
                    column: column_name(&context, column),
                    file: event.file.to_owned(),
                    position: event.position,
                };
                let mode = self.config.events.on_processing_failure;
                return self.refuse(event, rows, map, (mode, Why::Value), error);
            }
            Some(Missing::Computed(column))
                if !context.computed_told.swap(true, Ordering::Relaxed) =>
            {
                let column = column_name(&context, column);
                tracing::warn!(
                    table = %context.id,
                    column,
                    "the log does not have the values of generated columns in all images: they are null there"
                );
            }
            Some(Missing::Computed(_)) | None => {}
        }
        let kind = rows.kind();
        let skipped_operation = is_skipped(self.config.events.skipped, kind);
        self.render_end(event, &context, now_ns);
        let mut reader = self.reader(event, rows, map)?;
        let mut row = std::mem::take(&mut self.row).recycle();
        let mut index = 0;
        while reader
            .read(&mut row)
            .map_err(|error| self.row_error(event, map, Some(&context), error))?
        {
            let skips = self.tracker.skips_row();
            self.tracker.row_done();
            if skips {
                if let Some(transaction) = &mut self.transaction
                    && !skipped_operation
                {
                    let records = if context.key_changed(kind, &row) { 2 } else { 1 };
                    transaction.skip(&context.id, records);
                }
            } else if !skipped_operation {
                let change = RowChange { event, context: &context, kind, row: &row, index };
                self.deliver(&change)?;
            }
            index += 1;
        }
        self.row = row.recycle();
        Ok(())
    }

    pub(super) fn reader<'a, 't>(
        &self,
        event: &Event<'_>,
        rows: &RowsEvent<'a>,
        map: &'t TableMap,
    ) -> Result<RowReader<'a, 't>, Error> {
        rows.rows(map).map_err(|error| {
            self.row_error(
                event,
                map,
                None,
                RowError { row: 0, side: Side::After, column: None, error },
            )
        })
    }

    /// Counts rows that are not delivered.
    fn count_rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Result<(), Error> {
        let mut reader = self.reader(event, rows, map)?;
        while reader
            .read_into(&mut Nothing)
            .map_err(|error| self.row_error(event, map, None, error))?
        {
            self.tracker.row_done();
        }
        Ok(())
    }

    /// Rows that can't be delivered. What an earlier run did needs no definition and is only counted; the first row after
    /// it is the error.
    fn refuse(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        (mode, why): (FailureMode, Why),
        error: Error,
    ) -> Result<(), Error> {
        let mut error = Some(error);
        let mut reader = self.reader(event, rows, map)?;
        while reader
            .read_into(&mut Nothing)
            .map_err(|error| self.row_error(event, map, None, error))?
        {
            if !self.tracker.skips_row()
                && let Some(error) = error.take()
            {
                if self.verification.is_some() {
                    self.verifies(map, Some(error));
                } else {
                    self.leave_out(mode, why, error)?;
                }
            }
            self.tracker.row_done();
        }
        Ok(())
    }

    fn mismatch(
        &self,
        event: &Event<'_>,
        map: &TableMap,
        context: &TableContext,
        mismatch: &ShapeMismatch,
    ) -> Error {
        Error::Mismatch(Box::new(Mismatch {
            table: (*context.id).clone(),
            file: event.file.to_owned(),
            position: event.position,
            mismatch: mismatch.clone(),
            wire: cross_check::wire_shape(map, self.dialect()),
            model: cross_check::definition_shape(&context.table),
            origin: self.origins.of(&context.table.id),
        }))
    }

    /// Renders what all rows of an event share.
    fn render_end(&mut self, event: &Event<'_>, context: &TableContext, now_ns: i64) {
        let gtid = self.tracker.current_gtid();
        if gtid != self.gtid_of_text {
            use std::fmt::Write as _;
            self.gtid_text.clear();
            if let Some(gtid) = gtid {
                // Writing to a String does not fail.
                let _ = write!(self.gtid_text, "{gtid}");
            }
            self.gtid_of_text = gtid;
        }
        let source = SourceInfo {
            version: VERSION,
            connector: self.config.connector.connector_name(),
            name: &self.config.topic_prefix,
            ts_us: self.event_us,
            snapshot: self.config.streamed_mark(),
            db: &context.id.database,
            table: Some(&context.id.table),
            server_id: self.server_id,
            gtid: gtid.is_some().then_some(&self.gtid_text),
            file: self.tracker.file(),
            pos: event.position,
            row: 0,
            thread: self.thread,
            query: self.query.as_deref(),
        };
        self.envelope_end.render(&source, now_ns);
    }

    /// One row to its records, as one group.
    fn deliver(&mut self, change: &RowChange<'_, '_>) -> Result<(), Error> {
        let RowChange { context, kind, row, .. } = *change;
        if kind == RowsKind::PartialUpdate {
            let style = match self.config.conversion.uniform {
                UniformTypes::Off => JsonStyle::Debezium,
                UniformTypes::MySql | UniformTypes::MariaDb => JsonStyle::Server,
            };
            let documents = match patched_documents(row, style) {
                Ok(documents) => documents,
                Err((column, error)) => {
                    let error = RowError { row: 0, side: Side::After, column: Some(column), error };
                    let error = self.row_error_of(change, error);
                    return self.value_failed(error);
                }
            };
            let mut whole: Row<'_> = row.clone();
            for document in &documents {
                whole.value(Side::After, document.column, Value::JsonText(&document.text));
            }
            return self.deliver(&RowChange { row: &whole, kind: RowsKind::Update, ..*change });
        }
        let (before, after) = (&row.before, &row.after);
        let result = match kind {
            RowsKind::Write => self.record(change, Op::Create, None, Some(after), after, None),
            RowsKind::Delete => self.delete(change, before, None),
            RowsKind::Update | RowsKind::PartialUpdate if context.key_changed(kind, row) => {
                self.delete(change, before, Some(("__debezium.newkey", after))).and_then(|()| {
                    let oldkey = Some(("__debezium.oldkey", before));
                    self.record(change, Op::Create, None, Some(after), after, oldkey)
                })
            }
            RowsKind::Update if self.config.events.skip_unchanged && context.unchanged(row) => {
                Ok(())
            }
            RowsKind::Update | RowsKind::PartialUpdate => {
                self.record(change, Op::Update, Some(before), Some(after), after, None)
            }
        };
        match result {
            Ok(()) => self.close_group(),
            Err(source) => {
                self.batch.drop_group();
                self.convert_failed(change, source)?;
            }
        }
        Ok(())
    }

    fn convert_failed(
        &mut self,
        change: &RowChange<'_, '_>,
        source: ConvertError,
    ) -> Result<(), Error> {
        let error = Error::Convert(Box::new(ConvertFailed {
            table: (*change.context.id).clone(),
            file: change.event.file.to_owned(),
            position: change.event.position,
            source,
        }));
        self.value_failed(error)
    }

    /// A row with a value that can't be written.
    fn value_failed(&mut self, error: Error) -> Result<(), Error> {
        self.leave_out(self.config.events.on_processing_failure, Why::Value, error)?;
        self.note_progress();
        Ok(())
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
        let origin = change.origin(&self.tracker);
        let identity = self.identity_of(origin, self.batch.open_parts());
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
        let origin = change.origin(&self.tracker);
        let identity = self.identity_of(origin, self.batch.open_parts());
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
        let end = &self.envelope_end;
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

    fn row_error_of(&self, change: &RowChange<'_, '_>, error: RowError) -> Error {
        let name = error.column.and_then(|column| change.context.table.columns.get(column));
        Error::Row(Box::new(RowFailure {
            table: (*change.context.id).clone(),
            row: usize::try_from(change.index).unwrap_or(usize::MAX),
            column: name.map(|column| column.name.clone()),
            file: change.event.file.to_owned(),
            position: change.event.position,
            error: error.error,
        }))
    }

    pub(super) fn row_error(
        &self,
        event: &Event<'_>,
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
            file: event.file.to_owned(),
            position: event.position,
            error: error.error,
        }))
    }
}

/// One row of an event on its way to its records.
#[derive(Debug, Clone, Copy)]
struct RowChange<'c, 'r> {
    event: &'c Event<'c>,
    context: &'c Arc<TableContext>,
    kind: RowsKind,
    row: &'c Row<'r>,
    index: u64,
}

impl<'c> RowChange<'c, '_> {
    fn origin<'t>(&self, tracker: &'t TxnTracker) -> RecordOrigin<'t>
    where
        'c: 't,
    {
        RecordOrigin {
            table: &self.context.id,
            file: tracker.file(),
            pos: self.event.position,
            ordinal: tracker.rows_events(),
            row: self.index,
        }
    }
}

/// A JSON document that a partial update made.
#[derive(Debug)]
struct PatchedDocument {
    column: usize,
    text: Vec<u8>,
}

/// The documents that the diffs of a partial update make of those in the before image.
fn patched_documents(
    row: &Row<'_>,
    style: JsonStyle,
) -> Result<Vec<PatchedDocument>, (usize, DecodeError)> {
    let mut documents = Vec::new();
    for (column, value) in row.after.iter() {
        let Value::JsonDiffs(diffs) = value else { continue };
        let Some(Value::Json(before)) = row.before.get(column) else {
            return Err((
                column,
                DecodeError::Empty { field: "JSON document in the before image" },
            ));
        };
        let mut text = Vec::new();
        diffs.write_text(before, style, &mut text).map_err(|error| (column, error))?;
        documents.push(PatchedDocument { column, text });
    }
    Ok(documents)
}

fn column_name(context: &TableContext, index: usize) -> String {
    context.table.columns.get(index).map(|column| column.name.clone()).unwrap_or_default()
}

/// Takes rows that nobody looks at.
pub(crate) struct Nothing;

impl<'a> RowSink<'a> for Nothing {
    fn value(&mut self, _: Side, _: usize, _: Value<'a>) {}
}

/// The first column that an image of the event does not carry; one that it must carry goes first.
fn missing_column(rows: &RowsEvent<'_>, table: &Table) -> Option<Missing> {
    let images = [rows.before_columns(), rows.after_columns()];
    let missing = images
        .into_iter()
        .flatten()
        .filter(|columns| columns.count_ones() < columns.len())
        .flat_map(|columns| (0..columns.len()).filter(move |index| !columns.contains(*index)));
    let mut computed = None;
    for index in missing {
        if !table.columns.get(index).is_some_and(|column| column.is_computed) {
            return Some(Missing::Column(index));
        }
        computed.get_or_insert(index);
    }
    computed.map(Missing::Computed)
}

/// A column that an image does not carry.
enum Missing {
    /// One that it must carry.
    Column(usize),
    /// MariaDB 11.8 logs no generated columns of deleted rows, and of updated ones neither as they were nor as they became.
    Computed(usize),
}

const fn is_skipped(skipped: SkippedOperations, kind: RowsKind) -> bool {
    match kind {
        RowsKind::Write => skipped.create,
        RowsKind::Update | RowsKind::PartialUpdate => skipped.update,
        RowsKind::Delete => skipped.delete,
    }
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
