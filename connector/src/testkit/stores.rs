//! [`TestStores`]: offset and history in memory, with failures.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use holdfast_history::HistoryRecord;
use holdfast_history::offset::SourceOffset;
use holdfast_history::store::{HistoryStore, MemoryHistory, MemoryHistoryStore};

use crate::error::Error;
use crate::offset_store::{OffsetKey, OffsetStore, OffsetStoreError};

/// How a write of an offset fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFault {
    /// Nothing is written, and the engine is told so.
    Refused,
    /// It is written, and the engine is told that it is not: the answer was lost.
    AnswerLost,
}

/// What outlives engines: the stored offset and the schema history. Clones are the same stores.
#[derive(Debug, Clone, Default)]
pub struct TestStores {
    history: MemoryHistory,
    offsets: Arc<Mutex<Offsets>>,
}

#[derive(Debug, Default)]
struct Offsets {
    stored: Option<SourceOffset>,
    writes: u64,
    faults: VecDeque<StoreFault>,
}

impl TestStores {
    /// Empty ones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The offset that a restart would begin at.
    #[must_use]
    pub fn offset(&self) -> Option<SourceOffset> {
        self.offsets().stored.clone()
    }

    /// Puts an offset there, as an operator does.
    pub fn set_offset(&self, offset: Option<SourceOffset>) {
        self.offsets().stored = offset;
    }

    /// Offsets written so far.
    #[must_use]
    pub fn offset_writes(&self) -> u64 {
        self.offsets().writes
    }

    /// Lets the next write of an offset fail; called again, the one after it.
    pub fn fail_next(&self, fault: StoreFault) {
        self.offsets().faults.push_back(fault);
    }

    /// The records of the schema history.
    ///
    /// # Errors
    ///
    /// [`Error::History`] while an engine has the stores.
    pub async fn history(&self) -> Result<Vec<HistoryRecord>, Error> {
        Ok(self.history.open()?.load().await?)
    }

    pub(super) fn open_history(&self) -> Result<Arc<MemoryHistoryStore>, Error> {
        Ok(Arc::new(self.history.open()?))
    }

    fn offsets(&self) -> MutexGuard<'_, Offsets> {
        self.offsets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl OffsetStore for TestStores {
    async fn load(&self, _: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        Ok(self.offset())
    }

    async fn store(&self, _: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let mut offsets = self.offsets();
        let fault = offsets.faults.pop_front();
        if fault != Some(StoreFault::Refused) {
            offsets.stored = Some(offset.clone());
            offsets.writes += 1;
        }
        match fault {
            None => Ok(()),
            Some(fault) => Err(OffsetStoreError::Io {
                action: "write",
                location: self.location(),
                source: io::Error::other(format!("{fault:?}, as the test wants it")),
            }),
        }
    }

    fn location(&self) -> String {
        "the stores of a test".to_owned()
    }
}
