//! A history in one file, in the format of Debezium's `FileSchemaHistory`: UTF-8, one record per line.
//!
//! An append is one write at the end and one sync. What a crash leaves of it is cut off when the file is opened for
//! writing, and kept beside it as `<path>.torn-1`, `-2` and so on. The writer holds an advisory lock on the file itself.
//!
//! The calls do blocking file operations in the caller's task: an append is as rare as DDL, and its caller has to wait
//! for the disk in any case.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::lines::{Extent, encode, fingerprint, measure, visit_lines};
use super::{Checkpoints, HistoryStore, Place, Visit};
use crate::error::{Error, Written};
use crate::record::HistoryRecord;

/// Bytes that are read at a time.
const READ: usize = 256 << 10;

/// One file of history records.
#[derive(Debug)]
pub struct FileHistoryStore {
    path: PathBuf,
    access: Access,
}

#[derive(Debug)]
enum Access {
    Read,
    Write(Mutex<Writer>),
}

#[derive(Debug)]
struct Writer {
    file: File,
    /// The file as this writer left it.
    extent: Extent,
    /// Whether an append failed and could not be taken back.
    unknown: bool,
}

impl FileHistoryStore {
    /// Opens `path` for reading and appending; creates it, and the folders above, where it is not there. An incomplete
    /// append at the end of the file is kept aside and cut off.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] when another writer has the file; [`Error::Read`] when it cannot be opened, locked or repaired.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let location = display(&path);
        let failed = |action| {
            let location = location.clone();
            move |source| Error::Read { location, action, source }
        };
        let file = open_or_create(&path).map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { location }),
            Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
        }
        let len = file.metadata().map_err(failed("look at"))?.len();
        let extent = measure(&file, len).map_err(failed("read"))?;
        if extent.complete < len {
            let aside = keep_aside(&path, &file, extent.complete)
                .map_err(failed("keep the torn end of"))?;
            file.set_len(extent.complete)
                .and_then(|()| file.sync_all())
                .map_err(failed("cut the torn end off"))?;
            tracing::warn!(
                history = %location,
                bytes = len - extent.complete,
                kept_as = %aside.display(),
                "an incomplete append at the end of the schema history was cut off"
            );
        }
        let writer = Writer { file, extent, unknown: false };
        Ok(Self { path, access: Access::Write(Mutex::new(writer)) })
    }

    /// Takes `path` for reading only: nothing is created, locked or repaired, and a writer may be at work beside it. An
    /// incomplete append at the end is not read.
    #[must_use]
    pub fn open_read_only(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), access: Access::Read }
    }

    /// `<path>.checkpoint`, which Debezium does not look at.
    fn checkpoint(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".checkpoint");
        PathBuf::from(name)
    }

    fn read_from(&self, start: Place, visit: &mut Visit<'_>) -> Result<(), Error> {
        match &self.access {
            Access::Read => match self.open_now()? {
                Some((file, extent)) => read(&file, start, extent, &self.location(), visit),
                None => Ok(()),
            },
            Access::Write(writer) => {
                let writer = lock(writer);
                read(&writer.file, start, writer.extent, &self.location(), visit)
            }
        }
    }

    /// The file and its complete part, to read without holding it; a file that is not there has no records.
    fn open_now(&self) -> Result<Option<(File, Extent)>, Error> {
        let location = self.location();
        let failed = |source| Error::Read { location: location.clone(), action: "read", source };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(failed(source)),
        };
        let len = file.metadata().map_err(failed)?.len();
        let extent = measure(&file, len).map_err(failed)?;
        if extent.complete < len {
            tracing::warn!(history = %location, "an incomplete append at the end of the schema history is left out");
        }
        Ok(Some((file, extent)))
    }
}

#[async_trait]
impl HistoryStore for FileHistoryStore {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        self.read_from(Place::default(), visit)
    }

    async fn append(&self, records: &[HistoryRecord]) -> Result<(), Error> {
        match &self.access {
            Access::Read => Err(Error::ReadOnly { location: self.location() }),
            Access::Write(_) if records.is_empty() => Ok(()),
            Access::Write(writer) => lock(writer).append(&self.path, records),
        }
    }

    async fn exists(&self) -> Result<bool, Error> {
        match &self.access {
            Access::Read => Ok(self.open_now()?.is_some_and(|(_, extent)| extent.any)),
            Access::Write(writer) => Ok(lock(writer).extent.any),
        }
    }

    async fn set_aside(&self) -> Result<String, Error> {
        match &self.access {
            Access::Read => Err(Error::ReadOnly { location: self.location() }),
            Access::Write(writer) => {
                let mut writer = lock(writer);
                if writer.changed_by_another(&self.path)? {
                    return Err(Error::Fenced { location: self.location() });
                }
                let failed =
                    |source| Error::Read { location: self.location(), action: "set aside", source };
                let aside = free_name(&self.path, "damaged").map_err(failed)?;
                std::fs::rename(&self.path, &aside).map_err(failed)?;
                let file = open_or_create(&self.path).map_err(failed)?;
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => {
                        return Err(Error::InUse { location: self.location() });
                    }
                    Err(TryLockError::Error(source)) => return Err(failed(source)),
                }
                let len = file.metadata().map_err(failed)?.len();
                let extent = measure(&file, len).map_err(failed)?;
                *writer = Writer { file, extent, unknown: false };
                Ok(display(&aside))
            }
        }
    }

    fn location(&self) -> String {
        display(&self.path)
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

#[async_trait]
impl Checkpoints for FileHistoryStore {
    async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = self.checkpoint();
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { location: display(&path), action: "read", source }),
        }
    }

    async fn save_checkpoint(&self, checkpoint: &[u8]) -> Result<(), Error> {
        if matches!(self.access, Access::Read) {
            return Err(Error::ReadOnly { location: self.location() });
        }
        let path = self.checkpoint();
        replace(&path, checkpoint).map_err(|source| Error::Read {
            location: display(&path),
            action: "keep a checkpoint of",
            source,
        })
    }

    async fn fingerprint(&self, place: Place) -> Result<Option<String>, Error> {
        let within = |extent: Extent| place.end <= extent.complete;
        let found = match &self.access {
            Access::Read => match self.open_now()? {
                Some((file, extent)) if within(extent) => fingerprint(&file, place.end),
                Some(_) | None => Ok(None),
            },
            Access::Write(writer) => {
                let writer = lock(writer);
                if !within(writer.extent) {
                    return Ok(None);
                }
                fingerprint(&writer.file, place.end)
            }
        };
        found.map_err(|source| Error::Read { location: self.location(), action: "read", source })
    }

    async fn read_after(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), Error> {
        self.read_from(place, visit)
    }
}

/// The first of `<path>.<what>-1`, `-2` and so on that is not there. The writer's lock keeps others from taking it.
fn free_name(path: &Path, what: &str) -> io::Result<PathBuf> {
    for number in 1..=u32::MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{what}-{number}"));
        let name = PathBuf::from(name);
        if !name.try_exists()? {
            return Ok(name);
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

impl Writer {
    fn append(&mut self, path: &Path, records: &[HistoryRecord]) -> Result<(), Error> {
        if self.unknown {
            return Err(Error::Unknown { location: display(path) });
        }
        if self.changed_by_another(path)? {
            return Err(Error::Fenced { location: display(path) });
        }
        let mut bytes = Vec::new();
        if !self.extent.at_line_start {
            bytes.push(b'\n');
        }
        encode(records, &mut bytes);
        let failed = |written, source| Error::Write { location: display(path), written, source };
        let written = self
            .file
            .seek(SeekFrom::Start(self.extent.complete))
            .and_then(|_| self.file.write_all(&bytes));
        if let Err(source) = written {
            // Nothing was synced yet: with the old length back, nobody will see the part that was written.
            let undone =
                self.file.set_len(self.extent.complete).and_then(|()| self.file.sync_all());
            self.unknown = undone.is_err();
            return Err(failed(if self.unknown { Written::Maybe } else { Written::No }, source));
        }
        if let Err(source) = self.file.sync_all() {
            // After a failed sync the kernel may have dropped the pages or kept them; another sync does not tell.
            self.unknown = true;
            return Err(failed(Written::Maybe, source));
        }
        self.extent = Extent {
            complete: self
                .extent
                .complete
                .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            at_line_start: true,
            any: true,
        };
        Ok(())
    }

    /// Whether the file has another length than this writer left, or the path is another file by now.
    fn changed_by_another(&self, path: &Path) -> Result<bool, Error> {
        let read = |source| Error::Read { location: display(path), action: "look at", source };
        let ours = self.file.metadata().map_err(read)?;
        match std::fs::metadata(path) {
            Ok(theirs) => Ok(ours.len() != self.extent.complete || !same_file(&ours, &theirs)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(read(error)),
        }
    }
}

fn read(
    mut file: &File,
    start: Place,
    extent: Extent,
    location: &str,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    file.seek(SeekFrom::Start(start.end)).map_err(|source| Error::Read {
        location: location.to_owned(),
        action: "read",
        source,
    })?;
    let rest = file.take(extent.complete.saturating_sub(start.end));
    visit_lines(BufReader::with_capacity(READ, rest), start, location, visit)
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    // A panic inside leaves what a failed append leaves, and the length check finds that.
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn open_or_create(path: &Path) -> io::Result<File> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let folder = folder(path);
    std::fs::create_dir_all(folder)?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.sync_all()?;
    sync_folder(folder)?;
    Ok(file)
}

/// Copies what follows the first `complete` bytes to the first free `<path>.torn-N`.
fn keep_aside(path: &Path, mut torn: &File, complete: u64) -> io::Result<PathBuf> {
    let mut number = 1_u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".torn-{number}"));
        let aside = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&aside) {
            Ok(mut file) => {
                torn.seek(SeekFrom::Start(complete))?;
                io::copy(&mut torn, &mut file)?;
                file.sync_all()?;
                sync_folder(folder(path))?;
                return Ok(aside);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number = number.checked_add(1).ok_or(error)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Puts a file in the place of another, synced.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    sync_folder(folder(path))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Makes a new name in the folder durable.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Folders cannot be opened and synced here; the file system's own journal has to do.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn same_file(ours: &std::fs::Metadata, theirs: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    ours.dev() == theirs.dev() && ours.ino() == theirs.ino()
}

#[cfg(not(unix))]
fn same_file(ours: &std::fs::Metadata, theirs: &std::fs::Metadata) -> bool {
    ours.len() == theirs.len()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::store::conformance::{self, Place, record};

    struct Folder(TempDir);

    impl Folder {
        fn new() -> Self {
            Self(TempDir::new().unwrap())
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("made").join("history.dat")
        }
    }

    #[async_trait]
    impl Place for Folder {
        async fn open(&self) -> Result<Box<dyn HistoryStore>, Error> {
            Ok(Box::new(FileHistoryStore::open(self.path())?))
        }

        async fn crash_in_append(&self, records: &[HistoryRecord], kept: usize) -> Option<usize> {
            let mut bytes = Vec::new();
            encode(records, &mut bytes);
            let mut file = OpenOptions::new().append(true).open(self.path()).unwrap();
            file.write_all(&bytes[..kept.min(bytes.len())]).unwrap();
            Some(bytes.len())
        }

        async fn damage(&self, number: u64) {
            let text = fs::read_to_string(self.path()).unwrap();
            let lines = (1..).zip(text.lines());
            let damaged: String = lines
                .map(|(line, text)| if line == number { "{\n".into() } else { format!("{text}\n") })
                .collect();
            fs::write(self.path(), damaged).unwrap();
        }
    }

    #[tokio::test]
    async fn the_file_store_keeps_the_contract() {
        conformance::run(&|| Box::new(Folder::new())).await;
    }

    #[tokio::test]
    async fn a_torn_last_line_is_kept_aside_and_cut_off() {
        let place = Folder::new();
        let store = place.open().await.unwrap();
        store.append(&[record(1)]).await.unwrap();
        store.append(&[record(2)]).await.unwrap();
        drop(store);
        for number in 1..=2 {
            let whole = fs::read(place.path()).unwrap();
            let first = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            fs::write(place.path(), &whole[..whole.len() - 5]).unwrap();
            let store = place.open().await.unwrap();
            assert_eq!(store.load().await.unwrap(), [record(1)]);
            assert_eq!(fs::read(place.path()).unwrap(), whole[..first]);
            let aside = place.0.path().join("made").join(format!("history.dat.torn-{number}"));
            assert_eq!(fs::read(aside).unwrap(), whole[first..whole.len() - 5]);
            store.append(&[record(2)]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn reading_beside_a_writer_repairs_and_creates_nothing() {
        let place = Folder::new();
        let reader = FileHistoryStore::open_read_only(place.path());
        assert!(!reader.exists().await.unwrap());
        assert!(!place.path().exists());
        let writer = place.open().await.unwrap();
        writer.append(&[record(1)]).await.unwrap();
        place.crash_in_append(&[record(2)], 20).await;
        let before = fs::read(place.path()).unwrap();
        assert_eq!(reader.load().await.unwrap(), [record(1)]);
        assert!(matches!(reader.append(&[record(3)]).await, Err(Error::ReadOnly { .. })));
        assert_eq!(fs::read(place.path()).unwrap(), before);
    }

    #[tokio::test]
    async fn a_file_that_somebody_changed_or_replaced_is_not_written() {
        let place = Folder::new();
        let store = place.open().await.unwrap();
        store.append(&[record(1)]).await.unwrap();
        place.crash_in_append(&[record(2)], usize::MAX).await;
        assert!(matches!(store.append(&[record(3)]).await, Err(Error::Fenced { .. })));
        drop(store);

        let store = place.open().await.unwrap();
        let moved = place.0.path().join("moved");
        fs::rename(place.path(), &moved).unwrap();
        assert!(matches!(store.append(&[record(3)]).await, Err(Error::Fenced { .. })));
        fs::copy(&moved, place.path()).unwrap();
        assert!(matches!(store.append(&[record(3)]).await, Err(Error::Fenced { .. })));
    }

    #[tokio::test]
    async fn a_file_without_a_last_newline_is_continued_on_a_new_line() {
        let place = Folder::new();
        place.open().await.unwrap().append(&[record(1)]).await.unwrap();
        let text = fs::read_to_string(place.path()).unwrap();
        fs::write(place.path(), text.trim_end()).unwrap();
        let store = place.open().await.unwrap();
        store.append(&[record(2)]).await.unwrap();
        assert_eq!(store.load().await.unwrap(), [record(1), record(2)]);
    }

    #[tokio::test]
    async fn an_append_that_cannot_be_taken_back_may_have_happened() {
        let place = Folder::new();
        drop(place.open().await.unwrap());
        let extent = Extent { complete: 0, at_line_start: true, any: false };
        let writer = Writer { file: File::open(place.path()).unwrap(), extent, unknown: false };
        let store =
            FileHistoryStore { path: place.path(), access: Access::Write(Mutex::new(writer)) };
        let error = store.append(&[record(1)]).await.unwrap_err();
        assert!(error.may_have_happened(), "{error}");
        assert!(error.to_string().contains("may have happened"), "{error}");
        assert!(matches!(store.append(&[record(1)]).await, Err(Error::Unknown { .. })));
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_opened_is_a_setting_to_change() {
        let folder = TempDir::new().unwrap();
        let error = FileHistoryStore::open(folder.path()).unwrap_err();
        assert_eq!(error.class(), crate::error::ErrorClass::Config, "{error}");
        assert!(error.to_string().starts_with(&folder.path().display().to_string()), "{error}");
    }
}
