//! Following the log to check definitions, without delivering rows.

use std::collections::BTreeMap;

use holdfast_binlog::event::table_map::TableMap;
use holdfast_history::TableId;

use super::Assembler;
use crate::error::Error;

/// What a check of definitions found so far.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    /// Rows events that were looked at, of each captured table.
    pub(crate) events: BTreeMap<TableId, u64>,
    /// For each table the first rows that do not fit, as the error that would end the stream.
    pub(crate) findings: BTreeMap<TableId, Error>,
    /// Tables whose key in the log is another than that of the definition: the definition's, and the log's.
    pub(crate) keys: BTreeMap<TableId, (String, String)>,
}

impl Assembler {
    /// From now on rows are checked and counted, and not delivered.
    pub(crate) fn verify_only(&mut self) {
        self.verification = Some(Verification::default());
    }

    /// What [`Self::verify_only`] found.
    pub(crate) fn into_verification(self) -> Verification {
        self.verification.unwrap_or_default()
    }

    /// Whether rows are only checked; if so, notes that an event of a table came, and what is wrong with it.
    pub(super) fn verifies(&mut self, map: &TableMap, error: Option<Error>) -> bool {
        let Some(verification) = &mut self.verification else { return false };
        let table = TableId::new(map.database(), map.table());
        if let Some(error) = error {
            verification.findings.entry(table.clone()).or_insert(error);
        }
        *verification.events.entry(table).or_default() += 1;
        true
    }
}
