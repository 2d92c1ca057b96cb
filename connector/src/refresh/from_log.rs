//! A definition from what a table map says of its columns, with `binlog_row_metadata=FULL`.

use std::sync::Arc;

use holdfast_binlog::event::table_map::{ColumnMetadata, Dialect, TableMap};
use holdfast_binlog::row::WireType;
use holdfast_history::schema::{bytes_per_character, charset_of_collation};
use holdfast_history::{Table, TableId, cross_check};

use super::definitions;
use crate::config::Config;
use crate::convert::Charset;

/// The definition, if the log says enough and what it says fits itself.
///
/// Defaults, comments and whether a column may be NULL by more than the table map's bit are not in the log.
pub(crate) fn definition(config: &Config, map: &TableMap, dialect: Dialect) -> Option<Arc<Table>> {
    let metadata = map.optional_metadata(dialect).ok()?;
    let mut lines = Vec::new();
    let visible = cross_check::visible_columns(&metadata, dialect);
    for (index, column) in map.columns().iter().enumerate().take(visible) {
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
        // Of a character set that is not known here, all that is UTF-8 is right.
        let known = charset.and_then(Charset::named);
        let text = |label: &[u8]| match known {
            Some(charset) => Some(charset.decode(label).into_owned()),
            None => std::str::from_utf8(label).ok().map(str::to_owned),
        };
        let quoted = |label: &&[u8]| {
            Some(format!("'{}'", text(label)?.replace('\\', "\\\\").replace('\'', "''")))
        };
        let labels: Option<Vec<String>> = said.labels.as_ref()?.iter().map(quoted).collect();
        Some(format!("{name}({}){of_charset}", labels?.join(",")))
    };
    let blob = |length_bytes: u8| {
        let size = match length_bytes {
            1 => "TINY",
            2 => "",
            3 => "MEDIUM",
            4 => "LONG",
            _ => return None,
        };
        let kind = if is_binary { "BLOB" } else { "TEXT" };
        Some(format!("{size}{kind}{of_charset}"))
    };
    let varying = |max_bytes: u32| {
        if is_binary {
            format!("VARBINARY({max_bytes})")
        } else {
            format!("VARCHAR({}){of_charset}", max_bytes / width)
        }
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
        WireType::VarChar { max_bytes } => varying(max_bytes.into()),
        // One byte more than declared: how it is compressed.
        WireType::VarCharCompressed { max_bytes } => varying(u32::from(max_bytes).checked_sub(1)?),
        WireType::String { max_bytes } if is_binary => format!("BINARY({max_bytes})"),
        WireType::String { max_bytes } => {
            format!("CHAR({}){of_charset}", u32::from(max_bytes) / width)
        }
        WireType::Blob { length_bytes } | WireType::BlobCompressed { length_bytes } => {
            blob(length_bytes)?
        }
        WireType::Json { .. } => "JSON".to_owned(),
        WireType::Geometry { .. } => geometry(said.geometry_type).to_owned(),
        WireType::Vector { .. } => format!("VECTOR({})", said.dimensions?),
        WireType::Enum { .. } => labels("ENUM")?,
        WireType::Set { .. } => labels("SET")?,
        // What such a column was declared as can't be told.
        WireType::Null | WireType::Unknown { .. } | _ => return None,
    })
}

/// The type by its number in the metadata.
const fn geometry(kind: Option<u64>) -> &'static str {
    match kind {
        Some(1) => "POINT",
        Some(2) => "LINESTRING",
        Some(3) => "POLYGON",
        Some(4) => "MULTIPOINT",
        Some(5) => "MULTILINESTRING",
        Some(6) => "MULTIPOLYGON",
        Some(7) => "GEOMETRYCOLLECTION",
        Some(_) | None => "GEOMETRY",
    }
}
