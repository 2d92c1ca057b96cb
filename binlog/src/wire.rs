//! Bounds-checked little-endian reads over one event's bytes.

use std::fmt;

/// Why a piece of the log could not be decoded. Carries no context but the field: the boundary that knows the
/// file, position and table adds them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The input ended inside a field.
    #[error("{field} needs {needed} bytes, {left} are left")]
    Truncated {
        /// Name of the field, as the wire documents call it.
        field: &'static str,
        /// Bytes the field takes.
        needed: u64,
        /// Bytes that were left.
        left: u64,
    },
    /// A field that may not be empty was empty.
    #[error("{field} is empty")]
    Empty {
        /// Name of the field.
        field: &'static str,
    },
    /// A field held a value outside its range.
    #[error("{field} is {value}, which is not valid")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// The value found, as a number.
        value: u64,
    },
    /// Bytes were left after the last field.
    #[error("{left} bytes are left after {field}")]
    Trailing {
        /// Name of the last field read.
        field: &'static str,
        /// Bytes left.
        left: u64,
    },
    /// Two numbers that must agree do not.
    #[error("{field} is {found}, expected {expected}")]
    Mismatch {
        /// Name of the field.
        field: &'static str,
        /// What the field says.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// Fragments of something are missing: something else came after one that was not the last.
    #[error("{what} in fragments ends after fragment {number} of {count}")]
    Interrupted {
        /// What is in fragments.
        what: &'static str,
        /// Number of the last fragment that came, from 1.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// A column has a type that this version does not know.
    #[error("column {column} has the unknown type {code}")]
    ColumnType {
        /// Zero-based index of the column in its table map.
        column: u32,
        /// The type code of the table map.
        code: u8,
    },
    /// A construct that this version does not decode.
    #[error("{what} is not supported")]
    Unsupported {
        /// What was met.
        what: &'static str,
    },
}

/// A read position in a byte slice. Every read names its field, so that an error does.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("left", &self.bytes.len()).finish()
    }
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Takes the next `len` bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer are left.
    #[inline]
    pub fn take(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        match self.bytes.split_at_checked(len) {
            Some((head, tail)) => {
                self.bytes = tail;
                Ok(head)
            }
            None => Err(DecodeError::Truncated {
                field,
                needed: len as u64,
                left: self.bytes.len() as u64,
            }),
        }
    }

    /// Takes the next `N` bytes as an array.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer are left.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        match self.bytes.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.bytes = tail;
                Ok(*head)
            }
            None => Err(DecodeError::Truncated {
                field,
                needed: N as u64,
                left: self.bytes.len() as u64,
            }),
        }
    }

    /// Reads one byte.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] at the end.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Reads a 16-bit number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer than 2 bytes are left.
    #[inline]
    pub fn u16_le(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Reads a 24-bit number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer than 3 bytes are left.
    #[inline]
    pub fn u24_le(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// Reads a 32-bit number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer than 4 bytes are left.
    #[inline]
    pub fn u32_le(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Reads a 48-bit number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer than 6 bytes are left.
    #[inline]
    pub fn u48_le(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(|[a, b, c, d, e, f]| u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
    }

    /// Reads a 64-bit number.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer than 8 bytes are left.
    #[inline]
    pub fn u64_le(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Reads a number of `len` bytes, 1 to 8.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when fewer are left, [`DecodeError::Invalid`] for another length.
    #[inline]
    pub fn uint_le(&mut self, len: usize, field: &'static str) -> Result<u64, DecodeError> {
        let bytes = self.take(len, field)?;
        let mut wide = [0; 8];
        wide.get_mut(..len)
            .ok_or(DecodeError::Invalid { field, value: len as u64 })?
            .copy_from_slice(bytes);
        Ok(u64::from_le_bytes(wide))
    }

    /// Reads a length-encoded integer: one byte below 251, or a prefix `0xFC`, `0xFD`, `0xFE` and 2, 3 or 8 bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] when the input ends inside it, [`DecodeError::Invalid`] for the prefixes `0xFB`
    /// (NULL) and `0xFF` (error), which stand for no number.
    #[inline]
    pub fn lenenc(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        match self.u8(field)? {
            0xfc => self.u16_le(field).map(u64::from),
            0xfd => self.u24_le(field).map(u64::from),
            0xfe => self.u64_le(field),
            prefix @ (0xfb | 0xff) => Err(DecodeError::Invalid { field, value: prefix.into() }),
            small => Ok(small.into()),
        }
    }

    /// Takes a length-encoded byte string.
    ///
    /// # Errors
    ///
    /// As [`Self::lenenc`] and [`Self::take`].
    #[inline]
    pub fn lenenc_bytes(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.lenenc(field)?;
        match usize::try_from(len) {
            Ok(len) => self.take(len, field),
            Err(_) => {
                Err(DecodeError::Truncated { field, needed: len, left: self.bytes.len() as u64 })
            }
        }
    }

    /// Takes everything that is left.
    #[inline]
    pub const fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes;
        self.bytes = &[];
        rest
    }

    /// Number of bytes left.
    #[inline]
    #[must_use]
    pub const fn left(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is left.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What is left, without taking it.
    #[inline]
    #[must_use]
    pub const fn peek(&self) -> &'a [u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_read_names_the_field_and_takes_nothing() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(
            cursor.u32_le("size"),
            Err(DecodeError::Truncated { field: "size", needed: 4, left: 3 })
        );
        assert_eq!(cursor.u24_le("size"), Ok(0x03_0201));
        assert!(cursor.is_empty());
    }

    #[test]
    fn length_encoded_integers_take_one_three_four_or_nine_bytes() {
        let table: [(&[u8], u64); 4] = [
            (&[250], 250),
            (&[0xfc, 0xfb, 0x00], 251),
            (&[0xfd, 1, 2, 3], 0x03_0201),
            (&[0xfe, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
        ];
        for (bytes, value) in table {
            assert_eq!(Cursor::new(bytes).lenenc("n"), Ok(value));
            for short in 0..bytes.len() {
                assert!(Cursor::new(&bytes[..short]).lenenc("n").is_err());
            }
        }
        assert_eq!(
            Cursor::new(&[0xfb]).lenenc("n"),
            Err(DecodeError::Invalid { field: "n", value: 0xfb })
        );
    }
}
