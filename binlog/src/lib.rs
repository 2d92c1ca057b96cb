//! MySQL and MariaDB binary logs: bytes to events to rows of physical values.
//!
//! The crate reads what a server wrote: a file, or what a replication connection sends. It knows no schema, no storage
//! and no configuration. A value is what the wire says it is; what it means is the business of its users.
//!
//! ```text
//! BinlogFileReader ─┐                       ┌─▶ Event ─▶ RowsEvent ─▶ Row ─▶ Value
//!                   ├─ bytes ▶ EventStream ─┤
//! BinlogClient ─────┘             ▲         └─▶ TransactionPayload ─▶ PayloadReader ─┐
//!                                 └───────── bytes of the events inside ─────────────┘
//! ```
//!
//! | module | what it does |
//! | --- | --- |
//! | [`wire`] | bounds-checked reads that name their field |
//! | [`event`] | one parser per kind of event, from a body to a view of it |
//! | [`row`], [`value`] | the decoding plan of a table, row images, physical values |
//! | [`stream`] | what outlives an event: format, file, position, table maps; checksums |
//! | [`file`](mod@file) | a file's events as bytes |
//! | `client` | a connection's events as bytes (feature `client`) |
//! | [`position`], [`gtid`], [`txn`] | places in the log, their orders, and where a restart begins |
//! | `testkit` | made-up logs for tests (feature `testkit`) |
//!
//! Only `client` does network I/O and only `file` reads files; everything else is pure. Views borrow from the bytes of
//! the event and are gone with it; nothing is copied on the way to a [`Value`].
//!
//! # Example
//!
//! ```no_run
//! use holdfast_binlog::event::{EventData, PayloadReader};
//! use holdfast_binlog::file::BinlogFileReader;
//! use holdfast_binlog::row::Row;
//! use holdfast_binlog::stream::{EventStream, StreamOptions};
//! use holdfast_binlog::Event;
//!
//! fn show(event: &Event<'_>) -> Result<(), Box<dyn std::error::Error>> {
//!     if let EventData::Rows { rows, table } = &event.data {
//!         let mut reader = rows.rows(table)?;
//!         let mut row = Row::new();
//!         while reader.read(&mut row)? {
//!             println!("{}.{} {:?} {:?}", table.database(), table.table(), row.before, row.after);
//!         }
//!     }
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut reader = BinlogFileReader::open("mysql-bin.000001")?;
//!     let mut stream = EventStream::new("mysql-bin.000001", StreamOptions::default());
//!     let mut payloads = PayloadReader::default();
//!     while let Some(bytes) = reader.next_event()? {
//!         let event = stream.decode(bytes)?;
//!         show(&event)?;
//!         if let EventData::TransactionPayload(payload) = event.data {
//!             let span = event.span();
//!             payloads.open(&event, &payload)?;
//!             while let Some(bytes) = payloads.next_event()? {
//!                 show(&stream.decode_nested(bytes, span)?)?;
//!             }
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # What becomes of each event type
//!
//! | code | type | what it becomes |
//! | --- | --- | --- |
//! | 0, above 42, above 172 | unknown | [`Ignored`](EventData::Ignored) if its header says that it may be skipped, else [`Error::UnknownEvent`] |
//! | 1 | `START_V3` | [`Error::Unsupported`]: a log of MySQL 3.23 to 4.1 |
//! | 2 | `QUERY` | [`Query`](EventData::Query) with the session settings |
//! | 3 | `STOP` | [`Stop`](EventData::Stop) |
//! | 4 | `ROTATE` | [`Rotate`](EventData::Rotate); the stream goes on in that file |
//! | 5, 13, 14 | `INTVAR`, `RAND`, `USER_VAR` | [`StatementContext`](EventData::StatementContext) |
//! | 6, 8 to 12, 17, 18 | `LOAD` and the other events of `LOAD DATA` | [`StatementContext`](EventData::StatementContext) |
//! | 7, 28, 36, 37 | `SLAVE`, `IGNORABLE`, `TRANSACTION_CONTEXT`, `VIEW_CHANGE` | [`Ignored`](EventData::Ignored) |
//! | 15 | `FORMAT_DESCRIPTION` | [`FormatDescription`](EventData::FormatDescription); decides about checksums, forgets the table maps |
//! | 16 | `XID` | [`Xid`](EventData::Xid) |
//! | 19 | `TABLE_MAP` | [`TableMap`](EventData::TableMap), kept with its decoding plan |
//! | 20 to 22 | `PRE_GA_*_ROWS` | [`Error::Unsupported`]: only development versions of MySQL 5.1 wrote them, with the null bits of the server's own record, of which the log does not say how many there are (`pack_row_old` in `sql/rpl_record_old.cc` of MySQL 5.5) |
//! | 23 to 25, 30 to 32 | `WRITE_ROWS`, `UPDATE_ROWS`, `DELETE_ROWS`, both versions | [`Rows`](EventData::Rows) with the table map |
//! | 26 | `INCIDENT` | [`Incident`](EventData::Incident) |
//! | 27, 41 | `HEARTBEAT`, `HEARTBEAT_V2` | [`Heartbeat`](EventData::Heartbeat) |
//! | 29 | `ROWS_QUERY` | [`RowsQuery`](EventData::RowsQuery) |
//! | 33, 34, 42 | `GTID`, `ANONYMOUS_GTID`, `GTID_TAGGED` | [`Gtid`](EventData::Gtid) |
//! | 35 | `PREVIOUS_GTIDS` | [`PreviousGtids`](EventData::PreviousGtids); [`GtidSet::decode`] reads them |
//! | 38 | `XA_PREPARE` | [`XaPrepare`](EventData::XaPrepare) |
//! | 39 | `PARTIAL_UPDATE_ROWS` | [`Rows`](EventData::Rows) with differences of JSON documents |
//! | 40 | `TRANSACTION_PAYLOAD` | [`TransactionPayload`](EventData::TransactionPayload), taken apart by [`PayloadReader`](event::PayloadReader) |
//! | 160 | MariaDB `ANNOTATE_ROWS` | [`RowsQuery`](EventData::RowsQuery) |
//! | 161 | MariaDB `BINLOG_CHECKPOINT` | [`MariaDbBinlogCheckpoint`](EventData::MariaDbBinlogCheckpoint) |
//! | 162 | MariaDB `GTID` | [`MariaDbGtid`](EventData::MariaDbGtid) |
//! | 163 | MariaDB `GTID_LIST` | [`MariaDbGtidList`](EventData::MariaDbGtidList) |
//! | 164 | MariaDB `START_ENCRYPTION` | [`Error::Unsupported`] in a file; [`Ignored`](EventData::Ignored) from a connection, which gets the events decrypted |
//! | 165 | MariaDB `QUERY_COMPRESSED` | decompressed, [`Query`](EventData::Query) |
//! | 166 to 171 | MariaDB compressed rows, both versions | decompressed, [`Rows`](EventData::Rows) |
//! | 172 | MariaDB `PARTIAL_ROW_DATA` | [`RowsFragment`](EventData::RowsFragment); the last of a rows event's fragments comes as the [`Rows`](EventData::Rows) of all |

#[cfg(feature = "client")]
pub mod client;
mod error;
pub mod event;
pub mod file;
pub mod gtid;
pub mod position;
pub mod row;
pub mod stream;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod txn;
pub mod value;
pub mod wire;

#[cfg(feature = "client")]
pub use client::BinlogClient;
pub use error::{Error, ErrorClass, EventContext};
pub use event::{Event, EventData};
pub use gtid::{Gtid, GtidPos, GtidSet};
pub use position::{BinlogPosition, Coordinate};
pub use stream::EventStream;
pub use value::Value;
