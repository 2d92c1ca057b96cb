//! Tokens to a [`Statement`].
//!
//! One cursor goes forward over the tokens; nothing recurses, parentheses are skipped by counting. Every file adds the
//! methods for one part of the syntax: `names`, `types`, `column`, `table` (CREATE TABLE), `alter`, `other`.

mod alter;
mod column;
mod names;
mod other;
mod table;
#[cfg(test)]
mod tests;
mod types;

pub(super) use column::CURRENT_TIMESTAMP;

use super::ast::{Action, Statement};
use super::filter::{StatementClass, classify};
use super::lexer::{Token, TokenKind, lex};
use super::{DdlContext, DdlError, DdlErrorKind};
use crate::schema::TableId;

/// Most clauses or elements of a statement. A table has at most 4096 columns and 8192 partitions.
const MAX_CLAUSES: usize = 1 << 16;

/// Parses one statement.
///
/// # Errors
///
/// [`DdlErrorKind::TooLong`] and [`DdlErrorKind::TooMany`] for texts beyond what is parsed,
/// [`DdlErrorKind::Unterminated`] and [`DdlErrorKind::Token`] for text that is not SQL, [`DdlErrorKind::Expected`] and
/// [`DdlErrorKind::NoColumns`] where a construct that matters can't be understood.
pub fn parse(sql: &str, context: &DdlContext) -> Result<Statement, DdlError> {
    match classify(sql) {
        StatementClass::Ddl | StatementClass::Truncate => {}
        StatementClass::Begin
        | StatementClass::Commit
        | StatementClass::Rollback
        | StatementClass::Xa
        | StatementClass::Savepoint
        | StatementClass::Dml
        | StatementClass::Filtered => {
            return Ok(Statement {
                ddl: String::new(),
                raw: sql.trim().to_owned(),
                action: Action::Ignored,
            });
        }
    }
    let mut tokens = lex(sql, context)?;
    while tokens.last().is_some_and(|token| token.kind == TokenKind::Punct(';')) {
        tokens.pop();
    }
    let mut parser = Parser { sql, tokens: &tokens, at: 0, context, subject: None };
    parser.skip_set_statement();
    let start = parser.offset();
    let end = tokens.last().map_or(start, |token| token.end());
    let action =
        parser.statement().map_err(|error| DdlError { table: parser.subject.take(), ..error })?;
    Ok(Statement {
        ddl: sql.get(start..end).unwrap_or_default().to_owned(),
        raw: sql
            .get(start..)
            .unwrap_or_default()
            .trim_end_matches(|c: char| c == ';' || c.is_whitespace())
            .to_owned(),
        action,
    })
}

/// A cursor over the tokens of a statement.
struct Parser<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    at: usize,
    context: &'a DdlContext,
    /// The table that is created or altered, once it was read.
    subject: Option<TableId>,
}

impl<'a> Parser<'a> {
    /// MariaDB: `SET STATEMENT variable = value, … FOR statement`.
    fn skip_set_statement(&mut self) {
        if !(self.is_word("SET") && self.is_word_at(1, "STATEMENT")) {
            return;
        }
        if let Some(at) =
            (self.at..self.tokens.len()).find(|&at| self.is_word_at(at - self.at, "FOR"))
        {
            self.at = at + 1;
        }
    }

    // Looking.

    fn peek(&self) -> Option<Token> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<Token> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn text_at(&self, ahead: usize) -> &'a str {
        self.peek_at(ahead).map_or("", |token| token.text(self.sql))
    }

    /// Whether the next token is that word, without quotes.
    fn is_word(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.kind == TokenKind::Word)
            && self.text_at(ahead).eq_ignore_ascii_case(word)
    }

    fn is_any_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word(word))
    }

    fn is_any_word_at(&self, ahead: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word_at(ahead, word))
    }

    fn is_punct(&self, mark: char) -> bool {
        self.is_punct_at(0, mark)
    }

    fn is_punct_at(&self, ahead: usize, mark: char) -> bool {
        self.peek_at(ahead).is_some_and(|token| token.kind == TokenKind::Punct(mark))
    }

    fn is_kind(&self, kind: TokenKind) -> bool {
        self.peek().is_some_and(|token| token.kind == kind)
    }

    /// Whether a list element or the statement ends here.
    fn at_element_end(&self) -> bool {
        match self.peek() {
            None => true,
            Some(token) => matches!(token.kind, TokenKind::Punct(',' | ')' | ';')),
        }
    }

    /// Byte offset of the next token, or of the end.
    fn offset(&self) -> usize {
        self.peek().map_or(self.sql.len(), |token| token.start())
    }

    /// The next word in upper case, `""` when the next token is not a word without quotes.
    fn upper_word(&self) -> String {
        if self.is_kind(TokenKind::Word) {
            self.text_at(0).to_ascii_uppercase()
        } else {
            String::new()
        }
    }

    // Taking.

    fn advance(&mut self) {
        if self.at < self.tokens.len() {
            self.at += 1;
        }
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn eat_any_word(&mut self, words: &[&str]) -> bool {
        let found = self.is_any_word(words);
        if found {
            self.advance();
        }
        found
    }

    /// Takes all of the words or none.
    fn eat_words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(ahead, word)| self.is_word_at(ahead, word));
        if found {
            self.at += words.len();
        }
        found
    }

    fn eat_punct(&mut self, mark: char) -> bool {
        let found = self.is_punct(mark);
        if found {
            self.advance();
        }
        found
    }

    fn expect_word(&mut self, word: &'static str) -> Result<(), DdlError> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn expect_punct(&mut self, mark: char, what: &'static str) -> Result<(), DdlError> {
        if self.eat_punct(mark) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn eat_if_exists(&mut self) -> bool {
        self.eat_words(&["IF", "EXISTS"])
    }

    fn eat_if_not_exists(&mut self) -> bool {
        self.eat_words(&["IF", "NOT", "EXISTS"])
    }

    // Stepping over what does not matter.

    /// Steps over one token, or over a whole group in parentheses.
    fn skip_item(&mut self) -> Result<(), DdlError> {
        if self.is_punct('(') {
            self.skip_group()
        } else {
            self.advance();
            Ok(())
        }
    }

    /// Steps over a group in parentheses.
    fn skip_group(&mut self) -> Result<(), DdlError> {
        let offset = self.offset();
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            self.advance();
            match token.kind {
                TokenKind::Punct('(') => depth += 1,
                TokenKind::Punct(')') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                TokenKind::Word
                | TokenKind::Quoted
                | TokenKind::String
                | TokenKind::National
                | TokenKind::Number
                | TokenKind::Hex
                | TokenKind::Bits
                | TokenKind::Punct(_)
                | TokenKind::Other => {}
            }
        }
        Err(DdlError::at(offset, DdlErrorKind::Unterminated { what: "parenthesis" }))
    }

    /// Steps over everything up to a comma, a closing parenthesis or the end.
    fn skip_element(&mut self) -> Result<(), DdlError> {
        while !self.at_element_end() {
            self.skip_item()?;
        }
        Ok(())
    }

    /// Refuses lists that are longer than any that a server accepts.
    fn check_count(&self, count: usize) -> Result<(), DdlError> {
        if count > MAX_CLAUSES {
            let kind = DdlErrorKind::TooMany { what: "clauses", limit: MAX_CLAUSES };
            return Err(DdlError::at(self.offset(), kind));
        }
        Ok(())
    }

    fn expected(&self, what: &'static str) -> DdlError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(token) => match token.kind {
                TokenKind::Word | TokenKind::Quoted => {
                    format!("the word {}", self.text_at(0).chars().take(64).collect::<String>())
                }
                TokenKind::String | TokenKind::National => "a string".to_owned(),
                TokenKind::Number | TokenKind::Hex | TokenKind::Bits => "a number".to_owned(),
                TokenKind::Punct(mark) => format!("`{mark}`"),
                TokenKind::Other => "an operator".to_owned(),
            },
        };
        DdlError::at(self.offset(), DdlErrorKind::Expected { what, found })
    }
}
