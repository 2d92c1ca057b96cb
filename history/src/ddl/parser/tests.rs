use proptest::prelude::*;

use super::super::lexer::{MAX_STATEMENT_BYTES, lex};
use super::super::{DdlContext, DdlErrorKind, Flavor, SqlMode, apply_statement};
use super::parse;
use crate::schema::{DefaultValue, TableId, Tables};

#[test]
fn an_error_says_where_it_is_and_what_is_needed_and_no_literal() {
    let cases = [
        ("CREATE TABLE", 12, "expected a table name, found the end"),
        ("CREATE TABLE t (", 16, "expected a column name, found the end"),
        ("CREATE TABLE t (a)", 17, "expected a column type, found `)`"),
        ("CREATE TABLE t (a 'secret')", 18, "expected a column type, found a string"),
        ("CREATE TABLE t (a INT", 21, "expected `,` or `)` after a column or index, found the end"),
        ("CREATE TABLE t (a INT, PRIMARY KEY)", 34, "expected `(` and key columns, found `)`"),
        (
            "CREATE TABLE t (a INT, PRIMARY KEY ((a+1)))",
            35,
            "expected plain columns in a primary key, found `)`",
        ),
        ("CREATE TABLE t (a ENUM(5))", 23, "expected a label, found a number"),
        ("CREATE TABLE t (a ENUM)", 22, "expected `(` and labels, found `)`"),
        ("CREATE TABLE t (a INT DEFAULT)", 29, "expected a default, found `)`"),
        ("CREATE TABLE t (a INT CHECK (a > 1, (b INT)", 28, "parenthesis without end"),
        ("CREATE TABLE t (a INT COMMENT 5)", 30, "expected a comment, found a number"),
        (
            "ALTER TABLE t FROBNICATE",
            14,
            "expected a clause of alter table, found the word FROBNICATE",
        ),
        ("ALTER TABLE t 'secret'", 14, "expected a clause of alter table, found a string"),
        ("ALTER TABLE t )", 14, "expected a clause of alter table, found `)`"),
        ("ALTER TABLE t ADD", 17, "expected a column name, found the end"),
        ("ALTER TABLE t ALTER a SET", 0, ""),
        ("ALTER TABLE t ALTER a FOO", 22, "expected SET or DROP DEFAULT, found the word FOO"),
        ("ALTER TABLE t RENAME COLUMN a b", 30, "expected TO, found the word b"),
        ("ALTER TABLE t CONVERT TO latin1", 25, "expected CHARACTER SET, found the word latin1"),
        ("RENAME TABLE a b", 15, "expected TO, found the word b"),
        ("RENAME TABLE a TO b c", 20, "expected `,` or the end, found the word c"),
        ("DROP TABLE 5", 11, "expected a table name, found a number"),
        ("TRUNCATE TABLE", 14, "expected a table name, found the end"),
        ("CREATE TABLE t (a VARCHAR(9) DEFAULT 'secret", 37, "string without end"),
        ("CREATE TABLE `t (a INT)", 13, "quoted name without end"),
        ("ALTER TABLE t ADD a INT /* b", 24, "comment without end"),
    ];
    for (sql, offset, message) in cases {
        let outcome = parse(sql, &DdlContext::in_database("d"));
        if message.is_empty() {
            assert!(outcome.is_ok(), "{sql}: {outcome:?}");
            continue;
        }
        let error = outcome.expect_err(sql);
        assert_eq!((error.offset, error.kind.to_string().as_str()), (offset, message), "{sql}");
        assert!(!error.to_string().contains("secret"), "{sql}");
    }
}

#[test]
fn an_error_names_the_table_that_is_created_or_altered() {
    let cases = [
        ("CREATE TABLE", None),
        ("CREATE TABLE t (a)", Some(TableId::new("d", "t"))),
        ("ALTER TABLE `e`.`t` FROBNICATE", Some(TableId::new("e", "t"))),
        ("ALTER TABLE a DROP b", Some(TableId::new("d", "a"))),
        ("CREATE TABLE t LIKE e.u", Some(TableId::new("d", "t"))),
        ("RENAME TABLE a", None),
    ];
    for (sql, table) in cases {
        let error =
            apply_statement(sql, &DdlContext::in_database("d"), &mut known()).expect_err(sql);
        assert_eq!(error.table, table, "{sql}");
    }
}

#[test]
fn deep_nesting_and_long_texts_are_read_in_a_loop() {
    let deep =
        format!("CREATE TABLE t (a INT CHECK ({}1{}))", "(".repeat(100_000), ")".repeat(100_000));
    assert!(parse(&deep, &DdlContext::default()).is_ok());
    let open = format!("CREATE TABLE t (a INT CHECK {}", "(".repeat(100_000));
    assert_eq!(
        parse(&open, &DdlContext::default()).unwrap_err().kind,
        DdlErrorKind::Unterminated { what: "parenthesis" }
    );
    let long = format!("CREATE TABLE t (a INT COMMENT '{}')", "x".repeat(MAX_STATEMENT_BYTES));
    assert!(matches!(
        parse(&long, &DdlContext::default()).unwrap_err().kind,
        DdlErrorKind::TooLong { .. }
    ));
}

#[test]
fn a_table_of_4096_columns_is_parsed() {
    let columns: Vec<String> =
        (0..4096).map(|at| format!("`column {at}` VARCHAR(20) DEFAULT 'it''s'")).collect();
    let mut tables = Tables::new(false);
    let sql = format!("CREATE TABLE t (\n  {}\n)", columns.join(",\n  "));
    apply_statement(&sql, &DdlContext::in_database("d"), &mut tables).unwrap();
    assert_eq!(tables.get(&TableId::new("d", "t")).map(|table| table.columns.len()), Some(4096));
}

/// Pieces of statements, so that random texts get far into the parser.
const PIECES: [&str; 96] = [
    "CREATE",
    "ALTER",
    "DROP",
    "RENAME",
    "TABLE",
    "TABLES",
    "DATABASE",
    "UNIQUE",
    "INDEX",
    "KEY",
    "PRIMARY",
    "OR",
    "REPLACE",
    "IF",
    "NOT",
    "EXISTS",
    "NULL",
    "DEFAULT",
    "ADD",
    "COLUMN",
    "CHANGE",
    "MODIFY",
    "TO",
    "AS",
    "LIKE",
    "FIRST",
    "AFTER",
    "SET",
    "CHARACTER",
    "CHARSET",
    "COLLATE",
    "COMMENT",
    "CONVERT",
    "PARTITION",
    "BY",
    "ORDER",
    "CONSTRAINT",
    "CHECK",
    "REFERENCES",
    "ON",
    "UPDATE",
    "DELETE",
    "NOW",
    "SERIAL",
    "VALUE",
    "GENERATED",
    "ALWAYS",
    "WITH",
    "SYSTEM",
    "VERSIONING",
    "PERIOD",
    "FOR",
    "STATEMENT",
    "SELECT",
    "TRUNCATE",
    "USE",
    "SEQUENCE",
    "INT",
    "VARCHAR",
    "ENUM",
    "LONG",
    "NATIONAL",
    "DOUBLE",
    "DECIMAL",
    "UNSIGNED",
    "BINARY",
    "BYTE",
    "ASCII",
    "t",
    "a",
    "b",
    "`q``n`",
    "\"dq\"",
    "'s''t'",
    "'\\''",
    "N'x'",
    "x'41'",
    "0x4",
    "b'01'",
    "0b1",
    "1",
    "1.5e3",
    "-",
    "+",
    "(",
    ")",
    ",",
    ".",
    "=",
    ":=",
    ";",
    "@v",
    "@@x",
    "/*! */",
    "/*!50100",
    "*/",
];

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => prop::sample::select(&PIECES[..]).prop_map(str::to_owned),
        1 => "[ -~é数\\n]{0,4}",
    ];
    let start = prop::sample::select(
        &["", "CREATE TABLE t (", "CREATE TABLE t (a INT", "ALTER TABLE t ", "SET "][..],
    );
    (start, prop::collection::vec(piece, 0..24))
        .prop_map(|(start, pieces)| format!("{start}{}", pieces.join(" ")))
}

fn contexts() -> impl Strategy<Value = DdlContext> {
    (
        any::<bool>(),
        prop::sample::select(&[0, SqlMode::ANSI_QUOTES, SqlMode::NO_BACKSLASH_ESCAPES][..]),
        any::<bool>(),
    )
        .prop_map(|(mariadb, mode, ahead)| DdlContext {
            flavor: if mariadb { Flavor::MariaDb } else { Flavor::MySql },
            sql_mode: SqlMode(mode),
            server_version: mariadb.then_some(101_106),
            definitions_are_ahead: ahead,
            ..DdlContext::in_database("d")
        })
}

fn known() -> Tables {
    let mut tables = Tables::new(false);
    for sql in [
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9) CHARSET latin1)",
        "CREATE TABLE a (a INT)",
    ] {
        apply_statement(sql, &DdlContext::in_database("d"), &mut tables).unwrap();
    }
    tables
}

/// What holds for any text: no panic, and an error changes nothing and points into the text.
fn holds_for(sql: &str, context: &DdlContext) -> Result<(), TestCaseError> {
    let mut tables = known();
    match apply_statement(sql, context, &mut tables) {
        Err(error) => {
            prop_assert_eq!(&tables, &known(), "{}", error);
            prop_assert!(error.offset <= sql.len());
        }
        Ok(_) => {
            for table in tables.iter() {
                prop_assert_eq!(
                    table.key_columns().count(),
                    table.primary_key.len(),
                    "{}",
                    table.id
                );
            }
        }
    }
    if let Ok(tokens) = lex(sql, context) {
        let mut end = 0;
        for token in tokens {
            prop_assert!(end <= token.start() && token.start() < token.end());
            prop_assert!(sql.get(token.start()..token.end()).is_some());
            end = token.end();
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn any_mixture_of_words_is_applied_or_refused(sql in soup(), context in contexts()) {
        holds_for(&sql, &context)?;
    }

    #[test]
    fn any_text_is_applied_or_refused(sql in "\\PC{0,80}", context in contexts()) {
        holds_for(&sql, &context)?;
        holds_for(&format!("CREATE TABLE x ({sql}"), &context)?;
        holds_for(&format!("ALTER TABLE t {sql}"), &context)?;
    }

    #[test]
    fn what_is_recorded_gives_the_same_tables_again(sql in soup(), context in contexts()) {
        let mut tables = known();
        if let Ok(events) = apply_statement(&sql, &context, &mut tables) {
            let mut again = known();
            for event in &events {
                prop_assert!(apply_statement(&event.ddl, &context, &mut again).is_ok(), "{}", event.ddl);
            }
            prop_assert_eq!(tables, again);
        }
    }

    #[test]
    fn names_labels_defaults_and_comments_keep_every_character(
        text in ".{0,8}", name in ".{1,8}", plain in any::<bool>(),
    ) {
        let mode = if plain { SqlMode::NO_BACKSLASH_ESCAPES } else { 0 };
        let context = DdlContext { sql_mode: SqlMode(mode), comments: true, ..DdlContext::in_database("d") };
        let escaped = if plain { text.clone() } else { text.replace('\\', "\\\\") };
        let quoted = format!("'{}'", escaped.replace('\'', "''"));
        let id = TableId::new("d", name.clone());
        let column = name.replace('`', "``");
        let sql = format!(
            "CREATE TABLE {} (`{column}` ENUM({quoted}) DEFAULT {quoted} COMMENT {quoted})", id.backticked(),
        );
        let mut tables = Tables::new(false);
        apply_statement(&sql, &context, &mut tables).unwrap();
        let table = tables.get(&id).unwrap();
        prop_assert_eq!(&table.columns[0].name, &name);
        prop_assert_eq!(&table.columns[0].comment, &Some(text.clone()));
        // The server takes spaces off the end of labels.
        let text = text.trim_end_matches(' ');
        prop_assert_eq!(&table.columns[0].default, &DefaultValue::Expression(text.to_owned()));
        prop_assert_eq!(table.columns[0].enum_labels(), [text]);
    }

    #[test]
    fn every_prefix_of_a_statement_is_applied_or_refused(cut in 0..400_usize, context in contexts()) {
        const SQL: &str = "CREATE /*!50100 OR */ TABLE IF NOT EXISTS `d`.`ünï``t` (id BIGINT UNSIGNED NOT NULL \
            AUTO_INCREMENT, `e` ENUM('a','it''s',\"q\") CHARACTER SET latin1 DEFAULT 'a' COMMENT 'x\\'y', d DECIMAL(10,2) \
            DEFAULT -1.5e0, g INT GENERATED ALWAYS AS (id + (1)) STORED, t TIMESTAMP(3) DEFAULT CURRENT_TIMESTAMP(3) ON \
            UPDATE NOW(3), UNIQUE KEY u (e(3) DESC), PRIMARY KEY (id)) COMMENT='z' /* c */ COLLATE utf8mb4_bin # end";
        if let Some(sql) = SQL.get(..cut.min(SQL.len())) {
            holds_for(sql, &context)?;
        }
    }
}
