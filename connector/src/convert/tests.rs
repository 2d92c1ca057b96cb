use super::*;
use holdfast_history::schema::DefaultValue;

/// A nullable column without a length, a character set or a default.
pub(super) fn column(type_name: &str) -> Column {
    Column {
        name: "c".to_owned(),
        type_name: type_name.to_owned(),
        jdbc_type: JdbcType::OTHER,
        length: None,
        scale: None,
        charset: None,
        optional: true,
        auto_incremented: false,
        generated: false,
        default: DefaultValue::Absent,
        comment: None,
        enum_values: Vec::new(),
    }
}
