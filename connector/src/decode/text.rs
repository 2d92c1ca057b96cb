//! The format `text`: all events for people, close to `mysqlbinlog -v --base64-output=DECODE-ROWS`.

use std::io::Write as _;

use holdfast_binlog::Value;
use holdfast_binlog::event::{Event, EventData};
use holdfast_binlog::row::{Side, WireType};
use holdfast_binlog::value::{Date, JsonStyle, Time, Timestamp};
use holdfast_binlog::wire::DecodeError;

use super::Image;
use super::tables::{LogColumn, LogTable};
use super::{Statement, ValueError};
use crate::convert::Moment;

/// Bytes that a compressed value may have in the end: what a packet of the server can hold.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// Prints an event, but for its rows.
pub(super) fn event(event: &Event<'_>, statement: Option<&Statement<'_>>, out: &mut Vec<u8>) {
    let header = &event.header;
    put(out, format_args!("# at {}\n#", event.position));
    Moment::of(Timestamp { seconds: header.timestamp, micro: 0, fsp: 0 }).write(Some(0), out);
    put(
        out,
        format_args!(
            " server id {}  end_log_pos {}  {}",
            header.server_id,
            event.end,
            header.event_type.name()
        ),
    );
    match &event.data {
        EventData::FormatDescription(format) => {
            put(out, format_args!("  server v {}", format.server_version));
        }
        EventData::Rotate(rotate) => {
            put(out, format_args!("  to {}  pos: {}", rotate.file, rotate.position));
        }
        EventData::Gtid(gtid) => match gtid.gtid {
            Some(gtid) => put(out, format_args!("  {gtid}")),
            None => put(out, format_args!("  ANONYMOUS")),
        },
        EventData::MariaDbGtid(gtid) => put(out, format_args!("  {}", gtid.gtid)),
        EventData::Query(query) => put(
            out,
            format_args!(
                "  thread_id={}  exec_time={}  error_code={}",
                query.thread_id, query.execution_time, query.error_code
            ),
        ),
        EventData::TableMap(map) => put(
            out,
            format_args!(
                "  {}.{} mapped to number {}",
                Name(map.database()),
                Name(map.table()),
                map.table_id()
            ),
        ),
        EventData::Rows { rows, table } => {
            put(out, format_args!("  table id {}", table.table_id()));
            if rows.ends_statement() {
                put(out, format_args!("  flags: STMT_END_F"));
            }
        }
        EventData::Xid(xid) => put(out, format_args!("  Xid = {xid}")),
        EventData::TransactionPayload(payload) => {
            put(out, format_args!("  uncompressed_size={}", payload.uncompressed_size))
        }
        EventData::Incident(incident) => put(
            out,
            format_args!("  {} {}", incident.code, String::from_utf8_lossy(incident.message)),
        ),
        EventData::MariaDbBinlogCheckpoint(file) => {
            put(out, format_args!("  {}", String::from_utf8_lossy(file)));
        }
        EventData::RowsFragment(part) => {
            put(out, format_args!("  fragment {} of {}", part.number, part.count));
        }
        EventData::Stop
        | EventData::PreviousGtids(_)
        | EventData::XaPrepare(_)
        | EventData::RowsQuery(_)
        | EventData::Heartbeat(_)
        | EventData::StatementContext
        | EventData::MariaDbGtidList(_)
        | EventData::Ignored
        | _ => {}
    }
    out.push(b'\n');
    if let EventData::RowsQuery(text) = &event.data {
        for line in String::from_utf8_lossy(text).lines() {
            put(out, format_args!("# {line}\n"));
        }
    }
    if let Some(statement) = statement {
        if !statement.database.is_empty() && !statement.is_control() {
            put(out, format_args!("use {};\n", Name(&statement.database)));
        }
        put(out, format_args!("{}\n/*!*/;\n", statement.text()));
    }
}

/// Prints a row.
pub(super) fn row(
    table: &LogTable,
    before: Option<Image<'_, '_>>,
    after: Option<Image<'_, '_>>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let verb = match (before, after) {
        (None, _) => "INSERT INTO",
        (Some(_), Some(_)) => "UPDATE",
        (Some(_), None) => "DELETE FROM",
    };
    put(
        out,
        format_args!("### {verb} {}.{}\n", Name(table.map.database()), Name(table.map.table())),
    );
    if let Some(before) = before {
        out.extend_from_slice(b"### WHERE\n");
        image(table, Side::Before, before, out)?;
    }
    if let Some(after) = after {
        out.extend_from_slice(b"### SET\n");
        image(table, Side::After, after, out)?;
    }
    Ok(())
}

/// A name in backticks.
struct Name<'a>(&'a str);

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`")?;
        for (index, part) in self.0.split('`').enumerate() {
            if index > 0 {
                f.write_str("``")?;
            }
            f.write_str(part)?;
        }
        f.write_str("`")
    }
}

/// Appends; a vector takes everything.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn image(
    table: &LogTable,
    side: Side,
    image: Image<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    for (index, column) in table.columns.iter().enumerate() {
        let Some(value) = image.get(index) else { continue };
        put(out, format_args!("###   @{}=", index + 1));
        let wire = table.map.columns().get(index).map(|column| column.wire_type);
        write_value(&value, wire, column, out)
            .map_err(|error| ValueError::Decode(side, index, error))?;
        if let Some(name) = &column.name {
            put(out, format_args!(" /* {} */", name.replace("*/", "* /")));
        }
        out.push(b'\n');
    }
    Ok(())
}

fn write_value(
    value: &Value<'_>,
    wire: Option<WireType>,
    column: &LogColumn,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    match *value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int8(bits) => integer(column, bits.into(), bits.cast_signed().into(), out),
        Value::Int16(bits) => integer(column, bits.into(), bits.cast_signed().into(), out),
        Value::Int24(bits) => {
            integer(column, bits.into(), ((bits << 8).cast_signed() >> 8).into(), out);
        }
        Value::Int32(bits) => integer(column, bits.into(), bits.cast_signed().into(), out),
        Value::Int64(bits) => integer(column, bits, bits.cast_signed(), out),
        Value::Float(number) => put(out, format_args!("{number:?}")),
        Value::Double(number) => put(out, format_args!("{number:?}")),
        Value::Decimal(number) => number.write_text(out),
        Value::Bit(bytes) => {
            let declared = match wire {
                Some(WireType::Bit { bits }) => usize::from(bits),
                _ => bytes.len() * 8,
            };
            write_bits(bytes, declared, out);
        }
        Value::Year(0) => out.extend_from_slice(b"0000"),
        Value::Year(year) => put(out, format_args!("{}", 1900 + u16::from(year))),
        Value::Date(Date { year, month, day }) => {
            put(out, format_args!("'{year:04}-{month:02}-{day:02}'"));
        }
        Value::Time(Time { micros, fsp }) => {
            let sign = if micros < 0 { "-" } else { "" };
            let micros = micros.unsigned_abs();
            let seconds = micros / 1_000_000;
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            put(out, format_args!("'{sign}{hour:02}:{minute:02}:{second:02}"));
            fraction(micros % 1_000_000, fsp, out);
        }
        Value::DateTime(time) => {
            let Date { year, month, day } = time.date;
            let (hour, minute, second) = (time.hour, time.minute, time.second);
            put(
                out,
                format_args!("'{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"),
            );
            fraction(time.micro.into(), time.fsp, out);
        }
        Value::Timestamp(time) if time.is_zero() => {
            out.extend_from_slice(b"'0000-00-00 00:00:00'");
        }
        Value::Timestamp(time) => {
            out.push(b'\'');
            Moment::of(time).write(Some(time.fsp), out);
            out.push(b'\'');
        }
        Value::Bytes(bytes) => write_bytes(bytes, column, out),
        Value::Compressed(compressed) => {
            let mut plain = Vec::new();
            compressed.decompress(MAX_VALUE_BYTES, &mut plain)?;
            write_bytes(&plain, column, out);
        }
        Value::Enum(index) => put(out, format_args!("{index}")),
        Value::Set(bits) => put(out, format_args!("{bits}")),
        Value::Json(document) => {
            let mut text = Vec::new();
            document.write_text(JsonStyle::Server, &mut text)?;
            write_text(&String::from_utf8_lossy(&text), out);
        }
        Value::JsonText(text) => write_text(&String::from_utf8_lossy(text), out),
        Value::JsonDiffs(diffs) => write_hex(diffs.0, out),
        Value::Geometry(bytes) => write_hex(bytes, out),
        Value::Vector(bytes) => write_vector(bytes, out),
        // A kind of value that did not exist when this was written.
        _ => out.extend_from_slice(b"?"),
    }
    Ok(())
}

/// Appends the last `declared` bits of `bytes`.
fn write_bits(bytes: &[u8], declared: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(b"b'");
    let start = out.len();
    for byte in bytes {
        put(out, format_args!("{byte:08b}"));
    }
    let padding = (out.len() - start).saturating_sub(declared);
    out.drain(start..start + padding);
    out.push(b'\'');
}

/// Appends little-endian 32-bit floats as a list; bytes that are no whole floats as they are.
fn write_vector(bytes: &[u8], out: &mut Vec<u8>) {
    let (floats, []) = bytes.as_chunks::<4>() else { return write_hex(bytes, out) };
    out.push(b'[');
    for (index, float) in floats.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        put(out, format_args!("{comma}{:?}", f32::from_le_bytes(*float)));
    }
    out.push(b']');
}

fn integer(column: &LogColumn, unsigned: u64, signed: i64, out: &mut Vec<u8>) {
    if column.unsigned {
        put(out, format_args!("{unsigned}"));
    } else {
        put(out, format_args!("{signed}"));
    }
}

/// Appends so many digits of a fraction, and the closing quote.
fn fraction(micros: u64, digits: u8, out: &mut Vec<u8>) {
    if digits > 0 {
        let start = out.len();
        put(out, format_args!(".{micros:06}"));
        out.truncate(start + 1 + usize::from(digits.min(6)));
    }
    out.push(b'\'');
}

fn write_bytes(bytes: &[u8], column: &LogColumn, out: &mut Vec<u8>) {
    match column.charset {
        Some(charset) => write_text(&charset.decode(bytes), out),
        None => {
            out.push(b'\'');
            for &byte in bytes {
                match byte {
                    b' '..=b'~' if byte != b'\'' && byte != b'\\' => out.push(byte),
                    _ => put(out, format_args!("\\x{byte:02x}")),
                }
            }
            out.push(b'\'');
        }
    }
}

/// Appends text in quotes; quotes, backslashes and control characters as `\x27`.
fn write_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'\'');
    for character in text.chars() {
        if character.is_ascii_control() || character == '\'' || character == '\\' {
            put(out, format_args!("\\x{:02x}", u32::from(character)));
        } else {
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.push(b'\'');
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"x'");
    for byte in bytes {
        put(out, format_args!("{byte:02x}"));
    }
    out.push(b'\'');
}
