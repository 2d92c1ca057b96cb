//! One type for a column, however its definition was written: `holdfast.uniform.types`.
//!
//! A snapshot has the definitions that the server prints, the stream those of the user's statements. Here the second become
//! the first.

use holdfast_history::schema::{Column, ColumnType, JdbcType};

use super::options::UniformTypes;

/// The column as the server names its type; none where it is that already.
#[expect(clippy::wildcard_enum_match_arm, reason = "most types have one name")]
pub(super) fn canonical(column: &Column, uniform: UniformTypes) -> Option<Column> {
    if uniform == UniformTypes::Off {
        return None;
    }
    let named = |type_name: &str, jdbc_type: JdbcType| Column {
        type_name: type_name.to_owned(),
        jdbc_type,
        ..column.clone()
    };
    let says = |word: &str| {
        column.type_name.split_ascii_whitespace().any(|part| part.eq_ignore_ascii_case(word))
    };
    let is_binary = says("BYTE")
        || column.charset.as_ref().is_some_and(|set| set.eq_ignore_ascii_case("binary"));
    match column.column_type() {
        ColumnType::Boolean => Some(Column {
            length: Some(1),
            ..named("TINYINT", JdbcType::from_type_name("TINYINT"))
        }),
        ColumnType::Double if says("REAL") => Some(named("DOUBLE", JdbcType::DOUBLE)),
        ColumnType::Char if is_binary => {
            Some(Column { length: column.length.or(Some(1)), ..named("BINARY", JdbcType::BINARY) })
        }
        ColumnType::Binary if column.length.is_none() => {
            Some(Column { length: Some(1), ..column.clone() })
        }
        ColumnType::VarChar if is_binary => Some(named("VARBINARY", JdbcType::VARBINARY)),
        ColumnType::Text if is_binary => Some(named("BLOB", JdbcType::BLOB)),
        ColumnType::Json if uniform == UniformTypes::MariaDb => Some(Column {
            charset: Some("utf8mb4".to_owned()),
            ..named("LONGTEXT", JdbcType::VARCHAR)
        }),
        _ => None,
    }
}
