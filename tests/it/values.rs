//! `tests/golden/value-cases.tsv`: what the real Debezium made of single values, each streamed and in a snapshot.
//!
//! A line is a case: server, option, column of the run that it comes from, definition, literal, JSON while streaming, JSON
//! in a snapshot (`=` for the same, `?` for none). They come from Debezium 3.6.3.Final on MySQL 9.7.4 and from its MariaDB
//! connector 3.6.1 on MariaDB 11.8.9. Where Holdfast differs on purpose, `value-cases-differs.tsv` has the case's option,
//! definition and literal with Holdfast's two values and the row of `docs/DIFFERENCES.md` that says why; one that no longer
//! differs fails as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use holdfast_tests::case;
use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};

/// Options that one run can have, because the cases of each are of other types.
const RUNS: [&[&str]; 7] = [
    &["defaults"],
    &[
        "decimal.handling.mode=double",
        "time.precision.mode=connect",
        "binary.handling.mode=hex",
        "bigint.unsigned.handling.mode=precise",
        "TinyIntOneToBooleanConverter",
    ],
    &[
        "decimal.handling.mode=string",
        "time.precision.mode=isostring",
        "binary.handling.mode=base64-url-safe",
    ],
    &["time.precision.mode=microseconds", "JdbcSinkDataTypesConverter"],
    &["time.precision.mode=nanoseconds"],
    &["enable.time.adjuster=false"],
    &["ZeroDateFallbackConverter"],
];

struct ValueCase {
    option: String,
    definition: String,
    literal: String,
    streamed: String,
    snapshot: Option<String>,
    /// Where it stands here: the number of its run, of its table, and its key.
    run: usize,
    table: String,
    id: usize,
}

fn lines(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(paths::tests("golden").join(name)).unwrap();
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

fn normal(json: &str) -> String {
    Json::parse(json).unwrap_or_else(|error| panic!("{json}: {error}")).to_string()
}

/// The cases of a server, each with a table that those of one run and one definition share.
fn cases(server: &str) -> Vec<ValueCase> {
    let mut tables: BTreeMap<(usize, String), (usize, Vec<String>)> = BTreeMap::new();
    let mut cases = Vec::new();
    for line in lines("value-cases.tsv") {
        let [of, option, _, definition, literal, streamed, snapshot] =
            <[String; 7]>::try_from(line).unwrap();
        if of != server {
            continue;
        }
        let run = RUNS.iter().position(|run| run.contains(&option.as_str())).unwrap();
        let number = tables.len();
        let (number, literals) =
            tables.entry((run, definition.clone())).or_insert((number, Vec::new()));
        let known = literals.iter().position(|known| *known == literal);
        let id = known.unwrap_or_else(|| {
            literals.push(literal.clone());
            literals.len() - 1
        });
        let streamed = normal(&streamed);
        let snapshot = match snapshot.as_str() {
            "?" => None,
            "=" => Some(streamed.clone()),
            other => Some(normal(other)),
        };
        let table = format!("r{run}_{number}");
        cases.push(ValueCase { option, definition, literal, streamed, snapshot, run, table, id });
    }
    cases
}

fn script(cases: &[ValueCase]) -> String {
    let mut script = "SET sql_mode='';\nDROP DATABASE IF EXISTS vc;\nCREATE DATABASE vc CHARACTER SET utf8mb4;\nUSE vc;\n".to_owned();
    let mut tables: BTreeMap<&str, (&str, BTreeMap<usize, &str>)> = BTreeMap::new();
    for case in cases {
        let (_, rows) = tables.entry(&case.table).or_insert((&case.definition, BTreeMap::new()));
        rows.insert(case.id, &case.literal);
    }
    for (table, (definition, rows)) in tables {
        writeln!(script, "CREATE TABLE {table} (id INT PRIMARY KEY, v {definition});").unwrap();
        for (id, literal) in rows {
            writeln!(script, "INSERT INTO {table} (id, v) VALUES ({id}, {literal});").unwrap();
        }
    }
    script
}

fn properties(server: &Server, run: usize, cases: &[ValueCase]) -> Properties {
    let files = paths::fresh(&format!("values-{run}")).unwrap();
    let mut properties = Properties::new(server, &files);
    properties.set("table.include.list", format!("vc\\.r{run}_.*,{}\\.marker", case::MARKER));
    properties.set("include.schema.changes", "false");
    let columns = |wanted: &dyn Fn(&str) -> bool| {
        let tables = cases.iter().filter(|case| case.run == run && wanted(&case.definition));
        let names: Vec<&str> = tables.map(|case| case.table.as_str()).collect();
        format!("vc\\.({})\\.v", names.join("|"))
    };
    for option in RUNS[run] {
        const CONVERTERS: &str = "io.debezium.connector.binlog.converters";
        match option.split_once('=') {
            Some((key, value)) => properties.set(key, value),
            None if *option == "defaults" => {}
            None => {
                properties.set("converters", "c");
                properties.set("c.type", format!("{CONVERTERS}.{option}"));
            }
        }
        if *option == "TinyIntOneToBooleanConverter" {
            let tiny = |definition: &str| {
                definition.starts_with("TINYINT(1)") || definition.starts_with("BOOL")
            };
            properties.set("c.selector", columns(&tiny));
        } else if *option == "JdbcSinkDataTypesConverter" {
            for (selector, start) in [("boolean", "BOOL"), ("real", "REAL"), ("string", "VARCHAR")]
            {
                let starts = |definition: &str| definition.starts_with(start);
                properties.set(&format!("c.selector.{selector}"), columns(&starts));
            }
        }
    }
    properties
}

fn value(records: &[Record], case: &ValueCase, op: &str) -> Option<String> {
    let topic = format!("srv.vc.{}", case.table);
    let id = i64::try_from(case.id).unwrap();
    let found = records.iter().find(|record| {
        record.topic() == topic
            && record.value().text("op") == Some(op)
            && record.key().get("id").and_then(Json::as_i64) == Some(id)
    })?;
    Some(found.value().get("after")?.get("v")?.to_string())
}

fn compare(name: &str, options: &Options, expected: usize) {
    let server = shared(options).unwrap();
    let cases = cases(name);
    assert_eq!(cases.len(), expected);
    let script = script(&cases);
    let load = || {
        let refused = server.sql_force(script.as_bytes(), "utf8mb4").unwrap();
        assert!(!refused.contains("ERROR"), "{refused}");
    };
    case::make_marker(&server).unwrap();
    load();
    let mut processes = Vec::new();
    for run in 0..RUNS.len() {
        if !cases.iter().any(|case| case.run == run) {
            continue;
        }
        let properties = properties(&server, run, &cases);
        let files = paths::fresh(&format!("values-{name}-{run}")).unwrap();
        let options = RunOptions::default();
        let process = Process::start(Engine::Holdfast, &properties, &files, "run", options);
        processes.push((run, process.unwrap()));
    }
    for (_, process) in &mut processes {
        case::snapshot_end(process).unwrap();
    }
    load();
    server.sql(&format!("INSERT INTO {}.marker VALUES (2)", case::MARKER)).unwrap();
    for (_, process) in &mut processes {
        case::marker_row(process, 2).unwrap();
        process.stop().unwrap();
    }
    let mut listed: BTreeMap<[String; 3], [String; 2]> = BTreeMap::new();
    for line in lines("value-cases-differs.tsv") {
        let [of, option, definition, literal, streamed, snapshot, reason] =
            <[String; 7]>::try_from(line).unwrap();
        assert!(!reason.is_empty());
        if of == name {
            listed.insert([option, definition, literal], [streamed, snapshot]);
        }
    }
    let mut differing = Vec::new();
    let mut seen = Vec::new();
    for case in &cases {
        let (_, process) = processes.iter().find(|(run, _)| *run == case.run).unwrap();
        let missing = || "(no record)".to_owned();
        let streamed = value(process.records(), case, "c").unwrap_or_else(missing);
        let snapshot = value(process.records(), case, "r").unwrap_or_else(missing);
        let same = streamed == case.streamed
            && case.snapshot.as_ref().is_none_or(|expected| *expected == snapshot);
        let key = [&case.option, &case.definition, &case.literal].map(String::clone);
        if same {
            continue;
        }
        if listed.get(&key) == Some(&[streamed.clone(), snapshot.clone()]) {
            seen.push(key);
        } else {
            differing.push(format!(
                "{name}\t{}\t{}\t{}\t{streamed}\t{snapshot}\tDebezium: {} {:?}",
                case.option, case.definition, case.literal, case.streamed, case.snapshot
            ));
        }
    }
    println!("{} value cases on {name}, {} listed differences", cases.len(), seen.len());
    assert!(differing.is_empty(), "{}\n{}", differing.len(), differing.join("\n"));
    let unused: Vec<_> = listed.keys().filter(|key| !seen.contains(key)).collect();
    assert!(unused.is_empty(), "listed and not there: {unused:?}");
    server.sql("DROP DATABASE vc").unwrap();
}

#[test]
fn every_value_case_of_mysql_has_the_value_that_debezium_gave() {
    compare("mysql", &Options::mysql(), 1154);
}

#[test]
fn every_value_case_of_mariadb_has_the_value_that_debezium_gave() {
    compare("mariadb", &Options::mariadb_11(), 685);
}
