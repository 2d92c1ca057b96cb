//! Tests on real servers. One file per subject; servers are shared where the subject allows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod servers;
