//! MySQL and MariaDB binary logs: bytes to events to rows of physical values.

mod error;
pub mod event;
pub mod value;
pub mod wire;

pub use error::{Error, ErrorClass, EventContext};
pub use value::Value;
