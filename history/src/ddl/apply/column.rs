//! Column definitions as the model keeps them.

use super::super::ast::{Charset, ColumnDefinition, DefaultClause};
use super::super::parser::CURRENT_TIMESTAMP;
use super::super::{DdlContext, Flavor};
use crate::schema::{Column, ColumnType, DefaultValue, JdbcType};

/// The default that a TIMESTAMP NOT NULL has when nobody gives one.
const ZERO_TIMESTAMP: &str = "0000-00-00 00:00:00";

/// The character sets around a column.
pub(super) struct Charsets<'a> {
    /// Of the table.
    pub(super) table: Option<&'a str>,
    /// Of the database.
    pub(super) database: Option<&'a str>,
}

/// Builds the column that a definition makes.
pub(super) fn build(
    definition: &ColumnDefinition,
    charsets: &Charsets<'_>,
    context: &DdlContext,
) -> Column {
    let data_type = &definition.data_type;
    let jdbc_type = JdbcType::from_type_name(&data_type.name);
    let mut column = Column::new(definition.name.clone(), data_type.name.clone(), jdbc_type);
    column.length = data_type.length;
    column.scale = data_type.scale;
    column.enum_values.clone_from(&data_type.labels);
    if column.column_type().has_charset() {
        set_charset(&mut column, &data_type.charset, charsets);
    }
    if column.charset.as_deref() != Some("binary") {
        for label in &mut column.enum_values {
            trim_label(label);
            replace_unknown(label, column.charset.as_deref());
        }
    }
    let implied_not_null =
        context.implicit_timestamp_defaults && column.column_type() == ColumnType::Timestamp;
    column.optional = definition.nullable.unwrap_or(!implied_not_null) && !definition.primary_key;
    column.default = default_value(&definition.default, column.column_type());
    if column.optional && column.default == DefaultValue::Absent {
        column.default = DefaultValue::Null;
    } else if !column.optional && column.default == DefaultValue::Null {
        column.default = DefaultValue::Absent;
    }
    column.auto_incremented = definition.auto_increment || definition.on_update;
    column.generated = column.auto_incremented;
    column.is_computed = definition.is_computed && context.flavor == Flavor::MariaDb;
    if context.comments {
        column.comment.clone_from(&definition.comment);
    }
    column
}

/// A key column: NOT NULL, and no longer NULL by default.
pub(super) fn set_not_null(column: &mut Column) {
    column.optional = false;
    if column.default == DefaultValue::Null {
        column.default = DefaultValue::Absent;
    }
}

/// Gives a column another character set, as CONVERT TO does.
///
/// MariaDB's JSON is a LONGTEXT in utf8mb4, and is converted like one; its ENUM and SET in `binary` are left alone.
pub(super) fn convert_charset(column: &mut Column, charset: &str, flavor: Flavor) {
    if flavor == Flavor::MariaDb && column.charset.as_deref() == Some("binary") {
        return;
    }
    let is_text = flavor == Flavor::MariaDb && column.column_type() == ColumnType::Json;
    if is_text && charset != "utf8mb4" {
        column.type_name = "LONGTEXT".to_owned();
        column.jdbc_type = JdbcType::from_type_name(&column.type_name);
    }
    if column.charset.is_some() || (is_text && charset != "utf8mb4") {
        assign_charset(column, charset);
    }
}

/// The value of a DEFAULT clause as the model keeps it.
pub(super) fn default_value(clause: &DefaultClause, column_type: ColumnType) -> DefaultValue {
    match clause {
        DefaultClause::Absent => DefaultValue::Absent,
        DefaultClause::Null | DefaultClause::Opaque => DefaultValue::Null,
        DefaultClause::Text(text) => {
            let text = if matches!(column_type, ColumnType::Enum | ColumnType::Set) {
                text.trim_end_matches(' ').to_owned()
            } else if column_type == ColumnType::Bit {
                // Like the defaults that are written in base 2.
                text.parse::<u64>().map_or_else(|_| text.clone(), |bits| format!("{bits:b}"))
            } else {
                text.clone()
            };
            DefaultValue::Expression(text)
        }
        DefaultClause::Hex(digits) => {
            let number = u64::from_str_radix(digits, 16).ok();
            DefaultValue::Expression(number_default(digits, number, column_type))
        }
        DefaultClause::Bits(digits) => {
            let number = u64::from_str_radix(digits, 2).ok();
            let text = match (column_type, number) {
                (ColumnType::Bit, _) | (_, None) => digits.clone(),
                (_, Some(number)) => {
                    number_default(&format!("{number:x}"), Some(number), column_type)
                }
            };
            DefaultValue::Expression(text)
        }
    }
}

/// `x'…'`, `0x…` and `b'…'` as the server takes them: a number for numbers, bits for BIT, else bytes, which are text
/// where they are UTF-8. `hex` are the digits in base 16.
fn number_default(hex: &str, number: Option<u64>, column_type: ColumnType) -> String {
    let text = match column_type {
        ColumnType::Bit => number.map(|number| format!("{number:b}")),
        ColumnType::Char | ColumnType::VarChar | ColumnType::Enum | ColumnType::Set => {
            let odd = if hex.len() % 2 == 1 { "0" } else { "" };
            let hex = format!("{odd}{hex}");
            let bytes = (0..hex.len())
                .step_by(2)
                .map(|at| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
            bytes.collect::<Option<Vec<u8>>>().and_then(|bytes| String::from_utf8(bytes).ok())
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
        | ColumnType::Year => number.map(|number| number.to_string()),
        // By their digits, as Debezium keeps them.
        ColumnType::Binary
        | ColumnType::VarBinary
        | ColumnType::Text
        | ColumnType::Blob
        | ColumnType::Date
        | ColumnType::Time
        | ColumnType::DateTime
        | ColumnType::Timestamp
        | ColumnType::Json
        | ColumnType::Geometry
        | ColumnType::Vector
        | ColumnType::Uuid
        | ColumnType::Inet4
        | ColumnType::Inet6
        | ColumnType::Unknown => None,
    };
    text.unwrap_or_else(|| hex.to_owned())
}

/// Takes the spaces off the end of a label, as the servers do in every character set but `binary`
/// (`mysql_prepare_create_table`, `sql/sql_table.cc`).
fn trim_label(label: &mut String) {
    if let Some(inner) = label.strip_suffix('\'')
        && inner.ends_with(' ')
    {
        *label = format!("{}'", inner.trim_end_matches(' '));
    }
}

/// Puts `?` for what the character set can't hold, as the servers do, as far as that needs no table of it.
fn replace_unknown(label: &mut String, charset: Option<&str>) {
    let last = match charset {
        Some("ascii") => '\x7f',
        Some("utf8" | "utf8mb3" | "ucs2") => '\u{ffff}',
        Some(_) | None => return,
    };
    if label.chars().any(|c| c > last) {
        *label = label.chars().map(|c| if c > last { '?' } else { c }).collect();
    }
}

/// What the servers put where a TIMESTAMP has no default: always with `explicit_defaults_for_timestamp=OFF`, and on
/// MariaDB for ON UPDATE too (`promote_first_timestamp_column` in `sql/sql_table.cc`). `is_new` tells which columns
/// the statement defines; those that were there have their defaults.
pub(super) fn set_timestamp_defaults(
    columns: &mut [Column],
    context: &DdlContext,
    is_new: impl Fn(usize, &Column) -> bool,
) {
    let mut first = true;
    for (index, column) in columns.iter_mut().enumerate() {
        if column.column_type() != ColumnType::Timestamp || column.is_hidden() {
            continue;
        }
        let is_first = std::mem::take(&mut first);
        if column.optional || column.default != DefaultValue::Absent || !is_new(index, column) {
            continue;
        }
        if context.implicit_timestamp_defaults && is_first && !column.auto_incremented {
            column.default = DefaultValue::Expression(CURRENT_TIMESTAMP.to_owned());
            column.auto_incremented = true;
            column.generated = true;
        } else if context.implicit_timestamp_defaults
            || (context.flavor == Flavor::MariaDb && column.auto_incremented)
        {
            column.default = DefaultValue::Expression(ZERO_TIMESTAMP.to_owned());
        }
    }
}

fn set_charset(column: &mut Column, given: &Charset, charsets: &Charsets<'_>) {
    let national = matches!(column.jdbc_type, JdbcType::NCHAR | JdbcType::NVARCHAR);
    let charset = match given {
        _ if national => Some("utf8"),
        Charset::Named(name) => Some(name.as_str()),
        Charset::Database => charsets.database.or(charsets.table),
        Charset::Inherited => charsets.table,
    };
    match charset {
        Some(charset) => assign_charset(column, charset),
        None => column.charset = None,
    }
}

/// The server makes binary types of character types in the character set `binary`.
fn assign_charset(column: &mut Column, charset: &str) {
    let column_type = column.column_type();
    if charset != "binary" || matches!(column_type, ColumnType::Enum | ColumnType::Set) {
        column.charset = Some(charset.to_owned());
        return;
    }
    let type_name = if column_type == ColumnType::Char {
        column.length.get_or_insert(1);
        "BINARY"
    } else if column_type == ColumnType::VarChar {
        "VARBINARY"
    } else {
        match column.type_name.split(' ').next() {
            Some("TINYTEXT") => "TINYBLOB",
            Some("MEDIUMTEXT" | "LONG") => "MEDIUMBLOB",
            Some("LONGTEXT") => "LONGBLOB",
            _ => "BLOB",
        }
    };
    column.type_name = type_name.to_owned();
    column.jdbc_type = JdbcType::from_type_name(type_name);
    column.charset = None;
}
