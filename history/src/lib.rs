//! Schema history: what every table looked like at a position.

mod json;
pub mod offset;
pub mod schema;

pub use offset::SourceOffset;
pub use schema::{Column, Table, TableId, Tables};
