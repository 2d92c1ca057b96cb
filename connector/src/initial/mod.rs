//! The snapshot at the start: definitions into the history, rows into records, and the offset that streaming begins at.
//!
//! An interrupted snapshot goes on at its own position: what was done is not done again, and streaming begins where the
//! first run's snapshot was taken, so that what happened in between comes from the log.

mod progress;
mod record;
mod rows;
mod state;

use std::sync::Arc;

use holdfast_binlog::txn::RestartPoint;
use holdfast_history::ddl::DdlEvent;
use holdfast_history::offset::{SnapshotKind, SourceOffset};
use holdfast_history::recover::{Recovered, ReplayGuard};
use holdfast_history::{Ahead, HistoryRecord, TableId, Tables};
use holdfast_snapshot::{LogPosition, RowReader, ServerFacts, SnapshotOptions, Snapshotter};
use mysql_async::Conn;

use crate::assemble::{Origins, history_record, schema_change_record};
use crate::available::check_available;
use crate::batch::{BatchBuilder, RecordOrigin};
use crate::config::{Config, LockingMode, SnapshotMode, TableOrder};
use crate::convert::UniformTypes;
use crate::error::Error;
use crate::format::connect_schema::FixedSchemas;
use crate::offset::{Lineage, OffsetPoint, parse_gtids};
use crate::refresh::apply_definition;
use crate::source::{Source, StreamStart, now_ns, server_options};
use crate::stores::recover;
use progress::Progress;
use record::{RowWriter, check_transforms};
pub use state::SnapshotState;
pub(crate) use state::SnapshotTrack;

/// One snapshot that is being taken.
struct SnapshotRun {
    writer: RowWriter,
    /// Stored until the last record is acknowledged.
    incomplete: OffsetPoint,
    /// The offset of the last record.
    complete: OffsetPoint,
    batch: BatchBuilder,
    progress: Progress,
    rows: u64,
}

/// What an interrupted snapshot left.
struct Interrupted {
    offset: SourceOffset,
    recovered: Recovered,
}

impl Source {
    /// Takes a snapshot: definitions, and rows where the mode wants them. `None` when nobody takes records any more.
    ///
    /// The position is stored, marked incomplete, before the first record is given out. `interrupted` is the offset of a
    /// snapshot that was not complete.
    pub(crate) async fn take_snapshot(
        &mut self,
        mut conn: Conn,
        facts: &ServerFacts,
        interrupted: Option<SourceOffset>,
    ) -> Result<Option<StreamStart>, Error> {
        let config = Arc::clone(&self.config);
        let with_data = config.snapshot.mode.reads_rows() || self.fills_gap;
        if !config.snapshot.delay.is_zero() {
            tokio::time::sleep(config.snapshot.delay).await;
        }
        let interrupted = match interrupted {
            Some(offset) => self.interrupted_at(&mut conn, facts, offset, with_data).await?,
            None => None,
        };
        let mut readers = Vec::new();
        if with_data {
            let server = server_options(&config);
            for _ in 0..config.snapshot.max_threads.max(1) {
                let mut reader = RowReader::connect(&server).await?;
                if config.conversion.uniform != UniformTypes::Off {
                    reader.read_whole_floats();
                }
                readers.push(reader);
            }
        }
        let wants_schema = |table: &TableId| config.wants_definition(table);
        let options = SnapshotOptions {
            locking: locking(config.snapshot.locking),
            lock_timeout: config.snapshot.lock_timeout,
            by_gtids: self.tracks_gtids(facts),
            wants_schema: &wants_schema,
        };
        let mut snapshot = Snapshotter::begin(conn, readers, facts, &options).await?;
        // Definitions and position are read. Stores may be tables of the same server, which our lock would keep waiting.
        snapshot.unlock().await?;
        let mut readers = snapshot.take_readers();
        let (tables, events) = self.definitions(facts, &snapshot)?;
        self.check_guardrail(&tables)?;
        let live = (tables, events);
        let begun = match interrupted {
            Some(interrupted) => self.go_on(facts, interrupted, live, with_data)?,
            None => Err(live),
        };
        let (mut run, start, events) = match begun {
            Ok(goes_on) => goes_on,
            Err((tables, events)) => {
                self.begin_anew(facts, snapshot.position(), tables, events).await?
            }
        };
        self.committer.ledger.lock().start_at(run.incomplete.clone());
        let mut read = tables_read(&config, &start.tables);
        let remaining = read.iter().filter(|id| !run.progress.is_done(id)).count();
        crate::metrics::snapshot_tables(&config.topic_prefix, read.len(), remaining);
        if config.events.schema_changes
            && self.schema_changes(&mut run, &events, with_data).await?.is_none()
        {
            return Ok(None);
        }
        if with_data {
            self.order(&mut readers, &mut read).await?;
            if self.read_tables(readers, &mut run, &start.tables, &read).await?.is_none() {
                return Ok(None);
            }
        }
        // With or without records, the snapshot is complete once everything before is acknowledged.
        run.batch.advance(run.complete.view());
        if self.send_all(&mut run).await.is_none() {
            return Ok(None);
        }
        snapshot.finish().await?;
        crate::metrics::snapshot_tables(&config.topic_prefix, read.len(), 0);
        tracing::info!(rows = run.rows, "snapshot complete");
        if !config.snapshot.streaming_delay.is_zero() {
            tokio::time::sleep(config.snapshot.streaming_delay).await;
        }
        Ok(Some(start))
    }

    /// A snapshot from its beginning: position and definitions become durable.
    async fn begin_anew(
        &mut self,
        facts: &ServerFacts,
        position: &LogPosition,
        tables: Tables,
        events: Vec<DdlEvent>,
    ) -> Result<(SnapshotRun, StreamStart, Vec<DdlEvent>), Error> {
        let config = Arc::clone(&self.config);
        tracing::info!(
            binlog_file = position.file,
            binlog_position = position.pos,
            gtids = position.gtids,
            tables = tables.iter().count(),
            "snapshot began"
        );
        let lineage = self.snapshot_lineage(facts);
        let run = self.begin_run(
            facts,
            position,
            &lineage,
            Progress::new(&tables_read(&config, &tables)),
        )?;
        self.committer.store(&run.incomplete).await?;
        let ts_ms = now_ns().div_euclid(1_000_000);
        let stored_position = run.incomplete.to_source_offset();
        let records: Vec<HistoryRecord> = events
            .iter()
            .map(|event| history_record(event, &config, &stored_position, ts_ms))
            .collect();
        self.history.append(&records).await?;
        if !tables.iter().any(|table| config.tables.captures(&table.id)) {
            tracing::warn!(
                user = config.connection.user,
                "no table is captured: none fits the include and exclude lists, or the user may not SELECT from it"
            );
        }
        let offset = run.complete.to_source_offset();
        let (guard, origins) = (ReplayGuard::default(), Origins::new(None));
        let ahead = Ahead::default();
        Ok((
            run,
            StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere: false },
            events,
        ))
    }

    /// Whether an interrupted snapshot can go on: its position is still there, and so are its definitions.
    async fn interrupted_at(
        &mut self,
        conn: &mut Conn,
        facts: &ServerFacts,
        mut offset: SourceOffset,
        with_data: bool,
    ) -> Result<Option<Interrupted>, Error> {
        let refuse = |reason: &str| {
            tracing::warn!(
                reason,
                "the previous snapshot was cancelled before completion; a new snapshot is taken"
            );
        };
        if self.config.snapshot.mode == SnapshotMode::InitialOnly {
            refuse("without the log after it, parts of two snapshots would not fit together");
            return Ok(None);
        }
        if offset.lineage().is_some_and(|known| known != self.lineage(facts, None).server) {
            refuse("it was of another server");
            return Ok(None);
        }
        if offset.holdfast.is_none() {
            refuse("another program took it");
            return Ok(None);
        }
        match check_available(&self.config, conn, facts, &offset).await {
            Ok(()) => {}
            Err(error @ Error::PositionLost { .. }) => {
                refuse(&error.chain());
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        if !self.history.exists().await? {
            if with_data {
                refuse("its definitions were not stored");
                return Ok(None);
            }
            // Nothing was read but the position, which is kept.
            offset.snapshot = None;
            let options = crate::refresh::RefreshOptions {
                allow_replica_lag: true,
                ..crate::refresh::RefreshOptions::default()
            };
            self.refresh_at(offset.clone(), &options).await?;
        }
        let recovered =
            recover(&self.config, &*self.history, &offset, facts.lower_case_names()).await?;
        Ok(Some(Interrupted { offset, recovered }))
    }

    /// Goes on with an interrupted snapshot, or says with `Err` that the live definitions need a new one.
    #[expect(clippy::type_complexity, reason = "what it was given comes back")]
    fn go_on(
        &self,
        facts: &ServerFacts,
        interrupted: Interrupted,
        (live, events): (Tables, Vec<DdlEvent>),
        with_data: bool,
    ) -> Result<Result<(SnapshotRun, StreamStart, Vec<DdlEvent>), (Tables, Vec<DdlEvent>)>, Error>
    {
        let Interrupted { offset, recovered } = interrupted;
        let Recovered { tables, guard, report, ahead } = recovered;
        let read = tables_read(&self.config, &tables);
        let text = offset.holdfast.as_ref().and_then(|ours| ours.progress.as_deref());
        let progress = match text {
            Some(text) => Progress::restore(&read, text),
            None => Some(Progress::new(&read)),
        };
        let unlike = |id: &&TableId| tables.get(id) != live.get(id);
        let Some(progress) = progress else {
            tracing::warn!("the interrupted snapshot was of other tables; a new snapshot is taken");
            return Ok(Err((live, events)));
        };
        let changed = read.iter().filter(|id| !progress.is_done(id)).find(unlike);
        if with_data && let Some(table) = changed {
            tracing::warn!(%table, "a table changed since the interrupted snapshot; a new snapshot is taken");
            return Ok(Err((live, events)));
        }
        let done = read.iter().filter(|id| progress.is_done(id)).count();
        tracing::info!(
            binlog_file = offset.file,
            binlog_position = offset.pos,
            gtids = offset.gtids,
            tables = read.len(),
            done,
            "the interrupted snapshot goes on"
        );
        // Statements of other definitions than those at the position are not sent.
        let as_then = tables.iter().all(|table| live.get(&table.id) == Some(table))
            && tables.iter().count() == live.iter().count();
        let events = if done == 0 && as_then { events } else { Vec::new() };
        let position =
            LogPosition { file: offset.file.clone(), pos: offset.pos, gtids: offset.gtids.clone() };
        let lineage = self.lineage(facts, Some(&offset));
        let run = self.begin_run(facts, &position, &lineage, progress)?;
        let offset = run.complete.to_source_offset();
        let origins = Origins::new(Some(report.origins));
        Ok(Ok((
            run,
            StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere: false },
            events,
        )))
    }

    /// `snapshot.tables.order.by.row.count`.
    async fn order(
        &self,
        readers: &mut [RowReader],
        tables: &mut Vec<TableId>,
    ) -> Result<(), Error> {
        let order = self.config.snapshot.table_order;
        let Some(reader) = readers.first_mut().filter(|_| order != TableOrder::Disabled) else {
            return Ok(());
        };
        let rows = reader.row_estimates(tables).await?;
        let mut counted: Vec<(u64, TableId)> = rows.into_iter().zip(tables.drain(..)).collect();
        match order {
            TableOrder::Disabled => {}
            TableOrder::Ascending => counted.sort_by_key(|(rows, _)| *rows),
            TableOrder::Descending => counted.sort_by_key(|(rows, _)| std::cmp::Reverse(*rows)),
        }
        tables.extend(counted.into_iter().map(|(_, table)| table));
        Ok(())
    }

    fn begin_run(
        &self,
        facts: &ServerFacts,
        position: &LogPosition,
        lineage: &Arc<Lineage>,
        progress: Progress,
    ) -> Result<SnapshotRun, Error> {
        let file: Arc<str> = position.file.as_str().into();
        let gtids = if self.tracks_gtids(facts) {
            let text = position.gtids.as_deref().unwrap_or_default();
            let gtids = parse_gtids(text, self.config.is_mariadb()).map_err(|error| {
                Error::Start(format!("the server's GTIDs can't be read: {error}"))
            })?;
            Some(gtids.into())
        } else {
            None
        };
        let complete = OffsetPoint {
            restart: RestartPoint::closed(Arc::clone(&file), position.pos, gtids),
            ts_sec: Some(now_ns().div_euclid(1_000_000_000)),
            server_id: 0,
            birth: None,
            snapshot: None,
            progress: None,
            held: None,
            lineage: Some(Arc::clone(lineage)),
        };
        let incomplete = OffsetPoint {
            snapshot: Some(SnapshotKind::Initial),
            progress: progress.text(),
            ..complete.clone()
        };
        let batch =
            BatchBuilder::new(incomplete.clone(), lineage.name(), self.committer.ledger.clone())
                .with_chain(self.config.chain());
        let writer = RowWriter {
            config: Arc::clone(&self.config),
            file,
            pos: position.pos,
            schemas: Arc::new(FixedSchemas::new(&self.config)),
        };
        Ok(SnapshotRun { writer, incomplete, complete, batch, progress, rows: 0 })
    }

    /// Applies the snapshot's statements to an empty model.
    fn definitions(
        &self,
        facts: &ServerFacts,
        snapshot: &Snapshotter,
    ) -> Result<(Tables, Vec<DdlEvent>), Error> {
        let mut tables = Tables::new(facts.lower_case_names());

        let mut events = Vec::new();
        for statement in snapshot.statements() {
            events.extend(apply_definition(&self.config, statement, &mut tables)?);
        }
        Ok((tables, events))
    }

    /// Gives out the schema-change records. Without rows the last of them is marked as the snapshot's last record.
    async fn schema_changes(
        &mut self,
        run: &mut SnapshotRun,
        events: &[DdlEvent],
        with_data: bool,
    ) -> Result<Option<()>, Error> {
        let topic: Arc<str> = self.config.topics.schema_changes().into();
        let no_table = Arc::new(TableId::new("", ""));
        let last = events.len().saturating_sub(1);
        let writer = run.writer.clone();
        for (number, event) in events.iter().enumerate() {
            let marker = if number == last && !with_data { "last" } else { "true" };
            let source = writer.source(marker, &event.database, None);
            let origin = RecordOrigin {
                table: &no_table,
                file: &writer.file,
                pos: writer.pos,
                ordinal: 0,
                row: number as u64,
            };
            let to = (&topic, &*writer.schemas);
            schema_change_record(&mut run.batch, event, source, to, origin, now_ns())?;
            run.batch.close_group(run.incomplete.view());
            check_transforms(&mut run.batch)?;
            if self.send_full(run).await.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    /// Gives out the batch when it is full.
    async fn send_full(&mut self, run: &mut SnapshotRun) -> Option<()> {
        if run.batch.len() >= self.batch_limit()
            || self.config.queue.is_full(run.batch.len(), run.batch.size_bytes())
        {
            self.send_all(run).await
        } else {
            Some(())
        }
    }

    /// Gives out what there is; `None` when nobody takes it.
    async fn send_all(&mut self, run: &mut SnapshotRun) -> Option<()> {
        match run.batch.finish() {
            Some(batch) => match self.send(batch).await {
                Some(_) => None,
                None => Some(()),
            },
            None => Some(()),
        }
    }
}

/// The tables whose rows are read, in this order.
fn tables_read(config: &Config, tables: &Tables) -> Vec<TableId> {
    let mut read: Vec<TableId> = tables
        .iter()
        .map(|table| &table.id)
        .filter(|id| {
            config.tables.captures(id) && config.snapshot.include.includes(&id.to_string())
        })
        .cloned()
        .collect();
    config.tables.sort_for_snapshot(&mut read);
    read
}

const fn locking(mode: LockingMode) -> holdfast_snapshot::LockingMode {
    use holdfast_snapshot::LockingMode as Mode;
    match mode {
        LockingMode::Minimal => Mode::Minimal,
        LockingMode::Extended => Mode::Extended,
        LockingMode::MinimalPercona => Mode::MinimalPercona,
        LockingMode::MinimalPerconaNoTableLocks => Mode::MinimalPerconaNoTableLocks,
        LockingMode::None => Mode::None,
    }
}
