//! Bytes of a log: events, table maps, rows, compressed transactions.

use std::sync::LazyLock;

use holdfast_binlog::event::table_map::{Dialect, TableIdWidth, TableMap};
use holdfast_binlog::event::{ChecksumAlgorithm, EventData, EventHeader, PayloadReader, RawEvent};
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::row::{Row, RowSink, Side};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::testkit::{LogBuilder, LogOptions, TestServer};
use holdfast_binlog::value::{JsonBinary, JsonStyle};
use holdfast_binlog::{Error, Event, GtidSet, Value};

/// Most bytes that an event may have once it is decompressed.
const MAX_EVENT_SIZE: usize = 1 << 20;

/// Type code of a table map.
const TABLE_MAP: u8 = 19;

/// Type code of a compressed transaction.
const TRANSACTION_PAYLOAD: u8 = 40;

/// Type codes of the events that carry rows.
const ROWS: [u8; 13] = [23, 24, 25, 30, 31, 32, 39, 166, 167, 168, 169, 170, 171];

/// The bytes are what follows the format description of a file, of MySQL where the first byte is even and of MariaDB
/// where it is odd. All events are decoded, and all their rows.
///
/// # Panics
///
/// When something that was decoded is not what its description says.
pub fn event(data: &[u8]) {
    let Some((flavor, rest)) = data.split_first() else { return };
    let flavor = if flavor & 1 == 0 { TestServer::MySql } else { TestServer::MariaDb };
    let mut file = begun(flavor).into_bytes();
    file.extend_from_slice(rest);
    let Ok(mut reader) = BinlogFileReader::new(file.as_slice(), "f.000001") else { return };
    let mut log = Log::new();
    while let Ok(Some(bytes)) = reader.next_event() {
        let _ = log.event(bytes);
    }
}

/// A table map and a rows event of its table: the first byte chooses the rows event's type, two bytes are the length of the
/// table map's body, which follows, and what is left is the body of the rows event.
///
/// # Panics
///
/// As [`event`].
pub fn rows(data: &[u8]) {
    let [kind, low, high, rest @ ..] = data else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((map, rows)) = rest.split_at_checked(len) else { return };
    let kind = ROWS.get(usize::from(*kind) % ROWS.len()).copied().unwrap_or(30);
    let mut log = Log::begun();
    let _ = log.event((&event_of(TABLE_MAP, map)).into());
    let _ = log.event((&event_of(kind, rows)).into());
}

/// The body of a table map, with its optional metadata as MySQL and as MariaDB understand it.
///
/// # Panics
///
/// When the map says something else of itself than what it was made of.
pub fn table_map(data: &[u8]) {
    for width in [TableIdWidth::Six, TableIdWidth::Four] {
        let Ok(map) = TableMap::parse(data, width) else { continue };
        assert!(map.same_as(data));
        for index in 0..map.columns().len() {
            assert!(map.column(index).is_some());
        }
        for dialect in [Dialect::MySql, Dialect::MariaDb] {
            let _ = map.optional_metadata(dialect).map(|metadata| format!("{metadata:?}"));
        }
    }
}

/// The body of a compressed transaction.
///
/// # Panics
///
/// As [`event`].
pub fn payload(data: &[u8]) {
    let _ = Log::begun().event((&event_of(TRANSACTION_PAYLOAD, data)).into());
}

/// A file with a format description and without checksums.
fn begun(server: TestServer) -> LogBuilder {
    let options = LogOptions { server, checksum: ChecksumAlgorithm::None, ..LogOptions::default() };
    LogBuilder::with_options("f.000001", options)
}

/// An event without a checksum.
fn event_of(kind: u8, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(EventHeader::SIZE + body.len()).unwrap_or(u32::MAX);
    let mut event = Vec::with_capacity(EventHeader::SIZE + body.len());
    event.extend_from_slice(&[0, 0, 0, 0, kind, 1, 0, 0, 0]);
    event.extend_from_slice(&size.to_le_bytes());
    event.extend_from_slice(&[0; 6]);
    event.extend_from_slice(body);
    event
}

/// A log that is being decoded, every value of it.
struct Log {
    stream: EventStream,
    payloads: PayloadReader,
}

impl Log {
    fn new() -> Self {
        let options = StreamOptions {
            verify_checksums: false,
            max_event_size: MAX_EVENT_SIZE as u64,
            max_table_maps: 64,
            max_table_map_bytes: 1 << 20,
            ..StreamOptions::default()
        };
        Self {
            stream: EventStream::new("f.000001", options),
            payloads: PayloadReader::new(MAX_EVENT_SIZE),
        }
    }

    /// One whose format description, without checksums, has come.
    fn begun() -> Self {
        static FORMAT: LazyLock<Vec<u8>> = LazyLock::new(|| {
            begun(TestServer::MySql).events().next().map(<[u8]>::to_vec).unwrap_or_default()
        });
        let mut log = Self::new();
        log.event(FORMAT.as_slice().into()).expect("the format description is one");
        log
    }

    fn event(&mut self, bytes: RawEvent<'_>) -> Result<(), Error> {
        let event = self.stream.decode(bytes)?;
        look(&event)?;
        if let EventData::TransactionPayload(payload) = event.data {
            let span = event.span();
            self.payloads.open(&event, &payload)?;
            while let Some(bytes) = self.payloads.next_event()? {
                look(&self.stream.decode_nested(bytes, span)?)?;
            }
        }
        Ok(())
    }
}

/// Looks at everything that an event says.
fn look(event: &Event<'_>) -> Result<(), Error> {
    if let EventData::PreviousGtids(bytes) = event.data
        && let Ok(set) = GtidSet::decode(bytes)
    {
        assert_eq!(GtidSet::decode(&set.encode()).as_ref(), Ok(&set));
    }
    let EventData::Rows { rows, table } = &event.data else {
        // Lists decode as they are printed.
        let _ = format!("{:?}", event.data);
        return Ok(());
    };
    let mut reader = rows.rows(table).map_err(|error| event.decode_error(error))?;
    let mut again = reader.clone();
    let mut row = Row::new();
    loop {
        let index = reader.row_index();
        let read = reader.read(&mut row);
        let mut sink = Seen::default();
        let seen = again.read_into(&mut sink);
        assert_eq!(read, seen, "row {index} by two ways");
        if !read.map_err(|error| event.row_error(table, error))? {
            return Ok(());
        }
        let before = row.before.iter().map(|(column, value)| (Side::Before, column, value));
        let after = row.after.iter().map(|(column, value)| (Side::After, column, value));
        let values = before.chain(after).collect::<Vec<_>>();
        assert_eq!(values.len(), sink.0.len(), "row {index} by two ways");
        for ((_, column, value), (_, other_column, other)) in values.iter().zip(&sink.0) {
            assert_eq!(column, other_column);
            assert_eq!(format!("{value:?}"), format!("{other:?}"));
            finish(value, &row);
        }
    }
}

#[derive(Default)]
struct Seen<'a>(Vec<(Side, usize, Value<'a>)>);

impl<'a> RowSink<'a> for Seen<'a> {
    fn value(&mut self, side: Side, column: usize, value: Value<'a>) {
        self.0.push((side, column, value));
    }
}

/// Brings a value to its final form.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are in their final form")]
fn finish(value: &Value<'_>, row: &Row<'_>) {
    let mut text = Vec::new();
    match value {
        Value::Decimal(decimal) => super::value::check_decimal(decimal),
        Value::Json(json) => {
            for style in [JsonStyle::Server, JsonStyle::Debezium] {
                let _ = json.write_text(style, &mut text);
            }
        }
        Value::JsonDiffs(diffs) => {
            let before = row.before.iter().find_map(|(_, value)| match value {
                Value::Json(json) => Some(json),
                _ => None,
            });
            let before = before.unwrap_or(JsonBinary(&[]));
            let _ = diffs.write_text(before, JsonStyle::Server, &mut text);
        }
        Value::Compressed(compressed) => {
            let _ = compressed.decompress(MAX_EVENT_SIZE, &mut text);
            assert!(text.len() <= MAX_EVENT_SIZE);
        }
        Value::DateTime(datetime) => {
            let _ = datetime.micros_since_epoch();
        }
        Value::Date(date) => {
            let _ = date.days_since_epoch();
        }
        Value::Timestamp(timestamp) => assert!(timestamp.micros() >= 0),
        _ => {}
    }
}
