//! Stepping over JSON by its bytes: most of a long history is values of which nothing but their end is of interest.
//!
//! All of the grammar is checked, so what is stepped over is JSON: whatever is taken here, `serde_json` takes as well. What
//! is not taken may be JSON all the same (more than 64 brackets inside each other, say), and is left to `serde_json`,
//! which also says what is wrong.

use std::borrow::Cow;

/// Reads a text from its beginning. Every `None` says: this is for the slow way. Nothing is to be read after one.
#[derive(Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    /// Begins at the first byte.
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Reads an object and gives each member's name to `read`, which has to take the value. A name with an escape in it is
    /// none that anybody asks for, and is left to the slow way.
    pub(crate) fn object(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.token()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let (name, escaped) = self.string()?;
            if escaped {
                return None;
            }
            self.expect(b':')?;
            read(self, name)?;
            match self.token()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// Reads an array; `read` has to take each item.
    pub(crate) fn array(&mut self, mut read: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.token()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            read(self)?;
            match self.token()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    /// The text of a value, whatever it is.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        self.token()?;
        let start = self.at;
        self.skip()?;
        self.text.get(start..self.at)
    }

    /// A string.
    pub(crate) fn text(&mut self) -> Option<Cow<'a, str>> {
        self.token()?;
        let start = self.at;
        match self.string()? {
            (text, false) => Some(Cow::Borrowed(text)),
            (_, true) => serde_json::from_str(self.text.get(start..self.at)?).ok().map(Cow::Owned),
        }
    }

    /// A string or `null`.
    pub(crate) fn text_or_null(&mut self) -> Option<Option<Cow<'a, str>>> {
        if self.token()? == b'n' { self.word("null").map(|()| None) } else { self.text().map(Some) }
    }

    /// A whole number of that type.
    pub(crate) fn integer<T: std::str::FromStr>(&mut self) -> Option<T> {
        self.token()?;
        let start = self.at;
        self.number()?;
        let digits = self.text.get(start..self.at)?;
        // To `serde_json` this is a fraction.
        if digits == "-0" {
            return None;
        }
        digits.parse().ok()
    }

    /// That nothing is left.
    pub(crate) fn end(mut self) -> Option<()> {
        self.token().is_none().then_some(())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space, which is not taken.
    #[inline]
    fn token(&mut self) -> Option<u8> {
        loop {
            match self.byte()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                other => return Some(other),
            }
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.token()? == byte).then(|| self.at += 1)
    }

    /// Steps over a value.
    fn skip(&mut self) -> Option<()> {
        // The brackets that are open, the innermost in the lowest bit, below a one that stands for the outside.
        const OUTSIDE: u64 = 1;
        const IN_ARRAY: u64 = 0;
        const IN_OBJECT: u64 = 1;
        let mut open = OUTSIDE;
        loop {
            let bracket = match self.token()? {
                b'{' => Some((IN_OBJECT, b'}')),
                b'[' => Some((IN_ARRAY, b']')),
                b'"' => self.string().map(|_| None)?,
                b't' => self.word("true").map(|()| None)?,
                b'f' => self.word("false").map(|()| None)?,
                b'n' => self.word("null").map(|()| None)?,
                _ => self.number().map(|()| None)?,
            };
            if let Some((bracket, closing)) = bracket {
                self.at += 1;
                if self.token()? == closing {
                    self.at += 1;
                } else {
                    if open >> 63 != 0 {
                        return None;
                    }
                    open = open << 1 | bracket;
                    if bracket == IN_OBJECT {
                        self.name()?;
                    }
                    continue;
                }
            }
            // A value has ended.
            loop {
                if open == OUTSIDE {
                    return Some(());
                }
                match (self.token()?, open & 1) {
                    (b',', IN_OBJECT) => {
                        self.at += 1;
                        self.name()?;
                        break;
                    }
                    (b',', _) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', IN_OBJECT) | (b']', IN_ARRAY) => {
                        self.at += 1;
                        open >>= 1;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Steps over a member's name and the colon.
    #[inline]
    fn name(&mut self) -> Option<()> {
        self.string()?;
        self.expect(b':')
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.text.as_bytes().get(self.at..)?;
        rest.starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.byte()? == b'-' {
            self.at += 1;
        }
        match self.byte()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        // A digit after a zero is left, and whatever comes next does not take it.
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// What stands between the quotes of a string, and whether there are escapes in it.
    #[inline]
    fn string(&mut self) -> Option<(&'a str, bool)> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.plain_text();
            match self.byte()? {
                b'"' => {
                    let text = self.text.get(start..self.at)?;
                    self.at += 1;
                    return Some((text, escaped));
                }
                b'\\' => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    /// Steps over text that needs no care, eight bytes at a time: at most seven of it are left.
    #[inline]
    fn plain_text(&mut self) {
        const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
        const HIGH: u64 = ONES << 7;
        // The high bit of each byte that is zero. Of those only the lowest is sure, and only that one is looked at.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
        while let Some(chunk) = self.text.as_bytes().get(self.at..).and_then(<[u8]>::first_chunk) {
            let word = u64::from_le_bytes(*chunk);
            let quotes = zero(word ^ (ONES * 0x22));
            let backslashes = zero(word ^ (ONES * 0x5C));
            let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
            let found = quotes | backslashes | controls;
            if found != 0 {
                self.at += usize::try_from(found.trailing_zeros() / 8).unwrap_or(0);
                return;
            }
            self.at += 8;
        }
    }

    /// Steps over what follows a backslash.
    fn escape(&mut self) -> Option<()> {
        let kind = self.byte()?;
        self.at += 1;
        match kind {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.text.as_bytes().get(self.at..)?.first_chunk::<4>()?;
                self.at += 4;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }
}

/// Keeps a member's value; `None` when one was kept before.
pub(crate) fn once<T>(kept: &mut Option<T>, value: T) -> Option<()> {
    kept.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// Asserts that the text is stepped over when, and only when, `serde_json` takes it.
    fn as_serde_has_it(text: &str) {
        let mut scanner = Scanner::new(text);
        let scanned = scanner.value().and_then(|value| scanner.end().map(|()| value));
        let parsed = serde_json::from_str::<&RawValue>(text).ok();
        assert_eq!(scanned, parsed.map(RawValue::get), "{text:?}");
    }

    #[test]
    fn all_of_the_grammar_is_checked() {
        let texts = [
            "{}",
            "[]",
            "{ }",
            "[ ]",
            "[1]",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\":1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\" 1}",
            "{a:1}",
            "{1:1}",
            "{\"a\":}",
            "[[[]]]",
            "[[}]",
            "{]",
            "[",
            "{",
            "\"",
            "",
            " ",
            "1 2",
            "nul",
            "nulls",
            "true",
            "false",
            "tru",
            "null",
            "-",
            "-1",
            "01",
            "-01",
            "00",
            "0",
            "-0",
            "0.5",
            "0.",
            ".5",
            "1.e5",
            "1e5",
            "1E+5",
            "1e-",
            "1e",
            "+1",
            "1.5e+10",
            "0e0",
            "0x1",
            "1a",
            "\"\\u12\"",
            "\"\\u12aF\"",
            "\"\\u12ag\"",
            "\"\\x\"",
            "\"\\\"",
            "\"\\\\\"",
            "\"\\ud800\"",
            "\"\\udc00x\"",
            "\"a\tb\"",
            "\"a\u{1f}b\"",
            "\"a\u{20}b\"",
            "\"\u{7f}\u{80}é\u{10ffff}\"",
            "\"1234567\"",
            "\"12345678\"",
            "\"123456789\"",
            "\"1234567\n\"",
            "\"12345678\u{0}\"",
            "\"abcdef\\\"gh\"",
            "\u{feff}1",
            "\u{a0}1",
            "\t\r\n [ \t1\r,\n2 ]\t",
            "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"e\"}",
            "[1}",
            "{\"a\":1]",
            "\"a\" \"b\"",
            "\u{c}1",
        ];
        for text in texts {
            as_serde_has_it(text);
        }
        // As deep as is counted, and deeper: that is for the slow way.
        for (depth, taken) in [(1, true), (63, true), (64, true), (65, false), (1000, false)] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(Scanner::new(&text).value().is_some(), taken, "{depth}");
        }
    }

    #[test]
    fn members_and_items_are_read_in_their_order() {
        let mut scanner = Scanner::new(r#" { "a" : "x\u0041" , "b":[ 1 ,-2], "c":{"d":[{}]} } "#);
        let (mut texts, mut numbers, mut rest) = (Vec::new(), Vec::<i64>::new(), Vec::new());
        let read = scanner.object(|scanner, name| match name {
            "a" => scanner.text().map(|text| texts.push(text)),
            "b" => scanner.array(|scanner| scanner.integer().map(|number| numbers.push(number))),
            _ => scanner.value().map(|value| rest.push((name, value))),
        });
        assert_eq!((read, scanner.end()), (Some(()), Some(())));
        assert_eq!((texts, numbers), (vec![Cow::Borrowed("xA")], vec![1, -2]));
        assert_eq!(rest, [("c", r#"{"d":[{}]}"#)]);
    }

    #[test]
    fn what_serde_reads_otherwise_is_left_to_it() {
        for text in ["-0", "1.0", "1e2", "18446744073709551616", "\"1\"", "null"] {
            assert_eq!(Scanner::new(text).integer::<u64>(), None, "{text}");
        }
        for text in ["\"\\ud800\"", "null", "1"] {
            assert_eq!(Scanner::new(text).text(), None, "{text}");
        }
        assert_eq!(
            Scanner::new(r#"{"\u0061":1}"#).object(|scanner, _| scanner.value().map(|_| ())),
            None
        );
    }

    /// Values in all forms that another writer may give them, with white space.
    fn json() -> impl Strategy<Value = String> {
        let space = || prop_oneof![6 => Just(""), 1 => Just(" "), 1 => Just("\t\r\n ")];
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
            any::<String>().prop_map(|text| serde_json::to_string(&text).expect("a string")),
            "\"(\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}|[a-zé ]{0,9}){0,4}\"",
        ];
        (leaf, space()).prop_map(|(leaf, space)| format!("{space}{leaf}{space}")).prop_recursive(
            6,
            64,
            6,
            move |inner| {
                let space = prop_oneof![6 => Just(""), 1 => Just("\n ")];
                prop_oneof![
                    (prop::collection::vec(inner.clone(), 0..6), space.clone())
                        .prop_map(|(items, space)| format!("{space}[{}{space}]", items.join(","))),
                    (prop::collection::vec((any::<String>(), inner), 0..6), space).prop_map(
                        |(members, space)| {
                            let members: Vec<String> = members
                                .iter()
                                .map(|(name, value)| {
                                    let name = serde_json::to_string(name).expect("a string");
                                    format!("{space}{name}{space}:{value}")
                                })
                                .collect();
                            format!("{{{}{space}}}{space}", members.join(","))
                        }
                    ),
                ]
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn json_is_stepped_over_and_damaged_json_is_not(
            text in json(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            as_serde_has_it(&text);
            prop_assert!(serde_json::from_str::<&RawValue>(&text).is_ok());
            let mut bytes = text.into_bytes();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                if let Ok(changed) = std::str::from_utf8(&bytes) {
                    as_serde_has_it(changed);
                }
            }
            bytes.truncate(cut.index(bytes.len()));
            if let Ok(cut) = std::str::from_utf8(&bytes) {
                as_serde_has_it(cut);
            }
        }

        #[test]
        fn any_text_is_taken_as_serde_takes_it(text in "[\\[\\]{}\",:\\\\a-z0-9.eE+\\- \n]{0,40}") {
            as_serde_has_it(&text);
        }
    }
}
