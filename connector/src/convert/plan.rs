//! What a column's type and the modes make of its values: decided once per column, applied to each value.

use holdfast_binlog::Value;
use holdfast_binlog::value::{Decimal, JsonStyle};
use holdfast_history::schema::{Column, ColumnType, JdbcType};

use super::column::Rendered;
use super::datum::Logical;
use super::enum_set::Labels;
use super::error::{ConvertFailure, Warning};
use super::mapping::Mapped;
use super::options::{
    BigintUnsignedMode, BinaryMode, ConversionOptions, DecimalMode, FailureMode, TimePrecisionMode,
    UniformTypes,
};
use super::temporal::{self, Calendar, Moment, Unit};
use super::text::Charset;
use super::{Origin, default, geometry, numeric};
use crate::format::json as token;

/// What a column's type and the modes make of its values.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    Int {
        unsigned: bool,
    },
    /// BIGINT UNSIGNED in mode `precise`; printed as a number or as the bytes of one.
    UnsignedBig {
        number: bool,
    },
    Bool,
    /// FLOAT, in a snapshot as the server prints it unless it is asked for whole.
    Float {
        whole: bool,
    },
    /// FLOAT(m,d): the 64-bit float that reads as the 32-bit one does.
    FloatAsDouble,
    Double,
    /// REAL in the user's own DDL: the 64-bit float as a 32-bit one.
    DoubleAsFloat,
    Decimal {
        scale: u8,
        mode: DecimalMode,
    },
    /// DECIMAL in mode `precise`, printed as a number.
    DecimalNumber {
        scale: u8,
    },
    /// BIT(1).
    Bit,
    Bits {
        bytes: usize,
    },
    Text(Charset),
    Binary {
        length: u8,
        mode: BinaryMode,
    },
    Date {
        calendar: Calendar,
        iso: bool,
    },
    Time(Unit),
    DateTime {
        calendar: Calendar,
        unit: Unit,
    },
    /// Fraction digits while streaming; none for as many as needed.
    Timestamp {
        digits: Option<u8>,
        /// Whether they count in a snapshot too.
        uniform: bool,
    },
    Year,
    Enum(Box<Labels>),
    Set(Box<Labels>),
    Json(JsonStyle),
    Point,
    Geometry,
    Vector,
    Uuid,
    Inet4,
    Inet6,
    /// A plan whose values are changed afterwards.
    Mapped(Box<Mapped>),
    /// A type that this version does not know; it converts nothing.
    Unknown,
}

impl Plan {
    pub(super) fn new(
        column: &Column,
        options: &ConversionOptions,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let length = column.length.unwrap_or(-1);
        let uniform = options.uniform != UniformTypes::Off;
        let calendar = Calendar {
            adjust: options.time_adjuster,
            epoch_if_invalid: options.processing_failure != FailureMode::Fail,
        };
        match column.column_type() {
            ColumnType::TinyInt { unsigned }
            | ColumnType::SmallInt { unsigned }
            | ColumnType::MediumInt { unsigned }
            | ColumnType::Int { unsigned } => Self::Int { unsigned },
            ColumnType::BigInt { unsigned: true }
                if options.bigint_unsigned == BigintUnsignedMode::Precise =>
            {
                Self::UnsignedBig { number: options.value_json.numeric_decimals }
            }
            ColumnType::BigInt { unsigned } => Self::Int { unsigned },
            ColumnType::Boolean => Self::Bool,
            ColumnType::Float if column.scale.is_some() => Self::FloatAsDouble,
            ColumnType::Float => Self::Float { whole: uniform },
            ColumnType::Double if column.jdbc_type == JdbcType::REAL => Self::DoubleAsFloat,
            ColumnType::Double => Self::Double,
            ColumnType::Decimal => {
                let scale = column.scale.and_then(|scale| u8::try_from(scale).ok());
                let scale = scale.map_or(0, |scale| scale.min(30));
                match options.decimal {
                    DecimalMode::Precise if options.value_json.numeric_decimals => {
                        Self::DecimalNumber { scale }
                    }
                    mode @ (DecimalMode::Precise | DecimalMode::String | DecimalMode::Double) => {
                        Self::Decimal { scale, mode }
                    }
                }
            }
            ColumnType::Bit if length <= 1 => Self::Bit,
            ColumnType::Bit => {
                Self::Bits { bytes: usize::try_from(length).unwrap_or_default().div_ceil(8).min(8) }
            }
            ColumnType::Char | ColumnType::VarChar | ColumnType::Text => {
                Self::Text(charset(column, warnings))
            }
            ColumnType::Binary => {
                Self::Binary { length: u8::try_from(length).unwrap_or(0), mode: options.binary }
            }
            ColumnType::VarBinary | ColumnType::Blob => {
                Self::Binary { length: 0, mode: options.binary }
            }
            ColumnType::Date => {
                Self::Date { calendar, iso: options.time_precision == TimePrecisionMode::IsoString }
            }
            ColumnType::Time => Self::Time(Unit::of_time(options.time_precision)),
            ColumnType::DateTime => {
                Self::DateTime { calendar, unit: Unit::of_datetime(options.time_precision, length) }
            }
            ColumnType::Timestamp => {
                Self::Timestamp { digits: Some(u8::try_from(length).unwrap_or(0).min(6)), uniform }
            }
            ColumnType::Year => Self::Year,
            ColumnType::Enum => Self::Enum(Box::new(Labels::of_enum(column))),
            ColumnType::Set => Self::Set(Box::new(Labels::of_set(column))),
            ColumnType::Json if uniform => Self::Json(JsonStyle::Server),
            ColumnType::Json => Self::Json(JsonStyle::Debezium),
            ColumnType::Geometry if column.type_name.eq_ignore_ascii_case("POINT") => Self::Point,
            ColumnType::Geometry => Self::Geometry,
            ColumnType::Vector => Self::Vector,
            ColumnType::Uuid => Self::Uuid,
            ColumnType::Inet4 => Self::Inet4,
            ColumnType::Inet6 => Self::Inet6,
            ColumnType::Unknown | _ => Self::Unknown,
        }
    }

    /// Decides what a value means; none for NULL and what counts as NULL.
    #[inline]
    pub(super) fn apply<'v>(
        &'v self,
        value: &Value<'v>,
        origin: Origin,
    ) -> Result<Option<Logical<'v>>, ConvertFailure> {
        let logical = match (self, *value) {
            (_, Value::Null) => return Ok(None),
            (Self::Int { unsigned }, _) => match numeric::integer(value, *unsigned) {
                Some(number) => Logical::Int(number),
                None => return Err(unexpected(value)),
            },
            (Self::Text(charset), Value::Bytes(bytes)) => {
                if origin == Origin::Stream || charset.is_binary() {
                    Logical::Encoded(bytes, charset)
                } else {
                    Logical::Encoded(bytes, &Charset::UTF8)
                }
            }
            (Self::UnsignedBig { number: false }, Value::Int64(number)) => {
                Logical::Unscaled(i128::from(number), 0)
            }
            (Self::UnsignedBig { number: true }, Value::Int64(number)) => {
                Logical::Number(i128::from(number))
            }
            (Self::Bool, _) => match numeric::integer(value, false) {
                Some(number) => Logical::Bool(number != 0),
                None => return Err(unexpected(value)),
            },
            (Self::Float { whole }, Value::Float(number)) => {
                Logical::Float(if origin == Origin::Snapshot && !whole {
                    numeric::six_digits(number)
                } else {
                    number
                })
            }
            (Self::FloatAsDouble, Value::Float(number)) => {
                Logical::Double(numeric::widened(number))
            }
            (Self::FloatAsDouble | Self::Double, Value::Double(number)) => Logical::Double(number),
            (Self::Double, Value::Float(number)) => Logical::Double(f64::from(number)),
            (Self::DoubleAsFloat, Value::Double(number)) => {
                Logical::Float(numeric::narrowed(number))
            }
            (Self::DoubleAsFloat, Value::Float(number)) => Logical::Float(number),
            (Self::Decimal { scale, mode }, Value::Decimal(number)) => match mode {
                DecimalMode::Precise => Logical::Decimal(number, *scale),
                DecimalMode::String => Logical::DecimalText(number, *scale),
                DecimalMode::Double => Logical::DecimalDouble(number),
            },
            (Self::DecimalNumber { scale }, Value::Decimal(number)) => {
                Logical::DecimalNumber(number, *scale)
            }
            (Self::Bit, Value::Bit(bytes)) => Logical::Bool(bytes.iter().any(|&byte| byte != 0)),
            (Self::Bits { .. }, Value::Bit(bytes)) if bytes.len() <= 8 => Logical::Bits(bytes),
            (Self::Bits { .. }, Value::Bit(_)) => return Err(ConvertFailure::Malformed),
            (Self::Binary { length, mode }, Value::Bytes(bytes)) => {
                Logical::Bytes(bytes, *length, *mode)
            }
            (Self::Date { calendar, iso }, Value::Date(date)) => {
                return calendar.date(date, *iso);
            }
            (Self::Time(unit), Value::Time(time)) => temporal::time_in(time.micros, *unit)?,
            (Self::DateTime { calendar, unit }, Value::DateTime(datetime)) => {
                return calendar.datetime(datetime, *unit);
            }
            (Self::Timestamp { digits, uniform }, Value::Timestamp(timestamp)) => {
                if timestamp.seconds == 0 && timestamp.micro == 0 {
                    return Ok(None);
                }
                Logical::Zoned(
                    Moment::of(timestamp),
                    digits.filter(|_| *uniform || origin == Origin::Stream),
                )
            }
            // DIFFERS: Debezium has 2000 in a snapshot and 1900 while streaming.
            (Self::Year, Value::Year(0)) => Logical::Int(0),
            (Self::Year, Value::Year(year)) => Logical::Int(1900 + i64::from(year)),
            (Self::Enum(labels), Value::Enum(index)) => {
                Logical::Str(labels.value(index).ok_or(ConvertFailure::UnknownLabel { index })?)
            }
            (Self::Set(labels), Value::Set(bits)) => Logical::Labels(&labels.values, bits),
            (Self::Enum(_) | Self::Set(_), Value::Bytes(text)) => {
                Logical::Encoded(text, &Charset::UTF8)
            }
            (Self::Json(style), Value::Json(document)) => {
                if document.0.is_empty() {
                    return Ok(None);
                }
                Logical::JsonBinary(document, *style)
            }
            // MariaDB stores JSON as text.
            (Self::Json(_), Value::JsonText(text) | Value::Bytes(text)) => Logical::JsonText(text),
            (Self::Text(_), Value::JsonText(text)) => Logical::JsonText(text),
            (Self::Point, Value::Geometry(bytes)) => {
                let shape = geometry::Shape::parse(bytes)?;
                let (x, y) = shape.coordinates()?;
                Logical::Point(shape, x, y)
            }
            (Self::Geometry, Value::Geometry(bytes)) => {
                Logical::Geometry(geometry::Shape::parse(bytes)?)
            }
            (Self::Vector, Value::Vector(bytes) | Value::Bytes(bytes)) => Logical::Vector(bytes),
            (Self::Uuid | Self::Inet4 | Self::Inet6, Value::Bytes(text))
                if origin == Origin::Snapshot =>
            {
                Logical::Encoded(text, &Charset::UTF8)
            }
            (Self::Uuid, Value::Bytes(bytes)) => Logical::Uuid(filled(bytes)?),
            (Self::Inet4, Value::Bytes(bytes)) => Logical::Inet4(filled(bytes)?),
            (Self::Inet6, Value::Bytes(bytes)) => Logical::Inet6(filled(bytes)?),
            _ => return Err(unexpected(value)),
        };
        Ok(Some(logical))
    }

    /// Appends the values of most types without the detour over [`Logical`]; `false`, and nothing appended, for what has to be
    /// looked at more closely, errors and zero dates among it. It prints what [`Self::apply`] and [`Logical::write_json`] would.
    #[inline]
    pub(super) fn write_common(
        &self,
        value: &Value<'_>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> bool {
        let whole = match (self, value) {
            (Self::Int { unsigned }, _) => numeric::integer(value, *unsigned),
            (Self::Year, Value::Year(year)) => match year {
                0 => Some(0),
                year => Some(1900 + i64::from(*year)),
            },
            (Self::Date { calendar, iso: false }, Value::Date(date)) => calendar.days(*date),
            (Self::Time(Unit::Micros), Value::Time(time)) => Some(time.micros),
            (Self::DateTime { calendar, unit }, Value::DateTime(datetime)) => {
                calendar.count(*datetime, *unit)
            }
            (Self::Text(charset), Value::Bytes(bytes)) if origin == Origin::Stream => {
                charset.write_json(bytes, out);
                return true;
            }
            (Self::Decimal { scale, mode: DecimalMode::Precise }, Value::Decimal(number)) => {
                if let Decimal::Number { unscaled, scale: stored } = number
                    && stored == scale
                    && let Ok(number) = i64::try_from(unscaled.get())
                {
                    token::write_base64_number(number, out);
                    return true;
                }
                return numeric::write_unscaled_json(*number, *scale, out).is_ok();
            }
            (Self::Timestamp { digits: Some(digits), uniform }, Value::Timestamp(timestamp)) => {
                if timestamp.is_zero() || !(*uniform || origin == Origin::Stream) {
                    return false;
                }
                out.push(b'"');
                Moment::of(*timestamp).write(Some(*digits), out);
                out.push(b'"');
                return true;
            }
            (Self::Double, Value::Double(number)) => {
                token::write_f64(*number, out);
                return true;
            }
            (Self::Float { .. }, Value::Float(number)) if origin == Origin::Stream => {
                token::write_f32(*number, out);
                return true;
            }
            (Self::Enum(labels), Value::Enum(index)) => return labels.write_one(*index, out),
            (Self::Set(labels), Value::Set(bits)) => {
                labels.write_chosen(*bits, out);
                return true;
            }
            (Self::Json(style), Value::Json(document)) => {
                return !document.0.is_empty() && document.write_quoted(*style, out).is_ok();
            }
            (Self::Binary { length, mode: BinaryMode::Bytes }, Value::Bytes(bytes)) => {
                if bytes.len() < usize::from(*length) {
                    return false;
                }
                token::write_base64(bytes, out);
                return true;
            }
            (Self::Bool, Value::Int8(bits)) => {
                token::write_bool(*bits != 0, out);
                return true;
            }
            (Self::Bit, Value::Bit(bytes)) => {
                token::write_bool(bytes.iter().any(|&byte| byte != 0), out);
                return true;
            }
            // The last byte comes first.
            (Self::Bits { .. }, Value::Bit(bytes)) if (1..=8).contains(&bytes.len()) => {
                let bits = bytes.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                token::write_base64_bits(bits.swap_bytes(), bytes.len(), out);
                return true;
            }
            _ => None,
        };
        match whole {
            Some(number) => {
                token::write_i64(number, out);
                true
            }
            None => false,
        }
    }

    /// What stands for NULL in a column that has no NULL and no default.
    pub(super) fn fallback(&self) -> Rendered {
        let value = match self {
            Self::Int { .. } | Self::Year => Logical::Int(0),
            Self::UnsignedBig { number: false } => Logical::Unscaled(0, 0),
            Self::UnsignedBig { number: true } => Logical::Number(0),
            Self::DecimalNumber { scale } => Logical::DecimalNumber(Decimal::Text(b"0"), *scale),
            Self::Bool | Self::Bit => Logical::Bool(false),
            Self::Float { .. } | Self::DoubleAsFloat => Logical::Float(0.0),
            Self::FloatAsDouble | Self::Double => Logical::Double(0.0),
            Self::Decimal { scale, mode } => default::decimal(b"0", *scale, *mode),
            Self::Bits { .. } => Logical::Bits(&[]),
            Self::Text(_)
            | Self::Enum(_)
            | Self::Set(_)
            | Self::Uuid
            | Self::Inet4
            | Self::Inet6
            | Self::Unknown => Logical::Str(""),
            Self::Binary { mode, .. } => Logical::Bytes(&[0], 0, *mode),
            Self::Date { iso, .. } => temporal::epoch_day(*iso),
            Self::Time(unit) => temporal::midnight(*unit),
            Self::DateTime { unit, .. } => temporal::epoch(*unit),
            Self::Timestamp { .. } => Logical::Zoned(Moment::EPOCH, None),
            Self::Json(_) => Logical::Str("{}"),
            Self::Point => Logical::Point(geometry::EMPTY, 0.0, 0.0),
            Self::Geometry => Logical::Geometry(geometry::EMPTY),
            Self::Vector => Logical::Vector(&[]),
            Self::Mapped(mapped) => return mapped.inner.fallback(),
        };
        Rendered::of(value).expect("what stands for NULL is made of constants that convert")
    }

    /// The logical type, for messages.
    pub(super) fn becomes(&self) -> &'static str {
        match self {
            Self::Int { .. } | Self::Year => "an integer",
            Self::UnsignedBig { .. }
            | Self::DecimalNumber { .. }
            | Self::Decimal { mode: DecimalMode::Precise, .. } => "a decimal",
            Self::Bool | Self::Bit => "a boolean",
            Self::Float { .. } | Self::DoubleAsFloat => "a 32-bit float",
            Self::FloatAsDouble
            | Self::Double
            | Self::Decimal { mode: DecimalMode::Double, .. } => "a 64-bit float",
            Self::Decimal { mode: DecimalMode::String, .. }
            | Self::Text(_)
            | Self::Enum(_)
            | Self::Set(_)
            | Self::Uuid
            | Self::Inet4
            | Self::Inet6 => "text",
            Self::Bits { .. } | Self::Binary { .. } => "bytes",
            Self::Date { .. } => "a date",
            Self::Time(Unit::Millis | Unit::Iso) => "a time from 00:00:00 to 24:00:00",
            Self::Time(Unit::Micros | Unit::Nanos) => "a duration",
            Self::DateTime { unit: Unit::Nanos, .. } => "nanoseconds since the epoch",
            Self::DateTime { .. } | Self::Timestamp { .. } => "a timestamp",
            Self::Json(_) => "a json document",
            Self::Point | Self::Geometry => "a geometry",
            Self::Vector => "an array of floats",
            Self::Mapped(mapped) => mapped.inner.becomes(),
            Self::Unknown => "anything",
        }
    }
}

/// The decoder of a text column.
fn charset(column: &Column, warnings: &mut Vec<Warning>) -> Charset {
    // CHAR(n) BYTE: the server stores a BINARY, whatever character set the table has.
    if column.type_name.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("BYTE")) {
        return Charset::LATIN1;
    }
    let Some(name) = &column.charset else { return Charset::UTF8 };
    Charset::named(name).unwrap_or_else(|| {
        warnings
            .push(Warning::UnknownCharset { column: column.name.clone(), charset: name.clone() });
        Charset::UTF8
    })
}

/// Fills up what the server cut off: zero bytes at the end of a fixed-length value.
fn filled<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ConvertFailure> {
    let mut filled = [0; N];
    filled.get_mut(..bytes.len()).ok_or(ConvertFailure::Malformed)?.copy_from_slice(bytes);
    Ok(filled)
}

#[cold]
fn unexpected(value: &Value<'_>) -> ConvertFailure {
    let found = match value {
        Value::Null => "null",
        Value::Int8(_) | Value::Int16(_) | Value::Int24(_) | Value::Int32(_) | Value::Int64(_) => {
            "integer"
        }
        Value::Float(_) => "float",
        Value::Double(_) => "double",
        Value::Decimal(_) => "decimal",
        Value::Bit(_) => "bit",
        Value::Year(_) => "year",
        Value::Date(_) => "date",
        Value::Time(_) => "time",
        Value::DateTime(_) => "datetime",
        Value::Timestamp(_) => "timestamp",
        Value::Bytes(_) => "bytes",
        Value::Enum(_) => "enum index",
        Value::Set(_) => "set bits",
        Value::Json(_) | Value::JsonText(_) => "json",
        Value::JsonDiffs(_) => "changes of a json document",
        Value::Geometry(_) => "geometry",
        Value::Vector(_) => "vector",
        Value::Compressed(_) => "compressed bytes",
        _ => "unknown",
    };
    ConvertFailure::UnexpectedValue { found }
}
