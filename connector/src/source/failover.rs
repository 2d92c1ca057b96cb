//! Another log than before: another server of the same topology, or one that was reset or restored.
//!
//! Positions mean nothing there. Where both sides have GTIDs they say what is done, so that streaming goes on in the new
//! log, under the next epoch, and the old log is closed where it was left. Where they have not, only the operator goes on.

use std::sync::Arc;

use holdfast_binlog::client::ServerInfo;
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::txn::{Gtids, Resume, TxnTracker};
use holdfast_history::Ahead;
use holdfast_history::offset::{ClosedEpoch, ClosedEpochs, LogPlace, SourceOffset};
use holdfast_snapshot::{ServerFacts, ServerFlavor};
use mysql_async::Conn;

use super::{Source, held_of, server_options};
use crate::assemble::Assembler;
use crate::available::{check_available, tracks_gtids};
use crate::config::Config;
use crate::error::Error;
use crate::offset::{Lineage, gtids_of, resume_of};

impl Source {
    /// The identity of the log's server, or what the operator calls it.
    pub(crate) fn identity(&self, facts: &ServerFacts) -> String {
        self.config.source_id.clone().unwrap_or_else(|| facts.identity().to_owned())
    }

    /// Whether an offset is of another server's log than that of `facts`.
    pub(super) fn is_elsewhere(&self, facts: &ServerFacts, offset: &SourceOffset) -> bool {
        offset.lineage().is_some_and(|known| !known.eq_ignore_ascii_case(&self.identity(facts)))
    }

    /// The log behind that of `offset`, which is left there.
    pub(crate) fn next_lineage(&self, facts: &ServerFacts, offset: &SourceOffset) -> Arc<Lineage> {
        let ours = offset.holdfast.as_ref();
        let epoch = ours.map_or(1, |ours| ours.epoch.max(1));
        let mut closed = ours
            .and_then(|ours| ours.closed.as_deref())
            .and_then(ClosedEpochs::parse)
            .unwrap_or_default();
        closed.0.push(ClosedEpoch { epoch, file: offset.file.clone(), pos: offset.pos });
        Arc::new(Lineage {
            server: self.identity(facts),
            epoch: epoch.saturating_add(1),
            closed: Some(closed.to_string()),
            refresh_head: None,
        })
    }

    /// The log of a snapshot: another one than that of the stored offset where its place is gone.
    pub(crate) fn snapshot_lineage(&self, facts: &ServerFacts) -> Arc<Lineage> {
        match &self.stored {
            Some(stored) if self.fills_gap || self.is_elsewhere(facts, stored) => {
                self.next_lineage(facts, stored)
            }
            stored => {
                let mut lineage = Lineage::clone(&self.lineage(facts, stored.as_ref()));
                lineage.refresh_head = None;
                Arc::new(lineage)
            }
        }
    }

    /// On a connection that is made again, another server may answer: goes on there if it has what comes next.
    pub(super) async fn meet(
        &self,
        facts: &mut ServerFacts,
        met: &ServerInfo,
        offset: &mut SourceOffset,
        assembler: &mut Assembler,
    ) -> Result<(), Error> {
        if is_same_server(facts, met) {
            return Ok(());
        }
        let mut conn = holdfast_snapshot::connect(&server_options(&self.config)).await?;
        let now = holdfast_snapshot::facts(&mut conn).await?;
        self.check_server(&now)?;
        if now.identity() == facts.identity() {
            return Ok(());
        }
        check_followed(&self.config, &now, offset)?;
        check_available(&self.config, &mut conn, &now, offset).await?;
        assembler.check_not_ahead(now.identity())?;
        let lineage = self.next_lineage(&now, offset);
        tracing::warn!(
            offset = offset.to_json(),
            was = facts.identity(),
            server = now.identity(),
            epoch = lineage.epoch,
            "another server answers; going on there by GTIDs"
        );
        assembler.change_log(lineage, tracker_elsewhere(offset, &now)?, None);
        *offset = assembler.offset().to_source_offset();
        *facts = now;
        Ok(())
    }
}

impl Source {
    /// A file of the offset's name that was made at another time is of another log. A position means nothing there;
    /// GTIDs, by which the dump began, go on.
    pub(super) fn check_birth(
        &self,
        facts: &ServerFacts,
        offset: &mut SourceOffset,
        (file, made): (&str, u32),
        by_position: bool,
        assembler: &mut Assembler,
    ) -> Result<(), Error> {
        let Some(error) = made_anew(offset, file, made) else { return Ok(()) };
        if by_position {
            return Err(error);
        }
        assembler.check_not_ahead(facts.identity())?;
        let lineage = self.next_lineage(facts, offset);
        tracing::warn!(
            offset = offset.to_json(),
            binlog_file = file,
            epoch = lineage.epoch,
            "the binary logs were reset; going on by GTIDs"
        );
        assembler.change_log(lineage, tracker_elsewhere(offset, facts)?, Some(file));
        *offset = assembler.offset().to_source_offset();
        Ok(())
    }
}

/// The error when a file of the offset's name was made at another time than that of the offset.
pub(super) fn made_anew(offset: &SourceOffset, file: &str, made: u32) -> Option<Error> {
    let birth = offset.holdfast.as_ref().and_then(|ours| ours.birth);
    let birth = birth.filter(|birth| *birth != made && offset.file == file)?;
    Some(Error::PositionLost {
        what: "the binary logs were reset since the offset was stored".to_owned(),
        detail: format!(
            "{file} was made at {made} (seconds since 1970), the offset is of a file of that name made at {birth}; take a \
             new snapshot, or set the offset anew"
        ),
    })
}

/// Whether the log ends before an offset of it: it was reset, or restored from a copy.
pub(super) async fn ends_before(conn: &mut Conn, offset: &SourceOffset) -> Result<bool, Error> {
    let files = holdfast_snapshot::binlog_files(conn).await?;
    let Some(last) = files.last() else { return Ok(false) };
    let (Ok(newest), Ok(wanted)) = (BinlogFile::parse(&last.name), BinlogFile::parse(&offset.file))
    else {
        return Ok(false);
    };
    Ok(newest.base() == wanted.base()
        && (newest.number(), last.size) < (wanted.number(), offset.pos))
}

/// Whether the server that answers is the one that `facts` are of, as far as the handshake tells.
fn is_same_server(facts: &ServerFacts, met: &ServerInfo) -> bool {
    match (facts.variable("server_uuid"), &met.server_uuid) {
        (Some(known), Some(found)) => known.eq_ignore_ascii_case(found),
        (_, _) => {
            facts.variable("server_id").is_none_or(|known| known == met.server_id.to_string())
        }
    }
}

/// Whether GTIDs lead from an offset into the log of another server.
pub(super) fn check_followed(
    config: &Config,
    facts: &ServerFacts,
    offset: &SourceOffset,
) -> Result<(), Error> {
    let mariadb = facts.flavor == ServerFlavor::MariaDb;
    let known = offset.lineage().unwrap_or("not known");
    let why = if !tracks_gtids(config, facts) {
        "it has no GTIDs, or gtid.ignore.on.recovery is set"
    } else if gtids_of(offset, mariadb)?.as_ref().is_none_or(Gtids::is_empty) {
        "the offset has no GTIDs"
    } else if mariadb && !held_of(offset)?.is_empty() {
        "XA transactions are prepared and undecided, which a GTID position can't name"
    } else {
        return Ok(());
    };
    Err(Error::PositionLost {
        what: "another server answers than the one that the offset is of".to_owned(),
        detail: format!(
            "it was {known} and is {} now, and {why}, so that {} at {} means nothing there; take a new snapshot, or find the \
             place in its log and set it with `holdfast offset set --new-lineage`. If it is the same log all the same, say \
             holdfast.source.id={known}",
            facts.identity(),
            offset.file,
            offset.pos
        ),
    })
}

/// Definitions that were read further on in a log are not those of any place in another one that could be named.
pub(crate) fn check_not_ahead(
    ahead: &Ahead,
    place: &LogPlace,
    gtids: Option<&str>,
    server: &str,
) -> Result<(), Error> {
    let Some(read_at) = ahead.read_behind(place) else { return Ok(()) };
    Err(Error::PositionLost {
        what: "definitions were refreshed further on in another log than the one that answers"
            .to_owned(),
        detail: format!(
            "they were read at {read_at}, reading has come to {place}, and what lies between can't be told in the log of \
             {server}; name the place there with `holdfast offset set --config FILE --gtids {} --new-lineage`, then read \
             the definitions anew with `holdfast refresh --config FILE`",
            gtids.unwrap_or("SET")
        ),
    })
}

/// A tracker that has its place once the log of another server has come, and knows what is done by GTIDs alone.
pub(super) fn tracker_elsewhere(
    offset: &SourceOffset,
    facts: &ServerFacts,
) -> Result<TxnTracker, Error> {
    let gtids = gtids_of(offset, facts.flavor == ServerFlavor::MariaDb)?;
    let tracker = TxnTracker::new("".into(), 0, gtids);
    let resume = resume_of(offset)?;
    if resume.gtid.is_none() {
        return Ok(tracker);
    }
    Ok(tracker.resuming(Resume { file: "".into(), position: 0, gtid_position: 0, ..resume }))
}
