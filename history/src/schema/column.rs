//! A column of the model.

use super::{ColumnType, JdbcType};

/// One column, with the members that Debezium's `tableChanges` print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name, case as written.
    pub name: String,
    /// Upper-cased DDL type with its modifiers, without length: `INT UNSIGNED`, `VARCHAR`, `ENUM`.
    pub type_name: String,
    /// The `java.sql.Types` code that Debezium gives this type.
    pub jdbc_type: JdbcType,
    /// Length or precision as the type has it: characters, digits, fraction digits, bits; ENUM 1, SET 2k-1.
    pub length: Option<i32>,
    /// Digits after the point.
    pub scale: Option<i32>,
    /// Character set of a character column, lower case, resolved when the definition was made.
    pub charset: Option<String>,
    /// Whether NULL is allowed.
    pub optional: bool,
    /// AUTO_INCREMENT, SERIAL or ON UPDATE, as Debezium sets it.
    pub auto_incremented: bool,
    /// Set together with `auto_incremented` by Debezium; generated columns are not marked.
    pub generated: bool,
    /// MariaDB: a generated column, stored or virtual, which images before a change may lack. Debezium does not know of
    /// it; on MySQL, whose images have such columns, it is never set.
    pub is_computed: bool,
    /// The default clause.
    pub default: DefaultValue,
    /// Column comment, where comments are kept.
    pub comment: Option<String>,
    /// Labels of an ENUM or SET in definition order, each as SQL text with its quotes (`'it''s'`).
    pub enum_values: Vec<String>,
}

/// The default clause of a column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DefaultValue {
    /// No default: `hasDefaultValue` false.
    #[default]
    Absent,
    /// `DEFAULT NULL`, given or implied by a nullable column: `hasDefaultValue` true, no expression.
    Null,
    /// The expression text that Debezium keeps, without the outer quotes.
    Expression(String),
}

/// The `type_name` of the column that MariaDB adds for the start of a row's life, when the DDL names none.
const ROW_START_TYPE: &str = "TIMESTAMP ROW START";
/// The `type_name` of the column that MariaDB adds for the end of a row's life, when the DDL names none.
const ROW_END_TYPE: &str = "TIMESTAMP ROW END";

impl Column {
    /// A nullable column without a length, a character set or a default.
    pub fn new(name: impl Into<String>, type_name: impl Into<String>, jdbc_type: JdbcType) -> Self {
        Self {
            name: name.into(),
            type_name: type_name.into(),
            jdbc_type,
            length: None,
            scale: None,
            charset: None,
            optional: true,
            auto_incremented: false,
            generated: false,
            is_computed: false,
            default: DefaultValue::Absent,
            comment: None,
            enum_values: Vec::new(),
        }
    }

    /// The two columns that `WITH SYSTEM VERSIONING` adds at the end of a table whose DDL names no period columns.
    /// They are in every row of the binlog and in no `SELECT *`; their type names tell them from columns of users.
    pub fn hidden_period() -> [Self; 2] {
        [("row_start", ROW_START_TYPE), ("row_end", ROW_END_TYPE)].map(|(name, type_name)| Self {
            length: Some(6),
            optional: false,
            ..Self::new(name, type_name, JdbcType::TIMESTAMP_WITH_TIMEZONE)
        })
    }

    /// Whether the column is one of [`Column::hidden_period`]: decoded, but never part of a record.
    pub fn is_hidden(&self) -> bool {
        self.type_name == ROW_START_TYPE || self.type_name == ROW_END_TYPE
    }

    /// What the type is to decoding and conversion.
    pub fn column_type(&self) -> ColumnType {
        ColumnType::from_type_name(&self.type_name, self.length, self.scale)
    }

    /// Whether an integer, decimal or floating point type has no sign; ZEROFILL implies it.
    pub fn is_unsigned(&self) -> bool {
        let mut words = self.type_name.split_ascii_whitespace();
        words.any(|word| {
            ["UNSIGNED", "ZEROFILL", "SERIAL"].iter().any(|w| word.eq_ignore_ascii_case(w))
        })
    }

    /// The labels of an ENUM or SET without quotes and escapes, in definition order.
    pub fn enum_labels(&self) -> Vec<String> {
        self.enum_values.iter().map(|text| unquote_label(text)).collect()
    }
}

/// Takes the quotes off a label and resolves doubled quotes and backslash escapes. A text without quotes is a label
/// as it stands.
fn unquote_label(text: &str) -> String {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        return text.to_owned();
    };
    let inner = text.strip_prefix(quote).unwrap_or(text);
    let inner = inner.strip_suffix(quote).unwrap_or(inner);
    crate::ddl::unescape(inner, quote, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lose_quotes_and_escapes() {
        let mut column = Column::new("e", "ENUM", JdbcType::CHAR);
        column.enum_values =
            [r"'a'", r"'it''s'", r"'back\\slash'", r"''", r#"'q"q'"#, "bare", r"'a\'b'", "'"]
                .map(str::to_owned)
                .to_vec();
        assert_eq!(
            column.enum_labels(),
            ["a", "it's", r"back\slash", "", "q\"q", "bare", "a'b", ""]
        );
    }

    #[test]
    fn zerofill_has_no_sign() {
        for (name, expected) in [
            ("INT", false),
            ("INT ZEROFILL", true),
            ("bigint unsigned", true),
            ("INT SIGNED", false),
        ] {
            assert_eq!(Column::new("c", name, JdbcType::INTEGER).is_unsigned(), expected, "{name}");
        }
    }

    #[test]
    fn period_columns_of_the_server_are_hidden_and_decoded_as_timestamps() {
        for column in Column::hidden_period() {
            assert!(column.is_hidden());
            assert_eq!(column.column_type(), ColumnType::Timestamp);
        }
        assert!(
            !Column::new("row_start", "TIMESTAMP", JdbcType::TIMESTAMP_WITH_TIMEZONE).is_hidden()
        );
    }
}
