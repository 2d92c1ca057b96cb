//! What two engines gave for one batch, workload by workload.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Batch;
use crate::engine::{PREFIX, Record};
use crate::json::{Difference, Json};
use crate::{Failure, golden};

/// Compares Holdfast's records with Debezium's. Gives the number of differences that `docs/DIFFERENCES.md` lists.
///
/// # Errors
///
/// The workloads whose records differ otherwise, each with its first difference and its statements.
pub fn compare(
    batch: &Batch,
    debezium: &[Record],
    holdfast: &[Record],
) -> Result<usize, Vec<Failure>> {
    let (theirs, ours) = (by_database(debezium), by_database(holdfast));
    let mut listed = 0;
    let mut failures = Vec::new();
    for name in theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name))) {
        let none = Vec::new();
        let of = |all: &BTreeMap<String, Vec<Record>>| golden::live(all.get(name).unwrap_or(&none));
        if let Err(text) = of_one(&of(&theirs), &of(&ours), &mut listed) {
            let workload = batch.workloads.iter().find(|workload| workload.database == *name);
            let statements = workload.map_or_else(String::new, |workload| {
                format!("\n-- setup\n{}-- stream\n{}", workload.setup, workload.stream)
            });
            failures.push(Failure::new(format!(
                "seed {}, {name}: {text}\n-- {:?}{statements}",
                batch.seed, batch.properties
            )));
        }
    }
    if failures.is_empty() {
        let order = |records: &[Record]| records.iter().map(database).collect::<Vec<_>>();
        if order(debezium) != order(holdfast) {
            failures.push(Failure::new(format!("seed {}: another order", batch.seed)));
        }
    }
    if failures.is_empty() { Ok(listed) } else { Err(failures) }
}

fn by_database(records: &[Record]) -> BTreeMap<String, Vec<Record>> {
    let mut databases: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in records {
        databases.entry(database(record)).or_default().push(record.clone());
    }
    databases
}

/// The database of a record; empty for those of none.
fn database(record: &Record) -> String {
    if let Some(database) = record.source().text("db") {
        return database.to_owned();
    }
    // A tombstone.
    let of_topic = record.topic().strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix('.'));
    of_topic.and_then(|rest| Some(rest.split_once('.')?.0)).unwrap_or_default().to_owned()
}

fn of_one(debezium: &[Json], holdfast: &[Json], listed: &mut usize) -> Result<(), String> {
    let mut found = String::new();
    let mut first = String::new();
    let mut count = 0;
    for (number, (original, ours)) in (1..).zip(debezium.iter().zip(holdfast)) {
        let mut theirs = original.clone();
        while let Some(Difference { path, left, right }) = theirs.difference(ours) {
            if is_listed(original, &path, &left, &right) {
                *listed += 1;
            } else {
                count += 1;
                if count <= 5 {
                    // Writing to a String cannot fail.
                    let _ = write!(
                        found,
                        "\nrecord {number} {path}: Debezium {left}, Holdfast {right}"
                    );
                }
                if first.is_empty() {
                    first = format!("\ndebezium: {original}\nholdfast: {ours}");
                }
            }
            if !theirs.take_over(ours, &path) {
                break;
            }
        }
    }
    if debezium.len() != holdfast.len() {
        count += 1;
        let _ = write!(
            found,
            "\n{} records from Debezium, {} from Holdfast",
            debezium.len(),
            holdfast.len()
        );
        let more = debezium.get(holdfast.len()).or_else(|| holdfast.get(debezium.len()));
        if first.is_empty() {
            let _ = write!(first, "\none more: {}", more.unwrap_or(&Json::Null));
        }
    }
    if count == 0 { Ok(()) } else { Err(format!("{count} differences{found}{first}")) }
}

/// Rows of `docs/DIFFERENCES.md` that random values meet; the generator leaves the others out.
pub(crate) fn is_listed(record: &Json, path: &str, debezium: &str, holdfast: &str) -> bool {
    let value = record.get("value").unwrap_or(&Json::Null);
    let value = value.get("payload").unwrap_or(value);
    // `source.row` of what is no row: a schema change, a TRUNCATE.
    let op = value.text("op");
    if path.ends_with("source.row") && op.is_none_or(|op| op == "t") {
        return holdfast == "0";
    }
    // The comment of a table made by CREATE TABLE … LIKE.
    if path.ends_with("table.comment")
        && value.text("ddl").is_some_and(|ddl| ddl.contains(" LIKE "))
    {
        return debezium == "null";
    }
    // CHANGE of a column without COMMENT.
    if path.contains(".columns.") && path.ends_with(".comment") && op.is_none() {
        return holdfast == "null";
    }
    // CHANGE of an ENUM to another type.
    if path.ends_with(".enumValues") && op.is_none() {
        return holdfast == "null";
    }
    // YEAR 0000.
    if path.contains(".before.") || path.contains(".after.") {
        return holdfast == "0" && ["1900", "2000"].contains(&debezium)
            || is_same_number(debezium, holdfast);
    }
    is_same_number(debezium, holdfast)
}

/// A number as this Java spells it, and the same number.
fn is_same_number(debezium: &str, holdfast: &str) -> bool {
    let number = |text: &str| text.contains(['.', 'E']).then(|| text.parse::<f64>().ok()).flatten();
    match (number(debezium), number(holdfast)) {
        #[expect(clippy::float_cmp, reason = "two spellings of one number")]
        (Some(theirs), Some(ours)) => theirs == ours,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Flavour;

    fn record(database: &str, value: &str) -> Record {
        let text = format!(
            r#"{{"topic":"srv.{database}.t","headers":{{}},"key":null,"value":{{"after":{{"a":{value}}},
            "source":{{"snapshot":"false","db":"{database}"}}}}}}"#
        );
        Record(Json::parse(&text).unwrap())
    }

    #[test]
    fn a_difference_names_its_workload_and_spellings_of_numbers_are_listed() {
        let batch = Batch::new(1, 2, Flavour::MySql);
        let debezium = [record("rnd_000", "1.10E-5"), record("rnd_001", "7")];
        let same = [record("rnd_000", "1.1E-5"), record("rnd_001", "7")];
        assert_eq!(compare(&batch, &debezium, &same).unwrap(), 1);
        let other = [record("rnd_000", "1.1E-5"), record("rnd_001", "8")];
        let failures = compare(&batch, &debezium, &other).unwrap_err();
        assert_eq!(failures.len(), 1);
        let text = failures[0].to_string();
        assert!(text.contains("seed 1, rnd_001") && text.contains("-- stream"), "{text}");
        let fewer = compare(&batch, &debezium, &same[..1]).unwrap_err();
        assert!(fewer[0].to_string().contains("1 records from Debezium, 0 from Holdfast"));
        let turned = [record("rnd_001", "7"), record("rnd_000", "1.1E-5")];
        assert!(compare(&batch, &debezium, &turned).unwrap_err()[0].to_string().contains("order"));
    }
}
