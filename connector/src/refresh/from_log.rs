//! A definition from what a table map says of its columns, with `binlog_row_metadata=FULL`.

use std::sync::Arc;

use holdfast_binlog::event::table_map::{ColumnMetadata, Dialect, TableMap};
use holdfast_binlog::row::WireType;
use holdfast_history::schema::{bytes_per_character, charset_of_collation};
use holdfast_history::{Table, TableId, cross_check};

use super::definitions;
use crate::config::Config;

/// The definition, if the log says enough and what it says fits itself.
///
/// Defaults, comments and whether a column may be NULL by more than the table map's bit are not in the log.
pub(super) fn definition(config: &Config, map: &TableMap, dialect: Dialect) -> Option<Arc<Table>> {
    let metadata = map.optional_metadata(dialect).ok()?;
    let mut lines = Vec::new();
    for (index, column) in map.columns().iter().enumerate() {
        let said = metadata.columns.get(index)?;
        let name = said.name.as_deref()?.replace('`', "``");
        let null = if column.nullable { "" } else { " NOT NULL" };
        lines.push(format!("  `{name}` {}{null}", type_text(column.wire_type, said)?));
    }
    if let Some(key) = metadata.primary_key.as_ref().filter(|key| !key.is_empty()) {
        let names: Option<Vec<String>> = key
            .iter()
            .map(|part| {
                let name = metadata.columns.get(part.column)?.name.as_deref()?;
                Some(format!("`{}`", name.replace('`', "``")))
            })
            .collect();
        lines.push(format!("  PRIMARY KEY ({})", names?.join(",")));
    }
    let id = TableId::new(map.database(), map.table());
    let name = id.table.replace('`', "``");
    let sql = format!("CREATE TABLE `{name}` (\n{}\n)", lines.join(",\n"));
    let table = definitions::parse(config, &id, &sql).ok()?;
    cross_check::check(&table, map, dialect).is_ok().then_some(table)
}

fn type_text(wire: WireType, said: &ColumnMetadata<'_>) -> Option<String> {
    let charset = said.collation.and_then(charset_of_collation);
    let is_binary = charset.is_none_or(|charset| charset == "binary");
    let of_charset = match charset {
        Some(charset) if !is_binary => format!(" CHARACTER SET {charset}"),
        Some(_) | None => String::new(),
    };
    let width = charset.and_then(bytes_per_character).unwrap_or(1).max(1);
    let sign = if said.unsigned == Some(true) { " UNSIGNED" } else { "" };
    let with_digits = |name: &str, fsp: u8| {
        if fsp == 0 { name.to_owned() } else { format!("{name}({fsp})") }
    };
    let labels = |name: &str| {
        let labels = said.labels.as_ref()?;
        let labels: Option<Vec<String>> = labels
            .iter()
            .map(|label| {
                Some(format!("'{}'", std::str::from_utf8(label).ok()?.replace('\'', "''")))
            })
            .collect();
        Some(format!("{name}({}){of_charset}", labels?.join(",")))
    };
    Some(match wire {
        WireType::Tiny => format!("TINYINT{sign}"),
        WireType::Short => format!("SMALLINT{sign}"),
        WireType::Int24 => format!("MEDIUMINT{sign}"),
        WireType::Long => format!("INT{sign}"),
        WireType::LongLong => format!("BIGINT{sign}"),
        WireType::Float => format!("FLOAT{sign}"),
        WireType::Double => format!("DOUBLE{sign}"),
        WireType::NewDecimal { precision, scale } => format!("DECIMAL({precision},{scale}){sign}"),
        WireType::Timestamp => "TIMESTAMP".to_owned(),
        WireType::Timestamp2 { fsp } => with_digits("TIMESTAMP", fsp),
        WireType::Date => "DATE".to_owned(),
        WireType::Time => "TIME".to_owned(),
        WireType::Time2 { fsp } => with_digits("TIME", fsp),
        WireType::DateTime => "DATETIME".to_owned(),
        WireType::DateTime2 { fsp } => with_digits("DATETIME", fsp),
        WireType::Year => "YEAR".to_owned(),
        WireType::Bit { bits } => format!("BIT({bits})"),
        WireType::VarChar { max_bytes } if is_binary => format!("VARBINARY({max_bytes})"),
        WireType::VarChar { max_bytes } => {
            format!("VARCHAR({}){of_charset}", u32::from(max_bytes) / width)
        }
        WireType::String { max_bytes } if is_binary => format!("BINARY({max_bytes})"),
        WireType::String { max_bytes } => {
            format!("CHAR({}){of_charset}", u32::from(max_bytes) / width)
        }
        WireType::Blob { length_bytes } => {
            let size = match length_bytes {
                1 => "TINY",
                2 => "",
                3 => "MEDIUM",
                4 => "LONG",
                _ => return None,
            };
            let kind = if is_binary { "BLOB" } else { "TEXT" };
            format!("{size}{kind}{of_charset}")
        }
        WireType::Json { .. } => "JSON".to_owned(),
        WireType::Geometry { .. } => "GEOMETRY".to_owned(),
        WireType::Enum { .. } => labels("ENUM")?,
        WireType::Set { .. } => labels("SET")?,
        // What such a column was declared as can't be told.
        WireType::VarCharCompressed { .. }
        | WireType::BlobCompressed { .. }
        | WireType::Vector { .. }
        | WireType::Null
        | WireType::Unknown { .. }
        | _ => return None,
    })
}
