//! Reading the log, over as many connections as it takes.

use std::sync::Arc;

use holdfast_binlog::event::{Event, EventData};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::txn::TxnTracker;
use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::{ServerFacts, ServerFlavor, ServerOptions};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connect::{held_of, server_options};
use super::failover::tracker_elsewhere;
use super::upstream::Opened;
use super::{Ended, Source, StreamStart};
use crate::assemble::{Assembler, AssemblerStart, Step};
use crate::control::{EngineState, LastEvent};
use crate::error::{Error, ErrorClass};
use crate::events::Events;
use crate::offset::{OffsetPoint, gtids_of, resume_of};
use crate::stores::keep_checkpoint;

impl Source {
    /// Reads the log, over as many connections as it takes.
    pub(super) async fn stream(
        &mut self,
        facts: &ServerFacts,
        start: StreamStart,
    ) -> Result<Ended, Error> {
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
            let mut result =
                self.connection(&mut facts, &mut offset, &mut assembler, track_gtids, again).await;
            again = true;
            // Rows that wait come before whatever ended the connection.
            if let Err(error) = assembler.settle().await {
                result = Err(error);
            }
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
    pub(super) fn assembler(
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
        let mut assembler = Assembler::new(AssemblerStart {
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
        assembler.render_with(self.config.queue.tasks());
        let offset = if elsewhere { assembler.offset().to_source_offset() } else { offset };
        Ok((assembler, offset))
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
        let mut log = Events::new(EventStream::new(offset.file.clone(), options));
        let signals = Arc::clone(&self.signals);
        let mut last_event = LastEvent::Unknown;
        let mut events = 0_u64;
        let mut streaming = false;
        let mut connected = false;
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
                assembler.settle().await?;
                if let Some(ended) = self.hold().await {
                    return Ok(ended);
                }
                streaming = false;
                continue;
            }
            assembler.limit_batches(wanted.batch_limit());
            let at_hand = if dump.has_buffered() {
                Some(dump.next_event().await)
            } else {
                // Batches go out half full only when nothing has come meanwhile. Now and then tokio lets a socket that
                // is always ready say so, too: the other tasks, and what is below, get their turn.
                dump.event_at_hand().await
            };
            let bytes = if let Some(bytes) = at_hand {
                bytes
            } else if assembler.is_rendering() {
                // No reason to wait for all rows that are being rendered: what is first, they or the next event, goes on.
                tokio::select! {
                    biased;
                    () = signals.until(|now| *now != wanted) => continue,
                    bytes = dump.next_event() => bytes,
                    result = assembler.take_run() => {
                        result?;
                        if let Some(ended) = self.send_ready(assembler).await {
                            return Ok(ended);
                        }
                        continue;
                    }
                }
            } else {
                assembler.settle().await?;
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
                    // A sign of life before the log has come would have to be taken before it comes.
                    () = tick(&mut heartbeat), if connected => {
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
            connected = true;
            if !streaming {
                self.streaming();
                streaming = true;
            }
            let event = match log.decode(bytes) {
                Ok(event) => event,
                Err(error) => {
                    assembler.settle().await?;
                    assembler.undecodable(error)?;
                    self.count_left_out(assembler);
                    continue;
                }
            };
            if matches!(event.data, EventData::Heartbeat(_)) {
                last_event = LastEvent::AtEnd;
            } else if event.header.timestamp != 0 && !event.header.is_artificial() {
                let logged = i64::from(event.header.timestamp);
                last_event = LastEvent::Logged(logged * 1_000_000_000);
            }
            if let EventData::FormatDescription(_) = &event.data {
                assembler.settle().await?;
                let file = (event.file, event.header.timestamp);
                self.check_birth(facts, offset, file, by_position, assembler)?;
            }
            if let EventData::TransactionPayload(_) = &event.data {
                let end = event.end;
                while let Some(inner) = log.inner() {
                    let step = match inner {
                        Ok(event) => self.take(assembler, &event).await?,
                        Err(error) => {
                            assembler.settle().await?;
                            assembler.undecodable(error)?;
                            Step::Done
                        }
                    };
                    if let Some(ended) = self.finish_step(step, assembler).await? {
                        return Ok(ended);
                    }
                }
                assembler.settle().await?;
                assembler.payload_done(end);
            } else {
                let step = self.take(assembler, &event).await?;
                if let Some(ended) = self.finish_step(step, assembler).await? {
                    return Ok(ended);
                }
            }
        }
    }

    /// Handles an event, once the rows before it are done that it can't overtake.
    async fn take(&self, assembler: &mut Assembler, event: &Event<'_>) -> Result<Step, Error> {
        if assembler.has_deferred() {
            if assembler.defers(event) {
                assembler.keep_up().await?;
            } else {
                assembler.settle().await?;
            }
        }
        assembler.handle(event, self.now_ns())
    }

    fn streaming(&mut self) {
        self.streamed = true;
        self.restarting = false;
        self.restart_failures = 0;
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
        self.count_left_out(assembler);
        Ok(self.send_ready(assembler).await)
    }

    /// Gives full batches out.
    async fn send_ready(&mut self, assembler: &mut Assembler) -> Option<Ended> {
        while let Some(batch) = assembler.take_ready() {
            self.signals.reached(assembler.offset(), LastEvent::Unknown, 0);
            if let Some(ended) = self.send(batch).await {
                return Some(ended);
            }
        }
        None
    }

    fn count_left_out(&self, assembler: &mut Assembler) {
        if let Some(counts) = assembler.take_left_out() {
            self.signals.counters.left_out(counts);
        }
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
