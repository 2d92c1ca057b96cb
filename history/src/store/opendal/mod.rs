//! A history in numbered objects, in RisingWave's layout, on any service of OpenDAL that can create an object only if it
//! is not there.
//!
//! ```text
//! <folder>/schema_history_1.dat     one record per line, a newline after each
//! <folder>/schema_history_2.dat
//! …                                 n: decimal, no padding when written; gaps are legal
//! ```
//!
//! Objects are read by number, and their lines in order. An append writes one new object, the number after the highest,
//! and nothing that is there is ever read again, rewritten or removed for it: the thousandth append costs what the first
//! did. (RisingWave rewrites its last object with one more line, up to 2,048 lines of it. What it wrote is read, and what
//! is written here it reads, as it does a history whose objects it filled with a limit of one append each.)
//!
//! A checkpoint is in the object `holdfast-checkpoint`, which is rewritten.
//!
//! The folder alone is looked at, so that `source-16` does not see the objects of `source-160`, which RisingWave's own
//! listing by prefix gives it.
//!
//! Two writers have the same next number, and the service lets one of them create it. The other reads what is there: its
//! own bytes are its own append, whose answer was lost; other bytes mean that it is fenced. A service that overwrites
//! instead is found out when the store is opened for writing, with an object called `holdfast-probe`, and is refused:
//! nothing could tell two writers apart there. RisingWave itself overwrites, so it must not run on the same folder at the
//! same time.

mod url;

pub use url::{ObjectUrl, S3Credentials, UrlError};

use std::fs::{self, OpenOptions};
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use opendal::{Buffer, EntryMode, ErrorKind, Operator};
use tokio::sync::Mutex;

use super::file::{replace, sync_folder};
use super::lines::{encode_alone, fingerprint, visit_lines};
use super::{Checkpoints, HistoryStore, Place, Visit};
use crate::codec::RecordLine;
use crate::error::{Error, Written};
use crate::record::HistoryRecord;

/// How many objects are asked for at the same time, and how many bytes of them are held.
const READ_AHEAD: (usize, u64) = (16, 32 << 20);
/// No object of a history is larger.
const MAX_OBJECT_BYTES: u64 = 1 << 30;
/// Shows that the service creates an object only if it is not there. Not a `.dat`: RisingWave passes over it.
const PROBE: &str = "holdfast-probe";
/// Where the checkpoint is. Not a `.dat` either.
const CHECKPOINT: &str = "holdfast-checkpoint";
const PROBE_TEXT: &[u8] =
    b"Holdfast writes this twice, to see that the second time is refused. It may be removed.\n";

/// Numbered objects of history records.
#[derive(Debug)]
pub struct OpendalHistoryStore {
    operator: Operator,
    /// With a slash at its end; empty for the top.
    folder: String,
    location: String,
    /// Where `operator` begins, when it is a folder of this machine.
    local: Option<PathBuf>,
    /// `None` when opened for reading.
    writer: Option<Mutex<Writer>>,
}

#[derive(Debug)]
struct Writer {
    /// The number of the next object.
    next: u64,
    /// Whether an append was given up before its outcome was known.
    unknown: bool,
}

/// One object of the history.
#[derive(Debug)]
struct Object {
    number: u64,
    path: String,
    /// As the listing has it; 0 where it has none.
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Created {
    Yes,
    /// Another object has the name.
    Exists,
}

impl OpendalHistoryStore {
    /// Opens the history in `folder` of `operator` for reading and appending. Nothing is created but the probe.
    ///
    /// # Errors
    ///
    /// [`Error::NoFence`] when the service overwrites objects that are there; [`Error::Read`] when it can't be asked.
    pub async fn open(operator: Operator, folder: &str) -> Result<Self, Error> {
        let mut store = Self::open_read_only(operator, folder);
        store.probe().await?;
        let last = store.list().await?.last().map_or(0, |object| object.number);
        let next = last.checked_add(1).ok_or_else(|| Error::Read {
            location: store.location.clone(),
            action: "append to",
            source: io::Error::new(io::ErrorKind::InvalidData, "no number is left for an object"),
        })?;
        store.writer = Some(Mutex::new(Writer { next, unknown: false }));
        Ok(store)
    }

    /// Takes the history in `folder` of `operator` for reading only: a writer may be at work beside it.
    #[must_use]
    pub fn open_read_only(operator: Operator, folder: &str) -> Self {
        let folder = folder.trim_matches('/');
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let info = operator.info();
        let root = info.root();
        let local = (info.scheme() == "fs").then(|| PathBuf::from(&root));
        let (scheme, host) = match &local {
            Some(_) => ("file", String::new()),
            None => (info.scheme(), info.name()),
        };
        let location = format!(
            "{scheme}://{host}/{}",
            format!("{root}/{folder}").trim_start_matches('/').replace("//", "/")
        );
        Self { operator, folder, location, local, writer: None }
    }

    /// As [`Self::open`], at a URL.
    ///
    /// # Errors
    ///
    /// As [`Self::open`]; [`Error::Read`] when the URL lacks a setting.
    pub async fn open_url(url: &ObjectUrl) -> Result<Self, Error> {
        Self::open(operator(url)?, url.path()).await
    }

    /// As [`Self::open_read_only`], at a URL.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the URL lacks a setting.
    pub fn open_url_read_only(url: &ObjectUrl) -> Result<Self, Error> {
        Ok(Self::open_read_only(operator(url)?, url.path()))
    }

    /// Where one object is, for messages.
    fn location_of(&self, path: &str) -> String {
        format!("{}{}", self.location, path.strip_prefix(&self.folder).unwrap_or(path))
    }

    fn failed(&self, path: &str, action: &'static str) -> impl FnOnce(io::Error) -> Error + use<> {
        let location = self.location_of(path);
        move |source| Error::Read { location, action, source }
    }

    /// Finds out whether the service refuses to create what is there.
    async fn probe(&self) -> Result<(), Error> {
        let refused = || Error::NoFence { location: self.location.clone() };
        if !self.operator.info().capability().write_with_if_not_exists {
            return Err(refused());
        }
        let path = format!("{}{PROBE}", self.folder);
        for _ in 0..2 {
            match self.create(&path, PROBE_TEXT).await {
                Ok(Created::Exists) => return Ok(()),
                Ok(Created::Yes) => {}
                Err(error) => return Err(self.failed(&path, "open")(error)),
            }
        }
        Err(refused())
    }

    /// The objects of the history, in their order.
    async fn list(&self) -> Result<Vec<Object>, Error> {
        let failed =
            |source| Error::Read { location: self.location.clone(), action: "list", source };
        if let Some(root) = &self.local {
            // OpenDAL lists what is no folder as an empty one.
            match fs::metadata(root.join(&self.folder)) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => return Err(failed(io::Error::from(io::ErrorKind::NotADirectory))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(failed(error)),
            }
        }
        let entries = self.operator.list(&self.folder).await.map_err(io_error).map_err(failed)?;
        let mut objects = Vec::new();
        for entry in entries {
            let (path, metadata) = entry.into_parts();
            let name = path.strip_prefix(&self.folder).filter(|name| !name.contains('/'));
            let Some(name) = name.filter(|_| metadata.mode() != EntryMode::DIR) else { continue };
            let Some(digits) = digits(name) else { continue };
            let number = digits.parse().map_err(|_| {
                let what = format!("the number of {name} is too large");
                failed(io::Error::new(io::ErrorKind::InvalidData, what))
            })?;
            objects.push(Object { number, path, bytes: metadata.content_length() });
        }
        objects.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
        Ok(objects)
    }

    /// The first of `.damaged-1`, `.damaged-2` and so on that no object's name ends in.
    async fn free_suffix(&self) -> Result<String, Error> {
        let failed =
            |source| Error::Read { location: self.location.clone(), action: "list", source };
        let entries = self.operator.list(&self.folder).await.map_err(io_error).map_err(failed)?;
        let mut number = 1_u32;
        loop {
            let suffix = format!(".damaged-{number}");
            if !entries.iter().any(|entry| entry.path().ends_with(&suffix)) {
                return Ok(suffix);
            }
            number = number.saturating_add(1);
        }
    }

    fn size(&self, object: &Object) -> Result<u64, Error> {
        let Some(root) = &self.local else { return Ok(object.bytes) };
        let metadata = fs::metadata(root.join(&object.path));
        Ok(metadata.map_err(self.failed(&object.path, "look at"))?.len())
    }

    async fn get(&self, object: &Object) -> Result<Buffer, Error> {
        let failed = || self.failed(&object.path, "read");
        let bytes = self.size(object)?;
        if bytes > MAX_OBJECT_BYTES {
            let what = format!("it has {bytes} bytes, which is no object of a history");
            return Err(failed()(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        self.operator.read(&object.path).await.map_err(io_error).map_err(failed())
    }

    /// Reads objects in their order; of the one that `start` is in, what follows it.
    async fn read_objects(
        &self,
        objects: &[Object],
        start: Place,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let mut rest = objects;
        while !rest.is_empty() {
            let (ahead, later) = rest.split_at(ahead(rest));
            rest = later;
            let contents = join(ahead.iter().map(|object| self.get(object)).collect()).await;
            for (object, content) in pairs(ahead, contents) {
                let location = self.location_of(&object.path);
                let begin = Place { object: object.number, ..Place::default() };
                let begin = if object.number == start.object { start } else { begin };
                let bytes = content?.to_bytes();
                let at = usize::try_from(begin.end).unwrap_or(usize::MAX);
                visit_lines(bytes.get(at..).unwrap_or_default(), begin, &location, visit)?;
            }
        }
        Ok(())
    }

    /// Creates an object, as a whole and durably, unless it is there.
    async fn create(&self, path: &str, bytes: &[u8]) -> io::Result<Created> {
        if let Some(root) = &self.local {
            return create_file(&root.join(path), bytes);
        }
        let body = Buffer::from(bytes.to_vec());
        match self.operator.write_with(path, body).if_not_exists(true).await {
            Ok(_) => Ok(Created::Yes),
            Err(error) if error.kind() == ErrorKind::ConditionNotMatch => Ok(Created::Exists),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Appends as object `number`; whatever happened on the way, what the service has in the end decides.
    async fn append_as(&self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        let path = format!("{}schema_history_{number}.dat", self.folder);
        let created = self.create(&path, bytes).await;
        if matches!(created, Ok(Created::Yes)) {
            return Ok(());
        }
        let location = self.location_of(&path);
        match (self.operator.read(&path).await, created) {
            (Ok(found), _) if found.to_bytes() == bytes => {
                tracing::warn!(object = %location, "the answer to an append was lost; the append is there");
                Ok(())
            }
            (Ok(_), _) => Err(Error::Fenced { location }),
            (Err(_), Err(source)) => {
                Err(Error::Write { location, written: Written::Maybe, source })
            }
            (Err(error), Ok(_)) => {
                let source = io_error(error);
                Err(Error::Write { location, written: Written::Maybe, source })
            }
        }
    }
}

#[async_trait]
impl HistoryStore for OpendalHistoryStore {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        self.read_objects(&self.list().await?, Place::default(), visit).await
    }

    async fn append(&self, records: &[HistoryRecord]) -> Result<(), Error> {
        let Some(writer) = &self.writer else {
            return Err(Error::ReadOnly { location: self.location() });
        };
        if records.is_empty() {
            return Ok(());
        }
        let mut writer = writer.lock().await;
        if writer.unknown {
            return Err(Error::Unknown { location: self.location() });
        }
        let mut bytes = Vec::new();
        encode_alone(records, &mut bytes);
        // Also when this future is dropped.
        writer.unknown = true;
        let appended = self.append_as(writer.next, &bytes).await;
        writer.unknown = appended.as_ref().is_err_and(Error::may_have_happened);
        if appended.is_ok() {
            writer.next = writer.next.saturating_add(1);
        }
        appended
    }

    async fn exists(&self) -> Result<bool, Error> {
        for object in self.list().await? {
            let content = self.get(&object).await?;
            if content.to_bytes().iter().any(|byte| !matches!(byte, b'\n' | b'\r')) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn set_aside(&self) -> Result<String, Error> {
        let Some(writer) = &self.writer else {
            return Err(Error::ReadOnly { location: self.location() });
        };
        let mut writer = writer.lock().await;
        let objects = self.list().await?;
        if let Some(other) = objects.iter().find(|object| object.number >= writer.next) {
            return Err(Error::Fenced { location: self.location_of(&other.path) });
        }
        let suffix = self.free_suffix().await?;
        let mut readable = Vec::new();
        let mut damaged = Vec::new();
        for object in &objects {
            let content = self.get(object).await?.to_bytes();
            let aside = format!("{}{suffix}", object.path);
            let failed = |source| Error::Write {
                location: self.location_of(&aside),
                written: Written::No,
                source,
            };
            if self.create(&aside, &content).await.map_err(failed)? == Created::Exists {
                return Err(Error::Fenced { location: self.location_of(&aside) });
            }
            let mut parse = |_: u64, record: &RecordLine<'_>| match record.to_record() {
                Ok(_) => Ok(()),
                Err(source) => {
                    Err(Error::Damaged { location: self.location.clone(), line: 0, source })
                }
            };
            match visit_lines(&*content, Place::default(), &self.location, &mut parse) {
                Ok(()) => readable.push(object),
                Err(_) => damaged.push(object),
            }
        }
        // The damaged ones last: whatever is left after a crash is no whole history.
        for object in readable.into_iter().chain(damaged) {
            self.operator
                .delete(&object.path)
                .await
                .map_err(io_error)
                .map_err(self.failed(&object.path, "set aside"))?;
        }
        writer.unknown = false;
        Ok(format!("{}*{suffix}", self.location))
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }
}

#[async_trait]
impl Checkpoints for OpendalHistoryStore {
    async fn load_checkpoint(&self) -> Result<Option<Vec<u8>>, Error> {
        let path = format!("{}{CHECKPOINT}", self.folder);
        match self.operator.read(&path).await {
            Ok(bytes) => Ok(Some(bytes.to_vec())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed(&path, "read")(io_error(error))),
        }
    }

    async fn save_checkpoint(&self, checkpoint: &[u8]) -> Result<(), Error> {
        if self.writer.is_none() {
            return Err(Error::ReadOnly { location: self.location() });
        }
        let path = format!("{}{CHECKPOINT}", self.folder);
        let saved = match &self.local {
            Some(root) => replace(&root.join(&path), checkpoint),
            None => {
                let body = Buffer::from(checkpoint.to_vec());
                self.operator.write(&path, body).await.map(drop).map_err(io_error)
            }
        };
        saved.map_err(self.failed(&path, "keep a checkpoint of"))
    }

    /// The names and sizes of the objects before that of the place, and what that one has up to there.
    async fn fingerprint(&self, place: Place) -> Result<Option<String>, Error> {
        let objects = self.list().await?;
        let count = objects.partition_point(|object| object.number <= place.object);
        let before = objects.get(..count).unwrap_or_default();
        let Some((last, before)) = before.split_last() else { return Ok(None) };
        // Two objects of one number are an order that nobody has made.
        if last.number != place.object || before.last().is_some_and(|one| one.number == last.number)
        {
            return Ok(None);
        }
        let mut names = crc32fast::Hasher::new();
        for object in before {
            names.update(format!("{} {}\n", object.path, self.size(object)?).as_bytes());
        }
        let content = self.get(last).await?.to_bytes();
        let found = fingerprint(io::Cursor::new(&*content), place.end)
            .map_err(self.failed(&last.path, "read"))?;
        Ok(found.map(|found| format!("{count}-{:08x}-{found}", names.finalize())))
    }

    async fn read_after(&self, place: Place, visit: &mut Visit<'_>) -> Result<(), Error> {
        let objects = self.list().await?;
        let from = objects.partition_point(|object| object.number < place.object);
        self.read_objects(objects.get(from..).unwrap_or_default(), place, visit).await
    }
}

fn operator(url: &ObjectUrl) -> Result<Operator, Error> {
    url.operator().map_err(|source| Error::Read {
        location: url.to_string(),
        action: "open",
        source,
    })
}

/// The number in the name of an object of a history: it ends in `.dat`, and holds `schema_history_<digits>.dat`.
fn digits(name: &str) -> Option<&str> {
    const START: &str = "schema_history_";
    if !name.ends_with(".dat") {
        return None;
    }
    name.match_indices(START).find_map(|(at, _)| {
        let rest = name.get(at + START.len()..)?;
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = rest.split_at_checked(end)?;
        (!digits.is_empty() && rest.starts_with(".dat")).then_some(digits)
    })
}

/// How many of the next objects to ask for at once, 1 and more.
fn ahead(objects: &[Object]) -> usize {
    let (most, bytes) = READ_AHEAD;
    let mut sum = 0_u64;
    let fit = objects.iter().take(most).take_while(|object| {
        sum = sum.saturating_add(object.bytes);
        sum <= bytes
    });
    fit.count().clamp(1, objects.len().max(1))
}

/// Objects and what was got for each, in order.
fn pairs<T>(objects: &[Object], got: Vec<T>) -> impl Iterator<Item = (&Object, T)> {
    debug_assert_eq!(objects.len(), got.len());
    let mut objects = objects.iter();
    got.into_iter().map_while(move |got| Some((objects.next()?, got)))
}

/// Runs futures at the same time, and gives their results in their order.
async fn join<F: Future + Send>(futures: Vec<F>) -> Vec<F::Output>
where
    F::Output: Send,
{
    enum Slot<F: Future> {
        Running(Pin<Box<F>>),
        Done(F::Output),
    }
    // The results are moved out at the end, and are never looked at through a pin.
    impl<F: Future> Unpin for Slot<F> {}
    let mut slots: Vec<Slot<F>> =
        futures.into_iter().map(|future| Slot::Running(Box::pin(future))).collect();
    poll_fn(move |context| {
        let mut running = false;
        for slot in &mut slots {
            if let Slot::Running(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *slot = Slot::Done(done),
                    Poll::Pending => running = true,
                }
            }
        }
        if running {
            return Poll::Pending;
        }
        let done = std::mem::take(&mut slots).into_iter().filter_map(|slot| match slot {
            Slot::Done(done) => Some(done),
            Slot::Running(_) => None,
        });
        Poll::Ready(done.collect())
    })
    .await
}

/// Creates a file as a whole, synced, unless it is there. OpenDAL's own ways are a file that grows under its name, and
/// a rename that overwrites; a link does neither.
fn create_file(path: &Path, bytes: &[u8]) -> io::Result<Created> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut temporary = path.as_os_str().to_owned();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{count}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    let linked = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&temporary, path));
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Created::Exists),
        Err(error) => return Err(error),
    }
    removed?;
    sync_folder(folder)?;
    Ok(Created::Yes)
}

/// OpenDAL's error as that of this crate's [`Error`], with a kind that tells what can be changed from what may pass.
fn io_error(error: opendal::Error) -> io::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::IsADirectory => io::ErrorKind::IsADirectory,
        ErrorKind::NotADirectory => io::ErrorKind::NotADirectory,
        ErrorKind::ConfigInvalid | ErrorKind::Unsupported => io::ErrorKind::Unsupported,
        ErrorKind::Unexpected
        | ErrorKind::AlreadyExists
        | ErrorKind::RateLimited
        | ErrorKind::IsSameFile
        | ErrorKind::ConditionNotMatch
        | ErrorKind::RangeNotSatisfied
        | ErrorKind::Conflict
        | _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests;
