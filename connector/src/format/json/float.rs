//! Floats in Java's spelling.

use holdfast_binlog::value::digits::{write_i64, write_short_f32, write_short_f64};

/// Appends a 32-bit float: its shortest decimal in Java's spelling. What JSON has no number for becomes a string.
pub fn write_f32(value: f32, out: &mut Vec<u8>) {
    let plain = is_plain(value.into());
    if plain && write_short_f32(value, out) {
        return;
    }
    match non_finite(value.into()) {
        Some(name) => out.extend_from_slice(name),
        None => write_ryu(ryu::Buffer::new().format_finite(value), plain, out),
    }
}

/// Appends a 64-bit float: its shortest decimal in Java's spelling. What JSON has no number for becomes a string.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    let plain = is_plain(value);
    if plain && write_short_f64(value, out) {
        return;
    }
    match non_finite(value) {
        Some(name) => out.extend_from_slice(name),
        None => write_ryu(ryu::Buffer::new().format_finite(value), plain, out),
    }
}

/// Whether Java prints the number without an exponent.
#[inline]
fn is_plain(value: f64) -> bool {
    value == 0.0 || (1e-3..1e7).contains(&value.abs())
}

/// Jackson prints these as strings.
fn non_finite(value: f64) -> Option<&'static [u8]> {
    if value.is_nan() {
        Some(b"\"NaN\"")
    } else if value.is_infinite() {
        Some(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" })
    } else {
        None
    }
}

/// Lays out the digits that `ryu` found as `Double.toString` does: plain from 1e-3 up to 1e7, else one digit, a point,
/// the others (at least a zero), `E` and the exponent.
fn write_ryu(text: &str, plain: bool, out: &mut Vec<u8>) {
    if plain {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let unsigned = match text.strip_prefix('-') {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => text,
    };
    let (mantissa, exponent) = match unsigned.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or_default()),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let leading = whole.bytes().chain(fraction.bytes()).take_while(|&digit| digit == b'0').count();
    let count = |digits: usize| i32::try_from(digits).unwrap_or_default();
    let exponent = exponent + count(whole.len()) - 1 - count(leading);
    let start = out.len();
    out.extend(whole.bytes().chain(fraction.bytes()).skip(leading));
    while out.len() > start + 1 && out.last() == Some(&b'0') {
        out.pop();
    }
    if out.len() == start + 1 {
        out.push(b'0');
    }
    out.insert(start + 1, b'.');
    out.push(b'E');
    write_i64(i64::from(exponent), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Floats as Debezium 3.6.3.Final printed them.
    #[test]
    fn floats_have_javas_spelling() {
        for (value, json) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (1e-7, "1.0E-7"),
            (9_999_999.999, "9999999.999"),
            (1e7, "1.0E7"),
            (12_345_678.9, "1.23456789E7"),
            (1e21, "1.0E21"),
            (-1e100, "-1.0E100"),
            (1.234_567_890_123_456_7e9, "1.2345678901234567E9"),
            (-1.797_693_134_862_315_7e308, "-1.7976931348623157E308"),
            (2.225_073_858_507_201_4e-308, "2.2250738585072014E-308"),
            (1e16, "1.0E16"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ] {
            assert_eq!(printed(|out| write_f64(value, out)), json);
        }
        for (value, json) in
            [(3.402_823_5e38, "3.4028235E38"), (123_456.79, "123456.79"), (1e10, "1.0E10")]
        {
            assert_eq!(printed(|out| write_f32(value, out)), json);
        }
    }

    proptest! {
        #[test]
        fn any_float_reads_back(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(printed(|out| write_f64(value, out)).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }

        #[test]
        fn floats_of_few_digits_are_written_as_others(digits in 0_i32..1 << 24, scale in 0_i32..14, binary in 0_i32..20) {
            let double = f64::from(digits);
            for double in [double / 10_f64.powi(scale), -double / 2_f64.powi(scale + binary)] {
                let through_ryu = printed(|out| write_ryu(ryu::Buffer::new().format_finite(double), is_plain(double), out));
                prop_assert_eq!(printed(|out| write_f64(double, out)), through_ryu);
                #[expect(clippy::cast_possible_truncation, reason = "any float will do")]
                let float = double as f32;
                let through_ryu = printed(|out| write_ryu(ryu::Buffer::new().format_finite(float), is_plain(float.into()), out));
                prop_assert_eq!(printed(|out| write_f32(float, out)), through_ryu);
            }
        }
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }
}
