//! Where the engine's records come from: the snapshot, then the log, over as many connections as it takes.

mod connect;
mod failover;
mod progress;
#[cfg(any(test, feature = "testkit"))]
mod scripted;
mod start;
mod stream;
mod upstream;
mod verify;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::ReplayGuard;
use holdfast_history::store::HistoryStore;
use holdfast_history::{Ahead, Tables};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::assemble::Origins;
use crate::batch::Batch;
use crate::committer::Committer;
use crate::config::Config;
use crate::control::{EngineState, Signals};
use crate::error::{Error, ErrorClass};
use crate::offset::Lineage;
use crate::refresh::is_damaged;

use connect::held_of;
pub(crate) use connect::{client_options, server_facts, server_options};
pub(crate) use failover::check_not_ahead;
pub(crate) use progress::LogProgress;
pub(crate) use upstream::Upstream;
pub(crate) use verify::{Followed, scan, verify};

/// The source task's state.
pub(crate) struct Source {
    /// Where the log comes from.
    pub(crate) upstream: Upstream,
    pub(crate) config: Arc<Config>,
    pub(crate) history: Arc<dyn HistoryStore>,
    pub(crate) committer: Arc<Committer>,
    stored: Option<SourceOffset>,
    sender: mpsc::Sender<Delivery>,
    pub(crate) signals: Arc<Signals>,
    /// Redeliveries that were seen to.
    rewinds: u64,
    /// Whether the log was ever read.
    streamed: bool,
    /// Whether reading begins again and has not come to the log yet.
    restarting: bool,
    /// How often it was tried in vain since.
    restart_failures: u32,
    /// Whether reading stood still on the current connection.
    held: bool,
    /// Records that were appended to the history since its last checkpoint.
    appended: usize,
    /// Whether the case of names is irrelevant to the server.
    lower_case_names: bool,
    /// Whether a snapshot takes the place of what is gone from the log.
    pub(crate) fills_gap: bool,
    /// Whether the next thing to do is that snapshot.
    gap: bool,
    /// How often definitions were changed under the snapshot.
    snapshot_failures: u32,
    /// Where definitions were rebuilt last because a row did not fit.
    repaired_at: Option<SourceOffset>,
}

/// What the consumer gets.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) batch: Result<Batch, Error>,
    /// Redeliveries before it was read: with more of them asked for it is stale.
    pub(crate) rewinds: u64,
}

/// What streaming starts from.
pub(crate) struct StreamStart {
    pub(crate) offset: SourceOffset,
    pub(crate) tables: Tables,
    pub(crate) guard: ReplayGuard,
    pub(crate) ahead: Ahead,
    pub(crate) origins: Origins,
    pub(crate) lineage: Arc<Lineage>,
    /// Whether the offset is of another log than the one that is read: only its GTIDs count.
    pub(crate) elsewhere: bool,
}

/// Why reading ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Somebody asked for it, or nobody takes batches any more.
    Stopped,
    /// Everything from the frontier on is to be given out again.
    Rewind,
}

impl Source {
    pub(crate) const fn new(
        config: Arc<Config>,
        history: Arc<dyn HistoryStore>,
        committer: Arc<Committer>,
        stored: Option<SourceOffset>,
        sender: mpsc::Sender<Delivery>,
        signals: Arc<Signals>,
    ) -> Self {
        Self {
            upstream: Upstream::Server,
            config,
            history,
            committer,
            stored,
            sender,
            signals,
            rewinds: 0,
            streamed: false,
            restarting: false,
            restart_failures: 0,
            held: false,
            appended: 0,
            lower_case_names: false,
            fills_gap: false,
            gap: false,
            snapshot_failures: 0,
            repaired_at: None,
        }
    }

    /// Runs until stopped or failed. An error is the last thing the consumer gets.
    pub(crate) async fn run(mut self) {
        let result = loop {
            match Box::pin(self.capture()).await {
                Ok(Ended::Rewind) => self.rewind(),
                Ok(Ended::Stopped) => break Ok(()),
                Err(error) if self.repaired(&error).await => self.rewind(),
                Err(error) if self.opens_gap(&error) => self.rewind(),
                Err(error) if self.snapshot_again(&error).await => self.rewind(),
                Err(error) if self.connects_again(&error).await => {
                    if self.signals.wanted().stop {
                        break Ok(());
                    }
                    self.rewind();
                }
                Err(error) => break Err(error),
            }
        };
        self.signals.end();
        if let Err(error) = result {
            self.failed(&error);
            // Nobody listens when the engine was dropped; then there is nobody to tell.
            let _ = self.sender.send(Delivery { batch: Err(error), rewinds: self.rewinds }).await;
        }
        self.signals.set_state(EngineState::Stopped);
    }

    fn failed(&self, error: &Error) {
        self.signals.failed(error);
        crate::metrics::error(&self.config.topic_prefix, error.class());
    }

    /// Begins again at the frontier; what was given out beyond it is stale.
    fn rewind(&mut self) {
        self.rewinds = self.signals.wanted().rewinds;
        let frontier = self.committer.ledger.lock().rewind();
        if frontier.is_known() {
            self.stored = Some(frontier.to_source_offset());
        }
        tracing::info!(
            offset = self.stored.as_ref().map(SourceOffset::to_json),
            "everything from the frontier on is given out again"
        );
        self.signals.set_state(EngineState::Starting);
        self.restarting = true;
    }

    /// Whether it is tried again after a while, since the server could not be reached when reading was to begin again. The
    /// first start of an engine says at once that there is no server.
    async fn connects_again(&mut self, error: &Error) -> bool {
        let exhausted = self.config.max_retries.is_some_and(|most| self.restart_failures >= most);
        if !self.restarting || exhausted || error.class() != ErrorClass::Transient {
            return false;
        }
        self.restart_failures += 1;
        tracing::warn!(
            error = error.chain(),
            failures = self.restart_failures,
            "no connection; connecting again"
        );
        self.failed(error);
        self.signals.set_state(EngineState::Reconnecting);
        self.wait(self.config.retry_wait).await;
        true
    }

    async fn capture(&mut self) -> Result<Ended, Error> {
        #[cfg(any(test, feature = "testkit"))]
        if let Upstream::Scripted(server) = &self.upstream {
            return self.capture_scripted(server.clone()).await;
        }
        let (mut conn, mut facts) = self.server().await?;
        if self.signals.wanted().holds() {
            drop(conn);
            if let Some(ended) = self.hold().await {
                return Ok(ended);
            }
            // Another one may answer by now.
            (conn, facts) = self.server().await?;
        }
        let stored = self.stored.clone();
        let mode = self.config.snapshot.mode;
        let gap = std::mem::take(&mut self.gap);
        let snapshot = gap || self.wants_snapshot(stored.as_ref())?;
        let start = if !snapshot && let Some(offset) = &stored {
            let resumed = match self.rebuild(offset).await {
                Ok(()) => match self.resume(&mut conn, &facts, offset.clone()).await {
                    Err(error) if is_damaged(&error) && self.rebuilds_what_is_damaged() => {
                        self.rebuild_at(offset).await?;
                        self.resume(&mut conn, &facts, offset.clone()).await
                    }
                    resumed => resumed,
                },
                Err(error) => Err(error),
            };
            match resumed {
                Err(error @ Error::PositionLost { .. }) if mode.reads_rows_anew() => {
                    tracing::warn!(error = error.chain(), "a new snapshot fills the gap");
                    self.fills_gap = true;
                    None
                }
                result => Some(result?),
            }
        } else {
            None
        };
        let start = if let Some(start) = start {
            self.signals.snapshot().skip();
            start
        } else {
            self.signals.set_state(EngineState::Snapshot);
            self.signals.snapshot().begin(Instant::now());
            let interrupted = stored.filter(|offset| offset.snapshot.is_some());
            let taken = Box::pin(self.take_snapshot(conn, &facts, interrupted)).await;
            self.signals.snapshot().end(matches!(taken, Ok(Some(_))), Instant::now());
            match taken? {
                Some(start) => start,
                None => return Ok(self.interrupted()),
            }
        };
        if !mode.streams() {
            return Ok(Ended::Stopped);
        }
        self.stream(&facts, start).await
    }

    /// Whether what comes next is gone from the log, and a snapshot takes its place: `snapshot.mode=when_needed`. The
    /// server may say so only when it is asked for the log.
    fn opens_gap(&mut self, error: &Error) -> bool {
        // A gap right behind the snapshot that filled one would never end.
        let fills =
            self.config.snapshot.mode.reads_rows_anew() && (self.streamed || !self.fills_gap);
        if !fills || error.class() != ErrorClass::Purged {
            return false;
        }
        tracing::warn!(error = error.chain(), "a new snapshot fills the gap");
        self.streamed = false;
        self.fills_gap = true;
        self.gap = true;
        self.signals.redeliver();
        true
    }

    /// Whether the snapshot is tried again, since a definition was changed under it. Tables that are done are not read
    /// again, unless definitions differ by now.
    async fn snapshot_again(&mut self, error: &Error) -> bool {
        let Error::Snapshot(changed) = error else { return false };
        let holdfast_snapshot::Error::DefinitionChanged { .. } = **changed else { return false };
        if self.config.max_retries.is_some_and(|most| self.snapshot_failures >= most) {
            return false;
        }
        self.snapshot_failures += 1;
        tracing::warn!(error = error.chain(), "the snapshot is begun again");
        self.failed(error);
        if self.wait(self.config.retry_wait).await.is_none() {
            self.signals.redeliver();
        }
        true
    }

    /// Why something was given up half-way.
    fn interrupted(&self) -> Ended {
        let wanted = self.signals.wanted();
        if !wanted.stop && wanted.rewinds != self.rewinds { Ended::Rewind } else { Ended::Stopped }
    }

    /// Stands still while that is wanted. Called where no group is open.
    pub(crate) async fn hold(&mut self) -> Option<Ended> {
        if !self.signals.wanted().holds() {
            return None;
        }
        self.held = true;
        let before = self.signals.state();
        self.signals.stands();
        self.signals.set_state(EngineState::Paused);
        tracing::info!("standing still");
        let rewinds = self.rewinds;
        self.signals.until(|wanted| !wanted.holds() || wanted.rewinds != rewinds).await;
        let wanted = self.signals.wanted();
        if wanted.stop {
            return Some(Ended::Stopped);
        }
        if wanted.rewinds != rewinds {
            return Some(Ended::Rewind);
        }
        self.signals.set_state(before);
        tracing::info!("going on");
        None
    }

    async fn wait(&mut self, how_long: Duration) -> Option<Ended> {
        let rewinds = self.rewinds;
        tokio::select! {
            () = self.signals.until(|wanted| wanted.stop || wanted.rewinds != rewinds) => Some(self.interrupted()),
            () = tokio::time::sleep(how_long) => None,
        }
    }

    /// Whether somebody asked to stop, or to begin again.
    pub(crate) fn is_stopped(&self) -> bool {
        let wanted = self.signals.wanted();
        wanted.stop || wanted.rewinds != self.rewinds
    }

    /// Records of a batch at most.
    pub(crate) fn batch_limit(&self) -> usize {
        self.signals.wanted().batch_limit()
    }

    /// Hands a batch to the consumer, waiting for room. Without room a pause is met here.
    pub(crate) async fn send(&mut self, batch: Batch) -> Option<Ended> {
        let signals = Arc::clone(&self.signals);
        loop {
            let rewinds = self.rewinds;
            // Cancel-safe: room that is not used goes back.
            tokio::select! {
                biased;
                room = self.sender.reserve() => {
                    let Ok(room) = room else { return Some(Ended::Stopped) };
                    signals.queued(batch.size_bytes());
                    signals.counters.batch(&batch);
                    room.send(Delivery { batch: Ok(batch), rewinds });
                    return None;
                }
                () = signals.until(|wanted| wanted.holds() || wanted.rewinds != rewinds) => {}
            }
            if self.signals.wanted().rewinds != rewinds {
                return Some(self.interrupted());
            }
            if let Some(Ended::Rewind) = self.hold().await {
                return Some(Ended::Rewind);
            }
            // After a stop what was read is still given out.
        }
    }
}

/// Nanoseconds since the epoch.
pub(crate) fn now_ns() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
