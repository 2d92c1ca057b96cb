//! What the benchmarks do with a corpus.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is counted is listed, and a test compares the counts with what was written"
)]

use std::hint::black_box;
use std::io::Read;

use holdfast_binlog::event::{EventHeader, EventType, PayloadReader, RawEvent};
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::row::{Row, RowSink, Side};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::{Error, Event, EventData, Value};

use crate::corpus::{FILE, Facts};

/// How much of a log is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Read the bytes, cut them into events, compute the checksum of each. The floor: nothing is decoded. Payload events
    /// stay compressed.
    Walk,
    /// Decode every event and every value, into a [`RowSink`].
    Sink,
    /// Decode every event and every value, into a [`Row`].
    Row,
    /// As [`Self::Sink`], and bring values to the form that records take: DECIMAL as an integer, DATETIME as
    /// microseconds since 1970, JSON as text.
    Final,
}

/// What a run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Found {
    /// What was counted.
    pub facts: Facts,
    /// Depends on every value (walk: on every event), so that no work can be left out.
    pub digest: u64,
}

/// Runs over a whole file.
///
/// # Errors
///
/// Whatever the decoder reports: a corpus has no errors.
pub fn run(reader: impl Read, work: Work) -> Result<Found, Error> {
    match work {
        Work::Walk => walk(reader),
        Work::Sink => decode(reader, &mut Touch::default()),
        Work::Final => decode(reader, &mut Finish::default()),
        Work::Row => decode_rows(reader),
    }
}

fn walk(reader: impl Read) -> Result<Found, Error> {
    let mut reader = BinlogFileReader::new(reader, FILE)?;
    let mut found = Found::default();
    while let Some(event) = reader.next_event()? {
        // No corpus has a transaction that is too large for memory.
        let event = event.memory().unwrap_or_default();
        if let Some((covered, _)) = event.split_last_chunk::<4>() {
            found.digest = found.digest.wrapping_add(crc32fast::hash(covered).into());
        }
        if let Ok(EventHeader { event_type: EventType::Gtid, .. }) = EventHeader::parse(event) {
            found.facts.transactions += 1;
        }
    }
    Ok(found)
}

/// Reads all events, those in payloads included.
///
/// # Errors
///
/// Whatever the decoder reports, and what `each` returns.
pub fn for_each_event(
    reader: impl Read,
    mut each: impl FnMut(&Event<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = BinlogFileReader::new(reader, FILE)?;
    let mut events = Events::new(FILE, StreamOptions::default());
    while let Some(bytes) = reader.next_event()? {
        events.each(bytes, &mut each)?;
    }
    Ok(())
}

/// Decodes events that are given one by one.
#[derive(Debug)]
pub struct Events {
    stream: EventStream,
    payloads: PayloadReader,
}

impl Events {
    /// Events from a place in `file` on.
    #[must_use]
    pub fn new(file: &str, options: StreamOptions) -> Self {
        Self { stream: EventStream::new(file, options), payloads: PayloadReader::default() }
    }

    /// Decodes an event and those that are in it.
    ///
    /// # Errors
    ///
    /// Whatever the decoder reports, and what `each` returns.
    #[inline]
    pub fn each(
        &mut self,
        bytes: RawEvent<'_>,
        each: &mut impl FnMut(&Event<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let decoded = self.stream.decode(bytes);
        // Left where it is: an event is large.
        let Ok(event) = &decoded else { return decoded.map(|_| ()) };
        each(event)?;
        if let EventData::TransactionPayload(payload) = event.data {
            let span = event.span();
            self.payloads.open(event, &payload)?;
            while let Some(bytes) = self.payloads.next_event()? {
                each(&self.stream.decode_nested(bytes, span)?)?;
            }
        }
        Ok(())
    }
}

fn decode<S: Count + for<'a> RowSink<'a>>(reader: impl Read, sink: &mut S) -> Result<Found, Error> {
    let mut facts = Facts::default();
    for_each_event(reader, |event| rows_into(event, sink, &mut facts))?;
    let (cells, digest) = sink.count();
    facts.cells = cells;
    Ok(Found { facts, digest })
}

/// Decodes every value that an event has, and counts all but them.
///
/// # Errors
///
/// Whatever the decoder reports.
#[inline]
pub fn rows_into<S: for<'a> RowSink<'a>>(
    event: &Event<'_>,
    sink: &mut S,
    facts: &mut Facts,
) -> Result<(), Error> {
    match &event.data {
        EventData::Gtid(gtid) => {
            black_box(gtid);
            facts.transactions += 1;
        }
        EventData::Rows { rows, table } => {
            let sides =
                rows.before_columns().is_some() as u64 + u64::from(rows.after_columns().is_some());
            let mut reader = rows.rows(table).map_err(|error| event.decode_error(error))?;
            while reader.read_into(sink).map_err(|error| event.row_error(table, error))? {
                facts.rows += 1;
                facts.images += sides;
            }
        }
        _ => {}
    }
    Ok(())
}

fn decode_rows(reader: impl Read) -> Result<Found, Error> {
    let mut found = Found::default();
    let mut kept = Some(Row::new());
    for_each_event(reader, |event| {
        match &event.data {
            EventData::Gtid(gtid) => {
                black_box(gtid);
                found.facts.transactions += 1;
            }
            EventData::Rows { rows, table } => {
                let mut row = kept.take().unwrap_or_default().recycle();
                let mut reader = rows.rows(table).map_err(|error| event.decode_error(error))?;
                while reader.read(&mut row).map_err(|error| event.row_error(table, error))? {
                    found.facts.rows += 1;
                    for image in [&row.before, &row.after] {
                        found.facts.images += u64::from(!image.is_empty());
                        for (_, value) in image.iter() {
                            found.facts.cells += 1;
                            found.digest = found.digest.wrapping_add(touch(&value));
                        }
                    }
                }
                kept = Some(row.recycle());
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(found)
}

/// A sink that counts.
pub trait Count {
    /// Values taken, and the digest of them.
    fn count(&self) -> (u64, u64);
}

/// Looks at every value.
#[derive(Debug, Default)]
pub struct Touch {
    /// Not as wide as the digest: two numbers of one width side by side are added to as a vector, whose load waits for
    /// the two stores of the value before.
    cells: u32,
    digest: u64,
}

impl Count for Touch {
    fn count(&self) -> (u64, u64) {
        (self.cells.into(), self.digest)
    }
}

impl<'a> RowSink<'a> for Touch {
    #[inline(always)]
    fn value(&mut self, _: Side, _: usize, value: Value<'a>) {
        self.cells += 1;
        self.digest = self.digest.wrapping_add(touch(&value));
    }
}

/// Brings every value to its final form.
#[derive(Debug, Default)]
pub struct Finish {
    /// As in [`Touch`].
    cells: u32,
    digest: u64,
    text: Vec<u8>,
}

impl Count for Finish {
    fn count(&self) -> (u64, u64) {
        (self.cells.into(), self.digest)
    }
}

impl<'a> RowSink<'a> for Finish {
    #[inline(always)]
    fn value(&mut self, _: Side, _: usize, value: Value<'a>) {
        self.cells += 1;
        let digest = match value {
            Value::Decimal(decimal) => match decimal.to_i128() {
                Some(number) => low(number),
                None => {
                    self.text.clear();
                    decimal.write_text(&mut self.text);
                    self.text.len() as u64
                }
            },
            Value::DateTime(datetime) => {
                datetime.micros_since_epoch().map_or(0, i64::cast_unsigned)
            }
            Value::Timestamp(timestamp) => timestamp.micros().cast_unsigned(),
            Value::Date(date) => date.days_since_epoch().map_or(0, i64::cast_unsigned),
            Value::Json(json) => {
                self.text.clear();
                let style = JsonStyle::Debezium;
                json.write_text(style, &mut self.text).map_or(0, |()| self.text.len() as u64)
            }
            other => touch(&other),
        };
        self.digest = self.digest.wrapping_add(digest);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a digest")]
const fn low(number: i128) -> u64 {
    number as u64
}

/// A number that depends on the value.
#[inline(always)]
fn touch(value: &Value<'_>) -> u64 {
    let text = |bytes: &[u8]| bytes.len() as u64 + bytes.first().map_or(0, |byte| u64::from(*byte));
    match *value {
        Value::Null => 1,
        Value::Int8(number) | Value::Year(number) => number.into(),
        Value::Int16(number) | Value::Enum(number) => number.into(),
        Value::Int24(number) | Value::Int32(number) => number.into(),
        Value::Int64(number) | Value::Set(number) => number,
        Value::Float(number) => number.to_bits().into(),
        Value::Double(number) => number.to_bits(),
        Value::Date(date) => u64::from(date.year) + u64::from(date.month) + u64::from(date.day),
        Value::Time(time) => time.micros.cast_unsigned(),
        Value::DateTime(datetime) => {
            u64::from(datetime.date.day) + u64::from(datetime.second) + u64::from(datetime.micro)
        }
        Value::Timestamp(timestamp) => u64::from(timestamp.seconds) + u64::from(timestamp.micro),
        Value::Bit(bytes)
        | Value::Bytes(bytes)
        | Value::JsonText(bytes)
        | Value::Geometry(bytes)
        | Value::Vector(bytes) => text(bytes),
        ref other => {
            black_box(other);
            2
        }
    }
}
