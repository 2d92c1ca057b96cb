//! The table model: what every table looked like at a position.
//!
//! It is the model that Debezium keeps, since its records are what history files hold: the names, lengths and flags
//! of a [`Column`] are those that `tableChanges` prints, and [`ColumnType`] is derived from them.

mod column;
mod jdbc;
mod tables;

pub use column::{Column, ColumnType, DefaultValue};
pub use jdbc::JdbcType;
pub use tables::{Database, Table, TableId, Tables};
