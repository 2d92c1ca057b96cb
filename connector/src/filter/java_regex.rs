//! Java's regular expressions on the engine that we have.
//!
//! A pattern is walked once: what both engines write alike is copied, what Java writes differently is translated, and
//! what has no counterpart is refused with the text that `java.util.regex.Pattern` gives a bad pattern. Matching is
//! that of `Pattern.CASE_INSENSITIVE`: only ASCII letters fold. Patterns without look-around, back references and
//! possessive quantifiers run in linear time; the others stop after a bounded number of steps.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use fancy_regex::{Regex, RegexBuilder};

/// Steps after which a backtracking match is given up.
const BACKTRACK_LIMIT: usize = 200_000;
/// Bytes that a compiled pattern may take.
const SIZE_LIMIT: usize = 4 << 20;
/// Open groups and classes inside each other.
const NESTING_LIMIT: usize = 100;

/// A pattern in Java's syntax that is matched against a whole text.
#[derive(Clone)]
pub struct JavaRegex {
    source: String,
    compiled: Regex,
}

impl fmt::Debug for JavaRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JavaRegex").field(&self.source).finish()
    }
}

impl PartialEq for JavaRegex {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.compiled.as_str() == other.compiled.as_str()
    }
}

impl Eq for JavaRegex {}

/// A match was given up after too many steps of backtracking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the pattern needs more than {BACKTRACK_LIMIT} steps of backtracking; simplify its nested repetitions"
)]
pub struct TooComplex;

/// What is wrong with a pattern, as `PatternSyntaxException#getMessage` lays it out: description and index, the
/// pattern, a caret under the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    description: String,
    /// Zero-based index into the pattern, in characters.
    index: Option<usize>,
    pattern: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)?;
        if let Some(index) = self.index {
            write!(f, " near index {index}")?;
        }
        write!(f, "\n{}", self.pattern)?;
        match self.index {
            Some(index) if index < self.pattern.chars().count() => {
                f.write_str("\n")?;
                for c in self.pattern.chars().take(index) {
                    f.write_str(if c == '\t' { "\t" } else { " " })?;
                }
                f.write_str("^")
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl std::error::Error for PatternError {}

impl JavaRegex {
    /// Compiles a pattern that ignores the case of ASCII letters.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for what Java refuses, and for what we have no counterpart of.
    pub fn case_insensitive(pattern: &str) -> Result<Self, PatternError> {
        Self::compile(pattern, true)
    }

    /// Compiles a pattern that minds case.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for what Java refuses, and for what we have no counterpart of.
    pub fn case_sensitive(pattern: &str) -> Result<Self, PatternError> {
        Self::compile(pattern, false)
    }

    fn compile(pattern: &str, ignore_case: bool) -> Result<Self, PatternError> {
        let fail = |description: String, index: Option<usize>| PatternError {
            description,
            index,
            pattern: pattern.to_owned(),
        };
        let translated = Translator::new(pattern)
            .run()
            .map_err(|(description, index)| fail(description, index))?;
        // The builder's own switch for case cannot be turned off inside the pattern, the inline flag can.
        let flag = if ignore_case { "(?i)" } else { "" };
        let compiled = RegexBuilder::new(&format!("{flag}\\A(?:{translated})\\z"))
            .backtrack_limit(BACKTRACK_LIMIT)
            .delegate_size_limit(SIZE_LIMIT)
            .build()
            .map_err(|_cause| {
                fail("The pattern is too large, or not supported here".to_owned(), None)
            })?;
        Ok(Self { source: pattern.to_owned(), compiled })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the whole of `text` matches.
    ///
    /// # Errors
    ///
    /// [`TooComplex`] when backtracking was cut off.
    pub fn matches(&self, text: &str) -> Result<bool, TooComplex> {
        self.compiled.is_match(text).map_err(|_cut_off| TooComplex)
    }

    /// `text` replaced as Java's `Matcher#replaceAll` does when the whole of it matches: `$1` and `${name}` are
    /// groups, a backslash takes the next character literally. `None` without a match.
    ///
    /// # Errors
    ///
    /// [`TooComplex`] when backtracking was cut off.
    pub fn replace_whole(
        &self,
        text: &str,
        replacement: &str,
    ) -> Result<Option<String>, TooComplex> {
        let Some(groups) = self.compiled.captures(text).map_err(|_cut_off| TooComplex)? else {
            return Ok(None);
        };
        let group = |found: Option<fancy_regex::Match<'_>>| {
            found.map_or("", |group| group.as_str()).to_owned()
        };
        let mut out = String::new();
        let mut chars = replacement.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' => out.extend(chars.next()),
                '$' if chars.peek() == Some(&'{') => {
                    chars.next();
                    let name: String = chars.by_ref().take_while(|&c| c != '}').collect();
                    out.push_str(&group(groups.name(&name)));
                }
                '$' => {
                    // Java takes more digits only while such a group exists.
                    let Some(mut number) = chars
                        .peek()
                        .and_then(|c| c.to_digit(10))
                        .and_then(|d| usize::try_from(d).ok())
                    else {
                        out.push('$');
                        continue;
                    };
                    chars.next();
                    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                        let longer = usize::try_from(digit)
                            .ok()
                            .and_then(|d| number.checked_mul(10)?.checked_add(d));
                        match longer {
                            Some(longer) if longer < groups.len() => number = longer,
                            Some(_) | None => break,
                        }
                        chars.next();
                    }
                    out.push_str(&group(groups.get(number)));
                }
                plain => out.push(plain),
            }
        }
        Ok(Some(out))
    }
}

type Refused = (String, Option<usize>);

struct Translator<'a> {
    chars: Peekable<Chars<'a>>,
    /// Characters consumed: Java's `cursor`.
    at: usize,
    out: String,
    /// Whether `.` matches line ends, per open group; the last is the current one.
    dot_all: Vec<bool>,
    /// Where in `out` each open group begins.
    groups: Vec<usize>,
    /// Whether something that a quantifier can follow was just written.
    atom: bool,
    /// Where in `out` it begins.
    atom_start: usize,
}

impl<'a> Translator<'a> {
    fn new(pattern: &'a str) -> Self {
        Self {
            chars: pattern.chars().peekable(),
            at: 0,
            out: String::with_capacity(pattern.len() + 16),
            groups: Vec::new(),
            dot_all: vec![false],
            atom: false,
            atom_start: 0,
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        self.at += usize::from(c.is_some());
        c
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let taken = self.chars.peek() == Some(&wanted);
        if taken {
            self.next();
        }
        taken
    }

    /// Java's `error()`: the index is that of the last consumed character.
    fn error<T>(&self, description: impl Into<String>) -> Result<T, Refused> {
        Err((description.into(), self.at.checked_sub(1)))
    }

    fn run(mut self) -> Result<String, Refused> {
        while let Some(c) = self.next() {
            if !matches!(c, '*' | '+' | '?' | '{') {
                self.atom_start = self.out.len();
            }
            match c {
                '\\' => self.escape_outside()?,
                '[' => {
                    self.class(0)?;
                    self.atom = true;
                }
                '(' => self.group()?,
                ')' => {
                    let Some(start) = self.groups.pop() else {
                        return self.error_before("Unmatched closing ')'");
                    };
                    self.atom_start = start;
                    self.dot_all.pop();
                    self.out.push(')');
                    self.atom = true;
                }
                '|' => {
                    self.out.push('|');
                    self.atom = false;
                }
                '*' | '+' | '?' | '{' => self.quantifier(c)?,
                '.' => {
                    let all = self.dot_all.last().copied().unwrap_or_default();
                    self.out.push_str(if all {
                        "(?s:.)"
                    } else {
                        "[^\\n\\r\\x{85}\\x{2028}\\x{2029}]"
                    });
                    self.atom = true;
                }
                '^' => {
                    self.out.push_str("\\A");
                    self.atom = true;
                }
                '$' => {
                    self.out.push_str("(?=\\n?\\z)");
                    self.atom = true;
                }
                literal => self.literal(literal),
            }
        }
        if !self.groups.is_empty() {
            return Err(("Unclosed group".to_owned(), Some(self.at)));
        }
        Ok(self.out)
    }

    /// As [`Self::error`], for a place that Java finds before consuming it.
    fn error_before<T>(&self, description: &str) -> Result<T, Refused> {
        Err((description.to_owned(), self.at.checked_sub(2)))
    }

    fn literal(&mut self, c: char) {
        self.atom_start = self.out.len();
        if c.is_ascii() {
            if c.is_ascii_punctuation() && c != '<' && c != '>' {
                self.out.push('\\');
            }
            self.out.push(c);
        } else {
            // Java folds ASCII only unless UNICODE_CASE is asked for.
            self.out.push_str("(?-i:");
            self.out.push(c);
            self.out.push(')');
        }
        self.atom = true;
    }

    fn quantifier(&mut self, c: char) -> Result<(), Refused> {
        if c == '{' {
            if !self.atom {
                return self.error("Illegal repetition");
            }
            let mut bounds = String::new();
            loop {
                match self.next() {
                    Some('}') => break,
                    Some(digit @ ('0'..='9' | ',')) if bounds.len() < 20 => bounds.push(digit),
                    Some(_) if bounds.is_empty() => return self.error("Illegal repetition"),
                    Some(_) | None => return self.error("Unclosed counted closure"),
                }
            }
            let (low, high) = bounds.split_once(',').unwrap_or((&bounds, &bounds));
            let (low, high) =
                (low.parse::<u32>(), if high.is_empty() { Ok(u32::MAX) } else { high.parse() });
            match (low, high) {
                (Ok(low), Ok(high)) if low <= high => {}
                _ => return self.error("Illegal repetition range"),
            }
            self.out.push('{');
            self.out.push_str(&bounds);
            self.out.push('}');
        } else {
            if !self.atom {
                return self.error(format!("Dangling meta character '{c}'"));
            }
            self.out.push(c);
        }
        if self.next_if('?') {
            self.out.push('?');
        } else if self.next_if('+') {
            // Not every possessive form is known to the engine; the atomic group is.
            self.out.insert_str(self.atom_start, "(?>");
            self.out.push(')');
        }
        self.atom = false;
        Ok(())
    }

    fn group(&mut self) -> Result<(), Refused> {
        if self.groups.len() >= NESTING_LIMIT {
            return self.error("Groups are nested too deeply");
        }
        let start = self.out.len();
        let mut dot_all = self.dot_all.last().copied().unwrap_or_default();
        self.atom = false;
        if !self.next_if('?') {
            self.out.push('(');
        } else {
            match self.next() {
                Some(kind @ (':' | '=' | '!' | '>')) => {
                    self.out.push_str("(?");
                    self.out.push(kind);
                }
                Some('<') => match self.next() {
                    Some(kind @ ('=' | '!')) => {
                        self.out.push_str("(?<");
                        self.out.push(kind);
                    }
                    Some(first) if first.is_ascii_alphabetic() => {
                        self.out.push_str("(?<");
                        self.out.push(first);
                        let name = self.name('>')?;
                        self.out.push_str(&name);
                        self.out.push('>');
                    }
                    _ => return self.error("Unknown look-behind group"),
                },
                Some(first) => {
                    let mut on = true;
                    let mut flags = String::new();
                    let mut next = Some(first);
                    let closes = loop {
                        match next {
                            Some('-') if on => {
                                on = false;
                                flags.push('-');
                            }
                            Some('s') => dot_all = on,
                            Some('i') => flags.push('i'),
                            // `^` and `$` of whole names have no inner lines to mind.
                            Some('m' | 'd') => {}
                            Some(end @ (')' | ':')) => break end == ')',
                            Some('u' | 'U' | 'x') => {
                                return self
                                    .error("The inline flags u, U and x are not supported here");
                            }
                            _ => return self.error("Unknown inline modifier"),
                        }
                        next = self.next();
                    };
                    let flags = flags.trim_end_matches('-');
                    if closes {
                        // The flag holds to the end of the enclosing group.
                        if let Some(current) = self.dot_all.last_mut() {
                            *current = dot_all;
                        }
                        if !flags.is_empty() {
                            self.out.push_str("(?");
                            self.out.push_str(flags);
                            self.out.push(')');
                        }
                        return Ok(());
                    }
                    self.out.push_str("(?");
                    self.out.push_str(flags);
                    self.out.push(':');
                }
                None => return self.error("Unknown inline modifier"),
            }
        }
        self.groups.push(start);
        self.dot_all.push(dot_all);
        Ok(())
    }

    fn name(&mut self, end: char) -> Result<String, Refused> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(c) if c == end => return Ok(name),
                Some(c) if c.is_ascii_alphanumeric() => name.push(c),
                _ => return self.error("named capturing group is missing trailing '>'"),
            }
        }
    }

    fn escape_outside(&mut self) -> Result<(), Refused> {
        let Some(c) = self.next() else { return self.error("Unescaped trailing backslash") };
        self.atom = true;
        let fixed = match c {
            'Q' => {
                let mut pending = false;
                while let Some(c) = self.next() {
                    match (pending, c) {
                        (true, 'E') => return Ok(()),
                        (true, '\\') => self.literal('\\'),
                        (true, other) => {
                            self.literal('\\');
                            self.literal(other);
                            pending = false;
                        }
                        (false, '\\') => pending = true,
                        (false, other) => self.literal(other),
                    }
                }
                if pending {
                    self.literal('\\');
                }
                return Ok(());
            }
            // An end without a beginning is nothing.
            'E' => return Ok(()),
            '1'..='9' => {
                // Wrapped, so that a digit after it is not read as part of it.
                self.out.push_str("(?:\\");
                self.out.push(c);
                self.out.push(')');
                return Ok(());
            }
            'k' => {
                if !self.next_if('<') {
                    return self.error("\\k is not followed by '<' for named capturing group");
                }
                let name = self.name('>')?;
                self.out.push_str("\\k<");
                self.out.push_str(&name);
                self.out.push('>');
                return Ok(());
            }
            'A' => "\\A",
            'z' => "\\z",
            'Z' => "(?=\\n?\\z)",
            'b' => "\\b",
            'B' => "\\B",
            'R' => "(?:\\r\\n|[\\n\\x0B\\x0C\\r\\x{85}\\x{2028}\\x{2029}])",
            'G' | 'X' | 'N' => return self.error(format!("\\{c} is not supported here")),
            other => {
                if let Some(set) = self.set(other)? {
                    self.out.push('[');
                    self.out.push_str(&set);
                    self.out.push(']');
                } else {
                    let literal = self.escaped_character(other)?;
                    self.literal(literal);
                }
                return Ok(());
            }
        };
        self.out.push_str(fixed);
        Ok(())
    }

    /// What `\d`, `\p{Alpha}` and their like stand for, as the inside of a class.
    fn set(&mut self, c: char) -> Result<Option<String>, Refused> {
        let positive = match c.to_ascii_lowercase() {
            'd' => "0-9".to_owned(),
            'w' => "a-zA-Z0-9_".to_owned(),
            's' => " \\t\\n\\x0B\\x0C\\r".to_owned(),
            'h' => " \\t\\x{A0}\\x{1680}\\x{180E}\\x{2000}-\\x{200A}\\x{202F}\\x{205F}\\x{3000}"
                .to_owned(),
            'v' => "\\n\\x0B\\x0C\\r\\x{85}\\x{2028}\\x{2029}".to_owned(),
            'p' => self.property()?,
            _ => return Ok(None),
        };
        Ok(Some(if c.is_ascii_uppercase() { format!("[^{positive}]") } else { positive }))
    }

    fn property(&mut self) -> Result<String, Refused> {
        let mut name = String::new();
        if self.next_if('{') {
            loop {
                match self.next() {
                    Some('}') => break,
                    Some(c) if name.len() < 64 => name.push(c),
                    _ => return self.error("Unclosed character family"),
                }
            }
        } else {
            name.extend(self.next());
        }
        let ascii = match name.as_str() {
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => "\\x00-\\x7F",
            "Alpha" => "a-zA-Z",
            "Digit" => "0-9",
            "Alnum" => "a-zA-Z0-9",
            "Punct" => "!-/:-@\\[-`{-\\~",
            "Graph" => "!-\\~",
            "Print" => " -\\~",
            "Blank" => " \\t",
            "Cntrl" => "\\x00-\\x1F\\x7F",
            "XDigit" => "0-9a-fA-F",
            "Space" => " \\t\\n\\x0B\\x0C\\r",
            _ => "",
        };
        if !ascii.is_empty() {
            return Ok(ascii.to_owned());
        }
        let plain = name.strip_prefix("Is").unwrap_or(&name);
        let known = !plain.is_empty()
            && plain.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
            && fancy_regex::Regex::new(&format!("\\p{{{plain}}}")).is_ok();
        if known {
            Ok(format!("\\p{{{plain}}}"))
        } else {
            self.error(format!("Unknown character property name {{{name}}}"))
        }
    }

    /// The character that an escape stands for.
    fn escaped_character(&mut self, c: char) -> Result<char, Refused> {
        let code = match c {
            't' => return Ok('\t'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            'f' => return Ok('\u{c}'),
            'a' => return Ok('\u{7}'),
            'e' => return Ok('\u{1b}'),
            'c' => {
                let control = self.next().and_then(|c| u8::try_from(c).ok());
                match control {
                    Some(control) => return Ok(char::from(control ^ 64)),
                    None => return self.error("Illegal control escape sequence"),
                }
            }
            '0' => {
                let mut code: u32 = 0;
                let mut digits = 0;
                while let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(8)) {
                    if digits == 3 || code * 8 + digit > 0o377 {
                        break;
                    }
                    code = code * 8 + digit;
                    digits += 1;
                    self.next();
                }
                if digits == 0 {
                    return self.error("Illegal octal escape sequence");
                }
                code
            }
            'x' if self.next_if('{') => {
                let mut code: u32 = 0;
                loop {
                    match self.next() {
                        Some('}') => break,
                        Some(c) => match (c.to_digit(16), code.checked_mul(16)) {
                            (Some(digit), Some(shifted)) => code = shifted | digit,
                            _ => return self.error("Illegal hexadecimal escape sequence"),
                        },
                        None => return self.error("Unclosed hexadecimal escape sequence"),
                    }
                }
                code
            }
            'x' => self.hexadecimal(2, "Illegal hexadecimal escape sequence")?,
            'u' => self.hexadecimal(4, "Illegal Unicode escape sequence")?,
            letter if letter.is_ascii_alphanumeric() => {
                return self.error("Illegal/unsupported escape sequence");
            }
            literal => return Ok(literal),
        };
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.error("Hexadecimal codepoint is too big"),
        }
    }

    fn hexadecimal(&mut self, digits: usize, refused: &str) -> Result<u32, Refused> {
        let mut code = 0;
        for _ in 0..digits {
            match self.next().and_then(|c| c.to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return self.error(refused),
            }
        }
        Ok(code)
    }

    /// A class after its `[`.
    fn class(&mut self, depth: usize) -> Result<(), Refused> {
        if depth >= NESTING_LIMIT {
            return self.error("Character classes are nested too deeply");
        }
        self.out.push('[');
        if self.next_if('^') {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let Some(c) = self.next() else { return self.error("Unclosed character class") };
            match c {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '[' => self.class(depth + 1)?,
                '&' if self.next_if('&') => self.out.push_str("&&"),
                '\\' => {
                    let Some(c) = self.next() else {
                        return self.error("Unescaped trailing backslash");
                    };
                    match c {
                        'Q' => {
                            return self
                                .error("\\Q inside a character class is not supported here");
                        }
                        'E' => {}
                        other => match self.set(other)? {
                            Some(set) => self.out.push_str(&set),
                            None => {
                                let literal = self.escaped_character(other)?;
                                self.class_literal(literal);
                            }
                        },
                    }
                }
                // A range when it stands between two characters, which both engines read alike.
                '-' => match self.chars.peek() {
                    Some(']' | '[' | '-') => self.out.push_str("\\-"),
                    _ if first => self.out.push_str("\\-"),
                    _ => self.out.push('-'),
                },
                literal => self.class_literal(literal),
            }
            first = false;
        }
    }

    fn class_literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && c != '<' && c != '>' {
            self.out.push('\\');
        }
        self.out.push(c);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn java_syntax_matches_whole_texts() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("gold.t", &["gold.t", "GOLD.T", "goldxt"], &["gold.t1", "xgold.t"]),
            ("gold\\.t", &["gold.t"], &["goldxt"]),
            ("a|b", &["a", "b"], &["ab", "ax", "xb"]),
            ("\\Qa.b\\E.*", &["a.b", "a.bc"], &["axb"]),
            ("\\Qa\\b\\E", &["a\\b"], &["ab"]),
            ("\\p{Alpha}+", &["abc"], &["ab1", "é"]),
            ("\\P{Alpha}", &["1"], &["a"]),
            ("[\\p{Digit}x]+", &["1x"], &["y"]),
            ("\\p{L}", &["é", "a"], &["1"]),
            ("\\p{IsAlphabetic}", &["é"], &["1"]),
            ("\\d+", &["12"], &["٣"]),
            ("\\w+", &["a_1"], &["é"]),
            ("[^\\d]", &["a"], &["1"]),
            ("[\\D]", &["a"], &["1"]),
            ("a*+a", &[], &["a", "aa"]),
            ("a++b", &["aab"], &["aa"]),
            ("(?>a|ab)c", &["ac"], &["abc"]),
            ("a{2}", &["aa"], &["a"]),
            ("a{1,2}+b", &["ab", "aab"], &["b"]),
            ("a{1,2}+a", &["aaa"], &["aa"]),
            ("x(ab|a)?+b", &["xabb", "xb"], &["xab"]),
            ("\\Qxy\\E++", &["xyy"], &["xyxy"]),
            ("(a+)++", &["aa"], &[]),
            ("(?i)x(?-i)y", &["Xy"], &["XY"]),
            ("(?i:x)", &["X"], &[]),
            ("é", &["é"], &["É"]),
            ("(?!sys).*", &["gold"], &["sys", "sysx"]),
            ("(a)\\1", &["aa"], &["ab"]),
            ("(?<n>a)\\k<n>", &["aa"], &["ab"]),
            ("[a-c&&[^b]]", &["a", "c"], &["b"]),
            ("[a[0-9]]", &["a", "5"], &["b"]),
            ("[]a]", &["]", "a"], &["b"]),
            ("[a~~-]+", &["a~-"], &["b"]),
            ("[-a]", &["-", "a"], &["b"]),
            ("\\x41\\u0042\\x{43}\\0104", &["ABCD"], &["abc"]),
            ("^a$", &["a"], &["b"]),
            ("t odd-Name\\$#&~", &["t odd-name$#&~"], &["t"]),
            (".*", &["", "é😀"], &["a\nb"]),
            ("(?s).*", &["a\nb"], &[]),
            ("", &[""], &["a"]),
            ("a||b", &["a", "", "b"], &["ab"]),
        ];
        for (pattern, yes, no) in cases {
            let regex = JavaRegex::case_insensitive(pattern)
                .unwrap_or_else(|error| panic!("{pattern}: {error}"));
            for text in *yes {
                assert_eq!(
                    regex.matches(text),
                    Ok(true),
                    "{pattern} on {text:?}: {}",
                    regex.compiled.as_str()
                );
            }
            for text in *no {
                assert_eq!(
                    regex.matches(text),
                    Ok(false),
                    "{pattern} on {text:?}: {}",
                    regex.compiled.as_str()
                );
            }
        }
    }

    /// The first three as Debezium 3.6.3.Final prints them on Java 17; the others as `java.util.regex.Pattern` reads.
    #[test]
    fn a_bad_pattern_is_described_as_java_does() {
        let cases = [
            ("zz[", "Unclosed character class near index 2\nzz[\n  ^"),
            ("gold.[", "Unclosed character class near index 5\ngold.[\n     ^"),
            ("*", "Dangling meta character '*' near index 0\n*\n^"),
            ("a|+", "Dangling meta character '+' near index 2\na|+\n  ^"),
            ("(a", "Unclosed group near index 2\n(a"),
            ("a)", "Unmatched closing ')' near index 0\na)\n^"),
            (")", "Unmatched closing ')'\n)"),
            ("a\\y", "Illegal/unsupported escape sequence near index 2\na\\y\n  ^"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(JavaRegex::case_insensitive(pattern).unwrap_err().to_string(), expected);
        }
        for pattern in [
            "{2}",
            "a{x}",
            "a{3,1}",
            "\\p{Foo}",
            "\\",
            "(?x)a",
            "(?",
            "a{99999999}",
            "\\p{InGreek}",
            "a{1",
        ] {
            assert!(JavaRegex::case_insensitive(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn backtracking_is_bounded() {
        let regex = JavaRegex::case_insensitive("(?=x?)(?:(?=a)a|a(?=a?))*b").unwrap();
        let outcome = regex.matches(&"a".repeat(60));
        assert_eq!(outcome, Err(TooComplex));
    }

    #[test]
    fn replacement_is_that_of_java() {
        let regex = JavaRegex::case_sensitive("(.*)gold(.*)").unwrap();
        let replace = |with: &str| regex.replace_whole("srv.gold.t1", with).unwrap();
        assert_eq!(replace("$1all_shards$2").as_deref(), Some("srv.all_shards.t1"));
        assert_eq!(replace("$10").as_deref(), Some("srv.0"));
        assert_eq!(replace("\\$1").as_deref(), Some("$1"));
        assert_eq!(regex.replace_whole("srv.GOLD.t1", "x"), Ok(None));
    }

    proptest! {
        #[test]
        fn any_pattern_is_compiled_or_refused(
            pattern in "[\\\\(){}\\[\\]?*+|.^$&~a-dpPQEkux0-9<>:=!,é-]{0,16}",
            text in "[a-d0-9é.]{0,8}",
        ) {
            if let Ok(regex) = JavaRegex::case_insensitive(&pattern) {
                let _outcome = regex.matches(&text);
            }
        }
    }
}
