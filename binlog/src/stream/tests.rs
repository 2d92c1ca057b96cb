//! Whole logs through the stream: what comes out, where it says that it is, and what a damaged log gives.

use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::Value;
use crate::error::ErrorClass;
use crate::event::{PayloadBytes, PayloadReader, SpillWriter, XaId};
use crate::file::BinlogFileReader;
use crate::gtid::{Gtid, MAX_NUMBER, MariaDbGtid, Tag, Uuid};
use crate::row::Row;
use crate::testkit::{LogBuilder, LogOptions, TestColumn, TestServer, TestValue};

pub(super) const FILE: &str = "mysql-bin.000001";
const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

#[test]
fn a_log_is_decoded_end_to_end() {
    let log = transaction(LogBuilder::new(FILE)).query("shop", "DROP TABLE orders").stop();
    let seen = decode_file(&log.clone().into_bytes()).unwrap();
    let lines = seen.iter().map(|event| event.text.as_str()).collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            "8.4.6 Crc32",
            "gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23",
            "query : BEGIN",
            "query text INSERT INTO orders …",
            "map shop.orders",
            "shop.orders - → [Int32(1), Bytes([97])]; - → [Int32(2), Null]",
            "map shop.orders",
            "shop.orders [Int32(1), Bytes([97])] → [Int32(1), Bytes([98])]",
            "map shop.orders",
            "shop.orders [Int32(2), Null] → -",
            "xid 99",
            "query shop: DROP TABLE orders",
            "stop",
        ]
    );
    // Every event begins where the one before it ends, and the last one ends where the file does.
    let mut position = 4;
    for event in &seen {
        assert_eq!(event.span.position, position, "{}", event.text);
        position = event.span.end;
    }
    assert_eq!(position, log.into_bytes().len() as u64);
}

#[test]
fn without_checksums_the_same_comes_out() {
    let options = LogOptions { checksum: ChecksumAlgorithm::None, ..LogOptions::default() };
    let log = transaction(LogBuilder::with_options(FILE, options)).into_bytes();
    let plain = decode_file(&log).unwrap();
    let checked = decode_file(&transaction(LogBuilder::new(FILE)).into_bytes()).unwrap();
    let texts =
        |seen: &[Seen]| seen[1..].iter().map(|event| event.text.clone()).collect::<Vec<_>>();
    assert_eq!(texts(&plain), texts(&checked));
}

#[test]
fn every_prefix_of_a_log_is_an_error_or_ends_between_two_events() {
    let log = transaction(LogBuilder::new(FILE));
    let ends = log.events().scan(4, |end, event| {
        *end += event.len();
        Some(*end)
    });
    let ends = std::iter::once(4).chain(ends).collect::<Vec<_>>();
    let bytes = log.into_bytes();
    for len in 0..=bytes.len() {
        match decode_file(&bytes[..len]) {
            Ok(seen) => assert_eq!(ends.iter().position(|end| *end == len), Some(seen.len())),
            Err(Error::TruncatedFile { file, position, needed, left }) => {
                let position = usize::try_from(position).unwrap();
                assert!(ends.contains(&position) && !ends.contains(&len));
                assert_eq!((file.as_str(), left), (FILE, (len - position) as u64));
                assert!(needed > left);
            }
            Err(Error::NotABinlog { .. }) => assert!(len < 4),
            Err(error) => panic!("{len}: {error}"),
        }
    }
}

#[test]
fn every_changed_byte_is_an_error_where_the_log_has_checksums() {
    let bytes = transaction(LogBuilder::new(FILE)).into_bytes();
    let in_use_flag = 4 + 17;
    for index in 0..bytes.len() {
        for mask in [1, 2, 4, 8, 16, 32, 64, 128, 0xff] {
            let mut damaged = bytes.clone();
            damaged[index] ^= mask;
            let result = decode_file(&damaged);
            if (index, mask) == (in_use_flag, 1) {
                // The server itself changes this one without a new checksum.
                assert!(result.is_ok());
            } else {
                let error = result.expect_err(&format!("byte {index} changed by {mask:#x}"));
                assert!(matches!(error.class(), ErrorClass::Data | ErrorClass::Config));
            }
        }
    }
}

#[test]
fn a_damaged_event_is_named_with_both_checksums() {
    let log = LogBuilder::new(FILE).xid(1);
    let position = log.position();
    let mut bytes = log.xid(2).into_bytes();
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    let error = decode_file(&bytes).unwrap_err();
    let Error::Checksum { at, stored, computed } = &error else { panic!("{error}") };
    assert_eq!((at.file.as_str(), at.position), (FILE, position));
    assert_eq!((at.event_type, at.server_id), (Some(EventType::Xid), 1));
    assert_ne!(stored, computed);
    let text = error.to_string();
    assert!(text.starts_with(&format!("XID (16) event at {FILE}:{position} is damaged")), "{text}");

    let options = StreamOptions { verify_checksums: false, ..StreamOptions::default() };
    let mut stream = EventStream::new(FILE, options);
    let mut reader = BinlogFileReader::new(&bytes[..], FILE).unwrap();
    while let Some(event) = reader.next_event().unwrap() {
        stream.decode(event).unwrap();
    }
}

#[test]
fn positions_above_4_gib_keep_their_upper_bits() {
    let high = (1 << 32) - 40;
    let log = LogBuilder::new(FILE).at(high).xid(1).xid(2).heartbeat().at(5 << 32).xid(3);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let spans = log
        .events()
        .enumerate()
        .map(|(index, event)| {
            if index == 4 {
                stream.seek(5 << 32);
            }
            stream.decode(event).unwrap().span()
        })
        .collect::<Vec<_>>();
    let size = 31;
    assert_eq!(spans[1], Span { position: high, end: high + size });
    assert_eq!(spans[2], Span { position: high + size, end: high + 2 * size });
    assert!(spans[2].end > 1 << 32);
    assert_eq!(spans[3], Span { position: high + 2 * size, end: high + 2 * size });
    assert_eq!(spans[4], Span { position: 5 << 32, end: (5 << 32) + size });
}

#[test]
fn a_heartbeat_moves_the_position_to_where_the_server_is() {
    let body = b"\x02\x09\xfe\x09\0\0\0\x02\0\0\0\0";
    let log = LogBuilder::new(FILE).at(9_000).heartbeat();
    let second = LogBuilder::new(FILE).event(EventType::HeartbeatV2, 0, body);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    for event in log.events().chain(second.events().skip(1)) {
        stream.decode(event).unwrap();
    }
    let v2 = stream.decode(second.events().last().unwrap()).unwrap();
    let EventData::Heartbeat(heartbeat) = v2.data else { panic!("{v2:?}") };
    assert_eq!((heartbeat.position, v2.position), (Some(0x2_0000_0009), 0x2_0000_0009));
    let v1 = stream.decode(log.events().last().unwrap()).unwrap();
    let EventData::Heartbeat(heartbeat) = v1.data else { panic!("{v1:?}") };
    assert_eq!(heartbeat.file, Some(FILE.as_bytes()));
    assert_eq!((heartbeat.position, v1.end), (Some(0x2_0000_2328), 0x2_0000_2328));
}

#[test]
fn an_error_in_a_row_names_event_table_and_row() {
    let log = columns(LogBuilder::new(FILE));
    let position = log.position();
    let log = log.write_rows(7, &[&[1.into(), TestValue::Raw(vec![9, 0, b'x'])]]);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let events = log.events().collect::<Vec<_>>();
    for event in &events[..2] {
        stream.decode(*event).unwrap();
    }
    let event = stream.decode(events[2]).unwrap();
    let EventData::Rows { rows, table } = event.data else { panic!("{event:?}") };
    let mut reader = rows.rows(table).unwrap();
    let source = reader.read(&mut Row::new()).unwrap_err();
    let error = event.row_error(table, source);
    assert_eq!(
        error.to_string(),
        format!(
            "WRITE_ROWS (30) event at {FILE}:{position} for table shop.orders can't be decoded"
        )
    );
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "row 0, after image, column 1");
    assert_eq!(error.class(), ErrorClass::Data);
}

#[test]
fn the_nearest_offset_goes_forward_and_only_a_little_back() {
    let gib = 1_u64 << 30;
    let table = [
        (126, 126, 126),
        (126, 4, 4),
        (126, 3_500_000_000, 3_500_000_000),
        (4 * gib - 10, 20, 4 * gib + 20),
        (4 * gib + 20, 0xffff_fff0, 4 * gib - 16),
        (6 * gib, 0, 8 * gib),
        (9 * gib, 0, 8 * gib),
    ];
    for (expected, low, offset) in table {
        assert_eq!(nearest(expected, low), offset, "{expected} {low}");
    }
}

#[test]
fn a_connection_begins_with_an_artificial_rotate_that_has_a_checksum() {
    let options =
        StreamOptions { checksum: Some(ChecksumAlgorithm::Crc32), ..StreamOptions::default() };
    let mut stream = EventStream::new("", options);
    let rotate = LogBuilder::new(FILE).artificial_rotate("mysql-bin.000007", 157);
    stream.decode(rotate.events().last().unwrap()).unwrap();
    assert_eq!((stream.file(), stream.position()), ("mysql-bin.000007", 157));
    let log = LogBuilder::new(FILE).at(157).xid(1);
    // The format description of the file was written at 4, but reading begins at 157: it comes without a place.
    let mut format = log.events().next().unwrap().to_vec();
    format[13..17].fill(0);
    let covered = format.len() - 4;
    let checksum = crc32fast::hash(&format[..covered]).to_le_bytes();
    format[covered..].copy_from_slice(&checksum);
    let event = stream.decode(&format).unwrap();
    assert_eq!((event.file, event.span()), ("mysql-bin.000007", Span { position: 157, end: 157 }));
    let event = stream.decode(log.events().last().unwrap()).unwrap();
    assert_eq!(event.span(), Span { position: 157, end: 188 });

    let mut file = EventStream::new(FILE, StreamOptions::default());
    let error = file.decode(rotate.events().last().unwrap()).unwrap_err();
    assert!(matches!(error, Error::NoFormatDescription { .. }), "{error}");
}

#[test]
fn a_rotate_is_in_its_own_file_and_what_follows_in_the_next() {
    let log = LogBuilder::new(FILE).rotate("mysql-bin.000002");
    let next = LogBuilder::new("mysql-bin.000002").xid(1);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let events = log.events().chain(next.events()).collect::<Vec<_>>();
    let mut files = Vec::new();
    for event in events {
        let event = stream.decode(event).unwrap();
        files.push((event.header.event_type, event.file.to_owned(), event.position));
    }
    let second = next.events().next().unwrap().len() as u64 + 4;
    assert_eq!(
        files,
        [
            (EventType::FormatDescription, FILE.to_owned(), 4),
            (EventType::Rotate, FILE.to_owned(), second),
            (EventType::FormatDescription, "mysql-bin.000002".to_owned(), 4),
            (EventType::Xid, "mysql-bin.000002".to_owned(), second),
        ]
    );
}

#[test]
fn mariadb_transactions_without_positions_get_them_from_the_sizes() {
    let build = |zero_end_positions| {
        let options =
            LogOptions { server: TestServer::MariaDb, zero_end_positions, ..LogOptions::default() };
        let gtid = MariaDbGtid { domain: 0, server: 3, sequence: 7 };
        let log = LogBuilder::with_options(FILE, options).mariadb_gtid(gtid, 4);
        changes(log).xid(1).mariadb_gtid(gtid, 1).into_bytes()
    };
    let hidden = decode_file(&build(true)).unwrap();
    assert_ne!(build(true), build(false));
    assert_eq!(hidden, decode_file(&build(false)).unwrap());
    assert_eq!(hidden[1].text, "mariadb 0-3-7");
}

#[test]
fn a_compressed_transaction_gives_its_events_at_its_own_position() {
    let gtid = Gtid { tag: Tag::parse("blue").unwrap(), ..gtid() };
    let log = LogBuilder::new(FILE).gtid(gtid).compressed(|log| changes(log.begin()).xid(4));
    let seen = decode_file(&log.clone().xid(5).into_bytes()).unwrap();
    let payload = seen.iter().find(|event| event.text == "payload").unwrap();
    let plain = decode_file(&changes(LogBuilder::new(FILE).begin()).xid(4).into_bytes()).unwrap();
    let inner = &seen[3..seen.len() - 1];
    assert_eq!(inner.len(), plain.len() - 1);
    for (index, event) in inner.iter().enumerate() {
        assert_eq!(event.text, plain[index + 1].text);
        assert_eq!(event.span, payload.span);
    }
    assert_eq!(seen[1].text, format!("gtid {UUID}:blue:23"));
    let after = seen.last().unwrap();
    assert_eq!((after.text.as_str(), after.span.position), ("xid 5", payload.span.end));
}

#[test]
fn a_large_event_of_a_compressed_transaction_is_bounded_and_read_in_pieces() {
    let text = "0123456789abcdef".repeat(100_000);
    let log = LogBuilder::new(FILE)
        .compressed(|log| log.query("", "BEGIN").query("", &text).query("", &text[1..]).xid(1));
    let bytes = log.into_bytes();
    let seen = decode_file(&bytes).unwrap();
    assert_eq!(seen[3].text, format!("query : {text}"));
    assert_eq!(seen[5].text, "xid 1");
    let error = decode_with(&bytes, PayloadReader::new(1_000_000)).unwrap_err();
    let Error::TooLarge { size, limit: 1_000_000, ref at, .. } = error else { panic!("{error}") };
    assert!(size > 1_600_000);
    assert_eq!(at.event_type, Some(EventType::TransactionPayload));
    assert_eq!(error.class(), ErrorClass::Config);
}

#[test]
fn every_prefix_of_a_payload_and_every_other_size_is_an_error() {
    let log = LogBuilder::new(FILE).compressed(|log| changes(log.begin()).xid(4));
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let mut payloads = PayloadReader::default();
    for event in log.events() {
        let event = stream.decode(event).unwrap();
        let EventData::TransactionPayload(payload) = event.data else { continue };
        let mut read = |payload: TransactionPayload<'_>| {
            payloads.open(&event, &payload)?;
            let mut count = 0;
            while payloads.next_event()?.is_some() {
                count += 1;
            }
            Ok::<_, Error>(count)
        };
        assert_eq!(read(payload).unwrap(), 8);
        let PayloadBytes::Memory(bytes) = payload.payload else { panic!("in memory") };
        for len in 0..bytes.len() {
            let cut =
                TransactionPayload { payload: PayloadBytes::Memory(&bytes[..len]), ..payload };
            let result = read(cut);
            // The last bytes end the frame and hold no event.
            assert!(result.is_err() || len + 4 > bytes.len(), "{len}: {result:?}");
        }
        for uncompressed_size in [0, payload.uncompressed_size - 1, payload.uncompressed_size + 1] {
            assert!(read(TransactionPayload { uncompressed_size, ..payload }).is_err());
        }
        assert_eq!(read(payload).unwrap(), 8, "the reader can be used again");
        return;
    }
    panic!("no payload");
}

#[test]
fn a_transaction_in_a_file_is_checked_and_decoded_as_one_in_memory() {
    for checksum in [ChecksumAlgorithm::None, ChecksumAlgorithm::Crc32] {
        let options = LogOptions { checksum, ..LogOptions::default() };
        let text = "0123456789".repeat(100_000);
        let log = LogBuilder::with_options(FILE, options)
            .compressed(|log| changes(log.begin()).query("shop", &text).xid(4));
        let bytes = log.clone().into_bytes();
        let expected: Vec<_> =
            decode_file(&bytes).unwrap().into_iter().map(|seen| seen.text).collect();
        let (mut seen, mut payloads) = (Vec::new(), PayloadReader::default());
        let mut stream = EventStream::new(FILE, StreamOptions::default());
        for event in log.events() {
            if event[4] != EventType::TransactionPayload.code() {
                stream.decode(event).unwrap();
                continue;
            }
            // A damaged one first, which changes nothing.
            let mut damaged = event.to_vec();
            *damaged.last_mut().unwrap() ^= 1;
            let spilled = spill(&damaged);
            let failed = stream.decode(RawEvent::File(&spilled));
            let is_refused = matches!(failed, Err(Error::Checksum { .. }));
            assert_eq!(is_refused, checksum == ChecksumAlgorithm::Crc32);
            let cut = spill(&event[..event.len() - 1]);
            assert!(matches!(stream.decode(RawEvent::File(&cut)), Err(Error::Decode { .. })));

            let position = log.position() - event.len() as u64;
            stream.seek(position);
            let spilled = spill(event);
            let outer = stream.decode(RawEvent::File(&spilled)).unwrap();
            let EventData::TransactionPayload(payload) = outer.data else { panic!("{outer:?}") };
            assert_eq!((outer.position, outer.end), (position, log.position()));
            let span = outer.span();
            payloads.open(&outer, &payload).unwrap();
            drop(spilled);
            while let Some(bytes) = payloads.next_event().unwrap() {
                seen.push(see(&stream.decode_nested(bytes, span).unwrap()).text);
            }
        }
        assert!(seen.len() > 5 && expected.ends_with(&seen), "{seen:?}");
    }
}

fn spill(bytes: &[u8]) -> SpilledEvent {
    let mut writer = SpillWriter::begin().unwrap();
    for piece in bytes.chunks(100) {
        writer.write(piece).unwrap();
    }
    writer.finish()
}

#[test]
fn mariadb_statements_and_rows_are_decompressed() {
    let options = LogOptions { server: TestServer::MariaDb, ..LogOptions::default() };
    let plain = changes(LogBuilder::with_options(FILE, options.clone()).query("shop", "CREATE …"));
    // What is compressed begins behind so many bytes of the body.
    let query = 13 + 16 + "shop".len() + 1;
    let kinds = [
        (EventType::Query, EventType::MariaDbQueryCompressed, query),
        (EventType::WriteRowsV1, EventType::MariaDbWriteRowsCompressedV1, 10),
        (EventType::UpdateRowsV1, EventType::MariaDbUpdateRowsCompressedV1, 11),
        (EventType::DeleteRowsV1, EventType::MariaDbDeleteRowsCompressedV1, 10),
    ];
    let mut packed = LogBuilder::with_options(FILE, options);
    for event in plain.events().skip(1) {
        let header = EventHeader::parse(event).unwrap();
        let body = &event[EventHeader::SIZE..event.len() - 4];
        packed = match kinds.iter().find(|(plain, ..)| *plain == header.event_type) {
            None => packed.event(header.event_type, 0, body),
            Some((_, kind, at)) => packed.event(*kind, 0, &deflate(body, *at)),
        };
    }
    let texts = |log: LogBuilder| {
        let seen = decode_file(&log.into_bytes()).unwrap();
        seen.into_iter().map(|event| event.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(packed), texts(plain));
}

#[test]
fn an_unknown_event_is_skipped_only_when_it_may_be() {
    let kind = EventType::Other(99);
    let skipped = LogBuilder::new(FILE).event(kind, EventHeader::IGNORABLE, b"x").xid(1);
    assert_eq!(decode_file(&skipped.into_bytes()).unwrap().len(), 3);
    let log = LogBuilder::new(FILE).event(kind, 0, b"x");
    let error = decode_file(&log.into_bytes()).unwrap_err();
    assert!(matches!(error, Error::UnknownEvent { .. }), "{error}");
    assert_eq!(error.event().unwrap().event_type, Some(kind));
}

#[test]
fn rows_need_their_table_map() {
    let with_map = columns(LogBuilder::new(FILE)).write_rows(7, &[&[1.into(), "a".into()]]);
    let rows = with_map.events().last().unwrap();
    let body = &rows[EventHeader::SIZE..rows.len() - 4];
    let log = LogBuilder::new(FILE).event(EventType::WriteRows, 0, body);
    let error = decode_file(&log.into_bytes()).unwrap_err();
    assert!(matches!(error, Error::UnknownTable { table_id: 7, .. }), "{error}");
    // The marker of a statement's end belongs to no table.
    let marker = b"\xff\xff\xff\0\0\0\x01\0\x02\0\0";
    let log = LogBuilder::new(FILE).event(EventType::WriteRows, 0, marker);
    assert_eq!(decode_file(&log.into_bytes()).unwrap()[1].text, "ignored");
}

#[test]
fn a_new_file_forgets_the_table_maps() {
    let first = columns(LogBuilder::new(FILE));
    let rows = first.clone().write_rows(7, &[&[1.into(), "a".into()]]);
    let rows = rows.events().last().unwrap();
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    for event in first.events() {
        stream.decode(event).unwrap();
    }
    assert!(stream.decode(rows).is_ok());
    for event in LogBuilder::new(FILE).events() {
        stream.decode(event).unwrap();
    }
    assert!(matches!(stream.decode(rows), Err(Error::UnknownTable { .. })));
}

#[test]
fn what_is_not_supported_says_so() {
    let table = [
        (EventType::StartV3, "MySQL 3.23 to 4.1"),
        (EventType::MariaDbStartEncryption, "an encrypted file"),
        (EventType::PreGaUpdateRows, "before its release"),
    ];
    for (kind, text) in table {
        let log = LogBuilder::new(FILE).event(kind, 0, &[0; 20]);
        let error = decode_file(&log.into_bytes()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn transaction_ends_and_notices_are_read() {
    let prepare = b"\x00\x01\0\0\0\x02\0\0\0\0\0\0\0ab";
    let log = LogBuilder::new(FILE)
        .event(EventType::XaPrepare, 0, prepare)
        .event(EventType::Incident, 0, b"\x01\0\x04lost")
        .event(EventType::Intvar, 0, &[2; 9])
        .event(EventType::ViewChange, EventHeader::IGNORABLE, &[1; 9])
        .event(EventType::PreviousGtids, 0, &[0; 8])
        .anonymous_gtid();
    let seen = decode_file(&log.into_bytes()).unwrap();
    let xid = XaId { format_id: 1, gtrid: b"ab", bqual: b"" };
    let lines = seen[1..].iter().map(|event| event.text.clone()).collect::<Vec<_>>();
    assert_eq!(
        lines,
        [
            format!("prepared {xid}").as_str(),
            "incident 1 lost",
            "statement context",
            "ignored",
            "previous 8",
            "gtid -",
        ]
    );
}

#[test]
fn the_size_in_the_header_is_the_size_of_the_event() {
    let log = LogBuilder::new(FILE).xid(1);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    stream.decode(log.events().next().unwrap()).unwrap();
    let xid = log.events().last().unwrap();
    let longer = [xid, &[0]].concat();
    for event in [&xid[..xid.len() - 1], &longer] {
        assert!(matches!(stream.decode(event), Err(Error::Decode { .. })));
    }
    for len in 0..EventHeader::SIZE {
        assert!(matches!(stream.decode(&xid[..len]), Err(Error::Decode { .. })));
    }
}

#[test]
fn files_that_are_no_binlogs_are_recognised() {
    let table: [(&[u8], &str); 5] = [
        (b"", "it is empty"),
        (b"\xfebi", "it is shorter than 4 bytes"),
        (b"\xfdbin and more", "it is encrypted (a server sends it decrypted)"),
        (b"# at 4\n", "it begins like text"),
        (b"PK\x03\x04", "its first bytes are others"),
    ];
    for (bytes, expected) in table {
        match BinlogFileReader::new(bytes, FILE) {
            Err(Error::NotABinlog { found, .. }) => assert_eq!(found, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_file_is_read_from_the_middle_after_its_format_description() {
    let log = transaction(LogBuilder::new(FILE));
    let position = log.position();
    let bytes = log.xid(5).into_bytes();
    let mut reader = BinlogFileReader::new(std::io::Cursor::new(&bytes), FILE).unwrap();
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    stream.decode(reader.next_event().unwrap().unwrap()).unwrap();
    reader.seek(position).unwrap();
    stream.seek(position);
    let event = stream.decode(reader.next_event().unwrap().unwrap()).unwrap();
    assert!(matches!(event.data, EventData::Xid(5)));
    assert_eq!(event.position, position);
    assert!(reader.next_event().unwrap().is_none());
}

#[test]
fn a_declared_size_is_not_allocated_before_its_bytes_come() {
    let mut bytes = LogBuilder::new(FILE).xid(1).into_bytes();
    let size_at = bytes.len() - 31 + 9;
    bytes[size_at..size_at + 4].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    let error = decode_file(&bytes).unwrap_err();
    assert!(matches!(error, Error::TruncatedFile { needed: 1_073_741_824, left: 31, .. }));
    bytes[size_at + 3] = 0x7f;
    assert!(matches!(decode_file(&bytes), Err(Error::TooLarge { .. })));
    bytes[size_at..size_at + 4].copy_from_slice(&18_u32.to_le_bytes());
    assert!(matches!(decode_file(&bytes), Err(Error::Decode { .. })));
}

proptest! {
    #[test]
    fn random_bodies_never_panic(
        kind in any::<u8>(),
        flags in any::<u16>(),
        body in prop::collection::vec(any::<u8>(), 0..200),
        mariadb in any::<bool>(),
    ) {
        let server = if mariadb { TestServer::MariaDb } else { TestServer::MySql };
        let options =
            LogOptions { server, checksum: ChecksumAlgorithm::None, ..LogOptions::default() };
        let log = columns(LogBuilder::with_options(FILE, options)).event(kind.into(), flags, &body);
        let _ = decode_file(&log.into_bytes());
    }

    #[test]
    fn random_rows_of_a_known_table_never_panic(
        kind in prop::sample::select(vec![23_u8, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169]),
        body in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let options = LogOptions { checksum: ChecksumAlgorithm::None, ..LogOptions::default() };
        let body = [&b"\x07\0\0\0\0\0\x01\0\x02\0\x02"[..], &body].concat();
        let log = columns(LogBuilder::with_options(FILE, options)).event(kind.into(), 0, &body);
        let _ = decode_file(&log.into_bytes());
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_file(&[crate::file::MAGIC, &bytes].concat());
        let mut stream = EventStream::new(FILE, StreamOptions::default());
        let _ = stream.decode(&bytes);
        let _ = stream.decode_nested(&bytes, Span { position: 4, end: 5 });
    }

    #[test]
    fn random_payloads_never_panic(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        is_zstd in any::<bool>(),
        size in 0_u8..255,
    ) {
        let compression = if is_zstd { 0 } else { 255 };
        let mut body = vec![2, 1, compression, 3, 1, size.min(250), 0];
        if compression == 255 {
            body.splice(1..3, [3, 0xfc, 255, 0]);
        }
        body.extend(payload);
        let log = LogBuilder::new(FILE).event(EventType::TransactionPayload, 0, &body);
        let _ = decode_file(&log.into_bytes());
    }

    #[test]
    fn a_tagged_gtid_reads_as_it_was_written(
        uuid in any::<[u8; 16]>(),
        number in 1..=MAX_NUMBER,
        tag in "[a-z_][a-z0-9_]{0,31}",
    ) {
        let gtid = Gtid {
            source: Uuid::from_bytes(uuid),
            tag: Tag::parse(&tag).unwrap(),
            number,
        };
        let seen = decode_file(&LogBuilder::new(FILE).gtid(gtid).into_bytes()).unwrap();
        prop_assert_eq!(&seen[1].text, &format!("gtid {gtid}"));
    }
}

fn gtid() -> Gtid {
    format!("{UUID}:23").parse().unwrap()
}

/// A transaction with all kinds of changes.
fn transaction(log: LogBuilder) -> LogBuilder {
    changes(log.gtid(gtid()).begin().rows_query("INSERT INTO orders …")).xid(99)
}

pub(super) fn columns(log: LogBuilder) -> LogBuilder {
    log.table_map(7, "shop", "orders", &[TestColumn::int(), TestColumn::varchar(300).nullable()])
}

pub(super) fn changes(log: LogBuilder) -> LogBuilder {
    let first: [TestValue; 2] = [1.into(), "a".into()];
    let changed: [TestValue; 2] = [1.into(), "b".into()];
    let second: [TestValue; 2] = [2.into(), TestValue::Null];
    let log = columns(log).write_rows(7, &[&first, &second]);
    let log = columns(log).update_rows(7, &[(&first, &changed)]);
    columns(log).delete_rows(7, &[&second])
}

/// Puts a compressed block in the place of what follows `at`.
pub(super) fn deflate(body: &[u8], at: usize) -> Vec<u8> {
    let (prefix, field) = body.split_at(at);
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(field).unwrap();
    let length = u8::try_from(field.len()).unwrap();
    [prefix, &[0x81, length], &encoder.finish().unwrap()].concat()
}

/// What came out for one event.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) text: String,
    pub(super) span: Span,
}

pub(super) fn decode_file(bytes: &[u8]) -> Result<Vec<Seen>, Error> {
    decode_with(bytes, PayloadReader::default())
}

fn decode_with(bytes: &[u8], mut payloads: PayloadReader) -> Result<Vec<Seen>, Error> {
    let mut reader = BinlogFileReader::new(bytes, FILE)?;
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let mut seen = Vec::new();
    while let Some(bytes) = reader.next_event()? {
        let event = stream.decode(bytes)?;
        seen.push(see(&event));
        if let EventData::TransactionPayload(payload) = event.data {
            let span = event.span();
            payloads.open(&event, &payload)?;
            while let Some(bytes) = payloads.next_event()? {
                seen.push(see(&stream.decode_nested(bytes, span)?));
            }
        }
    }
    Ok(seen)
}

pub(super) fn see(event: &Event<'_>) -> Seen {
    let text = match event.data {
        EventData::FormatDescription(format) => {
            format!("{} {:?}", format.server_version, format.checksum)
        }
        EventData::Rotate(rotate) => format!("rotate {}:{}", rotate.file, rotate.position),
        EventData::Stop => "stop".into(),
        EventData::Gtid(event) => {
            format!("gtid {}", event.gtid.map_or_else(|| "-".into(), |gtid| gtid.to_string()))
        }
        EventData::PreviousGtids(bytes) => format!("previous {}", bytes.len()),
        EventData::Query(query) => format!("query {}: {}", text(query.schema), text(query.sql)),
        EventData::TableMap(table) => format!("map {}.{}", table.database(), table.table()),
        EventData::Rows { rows, table } => {
            let rows = read_rows(&rows, table).unwrap_or_else(|error| format!("{error:?}"));
            format!("{}.{} {rows}", table.database(), table.table())
        }
        EventData::Xid(xid) => format!("xid {xid}"),
        EventData::XaPrepare(prepare) => format!("prepared {}", prepare.xid),
        EventData::RowsQuery(sql) => format!("query text {}", text(sql)),
        EventData::Heartbeat(heartbeat) => format!("heartbeat {:?}", heartbeat.position),
        EventData::TransactionPayload(_) => "payload".into(),
        EventData::Incident(incident) => {
            format!("incident {} {}", incident.code, text(incident.message))
        }
        EventData::StatementContext => "statement context".into(),
        EventData::MariaDbGtid(event) => format!("mariadb {}", event.gtid),
        EventData::MariaDbGtidList(list) => format!("list {}", list.entries().len()),
        EventData::MariaDbBinlogCheckpoint(file) => format!("checkpoint {}", text(file)),
        EventData::RowsFragment(part) => format!("part {} of {}", part.number, part.count),
        EventData::Ignored => "ignored".into(),
    };
    Seen { text, span: event.span() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read_rows(
    rows: &RowsEvent<'_>,
    table: &crate::event::table_map::TableMap,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut reader = rows.rows(table)?;
    let mut row = Row::new();
    let mut texts = Vec::new();
    while reader.read(&mut row)? {
        let side = |image: &crate::row::RowImage<'_>| {
            let values = image.iter().map(|(_, value)| value).collect::<Vec<Value<'_>>>();
            if image.is_empty() { "-".to_owned() } else { format!("{values:?}") }
        };
        texts.push(format!("{} → {}", side(&row.before), side(&row.after)));
    }
    Ok(texts.join("; "))
}
