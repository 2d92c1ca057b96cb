//! MySQL and MariaDB binary logs: bytes to events to rows of physical values.

#[cfg(feature = "client")]
pub mod client;
mod error;
pub mod event;
pub mod file;
pub mod gtid;
pub mod position;
pub mod row;
pub mod stream;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod txn;
pub mod value;
pub mod wire;

#[cfg(feature = "client")]
pub use client::BinlogClient;
pub use error::{Error, ErrorClass, EventContext};
pub use event::{Event, EventData};
pub use gtid::{Gtid, GtidPos, GtidSet};
pub use position::{BinlogPosition, Coordinate};
pub use stream::EventStream;
pub use value::Value;
