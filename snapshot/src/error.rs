//! What can go wrong while reading a live server.

use holdfast_history::TableId;

/// Why a live server could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query connection could not be made.
    #[error("cannot connect to the database at {host}:{port} with user '{user}'")]
    Connect {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Login name.
        user: String,
        /// What the driver said.
        #[source]
        source: mysql_async::Error,
    },
    /// The connection was not made in time.
    #[error("no connection to the database at {host}:{port} within {seconds} s")]
    ConnectTimeout {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// The limit, `connect.timeout.ms`.
        seconds: u64,
    },
    /// The server refused the login.
    #[error(
        "the database at {host}:{port} refuses user '{user}': {message}; check database.user and database.password"
    )]
    AccessDenied {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Login name.
        user: String,
        /// The server's words.
        message: String,
    },
    /// A query failed.
    #[error("cannot {action}")]
    Query {
        /// What the query was for.
        action: String,
        /// What the driver said.
        #[source]
        source: mysql_async::Error,
    },
    /// The user lacks a right.
    #[error("user lacks the right to {action}: {message}; grant {privilege}")]
    Privilege {
        /// What the query was for.
        action: String,
        /// The server's words.
        message: String,
        /// The right to grant.
        privilege: &'static str,
    },
    /// An answer of the server did not have the expected shape.
    #[error("unexpected answer of the server while trying to {action}: {what}")]
    Answer {
        /// What the query was for.
        action: String,
        /// What was wrong with the answer.
        what: String,
    },
    /// The server writes no binary log.
    #[error("the server writes no binary log; start it with --log-bin")]
    NoBinaryLog,
    /// A cell of a table could not be read as its column's type.
    #[error("cannot read {table}, column {column} as {type_name}: {what}")]
    Cell {
        /// The table.
        table: TableId,
        /// The column's name.
        column: String,
        /// The column's type.
        type_name: String,
        /// What is wrong with the text, without the text.
        what: &'static str,
    },
    /// A table has another number of columns than its definition.
    #[error("{table} has {expected} columns by its definition, the query gave {found}")]
    ColumnCount {
        /// The table.
        table: TableId,
        /// Columns of the definition.
        expected: usize,
        /// Columns of the answer.
        found: usize,
    },
}

/// What a caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The same call may succeed later.
    Transient,
    /// Settings or rights must change first.
    Config,
    /// These answers will not become readable.
    Data,
}

impl Error {
    /// What the caller can do.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. } | Self::ConnectTimeout { .. } => ErrorClass::Transient,
            Self::Query { source, .. } => match source {
                mysql_async::Error::Server(_) => ErrorClass::Config,
                mysql_async::Error::Driver(_)
                | mysql_async::Error::Io(_)
                | mysql_async::Error::Other(_)
                | mysql_async::Error::Url(_) => ErrorClass::Transient,
            },
            Self::AccessDenied { .. } | Self::Privilege { .. } | Self::NoBinaryLog => {
                ErrorClass::Config
            }
            Self::Answer { .. } | Self::Cell { .. } | Self::ColumnCount { .. } => ErrorClass::Data,
        }
    }

    /// Wraps a failed query: missing rights are told apart from everything else.
    pub(crate) fn query(
        action: impl Into<String>,
        privilege: &'static str,
        source: mysql_async::Error,
    ) -> Self {
        let action = action.into();
        match source {
            mysql_async::Error::Server(error)
                if matches!(error.code, 1044 | 1045 | 1142 | 1227) =>
            {
                Self::Privilege { action, message: error.message, privilege }
            }
            source @ (mysql_async::Error::Server(_)
            | mysql_async::Error::Driver(_)
            | mysql_async::Error::Io(_)
            | mysql_async::Error::Other(_)
            | mysql_async::Error::Url(_)) => Self::Query { action, source },
        }
    }
}
