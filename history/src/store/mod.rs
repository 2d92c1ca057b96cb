//! Where histories are kept.
//!
//! A store holds records in append order, which is the order of replay; nothing is ever sorted, rewritten or removed (a
//! history that can't be read can be set aside, under another name). An append is durable and complete when it returns, and after a crash in the middle of it all of its records are there or
//! none. One writer has a store at a time. `conformance` (feature `testkit`) is what every store has to pass.

#[cfg(any(test, feature = "testkit"))]
pub mod conformance;
mod file;
mod lines;
mod memory;
#[cfg(feature = "opendal")]
mod opendal;

pub use file::FileHistoryStore;
pub use memory::{MemoryHistory, MemoryHistoryStore};
#[cfg(feature = "opendal")]
pub use opendal::{ObjectUrl, OpendalHistoryStore, S3Credentials, UrlError};

use async_trait::async_trait;

use crate::codec::RecordLine;
use crate::error::Error;
use crate::record::HistoryRecord;

/// Takes the number, from 1, of a line in its file, and the record on it; an error ends the reading.
pub type Visit<'a> = dyn FnMut(u64, &RecordLine<'_>) -> Result<(), Error> + Send + 'a;

/// An ordered, append-only list of history records.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Hands all records to `visit`, in append order, one at a time: a history may be larger than memory.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] names the first line that is no record; [`Error::Read`] when the storage fails; what `visit`
    /// returns. An unreadable history is never an empty one.
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error>;

    /// All records in append order.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    async fn load(&self) -> Result<Vec<HistoryRecord>, Error> {
        let location = self.location();
        let mut records = Vec::new();
        let mut push = |line: u64, record: &RecordLine<'_>| {
            let damaged = |source| Error::Damaged { location: location.clone(), line, source };
            records.push(record.to_record().map_err(damaged)?);
            Ok(())
        };
        self.read(&mut push).await?;
        Ok(records)
    }

    /// Adds `records` at the end: durable before it returns, and all of them or none. No records is nothing to do.
    ///
    /// # Errors
    ///
    /// [`Error::Write`], which says whether the append may have happened; [`Error::Fenced`] when another writer changed
    /// the store; [`Error::Unknown`] after an append whose outcome is not known; [`Error::ReadOnly`].
    async fn append(&self, records: &[HistoryRecord]) -> Result<(), Error>;

    /// Whether there is at least one record.
    ///
    /// # Errors
    ///
    /// [`Error::Read`]: a failure is not a "no".
    async fn exists(&self) -> Result<bool, Error>;

    /// Puts all that is there aside, under names that no history has, and says which. Nothing is removed. Afterwards there
    /// are no records, and an append begins anew. A crash in the middle leaves what can't be read as a whole history.
    ///
    /// # Errors
    ///
    /// [`Error::NotSetAside`] where a store has no names of its own to give; as [`Self::append`] otherwise.
    async fn set_aside(&self) -> Result<String, Error> {
        Err(Error::NotSetAside { location: self.location() })
    }

    /// The store for messages: a path or an address, without secrets.
    fn location(&self) -> String;

    /// Where checkpoints are kept beside the records; `None` where there is no place for them.
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        None
    }
}

/// The end of a record in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The number of the object, in a store of many.
    pub object: u64,
    /// The number of the line in its file, from 1; 0 is the beginning.
    pub line: u64,
    /// Bytes from the start of the file, with the line break.
    pub end: u64,
}

/// A store that keeps one checkpoint beside its records, and that can read on from a place.
#[async_trait]
pub trait Checkpoints: Send + Sync {
    /// The checkpoint, `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the storage fails.
    async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Error>;

    /// Replaces the checkpoint, as a whole and durably.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the storage fails, and [`Error::ReadOnly`]; the old one is there then, or the new one.
    async fn save_checkpoint(&self, checkpoint: &[u8]) -> Result<(), Error>;

    /// What tells the records up to a place from those of another history; `None` when no append ends there.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the storage fails.
    async fn fingerprint(&self, place: Place) -> Result<Option<String>, Error>;

    /// As [`HistoryStore::read`], of the records after a place where an append ends.
    ///
    /// # Errors
    ///
    /// As [`HistoryStore::read`].
    async fn read_after(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), Error>;
}
