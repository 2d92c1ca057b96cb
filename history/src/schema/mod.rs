//! The table model: what every table looked like at a position.
//!
//! It is the model that Debezium keeps, since its records are what history files hold: the names, lengths and flags
//! of a [`Column`] are those that `tableChanges` prints, and [`ColumnType`] is derived from them.

mod collation;
mod column;
mod column_type;
mod jdbc;
mod table_id;
mod tables;

pub use collation::{bytes_per_character, charset_of_collation};
pub use column::{Column, DefaultValue};
pub use column_type::ColumnType;
pub use jdbc::JdbcType;
pub use table_id::{ParseTableIdError, TableId};
pub(crate) use tables::same_name;
pub use tables::{Database, Table, Tables};
