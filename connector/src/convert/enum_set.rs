//! Labels of ENUM and SET columns.

use holdfast_history::schema::Column;

use crate::format::json as token;

/// The labels of a column in definition order.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    /// The labels that the server holds, which are the values.
    ///
    /// DIFFERS: while streaming, Debezium 3.6 prints them with the escapes and trailing blanks of the definition, and with
    /// a backslash before each comma.
    pub(crate) values: Vec<String>,
    /// The schema parameter `allowed`: the labels between the quotes of the definition, with quotes no longer doubled,
    /// backslashes as written, and a backslash before each comma of a label, with commas between them.
    pub(crate) allowed: String,
    /// The values as JSON: each in quotes for an ENUM, each behind a comma for a SET.
    printed: Vec<token::Constant>,
}

impl Labels {
    /// The labels of an ENUM.
    pub(crate) fn of_enum(column: &Column) -> Self {
        let mut this = Self::new(column);
        this.print(token::write_string);
        this
    }

    /// The labels of a SET.
    pub(crate) fn of_set(column: &Column) -> Self {
        let mut this = Self::new(column);
        this.print(|label, out| {
            out.push(b',');
            token::write_escaped(label, out);
        });
        this
    }

    fn print(&mut self, print: impl Fn(&str, &mut Vec<u8>)) {
        let mut room = Vec::new();
        let printed = self.values.iter().map(|label| {
            room.clear();
            print(label, &mut room);
            token::Constant::new(&room)
        });
        self.printed = printed.collect();
    }

    /// Reads labels as the table model has them: SQL text with its quotes.
    fn new(column: &Column) -> Self {
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
        Self { values, allowed: allowed.join(","), printed: Vec::new() }
    }

    /// The label of a one-based index; 0 is the empty error value.
    pub(crate) fn value(&self, index: u16) -> Option<&str> {
        match usize::from(index).checked_sub(1) {
            None => Some(""),
            Some(index) => self.values.get(index).map(String::as_str),
        }
    }

    /// Appends the label of an ENUM's index as JSON; appends nothing and gives `false` where there is none.
    #[inline]
    pub(crate) fn write_one(&self, index: u16, out: &mut Vec<u8>) -> bool {
        match usize::from(index).checked_sub(1) {
            None => out.extend_from_slice(b"\"\""),
            Some(index) => match self.printed.get(index) {
                Some(label) => label.write(out),
                None => return false,
            },
        }
        true
    }

    /// Appends the labels of a SET whose bit is set as JSON, in definition order. Bits beyond the labels have none.
    #[inline]
    pub(crate) fn write_chosen(&self, bits: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let mut rest = bits;
        while rest != 0 {
            if let Some(label) = self.printed.get(rest.trailing_zeros() as usize) {
                label.write(out);
            }
            rest &= rest - 1;
        }
        // The quote takes the place of the first comma.
        match out.get_mut(start) {
            Some(comma) => *comma = b'"',
            None => out.push(b'"'),
        }
        out.push(b'"');
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
        let labels = Labels::of_enum(&column);
        // The values of Debezium 3.6.3.Final while streaming are the parts of this text.
        assert_eq!(labels.allowed, r#",a b,c\,d,it's,q"q,back\\slash,k\'2,trail "#);
        assert_eq!(
            labels.values,
            ["", "a b", "c,d", "it's", "q\"q", r"back\slash", "k'2", "trail"]
        );
        assert_eq!(labels.value(0), Some(""));
        assert_eq!(labels.value(2), Some("a b"));
        assert_eq!(labels.value(9), None);
        let binary = Labels::of_enum(&Column { charset: Some("binary".to_owned()), ..column });
        assert_eq!(binary.value(8), Some("trail "));
    }

    #[test]
    fn labels_are_printed_escaped() {
        let printed = |write: &dyn Fn(&mut Vec<u8>) -> bool| {
            let mut out = b"[".to_vec();
            write(&mut out).then(|| String::from_utf8(out.split_off(1)).unwrap())
        };
        let long = format!("'{}'", "x".repeat(40));
        let quoted = ["'a'", "'b \"q\"'", "''", &long];
        let column = Column { enum_values: quoted.map(str::to_owned).into(), ..column("ENUM") };
        let labels = Labels::of_enum(&column);
        let one = |index| printed(&|out| labels.write_one(index, out));
        assert_eq!(one(0).as_deref(), Some(r#""""#));
        assert_eq!(one(2).as_deref(), Some(r#""b \"q\"""#));
        assert_eq!(one(4), Some(long.replace('\'', "\"")));
        assert_eq!(one(5), None);
        let labels = Labels::of_set(&column);
        let chosen = |bits| {
            let write = |out: &mut Vec<u8>| {
                labels.write_chosen(bits, out);
                true
            };
            printed(&write).unwrap()
        };
        assert_eq!(chosen(0), r#""""#);
        assert_eq!(chosen(1 << 40), r#""""#);
        assert_eq!(chosen(0b10), r#""b \"q\"""#);
        assert_eq!(chosen(0b111), r#""a,b \"q\",""#);
    }
}
