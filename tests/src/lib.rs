//! Tests on real servers and against the reference engine.
//!
//! [`server`] starts MySQL and MariaDB, [`engine`] starts Holdfast or the real Debezium as a child process on the same
//! properties, [`normalise`] says what "the same record" means, [`case`](mod@case) runs the folders of `tests/cases`,
//! [`golden`] those of `tests/golden`, [`takeover`] has one engine go on where the other has stopped, [`refreshed`] has the
//! real Debezium go on after a refresh, [`workload`] makes random workloads for both, [`faults`] harms connections, and [`fuzz`] is what the fuzz targets call.
//!
//! Everything here is blocking and fails loudly: a server or an engine that cannot be had is an error, never a skip.

pub mod case;
pub mod comparator;
pub mod engine;
pub mod expect;
mod failure;
pub mod faults;
pub mod fuzz;
pub mod golden;
pub mod json;
pub mod normalise;
pub mod paths;
pub mod random;
pub mod refreshed;
pub mod replica;
pub mod s3;
pub mod server;
pub mod takeover;
mod wait;
pub mod workload;

pub use failure::{Context, Failure, Result};
