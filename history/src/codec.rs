//! The bytes of a history record: one JSON object on one line, as Debezium writes and reads it.
//!
//! ```text
//! {"source":{"server":"inv"},"position":{…offset…},"ts_ms":1767225600123,"databaseName":"shop","ddl":"CREATE TABLE …",
//!  "tableChanges":[{"type":"CREATE","id":"\"shop\".\"item\"","table":{"defaultCharsetName":"utf8mb4",
//!  "primaryKeyColumnNames":["id"],"columns":[{"name":"id","jdbcType":4,"typeName":"INT","typeExpression":"INT",
//!  "charsetName":null,"position":1,"optional":false,"autoIncremented":false,"generated":false,"comment":null,
//!  "hasDefaultValue":false,"enumValues":[]}],"attributes":[]},"comment":null}]}
//! ```
//!
//! Sources: Debezium 3.6, `HistoryRecord`, `JsonTableChangeSerializer` (the history) and `ConnectTableChangeSerializer` (the
//! schema change records). Debezium writes a table's comment beside `table` and looks for it inside, so it loses the
//! comment; both places are read here.
//!
//! Which columns of a MariaDB table are generated is in no member of Debezium's, and is written as an attribute of the table:
//! `"attributes":[{"name":"holdfast.computed.columns","value":"[\"c\"]"}]`.
//!
//! A store that appends lines cannot make several of them appear at once. There each record of a group of two or more
//! has one more member, `"holdfast_group":"2/5"`, its number and the group's size, which Debezium ignores: see [`Group`].

mod definition;
mod line;

pub(crate) use definition::read_definition;
pub use definition::read_table_changes;
pub(crate) use line::RawChange;
pub use line::RecordLine;

use crate::json::{ObjectWriter, write_string, write_string_or_null};
use crate::offset::OffsetError;
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{Column, DefaultValue, Table};

/// The attribute of a table that names its generated columns, as a JSON array.
const COMPUTED_COLUMNS: &str = "holdfast.computed.columns";

/// The place of a record in the group that it was appended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// Number of the record in its group, from 1.
    pub index: u32,
    /// Records in the group, 2 or more.
    pub count: u32,
}

/// Appends `record` as one line of JSON, without a line break.
pub fn write_record(record: &HistoryRecord, group: Option<Group>, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    let mut source = ObjectWriter::new(object.member("source"));
    source.string("server", &record.source);
    source.end();
    record.position.write_json(object.member("position"));
    object.integer("ts_ms", record.ts_ms);
    object.string("databaseName", &record.database_name);
    if let Some(ddl) = &record.ddl {
        object.string("ddl", ddl);
    }
    write_table_changes(&record.table_changes, object.member("tableChanges"));
    if let Some(group) = group {
        object.string("holdfast_group", &format!("{}/{}", group.index, group.count));
    }
    object.end();
}

/// Reads one line.
///
/// # Errors
///
/// [`RecordError`], which names the member and never shows a value.
pub fn read_record(line: &str) -> Result<(HistoryRecord, Option<Group>), RecordError> {
    let line = RecordLine::parse(line)?;
    Ok((line.to_record()?, line.group))
}

/// The group of a line, told from its last bytes alone; right for every line that is a record.
pub(crate) fn peek_group(line: &[u8]) -> Option<Group> {
    const NAME: &[u8] = b",\"holdfast_group\":\"";
    // Two numbers of 32 bits, a slash, and what closes the string and the object.
    let tail = line.get(line.len().saturating_sub(NAME.len() + 23)..)?.strip_suffix(b"\"}")?;
    let start = tail.windows(NAME.len()).position(|window| window == NAME)?;
    let (index, count) =
        std::str::from_utf8(tail.get(start + NAME.len()..)?).ok()?.split_once('/')?;
    Some(Group { index: index.parse().ok()?, count: count.parse().ok()? })
}

/// Appends the `tableChanges` array of a history record.
pub fn write_table_changes(changes: &[TableChange], out: &mut Vec<u8>) {
    write_array(changes, out, |change, out| {
        let mut object = ObjectWriter::new(out);
        object.string("type", change_type(change));
        object.string("id", &change.id().quoted());
        match change {
            TableChange::Create(table) => write_definition(table, &mut object),
            TableChange::Alter { table, previous } => {
                if let Some(previous) = previous {
                    object.string("previousId", &previous.quoted());
                }
                write_definition(table, &mut object);
            }
            TableChange::Drop(_) => {}
        }
        object.end();
    });
}

/// Appends the `tableChanges` array of a schema change record, payload only: every member is there, unset ones are
/// null, and a rename's previous name is not told.
pub fn write_table_changes_connect(changes: &[TableChange], out: &mut Vec<u8>) {
    write_array(changes, out, |change, out| {
        let mut object = ObjectWriter::new(out);
        object.string("type", change_type(change));
        object.string("id", &change.id().quoted());
        let out = object.member("table");
        match change {
            TableChange::Create(table) | TableChange::Alter { table, .. } => {
                let mut members = ObjectWriter::new(out);
                write_string_or_null(
                    table.default_charset.as_deref(),
                    members.member("defaultCharsetName"),
                );
                write_strings(&table.primary_key, members.member("primaryKeyColumnNames"));
                let mut position = 0_u64;
                write_array(&table.columns, members.member("columns"), |column, out| {
                    position += 1;
                    write_column_connect(column, position, out);
                });
                write_string_or_null(table.comment.as_deref(), members.member("comment"));
                members.end();
            }
            TableChange::Drop(_) => out.extend_from_slice(b"null"),
        }
        object.end();
    });
}

/// Why a line is no history record. The line's file and number are added by the store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The line is no JSON object.
    #[error("not a JSON object (column {column})")]
    NotAnObject {
        /// Column of the first wrong byte, from 1; 0 where the line ends too early.
        column: usize,
    },
    /// The line is not UTF-8.
    #[error("not UTF-8 (after {valid} bytes)")]
    NotUtf8 {
        /// Bytes before the first wrong one.
        valid: usize,
    },
    /// A member that must be there is not.
    #[error("member '{member}' is missing")]
    Missing {
        /// Path of the member.
        member: String,
    },
    /// A member has another type or form than it must have.
    #[error("member '{member}' is not {expected}")]
    Wrong {
        /// Path of the member.
        member: String,
        /// What it must be.
        expected: &'static str,
    },
    /// The position is no offset.
    #[error("member 'position' cannot be read")]
    Position(#[source] OffsetError),
    /// A record of an append of several is not beside the others: the append was cut short and another writer went on.
    #[error(
        "record {index} of a group of {count} stands alone: the append was cut short, and lines were added after it"
    )]
    BrokenGroup {
        /// Number of the record in its group, from 1.
        index: u32,
        /// Records that the group must have.
        count: u32,
    },
    /// A record that is stored in parts lacks one.
    #[error("part {part} of it is missing")]
    MissingPart {
        /// Number of the part, from 0.
        part: u64,
    },
    /// A record is larger than any that is written.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The limit, bytes.
        limit: usize,
    },
}

impl RecordError {
    pub(crate) fn under(self, parent: &str) -> Self {
        match self {
            Self::Missing { member } => Self::Missing { member: format!("{parent}.{member}") },
            Self::Wrong { member, expected } => {
                Self::Wrong { member: format!("{parent}.{member}"), expected }
            }
            other @ (Self::NotAnObject { .. }
            | Self::NotUtf8 { .. }
            | Self::Position(_)
            | Self::BrokenGroup { .. }
            | Self::MissingPart { .. }
            | Self::TooLarge { .. }) => other,
        }
    }
}

fn write_definition(table: &Table, object: &mut ObjectWriter<'_>) {
    let mut members = ObjectWriter::new(object.member("table"));
    write_string_or_null(table.default_charset.as_deref(), members.member("defaultCharsetName"));
    write_strings(&table.primary_key, members.member("primaryKeyColumnNames"));
    let mut position = 0_u64;
    write_array(&table.columns, members.member("columns"), |column, out| {
        position += 1;
        write_column(column, position, out);
    });
    write_attributes(table, members.member("attributes"));
    members.end();
    write_string_or_null(table.comment.as_deref(), object.member("comment"));
}

/// What Debezium has no member for. It reads a table's attributes, and makes nothing of those it does not know.
fn write_attributes(table: &Table, out: &mut Vec<u8>) {
    let is_computed: Vec<String> = table
        .columns
        .iter()
        .filter(|column| column.is_computed)
        .map(|column| column.name.clone())
        .collect();
    if is_computed.is_empty() {
        out.extend_from_slice(b"[]");
        return;
    }
    let mut names = Vec::new();
    write_strings(&is_computed, &mut names);
    out.push(b'[');
    let mut object = ObjectWriter::new(out);
    object.string("name", COMPUTED_COLUMNS);
    object.string("value", &String::from_utf8_lossy(&names));
    object.end();
    out.push(b']');
}

fn write_column(column: &Column, position: u64, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.string("name", &column.name);
    object.integer("jdbcType", column.jdbc_type.0);
    object.string("typeName", &column.type_name);
    object.string("typeExpression", &column.type_name);
    write_string_or_null(column.charset.as_deref(), object.member("charsetName"));
    if let Some(length) = column.length {
        object.integer("length", length);
    }
    if let Some(scale) = column.scale {
        object.integer("scale", scale);
    }
    object.integer("position", position);
    object.boolean("optional", column.optional);
    object.boolean("autoIncremented", column.auto_incremented);
    object.boolean("generated", column.generated);
    write_string_or_null(column.comment.as_deref(), object.member("comment"));
    object.boolean("hasDefaultValue", column.default != DefaultValue::Absent);
    if let DefaultValue::Expression(expression) = &column.default {
        object.string("defaultValueExpression", expression);
    }
    write_strings(&column.enum_values, object.member("enumValues"));
    object.end();
}

fn write_column_connect(column: &Column, position: u64, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::new(out);
    object.string("name", &column.name);
    object.integer("jdbcType", column.jdbc_type.0);
    object.member("nativeType").extend_from_slice(b"null");
    object.string("typeName", &column.type_name);
    object.string("typeExpression", &column.type_name);
    write_string_or_null(column.charset.as_deref(), object.member("charsetName"));
    for (name, number) in [("length", column.length), ("scale", column.scale)] {
        match number {
            Some(number) => object.integer(name, number),
            None => object.member(name).extend_from_slice(b"null"),
        }
    }
    object.integer("position", position);
    object.boolean("optional", column.optional);
    object.boolean("autoIncremented", column.auto_incremented);
    object.boolean("generated", column.generated);
    write_string_or_null(column.comment.as_deref(), object.member("comment"));
    let expression = match &column.default {
        DefaultValue::Expression(expression) => Some(expression.as_str()),
        DefaultValue::Absent | DefaultValue::Null => None,
    };
    write_string_or_null(expression, object.member("defaultValueExpression"));
    let out = object.member("enumValues");
    if column.enum_values.is_empty() {
        out.extend_from_slice(b"null");
    } else {
        write_strings(&column.enum_values, out);
    }
    object.end();
}

fn write_strings(texts: &[String], out: &mut Vec<u8>) {
    write_array(texts, out, |text, out| write_string(text, out));
}

fn write_array<T>(items: &[T], out: &mut Vec<u8>, mut write: impl FnMut(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

const fn change_type(change: &TableChange) -> &'static str {
    match change {
        TableChange::Create(_) => "CREATE",
        TableChange::Alter { .. } => "ALTER",
        TableChange::Drop(_) => "DROP",
    }
}

#[cfg(test)]
mod tests;
