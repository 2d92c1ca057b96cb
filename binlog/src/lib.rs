//! MySQL and MariaDB binary logs: bytes to events to rows of physical values.

pub mod value;
pub mod wire;

pub use value::Value;
