//! Offsets in a file: one JSON document, replaced as a whole.
//!
//! ```text
//! {"holdfast_offsets":1,"offsets":{"[\"<engine>\",{\"server\":\"<prefix>\"}]":{"file":"mysql-bin.000003","pos":4,…}}}
//! ```
//!
//! A write goes to `<path>.tmp`, is synced, renamed over the file, and the folder is synced: a crash at any point
//! leaves the old document or the new one. Offsets of other keys in the same file are kept.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use holdfast_history::offset::SourceOffset;
use serde_json::{Map, Value};

use super::java_map::JAVA_STREAM;
use super::{Claim, OffsetKey, OffsetStore, OffsetStoreError};

/// The version of the document this code writes and reads.
const VERSION: u64 = 1;
/// No offset document is larger: a few GTID sets, not gigabytes of something else.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Offsets in one file.
#[derive(Debug)]
pub struct FileOffsetStore {
    path: PathBuf,
}

impl FileOffsetStore {
    /// Uses the file at `path`; it need not exist yet, nor its folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn read(&self) -> Result<Map<String, Value>, OffsetStoreError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(self.io("read", error)),
        };
        let size = file.metadata().map_err(|error| self.io("read", error))?.len();
        if size > MAX_BYTES {
            return Err(self.damaged(format!("it has {size} bytes")));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| self.io("read", error))?;
        parse(&bytes, &self.location())
    }

    fn write(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        // Engines of one process may share a file: each write reads it first.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut offsets = self.read()?;
        let offset: Value = serde_json::from_str(&offset.to_json())
            .map_err(|error| self.damaged(format!("new offset: {error}")))?;
        offsets.insert(key.to_json(), offset);
        replace(&self.path, &document(offsets)).map_err(|error| self.io("write", error))
    }

    fn io(&self, action: &'static str, source: io::Error) -> OffsetStoreError {
        OffsetStoreError::Io { action, location: self.location(), source }
    }

    fn damaged(&self, reason: String) -> OffsetStoreError {
        OffsetStoreError::Damaged { location: self.location(), reason }
    }
}

/// The offsets of a document.
pub(super) fn parse(bytes: &[u8], location: &str) -> Result<Map<String, Value>, OffsetStoreError> {
    let damaged =
        |reason: String| OffsetStoreError::Damaged { location: location.to_owned(), reason };
    if bytes.starts_with(&JAVA_STREAM) {
        return Err(OffsetStoreError::DebeziumFile { location: location.to_owned() });
    }
    let document: Value =
        serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let Value::Object(mut document) = document else {
        return Err(damaged("it is not a JSON object".to_owned()));
    };
    match document.get("holdfast_offsets").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(version) => {
            return Err(damaged(format!("its version is {version}, this build reads {VERSION}")));
        }
        None => return Err(damaged("it has no member holdfast_offsets".to_owned())),
    }
    match document.remove("offsets") {
        Some(Value::Object(offsets)) => Ok(offsets),
        Some(_) | None => Err(damaged("it has no object offsets".to_owned())),
    }
}

/// The whole file with these offsets.
pub(super) fn document(offsets: Map<String, Value>) -> Vec<u8> {
    let mut document = Map::new();
    document.insert("holdfast_offsets".to_owned(), VERSION.into());
    document.insert("offsets".to_owned(), Value::Object(offsets));
    let mut bytes = Value::Object(document).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// Replaces a file as a whole: the old content or the new one is there after a crash at any point.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut temporary = path.to_path_buf().into_os_string();
    temporary.push(".tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, path)?;
    sync_folder_of(path)
}

/// Makes a new name in the folder of `path` durable.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// The document is a few hundred bytes, so that reading and writing it inline costs less than a hand-over to a
/// blocking thread; `sync_all` takes as long as the disk takes, and the committer has nothing else to do.
#[async_trait]
impl OffsetStore for FileOffsetStore {
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        match self.read()?.get(&key.to_json()) {
            None => Ok(None),
            Some(offset) => SourceOffset::from_json(&offset.to_string())
                .map(Some)
                .map_err(|error| self.damaged(error.to_string())),
        }
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        self.write(key, offset)
    }

    async fn claim(&self, key: &OffsetKey) -> Result<Claim, OffsetStoreError> {
        Claim::file(&self.path, &key.to_json())
    }

    fn location(&self) -> String {
        self.path.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offset_store::conformance;

    struct Folder(tempfile::TempDir);

    #[async_trait]
    impl conformance::Place for Folder {
        async fn open(&self) -> Box<dyn OffsetStore> {
            Box::new(FileOffsetStore::new(self.0.path().join("offsets.json")))
        }

        async fn damage(&self) {
            fs::write(self.0.path().join("offsets.json"), "{").unwrap();
        }
    }

    #[tokio::test]
    async fn the_file_store_keeps_the_contract() {
        conformance::run(&|| Box::new(Folder(tempfile::tempdir().unwrap()))).await;
    }

    fn key() -> OffsetKey {
        OffsetKey { engine: "engine".to_owned(), server: "spa".to_owned() }
    }

    fn offset(pos: u64) -> SourceOffset {
        SourceOffset { file: "mysql-bin.000003".to_owned(), pos, ..SourceOffset::default() }
    }

    #[tokio::test]
    async fn what_was_stored_is_loaded_by_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not yet there/offsets.json");
        let store = FileOffsetStore::new(&path);
        assert_eq!(store.load(&key()).await.unwrap(), None);
        store.store(&key(), &offset(4)).await.unwrap();
        store.store(&key(), &offset(9)).await.unwrap();
        let other = OffsetKey { engine: "other".to_owned(), ..key() };
        store.store(&other, &offset(1)).await.unwrap();
        let reopened = FileOffsetStore::new(&path);
        assert_eq!(reopened.load(&key()).await.unwrap(), Some(offset(9)));
        assert_eq!(reopened.load(&other).await.unwrap(), Some(offset(1)));
    }

    #[tokio::test]
    async fn a_damaged_file_is_an_error_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("offsets.json");
        let store = FileOffsetStore::new(&path);
        store.store(&key(), &offset(4)).await.unwrap();
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() - 1 {
            fs::write(&path, &whole[..len]).unwrap();
            let error = store.load(&key()).await.unwrap_err();
            assert!(matches!(error, OffsetStoreError::Damaged { .. }), "{len} bytes: {error}");
            assert!(store.store(&key(), &offset(5)).await.is_err());
            assert_eq!(fs::read(&path).unwrap(), &whole[..len]);
        }
    }

    #[tokio::test]
    async fn a_debezium_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("offsets.dat");
        fs::write(&path, [0xac, 0xed, 0x00, 0x05, 0x73, 0x72]).unwrap();
        let store = FileOffsetStore::new(&path);
        let error = store.load(&key()).await.unwrap_err();
        assert!(matches!(error, OffsetStoreError::DebeziumFile { .. }), "{error}");
        assert!(store.store(&key(), &offset(5)).await.is_err());
        assert_eq!(fs::read(&path).unwrap(), [0xac, 0xed, 0x00, 0x05, 0x73, 0x72]);
    }
}
