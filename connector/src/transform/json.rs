//! JSON text taken apart one level at a time: what is not looked into stays as it was written.

use crate::format::json::{write_escaped, write_string};

/// The members of an object in order: the name as written between its quotes, and the value as written.
#[derive(Debug, Clone, Default)]
pub(super) struct Object<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> Object<'a> {
    /// Takes an object apart; none where `text` is none.
    pub(super) fn parse(text: &'a [u8]) -> Option<Self> {
        let mut members = Vec::new();
        parts(text, b'{', b'}', |part| {
            let end = string_end(part)?;
            let name = part.get(1..end.checked_sub(1)?)?;
            let rest = part.get(end..)?.trim_ascii_start();
            let value = rest.strip_prefix(b":")?.trim_ascii();
            members.push((name, value));
            Some(())
        })?;
        Some(Self(members))
    }

    /// The value of a member.
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        let name = escaped(name);
        self.0.iter().find(|(found, _)| *found == name).map(|(_, value)| *value)
    }

    /// The members, names without their quotes.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.0.iter().copied()
    }
}

/// The items of an array; none where `text` is none.
pub(super) fn items(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut items = Vec::new();
    parts(text, b'[', b']', |part| {
        items.push(part);
        Some(())
    })?;
    Some(items)
}

/// The text of a JSON string; none for anything else.
pub(super) fn string(text: &[u8]) -> Option<String> {
    serde_json::from_slice(text).ok()
}

/// Writes an object.
#[derive(Debug)]
pub(super) struct ObjectWriter {
    out: Vec<u8>,
}

impl ObjectWriter {
    pub(super) fn new() -> Self {
        Self { out: vec![b'{'] }
    }

    /// Adds a member whose value is JSON already.
    pub(super) fn member(&mut self, name: &str, value: &[u8]) {
        self.raw_member(&escaped(name), value);
    }

    /// The same, with a name that is escaped already.
    pub(super) fn raw_member(&mut self, name: &[u8], value: &[u8]) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b"\":");
        self.out.extend_from_slice(value);
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// An array of texts that are JSON already.
pub(super) fn array<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = vec![b'['];
    for item in items {
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
    out
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_string(text, &mut out);
    out
}

fn escaped(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    write_escaped(name, &mut out);
    out
}

/// Gives each comma-separated part between two brackets to `take`, which may refuse.
fn parts<'a>(
    text: &'a [u8],
    open: u8,
    close: u8,
    mut take: impl FnMut(&'a [u8]) -> Option<()>,
) -> Option<()> {
    let text = text.trim_ascii();
    let mut rest = text.strip_prefix(&[open])?.strip_suffix(&[close])?.trim_ascii();
    while !rest.is_empty() {
        let end = part_end(rest);
        let (part, after) = rest.split_at_checked(end)?;
        take(part.trim_ascii())?;
        rest = after.strip_prefix(b",").unwrap_or(after).trim_ascii();
    }
    Some(())
}

/// Where the next comma outside of strings and brackets is, or the end.
fn part_end(text: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => match text.get(at..).and_then(string_end) {
                Some(length) => {
                    at += length;
                    continue;
                }
                None => return text.len(),
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Length of the string that `text` begins with, its quotes included.
fn string_end(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"\"")?;
    let mut escape = false;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            _ if escape => escape = false,
            b'\\' => escape = true,
            b'"' => return Some(at + 2),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_apart_and_together_unchanged() {
        let text = br#"{"a":1.0E100,"b\"c":{"x":[1,"},"]},"d":"q\"}","e":null,"f":[]}"#;
        let object = Object::parse(text).unwrap();
        assert_eq!(object.get("b\"c"), Some(&br#"{"x":[1,"},"]}"#[..]));
        assert_eq!(object.get("d").and_then(string).as_deref(), Some("q\"}"));
        assert_eq!(object.get("x"), None);
        let mut writer = ObjectWriter::new();
        for (name, value) in object.members() {
            writer.raw_member(name, value);
        }
        assert_eq!(writer.end(), text);
        assert_eq!(
            items(br#"[{"a":[1,2]},"]",3]"#).unwrap(),
            [&br#"{"a":[1,2]}"#[..], b"\"]\"", b"3"]
        );
        assert_eq!(array([&b"1"[..], b"2"]), b"[1,2]");
        assert!(Object::parse(b"{}").unwrap().members().next().is_none());
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in [&b"null"[..], b"{", b"[1]", b"{\"a\"}", b"{1:2}", b"{\"a:1}", b""] {
            assert!(Object::parse(text).is_none(), "{}", String::from_utf8_lossy(text));
        }
        assert!(items(b"{}").is_none());
    }
}
