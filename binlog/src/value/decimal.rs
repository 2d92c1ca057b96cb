//! DECIMAL: its number, its packed digits where that is too large, or the text of a query.

use std::fmt;

use super::digits::write_scaled;
use crate::wire::{Cursor, DecodeError};

/// Most digits a DECIMAL has.
const MAX_PRECISION: u8 = 65;

/// Most digits the server's own decimals have room for, leading zeros included (MySQL, `DECIMAL_BUFF_LENGTH`: nine
/// groups). A decimal in JSON carries the digits of the computation that it comes from.
const MAX_DIGITS: u8 = 81;

/// Most digits a DECIMAL has after the point.
const MAX_SCALE: u8 = 30;

/// Digits in a full group, which takes [`GROUP_BYTES`] bytes.
const GROUP: u8 = 9;

const GROUP_BYTES: u8 = 4;

/// Bytes that 0 to 9 digits take (MySQL, `strings/decimal.cc`, `dig2bytes`).
const DIGIT_BYTES: [u8; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// What a full group counts to.
const FULL: u64 = 1_000_000_000;

const POWERS: [u32; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Most digits that every number of 128 bits and a sign has room for.
const MAX_NUMBER_DIGITS: u8 = 38;

/// A DECIMAL value with its declared scale.
///
/// A value of a column with at most 38 digits is decoded to its number at once; a longer one keeps its digits.
///
/// The packed form (MySQL, `strings/decimal.cc`, `decimal2bin`): the digits before the point are cut into groups of
/// nine from the point to the left, those after it from the point to the right; each group is a big-endian number of
/// 4 bytes, the incomplete groups at both ends take fewer. The first bit is set for a number that is not negative; a
/// negative one has every bit flipped. Decoding checks that no group exceeds its digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimal<'a> {
    /// The number without its point.
    Number {
        /// The number: `-999.99` is -99999.
        unscaled: Unscaled,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// The packed big-endian form of rows events, 9 digits in 4 bytes, sign in the top bit: more than 38 digits.
    Packed {
        /// The packed bytes, of the length that precision and scale give.
        bytes: &'a [u8],
        /// Digits in all, 1 to 65 in a column.
        precision: u8,
        /// Digits after the point, 0 to 30.
        scale: u8,
    },
    /// Decimal text as a query prints it: an optional minus, digits, an optional point and digits.
    Text(&'a [u8]),
}

/// A number of 128 bits with its sign, in bytes: it needs no alignment, which would make every value larger.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unscaled([u8; 16]);

impl Unscaled {
    /// Keeps a number.
    #[inline(always)]
    #[must_use]
    pub const fn new(number: i128) -> Self {
        Self(number.to_ne_bytes())
    }

    /// The number.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> i128 {
        i128::from_ne_bytes(self.0)
    }
}

impl fmt::Debug for Unscaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<'a> Decimal<'a> {
    /// Takes the packed form and checks its digits. `len` is [`packed_len`] of precision and scale.
    #[inline]
    pub(crate) fn read(
        cursor: &mut Cursor<'a>,
        precision: u8,
        scale: u8,
        len: u8,
    ) -> Result<Self, DecodeError> {
        let bytes = cursor.take(len.into(), "decimal")?;
        match SmallLayout::new(precision, scale).and_then(|layout| layout.unscaled(bytes)) {
            Some(number) => Ok(Self::number(number.into(), scale)),
            None => Self::read_long(bytes, precision, scale),
        }
    }

    /// A value as its number.
    #[inline(always)]
    pub(crate) const fn number(number: i128, scale: u8) -> Self {
        Self::Number { unscaled: Unscaled::new(number), scale }
    }

    /// Says what is wrong with a number that [`SmallLayout::unscaled`] did not read.
    #[cold]
    pub(crate) fn bad_digits(bytes: &[u8], precision: u8, scale: u8) -> DecodeError {
        let value = bytes.len() as u64;
        let other = DecodeError::Invalid { field: "length of a decimal", value };
        Decimal::read_long(bytes, precision, scale).err().unwrap_or(other)
    }

    /// Takes a number of more than 8 bytes.
    #[inline(never)]
    pub(crate) fn read_long(
        bytes: &'a [u8],
        precision: u8,
        scale: u8,
    ) -> Result<Self, DecodeError> {
        let mut size: u128 = 0;
        for (value, digits) in Groups::new(bytes, precision, scale) {
            let power = power(digits);
            if value >= power {
                return Err(DecodeError::Invalid { field: "decimal digits", value: value.into() });
            }
            // Wraps only above 38 digits, where it is not used.
            size = size.wrapping_mul(power.into()).wrapping_add(value.into());
        }
        match i128::try_from(size) {
            Ok(size) if precision <= MAX_NUMBER_DIGITS => {
                Ok(Self::number(if packed_sign(bytes) { -size } else { size }, scale))
            }
            _ => Ok(Self::Packed { bytes, precision, scale }),
        }
    }

    /// Parses the packed decimal of a binary JSON document, whose precision may count leading zeros.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Invalid`] for a precision or scale that no decimal has or bad digits, [`DecodeError::Truncated`]
    /// and [`DecodeError::Trailing`] for another number of bytes than they give.
    pub(crate) fn parse(bytes: &'a [u8], precision: u8, scale: u8) -> Result<Self, DecodeError> {
        let len = checked_len(precision, MAX_DIGITS, scale)?;
        let mut cursor = Cursor::new(bytes);
        let this = Self::read(&mut cursor, precision, scale, len)?;
        match cursor.left() as u64 {
            0 => Ok(this),
            left => Err(DecodeError::Trailing { field: "decimal", left }),
        }
    }

    /// Whether every digit is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match *self {
            Self::Number { unscaled, .. } => unscaled.get() == 0,
            Self::Packed { bytes, precision, scale } => {
                Groups::new(bytes, precision, scale).all(|(value, _)| value == 0)
            }
            Self::Text(text) => !text.iter().any(|byte| matches!(byte, b'1'..=b'9')),
        }
    }

    /// Whether the number is below zero. A zero never is.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        let sign = match *self {
            Self::Number { unscaled, .. } => return unscaled.get() < 0,
            Self::Packed { bytes, .. } => packed_sign(bytes),
            Self::Text(text) => text.first() == Some(&b'-'),
        };
        sign && !self.is_zero()
    }

    /// The number without its point: `-999.99` is -99999. `None` when it does not fit (more than 38 digits may not),
    /// or when the text of [`Self::Text`] is no decimal number.
    #[inline(always)]
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        match *self {
            Self::Number { unscaled, .. } => Some(unscaled.get()),
            Self::Packed { bytes, precision, scale } => packed_unscaled(bytes, precision, scale),
            Self::Text(text) => text_unscaled(text),
        }
    }

    /// Appends the number in plain notation with all digits of its scale: `-0.50`, `1234567890.00`. No leading zeros,
    /// no minus before a zero. Text of a query is appended as it is.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let (bytes, precision, scale) = match *self {
            Self::Number { unscaled, scale } => {
                let number = unscaled.get();
                return write_scaled(number < 0, number.unsigned_abs(), scale, out);
            }
            Self::Packed { bytes, precision, scale } => (bytes, precision, scale),
            Self::Text(text) => return out.extend_from_slice(text),
        };
        if self.is_negative() {
            out.push(b'-');
        }
        let mut left = precision - scale.min(precision);
        let mut leading = true;
        let mut groups = Groups::new(bytes, precision, scale);
        while left > 0
            && let Some((value, digits)) = groups.next()
        {
            left -= digits.min(left);
            if leading && value != 0 {
                leading = false;
                write_digits(out, value, decimal_width(value));
            } else if !leading {
                write_digits(out, value, digits);
            }
        }
        if leading {
            out.push(b'0');
        }
        if scale > 0 {
            out.push(b'.');
            for (value, digits) in groups {
                write_digits(out, value, digits);
            }
        }
    }

    /// Appends the number without its point as a two's-complement big-endian integer in as few bytes as hold it with
    /// its sign, at least one: 0 is `00`, 128 is `00 80`, -128 is `80`. This is the form of Java's
    /// `BigInteger.toByteArray`.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Invalid`] when the text of [`Self::Text`] is no decimal number of at most 65 digits. A decoded
    /// packed number never fails.
    pub fn write_unscaled_be(&self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        // 65 digits take 216 bits; the top bits of the last limb stay free for the sign.
        let mut limbs = Limbs::default();
        let negative = match *self {
            Self::Number { unscaled, .. } => {
                write_minimal(&unscaled.get().to_be_bytes(), out);
                return Ok(());
            }
            Self::Packed { bytes, precision, scale } => {
                // Of a number with too few bytes, what comes behind the missing group does not count.
                let mut groups = Groups::new(bytes, precision, scale).fuse();
                while let Some((value, digits)) = groups.next() {
                    let (mut value, mut factor) = (u64::from(value), u64::from(power(digits)));
                    // Two groups at a time: 18 digits.
                    if let Some((next, digits)) = groups.next() {
                        let power = u64::from(power(digits));
                        (value, factor) = (value * power + u64::from(next), factor * power);
                    }
                    limbs.push(factor, value)?;
                }
                packed_sign(bytes)
            }
            Self::Text(text) => {
                let Some((negative, digits)) = text_digits(text) else {
                    return Err(DecodeError::Invalid {
                        field: "length of a text that is no decimal number",
                        value: text.len() as u64,
                    });
                };
                for digit in digits.into_iter().flatten() {
                    limbs.push(10, (digit - b'0').into())?;
                }
                negative
            }
        };
        write_minimal(&limbs.to_be_bytes(negative), out);
        Ok(())
    }
}

/// Bytes that the packed form of a column takes.
///
/// # Errors
///
/// [`DecodeError::Invalid`] for a precision of 0 or above 65, or a scale above 30 or above the precision.
pub(crate) fn packed_len(precision: u8, scale: u8) -> Result<u8, DecodeError> {
    checked_len(precision, MAX_PRECISION, scale)
}

fn checked_len(precision: u8, max_precision: u8, scale: u8) -> Result<u8, DecodeError> {
    if precision == 0 || precision > max_precision {
        return Err(DecodeError::Invalid { field: "decimal precision", value: precision.into() });
    }
    if scale > MAX_SCALE || scale > precision {
        return Err(DecodeError::Invalid { field: "decimal scale", value: scale.into() });
    }
    let side = |digits: u8| digits / GROUP * GROUP_BYTES + digit_bytes(digits % GROUP);
    Ok(side(precision - scale) + side(scale))
}

/// How the groups of a number of at most 8 bytes (18 digits) lie: decided once for a column. In general there are three:
/// an incomplete one before the point, a full one, an incomplete one after the point. Where two are full, the upper one
/// stands for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SmallLayout {
    /// Bytes in all.
    len: u8,
    /// Bits that 8 bytes have more.
    unused: u8,
    /// Bits of the full group, 0 where there is none.
    full_bits: u8,
    /// Bits of the incomplete group after the point.
    last_bits: u8,
    /// What the other groups count to, 1 where there is none.
    last_limit: u32,
    first_limit: u32,
}

impl SmallLayout {
    /// `None` for a longer number.
    pub(crate) fn new(precision: u8, scale: u8) -> Option<Self> {
        let before = precision.checked_sub(scale)?;
        let (last, first) = (scale % GROUP, before % GROUP);
        let full = scale / GROUP + before / GROUP;
        let len = digit_bytes(first) + full.checked_mul(GROUP_BYTES)? + digit_bytes(last);
        let unused = 8_u8.checked_sub(len)? * 8;
        (len > 0).then_some(Self {
            len,
            unused,
            full_bits: if full == 0 { 0 } else { 8 * GROUP_BYTES },
            last_bits: 8 * digit_bytes(last),
            last_limit: power(last),
            first_limit: if full == 2 { power(GROUP) } else { power(first) },
        })
    }

    /// Bytes of a number, 1 to 8.
    pub(crate) const fn len(self) -> u8 {
        self.len
    }

    /// The unscaled number, read as one integer and taken apart from the right. `None` for bad digits, and for bytes
    /// that are not as many as the layout has.
    #[inline(always)]
    pub(crate) fn unscaled(self, bytes: &[u8]) -> Option<i64> {
        // The number in the upper bits.
        let high = match (bytes.first_chunk(), bytes.last_chunk()) {
            _ if bytes.len() != usize::from(self.len) => return None,
            // Two halves that overlap.
            (Some(first), Some(last)) => {
                let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
                u64::from(first) << 32 | u64::from(last) << self.unused
            }
            _ => match bytes {
                [a] => u64::from_be_bytes([*a, 0, 0, 0, 0, 0, 0, 0]),
                [a, b] => u64::from_be_bytes([*a, *b, 0, 0, 0, 0, 0, 0]),
                [a, b, c] => u64::from_be_bytes([*a, *b, *c, 0, 0, 0, 0, 0]),
                _ => return None,
            },
        };
        const SIGN: u64 = 1 << 63;
        // All bits set for a negative number.
        let mask = ((high ^ SIGN).cast_signed() >> 63).cast_unsigned();
        let packed = ((high ^ mask) & !SIGN) >> self.unused;

        let upper = packed >> self.last_bits;
        let first = upper >> self.full_bits;
        let full = upper - (first << self.full_bits);
        let last = packed - (upper << self.last_bits);
        let full_limit = if self.full_bits == 0 { 1 } else { FULL };
        let last_limit = u64::from(self.last_limit);
        let valid = first < self.first_limit.into() && full < FULL && last < last_limit;
        valid.then(|| {
            let size = (first * full_limit + full) * last_limit + last;
            (size ^ mask).wrapping_sub(mask).cast_signed()
        })
    }
}

/// The unscaled number of packed digits of any length.
#[inline(never)]
fn packed_unscaled(bytes: &[u8], precision: u8, scale: u8) -> Option<i128> {
    let size = Groups::new(bytes, precision, scale).try_fold(0, |sum: i128, (value, digits)| {
        sum.checked_mul(power(digits).into())?.checked_add(value.into())
    })?;
    Some(if packed_sign(bytes) { -size } else { size })
}

/// The unscaled number of decimal text.
#[inline(never)]
fn text_unscaled(text: &[u8]) -> Option<i128> {
    let (negative, digits) = text_digits(text)?;
    let size = digits
        .into_iter()
        .flatten()
        .try_fold(0, |sum: i128, digit| sum.checked_mul(10)?.checked_add((digit - b'0').into()))?;
    Some(if negative { -size } else { size })
}

/// The groups of a packed number from the left, as (value, number of digits). Ends early when bytes are missing.
#[derive(Clone)]
struct Groups<'a> {
    bytes: &'a [u8],
    /// Flips the bits of a negative number.
    mask: u32,
    /// The sign bit, in the first byte of the first group only.
    sign: u32,
    /// Digits still to come before the point, then after it.
    before: u8,
    after: u8,
}

impl<'a> Groups<'a> {
    #[inline]
    fn new(bytes: &'a [u8], precision: u8, scale: u8) -> Self {
        let mask = if packed_sign(bytes) { u32::MAX } else { 0 };
        let before = precision.saturating_sub(scale);
        Self { bytes, mask, sign: 0x8000_0000, before, after: scale }
    }

    /// Takes a group of `N` bytes.
    #[inline]
    fn group<const N: usize>(&mut self) -> Option<u32> {
        let (group, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        let value = group.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let unused = 32 - 8 * N;
        let value = (value ^ self.mask ^ self.sign >> unused) & u32::MAX >> unused;
        self.sign = 0;
        Some(value)
    }
}

impl Iterator for Groups<'_> {
    type Item = (u32, u8);

    #[inline]
    fn next(&mut self) -> Option<(u32, u8)> {
        let digits = if self.before > 0 {
            // The incomplete group comes first before the point and last after it.
            let digits = match self.before % GROUP {
                0 => GROUP,
                part => part,
            };
            self.before -= digits;
            digits
        } else {
            let digits = self.after.min(GROUP);
            self.after -= digits;
            digits
        };
        let value = match digits {
            0 => return None,
            1 | 2 => self.group::<1>()?,
            3 | 4 => self.group::<2>()?,
            5 | 6 => self.group::<3>()?,
            _ => self.group::<4>()?,
        };
        Some((value, digits))
    }
}

/// An unsigned number of 256 bits, least significant limb first.
#[derive(Default)]
struct Limbs([u64; 4]);

impl Limbs {
    /// Multiplies by `factor` and adds `value`.
    #[inline]
    fn push(&mut self, factor: u64, value: u64) -> Result<(), DecodeError> {
        let mut carry = u128::from(value);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = low_half(carry);
            carry >>= 64;
        }
        if carry != 0 || self.0[3] > u64::MAX >> 1 {
            return Err(DecodeError::Unsupported { what: "a decimal number above 255 bits" });
        }
        Ok(())
    }

    fn to_be_bytes(&self, negative: bool) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (to, from) in bytes.chunks_exact_mut(8).zip(self.0.iter().rev()) {
            to.copy_from_slice(&from.to_be_bytes());
        }
        if negative {
            let mut carry = true;
            for byte in bytes.iter_mut().rev() {
                (*byte, carry) = (!*byte).overflowing_add(carry.into());
            }
        }
        bytes
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn low_half(number: u128) -> u64 {
    number as u64
}

/// Appends a two's-complement number without the leading bytes that only repeat its sign.
fn write_minimal(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let [first, rest @ ..] = bytes
        && let [second, ..] = rest
        && matches!((first, second), (0, 0..0x80) | (0xff, 0x80..))
    {
        bytes = rest;
    }
    out.extend_from_slice(bytes);
}

/// Appends exactly `digits` decimal digits.
fn write_digits(out: &mut Vec<u8>, value: u32, digits: u8) {
    let mut text = [b'0'; 10];
    let mut value = value;
    for to in text.iter_mut().rev() {
        *to = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(text.get(10 - usize::from(digits.min(10))..).unwrap_or_default());
}

/// Decimal digits of a number above 0, 1 to 10.
fn decimal_width(value: u32) -> u8 {
    POWERS
        .iter()
        .zip(0..)
        .filter(|(power, _)| value >= **power)
        .map(|(_, log)| log + 1)
        .max()
        .unwrap_or(1)
}

/// Splits decimal text into its sign and its digits before and after the point; `None` for anything else.
fn text_digits(text: &[u8]) -> Option<(bool, [&[u8]; 2])> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let mut parts = digits.splitn(2, |byte| *byte == b'.');
    let parts = [parts.next()?, parts.next().unwrap_or_default()];
    let all_digits = parts.iter().all(|part| part.iter().all(u8::is_ascii_digit));
    (all_digits && digits.iter().any(u8::is_ascii_digit)).then_some((negative, parts))
}

/// Whether the packed sign says negative; not whether the number is.
#[inline]
fn packed_sign(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x80 == 0)
}

#[inline]
fn digit_bytes(digits: u8) -> u8 {
    DIGIT_BYTES.get(usize::from(digits)).copied().unwrap_or(GROUP_BYTES)
}

#[inline]
fn power(digits: u8) -> u32 {
    POWERS.get(usize::from(digits)).copied().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packs decimal text the slow way: digit strings cut into groups.
    fn pack(text: &str, precision: u8, scale: u8) -> Vec<u8> {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
        let (before, after) = text.split_once('.').unwrap_or((text, ""));
        let before = before.trim_start_matches('0');
        let before = before.trim_start_matches('0');
        let before = format!("{before:0>0$}", usize::from(precision - scale));
        let after = format!("{after:0<0$}", usize::from(scale));
        let (part, groups) = before.split_at(before.len() % 9);
        let mut bytes = Vec::new();
        let pieces = std::iter::once(part.as_bytes())
            .chain(groups.as_bytes().chunks(9))
            .chain(after.as_bytes().chunks(9));
        for digits in pieces {
            let value: u32 = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            bytes.extend(&value.to_be_bytes()[4 - usize::from(DIGIT_BYTES[digits.len()])..]);
        }
        bytes[0] |= 0x80;
        if negative {
            bytes.iter_mut().for_each(|byte: &mut u8| *byte = !*byte);
        }
        bytes
    }

    fn read(bytes: &[u8], precision: u8, scale: u8) -> Result<Decimal<'_>, DecodeError> {
        Decimal::read(
            &mut Cursor::new(bytes),
            precision,
            scale,
            packed_len(precision, scale).unwrap(),
        )
    }

    fn text(decimal: &Decimal<'_>) -> String {
        let mut out = Vec::new();
        decimal.write_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn unscaled(decimal: &Decimal<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        decimal.write_unscaled_be(&mut out).unwrap();
        out
    }

    #[test]
    fn the_bytes_of_a_server_read_as_its_number() {
        let decimal = read(&[0x7c, 0x18, 0x9c], 5, 2).unwrap();
        assert_eq!(text(&decimal), "-999.99");
        assert_eq!(decimal.to_i128(), Some(-99_999));
        assert_eq!(unscaled(&decimal), [0xfe, 0x79, 0x61]);
        assert!(decimal.is_negative() && !decimal.is_zero());
    }

    #[test]
    fn numbers_keep_their_scale_and_lose_leading_zeros() {
        let table = [
            ("0", 1, 0, "0", 0),
            ("-0", 5, 2, "0.00", 0),
            ("1.5", 5, 2, "1.50", 150),
            ("-0.5", 30, 30, "-0.500000000000000000000000000000", -5 * 10_i128.pow(29)),
            ("0.05", 2, 2, "0.05", 5),
            ("1000000000", 10, 0, "1000000000", 1_000_000_000),
            ("1000000001.01", 12, 2, "1000000001.01", 100_000_000_101),
            (
                "-123456789012.345678901",
                21,
                9,
                "-123456789012.345678901",
                -123_456_789_012_345_678_901,
            ),
            ("999999999999999999", 18, 0, "999999999999999999", 10_i128.pow(18) - 1),
            (
                "99999999999999999999999999999999999999",
                38,
                0,
                "99999999999999999999999999999999999999",
                10_i128.pow(38) - 1,
            ),
        ];
        for (given, precision, scale, printed, number) in table {
            let packed = pack(given, precision, scale);
            let decimal = read(&packed, precision, scale).unwrap();
            assert_eq!(text(&decimal), printed);
            assert_eq!(decimal.to_i128(), Some(number), "{given}");
            assert_eq!(decimal.is_zero(), number == 0);
            assert_eq!(decimal.is_negative(), number < 0);
            assert_eq!(Decimal::Text(printed.as_bytes()).to_i128(), Some(number));
            for len in 0..packed.len() {
                assert!(matches!(
                    read(&packed[..len], precision, scale),
                    Err(DecodeError::Truncated { field: "decimal", .. })
                ));
            }
        }
    }

    #[test]
    fn sixty_five_digits_print_and_convert() {
        let nines = "9".repeat(65);
        for (given, scale) in [
            (nines.clone(), 0),
            (format!("-{nines}"), 0),
            (format!("-{}.{}", "9".repeat(35), "9".repeat(30)), 30),
        ] {
            let packed = pack(&given, 65, scale);
            let decimal = read(&packed, 65, scale).unwrap();
            assert_eq!(text(&decimal), given);
            assert_eq!(decimal.to_i128(), None);
            let bytes = unscaled(&decimal);
            // 10^65 - 1 has 216 bits, so the sign takes a byte of its own.
            assert_eq!(bytes.len(), 28);
            assert_eq!(bytes[0], if decimal.is_negative() { 0xff } else { 0 });
            assert_eq!(bytes, unscaled(&Decimal::Text(given.as_bytes())));
        }
    }

    #[test]
    fn unscaled_bytes_are_as_few_as_hold_the_sign() {
        let table: [(&str, &[u8]); 8] = [
            ("0", &[0]),
            ("-0", &[0]),
            ("127", &[0x7f]),
            ("128", &[0, 0x80]),
            ("-128", &[0x80]),
            ("-129", &[0xff, 0x7f]),
            ("-1", &[0xff]),
            ("65536", &[1, 0, 0]),
        ];
        for (given, bytes) in table {
            assert_eq!(unscaled(&Decimal::Text(given.as_bytes())), bytes, "{given}");
            assert_eq!(unscaled(&read(&pack(given, 20, 0), 20, 0).unwrap()), bytes, "{given}");
        }
    }

    #[test]
    fn digits_above_their_group_are_an_error() {
        // 1 digit in a byte; 9 digits in four; 3 digits before and 2 after the point.
        let table: [(&[u8], u8, u8, u64); 4] = [
            (&[0x80 | 10], 1, 0, 10),
            (&[0x80 | 0x3b, 0x9a, 0xca, 0x00], 9, 0, 1_000_000_000),
            (&[0x83, 0xe8, 0x00], 5, 2, 1000),
            (&[0x80, 0x00, 100], 5, 2, 100),
        ];
        for (bytes, precision, scale, value) in table {
            assert_eq!(
                read(bytes, precision, scale),
                Err(DecodeError::Invalid { field: "decimal digits", value })
            );
        }
        let mut long = pack(&"9".repeat(40), 40, 0);
        long[3] = 0xff;
        assert!(read(&long, 40, 0).is_err());
    }

    #[test]
    fn text_that_is_no_number_is_an_error() {
        for given in ["", "-", ".", "1.2.3", "1e5", "--1", "12a", "NaN"] {
            let decimal = Decimal::Text(given.as_bytes());
            assert_eq!(decimal.to_i128(), None, "{given}");
            assert!(decimal.write_unscaled_be(&mut Vec::new()).is_err(), "{given}");
        }
        let long = "9".repeat(100);
        assert!(Decimal::Text(long.as_bytes()).write_unscaled_be(&mut Vec::new()).is_err());
    }

    #[test]
    fn a_precision_or_scale_out_of_range_is_an_error() {
        for (precision, scale) in [(0, 0), (66, 0), (65, 31), (5, 6)] {
            assert!(packed_len(precision, scale).is_err(), "{precision} {scale}");
        }
        assert_eq!(packed_len(65, 30), Ok(30));
    }

    proptest! {
        #[test]
        fn packing_and_reading_gives_the_same_number(
            number in -(10_i128.pow(38) - 1)..10_i128.pow(38),
            drop in 0_u32..38,
            scale in 0_u8..=30,
        ) {
            let number = number / 10_i128.pow(drop);
            let digits = format!("{:0>1$}", number.unsigned_abs(), usize::from(scale) + 1);
            let (before, after) = digits.split_at(digits.len() - usize::from(scale));
            let sign = if number < 0 { "-" } else { "" };
            let point = if scale > 0 { "." } else { "" };
            let given = format!("{sign}{before}{point}{after}");
            let precision = u8::try_from(digits.len()).unwrap();
            let packed = pack(&given, precision, scale);
            let decimal = read(&packed, precision, scale).unwrap();
            prop_assert_eq!(text(&decimal), given);
            prop_assert_eq!(decimal.to_i128(), Some(number));
        }

        #[test]
        fn a_number_of_eight_bytes_reads_as_a_longer_one_does(
            bytes: [u8; 8],
            precision in 1_u8..=19,
            scale in 0_u8..=18,
        ) {
            let Ok(len) = packed_len(precision, scale) else { return Ok(()) };
            let Some(layout) = SmallLayout::new(precision, scale) else {
                prop_assert!(len > 8);
                return Ok(());
            };
            prop_assert_eq!(layout.len(), len);
            let bytes = &bytes[..len.into()];
            let long = Decimal::read_long(bytes, precision, scale).ok();
            let small = layout.unscaled(bytes).map(|number| Decimal::number(number.into(), scale));
            prop_assert_eq!(small, long);
        }

        #[test]
        fn any_bytes_under_any_declaration_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            precision: u8,
            scale: u8,
        ) {
            let decimal = Decimal::Packed { bytes: &bytes, precision, scale };
            text(&decimal);
            let _ = (decimal.to_i128(), decimal.is_negative());
            let _ = decimal.write_unscaled_be(&mut Vec::new());
        }
    }
}
