//! The Kafka Connect schema of a column: type, semantic name, parameters, default.

use holdfast_history::schema::{Column, ColumnType};

use super::mapping::{ColumnRule, rule_parameters};
use super::options::{ConversionOptions, TimePrecisionMode};
use super::plan::Plan;
use super::temporal::Unit;
use super::{BinaryMode, DecimalMode};
use crate::format::json as token;

/// The Connect type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// `boolean`.
    Boolean,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `float32`, in JSON `float`.
    Float,
    /// `float64`, in JSON `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// An array of `float32`.
    FloatArray,
    /// A struct of `x`, `y`, `wkb` and `srid`.
    Point,
    /// A struct of `wkb` and `srid`.
    Geometry,
}

/// The Connect schema of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSchema {
    /// Type.
    pub field_type: FieldType,
    /// Whether the field has nulls.
    pub optional: bool,
    /// Semantic name; a schema that has one has version 1.
    pub name: Option<&'static str>,
    /// Documentation.
    pub doc: Option<String>,
    /// Parameters by name, in order.
    pub parameters: Vec<(&'static str, String)>,
    /// Default as JSON.
    pub default: Option<Vec<u8>>,
}

impl FieldSchema {
    pub(super) fn new(
        plan: &Plan,
        column: &Column,
        options: &ConversionOptions,
        rule: Option<&ColumnRule>,
        default: Option<Vec<u8>>,
    ) -> Self {
        let (field_type, name) = type_and_name(plan, column, options);
        let mut parameters = parameters(plan, column);
        parameters.extend(rule.into_iter().flat_map(|rule| rule_parameters(rule, column)));
        let inner = if let Plan::Mapped(mapped) = plan { &mapped.inner } else { plan };
        let doc = if matches!(inner, Plan::Point) {
            Some("Geometry (POINT)".to_owned())
        } else if matches!(inner, Plan::Geometry) {
            Some("Geometry".to_owned())
        } else {
            column.comment.clone().filter(|comment| !comment.is_empty())
        };
        // The struct of a geometry that is no point may be missing, whatever the column says.
        let optional = column.optional || matches!(inner, Plan::Geometry);
        Self { field_type, optional, name, doc, parameters, default }
    }

    /// Appends the schema as JSON; `field` is the name of the field it is for.
    pub fn write(&self, field: &str, out: &mut Vec<u8>) {
        let opening: &[u8] = match self.field_type {
            FieldType::Boolean => br#"{"type":"boolean""#,
            FieldType::Int8 => br#"{"type":"int8""#,
            FieldType::Int16 => br#"{"type":"int16""#,
            FieldType::Int32 => br#"{"type":"int32""#,
            FieldType::Int64 => br#"{"type":"int64""#,
            FieldType::Float => br#"{"type":"float""#,
            FieldType::Double => br#"{"type":"double""#,
            FieldType::String => br#"{"type":"string""#,
            FieldType::Bytes => br#"{"type":"bytes""#,
            FieldType::FloatArray => br#"{"type":"array","items":{"type":"float","optional":false}"#,
            FieldType::Point => concat!(
                r#"{"type":"struct","fields":[{"type":"double","optional":false,"field":"x"},"#,
                r#"{"type":"double","optional":false,"field":"y"},{"type":"bytes","optional":true,"field":"wkb"},"#,
                r#"{"type":"int32","optional":true,"field":"srid"}]"#
            )
            .as_bytes(),
            FieldType::Geometry => concat!(
                r#"{"type":"struct","fields":[{"type":"bytes","optional":false,"field":"wkb"},"#,
                r#"{"type":"int32","optional":true,"field":"srid"}]"#
            )
            .as_bytes(),
        };
        out.extend_from_slice(opening);
        out.extend_from_slice(b",\"optional\":");
        token::write_bool(self.optional, out);
        if let Some(name) = self.name {
            out.extend_from_slice(b",\"name\":");
            token::write_string(name, out);
            out.extend_from_slice(b",\"version\":1");
        }
        if let Some(doc) = &self.doc {
            out.extend_from_slice(b",\"doc\":");
            token::write_string(doc, out);
        }
        for (number, (name, value)) in self.parameters.iter().enumerate() {
            out.extend_from_slice(if number == 0 { b",\"parameters\":{" } else { b"," });
            token::write_string(name, out);
            out.push(b':');
            token::write_string(value, out);
        }
        if !self.parameters.is_empty() {
            out.push(b'}');
        }
        if let Some(default) = &self.default {
            out.extend_from_slice(b",\"default\":");
            out.extend_from_slice(default);
        }
        out.extend_from_slice(b",\"field\":");
        token::write_string(field, out);
        out.push(b'}');
    }
}

fn type_and_name(
    plan: &Plan,
    column: &Column,
    options: &ConversionOptions,
) -> (FieldType, Option<&'static str>) {
    match plan {
        Plan::Int { .. } => (integer(column.column_type(), options.tinyint_int8), None),
        Plan::UnsignedBig { .. }
        | Plan::DecimalNumber { .. }
        | Plan::Decimal { mode: DecimalMode::Precise, .. } => {
            (FieldType::Bytes, Some("org.apache.kafka.connect.data.Decimal"))
        }
        Plan::Bool | Plan::Bit => (FieldType::Boolean, None),
        Plan::Float { .. } | Plan::DoubleAsFloat => (FieldType::Float, None),
        Plan::FloatAsDouble | Plan::Double | Plan::Decimal { mode: DecimalMode::Double, .. } => {
            (FieldType::Double, None)
        }
        Plan::Decimal { mode: DecimalMode::String, .. }
        | Plan::Text(_)
        | Plan::Inet4
        | Plan::Inet6
        | Plan::Unknown => (FieldType::String, None),
        Plan::Bits { .. } => (FieldType::Bytes, Some("io.debezium.data.Bits")),
        Plan::Binary { mode: BinaryMode::Bytes, .. } => (FieldType::Bytes, None),
        Plan::Binary {
            mode: BinaryMode::Base64 | BinaryMode::Base64UrlSafe | BinaryMode::Hex,
            ..
        } => (FieldType::String, None),
        Plan::Date { iso: true, .. } => (FieldType::String, Some("io.debezium.time.IsoDate")),
        Plan::Date { iso: false, .. } => match options.time_precision {
            TimePrecisionMode::Connect => {
                (FieldType::Int32, Some("org.apache.kafka.connect.data.Date"))
            }
            TimePrecisionMode::AdaptiveTimeMicroseconds
            | TimePrecisionMode::IsoString
            | TimePrecisionMode::Microseconds
            | TimePrecisionMode::Nanoseconds => (FieldType::Int32, Some("io.debezium.time.Date")),
        },
        Plan::Time(Unit::Millis) => (FieldType::Int32, Some("org.apache.kafka.connect.data.Time")),
        Plan::Time(Unit::Micros) => (FieldType::Int64, Some("io.debezium.time.MicroTime")),
        Plan::Time(Unit::Nanos) => (FieldType::Int64, Some("io.debezium.time.NanoTime")),
        Plan::Time(Unit::Iso) => (FieldType::String, Some("io.debezium.time.IsoTime")),
        Plan::DateTime { unit: Unit::Millis, .. }
            if options.time_precision == TimePrecisionMode::Connect =>
        {
            (FieldType::Int64, Some("org.apache.kafka.connect.data.Timestamp"))
        }
        Plan::DateTime { unit: Unit::Millis, .. } => {
            (FieldType::Int64, Some("io.debezium.time.Timestamp"))
        }
        Plan::DateTime { unit: Unit::Micros, .. } => {
            (FieldType::Int64, Some("io.debezium.time.MicroTimestamp"))
        }
        Plan::DateTime { unit: Unit::Nanos, .. } => {
            (FieldType::Int64, Some("io.debezium.time.NanoTimestamp"))
        }
        Plan::DateTime { unit: Unit::Iso, .. } => {
            (FieldType::String, Some("io.debezium.time.IsoTimestamp"))
        }
        Plan::Timestamp { .. } => (FieldType::String, Some("io.debezium.time.ZonedTimestamp")),
        Plan::Year => (FieldType::Int32, Some("io.debezium.time.Year")),
        Plan::Enum(_) => (FieldType::String, Some("io.debezium.data.Enum")),
        Plan::Set(_) => (FieldType::String, Some("io.debezium.data.EnumSet")),
        Plan::Json(_) => (FieldType::String, Some("io.debezium.data.Json")),
        Plan::Uuid => (FieldType::String, Some("io.debezium.data.Uuid")),
        Plan::Point => (FieldType::Point, Some("io.debezium.data.geometry.Point")),
        Plan::Geometry => (FieldType::Geometry, Some("io.debezium.data.geometry.Geometry")),
        Plan::Vector => (FieldType::FloatArray, Some("io.debezium.data.FloatVector")),
        Plan::Mapped(mapped) => match mapped.field_type() {
            Some(field_type) => (field_type, None),
            None => type_and_name(&mapped.inner, column, options),
        },
    }
}

/// The narrowest Connect type that holds all values, but `int16` for TINYINT unless told otherwise.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is no integer is not asked for")]
fn integer(column_type: ColumnType, tinyint_int8: bool) -> FieldType {
    match column_type {
        ColumnType::TinyInt { unsigned: false } if tinyint_int8 => FieldType::Int8,
        ColumnType::TinyInt { .. } | ColumnType::SmallInt { unsigned: false } => FieldType::Int16,
        ColumnType::SmallInt { unsigned: true }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { unsigned: false } => FieldType::Int32,
        _ => FieldType::Int64,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most types have no parameters")]
fn parameters(plan: &Plan, column: &Column) -> Vec<(&'static str, String)> {
    const SCALE: &str = "scale";
    const PRECISION: &str = "connect.decimal.precision";
    match plan {
        Plan::UnsignedBig { .. } => vec![(SCALE, "0".to_owned()), (PRECISION, "20".to_owned())],
        Plan::Decimal { mode: DecimalMode::Precise, scale } | Plan::DecimalNumber { scale } => {
            vec![(SCALE, scale.to_string()), (PRECISION, column.length.unwrap_or(10).to_string())]
        }
        Plan::Bits { .. } => vec![("length", column.length.unwrap_or(1).to_string())],
        Plan::Enum(labels) | Plan::Set(labels) => vec![("allowed", labels.allowed.clone())],
        Plan::Mapped(mapped) if mapped.names_charset() => {
            const CHARSET: &str = "__debezium.source.column.character_set";
            column.charset.iter().map(|charset| (CHARSET, charset.clone())).collect()
        }
        Plan::Mapped(mapped) if mapped.field_type().is_none() => parameters(&mapped.inner, column),
        _ => Vec::new(),
    }
}
