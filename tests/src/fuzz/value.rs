//! Single values: DECIMAL, JSON, GTIDs.

use holdfast_binlog::row::{Row, RowPlan, WireType};
use holdfast_binlog::testkit::{LogBuilder, TestColumn, TestValue};
use holdfast_binlog::value::{Decimal, JsonBinary, JsonDiffs, JsonStyle};
use holdfast_binlog::{EventData, GtidPos, GtidSet, Value};

/// Precision, scale, and the packed digits of a DECIMAL: as the value of a column, and as text.
///
/// # Panics
///
/// When its number and its text are two.
pub fn decimal(data: &[u8]) {
    check_decimal(&Decimal::Text(data));
    let [precision, scale, packed @ ..] = data else { return };
    check_decimal(&Decimal::Packed { bytes: packed, precision: *precision, scale: *scale });
    let column = WireType::NewDecimal { precision: *precision, scale: *scale };
    if RowPlan::compile([column]).is_err() {
        return;
    }
    let columns = [TestColumn::raw(246, &[*precision, *scale])];
    let row = [TestValue::Raw(packed.to_vec())];
    let log = LogBuilder::new("f.000001").table_map(1, "d", "t", &columns).write_rows(1, &[&row]);
    let mut stream = holdfast_binlog::EventStream::new(
        "f.000001",
        holdfast_binlog::stream::StreamOptions::default(),
    );
    for bytes in log.events() {
        let Ok(event) = stream.decode(bytes) else { return };
        let EventData::Rows { rows, table } = event.data else { continue };
        let Ok(mut reader) = rows.rows(table) else { return };
        let mut row = Row::new();
        while let Ok(true) = reader.read(&mut row) {
            if let Some(Value::Decimal(decimal)) = row.after.get(0) {
                check_decimal(&decimal);
                let mut text = Vec::new();
                decimal.write_text(&mut text);
                let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
                assert!(digits <= usize::from(*precision).max(usize::from(*scale) + 1));
            }
        }
    }
}

/// The number of a decimal and its text are the same.
pub(super) fn check_decimal(decimal: &Decimal<'_>) {
    let mut text = Vec::new();
    decimal.write_text(&mut text);
    let mut unscaled = Vec::new();
    let written = decimal.write_unscaled_be(&mut unscaled);
    let Some(number) = decimal.to_i128() else { return };
    assert!(written.is_ok());
    let sign = if unscaled.first().is_some_and(|byte| *byte >= 0x80) { -1_i128 } else { 0 };
    let found = unscaled.iter().fold(sign, |sum, byte| sum << 8 | i128::from(*byte));
    assert_eq!(found, number);
    if matches!(decimal, Decimal::Text(_)) {
        return;
    }
    assert_eq!((decimal.is_zero(), decimal.is_negative()), (number == 0, number < 0));
    let digits = String::from_utf8(text).expect("digits").replace('.', "");
    if let Decimal::Number { .. } = decimal {
        assert_eq!(digits.parse(), Ok(number), "{decimal:?}");
    }
}

/// A binary JSON document, and diffs of it: two bytes are the length of the document, which follows; what is left is
/// diffs. Everything together is a document, too.
///
/// # Panics
///
/// When a text is no JSON.
pub fn json(data: &[u8]) {
    check_document(JsonBinary(data));
    let [low, high, rest @ ..] = data else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((document, diffs)) = rest.split_at_checked(len) else { return };
    check_document(JsonBinary(document));
    let mut text = Vec::new();
    if JsonDiffs(diffs).write_text(JsonBinary(document), JsonStyle::Server, &mut text).is_ok() {
        check_text(&text);
    }
}

fn check_document(document: JsonBinary<'_>) {
    for style in [JsonStyle::Server, JsonStyle::Debezium] {
        let mut text = b"kept".to_vec();
        match document.write_text(style, &mut text) {
            Ok(()) => check_text(text.get(4..).unwrap_or_default()),
            Err(_) => assert_eq!(text, b"kept"),
        }
    }
}

fn check_text(text: &[u8]) {
    let parsed = serde_json::from_slice::<serde_json::Value>(text);
    assert!(parsed.is_ok(), "{parsed:?}: {}", String::from_utf8_lossy(text));
}

/// The text, and the encoded form, of GTIDs and sets of them.
///
/// # Panics
///
/// When what was read is written as something else.
pub fn gtid(data: &[u8]) {
    if let Ok(set) = GtidSet::decode(data) {
        check_set(&set);
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(set) = GtidSet::parse(text) {
        check_set(&set);
    }
    if let Ok(position) = GtidPos::parse(text) {
        assert_eq!(GtidPos::parse(&position.to_string()).as_ref(), Ok(&position));
    }
}

fn check_set(set: &GtidSet) {
    assert_eq!(GtidSet::parse(&set.to_string()).as_ref(), Ok(set));
    assert_eq!(GtidSet::decode(&set.encode()).as_ref(), Ok(set));
    assert!(set.subtract(set).is_empty() && set.is_subset_of(set));
    assert_eq!(&set.union(set), set);
}
