//! Events: the common header, and one file per kind of body, bytes in, a view of them out.
//!
//! A body is what lies between the common header and the checksum. [`EventStream`](crate::stream::EventStream) cuts it
//! out and calls the parser that fits.

mod checksum;
mod failure;
mod format_description;
mod gtid;
mod header;
mod heartbeat;
mod incident;
pub mod mariadb;
mod payload;
mod query;
mod raw;
mod rotate;
pub mod rows;
pub mod table_map;
mod xid;

pub use checksum::ChecksumAlgorithm;
pub use format_description::FormatDescription;
pub use gtid::{GtidEvent, LogicalClock};
pub use header::{EventHeader, EventType};
pub use heartbeat::Heartbeat;
pub use incident::Incident;
pub use payload::{PayloadBytes, PayloadCompression, PayloadReader, TransactionPayload};
pub use query::{Query, QueryCharset, QueryStatus};
pub use raw::{RawEvent, SpilledEvent, SpilledPart};
pub use rotate::Rotate;
pub use xid::{XaId, XaPrepare};

pub(crate) use checksum::{CHECKSUM_SIZE, of_format_description, split as split_checksum};
pub(crate) use failure::Failure;
pub(crate) use raw::{SPILL_ABOVE, SpillWriter};
pub(crate) use xid::parse_xid;

use crate::error::{Error, EventContext};
use crate::row::RowError;
use crate::wire::DecodeError;
use mariadb::{MariaDbGtidEvent, MariaDbGtidList, RowsFragment};
use rows::RowsEvent;
use table_map::TableMap;

/// One event of the log.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The common header as it came.
    pub header: EventHeader,
    /// Name of the file that `position` and `end` are in.
    pub file: &'a str,
    /// Offset of the event in its file, bytes. An event without a place of its own (artificial ones, heartbeats) has
    /// the position that the stream had reached; an event inside a compressed transaction has that of the payload event.
    pub position: u64,
    /// Offset behind the event, bytes, with the same exceptions.
    pub end: u64,
    /// What the event says.
    pub data: EventData<'a>,
}

impl Event<'_> {
    /// Where the event is.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span { position: self.position, end: self.end }
    }

    /// What an error about this event says of it.
    #[must_use]
    pub fn context(&self) -> EventContext {
        EventContext {
            file: self.file.to_owned(),
            position: self.position,
            event_type: Some(self.header.event_type),
            server_id: self.header.server_id,
            end: Some(self.end),
        }
    }

    /// The error for a part of this event that was decoded later, such as the start of its rows or its GTID set.
    #[must_use]
    pub fn decode_error(&self, source: DecodeError) -> Error {
        Failure::from(source).at(self.context())
    }

    /// The error for a row of this event.
    #[must_use]
    pub fn row_error(&self, table: &TableMap, source: RowError) -> Error {
        let table = format!("{}.{}", table.database(), table.table());
        Error::Row { at: Box::new(self.context()), table, source }
    }
}

/// The place of an event in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset of the event, bytes.
    pub position: u64,
    /// Offset behind it, bytes.
    pub end: u64,
}

/// What an event says.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum EventData<'a> {
    /// How the events that follow are laid out.
    FormatDescription(&'a FormatDescription),
    /// The log continues elsewhere.
    Rotate(Rotate<'a>),
    /// The server shut down.
    Stop,
    /// A MySQL transaction begins, with or without GTID.
    Gtid(GtidEvent),
    /// MySQL: GTIDs of all earlier files, still encoded.
    PreviousGtids(&'a [u8]),
    /// A statement.
    Query(Query<'a>),
    /// The columns behind a table id.
    TableMap(&'a TableMap),
    /// Changed rows.
    Rows {
        /// The rows, not yet decoded.
        rows: RowsEvent<'a>,
        /// Their columns.
        table: &'a TableMap,
    },
    /// A transaction is committed; the number of it.
    Xid(u64),
    /// A transaction is prepared.
    XaPrepare(XaPrepare<'a>),
    /// Text of the statement that made the rows that follow.
    RowsQuery(&'a [u8]),
    /// A sign of life.
    Heartbeat(Heartbeat<'a>),
    /// A compressed transaction; [`PayloadReader`] takes it apart.
    TransactionPayload(TransactionPayload<'a>),
    /// The server could not log something.
    Incident(Incident<'a>),
    /// A part of statement-based logging: variables, seeds, `LOAD DATA`. Row-based logging has none.
    StatementContext,
    /// A MariaDB transaction begins.
    MariaDbGtid(MariaDbGtidEvent<'a>),
    /// MariaDB: GTID position at the start of the file.
    MariaDbGtidList(MariaDbGtidList<'a>),
    /// MariaDB: name of the oldest file that crash recovery needs.
    MariaDbBinlogCheckpoint(&'a [u8]),
    /// MariaDB: a part of a rows event. The last part comes as the [`Rows`](Self::Rows) of all of them: its header is that of
    /// the last fragment with the type of the rows event, and its place begins where the first fragment does.
    RowsFragment(RowsFragment<'a>),
    /// Nothing that concerns a reader: known and without meaning here, or unknown and marked as ignorable.
    Ignored,
}
