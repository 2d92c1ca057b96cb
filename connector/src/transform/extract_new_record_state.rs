//! `io.debezium.transforms.ExtractNewRecordState`: the row as it became, instead of the envelope.

use super::json::{Object, ObjectWriter, string};
use super::{Context, Draft, Part, schema};

/// `delete.tombstone.handling.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteHandling {
    /// Neither the delete nor the tombstone.
    Drop,
    /// A delete becomes a record without a value; the tombstone is dropped.
    Tombstone,
    /// The row as it was, marked as deleted; the tombstone is dropped.
    Rewrite,
    /// The same, and the tombstone.
    RewriteWithTombstone,
    /// As `Tombstone`, without a schema.
    DeleteToTombstone,
}

/// The transform and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExtractNewRecordState {
    pub(crate) deletes: DeleteHandling,
    /// `route.by.field`: the column whose text is the topic.
    pub(crate) route_by_field: Option<String>,
    /// `add.fields`.
    pub(crate) fields: Vec<FieldReference>,
    /// `add.headers`.
    pub(crate) headers: Vec<FieldReference>,
}

/// A member of the envelope that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldReference {
    /// The struct it is in; none for those of the envelope itself.
    parent: Option<String>,
    field: String,
    new_name: String,
}

/// Marks rows of deletes.
const DELETED: &str = "__deleted";

impl FieldReference {
    /// Reads `field`, `struct.field` or either with `:name`; none for anything else.
    pub(crate) fn parse(prefix: &str, text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (path, alias, rest) = (parts.next()?, parts.next(), parts.next());
        let mut names = path.split('.');
        let (first, second) = (names.next().filter(|name| !name.is_empty())?, names.next());
        if rest.is_some() || names.next().is_some() {
            return None;
        }
        let (parent, field) = match second {
            Some(field) => (Some(first), field),
            None => (parent_of(first), first),
        };
        let name = match (alias, second) {
            (Some(alias), _) => alias.to_owned(),
            (None, Some(field)) => format!("{first}_{field}"),
            (None, None) => field.to_owned(),
        };
        Some(Self {
            parent: parent.map(ToOwned::to_owned),
            field: field.to_owned(),
            new_name: format!("{prefix}{name}"),
        })
    }

    /// The value in an envelope; none where envelopes have no such member.
    fn value<'a>(&self, envelope: &Object<'a>) -> Option<&'a [u8]> {
        let top = || envelope.get(&self.field);
        let Some(parent) = &self.parent else { return top() };
        match envelope.get(parent) {
            None => top(),
            Some(b"null") if parent == "transaction" => {
                TRANSACTION_FIELDS.contains(&self.field.as_str()).then_some(&b"null"[..])
            }
            Some(b"null") => Some(b"null"),
            // While streaming the marker is not set; `false` is the default that the converter writes.
            Some(text) if parent == "source" && self.field == "snapshot" => Object::parse(text)?
                .get(&self.field)
                .map(|mark| if mark == b"\"false\"" { b"null" } else { mark }),
            Some(text) => Object::parse(text)?.get(&self.field).or_else(top),
        }
    }

    /// The schema of that value in the schema of an envelope.
    fn schema<'a>(&self, envelope: &'a [u8]) -> Option<&'a [u8]> {
        let parent = match &self.parent {
            Some(parent) => schema::field(envelope, parent)?,
            None => envelope,
        };
        schema::field(parent, &self.field).or_else(|| schema::field(envelope, &self.field))
    }
}

const TRANSACTION_FIELDS: [&str; 3] = ["id", "total_order", "data_collection_order"];

/// The struct that a field without one is in.
fn parent_of(field: &str) -> Option<&'static str> {
    match field {
        "op" | "ts_ms" | "ts_us" | "ts_ns" => None,
        field if TRANSACTION_FIELDS.contains(&field) => Some("transaction"),
        _ => Some("source"),
    }
}

impl ExtractNewRecordState {
    pub(super) fn apply(&self, mut draft: Draft, context: &mut Context<'_>) -> Option<Draft> {
        if draft.value.is_null() {
            // Of all there is to add, a tombstone has the operation.
            for header in self.headers.iter().filter(|header| header.field == "op") {
                let text = context.schemas.header.then(|| schema::text(false, None));
                draft.add_header(&header.new_name, b"\"d\"", text.as_deref());
            }
            return (self.deletes == DeleteHandling::RewriteWithTombstone).then_some(draft);
        }
        if !draft.envelope {
            return Some(draft);
        }
        let value = std::mem::replace(&mut draft.value, Part::null());
        let envelope = Object::parse(&value.payload)?;
        for header in &self.headers {
            let Some(found) = header.value(&envelope) else { continue };
            let schema = context.schemas.header.then(|| {
                let known = value.schema.as_deref().and_then(|schema| header.schema(schema));
                known
                    .and_then(|schema| schema::optional(schema, None))
                    .unwrap_or_else(|| guessed(found))
            });
            draft.add_header(&header.new_name, found, schema.as_deref());
        }
        let image = |name: &str| envelope.get(name).filter(|image| *image != b"null");
        let (image, is_delete) = match (image("before"), image("after")) {
            (_, Some(after)) => (after, false),
            (Some(before), None) => (before, true),
            // A truncated table.
            (None, None) => return None,
        };
        draft.envelope = false;
        if let Some(field) = &self.route_by_field
            && let Some(topic) = Object::parse(image)?.get(field).and_then(string)
            && !topic.trim().is_empty()
        {
            draft.topic = topic;
        }
        let rewrites =
            matches!(self.deletes, DeleteHandling::Rewrite | DeleteHandling::RewriteWithTombstone);
        if is_delete && !rewrites {
            draft.value = match self.deletes {
                DeleteHandling::Drop => return None,
                DeleteHandling::DeleteToTombstone => Part::null(),
                DeleteHandling::Tombstone
                | DeleteHandling::Rewrite
                | DeleteHandling::RewriteWithTombstone => Part {
                    schema: value
                        .schema
                        .as_deref()
                        .and_then(|schema| schema::standalone(schema::field(schema, "after")?)),
                    payload: b"null".to_vec(),
                },
            };
            return Some(draft);
        }
        let mut writer = ObjectWriter::new();
        for (name, value) in Object::parse(image)?.members() {
            writer.raw_member(name, value);
        }
        if rewrites {
            writer.member(DELETED, if is_delete { b"\"true\"" } else { b"\"false\"" });
        }
        let added: Vec<&FieldReference> = (self.fields.iter())
            .filter(|field| match field.value(&envelope) {
                Some(value) => {
                    writer.member(&field.new_name, value);
                    true
                }
                None => false,
            })
            .collect();
        let variant: &[u8] = if is_delete { b"before" } else { b"after" };
        let schema = value.schema.as_deref().and_then(|schema| {
            context.cache.get(context.step, variant, schema, || {
                let mut fields = Vec::new();
                if rewrites {
                    fields.push(schema::text(true, Some(DELETED)));
                }
                for field in added {
                    fields.push(schema::optional(field.schema(schema)?, Some(&field.new_name))?);
                }
                let image = if is_delete { "before" } else { "after" };
                schema::extended(schema::field(schema, image)?, &fields)
            })
        });
        draft.value = Part { schema, payload: writer.end() };
        Some(draft)
    }
}

/// The schema of a header where the value has none to look it up in: the members of envelopes are text or numbers.
fn guessed(value: &[u8]) -> Vec<u8> {
    if value.first().is_some_and(|first| first.is_ascii_digit() || *first == b'-') {
        br#"{"type":"int64","optional":true}"#.to_vec()
    } else {
        schema::text(true, None)
    }
}
