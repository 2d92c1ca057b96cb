//! Events that only MariaDB writes.

mod compressed;
mod fragment;
mod gtid;

pub(crate) use compressed::Inflate;
pub use fragment::RowsFragment;
pub use gtid::{AlterPhase, MariaDbGtidEvent, MariaDbGtidList};

use crate::wire::{Cursor, DecodeError};

/// Parses a `BINLOG_CHECKPOINT` into the name of the oldest file that crash recovery needs.
///
/// ```text
/// length   u32le
/// file     length bytes
/// ```
///
/// Source: MariaDB 11.8, `Binlog_checkpoint_log_event` in `sql/log_event.cc`.
pub(crate) fn parse_checkpoint(body: &[u8]) -> Result<&[u8], DecodeError> {
    let mut cursor = Cursor::new(body);
    let length = cursor.u32_le("file length")?;
    let length = usize::try_from(length)
        .map_err(|_| DecodeError::Invalid { field: "file length", value: length.into() })?;
    cursor.take(length, "file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_names_a_file() {
        let body = b"\x05\0\0\0b.001";
        assert_eq!(parse_checkpoint(body), Ok(&b"b.001"[..]));
        for len in 0..body.len() {
            assert!(parse_checkpoint(&body[..len]).is_err());
        }
    }
}
