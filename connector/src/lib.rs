//! Change data capture from MySQL and MariaDB: configuration, engine, change records, acknowledgement.

pub mod convert;
pub mod filter;
pub mod format;
pub mod topic;
