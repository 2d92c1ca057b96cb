//! The stores of Debezium's JDBC classes: a table, named by a JDBC URL.

use std::path::Path;
use std::time::Duration;

use holdfast_binlog::client::TlsMode;

use super::{Checked, Secret, check};
use crate::table_store::{LocationError, TableLocation};

/// The properties of one of the two stores, today's name first and the deprecated one after it.
pub(super) struct Names {
    url: [&'static str; 2],
    user: [&'static str; 2],
    password: [&'static str; 2],
    delay: [&'static str; 2],
    attempts: [&'static str; 2],
    table: [&'static str; 2],
    ddl: [&'static str; 2],
}

/// `JdbcSchemaHistoryConfig`.
pub(super) const HISTORY: Names = Names {
    url: ["schema.history.internal.jdbc.connection.url", "schema.history.internal.jdbc.url"],
    user: ["schema.history.internal.jdbc.connection.user", "schema.history.internal.jdbc.user"],
    password: [
        "schema.history.internal.jdbc.connection.password",
        "schema.history.internal.jdbc.password",
    ],
    delay: [
        "schema.history.internal.jdbc.connection.wait.retry.delay.ms",
        "schema.history.internal.jdbc.wait.retry.delay.ms",
    ],
    attempts: [
        "schema.history.internal.jdbc.connection.retry.max.attempts",
        "schema.history.internal.jdbc.retry.max.attempts",
    ],
    table: [
        "schema.history.internal.jdbc.table.name",
        "schema.history.internal.jdbc.schema.history.table.name",
    ],
    ddl: [
        "schema.history.internal.jdbc.table.ddl",
        "schema.history.internal.jdbc.schema.history.table.ddl",
    ],
};

/// `JdbcOffsetBackingStoreConfig`.
pub(super) const OFFSETS: Names = Names {
    url: ["offset.storage.jdbc.connection.url", "offset.storage.jdbc.url"],
    user: ["offset.storage.jdbc.connection.user", "offset.storage.jdbc.user"],
    password: ["offset.storage.jdbc.connection.password", "offset.storage.jdbc.password"],
    delay: [
        "offset.storage.jdbc.connection.wait.retry.delay.ms",
        "offset.storage.jdbc.wait.retry.delay.ms",
    ],
    attempts: [
        "offset.storage.jdbc.connection.retry.max.attempts",
        "offset.storage.jdbc.retry.max.attempts",
    ],
    table: ["offset.storage.jdbc.table.name", "offset.storage.jdbc.offset.table.name"],
    ddl: ["offset.storage.jdbc.table.ddl", "offset.storage.jdbc.offset.table.ddl"],
};

impl Checked<'_> {
    /// The table of a store; when it can't be used, that is noted. Its certificates are those of `holdfast.ssl.…`.
    pub(super) fn table_location(
        &mut self,
        names: &Names,
        base_dir: &Path,
    ) -> Option<TableLocation> {
        let properties = self.properties;
        let set = |[name, old]: [&'static str; 2]| {
            [name, old].into_iter().find_map(|name| properties.get(name).map(|text| (name, text)))
        };
        for required in [names.url, names.user, names.password] {
            if set(required).is_none() {
                self.invalid(required[0], check::REQUIRED);
            }
        }
        let (url_name, url) = set(names.url)?;
        let (table_name, table) =
            set(names.table).unwrap_or_else(|| (names.table[0], self.default_text(names.table[0])));
        let password = set(names.password).map(|(_, text)| Secret::new(text));
        let location = TableLocation::from_jdbc(
            url,
            set(names.user).map(|(_, text)| text),
            password.as_ref(),
            table.trim(),
            set(names.ddl).map(|(_, text)| text),
        );
        let mut location = match location {
            Ok(location) => location,
            Err(error) => {
                let name = match error {
                    LocationError::OtherDatabase => table_name,
                    LocationError::Driver
                    | LocationError::Hosts
                    | LocationError::Port
                    | LocationError::NoDatabase
                    | LocationError::Escape
                    | LocationError::Tls => url_name,
                };
                self.unsupported(name, error.to_string());
                return None;
            }
        };
        if location.tls.mode != TlsMode::Disabled {
            self.certificates(&mut location.tls, base_dir);
            if let Err(error) = location.tls.check() {
                self.invalid(url_name, error.to_string());
            }
        }
        let number = |[name, old]: [&'static str; 2]| {
            self.integer(if properties.get(name).is_none() && properties.get(old).is_some() {
                old
            } else {
                name
            })
        };
        location.retry_delay = Duration::from_millis(number(names.delay));
        location.max_attempts = u32::try_from(number(names.attempts)).unwrap_or(u32::MAX);
        Some(location)
    }
}
