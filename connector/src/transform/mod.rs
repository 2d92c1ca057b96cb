//! Transforms: what is done with finished records, by the names that Kafka Connect and Debezium have for it.
//!
//! A record goes through the steps in the order of `transforms`, each where its predicate says so. A step may drop it;
//! the record's group is complete without it. Records are JSON text here: a step takes apart what it has to look into and
//! leaves the rest as it was written. Without any step nothing of this is run.
//!
//! Source: Debezium 3.6.3.Final, `io.debezium.transforms.*`; Kafka Connect 4.3, `org.apache.kafka.connect.transforms.*`.

mod cloud_events;
mod event_router;
mod expand;
mod extract_new_record_state;
mod json;
mod logical_router;
mod schema;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use cloud_events::CloudEvents;
pub(crate) use event_router::{EventRouter, Placement, UnexpectedUpdate};
pub(crate) use expand::NullFields;
pub(crate) use extract_new_record_state::{DeleteHandling, ExtractNewRecordState, FieldReference};
pub(crate) use logical_router::LogicalRouter;

use crate::filter::{JavaRegex, TooComplex};
use json::{Object, ObjectWriter};
use schema::SchemaCache;

/// The steps of a configuration, and the form of values at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransformConfig {
    pub(crate) steps: Vec<Step>,
    /// Values as CloudEvents (`value.converter`).
    pub(crate) cloud_events: Option<CloudEvents>,
}

impl TransformConfig {
    /// Whether records stay as they are.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.cloud_events.is_none()
    }
}

/// One of `transforms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// `predicate`: which records it is for.
    pub(crate) predicate: Option<Predicate>,
    /// `negate`: for all others instead.
    pub(crate) negate: bool,
    pub(crate) transform: Transform,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Transform {
    /// `org.apache.kafka.connect.transforms.Filter`: drops the record.
    Filter,
    /// `org.apache.kafka.connect.transforms.RegexRouter`: another topic.
    RegexRouter { regex: JavaRegex, replacement: String },
    /// `io.debezium.transforms.ExtractNewRecordState`.
    ExtractNewRecordState(ExtractNewRecordState),
    /// `io.debezium.transforms.ByLogicalTableRouter`.
    LogicalRouter(LogicalRouter),
    /// `io.debezium.transforms.outbox.EventRouter`.
    EventRouter(Box<EventRouter>),
}

/// One of `predicates`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predicate {
    /// `org.apache.kafka.connect.transforms.predicates.TopicNameMatches`.
    TopicNameMatches(JavaRegex),
    /// `org.apache.kafka.connect.transforms.predicates.RecordIsTombstone`.
    RecordIsTombstone,
    /// `org.apache.kafka.connect.transforms.predicates.HasHeaderKey`.
    HasHeaderKey(String),
}

/// Why a record could not be transformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransformFailure {
    /// The record is none that the transform is for.
    #[error("{0}")]
    Unfit(String),
    /// A pattern gave up.
    #[error("a pattern gives up on the topic name")]
    TooComplex(#[from] TooComplex),
}

/// Which parts of records have their schema with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WithSchemas {
    pub(crate) key: bool,
    pub(crate) value: bool,
    pub(crate) header: bool,
}

/// A record on its way through the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) topic: String,
    /// A JSON object, or nothing.
    pub(crate) headers: Vec<u8>,
    pub(crate) key: Part,
    pub(crate) value: Part,
    /// Whether the value is Debezium's envelope.
    pub(crate) envelope: bool,
}

/// A key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where schemas are written.
    pub(crate) schema: Option<Vec<u8>>,
    pub(crate) payload: Vec<u8>,
}

impl Part {
    /// Takes the schema off a text.
    fn split(text: &[u8], with_schema: bool) -> Self {
        if with_schema
            && let Some(object) = Object::parse(text)
            && let (Some(schema), Some(payload)) = (object.get("schema"), object.get("payload"))
        {
            return Self { schema: Some(schema.to_vec()), payload: payload.to_vec() };
        }
        Self { schema: None, payload: text.to_vec() }
    }

    fn null() -> Self {
        Self { schema: None, payload: b"null".to_vec() }
    }

    fn is_null(&self) -> bool {
        self.payload == b"null"
    }

    fn write(&self, out: &mut Vec<u8>) {
        match &self.schema {
            Some(schema) => out.extend_from_slice(&with_schema(schema, &self.payload)),
            None => out.extend_from_slice(&self.payload),
        }
    }
}

impl Draft {
    /// Adds a header; `schema` is written with it where headers have theirs.
    fn add_header(&mut self, name: &str, value: &[u8], schema: Option<&[u8]>) {
        let mut writer = ObjectWriter::new();
        if let Some(headers) = Object::parse(&self.headers) {
            for (name, value) in headers.members() {
                writer.raw_member(name, value);
            }
        }
        match schema {
            Some(schema) => writer.member(name, &with_schema(schema, value)),
            None => writer.member(name, value),
        }
        self.headers = writer.end();
    }
}

fn with_schema(schema: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut writer = ObjectWriter::new();
    writer.member("schema", schema);
    writer.member("payload", payload);
    writer.end()
}

impl Predicate {
    fn holds(&self, draft: &Draft) -> Result<bool, TooComplex> {
        match self {
            Self::TopicNameMatches(pattern) => pattern.matches(&draft.topic),
            Self::RecordIsTombstone => Ok(draft.value.is_null()),
            Self::HasHeaderKey(name) => {
                Ok(Object::parse(&draft.headers).is_some_and(|headers| headers.get(name).is_some()))
            }
        }
    }
}

/// Topics that are remembered.
const MAX_TOPICS: usize = 10_000;

/// The steps at work.
#[derive(Debug)]
pub(crate) struct Chain {
    config: TransformConfig,
    schemas: WithSchemas,
    cache: SchemaCache,
    topics: HashMap<String, Arc<str>>,
}

/// A record's text as it was written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordText<'a> {
    pub(crate) topic: &'a str,
    pub(crate) headers: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Whether the value is Debezium's envelope.
    pub(crate) envelope: bool,
}

impl Chain {
    /// The steps of a configuration; none where it has none.
    pub(crate) fn new(config: &TransformConfig, schemas: WithSchemas) -> Option<Self> {
        (!config.is_empty()).then(|| Self {
            config: config.clone(),
            schemas,
            cache: SchemaCache::default(),
            topics: HashMap::new(),
        })
    }

    /// What becomes of a record; none where it is dropped.
    pub(crate) fn apply(&mut self, text: RecordText<'_>) -> Result<Option<Draft>, String> {
        let mut draft = Draft {
            topic: text.topic.to_owned(),
            headers: text.headers.to_vec(),
            key: Part::split(text.key, self.schemas.key),
            value: Part::split(text.value, self.schemas.value),
            envelope: text.envelope,
        };
        for (number, step) in self.config.steps.iter().enumerate() {
            let context =
                &mut Context { step: number, schemas: self.schemas, cache: &mut self.cache };
            match step.apply(draft, context) {
                Ok(Some(changed)) => draft = changed,
                Ok(None) => return Ok(None),
                Err(failure) => {
                    return Err(format!(
                        "transform {} on topic {}: {failure}",
                        step.name, text.topic
                    ));
                }
            }
        }
        if let Some(cloud_events) = &self.config.cloud_events {
            draft.value = cloud_events.convert(&draft);
        }
        Ok(Some(draft))
    }

    /// The name as topics are held.
    pub(crate) fn topic(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.topics.get(name) {
            return Arc::clone(known);
        }
        if self.topics.len() >= MAX_TOPICS {
            self.topics.clear();
        }
        let topic: Arc<str> = name.into();
        self.topics.insert(name.to_owned(), Arc::clone(&topic));
        topic
    }
}

impl Draft {
    /// Appends headers, key and value, and gives the ends of the first two.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> (usize, usize) {
        out.extend_from_slice(&self.headers);
        let headers_end = out.len();
        self.key.write(out);
        let key_end = out.len();
        self.value.write(out);
        (headers_end, key_end)
    }
}

/// What a step works with.
struct Context<'c> {
    step: usize,
    schemas: WithSchemas,
    cache: &'c mut SchemaCache,
}

impl Step {
    fn apply(
        &self,
        mut draft: Draft,
        context: &mut Context<'_>,
    ) -> Result<Option<Draft>, TransformFailure> {
        if let Some(predicate) = &self.predicate
            && predicate.holds(&draft)? == self.negate
        {
            return Ok(Some(draft));
        }
        match &self.transform {
            Transform::Filter => Ok(None),
            Transform::RegexRouter { regex, replacement } => {
                if let Some(topic) = regex.replace_whole(&draft.topic, replacement)? {
                    draft.topic = topic;
                }
                Ok(Some(draft))
            }
            Transform::ExtractNewRecordState(transform) => Ok(transform.apply(draft, context)),
            Transform::LogicalRouter(transform) => transform.apply(draft, context).map(Some),
            Transform::EventRouter(transform) => transform.apply(draft, context),
        }
    }
}

#[cfg(test)]
mod tests;
