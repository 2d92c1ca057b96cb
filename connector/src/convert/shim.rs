//! What the table model will tell of a column itself.

use holdfast_history::schema::{Column, ColumnType};

use super::enum_set::unescape;

/// Methods that [`Column`] is getting.
pub(crate) trait ColumnExt {
    fn column_type(&self) -> ColumnType;
    fn enum_labels(&self) -> Vec<String>;
}

impl ColumnExt for Column {
    fn column_type(&self) -> ColumnType {
        from_type_name(&self.type_name, self.length, self.scale)
    }

    fn enum_labels(&self) -> Vec<String> {
        let inner = |text: &String| {
            let text = text.strip_prefix('\'').unwrap_or(text);
            text.strip_suffix('\'').unwrap_or(text).replace("''", "'")
        };
        self.enum_values.iter().map(|text| unescape(&inner(text))).collect()
    }
}

fn from_type_name(type_name: &str, length: Option<i32>, scale: Option<i32>) -> ColumnType {
    let upper = type_name.to_ascii_uppercase();
    let mut words = upper.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let has = |word: &str| rest.contains(&word);
    let unsigned = has("UNSIGNED") || has("ZEROFILL");
    match first {
        "TINYINT" | "INT1" => ColumnType::TinyInt { unsigned },
        "BOOL" | "BOOLEAN" => ColumnType::Boolean,
        "SMALLINT" | "INT2" => ColumnType::SmallInt { unsigned },
        "MEDIUMINT" | "INT3" | "MIDDLEINT" => ColumnType::MediumInt { unsigned },
        "INT" | "INTEGER" | "INT4" => ColumnType::Int { unsigned },
        "BIGINT" | "INT8" => ColumnType::BigInt { unsigned },
        "SERIAL" => ColumnType::BigInt { unsigned: true },
        "FLOAT" | "FLOAT4" => match length {
            Some(25..) if scale.is_none() => ColumnType::Double,
            _ => ColumnType::Float,
        },
        "DOUBLE" | "FLOAT8" | "REAL" => ColumnType::Double,
        "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => ColumnType::Decimal,
        "BIT" => ColumnType::Bit,
        "CHAR" | "CHARACTER" | "NCHAR" | "NATIONAL" => {
            if has("VARYING") || has("VARCHAR") || has("VARCHARACTER") {
                ColumnType::VarChar
            } else {
                ColumnType::Char
            }
        }
        "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => ColumnType::VarChar,
        "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" => ColumnType::Text,
        "LONG" => {
            if has("VARBINARY") {
                ColumnType::Blob
            } else {
                ColumnType::Text
            }
        }
        "BINARY" => ColumnType::Binary,
        "VARBINARY" => ColumnType::VarBinary,
        "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => ColumnType::Blob,
        "DATE" => ColumnType::Date,
        "TIME" => ColumnType::Time,
        "DATETIME" => ColumnType::DateTime,
        "TIMESTAMP" => ColumnType::Timestamp,
        "YEAR" => ColumnType::Year,
        "ENUM" => ColumnType::Enum,
        "SET" => ColumnType::Set,
        "JSON" => ColumnType::Json,
        "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
        | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => ColumnType::Geometry,
        "VECTOR" => ColumnType::Vector,
        "UUID" => ColumnType::Uuid,
        "INET4" => ColumnType::Inet4,
        "INET6" => ColumnType::Inet6,
        _ => ColumnType::Unknown,
    }
}
