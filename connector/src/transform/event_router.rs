//! `io.debezium.transforms.outbox.EventRouter`: rows of an outbox table as the messages they hold.

use super::expand::{NullFields, expand};
use super::json::{Object, ObjectWriter, quoted, string};
use super::{Context, Draft, Part, TransformFailure, schema};
use crate::filter::JavaRegex;

/// `table.op.invalid.behavior`: what an UPDATE of the outbox leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnexpectedUpdate {
    Warn,
    Error,
    Fatal,
}

/// Where a further column goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Header,
    Envelope,
    /// Records have no partition here.
    Partition,
}

/// The transform and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventRouter {
    /// `table.field.event.id`.
    pub(crate) id: String,
    /// `table.field.event.key`.
    pub(crate) key: String,
    /// `table.field.event.payload`.
    pub(crate) payload: String,
    /// `table.field.event.schema.version`.
    pub(crate) schema_version: Option<String>,
    /// `table.expand.json.payload`, and `table.json.payload.null.behavior`.
    pub(crate) expand: Option<NullFields>,
    /// `route.by.field`.
    pub(crate) route_by: String,
    /// `route.topic.regex` and `route.topic.replacement`.
    pub(crate) route: (JavaRegex, String),
    /// `route.tombstone.on.empty.payload`.
    pub(crate) tombstone_on_empty: bool,
    /// `table.op.invalid.behavior`.
    pub(crate) on_update: UnexpectedUpdate,
    /// `table.fields.additional.placement`: column, place, name.
    pub(crate) additional: Vec<(String, Placement, String)>,
    /// `table.field.additional.missing`: whether a column that is not there is passed over.
    pub(crate) ignore_missing: bool,
}

impl EventRouter {
    pub(super) fn apply(
        &self,
        mut draft: Draft,
        context: &mut Context<'_>,
    ) -> Result<Option<Draft>, TransformFailure> {
        if draft.value.is_null() {
            return Ok(None);
        }
        if !draft.envelope {
            return Ok(Some(draft));
        }
        let value = std::mem::replace(&mut draft.value, Part::null());
        let unfit = |what: String| TransformFailure::Unfit(what);
        let envelope = Object::parse(&value.payload)
            .ok_or_else(|| unfit("the value is no envelope".to_owned()))?;
        match envelope.get("op") {
            Some(b"\"c\"" | b"\"r\"") => {}
            Some(b"\"u\"") => {
                let said = "an UPDATE of the outbox is not expected";
                match self.on_update {
                    UnexpectedUpdate::Warn => {
                        tracing::warn!(topic = draft.topic, "{said}; it is left out");
                    }
                    UnexpectedUpdate::Error => {
                        tracing::error!(topic = draft.topic, "{said}; it is left out");
                    }
                    UnexpectedUpdate::Fatal => return Err(unfit(said.to_owned())),
                }
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let row = envelope.get("after").and_then(Object::parse);
        let row = row.ok_or_else(|| unfit("the record has no row".to_owned()))?;
        let row_schema = value.schema.as_deref().and_then(|schema| schema::field(schema, "after"));
        let column = |what: &str, name: &str| {
            row.get(name)
                .ok_or_else(|| unfit(format!("unable to find {what} field {name} in event")))
        };
        // The schema of a column by itself, where schemas are written.
        let schema_of = |name: &str| {
            row_schema.and_then(|schema| schema::standalone(schema::field(schema, name)?))
        };
        let payload = column("payload", &self.payload)?;
        let expanded = match self.expand {
            Some(nulls) if payload != b"null" => {
                let text = string(payload);
                let expanded = text.and_then(|text| expand(&self.payload, &text, nulls));
                if expanded.is_none() {
                    tracing::warn!(
                        topic = draft.topic,
                        "a payload is no JSON that can be expanded; it stays text"
                    );
                }
                expanded
            }
            Some(_) | None => None,
        };
        let payload = expanded.as_ref().map_or(payload, |expanded| expanded.value.as_slice());
        // The schema of the payload by itself.
        let payload_schema = || match &expanded {
            Some(expanded) => row_schema.map(|_| expanded.schema.clone()),
            None => schema_of(&self.payload),
        };
        let id = column("event-id", &self.id)?;
        let header = |name: &str| {
            context
                .schemas
                .header
                .then(|| schema_of(name).unwrap_or_else(|| schema::text(true, None)))
        };
        draft.add_header("id", id, header(&self.id).as_deref());

        let mut envelope_fields = Vec::new();
        for (name, placement, alias) in &self.additional {
            let Some(found) = row.get(name) else {
                if self.ignore_missing {
                    continue;
                }
                return Err(unfit(format!("unable to find field {name} in event")));
            };
            match placement {
                Placement::Header => draft.add_header(alias, found, header(name).as_deref()),
                Placement::Envelope => envelope_fields.push((name, alias, found)),
                Placement::Partition => {}
            }
        }

        let routed = column("route", &self.route_by)?;
        let routed = string(routed).ok_or_else(|| {
            unfit(format!("the field {} by which events are routed is no text", self.route_by))
        })?;
        let (regex, replacement) = &self.route;
        draft.topic = regex.replace_whole(&routed, replacement)?.unwrap_or_else(|| routed.clone());
        draft.key = Part {
            schema: context
                .schemas
                .key
                .then(|| schema_of(&self.key).unwrap_or_else(|| schema::text(false, None))),
            payload: row.get(&self.key).unwrap_or(b"null").to_vec(),
        };
        let is_empty =
            payload == b"null" || string(payload).is_some_and(|payload| payload.trim().is_empty());
        draft.envelope = false;
        if is_empty && self.tombstone_on_empty {
            return Ok(Some(draft));
        }
        if !self.additional.iter().any(|(_, placement, _)| *placement == Placement::Envelope) {
            draft.value = Part { schema: payload_schema(), payload: payload.to_vec() };
            return Ok(Some(draft));
        }
        let mut writer = ObjectWriter::new();
        writer.member("payload", payload);
        for (_, alias, found) in &envelope_fields {
            writer.member(alias, found);
        }
        let version = self.schema_version.as_ref().and_then(|name| row.get(name));
        let schema = row_schema.and_then(|schema| {
            let mut fields = vec![schema::renamed_field(&payload_schema()?, "payload")?];
            for (name, alias, _) in &envelope_fields {
                fields.push(schema::renamed_field(schema::field(schema, name)?, alias)?);
            }
            let original = Object::parse(schema)?.get("name").and_then(string);
            let mut writer = ObjectWriter::new();
            writer.member("type", b"\"struct\"");
            writer.member("fields", &super::json::array(fields.iter().map(Vec::as_slice)));
            writer.member("optional", b"false");
            writer.member("name", &quoted(&schema_name(original.as_deref(), &routed)));
            if let Some(version) = version {
                writer.member("version", version);
            }
            Some(writer.end())
        });
        draft.value = Part { schema, payload: writer.end() };
        Ok(Some(draft))
    }
}

/// The name of the message's schema: that of the row, with the topic before its last part.
fn schema_name(original: Option<&str>, topic: &str) -> String {
    match original.map(|name| name.rsplit_once('.').ok_or(name)) {
        Some(Ok((head, last))) => format!("{head}.{topic}.{last}"),
        Some(Err(name)) => format!("{topic}.{name}"),
        None => topic.to_owned(),
    }
}
