//! Tests on real servers. One file per subject; servers are shared where the subject allows.
#![cfg(test)]

mod data;
mod kills;
mod servers;
mod xa;
