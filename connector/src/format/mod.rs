//! Change records to bytes.

pub mod connect_schema;
pub mod debezium_json;
pub mod json;
