//! Random DDL: statements that are likely to be right, written in as many ways as the grammar has.

use std::fmt::Write as _;

/// A small generator of pseudo-random numbers: the same seed gives the same statements.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// True once in `times`.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// A table as the server has it, as far as statements refer to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) database: String,
    pub(super) table: String,
    pub(super) columns: Vec<String>,
    /// Columns of numbers, other than AUTO_INCREMENT.
    pub(super) numbers: Vec<String>,
    pub(super) indexes: Vec<String>,
}

/// Settings of the session that runs a sequence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Session {
    pub(super) mariadb: bool,
    pub(super) ansi_quotes: bool,
    pub(super) no_backslash_escapes: bool,
}

pub(super) const DATABASES: [&str; 2] = ["model_a", "Model B"];
const TABLES: [&str; 5] = ["t", "T2", "größen", "sel`ect", "x.y"];
const COLUMNS: [&str; 12] = [
    "id",
    "a",
    "b",
    "c",
    "Name",
    "größe",
    "two words",
    "we`ird",
    "select",
    "first",
    "key",
    "after",
];
const INDEXES: [&str; 4] = ["k1", "k2", "k 3", "k4"];
const CHARSETS: [&str; 8] =
    ["utf8mb4", "latin1", "utf8mb3", "utf8", "ascii", "latin2", "ucs2", "binary"];
const COLLATIONS: [&str; 7] = [
    "utf8mb4_bin",
    "utf8mb4_general_ci",
    "latin1_swedish_ci",
    "latin1_bin",
    "utf8mb3_general_ci",
    "ascii_bin",
    "cp1250_general_ci",
];

/// Writes statements.
pub(super) struct Generator<'a> {
    pub(super) random: &'a mut Random,
    pub(super) session: Session,
    /// The tables that are there.
    pub(super) known: &'a [Known],
    /// The session's database.
    pub(super) database: &'a str,
}

impl Generator<'_> {
    /// One statement.
    pub(super) fn statement(&mut self) -> String {
        if self.known.len() < 2 || self.random.one_in(5) {
            return self.create_table();
        }
        match self.random.below(24) {
            0 => self.create_like(),
            // MariaDB logs a text of its own making, with escapes that its mode does not have.
            1 if !(self.session.mariadb && self.session.no_backslash_escapes) => {
                self.create_select()
            }
            2 => self.rename_tables(),
            3 => self.drop_tables(),
            4 => {
                let (_, name) = self.some_table();
                format!("TRUNCATE{} {name}", self.random.pick(&["", " TABLE"]))
            }
            5 | 6 => self.create_index(),
            7 => {
                let (table, name) = self.some_table();
                let index = self.some_index(&table);
                format!("DROP INDEX {index} ON {name}")
            }
            8 => self.alter_database(),
            9 if self.random.one_in(3) => self.drop_database(),
            _ => self.alter_table(),
        }
    }

    fn create_table(&mut self) -> String {
        let database = self.random.pick(&DATABASES);
        let table = self.random.pick(&TABLES);
        let name = self.qualified(database, table);
        let mut names: Vec<&str> = COLUMNS.to_vec();
        let mut elements = Vec::new();
        let mut columns = Vec::new();
        let mut has_key = false;
        for _ in 0..=self.random.below(7) {
            let column = names.remove(self.random.below(names.len()));
            let (definition, key) = self.column(has_key);
            has_key |= key;
            elements.push(format!("{} {definition}", self.quoted(column)));
            columns.push(column.to_owned());
        }
        for _ in 0..self.random.below(3) {
            let element = self.constraint(&columns, &mut has_key);
            elements.push(element);
        }
        let gap = self.gap();
        let mut sql = format!("CREATE{gap}TABLE ");
        if self.session.mariadb && self.random.one_in(8) {
            sql = format!("CREATE OR REPLACE{gap}TABLE ");
        } else if self.random.one_in(6) {
            sql.push_str("IF NOT EXISTS ");
        }
        let comma = format!(",{}", self.gap());
        write!(sql, "{name}{}({}){}", self.gap(), elements.join(&comma), self.table_options())
            .unwrap();
        if self.session.mariadb && self.random.one_in(12) {
            sql.push_str(" WITH SYSTEM VERSIONING");
        } else if self.random.one_in(15) {
            write!(sql, " PARTITION BY KEY () PARTITIONS 2").unwrap();
        }
        sql
    }

    fn create_like(&mut self) -> String {
        let (_, source) = self.some_table();
        let name = self.new_table();
        match self.random.below(3) {
            0 => format!("CREATE TABLE {name} (LIKE {source})"),
            1 => format!("CREATE TABLE IF NOT EXISTS {name} LIKE {source}"),
            _ => format!("CREATE TABLE {name} LIKE {source}"),
        }
    }

    fn create_select(&mut self) -> String {
        let (_, source) = self.some_table();
        let name = self.new_table();
        match self.random.below(3) {
            0 => format!("CREATE TABLE {name} AS SELECT * FROM {source}"),
            1 => format!(
                "CREATE TABLE {name} (q INT NOT NULL, PRIMARY KEY (q)) SELECT 1 AS q, 'x' AS r"
            ),
            _ => format!(
                "CREATE TABLE {name} CHARSET latin1 SELECT 1.5 AS d, NOW() AS n, _utf8mb4'z' AS z"
            ),
        }
    }

    fn rename_tables(&mut self) -> String {
        let (_, first) = self.some_table();
        let free = self.new_table();
        if self.random.one_in(3) {
            let (_, second) = self.some_table();
            return format!("RENAME TABLE {first} TO {free}, {second} TO {first}");
        }
        format!("RENAME TABLE {first}{}TO {free}", self.gap())
    }

    fn drop_tables(&mut self) -> String {
        let (_, first) = self.some_table();
        let (_, second) = self.some_table();
        match self.random.below(4) {
            0 => format!("DROP TABLE {first}, {second}"),
            1 => format!("DROP TABLE IF EXISTS {first}, nosuch CASCADE"),
            2 => format!("DROP TABLES {first}"),
            _ => format!("/* gone */ DROP TABLE {first} RESTRICT"),
        }
    }

    fn create_index(&mut self) -> String {
        let (table, name) = self.some_table();
        let columns = self.key_parts(&table.columns);
        let index = self.new_index();
        let unique = self.random.pick(&["", "UNIQUE ", "UNIQUE "]);
        format!("CREATE {unique}INDEX {index} ON {name} {columns}")
    }

    fn alter_database(&mut self) -> String {
        let database = self.random.pick(&DATABASES);
        let name = self.quoted(database);
        let charset = self.charset_option(&["DEFAULT "]);
        match self.random.below(4) {
            0 => format!("ALTER DATABASE {charset}"),
            1 => format!("ALTER SCHEMA {name} {charset}"),
            _ => format!("ALTER DATABASE {name} {charset}"),
        }
    }

    fn drop_database(&mut self) -> String {
        let database = DATABASES.into_iter().find(|name| *name != self.database).unwrap();
        format!(
            "DROP {} {}",
            self.random.pick(&["DATABASE", "SCHEMA IF EXISTS"]),
            self.quoted(database)
        )
    }

    /// CREATE DATABASE with or without a character set.
    pub(super) fn create_database(&mut self, name: &str) -> String {
        let name = self.quoted(name);
        let options = match self.random.below(3) {
            0 => String::new(),
            _ => self.charset_option(&["", "DEFAULT "]),
        };
        format!(
            "CREATE {} {name} {options}",
            self.random.pick(&["DATABASE", "SCHEMA IF NOT EXISTS"])
        )
    }

    fn alter_table(&mut self) -> String {
        let (table, name) = self.some_table();
        let mut sql = format!("ALTER{}TABLE {name} ", self.gap());
        if self.session.mariadb && self.random.one_in(10) {
            sql = format!("ALTER TABLE IF EXISTS {name} ");
        }
        let many = self.random.one_in(2);
        let count = if many { 1 + self.random.below(4) } else { 1 };
        // Each clause on columns of its own, or else most statements are refused.
        let mut left = table.columns.clone();
        let mut clauses = Vec::new();
        for _ in 0..count {
            clauses.push(self.clause(&table, &mut left));
        }
        let comma = format!(",{}", self.gap());
        sql.push_str(&clauses.join(&comma));
        sql
    }

    fn clause(&mut self, table: &Known, left: &mut Vec<String>) -> String {
        let take = |random: &mut Random, left: &mut Vec<String>| {
            let index = random.below(left.len().max(1));
            if index < left.len() && !random.one_in(12) {
                left.remove(index)
            } else {
                COLUMNS[random.below(COLUMNS.len())].to_owned()
            }
        };
        let column_word = self.random.pick(&["", "COLUMN "]);
        let if_exists =
            if self.session.mariadb && self.random.one_in(6) { "IF EXISTS " } else { "" };
        match self.random.below(26) {
            0..=3 => {
                let not = if self.session.mariadb && self.random.one_in(6) {
                    "IF NOT EXISTS "
                } else {
                    ""
                };
                let name = self.free_column(table);
                let place = self.place(table, &name);
                let (definition, _) = self.column(true);
                format!("ADD {column_word}{not}{} {definition}{place}", self.quoted(&name))
            }
            4 => {
                let first = self.free_column(table);
                let second = self.free_column(table);
                let (a, key) = self.column(false);
                let (b, _) = self.column(key);
                let mut elements = vec![
                    format!("{} {a}", self.quoted(&first)),
                    format!("{} {b}", self.quoted(&second)),
                ];
                if self.random.one_in(3) {
                    elements.push(format!("UNIQUE {} ({})", self.new_index(), self.quoted(&first)));
                }
                format!("ADD {column_word}({})", elements.join(", "))
            }
            5..=8 => {
                let name = take(self.random, left);
                let (definition, _) = self.column(true);
                let place = self.place(table, &name);
                format!("MODIFY {column_word}{if_exists}{} {definition}{place}", self.quoted(&name))
            }
            9..=11 => {
                let old = take(self.random, left);
                let new = if self.random.one_in(4) { old.clone() } else { self.free_column(table) };
                let (definition, _) = self.column(true);
                let place = self.place(table, &old);
                format!(
                    "CHANGE {column_word}{if_exists}{} {} {definition}{place}",
                    self.quoted(&old),
                    self.quoted(&new)
                )
            }
            12 | 13 => {
                let old = take(self.random, left);
                let new = self.free_column(table);
                format!("RENAME COLUMN {} TO {}", self.quoted(&old), self.quoted(&new))
            }
            14 | 15 => {
                let name = take(self.random, left);
                format!("DROP {column_word}{if_exists}{}", self.quoted(&name))
            }
            16 => {
                // A number is no default of a TIME or of an AUTO_INCREMENT that could be compared.
                let set = match table.numbers.get(self.random.below(table.numbers.len().max(1))) {
                    Some(name) if left.contains(name) && self.random.one_in(2) => {
                        Some(name.clone())
                    }
                    _ => None,
                };
                let (name, default) = match set {
                    Some(name) => {
                        left.retain(|other| *other != name);
                        (name, self.random.pick(&["SET DEFAULT 7", "SET DEFAULT '5'"]))
                    }
                    None => {
                        let name = take(self.random, left);
                        let default = self.random.pick(&["DROP DEFAULT", "SET DEFAULT NULL"]);
                        // With implicit defaults, MariaDB gives a TIMESTAMP that loses its default one of its own, or not:
                        // the same statement goes either way.
                        let is_sure = !self.session.mariadb || table.numbers.contains(&name);
                        (name, if is_sure { default } else { "SET DEFAULT NULL" })
                    }
                };
                format!("ALTER {column_word}{} {default}", self.quoted(&name))
            }
            17 => {
                let columns = self.key_parts(&table.columns);
                format!("ADD {}PRIMARY KEY {columns}", self.random.pick(&["", "CONSTRAINT pk "]))
            }
            18 => "DROP PRIMARY KEY".to_owned(),
            19 => {
                let columns = self.key_parts(&table.columns);
                let kind =
                    self.random.pick(&["UNIQUE", "UNIQUE KEY", "UNIQUE INDEX", "INDEX", "KEY"]);
                format!("ADD {kind} {} {columns}", self.new_index())
            }
            20 => {
                let index = self.some_index(table);
                match self.random.below(3) {
                    0 => format!("RENAME INDEX {index} TO {}", self.new_index()),
                    _ => format!("DROP {} {index}", self.random.pick(&["INDEX", "KEY"])),
                }
            }
            21 => {
                // MySQL takes the bytes of labels in `binary` for ucs2, two at a time.
                let charset = self.random.pick(&CHARSETS.map(|name| match name {
                    "ucs2" => "utf8mb4",
                    name => name,
                }));
                match self.random.below(4) {
                    0 => "CONVERT TO CHARACTER SET DEFAULT".to_owned(),
                    1 => "CONVERT TO CHARSET latin1 COLLATE latin1_bin".to_owned(),
                    _ => format!("CONVERT TO CHARACTER SET {charset}"),
                }
            }
            22 => self.charset_option(&["", "DEFAULT "]),
            23 => {
                let text = self.comment_text();
                format!("COMMENT{}{text}", self.random.pick(&["=", " ", " = "]))
            }
            // MariaDB 10.11 leaves the old table behind when its name has other than plain characters.
            24 if !self.session.mariadb || ["t", "T2"].contains(&table.table.as_str()) => {
                let database = self.random.pick(&DATABASES);
                let name = self.random.pick(&TABLES);
                let name = format!("{}.{}", self.quoted(database), self.quoted(name));
                format!("RENAME {}{name}", self.random.pick(&["", "TO ", "AS "]))
            }
            _ => self
                .random
                .pick(&[
                    "FORCE",
                    "ENGINE=InnoDB",
                    "ROW_FORMAT = DYNAMIC",
                    "ALGORITHM=COPY",
                    "LOCK=DEFAULT",
                    "AUTO_INCREMENT 5",
                    "ADD CHECK (1 = 1)",
                    "ORDER BY 1",
                    "DISABLE KEYS",
                ])
                .to_owned(),
        }
    }

    fn place(&mut self, table: &Known, itself: &str) -> String {
        match self.random.below(4) {
            0 => " FIRST".to_owned(),
            1 => {
                let others: Vec<&String> =
                    table.columns.iter().filter(|name| *name != itself).collect();
                match others.get(self.random.below(others.len().max(1))) {
                    Some(name) => format!(" AFTER {}", self.quoted(name)),
                    None => String::new(),
                }
            }
            _ => String::new(),
        }
    }

    /// A constraint of CREATE TABLE.
    fn constraint(&mut self, columns: &[String], has_key: &mut bool) -> String {
        let parts = self.key_parts(columns);
        match self.random.below(8) {
            0 | 1 if !*has_key => {
                *has_key = true;
                let head = self.random.pick(&[
                    "PRIMARY KEY",
                    "CONSTRAINT PRIMARY KEY",
                    "CONSTRAINT pk PRIMARY KEY USING BTREE",
                ]);
                format!("{head} {parts}")
            }
            2 => format!("UNIQUE KEY {} {parts}", self.new_index()),
            3 => format!("CONSTRAINT {} UNIQUE {parts}", self.new_index()),
            4 => format!("UNIQUE {parts}"),
            5 => format!("CHECK ({} IS NOT NULL OR 1 = 1)", self.quoted(&columns[0])),
            6 => format!("KEY {} {parts}", self.new_index()),
            _ => format!("INDEX {} {parts} COMMENT 'i'", self.new_index()),
        }
    }

    fn key_parts(&mut self, columns: &[String]) -> String {
        let mut left = columns.to_vec();
        let mut parts = Vec::new();
        for _ in 0..=self.random.below(2) {
            if left.is_empty() {
                break;
            }
            let name = left.remove(self.random.below(left.len()));
            let length = self.random.pick(&["", "", "", "(5)"]);
            let order = self.random.pick(&["", "", "", " DESC"]);
            parts.push(format!("{}{length}{order}", self.quoted(&name)));
        }
        format!("({})", parts.join(","))
    }

    /// A definition without its name, and whether it makes the column a primary key or an auto-increment.
    fn column(&mut self, has_key: bool) -> (String, bool) {
        if !has_key && self.random.one_in(6) {
            let text = self.random.pick(&[
                "INT PRIMARY KEY",
                "INT KEY",
                "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY",
                "SERIAL",
                "BIGINT SERIAL DEFAULT VALUE",
                "VARCHAR(10) NOT NULL PRIMARY KEY",
                "INT AUTO_INCREMENT UNIQUE",
                "INT UNIQUE NOT NULL KEY",
            ]);
            return (text.to_owned(), true);
        }
        let (mut text, defaults) = self.data_type();
        // With implicit defaults, a generated TIMESTAMP gets one of its own, which no row ever has.
        if self.random.one_in(24) && !text.starts_with("TIMESTAMP") {
            let stored: &[&str] = if self.session.mariadb {
                &["", " VIRTUAL", " STORED", " PERSISTENT"]
            } else {
                &["", " VIRTUAL", " STORED"]
            };
            let stored = self.random.pick(stored);
            let head = self.random.pick(&["AS", "GENERATED ALWAYS AS"]);
            write!(text, " {head} (NULL){stored}").unwrap();
            return (text, false);
        }
        let nullness = self.random.pick(&["", "", " NULL", " NOT NULL", " NOT NULL"]);
        let default = match self.random.below(6) {
            0 | 1 => {
                match self.random.pick(&defaults.iter().map(String::as_str).collect::<Vec<_>>()) {
                    "" => String::new(),
                    value => format!(" DEFAULT {value}"),
                }
            }
            2 if nullness != " NOT NULL" => " DEFAULT NULL".to_owned(),
            _ => String::new(),
        };
        let mut parts = [nullness.to_owned(), default];
        if self.random.one_in(2) {
            parts.reverse();
        }
        text.push_str(&parts.concat());
        if text.starts_with("TIMESTAMP ") && self.random.one_in(4) {
            text.push_str(" ON UPDATE CURRENT_TIMESTAMP");
        }
        if self.random.one_in(10) {
            text.push_str(self.random.pick(&[" UNIQUE", " UNIQUE KEY"]));
        }
        if self.random.one_in(8) {
            let comment = self.comment_text();
            write!(text, " COMMENT {comment}").unwrap();
        }
        if self.random.one_in(20) {
            text.push_str(if self.session.mariadb {
                " INVISIBLE"
            } else {
                " COLUMN_FORMAT DEFAULT"
            });
        }
        if self.random.one_in(20) {
            text.push_str(" CHECK (1 = 1)");
        }
        if self.random.one_in(30) {
            text.push_str(" REFERENCES nosuch (id) ON DELETE SET NULL");
        }
        (text, false)
    }

    /// A type with its attributes, and what may be its default; an empty default stands for none.
    fn data_type(&mut self) -> (String, Vec<String>) {
        let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let signed = ["", "", "", " UNSIGNED", " SIGNED", " ZEROFILL", " UNSIGNED ZEROFILL"];
        match self.random.below(24) {
            0..=3 => {
                let name = self.random.pick(&[
                    "TINYINT",
                    "INT1",
                    "SMALLINT",
                    "INT2",
                    "MEDIUMINT",
                    "INT3",
                    "MIDDLEINT",
                    "INT",
                    "int",
                    "INTEGER",
                    "INT4",
                    "BIGINT",
                    "INT8",
                    "TinyInt(1)",
                    "INT(11)",
                    "BIGINT(20)",
                ]);
                let sign = self.random.pick(&signed);
                (
                    format!("{name}{sign}"),
                    own(&["0", "5", "'7'", "+3", "TRUE", "false", "0x10", "b'11'", "1.0"]),
                )
            }
            4 => (self.random.pick(&["BOOL", "BOOLEAN"]).to_owned(), own(&["TRUE", "0", "1"])),
            5 | 6 => {
                let name = self.random.pick(&["DECIMAL", "NUMERIC", "DEC", "FIXED"]);
                let size = self.random.pick(&["", "(8)", "(8,2)", "(30 , 10)", "(5,0)"]);
                let sign = self.random.pick(&signed);
                (format!("{name}{size}{sign}"), own(&["0", "1.5", "'2.50'", ".5", "1e1"]))
            }
            7 | 8 => {
                let name = self.random.pick(&[
                    "FLOAT",
                    "FLOAT(7,3)",
                    "FLOAT(10)",
                    "FLOAT(30)",
                    "DOUBLE",
                    "DOUBLE PRECISION",
                    "REAL",
                    "FLOAT4",
                    "FLOAT8",
                    "DOUBLE(8,2)",
                    "REAL(9,3)",
                ]);
                let sign = self.random.pick(&signed);
                (format!("{name}{sign}"), own(&["0", "1.5", "'2.5'", "1e3"]))
            }
            9 => {
                let size = self.random.pick(&["", "(1)", "(8)", "(64)"]);
                (format!("BIT{size}"), own(&["b'1'", "0", "1", "0b1", "x'01'"]))
            }
            10..=12 => {
                let name = self.random.pick(&[
                    "CHAR",
                    "CHARACTER",
                    "CHAR(7)",
                    "CHARACTER(3)",
                    "VARCHAR(20)",
                    "CHAR VARYING(4)",
                    "CHARACTER VARYING(255)",
                    "VARCHARACTER(9)",
                    "varchar(1)",
                ]);
                let charset = self.charset_attribute();
                let defaults =
                    vec!["''".to_owned(), self.string("x"), "5".to_owned(), "x'41'".to_owned()];
                (format!("{name}{charset}"), defaults)
            }
            13 => {
                let name = self.random.pick(&[
                    "NCHAR",
                    "NCHAR(5)",
                    "NATIONAL CHAR(5)",
                    "NATIONAL CHARACTER(3)",
                    "NVARCHAR(9)",
                    "NATIONAL VARCHAR(8)",
                    "NCHAR VARYING(4)",
                    "NCHAR VARCHAR(5)",
                    "NATIONAL CHAR VARYING(6)",
                    "NATIONAL CHARACTER VARYING(7)",
                    "NATIONAL VARCHARACTER(8)",
                ]);
                (name.to_owned(), own(&["''", "N'x'"]))
            }
            14 => {
                let name = self.random.pick(&[
                    "TINYTEXT",
                    "TEXT",
                    "TEXT(50)",
                    "TEXT(70000)",
                    "MEDIUMTEXT",
                    "LONGTEXT",
                    "LONG",
                    "LONG VARCHAR",
                ]);
                let charset = self.charset_attribute();
                (format!("{name}{charset}"), own(&[""]))
            }
            15 => {
                let name = self.random.pick(&[
                    "BINARY",
                    "BINARY(16)",
                    "VARBINARY(20)",
                    "TINYBLOB",
                    "BLOB",
                    "BLOB(100)",
                    "MEDIUMBLOB",
                    "LONGBLOB",
                    "LONG VARBINARY",
                    "CHAR(4) BYTE",
                    "VARCHAR(4) BYTE",
                ]);
                (name.to_owned(), own(&[""]))
            }
            16 => (
                self.random.pick(&["DATE"]).to_owned(),
                own(&["'2020-01-02'", "DATE '2021-03-04'"]),
            ),
            17 => {
                let name = self.random.pick(&["TIME", "TIME(3)", "TIME(0)"]);
                (name.to_owned(), own(&["'01:02:03'", "'-10:00:00'"]))
            }
            18 => {
                let size = self.random.pick(&["", "(3)", "(6)", "(0)"]);
                // MariaDB 11.8 shows LOCALTIME as CURTIME, of which the model knows nothing.
                let local = if self.session.mariadb { "NOW" } else { "LOCALTIME" };
                let now = ["CURRENT_TIMESTAMP", "NOW", local][self.random.below(3)];
                let now = if size.is_empty() || size == "(0)" {
                    format!("{now}()")
                } else {
                    format!("{now}{size}")
                };
                (format!("DATETIME{size}"), vec!["'2020-01-02 03:04:05'".to_owned(), now])
            }
            19 | 20 => {
                let now = ["CURRENT_TIMESTAMP", "NOW()", "LOCALTIMESTAMP"][self.random.below(3)];
                ("TIMESTAMP ".to_owned(), vec!["'2020-01-02 03:04:05'".to_owned(), now.to_owned()])
            }
            21 => (self.random.pick(&["YEAR", "YEAR(4)"]).to_owned(), own(&["2020", "'1999'"])),
            22 => {
                let charset = self.charset_attribute();
                let name = self.random.pick(&["ENUM", "SET"]);
                let mut labels = Vec::new();
                let mut left: Vec<String> = vec![
                    "'a'".to_owned(),
                    "'it''s'".to_owned(),
                    "'b '".to_owned(),
                    "''".to_owned(),
                    "x'41'".to_owned(),
                    "_latin1 x'e4'".to_owned(),
                    "N'n'".to_owned(),
                    "'c' 'd'".to_owned(),
                    self.string("q"),
                ];
                // In `binary` the label is bytes, which a later conversion reads in the new set.
                if charset.contains("latin") || charset.contains("ascii") {
                    left.push("'ü'".to_owned());
                }
                for _ in 0..=self.random.below(4) {
                    labels.push(left.remove(self.random.below(left.len())));
                }

                (format!("{name}({}){charset}", labels.join(",")), vec![labels[0].clone()])
            }
            _ => {
                let names: &[&str] = if self.session.mariadb {
                    &[
                        "JSON",
                        "GEOMETRY",
                        "POINT",
                        "POLYGON",
                        "GEOMETRYCOLLECTION",
                        "UUID",
                        "INET6",
                        "INET4",
                        "MULTIPOINT",
                    ]
                } else {
                    &[
                        "JSON",
                        "GEOMETRY",
                        "POINT",
                        "POLYGON",
                        "GEOMETRYCOLLECTION",
                        "GEOMCOLLECTION",
                        "VECTOR(8)",
                        "VECTOR",
                        "POINT SRID 4326",
                        "JSON",
                    ]
                };
                (self.random.pick(names).to_owned(), own(&[""]))
            }
        }
    }

    fn charset_attribute(&mut self) -> String {
        let charset = self.random.pick(&CHARSETS);
        let collation = self.random.pick(&COLLATIONS);
        match self.random.below(14) {
            0 | 1 => format!(" CHARACTER SET {charset}"),
            2 => format!(" CHARSET {charset}"),
            3 => format!(" COLLATE {collation}"),
            4 => " CHARACTER SET latin1 COLLATE latin1_bin".to_owned(),
            5 => self
                .random
                .pick(&[
                    " ASCII",
                    " UNICODE",
                    " BINARY",
                    " CHARACTER SET utf8mb4 BINARY",
                    " CHAR SET 'latin1'",
                ])
                .to_owned(),
            6 if self.random.one_in(3) => " CHARACTER SET DEFAULT".to_owned(),
            _ => String::new(),
        }
    }

    /// A character set or a collation as an option of a table or a database.
    fn charset_option(&mut self, heads: &[&str]) -> String {
        let head = self.random.pick(heads);
        let charset = self.random.pick(&CHARSETS);
        let equals = self.random.pick(&[" ", "=", " = "]);
        match self.random.below(5) {
            0 => format!("{head}COLLATE{equals}{}", self.random.pick(&COLLATIONS)),
            1 => format!("{head}CHARSET{equals}{charset}"),
            2 => format!("{head}CHARACTER SET{equals}latin1 COLLATE{equals}latin1_bin"),
            3 if self.random.one_in(3) => format!("{head}CHARACTER SET{equals}DEFAULT"),
            _ => format!("{head}CHARACTER SET{equals}{charset}"),
        }
    }

    fn table_options(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.random.below(3) {
            let option = match self.random.below(6) {
                0..=2 => self.charset_option(&["", "DEFAULT "]),
                3 => format!("COMMENT={}", self.comment_text()),
                4 => "ENGINE=InnoDB".to_owned(),
                _ => "/*!50100 ROW_FORMAT=DYNAMIC */".to_owned(),
            };
            text.push_str(self.random.pick(&[" ", "  ", "\n", ", "]));
            text.push_str(&option);
        }
        if text.starts_with(", ") {
            text.replace_range(..1, " ");
        }
        text
    }

    fn comment_text(&mut self) -> String {
        let text = self.random.pick(&["note", "it''s", "a (b, c", "ü /* no */", ""]);
        format!("'{text}'")
    }

    /// A string literal in one of its forms.
    fn string(&mut self, text: &str) -> String {
        let mut forms = vec![
            format!("'{text}'"),
            format!("'{text}''{text}'"),
            format!("_utf8mb4'{text}'"),
            format!("'{text}\"'"),
        ];
        if !self.session.ansi_quotes {
            forms.push(format!("\"{text}'s\""));
        }
        if self.session.no_backslash_escapes {
            forms.push(format!("'{text}\\'"));
        } else {
            forms.push(format!("'{text}\\\\\\''"));
            forms.push(format!("'{text}\\%\\n'"));
        }
        forms.swap_remove(self.random.below(forms.len()))
    }

    /// Space, or a comment.
    fn gap(&mut self) -> String {
        let gaps: &[&str] = &[
            " ",
            " ",
            " ",
            " ",
            " ",
            "\n",
            "\t",
            " /* it's */ ",
            " -- don't\n",
            " # \"\n",
            " /*!50000 */ ",
            "/**/ ",
            " /*!99999 garbage ' */ ",
        ];
        let mut gap = self.random.pick(gaps);
        if self.session.mariadb && gap.contains("garbage") {
            gap = " /*M!100000 */ ";
        }
        gap.to_owned()
    }

    fn quoted(&mut self, name: &str) -> String {
        let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            && !["select", "key"].contains(&name);
        if plain && self.random.one_in(2) {
            name.to_owned()
        } else if self.session.ansi_quotes && self.random.one_in(2) {
            format!("\"{}\"", name.replace('"', "\"\""))
        } else {
            format!("`{}`", name.replace('`', "``"))
        }
    }

    fn qualified(&mut self, database: &str, table: &str) -> String {
        let table = self.quoted(table);
        if database == self.database && self.random.one_in(2) {
            return table;
        }
        let database = self.quoted(database);
        format!("{database}{}{table}", self.random.pick(&[".", ".", " . "]))
    }

    fn some_table(&mut self) -> (Known, String) {
        let table = self.known[self.random.below(self.known.len())].clone();
        let name = self.qualified(&table.database, &table.table);
        (table, name)
    }

    fn new_table(&mut self) -> String {
        let database = self.random.pick(&DATABASES);
        let table = self.random.pick(&TABLES);
        self.qualified(database, table)
    }

    fn free_column(&mut self, table: &Known) -> String {
        let free: Vec<&str> = COLUMNS
            .into_iter()
            .filter(|name| !table.columns.iter().any(|there| there == name))
            .collect();
        if free.is_empty() || self.random.one_in(20) {
            return self.random.pick(&COLUMNS).to_owned();
        }
        self.random.pick(&free).to_owned()
    }

    fn some_index(&mut self, table: &Known) -> String {
        let index = match table.indexes.get(self.random.below(table.indexes.len().max(1))) {
            Some(index) => index.clone(),
            None => INDEXES[0].to_owned(),
        };
        self.quoted(&index)
    }

    fn new_index(&mut self) -> String {
        let index = self.random.pick(&INDEXES);
        self.quoted(index)
    }
}
