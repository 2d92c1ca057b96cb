//! What a server sends to the client: greeting, login, answers, rows, events.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use holdfast_binlog::client::{
    BinlogClient, ClientError, ClientOptions, Compression, DumpStart, Flavor, Password,
    QueryClient, ServerInfo,
};
use holdfast_binlog::event::RawEvent;
use holdfast_binlog::{BinlogPosition, Error, GtidPos, GtidSet};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes of a packet, and above how many a compressed transaction goes to a file.
const MAX_PACKET: usize = 1 << 20;
const SPILL_ABOVE: usize = 512;

/// Where the client splits packets.
const FULL: usize = if cfg!(fuzzing) { 0xff } else { 0xff_ffff };

/// Flags of the first byte.
const BARE: u8 = 1;
const QUERY: u8 = 2;
const BY_GTID: u8 = 4;
const FAR: u8 = 8;
const ZLIB: u8 = 16;
const ZSTD: u8 = 32;
const PACKED: u8 = 64;

/// The first byte holds flags, the second says how many bytes a read gives, 0 for all there are. What follows is sent by
/// the server: bare bytes, or payloads with a length of two bytes before each, which are framed as the client expects them. With
/// compression each piece of one is the body of a frame, which is not compressed, or packed: compressed to stored blocks. Bare
/// bytes may hold any frames.
///
/// # Panics
///
/// When an event or a row is not what was sent, or something comes after an error.
pub fn packet(data: &[u8]) {
    converse(data);
}

/// The events or rows that the client took.
fn converse(data: &[u8]) -> usize {
    let [flags, chunk, rest @ ..] = data else { return 0 };
    let payloads = if flags & BARE == 0 { split(rest) } else { Vec::new() };
    let sent = Arc::new(AtomicUsize::new(0));
    let compression = match flags & (ZLIB | ZSTD) {
        0 => Compression::Off,
        ZLIB => Compression::Zlib,
        _ => Compression::Zstd,
    };
    let server = Server {
        pieces: frame(&payloads),
        bytes: if flags & BARE == 0 { Vec::new() } else { rest.to_vec() },
        next: 0,
        read: 0,
        sequence: 0,
        compression,
        is_packed: flags & PACKED != 0,
        is_compressed: false,
        chunk: if *chunk == 0 { usize::MAX } else { usize::from(*chunk) },
        sent: Arc::clone(&sent),
    };
    let payloads = (flags & BARE == 0).then_some(Payloads { payloads, sent });
    let mut options = ClientOptions::new("db", 3306, "cdc", 9);
    options.password = Password::new("secret");
    options.compression = compression;
    options.silence_timeout = None;
    options.max_event_bytes = MAX_PACKET;
    options.spill_above = SPILL_ABOVE;
    let result = if flags & QUERY == 0 {
        now(dump(server, &options, *flags, payloads.as_ref()))
    } else {
        now(query(server, &options, payloads.as_ref()))
    };
    result.unwrap_or_default()
}

/// Logs in and reads a log to its end.
async fn dump(
    server: Server,
    options: &ClientOptions,
    flags: u8,
    payloads: Option<&Payloads>,
) -> Result<usize, Error> {
    let client = BinlogClient::connect_over(server, options).await?;
    let start = start(flags, client.server());
    let mut stream = client.dump(start).await?;
    let mut events = 0;
    loop {
        let result = stream.next_event().await;
        let payload = payloads.and_then(Payloads::last);
        match result {
            Ok(Some(event)) => {
                match (event, payload) {
                    (RawEvent::Memory(bytes), Some(payload)) => {
                        assert_eq!(payload.split_first(), Some((&0, bytes)));
                    }
                    (RawEvent::File(event), Some(payload)) => {
                        assert_eq!(payload.len() as u64, event.size() + 1);
                    }
                    (RawEvent::Memory(_) | RawEvent::File(_), None) => {}
                }
                events += 1;
            }
            Ok(None) => {
                assert!(payload.is_none_or(is_end));
                assert!(matches!(stream.next_event().await, Ok(None)));
                return Ok(events);
            }
            Err(_) => {
                let after = stream.next_event().await;
                assert!(matches!(after, Err(Error::Client(ClientError::Failed))));
                return Ok(events);
            }
        }
    }
}

/// Where the dump begins.
fn start(flags: u8, server: &ServerInfo) -> DumpStart {
    let place = || Some(BinlogPosition::new("f.000001".parse().ok()?, 5 << 30));
    match (flags & BY_GTID != 0, server.flavor) {
        (true, Flavor::MySql) => DumpStart::Gtids(GtidSet::new()),
        (true, Flavor::MariaDb) => DumpStart::MariaDbGtids(GtidPos::new()),
        (false, _) if flags & FAR != 0 => place().map_or(DumpStart::First, DumpStart::Position),
        (false, _) => DumpStart::First,
    }
}

/// Logs in and asks twice for rows: for those as they were sent, and for their texts.
async fn query(
    server: Server,
    options: &ClientOptions,
    payloads: Option<&Payloads>,
) -> Result<usize, Error> {
    let mut client = QueryClient::connect_over(server, options).await?;
    let mut rows = 0;
    client.query("q").await?;
    loop {
        match client.next_row().await {
            Ok(Some(row)) => {
                assert!(payloads.and_then(Payloads::last).is_none_or(|payload| payload == row));
                rows += 1;
            }
            Ok(None) => break,
            Err(_) => {
                let after = client.execute("q").await;
                assert!(matches!(after, Err(Error::Client(ClientError::Failed))));
                return Ok(rows);
            }
        }
    }
    Ok(rows + client.select("q").await?.len())
}

fn is_end(payload: &[u8]) -> bool {
    payload.first() == Some(&0xfe) && payload.len() < 9
}

/// What the server says, and how much of it it has said.
struct Payloads {
    payloads: Vec<Vec<u8>>,
    sent: Arc<AtomicUsize>,
}

impl Payloads {
    /// The last that is being sent. The client reads nothing of one before it needs it.
    fn last(&self) -> Option<&[u8]> {
        let sent = self.sent.load(Ordering::Relaxed);
        self.payloads.get(sent.checked_sub(1)?).map(Vec::as_slice)
    }
}

/// Cuts payloads out of the input.
fn split(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (payload, after) = after.split_at(len);
        let mut payload = payload.to_vec();
        // A work factor of `parsec` that is taken, but takes long.
        for at in 0..payload.len().min(2) {
            if let Some([b'P', factor @ 2..=10]) = payload.get_mut(at..at + 2) {
                *factor = 1;
            }
        }
        payloads.push(payload);
        rest = after;
    }
    payloads
}

/// Payloads in pieces, each with its length and room for its number; whether it is the last of its payload.
fn frame(payloads: &[Vec<u8>]) -> Vec<(Vec<u8>, bool)> {
    let mut pieces = Vec::new();
    for payload in payloads {
        let mut rest = payload.as_slice();
        loop {
            let (piece, after) = rest.split_at(rest.len().min(FULL));
            let [a, b, c, ..] = piece.len().to_le_bytes();
            let is_last = piece.len() < FULL;
            pieces.push(([&[a, b, c, 0], piece].concat(), is_last));
            rest = after;
            if is_last {
                break;
            }
        }
    }
    pieces
}

/// A body as a compressor writes it that makes nothing shorter: a zlib stream of stored blocks, a Zstandard frame of raw ones.
fn pack(body: &[u8], compression: Compression) -> Vec<u8> {
    let most = if compression == Compression::Zlib { 0xffff } else { 1 << 17 };
    let last = body.len().div_ceil(most).max(1) - 1;
    let mut packed = Vec::with_capacity(body.len() + 32);
    if compression == Compression::Zlib {
        packed.extend([0x78, 0x01]);
    } else {
        // One segment, with its size in four bytes.
        packed.extend([0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
        packed.extend(body.len().to_le_bytes().iter().take(4));
    }
    for (index, block) in body.chunks(most).enumerate() {
        let is_last = u8::from(index == last);
        let [low, high, ..] = block.len().to_le_bytes();
        if compression == Compression::Zlib {
            packed.extend([is_last, low, high, !low, !high]);
        } else {
            let header = block.len() << 3 | usize::from(is_last);
            packed.extend(header.to_le_bytes().iter().take(3));
        }
        packed.extend_from_slice(block);
    }
    if compression == Compression::Zlib {
        let (a, b) = body.iter().fold((1_u32, 0_u32), |(a, b), byte| {
            let a = (a + u32::from(*byte)) % 65521;
            (a, (a + b) % 65521)
        });
        packed.extend((b << 16 | a).to_be_bytes());
    }
    packed
}

/// The other end of the connection. It never waits.
struct Server {
    pieces: Vec<(Vec<u8>, bool)>,
    /// What comes without frames.
    bytes: Vec<u8>,
    /// The next piece.
    next: usize,
    /// How much of it, or of the bytes, was read.
    read: usize,
    /// Number of the next packet or frame.
    sequence: u8,
    compression: Compression,
    /// Whether the bodies of frames are compressed.
    is_packed: bool,
    /// Whether the login is over, and frames are sent.
    is_compressed: bool,
    chunk: usize,
    sent: Arc<AtomicUsize>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl AsyncRead for Server {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let server = self.get_mut();
        let (bytes, is_last) = match server.pieces.get_mut(server.next) {
            Some((piece, is_last)) => {
                if server.read == 0 && server.is_compressed {
                    let [x, y, z, ..] =
                        if server.is_packed { piece.len() } else { 0 }.to_le_bytes();
                    if server.is_packed {
                        *piece = pack(piece, server.compression);
                    }
                    let [a, b, c, ..] = piece.len().to_le_bytes();
                    piece.splice(..0, [a, b, c, 0, x, y, z]);
                }
                if server.read == 0
                    && let Some(number) = piece.get_mut(3)
                {
                    *number = server.sequence;
                    server.sequence = server.sequence.wrapping_add(1);
                }
                (piece.as_slice(), *is_last)
            }
            None => (server.bytes.as_slice(), false),
        };
        let rest = bytes.get(server.read..).unwrap_or_default();
        let count = rest.len().min(server.chunk).min(buffer.remaining());
        buffer.put_slice(rest.get(..count).unwrap_or_default());
        let is_whole = count == rest.len();
        // The client has all of a compressed body before the checksum behind it.
        let begins = server.read == 0 && count > 0 && is_last;
        server.sent.fetch_add(usize::from(begins), Ordering::Relaxed);
        server.read += count;
        if is_whole && server.next < server.pieces.len() {
            server.next += 1;
            server.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server {
    /// The answer is the packet after the last that came.
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let server = self.get_mut();
        let mut rest = bytes;
        while let Some(([a, b, c, number], after)) = rest.split_first_chunk() {
            server.sequence = number.wrapping_add(1);
            let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
            // The first frame follows the login.
            server.is_compressed |=
                server.compression != Compression::Off && bytes.len() == len + 7;
            let len = if server.is_compressed { len + 3 } else { len };
            rest = after.get(len..).unwrap_or_default();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The result of a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("nothing is waited for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn seeds_come_as_far_as_they_are_meant_to() {
        for (name, expected) in [
            ("mysql", 3),
            ("mysql-gtid", 3),
            ("mysql-far", 3),
            ("mysql-bare", 3),
            ("mysql-slow", 3),
            ("mysql-zlib", 3),
            ("mysql-bare-zlib", 3),
            ("rows-zstd", 5),
            ("mysql-packed-zlib", 3),
            ("mysql-packed-zstd", 3),
            ("rows-packed-zlib", 5),
            ("rows-packed-zstd", 5),
            ("rows-bare-zstd", 5),
            ("mariadb", 3),
            ("mariadb-gtid", 3),
            ("ed25519", 3),
            ("parsec", 3),
            ("full", 3),
            ("sha256", 3),
            ("rows", 5),
            ("refused", 0),
            ("refused-dump", 1),
            ("clear", 0),
        ] {
            let seed = std::fs::read(paths::tests("fuzz/seeds/packet").join(name)).unwrap();
            assert_eq!(converse(&seed), expected, "{name}");
        }
    }
}
