//! A history in memory, for tests and for engines that read their schema anew at each start.

use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::lines::{encode, fingerprint, measure, visit_lines};
use super::{Checkpoints, HistoryStore, Place, Visit};
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
    checkpoint: Option<Vec<u8>>,
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
        let len = u64::try_from(shared.bytes.len()).unwrap_or(u64::MAX);
        let extent = measure(Cursor::new(&shared.bytes), len).map_err(failed)?;
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
        visit_lines(self.history.lock().bytes.as_slice(), Place::default(), LOCATION, visit)
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

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

#[async_trait]
impl Checkpoints for MemoryHistoryStore {
    async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.history.lock().checkpoint.clone())
    }

    async fn save_checkpoint(&self, checkpoint: &[u8]) -> Result<(), Error> {
        self.history.lock().checkpoint = Some(checkpoint.to_vec());
        Ok(())
    }

    async fn fingerprint(&self, place: Place) -> Result<Option<String>, Error> {
        fingerprint(Cursor::new(&self.history.lock().bytes), place.end)
            .map_err(|source| Error::Read { location: LOCATION.to_owned(), action: "read", source })
    }

    async fn read_after(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), Error> {
        let shared = self.history.lock();
        let at = usize::try_from(place.end).unwrap_or(usize::MAX);
        visit_lines(shared.bytes.get(at..).unwrap_or_default(), place, LOCATION, visit)
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
