//! The definitions in a record, read. Each is read twice over: straight into its type, which is fast and takes what
//! Debezium and this crate write, and, where that fails, member by member, which takes more and says what is wrong. Both
//! give the same for what both take.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{COMPUTED_COLUMNS, RecordError};
use crate::json::Object;
use crate::record::TableChange;
use crate::schema::{Column, DefaultValue, JdbcType, Table, TableId};

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

/// Reads the member `table` of a change, with the comment that may stand beside it.
pub(crate) fn read_definition(
    id: TableId,
    table: &str,
    beside: Option<String>,
) -> Result<Table, RecordError> {
    if let Ok(read) = serde_json::from_str::<Object<PlainTable>>(table)
        && let Some(read) = read.0.into_table(&id, &beside)
    {
        return Ok(read);
    }
    let table: Value = serde_json::from_str(table).map_err(|_| wrong("table", "a JSON value"))?;
    let table = table.as_object().ok_or_else(|| wrong("table", "an object"))?;
    read_table(id, table, beside).map_err(|error| error.under("table"))
}

/// A definition as it is written. Anything else, a member that comes twice among it, is left to the slow way.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainTable {
    default_charset_name: Option<String>,
    primary_key_column_names: Option<Vec<String>>,
    columns: Vec<Object<PlainColumn>>,
    attributes: Option<Vec<IgnoredAny>>,
    comment: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainColumn {
    name: String,
    jdbc_type: i32,
    type_name: String,
    charset_name: Option<String>,
    length: Option<i32>,
    scale: Option<i32>,
    position: u64,
    optional: bool,
    auto_incremented: bool,
    generated: bool,
    comment: Option<String>,
    has_default_value: Option<bool>,
    default_value_expression: Option<String>,
    enum_values: Option<Vec<String>>,
}

impl PlainTable {
    /// `None` when the columns are not in their order, or there are attributes.
    fn into_table(self, id: &TableId, beside: &Option<String>) -> Option<Table> {
        if self.attributes.is_some_and(|attributes| !attributes.is_empty()) {
            return None;
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        for (place, Object(column)) in (1_u64..).zip(self.columns) {
            if column.position != place {
                return None;
            }
            columns.push(column.into_column());
        }
        Some(Table {
            id: id.clone(),
            columns,
            primary_key: self.primary_key_column_names.unwrap_or_default(),
            default_charset: self.default_charset_name,
            comment: beside.clone().or(self.comment),
        })
    }
}

impl PlainColumn {
    fn into_column(self) -> Column {
        let default = match self.default_value_expression {
            Some(expression) => DefaultValue::Expression(expression),
            None if self.has_default_value == Some(true) => DefaultValue::Null,
            None => DefaultValue::Absent,
        };
        Column {
            name: self.name,
            type_name: self.type_name,
            jdbc_type: JdbcType(self.jdbc_type),
            length: self.length,
            scale: self.scale,
            charset: self.charset_name,
            optional: self.optional,
            auto_incremented: self.auto_incremented,
            generated: self.generated,
            is_computed: false,
            default,
            comment: self.comment,
            enum_values: self.enum_values.unwrap_or_default(),
        }
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
    for name in computed_columns(table)? {
        for column in read.iter_mut().filter(|column| column.name == name) {
            column.is_computed = true;
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

/// The columns that the attributes of a table call generated.
fn computed_columns(table: &Map<String, Value>) -> Result<Vec<String>, RecordError> {
    let Some(attributes) = table.get("attributes").and_then(Value::as_array) else {
        return Ok(Vec::new());
    };
    let value = attributes
        .iter()
        .find(|attribute| attribute.get("name").and_then(Value::as_str) == Some(COMPUTED_COLUMNS))
        .and_then(|attribute| attribute.get("value").and_then(Value::as_str));
    let Some(value) = value else { return Ok(Vec::new()) };
    serde_json::from_str(value).map_err(|_| wrong("attributes", "a list of generated columns"))
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
        is_computed: false,
        default,
        comment: optional_string(column, "comment")?,
        enum_values: optional_strings(column, "enumValues")?,
    };
    Ok((position, read))
}

pub(super) fn parse(raw: &RawValue, name: &str) -> Result<Value, RecordError> {
    serde_json::from_str(raw.get()).map_err(|_| wrong(name, "a JSON value"))
}

pub(super) fn string(value: &Value, name: &str) -> Result<Option<String>, RecordError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(wrong(name, "a string"))
        }
    }
}

pub(super) fn optional_string(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<String>, RecordError> {
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

pub(super) fn missing(member: &str) -> RecordError {
    RecordError::Missing { member: member.to_owned() }
}

pub(super) fn wrong(member: &str, expected: &'static str) -> RecordError {
    RecordError::Wrong { member: member.to_owned(), expected }
}
