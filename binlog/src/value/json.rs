//! The server's binary JSON.

use crate::wire::{Cursor, DecodeError};

/// A JSON document in the server's binary form. Empty bytes stand for the JSON `null` that the server stores so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonBinary<'a>(pub &'a [u8]);

/// Why a binary JSON document could not be printed.
pub type JsonError = DecodeError;

/// How a document is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonStyle {
    /// As the server prints it.
    Server,
    /// As Debezium prints it when streaming.
    Debezium,
}

impl JsonBinary<'_> {
    /// Appends the document as text.
    ///
    /// # Errors
    ///
    /// Any [`JsonError`] when the bytes are no document.
    pub fn write_text(&self, style: JsonStyle, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let _ = (style, out);
        Err(JsonError::Unsupported { what: "printing binary JSON" })
    }
}

/// The changes that a partial update makes to a JSON column, in the server's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDiffs<'a>(pub &'a [u8]);

impl<'a> JsonDiffs<'a> {
    /// Takes the diffs of one column: a length of 4 bytes, then the diffs.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let len = cursor.u32_le("json diffs")?;
        match usize::try_from(len) {
            Ok(len) => cursor.take(len, "json diffs").map(Self),
            Err(_) => Err(DecodeError::Invalid { field: "json diffs", value: len.into() }),
        }
    }
}
