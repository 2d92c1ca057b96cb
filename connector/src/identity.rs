//! The identity of a record: which step of which log it came from.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use holdfast_history::TableId;

/// Names one record of one log. Equal over restarts and batch sizes, distinct for every record, those of compressed
/// transactions included.
///
/// A log written with and without transaction compression is two logs: inside each, identities are distinct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    /// The log: `<server uuid>/<epoch>`.
    pub lineage: Arc<str>,
    /// Database and table; empty names for records of no table.
    pub table: Arc<TableId>,
    /// Binlog file of the event. For a snapshot row, the file of the snapshot's position.
    pub file: Arc<str>,
    /// Position of the event in bytes; of the payload event for a compressed transaction, of the snapshot for its rows.
    pub pos: u64,
    /// Rows events of the unit up to and including this one, from 1. 0 for snapshot rows and for records that are no
    /// rows.
    pub ordinal: u64,
    /// Zero-based row in the event; for a snapshot row, its number in reading order.
    pub row: u64,
    /// Zero-based record of that row: DELETE 0, tombstone 1, CREATE 2 of a key change.
    pub part: u32,
}

/// The text form, which [`FromStr`] reads back: `1|lineage|database|table|file|pos|ordinal|row|part`, where the leading number is the version of the
/// form and `%` and `|` inside names are written `%25` and `%7C`.
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1|")?;
        for name in [&*self.lineage, &self.table.database, &self.table.table, &self.file] {
            for c in name.chars() {
                match c {
                    '%' => f.write_str("%25")?,
                    '|' => f.write_str("%7C")?,
                    _ => f.write_char(c)?,
                }
            }
            f.write_char('|')?;
        }
        write!(f, "{}|{}|{}|{}", self.pos, self.ordinal, self.row, self.part)
    }
}

/// Why a text is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventIdError {
    /// The form is of another version.
    #[error("it does not begin with 1|, the version of the form")]
    Version,
    /// There are more or fewer parts.
    #[error("it has not nine parts with | between them")]
    Parts,
    /// A part is not what it must be.
    #[error("its {0} is no number")]
    Number(&'static str),
    /// `%` without `25` or `7C`.
    #[error("it has a % that is neither %25 nor %7C")]
    Escape,
}

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, EventIdError> {
        let mut parts = text.split('|');
        if parts.next() != Some("1") {
            return Err(EventIdError::Version);
        }
        let mut next = || parts.next().ok_or(EventIdError::Parts);
        let id = Self {
            lineage: unescaped(next()?)?.into(),
            table: Arc::new(TableId::new(unescaped(next()?)?, unescaped(next()?)?)),
            file: unescaped(next()?)?.into(),
            pos: number(next()?, "position")?,
            ordinal: number(next()?, "ordinal")?,
            row: number(next()?, "row")?,
            part: number(next()?, "part")?,
        };
        if parts.next().is_some() { Err(EventIdError::Parts) } else { Ok(id) }
    }
}

fn number<T: FromStr>(text: &str, name: &'static str) -> Result<T, EventIdError> {
    // A sign is nothing that we write.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(EventIdError::Number(name))
}

fn unescaped(text: &str) -> Result<String, EventIdError> {
    let mut name = String::with_capacity(text.len());
    let mut pieces = text.split('%');
    name.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (c, rest) = match (piece.strip_prefix("25"), piece.strip_prefix("7C")) {
            (Some(rest), _) => ('%', rest),
            (None, Some(rest)) => ('|', rest),
            (None, None) => return Err(EventIdError::Escape),
        };
        name.push(c);
        name.push_str(rest);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_keeps_names_apart() {
        let id = EventId {
            lineage: "3e11fa47/1".into(),
            table: Arc::new(TableId::new("a|b", "c%")),
            file: "mysql-bin.000001".into(),
            pos: 4323,
            ordinal: 5,
            row: 31,
            part: 0,
        };
        let text = "1|3e11fa47/1|a%7Cb|c%25|mysql-bin.000001|4323|5|31|0";
        assert_eq!(id.to_string(), text);
        assert_eq!(text.parse(), Ok(id));
    }

    #[test]
    fn what_is_no_identity_is_refused() {
        for (text, error) in [
            ("2|l/1|a|b|f.1|4|1|0|0", EventIdError::Version),
            ("", EventIdError::Version),
            ("1|l/1|a|b|f.1|4|1|0", EventIdError::Parts),
            ("1|l/1|a|b|f.1|4|1|0|0|0", EventIdError::Parts),
            ("1|l/1|a|b|f.1|+4|1|0|0", EventIdError::Number("position")),
            ("1|l/1|a|b|f.1|4|1|0|4294967296", EventIdError::Number("part")),
            ("1|l/1|a%|b|f.1|4|1|0|0", EventIdError::Escape),
        ] {
            assert_eq!(text.parse::<EventId>(), Err(error), "{text}");
        }
    }
}
