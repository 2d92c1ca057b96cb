//! Why an event could not be decoded, before the stream adds which event it was.

use std::io;

use crate::error::{Error, EventContext};
use crate::wire::DecodeError;

/// The context-free part of an [`Error`].
#[derive(Debug)]
pub(crate) enum Failure {
    Decode(DecodeError),
    Checksum { stored: u32, computed: u32 },
    NoFormat,
    UnknownEvent,
    UnknownTable(u64),
    Unsupported(&'static str),
    TooLarge { what: &'static str, size: u64, limit: u64 },
    Decompress(io::Error),
    Spill(io::Error),
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        if let DecodeError::Unsupported { what } = error {
            Self::Unsupported(what)
        } else {
            Self::Decode(error)
        }
    }
}

impl Failure {
    /// Says which event it was.
    pub(crate) fn at(self, at: EventContext) -> Error {
        let at = Box::new(at);
        match self {
            Self::Decode(source) => Error::Decode { at, source },
            Self::Checksum { stored, computed } => Error::Checksum { at, stored, computed },
            Self::NoFormat => Error::NoFormatDescription { at },
            Self::UnknownEvent => Error::UnknownEvent { at },
            Self::UnknownTable(table_id) => Error::UnknownTable { at, table_id },
            Self::Unsupported(what) => Error::Unsupported { at, what },
            Self::TooLarge { what, size, limit } => Error::TooLarge { at, what, size, limit },
            Self::Decompress(source) => Error::Decompress { at, source },
            Self::Spill(source) => Error::Spill { at, source },
        }
    }
}
