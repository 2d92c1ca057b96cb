//! Rows to JSON: logs of made-up rows, the definitions of their tables, and what prints them.

use std::error::Error;
use std::fmt::Write as _;

use holdfast_binlog::EventData;
use holdfast_binlog::row::{Row, RowImage};
use holdfast_binlog::testkit::{LogBuilder, TestColumn, TestValue};
use holdfast_connector::convert::{ColumnSelection, ConversionOptions, Origin, TableConverter};
use holdfast_history::Table;
use holdfast_history::ddl::{DdlContext, apply_statement};
use holdfast_history::schema::{TableId, Tables};

use crate::corpus::{self, FILE, wire, wire::Json};
use crate::decode::for_each_event;
use crate::random::Random;
use crate::workload;

/// The cases: the corpora, and the wide table of the runs against real servers.
pub const CASES: [&str; 3] = ["narrow", "wide", "server"];

/// Bytes of the narrow corpus.
const SIZE: u64 = 400_000;

/// Rows of the case *server*.
const SERVER_ROWS: u64 = 200;

/// Rows in a log, and their table.
#[derive(Debug)]
pub struct Case {
    log: Vec<u8>,
    table: Table,
    converter: TableConverter,
    /// Row images in the log.
    pub images: u64,
}

impl Case {
    /// The case of that name, one of [`CASES`].
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn named(name: &str) -> Result<Self, Box<dyn Error>> {
        let of = |corpus: corpus::Corpus| (corpus.bytes, corpus.facts.images);
        let ((log, images), sql) = match name {
            "narrow" => (of(corpus::narrow(SIZE)), workload::NARROW.to_owned()),
            "wide" => (of(corpus::wide(SIZE)), wide_table()),
            "server" => ((server_log(SERVER_ROWS), SERVER_ROWS), workload::wide_table()),
            _ => return Err(format!("no case {name}; there are {}", CASES.join(", ")).into()),
        };
        let table = table(&sql)?;
        let converter = converter(&table, &ColumnSelection::all(&table));
        Ok(Self { log, table, converter, images })
    }

    /// The columns of each type, with their type.
    #[must_use]
    pub fn types(&self) -> Vec<(String, Vec<usize>)> {
        let mut types: Vec<(String, Vec<usize>)> = Vec::new();
        for (index, column) in self.table.columns.iter().enumerate().skip(1) {
            let labels = column.enum_values.len();
            let sizes = [column.length, column.scale].into_iter().flatten();
            let sizes = sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(",");
            let name = match (labels, sizes.as_str()) {
                (0, "") => column.type_name.clone(),
                (0, sizes) => format!("{}({sizes})", column.type_name),
                (labels, _) => format!("{} of {labels}", column.type_name),
            };
            match types.last_mut() {
                Some((last, indexes)) if *last == name => indexes.push(index),
                _ => types.push((name, vec![index])),
            }
        }
        types
    }

    /// Leaves the key and all columns out of the images but these.
    pub fn select(&mut self, columns: &[usize]) {
        let mut selection = ColumnSelection::default();
        selection.value = columns.to_vec();
        self.converter = converter(&self.table, &selection);
    }

    /// Reads all rows. With `out`, their keys and images are appended to it, and it is emptied after each row that `each`
    /// has seen.
    ///
    /// # Errors
    ///
    /// Whatever reading and converting report: a case has no errors.
    pub fn run(
        &self,
        mut out: Option<&mut Vec<u8>>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Box<dyn Error>> {
        let mut kept = Some(Row::new());
        let mut failed = None;
        for_each_event(self.log.as_slice(), |event| {
            let EventData::Rows { rows, table } = &event.data else { return Ok(()) };
            let mut row = kept.take().unwrap_or_default().recycle();
            let mut reader = rows.rows(table).map_err(|error| event.decode_error(error))?;
            while reader.read(&mut row).map_err(|error| event.row_error(table, error))? {
                if let Some(out) = out.as_deref_mut() {
                    if let Err(error) = print(&self.converter, &row, out) {
                        failed.get_or_insert(error);
                    }
                    each(out);
                    out.clear();
                }
            }
            kept = Some(row.recycle());
            Ok(())
        })?;
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

fn print(
    converter: &TableConverter,
    row: &Row<'_>,
    out: &mut Vec<u8>,
) -> Result<(), holdfast_connector::convert::ConvertError> {
    let images = [&row.before, &row.after].map(|image| Some(image).filter(|it| !it.is_empty()));
    let value = |image: Option<&RowImage<'_>>, out: &mut Vec<u8>| match image {
        Some(image) => converter.write_row(|column| image.get_ref(column), Origin::Stream, out),
        None => Ok(()),
    };
    let [before, after] = images;
    if let Some(image) = after.or(before) {
        converter.write_key(|column| image.get_ref(column), Origin::Stream, out)?;
    }
    value(before, out)?;
    value(after, out)
}

fn converter(table: &Table, columns: &ColumnSelection) -> TableConverter {
    TableConverter::new(table, &ConversionOptions::default(), columns).0
}

/// The definition that a statement makes.
fn table(sql: &str) -> Result<Table, Box<dyn Error>> {
    let mut tables = Tables::new(false);
    apply_statement(sql, &DdlContext::in_database("bench"), &mut tables)?;
    let name = sql.split_ascii_whitespace().nth(2).unwrap_or_default();
    Ok(tables.get(&TableId::new("bench", name)).ok_or("no table")?.as_ref().clone())
}

/// What the wide corpus is in SQL.
fn wide_table() -> String {
    let mut sql = "CREATE TABLE wide (id BIGINT PRIMARY KEY".to_owned();
    let labels =
        |count: usize| (0..count).map(|at| format!("'label {at}'")).collect::<Vec<_>>().join(",");
    let types = "TINYINT*2 SMALLINT*2 MEDIUMINT*2 INT*3 BIGINT*3 FLOAT*2 DOUBLE*2 DECIMAL(5,2) DECIMAL(10,0) \
        DECIMAL(12,2) DECIMAL(18,6) DECIMAL(30,10) DECIMAL(65,30) BIT(1) BIT(12) BIT(64) DATE*2 TIME TIME(3) TIME(6) \
        DATETIME DATETIME(3) DATETIME(6) TIMESTAMP TIMESTAMP(3) TIMESTAMP(6) YEAR*2 CHAR(10) CHAR(200) VARCHAR(50) \
        VARCHAR(255) VARCHAR(32) TINYTEXT TEXT MEDIUMTEXT JSON*2 ENUM=3 ENUM=300 SET=4 SET=64 BINARY(16) VARBINARY(64) \
        VARBINARY(400) TINYBLOB BLOB MEDIUMBLOB LONGBLOB";
    let mut number = 0;
    for word in types.split_ascii_whitespace() {
        let (kind, times) = word.split_once('*').unwrap_or((word, "1"));
        let kind = match kind.split_once('=') {
            Some((kind, count)) => format!("{kind}({})", labels(count.parse().unwrap_or_default())),
            None => kind.to_owned(),
        };
        for _ in 0..times.parse().unwrap_or(1) {
            let _ = write!(sql, ", c{number} {kind} NULL");
            number += 1;
        }
    }
    sql + ")"
}

/// Rows like those of [`workload::wide_statements`].
fn server_log(rows: u64) -> Vec<u8> {
    let mut random = Random::new(5);
    let mut columns = vec![TestColumn::int()];
    columns
        .extend(workload::wide_types().map(|kind| server_value(kind, 1, &mut random).0.nullable()));
    let rows = (1..=rows).map(|i| {
        let mut row = vec![TestValue::Int(i.cast_signed())];
        row.extend(workload::wide_types().map(|kind| server_value(kind, i * 131, &mut random).1));
        row
    });
    let rows = rows.collect::<Vec<_>>();
    let mut log = LogBuilder::new(FILE).begin().table_map(1, "bench", "wide", &columns);
    for some in rows.chunks(10) {
        log = log.write_rows(1, &some.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    log.xid(1).into_bytes()
}

/// A column of a type in [`workload`], and what it has for a number.
fn server_value(kind: &str, i: u64, random: &mut Random) -> (TestColumn, TestValue) {
    let raw = TestColumn::raw;
    let small = |number: u64| u32::try_from(number).unwrap_or_default();
    let int = |number: u64| TestValue::Int(number.cast_signed());
    let double = |number: f64| TestValue::Double(number);
    let decimal = |unscaled: u64, precision: u8, scale: u8| {
        let digits = format!("{unscaled:0width$}", width = usize::from(precision));
        let digits = digits.bytes().map(|digit| digit - b'0').collect::<Vec<_>>();
        let value = TestValue::Raw(wire::decimal(&digits, scale.into(), false));
        (raw(246, &[precision, scale]), value)
    };
    let date = [2010 + i % 10, 1 + i % 12, 1 + i % 28];
    let clock = [i % 24, i % 60, i % 59];
    let micros = small(i * 7777 % 1_000_000);
    let hex = |random: &mut Random| format!("{:016x}{:016x}", random.bits(), random.bits());
    match kind {
        "TINYINT" => (TestColumn::tinyint(), int(i % 100)),
        "SMALLINT UNSIGNED" => (TestColumn::smallint(), int(i % 60_000)),
        "MEDIUMINT" => (TestColumn::mediumint(), int(i % 8_000_000)),
        "INT" => (TestColumn::int(), int(i * 17 % 2_000_000_000)),
        "BIGINT" => (TestColumn::bigint(), int(i * 1_000_003)),
        "FLOAT" => (TestColumn::float(), double(f64::from(small(i)) / 64.0)),
        "DOUBLE" => (TestColumn::double(), double(f64::from(small(i)) / 1024.0)),
        "DECIMAL(5,2)" => decimal(i % 99_999, 5, 2),
        "DECIMAL(18,6)" => decimal(i * 1_000_000_000 / 7, 18, 6),
        "DECIMAL(30,10)" => decimal(i * 10_000_000_000_000 / 7, 30, 10),
        "BIT(12)" => {
            let [high, low] = u16::try_from(i % 4096).unwrap_or_default().to_be_bytes();
            (raw(16, &[4, 1]), TestValue::Raw(vec![high, low]))
        }
        "DATE" => {
            let [year, month, day] = date.map(small);
            (raw(10, &[]), TestValue::Raw(wire::date(year, month, day)))
        }
        "DATETIME(3)" => (raw(18, &[3]), TestValue::Raw(wire::datetime(date, clock, micros, 3))),
        "DATETIME(6)" => (raw(18, &[6]), TestValue::Raw(wire::datetime(date, clock, micros, 6))),
        "TIMESTAMP(6) NULL" => {
            let seconds = small(1_262_304_000 + i);
            (raw(17, &[6]), TestValue::Raw(wire::timestamp(seconds, micros, 6)))
        }
        "TIME(3)" => {
            let clock = clock.map(u64::cast_signed);
            (raw(19, &[3]), TestValue::Raw(wire::time(false, clock, 0, 3)))
        }
        "YEAR" => {
            (raw(13, &[]), TestValue::Raw(vec![u8::try_from(100 + i % 50).unwrap_or_default()]))
        }
        "CHAR(10)" => {
            let text = hex(random).get(..10).unwrap_or_default().to_owned();
            (TestColumn::char(40), TestValue::Bytes(text.into()))
        }
        "VARCHAR(50)" => {
            (TestColumn::varchar(200), TestValue::Bytes(format!("some text {i}").into()))
        }
        "TEXT" => (TestColumn::blob(2), TestValue::Bytes(hex(random).repeat(3).into())),
        "ENUM('one','two','three')" => {
            let index = 1 + u8::try_from(i % 3).unwrap_or_default();
            (raw(254, &[247, 1]), TestValue::Raw(vec![index]))
        }
        "SET('a','b','c','d')" => {
            let bits = u8::try_from(i % 16).unwrap_or_default();
            (raw(254, &[248, 1]), TestValue::Raw(vec![bits]))
        }
        "VARBINARY(32)" => (TestColumn::varchar(32), TestValue::Bytes(random.bytes(16))),
        "JSON" => {
            let list = vec![
                Json::Int(1),
                Json::Double(2.5),
                Json::Literal(Some(true)),
                Json::Literal(None),
            ];
            let document = Json::Object(vec![
                ("list", Json::Array(list)),
                ("name", Json::Text(format!("n{i}").into())),
                ("number", Json::Int(i16::try_from(i).unwrap_or_default())),
            ]);
            (TestColumn::json(), TestValue::Bytes(document.document()))
        }
        other => unreachable!("no value for {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_printed() {
        for name in CASES {
            let case = Case::named(name).unwrap();
            let mut images = 0;
            let nulls = name == "server";
            case.run(Some(&mut Vec::new()), |json| {
                let text = std::str::from_utf8(json).unwrap();
                // The key, then the images.
                images += text.matches("{\"id\":").count() - 1;
                assert!(!nulls || !text.contains(":null"), "{text}");
                assert!(!text.contains("\"c0\":") || text.contains("\"c58\":"), "{text}");
            })
            .unwrap();
            assert_eq!(images as u64, case.images, "{name}");
        }
    }
}
