//! `GTID_LOG_EVENT`, `ANONYMOUS_GTID_LOG_EVENT` and `GTID_TAGGED_LOG_EVENT`: the start of a transaction.
//!
//! ```text
//! GTID, ANONYMOUS_GTID:
//!   flags                u8       1: may contain statement-based changes
//!   uuid                 16 bytes
//!   gno                  u64le
//!   -- the rest as far as the server's version writes it
//!   clock_type           u8       2
//!   last_committed       u64le
//!   sequence_number      u64le
//!   immediate_commit     7 bytes  microseconds; bit 55: the original one follows, 7 bytes
//!   transaction_length   lenenc   bytes, this event included
//!   immediate_version    u32le    bit 31: the original one follows, u32le
//!
//! GTID_TAGGED: MySQL's tagged serialisation of the same fields
//!   version              varint   1
//!   size                 varint
//!   last_needed_field    varint   fields with higher numbers may be ignored when unknown
//!   fields               (number varint, value), ascending: 0 flags, 1 uuid (16 varints), 2 gno*, 3 tag (length,
//!                        bytes), 4 last_committed*, 5 sequence_number*, 6 immediate_commit, 7 original_commit,
//!                        8 transaction_length, 9 immediate_version, 10 original_version; * zig-zag signed
//! ```
//!
//! A varint's first byte ends in as many 1-bits as bytes follow.
//!
//! Source: MySQL 8.4, `Gtid_event` in `libs/mysql/binlog/event/control_events.h`, `mysql::serialization` in
//! `libs/mysql/serialization`.

use crate::gtid::{Gtid, MAX_NUMBER, Tag, Uuid};
use crate::wire::{Cursor, DecodeError};

/// The start of a MySQL transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GtidEvent {
    /// The GTID of the transaction; `None` for an anonymous one (`gtid_mode=OFF`).
    pub gtid: Option<Gtid>,
    /// Place in the order of commits of the file.
    pub clock: Option<LogicalClock>,
    /// When the transaction was committed on the server that wrote this log: microseconds since 1970-01-01 UTC.
    /// MySQL 8.0.1 and later.
    pub immediate_commit_timestamp: Option<u64>,
    /// When the transaction was committed on the server of origin: microseconds since 1970-01-01 UTC. Equals
    /// the immediate one on that server itself.
    pub original_commit_timestamp: Option<u64>,
    /// Size of the transaction in the log, this event included, bytes. MySQL 8.0.2 and later.
    pub transaction_length: Option<u64>,
    /// Version of the server that wrote this log, such as 80406. MySQL 8.0.14 and later.
    pub immediate_server_version: Option<u32>,
    /// Version of the server of origin.
    pub original_server_version: Option<u32>,
}

/// Which transactions could run side by side on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogicalClock {
    /// The latest transaction that this one depends on.
    pub last_committed: u64,
    /// This transaction, numbered from 1 in each file.
    pub sequence_number: u64,
}

impl GtidEvent {
    /// Parses the body of a `GTID` or `ANONYMOUS_GTID`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Invalid`] for a GTID numbered 0.
    pub fn parse(body: &[u8], is_anonymous: bool) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        cursor.u8("flags")?;
        let source = Uuid::from_bytes(cursor.array("uuid")?);
        let number = cursor.u64_le("gno")?;
        let mut gtid = Self::default();
        if !is_anonymous {
            gtid.gtid = Some(Gtid { source, tag: Tag::NONE, number: checked_number(number)? });
        }
        if cursor.is_empty() || cursor.u8("clock_type")? != LOGICAL_CLOCK {
            return Ok(gtid);
        }
        gtid.clock = Some(LogicalClock {
            last_committed: cursor.u64_le("last_committed")?,
            sequence_number: cursor.u64_le("sequence_number")?,
        });
        if cursor.is_empty() {
            return Ok(gtid);
        }
        let immediate = cursor.uint_le(7, "immediate_commit_timestamp")?;
        let original = if immediate & ORIGINAL_TIMESTAMP_FOLLOWS == 0 {
            immediate
        } else {
            cursor.uint_le(7, "original_commit_timestamp")?
        };
        gtid.immediate_commit_timestamp = Some(immediate & !ORIGINAL_TIMESTAMP_FOLLOWS);
        gtid.original_commit_timestamp = Some(original);
        if cursor.is_empty() {
            return Ok(gtid);
        }
        gtid.transaction_length = Some(cursor.lenenc("transaction_length")?);
        if cursor.is_empty() {
            return Ok(gtid);
        }
        let immediate = cursor.u32_le("immediate_server_version")?;
        let original = if immediate & ORIGINAL_VERSION_FOLLOWS == 0 {
            immediate
        } else {
            cursor.u32_le("original_server_version")?
        };
        gtid.immediate_server_version = Some(immediate & !ORIGINAL_VERSION_FOLLOWS);
        gtid.original_server_version = Some(original);
        Ok(gtid)
    }

    /// Parses the body of a `GTID_TAGGED`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Invalid`] for a number or a tag that is none,
    /// [`DecodeError::Unsupported`] for another version or for an unknown field that may not be ignored.
    pub fn parse_tagged(body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        if varint(&mut cursor, "serialization version")? != 1 {
            return Err(DecodeError::Unsupported { what: "a later serialization version" });
        }
        varint(&mut cursor, "serialization size")?;
        let last_needed = varint(&mut cursor, "last needed field")?;
        let mut gtid = Self::default();
        let (mut uuid, mut tag, mut number) = ([0; 16], Tag::NONE, 0);
        let (mut last_committed, mut sequence_number) = (None, None);
        while !cursor.is_empty() {
            match varint(&mut cursor, "field number")? {
                0 => drop(varint(&mut cursor, "flags")?),
                1 => {
                    for byte in &mut uuid {
                        *byte = narrow(varint(&mut cursor, "uuid")?, "uuid")?;
                    }
                }
                2 => number = positive(&mut cursor, "gno")?,
                3 => tag = read_tag(&mut cursor)?,
                4 => last_committed = Some(positive(&mut cursor, "last_committed")?),
                5 => sequence_number = Some(positive(&mut cursor, "sequence_number")?),
                6 => {
                    let micros = varint(&mut cursor, "immediate_commit_timestamp")?;
                    gtid.immediate_commit_timestamp = Some(micros);
                }
                7 => {
                    let micros = varint(&mut cursor, "original_commit_timestamp")?;
                    gtid.original_commit_timestamp = Some(micros);
                }
                8 => gtid.transaction_length = Some(varint(&mut cursor, "transaction_length")?),
                9 => {
                    let version = varint(&mut cursor, "immediate_server_version")?;
                    gtid.immediate_server_version =
                        Some(narrow(version, "immediate_server_version")?);
                }
                10 => {
                    let version = varint(&mut cursor, "original_server_version")?;
                    gtid.original_server_version =
                        Some(narrow(version, "original_server_version")?);
                }
                unknown if unknown <= last_needed => {
                    return Err(DecodeError::Unsupported { what: "a field of a later version" });
                }
                // Fields ascend and this one may be ignored, so all that follow may be.
                _ => break,
            }
        }
        let source = Uuid::from_bytes(uuid);
        gtid.gtid = Some(Gtid { source, tag, number: checked_number(number)? });
        gtid.original_commit_timestamp =
            gtid.original_commit_timestamp.or(gtid.immediate_commit_timestamp);
        gtid.original_server_version =
            gtid.original_server_version.or(gtid.immediate_server_version);
        if let (Some(last_committed), Some(sequence_number)) = (last_committed, sequence_number) {
            gtid.clock = Some(LogicalClock { last_committed, sequence_number });
        }
        Ok(gtid)
    }
}

/// Code of the only clock that was ever written.
const LOGICAL_CLOCK: u8 = 2;
/// Bit 55 of the immediate commit timestamp.
const ORIGINAL_TIMESTAMP_FOLLOWS: u64 = 1 << 55;
/// Bit 31 of the immediate server version.
const ORIGINAL_VERSION_FOLLOWS: u32 = 1 << 31;

fn checked_number(number: u64) -> Result<u64, DecodeError> {
    match number {
        1..=MAX_NUMBER => Ok(number),
        _ => Err(DecodeError::Invalid { field: "gno", value: number }),
    }
}

fn varint(cursor: &mut Cursor<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let first = cursor.u8(field)?;
    match first.trailing_ones() {
        8 => cursor.u64_le(field),
        more => {
            let rest = cursor.uint_le(more as usize, field)?;
            Ok(u64::from(first) >> (more + 1) | rest << (7 - more))
        }
    }
}

/// Reads a zig-zag signed number that may not be negative.
fn positive(cursor: &mut Cursor<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let zigzag = varint(cursor, field)?;
    if zigzag & 1 == 0 {
        Ok(zigzag >> 1)
    } else {
        Err(DecodeError::Invalid { field, value: zigzag })
    }
}

fn narrow<T: TryFrom<u64>>(value: u64, field: &'static str) -> Result<T, DecodeError> {
    T::try_from(value).map_err(|_| DecodeError::Invalid { field, value })
}

fn read_tag(cursor: &mut Cursor<'_>) -> Result<Tag, DecodeError> {
    let length = varint(cursor, "tag")?;
    let bytes = cursor.take(narrow(length, "tag length")?, "tag")?;
    Tag::from_bytes(bytes).ok_or(DecodeError::Invalid { field: "tag of length", value: length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_an_older_server_does_not_write_are_none() {
        let mut body = vec![1];
        body.extend(1..=16);
        body.extend(77_u64.to_le_bytes());
        let plain = GtidEvent::parse(&body, false).unwrap();
        let uuid = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        assert_eq!(plain.gtid, Some(Gtid::new(Uuid::from_bytes(uuid), 77)));
        assert_eq!(plain.clock, None);
        body.push(2);
        body.extend(5_u64.to_le_bytes());
        body.extend(6_u64.to_le_bytes());
        let clock = LogicalClock { last_committed: 5, sequence_number: 6 };
        assert_eq!(GtidEvent::parse(&body, false).unwrap().clock, Some(clock));
        body.extend(&(1_000_u64 | 1 << 55).to_le_bytes()[..7]);
        body.extend(&900_u64.to_le_bytes()[..7]);
        body.push(250);
        body.extend((80_400_u32 | 1 << 31).to_le_bytes());
        body.extend(80_300_u32.to_le_bytes());
        let full = GtidEvent::parse(&body, false).unwrap();
        assert_eq!(full.immediate_commit_timestamp, Some(1_000));
        assert_eq!(full.original_commit_timestamp, Some(900));
        assert_eq!(full.transaction_length, Some(250));
        assert_eq!(full.immediate_server_version, Some(80_400));
        assert_eq!(full.original_server_version, Some(80_300));
        for len in 0..25 {
            assert!(GtidEvent::parse(&body[..len], false).is_err(), "{len}");
        }
        for len in (26..42).chain(43..56).chain(58..body.len()) {
            assert!(GtidEvent::parse(&body[..len], false).is_err(), "{len}");
        }
    }

    #[test]
    fn a_gtid_is_numbered_from_one() {
        let body = [0; 25];
        let error = DecodeError::Invalid { field: "gno", value: 0 };
        assert_eq!(GtidEvent::parse(&body, false), Err(error));
        assert_eq!(GtidEvent::parse(&body, true).unwrap().gtid, None);
    }

    #[test]
    fn varints_say_their_length_in_the_low_bits() {
        let table: [(&[u8], u64); 5] = [
            (&[0x02], 1),
            (&[0xad, 0x03], 0xeb),
            (&[0x7f, 1, 2, 3, 4, 5, 6, 7], 0x0007_0605_0403_0201),
            (&[0xff, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
            (&[0x83, 0x12, 0x0b], 90_704),
        ];
        for (bytes, value) in table {
            assert_eq!(varint(&mut Cursor::new(bytes), "n"), Ok(value), "{bytes:x?}");
        }
    }

    #[test]
    fn a_tagged_gtid_is_read_as_mysql_writes_it() {
        let mut body = b"\x02\xfc\x14\x00\x00\x02".to_vec();
        body.extend((1_u8..=16).map(|byte| byte << 1));
        body.extend(b"\x04\x04\x06\x0amytag\x08\x99\x06\x0a\xb9\x06");
        body.extend(b"\x0c\x7f\xbe\xec\x3c\xe4\x72\x61\x06\x10\x9d\x04\x12\x83\x12\x0b");
        // `99 06` is 0x186 zig-zag, 0xc3.
        let gtid = GtidEvent::parse_tagged(&body).unwrap();
        let text = "01020304-0506-0708-090a-0b0c0d0e0f10:mytag:1";
        assert_eq!(gtid.gtid.unwrap().to_string(), text);
        assert_eq!(gtid.clock, Some(LogicalClock { last_committed: 211, sequence_number: 215 }));
        assert_eq!(gtid.immediate_commit_timestamp, Some(0x0006_6172_e43c_ecbe));
        assert_eq!(gtid.original_commit_timestamp, gtid.immediate_commit_timestamp);
        assert_eq!(gtid.transaction_length, Some(295));
        assert_eq!(gtid.original_server_version, Some(90_704));
    }

    #[test]
    fn an_unknown_field_is_ignored_only_when_it_may_be() {
        let with = |last_needed: u8| {
            let mut body = vec![0x02, 0x02, last_needed << 1, 0x04, 0x04];
            body.extend([12 << 1, 1, 2, 3]);
            body
        };
        assert_eq!(GtidEvent::parse_tagged(&with(11)).unwrap().gtid.unwrap().number, 1);
        assert!(matches!(GtidEvent::parse_tagged(&with(12)), Err(DecodeError::Unsupported { .. })));
    }

    #[test]
    fn a_tag_has_only_the_characters_of_tags() {
        let body = b"\x02\x02\x00\x04\x04\x06\x04A'";
        let error = DecodeError::Invalid { field: "tag of length", value: 2 };
        assert_eq!(GtidEvent::parse_tagged(body), Err(error));
    }
}
