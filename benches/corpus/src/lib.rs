//! Made-up binlogs for the benchmarks, and what is done with them.
//!
//! [`corpus`] builds binlogs in memory, the same on every run and machine and without a server. [`decode`] runs the
//! decoder over them, and [`pass`] measures it. `instructions` counts what decoding a row takes.

pub mod callgrind;
pub mod corpus;
pub mod decode;
pub mod pass;
pub mod random;
