//! The server's binary JSON: documents, their text, and the diffs of partial updates.

mod diff;
mod layout;
mod number;
mod print;

pub use diff::JsonDiffs;

use print::Printer;

use crate::wire::DecodeError;

/// A JSON document in the server's binary form. Empty bytes stand for the JSON `null` that the server stores so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonBinary<'a>(pub &'a [u8]);

/// Why a binary JSON document could not be printed.
pub type JsonError = DecodeError;

/// How a document is printed. Both keep the stored order of keys (by length, then by bytes), print integers and
/// decimals exactly and doubles as short as they read back, with an exponent from 1e15 on, and leave everything but quotes, backslashes and control characters unescaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonStyle {
    /// As the server prints it: `{"a": 1}`; six fraction digits in times; other types as `"base64:type15:3q2+7w=="`, with a `\n` after every 76 digits.
    Server,
    /// As Debezium prints it when streaming: `{"a":1}`; no trailing zeros in times; other types as base64 alone.
    ///
    /// DIFFERS: doubles below 0.001 and from 1e7 on have no exponent there, but every digit of the binary number and no
    /// `.0`; unsigned numbers from 2^31 on and negative times come out right, which they do not in Debezium 3.6.
    Debezium,
}

impl JsonBinary<'_> {
    /// Appends the document as UTF-8 text. On an error `out` is as it was.
    ///
    /// The work is bounded by the size of the document: parts that offsets place on top of each other, as no server
    /// writes them, are an error, and so are more than 100 nested containers, the server's limit.
    ///
    /// # Errors
    ///
    /// Any [`JsonError`] when the bytes are no document.
    pub fn write_text(&self, style: JsonStyle, out: &mut Vec<u8>) -> Result<(), JsonError> {
        self.print(Printer::new(style, self.0.len(), out))
    }

    /// Appends the document's text as a string of JSON: in quotes, with its own quotes and backslashes escaped. In one pass,
    /// which is cheaper than to escape the text. On an error `out` is as it was.
    ///
    /// # Errors
    ///
    /// As [`Self::write_text`].
    pub fn write_quoted(&self, style: JsonStyle, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let start = out.len();
        out.push(b'"');
        let result = self.print(Printer::new(style, self.0.len(), out).quoted());
        match result {
            Ok(()) => out.push(b'"'),
            Err(_) => out.truncate(start),
        }
        result
    }

    fn print(&self, mut printer: Printer<'_>) -> Result<(), JsonError> {
        if self.0.is_empty() {
            return printer.value(layout::Json::Null);
        }
        let start = printer.written();
        let result = layout::root(self.0).and_then(|root| printer.value(root));
        if result.is_err() {
            printer.take_back(start);
        }
        result
    }
}

#[cfg(test)]
mod tests;
