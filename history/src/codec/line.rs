//! A line of a history, read no further than is needed.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::definition::{missing, optional_string, parse, read_definition, string, wrong};
use super::{Group, RecordError, read_table_changes};
use crate::json::{Members, Scanner, once};
use crate::offset::SourceOffset;
use crate::record::{HistoryRecord, TableChange};
use crate::schema::TableId;
use crate::store::Place;

/// A line of which only what decides about it has been read: most of a long history is definitions that a later record
/// replaces, and those need no more than their tables' names.
#[derive(Debug)]
pub struct RecordLine<'a> {
    /// The record's `source`.
    pub source: Cow<'a, str>,
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

/// A line as it is written. Anything else, a member that comes twice among it, is left to the slow way. Texts are JSON.
#[derive(Debug)]
struct PlainLine<'a> {
    ts_ms: i64,
    database_name: Option<&'a str>,
    ddl: Option<&'a str>,
    table_changes: Vec<RawChange<'a>>,
}

/// A change of which the definition has not been read, only checked to be JSON.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawChange<'a> {
    #[serde(rename = "type")]
    kind: RawKind,
    #[serde(borrow, deserialize_with = "json_text")]
    id: &'a str,
    #[serde(borrow, default, deserialize_with = "some_json_text")]
    previous_id: Option<&'a str>,
    #[serde(borrow, default, deserialize_with = "some_json_text")]
    table: Option<&'a str>,
    #[serde(borrow)]
    comment: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RawKind {
    Create,
    Alter,
    Drop,
}

impl RawKind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "CREATE" => Some(Self::Create),
            "ALTER" => Some(Self::Alter),
            "DROP" => Some(Self::Drop),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for RawKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <&str>::deserialize(deserializer)?;
        Self::named(name).ok_or_else(|| serde::de::Error::custom("another type of change"))
    }
}

fn json_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(deserializer).map(RawValue::get)
}

fn some_json_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de str>, D::Error> {
    json_text(deserializer).map(not_null)
}

fn not_null(json: &str) -> Option<&str> {
    (json != "null").then_some(json)
}

impl<'a> RecordLine<'a> {
    /// Reads source, position and group, and checks that the rest is JSON.
    ///
    /// # Errors
    ///
    /// [`RecordError`], which names the member and never shows a value.
    pub fn parse(line: &'a str) -> Result<Self, RecordError> {
        Self::plain(line).map_or_else(|| Self::parse_members(line), Ok)
    }

    /// Reads a line that is as it is written; `None` for any other, which may be a record all the same.
    fn plain(line: &'a str) -> Option<Self> {
        let (mut source, mut position, mut group) = (None, None, None);
        let (mut ts_ms, mut database_name, mut ddl, mut changes) = (None, None, None, None);
        let mut scanner = Scanner::new(line);
        scanner.object(|scanner, name| match name {
            "source" => once(&mut source, read_plain_source(scanner)?),
            "position" => once(&mut position, SourceOffset::scan(scanner)?),
            "ts_ms" => once(&mut ts_ms, scanner.integer()?),
            "databaseName" => once(&mut database_name, scanner.value()?),
            "ddl" => once(&mut ddl, scanner.value()?),
            "tableChanges" => once(&mut changes, read_plain_changes(scanner)?),
            "holdfast_group" => once(&mut group, group_of(&scanner.text()?)?),
            _ => scanner.value().map(drop),
        })?;
        scanner.end()?;
        let body = Body::Plain(PlainLine {
            ts_ms: ts_ms.unwrap_or_default(),
            database_name: database_name.and_then(not_null),
            ddl: ddl.and_then(not_null),
            table_changes: changes.unwrap_or_default(),
        });
        Some(Self { source: source?, position: position?, group, place: None, body })
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
            source: Cow::Owned(source.ok_or_else(|| missing("source.server"))?),
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
                for change in &plain.table_changes {
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
    pub(crate) fn raw_changes(&self) -> Option<&[RawChange<'a>]> {
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
                ddl.map(|(_, raw)| raw.get())
            }
        };
        raw.map_or(Ok(None), |json| string_in(json, "ddl"))
    }

    /// The whole record.
    ///
    /// # Errors
    ///
    /// [`RecordError`], which names the member and never shows a value.
    pub fn to_record(&self) -> Result<HistoryRecord, RecordError> {
        let mut record = HistoryRecord {
            source: self.source.clone().into_owned(),
            position: self.position.clone(),
            ts_ms: 0,
            database_name: String::new(),
            ddl: None,
            table_changes: Vec::new(),
        };
        let members = match &self.body {
            Body::Plain(plain) => {
                record.ts_ms = plain.ts_ms;
                if let Some(json) = plain.database_name {
                    record.database_name = string_in(json, "databaseName")?.unwrap_or_default();
                }
                record.ddl = self.ddl()?;
                for (index, change) in plain.table_changes.iter().enumerate() {
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

impl<'a> RawChange<'a> {
    fn scan(scanner: &mut Scanner<'a>) -> Option<Self> {
        let (mut kind, mut id, mut previous_id) = (None, None, None);
        let (mut table, mut comment) = (None, None);
        scanner.object(|scanner, name| match name {
            "type" => once(&mut kind, RawKind::named(&scanner.text()?)?),
            "id" => once(&mut id, scanner.value()?),
            "previousId" => once(&mut previous_id, scanner.value()?),
            "table" => once(&mut table, scanner.value()?),
            "comment" => once(&mut comment, scanner.text_or_null()?),
            _ => scanner.value().map(drop),
        })?;
        Some(Self {
            kind: kind?,
            id: id?,
            previous_id: previous_id.and_then(not_null),
            table: table.and_then(not_null),
            comment: comment.flatten(),
        })
    }

    /// The JSON of the table's name after the statement. The same text is the same name.
    pub(crate) const fn id_text(&self) -> &'a str {
        self.id
    }

    /// The table's name after the statement.
    pub(crate) fn id(&self) -> Result<TableId, RecordError> {
        read_name(self.id, "id")?.ok_or_else(|| missing("id"))
    }

    /// The table's name before a rename.
    pub(crate) fn previous(&self) -> Result<Option<TableId>, RecordError> {
        match self.previous_id {
            Some(json) if self.kind == RawKind::Alter => read_name(json, "previousId"),
            Some(_) | None => Ok(None),
        }
    }

    /// The JSON of the definition and the comment beside it; `None` when the table was dropped.
    pub(crate) fn definition(&self) -> Result<Option<(&'a str, Option<&str>)>, RecordError> {
        if self.kind == RawKind::Drop {
            return Ok(None);
        }
        let table = self.table.ok_or_else(|| missing("table"))?;
        Ok(Some((table, self.comment.as_deref())))
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

fn read_plain_source<'a>(scanner: &mut Scanner<'a>) -> Option<Cow<'a, str>> {
    let mut server = None;
    scanner.object(|scanner, name| match name {
        "server" => once(&mut server, scanner.text()?),
        _ => scanner.value().map(drop),
    })?;
    server
}

fn read_plain_changes<'a>(scanner: &mut Scanner<'a>) -> Option<Vec<RawChange<'a>>> {
    let mut changes = Vec::with_capacity(1);
    scanner.array(|scanner| RawChange::scan(scanner).map(|change| changes.push(change)))?;
    Some(changes)
}

/// A string or null, from its JSON.
fn string_in(json: &str, name: &'static str) -> Result<Option<String>, RecordError> {
    serde_json::from_str(json).map_err(|_| wrong(name, "a string"))
}

fn read_name(json: &str, member: &'static str) -> Result<Option<TableId>, RecordError> {
    let Some(name) = string_in(json, member)? else { return Ok(None) };
    name.parse().map(Some).map_err(|_| wrong(member, "a quoted database and table name"))
}

fn read_source(value: &Value) -> Result<Option<String>, RecordError> {
    if value.is_null() {
        return Ok(None);
    }
    let source = value.as_object().ok_or_else(|| wrong("source", "an object"))?;
    optional_string(source, "server").map_err(|error| error.under("source"))
}

fn read_group(value: &Value) -> Result<Option<Group>, RecordError> {
    match value.as_str().and_then(group_of) {
        Some(group) => Ok(Some(group)),
        None => Err(wrong("holdfast_group", "a number and a count")),
    }
}

fn group_of(text: &str) -> Option<Group> {
    let (index, count) = text.split_once('/')?;
    let group = Group { index: index.parse().ok()?, count: count.parse().ok()? };
    (group.index >= 1 && group.index <= group.count).then_some(group)
}
