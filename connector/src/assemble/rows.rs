//! Rows events to change records and their groups.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_binlog::Value;
use holdfast_binlog::event::Event;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::row::{Row, RowError, RowReader, RowSink, Side};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::wire::DecodeError;
use holdfast_history::{ShapeMismatch, Table, cross_check};

use super::context::{Resolved, TableContext};
use super::render::{Renderer, RowChange, RowsPlace, convert_error, row_error, row_reader};
use super::{Assembler, VERSION, Why};
use crate::config::SkippedOperations;
use crate::convert::{ConvertError, FailureMode, UniformTypes};
use crate::error::{Error, Mismatch, RowFailure};
use crate::format::debezium_json::SourceInfo;

impl Assembler {
    pub(super) fn rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        now_ns: i64,
    ) -> Result<(), Error> {
        self.tracker.rows_event();
        if let Some(context) = self.deferrable(rows, map) {
            self.defer(event, rows, map, context, now_ns);
            return Ok(());
        }
        self.parallel.count(rows);
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
        let file = Arc::clone(self.tracker.file());
        let ordinal = self.tracker.rows_events();
        let place = RowsPlace { file: &file, position: event.position, ordinal };
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
                let change = RowChange { place, context: &context, kind, row: &row, index };
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
        row_reader((event.file, event.position), rows, map)
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
    pub(super) fn render_end(&mut self, event: &Event<'_>, context: &TableContext, now_ns: i64) {
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

    fn renderer(&mut self) -> Renderer<'_> {
        Renderer {
            config: &self.config,
            schemas: &self.schemas,
            lineage: &self.lineage_name,
            end: &self.envelope_end,
            transaction: self.transaction.as_mut(),
            batch: &mut self.batch,
        }
    }

    /// One row to its records, as one group.
    fn deliver(&mut self, change: &RowChange<'_, '_>) -> Result<(), Error> {
        let RowChange { kind, row, .. } = *change;
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
        let result = self.renderer().row(change);
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
        self.value_failed(convert_error(change, source))
    }

    /// A row with a value that can't be written.
    fn value_failed(&mut self, error: Error) -> Result<(), Error> {
        self.leave_out(self.config.events.on_processing_failure, Why::Value, error)?;
        self.note_progress();
        Ok(())
    }

    fn row_error_of(&self, change: &RowChange<'_, '_>, error: RowError) -> Error {
        let name = error.column.and_then(|column| change.context.table.columns.get(column));
        Error::Row(Box::new(RowFailure {
            table: (*change.context.id).clone(),
            row: usize::try_from(change.index).unwrap_or(usize::MAX),
            column: name.map(|column| column.name.clone()),
            file: change.place.file.to_string(),
            position: change.place.position,
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
        row_error((event.file, event.position), map, context, error)
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
pub(super) fn missing_column(rows: &RowsEvent<'_>, table: &Table) -> Option<Missing> {
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
pub(super) enum Missing {
    /// One that it must carry.
    Column(usize),
    /// MariaDB 11.8 logs no generated columns of deleted rows, and of updated ones neither as they were nor as they became.
    Computed(usize),
}

pub(super) const fn is_skipped(skipped: SkippedOperations, kind: RowsKind) -> bool {
    match kind {
        RowsKind::Write => skipped.create,
        RowsKind::Update | RowsKind::PartialUpdate => skipped.update,
        RowsKind::Delete => skipped.delete,
    }
}
