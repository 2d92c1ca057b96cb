//! The format `json`: a line per row, and one per statement.

use holdfast_binlog::event::Event;
use holdfast_binlog::event::rows::RowsKind;
use holdfast_binlog::event::table_map::TableMap;

use super::tables::LogTable;
use super::{Image, Statement, ValueError, base_name};
use crate::convert::Origin;
use crate::format::json::{write_optional_string, write_string, write_u64};

/// Appends what the rows of an event share, in two parts: `{"file":…,"pos":…,"row":`, and `,"ts_ms":…` to `,"before":`.
pub(super) fn begin_rows(
    event: &Event<'_>,
    gtid: Option<&str>,
    kind: RowsKind,
    map: &TableMap,
    out: &mut Vec<u8>,
) -> Shared {
    let start = out.len();
    write_place(event, out);
    out.extend_from_slice(b",\"row\":");
    let middle = out.len();
    write_origin(event, gtid, out);
    out.extend_from_slice(match kind {
        RowsKind::Write => b",\"op\":\"c\",\"database\":",
        RowsKind::Update | RowsKind::PartialUpdate => b",\"op\":\"u\",\"database\":",
        RowsKind::Delete => b",\"op\":\"d\",\"database\":",
    });
    write_string(map.database(), out);
    out.extend_from_slice(b",\"table\":");
    write_string(map.table(), out);
    out.extend_from_slice(b",\"before\":");
    Shared { start, middle, end: out.len() }
}

/// Where the two parts are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared {
    start: usize,
    middle: usize,
    end: usize,
}

impl Shared {
    pub(super) const fn start(self) -> usize {
        self.start
    }

    /// The same in a text without the first `by` bytes.
    pub(super) const fn moved(self, by: usize) -> Self {
        let Self { start, middle, end } = self;
        Self { start: start - by, middle: middle - by, end: end - by }
    }

    pub(super) fn parts(self, text: &[u8]) -> (&[u8], &[u8]) {
        let part = |from, to| text.get(from..to).unwrap_or_default();
        (part(self.start, self.middle), part(self.middle, self.end))
    }
}

/// Appends a row.
pub(super) fn row(
    (head, middle): (&[u8], &[u8]),
    table: &LogTable,
    index: u64,
    before: Option<Image<'_, '_>>,
    after: Option<Image<'_, '_>>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    out.extend_from_slice(head);
    write_u64(index, out);
    out.extend_from_slice(middle);
    write_image(table, before, out)?;
    out.extend_from_slice(b",\"after\":");
    write_image(table, after, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends a statement.
pub(super) fn statement(
    event: &Event<'_>,
    gtid: Option<&str>,
    statement: &Statement<'_>,
    out: &mut Vec<u8>,
) {
    write_place(event, out);
    write_origin(event, gtid, out);
    out.extend_from_slice(b",\"kind\":\"statement\",\"database\":");
    let database = &*statement.database;
    write_optional_string((!database.is_empty()).then_some(database), out);
    out.extend_from_slice(b",\"statement\":");
    write_string(statement.text(), out);
    out.extend_from_slice(b"}\n");
}

fn write_place(event: &Event<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"file\":");
    write_string(base_name(event.file), out);
    out.extend_from_slice(b",\"pos\":");
    write_u64(event.position, out);
}

fn write_origin(event: &Event<'_>, gtid: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"ts_ms\":");
    write_u64(u64::from(event.header.timestamp) * 1000, out);
    out.extend_from_slice(b",\"server_id\":");
    write_u64(event.header.server_id.into(), out);
    out.extend_from_slice(b",\"gtid\":");
    write_optional_string(gtid, out);
}

/// Appends the columns that the image carries.
fn write_image(
    table: &LogTable,
    image: Option<Image<'_, '_>>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let Some(image) = image else {
        out.extend_from_slice(b"null");
        return Ok(());
    };
    let mut separator = b'{';
    for (index, column) in table.columns.iter().enumerate() {
        let Some(value) = image.get(index) else { continue };
        out.push(separator);
        separator = b',';
        out.extend_from_slice(&column.key);
        let value = table.plain(value);
        column.converter.write_json(&value, Origin::Stream, out).map_err(ValueError::Convert)?;
    }
    if separator == b'{' {
        out.push(separator);
    }
    out.push(b'}');
    Ok(())
}
