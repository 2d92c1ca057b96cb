//! What each type becomes, in each mode. JSON is as Debezium 3.6.3.Final printed it, unless a row says otherwise.

use super::*;
use crate::convert::table::{ColumnSelection, FieldNaming, TableConverter};
use crate::topic::NameAdjustment;
use holdfast_binlog::Value;
use holdfast_binlog::value::{
    Compressed, Date, DateTime, Decimal, JsonBinary, Time, Timestamp, Unscaled,
};
use holdfast_history::schema::{Column, JdbcType};
use holdfast_history::schema::{DefaultValue, Table, TableId};
use proptest::prelude::*;

use Origin::{Snapshot, Stream};

#[test]
fn integers_take_their_sign_from_the_definition() {
    for (type_name, value, json) in [
        ("TINYINT", Value::Int8(0x80), "-128"),
        ("TINYINT UNSIGNED", Value::Int8(0xff), "255"),
        ("TINYINT UNSIGNED ZEROFILL", Value::Int8(7), "7"),
        ("SMALLINT", Value::Int16(0x8000), "-32768"),
        ("SMALLINT UNSIGNED", Value::Int16(0xffff), "65535"),
        ("MEDIUMINT", Value::Int24(0x80_0000), "-8388608"),
        ("MEDIUMINT", Value::Int24(0x7f_ffff), "8388607"),
        ("MEDIUMINT UNSIGNED", Value::Int24(0xff_ffff), "16777215"),
        ("INT", Value::Int32(0x8000_0000), "-2147483648"),
        ("INT UNSIGNED", Value::Int32(0xffff_ffff), "4294967295"),
        ("BIGINT", Value::Int64(1 << 63), "-9223372036854775808"),
        ("BIGINT UNSIGNED", Value::Int64(u64::MAX), "-1"),
        ("SERIAL", Value::Int64(1), "1"),
        ("BOOLEAN", Value::Int8(2), "true"),
        ("BOOL", Value::Int8(0), "false"),
        ("YEAR", Value::Year(255), "2155"),
        ("YEAR", Value::Year(1), "1901"),
    ] {
        check(&column(type_name), value, [json, json]);
    }
    // Debezium: 1900 while streaming, 2000 in a snapshot.
    check(&column("YEAR"), Value::Year(0), ["0"; 2]);
    let options =
        ConversionOptions { bigint_unsigned: BigintUnsignedMode::Precise, ..Default::default() };
    for (value, json) in [(u64::MAX, r#""AP//////////""#), (0, r#""AA==""#), (1, r#""AQ==""#)] {
        assert_eq!(print(&column("BIGINT UNSIGNED"), &options, Value::Int64(value), Stream), json);
    }
}

#[test]
fn floats_keep_their_width() {
    let scaled = Column { length: Some(7), scale: Some(4), ..column("FLOAT") };
    let real = Column { jdbc_type: JdbcType::REAL, ..column("REAL") };
    check(&column("FLOAT"), Value::Float(f32::MAX), ["3.4028235E38", "3.40282E38"]);
    check(&column("FLOAT"), Value::Float(123_456.79), ["123456.79", "123457.0"]);
    check(&column("FLOAT"), Value::Float(0.1), ["0.1", "0.1"]);
    // Debezium: 999.9998779296875 and 0.10000000149011612.
    check(&scaled, Value::Float(999.9999), ["999.9999"; 2]);
    check(&scaled, Value::Float(-0.1), ["-0.1"; 2]);
    check(&scaled, Value::Float(0.0), ["0.0"; 2]);
    check(&scaled, Value::Float(f32::MAX), ["3.4028235E38"; 2]);
    check(&column("DOUBLE"), Value::Double(-1e100), ["-1.0E100"; 2]);
    check(&column("DOUBLE"), Value::Double(1_234_567_890.123_456_7), ["1.2345678901234567E9"; 2]);
    check(&real, Value::Double(-1e-300), ["-0.0"; 2]);
    check(&real, Value::Double(0.1), ["0.1"; 2]);
    // Debezium leaves FLOAT4 out while streaming; here it is a FLOAT.
    check(&column("FLOAT4"), Value::Float(-1.0), ["-1.0"; 2]);
}

#[test]
fn decimals_follow_their_mode() {
    let modes = [DecimalMode::Precise, DecimalMode::String, DecimalMode::Double];
    for (scale, text, json) in [
        (2, "-999.99", [r#""/nlh""#, r#""-999.99""#, "-999.99"]),
        (2, "0.00", [r#""AA==""#, r#""0.00""#, "0.0"]),
        (2, "1.10", [r#""bg==""#, r#""1.10""#, "1.1"]),
        (2, "1.5", [r#""AJY=""#, r#""1.50""#, "1.5"]),
        (0, "-9999999999", [r#""/av0HAE=""#, r#""-9999999999""#, "-9.999999999E9"]),
        (
            30,
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            [
                r#""/wzp2OOAPG91dBC5sca6EIXayfYAAAAAAAAAAQ==""#,
                r#""-99999999999999999999999999999999999.999999999999999999999999999999""#,
                "-1.0E35",
            ],
        ),
    ] {
        let column = Column { length: Some(65), scale: Some(scale), ..column("DECIMAL") };
        for (decimal, json) in modes.iter().zip(json) {
            let options = ConversionOptions { decimal: *decimal, ..Default::default() };
            let value = Value::Decimal(Decimal::Text(text.as_bytes()));
            assert_eq!(print(&column, &options, value, Stream), json);
        }
    }
    let packed = Decimal::Number { unscaled: Unscaled::new(-99_999), scale: 2 };
    for (scale, json) in [(2, r#""/nlh""#), (3, r#""8L3K""#)] {
        let column = Column { length: Some(6), scale: Some(scale), ..column("DECIMAL") };
        check(&column, Value::Decimal(packed), [json, json]);
    }
    let column = Column { scale: Some(2), ..column("DECIMAL") };
    let converter = converter(&column, &ConversionOptions::default());
    let Datum::Decimal(number) = converter.convert(&Value::Decimal(packed), Stream).unwrap() else {
        panic!()
    };
    assert_eq!(
        (number.to_i128(), number.scale(), number.unscaled_be()),
        (Some(-99_999), 2, &[0xfe, 0x79, 0x61][..])
    );
}

#[test]
fn bits_are_a_boolean_or_bytes_least_significant_first() {
    for (length, bytes, json) in [
        (None, &[1][..], "true"),
        (Some(1), &[0], "false"),
        (Some(2), &[2], r#""Ag==""#),
        (Some(17), &[0, 1, 2], r#""AgEA""#),
        (Some(64), &[1, 2, 3, 4, 5, 6, 7, 8], r#""CAcGBQQDAgE=""#),
    ] {
        check(&Column { length, ..column("BIT") }, Value::Bit(bytes), [json, json]);
    }
    let wide =
        converter(&Column { length: Some(64), ..column("BIT") }, &ConversionOptions::default());
    let error = wide.convert(&Value::Bit(&[0; 9]), Stream).unwrap_err();
    assert_eq!(error.failure(), ConvertFailure::Malformed);
}

#[test]
fn text_is_decoded_while_streaming_and_utf8_in_a_snapshot() {
    let text = |charset: &str| Column { charset: Some(charset.to_owned()), ..column("VARCHAR") };
    assert_eq!(print_default(&text("latin1"), Value::Bytes(b"caf\xe9"), Stream), r#""café""#);
    assert_eq!(
        print_default(&text("latin1"), Value::Bytes("café".as_bytes()), Snapshot),
        r#""café""#
    );
    assert_eq!(
        print_default(&text("utf8mb4"), Value::Bytes(b"q\"\xff\n"), Stream),
        "\"q\\\"\u{fffd}\\n\""
    );
    check(&text("binary"), Value::Bytes(b"a\x00\xff"), ["\"a\\u0000ÿ\""; 2]);
    check(&column("CHAR BYTE"), Value::Bytes(b"c\xe9"), [r#""cé""#; 2]);
    let mut warnings = Vec::new();
    let odd = text("klingon");
    let converter = ColumnConverter::new(0, &odd, &ConversionOptions::default(), &mut warnings);
    assert_eq!(
        converter.convert(&Value::Bytes("é".as_bytes()), Stream).unwrap(),
        Datum::Text("é".into())
    );
    assert_eq!(
        warnings,
        [Warning::UnknownCharset { column: "c".to_owned(), charset: "klingon".to_owned() }]
    );
}

#[test]
fn binary_follows_its_mode_and_is_filled_up() {
    let modes = [BinaryMode::Bytes, BinaryMode::Base64, BinaryMode::Base64UrlSafe, BinaryMode::Hex];
    let fixed = Column { length: Some(4), ..column("BINARY") };
    for (column, bytes, json) in [
        (&fixed, &[1][..], ["AQAAAA==", "AQAAAA==", "AQAAAA==", "01000000"]),
        (&column("BINARY"), &[], ["", "", "", ""]),
        (&column("VARBINARY"), &[0xff; 4], ["/////w==", "/////w==", "_____w==", "ffffffff"]),
        (
            &column("MEDIUMBLOB"),
            &[0xde, 0xad, 0xbe, 0xef],
            ["3q2+7w==", "3q2+7w==", "3q2-7w==", "deadbeef"],
        ),
        (&column("LONG VARBINARY"), b"b", ["Yg==", "Yg==", "Yg==", "62"]),
    ] {
        for (binary, json) in modes.iter().zip(json) {
            let options = ConversionOptions { binary: *binary, ..Default::default() };
            assert_eq!(print(column, &options, Value::Bytes(bytes), Stream), format!("\"{json}\""));
            if *binary != BinaryMode::Bytes {
                let converter = converter(column, &options);
                assert_eq!(
                    converter.convert(&Value::Bytes(bytes), Stream).unwrap(),
                    Datum::Text(json.into())
                );
            }
        }
    }
    let converter = converter(&fixed, &ConversionOptions::default());
    let datum = converter.convert(&Value::Bytes(&[1]), Stream).unwrap();
    assert_eq!(datum, Datum::Bytes(vec![1, 0, 0, 0].into()));
}

/// The columns and rows of one table in each mode, in the order adaptive, connect, isostring, microseconds,
/// nanoseconds; an empty text is a value that does not convert.
#[test]
fn times_follow_the_precision_mode() {
    const MODES: [TimePrecisionMode; 5] = [
        TimePrecisionMode::AdaptiveTimeMicroseconds,
        TimePrecisionMode::Connect,
        TimePrecisionMode::IsoString,
        TimePrecisionMode::Microseconds,
        TimePrecisionMode::Nanoseconds,
    ];
    let of = |type_name: &str, length| Column { length: Some(length), ..column(type_name) };
    let rows: [(Column, Value<'static>, [&str; 5]); 14] = [
        (
            of("DATE", 0),
            date(2024, 2, 29),
            ["19782", "19782", r#""2024-02-29Z""#, "19782", "19782"],
        ),
        (
            of("DATE", 0),
            date(1000, 1, 1),
            ["-354285", "-354285", r#""1000-01-01Z""#, "-354285", "-354285"],
        ),
        (
            of("TIME", 3),
            time(45_296_789_000),
            ["45296789000", "45296789", r#""12:34:56.789Z""#, "45296789000", "45296789000000"],
        ),
        (
            of("TIME", 6),
            time(45_296_789_123),
            ["45296789123", "45296789", r#""12:34:56.789123Z""#, "45296789123", "45296789123000"],
        ),
        (
            of("TIME", 0),
            time(86_400_000_000),
            ["86400000000", "86400000", r#""00:00:00Z""#, "86400000000", "86400000000000"],
        ),
        (of("TIME", 3), time(-1_000_000), ["-1000000", "", "", "-1000000", "-1000000000"]),
        (
            of("TIME", 6),
            time(90_000_000_000),
            ["90000000000", "", "", "90000000000", "90000000000000"],
        ),
        (
            of("DATETIME", 0),
            datetime(2024, 2, 29, 0),
            [
                "1709210096000",
                "1709210096000",
                r#""2024-02-29T12:34:56Z""#,
                "1709210096000000",
                "1709210096000000000",
            ],
        ),
        (
            of("DATETIME", 6),
            datetime(2024, 2, 29, 789_123),
            [
                "1709210096789123",
                "1709210096789",
                r#""2024-02-29T12:34:56.789123Z""#,
                "1709210096789123",
                "1709210096789123000",
            ],
        ),
        (
            of("DATETIME", 4),
            datetime(1582, 10, 14, 0),
            [
                "-12219333904000000",
                "-12219333904000",
                r#""1582-10-14T12:34:56Z""#,
                "-12219333904000000",
                "",
            ],
        ),
        (
            of("DATETIME", 3),
            Value::DateTime(DateTime {
                date: Date { year: 1969, month: 12, day: 31 },
                hour: 23,
                minute: 59,
                second: 59,
                fsp: 6,
                micro: 999_999,
            }),
            ["-1", "-1", r#""1969-12-31T23:59:59.999999Z""#, "-1", "-1000"],
        ),
        (
            of("TIMESTAMP", 6),
            timestamp(1_709_210_096, 700_000),
            [r#""2024-02-29T12:34:56.700000Z""#; 5],
        ),
        (of("TIMESTAMP", 0), timestamp(1, 0), [r#""1970-01-01T00:00:01Z""#; 5]),
        (of("TIMESTAMP", 3), timestamp(u32::MAX, 0), [r#""2106-02-07T06:28:15.000Z""#; 5]),
    ];
    for (column, value, expected) in rows {
        for (time_precision, expected) in MODES.iter().zip(expected) {
            let options =
                ConversionOptions { time_precision: *time_precision, ..Default::default() };
            let mut out = Vec::new();
            let converted = converter(&column, &options).write_json(&value, Stream, &mut out);
            let printed = String::from_utf8(out).unwrap();
            assert_eq!(
                (converted.is_ok(), printed.as_str()),
                (!expected.is_empty(), expected),
                "{} {time_precision:?}",
                column.type_name
            );
        }
    }
    check(
        &of("TIMESTAMP", 6),
        timestamp(1_709_210_096, 700_000),
        ["\"2024-02-29T12:34:56.700000Z\"", "\"2024-02-29T12:34:56.7Z\""],
    );
}

#[test]
fn years_below_100_are_adjusted_unless_told_otherwise() {
    let off = ConversionOptions { time_adjuster: false, ..Default::default() };
    for (value, adjusted, plain) in [
        (date(1, 1, 1), "11323", "-719162"),
        (date(69, 5, 6), "36285", "-694200"),
        (date(70, 1, 1), "0", "-693960"),
        (date(100, 1, 1), "-683003", "-683003"),
        // The year 96 is a leap year, and so is 1996.
        (date(96, 2, 29), "9555", "-684405"),
    ] {
        assert_eq!(print_default(&column("DATE"), value, Stream), adjusted);
        assert_eq!(print(&column("DATE"), &off, value, Stream), plain);
    }
}

#[test]
fn zero_dates_are_null_or_what_stands_for_it() {
    for (type_name, value, fallback) in [
        ("DATE", date(0, 0, 0), "0"),
        ("DATE", date(2024, 0, 0), "0"),
        ("DATE", date(2024, 2, 0), "0"),
        ("DATETIME", datetime(2024, 1, 0, 0), "0"),
        ("DATETIME", datetime(0, 0, 0, 0), "0"),
        ("TIMESTAMP", timestamp(0, 0), "\"1970-01-01T00:00:00Z\""),
    ] {
        check(&column(type_name), value, ["null"; 2]);
        check(&Column { optional: false, ..column(type_name) }, value, [fallback; 2]);
    }
    // A zero year is a year. Debezium: null while streaming.
    check(&column("DATE"), date(0, 2, 29), ["11016"; 2]);
    let off = ConversionOptions { time_adjuster: false, ..Default::default() };
    for origin in [Stream, Snapshot] {
        assert_eq!(print(&column("DATE"), &off, date(0, 1, 1), origin), "-719528");
    }
}

#[test]
fn values_are_the_same_when_they_convert_to_the_same() {
    let options = ConversionOptions::default();
    let (zero, null) = (timestamp(0, 0), Value::Null);
    let nullable = converter(&column("TIMESTAMP"), &options);
    assert!(nullable.is_same(Some(&null), Some(&zero)));
    assert!(!nullable.is_same(Some(&null), Some(&timestamp(1, 0))));
    let number = converter(&column("INT"), &options);
    assert!(number.is_same(Some(&Value::Int32(7)), Some(&Value::Int32(7))));
    assert!(!number.is_same(Some(&Value::Int32(7)), Some(&Value::Int32(8))));
    // Printed as its default, a NULL is another value all the same.
    let with_default =
        Column { default: DefaultValue::Expression("7".to_owned()), ..column("INT") };
    let with_default = converter(&with_default, &options);
    assert!(!with_default.is_same(Some(&null), Some(&Value::Int32(7))));
    let float = converter(&column("DOUBLE"), &options);
    assert!(!float.is_same(Some(&Value::Double(0.0)), Some(&Value::Double(1.0))));
}

#[test]
fn dates_that_do_not_exist_are_an_error_or_the_epoch() {
    let converter_of = |processing_failure, type_name: &str| {
        converter(
            &column(type_name),
            &ConversionOptions { processing_failure, ..Default::default() },
        )
    };
    for (type_name, value) in
        [("DATE", date(2024, 2, 30)), ("DATETIME", datetime(2023, 2, 29, 500_000))]
    {
        let error = converter_of(FailureMode::Fail, type_name).convert(&value, Stream).unwrap_err();
        assert_eq!(error.failure(), ConvertFailure::InvalidDate);
        let converter = converter_of(FailureMode::Skip, type_name);
        assert_eq!(converter.convert(&value, Stream).unwrap(), Datum::Int(0));
    }
}

#[test]
fn labels_are_those_of_the_definition() {
    let labels = ["'a'", "'c,d'", "'it''s'", r"'back\\slash'"].map(str::to_owned).to_vec();
    let enumeration = Column { enum_values: labels.clone(), ..column("ENUM") };
    let set = Column { enum_values: labels, ..column("SET") };
    for (value, json) in [
        (0, [r#""""#; 2]),
        (1, [r#""a""#; 2]),
        // Debezium, while streaming: "c\\,d" and "back\\\\slash".
        (2, [r#""c,d""#; 2]),
        (3, [r#""it's""#; 2]),
        (4, [r#""back\\slash""#; 2]),
    ] {
        check(&enumeration, Value::Enum(value), json);
    }
    let error = converter(&enumeration, &ConversionOptions::default())
        .convert(&Value::Enum(5), Stream)
        .unwrap_err();
    assert_eq!(error.failure(), ConvertFailure::UnknownLabel { index: 5 });
    check(&set, Value::Set(0), [r#""""#; 2]);
    check(&set, Value::Set(0b1101), [r#""a,it's,back\\slash""#; 2]);
    // A bit that has no label is left out.
    check(&set, Value::Set(1 << 63 | 1), [r#""a""#; 2]);
    check(&set, Value::Bytes(b"a,it's"), [r#""a,it's""#; 2]);
}

#[test]
fn geometries_and_vectors_are_structs_and_arrays() {
    let point =
        [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0x40];
    let mut with_srid = point;
    with_srid[..2].copy_from_slice(&[0xe6, 0x10]);
    let wkb = "AQEAAAAAAAAAAADwPwAAAAAAAABA";
    let json = format!(r#"{{"x":1.0,"y":2.0,"wkb":"{wkb}","srid":null}}"#);
    check(&column("POINT"), Value::Geometry(&point), [&json, &json]);
    let json = format!(r#"{{"wkb":"{wkb}","srid":4326}}"#);
    check(&column("GEOMETRY"), Value::Geometry(&with_srid), [&json, &json]);
    // Debezium 3.6.3.Final: the struct of a geometry is optional in a column that is not, that of a point is not.
    for (type_name, optional) in [("GEOMETRY", true), ("POLYGON", true), ("POINT", false)] {
        let required = Column { optional: false, ..column(type_name) };
        let schema = converter(&required, &ConversionOptions::default()).schema().clone();
        assert_eq!(schema.optional, optional, "{type_name}");
    }
    for short in [&point[..3], &point[..24]] {
        let error = converter(&column("POINT"), &ConversionOptions::default());
        let error = error.convert(&Value::Geometry(short), Stream).unwrap_err();
        assert_eq!(error.failure(), ConvertFailure::Malformed);
    }
    let vector: Vec<u8> =
        [1.5_f32, -2.0, 3.25].iter().flat_map(|item| item.to_le_bytes()).collect();
    check(&column("VECTOR"), Value::Vector(&vector), ["[1.5,-2.0,3.25]"; 2]);
}

#[test]
fn identifiers_and_addresses_have_their_canonical_text() {
    let uuid = [0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x55, 0x44];
    for (type_name, bytes, text) in [
        // The server cuts off zero bytes at the end; Debezium puts them at the start.
        ("UUID", &uuid[..], "123e4567-e89b-12d3-a456-426655440000"),
        ("INET4", &[127, 0, 0, 1], "127.0.0.1"),
        ("INET4", &[10], "10.0.0.0"),
        ("INET6", &[0x20, 1, 0x0d, 0xb8], "2001:db8::"),
    ] {
        let json = format!("\"{text}\"");
        assert_eq!(print_default(&column(type_name), Value::Bytes(bytes), Stream), json);
        assert_eq!(
            print_default(&column(type_name), Value::Bytes(text.as_bytes()), Snapshot),
            json
        );
    }
}

#[test]
fn json_text_of_the_server_stays_as_it_is() {
    let text = br#"{"a": 1}"#;
    check(&column("JSON"), Value::JsonText(text), [r#""{\"a\": 1}""#; 2]);
    check(&column("JSON"), Value::Bytes(text), [r#""{\"a\": 1}""#; 2]);
    check(&column("JSON"), Value::Json(JsonBinary(&[])), ["null"; 2]);
    check(
        &Column { optional: false, ..column("JSON") },
        Value::Json(JsonBinary(&[])),
        [r#""{}""#; 2],
    );
}

#[test]
fn binary_json_and_compressed_values_are_opened() {
    check(&column("JSON"), Value::Json(JsonBinary(&[4, 1])), [r#""true""#; 2]);
    check(
        &column("JSON"),
        Value::Json(JsonBinary(&[0x0c, 2, b'"', b'\n'])),
        [r#""\"\\\"\\n\"""#; 2],
    );
    check(&column("TEXT"), Value::Compressed(Compressed(&[0, b'a', b'"'])), [r#""a\"""#; 2]);
    let text = converter(&column("TEXT"), &ConversionOptions::default());
    let datum = text.convert(&Value::Compressed(Compressed(&[0, b'a'])), Stream).unwrap();
    assert_eq!(datum, Datum::Text("a".into()));
    for value in [Value::Json(JsonBinary(&[0xee])), Value::Compressed(Compressed(&[0xff]))] {
        for column in [column("JSON"), column("TEXT")] {
            let mut out = b"x".to_vec();
            let json = converter(&column, &ConversionOptions::default());
            assert!(json.write_json(&value, Stream, &mut out).is_err());
            assert_eq!(out, b"x");
        }
    }
}

#[test]
fn null_in_a_column_without_null_is_what_stands_for_it() {
    for (column, json) in [
        (column("INT"), "0"),
        (column("BOOLEAN"), "false"),
        (column("DOUBLE"), "0.0"),
        (Column { scale: Some(2), ..column("DECIMAL") }, r#""AA==""#),
        (column("BIT"), "false"),
        (Column { length: Some(9), ..column("BIT") }, r#""""#),
        (column("VARCHAR"), r#""""#),
        (column("BLOB"), r#""AA==""#),
        (column("TIME"), "0"),
        (column("TIMESTAMP"), r#""1970-01-01T00:00:00Z""#),
        (column("YEAR"), "0"),
        (column("ENUM"), r#""""#),
        (column("JSON"), r#""{}""#),
        (column("GEOMETRY"), r#"{"wkb":"AQcAAAAAAAAA","srid":null}"#),
        (column("VECTOR"), "[]"),
    ] {
        check(&column, Value::Null, ["null"; 2]);
        check(&Column { optional: false, ..column }, Value::Null, [json; 2]);
    }
}

#[test]
fn defaults_are_converted_as_values_are() {
    let sized = |type_name: &str, length, scale| Column { length, scale, ..column(type_name) };
    let zoned = sized("TIMESTAMP", Some(6), None);
    for (column, expression, json) in [
        (column("TINYINT"), "TRUE", Some("1")),
        (column("TINYINT"), "1.6", Some("2")),
        (column("BOOLEAN"), "FALSE", Some("false")),
        (column("INT UNSIGNED ZEROFILL"), "007", Some("7")),
        (column("BIGINT UNSIGNED"), "18446744073709551615", Some("9223372036854775807")),
        (sized("DECIMAL", Some(10), Some(3)), "1.25", Some(r#""BOI=""#)),
        (column("FLOAT"), "1.5", Some("1.5")),
        (column("DOUBLE"), "1e3", Some("1000.0")),
        (column("BIT"), "1", Some("true")),
        (sized("BIT", Some(10), None), "1000000001", Some(r#""AQI=""#)),
        (column("DATE"), "2024-02-29", Some("19782")),
        (column("DATE"), "0000-00-00", None),
        (column("TIME"), "12:34:56", Some("45296000000")),
        (column("TIME"), "1:02", Some("3720000000")),
        (sized("TIME", Some(3), None), "-01:02:03.456", Some("-3723456000")),
        (column("DATETIME"), "2024-02-29 12:34:56", Some("1709210096000")),
        (sized("DATETIME", Some(6), None), "2024-02-29 12:34:56.789123", Some("1709210096789123")),
        // What the model has for CURRENT_TIMESTAMP.
        (column("DATETIME"), "1970-01-01 00:00:00", Some("0")),
        (column("TIMESTAMP"), "1970-01-01 00:00:00", None),
        (zoned.clone(), "2024-02-29 12:34:56.789", Some(r#""2024-02-29T12:34:56.789000Z""#)),
        (column("YEAR"), "2024", Some("2024")),
        (column("YEAR"), "0", Some("2000")),
        (column("YEAR"), "0000", Some("0")),
        (Column { scale: Some(4), ..column("FLOAT") }, "123.4567", Some("123.4567")),
        (column("VARCHAR"), "  sp  ", Some(r#""  sp  ""#)),
        (column("VARCHAR"), "_utf8mb4'intro'", Some(r#""intro""#)),
        (column("VARCHAR"), r"it's \ y", Some(r#""it's \\ y""#)),
        (column("VARCHAR"), "_x'y'", Some(r#""_x'y'""#)),
        (sized("BINARY", Some(3), None), "ab", Some(r#""YWI=""#)),
        (column("SET"), "a,b", Some(r#""a,b""#)),
    ] {
        let column = Column { default: DefaultValue::Expression(expression.to_owned()), ..column };
        check(&column, Value::Null, [json.unwrap_or("null"); 2]);
        let kept = JsonForm { replace_null_with_default: false, ..JsonForm::default() };
        let plain = ConversionOptions { value_json: kept, ..Default::default() };
        assert_eq!(print(&column, &plain, Value::Null, Stream), "null");
        let converter = converter(&column, &plain);
        assert_eq!(converter.default().is_some(), json.is_some());
        assert_eq!(converter.convert(&Value::Null, Stream).unwrap(), Datum::Null);
    }
    let required = |expression: &str, column| Column {
        optional: false,
        default: DefaultValue::Expression(expression.to_owned()),
        ..column
    };
    check(&required("0000-00-00", column("DATE")), Value::Null, ["0"; 2]);
    check(&required("1970-01-01 00:00:00", zoned), Value::Null, [r#""1970-01-01T00:00:00Z""#; 2]);
    check(&required("5", column("INT")), Value::Null, ["5"; 2]);
    let odd = Column { default: DefaultValue::Expression("20200102".to_owned()), ..column("DATE") };
    let mut warnings = Vec::new();
    let converter = ColumnConverter::new(0, &odd, &ConversionOptions::default(), &mut warnings);
    assert_eq!(
        warnings,
        [Warning::UnusableDefault { column: "c".to_owned(), type_name: "DATE".to_owned() }]
    );
    assert_eq!(converter.default(), None);
}

#[test]
fn rows_and_keys_are_objects_in_their_own_order() {
    let table = table([
        Column { name: "b".to_owned(), optional: false, ..column("INT") },
        Column { name: "odd \"name\"".to_owned(), ..column("VARCHAR") },
        Column { name: "what".to_owned(), ..column("HYPERCUBE") },
        Column { name: "a".to_owned(), optional: false, ..column("INT") },
    ]);
    let values = [Value::Int32(1), Value::Null, Value::Null, Value::Int32(2)];
    let image = |index: usize| values.get(index);
    let options = ConversionOptions::default();
    let (converter, warnings) =
        TableConverter::new(&table, &options, &ColumnSelection::all(&table));
    let unknown =
        Warning::UnknownType { column: "what".to_owned(), type_name: "HYPERCUBE".to_owned() };
    assert_eq!(warnings, [unknown]);
    let mut out = b"x".to_vec();
    converter.write_row(image, Stream, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"x{"b":1,"odd \"name\"":null,"a":2}"#);
    let mut out = Vec::new();
    assert!(converter.write_key(image, Stream, &mut out).unwrap());
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":2,"b":1}"#);
    let nothing = ColumnSelection::default();
    let (converter, _) = TableConverter::new(&table, &options, &nothing);
    let mut out = Vec::new();
    assert!(!converter.write_key(image, Stream, &mut out).unwrap());
    converter.write_row(image, Stream, &mut out).unwrap();
    assert_eq!(out, b"{}");
}

/// Rows F16, F17 and F21 of the observed naming cases.
#[test]
fn fields_are_named_as_told() {
    let table = table([
        Column { name: "a".to_owned(), ..column("INT") },
        Column { name: "1é".to_owned(), ..column("INT") },
    ]);
    let all = ColumnSelection::all(&table);
    for (adjustment, json) in [
        (NameAdjustment::None, r#"{"a":null,"1é":null}"#),
        (NameAdjustment::Avro, r#"{"a":null,"_1_":null}"#),
        (NameAdjustment::AvroUnicode, r#"{"a":null,"_u0031_u00e9":null}"#),
    ] {
        let naming =
            FieldNaming { adjustment, key_field: Some(("shard".to_owned(), "t\"1".to_owned())) };
        let (converter, _) =
            TableConverter::with_naming(&table, &ConversionOptions::default(), &all, &naming);
        let mut out = Vec::new();
        converter.write_row(|_| None, Stream, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), json);
        let mut out = Vec::new();
        assert!(converter.write_key(|_| None, Stream, &mut out).unwrap());
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":null,"shard":"t\"1"}"#);
    }
}

#[test]
fn schemas_say_what_values_mean() {
    let labels = ["'a'", "'c,d'"].map(str::to_owned).to_vec();
    for (column, json) in [
        (column("TINYINT UNSIGNED"), r#"{"type":"int16","optional":true,"field":"f"}"#),
        (
            Column { length: Some(5), scale: Some(2), optional: false, ..column("DECIMAL") },
            concat!(
                r#"{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,"#,
                r#""parameters":{"scale":"2","connect.decimal.precision":"5"},"field":"f"}"#
            ),
        ),
        (
            Column { default: DefaultValue::Expression("2024".to_owned()), ..column("YEAR") },
            r#"{"type":"int32","optional":true,"name":"io.debezium.time.Year","version":1,"default":2024,"field":"f"}"#,
        ),
        (
            Column { enum_values: labels, comment: Some("why".to_owned()), ..column("ENUM") },
            concat!(
                r#"{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"doc":"why","#,
                r#""parameters":{"allowed":"a,c\\,d"},"field":"f"}"#
            ),
        ),
        (
            column("VECTOR"),
            concat!(
                r#"{"type":"array","items":{"type":"float","optional":false},"optional":true,"#,
                r#""name":"io.debezium.data.FloatVector","version":1,"field":"f"}"#
            ),
        ),
    ] {
        let mut out = Vec::new();
        converter(&column, &ConversionOptions::default()).schema().write("f", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), json);
    }
}

#[test]
fn a_value_that_does_not_convert_is_left_out_or_an_error() {
    let late = time(90_000_000_000);
    let required = Column { optional: false, ..column("TIME") };
    let with_default =
        Column { default: DefaultValue::Expression("01:00".to_owned()), ..required.clone() };
    for (failure, column, json) in [
        (FailureMode::Warn, column("TIME"), Some(r#"{"c":null}"#)),
        (FailureMode::Skip, column("TIME"), Some(r#"{"c":null}"#)),
        (FailureMode::Fail, column("TIME"), None),
        (FailureMode::Warn, required, None),
        (FailureMode::Warn, with_default, Some(r#"{"c":3600000}"#)),
    ] {
        let options = ConversionOptions {
            time_precision: TimePrecisionMode::Connect,
            converting_failure: failure,
            ..Default::default()
        };
        let table = table([column]);
        let (converter, _) = TableConverter::new(&table, &options, &ColumnSelection::all(&table));
        let mut out = Vec::new();
        let result = converter.write_row(|_| Some(&late), Stream, &mut out);
        match json {
            Some(json) => assert_eq!(String::from_utf8(out).unwrap(), json),
            None => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.column(), error.name(), error.failure()),
                    (0, "c", ConvertFailure::OutOfRange)
                );
                let text = "column 0 `c` of type Time does not convert to a time from 00:00:00 to 24:00:00: \
                            value out of range of what the column becomes";
                assert_eq!(error.to_string(), text);
                assert!(out.is_empty());
            }
        }
    }
}

const TYPES: [&str; 34] = [
    "TINYINT",
    "BOOLEAN",
    "INT UNSIGNED",
    "BIGINT",
    "BIGINT UNSIGNED",
    "FLOAT",
    "DOUBLE",
    "REAL",
    "DECIMAL",
    "BIT",
    "CHAR",
    "VARCHAR",
    "TEXT",
    "BINARY",
    "VARBINARY",
    "BLOB",
    "DATE",
    "TIME",
    "DATETIME",
    "TIMESTAMP",
    "YEAR",
    "ENUM",
    "SET",
    "JSON",
    "GEOMETRY",
    "POINT",
    "VECTOR",
    "UUID",
    "INET4",
    "INET6",
    "CHAR BYTE",
    "SERIAL",
    "NCHAR",
    "MYSTERY",
];

proptest! {
    /// Whatever a column is and whatever comes: JSON, or an error and nothing.
    #[test]
    fn any_value_in_any_column_gives_json_or_an_error(
        type_name in proptest::sample::select(&TYPES[..]),
        length in proptest::option::of(-1_i32..80),
        charset in proptest::option::of(proptest::sample::select(
            &["utf8mb4", "latin1", "utf16", "utf32", "sjis", "gb18030", "ascii", "binary", "none"][..],
        )),
        default in proptest::option::of("[-+0-9a-z:. '\\\\]{0,24}|[0-9]{0,30}(\\.[0-9]{0,5})?(e[0-9]{1,9})?"),
        optional in any::<bool>(),
        modes in any::<[u8; 4]>(),
        kind in 0..22_u8,
        bits in any::<u64>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..48),
    ) {
        let column = Column {
            length,
            scale: length.map(|length| length / 2),
            charset: charset.map(str::to_owned),
            optional,
            default: default.map_or(DefaultValue::Absent, DefaultValue::Expression),
            enum_values: vec!["'a'".to_owned(), "broken".to_owned(), "'".to_owned()],
            ..column(type_name)
        };
        let table = table([column]);
        let (converter, _) = TableConverter::new(&table, &any_options(modes), &ColumnSelection::all(&table));
        let value = any_value(kind, bits, &bytes);
        for origin in [Stream, Snapshot] {
            let mut out = Vec::new();
            match converter.write_row(|_| Some(&value), origin, &mut out) {
                Ok(()) => {
                    serde_json::from_slice::<serde_json::Value>(&out).unwrap();
                }
                Err(_) => prop_assert!(out.is_empty()),
            }
            for column in converter.value_columns() {
                let mut out = Vec::new();
                let printed = column.write_json(&value, origin, &mut out).is_ok();
                prop_assert_eq!(printed, column.convert(&value, origin).is_ok());
            }
        }
    }
}

fn any_options(modes: [u8; 4]) -> ConversionOptions {
    ConversionOptions {
        decimal: [DecimalMode::Precise, DecimalMode::String, DecimalMode::Double]
            [usize::from(modes[0] % 3)],
        bigint_unsigned: [BigintUnsignedMode::Long, BigintUnsignedMode::Precise]
            [usize::from(modes[0] / 3 % 2)],
        binary: [BinaryMode::Bytes, BinaryMode::Base64, BinaryMode::Base64UrlSafe, BinaryMode::Hex]
            [usize::from(modes[1] % 4)],
        time_precision: [
            TimePrecisionMode::AdaptiveTimeMicroseconds,
            TimePrecisionMode::Connect,
            TimePrecisionMode::IsoString,
            TimePrecisionMode::Microseconds,
            TimePrecisionMode::Nanoseconds,
        ][usize::from(modes[2] % 5)],
        processing_failure: [FailureMode::Fail, FailureMode::Skip][usize::from(modes[3] % 2)],
        converting_failure: [FailureMode::Fail, FailureMode::Skip][usize::from(modes[3] / 2 % 2)],
        value_json: JsonForm {
            replace_null_with_default: modes[3] & 4 == 0,
            numeric_decimals: modes[3] & 8 != 0,
        },
        ..Default::default()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "any bits will do")]
fn any_value(kind: u8, bits: u64, bytes: &[u8]) -> Value<'_> {
    match kind {
        0 => Value::Null,
        1 => Value::Int8(bits as u8),
        2 => Value::Int16(bits as u16),
        3 => Value::Int24(bits as u32),
        4 => Value::Int32(bits as u32),
        5 => Value::Int64(bits),
        6 => Value::Float(f32::from_bits(bits as u32)),
        7 => Value::Double(f64::from_bits(bits)),
        8 => Value::Decimal(Decimal::Text(bytes)),
        9 => Value::Bit(bytes),
        10 => Value::Year(bits as u8),
        11 => Value::Date(Date {
            year: bits as u16,
            month: (bits >> 16) as u8 % 16,
            day: (bits >> 24) as u8 % 34,
        }),
        12 => Value::Time(Time { micros: bits as i64, fsp: 6 }),
        13 => Value::DateTime(DateTime {
            date: Date {
                year: bits as u16,
                month: (bits >> 16) as u8 % 16,
                day: (bits >> 20) as u8 % 34,
            },
            hour: (bits >> 28) as u8,
            minute: (bits >> 36) as u8,
            second: (bits >> 44) as u8,
            fsp: 6,
            micro: (bits >> 40) as u32,
        }),
        14 => {
            Value::Timestamp(Timestamp { seconds: bits as u32, micro: (bits >> 32) as u32, fsp: 6 })
        }
        15 => Value::Bytes(bytes),
        16 => Value::Enum(bits as u16 % 6),
        17 => Value::Set(bits),
        18 => Value::Json(JsonBinary(bytes)),
        19 => Value::JsonText(bytes),
        20 => Value::Geometry(bytes),
        _ => Value::Vector(bytes),
    }
}

/// A nullable column without a length, a character set or a default.
pub(crate) fn column(type_name: &str) -> Column {
    Column::new("c", type_name, JdbcType::OTHER)
}

pub(crate) fn table<const N: usize>(columns: [Column; N]) -> Table {
    Table {
        id: TableId::new("d", "t"),
        columns: columns.into(),
        primary_key: vec!["a".to_owned(), "b".to_owned()],
        default_charset: None,
        comment: None,
    }
}

fn date(year: u16, month: u8, day: u8) -> Value<'static> {
    Value::Date(Date { year, month, day })
}

fn datetime(year: u16, month: u8, day: u8, micro: u32) -> Value<'static> {
    Value::DateTime(DateTime {
        date: Date { year, month, day },
        hour: 12,
        minute: 34,
        second: 56,
        fsp: 6,
        micro,
    })
}

fn time(micros: i64) -> Value<'static> {
    Value::Time(Time { micros, fsp: 6 })
}

fn timestamp(seconds: u32, micro: u32) -> Value<'static> {
    Value::Timestamp(Timestamp { seconds, micro, fsp: 6 })
}

fn converter(column: &Column, options: &ConversionOptions) -> ColumnConverter {
    ColumnConverter::new(0, column, options, &mut Vec::new())
}

fn print(column: &Column, options: &ConversionOptions, value: Value<'_>, origin: Origin) -> String {
    let mut out = Vec::new();
    converter(column, options).write_json(&value, origin, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn print_default(column: &Column, value: Value<'_>, origin: Origin) -> String {
    print(column, &ConversionOptions::default(), value, origin)
}

/// What a value is printed as while streaming and in a snapshot, with the default options.
#[track_caller]
fn check(column: &Column, value: Value<'_>, [streamed, read]: [&str; 2]) {
    assert_eq!(print_default(column, value, Stream), streamed, "{} streamed", column.type_name);
    assert_eq!(print_default(column, value, Snapshot), read, "{} in a snapshot", column.type_name);
}
