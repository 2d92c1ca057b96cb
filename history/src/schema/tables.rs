//! Tables by name, and what is known of their databases.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Column;

/// The full name of a table. Case is kept; [`Tables`] decides whether it matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId {
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
}

impl TableId {
    /// Names `table` in `database`.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }
}

/// `database.table`, as filters and messages use it.
impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

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

/// What is known of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// Its default character set, lower case, when a statement or the server said so.
    pub charset: Option<String>,
}

/// All tables at one position. Cloning is cheap per table: definitions are shared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tables {
    pub(crate) tables: BTreeMap<TableId, Arc<Table>>,
    pub(crate) databases: BTreeMap<String, Database>,
    pub(crate) server_charset: Option<String>,
    pub(crate) lower_case_names: bool,
}
