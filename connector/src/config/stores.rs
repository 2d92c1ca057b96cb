//! Where the schema history and the offset are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_history::store::ObjectUrl;

use super::{Checked, OnMismatch, SchemaSource, check, jdbc, objects};
use crate::table_store::TableLocation;

/// Where something is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// One file.
    File {
        /// Its path; a relative one is relative to the working directory, as in Debezium.
        path: PathBuf,
    },
    /// A table of a MySQL or MariaDB, in the layout of Debezium's JDBC stores.
    Table(Box<TableLocation>),
    /// Object storage or a folder, by a URL (`holdfast.history.url`, `holdfast.offsets.url`).
    Objects(Box<ObjectUrl>),
    /// Nowhere: gone when the process ends.
    Memory,
}

/// The schema history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// `schema.history.internal` and the settings of the class.
    pub store: StoreKind,
    /// `….store.only.captured.tables.ddl`.
    pub only_captured_tables: bool,
    /// `….store.only.captured.databases.ddl`.
    pub only_captured_databases: bool,
    /// `….skip.unparseable.ddl`.
    pub skip_unparseable: bool,
    /// `….prefer.ddl`: recover from the statements, not from the stored definitions.
    pub prefer_ddl: bool,
    /// `holdfast.history.checkpoint.records`: after how many records a checkpoint is written; 0 for none, also to read.
    pub checkpoint_records: usize,
    /// `holdfast.history.on.mismatch`: what a row that does not fit its definition leads to.
    pub on_mismatch: OnMismatch,
    /// `holdfast.schema.source`: where definitions of tables come from.
    pub source: SchemaSource,
    /// For tests; see [`CompareContext::event_times_decide`](holdfast_history::compare::CompareContext).
    #[doc(hidden)]
    pub event_times_decide: bool,
}

/// The stored offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetConfig {
    /// `offset.storage` and the settings of the class.
    pub store: StoreKind,
    /// `offset.flush.interval.ms`: time between two stores; zero stores with each batch.
    pub flush_interval: Duration,
}

impl Checked<'_> {
    pub(super) fn history(&mut self, base_dir: &Path, topic_prefix: &str) -> HistoryConfig {
        HistoryConfig {
            event_times_decide: false,
            store: self.history_store(base_dir, topic_prefix),
            only_captured_tables: self
                .bool("schema.history.internal.store.only.captured.tables.ddl"),
            only_captured_databases: self
                .bool("schema.history.internal.store.only.captured.databases.ddl"),
            skip_unparseable: self.bool("schema.history.internal.skip.unparseable.ddl"),
            prefer_ddl: self.bool("schema.history.internal.prefer.ddl")
                || self.bool("internal.schema.history.internal.prefer.ddl"),
            checkpoint_records: self.integer("holdfast.history.checkpoint.records"),
            on_mismatch: if self
                .text("holdfast.history.on.mismatch")
                .trim()
                .eq_ignore_ascii_case("refresh")
            {
                OnMismatch::Refresh
            } else {
                OnMismatch::Fail
            },
            source: match self.text("holdfast.schema.source").trim() {
                source if source.eq_ignore_ascii_case("metadata") => SchemaSource::Metadata,
                _ => SchemaSource::History,
            },
        }
    }

    pub(super) fn offsets(&mut self, base_dir: &Path, topic_prefix: &str) -> OffsetConfig {
        OffsetConfig {
            store: self.offset_store(base_dir, topic_prefix),
            flush_interval: self.flush_interval(),
        }
    }

    fn flush_interval(&mut self) -> Duration {
        let policy = self.text("offset.commit.policy");
        // Written as a nested class with `.` or `$`.
        match policy.rsplit(['.', '$']).next() {
            Some("AlwaysCommitOffsetPolicy") => return Duration::ZERO,
            Some("PeriodicCommitOffsetPolicy") => {}
            Some(_) | None => {
                self.unsupported(
                    "offset.commit.policy",
                    "there are AlwaysCommitOffsetPolicy and PeriodicCommitOffsetPolicy",
                );
            }
        }
        self.millis("offset.flush.interval.ms")
    }

    fn history_store(&mut self, base_dir: &Path, topic_prefix: &str) -> StoreKind {
        const CLASS: &str = "schema.history.internal";
        const FILE: &str = "schema.history.internal.file.filename";
        if let Some(store) = self.object_store(objects::HISTORY, CLASS) {
            return store;
        }
        let class = self.properties.get(CLASS).map(str::trim);
        let file = self.filled(FILE).map(PathBuf::from);
        match (class, file) {
            (Some("io.debezium.relational.history.MemorySchemaHistory"), _) => StoreKind::Memory,
            (Some("io.debezium.storage.jdbc.history.JdbcSchemaHistory"), _) => self
                .table_location(&jdbc::HISTORY, base_dir)
                .map_or(StoreKind::Memory, |location| StoreKind::Table(Box::new(location))),
            (Some("io.debezium.storage.file.history.FileSchemaHistory") | None, Some(path)) => {
                StoreKind::File { path }
            }
            (Some("io.debezium.storage.file.history.FileSchemaHistory"), None) => {
                self.invalid(FILE, check::REQUIRED);
                StoreKind::Memory
            }
            (Some(_), _) => {
                self.unsupported(
                    CLASS,
                    "this store is not there; there are io.debezium.storage.file.history.FileSchemaHistory, \
                     io.debezium.storage.jdbc.history.JdbcSchemaHistory and \
                     io.debezium.relational.history.MemorySchemaHistory",
                );
                StoreKind::Memory
            }
            (None, None) => self.default_store(
                CLASS,
                base_dir.join("holdfast-data").join(format!("{topic_prefix}.history.jsonl")),
            ),
        }
    }

    fn offset_store(&mut self, base_dir: &Path, topic_prefix: &str) -> StoreKind {
        const CLASS: &str = "offset.storage";
        const FILE: &str = "offset.storage.file.filename";
        match self.object_store(objects::OFFSETS, CLASS) {
            // One file has to be replaced as a whole, which OpenDAL does not do there.
            Some(StoreKind::Objects(url)) if url.is_file() => {
                return StoreKind::File { path: Path::new("/").join(url.path()) };
            }
            Some(store) => return store,
            None => {}
        }
        let class = self.properties.get(CLASS).map(str::trim);
        let file = self.filled(FILE).map(PathBuf::from);
        match (class, file) {
            (Some("org.apache.kafka.connect.storage.MemoryOffsetBackingStore"), _) => {
                StoreKind::Memory
            }
            (Some("io.debezium.storage.jdbc.offset.JdbcOffsetBackingStore"), _) => self
                .table_location(&jdbc::OFFSETS, base_dir)
                .map_or(StoreKind::Memory, |location| StoreKind::Table(Box::new(location))),
            (
                Some("org.apache.kafka.connect.storage.FileOffsetBackingStore") | None,
                Some(path),
            ) => StoreKind::File { path },
            (Some("org.apache.kafka.connect.storage.FileOffsetBackingStore"), None) => {
                self.invalid(FILE, check::REQUIRED);
                StoreKind::Memory
            }
            (Some(_), _) => {
                self.unsupported(
                    CLASS,
                    "this store is not there; there are org.apache.kafka.connect.storage.FileOffsetBackingStore, \
                     io.debezium.storage.jdbc.offset.JdbcOffsetBackingStore and \
                     org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
                );
                StoreKind::Memory
            }
            (None, None) => self.default_store(
                CLASS,
                base_dir.join("holdfast-data").join(format!("{topic_prefix}.offsets.json")),
            ),
        }
    }

    fn default_store(&mut self, property: &str, path: PathBuf) -> StoreKind {
        self.note(property, format!("not set: stored in {}", path.display()));
        StoreKind::File { path }
    }
}
