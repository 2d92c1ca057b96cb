//! What a campaign has to be: the one sequence of records, how far it can be acknowledged, and the tables it makes.

use std::collections::{BTreeMap, HashMap};

use holdfast_tests::engine::Record;
use holdfast_tests::json::Json;
use holdfast_tests::normalise;

/// What one process was told to acknowledge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acknowledged {
    /// Everything, committed soon after.
    Soon,
    /// The first so many records, each batch committed before the next is given out.
    First(u64),
}

/// How one process ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) acknowledged: Acknowledged,
    /// Records of a batch; the last group is finished.
    pub(super) batch: usize,
    /// It ended on request, so that all that was acknowledged is committed.
    pub(super) stopped: bool,
}

/// Records that one group has at most: DELETE and CREATE of a changed key.
const GROUP: usize = 2;

/// Rows by key.
type Table = BTreeMap<i64, Json>;

/// One record of the sequence.
struct Delivered {
    identity: String,
    content: String,
}

/// What all processes together gave.
#[derive(Default)]
pub(super) struct Model {
    sequence: Vec<Delivered>,
    index: HashMap<String, usize>,
    /// The next process begins at one of these records: what is before the first is known to be committed, what is
    /// behind the last cannot be.
    committed: (usize, usize),
    /// The end of the snapshot is known to be committed, so that none of it may come any more.
    snapshot_over: bool,
    tables: BTreeMap<String, Table>,
    /// Records that came again.
    pub(super) repeated: usize,
}

impl Model {
    /// Takes in what one process gave.
    pub(super) fn process(&mut self, records: &[Record], run: Run) -> Result<(), String> {
        let Some(first) = records.first() else { return Ok(()) };
        if first.is_snapshot() && self.snapshot_over {
            return Err("the snapshot comes again, though its end was committed".to_owned());
        }
        let snapshot = records.iter().take_while(|record| record.is_snapshot()).count();
        let (snapshot, streamed) = records.split_at(snapshot);
        for record in snapshot {
            self.apply(record)?;
        }
        let start = match streamed.first() {
            None => return Ok(()),
            Some(first) => self.start(first)?,
        };
        for (offset, record) in streamed.iter().enumerate() {
            let at = start + offset;
            self.record(at, record).map_err(|error| format!("record {at}: {error}"))?;
        }
        let taken = |count: usize| start + count.saturating_sub(snapshot.len());
        let (low, high) = match run.acknowledged {
            Acknowledged::Soon if run.stopped => (records.len(), records.len()),
            Acknowledged::Soon => (0, records.len()),
            Acknowledged::First(count) => {
                let count = usize::try_from(count).unwrap_or(usize::MAX).min(records.len());
                // The last batch may not be committed, but those before it are.
                let earlier = records.len().saturating_sub(run.batch + GROUP - 1);
                (if run.stopped { count } else { count.min(earlier) }, count)
            }
        };
        self.snapshot_over |= low >= snapshot.len();
        self.committed = (self.group_start(taken(low)), taken(high));
        Ok(())
    }

    /// Index of the first streamed record of a process.
    fn start(&self, record: &Record) -> Result<usize, String> {
        let (low, high) = self.committed;
        let identity = identity(record)?;
        let start = self.index.get(&identity).copied().unwrap_or(self.sequence.len());
        if start < low {
            return Err(format!(
                "it begins with record {start}, though everything before {low} was committed: {identity}"
            ));
        }
        if start > high {
            let lost = self.sequence.get(high).map_or("", |record| &record.identity);
            return Err(format!(
                "it begins with record {start}, {identity}, though {high} and those behind it were never \
                 acknowledged: {lost}"
            ));
        }
        if self.group_start(start) != start {
            return Err(format!("it begins inside a group: {identity}"));
        }
        Ok(start)
    }

    /// The group's first record at or before this index.
    fn group_start(&self, mut index: usize) -> usize {
        while index > 0
            && self.sequence.get(index).is_some_and(|record| !record.identity.ends_with("|0"))
        {
            index -= 1;
        }
        index
    }

    fn record(&mut self, at: usize, record: &Record) -> Result<(), String> {
        if record.is_snapshot() {
            return Err("a record of a snapshot after streamed ones".to_owned());
        }
        let identity = identity(record)?;
        let mut live = record.clone();
        normalise::live(&mut live);
        let content = live.0.to_string();
        if let Some(before) = self.sequence.get(at) {
            if before.identity != identity {
                return Err(format!("{identity} came where {} came before", before.identity));
            }
            if before.content != content {
                return Err(format!("{identity} was\n{}\nand is\n{content}", before.content));
            }
            self.repeated += 1;
            return Ok(());
        }
        if let Some(earlier) = self.index.insert(identity.clone(), at) {
            return Err(format!("{identity} is record {earlier} too"));
        }
        self.apply(record)?;
        self.sequence.push(Delivered { identity, content });
        Ok(())
    }

    /// Does to the tables what the record says; each row must be what the record says that it was.
    fn apply(&mut self, record: &Record) -> Result<(), String> {
        for change in record.value().get("tableChanges").map_or(&[][..], Json::elements) {
            let id = change.text("id").unwrap_or_default();
            let table = id.rsplit('.').next().unwrap_or_default().trim_matches('"');
            match change.text("type") {
                Some("DROP") => _ = self.tables.remove(table),
                Some("CREATE") => _ = self.tables.insert(table.to_owned(), Table::new()),
                _ => {}
            }
        }
        let Some(op) = record.value().text("op") else { return Ok(()) };
        let name = record.source().text("table").ok_or("no table")?;
        let table = self.tables.get_mut(name).ok_or_else(|| format!("no table {name}"))?;
        let id = record.key().get("id").and_then(Json::as_i64).ok_or("no key")?;
        let row = |side: &str| record.value().get(side).filter(|row| **row != Json::Null).cloned();
        let (before, after) = (row("before"), row("after"));
        let old = match &after {
            Some(row) => table.insert(id, row.clone()),
            None => table.remove(&id),
        };
        let as_expected = match op {
            "r" | "c" => old.is_none() && after.is_some(),
            "u" => agree(old.as_ref(), before.as_ref()) && after.is_some(),
            "d" => agree(old.as_ref(), before.as_ref()) && after.is_none(),
            _ => false,
        };
        if as_expected {
            Ok(())
        } else {
            let show =
                |row: Option<&Json>| row.map_or_else(|| "no row".to_owned(), Json::to_string);
            Err(format!(
                "{name} {id}: {op} from {} to {}, but it was {}",
                show(before.as_ref()),
                show(after.as_ref()),
                show(old.as_ref())
            ))
        }
    }

    /// Records so far.
    pub(super) fn len(&self) -> usize {
        self.sequence.len()
    }

    /// The tables' names.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// The rows of a table with these columns, as the server's client prints them.
    pub(super) fn rows(&self, table: &str, columns: &[String]) -> Vec<Vec<String>> {
        let text = |row: &Json, column: &String| match row.get(column) {
            // A column that came after the row was last written.
            None | Some(Json::Null) => "NULL".to_owned(),
            Some(Json::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let rows = self.tables.get(table).into_iter().flatten();
        rows.map(|(_, row)| columns.iter().map(|column| text(row, column)).collect()).collect()
    }
}

/// Whether both are the same row, in the columns that both have: a definition may have changed in between.
fn agree(old: Option<&Json>, before: Option<&Json>) -> bool {
    let (Some(old), Some(before)) = (old, before) else { return false };
    before.members().iter().all(|(name, value)| old.get(name).is_none_or(|old| old == value))
}

/// Rows have an identity; a statement is named by its place and its text. The last member is the part of the group.
fn identity(record: &Record) -> Result<String, String> {
    let header = record.0.get("headers").and_then(|headers| headers.text("__holdfast.id"));
    if let Some(identity) = header {
        return Ok(identity.to_owned());
    }
    let source = record.source();
    match (source.text("file"), source.get("pos"), record.value().text("ddl")) {
        (Some(file), Some(pos), Some(ddl)) => Ok(format!("{file}|{pos}|{ddl}|0")),
        _ => Err(format!("a row without identity: {}", record.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: Run = Run { acknowledged: Acknowledged::First(2), batch: 1, stopped: false };

    fn row(number: u32, part: u32, id: u32, op: &str, before: &str, after: &str) -> Record {
        let snapshot = if op == "r" { "first" } else { "false" };
        let text = format!(
            r#"{{"topic":"srv.d.t","headers":{{"__holdfast.id":"1|l|d|t|f|{number}|1|0|{part}"}},"key":{{"id":{id}}},
            "value":{{"before":{before},"after":{after},"source":{{"snapshot":"{snapshot}","table":"t"}},"op":"{op}"}}}}"#
        );
        Record(Json::parse(&text).unwrap())
    }

    fn created() -> Record {
        let text = r#"{"topic":"srv","headers":{},"key":{},"value":{"source":{"snapshot":"true"},
            "tableChanges":[{"type":"CREATE","id":"\"d\".\"t\""}]}}"#;
        Record(Json::parse(text).unwrap())
    }

    /// A snapshot with the row 1, then 1 → 2 → key 5 (two records) → gone.
    fn all() -> Vec<Record> {
        let (one, two) = (r#"{"id":1,"v":1}"#, r#"{"id":1,"v":2}"#);
        let five = r#"{"id":5,"v":2}"#;
        vec![
            created(),
            row(0, 0, 1, "r", "null", one),
            row(10, 0, 1, "u", one, two),
            row(20, 0, 1, "d", two, "null"),
            row(20, 1, 5, "c", "null", five),
            row(30, 0, 5, "d", five, "null"),
        ]
    }

    /// A first process that gave everything and had `acknowledged` of it acknowledged, then one from `from` on.
    fn resumed(acknowledged: u64, from: usize) -> Result<(), String> {
        let mut model = Model::default();
        let acknowledged = Acknowledged::First(acknowledged);
        model.process(&all(), Run { acknowledged, ..RUN }).unwrap();
        model.process(all().split_at(from).1, RUN)
    }

    #[test]
    fn a_process_may_begin_at_the_first_record_that_is_not_committed() {
        for (acknowledged, from, fine) in [
            (3, 3, true),
            // Nothing behind the snapshot was acknowledged.
            (2, 2, true),
            (2, 3, false),
            // The update was committed.
            (3, 2, false),
            // Of the changed key only the DELETE was acknowledged.
            (4, 3, true),
            (4, 4, false),
            (4, 5, false),
            // Both were; the last batch may not have been committed.
            (5, 5, true),
            (5, 3, true),
            (5, 2, false),
        ] {
            let result = resumed(acknowledged, from);
            assert_eq!(result.is_ok(), fine, "{acknowledged} acknowledged, {from}: {result:?}");
        }
    }

    #[test]
    fn a_gap_another_content_and_a_wrong_image_are_found() {
        let mut gap = all();
        gap.remove(2);
        assert!(Model::default().process(&gap, RUN).unwrap_err().contains("but it was"));

        let mut model = Model::default();
        model.process(&all(), RUN).unwrap();
        let mut other = all().split_off(2);
        other[0] = row(10, 0, 1, "u", r#"{"id":1,"v":1}"#, r#"{"id":1,"v":3}"#);
        assert!(model.process(&other, RUN).unwrap_err().contains("and is"));

        let mut stale = all();
        stale[2] = row(10, 0, 1, "u", r#"{"id":1,"v":0}"#, r#"{"id":1,"v":2}"#);
        assert!(Model::default().process(&stale, RUN).unwrap_err().contains("but it was"));
    }

    #[test]
    fn what_was_replayed_is_what_the_client_prints() {
        let mut model = Model::default();
        model.process(all().split_at(3).0, RUN).unwrap();
        let columns = ["id", "v", "new"].map(str::to_owned);
        assert_eq!(model.rows("t", &columns), [["1", "2", "NULL"]]);
        assert_eq!(model.tables().collect::<Vec<_>>(), ["t"]);
    }
}
