//! Column defaults: from the expression text of the table model to a value.
//!
//! Defaults are converted as the column's values are, as Debezium does (`BinlogDefaultValueConverter`). Text is taken as
//! the model has it: escapes are resolved in definitions that were parsed here, and kept in those that Debezium recorded.

use holdfast_binlog::value::Decimal;
use holdfast_history::schema::{Column, DefaultValue};

use super::column::Rendered;
use super::datum::Logical;
use super::error::ConvertFailure;
use super::numeric::{self, Digits};
use super::options::DecimalMode;
use super::plan::Plan;
use super::temporal::{self, Day, Moment, WrittenDateTime};
use super::text::Charset;

/// The column's default; none where it has none, or one that stands for none (a zero date in a nullable column).
///
/// # Errors
///
/// Any [`ConvertFailure`] where the text is no value of the column's type.
pub(super) fn convert(plan: &Plan, column: &Column) -> Result<Option<Rendered>, ConvertFailure> {
    let DefaultValue::Expression(expression) = &column.default else { return Ok(None) };
    let text = without_introducer(expression);
    let trimmed = text.trim();
    let mut bytes = Vec::new();
    let value = match plan {
        Plan::Int { .. } => Logical::Int(whole(trimmed)?),
        Plan::UnsignedBig { number } => {
            let digits = Digits::parse(truth_as_number(trimmed).as_bytes())?.at_scale(0)?;
            let whole = digits.to_i128().ok_or(ConvertFailure::OutOfRange)?;
            if *number { Logical::Number(whole) } else { Logical::Unscaled(whole, 0) }
        }
        Plan::DecimalNumber { scale } => {
            Logical::DecimalNumber(Decimal::Text(truth_as_number(trimmed).as_bytes()), *scale)
        }
        Plan::Bool => Logical::Bool(whole(trimmed)? != 0),
        // The server itself reads one or two digits as 1970 to 2069, and 0000 as the year 0.
        Plan::Year if trimmed == "0000" => Logical::Int(0),
        Plan::Year => Logical::Int(temporal::adjusted_year(whole(trimmed)?)),
        Plan::Float { .. } | Plan::DoubleAsFloat => {
            Logical::Float(truth_as_number(trimmed).parse().map_err(|_| ConvertFailure::Malformed)?)
        }
        Plan::FloatAsDouble => Logical::Double(numeric::widened(
            truth_as_number(trimmed).parse().map_err(|_| ConvertFailure::Malformed)?,
        )),
        Plan::Double => Logical::Double(
            truth_as_number(trimmed).parse().map_err(|_| ConvertFailure::Malformed)?,
        ),
        Plan::Decimal { scale, mode } => {
            decimal(truth_as_number(trimmed).as_bytes(), *scale, *mode)
        }
        Plan::Bit => {
            bits(trimmed, &mut bytes)?;
            Logical::Bool(bytes.iter().any(|&byte| byte != 0))
        }
        Plan::Bits { bytes: length } => {
            bits(trimmed, &mut bytes)?;
            let missing = length.saturating_sub(bytes.len());
            bytes.splice(..0, std::iter::repeat_n(0, missing));
            Logical::Bits(&bytes)
        }
        Plan::Text(_) | Plan::Enum(_) | Plan::Set(_) => Logical::Str(text),
        Plan::Binary { mode, .. } => Logical::Bytes(text.as_bytes(), 0, *mode),
        Plan::Date { iso, .. } => match zero_or_datetime(trimmed)? {
            Some(((year, month, day), _)) => temporal::day_in(
                Day::new(year, month, day).ok_or(ConvertFailure::InvalidDate)?,
                *iso,
            ),
            None if column.optional => return Ok(None),
            None => temporal::epoch_day(*iso),
        },
        Plan::DateTime { unit, .. } => match zero_or_datetime(trimmed)? {
            Some(((year, month, day), micros)) => {
                let day = Day::new(year, month, day).ok_or(ConvertFailure::InvalidDate)?;
                temporal::moment_in(Moment::new(day, micros), *unit)?
            }
            None if column.optional => return Ok(None),
            None => temporal::epoch(*unit),
        },
        Plan::Timestamp { digits, .. } => match zero_or_datetime(trimmed)? {
            // The model has this moment for CURRENT_TIMESTAMP.
            Some(((1970, 1, 1), 0)) | None if column.optional => return Ok(None),
            Some(((1970, 1, 1), 0)) | None => Logical::Zoned(Moment::EPOCH, None),
            Some(((year, month, day), micros)) => {
                let day = Day::new(year, month, day).ok_or(ConvertFailure::InvalidDate)?;
                Logical::Zoned(Moment::new(day, micros), *digits)
            }
        },
        Plan::Time(unit) => {
            let clock = trimmed.rsplit_once(' ').map_or(trimmed, |(_, clock)| clock);
            temporal::time_in(
                temporal::parse_clock(clock).ok_or(ConvertFailure::Malformed)?,
                *unit,
            )?
        }
        Plan::Mapped(mapped) => return convert(&mapped.inner, column),
        Plan::Json(_)
        | Plan::Point
        | Plan::Geometry
        | Plan::Vector
        | Plan::Uuid
        | Plan::Inet4
        | Plan::Inet6
        | Plan::Unknown => return Err(ConvertFailure::Malformed),
    };
    Rendered::of(value).map(Some)
}

/// Decimal text in a mode.
pub(super) fn decimal(text: &[u8], scale: u8, mode: DecimalMode) -> Logical<'_> {
    let number = Decimal::Text(text);
    match mode {
        DecimalMode::Precise => Logical::Decimal(number, scale),
        DecimalMode::String => Logical::DecimalText(number, scale),
        DecimalMode::Double => Logical::DecimalDouble(number),
    }
}

/// Takes `_charset'…'` off a literal.
fn without_introducer(text: &str) -> &str {
    let inner = text.strip_prefix('_').and_then(|rest| {
        let (name, literal) = rest.split_once('\'')?;
        literal.strip_suffix('\'').filter(|_| Charset::named(name.trim_end()).is_some())
    });
    inner.unwrap_or(text)
}

fn truth_as_number(text: &str) -> &str {
    if text.eq_ignore_ascii_case("true") {
        "1"
    } else if text.eq_ignore_ascii_case("false") {
        "0"
    } else {
        text
    }
}

/// A whole number, rounded; what 64 bits do not hold becomes the nearest they do.
fn whole(text: &str) -> Result<i64, ConvertFailure> {
    let number = Digits::parse(truth_as_number(text).as_bytes())?.at_scale(0)?.to_i128();
    let number = number.ok_or(ConvertFailure::OutOfRange)?;
    Ok(i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX }))
}

/// Binary digits to bytes, most significant first.
fn bits(text: &str, out: &mut Vec<u8>) -> Result<(), ConvertFailure> {
    let text = truth_as_number(text);
    if text.is_empty() || text.len() > 64 {
        return Err(ConvertFailure::Malformed);
    }
    let number = u64::from_str_radix(text, 2).map_err(|_| ConvertFailure::Malformed)?;
    out.extend(number.to_be_bytes().into_iter().skip(8 - text.len().div_ceil(8)));
    Ok(())
}

/// Reads a date with or without a time; none for the forms of zero.
fn zero_or_datetime(text: &str) -> Result<Option<WrittenDateTime>, ConvertFailure> {
    if !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0' | b'-' | b':' | b' ' | b'.'))
    {
        return Ok(None);
    }
    match temporal::parse_datetime(text) {
        Some(((_, 0, _) | (_, _, 0), _)) => Ok(None),
        Some(parts) => Ok(Some(parts)),
        None => Err(ConvertFailure::Malformed),
    }
}
