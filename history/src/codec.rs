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
//! A store that appends lines cannot make several of them appear at once. There each record of a group of two or more
//! has one more member, `"holdfast_group":"2/5"`, its number and the group's size, which Debezium ignores: see [`Group`].

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::json::{Members, ObjectWriter, write_string, write_string_or_null};
use crate::offset::{OffsetError, SourceOffset};
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{Column, DefaultValue, JdbcType, Table, TableId};

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

/// A line of which only what decides about it has been read: most of a long history is definitions that a later record
/// replaces, and those need no more than their tables' names.
#[derive(Debug)]
pub struct RecordLine<'a> {
    /// The record's `source`.
    pub source: String,
    /// The record's `position`.
    pub position: SourceOffset,
    /// Its place in the append.
    pub group: Option<Group>,
    members: Members<'a>,
}

impl<'a> RecordLine<'a> {
    /// Reads source, position and group, and checks that the rest is JSON.
    ///
    /// # Errors
    ///
    /// [`RecordError`], which names the member and never shows a value.
    pub fn parse(line: &'a str) -> Result<Self, RecordError> {
        let members: Members<'_> = serde_json::from_str(line)
            .map_err(|error| RecordError::NotAnObject { column: error.column() })?;
        let (mut source, mut position, mut group) = (None, None, None);
        for (name, raw) in &members.0 {
            match name.as_str() {
                "source" => source = read_source(&parse(raw, "source")?)?,
                "position" if raw.get() != "null" => {
                    position =
                        Some(SourceOffset::from_json(raw.get()).map_err(RecordError::Position)?);
                }
                "holdfast_group" => group = read_group(&parse(raw, "holdfast_group")?)?,
                _ => {}
            }
        }
        Ok(Self {
            source: source.ok_or_else(|| missing("source.server"))?,
            position: position.ok_or_else(|| missing("position"))?,
            group,
            members,
        })
    }

    /// The tables that the definitions name, the former names of renamed ones among them; the definitions themselves are
    /// stepped over.
    ///
    /// # Errors
    ///
    /// [`RecordError`] for a member `tableChanges` that is no list of changes.
    pub fn table_ids(&self) -> Result<Vec<TableId>, RecordError> {
        #[derive(Deserialize)]
        struct Ids {
            id: String,
            #[serde(rename = "previousId")]
            previous: Option<String>,
        }
        let Some(raw) = self.member("tableChanges") else { return Ok(Vec::new()) };
        let changes: Option<Vec<Ids>> = serde_json::from_str(raw.get())
            .map_err(|_| wrong("tableChanges", "a list of changes of named tables"))?;
        let names = changes
            .into_iter()
            .flatten()
            .flat_map(|change| std::iter::once(change.id).chain(change.previous));
        names
            .map(|name| {
                name.parse().map_err(|_| wrong("tableChanges", "a list of changes of named tables"))
            })
            .collect()
    }

    /// The whole record.
    ///
    /// # Errors
    ///
    /// [`RecordError`], which names the member and never shows a value.
    pub fn to_record(&self) -> Result<HistoryRecord, RecordError> {
        let mut record = HistoryRecord {
            source: self.source.clone(),
            position: self.position.clone(),
            ts_ms: 0,
            database_name: String::new(),
            ddl: None,
            table_changes: Vec::new(),
        };
        for (name, raw) in &self.members.0 {
            match name.as_str() {
                "ts_ms" => {
                    let value = parse(raw, "ts_ms")?;
                    if !value.is_null() {
                        record.ts_ms =
                            value.as_i64().ok_or_else(|| wrong("ts_ms", "a whole number"))?;
                    }
                }
                "databaseName" => {
                    record.database_name =
                        string(&parse(raw, "databaseName")?, "databaseName")?.unwrap_or_default();
                }
                "ddl" => record.ddl = string(&parse(raw, "ddl")?, "ddl")?,
                "tableChanges" => {
                    record.table_changes = read_table_changes(&parse(raw, "tableChanges")?)?
                }
                _ => {}
            }
        }
        Ok(record)
    }

    fn member(&self, wanted: &str) -> Option<&'a RawValue> {
        self.members.0.iter().rev().find(|(name, _)| name == wanted).map(|(_, raw)| *raw)
    }
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

/// Reads a `tableChanges` array, in the form of the history or of the schema change records.
///
/// # Errors
///
/// [`RecordError`], which names the member and never shows a value.
pub fn read_table_changes(value: &Value) -> Result<Vec<TableChange>, RecordError> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let changes = value.as_array().ok_or_else(|| wrong("tableChanges", "an array"))?;
    let mut read = Vec::with_capacity(changes.len());
    for (index, change) in changes.iter().enumerate() {
        read.push(
            read_change(change).map_err(|error| error.under(&format!("tableChanges[{index}]")))?,
        );
    }
    Ok(read)
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
    fn under(self, parent: &str) -> Self {
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
    members.member("attributes").extend_from_slice(b"[]");
    members.end();
    write_string_or_null(table.comment.as_deref(), object.member("comment"));
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

fn read_source(value: &Value) -> Result<Option<String>, RecordError> {
    if value.is_null() {
        return Ok(None);
    }
    let source = value.as_object().ok_or_else(|| wrong("source", "an object"))?;
    optional_string(source, "server").map_err(|error| error.under("source"))
}

fn read_group(value: &Value) -> Result<Option<Group>, RecordError> {
    let parsed = value.as_str().and_then(|text| {
        let (index, count) = text.split_once('/')?;
        let group = Group { index: index.parse().ok()?, count: count.parse().ok()? };
        (group.index >= 1 && group.index <= group.count).then_some(group)
    });
    match parsed {
        Some(group) => Ok(Some(group)),
        None => Err(wrong("holdfast_group", "a number and a count")),
    }
}

fn read_change(value: &Value) -> Result<TableChange, RecordError> {
    let change = value.as_object().ok_or_else(|| wrong("", "an object"))?;
    let id = read_id(change, "id")?.ok_or_else(|| missing("id"))?;
    let definition = |id: TableId| -> Result<Arc<Table>, RecordError> {
        let table =
            change.get("table").filter(|table| !table.is_null()).ok_or_else(|| missing("table"))?;
        let table = table.as_object().ok_or_else(|| wrong("table", "an object"))?;
        let beside = optional_string(change, "comment")?;
        let read = read_table(id, table, beside).map_err(|error| error.under("table"))?;
        Ok(Arc::new(read))
    };
    match required_string(change, "type")?.as_str() {
        "CREATE" => Ok(TableChange::Create(definition(id)?)),
        "ALTER" => Ok(TableChange::Alter {
            table: definition(id)?,
            previous: read_id(change, "previousId")?,
        }),
        "DROP" => Ok(TableChange::Drop(id)),
        _ => Err(wrong("type", "one of CREATE, ALTER, DROP")),
    }
}

fn read_id(
    change: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<TableId>, RecordError> {
    let Some(text) = optional_string(change, name)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| wrong(name, "a quoted database and table name"))
}

fn read_table(
    id: TableId,
    table: &Map<String, Value>,
    beside: Option<String>,
) -> Result<Table, RecordError> {
    let columns = match table.get("columns") {
        None | Some(Value::Null) => return Err(missing("columns")),
        Some(columns) => columns.as_array().ok_or_else(|| wrong("columns", "an array"))?,
    };
    let mut placed = Vec::with_capacity(columns.len());
    for (index, column) in columns.iter().enumerate() {
        placed
            .push(read_column(column).map_err(|error| error.under(&format!("columns[{index}]")))?);
    }
    placed.sort_by_key(|(position, _)| *position);
    let mut read = Vec::with_capacity(placed.len());
    for (position, column) in placed {
        read.push(column);
        if u64::try_from(read.len()) != Ok(position) {
            return Err(wrong("columns", "a list with the positions 1, 2, 3 and so on"));
        }
    }
    let inside = optional_string(table, "comment")?;
    Ok(Table {
        id,
        columns: read,
        primary_key: optional_strings(table, "primaryKeyColumnNames")?,
        default_charset: optional_string(table, "defaultCharsetName")?,
        comment: beside.or(inside),
    })
}

fn read_column(value: &Value) -> Result<(u64, Column), RecordError> {
    let column = value.as_object().ok_or_else(|| wrong("", "an object"))?;
    let type_name = match optional_string(column, "typeName")? {
        Some(name) => name,
        None => required_string(column, "typeExpression").map_err(|_| missing("typeName"))?,
    };
    let jdbc_type = optional_i32(column, "jdbcType")?.ok_or_else(|| missing("jdbcType"))?;
    let position = match column.get("position") {
        None | Some(Value::Null) => return Err(missing("position")),
        Some(position) => position.as_u64().ok_or_else(|| wrong("position", "a whole number"))?,
    };
    let default = match optional_string(column, "defaultValueExpression")? {
        Some(expression) => DefaultValue::Expression(expression),
        None if optional_boolean(column, "hasDefaultValue")?.unwrap_or(false) => DefaultValue::Null,
        None => DefaultValue::Absent,
    };
    let read = Column {
        name: required_string(column, "name")?,
        type_name,
        jdbc_type: JdbcType(jdbc_type),
        length: optional_i32(column, "length")?,
        scale: optional_i32(column, "scale")?,
        charset: optional_string(column, "charsetName")?,
        optional: required_boolean(column, "optional")?,
        auto_incremented: required_boolean(column, "autoIncremented")?,
        generated: required_boolean(column, "generated")?,
        default,
        comment: optional_string(column, "comment")?,
        enum_values: optional_strings(column, "enumValues")?,
    };
    Ok((position, read))
}

fn parse(raw: &RawValue, name: &str) -> Result<Value, RecordError> {
    serde_json::from_str(raw.get()).map_err(|_| wrong(name, "a JSON value"))
}

fn string(value: &Value, name: &str) -> Result<Option<String>, RecordError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong(name, "a string"))
        }
    }
}

fn optional_string(object: &Map<String, Value>, name: &str) -> Result<Option<String>, RecordError> {
    object.get(name).map_or(Ok(None), |value| string(value, name))
}

fn required_string(object: &Map<String, Value>, name: &str) -> Result<String, RecordError> {
    optional_string(object, name)?.ok_or_else(|| missing(name))
}

fn optional_strings(object: &Map<String, Value>, name: &str) -> Result<Vec<String>, RecordError> {
    let Some(value) = object.get(name).filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let items = value.as_array().ok_or_else(|| wrong(name, "an array"))?;
    let text = |item: &Value| {
        item.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "an array of strings"))
    };
    items.iter().map(text).collect()
}

fn optional_boolean(object: &Map<String, Value>, name: &str) -> Result<Option<bool>, RecordError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_bool().map(Some).ok_or_else(|| wrong(name, "true or false")),
    }
}

fn required_boolean(object: &Map<String, Value>, name: &str) -> Result<bool, RecordError> {
    optional_boolean(object, name)?.ok_or_else(|| missing(name))
}

fn optional_i32(object: &Map<String, Value>, name: &str) -> Result<Option<i32>, RecordError> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
            .map(Some)
            .ok_or_else(|| wrong(name, "a whole number of 32 bits")),
    }
}

fn missing(member: &str) -> RecordError {
    RecordError::Missing { member: member.to_owned() }
}

fn wrong(member: &str, expected: &'static str) -> RecordError {
    RecordError::Wrong { member: member.to_owned(), expected }
}

#[cfg(test)]
mod tests;
