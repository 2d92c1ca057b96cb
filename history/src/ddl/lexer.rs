//! SQL text to tokens with byte ranges.
//!
//! The tokens come from `sqlparser`'s tokenizer with a dialect that follows the statement's `sql_mode`. It sees a copy
//! of the text of the same length in which comments are blanked out, so that what it does not know of MySQL comments
//! does not matter and all positions are those of the original:
//!
//! - `# …`, `-- …` and `/* … */` are blanks; hints (`/*+ … */`) are too;
//! - of `/*! … */`, `/*!NNNNN … */`, and on MariaDB `/*M! … */` and `/*M!NNNNNN … */`, only the marks are, unless the
//!   version is above the server's (MySQL 8.4 Reference Manual, "Comments"; MariaDB, "Comment Syntax"). A server
//!   rewrites those that it did not execute before it logs a statement, so without a known version all are taken.
//!
//! `b'01'` and `0b01`, which the tokenizer splits or takes for names, are put together here.

use std::ops::Range;

use sqlparser::dialect::Dialect;
use sqlparser::tokenizer::{Location, Token as SqlToken, TokenWithSpan, Tokenizer};

use super::{DdlContext, DdlError, DdlErrorKind, Flavor, SqlMode};

/// Longest statement that is parsed, in bytes.
pub(crate) const MAX_STATEMENT_BYTES: usize = 16 << 20;
/// Most tokens of a statement that is parsed: beyond any definition that a server accepts (4096 columns, 65535 labels,
/// 8192 partitions).
pub(crate) const MAX_TOKENS: usize = 2 << 20;
/// The tokenizer is fed about as many bytes at once, to bound what it allocates.
const CHUNK_BYTES: usize = 64 << 10;
/// Where so many bytes have no place to cut between tokens, they are cut anywhere: no name or number is as long.
const MAX_CHUNK_BYTES: usize = 1 << 20;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TokenKind {
    /// A keyword or a name without quotes; also `@v`.
    Word,
    /// A name in backticks, or in double quotes under ANSI_QUOTES.
    Quoted,
    /// `'…'`, or `"…"` without ANSI_QUOTES.
    String,
    /// `N'…'`.
    National,
    /// Digits with an optional fraction and exponent, no sign.
    Number,
    /// `x'…'` or `0x…`.
    Hex,
    /// `b'…'` or `0b…`.
    Bits,
    /// One of `( ) , ; . = + -` and `:=`, as its first character.
    Punct(char),
    /// Any other operator or character.
    Other,
}

/// A token and where it is in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    start: u32,
    end: u32,
}

impl Token {
    fn new(kind: TokenKind, range: Range<usize>) -> Option<Self> {
        Some(Self {
            kind,
            start: u32::try_from(range.start).ok()?,
            end: u32::try_from(range.end).ok()?,
        })
    }

    /// Byte offset of the first byte.
    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    /// Byte offset behind the last byte.
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }

    /// The token's text in the statement that it is of.
    pub(crate) fn text(self, sql: &str) -> &str {
        sql.get(self.start()..self.end()).unwrap_or_default()
    }
}

/// Splits a statement into tokens.
///
/// # Errors
///
/// [`DdlErrorKind::TooLong`], [`DdlErrorKind::TooMany`]; [`DdlErrorKind::Unterminated`] for a string, a quoted
/// name or a comment without end; [`DdlErrorKind::Token`] for what the tokenizer refuses.
pub(crate) fn lex(sql: &str, context: &DdlContext) -> Result<Vec<Token>, DdlError> {
    if sql.len() > MAX_STATEMENT_BYTES {
        return Err(DdlError::at(
            0,
            DdlErrorKind::TooLong { bytes: sql.len(), limit: MAX_STATEMENT_BYTES },
        ));
    }
    let (text, splits) = blank_comments(sql, context)?;
    let dialect = MySqlTokens { mode: context.sql_mode };
    let mut tokens = Vec::new();
    let mut start = 0;
    for end in splits.into_iter().chain([text.len()]) {
        let chunk = text.get(start..end).unwrap_or_default();
        lex_chunk(chunk, start, &dialect, &mut tokens)?;
        if tokens.len() > MAX_TOKENS {
            return Err(DdlError::at(
                end,
                DdlErrorKind::TooMany { what: "tokens", limit: MAX_TOKENS },
            ));
        }
        start = end;
    }
    Ok(tokens)
}

fn lex_chunk(
    chunk: &str,
    base: usize,
    dialect: &MySqlTokens,
    tokens: &mut Vec<Token>,
) -> Result<(), DdlError> {
    let mut offsets = Offsets::new(chunk);
    let found =
        Tokenizer::new(dialect, chunk).with_unescape(false).tokenize_with_location().map_err(
            |error| DdlError::at(base + offsets.byte_of(error.location), DdlErrorKind::Token),
        )?;
    for TokenWithSpan { token, span } in found {
        let Some(kind) = kind_of(&token) else { continue };
        let range = offsets.byte_of(span.start)..offsets.byte_of(span.end);
        let text = chunk.get(range.clone()).unwrap_or_default();
        let range = base + range.start..base + range.end;
        // Adjacent `b` and `'01'` are one literal.
        if kind == TokenKind::String
            && text.starts_with('\'')
            && let Some(last) = tokens.last_mut()
            && last.kind == TokenKind::Word
            && last.end() == range.start
            && last.start() >= base
            && matches!(chunk.get(last.start() - base..last.end() - base), Some("b" | "B"))
        {
            if let Some(bits) = Token::new(TokenKind::Bits, last.start()..range.end) {
                *last = bits;
            }
            continue;
        }
        let kind =
            if kind == TokenKind::Word && is_bit_number(text) { TokenKind::Bits } else { kind };
        tokens.extend(Token::new(kind, range));
    }
    Ok(())
}

/// `0b` and binary digits.
fn is_bit_number(text: &str) -> bool {
    text.strip_prefix("0b").is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|b| matches!(b, b'0' | b'1'))
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all operators that no rule here looks at are alike"
)]
fn kind_of(token: &SqlToken) -> Option<TokenKind> {
    Some(match token {
        SqlToken::Whitespace(_) | SqlToken::EOF => return None,
        SqlToken::Word(word) if word.quote_style.is_some() => TokenKind::Quoted,
        SqlToken::Word(_) => TokenKind::Word,
        SqlToken::SingleQuotedString(_) | SqlToken::DoubleQuotedString(_) => TokenKind::String,
        SqlToken::NationalStringLiteral(_) => TokenKind::National,
        SqlToken::Number(..) => TokenKind::Number,
        SqlToken::HexStringLiteral(_) => TokenKind::Hex,
        SqlToken::LParen => TokenKind::Punct('('),
        SqlToken::RParen => TokenKind::Punct(')'),
        SqlToken::Comma => TokenKind::Punct(','),
        SqlToken::SemiColon => TokenKind::Punct(';'),
        SqlToken::Period => TokenKind::Punct('.'),
        SqlToken::Eq => TokenKind::Punct('='),
        SqlToken::Assignment => TokenKind::Punct(':'),
        SqlToken::Plus => TokenKind::Punct('+'),
        SqlToken::Minus => TokenKind::Punct('-'),
        _ => TokenKind::Other,
    })
}

/// The tokenizer's view of MySQL, comments left out.
#[derive(Debug)]
struct MySqlTokens {
    mode: SqlMode,
}

impl Dialect for MySqlTokens {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`' || (ch == '"' && self.mode.ansi_quotes())
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_ascii_alphabetic() || matches!(ch, '_' | '$' | '@') || ch >= '\u{80}'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_ascii_alphanumeric() || matches!(ch, '_' | '$') || ch >= '\u{80}'
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        !self.mode.no_backslash_escapes()
    }

    fn supports_national_string_literal(&self) -> bool {
        true
    }

    fn supports_numeric_prefix(&self) -> bool {
        true
    }

    fn requires_single_line_comment_whitespace(&self) -> bool {
        true
    }
}

/// Byte offsets of the tokenizer's locations, which count lines and characters from one. Locations must come in order.
struct Offsets<'a> {
    chars: std::str::CharIndices<'a>,
    len: usize,
    at: Location,
    byte: usize,
}

impl<'a> Offsets<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            chars: text.char_indices(),
            len: text.len(),
            at: Location { line: 1, column: 1 },
            byte: 0,
        }
    }

    fn byte_of(&mut self, wanted: Location) -> usize {
        while (self.at.line, self.at.column) < (wanted.line, wanted.column) {
            let Some((at, c)) = self.chars.next() else { return self.len };
            self.byte = at + c.len_utf8();
            if c == '\n' {
                self.at = Location { line: self.at.line + 1, column: 1 };
            } else {
                self.at.column += 1;
            }
        }
        self.byte
    }
}

/// A copy of `sql` with blanks for comments and for the marks of version comments, of the same length; and offsets,
/// some way from each other, at which the copy can be cut between tokens.
fn blank_comments(sql: &str, context: &DdlContext) -> Result<(String, Vec<usize>), DdlError> {
    let mut text = String::with_capacity(sql.len());
    let mut cuts = Cuts::default();
    let mut pieces = Pieces::new(sql, context);
    let mut last_quote = None;
    while let Some(piece) = pieces.next_piece()? {
        let range = piece.range();
        let source = sql.get(range.clone()).unwrap_or_default();
        let quote = source.chars().next().filter(|_| matches!(piece, Piece::Quoted(_)));
        match piece {
            Piece::Comment(_) => {
                text.extend(std::iter::repeat_n(' ', source.len()));
                cuts.offer(range.end);
            }
            Piece::Quoted(_) => {
                // Behind a quoted text in other quotes a new token begins.
                if last_quote.is_some_and(|last| Some(last) != quote) {
                    cuts.offer(range.start);
                }
                text.push_str(source);
            }
            Piece::Plain(_) => {
                for (at, c) in source.char_indices() {
                    if c.is_ascii_whitespace() || matches!(c, '(' | ')' | ',' | ';') {
                        cuts.offer(range.start + at + 1);
                    } else {
                        cuts.force(range.start + at);
                    }
                }
                text.push_str(source);
            }
        }
        last_quote = quote;
    }
    Ok((text, cuts.places))
}

/// Places at which a text is cut into chunks.
#[derive(Default)]
struct Cuts {
    places: Vec<usize>,
    last: usize,
}

impl Cuts {
    /// A token ends here: cut if the chunk is long enough.
    fn offer(&mut self, at: usize) {
        if at - self.last >= CHUNK_BYTES {
            self.cut(at);
        }
    }

    /// Perhaps inside a token: cut if the chunk is too long.
    fn force(&mut self, at: usize) {
        if at - self.last >= MAX_CHUNK_BYTES {
            self.cut(at);
        }
    }

    fn cut(&mut self, at: usize) {
        self.places.push(at);
        self.last = at;
    }
}

/// A stretch of SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Neither quoted nor a comment.
    Plain(Range<usize>),
    /// A string or a quoted name, with its quotes; a doubled quote ends one and begins the next.
    Quoted(Range<usize>),
    /// A comment, or the opening or closing mark of a version comment.
    Comment(Range<usize>),
}

impl Piece {
    pub(crate) fn range(&self) -> Range<usize> {
        match self {
            Self::Plain(range) | Self::Quoted(range) | Self::Comment(range) => range.clone(),
        }
    }
}

/// Cuts SQL text into pieces, in order and without gaps.
pub(crate) struct Pieces<'a> {
    sql: &'a str,
    at: usize,
    /// Inside a version comment that is taken.
    in_version_comment: bool,
    mode: SqlMode,
    flavor: Flavor,
    server_version: Option<u32>,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(sql: &'a str, context: &DdlContext) -> Self {
        Self {
            sql,
            at: 0,
            in_version_comment: false,
            mode: context.sql_mode,
            flavor: context.flavor,
            server_version: context.server_version,
        }
    }

    /// The next piece, `None` at the end of the text.
    ///
    /// # Errors
    ///
    /// [`DdlErrorKind::Unterminated`].
    pub(crate) fn next_piece(&mut self) -> Result<Option<Piece>, DdlError> {
        let start = self.at;
        let Some(&first) = self.bytes().get(start) else {
            // A version comment without end is one that ended behind the last token, where Debezium cuts what it records.
            return Ok(None);
        };
        if let Some(end) = self.comment_mark(start)? {
            self.at = end;
            return Ok(Some(Piece::Comment(start..end)));
        }
        if matches!(first, b'\'' | b'"' | b'`') {
            let end = self.quoted_end(start, first)?;
            self.at = end;
            return Ok(Some(Piece::Quoted(start..end)));
        }
        let mut end = start + 1;
        while let Some(&byte) = self.bytes().get(end) {
            let mark =
                matches!(byte, b'#' | b'-' | b'/' | b'*') && self.comment_mark(end)?.is_some();
            if mark || matches!(byte, b'\'' | b'"' | b'`') {
                break;
            }
            end += 1;
        }
        self.at = end;
        // A version comment is opened or closed by its mark alone, never by looking ahead.
        Ok(Some(Piece::Plain(start..end)))
    }

    fn bytes(&self) -> &'a [u8] {
        self.sql.as_bytes()
    }

    fn starts_with(&self, at: usize, mark: &str) -> bool {
        self.bytes().get(at..).is_some_and(|rest| rest.starts_with(mark.as_bytes()))
    }

    /// The end of the comment, or of the mark of a version comment, that begins at `start`; `None` when none does.
    /// When `start` is the current position, a version comment is opened or closed.
    fn comment_mark(&mut self, start: usize) -> Result<Option<usize>, DdlError> {
        let current = start == self.at;
        match self.bytes().get(start) {
            Some(b'#') => Ok(Some(self.line_end(start))),
            // MySQL: a blank or control character must follow; the end of the text is one.
            Some(b'-') if self.starts_with(start, "--") => match self.bytes().get(start + 2) {
                Some(byte) if !byte.is_ascii_whitespace() && !byte.is_ascii_control() => Ok(None),
                _ => Ok(Some(self.line_end(start))),
            },
            Some(b'*') if self.in_version_comment && self.starts_with(start, "*/") => {
                if current {
                    self.in_version_comment = false;
                }
                Ok(Some(start + 2))
            }
            Some(b'/') if self.starts_with(start, "/*") => {
                if !current {
                    // Only whether something begins here is asked.
                    return Ok(Some(start + 2));
                }
                let executable = if self.starts_with(start, "/*!") {
                    Some((start + 3, false))
                } else if self.flavor == Flavor::MariaDb && self.starts_with(start, "/*M!") {
                    Some((start + 4, true))
                } else {
                    None
                };
                if let Some((digits, own)) = executable {
                    let (end, version) = self.version(digits);
                    if self.applies(version, own) && !self.in_version_comment {
                        self.in_version_comment = true;
                        return Ok(Some(end));
                    }
                    return self.comment_end(start, end, true).map(Some);
                }
                self.comment_end(start, start + 2, false).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn line_end(&self, start: usize) -> usize {
        let rest = self.bytes().get(start..).unwrap_or_default();
        rest.iter().position(|&byte| byte == b'\n').map_or(self.sql.len(), |at| start + at + 1)
    }

    /// Five or six digits, and where they end.
    fn version(&self, start: usize) -> (usize, Option<u32>) {
        let rest = self.bytes().get(start..).unwrap_or_default();
        let digits = rest.iter().take(6).take_while(|byte| byte.is_ascii_digit()).count();
        if digits < 5 {
            return (start, None);
        }
        let text = self.sql.get(start..start + digits).unwrap_or_default();
        (start + digits, text.parse().ok())
    }

    /// Whether the server executes a comment of that version. MariaDB leaves out MySQL's comments of versions that came
    /// after the two parted, 50700 to 99999 (MariaDB, "Comment Syntax").
    fn applies(&self, version: Option<u32>, own: bool) -> bool {
        match (version, self.server_version) {
            (Some(version), Some(server)) => {
                let foreign =
                    self.flavor == Flavor::MariaDb && !own && (50_700..=99_999).contains(&version);
                version <= server && !foreign
            }
            _ => true,
        }
    }

    /// The end of a comment whose text begins at `from`; one comment may be nested when the whole is left out.
    fn comment_end(&self, start: usize, from: usize, nested: bool) -> Result<usize, DdlError> {
        let mut at = from;
        let mut inner = false;
        while at < self.sql.len() {
            if self.starts_with(at, "*/") {
                at += 2;
                if !inner {
                    return Ok(at);
                }
                inner = false;
            } else if nested && !inner && self.starts_with(at, "/*") {
                inner = true;
                at += 2;
            } else {
                at += 1;
            }
        }
        Err(DdlError::at(start, DdlErrorKind::Unterminated { what: "comment" }))
    }

    fn quoted_end(&self, start: usize, quote: u8) -> Result<usize, DdlError> {
        let name = quote == b'`' || (quote == b'"' && self.mode.ansi_quotes());
        let escapes = !name && !self.mode.no_backslash_escapes();
        let mut at = start + 1;
        while let Some(&byte) = self.bytes().get(at) {
            if byte == quote {
                return Ok(at + 1);
            }
            at += if escapes && byte == b'\\' { 2 } else { 1 };
        }
        let what = if name { "quoted name" } else { "string" };
        Err(DdlError::at(start, DdlErrorKind::Unterminated { what }))
    }
}

/// Resolves doubled quotes and, with `backslash`, the escapes of MySQL strings in a text without its outer quotes.
/// `\%` and `\_` stay as they are (MySQL 8.4 Reference Manual, "String Literals").
pub(crate) fn unescape(inner: &str, quote: char, backslash: bool) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        if c == quote {
            chars.next_if_eq(&quote);
            text.push(quote);
        } else if c == '\\' && backslash {
            match chars.next() {
                Some('0') => text.push('\0'),
                Some('b') => text.push('\u{8}'),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('Z') => text.push('\u{1a}'),
                Some(kept @ ('%' | '_')) => text.extend(['\\', kept]),
                Some(other) => text.push(other),
                None => text.push('\\'),
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use TokenKind::{Bits, Hex, National, Number, Other, Punct, Quoted, String as Str, Word};

    fn context() -> DdlContext {
        DdlContext::default()
    }

    fn lexed<'a>(sql: &'a str, context: &DdlContext) -> Vec<(TokenKind, &'a str)> {
        lex(sql, context).unwrap().iter().map(|token| (token.kind, token.text(sql))).collect()
    }

    fn texts<'a>(sql: &'a str, context: &DdlContext) -> Vec<&'a str> {
        lexed(sql, context).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn literals_and_names_keep_their_exact_text() {
        let cases: [(&str, &[(TokenKind, &str)]); 15] = [
            ("`a``b`", &[(Quoted, "`a``b`")]),
            ("'it''s'", &[(Str, "'it''s'")]),
            (r"'a\'b' x", &[(Str, r"'a\'b'"), (Word, "x")]),
            (r#""dq'x""#, &[(Str, r#""dq'x""#)]),
            ("x'4142' X'41'", &[(Hex, "x'4142'"), (Hex, "X'41'")]),
            ("0x1F", &[(Hex, "0x1F")]),
            ("b'01' B'1' 0b11", &[(Bits, "b'01'"), (Bits, "B'1'"), (Bits, "0b11")]),
            ("b '01'", &[(Word, "b"), (Str, "'01'")]),
            ("N'é'", &[(National, "N'é'")]),
            ("_utf8mb4'x'", &[(Word, "_utf8mb4"), (Str, "'x'")]),
            ("1.5e-3 .5 7", &[(Number, "1.5e-3"), (Number, ".5"), (Number, "7")]),
            ("1a $b é数 @v", &[(Word, "1a"), (Word, "$b"), (Word, "é数"), (Word, "@v")]),
            ("a.b", &[(Word, "a"), (Punct('.'), "."), (Word, "b")]),
            (
                "a := -1 <=> 2",
                &[
                    (Word, "a"),
                    (Punct(':'), ":="),
                    (Punct('-'), "-"),
                    (Number, "1"),
                    (Other, "<=>"),
                    (Number, "2"),
                ],
            ),
            ("`d`._t", &[(Quoted, "`d`"), (Punct('.'), "."), (Word, "_t")]),
        ];
        for (sql, expected) in cases {
            assert_eq!(lexed(sql, &context()), expected, "{sql}");
        }
    }

    #[test]
    fn all_kinds_of_comments_are_blanks() {
        let cases: [(&str, &[&str]); 8] = [
            ("a # b 'c\nd", &["a", "d"]),
            ("a -- b 'c\nd", &["a", "d"]),
            ("a --b", &["a", "-", "-", "b"]),
            ("a --", &["a"]),
            ("a /* it's */ b", &["a", "b"]),
            ("a /*+ hint */ b", &["a", "b"]),
            ("a/**/b", &["a", "b"]),
            ("'# no' `-- no` '/* no */'", &["'# no'", "`-- no`", "'/* no */'"]),
        ];
        for (sql, expected) in cases {
            assert_eq!(texts(sql, &context()), expected, "{sql}");
        }
    }

    #[test]
    fn version_comments_are_taken_when_the_server_takes_them() {
        let mariadb = DdlContext { flavor: Flavor::MariaDb, ..context() };
        let mysql_80 = DdlContext { server_version: Some(80_036), ..context() };
        let mariadb_10_11 = DdlContext { server_version: Some(101_106), ..mariadb.clone() };
        let cases: [(&str, &DdlContext, &[&str]); 14] = [
            ("a /*! b */ c", &context(), &["a", "b", "c"]),
            ("a /*!50100 b */ c", &context(), &["a", "b", "c"]),
            ("a /*!50100b*/ c", &context(), &["a", "b", "c"]),
            ("a /*!100100 b */ c", &context(), &["a", "b", "c"]),
            ("a /*!50100 b /* x */ 'y*/' */ c", &context(), &["a", "b", "'y*/'", "c"]),
            ("a /*!*/ c", &context(), &["a", "c"]),
            ("a /*!50100 b", &context(), &["a", "b"]),
            ("a /*!99999 b /* x */ d */ c", &mysql_80, &["a", "c"]),
            ("a /*!80036 b */ c", &mysql_80, &["a", "b", "c"]),
            ("a /*M! b */ c", &context(), &["a", "c"]),
            ("a /*M! b */ c", &mariadb, &["a", "b", "c"]),
            ("a /*M!100101 b */ c", &mariadb_10_11, &["a", "b", "c"]),
            ("a /*M!110101 b */ c", &mariadb_10_11, &["a", "c"]),
            ("a /*!80000 b */ /*!50100 d */ c", &mariadb_10_11, &["a", "d", "c"]),
        ];
        for (sql, context, expected) in cases {
            assert_eq!(texts(sql, context), expected, "{sql}");
        }
    }

    #[test]
    fn positions_inside_version_comments_are_those_of_the_text() {
        let sql = "é\n/*!50100 ab\n cd */ ef";
        let tokens = lex(sql, &context()).unwrap();
        let starts: Vec<_> = tokens.iter().map(|token| token.start()).collect();
        assert_eq!(
            starts,
            [0, sql.find("ab").unwrap(), sql.find("cd").unwrap(), sql.find("ef").unwrap()]
        );
    }

    #[test]
    fn sql_mode_decides_what_quotes_and_backslashes_mean() {
        let ansi = DdlContext { sql_mode: SqlMode(SqlMode::ANSI_QUOTES), ..context() };
        assert_eq!(lexed(r#""a""b" 'c"d'"#, &ansi), [(Quoted, r#""a""b""#), (Str, r#"'c"d'"#)]);
        assert_eq!(lexed(r#""a\""#, &ansi), [(Quoted, r#""a\""#)]);
        let plain = DdlContext { sql_mode: SqlMode(SqlMode::NO_BACKSLASH_ESCAPES), ..context() };
        assert_eq!(lexed(r"'a\' b", &plain), [(Str, r"'a\'"), (Word, "b")]);
    }

    #[test]
    fn what_has_no_end_is_an_error_that_says_where_it_begins() {
        for (sql, offset, what) in [
            ("a 'b", 2, "string"),
            (r"a 'b\'", 2, "string"),
            ("a `b", 2, "quoted name"),
            ("a /* b", 2, "comment"),
            ("a /*! b /* c", 8, "comment"),
        ] {
            assert_eq!(
                lex(sql, &context()),
                Err(DdlError::at(offset, DdlErrorKind::Unterminated { what })),
                "{sql}"
            );
        }
    }

    #[test]
    fn a_long_text_is_cut_between_tokens_only() {
        let sql = format!("{} 'a b' /* c */ `d e`\n", "word ".repeat(7)).repeat(3000);
        assert!(sql.len() > 2 * CHUNK_BYTES);
        let expected = ["word", "word", "word", "word", "word", "word", "word", "'a b'", "`d e`"];
        let tokens = texts(&sql, &context());
        assert_eq!(tokens.len(), 9 * 3000);
        assert!(tokens.chunks(9).all(|line| line == expected));
    }

    #[test]
    fn a_text_of_nothing_but_tokens_is_refused_in_time() {
        for (unit, tokens) in [("(", 1), ("'a'\"b\"", 2)] {
            let sql = unit.repeat(MAX_TOKENS / tokens + 1);
            let kind = DdlErrorKind::TooMany { what: "tokens", limit: MAX_TOKENS };
            assert_eq!(lex(&sql, &context()).unwrap_err().kind, kind, "{unit}");
        }
    }

    #[test]
    fn too_long_a_text_is_refused_unread() {
        let sql = " ".repeat(MAX_STATEMENT_BYTES + 1);
        let error = lex(&sql, &context()).unwrap_err();
        assert_eq!(
            error.kind,
            DdlErrorKind::TooLong { bytes: sql.len(), limit: MAX_STATEMENT_BYTES }
        );
    }

    #[test]
    fn escapes_are_those_of_the_manual() {
        let cases = [
            (r"a\'b", "a'b"),
            (r"\0\b\n\r\t\Z", "\0\u{8}\n\r\t\u{1a}"),
            (r"\%\_", r"\%\_"),
            (r"\\ \x", r"\ x"),
            ("it''s", "it's"),
            ("\\", "\\"),
        ];
        for (text, expected) in cases {
            assert_eq!(unescape(text, '\'', true), expected, "{text}");
        }
        assert_eq!(unescape(r"a\n", '\'', false), r"a\n");
        assert_eq!(unescape(r#"a""b''c"#, '"', true), r#"a"b''c"#);
    }
}
