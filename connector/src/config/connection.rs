//! How to reach the server.

use std::path::Path;
use std::time::Duration;

use holdfast_binlog::client::{Compression, TlsMode, TlsOptions};

use super::{Checked, Secret, SslMode};

/// How to reach the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// `database.hostname`.
    pub hostname: String,
    /// `database.port`, 1 to 65535.
    pub port: u16,
    /// `database.user`.
    pub user: String,
    /// `database.password`; `None` when absent.
    pub password: Option<Secret>,
    /// `database.server.id`: replica id of the binlog connection, not 0.
    pub server_id: u32,
    /// `database.ssl.mode`.
    pub ssl_mode: SslMode,
    /// The same, with the content of `holdfast.ssl.ca`, `holdfast.ssl.cert` and `holdfast.ssl.key`. Both the query and
    /// the binlog connections go by it; a program may put PEM texts from elsewhere here.
    pub tls: TlsOptions,
    /// `holdfast.binlog.compression`: of the binlog connection.
    pub compression: Compression,
    /// `connect.timeout.ms`.
    pub connect_timeout: Duration,
    /// `connect.keep.alive` and `connect.keep.alive.interval.ms`: the silence on the binlog connection after which it
    /// is made again; `None` when turned off.
    pub keep_alive: Option<Duration>,
    /// `binlog.net.write.timeout`: `net_write_timeout` of the binlog session in seconds; `None` for a day.
    pub net_write_timeout: Option<u64>,
    /// `binlog.net.read.timeout`: `net_read_timeout` of the binlog session in seconds; `None` leaves the server's.
    pub net_read_timeout: Option<u64>,
    /// `database.query.timeout.ms`: limit for one query; `None` for no limit.
    pub query_timeout: Option<Duration>,
    /// `database.initial.statements`: run on each query connection, not on the binlog connection.
    pub initial_statements: Vec<String>,
    /// `read.only`: never write to the source.
    pub read_only: bool,
}

impl Checked<'_> {
    pub(super) fn connection(&mut self, base_dir: &Path) -> ConnectionConfig {
        let tls = self.tls(base_dir);
        let seconds = |name: &str| Some(self.integer(name)).filter(|&seconds: &u64| seconds > 0);
        ConnectionConfig {
            hostname: self.text("database.hostname").to_owned(),
            port: self.integer("database.port"),
            user: self.text("database.user").to_owned(),
            password: self.properties.get("database.password").map(Secret::new),
            server_id: self.integer("database.server.id"),
            ssl_mode: self.ssl_mode(),
            tls,
            compression: self.compression(),
            connect_timeout: self.millis("connect.timeout.ms"),
            keep_alive: self
                .bool("connect.keep.alive")
                .then(|| self.millis("connect.keep.alive.interval.ms")),
            net_write_timeout: seconds("binlog.net.write.timeout"),
            net_read_timeout: seconds("binlog.net.read.timeout"),
            query_timeout: Some(self.millis("database.query.timeout.ms"))
                .filter(|limit| !limit.is_zero()),
            initial_statements: split_statements(self.text("database.initial.statements")),
            read_only: self.bool("read.only"),
        }
    }

    fn ssl_mode(&self) -> SslMode {
        self.choice("database.ssl.mode", SslMode::Disabled)
    }

    fn compression(&self) -> Compression {
        match self.text("holdfast.binlog.compression").trim() {
            name if name.eq_ignore_ascii_case("zlib") => Compression::Zlib,
            name if name.eq_ignore_ascii_case("zstd") => Compression::Zstd,
            _ => Compression::Off,
        }
    }

    fn tls(&mut self, base_dir: &Path) -> TlsOptions {
        let mode = match self.ssl_mode() {
            SslMode::Disabled => TlsMode::Disabled,
            SslMode::Preferred => TlsMode::Preferred,
            SslMode::Required => TlsMode::Required,
            SslMode::VerifyCa => TlsMode::VerifyCa,
            SslMode::VerifyIdentity => TlsMode::VerifyIdentity,
        };
        let mut tls = TlsOptions { mode, ..TlsOptions::default() };
        self.certificates(&mut tls, base_dir);
        if let Err(error) = tls.check() {
            self.invalid("database.ssl.mode", error.to_string());
        }
        tls
    }

    pub(super) fn certificates(&mut self, tls: &mut TlsOptions, base_dir: &Path) {
        tls.ca = self.pem("holdfast.ssl.ca", base_dir);
        tls.cert = self.pem("holdfast.ssl.cert", base_dir);
        tls.key = self.pem("holdfast.ssl.key", base_dir);
    }

    /// The content of a PEM file.
    fn pem(&mut self, name: &str, base_dir: &Path) -> Option<Vec<u8>> {
        let path = base_dir.join(self.filled(name)?.trim());
        match std::fs::read(&path) {
            Ok(pem) => Some(pem),
            Err(error) => {
                // Stores in tables ask for it again.
                if !self.errors.iter().any(|error| error.property() == name) {
                    self.invalid(name, format!("{} can't be read: {error}", path.display()));
                }
                None
            }
        }
    }
}

/// Splits at `;`; `;;` is a semicolon inside a statement.
fn split_statements(text: &str) -> Vec<String> {
    const ESCAPED: &str = "\u{0}";
    text.replace(";;", ESCAPED)
        .split(';')
        .map(|statement| statement.trim().replace(ESCAPED, ";"))
        .filter(|statement| !statement.is_empty())
        .collect()
}
