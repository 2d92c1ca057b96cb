//! Connections: how the server is reached, and where its log is read from.

use std::time::Duration;

use holdfast_binlog::client::{ClientOptions, DumpStart, Password};
use holdfast_binlog::txn::{Gtids, TransactionGtid};
use holdfast_binlog::{BinlogPosition, GtidSet};
use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::{ServerFacts, ServerOptions};

use super::Source;
use crate::assemble::HeldRef;
use crate::available::{counted, parse_set, tracks_gtids};
use crate::config::Config;
use crate::error::{DumpFailure, Error};
use crate::offset::{dump_position, file_of, gtids_of};

impl Source {
    pub(crate) fn tracks_gtids(&self, facts: &ServerFacts) -> bool {
        tracks_gtids(&self.config, facts)
    }

    pub(super) async fn dump_start(
        &self,
        facts: &ServerFacts,
        offset: &SourceOffset,
        track_gtids: bool,
    ) -> Result<DumpStart, Error> {
        if track_gtids {
            match gtids_of(offset, self.config.is_mariadb())? {
                Some(Gtids::MySql(set)) if !set.is_empty() => {
                    let purged = self.purged_gtids(facts).await?;
                    // Sources that the offset does not know start behind what was purged of them.
                    let mut start = parse_set(purged.as_deref())?;
                    start.overlay(&counted(&self.config, &set));
                    // Transactions that are prepared and undecided are read again.
                    for held in held_of(offset)? {
                        if let Some(TransactionGtid::MySql(gtid)) = held.gtid {
                            let mut one = GtidSet::new();
                            one.add(gtid).map_err(|error| Error::Start(error.to_string()))?;
                            start = start.subtract(&one);
                        }
                    }
                    return Ok(DumpStart::Gtids(start));
                }
                // A position names no single transactions: those that are held are read again by their place.
                Some(Gtids::MariaDb(mut pos)) if !pos.is_empty() && held_of(offset)?.is_empty() => {
                    let sources = &self.config.gtids.sources;
                    pos.retain(|gtid| {
                        sources.includes(&format!("{}-{}", gtid.domain, gtid.server))
                    });
                    return Ok(DumpStart::MariaDbGtids(pos));
                }
                Some(_) | None => {}
            }
        }
        if let Some(first) = HeldRef::first(&held_of(offset)?) {
            let file = first.file.parse().map_err(|error| {
                Error::Start(format!(
                    "the stored offset's holdfast_held names no binlog file: {error}"
                ))
            })?;
            return Ok(DumpStart::Position(BinlogPosition::new(file, first.position.max(4))));
        }
        let file = file_of(offset)?;
        Ok(DumpStart::Position(BinlogPosition::new(file, dump_position(offset).max(4))))
    }

    pub(super) fn endpoint(&self) -> String {
        format!("{}:{}", self.config.connection.hostname, self.config.connection.port)
    }

    pub(super) fn dump_failed(&self, source: holdfast_binlog::Error) -> Error {
        Error::Dump(Box::new(DumpFailure {
            endpoint: self.endpoint(),
            user: self.config.connection.user.clone(),
            server_id: self.config.connection.server_id,
            source,
        }))
    }
}

/// How long the server waits for somebody who does not read its log: who pauses for longer connects again.
const PATIENCE_OF_SERVER: Duration = Duration::from_secs(86_400);

/// How queries reach the server.
pub(crate) fn server_options(config: &Config) -> ServerOptions {
    let connection = &config.connection;
    ServerOptions {
        host: connection.hostname.clone(),
        port: connection.port,
        user: connection.user.clone(),
        password: connection
            .password
            .as_ref()
            .map(|secret| secret.expose().to_owned())
            .unwrap_or_default(),
        tls: connection.tls.clone(),
        connect_timeout: connection.connect_timeout,
        initial_statements: connection.initial_statements.clone(),
    }
}

/// How the log is read.
pub(crate) fn client_options(config: &Config) -> ClientOptions {
    let connection = &config.connection;
    let mut options = ClientOptions::new(
        connection.hostname.clone(),
        connection.port,
        connection.user.clone(),
        connection.server_id,
    );
    if let Some(secret) = &connection.password {
        options.password = Password::new(secret.expose());
    }
    options.tls = connection.tls.clone();
    options.compression = connection.compression;
    options.connect_timeout = connection.connect_timeout;
    // As Debezium: the server says that it is alive in 0.8 of the time after which silence is an error.
    options.silence_timeout = connection.keep_alive;
    if let Some(silence) = connection.keep_alive {
        options.heartbeat_period = silence.mul_f64(0.8);
    }
    options.annotate_rows = config.events.query;
    options.net_write_timeout =
        Some(connection.net_write_timeout.map_or(PATIENCE_OF_SERVER, Duration::from_secs));
    options.net_read_timeout = connection.net_read_timeout.map(Duration::from_secs);
    options
}

/// Asks the server about itself.
pub(crate) async fn server_facts(config: &Config) -> Result<ServerFacts, Error> {
    let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
    Ok(holdfast_snapshot::facts(&mut conn).await?)
}

/// Prepared XA transactions that a stored offset names.
pub(super) fn held_of(offset: &SourceOffset) -> Result<Vec<HeldRef>, Error> {
    let text = offset.holdfast.as_ref().and_then(|ours| ours.held.as_deref()).unwrap_or_default();
    HeldRef::parse_all(text).ok_or_else(|| {
        Error::Start(
            "the stored offset's holdfast_held can't be read; restore the offset".to_owned(),
        )
    })
}

#[cfg(test)]
mod tests {
    use holdfast_binlog::client::Compression;

    use super::*;

    #[test]
    fn the_log_is_compressed_as_asked() {
        for (name, expected) in
            [("none", Compression::Off), ("zlib", Compression::Zlib), ("ZSTD", Compression::Zstd)]
        {
            let properties = [("holdfast.binlog.compression", name)];
            let options = client_options(&crate::testkit::config(&properties).unwrap());
            assert_eq!(options.compression, expected);
        }
        assert_eq!(
            client_options(&crate::testkit::config(&[]).unwrap()).compression,
            Compression::Off
        );
        assert!(crate::testkit::config(&[("holdfast.binlog.compression", "lz4")]).is_err());
    }

    #[test]
    fn the_server_waits_for_a_reader_that_pauses() {
        for (seconds, expected) in [("0", 86_400), ("5", 5)] {
            let properties = [("binlog.net.write.timeout", seconds)];
            let options = client_options(&crate::testkit::config(&properties).unwrap());
            assert_eq!(options.net_write_timeout, Some(Duration::from_secs(expected)));
        }
    }
}
