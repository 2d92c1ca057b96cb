//! Values as CloudEvents 1.0 (`io.debezium.converters.CloudEventsConverter`).
//!
//! ```text
//! {"id":"name:srv;file:b.000001;pos:4","source":"/debezium/mysql/srv","specversion":"1.0",
//!  "type":"io.debezium.connector.mysql.DataChangeEvent","time":"2024-02-29T12:34:56.000Z",
//!  "datacontenttype":"application/json","iodebeziumop":"c","iodebezium…":…,"data":{"before":…,"after":…}}
//! ```
//!
//! What is no change of a row has no value: schema changes, heartbeats and transaction markers, as in Debezium.

use super::json::{Object, ObjectWriter, array, quoted, string};
use super::{Draft, Part, schema, with_schema};
use crate::convert::Moment;

/// The form and its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudEvents {
    /// `extension.attributes.enable`: the source block, the operation and the transaction as attributes.
    pub(crate) extensions: bool,
}

/// The names of the source block's members that are 64-bit numbers: attributes are text then.
const LONGS: [&[u8]; 6] = [b"ts_ms", b"ts_us", b"ts_ns", b"server_id", b"pos", b"thread"];

impl CloudEvents {
    pub(super) fn convert(&self, draft: &Draft) -> Part {
        let text = draft.envelope.then(|| self.event(&draft.value)).flatten();
        Part { schema: None, payload: text.unwrap_or_else(|| b"null".to_vec()) }
    }

    fn event(&self, value: &Part) -> Option<Vec<u8>> {
        let envelope = Object::parse(&value.payload)?;
        let source = Object::parse(envelope.get("source")?)?;
        let text = |name: &str| source.get(name).and_then(string);
        let (name, connector, file) = (text("name")?, text("connector")?, text("file")?);
        let pos = String::from_utf8_lossy(source.get("pos")?).into_owned();
        let millis: i64 = std::str::from_utf8(source.get("ts_ms")?).ok()?.parse().ok()?;
        let mut time = Vec::new();
        Moment::from_micros(millis.saturating_mul(1000)).write(Some(3), &mut time);

        let mut writer = ObjectWriter::new();
        writer.member("id", &quoted(&format!("name:{name};file:{file};pos:{pos}")));
        writer.member("source", &quoted(&format!("/debezium/{connector}/{name}")));
        writer.member("specversion", b"\"1.0\"");
        writer
            .member("type", &quoted(&format!("io.debezium.connector.{connector}.DataChangeEvent")));
        writer.member("time", &quoted(&String::from_utf8_lossy(&time)));
        writer.member("datacontenttype", b"\"application/json\"");
        if self.extensions {
            writer.member("iodebeziumop", envelope.get("op")?);
            for (name, value) in source.members() {
                // The default counts here, whatever the converter of the data is told.
                let unset = name == b"snapshot" && value == b"null";
                let value = if unset { b"\"false\"" } else { value };
                extension("iodebezium", name, value, LONGS.contains(&name), &mut writer);
            }
            let block = envelope.get("transaction").and_then(Object::parse).unwrap_or_default();
            for name in ["id", "total_order", "data_collection_order"] {
                let value = block.get(name).unwrap_or(b"null");
                extension("iodebeziumtx", name.as_bytes(), value, name != "id", &mut writer);
            }
        }
        writer.member("data", &data(&envelope, value.schema.as_deref(), &connector)?);
        Some(writer.end())
    }
}

/// Adds an attribute: its name has letters and digits only.
fn extension(prefix: &str, name: &[u8], value: &[u8], long: bool, writer: &mut ObjectWriter) {
    let mut attribute = prefix.to_owned();
    attribute.extend(name.iter().filter(|c| c.is_ascii_alphanumeric()).map(|c| char::from(*c)));
    if long && value != b"null" {
        writer.member(&attribute, &quoted(&String::from_utf8_lossy(value)));
    } else {
        writer.member(&attribute, value);
    }
}

/// The two images, with their schema where it is written.
fn data(envelope: &Object<'_>, schema: Option<&[u8]>, connector: &str) -> Option<Vec<u8>> {
    let mut images = ObjectWriter::new();
    for name in ["before", "after"] {
        images.member(name, envelope.get(name)?);
    }
    let images = images.end();
    let Some(schema) = schema else { return Some(images) };
    let fields = array([schema::field(schema, "before")?, schema::field(schema, "after")?]);
    let mut writer = ObjectWriter::new();
    writer.member("type", b"\"struct\"");
    writer.member("fields", &fields);
    writer.member("optional", b"false");
    writer.member("name", &quoted(&format!("io.debezium.connector.{connector}.Data")));
    Some(with_schema(&writer.end(), &images))
}
