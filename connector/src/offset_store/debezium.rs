//! Offset files of Debezium's `FileOffsetBackingStore`: taking one over, and writing one.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdfast_history::offset::SourceOffset;
use serde_json::{Map, Value};

use super::java_map::{self, JAVA_STREAM, JavaMapError};
use super::{Claim, OffsetKey, OffsetStoreError, file};

/// What [`import_debezium`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The offset under the key that was asked for.
    pub offset: SourceOffset,
    /// Where Debezium's file is now.
    pub kept: PathBuf,
    /// Keys of other engines in the same file that were taken over as well.
    pub others: Vec<String>,
    /// Keys that were not, because nothing or no offset is under them.
    pub left_out: Vec<String>,
}

/// Why an offset file was not taken over or written. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeOverError {
    /// A file could not be read or written.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried: `read`, `keep`, `write`.
        action: &'static str,
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file is Holdfast's own already.
    #[error("{path} is a file of Holdfast already; there is nothing to import")]
    Ours {
        /// The file.
        path: String,
    },
    /// A file of that name must not be overwritten.
    #[error("{path} exists; move it away first")]
    Exists {
        /// The file.
        path: String,
    },
    /// Debezium would not give out rows that are held.
    #[error(
        "the offset names XA transactions that are prepared and undecided ({xids}): Debezium gives such rows out at the \
         prepare, which is behind; decide them, let holdfast run read that, and export then"
    )]
    Held {
        /// Their identifiers.
        xids: String,
    },
    /// The file holds no offset for this configuration.
    #[error(
        "{path} has no offset of {key}, only of: {known}; name and topic.prefix must be those that Debezium ran with"
    )]
    NoSuchKey {
        /// The file.
        path: String,
        /// The key of the configuration.
        key: String,
        /// The keys that are there, or `none`.
        known: String,
    },
    /// The file is not a map as Debezium writes it.
    #[error("{path} is not an offset file of Debezium: {reason}")]
    NotAMap {
        /// The file.
        path: String,
        /// What is wrong.
        reason: JavaMapError,
    },
    /// What is under the key is no offset.
    #[error("the offset of {key} in {path} can't be read: {reason}")]
    NotAnOffset {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// An engine that runs has the file.
    #[error(transparent)]
    InUse(#[from] OffsetStoreError),
    /// The file is beyond any size that an offset file has.
    #[error("{path} has {bytes} bytes, which is no offset file")]
    TooLarge {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
}

/// Takes over Debezium's offset file at `path`: it is kept as `<path>.debezium`, and our own file with the same offsets
/// takes its place.
///
/// A crash leaves Debezium's file or ours at `path`, never none; after it the same call goes on.
///
/// # Errors
///
/// [`TakeOverError`]; `path` is untouched then.
pub fn import_debezium(path: &Path, key: &OffsetKey) -> Result<Imported, TakeOverError> {
    let name = path.display().to_string();
    let bytes = read_file(path)?;
    let _claim = Claim::file(path, &key.to_json())?;
    if !bytes.starts_with(&JAVA_STREAM) {
        let ours = serde_json::from_slice::<Value>(&bytes)
            .is_ok_and(|document| document.get("holdfast_offsets").is_some());
        return Err(if ours {
            TakeOverError::Ours { path: name }
        } else {
            TakeOverError::NotAMap {
                path: name,
                reason: JavaMapError::Unexpected { what: "Java serialisation stream", at: 0 },
            }
        });
    }
    let entries = java_map::read(&bytes)
        .map_err(|reason| TakeOverError::NotAMap { path: name.clone(), reason })?;
    let wanted = key.to_json();
    let mut document = Map::new();
    let mut imported = None;
    let (mut others, mut left_out) = (Vec::new(), Vec::new());
    for (key, value) in entries {
        let shown = canonical(key.unwrap_or_default());
        let offset = value.map(read_offset);
        match offset {
            Some(Ok((offset, json))) => {
                if shown == wanted {
                    imported = Some(offset);
                } else {
                    others.push(shown.clone());
                }
                document.insert(shown, json);
            }
            Some(Err(reason)) if shown == wanted => {
                return Err(TakeOverError::NotAnOffset { path: name, key: shown, reason });
            }
            Some(Err(_)) | None => left_out.push(shown),
        }
    }
    let Some(offset) = imported else {
        let known = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        return Err(TakeOverError::NoSuchKey { path: name, key: wanted, known });
    };
    let kept = keep(path, &bytes)?;
    file::replace(path, &file::document(document)).map_err(io_error("write", path))?;
    Ok(Imported { offset, kept, others, left_out })
}

/// Writes an offset file that Debezium reads, with this one offset. `path` must not exist.
///
/// # Errors
///
/// [`TakeOverError::Exists`], [`TakeOverError::Held`], [`TakeOverError::Io`].
pub fn export_debezium(
    path: &Path,
    key: &OffsetKey,
    offset: &SourceOffset,
) -> Result<(), TakeOverError> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(TakeOverError::Exists { path: path.display().to_string() });
    }
    let held = offset.holdfast.as_ref().and_then(|ours| ours.held.as_deref()).unwrap_or_default();
    if !held.is_empty() {
        let xids: Vec<&str> = held.split(';').filter_map(|unit| unit.split('|').next()).collect();
        return Err(TakeOverError::Held { xids: xids.join(" and ") });
    }
    let (key, offset) = (key.to_json(), offset.to_json());
    let bytes = java_map::write(&[(key.as_bytes(), offset.as_bytes())])
        .ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))
        .map_err(io_error("write", path))?;
    file::replace(path, &bytes).map_err(io_error("write", path))
}

fn read_file(path: &Path) -> Result<Vec<u8>, TakeOverError> {
    let mut file = File::open(path).map_err(io_error("read", path))?;
    let size = file.metadata().map_err(io_error("read", path))?.len();
    if size > file::MAX_BYTES {
        return Err(TakeOverError::TooLarge { path: path.display().to_string(), bytes: size });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io_error("read", path))?;
    Ok(bytes)
}

/// The file's second name, which stays with Debezium's bytes when ours takes the first one. A name that is there from an
/// import that was cut short has the same bytes, and is as good.
fn keep(path: &Path, bytes: &[u8]) -> Result<PathBuf, TakeOverError> {
    let mut kept = path.to_path_buf().into_os_string();
    kept.push(".debezium");
    let kept = PathBuf::from(kept);
    match fs::hard_link(path, &kept) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !fs::read(&kept).is_ok_and(|other| other == bytes) {
                return Err(TakeOverError::Exists { path: kept.display().to_string() });
            }
        }
        Err(error) => return Err(io_error("keep", &kept)(error)),
    }
    file::sync_folder_of(&kept).map_err(io_error("keep", &kept))?;
    Ok(kept)
}

/// A key as [`OffsetKey::to_json`] writes it, whatever spaces it was written with.
fn canonical(key: &[u8]) -> String {
    serde_json::from_slice::<Value>(key)
        .map_or_else(|_| String::from_utf8_lossy(key).into_owned(), |key| key.to_string())
}

fn read_offset(bytes: &[u8]) -> Result<(SourceOffset, Value), String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let offset = SourceOffset::from_json(text).map_err(|error| error.to_string())?;
    let json = serde_json::from_str(&offset.to_json()).map_err(|error| error.to_string())?;
    Ok((offset, json))
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TakeOverError {
    let path = path.display().to_string();
    move |source| TakeOverError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::super::{FileOffsetStore, OffsetStore};
    use super::*;

    const JAVA: &[u8] = include_bytes!("fixtures/openjdk-17.0.15.dat");

    fn key(engine: &str, server: &str) -> OffsetKey {
        OffsetKey { engine: engine.to_owned(), server: server.to_owned() }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("offsets.dat");
        fs::write(&path, JAVA).unwrap();
        (folder, path)
    }

    #[tokio::test]
    async fn a_file_of_java_is_kept_and_ours_takes_its_place_with_all_offsets() {
        let (_folder, path) = place();
        let imported = import_debezium(&path, &key("engine", "spa")).unwrap();
        assert_eq!(
            (imported.offset.pos, imported.offset.event, imported.offset.row),
            (3687, 10, 6)
        );
        assert_eq!(imported.left_out, [r#"["gone",{"server":"spa"}]"#]);
        assert_eq!(fs::read(imported.kept).unwrap(), JAVA);
        let store = FileOffsetStore::new(&path);
        assert_eq!(store.load(&key("engine", "spa")).await.unwrap(), Some(imported.offset));
        assert_eq!(store.load(&key("other", "shop")).await.unwrap().unwrap().pos, 157);
        let again = import_debezium(&path, &key("engine", "spa")).unwrap_err();
        assert!(matches!(again, TakeOverError::Ours { .. }), "{again}");
    }

    #[test]
    fn a_refused_file_is_untouched() {
        let (_folder, path) = place();
        let kept = path.with_extension("dat.debezium");
        for name in ["gone", "elsewhere"] {
            let error = import_debezium(&path, &key(name, "spa")).unwrap_err();
            assert!(
                error.to_string().contains(r#"only of: ["engine",{"server":"spa"}], "#),
                "{error}"
            );
        }
        assert!(!kept.exists());
        fs::write(&kept, "another").unwrap();
        let error = import_debezium(&path, &key("engine", "spa")).unwrap_err();
        assert!(matches!(error, TakeOverError::Exists { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), JAVA);
        assert_eq!(fs::read(&kept).unwrap(), b"another");
        fs::write(&path, &JAVA[..100]).unwrap();
        let error = import_debezium(&path, &key("engine", "spa")).unwrap_err();
        assert!(matches!(error, TakeOverError::NotAMap { .. }), "{error}");
    }

    #[test]
    fn an_import_that_was_cut_short_goes_on() {
        let (_folder, path) = place();
        fs::hard_link(&path, path.with_extension("dat.debezium")).unwrap();
        assert_eq!(import_debezium(&path, &key("engine", "spa")).unwrap().offset.pos, 3687);
    }

    #[test]
    fn held_transactions_are_not_handed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.dat");
        let offset = SourceOffset::from_json(
            r#"{"file":"b.000003","pos":9,"holdfast_held":"X'67',X'',1||b.000001|4;X'68',X'',1||b.000001|9"}"#,
        )
        .unwrap();
        let error = export_debezium(&path, &key("engine", "spa"), &offset).unwrap_err();
        assert!(error.to_string().contains("(X'67',X'',1 and X'68',X'',1)"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn an_exported_offset_is_imported_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.dat");
        let offset = SourceOffset::from_json(
            r#"{"file":"b.000003","pos":9,"gtids":"","holdfast_v":1,"holdfast_lineage":"u","holdfast_epoch":2,"holdfast_rows":3}"#,
        )
        .unwrap();
        export_debezium(&path, &key("a \"b\" ü", "spa"), &offset).unwrap();
        let error = export_debezium(&path, &key("x", "spa"), &offset).unwrap_err();
        assert!(matches!(error, TakeOverError::Exists { .. }), "{error}");
        assert_eq!(import_debezium(&path, &key("a \"b\" ü", "spa")).unwrap().offset, offset);
    }
}
