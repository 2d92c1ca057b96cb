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
}

mod kind {
    pub(super) const SMALL_OBJECT: u8 = 0;
    pub(super) const LARGE_OBJECT: u8 = 1;
    pub(super) const SMALL_ARRAY: u8 = 2;
    pub(super) const LARGE_ARRAY: u8 = 3;
    pub(super) const LITERAL: u8 = 4;
    pub(super) const INT16: u8 = 5;
    pub(super) const UINT16: u8 = 6;
    pub(super) const INT32: u8 = 7;
    pub(super) const UINT32: u8 = 8;
    pub(super) const INT64: u8 = 9;
    pub(super) const UINT64: u8 = 10;
    pub(super) const DOUBLE: u8 = 11;
    pub(super) const STRING: u8 = 12;
    pub(super) const OPAQUE: u8 = 15;
}

/// The value of a document that is not empty.
pub(super) fn root(document: &[u8]) -> Result<Json<'_>, DecodeError> {
    let mut cursor = Cursor::new(document);
    let kind = cursor.u8("json type")?;
    value(kind, cursor.rest())
}

/// Reads a value of a type at the start of `bytes`.
fn value(kind: u8, bytes: &[u8]) -> Result<Json<'_>, DecodeError> {
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

fn literal<'a>(byte: u8) -> Result<Json<'a>, DecodeError> {
    match byte {
        0 => Ok(Json::Null),
        1 => Ok(Json::Bool(true)),
        2 => Ok(Json::Bool(false)),
        other => Err(DecodeError::Invalid { field: "json literal", value: other.into() }),
    }
}

/// Reads a length of 1 to 5 bytes, 7 bits each from the least significant; the top bit says that more follow.
fn variable_length(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    const FIELD: &str = "json length";
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

impl<'a> Container<'a> {
    fn parse(bytes: &'a [u8], is_object: bool, large: bool) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let count = read_offset(&mut cursor, large, "json element count")?;
        let size = read_offset(&mut cursor, large, "json container size")?;
        let bytes = Cursor::new(bytes).take(size, "json container")?;
        let this = Self { is_object, large, bytes, count };
        if this.header_len() > size {
            return Err(DecodeError::Truncated {
                field: "json container",
                needed: this.header_len() as u64,
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
        let entries = self.count.saturating_mul(self.key_entry() + self.value_entry());
        entries.saturating_add(2 * self.width())
    }

    /// The key of a member.
    pub(super) fn key(&self, index: usize) -> Result<&'a [u8], DecodeError> {
        let mut entry = self.at(2 * self.width() + index * self.key_entry(), "json key entry")?;
        let offset = read_offset(&mut entry, self.large, "json key entry")?;
        let len = entry.u16_le("json key entry")?;
        self.outside_header(offset, "json key")?.take(len.into(), "json key")
    }

    /// An element or the value of a member.
    pub(super) fn value(&self, index: usize) -> Result<Json<'a>, DecodeError> {
        let entries = 2 * self.width() + self.count * self.key_entry();
        let mut entry = self.at(entries + index * self.value_entry(), "json value entry")?;
        let kind = entry.u8("json value entry")?;
        let inline = match kind {
            kind::LITERAL | kind::INT16 | kind::UINT16 => true,
            kind::INT32 | kind::UINT32 => self.large,
            _ => false,
        };
        if inline {
            return value(kind, entry.take(self.width(), "json value entry")?);
        }
        let offset = read_offset(&mut entry, self.large, "json value entry")?;
        value(kind, self.outside_header(offset, "json value")?.rest())
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

    /// A cursor at an offset that may be the end, but not in the header.
    fn outside_header(
        &self,
        offset: usize,
        field: &'static str,
    ) -> Result<Cursor<'a>, DecodeError> {
        if offset < self.header_len() {
            return Err(DecodeError::Invalid { field, value: offset as u64 });
        }
        self.at(offset, field)
    }

    fn at(&self, offset: usize, field: &'static str) -> Result<Cursor<'a>, DecodeError> {
        let mut cursor = Cursor::new(self.bytes);
        cursor.take(offset, field)?;
        Ok(cursor)
    }
}

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
