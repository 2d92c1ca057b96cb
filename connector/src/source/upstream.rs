//! What the log is read from: a server, or a made-up one.

use holdfast_binlog::Error as BinlogError;
use holdfast_binlog::client::{BinlogClient, DumpStart, DumpStream};
use holdfast_binlog::event::{ChecksumAlgorithm, RawEvent};
use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::ServerFacts;

use super::{Source, client_options, held_of, now_ns, server_options};
use crate::assemble::{Assembler, HeldRef};
use crate::error::Error;
use crate::offset::dump_position;
#[cfg(any(test, feature = "testkit"))]
use crate::testkit::{ScriptedDump, ScriptedServer};

/// Where the log comes from.
#[derive(Debug)]
pub(crate) enum Upstream {
    /// The server that the configuration names.
    Server,
    /// A made-up log.
    #[cfg(any(test, feature = "testkit"))]
    Scripted(ScriptedServer),
}

impl Upstream {
    /// Whether an end of the dump is the end of the log.
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Server => false,
            #[cfg(any(test, feature = "testkit"))]
            Self::Scripted(server) => server.all_sent(),
        }
    }
}

/// Events, one after the other.
#[derive(Debug)]
pub(super) enum Dump {
    Server(DumpStream),
    #[cfg(any(test, feature = "testkit"))]
    Scripted(ScriptedDump),
}

impl Dump {
    /// See [`DumpStream::next_event`].
    pub(super) async fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, BinlogError> {
        match self {
            Self::Server(dump) => dump.next_event().await,
            #[cfg(any(test, feature = "testkit"))]
            Self::Scripted(dump) => Ok(dump.next_event().await.map(RawEvent::Memory)),
        }
    }

    /// The next event, if it has come; may say no to one that has. Cancel-safe as [`Self::next_event`] is.
    pub(super) async fn event_at_hand(
        &mut self,
    ) -> Option<Result<Option<RawEvent<'_>>, BinlogError>> {
        tokio::select! {
            biased;
            event = self.next_event() => Some(event),
            () = std::future::ready(()) => None,
        }
    }

    /// See [`DumpStream::has_buffered`].
    pub(super) fn has_buffered(&mut self) -> bool {
        match self {
            Self::Server(dump) => dump.has_buffered(),
            #[cfg(any(test, feature = "testkit"))]
            Self::Scripted(dump) => dump.has_buffered(),
        }
    }
}

/// A dump that has begun.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) dump: Dump,
    pub(super) checksum: ChecksumAlgorithm,
    /// Whether it began at a position, not by GTIDs.
    pub(super) by_position: bool,
}

impl Source {
    /// Begins to read the log at `offset`, on a connection of its own; `again` after another one, when another server may
    /// answer.
    pub(super) async fn open_dump(
        &self,
        facts: &mut ServerFacts,
        offset: &mut SourceOffset,
        assembler: &mut Assembler,
        track_gtids: bool,
        again: bool,
    ) -> Result<Opened, Error> {
        match &self.upstream {
            Upstream::Server => {
                let client = BinlogClient::connect(&client_options(&self.config))
                    .await
                    .map_err(|error| self.dump_failed(error))?;
                if again {
                    self.meet(facts, client.server(), offset, assembler).await?;
                }
                let checksum = match client.server().checksum {
                    true => ChecksumAlgorithm::Crc32,
                    false => ChecksumAlgorithm::None,
                };
                let start = self.dump_start(facts, offset, track_gtids).await?;
                let by_position = catch_up(&start, offset, assembler)?;
                let dump = client.dump(start).await.map_err(|error| self.dump_failed(error))?;
                Ok(Opened { dump: Dump::Server(dump), checksum, by_position })
            }
            #[cfg(any(test, feature = "testkit"))]
            Upstream::Scripted(server) => {
                let start = self.dump_start(facts, offset, track_gtids).await?;
                let by_position = catch_up(&start, offset, assembler)?;
                let dump = Dump::Scripted(server.dump(&start)?);
                Ok(Opened { dump, checksum: server.checksum(), by_position })
            }
        }
    }

    /// GTIDs that the server has no longer.
    pub(super) async fn purged_gtids(&self, facts: &ServerFacts) -> Result<Option<String>, Error> {
        match &self.upstream {
            Upstream::Server => {
                let mut conn = holdfast_snapshot::connect(&server_options(&self.config)).await?;
                Ok(holdfast_snapshot::purged_gtids(&mut conn, facts).await?)
            }
            #[cfg(any(test, feature = "testkit"))]
            Upstream::Scripted(_) => Ok(None),
        }
    }

    /// Nanoseconds since the epoch; on a made-up log the clock stands still.
    pub(super) fn now_ns(&self) -> i64 {
        match &self.upstream {
            Upstream::Server => now_ns(),
            #[cfg(any(test, feature = "testkit"))]
            Upstream::Scripted(_) => i64::from(ScriptedServer::NOW) * 1_000_000_000,
        }
    }
}

/// Whether a dump begins at a position. Prepared transactions before it are read again then.
fn catch_up(
    start: &DumpStart,
    offset: &SourceOffset,
    assembler: &mut Assembler,
) -> Result<bool, Error> {
    let by_position = matches!(start, DumpStart::Position(_));
    if by_position && let Some(first) = HeldRef::first(&held_of(offset)?) {
        assembler.catch_up_from(first, dump_position(offset));
    }
    Ok(by_position)
}
