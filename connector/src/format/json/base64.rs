//! Bytes as base64.

use holdfast_binlog::value::base64::{Alphabet, STANDARD, URL_SAFE, four, last_four};

/// Appends bytes as a string of standard base64 with padding.
pub fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    write_encoded(STANDARD, bytes, out);
}

/// Appends bytes as a string of base64 in the URL-safe alphabet with padding.
pub fn write_base64_url_safe(bytes: &[u8], out: &mut Vec<u8>) {
    write_encoded(URL_SAFE, bytes, out);
}

/// Appends a number's two's complement, big-endian in as few bytes as hold it, as a string of standard base64 with padding.
/// Every DECIMAL is written so.
#[inline]
pub(crate) fn write_base64_number(value: i64, out: &mut Vec<u8>) {
    let bits = 65 - (value ^ (value >> 63)).leading_zeros();
    let count = bits.div_ceil(8);
    write_base64_bits(value.cast_unsigned() << (64 - 8 * count), count as usize, out);
}

/// The same for a number of 128 bits.
pub(crate) fn write_base64_wide(value: i128, out: &mut Vec<u8>) {
    let bits = 129 - (value ^ (value >> 127)).leading_zeros();
    let mut count = bits.div_ceil(8);
    let mut bits = value.cast_unsigned() << (128 - 8 * count);
    out.push(b'"');
    while count > 3 {
        out.extend_from_slice(&four(STANDARD, upper(bits)));
        (bits, count) = (bits << 24, count - 3);
    }
    out.extend_from_slice(&last_four(STANDARD, upper(bits), count as usize));
    out.push(b'"');
}

/// The upper 24 bits.
const fn upper(bits: u128) -> u64 {
    (bits >> 104) as u64
}

/// Appends the upper `count` bytes of a word, 1 to 8, as a string of standard base64 with padding. Its other bits are 0.
#[inline]
pub(crate) fn write_base64_bits(bits: u64, count: usize, out: &mut Vec<u8>) {
    if count <= 3 {
        let [a, b, c, d] = last_four(STANDARD, bits >> 40, count);
        out.extend_from_slice(&[b'"', a, b, c, d, b'"']);
    } else {
        write_long_bits(bits, count, out);
    }
}

#[inline(never)]
fn write_long_bits(bits: u64, count: usize, out: &mut Vec<u8>) {
    let [a, b, c, d] = four(STANDARD, bits >> 40);
    out.extend_from_slice(&[b'"', a, b, c, d]);
    let (mut bits, mut count) = (bits << 24, count - 3);
    if count > 3 {
        out.extend_from_slice(&four(STANDARD, bits >> 40));
        (bits, count) = (bits << 24, count - 3);
    }
    let [a, b, c, d] = last_four(STANDARD, bits >> 40, count);
    out.extend_from_slice(&[a, b, c, d, b'"']);
}

fn write_encoded(alphabet: &Alphabet, bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4 + 2);
    out.push(b'"');
    let (twelves, rest) = bytes.as_chunks::<12>();
    for twelve in twelves {
        // Two words that overlap.
        if let (Some(first), Some(last)) = (twelve.first_chunk(), twelve.last_chunk()) {
            let (first, last) = (u64::from_be_bytes(*first), u64::from_be_bytes(*last));
            let groups = [first >> 40, first >> 16, last >> 24, last];
            out.extend_from_slice(groups.map(|group| four(alphabet, group)).as_flattened());
        }
    }
    let (threes, rest) = rest.as_chunks::<3>();
    for [a, b, c] in threes {
        let group = u32::from_be_bytes([0, *a, *b, *c]);
        out.extend_from_slice(&four(alphabet, group.into()));
    }
    match rest {
        [] => {}
        [a, rest @ ..] => {
            let group = u32::from_be_bytes([0, *a, rest.first().copied().unwrap_or_default(), 0]);
            out.extend_from_slice(&last_four(alphabet, group.into(), 1 + rest.len()));
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use ::base64::Engine as _;
    use ::base64::engine::general_purpose as library;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_are_base64() {
        let bytes = [0xde, 0xad, 0xbe, 0xef];
        assert_eq!(printed(|out| write_base64(&bytes, out)), "\"3q2+7w==\"");
        assert_eq!(printed(|out| write_base64_url_safe(&bytes, out)), "\"3q2-7w==\"");
        assert_eq!(printed(|out| write_base64(&[], out)), "\"\"");
        let all = (0..=255).collect::<Vec<u8>>();
        for len in 0..all.len() {
            let bytes = &all[len..];
            let expected = format!("\"{}\"", library::STANDARD.encode(bytes));
            assert_eq!(printed(|out| write_base64(bytes, out)), expected);
        }
    }

    #[test]
    fn numbers_take_as_few_bytes_as_hold_them() {
        for (number, bytes) in [
            (0, &[0][..]),
            (-1, &[0xff]),
            (127, &[0x7f]),
            (-128, &[0x80]),
            (128, &[0, 0x80]),
            (-129, &[0xff, 0x7f]),
            (i64::MAX, &i64::MAX.to_be_bytes()),
            (i64::MIN, &i64::MIN.to_be_bytes()),
        ] {
            let expected = printed(|out| write_base64(bytes, out));
            assert_eq!(printed(|out| write_base64_number(number, out)), expected, "{number}");
            assert_eq!(printed(|out| write_base64_wide(number.into(), out)), expected, "{number}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_written_as_the_library_does(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let standard = format!("\"{}\"", library::STANDARD.encode(&bytes));
            prop_assert_eq!(printed(|out| write_base64(&bytes, out)), standard);
            let url_safe = format!("\"{}\"", library::URL_SAFE.encode(&bytes));
            prop_assert_eq!(printed(|out| write_base64_url_safe(&bytes, out)), url_safe);
        }

        #[test]
        fn upper_bytes_are_written_as_bytes(bits: u64, count in 1..=8_usize) {
            let bytes = bits.to_be_bytes();
            let expected = printed(|out| write_base64(&bytes[8 - count..], out));
            let bits = bits << (64 - 8 * count);
            prop_assert_eq!(printed(|out| write_base64_bits(bits, count, out)), expected);
        }
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }
}
