//! Names of topics.

use super::{Checked, check};
use crate::filter::JavaRegex;
use crate::topic::{TopicKeyField, TopicNaming, TopicRegex, TopicStrategy};

impl Checked<'_> {
    pub(super) fn topics(&mut self, prefix: &str) -> TopicNaming {
        let class = self.text("topic.naming.strategy");
        let strategy = match class.strip_prefix("io.debezium.schema.") {
            Some("DefaultTopicNamingStrategy") => TopicStrategy::Default,
            Some("DefaultUnicodeTopicNamingStrategy") => TopicStrategy::DefaultUnicode,
            Some("SchemaTopicNamingStrategy") => TopicStrategy::Schema,
            Some("SchemaUnicodeTopicNamingStrategy") => TopicStrategy::SchemaUnicode,
            Some("DefaultRegexTopicNamingStrategy") => self.topic_regex(),
            Some(_) | None => {
                self.unsupported(
                    "topic.naming.strategy",
                    "Java classes cannot be loaded; there are Default, DefaultUnicode, Schema, SchemaUnicode and \
                     DefaultRegex TopicNamingStrategy of io.debezium.schema",
                );
                TopicStrategy::Default
            }
        };
        if !matches!(strategy, TopicStrategy::Regex(_))
            && self.properties.get("topic.regex").is_some()
        {
            self.note("topic.regex", "it counts with DefaultRegexTopicNamingStrategy only");
        }
        TopicNaming::with(
            prefix,
            self.text("topic.delimiter"),
            strategy,
            self.text("topic.transaction"),
            self.text("topic.heartbeat.prefix"),
            self.filled("topic.heartbeat.name"),
        )
    }

    fn topic_regex(&mut self) -> TopicStrategy {
        let compile =
            |name: &str| self.filled(name).and_then(|text| JavaRegex::case_sensitive(text).ok());
        let Some(regex) = compile("topic.regex") else {
            if self.filled("topic.regex").is_none() {
                self.invalid("topic.regex", check::REQUIRED);
            }
            return TopicStrategy::Default;
        };
        let rewrite = compile("topic.key.field.regex")
            .map(|regex| (regex, self.text("topic.key.field.replacement").to_owned()));
        let key_field = self
            .bool("topic.key.enforce.uniqueness")
            .then(|| TopicKeyField { name: self.text("topic.key.field.name").to_owned(), rewrite });
        TopicStrategy::Regex(Box::new(TopicRegex {
            regex,
            replacement: self.text("topic.replacement").to_owned(),
            key_field,
        }))
    }
}
