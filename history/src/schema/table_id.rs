//! The full name of a table and its text forms.

use std::fmt;
use std::str::FromStr;

/// The full name of a table. Case is kept; [`Tables`](super::Tables) decides whether it matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId {
    /// Database.
    pub database: String,
    /// Table.
    pub table: String,
}

impl TableId {
    /// Names `table` in `database`.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Self {
        Self { database: database.into(), table: table.into() }
    }

    /// The form of records and history files: `"db"."t"`, a double quote inside a part doubled.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote(&self.database, '"'), quote(&self.table, '"'))
    }

    /// The form of statements: `` `db`.`t` ``, a backtick inside a part doubled.
    pub fn backticked(&self) -> String {
        format!("{}.{}", quote(&self.database, '`'), quote(&self.table, '`'))
    }
}

/// `database.table`, as filters and messages use it.
impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// Reads the form of [`TableId::quoted`]; backticks and parts without quotes are accepted too.
impl FromStr for TableId {
    type Err = ParseTableIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = Vec::with_capacity(2);
        let mut rest = text;
        loop {
            let (part, tail) = split_part(rest)?;
            parts.push(part);
            match tail.strip_prefix('.') {
                Some(tail) => rest = tail,
                None if tail.is_empty() => break,
                None => return Err(ParseTableIdError::Garbage { offset: text.len() - tail.len() }),
            }
        }
        let count = parts.len();
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(database), Some(table), None) => Ok(Self { database, table }),
            _ => Err(ParseTableIdError::Parts { count }),
        }
    }
}

/// A text that is not a table's full name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseTableIdError {
    /// A quote is not closed.
    #[error("table id: a quote is not closed")]
    Unterminated,
    /// Something other than a dot follows a quoted part.
    #[error("table id: a dot is expected at byte {offset}")]
    Garbage {
        /// Byte offset in the text, zero-based.
        offset: usize,
    },
    /// Not two parts.
    #[error("table id: two parts are expected, found {count}")]
    Parts {
        /// Number of parts found.
        count: usize,
    },
}

fn quote(part: &str, mark: char) -> String {
    let mut text = String::with_capacity(part.len() + 2);
    text.push(mark);
    for c in part.chars() {
        text.push(c);
        if c == mark {
            text.push(mark);
        }
    }
    text.push(mark);
    text
}

/// Splits the first part off; what is left begins behind it.
fn split_part(text: &str) -> Result<(String, &str), ParseTableIdError> {
    let Some(mark) = text.chars().next().filter(|c| matches!(c, '"' | '`')) else {
        let end = text.find('.').unwrap_or(text.len());
        let (part, rest) = text.split_at(end);
        return Ok((part.to_owned(), rest));
    };
    let mut part = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != mark {
            part.push(c);
        } else if chars.next_if(|&(_, next)| next == mark).is_some() {
            part.push(mark);
        } else {
            return Ok((part, text.get(at + mark.len_utf8()..).unwrap_or_default()));
        }
    }
    Err(ParseTableIdError::Unterminated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_quoted_form_is_that_of_records() {
        assert_eq!(TableId::new("gold", "q`t").quoted(), r#""gold"."q`t""#);
        assert_eq!(TableId::new("a\"b", "c.d").quoted(), r#""a""b"."c.d""#);
        assert_eq!(TableId::new("gold", "q`t").backticked(), "`gold`.`q``t`");
    }

    #[test]
    fn other_quotes_are_read_too() {
        for text in ["a.b", "`a`.`b`", "\"a\".b"] {
            assert_eq!(text.parse(), Ok(TableId::new("a", "b")), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_full_name_is_an_error() {
        let cases = [
            ("\"a\"", ParseTableIdError::Parts { count: 1 }),
            ("a.b.c", ParseTableIdError::Parts { count: 3 }),
            ("\"a\".\"b", ParseTableIdError::Unterminated),
            ("\"a\"x.\"b\"", ParseTableIdError::Garbage { offset: 3 }),
        ];
        for (text, error) in cases {
            assert_eq!(text.parse::<TableId>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_quoted_form_reads_back(database in ".{0,12}", table in ".{0,12}") {
            let id = TableId::new(database, table);
            prop_assert_eq!(id.quoted().parse::<TableId>(), Ok(id.clone()));
            prop_assert_eq!(id.backticked().parse::<TableId>(), Ok(id));
        }
    }
}
