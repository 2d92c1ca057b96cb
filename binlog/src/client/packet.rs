//! Framing: packets out of and into a byte stream.
//!
//! ```text
//! length    u24le   of the payload
//! sequence  u8      counts packets since the last command, in both directions
//! payload   length bytes; exactly 16 MiB - 1 means that the next packet continues this one
//! ```
//!
//! Source: MySQL internals, "Protocol Basics"; `sql-common/net_serv.cc`.

#[cfg(any(test, feature = "testkit"))]
use std::fmt;
use std::io;
use std::time::Duration;

#[cfg(any(test, feature = "testkit"))]
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::compression::{Compression, Frames};
use super::error::{ClientError, Endpoint};
use super::tls::{TlsOptions, TlsTransport};
use crate::event::{EventHeader, RawEvent, SpillWriter, SpilledEvent};
use crate::wire::DecodeError;

/// The payload length that says that another packet continues this one. A fuzzer has far less to send.
const FULL: usize = if cfg!(fuzzing) { 0xff } else { 0xff_ffff };

/// Bytes before a payload.
const HEADER: usize = 4;

/// The first byte of a packet that has an event.
const EVENT: u8 = 0x00;

/// Size of the read buffer, bytes, while no packet needs a larger one.
const BUFFER: usize = 256 << 10;

/// A buffer that grew beyond this for a large packet is given back after it, bytes.
const KEEP: usize = 8 << 20;

/// The bytes below the packets.
#[derive(Debug)]
pub(super) enum Transport {
    /// Plain TCP.
    Tcp(TcpStream),
    /// TLS over TCP.
    Tls(Box<TlsTransport>),
    /// In tests, what takes the place of a connection.
    #[cfg(any(test, feature = "testkit"))]
    Pipe(Box<dyn Pipe>),
}

/// What can take the place of a connection in tests, such as `tokio::io::DuplexStream`. Its other end plays the server.
#[cfg(any(test, feature = "testkit"))]
pub trait Pipe: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin {}

#[cfg(any(test, feature = "testkit"))]
impl<T: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin> Pipe for T {}

impl Transport {
    /// Whether nobody on the way can read or change the bytes.
    pub(super) const fn is_secure(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Tls(_) => true,
            #[cfg(any(test, feature = "testkit"))]
            Self::Pipe(_) => false,
        }
    }

    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Tls(stream) => stream.read(buffer).await,
            #[cfg(any(test, feature = "testkit"))]
            Self::Pipe(stream) => stream.read(buffer).await,
        }
    }

    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.write_all(bytes).await,
            Self::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
            #[cfg(any(test, feature = "testkit"))]
            Self::Pipe(stream) => stream.write_all(bytes).await,
        }
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown().await,
            Self::Tls(stream) => stream.shutdown().await,
            #[cfg(any(test, feature = "testkit"))]
            Self::Pipe(stream) => stream.shutdown().await,
        }
    }
}

/// Reads and writes packets. One buffer serves all reads; a packet is handed out as a part of it.
///
/// ```text
///  0        start      start + handed                end        buffer.len()
///  |  done  | handed out | further packets, a part    |  room    |
/// ```
///
/// While a packet that came in pieces is put together, `start` is at the header of the first piece, `joined` bytes of
/// payload follow it without the headers of the later pieces, and `piece` is the length of the one being read.
#[derive(Debug)]
pub(super) struct PacketStream {
    transport: Transport,
    /// Between transport and packets, where the connection is compressed.
    frames: Option<Box<Frames>>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    handed: usize,
    joined: usize,
    piece: Option<usize>,
    sequence: u8,
    max_packet: usize,
    silence: Option<Duration>,
    heard: Instant,
    spill: Spill,
}

/// What goes to a temporary file instead of the buffer.
///
/// While an event is written, `start` is at the first byte of it that is not, and `piece` counts the bytes of the piece
/// that are not.
#[derive(Debug)]
struct Spill {
    /// An event of more bytes does.
    above: usize,
    writing: Option<SpillWriter>,
    /// Whether another piece follows the one that is read.
    continues: bool,
    /// The one handed out.
    event: Option<SpilledEvent>,
}

/// What a server sends during a dump.
pub(super) enum Packet<'a> {
    /// An event.
    Event(RawEvent<'a>),
    /// Anything else.
    Other(&'a [u8]),
}

impl PacketStream {
    /// `max_packet`: largest payload accepted, bytes.
    pub(super) fn new(transport: Transport, max_packet: usize) -> Self {
        Self {
            transport,
            frames: None,
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            handed: 0,
            joined: 0,
            piece: None,
            sequence: 0,
            max_packet,
            silence: None,
            heard: Instant::now(),
            spill: Spill { above: usize::MAX, writing: None, continues: false, event: None },
        }
    }

    /// The next packet of a dump. The last one handed out ends with this call.
    ///
    /// Cancel-safe as [`Self::next`] is.
    #[inline]
    pub(super) async fn next_of_dump(&mut self) -> Result<Packet<'_>, ClientError> {
        if !self.take_buffered()? {
            self.receive().await?;
        }
        Ok(self.packet())
    }

    /// Takes the next packet, if all of it is here in one piece: nearly all are, and need nothing that waits.
    #[inline]
    fn take_buffered(&mut self) -> Result<bool, ClientError> {
        self.start += std::mem::take(&mut self.handed);
        self.spill.event = None;
        if !self.has_buffered() {
            return Ok(false);
        }
        let len = self.parse_header(0, 0)?;
        if len > self.spill.above {
            self.piece = Some(len);
            return Ok(false);
        }
        self.handed = HEADER + len;
        Ok(true)
    }

    /// Waits for a packet that was not taken.
    async fn receive(&mut self) -> Result<(), ClientError> {
        if self.begins_spill().await? { self.spill().await } else { self.next().await.map(|_| ()) }
    }

    /// The packet that was taken or received last.
    #[inline]
    fn packet(&self) -> Packet<'_> {
        if let Some(event) = &self.spill.event {
            return Packet::Event(RawEvent::File(event));
        }
        let packet = self.buffered().get(HEADER..self.handed).unwrap_or_default();
        match packet.split_first() {
            Some((&EVENT, event)) => Packet::Event(RawEvent::Memory(event)),
            _ => Packet::Other(packet),
        }
    }

    /// Whether the next packet, or the one that is being read, goes to a file.
    async fn begins_spill(&mut self) -> Result<bool, ClientError> {
        if self.spill.writing.is_some() || self.spill.above == usize::MAX || self.joined > 0 {
            return Ok(self.spill.writing.is_some());
        }
        let piece = match self.piece {
            Some(piece) => piece,
            None => self.begin_piece().await?,
        };
        if piece < FULL && piece <= self.spill.above {
            return Ok(false);
        }
        self.fill(HEADER + 1 + EventHeader::SIZE).await?;
        let head = self.buffered().get(HEADER..).unwrap_or_default();
        let is_for_file = match head.split_first() {
            Some((&EVENT, event)) => SpilledEvent::is_for(event, self.spill.above),
            _ => false,
        };
        if is_for_file {
            self.spill.writing =
                Some(SpillWriter::begin().map_err(|source| ClientError::Spill { source })?);
            self.spill.continues = piece == FULL;
            self.start += HEADER + 1;
            self.piece = Some(piece - 1);
        }
        Ok(is_for_file)
    }

    /// Writes the rest of an event.
    async fn spill(&mut self) -> Result<(), ClientError> {
        while let Some(mut writer) = self.spill.writing.take() {
            // Taken only while nothing is awaited.
            let mut left = self.piece.unwrap_or_default();
            let here = self.buffered();
            let here = here.get(..left).unwrap_or(here);
            let count = here.len();
            let written = writer.write(here);
            let size = usize::try_from(writer.size()).unwrap_or(usize::MAX);
            left -= count;
            self.start += count;
            self.piece = Some(left);
            if left == 0 && !self.spill.continues {
                self.piece = None;
                self.spill.event = Some(writer.finish());
            } else {
                self.spill.writing = Some(writer);
            }
            written.map_err(|source| ClientError::Spill { source })?;
            if self.spill.writing.is_none() {
                break;
            } else if left > 0 {
                self.fill(1).await?;
            } else {
                self.fill(HEADER).await?;
                let piece = self.parse_header(0, size)?;
                self.start += HEADER;
                self.piece = Some(piece);
                self.spill.continues = piece == FULL;
            }
        }
        Ok(())
    }

    /// The next payload, whole. The last one handed out ends with this call.
    ///
    /// Cancel-safe: the only await is a read of the transport, which takes no bytes unless it completes, and everything
    /// read so far is in `self`.
    pub(super) async fn next(&mut self) -> Result<&[u8], ClientError> {
        self.start += std::mem::take(&mut self.handed);
        loop {
            let piece = match self.piece {
                Some(piece) => piece,
                None => self.begin_piece().await?,
            };
            self.fill(HEADER + self.joined + piece).await?;
            self.piece = None;
            self.joined += piece;
            if piece < FULL {
                break;
            }
        }
        let len = std::mem::take(&mut self.joined);
        self.handed = HEADER + len;
        Ok(self.buffered().get(HEADER..HEADER + len).unwrap_or_default())
    }

    /// Reads the header of a piece, and takes it out of the way when it is not the first.
    async fn begin_piece(&mut self) -> Result<usize, ClientError> {
        let at = if self.joined == 0 { 0 } else { HEADER + self.joined };
        self.fill(at + HEADER).await?;
        let piece = self.parse_header(at, self.joined)?;
        if at > 0 {
            let at = self.start + at;
            self.buffer.copy_within(at + HEADER..self.end, at);
            self.end -= HEADER;
        }
        self.piece = Some(piece);
        Ok(piece)
    }

    /// Length of the piece whose header is `at` bytes behind `start` and buffered; `before` bytes of the payload came in
    /// earlier ones.
    fn parse_header(&mut self, at: usize, before: usize) -> Result<usize, ClientError> {
        let header = self.buffered().get(at..).and_then(<[u8]>::first_chunk);
        let [a, b, c, sequence] = *header.expect("the header was read");
        let piece = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        // With compression the frames are numbered.
        if sequence != self.sequence && self.frames.is_none() {
            return Err(ClientError::OutOfSequence { expected: self.sequence, found: sequence });
        }
        if before.saturating_add(piece) > self.max_packet {
            return Err(ClientError::PacketTooLarge {
                size: (before + piece) as u64,
                limit: self.max_packet as u64,
            });
        }
        self.sequence = self.sequence.wrapping_add(1);
        Ok(piece)
    }

    /// Reads until `len` bytes from `start` on are buffered.
    async fn fill(&mut self, len: usize) -> Result<(), ClientError> {
        while self.end - self.start < len {
            self.make_room(len);
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            let reading = async {
                match &mut self.frames {
                    None => Ok(self.transport.read(room).await?),
                    Some(frames) => frames.read(&mut self.transport, room).await,
                }
            };
            let read = match self.silence {
                Some(silence) => match timeout_at(self.heard + silence, reading).await {
                    Ok(read) => read?,
                    Err(_) => {
                        return Err(ClientError::Silent { seconds: silence.as_secs_f64() });
                    }
                },
                None => reading.await?,
            };
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if self.silence.is_some() {
                self.heard = Instant::now();
            }
            self.end += read;
        }
        Ok(())
    }

    /// Makes the buffer hold `len` bytes from `start` on, with a good part of it free for one large read.
    fn make_room(&mut self, len: usize) {
        let buffered = self.end - self.start;
        if self.buffer.len() > KEEP && len.max(buffered) <= BUFFER / 2 {
            let mut smaller = vec![0; BUFFER];
            if let Some(front) = smaller.get_mut(..buffered) {
                front.copy_from_slice(self.buffered());
            }
            self.buffer = smaller;
            (self.start, self.end) = (0, buffered);
            return;
        }
        let room = self.buffer.len() - self.end;
        if room < (len - buffered).max(BUFFER / 2) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, buffered);
        }
        if self.buffer.len() < len {
            // Doubling keeps the copies of a packet of many pieces few.
            self.buffer.resize(len.max(self.buffer.len().saturating_mul(2)), 0);
        }
    }

    /// From now on a read fails that gets nothing for so long since the last bytes, or since now.
    pub(super) fn silence_after(&mut self, silence: Option<Duration>) {
        self.silence = silence;
        self.heard = Instant::now();
    }

    /// From now on packets may have so many bytes.
    pub(super) const fn accept_up_to(&mut self, max_packet: usize) {
        self.max_packet = max_packet;
    }

    /// From now on compressed transactions of more bytes go to a temporary file.
    pub(super) const fn spill_above(&mut self, bytes: usize) {
        self.spill.above = bytes;
    }

    /// Begins a command: the next packet has number 0.
    pub(super) async fn command(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        self.sequence = 0;
        if let Some(frames) = &mut self.frames {
            frames.command();
        }
        self.send(payload).await
    }

    /// Sends one payload as the next packet, or packets. Not cancel-safe.
    pub(super) async fn send(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut frame = Vec::with_capacity(payload.len() + HEADER);
        let mut rest = payload;
        loop {
            let (piece, tail) = rest.split_at(rest.len().min(FULL));
            let [a, b, c, ..] = piece.len().to_le_bytes();
            frame.extend_from_slice(&[a, b, c, self.sequence]);
            frame.extend_from_slice(piece);
            self.sequence = self.sequence.wrapping_add(1);
            rest = tail;
            if piece.len() < FULL {
                break;
            }
        }
        if let Some(frames) = &mut self.frames {
            frame = frames.wrap(&frame);
        }
        Ok(self.transport.write_all(&frame).await?)
    }

    /// Goes on encrypted, after the request for it was sent.
    pub(super) async fn encrypt(
        self,
        tls: &TlsOptions,
        endpoint: &Endpoint,
    ) -> Result<Self, ClientError> {
        // What came before the handshake is not protected: it must not be taken for what comes after it.
        if self.start + self.handed != self.end {
            let source = DecodeError::Unsupported { what: "bytes between greeting and TLS" };
            return Err(ClientError::Protocol { during: "start TLS", source });
        }
        let transport = match self.transport {
            Transport::Tcp(stream) => {
                Transport::Tls(Box::new(tls.shake_hands(stream, endpoint).await?))
            }
            Transport::Tls(stream) => Transport::Tls(stream),
            #[cfg(any(test, feature = "testkit"))]
            Transport::Pipe(stream) => Transport::Pipe(stream),
        };
        Ok(Self { transport, ..self })
    }

    /// Goes on compressed, after the login.
    pub(super) fn compress(&mut self, compression: Compression) -> Result<(), ClientError> {
        self.frames = Frames::new(compression)?.map(Box::new);
        if self.frames.is_some() && self.start + self.handed != self.end {
            let source = DecodeError::Unsupported { what: "bytes between login and compression" };
            return Err(ClientError::Protocol { during: "log in", source });
        }
        Ok(())
    }

    /// The version of TLS, such as `TLSv1.3`; `None` for a plain connection.
    pub(super) fn tls_version(&self) -> Option<&'static str> {
        match &self.transport {
            Transport::Tls(stream) => stream.get_ref().1.protocol_version()?.as_str(),
            Transport::Tcp(_) => None,
            #[cfg(any(test, feature = "testkit"))]
            Transport::Pipe(_) => None,
        }
    }

    /// Says that nothing more will be sent.
    pub(super) async fn shutdown(&mut self) -> Result<(), ClientError> {
        Ok(self.transport.shutdown().await?)
    }

    /// Whether the next packet can be had without waiting. May say no to one that came in pieces, or that is still
    /// compressed.
    #[inline]
    pub(super) fn has_buffered(&self) -> bool {
        if self.joined > 0 || self.piece.is_some() || self.spill.writing.is_some() {
            return false;
        }
        let rest = self.buffered().get(self.handed..).unwrap_or_default();
        rest.first_chunk().is_some_and(|[a, b, c, _sequence]| {
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            len < FULL && rest.len() >= HEADER + len
        })
    }

    pub(super) const fn is_secure(&self) -> bool {
        self.transport.is_secure()
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    #[tokio::test]
    async fn packets_come_one_by_one_however_the_bytes_are_cut() {
        let mut bytes = Vec::new();
        for (sequence, len) in [0_usize, 1, 300, 70_000, 5].into_iter().enumerate() {
            bytes.extend(frame(low(sequence), &vec![low(len); len]));
        }
        for chunk in [1, 3, 4, 5, 1000, bytes.len()] {
            let (mut packets, mut server) = pair(1 << 20);
            let sent = bytes.clone();
            let writer = tokio::spawn(async move {
                for part in sent.chunks(chunk) {
                    server.write_all(part).await.unwrap();
                }
            });
            for len in [0_usize, 1, 300, 70_000, 5] {
                assert_eq!(packets.next().await.unwrap(), vec![low(len); len], "chunk {chunk}");
            }
            writer.await.unwrap();
            assert!(matches!(packets.next().await, Err(ClientError::Io(_))));
        }
    }

    #[tokio::test]
    async fn a_packet_in_pieces_is_joined_and_the_next_one_is_whole() {
        for tail in [0, 3, 1000] {
            let (mut packets, mut server) = pair(usize::MAX);
            let full = pattern(FULL);
            let sent = [
                frame(0, &full),
                frame(1, &full),
                frame(2, &pattern(tail)),
                frame(3, b"next"),
                frame(4, b"last"),
            ]
            .concat();
            let writer = tokio::spawn(async move { server.write_all(&sent).await.unwrap() });
            let packet = packets.next().await.unwrap();
            assert!(packet == [&full[..], &full, &pattern(tail)].concat(), "tail {tail}");
            assert_eq!(packets.next().await.unwrap(), b"next");
            assert_eq!(packets.next().await.unwrap(), b"last");
            writer.await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_buffer_is_given_back_after_a_large_packet() {
        let (mut packets, mut server) = pair(usize::MAX);
        let sent = frame(0, &pattern(KEEP + 1));
        let writer = tokio::spawn(async move {
            server.write_all(&sent).await.unwrap();
            for sequence in 1..200 {
                server.write_all(&frame(sequence, &[7; 2000])).await.unwrap();
            }
        });
        assert_eq!(packets.next().await.unwrap().len(), KEEP + 1);
        for _ in 1..200 {
            assert_eq!(packets.next().await.unwrap(), [7; 2000]);
        }
        writer.await.unwrap();
        assert_eq!(packets.buffer.len(), BUFFER);
    }

    #[tokio::test]
    async fn a_large_transaction_goes_to_a_file_and_a_dropped_read_loses_no_bytes() {
        let transaction = |tail: usize| {
            let mut payload = pattern(1 + FULL + tail);
            let size = u32::try_from(payload.len() - 1).unwrap();
            payload[0] = EVENT;
            payload[5] = crate::event::EventType::TransactionPayload.code();
            payload[10..14].copy_from_slice(&size.to_le_bytes());
            payload
        };
        // The second ends with an empty piece.
        let (first, second) = (transaction(70), transaction(FULL - 1));
        let sent = [
            frame(0, b"\0event"),
            frame(1, &first[..FULL]),
            frame(2, &first[FULL..]),
            frame(3, &second[..FULL]),
            frame(4, &second[FULL..]),
            frame(5, b""),
            frame(6, b"\0end"),
        ]
        .concat();
        let (mut packets, mut server) = pair(usize::MAX);
        packets.spill_above(1 << 20);
        let (mut in_memory, mut in_files) = (Vec::new(), Vec::new());
        let mut keep = |packet: Packet<'_>| match packet {
            Packet::Event(RawEvent::File(event)) => in_files.push(event.bytes().unwrap()),
            Packet::Event(RawEvent::Memory(bytes)) => in_memory.push(bytes.to_vec()),
            Packet::Other(other) => panic!("{other:?}"),
        };
        let start = HEADER + 6 + HEADER;
        let cuts = [start - 2, start, start + 1, start + 19, start + 20, start + 21, start + FULL];
        let cuts = cuts.into_iter().chain([start + FULL + 2, start + FULL + 9, sent.len()]);
        let mut from = 0;
        for cut in cuts {
            let part = sent[from..cut].to_vec();
            from = cut;
            let write = server.write_all(&part);
            tokio::pin!(write);
            loop {
                tokio::select! {
                    biased;
                    packet = packets.next_of_dump() => keep(packet.unwrap()),
                    _ = &mut write => break,
                }
            }
        }
        drop(server);
        while let Ok(packet) = packets.next_of_dump().await {
            keep(packet);
        }
        assert_eq!(in_memory, [b"event".to_vec(), b"end".to_vec()]);
        assert!(in_files == [first[1..].to_vec(), second[1..].to_vec()]);
        assert_eq!(packets.buffer.len(), BUFFER, "nothing large was held");
    }

    #[tokio::test]
    async fn a_dropped_read_loses_no_bytes() {
        let (mut packets, mut server) = pair(usize::MAX);
        let full = pattern(FULL);
        let sent =
            [frame(0, b"first"), frame(1, &full), frame(2, b"tail"), frame(3, b"end")].concat();
        let mut seen = Vec::new();
        // Hand over a bit, poll once, drop the future; the cuts fall into headers, payloads and between pieces.
        let cuts = [
            1,
            3,
            4,
            5,
            9,
            10,
            12,
            13,
            14,
            1 << 20,
            FULL,
            FULL + 13,
            FULL + 15,
            FULL + 17,
            FULL + 20,
        ];
        let mut from = 0;
        for cut in cuts.into_iter().chain([sent.len()]) {
            let part = sent[from..cut].to_vec();
            from = cut;
            let write = server.write_all(&part);
            tokio::pin!(write);
            loop {
                tokio::select! {
                    biased;
                    packet = packets.next() => seen.push(packet.unwrap().to_vec()),
                    _ = &mut write => break,
                }
            }
        }
        drop(server);
        while let Ok(packet) = packets.next().await {
            seen.push(packet.to_vec());
        }
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0], b"first");
        assert!(seen[1] == [&full[..], b"tail"].concat());
        assert_eq!(seen[2], b"end");
    }

    #[tokio::test]
    async fn too_large_and_out_of_order_packets_are_refused_before_memory_is_taken() {
        let (mut packets, mut server) = pair(1000);
        server.write_all(&[0xe9, 0x03, 0, 0]).await.unwrap();
        let refused = packets.next().await;
        assert!(matches!(refused, Err(ClientError::PacketTooLarge { size: 1001, limit: 1000 })));
        assert_eq!(packets.buffer.len(), BUFFER);

        let (mut packets, mut server) = pair(1000);
        server.write_all(&frame(1, b"x")).await.unwrap();
        let refused = packets.next().await;
        assert!(matches!(refused, Err(ClientError::OutOfSequence { expected: 0, found: 1 })));
    }

    #[tokio::test]
    async fn what_is_buffered_is_known_without_waiting() {
        let (mut packets, mut server) = pair(usize::MAX);
        assert!(!packets.has_buffered());
        let two = [frame(0, b"one"), frame(1, b"two"), frame(2, b"three")].concat();
        server.write_all(&two[..two.len() - 1]).await.unwrap();
        assert_eq!(packets.next().await.unwrap(), b"one");
        assert!(packets.has_buffered());
        assert_eq!(packets.next().await.unwrap(), b"two");
        assert!(!packets.has_buffered());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_an_error_that_polling_does_not_put_off() {
        let (transport, _server) = tokio::io::duplex(64);
        let mut packets = PacketStream::new(Transport::Pipe(Box::new(transport)), 1000);
        packets.silence_after(Some(Duration::from_secs(10)));
        for _ in 0..3 {
            let poll = tokio::time::timeout(Duration::from_secs(3), packets.next()).await;
            assert!(poll.is_err());
        }
        assert!(matches!(packets.next().await, Err(ClientError::Silent { .. })));
    }

    #[tokio::test]
    async fn a_payload_of_exactly_the_full_length_is_followed_by_an_empty_packet() {
        let (transport, mut server) = tokio::io::duplex(FULL + 100);
        let mut packets = PacketStream::new(Transport::Pipe(Box::new(transport)), 1000);
        packets.command(&pattern(FULL)).await.unwrap();
        let mut sent = vec![0; FULL + 8];
        server.read_exact(&mut sent).await.unwrap();
        assert_eq!(
            (&sent[..4], &sent[FULL + 4..]),
            (&[0xff, 0xff, 0xff, 0][..], &[0, 0, 0, 1][..])
        );
    }

    fn pair(max_packet: usize) -> (PacketStream, DuplexStream) {
        let (transport, server) = tokio::io::duplex(64 << 10);
        (PacketStream::new(Transport::Pipe(Box::new(transport)), max_packet), server)
    }

    fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
        let [a, b, c, ..] = payload.len().to_le_bytes();
        [&[a, b, c, sequence], payload].concat()
    }

    fn pattern(len: usize) -> Vec<u8> {
        let mut bytes = vec![low(len); len];
        for at in (0..len).step_by(997) {
            bytes[at] = low(at / 997);
        }
        bytes
    }

    fn low(number: usize) -> u8 {
        number.to_le_bytes()[0]
    }
}
