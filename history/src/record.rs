//! One entry of the schema history.

use std::sync::Arc;

use crate::offset::SourceOffset;
use crate::schema::{Table, TableId};

/// What a statement changed, where it happened, and the definitions it left. [`codec`](crate::codec) has its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRecord {
    /// Name of the source (Debezium's `topic.prefix`): records of another name are not ours.
    pub source: String,
    /// The offset at that moment, with `snapshot` set for records of a snapshot.
    pub position: SourceOffset,
    /// Wall clock when the record was made, milliseconds since 1970 UTC. Never an event time.
    pub ts_ms: i64,
    /// Database that the statement ran in; `""` for statements without one (`SET character_set_server=…`).
    pub database_name: String,
    /// The statement, one table's part of it where a statement names several; no trailing `;`.
    pub ddl: Option<String>,
    /// The definitions that the statement left; empty where it touched no table, and recovery reads `ddl`.
    pub table_changes: Vec<TableChange>,
}

/// The effect of a statement on one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// The table was created, or read by a snapshot.
    Create(Arc<Table>),
    /// The table was altered or renamed.
    Alter {
        /// The definition after the statement.
        table: Arc<Table>,
        /// The name before a rename.
        previous: Option<TableId>,
    },
    /// The table was dropped.
    Drop(TableId),
}

impl TableChange {
    /// The table's name after the statement.
    #[must_use]
    pub fn id(&self) -> &TableId {
        match self {
            Self::Create(table) | Self::Alter { table, .. } => &table.id,
            Self::Drop(id) => id,
        }
    }
}
