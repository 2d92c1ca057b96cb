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

use holdfast_history::offset::{SnapshotKind, SourceOffset};
use holdfast_history::store::HistoryStore;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::ack::Rejected;
use crate::batch::Batch;
use crate::committer::{Committer, commit_forever};
use crate::config::{Config, SnapshotMode, SnapshotRules, StartState};
use crate::control::{Control, EngineState, Signals, Wanted};
use crate::error::Error;
use crate::metrics::{publish, publish_forever};
use crate::offset_store::{Claim, MemoryOffsetStore, OffsetKey, OffsetStore};
use crate::source::{Delivery, Source, Upstream};
use crate::stores::{open_history, open_offsets};

/// Puts an engine together.
pub struct EngineBuilder {
    config: Config,
    history: Option<Arc<dyn HistoryStore>>,
    offsets: Option<Arc<dyn OffsetStore>>,
    upstream: Upstream,
    resume_at: Option<SourceOffset>,
    max_redeliveries: u32,
    rules: Option<Arc<dyn SnapshotRules>>,
    wanted: Wanted,
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

    /// Starts at `offset`, an offset that the host kept, ours or Debezium's, instead of the stored one. It is checked as a
    /// stored one is. Committed offsets are kept in memory unless [`Self::offsets`] names a store.
    #[must_use]
    pub fn resume_at(mut self, offset: SourceOffset) -> Self {
        self.resume_at = Some(offset);
        self
    }

    /// How often one group may be given back ([`crate::AckGroup::reject`]) before that ends the engine. Default: 3.
    #[must_use]
    pub const fn max_redeliveries(mut self, times: u32) -> Self {
        self.max_redeliveries = times;
        self
    }

    /// Decides what is read at the start, with `snapshot.mode=custom`. Another mode is not changed by it.
    #[must_use]
    pub fn snapshot_rules(mut self, rules: impl SnapshotRules + 'static) -> Self {
        self.rules = Some(Arc::new(rules));
        self
    }

    /// Starts as after [`Control::pause`]: the configuration is read and the server is checked, and nothing is captured
    /// before [`Control::resume`].
    #[must_use]
    pub const fn paused(mut self) -> Self {
        self.wanted.paused = true;
        self
    }

    /// Starts with the limit of [`Control::set_rate_limit`]; with 0 nothing is captured before it is raised.
    #[must_use]
    pub const fn rate_limit(mut self, records_per_second: Option<u32>) -> Self {
        self.wanted.rate = records_per_second;
        self
    }

    /// Reads a made-up log instead of a server's.
    #[cfg(any(test, feature = "testkit"))]
    pub(crate) fn scripted(mut self, server: crate::testkit::ScriptedServer) -> Self {
        self.upstream = Upstream::Scripted(server);
        self
    }

    /// Opens the stores, reads the stored offset and starts reading. What the server says comes later, from
    /// [`Engine::next_batch`].
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] and [`Error::History`] when a store can't be opened, another engine has it, or what it
    /// holds is damaged.
    pub async fn start(self) -> Result<Engine, Error> {
        let mut config = self.config;
        let is_custom = config.snapshot.mode == SnapshotMode::Custom;
        let rules = self.rules.filter(|_| is_custom);
        if is_custom && rules.is_none() {
            return Err(Error::Start(
                "snapshot.mode=custom is for the library: give Engine::builder its snapshot_rules; on the command line \
                 use another mode, or configuration_based"
                    .to_owned(),
            ));
        }
        let history = match self.history {
            Some(history) => history,
            None => open_history(&config).await?,
        };
        let offsets: Arc<dyn OffsetStore> = match self.offsets {
            Some(offsets) => offsets,
            None if self.resume_at.is_some() => Arc::new(MemoryOffsetStore::new()),
            None => open_offsets(&config)?,
        };
        let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
        let claim = offsets.claim(&key).await?;
        let stored = match self.resume_at {
            Some(offset) => Some(offset),
            None => offsets.load(&key).await?,
        };
        if let Some(rules) = rules {
            let decided = rules.decide(StartState {
                has_offset: stored.is_some(),
                is_interrupted: stored
                    .as_ref()
                    .is_some_and(|offset| offset.snapshot == Some(SnapshotKind::Initial)),
            });
            config.snapshot.mode = SnapshotMode::ConfigurationBased(decided);
        }
        let config = Arc::new(config);
        let committer = Arc::new(Committer::new(offsets, key, stored.clone(), config.is_mariadb()));
        let (sender, batches) = mpsc::channel(config.queue.batches());
        let signals = Arc::new(Signals::new(self.wanted));
        let mut tasks = JoinSet::new();
        let mut source = Source::new(
            Arc::clone(&config),
            Arc::clone(&history),
            Arc::clone(&committer),
            stored,
            sender,
            Arc::clone(&signals),
        );
        source.upstream = self.upstream;
        tasks.spawn(source.run());
        tasks.spawn(commit_forever(
            Arc::clone(&committer),
            config.offsets.flush_interval,
            Arc::clone(&signals),
            claim.clone(),
        ));
        let control = Control::new(config, history, committer, signals);
        tasks.spawn(publish_forever(control.clone()));
        Ok(Engine {
            batches,
            control,
            tasks,
            pace: Pace::new(),
            given_out: 0,
            max_redeliveries: self.max_redeliveries,
            _claim: claim,
        })
    }
}

/// A running engine. Dropping it closes its connections; nothing that was acknowledged and committed is lost, and what
/// was not is delivered again by the next one.
#[derive(Debug)]
pub struct Engine {
    batches: mpsc::Receiver<Delivery>,
    control: Control,
    tasks: JoinSet<()>,
    pace: Pace,
    /// Number of the last group that was given out.
    given_out: u64,
    max_redeliveries: u32,
    /// Keeps other engines from the offset.
    _claim: Claim,
}

/// What comes out next.
enum Next {
    Delivery(Option<Delivery>),
    Again(Rejected),
}

impl Engine {
    /// Begins to put an engine together.
    #[must_use]
    pub const fn builder(config: Config) -> EngineBuilder {
        EngineBuilder {
            config,
            history: None,
            offsets: None,
            upstream: Upstream::Server,
            resume_at: None,
            max_redeliveries: 3,
            rules: None,
            wanted: Wanted::NONE,
        }
    }

    /// The next batch; `None` when the engine was stopped and everything read was given out, or when there is nothing
    /// more to do. While the engine is paused nothing comes. Cancel-safe: a batch is either returned or still to come.
    ///
    /// # Errors
    ///
    /// Whatever ended the engine. Nothing comes after an error.
    pub async fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let signals = Arc::clone(self.control.signals());
        let ledger = self.control.ledger().clone();
        loop {
            let wanted = signals.wanted();
            if wanted.holds() {
                signals.until(|wanted| !wanted.holds()).await;
                continue;
            }
            // Cancel-safe: no branch holds anything when it is dropped.
            let next = tokio::select! {
                biased;
                () = signals.until(|now| now.changes_pace(wanted)) => {
                    self.pace.change(wanted.rate, Instant::now());
                    continue;
                }
                next = async {
                    self.pace.ready(wanted.rate).await;
                    tokio::select! {
                        biased;
                        rejected = ledger.rejected() => Next::Again(rejected),
                        delivery = self.batches.recv() => Next::Delivery(delivery),
                    }
                } => next,
            };
            let delivery = match next {
                Next::Delivery(delivery) => delivery,
                Next::Again(rejected) => return self.again(rejected).map(Some),
            };
            match delivery {
                Some(Delivery { batch: Ok(batch), rewinds }) => {
                    signals.taken(batch.size_bytes());
                    if rewinds != signals.wanted().rewinds {
                        // It comes again.
                        continue;
                    }
                    self.pace.took(batch.len(), Instant::now());
                    self.given_out = self.given_out.max(batch.last_group());
                    return Ok(Some(batch));
                }
                Some(Delivery { batch: Err(error), .. }) => {
                    self.batches.close();
                    return Err(error);
                }
                None if signals.state() == EngineState::Stopped => {
                    return signals.take_fenced().map_or(Ok(None), |error| Err(error.into()));
                }
                // The reader's last act is to say that it stopped.
                None => return Err(Error::Bug("the task that reads the server has panicked")),
            }
        }
    }

    /// A group that was given back, once more.
    fn again(&mut self, rejected: Rejected) -> Result<Batch, Error> {
        let Rejected { data, group, times, .. } = rejected;
        let batch = Batch::again(data, group, times);
        if times > self.max_redeliveries {
            self.control.stop();
            self.batches.close();
            let identity = batch.changes().next().map(|change| change.identity().to_string());
            return Err(Error::Rejected { identity: identity.unwrap_or_default(), times });
        }
        self.pace.took(batch.len(), Instant::now());
        Ok(batch)
    }

    /// A handle to control the engine with; it can be cloned and sent anywhere.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Ends at once, as a crash would: nothing more is committed. Returns when connections and stores are free, which they
    /// are a moment later when the engine is dropped.
    pub async fn abandon(mut self) {
        self.tasks.shutdown().await;
    }

    /// Stops reading, commits what is acknowledged, and closes the connections. Batches that were not taken are
    /// dropped; they come again.
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] when the offset can't be stored.
    pub async fn close(self) -> Result<(), Error> {
        self.close_within(Duration::ZERO).await
    }

    /// As [`Self::close`], and waits up to `patience` for acknowledgements of what was given out.
    ///
    /// # Errors
    ///
    /// [`Error::OffsetStore`] when the offset can't be stored.
    pub async fn close_within(mut self, patience: Duration) -> Result<(), Error> {
        self.control.stop();
        self.batches.close();
        while self.batches.recv().await.is_some() {}
        let acknowledged = self.control.ledger().acknowledged(self.given_out);
        if !patience.is_zero() && tokio::time::timeout(patience, acknowledged).await.is_err() {
            tracing::warn!("not everything given out was acknowledged in time; it comes again");
        }
        let committed = self.control.flush().await;
        self.tasks.shutdown().await;
        publish(&self.control);
        committed
    }
}

/// Spreads records over time: after a batch the next one waits as long as its records may take at the limit.
#[derive(Debug)]
struct Pace {
    /// Records that the limit does not yet allow, as of `since`.
    owed: f64,
    since: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { owed: 0.0, since: Instant::now() }
    }

    /// Counts records that were given out.
    fn took(&mut self, records: usize, now: Instant) {
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        self.owed += f64::from(records);
        self.since = now;
    }

    /// Settles what the old limit has allowed until `now`.
    fn change(&mut self, old: Option<u32>, now: Instant) {
        let allowed = match old {
            None => self.owed,
            Some(rate) => f64::from(rate) * now.duration_since(self.since).as_secs_f64(),
        };
        self.owed = (self.owed - allowed).max(0.0);
        self.since = now;
    }

    /// Waits until the limit allows another batch.
    async fn ready(&mut self, rate: Option<u32>) {
        if let Some(rate) = rate.filter(|rate| *rate > 0)
            && self.owed > 0.0
        {
            let wait = Duration::from_secs_f64(self.owed / f64::from(rate));
            tokio::time::sleep_until(self.since + wait).await;
        }
        self.owed = 0.0;
        self.since = Instant::now();
    }
}
