//! Doubles as text.

use std::io::Write as _;

use crate::value::digits::write_scaled;
use crate::wire::DecodeError;

/// Appends a double as the server prints it: the fewest digits that read back equal, in plain notation from 1e-15 up
/// to 15 digits before the point (more where there are digits after it), with an exponent beyond; `.0` where the text
/// has neither point nor exponent.
///
/// Source: MySQL 8.4, `my_gcvt` in `strings/dtoa.cc` and `wrapper_to_string` in `sql-common/json_dom.cc`.
pub(super) fn write_double(double: f64, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    check_finite(double)?;
    if let Some((number, scale)) = few_digits(double.abs()) {
        // One digit after the point stays.
        let (number, scale) = if scale == 0 { (number * 10, 1) } else { (number, scale) };
        write_scaled(double.is_sign_negative(), number.into(), scale, out);
        return Ok(());
    }
    if double.is_sign_negative() {
        out.push(b'-');
    }
    let mut buffer = [0; 32];
    let digits = Digits::shortest(double.abs(), &mut buffer)?;
    let significant = digits.first.len() + digits.rest.len();
    let significant_signed = i64::try_from(significant).unwrap_or(i64::MAX);
    // The server's `decpt`: digits before the point.
    let before = digits.exponent + 1;
    if before < -14 || before > 15 && significant_signed <= before {
        out.extend_from_slice(digits.first);
        if !digits.rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(digits.rest);
        }
        return write(out, format_args!("e{}", digits.exponent));
    }
    let all = digits.first.iter().chain(digits.rest);
    if before <= 0 {
        out.extend_from_slice(b"0.");
        out.extend((before..0).map(|_| b'0'));
        out.extend(all);
        return Ok(());
    }
    let before = usize::try_from(before).unwrap_or_default();
    out.extend(all.clone().copied().chain(std::iter::repeat(b'0')).take(before));
    out.push(b'.');
    if significant > before {
        out.extend(all.skip(before));
    } else {
        out.push(b'0');
    }
    Ok(())
}

/// The number as `digits / 10^scale` where few digits say it, as they do most prices and measures, with the least scale.
///
/// No two decimals of at most 15 digits have the same nearest double, so one that reads back equal is the shortest. It
/// reads back so when the quotient equals the double: both operands are exact, and the division is rounded once.
#[inline]
fn few_digits(double: f64) -> Option<(u64, u8)> {
    const MAX: f64 = 1e14;
    for (power, scale) in [(1.0, 0), (10.0, 1), (100.0, 2), (1e3, 3), (1e4, 4)] {
        let scaled = double * power + 0.5;
        if scaled >= MAX {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "neither negative nor above 10^14"
        )]
        let digits = scaled as u64;
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        if digits as f64 / power == double {
            return Some((digits, scale));
        }
    }
    None
}

/// The shortest digits of a number that is not negative: `first.rest * 10^exponent`.
struct Digits<'b> {
    first: &'b [u8],
    rest: &'b [u8],
    exponent: i64,
}

impl<'b> Digits<'b> {
    fn shortest(double: f64, buffer: &'b mut [u8; 32]) -> Result<Self, DecodeError> {
        let unexpected = DecodeError::Unsupported { what: "the text of a double" };
        let mut left = &mut buffer[..];
        write!(left, "{double:e}").map_err(|_| unexpected)?;
        let len = 32 - left.len();
        let text = buffer.get(..len).ok_or(unexpected)?;
        let mut parts = text.split(|byte| *byte == b'e');
        let digits = parts.next().ok_or(unexpected)?;
        let exponent = parts
            .next()
            .and_then(|exponent| std::str::from_utf8(exponent).ok()?.parse().ok())
            .ok_or(unexpected)?;
        let (first, rest) = digits.split_at_checked(1).ok_or(unexpected)?;
        Ok(Self { first, rest: rest.strip_prefix(b".").unwrap_or(rest), exponent })
    }
}

fn check_finite(double: f64) -> Result<(), DecodeError> {
    if double.is_finite() {
        Ok(())
    } else {
        Err(DecodeError::Invalid { field: "json double (as bits)", value: double.to_bits() })
    }
}

/// Formats into a vector, which never fails.
fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) -> Result<(), DecodeError> {
    out.write_fmt(text).map_err(|_| DecodeError::Unsupported { what: "the text of a double" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn few_digits_are_the_shortest_ones(number in 0_u64..1 << 48, scale in 0_i32..8) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let double = number as f64 / 10_f64.powi(scale);
            let mut buffer = [0; 32];
            let shortest = Digits::shortest(double, &mut buffer).unwrap();
            let shortest = [shortest.first, shortest.rest].concat();
            if let Some((digits, scale)) = few_digits(double) {
                let text = digits.to_string();
                let text = if digits == 0 { "0" } else { text.trim_end_matches('0') };
                prop_assert_eq!(text.as_bytes(), shortest);
                let mut out = Vec::new();
                write_scaled(false, digits.into(), scale, &mut out);
                prop_assert_eq!(String::from_utf8(out).unwrap().parse::<f64>().unwrap(), double);
            } else {
                prop_assert!(scale > 4 || double >= 1e10, "{}", double);
            }
        }
    }
}
