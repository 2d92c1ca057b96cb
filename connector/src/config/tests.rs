use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_history::TableId;
use proptest::prelude::*;

use crate::convert::{FailureMode, TimePrecisionMode};
use crate::topic::NameAdjustment;

use super::known::{Group, KNOWN, Key, Kind, Range, Support};
use super::*;

/// The smallest file that is right.
const BASE: [(&str, &str); 4] = [
    ("topic.prefix", "srv"),
    ("database.hostname", "127.0.0.1"),
    ("database.user", "root"),
    ("database.server.id", "5400"),
];

fn with(pairs: &[(&str, &str)]) -> Properties {
    let mut properties: Properties = BASE.into_iter().collect();
    for (key, value) in pairs {
        properties.set(*key, *value);
    }
    properties
}

fn without(name: &str) -> Properties {
    BASE.into_iter().filter(|(key, _)| *key != name).collect()
}

fn check(properties: &Properties) -> Result<(Config, Vec<Note>), ConfigErrors> {
    Config::from_properties(properties, Path::new("/etc/holdfast"))
}

/// The smallest file that is right, and these properties.
pub(super) fn outcome(pairs: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    check(&with(pairs)).map(|(config, _)| config)
}

fn config(pairs: &[(&str, &str)]) -> Config {
    outcome(pairs).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(pairs: &[(&str, &str)]) -> ConfigErrors {
    check(&with(pairs)).expect_err(&format!("{pairs:?} is accepted"))
}

fn notes(pairs: &[(&str, &str)]) -> Vec<String> {
    check(&with(pairs)).unwrap().1.iter().map(ToString::to_string).collect()
}

/// Without the constant beginning.
fn messages(errors: &ConfigErrors, property: &str) -> Vec<String> {
    let beginning = format!("The '{property}' value is invalid: ");
    errors.of(property).map(|error| error.to_string().replace(&beginning, "")).collect()
}

#[test]
fn the_smallest_file_gives_debeziums_defaults() {
    let config = config(&[]);
    assert_eq!(
        (config.name.as_str(), config.topic_prefix.as_str(), config.connector),
        ("srv", "srv", Flavor::MySql)
    );
    assert_eq!((config.connection.port, config.connection.server_id), (3306, 5400));
    assert_eq!(config.connection.connect_timeout, Duration::from_secs(30));
    assert_eq!(config.connection.keep_alive, Some(Duration::from_secs(60)));
    assert_eq!(config.connection.query_timeout, Some(Duration::from_secs(600)));
    assert_eq!(config.connection.ssl_mode, SslMode::Preferred);
    assert_eq!((config.connection.password, config.connection.net_read_timeout), (None, None));
    assert_eq!(config.tables, TableFilter::default());
    assert_eq!(config.topics, TopicNaming::new("srv"));
    assert_eq!(config.field_names, NameAdjustment::None);
    assert_eq!(config.conversion, ConversionOptions::default());
    assert_eq!(
        config.events,
        EventConfig {
            schema_changes: true,
            schema_comments: false,
            query: false,
            tombstones: true,
            skipped: SkippedOperations { truncate: true, ..SkippedOperations::default() },
            skip_unchanged: false,
            transaction_metadata: false,
            key_schemas: false,
            value_schemas: false,
            header_schemas: false,
            context_headers: true,
            heartbeat_interval: None,
            heartbeat_query: None,
            on_processing_failure: FailureMode::Fail,
            on_unknown_table: FailureMode::Fail,
        }
    );
    assert_eq!(
        config.gtids,
        GtidConfig { sources: Selection::All, filter_rows: true, ignore_on_recovery: false }
    );
    assert_eq!(
        config.snapshot,
        SnapshotConfig {
            mode: SnapshotMode::Initial,
            locking: LockingMode::Minimal,
            lock_timeout: Duration::from_secs(10),
            fetch_size: None,
            max_threads: 1,
            include: Selection::All,
            select_overrides: BTreeMap::new(),
            table_order: TableOrder::Disabled,
            delay: Duration::ZERO,
            streaming_delay: Duration::ZERO,
        }
    );
    assert_eq!(
        config.queue,
        QueueConfig {
            max_batch: 2048,
            max_records: 8192,
            max_bytes: 32 << 20,
            poll_interval: Duration::from_millis(500),
            tasks: 0,
        }
    );
    assert_eq!((config.max_retries, config.retry_wait), (None, Duration::from_secs(10)));
    assert_eq!(config.offsets.flush_interval, Duration::from_secs(60));
    let file = |name: &str| StoreKind::File {
        path: PathBuf::from("/etc/holdfast/holdfast-data").join(name),
    };
    assert_eq!(config.offsets.store, file("srv.offsets.json"));
    assert_eq!(config.history.store, file("srv.history.jsonl"));
    assert_eq!((config.identity_header, config.source_id), (false, None));
}

#[test]
fn values_reach_their_fields() {
    let config = config(&[
        ("name", "engine"),
        ("connector.class", "io.debezium.connector.mariadb.MariaDbConnector"),
        ("database.ssl.mode", "disable"),
        ("database.password", "secret"),
        ("database.initial.statements", "SET a=1; SET b=';;' ;"),
        ("connect.keep.alive", "false"),
        ("snapshot.mode", " NO_DATA "),
        ("snapshot.select.statement.overrides", "gold.t1"),
        ("snapshot.select.statement.overrides.gold.t1", "SELECT * FROM gold.t1 WHERE id=1"),
        ("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"),
        ("schema.history.internal.file.filename", "/tmp/h"),
        ("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"),
        ("offset.storage.file.filename", "/tmp/o"),
        (
            "offset.commit.policy",
            "io.debezium.engine.spi.OffsetCommitPolicy$AlwaysCommitOffsetPolicy",
        ),
        ("max.queue.size.in.bytes", "1000"),
        ("errors.max.retries", "3"),
        ("heartbeat.interval.ms", "250"),
        ("skipped.operations", "c , u,c"),
        ("table.include.list", "gold.t1,gold.t2"),
        ("gtid.source.excludes", "0-7"),
        ("time.precision.mode", "CONNECT"),
        ("inconsistent.schema.handling.mode", "ignore"),
        ("holdfast.source.id", "main"),
    ]);
    assert_eq!((config.name.as_str(), config.connector), ("engine", Flavor::MariaDb));
    assert_eq!(config.connection.ssl_mode, SslMode::Disabled);
    assert_eq!(config.connection.password, Some(Secret::new("secret")));
    assert_eq!(config.connection.initial_statements, ["SET a=1", "SET b=';'"]);
    assert_eq!(config.connection.keep_alive, None);
    assert_eq!(config.snapshot.mode, SnapshotMode::NoData);
    assert_eq!(config.snapshot.select_overrides["gold.t1"], "SELECT * FROM gold.t1 WHERE id=1");
    assert_eq!(config.history.store, StoreKind::File { path: "/tmp/h".into() });
    assert_eq!(
        config.offsets,
        OffsetConfig {
            store: StoreKind::File { path: "/tmp/o".into() },
            flush_interval: Duration::ZERO
        }
    );
    assert_eq!((config.queue.max_bytes, config.max_retries), (1000, Some(3)));
    assert_eq!(config.events.heartbeat_interval, Some(Duration::from_millis(250)));
    assert_eq!(
        config.events.skipped,
        SkippedOperations { create: true, update: true, ..SkippedOperations::default() }
    );
    assert!(
        config.tables.captures(&TableId::new("gold", "T2"))
            && !config.tables.captures(&TableId::new("gold", "x"))
    );
    assert!(!config.gtids.sources.includes("0-7") && config.gtids.sources.includes("0-8"));
    assert_eq!(
        (config.conversion.time_precision, config.events.on_unknown_table),
        (TimePrecisionMode::Connect, FailureMode::Skip)
    );
    assert_eq!(config.source_id.as_deref(), Some("main"));
    assert!(!format!("{config:?}").contains("secret"));
}

/// What Debezium 3.6.3.Final answered to the same value; a message that it printed twice stands once.
#[test]
fn wrong_values_are_refused_in_debeziums_words() {
    const NAME: &str = " has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)";
    const MODES: &str = "Value must be one of always, initial_only, configuration_based, when_needed, initial, custom, no_data, recovery";
    const LOCKS: &str = "Value must be one of minimal, minimal_percona, custom, none, minimal_percona_no_table_locks, extended";
    let rows: &[(&str, &str, &[&str])] = &[
        ("topic.prefix", "", &["A value is required", NAME]),
        ("topic.prefix", "a b", &[&format!("a b{NAME}")]),
        ("database.hostname", "", &["A value is required"]),
        ("database.hostname", "::1", &[&format!("::1{NAME}")]),
        ("database.user", "", &["A value is required"]),
        ("database.port", "zz[", &["An integer is expected"]),
        ("database.port", "33152 ", &["An integer is expected"]),
        ("database.server.id", "0", &["A positive, non-zero long value is expected"]),
        (
            "database.server.id",
            "abc",
            &["A long value is expected", "A positive, non-zero long value is expected"],
        ),
        (
            "database.server.id",
            "",
            &[
                "A long value is expected",
                "A positive, non-zero long value is expected",
                "A value is required",
            ],
        ),
        ("database.server.id.offset", "zz[", &["A long value is expected"]),
        ("connect.timeout.ms", "0", &["A positive, non-zero integer value is expected"]),
        (
            "connect.keep.alive.interval.ms",
            "-1",
            &["A positive, non-zero integer value is expected"],
        ),
        ("binlog.net.read.timeout", "-1", &["A non-negative long value is expected"]),
        ("poll.interval.ms", "2147483648", &["A positive, non-zero integer value is expected"]),
        (
            "max.batch.size",
            "2147483648",
            &["An integer is expected", "A positive, non-zero integer value is expected"],
        ),
        (
            "max.queue.size",
            "0",
            &["A positive queue size is required", "Must be larger than the maximum batch size"],
        ),
        ("max.queue.size", "10", &["Must be larger than the maximum batch size"]),
        ("max.queue.size", "zz[", &["An integer is expected"]),
        (
            "heartbeat.interval.ms",
            "1.5",
            &["An integer is expected", "An non-negative integer is expected"],
        ),
        ("min.row.count.to.stream.results", "-1", &["A non-negative long value is expected"]),
        ("include.schema.changes", "1", &["Either 'true' or 'false' is expected"]),
        ("tombstones.on.delete", "", &["Either 'true' or 'false' is expected"]),
        ("decimal.handling.mode", "bogus", &["Value must be one of string, double, precise"]),
        ("bigint.unsigned.handling.mode", "bogus", &["Value must be one of precise, long"]),
        (
            "time.precision.mode",
            "adaptive",
            &["The 'adaptive' time.precision.mode is no longer supported"],
        ),
        (
            "time.precision.mode",
            "zz[",
            &[
                "Value must be one of adaptive, adaptive_time_microseconds, isostring, microseconds, nanoseconds, connect",
            ],
        ),
        ("snapshot.mode", "schema_only", &[MODES]),
        ("schema.history.internal", "-1", &["A Java class name is expected"]),
        (
            "database.ssl.mode",
            "zz[",
            &["Value must be one of verify_identity, disabled, preferred, required, verify_ca"],
        ),
        ("database.query.timeout.ms", "zz[", &["An integer is expected"]),
        ("snapshot.locking.mode", "zz[", &["Must be a valid snapshot.locking.mode value", LOCKS]),
        (
            "event.processing.failure.handling.mode",
            "zz[",
            &["Value must be one of warn, fail, ignore, skip"],
        ),
        ("skipped.operations", "C", &["Invalid operation"]),
        ("skipped.operations", "", &["Invalid operation"]),
        (
            "skipped.operations",
            "none,c",
            &["'none' cannot be specified with other skipped operation types"],
        ),
        (
            "table.include.list",
            "*",
            &[
                "A comma-separated list of valid regular expressions is expected, but Dangling meta character '*' near index 0\n*\n^",
            ],
        ),
        (
            "column.exclude.list",
            "zz[",
            &[
                "A comma-separated list of valid regular expressions is expected, but Unclosed character class near index 2\nzz[\n  ^",
            ],
        ),
        (
            "message.key.columns",
            "abc",
            &["abc has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')"],
        ),
        (
            "message.key.columns",
            "",
            &[
                "Must not be empty",
                " has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')",
            ],
        ),
        ("database.jdbc.driver", "zz[", &["A Java class name is expected"]),
        (
            "custom.metric.tags",
            "a=b=c",
            &[
                "A equivalent-separated map of valid key/value pairs is expected, for example: k1=v1,k2=v2",
            ],
        ),
    ];
    for (property, value, expected) in rows {
        assert_eq!(
            &messages(&errors(&[(property, value)]), property),
            expected,
            "{property}={value:?}"
        );
    }
    for (property, _) in BASE {
        let errors = check(&without(property)).unwrap_err();
        assert_eq!(
            errors.to_string(),
            format!("The '{property}' value is invalid: A value is required")
        );
    }
}

#[test]
fn pairs_of_properties_are_checked_in_debeziums_words() {
    type Pairs = &'static [(&'static str, &'static str)];
    let rows: &[(Pairs, &str, &str)] = &[
        (
            &[("max.batch.size", "10000")],
            "max.queue.size",
            "Must be larger than the maximum batch size",
        ),
        (
            &[("database.include.list", ""), ("database.exclude.list", "a")],
            "database.exclude.list",
            "\"database.include.list\" is already specified",
        ),
        (
            &[("gtid.source.includes", "a"), ("gtid.source.excludes", "b")],
            "gtid.source.excludes",
            "Cannot specify GTID excludes when includes are provided.",
        ),
        (
            &[("snapshot.mode", "custom")],
            "snapshot.mode.custom.name",
            "snapshot.mode.custom.name cannot be empty when snapshot.mode 'custom' is defined",
        ),
        (
            &[
                ("connector.class", "io.debezium.connector.mariadb.MariaDbConnector"),
                ("database.ssl.mode", "verify_ca"),
            ],
            "database.ssl.mode",
            "Value must be one of trust, disable, verify-ca, verify-full",
        ),
        (
            &[
                ("topic.naming.strategy", "io.debezium.schema.DefaultRegexTopicNamingStrategy"),
                ("topic.regex", "a"),
            ],
            "topic.replacement",
            "topic.replacement must be non-empty if topic.regex is set.",
        ),
        (
            &[("topic.naming.strategy", "io.debezium.schema.DefaultRegexTopicNamingStrategy")],
            "topic.regex",
            "A value is required",
        ),
    ];
    for (pairs, property, expected) in rows {
        assert!(
            messages(&errors(pairs), property).contains(&(*expected).to_owned()),
            "{pairs:?}: {}",
            errors(pairs)
        );
    }
}

#[test]
fn what_debezium_accepts_is_accepted() {
    for (property, value) in [
        ("snapshot.mode", "INITIAL"),
        ("include.query", " true "),
        ("include.query", "TRUE"),
        ("decimal.handling.mode", "String"),
        ("binary.handling.mode", "bogus"),
        ("topic.prefix", ".."),
        ("skipped.operations", "r"),
        ("skipped.operations", "none"),
        ("message.key.columns", "a:b;c:d,e"),
        ("database.include.list", ""),
        ("signal.enabled.channels", "source"),
        ("signal.data.collection", ""),
        ("custom.metric.tags", ""),
        ("database.password", ""),
        ("event.deserialization.failure.handling.mode", "WARN"),
    ] {
        let outcome = check(&with(&[(property, value)]));
        assert!(outcome.is_ok(), "{property}={value}: {}", outcome.unwrap_err());
    }
}

#[test]
fn everything_wrong_is_reported_at_once() {
    let errors =
        errors(&[("database.port", "x"), ("snapshot.mode", "y"), ("tabel.include.list", "z")]);
    assert_eq!(
        errors.iter().map(ConfigError::property).collect::<Vec<_>>(),
        ["database.port", "snapshot.mode", "tabel.include.list"]
    );
    assert_eq!(errors.to_string().lines().count(), 3);
}

#[test]
fn an_unknown_property_is_answered_with_the_nearest() {
    for (wrong, meant) in [
        ("tabel.include.list", "did you mean 'table.include.list'?"),
        ("table.includelist", "did you mean 'table.include.list'?"),
        (
            "schema.history.internal.skip.unparsable.ddl",
            "did you mean 'schema.history.internal.skip.unparseable.ddl'?",
        ),
        ("snapshot.mod", "did you mean 'snapshot.mode'?"),
        ("holdfast.header.identity", "did you mean 'holdfast.headers.identity'?"),
        ("database.server.name", "it is called 'topic.prefix' today"),
        ("debezium.source.database.port", "the prefix is Debezium Server's; write 'database.port'"),
    ] {
        let errors = errors(&[(wrong, "x")]);
        assert_eq!(errors.to_string(), format!("unknown property '{wrong}'; {meant}"));
    }
    let text =
        "topic.prefix=a\ndatabase.hostname=b\n\ndatabase.user=c\ndatabase.server.id=1\nzzz=1";
    let errors = check(&Properties::parse(text).unwrap()).unwrap_err();
    assert!(
        errors
            .to_string()
            .starts_with("unknown property 'zzz' in line 6; the nearest known property is '")
    );
}

#[test]
fn what_would_change_the_outcome_and_is_not_there_is_refused() {
    for (property, value) in [
        ("signal.data.collection", "gold.signals"),
        ("signal.enabled.channels", "source,kafka"),
        ("notification.enabled.channels", "log"),
        ("database.ssl.truststore", "trust.jks"),
        ("schema.history.internal", "io.debezium.storage.kafka.history.KafkaSchemaHistory"),
        ("schema.history.internal.kafka.topic", "t"),
        ("offset.storage", "org.apache.kafka.connect.storage.KafkaOffsetBackingStore"),
        ("connector.class", "io.debezium.connector.postgresql.PostgresConnector"),
        ("topic.naming.strategy", "x.Y"),
        ("sourceinfo.struct.maker", "x.Y"),
        ("key.converter", "io.confluent.connect.avro.AvroConverter"),
        ("snapshot.locking.mode", "custom"),
    ] {
        let errors = errors(&[(property, value)]);
        let refused =
            errors.of(property).all(|error| matches!(error, ConfigError::Unsupported { .. }));
        assert!(refused && errors.iter().count() == 1, "{property}={value}: {errors}");
    }
}

#[test]
fn schemas_are_written_where_the_nearest_setting_says_so() {
    let schemas = |properties: &[(&str, &str)]| {
        let events = config(properties).events;
        [events.key_schemas, events.value_schemas, events.header_schemas]
    };
    let key_off = ("key.converter.schemas.enable", "false");
    for (properties, expected) in [
        (vec![], [false; 3]),
        (vec![("schemas.enable", "true")], [true; 3]),
        (vec![("schemas.enable", "true"), ("converter.schemas.enable", "false")], [false; 3]),
        (vec![("converter.schemas.enable", "true"), key_off], [false, true, true]),
        (vec![("header.converter.schemas.enable", "true")], [false, false, true]),
    ] {
        assert_eq!(schemas(&properties), expected, "{properties:?}");
    }
}

#[test]
fn what_means_nothing_here_is_noted_unless_it_says_the_default() {
    let quiet = notes(&[]).len();
    assert_eq!(notes(&[("tasks.max", "1"), ("database.protocol", "jdbc:mysql")]).len(), quiet);
    let said = notes(&[("tasks.max", "2"), ("driver.useSSL", "false"), ("producer.acks", "all")]);
    assert_eq!(said.len(), quiet + 3, "{said:?}");
    assert!(
        said.contains(&"tasks.max: accepted without effect: there is always one task".to_owned())
    );
    assert!(notes(&[]).iter().any(|note| note.starts_with("offset.storage: not set: stored in")));
    assert!(
        notes(&[("binary.handling.mode", "x")])
            .iter()
            .any(|note| note.starts_with("binary.handling.mode"))
    );
}

#[test]
fn tables_are_named_by_jdbc_urls_and_other_drivers_are_refused() {
    const JDBC: [(&str, &str); 10] = [
        ("schema.history.internal", "io.debezium.storage.jdbc.history.JdbcSchemaHistory"),
        ("schema.history.internal.jdbc.connection.url", "jdbc:mysql://h:3307/store"),
        ("schema.history.internal.jdbc.connection.user", "u"),
        ("schema.history.internal.jdbc.connection.password", "p"),
        ("offset.storage", "io.debezium.storage.jdbc.offset.JdbcOffsetBackingStore"),
        ("offset.storage.jdbc.url", "jdbc:mariadb://o/offsets"),
        ("offset.storage.jdbc.user", "u"),
        ("offset.storage.jdbc.password", "p"),
        ("offset.storage.jdbc.retry.max.attempts", "2"),
        ("offset.storage.jdbc.table.name", "offsets.mine"),
    ];
    let config = config(&JDBC);
    let StoreKind::Table(history) = &config.history.store else { panic!("{config:?}") };
    assert_eq!(history.to_string(), "table store.debezium_database_history at h:3307");
    assert_eq!((history.retry_delay, history.max_attempts), (Duration::from_secs(3), 5));
    let StoreKind::Table(offsets) = &config.offsets.store else { panic!("{config:?}") };
    assert_eq!(offsets.to_string(), "table offsets.mine at o:3306");
    assert_eq!((offsets.user.as_str(), offsets.max_attempts), ("u", 2));

    let wrong = [
        ("schema.history.internal.jdbc.connection.url", "jdbc:postgresql://h/x?password=hidden"),
        ("schema.history.internal.jdbc.connection.retry.max.attempts", "0"),
        ("offset.storage.jdbc.table.name", "elsewhere.mine"),
        ("offset.storage.jdbc.table.select", "SELECT 1"),
    ];
    for (property, value) in wrong {
        let errors = errors(&[&JDBC[..], &[(property, value)]].concat());
        assert_eq!(errors.of(property).count(), 1, "{errors}");
        assert!(!errors.to_string().contains("hidden"), "{errors}");
    }
}

#[test]
fn object_storage_is_named_by_urls_without_credentials() {
    let bucket = "s3://b/data/rw-cdc-schema-history/source-16?region=eu-west-1";
    let config = config(&[
        ("holdfast.history.url", bucket),
        ("holdfast.offsets.url", "file:///var/lib/offsets.json"),
        ("holdfast.s3.access.key.id", "hidden-id"),
        ("holdfast.s3.secret.access.key", "hidden-secret"),
    ]);
    let StoreKind::Objects(url) = &config.history.store else { panic!("{config:?}") };
    assert_eq!(url.to_string(), "s3://b/data/rw-cdc-schema-history/source-16");
    assert_eq!(config.offsets.store, StoreKind::File { path: "/var/lib/offsets.json".into() });
    assert!(!format!("{config:?}").contains("hidden"), "{config:?}");

    let wrong: [&[(&str, &str)]; 7] = [
        &[("holdfast.history.url", "/var/lib/history")],
        &[("holdfast.history.url", "s3://b")],
        &[("holdfast.history.url", "s3://hidden:hidden@b/x")],
        &[
            ("holdfast.history.url", bucket),
            ("schema.history.internal", "io.debezium.relational.history.MemorySchemaHistory"),
        ],
        &[("holdfast.offsets.url", "gs://b/offsets.json")],
        &[("holdfast.s3.access.key.id", "x"), ("holdfast.offsets.url", "s3://b/offsets.json")],
        &[("holdfast.s3.session.token", "hidden"), ("holdfast.offsets.url", "s3://b/offsets.json")],
    ];
    for properties in wrong {
        let (property, _) = properties[0];
        let errors = errors(properties);
        assert_eq!(errors.of(property).count(), 1, "{errors}");
        assert!(!errors.to_string().contains("hidden"), "{errors}");
    }
}

#[test]
fn families_match_names_of_their_form_only() {
    for (name, family) in [
        ("column.mask.with.12.chars", "column.mask.with.*.chars"),
        ("column.mask.hash.v2.SHA-256.with.salt.a.b", "column.mask.hash.*.with.salt.*"),
        ("snapshot.select.statement.overrides.db.t", "snapshot.select.statement.overrides.*"),
        ("transforms.a.type", "transforms.*"),
        ("schema.history.internal.kafka.topic", "schema.history.internal.kafka.topic"),
    ] {
        assert_eq!(known::find(name).unwrap().name, family);
    }
    for name in [
        "column.mask.with..chars",
        "column.mask.with.chars",
        "transforms.",
        "column.mask.hash.a.with.salt.",
    ] {
        assert!(known::find(name).is_none(), "{name}");
    }
}

#[test]
fn names_are_in_the_table_once() {
    let mut names: Vec<_> = KNOWN.iter().map(|key| key.name).collect();
    names.sort_unstable();
    let before = names.len();
    names.dedup();
    assert_eq!(names.len(), before);
}

/// The tables of `docs/configuration.md` are rendered from the table of properties. After a change:
/// `HOLDFAST_WRITE_DOCS=1 cargo test -p holdfast-connector the_documentation`.
#[test]
fn the_documentation_lists_every_property() {
    const MARK: &str =
        "<!-- The rest is rendered from connector/src/config/known.rs by a test. -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, tables) = text.split_once(MARK).unwrap();
    let rendered = render();
    if std::env::var_os("HOLDFAST_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{MARK}{rendered}")).unwrap();
    } else {
        assert!(tables == rendered, "docs/configuration.md is old; see the comment of this test");
    }
}

fn render() -> String {
    let sections: [(Group, &str); 13] = [
        (Group::Own, "Holdfast's own settings"),
        (Group::Connection, "Connection"),
        (Group::Filters, "Filters"),
        (Group::Naming, "Topics, keys and names"),
        (Group::Values, "Values"),
        (Group::Events, "Records"),
        (Group::Binlog, "Binlog"),
        (Group::Snapshot, "Snapshot"),
        (Group::History, "Schema history"),
        (Group::Engine, "Offsets and engine"),
        (Group::Signals, "Signals and notifications"),
        (Group::Operation, "Queue, retries, operation"),
        (Group::Connect, "Kafka Connect and the JVM"),
    ];
    let mut text = String::new();
    for (group, title) in sections {
        text += &format!(
            "\n## {title}\n\n| property | value | default | effect | here |\n|---|---|---|---|---|\n"
        );
        for key in KNOWN.iter().filter(|key| key.group == group) {
            text += &row(key);
        }
    }
    text
}

fn row(key: &Key) -> String {
    let quoted =
        |text: &str| if text.is_empty() { "empty".to_owned() } else { format!("`{text}`") };
    let kind = match key.kind {
        Kind::Text => "text".to_owned(),
        Kind::Secret => "secret".to_owned(),
        Kind::Topic | Kind::Host => "name".to_owned(),
        Kind::Bool => "true, false".to_owned(),
        Kind::Int(Range::Port) => "1 to 65535".to_owned(),
        Kind::Int(range) | Kind::Long(range) => match range {
            Range::Any => "integer".to_owned(),
            Range::Positive | Range::PositiveInt | Range::Queue => "integer from 1".to_owned(),
            Range::NonNegative | Range::NonNegativeAsLong | Range::NotBelowZero => {
                "integer from 0".to_owned()
            }
            Range::Port => "1 to 65535".to_owned(),
            Range::ServerId => "1 to 4294967295".to_owned(),
        },
        Kind::Choice(mysql, mariadb) => {
            let mariadb = mariadb
                .map(|values| format!("; MariaDB: {}", values.join(", ")))
                .unwrap_or_default();
            format!("{}{mariadb}", mysql.join(", "))
        }
        Kind::Regexes => "regular expressions".to_owned(),
        Kind::Regex => "regular expression".to_owned(),
        Kind::List => "list".to_owned(),
        Kind::Class => "class name".to_owned(),
        Kind::Map => "`k=v,…`".to_owned(),
        Kind::Operations => "c, u, d, t, r or none".to_owned(),
        Kind::KeyColumns => "`table:column,…;…`".to_owned(),
    };
    let default = match (key.default, key.mariadb_default) {
        (None, _) => String::new(),
        (Some(default), None) => quoted(default),
        (Some(default), Some(mariadb)) => {
            format!("{}; MariaDB: {}", quoted(default), quoted(mariadb))
        }
    };
    let here = match key.support {
        Support::Yes => "supported".to_owned(),
        Support::NoEffect(why) => format!("accepted without effect: {why}"),
        Support::NotYet(harmless, why) => {
            let but = harmless.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ");
            let but = if but.is_empty() { String::new() } else { format!(" but {but}") };
            format!("not yet: refused{but}: {why}")
        }
    };
    format!("| `{}` | {kind} | {default} | {} | {here} |\n", key.name, key.effect)
}

proptest! {
    #[test]
    fn any_file_is_checked_without_a_panic(
        pairs in proptest::collection::vec((0..KNOWN.len(), "[a-z]{0,3}", "(true|-?[0-9]{1,20}|[a-z,:;.*\\[(\\\\ =]{0,12}|.{0,6})"), 0..6),
        junk in ".{0,60}",
    ) {
        let mut properties = with(&[]);
        for (index, filler, value) in pairs {
            properties.set(KNOWN[index].name.replace('*', &filler), value);
        }
        let _outcome = check(&properties);
        if let Ok(parsed) = Properties::parse(&junk) {
            let _outcome = check(&parsed);
        }
    }
}
