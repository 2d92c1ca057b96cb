//! The error of this crate, and what a caller can do about it.

use std::fmt;
use std::io;

use crate::event::EventType;
use crate::row::RowError;
use crate::wire::DecodeError;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The same call may succeed later: a connection broke, a read failed.
    Transient,
    /// The server no longer has the position that was asked for; it will not come back.
    Purged,
    /// These bytes will not decode, now or later.
    Data,
    /// The request or a setting is wrong; somebody has to change it.
    Config,
    /// This crate contradicts itself.
    Bug,
}

/// Which event an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventContext {
    /// Name of the binlog file.
    pub file: String,
    /// Offset of the event in the file, bytes; for an event inside a compressed transaction, that of the payload event.
    pub position: u64,
    /// Type of the event, as far as its header could be read.
    pub event_type: Option<EventType>,
    /// `server_id` of the event's origin; 0 when the header could not be read.
    pub server_id: u32,
    /// Offset behind the event, bytes, where its header, size and checksum are right, so that its content alone is wrong;
    /// for an event inside a compressed transaction, that of the payload event. Else `None`: then not even its type is sure.
    pub end: Option<u64>,
}

impl fmt::Display for EventContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.event_type {
            Some(event_type) => write!(f, "{event_type} event ")?,
            None => f.write_str("event ")?,
        }
        write!(f, "at {}:{}", self.file, self.position)
    }
}

/// Why reading a binlog stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An event's bytes do not follow its format.
    #[error("{at} can't be decoded")]
    Decode {
        /// The event.
        at: Box<EventContext>,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// An event's checksum does not fit its bytes: they were damaged on disk or on the way.
    #[error("{at} is damaged: its checksum is {stored:08x}, its bytes give {computed:08x}")]
    Checksum {
        /// The event.
        at: Box<EventContext>,
        /// The checksum at the end of the event.
        stored: u32,
        /// The checksum of the bytes before it.
        computed: u32,
    },
    /// An event before the format description that says how to read it. A stream begins with one.
    #[error("{at} comes before the format description of its file")]
    NoFormatDescription {
        /// The event.
        at: Box<EventContext>,
    },
    /// An event of a type that this version doesn't know and that may not be skipped.
    #[error("{at} is of a type that this version doesn't know, and it may not be skipped")]
    UnknownEvent {
        /// The event.
        at: Box<EventContext>,
    },
    /// A rows event whose table map was not seen. Reading began inside a transaction, or the log is damaged.
    #[error(
        "{at} is for table id {table_id}, which no table map introduced; read from the start of the transaction"
    )]
    UnknownTable {
        /// The event.
        at: Box<EventContext>,
        /// The table id in the rows event.
        table_id: u64,
    },
    /// An event or file format that this version does not decode.
    #[error("{at} can't be decoded: {what} is not supported")]
    Unsupported {
        /// The event, or the first one of the file.
        at: Box<EventContext>,
        /// What was met.
        what: &'static str,
    },
    /// A size that the log declares is above a limit of the reader.
    #[error("{at}: {what} is {size} bytes, above the limit of {limit}")]
    TooLarge {
        /// The event.
        at: Box<EventContext>,
        /// What is too large.
        what: &'static str,
        /// The size declared or reached, bytes.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// The payload of a compressed transaction can't be decompressed.
    #[error("{at} can't be decompressed")]
    Decompress {
        /// The event.
        at: Box<EventContext>,
        /// What the decompressor says.
        source: io::Error,
    },
    /// A large compressed transaction can't be read back from the temporary file that it was put in.
    #[error("{at} can't be read from its temporary file")]
    Spill {
        /// The event.
        at: Box<EventContext>,
        /// What the system says.
        source: io::Error,
    },
    /// A row can't be decoded.
    #[error("{at} for table {table} can't be decoded")]
    Row {
        /// The rows event.
        at: Box<EventContext>,
        /// `database.table` of the table map.
        table: String,
        /// The row and the column in it, and what is wrong.
        source: RowError,
    },
    /// A file that does not begin as a binlog does.
    #[error("{file} is not a binlog: {found}")]
    NotABinlog {
        /// Name of the file.
        file: String,
        /// What it is instead, as far as the first bytes tell.
        found: &'static str,
    },
    /// A file ends inside an event: it is still being written, or it was cut off.
    #[error(
        "{file} ends inside the event at {position}: {needed} bytes are needed, {left} are left"
    )]
    TruncatedFile {
        /// Name of the file.
        file: String,
        /// Offset of the event in the file, bytes.
        position: u64,
        /// Bytes that the event, or its header, takes.
        needed: u64,
        /// Bytes that were left.
        left: u64,
    },
    /// A file could not be read.
    #[error("can't read {file} at {position}")]
    Io {
        /// Name of the file.
        file: String,
        /// Offset in the file, bytes.
        position: u64,
        /// What the system says.
        source: io::Error,
    },
    /// The replication connection failed, or the server refused something.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Client(#[from] crate::client::ClientError),
}

impl Error {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Decode { .. }
            | Self::Checksum { .. }
            | Self::NoFormatDescription { .. }
            | Self::UnknownEvent { .. }
            | Self::UnknownTable { .. }
            | Self::Unsupported { .. }
            | Self::Decompress { .. }
            | Self::Row { .. }
            | Self::NotABinlog { .. }
            | Self::TruncatedFile { .. } => ErrorClass::Data,
            Self::TooLarge { .. } => ErrorClass::Config,
            Self::Io { source, .. } if is_config(source.kind()) => ErrorClass::Config,
            Self::Io { .. } | Self::Spill { .. } => ErrorClass::Transient,
            #[cfg(feature = "client")]
            Self::Client(error) => error.class(),
        }
    }

    /// Where the log goes on behind a rows event of which the content alone can't be decoded: who can do without its rows
    /// may. `None` for every other error. Events of other types say what transactions and definitions are, and of a damaged
    /// one nobody knows what it was.
    #[must_use]
    pub fn end_of_rows(&self) -> Option<u64> {
        let at = match self {
            Self::Decode { at, .. }
            | Self::UnknownTable { at, .. }
            | Self::Unsupported { at, .. }
            | Self::TooLarge { at, .. }
            | Self::Decompress { at, .. }
            | Self::Row { at, .. } => at,
            Self::Checksum { .. }
            | Self::NoFormatDescription { .. }
            | Self::UnknownEvent { .. }
            | Self::Spill { .. }
            | Self::NotABinlog { .. }
            | Self::TruncatedFile { .. }
            | Self::Io { .. } => return None,
            #[cfg(feature = "client")]
            Self::Client(_) => return None,
        };
        at.end.filter(|_| at.event_type.is_some_and(EventType::is_rows))
    }

    /// The event that the error is about, where there is one.
    #[must_use]
    pub fn event(&self) -> Option<&EventContext> {
        match self {
            Self::Decode { at, .. }
            | Self::Checksum { at, .. }
            | Self::NoFormatDescription { at }
            | Self::UnknownEvent { at }
            | Self::UnknownTable { at, .. }
            | Self::Unsupported { at, .. }
            | Self::TooLarge { at, .. }
            | Self::Decompress { at, .. }
            | Self::Spill { at, .. }
            | Self::Row { at, .. } => Some(at),
            Self::NotABinlog { .. } | Self::TruncatedFile { .. } | Self::Io { .. } => None,
            #[cfg(feature = "client")]
            Self::Client(_) => None,
        }
    }
}

/// Whether somebody has to change a path or a right before the same call can succeed.
fn is_config(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as K;

    [K::NotFound, K::PermissionDenied, K::IsADirectory, K::NotADirectory].contains(&kind)
}
