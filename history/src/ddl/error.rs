//! Why a statement could not be applied.

use std::fmt;

use crate::schema::TableId;

/// A statement that could not be understood or does not fit the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset} of the statement")]
pub struct DdlError {
    /// What is wrong.
    pub kind: DdlErrorKind,
    /// Byte offset in the statement's text, zero-based.
    pub offset: usize,
    /// The table that the statement creates or alters, as far as it was read. An error about a table that
    /// nobody captures need not stop anything.
    pub table: Option<TableId>,
}

impl DdlError {
    pub(crate) fn at(offset: usize, kind: DdlErrorKind) -> Self {
        let table = match &kind {
            DdlErrorKind::UnknownTable { wanted_by: table, .. }
            | DdlErrorKind::UnknownColumn { table, .. }
            | DdlErrorKind::DuplicateColumn { table, .. }
            | DdlErrorKind::NoColumns { table } => Some(table.clone()),
            DdlErrorKind::TooLong { .. }
            | DdlErrorKind::TooMany { .. }
            | DdlErrorKind::Unterminated { .. }
            | DdlErrorKind::Token
            | DdlErrorKind::Expected { .. }
            | DdlErrorKind::NoDatabase { .. } => None,
        };
        Self { kind, offset, table }
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
    /// The table that another is to be like is not in the model.
    UnknownTable {
        /// The table that is not known.
        table: TableId,
        /// The table that was to be created.
        wanted_by: TableId,
    },
    /// A column that a clause names is not in the table.
    UnknownColumn {
        /// The table.
        table: TableId,
        /// The column.
        column: String,
        /// The clause.
        clause: &'static str,
    },
    /// A column that a clause makes is in the table already.
    DuplicateColumn {
        /// The table.
        table: TableId,
        /// The column.
        column: String,
    },
    /// A table that is to be created has no column, as with `CREATE TABLE … SELECT` in statement format.
    NoColumns {
        /// The table.
        table: TableId,
    },
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
            Self::NoDatabase { table } => write!(f, "table {table} without a database"),
            Self::UnknownTable { table, wanted_by } => {
                write!(f, "table {table}, which {wanted_by} is to be like, is not known")
            }
            Self::UnknownColumn { table, column, clause } => {
                write!(f, "table {table} has no column {column}, named by {clause},")
            }
            Self::DuplicateColumn { table, column } => {
                write!(f, "table {table} already has a column {column},")
            }
            Self::NoColumns { table } => {
                write!(
                    f,
                    "table {table} is created without a column list (statement-based logging?)"
                )
            }
        }
    }
}
