//! Servers that speak the protocol badly: a clear error, in bounded time and memory, on each of the two kinds of
//! connection.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Instant;

use holdfast_tests::engine::holdfast_binary;
use holdfast_tests::server::{Options, shared};

use super::{Stage, judge, proxy};

/// Limit of the process' address space, KiB: what a hostile length must not get over.
const MEMORY_KIB: &str = "1200000";

/// What the server does, and what the message must say.
#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    script: fn(&mut TcpStream) -> io::Result<()>,
}

const fn attack(name: &'static str, script: fn(&mut TcpStream) -> io::Result<()>) -> Attack {
    Attack { name, script }
}

const ATTACKS: &[Attack] = &[
    attack("closes at once", |_| Ok(())),
    attack("speaks HTTP", |client| {
        client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html></html>")
    }),
    attack("zeros", |client| client.write_all(&[0; 4096])),
    attack("an empty packet", |client| {
        client.write_all(&[0, 0, 0, 0])?;
        wait_for_close(client)
    }),
    attack("cut inside the header", |client| client.write_all(&[74, 0])),
    attack("cut inside the greeting", |client| {
        client.write_all(&[&[74, 0, 0, 0][..], &greeting()[..20]].concat())
    }),
    attack("a short greeting", |client| {
        client.write_all(&packet(0, &greeting()[..20]))?;
        wait_for_close(client)
    }),
    attack("a greeting of one byte", |client| {
        client.write_all(&packet(0, &[10]))?;
        wait_for_close(client)
    }),
    attack("a version without end", |client| {
        client.write_all(&packet(0, &[10; 300]))?;
        wait_for_close(client)
    }),
    attack("an endless greeting", |client| endless(client, 0)),
    attack("a packet number out of turn", |client| {
        client.write_all(&packet(7, &greeting()))?;
        wait_for_close(client)
    }),
    attack("silence", wait_for_close),
    attack("one byte and silence", |client| {
        client.write_all(&[74])?;
        wait_for_close(client)
    }),
    attack("protocol version 9", |client| {
        client.write_all(&packet(0, b"\x093.20.32\0\x01\0\0\0abcdefgh\0"))?;
        wait_for_close(client)
    }),
    attack("closes after the greeting", |client| client.write_all(&packet(0, &greeting()))),
    attack("silence after the greeting", |client| {
        client.write_all(&packet(0, &greeting()))?;
        wait_for_close(client)
    }),
    attack("an empty answer to the login", |client| after_login(client, b"")),
    attack("an answer of nonsense", |client| after_login(client, b"\x42nonsense")),
    attack("an error packet cut short", |client| after_login(client, b"\xff\x15")),
    attack("an empty switch of the plugin", |client| after_login(client, b"\xfe")),
    attack("a switch without end of name", |client| {
        after_login(client, b"\xfecaching_sha2_password")
    }),
    attack("a switch with a short seed", |client| {
        after_login(client, b"\xfemysql_native_password\0ab\0")
    }),
    attack("an unknown plugin", |client| {
        after_login(client, b"\xfeauthentication_by_fax\0abcdefghijklmnopqrst\0")
    }),
    attack("a plugin in the clear", |client| after_login(client, b"\xfemysql_clear_password\0")),
    attack("more data of nonsense", |client| after_login(client, b"\x01\x77\x77\x77")),
    attack("a bad public key", |client| {
        let key = b"\x01-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
        after_login_step(client, &[b"\x01\x04", key])
    }),
    attack("plugin switches without end", |client| {
        client.write_all(&packet(0, &greeting()))?;
        let mut number = 2_u8;
        let mut buffer = [0; 4096];
        loop {
            if client.read(&mut buffer)? == 0 {
                return Ok(());
            }
            client
                .write_all(&packet(number, b"\xfemysql_native_password\0abcdefghijklmnopqrst\0"))?;
            number = number.wrapping_add(2);
        }
    }),
    attack("more data without end", |client| {
        client.write_all(&packet(0, &greeting()))?;
        let mut number = 2_u8;
        loop {
            client.write_all(&packet(number, b"\x01\x03"))?;
            number = number.wrapping_add(1);
        }
    }),
    attack("an endless answer to the login", |client| {
        client.write_all(&packet(0, &greeting()))?;
        read_some(client)?;
        endless(client, 2)
    }),
    attack("closes after the login", |client| {
        client.write_all(&packet(0, &greeting()))?;
        read_some(client)?;
        client.write_all(&packet(2, OK))?;
        read_some(client)
    }),
    attack("nonsense for an answer to a query", |client| after_query(client, b"\x42")),
    attack("a file wanted of the client", |client| after_query(client, b"\xfb/etc/passwd")),
];

/// The driver of the query connection takes memory for so many columns, so that this is for the dump's connection only.
const MANY_COLUMNS: Attack = attack("a result of many columns", |client| {
    after_query(client, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")
});

/// Errors that a server gives before it greets, which has no SQL state, or instead of letting us in.
const REFUSALS: &[(&[u8], &str)] = &[
    (
        b"\xff\x69\x04Host '10.0.0.1' is blocked because of many connection errors",
        "is blocked because of many",
    ),
    (
        b"\xff\x6a\x04Host '10.0.0.1' is not allowed to connect to this MySQL server",
        "is not allowed to connect",
    ),
    (b"\xff\x10\x04Too many connections", "Too many connections"),
    (b"\xff\x10\x04#08004Too many connections", "Too many connections"),
];

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// Protocol 10 of a MySQL 8.4 with `caching_sha2_password`, without TLS.
fn greeting() -> Vec<u8> {
    [
        b"\x0a8.4.0\0".as_slice(),
        &[9, 0, 0, 0],
        b"abcdefgh\0",
        // PROTOCOL_41, SECURE_CONNECTION and others; utf8mb4; autocommit; PLUGIN_AUTH; 21 bytes of seed.
        &[0xff, 0xf7, 0xff, 0x02, 0x00, 0xff, 0xdf, 21],
        &[0; 10],
        b"ijklmnopqrst\0",
        b"caching_sha2_password\0",
    ]
    .concat()
}

fn read_some(client: &mut TcpStream) -> io::Result<()> {
    client.read(&mut [0; 4096]).map(drop)
}

/// Holds the connection, without a word, until the other side has enough.
fn wait_for_close(client: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while client.read(&mut buffer)? > 0 {}
    Ok(())
}

/// A packet in parts of the largest size, and never its last part.
fn endless(client: &mut TcpStream, mut number: u8) -> io::Result<()> {
    let part = vec![b'a'; 0xff_ffff];
    loop {
        client.write_all(&packet(number, &part))?;
        number = number.wrapping_add(1);
    }
}

fn after_login(client: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    after_login_step(client, &[answer])
}

/// Greets, and answers each packet of the client with one of these.
fn after_login_step(client: &mut TcpStream, answers: &[&[u8]]) -> io::Result<()> {
    client.write_all(&packet(0, &greeting()))?;
    let mut number = 2;
    for answer in answers {
        read_some(client)?;
        client.write_all(&packet(number, answer))?;
        number += 2;
    }
    wait_for_close(client)
}

/// Lets the client in and answers its first query with this.
fn after_query(client: &mut TcpStream, answer: &[u8]) -> io::Result<()> {
    client.write_all(&packet(0, &greeting()))?;
    read_some(client)?;
    client.write_all(&packet(2, OK))?;
    read_some(client)?;
    client.write_all(&packet(1, answer))?;
    wait_for_close(client)
}

/// Runs the binary against a port, with little memory and a short limit for connecting.
fn run(stage: &mut Stage<'_>, port: u16, what: &str, texts: &[&str]) {
    stage.set("database.port", port.to_string());
    stage.set("connect.timeout.ms", "1500").set("database.query.timeout.ms", "1500");
    let config = stage.file("attack.properties");
    stage.properties.write(&config).unwrap();
    let start = Instant::now();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v \"$0\"; exec \"$@\"", MEMORY_KIB])
        .arg(holdfast_binary().unwrap())
        .arg("run")
        .arg("--config")
        .arg(&config)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let log: Vec<&str> = log.lines().filter(|line| !is_caught_assertion(line)).collect();
    let log = log.join("\n");
    let address = format!("127.0.0.1:{port}");
    let took = start.elapsed();
    eprintln!("{what} ({took:?}): {}", log.lines().last().unwrap_or_default());
    judge(
        output.status.code(),
        &format!("{what}:\n{log}"),
        5,
        &[&[address.as_str()], texts].concat(),
    );
    assert!(took < super::AT_ONCE, "{what} took {took:?}:\n{log}");
}

/// The driver of the query connection asserts the form of the server's key. We catch that, but it writes its line.
fn is_caught_assertion(line: &str) -> bool {
    line.contains("panicked at")
        && line.contains("/mysql_common-")
        && line.contains("/crypto/der.rs")
}

#[test]
fn a_server_that_speaks_badly_ends_the_query_connection_with_an_error() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::new(&server, "err_attack");
    for &Attack { name, script } in ATTACKS {
        let (port, _) = proxy::front(move |_, mut client| drop(script(&mut client)));
        run(&mut stage, port, name, &[]);
    }
    for (answer, text) in REFUSALS {
        let (port, _) =
            proxy::front(move |_, mut client| drop(client.write_all(&packet(0, answer))));
        run(&mut stage, port, text, &[text]);
    }
}

#[test]
fn a_server_that_speaks_badly_ends_the_dump_connection_with_an_error() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::stored(&server, "err_attack_dump");
    let real = server.port();
    let before = fs::read(stage.file("offsets.dat")).unwrap();
    // The first connection asks the real server for its settings; the dump's is the second.
    for &Attack { name, script } in ATTACKS.iter().chain([&MANY_COLUMNS]) {
        let (port, _) = proxy::front(move |number, mut client| match number {
            1 => proxy::forward(client, real),
            _ => drop(script(&mut client)),
        });
        run(&mut stage, port, name, &[]);
    }
    for (answer, text) in REFUSALS {
        let (port, _) = proxy::front(move |number, mut client| match number {
            1 => proxy::forward(client, real),
            _ => drop(client.write_all(&packet(0, answer))),
        });
        run(&mut stage, port, text, &[text]);
    }
    assert_eq!(fs::read(stage.file("offsets.dat")).unwrap(), before);
}
