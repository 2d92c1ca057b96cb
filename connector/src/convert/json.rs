//! JSON columns: the binary form of rows events to text.

use holdfast_binlog::value::{JsonBinary, JsonStyle};

use super::ConvertFailure;

/// Appends a document's text as Debezium prints it: compact, members in stored order.
pub(crate) fn write_text(
    document: JsonBinary<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    document.write_text(JsonStyle::Debezium, out).map_err(|_| ConvertFailure::Malformed)
}
