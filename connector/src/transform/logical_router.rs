//! `io.debezium.transforms.ByLogicalTableRouter`: records of many tables to one topic, their keys kept apart.

use super::json::{Object, ObjectWriter, quoted};
use super::{Context, Draft, Part, TransformFailure, schema};
use crate::filter::JavaRegex;
use crate::topic::NameAdjustment;

/// The transform and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogicalRouter {
    /// `topic.regex`.
    pub(crate) regex: JavaRegex,
    /// `topic.replacement`.
    pub(crate) replacement: String,
    /// `key.field.name`, unless `key.enforce.uniqueness` is false.
    pub(crate) key_field: Option<String>,
    /// `key.field.regex` and `key.field.replacement`.
    pub(crate) key_rewrite: Option<(JavaRegex, String)>,
    /// `schema.name.adjustment.mode`.
    pub(crate) schema_names: NameAdjustment,
}

impl LogicalRouter {
    pub(super) fn apply(
        &self,
        mut draft: Draft,
        context: &mut Context<'_>,
    ) -> Result<Draft, TransformFailure> {
        let Some(topic) = self.regex.replace_whole(&draft.topic, &self.replacement)? else {
            return Ok(draft);
        };
        if topic.is_empty() {
            tracing::warn!(
                topic = draft.topic,
                "the topic would have no name: the record keeps its own"
            );
            return Ok(draft);
        }
        let name = |suffix: &str| self.schema_names.schema(&format!("{topic}.{suffix}"));
        if let Some(key) = Object::parse(&draft.key.payload) {
            let mut writer = ObjectWriter::new();
            for (name, value) in key.members() {
                writer.raw_member(name, value);
            }
            let mut added = Vec::new();
            if let Some(field) = &self.key_field {
                let rewritten = match &self.key_rewrite {
                    Some((regex, replacement)) => regex.replace_whole(&draft.topic, replacement)?,
                    None => None,
                };
                let identifier = rewritten.as_ref().unwrap_or(&draft.topic);
                writer.member(field, &quoted(identifier));
                added.push(schema::text(false, Some(field)));
            }
            let schema = draft.key.schema.as_deref().and_then(|schema| {
                context.cache.get(context.step, topic.as_bytes(), schema, || {
                    schema::renamed(schema, &name("Key"), &added, |field| Some(field.to_vec()))
                })
            });
            draft.key = Part { schema, payload: writer.end() };
        }
        if draft.envelope && !draft.value.is_null() {
            let schema = draft.value.schema.as_deref().and_then(|schema| {
                context.cache.get(context.step, topic.as_bytes(), schema, || {
                    schema::renamed(schema, &name("Envelope"), &[], |field| {
                        let of = Object::parse(field)?.get("field")?;
                        if of == b"\"before\"" || of == b"\"after\"" {
                            schema::renamed(field, &name("Value"), &[], |field| {
                                Some(field.to_vec())
                            })
                        } else {
                            Some(field.to_vec())
                        }
                    })
                })
            });
            draft.value.schema = schema;
        }
        draft.topic = topic;
        Ok(draft)
    }
}
