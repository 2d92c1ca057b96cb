//! `XID_EVENT` and `XA_PREPARE_LOG_EVENT`: the ends of transactions.
//!
//! ```text
//! XID:         xid            u64le
//!
//! XA_PREPARE:  one_phase      u8
//!              format_id      u32le
//!              gtrid_length   u32le
//!              bqual_length   u32le
//!              gtrid, bqual   bytes
//! ```
//!
//! Source: MySQL 8.4, `Xid_event` and `XA_prepare_event` in `libs/mysql/binlog/event/control_events.h`.

use std::fmt;

use crate::wire::{Cursor, DecodeError};

/// The number of a committed transaction.
pub(crate) fn parse_xid(body: &[u8]) -> Result<u64, DecodeError> {
    Cursor::new(body).u64_le("xid")
}

/// Identifier of an XA transaction. It prints as the server writes it into `XA` statements:
/// `X'677472',X'62',1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct XaId<'a> {
    /// Format id, 1 unless the client chose another.
    pub format_id: u32,
    /// Global part, at most 64 bytes.
    pub gtrid: &'a [u8],
    /// Branch qualifier, at most 64 bytes, often empty.
    pub bqual: &'a [u8],
}

impl fmt::Display for XaId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.gtrid, self.bqual] {
            f.write_str("X'")?;
            for byte in part {
                write!(f, "{byte:02x}")?;
            }
            f.write_str("',")?;
        }
        write!(f, "{}", self.format_id)
    }
}

/// The end of the part of an XA transaction that was logged at `XA PREPARE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XaPrepare<'a> {
    /// `XA COMMIT … ONE PHASE`: this is the commit, no other statement follows.
    pub one_phase: bool,
    /// The transaction.
    pub xid: XaId<'a>,
}

impl<'a> XaPrepare<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Invalid`] for a part above 64 bytes.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let one_phase = cursor.u8("one_phase")? != 0;
        let format_id = cursor.u32_le("format_id")?;
        let gtrid_length = part_length(cursor.u32_le("gtrid_length")?, "gtrid_length")?;
        let bqual_length = part_length(cursor.u32_le("bqual_length")?, "bqual_length")?;
        let gtrid = cursor.take(gtrid_length, "gtrid")?;
        let bqual = cursor.take(bqual_length, "bqual")?;
        Ok(Self { one_phase, xid: XaId { format_id, gtrid, bqual } })
    }
}

/// Checks the length of a part: `MAXGTRIDSIZE` and `MAXBQUALSIZE` are 64.
pub(crate) fn part_length(length: u32, field: &'static str) -> Result<usize, DecodeError> {
    match usize::try_from(length) {
        Ok(length @ 0..=64) => Ok(length),
        Ok(_) | Err(_) => Err(DecodeError::Invalid { field, value: length.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_xa_id_prints_as_in_xa_statements() {
        let body = b"\x01\x02\0\0\0\x03\0\0\0\x01\0\0\0gtrb";
        let prepare = XaPrepare::parse(body).unwrap();
        assert!(prepare.one_phase);
        assert_eq!(prepare.xid.to_string(), "X'677472',X'62',2");
        for len in 0..body.len() {
            assert!(XaPrepare::parse(&body[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn a_part_above_64_bytes_is_refused() {
        let mut body = vec![0, 1, 0, 0, 0, 65, 0, 0, 0, 0, 0, 0, 0];
        body.extend([0; 65]);
        assert_eq!(
            XaPrepare::parse(&body),
            Err(DecodeError::Invalid { field: "gtrid_length", value: 65 })
        );
    }
}
