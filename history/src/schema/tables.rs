//! Tables by name, and what is known of their databases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Column, TableId};

/// A table's definition at one position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub id: TableId,
    /// Columns in order; a column's position is its index plus one.
    pub columns: Vec<Column>,
    /// Names of the key columns in key order; empty without a key.
    pub primary_key: Vec<String>,
    /// Character set that new character columns get, lower case.
    pub default_charset: Option<String>,
    /// Table comment, where comments are kept.
    pub comment: Option<String>,
}

impl Table {
    /// A table without columns.
    pub fn new(id: TableId) -> Self {
        Self {
            id,
            columns: Vec::new(),
            primary_key: Vec::new(),
            default_charset: None,
            comment: None,
        }
    }

    /// The column of that name; the case of column names does not matter.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| same_name(&column.name, name))
    }

    /// The index of the column of that name, zero-based; the case of column names does not matter.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| same_name(&column.name, name))
    }

    /// The indexes of the key columns in key order, zero-based.
    pub fn key_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.primary_key.iter().filter_map(|name| self.column_index(name))
    }
}

/// What is known of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// Its default character set, lower case, when a statement or the server said so.
    pub charset: Option<String>,
}

/// All tables at one position. Cloning is cheap per table: definitions are shared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    /// Under the lower-cased name when `lower_case_names`, else under the name itself.
    tables: BTreeMap<TableId, Arc<Table>>,
    databases: BTreeMap<String, Database>,
    sequences: BTreeSet<TableId>,
    server_charset: Option<String>,
    lower_case_names: bool,
}

impl Tables {
    /// No tables. `lower_case_names` says whether the server's `lower_case_table_names` is not 0, which makes the case
    /// of database and table names irrelevant; the case that the DDL wrote is kept all the same.
    pub fn new(lower_case_names: bool) -> Self {
        Self { lower_case_names, ..Self::default() }
    }

    /// Adds the table, or replaces the one of the same name, which is returned.
    pub fn put(&mut self, table: impl Into<Arc<Table>>) -> Option<Arc<Table>> {
        let table = table.into();
        self.tables.insert(self.key(&table.id), table)
    }

    /// Removes a table.
    pub fn remove(&mut self, id: &TableId) -> Option<Arc<Table>> {
        self.tables.remove(&self.key(id))
    }

    /// Gives a table another name and returns it; `None`, and no change, when there is no table `from`.
    pub fn rename(&mut self, from: &TableId, to: TableId) -> Option<Arc<Table>> {
        let mut table = self.remove(from)?;
        Arc::make_mut(&mut table).id = to;
        self.put(Arc::clone(&table));
        Some(table)
    }

    /// Removes a database: its tables, its sequences and what is known of it.
    pub fn remove_database(&mut self, name: &str) {
        let name = self.fold(name);
        self.tables.retain(|id, _| id.database != name);
        self.sequences.retain(|id| id.database != name);
        self.databases.remove(&name);
    }

    /// Remembers the default character set of a database, or that none is known.
    pub fn set_database_charset(&mut self, name: &str, charset: Option<String>) {
        let name = self.fold(name);
        self.databases.entry(name).or_default().charset =
            charset.map(|name| name.to_ascii_lowercase());
    }

    /// Remembers `character_set_server`.
    pub fn set_server_charset(&mut self, charset: Option<String>) {
        self.server_charset = charset.map(|name| name.to_ascii_lowercase());
    }

    /// Remembers whether the case of database and table names is irrelevant. Names that then are the same name become
    /// one table: the last in name order.
    pub fn set_lower_case_names(&mut self, lower_case_names: bool) {
        if lower_case_names == self.lower_case_names {
            return;
        }
        self.lower_case_names = lower_case_names;
        for (_, table) in std::mem::take(&mut self.tables) {
            self.put(table);
        }
        for (name, database) in std::mem::take(&mut self.databases) {
            self.databases.insert(self.fold(&name), database);
        }
    }

    /// Remembers that the name is a MariaDB sequence, whose rows in the binlog are not rows of a table.
    pub fn put_sequence(&mut self, id: &TableId) {
        self.sequences.insert(self.key(id));
    }

    /// Forgets a sequence; whether there was one.
    pub fn remove_sequence(&mut self, id: &TableId) -> bool {
        self.sequences.remove(&self.key(id))
    }

    /// Whether the name is a MariaDB sequence.
    pub fn is_sequence(&self, id: &TableId) -> bool {
        !self.sequences.is_empty() && self.sequences.contains(&self.key(id))
    }

    /// The table of that name.
    pub fn get(&self, id: &TableId) -> Option<&Arc<Table>> {
        if self.lower_case_names { self.tables.get(&self.key(id)) } else { self.tables.get(id) }
    }

    /// All tables, in name order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Table>> + '_ {
        self.tables.values()
    }

    /// What is known of a database.
    pub fn database(&self, name: &str) -> Option<&Database> {
        if self.lower_case_names {
            self.databases.get(&self.fold(name))
        } else {
            self.databases.get(name)
        }
    }

    /// The default character set of a database, when a statement or the server said so.
    pub fn database_charset(&self, name: &str) -> Option<&str> {
        self.database(name)?.charset.as_deref()
    }

    /// `character_set_server`, when it is known.
    pub fn server_charset(&self) -> Option<&str> {
        self.server_charset.as_deref()
    }

    /// Whether the case of database and table names is irrelevant.
    pub fn lower_case_names(&self) -> bool {
        self.lower_case_names
    }

    /// What is known of the databases, by their names.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (&str, &Database)> + '_ {
        self.databases.iter().map(|(name, database)| (name.as_str(), database))
    }

    /// The names that are sequences.
    pub(crate) fn sequences(&self) -> impl Iterator<Item = &TableId> + '_ {
        self.sequences.iter()
    }

    /// Number of tables.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// What the table is found by.
    pub(crate) fn key(&self, id: &TableId) -> TableId {
        TableId { database: self.fold(&id.database), table: self.fold(&id.table) }
    }

    fn fold(&self, name: &str) -> String {
        if self.lower_case_names { name.to_lowercase() } else { name.to_owned() }
    }
}

/// Whether two column names are the same name to the server: case does not matter, accents do.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a == b
        || a.eq_ignore_ascii_case(b)
        || (!(a.is_ascii() && b.is_ascii()) && a.to_lowercase() == b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::JdbcType;

    fn table(database: &str, name: &str) -> Table {
        let mut table = Table::new(TableId::new(database, name));
        table.columns =
            ["Id", "Größe"].map(|name| Column::new(name, "INT", JdbcType::INTEGER)).to_vec();
        table.primary_key = vec!["größe".to_owned(), "id".to_owned()];
        table
    }

    #[test]
    fn the_case_of_column_names_does_not_matter() {
        let table = table("d", "t");
        assert_eq!(table.column("ID").map(|column| column.name.as_str()), Some("Id"));
        assert_eq!(table.column_index("GRÖSSE"), None);
        assert_eq!(table.column_index("GRÖßE"), Some(1));
        assert_eq!(table.key_columns().collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn the_case_of_table_names_matters_as_the_server_says() {
        let id = TableId::new("D", "T");
        let mut exact = Tables::new(false);
        exact.put(table("d", "t"));
        assert_eq!(exact.get(&id), None);
        assert_eq!(exact.rename(&id, TableId::new("d", "u")), None);

        exact.set_lower_case_names(true);
        assert_eq!(exact.get(&id).map(|table| table.id.clone()), Some(TableId::new("d", "t")));
        exact.rename(&id, TableId::new("D", "U"));
        assert_eq!(
            exact.get(&TableId::new("d", "u")).map(|table| table.id.clone()),
            Some(TableId::new("D", "U"))
        );
        assert_eq!(exact.len(), 1);
    }

    #[test]
    fn a_dropped_database_takes_its_tables_along() {
        let mut tables = Tables::new(true);
        tables.put(table("D", "t"));
        tables.put(table("e", "t"));
        tables.put_sequence(&TableId::new("d", "s"));
        tables.set_database_charset("d", Some("Latin1".to_owned()));
        assert_eq!(tables.database_charset("D"), Some("latin1"));
        assert!(tables.is_sequence(&TableId::new("D", "S")));

        tables.remove_database("d");
        assert_eq!(tables.iter().map(|table| table.id.to_string()).collect::<Vec<_>>(), ["e.t"]);
        assert_eq!(tables.database("d"), None);
        assert!(!tables.is_sequence(&TableId::new("d", "s")));
    }
}
