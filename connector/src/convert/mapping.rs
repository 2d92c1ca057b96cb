//! What is set for single columns beside their types and modes: converters by name, masks, truncation, hashes.
//!
//! A column that has none of these keeps its plan, and a value of it costs nothing more. One that has is planned as
//! [`Plan::Mapped`]: the value is converted as usual and then changed.
//!
//! Source: Debezium 3.6.3.Final, `io.debezium.relational.mapping.*` and `io.debezium.connector.binlog.converters.*`.

use std::borrow::Cow;

use holdfast_binlog::Value;
use holdfast_history::schema::{Column, JdbcType};

use super::datum::{Datum, Logical};
use super::digest::Hash;
use super::error::ConvertFailure;
use super::plan::Plan;
use super::schema::FieldType;
use super::{Origin, numeric};

/// What is set for one column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ColumnSettings {
    /// Changes values of the images; keys are left as they are.
    pub(crate) rule: Option<ColumnRule>,
    /// Takes the place of the type's own conversion, in keys too.
    pub(crate) converter: Option<ColumnCast>,
}

/// The one rule of a column: the first that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnRule {
    /// `column.truncate.to.N.chars`: text to N UTF-16 units, bytes to N bytes.
    Truncate(usize),
    /// `column.mask.with.N.chars`: N asterisks instead of text, and instead of NULL.
    Mask(usize),
    /// `column.mask.hash.*`: the digest instead of text.
    Hash(Hash),
    /// `column.propagate.source.type`, `datatype.propagate.source.type`: the source type in the schema.
    SourceType,
}

/// What a converter makes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnCast {
    /// A boolean: whether the number is above 0.
    Truth,
    /// The same as a number, 1 or 0.
    Flag,
    /// A 64-bit float.
    Double,
    /// A 32-bit float.
    Float,
    /// Text whose schema names its character set.
    Text,
    /// A date whose zero is this moment, microseconds since the epoch, or null.
    ZeroDate(Option<i64>),
}

/// A plan, and what is done with its values.
#[derive(Debug, Clone)]
pub(super) struct Mapped {
    pub(super) inner: Plan,
    cast: Option<ColumnCast>,
    change: Option<Change>,
}

/// What is done with a value once it is converted.
#[derive(Debug, Clone)]
enum Change {
    /// Always this.
    Mask(String),
    Truncate(usize),
    /// The digest, cut to the column's length.
    Hash(Hash, Option<usize>),
}

impl Mapped {
    /// The mapping that the settings make of a column's plan; none where they leave its values alone.
    pub(super) fn new(
        inner: &Plan,
        column: &Column,
        cast: Option<ColumnCast>,
        rule: Option<&ColumnRule>,
    ) -> Option<Self> {
        let cast = cast.filter(|cast| !matches!(cast, ColumnCast::ZeroDate(_)));
        // A decimal is neither text nor bytes.
        let number = matches!(inner, Plan::DecimalNumber { .. } | Plan::UnsignedBig { .. });
        let change = rule.filter(|_| !number).and_then(|rule| change(rule, column));
        (cast.is_some() || change.is_some()).then(|| Self { inner: inner.clone(), cast, change })
    }

    /// What a value becomes; none for NULL and what counts as NULL.
    pub(super) fn apply<'v>(
        &'v self,
        value: &Value<'v>,
        origin: Origin,
    ) -> Result<Option<Datum<'v>>, ConvertFailure> {
        if let Some(Change::Mask(mask)) = &self.change {
            return Ok(Some(Datum::Text(Cow::Borrowed(mask))));
        }
        let Some(logical) = self.inner.apply(value, origin)? else { return Ok(None) };
        let mut datum = self.cast(logical.into_datum()?);
        datum = match (&self.change, datum) {
            (Some(Change::Truncate(most)), Datum::Text(text)) => Datum::Text(cut(text, *most)),
            // BIT is no text and no bytes to Debezium's rule.
            (Some(Change::Truncate(most)), Datum::Bytes(bytes))
                if !matches!(self.inner, Plan::Bits { .. }) =>
            {
                Datum::Bytes(cut_bytes(bytes, *most))
            }
            (Some(Change::Hash(hash, length)), Datum::Text(text)) => {
                let mut digits = hash.of(&text);
                digits.truncate(length.unwrap_or(usize::MAX));
                Datum::Text(Cow::Owned(digits))
            }
            (_, datum) => datum,
        };
        Ok(Some(datum))
    }

    /// What a converted value is to the column's converter.
    pub(super) fn cast<'v>(&self, datum: Datum<'v>) -> Datum<'v> {
        match self.cast {
            Some(ColumnCast::Truth) => Datum::Bool(is_positive(&datum)),
            Some(ColumnCast::Flag) => Datum::Int(i64::from(is_positive(&datum))),
            Some(ColumnCast::Double) => Datum::Double(as_double(&datum)),
            Some(ColumnCast::Float) => Datum::Float(numeric::narrowed(as_double(&datum))),
            Some(ColumnCast::Text) => as_text(datum),
            Some(ColumnCast::ZeroDate(_)) | None => datum,
        }
    }

    /// The Connect type that a converter gives; none where the plan's stays.
    pub(super) fn field_type(&self) -> Option<FieldType> {
        Some(match self.cast? {
            ColumnCast::Truth => FieldType::Boolean,
            ColumnCast::Flag => FieldType::Int16,
            ColumnCast::Double => FieldType::Double,
            ColumnCast::Float => FieldType::Float,
            ColumnCast::Text => FieldType::String,
            ColumnCast::ZeroDate(_) => return None,
        })
    }

    /// Whether the schema names the character set.
    pub(super) fn names_charset(&self) -> bool {
        self.cast == Some(ColumnCast::Text)
    }
}

/// The parameters that a rule adds to a column's schema.
pub(super) fn rule_parameters(rule: &ColumnRule, column: &Column) -> Vec<(&'static str, String)> {
    match rule {
        ColumnRule::Truncate(most) if cuts(*most, column) => {
            vec![("truncateLength", most.to_string())]
        }
        ColumnRule::Truncate(_) => Vec::new(),
        ColumnRule::Mask(_) | ColumnRule::Hash(_) => vec![("masked", "true".to_owned())],
        ColumnRule::SourceType => {
            let number = |number: Option<i32>| number.map(|number| number.to_string());
            let parameters = [
                ("__debezium.source.column.type", Some(column.type_name.to_uppercase())),
                ("__debezium.source.column.length", number(column.length)),
                ("__debezium.source.column.scale", number(column.scale)),
                (
                    "__debezium.source.column.comment",
                    column.comment.clone().filter(|comment| !comment.is_empty()),
                ),
                ("__debezium.source.column.name", Some(column.name.clone())),
            ];
            parameters.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
        }
    }
}

/// What a rule does with the values of a column; nothing where its type is none that the rule is for.
fn change(rule: &ColumnRule, column: &Column) -> Option<Change> {
    match rule {
        ColumnRule::Truncate(most) => cuts(*most, column).then_some(Change::Truncate(*most)),
        ColumnRule::Mask(count) => is_text(column).then(|| Change::Mask("*".repeat(*count))),
        ColumnRule::Hash(hash) => is_text(column).then(|| {
            let length = column.length.and_then(|length| usize::try_from(length).ok());
            Change::Hash(hash.clone(), length.filter(|&length| length > 0))
        }),
        ColumnRule::SourceType => None,
    }
}

/// Whether values of the column can be longer.
fn cuts(most: usize, column: &Column) -> bool {
    column.length.and_then(|length| usize::try_from(length).ok()).is_none_or(|length| length > most)
}

/// Whether masks are for the column: by its JDBC type, so that ENUM and SET are text too.
fn is_text(column: &Column) -> bool {
    [JdbcType::CHAR, JdbcType::VARCHAR, JdbcType::NCHAR, JdbcType::NVARCHAR]
        .contains(&column.jdbc_type)
}

/// The first `most` UTF-16 units; a character that would be cut in two is left out.
fn cut(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text;
    }
    let mut units = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        units += c.len_utf16();
        (units > most).then_some(at)
    });
    match (end, text) {
        (None, text) => text,
        (Some(end), Cow::Borrowed(text)) => {
            Cow::Borrowed(text.split_at_checked(end).map_or(text, |(head, _)| head))
        }
        (Some(end), Cow::Owned(mut text)) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

fn cut_bytes(bytes: Cow<'_, [u8]>, most: usize) -> Cow<'_, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..most).unwrap_or(bytes)),
        Cow::Owned(mut bytes) => {
            bytes.truncate(most);
            Cow::Owned(bytes)
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is no number and no text is not above 0")]
fn is_positive(datum: &Datum<'_>) -> bool {
    match datum {
        Datum::Bool(value) => *value,
        Datum::Int(number) => *number > 0,
        Datum::Float(number) => *number >= 1.0,
        Datum::Double(number) => *number >= 1.0,
        Datum::Decimal(number) => number.to_i128().is_some_and(|number| number > 0),
        Datum::Text(text) => match text.parse::<i32>() {
            Ok(number) => number > 0,
            Err(_) => text.eq_ignore_ascii_case("true"),
        },
        _ => false,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is no number and no text is 0")]
fn as_double(datum: &Datum<'_>) -> f64 {
    match datum {
        Datum::Bool(value) => f64::from(u8::from(*value)),
        #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
        Datum::Int(number) => *number as f64,
        Datum::Float(number) => f64::from(*number),
        Datum::Double(number) => *number,
        Datum::Text(text) => text.trim().parse().unwrap_or_default(),
        _ => 0.0,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is no number and no text is empty")]
fn as_text(datum: Datum<'_>) -> Datum<'_> {
    match datum {
        Datum::Text(_) => datum,
        Datum::Bytes(bytes) => {
            Datum::Text(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) | Datum::Double(_) => {
            let mut printed = Vec::new();
            datum.write_json(&mut printed);
            Datum::Text(Cow::Owned(String::from_utf8_lossy(&printed).into_owned()))
        }
        _ => Datum::Text(Cow::Borrowed("")),
    }
}

/// The value that a zero date becomes.
pub(super) fn zero_date<'v>(plan: &Plan, micros: i64) -> Option<Logical<'v>> {
    const MICROS_PER_DAY: i64 = 86_400_000_000;
    use super::temporal::{Moment, Unit};
    if let Plan::Date { .. } = plan {
        return Some(Logical::Int(micros.div_euclid(MICROS_PER_DAY)));
    }
    if let Plan::DateTime { unit, .. } = plan {
        let divisor = if *unit == Unit::Micros { 1 } else { 1000 };
        return Some(Logical::Int(micros.div_euclid(divisor)));
    }
    matches!(plan, Plan::Timestamp { .. })
        .then(|| Logical::Zoned(Moment::from_micros(micros), None))
}

#[cfg(test)]
mod tests {
    use super::super::digest::{Algorithm, HashedForm};
    use super::super::tests::column;
    use super::super::{ColumnConverter, ConversionOptions};
    use super::*;

    fn text(type_name: &str, length: Option<i32>) -> Column {
        Column { length, jdbc_type: JdbcType::VARCHAR, ..column(type_name) }
    }

    fn print(column: &Column, settings: &ColumnSettings, value: Value<'_>) -> [String; 2] {
        let mut warnings = Vec::new();
        let options = ConversionOptions::default();
        let converter =
            ColumnConverter::with_settings(0, column, &options, settings, &mut warnings);
        let (mut json, mut schema) = (Vec::new(), Vec::new());
        converter.write_json(&value, Origin::Stream, &mut json).unwrap();
        converter.schema().write("c", &mut schema);
        [json, schema].map(|text| String::from_utf8(text).unwrap())
    }

    fn ruled(rule: ColumnRule) -> ColumnSettings {
        ColumnSettings { rule: Some(rule), converter: None }
    }

    /// Rows F09 to F14, observed on Debezium 3.6.3.Final.
    #[test]
    fn text_is_masked_cut_and_hashed() {
        let of = |rule: ColumnRule, column: &Column, value: Value<'_>| {
            let [json, schema] = print(column, &ruled(rule), value);
            (json, schema.split_once("\"parameters\":").map(|(_, rest)| rest.to_owned()))
        };
        let masked = || Some(r#"{"masked":"true"},"field":"c"}"#.to_owned());
        let name = text("VARCHAR", Some(20));
        let int = Column { jdbc_type: JdbcType::INTEGER, ..column("INT") };
        for (count, value, json) in [
            (5, Value::Bytes(b"alice"), "\"*****\""),
            (5, Value::Null, "\"*****\""),
            (0, Value::Bytes(b"alice"), "\"\""),
        ] {
            assert_eq!(of(ColumnRule::Mask(count), &name, value), (json.to_owned(), masked()));
        }
        assert_eq!(of(ColumnRule::Mask(5), &int, Value::Int32(7)), ("7".to_owned(), masked()));

        let cut = |most: &str| Some(format!(r#"{{"truncateLength":"{most}"}},"field":"c"}}"#));
        let short = text("CHAR", Some(3));
        let binary = Column { jdbc_type: JdbcType::VARBINARY, ..column("VARBINARY") };
        for (column, value, json, parameters) in [
            (&name, Value::Bytes(b"alice"), "\"alic\"", cut("4")),
            (&name, Value::Bytes("ab😀c".as_bytes()), "\"ab😀\"", cut("4")),
            (&name, Value::Bytes("abc😀".as_bytes()), "\"abc\"", cut("4")),
            (&name, Value::Null, "null", cut("4")),
            (&short, Value::Bytes(b"abc"), "\"abc\"", None),
            (&binary, Value::Bytes(&[1, 2, 3, 4, 5]), "\"AQIDBA==\"", cut("4")),
        ] {
            assert_eq!(of(ColumnRule::Truncate(4), column, value), (json.to_owned(), parameters));
        }
        let bits = Column { length: Some(40), ..column("BIT") };
        let [json, _] = print(&bits, &ruled(ColumnRule::Truncate(1)), Value::Bit(&[1, 2, 3, 4, 5]));
        assert_eq!(json, "\"BQQDAgE=\"");

        let hash = |algorithm, salt: &str, form| {
            ColumnRule::Hash(Hash { algorithm, salt: salt.to_owned(), form })
        };
        let v1 = hash(Algorithm::Sha256, "CzQMA0cB5K", HashedForm::Serialised);
        let ten = text("VARCHAR", Some(10));
        for (value, json) in [("d", "156838feb3"), ("", "7b061bc77c"), ("n", "69fc6935a1")] {
            let hashed = of(v1.clone(), &ten, Value::Bytes(value.as_bytes()));
            assert_eq!(hashed, (format!("\"{json}\""), masked()));
        }
        let v2 = hash(Algorithm::Sha256, "abc", HashedForm::Plain);
        let hashed = of(v2.clone(), &text("TEXT", None), Value::Bytes(b"t")).0;
        assert_eq!(hashed, "\"25c947cc2f461fb71e137d876f4725bc4ab17cfb1363e93c9c97743d54e78f19\"");
        assert_eq!(of(v2, &text("TEXT", None), Value::Null), ("null".to_owned(), masked()));
        let md5 = hash(Algorithm::Md5, "abc", HashedForm::Serialised);
        assert_eq!(of(md5, &name, Value::Bytes(b"alice")).0, "\"213adcbbbfd7237a4894\"");
    }

    /// The example of BIT(9), observed on Debezium 3.6.3.Final.
    #[test]
    fn the_source_type_follows_the_parameters_of_the_type() {
        let bits = Column { name: "b9".to_owned(), length: Some(9), ..column("BIT") };
        let [json, schema] = print(&bits, &ruled(ColumnRule::SourceType), Value::Bit(&[1, 2]));
        assert_eq!(json, "\"AgE=\"");
        let expected = concat!(
            r#""parameters":{"length":"9","__debezium.source.column.type":"BIT","#,
            r#""__debezium.source.column.length":"9","__debezium.source.column.name":"b9"},"field":"c"}"#
        );
        assert!(schema.ends_with(expected), "{schema}");
    }

    #[test]
    fn converters_take_the_place_of_the_type() {
        let cast = |column: &Column, cast, value: Value<'_>| {
            print(column, &ColumnSettings { rule: None, converter: Some(cast) }, value)
        };
        let tiny = Column {
            default: holdfast_history::schema::DefaultValue::Expression("1".to_owned()),
            ..column("TINYINT")
        };
        let schema = r#"{"type":"boolean","optional":true,"default":true,"field":"c"}"#;
        for (value, json) in [(1, "true"), (2, "true"), (0, "false"), (128, "false")] {
            assert_eq!(cast(&tiny, ColumnCast::Truth, Value::Int8(value)), [json, schema]);
        }
        assert_eq!(cast(&tiny, ColumnCast::Truth, Value::Null), ["true", schema]);
        let flag = cast(&column("BOOLEAN"), ColumnCast::Flag, Value::Int8(1));
        assert_eq!(flag, ["1", r#"{"type":"int16","optional":true,"field":"c"}"#]);
        let real = Column { jdbc_type: JdbcType::REAL, ..column("REAL") };
        let double = cast(&real, ColumnCast::Double, Value::Double(123_456.789));
        assert_eq!(double, ["123456.789", r#"{"type":"double","optional":true,"field":"c"}"#]);
        let latin = Column { charset: Some("latin1".to_owned()), ..text("VARCHAR", Some(9)) };
        let [json, schema] = cast(&latin, ColumnCast::Text, Value::Bytes(b"caf\xe9"));
        assert_eq!(json, "\"café\"");
        let named = r#""parameters":{"__debezium.source.column.character_set":"latin1"}"#;
        assert!(schema.contains(named), "{schema}");
    }

    #[test]
    fn a_zero_date_has_what_is_to_stand_for_it() {
        use holdfast_binlog::value::Date;
        let cast = |column: &Column, fallback, value: Value<'_>| {
            let converter = Some(ColumnCast::ZeroDate(fallback));
            print(column, &ColumnSettings { rule: None, converter }, value)
        };
        let zero = Value::Date(Date { year: 0, month: 0, day: 0 });
        let required = Column {
            optional: false,
            default: holdfast_history::schema::DefaultValue::Expression("0000-00-00".to_owned()),
            ..column("DATE")
        };
        let (name, field) = (r#""name":"io.debezium.time.Date","version":1"#, r#""field":"c"}"#);
        let optional = format!(r#"{{"type":"int32","optional":true,{name},{field}"#);
        assert_eq!(cast(&required, None, zero), ["null", &optional]);
        let schema = format!(r#"{{"type":"int32","optional":false,{name},"default":31,{field}"#);
        assert_eq!(cast(&required, Some(31 * 86_400_000_000), zero), ["31", &schema]);
        let stamp = Column { length: Some(6), ..column("TIMESTAMP") };
        let [json, _] = cast(&stamp, Some(-1_000), Value::Null);
        assert_eq!(json, "\"1969-12-31T23:59:59.999Z\"");
        // Years below 100 stay, and a fraction has as many digits as it needs.
        let [json, _] = cast(&required, None, Value::Date(Date { year: 70, month: 1, day: 1 }));
        assert_eq!(json, "-693960");
    }
}
