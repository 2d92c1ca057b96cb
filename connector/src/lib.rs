//! Change data capture from MySQL and MariaDB: configuration, engine, change records, acknowledgement.

pub mod config;
pub mod convert;
pub mod filter;
pub mod format;
pub mod topic;

pub use config::Config;
