//! Numbers as decimal digits.

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

/// Appends a whole number.
#[inline]
pub(super) fn write_u64(number: u64, out: &mut Vec<u8>) {
    if let 0..=9 = number {
        out.push(b'0' | number.to_le_bytes()[0]);
        return;
    }
    let digits = Digits::of(number.into());
    out.extend_from_slice(digits.text.get(ROOM - digits.count..).unwrap_or_default());
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
            let mut out = Vec::new();
            let small = low(number % STEP);
            write_u64(small, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), small.to_string());
        }
    }
}
