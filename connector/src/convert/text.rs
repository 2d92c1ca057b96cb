//! Character data: from a column's character set to Unicode.
//!
//! What cannot be decoded becomes U+FFFD, as in Debezium. Sets of the web are decoded by `encoding_rs`, whose
//! `windows-1252` is the server's `latin1`; the others by hand.

use std::borrow::Cow;

use encoding_rs::{CoderResult, Encoding};

use super::charset_tables;
use crate::format::json as token;

/// A character set by what decodes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charset(Decoder);

#[derive(Debug, Clone, Copy)]
enum Decoder {
    Utf8,
    /// Every byte is the character of its number: what Debezium makes of the set `binary`.
    Latin1,
    Ascii,
    Utf16Be,
    Utf16Le,
    Utf32Be,
    Web(&'static Encoding),
    /// ASCII below, a table above.
    Upper(&'static [u16; 128]),
    Swe7,
}

impl Charset {
    /// UTF-8, also what an unknown set is taken for.
    pub(crate) const UTF8: Self = Self(Decoder::Utf8);

    /// ISO 8859-1: each byte is the character of its number.
    pub(crate) const LATIN1: Self = Self(Decoder::Latin1);

    /// The decoder of a set by the server's name for it, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(Self(match name.to_ascii_lowercase().as_str() {
            "utf8mb4" | "utf8" | "utf8mb3" => Decoder::Utf8,
            "binary" => Decoder::Latin1,
            "ascii" => Decoder::Ascii,
            "ucs2" | "utf16" => Decoder::Utf16Be,
            "utf16le" => Decoder::Utf16Le,
            "utf32" => Decoder::Utf32Be,
            "latin1" => Decoder::Web(encoding_rs::WINDOWS_1252),
            "latin2" => Decoder::Web(encoding_rs::ISO_8859_2),
            "latin5" => Decoder::Web(encoding_rs::WINDOWS_1254),
            "latin7" => Decoder::Web(encoding_rs::ISO_8859_13),
            "greek" => Decoder::Web(encoding_rs::ISO_8859_7),
            "hebrew" => Decoder::Web(encoding_rs::ISO_8859_8),
            "cp1250" => Decoder::Web(encoding_rs::WINDOWS_1250),
            "cp1251" => Decoder::Web(encoding_rs::WINDOWS_1251),
            "cp1256" => Decoder::Web(encoding_rs::WINDOWS_1256),
            "cp1257" => Decoder::Web(encoding_rs::WINDOWS_1257),
            "cp866" => Decoder::Web(encoding_rs::IBM866),
            "koi8r" => Decoder::Web(encoding_rs::KOI8_R),
            "koi8u" => Decoder::Web(encoding_rs::KOI8_U),
            "macroman" => Decoder::Web(encoding_rs::MACINTOSH),
            "tis620" => Decoder::Web(encoding_rs::WINDOWS_874),
            "gbk" | "gb2312" => Decoder::Web(encoding_rs::GBK),
            "gb18030" => Decoder::Web(encoding_rs::GB18030),
            "big5" => Decoder::Web(encoding_rs::BIG5),
            "sjis" | "cp932" => Decoder::Web(encoding_rs::SHIFT_JIS),
            "ujis" | "eucjpms" => Decoder::Web(encoding_rs::EUC_JP),
            "euckr" => Decoder::Web(encoding_rs::EUC_KR),
            "armscii8" => Decoder::Upper(&charset_tables::ARMSCII8),
            "cp850" => Decoder::Upper(&charset_tables::CP850),
            "cp852" => Decoder::Upper(&charset_tables::CP852),
            "dec8" => Decoder::Upper(&charset_tables::DEC8),
            "geostd8" => Decoder::Upper(&charset_tables::GEOSTD8),
            "hp8" => Decoder::Upper(&charset_tables::HP8),
            "keybcs2" => Decoder::Upper(&charset_tables::KEYBCS2),
            "macce" => Decoder::Upper(&charset_tables::MACCE),
            "swe7" => Decoder::Swe7,
            _ => return None,
        }))
    }

    /// Whether this is the set `binary`, whose bytes no connection converts.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self.0, Decoder::Latin1)
    }

    /// The text of bytes in this set.
    pub(crate) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        match self.0 {
            Decoder::Utf8 => String::from_utf8_lossy(bytes),
            Decoder::Latin1 => encoding_rs::mem::decode_latin1(bytes),
            Decoder::Ascii => match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                _ => bytes.iter().map(|&byte| ascii(byte)).collect(),
            },
            Decoder::Utf16Be => utf16(bytes, u16::from_be_bytes).collect(),
            Decoder::Utf16Le => utf16(bytes, u16::from_le_bytes).collect(),
            Decoder::Utf32Be => utf32(bytes).collect(),
            Decoder::Web(encoding) => encoding.decode_without_bom_handling(bytes).0,
            Decoder::Upper(table) => match std::str::from_utf8(bytes) {
                Ok(text) if text.is_ascii() => Cow::Borrowed(text),
                _ => bytes.iter().map(|&byte| upper(byte, table)).collect(),
            },
            Decoder::Swe7 => bytes.iter().map(|&byte| swe7(byte)).collect(),
        }
    }

    /// Whether bytes below 0x80 are the ASCII characters of their numbers, wherever they stand.
    const fn is_ascii_below(self) -> bool {
        matches!(self.0, Decoder::Utf8 | Decoder::Latin1 | Decoder::Ascii | Decoder::Upper(_))
    }

    /// Appends the text of bytes in this set as a JSON string.
    #[inline]
    pub(crate) fn write_json(self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.is_ascii_below() && token::write_plain(bytes, out) {
            return;
        }
        out.push(b'"');
        self.write_escaped(bytes, out);
        out.push(b'"');
    }

    /// Appends the text of bytes in this set, escaped for JSON, character by character where it has to be decoded.
    fn write_escaped(self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut push = |character: char| {
            token::write_escaped(character.encode_utf8(&mut [0; 4]), out);
        };
        match self.0 {
            Decoder::Utf8 => {
                for chunk in bytes.utf8_chunks() {
                    token::write_escaped(chunk.valid(), out);
                    if !chunk.invalid().is_empty() {
                        token::write_escaped(REPLACEMENT.encode_utf8(&mut [0; 4]), out);
                    }
                }
            }
            Decoder::Latin1 => bytes.iter().for_each(|&byte| push(char::from(byte))),
            Decoder::Ascii => bytes.iter().for_each(|&byte| push(ascii(byte))),
            Decoder::Utf16Be => utf16(bytes, u16::from_be_bytes).for_each(push),
            Decoder::Utf16Le => utf16(bytes, u16::from_le_bytes).for_each(push),
            Decoder::Utf32Be => utf32(bytes).for_each(push),
            Decoder::Upper(table) => bytes.iter().for_each(|&byte| push(upper(byte, table))),
            Decoder::Swe7 => bytes.iter().for_each(|&byte| push(swe7(byte))),
            Decoder::Web(encoding) => write_decoded(encoding, bytes, out),
        }
    }
}

/// Decodes piece by piece into room on the stack.
fn write_decoded(encoding: &'static Encoding, bytes: &[u8], out: &mut Vec<u8>) {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut room = [0; 256];
    let mut rest = bytes;
    loop {
        let (result, read, written, _) = decoder.decode_to_utf8(rest, &mut room, true);
        let text = room.get(..written).and_then(|text| std::str::from_utf8(text).ok());
        token::write_escaped(text.unwrap_or_default(), out);
        rest = rest.get(read..).unwrap_or_default();
        match result {
            CoderResult::InputEmpty => return,
            CoderResult::OutputFull => {}
        }
    }
}

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> impl Iterator<Item = char> {
    let (units, rest) = bytes.as_chunks::<2>();
    let characters = char::decode_utf16(units.iter().map(move |pair| unit(*pair)));
    let torn = (!rest.is_empty()).then_some(REPLACEMENT);
    characters.map(|character| character.unwrap_or(REPLACEMENT)).chain(torn)
}

fn utf32(bytes: &[u8]) -> impl Iterator<Item = char> {
    let (words, rest) = bytes.as_chunks::<4>();
    let characters = words.iter().map(|word| char::from_u32(u32::from_be_bytes(*word)));
    let torn = (!rest.is_empty()).then_some(None);
    characters.chain(torn).map(|character| character.unwrap_or(REPLACEMENT))
}

fn ascii(byte: u8) -> char {
    if byte < 0x80 { char::from(byte) } else { REPLACEMENT }
}

/// A character of a set that is ASCII below 0x80.
fn upper(byte: u8, table: &[u16; 128]) -> char {
    match usize::from(byte).checked_sub(128) {
        None => char::from(byte),
        Some(index) => {
            table.get(index).and_then(|&unit| char::from_u32(unit.into())).unwrap_or(REPLACEMENT)
        }
    }
}

/// A character of `swe7`: ASCII with letters in the place of some signs.
fn swe7(byte: u8) -> char {
    match byte {
        b'@' => 'É',
        b'[' => 'Ä',
        b'\\' => 'Ö',
        b']' => 'Å',
        b'^' => 'Ü',
        b'`' => 'é',
        b'{' => 'ä',
        b'|' => 'ö',
        b'}' => 'å',
        b'~' => 'ü',
        0..0x7f => char::from(byte),
        _ => REPLACEMENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts as Debezium 3.6.3.Final decoded them, with the bytes that the server stores.
    #[test]
    fn each_set_has_its_decoder() {
        for (name, bytes, text) in [
            ("utf8mb4", "héllo😀".as_bytes(), "héllo😀"),
            ("UTF8", b"a\xffb", "a\u{fffd}b"),
            ("latin1", b"caf\xe9 \xff\x80", "café ÿ€"),
            ("binary", b"a\x00\xff\x80", "a\0ÿ\u{80}"),
            ("ascii", b"abc\xe9", "abc\u{fffd}"),
            ("ucs2", b"\x4e\x2d\x65\x87", "中文"),
            ("utf16", b"\xd8\x3d\xde\x00\x00", "😀\u{fffd}"),
            ("utf16le", b"\x2d\x4e\x87\x65", "中文"),
            ("utf32", b"\0\0\x4e\x2d\0\x11\0\0\0", "中\u{fffd}\u{fffd}"),
            ("gbk", b"\xd6\xd0\xce\xc4", "中文"),
            ("gb18030", b"\xd6\xd0\xce\xc4", "中文"),
            ("big5", b"\xa4\xa4\xa4\xe5", "中文"),
            ("sjis", b"\x93\xfa\x96\x7b\xa1", "日本｡"),
            ("ujis", b"\xc6\xfc\xcb\xdc", "日本"),
            ("euckr", b"\xc7\xd1\xb1\xb9", "한국"),
            ("cp1251", b"\xcf\xf0", "Пр"),
            ("koi8r", b"\xf0\xd2", "Пр"),
            ("latin2", b"\xbelu\xbb", "žluť"),
            ("latin5", b"\xdd\xfe", "İş"),
            ("latin7", b"\xe0\xff", "ą’"),
            ("greek", b"\xe1", "α"),
            ("hebrew", b"\xe0", "א"),
            ("cp1250", b"\x8a", "Š"),
            ("cp1256", b"\xc7", "ا"),
            ("cp1257", b"\xe0", "ą"),
            ("cp866", b"\x80", "А"),
            ("koi8u", b"\xa4", "є"),
            ("macroman", b"\x8e", "é"),
            ("tis620", b"\xa1", "ก"),
            ("gb2312", b"\xd6\xd0", "中"),
            ("cp932", b"\x93\xfa", "日"),
            ("eucjpms", b"\xc6\xfc", "日"),
            ("armscii8", b"\xb2", "Ա"),
            ("cp850", b"a\x82", "aé"),
            ("cp852", b"\x85", "ů"),
            ("dec8", b"\xe9\xff", "é\u{fffd}"),
            ("geostd8", b"\xc0", "ა"),
            ("hp8", b"\xc5", "é"),
            ("keybcs2", b"\x87", "č"),
            ("macce", b"\x8b", "č"),
            ("swe7", b"a@{\xff", "aÉä\u{fffd}"),
        ] {
            let charset = Charset::named(name).unwrap();
            assert_eq!(charset.decode(bytes), text, "{name}");
            let mut out = Vec::new();
            charset.write_json(bytes, &mut out);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text, "{name}");
        }
        assert!(Charset::named("klingon").is_none());
    }
}
