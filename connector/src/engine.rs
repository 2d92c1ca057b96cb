//! The engine: one task that reads the log and fills batches, one that commits offsets, and the handle of whoever
//! consumes.
//!
//! ```text
//!  source task                        consumer                         committer task
//!  log ─▶ events ─▶ batches ──▶ bounded channel ──▶ next_batch
//!                                     acknowledge ──▶ ledger ──▶ frontier ──▶ offset store
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use holdfast_history::store::HistoryStore;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::ack::{AckCounts, SharedLedger};
use crate::batch::Batch;
use crate::config::Config;
use crate::error::Error;
use crate::offset::OffsetPoint;
use crate::offset_store::{MemoryOffsetStore, OffsetKey, OffsetStore, OffsetStoreError};
use crate::source::Source;
use crate::stores::{open_history, open_offsets};

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
    /// Done: stopped, failed, or nothing left to do.
    Stopped,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it is doing.
    pub state: EngineState,
    /// Groups delivered and not complete, and complete ones behind them.
    pub open_groups: usize,
    /// Acknowledgements that did nothing.
    pub acks: AckCounts,
}

/// Puts an engine together.
pub struct EngineBuilder {
    config: Config,
    history: Option<Arc<dyn HistoryStore>>,
    offsets: Option<Arc<dyn OffsetStore>>,
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Keeps the schema history in `store` instead of the one that the configuration names.
    #[must_use]
    pub fn history(mut self, store: Arc<dyn HistoryStore>) -> Self {
        self.history = Some(store);
        self
    }

    /// Keeps the offset in `store` instead of the one that the configuration names.
    #[must_use]
    pub fn offsets(mut self, store: Arc<dyn OffsetStore>) -> Self {
        self.offsets = Some(store);
        self
    }

    /// Opens the stores, reads the stored offset and starts reading. What the server says comes later, from
    /// [`Engine::next_batch`].
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] and [`Error::History`] when a store can't be opened or what it holds is damaged.
    pub async fn start(self) -> Result<Engine, Error> {
        let config = Arc::new(self.config);
        let history = match self.history {
            Some(history) => history,
            None => open_history(&config).await?,
        };
        let offsets = match self.offsets {
            Some(offsets) => offsets,
            None => open_offsets(&config),
        };
        let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
        let stored = offsets.load(&key).await?;
        let ledger = SharedLedger::new(OffsetPoint::closed_at("", 0));
        let committer =
            Committer { ledger: ledger.clone(), offsets, key, written: tokio::sync::Mutex::new(0) };
        let committer = Arc::new(committer);
        let slots = config.queue.batches();
        let (sender, batches) = mpsc::channel(slots);
        let (state_sender, state) = watch::channel(EngineState::Starting);
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let source = Source::new(
            Arc::clone(&config),
            history,
            Arc::clone(&committer),
            stored,
            sender,
            state_sender,
            stopped,
        );
        tasks.spawn(source.run());
        tasks.spawn(commit_forever(Arc::clone(&committer), config.offsets.flush_interval));
        let control = Control { ledger, committer, state, stop: Arc::new(stop) };
        Ok(Engine { batches, control, tasks })
    }
}

/// A running engine. Dropping it closes its connections; nothing that was acknowledged and committed is lost, and what
/// was not is delivered again by the next one.
#[derive(Debug)]
pub struct Engine {
    batches: mpsc::Receiver<Result<Batch, Error>>,
    control: Control,
    tasks: JoinSet<()>,
}

impl Engine {
    /// Begins to put an engine together.
    #[must_use]
    pub const fn builder(config: Config) -> EngineBuilder {
        EngineBuilder { config, history: None, offsets: None }
    }

    /// The next batch; `None` when the engine was stopped and everything read was given out, or when there is nothing
    /// more to do. Cancel-safe: a batch is either returned or still to come.
    ///
    /// # Errors
    ///
    /// Whatever ended the engine. Nothing comes after an error.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        match self.batches.recv().await {
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => {
                self.batches.close();
                Err(error)
            }
            None if *self.control.state.borrow() == EngineState::Stopped => Ok(None),
            // The reader's last act is to say that it stopped.
            None => Err(Error::Bug("the task that reads the server has panicked")),
        }
    }

    /// A handle to control the engine with; it can be cloned and sent anywhere.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Stops reading, commits what is acknowledged, and closes the connections. Batches that were not taken are
    /// dropped; they come again.
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] when the offset can't be stored.
    pub async fn close(mut self) -> Result<(), Error> {
        self.control.stop();
        self.batches.close();
        while self.batches.recv().await.is_some() {}
        let committed = self.control.flush().await;
        self.tasks.shutdown().await;
        committed
    }
}

/// Controls a running engine.
#[derive(Clone)]
pub struct Control {
    ledger: SharedLedger,
    committer: Arc<Committer>,
    state: watch::Receiver<EngineState>,
    stop: Arc<watch::Sender<bool>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("status", &self.status()).finish_non_exhaustive()
    }
}

impl Control {
    /// Stops reading. What was read is still given out; then [`Engine::next_batch`] ends.
    pub fn stop(&self) {
        self.stop.send_replace(true);
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
        let mut watched = self.state.clone();
        match watched.wait_for(|now| *now != state).await {
            Ok(now) => *now,
            Err(_) => EngineState::Stopped,
        }
    }

    /// What the engine says of itself.
    #[must_use]
    pub fn status(&self) -> Status {
        let ledger = self.ledger.lock();
        Status {
            state: *self.state.borrow(),
            open_groups: ledger.open_groups(),
            acks: ledger.counts(),
        }
    }
}

/// Stores the frontier.
pub(crate) struct Committer {
    pub(crate) ledger: SharedLedger,
    offsets: Arc<dyn OffsetStore>,
    key: OffsetKey,
    /// The ledger's version that is stored. Held while writing, so that two writes never overtake each other.
    written: tokio::sync::Mutex<u64>,
}

impl Committer {
    /// One that has nothing to store.
    pub(crate) fn idle(config: &Config) -> Self {
        let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
        Self {
            ledger: SharedLedger::new(OffsetPoint::closed_at("", 0)),
            offsets: Arc::new(MemoryOffsetStore::new()),
            key,
            written: tokio::sync::Mutex::new(0),
        }
    }

    /// Stores the frontier if it moved since the last time.
    pub(crate) async fn commit(&self) -> Result<(), OffsetStoreError> {
        let mut written = self.written.lock().await;
        let (version, offset) = {
            let ledger = self.ledger.lock();
            (ledger.version(), ledger.frontier().clone())
        };
        if version == *written {
            return Ok(());
        }
        self.offsets.store(&self.key, &offset.to_source_offset()).await?;
        *written = version;
        Ok(())
    }

    /// Stores an offset that no record carries: the position of a snapshot before its first record.
    pub(crate) async fn store(&self, offset: &OffsetPoint) -> Result<(), OffsetStoreError> {
        let _written = self.written.lock().await;
        self.offsets.store(&self.key, &offset.to_source_offset()).await
    }
}

/// Commits whenever the frontier moved, at most once per interval. A failed write is tried again at the next.
async fn commit_forever(committer: Arc<Committer>, interval: Duration) {
    loop {
        let version = *committer.written.lock().await;
        committer.ledger.moved_from(version).await;
        tokio::time::sleep(interval).await;
        if let Err(error) = committer.commit().await {
            let error = crate::error::Error::from(error).chain();
            tracing::error!(error, "the offset could not be stored; trying again");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}
