//! A history in memory, for tests and for engines that read their schema anew at each start.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::lines::{encode, measure, visit_lines};
use super::{HistoryStore, Visit};
use crate::error::Error;
use crate::record::HistoryRecord;

/// What outlives a [`MemoryHistoryStore`], as a file outlives its handle. Clones are the same history.
#[derive(Debug, Clone, Default)]
pub struct MemoryHistory {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The lines of a file: records take the same way as to a disk.
    bytes: Vec<u8>,
    has_writer: bool,
}

impl MemoryHistory {
    /// An empty history.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens it for reading and appending, until the store is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while another store has it.
    pub fn open(&self) -> Result<MemoryHistoryStore, Error> {
        let mut shared = self.lock();
        if shared.has_writer {
            return Err(Error::InUse { location: LOCATION.to_owned() });
        }
        let failed = |source| Error::Read { location: LOCATION.to_owned(), action: "read", source };
        let extent = measure(shared.bytes.as_slice()).map_err(failed)?;
        shared.bytes.truncate(usize::try_from(extent.complete).unwrap_or(usize::MAX));
        if !extent.at_line_start {
            shared.bytes.push(b'\n');
        }
        shared.has_writer = true;
        Ok(MemoryHistoryStore { history: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer of a [`MemoryHistory`].
#[derive(Debug)]
pub struct MemoryHistoryStore {
    history: MemoryHistory,
}

impl Drop for MemoryHistoryStore {
    fn drop(&mut self) {
        self.history.lock().has_writer = false;
    }
}

#[async_trait]
impl HistoryStore for MemoryHistoryStore {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        visit_lines(self.history.lock().bytes.as_slice(), LOCATION, visit)
    }

    async fn append(&self, records: &[HistoryRecord]) -> Result<(), Error> {
        encode(records, &mut self.history.lock().bytes);
        Ok(())
    }

    async fn exists(&self) -> Result<bool, Error> {
        Ok(!self.history.lock().bytes.is_empty())
    }

    fn location(&self) -> String {
        LOCATION.to_owned()
    }
}

const LOCATION: &str = "memory";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::{self, Place};

    #[async_trait]
    impl Place for MemoryHistory {
        async fn open(&self) -> Result<Box<dyn HistoryStore>, Error> {
            Ok(Box::new(Self::open(self)?))
        }

        async fn crash_in_append(&self, records: &[HistoryRecord], kept: usize) -> Option<usize> {
            let mut bytes = Vec::new();
            encode(records, &mut bytes);
            self.lock().bytes.extend_from_slice(&bytes[..kept.min(bytes.len())]);
            Some(bytes.len())
        }

        async fn damage(&self, number: u64) {
            let text = String::from_utf8(self.lock().bytes.clone()).unwrap();
            let lines = (1..).zip(text.lines());
            let damaged: String = lines
                .map(|(line, text)| if line == number { "{\n".into() } else { format!("{text}\n") })
                .collect();
            self.lock().bytes = damaged.into_bytes();
        }
    }

    #[tokio::test]
    async fn the_memory_store_keeps_the_contract() {
        conformance::run(&|| Box::new(MemoryHistory::new())).await;
    }
}
