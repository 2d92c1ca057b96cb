//! Configuration from a Debezium properties file.
//!
//! [`Properties`] reads the file form; [`Config::from_properties`] checks all of it at once and makes the form that the
//! engine takes. Nothing reads the file or the environment later. `docs/configuration.md` lists every property.

mod check;
mod columns;
mod error;
mod jdbc;
mod known;
mod modes;
mod objects;
mod properties;
mod table;
#[cfg(test)]
mod tests;
mod transforms;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use holdfast_binlog::client::{TlsMode, TlsOptions};
use holdfast_history::ddl;
use holdfast_history::store::ObjectUrl;

pub use check::SkippedOperations;
pub use columns::ColumnRules;
pub use error::{ConfigError, ConfigErrors, Note};
pub use modes::{
    ConfiguredSnapshot, GuardrailAction, LockingMode, OnMismatch, SchemaSource, SnapshotMode,
    SnapshotRules, SslMode, StartState, TableOrder, UnknownName,
};
pub use properties::{Properties, Property, Secret, SyntaxError};

use crate::convert::{BinaryMode, ConversionOptions, FailureMode, UniformTypes};
use crate::filter::{
    ColumnFilter, DatabaseFilter, JavaRegex, KeyColumns, RegexList, Selection, TableFilter,
    split_list,
};
use crate::table_store::TableLocation;
use crate::topic::{NameAdjustment, TopicKeyField, TopicNaming, TopicRegex, TopicStrategy};
use crate::transform::{Chain, TransformConfig, WithSchemas};
use known::{Kind, Support};

/// The bound on waiting bytes where `max.queue.size.in.bytes` is 0.
const DEFAULT_QUEUE_BYTES: u64 = 32 << 20;

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

/// How to reach the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// `database.hostname`.
    pub hostname: String,
    /// `database.port`, 1 to 65535.
    pub port: u16,
    /// `database.user`.
    pub user: String,
    /// `database.password`; `None` when absent.
    pub password: Option<Secret>,
    /// `database.server.id`: replica id of the binlog connection, not 0.
    pub server_id: u32,
    /// `database.ssl.mode`.
    pub ssl_mode: SslMode,
    /// The same, with the content of `holdfast.ssl.ca`, `holdfast.ssl.cert` and `holdfast.ssl.key`. Both the query and
    /// the binlog connections go by it; a program may put PEM texts from elsewhere here.
    pub tls: TlsOptions,
    /// `connect.timeout.ms`.
    pub connect_timeout: Duration,
    /// `connect.keep.alive` and `connect.keep.alive.interval.ms`: the silence on the binlog connection after which it
    /// is made again; `None` when turned off.
    pub keep_alive: Option<Duration>,
    /// `binlog.net.write.timeout`: `net_write_timeout` of the binlog session in seconds; `None` for a day.
    pub net_write_timeout: Option<u64>,
    /// `binlog.net.read.timeout`: `net_read_timeout` of the binlog session in seconds; `None` leaves the server's.
    pub net_read_timeout: Option<u64>,
    /// `database.query.timeout.ms`: limit for one query; `None` for no limit.
    pub query_timeout: Option<Duration>,
    /// `database.initial.statements`: run on each query connection, not on the binlog connection.
    pub initial_statements: Vec<String>,
    /// `read.only`: never write to the source.
    pub read_only: bool,
}

/// Which records are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventConfig {
    /// `include.schema.changes`: DDL on the topic of the prefix.
    pub schema_changes: bool,
    /// `include.schema.comments`: keep comments of tables and columns.
    pub schema_comments: bool,
    /// `include.query`: the statement in `source.query`.
    pub query: bool,
    /// `tombstones.on.delete`.
    pub tombstones: bool,
    /// `skipped.operations`.
    pub skipped: SkippedOperations,
    /// `skip.messages.without.change`: leave out updates whose filtered rows are equal.
    pub skip_unchanged: bool,
    /// `provide.transaction.metadata`.
    pub transaction_metadata: bool,
    /// `key.converter.schemas.enable` (or `converter.schemas.enable`, `schemas.enable`): write keys with their schema.
    pub key_schemas: bool,
    /// `value.converter.schemas.enable`, or as for keys: write values with their schema.
    pub value_schemas: bool,
    /// `header.converter.schemas.enable`, or as for keys: write each header with its schema.
    pub header_schemas: bool,
    /// `extended.headers.enabled`: the `__debezium.context.*` headers.
    pub context_headers: bool,
    /// `heartbeat.interval.ms`; `None` when off.
    pub heartbeat_interval: Option<Duration>,
    /// `heartbeat.action.query`: run on the source with every heartbeat.
    pub heartbeat_query: Option<String>,
    /// `event.processing.failure.handling.mode`.
    pub on_processing_failure: FailureMode,
    /// `inconsistent.schema.handling.mode`: rows of a table that the history does not know.
    pub on_unknown_table: FailureMode,
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

/// What is read at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotConfig {
    /// `snapshot.mode`.
    pub mode: SnapshotMode,
    /// `snapshot.locking.mode`.
    pub locking: LockingMode,
    /// `snapshot.lock.timeout.ms`.
    pub lock_timeout: Duration,
    /// `snapshot.fetch.size`: rows that a reader hands over at once, at most; `None` leaves it to the reader.
    pub fetch_size: Option<u32>,
    /// `snapshot.max.threads`: readers at a time, 1 and more.
    pub max_threads: u32,
    /// `snapshot.include.collection.list`: captured tables whose rows are read, on `database.table`.
    pub include: Selection,
    /// `snapshot.select.statement.overrides`: the SELECT by `database.table`, as written.
    pub select_overrides: BTreeMap<String, String>,
    /// `snapshot.tables.order.by.row.count`.
    pub table_order: TableOrder,
    /// `snapshot.delay.ms`: the wait before the snapshot; zero for none.
    pub delay: Duration,
    /// `streaming.delay.ms`: the wait between snapshot and streaming; zero for none.
    pub streaming_delay: Duration,
}

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

/// Memory, batches and waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// `max.batch.size`: records of one batch, 1 and more; the last ack group is finished.
    pub max_batch: usize,
    /// `max.queue.size`: records that wait, more than `max_batch`.
    pub max_records: usize,
    /// `max.queue.size.in.bytes`: bytes that wait; 32 MiB where the property is 0.
    pub max_bytes: u64,
    /// `poll.interval.ms`: how long to wait for records.
    pub poll_interval: Duration,
}

impl QueueConfig {
    /// Batches that may wait for the consumer, 1 and more; one more is being filled and one being consumed.
    pub(crate) fn batches(&self) -> usize {
        (self.max_records / self.max_batch.max(1)).clamp(1, 64)
    }

    /// Whether a batch of so many records and bytes is to be given out. All batches together keep to `max_bytes`.
    pub(crate) fn is_full(&self, records: usize, bytes: usize) -> bool {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let batches = u64::try_from(self.batches() + 2).unwrap_or(u64::MAX);
        records >= self.max_batch || bytes.saturating_mul(batches) >= self.max_bytes
    }
}

impl Config {
    /// Whether the server is a MariaDB.
    pub(crate) fn is_mariadb(&self) -> bool {
        self.connector == Flavor::MariaDb
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

/// The properties while they are being checked.
struct Checked<'a> {
    properties: &'a Properties,
    flavor: Flavor,
    errors: Vec<ConfigError>,
    notes: Vec<Note>,
}

impl<'a> Checked<'a> {
    fn new(properties: &'a Properties) -> Self {
        let mut checked =
            Self { properties, flavor: Flavor::MySql, errors: Vec::new(), notes: Vec::new() };
        match properties.get("connector.class").map(str::trim) {
            None | Some("io.debezium.connector.mysql.MySqlConnector") => {}
            Some("io.debezium.connector.mariadb.MariaDbConnector") => checked.flavor = Flavor::MariaDb,
            Some(other) => checked.unsupported(
                "connector.class",
                format!(
                    "there is no connector {other}; there are io.debezium.connector.mysql.MySqlConnector and \
                     io.debezium.connector.mariadb.MariaDbConnector"
                ),
            ),
        }
        checked
    }

    fn invalid(&mut self, property: &str, message: impl Into<String>) {
        self.errors
            .push(ConfigError::Invalid { property: property.to_owned(), message: message.into() });
    }

    /// What is wrong anyway is not refused for a second reason.
    fn unsupported(&mut self, property: &str, message: impl Into<String>) {
        if self.errors.iter().any(|error| error.property() == property) {
            return;
        }
        self.errors.push(ConfigError::Unsupported {
            property: property.to_owned(),
            message: message.into(),
        });
    }

    fn note(&mut self, property: &str, text: impl Into<String>) {
        self.notes.push(Note { property: property.to_owned(), text: text.into() });
    }

    /// Each property alone: known, right, honoured.
    fn check_properties(&mut self) {
        for required in ["topic.prefix", "database.hostname", "database.user", "database.server.id"]
        {
            if self.properties.get(required).is_none() {
                self.invalid(required, check::REQUIRED);
            }
        }
        for repeated in self.properties.repeated() {
            self.note(repeated, "the file names it more than once; the last value counts");
        }
        let properties = self.properties;
        for property in properties.iter() {
            let name = property.key.as_str();
            if self.is_converter_option(name) {
                continue;
            }
            let Some(key) = known::find(name) else {
                let hint = Some(hint(name));
                self.errors.push(ConfigError::Unknown {
                    property: name.to_owned(),
                    line: property.line,
                    hint,
                });
                continue;
            };
            let missing = property.value.is_empty() && REQUIRED_FILLED.contains(&name);
            let first = matches!(key.kind, Kind::Topic | Kind::Host | Kind::Text);
            if missing && first {
                self.invalid(name, check::REQUIRED);
            }
            for message in check::check(key.kind, name, &property.value, self.flavor) {
                self.invalid(name, message);
            }
            if missing && !first {
                self.invalid(name, check::REQUIRED);
            }
            let value = property.value.trim();
            match key.support {
                Support::Yes => {}
                Support::NoEffect(why) => {
                    if key
                        .default_for(self.flavor)
                        .is_none_or(|default| !default.eq_ignore_ascii_case(value))
                    {
                        self.note(name, format!("accepted without effect: {why}"));
                    }
                }
                Support::NotYet(harmless, why) => {
                    if !harmless.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                        self.unsupported(name, why);
                    }
                }
            }
        }
    }

    /// Properties that depend on each other.
    fn check_pairs(&mut self) {
        let properties = self.properties;
        let set = |name: &str| properties.get(name).is_some();
        for what in ["database", "table", "column"] {
            let (include, exclude) =
                (format!("{what}.include.list"), format!("{what}.exclude.list"));
            if set(&include) && set(&exclude) {
                self.invalid(&exclude, format!("\"{include}\" is already specified"));
            }
        }
        if set("gtid.source.includes") && set("gtid.source.excludes") {
            self.invalid(
                "gtid.source.excludes",
                "Cannot specify GTID excludes when includes are provided.",
            );
        }
        if let (Some(queue), Some(batch)) =
            (self.number("max.queue.size"), self.number("max.batch.size"))
            && queue <= batch
        {
            self.invalid("max.queue.size", "Must be larger than the maximum batch size");
        }
        for (mode, custom) in [
            ("snapshot.mode", "snapshot.mode.custom.name"),
            ("snapshot.query.mode", "snapshot.query.mode.custom.name"),
        ] {
            let is_custom = self.text(mode).trim().eq_ignore_ascii_case("custom");
            if is_custom && properties.get(custom).is_none_or(|name| name.trim().is_empty()) {
                self.invalid(
                    custom,
                    format!("{custom} cannot be empty when {mode} 'custom' is defined"),
                );
            }
        }
        if self.text("snapshot.locking.mode").trim().eq_ignore_ascii_case("custom") {
            self.unsupported("snapshot.locking.mode", "custom locking is a Java class");
        }
        for (regex, replacement) in [
            ("topic.regex", "topic.replacement"),
            ("topic.key.field.regex", "topic.key.field.replacement"),
        ] {
            if set(regex) && self.text(replacement).is_empty() {
                self.invalid(
                    replacement,
                    format!("{replacement} must be non-empty if {regex} is set."),
                );
            }
        }
    }

    /// The value of a property, or its default, or nothing.
    fn text(&self, name: &str) -> &'a str {
        debug_assert!(known::find(name).is_some(), "{name} is not in the table");
        match self.properties.get(name) {
            Some(value) => value,
            None => self.default_text(name),
        }
    }

    fn default_text(&self, name: &str) -> &'static str {
        known::find(name).and_then(|key| key.default_for(self.flavor)).unwrap_or_default()
    }

    /// The value when the property is set and not empty.
    fn filled(&self, name: &str) -> Option<&'a str> {
        Some(self.text(name)).filter(|value| !value.trim().is_empty())
    }

    /// A value that was checked before: when it is wrong, an error is noted already, and the default stands in for it.
    fn parsed<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        parse(self.text(name)).or_else(|| parse(self.default_text(name)))
    }

    fn bool(&self, name: &str) -> bool {
        self.parsed(name, check::parse_bool).unwrap_or_default()
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    fn integer<T: FromStr + Default>(&self, name: &str) -> T {
        self.parsed(name, |text| text.parse().ok()).unwrap_or_default()
    }

    fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.integer(name))
    }

    fn choice<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.parsed(name, |text| text.parse().ok()).unwrap_or(otherwise)
    }

    fn ssl_mode(&self) -> SslMode {
        self.choice("database.ssl.mode", SslMode::Disabled)
    }

    fn tls(&mut self, base_dir: &Path) -> TlsOptions {
        let mode = match self.ssl_mode() {
            SslMode::Disabled => TlsMode::Disabled,
            SslMode::Preferred => TlsMode::Preferred,
            SslMode::Required => TlsMode::Required,
            SslMode::VerifyCa => TlsMode::VerifyCa,
            SslMode::VerifyIdentity => TlsMode::VerifyIdentity,
        };
        let mut tls = TlsOptions { mode, ..TlsOptions::default() };
        self.certificates(&mut tls, base_dir);
        if let Err(error) = tls.check() {
            self.invalid("database.ssl.mode", error.to_string());
        }
        tls
    }

    fn certificates(&mut self, tls: &mut TlsOptions, base_dir: &Path) {
        tls.ca = self.pem("holdfast.ssl.ca", base_dir);
        tls.cert = self.pem("holdfast.ssl.cert", base_dir);
        tls.key = self.pem("holdfast.ssl.key", base_dir);
    }

    /// The content of a PEM file.
    fn pem(&mut self, name: &str, base_dir: &Path) -> Option<Vec<u8>> {
        let path = base_dir.join(self.filled(name)?.trim());
        match std::fs::read(&path) {
            Ok(pem) => Some(pem),
            Err(error) => {
                // Stores in tables ask for it again.
                if !self.errors.iter().any(|error| error.property() == name) {
                    self.invalid(name, format!("{} can't be read: {error}", path.display()));
                }
                None
            }
        }
    }

    fn list(&self, name: &str) -> RegexList {
        RegexList::parse(self.text(name)).unwrap_or_default()
    }

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
            history: HistoryConfig {
                event_times_decide: false,
                store: self.history_store(base_dir, &topic_prefix),
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
            },
            offsets: OffsetConfig {
                store: self.offset_store(base_dir, &topic_prefix),
                flush_interval: self.flush_interval(),
            },
            queue: QueueConfig {
                max_batch: self.integer("max.batch.size"),
                max_records: self.integer("max.queue.size"),
                max_bytes: match self.integer("max.queue.size.in.bytes") {
                    0 => DEFAULT_QUEUE_BYTES,
                    bytes => bytes,
                },
                poll_interval: self.millis("poll.interval.ms"),
            },
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

    fn connection(&mut self, base_dir: &Path) -> ConnectionConfig {
        let tls = self.tls(base_dir);
        let seconds = |name: &str| Some(self.integer(name)).filter(|&seconds: &u64| seconds > 0);
        ConnectionConfig {
            hostname: self.text("database.hostname").to_owned(),
            port: self.integer("database.port"),
            user: self.text("database.user").to_owned(),
            password: self.properties.get("database.password").map(Secret::new),
            server_id: self.integer("database.server.id"),
            ssl_mode: self.ssl_mode(),
            tls,
            connect_timeout: self.millis("connect.timeout.ms"),
            keep_alive: self
                .bool("connect.keep.alive")
                .then(|| self.millis("connect.keep.alive.interval.ms")),
            net_write_timeout: seconds("binlog.net.write.timeout"),
            net_read_timeout: seconds("binlog.net.read.timeout"),
            query_timeout: Some(self.millis("database.query.timeout.ms"))
                .filter(|limit| !limit.is_zero()),
            initial_statements: split_statements(self.text("database.initial.statements")),
            read_only: self.bool("read.only"),
        }
    }

    fn conversion(&mut self) -> ConversionOptions {
        let binary = modes::binary(self.text("binary.handling.mode"));
        if binary.is_none() {
            self.note(
                "binary.handling.mode",
                "it is none of bytes, base64, base64-url-safe, hex; taken as bytes",
            );
        }
        let otherwise = ConversionOptions::default();
        ConversionOptions {
            decimal: self
                .parsed("decimal.handling.mode", modes::decimal)
                .unwrap_or(otherwise.decimal),
            bigint_unsigned: self
                .parsed("bigint.unsigned.handling.mode", modes::bigint_unsigned)
                .unwrap_or(otherwise.bigint_unsigned),
            binary: binary.unwrap_or(BinaryMode::Bytes),
            time_precision: self
                .parsed("time.precision.mode", modes::time_precision)
                .unwrap_or(otherwise.time_precision),
            time_adjuster: self.bool("enable.time.adjuster"),
            converting_failure: self.failure("event.converting.failure.handling.mode"),
            processing_failure: self.failure("event.processing.failure.handling.mode"),
            replace_null_with_default: self.either(
                "value.converter.replace.null.with.default",
                "converter.replace.null.with.default",
            ),
            uniform: match (self.bool("holdfast.uniform.types"), self.flavor) {
                (false, _) => UniformTypes::Off,
                (true, Flavor::MySql) => UniformTypes::MySql,
                (true, Flavor::MariaDb) => UniformTypes::MariaDb,
            },
            ..otherwise
        }
    }

    /// The value of `name` when it is set, else that of `general`.
    fn either(&self, name: &str, general: &str) -> bool {
        self.bool(if self.properties.get(name).is_some() { name } else { general })
    }

    /// Whether schemas are written: `name` when it is set, else what all converters are told.
    fn schemas(&self, name: &str) -> bool {
        if self.properties.get(name).is_some() {
            self.bool(name)
        } else {
            self.either("converter.schemas.enable", "schemas.enable")
        }
    }

    fn failure(&self, name: &str) -> FailureMode {
        self.parsed(name, modes::failure).unwrap_or(FailureMode::Fail)
    }

    fn events(&self) -> EventConfig {
        EventConfig {
            schema_changes: self.bool("include.schema.changes"),
            schema_comments: self.bool("include.schema.comments"),
            query: self.bool("include.query"),
            tombstones: self.bool("tombstones.on.delete"),
            skipped: self
                .parsed("skipped.operations", |text| SkippedOperations::parse(text).ok())
                .unwrap_or_default(),
            skip_unchanged: self.bool("skip.messages.without.change"),
            transaction_metadata: self.bool("provide.transaction.metadata"),
            key_schemas: self.schemas("key.converter.schemas.enable"),
            value_schemas: if self.has_cloud_events() {
                self.bool("value.converter.json.schemas.enable")
            } else {
                self.schemas("value.converter.schemas.enable")
            },
            header_schemas: self.schemas("header.converter.schemas.enable"),
            context_headers: self.bool("extended.headers.enabled"),
            heartbeat_interval: Some(self.millis("heartbeat.interval.ms"))
                .filter(|interval| !interval.is_zero()),
            heartbeat_query: self.filled("heartbeat.action.query").map(ToOwned::to_owned),
            on_processing_failure: self.failure("event.processing.failure.handling.mode"),
            on_unknown_table: self.failure("inconsistent.schema.handling.mode"),
        }
    }

    fn snapshot(&mut self) -> SnapshotConfig {
        let mut select_overrides = BTreeMap::new();
        for table in split_list(self.text("snapshot.select.statement.overrides")) {
            let name = format!("snapshot.select.statement.overrides.{table}");
            match self.properties.get(&name).filter(|statement| !statement.trim().is_empty()) {
                Some(statement) => {
                    select_overrides.insert(table, statement.trim().to_owned());
                }
                None => self.note(&name, "there is no statement for this table: it is read whole"),
            }
        }
        let configured =
            |what: &str| self.bool(&format!("snapshot.mode.configuration.based.{what}"));
        let mode = match self.text("snapshot.mode").trim().to_ascii_lowercase().as_str() {
            "initial_only" => SnapshotMode::InitialOnly,
            "always" => SnapshotMode::Always,
            "no_data" => SnapshotMode::NoData,
            "when_needed" => SnapshotMode::WhenNeeded,
            "recovery" => SnapshotMode::Recovery,
            "custom" => SnapshotMode::Custom,
            "configuration_based" => SnapshotMode::ConfigurationBased(ConfiguredSnapshot {
                data: configured("snapshot.data"),
                schema: configured("snapshot.schema"),
                stream: configured("start.stream"),
                on_schema_error: configured("snapshot.on.schema.error"),
                on_data_error: configured("snapshot.on.data.error"),
            }),
            // Everything else but `initial` is an error already.
            _ => SnapshotMode::Initial,
        };
        SnapshotConfig {
            mode,
            locking: self.choice("snapshot.locking.mode", LockingMode::Minimal),
            lock_timeout: self.millis("snapshot.lock.timeout.ms"),
            fetch_size: self
                .parsed("snapshot.fetch.size", |text| text.parse().ok())
                .filter(|&rows: &u32| rows > 0),
            max_threads: self.integer("snapshot.max.threads"),
            include: Selection::new(
                self.list("snapshot.include.collection.list"),
                RegexList::default(),
            ),
            select_overrides,
            table_order: self.choice("snapshot.tables.order.by.row.count", TableOrder::Disabled),
            delay: self.millis("snapshot.delay.ms"),
            streaming_delay: self.millis("streaming.delay.ms"),
        }
    }

    fn topics(&mut self, prefix: &str) -> TopicNaming {
        let class = self.text("topic.naming.strategy");
        let strategy = match class.strip_prefix("io.debezium.schema.") {
            Some("DefaultTopicNamingStrategy") => TopicStrategy::Default,
            Some("DefaultUnicodeTopicNamingStrategy") => TopicStrategy::DefaultUnicode,
            Some("SchemaTopicNamingStrategy") => TopicStrategy::Schema,
            Some("SchemaUnicodeTopicNamingStrategy") => TopicStrategy::SchemaUnicode,
            Some("DefaultRegexTopicNamingStrategy") => self.topic_regex(),
            Some(_) | None => {
                self.unsupported(
                    "topic.naming.strategy",
                    "Java classes cannot be loaded; there are Default, DefaultUnicode, Schema, SchemaUnicode and \
                     DefaultRegex TopicNamingStrategy of io.debezium.schema",
                );
                TopicStrategy::Default
            }
        };
        if !matches!(strategy, TopicStrategy::Regex(_))
            && self.properties.get("topic.regex").is_some()
        {
            self.note("topic.regex", "it counts with DefaultRegexTopicNamingStrategy only");
        }
        TopicNaming::with(
            prefix,
            self.text("topic.delimiter"),
            strategy,
            self.text("topic.transaction"),
            self.text("topic.heartbeat.prefix"),
            self.filled("topic.heartbeat.name"),
        )
    }

    fn topic_regex(&mut self) -> TopicStrategy {
        let compile =
            |name: &str| self.filled(name).and_then(|text| JavaRegex::case_sensitive(text).ok());
        let Some(regex) = compile("topic.regex") else {
            if self.filled("topic.regex").is_none() {
                self.invalid("topic.regex", check::REQUIRED);
            }
            return TopicStrategy::Default;
        };
        let rewrite = compile("topic.key.field.regex")
            .map(|regex| (regex, self.text("topic.key.field.replacement").to_owned()));
        let key_field = self
            .bool("topic.key.enforce.uniqueness")
            .then(|| TopicKeyField { name: self.text("topic.key.field.name").to_owned(), rewrite });
        TopicStrategy::Regex(Box::new(TopicRegex {
            regex,
            replacement: self.text("topic.replacement").to_owned(),
            key_field,
        }))
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

/// Required properties that must not be empty either.
const REQUIRED_FILLED: [&str; 4] =
    ["topic.prefix", "database.hostname", "database.user", "database.server.id"];

/// What to write instead of an unknown name.
fn hint(name: &str) -> String {
    if let Some(inner) =
        name.strip_prefix("debezium.source.").or_else(|| name.strip_prefix("debezium."))
    {
        return format!("the prefix is Debezium Server's; write '{inner}'");
    }
    if let Some(today) = known::renamed(name) {
        return format!("it is called '{today}' today");
    }
    match known::nearest(name) {
        (nearest, true) => format!("did you mean '{nearest}'?"),
        (nearest, false) => format!("the nearest known property is '{nearest}'"),
    }
}

/// Splits at `;`; `;;` is a semicolon inside a statement.
fn split_statements(text: &str) -> Vec<String> {
    const ESCAPED: &str = "\u{0}";
    text.replace(";;", ESCAPED)
        .split(';')
        .map(|statement| statement.trim().replace(ESCAPED, ";"))
        .filter(|statement| !statement.is_empty())
        .collect()
}
