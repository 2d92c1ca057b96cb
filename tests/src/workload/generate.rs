//! Random statements: tables, rows, DDL, transactions.

use std::fmt::Write as _;

use super::kinds::{self, Kind};
use super::{Limits, Workload};
use crate::random::Random;
use crate::server::Flavour;

/// Names that both engines have to quote and print alike.
const TABLES: [&str; 5] = ["t1", "t2", "T3", "order", "my-table"];
const COLUMNS: [&str; 12] =
    ["a", "b", "c", "d", "Name", "e f", "select", "größe", "x_1", "_y", "n2", "Z"];

/// A table as the statements so far have made it.
#[derive(Clone, Debug)]
struct Table {
    name: &'static str,
    columns: Vec<Column>,
    key: Vec<String>,
}

#[derive(Clone, Debug)]
struct Column {
    name: String,
    kind: &'static Kind,
    optional: bool,
    /// Made of others, and never written.
    generated: bool,
}

struct Generator<'a> {
    random: &'a mut Random,
    flavour: Flavour,
    limits: Limits,
    tables: Vec<Table>,
}

/// The workload with this number of a batch.
pub(super) fn workload(
    random: &mut Random,
    number: u64,
    flavour: Flavour,
    mut limits: Limits,
    query: bool,
) -> Workload {
    let database = format!("rnd_{number:03}");
    let lenient = random.one_in(2);
    limits.zero_dates &= lenient;
    let mut generator = Generator { random, flavour, limits, tables: Vec::new() };
    let charset = generator.random.pick("utf8mb4", &["utf8mb4", "utf8mb4", "latin1", "utf8mb3"]);
    let mode = if lenient { "SET SESSION sql_mode='';\n" } else { "" };
    let mut setup = format!(
        "DROP DATABASE IF EXISTS {database};\nCREATE DATABASE {database} CHARACTER SET {charset};\nUSE {database};\n{mode}"
    );
    for _ in 0..=generator.random.below(3) {
        generator.create_table(&mut setup);
    }
    for _ in 0..generator.random.below(5) {
        generator.insert(&mut setup);
    }
    let mut stream = format!("USE {database};\n{mode}");
    if flavour == Flavour::MySql {
        let compressed = generator.random.pick("OFF", &["OFF", "OFF", "OFF", "ON"]);
        let logged = if query { "ON" } else { "OFF" };
        let _ = writeln!(
            stream,
            "SET SESSION binlog_transaction_compression={compressed}, binlog_rows_query_log_events={logged};"
        );
    }
    for _ in 0..6 + generator.random.below(14) {
        match generator.random.below(10) {
            0..=3 => generator.ddl(&mut stream),
            4 => generator.transaction(&mut stream),
            _ => generator.change(&mut stream),
        }
    }
    Workload { number, database, setup, stream }
}

impl Generator<'_> {
    fn quoted(&mut self, name: &str) -> String {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if plain && !["order", "select"].contains(&name) && self.random.one_in(2) {
            name.to_owned()
        } else {
            format!("`{name}`")
        }
    }

    fn free_table(&mut self) -> &'static str {
        let free: Vec<&'static str> = TABLES
            .into_iter()
            .filter(|name| !self.tables.iter().any(|table| table.name == *name))
            .collect();
        if free.is_empty() { "t1" } else { self.random.one::<&'static str>(&free) }
    }

    fn free_column(&mut self, table: &Table) -> String {
        let there = |name: &&str| table.columns.iter().any(|column| column.name == **name);
        let free: Vec<&str> = COLUMNS.into_iter().filter(|name| !there(name)).collect();
        if free.is_empty() { "more".to_owned() } else { (*self.random.one(&free)).to_owned() }
    }

    fn definition(&mut self, kind: &Kind, optional: bool, key: bool) -> String {
        let mut text = kind.sql.to_owned();
        text.push_str(if optional { self.random.pick("", &[" NULL"]) } else { " NOT NULL" });
        if !key && !kind.defaults.is_empty() && self.random.one_in(3) {
            let _ = write!(text, " DEFAULT {}", self.random.one(kind.defaults));
        } else if optional && self.random.one_in(5) {
            text.push_str(" DEFAULT NULL");
        }
        // A comment on a geometry stops Debezium where it reads comments.
        if self.random.one_in(9) && !["POINT", "GEOMETRY"].contains(&kind.sql) {
            text.push_str(" COMMENT 'note'");
        }
        text
    }

    /// A column of any type; the text does not have its name.
    fn column(&mut self, name: &str) -> (Column, String) {
        let kind = kinds::any(self.random, self.flavour);
        // TIMESTAMP NOT NULL without a default is refused or gets one, depending on the server.
        let optional = self.random.below(3) > 0 || kind.sql.starts_with("TIMESTAMP");
        let text = self.definition(kind, optional, false);
        (Column { name: name.to_owned(), kind, optional, generated: false }, text)
    }

    fn create_table(&mut self, script: &mut String) {
        let name = self.free_table();
        let mut table = Table { name, columns: Vec::new(), key: Vec::new() };
        let mut elements = Vec::new();
        let keys = self.random.pick(1, &[1, 1, 1, 1, 1, 2, 2, 0, 0]);
        for number in 0..keys {
            let key = if number == 0 { "id" } else { "part" };
            let kind = kinds::of_key(self.random);
            let mut text = self.definition(kind, false, true);
            if keys == 1 && kind.sql == "INT" && self.random.one_in(4) {
                text.push_str(" AUTO_INCREMENT");
            }
            if keys == 1 && self.random.one_in(3) {
                text.push_str(" PRIMARY KEY");
            } else {
                table.key.push(key.to_owned());
            }
            elements.push(format!("{key} {text}"));
            table.columns.push(Column {
                name: key.to_owned(),
                kind,
                optional: false,
                generated: false,
            });
        }
        for _ in 0..=self.random.below(6) {
            let column = self.free_column(&table);
            let (column, text) = self.column(&column);
            elements.push(format!("{} {text}", self.quoted(&column.name)));
            table.columns.push(column);
        }
        if !table.key.is_empty() {
            if self.random.one_in(3) {
                table.key.reverse();
            }
            elements.push(format!("PRIMARY KEY ({})", table.key.join(", ")));
        } else if keys == 1 {
            table.key.push("id".to_owned());
        } else if self.random.one_in(3)
            && let Some(first) = table.columns.iter().find(|column| column.kind.sql == "INT")
        {
            elements.push(format!("UNIQUE KEY u1 (`{}`)", first.name));
        }
        if keys == 1 && self.random.one_in(8) && table.columns.iter().any(|c| c.kind.sql == "INT") {
            let stored = self.random.pick("VIRTUAL", &["STORED"]);
            elements.push(format!("g INT GENERATED ALWAYS AS (1 + 1) {stored}"));
            let kind = kinds::of_key(self.random);
            table.columns.push(Column {
                name: "g".to_owned(),
                kind,
                optional: true,
                generated: true,
            });
        }
        let options = self.random.pick(
            "",
            &[
                "",
                "",
                " ENGINE=InnoDB",
                " DEFAULT CHARSET=latin1",
                " CHARACTER SET utf8mb4 COMMENT='t'",
            ],
        );
        let not = self.random.pick("", &["", "", "IF NOT EXISTS "]);
        let _ = writeln!(
            script,
            "CREATE TABLE {not}{} ({}){options};",
            self.quoted(name),
            elements.join(", ")
        );
        self.tables.retain(|there| there.name != name);
        self.tables.push(table);
    }

    fn some_table(&mut self) -> Option<Table> {
        if self.tables.is_empty() { None } else { Some(self.random.one(&self.tables).clone()) }
    }

    fn change(&mut self, script: &mut String) {
        match self.random.below(9) {
            0..=3 => self.insert(script),
            4 | 5 => self.update(script),
            6 => self.update_key(script),
            7 => self.delete(script),
            _ => self.upsert(script),
        }
    }

    fn value(&mut self, column: &Column) -> String {
        if column.optional && self.random.one_in(5) {
            return "NULL".to_owned();
        }
        column.kind.value(self.random, self.limits)
    }

    /// Some columns, and rows of values for them.
    fn rows(&mut self, table: &Table, most: u64) -> (String, String) {
        let all = !self.random.one_in(5);
        let columns: Vec<&Column> = table
            .columns
            .iter()
            .filter(|column| !column.generated && (all || self.random.below(3) > 0))
            .collect();
        let mut rows = Vec::new();
        for _ in 0..=self.random.below(most) {
            let values: Vec<String> = columns.iter().map(|column| self.value(column)).collect();
            rows.push(format!("({})", values.join(",")));
        }
        let names: Vec<String> =
            columns.iter().map(|column| format!("`{}`", column.name)).collect();
        (names.join(","), rows.join(","))
    }

    fn insert(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let (columns, rows) = self.rows(&table, 3);
        let _ = writeln!(script, "INSERT INTO `{}` ({columns}) VALUES {rows};", table.name);
    }

    fn upsert(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let (columns, rows) = self.rows(&table, 2);
        if self.random.one_in(2) {
            let _ = writeln!(script, "REPLACE INTO `{}` ({columns}) VALUES {rows};", table.name);
            return;
        }
        let Some(set) = self.assignments(&table, false) else { return };
        let _ = writeln!(
            script,
            "INSERT INTO `{}` ({columns}) VALUES {rows} ON DUPLICATE KEY UPDATE {set};",
            table.name
        );
    }

    fn assignments(&mut self, table: &Table, of_key: bool) -> Option<String> {
        let columns: Vec<&Column> = table
            .columns
            .iter()
            .filter(|column| !column.generated && table.key.contains(&column.name) == of_key)
            .collect();
        if columns.is_empty() {
            return None;
        }
        let mut sets = Vec::new();
        for _ in 0..=self.random.below(2) {
            let column = *self.random.one(&columns);
            sets.push(format!("`{}`={}", column.name, self.value(column)));
        }
        Some(sets.join(", "))
    }

    fn update(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let Some(set) = self.assignments(&table, false) else { return };
        let limit = self.random.pick("", &[" LIMIT 1", " LIMIT 2"]);
        let _ = writeln!(script, "UPDATE `{}` SET {set}{limit};", table.name);
    }

    fn update_key(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let Some(set) = self.assignments(&table, true) else { return self.update(script) };
        let _ = writeln!(script, "UPDATE IGNORE `{}` SET {set} LIMIT 1;", table.name);
    }

    fn delete(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let limit = self.random.pick(" LIMIT 1", &[" LIMIT 2", ""]);
        let _ = writeln!(script, "DELETE FROM `{}`{limit};", table.name);
    }

    fn transaction(&mut self, script: &mut String) {
        script.push_str("BEGIN;\n");
        for _ in 0..=self.random.below(4) {
            self.change(script);
        }
        match self.random.below(6) {
            0 => script.push_str("ROLLBACK;\n"),
            1 => {
                script.push_str("SAVEPOINT s;\n");
                self.change(script);
                script.push_str("ROLLBACK TO s;\nCOMMIT;\n");
            }
            _ => script.push_str("COMMIT;\n"),
        }
    }

    fn ddl(&mut self, script: &mut String) {
        if self.tables.len() < 2 || self.random.one_in(6) {
            return self.create_table(script);
        }
        match self.random.below(16) {
            0 => self.drop_tables(script),
            1 => self.rename_table(script),
            2 => {
                if let Some(table) = self.some_table() {
                    let _ = writeln!(script, "TRUNCATE TABLE {};", self.quoted(table.name));
                }
            }
            3 => self.copy_table(script),
            4 => self.without_effect(script),
            _ => self.alter_table(script),
        }
    }

    fn drop_tables(&mut self, script: &mut String) {
        let Some(first) = self.some_table() else { return };
        let exists = self.random.pick("", &["IF EXISTS "]);
        let mut names = vec![first.name];
        if self.random.one_in(3)
            && let Some(second) = self.some_table().filter(|second| second.name != first.name)
        {
            names.push(second.name);
        }
        self.tables.retain(|table| !names.contains(&table.name));
        let names: Vec<String> = names.into_iter().map(|name| self.quoted(name)).collect();
        let _ = writeln!(script, "DROP TABLE {exists}{};", names.join(", "));
    }

    fn rename_table(&mut self, script: &mut String) {
        let Some(mut table) = self.some_table() else { return };
        let new = self.free_table();
        let (old_name, new_name) = (self.quoted(table.name), self.quoted(new));
        let _ = match self.random.below(2) {
            0 => writeln!(script, "RENAME TABLE {old_name} TO {new_name};"),
            _ => writeln!(script, "ALTER TABLE {old_name} RENAME TO {new_name};"),
        };
        self.tables.retain(|there| there.name != table.name && there.name != new);
        table.name = new;
        self.tables.push(table);
    }

    fn copy_table(&mut self, script: &mut String) {
        let Some(mut table) = self.some_table() else { return };
        let (old, new) = (table.name, self.free_table());
        if old == new {
            return;
        }
        let (old, new_name) = (self.quoted(old), self.quoted(new));
        if self.random.one_in(2) {
            let _ = writeln!(script, "CREATE TABLE {new_name} LIKE {old};");
        } else {
            let _ = writeln!(script, "CREATE TABLE {new_name} AS SELECT * FROM {old};");
            table.key.clear();
            for column in &mut table.columns {
                column.generated = false;
            }
        }
        table.name = new;
        self.tables.push(table);
    }

    fn without_effect(&mut self, script: &mut String) {
        let Some(table) = self.some_table() else { return };
        let name = self.quoted(table.name);
        let _ = match self.random.below(6) {
            0 => writeln!(script, "CREATE OR REPLACE VIEW v AS SELECT 1 AS one;"),
            1 => writeln!(script, "DROP VIEW IF EXISTS v;"),
            2 => writeln!(script, "ANALYZE TABLE {name};"),
            3 => writeln!(script, "ALTER TABLE {name} ENGINE=InnoDB;"),
            4 => writeln!(script, "CREATE INDEX i1 ON {name} (`{}`);", self.some_column(&table)),
            _ => writeln!(script, "DROP INDEX i1 ON {name};"),
        };
    }

    fn some_column(&mut self, table: &Table) -> String {
        if table.columns.is_empty() {
            return "id".to_owned();
        }
        self.random.one(&table.columns).name.clone()
    }

    fn alter_table(&mut self, script: &mut String) {
        let Some(mut table) = self.some_table() else { return };
        let name = self.quoted(table.name);
        // Each clause has columns of its own: what a later one says of an earlier one's is a listed difference.
        let mut touched = Vec::new();
        let mut clauses = Vec::new();
        for _ in 0..=self.random.below(2) {
            clauses.extend(self.clause(&mut table, &mut touched));
        }
        if clauses.is_empty() {
            return;
        }
        let _ = writeln!(script, "ALTER TABLE {name} {};", clauses.join(", "));
        self.tables.retain(|there| there.name != table.name);
        self.tables.push(table);
    }

    /// An index of a column that no clause has touched, and that is in no key.
    fn untouched(&mut self, table: &Table, touched: &[String]) -> Option<usize> {
        let free: Vec<usize> = (0..)
            .zip(&table.columns)
            .filter(|(_, column)| {
                !column.generated
                    && !table.key.contains(&column.name)
                    && !touched.contains(&column.name)
            })
            .map(|(index, _)| index)
            .collect();
        if free.is_empty() { None } else { Some(*self.random.one(&free)) }
    }

    /// FIRST, or AFTER a column that no clause touches.
    fn place(&mut self, table: &Table, touched: &[String]) -> (Option<usize>, String) {
        match self.random.below(5) {
            0 => (Some(0), " FIRST".to_owned()),
            1 => {
                let fixed: Vec<usize> = (0..)
                    .zip(&table.columns)
                    .filter(|(_, column)| !touched.contains(&column.name))
                    .map(|(index, _)| index)
                    .collect();
                let Some(index) = (!fixed.is_empty()).then(|| *self.random.one(&fixed)) else {
                    return (None, String::new());
                };
                let name = table.columns.get(index).map(|column| column.name.clone());
                (Some(index + 1), format!(" AFTER `{}`", name.unwrap_or_default()))
            }
            _ => (None, String::new()),
        }
    }

    fn clause(&mut self, table: &mut Table, touched: &mut Vec<String>) -> Option<String> {
        let word = self.random.pick("", &["COLUMN "]);
        match self.random.below(13) {
            0..=3 => {
                let name = self.free_column(table);
                if touched.contains(&name) {
                    return None;
                }
                let (column, text) = self.column(&name);
                let (index, place) = self.place(table, touched);
                touched.push(name);
                let clause = format!("ADD {word}{} {text}{place}", self.quoted(&column.name));
                table.columns.insert(index.unwrap_or(table.columns.len()), column);
                Some(clause)
            }
            4 | 5 => {
                let index = self.untouched(table, touched)?;
                if table.columns.len() < 3 {
                    return None;
                }
                let column = table.columns.remove(index);
                touched.push(column.name.clone());
                Some(format!("DROP {word}{}", self.quoted(&column.name)))
            }
            6 | 7 => {
                let index = self.untouched(table, touched)?;
                let column = table.columns.get_mut(index)?;
                column.kind = column.kind.wider(self.random);
                column.optional |= self.random.one_in(2);
                let column = column.clone();
                touched.push(column.name.clone());
                let text = self.definition(column.kind, column.optional, false);
                Some(format!("MODIFY {word}{} {text}", self.quoted(&column.name)))
            }
            8 => {
                let index = self.untouched(table, touched)?;
                let new = self.free_column(table);
                if touched.contains(&new) {
                    return None;
                }
                let column = table.columns.get_mut(index)?;
                column.kind = column.kind.wider(self.random);
                let old = std::mem::replace(&mut column.name, new.clone());
                let column = column.clone();
                let text = self.definition(column.kind, column.optional, false);
                touched.extend([old.clone(), new.clone()]);
                Some(format!("CHANGE {word}{} {} {text}", self.quoted(&old), self.quoted(&new)))
            }
            9 => {
                let index = self.untouched(table, touched)?;
                let new = self.free_column(table);
                if touched.contains(&new) {
                    return None;
                }
                let column = table.columns.get_mut(index)?;
                let old = std::mem::replace(&mut column.name, new.clone());
                touched.extend([old.clone(), new.clone()]);
                Some(format!("RENAME COLUMN {} TO {}", self.quoted(&old), self.quoted(&new)))
            }
            10 => {
                let index = self.untouched(table, touched)?;
                let column = table.columns.get(index)?.clone();
                touched.push(column.name.clone());
                // Of a bit literal Debezium makes the word `null`.
                let literal =
                    column.kind.defaults.iter().find(|text| !text.starts_with(['C', 'b']));
                let change = match literal {
                    Some(literal) if self.random.one_in(2) => format!("SET DEFAULT {literal}"),
                    _ => "DROP DEFAULT".to_owned(),
                };
                Some(format!("ALTER {word}{} {change}", self.quoted(&column.name)))
            }
            11 => {
                if table.key.is_empty() || !touched.is_empty() {
                    return Some("COMMENT='c'".to_owned());
                }
                touched.append(&mut table.key);
                Some("DROP PRIMARY KEY".to_owned())
            }
            _ => {
                let id = table.columns.iter().any(|column| column.name == "id");
                if !table.key.is_empty() || !id || !touched.is_empty() {
                    return Some("ADD INDEX i2 (id)".to_owned());
                }
                table.key.push("id".to_owned());
                touched.push("id".to_owned());
                Some("ADD PRIMARY KEY (id)".to_owned())
            }
        }
    }
}
