//! Workloads for the benchmarks, and what is done with them.
//!
//! [`corpus`] builds binlogs in memory, the same on every run and machine and without a server. [`decode`] runs the
//! decoder over them; [`history`] makes schema histories. What is measured, and what came out, is in `benches/README.md`.

pub mod corpus;
pub mod decode;
pub mod history;
pub mod pass;
pub mod random;
