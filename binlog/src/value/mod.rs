//! One physical column value, as the wire has it.
//!
//! A [`Value`] borrows from the event. It knows nothing of the schema: an ENUM is its index, an integer is its bits
//! (whether they are signed is the schema's word), text is undecoded bytes in the column's character set, a zero
//! date is a zero date. What that means to a reader of records is decided in the connector.

pub mod base64;
mod compressed;
pub(crate) mod decimal;
pub mod digits;
mod json;
pub mod plain;
mod temporal;

pub use compressed::Compressed;
pub use decimal::{Decimal, Unscaled};
pub use json::{JsonBinary, JsonDiffs, JsonError, JsonStyle};
pub use temporal::{Date, DateTime, Time, Timestamp};

/// A physical value. 24 bytes on 64-bit targets.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// TINYINT: 8 bits, two's complement if the column is signed.
    Int8(u8),
    /// SMALLINT: 16 bits.
    Int16(u16),
    /// MEDIUMINT: 24 bits in the low part; the high byte is zero (not sign-extended).
    Int24(u32),
    /// INT: 32 bits.
    Int32(u32),
    /// BIGINT: 64 bits.
    Int64(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE and REAL.
    Double(f64),
    /// DECIMAL and NUMERIC.
    Decimal(Decimal<'a>),
    /// BIT(n): `ceil(n/8)` bytes, most significant first.
    Bit(&'a [u8]),
    /// YEAR: 0 is `0000`, else 1900 + the number.
    Year(u8),
    /// DATE.
    Date(Date),
    /// TIME, signed.
    Time(Time),
    /// DATETIME, in no time zone.
    DateTime(DateTime),
    /// TIMESTAMP, in UTC.
    Timestamp(Timestamp),
    /// CHAR, VARCHAR, the TEXT family, BINARY, VARBINARY, the BLOB family and MariaDB's plug-in types: the bytes stored.
    /// BINARY comes without its trailing zero bytes, and so do MariaDB's UUID, INET4 and INET6; its VECTOR is a
    /// VARBINARY on the wire.
    Bytes(&'a [u8]),
    /// ENUM: the one-based index of the label; 0 is the empty error value.
    Enum(u16),
    /// SET: bit n stands for the label of index n, zero-based.
    Set(u64),
    /// JSON in the server's binary form.
    Json(JsonBinary<'a>),
    /// What a partial update changes in the JSON of the row before.
    JsonDiffs(JsonDiffs<'a>),
    /// JSON as text: what a query gives.
    JsonText(&'a [u8]),
    /// GEOMETRY and its kinds: 4 bytes SRID, little-endian, then WKB.
    Geometry(&'a [u8]),
    /// VECTOR: 32-bit floats, little-endian.
    Vector(&'a [u8]),
    /// A column that MariaDB stores compressed: [`Self::Bytes`] once decompressed.
    Compressed(Compressed<'a>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_24_bytes_even_if_it_may_be_absent() {
        assert_eq!(size_of::<Value<'_>>(), 24);
        assert_eq!(size_of::<Option<Value<'_>>>(), 24);
    }
}
