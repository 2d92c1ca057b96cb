//! Which statement it is, and all that are short.

use super::super::DdlError;
use super::super::ast::{
    Action, Assignment, Charset, DatabaseOptions, DropTables, Name, RenamePair,
};
use super::super::lexer::TokenKind;
use super::Parser;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Action, DdlError> {
        let word = self.upper_word();
        let action = match word.as_str() {
            "CREATE" => {
                self.advance();
                self.create()?
            }
            "ALTER" => {
                self.advance();
                self.alter()?
            }
            "DROP" => {
                self.advance();
                self.drop_statement()?
            }
            "RENAME" if self.is_any_word_at(1, &["TABLE", "TABLES"]) => {
                self.at += 2;
                return self.rename_tables();
            }
            "TRUNCATE" => {
                self.advance();
                self.eat_word("TABLE");
                Action::Truncate(self.table_name()?)
            }
            // How Debezium records CREATE UNIQUE INDEX.
            "UNIQUE" if self.is_word_at(1, "INDEX") => {
                self.at += 2;
                self.create_unique_index()?
            }
            "USE" => {
                self.advance();
                Action::Use { name: self.identifier("a database")? }
            }
            "SET" => {
                self.advance();
                self.set()?
            }
            _ => Action::NoEffect,
        };
        Ok(action)
    }

    fn create(&mut self) -> Result<Action, DdlError> {
        let or_replace = self.eat_words(&["OR", "REPLACE"]);
        self.eat_any_word(&["ONLINE", "OFFLINE"]);
        if self.eat_word("TABLE") {
            return self.create_table(or_replace);
        }
        if self.eat_any_word(&["DATABASE", "SCHEMA"]) {
            let if_not_exists = self.eat_if_not_exists();
            let name = self.identifier("a database")?;
            let options = self.database_options()?;
            return Ok(Action::CreateDatabase { name, options, or_replace, if_not_exists });
        }
        if self.eat_words(&["UNIQUE", "INDEX"]) {
            return self.create_unique_index();
        }
        if self.eat_word("SEQUENCE") {
            self.eat_if_not_exists();
            return Ok(Action::CreateSequence(self.table_name()?));
        }
        // Tables of unknown kinds are tables: `CREATE EXTERNAL TABLE`.
        if self.is_word_at(1, "TABLE") && !self.is_word("IF") {
            self.at += 2;
            return self.create_table(or_replace);
        }
        Ok(Action::NoEffect)
    }

    /// `[IF NOT EXISTS] name [USING x] ON t (…)`.
    fn create_unique_index(&mut self) -> Result<Action, DdlError> {
        self.eat_if_not_exists();
        self.identifier("an index name")?;
        while self.peek().is_some() && !self.is_word("ON") {
            self.advance();
        }
        self.expect_word("ON")?;
        let table = self.table_name()?;
        Ok(Action::CreateUniqueIndex { table, columns: self.key_parts()? })
    }

    fn alter(&mut self) -> Result<Action, DdlError> {
        while self.is_any_word(&["ONLINE", "OFFLINE", "IGNORE"]) {
            self.advance();
        }
        if self.eat_word("TABLE") {
            return self.alter_table();
        }
        if self.eat_any_word(&["DATABASE", "SCHEMA"]) {
            // The name may be left out, and options are words too.
            let options_follow = self.is_any_word(&[
                "DEFAULT",
                "CHARACTER",
                "CHARSET",
                "COLLATE",
                "ENCRYPTION",
                "COMMENT",
            ]) || (self.is_word("READ") && self.is_word_at(1, "ONLY"));
            let name = if options_follow { None } else { Some(self.identifier("a database")?) };
            let options = self.database_options()?;
            return Ok(Action::AlterDatabase { name, options });
        }
        Ok(Action::NoEffect)
    }

    fn database_options(&mut self) -> Result<DatabaseOptions, DdlError> {
        let mut options = DatabaseOptions::default();
        while self.peek().is_some() {
            if self.is_word("DEFAULT") {
                self.advance();
            }
            if self.eat_charset_words() {
                options.charset = Some(self.charset_value()?);
            } else if self.eat_word("COLLATE") {
                let implied = self.collation_value()?;
                if !matches!(options.charset, Some(Charset::Named(_))) {
                    options.charset = implied.or(options.charset);
                }
            } else {
                self.skip_item()?;
            }
        }
        Ok(options)
    }

    fn drop_statement(&mut self) -> Result<Action, DdlError> {
        if self.eat_any_word(&["DATABASE", "SCHEMA"]) {
            self.eat_if_exists();
            return Ok(Action::DropDatabase { name: self.identifier("a database")? });
        }
        if self.eat_any_word(&["SEQUENCE", "SEQUENCES"]) {
            self.eat_if_exists();
            return Ok(Action::DropSequences(self.table_names()?));
        }
        if !self.eat_any_word(&["TABLE", "TABLES"]) {
            return Ok(Action::NoEffect);
        }
        let if_exists = self.eat_if_exists();
        let names = self.table_names()?;
        let behaviour =
            self.is_any_word(&["RESTRICT", "CASCADE"]).then(|| self.text_at(0).to_owned());
        Ok(Action::DropTables(DropTables { names, if_exists, behaviour }))
    }

    fn table_names(&mut self) -> Result<Vec<Name>, DdlError> {
        let mut names = vec![self.table_name()?];
        while self.eat_punct(',') {
            names.push(self.table_name()?);
        }
        Ok(names)
    }

    fn rename_tables(&mut self) -> Result<Action, DdlError> {
        let start = self.tokens.get(self.at - 2).map_or(0, |token| token.start());
        self.eat_if_exists();
        let prefix = self.sql.get(start..self.offset()).unwrap_or_default();
        let mut pairs = Vec::new();
        loop {
            let begin = self.offset();
            let from = self.table_name()?;
            // MariaDB: how long to wait for the lock.
            if self.eat_word("WAIT") {
                self.advance();
            } else {
                self.eat_word("NOWAIT");
            }
            self.expect_word("TO")?;
            let to = self.table_name()?;
            let end = self
                .at
                .checked_sub(1)
                .and_then(|at| self.tokens.get(at))
                .map_or(begin, |token| token.end());
            let ddl = format!("{prefix}{}", self.sql.get(begin..end).unwrap_or_default());
            pairs.push(RenamePair { from, to, ddl });
            if !self.eat_punct(',') {
                break;
            }
        }
        if self.peek().is_some() {
            return Err(self.expected("`,` or the end"));
        }
        Ok(Action::RenameTables(pairs))
    }

    /// Assignments to system variables. Of all variables only those that change the model are kept.
    fn set(&mut self) -> Result<Action, DdlError> {
        // Not assignments: SET PASSWORD, SET ROLE, SET DEFAULT ROLE, SET TRANSACTION …
        let assignment = self.is_any_word_at(1, &["SET", "CHARACTER"])
            || self.is_any_word(&[
                "NAMES",
                "CHARSET",
                "CHARACTER",
                "GLOBAL",
                "SESSION",
                "LOCAL",
                "PERSIST",
                "PERSIST_ONLY",
            ])
            || (1..4).any(|ahead| self.is_punct_at(ahead, '=') || self.is_punct_at(ahead, ':'));
        if !assignment || self.is_word("PASSWORD") {
            return Ok(Action::NoEffect);
        }
        let mut assignments = Vec::new();
        while self.peek().is_some() {
            assignments.extend(self.assignment()?);
            // The rest of the value's expression.
            self.skip_element()?;
            if !self.eat_punct(',') {
                break;
            }
        }
        Ok(Action::Set(assignments))
    }

    fn assignment(&mut self) -> Result<Option<Assignment>, DdlError> {
        if self.is_word("NAMES") || self.is_word("CHARACTER") || self.is_word("CHARSET") {
            // The client's character sets change nothing here.
            return Ok(None);
        }
        let text = self.text_at(0);
        if text.starts_with('@') && !text.starts_with("@@") {
            return Ok(None);
        }
        let mut name = text.trim_start_matches('@').to_ascii_lowercase();
        self.advance();
        if matches!(name.as_str(), "global" | "session" | "local" | "persist" | "persist_only") {
            self.eat_punct('.');
            name = self.text_at(0).trim_start_matches('@').to_ascii_lowercase();
            self.advance();
        }
        if !(self.eat_punct('=') || self.eat_punct(':')) {
            return Ok(None);
        }
        let assignment = match name.as_str() {
            "character_set_server" => Assignment::ServerCharset(self.charset_assigned()?),
            "character_set_database" => Assignment::DatabaseCharset(self.charset_assigned()?),
            "lower_case_table_names" => {
                Assignment::LowerCaseNames(self.text_at(0).trim_matches('\'') != "0")
            }
            _ => return Ok(None),
        };
        Ok(Some(assignment))
    }

    fn charset_assigned(&mut self) -> Result<Option<String>, DdlError> {
        let word = self.is_kind(TokenKind::Word) || self.is_kind(TokenKind::String);
        if !word || self.is_word("DEFAULT") || self.text_at(0).starts_with('@') {
            return Ok(None);
        }
        Ok(match self.charset_value()? {
            Charset::Named(name) => Some(name),
            Charset::Database | Charset::Inherited => None,
        })
    }
}
