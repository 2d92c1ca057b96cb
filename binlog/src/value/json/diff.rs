//! The diffs of partial updates, and what they make of a document.

use std::borrow::Cow;

use super::layout::{self, Json};
use super::print::{MAX_DEPTH, Printer};
use super::{JsonBinary, JsonError, JsonStyle};
use crate::wire::{Cursor, DecodeError};

/// The changes that a partial update makes to a JSON column, in the server's form.
///
/// ```text
/// per diff    operation u8 (0 replace, 1 insert, 2 remove)
///             path lenenc string
///             value lenenc string, a binary document (not for remove)
/// ```
///
/// Source: MySQL 8.4, `Json_diff_vector::write_binary` in `sql/json_diff.cc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDiffs<'a>(pub &'a [u8]);

impl<'a> JsonDiffs<'a> {
    /// Takes the diffs of one column: a length of 4 bytes, then the diffs.
    pub(crate) fn read(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let len = cursor.u32_le("json diffs")?;
        match usize::try_from(len) {
            Ok(len) => cursor.take(len, "json diffs").map(Self),
            Err(_) => Err(DecodeError::Invalid { field: "json diffs", value: len.into() }),
        }
    }

    /// Whether the column did not change.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the text of the document that these changes make of `before`, the column's value in the before image.
    /// On an error `out` is as it was.
    ///
    /// # Errors
    ///
    /// Any [`JsonError`] when `before` or the diffs are malformed, or when a path does not lead to where the diff says:
    /// then `before` is not the document that the server changed.
    pub fn write_text(
        &self,
        before: JsonBinary<'_>,
        style: JsonStyle,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonError> {
        if self.is_empty() {
            return before.write_text(style, out);
        }
        let size = before.0.len() + self.0.len();
        let mut document = Document { root: Node::of(before)?, budget: size };
        let mut cursor = Cursor::new(self.0);
        while !cursor.is_empty() {
            document.apply(Diff::read(&mut cursor)?)?;
        }
        let start = out.len();
        let result = document.root.print(&mut Printer::new(style, size, out));
        if result.is_err() {
            out.truncate(start);
        }
        result
    }
}

/// One change.
struct Diff<'a> {
    operation: Operation,
    path: &'a [u8],
    /// The new value; null for a removal.
    value: Json<'a>,
}

#[derive(Clone, Copy)]
enum Operation {
    Replace,
    Insert,
    Remove,
}

impl<'a> Diff<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let operation = match cursor.u8("json diff operation")? {
            0 => Operation::Replace,
            1 => Operation::Insert,
            2 => Operation::Remove,
            other => {
                let value = other.into();
                return Err(DecodeError::Invalid { field: "json diff operation", value });
            }
        };
        let path = cursor.lenenc_bytes("json diff path")?;
        let value = match operation {
            Operation::Remove => Json::Null,
            Operation::Replace | Operation::Insert => {
                layout::root(cursor.lenenc_bytes("json diff value")?)?
            }
        };
        Ok(Self { operation, path, value })
    }
}

/// A document being changed.
struct Document<'a> {
    root: Node<'a>,
    /// Bytes of containers that may still be taken apart: no more than there are, unless they overlap.
    budget: usize,
}

impl<'a> Document<'a> {
    fn apply(&mut self, diff: Diff<'a>) -> Result<(), DecodeError> {
        let mut path = Path::new(diff.path)?;
        let mut node = &mut self.root;
        let Some(mut leg) = path.next()? else {
            return match diff.operation {
                Operation::Replace => {
                    *node = Node::Value(diff.value);
                    Ok(())
                }
                Operation::Insert | Operation::Remove => Err(path.leads_nowhere()),
            };
        };
        node.open(&mut self.budget)?;
        while let Some(next) = path.next()? {
            node = node.child(&leg).ok_or_else(|| path.leads_nowhere())?;
            node.open(&mut self.budget)?;
            leg = next;
        }
        let done = match diff.operation {
            Operation::Replace => {
                node.child(&leg).map(|child| *child = Node::Value(diff.value)).is_some()
            }
            Operation::Insert => node.insert(leg, diff.value),
            Operation::Remove => node.remove(&leg),
        };
        if done { Ok(()) } else { Err(path.leads_nowhere()) }
    }
}

/// A document that is taken apart where a diff leads, and only there.
enum Node<'a> {
    Value(Json<'a>),
    Object(Vec<(Cow<'a, [u8]>, Self)>),
    Array(Vec<Self>),
}

impl<'a> Node<'a> {
    fn of(document: JsonBinary<'a>) -> Result<Self, DecodeError> {
        match document.0 {
            [] => Ok(Self::Value(Json::Null)),
            bytes => layout::root(bytes).map(Self::Value),
        }
    }

    /// Takes a container apart, one level deep.
    fn open(&mut self, budget: &mut usize) -> Result<(), DecodeError> {
        let Self::Value(Json::Container(container)) = *self else { return Ok(()) };
        *budget = budget
            .checked_sub(container.header_len())
            .ok_or(DecodeError::Unsupported { what: "json with parts that overlap" })?;
        let mut entries = container.entries();
        let indexes = 0..container.count();
        *self = if container.is_object {
            let member = |_| Ok((entries.key()?.into(), Self::Value(entries.value()?)));
            Self::Object(indexes.map(member).collect::<Result<_, DecodeError>>()?)
        } else {
            let element = |_| entries.value().map(Self::Value);
            Self::Array(indexes.map(element).collect::<Result<_, _>>()?)
        };
        Ok(())
    }

    /// The member or element at a leg of a container that is open.
    fn child(&mut self, leg: &Leg) -> Option<&mut Self> {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                members.iter_mut().find(|(key, _)| **key == **name).map(|(_, value)| value)
            }
            (Self::Array(elements), Leg::Cell(cell)) => {
                let index = cell.within(elements.len())?;
                elements.get_mut(index)
            }
            _ => None,
        }
    }

    /// Adds a member where its key sorts, or an element before the one with the index, at most at the end. False for
    /// a member that is there already, and for a leg of the wrong kind.
    fn insert(&mut self, leg: Leg, value: Json<'a>) -> bool {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                let order = |(key, _): &(Cow<'a, [u8]>, Self)| {
                    key.len().cmp(&name.len()).then_with(|| (**key).cmp(&name))
                };
                let place = members.binary_search_by(order);
                if let Err(place) = place {
                    members.insert(place, (name.into(), Self::Value(value)));
                }
                place.is_err()
            }
            (Self::Array(elements), Leg::Cell(cell)) => {
                elements.insert(cell.nearest(elements.len()), Self::Value(value));
                true
            }
            _ => false,
        }
    }

    /// Removes a member or element; false when it is not there.
    fn remove(&mut self, leg: &Leg) -> bool {
        match (self, leg) {
            (Self::Object(members), Leg::Member(name)) => {
                let place = members.iter().position(|(key, _)| **key == **name);
                place.map(|place| members.remove(place)).is_some()
            }
            (Self::Array(elements), Leg::Cell(cell)) => {
                cell.within(elements.len()).map(|index| elements.remove(index)).is_some()
            }
            _ => false,
        }
    }

    fn print(&self, printer: &mut Printer<'_>) -> Result<(), DecodeError> {
        match self {
            Self::Value(value) => printer.value(*value)?,
            Self::Object(members) => {
                printer.open(true)?;
                for (index, (key, value)) in members.iter().enumerate() {
                    printer.key(index, key)?;
                    value.print(printer)?;
                }
                printer.close(true);
            }
            Self::Array(elements) => {
                printer.open(false)?;
                for (index, value) in elements.iter().enumerate() {
                    printer.element(index);
                    value.print(printer)?;
                }
                printer.close(false);
            }
        }
        Ok(())
    }
}

/// One step of a path.
enum Leg {
    Member(Vec<u8>),
    Cell(Cell),
}

/// A place in an array.
#[derive(Clone, Copy)]
enum Cell {
    /// Zero-based from the start: `[2]`.
    FromStart(usize),
    /// Zero-based from the end: `[last]` is 0, `[last-1]` is 1.
    FromEnd(usize),
}

impl Cell {
    fn parse(text: &[u8]) -> Option<Self> {
        let number = |digits| std::str::from_utf8(digits).ok()?.parse().ok();
        match text.strip_prefix(b"last") {
            None => number(text).map(Self::FromStart),
            Some([]) => Some(Self::FromEnd(0)),
            Some(back) => number(back.strip_prefix(b"-")?).map(Self::FromEnd),
        }
    }

    /// The index in an array of `len` elements; `None` outside.
    fn within(self, len: usize) -> Option<usize> {
        match self {
            Self::FromStart(index) => Some(index).filter(|index| *index < len),
            Self::FromEnd(back) => len.checked_sub(1)?.checked_sub(back),
        }
    }

    /// The index where an element is inserted: outside means at the end that is nearer.
    fn nearest(self, len: usize) -> usize {
        match self {
            Self::FromStart(index) => index.min(len),
            Self::FromEnd(_) => self.within(len).unwrap_or(0),
        }
    }
}

/// The path of a diff: `$`, then `.name`, `."quoted name"`, `[index]` and `[last-index]` (MySQL,
/// `Json_path::to_string`).
struct Path<'a> {
    text: &'a [u8],
    rest: &'a [u8],
    legs: u32,
}

impl<'a> Path<'a> {
    fn new(text: &'a [u8]) -> Result<Self, DecodeError> {
        match text.strip_prefix(b"$") {
            Some(rest) => Ok(Self { text, rest, legs: 0 }),
            None => Err(DecodeError::Invalid { field: "json path at byte", value: 0 }),
        }
    }

    fn next(&mut self) -> Result<Option<Leg>, DecodeError> {
        if !self.rest.is_empty() {
            self.legs += 1;
            if self.legs > MAX_DEPTH {
                return Err(self.malformed());
            }
        }
        let (leg, rest) = match self.rest {
            [] => return Ok(None),
            [b'.', b'"', quoted @ ..] => {
                let end = quoted_end(quoted).ok_or_else(|| self.malformed())?;
                let (name, rest) = quoted.split_at_checked(end).unwrap_or_default();
                let name = unescape(name).ok_or_else(|| self.malformed())?;
                (Leg::Member(name), rest.get(1..).unwrap_or_default())
            }
            [b'.', name @ ..] => {
                let end = name.iter().position(|byte| matches!(byte, b'.' | b'['));
                let (name, rest) =
                    name.split_at_checked(end.unwrap_or(name.len())).unwrap_or_default();
                (Leg::Member(name.to_vec()), rest)
            }
            [b'[', index @ ..] => {
                let end = index.iter().position(|byte| *byte == b']');
                let end = end.ok_or_else(|| self.malformed())?;
                let (digits, rest) = index.split_at_checked(end).unwrap_or_default();
                let cell = Cell::parse(digits).ok_or_else(|| self.malformed())?;
                (Leg::Cell(cell), rest.get(1..).unwrap_or_default())
            }
            _ => return Err(self.malformed()),
        };
        self.rest = rest;
        Ok(Some(leg))
    }

    /// The error for a path that does not parse; the value is the byte where.
    fn malformed(&self) -> DecodeError {
        let value = (self.text.len() - self.rest.len()) as u64;
        DecodeError::Invalid { field: "json path at byte", value }
    }

    /// The error for a path that the document does not have.
    const fn leads_nowhere(&self) -> DecodeError {
        DecodeError::Unsupported { what: "a json diff whose path is not in the before image" }
    }
}

/// Where the closing quote of a quoted name is.
fn quoted_end(quoted: &[u8]) -> Option<usize> {
    let mut escaped = false;
    quoted.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

/// Undoes the escapes of a quoted name.
fn unescape(name: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(name).ok()?;
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        out.push(match chars.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            // The server escapes control characters alone this way, so there are no surrogate pairs.
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            same => same,
        });
    }
    Some(out.into_bytes())
}
