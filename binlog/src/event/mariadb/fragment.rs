//! Fragments of a rows event: `PARTIAL_ROW_DATA`, MariaDB 12.3 and later.
//!
//! A rows event of more than `binlog_row_event_fragment_threshold` bytes is written in fragments, one right behind the
//! other, where it would have been.
//!
//! ```text
//! count     u32le   fragments of the rows event, 2 or more
//! number    u32le   of this one, from 1
//! flags     u8      bit 0: the size follows, as it does in the first fragment and in no other
//! size      u64le   of the rows event, bytes: its common header and its body, without a checksum
//! content   rest    the next bytes of the rows event
//! ```
//!
//! Each fragment has a checksum of its own; the joined event has none. The size in its common header may count one all the
//! same and has 32 bits only, so that nobody reads it.
//!
//! Source: MariaDB 12.3, `Partial_rows_log_event` in `sql/log_event.h` and `sql/log_event.cc`, `Rows_log_event_fragmenter` in
//! `sql/log_event_server.cc`; "PARTIAL_ROW_DATA_EVENT" of its documentation. The table in `log_event.h` names the two numbers
//! in the other order than `Partial_rows_log_event::write_data_header` writes them.

use crate::wire::{Cursor, DecodeError};

/// A fragment of a rows event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsFragment<'a> {
    /// How many fragments the rows event has: 2 or more.
    pub count: u32,
    /// Which of them this is, from 1.
    pub number: u32,
    /// Size of the rows event, bytes: in the first fragment.
    pub size: Option<u64>,
    /// The next bytes of the rows event.
    pub content: &'a [u8],
}

impl<'a> RowsFragment<'a> {
    /// The flag of a fragment that says the size.
    const HAS_SIZE: u8 = 1;

    /// Parses a body: the bytes between the common header and the checksum.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] naming the field that the body ends in, [`DecodeError::Invalid`] for numbers that are none of
    /// a fragment, [`DecodeError::Unsupported`] for flags that this version does not know, [`DecodeError::Empty`] for a fragment
    /// without content.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let count = cursor.u32_le("fragment count")?;
        let number = cursor.u32_le("fragment number")?;
        let flags = cursor.u8("fragment flags")?;
        if count < 2 {
            return Err(DecodeError::Invalid { field: "fragment count", value: count.into() });
        }
        if number == 0 || number > count {
            return Err(DecodeError::Invalid { field: "fragment number", value: number.into() });
        }
        // What else is in a fragment with another flag, nobody knows.
        if flags & !Self::HAS_SIZE != 0 {
            return Err(DecodeError::Unsupported { what: "a fragment with an unknown flag" });
        }
        if (flags == Self::HAS_SIZE) != (number == 1) {
            return Err(DecodeError::Invalid { field: "fragment flags", value: flags.into() });
        }
        let size = if number == 1 { Some(cursor.u64_le("size of the rows event")?) } else { None };
        let content = cursor.rest();
        if content.is_empty() {
            return Err(DecodeError::Empty { field: "fragment content" });
        }
        Ok(Self { count, number, size, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] = b"\x03\0\0\0\x01\0\0\0\x01\x40\0\0\0\0\0\0\0abc";
    const SECOND: &[u8] = b"\x03\0\0\0\x02\0\0\0\0def";

    #[test]
    fn the_first_fragment_alone_says_the_size() {
        let first = RowsFragment { count: 3, number: 1, size: Some(64), content: b"abc" };
        assert_eq!(RowsFragment::parse(FIRST), Ok(first));
        let second = RowsFragment { count: 3, number: 2, size: None, content: b"def" };
        assert_eq!(RowsFragment::parse(SECOND), Ok(second));
        for (body, flags) in [(FIRST, 0), (SECOND, 1)] {
            let mut body = body.to_vec();
            body[8] = flags;
            let invalid = DecodeError::Invalid { field: "fragment flags", value: flags.into() };
            assert_eq!(RowsFragment::parse(&body), Err(invalid));
        }
    }

    #[test]
    fn every_short_body_is_an_error_that_names_the_field() {
        for (body, content) in [(FIRST, 17), (SECOND, 9)] {
            for len in 0..content {
                let parsed = RowsFragment::parse(&body[..len]);
                assert!(matches!(parsed, Err(DecodeError::Truncated { .. })), "{len}: {parsed:?}");
            }
            let empty = DecodeError::Empty { field: "fragment content" };
            assert_eq!(RowsFragment::parse(&body[..content]), Err(empty));
        }
    }

    #[test]
    fn numbers_that_no_fragment_has_are_errors() {
        for (count, number, field) in [
            (0_u8, 1_u8, "fragment count"),
            (1, 1, "fragment count"),
            (3, 0, "fragment number"),
            (3, 4, "fragment number"),
        ] {
            let mut body = FIRST.to_vec();
            (body[0], body[4]) = (count, number);
            match RowsFragment::parse(&body) {
                Err(DecodeError::Invalid { field: found, .. }) => assert_eq!(found, field),
                other => panic!("{other:?}"),
            }
        }
        let mut body = FIRST.to_vec();
        body[8] = 3;
        assert!(matches!(RowsFragment::parse(&body), Err(DecodeError::Unsupported { .. })));
    }
}
