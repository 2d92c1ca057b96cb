//! `holdfast-bench-peers DECODER FILE`: decodes a binlog with another crate, touches every value, and prints the line
//! that `holdfast_benches::pass` describes. `holdfast-bench-peers mysql_async PORT USER` receives the log of a server on
//! this machine and looks at the headers.
//!
//! Each decoder is used as its documentation shows, with the reader that suits it best.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, Cursor};
use std::process::ExitCode;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

#[derive(Debug, Default)]
struct Facts {
    transactions: u64,
    rows: u64,
    images: u64,
    cells: u64,
}

impl Facts {
    fn image<T>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.images += 1;
        for cell in cells {
            black_box(&cell);
            self.cells += 1;
        }
    }
}

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let (decoder, path, user) = match arguments.as_slice() {
        [decoder, path] => (decoder, path, ""),
        [decoder, port, user] => (decoder, port, user.as_str()),
        _ => {
            eprintln!("usage: holdfast-bench-peers DECODER FILE | mysql_async PORT USER");
            return ExitCode::from(2);
        }
    };
    let pass: fn(&str, &str) -> Result<Facts, Error> = match decoder.as_str() {
        "mysql_async" => mysql_async,
        "mysql_common" => mysql_common,
        "mysql-replication" => mysql_replication,
        "mysql_cdc" => mysql_cdc,
        "mysql-binlog-connector-rust" => mysql_binlog_connector_rust,
        other => {
            eprintln!("there is no decoder {other}");
            return ExitCode::from(2);
        }
    };
    let (started, cpu) = (Instant::now(), on_cpu());
    let mut passes = 0_u32;
    loop {
        let facts = match pass(path, user) {
            Ok(facts) => facts,
            Err(error) => {
                eprintln!("{decoder}: {error}");
                return ExitCode::FAILURE;
            }
        };
        passes += 1;
        let seconds = started.elapsed().as_secs_f64();
        if seconds > 0.5 {
            let count = f64::from(passes);
            let Facts { transactions, rows, images, cells } = facts;
            let cpu = (on_cpu() - cpu) / count;
            println!("{:.6} {cpu:.6} {transactions} {rows} {images} {cells}", seconds / count);
            return ExitCode::SUCCESS;
        }
    }
}

fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    nanos.unwrap_or_default() as f64 / 1e9
}

fn mysql_common(path: &str, _: &str) -> Result<Facts, Error> {
    use mysql_common::binlog::consts::BinlogVersion;
    use mysql_common::binlog::events::{Event, EventData};
    use mysql_common::binlog::{BinlogFile, EventStreamReader};

    fn count(facts: &mut Facts, event: &Event, reader: &EventStreamReader) -> Result<(), Error> {
        match event.read_data()? {
            Some(EventData::GtidEvent(_)) => facts.transactions += 1,
            Some(EventData::RowsEvent(rows)) => {
                let table = reader.get_tme(rows.table_id()).ok_or("no table map")?;
                for row in rows.rows(table) {
                    let (before, after) = row?;
                    facts.rows += 1;
                    for image in [before, after].into_iter().flatten() {
                        facts.image(image.unwrap());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    let mut facts = Facts::default();
    let mut file = BinlogFile::new(
        BinlogVersion::Version4,
        BufReader::with_capacity(1 << 20, File::open(path)?),
    )?;
    while let Some(event) = file.next() {
        let event = event?;
        if let Some(EventData::TransactionPayloadEvent(payload)) = event.read_data()? {
            let mut inner = payload.decompressed()?;
            while inner.has_data_left()? {
                let Some(event) = file.reader_mut().read_decompressed(&mut inner)? else { break };
                count(&mut facts, &event, file.reader())?;
            }
        } else {
            count(&mut facts, &event, file.reader())?;
        }
    }
    Ok(facts)
}

fn mysql_replication(path: &str, _: &str) -> Result<Facts, Error> {
    use mysql_replication::EventData;
    use mysql_replication::events::{Full, RowValue};
    use mysql_replication::file::BinlogFile;
    use mysql_replication::parser::ParserConfig;

    let mut facts = Facts::default();
    let file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut reader = BinlogFile::<_, Full>::new(file, ParserConfig::default())?;
    while let Some(event) = reader.next_event()? {
        match event.event {
            EventData::Gtid(_) => facts.transactions += 1,
            EventData::Rows(event) => {
                for row in event.rows()? {
                    let (before, after) = row?.operation.into_images();
                    facts.rows += 1;
                    for image in [before, after].into_iter().flatten() {
                        facts.images += 1;
                        for field in image.as_ref().fields() {
                            let value: RowValue<'_> = field?.value;
                            black_box(&value);
                            facts.cells += 1;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok(facts)
}

fn mysql_cdc(path: &str, _: &str) -> Result<Facts, Error> {
    use mysql_cdc::binlog_reader::BinlogReader;
    use mysql_cdc::events::binlog_event::BinlogEvent;

    let mut facts = Facts::default();
    let reader = BinlogReader::new(File::open(path)?).map_err(|error| format!("{error:?}"))?;
    for event in reader.read_events() {
        let (_, event) = event.map_err(|error| format!("{error:?}"))?;
        match event {
            BinlogEvent::MySqlGtidEvent(_) => facts.transactions += 1,
            BinlogEvent::WriteRowsEvent(event) => {
                for row in event.rows {
                    facts.rows += 1;
                    facts.image(row.cells);
                }
            }
            BinlogEvent::DeleteRowsEvent(event) => {
                for row in event.rows {
                    facts.rows += 1;
                    facts.image(row.cells);
                }
            }
            BinlogEvent::UpdateRowsEvent(event) => {
                for row in event.rows {
                    facts.rows += 1;
                    facts.image(row.before_update.cells);
                    facts.image(row.after_update.cells);
                }
            }
            _ => {}
        }
    }
    Ok(facts)
}

/// From memory: it seeks after every event, which empties a buffered reader.
fn mysql_binlog_connector_rust(path: &str, _: &str) -> Result<Facts, Error> {
    use mysql_binlog_connector_rust::binlog_parser::BinlogParser;
    use mysql_binlog_connector_rust::event::event_data::EventData;

    fn count(facts: &mut Facts, event: EventData) {
        match event {
            EventData::Gtid(_) => facts.transactions += 1,
            EventData::WriteRows(event) => {
                for row in event.rows {
                    facts.rows += 1;
                    facts.image(row.column_values);
                }
            }
            EventData::DeleteRows(event) => {
                for row in event.rows {
                    facts.rows += 1;
                    facts.image(row.column_values);
                }
            }
            EventData::UpdateRows(event) => {
                for (before, after) in event.rows {
                    facts.rows += 1;
                    facts.image(before.column_values);
                    facts.image(after.column_values);
                }
            }
            EventData::TransactionPayload(payload) => {
                for (_, event) in payload.uncompressed_events {
                    count(facts, event);
                }
            }
            _ => {}
        }
    }

    let mut facts = Facts::default();
    let bytes = std::fs::read(path)?;
    let len = bytes.len() as u64;
    let mut cursor = Cursor::new(bytes);
    let mut parser =
        BinlogParser { checksum_length: 0, table_map_event_by_table_id: Default::default() };
    parser.check_magic(&mut cursor).map_err(|error| format!("{error:?}"))?;
    while cursor.position() < len {
        let (_, event) = parser.next(&mut cursor).map_err(|error| format!("{error:?}"))?;
        count(&mut facts, event);
    }
    Ok(facts)
}

/// Over a connection, to the end of the log; only headers are looked at.
fn mysql_async(port: &str, user: &str) -> Result<Facts, Error> {
    use futures_util::StreamExt;
    use mysql_async::{BinlogStreamRequest, Conn, OptsBuilder};
    use mysql_common::binlog::consts::EventType;

    let options = OptsBuilder::default()
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port.parse()?)
        .user(Some(user))
        .prefer_socket(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let conn = Conn::new(options).await?;
        let request = BinlogStreamRequest::new(79_102).with_non_blocking().with_pos(4);
        let mut stream = conn.get_binlog_stream(request).await?;
        let mut facts = Facts::default();
        while let Some(event) = stream.next().await {
            let event = event?;
            let header = black_box(event.header());
            if header.event_type() == Ok(EventType::GTID_EVENT) {
                facts.transactions += 1;
            }
        }
        Ok(facts)
    })
}
