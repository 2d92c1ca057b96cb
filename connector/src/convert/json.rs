//! JSON columns: the binary form of rows events to text.

use holdfast_binlog::value::{JsonBinary, JsonStyle};

use super::ConvertFailure;

/// Appends a document's text as a string of JSON, members in stored order.
pub(crate) fn write_quoted(
    document: JsonBinary<'_>,
    style: JsonStyle,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    document.write_quoted(style, out).map_err(|_| ConvertFailure::Malformed)
}

/// Appends a document's text, members in stored order.
pub(crate) fn write_text(
    document: JsonBinary<'_>,
    style: JsonStyle,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    document.write_text(style, out).map_err(|_| ConvertFailure::Malformed)
}
