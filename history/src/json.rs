//! JSON as Debezium's stores hold it: the writer's escapes, and objects read member by member.
//!
//! Debezium writes through Jackson with its default settings: no white space between tokens, `"`, `\` and the control
//! characters below U+0020 escaped (by letter where there is one, else with upper-case hex digits), everything else as
//! UTF-8. `serde_json` writes the hex digits in lower case, so text that has to be equal byte for byte is written here.

mod scan;

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub(crate) use scan::{Scanner, once};

/// Appends `text` as a JSON string with its quotes.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: [u8; 16] = *b"0123456789ABCDEF";
    out.push(b'"');
    for &byte in text.as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0A => out.extend_from_slice(b"\\n"),
            0x0C => out.extend_from_slice(b"\\f"),
            0x0D => out.extend_from_slice(b"\\r"),
            0x00..=0x1F => {
                let digit = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or(b'0');
                out.extend_from_slice(&[
                    b'\\',
                    b'u',
                    b'0',
                    b'0',
                    digit(byte >> 4),
                    digit(byte & 0x0F),
                ]);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends `text` as a JSON string, or `null`.
pub(crate) fn write_string_or_null(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => write_string(text, out),
        None => out.extend_from_slice(b"null"),
    }
}

/// Appends valid JSON without the white space between its tokens, so that it takes one line.
pub(crate) fn write_compact(json: &str, out: &mut Vec<u8>) {
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json.as_bytes() {
        if in_string {
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                in_string = false;
            }
            out.push(byte);
        } else if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            in_string = byte == b'"';
            out.push(byte);
        }
    }
}

/// Writes the members of one object in the order of the calls.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Opens an object.
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a name and hands out the buffer for its value.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_string(name, self.out);
        self.out.push(b':');
        self.out
    }

    /// Writes a string member.
    pub(crate) fn string(&mut self, name: &str, value: &str) {
        write_string(value, self.member(name));
    }

    /// Writes a number member (anything that prints as JSON does: an integer).
    pub(crate) fn integer(&mut self, name: &str, value: impl fmt::Display) {
        let out = self.member(name);
        out.extend_from_slice(value.to_string().as_bytes());
    }

    /// Writes a boolean member.
    pub(crate) fn boolean(&mut self, name: &str, value: bool) {
        self.member(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Closes the object.
    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}

/// The members of an object in the order of the text, values not looked at yet. A name that comes twice stands twice.
#[derive(Debug)]
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(pair) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(pair);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A value read from an object alone: a derived `Deserialize` takes an array of the members' values as well.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_map(Only(PhantomData)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_with_upper_case_digits_and_nothing_else_is() {
        let mut out = Vec::new();
        write_string("a\"\\\u{8}\t\n\u{c}\r\u{1f}\u{0}/\u{7f}\u{2028}é", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"a\\\"\\\\\\b\\t\\n\\f\\r\\u001F\\u0000/\u{7f}\u{2028}é\""
        );
    }

    #[test]
    fn compacting_leaves_strings_alone() {
        let mut out = Vec::new();
        write_compact("{ \"a b\" : [ 1 ,\n\"x \\\" y\\\\\" , { } ] }", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"a b\":[1,\"x \\\" y\\\\\",{}]}");
    }

    #[test]
    fn members_keep_the_order_of_the_text() {
        let Members(members) = serde_json::from_str("{\"z\":1,\"a\":{\"b\":[2]}}").unwrap();
        let seen: Vec<(&str, &str)> =
            members.iter().map(|(name, value)| (name.as_str(), value.get())).collect();
        assert_eq!(seen, [("z", "1"), ("a", "{\"b\":[2]}")]);
    }
}
