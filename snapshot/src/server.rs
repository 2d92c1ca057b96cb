//! A query connection, and the facts about a server that decide how it is read.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use holdfast_binlog::client::{ClientError, Endpoint, TlsMode, TlsOptions, name_presented};
use mysql_async::prelude::Queryable;
use mysql_async::{ClientIdentity, Conn, DriverError, IoError, OptsBuilder, Row, SslOpts};

use crate::error::Error;

/// How to reach the server.
#[derive(Clone)]
pub struct ServerOptions {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Login name.
    pub user: String,
    /// Password, empty for none.
    pub password: String,
    /// Whether the connection is encrypted.
    pub tls: TlsOptions,
    /// Longest time for the connection to stand.
    pub connect_timeout: Duration,
    /// Statements run first on each connection (`database.initial.statements`).
    pub initial_statements: Vec<String>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("password", &"***")
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

/// Which family a server belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerFlavor {
    /// MySQL and Percona Server.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// MySQL or MariaDB.
    pub flavor: ServerFlavor,
    /// `@@version`.
    pub version: String,
    /// Global system variables by lower-case name.
    variables: BTreeMap<String, String>,
}

impl ServerFacts {
    /// Facts of a server of this version; names of `variables` in lower case.
    #[must_use]
    pub fn new(version: impl Into<String>, variables: BTreeMap<String, String>) -> Self {
        let version = version.into();
        let flavor = if version.to_ascii_lowercase().contains("mariadb") {
            ServerFlavor::MariaDb
        } else {
            ServerFlavor::MySql
        };
        Self { flavor, version, variables }
    }

    /// A global system variable by its lower-case name; `None` where the server has none of that name.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Whether a variable is `ON` or `1`.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.variable(name).is_some_and(|value| value.eq_ignore_ascii_case("on") || value == "1")
    }

    /// The identity of the server: `server_uuid`; on MariaDB `server_uid` where there is one, else `server_id`.
    #[must_use]
    pub fn identity(&self) -> &str {
        let names: &[&str] = match self.flavor {
            ServerFlavor::MySql => &["server_uuid"],
            ServerFlavor::MariaDb => &["server_uid", "server_id"],
        };
        names.iter().find_map(|name| self.variable(name)).unwrap_or_default()
    }

    /// Whether transactions carry GTIDs: `gtid_mode` is exactly `ON`; always on MariaDB.
    #[must_use]
    pub fn has_gtids(&self) -> bool {
        match self.flavor {
            ServerFlavor::MySql => {
                self.variable("gtid_mode").is_some_and(|mode| mode.eq_ignore_ascii_case("on"))
            }
            ServerFlavor::MariaDb => true,
        }
    }

    /// Whether table names are compared without case (`lower_case_table_names` other than 0).
    #[must_use]
    pub fn lower_case_names(&self) -> bool {
        self.variable("lower_case_table_names").is_some_and(|value| value != "0")
    }
}

/// A place in the server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    /// Binlog file.
    pub file: String,
    /// Byte offset in it.
    pub pos: u64,
    /// GTIDs executed so far: a set on MySQL, a position on MariaDB; `None` without GTIDs.
    pub gtids: Option<String>,
}

/// One of the server's binlog files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinlogFileInfo {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Makes answers independent of the server's settings.
const SESSION: &str = "SET NAMES utf8mb4, SESSION time_zone='+00:00', SESSION sql_mode='', \
                       SESSION sql_quote_show_create=1, SESSION net_write_timeout=86400, SESSION wait_timeout=86400";

/// The statements that begin a session: ours, then `database.initial.statements`.
pub(crate) fn session(options: &ServerOptions) -> impl Iterator<Item = &str> {
    std::iter::once(SESSION).chain(options.initial_statements.iter().map(String::as_str))
}

/// Opens a connection whose session is set up so that answers do not depend on the server's settings: UTC, names and
/// definitions in UTF-8 with backticks, no SQL mode, no time-out of the session while a large table is read.
///
/// # Errors
///
/// [`Error::AccessDenied`], [`Error::Connect`], [`Error::ConnectTimeout`], [`Error::Tls`], and [`Error::Query`] for the set-up.
pub async fn connect(options: &ServerOptions) -> Result<Conn, Error> {
    let builder = OptsBuilder::default()
        .ip_or_hostname(options.host.clone())
        .tcp_port(options.port)
        .user(Some(options.user.clone()))
        .pass(Some(options.password.clone()))
        .prefer_socket(false)
        .tcp_nodelay(true)
        .stmt_cache_size(0)
        .enable_cleartext_plugin(options.tls.mode.verifies());
    let endpoint =
        Endpoint { host: options.host.clone(), port: options.port, user: options.user.clone() };
    let ssl = ssl_options(&options.tls).map_err(|error| Error::Tls(error.into()))?;
    let connecting = pin!(without_panics(log_in(builder, ssl, options.tls.mode)));
    let connected = tokio::time::timeout(options.connect_timeout, connecting).await;
    let mut conn = match connected {
        Err(_) => {
            return Err(Error::ConnectTimeout {
                host: options.host.clone(),
                port: options.port,
                milliseconds: options.connect_timeout.as_millis(),
            });
        }
        Ok(Err(mysql_async::Error::Server(error))) if matches!(error.code, 1044 | 1045 | 1698) => {
            return Err(Error::AccessDenied {
                host: options.host.clone(),
                port: options.port,
                user: options.user.clone(),
                message: error.message,
            });
        }
        // ER_SECURE_TRANSPORT_REQUIRED.
        Ok(Err(mysql_async::Error::Server(error))) if error.code == 3159 => {
            let mut sql_state = *b"HY000";
            for (to, from) in sql_state.iter_mut().zip(error.state.bytes()) {
                *to = from;
            }
            let source = holdfast_binlog::client::ServerError {
                code: error.code,
                sql_state,
                message: error.message,
            };
            return Err(Error::Tls(ClientError::TlsRequired { source: source.into() }.into()));
        }
        Ok(Err(mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer))) => {
            return Err(Error::Tls(
                ClientError::TlsNotOffered { endpoint: endpoint.into() }.into(),
            ));
        }
        Ok(Err(mysql_async::Error::Driver(DriverError::UnknownAuthPlugin { name }))) => {
            return Err(Error::UnsupportedAuth {
                host: options.host.clone(),
                port: options.port,
                user: options.user.clone(),
                plugin: name,
            });
        }
        Ok(Err(mysql_async::Error::Io(IoError::Tls(error)))) => {
            let reason = format!("TLS can't be set up: {error}");
            return Err(Error::Tls(ClientError::TlsSetup { reason }.into()));
        }
        Ok(Err(mysql_async::Error::Io(IoError::Io(source)))) => {
            if let Some(failure) = ClientError::tls_failure(&endpoint, &source) {
                return Err(Error::Tls(failure.into()));
            }
            return Err(Error::Unreachable {
                host: options.host.clone(),
                port: options.port,
                user: options.user.clone(),
                source,
            });
        }
        Ok(Err(source)) => {
            return Err(Error::Connect {
                host: options.host.clone(),
                port: options.port,
                user: options.user.clone(),
                source,
            });
        }
        Ok(Ok(conn)) => conn,
    };
    conn.query_drop(SESSION)
        .await
        .map_err(|error| Error::query(&conn, "set up the session", "USAGE", error))?;
    for statement in &options.initial_statements {
        conn.query_drop(statement).await.map_err(|error| {
            Error::query(&conn, "run database.initial.statements", "what they need", error)
        })?;
    }
    Ok(conn)
}

/// The driver's options for TLS, `None` for a plain connection.
fn ssl_options(tls: &TlsOptions) -> Result<Option<SslOpts>, ClientError> {
    tls.check()?;
    if tls.mode == TlsMode::Disabled {
        return Ok(None);
    }
    let verifies = tls.mode.verifies();
    let roots = tls.authorities()?.into_iter().map(Into::into).collect();
    let identity = match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => {
            Some(ClientIdentity::new(cert.clone().into(), key.clone().into()))
        }
        (_, _) => None,
    };
    let options = SslOpts::default()
        .with_root_certs(roots)
        // Its own list of authorities must not count beside ours; without any it can't be built.
        .with_disable_built_in_roots(verifies)
        .with_danger_accept_invalid_certs(!verifies)
        .with_client_identity(identity);
    Ok(Some(options))
}

/// Connects and logs in, as `mode` says what the driver can't be told.
async fn log_in(
    builder: OptsBuilder,
    ssl: Option<SslOpts>,
    mode: TlsMode,
) -> Result<Conn, mysql_async::Error> {
    let first = Conn::new(builder.clone().ssl_opts(ssl.clone())).await;
    match first {
        Err(mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer))
            if mode == TlsMode::Preferred =>
        {
            Conn::new(builder).await
        }
        // The chain is good and the name is another, which does not count: ask for the name that the certificate has.
        Err(mysql_async::Error::Io(IoError::Io(error))) if mode == TlsMode::VerifyCa => {
            let Some(name) = name_presented(&error) else { return Err(error.into()) };
            let ssl = ssl.map(|ssl| ssl.with_danger_tls_hostname_override(Some(name)));
            Conn::new(builder.ssl_opts(ssl)).await
        }
        first => first,
    }
}

/// Runs a statement and drops what it gives.
///
/// # Errors
///
/// [`Error::Privilege`], [`Error::Query`].
pub async fn execute(conn: &mut Conn, statement: &str) -> Result<(), Error> {
    conn.query_drop(statement)
        .await
        .map_err(|error| Error::query(conn, "run a statement", "what the statement needs", error))
}

/// The driver asserts some of what the server sends, such as the form of its public key. That is the server's fault and
/// no reason to fall.
async fn without_panics(
    connecting: impl Future<Output = Result<Conn, mysql_async::Error>>,
) -> Result<Conn, mysql_async::Error> {
    let mut connecting = pin!(connecting);
    std::future::poll_fn(|context| {
        // Nothing of the future is used after a panic.
        let polled = catch_unwind(AssertUnwindSafe(|| connecting.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let text = "the server's answers in the login are malformed";
            Poll::Ready(Err(mysql_async::Error::Other(text.into())))
        })
    })
    .await
}

/// Reads what the server says of itself.
///
/// # Errors
///
/// [`Error::Query`].
pub async fn facts(conn: &mut Conn) -> Result<ServerFacts, Error> {
    let rows: Vec<(String, String)> = conn
        .query("SHOW GLOBAL VARIABLES")
        .await
        .map_err(|error| Error::query(conn, "read the global variables", "USAGE", error))?;
    let variables: BTreeMap<String, String> =
        rows.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let version = variables.get("version").cloned().unwrap_or_default();
    Ok(ServerFacts::new(version, variables))
}

/// Reads the end of the server's log and the GTIDs executed.
///
/// # Errors
///
/// [`Error::NoBinaryLog`], [`Error::Privilege`] without REPLICATION CLIENT, [`Error::Query`].
pub async fn log_position(conn: &mut Conn, flavor: ServerFlavor) -> Result<LogPosition, Error> {
    let privilege = match flavor {
        ServerFlavor::MySql => "REPLICATION CLIENT ON *.*",
        ServerFlavor::MariaDb => "BINLOG MONITOR ON *.*",
    };
    // SHOW MASTER STATUS is gone since MySQL 8.4; MariaDB and older MySQL know nothing else.
    let statements: &[&str] = match flavor {
        ServerFlavor::MySql => &["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"],
        ServerFlavor::MariaDb => &["SHOW MASTER STATUS"],
    };
    let mut answer = Ok(None);
    for statement in statements {
        answer = conn.query_first::<Row, _>(*statement).await;
        if !matches!(&answer, Err(mysql_async::Error::Server(error)) if error.code == 1064) {
            break;
        }
    }
    let row = answer
        .map_err(|error| {
            Error::query(conn, "read the position of the binary log", privilege, error)
        })?
        .ok_or(Error::NoBinaryLog)?;
    let text = |index: usize| row.get_opt::<String, usize>(index).and_then(Result::ok);
    let answer = |what: &str| Error::Answer {
        action: "read the position of the binary log".to_owned(),
        what: what.to_owned(),
    };
    let file = text(0).ok_or_else(|| answer("no file name"))?;
    let pos =
        row.get_opt::<u64, usize>(1).and_then(Result::ok).ok_or_else(|| answer("no position"))?;
    let gtids = match flavor {
        ServerFlavor::MySql => text(4).map(|set| set.replace(['\n', '\r'], "")),
        ServerFlavor::MariaDb => conn
            .query_first::<String, _>("SELECT @@GLOBAL.gtid_binlog_pos")
            .await
            .map_err(|error| Error::query(conn, "read gtid_binlog_pos", "USAGE", error))?,
    };
    Ok(LogPosition { file, pos, gtids: gtids.filter(|set| !set.is_empty()) })
}

/// Lists the binlog files that the server still has, oldest first.
///
/// # Errors
///
/// [`Error::Privilege`] without REPLICATION CLIENT (MariaDB: BINLOG MONITOR), [`Error::Query`].
pub async fn binlog_files(conn: &mut Conn) -> Result<Vec<BinlogFileInfo>, Error> {
    let rows: Vec<Row> = conn.query("SHOW BINARY LOGS").await.map_err(|error| {
        Error::query(
            conn,
            "list the binary logs",
            "REPLICATION CLIENT ON *.* (MariaDB: BINLOG MONITOR)",
            error,
        )
    })?;
    rows.iter()
        .map(|row| {
            let name = row.get_opt::<String, usize>(0).and_then(Result::ok);
            let size = row.get_opt::<u64, usize>(1).and_then(Result::ok);
            match (name, size) {
                (Some(name), Some(size)) => Ok(BinlogFileInfo { name, size }),
                (_, _) => Err(Error::Answer {
                    action: "list the binary logs".to_owned(),
                    what: "a row without name and size".to_owned(),
                }),
            }
        })
        .collect()
}

/// How far a replica is behind its source in seconds, `Some(None)` when replication is stopped; `None` for a server that
/// is no replica.
///
/// # Errors
///
/// [`Error::Privilege`] without REPLICATION CLIENT (MariaDB: SLAVE MONITOR), [`Error::Query`].
pub async fn replica_lag(
    conn: &mut Conn,
    flavor: ServerFlavor,
) -> Result<Option<Option<u64>>, Error> {
    let (statement, column) = match flavor {
        ServerFlavor::MySql => ("SHOW REPLICA STATUS", "Seconds_Behind_Source"),
        ServerFlavor::MariaDb => ("SHOW SLAVE STATUS", "Seconds_Behind_Master"),
    };
    let row: Option<Row> = conn.query_first(statement).await.map_err(|error| {
        Error::query(conn, "read the replica's status", "REPLICATION CLIENT ON *.*", error)
    })?;
    Ok(row.map(|row| row.get_opt::<u64, &str>(column).and_then(Result::ok)))
}

/// One source that a server replicates from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaChannel {
    /// Name of the channel (MariaDB: of the connection); empty for the default one.
    pub name: String,
    /// Whether both threads run: the one that receives and the one that applies.
    pub is_running: bool,
    /// How far it is behind its source in seconds, as far as the server knows.
    pub seconds_behind: Option<u64>,
}

/// The sources that a server replicates from; empty for a server that is no replica.
///
/// # Errors
///
/// [`Error::Privilege`] without REPLICATION CLIENT (MariaDB: SLAVE MONITOR), [`Error::Query`].
pub async fn replica_channels(
    conn: &mut Conn,
    flavor: ServerFlavor,
) -> Result<Vec<ReplicaChannel>, Error> {
    let statements: &[&str] = match flavor {
        // The first since 8.0.22, the second until 8.3.
        ServerFlavor::MySql => &["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"],
        ServerFlavor::MariaDb => &["SHOW ALL SLAVES STATUS"],
    };
    let mut answer: Result<Vec<Row>, mysql_async::Error> = Ok(Vec::new());
    for statement in statements {
        answer = conn.query(*statement).await;
        if !matches!(&answer, Err(mysql_async::Error::Server(error)) if error.code == 1064) {
            break;
        }
    }
    let rows = answer.map_err(|error| {
        let privilege = "REPLICATION CLIENT ON *.* (MariaDB: SLAVE MONITOR)";
        Error::query(conn, "read the replica's status", privilege, error)
    })?;
    Ok(rows.iter().map(replica_channel).collect())
}

fn replica_channel(row: &Row) -> ReplicaChannel {
    let text = |names: &[&str]| -> Option<String> {
        let index = row.columns_ref().iter().position(|column| {
            names.iter().any(|name| column.name_str().eq_ignore_ascii_case(name))
        })?;
        row.get_opt::<String, usize>(index).and_then(Result::ok)
    };
    let runs = |names| text(names).is_some_and(|state| state.eq_ignore_ascii_case("yes"));
    ReplicaChannel {
        name: text(&["Channel_Name", "Connection_name"]).unwrap_or_default(),
        is_running: runs(&["Replica_IO_Running", "Slave_IO_Running"])
            && runs(&["Replica_SQL_Running", "Slave_SQL_Running"]),
        seconds_behind: text(&["Seconds_Behind_Source", "Seconds_Behind_Master"])
            .and_then(|seconds| seconds.parse().ok()),
    }
}

/// The GTIDs that the server executed and no longer has in its logs; `None` where the server does not say (MariaDB,
/// or no GTIDs).
///
/// # Errors
///
/// [`Error::Query`].
pub async fn purged_gtids(conn: &mut Conn, facts: &ServerFacts) -> Result<Option<String>, Error> {
    if facts.flavor == ServerFlavor::MariaDb || !facts.has_gtids() {
        return Ok(None);
    }
    let purged: Option<String> = conn
        .query_first("SELECT @@GLOBAL.gtid_purged")
        .await
        .map_err(|error| Error::query(conn, "read gtid_purged", "USAGE", error))?;
    Ok(purged.map(|set| set.replace(['\n', '\r'], "")).filter(|set| !set.is_empty()))
}
