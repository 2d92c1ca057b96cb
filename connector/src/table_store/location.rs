//! Where a table is: a JDBC URL, a login and a name.

use std::fmt;
use std::time::Duration;

use holdfast_binlog::client::{TlsMode, TlsOptions};

use crate::config::Secret;

/// The port where a URL names none.
const PORT: u16 = 3306;

/// A table of a server, and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLocation {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The database that the table is in.
    pub database: String,
    /// Login name.
    pub user: String,
    /// Password, empty for none.
    pub password: Secret,
    /// Whether the connection is encrypted, and what is checked. A URL says no certificates; they are filled in.
    pub tls: TlsOptions,
    /// Name of the table, without a database.
    pub table: String,
    /// The statement that creates it, with the table's name filled in; `None` for ours.
    pub ddl: Option<String>,
    /// Pause before a failed connection is tried again.
    pub retry_delay: Duration,
    /// How often a connection is tried, 1 and more.
    pub max_attempts: u32,
}

/// Why a JDBC URL can't be used. The messages never show the URL, which may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// It is for another kind of database.
    #[error(
        "only jdbc:mysql://… and jdbc:mariadb://… are supported; keep the store in a table of a MySQL or MariaDB, or in a file"
    )]
    Driver,
    /// Several hosts, or a host in parentheses.
    #[error("one host and port is supported, as in jdbc:mysql://host:3306/database")]
    Hosts,
    /// The port is no port.
    #[error("the port is not a number from 1 to 65535")]
    Port,
    /// No database is named.
    #[error("the URL names no database: jdbc:mysql://host:3306/database")]
    NoDatabase,
    /// A `%` escape is broken.
    #[error("a percent escape in the URL is no UTF-8 text")]
    Escape,
    /// The encryption asked for is none that is known.
    #[error(
        "sslMode is DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY, or disable, trust, verify-ca or verify-full"
    )]
    Tls,
    /// The table's name has a database other than that of the URL.
    #[error(
        "the database of the table's name is not the database of the URL, where the table is kept"
    )]
    OtherDatabase,
}

impl TableLocation {
    /// Reads a JDBC URL as MySQL's and MariaDB's drivers take it. `user` and `password` win over those of the URL.
    /// `table` may be `database.table` if the database is that of the URL. `ddl` may have `%s` in the place of the name.
    ///
    /// Parameters of the URL other than `user`, `password` and those of TLS have no effect: they are about the driver.
    ///
    /// # Errors
    ///
    /// [`LocationError`] says what can't be used.
    pub fn from_jdbc(
        url: &str,
        user: Option<&str>,
        password: Option<&Secret>,
        table: &str,
        ddl: Option<&str>,
    ) -> Result<Self, LocationError> {
        // What the drivers do when the URL says nothing of it.
        let schemes =
            [("jdbc:mysql://", TlsMode::Preferred), ("jdbc:mariadb://", TlsMode::Disabled)];
        let (rest, otherwise) = schemes
            .into_iter()
            .find_map(|(scheme, mode)| Some((url.trim().strip_prefix(scheme)?, mode)))
            .ok_or(LocationError::Driver)?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (address, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = host_and_port(address)?;
        let database = unescape(database)?;
        if database.is_empty() {
            return Err(LocationError::NoDatabase);
        }
        let parameters = Parameters::read(parameters)?;
        let mode = parameters.tls(otherwise)?;
        let (table_database, table) = match table.split_once('.') {
            Some((database, table)) => (Some(database), table),
            None => (None, table),
        };
        if table_database.is_some_and(|named| named != database) {
            return Err(LocationError::OtherDatabase);
        }
        let ddl = ddl
            .map(|ddl| ddl.replace("%1$s", "%s").replace("%s", &quoted(table)).replace("%%", "%"));
        Ok(Self {
            host,
            port,
            database,
            user: user.map(str::to_owned).or(parameters.user).unwrap_or_default(),
            password: password.cloned().or(parameters.password).unwrap_or_default(),
            tls: TlsOptions { mode, ..TlsOptions::default() },
            table: table.to_owned(),
            ddl,
            retry_delay: Duration::from_secs(3),
            max_attempts: 5,
        })
    }

    /// The table's name for statements.
    pub(super) fn quoted_table(&self) -> String {
        quoted(&self.table)
    }

    /// The database's name for statements.
    pub(super) fn quoted_database(&self) -> String {
        quoted(&self.database)
    }
}

impl fmt::Display for TableLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, database, table, .. } = self;
        write!(f, "table {database}.{table} at {host}:{port}")
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn host_and_port(address: &str) -> Result<(String, u16), LocationError> {
    if address.contains([',', '(', '@']) {
        return Err(LocationError::Hosts);
    }
    let (host, port) = match address.strip_prefix('[') {
        // An IPv6 address: the colons of the address are inside the brackets.
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(LocationError::Hosts)?;
            (host, port.strip_prefix(':').unwrap_or(port))
        }
        None => address.split_once(':').unwrap_or((address, "")),
    };
    let port = match port {
        "" => PORT,
        port => port.parse().ok().filter(|&port| port != 0).ok_or(LocationError::Port)?,
    };
    Ok((if host.is_empty() { "localhost".to_owned() } else { host.to_owned() }, port))
}

/// What counts of a URL's parameters.
#[derive(Default)]
struct Parameters {
    user: Option<String>,
    password: Option<Secret>,
    /// `sslMode`.
    mode: Option<String>,
    /// The switches that were before it: `useSSL`, `requireSSL`, `verifyServerCertificate`.
    switches: [Option<bool>; 3],
}

impl Parameters {
    fn read(text: &str) -> Result<Self, LocationError> {
        let mut read = Self::default();
        for parameter in text.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = unescape(value)?;
            let switch = Some(value.eq_ignore_ascii_case("true"));
            match name {
                "user" => read.user = Some(value),
                "password" => read.password = Some(Secret::new(value)),
                "sslMode" => read.mode = Some(value),
                "useSSL" | "useSsl" => read.switches[0] = switch,
                "requireSSL" => read.switches[1] = switch,
                "verifyServerCertificate" => read.switches[2] = switch,
                _ => {}
            }
        }
        Ok(read)
    }

    /// As the drivers read it: `sslMode` wins over the older switches.
    fn tls(&self, otherwise: TlsMode) -> Result<TlsMode, LocationError> {
        let Some(mode) = &self.mode else {
            return Ok(match self.switches {
                [Some(false), ..] => TlsMode::Disabled,
                [_, _, Some(true)] => TlsMode::VerifyCa,
                [_, Some(true), _] => TlsMode::Required,
                [Some(true), ..] => TlsMode::Preferred,
                [None, ..] => otherwise,
            });
        };
        Ok(match mode.to_ascii_lowercase().replace('-', "_").as_str() {
            "disabled" | "disable" => TlsMode::Disabled,
            "preferred" => TlsMode::Preferred,
            "required" | "trust" => TlsMode::Required,
            "verify_ca" => TlsMode::VerifyCa,
            "verify_identity" | "verify_full" => TlsMode::VerifyIdentity,
            _ => return Err(LocationError::Tls),
        })
    }
}

/// Resolves `%xx`.
fn unescape(text: &str) -> Result<String, LocationError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'%' {
            let (digits, tail) = tail.split_at_checked(2).ok_or(LocationError::Escape)?;
            let digits = std::str::from_utf8(digits).map_err(|_| LocationError::Escape)?;
            bytes.push(u8::from_str_radix(digits, 16).map_err(|_| LocationError::Escape)?);
            rest = tail;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).map_err(|_| LocationError::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(url: &str) -> Result<TableLocation, LocationError> {
        TableLocation::from_jdbc(url, None, None, "t", None)
    }

    #[test]
    fn urls_of_both_drivers_are_read() {
        let cases = [
            ("jdbc:mysql://db.example:3307/store", ("db.example", 3307, "store", "", "")),
            ("jdbc:mariadb://db/store", ("db", 3306, "store", "", "")),
            ("jdbc:mysql:///store?useSSL=false", ("localhost", 3306, "store", "", "")),
            ("jdbc:mysql://[::1]:3307/a%2Db", ("::1", 3307, "a-b", "", "")),
            (
                "jdbc:mysql://h/s?user=u&password=p%26q%3D&serverTimezone=UTC&sslMode=DISABLED",
                ("h", 3306, "s", "u", "p&q="),
            ),
        ];
        for (url, (host, port, database, user, password)) in cases {
            let read = from(url).unwrap();
            assert_eq!((read.host.as_str(), read.port), (host, port), "{url}");
            assert_eq!((read.database.as_str(), read.user.as_str()), (database, user), "{url}");
            assert_eq!(read.password.expose(), password, "{url}");
        }
    }

    #[test]
    fn encryption_is_that_of_the_drivers() {
        let cases = [
            ("jdbc:mysql://h/s", TlsMode::Preferred),
            ("jdbc:mariadb://h/s", TlsMode::Disabled),
            ("jdbc:mysql://h/s?useSSL=false&requireSSL=true", TlsMode::Disabled),
            ("jdbc:mariadb://h/s?useSsl=true", TlsMode::Preferred),
            ("jdbc:mysql://h/s?requireSSL=true", TlsMode::Required),
            ("jdbc:mysql://h/s?useSSL=true&verifyServerCertificate=true", TlsMode::VerifyCa),
            ("jdbc:mysql://h/s?useSSL=false&sslMode=VERIFY_IDENTITY", TlsMode::VerifyIdentity),
            ("jdbc:mariadb://h/s?sslMode=verify-full", TlsMode::VerifyIdentity),
            ("jdbc:mariadb://h/s?sslMode=trust", TlsMode::Required),
        ];
        for (url, mode) in cases {
            assert_eq!(
                from(url).unwrap().tls,
                TlsOptions { mode, ..TlsOptions::default() },
                "{url}"
            );
        }
    }

    #[test]
    fn what_can_not_be_used_is_told_and_a_password_is_not() {
        let cases = [
            ("jdbc:postgresql://h/s?password=hidden", LocationError::Driver),
            ("jdbc:mysql:loadbalance://h/s", LocationError::Driver),
            ("mysql://h/s", LocationError::Driver),
            ("jdbc:mysql://a,b/s", LocationError::Hosts),
            ("jdbc:mysql://address=(host=a)/s", LocationError::Hosts),
            ("jdbc:mysql://u:hidden@h/s", LocationError::Hosts),
            ("jdbc:mysql://h:0/s", LocationError::Port),
            ("jdbc:mysql://h:x/s", LocationError::Port),
            ("jdbc:mysql://h:3306", LocationError::NoDatabase),
            ("jdbc:mysql://h/?user=u", LocationError::NoDatabase),
            ("jdbc:mysql://h/%F", LocationError::Escape),
            ("jdbc:mysql://h/%ff", LocationError::Escape),
            ("jdbc:mysql://h/s?sslMode=hidden", LocationError::Tls),
        ];
        for (url, expected) in cases {
            let error = from(url).unwrap_err();
            assert_eq!(error, expected, "{url}");
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }

    #[test]
    fn the_properties_win_over_the_url_and_the_name_is_filled_in() {
        let read = TableLocation::from_jdbc(
            "jdbc:mysql://h/s?user=u&password=p",
            Some("other"),
            Some(&Secret::new("secret")),
            "s.odd`name",
            Some("CREATE TABLE %s (a INT DEFAULT 5 %% 2)"),
        )
        .unwrap();
        assert_eq!((read.user.as_str(), read.password.expose()), ("other", "secret"));
        assert_eq!(read.table, "odd`name");
        assert_eq!(read.ddl.as_deref(), Some("CREATE TABLE `odd``name` (a INT DEFAULT 5 % 2)"));
        assert_eq!(read.to_string(), "table s.odd`name at h:3306");
        let other = TableLocation::from_jdbc("jdbc:mysql://h/s", None, None, "x.t", None);
        assert_eq!(other, Err(LocationError::OtherDatabase));
    }
}
