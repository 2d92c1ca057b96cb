//! What kind of statement a query event holds, by its first words: cheap, and right for text that is never parsed.
//!
//! What is filtered is what Debezium's default `schema.history.internal.ddl.filter` takes out
//! (`SchemaHistory.DDL_FILTER`), recognised by words instead of regular expressions, so neither line breaks and
//! comments nor a body that happens to contain the right words can mislead it. Three things are added: all statements on
//! temporary tables, which are in no row of the log, packages of MariaDB's Oracle mode, and spatial reference systems,
//! at which Debezium stops.

use super::lexer::{Piece, Pieces};
use super::{DdlContext, Flavor};

/// What kind of statement a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatementClass {
    /// `BEGIN` or `START TRANSACTION`.
    Begin,
    /// `COMMIT`.
    Commit,
    /// `ROLLBACK` of the whole transaction.
    Rollback,
    /// Any `XA …`.
    Xa,
    /// `SAVEPOINT`, `RELEASE SAVEPOINT`, `ROLLBACK TO`.
    Savepoint,
    /// Rows changed by a statement: `INSERT`, `UPDATE`, `DELETE`, `REPLACE`, `LOAD`, `WITH`.
    Dml,
    /// `TRUNCATE TABLE`.
    Truncate,
    /// Never reaches the model or a record.
    Filtered,
    /// Everything else: to be parsed.
    Ddl,
}

/// Tells what kind of statement `sql` is, from its first words. `SET STATEMENT … FOR` in front does not count.
///
/// A text without any word, as `# Dummy event …`, is [`StatementClass::Filtered`].
pub fn classify(sql: &str) -> StatementClass {
    // How double quotes are read does not matter for the first words; MariaDB's comments matter more if they are seen.
    let context = DdlContext { flavor: Flavor::MariaDb, ..DdlContext::default() };
    let mut heads = Heads::new(sql, &context);
    let mut first = heads.next();
    if first.is("SET") && heads.peek().is("STATEMENT") {
        loop {
            match heads.next() {
                Head::End => return StatementClass::Ddl,
                head if head.is("FOR") => break,
                Head::Word(_) | Head::Quoted | Head::Mark(_) => {}
            }
        }
        first = heads.next();
    }
    let Head::Word(first) = first else {
        return if first == Head::End { StatementClass::Filtered } else { StatementClass::Ddl };
    };
    match first.to_ascii_uppercase().as_str() {
        "BEGIN" => StatementClass::Begin,
        "START" if heads.peek().is("TRANSACTION") => StatementClass::Begin,
        "COMMIT" => StatementClass::Commit,
        "ROLLBACK" => {
            let mut head = heads.next();
            if head.is("WORK") {
                head = heads.next();
            }
            if head.is("TO") { StatementClass::Savepoint } else { StatementClass::Rollback }
        }
        "SAVEPOINT" => StatementClass::Savepoint,
        "RELEASE" if heads.peek().is("SAVEPOINT") => StatementClass::Savepoint,
        "XA" => StatementClass::Xa,
        "INSERT" | "DELETE" if heads.is_rds_monitoring() => StatementClass::Filtered,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "LOAD" | "WITH" => StatementClass::Dml,
        "TRUNCATE" => StatementClass::Truncate,
        "GRANT" | "REVOKE" => StatementClass::Filtered,
        "END" if heads.peek() == Head::End => StatementClass::Filtered,
        "FLUSH" if heads.is_ignored_flush() => StatementClass::Filtered,
        "ANALYZE" | "OPTIMIZE" | "REPAIR" => {
            let mut head = heads.next();
            if head.is("NO_WRITE_TO_BINLOG") || head.is("LOCAL") {
                head = heads.next();
            }
            if head.is("TABLE") || head.is("TABLES") {
                StatementClass::Filtered
            } else {
                StatementClass::Ddl
            }
        }
        "CREATE" | "ALTER" | "DROP" if heads.names_what_is_filtered() => StatementClass::Filtered,
        _ => StatementClass::Ddl,
    }
}

/// One of the first tokens of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head<'a> {
    Word(&'a str),
    Quoted,
    Mark(char),
    End,
}

impl Head<'_> {
    fn is(self, word: &str) -> bool {
        matches!(self, Self::Word(text) if text.eq_ignore_ascii_case(word))
    }
}

/// Reads words, quoted texts and marks from the front of a statement, as far as it is asked to.
struct Heads<'a> {
    sql: &'a str,
    pieces: Pieces<'a>,
    plain: &'a str,
    peeked: Option<Head<'a>>,
}

impl<'a> Heads<'a> {
    fn new(sql: &'a str, context: &DdlContext) -> Self {
        Self { sql, pieces: Pieces::new(sql, context), plain: "", peeked: None }
    }

    fn next(&mut self) -> Head<'a> {
        if let Some(head) = self.peeked.take() {
            return head;
        }
        loop {
            self.plain = self.plain.trim_start();
            if let Some(first) = self.plain.chars().next() {
                let end = self.plain.find(|c: char| !is_word(c)).unwrap_or(self.plain.len());
                let (head, rest) =
                    self.plain.split_at(if end == 0 { first.len_utf8() } else { end });
                self.plain = rest;
                return if end == 0 { Head::Mark(first) } else { Head::Word(head) };
            }
            match self.pieces.next_piece() {
                Ok(Some(Piece::Plain(range))) => {
                    self.plain = self.sql.get(range).unwrap_or_default()
                }
                Ok(Some(Piece::Quoted(_))) => return Head::Quoted,
                Ok(Some(Piece::Comment(_))) => {}
                Ok(None) | Err(_) => return Head::End,
            }
        }
    }

    fn peek(&mut self) -> Head<'a> {
        let head = self.next();
        self.peeked = Some(head);
        head
    }

    /// `INTO mysql.rds_…` or `FROM mysql.rds_…` of the tables in which Amazon RDS keeps its heartbeats.
    fn is_rds_monitoring(&mut self) -> bool {
        let head = self.next();
        if !(head.is("INTO") || head.is("FROM"))
            || !self.next().is("MYSQL")
            || self.next() != Head::Mark('.')
        {
            return false;
        }
        let table = self.next();
        ["RDS_HEARTBEAT2", "RDS_SYSINFO", "RDS_MONITOR"].iter().any(|name| table.is(name))
    }

    fn is_ignored_flush(&mut self) -> bool {
        let mut head = self.next();
        if head.is("NO_WRITE_TO_BINLOG") || head.is("LOCAL") {
            head = self.next();
        }
        head.is("PRIVILEGES") || (head.is("RELAY") && self.next().is("LOGS"))
    }

    /// Whether CREATE, ALTER or DROP is about a view, a routine, a trigger, an account, a temporary table or a spatial
    /// reference system.
    fn names_what_is_filtered(&mut self) -> bool {
        loop {
            let Head::Word(word) = self.next() else { return false };
            match word.to_ascii_uppercase().as_str() {
                "OR" | "REPLACE" | "AGGREGATE" => {}
                "ALGORITHM" => self.skip_value(),
                "DEFINER" => {
                    self.skip_value();
                    if self.peek() == Head::Mark('(') {
                        self.next();
                        self.next();
                    }
                    if self.peek() == Head::Mark('@') {
                        self.next();
                        self.next();
                    }
                }
                "SQL" => {
                    self.next();
                    self.next();
                }
                "VIEW" | "FUNCTION" | "PROCEDURE" | "TRIGGER" | "PACKAGE" | "USER" | "ROLE"
                | "TEMPORARY" => {
                    return true;
                }
                "SPATIAL" => return self.next().is("REFERENCE"),
                _ => return false,
            }
        }
    }

    fn skip_value(&mut self) {
        if self.peek() == Head::Mark('=') {
            self.next();
        }
        self.next();
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || c >= '\u{80}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use StatementClass::{Begin, Commit, Ddl, Dml, Filtered, Rollback, Savepoint, Truncate, Xa};

    #[test]
    fn the_first_words_say_what_a_statement_is() {
        let cases = [
            ("BEGIN", Begin),
            ("/* x */ begin", Begin),
            ("START TRANSACTION", Begin),
            ("COMMIT", Commit),
            ("ROLLBACK", Rollback),
            ("ROLLBACK TO `s`", Savepoint),
            ("ROLLBACK WORK TO SAVEPOINT s", Savepoint),
            ("SAVEPOINT `s`", Savepoint),
            ("RELEASE SAVEPOINT s", Savepoint),
            ("XA START X'31',X'',1", Xa),
            ("INSERT INTO t VALUES (1)", Dml),
            ("insert\ninto t values ('x", Dml),
            ("UPDATE t SET a=1", Dml),
            ("DELETE FROM t", Dml),
            ("REPLACE t VALUES (1)", Dml),
            ("/* x */ REPLACE INTO t VALUES (1)", Dml),
            ("SET STATEMENT max_statement_time=1 FOR DELETE FROM t", Dml),
            ("TRUNCATE TABLE t", Truncate),
            ("truncate t", Truncate),
            ("CREATE TABLE t (a INT)", Ddl),
            ("CREATE TABLE `view` (a INT)", Ddl),
            ("CREATE DEFINER=`root`@`localhost` EVENT ev ON SCHEDULE EVERY 1 DAY DO SELECT 1", Ddl),
            ("ALTER EVENT e RENAME TO f", Ddl),
            ("SET STATEMENT x=1, y='FOR' FOR ALTER TABLE t ADD a INT", Ddl),
            ("SET STATEMENT x=1", Ddl),
            ("SET character_set_server=utf8mb4", Ddl),
            ("DROP INDEX i ON t", Ddl),
            ("CREATE SPATIAL INDEX i ON t (g)", Ddl),
            ("FLUSH TABLES", Ddl),
            ("(SELECT 1)", Ddl),
        ];
        for (sql, class) in cases {
            assert_eq!(classify(sql), class, "{sql}");
        }
    }

    #[test]
    fn what_debezium_filters_by_default_is_filtered() {
        let cases = [
            "",
            "   ",
            "# Dummy event replacing event type 160 that slave cannot handle.",
            "END",
            "FLUSH PRIVILEGES",
            "FLUSH RELAY LOGS FOR CHANNEL 'x'",
            "DROP TEMPORARY TABLE IF EXISTS `t` /* generated by server */",
            "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`",
            "CREATE TEMPORARY TABLE t (a INT)",
            "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,2) ON DUPLICATE KEY UPDATE value = 2",
            "DELETE FROM mysql.rds_sysinfo where name = 'x'",
            "GRANT SELECT ON *.* TO u",
            "revoke all on *.* from u",
            "ANALYZE TABLE t",
            "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t",
            "REPAIR LOCAL TABLE t",
            "CREATE USER 'u'@'%' IDENTIFIED BY 'x'",
            "DROP ROLE r",
            "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=CURRENT_USER SQL SECURITY DEFINER VIEW v AS SELECT 1",
            "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`%` SQL SECURITY INVOKER VIEW `v` AS select 1",
            "ALTER DEFINER = CURRENT_USER() VIEW v AS SELECT 1",
            "CREATE DEFINER=`a b`@`localhost` PROCEDURE p() BEGIN END",
            "CREATE DEFINER='root'@'localhost' TRIGGER t BEFORE INSERT ON x FOR EACH ROW ALTER TABLE t DROP a",
            "CREATE DEFINER=root@localhost FUNCTION f() RETURNS INT RETURN 1",
            "CREATE AGGREGATE FUNCTION f RETURNS INT SONAME 'x'",
            "DROP VIEW IF EXISTS v",
            "CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 990001 NAME 'x' DEFINITION 'y'",
            "DROP SPATIAL REFERENCE SYSTEM 990001",
            "SET STATEMENT a=1 FOR DROP PROCEDURE p",
        ];
        for sql in cases {
            assert_eq!(classify(sql), Filtered, "{sql}");
        }
    }
}
