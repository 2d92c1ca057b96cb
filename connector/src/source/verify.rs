//! The log read from an offset to its end, only to check definitions.

use std::sync::Arc;

use holdfast_binlog::client::{BinlogClient, DumpStart};
use holdfast_binlog::event::{ChecksumAlgorithm, EventData};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_history::offset::{LogPlace, SourceOffset};
use holdfast_history::recover::ReplayGuard;
use holdfast_history::store::{HistoryStore, MemoryHistory};
use holdfast_history::{Ahead, Tables};
use holdfast_snapshot::ServerFacts;
use tokio::sync::mpsc;

use super::failover::made_anew;
use super::progress::LogProgress;
use super::{Source, StreamStart, client_options, held_of, now_ns, server_options};
use crate::assemble::{Assembler, HeldRef, LogScan, Origins, Step, Verification};
use crate::committer::Committer;
use crate::config::Config;
use crate::control::{Signals, Wanted};
use crate::error::Error;
use crate::events::Events;
use crate::offset::dump_position;

/// The lowest server id that [`watcher_id`] chooses.
const FIRST_WATCHER_ID: u32 = 0xc000_0000;

/// What following the log gave.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) verification: Verification,
    /// Binlog file, and byte position after the last event that was read.
    pub(crate) end: (String, u64),
    /// What ended the reading before the end of the log.
    pub(crate) error: Option<Error>,
}

/// Checks the definitions that `history` gives for `offset` against the log from there to its end as it is now, with the
/// statements on the way applied. Nothing is written anywhere.
pub(crate) async fn verify(
    config: Arc<Config>,
    history: Arc<dyn HistoryStore>,
    offset: SourceOffset,
    progress: Option<LogProgress>,
) -> Result<Followed, Error> {
    let mut source = watcher(config, history);
    let mut conn = holdfast_snapshot::connect(&server_options(&source.config)).await?;
    let facts = holdfast_snapshot::facts(&mut conn).await?;
    source.check_server(&facts)?;
    let start = source.resume(&mut conn, &facts, offset).await?;
    drop(conn);
    let (mut assembler, offset) = source.assembler(&facts, start)?;
    assembler.verify_only();
    let mut end = (offset.file.clone(), offset.pos);
    let reading = (&mut end, progress);
    let error = follow_to_end(&source, &facts, &offset, &mut assembler, reading).await?.err();
    Ok(Followed { verification: assembler.into_verification(), end, error })
}

/// Looks at the log from `offset` to `until` for captured tables' rows that are not done, and for statements that may
/// change definitions. Needs no history.
pub(crate) async fn scan(
    config: Arc<Config>,
    facts: &ServerFacts,
    offset: SourceOffset,
    until: LogPlace,
    progress: Option<LogProgress>,
) -> Result<LogScan, Error> {
    let empty = MemoryHistory::new().open()?;
    let source = watcher(config, Arc::new(empty));
    source.check_server(facts)?;
    let lineage = source.lineage(facts, Some(&offset));
    let start = StreamStart {
        offset,
        tables: Tables::new(facts.lower_case_names()),
        guard: ReplayGuard::default(),
        ahead: Ahead::default(),
        origins: Origins::new(None),
        lineage,
        elsewhere: false,
    };
    let (mut assembler, offset) = source.assembler(facts, start)?;
    assembler.scan_only(LogScan::until(until));
    let mut end = (offset.file.clone(), offset.pos);
    let reading = (&mut end, progress);
    follow_to_end(&source, facts, &offset, &mut assembler, reading).await??;
    assembler.into_scan().ok_or(Error::Bug("a scan of the log has no result"))
}

/// A source that only reads: there are no batches to hand out, and no state to watch.
fn watcher(config: Arc<Config>, history: Arc<dyn HistoryStore>) -> Source {
    let (sender, _) = mpsc::channel(1);
    let signals = Arc::new(Signals::new(Wanted::NONE));
    let committer = Arc::new(Committer::idle(&config));
    Source::new(config, history, committer, None, sender, signals)
}

/// Where the reading is, and who is told of it.
type Reading<'a> = (&'a mut (String, u64), Option<LogProgress>);

/// Follows the log over a connection of its own. The inner error ended the reading, the outer one kept it from beginning.
async fn follow_to_end(
    source: &Source,
    facts: &ServerFacts,
    offset: &SourceOffset,
    assembler: &mut Assembler,
    reading: Reading<'_>,
) -> Result<Result<(), Error>, Error> {
    let mut options = client_options(&source.config);
    options.server_id = watcher_id(options.server_id, std::process::id());
    options.stop_at_end = true;
    let client = BinlogClient::connect(&options).await?;
    let dump_start = source.dump_start(facts, offset, source.tracks_gtids(facts)).await?;
    Ok(follow(client, dump_start, offset, assembler, reading).await)
}

async fn follow(
    client: BinlogClient,
    start: DumpStart,
    offset: &SourceOffset,
    assembler: &mut Assembler,
    (end, mut progress): Reading<'_>,
) -> Result<(), Error> {
    let checksum =
        if client.server().checksum { ChecksumAlgorithm::Crc32 } else { ChecksumAlgorithm::None };
    let by_position = matches!(start, DumpStart::Position(_));
    if by_position && let Some(first) = HeldRef::first(&held_of(offset)?) {
        assembler.catch_up_from(first, dump_position(offset));
    }
    let mut dump = client.dump(start).await?;
    let options = StreamOptions { checksum: Some(checksum), ..StreamOptions::default() };
    let mut log = Events::new(EventStream::new(offset.file.clone(), options));
    while let Some(bytes) = dump.next_event().await? {
        let event = match log.decode(bytes) {
            Ok(event) => event,
            Err(error) => {
                assembler.undecodable(error)?;
                continue;
            }
        };
        if by_position
            && let EventData::FormatDescription(_) = &event.data
            && let Some(error) = made_anew(offset, event.file, event.header.timestamp)
        {
            return Err(error);
        }
        if let EventData::TransactionPayload(_) = &event.data {
            let position = event.end;
            while let Some(inner) = log.inner() {
                match inner {
                    Ok(event) => handled(assembler.handle(&event, now_ns())?, assembler)?,
                    Err(error) => assembler.undecodable(error)?,
                }
            }
            assembler.payload_done(position);
            end.1 = position;
        } else {
            let step = assembler.handle(&event, now_ns())?;
            if !event.header.is_artificial() {
                if end.0 != event.file {
                    event.file.clone_into(&mut end.0);
                }
                end.1 = event.end;
            }
            handled(step, assembler)?;
        }
        if let Some(progress) = &mut progress {
            progress.read(&end.0, end.1);
        }
    }
    if let Some(progress) = progress {
        progress.end();
    }
    Ok(())
}

/// A statement is applied and recorded nowhere; its records are dropped.
fn handled(step: Step, assembler: &mut Assembler) -> Result<(), Error> {
    if let Step::Ddl(pending) = step {
        assembler.apply_ddl(*pending, now_ns())?;
    }
    while let Some(batch) = assembler.take_batch() {
        batch.acknowledge();
    }
    Ok(())
}

/// A server id for a second reader beside the engine of id `engine`: two readers of one id throw each other out. It is in
/// the upper quarter of the numbers, where people give no ids, and differs from process to process.
fn watcher_id(engine: u32, process: u32) -> u32 {
    let mixed = engine.wrapping_mul(0x9e37_79b1).wrapping_add(process.wrapping_mul(0x85eb_ca6b));
    let id = FIRST_WATCHER_ID | mixed >> 2;
    // Also not that of an engine which was given such an id.
    if id == engine { id ^ 1 } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_has_another_server_id_than_the_engine() {
        let ids: Vec<u32> = (1..100).map(|process| watcher_id(5400, process)).collect();
        assert!(ids.iter().all(|id| *id >= FIRST_WATCHER_ID));
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        let own = watcher_id(5400, 7);
        assert_ne!(watcher_id(own, 7), own);
    }
}
