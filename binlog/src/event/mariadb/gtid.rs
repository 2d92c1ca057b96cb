//! MariaDB's `GTID_EVENT` and `GTID_LIST_EVENT`.
//!
//! ```text
//! GTID:       sequence         u64le
//!             domain_id        u32le
//!             flags            u8
//!             commit_id        u64le                     flags 2
//!             xid              u32le, u8, u8, bytes      flags 64 or 128: format, two lengths, both parts
//!             extra_flags      u8                        if anything is left; 0 is padding
//!             extra_engines    u8                        extra_flags 1
//!             start_sequence   u64le                     extra_flags 4 or 8
//!             thread_id        u32le                     extra_flags 16
//!
//! GTID_LIST:  count            u32le                     the upper 4 bits are flags
//!             entries          count times: domain_id u32le, server_id u32le, sequence u64le
//! ```
//!
//! The server id of a GTID is that of the event's header.
//!
//! Source: MariaDB 11.8, `Gtid_log_event` and `Gtid_list_log_event` in `sql/log_event.h`, `sql/log_event.cc`.

use crate::event::xid::{XaId, part_length};
use crate::gtid::MariaDbGtid;
use crate::wire::{Cursor, DecodeError};

/// The start of a transaction, or of a statement of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbGtidEvent<'a> {
    /// The GTID of the transaction.
    pub gtid: MariaDbGtid,
    /// Flags: [`Self::STANDALONE`] and the like.
    pub flags: u8,
    /// Transactions with the same id were committed together.
    pub commit_id: Option<u64>,
    /// The XA transaction, at its prepare and its completion.
    pub xid: Option<XaId<'a>>,
    /// The part of an `ALTER TABLE` that was logged in two parts.
    pub alter: Option<AlterPhase>,
    /// Connection id of the session on the server of origin, where the server writes it.
    pub thread_id: Option<u32>,
}

/// A part of an `ALTER TABLE` under `binlog_alter_two_phase`: the statement comes twice, and only the second one says
/// what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlterPhase {
    /// The statement began; the table has not changed.
    Start,
    /// The statement that began at the GTID of this sequence number took effect.
    Commit(u64),
    /// The statement that began at the GTID of this sequence number had no effect.
    Rollback(u64),
}

impl<'a> MariaDbGtidEvent<'a> {
    /// One event follows, and no end of a transaction.
    pub const STANDALONE: u8 = 1;
    /// `commit_id` is there.
    pub const GROUP_COMMIT: u8 = 2;
    /// The transaction can be rolled back.
    pub const TRANSACTIONAL: u8 = 4;
    /// The transaction holds DDL.
    pub const DDL: u8 = 32;
    /// The transaction ends with `XA PREPARE`.
    pub const XA_PREPARED: u8 = 64;
    /// What follows is `XA COMMIT` or `XA ROLLBACK`.
    pub const XA_COMPLETED: u8 = 128;

    /// Parses a body; `server_id` is that of the header.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Invalid`] for an XA id above 64 bytes.
    pub fn parse(body: &'a [u8], server_id: u32) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let sequence = cursor.u64_le("sequence")?;
        let domain = cursor.u32_le("domain_id")?;
        let flags = cursor.u8("flags")?;
        let mut gtid = Self {
            gtid: MariaDbGtid { domain, server: server_id, sequence },
            flags,
            commit_id: None,
            xid: None,
            alter: None,
            thread_id: None,
        };
        if flags & Self::GROUP_COMMIT != 0 {
            gtid.commit_id = Some(cursor.u64_le("commit_id")?);
        }
        if flags & (Self::XA_PREPARED | Self::XA_COMPLETED) != 0 {
            let format_id = cursor.u32_le("format_id")?;
            let gtrid_length = part_length(cursor.u8("gtrid_length")?.into(), "gtrid_length")?;
            let bqual_length = part_length(cursor.u8("bqual_length")?.into(), "bqual_length")?;
            let gtrid = cursor.take(gtrid_length, "gtrid")?;
            let bqual = cursor.take(bqual_length, "bqual")?;
            gtid.xid = Some(XaId { format_id, gtrid, bqual });
        }
        if cursor.is_empty() {
            return Ok(gtid);
        }
        let extra = cursor.u8("extra_flags")?;
        if extra & EXTRA_ENGINES != 0 {
            cursor.u8("extra_engines")?;
        }
        if extra & START_ALTER != 0 {
            gtid.alter = Some(AlterPhase::Start);
        }
        if extra & (COMMIT_ALTER | ROLLBACK_ALTER) != 0 {
            let start = cursor.u64_le("start_sequence")?;
            gtid.alter = Some(if extra & COMMIT_ALTER == 0 {
                AlterPhase::Rollback(start)
            } else {
                AlterPhase::Commit(start)
            });
        }
        if extra & THREAD_ID != 0 {
            gtid.thread_id = Some(cursor.u32_le("thread_id")?);
        }
        Ok(gtid)
    }

    /// Whether one event follows and no end of a transaction.
    #[must_use]
    pub const fn is_standalone(&self) -> bool {
        self.flags & Self::STANDALONE != 0
    }
}

const EXTRA_ENGINES: u8 = 1;
const START_ALTER: u8 = 2;
const COMMIT_ALTER: u8 = 4;
const ROLLBACK_ALTER: u8 = 8;
const THREAD_ID: u8 = 16;

/// GTID position at the start of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbGtidList<'a> {
    entries: &'a [[u8; 16]],
}

impl<'a> MariaDbGtidList<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer entries follow than the count says.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        const COUNT: u32 = 0x0fff_ffff;
        let mut cursor = Cursor::new(body);
        let count = cursor.u32_le("count")? & COUNT;
        let (entries, _) = cursor.peek().as_chunks::<16>();
        match usize::try_from(count).ok().and_then(|count| entries.get(..count)) {
            Some(entries) => Ok(Self { entries }),
            None => Err(DecodeError::Truncated {
                field: "entries",
                needed: u64::from(count) * 16,
                left: cursor.left() as u64,
            }),
        }
    }

    /// The entries in the order of the log. A domain comes once per server that wrote in it; its last entry is the
    /// current one.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = MariaDbGtid> + 'a {
        self.entries.iter().map(|[d0, d1, d2, d3, s0, s1, s2, s3, sequence @ ..]| MariaDbGtid {
            domain: u32::from_le_bytes([*d0, *d1, *d2, *d3]),
            server: u32::from_le_bytes([*s0, *s1, *s2, *s3]),
            sequence: u64::from_le_bytes(*sequence),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(flags: u8) -> Vec<u8> {
        let mut body = 77_u64.to_le_bytes().to_vec();
        body.extend(3_u32.to_le_bytes());
        body.push(flags);
        body
    }

    #[test]
    fn padding_says_nothing() {
        let mut body = start(MariaDbGtidEvent::STANDALONE | MariaDbGtidEvent::DDL);
        body.extend([0; 6]);
        let gtid = MariaDbGtidEvent::parse(&body, 9).unwrap();
        assert_eq!(gtid.gtid, MariaDbGtid { domain: 3, server: 9, sequence: 77 });
        assert!(gtid.is_standalone());
        assert_eq!((gtid.commit_id, gtid.xid, gtid.alter), (None, None, None));
    }

    #[test]
    fn every_optional_field_is_read_and_missed_when_cut() {
        let mut body = start(MariaDbGtidEvent::GROUP_COMMIT | MariaDbGtidEvent::XA_PREPARED);
        body.extend(5_u64.to_le_bytes());
        body.extend(b"\x01\0\0\0\x02\x01abc");
        body.extend([EXTRA_ENGINES | COMMIT_ALTER | THREAD_ID, 2]);
        body.extend(70_u64.to_le_bytes());
        body.extend(12_u32.to_le_bytes());
        let gtid = MariaDbGtidEvent::parse(&body, 9).unwrap();
        assert_eq!(gtid.commit_id, Some(5));
        assert_eq!(gtid.xid, Some(XaId { format_id: 1, gtrid: b"ab", bqual: b"c" }));
        assert_eq!((gtid.alter, gtid.thread_id), (Some(AlterPhase::Commit(70)), Some(12)));
        // Without its last part the event is that of an older server.
        for len in (0..30).chain(31..body.len()) {
            assert!(MariaDbGtidEvent::parse(&body[..len], 9).is_err(), "{len}");
        }
    }

    #[test]
    fn a_list_has_as_many_entries_as_it_says() {
        let mut body = (2_u32 | 1 << 28).to_le_bytes().to_vec();
        for entry in [1_u8, 2] {
            body.extend([entry, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        }
        let list = MariaDbGtidList::parse(&body).unwrap();
        let expected = [1, 2].map(|domain| MariaDbGtid { domain, server: 9, sequence: 256 });
        assert!(list.entries().eq(expected));
        for len in 0..body.len() {
            assert!(MariaDbGtidList::parse(&body[..len]).is_err(), "{len}");
        }
    }
}
