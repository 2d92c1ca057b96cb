//! Engines without a server, for tests of what is built on them.
//!
//! A [`ScriptedServer`] has a made-up log, written with [`LogBuilder`], and faults at chosen events. [`TestStores`] keep
//! offset and schema history in memory, outlive engines, and fail when they are told to. The engine between them is the
//! real one: what is said of its records, offsets and acknowledgements holds here too.
//!
//! Nothing depends on time: the clock of the records stands still, and on a runtime whose time is paused no wait takes
//! any. So two runs give the same bytes.
//!
//! ```
//! use holdfast_connector::testkit::{self, LogBuilder, ScriptedServer, TestColumn, TestStores, TestValue};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let log = LogBuilder::new("binlog.000001")
//!     .query("shop", "CREATE TABLE t (id INT PRIMARY KEY)")
//!     .begin()
//!     .table_map(1, "shop", "t", &[TestColumn::int()])
//!     .write_rows(1, &[&[TestValue::Int(7)]])
//!     .xid(1);
//! let server = ScriptedServer::new(log);
//! server.complete();
//! let stores = TestStores::new();
//! let config = testkit::config(&[("include.schema.changes", "false")])?;
//! let mut engine = server.engine(config, &stores)?.start().await?;
//! let batch = engine.next_batch().await?.ok_or("the log has one row")?;
//! assert_eq!(batch.changes().next().map(|change| change.key()), Some(&br#"{"id":7}"#[..]));
//! batch.acknowledge();
//! assert!(engine.next_batch().await?.is_none());
//! engine.close().await?;
//! assert!(stores.offset().is_some());
//! # Ok(())
//! # }
//! ```

mod server;
mod stores;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod parallel_tests;
#[cfg(test)]
mod tests;

pub use holdfast_binlog::event::XaId;
pub use holdfast_binlog::testkit::{LogBuilder, LogOptions, TestColumn, TestServer, TestValue};
pub use server::{Fault, ScriptedServer};
pub use stores::{StoreFault, TestStores};

pub(crate) use server::ScriptedDump;

use std::path::Path;

use crate::config::{Config, Properties};
use crate::error::Error;

/// A configuration of `properties`, with what an engine on a made-up log needs beside: MySQL, the topic prefix `test`, and
/// an address that is never used.
///
/// # Errors
///
/// [`Error::Config`] for a property that a file may not have either.
pub fn config(properties: &[(&str, &str)]) -> Result<Config, Error> {
    let mut all = Properties::default();
    let needed = [
        ("connector.class", "io.debezium.connector.mysql.MySqlConnector"),
        ("topic.prefix", "test"),
        ("database.hostname", "scripted.invalid"),
        ("database.user", "nobody"),
        ("database.server.id", "1"),
    ];
    for (key, value) in needed.iter().chain(properties) {
        all.set(*key, *value);
    }
    let (config, _) = Config::from_properties(&all, Path::new("."))?;
    Ok(config)
}
