//! Definitions from SQL text: a dump without data, or statements by hand.

use holdfast_history::Tables;
use holdfast_history::ddl::{self, DdlContext, DdlEventKind, Flavor};

use super::DecodeError;

/// Applies the statements of a text to `tables`, one after the other. `USE` sets the database of those that follow.
pub(super) fn apply(
    name: &str,
    text: &str,
    flavor: Flavor,
    tables: &mut Tables,
) -> Result<(), DecodeError> {
    let mut context = DdlContext { flavor, ..DdlContext::default() };
    for (offset, statement) in Statements::new(text) {
        let events = ddl::apply_statement(statement, &context, tables).map_err(|source| {
            let before = text.get(..offset).unwrap_or_default();
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            DecodeError::Schema { name: name.to_owned(), line, source: Box::new(source) }
        })?;
        let is_use = statement.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("USE"));
        if let (true, Some(event)) = (is_use, events.first())
            && event.kind == DdlEventKind::Database
        {
            context.database = Some(event.database.clone());
        }
    }
    Ok(())
}

/// The statements of a text with their offsets, without comments and space in front, and without the `;`.
struct Statements<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Statements<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, offset: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.rest();
            let first = rest.chars().next()?;
            if first.is_whitespace() || first == ';' {
                self.offset += first.len_utf8();
                continue;
            }
            match comment(rest) {
                Some(length) if !is_version_comment(rest) => self.offset += length,
                _ => break,
            }
        }
        let start = self.offset;
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else { break };
            self.offset += match first {
                ';' => break,
                '\'' | '"' | '`' => quoted(rest, first),
                _ => comment(rest).unwrap_or_else(|| first.len_utf8()),
            };
        }
        let end = self.offset;
        self.text.get(start..end).map(|statement| (start, statement.trim_end()))
    }
}

/// Comments whose text is a statement: `/*!` and MariaDB's `/*M!`.
fn is_version_comment(text: &str) -> bool {
    text.starts_with("/*!") || text.starts_with("/*M!")
}

/// Length of the comment that `text` begins with, bytes.
fn comment(text: &str) -> Option<usize> {
    let dashes = text.strip_prefix("--").is_some_and(|rest| {
        rest.chars().next().is_none_or(|next| next.is_whitespace() || next.is_control())
    });
    if dashes || text.starts_with('#') {
        Some(text.find('\n').map_or(text.len(), |end| end + 1))
    } else if text.starts_with("/*") {
        let end = text.get(2..).and_then(|rest| rest.find("*/"));
        Some(end.map_or(text.len(), |end| end + 4))
    } else {
        None
    }
}

/// Length of the quoted text that `text` begins with, quotes included, bytes. A doubled quote is two quoted texts, which
/// comes to the same.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices().skip(1);
    while let Some((index, character)) = chars.next() {
        if character == quote {
            return index + 1;
        }
        if character == '\\' && quote != '`' {
            chars.next();
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_semicolons_outside_quotes_and_comments() {
        let text = "-- first; line\n# second;\n/* a; b */ CREATE TABLE `a;b` (c INT COMMENT 'x;\\'y' /* ; */);;\n\
                    /*!40101 SET x = 1 */;\n\n  USE d ; SELECT \"q;\"\"q\" -- end;\n";
        let found: Vec<(usize, &str)> = Statements::new(text).collect();
        let statements: Vec<&str> = found.iter().map(|(_, statement)| *statement).collect();
        assert_eq!(
            statements,
            [
                "CREATE TABLE `a;b` (c INT COMMENT 'x;\\'y' /* ; */)",
                "/*!40101 SET x = 1 */",
                "USE d",
                "SELECT \"q;\"\"q\" -- end;",
            ]
        );
        for (offset, statement) in found {
            assert!(text[offset..].starts_with(statement));
        }
        for torn in ["'", "`a", "/* x", "--", "a\\"] {
            assert!(Statements::new(torn).count() <= 1, "{torn}");
        }
    }

    #[test]
    fn statements_are_applied_in_order_and_errors_name_the_line() {
        let mut tables = Tables::default();
        let text = "USE d;\nCREATE TABLE t (a INT);\nALTER TABLE t ADD b INT;\nUSE `e`;\nCREATE TABLE u (c INT);";
        apply("s.sql", text, Flavor::MySql, &mut tables).unwrap();
        let found: Vec<String> =
            tables.iter().map(|table| format!("{} {}", table.id, table.columns.len())).collect();
        assert_eq!(found, ["d.t 2", "e.u 1"]);
        let error = apply("s.sql", "\n-- x\nCREATE TABLE t (a INT);", Flavor::MySql, &mut tables);
        let error = error.unwrap_err().chain();
        assert!(
            error.starts_with(
                "s.sql, line 3: the statement can't be understood: no database for table t"
            ),
            "{error}"
        );
    }
}
