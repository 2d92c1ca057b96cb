//! `HEARTBEAT_LOG_EVENT` and `HEARTBEAT_LOG_EVENT_V2`: signs of life on an idle connection.
//!
//! ```text
//! HEARTBEAT:     file       rest; the position is in the common header, modulo 2^32
//!
//! HEARTBEAT_V2:  fields     (type lenenc, length lenenc, data): 1 file, 2 position as lenenc; type 0 ends them
//! ```
//!
//! Source: MySQL 8.4, `codecs::binary::Heartbeat` in `libs/mysql/binlog/event/codecs/binary.cpp`.

use crate::wire::{Cursor, DecodeError};

/// How far the server has come in sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heartbeat<'a> {
    /// The file that the server is reading.
    pub file: Option<&'a [u8]>,
    /// Offset in that file, bytes. Everything before it was sent, or was skipped because the reader has it.
    pub position: Option<u64>,
}

impl<'a> Heartbeat<'a> {
    /// Parses the body of a `HEARTBEAT`; the position comes from the header.
    pub(crate) const fn parse_v1(body: &'a [u8]) -> Self {
        Self { file: if body.is_empty() { None } else { Some(body) }, position: None }
    }

    /// Parses the body of a `HEARTBEAT_V2`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] and [`DecodeError::Invalid`] inside a field.
    pub(crate) fn parse_v2(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let mut heartbeat = Self::default();
        while !cursor.is_empty() {
            match cursor.lenenc("heartbeat field type")? {
                0 => break,
                1 => heartbeat.file = Some(cursor.lenenc_bytes("file")?),
                2 => {
                    let data = cursor.lenenc_bytes("position")?;
                    heartbeat.position = Some(Cursor::new(data).lenenc("position")?);
                }
                _ => drop(cursor.lenenc_bytes("heartbeat field")?),
            }
        }
        Ok(heartbeat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_form_has_a_position_of_64_bits_and_skips_what_it_does_not_know() {
        let body = b"\x01\x05a.001\x07\x02xx\x02\x09\xfe\x01\0\0\0\x01\0\0\0\0";
        let expected = Heartbeat { file: Some(b"a.001"), position: Some(0x1_0000_0001) };
        assert_eq!(Heartbeat::parse_v2(body), Ok(expected));
    }

    #[test]
    fn a_field_cut_short_is_an_error() {
        for body in [&b"\x01\x05a.00"[..], b"\x02\x00", b"\x02\x02\xfc\x01", b"\x01"] {
            assert!(Heartbeat::parse_v2(body).is_err(), "{body:?}");
        }
    }
}
