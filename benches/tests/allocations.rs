//! What the decode path allocates: nothing, once it has seen each table.
//!
//! Counted on a whole corpus after one pass over the same bytes has let the buffers grow. A pass includes table maps,
//! GTIDs, statements and commits, so this holds per transaction as well as per row.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a panic fails the test")]

use std::error::Error;
use std::hint::black_box;

use holdfast_benches::corpus::{self, Corpus, FILE};
use holdfast_binlog::event::{EventHeader, EventType, PayloadReader};
use holdfast_binlog::row::{Row, RowSink, Side};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::{EventData, Value};

/// What is done with an event.
type Each<'a> = &'a mut dyn FnMut(&EventData<'_>) -> Result<(), Box<dyn Error>>;

/// Cells seen.
struct Cells(u64);

impl<'a> RowSink<'a> for Cells {
    fn value(&mut self, _: Side, _: usize, value: Value<'a>) {
        black_box(value);
        self.0 += 1;
    }
}

/// The events of a file, each with all its bytes.
fn events(corpus: &Corpus) -> Vec<&[u8]> {
    let mut rest = &corpus.bytes[4..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let size = EventHeader::parse(rest).unwrap().event_size as usize;
        let (event, tail) = rest.split_at(size);
        events.push(event);
        rest = tail;
    }
    events
}

/// Decodes everything; nested events too.
fn pass(
    events: &[&[u8]],
    stream: &mut EventStream,
    payloads: &mut PayloadReader,
    each: Each<'_>,
) -> Result<(), Box<dyn Error>> {
    for bytes in events {
        let event = stream.decode(*bytes)?;
        each(&event.data)?;
        if let EventData::TransactionPayload(payload) = event.data {
            let span = event.span();
            payloads.open(&event, &payload)?;
            while let Some(bytes) = payloads.next_event()? {
                each(&stream.decode_nested(bytes, span)?.data)?;
            }
        }
    }
    Ok(())
}

/// Counts the allocations of a second pass over the corpus, without its format description.
fn allocations(corpus: &Corpus, each: Each<'_>) -> u64 {
    let events = events(corpus);
    let format = EventHeader::parse(events[0]).unwrap().event_type;
    assert_eq!(format, EventType::FormatDescription);
    let mut stream = EventStream::new(FILE, StreamOptions::default());
    let mut payloads = PayloadReader::default();
    pass(&events, &mut stream, &mut payloads, each).unwrap();
    stream.seek(4 + events[0].len() as u64);
    let counted = allocation_counter::measure(|| {
        pass(&events[1..], &mut stream, &mut payloads, each).unwrap();
    });
    counted.count_total
}

#[test]
fn a_sink_gets_every_value_without_an_allocation() {
    for name in ["narrow", "wide", "blob", "compressed"] {
        let corpus = corpus::by_name(name, 600_000).unwrap();
        let mut cells = Cells(0);
        let count = allocations(&corpus, &mut |data| {
            if let EventData::Rows { rows, table } = data {
                let mut reader = rows.rows(table)?;
                while reader.read_into(&mut cells)? {}
            }
            Ok(())
        });
        assert_eq!(cells.0, 2 * corpus.facts.cells, "{name}");
        assert_eq!(count, 0, "{name}");
    }
}

#[test]
fn a_reused_row_is_filled_without_an_allocation() {
    for name in ["narrow", "wide", "blob", "compressed"] {
        let corpus = corpus::by_name(name, 600_000).unwrap();
        let mut cells = 0;
        let mut kept = Some(Row::new());
        let count = allocations(&corpus, &mut |data| {
            if let EventData::Rows { rows, table } = data {
                let mut row = kept.take().unwrap_or_default().recycle();
                let mut reader = rows.rows(table)?;
                while reader.read(&mut row)? {
                    cells += row.before.iter().count() + row.after.iter().count();
                }
                kept = Some(row.recycle());
            }
            Ok(())
        });
        assert_eq!(cells as u64, 2 * corpus.facts.cells, "{name}");
        assert_eq!(count, 0, "{name}");
    }
}

#[test]
fn the_counter_sees_an_allocation() {
    let corpus = corpus::narrow(100_000);
    let mut lengths = 0;
    let count = allocations(&corpus, &mut |data| {
        if let EventData::Gtid(gtid) = data {
            lengths += gtid.gtid.unwrap().to_string().len();
        }
        Ok(())
    });
    assert!(lengths > 0);
    assert!(count >= corpus.facts.transactions, "{count}");
}
