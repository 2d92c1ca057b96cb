//! What keeps `holdfast refresh` from writing, on real servers, and how an operator goes on all the same.
//!
//! A purged position and another server's log are in `refresh.rs`.

use holdfast_tests::engine::RunOptions;
use holdfast_tests::json::Json;
use holdfast_tests::paths;
use holdfast_tests::replica::{self, Pair};
use holdfast_tests::server::{Flavour, Options, shared};

use crate::story::Story;

/// The warnings of a report.
fn warnings(report: &Json) -> Vec<String> {
    let warnings = report.get("warnings").unwrap().elements();
    warnings.iter().map(|warning| warning.as_text().unwrap().to_owned()).collect()
}

fn a_replica_must_be_level(pair: &Pair, database: &'static str) {
    let mut story = Story::new(&pair.replica, database, &[]);
    story.sql("INSERT INTO t VALUES (2, 2)");
    story.lose_history();

    pair.stop().unwrap();
    let text = story.refuses(&["--yes"], 1);
    for words in [
        "the server is a replica whose replication is stopped",
        "wait until it has caught up",
        "RESET REPLICA ALL",
        "--allow-replica-lag",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    pair.follow().unwrap();

    pair.delay(3600).unwrap();
    pair.source.sql("CREATE DATABASE IF NOT EXISTS later").unwrap();
    pair.lags().unwrap();
    let text = story.refuses(&["--yes"], 1);
    assert!(text.contains("seconds behind its source"), "{text}");
    let page = std::fs::read_to_string(paths::workspace().join("docs/operations.md")).unwrap();
    let page = page.replace('\n', " ");
    for words in ["replica whose replication is stopped", "seconds behind its source"] {
        assert!(page.contains(words), "{words:?} is on the page");
    }
    // The operator goes on. The definitions are those of the replica's own log.
    let report = story.refreshes(&["--allow-replica-lag"]);
    let warnings = warnings(&report);
    assert!(
        warnings
            .iter()
            .any(|text| text.contains("seconds behind its source; gone on all the same")),
        "{report}"
    );
    assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);

    // Level again: nothing to say.
    pair.delay(0).unwrap();
    pair.level().unwrap();
    story.sql("INSERT INTO t VALUES (3, 3)");
    story.lose_history();
    let report = story.refreshes(&[]);
    assert_eq!(self::warnings(&report), Vec::<String>::new(), "{report}");
    assert_eq!(story.run(), [r#"c {"id":3,"a":3}"#]);
    story.end();
}

#[test]
fn a_replica_of_mysql_that_lags_or_has_stopped_is_refused() {
    a_replica_must_be_level(&replica::shared().unwrap(), "lag_mysql");
}

#[test]
fn a_replica_of_mariadb_that_lags_or_has_stopped_is_refused() {
    a_replica_must_be_level(&Pair::start(Flavour::MariaDb).unwrap(), "lag_mariadb");
}

#[test]
fn rows_of_an_older_definition_are_named_with_their_place_and_both_shapes() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "shapes", &[]);
    let here = || -> i64 {
        let status = mysql.query("SHOW BINARY LOG STATUS").unwrap();
        status[0][1].parse().unwrap()
    };
    let mut places = vec![here()];
    for statement in [
        "INSERT INTO t VALUES (2, 2)",
        "ALTER TABLE t ADD b VARCHAR(20)",
        "INSERT INTO t VALUES (3, 3, 'x')",
        "ALTER TABLE t MODIFY a BIGINT",
    ] {
        story.sql(statement);
        places.push(here());
    }
    let report = story.refresh(&["--dry-run", "--format", "json"]);
    assert_eq!(report.status.code(), Some(1));
    let report = Json::parse(String::from_utf8_lossy(&report.stdout).trim()).unwrap();
    let tables = report.get("tables").unwrap().elements();
    let table = tables.iter().find(|table| table.text("table") == Some("shapes.t")).unwrap();
    assert_eq!(table.text("outcome"), Some("refused"), "{table}");
    assert_eq!(
        table.text("definition"),
        Some("`id` INT, `a` BIGINT, `b` VARCHAR(20) CHARACTER SET utf8mb4")
    );
    let rows = table.get("first_rows").unwrap();
    assert_eq!(rows.text("columns"), Some("INT, INT"), "{table}");
    let pos = |of: &Json| of.at_path("at.pos").unwrap().as_i64().unwrap();
    assert!((places[0]..places[1]).contains(&pos(rows)), "{table} {places:?}");
    let statements = table.get("statements").unwrap().elements();
    let [add, modify] = statements else { panic!("{table}") };
    assert_eq!(add.text("ddl"), Some("ALTER TABLE t ADD b VARCHAR(20)"));
    assert!((places[1]..places[2]).contains(&pos(add)), "{table} {places:?}");
    assert_eq!(modify.text("ddl"), Some("ALTER TABLE t MODIFY a BIGINT"));
    assert!((places[3]..=places[4]).contains(&pos(modify)), "{table} {places:?}");
    let text = story.refuses(&["--yes"], 1);
    let words = format!(
        "its first rows, in {} at {}, do not fit",
        rows.at_path("at.file").unwrap().as_text().unwrap(),
        pos(rows)
    );
    assert!(text.contains(&words), "{words:?} is not in\n{text}");

    // A table that came back to its old form fits its first rows, and is refused for those in between.
    let mut process = story.start(RunOptions::default());
    story.settle(&mut process);
    process.stop().unwrap();
    story.sql(
        "INSERT INTO t VALUES (4, 4, 'y'); ALTER TABLE t ADD c INT; INSERT INTO t VALUES (5, 5, 'z', 5); \
         ALTER TABLE t DROP c",
    );
    let text = story.refuses(&["--yes"], 1);
    assert!(text.contains("before the statement in"), "{text}");
    story.end();
}
