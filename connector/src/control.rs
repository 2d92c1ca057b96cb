//! The handle on a running engine, and what it and the engine's tasks tell each other.
//!
//! ```text
//!  Control ── wanted: stop, pause, rate, rewind ──▶ source task
//!          ◀── state, position, last error ────────
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::BinlogFileInfo;
use tokio::sync::watch;

use crate::ack::{AckCounts, SharedLedger};
use crate::committer::Committer;
use crate::config::Config;
use crate::error::Error;
use crate::initial::{SnapshotState, SnapshotTrack};
use crate::metrics::Counters;
use crate::offset::OffsetPoint;
use crate::offset_store::OffsetStoreError;
use crate::refresh::{Refresh, RefreshOptions, RefreshReport};
use holdfast_history::TableId;
use holdfast_history::store::HistoryStore;

/// What an engine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineState {
    /// Connecting, recovering the schema history, checking the stored offset.
    Starting,
    /// Taking a snapshot.
    Snapshot,
    /// Reading the log: its first event has come.
    Streaming,
    /// The connection was lost and is being made again.
    Reconnecting,
    /// Standing still at a group boundary: [`Control::pause`] was called, or the rate limit is 0.
    Paused,
    /// Done: stopped, failed, or nothing left to do.
    Stopped,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// What it is doing.
    pub state: EngineState,
    /// How its snapshot stands.
    pub snapshot: SnapshotState,
    /// How far the log was read: the offset with everything read so far done. `None` before streaming begins.
    pub position: Option<SourceOffset>,
    /// The offset that a restart would begin at once it is stored: everything before it is acknowledged. `None` before
    /// a place in the log is known.
    pub frontier: Option<SourceOffset>,
    /// How long after it was logged the last event was read, to the second; zero when the server said that it has
    /// nothing more. It grows while nothing is read: paused, or without a connection. `None` before the first event.
    pub lag: Option<Duration>,
    /// The last error that was met, also one that was got over, with its causes.
    pub last_error: Option<String>,
    /// Groups read and not acknowledged, those that wait in the queue included.
    pub open_groups: usize,
    /// Bytes of JSON text in batches that wait for [`crate::Engine::next_batch`].
    pub queued_bytes: u64,
    /// Connections of the log that were lost and made again.
    pub reconnects: u64,
    /// Acknowledgements that did nothing.
    pub acks: AckCounts,
    /// Offsets stored.
    pub offset_commits: u64,
    /// Offsets that could not be stored, and were tried again.
    pub offset_commit_failures: u64,
    /// Offsets that were not stored, as they would have moved the stored one backwards.
    pub offset_regressions: u64,
}

/// Controls a running engine. It can be cloned and sent anywhere.
#[derive(Clone)]
pub struct Control {
    config: Arc<Config>,
    history: Arc<dyn HistoryStore>,
    ledger: SharedLedger,
    committer: Arc<Committer>,
    signals: Arc<Signals>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(
        config: Arc<Config>,
        history: Arc<dyn HistoryStore>,
        committer: Arc<Committer>,
        signals: Arc<Signals>,
    ) -> Self {
        Self { ledger: committer.ledger.clone(), config, history, committer, signals }
    }

    /// Stops reading. What was read is still given out, also by an engine that is paused; then
    /// [`crate::Engine::next_batch`] ends.
    pub fn stop(&self) {
        self.signals.want(|wanted| wanted.stop = true);
    }

    /// Stands still: from now on no batch is given out, and reading stops at the next group boundary. The connection
    /// stays; one that the server ends meanwhile, since nobody reads, is made again at [`Self::resume`].
    ///
    /// Returns at once. [`Self::paused`] waits until reading has stopped.
    pub fn pause(&self) {
        self.signals.want(|wanted| wanted.paused = true);
    }

    /// Goes on after [`Self::pause`].
    pub fn resume(&self) {
        self.signals.want(|wanted| wanted.paused = false);
    }

    /// Waits until the engine stands still at a group boundary. False when it ended instead.
    pub async fn paused(&self) -> bool {
        self.reached(EngineState::Paused).await
    }

    /// Waits until streaming has really started: the first event of the log has come. False when the engine ended
    /// instead.
    pub async fn streaming(&self) -> bool {
        self.reached(EngineState::Streaming).await
    }

    async fn reached(&self, state: EngineState) -> bool {
        let mut watched = self.signals.state.subscribe();
        let reached = watched.wait_for(|now| *now == state || *now == EngineState::Stopped).await;
        reached.is_ok_and(|now| *now == state)
    }

    /// Gives out no more than so many records per second from now on; `None` for no limit. 0 stands still as
    /// [`Self::pause`] does. Groups stay whole, so that one of several records may come early and is made up for.
    pub fn set_rate_limit(&self, records_per_second: Option<u32>) {
        self.signals.want(|wanted| wanted.rate = records_per_second);
    }

    /// Gives everything that is not acknowledged out again, in order, from the frontier on: the consumer could not
    /// process a group. What is queued is dropped, and handles of records given out before are stale: acknowledging
    /// them does nothing and is counted. The stored offset does not move.
    ///
    /// The definitions that the place needs are recovered from the schema history, as at a restart.
    pub fn redeliver(&self) {
        self.signals.redeliver();
    }

    /// Rebuilds the schema history at the frontier: see [`crate::refresh`]. The engine stands still meanwhile, and goes on
    /// at the frontier with the new definitions, unless it was paused before: then it does at [`Self::resume`]. What was
    /// delivered beyond the frontier is delivered again, and handles of it are stale. It does not wait for
    /// acknowledgements. When a guard says no, nothing is written and everything goes on as before.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::PositionLost`], [`Error::History`] and errors of the connection;
    /// [`Error::Start`] when the engine has ended, or has no complete snapshot yet.
    pub async fn refresh_schema_history(
        &self,
        tables: &[TableId],
        options: &RefreshOptions,
    ) -> Result<RefreshReport, Error> {
        let was_paused = self.signals.wanted().paused;
        self.pause();
        let refreshed = self.refresh_standing(tables, options).await;
        if !was_paused {
            self.resume();
        }
        refreshed
    }

    async fn refresh_standing(
        &self,
        tables: &[TableId],
        options: &RefreshOptions,
    ) -> Result<RefreshReport, Error> {
        if !self.paused().await {
            return Err(Error::Start("the engine has ended".to_owned()));
        }
        let frontier = self.ledger.lock().frontier().clone();
        if !frontier.is_known() {
            return Err(Error::Start("nothing is delivered yet: there is no offset".to_owned()));
        }
        let options = RefreshOptions { tables: tables.to_vec(), ..options.clone() };
        let (config, history) = (Arc::clone(&self.config), Arc::clone(&self.history));
        let offset = frontier.to_source_offset();
        let place = (offset.file.clone(), offset.pos);
        let report = async {
            Box::pin(Refresh::prepare_at(config, history, offset, &options)).await?.apply().await
        };
        let report = self.signals.counters.refreshed(place, report.await)?;
        if report.written {
            self.redeliver();
        }
        Ok(report)
    }

    /// Stores the offset of everything acknowledged so far, now.
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] when it can't be stored.
    pub async fn flush(&self) -> Result<(), Error> {
        Ok(self.committer.commit().await?)
    }

    /// Waits until the engine is doing something else than `state`.
    pub async fn changed_from(&self, state: EngineState) -> EngineState {
        let mut watched = self.signals.state.subscribe();
        match watched.wait_for(|now| *now != state).await {
            Ok(now) => *now,
            Err(_) => EngineState::Stopped,
        }
    }

    /// Asks the server how many bytes of its binary logs are still to be read. `None` before streaming begins, and where
    /// the server no longer has the file that is read.
    ///
    /// # Errors
    ///
    /// [`Error::Snapshot`] when the server can't be asked.
    pub async fn lag_bytes(&self) -> Result<Option<u64>, Error> {
        let Some(position) = self.status().position else { return Ok(None) };
        let mut conn =
            holdfast_snapshot::connect(&crate::source::server_options(&self.config)).await?;
        let files = holdfast_snapshot::binlog_files(&mut conn).await?;
        let lag = bytes_after(&files, &position.file, position.pos);
        if let Some(bytes) = lag {
            crate::metrics::lag_bytes(&self.config.topic_prefix, bytes);
        }
        Ok(lag)
    }

    /// What the engine says of itself.
    #[must_use]
    pub fn status(&self) -> Status {
        let (frontier, open_groups, acks) = {
            let ledger = self.ledger.lock();
            (ledger.frontier().clone(), ledger.open_groups(), ledger.counts())
        };
        let now = crate::source::now_ns();
        let progress = self.signals.progress();
        Status {
            state: self.signals.state(),
            snapshot: self.signals.snapshot().state(),
            position: progress.position.as_ref().map(OffsetPoint::to_source_offset),
            frontier: frontier.is_known().then(|| frontier.to_source_offset()),
            lag: progress.lag(now),
            last_error: progress.last_error.clone(),
            open_groups,
            queued_bytes: self.signals.queued_bytes.load(Ordering::Relaxed),
            reconnects: progress.reconnects,
            acks,
            offset_commits: self.committer.counts.commits(),
            offset_commit_failures: self.committer.counts.failures(),
            offset_regressions: self.committer.counts.regressions(),
        }
    }

    /// Numbers of the first group that is not done and of the next to be given out, and when the last change that is
    /// done was made, seconds since the epoch.
    pub(crate) fn window(&self) -> (u64, u64, Option<i64>) {
        let ledger = self.ledger.lock();
        (ledger.first_open(), ledger.next_group(), ledger.frontier().ts_sec)
    }

    pub(crate) const fn signals(&self) -> &Arc<Signals> {
        &self.signals
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) const fn ledger(&self) -> &SharedLedger {
        &self.ledger
    }
}

/// Bytes of `files` after a place in one of them.
fn bytes_after(files: &[BinlogFileInfo], file: &str, pos: u64) -> Option<u64> {
    let mut rest = files.iter().skip_while(|info| info.name != file);
    let first = rest.next()?.size.saturating_sub(pos);
    Some(rest.fold(first, |sum, info| sum.saturating_add(info.size)))
}

/// What the holders of [`Control`] want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) stop: bool,
    pub(crate) paused: bool,
    /// Records per second; `None` for no limit.
    pub(crate) rate: Option<u32>,
    /// How often a redelivery was asked for.
    pub(crate) rewinds: u64,
    /// The engine ends by itself, so that nothing is held back any more.
    pub(crate) ended: bool,
}

impl Wanted {
    /// Nothing but to go on.
    pub(crate) const NONE: Self =
        Self { stop: false, paused: false, rate: None, rewinds: 0, ended: false };

    /// Whether batches come otherwise now than when it was `before`.
    pub(crate) fn changes_pace(&self, before: Self) -> bool {
        self.holds() != before.holds() || self.rate != before.rate
    }

    /// Whether reading stands still.
    pub(crate) const fn holds(&self) -> bool {
        !self.stop && !self.ended && (self.paused || matches!(self.rate, Some(0)))
    }

    /// Records of a batch at most, so that a limited rate does not come in bursts: a tenth of a second's worth.
    pub(crate) fn batch_limit(&self) -> usize {
        self.rate.map_or(usize::MAX, |rate| usize::try_from(rate / 10).unwrap_or(usize::MAX).max(1))
    }
}

/// How far reading came.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    position: Option<OffsetPoint>,
    /// How late the last event was read; `None` before the first one.
    lag: Option<Duration>,
    /// When that was, nanoseconds since the epoch.
    read_ns: i64,
    /// Whether more events are awaited: else the lag grows.
    reading: bool,
    last_error: Option<String>,
    reconnects: u64,
}

impl Progress {
    fn lag(&self, now_ns: i64) -> Option<Duration> {
        let lag = self.lag?;
        Some(if self.reading { lag } else { lag + between(self.read_ns, now_ns) })
    }
}

/// From one time to a later one, nanoseconds; zero where clocks differ.
fn between(from_ns: i64, to_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0))
}

/// What reading had come to when the log gave nothing more at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastEvent {
    /// An event that was logged then, nanoseconds since the epoch.
    Logged(i64),
    /// The server said that it has nothing more.
    AtEnd,
    /// An event without a time, or none.
    Unknown,
}

/// What engine, source task and handles share.
#[derive(Debug)]
pub(crate) struct Signals {
    wanted: watch::Sender<Wanted>,
    state: watch::Sender<EngineState>,
    progress: Mutex<Progress>,
    queued_bytes: AtomicU64,
    pub(crate) counters: Counters,
    snapshot: Mutex<SnapshotTrack>,
    /// Why offsets can't be stored any more, until the consumer is told.
    fenced: Mutex<Option<OffsetStoreError>>,
}

impl Signals {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self {
            wanted: watch::Sender::new(wanted),
            state: watch::Sender::new(EngineState::Starting),
            progress: Mutex::default(),
            queued_bytes: AtomicU64::new(0),
            counters: Counters::default(),
            snapshot: Mutex::default(),
            fenced: Mutex::default(),
        }
    }

    /// The offset is another engine's: this one ends.
    pub(crate) fn fence(&self, error: OffsetStoreError) {
        *self.fenced.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.want(|wanted| wanted.stop = true);
    }

    /// Why the engine was ended by [`Self::fence`].
    pub(crate) fn take_fenced(&self) -> Option<OffsetStoreError> {
        self.fenced.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        self.wanted.send_modify(change);
    }

    /// Wants everything from the frontier on to be given out again.
    pub(crate) fn redeliver(&self) {
        self.want(|wanted| wanted.rewinds += 1);
    }

    /// What is wanted now.
    pub(crate) fn wanted(&self) -> Wanted {
        *self.wanted.borrow()
    }

    /// Waits until what is wanted fulfils `wished`.
    pub(crate) async fn until(&self, wished: impl FnMut(&Wanted) -> bool) {
        // The sender is in `self`.
        let _ = self.wanted.subscribe().wait_for(wished).await;
    }

    pub(crate) fn state(&self) -> EngineState {
        *self.state.borrow()
    }

    pub(crate) fn set_state(&self, new: EngineState) {
        self.state.send_if_modified(|state| std::mem::replace(state, new) != new);
    }

    /// The source task ends: what it leaves is given out even by an engine that is paused.
    pub(crate) fn end(&self) {
        self.want(|wanted| wanted.ended = true);
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the snapshot stands.
    pub(crate) fn snapshot(&self) -> MutexGuard<'_, SnapshotTrack> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log was read up to `position` at `now_ns`.
    pub(crate) fn reached(&self, position: OffsetPoint, last: LastEvent, now_ns: i64) {
        let mut progress = self.progress();
        progress.position = Some(position);
        match last {
            LastEvent::Logged(at_ns) => progress.lag = Some(between(at_ns, now_ns)),
            LastEvent::AtEnd => progress.lag = Some(Duration::ZERO),
            LastEvent::Unknown => return,
        }
        progress.read_ns = now_ns;
        progress.reading = true;
    }

    /// Nothing is read for a while.
    pub(crate) fn stands(&self) {
        self.progress().reading = false;
    }

    /// An error was met.
    pub(crate) fn failed(&self, error: &Error) {
        self.progress().last_error = Some(error.chain());
    }

    /// The connection of the log was lost.
    pub(crate) fn reconnects(&self) {
        let mut progress = self.progress();
        progress.reconnects += 1;
        progress.reading = false;
    }

    pub(crate) fn queued(&self, bytes: usize) {
        self.queued_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn taken(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_in_bytes_goes_to_the_end_of_the_last_file() {
        let files: Vec<BinlogFileInfo> = [("b.000009", 100), ("b.000010", 200), ("b.000011", 7)]
            .map(|(name, size)| BinlogFileInfo { name: name.to_owned(), size })
            .into();
        for (file, pos, lag) in [
            ("b.000009", 4, Some(303)),
            ("b.000011", 7, Some(0)),
            ("b.000011", 9, Some(0)),
            ("b.000008", 4, None),
        ] {
            assert_eq!(bytes_after(&files, file, pos), lag, "{file} {pos}");
        }
    }
}
