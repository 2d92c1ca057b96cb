//! The common header in front of every event, and the names of the event types.
//!
//! ```text
//! timestamp      u32le   seconds since 1970-01-01 UTC; 0 in events that the server makes up while sending
//! event_type     u8
//! server_id      u32le   of the server the event was first written on
//! event_size     u32le   header, body and checksum together, bytes
//! end_position   u32le   where the next event begins, modulo 2^32; 0 when the event has no place in the file
//! flags          u16le
//! ```
//!
//! Source: MySQL 8.4, `Log_event_header` and `enum Log_event_type` in `libs/mysql/binlog/event/binlog_event.h`;
//! MariaDB 11.8, `Log_event_type` in `sql/log_event.h`.

use std::fmt;

use crate::wire::{Cursor, DecodeError};

/// Defines [`EventType`] with its codes and names, so that the three cannot drift apart.
macro_rules! event_types {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal;)*) => {
        /// What an event is. Names follow the servers' own, without `_EVENT`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventType {
            $($(#[$doc])* $variant,)*
            /// A code that neither server had when this was written.
            Other(u8),
        }

        impl EventType {
            /// Every type that has a name, in the order of the codes.
            pub const NAMED: &'static [Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            #[must_use]
            pub const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Other(code) => code,
                }
            }

            /// Whether events of the type are rows of a table.
            #[must_use]
            pub const fn is_rows(self) -> bool {
                matches!(self.code(), 20..=25 | 30..=32 | 39 | 166..=171)
            }

            /// The server's name of the type, `UNKNOWN_CODE` for one without.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(_) => "UNKNOWN_CODE",
                }
            }
        }

        impl From<u8> for EventType {
            #[inline]
            fn from(code: u8) -> Self {
                /// A table, since every event asks.
                #[expect(clippy::indexing_slicing, reason = "the compiler runs this, over all codes")]
                static TYPES: [EventType; 256] = {
                    let mut types = [EventType::Unknown; 256];
                    let mut code = 0_u8;
                    while code < u8::MAX {
                        code += 1;
                        types[code as usize] = match code {
                            $($code => EventType::$variant,)*
                            other => EventType::Other(other),
                        };
                    }
                    types
                };
                TYPES.get(usize::from(code)).copied().unwrap_or(Self::Other(code))
            }
        }
    };
}

event_types! {
    /// Never written; the code 0.
    Unknown = 0, "UNKNOWN";
    /// First event of a file up to MySQL 4.1.
    StartV3 = 1, "START_V3";
    /// A statement: DDL, BEGIN, COMMIT, XA, or DML when logging is statement-based.
    Query = 2, "QUERY";
    /// The server shut down; last event of a file.
    Stop = 3, "STOP";
    /// The log continues in another file.
    Rotate = 4, "ROTATE";
    /// An AUTO_INCREMENT or LAST_INSERT_ID value of the next statement.
    Intvar = 5, "INTVAR";
    /// LOAD DATA of MySQL 3.23.
    Load = 6, "LOAD";
    /// Never written.
    Slave = 7, "SLAVE";
    /// LOAD DATA of MySQL 4.0 and 4.1: first block of the file.
    CreateFile = 8, "CREATE_FILE";
    /// LOAD DATA: a further block of the file.
    AppendBlock = 9, "APPEND_BLOCK";
    /// LOAD DATA of MySQL 4.0: execution.
    ExecLoad = 10, "EXEC_LOAD";
    /// LOAD DATA: the file is not needed any more.
    DeleteFile = 11, "DELETE_FILE";
    /// LOAD DATA of MySQL 4.0 and 4.1, long form.
    NewLoad = 12, "NEW_LOAD";
    /// Seeds of RAND() for the next statement.
    Rand = 13, "RAND";
    /// A user variable that the next statement reads.
    UserVar = 14, "USER_VAR";
    /// First event of a file since MySQL 5.0: what the rest of the file looks like.
    FormatDescription = 15, "FORMAT_DESCRIPTION";
    /// Commit of a transaction.
    Xid = 16, "XID";
    /// LOAD DATA since MySQL 5.0: first block of the file.
    BeginLoadQuery = 17, "BEGIN_LOAD_QUERY";
    /// LOAD DATA since MySQL 5.0: the statement.
    ExecuteLoadQuery = 18, "EXECUTE_LOAD_QUERY";
    /// The columns behind a table id.
    TableMap = 19, "TABLE_MAP";
    /// Inserted rows as MySQL 5.1 wrote them before it was released.
    PreGaWriteRows = 20, "PRE_GA_WRITE_ROWS";
    /// Updated rows as MySQL 5.1 wrote them before it was released.
    PreGaUpdateRows = 21, "PRE_GA_UPDATE_ROWS";
    /// Deleted rows as MySQL 5.1 wrote them before it was released.
    PreGaDeleteRows = 22, "PRE_GA_DELETE_ROWS";
    /// Inserted rows, MySQL 5.1 to 5.5 and MariaDB.
    WriteRowsV1 = 23, "WRITE_ROWS_V1";
    /// Updated rows, MySQL 5.1 to 5.5 and MariaDB.
    UpdateRowsV1 = 24, "UPDATE_ROWS_V1";
    /// Deleted rows, MySQL 5.1 to 5.5 and MariaDB.
    DeleteRowsV1 = 25, "DELETE_ROWS_V1";
    /// Something happened on the server that the log does not tell.
    Incident = 26, "INCIDENT";
    /// Sign of life on an idle connection.
    Heartbeat = 27, "HEARTBEAT";
    /// Reserved for events that may be skipped.
    Ignorable = 28, "IGNORABLE";
    /// Text of the statement that made the rows that follow.
    RowsQuery = 29, "ROWS_QUERY";
    /// Inserted rows, MySQL 5.6 and later.
    WriteRows = 30, "WRITE_ROWS";
    /// Updated rows, MySQL 5.6 and later.
    UpdateRows = 31, "UPDATE_ROWS";
    /// Deleted rows, MySQL 5.6 and later.
    DeleteRows = 32, "DELETE_ROWS";
    /// Start of a transaction that has a GTID.
    Gtid = 33, "GTID";
    /// Start of a transaction without GTID.
    AnonymousGtid = 34, "ANONYMOUS_GTID";
    /// GTIDs of all earlier files.
    PreviousGtids = 35, "PREVIOUS_GTIDS";
    /// Group replication: write set of a transaction.
    TransactionContext = 36, "TRANSACTION_CONTEXT";
    /// Group replication: members changed.
    ViewChange = 37, "VIEW_CHANGE";
    /// XA PREPARE, the end of a prepared transaction's part.
    XaPrepare = 38, "XA_PREPARE";
    /// Updated rows whose JSON columns carry differences.
    PartialUpdateRows = 39, "PARTIAL_UPDATE_ROWS";
    /// A whole transaction, compressed.
    TransactionPayload = 40, "TRANSACTION_PAYLOAD";
    /// Sign of life with a position of 64 bits.
    HeartbeatV2 = 41, "HEARTBEAT_V2";
    /// Start of a transaction whose GTID has a tag.
    GtidTagged = 42, "GTID_TAGGED";
    /// MariaDB: text of the statement that made the rows that follow.
    MariaDbAnnotateRows = 160, "ANNOTATE_ROWS";
    /// MariaDB: oldest file that crash recovery needs.
    MariaDbBinlogCheckpoint = 161, "BINLOG_CHECKPOINT";
    /// MariaDB: start of a transaction or of a statement of its own.
    MariaDbGtid = 162, "MARIADB_GTID";
    /// MariaDB: GTID position at the start of the file.
    MariaDbGtidList = 163, "MARIADB_GTID_LIST";
    /// MariaDB: the rest of the file is encrypted.
    MariaDbStartEncryption = 164, "START_ENCRYPTION";
    /// MariaDB: a statement whose text is compressed.
    MariaDbQueryCompressed = 165, "QUERY_COMPRESSED";
    /// MariaDB: inserted rows, compressed, in the old form.
    MariaDbWriteRowsCompressedV1 = 166, "WRITE_ROWS_COMPRESSED_V1";
    /// MariaDB: updated rows, compressed, in the old form.
    MariaDbUpdateRowsCompressedV1 = 167, "UPDATE_ROWS_COMPRESSED_V1";
    /// MariaDB: deleted rows, compressed, in the old form.
    MariaDbDeleteRowsCompressedV1 = 168, "DELETE_ROWS_COMPRESSED_V1";
    /// MariaDB: inserted rows, compressed.
    MariaDbWriteRowsCompressed = 169, "WRITE_ROWS_COMPRESSED";
    /// MariaDB: updated rows, compressed.
    MariaDbUpdateRowsCompressed = 170, "UPDATE_ROWS_COMPRESSED";
    /// MariaDB: deleted rows, compressed.
    MariaDbDeleteRowsCompressed = 171, "DELETE_ROWS_COMPRESSED";
    /// MariaDB: a fragment of a rows event that was too large to be sent in one piece.
    MariaDbPartialRowData = 172, "PARTIAL_ROW_DATA";
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.code())
    }
}

/// The common header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// When the statement began on the server of origin: seconds since 1970-01-01 UTC. 0 in events made up by the
    /// sender.
    pub timestamp: u32,
    /// What the event is.
    pub event_type: EventType,
    /// `server_id` of the server the event was first written on.
    pub server_id: u32,
    /// Size of the whole event, header and checksum included, bytes.
    pub event_size: u32,
    /// Offset of the next event in the file, modulo 2^32; 0 when the event has no place in the file.
    pub end_position: u32,
    /// Flags: [`Self::IN_USE`], [`Self::ARTIFICIAL`], [`Self::IGNORABLE`] and others of no use to a reader.
    pub flags: u16,
}

impl EventHeader {
    /// Size of the header, bytes.
    pub const SIZE: usize = 19;
    /// In a format description: the server has the file open, or did not close it.
    pub const IN_USE: u16 = 0x01;
    /// The event was made up by the sender and is not in the file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// A reader that doesn't know the type may skip the event.
    pub const IGNORABLE: u16 = 0x80;

    /// Reads the header at the start of `event`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] below 19 bytes, [`DecodeError::Invalid`] for an `event_size` below 19.
    #[inline]
    pub fn parse(event: &[u8]) -> Result<Self, DecodeError> {
        // Where the length is known, no read checks for it.
        match event.first_chunk::<{ Self::SIZE }>() {
            Some(header) => Self::read(header),
            None => Self::read(event),
        }
    }

    #[inline(always)]
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let header = Self {
            timestamp: cursor.u32_le("timestamp")?,
            event_type: cursor.u8("event_type")?.into(),
            server_id: cursor.u32_le("server_id")?,
            event_size: cursor.u32_le("event_size")?,
            end_position: cursor.u32_le("end_position")?,
            flags: cursor.u16_le("flags")?,
        };
        if (header.event_size as usize) < Self::SIZE {
            return Err(DecodeError::Invalid {
                field: "event_size",
                value: header.event_size.into(),
            });
        }
        Ok(header)
    }

    /// Whether the sender made the event up.
    #[must_use]
    pub const fn is_artificial(&self) -> bool {
        self.flags & Self::ARTIFICIAL != 0
    }

    /// Whether a reader that doesn't know the type may skip the event.
    #[must_use]
    pub const fn is_ignorable(&self) -> bool {
        self.flags & Self::IGNORABLE != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_type_and_keeps_its_code() {
        for code in 0..=u8::MAX {
            assert_eq!(EventType::from(code).code(), code);
        }
        let named = (0..=42).chain(160..=172).collect::<Vec<u8>>();
        assert_eq!(EventType::NAMED.iter().map(|kind| kind.code()).collect::<Vec<_>>(), named);
        assert_eq!(EventType::from(43), EventType::Other(43));
        assert_eq!(EventType::from(19).to_string(), "TABLE_MAP (19)");
    }

    #[test]
    fn rows_events_are_those_with_rows_in_their_name() {
        for kind in EventType::NAMED {
            let rows = kind.name().contains("_ROWS") && *kind != EventType::MariaDbAnnotateRows;
            assert_eq!(kind.is_rows(), rows, "{kind}");
        }
    }

    #[test]
    fn a_short_header_names_the_field() {
        let bytes = [1, 0, 0, 0, 16, 2, 0, 0, 0, 31, 0, 0, 0, 99, 0, 0, 0, 0x80, 0];
        let header = EventHeader::parse(&bytes).unwrap();
        assert_eq!((header.timestamp, header.server_id, header.event_size), (1, 2, 31));
        assert_eq!((header.event_type, header.end_position), (EventType::Xid, 99));
        assert!(header.is_ignorable() && !header.is_artificial());
        for len in 0..bytes.len() {
            assert!(matches!(
                EventHeader::parse(&bytes[..len]),
                Err(DecodeError::Truncated { .. })
            ));
        }
        let mut small = bytes;
        small[9] = 18;
        assert_eq!(
            EventHeader::parse(&small),
            Err(DecodeError::Invalid { field: "event_size", value: 18 })
        );
    }
}
