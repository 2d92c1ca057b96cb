//! DDL statements applied to the table model.
//!
//! ```text
//! text ──lexer──▶ tokens ──parser──▶ Statement ──apply──▶ Tables, Vec<DdlEvent>
//! ```
//!
//! Pure: the text and a [`DdlContext`] go in, no connection is asked. The parser skips what does not change the model:
//! it knows the shape of statements, clauses and column definitions, and steps over options, expressions, partitions,
//! indexes and bodies by balanced parentheses, so a new option of a new server stops nothing. A statement is an error
//! only when something that matters to the model can't be understood.
//!
//! What the model keeps and what the records say are Debezium's, except where Debezium is known to leave the server's
//! truth: clauses of one ALTER are taken together as the server does, collations imply character sets, and so on.

mod apply;
mod ast;
mod charset;
mod error;
mod event;
mod filter;
mod lexer;
mod parser;

pub use apply::apply;
pub use ast::{Statement, Touched};
pub use error::{DdlError, DdlErrorKind};
pub use event::{DdlEvent, DdlEventKind};
pub use filter::{StatementClass, classify};
pub use parser::parse;

pub(crate) use lexer::unescape;

use crate::schema::Tables;

/// What a statement's meaning depends on beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DdlContext {
    /// The session's database; names without a database are in it.
    pub database: Option<String>,
    /// The session's `sql_mode`, as the query event carries it.
    pub sql_mode: SqlMode,
    /// Whose syntax it is.
    pub flavor: Flavor,
    /// Version of the server that wrote the statement, as version comments count it: 80036 is 8.0.36, 101106 is
    /// 10.11.6. Without it all version comments are taken, which is right for logged statements.
    pub server_version: Option<u32>,
    /// The session's `character_set_server` in lower case, as the query event has it: what a new database gets that names
    /// none. Without it, what [`Tables`] remembers of SET statements.
    pub server_charset: Option<String>,
    /// `explicit_defaults_for_timestamp` was OFF in the session: a TIMESTAMP is NOT NULL unless it is given NULL, and has
    /// a default that nobody wrote. Not known to recovery, which takes ON, the default of both servers.
    pub implicit_timestamp_defaults: bool,
    /// The statement ended with an error on the server that logged it (`error_code` of the query event).
    pub failed: bool,
    /// Keep comments of tables and columns (`include.schema.comments`).
    pub comments: bool,
    /// The definitions are those of a later time, so what a clause asks for may already be so; such a clause changes
    /// nothing instead of being an error. See [`apply`].
    pub definitions_are_ahead: bool,
}

impl DdlContext {
    /// A context with a database and everything else at its default.
    pub fn in_database(database: impl Into<String>) -> Self {
        Self { database: Some(database.into()), ..Self::default() }
    }
}

/// Whose syntax and rules a statement follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavor {
    /// MySQL and Percona Server.
    #[default]
    MySql,
    /// MariaDB.
    MariaDb,
}

/// The bits of `sql_mode` as the query event's status variable 1 (`Q_SQL_MODE_CODE`) holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SqlMode(pub u64);

impl SqlMode {
    /// REAL is FLOAT, not DOUBLE.
    pub const REAL_AS_FLOAT: u64 = 0x1;
    /// `"` quotes names, not strings.
    pub const ANSI_QUOTES: u64 = 0x4;
    /// A backslash in a string is a backslash.
    pub const NO_BACKSLASH_ESCAPES: u64 = 0x10_0000;

    /// Whether REAL is FLOAT.
    pub fn real_as_float(self) -> bool {
        self.0 & Self::REAL_AS_FLOAT != 0
    }

    /// Whether `"` quotes names.
    pub fn ansi_quotes(self) -> bool {
        self.0 & Self::ANSI_QUOTES != 0
    }

    /// Whether a backslash in a string is a backslash.
    pub fn no_backslash_escapes(self) -> bool {
        self.0 & Self::NO_BACKSLASH_ESCAPES != 0
    }
}

/// Parses a statement and applies it.
///
/// Statements that [`classify`] as anything but [`StatementClass::Ddl`] or [`StatementClass::Truncate`] do nothing and
/// give no event.
///
/// # Errors
///
/// As [`parse`] and [`apply`]; `tables` is then as it was.
pub fn apply_statement(
    sql: &str,
    context: &DdlContext,
    tables: &mut Tables,
) -> Result<Vec<DdlEvent>, DdlError> {
    apply(&parse(sql, context)?, context, tables)
}
