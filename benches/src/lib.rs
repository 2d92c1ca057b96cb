//! What the benchmarks share.
//!
//! [`corpus`] builds binlogs in memory, [`decode`] runs the decoder over them; [`history`] makes schema histories,
//! [`workload`] the SQL for real servers, [`render`] rows and what prints them. What is measured, and what came out, is in `benches/README.md`.

pub mod history;
pub mod peers;
pub mod render;
pub mod workload;

pub use holdfast_corpus::{callgrind, corpus, decode, pass, random};
