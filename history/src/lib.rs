//! Schema history: what every table looked like at a position.

pub mod offset;
pub mod schema;

pub use schema::{Column, Table, TableId, Tables};
