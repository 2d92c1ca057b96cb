//! Doubles as text.

use std::io::Write as _;

use crate::value::digits::write_short_f64;
use crate::wire::DecodeError;

/// Appends a double as the server prints it: the fewest digits that read back equal, in plain notation from 1e-15 up
/// to 15 digits before the point (more where there are digits after it), with an exponent beyond; `.0` where the text
/// has neither point nor exponent.
///
/// Source: MySQL 8.4, `my_gcvt` in `strings/dtoa.cc` and `wrapper_to_string` in `sql-common/json_dom.cc`.
pub(super) fn write_double(double: f64, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    check_finite(double)?;
    if write_short_f64(double, out) {
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
