//! What Debezium's own validation said of every property, compared.
//!
//! `tests/golden/config-validation.tsv` holds what `MySqlConnector#validate` of 3.6.3.Final and `MariaDbConnector#validate`
//! of 3.6.1.Final gave for each property of their definitions with five values, and for some others: the messages, or
//! nothing. Empty and absent values are written `<empty>` and `<absent>`, values with blanks around them in `«»`.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// Where something else is said here: the property, the value (none for all), and why.
const DEVIATIONS: &[(&str, &str, &str)] = &[
    ("database.port", "", "checked here, a failed connection there"),
    ("database.server.id", "4294967296", "the server knows 32 bits"),
    ("database.query.timeout.ms", "-1", "fails at every connect there"),
    ("snapshot.lock.timeout.ms", "-1", "fails later there"),
    ("database.ssl.keystore", "", "a Java store, refused"),
    ("database.ssl.truststore", "", "a Java store, refused"),
    ("post.processors", "", "Java classes, refused"),
    ("signal.data.collection", "", "not there yet, refused"),
    ("signal.enabled.channels", "", "not there yet, refused"),
    ("notification.enabled.channels", "", "not there yet, refused"),
    (
        "column.mask.hash.([^.]+).with.salt.(.+)",
        "",
        "the pattern of a family, which is no property",
    ),
    ("column.mask.with.(d+).chars", "", "the pattern of a family, which is no property"),
    ("column.truncate.to.(d+).chars", "", "the pattern of a family, which is no property"),
    ("gtid.source.includes", "zz[", "an exception there"),
    ("gtid.source.excludes", "zz[", "an exception there"),
    ("field.name.adjustment.mode", "", "an exception there, an error here"),
    ("event.converting.failure.handling.mode", "", "not declared there, so not checked"),
    ("skip.messages.without.change", "", "not declared there, so not checked"),
    ("read.only", "", "not declared there, so not checked"),
    ("topic.delimiter", "", "checked when the task starts there"),
    ("topic.cache.size", "", "not declared there, so not checked"),
    ("topic.transaction", "", "checked when the task starts there"),
    ("topic.heartbeat.prefix", "", "checked when the task starts there"),
];

/// The messages of one property, each once.
type Messages = BTreeSet<String>;

fn theirs(property: &str, result: &str) -> Messages {
    let beginning = format!("The '{property}' value is invalid: ");
    let Some(list) = result.strip_prefix(&format!("{property}: [")) else { return Messages::new() };
    let list = list.strip_suffix(']').unwrap_or(list).replace("\\n", "\n");
    // What stands before is about the connection, which was tried there.
    list.split(&beginning).skip(1).map(|text| text.trim_end_matches(", ").to_owned()).collect()
}

fn ours(connector: &str, property: &str, value: &str) -> (Messages, bool) {
    let mut properties: Properties = [
        ("topic.prefix", "srv"),
        ("database.hostname", "127.0.0.1"),
        ("database.user", "root"),
        ("database.server.id", "5400"),
    ]
    .into_iter()
    .filter(|(name, _)| *name != property)
    .collect();
    if connector == "mariadb" {
        properties.set("connector.class", "io.debezium.connector.mariadb.MariaDbConnector");
    }
    match value {
        "<absent>" => {}
        "<empty>" => properties.set(property, ""),
        quoted => properties.set(property, quoted.trim_matches(['«', '»'])),
    }
    let Err(errors) = Config::from_properties(&properties, Path::new("")) else {
        return (Messages::new(), false);
    };
    let mut messages = Messages::new();
    let mut refused = false;
    for error in errors.of(property) {
        match error {
            ConfigError::Invalid { message, .. } => {
                messages.insert(message.clone());
            }
            ConfigError::Unknown { .. } | ConfigError::Unsupported { .. } => refused = true,
        }
    }
    (messages, refused)
}

#[test]
fn every_value_is_judged_as_debezium_judged_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/config-validation.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut compared = 0;
    let mut used = BTreeSet::new();
    let mut differing = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[connector, property, value, result] = cells.as_slice() else { panic!("{line}") };
        compared += 1;
        let deviation = DEVIATIONS.iter().position(|(name, known, _)| {
            *name == property && (known.is_empty() || *known == value)
        });
        let (messages, refused) = ours(connector, property, value);
        let expected = theirs(property, result);
        if messages == expected && !refused {
            continue;
        }
        match deviation {
            Some(index) => {
                used.insert(index);
            }
            None => differing.push(format!(
                "{connector} {property}={value}: Debezium {expected:?}, here {messages:?}{}",
                if refused { " (refused)" } else { "" }
            )),
        }
    }
    assert!(compared > 1200, "{compared}");
    assert!(differing.is_empty(), "{}\n{}", differing.len(), differing.join("\n"));
    let unused: Vec<_> = (0..DEVIATIONS.len()).filter(|index| !used.contains(index)).collect();
    assert!(unused.is_empty(), "no longer needed: {unused:?}");
}
