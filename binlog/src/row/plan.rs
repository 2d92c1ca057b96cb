//! How the values of one table's rows are read: the table map compiled to one step per column.

use super::reader::{RowSink, Side};
use crate::value::{
    Compressed, Date, DateTime, Decimal, JsonBinary, Time, Timestamp, Value,
    decimal::{SmallLayout, packed_len},
};
use crate::wire::{Cursor, DecodeError};

/// The type of a column on the wire, with what its metadata says.
///
/// Codes and metadata: MySQL 9, `enum_field_types` in `include/field_types.h` and `table_def::table_def` in
/// `sql/rpl_utility.cc`; MariaDB 11.8, `sql/field.h`, for the compressed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireType {
    /// 1: TINYINT, BOOL.
    Tiny,
    /// 2: SMALLINT.
    Short,
    /// 3: INT.
    Long,
    /// 4: FLOAT.
    Float,
    /// 5: DOUBLE.
    Double,
    /// 6: a column that is always NULL.
    Null,
    /// 7: TIMESTAMP as written before MySQL 5.6.4.
    Timestamp,
    /// 8: BIGINT.
    LongLong,
    /// 9: MEDIUMINT.
    Int24,
    /// 10 and 14: DATE.
    Date,
    /// 11: TIME as written before MySQL 5.6.4.
    Time,
    /// 12: DATETIME as written before MySQL 5.6.4.
    DateTime,
    /// 13: YEAR.
    Year,
    /// 15 and 253: VARCHAR, VARBINARY.
    VarChar {
        /// Most bytes a value takes.
        max_bytes: u16,
    },
    /// 16: BIT.
    Bit {
        /// Number of bits, 1 to 64.
        bits: u16,
    },
    /// 17: TIMESTAMP.
    Timestamp2 {
        /// Fraction digits, 0 to 6.
        fsp: u8,
    },
    /// 18: DATETIME.
    DateTime2 {
        /// Fraction digits, 0 to 6.
        fsp: u8,
    },
    /// 19: TIME.
    Time2 {
        /// Fraction digits, 0 to 6.
        fsp: u8,
    },
    /// 140: MariaDB's TEXT and BLOB with COMPRESSED.
    BlobCompressed {
        /// Bytes of the length prefix, 1 to 4.
        length_bytes: u8,
    },
    /// 141: MariaDB's VARCHAR and VARBINARY with COMPRESSED.
    VarCharCompressed {
        /// Most bytes a stored value takes: one more than the column declares.
        max_bytes: u16,
    },
    /// 242: VECTOR.
    Vector {
        /// Bytes of the length prefix, 1 to 4.
        length_bytes: u8,
    },
    /// 245: JSON in binary form.
    Json {
        /// Bytes of the length prefix, 1 to 4.
        length_bytes: u8,
    },
    /// 246: DECIMAL.
    NewDecimal {
        /// Digits in all, 1 to 65.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// 254 with the real type 247: ENUM.
    Enum {
        /// Bytes of the index, 1 or 2.
        bytes: u8,
    },
    /// 254 with the real type 248: SET.
    Set {
        /// Bytes of the bit mask, 1 to 8.
        bytes: u8,
    },
    /// 249 to 252: the TEXT and BLOB families.
    Blob {
        /// Bytes of the length prefix, 1 to 4.
        length_bytes: u8,
    },
    /// 254: CHAR, BINARY, and MariaDB's UUID, INET4 and INET6.
    String {
        /// Most bytes a value takes.
        max_bytes: u16,
    },
    /// 255: GEOMETRY and its kinds.
    Geometry {
        /// Bytes of the length prefix, 1 to 4.
        length_bytes: u8,
    },
    /// A type that is not known, or that comes after one.
    Unknown {
        /// The code in the table map.
        code: u8,
    },
}

impl WireType {
    /// Reads the metadata of a column with this type code.
    pub(crate) fn read(code: u8, metadata: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        const FIELD: &str = "column metadata";
        Ok(match code {
            1 => Self::Tiny,
            2 => Self::Short,
            3 => Self::Long,
            4 => {
                metadata.u8(FIELD)?;
                Self::Float
            }
            5 => {
                metadata.u8(FIELD)?;
                Self::Double
            }
            6 => Self::Null,
            7 => Self::Timestamp,
            8 => Self::LongLong,
            9 => Self::Int24,
            10 | 14 => Self::Date,
            11 => Self::Time,
            12 => Self::DateTime,
            13 => Self::Year,
            15 | 253 => Self::VarChar { max_bytes: metadata.u16_le(FIELD)? },
            16 => {
                let [bits, bytes] = metadata.array(FIELD)?;
                Self::Bit { bits: u16::from(bytes) * 8 + u16::from(bits) }
            }
            17 => Self::Timestamp2 { fsp: metadata.u8(FIELD)? },
            18 => Self::DateTime2 { fsp: metadata.u8(FIELD)? },
            19 => Self::Time2 { fsp: metadata.u8(FIELD)? },
            140 => Self::BlobCompressed { length_bytes: metadata.u8(FIELD)? },
            141 => Self::VarCharCompressed { max_bytes: metadata.u16_le(FIELD)? },
            242 => Self::Vector { length_bytes: metadata.u8(FIELD)? },
            245 => Self::Json { length_bytes: metadata.u8(FIELD)? },
            246 => {
                let [precision, scale] = metadata.array(FIELD)?;
                Self::NewDecimal { precision, scale }
            }
            247 | 248 | 254 => {
                let [real, len] = metadata.array(FIELD)?;
                match real {
                    247 => Self::Enum { bytes: len },
                    248 => Self::Set { bytes: len },
                    // Two bits of a CHAR's length hide, inverted, in bits that every real type has set.
                    _ => Self::String { max_bytes: u16::from(len) | u16::from(!real & 0x30) << 4 },
                }
            }
            249..=252 => Self::Blob { length_bytes: metadata.u8(FIELD)? },
            255 => Self::Geometry { length_bytes: metadata.u8(FIELD)? },
            code => Self::Unknown { code },
        })
    }
}

/// One step: a column's type with everything about its width decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Int8,
    Int16,
    Int24,
    Int32,
    Int64,
    Float,
    Double,
    SmallDecimal { precision: u8, scale: u8, layout: SmallLayout },
    Decimal { precision: u8, scale: u8, len: u8 },
    Bit { len: u8, last: u8 },
    Year,
    Date,
    OldTime,
    Time { fsp: u8 },
    OldDateTime,
    DateTime { fsp: u8 },
    DateTimeMicros { fsp: u8 },
    OldTimestamp,
    Timestamp { fsp: u8 },
    Bytes1,
    Bytes2,
    Blob { len: u8 },
    Enum1,
    Enum2,
    Set { len: u8 },
    Json { len: u8 },
    Geometry { len: u8 },
    Vector { len: u8 },
    Compressed { len: u8 },
    Null,
}

/// The compiled steps for the rows of one table map, one per column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPlan {
    steps: Box<[Step]>,
}

/// The step of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step(Op);

impl RowPlan {
    /// Compiles the columns of a table.
    ///
    /// # Errors
    ///
    /// [`DecodeError::ColumnType`] for a type that is not known, [`DecodeError::Invalid`] for metadata out of range.
    pub fn compile(columns: impl IntoIterator<Item = WireType>) -> Result<Self, DecodeError> {
        let step = |(index, column)| Step::compile(index, column);
        let steps = columns.into_iter().enumerate().map(step).collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// Number of columns.
    #[must_use]
    pub const fn column_count(&self) -> usize {
        self.steps.len()
    }

    #[inline]
    pub(crate) const fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl Step {
    fn compile(index: usize, column: WireType) -> Result<Self, DecodeError> {
        let varying = |max_bytes| if max_bytes < 256 { Op::Bytes1 } else { Op::Bytes2 };
        Ok(Self(match column {
            WireType::Tiny => Op::Int8,
            WireType::Short => Op::Int16,
            WireType::Long => Op::Int32,
            WireType::Float => Op::Float,
            WireType::Double => Op::Double,
            WireType::Null => Op::Null,
            WireType::Timestamp => Op::OldTimestamp,
            WireType::LongLong => Op::Int64,
            WireType::Int24 => Op::Int24,
            WireType::Date => Op::Date,
            WireType::Time => Op::OldTime,
            WireType::DateTime => Op::OldDateTime,
            WireType::Year => Op::Year,
            WireType::VarChar { max_bytes } | WireType::String { max_bytes } => varying(max_bytes),
            WireType::Bit { bits } => {
                let len = ranged(bits.div_ceil(8), 1, 8, "bytes of a bit column")?;
                Op::Bit { len, last: bit_mask(bits) }
            }
            WireType::Timestamp2 { fsp } => Op::Timestamp { fsp: fraction(fsp)? },
            WireType::DateTime2 { fsp: fsp @ 5..=6 } => Op::DateTimeMicros { fsp },
            WireType::DateTime2 { fsp } => Op::DateTime { fsp: fraction(fsp)? },
            WireType::Time2 { fsp } => Op::Time { fsp: fraction(fsp)? },
            WireType::BlobCompressed { length_bytes } => {
                Op::Compressed { len: prefix(length_bytes)? }
            }
            WireType::VarCharCompressed { max_bytes } => {
                Op::Compressed { len: if max_bytes < 256 { 1 } else { 2 } }
            }
            WireType::Vector { length_bytes } => Op::Vector { len: prefix(length_bytes)? },
            WireType::Json { length_bytes } => Op::Json { len: prefix(length_bytes)? },
            WireType::NewDecimal { precision, scale } => {
                let len = packed_len(precision, scale)?;
                match SmallLayout::new(precision, scale) {
                    Some(layout) => Op::SmallDecimal { precision, scale, layout },
                    None => Op::Decimal { precision, scale, len },
                }
            }
            WireType::Enum { bytes: 1 } => Op::Enum1,
            WireType::Enum { bytes: 2 } => Op::Enum2,
            WireType::Enum { bytes } => {
                return Err(DecodeError::Invalid {
                    field: "bytes of an enum",
                    value: bytes.into(),
                });
            }
            WireType::Set { bytes } => {
                Op::Set { len: ranged(bytes.into(), 1, 8, "bytes of a set")? }
            }
            WireType::Blob { length_bytes } => Op::Blob { len: prefix(length_bytes)? },
            WireType::Geometry { length_bytes } => Op::Geometry { len: prefix(length_bytes)? },
            WireType::Unknown { code } => {
                let column = u32::try_from(index).unwrap_or(u32::MAX);
                return Err(DecodeError::ColumnType { column, code });
            }
        }))
    }

    /// Whether the column is JSON in binary form: the columns that a partial update may change by a diff.
    pub(crate) const fn is_json(self) -> bool {
        matches!(self.0, Op::Json { .. })
    }

    /// Reads a value that is not NULL and hands it to `sink`. The sink is called in every arm: inlined there, its look
    /// at the kind of value is decided at compile time. Inlined into the loop over the columns itself, so that the
    /// cursor stays in registers.
    #[inline(always)]
    pub(crate) fn read<'a, S: RowSink<'a>>(
        &self,
        cursor: &mut Cursor<'a>,
        side: Side,
        column: usize,
        sink: &mut S,
    ) -> Result<(), DecodeError> {
        match self.0 {
            Op::Int8 => sink.value(side, column, Value::Int8(cursor.u8("tinyint")?)),
            Op::Int16 => sink.value(side, column, Value::Int16(cursor.u16_le("smallint")?)),
            Op::Int24 => sink.value(side, column, Value::Int24(cursor.u24_le("mediumint")?)),
            Op::Int32 => sink.value(side, column, Value::Int32(cursor.u32_le("int")?)),
            Op::Int64 => sink.value(side, column, Value::Int64(cursor.u64_le("bigint")?)),
            Op::Float => {
                sink.value(side, column, Value::Float(f32::from_le_bytes(cursor.array("float")?)))
            }
            Op::Double => {
                sink.value(side, column, Value::Double(f64::from_le_bytes(cursor.array("double")?)))
            }
            Op::SmallDecimal { precision, scale, layout } => {
                let bytes = cursor.take(layout.len().into(), "decimal")?;
                let Some(number) = layout.unscaled(bytes) else {
                    return Err(Decimal::bad_digits(bytes, precision, scale));
                };
                let decimal = Decimal::number(number.into(), scale);
                sink.value(side, column, Value::Decimal(decimal));
            }
            Op::Decimal { precision, scale, len } => {
                let bytes = cursor.take(len.into(), "decimal")?;
                let decimal = Decimal::read_long(bytes, precision, scale)?;
                sink.value(side, column, Value::Decimal(decimal));
            }
            Op::Bit { len, last } => {
                let bytes = cursor.take(len.into(), "bit")?;
                match bytes.first() {
                    Some(first) if first & !last == 0 => {
                        sink.value(side, column, Value::Bit(bytes))
                    }
                    first => {
                        let value = first.copied().unwrap_or_default().into();
                        return Err(DecodeError::Invalid { field: "first byte of a bit", value });
                    }
                }
            }
            Op::Year => sink.value(side, column, Value::Year(cursor.u8("year")?)),
            Op::Date => sink.value(side, column, Value::Date(Date::read(cursor)?)),
            Op::OldTime => sink.value(side, column, Value::Time(Time::read_old(cursor)?)),
            Op::Time { fsp } => sink.value(side, column, Value::Time(Time::read(cursor, fsp)?)),
            Op::OldDateTime => {
                sink.value(side, column, Value::DateTime(DateTime::read_old(cursor)?))
            }
            Op::DateTime { fsp } => {
                let packed = DateTime::read_packed(cursor, fsp)?;
                sink.value(side, column, Value::DateTime(DateTime::unpack(packed, fsp)));
            }
            Op::DateTimeMicros { fsp } => {
                let packed = DateTime::read_packed_micros(cursor)?;
                sink.value(side, column, Value::DateTime(DateTime::unpack(packed, fsp)));
            }
            Op::OldTimestamp => {
                sink.value(side, column, Value::Timestamp(Timestamp::read_old(cursor)?))
            }
            Op::Timestamp { fsp } => {
                sink.value(side, column, Value::Timestamp(Timestamp::read(cursor, fsp)?))
            }
            Op::Bytes1 => {
                let len = cursor.u8("string length")?;
                sink.value(side, column, Value::Bytes(cursor.take(len.into(), "string")?));
            }
            Op::Bytes2 => {
                let len = cursor.u16_le("string length")?;
                sink.value(side, column, Value::Bytes(cursor.take(len.into(), "string")?));
            }
            Op::Blob { len } => {
                sink.value(side, column, Value::Bytes(prefixed(cursor, len, "blob")?))
            }
            Op::Enum1 => sink.value(side, column, Value::Enum(cursor.u8("enum")?.into())),
            Op::Enum2 => sink.value(side, column, Value::Enum(cursor.u16_le("enum")?)),
            Op::Set { len } => {
                sink.value(side, column, Value::Set(cursor.uint_le(len.into(), "set")?))
            }
            Op::Json { len } => {
                sink.value(side, column, Value::Json(JsonBinary(prefixed(cursor, len, "json")?)))
            }
            Op::Geometry { len } => {
                sink.value(side, column, Value::Geometry(prefixed(cursor, len, "geometry")?))
            }
            Op::Vector { len } => {
                sink.value(side, column, Value::Vector(prefixed(cursor, len, "vector")?))
            }
            Op::Compressed { len } => {
                sink.value(
                    side,
                    column,
                    Value::Compressed(Compressed(prefixed(cursor, len, "compressed column")?)),
                );
            }
            Op::Null => sink.value(side, column, Value::Null),
        }
        Ok(())
    }
}

/// Takes the bytes after a length of 1 to 4 bytes.
#[inline]
fn prefixed<'a>(
    cursor: &mut Cursor<'a>,
    length_bytes: u8,
    field: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let len = match length_bytes {
        1 => cursor.u8(field)?.into(),
        2 => cursor.u16_le(field)?.into(),
        3 => cursor.u24_le(field)?,
        _ => cursor.u32_le(field)?,
    };
    match usize::try_from(len) {
        Ok(len) => cursor.take(len, field),
        Err(_) => Err(DecodeError::Invalid { field, value: len.into() }),
    }
}

fn ranged(value: u16, min: u8, max: u8, field: &'static str) -> Result<u8, DecodeError> {
    u8::try_from(value)
        .ok()
        .filter(|value| (min..=max).contains(value))
        .ok_or_else(|| DecodeError::Invalid { field, value: value.into() })
}

fn fraction(fsp: u8) -> Result<u8, DecodeError> {
    ranged(fsp.into(), 0, 6, "fraction digits")
}

fn prefix(length_bytes: u8) -> Result<u8, DecodeError> {
    ranged(length_bytes.into(), 1, 4, "bytes of a length")
}

/// The bits that the first byte of a BIT value may have set.
const fn bit_mask(bits: u16) -> u8 {
    match bits % 8 {
        0 => 0xff,
        used => !(0xff << used),
    }
}
