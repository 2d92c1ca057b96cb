//! Configuration from a Debezium properties file.
//!
//! [`Properties`] reads the file form; [`Config::from_properties`] checks all of it at once and makes the form that the
//! engine takes. Nothing reads the file or the environment later. `docs/configuration.md` lists every property.

mod check;
mod checked;
mod columns;
mod connection;
mod error;
mod events;
mod jdbc;
mod known;
mod modes;
mod objects;
mod properties;
mod queue;
mod snapshot;
mod stores;
mod table;
#[cfg(test)]
mod tests;
mod topics;
mod transforms;
#[cfg(test)]
mod validation;

use std::path::Path;
use std::time::Duration;

use holdfast_history::ddl;

pub use check::SkippedOperations;
use checked::Checked;
pub use columns::ColumnRules;
pub use connection::ConnectionConfig;
pub use error::{ConfigError, ConfigErrors, Note};
pub use events::EventConfig;
pub use modes::{
    ConfiguredSnapshot, GuardrailAction, LockingMode, OnMismatch, SchemaSource, SnapshotMode,
    SnapshotRules, SslMode, StartState, TableOrder, UnknownName,
};
pub use properties::{Properties, Property, Secret, SyntaxError};
pub(crate) use queue::BATCH_BYTES;
pub use queue::QueueConfig;
pub use snapshot::SnapshotConfig;
pub use stores::{HistoryConfig, OffsetConfig, StoreKind};

use crate::convert::ConversionOptions;
use crate::filter::{ColumnFilter, DatabaseFilter, KeyColumns, Selection, TableFilter};
use crate::topic::{NameAdjustment, TopicNaming};
use crate::transform::{Chain, TransformConfig, WithSchemas};

/// Which server, and with it which connector of Debezium's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavor {
    /// `io.debezium.connector.mysql.MySqlConnector`.
    #[default]
    MySql,
    /// `io.debezium.connector.mariadb.MariaDbConnector`.
    MariaDb,
}

impl Flavor {
    /// Debezium's name of the connector, as `source.connector` has it.
    #[must_use]
    pub fn connector_name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::MariaDb => "mariadb",
        }
    }
}

/// A configuration that was checked. Made by [`Config::from_properties`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `name`: the engine's name, a part of the key of stored offsets; the topic prefix when absent.
    pub name: String,
    /// `topic.prefix`: the source's name.
    pub topic_prefix: String,
    /// `connector.class`.
    pub connector: Flavor,
    /// How to reach the server.
    pub connection: ConnectionConfig,
    /// Which tables are captured.
    pub tables: TableFilter,
    /// Which columns appear in `before` and `after`.
    pub columns: ColumnFilter,
    /// What is set for single columns: masks and the like, converters.
    pub column_rules: ColumnRules,
    /// `message.key.columns`.
    pub key_columns: KeyColumns,
    /// `guardrail.collections.max` and its action; `None` for no limit.
    pub guardrail: Option<(u32, GuardrailAction)>,
    /// `topic.*`: all topic names.
    pub topics: TopicNaming,
    /// `schema.name.adjustment.mode`: names of schemas, which only records with schemas show.
    pub schema_names: NameAdjustment,
    /// `field.name.adjustment.mode`: fields of keys and values.
    pub field_names: NameAdjustment,
    /// How values are written.
    pub conversion: ConversionOptions,
    /// Which records are written.
    pub events: EventConfig,
    /// What is done with finished records.
    pub transforms: TransformConfig,
    /// Transactions of which sources count.
    pub gtids: GtidConfig,
    /// What is read at start.
    pub snapshot: SnapshotConfig,
    /// The schema history.
    pub history: HistoryConfig,
    /// The stored offset.
    pub offsets: OffsetConfig,
    /// Memory, batches and waiting.
    pub queue: QueueConfig,
    /// `errors.max.retries`: restarts after errors that may pass; `None` for no limit.
    pub max_retries: Option<u32>,
    /// `retriable.restart.connector.wait.ms`: the wait before such a restart.
    pub retry_wait: Duration,
    /// `executor.shutdown.timeout.ms`: how long stopping may take.
    pub shutdown_timeout: Duration,
    /// `holdfast.headers.identity`: write the event identity as header `__holdfast.id`.
    pub identity_header: bool,
    /// `holdfast.source.id`: names the log in the lineage of offsets, instead of the server's UUID.
    pub source_id: Option<String>,
}

/// Transactions of which sources count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidConfig {
    /// `gtid.source.includes`, `gtid.source.excludes`: patterns on the server UUID (MariaDB: `domain-server`).
    pub sources: Selection,
    /// `gtid.source.filter.dml.events`: leave out rows of the other sources too.
    pub filter_rows: bool,
    /// `gtid.ignore.on.recovery`: resume by file and position.
    pub ignore_on_recovery: bool,
}

impl Config {
    /// Whether the server is a MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.connector == Flavor::MariaDb
    }

    /// What `source.snapshot` says of streamed records: the field is not set, and has the default `false`.
    pub(crate) fn streamed_mark(&self) -> Option<&'static str> {
        self.conversion.value_json.replace_null_with_default.then_some("false")
    }

    /// What finished records go through.
    pub(crate) fn chain(&self) -> Option<Chain> {
        let EventConfig { key_schemas, value_schemas, header_schemas, .. } = self.events;
        let schemas =
            WithSchemas { key: key_schemas, value: value_schemas, header: header_schemas };
        Chain::new(&self.transforms, schemas)
    }

    /// Whose syntax the server's statements follow.
    pub(crate) fn ddl_flavor(&self) -> ddl::Flavor {
        match self.connector {
            Flavor::MySql => ddl::Flavor::MySql,
            Flavor::MariaDb => ddl::Flavor::MariaDb,
        }
    }

    /// Checks `properties`. `base_dir` is the directory of the file: stores that it does not name are put under
    /// `holdfast-data/` there. The notes are to be logged at start.
    ///
    /// # Errors
    ///
    /// [`ConfigErrors`] with everything that is wrong: unknown properties, wrong values, and properties that would
    /// change what happens and cannot be honoured yet.
    pub fn from_properties(
        properties: &Properties,
        base_dir: &Path,
    ) -> Result<(Self, Vec<Note>), ConfigErrors> {
        let mut checked = Checked::new(properties);
        checked.check_properties();
        checked.check_pairs();
        let config = checked.config(base_dir);
        if checked.errors.is_empty() {
            Ok((config, checked.notes))
        } else {
            Err(ConfigErrors(checked.errors))
        }
    }
}

impl Checked<'_> {
    fn config(&mut self, base_dir: &Path) -> Config {
        let topic_prefix = self.text("topic.prefix").to_owned();
        let name = match self.filled("name") {
            Some(name) => name.to_owned(),
            None => {
                self.note("name", "not set: the topic prefix names the engine in stored offsets");
                topic_prefix.clone()
            }
        };
        Config {
            connector: self.flavor,
            connection: self.connection(base_dir),
            tables: TableFilter {
                databases: DatabaseFilter {
                    selection: Selection::new(
                        self.list("database.include.list"),
                        self.list("database.exclude.list"),
                    ),
                    ignore_built_in: self.bool("table.ignore.builtin"),
                },
                selection: Selection::new(
                    self.list("table.include.list"),
                    self.list("table.exclude.list"),
                ),
            },
            columns: ColumnFilter {
                selection: Selection::new(
                    self.list("column.include.list"),
                    self.list("column.exclude.list"),
                ),
            },
            column_rules: self.column_rules(),
            key_columns: self
                .filled("message.key.columns")
                .and_then(|text| KeyColumns::parse(text).ok())
                .unwrap_or_default(),
            guardrail: Some(self.integer("guardrail.collections.max")).filter(|&max| max > 0).map(
                |max| {
                    (max, self.choice("guardrail.collections.limit.action", GuardrailAction::Warn))
                },
            ),
            topics: self.topics(&topic_prefix),
            schema_names: self
                .parsed("schema.name.adjustment.mode", modes::adjustment)
                .unwrap_or_default(),
            field_names: self
                .parsed("field.name.adjustment.mode", modes::adjustment)
                .unwrap_or_default(),
            conversion: self.conversion(),
            events: self.events(),
            transforms: self.transforms(),
            gtids: GtidConfig {
                sources: Selection::new(
                    self.list("gtid.source.includes"),
                    self.list("gtid.source.excludes"),
                ),
                filter_rows: self.bool("gtid.source.filter.dml.events"),
                ignore_on_recovery: self.bool("gtid.ignore.on.recovery"),
            },
            snapshot: self.snapshot(),
            history: self.history(base_dir, &topic_prefix),
            offsets: self.offsets(base_dir, &topic_prefix),
            queue: self.queue(),
            max_retries: self
                .number("errors.max.retries")
                .and_then(|retries| u32::try_from(retries).ok()),
            retry_wait: self.millis("retriable.restart.connector.wait.ms"),
            shutdown_timeout: self.millis("executor.shutdown.timeout.ms"),
            identity_header: self.bool("holdfast.headers.identity"),
            source_id: self.filled("holdfast.source.id").map(|id| id.trim().to_owned()),
            topic_prefix,
            name,
        }
    }
}
