//! What can go wrong with a value, and what is odd about a table.

use std::fmt;

use holdfast_history::schema::ColumnType;

/// Something about a table that its records will not show, or not as its definition says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A column is left out of records.
    #[error("column `{column}` is left out of records: unknown type {type_name}")]
    UnknownType {
        /// Name of the column.
        column: String,
        /// Its type in the definition.
        type_name: String,
    },
    /// A column's text is decoded as UTF-8.
    #[error("text of column `{column}` is decoded as utf-8: unknown character set {charset}")]
    UnknownCharset {
        /// Name of the column.
        column: String,
        /// The character set in the definition.
        charset: String,
    },
    /// A column's default is not used.
    #[error("the default of column `{column}` is not used: it is no {type_name}")]
    UnusableDefault {
        /// Name of the column.
        column: String,
        /// Its type in the definition.
        type_name: String,
    },
}

/// Why a value does not convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertFailure {
    /// The value is of another kind than the column.
    #[error("found a value of kind {found}; the table definition does not fit the data")]
    UnexpectedValue {
        /// The kind found.
        found: &'static str,
    },
    /// The value's bytes are not of its type's form.
    #[error("malformed value")]
    Malformed,
    /// What the column becomes cannot hold the value: a TIME of another day, a year beyond nanoseconds, a huge decimal.
    #[error("value out of range of what the column becomes")]
    OutOfRange,
    /// The date does not exist.
    #[error("invalid date: no such day")]
    InvalidDate,
    /// The index is beyond the labels of the ENUM.
    #[error("index {index} has no label")]
    UnknownLabel {
        /// The index, one-based.
        index: u16,
    },
}

/// A value that does not convert, and its column. It never holds the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertError(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    column: usize,
    name: String,
    column_type: ColumnType,
    becomes: &'static str,
    failure: ConvertFailure,
}

impl ConvertError {
    pub(super) fn new(
        column: usize,
        name: &str,
        column_type: ColumnType,
        becomes: &'static str,
        failure: ConvertFailure,
    ) -> Self {
        Self(Box::new(Details { column, name: name.to_owned(), column_type, becomes, failure }))
    }

    /// Index of the column in its table, zero-based.
    #[must_use]
    pub fn column(&self) -> usize {
        self.0.column
    }

    /// Name of the column.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Type of the column.
    #[must_use]
    pub fn column_type(&self) -> ColumnType {
        self.0.column_type
    }

    /// What is wrong.
    #[must_use]
    pub fn failure(&self) -> ConvertFailure {
        self.0.failure
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { column, name, column_type, becomes, failure } = &*self.0;
        write!(
            f,
            "column {column} `{name}` of type {column_type:?} does not convert to {becomes}: {failure}"
        )
    }
}

impl std::error::Error for ConvertError {}
