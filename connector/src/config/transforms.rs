//! `transforms` and `predicates`: which steps records go through, by the names of Kafka Connect and Debezium.

use super::{Checked, ConfigError, check, known, modes};
use crate::filter::{JavaRegex, split_list};
use crate::topic::NameAdjustment;
use crate::transform::{
    CloudEvents, DeleteHandling, EventRouter, ExtractNewRecordState, FieldReference, LogicalRouter,
    NullFields, Placement, Predicate, Step, Transform, TransformConfig, UnexpectedUpdate,
};

/// The class that makes values CloudEvents.
pub(super) const CLOUD_EVENTS: &str = "io.debezium.converters.CloudEventsConverter";

/// The transforms there are, each with its options.
const TRANSFORMS: &[(&str, &[&str])] = &[
    (
        "io.debezium.transforms.ExtractNewRecordState",
        &[
            "delete.tombstone.handling.mode",
            "route.by.field",
            "add.fields",
            "add.fields.prefix",
            "add.headers",
            "add.headers.prefix",
            "drop.fields.header.name",
            "drop.fields.from.key",
            "drop.fields.keep.schema.compatible",
            "replace.null.with.default",
        ],
    ),
    (
        "io.debezium.transforms.ByLogicalTableRouter",
        &[
            "topic.regex",
            "topic.replacement",
            "key.enforce.uniqueness",
            "key.field.name",
            "key.field.regex",
            "key.field.replacement",
            "schema.name.adjustment.mode",
            "logical.table.cache.size",
        ],
    ),
    (
        "io.debezium.transforms.outbox.EventRouter",
        &[
            "table.field.event.id",
            "table.field.event.key",
            "table.field.event.type",
            "table.field.event.payload",
            "table.field.event.timestamp",
            "table.field.event.schema.version",
            "table.fields.additional.placement",
            "table.field.additional.missing",
            "table.op.invalid.behavior",
            "table.expand.json.payload",
            "table.json.payload.null.behavior",
            "route.by.field",
            "route.topic.regex",
            "route.topic.replacement",
            "route.tombstone.on.empty.payload",
        ],
    ),
    ("org.apache.kafka.connect.transforms.Filter", &[]),
    ("org.apache.kafka.connect.transforms.RegexRouter", &["regex", "replacement"]),
];

/// The predicates there are, each with its options.
const PREDICATES: &[(&str, &[&str])] = &[
    ("org.apache.kafka.connect.transforms.predicates.TopicNameMatches", &["pattern"]),
    ("org.apache.kafka.connect.transforms.predicates.RecordIsTombstone", &[]),
    ("org.apache.kafka.connect.transforms.predicates.HasHeaderKey", &["name"]),
];

/// The options of one transform or predicate: `transforms.NAME.` and what follows.
struct Options<'c, 'a> {
    checked: &'c mut Checked<'a>,
    prefix: String,
}

impl Checked<'_> {
    /// Whether values are written as CloudEvents.
    pub(super) fn has_cloud_events(&self) -> bool {
        self.text("value.converter").trim() == CLOUD_EVENTS
    }

    pub(super) fn transforms(&mut self) -> TransformConfig {
        let names = split_list(self.text("transforms"));
        let steps = names.iter().filter_map(|name| self.step(name)).collect();
        for family in ["transforms", "predicates"] {
            self.note_unnamed(family);
        }
        TransformConfig { steps, cloud_events: self.cloud_events() }
    }

    /// Options of what is not named have no effect.
    fn note_unnamed(&mut self, family: &str) {
        let properties = self.properties;
        let names = split_list(self.text(family));
        let mut noted: Vec<&str> = Vec::new();
        for property in properties.iter() {
            let rest = property.key.strip_prefix(family).and_then(|rest| rest.strip_prefix('.'));
            let Some((name, _)) = rest.and_then(|rest| rest.split_once('.')) else { continue };
            if !names.iter().any(|known| known == name) && !noted.contains(&name) {
                noted.push(name);
                self.note(
                    &property.key,
                    format!("without effect: '{family}' does not name {name}"),
                );
            }
        }
    }

    fn step(&mut self, name: &str) -> Option<Step> {
        let mut options = Options { checked: self, prefix: format!("transforms.{name}.") };
        let (class, known) = options.class(TRANSFORMS, "transforms")?;
        options.check_names(known, &["type", "predicate", "negate"]);
        let negate = options.bool("negate", false);
        let transform = match class {
            0 => Transform::ExtractNewRecordState(options.extract_new_record_state()),
            1 => Transform::LogicalRouter(options.logical_router()?),
            2 => Transform::EventRouter(Box::new(options.event_router()?)),
            3 => Transform::Filter,
            _ => Transform::RegexRouter {
                regex: options.required_regex("regex")?,
                replacement: options.required("replacement")?,
            },
        };
        let asked = options.text("predicate").map(|name| name.trim().to_owned());
        let predicate = match asked {
            Some(predicate) => Some(self.predicate(name, &predicate)?),
            None => None,
        };
        Some(Step { name: name.to_owned(), predicate, negate, transform })
    }

    fn predicate(&mut self, step: &str, name: &str) -> Option<Predicate> {
        if !split_list(self.text("predicates")).iter().any(|known| known == name) {
            let property = format!("transforms.{step}.predicate");
            self.invalid(&property, format!("'predicates' does not name {name}"));
            return None;
        }
        let mut options = Options { checked: self, prefix: format!("predicates.{name}.") };
        let (class, known) = options.class(PREDICATES, "predicates")?;
        options.check_names(known, &["type"]);
        Some(match class {
            0 => Predicate::TopicNameMatches(options.required_regex("pattern")?),
            1 => Predicate::RecordIsTombstone,
            _ => Predicate::HasHeaderKey(options.required("name")?),
        })
    }

    fn cloud_events(&mut self) -> Option<CloudEvents> {
        if !self.has_cloud_events() {
            return None;
        }
        for (option, only) in [
            ("serializer.type", "json"),
            ("data.serializer.type", "json"),
            ("opentelemetry.tracing.attributes.enable", "false"),
        ] {
            let key = format!("value.converter.{option}");
            let value = self.properties.get(&key).unwrap_or(only).trim();
            if !value.eq_ignore_ascii_case(only) {
                self.unsupported(&key, format!("there is {only} only"));
            }
        }
        let source = self.properties.get("value.converter.metadata.source");
        if source.is_some_and(|source| {
            let mut parts = source.split(',').map(str::trim);
            parts.next() != Some("value")
                || parts.any(|part| part == "id:header" || part == "type:header")
        }) {
            let key = "value.converter.metadata.source";
            self.unsupported(key, "metadata is taken from the value only");
        }
        let mut options = Options { checked: self, prefix: "value.converter.".to_owned() };
        Some(CloudEvents { extensions: options.bool("extension.attributes.enable", true) })
    }
}

impl Options<'_, '_> {
    fn key(&self, option: &str) -> String {
        format!("{}{option}", self.prefix)
    }

    fn text(&self, option: &str) -> Option<String> {
        self.checked.properties.get(&self.key(option)).map(ToOwned::to_owned)
    }

    fn or(&self, option: &str, default: &str) -> String {
        self.text(option).unwrap_or_else(|| default.to_owned())
    }

    fn invalid(&mut self, option: &str, message: impl Into<String>) {
        let key = self.key(option);
        self.checked.invalid(&key, message);
    }

    /// Index and options of the class that `type` names.
    fn class(
        &mut self,
        classes: &'static [(&'static str, &'static [&'static str])],
        what: &str,
    ) -> Option<(usize, &'static [&'static str])> {
        let class = self.required("type")?;
        let found = classes.iter().position(|(known, _)| *known == class.trim());
        let Some(index) = found else {
            let there: Vec<&str> = classes.iter().map(|(known, _)| *known).collect();
            let key = self.key("type");
            let message = format!(
                "Java classes cannot be loaded; these {what} are built in: {}",
                there.join(", ")
            );
            self.checked.unsupported(&key, message);
            return None;
        };
        Some((index, classes.get(index).map(|(_, options)| *options).unwrap_or_default()))
    }

    /// Options that the class does not have are errors.
    fn check_names(&mut self, known: &'static [&'static str], common: &[&'static str]) {
        let properties = self.checked.properties;
        let all: Vec<&'static str> = known.iter().chain(common).copied().collect();
        for property in properties.iter() {
            let Some(option) = property.key.strip_prefix(&self.prefix) else { continue };
            if !all.contains(&option) {
                let nearest = known::nearest_of(option, &all);
                self.checked.errors.push(ConfigError::Unknown {
                    property: property.key.clone(),
                    line: property.line,
                    hint: Some(format!("did you mean '{}{nearest}'?", self.prefix)),
                });
            }
        }
    }

    fn required(&mut self, option: &str) -> Option<String> {
        let text = self.text(option).filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.invalid(option, check::REQUIRED);
        }
        text
    }

    fn required_regex(&mut self, option: &str) -> Option<JavaRegex> {
        let text = self.required(option)?;
        self.regex(option, &text)
    }

    fn regex(&mut self, option: &str, text: &str) -> Option<JavaRegex> {
        match JavaRegex::case_sensitive(text) {
            Ok(regex) => Some(regex),
            Err(error) => {
                self.invalid(option, format!("A regular expression is expected, but {error}"));
                None
            }
        }
    }

    fn bool(&mut self, option: &str, default: bool) -> bool {
        let Some(text) = self.text(option) else { return default };
        match check::parse_bool(&text) {
            Some(value) => value,
            None => {
                self.invalid(option, "Either 'true' or 'false' is expected");
                default
            }
        }
    }

    /// One of several words; the first is the default.
    fn choice<T: Copy>(&mut self, option: &str, default: T, words: &[(&str, T)]) -> T {
        let Some(text) = self.text(option) else { return default };
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        match found {
            Some((_, value)) => *value,
            None => {
                let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                self.invalid(option, format!("Value must be one of {}", words.join(", ")));
                default
            }
        }
    }

    /// Refused but at its default.
    fn only(&mut self, option: &str, default: &str, why: &str) {
        if self.text(option).is_some_and(|text| !text.trim().eq_ignore_ascii_case(default)) {
            let key = self.key(option);
            self.checked.unsupported(&key, why);
        }
    }

    fn extract_new_record_state(&mut self) -> ExtractNewRecordState {
        use DeleteHandling::{DeleteToTombstone, Drop, Rewrite, RewriteWithTombstone, Tombstone};
        let words = [
            ("drop", Drop),
            ("tombstone", Tombstone),
            ("rewrite", Rewrite),
            ("rewrite-with-tombstone", RewriteWithTombstone),
            ("delete-to-tombstone", DeleteToTombstone),
        ];
        let deletes = self.choice("delete.tombstone.handling.mode", Tombstone, &words);
        self.only(
            "drop.fields.header.name",
            "",
            "no record has a header that lists fields to drop",
        );
        let fields = self.references("add.fields");
        let headers = self.references("add.headers");
        let route_by_field = self.text("route.by.field").filter(|field| !field.is_empty());
        ExtractNewRecordState { deletes, route_by_field, fields, headers }
    }

    fn references(&mut self, option: &str) -> Vec<FieldReference> {
        let prefix = self.or(&format!("{option}.prefix"), "__");
        let mut references = Vec::new();
        for text in self.or(option, "").split(',').map(str::trim).filter(|text| !text.is_empty()) {
            match FieldReference::parse(&prefix, text) {
                Some(reference) => references.push(reference),
                None => self.invalid(option, format!("Unexpected field name: {text}")),
            }
        }
        references
    }

    fn logical_router(&mut self) -> Option<LogicalRouter> {
        let regex = self.required_regex("topic.regex");
        let replacement = self.required("topic.replacement");
        let key_field = self
            .bool("key.enforce.uniqueness", true)
            .then(|| self.or("key.field.name", "__dbz__physicalTableIdentifier"));
        let key_regex = self.or("key.field.regex", "");
        let key_replacement = self.or("key.field.replacement", "");
        let mut key_rewrite = None;
        if !key_regex.trim().is_empty() {
            if key_replacement.trim().is_empty() {
                let message = "key.field.replacement must be non-empty if key.field.regex is set.";
                self.invalid("key.field.replacement", message);
            }
            key_rewrite =
                self.regex("key.field.regex", &key_regex).map(|regex| (regex, key_replacement));
        }
        let mode = self.or("schema.name.adjustment.mode", "none");
        let schema_names = modes::adjustment(&mode).unwrap_or_else(|| {
            let message = "Value must be one of none, avro_unicode, avro";
            self.invalid("schema.name.adjustment.mode", message);
            NameAdjustment::None
        });
        Some(LogicalRouter {
            regex: regex?,
            replacement: replacement?,
            key_field,
            key_rewrite,
            schema_names,
        })
    }

    fn event_router(&mut self) -> Option<EventRouter> {
        let nulls = [("ignore", NullFields::Ignore), ("optional_bytes", NullFields::OptionalBytes)];
        let nulls = self.choice("table.json.payload.null.behavior", NullFields::Ignore, &nulls);
        let expand = self.bool("table.expand.json.payload", false).then_some(nulls);
        let regex = self.or("route.topic.regex", "(?<routedByValue>.*)");
        let regex = self.regex("route.topic.regex", &regex);
        let replacement = self.or("route.topic.replacement", "outbox.event.${routedByValue}");
        let updates = [
            ("warn", UnexpectedUpdate::Warn),
            ("error", UnexpectedUpdate::Error),
            ("fatal", UnexpectedUpdate::Fatal),
        ];
        let on_update = self.choice("table.op.invalid.behavior", UnexpectedUpdate::Warn, &updates);
        let missing = [("error", false), ("ignore", true)];
        let ignore_missing = self.choice("table.field.additional.missing", false, &missing);
        let mut additional = Vec::new();
        let placement = "table.fields.additional.placement";
        for text in self.or(placement, "").split(',').filter(|text| !text.trim().is_empty()) {
            let parts: Vec<&str> = text.split(':').map(str::trim).collect();
            let (name, place, alias) = match *parts.as_slice() {
                [name, place] => (name, place, name),
                [name, place, alias] => (name, place, alias),
                _ => {
                    let expected =
                        "A comma-separated list of valid String pairs or trios is expected but got";
                    self.invalid(placement, format!("{expected}: {text}"));
                    continue;
                }
            };
            let place = match place.to_ascii_lowercase().as_str() {
                "header" => Placement::Header,
                "envelope" => Placement::Envelope,
                "partition" => Placement::Partition,
                _ => {
                    self.invalid(
                        placement,
                        format!("{place} is none of header, envelope, partition"),
                    );
                    continue;
                }
            };
            additional.push((name.to_owned(), place, alias.to_owned()));
        }
        Some(EventRouter {
            id: self.or("table.field.event.id", "id"),
            key: self.or("table.field.event.key", "aggregateid"),
            payload: self.or("table.field.event.payload", "payload"),
            schema_version: self
                .text("table.field.event.schema.version")
                .filter(|name| !name.trim().is_empty()),
            expand,
            route_by: self.or("route.by.field", "aggregatetype"),
            route: (regex?, replacement),
            tombstone_on_empty: self.bool("route.tombstone.on.empty.payload", false),
            on_update,
            additional,
            ignore_missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;

    #[test]
    fn what_is_wrong_with_transforms_is_said() {
        let filter = ("transforms.f.type", "org.apache.kafka.connect.transforms.Filter");
        let unwrap = ("transforms.f.type", "io.debezium.transforms.ExtractNewRecordState");
        let router = ("transforms.f.type", "io.debezium.transforms.ByLogicalTableRouter");
        let f = ("transforms", "f");
        for (properties, message) in [
            (&[f][..], "The 'transforms.f.type' value is invalid: A value is required"),
            (
                &[f, ("transforms.f.type", "x.Y")],
                "'transforms.f.type' is not supported: Java classes",
            ),
            (&[f, filter, ("transforms.f.predicate", "p")], "'predicates' does not name p"),
            (
                &[f, filter, ("predicates", "p"), ("transforms.f.predicate", "p")],
                "The 'predicates.p.type' value is invalid: A value is required",
            ),
            (
                &[f, unwrap, ("transforms.f.add.field", "op")],
                "unknown property 'transforms.f.add.field'; did you mean 'transforms.f.add.fields'?",
            ),
            (
                &[f, unwrap, ("transforms.f.delete.tombstone.handling.mode", "x")],
                "Value must be one of drop, tombstone, rewrite, rewrite-with-tombstone, delete-to-tombstone",
            ),
            (&[f, unwrap, ("transforms.f.add.fields", "a.b.c")], "Unexpected field name: a.b.c"),
            (&[f, router], "The 'transforms.f.topic.regex' value is invalid: A value is required"),
        ] {
            let error = outcome(properties).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(outcome(&[f, filter]).is_ok_and(|config| config.transforms.steps.len() == 1));
        assert!(outcome(&[filter]).is_ok_and(|config| config.transforms.is_empty()));
    }
}
