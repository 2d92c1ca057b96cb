use proptest::prelude::*;

use super::*;

/// Both texts of a document: the server's, then Debezium's.
fn texts(document: &[u8]) -> Result<[String; 2], JsonError> {
    let text = |style| {
        let mut out = b"kept".to_vec();
        let result = JsonBinary(document).write_text(style, &mut out);
        if result.is_err() {
            assert_eq!(out, b"kept");
        }
        let text = result.map(|()| String::from_utf8(out.split_off(4)).unwrap());
        // As a string of JSON it is the same text.
        let result = JsonBinary(document).write_quoted(style, &mut out);
        let quoted = String::from_utf8(out.split_off(4)).unwrap();
        assert_eq!(result, text.as_ref().map(|_| ()).map_err(|error| *error));
        let escaped = |text: &String| text.replace('\\', "\\\\").replace('"', "\\\"");
        assert_eq!(
            quoted,
            text.as_ref().map(|text| format!("\"{}\"", escaped(text))).unwrap_or_default()
        );
        text
    };
    Ok([text(JsonStyle::Server)?, text(JsonStyle::Debezium)?])
}

/// A value as it stands behind an offset, with its type.
type Typed = (u8, Vec<u8>);

fn string(text: &str) -> Typed {
    let mut bytes = variable_length(text.len());
    bytes.extend(text.as_bytes());
    (0x0c, bytes)
}

fn opaque(kind: u8, value: &[u8]) -> Typed {
    let mut bytes = vec![kind];
    bytes.extend(variable_length(value.len()));
    bytes.extend(value);
    (0x0f, bytes)
}

fn double(value: f64) -> Typed {
    (0x0b, value.to_le_bytes().to_vec())
}

fn variable_length(mut len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while len > 0x7f {
        bytes.push(u8::try_from(len & 0x7f).unwrap() | 0x80);
        len >>= 7;
    }
    bytes.push(u8::try_from(len).unwrap());
    bytes
}

/// An object, or with empty keys an array; `inline` says which values go into their entries.
fn container(large: bool, keys: Option<&[&str]>, values: &[Typed]) -> Typed {
    let width = if large { 4 } else { 2 };
    let number = |value: usize| value.to_le_bytes()[..width].to_vec();
    let key_entry = if keys.is_some() { width + 2 } else { 0 };
    let header = 2 * width + values.len() * (key_entry + 1 + width);
    let mut entries = Vec::new();
    let mut data: Vec<u8> = Vec::new();
    for key in keys.unwrap_or_default() {
        entries.extend(number(header + data.len()));
        entries.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
        data.extend(key.as_bytes());
    }
    for (kind, bytes) in values {
        entries.push(*kind);
        if matches!(kind, 4..=6) || large && matches!(kind, 7 | 8) {
            entries.extend(bytes);
            entries.resize(entries.len() + width - bytes.len(), 0);
        } else {
            entries.extend(number(header + data.len()));
            data.extend(bytes);
        }
    }
    let mut bytes = number(values.len());
    bytes.extend(number(header + data.len()));
    bytes.extend(entries);
    bytes.extend(data);
    let kind = if keys.is_some() { 0 } else { 2 } + u8::from(large);
    (kind, bytes)
}

fn document((kind, bytes): Typed) -> Vec<u8> {
    [&[kind][..], &bytes].concat()
}

#[test]
fn scalars_print_alike_in_both_styles() {
    let table: [(&[u8], &str); 13] = [
        (b"", "null"),
        (b"\x04\x00", "null"),
        (b"\x04\x01", "true"),
        (b"\x04\x02", "false"),
        (b"\x05\x00\x80", "-32768"),
        (b"\x06\xff\xff", "65535"),
        (b"\x07\x00\x00\x00\x80", "-2147483648"),
        (b"\x08\xff\xff\xff\xff", "4294967295"),
        (b"\x09\0\0\0\0\0\0\0\x80", "-9223372036854775808"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
        (b"\x0b\0\0\0\0\0\0\xf8\x3f", "1.5"),
        (b"\x0c\x03abc", "\"abc\""),
        (b"\x0f\xf6\x05\x05\x02\x7f\xf3\xe1", "-12.30"),
    ];
    for (document, text) in table {
        assert_eq!(texts(document), Ok([text.to_owned(), text.to_owned()]), "{document:x?}");
        for len in 1..document.len() {
            assert!(texts(&document[..len]).is_err(), "{:x?}", &document[..len]);
        }
    }
}

#[test]
fn containers_keep_the_stored_order_in_small_and_large_form() {
    for large in [false, true] {
        let int16 = |int: i16| (5, int.to_le_bytes().to_vec());
        let inner = container(large, None, &[int16(1), string("x"), (4, vec![0])]);
        let empty = container(large, Some(&[]), &[]);
        let uint32 = (8, u32::MAX.to_le_bytes().to_vec());
        let outer = container(
            large,
            Some(&["a", "b", "c", "aa", "é\""]),
            &[int16(-2), inner, (4, vec![1]), uint32, empty],
        );
        let document = document(outer);
        assert_eq!(
            texts(&document),
            Ok([
                r#"{"a": -2, "b": [1, "x", null], "c": true, "aa": 4294967295, "é\"": {}}"#.into(),
                r#"{"a":-2,"b":[1,"x",null],"c":true,"aa":4294967295,"é\"":{}}"#.into(),
            ])
        );
        for len in 1..document.len() {
            assert!(texts(&document[..len]).is_err(), "{len}");
        }
    }
}

#[test]
fn doubles_print_as_the_server_does_in_both_styles() {
    // What Debezium 3.6.3 prints instead, where it differs.
    let tiny = "0.0000000999999999999999954748111825886258685613938723690807819366455078125";
    let table = [
        (0.0, "0.0", ""),
        (-0.0, "-0.0", ""),
        (1.0, "1.0", ""),
        (-1.25, "-1.25", ""),
        (0.1, "0.1", ""),
        (0.001, "0.001", ""),
        (1e-7, "0.0000001", tiny),
        (1e7, "10000000.0", "10000000"),
        (9_999_999.5, "9999999.5", ""),
        (12_345_678.9, "12345678.9", "12345678.90000000037252902984619140625"),
        (123_456_789.125, "123456789.125", ""),
        (1e14, "100000000000000.0", "100000000000000"),
        (1e15, "1e15", "1000000000000000"),
        (123_456_789_012_345_678.0, "1.2345678901234568e17", "123456789012345680"),
        (1_234_567_890_123_456.5, "1234567890123456.5", ""),
        (1.5e21, "1.5e21", "1500000000000000000000"),
        (1e-14, "0.00000000000001", ""),
        (1e-15, "0.000000000000001", ""),
        (1e-16, "1e-16", ""),
        (f64::MAX, "1.7976931348623157e308", ""),
        (5e-324, "5e-324", ""),
    ];
    for (value, text, debezium) in table {
        assert_eq!(texts(&document(double(value))).unwrap(), [text; 2], "{value:e}");
        assert_eq!(text.parse(), Ok(value));
        assert_ne!(text, debezium);
    }
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(texts(&document(double(value))).is_err());
    }
}

#[test]
fn dates_and_times_print_their_packed_parts() {
    let packed = |date: i64, clock: i64, micro: i64| (date << 17 | clock) << 24 | micro;
    let date = |year: i64, month: i64, day: i64| (year * 13 + month) << 5 | day;
    let clock = |hour: i64, minute: i64, second: i64| hour << 12 | minute << 6 | second;
    let leap_day = date(2024, 2, 29);
    let table = [
        (10, packed(leap_day, 0, 0), "2024-02-29", "2024-02-29"),
        (
            12,
            packed(leap_day, clock(12, 34, 56), 0),
            "2024-02-29 12:34:56.000000",
            "2024-02-29 12:34:56",
        ),
        (
            7,
            packed(date(1, 1, 1), clock(0, 0, 0), 100),
            "0001-01-01 00:00:00.000100",
            "0001-01-01 00:00:00.0001",
        ),
        (11, packed(0, clock(12, 34, 56), 0), "12:34:56.000000", "12:34:56"),
        (11, -packed(0, clock(12, 34, 56), 789_000), "-12:34:56.789000", "-12:34:56.789"),
        (11, -packed(0, clock(0, 0, 1), 500_000), "-00:00:01.500000", "-00:00:01.5"),
        (11, packed(0, clock(838, 59, 59), 0), "838:59:59.000000", "838:59:59"),
    ];
    for (kind, packed, server, debezium) in table {
        let document = document(opaque(kind, &packed.to_le_bytes()));
        assert_eq!(texts(&document), Ok([format!("\"{server}\""), format!("\"{debezium}\"")]));
    }
    assert!(texts(&document(opaque(11, &[0; 7]))).is_err());
}

#[test]
fn other_types_print_as_base64() {
    let table: [(u8, &[u8], &str); 5] = [
        (15, b"\xde\xad\xbe\xef", "3q2+7w=="),
        (15, b"", ""),
        (16, b"\x05", "BQ=="),
        (252, b"abcdef", "YWJjZGVm"),
        (252, b"ab\xff\xfe\xfd", "YWL//v0="),
    ];
    for (kind, bytes, text) in table {
        assert_eq!(
            texts(&document(opaque(kind, bytes))),
            Ok([format!("\"base64:type{kind}:{text}\""), format!("\"{text}\"")])
        );
    }
}

#[test]
fn the_server_breaks_long_base64_into_lines() {
    // As MySQL 9.7 prints 58 and 114 bytes: a break between lines, none at the end.
    let line = "p6en".repeat(19);
    for (len, server) in
        [(57, line.clone()), (58, format!("{line}\\npw==")), (114, format!("{line}\\n{line}"))]
    {
        let [first, second] = texts(&document(opaque(15, &vec![0xa7; len]))).unwrap();
        assert_eq!(first, format!("\"base64:type15:{server}\""));
        assert_eq!(second, format!("\"{}\"", server.replace("\\n", "")));
    }
}

#[test]
fn a_decimal_may_count_leading_zeros() {
    let mut bytes = vec![66, 30, 0x80];
    bytes.extend([0; 29]);
    bytes[5] = 7;
    let [text, _] = texts(&document(opaque(246, &bytes))).unwrap();
    assert_eq!(text, "7000000000000000000000000000.000000000000000000000000000000");
    bytes[0] = 82;
    assert!(texts(&document(opaque(246, &bytes))).is_err());
}

#[test]
fn only_quotes_backslashes_and_control_characters_are_escaped() {
    let given = "q\"\\\u{8}\t\n\u{c}\r\u{1f}\u{7f}é😀/\u{2028}";
    let server = "\"q\\\"\\\\\\b\\t\\n\\f\\r\\u001f\u{7f}é😀/\u{2028}\"";
    assert_eq!(
        texts(&document(string(given))),
        Ok([server.to_owned(), server.replace("001f", "001F")])
    );
    assert!(texts(b"\x0c\x02\xc3(").is_err());
}

#[test]
fn long_strings_have_longer_lengths() {
    let text = "y".repeat(70_000);
    let [server, _] = texts(&document(string(&text))).unwrap();
    assert_eq!(server.len(), 70_002);
    assert!(texts(b"\x0c\xff\xff\xff\xff\xff\x00").is_err());
}

#[test]
fn a_hundred_containers_nest_and_no_more() {
    let nested = |depth: usize| {
        (1..depth).fold(container(false, None, &[]), |inner, _| container(false, None, &[inner]))
    };
    assert_eq!(texts(&document(nested(100))).unwrap()[1].len(), 200);
    assert_eq!(
        texts(&document(nested(101))),
        Err(JsonError::Invalid { field: "json depth", value: 101 })
    );
}

#[test]
fn values_that_overlap_are_refused_before_they_multiply() {
    // Sixty elements that are all the same string of 200 bytes.
    let count = 60_usize;
    let header = 4 + 3 * count;
    let text = string(&"z".repeat(200)).1;
    let mut bytes = vec![2];
    for number in [count, header + text.len()] {
        bytes.extend(&number.to_le_bytes()[..2]);
    }
    for _ in 0..count {
        bytes.push(0x0c);
        bytes.extend(&header.to_le_bytes()[..2]);
    }
    bytes.extend(text);
    assert_eq!(texts(&bytes), Err(JsonError::Unsupported { what: "json with parts that overlap" }));
}

#[test]
fn an_offset_into_the_header_or_beyond_the_end_is_an_error() {
    for offset in [0_u16, 6, 200] {
        let mut bytes = vec![2, 1, 0, 10, 0, 0x0c];
        bytes.extend(offset.to_le_bytes());
        bytes.extend(b"\x02ab");
        assert!(texts(&bytes).is_err(), "{offset}");
    }
    assert!(texts(b"\x02\x01\x00\x0a\x00\x0c\x07\x00\x02ab").is_ok());
    for bad in [&b"\x0d\x00"[..], b"\x04\x03", b"\x00\xff\xff\xff\xff"] {
        assert!(texts(bad).is_err(), "{bad:x?}");
    }
}

/// Operation, path and value of a diff.
type Entry = (u8, &'static str, Option<Typed>);

/// Diffs as the server writes them.
fn diffs(list: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (operation, path, value) in list {
        bytes.push(*operation);
        bytes.push(path.len().try_into().unwrap());
        bytes.extend(path.as_bytes());
        if let Some(value) = value {
            let value = document(value.clone());
            bytes.push(value.len().try_into().unwrap());
            bytes.extend(value);
        }
    }
    bytes
}

fn apply(before: &[u8], diffs: &[u8]) -> Result<String, JsonError> {
    let mut out = Vec::new();
    JsonDiffs(diffs).write_text(JsonBinary(before), JsonStyle::Debezium, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn diffs_replace_insert_and_remove() {
    let int = |int: u8| (5, vec![int, 0]);
    let before = document(container(
        false,
        Some(&["a", "c", "bb"]),
        &[int(1), container(false, None, &[int(1), int(2), int(3)]), string("s")],
    ));
    const REPLACE: u8 = 0;
    const INSERT: u8 = 1;
    const REMOVE: u8 = 2;
    let table: [(&[Entry], &str); 12] = [
        (&[], r#"{"a":1,"c":[1,2,3],"bb":"s"}"#),
        (&[(REPLACE, "$.a", Some(int(2)))], r#"{"a":2,"c":[1,2,3],"bb":"s"}"#),
        (&[(REMOVE, "$.c[1]", None)], r#"{"a":1,"c":[1,3],"bb":"s"}"#),
        (&[(REMOVE, "$.c", None), (REMOVE, "$.a", None)], r#"{"bb":"s"}"#),
        (&[(INSERT, "$.c[1]", Some(int(9)))], r#"{"a":1,"c":[1,9,2,3],"bb":"s"}"#),
        (&[(REMOVE, "$.c[last]", None)], r#"{"a":1,"c":[1,2],"bb":"s"}"#),
        (&[(REPLACE, "$.c[last-2]", Some(int(9)))], r#"{"a":1,"c":[9,2,3],"bb":"s"}"#),
        (&[(INSERT, "$.c[last-9]", Some(int(9)))], r#"{"a":1,"c":[9,1,2,3],"bb":"s"}"#),
        (&[(INSERT, "$.c[7]", Some(int(9)))], r#"{"a":1,"c":[1,2,3,9],"bb":"s"}"#),
        (&[(INSERT, "$.b", Some(int(9)))], r#"{"a":1,"b":9,"c":[1,2,3],"bb":"s"}"#),
        (
            &[
                (INSERT, r#"$."a.\"b""#, Some(container(false, None, &[]))),
                (INSERT, r#"$."a.\"b"[0]"#, Some(string("in"))),
            ],
            r#"{"a":1,"c":[1,2,3],"bb":"s","a.\"b":["in"]}"#,
        ),
        (&[(REPLACE, "$", Some(string("all")))], "\"all\""),
    ];
    for (list, text) in table {
        let bytes = diffs(list);
        assert_eq!(apply(&before, &bytes).as_deref(), Ok(text));
        for len in 1..bytes.len() {
            // A prefix may end between two diffs.
            let _ = apply(&before, &bytes[..len]);
        }
    }
}

#[test]
fn a_diff_that_does_not_fit_the_document_is_an_error() {
    let int = |int: u8| (5, vec![int, 0]);
    let before = document(container(false, Some(&["a"]), &[int(1)]));
    let table: [Entry; 11] = [
        (0, "$.b", Some(int(1))),
        (0, "$[0]", Some(int(1))),
        (0, "$.a.b", Some(int(1))),
        (1, "$.a", Some(int(1))),
        (1, "$", Some(int(1))),
        (2, "$.b", None),
        (2, "$", None),
        (2, "a", None),
        (2, "$x", None),
        (2, "$[last-x]", None),
        (2, "$[last", None),
    ];
    for entry in table {
        assert!(apply(&before, &diffs(std::slice::from_ref(&entry))).is_err(), "{entry:?}");
    }
    assert!(apply(&before, &[3, 1, b'$']).is_err());
    assert!(apply(&before, &diffs(&[(0, "$.\"a", Some(int(1)))])).is_err());
}

proptest! {
    #[test]
    fn any_bytes_print_or_fail(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = texts(&bytes);
    }

    #[test]
    fn any_container_prints_or_fails_within_bounds(
        kind in 0_u8..4,
        bytes in proptest::collection::vec(prop_oneof![Just(0_u8), 0_u8..16, any::<u8>()], 0..300),
    ) {
        let document = [&[kind][..], &bytes].concat();
        if let Ok([_, text]) = texts(&document) {
            // An opaque decimal takes the most room for its bytes.
            prop_assert!(text.len() <= 16 + document.len() * 140);
        }
    }

    #[test]
    fn any_diffs_apply_or_fail(
        before in proptest::collection::vec(0_u8..16, 0..100),
        bytes in proptest::collection::vec(prop_oneof![0_u8..4, 34_u8..48, any::<u8>()], 0..100),
    ) {
        let _ = apply(&before, &bytes);
    }

    #[test]
    fn any_double_reads_back_from_both_texts(bits: u64) {
        let value = f64::from_bits(bits);
        if value.is_finite() {
            for text in texts(&document(double(value))).unwrap() {
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
            }
        }
    }
}
