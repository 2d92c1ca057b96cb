//! Whether a definition fits a table map: the last guard before rows are decoded with a wrong definition.
//!
//! A history can be wrong for a place in the log: a statement that was kept out of the log (`sql_log_bin=0`), a record that
//! was skipped or lost, a refresh with definitions of another day. Every table map says the physical types of its columns,
//! and with MySQL's `binlog_row_metadata` signedness and character sets (`MINIMAL`), names, labels and the key (`FULL`).
//! [`check`] compares all of that with the definition. A NULL that the log allows and the definition does not is a
//! difference; the other way round is none, since every value fits such a definition. What the log leaves open fits: two columns of one type that changed
//! places are told apart by their names only, so only with `FULL`.
//!
//! It errs on the side of silence. Where servers choose types themselves (`TEXT(n)`, a long VARCHAR, the growth of a TEXT
//! under `CONVERT TO CHARACTER SET`), every type that they may choose fits.
//!
//! Source of what a type is on the wire: MySQL 9.7, `Field::save_field_metadata` and its overrides in `sql/field.cc`;
//! MariaDB 11.8, `Field::save_field_metadata` in `sql/field.cc` and the plugin types.

use std::fmt;

use holdfast_binlog::event::table_map::{ColumnMetadata, Dialect, OptionalMetadata, TableMap};
use holdfast_binlog::row::WireType;

use crate::schema::{
    Column, ColumnType, Table, bytes_per_character, charset_of_collation, same_name,
};

/// Collation `binary`: the column holds bytes, not text.
const BINARY_COLLATION: u64 = 63;
/// The most bytes of a VARCHAR; in a lax `sql_mode` a longer one becomes a TEXT.
const MAX_VARCHAR_BYTES: u32 = 65_535;
/// What the model keeps of `CHAR(0)` and `VARCHAR(0)`, as Debezium does.
const LENGTH_FOR_ZERO: i32 = 10;
/// The dimensions of a VECTOR without any (MySQL, `Field_vector`).
const DEFAULT_DIMENSIONS: i32 = 2048;
/// How the columns begin that MariaDB adds for a unique index over a BLOB or a long text (`sql/sql_table.cc`,
/// `add_hash_field`).
const ROW_HASH: &str = "DB_ROW_HASH_";
/// The most elements that a MySQL SET stores in as many bytes as it needs; more of them take 8.
const MAX_SHORT_SET: usize = 32;

/// Compares a definition with a table map of the same table.
///
/// # Errors
///
/// The first column in which they differ.
pub fn check(table: &Table, map: &TableMap, dialect: Dialect) -> Result<(), ShapeMismatch> {
    let metadata = metadata_of(map, dialect);
    let counts = (table.columns.len(), visible_columns(&metadata, dialect));
    let wire_at = |index: usize| {
        if index >= counts.1 {
            return None;
        }
        let said = metadata.columns.get(index)?;
        let column = map.column(index)?;
        Some(WireColumn { kind: column.wire_type, nullable: column.nullable, said, dialect })
    };
    for index in 0..counts.0.max(counts.1) {
        let mismatch = |property, column: Option<&Column>, wire: Option<&WireColumn<'_>>| {
            let (mut definition, mut wire) = (column.map(defined), wire.map(ToString::to_string));
            if property == Property::Nullness {
                definition = definition.map(|text| text + " NOT NULL");
                wire = wire.map(|text| text + " that can be NULL");
            }
            ShapeMismatch { index, counts, property, definition, wire }
        };
        match (table.columns.get(index), wire_at(index)) {
            (Some(column), Some(wire)) => {
                let property = difference(column, &wire)
                    .or_else(|| may_be_null(table, column, &wire).then_some(Property::Nullness));
                if let Some(property) = property {
                    return Err(mismatch(property, Some(column), Some(&wire)));
                }
            }
            (column, wire) => return Err(mismatch(Property::Missing, column, wire.as_ref())),
        }
    }
    Ok(())
}

/// Compares the key of a definition with that of a table map, which has one with `binlog_row_metadata=FULL` only. Returns
/// both, the definition's first, where they differ.
///
/// It is apart from [`check`] because a difference proves nothing: of several unique indexes that can stand for a primary
/// key, the server and the model may choose different ones.
#[must_use]
pub fn key_difference(table: &Table, map: &TableMap, dialect: Dialect) -> Option<(String, String)> {
    let metadata = metadata_of(map, dialect);
    let named = metadata.columns.first().is_some_and(|column| column.name.is_some());
    if !named || table.columns.len() != visible_columns(&metadata, dialect) {
        return None;
    }
    let key = metadata.primary_key.unwrap_or_default();
    let mut wire: Vec<usize> = key.iter().map(|part| part.column).collect();
    let model: Vec<usize> = table.key_columns().collect();
    // MariaDB adds the end of a row's life to the keys of a versioned table.
    let row_end = |index: &usize| {
        map.column(*index).is_some_and(|column| column.wire_type == WireType::Timestamp2 { fsp: 6 })
    };
    if dialect == Dialect::MariaDb && wire.len() == model.len() + 1 {
        wire.pop_if(|index| row_end(index));
    }
    let names = |indexes: &[usize]| {
        let name = |index: &usize| table.columns.get(*index).map(|column| column.name.as_str());
        let names: Vec<&str> = indexes.iter().filter_map(name).collect();
        if names.is_empty() { "no key".to_owned() } else { format!("({})", names.join(", ")) }
    };
    (wire != model).then(|| (names(&model), names(&wire)))
}

/// Whether a table map can be that of a MariaDB sequence: its eight columns, by their types and, where the log has them,
/// names (`sql/sql_sequence.cc`, `sequence_structure`).
#[must_use]
pub fn is_sequence(map: &TableMap, dialect: Dialect) -> bool {
    const COLUMNS: [(&str, WireType); 8] = [
        ("next_not_cached_value", WireType::LongLong),
        ("minimum_value", WireType::LongLong),
        ("maximum_value", WireType::LongLong),
        ("start_value", WireType::LongLong),
        ("increment", WireType::LongLong),
        ("cache_size", WireType::LongLong),
        ("cycle_option", WireType::Tiny),
        ("cycle_count", WireType::LongLong),
    ];
    let metadata = metadata_of(map, dialect);
    dialect == Dialect::MariaDb
        && map.column_count() == COLUMNS.len()
        && map.columns().iter().zip(&metadata.columns).zip(COLUMNS).all(
            |((column, said), (name, wire_type))| {
                column.wire_type == wire_type
                    && !column.nullable
                    && said.name.as_ref().is_none_or(|said| same_name(said, name))
            },
        )
}

/// All columns of a definition, for people.
#[must_use]
pub fn definition_shape(table: &Table) -> String {
    table.columns.iter().map(defined).collect::<Vec<_>>().join(", ")
}

/// All columns of a table map, for people.
#[must_use]
pub fn wire_shape(map: &TableMap, dialect: Dialect) -> String {
    let metadata = metadata_of(map, dialect);
    let columns = map.columns().iter().enumerate();
    let texts: Vec<String> = columns
        .filter_map(|(index, column)| {
            let said = metadata.columns.get(index)?;
            let (kind, nullable) = (column.wire_type, column.nullable);
            Some(WireColumn { kind, nullable, said, dialect }.to_string())
        })
        .collect();
    texts.join(", ")
}

/// The first column in which a definition and a table map differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {} {}: the definition has {}, the log has {}", .index + 1, property.differs(), or_none(.definition), or_none(.wire))]
pub struct ShapeMismatch {
    /// Index of the column, zero-based.
    pub index: usize,
    /// Number of columns: of the definition, and of the table map.
    pub counts: (usize, usize),
    /// In what they differ.
    pub property: Property,
    /// The column of the definition, name and type; `None` when it has fewer.
    pub definition: Option<String>,
    /// The column of the table map, its type and what is known beside it; `None` when it has fewer.
    pub wire: Option<String>,
}

fn or_none(column: &Option<String>) -> &str {
    column.as_deref().unwrap_or("none")
}

/// In what a column of a definition and one of a table map differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Property {
    /// One of them has fewer columns.
    Missing,
    /// Name (`FULL`).
    Name,
    /// Physical type, its length or its digits.
    Type,
    /// UNSIGNED (`MINIMAL`).
    Signedness,
    /// Character set, or text against bytes (`MINIMAL`; of an ENUM or SET `FULL`).
    Charset,
    /// Labels of an ENUM or SET (`FULL`).
    Labels,
    /// Dimensions of a VECTOR (`MINIMAL`).
    Dimensions,
    /// NOT NULL in the definition, and not in the log.
    Nullness,
}

impl Property {
    /// One word for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Name => "name",
            Self::Type => "type",
            Self::Signedness => "signedness",
            Self::Charset => "charset",
            Self::Labels => "labels",
            Self::Dimensions => "dimensions",
            Self::Nullness => "nullness",
        }
    }

    const fn differs(self) -> &'static str {
        match self {
            Self::Missing => "is not on both sides",
            Self::Name => "differs in its name",
            Self::Type => "differs in its type",
            Self::Signedness => "differs in its sign",
            Self::Charset => "differs in its character set",
            Self::Labels => "differs in its labels",
            Self::Dimensions => "differs in its dimensions",
            Self::Nullness => "differs in whether it can be NULL",
        }
    }
}

/// A column of a table map with all that the event says of it.
#[derive(Debug, Clone, Copy)]
struct WireColumn<'a> {
    kind: WireType,
    nullable: bool,
    said: &'a ColumnMetadata<'a>,
    dialect: Dialect,
}

/// What the event says beside the types. Metadata that can't be read says nothing: rows do not need it.
fn metadata_of(map: &TableMap, dialect: Dialect) -> OptionalMetadata<'_> {
    map.optional_metadata(dialect).unwrap_or_else(|_| OptionalMetadata {
        columns: vec![ColumnMetadata::default(); map.column_count()],
        primary_key: None,
    })
}

/// The number of columns without those that MariaDB adds at the end for unique indexes over long columns, which no
/// definition shows. Only their names tell them from others.
#[must_use]
pub fn visible_columns(metadata: &OptionalMetadata<'_>, dialect: Dialect) -> usize {
    let is_hash = |column: &&ColumnMetadata<'_>| {
        dialect == Dialect::MariaDb
            && column.name.as_ref().is_some_and(|name| name.starts_with(ROW_HASH))
    };
    let columns = &metadata.columns;
    columns.len() - columns.iter().rev().take_while(is_hash).count()
}

fn difference(column: &Column, wire: &WireColumn<'_>) -> Option<Property> {
    let said = wire.said;
    if said.name.as_ref().is_some_and(|name| !same_name(name, &column.name)) {
        return Some(Property::Name);
    }
    if !fits_type(column, wire) {
        return Some(Property::Type);
    }
    if said.unsigned.is_some_and(|unsigned| has_sign(column) && unsigned != column.is_unsigned()) {
        return Some(Property::Signedness);
    }
    if said.collation.is_some_and(|collation| !fits_charset(column, collation)) {
        return Some(Property::Charset);
    }
    if said.labels.as_ref().is_some_and(|labels| !fits_labels(column, labels)) {
        return Some(Property::Labels);
    }
    let dimensions = i64::from(column.length.unwrap_or(DEFAULT_DIMENSIONS));
    if said.dimensions.is_some_and(|wire| i64::try_from(wire) != Ok(dimensions)) {
        return Some(Property::Dimensions);
    }
    None
}

/// Whether the log has NULLs for a column that is NOT NULL in the definition. A column of the key is NOT NULL in the model
/// whatever was declared, as in Debezium's.
fn may_be_null(table: &Table, column: &Column, wire: &WireColumn<'_>) -> bool {
    let is_key = || table.primary_key.iter().any(|name| same_name(name, &column.name));
    wire.nullable && !column.optional && !is_key()
}

/// Whether a column of this definition can have that type on the wire.
fn fits_type(column: &Column, wire: &WireColumn<'_>) -> bool {
    let kind = wire.kind;
    // Nothing is known of such a column; decoding reports it.
    if matches!(kind, WireType::Unknown { .. } | WireType::Null) {
        return true;
    }
    let length = column.length;
    // The old temporal types have no fraction digits.
    let fraction = |wire: u8| length.unwrap_or(0) == i32::from(wire);
    match column.column_type() {
        ColumnType::TinyInt { .. } | ColumnType::Boolean => kind == WireType::Tiny,
        ColumnType::SmallInt { .. } => kind == WireType::Short,
        ColumnType::MediumInt { .. } => kind == WireType::Int24,
        ColumnType::Int { .. } => kind == WireType::Long,
        ColumnType::BigInt { .. } => kind == WireType::LongLong,
        ColumnType::Float => kind == WireType::Float,
        // REAL is a FLOAT under REAL_AS_FLOAT, which the definition does not keep.
        ColumnType::Double => {
            kind == WireType::Double
                || kind == WireType::Float && column.type_name.eq_ignore_ascii_case("REAL")
        }
        ColumnType::Decimal => {
            let digits = length.filter(|digits| *digits > 0).unwrap_or(10);
            matches!(kind, WireType::NewDecimal { precision, scale }
                if digits == i32::from(precision) && column.scale.unwrap_or(0) == i32::from(scale))
        }
        ColumnType::Bit => {
            // InnoDB stores whole bytes and says so, MyISAM says the bits.
            let declared = u16::try_from(length.unwrap_or(1)).unwrap_or(0);
            matches!(kind, WireType::Bit { bits }
                if bits == declared || bits == declared.next_multiple_of(8))
        }
        ColumnType::Char => matches!(kind, WireType::String { max_bytes }
            if holds(length.or(Some(1)), column, max_bytes.into())),
        ColumnType::Binary => matches!(kind, WireType::String { max_bytes }
            if length.unwrap_or(1) == i32::from(max_bytes)),
        ColumnType::VarChar => fits_varying(
            kind,
            |bytes| holds(length, column, bytes),
            || length.is_none_or(|length| widest(length, column) > MAX_VARCHAR_BYTES),
        ),
        ColumnType::VarBinary => {
            let declared = length.and_then(|length| u32::try_from(length).ok());
            fits_varying(
                kind,
                |bytes| declared.is_none_or(|declared| declared == bytes),
                || declared.is_none_or(|declared| declared > MAX_VARCHAR_BYTES),
            )
        }
        ColumnType::Text | ColumnType::Blob => matches!(kind,
            WireType::Blob { length_bytes } | WireType::BlobCompressed { length_bytes }
                if fits_blob(column, length_bytes)),
        ColumnType::Json => match wire.dialect {
            Dialect::MySql => matches!(kind, WireType::Json { .. }),
            // An alias of LONGTEXT.
            Dialect::MariaDb => matches!(
                kind,
                WireType::Blob { length_bytes: 4 } | WireType::BlobCompressed { length_bytes: 4 }
            ),
        },
        ColumnType::Date => kind == WireType::Date,
        ColumnType::Time => {
            matches!(kind, WireType::Time2 { fsp } if fraction(fsp))
                || kind == WireType::Time && fraction(0)
        }
        ColumnType::DateTime => {
            matches!(kind, WireType::DateTime2 { fsp } if fraction(fsp))
                || kind == WireType::DateTime && fraction(0)
        }
        ColumnType::Timestamp => {
            matches!(kind, WireType::Timestamp2 { fsp } if fraction(fsp))
                || kind == WireType::Timestamp && fraction(0)
        }
        ColumnType::Year => kind == WireType::Year,
        ColumnType::Enum => {
            let labels = column.enum_values.len();
            matches!(kind, WireType::Enum { bytes }
                if labels == 0 || bytes == if labels < 256 { 1 } else { 2 })
        }
        ColumnType::Set => {
            let labels = column.enum_values.len();
            let stored = if labels > MAX_SHORT_SET { 8 } else { labels.div_ceil(8) };
            matches!(kind, WireType::Set { bytes } if labels == 0 || usize::from(bytes) == stored)
        }
        ColumnType::Geometry => matches!(kind, WireType::Geometry { .. }),
        ColumnType::Vector => match wire.dialect {
            Dialect::MySql => matches!(kind, WireType::Vector { .. }),
            // A VARBINARY of four bytes per dimension.
            Dialect::MariaDb => matches!(kind, WireType::VarChar { max_bytes }
                if length.is_none_or(|length| i64::from(length) * 4 == i64::from(max_bytes))),
        },
        ColumnType::Uuid | ColumnType::Inet6 => kind == WireType::String { max_bytes: 16 },
        ColumnType::Inet4 => kind == WireType::String { max_bytes: 4 },
        ColumnType::Unknown => true,
    }
}

/// Whether the declared characters of a text column can take exactly `bytes` bytes.
fn holds(length: Option<i32>, column: &Column, bytes: u32) -> bool {
    let Some(length) = length else { return true };
    let Ok(characters) = u32::try_from(length) else { return true };
    let takes = |width: u32| characters.checked_mul(width) == Some(bytes);
    let known = column.charset.as_deref().and_then(bytes_per_character);
    length == LENGTH_FOR_ZERO && bytes == 0
        || match known {
            Some(width) => takes(width),
            None => (1..=4).any(takes),
        }
}

/// The most bytes that the declared characters of a text column may take.
fn widest(length: i32, column: &Column) -> u32 {
    let width = column.charset.as_deref().and_then(bytes_per_character).unwrap_or(4);
    u32::try_from(length).unwrap_or(u32::MAX).saturating_mul(width)
}

/// VARCHAR and VARBINARY: `holds` says whether a number of bytes fits, `overflows` whether the server may have made a TEXT
/// or BLOB of it.
fn fits_varying(kind: WireType, holds: impl Fn(u32) -> bool, overflows: impl Fn() -> bool) -> bool {
    let small = if let WireType::VarChar { max_bytes } = kind {
        Some(u32::from(max_bytes))
    } else if let WireType::VarCharCompressed { max_bytes } = kind {
        // One byte more than declared: how it is compressed.
        u32::from(max_bytes).checked_sub(1)
    } else {
        None
    };
    let large = matches!(
        kind,
        WireType::Blob { length_bytes: 2.. } | WireType::BlobCompressed { length_bytes: 2.. }
    );
    small.is_some_and(holds) || large && overflows()
}

/// TEXT and BLOB of all sizes. A length picks the smallest type that holds it. A TEXT grows to the next type when its
/// character set becomes a wider one, and keeps the definition's name; so a wider type fits.
fn fits_blob(column: &Column, length_bytes: u8) -> bool {
    let declared = u32::try_from(column.length.unwrap_or(0)).unwrap_or(0);
    let word = column.type_name.split(' ').next().unwrap_or_default().to_ascii_uppercase();
    let least = match word.as_str() {
        "TINYTEXT" | "TINYBLOB" => 1,
        "MEDIUMTEXT" | "MEDIUMBLOB" | "LONG" => 3,
        "LONGTEXT" | "LONGBLOB" => 4,
        _ => match declared {
            0 => 2,
            1..0x100 => 1,
            0x100..0x1_0000 => 2,
            0x1_0000..0x100_0000 => 3,
            _ => 4,
        },
    };
    length_bytes >= least
}

/// Whether the type can be UNSIGNED. A YEAR always is.
fn has_sign(column: &Column) -> bool {
    matches!(
        column.column_type(),
        ColumnType::TinyInt { .. }
            | ColumnType::Boolean
            | ColumnType::SmallInt { .. }
            | ColumnType::MediumInt { .. }
            | ColumnType::Int { .. }
            | ColumnType::BigInt { .. }
            | ColumnType::Float
            | ColumnType::Double
            | ColumnType::Decimal
    )
}

/// Whether a column of this definition can have that collation.
fn fits_charset(column: &Column, collation: u64) -> bool {
    match column.column_type() {
        ColumnType::Char
        | ColumnType::VarChar
        | ColumnType::Text
        | ColumnType::Enum
        | ColumnType::Set => {
            let (Some(model), Some(wire)) =
                (column.charset.as_deref(), charset_of_collation(collation))
            else {
                return true;
            };
            // `utf8` is utf8mb3 on MySQL, and on MariaDB what old_mode says.
            model.eq_ignore_ascii_case(wire)
                || model.eq_ignore_ascii_case("utf8") && matches!(wire, "utf8mb3" | "utf8mb4")
        }
        ColumnType::Binary | ColumnType::VarBinary | ColumnType::Blob => {
            collation == BINARY_COLLATION
        }
        ColumnType::TinyInt { .. }
        | ColumnType::Boolean
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Decimal
        | ColumnType::Bit
        | ColumnType::Date
        | ColumnType::Time
        | ColumnType::DateTime
        | ColumnType::Timestamp
        | ColumnType::Year
        | ColumnType::Json
        | ColumnType::Geometry
        | ColumnType::Vector
        | ColumnType::Uuid
        | ColumnType::Inet4
        | ColumnType::Inet6
        | ColumnType::Unknown => true,
    }
}

/// Whether labels are as many, and the same where their bytes are plain: the rest is in the column's character set, and
/// no text without decoding.
fn fits_labels(column: &Column, wire: &[&[u8]]) -> bool {
    let model = column.enum_labels();
    if model.is_empty() {
        return true;
    }
    if model.len() != wire.len() {
        return false;
    }
    let charset = column.charset.as_deref().unwrap_or_default();
    let utf8 = matches!(charset, "utf8" | "utf8mb3" | "utf8mb4");
    // Sets in which an ASCII byte may be another character, or several bytes are one, and `binary` without characters.
    let opaque = matches!(
        charset,
        "" | "binary"
            | "ucs2"
            | "utf16"
            | "utf16le"
            | "utf32"
            | "swe7"
            | "sjis"
            | "big5"
            | "gbk"
            | "cp932"
            | "gb18030"
    );
    model.iter().enumerate().all(|(index, model)| {
        let Some(label) = wire.get(index) else { return false };
        if opaque || !(utf8 || label.is_ascii() && model.is_ascii()) {
            return true;
        }
        // The server takes spaces off the end.
        let plain = model.trim_end_matches(' ');
        match std::str::from_utf8(label) {
            Ok(label) => label.trim_end_matches(' ') == plain,
            Err(_) => true,
        }
    })
}

/// A column of a definition, for people.
fn defined(column: &Column) -> String {
    let mut text = format!("`{}` {}", column.name, column.type_name);
    match (column.column_type(), column.length, column.scale) {
        (ColumnType::Enum | ColumnType::Set, _, _) => {
            text.push_str(&format!(" of {} labels", column.enum_values.len()));
        }
        (_, Some(length), Some(scale)) => text.push_str(&format!("({length},{scale})")),
        (_, Some(length), None) => text.push_str(&format!("({length})")),
        (_, None, _) => {}
    }
    if let Some(charset) = &column.charset {
        text.push_str(" CHARACTER SET ");
        text.push_str(charset);
    }
    text
}

/// The column for people, as near to SQL as the event allows.
impl fmt::Display for WireColumn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.said.name {
            write!(f, "`{name}` ")?;
        }
        let collation = self.said.collation;
        let charset = collation.and_then(charset_of_collation);
        let bytes = collation == Some(BINARY_COLLATION);
        let text_or_bytes = |text: &'static str, binary: &'static str, both: &'static str| {
            if bytes {
                binary
            } else if collation.is_some() {
                text
            } else {
                both
            }
        };
        // Characters where the set is known, else bytes.
        let sized = |f: &mut fmt::Formatter<'_>, max_bytes: u16| match charset
            .and_then(bytes_per_character)
        {
            Some(width) => write!(f, "({})", u32::from(max_bytes) / width),
            None => write!(f, " of {max_bytes} bytes"),
        };
        let fraction = |f: &mut fmt::Formatter<'_>, name: &str, fsp: u8| match fsp {
            0 => f.write_str(name),
            fsp => write!(f, "{name}({fsp})"),
        };
        let blob = |f: &mut fmt::Formatter<'_>, length_bytes: u8| {
            f.write_str(match length_bytes {
                1 => text_or_bytes("TINYTEXT", "TINYBLOB", "TINYTEXT or TINYBLOB"),
                2 => text_or_bytes("TEXT", "BLOB", "TEXT or BLOB"),
                3 => text_or_bytes("MEDIUMTEXT", "MEDIUMBLOB", "MEDIUMTEXT or MEDIUMBLOB"),
                _ => text_or_bytes("LONGTEXT", "LONGBLOB", "LONGTEXT or LONGBLOB"),
            })
        };
        let labels = |f: &mut fmt::Formatter<'_>, name: &str, width: u8| match &self.said.labels {
            Some(labels) => write!(f, "{name} of {} labels", labels.len()),
            None => write!(f, "{name} of {width} bytes"),
        };
        match self.kind {
            WireType::Tiny => f.write_str("TINYINT")?,
            WireType::Short => f.write_str("SMALLINT")?,
            WireType::Int24 => f.write_str("MEDIUMINT")?,
            WireType::Long => f.write_str("INT")?,
            WireType::LongLong => f.write_str("BIGINT")?,
            WireType::Float => f.write_str("FLOAT")?,
            WireType::Double => f.write_str("DOUBLE")?,
            WireType::Null => f.write_str("NULL")?,
            WireType::NewDecimal { precision, scale } => {
                write!(f, "DECIMAL({precision},{scale})")?;
            }
            WireType::Bit { bits } => write!(f, "BIT({bits})")?,
            WireType::Date => f.write_str("DATE")?,
            WireType::Year => f.write_str("YEAR")?,
            WireType::Time => f.write_str("TIME")?,
            WireType::DateTime => f.write_str("DATETIME")?,
            WireType::Timestamp => f.write_str("TIMESTAMP")?,
            WireType::Time2 { fsp } => fraction(f, "TIME", fsp)?,
            WireType::DateTime2 { fsp } => fraction(f, "DATETIME", fsp)?,
            WireType::Timestamp2 { fsp } => fraction(f, "TIMESTAMP", fsp)?,
            WireType::VarChar { max_bytes } => {
                f.write_str(text_or_bytes("VARCHAR", "VARBINARY", "VARCHAR or VARBINARY"))?;
                sized(f, max_bytes)?;
            }
            WireType::VarCharCompressed { max_bytes } => {
                f.write_str(text_or_bytes("VARCHAR", "VARBINARY", "VARCHAR or VARBINARY"))?;
                sized(f, max_bytes.saturating_sub(1))?;
                f.write_str(" COMPRESSED")?;
            }
            WireType::String { max_bytes } => {
                f.write_str(text_or_bytes("CHAR", "BINARY", "CHAR or BINARY"))?;
                sized(f, max_bytes)?;
            }
            WireType::Blob { length_bytes } => blob(f, length_bytes)?,
            WireType::BlobCompressed { length_bytes } => {
                blob(f, length_bytes)?;
                f.write_str(" COMPRESSED")?;
            }
            WireType::Enum { bytes } => labels(f, "ENUM", bytes)?,
            WireType::Set { bytes } => labels(f, "SET", bytes)?,
            WireType::Json { .. } => f.write_str("JSON")?,
            WireType::Geometry { .. } => f.write_str("GEOMETRY")?,
            WireType::Vector { .. } => match self.said.dimensions {
                Some(dimensions) => write!(f, "VECTOR({dimensions})")?,
                None => f.write_str("VECTOR")?,
            },
            WireType::Unknown { code } => write!(f, "type {code}")?,
            _ => f.write_str("an unknown type")?,
        }
        if self.said.unsigned == Some(true) && self.kind != WireType::Year {
            f.write_str(" UNSIGNED")?;
        }
        match (charset, collation) {
            _ if bytes => Ok(()),
            (Some(charset), _) => write!(f, " CHARACTER SET {charset}"),
            (None, Some(collation)) => write!(f, " COLLATION {collation}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
