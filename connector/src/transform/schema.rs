//! Connect schemas as JSON text, changed as transforms change schemas.

use std::collections::HashMap;

use super::json::{Object, ObjectWriter, array, items, quoted};

/// Schemas that are remembered.
const MAX_CACHED: usize = 64;

/// What a schema was made of: the step, the case, and the schema before.
type Origin = (usize, Vec<u8>, Vec<u8>);

/// Schemas that were made of others, by what they were made of.
#[derive(Debug, Default)]
pub(super) struct SchemaCache(HashMap<Origin, Option<Vec<u8>>>);

impl SchemaCache {
    /// What step number `step` makes of `schema` in the case `variant`; `make` is asked once.
    pub(super) fn get(
        &mut self,
        step: usize,
        variant: &[u8],
        schema: &[u8],
        make: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let key = (step, variant.to_vec(), schema.to_vec());
        if let Some(known) = self.0.get(&key) {
            return known.clone();
        }
        if self.0.len() >= MAX_CACHED {
            self.0.clear();
        }
        let made = make();
        self.0.insert(key, made.clone());
        made
    }
}

/// The schema of a struct's field, with the member that names the field.
pub(super) fn field<'a>(schema: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = quoted(name);
    let fields = items(Object::parse(schema)?.get("fields")?)?;
    fields.into_iter().find(|field| {
        Object::parse(field).and_then(|field| field.get("field")).is_some_and(|found| found == name)
    })
}

/// The schema of a field as one that stands by itself.
pub(super) fn standalone(schema: &[u8]) -> Option<Vec<u8>> {
    let mut writer = ObjectWriter::new();
    for (name, value) in Object::parse(schema)?.members().filter(|(name, _)| *name != b"field") {
        writer.raw_member(name, value);
    }
    Some(writer.end())
}

/// The schema of a value that may be missing, with no default, as a field called `name` or by itself.
pub(super) fn optional(schema: &[u8], name: Option<&str>) -> Option<Vec<u8>> {
    let mut writer = ObjectWriter::new();
    for (member, value) in Object::parse(schema)?.members() {
        match member {
            b"optional" => writer.raw_member(member, b"true"),
            b"default" | b"field" => {}
            _ => writer.raw_member(member, value),
        }
    }
    if let Some(name) = name {
        writer.member("field", &quoted(name));
    }
    Some(writer.end())
}

/// The schema of a field under another name.
pub(super) fn renamed_field(schema: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut writer = ObjectWriter::new();
    for (member, value) in Object::parse(schema)?.members() {
        if member != b"field" {
            writer.raw_member(member, value);
        }
    }
    writer.member("field", &quoted(name));
    Some(writer.end())
}

/// A required struct with the name and the like of `schema`, and with fields added to its own.
pub(super) fn extended(schema: &[u8], added: &[Vec<u8>]) -> Option<Vec<u8>> {
    let object = Object::parse(schema)?;
    let fields = items(object.get("fields")?)?;
    let fields = array(fields.into_iter().chain(added.iter().map(Vec::as_slice)));
    let mut writer = ObjectWriter::new();
    for (member, value) in object.members() {
        match member {
            b"fields" => writer.raw_member(member, &fields),
            b"optional" => writer.raw_member(member, b"false"),
            b"default" | b"field" => {}
            _ => writer.raw_member(member, value),
        }
    }
    Some(writer.end())
}

/// The same struct under another name, with fields added, and its fields passed through `change`.
pub(super) fn renamed(
    schema: &[u8],
    name: &str,
    added: &[Vec<u8>],
    mut change: impl FnMut(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let object = Object::parse(schema)?;
    let mut fields = Vec::new();
    for field in items(object.get("fields")?)? {
        fields.push(change(field)?);
    }
    fields.extend_from_slice(added);
    let fields = array(fields.iter().map(Vec::as_slice));
    let mut writer = ObjectWriter::new();
    for (member, value) in object.members() {
        match member {
            b"fields" => writer.raw_member(member, &fields),
            b"name" => writer.raw_member(member, &quoted(name)),
            _ => writer.raw_member(member, value),
        }
    }
    Some(writer.end())
}

/// The schema of text, as a field or by itself.
pub(super) fn text(optional: bool, name: Option<&str>) -> Vec<u8> {
    let mut writer = ObjectWriter::new();
    writer.member("type", b"\"string\"");
    writer.member("optional", if optional { b"true" } else { b"false" });
    if let Some(name) = name {
        writer.member("field", &quoted(name));
    }
    writer.end()
}
