//! Cases that need no server.

use std::sync::Arc;

use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::ddl::{DdlContext, SqlMode, apply_statement};
use holdfast_history::schema::{Column, ColumnType, Table, TableId, Tables};
use holdfast_tests::json::Json;
use holdfast_tests::paths;

fn vectors(case: &str) -> Vec<Json> {
    let text =
        std::fs::read_to_string(paths::tests("cases").join(case).join("expect.jsonl")).unwrap();
    text.lines().map(|line| Json::parse(line).unwrap()).collect()
}

#[test]
fn gtid_set_algebra() {
    let set = |text: &str| GtidSet::parse(text).unwrap();
    let pos = |text: &str| GtidPos::parse(text).unwrap();
    for vector in vectors("121-gtid-set-algebra") {
        let text = |name: &str| vector.text(name).unwrap_or_default();
        let (a, b) = (text("a"), text("b"));
        let came = match text("op") {
            "canonical" => set(a).to_string(),
            "contains" => set(b).is_subset_of(&set(a)).to_string(),
            "union" => set(a).union(&set(b)).to_string(),
            "subtract" => set(a).subtract(&set(b)).to_string(),
            "error" => {
                assert!(GtidSet::parse(a).is_err(), "{vector}");
                continue;
            }
            "mariadb_canonical" => pos(a).to_string(),
            "mariadb_contains" => pos(b).at_or_before(&pos(a)).to_string(),
            op => panic!("unknown operation {op}"),
        };
        let wanted =
            vector.get("r").map(|r| r.as_text().map_or_else(|| r.to_string(), str::to_owned));
        assert_eq!(Some(came), wanted, "{vector}");
    }
}

#[test]
fn random_ddl_gives_the_definitions_that_the_server_had() {
    let mut failures = Vec::new();
    let mut steps = 0;
    for line in vectors("137-ddl-corpus-2") {
        let mut tables = Tables::new(false);
        tables.set_database_charset("d", Some("utf8mb4".to_owned()));
        let mut context = DdlContext::in_database("d");
        if line.text("sql_mode") == Some("ANSI_QUOTES") {
            context.sql_mode = SqlMode(SqlMode::ANSI_QUOTES);
        }
        let id = TableId::new("d", line.text("table").unwrap());
        for step in line.get("steps").unwrap().elements() {
            steps += 1;
            let sql = step.text("sql").unwrap();
            let key: Vec<&str> = step
                .get("primary_key")
                .unwrap()
                .elements()
                .iter()
                .filter_map(Json::as_text)
                .collect();
            let came = match apply_statement(sql, &context, &mut tables) {
                Ok(_) => model_definition(tables.get(&id), key.is_empty()),
                Err(error) => error.to_string(),
            };
            let wanted = server_definition(step, &key);
            if came != wanted {
                failures.push(format!("{sql}\n  server: {wanted}\n  model:  {came}"));
                break;
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {steps} steps differ\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// What decides how a row is read and what its key is: names, order, types, NULL, character sets, key.
///
/// Where the server has no primary key, the model may have a unique one as its key, as Debezium does; that is not
/// compared.
fn model_definition(table: Option<&Arc<Table>>, no_primary_key: bool) -> String {
    let Some(table) = table else { return "no table".to_owned() };
    let column = |column: &Column| {
        let charset = column.charset.as_deref().filter(|_| column.column_type().has_charset());
        one_column(&column.name, column.column_type(), column.optional, charset)
    };
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    let key = table
        .key_columns()
        .filter(|_| !no_primary_key)
        .map(|index| table.columns[index].name.as_str());
    format!("{} KEY {}", columns.join(", "), key.collect::<Vec<_>>().join(","))
}

fn server_definition(step: &Json, key: &[&str]) -> String {
    let column = |column: &Json| {
        let [name, column_type, optional, charset, _] = column.elements() else {
            panic!("{column}")
        };
        let text = column_type.as_text().unwrap();
        // `decimal(8,2) unsigned` is the name `decimal unsigned`; the server has made a double of FLOAT(25) already.
        let (head, rest) = text.split_once('(').unwrap_or((text, ""));
        let tail = rest.rsplit_once(')').map_or("", |(_, tail)| tail);
        let column_type = ColumnType::from_type_name(&format!("{head} {tail}"), None, None);
        one_column(
            name.as_text().unwrap(),
            column_type,
            optional == &Json::Bool(true),
            charset.as_text(),
        )
    };
    let columns: Vec<String> = step.get("columns").unwrap().elements().iter().map(column).collect();
    format!("{} KEY {}", columns.join(", "), key.join(","))
}

fn one_column(
    name: &str,
    column_type: ColumnType,
    optional: bool,
    charset: Option<&str>,
) -> String {
    // BOOL is TINYINT(1) on the server; the model keeps the word.
    let is_bool = column_type == ColumnType::Boolean;
    let column_type = if is_bool { ColumnType::TinyInt { unsigned: false } } else { column_type };
    // NCHAR is utf8 in the DDL's and utf8mb3 in the server's words; binary is no character set to the server.
    let charset = match charset {
        Some("utf8") => "utf8mb3",
        Some("binary") | None => "-",
        Some(other) => other,
    };
    let null = if optional { "NULL" } else { "NOT NULL" };
    format!("`{name}` {column_type:?} {null} {charset}")
}
