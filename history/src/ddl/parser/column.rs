//! Column definitions: a type and its attributes.

use super::super::DdlError;
use super::super::ast::{Charset, ColumnDefinition, DataType, DefaultClause};
use super::super::lexer::TokenKind;
use super::Parser;
use super::types::hex_digits;

/// What the model keeps for the time of the change: Debezium's marker for CURRENT_TIMESTAMP.
pub(in super::super) const CURRENT_TIMESTAMP: &str = "1970-01-01 00:00:00";
const CURRENT_TIMESTAMP_WORDS: [&str; 4] =
    ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];

/// Attributes of a column as they are met.
#[derive(Default)]
struct Attributes {
    unsigned: bool,
    signed: bool,
    zerofill: bool,
    /// `BINARY` as an attribute: the character set's `_bin` collation.
    binary_collation: bool,
    /// `BYTE`: the binary type.
    byte: bool,
    charset: Option<Charset>,
    collation_charset: Option<Charset>,
}

impl Parser<'_> {
    /// A name and a definition.
    pub(super) fn named_column(&mut self) -> Result<ColumnDefinition, DdlError> {
        let offset = self.offset();
        let name = self.column_name()?;
        self.column_definition(name, offset)
    }

    /// A type and attributes, up to a comma, a closing parenthesis, FIRST, AFTER or the end.
    pub(super) fn column_definition(
        &mut self,
        name: String,
        offset: usize,
    ) -> Result<ColumnDefinition, DdlError> {
        let data_type = self.data_type()?;
        let mut column = ColumnDefinition {
            name,
            offset,
            data_type,
            nullable: None,
            default: DefaultClause::Absent,
            auto_increment: false,
            on_update: false,
            primary_key: false,
            unique: false,
            system_versioning: false,
            is_computed: false,
            comment: None,
        };
        if column.data_type.name == "SERIAL" {
            column.data_type.name = "BIGINT UNSIGNED".to_owned();
            set_serial(&mut column);
        }
        let mut attributes = Attributes::default();
        while !self.at_element_end() && !self.is_any_word(&["FIRST", "AFTER"]) {
            self.attribute(&mut column, &mut attributes)?;
        }
        finish_type(&mut column.data_type, attributes);
        Ok(column)
    }

    fn attribute(
        &mut self,
        column: &mut ColumnDefinition,
        found: &mut Attributes,
    ) -> Result<(), DdlError> {
        if self.eat_charset_words() {
            found.charset = Some(self.charset_value()?);
            return Ok(());
        }
        let word = self.upper_word();
        match word.as_str() {
            "NOT" if self.is_word_at(1, "NULL") => {
                self.at += 2;
                column.nullable = Some(false);
            }
            "NULL" => {
                self.advance();
                column.nullable = Some(true);
            }
            "DEFAULT" => {
                self.advance();
                column.default = self.default_value()?;
            }
            "ON" => {
                self.advance();
                if self.eat_word("UPDATE") && self.is_any_word(&CURRENT_TIMESTAMP_WORDS) {
                    self.advance();
                    if self.is_punct('(') {
                        self.skip_group()?;
                    }
                    column.on_update = true;
                } else {
                    // Of a foreign key: SET NULL and SET DEFAULT say nothing of the column.
                    self.eat_word("DELETE");
                    if self.eat_word("SET") {
                        self.advance();
                    }
                }
            }
            "REFERENCES" => {
                self.advance();
                self.table_name()?;
                if self.is_punct('(') {
                    self.skip_group()?;
                }
            }
            "AUTO_INCREMENT" => {
                self.advance();
                column.auto_increment = true;
                // Like NOT NULL; a NULL behind it takes it back (`sql/sql_yacc.yy` of both servers).
                column.nullable = Some(false);
            }
            "SERIAL" if self.is_word_at(1, "DEFAULT") => {
                self.at += 2;
                self.eat_word("VALUE");
                set_serial(column);
            }
            "PRIMARY" => {
                self.advance();
                self.eat_word("KEY");
                column.primary_key = true;
            }
            "KEY" => {
                self.advance();
                column.primary_key = true;
            }
            "UNIQUE" => {
                self.advance();
                self.eat_any_word(&["KEY", "INDEX"]);
                column.unique = true;
            }
            "COMMENT" => {
                self.advance();
                self.eat_punct('=');
                column.comment = Some(self.string("a comment")?);
            }
            "COLLATE" => {
                self.advance();
                found.collation_charset =
                    self.collation_value()?.or_else(|| found.collation_charset.take());
            }
            // Their values may be DEFAULT.
            "COLUMN_FORMAT" | "STORAGE" => {
                self.advance();
                self.advance();
            }
            "CONSTRAINT" => {
                self.advance();
                if !self.is_word("CHECK") {
                    self.identifier("a constraint name")?;
                }
            }
            "WITH" if self.is_word_at(1, "SYSTEM") && self.is_word_at(2, "VERSIONING") => {
                self.at += 3;
                column.system_versioning = true;
            }
            // `[GENERATED ALWAYS] AS (…)`
            "AS" => {
                self.advance();
                if self.is_punct('(') {
                    self.skip_group()?;
                    column.is_computed = true;
                }
            }
            "UNSIGNED" => {
                self.advance();
                found.unsigned = true;
            }
            "SIGNED" => {
                self.advance();
                found.signed = true;
            }
            "ZEROFILL" => {
                self.advance();
                found.zerofill = true;
            }
            "BINARY" => {
                self.advance();
                found.binary_collation = true;
            }
            "BYTE" => {
                self.advance();
                found.byte = true;
            }
            "ASCII" => {
                self.advance();
                found.charset = Some(Charset::Named("latin1".to_owned()));
            }
            "UNICODE" => {
                self.advance();
                found.charset = Some(Charset::Named("ucs2".to_owned()));
            }
            _ => self.skip_item()?,
        }
        Ok(())
    }

    /// What follows DEFAULT.
    pub(super) fn default_value(&mut self) -> Result<DefaultClause, DdlError> {
        if self.is_punct('(') {
            self.skip_group()?;
            return Ok(DefaultClause::Opaque);
        }
        let introduced_hex = self.is_introducer()
            && self.peek_at(1).is_some_and(|token| token.kind == TokenKind::Hex);
        if introduced_hex {
            self.advance();
        } else if self.is_introducer()
            || self.is_kind(TokenKind::String)
            || self.is_kind(TokenKind::National)
        {
            return Ok(DefaultClause::Text(self.string("a default")?));
        }
        let sign = match (self.is_punct('-'), self.is_punct('+')) {
            (true, _) => "-",
            (_, true) => "+",
            _ => "",
        };
        if !sign.is_empty() {
            self.advance();
        }
        let Some(token) = self.peek() else { return Err(self.expected("a default")) };
        let text = self.text_at(0);
        match token.kind {
            TokenKind::Number => {
                self.advance();
                Ok(DefaultClause::Text(format!("{sign}{text}")))
            }
            TokenKind::Bits => {
                self.advance();
                let digits = text
                    .strip_prefix("0b")
                    .or_else(|| text.strip_prefix(['b', 'B']))
                    .unwrap_or(text);
                Ok(DefaultClause::Bits(digits.trim_matches('\'').to_owned()))
            }
            TokenKind::Hex => {
                self.advance();
                Ok(DefaultClause::Hex(hex_digits(text).to_owned()))
            }
            TokenKind::Word => self.default_word(),
            TokenKind::Quoted => {
                self.advance();
                self.skip_call()?;
                Ok(DefaultClause::Opaque)
            }
            TokenKind::String | TokenKind::National | TokenKind::Punct(_) | TokenKind::Other => {
                Err(self.expected("a default"))
            }
        }
    }

    /// A default that begins with a word: NULL, TRUE, FALSE, the current time, a typed literal, a function.
    fn default_word(&mut self) -> Result<DefaultClause, DdlError> {
        let text = self.text_at(0);
        let start = self.offset();
        if self.eat_word("NULL") {
            return Ok(DefaultClause::Null);
        }
        if self.eat_any_word(&["TRUE", "FALSE"]) {
            return Ok(DefaultClause::Text(text.to_owned()));
        }
        if self.eat_any_word(&CURRENT_TIMESTAMP_WORDS) {
            if self.is_punct('(') {
                self.skip_group()?;
            }
            return Ok(DefaultClause::Text(CURRENT_TIMESTAMP.to_owned()));
        }
        if self.is_any_word(&["DATE", "TIME", "TIMESTAMP"])
            && let Some(literal) = self.peek_at(1).filter(|token| token.kind == TokenKind::String)
        {
            self.at += 2;
            let text = self.sql.get(start..literal.end()).unwrap_or_default();
            return Ok(DefaultClause::Text(text.to_owned()));
        }
        if self.eat_words(&["NEXT", "VALUE", "FOR"]) {
            self.table_name()?;
            return Ok(DefaultClause::Opaque);
        }
        self.advance();
        self.skip_call()?;
        Ok(DefaultClause::Opaque)
    }

    /// The rest of a function's name, and its arguments.
    fn skip_call(&mut self) -> Result<(), DdlError> {
        while self.eat_punct('.') {
            self.advance();
        }
        if self.is_punct('(') { self.skip_group() } else { Ok(()) }
    }
}

/// `SERIAL` and `SERIAL DEFAULT VALUE`: NOT NULL AUTO_INCREMENT UNIQUE.
fn set_serial(column: &mut ColumnDefinition) {
    column.nullable = Some(false);
    column.auto_increment = true;
    column.unique = true;
}

/// Puts the attributes that belong to the type into its name and character set.
fn finish_type(data_type: &mut DataType, attributes: Attributes) {
    if attributes.signed {
        data_type.name.push_str(" SIGNED");
    }
    if (attributes.unsigned || attributes.zerofill) && !data_type.name.ends_with(" UNSIGNED") {
        data_type.name.push_str(" UNSIGNED");
    }
    if attributes.zerofill {
        data_type.name.push_str(" ZEROFILL");
    }
    if attributes.binary_collation {
        data_type.name.push_str(" BINARY");
    }
    data_type.charset = match attributes.charset.or(attributes.collation_charset) {
        _ if attributes.byte => Charset::Named("binary".to_owned()),
        Some(charset) => charset,
        None => Charset::Inherited,
    };
}
