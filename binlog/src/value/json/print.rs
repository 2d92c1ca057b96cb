//! Documents as text, straight from their bytes.

use std::io::Write as _;

use super::layout::{self, Container, Json, SmallEntries, kind};
use super::{JsonStyle, number};
use crate::value::Decimal;
use crate::value::base64::{STANDARD, last_four};
use crate::value::digits::{write_i64, write_u64};
use crate::value::plain::write_plain;
use crate::wire::{Cursor, DecodeError};

/// Most containers inside each other (MySQL, `JSON_DOCUMENT_MAX_DEPTH`).
pub(super) const MAX_DEPTH: u32 = 100;

/// Prints values and counts the bytes they take in their document. Nothing that a server wrote takes more than the
/// document has, since there no byte belongs to two values.
pub(super) struct Printer<'o> {
    style: JsonStyle,
    /// Bytes that are not accounted for yet.
    budget: usize,
    depth: u32,
    marks: &'static Marks,
    out: &'o mut Vec<u8>,
}

impl<'o> Printer<'o> {
    pub(super) const fn new(style: JsonStyle, budget: usize, out: &'o mut Vec<u8>) -> Self {
        let marks = match style {
            JsonStyle::Server => &SERVER,
            JsonStyle::Debezium => &DEBEZIUM,
        };
        Self { style, budget, depth: 0, marks, out }
    }

    /// Prints what is to stand inside a string of JSON.
    pub(super) const fn quoted(mut self) -> Self {
        self.marks = match self.style {
            JsonStyle::Server => &SERVER_QUOTED,
            JsonStyle::Debezium => &DEBEZIUM_QUOTED,
        };
        self
    }

    /// How far the text goes.
    pub(super) const fn written(&self) -> usize {
        self.out.len()
    }

    /// Takes back what was printed since it went so far.
    pub(super) fn take_back(&mut self, written: usize) {
        self.out.truncate(written);
    }

    #[inline]
    pub(super) fn value(&mut self, value: Json<'_>) -> Result<(), DecodeError> {
        match value {
            Json::Null => self.out.extend_from_slice(b"null"),
            Json::Bool(true) => self.out.extend_from_slice(b"true"),
            Json::Bool(false) => self.out.extend_from_slice(b"false"),
            Json::Int(int) => write_i64(int, self.out),
            Json::UInt(int) => write_u64(int, self.out),
            Json::Double(double) => number::write_double(double, self.out)?,
            Json::String(text) => {
                self.spend(text.len())?;
                self.string(text)?;
            }
            Json::Opaque { kind, bytes } => {
                self.spend(bytes.len())?;
                let start = self.written();
                self.opaque(kind, bytes)?;
                self.quote_from(start);
            }
            Json::Container(container) => self.container(container)?,
        }
        Ok(())
    }

    #[inline(never)]
    fn container(&mut self, container: Container<'_>) -> Result<(), DecodeError> {
        self.spend(container.header_len())?;
        self.open(container.is_object)?;
        match container.small_entries() {
            Some(entries) => self.small(&container, entries)?,
            None => {
                let mut entries = container.entries();
                for index in 0..container.count() {
                    if container.is_object {
                        let key = entries.key()?;
                        self.spend(key.len())?;
                        self.key(index, key)?;
                    } else {
                        self.element(index);
                    }
                    self.value(entries.value()?)?;
                }
            }
        }
        self.close(container.is_object);
        Ok(())
    }

    /// Prints what is in a small container, which nearly all are. The commonest values are printed where they are found.
    #[inline]
    fn small(
        &mut self,
        container: &Container<'_>,
        entries: SmallEntries<'_>,
    ) -> Result<(), DecodeError> {
        let mut keys = entries.keys.iter();
        for (index, [kind, low, high]) in entries.values.iter().enumerate() {
            // An array has none.
            match keys.next() {
                Some(entry) => {
                    let key = container.small_key(*entry)?;
                    self.spend(key.len())?;
                    self.key(index, key)?;
                }
                None => self.element(index),
            }
            let inline = [*low, *high];
            match *kind {
                kind::INT16 => write_i64(i16::from_le_bytes(inline).into(), self.out),
                kind::UINT16 => write_u64(u16::from_le_bytes(inline).into(), self.out),
                kind::LITERAL => match low {
                    0 => self.out.extend_from_slice(b"null"),
                    1 => self.out.extend_from_slice(b"true"),
                    2 => self.out.extend_from_slice(b"false"),
                    other => self.value(layout::literal(*other)?)?,
                },
                kind => {
                    let offset = u16::from_le_bytes(inline);
                    let bytes = container.outside_header(offset.into(), "json value")?;
                    match (kind, layout::short_text(bytes), bytes.first_chunk()) {
                        (kind::STRING, Some(text), _) => {
                            self.spend(text.len())?;
                            self.string(text)?;
                        }
                        (kind::DOUBLE, _, Some(double)) => {
                            number::write_double(f64::from_le_bytes(*double), self.out)?;
                        }
                        _ => self.value(layout::value(kind, bytes)?)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts an object or array.
    pub(super) fn open(&mut self, is_object: bool) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(DecodeError::Invalid { field: "json depth", value: self.depth.into() });
        }
        self.out.push(if is_object { b'{' } else { b'[' });
        Ok(())
    }

    /// Starts the member with this index.
    #[inline]
    pub(super) fn key(&mut self, index: usize, key: &[u8]) -> Result<(), DecodeError> {
        let start = self.written();
        let before = if index > 0 { &self.marks.next_key } else { &self.marks.quote };
        before.write(self.out);
        if write_plain(key, self.out) {
            self.marks.key_end.write(self.out);
            return Ok(());
        }
        self.take_back(start);
        self.element(index);
        self.string(key)?;
        self.marks.colon.write(self.out);
        Ok(())
    }

    /// Starts the element with this index.
    #[inline]
    pub(super) fn element(&mut self, index: usize) {
        if index > 0 {
            self.marks.comma.write(self.out);
        }
    }

    /// Ends an object or array.
    pub(super) fn close(&mut self, is_object: bool) {
        self.depth -= 1;
        self.out.push(if is_object { b'}' } else { b']' });
    }

    #[inline]
    fn spend(&mut self, bytes: usize) -> Result<(), DecodeError> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(DecodeError::Unsupported { what: "json with parts that overlap" }),
        }
    }

    #[inline]
    fn string(&mut self, text: &[u8]) -> Result<(), DecodeError> {
        // Nearly all strings and keys are of these bytes.
        let start = self.written();
        self.marks.quote.write(self.out);
        if write_plain(text, self.out) {
            self.marks.quote.write(self.out);
            return Ok(());
        }
        self.take_back(start);
        self.escaped(text)?;
        self.quote_from(start);
        Ok(())
    }

    /// Escapes what was printed with plain quotes, where it stands inside a string.
    fn quote_from(&mut self, start: usize) {
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\');
        if self.marks.quote.len == 1 {
            return;
        }
        let end = self.out.len();
        let printed = self.out.get(start..).unwrap_or_default();
        let added = printed.iter().filter(|byte| is_special(byte)).count();
        self.out.resize(end + added, 0);
        // From the last byte on, so that none is overwritten before it was moved.
        let (mut from, mut to) = (end, end + added);
        while from < to {
            from -= 1;
            let byte = self.out.get(from).copied().unwrap_or_default();
            for written in [Some(byte), is_special(&byte).then_some(b'\\')].into_iter().flatten() {
                to -= 1;
                if let Some(place) = self.out.get_mut(to) {
                    *place = written;
                }
            }
        }
    }

    #[inline(never)]
    fn escaped(&mut self, text: &[u8]) -> Result<(), DecodeError> {
        if let Err(error) = std::str::from_utf8(text) {
            let value = error.valid_up_to() as u64;
            return Err(DecodeError::Invalid { field: "json string (not UTF-8) at", value });
        }
        self.out.push(b'"');
        let mut plain = text;
        while let Some(at) = plain.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)) {
            let (before, from) = plain.split_at_checked(at).unwrap_or_default();
            let Some((byte, rest)) = from.split_first() else { break };
            self.out.extend_from_slice(before);
            self.escape(*byte)?;
            plain = rest;
        }
        self.out.extend_from_slice(plain);
        self.out.push(b'"');
        Ok(())
    }

    fn escape(&mut self, byte: u8) -> Result<(), DecodeError> {
        let short = match byte {
            b'"' | b'\\' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            _ => {
                return match self.style {
                    JsonStyle::Server => self.format(format_args!("\\u{byte:04x}")),
                    JsonStyle::Debezium => self.format(format_args!("\\u{byte:04X}")),
                };
            }
        };
        self.out.extend_from_slice(&[b'\\', short]);
        Ok(())
    }

    /// Prints a value of a column type: the types that the server wraps in JSON without a JSON type of their own.
    fn opaque(&mut self, kind: u8, bytes: &[u8]) -> Result<(), DecodeError> {
        match kind {
            0 | 246 => {
                let mut cursor = Cursor::new(bytes);
                let precision = cursor.u8("json decimal precision")?;
                let scale = cursor.u8("json decimal scale")?;
                Decimal::parse(cursor.rest(), precision, scale)?.write_text(self.out);
                Ok(())
            }
            10 => {
                let packed = Packed::read(bytes)?;
                let (year, month, day) = packed.date();
                self.format(format_args!("\"{year:04}-{month:02}-{day:02}\""))
            }
            7 | 12 | 17 | 18 => {
                let packed = Packed::read(bytes)?;
                let (year, month, day) = packed.date();
                self.format(format_args!("\"{year:04}-{month:02}-{day:02} "))?;
                self.clock(packed, packed.clock >> 12 & 31)
            }
            11 | 19 => {
                let packed = Packed::read(bytes)?;
                self.out.push(b'"');
                if packed.negative {
                    self.out.push(b'-');
                }
                self.clock(packed, packed.clock >> 12 & 1023)
            }
            _ => {
                self.out.push(b'"');
                if self.style == JsonStyle::Server {
                    self.format(format_args!("base64:type{kind}:"))?;
                }
                self.base64(bytes);
                self.out.push(b'"');
                Ok(())
            }
        }
    }

    /// Prints a time of day, its fraction and the closing quote.
    fn clock(&mut self, packed: Packed, hour: u64) -> Result<(), DecodeError> {
        let (minute, second) = (packed.clock >> 6 & 63, packed.clock & 63);
        self.format(format_args!("{hour:02}:{minute:02}:{second:02}"))?;
        let micro = packed.micro;
        match self.style {
            JsonStyle::Server => self.format(format_args!(".{micro:06}"))?,
            JsonStyle::Debezium if micro == 0 => {}
            JsonStyle::Debezium => {
                self.format(format_args!(".{micro:06}"))?;
                while let Some(b'0') = self.out.last() {
                    self.out.pop();
                }
            }
        }
        self.out.push(b'"');
        Ok(())
    }

    fn base64(&mut self, bytes: &[u8]) {
        // The server's encoder breaks lines after 76 digits (MySQL, `include/base64.h`), which the string then escapes.
        let line = if self.style == JsonStyle::Server { 76 / 4 } else { usize::MAX };
        for (index, chunk) in bytes.chunks(3).enumerate() {
            if index > 0 && index % line == 0 {
                self.out.extend_from_slice(b"\\n");
            }
            let mut group = [0; 4];
            for (to, from) in group.iter_mut().skip(1).zip(chunk) {
                *to = *from;
            }
            let group = u32::from_be_bytes(group);
            let digits = last_four(STANDARD, group.into(), chunk.len());
            self.out.extend_from_slice(&digits);
        }
    }

    /// Formats into the vector, which never fails.
    fn format(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), DecodeError> {
        self.out.write_fmt(text).map_err(|_| DecodeError::Unsupported { what: "json text" })
    }
}

/// What stands between values.
struct Marks {
    comma: Mark,
    /// With a backslash inside a string of JSON.
    quote: Mark,
    /// A comma and a quote.
    next_key: Mark,
    /// A quote and a colon.
    key_end: Mark,
    colon: Mark,
}

const SERVER: Marks = Marks::new([b", ", b"\"", b", \"", b"\": ", b": "]);
const SERVER_QUOTED: Marks = Marks::new([b", ", b"\\\"", b", \\\"", b"\\\": ", b": "]);
const DEBEZIUM: Marks = Marks::new([b",", b"\"", b",\"", b"\":", b":"]);
const DEBEZIUM_QUOTED: Marks = Marks::new([b",", b"\\\"", b",\\\"", b"\\\":", b":"]);

impl Marks {
    const fn new([comma, quote, next_key, key_end, colon]: [&[u8]; 5]) -> Self {
        Self {
            comma: Mark::new(comma),
            quote: Mark::new(quote),
            next_key: Mark::new(next_key),
            key_end: Mark::new(key_end),
            colon: Mark::new(colon),
        }
    }
}

/// Up to four characters, appended as a block of fixed size.
struct Mark {
    block: [u8; 4],
    len: usize,
}

impl Mark {
    const fn new(text: &[u8]) -> Self {
        let block = match *text {
            [a] => [a, 0, 0, 0],
            [a, b] => [a, b, 0, 0],
            [a, b, c] => [a, b, c, 0],
            [a, b, c, d] => [a, b, c, d],
            _ => unreachable!(),
        };
        Self { block, len: text.len() }
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.block);
        out.truncate(start + self.len);
    }
}

/// A date or time as the server packs it into 64 bits: the date and clock as in DATETIME2, then 24 bits of
/// microseconds, the whole negated for a negative time (MySQL, `TIME_to_longlong_packed` in `mysys/my_time.cc`).
#[derive(Clone, Copy)]
struct Packed {
    negative: bool,
    /// 17 bits year and month, 5 day, then `clock`'s 17 bits for a date; for a time the clock alone.
    clock: u64,
    micro: u64,
}

impl Packed {
    fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let packed = i64::from_le_bytes(cursor.array("json date or time")?);
        let size = packed.unsigned_abs();
        let micro = size & 0xff_ffff;
        if micro > 999_999 {
            return Err(DecodeError::Invalid { field: "json microseconds", value: micro });
        }
        Ok(Self { negative: packed < 0, clock: size >> 24, micro })
    }

    const fn date(self) -> (u64, u64, u64) {
        let year_month = self.clock >> 22;
        (year_month / 13, year_month % 13, self.clock >> 17 & 31)
    }
}
