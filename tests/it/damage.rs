//! Damage in the logs that the servers write: every prefix and every changed byte gives the events before it and then an
//! error that says where, never another row.

use std::fs;
use std::io::Cursor;

use holdfast_binlog::event::{ChecksumAlgorithm, PayloadReader};
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

/// Where the first event begins.
const FIRST_EVENT: u64 = 4;

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

/// What comes out of a file from a position on, and the error that ends it. What is before is decoded from `begin` on, where
/// a transaction or a statement begins, and its rows are not.
fn decode(bytes: &[u8], begin: u64, from: u64) -> (Vec<Seen>, Result<(), Error>) {
    let mut seen = Vec::new();
    let result = (|| {
        let mut reader = BinlogFileReader::new(Cursor::new(bytes), "binlog.000001")?;
        let mut stream = EventStream::new("binlog.000001", StreamOptions::default());
        if begin > FIRST_EVENT {
            if let Some(format) = reader.next_event()? {
                stream.decode(format)?;
            }
            reader.seek(begin)?;
            stream.seek(begin);
        }
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
    if let Some(at) = error.event() {
        let place = format!("{}:{}", at.file, at.position);
        return (!at.file.is_empty() && text.contains(&place)).then_some(at.position);
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

/// Whether the events of a log have checksums, and whether each is where its header says: a part of a log has gaps.
fn facts(bytes: &[u8]) -> (bool, bool) {
    let mut reader = BinlogFileReader::new(bytes, "binlog.000001").unwrap();
    let mut stream = EventStream::new("binlog.000001", StreamOptions::default());
    let (mut offset, mut is_in_place) = (4, true);
    while let Ok(Some(event)) = reader.next_event() {
        let event = stream.decode(event).unwrap();
        is_in_place &= event.position == offset;
        offset += u64::from(event.header.event_size);
    }
    let format = stream.format();
    (format.is_some_and(|format| format.checksum != ChecksumAlgorithm::None), is_in_place)
}

/// Every `step`th prefix, and every `step`th byte changed in two ways. How many were tried. Without checksums a changed
/// byte may be another value, but an error still says where.
fn survives(bytes: &[u8], step: usize) -> (usize, usize) {
    let (whole, result) = decode(bytes, 0, 0);
    let (is_covered, is_in_place) = facts(bytes);
    // Of a log that ends early, or of parts, an error need only have a place.
    let is_whole = result.is_ok() && is_in_place;
    // Where events begin, how much comes before each, and where its transaction or statement begins.
    let mut starts: Vec<(u64, usize, u64)> = Vec::new();
    let mut begin = 0;
    for (index, (position, text)) in whole.iter().enumerate() {
        if starts.last().is_none_or(|(last, ..)| last < position) {
            let kind = text.split(' ').next().unwrap_or_default();
            let opens = kind == "QUERY" || kind.ends_with("GTID") || kind == "GTID_TAGGED";
            begin = if opens && is_in_place { *position } else { begin };
            starts.push((*position, index, begin));
        }
    }
    let check = |bytes: &[u8], what: &str, at: usize, is_exact: bool| {
        // The event that is damaged, or the last one that looks at nothing damaged.
        let after = starts.partition_point(|(position, ..)| *position <= at as u64);
        let (from, skipped, begin) = after.checked_sub(1).map_or((0, 0, 0), |index| starts[index]);
        let (seen, result) = decode(bytes, begin, from);
        let is_same = whole[skipped..].starts_with(&seen);
        assert!(is_same || !is_exact, "{what} {at}: {:?}", seen.last());
        if let Err(error) = &result {
            let place = place(error);
            assert!(place.is_some(), "{what} {at}: no place in {error}");
        }
        (skipped + seen.len(), result)
    };
    let (mut prefixes, mut changed) = (0, 0);
    for len in (0..bytes.len()).step_by(step) {
        let (count, result) = check(&bytes[..len], "prefix", len, true);
        assert!(count < whole.len() || !is_whole);
        if result.is_ok() && is_whole {
            // Between two events.
            assert!(whole.iter().any(|(position, _)| *position == len as u64), "prefix {len}");
        }
        prefixes += 1;
    }
    let mut damaged = bytes.to_vec();
    for at in (0..bytes.len()).step_by(step).filter(|at| *at != IN_USE_FLAG) {
        for mask in [1, 0xff] {
            damaged[at] ^= mask;
            let (_, result) = check(&damaged, "byte", at, is_covered);
            assert!(
                result.is_err() || !is_covered,
                "byte {at} changed by {mask:#x} is not noticed"
            );
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

#[test]
#[ignore = "takes long: every prefix and every byte"]
fn damage_anywhere_in_any_log_is_found() {
    for options in all() {
        is_found(options, 1);
    }
}

/// Every prefix and every byte of the logs in the folder that `HOLDFAST_LOGS` names.
#[test]
#[ignore = "takes long, and needs a folder"]
fn damage_anywhere_in_the_logs_of_a_folder_is_found() {
    let folder = std::env::var_os("HOLDFAST_LOGS").expect("HOLDFAST_LOGS names a folder");
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
