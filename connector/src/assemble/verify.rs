//! Following the log to check definitions, without delivering rows.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_history::TableId;

use super::Assembler;
use crate::error::Error;

/// What a check of definitions found so far.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    /// Rows events of captured tables that were looked at.
    pub(crate) events: u64,
    /// Tables whose rows came.
    pub(crate) tables: BTreeSet<TableId>,
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

    /// Whether rows are only checked; if so, notes that rows of a table came.
    pub(super) fn verifies(&mut self, id: &TableId) -> bool {
        let Some(verification) = &mut self.verification else { return false };
        verification.events += 1;
        if !verification.tables.contains(id) {
            verification.tables.insert(id.clone());
        }
        true
    }
}
