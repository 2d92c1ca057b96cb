//! Which records are written, and how their values are.

use std::time::Duration;

use super::{Checked, Flavor, SkippedOperations, modes};
use crate::convert::{BinaryMode, ConversionOptions, FailureMode, JsonForm, UniformTypes};

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

impl Checked<'_> {
    pub(super) fn events(&self) -> EventConfig {
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

    pub(super) fn conversion(&mut self) -> ConversionOptions {
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
            value_json: self.json_form("value"),
            key_json: self.json_form("key"),
            header_json: self.json_form("header"),
            uniform: match (self.bool("holdfast.uniform.types"), self.flavor) {
                (false, _) => UniformTypes::Off,
                (true, Flavor::MySql) => UniformTypes::MySql,
                (true, Flavor::MariaDb) => UniformTypes::MariaDb,
            },
            ..otherwise
        }
    }

    /// What the converter of keys or values is told.
    fn json_form(&self, part: &str) -> JsonForm {
        const FORMAT: &str = "converter.decimal.format";
        let format = format!("{part}.{FORMAT}");
        let format = if self.properties.get(&format).is_some() { &format } else { FORMAT };
        JsonForm {
            replace_null_with_default: self.either(
                &format!("{part}.converter.replace.null.with.default"),
                "converter.replace.null.with.default",
            ),
            numeric_decimals: self.text(format).trim().eq_ignore_ascii_case("NUMERIC"),
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
}
