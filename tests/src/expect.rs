//! Expectation files: what has to come, one JSON object a line, and the comparison with what came.
//!
//! | line | meaning |
//! |---|---|
//! | `{"kind":"row","op","table","snapshot","row","key","before","after","query","transaction"}` | a change record; `row` is `source.row`; a member that is not given is not compared, but a `transaction` that is not given must be null |
//! | `{"kind":"schema","snapshot","db","ddl","tableChanges"}` | a record of the schema change topic |
//! | `{"kind":"schema","ddl_prefix","columns"}` | the same by the beginning of its statement and the names of the first table's columns |
//! | `{"kind":"tx","id","status","event_count","data_collections"}` | a transaction boundary |
//! | `{"kind":"error","about","names"}` | the stream ends here with an error whose text contains all names (case does not matter) |
//!
//! The streamed part is compared in order. In the snapshot, tables may come in another order, so its rows are compared
//! per table and its schema records on their own. Numbers are compared by value.
//!
//! Of a table change, `type`, `id`, the key columns and of each column `name`, `position`, `charsetName`, `length`,
//! `scale`, `optional`, `autoIncremented` and `generated` are compared; how Debezium spells types and defaults is what
//! the goldens are for.
//!
//! Placeholders: `"$GTID_1"` is any text, the same one wherever it stands; `"$ANY"` is anything; `{"$chars":n,"$sha256":h}`
//! is a string of n characters with that hash (of its UTF-8); `{"$count":n,"$first":a,"$last":b}` is an array, or an
//! object's values, with so many elements.

use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::engine::{PREFIX, Record};
use crate::json::Json;
use crate::{Context, Failure, Result};

/// How lenient a comparison is beyond the rules above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leniency {
    /// Blanks outside of strings do not matter in strings that are JSON documents.
    pub json_blanks: bool,
    /// Of a table change only the type is compared.
    pub ddl_only: bool,
    /// The snapshot is not compared.
    pub streamed_only: bool,
}

/// One outcome that is right.
#[derive(Clone, Debug)]
pub struct Expectation {
    lines: Vec<Json>,
}

/// What a run gave: its records, and its log if it ended with an error.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The records of the case, in order, without those of the marker.
    pub records: Vec<Record>,
    /// The log of an engine that ended by itself with an error.
    pub error: Option<String>,
}

impl Expectation {
    /// Parses a file.
    ///
    /// # Errors
    ///
    /// The line that is no JSON object or has an unknown kind.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line = Json::parse(line).context(|| format!("line {}", number + 1))?;
            match line.text("kind") {
                Some("row" | "schema" | "tx" | "error") => lines.push(line),
                kind => {
                    return Err(Failure::new(format!(
                        "line {}: unknown kind {kind:?}",
                        number + 1
                    )));
                }
            }
        }
        Ok(Self { lines })
    }

    /// True when the run has to end with an error.
    #[must_use]
    pub fn ends_with_error(&self) -> bool {
        self.error().is_some()
    }

    /// How many records of the snapshot are expected.
    #[must_use]
    pub fn snapshot_records(&self) -> usize {
        self.lines.iter().filter(|line| is_snapshot(line)).count()
    }

    fn error(&self) -> Option<&Json> {
        self.lines.iter().find(|line| line.text("kind") == Some("error"))
    }

    /// Compares; the error is the first difference, for a person.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn compare(&self, outcome: &Outcome, leniency: Leniency) -> Result<()> {
        let mut actual: Vec<Json> = outcome.records.iter().map(simplify).collect();
        let mut expected: Vec<Json> =
            self.lines.iter().filter(|line| line.text("kind") != Some("error")).cloned().collect();
        if leniency.streamed_only {
            actual.retain(|line| !is_snapshot(line));
        }
        let mut matcher = Matcher { leniency, placeholders: HashMap::new() };
        let take = |lines: &mut Vec<Json>, kind: &str| -> Vec<Json> {
            lines
                .extract_if(.., |line| is_snapshot(line) && line.text("kind") == Some(kind))
                .collect()
        };
        for kind in ["schema", "row"] {
            let mut want = take(&mut expected, kind);
            let mut have = take(&mut actual, kind);
            for lines in [&mut want, &mut have] {
                for line in lines.iter_mut() {
                    line.replace("snapshot", Json::string("true"));
                }
                if kind == "row" {
                    lines.sort_by_key(|line| line.text("table").map(str::to_owned));
                }
            }
            matcher.lines(&format!("snapshot {kind}"), &want, &have)?;
        }
        matcher.lines("streamed record", &expected, &actual)?;
        match (self.error(), &outcome.error) {
            (None, None) => Ok(()),
            (None, Some(log)) => {
                Err(Failure::new(format!("ended with an error; the log ends:\n{}", tail(log))))
            }
            (Some(error), None) => {
                Err(Failure::new(format!("went on, but had to stop with an error: {error}")))
            }
            (Some(error), Some(log)) => {
                let text = log.to_lowercase();
                let names = error.get("names").map(Json::elements).unwrap_or_default();
                let missing = names
                    .iter()
                    .filter_map(Json::as_text)
                    .find(|name| !text.contains(&name.to_lowercase()));
                missing.map_or(Ok(()), |name| {
                    Err(Failure::new(format!(
                        "stopped, but the error does not name {name:?}; the log ends:\n{}",
                        tail(log)
                    )))
                })
            }
        }
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(15)..).unwrap_or_default().join("\n")
}

fn is_snapshot(line: &Json) -> bool {
    line.text("snapshot").is_some_and(|mark| mark != "false")
}

/// A record in the form of an expectation line.
#[must_use]
pub fn simplify(record: &Record) -> Json {
    let value = record.value();
    let source = record.source();
    let member = |json: &Json, name: &str| json.get(name).cloned().unwrap_or(Json::Null);
    let mut line: Vec<(&str, Json)> = Vec::new();
    if record.topic() == PREFIX {
        line.push(("kind", Json::string("schema")));
        line.push(("snapshot", member(source, "snapshot")));
        line.push(("db", member(value, "databaseName")));
        line.push(("ddl", member(value, "ddl")));
        line.push(("tableChanges", member(value, "tableChanges")));
    } else if record.topic().strip_prefix(PREFIX) == Some(".transaction") {
        line.push(("kind", Json::string("tx")));
        for name in ["id", "status", "event_count", "data_collections"] {
            line.push((name, member(value, name)));
        }
    } else {
        let table = format!(
            "{}.{}",
            source.text("db").unwrap_or_default(),
            source.text("table").unwrap_or_default()
        );
        let expected_topic = format!("{PREFIX}.{table}");
        line.push(("kind", Json::string(if value == &Json::Null { "tombstone" } else { "row" })));
        line.push(("op", member(value, "op")));
        // A wrong topic shows as a wrong table.
        line.push((
            "table",
            Json::string(if record.topic() == expected_topic { &table } else { record.topic() }),
        ));
        line.push(("snapshot", member(source, "snapshot")));
        line.push(("row", member(source, "row")));
        line.push(("key", record.key().clone()));
        line.push(("query", member(source, "query")));
        for name in ["before", "after", "transaction"] {
            line.push((name, member(value, name)));
        }
    }
    Json::Object(line.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

struct Matcher {
    leniency: Leniency,
    placeholders: HashMap<String, String>,
}

const COLUMN_MEMBERS: [&str; 8] = [
    "name",
    "position",
    "charsetName",
    "length",
    "scale",
    "optional",
    "autoIncremented",
    "generated",
];

impl Matcher {
    fn lines(&mut self, what: &str, expected: &[Json], actual: &[Json]) -> Result<()> {
        for (index, want) in expected.iter().enumerate() {
            let number = index + 1;
            let Some(have) = actual.get(index) else {
                return Err(Failure::new(format!("{what} {number} is missing: {want}")));
            };
            self.line(want, have).context(|| {
                format!(
                    "{what} {number} of {} differs\n  expected {want}\n  received {have}\n",
                    expected.len()
                )
            })?;
        }
        match actual.get(expected.len()) {
            None => Ok(()),
            Some(extra) => Err(Failure::new(format!(
                "{what}: more than the {} expected: {extra}",
                expected.len()
            ))),
        }
    }

    fn line(&mut self, want: &Json, have: &Json) -> Result<()> {
        if want.text("kind") == Some("row") && want.get("transaction").is_none() {
            self.value("transaction", &Json::Null, have.get("transaction").unwrap_or(&Json::Null))?;
        }
        let line = have;
        for (name, want) in want.members() {
            let have = line.get(name).unwrap_or(&Json::Null);
            match name.as_str() {
                "topic" => {}
                "ddl_prefix" => {
                    let ddl = line.text("ddl").unwrap_or_default();
                    if !want.as_text().is_some_and(|prefix| ddl.starts_with(prefix)) {
                        return Err(Failure::new(format!(
                            "at ddl: expected {want} at the beginning of {ddl:?}"
                        )));
                    }
                }
                "columns" => self.value(name, want, &column_names(line))?,
                "tableChanges" => self.table_changes(want, have)?,
                "data_collections" => {
                    let sorted = |json: &Json| {
                        let mut elements = json.elements().to_vec();
                        elements.sort_by_key(ToString::to_string);
                        Json::Array(elements)
                    };
                    self.value(name, &sorted(want), &sorted(have))?;
                }
                _ => self.value(name, want, have)?,
            }
        }
        Ok(())
    }

    fn table_changes(&mut self, want: &Json, have: &Json) -> Result<()> {
        let (want, have) = (want.elements(), have.elements());
        same("the number of table changes", &want.len(), &have.len())?;
        for (index, want) in want.iter().enumerate() {
            let have = have.get(index).unwrap_or(&Json::Null);
            let at = |name: &str| format!("tableChanges.{index}.{name}");
            self.member(&at("type"), "type", want, have)?;
            if self.leniency.ddl_only {
                continue;
            }
            self.member(&at("id"), "id", want, have)?;
            let part = |json: &Json| json.get("table").cloned().unwrap_or(Json::Null);
            let (want, have) = (part(want), part(have));
            self.member(&at("primaryKeyColumnNames"), "primaryKeyColumnNames", &want, &have)?;
            let columns = |json: &Json| json.get("columns").cloned().unwrap_or(Json::Null);
            let (want, have) = (columns(&want), columns(&have));
            if want.get("$count").is_some() {
                self.value(&at("columns"), &want, &have)?;
                continue;
            }
            same(&at("the number of columns"), &want.elements().len(), &have.elements().len())?;
            for (index, want) in want.elements().iter().enumerate() {
                let have = have.elements().get(index).unwrap_or(&Json::Null);
                for name in COLUMN_MEMBERS {
                    self.member(&at(&format!("columns.{index}.{name}")), name, want, have)?;
                }
            }
        }
        Ok(())
    }

    fn member(&mut self, path: &str, name: &str, want: &Json, have: &Json) -> Result<()> {
        self.value(
            path,
            want.get(name).unwrap_or(&Json::Null),
            have.get(name).unwrap_or(&Json::Null),
        )
    }

    fn value(&mut self, path: &str, want: &Json, have: &Json) -> Result<()> {
        let differs = || Err(Failure::new(format!("at {path}: expected {want}, received {have}")));
        match (want, have) {
            (Json::String(name), _) if name == "$ANY" => Ok(()),
            (Json::String(name), _) if name.starts_with("$GTID_") => {
                let Json::String(text) = have else { return differs() };
                let known = self.placeholders.entry(name.clone()).or_insert_with(|| text.clone());
                if known == text { Ok(()) } else { differs() }
            }
            (Json::Object(members), _) if members.iter().any(|(name, _)| name == "$chars") => {
                let Json::String(text) = have else { return differs() };
                let chars = want.get("$chars").and_then(Json::as_i64);
                let same = chars == i64::try_from(text.chars().count()).ok();
                if same
                    && want
                        .text("$sha256")
                        .is_none_or(|hash| sha256(text).is_ok_and(|have| have == hash))
                {
                    Ok(())
                } else {
                    differs()
                }
            }
            (Json::Object(members), _) if members.iter().any(|(name, _)| name == "$count") => {
                let values: Vec<&Json> = match have {
                    Json::Array(elements) => elements.iter().collect(),
                    Json::Object(members) => members.iter().map(|(_, value)| value).collect(),
                    Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {
                        return differs();
                    }
                };
                same(
                    &format!("{path}: number of elements"),
                    &want.get("$count").and_then(Json::as_i64),
                    &i64::try_from(values.len()).ok(),
                )?;
                for (mark, have) in [("$first", values.first()), ("$last", values.last())] {
                    if let (Some(want), Some(have)) = (want.get(mark), have) {
                        self.value(&format!("{path}.{mark}"), want, have)?;
                    }
                }
                Ok(())
            }
            (Json::Number(a), Json::Number(b)) => {
                let number = |text: &str| text.parse::<f64>().ok();
                let integers = a.parse::<i128>().is_ok() && b.parse::<i128>().is_ok();
                if a == b || !integers && number(a) == number(b) { Ok(()) } else { differs() }
            }
            (Json::String(a), Json::String(b)) if self.leniency.json_blanks => {
                if a == b || without_blanks(a) == without_blanks(b) { Ok(()) } else { differs() }
            }
            (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
                for (index, want) in a.iter().enumerate() {
                    self.value(
                        &format!("{path}.{index}"),
                        want,
                        b.get(index).unwrap_or(&Json::Null),
                    )?;
                }
                Ok(())
            }
            (Json::Object(a), Json::Object(b)) => {
                let names = |members: &[(String, Json)]| {
                    members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
                };
                same(&format!("{path}: members"), &names(a), &names(b))?;
                for (index, (name, want)) in a.iter().enumerate() {
                    let have = b.get(index).map_or(&Json::Null, |(_, value)| value);
                    self.value(&format!("{path}.{name}"), want, have)?;
                }
                Ok(())
            }
            (a, b) if a == b => Ok(()),
            _ => differs(),
        }
    }
}

/// The names of the columns of a schema record's first table.
fn column_names(line: &Json) -> Json {
    let change = line.get("tableChanges").and_then(|changes| changes.elements().first());
    let columns = change
        .and_then(|change| change.get("table")?.get("columns"))
        .map(Json::elements)
        .unwrap_or_default();
    Json::Array(columns.iter().filter_map(|column| column.get("name").cloned()).collect())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, want: &T, have: &T) -> Result<()> {
    if want == have {
        return Ok(());
    }
    Err(Failure::new(format!("at {what}: expected {want:?}, received {have:?}")))
}

/// Takes the blanks outside of string literals out of a JSON document; other texts stay as they are.
fn without_blanks(text: &str) -> String {
    Json::parse(text).map_or_else(|_| text.to_owned(), |json| json.to_string())
}

fn sha256(text: &str) -> Result<String> {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(op: &str, snapshot: &str, table: &str, after: &str) -> Record {
        Record(
            Json::parse(&format!(
                r#"{{"topic":"srv.d.{table}","headers":{{}},"key":{{"id":1}},"value":{{"before":null,"after":{after},
                "source":{{"db":"d","table":"{table}","snapshot":"{snapshot}","row":0}},"op":"{op}","transaction":null}}}}"#
            ))
            .unwrap(),
        )
    }

    fn row(op: &str, snapshot: &str, table: &str, after: &str) -> String {
        format!(
            r#"{{"kind":"row","op":"{op}","table":"d.{table}","snapshot":"{snapshot}","row":0,"key":{{"id":1}},"before":null,"after":{after}}}"#
        )
    }

    fn compare(expected: &[String], records: &[Record], error: Option<&str>) -> Result<()> {
        let outcome = Outcome { records: records.to_vec(), error: error.map(str::to_owned) };
        Expectation::parse(&expected.join("\n"))?.compare(&outcome, Leniency::default())
    }

    #[test]
    fn snapshot_tables_may_come_in_another_order_but_streamed_rows_not() {
        let expected =
            [row("r", "first", "a", "1"), row("r", "last", "b", "2"), row("c", "false", "a", "3")];
        let records = [
            record("r", "first", "b", "2"),
            record("r", "last", "a", "1"),
            record("c", "false", "a", "3"),
        ];
        compare(&expected, &records, None).unwrap();
        let expected = [row("c", "false", "a", "1"), row("c", "false", "b", "2")];
        let records = [record("c", "false", "b", "2"), record("c", "false", "a", "1")];
        assert!(
            compare(&expected, &records, None)
                .unwrap_err()
                .to_string()
                .contains("streamed record 1 of 2")
        );
    }

    #[test]
    fn missing_extra_and_different_records_are_found() {
        let expected = [row("c", "false", "a", r#"{"v":1.5e3}"#)];
        compare(&expected, &[record("c", "false", "a", r#"{"v":1500.0}"#)], None).unwrap();
        assert!(compare(&expected, &[], None).is_err());
        let twice = [
            record("c", "false", "a", r#"{"v":1500.0}"#),
            record("c", "false", "a", r#"{"v":1500.0}"#),
        ];
        assert!(compare(&expected, &twice, None).is_err());
        for other in [r#"{"v":1501}"#, r#"{"v":"1500"}"#, r#"{"w":1500}"#, "null"] {
            assert!(
                compare(&expected, &[record("c", "false", "a", other)], None).is_err(),
                "{other}"
            );
        }
    }

    #[test]
    fn an_error_must_come_and_name_all_names() {
        let expected = [r#"{"kind":"error","about":"x","names":["d.a","Purged"]}"#.to_owned()];
        compare(&expected, &[], Some("error: d.a: log was purged")).unwrap();
        assert!(compare(&expected, &[], Some("error: d.a")).is_err());
        assert!(compare(&expected, &[], None).is_err());
        assert!(compare(&[], &[], Some("error")).is_err());
    }

    #[test]
    fn placeholders_stand_for_one_text_a_hash_or_a_count() {
        let text = |json: &str| record("c", "false", "a", json);
        let expected = [row("c", "false", "a", r#"{"a":"$GTID_1","b":"$GTID_1"}"#)];
        compare(&expected, &[text(r#"{"a":"u:1","b":"u:1"}"#)], None).unwrap();
        assert!(compare(&expected, &[text(r#"{"a":"u:1","b":"u:2"}"#)], None).is_err());
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let expected = [row("c", "false", "a", &format!(r#"{{"$chars":3,"$sha256":"{hash}"}}"#))];
        compare(&expected, &[text("\"abc\"")], None).unwrap();
        assert!(compare(&expected, &[text("\"abd\"")], None).is_err());
        let expected = [row("c", "false", "a", r#"{"$count":3,"$first":1,"$last":3}"#)];
        compare(&expected, &[text("[1,2,3]")], None).unwrap();
        compare(&expected, &[text(r#"{"x":1,"y":2,"z":3}"#)], None).unwrap();
        assert!(compare(&expected, &[text("[1,2,4]")], None).is_err());
    }
}
