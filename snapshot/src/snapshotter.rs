//! A consistent snapshot: tables, definitions, position and rows as of one moment of the log.
//!
//! ```text
//! begin:   list tables ─▶ global read lock ─▶ consistent read view ─▶ position ─▶ definitions
//! unlock:  UNLOCK TABLES (locking mode minimal)
//!          the caller makes position and definitions durable
//! read:    SELECT per table, inside the read view
//! finish:  ROLLBACK, disconnect
//! ```
//!
//! Source of the sequence: Debezium 3.6.3.Final, `initial` with locking mode `minimal` on MySQL 9.7.

use std::sync::Arc;
use std::time::Duration;

use holdfast_history::{Table, TableId};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{Account, Error};
use crate::reader::TableReader;
use crate::server::{LogPosition, ServerFacts, log_position};

/// How long other sessions are kept from writing (`snapshot.locking.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LockingMode {
    /// The global read lock is held until the definitions are read.
    #[default]
    Minimal,
    /// The global read lock is held until the last row is read; no read view is needed.
    Extended,
    /// No lock: definitions may change under the snapshot, and rows written between position and read view come
    /// twice.
    None,
}

/// What a snapshot takes.
pub struct SnapshotOptions<'a> {
    /// How to lock.
    pub locking: LockingMode,
    /// How long to wait for locks (`snapshot.lock.timeout.ms`).
    pub lock_timeout: Duration,
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

/// A snapshot in progress. Dropping it closes the connection, which ends its transaction and its locks.
#[derive(Debug)]
pub struct Snapshotter {
    conn: Conn,
    locking: LockingMode,
    position: LogPosition,
    tables: Vec<TableId>,
    statements: Vec<SchemaStatement>,
}

impl Snapshotter {
    /// Locks, fixes the read view, and reads position and definitions.
    ///
    /// # Errors
    ///
    /// [`Error::Privilege`] without RELOAD for the lock or REPLICATION CLIENT for the position, [`Error::NoBinaryLog`],
    /// [`Error::Query`].
    pub async fn begin(
        mut conn: Conn,
        facts: &ServerFacts,
        options: &SnapshotOptions<'_>,
    ) -> Result<Self, Error> {
        let seconds = options.lock_timeout.as_secs().max(1);
        if options.locking != LockingMode::None {
            run(&mut conn, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
            run(&mut conn, &format!("SET SESSION lock_wait_timeout={seconds}")).await?;
            run(&mut conn, &format!("SET SESSION innodb_lock_wait_timeout={seconds}")).await?;
            conn.query_drop("FLUSH TABLES WITH READ LOCK").await.map_err(|error| {
                Error::query(
                    &conn,
                    "take the global read lock",
                    "RELOAD ON *.*, or set snapshot.locking.mode=none",
                    error,
                )
            })?;
        }
        // Under the lock, so that no table comes or goes between the list and the position.
        let tables = list_tables(&mut conn).await?;
        let tables: Vec<TableId> =
            tables.into_iter().filter(|table| (options.wants_schema)(table)).collect();
        // Without a lock the position must be read first: what is written in between then comes twice, never not at
        // all.
        let unlocked = match options.locking {
            LockingMode::None => Some(log_position(&mut conn, facts.flavor).await?),
            LockingMode::Minimal | LockingMode::Extended => None,
        };
        run(&mut conn, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        run(&mut conn, "START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
        let position = match unlocked {
            Some(position) => position,
            None => log_position(&mut conn, facts.flavor).await?,
        };
        let position =
            LogPosition { gtids: position.gtids.filter(|_| facts.has_gtids()), ..position };
        let statements = schema_statements(&mut conn, facts, &tables).await?;
        Ok(Self { conn, locking: options.locking, position, tables, statements })
    }

    /// Lets other sessions write again; position and definitions are read. The rows are read inside the read view; with
    /// locking mode `extended` the lock stays until [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub async fn unlock(&mut self) -> Result<(), Error> {
        match self.locking {
            LockingMode::Minimal => run(&mut self.conn, "UNLOCK TABLES").await,
            LockingMode::Extended | LockingMode::None => Ok(()),
        }
    }

    /// Starts reading a table's rows, in the server's order. `select` replaces `SELECT <columns> FROM <table>`
    /// (`snapshot.select.statement.overrides`); it must give the table's columns.
    ///
    /// # Errors
    ///
    /// [`Error::Privilege`] without SELECT, [`Error::Query`], [`Error::ColumnCount`].
    pub async fn read(
        &mut self,
        table: &Arc<Table>,
        select: Option<&str>,
    ) -> Result<TableReader<'_>, Error> {
        TableReader::open(&mut self.conn, table, select).await
    }

    /// Ends the read view and the connection.
    ///
    /// # Errors
    ///
    /// [`Error::Query`].
    pub async fn finish(mut self) -> Result<(), Error> {
        run(&mut self.conn, "ROLLBACK").await?;
        if self.locking == LockingMode::Extended {
            run(&mut self.conn, "UNLOCK TABLES").await?;
        }
        let account = Account::of(&self.conn);
        self.conn.disconnect().await.map_err(|error| {
            Error::query_of(account, "close the snapshot's connection", "USAGE", error)
        })
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
