//! One file per kind of event: bytes in, a view of them out.

mod header;

pub use header::{EventHeader, EventType};
