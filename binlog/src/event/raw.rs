//! [`RawEvent`]: the bytes of an event, in memory or, when they are too many, in a temporary file.
//!
//! Only compressed transactions go to a file: all else that a server writes is bounded by a row. A transaction may have
//! 1 GiB of compressed bytes, and none of it may be believed before the checksum at its end was seen.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::{CHECKSUM_SIZE, EventHeader, EventType};

/// The bytes of one event, from the common header to the checksum, as a reader hands them out.
#[derive(Debug, Clone, Copy)]
pub enum RawEvent<'a> {
    /// In memory.
    Memory(&'a [u8]),
    /// In a file: a compressed transaction that is too large to be held.
    File(&'a SpilledEvent),
}

impl<'a> RawEvent<'a> {
    /// The bytes, if they are in memory.
    #[must_use]
    pub const fn memory(self) -> Option<&'a [u8]> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::File(_) => None,
        }
    }
}

impl<'a> From<&'a [u8]> for RawEvent<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Memory(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for RawEvent<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Memory(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for RawEvent<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Memory(bytes)
    }
}

/// An event in a temporary file, which has no name and goes with it.
#[derive(Debug)]
pub struct SpilledEvent {
    file: Arc<File>,
    head: Vec<u8>,
    size: u64,
}

impl SpilledEvent {
    /// Whether the event that begins with `head` is one for a file, at more than `limit` bytes.
    pub(crate) fn is_for(head: &[u8], limit: usize) -> bool {
        EventHeader::parse(head).is_ok_and(|header| {
            header.event_type == EventType::TransactionPayload && header.event_size as usize > limit
        })
    }

    /// Size of the event, bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The first bytes of the event: the common header and all fields before the payload.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The bytes from `start` on, without the last `tail`.
    pub(crate) fn part(&self, start: u64, tail: u64) -> SpilledPart<'_> {
        SpilledPart { event: self, start, end: self.size.saturating_sub(tail).max(start) }
    }

    #[cfg(all(test, feature = "client"))]
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let (mut all, mut piece) = (Vec::new(), Vec::new());
        let mut reader = self.part(0, 0).reader();
        while reader.read_into(&mut piece)? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The checksum at the end, and that of the bytes before it. `None` for an event too short to have one.
    pub(crate) fn checksums(&self) -> io::Result<Option<(u32, u32)>> {
        let size = CHECKSUM_SIZE as u64;
        let Some(covered) = self.size.checked_sub(size) else { return Ok(None) };
        let mut hasher = crc32fast::Hasher::new();
        let mut buffer = Vec::new();
        let mut part = self.part(0, size).reader();
        while part.read_into(&mut buffer)? {
            hasher.update(&buffer);
        }
        part = self.part(covered, 0).reader();
        part.read_into(&mut buffer)?;
        let stored = buffer.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Ok(Some((stored, hasher.finalize())))
    }
}

/// Some of the bytes of an event in a file.
#[derive(Debug, Clone, Copy)]
pub struct SpilledPart<'a> {
    event: &'a SpilledEvent,
    start: u64,
    end: u64,
}

impl SpilledPart<'_> {
    /// How many bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn reader(&self) -> SpilledReader {
        SpilledReader { file: Arc::clone(&self.event.file), position: self.start, end: self.end }
    }
}

/// Reads them in pieces, also when the event is gone.
#[derive(Debug)]
pub(crate) struct SpilledReader {
    file: Arc<File>,
    position: u64,
    end: u64,
}

impl SpilledReader {
    /// Whether nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.position == self.end
    }

    /// Replaces what `buffer` has by the next piece. False at the end.
    pub(crate) fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let size = (self.end - self.position).min(PIECE);
        buffer.clear();
        if size == 0 {
            return Ok(false);
        }
        let mut file = self.file.as_ref();
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.take(size).read_to_end(buffer)? as u64;
        if read < size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += read;
        Ok(true)
    }
}

/// Writes an event to a temporary file as its bytes come.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    file: File,
    head: Vec<u8>,
    size: u64,
}

impl SpillWriter {
    /// In the system's folder for temporary files.
    pub(crate) fn begin() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, head: Vec::with_capacity(HEAD), size: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let missing = bytes.len().min(HEAD.saturating_sub(self.head.len()));
        self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
        self.file.write_all(bytes)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Bytes written.
    #[cfg(feature = "client")]
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn finish(self) -> SpilledEvent {
        SpilledEvent { file: Arc::new(self.file), head: self.head, size: self.size }
    }
}

/// A compressed transaction of more bytes goes to a file.
pub(crate) const SPILL_ABOVE: usize = 8 << 20;
/// The first bytes that are held. The common header has 19, the fields before a payload have at most 35.
const HEAD: usize = 128;
/// Bytes read at once.
const PIECE: u64 = 128 << 10;
