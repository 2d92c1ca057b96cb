//! Change data capture from MySQL and MariaDB: configuration, engine, change records, acknowledgement.

pub mod ack;
mod assemble;
mod available;
mod batch;
mod charset;
pub mod check;
mod committer;
pub mod config;
mod control;
pub mod convert;
mod current;
pub mod decode;
mod engine;
mod error;
mod events;
pub mod filter;
pub mod format;
pub mod history_tool;
mod identity;
mod initial;
pub mod metrics;
pub mod offset;
pub mod offset_store;
mod record;
pub mod refresh;
pub mod set_offset;
mod source;
mod stores;
pub mod table_store;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
pub mod topic;
mod transaction;
mod transform;

pub use ack::AckGroup;
pub use batch::Batch;
pub use config::Config;
pub use control::{Control, EngineState, Status};
pub use current::current_offset;
pub use engine::{Engine, EngineBuilder};
pub use error::{
    ConvertFailed, DdlFailure, DefinitionOrigin, DumpFailure, Error, ErrorClass, Mismatch,
    RowFailure,
};
pub use format::debezium_json::Op;
pub use identity::{EventId, EventIdError};
pub use initial::SnapshotState;
pub use offset_store::OffsetStore;
pub use record::{ChangeRecord, RecordKind};
pub use transform::TransformConfig;

/// The guide's code compiles and runs.
#[cfg(all(doctest, feature = "testkit"))]
#[doc = include_str!("../../docs/embedding.md")]
#[derive(Debug)]
pub struct EmbeddingGuide;
