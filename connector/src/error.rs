//! Everything that can end an engine.

use std::fmt;

use holdfast_binlog::wire::DecodeError;
use holdfast_history::ddl::DdlError;
use holdfast_history::{ShapeMismatch, TableId};

use crate::config::ConfigErrors;
use crate::convert::ConvertError;
use crate::offset::OffsetMemberError;
use crate::offset_store::OffsetStoreError;

/// Why an engine did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is not usable.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The server is not set up for change data capture.
    #[error("the server at {endpoint} can't be captured: {what}; {fix}")]
    Server {
        /// Its host and port.
        endpoint: String,
        /// What is in the way.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// Settings and stored state do not go together.
    #[error("{0}")]
    Start(String),
    /// The log could not be read or decoded.
    #[error(transparent)]
    Binlog(#[from] holdfast_binlog::Error),
    /// The replication connection could not be made, or ended.
    #[error(transparent)]
    Dump(#[from] Box<DumpFailure>),
    /// The schema history could not be read or written.
    #[error(transparent)]
    History(#[from] holdfast_history::Error),
    /// The live server could not be read.
    #[error(transparent)]
    Snapshot(Box<holdfast_snapshot::Error>),
    /// The offset could not be read or written.
    #[error(transparent)]
    OffsetStore(#[from] OffsetStoreError),
    /// The stored offset does not fit the server.
    #[error(transparent)]
    OffsetMember(#[from] OffsetMemberError),
    /// The place that the offset names is no longer on the server, or never was.
    #[error("{what}: {detail}")]
    PositionLost {
        /// What is missing.
        what: String,
        /// What was looked for, what is there, and what to do.
        detail: String,
    },
    /// A guard of an operation said no; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// A statement that changes the schema could not be understood.
    #[error(transparent)]
    Ddl(#[from] Box<DdlFailure>),
    /// A row came of a captured table whose definition is not known.
    #[error(
        "Encountered change event for table {table} whose schema isn't known to this connector, in {file} at \
         {position}; the schema history lacks its definition, as it does \
         when the user had no right to SELECT from the table at the time of the snapshot; rebuild it at the stored offset \
         with `holdfast refresh --config FILE --table {table}`"
    )]
    UnknownTable {
        /// The table.
        table: TableId,
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
    },
    /// Definitions come from the log, and it does not tell one.
    #[error(
        "the log does not say what the columns of {table} are, before its rows in {file} at {position}, and the schema \
         history has no definition that fits: they were written with binlog_row_metadata other than FULL; with \
         holdfast.schema.source=metadata, set it to FULL and begin behind such rows, or rebuild the schema history with \
         `holdfast refresh --config FILE --table {table}`"
    )]
    NoMetadata {
        /// The table.
        table: TableId,
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
    },
    /// A row does not fit the definition that the history gives.
    #[error(transparent)]
    Mismatch(#[from] Box<Mismatch>),
    /// A row image does not hold all columns.
    #[error(
        "a row of {table} in {file} at {position} lacks column {column}: the session wrote with binlog_row_image other \
         than FULL; set binlog_row_image=FULL for all sessions. If it is a generated column of MariaDB 11.8, the schema \
         history does not say so: `holdfast refresh --config FILE --table {table}`"
    )]
    PartialImage {
        /// The table.
        table: TableId,
        /// The first column that is missing.
        column: String,
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
    },
    /// A row could not be read.
    #[error(transparent)]
    Row(#[from] Box<RowFailure>),
    /// A value could not be converted.
    #[error(transparent)]
    Convert(#[from] Box<ConvertFailed>),
    /// A record could not be transformed.
    #[error(
        "{failure}, in {place}; leave such records out with a predicate, or correct the options of the transform"
    )]
    Transform {
        /// Which transform, on which topic, and why.
        failure: String,
        /// File and position of the event, or the snapshot.
        place: String,
    },
    /// A change was logged as a statement, which says nothing of the rows.
    #[error(
        "{kind} on {table} was logged as a STATEMENT in {file} at {position}, so its rows are unknown; set \
         binlog_format=ROW for all sessions, or event.processing.failure.handling.mode=warn to go on without them"
    )]
    StatementChange {
        /// INSERT, UPDATE, DELETE or REPLACE.
        kind: String,
        /// The table as far as the statement tells, else the database.
        table: String,
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
    },
    /// An XA transaction was committed whose rows were logged before the place that reading began at.
    #[error(
        "the XA transaction that is committed in {file} at {position} was prepared before the place that reading began \
         at, so its rows are unknown; take a new snapshot while no transaction is prepared"
    )]
    UnknownXa {
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
    },
    /// The server lost changes before they reached the log.
    #[error(
        "the server reports lost changes in {file} at {position} ({message}): the captured tables must be read anew"
    )]
    Incident {
        /// Binlog file.
        file: String,
        /// Position of the event in bytes.
        position: u64,
        /// The server's words.
        message: String,
    },
    /// The consumer gave a group back again and again.
    #[error(
        "the record {identity} was given back {times} times; mend what consumes it, and start again: it comes again"
    )]
    Rejected {
        /// Text form of the identity of the group's first record.
        identity: String,
        /// How often.
        times: u32,
    },
    /// The server ended the stream of events: it is shutting down.
    #[error("the server ended the stream of binlog events")]
    DumpEnded,
    /// Something that cannot be.
    #[error("internal error: {0}")]
    Bug(&'static str),
}

/// A statement that could not be understood, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("the statement in {file} at {position} can't be understood: {error}; {fix}")]
pub struct DdlFailure {
    /// Binlog file.
    pub file: String,
    /// Position of the statement's event in bytes.
    pub position: u64,
    /// What could not be understood.
    pub error: DdlError,
    /// What to do about it.
    pub fix: &'static str,
}

/// Rows that do not fit their table's definition.
#[derive(Debug)]
pub struct Mismatch {
    /// The table.
    pub table: TableId,
    /// Binlog file.
    pub file: String,
    /// Position of the event in bytes.
    pub position: u64,
    /// The first column that differs.
    pub mismatch: ShapeMismatch,
    /// The columns of the log.
    pub wire: String,
    /// The columns of the definition.
    pub model: String,
    /// Where the definition is from.
    pub origin: DefinitionOrigin,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, file, position, mismatch, wire, model, origin } = self;
        let (expected, found) = mismatch.counts;
        if expected != found {
            // Debezium's words.
            write!(
                f,
                "Error processing row in {table}, internal schema size {expected}, but row size {found} , restart \
                 connector with schema recovery mode. "
            )?;
        }
        write!(
            f,
            "the rows of {table} in {file} at {position} do not fit its definition: {mismatch}. The log has columns \
             ({wire}), the definition, which is from {origin}, has ({model}): a change of the table is missing from the \
             schema history; rebuild it at the stored offset with `holdfast refresh --config FILE --table {table}`"
        )
    }
}

impl std::error::Error for Mismatch {}

/// Where a table's definition is from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionOrigin {
    /// The snapshot of this run.
    Snapshot,
    /// A record of the schema history, by its number from 1 in the order of the file.
    Record(usize),
    /// A statement that came in the log.
    Statement {
        /// Binlog file.
        file: String,
        /// Position of the statement's event in bytes.
        position: u64,
    },
    /// The schema history; which record is not known.
    Unknown,
}

impl fmt::Display for DefinitionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot => f.write_str("the snapshot"),
            Self::Record(record) => write!(f, "record {record} of the schema history"),
            Self::Statement { file, position } => {
                write!(f, "the statement in {file} at {position}")
            }
            Self::Unknown => f.write_str("the schema history"),
        }
    }
}

/// Which connection reads the log, and why it does not.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read the binary log of {endpoint} as user '{user}' with server id {server_id} (database.server.id)"
)]
pub struct DumpFailure {
    /// Host and port of the server.
    pub endpoint: String,
    /// Login name.
    pub user: String,
    /// Our id as a replica.
    pub server_id: u32,
    /// What the server or the network says.
    pub source: holdfast_binlog::Error,
}

/// A row that could not be read, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("cannot read row {row} of {table}{} in {file} at {position}: {error}", of_column(.column))]
pub struct RowFailure {
    /// The table.
    pub table: TableId,
    /// Zero-based row in its event.
    pub row: usize,
    /// The column, where it is known.
    pub column: Option<String>,
    /// Binlog file.
    pub file: String,
    /// Position of the event in bytes.
    pub position: u64,
    /// What is wrong.
    pub error: DecodeError,
}

fn of_column(column: &Option<String>) -> String {
    column.as_ref().map(|column| format!(", column {column}")).unwrap_or_default()
}

/// A row with a value that could not be converted, and where it is.
#[derive(Debug, thiserror::Error)]
#[error("cannot convert a row of {table} in {file} at {position}")]
pub struct ConvertFailed {
    /// The table.
    pub table: TableId,
    /// Binlog file, or `the snapshot`.
    pub file: String,
    /// Position of the event in bytes.
    pub position: u64,
    /// Which column, which type, and why.
    pub source: ConvertError,
}

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// The same call may succeed later.
    Transient,
    /// Settings or rights must change first.
    Config,
    /// These bytes, this statement or this history can't be decoded, however often it is tried.
    Data,
    /// The place in the log is gone.
    Purged,
    /// A newer writer owns the store.
    Fenced,
    /// A store could not be read or written.
    Storage,
    /// A defect of this program.
    Bug,
}

impl From<holdfast_snapshot::Error> for Error {
    fn from(error: holdfast_snapshot::Error) -> Self {
        Self::Snapshot(error.into())
    }
}

impl Error {
    /// What the caller can do.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_) | Self::Server { .. } | Self::Start(_) | Self::Refused(_) => {
                ErrorClass::Config
            }
            Self::Binlog(error) => class_of(error),
            Self::Dump(failure) => class_of(&failure.source),
            Self::History(error) => match error.class() {
                holdfast_history::ErrorClass::Fenced => ErrorClass::Fenced,
                holdfast_history::ErrorClass::Data => ErrorClass::Data,
                holdfast_history::ErrorClass::Transient
                | holdfast_history::ErrorClass::Purged
                | holdfast_history::ErrorClass::Config
                | holdfast_history::ErrorClass::Bug
                | _ => ErrorClass::Storage,
            },
            Self::Snapshot(error) => match error.class() {
                holdfast_snapshot::ErrorClass::Transient => ErrorClass::Transient,
                holdfast_snapshot::ErrorClass::Config => ErrorClass::Config,
                holdfast_snapshot::ErrorClass::Data => ErrorClass::Data,
            },
            Self::OffsetStore(OffsetStoreError::Io { .. }) => ErrorClass::Storage,
            Self::OffsetStore(OffsetStoreError::Fenced { .. } | OffsetStoreError::InUse { .. }) => {
                ErrorClass::Fenced
            }
            Self::OffsetStore(_) | Self::OffsetMember(_) => ErrorClass::Data,
            Self::PositionLost { .. } => ErrorClass::Purged,
            Self::Ddl(_)
            | Self::UnknownTable { .. }
            | Self::NoMetadata { .. }
            | Self::Mismatch(_)
            | Self::PartialImage { .. }
            | Self::Row(_)
            | Self::Convert(_)
            | Self::Transform { .. }
            | Self::StatementChange { .. }
            | Self::UnknownXa { .. }
            | Self::Incident { .. }
            | Self::Rejected { .. } => ErrorClass::Data,
            Self::DumpEnded => ErrorClass::Transient,
            Self::Bug(_) => ErrorClass::Bug,
        }
    }

    /// The message with all its causes, on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.ends_with(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        text
    }
}

fn class_of(error: &holdfast_binlog::Error) -> ErrorClass {
    match error.class() {
        holdfast_binlog::ErrorClass::Transient => ErrorClass::Transient,
        holdfast_binlog::ErrorClass::Purged => ErrorClass::Purged,
        holdfast_binlog::ErrorClass::Config => ErrorClass::Config,
        holdfast_binlog::ErrorClass::Bug => ErrorClass::Bug,
        holdfast_binlog::ErrorClass::Data | _ => ErrorClass::Data,
    }
}
