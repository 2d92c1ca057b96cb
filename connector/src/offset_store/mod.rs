//! Where the committed offset is kept.

mod claim;
#[cfg(any(test, feature = "testkit"))]
pub mod conformance;
mod debezium;
mod file;
mod java_map;
mod memory;
mod opendal;

pub use claim::Claim;
pub use debezium::{Imported, TakeOverError, export_debezium, import_debezium};
pub use file::FileOffsetStore;
pub use java_map::JavaMapError;
pub use memory::MemoryOffsetStore;
pub use opendal::OpendalOffsetStore;

pub use crate::stores::open_offsets;

use async_trait::async_trait;
use holdfast_history::offset::SourceOffset;

/// Whose offset it is: Debezium's key, the engine's name and the topic prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetKey {
    /// Name of the engine (`name`).
    pub engine: String,
    /// Topic prefix (`topic.prefix`).
    pub server: String,
}

impl OffsetKey {
    /// Debezium's form, `["<engine>",{"server":"<prefix>"}]`.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::json!([self.engine, { "server": self.server }]).to_string()
    }
}

/// Keeps one offset per key, durably.
///
/// `store` returns when the offset is durable; a crash in the middle leaves the old offset or the new one. A damaged
/// offset is an error of `load`, never "none".
#[async_trait]
pub trait OffsetStore: Send + Sync {
    /// The stored offset, `None` when nothing was ever stored under `key`.
    ///
    /// # Errors
    ///
    /// [`OffsetStoreError`] when the store can't be read or what it holds is no offset.
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError>;

    /// Replaces the offset of `key`.
    ///
    /// # Errors
    ///
    /// [`OffsetStoreError`] when it could not be made durable.
    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError>;

    /// Makes the offset of `key` ours for as long as the claim is held, where another process could store it
    /// unnoticed. A store that notices when it stores has nothing to claim, which is the default.
    ///
    /// # Errors
    ///
    /// [`OffsetStoreError::InUse`] when somebody else holds it; [`OffsetStoreError::Io`].
    async fn claim(&self, _key: &OffsetKey) -> Result<Claim, OffsetStoreError> {
        Ok(Claim::none())
    }

    /// Where it is, for messages: a path, a URL, a table.
    fn location(&self) -> String;
}

/// Why an offset could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetStoreError {
    /// The store could not be reached, read or written.
    #[error("cannot {action} the offsets in {location}")]
    Io {
        /// What was tried: `read`, `write`, `sync`.
        action: &'static str,
        /// Where.
        location: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The store holds something that is not an offset document.
    #[error(
        "the offsets in {location} are damaged: {reason}; restore the file from a copy, or set the offset anew"
    )]
    Damaged {
        /// Where.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An engine at work, or a command that sets the offset, has it.
    #[error(
        "the offsets in {location} are in use: an engine that runs holds {lock}; stop it first, or give this one a file of its \
         own in offset.storage.file.filename"
    )]
    InUse {
        /// Where.
        location: String,
        /// What is held.
        lock: String,
    },
    /// Another engine stored an offset under the same key since this one did.
    #[error(
        "another process stored an offset of {key} in {location} while this one was running; one of the two has to stop"
    )]
    Fenced {
        /// Where.
        location: String,
        /// Whose offset it is, see [`OffsetKey::to_json`].
        key: String,
    },
    /// The file is Debezium's own, a Java-serialised map. It is never overwritten.
    #[error(
        "{location} is an offset file of Debezium (a Java-serialised map), which is left untouched; `holdfast offset import \
         --config FILE` takes it over, or name another file in offset.storage.file.filename"
    )]
    DebeziumFile {
        /// Where.
        location: String,
    },
}
