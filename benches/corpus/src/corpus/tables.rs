//! The tables of the corpora, and rows for them.

use holdfast_binlog::testkit::{TestColumn, TestValue};

use super::wire::{self, Json};
use crate::random::Random;

/// A row to be.
pub(super) type TestRow = Vec<TestValue>;

/// A table of a corpus.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Its id in table maps.
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) columns: fn() -> Vec<TestColumn>,
    /// Makes a row with this number.
    pub(super) row: fn(u64, &mut Random) -> TestRow,
}

/// INT, VARCHAR(64), INT, DATETIME(6), DECIMAL(12,2).
pub(super) const NARROW: Table =
    Table { id: 101, name: "narrow", columns: narrow_columns, row: narrow_row };

/// 60 columns of all types.
pub(super) const WIDE: Table =
    Table { id: 102, name: "wide", columns: wide_columns, row: wide_row };

/// INT, VARCHAR(32), MEDIUMBLOB of 64 KiB.
pub(super) const BLOB: Table =
    Table { id: 103, name: "blobs", columns: blob_columns, row: blob_row };

fn narrow_columns() -> Vec<TestColumn> {
    vec![
        TestColumn::int(),
        TestColumn::varchar(64 * 4).nullable(),
        TestColumn::int().nullable(),
        TestColumn::raw(18, &[6]).nullable(),
        TestColumn::raw(246, &[12, 2]).nullable(),
    ]
}

fn narrow_row(number: u64, random: &mut Random) -> TestRow {
    let len = 8 + random.below(24);
    let count = match random.below(16) {
        0 => TestValue::Null,
        _ => TestValue::Int(random.around(1 << 30)),
    };
    vec![
        TestValue::Int(number.cast_signed()),
        text(len, random),
        count,
        datetime(6, random),
        decimal(12, 2, random),
    ]
}

fn blob_columns() -> Vec<TestColumn> {
    vec![TestColumn::int(), TestColumn::varchar(32).nullable(), TestColumn::blob(3).nullable()]
}

fn blob_row(number: u64, random: &mut Random) -> TestRow {
    let name = text(20, random);
    vec![TestValue::Int(number.cast_signed()), name, TestValue::Bytes(random.bytes(64 << 10))]
}

fn wide_columns() -> Vec<TestColumn> {
    let raw = TestColumn::raw;
    let mut columns = vec![TestColumn::bigint()];
    columns.extend([TestColumn::tinyint(), TestColumn::tinyint()]);
    columns.extend([TestColumn::smallint(), TestColumn::smallint()]);
    columns.extend([TestColumn::mediumint(), TestColumn::mediumint()]);
    columns.extend([TestColumn::int(), TestColumn::int(), TestColumn::int()]);
    columns.extend([TestColumn::bigint(), TestColumn::bigint(), TestColumn::bigint()]);
    columns.extend([TestColumn::float(), TestColumn::float()]);
    columns.extend([TestColumn::double(), TestColumn::double()]);
    columns.extend(DECIMALS.map(|(precision, scale)| raw(246, &[precision, scale])));
    columns.extend([raw(16, &[1, 0]), raw(16, &[4, 1]), raw(16, &[0, 8])]);
    columns.extend([raw(10, &[]), raw(10, &[])]);
    columns.extend(FRACTIONS.map(|fsp| raw(19, &[fsp])));
    columns.extend(FRACTIONS.map(|fsp| raw(18, &[fsp])));
    columns.extend(FRACTIONS.map(|fsp| raw(17, &[fsp])));
    columns.extend([raw(13, &[]), raw(13, &[])]);
    columns.extend([TestColumn::char(40), TestColumn::char(800)]);
    columns.extend([TestColumn::varchar(200), TestColumn::varchar(1020), TestColumn::varchar(128)]);
    columns.extend([TestColumn::blob(1), TestColumn::blob(2), TestColumn::blob(3)]);
    columns.extend([TestColumn::json(), TestColumn::json()]);
    columns.extend([raw(254, &[247, 1]), raw(254, &[247, 2])]);
    columns.extend([raw(254, &[248, 1]), raw(254, &[248, 8])]);
    columns.extend([TestColumn::char(16), TestColumn::varchar(64), TestColumn::varchar(400)]);
    columns.extend([1, 2, 3, 4].map(TestColumn::blob));
    let keep = columns.split_off(1);
    columns.extend(keep.into_iter().map(TestColumn::nullable));
    columns
}

const DECIMALS: [(u8, u8); 6] = [(5, 2), (10, 0), (12, 2), (18, 6), (30, 10), (65, 30)];
const FRACTIONS: [u8; 3] = [0, 3, 6];

fn wide_row(number: u64, random: &mut Random) -> TestRow {
    let int = |random: &mut Random| TestValue::Int(random.bits().cast_signed());
    let double = |random: &mut Random| {
        let whole = i32::try_from(random.around(1_000_000)).unwrap_or_default();
        TestValue::Double(f64::from(whole) / 64.0)
    };
    let mut row = vec![TestValue::Int(number.cast_signed())];
    row.extend((0..12).map(|_| int(random)));
    row.extend((0..4).map(|_| double(random)));
    row.extend(DECIMALS.map(|(precision, scale)| decimal(precision, scale, random)));
    row.push(TestValue::Raw(vec![1]));
    row.push(TestValue::Raw(vec![0x0a, 0x5c]));
    row.push(TestValue::Raw(random.bytes(8)));
    row.extend((0..2).map(|_| {
        let [year, month, day] = some_date(random).map(narrow);
        TestValue::Raw(wire::date(year, month, day))
    }));
    row.extend(FRACTIONS.map(|fsp| {
        let [hour, minute, second] = some_clock(random).map(u64::cast_signed);
        let micros = narrow(random.below(1_000_000));
        TestValue::Raw(wire::time(random.below(4) == 0, [hour * 30, minute, second], micros, fsp))
    }));
    row.extend(FRACTIONS.map(|fsp| datetime(fsp, random)));
    row.extend(FRACTIONS.map(|fsp| {
        let seconds = narrow(1_000_000_000 + random.below(1_000_000_000));
        TestValue::Raw(wire::timestamp(seconds, narrow(random.below(1_000_000)), fsp))
    }));
    row.extend((0..2).map(|_| TestValue::Raw(vec![70 + narrow8(random.below(80))])));
    row.extend([8, 30, 20, 60, 16, 24, 80, 120].map(|len| text(len, random)));
    row.extend((0..2).map(|_| TestValue::Bytes(some_json(random).document())));
    row.push(TestValue::Raw(vec![1]));
    row.push(TestValue::Raw(vec![2, 1]));
    row.push(TestValue::Raw(vec![5]));
    row.push(TestValue::Raw(random.bytes(8)));
    row.extend([16, 30, 60, 12, 40, 60, 20].map(|len| TestValue::Bytes(random.bytes(len))));
    // About every 20th cell is NULL.
    for value in row.iter_mut().skip(1) {
        if random.below(20) == 0 {
            *value = TestValue::Null;
        }
    }
    row
}

fn text(len: u64, random: &mut Random) -> TestValue {
    TestValue::Bytes(random.text(usize::try_from(len).unwrap_or_default()))
}

fn decimal(precision: u8, scale: u8, random: &mut Random) -> TestValue {
    // Few numbers use all the digits of their column.
    let zeros = usize::from((precision - scale) / 2);
    let digits = random.bytes(precision.into()).into_iter().enumerate();
    let digits = digits.map(|(at, byte)| if at < zeros { 0 } else { byte % 10 });
    let is_negative = random.below(4) == 0;
    TestValue::Raw(wire::decimal(&digits.collect::<Vec<_>>(), scale.into(), is_negative))
}

fn datetime(fsp: u8, random: &mut Random) -> TestValue {
    let (date, clock) = (some_date(random), some_clock(random));
    TestValue::Raw(wire::datetime(date, clock, narrow(random.below(1_000_000)), fsp))
}

const fn some_date(random: &mut Random) -> [u64; 3] {
    [2020 + random.below(6), 1 + random.below(12), 1 + random.below(28)]
}

const fn some_clock(random: &mut Random) -> [u64; 3] {
    [random.below(24), random.below(60), random.below(60)]
}

fn some_json(random: &mut Random) -> Json {
    let number =
        |random: &mut Random| Json::Int(i16::try_from(random.around(30_000)).unwrap_or_default());
    let tags = (0..3).map(|_| Json::Text(random.text(6))).collect();
    Json::Object(vec![
        ("id", number(random)),
        ("name", Json::Text(random.text(12))),
        ("tags", Json::Array(tags)),
        ("price", Json::Double(f64::from(narrow(random.below(100_000))) / 100.0)),
        ("size", Json::Object(vec![("h", number(random)), ("w", number(random))])),
    ])
}

/// A number that is known to be below 256.
fn narrow8(number: u64) -> u8 {
    u8::try_from(number).unwrap_or_default()
}

/// A number that is known to be small.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_every_column() {
        let mut random = Random::new(1);
        for (table, count) in [(NARROW, 5), (WIDE, 60), (BLOB, 3)] {
            assert_eq!((table.columns)().len(), count, "{}", table.name);
            assert_eq!((table.row)(1, &mut random).len(), count, "{}", table.name);
        }
    }
}
