//! Rows events in fragments. The logs are made up: there was no server of MariaDB 12.3 to write one.

use proptest::prelude::*;

use crate::error::{Error, ErrorClass};
use crate::event::mariadb::RowsFragment;
use crate::event::{ChecksumAlgorithm, EventData, EventHeader, EventType};
use crate::gtid::MariaDbGtid;
use crate::stream::tests::{FILE, Seen, changes, columns, decode_file, deflate, see};
use crate::stream::{EventStream, StreamOptions};
use crate::testkit::{LogBuilder, LogOptions, TestServer};
use crate::wire::DecodeError;

fn options() -> LogOptions {
    LogOptions { server: TestServer::MariaDb, ..LogOptions::default() }
}

/// A transaction with all kinds of changes, its rows events in fragments of so many bytes.
fn log(options: LogOptions, sizes: &[usize]) -> LogBuilder {
    let gtid = MariaDbGtid { domain: 0, server: 3, sequence: 7 };
    let log = LogBuilder::with_options(FILE, options).mariadb_gtid(gtid, 4);
    log.in_fragments(sizes, changes).xid(1).mariadb_gtid(gtid, 1)
}

/// What a log says, without the fragments before the last.
fn said(log: LogBuilder) -> Vec<String> {
    let seen = decode_file(&log.into_bytes()).unwrap();
    let texts = seen.into_iter().map(|event| event.text);
    texts.filter(|text| !text.starts_with("part ")).collect()
}

/// One write of two rows in three fragments, each an event; and the whole log.
fn three() -> (LogBuilder, Vec<Vec<u8>>) {
    let rows =
        |log: LogBuilder| log.write_rows(7, &[&[1.into(), "a".into()], &[2.into(), "b".into()]]);
    let log = columns(LogBuilder::with_options(FILE, options())).in_fragments(&[25, 11], rows);
    let events = log.events().map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(events.len(), 2 + 3);
    (log, events)
}

/// What comes out of events, up to an error.
fn decode(events: &[&[u8]], options: StreamOptions) -> (Vec<Seen>, Option<Error>) {
    let mut stream = EventStream::new(FILE, options);
    let mut seen = Vec::new();
    for event in events {
        match stream.decode(*event) {
            Ok(event) => seen.push(see(&event)),
            Err(error) => return (seen, Some(error)),
        }
    }
    (seen, None)
}

fn failure(events: &[&[u8]]) -> (Error, DecodeError) {
    let (_, error) = decode(events, StreamOptions::default());
    let error = error.unwrap();
    let Error::Decode { source, .. } = error else { panic!("{error}") };
    (error, source)
}

#[test]
fn joined_rows_are_those_of_the_event_in_one_piece() {
    let plain = said(log(options(), &[]));
    for checksum in [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::None] {
        for zero_end_positions in [false, true] {
            let options = LogOptions { checksum, zero_end_positions, ..options() };
            for sizes in [&[1; 12][..], &[19], &[27, 1, 1], &[20, 20]] {
                let said = said(log(options.clone(), sizes));
                assert_eq!(said[1..], plain[1..], "{checksum:?} {zero_end_positions} {sizes:?}");
            }
        }
    }
}

#[test]
fn the_place_of_the_joined_event_is_that_of_all_fragments() {
    let (log, events) = three();
    let end = log.position();
    let seen = decode_file(&log.into_bytes()).unwrap();
    let texts = seen.iter().map(|event| event.text.as_str()).collect::<Vec<_>>();
    assert_eq!(texts[2..4], ["part 1 of 3", "part 2 of 3"]);
    assert!(texts[4].starts_with("shop.orders - → [Int32(1)"), "{texts:?}");
    assert_eq!((seen[4].span.position, seen[4].span.end), (seen[2].span.position, end));
    assert_eq!(seen[3].span.position, seen[2].span.end);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    for event in &events[..4] {
        stream.decode(event).unwrap();
    }
    let joined = stream.decode(&events[4]).unwrap();
    assert_eq!(joined.header.event_type, EventType::WriteRowsV1);
    assert!(matches!(joined.data, EventData::Rows { .. }));
}

#[test]
fn compressed_rows_come_in_fragments_too() {
    let plain = columns(LogBuilder::with_options(FILE, options()))
        .write_rows(7, &[&[1.into(), "a".into()], &[2.into(), "b".into()]]);
    let rows = plain.events().last().unwrap();
    let body = deflate(&rows[EventHeader::SIZE..rows.len() - 4], 10);
    let kind = EventType::MariaDbWriteRowsCompressedV1;
    let whole = |log: LogBuilder| log.event(kind, 0, &body);
    let log = columns(LogBuilder::with_options(FILE, options())).in_fragments(&[30, 5], whole);
    assert_eq!(said(log), said(plain.clone()));
    // MariaDB before 12.3.3 gave rows that are not compressed this type (MDEV-40768); its own replicas refuse them too.
    let body = rows[EventHeader::SIZE..rows.len() - 4].to_vec();
    let whole = |log: LogBuilder| log.event(kind, 0, &body);
    let log = columns(LogBuilder::with_options(FILE, options())).in_fragments(&[30, 5], whole);
    let error = decode_file(&log.into_bytes()).unwrap_err();
    assert_eq!(error.event().unwrap().event_type, Some(kind), "{error}");
}

#[test]
fn a_fragment_that_is_not_the_next_is_an_error_at_its_place() {
    let (_, events) = three();
    let [format, map, first, second, third] = &events[..] else { unreachable!() };
    let mismatch =
        |found, expected| DecodeError::Mismatch { field: "fragment number", found, expected };
    let table: [(&[&Vec<u8>], DecodeError); 6] = [
        (&[second], mismatch(2, 1)),
        (&[first, third], mismatch(3, 2)),
        (&[first, first], mismatch(1, 2)),
        (&[first, second, second], mismatch(2, 3)),
        (&[first, second, first], mismatch(1, 3)),
        (&[first, second, third, third], mismatch(3, 1)),
    ];
    for (order, expected) in table {
        let mut all = vec![&format[..], &map[..]];
        all.extend(order.iter().map(|event| &event[..]));
        let (error, source) = failure(&all);
        assert_eq!(source, expected);
        let at = error.event().unwrap();
        let header = EventHeader::parse(order.last().unwrap()).unwrap();
        let position = u64::from(header.end_position - header.event_size);
        assert_eq!(
            (at.position, at.event_type),
            (position, Some(EventType::MariaDbPartialRowData))
        );
        assert_eq!((error.class(), error.end_of_rows()), (ErrorClass::Data, None));
    }
}

#[test]
fn only_signs_of_life_come_between_fragments() {
    let (log, events) = three();
    let others = log.clone().heartbeat().xid(5).query("", "COMMIT");
    let others = others.events().skip(5).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let [format, map, first, second, third] = &events[..] else { unreachable!() };
    let heartbeat = &others[0][..];
    let all = [&format[..], map, first, heartbeat, second, heartbeat, third];
    let (seen, error) = decode(&all, StreamOptions::default());
    assert!(error.is_none() && seen[6].text.starts_with("shop.orders"), "{error:?}");
    for other in [&others[1], &others[2], map] {
        let (error, source) = failure(&[format, map, first, second, other]);
        let interrupted = DecodeError::Interrupted { what: "a rows event", number: 2, count: 3 };
        assert_eq!(source, interrupted, "{error}");
        assert_eq!(source.to_string(), "a rows event in fragments ends after fragment 2 of 3");
    }
    // After the error the next event in fragments is whole again.
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    for event in [format, map, first] {
        stream.decode(event).unwrap();
    }
    stream.decode(&others[1]).unwrap_err();
    for event in [first, second] {
        stream.decode(event).unwrap();
    }
    assert!(matches!(stream.decode(third).unwrap().data, EventData::Rows { .. }));
}

#[test]
fn a_log_that_begins_anew_forgets_the_fragments() {
    let (log, events) = three();
    let rotate = log.artificial_rotate(FILE, 4);
    let rotate = rotate.events().last().unwrap().to_vec();
    let [format, map, first, second, third] = &events[..] else { unreachable!() };
    // Another connection, which begins at the start of the transaction.
    let again = [&format[..], map, first, &rotate, format, map, first, second, third];
    let (seen, error) = decode(&again, StreamOptions::default());
    assert!(error.is_none() && seen[8].text.starts_with("shop.orders"), "{error:?}");
    // The file after that of a server that crashed while it wrote.
    let (seen, error) = decode(&[format, map, first, format, map], StreamOptions::default());
    assert!(error.is_none() && seen.len() == 5, "{error:?}");
    let (error, _) = failure(&[format, map, first, format, second]);
    assert!(matches!(error, Error::Decode { .. }), "{error}");
}

#[test]
fn sizes_are_bounded_and_must_agree() {
    let (_, events) = three();
    let events = events.iter().map(|event| &event[..]).collect::<Vec<_>>();
    let size = |event: &[u8]| {
        let body = &event[EventHeader::SIZE..event.len() - 4];
        RowsFragment::parse(body).unwrap().size.unwrap()
    };
    let whole = size(events[2]);
    let options = StreamOptions { max_event_size: whole - 1, ..StreamOptions::default() };
    let (seen, error) = decode(&events, options);
    let error = error.unwrap();
    assert!(
        matches!(error, Error::TooLarge { size, limit, .. } if size == whole && limit == whole - 1),
        "{error}"
    );
    // Known in the end, so that it can be left out.
    let (first, last) =
        (EventHeader::parse(events[2]).unwrap(), EventHeader::parse(events[4]).unwrap());
    let at = error.event().unwrap();
    assert_eq!(at.position, u64::from(first.end_position - first.event_size));
    assert_eq!(at.event_type, Some(EventType::WriteRowsV1));
    assert_eq!((seen.len(), error.end_of_rows()), (4, Some(last.end_position.into())));
    let options = StreamOptions { max_event_size: whole, ..StreamOptions::default() };
    assert!(decode(&events, options).1.is_none());
    // A size that the content does not have: too much content in the first fragment, too little in the last.
    for (declared, place) in [(20_u64, 2), (whole - 1, 4), (whole + 1, 4), (1 << 29, 4)] {
        let mut first = events[2][..events[2].len() - 4].to_vec();
        let at = EventHeader::SIZE + 9;
        first[at..at + 8].copy_from_slice(&declared.to_le_bytes());
        first.extend(crc32fast::hash(&first).to_le_bytes());
        let mut all = events.clone();
        all[2] = &first;
        let (seen, error) = decode(&all, StreamOptions::default());
        let error = error.unwrap();
        let Error::Decode { source: DecodeError::Mismatch { field, expected, .. }, .. } = error
        else {
            panic!("{error}");
        };
        assert_eq!((field, expected, seen.len()), ("size of the rows event", declared, place));
    }
}

#[test]
fn what_is_in_the_fragments_is_a_rows_event() {
    for kind in [EventType::Query, EventType::PartialUpdateRows, EventType::PreGaWriteRows] {
        let (log, events) = three();
        let mut first = events[2][EventHeader::SIZE..events[2].len() - 4].to_vec();
        first[17 + 4] = kind.code();
        let mut log = log.next_file(FILE);
        for event in &events[1..] {
            let header = EventHeader::parse(event).unwrap();
            let body = &event[EventHeader::SIZE..event.len() - 4];
            let is_first = event == &events[2];
            log = log.event(header.event_type, 0, if is_first { &first } else { body });
        }
        let error = decode_file(&log.into_bytes()).unwrap_err();
        let Error::Decode { source: DecodeError::Invalid { field, value }, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((field, value), ("event_type of the rows event", kind.code().into()));
    }
}

#[test]
fn rows_that_can_t_be_decoded_are_those_of_the_joined_event() {
    let (_, events) = three();
    let all = [&events[0][..], &events[2], &events[3], &events[4]];
    let (_, error) = decode(&all, StreamOptions::default());
    let error = error.unwrap();
    assert!(matches!(error, Error::UnknownTable { table_id: 7, .. }), "{error}");
    let last = EventHeader::parse(&events[4]).unwrap();
    assert_eq!(error.event().unwrap().event_type, Some(EventType::WriteRowsV1));
    assert_eq!(error.end_of_rows(), Some(last.end_position.into()));
}

#[test]
fn damage_anywhere_in_fragments_is_found() {
    let log = log(options(), &[22, 7]);
    let ends = log.events().scan(4, |end, event| {
        *end += event.len();
        Some(*end)
    });
    let ends = ends.collect::<Vec<_>>();
    let bytes = log.into_bytes();
    assert!(decode_file(&bytes).is_ok());
    for len in 5..bytes.len() {
        assert_eq!(decode_file(&bytes[..len]).is_ok(), ends.contains(&len), "{len}");
    }
    // In the first event, the flag that the server changes without a new checksum.
    let in_use = 4 + 17;
    for at in (0..bytes.len()).filter(|at| *at != in_use) {
        for mask in [1, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            assert!(decode_file(&damaged).is_err(), "byte {at} changed by {mask:#x}");
        }
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(sizes in prop::collection::vec(1_usize..60, 0..20)) {
        prop_assert_eq!(said(log(options(), &sizes)), said(log(options(), &[])));
    }

    #[test]
    fn random_fragments_never_panic_and_give_no_other_rows(
        order in prop::collection::vec(0_usize..5, 0..12),
    ) {
        let (_, events) = three();
        let mut all = vec![&events[0][..], &events[1][..]];
        all.extend(order.iter().map(|index| &events[*index][..]));
        let (seen, _) = decode(&all, StreamOptions::default());
        let rows = "shop.orders - → [Int32(1), Bytes([97])]; - → [Int32(2), Bytes([98])]";
        for event in seen.iter().filter(|event| event.text.starts_with("shop.")) {
            prop_assert_eq!(&event.text, rows);
        }
    }
}
