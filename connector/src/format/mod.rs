//! Change records to bytes.

pub mod debezium_json;
pub mod json;
