//! Preconditions on the server, each tried for real, each with its fix.
//!
//! What can be tried is tried: a right is not read out of `SHOW GRANTS`, where roles hide it, but used on something
//! harmless.

use holdfast_binlog::client::{BinlogClient, DumpStart};
use holdfast_history::TableId;
use holdfast_snapshot::{ServerFacts, ServerFlavor};
use mysql_async::Conn;

use crate::config::{Config, LockingMode, SchemaSource, SnapshotMode};
use crate::error::Error;
use crate::source::{client_options, server_options};

/// How a precondition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It holds.
    Holds,
    /// It holds, and there is something to know.
    Note,
    /// It does not hold: capturing would fail, or lose changes.
    Fails,
}

/// One precondition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at: a variable, a right, a table.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// What was found.
    pub found: String,
    /// What to do; empty when there is nothing to do.
    pub fix: String,
}

/// Tries every precondition. A server that can't be reached gives a single finding.
pub async fn check(config: &Config) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    let endpoint = format!("{}:{}", config.connection.hostname, config.connection.port);
    let connected = async {
        let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
        let facts = holdfast_snapshot::facts(&mut conn).await?;
        Ok::<_, holdfast_snapshot::Error>((conn, facts))
    };
    match connected.await {
        Ok((mut conn, facts)) => {
            findings.holds("connection", format!("{endpoint}, {}", facts.version));
            settings(config, &facts, &mut findings);
            rights(config, &mut conn, &facts, &mut findings).await;
            tables(config, &mut conn, &mut findings).await;
            replica(&mut conn, &facts, &mut findings).await;
            replication(config, &mut findings).await;
        }
        Err(error) => {
            let error = Error::from(error).chain();
            findings.fails(
                "connection",
                error,
                "make the server reachable and check database.user and database.password",
            );
        }
    }
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn push(
        &mut self,
        name: &str,
        standing: Standing,
        found: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.0.push(Finding {
            name: name.to_owned(),
            standing,
            found: found.into(),
            fix: fix.into(),
        });
    }

    fn holds(&mut self, name: &str, found: impl Into<String>) {
        self.push(name, Standing::Holds, found, "");
    }

    fn notes(&mut self, name: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.push(name, Standing::Note, found, fix);
    }

    fn fails(&mut self, name: &str, found: impl Into<String>, fix: impl Into<String>) {
        self.push(name, Standing::Fails, found, fix);
    }

    fn wants(&mut self, name: &str, found: &str, wanted: &str, fix: &str) {
        if found.eq_ignore_ascii_case(wanted) {
            self.holds(name, found);
        } else {
            self.fails(name, found, fix);
        }
    }
}

fn settings(config: &Config, facts: &ServerFacts, findings: &mut Findings) {
    let mariadb = facts.flavor == ServerFlavor::MariaDb;
    if mariadb == config.is_mariadb() {
        findings.holds("connector.class", config.connector.connector_name());
    } else {
        findings.fails(
            "connector.class",
            "it is for the other family",
            "set it to the server's family",
        );
    }
    let variable = |name: &str| facts.variable(name).unwrap_or_default();
    let log_bin = if facts.is_on("log_bin") { "ON" } else { "OFF" };
    findings.wants("log_bin", log_bin, "ON", "start the server with --log-bin");
    findings.wants(
        "binlog_format",
        variable("binlog_format"),
        "ROW",
        "SET PERSIST binlog_format=ROW, and let sessions reconnect",
    );
    findings.wants(
        "binlog_row_image",
        variable("binlog_row_image"),
        "FULL",
        "SET PERSIST binlog_row_image=FULL, and let sessions reconnect",
    );
    if config.history.source == SchemaSource::Metadata {
        findings.wants(
            "binlog_row_metadata",
            variable("binlog_row_metadata"),
            "FULL",
            "SET PERSIST (MariaDB: SET GLOBAL) binlog_row_metadata=FULL, or holdfast.schema.source=history",
        );
    }
    match variable("server_id") {
        "0" => findings.fails("server_id", "0", "give the server an id: SET PERSIST server_id=1"),
        id if id == config.connection.server_id.to_string() => {
            findings.fails(
                "database.server.id",
                format!("{id} is the server's own id"),
                "choose another",
            );
        }
        id => findings.holds("server_id", id),
    }
    if facts.has_gtids() {
        findings.holds("GTIDs", "on");
    } else {
        findings.notes(
            "GTIDs",
            "off",
            "with them the place can be found on another server: gtid_mode=ON",
        );
    }
    let seconds = match facts.flavor {
        ServerFlavor::MySql => variable("binlog_expire_logs_seconds").parse::<u64>().ok(),
        ServerFlavor::MariaDb => variable("expire_logs_days").parse::<f64>().ok().map(|days| {
            // Days are whole or millionths; the number is small and not negative.
            std::time::Duration::try_from_secs_f64(days * 86_400.0).map_or(0, |kept| kept.as_secs())
        }),
    };
    match seconds {
        Some(seconds) if seconds != 0 && seconds < 86_400 => findings.notes(
            "log retention",
            format!("{seconds} s"),
            "a stop of that length loses the place; keep binary logs for days",
        ),
        Some(0) => findings.holds("log retention", "no limit"),
        Some(seconds) => findings.holds("log retention", format!("{} h", seconds / 3600)),
        None => {}
    }
}

async fn rights(config: &Config, conn: &mut Conn, facts: &ServerFacts, findings: &mut Findings) {
    match holdfast_snapshot::log_position(conn, facts.flavor).await {
        Ok(position) => {
            findings.holds("REPLICATION CLIENT", format!("{} at {}", position.file, position.pos))
        }
        Err(error) => findings.fails(
            "REPLICATION CLIENT",
            Error::from(error).chain(),
            "GRANT REPLICATION CLIENT (MariaDB: BINLOG MONITOR) ON *.* TO the user",
        ),
    }
    let snapshots = !matches!(
        config.snapshot.mode,
        SnapshotMode::Recovery | SnapshotMode::ConfigurationBased(_)
    );
    if snapshots && config.snapshot.locking != LockingMode::None {
        // Needs the same right as the read lock, and disturbs nobody.
        match holdfast_snapshot::execute(conn, "FLUSH LOCAL STATUS").await {
            Ok(()) => findings.holds("RELOAD", "granted"),
            Err(error) => findings.fails(
                "RELOAD",
                Error::from(error).chain(),
                "GRANT RELOAD ON *.* TO the user; LOCK TABLES on the captured databases will do as well, or \
                 snapshot.locking.mode=none",
            ),
        }
    }
}

async fn tables(config: &Config, conn: &mut Conn, findings: &mut Findings) {
    let captured: Vec<TableId> = match holdfast_snapshot::list_tables(conn).await {
        Ok(tables) => tables.into_iter().filter(|table| config.tables.captures(table)).collect(),
        Err(error) => {
            return findings.fails(
                "captured tables",
                Error::from(error).chain(),
                "GRANT SHOW DATABASES ON *.* TO the user",
            );
        }
    };
    if captured.is_empty() {
        return findings.notes(
            "captured tables",
            "none that the user can see",
            "check database.include.list and table.include.list, or GRANT SELECT",
        );
    }
    findings.holds("captured tables", captured.len().to_string());
    for table in captured {
        let probe = holdfast_snapshot::probe_select(conn, &table).await;
        if let Err(error) = probe {
            findings.fails(
                &table.to_string(),
                Error::from(error).chain(),
                format!("GRANT SELECT ON {table} TO the user"),
            );
        }
    }
}

async fn replica(conn: &mut Conn, facts: &ServerFacts, findings: &mut Findings) {
    match holdfast_snapshot::replica_lag(conn, facts.flavor).await {
        Ok(None) => {}
        Ok(Some(lag)) => {
            let updates = facts.is_on("log_replica_updates") || facts.is_on("log_slave_updates");
            if updates {
                findings.holds("log_replica_updates", "ON");
            } else {
                findings.fails(
                    "log_replica_updates",
                    "OFF on a replica: changes of its source are not in its log",
                    "start the replica with --log-replica-updates",
                );
            }
            match lag {
                Some(0) => findings.holds("replica lag", "0 s"),
                Some(seconds) => findings.notes(
                    "replica lag",
                    format!("{seconds} s"),
                    "records are that much late",
                ),
                None => findings.notes("replica lag", "replication is stopped", "START REPLICA"),
            }
        }
        Err(error) => {
            findings.notes("replica lag", Error::from(error).chain(), "not known without the right")
        }
    }
}

/// What the connections are, in words.
fn encryption(config: &Config, tls: Option<&'static str>) -> String {
    let mode = config.connection.ssl_mode;
    match tls {
        Some(version) if config.connection.tls.mode.verifies() => {
            format!("{mode}: encrypted with {version}, the server is verified")
        }
        Some(version) => format!("{mode}: encrypted with {version}, the server is not verified"),
        None => format!("{mode}: not encrypted"),
    }
}

/// Registers as a replica and asks for the log, up to its end.
async fn replication(config: &Config, findings: &mut Findings) {
    let mut options = client_options(config);
    options.stop_at_end = true;
    let tried = async {
        let mut dump = BinlogClient::connect(&options).await?.dump(DumpStart::First).await?;
        dump.next_event().await?;
        let tls = dump.server().tls;
        dump.close().await.map(|()| tls)
    };
    match tried.await {
        Ok(tls) => {
            findings.holds("REPLICATION SLAVE", "the binary log can be read");
            findings.holds("database.ssl.mode", encryption(config, tls));
        }
        Err(error) => findings.fails(
            "REPLICATION SLAVE",
            Error::from(error).chain(),
            "GRANT REPLICATION SLAVE ON *.* TO the user; choose a database.server.id that nobody else uses",
        ),
    }
}
