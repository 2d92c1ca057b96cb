//! JSON that keeps what a comparison must see: the order of members and the spelling of numbers.
//!
//! `1.0E100` and `1e100` are different here, and so are `{"a":1,"b":2}` and `{"b":2,"a":1}`. Blanks and the escapes of
//! strings are not kept.

use std::fmt;

use crate::{Failure, Result};

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as it is spelled.
    Number(String),
    /// A string without its escapes.
    String(String),
    /// An array.
    Array(Vec<Self>),
    /// An object; members in order.
    Object(Vec<(String, Self)>),
}

/// Where two values differ first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The way there, such as `value.after.id`.
    pub path: String,
    /// What the left side has there.
    pub left: String,
    /// What the right side has there.
    pub right: String,
}

impl Json {
    /// Parses one value; nothing but blanks may follow.
    ///
    /// # Errors
    ///
    /// What is wrong, with its byte offset.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let value = parser.value()?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.wrong("end of text"));
        }
        Ok(value)
    }

    /// A string value.
    pub fn string(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// The member of an object; none for anything else.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// As [`get`](Self::get), to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self {
            Self::Object(members) => {
                members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// The text of a string member.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::as_text)
    }

    /// The text of a string.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// A number that fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            Self::Null | Self::Bool(_) | Self::String(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// The elements of an array; empty for anything else.
    #[must_use]
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Object(_) => &[],
        }
    }

    /// The members of an object; empty for anything else.
    #[must_use]
    pub fn members(&self) -> &[(String, Self)] {
        match self {
            Self::Object(members) => members,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => &[],
        }
    }

    /// Replaces a member that is there.
    pub fn replace(&mut self, name: &str, value: Self) {
        if let Some(slot) = self.get_mut(name) {
            *slot = value;
        }
    }

    /// The value at a path as [`Difference`] spells it, to change it.
    pub fn at_path_mut(&mut self, path: &str) -> Option<&mut Self> {
        let mut value = self;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            value = match value {
                Self::Array(elements) => elements.get_mut(step.parse::<usize>().ok()?)?,
                Self::Object(members) => {
                    members.iter_mut().find(|(name, _)| name == step).map(|(_, value)| value)?
                }
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => return None,
            };
        }
        Some(value)
    }

    /// Makes the place of a [`Difference`] equal to `other`: its value, or the names of its members. False when that
    /// cannot be done, because the members are of another number.
    pub fn take_over(&mut self, other: &Self, path: &str) -> bool {
        let Some(parent) = path.strip_suffix("(members)") else {
            let value = other.at_path(path).cloned();
            return match (self.at_path_mut(path), value) {
                (Some(slot), Some(value)) => {
                    *slot = value;
                    true
                }
                _ => false,
            };
        };
        let parent = parent.trim_end_matches('.');
        match (self.at_path_mut(parent), other.at_path(parent)) {
            (Some(Self::Object(mine)), Some(Self::Object(theirs)))
                if mine.len() == theirs.len() =>
            {
                for (index, (name, _)) in mine.iter_mut().enumerate() {
                    if let Some((other, _)) = theirs.get(index) {
                        name.clone_from(other);
                    }
                }
                true
            }
            _ => false,
        }
    }

    /// The value at a path as [`Difference`] spells it.
    #[must_use]
    pub fn at_path(&self, path: &str) -> Option<&Self> {
        path.split('.').filter(|step| !step.is_empty()).try_fold(self, |value, step| match value {
            Self::Array(elements) => elements.get(step.parse::<usize>().ok()?),
            Self::Object(_) => value.get(step),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
        })
    }

    /// The first place where `self` and `other` differ, in reading order.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let mut path = Vec::new();
        let (left, right) = differ(self, other, &mut path)?;
        Some(Difference { path: path.join("."), left, right })
    }
}

fn differ(left: &Json, right: &Json, path: &mut Vec<String>) -> Option<(String, String)> {
    match (left, right) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            for (index, a) in a.iter().enumerate() {
                path.push(index.to_string());
                let found = b.get(index).and_then(|b| differ(a, b, path));
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
            None
        }
        (Json::Object(a), Json::Object(b)) => {
            let names = |members: &[(String, Json)]| {
                members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
            };
            if names(a) != names(b) {
                path.push("(members)".to_owned());
                return Some((names(a).join(","), names(b).join(",")));
            }
            for (index, (name, a)) in a.iter().enumerate() {
                path.push(name.clone());
                let found = b.get(index).and_then(|(_, b)| differ(a, b, path));
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
            None
        }
        (a, b) => (a != b).then(|| (a.to_string(), b.to_string())),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}:\n  left:  {}\n  right: {}", self.path, self.left, self.right)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => quoted(text, f),
            Self::Array(elements) => {
                f.write_str("[")?;
                for (index, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if index == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Self::Object(members) => {
                f.write_str("{")?;
                for (index, (name, value)) in members.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    quoted(name, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        self.at +=
            self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn wrong(&self, expected: &str) -> Failure {
        let near: String = self.rest().chars().take(30).collect();
        Failure::new(format!("JSON: expected {expected} at byte {}, found {near:?}", self.at))
    }

    /// Steps over `token` if it is next.
    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn need(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.wrong(token)) }
    }

    fn value(&mut self) -> Result<Json> {
        self.depth += 1;
        if self.depth > 200 {
            return Err(self.wrong("less nesting"));
        }
        self.blanks();
        let value = match self.rest().chars().next() {
            Some('{') => self.object()?,
            Some('[') => self.array()?,
            Some('"') => Json::String(self.string()?),
            Some('-' | '0'..='9') => {
                let rest = self.rest();
                let end = rest
                    .find(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'))
                    .unwrap_or(rest.len());
                let number = rest.get(..end).unwrap_or_default().to_owned();
                self.at += end;
                Json::Number(number)
            }
            _ if self.take("null") => Json::Null,
            _ if self.take("true") => Json::Bool(true),
            _ if self.take("false") => Json::Bool(false),
            _ => return Err(self.wrong("a value")),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Json> {
        self.need("{")?;
        let mut members = Vec::new();
        if self.take("}") {
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            let name = self.string()?;
            self.need(":")?;
            members.push((name, self.value()?));
            if self.take("}") {
                return Ok(Json::Object(members));
            }
            self.need(",")?;
        }
    }

    fn array(&mut self) -> Result<Json> {
        self.need("[")?;
        let mut elements = Vec::new();
        if self.take("]") {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value()?);
            if self.take("]") {
                return Ok(Json::Array(elements));
            }
            self.need(",")?;
        }
    }

    fn string(&mut self) -> Result<String> {
        let rest = self.rest();
        if !rest.starts_with('"') {
            return Err(self.wrong("a string"));
        }
        let mut escaped = false;
        let end = rest.bytes().enumerate().skip(1).find(|&(_, byte)| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some(token) = end.and_then(|(end, _)| rest.get(..=end)) else {
            return Err(self.wrong("the end of a string"));
        };
        // Java can write half a surrogate pair, which no Rust string holds; such a token is kept as it is spelled.
        let text = serde_json::from_str(token).unwrap_or_else(|_| token.to_owned());
        self.at += token.len();
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_member_order_are_kept() {
        let text = r#"{"b":1.0E100,"a":[-0.0,1e-7,"ä\n\"\\"],"c":{},"d":[],"e":null,"f":true}"#;
        assert_eq!(Json::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn every_prefix_of_an_object_is_an_error() {
        let text = r#"{"a":[1,{"b":"x\"y"}],"c":false}"#;
        for end in 0..text.len() {
            assert!(Json::parse(&text[..end]).is_err(), "{}", &text[..end]);
        }
        assert!(Json::parse("1 2").is_err());
    }

    #[test]
    fn the_first_difference_names_its_path() {
        let left = Json::parse(r#"{"after":{"id":1,"v":[1,2]},"op":"c"}"#).unwrap();
        for (right, path) in [
            (r#"{"after":{"id":1,"v":[1,3]},"op":"u"}"#, "after.v.1"),
            (r#"{"after":{"v":[1,2],"id":1},"op":"c"}"#, "after.(members)"),
            (r#"{"after":{"id":1.0,"v":[1,2]},"op":"c"}"#, "after.id"),
            (r#"{"after":{"id":1,"v":[1]},"op":"c"}"#, "after.v"),
        ] {
            let right = Json::parse(right).unwrap();
            assert_eq!(left.difference(&right).unwrap().path, path);
        }
        assert_eq!(left.difference(&left.clone()), None);
    }
}
