//! Reading a live MySQL or MariaDB server: facts, definitions, a consistent position, and rows as the values that the
//! stream yields.
//!
//! ```no_run
//! # async fn read(options: &holdfast_snapshot::ServerOptions) -> Result<(), holdfast_snapshot::Error> {
//! use holdfast_snapshot::{LockingMode, SnapshotOptions, Snapshotter, connect, facts};
//!
//! let mut conn = connect(options).await?;
//! let facts = facts(&mut conn).await?;
//! let options = SnapshotOptions {
//!     locking: LockingMode::Minimal,
//!     lock_timeout: std::time::Duration::from_secs(10),
//!     by_gtids: true,
//!     wants_schema: &|table| table.database == "inventory",
//! };
//! let mut snapshot = Snapshotter::begin(conn, Vec::new(), &facts, &options).await?;
//! for statement in snapshot.statements() {
//!     println!("{}", statement.ddl);
//! }
//! snapshot.unlock().await?;
//! snapshot.finish().await
//! # }
//! ```

mod error;
mod reader;
mod server;
mod snapshotter;

pub use error::{Account, Error, ErrorClass};
pub use reader::{RowReader, SnapshotRow, SnapshotRowBuf, TableReader};
pub use server::{
    BinlogFileInfo, LogPosition, ReplicaChannel, ServerFacts, ServerFlavor, ServerOptions,
    binlog_files, connect, execute, facts, log_position, purged_gtids, replica_channels,
    replica_lag,
};
pub use snapshotter::{
    LockingMode, SchemaStatement, SnapshotOptions, Snapshotter, list_tables, probe_select,
    show_create_table,
};
