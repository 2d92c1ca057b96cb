//! What the log itself says of tables: `binlog_row_metadata=FULL` in the place of a history, and columns that images lack.

use std::time::Duration;

use holdfast_tests::engine::{Record, RunOptions};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Flavour, Options, Server, shared};

use crate::story::{Story, briefs};

const LIMIT: Duration = Duration::from_secs(60);

/// The server's `binlog_row_metadata` for a while.
struct Metadata<'s>(&'s Server);

impl<'s> Metadata<'s> {
    fn full(server: &'s Server) -> Self {
        server.sql("SET GLOBAL binlog_row_metadata=FULL").unwrap();
        Self(server)
    }

    fn least(&self) {
        let least = if self.0.flavour() == Flavour::MySql { "MINIMAL" } else { "NO_LOG" };
        self.0.sql(&format!("SET GLOBAL binlog_row_metadata={least}")).unwrap();
    }
}

impl Drop for Metadata<'_> {
    fn drop(&mut self) {
        self.least();
    }
}

const BY_METADATA: &[(&str, &str)] = &[("holdfast.schema.source", "metadata")];

/// The changes of rows, in short.
fn rows(records: &[Record]) -> Vec<String> {
    briefs(records).into_iter().filter(|text| text.starts_with("c ")).collect()
}

#[test]
fn the_log_alone_gives_the_rows_that_the_history_gave() {
    for (options, database) in [(Options::mysql(), "m01"), (Options::mariadb_11(), "m01m")] {
        let server = shared(&options).unwrap();
        let _metadata = Metadata::full(&server);
        let mut story = Story::new(&server, database, BY_METADATA);
        story.sql(
            r"CREATE TABLE w (e ENUM('a','it''s','b\\s','é') CHARACTER SET latin1, s SET('x','y'), k INT UNSIGNED NOT NULL,
                v VARCHAR(20) CHARACTER SET latin1, d DECIMAL(10,2), ts DATETIME(3), b VARBINARY(8), bits BIT(12),
                c CHAR(3), x TEXT, y YEAR, f FLOAT, n BIGINT, g POINT, t TIME(2), PRIMARY KEY (k))",
        );
        story.run();
        story.sql(
            r"INSERT INTO w VALUES ('it''s', 'x,y', 4000000000, 'é', 1.5, '2020-01-02 03:04:05.678', x'0102', b'101',
                'abc', 'text', 2024, 1.5, -7, POINT(1, 2), '10:11:12.34'),
                ('b\\s', '', 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
              INSERT INTO w (e, k) VALUES ('é', 3); INSERT INTO t VALUES (2, 2)",
        );
        let by_history = story.peek();
        assert_eq!(rows(&by_history).len(), 4, "{:?}", briefs(&by_history));
        story.lose_history();
        let by_log = story.peek();
        assert_eq!(rows(&by_log), rows(&by_history), "{database}");
        let keys = |records: &[Record]| -> Vec<String> {
            records.iter().map(|record| record.key().to_string()).collect()
        };
        assert_eq!(keys(&by_log), keys(&by_history), "{database}");

        // Statements on tables that nobody knows are no harm, and neither are those that the log does not have.
        story.sql(
            "ALTER TABLE w DROP c, ADD z INT FIRST; INSERT INTO w (z, k) VALUES (5, 4);
             SET sql_log_bin=0; ALTER TABLE t ADD b INT FIRST; SET sql_log_bin=1; INSERT INTO t VALUES (3, 3, 3)",
        );
        let now = rows(&story.peek());
        let [.., w, t] = now.as_slice() else { panic!("{now:?}") };
        assert!(w.starts_with(r#"c {"z":5,"e":null,"s":null,"k":4,"#), "{w}");
        assert_eq!(t, r#"c {"b":3,"id":3,"a":3}"#);
        story.end();
    }
}

#[test]
fn a_log_that_does_not_name_its_columns_is_refused() {
    for (options, database) in [(Options::mysql(), "m02"), (Options::mariadb_11(), "m02m")] {
        let server = shared(&options).unwrap();
        let metadata = Metadata::full(&server);
        let mut story = Story::new(&server, database, BY_METADATA);
        metadata.least();
        story.sql("INSERT INTO t VALUES (2, 2)");
        let mut process = story.start(RunOptions::default());
        let code = process.wait_end(LIMIT).unwrap().code();
        assert_eq!(code, Some(2), "{}", process.log());
        assert!(process.log().contains("binlog_row_metadata is "), "{}", process.log());

        // The rows are as they were written; only a history can tell what they are.
        let _metadata = Metadata::full(&server);
        let history = story.bytes("history.jsonl");
        story.lose_history();
        let mut process = story.start(RunOptions::default());
        let code = process.wait_end(LIMIT).unwrap().code();
        assert_eq!(code, Some(3), "{}", process.log());
        let log = process.log();
        assert!(log.contains(&format!("what the columns of {database}.t are")), "{log}");
        std::fs::write(story.files.join("history.jsonl"), history).unwrap();
        assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);
        story.end();
    }
}

/// MariaDB 11.8 leaves generated columns out of images.
#[test]
fn rows_with_generated_columns_come_with_what_the_log_has_of_them() {
    for (options, database) in [(Options::mariadb(), "m03"), (Options::mariadb_11(), "m03m")] {
        let server = shared(&options).unwrap();
        let mut story = Story::new(&server, database, &[("skip.messages.without.change", "true")]);
        story.sql(
            "CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, s INT AS (a * 3) STORED,
               w VARCHAR(20) GENERATED ALWAYS AS (CONCAT('x', a)), n INT)",
        );
        story.run();
        // The definition is read from the history.
        story.sql(
            "INSERT INTO g (id, a, n) VALUES (1, 1, 1); UPDATE g SET a = 2; UPDATE g SET n = 1 WHERE a = 2; UPDATE g SET id = 2;
             ALTER TABLE g ADD z INT; DELETE FROM g",
        );
        let records = story.peek();
        let image = |record: &Record, side: &str| {
            record.value().get(side).map(ToString::to_string).unwrap_or_default()
        };
        // VIRTUAL and STORED columns, where the image has them.
        let row = |id: i64, a: i64, [has_virtual, has_stored]: [bool; 2], tail: &str| {
            let null = || "null".to_owned();
            let v = if has_virtual { (a * 2).to_string() } else { null() };
            let s = if has_stored { (a * 3).to_string() } else { null() };
            let w = if has_virtual { format!(r#""x{a}""#) } else { null() };
            format!(r#"{{"id":{id},"a":{a},"v":{v},"s":{s},"w":{w},"n":1{tail}}}"#)
        };
        let [inserted, before, after] = if database == "m03m" {
            [[true, true], [false, false], [false, false]]
        } else {
            [[true, true]; 3]
        };
        let came: Vec<(String, String, String)> = records
            .iter()
            .filter(|record| record.value().text("op").is_some())
            .map(|record| {
                let op = record.value().text("op").unwrap_or_default().to_owned();
                (op, image(record, "before"), image(record, "after"))
            })
            .collect();
        let change = |op: &str, before: String, after: String| (op.to_owned(), before, after);
        let none = || Json::Null.to_string();
        assert_eq!(
            came,
            [
                change("c", none(), row(1, 1, inserted, "")),
                change("u", row(1, 1, before, ""), row(1, 2, after, "")),
                change("d", row(1, 2, before, ""), none()),
                change("c", none(), row(2, 2, after, "")),
                change("d", row(2, 2, before, r#","z":null"#), none()),
            ],
            "{database}"
        );
        story.end();
    }
}

/// MariaDB 11.8 leaves generated columns out of some images, and nothing in the log says which columns are generated.
#[test]
fn generated_columns_come_by_the_log_alone_where_the_images_have_them() {
    for (options, database) in
        [(Options::mysql(), "m04"), (Options::mariadb(), "m04m"), (Options::mariadb_11(), "m04n")]
    {
        let server = shared(&options).unwrap();
        let _metadata = Metadata::full(&server);
        let mut story = Story::new(&server, database, BY_METADATA);
        story.sql(
            "CREATE TABLE g (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, s INT AS (a * 3) STORED)",
        );
        story.run();
        story.sql("INSERT INTO g (id, a) VALUES (1, 1), (2, 2)");
        let all = database != "m04n";
        if all {
            story.sql("UPDATE g SET a = 5 WHERE id = 1; DELETE FROM g WHERE id = 2");
        }
        let by_history = story.peek();
        story.lose_history();
        let by_log = story.peek();
        assert_eq!(briefs(&by_log), briefs(&by_history), "{database}");
        assert_eq!(rows(&by_log)[0], r#"c {"id":1,"a":1,"v":2,"s":3}"#, "{database}");
        if !all {
            story.run();
            story.sql("UPDATE g SET a = 5 WHERE id = 1");
            let mut process = story.start(RunOptions::default());
            let code = process.wait_end(LIMIT).unwrap().code();
            assert_eq!(code, Some(3), "{}", process.log());
            assert!(process.log().contains("`v`"), "{}", process.log());
        }
        story.end();
    }
}

/// The server adds the end of a row's life to the primary key, so that a row and what it was before have two keys. The log
/// has the columns and the key, and not whether they were declared.
#[test]
fn the_log_alone_gives_versioned_tables_the_key_that_the_server_has() {
    for (options, database) in [(Options::mariadb(), "m05"), (Options::mariadb_11(), "m05n")] {
        let server = shared(&options).unwrap();
        let _metadata = Metadata::full(&server);
        let mut story = Story::new(&server, database, BY_METADATA);
        story.sql(
            "CREATE TABLE v (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING;
             CREATE TABLE w (id INT PRIMARY KEY, a INT, rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START,
               re TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME(rs, re)) WITH SYSTEM VERSIONING",
        );
        story.run();
        story.sql("INSERT INTO v VALUES (1, 1); INSERT INTO w (id, a) VALUES (1, 1)");
        let names = |value: Option<&Json>| -> Vec<String> {
            let members = value.map(Json::members).unwrap_or_default();
            members.iter().map(|(name, _)| name.clone()).collect()
        };
        let shapes = |records: &[Record]| -> Vec<(Vec<String>, Vec<String>)> {
            let rows = records.iter().filter(|record| record.value().text("op") == Some("c"));
            rows.map(|record| (names(Some(record.key())), names(record.value().get("after"))))
                .collect()
        };
        let texts = |key: &[&str], row: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
            (owned(key), owned(row))
        };
        let by_history = story.peek();
        assert_eq!(
            shapes(&by_history),
            [texts(&["id"], &["id", "a"]), texts(&["id"], &["id", "a", "rs", "re"])],
            "{database}"
        );
        story.lose_history();
        assert_eq!(
            shapes(&story.peek()),
            [
                texts(&["id", "row_end"], &["id", "a", "row_start", "row_end"]),
                texts(&["id", "re"], &["id", "a", "rs", "re"])
            ],
            "{database}"
        );
        story.end();
    }
}
