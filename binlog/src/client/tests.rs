//! A scripted server at the other end of a pipe.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;
use crate::error::ErrorClass;

#[tokio::test]
async fn the_session_is_set_up_in_order_and_events_are_handed_out() {
    let (client, log) = connect(Flavor::MySql, Script::Normal).await;
    let client = client.unwrap();
    let server = client.server();
    assert_eq!((server.version.as_str(), server.flavor), ("9.7.4", Flavor::MySql));
    assert_eq!((server.connection_id, server.server_id, server.checksum), (77, 34101, true));
    assert_eq!(server.server_uuid.as_deref(), Some("5ee39d77-ec5e-11f1-b070-02fc00000001"));
    let mut stream = client.dump(DumpStart::Gtids(GtidSet::new())).await.unwrap();
    assert_eq!(stream.next_event().await.unwrap().unwrap().memory(), Some(&b"first"[..]));
    assert!(stream.has_buffered());
    assert_eq!(stream.next_event().await.unwrap().unwrap().memory(), Some(&b""[..]));
    assert!(stream.next_event().await.unwrap().is_none());
    assert!(stream.next_event().await.unwrap().is_none());
    assert!(!stream.has_buffered());
    drop(stream);
    let commands = log.await.unwrap();
    let texts: Vec<_> = commands.iter().map(|command| String::from_utf8_lossy(command)).collect();
    assert_eq!(
        texts[..4],
        [
            "\u{3}SELECT @@global.binlog_checksum",
            "\u{3}SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum",
            "\u{3}SELECT @@global.server_id, @@global.server_uuid",
            "\u{3}SET @master_heartbeat_period = 48000000000, @source_heartbeat_period = 48000000000",
        ]
    );
    assert_eq!(commands[4][0], 0x15);
    assert_eq!(commands[5][..3], [0x1e, 0x04, 0]);
    assert_eq!(commands.len(), 6);
}

#[tokio::test]
async fn mariadb_is_told_our_capability_and_the_gtid_position() {
    let (client, log) = connect(Flavor::MariaDb, Script::Normal).await;
    let client = client.unwrap();
    assert_eq!(
        (client.server().version.as_str(), client.server().flavor),
        ("10.11.6-MariaDB", Flavor::MariaDb)
    );
    let position = GtidPos::parse("0-1-5,1-1-9").unwrap();
    let mut stream = client.dump(DumpStart::MariaDbGtids(position)).await.unwrap();
    assert!(stream.next_event().await.unwrap().is_some());
    drop(stream);
    let commands = log.await.unwrap();
    assert!(commands.contains(&b"\x03SET @mariadb_slave_capability = 4".to_vec()));
    assert!(commands.contains(&b"\x03SET @slave_connect_state = '0-1-5,1-1-9'".to_vec()));
    assert_eq!(commands.last().unwrap()[..5], [0x12, 4, 0, 0, 0]);
}

#[tokio::test]
async fn refusals_have_their_own_errors_and_end_the_stream() {
    let (client, _log) = connect(Flavor::MySql, Script::DenyLogin).await;
    let denied = client.unwrap_err();
    assert!(matches!(denied, ClientError::AccessDenied { .. }));
    assert_eq!(
        denied.to_string(),
        "failed to authenticate to the database at db:3306 with user 'repl': check user, password and the host the user may connect from"
    );
    let (client, _log) = connect(Flavor::MySql, Script::DenyRegister).await;
    assert!(matches!(client.unwrap_err(), ClientError::MissingPrivilege { .. }));

    let (client, _log) = connect(Flavor::MySql, Script::DenyDump).await;
    let mut stream = client.unwrap().dump(DumpStart::First).await.unwrap();
    let error = stream.next_event().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Purged);
    let Error::Client(ClientError::Dump { kind: DumpRefusal::MissingFile, source }) = error else {
        panic!("{error:?}")
    };
    assert_eq!((source.code, source.sql_state), (1236, *b"HY000"));
    let again = stream.next_event().await.unwrap_err();
    assert!(matches!(again, Error::Client(ClientError::Failed)));
}

#[tokio::test]
async fn a_start_that_the_server_does_not_know_is_refused_here() {
    let (client, _log) = connect(Flavor::MySql, Script::Normal).await;
    let wrong = client.unwrap().dump(DumpStart::MariaDbGtids(GtidPos::new())).await.unwrap_err();
    assert!(matches!(wrong, Error::Client(ClientError::WrongFlavor { .. })));
    let (client, _log) = connect(Flavor::MariaDb, Script::Normal).await;
    let wrong = client.unwrap().dump(DumpStart::Gtids(GtidSet::new())).await.unwrap_err();
    assert_eq!(wrong.to_string(), "MariaDB servers can't start a dump by a MySQL GTID set");
}

#[tokio::test]
async fn a_position_beyond_4_gib_goes_out_whole_or_is_refused() {
    let place = || {
        DumpStart::Position(
            "b.000001".parse().map(|file| BinlogPosition::new(file, 5 << 30)).unwrap(),
        )
    };
    let (client, log) = connect(Flavor::MySql, Script::Normal).await;
    let stream = client.unwrap().dump(place()).await.unwrap();
    drop(stream);
    let dump = log.await.unwrap().pop().unwrap();
    assert_eq!(dump[..11], *b"\x1e\x02\0\x09\0\0\0\x08\0\0\0");
    assert_eq!(dump[19..27], (5_u64 << 30).to_le_bytes());
    let (client, _log) = connect(Flavor::MySql, Script::GtidOff).await;
    let refused = client.unwrap().dump(place()).await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::PositionTooLarge { .. })));
    let (client, _log) = connect(Flavor::MariaDb, Script::Normal).await;
    let refused = client.unwrap().dump(place()).await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::PositionTooLarge { .. })));
}

#[tokio::test]
async fn options_that_can_not_work_are_refused_before_connecting() {
    let good = || ClientOptions::new("127.0.0.1", 1, "repl", 9);
    let bad = [
        ClientOptions { server_id: 0, ..good() },
        ClientOptions { user: "a\0b".into(), ..good() },
        ClientOptions {
            heartbeat_period: Duration::from_secs(5_000_000),
            silence_timeout: None,
            ..good()
        },
        ClientOptions { silence_timeout: Some(Duration::from_secs(48)), ..good() },
    ];
    for options in bad {
        let error = BinlogClient::connect(&options).await.unwrap_err();
        assert!(matches!(error, Error::Client(ClientError::Option { .. })), "{error}");
    }
    let options = ClientOptions { password: Password::new("secret"), ..good() };
    assert!(!format!("{options:?}").contains("secret"));
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Script {
    Normal,
    DenyLogin,
    DenyRegister,
    DenyDump,
    GtidOff,
}

type Log = tokio::task::JoinHandle<Vec<Vec<u8>>>;

/// Sets up a client against the script; the log is what the client sent after its login.
async fn connect(flavor: Flavor, script: Script) -> (Result<BinlogClient, ClientError>, Log) {
    let (near, far) = tokio::io::duplex(1 << 16);
    let server = tokio::spawn(serve(far, flavor, script));
    let mut options = ClientOptions::new("db", 3306, "repl", 9);
    options.password = Password::new("secret");
    let client =
        BinlogClient::set_up(Transport::Pipe(Box::new(near)), &options, &options.endpoint()).await;
    (client, server)
}

async fn serve(mut pipe: DuplexStream, flavor: Flavor, script: Script) -> Vec<Vec<u8>> {
    let (version, plugin) = match flavor {
        Flavor::MySql => ("9.7.4", "caching_sha2_password"),
        Flavor::MariaDb => ("5.5.5-10.11.6-MariaDB", "mysql_native_password"),
    };
    let greeting = [
        b"\x0a",
        version.as_bytes(),
        b"\0\x4d\0\0\0abcdefgh\0\xff\xff\x2d\x02\0\xff\xff\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0",
        plugin.as_bytes(),
        b"\0",
    ]
    .concat();
    send(&mut pipe, 0, &[&greeting]).await;
    receive(&mut pipe).await.unwrap();
    match (script, flavor) {
        (Script::DenyLogin, _) => send(&mut pipe, 2, &[b"\xff\x15\x04#28000Access denied"]).await,
        (_, Flavor::MySql) => send(&mut pipe, 2, &[b"\x01\x03", OK]).await,
        (_, Flavor::MariaDb) => send(&mut pipe, 2, &[OK]).await,
    }
    let mut log = Vec::new();
    while let Some(command) = receive(&mut pipe).await {
        let text = String::from_utf8_lossy(&command).into_owned();
        match command[0] {
            0x03 if text.contains("SELECT @@global.server_id, ") => {
                let row = b"\x0534101\x245ee39d77-ec5e-11f1-b070-02fc00000001";
                send(&mut pipe, 1, &[b"\x02", b"def", b"def", EOF, row, EOF]).await;
            }
            0x03 if text.contains("SELECT") => {
                let value: &[u8] = match (text.contains("gtid_mode"), script) {
                    (true, Script::GtidOff) => b"\x03OFF",
                    (true, _) => b"\x02ON",
                    (false, _) if text.contains("server_id") => b"\x0534102",
                    (false, _) => b"\x05CRC32",
                };
                send(&mut pipe, 1, &[b"\x01", b"def", EOF, value, EOF]).await;
            }
            0x15 if script == Script::DenyRegister => {
                send(&mut pipe, 1, &[b"\xff\x15\x04#28000Access denied for user"]).await;
            }
            0x12 | 0x1e if script == Script::DenyDump => {
                let error = b"\xff\xd4\x04#HY000Could not find first log file name in binary log index file";
                send(&mut pipe, 1, &[error]).await;
            }
            0x12 | 0x1e => send(&mut pipe, 1, &[b"\0first", b"\0", EOF]).await,
            _ => send(&mut pipe, 1, &[OK]).await,
        }
        log.push(command);
    }
    log
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const EOF: &[u8] = b"\xfe\0\0\x02\0";

async fn send(pipe: &mut DuplexStream, sequence: u8, payloads: &[&[u8]]) {
    let mut bytes = Vec::new();
    for (sequence, payload) in (sequence..).zip(payloads) {
        bytes.extend([u8::try_from(payload.len()).unwrap(), 0, 0, sequence]);
        bytes.extend(*payload);
    }
    // The client may be gone by now; what it made of it is asserted there.
    let _ = pipe.write_all(&bytes).await;
}

async fn receive(pipe: &mut DuplexStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    pipe.read_exact(&mut header).await.ok()?;
    let mut payload = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8];
    pipe.read_exact(&mut payload).await.ok()?;
    Some(payload)
}
