//! The error of this crate, and what a caller can do about it.

use std::io;

use crate::codec::RecordError;
use crate::ddl::DdlError;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The same call may succeed later.
    Transient,
    /// The log no longer has what was asked for: recovery.
    Purged,
    /// These bytes will not decode, now or later.
    Data,
    /// A setting, a path or a permission is wrong; somebody has to change it.
    Config,
    /// Another writer owns the store; this one must stop.
    Fenced,
    /// This crate contradicts itself.
    Bug,
}

/// Whether a write that failed may have happened all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Nothing of it is in the store.
    No,
    /// It may be there: read the store before anything that must not happen twice.
    Maybe,
}

/// Why a history could not be read, written or replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A line of the history is no record. Nothing after it was read, and it is never taken for an empty history.
    #[error("{location}, line {line}: history record cannot be read")]
    Damaged {
        /// The store, and the file or object in it.
        location: String,
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A statement of the history cannot be applied to the tables before it.
    #[error(
        "history record {record} ({file}:{position}): its statement cannot be applied; rebuild the history with a \
         refresh, or leave such statements out with schema.history.internal.skip.unparseable.ddl=true"
    )]
    Statement {
        /// Number of the record in storage order, from 1.
        record: usize,
        /// Binlog file of its position.
        file: String,
        /// Its position, bytes from the start of the file.
        position: u64,
        /// What is wrong.
        source: Box<DdlError>,
    },
    /// The store could not be opened or read.
    #[error("{location}: cannot {action} the schema history")]
    Read {
        /// The store, and the file or object in it.
        location: String,
        /// What was tried, a verb.
        action: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// An append failed.
    #[error("{location}: cannot append to the schema history{}", match .written {
        Written::No => "",
        Written::Maybe => "; the append may have happened, open the store again to see",
    })]
    Write {
        /// The store, and the file or object in it.
        location: String,
        /// Whether the records may be there.
        written: Written,
        /// What the system says.
        source: io::Error,
    },
    /// An earlier append failed halfway, and what it left is not known.
    #[error("{location}: an earlier append failed halfway; open the schema history again")]
    Unknown {
        /// The store, and the file or object in it.
        location: String,
    },
    /// Another writer has the store open.
    #[error(
        "{location}: another process or engine has this schema history open for writing; stop it first"
    )]
    InUse {
        /// The store, and the file or object in it.
        location: String,
    },
    /// Another writer changed the store under this one.
    #[error("{location}: the schema history was changed by somebody else while it was open here")]
    Fenced {
        /// The store, and the file or object in it.
        location: String,
    },
    /// The storage overwrites what is there, so that two writers could not be told apart.
    #[error(
        "{location}: this storage does not refuse to overwrite an object (If-None-Match: *), so a second writer could \
         not be told; keep the schema history elsewhere"
    )]
    NoFence {
        /// The store.
        location: String,
    },
    /// The store can't rename what is there.
    #[error(
        "{location}: this schema history can't be set aside from here; rename it by hand (RENAME TABLE), and try again"
    )]
    NotSetAside {
        /// The store.
        location: String,
    },
    /// The store was opened for reading.
    #[error("{location}: the schema history was opened for reading only")]
    ReadOnly {
        /// The store, and the file or object in it.
        location: String,
    },
}

impl Error {
    /// What a caller can do about it.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Damaged { .. } | Self::Statement { .. } => ErrorClass::Data,
            Self::Read { source, .. } | Self::Write { source, .. } => io_class(source.kind()),
            Self::Unknown { .. } => ErrorClass::Transient,
            Self::InUse { .. } | Self::Fenced { .. } => ErrorClass::Fenced,
            Self::NoFence { .. } | Self::NotSetAside { .. } => ErrorClass::Config,
            Self::ReadOnly { .. } => ErrorClass::Bug,
        }
    }

    /// Whether a write that returned this error may have happened all the same.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Write { written: Written::Maybe, .. })
    }
}

const fn io_class(kind: io::ErrorKind) -> ErrorClass {
    use io::ErrorKind;
    if matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::InvalidFilename
            | ErrorKind::Unsupported
    ) {
        ErrorClass::Config
    } else {
        ErrorClass::Transient
    }
}
