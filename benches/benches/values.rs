//! Single values: what a record needs of them, without the log around them.
//!
//! Each bench goes over 1,000 made-up values of one type, read from a rows event before. Not in the loop: reading the
//! rows.
#![expect(clippy::cast_precision_loss, reason = "made-up numbers")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast_benches::corpus::wire::{self, Json};
use holdfast_benches::random::Random;
use holdfast_binlog::GtidSet;
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::gtid::{Gtid, Uuid};
use holdfast_binlog::row::{RowSink, Side};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::testkit::{LogBuilder, TestColumn, TestValue};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::{EventData, Value};

const COUNT: u64 = 1000;

/// Calls back with each value.
struct Each<F>(F);

impl<'a, F: FnMut(Value<'a>)> RowSink<'a> for Each<F> {
    fn value(&mut self, _: Side, _: usize, value: Value<'a>) {
        (self.0)(value);
    }
}

/// Writes values of one column into a log, reads them back and hands them over.
fn with_values(column: TestColumn, values: &[TestValue], then: impl FnOnce(&[Value<'_>])) {
    let rows = values.iter().map(std::slice::from_ref).collect::<Vec<_>>();
    let log = LogBuilder::new("a.000001").table_map(1, "d", "t", &[column]).write_rows(1, &rows);
    let bytes = log.into_bytes();
    let mut reader = BinlogFileReader::new(bytes.as_slice(), "a.000001").expect("a binlog");
    let mut stream = EventStream::new("a.000001", StreamOptions::default());
    while let Some(bytes) = reader.next_event().expect("a whole event") {
        let event = stream.decode(bytes).expect("an event");
        if let EventData::Rows { rows, table } = event.data {
            let mut found = Vec::new();
            let mut sink = Each(|value| found.push(value));
            let mut reader = rows.rows(table).expect("rows of the table");
            while reader.read_into(&mut sink).expect("a row") {}
            assert_eq!(found.len(), values.len());
            return then(&found);
        }
    }
}

fn values(criterion: &mut Criterion) {
    let mut random = Random::new(7);
    let mut group = criterion.benchmark_group("value");
    group.throughput(Throughput::Elements(COUNT));
    let mut out = Vec::new();

    for (precision, scale) in [(12, 2), (18, 6), (30, 10), (65, 30)] {
        let digits = |random: &mut Random| {
            random.bytes(precision.into()).iter().map(|byte| byte % 10).collect::<Vec<u8>>()
        };
        let made = (0..COUNT)
            .map(|at| wire::decimal(&digits(&mut random), usize::from(scale), at % 4 == 0))
            .map(TestValue::Raw)
            .collect::<Vec<_>>();
        let column = TestColumn::raw(246, &[precision, scale]);
        with_values(column, &made, |values| {
            group.bench_function(format!("decimal/text/{precision}_{scale}"), |bencher| {
                bencher.iter(|| {
                    for value in values {
                        let Value::Decimal(decimal) = value else { unreachable!() };
                        out.clear();
                        decimal.write_text(&mut out);
                        black_box(&out);
                    }
                });
            });
            group.bench_function(format!("decimal/i128/{precision}_{scale}"), |bencher| {
                bencher.iter(|| {
                    for value in values {
                        let Value::Decimal(decimal) = value else { unreachable!() };
                        black_box(decimal.to_i128());
                    }
                });
            });
        });
    }

    let made = (0..COUNT)
        .map(|_| {
            let text = Json::Text(random.text(20));
            let number = Json::Double(random.around(1 << 40) as f64 / 64.0);
            let list = Json::Array(vec![Json::Int(1), Json::Int(-2), Json::Text(random.text(5))]);
            Json::Object(vec![("a", Json::Int(7)), ("bb", text), ("cc", list), ("ddd", number)])
        })
        .map(|json| TestValue::Bytes(json.document()))
        .collect::<Vec<_>>();
    with_values(TestColumn::json(), &made, |values| {
        for (title, style) in [("server", JsonStyle::Server), ("debezium", JsonStyle::Debezium)] {
            group.bench_function(format!("json/text/{title}"), |bencher| {
                bencher.iter(|| {
                    for value in values {
                        let Value::Json(json) = value else { unreachable!() };
                        out.clear();
                        json.write_text(style, &mut out).expect("a document");
                        black_box(&out);
                    }
                });
            });
        }
    });
    group.finish();
}

/// Sets as they grow while a log is followed: one source that goes on, and many with gaps.
fn gtids(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gtid");
    let source = |byte: u8| Uuid::from_bytes([byte; 16]);
    group.throughput(Throughput::Elements(COUNT));
    group.bench_function("add/in_order", |bencher| {
        bencher.iter(|| {
            let mut set = GtidSet::new();
            for number in 1..=COUNT {
                set.add(Gtid::new(source(1), number)).expect("a number");
            }
            set
        });
    });
    let mut gaps = GtidSet::new();
    for number in 1..=COUNT {
        let byte = u8::try_from(number % 20).unwrap_or_default();
        gaps.add(Gtid::new(source(byte), number * 3)).expect("a number");
    }
    let text = gaps.to_string();
    group.bench_function("print/20_sources", |bencher| bencher.iter(|| gaps.to_string()));
    group.bench_function("parse/20_sources", |bencher| {
        bencher.iter(|| GtidSet::parse(black_box(&text)).expect("a set"));
    });
    let encoded = gaps.encode();
    group.bench_function("decode/20_sources", |bencher| {
        bencher.iter(|| GtidSet::decode(black_box(&encoded)).expect("a set"));
    });
    group.finish();
}

criterion_group!(benches, values, gtids);
criterion_main!(benches);
