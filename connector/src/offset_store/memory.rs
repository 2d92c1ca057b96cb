//! Offsets in memory: for tests and for hosts that keep offsets themselves.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use holdfast_history::offset::SourceOffset;

use super::{OffsetKey, OffsetStore, OffsetStoreError};

/// Keeps offsets until it is dropped.
#[derive(Debug, Default)]
pub struct MemoryOffsetStore {
    offsets: Mutex<BTreeMap<OffsetKey, SourceOffset>>,
}

impl MemoryOffsetStore {
    /// Starts empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[async_trait]
impl OffsetStore for MemoryOffsetStore {
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        Ok(self.offsets.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        self.offsets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.clone(), offset.clone());
        Ok(())
    }

    fn location(&self) -> String {
        "memory".to_owned()
    }
}
