//! Whether the server and the offset allow a refresh at all.

use holdfast_history::offset::{SnapshotKind, SourceOffset};
use holdfast_snapshot::{ReplicaChannel, ServerFacts};
use mysql_async::Conn;

use super::RefreshOptions;
use crate::available::check_available;
use crate::config::Config;
use crate::error::Error;
use crate::offset::file_of;

/// The guards, each with its own error.
pub(super) async fn check(
    config: &Config,
    conn: &mut Conn,
    facts: &ServerFacts,
    offset: &SourceOffset,
    options: &RefreshOptions,
    warnings: &mut Vec<String>,
) -> Result<(), Error> {
    if offset.snapshot == Some(SnapshotKind::Initial) {
        return Err(Error::Refused(
            "the stored offset is that of a snapshot which is not complete; start the engine, which takes it again"
                .to_owned(),
        ));
    }
    file_of(offset)?;
    check_lineage(config, facts, offset)?;
    check_available(config, conn, facts, offset).await?;
    let channels = holdfast_snapshot::replica_channels(conn, facts.flavor).await?;
    if let Some(text) = lagging(&channels) {
        if !options.allow_replica_lag {
            return Err(Error::Refused(format!(
                "{text}: its definitions and its log are still on their way; wait until it has caught up, or, if it is \
                 no replica any more, run RESET REPLICA ALL there; --allow-replica-lag goes on all the same"
            )));
        }
        warnings.push(format!("{text}; gone on all the same"));
    }
    Ok(())
}

/// Positions of another server's log mean nothing here.
fn check_lineage(config: &Config, facts: &ServerFacts, offset: &SourceOffset) -> Result<(), Error> {
    let server = config.source_id.as_deref().unwrap_or_else(|| facts.identity());
    match offset.lineage() {
        Some(known) if !known.eq_ignore_ascii_case(server) => Err(Error::PositionLost {
            what: "the stored offset belongs to the log of another server".to_owned(),
            detail: format!(
                "it is of {known}, and {}:{} is {server}; name the place in this server's log first, with `holdfast \
                 offset set --config FILE --gtids SET --new-lineage` or --file and --pos",
                config.connection.hostname, config.connection.port
            ),
        }),
        Some(_) | None => Ok(()),
    }
}

/// What is wrong with the replication of a server, if something is.
fn lagging(channels: &[ReplicaChannel]) -> Option<String> {
    channels.iter().find_map(|channel| {
        let name = match channel.name.as_str() {
            "" => String::new(),
            name => format!(" (channel {name})"),
        };
        if !channel.is_running {
            return Some(format!("the server is a replica whose replication is stopped{name}"));
        }
        match channel.seconds_behind {
            Some(0) => None,
            Some(seconds) => Some(format!(
                "the server is a replica that is {seconds} seconds behind its source{name}"
            )),
            None => Some(format!(
                "the server is a replica that does not know how far it is behind its source{name}"
            )),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_must_run_and_be_level() {
        let channel = |is_running, seconds_behind| ReplicaChannel {
            name: String::new(),
            is_running,
            seconds_behind,
        };
        assert_eq!(lagging(&[]), None);
        assert_eq!(lagging(&[channel(true, Some(0))]), None);
        for (channels, words) in [
            (vec![channel(false, None)], "stopped"),
            (vec![channel(true, Some(0)), channel(true, Some(7))], "7 seconds"),
            (vec![channel(true, None)], "does not know"),
        ] {
            assert!(lagging(&channels).unwrap().contains(words), "{channels:?}");
        }
    }
}
