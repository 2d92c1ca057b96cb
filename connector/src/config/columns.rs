//! What is set for single columns: `column.mask.*`, `column.truncate.*`, `*.propagate.source.type`, `converters`.
//!
//! Source: Debezium 3.6.3.Final, `io.debezium.relational.mapping.ColumnMappers`, `io.debezium.relational.CustomConverterRegistry`.

use std::collections::BTreeMap;

use holdfast_history::TableId;
use holdfast_history::schema::{Column, ColumnType, JdbcType};

use super::{Checked, known};
use crate::convert::{
    ALGORITHMS, Algorithm, ColumnCast, ColumnRule, ColumnSettings, Hash, HashedForm, Moment,
    parse_datetime,
};
use crate::filter::{RegexList, split_list};

/// What is set for single columns, over all tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnRules {
    /// In the order in which they count: the first that names a column is its rule.
    rules: Vec<ScopedRule>,
    /// The first that wants a column has it.
    converters: Vec<Converter>,
}

/// A rule, and the columns it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScopedRule {
    scope: Scope,
    names: RegexList,
    rule: ColumnRule,
}

/// What the names of a rule are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// `database.table.column`.
    Column,
    /// `database.table.TYPE`.
    DataType,
}

/// A converter of Debezium's own.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Converter {
    TinyIntOneToBoolean { selector: Option<RegexList>, checks_length: bool },
    JdbcSink { boolean: RegexList, real: RegexList, string: RegexList, real_as_double: bool },
    ZeroDate(Box<ZeroDates>),
}

/// The settings of `ZeroDateFallbackConverter`. What stands for a zero is in microseconds since the epoch, or null.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ZeroDates {
    selector: Option<RegexList>,
    date: Option<Option<i64>>,
    datetime: Option<Option<i64>>,
    timestamp: Option<Option<i64>>,
    /// By `database.table.column`, as written.
    columns: BTreeMap<String, String>,
}

impl ColumnRules {
    /// Whether nothing is set for any column.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.converters.is_empty()
    }

    /// What is set for a column; none where nothing is.
    pub(crate) fn of(&self, table: &TableId, column: &Column) -> Option<ColumnSettings> {
        if self.is_empty() {
            return None;
        }
        let name = format!("{table}.{}", column.name);
        let data_type = format!("{table}.{}", column.type_name);
        let rule = self.rules.iter().find(|rule| {
            rule.names.matches(match rule.scope {
                Scope::Column => &name,
                Scope::DataType => &data_type,
            })
        });
        let converter = self.converters.iter().find_map(|converter| converter.of(&name, column));
        let settings = ColumnSettings { rule: rule.map(|rule| rule.rule.clone()), converter };
        (settings != ColumnSettings::default()).then_some(settings)
    }
}

impl Converter {
    /// What it makes of a column, if it is one of its.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a converter is for a few types")]
    fn of(&self, name: &str, column: &Column) -> Option<ColumnCast> {
        match self {
            Self::TinyIntOneToBoolean { selector, checks_length } => {
                let is_tiny = ["TINYINT", "TINYINT UNSIGNED"]
                    .iter()
                    .any(|tiny| column.type_name.eq_ignore_ascii_case(tiny));
                let has_length = !checks_length || column.length == Some(1);
                (is_tiny && has_length && selects(selector.as_ref(), name))
                    .then_some(ColumnCast::Truth)
            }
            Self::JdbcSink { boolean, real, string, real_as_double } => {
                if boolean.matches(name) {
                    Some(ColumnCast::Flag)
                } else if real.matches(name) {
                    Some(if *real_as_double { ColumnCast::Double } else { ColumnCast::Float })
                } else {
                    string.matches(name).then_some(ColumnCast::Text)
                }
            }
            Self::ZeroDate(zero) => {
                let is = |type_name: &str| column.type_name.eq_ignore_ascii_case(type_name);
                let fallback = match column.column_type() {
                    _ if column.is_hidden() || !selects(zero.selector.as_ref(), name) => None,
                    ColumnType::Date => zero.date,
                    ColumnType::DateTime if is("DATETIME") => zero.datetime,
                    ColumnType::Timestamp
                        if is("TIMESTAMP")
                            || column.jdbc_type == JdbcType::TIMESTAMP_WITH_TIMEZONE =>
                    {
                        zero.timestamp
                    }
                    _ => None,
                }?;
                let own = zero.columns.get(name).map(|text| {
                    Fallback::of(column.column_type())
                        .and_then(|kind| kind.parse(text).ok().flatten())
                });
                Some(ColumnCast::ZeroDate(own.unwrap_or(fallback)))
            }
        }
    }
}

fn selects(selector: Option<&RegexList>, name: &str) -> bool {
    selector.is_none_or(|selector| selector.matches(name))
}

/// How a fallback is written.
#[derive(Debug, Clone, Copy)]
enum Fallback {
    Date,
    DateTime,
    Timestamp,
}

impl Fallback {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other types have no zero date")]
    fn of(column_type: ColumnType) -> Option<Self> {
        match column_type {
            ColumnType::Date => Some(Self::Date),
            ColumnType::DateTime => Some(Self::DateTime),
            ColumnType::Timestamp => Some(Self::Timestamp),
            _ => None,
        }
    }

    const fn form(self) -> &'static str {
        match self {
            Self::Date => "a date 'yyyy-MM-dd'",
            Self::DateTime => "a time 'yyyy-MM-dd HH:mm:ss'",
            Self::Timestamp => "a time with its offset, such as '1970-01-01T00:00:00Z',",
        }
    }

    /// Microseconds since the epoch; none for `NULL` or nothing.
    fn parse(self, text: &str) -> Result<Option<i64>, String> {
        let text = text.trim();
        if text.is_empty() || text.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        let moment = match self {
            Self::Date => moment(text).filter(|_| text.len() == 10),
            Self::DateTime => moment(text).filter(|_| text.len() == 19 && text.contains(' ')),
            Self::Timestamp => with_offset(text),
        };
        moment.map(Some).ok_or_else(|| format!("{} or NULL is expected", self.form()))
    }
}

fn moment(text: &str) -> Option<i64> {
    let ((year, month, day), micros) = parse_datetime(text)?;
    Some(Moment::at(year, month, day, micros)?.micros_since_epoch())
}

/// `yyyy-MM-ddTHH:mm[:ss[.f]]` and `Z` or `+HH:mm`.
fn with_offset(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once('T')?;
    if let Some(clock) = clock.strip_suffix('Z') {
        return moment(&format!("{date} {clock}"));
    }
    let at = clock.rfind(['+', '-'])?;
    let (clock, offset) = clock.split_at_checked(at)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':').unwrap_or((offset.get(1..)?, "0"));
    let minutes = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    let ahead = if offset.starts_with('-') { -minutes } else { minutes };
    (minutes <= 18 * 60).then_some(())?;
    Some(moment(&format!("{date} {clock}"))? - ahead * 60_000_000)
}

/// The classes of converters there are; MySQL's have two names.
const CONVERTERS: [&str; 3] =
    ["TinyIntOneToBooleanConverter", "JdbcSinkDataTypesConverter", "ZeroDateFallbackConverter"];
/// The options of each of [`CONVERTERS`], beside `type`.
const OPTIONS: [&[&str]; 3] = [
    &["selector", "length.checker"],
    &["selector.boolean", "selector.real", "selector.string", "treat.real.as.double"],
    &["target.types", "fallback.date", "fallback.datetime", "fallback.timestamp", "selector"],
];

impl Checked<'_> {
    pub(super) fn column_rules(&mut self) -> ColumnRules {
        let mut rules = Vec::new();
        let mut families: [Vec<ScopedRule>; 6] = Default::default();
        let properties = self.properties;
        for property in properties.iter() {
            let Some((family, rule)) = self.column_rule(&property.key) else { continue };
            let scope = if family == 3 { Scope::DataType } else { Scope::Column };
            let names = RegexList::parse(&property.value).unwrap_or_default();
            if let Some(rules) = families.get_mut(family)
                && !names.is_empty()
            {
                rules.push(ScopedRule { scope, names, rule });
            }
        }
        for family in families {
            rules.extend(family);
        }
        let converters = self.converters();
        ColumnRules { rules, converters }
    }

    /// The rule that a property is, and its family: families count in this order, whatever the order of the file.
    fn column_rule(&mut self, key: &str) -> Option<(usize, ColumnRule)> {
        let count = |text: &str| {
            Some(text).filter(|text| text.bytes().all(|c| c.is_ascii_digit()))?.parse::<u32>().ok()
        };
        let counted = |prefix: &str| key.strip_prefix(prefix)?.strip_suffix(".chars");
        for (family, text) in
            [counted("column.truncate.to."), counted("column.mask.with.")].into_iter().enumerate()
        {
            let Some(text) = text else { continue };
            let Some(count) = count(text).and_then(|count| usize::try_from(count).ok()) else {
                self.invalid(key, format!("a number is expected in its name, not '{text}'"));
                return None;
            };
            return Some(match family {
                0 => (0, ColumnRule::Truncate(count)),
                _ => (1, ColumnRule::Mask(count)),
            });
        }
        match key {
            "column.propagate.source.type" => return Some((2, ColumnRule::SourceType)),
            "datatype.propagate.source.type" => return Some((3, ColumnRule::SourceType)),
            _ => {}
        }
        let rest = key.strip_prefix("column.mask.hash.")?;
        let (family, form, rest) = match rest.strip_prefix("v2.") {
            Some(rest) => (5, HashedForm::Plain, rest),
            None => (4, HashedForm::Serialised, rest),
        };
        let (name, salt) = rest.split_once(".with.salt.")?;
        let Some(algorithm) = Algorithm::named(name) else {
            let names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
            self.invalid(
                key,
                format!("{name} MessageDigest not available; there are {}", names.join(", ")),
            );
            return None;
        };
        Some((family, ColumnRule::Hash(Hash { algorithm, salt: salt.to_owned(), form })))
    }

    /// Whether a property is an option of one of the converters that the file names.
    pub(super) fn is_converter_option(&self, name: &str) -> bool {
        split_list(self.text("converters")).iter().any(|converter| {
            name.strip_prefix(converter.as_str()).is_some_and(|rest| rest.starts_with('.'))
        })
    }

    fn converters(&mut self) -> Vec<Converter> {
        let names = split_list(self.text("converters"));
        names.iter().filter_map(|name| self.converter(name)).collect()
    }

    fn converter(&mut self, name: &str) -> Option<Converter> {
        let properties = self.properties;
        let type_key = format!("{name}.type");
        let Some(class) = properties.get(&type_key).map(str::trim) else {
            self.invalid(&type_key, super::check::REQUIRED);
            return None;
        };
        let simple = class
            .strip_prefix("io.debezium.connector.binlog.converters.")
            .or_else(|| class.strip_prefix("io.debezium.connector.mysql.converters."));
        let Some(kind) =
            simple.and_then(|simple| CONVERTERS.iter().position(|known| *known == simple))
        else {
            let there = CONVERTERS.join(", ");
            self.unsupported(
                &type_key,
                format!("Java classes cannot be loaded; of io.debezium.connector.binlog.converters there are {there}"),
            );
            return None;
        };
        let options = OPTIONS.get(kind).copied().unwrap_or_default();
        let mut columns = BTreeMap::new();
        for property in properties.iter() {
            let Some(option) =
                property.key.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'))
            else {
                continue;
            };
            let column =
                option.strip_prefix("column.").and_then(|rest| rest.strip_suffix(".fallback"));
            match column.filter(|_| kind == 2) {
                Some(column) => {
                    let kinds = [Fallback::Date, Fallback::DateTime, Fallback::Timestamp];
                    if kinds.iter().all(|kind| kind.parse(&property.value).is_err()) {
                        let message = "a date, a time as its type is written, or NULL is expected";
                        self.invalid(&property.key, message);
                    }
                    columns.insert(column.to_owned(), property.value.clone());
                }
                None if option == "type" || options.contains(&option) => {}
                None => {
                    let nearest = known::nearest_of(option, options);
                    self.errors.push(super::ConfigError::Unknown {
                        property: property.key.clone(),
                        line: property.line,
                        hint: Some(format!("did you mean '{name}.{nearest}'?")),
                    });
                }
            }
        }
        Some(match kind {
            0 => Converter::TinyIntOneToBoolean {
                selector: self.selector(name, "selector"),
                checks_length: self.option_bool(name, "length.checker"),
            },
            1 => Converter::JdbcSink {
                boolean: self.selector(name, "selector.boolean").unwrap_or_default(),
                real: self.selector(name, "selector.real").unwrap_or_default(),
                string: self.selector(name, "selector.string").unwrap_or_default(),
                real_as_double: self.option_bool(name, "treat.real.as.double"),
            },
            _ => {
                let targets = properties
                    .get(&format!("{name}.target.types"))
                    .unwrap_or("DATE,DATETIME,TIMESTAMP")
                    .to_ascii_uppercase();
                let mut fallback = |target: &str, option: &str, kind: Fallback| {
                    let is_target = targets.split(',').any(|listed| listed.trim() == target);
                    let key = format!("{name}.{option}");
                    let parsed = kind.parse(properties.get(&key).unwrap_or_default());
                    let value = parsed.unwrap_or_else(|message| {
                        self.invalid(&key, message);
                        None
                    });
                    is_target.then_some(value)
                };
                let date = fallback("DATE", "fallback.date", Fallback::Date);
                let datetime = fallback("DATETIME", "fallback.datetime", Fallback::DateTime);
                let timestamp = fallback("TIMESTAMP", "fallback.timestamp", Fallback::Timestamp);
                let selector = self.selector(name, "selector");
                Converter::ZeroDate(Box::new(ZeroDates {
                    selector,
                    date,
                    datetime,
                    timestamp,
                    columns,
                }))
            }
        })
    }

    /// The columns that an option names; none when it is not set.
    fn selector(&mut self, name: &str, option: &str) -> Option<RegexList> {
        let key = format!("{name}.{option}");
        let text = self.properties.get(&key)?;
        match RegexList::parse(text) {
            Ok(list) => Some(list).filter(|list| !list.is_empty()),
            Err(error) => {
                let expected = "A comma-separated list of valid regular expressions is expected";
                self.invalid(&key, format!("{expected}, but {error}"));
                None
            }
        }
    }

    /// As Java reads a truth value: whatever is not `true` is false. The default is true.
    fn option_bool(&self, name: &str, option: &str) -> bool {
        let value = self.properties.get(&format!("{name}.{option}"));
        value
            .filter(|value| !value.is_empty())
            .is_none_or(|value| value.eq_ignore_ascii_case("true"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::tests::outcome as config;
    use super::*;

    fn of(config: &Config, column: &Column) -> Option<ColumnSettings> {
        config.column_rules.of(&TableId::new("gold", "t1"), column)
    }

    #[test]
    fn the_first_rule_in_the_order_of_the_families_counts() {
        let config = config(&[
            ("column.mask.hash.v2.md5.with.salt.a.b", "gold\\.t1\\..*"),
            ("column.mask.hash.SHA-1.with.salt.x", "gold.t1.h"),
            ("datatype.propagate.source.type", "gold.t1.int"),
            ("column.mask.with.3.chars", "GOLD.T1.(a|b)"),
            ("column.truncate.to.7.chars", "gold.t1.a"),
        ])
        .unwrap();
        let rule = |name: &str| {
            of(&config, &Column::new(name, "VARCHAR", JdbcType::VARCHAR)).unwrap().rule.unwrap()
        };
        assert_eq!(rule("a"), ColumnRule::Truncate(7));
        assert_eq!(rule("b"), ColumnRule::Mask(3));
        let hash = |algorithm, salt: &str, form| {
            ColumnRule::Hash(Hash { algorithm, salt: salt.to_owned(), form })
        };
        assert_eq!(rule("h"), hash(Algorithm::Sha1, "x", HashedForm::Serialised));
        assert_eq!(rule("c"), hash(Algorithm::Md5, "a.b", HashedForm::Plain));
        let int = of(&config, &Column::new("c", "INT", JdbcType::INTEGER)).unwrap();
        assert_eq!(int.rule, Some(ColumnRule::SourceType));
        assert!(
            config
                .column_rules
                .of(&TableId::new("x", "t1"), &Column::new("a", "INT", JdbcType::INTEGER))
                .is_none()
        );
    }

    #[test]
    fn converters_are_known_by_their_classes() {
        let class = "io.debezium.connector.mysql.converters.TinyIntOneToBooleanConverter";
        let sink = "io.debezium.connector.binlog.converters.JdbcSinkDataTypesConverter";
        let zero = "io.debezium.connector.binlog.converters.ZeroDateFallbackConverter";
        let config = config(&[
            ("converters", "b, s,z"),
            ("b.type", class),
            ("b.selector", "gold.t1.b"),
            ("s.type", sink),
            ("s.selector.real", ".*\\.r"),
            ("s.treat.real.as.double", "false"),
            ("z.type", zero),
            ("z.target.types", "date, timestamp"),
            ("z.fallback.timestamp", "1970-01-01T02:00:00+02:00"),
            ("z.column.gold.t1.d.fallback", "1970-01-02"),
        ])
        .unwrap();
        let cast = |column: &Column| of(&config, column).and_then(|settings| settings.converter);
        let column = |name: &str, type_name: &str, length| Column {
            length,
            ..Column::new(name, type_name, JdbcType::OTHER)
        };
        assert_eq!(cast(&column("b", "TINYINT", Some(1))), Some(ColumnCast::Truth));
        assert_eq!(cast(&column("b", "TINYINT", Some(2))), None);
        assert_eq!(cast(&column("c", "TINYINT", Some(1))), None);
        assert_eq!(cast(&column("r", "REAL", None)), Some(ColumnCast::Float));
        let day = 86_400_000_000;
        assert_eq!(cast(&column("d", "DATE", None)), Some(ColumnCast::ZeroDate(Some(day))));
        assert_eq!(cast(&column("e", "DATE", None)), Some(ColumnCast::ZeroDate(None)));
        assert_eq!(cast(&column("t", "DATETIME", None)), None);
        assert_eq!(cast(&column("t", "TIMESTAMP", None)), Some(ColumnCast::ZeroDate(Some(0))));
    }

    #[test]
    fn what_is_wrong_with_rules_and_converters_is_said() {
        let zero = "io.debezium.connector.binlog.converters.ZeroDateFallbackConverter";
        for (properties, message) in [
            (
                &[("column.mask.with.x.chars", "a")][..],
                "The 'column.mask.with.x.chars' value is invalid: a number is expected in its name, not 'x'",
            ),
            (
                &[("column.mask.hash.CRC.with.salt.s", "a")],
                "CRC MessageDigest not available; there are MD2",
            ),
            (&[("converters", "z")], "The 'z.type' value is invalid: A value is required"),
            (&[("converters", "z"), ("z.type", "x.Y")], "Java classes cannot be loaded"),
            (
                &[("converters", "z"), ("z.type", zero), ("z.selectr", "a")],
                "unknown property 'z.selectr'; did you mean 'z.selector'?",
            ),
            (
                &[("converters", "z"), ("z.type", zero), ("z.fallback.date", "1.1.70")],
                "a date 'yyyy-MM-dd' or NULL is expected",
            ),
        ] {
            let error = config(properties).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
