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
    /// The network did not get us to the server.
    #[error(
        "cannot connect to the database at {host}:{port} with user '{user}'; check database.hostname and database.port"
    )]
    Unreachable {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Login name.
        user: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The server asks for a way to log in that is not offered here, or invents one for a user that it does not know.
    #[error(
        "the database at {host}:{port} wants user '{user}' to log in with {plugin}, which is not supported; check \
         database.user and database.password, or identify the user with caching_sha2_password (MariaDB: \
         mysql_native_password)"
    )]
    UnsupportedAuth {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Login name.
        user: String,
        /// The server's name of the way to log in.
        plugin: String,
    },
    /// The connection could not be encrypted, or the server wants that it is.
    #[error(transparent)]
    Tls(Box<holdfast_binlog::client::ClientError>),
    /// The connection was not made in time.
    #[error(
        "no connection to the database at {host}:{port} within {milliseconds} ms (connect.timeout.ms)"
    )]
    ConnectTimeout {
        /// Host name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// The limit, milliseconds.
        milliseconds: u128,
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
    #[error("cannot {action} as {account}")]
    Query {
        /// Who asked whom.
        account: Box<Account>,
        /// What the query was for.
        action: String,
        /// What the driver said.
        #[source]
        source: mysql_async::Error,
    },
    /// The user lacks a right.
    #[error("{account} lacks the right to {action}: {message}; grant {privilege}")]
    Privilege {
        /// Who asked whom.
        account: Box<Account>,
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

/// A user of a server, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub user: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Account {
    /// Whose connection it is.
    pub(crate) fn of(conn: &mysql_async::Conn) -> Box<Self> {
        let opts = conn.opts();
        Box::new(Self {
            user: opts.user().unwrap_or_default().to_owned(),
            host: opts.ip_or_hostname().to_owned(),
            port: opts.tcp_port(),
        })
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "user '{}' at {}:{}", self.user, self.host, self.port)
    }
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
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. } | Self::Unreachable { .. } | Self::ConnectTimeout { .. } => {
                ErrorClass::Transient
            }
            Self::Query { source, .. } => match source {
                // Too many connections, shutting down, lock wait, deadlock, interrupted, a table's definition changed
                // under the snapshot, killed, timed out.
                mysql_async::Error::Server(error)
                    if matches!(
                        error.code,
                        1040 | 1053 | 1205 | 1213 | 1317 | 1412 | 1927 | 3024
                    ) =>
                {
                    ErrorClass::Transient
                }
                mysql_async::Error::Server(_) => ErrorClass::Config,
                mysql_async::Error::Driver(_)
                | mysql_async::Error::Io(_)
                | mysql_async::Error::Other(_)
                | mysql_async::Error::Url(_) => ErrorClass::Transient,
            },
            Self::AccessDenied { .. }
            | Self::Tls(_)
            | Self::UnsupportedAuth { .. }
            | Self::Privilege { .. }
            | Self::NoBinaryLog => ErrorClass::Config,
            Self::Answer { .. } | Self::Cell { .. } | Self::ColumnCount { .. } => ErrorClass::Data,
        }
    }

    /// Wraps a failed query: missing rights are told apart from everything else.
    pub(crate) fn query(
        conn: &mysql_async::Conn,
        action: impl Into<String>,
        privilege: &'static str,
        source: mysql_async::Error,
    ) -> Self {
        Self::query_of(Account::of(conn), action, privilege, source)
    }

    /// The same, where the connection is in use.
    pub(crate) fn query_of(
        account: Box<Account>,
        action: impl Into<String>,
        privilege: &'static str,
        source: mysql_async::Error,
    ) -> Self {
        let action = action.into();
        match source {
            mysql_async::Error::Server(error)
                if matches!(error.code, 1044 | 1045 | 1142 | 1227) =>
            {
                Self::Privilege { account, action, message: error.message, privilege }
            }
            source @ (mysql_async::Error::Server(_)
            | mysql_async::Error::Driver(_)
            | mysql_async::Error::Io(_)
            | mysql_async::Error::Other(_)
            | mysql_async::Error::Url(_)) => Self::Query { account, action, source },
        }
    }
}
