//! Column definitions as the model keeps them.

use super::super::ast::{Charset, ColumnDefinition, DefaultClause};
use crate::schema::{Column, ColumnType, DefaultValue, JdbcType};

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
    comments: bool,
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
    column.optional = definition.nullable.unwrap_or(true) && !definition.primary_key;
    column.default = default_value(&definition.default, column.column_type());
    if column.optional && column.default == DefaultValue::Absent {
        column.default = DefaultValue::Null;
    } else if !column.optional && column.default == DefaultValue::Null {
        column.default = DefaultValue::Absent;
    }
    column.auto_incremented = definition.auto_increment || definition.on_update;
    column.generated = column.auto_incremented;
    if comments {
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
pub(super) fn convert_charset(column: &mut Column, charset: &str) {
    if column.charset.is_some() {
        assign_charset(column, charset);
    }
}

/// The value of a DEFAULT clause as the model keeps it.
pub(super) fn default_value(clause: &DefaultClause, column_type: ColumnType) -> DefaultValue {
    match clause {
        DefaultClause::Absent => DefaultValue::Absent,
        DefaultClause::Null | DefaultClause::Opaque => DefaultValue::Null,
        DefaultClause::Text(text) => DefaultValue::Expression(text.clone()),
        DefaultClause::Hex(digits) => DefaultValue::Expression(hex_default(digits, column_type)),
    }
}

/// `0x…` as the server takes it: a number for numbers, bits for BIT, else bytes, which are text where they are UTF-8.
fn hex_default(digits: &str, column_type: ColumnType) -> String {
    let number = u64::from_str_radix(digits, 16).ok();
    let text = match column_type {
        ColumnType::Bit => number.map(|number| format!("{number:b}")),
        ColumnType::Char | ColumnType::VarChar | ColumnType::Enum | ColumnType::Set => {
            let odd = if digits.len() % 2 == 1 { "0" } else { "" };
            let digits = format!("{odd}{digits}");
            let bytes = (0..digits.len()).step_by(2).map(|at| {
                digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())
            });
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
        // Like `x'…'`, which Debezium keeps by its digits.
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
    text.unwrap_or_else(|| digits.to_owned())
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
