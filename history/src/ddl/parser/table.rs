//! CREATE TABLE: elements and options.

use super::super::DdlError;
use super::super::ast::{Action, CreateTable, Element, TableOptions};
use super::Parser;

impl Parser<'_> {
    /// What follows `CREATE [OR REPLACE] TABLE`.
    pub(super) fn create_table(&mut self, or_replace: bool) -> Result<Action, DdlError> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.subject_name()?;
        let in_parentheses = self.is_punct('(') && self.is_word_at(1, "LIKE");
        if in_parentheses || self.is_word("LIKE") {
            self.at += if in_parentheses { 2 } else { 1 };
            let source = self.table_name()?;
            return Ok(Action::CreateLike { name, source, if_not_exists, or_replace });
        }
        let select = self.is_any_word_at(1, &["SELECT", "WITH", "VALUES", "TABLE"])
            || self.is_punct_at(1, '(');
        let elements = if self.is_punct('(') && !select { self.elements()? } else { Vec::new() };
        let options = self.table_options()?;
        Ok(Action::CreateTable(CreateTable { name, if_not_exists, or_replace, elements, options }))
    }

    fn elements(&mut self) -> Result<Vec<Element>, DdlError> {
        self.expect_punct('(', "`(` and columns")?;
        let mut elements = Vec::new();
        loop {
            elements.push(self.element()?);
            self.check_count(elements.len())?;
            self.skip_element()?;
            if !self.eat_punct(',') {
                break;
            }
        }
        self.expect_punct(')', "`,` or `)` after a column or index")?;
        Ok(elements)
    }

    fn element(&mut self) -> Result<Element, DdlError> {
        match self.constraint()? {
            Some(element) => Ok(element),
            None => Ok(Element::Column(self.named_column()?)),
        }
    }

    /// An element that is not a column; `None` when it is one. Reserved words begin these, and words that are names
    /// too only together with a second word.
    pub(super) fn constraint(&mut self) -> Result<Option<Element>, DdlError> {
        if self.eat_word("CONSTRAINT") {
            self.eat_if_not_exists();
            // The name may be left out.
            if !self.is_any_word(&["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]) {
                self.identifier("a constraint name")?;
            }
        }
        match self.upper_word().as_str() {
            "PRIMARY" => {
                self.advance();
                self.expect_word("KEY")?;
                self.skip_to_key_parts();
                let offset = self.offset();
                match self.key_parts()? {
                    Some(columns) => Ok(Some(Element::PrimaryKey(columns))),
                    None => {
                        Err(DdlError { offset, ..self.expected("plain columns in a primary key") })
                    }
                }
            }
            "UNIQUE" => {
                self.advance();
                self.skip_to_key_parts();
                Ok(Some(Element::Unique(self.key_parts()?)))
            }
            "INDEX" | "KEY" | "FULLTEXT" | "SPATIAL" | "FOREIGN" | "CHECK" => self.skipped(),
            "VECTOR" | "CLUSTERING" if self.is_any_word_at(1, &["INDEX", "KEY"]) => self.skipped(),
            "PERIOD" if self.is_word_at(1, "FOR") => {
                let system = self.is_any_word_at(2, &["SYSTEM_TIME", "SYSTEM"]);
                self.skip_element()?;
                Ok(Some(if system { Element::SystemPeriod } else { Element::Skipped }))
            }
            _ => Ok(None),
        }
    }

    fn skipped(&mut self) -> Result<Option<Element>, DdlError> {
        self.skip_element()?;
        Ok(Some(Element::Skipped))
    }

    /// Options behind the list, up to partitions, a query or the end.
    fn table_options(&mut self) -> Result<TableOptions, DdlError> {
        let mut options = TableOptions::default();
        while self.peek().is_some() && !self.table_options_end() {
            // MySQL logs CREATE TABLE … AS SELECT with it among the options.
            if self.eat_words(&["START", "TRANSACTION"]) {
                continue;
            }
            self.table_option(&mut options)?;
        }
        Ok(options)
    }

    fn table_options_end(&self) -> bool {
        self.is_any_word(&["AS", "SELECT", "PARTITION", "VALUES"])
            || (self.is_word("WITH") && !self.is_word_at(1, "SYSTEM"))
    }

    /// One option that matters, or one token of another.
    pub(super) fn table_option(&mut self, options: &mut TableOptions) -> Result<(), DdlError> {
        if self.is_word("DEFAULT") {
            self.advance();
        }
        if self.eat_charset_words() {
            options.charset = Some(self.charset_value()?);
        } else if self.eat_word("COLLATE") {
            let implied = self.collation_value()?;
            if options.charset.is_none() {
                options.charset = implied;
            }
        } else if self.eat_word("COMMENT") {
            self.eat_punct('=');
            options.comment = Some(self.string("a comment")?);
        } else if self.eat_words(&["WITH", "SYSTEM", "VERSIONING"]) {
            options.system_versioning = true;
        } else {
            self.skip_item()?;
        }
        Ok(())
    }
}
