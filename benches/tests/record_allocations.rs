//! What printing a record allocates: nothing beyond its buffer, whatever the types of its columns, with schemas or without.
//!
//! Counted on the second of two rows, printed into a buffer that the first has let grow.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use holdfast_benches::corpus::wire::Json;
use holdfast_binlog::Value;
use holdfast_binlog::value::{Date, DateTime, Decimal, JsonBinary, Time, Timestamp};
use holdfast_connector::convert::{Origin, TableConverter};
use holdfast_connector::format::connect_schema::TableSchemas;
use holdfast_connector::format::debezium_json::{self, EnvelopeEnd, Op, SourceInfo};
use holdfast_connector::testkit;
use holdfast_history::schema::{Column, JdbcType};
use holdfast_history::{Table, TableId};

/// 38 digits before the point, 2 after it: more than 128 bits hold.
const LONG_DECIMAL: [u8; 18] = [
    0xe3, 0x3b, 0x9a, 0xc9, 0xff, 0x3b, 0x9a, 0xc9, 0xff, 0x3b, 0x9a, 0xc9, 0xff, 0x3b, 0x9a, 0xc9,
    0xff, 99,
];

/// A decimal with two digits after the point, as rows events have it.
const fn packed(bytes: &[u8], precision: u8) -> Value<'_> {
    Value::Decimal(Decimal::Packed { bytes, precision, scale: 2 })
}

/// The types, each with a value.
fn columns(json: &[u8]) -> Vec<(Column, Value<'_>)> {
    let date = Date { year: 2024, month: 2, day: 29 };
    let datetime = DateTime { date, hour: 12, minute: 34, second: 56, fsp: 6, micro: 789_123 };
    let of =
        |type_name: &str, length: Option<i32>, scale: Option<i32>, charset: Option<&str>| Column {
            length,
            scale,
            charset: charset.map(ToOwned::to_owned),
            ..Column::new(type_name, type_name, JdbcType::from_type_name(type_name))
        };
    let plain = |type_name: &str| of(type_name, None, None, None);
    let text = |type_name: &str, charset: &str| of(type_name, Some(20), None, Some(charset));
    let labels = |type_name: &str| Column {
        enum_values: ["'a'", "'b \"quoted\"'"].map(str::to_owned).into(),
        ..text(type_name, "utf8mb4")
    };
    let mut point = vec![0, 0, 0, 0, 1, 1, 0, 0, 0];
    point.extend_from_slice(&1.5_f64.to_le_bytes());
    point.extend_from_slice(&2.5_f64.to_le_bytes());
    let point: &'static [u8] = Box::leak(point.into());
    let mut columns = vec![
        (plain("TINYINT"), Value::Int8(1)),
        (plain("SMALLINT UNSIGNED"), Value::Int16(65_535)),
        (plain("INT"), Value::Int32(7)),
        (plain("BIGINT UNSIGNED"), Value::Int64(u64::MAX)),
        (plain("BOOLEAN"), Value::Int8(1)),
        (plain("FLOAT"), Value::Float(1.1)),
        (of("FLOAT", Some(7), Some(4), None), Value::Float(1.1)),
        (plain("REAL"), Value::Double(1.1)),
        (plain("DOUBLE"), Value::Double(1e100)),
        (of("DECIMAL", Some(4), Some(2), None), packed(&[0x8c, 0x22], 4)),
        (of("DECIMAL", Some(40), Some(2), None), packed(&LONG_DECIMAL, 40)),
        (of("BIT", Some(1), None, None), Value::Bit(&[1])),
        (of("BIT", Some(12), None, None), Value::Bit(&[1, 2])),
        (text("VARCHAR", "utf8mb4"), Value::Bytes("plain, é and \"quoted\"".as_bytes())),
        (text("CHAR", "latin1"), Value::Bytes(b"caf\xe9")),
        (text("TEXT", "utf16"), Value::Bytes(b"\0a\0b")),
        (of("BINARY", Some(8), None, None), Value::Bytes(b"abc")),
        (plain("BLOB"), Value::Bytes(b"a longer value that is no short number")),
        (plain("DATE"), Value::Date(date)),
        (plain("TIME"), Value::Time(Time { micros: 3_723_000_001, fsp: 6 })),
        (plain("DATETIME"), Value::DateTime(datetime)),
        (of("DATETIME", Some(6), None, None), Value::DateTime(datetime)),
        (
            of("TIMESTAMP", Some(3), None, None),
            Value::Timestamp(Timestamp { seconds: 1_709_210_096, micro: 789_000, fsp: 3 }),
        ),
        (plain("YEAR"), Value::Year(124)),
        (labels("ENUM"), Value::Enum(2)),
        (labels("SET"), Value::Set(3)),
        (plain("JSON"), Value::Json(JsonBinary(json))),
        (plain("POINT"), Value::Geometry(point)),
        (plain("GEOMETRY"), Value::Geometry(point)),
        (plain("VECTOR"), Value::Vector(&[0, 0, 0x80, 0x3f])),
        (plain("UUID"), Value::Bytes(&[0x12; 16])),
        (plain("INET4"), Value::Bytes(&[192, 168, 0, 1])),
        (plain("INET6"), Value::Bytes(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
        (plain("INT"), Value::Null),
    ];
    for (number, (column, _)) in columns.iter_mut().enumerate() {
        column.name = format!("c{number}");
    }
    columns
}

/// Allocations of the second record, and its length.
fn allocations(settings: &[(&str, &str)]) -> (u64, usize) {
    let json = Json::Object(vec![
        ("a", Json::Int(7)),
        ("b", Json::Text(b"text with \"quotes\"".to_vec())),
        ("c", Json::Array(vec![Json::Double(1.5), Json::Int(-2)])),
    ])
    .document();
    let columns = columns(&json);
    let values: Vec<Value<'_>> = columns.iter().map(|(_, value)| *value).collect();
    let table = Table {
        id: TableId::new("d", "t"),
        columns: columns.into_iter().map(|(column, _)| column).collect(),
        primary_key: vec!["c2".to_owned(), "c13".to_owned()],
        default_charset: None,
        comment: None,
    };
    let config = testkit::config(settings).unwrap();
    let topic = config.topics.data(&table.id).unwrap();
    let selection = config.column_selection(&table);
    let naming = config.field_naming(&topic);
    let (converter, warnings) =
        TableConverter::with_naming(&table, &config.conversion, &selection, &naming);
    assert_eq!(warnings, [], "{settings:?}");
    let schemas = TableSchemas::new(&topic, &converter, &config);
    let source = SourceInfo {
        version: "1",
        connector: "mysql",
        name: "srv",
        ts_us: 1_709_210_096_789_123,
        snapshot: Some("false"),
        db: "d",
        table: Some("t"),
        server_id: 7,
        gtid: Some("00000000-0000-0000-0000-000000000000:1"),
        file: "binlog.000001",
        pos: 4,
        row: 0,
        thread: Some(5),
        query: None,
    };
    let mut end = EnvelopeEnd::default();
    let mut out = Vec::new();
    let mut record = |out: &mut Vec<u8>| {
        out.clear();
        let image = |column: usize| values.get(column);
        schemas.key.begin(out);
        converter.write_key(image, Origin::Stream, out).unwrap();
        schemas.key.end(out);
        schemas.value.begin(out);
        debezium_json::begin_before(out);
        converter.write_row(image, Origin::Stream, out).unwrap();
        debezium_json::begin_after(out);
        converter.write_row(image, Origin::Stream, out).unwrap();
        end.render(&source, 1_709_210_096_789_123_456);
        end.write(1, None, Op::Update, out);
        schemas.value.end(out);
    };
    record(&mut out);
    // Room is made for what values usually need; this is no more than the buffer itself.
    out.reserve(1 << 16);
    let counted = allocation_counter::measure(|| record(&mut out));
    (counted.count_total, out.len())
}

#[test]
fn a_record_of_every_type_is_printed_without_an_allocation() {
    for settings in [
        &[][..],
        &[("decimal.handling.mode", "string"), ("time.precision.mode", "isostring")],
        &[("decimal.handling.mode", "double"), ("time.precision.mode", "nanoseconds")],
        &[("binary.handling.mode", "hex"), ("time.precision.mode", "connect")],
        &[
            ("binary.handling.mode", "base64-url-safe"),
            ("bigint.unsigned.handling.mode", "precise"),
        ],
        &[("converter.decimal.format", "NUMERIC"), ("bigint.unsigned.handling.mode", "precise")],
    ] {
        let (count, length) = allocations(settings);
        assert!(length > 1000, "{settings:?}");
        assert_eq!(count, 0, "{settings:?}");
    }
}

#[test]
fn schemas_are_copied_and_not_rendered_again() {
    let plain = allocations(&[]).1;
    let (count, length) = allocations(&[("schemas.enable", "true")]);
    assert!(length > plain + 5000, "{length} bytes with schemas, {plain} without");
    assert_eq!(count, 0);
}

#[test]
fn the_counter_sees_what_a_mask_allocates() {
    let (count, _) = allocations(&[("column.mask.hash.v2.MD5.with.salt.x", "d.t.c13")]);
    assert!(count > 0);
}
