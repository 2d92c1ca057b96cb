//! Schema history: what every table looked like at a position.

mod ahead;
pub mod codec;
pub mod compare;
pub mod cross_check;
pub mod ddl;
pub mod error;
mod json;
pub mod offset;
pub mod record;
pub mod recover;
pub mod schema;
pub mod store;

pub use ahead::Ahead;
pub use cross_check::ShapeMismatch;
pub use error::{Error, ErrorClass};
pub use offset::SourceOffset;
pub use record::{HistoryRecord, TableChange};
pub use recover::{Recovered, ReplayGuard, recover, recover_store};
pub use schema::{Column, Table, TableId, Tables};
pub use store::HistoryStore;
