//! `TABLE_MAP_EVENT`: the physical columns that a table id stands for, up to the end of the statement.
//!
//! ```text
//! table id        6 bytes    4 where the format description gives the event a post-header of 6 bytes
//! flags           u16le
//! database        u8 length, name, 00
//! table           u8 length, name, 00
//! columns         lenenc     number of columns
//! types           1 byte each
//! metadata        lenenc length, then 0 to 2 bytes per column
//! nullable        ceil(columns / 8) bytes, bit i of byte i/8 from the least significant
//! optional        (type u8, length lenenc, data)*
//! ```
//!
//! Source: MySQL 8.4, `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`; MariaDB 11.8,
//! `Table_map_log_event` in `sql/log_event.h`.

use std::borrow::Cow;
use std::fmt;

use crate::row::{RowPlan, WireType};
use crate::wire::{Cursor, DecodeError};

/// How many bytes the table id takes in table map and rows events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableIdWidth {
    /// 4 bytes: logs of MySQL before 5.1.4.
    Four,
    /// 6 bytes: everything since.
    #[default]
    Six,
}

impl TableIdWidth {
    /// The width that goes with the post-header length of the event in the format description.
    #[must_use]
    pub const fn from_post_header_len(len: u8) -> Self {
        if len == 6 { Self::Four } else { Self::Six }
    }

    pub(crate) fn read(self, cursor: &mut Cursor<'_>) -> Result<u64, DecodeError> {
        match self {
            Self::Four => cursor.u32_le("table id").map(u64::from),
            Self::Six => cursor.u48_le("table id"),
        }
    }
}

/// One column of a table map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The type with its metadata; ENUM and SET are told apart from CHAR here.
    pub wire_type: WireType,
    /// The type code in the event, before the metadata is looked at.
    pub code: u8,
    /// Whether the column may be NULL.
    pub nullable: bool,
}

/// A table map event, parsed once and owned, with the plan that decodes its rows.
#[derive(Clone)]
pub struct TableMap {
    body: Box<[u8]>,
    table_id: u64,
    flags: u16,
    database: String,
    table: String,
    columns: Vec<Column>,
    /// Where the optional metadata starts in `body`.
    optional: usize,
    plan: Result<RowPlan, DecodeError>,
}

impl TableMap {
    /// Parses a body: the bytes between the common header and the checksum.
    ///
    /// A column type that is not known is no error here: the table may be one that nobody reads. [`Self::plan`]
    /// reports it.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] naming the field that the body ends in, and [`DecodeError::Invalid`] for a number
    /// that its field can't hold.
    pub fn parse(body: &[u8], table_id_width: TableIdWidth) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let table_id = table_id_width.read(&mut cursor)?;
        let flags = cursor.u16_le("table map flags")?;
        let database = name(&mut cursor, "database name")?;
        let table = name(&mut cursor, "table name")?;
        let count = cursor.lenenc("column count")?;
        let count = usize::try_from(count)
            .map_err(|_| DecodeError::Invalid { field: "column count", value: count })?;
        let types = cursor.take(count, "column types")?;
        let mut metadata = Cursor::new(cursor.lenenc_bytes("column metadata")?);
        let nullable = Bitmap::new(cursor.take(count.div_ceil(8), "nullable bitmap")?, count);
        let optional = body.len() - cursor.left();

        let mut columns = Vec::with_capacity(count);
        let mut unknown = None;
        for (index, &code) in types.iter().enumerate() {
            // After an unknown type the metadata of the others can't be told apart.
            let wire_type = match unknown {
                None => WireType::read(code, &mut metadata)?,
                Some(_) => WireType::Unknown { code },
            };
            if let (WireType::Unknown { code }, None) = (wire_type, unknown) {
                let column = u32::try_from(index).unwrap_or(u32::MAX);
                unknown = Some(DecodeError::ColumnType { column, code });
            }
            columns.push(Column { wire_type, code, nullable: nullable.contains(index) });
        }
        let plan = match unknown {
            Some(error) => Err(error),
            None => RowPlan::compile(columns.iter().map(|column| column.wire_type)),
        };
        Ok(Self { body: body.into(), table_id, flags, database, table, columns, optional, plan })
    }

    /// The id that rows events name the table by, unique until the server restarts or the table is opened again.
    #[must_use]
    pub const fn table_id(&self) -> u64 {
        self.table_id
    }

    /// The flags, as the server wrote them.
    #[must_use]
    pub const fn flags(&self) -> u16 {
        self.flags
    }

    /// Name of the database. Bytes that are no UTF-8 are replaced by U+FFFD.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Name of the table. Bytes that are no UTF-8 are replaced by U+FFFD.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Number of columns.
    #[must_use]
    pub const fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// The column with a zero-based index.
    #[must_use]
    pub fn column(&self, index: usize) -> Option<Column> {
        self.columns.get(index).copied()
    }

    /// All columns in table order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The bytes this was parsed from.
    #[must_use]
    pub const fn body(&self) -> &[u8] {
        &self.body
    }

    /// Whether an event with this body says the same. Servers send a table map before every statement, mostly
    /// unchanged: one compare spares the parse.
    #[must_use]
    pub fn same_as(&self, body: &[u8]) -> bool {
        *self.body == *body
    }

    /// The compiled plan for rows of this table.
    ///
    /// # Errors
    ///
    /// [`DecodeError::ColumnType`] when a column has a type that is not known, [`DecodeError::Invalid`] when the
    /// metadata of a column is out of range.
    pub const fn plan(&self) -> Result<&RowPlan, DecodeError> {
        match &self.plan {
            Ok(plan) => Ok(plan),
            Err(error) => Err(*error),
        }
    }

    /// Reads the optional metadata: what the server's `binlog_row_metadata` adds to the types. Types of metadata that
    /// are not known are skipped. Nothing of it is needed to decode rows.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`] when a known type of metadata does not fit the columns.
    pub fn optional_metadata(&self, dialect: Dialect) -> Result<OptionalMetadata<'_>, DecodeError> {
        let bytes = self.body.get(self.optional..).unwrap_or_default();
        OptionalMetadata::parse(bytes, &self.columns, dialect)
    }
}

impl fmt::Debug for TableMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableMap")
            .field("table_id", &self.table_id)
            .field("database", &self.database)
            .field("table", &self.table)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

/// Reads a name: a length byte, the name, a zero byte.
fn name(cursor: &mut Cursor<'_>, field: &'static str) -> Result<String, DecodeError> {
    let len = cursor.u8(field)?;
    let name = cursor.take(len.into(), field)?;
    match cursor.u8(field)? {
        0 => Ok(String::from_utf8_lossy(name).into_owned()),
        byte => Err(DecodeError::Invalid { field, value: byte.into() }),
    }
}

/// A bitmap of one bit per column, bit i of byte i/8 from the least significant.
#[derive(Clone, Copy)]
pub struct Bitmap<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Bitmap<'a> {
    /// `bytes` holds at least `len` bits.
    pub(crate) const fn new(bytes: &'a [u8], len: usize) -> Self {
        Self { bytes, len }
    }

    pub(crate) const fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the bit with a zero-based index is set; false beyond the end.
    #[inline]
    #[must_use]
    pub fn contains(&self, index: usize) -> bool {
        index < self.len
            && self.bytes.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// Number of bits that are set.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        let whole = self.bytes.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
        let beyond = match (self.bytes.last(), self.len % 8) {
            (Some(last), bits @ 1..) => (last >> bits).count_ones() as usize,
            _ => 0,
        };
        whole - beyond
    }

    /// Number of bits.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits at all.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Bitmap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries((0..self.len).filter(|index| self.contains(*index))).finish()
    }
}

/// Whose table map it is: the two servers count character columns differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL and its forks.
    MySql,
    /// MariaDB, where GEOMETRY and compressed columns count as character columns.
    MariaDb,
}

/// What `binlog_row_metadata` adds to a table map, resolved per column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionalMetadata<'a> {
    /// One entry per column of the table, in order.
    pub columns: Vec<ColumnMetadata<'a>>,
    /// The primary key in key order, with `FULL` only; `None` when the event says nothing.
    pub primary_key: Option<Vec<KeyPart>>,
}

/// Optional metadata of one column. `None` everywhere means that the event says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnMetadata<'a> {
    /// Name of the column (`FULL`).
    pub name: Option<Cow<'a, str>>,
    /// Whether a numeric column is UNSIGNED.
    pub unsigned: Option<bool>,
    /// Collation id of a character column, and with `FULL` of an ENUM or SET; 63 is `binary`.
    pub collation: Option<u64>,
    /// Labels of an ENUM or SET in the column's character set (`FULL`).
    pub labels: Option<Vec<&'a [u8]>>,
    /// Kind of a GEOMETRY column: 0 GEOMETRY, 1 POINT, 2 LINESTRING, 3 POLYGON, 4 MULTIPOINT, 5 MULTILINESTRING,
    /// 6 MULTIPOLYGON, 7 GEOMETRYCOLLECTION.
    pub geometry_type: Option<u64>,
    /// Whether `SELECT *` shows the column (`FULL`, MySQL 8.0.23).
    pub visible: Option<bool>,
    /// Declared dimensions of a VECTOR column.
    pub dimensions: Option<u64>,
}

/// One column of a primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyPart {
    /// Zero-based index of the column.
    pub column: usize,
    /// Length of the key prefix in characters (bytes for binary strings); 0 stands for the whole column.
    pub prefix: u64,
}

/// Codes of optional metadata (MySQL 9, `Optional_metadata_field_type`).
mod code {
    pub(super) const SIGNEDNESS: u8 = 1;
    pub(super) const DEFAULT_CHARSET: u8 = 2;
    pub(super) const COLUMN_CHARSET: u8 = 3;
    pub(super) const COLUMN_NAME: u8 = 4;
    pub(super) const SET_LABELS: u8 = 5;
    pub(super) const ENUM_LABELS: u8 = 6;
    pub(super) const GEOMETRY_TYPE: u8 = 7;
    pub(super) const SIMPLE_PRIMARY_KEY: u8 = 8;
    pub(super) const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
    pub(super) const ENUM_AND_SET_DEFAULT_CHARSET: u8 = 10;
    pub(super) const ENUM_AND_SET_COLUMN_CHARSET: u8 = 11;
    pub(super) const COLUMN_VISIBILITY: u8 = 12;
    pub(super) const VECTOR_DIMENSIONALITY: u8 = 13;
}

impl<'a> OptionalMetadata<'a> {
    fn parse(bytes: &'a [u8], columns: &[Column], dialect: Dialect) -> Result<Self, DecodeError> {
        let mut this =
            Self { columns: vec![ColumnMetadata::default(); columns.len()], primary_key: None };
        let character = |kind: WireType| is_character(kind, dialect);
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            let code = cursor.u8("optional metadata type")?;
            let mut data = Cursor::new(cursor.lenenc_bytes("optional metadata")?);
            match code {
                code::SIGNEDNESS => this.flags(columns, is_numeric, &mut data, |column, set| {
                    column.unsigned = Some(set);
                })?,
                code::COLUMN_VISIBILITY => this.flags(
                    columns,
                    |_| true,
                    &mut data,
                    |column, set| {
                        column.visible = Some(set);
                    },
                )?,
                code::DEFAULT_CHARSET => this.default_collation(columns, character, &mut data)?,
                code::ENUM_AND_SET_DEFAULT_CHARSET => {
                    this.default_collation(columns, is_enum_or_set, &mut data)?;
                }
                code::COLUMN_CHARSET => this.each(columns, character, |column| {
                    column.collation = Some(data.lenenc("collation")?);
                    Ok(())
                })?,
                code::ENUM_AND_SET_COLUMN_CHARSET => {
                    this.each(columns, is_enum_or_set, |column| {
                        column.collation = Some(data.lenenc("collation")?);
                        Ok(())
                    })?
                }
                code::COLUMN_NAME => this.each(
                    columns,
                    |_| true,
                    |column| {
                        let name = data.lenenc_bytes("column name")?;
                        column.name = Some(String::from_utf8_lossy(name));
                        Ok(())
                    },
                )?,
                code::SET_LABELS => {
                    let set = |kind| matches!(kind, WireType::Set { .. });
                    this.each(columns, set, |column| read_labels(column, &mut data))?;
                }
                code::ENUM_LABELS => {
                    let r#enum = |kind| matches!(kind, WireType::Enum { .. });
                    this.each(columns, r#enum, |column| read_labels(column, &mut data))?;
                }
                code::GEOMETRY_TYPE => {
                    let geometry = |kind| matches!(kind, WireType::Geometry { .. });
                    this.each(columns, geometry, |column| {
                        column.geometry_type = Some(data.lenenc("geometry type")?);
                        Ok(())
                    })?;
                }
                code::VECTOR_DIMENSIONALITY => {
                    let vector = |kind| matches!(kind, WireType::Vector { .. });
                    this.each(columns, vector, |column| {
                        column.dimensions = Some(data.lenenc("vector dimensionality")?);
                        Ok(())
                    })?;
                }
                code::SIMPLE_PRIMARY_KEY => this.primary_key(&mut data, |_| Ok(0))?,
                code::PRIMARY_KEY_WITH_PREFIX => {
                    this.primary_key(&mut data, |data| data.lenenc("primary key prefix"))?;
                }
                _ => continue,
            }
            if !data.is_empty() {
                let left = data.left() as u64;
                return Err(DecodeError::Trailing { field: "optional metadata", left });
            }
        }
        Ok(this)
    }

    /// Calls `read` for each column of a kind.
    fn each(
        &mut self,
        columns: &[Column],
        of_kind: impl Fn(WireType) -> bool,
        mut read: impl FnMut(&mut ColumnMetadata<'a>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        for (metadata, column) in self.columns.iter_mut().zip(columns) {
            if of_kind(column.wire_type) {
                read(metadata)?;
            }
        }
        Ok(())
    }

    /// Reads one bit per column of a kind, from the most significant.
    fn flags(
        &mut self,
        columns: &[Column],
        of_kind: impl Fn(WireType) -> bool,
        data: &mut Cursor<'a>,
        set: impl Fn(&mut ColumnMetadata<'a>, bool),
    ) -> Result<(), DecodeError> {
        let (mut bits, mut left) = (0, 0_u8);
        self.each(columns, of_kind, |column| {
            if left == 0 {
                (bits, left) = (data.u8("optional metadata bits")?, 8);
            }
            left -= 1;
            set(column, bits >> left & 1 == 1);
            Ok(())
        })
    }

    /// Reads a default collation and the columns of a kind that have another, counted among that kind.
    fn default_collation(
        &mut self,
        columns: &[Column],
        of_kind: impl Fn(WireType) -> bool,
        data: &mut Cursor<'a>,
    ) -> Result<(), DecodeError> {
        let default = data.lenenc("default collation")?;
        let mut of_kind: Vec<_> = self
            .columns
            .iter_mut()
            .zip(columns)
            .filter(|(_, column)| of_kind(column.wire_type))
            .map(|(metadata, _)| metadata)
            .collect();
        for column in &mut of_kind {
            column.collation = Some(default);
        }
        while !data.is_empty() {
            let index = data.lenenc("character column")?;
            let collation = data.lenenc("collation")?;
            let column = usize::try_from(index).ok().and_then(|index| of_kind.get_mut(index));
            let Some(column) = column else {
                return Err(DecodeError::Invalid { field: "character column", value: index });
            };
            column.collation = Some(collation);
        }
        Ok(())
    }

    fn primary_key(
        &mut self,
        data: &mut Cursor<'a>,
        prefix: impl Fn(&mut Cursor<'a>) -> Result<u64, DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut key = Vec::new();
        while !data.is_empty() {
            let index = data.lenenc("primary key column")?;
            let column = usize::try_from(index).ok().filter(|index| *index < self.columns.len());
            let Some(column) = column else {
                return Err(DecodeError::Invalid { field: "primary key column", value: index });
            };
            key.push(KeyPart { column, prefix: prefix(data)? });
        }
        self.primary_key = Some(key);
        Ok(())
    }
}

fn read_labels<'a>(
    column: &mut ColumnMetadata<'a>,
    data: &mut Cursor<'a>,
) -> Result<(), DecodeError> {
    let count = data.lenenc("label count")?;
    let labels = column.labels.insert(Vec::new());
    // Every label takes a byte at least, so the data bounds the loop.
    for _ in 0..count {
        labels.push(data.lenenc_bytes("label")?);
    }
    Ok(())
}

/// The columns that have a bit in SIGNEDNESS (MySQL, `is_numeric_type` in `sql/log_event.cc`, and YEAR).
const fn is_numeric(kind: WireType) -> bool {
    matches!(
        kind,
        WireType::Tiny
            | WireType::Short
            | WireType::Int24
            | WireType::Long
            | WireType::LongLong
            | WireType::NewDecimal { .. }
            | WireType::Float
            | WireType::Double
            | WireType::Year
    )
}

/// The columns that have a collation (`is_character_type` in `sql/log_event.cc` of either server; logs of MySQL 9.0.1
/// and 9.7.4 for VECTOR, which only MySQL writes as a type of its own).
fn is_character(kind: WireType, dialect: Dialect) -> bool {
    let for_all = matches!(
        kind,
        WireType::String { .. }
            | WireType::VarChar { .. }
            | WireType::Blob { .. }
            | WireType::Vector { .. }
    );
    let for_mariadb = matches!(
        kind,
        WireType::Geometry { .. }
            | WireType::BlobCompressed { .. }
            | WireType::VarCharCompressed { .. }
    );
    for_all || for_mariadb && dialect == Dialect::MariaDb
}

const fn is_enum_or_set(kind: WireType) -> bool {
    matches!(kind, WireType::Enum { .. } | WireType::Set { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `d.t`: INT, VARCHAR(100), ENUM, POINT, SET, BIGINT, CHAR(255) in utf8mb4, VECTOR; the second is NOT NULL.
    const BODY: &[u8] =
        b"\x07\x01\0\0\0\0\x01\0\x01d\0\x02t\xff\0\x08\x03\x0f\xfe\xff\xfe\x08\xfe\xf2\
        \x0a\x90\x01\xf7\x01\x04\xf8\x01\xce\xfc\x04\xfd";

    fn parse(optional: &[u8]) -> TableMap {
        TableMap::parse(&[BODY, optional].concat(), TableIdWidth::Six).unwrap()
    }

    #[test]
    fn the_columns_have_their_types_and_metadata() {
        let map = parse(&[]);
        assert_eq!((map.table_id(), map.flags()), (0x107, 1));
        assert_eq!((map.database(), map.table()), ("d", "t\u{fffd}"));
        let types: Vec<_> = map.columns().iter().map(|column| column.wire_type).collect();
        assert_eq!(
            types,
            [
                WireType::Long,
                WireType::VarChar { max_bytes: 400 },
                WireType::Enum { bytes: 1 },
                WireType::Geometry { length_bytes: 4 },
                WireType::Set { bytes: 1 },
                WireType::LongLong,
                WireType::String { max_bytes: 1020 },
                WireType::Vector { length_bytes: 4 },
            ]
        );
        assert_eq!(map.column(4).map(|column| column.code), Some(254));
        assert!(map.column(0).unwrap().nullable && !map.column(1).unwrap().nullable);
        assert_eq!((map.column_count(), map.column(8)), (8, None));
        assert_eq!(map.plan().map(RowPlan::column_count), Ok(8));
        assert!(map.same_as(BODY) && !map.same_as(&BODY[1..]));
    }

    /// A table of MySQL 9.0.1 with columns BIGINT, VECTOR, TEXT, VECTOR.
    #[test]
    fn vectors_count_as_character_columns() {
        let body = b"\x57\0\0\0\0\0\x01\0\x01d\0\x01t\0\x04\x08\xf2\xfc\xf2\x03\x04\x02\x04\x04\
            \x02\x05\x3f\x01\xfc\xff\x00\x0d\x02\x02\x04";
        let map = TableMap::parse(body, TableIdWidth::Six).unwrap();
        let metadata = map.optional_metadata(Dialect::MySql).unwrap();
        let found: Vec<_> =
            metadata.columns.iter().map(|column| (column.collation, column.dimensions)).collect();
        assert_eq!(
            found,
            [(None, None), (Some(63), Some(2)), (Some(255), None), (Some(63), Some(4))]
        );
    }

    #[test]
    fn every_short_body_is_an_error() {
        for len in 0..BODY.len() {
            let error = TableMap::parse(&BODY[..len], TableIdWidth::Six).unwrap_err();
            assert!(matches!(error, DecodeError::Truncated { .. }), "{len}: {error:?}");
        }
    }

    #[test]
    fn old_logs_have_table_ids_of_four_bytes() {
        let body = [&BODY[..4], &BODY[6..]].concat();
        let width = TableIdWidth::from_post_header_len(6);
        assert_eq!(TableMap::parse(&body, width).unwrap().table_id(), 0x107);
        assert_eq!(TableIdWidth::from_post_header_len(8), TableIdWidth::Six);
    }

    #[test]
    fn short_metadata_is_an_error() {
        let body = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0\x02\x0f\x0f\x03\x01\0\x01\x03";
        assert_eq!(
            TableMap::parse(body, TableIdWidth::Six).unwrap_err(),
            DecodeError::Truncated { field: "column metadata", needed: 2, left: 1 }
        );
    }

    #[test]
    fn a_column_count_beyond_the_body_allocates_nothing() {
        let body = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0\xfe\xff\xff\xff\xff\xff\xff\xff\x7f";
        assert!(matches!(
            TableMap::parse(body, TableIdWidth::Six),
            Err(DecodeError::Truncated { field: "column types", .. })
        ));
    }

    #[test]
    fn full_metadata_is_resolved_per_column() {
        let optional = [
            // Signedness of columns 0 and 5.
            &b"\x01\x01\x40"[..],
            // Default collation 255, the second character column 8.
            b"\x02\x05\xfc\xff\x00\x01\x08",
            // Enum and set: 63 and 255.
            b"\x0b\x04\x3f\xfc\xff\x00",
            b"\x04\x11\x01a\x01b\x01c\x01d\x01e\x01f\x01g\x02\xc3\xa9",
            b"\x05\x03\x01\x01x",
            b"\x06\x05\x02\x01y\x01z",
            b"\x07\x01\x01",
            b"\x09\x04\x05\x00\x01\x0a",
            b"\x0c\x01\xfe",
            b"\x0d\x03\xfc\x00\x08",
            // A type of the future.
            b"\x63\x02ab",
        ]
        .concat();
        let map = parse(&optional);
        let metadata = map.optional_metadata(Dialect::MySql).unwrap();
        let column = |index: usize| &metadata.columns[index];
        assert_eq!(column(0).unsigned, Some(false));
        assert_eq!(column(5).unsigned, Some(true));
        assert_eq!(column(1).unsigned, None);
        assert_eq!((column(1).collation, column(6).collation), (Some(255), Some(8)));
        assert_eq!((column(2).collation, column(4).collation), (Some(63), Some(255)));
        assert_eq!(column(0).name.as_deref(), Some("a"));
        assert_eq!(column(7).name.as_deref(), Some("é"));
        assert_eq!(column(2).labels, Some(vec![&b"y"[..], b"z"]));
        assert_eq!(column(4).labels, Some(vec![&b"x"[..]]));
        assert_eq!((column(3).geometry_type, column(0).geometry_type), (Some(1), None));
        assert_eq!(column(7).dimensions, Some(2048));
        assert_eq!((column(6).visible, column(7).visible), (Some(true), Some(false)));
        assert_eq!(
            metadata.primary_key,
            Some(vec![KeyPart { column: 5, prefix: 0 }, KeyPart { column: 1, prefix: 10 }])
        );
        // MariaDB counts the POINT as the second character column.
        let metadata = map.optional_metadata(Dialect::MariaDb).unwrap();
        assert_eq!(metadata.columns[3].collation, Some(8));
        assert_eq!(metadata.columns[6].collation, Some(255));
    }

    #[test]
    fn metadata_that_does_not_fit_the_columns_is_an_error_of_its_own() {
        let table: [&[u8]; 9] = [
            b"\x01\x00",
            b"\x01\x02\x00\x00",
            b"\x02\x03\x08\x03\x09",
            b"\x03\x01\x08",
            b"\x04\x02\x01a",
            b"\x05\x02\x05a",
            b"\x08\x01\x08",
            b"\x08\x05",
            b"\x63\xfd",
        ];
        for optional in table {
            let map = parse(optional);
            assert!(map.plan().is_ok());
            assert!(map.optional_metadata(Dialect::MySql).is_err(), "{optional:x?}");
        }
        let simple = parse(b"\x08\x02\x05\x00");
        let key = simple.optional_metadata(Dialect::MySql).unwrap().primary_key.unwrap();
        assert_eq!(key.iter().map(|part| part.column).collect::<Vec<_>>(), [5, 0]);
    }
}
