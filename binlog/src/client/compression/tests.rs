use std::io::Write;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::super::packet::PacketStream;
use super::*;

const BOTH: [Compression; 2] = [Compression::Zlib, Compression::Zstd];

#[tokio::test]
async fn packets_come_out_of_frames_however_either_are_cut() {
    let payloads = [0_usize, 1, 300, 100_000, 5, 10_000].map(text);
    let mut stream = Vec::new();
    for payload in &payloads {
        // With any number: those of the frames count.
        stream.extend(packet(77, payload));
    }
    for compression in BOTH {
        for cut in [1, 7, 1000, stream.len()] {
            // Every third frame is stored, and some are empty.
            let mut frames = Vec::new();
            let mut sequence = 0_u8;
            for (at, part) in stream.chunks(cut.max(stream.len() / 700)).enumerate() {
                let (size, body) = match at % 3 {
                    0 => (0, part.to_vec()),
                    _ => (part.len(), compress(compression, part)),
                };
                frames.extend(frame(sequence, size, &body));
                sequence = sequence.wrapping_add(1);
                if at % 100 == 0 {
                    frames.extend(frame(sequence, 0, b""));
                    sequence = sequence.wrapping_add(1);
                }
            }
            for chunk in [1, 6, 8, 1000, frames.len()] {
                let (mut packets, mut server) = pair(compression);
                let sent = frames.clone();
                let writer = tokio::spawn(async move {
                    for part in sent.chunks(chunk) {
                        server.write_all(part).await.unwrap();
                    }
                });
                for payload in &payloads {
                    assert!(packets.next().await.unwrap() == payload, "{compression} {chunk}");
                }
                writer.await.unwrap();
                let end = packets.next().await.unwrap_err();
                assert!(matches!(end, ClientError::Io(_)), "{end}");
            }
        }
    }
}

#[tokio::test]
async fn a_frame_of_the_largest_size_is_read() {
    for compression in BOTH {
        let stream = packet(0, &vec![9; 0xff_ffff - 5]);
        let stream = [stream, packet(1, b"")].concat();
        let (first, second) = stream.split_at(0xff_ffff);
        let frames = [
            frame(0, first.len(), &compress(compression, first)),
            frame(1, second.len(), &compress(compression, second)),
        ]
        .concat();
        let (mut packets, mut server) = pair(compression);
        let writer = tokio::spawn(async move { server.write_all(&frames).await.unwrap() });
        assert_eq!(packets.next().await.unwrap().len(), 0xff_ffff - 5);
        assert_eq!(packets.next().await.unwrap(), b"");
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_read_loses_no_bytes() {
    for compression in BOTH {
        let payload = text(5_000);
        let stream = packet(0, &payload);
        let sent = frame(0, stream.len(), &compress(compression, &stream));
        let (mut packets, mut server) = pair(compression);
        let mut seen = Vec::new();
        for byte in &sent {
            let write = server.write_all(std::slice::from_ref(byte));
            tokio::pin!(write);
            loop {
                tokio::select! {
                    biased;
                    packet = packets.next() => seen.push(packet.unwrap().to_vec()),
                    _ = &mut write => break,
                }
            }
            // Asking again and again while nothing comes is no error.
            for _ in 0..20 {
                tokio::select! {
                    biased;
                    packet = packets.next() => seen.push(packet.unwrap().to_vec()),
                    () = std::future::ready(()) => {}
                }
            }
        }
        assert!(seen == [payload], "{compression}");
    }
}

#[tokio::test]
async fn lengths_that_lie_are_errors() {
    let stream = packet(0, &text(3000));
    let len = stream.len();
    for compression in BOTH {
        let body = compress(compression, &stream);
        let longer = [&body[..], b"more"].concat();
        let twice = [&body[..], &body].concat();
        let mut damaged = body.clone();
        for byte in damaged.iter_mut().skip(10) {
            *byte ^= 0x55;
        }
        for (what, size, body) in [
            ("one less", len - 1, &body[..]),
            ("one more", len + 1, &body),
            ("far more", 0xff_ffff, &body),
            ("far less", 1, &body),
            ("bytes after the end", len, &longer),
            ("two bodies", len, &twice),
            ("two bodies, both counted", 2 * len, &twice),
            ("cut", len, &body[..body.len() - 1]),
            ("cut before the checksum", len, &body[..body.len() - 4]),
            ("cut in the middle", len, &body[..body.len() / 2]),
            ("nothing", len, b""),
            ("no such format", len, &stream),
            ("damaged", len, &damaged),
        ] {
            // Another frame behind it does not help.
            let sent = [frame(0, size, body), frame(1, 0, b"\0\0\0\x01\0\0\0\x02")].concat();
            for chunk in [1, sent.len()] {
                let (mut packets, mut server) = pair(compression);
                for part in sent.chunks(chunk) {
                    server.write_all(part).await.unwrap();
                }
                drop(server);
                let error = loop {
                    if let Err(error) = packets.next().await {
                        break error;
                    }
                };
                assert!(
                    matches!(error, ClientError::Protocol { .. }),
                    "{compression}, {what}, {chunk}: {error:?}"
                );
            }
        }
    }
    let error = wrong_size(5, 6);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "decompressed_size is 5, expected 6");
}

#[tokio::test]
async fn a_connection_that_ends_inside_a_frame_is_broken() {
    let stream = packet(0, &text(3000));
    for compression in BOTH {
        let sent = frame(0, stream.len(), &compress(compression, &stream));
        for cut in (0..sent.len() - 8).step_by(3) {
            let (mut packets, mut server) = pair(compression);
            server.write_all(&sent[..cut]).await.unwrap();
            drop(server);
            let error = packets.next().await.unwrap_err();
            assert!(matches!(error, ClientError::Io(_)), "{compression}, {cut}: {error:?}");
        }
    }
}

#[tokio::test]
async fn a_window_larger_than_a_frame_is_refused() {
    // Magic, descriptor without size, window of 1 << 27 bytes, then a stored block.
    let body = b"\x28\xb5\x2f\xfd\x00\x88\x29\0\0\x01\0\0\0\x07";
    let (mut packets, mut server) = pair(Compression::Zstd);
    server.write_all(&frame(0, 5, body)).await.unwrap();
    let error = packets.next().await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
    // The same with one of 1 << 20.
    let body = b"\x28\xb5\x2f\xfd\x00\x50\x29\0\0\x01\0\0\0\x07";
    let (mut packets, mut server) = pair(Compression::Zstd);
    server.write_all(&frame(0, 5, body)).await.unwrap();
    assert_eq!(packets.next().await.unwrap(), b"\x07");
}

#[tokio::test]
async fn frames_are_numbered_from_each_command_on_in_both_directions() {
    for compression in BOTH {
        let (mut packets, mut server) = pair(compression);
        for _ in 0..2 {
            packets.command(b"\x03SELECT 1").await.unwrap();
            let mut sent = [0; 20];
            server.read_exact(&mut sent).await.unwrap();
            assert_eq!(sent, *b"\x0d\0\0\0\0\0\0\x09\0\0\0\x03SELECT 1");
            for sequence in 1..=255 {
                server.write_all(&frame(sequence, 0, &packet(0, b"x"))).await.unwrap();
                assert_eq!(packets.next().await.unwrap(), b"x");
            }
            server.write_all(&frame(0, 0, &packet(0, b"y"))).await.unwrap();
            assert_eq!(packets.next().await.unwrap(), b"y");
        }
        server.write_all(&frame(2, 0, &packet(1, b"z"))).await.unwrap();
        let error = packets.next().await.unwrap_err();
        assert!(matches!(error, ClientError::OutOfSequence { expected: 1, found: 2 }), "{error}");
    }
}

#[tokio::test]
async fn what_is_read_already_is_not_taken_for_a_frame() {
    let (near, mut server) = tokio::io::duplex(1000);
    let mut packets = PacketStream::new(Transport::Pipe(Box::new(near)), 1000);
    server.write_all(&[packet(0, b"ok"), packet(1, b"more")].concat()).await.unwrap();
    assert_eq!(packets.next().await.unwrap(), b"ok");
    assert!(packets.compress(Compression::Off).is_ok());
    let error = packets.compress(Compression::Zlib).unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");
}

/// A compressed connection and the server's end of it.
fn pair(compression: Compression) -> (PacketStream, DuplexStream) {
    let (near, server) = tokio::io::duplex(64 << 10);
    let mut packets = PacketStream::new(Transport::Pipe(Box::new(near)), 1 << 30);
    packets.compress(compression).unwrap();
    (packets, server)
}

fn compress(compression: Compression, plain: &[u8]) -> Vec<u8> {
    match compression {
        Compression::Zlib => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Compression::Zstd => zstd::bulk::compress(plain, 3).unwrap(),
        Compression::Off => plain.to_vec(),
    }
}

fn frame(sequence: u8, size: usize, body: &[u8]) -> Vec<u8> {
    let [a, b, c, ..] = body.len().to_le_bytes();
    let [d, e, f, ..] = size.to_le_bytes();
    [&[a, b, c, sequence, d, e, f], body].concat()
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, ..] = payload.len().to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Bytes that compress, but not to nothing.
fn text(len: usize) -> Vec<u8> {
    let mut state = 7_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + state.to_be_bytes()[0] % 13
    };
    (0..len).map(|_| next()).collect()
}
