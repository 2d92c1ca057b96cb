//! What goes into the schema history, and what a restart makes of it: one engine after the other on the same files.
//!
//! The cases of schema history and comparator, and their tests; those without a path are here:
//!
//! | case | what | test |
//! |---|---|---|
//! | H01 | the decision table of the comparator | `history/src/compare/tests.rs`, `every_row_of_the_decision_table_is_decided_as_written` |
//! | H02, H03 | a statement that was not acknowledged | `a_statement_that_was_not_acknowledged_comes_again_once` |
//! | H04, H05 | one that was, on MySQL and MariaDB | `a_statement_that_was_acknowledged_does_not_come_again` |
//! | H06 | the bytes of a record | `history/src/codec/tests.rs`, `records_have_the_bytes_that_debezium_writes`, `a_history_file_of_debezium_survives_reading_and_writing_byte_for_byte` |
//! | H07, H08 | RENAME TABLE, chains of it | `renames_are_recorded_and_recovered_with_their_last_names`; `history/src/recover/tests.rs`, `a_rename_takes_the_old_name_away_and_chains_end_at_the_last_name` |
//! | H09 | DROP of two tables | `a_drop_of_two_tables_is_two_records_at_one_position` |
//! | H10, H11, H12 | what is not stored | `statements_that_are_not_of_interest_are_not_stored` |
//! | H13 | TRUNCATE | `a_truncate_is_a_record_unless_it_is_skipped` |
//! | H14 | a statement that is not understood | `a_statement_that_is_not_understood_ends_the_run_unless_it_may_be_skipped` |
//! | H15 | `prefer.ddl` | `history/src/recover/tests.rs`, `prefer_ddl_takes_the_statement_where_the_definitions_disagree` |
//! | H16 | records of another source | `history/src/recover/tests.rs`, `records_of_another_source_are_left_out` |
//! | H17 | table comments | `history/src/codec/tests.rs`, `a_table_comment_is_found_beside_the_table_and_inside_it`; `history/src/recover/tests.rs`, `a_dropped_table_is_gone_and_its_comment_survives_while_it_is_there` |
//! | H18 | a torn last line | `a_torn_last_record_is_left_out_and_comes_again`; `history/src/store/lines.rs`, `a_torn_end_gives_the_groups_before_it_whatever_its_length` |
//! | H19 | bad records in a store like a queue | there is no such store; in ours a bad record is an error that names it: `history/src/store/conformance.rs`, `damage` |
//! | H20, H21 | long records, a clock that goes back, in tables | `tables.rs`, `a_record_longer_than_a_part_comes_back_whole_and_keeps_its_place`, `records_stay_in_order_when_the_clock_goes_back_and_a_foreign_writer_fences` |
//! | H22 | two writers | `objects.rs`, `the_second_of_two_writers_is_fenced` |
//! | H23 | a history that is missing | `a_missing_history_is_an_error_that_leaves_the_offset_alone` |
//! | H24, H25 | a snapshot with a later clock; suspicious skips | `incident.rs`, `a_snapshot_of_a_replica_that_replays_a_backlog_is_applied`; `history/src/recover/tests.rs`, `a_skip_with_earlier_coordinates_is_suspicious_and_names_record_and_table` |
//! | H26 | another base name | `history/src/recover/tests.rs`, `a_history_of_another_base_name_is_applied` |
//! | H27 | positions beyond 31 bits | `history/src/recover/tests.rs`, `positions_beyond_31_bits_keep_their_order` |
//! | H28 | a reset of the log | `history/src/recover/tests.rs`, `after_a_reset_the_records_of_the_earlier_epoch_are_applied` |
//! | H29 | a replica as the source | `history/src/recover/tests.rs`, `on_a_replica_coordinates_decide_whatever_the_origins_say` |

use std::time::Duration;

use holdfast_tests::engine::RunOptions;
use holdfast_tests::server::{Options, shared};
use holdfast_tests::{case, golden};

use crate::story::{Story, briefs};

const LIMIT: Duration = Duration::from_secs(60);

impl Story<'_> {
    /// Runs a script through an engine, and gives the statements that this put into the history.
    fn recorded(&mut self, script: &str) -> Vec<(u64, String)> {
        let before = self.history().len();
        self.sql(script);
        self.run();
        self.history().split_off(before)
    }
}

/// A statement beyond the stored offset is recorded when it comes again, which recovery tells from a new one.
fn assert_recorded_again(before: &[(u64, String)], after: &[(u64, String)]) {
    let (old, new) = after.split_at(before.len());
    assert_eq!(old, before);
    assert!(new.iter().all(|record| before.contains(record)), "{new:?}");
}

/// H02, H03: a statement in the history whose offset was never stored comes again, once, and rows before it have their
/// old form.
#[test]
fn a_statement_that_was_not_acknowledged_comes_again_once() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "h02", &[]);
    story.sql(
        "INSERT INTO t VALUES (2, 2); ALTER TABLE t ADD COLUMN b INT; INSERT INTO t VALUES (3, 3, 3)",
    );
    let expected =
        [r#"c {"id":2,"a":2}"#, "ALTER TABLE t ADD COLUMN b INT", r#"c {"id":3,"a":3,"b":3}"#];
    let first = story.peek();
    assert_eq!(briefs(&first), expected);
    let history = story.history();
    let second = story.peek();
    assert_eq!(golden::live(&second), golden::live(&first));
    assert_recorded_again(&history, &story.history());
    story.end();

    let mut story = Story::new(&mysql, "h03", &[]);
    story.sql("ALTER TABLE t RENAME COLUMN a TO b; INSERT INTO t VALUES (2, 2)");
    let expected = ["ALTER TABLE t RENAME COLUMN a TO b", r#"c {"id":2,"b":2}"#];
    assert_eq!(briefs(&story.peek()), expected);
    let history = story.history();
    assert_eq!(briefs(&story.peek()), expected);
    assert_recorded_again(&history, &story.history());
    // However often it is recorded, it is applied once.
    assert_eq!(briefs(&story.peek()), expected);
    story.end();
}

/// H04, H05: a statement that was acknowledged, and nothing behind it: the restart has nothing to say.
#[test]
fn a_statement_that_was_acknowledged_does_not_come_again() {
    for (options, database) in [(Options::mysql(), "h04"), (Options::mariadb(), "h05")] {
        let server = shared(&options).unwrap();
        let mut story = Story::new(&server, database, &[]);
        story.sql("ALTER TABLE t RENAME COLUMN a TO b");
        let mut process = story.start(RunOptions::default());
        process
            .wait_for("the statement", LIMIT, |record| record.value().text("ddl").is_some())
            .unwrap();
        process.stop().unwrap();
        let (history, offset) = (story.history(), story.offset());

        let options = RunOptions { idle_timeout: Some(2), ..RunOptions::default() };
        let mut process = story.start(options);
        assert!(process.wait_end(LIMIT).unwrap().success(), "{}", process.log());
        assert_eq!(briefs(process.records()), Vec::<String>::new(), "{database}");
        assert!(!process.log().contains("ERROR"), "{}", process.log());
        assert_eq!(story.history(), history);
        assert_eq!(story.offset(), offset);
        story.end();
    }
}

/// H09: one statement, two records, one position.
#[test]
fn a_drop_of_two_tables_is_two_records_at_one_position() {
    let server = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&server, "h09", &[]);
    let recorded = story.recorded("DROP TABLE t, u");
    let [(first, t), (second, u)] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert_eq!(first, second);
    assert!(t.contains("`t`") && u.contains("`u`"), "{recorded:?}");
    story.end();
}

/// H07, H08: the history tells the old name, and a restart knows the new one only, however often the table went on.
#[test]
fn renames_are_recorded_and_recovered_with_their_last_names() {
    let server = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&server, "h07", &[]);
    let recorded = story.recorded(
        "RENAME TABLE t TO t1; RENAME TABLE t1 TO t2, u TO t1, t2 TO u; INSERT INTO u VALUES (2, 2)",
    );
    assert_eq!(recorded.len(), 4, "{recorded:?}");
    let lines = String::from_utf8(story.bytes("history.jsonl")).unwrap();
    let first = lines.lines().rev().nth(3).unwrap();
    assert!(first.contains(r#""id":"\"h07\".\"t1\"","previousId":"\"h07\".\"t\"""#), "{first}");
    // From the history.
    story.sql("INSERT INTO u VALUES (3, 3); INSERT INTO t1 VALUES (4)");
    assert_eq!(story.run(), [r#"c {"id":3,"a":3}"#, r#"c {"id":4}"#]);
    story.end();
}

/// H18: what of a record was not written to its end was never relied on.
#[test]
fn a_torn_last_record_is_left_out_and_comes_again() {
    let server = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&server, "h18", &[]);
    story.sql("ALTER TABLE t ADD b INT; INSERT INTO t VALUES (2, 2, 2)");
    let expected = ["ALTER TABLE t ADD b INT", r#"c {"id":2,"a":2,"b":2}"#];
    assert_eq!(briefs(&story.peek()), expected);
    let whole = story.bytes("history.jsonl");
    std::fs::write(story.files.join("history.jsonl"), &whole[..whole.len() - 5]).unwrap();
    let mut process = story.start(RunOptions::default());
    story.settle(&mut process);
    process.stop().unwrap();
    assert_eq!(briefs(&case::records_of_case(process.records())), expected);
    assert!(process.log().contains("WARN"), "{}", process.log());
    let statements = story.history().into_iter().map(|(_, ddl)| ddl);
    assert_eq!(statements.filter(|ddl| ddl == expected[0]).count(), 1);
    story.end();
}

/// H10, H11, H12: what is not of interest is not stored.
#[test]
fn statements_that_are_not_of_interest_are_not_stored() {
    let server = shared(&Options::mysql()).unwrap();
    let settings = [
        ("table.include.list", "h10.t,holdfast_marker.marker"),
        ("schema.history.internal.store.only.captured.tables.ddl", "true"),
    ];
    let settings =
        settings.map(|(key, value)| (key, value.replace("holdfast_marker", case::MARKER)));
    let settings = settings.each_ref().map(|(key, value)| (*key, value.as_str()));
    let mut story = Story::new(&server, "h10", &settings);
    let stored = story.history();
    assert!(stored.iter().any(|(_, ddl)| ddl.starts_with("SET ")), "{stored:?}");
    assert!(!stored.iter().any(|(_, ddl)| ddl.contains("`u`")), "{stored:?}");
    let recorded = story.recorded("ALTER TABLE u ADD b INT; ALTER TABLE t ADD b INT");
    let statements: Vec<&str> = recorded.iter().map(|(_, ddl)| ddl.as_str()).collect();
    assert_eq!(statements, ["ALTER TABLE t ADD b INT"]);
    story.end();

    let mut story = Story::new(&server, "h11", &[]);
    let recorded = story.recorded(
        "DROP DATABASE IF EXISTS h11_other; CREATE DATABASE h11_other; CREATE TABLE h11_other.t (a INT);
         DROP DATABASE h11_other",
    );
    assert_eq!(recorded, []);
    story.end();

    let mut story = Story::new(&server, "h12", &[]);
    let recorded = story.recorded(
        "DROP USER IF EXISTS h12@localhost; DROP ROLE IF EXISTS h12_role;
         SET GLOBAL log_bin_trust_function_creators=1;
         CREATE FUNCTION f() RETURNS INT RETURN 1; CREATE PROCEDURE p() SELECT 1; CREATE VIEW v AS SELECT 1;
         CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @x = 1; CREATE USER h12@localhost;
         CREATE ROLE h12_role; GRANT SELECT ON h12.* TO h12@localhost; ANALYZE TABLE t; DROP FUNCTION f;
         DROP PROCEDURE p; DROP VIEW v; DROP TRIGGER tr; DROP USER h12@localhost; DROP ROLE h12_role",
    );
    assert_eq!(recorded, []);
    story.end();
}

/// H13: by default TRUNCATE gives no record.
#[test]
fn a_truncate_is_a_record_unless_it_is_skipped() {
    let server = shared(&Options::mysql()).unwrap();
    for (skipped, expected) in [("t", vec![]), ("none", vec!["t null".to_owned()])] {
        let mut story = Story::new(&server, "h13", &[("skipped.operations", skipped)]);
        let before = story.history();
        story.sql("TRUNCATE TABLE t");
        assert_eq!(story.run(), expected);
        assert_eq!(story.history(), before);
        story.end();
    }
}

/// H14: a statement that can't be understood ends the run, or is left out where the configuration says so.
#[test]
fn a_statement_that_is_not_understood_ends_the_run_unless_it_may_be_skipped() {
    let server = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&server, "h14", &[]);
    // The text says nothing of the columns, and no rows come with it.
    story.sql("SET SESSION binlog_format=STATEMENT; CREATE TABLE c SELECT 1 AS a");
    story.sql("INSERT INTO t VALUES (2, 2)");
    let offset = story.offset();
    let mut process = story.start(RunOptions::default());
    let status = process.wait_end(LIMIT).unwrap();
    assert_eq!(status.code(), Some(3), "{}", process.log());
    let log = process.log();
    assert!(log.contains("h14.c") && log.contains("skip.unparseable.ddl"), "{log}");
    assert_eq!(story.offset(), offset);

    story.properties.set("schema.history.internal.skip.unparseable.ddl", "true");
    let mut process = story.start(RunOptions::default());
    story.settle(&mut process);
    process.stop().unwrap();
    assert_eq!(briefs(&case::records_of_case(process.records())), [r#"c {"id":2,"a":2}"#]);
    assert!(process.log().contains("statement ignored"), "{}", process.log());
    story.end();
}

/// H23: without its history a stored offset can't be read from, and it stays as it is.
#[test]
fn a_missing_history_is_an_error_that_leaves_the_offset_alone() {
    let server = shared(&Options::mysql()).unwrap();
    for mode in ["initial", "no_data"] {
        let mut story = Story::new(&server, "h23", &[]);
        story.properties.set("snapshot.mode", mode);
        story.sql("INSERT INTO t VALUES (2, 2)");
        let offset = story.offset();
        let history = std::fs::read(story.files.join("history.jsonl")).unwrap();
        std::fs::remove_file(story.files.join("history.jsonl")).unwrap();
        let mut process = story.start(RunOptions::default());
        let status = process.wait_end(LIMIT).unwrap();
        let log = process.log();
        assert!(!status.success() && log.contains("history"), "{mode}: {status}\n{log}");
        assert_eq!(story.offset(), offset, "{mode}");
        assert_eq!(briefs(process.records()), Vec::<String>::new(), "{mode}");

        // With the history back, nothing was lost.
        std::fs::write(story.files.join("history.jsonl"), history).unwrap();
        assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#], "{mode}");
        story.end();
    }
}
