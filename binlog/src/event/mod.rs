//! One file per kind of event: bytes in, a view of them out.

mod header;
pub mod rows;
pub mod table_map;

pub use header::{EventHeader, EventType};
