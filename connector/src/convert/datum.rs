//! A converted value: [`Datum`] for those who read it, `Logical` for those who print it.

use std::borrow::Cow;

use holdfast_binlog::value::{Decimal, JsonBinary, JsonStyle};

use super::error::ConvertFailure;
use super::options::BinaryMode;
use super::text::Charset;
use super::{geometry, json, numeric, temporal};
use crate::format::json as token;

/// A value as a record carries it: what a Kafka Connect field of the column's semantic type would hold.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Datum<'a> {
    /// No value. A column default is never put in its place here.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number: integers, days, and counts of milli-, micro- or nanoseconds.
    Int(i64),
    /// A 32-bit float.
    Float(f32),
    /// A 64-bit float.
    Double(f64),
    /// Text: character data, labels, JSON documents, times with a zone, UUIDs and addresses.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(Cow<'a, [u8]>),
    /// A decimal number.
    Decimal(DecimalDatum),
    /// A point, with its coordinates read from its well-known binary form.
    Point {
        /// First coordinate as stored.
        x: f64,
        /// Second coordinate as stored.
        y: f64,
        /// Well-known binary.
        wkb: Cow<'a, [u8]>,
        /// Spatial reference; absent for 0.
        srid: Option<i32>,
    },
    /// Any geometry but a point column's.
    Geometry {
        /// Well-known binary.
        wkb: Cow<'a, [u8]>,
        /// Spatial reference; absent for 0.
        srid: Option<i32>,
    },
    /// A vector.
    FloatArray(Cow<'a, [f32]>),
}

impl Datum<'_> {
    /// The same value, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Datum<'static> {
        match self {
            Self::Null => Datum::Null,
            Self::Bool(value) => Datum::Bool(value),
            Self::Int(value) => Datum::Int(value),
            Self::Float(value) => Datum::Float(value),
            Self::Double(value) => Datum::Double(value),
            Self::Text(text) => Datum::Text(Cow::Owned(text.into_owned())),
            Self::Bytes(bytes) => Datum::Bytes(Cow::Owned(bytes.into_owned())),
            Self::Decimal(value) => Datum::Decimal(value),
            Self::Point { x, y, wkb, srid } => {
                Datum::Point { x, y, wkb: Cow::Owned(wkb.into_owned()), srid }
            }
            Self::Geometry { wkb, srid } => {
                Datum::Geometry { wkb: Cow::Owned(wkb.into_owned()), srid }
            }
            Self::FloatArray(items) => Datum::FloatArray(Cow::Owned(items.into_owned())),
        }
    }
}

impl Datum<'_> {
    /// Appends the value as JSON.
    pub(super) fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => token::write_null(out),
            Self::Bool(value) => token::write_bool(*value, out),
            Self::Int(value) => token::write_i64(*value, out),
            Self::Float(value) => token::write_f32(*value, out),
            Self::Double(value) => token::write_f64(*value, out),
            Self::Text(text) => token::write_string(text, out),
            Self::Bytes(bytes) => token::write_base64(bytes, out),
            Self::Decimal(number) => token::write_base64(number.unscaled_be(), out),
            Self::Point { x, y, wkb, srid } => {
                out.extend_from_slice(b"{\"x\":");
                token::write_f64(*x, out);
                out.extend_from_slice(b",\"y\":");
                token::write_f64(*y, out);
                out.push(b',');
                geometry::Shape { wkb, srid: *srid }.write_members(out);
                out.push(b'}');
            }
            Self::Geometry { wkb, srid } => {
                out.push(b'{');
                geometry::Shape { wkb, srid: *srid }.write_members(out);
                out.push(b'}');
            }
            Self::FloatArray(items) => {
                for (number, item) in items.iter().enumerate() {
                    out.push(if number == 0 { b'[' } else { b',' });
                    token::write_f32(*item, out);
                }
                out.extend_from_slice(if items.is_empty() { b"[]" } else { b"]" });
            }
        }
    }
}

/// A decimal number: an unscaled integer and the number of its digits that follow the point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecimalDatum {
    unscaled: Vec<u8>,
    scale: u8,
}

impl DecimalDatum {
    pub(crate) fn new(unscaled: Vec<u8>, scale: u8) -> Self {
        Self { unscaled, scale }
    }

    /// The unscaled integer: two's complement, big-endian, in as few bytes as hold it, at least one.
    #[must_use]
    pub fn unscaled_be(&self) -> &[u8] {
        &self.unscaled
    }

    /// Digits after the point, 0 to 30.
    #[must_use]
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// The unscaled integer, where 128 bits hold it.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        let (&first, _) = self.unscaled.split_first()?;
        let mut bytes = [if first & 0x80 == 0 { 0 } else { 0xff }; 16];
        let start = bytes.len().checked_sub(self.unscaled.len())?;
        bytes.get_mut(start..)?.copy_from_slice(&self.unscaled);
        Some(i128::from_be_bytes(bytes))
    }
}

/// A value that is converted but neither printed nor allocated: the step that decides what a value means, shared by
/// [`Datum`] and JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Logical<'a> {
    Bool(bool),
    Int(i64),
    Float(f32),
    Double(f64),
    /// An unscaled number whose scale is the column's.
    Unscaled(i128, u8),
    /// Decimal digits as the wire has them, to be brought to this scale.
    Decimal(Decimal<'a>, u8),
    /// A whole number that is printed as one, and a decimal.
    Number(i128),
    DecimalNumber(Decimal<'a>, u8),
    DecimalText(Decimal<'a>, u8),
    DecimalDouble(Decimal<'a>),
    /// Text that is UTF-8 already.
    Str(&'a str),
    /// Text in a character set.
    Encoded(&'a [u8], &'a Charset),
    /// Bytes, filled with zero bytes up to this length.
    Bytes(&'a [u8], u8, BinaryMode),
    /// The bytes of a BIT, most significant first.
    Bits(&'a [u8]),
    /// Labels of a SET: those whose bit is set.
    Labels(&'a [String], u64),
    IsoDate(temporal::Day),
    IsoTime(i64),
    IsoDateTime(temporal::Moment),
    /// A moment in UTC, with this many fraction digits, or with as many as needed.
    Zoned(temporal::Moment, Option<u8>),
    JsonBinary(JsonBinary<'a>, JsonStyle),
    /// JSON text from the server.
    JsonText(&'a [u8]),
    Uuid([u8; 16]),
    Inet4([u8; 4]),
    Inet6([u8; 16]),
    Point(geometry::Shape<'a>, f64, f64),
    Geometry(geometry::Shape<'a>),
    Vector(&'a [u8]),
}

impl<'a> Logical<'a> {
    pub(crate) fn into_datum(self) -> Result<Datum<'a>, ConvertFailure> {
        Ok(match self {
            Self::Bool(value) => Datum::Bool(value),
            Self::Int(value) => Datum::Int(value),
            Self::Float(value) => Datum::Float(value),
            Self::Double(value) => Datum::Double(value),
            Self::Unscaled(value, scale) => {
                Datum::Decimal(DecimalDatum::new(numeric::minimal_bytes(value), scale))
            }
            Self::Number(value) => {
                Datum::Decimal(DecimalDatum::new(numeric::minimal_bytes(value), 0))
            }
            Self::Decimal(value, scale) | Self::DecimalNumber(value, scale) => {
                Datum::Decimal(DecimalDatum::new(numeric::unscaled(value, scale)?, scale))
            }
            Self::DecimalText(value, scale) => {
                Datum::Text(Cow::Owned(numeric::text(value, scale)?))
            }
            Self::DecimalDouble(value) => Datum::Double(numeric::double(value, &mut Vec::new())?),
            Self::Str(text) => Datum::Text(Cow::Borrowed(text)),
            Self::Encoded(bytes, charset) => Datum::Text(charset.decode(bytes)),
            Self::Bytes(bytes, length, BinaryMode::Bytes) => Datum::Bytes(padded(bytes, length)),
            Self::Bits(bytes) => Datum::Bytes(Cow::Owned(bytes.iter().rev().copied().collect())),
            Self::JsonText(bytes) => Datum::Text(Charset::UTF8.decode(bytes)),
            Self::Point(shape, x, y) => {
                Datum::Point { x, y, wkb: Cow::Borrowed(shape.wkb), srid: shape.srid }
            }
            Self::Geometry(shape) => {
                Datum::Geometry { wkb: Cow::Borrowed(shape.wkb), srid: shape.srid }
            }
            Self::Vector(bytes) => Datum::FloatArray(geometry::floats(bytes).collect()),
            Self::Bytes(_, _, BinaryMode::Base64 | BinaryMode::Base64UrlSafe | BinaryMode::Hex)
            | Self::Labels(..)
            | Self::IsoDate(_)
            | Self::IsoTime(_)
            | Self::IsoDateTime(_)
            | Self::Zoned(..)
            | Self::JsonBinary(..)
            | Self::Uuid(_)
            | Self::Inet4(_)
            | Self::Inet6(_) => {
                let mut printed = Vec::new();
                self.write_text(&mut printed)?;
                Datum::Text(Cow::Owned(
                    String::from_utf8(printed).map_err(|_| ConvertFailure::Malformed)?,
                ))
            }
        })
    }

    /// Appends the value as JSON. On an error something may have been appended.
    pub(crate) fn write_json(self, out: &mut Vec<u8>) -> Result<(), ConvertFailure> {
        match self {
            Self::Bool(value) => token::write_bool(value, out),
            Self::Int(value) => token::write_i64(value, out),
            Self::Float(value) => token::write_f32(value, out),
            Self::Double(value) => token::write_f64(value, out),
            Self::Unscaled(value, _) => {
                token::write_base64(numeric::minimal(&value.to_be_bytes()), out)
            }
            Self::Decimal(value, scale) => numeric::write_unscaled_json(value, scale, out)?,
            Self::Number(value) => print(value, out),
            Self::DecimalNumber(value, scale) => numeric::write_number(value, scale, out)?,
            Self::DecimalText(value, scale) => {
                out.push(b'"');
                numeric::write_text(value, scale, out)?;
                out.push(b'"');
            }
            Self::DecimalDouble(value) => {
                let number = numeric::double(value, out)?;
                token::write_f64(number, out);
            }
            Self::Str(text) => token::write_string(text, out),
            Self::Encoded(bytes, charset) => charset.write_json(bytes, out),
            Self::Bytes(bytes, length, mode) => {
                if bytes.len() < usize::from(length) {
                    let mut room = [0; 255];
                    let (filled, _) = room.split_at_mut(usize::from(length));
                    if let Some(start) = filled.get_mut(..bytes.len()) {
                        start.copy_from_slice(bytes);
                    }
                    write_bytes(filled, mode, out);
                } else {
                    write_bytes(bytes, mode, out);
                }
            }
            Self::Bits(bytes) => {
                let mut room = [0; 8];
                match room.get_mut(..bytes.len()) {
                    Some(reversed) => {
                        reversed.copy_from_slice(bytes);
                        reversed.reverse();
                        token::write_base64(reversed, out);
                    }
                    None => return Err(ConvertFailure::Malformed),
                }
            }
            Self::Labels(labels, bits) => {
                out.push(b'"');
                for (number, label) in chosen(labels, bits).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    token::write_escaped(label, out);
                }
                out.push(b'"');
            }
            Self::JsonBinary(document, style) => json::write_quoted(document, style, out)?,
            Self::JsonText(bytes) => Charset::UTF8.write_json(bytes, out),
            Self::IsoDate(_)
            | Self::IsoTime(_)
            | Self::IsoDateTime(_)
            | Self::Zoned(..)
            | Self::Uuid(_)
            | Self::Inet4(_)
            | Self::Inet6(_) => {
                out.push(b'"');
                self.write_text(out)?;
                out.push(b'"');
            }
            Self::Point(shape, x, y) => {
                out.extend_from_slice(b"{\"x\":");
                token::write_f64(x, out);
                out.extend_from_slice(b",\"y\":");
                token::write_f64(y, out);
                out.push(b',');
                shape.write_members(out);
                out.push(b'}');
            }
            Self::Geometry(shape) => {
                out.push(b'{');
                shape.write_members(out);
                out.push(b'}');
            }
            Self::Vector(bytes) => {
                out.push(b'[');
                for (number, item) in geometry::floats(bytes).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    token::write_f32(item, out);
                }
                out.push(b']');
            }
        }
        Ok(())
    }

    /// Appends the text of a value that is text in records but not on the wire.
    fn write_text(self, out: &mut Vec<u8>) -> Result<(), ConvertFailure> {
        match self {
            Self::IsoDate(day) => {
                day.write(out);
                out.push(b'Z');
            }
            Self::IsoTime(micros) => temporal::write_iso_time(micros, out),
            Self::IsoDateTime(moment) => moment.write(None, out),
            Self::Zoned(moment, digits) => moment.write(digits, out),
            Self::Labels(labels, bits) => {
                for (number, label) in chosen(labels, bits).enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(label.as_bytes());
                }
            }
            Self::JsonBinary(document, style) => json::write_text(document, style, out)?,
            Self::Uuid(bytes) => {
                for (number, byte) in bytes.iter().enumerate() {
                    if matches!(number, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    out.extend_from_slice(&hex_pair(*byte));
                }
            }
            Self::Inet4(bytes) => {
                print(std::net::Ipv4Addr::from(bytes), out);
            }
            Self::Inet6(bytes) => {
                print(std::net::Ipv6Addr::from(bytes), out);
            }
            Self::Bytes(bytes, length, mode) => {
                let start = out.len();
                write_bytes(&padded(bytes, length), mode, out);
                // The quotes.
                out.pop();
                out.remove(start);
            }
            Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Double(_)
            | Self::Unscaled(..)
            | Self::Decimal(..)
            | Self::Number(_)
            | Self::DecimalNumber(..)
            | Self::DecimalText(..)
            | Self::DecimalDouble(_)
            | Self::Str(_)
            | Self::Encoded(..)
            | Self::Bits(_)
            | Self::JsonText(_)
            | Self::Point(..)
            | Self::Geometry(_)
            | Self::Vector(_) => {}
        }
        Ok(())
    }
}

fn print(value: impl std::fmt::Display, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to a Vec does not fail.
    let _ = write!(out, "{value}");
}

fn write_bytes(bytes: &[u8], mode: BinaryMode, out: &mut Vec<u8>) {
    match mode {
        BinaryMode::Bytes | BinaryMode::Base64 => token::write_base64(bytes, out),
        BinaryMode::Base64UrlSafe => token::write_base64_url_safe(bytes, out),
        BinaryMode::Hex => token::write_hex(bytes, out),
    }
}

fn padded(bytes: &[u8], length: u8) -> Cow<'_, [u8]> {
    if bytes.len() >= usize::from(length) {
        return Cow::Borrowed(bytes);
    }
    let mut filled = bytes.to_vec();
    filled.resize(usize::from(length), 0);
    Cow::Owned(filled)
}

/// The labels whose bit is set, in definition order. Bits beyond the labels have none.
fn chosen(labels: &[String], bits: u64) -> impl Iterator<Item = &str> {
    labels
        .iter()
        .take(64)
        .enumerate()
        .filter(move |(index, _)| bits >> index & 1 == 1)
        .map(|(_, label)| label.as_str())
}

fn hex_pair(byte: u8) -> [u8; 2] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    [digit(byte >> 4), digit(byte & 15)]
}
