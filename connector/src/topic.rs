//! Topic names, and the names of schemas and fields where Avro limits them.
//!
//! ```text
//! srv.gold.t1                data: prefix, delimiter, database, delimiter, table
//! srv                        schema changes: the prefix
//! srv.transaction            transaction metadata
//! __debezium-heartbeat.srv   heartbeats
//! ```
//!
//! Source: Debezium 3.6.3.Final, `io.debezium.schema.*TopicNamingStrategy`, `SchemaNameAdjuster`; names observed on it.

use holdfast_history::TableId;

use crate::filter::{JavaRegex, TooComplex};

/// Longest topic name, in UTF-16 units: Kafka's limit.
const MAX_TOPIC_LENGTH: usize = 249;

/// `topic.naming.strategy`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TopicStrategy {
    /// `DefaultTopicNamingStrategy`: prefix, database, table.
    #[default]
    Default,
    /// `DefaultUnicodeTopicNamingStrategy`: the same, other characters written as `_uXXXX`.
    DefaultUnicode,
    /// `SchemaTopicNamingStrategy`: prefix, table; tables of the same name in two databases share a topic.
    Schema,
    /// `SchemaUnicodeTopicNamingStrategy`.
    SchemaUnicode,
    /// `DefaultRegexTopicNamingStrategy`: the default name, rewritten.
    Regex(Box<TopicRegex>),
}

/// The settings of `DefaultRegexTopicNamingStrategy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRegex {
    /// `topic.regex`: must match the whole default name, minding case.
    pub regex: JavaRegex,
    /// `topic.replacement`: `$1` and so on are groups.
    pub replacement: String,
    /// The field that keeps keys of merged tables apart (`topic.key.enforce.uniqueness`); `None` when turned off.
    pub key_field: Option<TopicKeyField>,
}

/// A field that is added to keys and says which topic the record would have had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicKeyField {
    /// `topic.key.field.name`.
    pub name: String,
    /// `topic.key.field.regex` and `topic.key.field.replacement`, on the default topic name.
    pub rewrite: Option<(JavaRegex, String)>,
}

/// All topic names of one connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicNaming {
    prefix: String,
    delimiter: String,
    strategy: TopicStrategy,
    transaction: String,
    heartbeat: String,
}

/// Where the records of a table go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataTopic {
    /// The topic; the names of key, value and envelope schemas begin with it.
    pub name: String,
    /// The name before characters were replaced, where that changed it: worth a warning, once per table.
    pub replaced: Option<String>,
    /// A string field to append to the key: name and value.
    pub key_field: Option<(String, String)>,
}

impl TopicNaming {
    /// The names under `prefix`, with the defaults of all other settings.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self::with(prefix, ".", TopicStrategy::Default, "transaction", "__debezium-heartbeat", None)
    }

    /// The names under `prefix` (`topic.prefix`), parts joined by `delimiter` (`topic.delimiter`), with `transaction`
    /// (`topic.transaction`) after the prefix and `heartbeat_prefix` (`topic.heartbeat.prefix`) before it, unless
    /// `heartbeat_name` (`topic.heartbeat.name`) is the full name.
    #[must_use]
    pub fn with(
        prefix: impl Into<String>,
        delimiter: &str,
        strategy: TopicStrategy,
        transaction: &str,
        heartbeat_prefix: &str,
        heartbeat_name: Option<&str>,
    ) -> Self {
        let prefix = prefix.into();
        let heartbeat = heartbeat_name
            .map_or_else(|| format!("{heartbeat_prefix}{delimiter}{prefix}"), ToOwned::to_owned);
        Self {
            transaction: format!("{prefix}{delimiter}{transaction}"),
            delimiter: delimiter.to_owned(),
            prefix,
            strategy,
            heartbeat,
        }
    }

    /// The topic of schema changes: the prefix itself.
    #[must_use]
    pub fn schema_changes(&self) -> &str {
        &self.prefix
    }

    /// The topic of BEGIN and END records.
    #[must_use]
    pub fn transactions(&self) -> &str {
        &self.transaction
    }

    /// The topic of heartbeats.
    #[must_use]
    pub fn heartbeats(&self) -> &str {
        &self.heartbeat
    }

    /// The topic of a table's records. Callers keep it per table.
    ///
    /// # Errors
    ///
    /// [`TooComplex`] when a pattern of the regex strategy gives up on the name.
    pub fn data(&self, table: &TableId) -> Result<DataTopic, TooComplex> {
        let delimiter = &self.delimiter;
        let raw = match self.strategy {
            TopicStrategy::Default | TopicStrategy::DefaultUnicode | TopicStrategy::Regex(_) => {
                format!("{}{delimiter}{}{delimiter}{}", self.prefix, table.database, table.table)
            }
            TopicStrategy::Schema | TopicStrategy::SchemaUnicode => {
                format!("{}{delimiter}{}", self.prefix, table.table)
            }
        };
        let unicode =
            matches!(self.strategy, TopicStrategy::DefaultUnicode | TopicStrategy::SchemaUnicode);
        let mut name = sanitise(&raw, unicode);
        let mut key_field = None;
        if let TopicStrategy::Regex(rules) = &self.strategy {
            if let Some(field) = &rules.key_field {
                let value = match &field.rewrite {
                    Some((regex, replacement)) => regex.replace_whole(&name, replacement)?,
                    None => None,
                };
                key_field = Some((field.name.clone(), value.unwrap_or_else(|| name.clone())));
            }
            if let Some(routed) = rules
                .regex
                .replace_whole(&name, &rules.replacement)?
                .filter(|name| !name.is_empty())
            {
                name = sanitise(&routed, false);
            }
        }
        let replaced =
            (name != raw && !matches!(self.strategy, TopicStrategy::Regex(_))).then_some(raw);
        Ok(DataTopic { name, replaced, key_field })
    }
}

/// Makes a legal topic name: other characters become `_` (or `_uXXXX`, where `_` itself is one of them), it is cut at
/// 249 UTF-16 units, and the names `.` and `..` are replaced.
#[must_use]
pub fn sanitise(raw: &str, unicode: bool) -> String {
    let mut name = String::with_capacity(raw.len());
    for unit in raw.encode_utf16() {
        match u8::try_from(unit) {
            Ok(c)
                if c.is_ascii_alphanumeric()
                    || c == b'.'
                    || c == b'-'
                    || (c == b'_' && !unicode) =>
            {
                name.push(char::from(c));
            }
            Ok(_) | Err(_) => push_replacement(&mut name, unit, unicode),
        }
    }
    // The name is ASCII by now, so that bytes are UTF-16 units.
    name.truncate(MAX_TOPIC_LENGTH);
    match name.as_str() {
        "." => "_".to_owned(),
        ".." => "__".to_owned(),
        _ => name,
    }
}

/// `schema.name.adjustment.mode` and `field.name.adjustment.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameAdjustment {
    /// `none`: names stay as they are.
    #[default]
    None,
    /// `avro`: what Avro forbids becomes `_`; a leading digit is kept after it.
    Avro,
    /// `avro_unicode`: what Avro forbids, and `_` itself, becomes `_uXXXX`.
    AvroUnicode,
}

impl NameAdjustment {
    /// Adjusts the name of a schema, in which dots separate parts.
    #[must_use]
    pub fn schema(self, name: &str) -> String {
        self.adjust(name, true)
    }

    /// Adjusts the name of a field, in which a dot is like any other character.
    #[must_use]
    pub fn field(self, name: &str) -> String {
        self.adjust(name, false)
    }

    fn adjust(self, name: &str, dots: bool) -> String {
        let unicode = match self {
            Self::None => return name.to_owned(),
            Self::Avro => false,
            Self::AvroUnicode => true,
        };
        let mut adjusted = String::with_capacity(name.len() + 8);
        for (index, unit) in name.encode_utf16().enumerate() {
            let legal = u8::try_from(unit).ok().filter(|&c| {
                c.is_ascii_alphabetic()
                    || (c == b'_' && !unicode)
                    || (index > 0 && (c.is_ascii_digit() || (c == b'.' && dots)))
            });
            match legal {
                Some(c) => adjusted.push(char::from(c)),
                None => {
                    push_replacement(&mut adjusted, unit, unicode);
                    // Only a leading digit gets here; avro keeps it.
                    if let (Ok(c), false) = (u8::try_from(unit), unicode)
                        && c.is_ascii_digit()
                    {
                        adjusted.push(char::from(c));
                    }
                }
            }
        }
        adjusted
    }
}

fn push_replacement(name: &mut String, unit: u16, unicode: bool) {
    if unicode {
        name.push_str(&format!("_u{unit:04x}"));
    } else {
        name.push('_');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(naming: &TopicNaming, table: &str) -> String {
        naming.data(&TableId::new("gold", table)).unwrap().name
    }

    fn strategy(strategy: TopicStrategy) -> TopicNaming {
        TopicNaming::with("srv", ".", strategy, "transaction", "__debezium-heartbeat", None)
    }

    fn regex(pattern: &str, replacement: &str, key_field: TopicKeyField) -> TopicNaming {
        strategy(TopicStrategy::Regex(Box::new(TopicRegex {
            regex: JavaRegex::case_sensitive(pattern).unwrap(),
            replacement: replacement.to_owned(),
            key_field: Some(key_field),
        })))
    }

    /// Rows F18 to F20 and F25, observed on Debezium 3.6.3.Final.
    #[test]
    fn names_are_those_of_debezium() {
        let naming = TopicNaming::new("srv");
        assert_eq!(data(&naming, "t1"), "srv.gold.t1");
        assert_eq!(naming.schema_changes(), "srv");
        assert_eq!(naming.transactions(), "srv.transaction");
        assert_eq!(naming.heartbeats(), "__debezium-heartbeat.srv");
        let odd = naming.data(&TableId::new("gold", "t odd-Name$é")).unwrap();
        assert_eq!(odd.name, "srv.gold.t_odd-Name__");
        assert_eq!(odd.replaced.as_deref(), Some("srv.gold.t odd-Name$é"));

        let naming = TopicNaming::with("srv", "_", TopicStrategy::Default, "tx", "hb", None);
        assert_eq!(data(&naming, "t1"), "srv_gold_t1");
        assert_eq!((naming.transactions(), naming.heartbeats()), ("srv_tx", "hb_srv"));

        assert_eq!(data(&strategy(TopicStrategy::Schema), "t1"), "srv.t1");
        assert_eq!(data(&strategy(TopicStrategy::SchemaUnicode), "t-3.x"), "srv.t-3.x");
        assert_eq!(data(&strategy(TopicStrategy::DefaultUnicode), "é_"), "srv.gold._u00e9_u005f");
        let named =
            TopicNaming::with("srv", ".", TopicStrategy::Default, "tx", "hb", Some("beats"));
        assert_eq!(named.heartbeats(), "beats");
    }

    /// Rows F21 and F22.
    #[test]
    fn the_regex_strategy_routes_and_keeps_keys_apart() {
        let field =
            TopicKeyField { name: "__dbz__physicalTableIdentifier".to_owned(), rewrite: None };
        let naming = regex("(.*)gold(.*)", "$1all_shards$2", field);
        let topic = naming.data(&TableId::new("gold", "t1")).unwrap();
        assert_eq!(topic.name, "srv.all_shards.t1");
        assert_eq!(
            topic.key_field,
            Some(("__dbz__physicalTableIdentifier".to_owned(), "srv.gold.t1".to_owned()))
        );

        let rewrite = Some((JavaRegex::case_sensitive("(.*)gold.(.*)").unwrap(), "$2".to_owned()));
        let naming =
            regex("(.*)t(.*)", "$1merged", TopicKeyField { name: "shard".to_owned(), rewrite });
        for (table, name, shard) in [
            ("t1", "srv.gold.merged", "t1"),
            ("t-3.x", "srv.gold.merged", "t-3.x"),
            ("T2", "srv.gold.T2", "T2"),
        ] {
            let topic = naming.data(&TableId::new("gold", table)).unwrap();
            assert_eq!(topic.name, name);
            assert_eq!(topic.key_field, Some(("shard".to_owned(), shard.to_owned())));
        }
    }

    #[test]
    fn topic_names_are_cut_and_never_dots() {
        assert_eq!(sanitise(&"x".repeat(300), false).len(), 249);
        assert_eq!(
            (sanitise(".", false), sanitise("..", false)),
            ("_".to_owned(), "__".to_owned())
        );
        assert_eq!(sanitise("😀", false), "__");
    }

    /// Rows F16 and F17.
    #[test]
    fn names_are_adjusted_for_avro() {
        let cases = [
            ("a-b", "a_b", "a_u002db"),
            ("1c", "_1c", "_u0031c"),
            ("é", "_", "_u00e9"),
            ("d.e", "d_e", "d_u002ee"),
            ("f g", "f_g", "f_u0020g"),
            ("g_h", "g_h", "g_u005fh"),
        ];
        for (name, avro, unicode) in cases {
            assert_eq!(NameAdjustment::Avro.field(name), avro);
            assert_eq!(NameAdjustment::AvroUnicode.field(name), unicode);
            assert_eq!(NameAdjustment::None.field(name), name);
        }
        assert_eq!(NameAdjustment::Avro.schema("srv.gold.t-3.x.Value"), "srv.gold.t_3.x.Value");
        assert_eq!(
            NameAdjustment::AvroUnicode.schema("srv.gold.t-3.x.Value"),
            "srv.gold.t_u002d3.x.Value"
        );
    }
}
