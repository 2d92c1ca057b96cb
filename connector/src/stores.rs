//! The stores that a configuration names.

use std::sync::Arc;

use holdfast_history::store::{FileHistoryStore, HistoryStore, MemoryHistory};

use crate::config::{Config, StoreKind};
use crate::error::Error;
use crate::offset_store::{FileOffsetStore, MemoryOffsetStore, OffsetStore};

/// Opens the schema history for writing.
pub(crate) fn open_history(config: &Config) -> Result<Arc<dyn HistoryStore>, Error> {
    Ok(match &config.history.store {
        StoreKind::File { path } => Arc::new(FileHistoryStore::open(path)?),
        StoreKind::Memory => Arc::new(MemoryHistory::new().open()?),
    })
}

/// The store of offsets that a configuration names.
#[must_use]
pub fn open_offsets(config: &Config) -> Arc<dyn OffsetStore> {
    match &config.offsets.store {
        StoreKind::File { path } => Arc::new(FileOffsetStore::new(path)),
        StoreKind::Memory => Arc::new(MemoryOffsetStore::new()),
    }
}
