//! The properties while they are being checked: each alone, then those that depend on each other.

use std::str::FromStr;
use std::time::Duration;

use super::error::{ConfigError, Note};
use super::known::{self, Kind, Support};
use super::{Flavor, Properties, check};
use crate::filter::RegexList;

/// The properties while they are being checked.
pub(super) struct Checked<'a> {
    pub(super) properties: &'a Properties,
    pub(super) flavor: Flavor,
    pub(super) errors: Vec<ConfigError>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(properties: &'a Properties) -> Self {
        let mut checked =
            Self { properties, flavor: Flavor::MySql, errors: Vec::new(), notes: Vec::new() };
        match properties.get("connector.class").map(str::trim) {
            None | Some("io.debezium.connector.mysql.MySqlConnector") => {}
            Some("io.debezium.connector.mariadb.MariaDbConnector") => checked.flavor = Flavor::MariaDb,
            Some(other) => checked.unsupported(
                "connector.class",
                format!(
                    "there is no connector {other}; there are io.debezium.connector.mysql.MySqlConnector and \
                     io.debezium.connector.mariadb.MariaDbConnector"
                ),
            ),
        }
        checked
    }

    pub(super) fn invalid(&mut self, property: &str, message: impl Into<String>) {
        self.errors
            .push(ConfigError::Invalid { property: property.to_owned(), message: message.into() });
    }

    /// What is wrong anyway is not refused for a second reason.
    pub(super) fn unsupported(&mut self, property: &str, message: impl Into<String>) {
        if self.errors.iter().any(|error| error.property() == property) {
            return;
        }
        self.errors.push(ConfigError::Unsupported {
            property: property.to_owned(),
            message: message.into(),
        });
    }

    pub(super) fn note(&mut self, property: &str, text: impl Into<String>) {
        self.notes.push(Note { property: property.to_owned(), text: text.into() });
    }

    /// Each property alone: known, right, honoured.
    pub(super) fn check_properties(&mut self) {
        for required in ["topic.prefix", "database.hostname", "database.user", "database.server.id"]
        {
            if self.properties.get(required).is_none() {
                self.invalid(required, check::REQUIRED);
            }
        }
        for repeated in self.properties.repeated() {
            self.note(repeated, "the file names it more than once; the last value counts");
        }
        let properties = self.properties;
        for property in properties.iter() {
            let name = property.key.as_str();
            if self.is_converter_option(name) {
                continue;
            }
            let Some(key) = known::find(name) else {
                let hint = Some(hint(name));
                self.errors.push(ConfigError::Unknown {
                    property: name.to_owned(),
                    line: property.line,
                    hint,
                });
                continue;
            };
            let missing = property.value.is_empty() && REQUIRED_FILLED.contains(&name);
            let first = matches!(key.kind, Kind::Topic | Kind::Host | Kind::Text);
            if missing && first {
                self.invalid(name, check::REQUIRED);
            }
            for message in check::check(key.kind, name, &property.value, self.flavor) {
                self.invalid(name, message);
            }
            if missing && !first {
                self.invalid(name, check::REQUIRED);
            }
            let value = property.value.trim();
            match key.support {
                Support::Yes => {}
                Support::NoEffect(why) => {
                    if key
                        .default_for(self.flavor)
                        .is_none_or(|default| !default.eq_ignore_ascii_case(value))
                    {
                        self.note(name, format!("accepted without effect: {why}"));
                    }
                }
                Support::NotYet(harmless, why) => {
                    if !harmless.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                        self.unsupported(name, why);
                    }
                }
            }
        }
    }

    /// Properties that depend on each other.
    pub(super) fn check_pairs(&mut self) {
        let properties = self.properties;
        let set = |name: &str| properties.get(name).is_some();
        for what in ["database", "table", "column"] {
            let (include, exclude) =
                (format!("{what}.include.list"), format!("{what}.exclude.list"));
            if set(&include) && set(&exclude) {
                self.invalid(&exclude, format!("\"{include}\" is already specified"));
            }
        }
        if set("gtid.source.includes") && set("gtid.source.excludes") {
            self.invalid(
                "gtid.source.excludes",
                "Cannot specify GTID excludes when includes are provided.",
            );
        }
        if let (Some(queue), Some(batch)) =
            (self.number("max.queue.size"), self.number("max.batch.size"))
            && queue <= batch
        {
            self.invalid("max.queue.size", "Must be larger than the maximum batch size");
        }
        for (mode, custom) in [
            ("snapshot.mode", "snapshot.mode.custom.name"),
            ("snapshot.query.mode", "snapshot.query.mode.custom.name"),
        ] {
            let is_custom = self.text(mode).trim().eq_ignore_ascii_case("custom");
            if is_custom && properties.get(custom).is_none_or(|name| name.trim().is_empty()) {
                self.invalid(
                    custom,
                    format!("{custom} cannot be empty when {mode} 'custom' is defined"),
                );
            }
        }
        if self.text("snapshot.locking.mode").trim().eq_ignore_ascii_case("custom") {
            self.unsupported("snapshot.locking.mode", "custom locking is a Java class");
        }
        for (regex, replacement) in [
            ("topic.regex", "topic.replacement"),
            ("topic.key.field.regex", "topic.key.field.replacement"),
        ] {
            if set(regex) && self.text(replacement).is_empty() {
                self.invalid(
                    replacement,
                    format!("{replacement} must be non-empty if {regex} is set."),
                );
            }
        }
    }

    /// The value of a property, or its default, or nothing.
    pub(super) fn text(&self, name: &str) -> &'a str {
        debug_assert!(known::find(name).is_some(), "{name} is not in the table");
        match self.properties.get(name) {
            Some(value) => value,
            None => self.default_text(name),
        }
    }

    pub(super) fn default_text(&self, name: &str) -> &'static str {
        known::find(name).and_then(|key| key.default_for(self.flavor)).unwrap_or_default()
    }

    /// The value when the property is set and not empty.
    pub(super) fn filled(&self, name: &str) -> Option<&'a str> {
        Some(self.text(name)).filter(|value| !value.trim().is_empty())
    }

    /// A value that was checked before: when it is wrong, an error is noted already, and the default stands in for it.
    pub(super) fn parsed<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        parse(self.text(name)).or_else(|| parse(self.default_text(name)))
    }

    pub(super) fn bool(&self, name: &str) -> bool {
        self.parsed(name, check::parse_bool).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.text(name).parse().ok()
    }

    pub(super) fn integer<T: FromStr + Default>(&self, name: &str) -> T {
        self.parsed(name, |text| text.parse().ok()).unwrap_or_default()
    }

    pub(super) fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.integer(name))
    }

    pub(super) fn choice<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.parsed(name, |text| text.parse().ok()).unwrap_or(otherwise)
    }

    pub(super) fn list(&self, name: &str) -> RegexList {
        RegexList::parse(self.text(name)).unwrap_or_default()
    }
}

/// Required properties that must not be empty either.
const REQUIRED_FILLED: [&str; 4] =
    ["topic.prefix", "database.hostname", "database.user", "database.server.id"];

/// What to write instead of an unknown name.
fn hint(name: &str) -> String {
    if let Some(inner) =
        name.strip_prefix("debezium.source.").or_else(|| name.strip_prefix("debezium."))
    {
        return format!("the prefix is Debezium Server's; write '{inner}'");
    }
    if let Some(today) = known::renamed(name) {
        return format!("it is called '{today}' today");
    }
    match known::nearest(name) {
        (nearest, true) => format!("did you mean '{nearest}'?"),
        (nearest, false) => format!("the nearest known property is '{nearest}'"),
    }
}
