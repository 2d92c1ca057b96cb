//! [`BinlogFileReader`]: the events of a binlog file, as bytes, one after the other.
//!
//! ```no_run
//! use holdfast_binlog::file::BinlogFileReader;
//! use holdfast_binlog::stream::{EventStream, StreamOptions};
//!
//! # fn main() -> Result<(), holdfast_binlog::Error> {
//! let mut reader = BinlogFileReader::open("mysql-bin.000001")?;
//! let mut stream = EventStream::new("mysql-bin.000001", StreamOptions::default());
//! while let Some(bytes) = reader.next_event()? {
//!     let event = stream.decode(bytes)?;
//!     println!("{} {}", event.position, event.header.event_type);
//! }
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, EventContext};
use crate::event::{EventHeader, RawEvent, SPILL_ABOVE, SpillWriter, SpilledEvent};

/// Cuts a binlog file into its events. They go to [`EventStream::decode`](crate::stream::EventStream::decode).
///
/// Reads in large pieces into one buffer, which grows only as far as the bytes of an event really come; a compressed
/// transaction of more than 8 MiB goes to a temporary file. A file that its
/// server has not closed is read up to its end; an event that is not complete there is an error.
pub struct BinlogFileReader<R> {
    reader: R,
    /// Name for errors.
    name: String,
    buffer: Vec<u8>,
    /// The part of `buffer` that was read and not handed out.
    start: usize,
    end: usize,
    /// Offset in the file of `start`.
    position: u64,
    /// The event that was handed out last, if it is in a file.
    spilled: Option<SpilledEvent>,
}

impl<R> fmt::Debug for BinlogFileReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BinlogFileReader")
            .field("name", &self.name)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl BinlogFileReader<File> {
    /// Opens a file and checks that it is a binlog.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and [`Error::NotABinlog`] by the first four bytes.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).map_err(|source| Error::Io {
            file: name.clone(),
            position: 0,
            source,
        })?;
        Self::new(file, name)
    }
}

impl<R: Read> BinlogFileReader<R> {
    /// Reads from anything, such as standard input, and checks that it is a binlog. `name` is for errors.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and [`Error::NotABinlog`] by the first four bytes.
    pub fn new(reader: R, name: impl Into<String>) -> Result<Self, Error> {
        let mut this = Self {
            reader,
            name: name.into(),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            position: 0,
            spilled: None,
        };
        this.fill(MAGIC.len())?;
        let found = match this.unread().get(..MAGIC.len()) {
            Some(MAGIC) => {
                this.consume(MAGIC.len());
                return Ok(this);
            }
            Some(ENCRYPTED) => "it is encrypted (a server sends it decrypted)",
            Some([b'#', ..]) => "it begins like text",
            Some([b'/' | b'-', _, b' ' | b'!', _]) => "it begins like SQL",
            Some(_) => "its first bytes are others",
            None if this.end == 0 => "it is empty",
            None => "it is shorter than 4 bytes",
        };
        Err(Error::NotABinlog { file: this.name, found })
    }

    /// The next event, all its bytes from the common header to the checksum. Nothing at the end of the file.
    ///
    /// # Errors
    ///
    /// [`Error::TruncatedFile`] when the file ends inside the event, [`Error::Decode`] for a size below that of a header,
    /// [`Error::TooLarge`] for one above 1 GiB, [`Error::Io`], [`Error::Spill`] when there is no temporary file to be had.
    pub fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, Error> {
        self.spilled = None;
        self.fill(EventHeader::SIZE)?;
        let unread = self.unread();
        if unread.is_empty() {
            return Ok(None);
        }
        if unread.len() < EventHeader::SIZE {
            return Err(self.truncated(self.position, EventHeader::SIZE, unread.len()));
        }
        let header = match EventHeader::parse(unread) {
            Ok(header) => header,
            Err(source) => return Err(Error::Decode { at: self.at(None), source }),
        };
        let size = header.event_size as usize;
        if size > MAX_EVENT_SIZE {
            return Err(Error::TooLarge {
                at: self.at(Some(&header)),
                what: "the event",
                size: header.event_size.into(),
                limit: MAX_EVENT_SIZE as u64,
            });
        }
        if SpilledEvent::is_for(unread, SPILL_ABOVE) {
            let spilled = self.spill(&header)?;
            return Ok(Some(RawEvent::File(self.spilled.insert(spilled))));
        }
        self.fill(size)?;
        if self.unread().len() < size {
            return Err(self.truncated(self.position, size, self.unread().len()));
        }
        let start = self.start;
        self.consume(size);
        Ok(self.buffer.get(start..start + size).map(RawEvent::Memory))
    }

    /// Copies the next event to a temporary file.
    fn spill(&mut self, header: &EventHeader) -> Result<SpilledEvent, Error> {
        let (position, at, size) =
            (self.position, self.at(Some(header)), header.event_size as usize);
        let failed = |source| Error::Spill { at: at.clone(), source };
        let mut writer = SpillWriter::begin().map_err(failed)?;
        let mut left = size;
        while left > 0 {
            self.fill(1)?;
            let unread = self.unread();
            if unread.is_empty() {
                return Err(self.truncated(position, size, size - left));
            }
            let piece = unread.get(..left).unwrap_or(unread);
            writer.write(piece).map_err(failed)?;
            let count = piece.len();
            left -= count;
            self.consume(count);
        }
        Ok(writer.finish())
    }

    /// The next event.
    fn at(&self, header: Option<&EventHeader>) -> Box<EventContext> {
        Box::new(EventContext {
            file: self.name.clone(),
            position: self.position,
            event_type: header.map(|header| header.event_type),
            server_id: header.map_or(0, |header| header.server_id),
            end: None,
        })
    }

    /// Offset of the next event in the file, bytes.
    pub const fn position(&self) -> u64 {
        self.position
    }

    fn truncated(&self, position: u64, needed: usize, left: usize) -> Error {
        let (needed, left) = (needed as u64, left as u64);
        Error::TruncatedFile { file: self.name.clone(), position, needed, left }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    const fn consume(&mut self, count: usize) {
        self.start += count;
        self.position += count as u64;
    }

    /// Reads until `needed` bytes are unread, or the file ends.
    fn fill(&mut self, needed: usize) -> Result<(), Error> {
        while self.end - self.start < needed {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.end == self.buffer.len() {
                // Doubles: at most twice of what really came is held.
                self.buffer.resize((self.end * 2).max(READ_SIZE), 0);
            }
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.reader.read(free) {
                Ok(0) => return Ok(()),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let position = self.position + self.unread().len() as u64;
                    return Err(Error::Io { file: self.name.clone(), position, source });
                }
            }
        }
        Ok(())
    }
}

impl<R: Read + Seek> BinlogFileReader<R> {
    /// Goes to the event at `position`, an offset from the start of the file. An [`EventStream`](crate::stream::EventStream)
    /// must have decoded the first event of the file, the format description, before, and is told by its `seek`.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn seek(&mut self, position: u64) -> Result<(), Error> {
        match self.reader.seek(SeekFrom::Start(position)) {
            Ok(position) => {
                self.position = position;
                (self.start, self.end) = (0, 0);
                Ok(())
            }
            Err(source) => Err(Error::Io { file: self.name.clone(), position, source }),
        }
    }
}

/// First bytes of every binlog file.
pub const MAGIC: &[u8] = b"\xfebin";
/// First bytes of a file that MySQL 8.0.14 or later has encrypted.
const ENCRYPTED: &[u8] = b"\xfdbin";
/// The most a server writes: `max_allowed_packet` ends at 1 GiB; a header and a checksum come on top.
const MAX_EVENT_SIZE: usize = (1 << 30) + 1024;
/// Bytes asked for at once.
const READ_SIZE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::ErrorClass;
    use crate::testkit::LogBuilder;

    /// Gives one byte at a time, an interruption before each, and an error at the end.
    struct Slow<'a> {
        bytes: &'a [u8],
        is_interrupted: bool,
    }

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.is_interrupted = !self.is_interrupted;
            if self.is_interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            match (self.bytes.split_first(), out.first_mut()) {
                (Some((byte, rest)), Some(slot)) => {
                    *slot = *byte;
                    self.bytes = rest;
                    Ok(1)
                }
                _ => Err(io::Error::other("the disk is gone")),
            }
        }
    }

    #[test]
    fn events_are_whole_however_the_bytes_come() {
        let log = LogBuilder::new("a.001").xid(1).xid(2);
        let bytes = log.clone().into_bytes();
        let slow = Slow { bytes: &bytes, is_interrupted: false };
        let mut reader = BinlogFileReader::new(slow, "a.001").unwrap();
        for event in log.events() {
            assert_eq!(reader.next_event().unwrap().unwrap().memory(), Some(event));
        }
        match reader.next_event() {
            Err(Error::Io { file, position, source }) => {
                assert_eq!((file.as_str(), position), ("a.001", bytes.len() as u64));
                assert_eq!(source.to_string(), "the disk is gone");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn events_larger_than_a_read_are_whole() {
        let text = "0123456789".repeat(READ_SIZE / 4);
        let log = LogBuilder::new("a.001").xid(1).query("", &text).xid(2).query("", &text).xid(3);
        let bytes = log.clone().into_bytes();
        let mut reader = BinlogFileReader::new(bytes.as_slice(), "a.001").unwrap();
        let mut position = 4;
        for event in log.events() {
            assert_eq!(reader.position(), position);
            assert_eq!(reader.next_event().unwrap().unwrap().memory(), Some(event));
            position += event.len() as u64;
        }
        assert!(reader.next_event().unwrap().is_none());
        assert!(reader.next_event().unwrap().is_none(), "the end stays the end");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = BinlogFileReader::open("no/such/mysql-bin.000001").unwrap_err();
        assert_eq!(error.to_string(), "can't read no/such/mysql-bin.000001 at 0");
        assert_eq!(error.class(), ErrorClass::Config);
    }
}
