//! Offsets in one object: the JSON document of the file store, on object storage.
//!
//! A store reads what is there, and replaces it under the condition that it is still that (`If-Match` with its ETag, or
//! `If-None-Match: *` where nothing was). When somebody else was faster, the object is read again: another key's offset
//! has moved, and the store is tried again with it; or our own key's has, and this engine is fenced. An answer that was
//! lost is found the same way: what is there is what was to be stored.
//!
//! A service without `If-Match` is read before every store, so that another writer is found as well, unless it writes
//! in between. Two engines with one key must not run there.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use holdfast_history::offset::SourceOffset;
use holdfast_history::store::ObjectUrl;
use opendal::{Buffer, ErrorKind, Operator};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::file::{MAX_BYTES, document, parse};
use super::{OffsetKey, OffsetStore, OffsetStoreError};

/// How often a store is tried again because other keys' offsets moved.
const ATTEMPTS: u32 = 20;

/// Offsets in one object.
#[derive(Debug)]
pub struct OpendalOffsetStore {
    operator: Operator,
    path: String,
    location: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The object as it was last seen; `None` before that.
    seen: Option<Seen>,
    /// Our offsets as they were last loaded or stored, by key; `None` for a key that had none.
    ours: BTreeMap<String, Option<Value>>,
    /// What was to be stored under a key when the answer did not come: it may be there.
    pending: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Default)]
struct Seen {
    /// Its ETag; `None` where there is no object, or no ETag.
    etag: Option<String>,
    exists: bool,
    offsets: Map<String, Value>,
}

impl OpendalOffsetStore {
    /// Uses the object at `path` of `operator`; it need not exist yet.
    #[must_use]
    pub fn new(operator: Operator, path: &str) -> Self {
        let path = path.trim_matches('/').to_owned();
        let info = operator.info();
        let below = format!("{}/{path}", info.root());
        let location =
            format!("{}://{}/{}", info.scheme(), info.name(), below.trim_start_matches('/'));
        Self { operator, path, location, state: Mutex::default() }
    }

    /// As [`Self::new`], at a URL.
    ///
    /// # Errors
    ///
    /// [`OffsetStoreError::Io`] when the URL lacks a setting. No request is made.
    pub fn at_url(url: &ObjectUrl) -> Result<Self, OffsetStoreError> {
        let operator = url.operator().map_err(|source| OffsetStoreError::Io {
            action: "open",
            location: url.to_string(),
            source,
        })?;
        Ok(Self::new(operator, url.path()))
    }

    fn io(&self, action: &'static str) -> impl Fn(opendal::Error) -> OffsetStoreError + '_ {
        move |error| OffsetStoreError::Io {
            action,
            location: self.location.clone(),
            source: io::Error::from(error),
        }
    }

    fn damaged(&self, reason: impl ToString) -> OffsetStoreError {
        OffsetStoreError::Damaged { location: self.location.clone(), reason: reason.to_string() }
    }

    /// The object as it is now.
    async fn look(&self) -> Result<Seen, OffsetStoreError> {
        for _ in 0..ATTEMPTS {
            let metadata = match self.operator.stat(&self.path).await {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Seen::default()),
                Err(error) => return Err(self.io("read")(error)),
            };
            let size = metadata.content_length();
            if size > MAX_BYTES {
                return Err(self.damaged(format!("it has {size} bytes")));
            }
            let etag = metadata.etag().map(str::to_owned);
            let read = self.operator.read_with(&self.path);
            let read = match &etag {
                Some(etag) if self.operator.info().capability().read_with_if_match => {
                    read.if_match(etag).await
                }
                Some(_) | None => read.await,
            };
            match read {
                Ok(bytes) => {
                    let offsets = parse(&bytes.to_bytes(), &self.location)?;
                    return Ok(Seen { etag, exists: true, offsets });
                }
                // It was replaced, or removed, between the two requests.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConditionNotMatch | ErrorKind::NotFound
                    ) => {}
                Err(error) => return Err(self.io("read")(error)),
            }
        }
        Err(self.io("read")(opendal::Error::new(
            ErrorKind::ConditionNotMatch,
            "it changes faster than it can be read",
        )))
    }

    /// Puts `bytes` in the place of what was seen, and gives the new ETag.
    async fn replace(&self, seen: &Seen, bytes: &[u8]) -> Result<Option<String>, opendal::Error> {
        let capability = self.operator.info().capability();
        let write = self.operator.write_with(&self.path, Buffer::from(bytes.to_vec()));
        let written = match &seen.etag {
            Some(etag) if capability.write_with_if_match => write.if_match(etag).await,
            None if !seen.exists && capability.write_with_if_not_exists => {
                write.if_not_exists(true).await
            }
            Some(_) | None => write.await,
        };
        Ok(written?.etag().map(str::to_owned))
    }
}

#[async_trait]
impl OffsetStore for OpendalOffsetStore {
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        let key = key.to_json();
        let mut state = self.state.lock().await;
        let seen = self.look().await?;
        let found = seen.offsets.get(&key).cloned();
        let offset = found
            .as_ref()
            .map(|offset| SourceOffset::from_json(&offset.to_string()))
            .transpose()
            .map_err(|error| self.damaged(error))?;
        state.ours.insert(key, found);
        state.seen = Some(seen);
        Ok(offset)
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let key = key.to_json();
        let ours: Value =
            serde_json::from_str(&offset.to_json()).map_err(|error| self.damaged(error))?;
        let mut state = self.state.lock().await;
        let conditional = self.operator.info().capability().write_with_if_match;
        for _ in 0..ATTEMPTS {
            let seen = match state.seen.take() {
                Some(seen) if conditional => seen,
                _ => self.look().await?,
            };
            let found = seen.offsets.get(&key).cloned();
            let before = state.ours.entry(key.clone()).or_insert_with(|| found.clone()).clone();
            if found != before {
                if found.is_none() || found.as_ref() != state.pending.get(&key) {
                    return Err(OffsetStoreError::Fenced { location: self.location.clone(), key });
                }
                // Ours: its answer was lost.
                state.ours.insert(key.clone(), found.clone());
                if found.as_ref() == Some(&ours) {
                    state.seen = Some(seen);
                    return Ok(());
                }
            }
            let mut offsets = seen.offsets.clone();
            offsets.insert(key.clone(), ours.clone());
            state.pending.insert(key.clone(), ours.clone());
            match self.replace(&seen, &document(offsets.clone())).await {
                Ok(etag) => {
                    state.pending.remove(&key);
                    state.ours.insert(key, Some(ours));
                    // Without an ETag the next store has to look.
                    state.seen = etag.map(|etag| Seen { etag: Some(etag), exists: true, offsets });
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::ConditionNotMatch => {}
                // `If-Match` on what was removed.
                Err(error) if error.kind() == ErrorKind::NotFound && seen.exists => {}
                Err(error) => return Err(self.io("write")(error)),
            }
        }
        Err(self.io("write")(opendal::Error::new(
            ErrorKind::ConditionNotMatch,
            "it changes faster than it can be replaced",
        )))
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}

#[cfg(test)]
mod tests {
    use opendal::services::Memory;

    use super::super::conformance::{self, Place, offset};
    use super::*;

    struct Object(Operator);

    impl Object {
        fn new() -> Self {
            Self(Operator::new(Memory::default()).unwrap())
        }

        fn store(&self) -> OpendalOffsetStore {
            OpendalOffsetStore::new(self.0.clone(), "folder/offsets.json")
        }
    }

    #[async_trait]
    impl Place for Object {
        async fn open(&self) -> Box<dyn OffsetStore> {
            Box::new(self.store())
        }

        async fn damage(&self) {
            self.0.write("folder/offsets.json", "{").await.unwrap();
        }
    }

    fn key(engine: &str) -> OffsetKey {
        OffsetKey { engine: engine.to_owned(), server: "inventory".to_owned() }
    }

    #[tokio::test]
    async fn an_object_keeps_the_contract() {
        conformance::run(&|| Box::new(Object::new())).await;
    }

    #[tokio::test]
    async fn a_second_writer_of_a_key_is_fenced_and_one_of_another_key_is_not() {
        let place = Object::new();
        let (first, second) = (place.store(), place.store());
        first.store(&key("a"), &offset(1)).await.unwrap();
        assert_eq!(second.load(&key("a")).await.unwrap(), Some(offset(1)));
        second.store(&key("b"), &offset(7)).await.unwrap();
        first.store(&key("a"), &offset(2)).await.unwrap();
        for _ in 0..2 {
            let error = second.store(&key("a"), &offset(3)).await.unwrap_err();
            assert!(matches!(error, OffsetStoreError::Fenced { .. }), "{error}");
        }
        second.store(&key("b"), &offset(8)).await.unwrap();
        assert_eq!(first.load(&key("a")).await.unwrap(), Some(offset(2)));
        assert_eq!(first.load(&key("b")).await.unwrap(), Some(offset(8)));
    }

    #[tokio::test]
    async fn an_object_that_is_damaged_or_of_debezium_is_never_overwritten() {
        let place = Object::new();
        let damaged: [&[u8]; 3] = [b"", b"{\"holdfast_offsets\":2}", b"\xac\xed\x00\x05sr"];
        for bytes in damaged {
            place.0.write("folder/offsets.json", bytes.to_vec()).await.unwrap();
            assert!(place.store().load(&key("a")).await.is_err());
            assert!(place.store().store(&key("a"), &offset(1)).await.is_err());
            assert_eq!(place.0.read("folder/offsets.json").await.unwrap().to_vec(), bytes);
        }
    }
}
