//! Made-up binlogs, for tests: events and values in, the bytes a server would write out.
//!
//! ```
//! use holdfast_binlog::event::EventData;
//! use holdfast_binlog::file::BinlogFileReader;
//! use holdfast_binlog::stream::{EventStream, StreamOptions};
//! use holdfast_binlog::testkit::{LogBuilder, TestColumn, TestValue};
//!
//! let log = LogBuilder::new("mysql-bin.000001")
//!     .gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562:23".parse().unwrap())
//!     .begin()
//!     .table_map(7, "shop", "orders", &[TestColumn::int(), TestColumn::varchar(100).nullable()])
//!     .write_rows(7, &[&[TestValue::Int(1), TestValue::from("first")], &[TestValue::Int(2), TestValue::Null]])
//!     .xid(1)
//!     .rotate("mysql-bin.000002");
//! let bytes = log.into_bytes();
//!
//! let mut reader = BinlogFileReader::new(&bytes[..], "mysql-bin.000001").unwrap();
//! let mut stream = EventStream::new("mysql-bin.000001", StreamOptions::default());
//! let mut tables = Vec::new();
//! while let Some(bytes) = reader.next_event().unwrap() {
//!     if let EventData::Rows { table, .. } = stream.decode(bytes).unwrap().data {
//!         tables.push(table.table().to_owned());
//!     }
//! }
//! assert_eq!(tables, ["orders"]);
//! ```
//!
//! What it writes follows MySQL 8.4, or MariaDB 11.8 on request; rows events in fragments are of MariaDB 12.3. Misuse, such as rows for a table that has no table map,
//! panics: a test that made a mistake should not go on.

mod log;
mod row;

pub use log::{LogBuilder, LogOptions, TestServer};
pub use row::{TestColumn, TestValue};
