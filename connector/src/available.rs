//! Whether the server still has what an offset wants next.

use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::txn::Gtids;
use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::{BinlogFileInfo, ServerFacts, ServerFlavor};
use mysql_async::Conn;

use crate::config::Config;
use crate::error::Error;
use crate::offset::{file_of, gtids_of};

/// Whether the server still has what the offset wants next.
pub(crate) async fn check_available(
    config: &Config,
    conn: &mut Conn,
    facts: &ServerFacts,
    offset: &SourceOffset,
) -> Result<(), Error> {
    let lost = |what: &str, detail: String| Error::PositionLost { what: what.to_owned(), detail };
    const FIX: &str = "take a new snapshot (snapshot.mode=when_needed), or set the offset anew";
    if tracks_gtids(config, facts)
        && let Some(Gtids::MySql(done)) = gtids_of(offset, facts.flavor == ServerFlavor::MariaDb)?
        && !done.is_empty()
    {
        let done = counted(config, &done);
        let executed = holdfast_snapshot::log_position(conn, facts.flavor).await?.gtids;
        let executed = parse_set(executed.as_deref())?;
        if !done.is_subset_of(&executed) {
            return Err(lost(
                "the server has not executed all transactions that the stored offset has done",
                format!(
                    "it lacks {}; it is another server, was reset, or lags behind; {FIX}",
                    done.subtract(&executed)
                ),
            ));
        }
        let purged = parse_set(holdfast_snapshot::purged_gtids(conn, facts).await?.as_deref())?;
        let mut needed = counted(config, &executed).subtract(&done);
        needed.retain(|source, tag| done.has_source(source, tag));
        let kept = needed.subtract(&purged);
        if kept != needed {
            return Err(lost(
                "the restart position is no longer on the server",
                format!(
                    "transactions {} were purged from its binary logs; {FIX}",
                    needed.subtract(&kept)
                ),
            ));
        }
        return Ok(());
    }
    if tracks_gtids(config, facts)
        && let Some(Gtids::MariaDb(done)) = gtids_of(offset, facts.flavor == ServerFlavor::MariaDb)?
        && !done.is_empty()
    {
        // Of what was purged the server says so when the dump begins. For what it never had it would wait.
        let executed = holdfast_snapshot::log_position(conn, facts.flavor).await?.gtids;
        let executed = executed.unwrap_or_default();
        let there = GtidPos::parse(&executed)
            .map_err(|error| Error::Start(format!("gtid_binlog_pos can't be read: {error}")))?;
        if !done.at_or_before(&there) {
            return Err(lost(
                "the server has not executed all transactions that the stored offset has done",
                format!(
                    "it is at {executed:?} and the offset is at {done}; it is another server, was reset, or lags \
                     behind; {FIX}"
                ),
            ));
        }
        // Where the dump goes by the position, the file may have another name, or be gone.
        let held = offset.holdfast.as_ref().and_then(|ours| ours.held.as_deref());
        if held.unwrap_or_default().is_empty() {
            return Ok(());
        }
    }
    let files = holdfast_snapshot::binlog_files(conn).await?;
    match files.iter().find(|file| file.name == offset.file) {
        None => {
            let wanted = file_of(offset)?;
            let name = |file: Option<&BinlogFileInfo>| {
                file.map_or_else(|| "none".to_owned(), |file| file.name.clone())
            };
            let (oldest, newest) = (name(files.first()), name(files.last()));
            let purged = oldest.parse::<BinlogFile>().is_ok_and(|oldest| {
                oldest.base() == wanted.base() && wanted.number() < oldest.number()
            });
            Err(if purged {
                lost(
                    "the restart position is no longer on the server",
                    format!("{wanted} was purged, the oldest binary log is {oldest}; {FIX}"),
                )
            } else {
                lost(
                    "the restart position was never on the server",
                    format!(
                        "there is no {wanted}, the binary logs are {oldest} to {newest}: the logs were reset or belong \
                         to another server; {FIX}"
                    ),
                )
            })
        }
        Some(file) if offset.pos > file.size => Err(lost(
            "the restart position is beyond the end of the server's log",
            format!(
                "{} has {} bytes and the offset is at {}: the logs were reset or belong to another server; {FIX}",
                file.name, file.size, offset.pos
            ),
        )),
        Some(_) => Ok(()),
    }
}

/// Whether restarts go by GTIDs on this server.
pub(crate) fn tracks_gtids(config: &Config, facts: &ServerFacts) -> bool {
    facts.has_gtids() && !config.gtids.ignore_on_recovery
}

/// The transactions of the sources that count (`gtid.source.includes`, `gtid.source.excludes`).
pub(crate) fn counted(config: &Config, set: &GtidSet) -> GtidSet {
    set.filter(|source| config.gtids.sources.includes(&source.to_string()))
}

pub(crate) fn parse_set(text: Option<&str>) -> Result<GtidSet, Error> {
    match text {
        None => Ok(GtidSet::new()),
        Some(text) => GtidSet::parse(text)
            .map_err(|error| Error::Start(format!("the server's GTID set can't be read: {error}"))),
    }
}
