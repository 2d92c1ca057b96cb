//! `TRANSACTION_PAYLOAD_EVENT`: a whole transaction, compressed.
//!
//! ```text
//! fields    (type lenenc, length lenenc, data): 1 payload size, 2 compression (0 zstd, 255 none), 3 uncompressed size,
//!           each a lenenc; type 0, alone, ends them
//! payload   payload size bytes: events without checksums
//! ```
//!
//! The events inside go to [`EventStream::decode_nested`](crate::stream::EventStream::decode_nested):
//!
//! ```no_run
//! # use holdfast_binlog::event::{EventData, PayloadReader};
//! # use holdfast_binlog::stream::{EventStream, StreamOptions};
//! # fn next() -> Option<Vec<u8>> { None }
//! # fn main() -> Result<(), holdfast_binlog::Error> {
//! let mut stream = EventStream::new("mysql-bin.000001", StreamOptions::default());
//! let mut payloads = PayloadReader::default();
//! while let Some(bytes) = next() {
//!     let event = stream.decode(&bytes)?;
//!     if let EventData::TransactionPayload(payload) = event.data {
//!         let span = event.span();
//!         payloads.open(&event, &payload)?;
//!         while let Some(bytes) = payloads.next_event()? {
//!             let event = stream.decode_nested(bytes, span)?;
//!             println!("{} of the transaction at {}", event.header.event_type, event.position);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Source: MySQL 8.4, `Transaction_payload_event` in `libs/mysql/binlog/event/control_events.h` and
//! `codecs::binary::Transaction_payload` in `libs/mysql/binlog/event/codecs/binary.cpp`.

use std::fmt;

use zstd::bulk::Decompressor;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, EventContext};
use crate::event::failure::Failure;
use crate::event::raw::{SpilledEvent, SpilledPart, SpilledReader};
use crate::event::{Event, EventHeader};
use crate::wire::{Cursor, DecodeError};

/// A compressed transaction.
#[derive(Debug, Clone, Copy)]
pub struct TransactionPayload<'a> {
    /// How it is compressed.
    pub compression: PayloadCompression,
    /// Size of the events, decompressed, bytes. A declaration of the server, checked while reading.
    pub uncompressed_size: u64,
    /// The compressed events.
    pub payload: PayloadBytes<'a>,
}

/// Where the compressed events are.
#[derive(Debug, Clone, Copy)]
pub enum PayloadBytes<'a> {
    /// In memory.
    Memory(&'a [u8]),
    /// In a temporary file: they are many.
    File(SpilledPart<'a>),
}

impl PayloadBytes<'_> {
    /// How many bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(part) => part.size(),
        }
    }
}

/// How a transaction is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadCompression {
    /// Zstandard frames.
    Zstd,
    /// Not at all.
    None,
}

impl<'a> TransactionPayload<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Unsupported`] for another compression,
    /// [`DecodeError::Invalid`] for a payload size that is not what is left.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        Self::parse_with(body, |cursor| PayloadBytes::Memory(cursor.rest()))
    }

    /// Parses the event in a file, of which the last `checksum` bytes are no part of the body.
    pub(crate) fn parse_spilled(
        event: &'a SpilledEvent,
        checksum: usize,
    ) -> Result<Self, DecodeError> {
        let head = event.head().get(EventHeader::SIZE..).unwrap_or_default();
        Self::parse_with(head, |cursor| {
            let start = EventHeader::SIZE + head.len() - cursor.rest().len();
            PayloadBytes::File(event.part(start as u64, checksum as u64))
        })
    }

    fn parse_with(
        body: &'a [u8],
        rest: impl FnOnce(&mut Cursor<'a>) -> PayloadBytes<'a>,
    ) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let (mut payload_size, mut compression, mut uncompressed_size) = (None, None, None);
        loop {
            let kind = cursor.lenenc("payload field type")?;
            if kind == 0 {
                break;
            }
            let mut data = Cursor::new(cursor.lenenc_bytes("payload field")?);
            match kind {
                1 => payload_size = Some(data.lenenc("payload size")?),
                2 => compression = Some(data.lenenc("compression")?),
                3 => uncompressed_size = Some(data.lenenc("uncompressed size")?),
                _ => {}
            }
        }
        let payload = rest(&mut cursor);
        if let Some(size) = payload_size
            && size != payload.size()
        {
            return Err(DecodeError::Invalid { field: "payload size", value: size });
        }
        let compression = match compression {
            Some(0) => PayloadCompression::Zstd,
            Some(255) | None => PayloadCompression::None,
            Some(_) => {
                return Err(DecodeError::Unsupported {
                    what: "a compression other than zstd of a transaction",
                });
            }
        };
        let uncompressed_size = uncompressed_size.unwrap_or_else(|| payload.size());
        Ok(Self { compression, uncompressed_size, payload })
    }
}

/// Takes compressed transactions apart, one after the other.
///
/// A transaction that fits the window is decompressed at once. Of a larger one the reader holds the compressed bytes, or
/// a piece of them if they are in a file, and a window of the decompressed events: memory is bounded by what readers
/// keep in memory of a payload event and by the limit for one event inside it.
/// Contexts and buffers are used again.
pub struct PayloadReader {
    /// Most bytes that one event inside a transaction may have.
    max_event_size: usize,
    /// For transactions that fit the window. Made for the first of them.
    at_once: Option<Decompressor<'static>>,
    /// For larger ones. Made for the first of them.
    decoder: Option<Decoder<'static>>,
    compression: PayloadCompression,
    input: Vec<u8>,
    /// What follows `input`, for a transaction in a file.
    more: Option<SpilledReader>,
    /// Bytes of `input` that the decoder has taken.
    taken: usize,
    window: Vec<u8>,
    /// The part of `window` that holds bytes not handed out yet.
    start: usize,
    end: usize,
    /// Bytes that the transaction may still have.
    left: u64,
    origin: EventContext,
}

impl Default for PayloadReader {
    /// A reader that takes events of up to 1 GiB, the most a server writes.
    fn default() -> Self {
        Self::new(1 << 30)
    }
}

impl fmt::Debug for PayloadReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadReader")
            .field("max_event_size", &self.max_event_size)
            .field("origin", &self.origin)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl PayloadReader {
    /// A reader that takes events of up to `max_event_size` bytes.
    #[must_use]
    pub const fn new(max_event_size: usize) -> Self {
        Self {
            max_event_size,
            at_once: None,
            decoder: None,
            compression: PayloadCompression::None,
            input: Vec::new(),
            more: None,
            taken: 0,
            window: Vec::new(),
            start: 0,
            end: 0,
            left: 0,
            origin: EventContext {
                file: String::new(),
                position: 0,
                event_type: None,
                server_id: 0,
                end: None,
            },
        }
    }

    /// Begins with a transaction: `payload` as it came in `event`. What was left of another one is dropped. The
    /// compressed bytes are copied, or their file is shared, so that the event can go.
    ///
    /// # Errors
    ///
    /// [`Error::Decompress`] when there is no memory for a decompressor.
    pub fn open(
        &mut self,
        event: &Event<'_>,
        payload: &TransactionPayload<'_>,
    ) -> Result<(), Error> {
        self.origin.file.clear();
        self.origin.file.push_str(event.file);
        self.origin.position = event.position;
        self.origin.event_type = Some(event.header.event_type);
        self.origin.server_id = event.header.server_id;
        self.start_payload(payload).map_err(|failure| failure.at(self.origin.clone()))
    }

    fn start_payload(&mut self, payload: &TransactionPayload<'_>) -> Result<(), Failure> {
        // What one huge transaction needed is not kept for ever.
        if self.input.capacity() > KEEP && payload.payload.size() <= KEEP as u64 {
            self.input = Vec::new();
        }
        if self.window.len() > KEEP {
            self.window = Vec::new();
        }
        self.input.clear();
        (self.taken, self.start, self.end) = (0, 0, 0);
        self.left = payload.uncompressed_size;
        self.compression = payload.compression;
        self.more = None;
        match payload.payload {
            PayloadBytes::Memory(bytes) => {
                if self.decompress_at_once(payload, bytes)? {
                    return Ok(());
                }
                self.input.extend_from_slice(bytes);
            }
            PayloadBytes::File(part) => self.more = Some(part.reader()),
        }
        if payload.compression == PayloadCompression::Zstd {
            match &mut self.decoder {
                Some(decoder) => decoder.reinit().map_err(Failure::Decompress)?,
                None => self.decoder = Some(Decoder::new().map_err(Failure::Decompress)?),
            }
        }
        Ok(())
    }

    /// Decompresses a transaction that fits the window. False for one that does not, and for a damaged one, whose events
    /// before the damage are read as those of a large one.
    fn decompress_at_once(
        &mut self,
        payload: &TransactionPayload<'_>,
        bytes: &[u8],
    ) -> Result<bool, Failure> {
        let size = match usize::try_from(payload.uncompressed_size) {
            Ok(size @ ..=WINDOW) if payload.compression == PayloadCompression::Zstd => size,
            _ => return Ok(false),
        };
        if self.window.len() < WINDOW {
            self.window.resize(WINDOW, 0);
        }
        let decompressor = match &mut self.at_once {
            Some(decompressor) => decompressor,
            empty => empty.insert(Decompressor::new().map_err(Failure::Decompress)?),
        };
        let Some(window) = self.window.get_mut(..size) else { return Ok(false) };
        if !matches!(decompressor.decompress_to_buffer(bytes, window), Ok(found) if found == size) {
            return Ok(false);
        }
        (self.end, self.left) = (size, 0);
        Ok(true)
    }

    /// The next event of the transaction, from its common header on and without a checksum. Nothing at the end.
    ///
    /// # Errors
    ///
    /// [`Error::Decompress`] and [`Error::Decode`] for damaged bytes, [`Error::TooLarge`] for an event above the limit.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, Error> {
        match self.advance() {
            Ok(Some(range)) => Ok(self.window.get(range)),
            Ok(None) => Ok(None),
            Err(failure) => Err(failure.at(self.origin.clone())),
        }
    }

    fn advance(&mut self) -> Result<Option<std::ops::Range<usize>>, Failure> {
        self.fill(EventHeader::SIZE)?;
        if self.start == self.end {
            return if self.left == 0 {
                Ok(None)
            } else {
                let source = DecodeError::Truncated {
                    field: "transaction payload",
                    needed: self.left,
                    left: 0,
                };
                Err(source.into())
            };
        }
        let header = EventHeader::parse(self.unread())?;
        let size = header.event_size as usize;
        if size > self.max_event_size {
            return Err(Failure::TooLarge {
                what: "an event of the transaction",
                size: header.event_size.into(),
                limit: self.max_event_size as u64,
            });
        }
        self.fill(size)?;
        Cursor::new(self.unread()).take(size, "event of the transaction")?;
        let range = self.start..self.start + size;
        self.start = range.end;
        Ok(Some(range))
    }

    fn unread(&self) -> &[u8] {
        self.window.get(self.start..self.end).unwrap_or_default()
    }

    /// Decompresses until `needed` bytes are unread, or nothing more comes.
    fn fill(&mut self, needed: usize) -> Result<(), Failure> {
        while self.end - self.start < needed {
            if self.taken == self.input.len() {
                self.refill()?;
            }
            if self.taken == self.input.len() && self.left == 0 {
                return Ok(());
            }
            self.make_room(needed);
            let output = self.window.get_mut(self.end..).unwrap_or_default();
            let input = self.input.get(self.taken..).unwrap_or_default();
            let (read, written) = match (self.compression, &mut self.decoder) {
                (PayloadCompression::Zstd, Some(decoder)) => {
                    let mut input = InBuffer::around(input);
                    let mut output = OutBuffer::around(output);
                    decoder.run(&mut input, &mut output).map_err(Failure::Decompress)?;
                    (input.pos(), output.pos())
                }
                (PayloadCompression::Zstd | PayloadCompression::None, _) => {
                    let count = input.len().min(output.len());
                    if let (Some(to), Some(from)) = (output.get_mut(..count), input.get(..count)) {
                        to.copy_from_slice(from);
                    }
                    (count, count)
                }
            };
            self.taken += read;
            self.end += written;
            // More than declared.
            self.left = self
                .left
                .checked_sub(written as u64)
                .ok_or(DecodeError::Invalid { field: "uncompressed size", value: self.left })?;
            if (read, written) == (0, 0) && !self.has_more() {
                // The frame needs bytes that are not there.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes the next piece from the file.
    fn refill(&mut self) -> Result<(), Failure> {
        if let Some(more) = &mut self.more {
            self.taken = 0;
            more.read_into(&mut self.input).map_err(Failure::Spill)?;
        }
        Ok(())
    }

    fn has_more(&self) -> bool {
        self.taken < self.input.len() || self.more.as_ref().is_some_and(|more| !more.is_empty())
    }

    /// Moves what is unread to the front and makes the window large enough for `needed` bytes.
    fn make_room(&mut self, needed: usize) {
        if self.start > 0 {
            self.window.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // What an event declares is believed step by step, as its bytes come.
        let grown = needed.min((self.end * 2).max(WINDOW));
        if self.window.len() < grown.max(WINDOW) {
            self.window.resize(grown.max(WINDOW), 0);
        }
    }
}

/// Size of the window at first, bytes. Most events fit.
const WINDOW: usize = 128 << 10;
/// Most bytes that a buffer keeps from one transaction to the next.
const KEEP: usize = 16 << 20;
