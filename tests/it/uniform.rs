//! `holdfast.uniform.types`: a row has the same values whether it comes from a snapshot or from the log.

use std::collections::BTreeMap;

use holdfast_tests::case;
use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::server::{Flavour, shared};
use holdfast_tests::{golden, paths};

/// The rows of each table in the order of their text: tables without a key have no other.
type Rows = BTreeMap<String, Vec<String>>;

fn rows<'r>(records: impl Iterator<Item = &'r Record>) -> Rows {
    let mut rows = Rows::new();
    for record in records {
        let Some(after) = record.value().get("after") else { continue };
        let row = format!("{} {after}", record.key());
        rows.entry(record.topic().to_owned()).or_default().push(row);
    }
    for of_table in rows.values_mut() {
        of_table.sort_unstable();
    }
    rows
}

/// Loads every type family twice: before the snapshot, and again, statement by statement, while streaming.
fn snapshot_equals_stream(flavour: Flavour) {
    let families = golden::cases(flavour).unwrap();
    let families = families.iter().find(|case| case.name() == "types-streamed").unwrap();
    let server = shared(&families.server()).unwrap();
    let script = std::fs::read_to_string(families.folder().join("workload.sql")).unwrap();
    let script = script.replace("gold", "uniform");
    let load = || {
        let made =
            "DROP DATABASE IF EXISTS uniform; CREATE DATABASE uniform CHARACTER SET utf8mb4;";
        server.sql(made).unwrap();
        // The families hold statements that this server's version refuses, in both loads alike.
        server.sql_force(script.as_bytes(), "utf8mb4").unwrap();
    };
    load();
    case::make_marker(&server).unwrap();
    let files = paths::fresh(&format!("uniform-{flavour:?}").to_lowercase()).unwrap();
    let mut properties = Properties::new(&server, &files);
    properties.set("database.include.list", format!("uniform,{}", case::MARKER));
    properties.set("holdfast.uniform.types", "true");
    let mut process =
        Process::start(Engine::Holdfast, &properties, &files, "run", RunOptions::default())
            .unwrap();
    let end = case::snapshot_end(&mut process).unwrap();
    load();
    case::settle(&mut process, &server, 2).unwrap();
    process.stop().unwrap();
    let of_case = |record: &&Record| record.topic().starts_with("srv.uniform.");
    let read = rows(process.records().iter().take(end).filter(of_case));
    let streamed = rows(
        process
            .records()
            .iter()
            .skip(end)
            .filter(of_case)
            .filter(|record| record.value().text("op") == Some("c")),
    );
    assert!(read.len() > 20, "{} tables", read.len());
    let mut differing = Vec::new();
    for (table, read) in &read {
        let streamed = streamed.get(table).map(Vec::as_slice).unwrap_or_default();
        if read != streamed {
            let first = (0..read.len().max(streamed.len()))
                .find(|&row| read.get(row) != streamed.get(row))
                .unwrap_or_default();
            differing.push(format!(
                "{table}\n  snapshot {:?}\n  stream   {:?}",
                read.get(first),
                streamed.get(first)
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    server.sql("DROP DATABASE uniform").unwrap();
}

#[test]
fn a_row_of_mysql_is_the_same_in_a_snapshot_and_in_the_stream() {
    snapshot_equals_stream(Flavour::MySql);
}

#[test]
fn a_row_of_mariadb_is_the_same_in_a_snapshot_and_in_the_stream() {
    snapshot_equals_stream(Flavour::MariaDb);
}
