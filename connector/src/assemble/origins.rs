//! Where the definitions come from, for those who look for a wrong one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use holdfast_history::TableChange;
use holdfast_history::TableId;
use holdfast_history::ddl::DdlEvent;

use crate::error::DefinitionOrigin;

/// The source of every table's definition.
#[derive(Debug)]
pub(crate) struct Origins {
    /// Numbers, from 1, of the history records that recovery applied; `None` after a snapshot.
    recorded: Option<BTreeMap<TableId, usize>>,
    /// Statements met in the stream: file, and position in bytes.
    streamed: HashMap<TableId, (Arc<str>, u64)>,
}

impl Origins {
    /// `recorded` is what recovery says, or `None` when the definitions were read by a snapshot.
    pub(crate) fn new(recorded: Option<BTreeMap<TableId, usize>>) -> Self {
        Self { recorded, streamed: HashMap::new() }
    }

    /// A statement at byte `position` of `file` was applied.
    pub(super) fn note(&mut self, events: &[DdlEvent], file: &Arc<str>, position: u64) {
        for change in events.iter().flat_map(|event| &event.changes) {
            match change {
                TableChange::Create(_) | TableChange::Alter { .. } => {
                    self.streamed.insert(change.id().clone(), (Arc::clone(file), position));
                }
                TableChange::Drop(id) => {
                    self.streamed.remove(id);
                }
            }
        }
    }

    /// Where the definition of a table is from.
    pub(super) fn of(&self, id: &TableId) -> DefinitionOrigin {
        if let Some((file, position)) = self.streamed.get(id) {
            return DefinitionOrigin::Statement { file: file.to_string(), position: *position };
        }
        match &self.recorded {
            None => DefinitionOrigin::Snapshot,
            Some(records) => match records.get(id) {
                Some(record) => DefinitionOrigin::Record(*record),
                None => DefinitionOrigin::Unknown,
            },
        }
    }
}
