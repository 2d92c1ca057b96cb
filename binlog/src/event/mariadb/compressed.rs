//! Compressed statements and rows: `log_bin_compress=ON`.
//!
//! A compressed event is a plain one in which a block stands for the last field: the text of a statement, or the
//! rows.
//!
//! ```text
//! marker   u8         bit 7 set; bits 4 to 6: algorithm, 0 for zlib; bits 0 to 2: n
//! length   n bytes    of the plain field, big-endian
//! data     rest       a zlib stream
//! ```
//!
//! Source: MariaDB 11.8, `binlog_buf_uncompress` in `sql/log_event.cc`.

use flate2::{Decompress, FlushDecompress, Status};

use crate::event::EventType;
use crate::event::failure::Failure;
use crate::event::table_map::TableIdWidth;
use crate::wire::{Cursor, DecodeError};

/// Turns compressed bodies into plain ones, in a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Inflate {
    decompress: Decompress,
    body: Vec<u8>,
}

impl Inflate {
    pub(crate) fn new() -> Self {
        Self { decompress: Decompress::new(true), body: Vec::new() }
    }

    /// Builds the plain body. `limit` bounds its size, bytes.
    pub(crate) fn expand(
        &mut self,
        event_type: EventType,
        body: &[u8],
        width: TableIdWidth,
        limit: u64,
    ) -> Result<(), Failure> {
        let plain = plain_length(event_type, body, width)?;
        let mut cursor = Cursor::new(body);
        let prefix = cursor.take(plain, "compressed body")?;
        let length = block_length(&mut cursor)?;
        let data = cursor.rest();
        let size = length.saturating_add(prefix.len() as u64);
        if size > limit {
            return Err(Failure::TooLarge { what: "the decompressed event", size, limit });
        }
        // Deflate makes at most 1032 bytes of one: a length above that is a lie, and is not allocated.
        if length > (data.len() as u64).saturating_mul(1032) {
            return Err(DecodeError::Invalid { field: "decompressed length", value: length }.into());
        }
        let length = usize::try_from(length)
            .map_err(|_| DecodeError::Invalid { field: "decompressed length", value: length })?;
        self.body.clear();
        self.body.extend_from_slice(prefix);
        self.body.resize(prefix.len() + length, 0);
        let output = self.body.get_mut(prefix.len()..).unwrap_or_default();
        self.decompress.reset(true);
        let status = self
            .decompress
            .decompress(data, output, FlushDecompress::Finish)
            .map_err(|error| Failure::Decompress(error.into()))?;
        let written = self.decompress.total_out();
        if status != Status::StreamEnd || written != length as u64 {
            let invalid = DecodeError::Invalid { field: "decompressed length", value: written };
            return Err(invalid.into());
        }
        Ok(())
    }

    /// The plain body that [`Self::expand`] built last.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Length of what comes before the block, bytes.
fn plain_length(
    event_type: EventType,
    body: &[u8],
    width: TableIdWidth,
) -> Result<usize, DecodeError> {
    use EventType as T;

    let mut cursor = Cursor::new(body);
    if event_type == T::MariaDbQueryCompressed {
        cursor.take(8, "thread_id and execution_time")?;
        let schema = cursor.u8("schema_length")?;
        cursor.take(2, "error_code")?;
        let status = cursor.u16_le("status_length")?;
        cursor.take(status.into(), "status")?;
        cursor.take(usize::from(schema) + 1, "schema")?;
    } else {
        width.read(&mut cursor)?;
        cursor.take(2, "flags")?;
        let has_extra_info = matches!(
            event_type,
            T::MariaDbWriteRowsCompressed
                | T::MariaDbUpdateRowsCompressed
                | T::MariaDbDeleteRowsCompressed
        );
        if has_extra_info {
            let length = cursor.u16_le("extra_info length")?;
            let length = usize::from(length).checked_sub(2).ok_or_else(|| {
                DecodeError::Invalid { field: "extra_info length", value: length.into() }
            })?;
            cursor.take(length, "extra_info")?;
        }
        let columns = cursor.lenenc("column count")?;
        let bitmap = usize::try_from(columns.div_ceil(8))
            .map_err(|_| DecodeError::Invalid { field: "column count", value: columns })?;
        cursor.take(bitmap, "columns present")?;
        let has_two =
            matches!(event_type, T::MariaDbUpdateRowsCompressedV1 | T::MariaDbUpdateRowsCompressed);
        if has_two {
            cursor.take(bitmap, "columns present after")?;
        }
    }
    Ok(body.len() - cursor.left())
}

/// Reads the block's marker and the length of the plain field.
fn block_length(cursor: &mut Cursor<'_>) -> Result<u64, DecodeError> {
    let marker = cursor.u8("compression marker")?;
    if marker & 0xf0 != 0x80 {
        return Err(DecodeError::Invalid { field: "compression marker", value: marker.into() });
    }
    let bytes = cursor.take(usize::from(marker & 7), "decompressed length")?;
    // At most 7 bytes, so that nothing is shifted out.
    Ok(bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PREFIX: &[u8] = b"\x01\0\0\0\0\0\0\0\x02\0\0\x03\0\x08\xff\0db\0";

    fn zlib(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn compressed(prefix: &[u8], plain: &[u8], length: u64) -> Vec<u8> {
        let mut body = prefix.to_vec();
        body.push(0x80 | 4);
        body.extend(&length.to_be_bytes()[4..]);
        body.extend(zlib(plain));
        body
    }

    #[test]
    fn a_statement_is_put_in_the_place_of_its_block() {
        let sql = b"CREATE TABLE t (a INT, b INT, c INT, d INT)";
        let body = compressed(PREFIX, sql, sql.len() as u64);
        let mut inflate = Inflate::new();
        let kind = EventType::MariaDbQueryCompressed;
        inflate.expand(kind, &body, TableIdWidth::Six, 1_000).unwrap();
        assert_eq!(inflate.body(), [PREFIX, sql].concat());
        for len in 0..body.len() {
            assert!(inflate.expand(kind, &body[..len], TableIdWidth::Six, 1_000).is_err(), "{len}");
        }
        inflate.expand(kind, &body, TableIdWidth::Six, 1_000).unwrap();
        assert_eq!(inflate.body(), [PREFIX, sql].concat(), "a failure leaves nothing behind");
    }

    #[test]
    fn rows_keep_what_is_in_front_of_them() {
        let rows = [7; 200];
        let table: [(EventType, &[u8]); 3] = [
            (EventType::MariaDbWriteRowsCompressedV1, b"\x12\0\0\0\0\0\x01\0\x09\xff\x01"),
            (EventType::MariaDbUpdateRowsCompressedV1, b"\x12\0\0\0\0\0\x01\0\x03\x07\x07"),
            (EventType::MariaDbUpdateRowsCompressed, b"\x12\0\0\0\0\0\x01\0\x04\0ab\x03\x07\x07"),
        ];
        for (kind, prefix) in table {
            let mut inflate = Inflate::new();
            inflate
                .expand(kind, &compressed(prefix, &rows, 200), TableIdWidth::Six, 1_000)
                .unwrap();
            assert_eq!(inflate.body(), [prefix, &rows].concat());
        }
    }

    #[test]
    fn a_length_that_lies_is_refused_before_it_is_allocated() {
        let kind = EventType::MariaDbQueryCompressed;
        let mut inflate = Inflate::new();
        for length in [5, 7, 0xffff_ffff] {
            let body = compressed(PREFIX, b"SELECT", length);
            let error = inflate.expand(kind, &body, TableIdWidth::Six, u64::MAX).unwrap_err();
            assert!(matches!(error, Failure::Decode(DecodeError::Invalid { .. })), "{length}");
        }
        assert!(inflate.body.capacity() < 1_000);
        let body = compressed(PREFIX, b"SELECT", 6);
        let error = inflate.expand(kind, &body, TableIdWidth::Six, 20).unwrap_err();
        assert!(matches!(error, Failure::TooLarge { size: 25, limit: 20, .. }));
    }
}
