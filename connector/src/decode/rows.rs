//! Rows to text, a piece of the log at a time, so that several threads can do it.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind, StoredRows};
use holdfast_binlog::event::{Event, EventData, EventHeader};
use holdfast_binlog::row::{Row, RowError, RowImage, Side};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::wire::DecodeError as DecodeFailure;
use holdfast_history::TableId;

use super::json::{self, Shared};
use super::tables::LogTable;
use super::{DecodeError, Format, text};
use crate::convert::ConvertError;
use crate::error::{ConvertFailed, Error};

/// A piece of what is to be printed, in the order of the log: text, and rows that are still bytes.
#[derive(Debug, Default)]
pub(super) struct Piece {
    items: Vec<Item>,
    /// Text, and what the rows of an event share.
    text: Vec<u8>,
    /// Up to where the text has its item, or needs none.
    text_end: usize,
    rows: Vec<u8>,
    /// What was printed.
    pub(super) out: Vec<u8>,
}

#[derive(Debug)]
enum Item {
    /// Of the text, from and to.
    Text(usize, usize),
    Rows(Box<Rows>),
}

/// A rows event.
#[derive(Debug)]
struct Rows {
    header: EventHeader,
    file: Arc<str>,
    position: u64,
    end: u64,
    table: Arc<LogTable>,
    rows: StoredRows,
    shared: Option<Shared>,
}

impl Piece {
    /// Where text is appended to.
    pub(super) const fn text(&mut self) -> &mut Vec<u8> {
        &mut self.text
    }

    /// Adds rows. `shared` is the end of the text, and printed with each row instead.
    pub(super) fn add_rows(
        &mut self,
        event: &Event<'_>,
        file: &Arc<str>,
        rows: &RowsEvent<'_>,
        table: &Arc<LogTable>,
        shared: Option<Shared>,
    ) {
        self.close_text(shared);
        self.items.push(Item::Rows(Box::new(Rows {
            header: event.header,
            file: Arc::clone(file),
            position: event.position,
            end: event.end,
            table: Arc::clone(table),
            rows: rows.store(&mut self.rows),
            shared,
        })));
    }

    fn close_text(&mut self, shared: Option<Shared>) {
        let end = shared.map_or(self.text.len(), Shared::start);
        if end > self.text_end {
            self.items.push(Item::Text(self.text_end, end));
        }
        self.text_end = self.text.len();
    }

    /// Bytes that it holds.
    pub(super) const fn size(&self) -> usize {
        self.text.len() + self.rows.len()
    }

    /// Makes it empty; its buffers stay.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.text.clear();
        self.text_end = 0;
        self.rows.clear();
        self.out.clear();
    }
}

/// Prints rows. Each thread has one.
#[derive(Debug)]
pub(super) struct RowPrinter {
    format: Format,
    row: Row<'static>,
}

impl RowPrinter {
    pub(super) const fn new(format: Format) -> Self {
        Self { format, row: Row::new() }
    }

    /// Prints a piece to its `out`.
    pub(super) fn print(&mut self, piece: &mut Piece) -> Result<(), DecodeError> {
        piece.close_text(None);
        let Piece { items, text, rows: bytes, out, .. } = piece;
        for item in items {
            match item {
                Item::Text(start, end) => {
                    out.extend_from_slice(text.get(*start..*end).unwrap_or_default());
                }
                Item::Rows(rows) => {
                    let Rows { header, position, end, .. } = **rows;
                    let event =
                        Event { header, file: &rows.file, position, end, data: EventData::Ignored };
                    let Some(stored) = rows.rows.load(bytes) else { continue };
                    let shared = rows.shared.map(|shared| shared.parts(text)).unwrap_or_default();
                    self.print_rows(&event, &stored, &rows.table, shared, out, |_| Ok(()))?;
                }
            }
        }
        Ok(())
    }

    /// Prints the rows of an event. `printed` is called after each.
    pub(super) fn print_rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        table: &LogTable,
        shared: (&[u8], &[u8]),
        out: &mut Vec<u8>,
        mut printed: impl FnMut(&mut Vec<u8>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let (map, kind) = (&table.map, rows.kind());
        let mut reader = rows.rows(map).map_err(|error| event.decode_error(error))?;
        let mut row = std::mem::take(&mut self.row).recycle();
        let mut index = 0_u64;
        while reader.read(&mut row).map_err(|error| event.row_error(map, error))? {
            if index == 0 && kind == RowsKind::PartialUpdate && lacks_documents(&row) {
                tracing::warn!(
                    binlog_file = event.file,
                    binlog_position = event.position,
                    table = %TableId::new(map.database(), map.table()),
                    "changes of JSON documents are left out: the before images don't carry the documents"
                );
            }
            let start = out.len();
            if let Err(error) = self.print_row(table, kind, index, &row, shared, out) {
                out.truncate(start);
                return Err(error.locate(event, table, index));
            }
            printed(out)?;
            index += 1;
        }
        self.row = row.recycle();
        Ok(())
    }

    fn print_row(
        &self,
        table: &LogTable,
        kind: RowsKind,
        index: u64,
        row: &Row<'_>,
        shared: (&[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        let patched = match kind {
            RowsKind::PartialUpdate => patched_documents(row)?,
            RowsKind::Write | RowsKind::Update | RowsKind::Delete => Vec::new(),
        };
        let has_before = kind != RowsKind::Write;
        let has_after = kind != RowsKind::Delete;
        let before = has_before.then_some(Image { image: &row.before, patched: &[] });
        let after = has_after.then_some(Image { image: &row.after, patched: &patched });
        match self.format {
            Format::Json => json::row(shared, table, index, before, after, out),
            Format::Text => text::row(table, before, after, out),
            Format::Count => Ok(()),
        }
    }
}

/// One side of a row, with the JSON documents that a partial update makes of the other side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image<'i, 'r> {
    image: &'i RowImage<'r>,
    patched: &'i [PatchedDocument],
}

impl<'i, 'r: 'i> Image<'i, 'r> {
    pub(super) fn get(self, column: usize) -> Option<Value<'i>> {
        let value = self.image.get(column)?;
        if !matches!(value, Value::JsonDiffs(_)) {
            return Some(value);
        }
        let document = self.patched.iter().find(|document| document.column == column);
        document.map(|document| Value::JsonText(&document.text))
    }
}

/// A JSON document that a partial update made.
#[derive(Debug)]
struct PatchedDocument {
    column: usize,
    /// The document as text.
    text: Vec<u8>,
}

/// The documents that the differences of a partial update make of those in the before image. Where that does not carry
/// the document (`binlog_row_image=MINIMAL`), the new one can't be told.
fn patched_documents(row: &Row<'_>) -> Result<Vec<PatchedDocument>, ValueError> {
    let mut documents = Vec::new();
    for (column, value) in row.after.iter() {
        let Value::JsonDiffs(differences) = value else { continue };
        let before = match row.before.get(column) {
            None => continue,
            Some(Value::Json(before)) => before,
            Some(_) => {
                let error = DecodeFailure::Empty { field: "JSON document in the before image" };
                return Err(ValueError::Decode(Side::After, column, error));
            }
        };
        let mut text = Vec::new();
        differences
            .write_text(before, JsonStyle::Debezium, &mut text)
            .map_err(|error| ValueError::Decode(Side::After, column, error))?;
        documents.push(PatchedDocument { column, text });
    }
    Ok(documents)
}

/// Whether there are changes of documents that the before image does not carry.
fn lacks_documents(row: &Row<'_>) -> bool {
    row.after.iter().any(|(column, value)| {
        matches!(value, Value::JsonDiffs(_)) && row.before.get(column).is_none()
    })
}

/// Why a value could not be printed.
pub(super) enum ValueError {
    Convert(ConvertError),
    /// The bytes of a column, zero-based.
    Decode(Side, usize, DecodeFailure),
}

impl ValueError {
    #[cold]
    fn locate(self, event: &Event<'_>, table: &LogTable, row: u64) -> DecodeError {
        let map = &table.map;
        match self {
            Self::Convert(source) => Error::Convert(Box::new(ConvertFailed {
                table: TableId::new(map.database(), map.table()),
                file: event.file.to_owned(),
                position: event.position,
                source,
            }))
            .into(),
            Self::Decode(side, column, error) => {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                event.row_error(map, RowError { row, side, column: Some(column), error }).into()
            }
        }
    }
}
