//! ALTER TABLE: its clauses.

use super::super::DdlError;
use super::super::ast::{
    Action, AlterTable, Charset, Clause, ClauseKind, Element, Place, TableOptions,
};
use super::super::lexer::TokenKind;
use super::Parser;

/// Clauses of one or more words without a value that say nothing of columns.
const PLAIN_CLAUSES: [&str; 14] = [
    "FORCE",
    "ENABLE",
    "DISABLE",
    "DISCARD",
    "IMPORT",
    "WITH",
    "WITHOUT",
    "SECONDARY_LOAD",
    "SECONDARY_UNLOAD",
    "UPGRADE",
    "WAIT",
    "NOWAIT",
    "ONLINE",
    "OFFLINE",
];
/// First words of clauses on partitions. CHECK, ANALYZE and the like need PARTITION as the second word.
const PARTITION_CLAUSES: [&str; 12] = [
    "PARTITION",
    "REORGANIZE",
    "COALESCE",
    "EXCHANGE",
    "ANALYZE",
    "CHECK",
    "OPTIMIZE",
    "REBUILD",
    "REPAIR",
    "REMOVE",
    "TRUNCATE",
    "PARTITIONING",
];

impl Parser<'_> {
    /// What follows `ALTER [ONLINE] [IGNORE] TABLE`.
    pub(super) fn alter_table(&mut self) -> Result<Action, DdlError> {
        self.eat_if_exists();
        let name = self.subject_name()?;
        // MariaDB: how long to wait for the lock stands before the clauses, without a comma.
        if self.eat_word("WAIT") {
            self.advance();
        } else {
            self.eat_word("NOWAIT");
        }
        let mut clauses = Vec::new();
        // A list of a clause before may go on behind a comma: `DROP PARTITION p0, p1`, `ORDER BY a, b`.
        let mut list_goes_on = false;
        while self.peek().is_some() {
            let offset = self.offset();
            let first = self.at;
            if self.eat_punct(',') {
                continue;
            }
            let kind = self.clause(&mut list_goes_on)?;
            clauses.push(Clause { offset, kind });
            self.check_count(clauses.len())?;
            if self.at == first {
                return Err(self.expected("a clause of alter table"));
            }
        }
        Ok(Action::AlterTable(AlterTable { name, clauses }))
    }

    fn clause(&mut self, list_goes_on: &mut bool) -> Result<ClauseKind, DdlError> {
        let word = self.upper_word();
        let continues = std::mem::replace(list_goes_on, false);
        match word.as_str() {
            "ADD" => {
                self.advance();
                self.add(list_goes_on)
            }
            "DROP" => {
                self.advance();
                self.drop(list_goes_on)
            }
            "CHANGE" => {
                self.advance();
                self.eat_word("COLUMN");
                let if_exists = self.eat_if_exists();
                let old = self.column_name()?;
                let column = self.named_column()?;
                Ok(ClauseKind::Change { old, column, place: self.place()?, if_exists })
            }
            "MODIFY" => {
                self.advance();
                self.eat_word("COLUMN");
                let if_exists = self.eat_if_exists();
                let column = self.named_column()?;
                Ok(ClauseKind::Change {
                    old: column.name.clone(),
                    column,
                    place: self.place()?,
                    if_exists,
                })
            }
            "RENAME" => {
                self.advance();
                self.rename_clause()
            }
            "ALTER" => {
                self.advance();
                self.alter_column()
            }
            "CONVERT" => {
                self.advance();
                self.convert()
            }
            "ORDER" if self.is_word_at(1, "BY") => {
                *list_goes_on = true;
                self.no_effect()
            }
            // Partitions end the statement, or are a list of names.
            "PARTITION" if self.is_word_at(1, "BY") => {
                while self.peek().is_some() {
                    self.skip_item()?;
                }
                Ok(ClauseKind::NoEffect)
            }
            _ if PARTITION_CLAUSES.contains(&word.as_str())
                || (self.is_word_at(1, "PARTITION") && PLAIN_CLAUSES.contains(&word.as_str())) =>
            {
                *list_goes_on = true;
                self.no_effect()
            }
            _ if PLAIN_CLAUSES.contains(&word.as_str()) => self.no_effect(),
            _ if continues => {
                *list_goes_on = true;
                self.no_effect()
            }
            _ => self.options_clause(),
        }
    }

    fn no_effect(&mut self) -> Result<ClauseKind, DdlError> {
        self.skip_element()?;
        Ok(ClauseKind::NoEffect)
    }

    fn add(&mut self, list_goes_on: &mut bool) -> Result<ClauseKind, DdlError> {
        if self.is_word("PARTITION") {
            *list_goes_on = true;
            return self.no_effect();
        }
        if self.eat_words(&["SYSTEM", "VERSIONING"]) {
            return Ok(ClauseKind::AddSystemVersioning);
        }
        let explicit = self.eat_word("COLUMN");
        if !explicit && let Some(element) = self.constraint()? {
            self.skip_element()?;
            return Ok(match element {
                Element::PrimaryKey(columns) => ClauseKind::AddPrimaryKey(columns),
                Element::Unique(columns) => ClauseKind::AddUnique(columns),
                Element::SystemPeriod => ClauseKind::AddSystemPeriod,
                Element::Column(_) | Element::Skipped => ClauseKind::NoEffect,
            });
        }
        let if_not_exists = self.eat_if_not_exists();
        if self.is_punct('(') {
            return self.add_list(if_not_exists);
        }
        let column = self.named_column()?;
        Ok(ClauseKind::Add { column, place: self.place()?, if_not_exists })
    }

    /// `ADD (a INT, b INT, KEY (a))`.
    fn add_list(&mut self, if_not_exists: bool) -> Result<ClauseKind, DdlError> {
        self.advance();
        let mut elements = Vec::new();
        loop {
            let offset = self.offset();
            let kind = match self.constraint()? {
                None => {
                    let if_not_exists = self.eat_if_not_exists() || if_not_exists;
                    let column = self.named_column()?;
                    ClauseKind::Add { column, place: Place::Unchanged, if_not_exists }
                }
                Some(Element::PrimaryKey(columns)) => ClauseKind::AddPrimaryKey(columns),
                Some(Element::Unique(columns)) => ClauseKind::AddUnique(columns),
                Some(Element::SystemPeriod) => ClauseKind::AddSystemPeriod,
                Some(Element::Column(_) | Element::Skipped) => ClauseKind::NoEffect,
            };
            elements.push(Clause { offset, kind });
            self.check_count(elements.len())?;
            self.skip_element()?;
            if !self.eat_punct(',') {
                break;
            }
        }
        self.expect_punct(')', "`)` after added columns")?;
        Ok(ClauseKind::List(elements))
    }

    fn drop(&mut self, list_goes_on: &mut bool) -> Result<ClauseKind, DdlError> {
        match self.upper_word().as_str() {
            "PRIMARY" => {
                self.advance();
                self.eat_word("KEY");
                Ok(ClauseKind::DropPrimaryKey)
            }
            "INDEX" | "KEY" | "FOREIGN" | "CHECK" | "CONSTRAINT" => self.no_effect(),
            "PARTITION" => {
                *list_goes_on = true;
                self.no_effect()
            }
            "SYSTEM" if self.is_word_at(1, "VERSIONING") => {
                self.at += 2;
                Ok(ClauseKind::DropSystemVersioning)
            }
            "PERIOD" if self.is_word_at(1, "FOR") => self.no_effect(),
            _ => {
                self.eat_word("COLUMN");
                let if_exists = self.eat_if_exists();
                let name = self.column_name()?;
                self.eat_any_word(&["RESTRICT", "CASCADE"]);
                Ok(ClauseKind::DropColumn { name, if_exists })
            }
        }
    }

    fn rename_clause(&mut self) -> Result<ClauseKind, DdlError> {
        if self.eat_word("COLUMN") {
            let if_exists = self.eat_if_exists();
            let old = self.column_name()?;
            self.expect_word("TO")?;
            return Ok(ClauseKind::RenameColumn { old, new: self.column_name()?, if_exists });
        }
        if self.is_any_word(&["INDEX", "KEY"]) {
            return self.no_effect();
        }
        if !self.eat_any_word(&["TO", "AS"]) {
            self.eat_punct('=');
        }
        Ok(ClauseKind::Rename(self.table_name()?))
    }

    fn alter_column(&mut self) -> Result<ClauseKind, DdlError> {
        if self.is_any_word(&["INDEX", "KEY", "CHECK", "CONSTRAINT"]) {
            return self.no_effect();
        }
        self.eat_word("COLUMN");
        let if_exists = self.eat_if_exists();
        let name = self.column_name()?;
        if self.eat_words(&["SET", "DEFAULT"]) {
            return Ok(ClauseKind::SetDefault { name, default: self.default_value()?, if_exists });
        }
        if self.eat_words(&["DROP", "DEFAULT"]) {
            return Ok(ClauseKind::DropDefault { name, if_exists });
        }
        if self.is_word("SET") {
            // VISIBLE, INVISIBLE.
            return self.no_effect();
        }
        Err(self.expected("SET or DROP DEFAULT"))
    }

    fn convert(&mut self) -> Result<ClauseKind, DdlError> {
        if self.eat_word("PARTITION") {
            self.identifier("a partition")?;
            self.expect_word("TO")?;
            self.expect_word("TABLE")?;
            return Ok(ClauseKind::ConvertPartitionToTable(self.table_name()?));
        }
        if self.eat_word("TABLE") {
            let name = self.table_name()?;
            self.skip_element()?;
            return Ok(ClauseKind::ConvertTableToPartition(name));
        }
        self.expect_word("TO")?;
        if !self.eat_charset_words() {
            return Err(self.expected("CHARACTER SET"));
        }
        let charset = self.charset_value()?;
        let mut implied = None;
        if self.eat_word("COLLATE") {
            implied = self.collation_value()?;
        }
        // `CONVERT TO CHARACTER SET DEFAULT COLLATE x`: the collation says which.
        Ok(ClauseKind::ConvertCharset(match (charset, implied) {
            (Charset::Database, Some(implied)) => implied,
            (charset, _) => charset,
        }))
    }

    /// Options of the table, with or without `=`, with or without commas in between: word, value, word, value …
    fn options_clause(&mut self) -> Result<ClauseKind, DdlError> {
        let mut options = TableOptions::default();
        while !self.at_element_end() {
            if self.is_word("PARTITION") && self.is_word_at(1, "BY") {
                while self.peek().is_some() {
                    self.skip_item()?;
                }
                break;
            }
            if self.is_any_word(&PLAIN_CLAUSES) {
                self.advance();
                continue;
            }
            let name = usize::from(self.is_word("DEFAULT"));
            if self.is_any_word_at(name, &["CHARACTER", "CHAR", "CHARSET", "COLLATE", "COMMENT"]) {
                self.table_option(&mut options)?;
                continue;
            }
            let first = self.at;
            self.at += name;
            if !(self.is_kind(TokenKind::Word) || self.is_kind(TokenKind::Quoted)) {
                return Err(self.expected("a clause of alter table"));
            }
            self.advance();
            // DATA DIRECTORY, INDEX DIRECTORY.
            self.eat_word("DIRECTORY");
            self.eat_punct('=');
            if self.at_element_end() {
                self.at = first;
                return Err(self.expected("a clause of alter table"));
            }
            if self.is_punct('-') || self.is_punct('+') {
                self.advance();
            }
            self.skip_item()?;
        }
        Ok(ClauseKind::Options(options))
    }

    /// FIRST or AFTER.
    fn place(&mut self) -> Result<Place, DdlError> {
        if self.eat_word("FIRST") {
            return Ok(Place::First);
        }
        if self.eat_word("AFTER") {
            return Ok(Place::After(self.column_name()?));
        }
        Ok(Place::Unchanged)
    }
}
