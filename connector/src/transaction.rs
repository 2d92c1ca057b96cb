//! Counts of the records of one transaction, for `provide.transaction.metadata`.

use std::sync::Arc;

use holdfast_history::TableId;

/// An open transaction: its id and the records so far, in all and per table.
#[derive(Debug)]
pub(crate) struct Transaction {
    id: String,
    total: u64,
    tables: Vec<TableCount>,
}

#[derive(Debug)]
struct TableCount {
    id: Arc<TableId>,
    name: String,
    records: u64,
}

impl Transaction {
    /// A transaction without records. `id` is its GTID, or `file=…,pos=…` of its start.
    pub(crate) const fn new(id: String) -> Self {
        Self { id, total: 0, tables: Vec::new() }
    }

    /// Counts the next record of `table`: its place in the transaction and among those of the table, from 1.
    pub(crate) fn next(&mut self, table: &Arc<TableId>) -> (u64, u64) {
        self.skip(table, 1);
        let of_table =
            self.tables.iter().find(|count| count.id == *table).map_or(0, |count| count.records);
        (self.total, of_table)
    }

    /// Counts records of `table` that an earlier run delivered.
    pub(crate) fn skip(&mut self, table: &Arc<TableId>, records: u64) {
        self.total += records;
        match self.tables.iter_mut().find(|count| count.id == *table) {
            Some(count) => count.records += records,
            None => self.tables.push(TableCount {
                id: Arc::clone(table),
                name: table.to_string(),
                records,
            }),
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Records so far.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Records per `database.table`, in order of appearance.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, u64)> {
        self.tables.iter().map(|count| (count.name.as_str(), count.records))
    }
}
