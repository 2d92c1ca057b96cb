//! `holdfast history` and the check of every table map against its definition, on real servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::MutexGuard;

use holdfast_history::schema::charset_of_collation;
use holdfast_tests::engine::{Engine, Process, Properties, RunOptions, holdfast_binary};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Flavour, Options, Server, shared};
use holdfast_tests::{case, paths};

/// Columns of every type that both servers have, as somebody may write them.
const COMMON: &[&str] = &[
    "TINYINT",
    "BOOL",
    "INT1 UNSIGNED",
    "SMALLINT ZEROFILL",
    "MEDIUMINT UNSIGNED",
    "MIDDLEINT",
    "INT",
    "INTEGER UNSIGNED",
    "BIGINT",
    "BIGINT UNSIGNED",
    "FLOAT",
    "FLOAT UNSIGNED",
    "FLOAT(7,3)",
    "FLOAT(25)",
    "FLOAT4",
    "DOUBLE",
    "DOUBLE PRECISION UNSIGNED",
    "REAL",
    "DECIMAL",
    "DECIMAL(65,30)",
    "NUMERIC(5) UNSIGNED",
    "DEC(0)",
    "FIXED(9,2) ZEROFILL",
    "BIT",
    "BIT(9)",
    "BIT(64)",
    "CHAR",
    "CHAR(0)",
    "CHAR(255)",
    "CHAR(255) CHARACTER SET utf8mb4",
    "CHAR(20) CHARACTER SET ucs2",
    "CHAR(20) CHARACTER SET latin1",
    "CHAR(20) CHARACTER SET utf32",
    "CHAR(20) CHARACTER SET ujis",
    "CHAR(20) CHARACTER SET utf8",
    "CHAR(20) COLLATE latin2_general_ci",
    "CHAR(10) BYTE",
    "CHAR(5) BINARY",
    "CHAR(5) ASCII",
    "CHAR(5) UNICODE",
    "CHAR(12) CHARACTER SET binary",
    "NCHAR(7)",
    "NATIONAL CHARACTER VARYING(7)",
    "VARCHAR(0)",
    "VARCHAR(10)",
    "VARCHAR(255) CHARACTER SET ascii",
    "VARCHAR(300) CHARACTER SET gbk",
    "VARCHAR(10) CHARACTER SET binary",
    "VARCHAR(10) BYTE",
    "BINARY",
    "BINARY(255)",
    "VARBINARY(300)",
    "TINYTEXT",
    "TEXT",
    "TEXT(20)",
    "TEXT(300)",
    "TEXT(20000)",
    "TEXT CHARACTER SET binary",
    "MEDIUMTEXT",
    "LONGTEXT",
    "LONG",
    "LONG VARCHAR",
    "LONG VARBINARY",
    "TINYBLOB",
    "BLOB",
    "BLOB(20)",
    "BLOB(70000)",
    "MEDIUMBLOB",
    "LONGBLOB",
    "DATE",
    "TIME",
    "TIME(3)",
    "DATETIME",
    "DATETIME(6)",
    "TIMESTAMP NULL",
    "TIMESTAMP(1) NULL",
    "YEAR",
    "YEAR(4)",
    "ENUM('a','it''s','\u{e9}')",
    "ENUM('x','y ') CHARACTER SET latin1",
    "ENUM('x') CHARACTER SET ucs2",
    "SET('a','b','c','d','e','f','g','h','i')",
    "SET('1','2','3','4','5','6','7','8','9','10','11','12','13','14','15','16','17','18','19','20','21','22','23',
     '24','25','26','27','28','29','30','31','32','33')",
    "JSON",
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
    "INT GENERATED ALWAYS AS (1+1) VIRTUAL",
    "VARCHAR(30) GENERATED ALWAYS AS ('a') STORED",
];
const MYSQL: &[&str] = &["VECTOR(3)", "VECTOR", "INT INVISIBLE"];
const MARIADB: &[&str] = &[
    "UUID",
    "INET4",
    "INET6",
    "INT INVISIBLE",
    "VARCHAR(100) COMPRESSED",
    "VARCHAR(255) COMPRESSED CHARACTER SET latin1",
    "VARBINARY(100) COMPRESSED",
    "TEXT COMPRESSED",
    "BLOB COMPRESSED",
];

/// `CREATE TABLE` of all types.
fn all_types(table: &str, flavour: Flavour) -> String {
    let own = match flavour {
        Flavour::MySql => MYSQL,
        Flavour::MariaDb => MARIADB,
    };
    let types = COMMON.iter().chain(own);
    let columns: Vec<String> =
        types.enumerate().map(|(index, kind)| format!("c{index} {kind}")).collect();
    format!(
        "CREATE TABLE {table} (id SERIAL PRIMARY KEY, {}) CHARACTER SET utf8mb4;\n",
        columns.join(", ")
    )
}

/// Tables that are odd in another way, each with a row.
fn odd_tables(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::MySql => {
            "SET sql_mode='';
             CREATE TABLE lax (a VARCHAR(70000), b VARBINARY(70000), c CHAR(3)) CHARACTER SET utf8mb3;
             SET sql_mode='REAL_AS_FLOAT'; CREATE TABLE reals (a REAL); SET sql_mode=DEFAULT;
             CREATE TABLE functional (a INT, b VARCHAR(20), INDEX ((a+1)), INDEX ((UPPER(b))));
             CREATE TABLE myisam_bits (a BIT(9), b BIT(7), c VARCHAR(10)) ENGINE=MyISAM;
             CREATE TABLE in_memory (a CHAR(20), b VARCHAR(20), c ENUM('a')) ENGINE=MEMORY;
             CREATE TABLE grown (a TEXT, b TINYTEXT, c VARCHAR(8000), d CHAR(10), e ENUM('a','b')) CHARACTER SET latin1;
             ALTER TABLE grown CONVERT TO CHARACTER SET utf8mb4;
             CREATE TABLE keys_of_unique (a INT NOT NULL, b INT NOT NULL, UNIQUE u1 (b), UNIQUE u2 (a));
             CREATE TABLE by_select AS SELECT 1 AS a, 'x' AS b, NULL AS c, 1.5 AS d, NOW() AS e;
             CREATE TABLE like_other LIKE functional;
             CREATE TABLE not_null (a INT NOT NULL, b TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, c VARCHAR(9) NOT NULL,
                 d ENUM('a') NOT NULL DEFAULT 'a', e INT AS (1 + 1) STORED NOT NULL, f SERIAL, g BOOL NOT NULL DEFAULT TRUE);
             CREATE TRIGGER filled BEFORE INSERT ON not_null FOR EACH ROW SET NEW.c = COALESCE(NEW.c, 'c');
             SET explicit_defaults_for_timestamp=0; CREATE TABLE implied (a TIMESTAMP, b TIMESTAMP NULL);
             SET explicit_defaults_for_timestamp=DEFAULT;
             CREATE TABLE loosened LIKE not_null; ALTER TABLE loosened MODIFY a INT, MODIFY g BOOL NULL;
             INSERT INTO not_null (a, c) VALUES (1, NULL); INSERT INTO implied () VALUES (); INSERT INTO loosened (c) VALUES ('c');
             INSERT INTO lax VALUES ('a','b','c'); INSERT INTO reals VALUES (1); INSERT INTO functional VALUES (1,'a');
             INSERT INTO myisam_bits VALUES (1,1,'c'); INSERT INTO in_memory VALUES ('a','b','a');
             INSERT INTO grown VALUES ('a','b','c','d','a'); INSERT INTO keys_of_unique VALUES (1,2);
             INSERT INTO by_select VALUES (2,'y',NULL,2.5,NOW()); INSERT INTO like_other VALUES (1,'a');\n"
        }
        Flavour::MariaDb => {
            "SET sql_mode='';
             CREATE TABLE lax (a VARCHAR(70000), b VARBINARY(70000), c CHAR(3)) CHARACTER SET utf8mb3;
             SET sql_mode='REAL_AS_FLOAT'; CREATE TABLE reals (a REAL); SET sql_mode=DEFAULT;
             CREATE TABLE versioned (a INT) WITH SYSTEM VERSIONING;
             CREATE TABLE periods (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,
                 e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(s,e)) WITH SYSTEM VERSIONING;
             CREATE TABLE myisam_bits (a BIT(9), b BIT(7), c VARCHAR(10)) ENGINE=MyISAM;
             CREATE TABLE aria (a CHAR(20), b VARCHAR(20), c ENUM('a')) ENGINE=Aria;
             CREATE TABLE grown (a TEXT, b TINYTEXT, c VARCHAR(8000), d CHAR(10), e ENUM('a','b')) CHARACTER SET latin1;
             ALTER TABLE grown CONVERT TO CHARACTER SET utf8mb4;
             CREATE TABLE keys_of_unique (a INT NOT NULL, b INT NOT NULL, UNIQUE u1 (b), UNIQUE u2 (a));
             CREATE TABLE by_select AS SELECT 1 AS a, 'x' AS b, NULL AS c, 1.5 AS d, NOW() AS e;
             CREATE TABLE like_other LIKE aria;
             SET GLOBAL mysql56_temporal_format=OFF;
             CREATE TABLE old_times (a TIME, b DATETIME, c TIMESTAMP NULL);
             SET GLOBAL mysql56_temporal_format=ON;
             CREATE TABLE not_null (a INT NOT NULL, b TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, c VARCHAR(9) NOT NULL,
                 d ENUM('a') NOT NULL DEFAULT 'a', e INT AS (1 + 1) PERSISTENT, f SERIAL, g BOOL NOT NULL DEFAULT TRUE);
             CREATE TRIGGER filled BEFORE INSERT ON not_null FOR EACH ROW SET NEW.c = COALESCE(NEW.c, 'c');
             SET explicit_defaults_for_timestamp=0; CREATE TABLE implied (a TIMESTAMP, b TIMESTAMP NULL);
             SET explicit_defaults_for_timestamp=DEFAULT;
             CREATE TABLE loosened LIKE not_null; ALTER TABLE loosened MODIFY a INT, MODIFY g BOOL NULL;
             INSERT INTO not_null (a, c) VALUES (1, NULL); INSERT INTO implied () VALUES (); INSERT INTO loosened (c) VALUES ('c');
             INSERT INTO lax VALUES ('a','b','c'); INSERT INTO reals VALUES (1); INSERT INTO versioned VALUES (1);
             INSERT INTO periods (a) VALUES (1); INSERT INTO myisam_bits VALUES (1,1,'c');
             INSERT INTO aria VALUES ('a','b','a'); INSERT INTO grown VALUES ('a','b','c','d','a');
             INSERT INTO keys_of_unique VALUES (1,2); INSERT INTO by_select VALUES (2,'y',NULL,2.5,NOW());
             INSERT INTO like_other VALUES ('a','b','a'); INSERT INTO old_times VALUES ('1:00','2024-01-01','2024-01-01');\n"
        }
    }
}

/// A folder, and properties for one database.
fn set_up(server: &Server, database: &str, name: &str) -> (PathBuf, Properties) {
    let files = paths::fresh(name).unwrap();
    server
        .sql(&format!(
            "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database} CHARACTER SET utf8mb4"
        ))
        .unwrap();
    case::make_marker(server).unwrap();
    let mut properties = Properties::new(server, &files);
    properties.set("database.include.list", format!("{database},{}", case::MARKER));
    (files, properties)
}

/// Takes the snapshot, and leaves the offset behind it.
fn snapshot(server: &Server, properties: &Properties, files: &Path) {
    let mut run =
        Process::start(Engine::Holdfast, properties, files, "first", RunOptions::default())
            .unwrap();
    case::snapshot_end(&mut run).unwrap();
    case::settle(&mut run, server, 2).unwrap();
    run.stop().unwrap();
}

/// `holdfast history …` with the configuration of the first run.
fn history(files: &Path, arguments: &[&str]) -> Output {
    Command::new(holdfast_binary().unwrap())
        .arg("history")
        .args(arguments)
        .arg("--config")
        .arg(files.join("first.properties"))
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn verify(files: &Path) -> (Option<i32>, Json) {
    let output = history(files, &["verify", "--format", "json"]);
    let json = Json::parse(stdout(&output).trim())
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", stdout(&output), stderr(&output)));
    (output.status.code(), json)
}

fn no_false_alarm(options: Options, name: &str) {
    let server = Server::start(options).unwrap();
    let flavour = server.flavour();
    let database = "types";
    let (files, properties) = set_up(&server, database, name);
    // Read by the snapshot: as the server shows definitions.
    server.sql(&format!("USE {database}; {}", all_types("shown", flavour))).unwrap();
    snapshot(&server, &properties, &files);

    let mut script = format!("USE {database};\n");
    for metadata in ["MINIMAL", "FULL"] {
        script.push_str(&format!("SET GLOBAL binlog_row_metadata={metadata};\n"));
        // From here on definitions are as the statements write them.
        let made = format!("written_{}", metadata.to_lowercase());
        script.push_str(&all_types(&made, flavour));
        for table in ["shown", &made] {
            script.push_str(&format!("INSERT INTO {table} (id) VALUES (NULL);\n"));
        }
        script.push_str(&format!(
            "TRUNCATE {made}; ALTER TABLE {made} DROP PRIMARY KEY, ADD PRIMARY KEY (id, c6);\n"
        ));
        script.push_str(&format!("INSERT INTO {made} (id, c6) VALUES (7, 1);\n"));
        script.push_str(odd_tables(flavour));
        script.push_str("DROP TABLE like_other;\n");
        if metadata == "FULL" && flavour == Flavour::MariaDb {
            // Has a hidden column for the hash, which only its name tells from others.
            script.push_str("CREATE TABLE long_unique (a INT, b BLOB, UNIQUE (b)); INSERT INTO long_unique VALUES (1,'b');\n");
        }
        if metadata == "MINIMAL" {
            script.push_str(match flavour {
                Flavour::MySql => "DROP TABLE not_null, implied, loosened, lax, reals, functional, myisam_bits, in_memory, grown, keys_of_unique, by_select;\n",
                Flavour::MariaDb => "DROP TABLE not_null, implied, loosened, lax, reals, versioned, periods, myisam_bits, aria, grown, keys_of_unique, by_select, old_times;\n",
            });
        }
    }
    server.sql(&script).unwrap();

    let (code, report) = verify(&files);
    assert_eq!(report.get("mismatches").unwrap().elements(), [], "{name}");
    assert_eq!(report.get("keys").unwrap().elements(), [], "{name}");
    assert_eq!(code, Some(0));
    let tables = report.get("tables").unwrap().elements().len();
    assert!(tables >= 12, "rows of {tables} tables only");

    let mut run =
        Process::start(Engine::Holdfast, &properties, &files, "second", RunOptions::default())
            .unwrap();
    case::settle(&mut run, &server, 3).unwrap();
    // Beside a running engine, too.
    assert_eq!(history(&files, &["verify"]).status.code(), Some(0));
    run.stop().unwrap();
    assert!(!run.log().contains("another key"), "{}", run.log());
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn every_type_of_mysql_fits_its_definition() {
    no_false_alarm(Options::mysql(), "history-types-mysql");
}

#[test]
fn every_type_of_mariadb_fits_its_definition() {
    no_false_alarm(Options::mariadb(), "history-types-mariadb");
}

#[test]
fn every_type_of_mariadb_11_fits_its_definition() {
    no_false_alarm(Options::mariadb_11(), "history-types-mariadb-11");
}

/// A table, what changes it behind the log's back, the column that differs then, and in what. The last one says whether
/// `MINIMAL` tells.
type Change = (&'static str, &'static str, &'static str, i64, &'static str, bool);

const CHANGES: &[Change] = &[
    ("wider", "a INT, b INT", "MODIFY b BIGINT", 3, "type", true),
    ("longer", "a VARCHAR(10)", "MODIFY a VARCHAR(300)", 2, "type", true),
    ("digits", "a DATETIME, b DECIMAL(10,2)", "MODIFY b DECIMAL(10,3)", 3, "type", true),
    ("fraction", "a DATETIME", "MODIFY a DATETIME(3)", 2, "type", true),
    ("sign", "a INT, b INT", "MODIFY b INT UNSIGNED", 3, "signedness", true),
    ("charset", "a VARCHAR(10)", "MODIFY a VARCHAR(40) CHARACTER SET latin1", 2, "charset", true),
    ("bytes", "a TEXT", "MODIFY a BLOB", 2, "charset", true),
    ("added", "a INT", "ADD b INT DEFAULT 1", 3, "missing", true),
    ("dropped", "a INT, b INT", "DROP b", 3, "missing", true),
    ("swapped", "a INT, b INT", "MODIFY a INT AFTER b", 2, "name", false),
    ("renamed", "a INT, b INT", "CHANGE b c INT", 3, "name", false),
    ("labels", "a ENUM('x','y')", "MODIFY a ENUM('y','x')", 2, "labels", false),
    ("nullable", "a INT, b INT NOT NULL DEFAULT 1", "MODIFY b INT", 3, "nullness", true),
];

fn wrong_definitions_are_found(options: Options, metadata: &str, name: &str) {
    let server = Server::start(options.arg(format!("--binlog-row-metadata={metadata}"))).unwrap();
    let full = metadata == "FULL";
    let database = "behind";
    let (files, properties) = set_up(&server, database, name);
    let mut script = format!("USE {database};\n");
    for (table, columns, ..) in CHANGES {
        script.push_str(&format!("CREATE TABLE {table} (id INT PRIMARY KEY, {columns});\n"));
    }
    script.push_str("CREATE TABLE keyed (id INT PRIMARY KEY, a INT NOT NULL);\n");
    server.sql(&script).unwrap();
    snapshot(&server, &properties, &files);
    let mut script = format!("USE {database};\n");
    for (table, ..) in CHANGES {
        script.push_str(&format!("INSERT INTO {table} (id) VALUES (1);\n"));
    }
    script.push_str("INSERT INTO keyed VALUES (1, 1);\nSET SESSION sql_log_bin=0;\n");
    for (table, _, change, ..) in CHANGES {
        script.push_str(&format!("ALTER TABLE {table} {change};\n"));
    }
    script.push_str("ALTER TABLE keyed DROP PRIMARY KEY, ADD PRIMARY KEY (a);\n");
    script.push_str("SET SESSION sql_log_bin=1;\n");
    for (table, ..) in CHANGES {
        script.push_str(&format!("INSERT INTO {table} (id) VALUES (2);\n"));
    }
    script.push_str("INSERT INTO keyed VALUES (2, 2);\n");
    server.sql(&script).unwrap();

    let (code, report) = verify(&files);
    assert_eq!(code, Some(1));
    let mismatches = report.get("mismatches").unwrap().elements();
    for (table, _, _, column, property, minimal) in CHANGES {
        let full_name = format!("{database}.{table}");
        let found = mismatches.iter().find(|found| found.text("table") == Some(&full_name));
        assert_eq!(found.is_some(), full || *minimal, "{metadata} {table}");
        let Some(found) = found else { continue };
        assert_eq!(found.get("column").and_then(Json::as_i64), Some(*column), "{table}");
        // Where the log has names, they are looked at first.
        let name = full && *property == "missing" && *table == "renamed";
        assert_eq!(found.text("differs_in"), Some(if name { "name" } else { property }), "{table}");
        let from = found.text("definition_from").unwrap();
        assert!(from.starts_with("record "), "{from}");
    }
    // Another key proves nothing, and is told.
    let keys: Vec<String> =
        report.get("keys").unwrap().elements().iter().map(ToString::to_string).collect();
    assert_eq!(keys.len(), usize::from(full), "{keys:?}");
    assert!(keys.iter().all(|keys| keys.contains("keyed") && keys.contains("(a)")), "{keys:?}");
    // One table alone, as text.
    let table = format!("{database}.wider");
    let output = history(&files, &["verify", "--table", &table]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("column 3 differs in its type"), "{text}");
    assert!(text.contains("rows events: 2, tables: 1, not fitting: 1"), "{text}");
    println!("{text}");

    // The engine stops at each of them, with every row before delivered and none behind.
    for (table, _, _, column, _, minimal) in CHANGES.iter().filter(|change| full || change.5) {
        assert!(full || *minimal);
        let mut only = properties.clone();
        only.set("table.include.list", format!("{database}.{table},{}.marker", case::MARKER));
        only.set(
            "offset.storage.file.filename",
            files.join(format!("{table}.offsets")).display().to_string(),
        );
        fs::copy(files.join("offsets.dat"), files.join(format!("{table}.offsets"))).unwrap();
        let mut run =
            Process::start(Engine::Holdfast, &only, &files, table, RunOptions::default()).unwrap();
        let status = run.wait_end(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(status.code(), Some(3), "{table}: {}", run.log());
        let ids: Vec<i64> = run
            .records()
            .iter()
            .filter(|record| record.source().text("table") == Some(table))
            .filter_map(|record| record.key().get("id").and_then(Json::as_i64))
            .collect();
        assert_eq!(ids, [1], "{table}");
        let log = run.log();
        assert!(log.contains(&format!("{database}.{table}")), "{log}");
        assert!(log.contains(&format!("column {column} ")), "{log}");
        assert!(log.contains("of the schema history, has ("), "{log}");
    }
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn wrong_definitions_are_found_with_minimal_metadata_of_mysql() {
    wrong_definitions_are_found(Options::mysql(), "MINIMAL", "history-wrong-mysql-minimal");
}

#[test]
fn wrong_definitions_are_found_with_full_metadata_of_mysql() {
    wrong_definitions_are_found(Options::mysql(), "FULL", "history-wrong-mysql-full");
}

#[test]
fn wrong_definitions_are_found_with_full_metadata_of_mariadb() {
    wrong_definitions_are_found(Options::mariadb(), "FULL", "history-wrong-mariadb-full");
}

/// Acknowledges some of three rows of `t` and one of `u`, which are one transaction; then the definition of `t` is made
/// wrong in the history, and the engine starts again.
fn after_a_restart(acknowledged: u64) -> (Process, PathBuf, MutexGuard<'static, Server>) {
    let server = shared(&Options::mysql()).unwrap();
    let database = "done_rows";
    let (files, properties) = set_up(&server, database, "history-done");
    server
        .sql(&format!(
            "USE {database}; CREATE TABLE t (id INT PRIMARY KEY, a SMALLINT);
             CREATE TABLE u (id INT PRIMARY KEY, a INT);"
        ))
        .unwrap();
    snapshot(&server, &properties, &files);
    let options = RunOptions { ack_first: Some(acknowledged), ..RunOptions::default() };
    let mut run = Process::start(Engine::Holdfast, &properties, &files, "second", options).unwrap();
    server
        .sql(&format!(
            "USE {database}; BEGIN; INSERT INTO t VALUES (1,1),(2,2),(3,3); INSERT INTO u VALUES (1,1); COMMIT;"
        ))
        .unwrap();
    case::settle(&mut run, &server, 3).unwrap();
    run.kill().unwrap();

    let path = files.join("history.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let wrong = text.replace("\"SMALLINT\"", "\"BIGINT\"");
    assert_ne!(text, wrong);
    fs::write(&path, wrong).unwrap();
    let run = Process::start(Engine::Holdfast, &properties, &files, "third", RunOptions::default())
        .unwrap();
    (run, files, server)
}

#[test]
fn a_start_goes_on_from_a_checkpoint_and_from_none_that_is_damaged() {
    let server = shared(&Options::mysql()).unwrap();
    let (files, mut properties) = set_up(&server, "checkpointed", "history-checkpoint");
    properties.set("holdfast.history.checkpoint.records", "1");
    server.sql("USE checkpointed; CREATE TABLE t (id INT PRIMARY KEY, a SMALLINT)").unwrap();
    snapshot(&server, &properties, &files);
    let checkpoint = files.join("history.jsonl.checkpoint");
    let start = |name: &str, id: i64| {
        let mut run =
            Process::start(Engine::Holdfast, &properties, &files, name, RunOptions::default())
                .unwrap();
        server
            .sql(&format!(
                "USE checkpointed; ALTER TABLE t ADD c{id} INT DEFAULT {id}; INSERT INTO t (id) VALUES ({id})"
            ))
            .unwrap();
        case::settle(&mut run, &server, id).unwrap();
        run.stop().unwrap();
        let row =
            run.records().iter().rev().find(|record| record.source().text("table") == Some("t"));
        let row = row.unwrap().value().get("after").unwrap().to_string();
        assert!(row.ends_with(&format!("\"c{id}\":{id}}}")), "{row}");
        run.log().to_owned()
    };
    start("second", 3);
    assert!(checkpoint.exists());
    let log = start("third", 4);
    assert!(!log.contains("from_checkpoint=0"), "{log}");
    let (code, report) = verify(&files);
    let said = report.get("checkpoint").unwrap().to_string();
    assert!(code == Some(0) && said.contains("says what they say"), "{said}");

    let mut bytes = fs::read(&checkpoint).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&checkpoint, bytes).unwrap();
    let (code, report) = verify(&files);
    let said = report.get("checkpoint").unwrap().to_string();
    assert!(code == Some(0) && said.contains("it is damaged"), "{said}");
    let log = start("fourth", 5);
    assert!(log.contains("it is damaged") && log.contains("from_checkpoint=0"), "{log}");
    // It has written a new one.
    assert!(!start("fifth", 6).contains("from_checkpoint=0"));
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn rows_that_are_done_need_no_definition() {
    let (mut run, files, _server) = after_a_restart(3);
    case::marker_row(&mut run, 3).unwrap();
    let tables: Vec<_> = run
        .records()
        .iter()
        .filter_map(|record| record.source().text("table").map(ToOwned::to_owned))
        .collect();
    assert_eq!(tables, ["u", "marker"]);
    assert_eq!(history(&files, &["verify"]).status.code(), Some(0));
    run.stop().unwrap();
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn the_first_row_that_is_not_done_needs_its_definition() {
    let (mut run, files, _server) = after_a_restart(2);
    let status = run.wait_end(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(status.code(), Some(3), "{}", run.log());
    assert!(run.log().contains("column 2 differs in its type"), "{}", run.log());
    assert_eq!(run.records(), []);
    assert_eq!(history(&files, &["verify"]).status.code(), Some(1));
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn explain_names_the_record_of_a_definition_and_those_that_were_skipped() {
    let server = shared(&Options::mysql()).unwrap();
    let database = "explained";
    let (files, properties) = set_up(&server, database, "history-explain");
    server.sql(&format!("CREATE TABLE {database}.t (id INT PRIMARY KEY, a INT)")).unwrap();
    let mut run =
        Process::start(Engine::Holdfast, &properties, &files, "first", RunOptions::default())
            .unwrap();
    case::snapshot_end(&mut run).unwrap();
    case::settle(&mut run, &server, 2).unwrap();
    let before = stdout(
        &Command::new(holdfast_binary().unwrap())
            .args(["offset", "show", "--format", "json", "--config"])
            .arg(files.join("first.properties"))
            .output()
            .unwrap(),
    );
    server.sql(&format!("ALTER TABLE {database}.t ADD b VARCHAR(20)")).unwrap();
    case::settle(&mut run, &server, 3).unwrap();
    // What was acknowledged is stored when the next batch has gone out.
    case::settle(&mut run, &server, 4).unwrap();
    let table = format!("{database}.t");
    let explain = |offset: Option<&str>| {
        let mut arguments = vec!["explain", "--table", &table, "--format", "json"];
        if let Some(offset) = offset {
            arguments.extend(["--offset", offset]);
        }
        let output = history(&files, &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        Json::parse(stdout(&output).trim()).unwrap()
    };
    let shape = |json: &Json| {
        json.get("tables").unwrap().elements()[0].text("definition").unwrap().to_owned()
    };
    assert_eq!(shape(&explain(None)), "`id` INT, `a` INT, `b` VARCHAR(20) CHARACTER SET utf8mb4");
    let then = explain(Some(before.trim()));
    assert_eq!(shape(&then), "`id` INT, `a` INT");
    let entry = &then.get("tables").unwrap().elements()[0];
    let skipped = entry.get("skipped").unwrap().elements();
    assert_eq!(skipped.len(), 1, "{then:?}");
    assert!(skipped[0].text("rule").is_some() && skipped[0].text("why").is_some());
    assert!(
        skipped[0].get("record").and_then(Json::as_i64)
            > entry.get("record").and_then(Json::as_i64)
    );

    let shown = history(&files, &["show", "--table", &table]);
    let text = stdout(&shown);
    assert!(shown.status.success() && text.contains("ALTER TABLE"), "{text}");
    let lines = stdout(&history(&files, &["show", "--format", "json"]));
    for (index, line) in lines.lines().enumerate() {
        let record = Json::parse(line).unwrap();
        assert_eq!(record.get("record").and_then(Json::as_i64), i64::try_from(index + 1).ok());
    }
    println!("{text}\n{}", stdout(&history(&files, &["explain", "--offset", before.trim()])));
    run.stop().unwrap();

    // What can't be read is not taken for an empty history.
    let path = files.join("history.jsonl");
    let damaged = fs::read_to_string(&path).unwrap().replacen("\"position\"", "\"positoin\"", 1);
    fs::write(&path, damaged).unwrap();
    for command in ["show", "explain", "verify"] {
        assert_eq!(history(&files, &[command]).status.code(), Some(3), "{command}");
    }
    fs::remove_dir_all(files).unwrap();
}

#[test]
fn collation_ids_are_those_of_the_servers() {
    for (options, least) in
        [(Options::mysql(), 280), (Options::mariadb(), 320), (Options::mariadb_11(), 1000)]
    {
        let server = shared(&options).unwrap();
        let table = match server.flavour() {
            Flavour::MySql => "COLLATIONS",
            Flavour::MariaDb => "COLLATION_CHARACTER_SET_APPLICABILITY",
        };
        let rows = server
            .query(&format!(
                "SELECT ID, CHARACTER_SET_NAME FROM information_schema.{table} WHERE ID IS NOT NULL"
            ))
            .unwrap();
        assert!(rows.len() >= least, "{} has {} collations only", server.version(), rows.len());
        for row in rows {
            let id: u64 = row[0].parse().unwrap();
            assert_eq!(
                charset_of_collation(id),
                Some(row[1].as_str()),
                "{} {id}",
                server.version()
            );
        }
    }
}
