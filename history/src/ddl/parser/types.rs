//! Column types.

use super::super::DdlError;
use super::super::ast::DataType;
use super::super::lexer::TokenKind;
use super::Parser;

/// The length that Debezium puts in the place of `CHAR(0)` and `VARCHAR(0)`.
const LENGTH_FOR_ZERO: i32 = 10;

impl Parser<'_> {
    /// A type's words, length and labels; what may stand among the attributes (UNSIGNED, BINARY, CHARACTER SET …) is
    /// taken with those.
    pub(super) fn data_type(&mut self) -> Result<DataType, DdlError> {
        let mut name = self.upper_word();
        if name.is_empty() {
            return Err(self.expected("a column type"));
        }
        self.advance();
        match name.as_str() {
            "DOUBLE" => self.append_word(&mut name, &["PRECISION"]),
            "CHAR" | "CHARACTER" => self.append_word(&mut name, &["VARYING"]),
            "NCHAR" => self.append_word(&mut name, &["VARYING", "VARCHAR", "VARCHARACTER"]),
            "NATIONAL" => {
                self.append_word(&mut name, &["CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER"]);
                self.append_word(&mut name, &["VARYING"]);
            }
            // CHARACTER may be that of CHARACTER SET.
            "LONG" if self.is_word_at(1, "VARYING") => {
                self.append_word(&mut name, &["CHAR", "CHARACTER"]);
                self.append_word(&mut name, &["VARYING"]);
            }
            "LONG" => self.append_word(&mut name, &["VARBINARY", "VARCHAR", "VARCHARACTER"]),
            // Debezium keeps FLOAT4, and then can't convert its values.
            "FLOAT4" => name = "FLOAT".to_owned(),
            "REAL" if self.context.sql_mode.real_as_float() => name = "FLOAT".to_owned(),
            _ => {}
        }
        let mut data_type = DataType { name, ..DataType::default() };
        if matches!(data_type.name.as_str(), "ENUM" | "SET") {
            self.labels(&mut data_type)?;
        } else if self.is_punct('(') {
            self.lengths(&mut data_type)?;
        }
        set_defaults(&mut data_type);
        Ok(data_type)
    }

    fn append_word(&mut self, name: &mut String, words: &[&str]) {
        if self.is_any_word(words) {
            name.push(' ');
            name.push_str(&self.upper_word());
            self.advance();
        }
    }

    /// `(n)` or `(n, m)`; anything else in parentheses is skipped.
    fn lengths(&mut self, data_type: &mut DataType) -> Result<(), DdlError> {
        let numbers = self.peek_at(1).is_some_and(|token| token.kind == TokenKind::Number);
        if numbers && self.is_punct_at(2, ')') {
            data_type.length = Some(length(self.text_at(1)));
        } else if numbers
            && self.is_punct_at(2, ',')
            && self.peek_at(3).is_some_and(|token| token.kind == TokenKind::Number)
            && self.is_punct_at(4, ')')
        {
            data_type.length = Some(length(self.text_at(1)));
            data_type.scale = Some(length(self.text_at(3)));
        }
        self.skip_group()
    }

    /// `('a', 'b', …)`.
    fn labels(&mut self, data_type: &mut DataType) -> Result<(), DdlError> {
        self.expect_punct('(', "`(` and labels")?;
        while !self.is_punct(')') {
            data_type.labels.push(self.label()?);
            if !self.eat_punct(',') {
                break;
            }
        }
        self.expect_punct(')', "`)` after labels")?;
        data_type.length = Some(match data_type.name.as_str() {
            "SET" => {
                i32::try_from((2 * data_type.labels.len()).saturating_sub(1)).unwrap_or(i32::MAX)
            }
            _ => 1,
        });
        Ok(())
    }

    /// A label as SQL text in single quotes, readable without knowing the statement's `sql_mode`.
    fn label(&mut self) -> Result<String, DdlError> {
        let text = self.text_at(0);
        let plain = self.is_kind(TokenKind::String)
            && text.starts_with('\'')
            && !(self.context.sql_mode.no_backslash_escapes() && text.contains('\\'))
            && !self.peek_at(1).is_some_and(|token| token.kind == TokenKind::String);
        if plain {
            self.advance();
            return Ok(text.to_owned());
        }
        if self.is_introducer() && self.peek_at(1).is_some_and(|token| token.kind == TokenKind::Hex)
        {
            self.advance();
        }
        let value = if self.is_kind(TokenKind::Hex) {
            let bytes = hex_bytes(self.text_at(0));
            self.advance();
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            self.string("a label")?
        };
        Ok(format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")))
    }
}

/// Lengths that types have without being written, and Debezium's replacement for zero.
fn set_defaults(data_type: &mut DataType) {
    match data_type.name.as_str() {
        "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => {
            data_type.length.get_or_insert(10);
            data_type.scale.get_or_insert(0);
        }
        "BIT" => {
            data_type.length.get_or_insert(1);
        }
        "CHAR" | "CHARACTER" | "VARCHAR" | "CHAR VARYING" | "CHARACTER VARYING"
            if data_type.length == Some(0) =>
        {
            data_type.length = Some(LENGTH_FOR_ZERO);
        }
        _ => {}
    }
}

/// The whole part of a number, at most the greatest `i32`.
fn length(text: &str) -> i32 {
    let digits = text.split('.').next().unwrap_or_default();
    digits.parse::<u64>().ok().and_then(|value| i32::try_from(value).ok()).unwrap_or(i32::MAX)
}

/// The digits of `x'…'` or `0x…`.
pub(super) fn hex_digits(text: &str) -> &str {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix(['x', 'X'])).unwrap_or(text);
    digits.trim_matches('\'')
}

/// The bytes of `x'…'` or `0x…`; an odd number of digits has a zero in front.
pub(super) fn hex_bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex_digits(text)
        .chars()
        .filter_map(|c| c.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    let (head, pairs) = digits.split_at(digits.len() % 2);
    let pairs =
        pairs.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit));
    head.iter().copied().chain(pairs).collect()
}
