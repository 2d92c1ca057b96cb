//! Kafka Connect schemas as JSON, for records with `schemas.enable`: `{"schema":…,"payload":…}`.
//!
//! Source: Debezium 3.6.3.Final, `io.debezium.schema.SchemaFactory` and what the JSON converter prints of it.

use super::json::{write_bool, write_string, write_u64};
use crate::config::Config;
use crate::convert::TableConverter;
use crate::topic::DataTopic;

/// A plain field: name, type, and whether it may be null.
type Field = (&'static str, &'static str, bool);

/// What stands around a payload: its schema, rendered once; nothing where schemas are not written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchemaText(Box<[u8]>);

impl SchemaText {
    /// The text with the schema that `schema` appends, or none unless `enabled`.
    pub fn new(enabled: bool, schema: impl FnOnce(&mut Vec<u8>)) -> Self {
        if !enabled {
            return Self::default();
        }
        let mut text = b"{\"schema\":".to_vec();
        schema(&mut text);
        text.extend_from_slice(b",\"payload\":");
        Self(text.into())
    }

    /// Appends what comes before the payload.
    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }

    /// Appends what comes after the payload.
    pub fn end(&self, out: &mut Vec<u8>) {
        if !self.0.is_empty() {
            out.push(b'}');
        }
    }
}

/// The schemas of one table's records at one schema version.
#[derive(Debug)]
pub struct TableSchemas {
    /// Of keys; none for a table without a key.
    pub key: SchemaText,
    /// Of envelopes.
    pub value: SchemaText,
    /// Of keys in headers.
    pub key_header: SchemaText,
}

impl TableSchemas {
    /// Renders what `config` asks for.
    #[must_use]
    pub fn new(topic: &DataTopic, table: &TableConverter, config: &Config) -> Self {
        let name = config.schema_names.schema(&topic.name);
        let key = |enabled, in_header| {
            SchemaText::new(enabled && table.has_key(), |out| {
                write_key_schema_of(&name, table, in_header, out);
            })
        };
        Self {
            key: key(config.events.key_schemas, false),
            value: SchemaText::new(config.events.value_schemas, |out| {
                write_envelope_schema(&name, config.connector.connector_name(), table, out);
            }),
            key_header: key(config.events.header_schemas, true),
        }
    }
}

/// Key and value schemas of the records that belong to no table, and that of text headers.
#[derive(Debug)]
pub struct FixedSchemas {
    /// Of schema changes, key and value.
    pub schema_change: [SchemaText; 2],
    /// Of transaction markers, key and value.
    pub transaction: [SchemaText; 2],
    /// Of heartbeats, key and value.
    pub heartbeat: [SchemaText; 2],
    /// Of a header that is text.
    pub text_header: SchemaText,
}

impl FixedSchemas {
    /// Renders what `config` asks for.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let connector = config.connector.connector_name();
        let key = config.events.key_schemas;
        let value = config.events.value_schemas;
        Self {
            schema_change: [
                SchemaText::new(key, |out| write_schema_change_key_schema(connector, out)),
                SchemaText::new(value, |out| write_schema_change_value_schema(connector, out)),
            ],
            transaction: [
                SchemaText::new(key, write_transaction_key_schema),
                SchemaText::new(value, write_transaction_value_schema),
            ],
            heartbeat: [
                SchemaText::new(key, write_heartbeat_key_schema),
                SchemaText::new(value, write_heartbeat_value_schema),
            ],
            text_header: SchemaText::new(config.events.header_schemas, |out| {
                out.extend_from_slice(br#"{"type":"string","optional":false}"#);
            }),
        }
    }
}

/// Appends the schema of a table's keys. `name` is the topic, adjusted to be a schema's name.
pub fn write_key_schema(name: &str, table: &TableConverter, out: &mut Vec<u8>) {
    write_key_schema_of(name, table, false, out);
}

fn write_key_schema_of(name: &str, table: &TableConverter, in_header: bool, out: &mut Vec<u8>) {
    begin_struct(out);
    table.write_key_fields(in_header, out);
    end_struct(false, &format!("{name}.Key"), None, None, out);
}

/// Appends the schema of a table's values. `name` is the topic, adjusted to be a schema's name; `connector` is `mysql` or
/// `mariadb`.
pub fn write_envelope_schema(
    name: &str,
    connector: &str,
    table: &TableConverter,
    out: &mut Vec<u8>,
) {
    begin_struct(out);
    for field in ["before", "after"] {
        begin_struct(out);
        table.write_value_fields(out);
        end_struct(true, &format!("{name}.Value"), None, Some(field), out);
        out.push(b',');
    }
    write_source_schema(connector, out);
    out.push(b',');
    begin_struct(out);
    let block = [
        ("id", "string", false),
        ("total_order", "int64", false),
        ("data_collection_order", "int64", false),
    ];
    write_fields(&block, out);
    end_struct(true, "event.block", Some(1), Some("transaction"), out);
    out.push(b',');
    let rest = [
        ("op", "string", false),
        ("ts_ms", "int64", true),
        ("ts_us", "int64", true),
        ("ts_ns", "int64", true),
    ];
    write_fields(&rest, out);
    end_struct(false, &format!("{name}.Envelope"), Some(2), None, out);
}

/// Appends the schema of a schema-change record's key.
pub fn write_schema_change_key_schema(connector: &str, out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(&[("databaseName", "string", false)], out);
    end_struct(
        false,
        &format!("io.debezium.connector.{connector}.SchemaChangeKey"),
        Some(1),
        None,
        out,
    );
}

/// Appends the schema of a schema-change record's value.
pub fn write_schema_change_value_schema(connector: &str, out: &mut Vec<u8>) {
    begin_struct(out);
    write_source_schema(connector, out);
    out.push(b',');
    let head = [
        ("ts_ms", "int64", false),
        ("databaseName", "string", true),
        ("schemaName", "string", true),
        ("ddl", "string", true),
    ];
    write_fields(&head, out);
    out.extend_from_slice(b",{\"type\":\"array\",\"items\":");
    begin_struct(out);
    write_fields(&[("type", "string", false), ("id", "string", false)], out);
    out.push(b',');
    write_table_schema(out);
    end_struct(false, "io.debezium.connector.schema.Change", Some(1), None, out);
    out.extend_from_slice(b",\"optional\":false,\"field\":\"tableChanges\"}");
    end_struct(
        false,
        &format!("io.debezium.connector.{connector}.SchemaChangeValue"),
        Some(1),
        None,
        out,
    );
}

/// Appends the schema of a heartbeat's key.
pub fn write_heartbeat_key_schema(out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(&[("serverName", "string", false)], out);
    end_struct(false, "io.debezium.connector.common.ServerNameKey", Some(1), None, out);
}

/// Appends the schema of a heartbeat's value.
pub fn write_heartbeat_value_schema(out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(&[("ts_ms", "int64", false)], out);
    end_struct(false, "io.debezium.connector.common.Heartbeat", Some(1), None, out);
}

/// Appends the schema of a transaction marker's key.
pub fn write_transaction_key_schema(out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(&[("id", "string", false)], out);
    end_struct(false, "io.debezium.connector.common.TransactionMetadataKey", Some(1), None, out);
}

/// Appends the schema of a transaction marker's value.
pub fn write_transaction_value_schema(out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(
        &[("status", "string", false), ("id", "string", false), ("event_count", "int64", true)],
        out,
    );
    out.extend_from_slice(b",{\"type\":\"array\",\"items\":");
    begin_struct(out);
    write_fields(&[("data_collection", "string", false), ("event_count", "int64", false)], out);
    end_struct(true, "event.collection", Some(1), None, out);
    out.extend_from_slice(b",\"optional\":true,\"field\":\"data_collections\"},");
    write_fields(&[("ts_ms", "int64", false)], out);
    end_struct(false, "io.debezium.connector.common.TransactionMetadataValue", Some(1), None, out);
}

fn write_source_schema(connector: &str, out: &mut Vec<u8>) {
    begin_struct(out);
    let head = [
        ("version", "string", false),
        ("connector", "string", false),
        ("name", "string", false),
        ("ts_ms", "int64", false),
    ];
    write_fields(&head, out);
    out.extend_from_slice(
        concat!(
            r#",{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"parameters":"#,
            r#"{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},"#,
            r#""default":"false","field":"snapshot"},"#
        )
        .as_bytes(),
    );
    let rest = [
        ("db", "string", false),
        ("sequence", "string", true),
        ("ts_us", "int64", true),
        ("ts_ns", "int64", true),
        ("table", "string", true),
        ("server_id", "int64", false),
        ("gtid", "string", true),
        ("file", "string", false),
        ("pos", "int64", false),
        ("row", "int32", false),
        ("thread", "int64", true),
        ("query", "string", true),
    ];
    write_fields(&rest, out);
    end_struct(
        false,
        &format!("io.debezium.connector.{connector}.Source"),
        Some(1),
        Some("source"),
        out,
    );
}

fn write_table_schema(out: &mut Vec<u8>) {
    begin_struct(out);
    write_fields(&[("defaultCharsetName", "string", true)], out);
    out.push(b',');
    write_strings("primaryKeyColumnNames", out);
    out.extend_from_slice(b",{\"type\":\"array\",\"items\":");
    begin_struct(out);
    let column = [
        ("name", "string", false),
        ("jdbcType", "int32", false),
        ("nativeType", "int32", true),
        ("typeName", "string", false),
        ("typeExpression", "string", true),
        ("charsetName", "string", true),
        ("length", "int32", true),
        ("scale", "int32", true),
        ("position", "int32", false),
        ("optional", "boolean", true),
        ("autoIncremented", "boolean", true),
        ("generated", "boolean", true),
        ("comment", "string", true),
        ("defaultValueExpression", "string", true),
    ];
    write_fields(&column, out);
    out.push(b',');
    write_strings("enumValues", out);
    end_struct(false, "io.debezium.connector.schema.Column", Some(1), None, out);
    out.extend_from_slice(b",\"optional\":false,\"field\":\"columns\"},");
    write_fields(&[("comment", "string", true)], out);
    end_struct(true, "io.debezium.connector.schema.Table", Some(1), Some("table"), out);
}

/// An optional array of strings.
fn write_strings(field: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(
        br#"{"type":"array","items":{"type":"string","optional":false},"optional":true,"field":"#,
    );
    write_string(field, out);
    out.push(b'}');
}

fn begin_struct(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"struct\",\"fields\":[");
}

fn end_struct(
    optional: bool,
    name: &str,
    version: Option<u64>,
    field: Option<&str>,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"],\"optional\":");
    write_bool(optional, out);
    out.extend_from_slice(b",\"name\":");
    write_string(name, out);
    if let Some(version) = version {
        out.extend_from_slice(b",\"version\":");
        write_u64(version, out);
    }
    if let Some(field) = field {
        out.extend_from_slice(b",\"field\":");
        write_string(field, out);
    }
    out.push(b'}');
}

fn write_fields(fields: &[Field], out: &mut Vec<u8>) {
    for (number, (name, field_type, optional)) in fields.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"type\":");
        write_string(field_type, out);
        out.extend_from_slice(b",\"optional\":");
        write_bool(*optional, out);
        out.extend_from_slice(b",\"field\":");
        write_string(name, out);
        out.push(b'}');
    }
}
#[cfg(test)]
mod tests {
    use holdfast_history::schema::Table;

    use super::*;
    use crate::convert::tests::{column, table};
    use crate::convert::{ColumnSelection, ConversionOptions};
    use holdfast_history::schema::Column;

    #[test]
    fn records_have_debeziums_schemas() {
        let required = |name: &str, type_name: &str| Column {
            name: name.to_owned(),
            optional: false,
            ..column(type_name)
        };
        let mut table: Table = table([required("k", "BIGINT UNSIGNED"), required("v", "INT")]);
        table.primary_key = vec!["k".to_owned()];
        let selection = ColumnSelection::all(&table);
        let (table, _) = TableConverter::new(&table, &ConversionOptions::default(), &selection);
        let name = "srv.gold.t_bigkey";
        let key = r#"{"type":"int64","optional":false,"field":"k"}"#;
        let key =
            format!(r#"{{"type":"struct","fields":[{key}],"optional":false,"name":"{name}.Key"}}"#);
        assert_eq!(printed(|out| write_key_schema(name, &table, out)), key);
        let [before, after] = ENVELOPE;
        let envelope = format!("{before}{SOURCE}{after}");
        assert_eq!(printed(|out| write_envelope_schema(name, "mysql", &table, out)), envelope);
        let [before, after] = SCHEMA_CHANGE;
        let change = format!("{before}{SOURCE}{after}");
        assert_eq!(printed(|out| write_schema_change_value_schema("mysql", out)), change);
        assert_eq!(printed(write_transaction_value_schema), TRANSACTION);
        for (schema, field, name) in [
            (
                printed(|out| write_schema_change_key_schema("mysql", out)),
                r#"{"type":"string","optional":false,"field":"databaseName"}"#,
                "mysql.SchemaChangeKey",
            ),
            (
                printed(write_heartbeat_key_schema),
                r#"{"type":"string","optional":false,"field":"serverName"}"#,
                "common.ServerNameKey",
            ),
            (
                printed(write_heartbeat_value_schema),
                r#"{"type":"int64","optional":false,"field":"ts_ms"}"#,
                "common.Heartbeat",
            ),
            (
                printed(write_transaction_key_schema),
                r#"{"type":"string","optional":false,"field":"id"}"#,
                "common.TransactionMetadataKey",
            ),
        ] {
            let tail =
                format!(r#""optional":false,"name":"io.debezium.connector.{name}","version":1}}"#);
            assert_eq!(schema, format!(r#"{{"type":"struct","fields":[{field}],{tail}"#));
        }
        for (enabled, json) in [(true, r#"{"schema":1,"payload":2}"#), (false, "2")] {
            let schema = SchemaText::new(enabled, |out| out.push(b'1'));
            let wrapped = printed(|out| {
                schema.begin(out);
                out.push(b'2');
                schema.end(out);
            });
            assert_eq!(wrapped, json);
        }
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// The `source` field as Debezium 3.6.3.Final prints it.
    const SOURCE: &str = concat!(
        r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"version"},"#,
        r#"{"type":"string","optional":false,"field":"connector"},"#,
        r#"{"type":"string","optional":false,"field":"name"},"#,
        r#"{"type":"int64","optional":false,"field":"ts_ms"},"#,
        r#"{"type":"string","optional":true,"name":"io.debezium.data.Enum","version":1,"#,
        r#""parameters":{"allowed":"true,first,first_in_data_collection,last_in_data_collection,last,false,"#,
        r#"incremental"},"default":"false","field":"snapshot"},"#,
        r#"{"type":"string","optional":false,"field":"db"},"#,
        r#"{"type":"string","optional":true,"field":"sequence"},"#,
        r#"{"type":"int64","optional":true,"field":"ts_us"},"#,
        r#"{"type":"int64","optional":true,"field":"ts_ns"},"#,
        r#"{"type":"string","optional":true,"field":"table"},"#,
        r#"{"type":"int64","optional":false,"field":"server_id"},"#,
        r#"{"type":"string","optional":true,"field":"gtid"},"#,
        r#"{"type":"string","optional":false,"field":"file"},"#,
        r#"{"type":"int64","optional":false,"field":"pos"},"#,
        r#"{"type":"int32","optional":false,"field":"row"},"#,
        r#"{"type":"int64","optional":true,"field":"thread"},"#,
        r#"{"type":"string","optional":true,"field":"query"}],"optional":false,"#,
        r#""name":"io.debezium.connector.mysql.Source","version":1,"field":"source"}"#,
    );

    /// What comes before and after it in the schema of an envelope.
    const ENVELOPE: [&str; 2] = [
        concat!(
            r#"{"type":"struct","fields":[{"type":"struct","fields":[{"type":"int64","optional":false,"#,
            r#""field":"k"},{"type":"int32","optional":false,"field":"v"}],"optional":true,"#,
            r#""name":"srv.gold.t_bigkey.Value","field":"before"},"#,
            r#"{"type":"struct","fields":[{"type":"int64","optional":false,"field":"k"},"#,
            r#"{"type":"int32","optional":false,"field":"v"}],"optional":true,"name":"srv.gold.t_bigkey.Value","#,
            r#""field":"after"},"#,
        ),
        concat!(
            r#",{"type":"struct","fields":[{"type":"string","optional":false,"field":"id"},"#,
            r#"{"type":"int64","optional":false,"field":"total_order"},"#,
            r#"{"type":"int64","optional":false,"field":"data_collection_order"}],"optional":true,"#,
            r#""name":"event.block","version":1,"field":"transaction"},"#,
            r#"{"type":"string","optional":false,"field":"op"},"#,
            r#"{"type":"int64","optional":true,"field":"ts_ms"},"#,
            r#"{"type":"int64","optional":true,"field":"ts_us"},"#,
            r#"{"type":"int64","optional":true,"field":"ts_ns"}],"optional":false,"#,
            r#""name":"srv.gold.t_bigkey.Envelope","version":2}"#,
        ),
    ];

    /// What comes before and after it in the schema of a schema change.
    const SCHEMA_CHANGE: [&str; 2] = [
        r#"{"type":"struct","fields":["#,
        concat!(
            r#",{"type":"int64","optional":false,"field":"ts_ms"},"#,
            r#"{"type":"string","optional":true,"field":"databaseName"},"#,
            r#"{"type":"string","optional":true,"field":"schemaName"},"#,
            r#"{"type":"string","optional":true,"field":"ddl"},"#,
            r#"{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"#,
            r#""field":"type"},{"type":"string","optional":false,"field":"id"},"#,
            r#"{"type":"struct","fields":[{"type":"string","optional":true,"field":"defaultCharsetName"},"#,
            r#"{"type":"array","items":{"type":"string","optional":false},"optional":true,"#,
            r#""field":"primaryKeyColumnNames"},"#,
            r#"{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"#,
            r#""field":"name"},{"type":"int32","optional":false,"field":"jdbcType"},"#,
            r#"{"type":"int32","optional":true,"field":"nativeType"},"#,
            r#"{"type":"string","optional":false,"field":"typeName"},"#,
            r#"{"type":"string","optional":true,"field":"typeExpression"},"#,
            r#"{"type":"string","optional":true,"field":"charsetName"},"#,
            r#"{"type":"int32","optional":true,"field":"length"},"#,
            r#"{"type":"int32","optional":true,"field":"scale"},"#,
            r#"{"type":"int32","optional":false,"field":"position"},"#,
            r#"{"type":"boolean","optional":true,"field":"optional"},"#,
            r#"{"type":"boolean","optional":true,"field":"autoIncremented"},"#,
            r#"{"type":"boolean","optional":true,"field":"generated"},"#,
            r#"{"type":"string","optional":true,"field":"comment"},"#,
            r#"{"type":"string","optional":true,"field":"defaultValueExpression"},"#,
            r#"{"type":"array","items":{"type":"string","optional":false},"optional":true,"#,
            r#""field":"enumValues"}],"optional":false,"name":"io.debezium.connector.schema.Column","#,
            r#""version":1},"optional":false,"field":"columns"},"#,
            r#"{"type":"string","optional":true,"field":"comment"}],"optional":true,"#,
            r#""name":"io.debezium.connector.schema.Table","version":1,"field":"table"}],"optional":false,"#,
            r#""name":"io.debezium.connector.schema.Change","version":1},"optional":false,"#,
            r#""field":"tableChanges"}],"optional":false,"#,
            r#""name":"io.debezium.connector.mysql.SchemaChangeValue","version":1}"#,
        ),
    ];

    const TRANSACTION: &str = concat!(
        r#"{"type":"struct","fields":[{"type":"string","optional":false,"field":"status"},"#,
        r#"{"type":"string","optional":false,"field":"id"},"#,
        r#"{"type":"int64","optional":true,"field":"event_count"},"#,
        r#"{"type":"array","items":{"type":"struct","fields":[{"type":"string","optional":false,"#,
        r#""field":"data_collection"},"#,
        r#"{"type":"int64","optional":false,"field":"event_count"}],"optional":true,"#,
        r#""name":"event.collection","version":1},"optional":true,"field":"data_collections"},"#,
        r#"{"type":"int64","optional":false,"field":"ts_ms"}],"optional":false,"#,
        r#""name":"io.debezium.connector.common.TransactionMetadataValue","version":1}"#,
    );
}
