//! Numbers: integers by their signedness, decimals by their scale.

use holdfast_binlog::Value;
use holdfast_binlog::value::Decimal;

use super::ConvertFailure;
use crate::format::json as token;

/// Digits that a decimal may have at most, with room for defaults that are not yet brought to the column's scale.
const MAX_DIGITS: usize = 400;

/// The integer in a value. What is not an integer is none.
#[expect(clippy::wildcard_enum_match_arm, reason = "a new kind of value is no integer")]
#[inline]
pub(crate) fn integer(value: &Value<'_>, unsigned: bool) -> Option<i64> {
    Some(if unsigned {
        match *value {
            Value::Int8(bits) => i64::from(bits),
            Value::Int16(bits) => i64::from(bits),
            Value::Int24(bits) | Value::Int32(bits) => i64::from(bits),
            // As Debezium in mode `long`: the two's complement.
            Value::Int64(bits) => bits.cast_signed(),
            _ => return None,
        }
    } else {
        match *value {
            Value::Int8(bits) => i64::from(bits.cast_signed()),
            Value::Int16(bits) => i64::from(bits.cast_signed()),
            Value::Int24(bits) => i64::from((bits << 8).cast_signed() >> 8),
            Value::Int32(bits) => i64::from(bits.cast_signed()),
            Value::Int64(bits) => bits.cast_signed(),
            _ => return None,
        }
    })
}

/// The value of a FLOAT as the server prints it in a query: six significant digits.
pub(crate) fn six_digits(value: f32) -> f32 {
    if value.is_finite() { read_back(format_args!("{value:.5e}")).unwrap_or(value) } else { value }
}

/// The number that a text of at most 32 bytes says.
fn read_back<T: std::str::FromStr>(text: std::fmt::Arguments<'_>) -> Option<T> {
    let mut buffer = [0; 32];
    let mut room = &mut buffer[..];
    std::io::Write::write_fmt(&mut room, text).ok()?;
    let left = room.len();
    let written = buffer.get(..buffer.len() - left)?;
    std::str::from_utf8(written).ok()?.parse().ok()
}

/// The 64-bit float that is nearest to the shortest text of a 32-bit one: 123.4567 stays 123.4567.
///
/// DIFFERS: Debezium keeps the number that the 32 bits hold, 123.45670318603516.
pub(crate) fn widened(value: f32) -> f64 {
    if value.is_finite() {
        read_back(format_args!("{value:e}")).unwrap_or_else(|| f64::from(value))
    } else {
        f64::from(value)
    }
}

/// A 64-bit float as the nearest 32-bit one, as Debezium does for REAL.
#[expect(clippy::cast_possible_truncation, reason = "the loss is the reference's behaviour")]
pub(crate) fn narrowed(value: f64) -> f32 {
    value as f32
}

/// Appends a decimal's unscaled number at `scale` as a JSON string of base64.
#[inline(never)]
pub(crate) fn write_unscaled_json(
    value: Decimal<'_>,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    match value {
        Decimal::Number { unscaled, scale: stored } if stored == scale => {
            token::write_base64_wide(unscaled.get(), out);
        }
        Decimal::Packed { scale: stored, .. } if stored == scale => {
            // The bytes are printed where their base64 goes, and taken from there.
            let start = out.len();
            value.write_unscaled_be(out).map_err(|_| ConvertFailure::Malformed)?;
            let mut room = [0; 32];
            let length = out.len() - start;
            let bytes = room.get_mut(..length).ok_or(ConvertFailure::OutOfRange)?;
            bytes.copy_from_slice(out.get(start..).unwrap_or_default());
            out.truncate(start);
            token::write_base64(bytes, out);
        }
        Decimal::Number { .. } | Decimal::Packed { .. } | Decimal::Text(_) => {
            token::write_base64(&Digits::of(value)?.at_scale(scale)?.unscaled(), out);
        }
    }
    Ok(())
}

/// A decimal's unscaled number at `scale`, big-endian two's complement.
pub(crate) fn unscaled(value: Decimal<'_>, scale: u8) -> Result<Vec<u8>, ConvertFailure> {
    match small(value, scale) {
        Some(small) => Ok(minimal_bytes(small)),
        None => Ok(Digits::of(value)?.at_scale(scale)?.unscaled()),
    }
}

/// Appends a decimal's plain text at `scale`.
pub(crate) fn write_text(
    value: Decimal<'_>,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    if stored_scale(value) == Some(scale) {
        value.write_text(out);
        return Ok(());
    }
    Digits::of(value)?.at_scale(scale)?.write(out);
    Ok(())
}

/// Appends a decimal at `scale` as a JSON number, spelled as Java's `BigDecimal` is: with an exponent from seven zeros
/// behind the point on.
pub(crate) fn write_number(
    value: Decimal<'_>,
    scale: u8,
    out: &mut Vec<u8>,
) -> Result<(), ConvertFailure> {
    let start = out.len();
    write_text(value, scale, out)?;
    let text = out.get(start..).unwrap_or_default();
    let sign = usize::from(text.first() == Some(&b'-'));
    let Some(fraction) = text.get(sign..).and_then(|text| text.strip_prefix(b"0.")) else {
        return Ok(());
    };
    let zeros = fraction.iter().take_while(|&&digit| digit == b'0').count();
    let is_zero = zeros == fraction.len();
    let exponent = if is_zero { zeros } else { zeros + 1 };
    if exponent < 7 {
        return Ok(());
    }
    // Digits are one byte each, so what is behind the zeros moves to the front.
    let digits = if is_zero { start + sign + 1 } else { start + sign + 2 + zeros };
    if is_zero {
        out.truncate(digits);
    } else {
        out.drain(start + sign..digits);
        if out.len() > start + sign + 1 {
            out.insert(start + sign + 1, b'.');
        }
    }
    out.extend_from_slice(b"E-");
    token::write_u64(u64::try_from(exponent).unwrap_or_default(), out);
    Ok(())
}

/// A decimal's plain text at `scale`.
pub(crate) fn text(value: Decimal<'_>, scale: u8) -> Result<String, ConvertFailure> {
    let mut out = Vec::new();
    write_text(value, scale, &mut out)?;
    String::from_utf8(out).map_err(|_| ConvertFailure::Malformed)
}

/// The 64-bit float nearest to a decimal. What `scratch` holds stays.
pub(crate) fn double(value: Decimal<'_>, scratch: &mut Vec<u8>) -> Result<f64, ConvertFailure> {
    let start = scratch.len();
    let text = match value {
        Decimal::Text(text) => text,
        Decimal::Number { .. } | Decimal::Packed { .. } => {
            value.write_text(scratch);
            scratch.get(start..).unwrap_or_default()
        }
    };
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse::<f64>().ok());
    scratch.truncate(start);
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(ConvertFailure::OutOfRange),
        None => Err(ConvertFailure::Malformed),
    }
}

/// The unscaled number where the value has this scale already and 128 bits hold it.
fn small(value: Decimal<'_>, scale: u8) -> Option<i128> {
    if stored_scale(value) == Some(scale) { value.to_i128() } else { None }
}

/// The scale that a value of rows events has.
const fn stored_scale(value: Decimal<'_>) -> Option<u8> {
    match value {
        Decimal::Number { scale, .. } | Decimal::Packed { scale, .. } => Some(scale),
        Decimal::Text(_) => None,
    }
}

/// A number's two's complement in as few bytes as hold it.
pub(crate) fn minimal_bytes(value: i128) -> Vec<u8> {
    minimal(&value.to_be_bytes()).to_vec()
}

/// Strips leading bytes of a big-endian two's complement that say nothing. One byte stays.
pub(crate) fn minimal(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && let Some(second) = rest.first()
        && ((*first == 0 && second & 0x80 == 0) || (*first == 0xff && second & 0x80 != 0))
    {
        bytes = rest;
    }
    bytes
}

/// Decimal digits by hand, for what does not fit 128 bits or has another scale than its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digits {
    negative: bool,
    /// Digits 0 to 9, most significant first, at least `scale` of them.
    digits: Vec<u8>,
    /// How many of them follow the point.
    scale: usize,
}

impl Digits {
    fn of(value: Decimal<'_>) -> Result<Self, ConvertFailure> {
        match value {
            Decimal::Text(text) => Self::parse(text),
            Decimal::Number { .. } | Decimal::Packed { .. } => {
                let mut text = Vec::new();
                value.write_text(&mut text);
                Self::parse(&text)
            }
        }
    }

    /// Reads a sign, digits, a point, digits, and an exponent.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, ConvertFailure> {
        let text = text.trim_ascii();
        let (negative, unsigned) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, text),
        };
        let (mantissa, exponent) =
            match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
                None => (unsigned, 0),
                Some(at) => {
                    let (mantissa, exponent) = unsigned.split_at(at);
                    let exponent =
                        exponent.get(1..).and_then(|exponent| std::str::from_utf8(exponent).ok());
                    (
                        mantissa,
                        exponent
                            .and_then(|exponent| exponent.parse().ok())
                            .ok_or(ConvertFailure::Malformed)?,
                    )
                }
            };
        let mut digits = Vec::with_capacity(mantissa.len().min(MAX_DIGITS));
        let mut point = None;
        for &byte in mantissa {
            match byte {
                b'.' if point.is_none() => point = Some(digits.len()),
                b'0'..=b'9' if digits.len() < MAX_DIGITS => digits.push(byte - b'0'),
                _ => return Err(ConvertFailure::Malformed),
            }
        }
        if digits.is_empty() {
            return Err(ConvertFailure::Malformed);
        }
        let fraction = digits.len() - point.unwrap_or(digits.len());
        let exponent: i32 = exponent;
        let scale = i32::try_from(fraction).unwrap_or(i32::MAX).saturating_sub(exponent);
        if scale.unsigned_abs() > 400 {
            return Err(ConvertFailure::OutOfRange);
        }
        let scale = match usize::try_from(scale) {
            Ok(scale) => scale,
            Err(_) => {
                digits.resize(
                    digits.len() + usize::try_from(scale.unsigned_abs()).unwrap_or_default(),
                    0,
                );
                0
            }
        };
        if digits.len() < scale {
            let missing = scale - digits.len();
            digits.splice(..0, std::iter::repeat_n(0, missing));
        }
        Ok(Self { negative, digits, scale })
    }

    /// The same number with this many digits after the point; what is cut off is rounded half up, away from zero.
    pub(crate) fn at_scale(mut self, scale: u8) -> Result<Self, ConvertFailure> {
        let scale = usize::from(scale);
        if self.scale <= scale {
            self.digits.resize(self.digits.len() + scale - self.scale, 0);
        } else {
            let keep = self.digits.len() - (self.scale - scale);
            let up = self.digits.get(keep).is_some_and(|&digit| digit >= 5);
            self.digits.truncate(keep);
            let mut carry = up;
            for digit in self.digits.iter_mut().rev() {
                if !carry {
                    break;
                }
                carry = *digit == 9;
                *digit = if carry { 0 } else { *digit + 1 };
            }
            if carry {
                self.digits.insert(0, 1);
            }
        }
        self.scale = scale;
        if self.digits.len() > MAX_DIGITS * 3 { Err(ConvertFailure::OutOfRange) } else { Ok(self) }
    }

    /// The whole number, where 128 bits hold it and nothing follows the point.
    pub(crate) fn to_i128(&self) -> Option<i128> {
        if self.scale != 0 {
            return None;
        }
        let sign = if self.negative { -1 } else { 1 };
        self.digits.iter().try_fold(0_i128, |number, &digit| {
            number.checked_mul(10)?.checked_add(sign * i128::from(digit))
        })
    }

    /// The number without its point, big-endian two's complement in as few bytes as hold it.
    pub(crate) fn unscaled(&self) -> Vec<u8> {
        // Little-endian base 256 while it grows.
        let mut bytes: Vec<u8> = vec![0];
        for &digit in &self.digits {
            let mut carry = digit;
            for byte in &mut bytes {
                let [high, low] = (u16::from(*byte) * 10 + u16::from(carry)).to_be_bytes();
                *byte = low;
                carry = high;
            }
            if carry != 0 {
                bytes.push(carry);
            }
        }
        bytes.push(0);
        if self.negative {
            let mut carry = true;
            for byte in &mut bytes {
                let (complement, overflow) = (!*byte).overflowing_add(u8::from(carry));
                *byte = complement;
                carry = overflow;
            }
        }
        bytes.reverse();
        minimal(&bytes).to_vec()
    }

    /// Appends plain text: no exponent, exactly as many fraction digits as the scale. Zero has no sign.
    fn write(&self, out: &mut Vec<u8>) {
        if self.negative && self.digits.iter().any(|&digit| digit != 0) {
            out.push(b'-');
        }
        let (whole, fraction) = self.digits.split_at(self.digits.len() - self.scale);
        let leading = whole.iter().take_while(|&&digit| digit == 0).count();
        if leading == whole.len() {
            out.push(b'0');
        }
        out.extend(whole.iter().skip(leading).map(|digit| b'0' + digit));
        if self.scale > 0 {
            out.push(b'.');
            out.extend(fraction.iter().map(|digit| b'0' + digit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_brought_to_the_scale_of_the_column() {
        for (given, scale, text) in [
            ("1.5", 2, "1.50"),
            ("-0", 2, "0.00"),
            ("-999.99", 2, "-999.99"),
            ("1.005", 2, "1.01"),
            ("-1.995", 2, "-2.00"),
            ("9.99", 1, "10.0"),
            ("1e3", 0, "1000"),
            ("12.5e-3", 4, "0.0125"),
            (" +7 ", 0, "7"),
            (".5", 1, "0.5"),
            ("5.", 1, "5.0"),
            ("0.4", 0, "0"),
        ] {
            assert_eq!(
                super::text(Decimal::Text(given.as_bytes()), scale).unwrap(),
                text,
                "{given}"
            );
        }
        for given in ["", "-", ".", "1.2.3", "x", "1e", "1e99999", "0x10"] {
            assert!(super::text(Decimal::Text(given.as_bytes()), 0).is_err(), "{given}");
        }
    }

    /// `BigDecimal.toString` of Java 17.
    #[test]
    fn numbers_have_an_exponent_where_java_has_one() {
        for (given, scale, json) in [
            ("0", 0, "0"),
            ("-12", 0, "-12"),
            ("1.5", 2, "1.50"),
            ("-0.5", 1, "-0.5"),
            ("0", 2, "0.00"),
            ("0", 6, "0.000000"),
            ("0", 7, "0E-7"),
            ("0", 30, "0E-30"),
            ("0.000001", 6, "0.000001"),
            ("0.000001", 10, "0.0000010000"),
            ("0.0000001", 7, "1E-7"),
            ("-0.0000001", 9, "-1.00E-7"),
            ("0.0000000123", 10, "1.23E-8"),
            ("123456789.0000000001", 10, "123456789.0000000001"),
        ] {
            let mut out = b"[".to_vec();
            write_number(Decimal::Text(given.as_bytes()), scale, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("[{json}"), "{given} {scale}");
        }
    }

    #[test]
    fn unscaled_numbers_take_as_few_bytes_as_hold_them() {
        for (text, bytes) in [
            ("0", &[0][..]),
            ("1.10", &[0x6e]),
            ("-1.10", &[0x92]),
            ("255", &[0, 0xff]),
            ("-128", &[0x80]),
            ("-129", &[0xff, 0x7f]),
        ] {
            assert_eq!(Digits::parse(text.as_bytes()).unwrap().unscaled(), bytes, "{text}");
        }
    }

    proptest! {
        #[test]
        fn short_numbers_are_written_as_their_bytes(number in any::<i64>(), shift in 0..64_u32) {
            let number = number >> shift;
            let (mut short, mut bytes) = (Vec::new(), Vec::new());
            token::write_base64_number(number, &mut short);
            token::write_base64(&minimal_bytes(number.into()), &mut bytes);
            prop_assert_eq!(short, bytes);
        }

        #[test]
        fn digits_and_128_bits_agree(number in any::<i128>()) {
            let digits = Digits::parse(number.to_string().as_bytes()).unwrap();
            prop_assert_eq!(digits.unscaled(), minimal_bytes(number));
            let (mut wide, mut bytes) = (Vec::new(), Vec::new());
            token::write_base64_wide(number, &mut wide);
            token::write_base64(&minimal_bytes(number), &mut bytes);
            prop_assert_eq!(wide, bytes);
            prop_assert_eq!(digits.to_i128(), Some(number));
        }
    }
}
