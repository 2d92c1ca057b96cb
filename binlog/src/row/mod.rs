//! Rows: from the table map's columns to the images of a rows event.

mod image;
mod plan;
mod reader;

pub use image::{Row, RowImage};
pub use plan::{RowPlan, WireType};
pub use reader::{RowError, RowReader, RowSink, Side};

#[cfg(test)]
mod tests;
