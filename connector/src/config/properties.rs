//! The Java `.properties` syntax, read as UTF-8.
//!
//! ```text
//! # comment          a line whose first character after blanks is '#' or '!'
//! key = value        the first unescaped '=', ':' or blank ends the key
//! long = first \     a backslash at the end of a line continues it;
//!        second      blanks at the start of the next line are dropped
//! path = c:\\tmp     \t \n \r \f and \uXXXX are escapes, any other \x is x
//! ```
//!
//! Source: `java.util.Properties#load`. Differences: the text is UTF-8 (Java reads ISO-8859-1 from a stream), and an
//! escaped half of a surrogate pair is an error, since a Rust string cannot hold it.

use std::fmt;

/// A value that is never printed: `Debug` and `Display` give `***`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself; for the handshake only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// One property, and where it was read.
#[derive(Clone, PartialEq, Eq)]
pub struct Property {
    /// The key, unescaped.
    pub key: String,
    /// The value, unescaped; blanks at its end are kept, as Java keeps them.
    pub value: String,
    /// The line it starts on, one-based; `None` for one that was set by [`Properties::set`].
    pub line: Option<usize>,
}

/// The value is left out: it may be a secret.
impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Property")
            .field("key", &self.key)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// The properties of a file, in the order of their first mention; of a repeated key the last value counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    entries: Vec<Property>,
    repeated: Vec<String>,
}

/// A file that is not in the `.properties` syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// `\u` without four hexadecimal digits.
    #[error("line {line}: \\u must be followed by four hexadecimal digits")]
    UnicodeEscape {
        /// One-based.
        line: usize,
    },
    /// `\uD800` to `\uDFFF` without its other half.
    #[error(
        "line {line}: \\u{unit:04x} is half of a surrogate pair and its other half does not follow"
    )]
    LoneSurrogate {
        /// One-based.
        line: usize,
        /// The UTF-16 unit.
        unit: u16,
    },
}

impl Properties {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`SyntaxError`] for a malformed `\u` escape; nothing else is malformed in this syntax.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut properties = Self::default();
        for (line, logical) in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            let (key, value) = split(&logical);
            let key = unescape(key, line)?;
            let value = unescape(value, line)?;
            if properties.get(&key).is_some() {
                properties.repeated.push(key.clone());
            }
            properties.put(Property { key, value, line: Some(line) });
        }
        Ok(properties)
    }

    /// Sets a property over what the file says, as `--set KEY=VALUE` does.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.put(Property { key: key.into(), value: value.into(), line: None });
    }

    fn put(&mut self, property: Property) {
        match self.entries.iter_mut().find(|entry| entry.key == property.key) {
            Some(entry) => *entry = property,
            None => self.entries.push(property),
        }
    }

    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// All properties in order.
    pub fn iter(&self) -> impl Iterator<Item = &Property> {
        self.entries.iter()
    }

    /// Keys that the file names more than once, once per repetition.
    #[must_use]
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Properties {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(pairs: T) -> Self {
        let mut properties = Self::default();
        for (key, value) in pairs {
            properties.set(key, value);
        }
        properties
    }
}

/// Java's blanks: space, tab and form feed.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// Joins continued lines and leaves out comments and blank lines; each with its one-based first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    // `\r\n`, `\r` and `\n` all end a line; the empty piece inside `\r\n` is dropped by normalising first.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut open: Option<(usize, String)> = None;
    for (number, natural) in text.split('\n').enumerate() {
        let piece = natural.trim_start_matches(BLANKS);
        let (first, mut logical) = match open.take() {
            Some(started) => started,
            None if piece.is_empty() || piece.starts_with(['#', '!']) => continue,
            None => (number + 1, String::new()),
        };
        let backslashes = piece.chars().rev().take_while(|&c| c == '\\').count();
        match piece.strip_suffix('\\') {
            Some(continued) if backslashes % 2 == 1 => {
                logical.push_str(continued);
                open = Some((first, logical));
            }
            Some(_) | None => {
                logical.push_str(piece);
                lines.push((first, logical));
            }
        }
    }
    lines.extend(open);
    lines.retain(|(_, logical)| !logical.is_empty());
    lines
}

/// Splits a logical line into its raw key and raw value.
fn split(logical: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, c) in logical.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if matches!(c, '=' | ':') || BLANKS.contains(&c) {
            let (key, rest) = logical.split_at(at);
            let rest = rest.trim_start_matches(BLANKS);
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (key, rest.trim_start_matches(BLANKS));
        }
    }
    (logical, "")
}

fn unescape(raw: &str, line: usize) -> Result<String, SyntaxError> {
    let mut text = String::with_capacity(raw.len());
    let mut high: Option<u16> = None;
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        let escape = if c == '\\' { chars.next() } else { None };
        if let Some('u') = escape {
            let mut unit: u16 = 0;
            for _ in 0..4 {
                let digit = chars
                    .next()
                    .and_then(|c| c.to_digit(16))
                    .and_then(|digit| u16::try_from(digit).ok());
                unit = (unit << 4) | digit.ok_or(SyntaxError::UnicodeEscape { line })?;
            }
            match (high.take(), unit) {
                (None, 0xd800..=0xdbff) => high = Some(unit),
                (first, _) => {
                    let units = first.into_iter().chain([unit]);
                    for decoded in char::decode_utf16(units) {
                        text.push(decoded.map_err(|error| SyntaxError::LoneSurrogate {
                            line,
                            unit: error.unpaired_surrogate(),
                        })?);
                    }
                }
            }
            continue;
        }
        if let Some(unit) = high {
            return Err(SyntaxError::LoneSurrogate { line, unit });
        }
        match (c, escape) {
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('r')) => text.push('\r'),
            ('\\', Some('f')) => text.push('\u{c}'),
            ('\\', Some(other)) => text.push(other),
            ('\\', None) => {}
            (plain, _) => text.push(plain),
        }
    }
    match high {
        Some(unit) => Err(SyntaxError::LoneSurrogate { line, unit }),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_syntax_is_that_of_java() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("a=b", &[("a", "b")]),
            ("a:b", &[("a", "b")]),
            ("a b", &[("a", "b")]),
            ("  a  =  b  ", &[("a", "b  ")]),
            ("a==b", &[("a", "=b")]),
            ("a\\=b=c", &[("a=b", "c")]),
            ("a\\ b c", &[("a b", "c")]),
            ("a", &[("a", "")]),
            ("# a=b\n! c=d\n\n e=f", &[("e", "f")]),
            ("a=b\\\n   c", &[("a", "bc")]),
            ("a=b\\\\\nc=d", &[("a", "b\\"), ("c", "d")]),
            ("a=b\\\n# c", &[("a", "b# c")]),
            ("a=1\na=2", &[("a", "2")]),
            ("a=\\u00e9\\t\\x", &[("a", "é\tx")]),
            ("a=\\ud83d\\ude00", &[("a", "😀")]),
            ("a=é", &[("a", "é")]),
            ("a=b\r\nc=d\re=f", &[("a", "b"), ("c", "d"), ("e", "f")]),
            ("re=gold\\\\.t1", &[("re", "gold\\.t1")]),
            ("a=b\\", &[("a", "b")]),
            ("=b", &[("", "b")]),
        ];
        for (text, expected) in cases {
            let parsed = Properties::parse(text).unwrap();
            let pairs: Vec<_> = parsed.iter().map(|p| (p.key.as_str(), p.value.as_str())).collect();
            assert_eq!(&pairs, expected, "{text:?}");
        }
    }

    #[test]
    fn a_bad_escape_names_its_line() {
        assert_eq!(Properties::parse("a=b\nc=\\u12"), Err(SyntaxError::UnicodeEscape { line: 2 }));
        for text in ["a=\\ud83d", "a=\\ud83dx", "a=\\ud83d\\u0041", "a=\\ude00"] {
            let error = Properties::parse(text).unwrap_err();
            assert!(matches!(error, SyntaxError::LoneSurrogate { line: 1, .. }), "{text}: {error}");
        }
    }

    #[test]
    fn lines_and_repetitions_are_kept_and_values_are_not_printed() {
        let mut parsed = Properties::parse("a=1\n\nb=hidden\na=3").unwrap();
        assert_eq!(parsed.repeated(), ["a"]);
        assert_eq!(parsed.iter().map(|p| p.line).collect::<Vec<_>>(), [Some(4), Some(3)]);
        parsed.set("b", "other");
        assert_eq!(parsed.get("b"), Some("other"));
        assert!(!format!("{parsed:?}").contains("other"));
        assert_eq!(format!("{} {:?}", Secret::new("x"), Secret::new("x")), "*** ***");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s)[\\\\u0-9a-f=: \n\r#!é]{0,40}|.{0,80}") {
            let _outcome = Properties::parse(&text);
        }
    }
}
