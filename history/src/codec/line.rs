//! A line of a history, read no further than is needed.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::definition::{missing, optional_string, parse, read_definition, string, wrong};
use super::{Group, RecordError, read_table_changes};
use crate::json::{Members, Object};
use crate::offset::SourceOffset;
use crate::record::{HistoryRecord, TableChange};
use crate::schema::TableId;
use crate::store::Place;

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
    /// Where it ends in its store, when the store can go on from there.
    pub(crate) place: Option<Place>,
    body: Body<'a>,
}

#[derive(Debug)]
enum Body<'a> {
    /// The members are those that are written, of the types that they have then.
    Plain(PlainLine<'a>),
    /// Anything else.
    Members(Members<'a>),
}

/// A line as it is written. Anything else, a member that comes twice among it, is left to the slow way.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainLine<'a> {
    #[serde(borrow)]
    source: Object<PlainSource<'a>>,
    #[serde(borrow)]
    position: &'a RawValue,
    #[serde(default, rename = "ts_ms")]
    ts_ms: i64,
    #[serde(borrow)]
    database_name: Option<&'a RawValue>,
    #[serde(borrow)]
    ddl: Option<&'a RawValue>,
    #[serde(borrow, default)]
    table_changes: Vec<Object<RawChange<'a>>>,
    #[serde(borrow, default, rename = "holdfast_group", deserialize_with = "even_null")]
    group: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct PlainSource<'a> {
    #[serde(borrow)]
    server: Cow<'a, str>,
}

/// A change of which the definition has not been read, only checked to be JSON.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawChange<'a> {
    #[serde(rename = "type")]
    kind: RawKind,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    previous_id: Option<&'a RawValue>,
    #[serde(borrow)]
    table: Option<&'a RawValue>,
    comment: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RawKind {
    Create,
    Alter,
    Drop,
}

impl<'de> Deserialize<'de> for RawKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match <&str>::deserialize(deserializer)? {
            "CREATE" => Ok(Self::Create),
            "ALTER" => Ok(Self::Alter),
            "DROP" => Ok(Self::Drop),
            _ => Err(serde::de::Error::custom("another type of change")),
        }
    }
}

impl<'a> RecordLine<'a> {
    /// Reads source, position and group, and checks that the rest is JSON.
    ///
    /// # Errors
    ///
    /// [`RecordError`], which names the member and never shows a value.
    pub fn parse(line: &'a str) -> Result<Self, RecordError> {
        if let Ok(Object(plain)) = serde_json::from_str(line)
            && let Ok(plain) = Self::plain(plain)
        {
            return Ok(plain);
        }
        Self::parse_members(line)
    }

    fn plain(plain: PlainLine<'a>) -> Result<Self, RecordError> {
        Ok(Self {
            source: plain.source.0.server.clone().into_owned(),
            position: SourceOffset::from_json(plain.position.get())
                .map_err(RecordError::Position)?,
            group: match plain.group {
                Some(group) => read_group(&parse(group, "holdfast_group")?)?,
                None => None,
            },
            place: None,
            body: Body::Plain(plain),
        })
    }

    /// Reads a line member by member: slower, takes more, and says what is wrong.
    pub(super) fn parse_members(line: &'a str) -> Result<Self, RecordError> {
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
            place: None,
            body: Body::Members(members),
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
        const WHAT: &str = "a list of changes of named tables";
        let members = match &self.body {
            Body::Plain(plain) => {
                let mut ids = Vec::with_capacity(plain.table_changes.len());
                for Object(change) in &plain.table_changes {
                    ids.push(change.id()?);
                    ids.extend(change.previous()?);
                }
                return Ok(ids);
            }
            Body::Members(members) => members,
        };
        let raw = members.0.iter().rev().find(|(name, _)| name == "tableChanges");
        let Some((_, raw)) = raw else { return Ok(Vec::new()) };
        let changes: Option<Vec<Ids>> =
            serde_json::from_str(raw.get()).map_err(|_| wrong("tableChanges", WHAT))?;
        let names = changes
            .into_iter()
            .flatten()
            .flat_map(|change| std::iter::once(change.id).chain(change.previous));
        names.map(|name| name.parse().map_err(|_| wrong("tableChanges", WHAT))).collect()
    }

    /// The changes without their definitions; `None` where the line has to be read as a whole to tell them.
    pub(crate) fn raw_changes(&self) -> Option<&[Object<RawChange<'a>>]> {
        match &self.body {
            Body::Plain(plain) => Some(&plain.table_changes),
            Body::Members(_) => None,
        }
    }

    /// The statement.
    ///
    /// # Errors
    ///
    /// [`RecordError`] when it is no string.
    pub fn ddl(&self) -> Result<Option<String>, RecordError> {
        let raw = match &self.body {
            Body::Plain(plain) => plain.ddl,
            Body::Members(members) => {
                let ddl = members.0.iter().rev().find(|(name, _)| name == "ddl");
                ddl.map(|(_, raw)| *raw)
            }
        };
        raw.map_or(Ok(None), |raw| string(&parse(raw, "ddl")?, "ddl"))
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
        let members = match &self.body {
            Body::Plain(plain) => {
                record.ts_ms = plain.ts_ms;
                if let Some(raw) = plain.database_name {
                    let name = string(&parse(raw, "databaseName")?, "databaseName")?;
                    record.database_name = name.unwrap_or_default();
                }
                record.ddl = self.ddl()?;
                for (index, Object(change)) in plain.table_changes.iter().enumerate() {
                    let under = |error: RecordError| error.under(&format!("tableChanges[{index}]"));
                    record.table_changes.push(change.to_change().map_err(under)?);
                }
                return Ok(record);
            }
            Body::Members(members) => members,
        };
        for (name, raw) in &members.0 {
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
                    record.table_changes = read_table_changes(&parse(raw, "tableChanges")?)?;
                }
                _ => {}
            }
        }
        Ok(record)
    }
}

impl RawChange<'_> {
    /// The table's name after the statement.
    pub(crate) fn id(&self) -> Result<TableId, RecordError> {
        self.id.parse().map_err(|_| wrong("id", NAME))
    }

    /// The table's name before a rename.
    pub(crate) fn previous(&self) -> Result<Option<TableId>, RecordError> {
        let Some(raw) = self.previous_id.filter(|_| self.kind == RawKind::Alter) else {
            return Ok(None);
        };
        let Some(name) = string(&parse(raw, "previousId")?, "previousId")? else { return Ok(None) };
        name.parse().map(Some).map_err(|_| wrong("previousId", NAME))
    }

    /// The JSON of the definition and the comment beside it; `None` when the table was dropped.
    pub(crate) fn definition(&self) -> Result<Option<(&str, Option<&str>)>, RecordError> {
        if self.kind == RawKind::Drop {
            return Ok(None);
        }
        let table = self.table.ok_or_else(|| missing("table"))?;
        Ok(Some((table.get(), self.comment.as_deref())))
    }

    /// The whole change.
    pub(crate) fn to_change(&self) -> Result<TableChange, RecordError> {
        let id = self.id()?;
        let previous = self.previous()?;
        let Some((table, comment)) = self.definition()? else { return Ok(TableChange::Drop(id)) };
        let table = Arc::new(read_definition(id, table, comment.map(str::to_owned))?);
        Ok(match self.kind {
            RawKind::Create => TableChange::Create(table),
            RawKind::Alter | RawKind::Drop => TableChange::Alter { table, previous },
        })
    }
}

const NAME: &str = "a quoted database and table name";

/// A member that is there, be it null.
fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
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
