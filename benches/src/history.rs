//! Schema histories of any length, the same on every run: tables that are created, and then changed over and over.

use std::io::{self, Write};

use holdfast_history::codec::write_record;
use holdfast_history::ddl::{DdlContext, apply_statement};
use holdfast_history::offset::{HoldfastMembers, SourceOffset};
use holdfast_history::schema::{TableId, Tables};
use holdfast_history::{HistoryRecord, Table};

use crate::random::Random;

/// `topic.prefix` of the records.
pub const SERVER: &str = "bench";
/// How many statements a binlog file has.
const STATEMENTS_IN_FILE: u64 = 200;
const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

/// Makes the records one by one. Each statement is applied to the tables, so that its record holds the definition that
/// it left.
#[derive(Debug)]
pub struct HistoryMaker {
    tables: Tables,
    context: DdlContext,
    random: Random,
    count: u64,
    made: u64,
}

impl HistoryMaker {
    /// A history over `tables` tables of 12 columns and more.
    #[must_use]
    pub fn new(tables: u64) -> Self {
        Self {
            tables: Tables::new(false),
            context: DdlContext::in_database("shop"),
            random: Random::new(7),
            count: tables,
            made: 0,
        }
    }

    /// The next record: first the tables are created, then one of them is altered or, once in a hundred, renamed.
    ///
    /// # Errors
    ///
    /// When a statement can't be applied, which is a defect.
    pub fn record(&mut self) -> io::Result<HistoryRecord> {
        let ddl = self.statement();
        let events =
            apply_statement(&ddl, &self.context, &mut self.tables).map_err(io::Error::other)?;
        self.made += 1;
        Ok(HistoryRecord {
            source: SERVER.to_owned(),
            position: offset_after(self.made),
            ts_ms: 1_767_225_600_000 + i64::try_from(self.made).unwrap_or(0) * 60_000,
            database_name: "shop".to_owned(),
            ddl: Some(ddl),
            table_changes: events.into_iter().flat_map(|event| event.changes).collect(),
        })
    }

    fn statement(&mut self) -> String {
        if self.made < self.count {
            return create(self.made);
        }
        let table = self.random.below(self.count);
        let (name, other) = (format!("table_{table}"), format!("table_{table}_renamed"));
        let id = TableId::new("shop", &name);
        let (name, other) =
            if self.tables.get(&id).is_some() { (name, other) } else { (other, name) };
        if self.random.below(100) == 0 {
            return format!("RENAME TABLE `{name}` TO `{other}`");
        }
        let added = self
            .tables
            .get(&TableId::new("shop", &name))
            .is_some_and(|table| table.column("added").is_some());
        match (added, self.random.below(3)) {
            (false, 0 | 1) => {
                format!(
                    "ALTER TABLE `{name}` ADD COLUMN added VARCHAR(40) NULL DEFAULT 'none' AFTER email"
                )
            }
            (true, 0 | 1) => format!("ALTER TABLE `{name}` DROP COLUMN added"),
            (_, bits) => {
                let length = 20 + self.random.below(200) + bits;
                format!("ALTER TABLE `{name}` MODIFY COLUMN title VARCHAR({length}) NOT NULL")
            }
        }
    }
}

/// Writes a history of `records` records to `out`, one on a line.
///
/// # Errors
///
/// When it can't be written.
pub fn write_history(records: u64, tables: u64, mut out: impl Write) -> io::Result<()> {
    let mut maker = HistoryMaker::new(tables);
    let mut line = Vec::new();
    for _ in 0..records {
        line.clear();
        write_record(&maker.record()?, None, &mut line);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()
}

/// The offset after the statement of that number, from 1.
#[must_use]
pub fn offset_after(statement: u64) -> SourceOffset {
    SourceOffset {
        file: format!("mysql-bin.{:06}", statement / STATEMENTS_IN_FILE + 1),
        pos: 157 + statement % STATEMENTS_IN_FILE * 4001,
        gtids: Some(format!("{UUID}:1-{}", 10 + statement)),
        ts_sec: Some(1_767_225_600 + i64::try_from(statement).unwrap_or(0) * 60),
        server_id: Some(1),
        holdfast: Some(HoldfastMembers {
            lineage: Some(UUID.to_owned()),
            epoch: 1,
            ..HoldfastMembers::default()
        }),
        ..SourceOffset::default()
    }
}

/// A line for a table, as `tests/reference/Recovery.java` makes it: name, key, and names, types and nullness of its columns.
#[must_use]
pub fn describe(table: &Table) -> String {
    use std::fmt::Write as _;

    let mut line = format!("{} {}", table.id, table.primary_key.join(","));
    for column in &table.columns {
        // Writing into a string can't fail.
        let _ = write!(
            line,
            " {} {} {} {} {}",
            column.name,
            column.type_name,
            column.length.unwrap_or(-1),
            column.scale.unwrap_or(-1),
            column.optional
        );
    }
    line + "\n"
}

fn create(table: u64) -> String {
    format!(
        "CREATE TABLE `table_{table}` (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, customer_id INT NOT NULL, \
         title VARCHAR(120) NOT NULL, email VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL, \
         status ENUM('new','paid','sent','returned') NOT NULL DEFAULT 'new', amount DECIMAL(12,2) NOT NULL DEFAULT '0.00', \
         tax DOUBLE DEFAULT NULL, flags SET('gift','express','abroad') DEFAULT NULL, document JSON, note TEXT, \
         created TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), changed DATETIME DEFAULT NULL, \
         PRIMARY KEY (id), KEY by_customer (customer_id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    )
}

#[cfg(test)]
mod tests {
    use holdfast_history::recover::{RecoverOptions, recover};

    use super::*;

    #[test]
    fn a_history_leaves_all_its_tables() {
        let mut maker = HistoryMaker::new(20);
        let records: Vec<_> = (0..400).map(|_| maker.record().unwrap()).collect();
        assert!(records.iter().all(|record| !record.table_changes.is_empty()));
        let context = DdlContext::default();
        let options = RecoverOptions::new(&context);
        let recovered = recover(&records, SERVER, &offset_after(400), &options).unwrap();
        assert_eq!((recovered.report.applied, recovered.tables.len()), (400, 20));
        assert_eq!(recovered.tables, maker.tables);
    }
}
