//! The server's binary JSON.

/// A JSON document in the server's binary form. Empty bytes stand for the JSON `null` that the server stores so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonBinary<'a>(pub &'a [u8]);

/// Why a binary JSON document could not be printed.
pub type JsonError = crate::wire::DecodeError;
