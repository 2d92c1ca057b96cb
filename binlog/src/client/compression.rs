//! Compressed connections: frames below the packets, from the login on.
//!
//! ```text
//! length    u24le   of the body
//! sequence  u8      counts frames since the last command, in both directions; the packets inside count apart
//! size      u24le   of the body when it is decompressed; 0 for one that is not compressed
//! body      length bytes of the stream of packets, which begin and end anywhere in it
//! ```
//!
//! A body is one zlib stream or one Zstandard frame. Source: MySQL internals, "Compression"; `sql-common/net_serv.cc` and
//! `mysys/my_compress.cc`. Its readers look at the numbers of the frames alone: a server sets those of its packets anew
//! whenever it flushes.

use std::fmt;
use std::io;

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::error::ClientError;
use super::packet::Transport;
use crate::wire::DecodeError;

/// How the connection is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    Off,
    /// By zlib: MySQL and MariaDB.
    Zlib,
    /// By Zstandard: MySQL from 8.0.18 on.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "none",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        })
    }
}

/// Bytes before a body.
const HEADER: usize = 7;

/// Size of the buffer for what comes, bytes.
const BUFFER: usize = 128 << 10;

/// Largest window of a Zstandard frame, as a power of two. No body has more bytes, so none needs a larger one.
const WINDOW_LOG: u32 = 24;

/// Takes the stream of packets out of frames, and puts it into them.
///
/// Memory is a buffer and the window of the decoder, whatever a frame says: bodies are decompressed piece by piece into
/// the reader's buffer.
pub(super) struct Frames {
    decoder: Decoder,
    input: Vec<u8>,
    /// The part of `input` that has not been taken.
    start: usize,
    end: usize,
    frame: Option<Frame>,
    sequence: u8,
}

/// The frame that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// Bytes of the body that have not been taken.
    left: usize,
    /// What the frame says of its decompressed body; `None` for one that is not compressed.
    size: Option<usize>,
    /// Bytes that it has given.
    given: usize,
    /// Whether the decoder may hold more than there was room for.
    is_full: bool,
}

/// What a decoder did.
struct Step {
    read: usize,
    written: usize,
    is_end: bool,
}

enum Decoder {
    Zlib(Decompress),
    Zstd(ZstdDecoder<'static>),
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames")
            .field("frame", &self.frame)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

impl Frames {
    /// `None` for a connection that is not compressed.
    pub(super) fn new(compression: Compression) -> io::Result<Option<Self>> {
        let decoder = match compression {
            Compression::Off => return Ok(None),
            Compression::Zlib => Decoder::Zlib(Decompress::new(true)),
            Compression::Zstd => {
                let mut decoder = ZstdDecoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                Decoder::Zstd(decoder)
            }
        };
        let input = vec![0; BUFFER];
        Ok(Some(Self { decoder, input, start: 0, end: 0, frame: None, sequence: 0 }))
    }

    /// Begins a command: the next frame has number 0.
    pub(super) const fn command(&mut self) {
        self.sequence = 0;
    }

    /// Frames for a part of the stream of packets. What we send is short: it is not worth compressing.
    pub(super) fn wrap(&mut self, packets: &[u8]) -> Vec<u8> {
        const MOST: usize = 0xff_ffff;
        let mut frames = Vec::with_capacity(packets.len() + HEADER);
        for body in packets.chunks(MOST) {
            let [a, b, c, ..] = body.len().to_le_bytes();
            frames.extend_from_slice(&[a, b, c, self.sequence, 0, 0, 0]);
            frames.extend_from_slice(body);
            self.sequence = self.sequence.wrapping_add(1);
        }
        frames
    }

    /// Reads the stream of packets; 0 when the connection is at its end.
    ///
    /// Cancel-safe: the only await is a read of the transport, which takes no bytes unless it completes, and everything
    /// read so far is in `self`.
    pub(super) async fn read(
        &mut self,
        transport: &mut Transport,
        out: &mut [u8],
    ) -> Result<usize, ClientError> {
        loop {
            let count = self.take(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            // Less than a header is left, or nothing.
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let room = self.input.get_mut(self.end..).unwrap_or_default();
            let read = transport.read(room).await?;
            if read == 0 {
                return Ok(0);
            }
            self.end += read;
        }
    }

    /// Puts as much as there is, and fits, into `out`.
    fn take(&mut self, out: &mut [u8]) -> Result<usize, ClientError> {
        let mut done = 0;
        while let Some(mut frame) = self.begun()? {
            let room = out.get_mut(done..).unwrap_or_default();
            let here = self.input.get(self.start..self.end).unwrap_or_default();
            let here = here.get(..frame.left).unwrap_or(here);
            if room.is_empty() || (here.is_empty() && frame.left > 0 && !frame.is_full) {
                break;
            }
            let step = match frame.size {
                Some(size) => self.decoder.step(here, room, &frame, size)?,
                None => copy(here, room, frame.left),
            };
            frame.left -= step.read;
            frame.given += step.written;
            frame.is_full = step.written > 0;
            self.start += step.read;
            done += step.written;
            self.frame = (!step.is_end).then_some(frame);
            if step.is_end && frame.size.is_some() {
                frame.check_end()?;
                self.decoder.reset()?;
            }
        }
        Ok(done)
    }

    /// The frame that is being read, or the next one if its header is there.
    fn begun(&mut self) -> Result<Option<Frame>, ClientError> {
        if self.frame.is_some() {
            return Ok(self.frame);
        }
        let here = self.input.get(self.start..self.end).unwrap_or_default();
        let Some(&[a, b, c, sequence, d, e, f]) = here.first_chunk::<HEADER>() else {
            return Ok(None);
        };
        if sequence != self.sequence {
            return Err(ClientError::OutOfSequence { expected: self.sequence, found: sequence });
        }
        let number =
            |[a, b, c]: [u8; 3]| usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let size = Some(number([d, e, f])).filter(|size| *size > 0);
        self.sequence = self.sequence.wrapping_add(1);
        self.start += HEADER;
        self.frame = Some(Frame { left: number([a, b, c]), size, given: 0, is_full: false });
        Ok(self.frame)
    }
}

impl Frame {
    /// Whether the frame held what it said.
    fn check_end(&self) -> Result<(), ClientError> {
        if self.left > 0 {
            let left = self.left as u64;
            return Err(malformed(DecodeError::Trailing { field: "compressed_body", left }));
        }
        match self.size {
            Some(size) if size != self.given => Err(wrong_size(size, self.given)),
            Some(_) | None => Ok(()),
        }
    }
}

impl Decoder {
    /// Decompresses some of a body of `size` bytes: from `input`, which is all of it that is here, to `out`.
    fn step(
        &mut self,
        input: &[u8],
        out: &mut [u8],
        frame: &Frame,
        size: usize,
    ) -> Result<Step, ClientError> {
        // A body that has given all it should is still to end.
        let mut spare = [0];
        let missing = size - frame.given;
        let out = match missing {
            0 => &mut spare[..],
            _ => {
                let len = out.len().min(missing);
                out.get_mut(..len).unwrap_or_default()
            }
        };
        let damaged =
            || malformed(DecodeError::Invalid { field: "compressed_body", value: size as u64 });
        let step = self.run(input, out).ok_or_else(damaged)?;
        if missing == 0 && step.written > 0 {
            return Err(wrong_size(size, size + step.written));
        }
        let is_stuck = step.read == 0 && step.written == 0 && !step.is_end;
        if is_stuck && frame.left == 0 && missing > 0 {
            return Err(wrong_size(size, frame.given));
        }
        if is_stuck && (frame.left == 0 || !input.is_empty()) {
            return Err(damaged());
        }
        Ok(step)
    }

    /// Decompresses what is here, as far as there is room. Nothing for bytes that are not of the format.
    fn run(&mut self, input: &[u8], out: &mut [u8]) -> Option<Step> {
        match self {
            Self::Zlib(decoder) => {
                let (read, written) = (decoder.total_in(), decoder.total_out());
                let status = decoder.decompress(input, out, FlushDecompress::None).ok()?;
                Some(Step {
                    read: usize::try_from(decoder.total_in() - read).ok()?,
                    written: usize::try_from(decoder.total_out() - written).ok()?,
                    is_end: status == Status::StreamEnd,
                })
            }
            Self::Zstd(decoder) => {
                let mut input = InBuffer::around(input);
                let mut out = OutBuffer::around(out);
                let hint = decoder.run(&mut input, &mut out).ok()?;
                Some(Step { read: input.pos(), written: out.pos(), is_end: hint == 0 })
            }
        }
    }

    /// Begins with another body.
    fn reset(&mut self) -> io::Result<()> {
        match self {
            Self::Zlib(decoder) => decoder.reset(true),
            Self::Zstd(decoder) => decoder.reinit()?,
        }
        Ok(())
    }
}

/// Takes some of a body of which `left` bytes are left.
fn copy(input: &[u8], out: &mut [u8], left: usize) -> Step {
    let len = input.len().min(out.len());
    if let (Some(from), Some(to)) = (input.get(..len), out.get_mut(..len)) {
        to.copy_from_slice(from);
    }
    Step { read: len, written: len, is_end: len == left }
}

const fn wrong_size(said: usize, found: usize) -> ClientError {
    malformed(DecodeError::Mismatch {
        field: "decompressed_size",
        found: said as u64,
        expected: found as u64,
    })
}

const fn malformed(source: DecodeError) -> ClientError {
    ClientError::Protocol { during: "decompress it", source }
}

#[cfg(test)]
mod tests;
