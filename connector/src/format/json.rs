//! JSON tokens straight into a byte buffer.
//!
//! The spelling is that of Kafka Connect's JSON converter (Jackson, and Java's number to text): control characters
//! as `\b \t \n \f \r` or `\u00XX` with upper-case digits, other text raw, floats as `1.0E100`, bytes as standard
//! base64 with padding.

use base64::Engine as _;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// Appends `text` as a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

/// Appends `text` as a JSON string, or `null`.
pub fn write_optional_string(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => write_string(text, out),
        None => write_null(out),
    }
}

/// Appends `text` escaped, without quotes.
pub fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (clean, dirty) = rest.split_at(clean_prefix(rest));
        out.extend_from_slice(clean);
        let Some((&byte, after)) = dirty.split_first() else { return };
        write_escape(byte, out);
        rest = after;
    }
}

/// Appends bytes as a JSON string if they are plain ASCII that needs no escape; else appends nothing and gives `false`.
#[inline]
pub(crate) fn write_plain(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    let mut dirty = words.iter().fold(false, |dirty, word| {
        let word = u64::from_ne_bytes(*word);
        dirty | has_escape(word) | (word & TOPS != 0)
    });
    for &byte in tail {
        dirty |= !(0x20..0x80).contains(&byte) || byte == b'"' || byte == b'\\';
    }
    if dirty {
        return false;
    }
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
    true
}

/// A text that is appended many times. A short one is copied as one block of fixed size, which costs no call.
#[derive(Debug, Clone)]
pub(crate) enum Constant {
    Short { block: [u8; Self::BLOCK], len: usize },
    Long(Vec<u8>),
}

impl Constant {
    const BLOCK: usize = 32;

    pub(crate) fn new(text: &[u8]) -> Self {
        let mut block = [0; Self::BLOCK];
        match block.get_mut(..text.len()) {
            Some(start) => {
                start.copy_from_slice(text);
                Self::Short { block, len: text.len() }
            }
            None => Self::Long(text.to_vec()),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Short { len, .. } => *len,
            Self::Long(text) => text.len(),
        }
    }

    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Short { block, len } => {
                let start = out.len();
                out.extend_from_slice(block);
                out.truncate(start + len);
            }
            Self::Long(text) => out.extend_from_slice(text),
        }
    }
}

/// Appends `null`.
pub fn write_null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// Appends `true` or `false`.
pub fn write_bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// Appends a signed number.
#[inline]
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_u64(value.unsigned_abs(), out);
}

/// Appends an unsigned number.
///
/// The digits are written where they stay, into room for the longest number: nothing is copied, and no length is only
/// known at run time, which would be a call.
pub fn write_u64(value: u64, out: &mut Vec<u8>) {
    const MOST: usize = 20;
    let start = out.len();
    out.extend_from_slice(&[b'0'; MOST]);
    let count = digits(value);
    if let Some(room) = out.get_mut(start..start + count) {
        let mut rest = value;
        let (room, eights) = room.as_rchunks_mut::<8>();
        for eight in eights.iter_mut().rev() {
            // The four pairs do not wait for one another.
            let low = low_u32(rest % 100_000_000);
            rest /= 100_000_000;
            let (a, b) = (low / 10_000, low % 10_000);
            let pairs = [a / 100, a % 100, b / 100, b % 100].map(two_digits);
            eight.copy_from_slice(pairs.as_flattened());
        }
        let mut rest = low_u32(rest);
        let (room, twos) = room.as_rchunks_mut::<2>();
        for two in twos.iter_mut().rev() {
            *two = two_digits(rest % 100);
            rest /= 100;
        }
        if let [first] = room {
            *first = two_digits(rest)[1];
        }
    }
    out.truncate(start + count);
}

/// How many digits a number has.
#[inline]
fn digits(value: u64) -> usize {
    const POWERS: [u64; 20] = powers();
    // Zero has one digit, as one has.
    let value = value | 1;
    // log10(2) is 1233 / 4096: the number of digits, or one less.
    let least = ((64 - value.leading_zeros() as usize) * 1233) >> 12;
    least + usize::from(POWERS.get(least).is_some_and(|power| value >= *power))
}

/// The powers of ten from 10⁰ on that 64 bits hold.
const fn powers() -> [u64; 20] {
    let mut powers = [1; 20];
    let mut power = 1_u64;
    let mut left: &mut [u64] = &mut powers;
    while let [first, rest @ ..] = left {
        *first = power;
        power = power.saturating_mul(10);
        left = rest;
    }
    powers
}

/// A number below 100 in two digits.
#[inline]
pub(crate) fn two_digits(number: u32) -> [u8; 2] {
    PAIRS.get(number as usize).copied().unwrap_or(*b"00")
}

#[expect(clippy::cast_possible_truncation, reason = "below 10⁸")]
const fn low_u32(number: u64) -> u32 {
    number as u32
}

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

/// Appends a number, or `null`.
pub fn write_optional_u64(value: Option<u64>, out: &mut Vec<u8>) {
    match value {
        Some(value) => write_u64(value, out),
        None => write_null(out),
    }
}

/// Appends a 32-bit float: its shortest decimal in Java's spelling. What JSON has no number for becomes a string.
pub fn write_f32(value: f32, out: &mut Vec<u8>) {
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    match non_finite(f64::from(value)) {
        Some(name) => out.extend_from_slice(name),
        None => write_ryu(ryu::Buffer::new().format_finite(value), plain, out),
    }
}

/// Appends a 64-bit float: its shortest decimal in Java's spelling. What JSON has no number for becomes a string.
pub fn write_f64(value: f64, out: &mut Vec<u8>) {
    let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
    match non_finite(value) {
        Some(name) => out.extend_from_slice(name),
        None => write_ryu(ryu::Buffer::new().format_finite(value), plain, out),
    }
}

/// Appends bytes as a string of standard base64 with padding.
pub fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    write_encoded(&STANDARD, bytes, out);
}

/// Appends a number's two's complement, big-endian in as few bytes as hold it, as a string of standard base64 with padding.
///
/// Every DECIMAL is written so. Its characters are taken from one register, which takes a quarter of the time of an
/// encoder for any number of bytes.
pub(crate) fn write_base64_number(value: i64, out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    /// Two quotes and the characters of eight bytes.
    const MOST: usize = 14;
    let bits = 64 - (value ^ (value >> 63)).leading_zeros() as usize + 1;
    let bytes = bits.div_ceil(8);
    let mut rest = value.cast_unsigned() << (64 - 8 * bytes);
    let mut room = [b'='; MOST];
    if let Some(first) = room.first_mut() {
        *first = b'"';
    }
    for character in room.iter_mut().skip(1).take((8 * bytes).div_ceil(6)) {
        *character = ALPHABET.get((rest >> 58) as usize).copied().unwrap_or_default();
        rest <<= 6;
    }
    let end = 1 + bytes.div_ceil(3) * 4;
    if let Some(last) = room.get_mut(end) {
        *last = b'"';
    }
    let start = out.len();
    out.extend_from_slice(&room);
    out.truncate(start + end + 1);
}

/// Appends bytes as a string of base64 in the URL-safe alphabet with padding.
pub fn write_base64_url_safe(bytes: &[u8], out: &mut Vec<u8>) {
    write_encoded(&URL_SAFE, bytes, out);
}

/// Appends bytes as a string of lower-case hexadecimal digits.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in bytes {
        out.push(hex_digit(byte >> 4, b'a'));
        out.push(hex_digit(byte & 15, b'a'));
    }
    out.push(b'"');
}

fn write_encoded(engine: &GeneralPurpose, bytes: &[u8], out: &mut Vec<u8>) {
    const ROOM: &str = "four characters for every three bytes are room enough";
    out.push(b'"');
    if bytes.len() <= 24 {
        // Numbers, mostly: their room need not be cleared in the buffer first.
        let mut room = [0; 32];
        let written = engine.encode_slice(bytes, &mut room).expect(ROOM);
        out.extend_from_slice(&room);
        out.truncate(out.len() - room.len() + written);
    } else {
        let start = out.len();
        out.resize(start + bytes.len().div_ceil(3) * 4, 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let written = engine.encode_slice(bytes, room).expect(ROOM);
        out.truncate(start + written);
    }
    out.push(b'"');
}

/// How many leading bytes need no escape.
fn clean_prefix(bytes: &[u8]) -> usize {
    let mut clean = 0;
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        if has_escape(u64::from_ne_bytes(*word)) {
            return clean + clean_bytes(word);
        }
        clean += 8;
    }
    clean + clean_bytes(tail)
}

fn clean_bytes(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
        .unwrap_or(bytes.len())
}

/// Whether one of eight bytes is a control character, a quote or a backslash: the zero-byte test of Mycroft on each.
fn has_escape(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * 0x22);
    let backslash = word ^ (ONES * 0x5c);
    let below = word.wrapping_sub(ONES * 0x20) & !word;
    let quotes = quote.wrapping_sub(ONES) & !quote;
    let backslashes = backslash.wrapping_sub(ONES) & !backslash;
    (below | quotes | backslashes) & TOPS != 0
}

#[cold]
fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(hex_digit(byte >> 4, b'A'));
            out.push(hex_digit(byte & 15, b'A'));
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

fn hex_digit(nibble: u8, ten: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { ten + (nibble - 10) }
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

    /// Texts as Jackson prints them in Debezium 3.6.3.Final.
    #[test]
    fn strings_are_escaped_as_jackson_does() {
        for (text, json) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("q\"b\\", r#""q\"b\\""#),
            ("\u{8}\t\n\u{c}\r", r#""\b\t\n\f\r""#),
            ("\0\u{1}\u{1f}\u{7f}/", "\"\\u0000\\u0001\\u001F\u{7f}/\""),
            ("é😀\u{2028}", "\"é😀\u{2028}\""),
            ("eight by\"tes and more", r#""eight by\"tes and more""#),
        ] {
            assert_eq!(printed(|out| write_string(text, out)), json);
        }
    }

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

    #[test]
    fn plain_text_is_copied_and_other_text_refused() {
        for len in 0..20 {
            let plain = vec![b'~'; len];
            let json = printed(|out| assert!(write_plain(&plain, out)));
            assert_eq!(json, format!("\"{}\"", "~".repeat(len)));
            for at in 0..len {
                for byte in [0, 0x1f, b'"', b'\\', 0x80, 0xff] {
                    let mut text = plain.clone();
                    text[at] = byte;
                    let mut out = Vec::new();
                    assert!(!write_plain(&text, &mut out), "{byte} at {at} of {len}");
                    assert!(out.is_empty());
                }
            }
        }
    }

    #[test]
    fn constants_of_any_length_are_copied() {
        for len in [0, 1, 31, 32, 33, 100] {
            let text = "x".repeat(len);
            let constant = Constant::new(text.as_bytes());
            assert_eq!(constant.len(), len);
            assert_eq!(printed(|out| constant.write(out)), text);
        }
    }

    #[test]
    fn numbers_are_written_without_leading_zeros() {
        let tens = (0..20).map(|power| 10_u64.pow(power));
        let numbers = tens.flat_map(|ten| [ten - 1, ten, ten + 1, ten.saturating_mul(9)]);
        for number in numbers.chain([u64::MAX]) {
            assert_eq!(printed(|out| write_u64(number, out)), number.to_string());
        }
        for number in [i64::MIN, -10, -1, 0, 7, i64::MAX] {
            assert_eq!(printed(|out| write_i64(number, out)), number.to_string());
        }
    }

    #[test]
    fn bytes_are_base64_or_hex() {
        let bytes = [0xde, 0xad, 0xbe, 0xef];
        assert_eq!(printed(|out| write_base64(&bytes, out)), "\"3q2+7w==\"");
        assert_eq!(printed(|out| write_base64_url_safe(&bytes, out)), "\"3q2-7w==\"");
        assert_eq!(printed(|out| write_hex(&bytes, out)), "\"deadbeef\"");
        assert_eq!(printed(|out| write_base64(&[], out)), "\"\"");
    }

    proptest! {
        #[test]
        fn any_string_reads_back(text in ".{0,40}|[\\x00-\\x7f]{0,40}") {
            let json = printed(|out| write_string(&text, out));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn any_number_is_written_as_the_library_does(number in any::<i64>(), shift in 0..64_u32) {
            let number = number >> shift;
            prop_assert_eq!(printed(|out| write_i64(number, out)), number.to_string());
        }

        #[test]
        fn any_float_reads_back(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            prop_assert_eq!(printed(|out| write_f64(value, out)).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }
}
