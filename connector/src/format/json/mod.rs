//! JSON tokens straight into a byte buffer.
//!
//! The spelling is that of Kafka Connect's JSON converter (Jackson, and Java's number to text): control characters
//! as `\b \t \n \f \r` or `\u00XX` with upper-case digits, other text raw, floats as `1.0E100`, bytes as standard
//! base64 with padding.

mod base64;
mod float;

pub use base64::{write_base64, write_base64_url_safe};
pub(crate) use base64::{write_base64_bits, write_base64_number, write_base64_wide};
pub use float::{write_f32, write_f64};
pub(crate) use holdfast_binlog::value::digits::two_digits;
pub use holdfast_binlog::value::digits::{write_i64, write_u64};
use holdfast_binlog::value::plain;

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
    let start = out.len();
    out.push(b'"');
    let is_plain = plain::write_plain(bytes, out);
    if is_plain {
        out.push(b'"');
    } else {
        out.truncate(start);
    }
    is_plain
}

/// A text that is appended many times. A short one is copied as one block of fixed size, which costs no call.
#[derive(Debug, Clone)]
pub(crate) enum Constant {
    Short { len: u8, block: [u8; Self::BLOCK] },
    Long(Box<[u8]>),
}

impl Constant {
    /// So that it takes 32 bytes in all.
    const BLOCK: usize = 30;

    pub(crate) fn new(text: &[u8]) -> Self {
        let mut block = [0; Self::BLOCK];
        match (block.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(start), Ok(len)) => {
                start.copy_from_slice(text);
                Self::Short { len, block }
            }
            _ => Self::Long(text.into()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Short { len, .. } => usize::from(*len),
            Self::Long(text) => text.len(),
        }
    }

    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Short { len, block } => {
                let start = out.len();
                out.extend_from_slice(block);
                out.truncate(start + usize::from(*len));
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

/// Appends a number, or `null`.
pub fn write_optional_u64(value: Option<u64>, out: &mut Vec<u8>) {
    match value {
        Some(value) => write_u64(value, out),
        None => write_null(out),
    }
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
        for len in [0, 1, 29, 30, 31, 100] {
            let text = "x".repeat(len);
            let constant = Constant::new(text.as_bytes());
            assert_eq!(constant.len(), len);
            assert_eq!(printed(|out| constant.write(out)), text);
        }
    }

    #[test]
    fn bytes_are_hex() {
        assert_eq!(printed(|out| write_hex(&[0xde, 0xad, 0xbe, 0xef], out)), "\"deadbeef\"");
    }

    #[test]
    fn a_constant_takes_32_bytes() {
        assert_eq!(size_of::<Constant>(), 32);
    }

    proptest! {
        #[test]
        fn any_string_reads_back(text in ".{0,40}|[\\x00-\\x7f]{0,40}") {
            let json = printed(|out| write_string(&text, out));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }
}
