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

mod checkpoint;
mod create;
mod objects;
mod url;

pub use url::{ObjectUrl, S3Credentials, UrlError};

use std::io;
use std::path::PathBuf;

use async_trait::async_trait;
use opendal::{Buffer, ErrorKind, Operator};
use tokio::sync::Mutex;

use self::create::{Created, create_file};
use super::lines::{encode_alone, visit_lines};
use super::{Checkpoints, HistoryStore, Place, Visit};
use crate::codec::RecordLine;
use crate::error::{Error, Written};
use crate::record::HistoryRecord;

/// Shows that the service creates an object only if it is not there. Not a `.dat`: RisingWave passes over it.
const PROBE: &str = "holdfast-probe";
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

fn operator(url: &ObjectUrl) -> Result<Operator, Error> {
    url.operator().map_err(|source| Error::Read {
        location: url.to_string(),
        action: "open",
        source,
    })
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
