//! What is wrong with one value, in Debezium's words.
//!
//! Source: Debezium 3.6.3.Final, `Field` and `ConfigDefinition` validators; every message was seen on the running
//! connector. Where it checks twice and prints twice, it is printed once here.

use super::Flavor;
use super::known::{Kind, Range};
use crate::filter::{JavaRegex, KeyColumns, KeyColumnsError, RegexList};

/// `The '<property>' value is invalid: …` when it is missing.
pub(crate) const REQUIRED: &str = "A value is required";
const BOOL: &str = "Either 'true' or 'false' is expected";
const INT: &str = "An integer is expected";
const LONG: &str = "A long value is expected";
const CLASS: &str = "A Java class name is expected";
const MAP: &str =
    "A equivalent-separated map of valid key/value pairs is expected, for example: k1=v1,k2=v2";

/// The messages for `value`, in Debezium's order; none when it is right.
pub(crate) fn check(kind: Kind, property: &str, value: &str, flavor: Flavor) -> Vec<String> {
    let mut messages = Vec::new();
    match kind {
        Kind::Text | Kind::Secret | Kind::List => {}
        Kind::Topic if !is_topic_name(value) => messages.push(format!(
            "{value} has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"
        )),
        Kind::Host if !value.is_empty() && !is_topic_name(value) => messages.push(format!(
            "{value} has invalid format (only the underscore, hyphen, dot and alphanumeric characters are allowed)"
        )),
        Kind::Topic | Kind::Host => {}
        Kind::Bool => {
            if parse_bool(value).is_none() {
                messages.push(BOOL.to_owned());
            }
        }
        Kind::Int(range) => {
            let parsed = value.parse::<i32>().ok().map(i64::from);
            if parsed.is_none() {
                messages.push(INT.to_owned());
            }
            messages.extend(out_of_range(range, parsed, true));
        }
        Kind::Long(range) => {
            let parsed = value.parse::<i64>().ok();
            if parsed.is_none() {
                messages.push(LONG.to_owned());
            }
            messages.extend(out_of_range(range, parsed, false));
        }
        Kind::Choice(mysql, mariadb) => {
            let values = match flavor {
                Flavor::MySql => mysql,
                Flavor::MariaDb => mariadb.unwrap_or(mysql),
            };
            let value = value.trim();
            if property == "time.precision.mode" && value.eq_ignore_ascii_case("adaptive") {
                messages.push("The 'adaptive' time.precision.mode is no longer supported".to_owned());
            } else if !values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                if property == "snapshot.locking.mode" {
                    messages.push("Must be a valid snapshot.locking.mode value".to_owned());
                }
                messages.push(format!("Value must be one of {}", values.join(", ")));
            }
        }
        Kind::Regexes => {
            if let Err(error) = RegexList::parse(value) {
                messages.push(format!("A comma-separated list of valid regular expressions is expected, but {error}"));
            }
        }
        Kind::Regex => {
            if let Err(error) = JavaRegex::case_sensitive(value) {
                messages.push(format!("A regular expression is expected, but {error}"));
            }
        }
        Kind::Class => {
            if !is_class_name(value) {
                messages.push(CLASS.to_owned());
            }
        }
        Kind::Map => {
            let entries = value.split(',').filter(|entry| !entry.trim().is_empty());
            if entries.into_iter().any(|entry| entry.matches('=').count() != 1) {
                messages.push(MAP.to_owned());
            }
        }
        Kind::Operations => messages.extend(SkippedOperations::parse(value).err().map(ToOwned::to_owned)),
        Kind::KeyColumns => {
            if value.trim().is_empty() {
                messages.push("Must not be empty".to_owned());
            }
            match KeyColumns::parse(value) {
                Ok(_) => {}
                Err(error @ (KeyColumnsError::Format(_) | KeyColumnsError::Pattern(_))) => {
                    messages.push(error.to_string());
                }
            }
        }
    }
    messages
}

fn out_of_range(range: Range, value: Option<i64>, int: bool) -> Option<String> {
    let at_least = |low: i64| value.is_some_and(|value| value >= low);
    let (right, message) = match range {
        Range::Any => (true, ""),
        Range::Positive if int => (at_least(1), "A positive, non-zero integer value is expected"),
        Range::Positive => (at_least(1), "A positive, non-zero long value is expected"),
        Range::PositiveInt => (
            at_least(1) && value.is_some_and(|value| i32::try_from(value).is_ok()),
            "A positive, non-zero integer value is expected",
        ),
        Range::NonNegative if int => (at_least(0), "An non-negative integer is expected"),
        Range::NonNegative | Range::NonNegativeAsLong => {
            (at_least(0), "A non-negative long value is expected")
        }
        // The rest is reported only for what is a number.
        Range::NotBelowZero => (
            // Debezium takes negative numbers and fails later.
            value.is_none() || at_least(0),
            "A non-negative value is expected",
        ),
        Range::Queue => (value.is_none() || at_least(1), "A positive queue size is required"),
        // Debezium does not check the range and fails to connect.
        Range::Port => (
            value.is_none_or(|value| (1..=0xffff).contains(&value)),
            "A port between 1 and 65535 is expected",
        ),
        Range::ServerId if at_least(1) => (
            // Debezium takes any positive number; the server knows 32 bits of it.
            value.is_some_and(|value| u32::try_from(value).is_ok()),
            "A value between 1 and 4294967295 is expected",
        ),
        Range::ServerId => (false, "A positive, non-zero long value is expected"),
    };
    (!right).then(|| message.to_owned())
}

fn is_topic_name(value: &str) -> bool {
    !value.is_empty()
        && value.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'))
}

/// Dot-separated Java identifiers.
fn is_class_name(value: &str) -> bool {
    value.split('.').all(|part| {
        let starts =
            part.chars().next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$'));
        starts && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
    })
}

/// `true` or `false` in any case, blanks around it ignored.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("true") {
        Some(true)
    } else if value.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// `skipped.operations`: which changes give no records. Rows of a snapshot are never skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SkippedOperations {
    /// Inserts (`c`).
    pub create: bool,
    /// Updates (`u`).
    pub update: bool,
    /// Deletes (`d`).
    pub delete: bool,
    /// TRUNCATE (`t`).
    pub truncate: bool,
}

impl SkippedOperations {
    /// Reads a comma-separated list of `c`, `u`, `d`, `t` (and `r`, without effect), or `none`.
    pub(crate) fn parse(value: &str) -> Result<Self, &'static str> {
        let mut skipped = Self::default();
        let operations: Vec<&str> = value.split(',').map(str::trim).collect();
        for operation in &operations {
            match *operation {
                "c" => skipped.create = true,
                "u" => skipped.update = true,
                "d" => skipped.delete = true,
                "t" => skipped.truncate = true,
                "r" => {}
                "none" if operations.len() == 1 => {}
                "none" => {
                    return Err("'none' cannot be specified with other skipped operation types");
                }
                _ => return Err("Invalid operation"),
            }
        }
        Ok(skipped)
    }
}
