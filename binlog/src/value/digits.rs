//! Numbers as decimal digits.
//!
//! Eight digits at a time are found in one register, a byte each, without a table and without a loop. They are appended
//! as a block of fixed size, of which those too many are taken back: that costs no call.

/// Two digits each: `00` to `99`.
const PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [*b"00"; 100];
    let mut pair: u8 = 0;
    let mut left: &mut [[u8; 2]] = &mut pairs;
    while let [first, rest @ ..] = left {
        *first = [b'0' + pair / 10, b'0' + pair % 10];
        pair += 1;
        left = rest;
    }
    pairs
}

/// A number below 100 in two digits; `00` for any other.
#[inline]
#[must_use]
pub fn two_digits(number: u32) -> [u8; 2] {
    PAIRS.get(number as usize).copied().unwrap_or(*b"00")
}

/// The character `0` in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// What eight digits count to.
const EIGHT: u64 = 100_000_000;

/// The eight digits of a number below 10⁸: the first in the lowest byte, as numbers from 0 to 9.
#[inline]
const fn eight_digits(number: u64) -> u64 {
    // Two halves of four digits, four pairs, eight digits: each quotient is a product whose lower part is cut off.
    let high = number / 10_000;
    let halves = high | (number - high * 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | (halves - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - tens * 10) << 8
}

/// Appends the first `count` of eight digits.
#[inline]
fn push_digits(digits: u64, count: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&(digits + ZEROS).to_le_bytes());
    out.truncate(start + count);
}

/// Appends a number below 10⁸.
#[inline]
fn push_small(number: u64, out: &mut Vec<u8>) {
    let digits = eight_digits(number);
    // The last digit stays, even if it is a zero.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    push_digits(digits >> (8 * zeros), 8 - zeros as usize, out);
}

/// Appends a whole number.
#[inline]
pub fn write_u64(number: u64, out: &mut Vec<u8>) {
    if number < EIGHT { push_small(number, out) } else { write_large(number, out) }
}

/// Appends a whole number with its sign.
#[inline]
pub fn write_i64(number: i64, out: &mut Vec<u8>) {
    if number < 0 {
        out.push(b'-');
    }
    write_u64(number.unsigned_abs(), out);
}

/// Appends a number from 10⁸ on.
#[inline(never)]
fn write_large(number: u64, out: &mut Vec<u8>) {
    let (high, low) = (number / EIGHT, number % EIGHT);
    if high < 10 {
        out.push(b'0' | high.to_le_bytes()[0]);
    } else if high < EIGHT {
        push_small(high, out);
    } else {
        push_small(high / EIGHT, out);
        push_digits(eight_digits(high % EIGHT), 8, out);
    }
    push_digits(eight_digits(low), 8, out);
}

/// Appends a double in plain notation, with at least one digit before the point and one behind it, if its shortest decimal
/// (the one of fewest digits that reads back equal) has at most 12 digits behind the point, 8 for a number from 4000 on, 4
/// from 10⁷ on, and it is below 10¹¹. That is most prices and measures. For others nothing is appended and it is `false`.
///
/// The decimals of so many digits are further apart than the doubles around the number, so that no two have the same
/// nearest double: one that reads back equal is the only one, and without its last zeros the shortest. It reads back so when
/// the quotient equals the double: both operands are exact, and the division is rounded once.
#[inline]
pub fn write_short_f64(number: f64, out: &mut Vec<u8>) -> bool {
    let size = number.abs();
    let power = match size {
        ..4e3 => 1e12,
        ..1e7 => 1e8,
        ..1e11 => 1e4,
        _ => return false,
    };
    let (scaled, digits) = nearest(size * power);
    if scaled / power != size {
        return false;
    }
    // Divisors that the compiler knows.
    let parts = match size {
        ..4e3 => (digits / 1_000_000_000_000, digits % 1_000_000_000_000),
        ..1e7 => (digits / 100_000_000, digits % 100_000_000 * 10_000),
        _ => (digits / 10_000, digits % 10_000 * 100_000_000),
    };
    write_parts(number.is_sign_negative(), parts, out);
    true
}

/// The same for a 32-bit float: up to 6 digits behind the point for a number below 16, fewer above, below 2²⁰.
#[inline]
pub fn write_short_f32(number: f32, out: &mut Vec<u8>) -> bool {
    /// By the exponent: what makes the digits a whole number, and then millionths of it.
    const POWERS: [(f64, u64); 20] = {
        let (six, five, four) = ((1e6, 1), (1e5, 10), (1e4, 100));
        let (three, two, one) = ((1e3, 1000), (1e2, 10_000), (1e1, 100_000));
        [
            six, six, six, six, five, five, five, four, four, four, three, three, three, three,
            two, two, two, one, one, one,
        ]
    };
    let size = number.abs();
    let exponent = (size.to_bits() >> 23).saturating_sub(127);
    let Some((power, factor)) = POWERS.get(exponent as usize) else { return false };
    let (scaled, digits) = nearest(f64::from(size) * power);
    // Rounded twice, which is harmless: a decimal of so few digits is not so near to the middle between two floats.
    #[expect(clippy::cast_possible_truncation, reason = "to be compared with a 32-bit float")]
    if (scaled / power) as f32 != size {
        return false;
    }
    let millionths = digits * factor;
    let parts = (millionths / 1_000_000, millionths % 1_000_000 * 1_000_000);
    write_parts(number.is_sign_negative(), parts, out);
    true
}

/// The whole number next to one below 2⁵², as a float and as an integer.
#[inline]
const fn nearest(number: f64) -> (f64, u64) {
    /// 2⁵². What is added to it loses its fraction and stands in the lower 52 bits.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let shifted = number + SHIFT;
    (shifted - SHIFT, shifted.to_bits() & ((1 << 52) - 1))
}

/// Appends what stands before the point, and 12 digits behind it without the last zeros.
#[inline]
fn write_parts(is_negative: bool, (before, after): (u64, u64), out: &mut Vec<u8>) {
    if is_negative {
        out.push(b'-');
    }
    write_u64(before, out);
    out.push(b'.');
    let (first, last) = (after / 10_000, after % 10_000);
    if last == 0 {
        let first = eight_digits(first);
        // One digit stays, even if it is a zero.
        push_digits(first, 8 - (first | 1).leading_zeros() as usize / 8, out);
    } else {
        let last = eight_digits(last * 10_000);
        push_digits(eight_digits(first), 8, out);
        push_digits(last, 8 - last.leading_zeros() as usize / 8, out);
    }
}

/// Most digits of a number of 128 bits, and a place for one more.
const ROOM: usize = 40;

/// What a step of 128-bit numbers takes off: 18 digits, an even number.
const STEP: u128 = 1_000_000_000_000_000_000;

const STEP_DIGITS: usize = 18;

/// The digits of a number, right-aligned in a row of zeros.
struct Digits {
    text: [u8; ROOM],
    /// How many there are, at least one.
    count: usize,
}

impl Digits {
    #[inline]
    fn of(number: u128) -> Self {
        let mut digits = Self { text: [b'0'; ROOM], count: 0 };
        let mut number = number;
        let mut done = 0;
        loop {
            match u64::try_from(number) {
                Ok(last) => {
                    digits.put(done, last);
                    return digits;
                }
                Err(_) => {
                    digits.put(done, low(number % STEP));
                    number /= STEP;
                    done += STEP_DIGITS;
                }
            }
        }
    }

    /// Writes a number whose last digit has this place from the right.
    #[inline]
    fn put(&mut self, place: usize, number: u64) {
        let end = ROOM - place;
        let mut left = number;
        self.count = place;
        let places = self.text.get_mut(..end).unwrap_or_default();
        for to in places.rchunks_exact_mut(2) {
            let (rest, pair) = (left / 100, left % 100);
            to.copy_from_slice(PAIRS.get(low_index(pair)).unwrap_or(b"00"));
            self.count += if left < 10 { 1 } else { 2 };
            left = rest;
            if left == 0 {
                return;
            }
        }
    }
}

/// Appends `number / 10^scale` with all `scale` digits after the point, at least one before it.
#[inline]
pub(super) fn write_scaled(is_negative: bool, number: u128, scale: u8, out: &mut Vec<u8>) {
    let scale = usize::from(scale).min(ROOM - 1);
    let digits = Digits::of(number);
    if is_negative {
        out.push(b'-');
    }
    let from = ROOM - digits.count.max(scale + 1);
    let (before, after) = digits.text.split_at_checked(ROOM - scale).unwrap_or_default();
    out.extend_from_slice(before.get(from..).unwrap_or_default());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(after);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the remainder of a division by 10^18")]
const fn low(number: u128) -> u64 {
    number as u64
}

#[expect(clippy::cast_possible_truncation, reason = "below 100")]
const fn low_index(pair: u64) -> usize {
    pair as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scaled(is_negative: bool, number: u128, scale: u8) -> String {
        let mut out = Vec::new();
        write_scaled(is_negative, number, scale, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// What the standard library prints, without an exponent.
    fn plain(text: String) -> String {
        let Some((digits, exponent)) = text.split_once("e-") else { return text };
        let zeros = "0".repeat(exponent.parse::<usize>().unwrap() - 1);
        let digits = digits.replace('.', "");
        // `1.0e-7` has a zero that says nothing.
        let digits = if digits.len() == 2 { digits.trim_end_matches('0') } else { &digits };
        format!("0.{zeros}{digits}")
    }

    #[test]
    fn numbers_of_any_length_are_written_without_leading_zeros() {
        let tens = (0..20).map(|power| 10_u64.pow(power));
        let numbers = tens.flat_map(|ten| [ten - 1, ten, ten + 1, ten.saturating_mul(9)]);
        for number in numbers.chain([u64::MAX]).chain(0..20_000) {
            assert_eq!(printed(|out| write_u64(number, out)), number.to_string());
        }
        for number in [i64::MIN, -10, -1, 0, 7, i64::MAX] {
            assert_eq!(printed(|out| write_i64(number, out)), number.to_string());
        }
    }

    #[test]
    fn doubles_of_few_digits_are_written_and_others_refused() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.3, "0.3"),
            (91.6, "91.6"),
            (549.65, "549.65"),
            (0.127_929_687_5, "0.1279296875"),
            (3_999.123_456_789_01, "3999.12345678901"),
            (4_000.000_000_01, "4000.00000001"),
            (9_999_999.999, "9999999.999"),
            (12_345_678.9, "12345678.9"),
            (99_999_999_999.0, "99999999999.0"),
            (0.000_000_000_001, "0.000000000001"),
        ] {
            let mut out = Vec::new();
            assert!(write_short_f64(number, &mut out), "{number}");
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
        for number in [1.0 / 3.0, 0.1 + 0.2, 1e11, 1e300, 1e-13, f64::NAN, f64::INFINITY, f64::MIN]
        {
            let mut out = Vec::new();
            assert!(!write_short_f64(number, &mut out), "{number}");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn every_float_of_few_bits_is_the_shortest_one() {
        let mut written = 0;
        // Every 61st of the floats from 2⁻²⁰ to 2²⁴.
        for bits in (0x3580_0000_u32..0x4b80_0000).step_by(61) {
            let float = f32::from_bits(bits);
            let mut out = Vec::new();
            if write_short_f32(float, &mut out) {
                written += 1;
                assert_eq!(String::from_utf8(out).unwrap(), plain(format!("{float:?}")));
            }
        }
        assert!(written > 100_000, "{written}");
    }

    #[test]
    fn the_point_has_a_digit_before_it_and_all_of_the_scale_behind() {
        for (number, scale, text) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (5, 1, "0.5"),
            (5, 3, "0.005"),
            (150, 2, "1.50"),
            (u64::MAX.into(), 0, "18446744073709551615"),
            (10_u128.pow(18), 0, "1000000000000000000"),
            (10_u128.pow(36) + 7, 30, "1000000.000000000000000000000000000007"),
            (u128::MAX, 0, "340282366920938463463374607431768211455"),
        ] {
            assert_eq!(scaled(false, number, scale), text);
            assert_eq!(scaled(true, number, scale), format!("-{text}"));
        }
    }

    proptest! {
        #[test]
        fn numbers_print_as_the_standard_library_prints_them(number: u128, shift in 0_u32..128) {
            let number = number >> shift;
            prop_assert_eq!(scaled(false, number, 0), number.to_string());
        }

        #[test]
        fn whole_numbers_print_as_the_standard_library_prints_them(number: i64, shift in 0_u32..64) {
            let number = number >> shift;
            prop_assert_eq!(printed(|out| write_i64(number, out)), number.to_string());
            let number = number.cast_unsigned();
            prop_assert_eq!(printed(|out| write_u64(number, out)), number.to_string());
        }

        #[test]
        fn short_doubles_are_the_shortest_ones(digits in 0_u64..1 << 50, scale in 0_i32..14, binary in 0_i32..20) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
            let digits = digits as f64;
            for double in [digits / 10_f64.powi(scale), digits / 2_f64.powi(scale + binary)] {
                let mut out = Vec::new();
                if write_short_f64(double, &mut out) {
                    // `{:?}` has the shortest digits, and a point.
                    prop_assert_eq!(String::from_utf8(out).unwrap(), plain(format!("{double:?}")));
                } else {
                    prop_assert!(out.is_empty());
                }
            }
        }

        #[test]
        fn short_floats_are_the_shortest_ones(digits in 0_u32..1 << 24, scale in 0_i32..9, binary in 0_i32..16) {
            #[expect(clippy::cast_precision_loss, reason = "at most 2^24")]
            let digits = digits as f32;
            for float in [digits / 10_f32.powi(scale), digits / 2_f32.powi(scale + binary)] {
                let mut out = Vec::new();
                if write_short_f32(float, &mut out) {
                    prop_assert_eq!(String::from_utf8(out).unwrap(), plain(format!("{float:?}")));
                } else {
                    prop_assert!(out.is_empty());
                }
            }
        }
    }
}
