//! Names, strings and character sets.

use super::super::ast::{Charset, Name};
use super::super::lexer::{TokenKind, unescape};
use super::super::{DdlError, charset};
use super::Parser;
use crate::schema::TableId;

impl Parser<'_> {
    /// One part of a name: any word, or a quoted name.
    pub(super) fn identifier(&mut self, what: &'static str) -> Result<String, DdlError> {
        let name = match self.peek() {
            Some(token) if token.kind == TokenKind::Word && !self.text_at(0).starts_with('@') => {
                self.text_at(0).to_owned()
            }
            // No server takes an empty name.
            Some(token) if token.kind == TokenKind::Quoted && self.text_at(0).len() > 2 => {
                unquote_name(self.text_at(0))
            }
            // `1e5` as a name is a number to the tokenizer.
            Some(token)
                if token.kind == TokenKind::Number
                    && self.text_at(0).bytes().any(|b| b.is_ascii_alphabetic()) =>
            {
                self.text_at(0).to_owned()
            }
            _ => return Err(self.expected(what)),
        };
        self.advance();
        Ok(name)
    }

    /// `table`, `database.table` or `.table`.
    pub(super) fn table_name(&mut self) -> Result<Name, DdlError> {
        let offset = self.offset();
        if self.eat_punct('.') {
            return Ok(Name { database: None, table: self.identifier("a table name")?, offset });
        }
        let first = self.identifier("a table name")?;
        if self.eat_punct('.') {
            let table = self.identifier("a table name")?;
            return Ok(Name { database: Some(first), table, offset });
        }
        Ok(Name { database: None, table: first, offset })
    }

    /// The table that the statement creates or alters.
    pub(super) fn subject_name(&mut self) -> Result<Name, DdlError> {
        let name = self.table_name()?;
        let database = name.database.as_ref().or(self.context.database.as_ref());
        self.subject = database.map(|database| TableId::new(database.clone(), name.table.clone()));
        Ok(name)
    }

    /// `column`, `.column`, `table.column` or `database.table.column`; only the column is kept.
    pub(super) fn column_name(&mut self) -> Result<String, DdlError> {
        self.eat_punct('.');
        let mut name = self.identifier("a column name")?;
        while self.is_punct('.') {
            self.advance();
            name = self.identifier("a column name")?;
        }
        Ok(name)
    }

    /// Names of index parts, in parentheses; `None` when a part is not a plain column.
    pub(super) fn key_parts(&mut self) -> Result<Option<Vec<String>>, DdlError> {
        self.expect_punct('(', "`(` and key columns")?;
        let mut names = Vec::new();
        let mut plain = true;
        loop {
            if self.is_punct('(') {
                self.skip_group()?;
                plain = false;
            } else {
                let name = self.column_name()?;
                if self.is_punct('(') {
                    self.skip_group()?;
                }
                // MariaDB: the part is a period, not a column.
                if !self.is_word("WITHOUT") {
                    names.push(name);
                }
            }
            self.skip_element()?;
            if !self.eat_punct(',') {
                break;
            }
        }
        self.expect_punct(')', "`)` after key columns")?;
        Ok(plain.then_some(names))
    }

    /// Steps over everything up to the `(` of the key columns: name, `USING …`, `IF NOT EXISTS`.
    pub(super) fn skip_to_key_parts(&mut self) {
        while !self.at_element_end() && !self.is_punct('(') {
            self.advance();
        }
    }

    /// `[=] name` or `[=] 'name'` of a character set.
    pub(super) fn charset_value(&mut self) -> Result<Charset, DdlError> {
        self.eat_punct('=');
        if self.eat_word("DEFAULT") {
            return Ok(Charset::Database);
        }
        let name = self.name_or_string("a character set")?;
        Ok(Charset::Named(name.to_ascii_lowercase()))
    }

    /// `[=] name` of a collation; the character set that it implies, if it implies one.
    pub(super) fn collation_value(&mut self) -> Result<Option<Charset>, DdlError> {
        self.eat_punct('=');
        let name = self.name_or_string("a collation")?;
        Ok(charset::of_collation(&name).map(Charset::Named))
    }

    /// Takes `CHARACTER SET`, `CHAR SET` or `CHARSET`.
    pub(super) fn eat_charset_words(&mut self) -> bool {
        self.eat_words(&["CHARACTER", "SET"])
            || self.eat_words(&["CHAR", "SET"])
            || self.eat_word("CHARSET")
    }

    fn name_or_string(&mut self, what: &'static str) -> Result<String, DdlError> {
        if self.is_kind(TokenKind::String) { self.string(what) } else { self.identifier(what) }
    }

    /// The value of a string: an introducer is left out, adjacent strings are one.
    pub(super) fn string(&mut self, what: &'static str) -> Result<String, DdlError> {
        if self.is_introducer() {
            self.advance();
        }
        let mut value = match self.peek() {
            Some(token) if token.kind == TokenKind::National => {
                self.string_value(self.text_at(0).get(1..).unwrap_or_default())
            }
            Some(token) if token.kind == TokenKind::String => self.string_value(self.text_at(0)),
            _ => return Err(self.expected(what)),
        };
        self.advance();
        while self.is_kind(TokenKind::String) {
            value.push_str(&self.string_value(self.text_at(0)));
            self.advance();
        }
        Ok(value)
    }

    /// Whether the next token is a character set introducer and a string follows.
    pub(super) fn is_introducer(&self) -> bool {
        self.is_kind(TokenKind::Word)
            && self.text_at(0).starts_with('_')
            && self
                .peek_at(1)
                .is_some_and(|token| matches!(token.kind, TokenKind::String | TokenKind::Hex))
    }

    /// The value of one string token with its quotes.
    pub(super) fn string_value(&self, text: &str) -> String {
        let quote = text.chars().next().unwrap_or('\'');
        let inner = text.strip_prefix(quote).unwrap_or(text);
        let inner = inner.strip_suffix(quote).unwrap_or(inner);
        unescape(inner, quote, !self.context.sql_mode.no_backslash_escapes())
    }
}

/// A quoted name without its quotes.
fn unquote_name(text: &str) -> String {
    let quote = text.chars().next().unwrap_or('`');
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    unescape(inner, quote, false)
}
