//! Why a statement could not be applied.

use std::fmt;

use crate::schema::TableId;

/// A statement that could not be understood or does not fit the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DdlError {
    /// What is wrong.
    pub kind: DdlErrorKind,
    /// Byte offset in the statement's text, zero-based.
    pub offset: usize,
    /// The table that the statement creates or alters, as far as it was read. An error about a table that nobody
    /// captures need not stop anything.
    pub table: Option<TableId>,
}

impl DdlError {
    pub(crate) fn at(offset: usize, kind: DdlErrorKind) -> Self {
        Self { kind, offset, table: None }
    }

    /// Says which table it is about.
    pub(crate) fn about(self, table: &TableId) -> Self {
        Self { table: Some(table.clone()), ..self }
    }
}

impl fmt::Display for DdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the statement", self.kind, self.offset)?;
        match &self.table {
            Some(table) => write!(f, " on table {table}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a statement. Literals are never part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DdlErrorKind {
    /// The text is longer than what is parsed.
    TooLong {
        /// Its length, bytes.
        bytes: usize,
        /// The longest that is parsed, bytes.
        limit: usize,
    },
    /// The statement has more of something than any that a server accepts.
    TooMany {
        /// Of what: tokens, clauses, columns.
        what: &'static str,
        /// The most that are parsed.
        limit: usize,
    },
    /// A string, a quoted name or a comment has no end.
    Unterminated {
        /// Which of them.
        what: &'static str,
    },
    /// Not a token of SQL.
    Token,
    /// Something else stands where it is needed.
    Expected {
        /// What is needed.
        what: &'static str,
        /// The word found, or which kind of token; literals are only named.
        found: String,
    },
    /// A table is named without its database, and the session has none.
    NoDatabase {
        /// The table.
        table: String,
    },
    /// The table that the new one is to be like is not in the model.
    UnknownTable {
        /// The table that is not known.
        table: TableId,
    },
    /// A column that a clause names is not in the table.
    UnknownColumn {
        /// The column.
        column: String,
        /// The clause.
        clause: &'static str,
    },
    /// A column that a clause makes is in the table already.
    DuplicateColumn {
        /// The column.
        column: String,
    },
    /// A table that is to be created has no column, as with `CREATE TABLE … SELECT` in statement format.
    NoColumns,
}

impl fmt::Display for DdlErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, limit } => {
                write!(f, "statement of {bytes} bytes, the most is {limit}")
            }
            Self::TooMany { what, limit } => write!(f, "statement of more than {limit} {what}"),
            Self::Unterminated { what } => write!(f, "{what} without end"),
            Self::Token => f.write_str("not a token of sql"),
            Self::Expected { what, found } => write!(f, "expected {what}, found {found}"),
            Self::NoDatabase { table } => write!(f, "no database for table {table}"),
            Self::UnknownTable { table } => write!(f, "table {table} to be like is not known"),
            Self::UnknownColumn { column, clause } => {
                write!(f, "{clause} of unknown column {column}")
            }
            Self::DuplicateColumn { column } => write!(f, "second column {column}"),
            Self::NoColumns => {
                f.write_str("create without a column list (statement-based logging?)")
            }
        }
    }
}
