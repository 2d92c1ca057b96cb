//! Rows of hand-made events.

use proptest::prelude::*;

use super::*;
use crate::Value;
use crate::event::rows::{RowsEvent, RowsKind, RowsVersion};
use crate::event::table_map::{TableIdWidth, TableMap};
use crate::value::{Date, DateTime, Decimal, JsonBinary, JsonDiffs, JsonStyle, Time, Timestamp};
use crate::wire::DecodeError;

/// A table map for table 7, `d.t`, with nullable columns of these types.
fn table(types: &[u8], metadata: &[u8]) -> TableMap {
    TableMap::parse(&table_body(types, metadata), TableIdWidth::Six).unwrap()
}

fn table_body(types: &[u8], metadata: &[u8]) -> Vec<u8> {
    let mut body = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0".to_vec();
    body.push(types.len().try_into().unwrap());
    body.extend(types);
    body.push(metadata.len().try_into().unwrap());
    body.extend(metadata);
    body.resize(body.len() + types.len().div_ceil(8), 0xff);
    body
}

/// A v2 rows event body for table 7.
fn rows_body(columns: u8, present: &[u8], rows: &[u8]) -> Vec<u8> {
    let mut body = b"\x07\0\0\0\0\0\x01\0\x02\0".to_vec();
    body.push(columns);
    body.extend(present);
    body.extend(rows);
    body
}

fn event(kind: RowsKind, body: &[u8]) -> RowsEvent<'_> {
    RowsEvent::parse(kind, RowsVersion::V2, TableIdWidth::Six, body).unwrap()
}

fn read_all<'a>(
    kind: RowsKind,
    table: &TableMap,
    body: &'a [u8],
) -> Result<Vec<Row<'a>>, RowError> {
    let mut reader = event(kind, body).rows(table).unwrap();
    let mut rows = Vec::new();
    let mut row = Row::new();
    while reader.read(&mut row)? {
        rows.push(row.clone());
    }
    assert_eq!(reader.row_index(), rows.len());
    Ok(rows)
}

/// The one value of a table with one column.
fn one<'a>(code: u8, metadata: &[u8], body: &'a [u8]) -> Result<Value<'a>, RowError> {
    let rows = read_all(RowsKind::Write, &table(&[code], metadata), body)?;
    assert_eq!(rows.len(), 1, "type {code}");
    assert!(rows[0].before.is_empty());
    Ok(rows[0].after.get(0).unwrap())
}

#[test]
fn every_type_reads_its_bytes_and_none_of_their_prefixes() {
    let date = Date { year: 2024, month: 2, day: 29 };
    let datetime = |fsp, micro| {
        Value::DateTime(DateTime { date, hour: 12, minute: 34, second: 56, fsp, micro })
    };
    let time = |micros, fsp| Value::Time(Time { micros, fsp });
    let timestamp = |micro, fsp| Value::Timestamp(Timestamp { seconds: 258, micro, fsp });
    let decimal = |number, scale| {
        Value::Decimal(Decimal::Number { unscaled: crate::value::Unscaled::new(number), scale })
    };
    let compressed = |bytes| Value::Compressed(crate::value::Compressed(bytes));
    let long = [&[0x2c, 0x01][..], &[b'x'; 300]].concat();
    let table: &[(u8, &[u8], &[u8], Value<'_>)] = &[
        (1, &[], &[0xff], Value::Int8(255)),
        (2, &[], &[1, 2], Value::Int16(0x0201)),
        (9, &[], &[1, 2, 0xff], Value::Int24(0xff_0201)),
        (3, &[], &[1, 2, 3, 4], Value::Int32(0x0403_0201)),
        (8, &[], &[1, 0, 0, 0, 0, 0, 0, 0x80], Value::Int64(1 << 63 | 1)),
        (4, &[4], &1.5_f32.to_le_bytes(), Value::Float(1.5)),
        (5, &[8], &(-0.25_f64).to_le_bytes(), Value::Double(-0.25)),
        (246, &[5, 2], &[0x7c, 0x18, 0x9c], decimal(-99_999, 2)),
        (16, &[1, 0], &[1], Value::Bit(&[1])),
        (16, &[1, 2], &[1, 2, 3], Value::Bit(&[1, 2, 3])),
        (16, &[0, 8], &[0xff; 8], Value::Bit(&[0xff; 8])),
        (13, &[], &[124], Value::Year(124)),
        (10, &[], &[0x5d, 0xd0, 0x0f], Value::Date(date)),
        (14, &[], &[0x5d, 0xd0, 0x0f], Value::Date(date)),
        (11, &[], &[0x40, 0xe2, 0x01], time(45_296_000_000, 0)),
        (19, &[0], &[0x80, 0xc8, 0xb8], time(45_296_000_000, 0)),
        (19, &[3], &[0x7f, 0xff, 0xff, 0xff, 0xf6], time(-1000, 3)),
        (12, &[], &20_240_229_123_456_u64.to_le_bytes(), datetime(0, 0)),
        (18, &[0], &[0x99, 0xb2, 0xba, 0xc8, 0xb8], datetime(0, 0)),
        (18, &[1], &[0x99, 0xb2, 0xba, 0xc8, 0xb8, 70], datetime(1, 700_000)),
        (18, &[6], &[0x99, 0xb2, 0xba, 0xc8, 0xb8, 0, 0, 9], datetime(6, 9)),
        (7, &[], &[2, 1, 0, 0], timestamp(0, 0)),
        (17, &[0], &[0, 0, 1, 2], timestamp(0, 0)),
        (17, &[4], &[0, 0, 1, 2, 0, 7], timestamp(700, 4)),
        (15, &[255, 0], b"\x02ab", Value::Bytes(b"ab")),
        (15, &[0, 1], b"\x02\0ab", Value::Bytes(b"ab")),
        (253, &[10, 0], b"\x02ab", Value::Bytes(b"ab")),
        // CHAR of 20, of 255 and of 1020 bytes: the last needs two length bytes.
        (254, &[0xfe, 20], b"\x02ab", Value::Bytes(b"ab")),
        (254, &[0xfe, 255], b"\x02ab", Value::Bytes(b"ab")),
        (254, &[0xce, 0xfc], &long, Value::Bytes(&[b'x'; 300])),
        (254, &[247, 1], &[3], Value::Enum(3)),
        (254, &[247, 2], &[3, 1], Value::Enum(259)),
        (254, &[248, 1], &[5], Value::Set(5)),
        (254, &[248, 3], &[1, 2, 3], Value::Set(0x03_0201)),
        (254, &[248, 8], &[0xff; 8], Value::Set(u64::MAX)),
        (247, &[247, 1], &[3], Value::Enum(3)),
        (248, &[248, 1], &[5], Value::Set(5)),
        (252, &[1], b"\x02ab", Value::Bytes(b"ab")),
        (252, &[2], b"\x02\0ab", Value::Bytes(b"ab")),
        (252, &[3], b"\x02\0\0ab", Value::Bytes(b"ab")),
        (252, &[4], b"\x02\0\0\0ab", Value::Bytes(b"ab")),
        (249, &[1], b"\x02ab", Value::Bytes(b"ab")),
        (250, &[3], b"\x02\0\0ab", Value::Bytes(b"ab")),
        (251, &[4], b"\x02\0\0\0ab", Value::Bytes(b"ab")),
        (245, &[4], b"\x02\0\0\0\x04\x01", Value::Json(JsonBinary(b"\x04\x01"))),
        (255, &[4], b"\x02\0\0\0ab", Value::Geometry(b"ab")),
        (242, &[4], b"\x04\0\0\0abcd", Value::Vector(b"abcd")),
        (140, &[2], b"\x02\0\0a", compressed(b"\0a")),
        (141, &[255, 0], b"\x02\0a", compressed(b"\0a")),
        (141, &[0x41, 6], b"\x02\0\0a", compressed(b"\0a")),
        (6, &[], b"", Value::Null),
    ];
    for (code, metadata, bytes, value) in table {
        let body = rows_body(1, &[1], &[&[0][..], bytes].concat());
        assert_eq!(one(*code, metadata, &body), Ok(*value), "type {code}");
        let start = body.len() - bytes.len();
        for len in start..body.len() {
            let error = one(*code, metadata, &body[..len]).unwrap_err();
            assert_eq!((error.row, error.side, error.column), (0, Side::After, Some(0)));
            assert!(matches!(error.error, DecodeError::Truncated { .. }), "type {code}: {error:?}");
        }
        let null = rows_body(1, &[1], &[1]);
        assert_eq!(one(*code, metadata, &null), Ok(Value::Null), "type {code}");
    }
}

#[test]
fn a_bit_above_the_declared_ones_is_an_error() {
    let body = rows_body(1, &[1], &[0, 2, 0, 0]);
    let error = one(16, &[1, 2], &body).unwrap_err().error;
    assert_eq!(error, DecodeError::Invalid { field: "first byte of a bit", value: 2 });
}

#[test]
fn an_update_gives_both_images() {
    let table = table(&[3, 15], &[100, 0]);
    let body = rows_body(2, &[3, 3], b"\0\x01\0\0\0\x01a\x02\x02\0\0\0");
    let rows = read_all(RowsKind::Update, &table, &body).unwrap();
    assert_eq!(rows.len(), 1);
    let values = |image: &RowImage<'_>| format!("{:?}", image.iter().collect::<Vec<_>>());
    assert_eq!(values(&rows[0].before), "[(0, Int32(1)), (1, Bytes([97]))]");
    assert_eq!(values(&rows[0].after), "[(0, Int32(2)), (1, Null)]");
    assert_eq!(rows[0].after.get(0), Some(Value::Int32(2)));
    assert_eq!(rows[0].after.get(2), None);
}

#[test]
fn a_delete_gives_before_images_alone() {
    let table = table(&[1], &[]);
    let body = rows_body(1, &[1], &[0, 5, 0, 6]);
    let rows = read_all(RowsKind::Delete, &table, &body).unwrap();
    let values: Vec<_> = rows.iter().map(|row| row.before.get(0)).collect();
    assert_eq!(values, [Some(Value::Int8(5)), Some(Value::Int8(6))]);
    assert!(rows.iter().all(|row| row.after.is_empty()));
}

#[test]
fn a_minimal_image_leaves_the_other_columns_out() {
    // Nine columns; before has columns 0 and 8, after column 3; the null bits count those that are there.
    let table = table(&[1; 9], &[]);
    let rows = [&[0b10, 7][..], &[0, 9], &[0, 1, 2], &[1]].concat();
    let body = rows_body(9, &[1, 1, 8, 0], &rows);
    let rows = read_all(RowsKind::Update, &table, &body).unwrap();
    fn list<'a>(image: &RowImage<'a>) -> Vec<(usize, Value<'a>)> {
        image.iter().collect()
    }
    assert_eq!(list(&rows[0].before), [(0, Value::Int8(7)), (8, Value::Null)]);
    assert_eq!(list(&rows[0].after), [(3, Value::Int8(9))]);
    assert_eq!(list(&rows[1].before), [(0, Value::Int8(1)), (8, Value::Int8(2))]);
    assert_eq!(list(&rows[1].after), [(3, Value::Null)]);
    assert_eq!(rows[1].after.get(0), None);
}

#[test]
fn null_bits_count_over_more_than_a_byte() {
    let table = table(&[1; 10], &[]);
    let body = rows_body(10, &[0xff, 3], &[0x81, 0x02, 1, 2, 3, 4, 5, 6, 7]);
    let rows = read_all(RowsKind::Write, &table, &body).unwrap();
    let nulls: Vec<_> =
        rows[0].after.iter().filter(|(_, value)| *value == Value::Null).map(|(at, _)| at).collect();
    assert_eq!(nulls, [0, 7, 9]);
    assert_eq!(rows[0].after.get(8), Some(Value::Int8(7)));
}

#[test]
fn a_row_buffer_forgets_the_event_before() {
    let table = table(&[1, 1], &[]);
    let full = rows_body(2, &[3], &[0, 1, 2]);
    let sparse = rows_body(2, &[2], &[0, 3]);
    let mut row = Row::new();
    assert!(event(RowsKind::Write, &full).rows(&table).unwrap().read(&mut row).unwrap());
    assert!(event(RowsKind::Write, &sparse).rows(&table).unwrap().read(&mut row).unwrap());
    assert_eq!(row.after.iter().collect::<Vec<_>>(), [(1, Value::Int8(3))]);
    assert!(event(RowsKind::Delete, &full).rows(&table).unwrap().read(&mut row).unwrap());
    assert!(row.after.is_empty());
}

#[test]
fn rows_without_any_column_are_one_row() {
    let table = table(&[1, 1], &[]);
    let body = rows_body(2, &[0], &[]);
    let rows = read_all(RowsKind::Write, &table, &body).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].after.iter().count(), 0);
    let body = rows_body(2, &[0], &[0]);
    assert!(matches!(
        event(RowsKind::Write, &body).rows(&table),
        Err(DecodeError::Trailing { left: 1, .. })
    ));
    // Bits beyond the last column do not count as columns.
    let body = rows_body(2, &[0xfc], &[]);
    assert_eq!(read_all(RowsKind::Write, &table, &body).unwrap().len(), 1);
}

#[test]
fn an_error_names_the_row_and_stays() {
    let table = table(&[1, 3], &[]);
    let body = rows_body(2, &[3], &[0, 1, 2, 0, 0, 0, 0, 1, 2]);
    let mut reader = event(RowsKind::Write, &body).rows(&table).unwrap();
    let mut row = Row::new();
    assert_eq!(reader.read(&mut row), Ok(true));
    let error = RowError {
        row: 1,
        side: Side::After,
        column: Some(1),
        error: DecodeError::Truncated { field: "int", needed: 4, left: 1 },
    };
    assert_eq!(reader.read(&mut row), Err(error));
    assert_eq!(reader.read(&mut row), Err(error));
    assert_eq!(error.to_string(), "row 1, after image, column 1");
}

#[test]
fn a_table_map_of_another_table_is_refused() {
    let body = rows_body(2, &[3], &[]);
    assert_eq!(
        event(RowsKind::Write, &body).rows(&table(&[1], &[])).map(|_| ()),
        Err(DecodeError::Mismatch { field: "column count of a rows event", found: 2, expected: 1 })
    );
    let mut other = table_body(&[1, 1], &[]);
    other[0] = 8;
    let other = TableMap::parse(&other, TableIdWidth::Six).unwrap();
    assert!(matches!(
        event(RowsKind::Write, &body).rows(&other),
        Err(DecodeError::Mismatch { found: 7, expected: 8, .. })
    ));
}

#[test]
fn an_unknown_column_type_is_reported_where_rows_are_read() {
    let table = table(&[1, 243, 15], &[]);
    let error = DecodeError::ColumnType { column: 1, code: 243 };
    assert_eq!(table.plan().map(|_| ()), Err(error));
    assert_eq!(table.column(1).unwrap().wire_type, WireType::Unknown { code: 243 });
    let body = rows_body(3, &[7], &[]);
    assert_eq!(event(RowsKind::Write, &body).rows(&table).map(|_| ()), Err(error));
}

#[test]
fn metadata_out_of_range_is_an_error_of_the_plan() {
    let columns = [
        WireType::Bit { bits: 0 },
        WireType::Bit { bits: 65 },
        WireType::Time2 { fsp: 7 },
        WireType::DateTime2 { fsp: 7 },
        WireType::Timestamp2 { fsp: 7 },
        WireType::Blob { length_bytes: 0 },
        WireType::Blob { length_bytes: 5 },
        WireType::NewDecimal { precision: 66, scale: 0 },
        WireType::Enum { bytes: 3 },
        WireType::Set { bytes: 9 },
    ];
    for column in columns {
        assert!(
            matches!(RowPlan::compile([column]), Err(DecodeError::Invalid { .. })),
            "{column:?}"
        );
    }
}

/// The update of `j` and of nothing else in a captured log of MySQL 9.7: columns id, j, a, k, n, where j, k and n are
/// JSON.
#[test]
fn a_partial_update_carries_diffs() {
    let table = table(&[3, 245, 3, 245, 245], &[4, 4, 4]);
    let json = b"\x02\0\0\0\x04\x01";
    let diff = b"\x00\x03$.a\x03\x05\x02\x00";
    let mut rows = vec![0x18, 1, 0, 0, 0];
    rows.extend(json);
    rows.extend([4, 0, 0, 0]);
    // Options, partial bits of j and k, null bits of n.
    rows.extend([1, 0b011, 0x10, 1, 0, 0, 0, 9, 0, 0, 0]);
    rows.extend(diff);
    rows.extend([4, 0, 0, 0, 0, 0, 0, 0]);
    let body = rows_body(5, &[0x1f, 0x1f], &rows);
    let all = read_all(RowsKind::PartialUpdate, &table, &body).unwrap();
    let after = &all[0].after;
    assert_eq!(all[0].before.get(1), Some(Value::Json(JsonBinary(b"\x04\x01"))));
    assert_eq!(after.get(1), Some(Value::JsonDiffs(JsonDiffs(diff))));
    assert_eq!(after.get(2), Some(Value::Int32(4)));
    assert_eq!(after.get(3), Some(Value::JsonDiffs(JsonDiffs(&[]))));
    assert_eq!(after.get(4), Some(Value::Null));
    let start = body.len() - rows.len();
    for len in start + 1..body.len() {
        assert!(read_all(RowsKind::PartialUpdate, &table, &body[..len]).is_err(), "{len}");
    }
}

#[test]
fn partial_bits_count_json_columns_that_the_image_lacks() {
    let table = table(&[3, 245, 3, 245, 245], &[4, 4, 4]);
    // Before: id. After: only k, the second JSON column, as an empty diff.
    let body = rows_body(5, &[1, 8], &[0, 1, 0, 0, 0, 1, 0b010, 0, 0, 0, 0, 0]);
    let rows = read_all(RowsKind::PartialUpdate, &table, &body).unwrap();
    assert_eq!(rows[0].after.iter().collect::<Vec<_>>(), [(3, Value::JsonDiffs(JsonDiffs(&[])))]);
    // Without the option the image is an ordinary one; another option is not known.
    let body = rows_body(5, &[1, 1], &[0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
    let rows = read_all(RowsKind::PartialUpdate, &table, &body).unwrap();
    assert_eq!(rows[0].after.get(0), Some(Value::Int32(2)));
    let body = rows_body(5, &[1, 1], &[0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0]);
    let error = read_all(RowsKind::PartialUpdate, &table, &body).unwrap_err();
    assert_eq!((error.side, error.column), (Side::After, None));
}

#[test]
fn a_sink_gets_the_values_in_order() {
    struct Calls(Vec<(Side, usize)>);
    impl<'a> RowSink<'a> for Calls {
        fn value(&mut self, side: Side, column: usize, _: Value<'a>) {
            self.0.push((side, column));
        }
    }
    let table = table(&[1, 1], &[]);
    let body = rows_body(2, &[3, 2], &[0b10, 1, 0, 2]);
    let mut reader = event(RowsKind::Update, &body).rows(&table).unwrap();
    let mut calls = Calls(Vec::new());
    assert_eq!(reader.read_into(&mut calls), Ok(true));
    assert_eq!(reader.read_into(&mut calls), Ok(false));
    assert_eq!(calls.0, [(Side::Before, 0), (Side::Before, 1), (Side::After, 1)]);
}

/// Every known type, with metadata that fits.
fn any_columns() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let column = prop_oneof![
        proptest::sample::select(vec![1_u8, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14])
            .prop_map(|code| (code, vec![])),
        (proptest::sample::select(vec![17_u8, 18, 19]), 0_u8..=6)
            .prop_map(|(code, fsp)| (code, vec![fsp])),
        (proptest::sample::select(vec![140_u8, 242, 245, 249, 252, 255]), 1_u8..=4)
            .prop_map(|(code, len)| (code, vec![len])),
        Just((4, vec![4])),
        Just((5, vec![8])),
        (0_u8..4).prop_map(|high| (15, vec![100, high])),
        (0_u8..8, 0_u8..8).prop_map(|(bits, bytes)| (16, vec![bits, bytes])),
        (1_u8..=65, 0_u8..=30).prop_map(|(precision, scale)| (246, vec![precision, scale])),
        (proptest::sample::select(vec![0xfe_u8, 0xce, 247, 248]), 1_u8..=8)
            .prop_map(|(real, len)| (254, vec![real, len])),
    ];
    proptest::collection::vec(column, 1..20).prop_map(|columns| {
        let (types, metadata): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        (types, metadata.concat())
    })
}

proptest! {
    #[test]
    fn any_rows_of_any_table_read_or_fail(
        (types, metadata) in any_columns(),
        present in proptest::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 6),
        rows in proptest::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..400),
        kind in proptest::sample::select(vec![
            RowsKind::Write, RowsKind::Update, RowsKind::Delete, RowsKind::PartialUpdate,
        ]),
    ) {
        let table = table(&types, &metadata);
        let width = types.len().div_ceil(8);
        let bitmaps = if matches!(kind, RowsKind::Write | RowsKind::Delete) { 1 } else { 2 };
        let columns = types.len().try_into().unwrap();
        let body = rows_body(columns, &present[..width * bitmaps], &rows);
        if let Ok(mut reader) = event(kind, &body).rows(&table) {
            let mut row = Row::new();
            let mut count = 0;
            while let Ok(true) = reader.read(&mut row) {
                count += 1;
                for (column, value) in row.before.iter().chain(row.after.iter()) {
                    prop_assert!(column < types.len());
                    touch(value);
                }
            }
            prop_assert!(count <= rows.len().max(1));
        }
    }

    /// The way for images that lack columns and the one for those that do not give the same rows and errors.
    #[test]
    fn a_column_that_is_left_out_changes_nothing(
        (mut types, metadata) in any_columns(),
        rows in proptest::collection::vec(prop_oneof![0_u8..4, any::<u8>()], 0..400),
        kind in proptest::sample::select(vec![RowsKind::Write, RowsKind::Update, RowsKind::Delete]),
    ) {
        let read = |types: &[u8], present: &[u8]| {
            let present = if kind == RowsKind::Update { present.repeat(2) } else { present.to_vec() };
            let body = rows_body(types.len().try_into().unwrap(), &present, &rows);
            let table = table(types, &metadata);
            let mut reader = event(kind, &body).rows(&table).ok()?;
            let (mut row, mut found) = (Row::new(), Vec::new());
            let end = loop {
                match reader.read(&mut row) {
                    Ok(true) => found.push(format!(
                        "{:?} {:?}",
                        row.before.iter().collect::<Vec<_>>(),
                        row.after.iter().collect::<Vec<_>>()
                    )),
                    end => break end,
                }
            };
            Some((found, end))
        };
        let count = types.len();
        let bits = ((1_u32 << count) - 1).to_le_bytes();
        let all = read(&types, &bits[..count.div_ceil(8)]);
        types.push(1);
        prop_assert_eq!(all, read(&types, &bits[..(count + 1).div_ceil(8)]));
    }

    #[test]
    fn any_bytes_parse_as_events_or_fail(
        body in proptest::collection::vec(any::<u8>(), 0..100),
        width in proptest::sample::select(vec![TableIdWidth::Four, TableIdWidth::Six]),
    ) {
        let _ = TableMap::parse(&body, width);
        for version in [RowsVersion::V1, RowsVersion::V2] {
            let _ = RowsEvent::parse(RowsKind::Update, version, width, &body);
        }
    }
}

/// Uses a value in every way it offers.
fn touch(value: Value<'_>) {
    let mut out = Vec::new();
    if let Value::Decimal(decimal) = value {
        decimal.write_text(&mut out);
        assert!(std::str::from_utf8(&out).unwrap().parse::<f64>().is_ok());
        decimal.write_unscaled_be(&mut out).unwrap();
    }
    if let Value::DateTime(datetime) = value {
        let _ = datetime.micros_since_epoch();
    }
    if let Value::Json(json) = value {
        let _ = json.write_text(JsonStyle::Server, &mut out);
    }
    if let Value::JsonDiffs(diffs) = value {
        let _ = diffs.write_text(JsonBinary(b"\x04\x00"), JsonStyle::Server, &mut out);
    }
    if let Value::Compressed(compressed) = value {
        let _ = compressed.decompress(1 << 16, &mut out);
    }
}
