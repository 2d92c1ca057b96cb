//! Compressed connections to real servers: the same events in fewer bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_binlog::client::{
    BinlogClient, ClientError, ClientOptions, Compression, DumpStart, Password, QueryClient,
    TlsMode,
};
use holdfast_binlog::event::RawEvent;
use holdfast_binlog::{BinlogPosition, Error, ErrorClass};
use holdfast_tests::server::{Options, Server, shared};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use Compression::{Off, Zlib, Zstd};

#[test]
fn a_compressed_log_of_mysql_has_the_same_events_in_fewer_bytes() {
    let server = shared(&Options::mysql()).unwrap();
    let place = write(&server, "SHOW BINARY LOG STATUS");
    for tls in [TlsMode::Disabled, TlsMode::Required] {
        let (plain, all) = read(&server, Off, tls, &place);
        assert!(plain.len() > 600, "{}", plain.len());
        for (compression, name) in [(Zlib, "zlib"), (Zstd, "zstd")] {
            let (events, received) = read(&server, compression, tls, &place);
            assert!(events == plain, "{compression} {tls:?}");
            assert!(received < all / 2, "{compression} {tls:?}: {received} of {all}");
            let status = status(&server, compression, tls, "Compression_algorithm");
            assert_eq!(status.as_deref(), Some(name));
        }
        assert_eq!(status(&server, Off, tls, "Compression_algorithm").as_deref(), Some(""));
    }
}

#[test]
fn a_compressed_log_of_mariadb_has_the_same_events_and_zstd_is_an_error() {
    let server = shared(&Options::mariadb()).unwrap();
    let place = write(&server, "SHOW MASTER STATUS");
    let (plain, all) = read(&server, Off, TlsMode::Disabled, &place);
    assert!(plain.len() > 600, "{}", plain.len());
    let (events, received) = read(&server, Zlib, TlsMode::Disabled, &place);
    assert!(events == plain);
    assert!(received < all / 2, "{received} of {all}");
    for (compression, expected) in [(Off, "OFF"), (Zlib, "ON")] {
        let status = status(&server, compression, TlsMode::Disabled, "Compression");
        assert_eq!(status.as_deref(), Some(expected));
    }
    refuses(&server, Zstd);
}

#[test]
fn a_server_that_was_told_not_to_compress_is_named_with_the_setting() {
    let options = Options::mysql().arg("--protocol-compression-algorithms=uncompressed,zlib");
    let server = Server::start(options).unwrap();
    refuses(&server, Zstd);
    assert_eq!(
        status(&server, Zlib, TlsMode::Disabled, "Compression_algorithm").as_deref(),
        Some("zlib")
    );
}

#[tokio::main]
async fn refuses(server: &Server, compression: Compression) {
    let options = options(server, server.port(), compression, TlsMode::Disabled);
    let error = BinlogClient::connect(&options).await.unwrap_err();
    let Error::Client(client @ ClientError::CompressionNotOffered { .. }) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(client.class(), ErrorClass::Config);
    let text = client.to_string();
    for part in ["compress by zstd", "holdfast.binlog.compression", &server.port().to_string()] {
        assert!(text.contains(part), "{text}");
    }
}

/// Writes to the log: many events, and one that is larger than buffers; where it began.
fn write(server: &Server, status: &str) -> BinlogPosition {
    let row = server.row(status).unwrap();
    let place = BinlogPosition::new(row["File"].parse().unwrap(), row["Position"].parse().unwrap());
    let inserts: String = (0..150)
        .map(|n| format!("INSERT INTO packed.t VALUES ({n}, REPEAT('row {n} ', {n}));\n"))
        .collect();
    server
        .sql(&format!(
            "DROP DATABASE IF EXISTS packed; CREATE DATABASE packed; \
             CREATE TABLE packed.t (id INT PRIMARY KEY, text LONGTEXT);\n{inserts}\
             INSERT INTO packed.t VALUES (-1, REPEAT('abcdefghijklmnop', 200000))"
        ))
        .unwrap();
    place
}

fn options(server: &Server, port: u16, compression: Compression, tls: TlsMode) -> ClientOptions {
    let mut options = ClientOptions::new(server.host(), port, server.user(), 77_101);
    options.password = Password::new(server.password());
    options.compression = compression;
    options.tls.mode = tls;
    options.stop_at_end = true;
    options
}

/// The events from a place on, and how many bytes the server sent for them.
#[tokio::main]
async fn read(
    server: &Server,
    compression: Compression,
    tls: TlsMode,
    place: &BinlogPosition,
) -> (Vec<Vec<u8>>, u64) {
    let (port, received) = counting_proxy(server).await;
    let options = options(server, port, compression, tls);
    let client = BinlogClient::connect(&options).await.unwrap();
    assert_eq!(client.server().tls.is_some(), tls == TlsMode::Required);
    let mut dump = client.dump(DumpStart::Position(place.clone())).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = dump.next_event().await.unwrap() {
        events.push(match event {
            RawEvent::Memory(bytes) => bytes.to_vec(),
            RawEvent::File(event) => panic!("{event:?}"),
        });
    }
    (events, received.load(Ordering::Relaxed))
}

/// What the server says of a session.
#[tokio::main]
async fn status(
    server: &Server,
    compression: Compression,
    tls: TlsMode,
    name: &str,
) -> Option<String> {
    let options = options(server, server.port(), compression, tls);
    let mut client = QueryClient::connect(&options).await.unwrap();
    let rows = client.select(&format!("SHOW SESSION STATUS LIKE '{name}'")).await.unwrap();
    rows[0][1].clone()
}

/// The port of something that passes one connection on to the server, and counts what the server sends.
async fn counting_proxy(server: &Server) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = (server.host().to_owned(), server.port());
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let server = TcpStream::connect(address).await.unwrap();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
            counter.fetch_add(read as u64, Ordering::Relaxed);
            if to_client.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    });
    (port, count)
}
