//! Every property that is known: what its value is, its default, and what Holdfast does with it.
//!
//! The table is the single source: values are checked by it, defaults are read from it, unknown names are compared
//! with it, and `docs/configuration.md` is rendered from it.
//!
//! Source: Debezium 3.6.3.Final, `MySqlConnector#config`, `MariaDbConnector#config`, and the properties that its code
//! reads beside them; Kafka Connect and the Debezium engine for the groups at the end.

use super::Flavor;

/// What a value must be. The messages for a wrong one are in `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any text.
    Text,
    /// Any text that is never printed.
    Secret,
    /// Characters of topic names.
    Topic,
    /// The same; an empty one is only reported as missing.
    Host,
    /// `true` or `false`, in any case, blanks around it ignored.
    Bool,
    /// A 32-bit integer.
    Int(Range),
    /// A 64-bit integer.
    Long(Range),
    /// One of these, in any case: for both flavors, or for MySQL and MariaDB.
    Choice(&'static [&'static str], Option<&'static [&'static str]>),
    /// Comma-separated Java regular expressions.
    Regexes,
    /// One Java regular expression.
    Regex,
    /// Comma-separated texts.
    List,
    /// A Java class name.
    Class,
    /// `k=v,k2=v2`.
    Map,
    /// `skipped.operations`.
    Operations,
    /// `message.key.columns`.
    KeyColumns,
}

/// Which integers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// All.
    Any,
    /// 1 and more.
    Positive,
    /// 1 to 2^31-1, for properties that are declared as 64-bit and read as 32-bit.
    PositiveInt,
    /// 0 and more.
    NonNegative,
    /// 0 and more; the message says "long" although the property is an integer.
    NonNegativeAsLong,
    /// 0 and more, where Debezium does not check it.
    NotBelowZero,
    /// 1 and more; the size of a queue.
    Queue,
    /// 1 to 65535.
    Port,
    /// 1 to 2^32-1.
    ServerId,
}

/// What Holdfast does with a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// Does what it does in Debezium.
    Yes,
    /// Accepted; changes nothing here, and why.
    NoEffect(&'static str),
    /// Refused unless the value is one of these, and why.
    NotYet(&'static [&'static str], &'static str),
}

/// Groups, as the documentation shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Properties that only Holdfast has.
    Own,
    /// Server, login, timeouts.
    Connection,
    /// What is captured.
    Filters,
    /// Topics, keys and schema names.
    Naming,
    /// How values are written.
    Values,
    /// Which records are written.
    Events,
    /// The log.
    Binlog,
    /// Snapshots.
    Snapshot,
    /// The schema history.
    History,
    /// Offsets and the embedding engine.
    Engine,
    /// Signals and notifications.
    Signals,
    /// Queue, retries, operation.
    Operation,
    /// Kafka Connect and the JVM.
    Connect,
}

/// One property, or one family of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// The name; `*` stands for one character or more.
    pub(crate) name: &'static str,
    /// Where it belongs.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test renders the documentation from it"))]
    pub(crate) group: Group,
    /// What its value is.
    pub(crate) kind: Kind,
    /// The value when absent; `None` when there is none.
    pub(crate) default: Option<&'static str>,
    /// MariaDB's default, where it differs.
    pub(crate) mariadb_default: Option<&'static str>,
    /// What we do with it.
    pub(crate) support: Support,
    /// What it does, in a few words.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test renders the documentation from it"))]
    pub(crate) effect: &'static str,
}

impl Key {
    /// Whether `name` is this property or of this family.
    pub(crate) fn matches(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((prefix, rest)) => {
                name.strip_prefix(prefix).is_some_and(|name| family_matches(rest, name))
            }
        }
    }

    /// Whether it is a family.
    pub(crate) fn is_family(&self) -> bool {
        self.name.contains('*')
    }

    /// The default for a flavor.
    pub(crate) fn default_for(&self, flavor: Flavor) -> Option<&'static str> {
        match flavor {
            Flavor::MySql => self.default,
            Flavor::MariaDb => self.mariadb_default.or(self.default),
        }
    }
}

/// Whether `name` is at least one character and then `rest`, in which further `*` may stand.
fn family_matches(rest: &str, name: &str) -> bool {
    match rest.split_once('*') {
        None => name.len() > rest.len() && name.ends_with(rest),
        Some((middle, rest)) => name.match_indices(middle).any(|(at, _)| {
            at > 0 && name.get(at + middle.len()..).is_some_and(|name| family_matches(rest, name))
        }),
    }
}

/// The property called `name`: exact names win over families.
pub(crate) fn find(name: &str) -> Option<&'static Key> {
    KNOWN
        .iter()
        .find(|key| key.name == name)
        .or_else(|| KNOWN.iter().find(|key| key.is_family() && key.matches(name)))
}

/// The known name that is nearest to `name` by edit distance, and whether it is near enough to be what was meant.
pub(crate) fn nearest(name: &str) -> (&'static str, bool) {
    let distance = |key: &&'static str| edit_distance(name, key);
    let best = KNOWN
        .iter()
        .filter(|key| !key.is_family())
        .map(|key| key.name)
        .min_by_key(distance)
        .unwrap_or_default();
    (best, edit_distance(name, best) <= 2.max(name.chars().count() / 4))
}

/// The nearest of some names.
pub(crate) fn nearest_of(name: &str, names: &[&'static str]) -> &'static str {
    names.iter().min_by_key(|known| edit_distance(name, known)).copied().unwrap_or_default()
}

/// What a name of an earlier Debezium is called today.
pub(crate) fn renamed(name: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// Levenshtein's distance with transpositions of neighbours, in characters.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, l) in left.chars().enumerate() {
        let mut current = Vec::with_capacity(right.len() + 1);
        current.push(row + 1);
        let mut left_cost = row + 1;
        for (column, &r) in right.iter().enumerate() {
            let at =
                |costs: &[usize], index: usize| costs.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&last, column) + usize::from(l != r))
                .min(at(&last, column + 1) + 1)
                .min(left_cost + 1);
            let swapped = column > 0 && previous == Some(r) && right.get(column - 1) == Some(&l);
            if swapped {
                cost = cost.min(at(&before, column - 1) + 1);
            }
            current.push(cost);
            left_cost = cost;
        }
        before = std::mem::replace(&mut last, current);
        previous = Some(l);
    }
    last.last().copied().unwrap_or_default()
}

/// Names of Debezium 1.x and 2.x that people still have in files.
const RENAMED: &[(&str, &str)] = &[
    ("database.server.name", "topic.prefix"),
    ("database.whitelist", "database.include.list"),
    ("database.blacklist", "database.exclude.list"),
    ("table.whitelist", "table.include.list"),
    ("table.blacklist", "table.exclude.list"),
    ("column.whitelist", "column.include.list"),
    ("column.blacklist", "column.exclude.list"),
    ("database.history", "schema.history.internal"),
    ("database.history.file.filename", "schema.history.internal.file.filename"),
    ("database.history.skip.unparseable.ddl", "schema.history.internal.skip.unparseable.ddl"),
    (
        "database.history.store.only.captured.tables.ddl",
        "schema.history.internal.store.only.captured.tables.ddl",
    ),
    ("database.history.kafka.topic", "schema.history.internal.kafka.topic"),
    ("database.history.kafka.bootstrap.servers", "schema.history.internal.kafka.bootstrap.servers"),
    ("sanitize.field.names", "field.name.adjustment.mode"),
    ("snapshot.minimal.locks", "snapshot.locking.mode"),
    ("inconsistent.schema.handling", "inconsistent.schema.handling.mode"),
];

const fn key(
    group: Group,
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    support: Support,
    effect: &'static str,
) -> Key {
    Key { name, group, kind, default, mariadb_default: None, support, effect }
}

const fn or_mariadb(mut key: Key, default: &'static str) -> Key {
    key.mariadb_default = Some(default);
    key
}

const INCREMENTAL: &str = "incremental snapshots are not there yet";
const SIGNALS: &str = "signals and incremental snapshots are not there yet; remove it";
const NO_KAFKA: &str = "the stores there are: a file (FileSchemaHistory, FileOffsetBackingStore), a table (JdbcSchemaHistory, JdbcOffsetBackingStore), memory, and object storage (holdfast.history.url, holdfast.offsets.url)";
const OWN_SQL: &str = "the statements of the store are fixed; give the table Debezium's columns";
const LINEAGE: &str = "OpenLineage events are not sent";
const CLIENT: &str = "there is no Kafka client here";

/// Values of `snapshot.mode`; the orders of these lists are those of Debezium's messages.
pub(crate) const SNAPSHOT_MODES: &[&str] = &[
    "always",
    "initial_only",
    "configuration_based",
    "when_needed",
    "initial",
    "custom",
    "no_data",
    "recovery",
];
const FAILURE_MODES: &[&str] = &["warn", "fail", "ignore", "skip"];
const ADJUSTMENTS: &[&str] = &["none", "avro_unicode", "avro"];

#[rustfmt::skip]
pub(crate) const KNOWN: &[Key] = {
    use Group as G;
    use Kind::{Bool, Choice, Class, Host, Int, KeyColumns, List, Long, Map, Operations, Regex, Regexes, Secret, Text, Topic};
    use Range::{Any, NonNegative, NonNegativeAsLong, NotBelowZero, Port, Positive, PositiveInt, Queue, ServerId};
    use Support::{NoEffect, NotYet, Yes};
    &[
    // Own settings.
    key(G::Own, "holdfast.binlog.compression", Choice(&["none", "zlib", "zstd"], None), Some("none"), Yes, "compress the connection that reads the log; an error where the server does not offer it: MySQL has both, MariaDB zlib alone"),
    key(G::Own, "holdfast.headers.identity", Bool, Some("false"), Yes, "write the event identity as record header `__holdfast.id`"),
    key(G::Own, "holdfast.history.checkpoint.records", Int(NonNegative), Some("1000"), Yes, "after how many records a checkpoint is written beside the schema history, from which a start goes on; 0 writes and reads none"),
    key(G::Own, "holdfast.history.on.mismatch", Choice(&["fail", "refresh"], None), Some("fail"), Yes, "what a row that does not fit its definition leads to: `fail` stops, `refresh` rebuilds the schema history at the frontier if every guard passes, and goes on"),
    key(G::Own, "holdfast.history.url", Text, None, Yes, "the schema history in numbered objects, in RisingWave's layout, instead of `schema.history.internal`: `s3://bucket/folder?endpoint=…&region=…&virtual-host-style=false` or `file:///folder`"),
    key(G::Own, "holdfast.offsets.url", Text, None, Yes, "the offsets in one JSON object, instead of `offset.storage`: `s3://bucket/folder/offsets.json?…` or `file:///folder/offsets.json`"),
    key(G::Own, "holdfast.s3.access.key.id", Text, None, Yes, "access key of both URLs; absent: what `AWS_ACCESS_KEY_ID` and its like, `~/.aws` or the role of the machine give"),
    key(G::Own, "holdfast.s3.secret.access.key", Secret, None, Yes, "its secret"),
    key(G::Own, "holdfast.s3.session.token", Secret, None, Yes, "token of a temporary session"),
    key(G::Own, "holdfast.schema.source", Choice(&["history", "metadata"], None), Some("history"), Yes, "where definitions of tables come from: `history`, or `metadata`, which takes them from the log itself where the schema history has none that says the same; for servers with `binlog_row_metadata=FULL`"),
    key(G::Own, "holdfast.source.id", Text, None, Yes, "names the log in the lineage of offsets, instead of the server's UUID"),
    key(G::Own, "holdfast.ssl.ca", Text, None, Yes, "PEM file of the authorities that may have signed the server's certificate; absent: those of the system. A path is relative to the properties file"),
    key(G::Own, "holdfast.ssl.cert", Text, None, Yes, "PEM file of our certificate for servers that ask for one; with `holdfast.ssl.key`"),
    key(G::Own, "holdfast.ssl.key", Text, None, Yes, "PEM file of its key, without a pass phrase"),
    key(G::Own, "holdfast.tasks", Int(NonNegative), Some("0"), Yes, "how many tasks turn the rows of a large transaction into records side by side; 1 for none beside the one that reads, 0 for as many as the runtime has threads, at most 4. Records, their order and their offsets are the same"),
    key(G::Own, "holdfast.uniform.types", Bool, Some("false"), Yes, "give a column the same values in a snapshot and while streaming, where Debezium's differ: the types that the server itself names (REAL is DOUBLE, BOOL is TINYINT), whole floats, all fraction digits of TIMESTAMP, the server's layout of JSON"),

    // Connection.
    key(G::Connection, "connector.class", Class, Some("io.debezium.connector.mysql.MySqlConnector"), Yes, "MySQL or MariaDB: `io.debezium.connector.mysql.MySqlConnector`, `io.debezium.connector.mariadb.MariaDbConnector`"),
    key(G::Connection, "topic.prefix", Topic, None, Yes, "names the source: first part of all topics, `source.name`, partition of the offset; required"),
    key(G::Connection, "database.hostname", Host, None, Yes, "server address; required"),
    key(G::Connection, "database.port", Int(Port), Some("3306"), Yes, "server port, 1 to 65535"),
    key(G::Connection, "database.user", Text, None, Yes, "login name; required"),
    key(G::Connection, "database.password", Secret, None, Yes, "login password"),
    key(G::Connection, "database.server.id", Long(ServerId), None, Yes, "replica id of the binlog connection, 1 to 4294967295; required"),
    key(G::Connection, "database.server.id.offset", Long(Any), Some("10000"), NoEffect("no further replication connections are opened"), "step between replica ids"),
    key(G::Connection, "database.query.timeout.ms", Int(NotBelowZero), Some("600000"), NoEffect("the server's own limits apply"), "limit for one query in milliseconds, 0 for none"),
    key(G::Connection, "database.initial.statements", Text, None, Yes, "statements to run on each query connection, separated by `;` (`;;` is a semicolon)"),
    key(G::Connection, "database.protocol", Text, Some("jdbc:mysql"), NoEffect("there is no JDBC driver"), "URL scheme of JDBC"),
    key(G::Connection, "database.jdbc.driver", Class, Some("com.mysql.cj.jdbc.Driver"), NoEffect("there is no JDBC driver"), "driver class"),
    key(G::Connection, "driver.*", Text, None, NoEffect("there is no JDBC driver"), "settings of the JDBC driver"),
    key(G::Connection, "connect.timeout.ms", Int(Positive), Some("30000"), Yes, "limit for connecting, in milliseconds"),
    key(G::Connection, "connect.keep.alive", Bool, Some("true"), Yes, "reconnect the binlog connection when it falls silent"),
    key(G::Connection, "connect.keep.alive.interval.ms", Long(PositiveInt), Some("60000"), Yes, "silence after which it is reconnected, in milliseconds"),
    key(G::Connection, "use.nongraceful.disconnect", Bool, Some("false"), NoEffect("a silent connection is always closed at once"), "reset instead of an orderly close"),
    key(G::Connection, "binlog.net.write.timeout", Long(NonNegative), Some("0"), Yes, "`net_write_timeout` of the binlog session in seconds, 0 for a day"),
    key(G::Connection, "binlog.net.read.timeout", Long(NonNegative), Some("0"), Yes, "`net_read_timeout` of the binlog session in seconds, 0 to leave it"),
    key(G::Connection, "connection.validation.timeout.ms", Long(Positive), Some("60000"), NoEffect("connect.timeout.ms limits every connect"), "limit for the connection test"),
    or_mariadb(key(G::Connection, "database.ssl.mode", Choice(&["verify_identity", "disabled", "preferred", "required", "verify_ca"], Some(&["trust", "disable", "verify-ca", "verify-full"])), Some("preferred"),
        Yes, "whether the query and the binlog connections are encrypted, and what is checked: `preferred` encrypts where the server offers TLS, `required` (MariaDB: `trust`) always, `verify_ca` checks who signed the certificate, `verify_identity` (MariaDB: `verify-full`) also that it is for this host"), "disable"),
    key(G::Connection, "database.ssl.keystore", Text, None, NotYet(&[""], "it is a Java store; write it as PEM with `keytool -importkeystore -srckeystore FILE -destkeystore client.p12 -deststoretype PKCS12`, `openssl pkcs12 -in client.p12 -nokeys -out client-cert.pem` and `openssl pkcs12 -in client.p12 -nocerts -nodes -out client-key.pem`, and name the files in holdfast.ssl.cert and holdfast.ssl.key"), "client certificate"),
    key(G::Connection, "database.ssl.keystore.password", Secret, None, NoEffect("there are no Java stores here"), "its password"),
    key(G::Connection, "database.ssl.truststore", Text, None, NotYet(&[""], "it is a Java store; write it as PEM with `keytool -exportcert -rfc -keystore FILE -alias NAME -file ca.pem`, and name the file in holdfast.ssl.ca"), "certificates that are trusted"),
    key(G::Connection, "database.ssl.truststore.password", Secret, None, NoEffect("there are no Java stores here"), "its password"),
    key(G::Connection, "read.only", Bool, Some("false"), Yes, "never write to the source (the engine does not write by itself; heartbeat.action.query does)"),

    // Filters.
    key(G::Filters, "database.include.list", Regexes, None, Yes, "databases to capture"),
    key(G::Filters, "database.exclude.list", Regexes, None, Yes, "databases to leave out"),
    key(G::Filters, "table.include.list", Regexes, None, Yes, "tables (`db.table`) to capture; its order is that of the snapshot"),
    key(G::Filters, "table.exclude.list", Regexes, None, Yes, "tables to leave out"),
    key(G::Filters, "column.include.list", Regexes, None, Yes, "columns (`db.table.column`) to keep in `before` and `after`"),
    key(G::Filters, "column.exclude.list", Regexes, None, Yes, "columns to leave out"),
    key(G::Filters, "table.ignore.builtin", Bool, Some("true"), Yes, "never capture the server's own databases"),
    key(G::Filters, "column.mask.hash.*.with.salt.*", Regexes, None, Yes, "replace strings by a salted digest"),
    key(G::Filters, "column.mask.with.*.chars", Regexes, None, Yes, "replace strings by asterisks"),
    key(G::Filters, "column.truncate.to.*.chars", Regexes, None, Yes, "cut strings and bytes"),
    key(G::Filters, "guardrail.collections.max", Int(NonNegative), Some("0"), Yes, "most tables that may be captured, 0 for no limit"),
    key(G::Filters, "guardrail.collections.limit.action", Choice(&["warn", "fail"], None), Some("warn"), Yes, "what happens above that limit"),

    // Naming.
    key(G::Naming, "topic.naming.strategy", Class, Some("io.debezium.schema.DefaultTopicNamingStrategy"), Yes, "Default, DefaultUnicode, Schema, SchemaUnicode or DefaultRegex `…TopicNamingStrategy` of `io.debezium.schema`"),
    key(G::Naming, "topic.delimiter", Topic, Some("."), Yes, "between the parts of a topic name"),
    key(G::Naming, "topic.cache.size", Int(Any), Some("10000"), NoEffect("names are kept with each table"), "size of the name cache"),
    key(G::Naming, "topic.transaction", Topic, Some("transaction"), Yes, "last part of the transaction topic"),
    key(G::Naming, "topic.heartbeat.prefix", Topic, Some("__debezium-heartbeat"), Yes, "first part of the heartbeat topic"),
    key(G::Naming, "topic.heartbeat.name", Topic, None, Yes, "the whole name of the heartbeat topic"),
    key(G::Naming, "topic.regex", Regex, None, Yes, "DefaultRegex: pattern on the default name"),
    key(G::Naming, "topic.replacement", Text, None, Yes, "DefaultRegex: what it becomes"),
    key(G::Naming, "topic.key.enforce.uniqueness", Bool, Some("true"), Yes, "DefaultRegex: add the default name to the key"),
    key(G::Naming, "topic.key.field.name", Text, Some("__dbz__physicalTableIdentifier"), Yes, "DefaultRegex: the field for it"),
    key(G::Naming, "topic.key.field.regex", Regex, None, Yes, "DefaultRegex: pattern on the default name for that field"),
    key(G::Naming, "topic.key.field.replacement", Text, None, Yes, "DefaultRegex: what the field holds"),
    key(G::Naming, "message.key.columns", KeyColumns, None, Yes, "key columns per table: `table:col,col;table:col`"),
    key(G::Naming, "schema.name.adjustment.mode", Choice(ADJUSTMENTS, None), Some("none"), Yes, "schema names that Avro allows"),
    key(G::Naming, "field.name.adjustment.mode", Choice(ADJUSTMENTS, None), Some("none"), Yes, "field names that Avro allows"),
    key(G::Naming, "sourceinfo.struct.maker", Class, None, NotYet(&["io.debezium.connector.mysql.MySqlSourceInfoStructMaker", "io.debezium.connector.mariadb.MariaDbSourceInfoStructMaker"], "Java classes cannot be loaded; only the default block is written"), "class that builds `source`"),

    // Values.
    key(G::Values, "decimal.handling.mode", Choice(&["string", "double", "precise"], None), Some("precise"), Yes, "how DECIMAL is written"),
    key(G::Values, "bigint.unsigned.handling.mode", Choice(&["precise", "long"], None), Some("long"), Yes, "how BIGINT UNSIGNED is written"),
    key(G::Values, "time.precision.mode", Choice(&["adaptive", "adaptive_time_microseconds", "isostring", "microseconds", "nanoseconds", "connect"], None), Some("adaptive_time_microseconds"), Yes, "how temporal values are written; `adaptive` is refused"),
    key(G::Values, "enable.time.adjuster", Bool, Some("true"), Yes, "move years 0 to 99 to 1970 to 2069"),
    key(G::Values, "binary.handling.mode", Text, Some("bytes"), Yes, "bytes, base64, base64-url-safe or hex; anything else is bytes, as in Debezium"),
    key(G::Values, "event.converting.failure.handling.mode", Choice(&["warn", "fail", "skip"], None), Some("warn"), Yes, "what happens with a value that cannot be converted"),
    key(G::Values, "unavailable.value.placeholder", Text, Some("__debezium_unavailable_value"), NoEffect("these connectors never write it"), "stands for a value that is not known"),
    key(G::Values, "column.propagate.source.type", Regexes, None, Yes, "columns whose schema names the source type"),
    key(G::Values, "datatype.propagate.source.type", Regexes, None, Yes, "types whose schema names the source type"),
    key(G::Values, "converters", List, None, Yes, "names of converters; each has `<name>.type`, a class of `io.debezium.connector.binlog.converters` (TinyIntOneToBooleanConverter, JdbcSinkDataTypesConverter, ZeroDateFallbackConverter), and its options `<name>.*`"),
    key(G::Values, "post.processors", Text, None, NotYet(&[""], "Java post processors cannot be loaded"), "post processors"),

    // Events.
    key(G::Events, "skipped.operations", Operations, Some("t"), Yes, "c, u, d, t that are not written, or none"),
    key(G::Events, "skip.messages.without.change", Bool, Some("false"), Yes, "leave out updates of columns that are not captured"),
    key(G::Events, "tombstones.on.delete", Bool, Some("true"), Yes, "write a record without value after each delete"),
    key(G::Events, "include.query", Bool, Some("false"), Yes, "write the statement into `source.query`"),
    key(G::Events, "include.schema.changes", Bool, Some("true"), Yes, "write DDL to the topic of the prefix"),
    key(G::Events, "include.schema.comments", Bool, Some("false"), Yes, "keep comments of tables and columns"),
    key(G::Events, "provide.transaction.metadata", Bool, Some("false"), Yes, "write BEGIN and END, and the `transaction` block"),
    key(G::Events, "transaction.metadata.factory", Class, Some("io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"), NotYet(&["io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"], "Java classes cannot be loaded; only the default metadata is written"), "class that builds them"),
    key(G::Events, "extended.headers.enabled", Bool, Some("true"), NoEffect("these headers describe a Kafka Connect task"), "write the `__debezium.context.*` headers"),
    key(G::Events, "event.processing.failure.handling.mode", Choice(FAILURE_MODES, None), Some("fail"), Yes, "what happens with an event that cannot be processed"),
    key(G::Events, "event.deserialization.failure.handling.mode", Choice(FAILURE_MODES, None), Some("fail"), NoEffect("it is deprecated and does nothing in Debezium either; use event.processing.failure.handling.mode"), "old name"),
    key(G::Events, "inconsistent.schema.handling.mode", Choice(FAILURE_MODES, None), Some("fail"), Yes, "what happens with rows of a table that the schema history does not know, or whose column types do not fit its definition"),
    key(G::Events, "heartbeat.interval.ms", Int(NonNegative), Some("0"), Yes, "at most one heartbeat in so many milliseconds, 0 for none"),
    key(G::Events, "heartbeat.topics.prefix", Text, Some("__debezium-heartbeat"), NoEffect("Debezium ignores it too; use topic.heartbeat.prefix"), "old name"),
    key(G::Events, "heartbeat.action.query", Text, None, Yes, "statement to run on the source with every heartbeat"),

    // Binlog.
    key(G::Binlog, "binlog.buffer.size", Int(NonNegative), Some("0"), NoEffect("transactions are held back only where their outcome is not known"), "events to hold back until the commit"),
    key(G::Binlog, "gtid.source.includes", Regexes, None, Yes, "sources (server UUID, MariaDB `domain-server`) whose GTIDs count at the start"),
    key(G::Binlog, "gtid.source.excludes", Regexes, None, Yes, "sources whose GTIDs do not count"),
    key(G::Binlog, "gtid.source.filter.dml.events", Bool, Some("true"), Yes, "leave out rows of the other sources too"),
    key(G::Binlog, "gtid.ignore.on.recovery", Bool, Some("false"), Yes, "resume by file and position"),
    key(G::Binlog, "internal.log.position.check.enable", Bool, Some("true"), NoEffect("the stored position is always checked"), "check the stored position at start"),
    key(G::Binlog, "ddl.parser.type", Choice(&["default", "legacy"], None), Some("default"), NoEffect("there is one parser"), "grammar"),
    key(G::Binlog, "resolve.create.table.like.schema", Bool, Some("false"), NoEffect("the source of LIKE comes from the schema history"), "ask the server for the source of LIKE"),

    // Snapshot.
    key(G::Snapshot, "snapshot.mode", Choice(SNAPSHOT_MODES, None), Some("initial"), Yes, "when to read what; `custom` is for the library, which takes a `SnapshotRules`"),
    key(G::Snapshot, "snapshot.mode.custom.name", Text, None, NoEffect("the library is given the rules themselves"), "name of the custom mode"),
    key(G::Snapshot, "snapshot.mode.configuration.based.snapshot.data", Bool, Some("false"), Yes, "configuration_based: read rows"),
    key(G::Snapshot, "snapshot.mode.configuration.based.snapshot.schema", Bool, Some("false"), Yes, "configuration_based: read definitions"),
    key(G::Snapshot, "snapshot.mode.configuration.based.start.stream", Bool, Some("false"), Yes, "configuration_based: stream afterwards"),
    key(G::Snapshot, "snapshot.mode.configuration.based.snapshot.on.schema.error", Bool, Some("false"), Yes, "configuration_based: read definitions when the history is lost, or damaged, which is set aside"),
    key(G::Snapshot, "snapshot.mode.configuration.based.snapshot.on.data.error", Bool, Some("false"), Yes, "configuration_based: read rows when the position is gone"),
    key(G::Snapshot, "snapshot.locking.mode", Choice(&["minimal", "minimal_percona", "custom", "none", "minimal_percona_no_table_locks", "extended"], Some(&["minimal", "custom", "none", "extended"])), Some("minimal"), Yes, "what is locked, and how long; `custom` is refused"),
    key(G::Snapshot, "snapshot.locking.mode.custom.name", Text, None, NoEffect("custom locking is a Java class"), "name of the custom locking"),
    key(G::Snapshot, "snapshot.query.mode", Choice(&["custom", "select_all"], None), Some("select_all"), NotYet(&["select_all"], "custom queries are Java classes; use snapshot.select.statement.overrides"), "how rows are read"),
    key(G::Snapshot, "snapshot.query.mode.custom.name", Text, None, NoEffect("custom queries are Java classes"), "name of the custom query"),
    key(G::Snapshot, "snapshot.include.collection.list", Regexes, None, Yes, "captured tables whose rows are read"),
    key(G::Snapshot, "snapshot.select.statement.overrides", List, None, Yes, "tables with a SELECT of their own"),
    key(G::Snapshot, "snapshot.select.statement.overrides.*", Text, None, Yes, "the SELECT of one table"),
    key(G::Snapshot, "snapshot.delay.ms", Long(NonNegative), Some("0"), Yes, "milliseconds to wait before the snapshot"),
    key(G::Snapshot, "streaming.delay.ms", Long(NonNegative), Some("0"), Yes, "milliseconds to wait between snapshot and streaming"),
    key(G::Snapshot, "snapshot.fetch.size", Int(NonNegative), None, Yes, "rows that a reader hands over at once, at most; they are streamed whatever it is"),
    key(G::Snapshot, "query.fetch.size", Int(NonNegative), Some("0"), NoEffect("other queries are small"), "rows per fetch of other queries"),
    key(G::Snapshot, "min.row.count.to.stream.results", Int(NonNegativeAsLong), Some("1000"), NoEffect("rows are always streamed"), "rows from which on results are streamed"),
    key(G::Snapshot, "snapshot.lock.timeout.ms", Long(NotBelowZero), Some("10000"), Yes, "milliseconds to wait for a lock"),
    key(G::Snapshot, "snapshot.max.threads", Int(Positive), Some("1"), Yes, "tables read at a time, all as of one moment; one where no lock keeps others from committing"),
    key(G::Snapshot, "snapshot.max.threads.multiplier", Int(Positive), Some("1"), NoEffect("readers take whole tables"), "chunks per table"),
    key(G::Snapshot, "legacy.snapshot.max.threads", Bool, Some("false"), NoEffect("readers take whole tables"), "whole tables per reader"),
    key(G::Snapshot, "internal.legacy.snapshot.max.threads", Bool, Some("false"), NoEffect("readers take whole tables"), "the same"),
    key(G::Snapshot, "snapshot.tables.order.by.row.count", Choice(&["disabled", "ascending", "descending"], None), Some("disabled"), Yes, "order of tables by estimated rows"),
    key(G::Snapshot, "internal.snapshot.scan.all.columns.force", Bool, Some("false"), NoEffect("definitions come from SHOW CREATE TABLE"), "read the columns of all tables at once"),
    key(G::Snapshot, "incremental.snapshot.chunk.size", Int(NonNegative), Some("1024"), NoEffect(INCREMENTAL), "rows per chunk"),
    key(G::Snapshot, "incremental.snapshot.allow.schema.changes", Bool, Some("false"), NoEffect(INCREMENTAL), "allow DDL meanwhile"),
    key(G::Snapshot, "incremental.snapshot.watermarking.strategy", Choice(&["insert_delete", "insert_insert"], None), Some("insert_insert"), NoEffect(INCREMENTAL), "how windows are closed"),

    // Schema history.
    key(G::History, "schema.history.internal", Class, None, Yes, "`io.debezium.storage.file.history.FileSchemaHistory`, `io.debezium.storage.jdbc.history.JdbcSchemaHistory` or `io.debezium.relational.history.MemorySchemaHistory`; absent: a file under `holdfast-data/`"),
    key(G::History, "schema.history.internal.file.filename", Text, None, Yes, "path of the history file"),
    key(G::History, "schema.history.internal.skip.unparseable.ddl", Bool, Some("false"), Yes, "go on after DDL that cannot be parsed"),
    key(G::History, "schema.history.internal.store.only.captured.tables.ddl", Bool, Some("false"), Yes, "keep DDL of captured tables only"),
    key(G::History, "schema.history.internal.store.only.captured.databases.ddl", Bool, Some("false"), Yes, "keep DDL of captured databases only"),
    key(G::History, "schema.history.internal.prefer.ddl", Bool, Some("false"), Yes, "recover from the statements, not from the stored definitions"),
    key(G::History, "internal.schema.history.internal.prefer.ddl", Bool, Some("false"), Yes, "the same"),
    key(G::History, "schema.history.internal.ddl.filter", Regexes, None, NotYet(&[], "the built-in filter cannot be replaced"), "statements that are never parsed"),
    key(G::History, "internal.schema.history.internal.ddl.filter", Regexes, None, NotYet(&[], "the built-in filter cannot be replaced"), "the same"),
    key(G::History, "schema.history.internal.name", Text, Some("internal"), NoEffect("nothing shows it"), "display name"),
    key(G::History, "schema.history.internal.memory.optimization", Choice(&["off", "on", "shared"], None), Some("off"), NoEffect("definitions are always shared"), "share equal definitions"),
    key(G::History, "schema.history.internal.producer.*", Text, None, NoEffect(CLIENT), "client settings"),
    key(G::History, "schema.history.internal.consumer.*", Text, None, NoEffect(CLIENT), "client settings"),
    key(G::History, "schema.history.internal.kafka.topic", Text, None, NotYet(&[], NO_KAFKA), "Kafka history"),
    key(G::History, "schema.history.internal.kafka.bootstrap.servers", Text, None, NotYet(&[], NO_KAFKA), "Kafka history"),
    key(G::History, "schema.history.internal.kafka.*", Text, None, NoEffect(CLIENT), "Kafka history"),
    key(G::History, "schema.history.internal.jdbc.connection.url", Text, None, Yes, "`jdbc:mysql://host:port/database?…` or `jdbc:mariadb://…`; parameters other than `user`, `password` and those of TLS have no effect"),
    key(G::History, "schema.history.internal.jdbc.connection.user", Text, None, Yes, "login name"),
    key(G::History, "schema.history.internal.jdbc.connection.password", Secret, None, Yes, "login password"),
    key(G::History, "schema.history.internal.jdbc.connection.wait.retry.delay.ms", Long(NonNegative), Some("3000"), Yes, "milliseconds before a failed connection is tried again"),
    key(G::History, "schema.history.internal.jdbc.connection.retry.max.attempts", Int(Positive), Some("5"), Yes, "how often it is tried"),
    key(G::History, "schema.history.internal.jdbc.table.name", Text, Some("debezium_database_history"), Yes, "the table, which is created if it is not there"),
    key(G::History, "schema.history.internal.jdbc.table.ddl", Text, None, Yes, "the statement that creates it, with `%s` for its name; absent: Debezium's columns, with text of any length"),
    key(G::History, "schema.history.internal.jdbc.table.select", Text, Some("SELECT id, history_data FROM %s ORDER BY record_insert_ts, record_insert_seq, id, history_data_seq"), NotYet(&["SELECT id, history_data FROM %s ORDER BY record_insert_ts, record_insert_seq, id, history_data_seq"], OWN_SQL), "a statement of its own"),
    key(G::History, "schema.history.internal.jdbc.table.exists", Text, Some("SELECT * FROM %s LIMIT 1"), NotYet(&["SELECT * FROM %s LIMIT 1"], OWN_SQL), "a statement of its own"),
    key(G::History, "schema.history.internal.jdbc.table.insert", Text, Some("INSERT INTO %s(id, history_data, history_data_seq, record_insert_ts, record_insert_seq) VALUES ( ?, ?, ?, ?, ? )"), NotYet(&["INSERT INTO %s(id, history_data, history_data_seq, record_insert_ts, record_insert_seq) VALUES ( ?, ?, ?, ?, ? )"], OWN_SQL), "a statement of its own"),
    key(G::History, "schema.history.internal.jdbc.url", Text, None, Yes, "old name of `…jdbc.connection.url`"),
    key(G::History, "schema.history.internal.jdbc.user", Text, None, Yes, "old name of `…jdbc.connection.user`"),
    key(G::History, "schema.history.internal.jdbc.password", Secret, None, Yes, "old name of `…jdbc.connection.password`"),
    key(G::History, "schema.history.internal.jdbc.wait.retry.delay.ms", Long(NonNegative), Some("3000"), Yes, "old name of `…jdbc.connection.wait.retry.delay.ms`"),
    key(G::History, "schema.history.internal.jdbc.retry.max.attempts", Int(Positive), Some("5"), Yes, "old name of `…jdbc.connection.retry.max.attempts`"),
    key(G::History, "schema.history.internal.jdbc.schema.history.table.name", Text, None, Yes, "old name of `…jdbc.table.name`"),
    key(G::History, "schema.history.internal.jdbc.schema.history.table.ddl", Text, None, Yes, "old name of `…jdbc.table.ddl`"),
    key(G::History, "schema.history.internal.jdbc.*", Text, None, NotYet(&[], OWN_SQL), "old names of the statements"),
    key(G::History, "schema.history.internal.s3.*", Text, None, NotYet(&[], NO_KAFKA), "S3 history"),
    key(G::History, "schema.history.internal.azure.*", Text, None, NotYet(&[], NO_KAFKA), "Azure history"),
    key(G::History, "schema.history.internal.redis.*", Text, None, NotYet(&[], NO_KAFKA), "Redis history"),
    key(G::History, "schema.history.internal.rocketmq.*", Text, None, NotYet(&[], NO_KAFKA), "RocketMQ history"),

    // Offsets and engine.
    key(G::Engine, "name", Text, None, Yes, "engine name: part of the offset's key; absent: the topic prefix"),
    key(G::Engine, "offset.storage", Class, None, Yes, "`org.apache.kafka.connect.storage.FileOffsetBackingStore`, `io.debezium.storage.jdbc.offset.JdbcOffsetBackingStore` or `org.apache.kafka.connect.storage.MemoryOffsetBackingStore`; absent: a file under `holdfast-data/`"),
    key(G::Engine, "offset.storage.file.filename", Text, None, Yes, "path of the offset file"),
    key(G::Engine, "offset.flush.interval.ms", Long(NonNegative), Some("60000"), Yes, "milliseconds between two stores of the offset, 0 for each batch"),
    key(G::Engine, "offset.flush.timeout.ms", Long(Positive), Some("5000"), NoEffect("a store is waited for"), "limit for storing the offset"),
    key(G::Engine, "offset.commit.policy", Class, Some("io.debezium.engine.spi.OffsetCommitPolicy.PeriodicCommitOffsetPolicy"), Yes, "`…AlwaysCommitOffsetPolicy` stores the offset with each batch, `…PeriodicCommitOffsetPolicy` by interval"),
    key(G::Engine, "offset.storage.topic", Text, None, NotYet(&[], NO_KAFKA), "Kafka offsets"),
    key(G::Engine, "offset.storage.partitions", Text, None, NoEffect(CLIENT), "Kafka offsets"),
    key(G::Engine, "offset.storage.replication.factor", Text, None, NoEffect(CLIENT), "Kafka offsets"),
    key(G::Engine, "offset.storage.jdbc.connection.url", Text, None, Yes, "`jdbc:mysql://host:port/database?…` or `jdbc:mariadb://…`; parameters other than `user`, `password` and those of TLS have no effect"),
    key(G::Engine, "offset.storage.jdbc.connection.user", Text, None, Yes, "login name"),
    key(G::Engine, "offset.storage.jdbc.connection.password", Secret, None, Yes, "login password"),
    key(G::Engine, "offset.storage.jdbc.connection.wait.retry.delay.ms", Long(NonNegative), Some("3000"), Yes, "milliseconds before a failed connection is tried again"),
    key(G::Engine, "offset.storage.jdbc.connection.retry.max.attempts", Int(Positive), Some("5"), Yes, "how often it is tried"),
    key(G::Engine, "offset.storage.jdbc.table.name", Text, Some("debezium_offset_storage"), Yes, "the table, which is created if it is not there"),
    key(G::Engine, "offset.storage.jdbc.table.ddl", Text, None, Yes, "the statement that creates it, with `%s` for its name; absent: Debezium's columns, with text of any length"),
    key(G::Engine, "offset.storage.jdbc.table.select", Text, Some("SELECT id, offset_key, offset_val FROM %s ORDER BY record_insert_ts, record_insert_seq"), NotYet(&["SELECT id, offset_key, offset_val FROM %s ORDER BY record_insert_ts, record_insert_seq"], OWN_SQL), "a statement of its own"),
    key(G::Engine, "offset.storage.jdbc.table.delete", Text, Some("DELETE FROM %s"), NotYet(&["DELETE FROM %s"], OWN_SQL), "a statement of its own"),
    key(G::Engine, "offset.storage.jdbc.table.insert", Text, Some("INSERT INTO %s(id, offset_key, offset_val, record_insert_ts, record_insert_seq) VALUES ( ?, ?, ?, ?, ? )"), NotYet(&["INSERT INTO %s(id, offset_key, offset_val, record_insert_ts, record_insert_seq) VALUES ( ?, ?, ?, ?, ? )"], OWN_SQL), "a statement of its own"),
    key(G::Engine, "offset.storage.jdbc.url", Text, None, Yes, "old name of `…jdbc.connection.url`"),
    key(G::Engine, "offset.storage.jdbc.user", Text, None, Yes, "old name of `…jdbc.connection.user`"),
    key(G::Engine, "offset.storage.jdbc.password", Secret, None, Yes, "old name of `…jdbc.connection.password`"),
    key(G::Engine, "offset.storage.jdbc.wait.retry.delay.ms", Long(NonNegative), Some("3000"), Yes, "old name of `…jdbc.connection.wait.retry.delay.ms`"),
    key(G::Engine, "offset.storage.jdbc.retry.max.attempts", Int(Positive), Some("5"), Yes, "old name of `…jdbc.connection.retry.max.attempts`"),
    key(G::Engine, "offset.storage.jdbc.offset.table.name", Text, None, Yes, "old name of `…jdbc.table.name`"),
    key(G::Engine, "offset.storage.jdbc.offset.table.ddl", Text, None, Yes, "old name of `…jdbc.table.ddl`"),
    key(G::Engine, "offset.storage.jdbc.*", Text, None, NotYet(&[], OWN_SQL), "old names of the statements"),
    key(G::Engine, "offset.storage.redis.*", Text, None, NotYet(&[], NO_KAFKA), "Redis offsets"),
    key(G::Engine, "offset.storage.configmap.*", Text, None, NotYet(&[], NO_KAFKA), "Kubernetes offsets"),
    key(G::Engine, "offset.storage.rocketmq.*", Text, None, NotYet(&[], NO_KAFKA), "RocketMQ offsets"),
    key(G::Engine, "schemas.enable", Bool, Some("false"), Yes, "write schemas with keys and values"),
    key(G::Engine, "converter.schemas.enable", Bool, Some("false"), Yes, "the same"),
    key(G::Engine, "key.converter.schemas.enable", Bool, Some("false"), Yes, "the same, for keys"),
    key(G::Engine, "value.converter.schemas.enable", Bool, Some("false"), Yes, "the same, for values"),
    key(G::Engine, "header.converter.schemas.enable", Bool, Some("false"), Yes, "the same, for headers"),
    key(G::Engine, "converter.decimal.format", Choice(&["BASE64", "NUMERIC"], None), Some("BASE64"), Yes, "precise decimals in JSON: the bytes of their digits, or numbers"),
    key(G::Engine, "key.converter.decimal.format", Choice(&["BASE64", "NUMERIC"], None), Some("BASE64"), Yes, "the same, for keys"),
    key(G::Engine, "value.converter.decimal.format", Choice(&["BASE64", "NUMERIC"], None), Some("BASE64"), Yes, "the same, for values"),
    key(G::Engine, "converter.replace.null.with.default", Bool, Some("true"), Yes, "write a NULL as the column's default"),
    key(G::Engine, "value.converter.replace.null.with.default", Bool, Some("true"), Yes, "the same"),
    key(G::Engine, "key.converter.replace.null.with.default", Bool, Some("true"), Yes, "the same, for keys"),
    key(G::Engine, "key.converter", Class, Some("org.apache.kafka.connect.json.JsonConverter"), NotYet(&["org.apache.kafka.connect.json.JsonConverter"], "only JSON is written"), "format of keys"),
    key(G::Engine, "value.converter", Class, Some("org.apache.kafka.connect.json.JsonConverter"), NotYet(&["org.apache.kafka.connect.json.JsonConverter", "io.debezium.converters.CloudEventsConverter"], "values are JSON or, with io.debezium.converters.CloudEventsConverter, CloudEvents in JSON"), "format of values: JSON, or CloudEvents in JSON with `io.debezium.converters.CloudEventsConverter` (options `extension.attributes.enable`, `json.schemas.enable`)"),
    key(G::Engine, "value.converter.json.schemas.enable", Bool, Some("false"), Yes, "CloudEvents: write the schema with the data"),
    key(G::Engine, "value.converter.extension.attributes.enable", Bool, Some("true"), Yes, "CloudEvents: write the operation, the source block and the transaction as attributes"),
    key(G::Engine, "header.converter.decimal.format", Choice(&["BASE64", "NUMERIC"], None), Some("BASE64"), Yes, "the same, for the keys in headers"),
    key(G::Engine, "header.converter.replace.null.with.default", Bool, Some("true"), Yes, "the same, for the keys in headers"),
    key(G::Engine, "header.converter", Class, None, NoEffect("headers are written as JSON"), "format of headers"),
    key(G::Engine, "converter.*", Text, None, NoEffect("JSON needs no further settings"), "converter settings"),
    key(G::Engine, "key.converter.*", Text, None, NoEffect("JSON needs no further settings"), "converter settings"),
    key(G::Engine, "value.converter.*", Text, None, NoEffect("JSON needs no further settings"), "converter settings"),
    key(G::Engine, "header.converter.*", Text, None, NoEffect("JSON needs no further settings"), "converter settings"),
    key(G::Engine, "transforms", List, None, Yes, "names of transforms, in order; each has `transforms.<name>.type`: `io.debezium.transforms.ExtractNewRecordState`, `…ByLogicalTableRouter`, `…outbox.EventRouter`, `org.apache.kafka.connect.transforms.Filter` or `…RegexRouter`"),
    key(G::Engine, "transforms.*", Text, None, Yes, "their options, and `predicate` and `negate`"),
    key(G::Engine, "predicates", List, None, Yes, "names of predicates; each has `predicates.<name>.type`: `TopicNameMatches`, `RecordIsTombstone` or `HasHeaderKey` of `org.apache.kafka.connect.transforms.predicates`"),
    key(G::Engine, "predicates.*", Text, None, Yes, "their options"),
    key(G::Engine, "record.processing.order", Text, Some("ORDERED"), NoEffect("records keep their order"), "order of processing"),
    key(G::Engine, "record.processing.*", Text, None, NoEffect("records are written by one task"), "threads of the engine"),
    key(G::Engine, "task.management.timeout.ms", Long(Any), Some("180000"), NoEffect("there are no tasks"), "limit for starting tasks"),
    key(G::Engine, "errors.retry.delay.initial.ms", Int(Any), Some("300"), NoEffect("retriable.restart.connector.wait.ms is the wait"), "first wait of the engine"),
    key(G::Engine, "errors.retry.delay.max.ms", Int(Any), Some("10000"), NoEffect("retriable.restart.connector.wait.ms is the wait"), "longest wait of the engine"),

    // Signals and notifications.
    key(G::Signals, "signal.data.collection", Text, None, NotYet(&[""], SIGNALS), "table of signals"),
    key(G::Signals, "signal.enabled.channels", List, Some("source"), NotYet(&["", "source"], SIGNALS), "where signals come from"),
    key(G::Signals, "signal.poll.interval.ms", Long(PositiveInt), Some("5000"), NoEffect("there are no signals yet"), "milliseconds between two looks"),
    key(G::Signals, "signal.*", Text, None, NoEffect("there are no signals yet"), "settings of channels"),
    key(G::Signals, "notification.enabled.channels", List, None, NotYet(&[""], "notifications are not there yet"), "where notifications go"),
    key(G::Signals, "notification.*", Text, None, NoEffect("there are no notifications yet"), "settings of channels"),

    // Queue, retries, operation.
    key(G::Operation, "max.batch.size", Int(Positive), Some("2048"), Yes, "records of one batch, which also ends at 1 MiB of text; the last ack group is finished"),
    key(G::Operation, "max.queue.size", Int(Queue), Some("8192"), Yes, "records that wait; more than max.batch.size"),
    key(G::Operation, "max.queue.size.in.bytes", Long(NonNegative), Some("0"), Yes, "bytes that wait; 0 is a bound of 32 MiB here"),
    key(G::Operation, "poll.interval.ms", Long(PositiveInt), Some("500"), Yes, "milliseconds to wait for records"),
    key(G::Operation, "poll.dispatch.interval.ms", Long(NonNegative), Some("0"), NoEffect("batches are handed over at once"), "milliseconds to gather records"),
    key(G::Operation, "queue.provider.type", Text, Some("memory"), NotYet(&["memory"], "the queue is in memory"), "kind of queue"),
    key(G::Operation, "tasks.max", Int(Any), Some("1"), NoEffect("there is always one task"), "number of tasks"),
    key(G::Operation, "errors.max.retries", Int(Any), Some("-1"), Yes, "restarts after errors that may pass, -1 for no limit"),
    key(G::Operation, "retriable.restart.connector.wait.ms", Long(Positive), Some("10000"), Yes, "milliseconds to wait before such a restart"),
    key(G::Operation, "executor.shutdown.timeout.ms", Long(Positive), Some("4000"), NoEffect("stopping waits for no worker"), "milliseconds to wait for the end of work at stop"),
    key(G::Operation, "custom.metric.tags", Map, None, NoEffect("metrics have fixed labels"), "tags of metrics"),
    key(G::Operation, "statistics.metrics.enabled", Bool, Some("true"), NoEffect("metrics are always there"), "latency statistics"),
    key(G::Operation, "internal.advanced.metrics.enable", Bool, Some("false"), NoEffect("metrics are always there"), "more metrics"),
    key(G::Operation, "custom.sanitize.pattern", Text, None, NoEffect("values are never logged"), "keys whose values are masked in logs"),
    key(G::Operation, "memory.management.schemas.class", Class, None, NoEffect("Java's memory only"), "store of schemas"),
    key(G::Operation, "memory.management.tables.class", Class, None, NoEffect("Java's memory only"), "store of tables"),
    key(G::Operation, "internal.offset.activity.monitor.interval.ms", Long(NonNegative), Some("600000"), NoEffect("the offset's age is a metric"), "check for stale offsets"),
    key(G::Operation, "internal.custom.retriable.exception", Text, None, NotYet(&[""], "errors are classified by kind, not by their text"), "errors to retry"),
    key(G::Operation, "internal.*", Text, None, NoEffect("it is internal to Debezium"), "other internals"),
    key(G::Operation, "openlineage.integration.enabled", Bool, Some("false"), NotYet(&["false"], LINEAGE), "lineage events"),
    key(G::Operation, "openlineage.integration.job.tags", Map, None, NoEffect(LINEAGE), "lineage settings"),
    key(G::Operation, "openlineage.integration.job.owners", Map, None, NoEffect(LINEAGE), "lineage settings"),
    key(G::Operation, "openlineage.integration.*", Text, None, NoEffect(LINEAGE), "lineage settings"),

    // Kafka Connect.
    key(G::Connect, "bootstrap.servers", Text, None, NoEffect(CLIENT), "brokers"),
    key(G::Connect, "group.id", Text, None, NoEffect(CLIENT), "worker group"),
    key(G::Connect, "plugin.path", Text, None, NoEffect("there are no plug-ins"), "Java plug-ins"),
    key(G::Connect, "config.action.reload", Text, None, NoEffect("a configuration is read once"), "reload"),
    key(G::Connect, "exactly.once.support", Text, None, NoEffect(CLIENT), "exactly-once of Kafka Connect"),
    key(G::Connect, "transaction.boundary", Text, None, NoEffect(CLIENT), "transactions of Kafka Connect"),
    key(G::Connect, "transaction.boundary.interval.ms", Text, None, NoEffect(CLIENT), "transactions of Kafka Connect"),
    key(G::Connect, "offsets.storage.topic", Text, None, NoEffect(CLIENT), "offsets of Kafka Connect"),
    key(G::Connect, "tasks.max.enforce", Text, None, NoEffect("there is always one task"), "number of tasks"),
    key(G::Connect, "errors.tolerance", Text, Some("none"), NotYet(&["none"], "records are never dropped by the engine"), "errors of converters and transformations"),
    key(G::Connect, "errors.retry.timeout", Text, None, NoEffect("there are no transformations"), "errors of converters and transformations"),
    key(G::Connect, "errors.log.*", Text, None, NoEffect("there are no transformations"), "errors of converters and transformations"),
    key(G::Connect, "errors.deadletterqueue.*", Text, None, NoEffect("sources have none"), "dead letters"),
    key(G::Connect, "topic.creation.*", Text, None, NoEffect(CLIENT), "how topics are created"),
    key(G::Connect, "producer.*", Text, None, NoEffect(CLIENT), "client settings"),
    key(G::Connect, "consumer.*", Text, None, NoEffect(CLIENT), "client settings"),
    key(G::Connect, "admin.*", Text, None, NoEffect(CLIENT), "client settings"),
    ]
};
