//! MariaDB's compressed columns.

use std::io::Read as _;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::wire::{Cursor, DecodeError};

/// A value of a COMPRESSED column as MariaDB stores it.
///
/// ```text
/// (nothing)                          the empty value
/// 00  rest                           stored: the rest is the value
/// 80 | wrap | n  length  rest        zlib: n bytes of length, big-endian; raw deflate if wrap (bit 3) is set,
///                                    else with the zlib header
/// ```
///
/// Source: MariaDB 11.8, `sql/field_comp.cc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressed<'a>(pub &'a [u8]);

impl Compressed<'_> {
    /// Appends the value to `out`. Nothing is reserved for the length that the input claims, so that a false one costs
    /// no memory; more than `limit` bytes are never written.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Unsupported`] for another method than zlib, [`DecodeError::Invalid`] for a length above `limit`
    /// and for bytes that are no deflate stream, [`DecodeError::Mismatch`] when the stream gives another length than it
    /// claims. `out` is then as it was.
    pub fn decompress(&self, limit: usize, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        const FIELD: &str = "length of the decompressed column";
        let mut cursor = Cursor::new(self.0);
        if cursor.is_empty() {
            return Ok(());
        }
        let method = cursor.u8("compression method")?;
        if method == 0 {
            let stored = cursor.rest();
            if stored.len() > limit {
                return Err(DecodeError::Invalid { field: FIELD, value: stored.len() as u64 });
            }
            out.extend_from_slice(stored);
            return Ok(());
        }
        if method & 0xf0 != 0x80 {
            return Err(DecodeError::Unsupported { what: "a column compression other than zlib" });
        }
        let mut len: u64 = 0;
        for byte in cursor.take(usize::from(method & 7), FIELD)? {
            len = len << 8 | u64::from(*byte);
        }
        if len > limit as u64 {
            return Err(DecodeError::Invalid { field: FIELD, value: len });
        }
        let start = out.len();
        let input = cursor.rest();
        // One byte more than expected shows a stream that is too long.
        let read = if method & 8 == 0 {
            ZlibDecoder::new(input).take(len + 1).read_to_end(out)
        } else {
            DeflateDecoder::new(input).take(len + 1).read_to_end(out)
        };
        let found = (out.len() - start) as u64;
        if read.is_ok() && found == len {
            return Ok(());
        }
        out.truncate(start);
        Err(match read {
            Ok(_) => DecodeError::Mismatch { field: FIELD, found, expected: len },
            Err(_) => DecodeError::Invalid { field: "deflate stream after", value: found },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompress(bytes: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
        let mut out = b"kept".to_vec();
        let result = Compressed(bytes).decompress(limit, &mut out);
        if result.is_err() {
            assert_eq!(out, b"kept");
        }
        result.map(|()| out.split_off(4))
    }

    /// As a MariaDB 11.8 server wrote 150 times `ab`.
    const RAW: &[u8] = &[0x8a, 0x01, 0x2c, 0x4b, 0x4c, 0x4a, 0x1c, 0x85, 0x44, 0x42, 0x00];

    #[test]
    fn stored_and_deflated_values_come_back() {
        assert_eq!(decompress(&[], 0), Ok(vec![]));
        assert_eq!(decompress(b"\0short", 5), Ok(b"short".to_vec()));
        assert_eq!(decompress(RAW, 300), Ok(b"ab".repeat(150)));
    }

    #[test]
    fn a_value_above_the_limit_or_of_another_length_is_an_error() {
        const FIELD: &str = "length of the decompressed column";
        assert_eq!(decompress(RAW, 299), Err(DecodeError::Invalid { field: FIELD, value: 300 }));
        let mut longer = RAW.to_vec();
        longer[2] = 0x2b;
        assert_eq!(
            decompress(&longer, 300),
            Err(DecodeError::Mismatch { field: FIELD, found: 300, expected: 299 })
        );
        assert!(decompress(b"\0short", 4).is_err());
        assert!(decompress(&[0x90, 1], 300).is_err());
    }

    #[test]
    fn every_short_stream_is_an_error() {
        for len in 1..RAW.len() {
            assert!(decompress(&RAW[..len], 300).is_err(), "{len}");
        }
    }
}
