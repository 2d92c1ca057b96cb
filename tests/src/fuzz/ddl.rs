//! A statement, parsed and applied to a small schema.

use std::sync::LazyLock;

use holdfast_history::ddl::{DdlContext, Flavor, SqlMode, apply, apply_statement, classify, parse};
use holdfast_history::schema::Tables;

/// The tables that statements find. Seeds name them.
const SCHEMA: &[&str] = &[
    "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10) NOT NULL, b ENUM('x','y') DEFAULT 'x', \
     c INT AS (id + 1) VIRTUAL, UNIQUE KEY u (a))",
    "CREATE TABLE u (a BIGINT UNSIGNED, b TIMESTAMP(6) NULL, KEY k (a)) DEFAULT CHARSET=latin1",
    "CREATE TABLE other.v (p SERIAL, q DECIMAL(10,2) DEFAULT '1.5', r SET('m','n'))",
];

/// The first byte chooses the session, the rest is the text of the statement. A statement that is refused leaves the tables
/// as they were; one that is taken leaves columns and keys that belong together.
///
/// # Panics
///
/// When one of these does not hold.
pub fn ddl(data: &[u8]) {
    static START: LazyLock<Tables> = LazyLock::new(|| {
        let mut tables = Tables::new(false);
        for statement in SCHEMA {
            apply_statement(statement, &DdlContext::in_database("d"), &mut tables)
                .expect("the schema of the fuzz target can be applied");
        }
        tables
    });
    let Some((&session, text)) = data.split_first() else { return };
    let Ok(sql) = std::str::from_utf8(text) else { return };
    let has = |bit: u8| session & bit != 0;
    let mode = |bit: u8, mode: u64| if has(bit) { mode } else { 0 };
    let context = DdlContext {
        database: (!has(0x80)).then(|| "d".to_owned()),
        sql_mode: SqlMode(
            mode(1, SqlMode::ANSI_QUOTES)
                | mode(2, SqlMode::NO_BACKSLASH_ESCAPES)
                | mode(4, SqlMode::REAL_AS_FLOAT),
        ),
        flavor: if has(8) { Flavor::MariaDb } else { Flavor::MySql },
        implicit_timestamp_defaults: has(0x10),
        comments: has(0x20),
        definitions_are_ahead: has(0x40),
        ..DdlContext::default()
    };
    let _ = classify(sql);
    let Ok(statement) = parse(sql, &context) else { return };
    let mut tables = START.clone();
    let Ok(events) = apply(&statement, &context, &mut tables) else {
        assert!(tables == *START, "a refused statement changed the tables");
        return;
    };
    for change in events.iter().flat_map(|event| &event.changes) {
        assert!(!change.id().table.is_empty(), "a change of a table without a name");
    }
    for table in tables.iter() {
        assert_eq!(
            table.key_columns().count(),
            table.primary_key.len(),
            "the key of {} has columns that the table has not",
            table.id
        );
    }
}
