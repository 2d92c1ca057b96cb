//! Labels of ENUM and SET columns.

use holdfast_history::schema::Column;

/// The labels of a column in definition order, in the two spellings that Debezium uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    /// While streaming: the text between the quotes of the definition, with quotes no longer doubled, backslashes as
    /// written, and a backslash before each comma.
    pub(crate) streamed: Vec<String>,
    /// The label that the server holds.
    pub(crate) plain: Vec<String>,
}

impl Labels {
    /// Reads labels as the table model has them: SQL text with its quotes.
    pub(crate) fn new(column: &Column) -> Self {
        let inner = |text: &String| {
            let text = text.strip_prefix('\'').unwrap_or(text);
            text.strip_suffix('\'').unwrap_or(text).replace("''", "'")
        };
        Self {
            streamed: column
                .enum_values
                .iter()
                .map(|text| inner(text).replace(',', "\\,"))
                .collect(),
            plain: column.enum_labels(),
        }
    }

    /// The streamed label of a one-based index; 0 is the empty error value.
    pub(crate) fn streamed(&self, index: u16) -> Option<&str> {
        label(&self.streamed, index)
    }

    /// The server's label of a one-based index; 0 is the empty error value.
    pub(crate) fn plain(&self, index: u16) -> Option<&str> {
        label(&self.plain, index)
    }
}

fn label(labels: &[String], index: u16) -> Option<&str> {
    match usize::from(index).checked_sub(1) {
        None => Some(""),
        Some(index) => labels.get(index).map(String::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::tests::column;

    /// Labels of `ENUM('','a b','c,d','it''s','q"q','back\\slash')` in Debezium 3.6.3.Final.
    #[test]
    fn labels_have_two_spellings() {
        let quoted = ["''", "'a b'", "'c,d'", "'it''s'", "'q\"q'", r"'back\\slash'"];
        let labels = Labels::new(&Column {
            enum_values: quoted.map(str::to_owned).into(),
            ..column("ENUM")
        });
        assert_eq!(labels.streamed, ["", "a b", r"c\,d", "it's", "q\"q", r"back\\slash"]);
        assert_eq!(labels.plain, ["", "a b", "c,d", "it's", "q\"q", r"back\slash"]);
        assert_eq!(labels.streamed(0), Some(""));
        assert_eq!(labels.streamed(2), Some("a b"));
        assert_eq!(labels.streamed(7), None);
    }
}
