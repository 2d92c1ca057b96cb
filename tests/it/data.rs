//! Cases that need no server.

use std::path::Path;
use std::sync::Arc;

use holdfast_binlog::event::{ChecksumAlgorithm, EventType};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::testkit::{LogBuilder, LogOptions, TestServer};
use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::codec::write_record;
use holdfast_history::ddl::{DdlContext, SqlMode, apply_statement};
use holdfast_history::recover::RecoverOptions;
use holdfast_history::schema::{Column, ColumnType, Table, TableId, Tables};
use holdfast_history::store::conformance::record;
use holdfast_history::store::{FileHistoryStore, ObjectUrl, OpendalHistoryStore};
use holdfast_history::{HistoryRecord, HistoryStore, recover_store};
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

/// An event with the header's fields of a vector, and a body of the right length that its type can have.
fn made_up_event(event: &Json) -> Vec<u8> {
    let number = |name: &str| event.get(name).and_then(Json::as_i64).unwrap_or_default();
    let (kind, mut body): (EventType, Vec<u8>) = match event.text("type").unwrap() {
        "GTID" => (EventType::MariaDbGtid, vec![0; 19]),
        "ANNOTATE" => (EventType::MariaDbAnnotateRows, b"INSERT INTO".to_vec()),
        "TABLE_MAP" => {
            let mut body = vec![9, 0, 0, 0, 0, 0, 1, 0];
            body.extend(b"\x01d\0\x0et_____________\0\x01\x03\0\x01");
            (EventType::TableMap, body)
        }
        "WRITE_ROWS_V1" => (EventType::WriteRowsV1, vec![9, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1]),
        "XID" => (EventType::Xid, vec![0; 8]),
        "ROTATE" => (EventType::Rotate, b"\x04\0\0\0\0\0\0\0mariadb-bin.00001".to_vec()),
        other => panic!("{other}"),
    };
    let size = usize::try_from(number("size")).unwrap();
    body.resize(size - 19, b' ');
    let artificial = number("flags") != 0;
    let mut bytes = if artificial { vec![0; 4] } else { vec![1, 0, 0, 0] };
    bytes.push(kind.code());
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(u32::try_from(size).unwrap().to_le_bytes());
    bytes.extend(u32::try_from(number("log_pos_field")).unwrap().to_le_bytes());
    bytes.extend(u16::try_from(number("flags")).unwrap().to_le_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn events_without_an_end_position_follow_each_other() {
    let options = LogOptions {
        server: TestServer::MariaDb,
        checksum: ChecksumAlgorithm::None,
        ..LogOptions::default()
    };
    let log = LogBuilder::with_options("mariadb-bin.000001", options);
    let mut stream = EventStream::new("mariadb-bin.000001", StreamOptions::default());
    stream.decode(log.events().next().unwrap()).unwrap();
    for vector in vectors("123-mariadb-zero-end-pos") {
        let numbers = |name: &str| -> Vec<Option<i64>> {
            vector
                .get(name)
                .map(|list| list.elements().iter().map(Json::as_i64).collect())
                .unwrap_or_default()
        };
        let (starts, ends) = (numbers("starts"), numbers("ends"));
        if let Some(Some(start)) = starts.first() {
            stream.seek(u64::try_from(*start).unwrap());
        }
        for (index, made_up) in vector.get("events").unwrap().elements().iter().enumerate() {
            let before = stream.position();
            let bytes = made_up_event(made_up);
            let event = stream.decode(&bytes).unwrap();
            let (start, end) = (i64::try_from(event.position).ok(), i64::try_from(event.end).ok());
            match ends[index] {
                Some(_) => assert_eq!((start, end), (starts[index], ends[index]), "{made_up}"),
                None => assert_eq!((event.position, event.end), (before, before), "{made_up}"),
            }
        }
    }
}

/// A record as a line of a history file.
fn line_of(record: &HistoryRecord) -> String {
    let mut line = Vec::new();
    write_record(record, None, &mut line);
    line.push(b'\n');
    String::from_utf8(line).unwrap()
}

fn files_below(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path.display().to_string());
        }
    }
    files
}

#[tokio::test]
async fn a_history_in_objects_is_that_of_its_own_source() {
    const ROOT: &str = "d/rw-cdc-schema-history/";
    for vector in vectors("125-history-directory-prefix") {
        let folder = paths::fresh("data-history-prefix").unwrap();
        let names = |name: &str| -> Vec<String> {
            let list = vector.get(name).map(Json::elements).unwrap_or_default();
            list.iter().filter_map(Json::as_text).map(str::to_owned).collect()
        };
        let (objects, read) = (names("objects"), names("read"));
        let mut expected = Vec::new();
        for (number, object) in (1..).zip(&objects) {
            let path = folder.join(object);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, line_of(&record(number))).unwrap();
            let name = object.strip_prefix(ROOT).unwrap();
            expected
                .extend(read.iter().position(|read| read == name).map(|at| (at, record(number))));
        }
        expected.sort_by_key(|(at, _)| *at);
        let expected: Vec<HistoryRecord> = expected.into_iter().map(|(_, record)| record).collect();
        assert_eq!(expected.len(), read.len(), "{vector}");

        let source = vector.get("source").and_then(Json::as_i64).unwrap();
        let url = format!("file://{}/{ROOT}source-{source}", folder.display());
        let store = OpendalHistoryStore::open_url(&ObjectUrl::parse(&url).unwrap()).await.unwrap();
        assert_eq!(store.exists().await.unwrap(), !read.is_empty(), "{vector}");
        assert_eq!(store.load().await.unwrap(), expected, "{vector}");
        store.append(&[record(100)]).await.unwrap();
        let made: Vec<String> = files_below(&folder)
            .into_iter()
            .filter_map(|path| path.rsplit_once(ROOT).map(|(_, name)| name.to_owned()))
            .filter(|name| name.ends_with(".dat") && !objects.contains(&format!("{ROOT}{name}")))
            .collect();
        assert_eq!(made, [vector.text("next").unwrap()], "{vector}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// Case 129.
#[tokio::test]
async fn a_record_may_be_large_and_those_of_no_interest_are_not_read() {
    let folder = paths::fresh("data-history-scale").unwrap();
    let path = folder.join("history.jsonl");
    let store = FileHistoryStore::open(&path).unwrap();
    let large = HistoryRecord { ddl: Some("x".repeat(50 << 20)), ..record(1) };
    store.append(std::slice::from_ref(&large)).await.unwrap();
    let load = store.load().await.unwrap();
    assert!(load == [large], "the record of 50 MB is another one");
    drop(store);

    // Definitions that nobody could read, of tables that nobody wants.
    let mut text = String::new();
    let wanted = record(4);
    for number in 0..1000 {
        let line =
            line_of(&HistoryRecord { source: wanted.source.clone(), ..record(number * 4 + 1) });
        let start = line.find("\"columns\":").unwrap();
        let end = line[start..].find(",\"attributes\"").unwrap() + start;
        text.push_str(&format!("{}\"columns\":\"none\"{}", &line[..start], &line[end..]));
    }
    std::fs::write(&path, text).unwrap();
    let store = FileHistoryStore::open(&path).unwrap();
    let context = DdlContext::default();
    let of_no_interest = |_: &TableId| false;
    let options = RecoverOptions { tables: Some(&of_no_interest), ..RecoverOptions::new(&context) };
    let mut offset = wanted.position.clone();
    offset.pos = u64::MAX >> 1;
    let recovered = recover_store(&store, &wanted.source, &offset, &options).await.unwrap();
    assert_eq!(recovered.report.unwanted, 1000, "{:?}", recovered.report);
    assert!(recovered.tables.is_empty());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Cases whose lines have tests elsewhere: `test` names each.
#[test]
fn the_tests_that_cases_name_are_there() {
    let mut sources = String::new();
    for folder in ["it", "../binlog/src"] {
        for file in files_below(&paths::tests(folder)) {
            sources.push_str(&std::fs::read_to_string(file).unwrap());
        }
    }
    for case in [
        "127-idle-source-heartbeat",
        "131-duplicate-server-id",
        "133-purge-and-numbering",
        "135-chunk-key-order",
    ] {
        for vector in vectors(case) {
            let test = vector.text("test").unwrap_or_else(|| panic!("{case}: {vector}"));
            assert!(sources.contains(&format!("fn {test}()")), "{case}: there is no test {test}");
        }
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
