//! JSON text as a value of its own (`table.expand.json.payload`): what a Connect schema can hold of it.
//!
//! Source: Debezium 3.6.1.Final, `io.debezium.transforms.outbox.JsonSchemaData`. Members that are null or an empty array are
//! left out; the elements of an array are of one type, objects in it are given all their members.

use serde_json::{Map, Number, Value};

use super::json::{ObjectWriter, array, quoted};
use crate::format::json::{write_f64, write_i64, write_string};

/// `table.json.payload.null.behavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NullFields {
    /// They are left out.
    Ignore,
    /// They are bytes that are null.
    OptionalBytes,
}

/// An expanded document and its schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) schema: Vec<u8>,
    pub(super) value: Vec<u8>,
}

/// Expands a document, which has to be an object; none where no schema holds it. `name` names its schema.
pub(super) fn expand(name: &str, text: &str, nulls: NullFields) -> Option<Expanded> {
    if !text.starts_with('{') {
        return None;
    }
    let document: Value = serde_json::from_str(text).ok()?;
    let shape = Shape::of(Some(name), &document, nulls)??;
    let mut value = Vec::new();
    shape.write(&document, &mut value)?;
    Some(Expanded { schema: shape.schema(), value })
}

/// A schema of Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Null,
    Bool,
    Int32,
    Int64,
    Double,
    Text,
    List(Box<Self>),
    Struct { name: Option<String>, optional: bool, fields: Vec<(String, Self)> },
}

impl Shape {
    /// The schema of a value: none inside for what is left out, none outside for what has no schema at all.
    #[expect(clippy::option_option, reason = "no schema and no value are two things")]
    fn of(name: Option<&str>, value: &Value, nulls: NullFields) -> Option<Option<Self>> {
        Some(match value {
            Value::Null if nulls == NullFields::OptionalBytes => Some(Self::Null),
            Value::Null => None,
            Value::Bool(_) => Some(Self::Bool),
            Value::Number(number) => Some(Self::of_number(number)?),
            Value::String(_) => Some(Self::Text),
            Value::Array(items) if items.is_empty() => None,
            Value::Array(items) => Some(Self::List(Box::new(Self::of_items(name, items, nulls)?))),
            Value::Object(members) => Some(Self::of_object(name, members, nulls)?),
        })
    }

    fn of_number(number: &Number) -> Option<Self> {
        match number.as_i64() {
            Some(whole) if i32::try_from(whole).is_ok() => Some(Self::Int32),
            Some(_) => Some(Self::Int64),
            // Beyond 64 bits there is a schema, but no value of it.
            None => number.is_f64().then_some(Self::Double),
        }
    }

    fn of_object(
        name: Option<&str>,
        members: &Map<String, Value>,
        nulls: NullFields,
    ) -> Option<Self> {
        let mut fields = Vec::new();
        for (member, value) in members {
            let path = match name.filter(|name| !name.trim().is_empty()) {
                Some(name) => format!("{name}.{member}"),
                None => member.clone(),
            };
            if let Some(shape) = Self::of(Some(&path), value, nulls)? {
                fields.push((member.clone(), shape));
            }
        }
        Some(Self::Struct { name: name.map(str::to_owned), optional: true, fields })
    }

    fn of_items(name: Option<&str>, items: &[Value], nulls: NullFields) -> Option<Self> {
        let mut there = items.iter().filter(|item| !item.is_null());
        let first = there.next().unwrap_or(&Value::Null);
        if let Value::Object(_) = first {
            let mut merged: Option<Self> = None;
            for item in items.iter().filter(|item| !item.is_null()) {
                let Value::Object(members) = item else { return None };
                let shape = Self::of_object(name, members, nulls)?;
                merged = Some(match merged {
                    None => shape,
                    Some(merged) => merged.merge(shape),
                });
            }
            return merged;
        }
        let kind = std::mem::discriminant(first);
        let shape = Self::of(None, first, nulls)??;
        for item in there {
            let same = std::mem::discriminant(item) == kind;
            let is_number = item.is_number();
            if !same || (is_number && Self::of(None, item, nulls)?? != shape) {
                return None;
            }
        }
        Some(shape)
    }

    /// The members of two structs. One that is merged has to be there.
    fn merge(self, other: Self) -> Self {
        if self == other {
            return self;
        }
        match (self, other) {
            (Self::Struct { name, mut fields, .. }, Self::Struct { fields: others, .. }) => {
                for (member, shape) in others {
                    match fields.iter_mut().find(|(known, _)| *known == member) {
                        Some((_, known)) if *known == Self::Null => *known = shape,
                        Some(_) => {}
                        None => fields.push((member, shape)),
                    }
                }
                Self::Struct { name, optional: false, fields }
            }
            (shape, _) => shape,
        }
    }

    /// Appends a value of the schema; none where it is of another one.
    fn write(&self, value: &Value, out: &mut Vec<u8>) -> Option<()> {
        match (self, value) {
            (Self::Struct { optional: false, .. }, Value::Null) => return None,
            (_, Value::Null) => out.extend_from_slice(b"null"),
            (Self::Bool, Value::Bool(value)) => {
                out.extend_from_slice(if *value { b"true" } else { b"false" });
            }
            (Self::Text, Value::String(text)) => write_string(text, out),
            (Self::Int32 | Self::Int64 | Self::Double, Value::Number(number)) => {
                if Self::of_number(number)? != *self {
                    return None;
                }
                match number.as_i64() {
                    Some(whole) => write_i64(whole, out),
                    None => write_f64(number.as_f64()?, out),
                }
            }
            (Self::List(shape), Value::Array(items)) => {
                out.push(b'[');
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    shape.write(item, out)?;
                }
                out.push(b']');
            }
            (Self::Struct { fields, .. }, Value::Object(members)) => {
                let mut writer = ObjectWriter::new();
                for (member, shape) in fields {
                    let mut text = Vec::new();
                    shape.write(members.get(member).unwrap_or(&Value::Null), &mut text)?;
                    writer.member(member, &text);
                }
                out.extend(writer.end());
            }
            _ => return None,
        }
        Some(())
    }

    /// The schema as JSON.
    fn schema(&self) -> Vec<u8> {
        self.writer().end()
    }

    fn writer(&self) -> ObjectWriter {
        let mut writer = ObjectWriter::new();
        let kind: &[u8] = match self {
            Self::Null => b"\"bytes\"",
            Self::Bool => b"\"boolean\"",
            Self::Int32 => b"\"int32\"",
            Self::Int64 => b"\"int64\"",
            Self::Double => b"\"double\"",
            Self::Text => b"\"string\"",
            Self::List(_) => b"\"array\"",
            Self::Struct { .. } => b"\"struct\"",
        };
        writer.member("type", kind);
        match self {
            Self::List(shape) => writer.member("items", &shape.schema()),
            Self::Struct { fields, .. } => {
                let fields: Vec<Vec<u8>> = fields
                    .iter()
                    .map(|(member, shape)| {
                        let mut writer = shape.writer();
                        writer.member("field", &quoted(member));
                        writer.end()
                    })
                    .collect();
                writer.member("fields", &array(fields.iter().map(Vec::as_slice)));
            }
            Self::Null | Self::Bool | Self::Int32 | Self::Int64 | Self::Double | Self::Text => {}
        }
        let optional = !matches!(self, Self::Struct { optional: false, .. });
        writer.member("optional", if optional { b"true" } else { b"false" });
        if let Self::Struct { name: Some(name), .. } = self {
            writer.member("name", &quoted(name));
        }
        writer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, nulls: NullFields) -> Option<String> {
        expand("payload", text, nulls).map(|expanded| String::from_utf8(expanded.value).unwrap())
    }

    #[test]
    fn documents_become_values_and_what_has_no_schema_stays() {
        for (text, expanded) in [
            ("{}", Some("{}")),
            (
                r#"{"a":1,"b":"x","c":true,"d":1.50,"e":5000000000}"#,
                Some(r#"{"a":1,"b":"x","c":true,"d":1.5,"e":5000000000}"#),
            ),
            (r#"{"a":null,"b":[],"c":{"d":null}}"#, Some(r#"{"c":{}}"#)),
            (r#"{"a":[1,2,null],"b":["x"]}"#, Some(r#"{"a":[1,2,null],"b":["x"]}"#)),
            (
                r#"{"a":[{"x":1},{"y":"z"}]}"#,
                Some(r#"{"a":[{"x":1,"y":null},{"x":null,"y":"z"}]}"#),
            ),
            (r#"{"a":[{"x":1},null,{"x":2}]}"#, Some(r#"{"a":[{"x":1},null,{"x":2}]}"#)),
            (r#"{"a":[[1],[2,3]]}"#, Some(r#"{"a":[[1],[2,3]]}"#)),
            (r#"{"a":[1,"x"]}"#, None),
            (r#"{"a":[1,1.5]}"#, None),
            (r#"{"a":[1,5000000000]}"#, None),
            (r#"{"a":[null]}"#, None),
            (r#"{"a":[{"x":1},{"x":"y"}]}"#, None),
            (r#"{"a":18446744073709551615}"#, None),
            ("[1]", None),
            ("{\"a\":", None),
            ("text", None),
            ("", None),
        ] {
            assert_eq!(value(text, NullFields::Ignore).as_deref(), expanded, "{text}");
        }
        let nulls = |text| value(text, NullFields::OptionalBytes).unwrap();
        assert_eq!(nulls(r#"{"a":null,"b":[null],"c":[]}"#), r#"{"a":null,"b":[null]}"#);
        assert_eq!(nulls(r#"{"a":[{"x":null},{"x":1}]}"#), r#"{"a":[{"x":null},{"x":1}]}"#);
    }

    #[test]
    fn a_schema_names_its_structs_by_their_path() {
        let expanded =
            expand("payload", r#"{"a":{"b":[{"c":1}]},"n":null}"#, NullFields::OptionalBytes);
        assert_eq!(
            String::from_utf8(expanded.unwrap().schema).unwrap(),
            concat!(
                r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"array","items":{"type":"struct","#,
                r#""fields":[{"type":"int32","optional":true,"field":"c"}],"optional":true,"name":"payload.a.b"},"#,
                r#""optional":true,"field":"b"}],"optional":true,"name":"payload.a","field":"a"},"#,
                r#"{"type":"bytes","optional":true,"field":"n"}],"optional":true,"name":"payload"}"#
            )
        );
    }
}
