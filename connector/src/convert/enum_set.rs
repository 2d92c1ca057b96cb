//! Labels of ENUM and SET columns.

use holdfast_history::schema::Column;

/// The labels of a column in definition order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    /// The labels that the server holds, which are the values.
    ///
    /// DIFFERS: while streaming, Debezium 3.6 prints them with the escapes and trailing blanks of the definition, and with
    /// a backslash before each comma.
    pub(crate) values: Vec<String>,
    /// The schema parameter `allowed`: the labels between the quotes of the definition, with quotes no longer doubled,
    /// backslashes as written, and a backslash before each comma of a label, with commas between them.
    pub(crate) allowed: String,
}

impl Labels {
    /// Reads labels as the table model has them: SQL text with its quotes.
    pub(crate) fn new(column: &Column) -> Self {
        let inner = |text: &String| {
            let text = text.strip_prefix('\'').unwrap_or(text);
            text.strip_suffix('\'').unwrap_or(text).replace("''", "'").replace(',', "\\,")
        };
        let allowed: Vec<String> = column.enum_values.iter().map(inner).collect();
        let mut values = column.enum_labels();
        // The server drops trailing blanks when it creates the table, but not in the binary character set (MySQL
        // manual, "The ENUM Type").
        if !column.charset.as_ref().is_some_and(|charset| charset.eq_ignore_ascii_case("binary")) {
            for label in &mut values {
                label.truncate(label.trim_end_matches(' ').len());
            }
        }
        Self { values, allowed: allowed.join(",") }
    }

    /// The label of a one-based index; 0 is the empty error value.
    pub(crate) fn value(&self, index: u16) -> Option<&str> {
        match usize::from(index).checked_sub(1) {
            None => Some(""),
            Some(index) => self.values.get(index).map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::tests::column;

    #[test]
    fn values_are_plain_and_the_schema_has_the_spelling_of_the_definition() {
        let quoted =
            ["''", "'a b'", "'c,d'", "'it''s'", "'q\"q'", r"'back\\slash'", r"'k\'2'", "'trail '"];
        let column = Column { enum_values: quoted.map(str::to_owned).into(), ..column("ENUM") };
        let labels = Labels::new(&column);
        // The values of Debezium 3.6.3.Final while streaming are the parts of this text.
        assert_eq!(labels.allowed, r#",a b,c\,d,it's,q"q,back\\slash,k\'2,trail "#);
        assert_eq!(
            labels.values,
            ["", "a b", "c,d", "it's", "q\"q", r"back\slash", "k'2", "trail"]
        );
        assert_eq!(labels.value(0), Some(""));
        assert_eq!(labels.value(2), Some("a b"));
        assert_eq!(labels.value(9), None);
        let binary = Labels::new(&Column { charset: Some("binary".to_owned()), ..column });
        assert_eq!(binary.value(8), Some("trail "));
    }
}
