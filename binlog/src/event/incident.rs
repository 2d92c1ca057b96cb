//! `INCIDENT_EVENT`: the server says that the log misses something.
//!
//! ```text
//! code      u16le   1: lost events
//! message   u8 length, text
//! ```
//!
//! Source: MySQL 8.4, `Incident_event` in `libs/mysql/binlog/event/control_events.h`.

use crate::wire::{Cursor, DecodeError};

/// Changes that the server could not log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incident<'a> {
    /// What happened: 1 stands for lost events.
    pub code: u16,
    /// The server's words.
    pub message: &'a [u8],
}

impl<'a> Incident<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let code = cursor.u16_le("code")?;
        let length = cursor.u8("message")?;
        Ok(Self { code, message: cursor.take(length.into(), "message")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_as_long_as_it_says() {
        let body = b"\x01\0\x04lost";
        assert_eq!(Incident::parse(body), Ok(Incident { code: 1, message: b"lost" }));
        for len in 0..body.len() {
            assert!(Incident::parse(&body[..len]).is_err());
        }
    }
}
