//! Where things are in a binary document.
//!
//! ```text
//! document        type u8, value
//! object, array   count, size, (object only) count key entries, count value entries, keys and values
//!                 count, size and offsets take 2 bytes in a small container, 4 in a large one
//! key entry       offset, length u16le
//! value entry     type u8, then the value itself where it fits (literals, 16-bit numbers; in a large container
//!                 32-bit numbers too), else its offset
//! ```
//!
//! Offsets count from the container's count field; size is that of the whole container.
//!
//! Source: MySQL 8.4, `sql-common/json_binary.h`.

use crate::wire::{Cursor, DecodeError};

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    String(&'a [u8]),
    /// A value of a column type that JSON lacks.
    Opaque {
        kind: u8,
        bytes: &'a [u8],
    },
    Container(Container<'a>),
}

/// An object or array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    pub(super) is_object: bool,
    large: bool,
    /// From the count field to the end of the container.
    bytes: &'a [u8],
    count: usize,
    /// Bytes of count, size and entries.
    header_len: usize,
}

pub(super) mod kind {
    pub(in super::super) const SMALL_OBJECT: u8 = 0;
    pub(in super::super) const LARGE_OBJECT: u8 = 1;
    pub(in super::super) const SMALL_ARRAY: u8 = 2;
    pub(in super::super) const LARGE_ARRAY: u8 = 3;
    pub(in super::super) const LITERAL: u8 = 4;
    pub(in super::super) const INT16: u8 = 5;
    pub(in super::super) const UINT16: u8 = 6;
    pub(in super::super) const INT32: u8 = 7;
    pub(in super::super) const UINT32: u8 = 8;
    pub(in super::super) const INT64: u8 = 9;
    pub(in super::super) const UINT64: u8 = 10;
    pub(in super::super) const DOUBLE: u8 = 11;
    pub(in super::super) const STRING: u8 = 12;
    pub(in super::super) const OPAQUE: u8 = 15;
}

/// The value of a document that is not empty.
pub(super) fn root(document: &[u8]) -> Result<Json<'_>, DecodeError> {
    let mut cursor = Cursor::new(document);
    let kind = cursor.u8("json type")?;
    value(kind, cursor.rest())
}

/// A text of less than 128 bytes at the start of `bytes`; none for a longer one and for what is cut off.
#[inline]
pub(super) fn short_text(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [len @ ..0x80, rest @ ..] => rest.get(..usize::from(*len)),
        _ => None,
    }
}

/// Reads a value of a type at the start of `bytes`.
#[inline(never)]
pub(super) fn value(kind: u8, bytes: &[u8]) -> Result<Json<'_>, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    Ok(match kind {
        kind::SMALL_OBJECT => Json::Container(Container::parse(bytes, true, false)?),
        kind::LARGE_OBJECT => Json::Container(Container::parse(bytes, true, true)?),
        kind::SMALL_ARRAY => Json::Container(Container::parse(bytes, false, false)?),
        kind::LARGE_ARRAY => Json::Container(Container::parse(bytes, false, true)?),
        kind::LITERAL => literal(cursor.u8("json literal")?)?,
        kind::INT16 => Json::Int(i16::from_le_bytes(cursor.array("json int16")?).into()),
        kind::UINT16 => Json::UInt(cursor.u16_le("json uint16")?.into()),
        kind::INT32 => Json::Int(i32::from_le_bytes(cursor.array("json int32")?).into()),
        kind::UINT32 => Json::UInt(cursor.u32_le("json uint32")?.into()),
        kind::INT64 => Json::Int(i64::from_le_bytes(cursor.array("json int64")?)),
        kind::UINT64 => Json::UInt(cursor.u64_le("json uint64")?),
        kind::DOUBLE => Json::Double(f64::from_le_bytes(cursor.array("json double")?)),
        kind::STRING => {
            let len = variable_length(&mut cursor)?;
            Json::String(cursor.take(len, "json string")?)
        }
        kind::OPAQUE => {
            let kind = cursor.u8("json opaque type")?;
            let len = variable_length(&mut cursor)?;
            Json::Opaque { kind, bytes: cursor.take(len, "json opaque value")? }
        }
        other => return Err(DecodeError::Invalid { field: "json type", value: other.into() }),
    })
}

pub(super) fn literal<'a>(byte: u8) -> Result<Json<'a>, DecodeError> {
    match byte {
        0 => Ok(Json::Null),
        1 => Ok(Json::Bool(true)),
        2 => Ok(Json::Bool(false)),
        other => Err(DecodeError::Invalid { field: "json literal", value: other.into() }),
    }
}

/// Reads a length of 1 to 5 bytes, 7 bits each from the least significant; the top bit says that more follow.
#[inline]
fn variable_length(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    let mut short = *cursor;
    match short.u8(LENGTH)? {
        byte @ ..0x80 => {
            *cursor = short;
            Ok(byte.into())
        }
        _ => longer_length(cursor),
    }
}

fn longer_length(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    const FIELD: &str = LENGTH;
    let mut len: u64 = 0;
    for shift in [0, 7, 14, 21, 28] {
        let byte = cursor.u8(FIELD)?;
        len |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let in_range = u32::try_from(len).ok().and_then(|len| usize::try_from(len).ok());
            return in_range.ok_or(DecodeError::Invalid { field: FIELD, value: len });
        }
    }
    Err(DecodeError::Invalid { field: FIELD, value: len })
}

const LENGTH: &str = "json length";

impl<'a> Container<'a> {
    #[inline]
    fn parse(bytes: &'a [u8], is_object: bool, large: bool) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let count = read_offset(&mut cursor, large, "json element count")?;
        let size = read_offset(&mut cursor, large, "json container size")?;
        let bytes = Cursor::new(bytes).take(size, "json container")?;
        let mut this = Self { is_object, large, bytes, count, header_len: 0 };
        let entries = count.saturating_mul(this.key_entry() + this.value_entry());
        this.header_len = entries.saturating_add(2 * this.width());
        if this.header_len > size {
            return Err(DecodeError::Truncated {
                field: "json container",
                needed: this.header_len as u64,
                left: size as u64,
            });
        }
        Ok(this)
    }

    /// Number of elements or members.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Bytes of count, size and entries.
    pub(super) const fn header_len(&self) -> usize {
        self.header_len
    }

    /// The members or elements, in stored order.
    #[inline]
    pub(super) fn entries(&self) -> Entries<'a> {
        let header = self.bytes.get(..self.header_len).unwrap_or_default();
        let header = header.get(2 * self.width()..).unwrap_or_default();
        let (keys, values) =
            header.split_at_checked(self.count * self.key_entry()).unwrap_or_default();
        Entries { container: *self, keys: Cursor::new(keys), values: Cursor::new(values) }
    }

    /// The entries of a small container.
    #[inline]
    pub(super) fn small_entries(&self) -> Option<SmallEntries<'a>> {
        if self.large {
            return None;
        }
        let header = self.bytes.get(4..self.header_len)?;
        let (keys, values) = header.split_at_checked(self.count * self.key_entry())?;
        Some(SmallEntries { keys: keys.as_chunks().0, values: values.as_chunks().0 })
    }

    /// A key by its entry in a small container.
    #[inline]
    pub(super) fn small_key(&self, entry: [u8; 4]) -> Result<&'a [u8], DecodeError> {
        let [a, b, c, d] = entry;
        let (offset, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        let from = self.outside_header(offset.into(), "json key")?;
        match from.get(..len.into()) {
            Some(key) => Ok(key),
            None => Cursor::new(from).take(len.into(), "json key"),
        }
    }

    const fn width(&self) -> usize {
        if self.large { 4 } else { 2 }
    }

    const fn key_entry(&self) -> usize {
        if self.is_object { self.width() + 2 } else { 0 }
    }

    const fn value_entry(&self) -> usize {
        1 + self.width()
    }

    /// The bytes from an offset on, which may be the end, but not in the header.
    #[inline]
    pub(super) fn outside_header(
        &self,
        offset: usize,
        field: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(offset..) {
            Some(bytes) if offset >= self.header_len => Ok(bytes),
            Some(_) => Err(DecodeError::Invalid { field, value: offset as u64 }),
            None => Err(DecodeError::Truncated {
                field,
                needed: offset as u64,
                left: self.bytes.len() as u64,
            }),
        }
    }
}

/// The entries of a small container.
#[derive(Debug, Clone, Copy)]
pub(super) struct SmallEntries<'a> {
    /// Offset and length of each key; none in an array.
    pub(super) keys: &'a [[u8; 4]],
    /// Type of each value, and the value or its offset.
    pub(super) values: &'a [[u8; 3]],
}

/// The members or elements of a container, one after the other.
#[derive(Debug)]
pub(super) struct Entries<'a> {
    container: Container<'a>,
    keys: Cursor<'a>,
    values: Cursor<'a>,
}

impl<'a> Entries<'a> {
    /// The key of the next member, before its value.
    #[inline]
    pub(super) fn key(&mut self) -> Result<&'a [u8], DecodeError> {
        let offset = read_offset(&mut self.keys, self.container.large, "json key entry")?;
        let len = self.keys.u16_le("json key entry")?;
        let from = self.container.outside_header(offset, "json key")?;
        Cursor::new(from).take(len.into(), "json key")
    }

    /// The next element, or the value of the next member.
    #[inline]
    pub(super) fn value(&mut self) -> Result<Json<'a>, DecodeError> {
        let large = self.container.large;
        let kind = self.values.u8("json value entry")?;
        let is_inline = match kind {
            kind::LITERAL | kind::INT16 | kind::UINT16 => true,
            kind::INT32 | kind::UINT32 => large,
            _ => false,
        };
        let bytes = if is_inline {
            self.values.take(self.container.width(), "json value entry")?
        } else {
            let offset = read_offset(&mut self.values, large, "json value entry")?;
            self.container.outside_header(offset, "json value")?
        };
        value(kind, bytes)
    }
}

#[inline]
fn read_offset(
    cursor: &mut Cursor<'_>,
    large: bool,
    field: &'static str,
) -> Result<usize, DecodeError> {
    if !large {
        return cursor.u16_le(field).map(usize::from);
    }
    let offset = cursor.u32_le(field)?;
    usize::try_from(offset).map_err(|_| DecodeError::Invalid { field, value: offset.into() })
}
