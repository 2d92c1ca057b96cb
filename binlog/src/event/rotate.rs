//! `ROTATE_EVENT`: where the stream continues.
//!
//! ```text
//! position   u64le   offset of the next event, bytes from the start of `file`
//! file       rest    file name, no terminator
//! ```
//!
//! Source: MySQL 8.4, `Rotate_event` in `libs/mysql/binlog/event/control_events.h`.

use crate::wire::{Cursor, DecodeError};

/// The log continues elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// Offset of the next event in `file`, bytes.
    pub position: u64,
    /// Name of the next file, without a directory.
    pub file: &'a str,
}

impl<'a> Rotate<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside `position`, [`DecodeError::Empty`] for `file`, [`DecodeError::Unsupported`]
    /// for a name that is not UTF-8.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let position = cursor.u64_le("position")?;
        let file = cursor.rest();
        if file.is_empty() {
            return Err(DecodeError::Empty { field: "file" });
        }
        let file = std::str::from_utf8(file)
            .map_err(|_| DecodeError::Unsupported { what: "a file name that is not UTF-8" })?;
        Ok(Self { position, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"\x04\0\0\0\0\0\0\x01mysql-bin.000002";

    #[test]
    fn a_position_above_4_gib_is_kept() {
        let rotate = Rotate { position: 0x0100_0000_0000_0004, file: "mysql-bin.000002" };
        assert_eq!(Rotate::parse(BODY), Ok(rotate));
    }

    #[test]
    fn every_short_body_is_an_error_that_names_the_field() {
        for len in 0..8_u8 {
            let error = Rotate::parse(&BODY[..len.into()]).unwrap_err();
            assert_eq!(
                error,
                DecodeError::Truncated { field: "position", needed: 8, left: len.into() }
            );
        }
        assert_eq!(Rotate::parse(&BODY[..8]), Err(DecodeError::Empty { field: "file" }));
    }
}
