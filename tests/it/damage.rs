//! Damage in the logs that the servers write: every prefix and every changed byte gives the events before it and then an
//! error that says where, never another row.

use std::fs;
use std::io::Read;

use holdfast_binlog::event::PayloadReader;
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::row::Row;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::{Error, Event, EventData};
use holdfast_tests::server::{Options, Server};

/// A few of all forms of rows.
const WORKLOAD: &str = "
    CREATE DATABASE damage_db CHARACTER SET utf8mb4; USE damage_db;
    CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(20,4), b VARCHAR(300), c DATETIME(6), d ENUM('x','y'), e BLOB, f JSON);
    INSERT INTO t VALUES (1, 1.5, 'a', '2024-02-29 01:02:03.4', 'x', 0x00FF, '{\"a\": [1, 2]}'), (2, -1, NULL, NULL, 'y', NULL, NULL);
    UPDATE t SET b = REPEAT('b', 90) WHERE id = 1;
    UPDATE t SET f = JSON_SET(f, '$.a[0]', 'y') WHERE id = 1;
    XA START 'x'; INSERT INTO t (id) VALUES (3); XA END 'x'; XA PREPARE 'x'; XA COMMIT 'x';
    DELETE FROM t WHERE id = 2;
    FLUSH BINARY LOGS;";

/// In the first event, the flag that the server changes without a new checksum.
const IN_USE_FLAG: usize = 4 + 17;

/// How an event, or a row of one, looks; and where the event is.
type Seen = (u64, String);

fn see(event: &Event<'_>, seen: &mut Vec<Seen>) -> Result<(), Error> {
    if let EventData::Rows { rows, table } = &event.data {
        let mut reader = rows.rows(table).map_err(|error| event.decode_error(error))?;
        let mut row = Row::new();
        while reader.read(&mut row).map_err(|error| event.row_error(table, error))? {
            seen.push((event.position, format!("{row:?}")));
        }
    } else {
        seen.push((event.position, format!("{} {:?}", event.header.event_type, event.data)));
    }
    Ok(())
}

/// What comes out of a file from a position on, and the error that ends it. What is before is decoded, and its rows are not.
fn decode(bytes: impl Read, from: u64) -> (Vec<Seen>, Result<(), Error>) {
    let mut seen = Vec::new();
    let result = (|| {
        let mut reader = BinlogFileReader::new(bytes, "binlog.000001")?;
        let mut stream = EventStream::new("binlog.000001", StreamOptions::default());
        let mut payloads = PayloadReader::default();
        while let Some(bytes) = reader.next_event()? {
            let event = stream.decode(bytes)?;
            let is_shown = event.position >= from;
            if is_shown {
                see(&event, &mut seen)?;
            }
            if let EventData::TransactionPayload(payload) = event.data
                && is_shown
            {
                let span = event.span();
                payloads.open(&event, &payload)?;
                while let Some(bytes) = payloads.next_event()? {
                    see(&stream.decode_nested(bytes, span)?, &mut seen)?;
                }
            }
        }
        Ok(())
    })();
    (seen, result)
}

/// The position that an error names. A file that is no binlog is none as a whole.
fn place(error: &Error) -> Option<u64> {
    let text = error.to_string();
    if let Error::NotABinlog { .. } = error {
        return Some(0);
    }
    let (_, after) = text.split_once("binlog.000001")?;
    let digits: String = after
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The log of the workload that a server writes.
fn log_of(options: Options) -> Vec<u8> {
    let server = Server::start(options).unwrap();
    server.sql(WORKLOAD).unwrap();
    let files = server.query("SHOW BINARY LOGS").unwrap();
    let folder = server.data().expect("a server of our own");
    let logs = files.iter().filter_map(|row| row.first()).map(|name| folder.join(name));
    // The one with the workload: of those that the server has closed, the last.
    let logs: Vec<_> = logs.collect();
    let [.., path, _] = logs.as_slice() else { panic!("the log was not rotated: {logs:?}") };
    fs::read(path).unwrap()
}

/// Every `step`th prefix, and every `step`th byte changed in two ways. How many were tried.
fn survives(bytes: &[u8], step: usize) -> (usize, usize) {
    let (whole, result) = decode(bytes, 0);
    result.unwrap();
    // Where events begin, and how much comes before each.
    let mut starts: Vec<(u64, usize)> = Vec::new();
    for (index, (position, _)) in whole.iter().enumerate() {
        if starts.last().is_none_or(|(last, _)| last < position) {
            starts.push((*position, index));
        }
    }
    let check = |bytes: &[u8], what: &str, at: usize| {
        // The event that is damaged, or the last one that looks at nothing damaged.
        let after = starts.partition_point(|(position, _)| *position <= at as u64);
        let (from, skipped) = after.checked_sub(1).map_or((0, 0), |index| starts[index]);
        let (seen, result) = decode(bytes, from);
        assert!(whole[skipped..].starts_with(&seen), "{what} {at}: {:?}", seen.last());
        if let Err(error) = &result {
            let place = place(error);
            assert!(place.is_some(), "{what} {at}: no place in {error}");
        }
        (skipped + seen.len(), result)
    };
    let (mut prefixes, mut changed) = (0, 0);
    for len in (0..bytes.len()).step_by(step) {
        let (count, result) = check(&bytes[..len], "prefix", len);
        assert!(count < whole.len());
        if result.is_ok() {
            // Between two events.
            assert!(whole.iter().any(|(position, _)| *position == len as u64), "prefix {len}");
        }
        prefixes += 1;
    }
    let mut damaged = bytes.to_vec();
    for at in (0..bytes.len()).step_by(step).filter(|at| *at != IN_USE_FLAG) {
        for mask in [1, 0xff] {
            damaged[at] ^= mask;
            let (_, result) = check(&damaged, "byte", at);
            assert!(result.is_err(), "byte {at} changed by {mask:#x} is not noticed");
            damaged[at] ^= mask;
            changed += 1;
        }
    }
    (prefixes, changed)
}

/// All forms of rows and of compression.
fn all() -> [Options; 4] {
    [
        Options::mysql().arg("--binlog-row-value-options=PARTIAL_JSON"),
        Options::mysql().arg("--binlog-transaction-compression=ON"),
        Options::mariadb(),
        Options::mariadb().arg("--log-bin-compress=ON").arg("--log-bin-compress-min-len=10"),
    ]
}

fn is_found(options: Options, steps: usize) {
    let name = format!("{options:?}");
    let bytes = log_of(options);
    let (prefixes, changed) = survives(&bytes, steps);
    println!("{name}: {} bytes, {prefixes} prefixes, {changed} changed bytes", bytes.len());
}

#[test]
fn damage_in_the_logs_of_mysql_is_found() {
    let [plain, compressed, ..] = all();
    is_found(plain, 5);
    is_found(compressed, 3);
}

#[test]
fn damage_in_the_logs_of_mariadb_is_found() {
    let [.., plain, compressed] = all();
    is_found(plain, 5);
    is_found(compressed, 3);
}

/// Also in the files of the folder that `HOLDFAST_LOGS` names, which must be whole and have checksums.
#[test]
#[ignore = "takes long: every prefix and every byte"]
fn damage_anywhere_in_any_log_is_found() {
    for options in all() {
        is_found(options, 1);
    }
    let Some(folder) = std::env::var_os("HOLDFAST_LOGS") else { return };
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        if !bytes.starts_with(b"\xfebin") {
            continue;
        }
        let (prefixes, changed) = survives(&bytes, 1);
        println!(
            "{}: {} bytes, {prefixes} prefixes, {changed} changed bytes",
            path.display(),
            bytes.len()
        );
    }
}
