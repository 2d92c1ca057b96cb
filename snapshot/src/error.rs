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
    /// The same on a connection that reads rows.
    #[error("cannot {action} as {account}")]
    Reader {
        /// Who asked whom.
        account: Box<Account>,
        /// What was wanted.
        action: String,
        /// What the server or the connection said.
        #[source]
        source: Box<holdfast_binlog::Error>,
    },
    /// No lock could be had that keeps tables as they are while their definitions are read.
    #[error(
        "{account} may take neither the global read lock ({message}) nor locks of the tables ({tables}); grant RELOAD ON \
         *.* or LOCK TABLES on the captured databases, or set snapshot.locking.mode=none"
    )]
    NoLock {
        /// Who asked whom.
        account: Box<Account>,
        /// The server's words about the global lock.
        message: String,
        /// The server's words about the locks of the tables.
        tables: String,
    },
    /// The global lock was refused, and the locking mode wants no other.
    #[error(
        "Cannot perform two-phase schema snapshot because global read lock was not acquired and table locks are not \
         allowed in *_no_table_locks mode. ({account}: {message})"
    )]
    NoTableLocks {
        /// Who asked whom.
        account: Box<Account>,
        /// The server's words about the global lock.
        message: String,
    },
    /// The locking mode is one of Percona Server's, and the server is another.
    #[error(
        "the server does not know LOCK TABLES FOR BACKUP, which only Percona Server has; set snapshot.locking.mode to \
         minimal, extended or none"
    )]
    NotPercona,
    /// Tables came and went while their locks were taken.
    #[error(
        "tables were created or dropped each time that locks of the tables were taken; try again later"
    )]
    TablesMove,
    /// A table was defined anew behind the moment that the snapshot shows.
    #[error(
        "the definition of {table} was changed after the moment that the snapshot shows, so that its rows of then can't be \
         read; the snapshot has to be begun again, best while no definitions change"
    )]
    DefinitionChanged {
        /// The table.
        table: TableId,
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
                mysql_async::Error::Server(error) if is_passing(error.code) => {
                    ErrorClass::Transient
                }
                mysql_async::Error::Server(_) => ErrorClass::Config,
                mysql_async::Error::Driver(_)
                | mysql_async::Error::Io(_)
                | mysql_async::Error::Other(_)
                | mysql_async::Error::Url(_) => ErrorClass::Transient,
            },
            Self::Reader { source, .. } => {
                let refused = if let holdfast_binlog::Error::Client(client) = &**source {
                    client.server_error()
                } else {
                    None
                };
                let passes = source.class() == holdfast_binlog::ErrorClass::Transient;
                match refused {
                    Some(error) if is_passing(error.code) => ErrorClass::Transient,
                    None if passes => ErrorClass::Transient,
                    Some(_) | None => ErrorClass::Config,
                }
            }
            Self::TablesMove | Self::DefinitionChanged { .. } => ErrorClass::Transient,
            Self::AccessDenied { .. }
            | Self::NoLock { .. }
            | Self::NoTableLocks { .. }
            | Self::NotPercona
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
            mysql_async::Error::Server(error) if is_about_rights(error.code) => {
                Self::Privilege { account, action, message: error.message, privilege }
            }
            source @ (mysql_async::Error::Server(_)
            | mysql_async::Error::Driver(_)
            | mysql_async::Error::Io(_)
            | mysql_async::Error::Other(_)
            | mysql_async::Error::Url(_)) => Self::Query { account, action, source },
        }
    }

    /// Wraps what a connection said while it read rows of a table.
    pub(crate) fn rows(
        account: Box<Account>,
        table: &TableId,
        source: holdfast_binlog::Error,
    ) -> Self {
        /// `ER_TABLE_DEF_CHANGED`.
        const DEFINITION_CHANGED: u16 = 1412;
        if let holdfast_binlog::Error::Client(client) = &source
            && client.server_error().is_some_and(|error| error.code == DEFINITION_CHANGED)
        {
            return Self::DefinitionChanged { table: table.clone() };
        }
        Self::reader(account, format!("read {table}"), "SELECT ON the table", source)
    }

    /// Wraps what a connection for rows said.
    pub(crate) fn reader(
        account: Box<Account>,
        action: impl Into<String>,
        privilege: &'static str,
        source: holdfast_binlog::Error,
    ) -> Self {
        let action = action.into();
        if let holdfast_binlog::Error::Client(client) = &source
            && let Some(error) = client.server_error()
            && is_about_rights(error.code)
        {
            let message = error.message.clone();
            return Self::Privilege { account, action, message, privilege };
        }
        Self::Reader { account, action, source: source.into() }
    }
}

/// Too many connections, shutting down, lock wait, deadlock, interrupted, definition changed, killed, timed out.
const fn is_passing(code: u16) -> bool {
    matches!(code, 1040 | 1053 | 1205 | 1213 | 1317 | 1412 | 1927 | 3024)
}

/// Access denied: to a database, at all, to a table, to a column, for want of a privilege.
pub(crate) const fn is_about_rights(code: u16) -> bool {
    matches!(code, 1044 | 1045 | 1142 | 1143 | 1227)
}
