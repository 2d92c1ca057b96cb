//! Rows events: which columns the rows of one table carry, and the rows.
//!
//! ```text
//! table id        6 bytes    4 where the format description gives the event a post-header of 6 bytes
//! flags           u16le      bit 0: the statement ends here
//! extra           u16le      v2 only: its length with these two bytes, then the rest of it
//! columns         lenenc     number of columns
//! present         ceil(columns / 8) bytes, bit i of byte i/8; an update has two, before and after
//! rows            rest       per row: the before image (delete, update), the after image (write, update)
//! ```
//!
//! An image is a null bitmap over the columns present and the values that are not NULL, without any padding.
//!
//! Source: MySQL 8.4, `Rows_event` in `libs/mysql/binlog/event/rows_event.h`.

use super::table_map::{Bitmap, TableIdWidth, TableMap};
use crate::row::RowReader;
use crate::wire::{Cursor, DecodeError};

/// What a rows event does to its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsKind {
    /// Inserts them: after images.
    Write,
    /// Changes them: before and after images.
    Update,
    /// Deletes them: before images.
    Delete,
    /// Changes them, with JSON columns as diffs where that is shorter: `PARTIAL_UPDATE_ROWS_EVENT` (39), written with
    /// `binlog_row_value_options=PARTIAL_JSON`.
    PartialUpdate,
}

/// Version of the rows event's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowsVersion {
    /// Event types 23 to 25: MySQL 5.1 to 5.5 and MariaDB.
    V1,
    /// Event types 30 to 32 and 39: MySQL since 5.6. The header has extra information.
    V2,
}

/// A rows event. Its rows are not looked at before [`Self::rows`].
#[derive(Debug, Clone, Copy)]
pub struct RowsEvent<'a> {
    kind: RowsKind,
    table_id: u64,
    flags: u16,
    extra: &'a [u8],
    column_count: usize,
    before: Option<Bitmap<'a>>,
    after: Option<Bitmap<'a>>,
    rows: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    /// The flag of the last rows event of a statement.
    const STMT_END: u16 = 1;

    /// Parses a body: the bytes between the common header and the checksum.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] naming the field that the body ends in, [`DecodeError::Invalid`] for a length of the
    /// extra information below 2 and a number of columns that memory can't hold.
    pub fn parse(
        kind: RowsKind,
        version: RowsVersion,
        table_id_width: TableIdWidth,
        body: &'a [u8],
    ) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let table_id = table_id_width.read(&mut cursor)?;
        let flags = cursor.u16_le("rows flags")?;
        let extra = match version {
            RowsVersion::V1 => &[],
            RowsVersion::V2 => {
                let len = cursor.u16_le("extra row information length")?;
                let Some(len) = usize::from(len).checked_sub(2) else {
                    return Err(DecodeError::Invalid {
                        field: "extra row information length",
                        value: len.into(),
                    });
                };
                cursor.take(len, "extra row information")?
            }
        };
        let count = cursor.lenenc("column count")?;
        let column_count = usize::try_from(count)
            .map_err(|_| DecodeError::Invalid { field: "column count", value: count })?;
        let mut present = |field| {
            let bytes = cursor.take(column_count.div_ceil(8), field)?;
            Ok(Bitmap::new(bytes, column_count))
        };
        let (before, after) = match kind {
            RowsKind::Write => (None, Some(present("columns present")?)),
            RowsKind::Delete => (Some(present("columns present")?), None),
            RowsKind::Update | RowsKind::PartialUpdate => {
                (Some(present("columns present before")?), Some(present("columns present after")?))
            }
        };
        let rows = cursor.rest();
        Ok(Self { kind, table_id, flags, extra, column_count, before, after, rows })
    }

    /// The same event with other rows: those that MariaDB's compressed rows events give once decompressed.
    #[must_use]
    pub const fn with_rows<'b>(&self, rows: &'b [u8]) -> RowsEvent<'b>
    where
        'a: 'b,
    {
        RowsEvent { rows, ..*self }
    }

    /// What happens to the rows.
    #[must_use]
    pub const fn kind(&self) -> RowsKind {
        self.kind
    }

    /// The id that the table map gave the table.
    #[must_use]
    pub const fn table_id(&self) -> u64 {
        self.table_id
    }

    /// The flags, as the server wrote them.
    #[must_use]
    pub const fn flags(&self) -> u16 {
        self.flags
    }

    /// Whether the statement ends with this event: its table maps are void afterwards.
    #[must_use]
    pub const fn ends_statement(&self) -> bool {
        self.flags & Self::STMT_END != 0
    }

    /// The extra information without its length; empty for version 1.
    #[must_use]
    pub const fn extra(&self) -> &'a [u8] {
        self.extra
    }

    /// Number of columns of the table.
    #[must_use]
    pub const fn column_count(&self) -> usize {
        self.column_count
    }

    /// The columns that before images carry; `None` for writes.
    #[must_use]
    pub const fn before_columns(&self) -> Option<Bitmap<'a>> {
        self.before
    }

    /// The columns that after images carry; `None` for deletes.
    #[must_use]
    pub const fn after_columns(&self) -> Option<Bitmap<'a>> {
        self.after
    }

    /// The rows, undecoded; in one of MariaDB's compressed events the compressed block.
    #[must_use]
    pub const fn rows_bytes(&self) -> &'a [u8] {
        self.rows
    }

    /// Appends the event to a buffer, to be read later or by another thread. The extra information stays behind.
    pub fn store(&self, buffer: &mut Vec<u8>) -> StoredRows {
        let start = buffer.len();
        let bitmaps = [self.before, self.after].map(|bitmap| {
            let bytes = bitmap?.bytes();
            buffer.extend_from_slice(bytes);
            Some(bytes.len())
        });
        buffer.extend_from_slice(self.rows);
        let Self { kind, table_id, flags, column_count, .. } = *self;
        StoredRows { kind, table_id, flags, column_count, bitmaps, range: (start, buffer.len()) }
    }

    /// Starts reading the rows with the table map that they belong to.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Mismatch`] when table id or number of columns differ from the table map's,
    /// [`DecodeError::Trailing`] for bytes after rows that carry no columns, and the errors of [`TableMap::plan`].
    pub fn rows<'t>(&self, table: &'t TableMap) -> Result<RowReader<'a, 't>, DecodeError> {
        RowReader::new(self, table)
    }
}

/// A rows event whose bytes are in a buffer of the caller's.
#[derive(Debug, Clone, Copy)]
pub struct StoredRows {
    kind: RowsKind,
    table_id: u64,
    flags: u16,
    column_count: usize,
    /// Bytes of the two bitmaps.
    bitmaps: [Option<usize>; 2],
    range: (usize, usize),
}

impl StoredRows {
    /// The event again, from the buffer that it was [stored](RowsEvent::store) in. `None` if that has become shorter.
    #[must_use]
    pub fn load<'b>(&self, buffer: &'b [u8]) -> Option<RowsEvent<'b>> {
        let mut rest = buffer.get(self.range.0..self.range.1)?;
        let mut bitmap = |size: Option<usize>| match size {
            None => Some(None),
            Some(size) => {
                let (bytes, behind) = rest.split_at_checked(size)?;
                rest = behind;
                Some(Some(Bitmap::new(bytes, self.column_count)))
            }
        };
        let [before, after] = self.bitmaps;
        let (before, after) = (bitmap(before)?, bitmap(after)?);
        let Self { kind, table_id, flags, column_count, .. } = *self;
        Some(RowsEvent {
            kind,
            table_id,
            flags,
            extra: &[],
            column_count,
            before,
            after,
            rows: rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &[u8] = b"\x07\0\0\0\0\0\x01\0\x05\0abc\x09\xff\x01\x03\x00rest";

    #[test]
    fn an_update_has_two_bitmaps_and_its_extra_information() {
        let event =
            RowsEvent::parse(RowsKind::Update, RowsVersion::V2, TableIdWidth::Six, V2).unwrap();
        assert_eq!((event.table_id(), event.column_count()), (7, 9));
        assert!(event.ends_statement());
        assert_eq!(event.extra(), b"abc");
        assert_eq!(event.before_columns().unwrap().count_ones(), 9);
        assert_eq!(format!("{:?}", event.after_columns().unwrap()), "{0, 1}");
        assert_eq!(event.rows_bytes(), b"rest");
        assert_eq!(event.with_rows(b"other").rows_bytes(), b"other");
    }

    #[test]
    fn every_short_header_is_an_error() {
        for len in 0..V2.len() - 4 {
            let parsed =
                RowsEvent::parse(RowsKind::Update, RowsVersion::V2, TableIdWidth::Six, &V2[..len]);
            assert!(matches!(parsed, Err(DecodeError::Truncated { .. })), "{len}");
        }
    }

    #[test]
    fn the_first_version_has_no_extra_information() {
        let body = b"\x07\0\0\0\0\0\x02\x01\0\x05";
        let event =
            RowsEvent::parse(RowsKind::Write, RowsVersion::V1, TableIdWidth::Four, body).unwrap();
        assert_eq!((event.table_id(), event.flags(), event.column_count()), (7, 0, 2));
        assert!(!event.ends_statement());
        assert_eq!(event.before_columns().map(|columns| columns.len()), None);
        assert!(event.after_columns().unwrap().contains(0));
    }

    #[test]
    fn an_extra_length_below_its_own_size_is_an_error() {
        let body = b"\x07\0\0\0\0\0\x01\0\x01\0\x01\x01";
        assert_eq!(
            RowsEvent::parse(RowsKind::Write, RowsVersion::V2, TableIdWidth::Six, body).map(|_| ()),
            Err(DecodeError::Invalid { field: "extra row information length", value: 1 })
        );
    }

    #[test]
    fn a_stored_event_is_the_same_from_a_buffer() {
        let event =
            RowsEvent::parse(RowsKind::Update, RowsVersion::V2, TableIdWidth::Six, V2).unwrap();
        let mut buffer = b"before".to_vec();
        let stored = event.store(&mut buffer);
        assert!(stored.load(&buffer[..buffer.len() - 1]).is_none());
        buffer.extend_from_slice(b"behind");
        let loaded = stored.load(&buffer).unwrap();
        let same = |event: RowsEvent<'_>| format!("{:?}", RowsEvent { extra: &[], ..event });
        assert_eq!(same(loaded), same(event));
        assert_eq!(loaded.rows_bytes(), b"rest");
    }
}
