//! Schema history: what every table looked like at a position.

pub mod codec;
pub mod compare;
mod json;
pub mod offset;
pub mod record;
pub mod schema;

pub use offset::SourceOffset;
pub use record::{HistoryRecord, TableChange};
pub use schema::{Column, Table, TableId, Tables};
