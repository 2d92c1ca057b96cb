//! A consistent snapshot: tables, definitions, position and rows as of one moment of the log.
//!
//! ```text
//! begin:   lock ─▶ tables ─▶ read view per reader ─▶ position ─▶ definitions
//! unlock:  UNLOCK TABLES (locking modes minimal)
//!          the caller makes position and definitions durable
//! readers: SELECT per table, each inside its view; all views show the same
//! finish:  UNLOCK TABLES (locking mode extended), disconnect
//! ```
//!
//! The lock has a connection of its own, so that locks of tables do not end with a transaction. Where no commit can come
//! between two views, there may be several readers; else one is kept, and the position is that of its view, or one
//! before it.
//!
//! Source of the sequence: Debezium 3.6.3.Final, `initial` with locking mode `minimal` on MySQL 9.7.

use std::time::Duration;

use holdfast_history::TableId;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{Account, Error, is_about_rights};
use crate::reader::RowReader;
use crate::server::{LogPosition, ServerFacts, ServerFlavor, log_position};

/// How long other sessions are kept from writing (`snapshot.locking.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LockingMode {
    /// The global read lock is held until the definitions are read; locks of the tables where it is refused.
    #[default]
    Minimal,
    /// The same until the last row is read.
    Extended,
    /// Percona Server's backup lock is held until the definitions are read; it stops definitions, not transactions.
    /// Locks of the tables where it is refused.
    MinimalPercona,
    /// The same, and an error where it is refused.
    MinimalPerconaNoTableLocks,
    /// No lock: definitions may change under the snapshot, and rows written between position and read view come
    /// twice.
    None,
}

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    /// All tables: nothing is committed.
    Global,
    /// The tables whose definitions are taken: nothing of theirs is committed.
    Tables,
    /// All definitions; rows are committed.
    Backup,
    None,
}

impl Lock {
    /// Whether what is captured stays as it is meanwhile.
    const fn stops_commits(self) -> bool {
        matches!(self, Self::Global | Self::Tables)
    }
}

/// A transaction is in the log before others see its rows. Where a view can't say which it shows, the position is read
/// so long before it.
const SETTLE: Duration = Duration::from_secs(1);

/// How often locks of tables are taken anew because tables came or went meanwhile.
const LOCK_ATTEMPTS: u32 = 10;

/// What a snapshot takes.
pub struct SnapshotOptions<'a> {
    /// How to lock.
    pub locking: LockingMode,
    /// How long to wait for locks (`snapshot.lock.timeout.ms`).
    pub lock_timeout: Duration,
    /// Whether the log is followed by GTIDs from the snapshot on, rather than by file and position.
    pub by_gtids: bool,
    /// Whether a table's definition is taken.
    pub wants_schema: &'a (dyn Fn(&TableId) -> bool + Sync),
}

impl std::fmt::Debug for SnapshotOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotOptions")
            .field("locking", &self.locking)
            .field("lock_timeout", &self.lock_timeout)
            .finish_non_exhaustive()
    }
}

/// A statement that, applied in order to an empty model, gives the definitions of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatement {
    /// The database it runs in; empty for server-wide settings.
    pub database: String,
    /// The table it is about, for table statements.
    pub table: Option<TableId>,
    /// The statement.
    pub ddl: String,
}

/// A snapshot in progress. Dropping it closes the connections, which ends its transactions and its locks.
#[derive(Debug)]
pub struct Snapshotter {
    conn: Conn,
    locking: LockingMode,
    lock: Lock,
    readers: Vec<RowReader>,
    position: LogPosition,
    tables: Vec<TableId>,
    statements: Vec<SchemaStatement>,
}

impl Snapshotter {
    /// Locks, fixes the read views, and reads position and definitions. Without `readers` no rows can be read.
    ///
    /// # Errors
    ///
    /// [`Error::NoLock`], [`Error::NoTableLocks`] and [`Error::NotPercona`] for the lock, [`Error::Privilege`] without
    /// REPLICATION CLIENT for the position, [`Error::NoBinaryLog`], [`Error::TablesMove`], [`Error::Query`],
    /// [`Error::Reader`].
    pub async fn begin(
        mut conn: Conn,
        mut readers: Vec<RowReader>,
        facts: &ServerFacts,
        options: &SnapshotOptions<'_>,
    ) -> Result<Self, Error> {
        let mut attempts = LOCK_ATTEMPTS;
        let (lock, tables, position) = loop {
            // Locks of tables need their names before; the others keep the list as it is.
            let listed = wanted_tables(&mut conn, options).await?;
            let lock = take_lock(&mut conn, options, &listed).await?;
            let position =
                open_views(&mut conn, lock, &mut readers, facts, options.by_gtids).await?;
            // After the position: what is created later is in the log, and what was before is in the list.
            let tables = wanted_tables(&mut conn, options).await?;
            if lock != Lock::Tables || tables == listed {
                break (lock, tables, position);
            }
            attempts -= 1;
            run(&mut conn, "UNLOCK TABLES").await?;
            if attempts == 0 {
                return Err(Error::TablesMove);
            }
        };
        let position =
            LogPosition { gtids: position.gtids.filter(|_| facts.has_gtids()), ..position };
        let statements = schema_statements(&mut conn, facts, &tables).await?;
        Ok(Self { conn, locking: options.locking, lock, readers, position, tables, statements })
    }

    /// Lets other sessions write again; position and definitions are read. The rows are read inside the read views; with
    /// locking mode `extended` the lock stays until [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub async fn unlock(&mut self) -> Result<(), Error> {
        if self.locking == LockingMode::Extended || self.lock == Lock::None {
            return Ok(());
        }
        self.lock = Lock::None;
        run(&mut self.conn, "UNLOCK TABLES").await
    }

    /// The connections that read rows, all inside views of the same moment. May be fewer than were given, and is at
    /// least one where any was.
    pub fn take_readers(&mut self) -> Vec<RowReader> {
        std::mem::take(&mut self.readers)
    }

    /// Ends the lock, where one is still held, and the connection.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the lock did not last to the end.
    pub async fn finish(mut self) -> Result<(), Error> {
        if self.lock != Lock::None {
            run(&mut self.conn, "UNLOCK TABLES").await?;
        }
        // The server may have closed it long ago: nothing was asked of it since the lock ended.
        if let Err(error) = self.conn.disconnect().await {
            tracing::debug!(error = %error, "the snapshot's connection was not closed");
        }
        Ok(())
    }

    /// The position of the log that the snapshot shows.
    #[must_use]
    pub const fn position(&self) -> &LogPosition {
        &self.position
    }

    /// The tables whose definitions were taken: databases as the server lists them, tables by name, byte order.
    #[must_use]
    pub fn tables(&self) -> &[TableId] {
        &self.tables
    }

    /// The statements that give the definitions, in the order in which Debezium records them.
    #[must_use]
    pub fn statements(&self) -> &[SchemaStatement] {
        &self.statements
    }
}

/// Takes the lock that the mode asks for, or locks of the tables.
async fn take_lock(
    conn: &mut Conn,
    options: &SnapshotOptions<'_>,
    tables: &[TableId],
) -> Result<Lock, Error> {
    let (statement, lock) = match options.locking {
        LockingMode::None => return Ok(Lock::None),
        LockingMode::Minimal | LockingMode::Extended => {
            ("FLUSH TABLES WITH READ LOCK", Lock::Global)
        }
        LockingMode::MinimalPercona | LockingMode::MinimalPerconaNoTableLocks => {
            ("LOCK TABLES FOR BACKUP", Lock::Backup)
        }
    };
    let seconds = options.lock_timeout.as_secs().max(1);
    run(conn, &format!("SET SESSION lock_wait_timeout={seconds}")).await?;
    run(conn, &format!("SET SESSION innodb_lock_wait_timeout={seconds}")).await?;
    let refused = match conn.query_drop(statement).await {
        Ok(()) => return Ok(lock),
        Err(mysql_async::Error::Server(error)) if is_about_rights(error.code) => error.message,
        Err(mysql_async::Error::Server(error)) if error.code == 1064 => {
            return Err(Error::NotPercona);
        }
        Err(error) => {
            return Err(Error::query(conn, "take the global read lock", "RELOAD ON *.*", error));
        }
    };
    if options.locking == LockingMode::MinimalPerconaNoTableLocks {
        return Err(Error::NoTableLocks { account: Account::of(conn), message: refused });
    }
    if tables.is_empty() {
        return Ok(Lock::Tables);
    }
    tracing::warn!(
        refused,
        tables = tables.len(),
        "no global read lock; locking the tables instead"
    );
    let names: Vec<String> = tables
        .iter()
        .map(|table| format!("{}.{} READ", quoted(&table.database), quoted(&table.table)))
        .collect();
    match conn.query_drop(format!("LOCK TABLES {}", names.join(", "))).await {
        Ok(()) => Ok(Lock::Tables),
        Err(mysql_async::Error::Server(error)) if is_about_rights(error.code) => {
            let (message, tables) = (refused, error.message);
            Err(Error::NoLock { account: Account::of(conn), message, tables })
        }
        Err(error) => Err(Error::query(conn, "lock the tables", "LOCK TABLES", error)),
    }
}

/// Opens the views of the readers; the position of the log that they show, or one before it.
async fn open_views(
    conn: &mut Conn,
    lock: Lock,
    readers: &mut Vec<RowReader>,
    facts: &ServerFacts,
    by_gtids: bool,
) -> Result<LogPosition, Error> {
    if lock.stops_commits() {
        for reader in readers.iter_mut() {
            reader.open_view().await?;
        }
        return log_position(conn, facts.flavor).await;
    }
    if readers.len() > 1 {
        tracing::warn!(
            asked = readers.len(),
            "without a lock that keeps others from committing, the rows are read over one connection"
        );
        readers.truncate(1);
    }
    let before = log_position(conn, facts.flavor).await?;
    let Some(reader) = readers.first_mut() else { return Ok(before) };
    // MySQL adds a transaction to its GTIDs when others see it, and MariaDB tells what a view shows. Else what is in the
    // log at that position may not be seen yet.
    if facts.flavor == ServerFlavor::MySql && !by_gtids {
        tokio::time::sleep(SETTLE).await;
    }
    reader.open_view().await?;
    Ok(reader.view_position(facts).await?.unwrap_or(before))
}

async fn wanted_tables(
    conn: &mut Conn,
    options: &SnapshotOptions<'_>,
) -> Result<Vec<TableId>, Error> {
    let mut tables = list_tables(conn).await?;
    tables.retain(|table| (options.wants_schema)(table));
    Ok(tables)
}

async fn run(conn: &mut Conn, statement: &str) -> Result<(), Error> {
    conn.query_drop(statement).await.map_err(|error| {
        let action = format!("run {statement}");
        Error::query(conn, action, "what the statement needs", error)
    })
}

/// Databases and base tables that the user can see, databases in the server's order, tables by name.
///
/// # Errors
///
/// [`Error::Query`]; a database that can't be listed is left out with a warning.
pub async fn list_tables(conn: &mut Conn) -> Result<Vec<TableId>, Error> {
    let databases: Vec<String> = conn.query("SHOW DATABASES").await.map_err(|error| {
        Error::query(conn, "list the databases", "SHOW DATABASES ON *.*", error)
    })?;
    let mut tables = Vec::new();
    for database in databases {
        let query =
            format!("SHOW FULL TABLES IN {} WHERE Table_Type = 'BASE TABLE'", quoted(&database));
        let listed: Vec<(String, String)> = match conn.query(query).await {
            Ok(listed) => listed,
            Err(error @ mysql_async::Error::Server(_)) => {
                tracing::warn!(database, error = %error, "database skipped: its tables can't be listed");
                continue;
            }
            Err(error) => {
                return Err(Error::query(conn, "list the tables", "SELECT ON *.*", error));
            }
        };
        let mut names: Vec<String> = listed.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        tables.extend(names.into_iter().map(|name| TableId::new(database.clone(), name)));
    }
    Ok(tables)
}

/// SET, then DROP per table, then per database DROP, CREATE, USE and the definitions of its tables.
async fn schema_statements(
    conn: &mut Conn,
    facts: &ServerFacts,
    tables: &[TableId],
) -> Result<Vec<SchemaStatement>, Error> {
    let charset = facts.variable("character_set_server").unwrap_or("utf8mb4");
    let collation = facts.variable("collation_server").unwrap_or("utf8mb4_general_ci");
    let mut statements = vec![SchemaStatement {
        database: String::new(),
        table: None,
        ddl: format!("SET character_set_server={charset}, collation_server={collation}"),
    }];
    for table in tables {
        let ddl =
            format!("DROP TABLE IF EXISTS {}.{}", quoted(&table.database), quoted(&table.table));
        statements.push(SchemaStatement {
            database: table.database.clone(),
            table: Some(table.clone()),
            ddl,
        });
    }
    let schemata: Vec<(String, String, String)> = conn
        .query(
            "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata",
        )
        .await
        .map_err(|error| Error::query(conn, "read the databases' character sets", "SELECT ON *.*", error))?;
    let mut databases: Vec<&str> = tables.iter().map(|table| table.database.as_str()).collect();
    databases.dedup();
    for database in databases {
        let name = quoted(database);
        let statement =
            |ddl: String| SchemaStatement { database: database.to_owned(), table: None, ddl };
        statements.push(statement(format!("DROP DATABASE IF EXISTS {name}")));
        let create = match schemata.iter().find(|(schema, _, _)| schema == database) {
            Some((_, charset, collation)) => {
                format!("CREATE DATABASE {name} CHARSET {charset} COLLATE {collation}")
            }
            None => format!("CREATE DATABASE {name}"),
        };
        statements.push(statement(create));
        statements.push(statement(format!("USE {name}")));
        for table in tables.iter().filter(|table| table.database == database) {
            let ddl = show_create_table(conn, table).await?;
            statements.push(SchemaStatement {
                database: database.to_owned(),
                table: Some(table.clone()),
                ddl,
            });
        }
    }
    Ok(statements)
}

/// The definition of a table as the server prints it.
///
/// # Errors
///
/// [`Error::Privilege`] without SELECT on the table, [`Error::Query`].
pub async fn show_create_table(conn: &mut Conn, table: &TableId) -> Result<String, Error> {
    let query = format!("SHOW CREATE TABLE {}.{}", quoted(&table.database), quoted(&table.table));
    let action = || format!("read the definition of {table}");
    let row: Option<(String, String)> = conn
        .query_first(query)
        .await
        .map_err(|error| Error::query(conn, action(), "SELECT ON the table", error))?;
    match row {
        Some((_, ddl)) => Ok(ddl),
        None => Err(Error::Answer { action: action(), what: "no row".to_owned() }),
    }
}

/// Selects nothing from a table, to see whether it could be read.
///
/// # Errors
///
/// [`Error::Privilege`] without SELECT on the table, [`Error::Query`].
pub async fn probe_select(conn: &mut Conn, table: &TableId) -> Result<(), Error> {
    let query =
        format!("SELECT * FROM {}.{} LIMIT 0", quoted(&table.database), quoted(&table.table));
    conn.query_drop(query)
        .await
        .map_err(|error| Error::query(conn, format!("read {table}"), "SELECT ON the table", error))
}

/// A name in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
