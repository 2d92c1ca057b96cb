//! Where the engine's records come from: the snapshot, then the log, over as many connections as it takes.

mod failover;
mod progress;
#[cfg(any(test, feature = "testkit"))]
mod scripted;
mod upstream;
mod verify;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_binlog::client::{ClientOptions, DumpStart, Password};
use holdfast_binlog::event::{EventData, PayloadReader};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::txn::{Gtids, TransactionGtid, TxnTracker};
use holdfast_binlog::{BinlogPosition, GtidSet};
use holdfast_history::offset::{SnapshotKind, SourceOffset};
use holdfast_history::recover::{Recovered, ReplayGuard};
use holdfast_history::store::HistoryStore;
use holdfast_history::{Ahead, Tables};
use holdfast_snapshot::{ServerFacts, ServerFlavor, ServerOptions};
use mysql_async::Conn;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::assemble::{Assembler, AssemblerStart, HeldRef, Origins, Step};
use crate::available::{check_available, counted, parse_set, tracks_gtids};
use crate::batch::Batch;
use crate::committer::Committer;
use crate::config::{Config, GuardrailAction, OnMismatch, SchemaSource, SnapshotMode};
use crate::control::{EngineState, LastEvent, Signals};
use crate::error::{DumpFailure, Error, ErrorClass};
use crate::offset::{Lineage, OffsetPoint, dump_position, file_of, gtids_of, resume_of};
use crate::refresh::{Refresh, RefreshOptions, is_damaged};
use crate::stores::{keep_checkpoint, recover};

use failover::{check_followed, ends_before, tracker_elsewhere};
pub(crate) use progress::LogProgress;
use upstream::Opened;
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
            held: false,
            appended: 0,
            lower_case_names: false,
            fills_gap: false,
            gap: false,
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
    }

    async fn capture(&mut self) -> Result<Ended, Error> {
        #[cfg(any(test, feature = "testkit"))]
        if let Upstream::Scripted(server) = &self.upstream {
            return self.capture_scripted(server.clone()).await;
        }
        let mut conn = holdfast_snapshot::connect(&server_options(&self.config)).await?;
        let facts = holdfast_snapshot::facts(&mut conn).await?;
        self.check_server(&facts)?;
        if self.signals.wanted().holds() {
            drop(conn);
            if let Some(ended) = self.hold().await {
                return Ok(ended);
            }
            conn = holdfast_snapshot::connect(&server_options(&self.config)).await?;
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
            start
        } else {
            self.signals.set_state(EngineState::Snapshot);
            let interrupted = stored.filter(|offset| offset.snapshot.is_some());
            match Box::pin(self.take_snapshot(conn, &facts, interrupted)).await? {
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

    /// Whether a snapshot comes first.
    fn wants_snapshot(&self, stored: Option<&SourceOffset>) -> Result<bool, Error> {
        let is_incomplete = |offset: &SourceOffset| offset.snapshot == Some(SnapshotKind::Initial);
        Ok(match (stored, self.config.snapshot.mode) {
            // What a redelivery begins at is complete, or is not.
            (Some(offset), _) if self.rewinds > 0 => is_incomplete(offset),
            (_, SnapshotMode::Always) => true,
            (None, SnapshotMode::Recovery) => {
                return Err(Error::Start(
                    "Could not find existing redo log information while attempting schema only recovery snapshot"
                        .to_owned(),
                ));
            }
            (stored, SnapshotMode::ConfigurationBased(configured)) => match stored {
                _ if configured.data => true,
                Some(offset) => configured.schema && is_incomplete(offset),
                None if configured.schema => true,
                None => {
                    return Err(Error::Start(
                        "no offset is stored, and snapshot.mode=configuration_based reads neither definitions nor rows; \
                         set snapshot.mode.configuration.based.snapshot.schema or .snapshot.data"
                            .to_owned(),
                    ));
                }
            },
            (None, _) => true,
            (
                Some(offset),
                SnapshotMode::Initial
                | SnapshotMode::InitialOnly
                | SnapshotMode::NoData
                | SnapshotMode::WhenNeeded
                | SnapshotMode::Custom,
            ) => is_incomplete(offset),
            (Some(_), SnapshotMode::Recovery) => false,
        })
    }

    /// Rebuilds the schema history at the stored offset, where the mode says so. The offset stays: a snapshot that reads
    /// definitions alone may never move it, or what is between it and the head is lost.
    async fn rebuild(&mut self, offset: &SourceOffset) -> Result<(), Error> {
        let wanted = match self.config.snapshot.mode {
            SnapshotMode::Recovery => true,
            SnapshotMode::ConfigurationBased(configured) => {
                configured.schema || configured.on_schema_error && !self.history.exists().await?
            }
            SnapshotMode::Initial
            | SnapshotMode::InitialOnly
            | SnapshotMode::Always
            | SnapshotMode::NoData
            | SnapshotMode::WhenNeeded
            | SnapshotMode::Custom => false,
        };
        if !wanted || self.rewinds > 0 || offset.snapshot == Some(SnapshotKind::Initial) {
            return Ok(());
        }
        self.rebuild_at(offset).await
    }

    async fn rebuild_at(&self, offset: &SourceOffset) -> Result<(), Error> {
        let options = RefreshOptions {
            // A replica that lags has the definitions of its own log all the same, and the log is looked at.
            allow_replica_lag: true,
            set_aside_damaged: self.rebuilds_what_is_damaged(),
            ..RefreshOptions::default()
        };
        self.refresh_at(offset.clone(), &options).await
    }

    /// Whether the mode says that a history which can't be read is begun anew.
    fn rebuilds_what_is_damaged(&self) -> bool {
        match self.config.snapshot.mode {
            SnapshotMode::Recovery => true,
            SnapshotMode::ConfigurationBased(configured) => configured.on_schema_error,
            SnapshotMode::Initial
            | SnapshotMode::InitialOnly
            | SnapshotMode::Always
            | SnapshotMode::NoData
            | SnapshotMode::WhenNeeded
            | SnapshotMode::Custom => false,
        }
    }

    pub(crate) async fn refresh_at(
        &self,
        offset: SourceOffset,
        options: &RefreshOptions,
    ) -> Result<(), Error> {
        let (config, history) = (Arc::clone(&self.config), Arc::clone(&self.history));
        let place = (offset.file.clone(), offset.pos);
        let report = async {
            Box::pin(Refresh::prepare_at(config, history, offset, options)).await?.apply().await
        };
        let report = self.signals.counters.refreshed(place, report.await)?;
        for warning in &report.warnings {
            tracing::warn!(warning, "while the schema history was rebuilt");
        }
        tracing::info!("schema history at the offset:\n{}", report.to_text());
        Ok(())
    }

    /// `holdfast.history.on.mismatch=refresh`: whether the definitions were rebuilt at the frontier, from where everything
    /// is given out again.
    async fn repaired(&mut self, error: &Error) -> bool {
        let repairs = self.config.history.on_mismatch == OnMismatch::Refresh;
        let table = if let Error::Mismatch(mismatch) = error {
            &mismatch.table
        } else if let Error::UnknownTable { table, .. } = error {
            table
        } else {
            return false;
        };
        let frontier = self.committer.ledger.lock().frontier().clone();
        if !repairs || !frontier.is_known() || frontier.snapshot.is_some() {
            return false;
        }
        let offset = frontier.to_source_offset();
        if self.repaired_at.as_ref() == Some(&offset) {
            tracing::error!("the definitions were rebuilt at this place already, and do not fit");
            return false;
        }
        tracing::warn!(error = error.chain(), "rebuilding the schema history at the frontier");
        let options = RefreshOptions { tables: vec![table.clone()], ..RefreshOptions::default() };
        match self.refresh_at(offset.clone(), &options).await {
            Ok(()) => {
                self.repaired_at = Some(offset);
                self.signals.redeliver();
                true
            }
            Err(refused) => {
                tracing::error!(
                    error = refused.chain(),
                    "the schema history could not be rebuilt at the frontier"
                );
                false
            }
        }
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

    /// Preconditions that would otherwise lose changes in silence.
    fn check_server(&self, facts: &ServerFacts) -> Result<(), Error> {
        let endpoint = self.endpoint();
        let (family, class, set) = match facts.flavor {
            ServerFlavor::MySql => {
                ("MySQL", "io.debezium.connector.mysql.MySqlConnector", "SET PERSIST")
            }
            // It has no SET PERSIST.
            ServerFlavor::MariaDb => {
                ("MariaDB", "io.debezium.connector.mariadb.MariaDbConnector", "SET GLOBAL")
            }
        };
        if (facts.flavor == ServerFlavor::MariaDb) != self.config.is_mariadb() {
            return Err(Error::Server {
                endpoint,
                what: format!(
                    "it is {family} {}, and connector.class is for the other family",
                    facts.version
                ),
                fix: format!("set connector.class={class}"),
            });
        }
        if !facts.is_on("log_bin") {
            return Err(Error::Server {
                endpoint,
                what: "it writes no binary log".to_owned(),
                fix: "start it with --log-bin".to_owned(),
            });
        }
        let mut rules = vec![("binlog_format", "ROW"), ("binlog_row_image", "FULL")];
        if self.config.history.source == SchemaSource::Metadata {
            rules.push(("binlog_row_metadata", "FULL"));
        }
        for (variable, wanted) in rules {
            let value = facts.variable(variable).unwrap_or(wanted);
            if !value.eq_ignore_ascii_case(wanted) {
                return Err(Error::Server {
                    endpoint,
                    what: format!("{variable} is {value}, not {wanted}"),
                    fix: format!(
                        "run {set} {variable}={wanted}, have it in the server's configuration too, and let all sessions \
                         reconnect"
                    ),
                });
            }
        }
        Ok(())
    }

    /// `guardrail.collections.max`.
    pub(crate) fn check_guardrail(&self, tables: &Tables) -> Result<(), Error> {
        let Some((most, action)) = self.config.guardrail else { return Ok(()) };
        let captured = tables.iter().filter(|table| self.config.tables.captures(&table.id)).count();
        if captured <= usize::try_from(most).unwrap_or(usize::MAX) {
            return Ok(());
        }
        let text = format!(
            "{captured} tables are captured, more than guardrail.collections.max={most}; narrow table.include.list or \
             raise the limit"
        );
        match action {
            GuardrailAction::Warn => {
                tracing::warn!("{text}");
                Ok(())
            }
            GuardrailAction::Fail => Err(Error::Start(text)),
        }
    }

    /// Goes on from a stored offset: recovers the definitions, and makes sure that the place is still there.
    async fn resume(
        &mut self,
        conn: &mut Conn,
        facts: &ServerFacts,
        offset: SourceOffset,
    ) -> Result<StreamStart, Error> {
        if offset.snapshot == Some(SnapshotKind::Initial) {
            return Err(Error::Start(
                "The connector previously stopped while taking a snapshot, but now the connector is configured to never \
                 allow snapshots. Reconfigure the connector to use snapshots initially or when needed."
                    .to_owned(),
            ));
        }
        file_of(&offset)?;
        if self.config.history.source == SchemaSource::Metadata {
            tracing::info!(
                "rows are read by the log's own metadata where the schema history does not say the same"
            );
        } else if !self.history.exists().await? {
            return Err(Error::Start(format!(
                "The db history topic is missing. You may attempt to recover it by reconfiguring the connector to \
                 recovery. (no schema history in {}, while there is an offset; `holdfast refresh --config FILE` \
                 rebuilds it there)",
                self.history.location()
            )));
        }
        let Recovered { tables, guard, report, ahead } =
            recover(&self.config, &*self.history, &offset, facts.lower_case_names()).await?;
        crate::metrics::recovered(&self.config.topic_prefix, &report);
        let most = self.config.history.checkpoint_records;
        if most > 0 && report.recovered - report.from_checkpoint >= most {
            let (config, history) = (&self.config, &*self.history);
            keep_checkpoint(config, history, &offset, facts.lower_case_names()).await;
        }
        self.check_guardrail(&tables)?;
        let mut elsewhere = self.is_elsewhere(facts, &offset);
        if elsewhere {
            check_followed(&self.config, facts, &offset)?;
        } else if check_followed(&self.config, facts, &offset).is_ok() {
            elsewhere = ends_before(conn, &offset).await?;
        }
        check_available(&self.config, conn, facts, &offset).await?;
        let lineage = if elsewhere {
            let lineage = self.next_lineage(facts, &offset);
            tracing::warn!(
                offset = offset.to_json(),
                server = lineage.server,
                epoch = lineage.epoch,
                "the offset is of another log; going on here by GTIDs"
            );
            lineage
        } else {
            self.lineage(facts, Some(&offset))
        };
        let origins = Origins::new(Some(report.origins));
        Ok(StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere })
    }

    /// The log that we read, as far as the stored offset knows it.
    pub(crate) fn lineage(
        &self,
        facts: &ServerFacts,
        offset: Option<&SourceOffset>,
    ) -> Arc<Lineage> {
        let ours = offset.and_then(|offset| offset.holdfast.as_ref());
        Arc::new(Lineage {
            server: self.identity(facts),
            epoch: ours.map_or(1, |ours| ours.epoch.max(1)),
            closed: ours.and_then(|ours| ours.closed.clone()),
            refresh_head: ours.and_then(|ours| ours.refresh_head.clone()),
        })
    }

    pub(crate) fn tracks_gtids(&self, facts: &ServerFacts) -> bool {
        tracks_gtids(&self.config, facts)
    }

    /// Reads the log, over as many connections as it takes.
    async fn stream(&mut self, facts: &ServerFacts, start: StreamStart) -> Result<Ended, Error> {
        let track_gtids = self.tracks_gtids(facts);
        self.lower_case_names = facts.lower_case_names();
        let (mut assembler, mut offset) = self.assembler(facts, start)?;
        let mut facts = facts.clone();
        let mut again = false;
        self.committer.ledger.lock().start_at(assembler.offset());
        let mut failures = 0_u32;
        loop {
            let before = assembler.offset();
            self.held = false;
            let result =
                self.connection(&mut facts, &mut offset, &mut assembler, track_gtids, again).await;
            again = true;
            if let Ok(Ended::Rewind) = result {
                return Ok(Ended::Rewind);
            }
            // What was assembled before the end belongs to the consumer, whatever ended it.
            if let Some(ended) = self.flush(&mut assembler).await {
                return Ok(ended);
            }
            if assembler.offset() != before {
                failures = 0;
            }
            let error = match result {
                Ok(ended) => return Ok(ended),
                Err(error) => error,
            };
            if self.held && error.class() == ErrorClass::Transient {
                // The server does not wait for ever for somebody who does not read.
                tracing::info!(error = error.chain(), "the connection ended while standing still");
            } else {
                let first = !self.streamed && failures == 0;
                let exhausted = self.config.max_retries.is_some_and(|most| failures >= most);
                if exhausted && failures > 0 {
                    tracing::warn!(failures, "giving up: errors.max.retries is reached");
                }
                if error.class() != ErrorClass::Transient || first || exhausted {
                    return Err(error);
                }
                failures += 1;
                tracing::warn!(
                    error = error.chain(),
                    failures,
                    "connection lost; connecting again"
                );
                self.failed(&error);
                self.signals.set_state(EngineState::Reconnecting);
                if let Some(ended) = self.wait(self.config.retry_wait).await {
                    return Ok(ended);
                }
            }
            self.signals.reconnects();
            // From where the stream is, not from what is committed: what was delivered stays delivered.
            offset = assembler.offset().to_source_offset();
            let tracker = match offset.file.as_str() {
                // The other log's place was not reached yet.
                "" => tracker_elsewhere(&offset, &facts)?,
                _ => tracker_at(&offset, &facts, track_gtids)?,
            };
            assembler.reconnect(tracker);
        }
    }

    /// What follows the log from a start, and the offset that it starts from.
    fn assembler(
        &self,
        facts: &ServerFacts,
        start: StreamStart,
    ) -> Result<(Assembler, SourceOffset), Error> {
        let track_gtids = self.tracks_gtids(facts);
        let StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere } = start;
        let tracker = if elsewhere {
            tracker_elsewhere(&offset, facts)?
        } else {
            tracker_at(&offset, facts, track_gtids)?
        };
        let birth = offset.holdfast.as_ref().and_then(|ours| ours.birth);
        let frontier = OffsetPoint {
            restart: tracker.restart_point().clone(),
            ts_sec: offset.ts_sec,
            server_id: offset.server_id.and_then(|id| u32::try_from(id).ok()).unwrap_or_default(),
            birth: birth.filter(|_| !elsewhere),
            snapshot: None,
            progress: None,
            held: offset.holdfast.as_ref().and_then(|ours| ours.held.as_deref()).map(Into::into),
            lineage: Some(Arc::clone(&lineage)),
        };
        let held = held_of(&offset)?;
        let assembler = Assembler::new(AssemblerStart {
            config: Arc::clone(&self.config),
            tables,
            guard,
            ahead,
            origins,
            tracker,
            offset: frontier,
            lineage,
            ledger: self.committer.ledger.clone(),
            held,
            track_gtids,
        });
        let offset = if elsewhere { assembler.offset().to_source_offset() } else { offset };
        Ok((assembler, offset))
    }

    async fn wait(&mut self, how_long: Duration) -> Option<Ended> {
        let rewinds = self.rewinds;
        tokio::select! {
            () = self.signals.until(|wanted| wanted.stop || wanted.rewinds != rewinds) => Some(self.interrupted()),
            () = tokio::time::sleep(how_long) => None,
        }
    }

    /// Reads the log over one connection; `again` after another one.
    async fn connection(
        &mut self,
        facts: &mut ServerFacts,
        offset: &mut SourceOffset,
        assembler: &mut Assembler,
        track_gtids: bool,
        again: bool,
    ) -> Result<Ended, Error> {
        if let Some(ended) = self.hold().await {
            return Ok(ended);
        }
        let Opened { mut dump, checksum, by_position } =
            self.open_dump(facts, offset, assembler, track_gtids, again).await?;
        let options = StreamOptions { checksum: Some(checksum), ..StreamOptions::default() };
        let mut stream = EventStream::new(offset.file.clone(), options);
        let mut payload = PayloadReader::default();
        let signals = Arc::clone(&self.signals);
        let mut last_event = LastEvent::Unknown;
        let mut events = 0_u64;
        let mut streaming = false;
        // At most one `heartbeat.action.query` at a time; dropped with the connection.
        let mut beat = JoinSet::new();
        let mut heartbeat = self.config.events.heartbeat_interval.map(|interval| {
            let mut timer = tokio::time::interval_at(Instant::now() + interval, interval);
            timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            timer
        });
        let mut beaten = false;
        loop {
            let wanted = signals.wanted();
            if wanted.stop || wanted.rewinds != self.rewinds {
                return Ok(self.interrupted());
            }
            if wanted.holds() {
                if let Some(ended) = self.hold().await {
                    return Ok(ended);
                }
                streaming = false;
                continue;
            }
            assembler.limit_batches(wanted.batch_limit());
            let bytes = if dump.has_buffered() {
                dump.next_event().await
            } else {
                signals.reached(assembler.offset(), last_event, self.now_ns());
                signals.counters.events(std::mem::take(&mut events));
                if let Some(ended) = self.flush(assembler).await {
                    return Ok(ended);
                }
                // Between two heartbeats there is time for events, however long giving one out has taken.
                if std::mem::take(&mut beaten)
                    && let Some(timer) = &mut heartbeat
                {
                    timer.reset();
                }
                // Cancel-safe: a dropped `next_event` keeps its bytes, the other branches hold no state.
                tokio::select! {
                    biased;
                    () = signals.until(|now| *now != wanted) => continue,
                    Some(_) = beat.join_next() => continue,
                    () = tick(&mut heartbeat) => {
                        assembler.heartbeat(self.now_ns())?;
                        beaten = true;
                        if let Some(query) = &self.config.events.heartbeat_query
                            && beat.is_empty()
                        {
                            beat.spawn(heartbeat_query(server_options(&self.config), query.clone()));
                        }
                        continue;
                    }
                    bytes = dump.next_event() => bytes,
                }
            };
            let bytes = bytes.map_err(|error| self.dump_failed(error))?;
            let Some(bytes) = bytes else {
                return if self.upstream.is_complete() {
                    Ok(Ended::Stopped)
                } else {
                    Err(Error::DumpEnded)
                };
            };
            events += 1;
            if !streaming {
                self.streaming();
                streaming = true;
            }
            let event = stream.decode(bytes)?;
            if matches!(event.data, EventData::Heartbeat(_)) {
                last_event = LastEvent::AtEnd;
            } else if event.header.timestamp != 0 && !event.header.is_artificial() {
                let logged = i64::from(event.header.timestamp);
                last_event = LastEvent::Logged(logged * 1_000_000_000);
            }
            if let EventData::FormatDescription(_) = &event.data {
                let file = (event.file, event.header.timestamp);
                self.check_birth(facts, offset, file, by_position, assembler)?;
            }
            if let EventData::TransactionPayload(transaction) = &event.data {
                payload.open(&event, transaction)?;
                let span = event.span();
                while let Some(inner) = payload.next_event()? {
                    let event = stream.decode_nested(inner, span)?;
                    let step = assembler.handle(&event, self.now_ns())?;
                    if let Some(ended) = self.finish_step(step, assembler).await? {
                        return Ok(ended);
                    }
                }
                assembler.payload_done(span.end);
            } else {
                let step = assembler.handle(&event, self.now_ns())?;
                if let Some(ended) = self.finish_step(step, assembler).await? {
                    return Ok(ended);
                }
            }
        }
    }

    fn streaming(&mut self) {
        self.streamed = true;
        self.signals.set_state(EngineState::Streaming);
    }

    /// What an event leaves to do: a statement becomes durable before it is applied, full batches go out.
    async fn finish_step(
        &mut self,
        step: Step,
        assembler: &mut Assembler,
    ) -> Result<Option<Ended>, Error> {
        if let Step::Ddl(pending) = step {
            if !pending.records.is_empty() {
                self.history.append(&pending.records).await?;
                self.appended += pending.records.len();
                self.keep_checkpoint().await;
            }
            assembler.apply_ddl(*pending, self.now_ns())?;
            self.signals.counters.schema_change();
            self.signals.counters.replayed(assembler.take_replayed());
        }
        while let Some(batch) = assembler.take_ready() {
            self.signals.reached(assembler.offset(), LastEvent::Unknown, 0);
            if let Some(ended) = self.send(batch).await {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    /// Writes a checkpoint of the history after so many records, as of what is committed: a start begins there.
    async fn keep_checkpoint(&mut self) {
        let most = self.config.history.checkpoint_records;
        if most == 0 || self.appended < most {
            return;
        }
        self.appended = 0;
        if let Some(offset) = self.committer.stored().await {
            let (config, history) = (&self.config, &*self.history);
            keep_checkpoint(config, history, &offset, self.lower_case_names).await;
        }
    }

    /// Gives out everything that was assembled.
    async fn flush(&mut self, assembler: &mut Assembler) -> Option<Ended> {
        while let Some(batch) = assembler.take_batch() {
            if let Some(ended) = self.send(batch).await {
                return Some(ended);
            }
        }
        None
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

    async fn dump_start(
        &self,
        facts: &ServerFacts,
        offset: &SourceOffset,
        track_gtids: bool,
    ) -> Result<DumpStart, Error> {
        if track_gtids {
            match gtids_of(offset, self.config.is_mariadb())? {
                Some(Gtids::MySql(set)) if !set.is_empty() => {
                    let purged = self.purged_gtids(facts).await?;
                    // Sources that the offset does not know start behind what was purged of them.
                    let mut start = parse_set(purged.as_deref())?;
                    start.overlay(&counted(&self.config, &set));
                    // Transactions that are prepared and undecided are read again.
                    for held in held_of(offset)? {
                        if let Some(TransactionGtid::MySql(gtid)) = held.gtid {
                            let mut one = GtidSet::new();
                            one.add(gtid).map_err(|error| Error::Start(error.to_string()))?;
                            start = start.subtract(&one);
                        }
                    }
                    return Ok(DumpStart::Gtids(start));
                }
                // A position names no single transactions: those that are held are read again by their place.
                Some(Gtids::MariaDb(mut pos)) if !pos.is_empty() && held_of(offset)?.is_empty() => {
                    let sources = &self.config.gtids.sources;
                    pos.retain(|gtid| {
                        sources.includes(&format!("{}-{}", gtid.domain, gtid.server))
                    });
                    return Ok(DumpStart::MariaDbGtids(pos));
                }
                Some(_) | None => {}
            }
        }
        if let Some(first) = HeldRef::first(&held_of(offset)?) {
            let file = first.file.parse().map_err(|error| {
                Error::Start(format!(
                    "the stored offset's holdfast_held names no binlog file: {error}"
                ))
            })?;
            return Ok(DumpStart::Position(BinlogPosition::new(file, first.position.max(4))));
        }
        let file = file_of(offset)?;
        Ok(DumpStart::Position(BinlogPosition::new(file, dump_position(offset).max(4))))
    }

    fn endpoint(&self) -> String {
        format!("{}:{}", self.config.connection.hostname, self.config.connection.port)
    }

    fn dump_failed(&self, source: holdfast_binlog::Error) -> Error {
        Error::Dump(Box::new(DumpFailure {
            endpoint: self.endpoint(),
            user: self.config.connection.user.clone(),
            server_id: self.config.connection.server_id,
            source,
        }))
    }
}

/// How queries reach the server.
pub(crate) fn server_options(config: &Config) -> ServerOptions {
    let connection = &config.connection;
    ServerOptions {
        host: connection.hostname.clone(),
        port: connection.port,
        user: connection.user.clone(),
        password: connection
            .password
            .as_ref()
            .map(|secret| secret.expose().to_owned())
            .unwrap_or_default(),
        tls: connection.tls.clone(),
        connect_timeout: connection.connect_timeout,
        initial_statements: connection.initial_statements.clone(),
    }
}

/// How the log is read.
pub(crate) fn client_options(config: &Config) -> ClientOptions {
    let connection = &config.connection;
    let mut options = ClientOptions::new(
        connection.hostname.clone(),
        connection.port,
        connection.user.clone(),
        connection.server_id,
    );
    if let Some(secret) = &connection.password {
        options.password = Password::new(secret.expose());
    }
    options.tls = connection.tls.clone();
    options.connect_timeout = connection.connect_timeout;
    // As Debezium: the server says that it is alive in 0.8 of the time after which silence is an error.
    options.silence_timeout = connection.keep_alive;
    if let Some(silence) = connection.keep_alive {
        options.heartbeat_period = silence.mul_f64(0.8);
    }
    options.annotate_rows = config.events.query;
    options.net_write_timeout = connection.net_write_timeout.map(Duration::from_secs);
    options.net_read_timeout = connection.net_read_timeout.map(Duration::from_secs);
    options
}

/// `heartbeat.action.query`, on a connection of its own. A failure is logged: the next heartbeat tries again.
async fn heartbeat_query(options: ServerOptions, query: String) {
    let result = async {
        let mut conn = holdfast_snapshot::connect(&options).await?;
        holdfast_snapshot::execute(&mut conn, &query).await
    };
    if let Err(error) = result.await {
        tracing::warn!(error = Error::from(error).chain(), "heartbeat.action.query failed");
    }
}

/// Waits for the next heartbeat; for ever where there are none.
async fn tick(timer: &mut Option<tokio::time::Interval>) {
    match timer {
        Some(timer) => {
            timer.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Prepared XA transactions that a stored offset names.
fn held_of(offset: &SourceOffset) -> Result<Vec<HeldRef>, Error> {
    let text = offset.holdfast.as_ref().and_then(|ours| ours.held.as_deref()).unwrap_or_default();
    HeldRef::parse_all(text).ok_or_else(|| {
        Error::Start(
            "the stored offset's holdfast_held can't be read; restore the offset".to_owned(),
        )
    })
}

/// Asks the server about itself.
pub(crate) async fn server_facts(config: &Config) -> Result<ServerFacts, Error> {
    let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
    Ok(holdfast_snapshot::facts(&mut conn).await?)
}

/// A tracker at a stored offset.
fn tracker_at(
    offset: &SourceOffset,
    facts: &ServerFacts,
    track_gtids: bool,
) -> Result<TxnTracker, Error> {
    let mariadb = facts.flavor == ServerFlavor::MariaDb;
    let gtids = if track_gtids { gtids_of(offset, mariadb)? } else { None };
    let tracker = TxnTracker::new(offset.file.as_str().into(), offset.pos, gtids);
    Ok(tracker.resuming(resume_of(offset)?))
}

/// Nanoseconds since the epoch.
pub(crate) fn now_ns() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}
