//! The rows of a large transaction, rendered by several tasks.
//!
//! ```text
//! rows events ─▶ run ─▶ task ─┐
//!                run ─▶ task ─┼─▶ batches, in the order of the log
//!                run … filling
//! ```
//!
//! A *run* is a few consecutive rows events of one unit, kept as bytes until a task decodes and renders them. Only what is
//! plain goes this way ([`Assembler::defers`]); before anything else is looked at, all runs are done and their batches taken
//! over ([`Assembler::settle`]), so that every other part of the assembler finds what one task alone would have left. The
//! records, their groups and their offsets are the same either way.
//!
//! In memory are [`RUNS_PER_TASK`] runs for each task, two more, and what becomes of them.

use std::collections::VecDeque;
use std::sync::Arc;

use holdfast_binlog::event::rows::{RowsEvent, RowsKind, StoredRows};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::event::{Event, EventData};
use holdfast_binlog::row::Row;
use tokio::task::JoinHandle;

use super::context::{Resolved, TableContext};
use super::render::{Renderer, RowChange, RowsPlace, convert_error, row_error, row_reader};
use super::rows::{is_skipped, missing_column};
use super::{Assembler, Place};
use crate::batch::{BatchBuilder, HeldRecords};
use crate::config::{BATCH_BYTES, Config};
use crate::convert::FailureMode;
use crate::error::Error;
use crate::format::connect_schema::FixedSchemas;
use crate::format::debezium_json::EnvelopeEnd;

/// Bytes of rows in a run: the first ones, and the bounds for those after them, which are to make one batch each.
const RUN_BYTES: usize = 32 << 10;
const LEAST_RUN_BYTES: usize = 8 << 10;
const MOST_RUN_BYTES: usize = 64 << 10;

/// Most bytes of a rows event that is kept: larger ones are rendered at once, so that there is no second copy of them.
const EVENT_BYTES: usize = 1 << 20;

/// Bytes of a unit's rows events that are rendered at once; what follows goes into runs.
const FROM_BYTES: usize = 128 << 10;

/// Runs that are being rendered or wait for their turn, for each task: with fewer the tasks stand still while the one that
/// reads the log does something else.
const RUNS_PER_TASK: usize = 2;

/// What is rendered by other tasks.
#[derive(Debug)]
pub(super) struct Parallel {
    /// Tasks at once; with one nothing is deferred.
    tasks: usize,
    run_bytes: usize,
    /// Bytes of the open unit's rows events that were rendered at once.
    unit_bytes: usize,
    /// The run that is filled.
    run: Run,
    running: VecDeque<JoinHandle<Rendered>>,
    /// The memory of runs that are done.
    spare: Vec<Run>,
    /// The table map of the last rows event.
    map: Option<Arc<TableMap>>,
}

/// Consecutive rows events of one unit.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    events: Vec<RunEvent>,
    /// What offsets say beside the unit.
    event_us: i64,
    server_id: u32,
}

#[derive(Debug)]
struct RunEvent {
    rows: StoredRows,
    map: Arc<TableMap>,
    context: Arc<TableContext>,
    end: EnvelopeEnd,
    position: u64,
    /// Number of the rows event in its unit.
    ordinal: u64,
    /// Events of the unit before it.
    events: u64,
}

/// A run with all that rendering it needs.
#[derive(Debug)]
struct Job {
    run: Run,
    config: Arc<Config>,
    schemas: Arc<FixedSchemas>,
    lineage: Arc<str>,
    file: Arc<str>,
    batch: BatchBuilder,
}

/// What became of a run.
#[derive(Debug)]
struct Rendered {
    /// Its records, cut into batches.
    parts: Vec<HeldRecords>,
    rows: u64,
    run: Run,
    /// Why it ends behind `parts`.
    error: Option<Error>,
}

impl Parallel {
    pub(super) fn off() -> Self {
        Self {
            tasks: 1,
            run_bytes: RUN_BYTES,
            unit_bytes: 0,
            run: Run::default(),
            running: VecDeque::new(),
            spare: Vec::new(),
            map: None,
        }
    }

    /// A unit opens.
    pub(super) const fn unit_opens(&mut self) {
        self.unit_bytes = 0;
    }

    /// A rows event is rendered at once.
    pub(super) const fn count(&mut self, rows: &RowsEvent<'_>) {
        self.unit_bytes = self.unit_bytes.saturating_add(rows.rows_bytes().len());
    }
}

impl Assembler {
    /// From now on so many tasks render rows. Where records depend on those before them, one alone does.
    pub(crate) fn render_with(&mut self, tasks: usize) {
        let config = &self.config;
        let is_plain = config.chain().is_none()
            && !config.events.transaction_metadata
            && !config.events.skip_unchanged
            && config.events.on_processing_failure == FailureMode::Fail;
        self.parallel.tasks = if is_plain { tasks } else { 1 };
    }

    /// Whether rows wait to be rendered, or are.
    pub(crate) fn has_deferred(&self) -> bool {
        !self.parallel.run.events.is_empty() || !self.parallel.running.is_empty()
    }

    /// Whether rows are being rendered.
    pub(crate) fn is_rendering(&self) -> bool {
        !self.parallel.running.is_empty()
    }

    /// Whether an event can be handled while rows wait.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a new kind of event waits, which is always right"
    )]
    pub(crate) fn defers(&mut self, event: &Event<'_>) -> bool {
        match &event.data {
            EventData::TableMap(_) => true,
            EventData::Rows { rows, table } => self.deferrable(rows, table).is_some(),
            _ => false,
        }
    }

    /// The table of rows that may be rendered later, by another task.
    pub(super) fn deferrable(
        &mut self,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Option<Arc<TableContext>> {
        let Self { parallel, tracker, xa, .. } = &*self;
        let is_plain = parallel.tasks > 1
            && parallel.unit_bytes >= FROM_BYTES
            && tracker.is_open()
            && !tracker.is_resuming()
            && !tracker.skips_row()
            && !(self.filtered || self.passing)
            && !(xa.is_open() || xa.is_replaying() || xa.is_catching_up())
            && self.verification.is_none()
            && self.batch_limit == usize::MAX
            && rows.kind() != RowsKind::PartialUpdate
            && rows.rows_bytes().len() <= EVENT_BYTES
            && !is_skipped(self.config.events.skipped, rows.kind());
        if !is_plain {
            return None;
        }
        match self.resolve(map) {
            Ok(Resolved::Captured(context)) => {
                missing_column(rows, &context.table).is_none().then_some(context)
            }
            // An error comes again when the event is handled.
            Ok(_) | Err(_) => None,
        }
    }

    /// Keeps rows to be rendered later. They count as done from now on, but for their number.
    pub(super) fn defer(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        context: Arc<TableContext>,
        now_ns: i64,
    ) {
        let run = &self.parallel.run;
        let differs = (run.event_us, run.server_id) != (self.event_us, self.server_id);
        if differs && !run.events.is_empty() {
            self.start_run();
        }
        self.render_end(event, &context, now_ns);
        let Self { parallel, tracker, .. } = self;
        let known = parallel.map.take();
        let same =
            |known: &Arc<TableMap>| known.table_id() == map.table_id() && known.same_as(map.body());
        let map = known.filter(same).unwrap_or_else(|| Arc::new(map.clone()));
        parallel.map = Some(Arc::clone(&map));
        let run = &mut parallel.run;
        (run.event_us, run.server_id) = (self.event_us, self.server_id);
        let rows = rows.store(&mut run.bytes);
        run.events.push(RunEvent {
            rows,
            map,
            context,
            end: self.envelope_end.clone(),
            position: event.position,
            ordinal: tracker.rows_events(),
            events: tracker.restart_point().events,
        });
        if run.bytes.len() >= parallel.run_bytes {
            self.start_run();
        }
    }

    fn job(&mut self) -> Job {
        let next = self.parallel.spare.pop().unwrap_or_default();
        Job {
            run: std::mem::replace(&mut self.parallel.run, next),
            config: Arc::clone(&self.config),
            schemas: Arc::clone(&self.schemas),
            lineage: Arc::clone(&self.lineage_name),
            file: Arc::clone(self.tracker.file()),
            batch: self.batch.sibling(),
        }
    }

    fn start_run(&mut self) {
        let job = self.job();
        self.parallel.running.push_back(tokio::spawn(async move { job.render() }));
    }

    /// Takes over the runs that are done, and waits while more are being rendered than there are to be.
    ///
    /// # Errors
    ///
    /// What the rows of the run lead to, behind the batches of what comes before it.
    pub(crate) async fn keep_up(&mut self) -> Result<(), Error> {
        let most = RUNS_PER_TASK * self.parallel.tasks;
        while let Some(first) = self.parallel.running.front()
            && (first.is_finished() || self.parallel.running.len() > most)
        {
            self.take_run().await?;
        }
        Ok(())
    }

    /// Renders everything that waits.
    ///
    /// # Errors
    ///
    /// As [`Self::keep_up`].
    pub(crate) async fn settle(&mut self) -> Result<(), Error> {
        while !self.parallel.running.is_empty() {
            self.take_run().await?;
        }
        if !self.parallel.run.events.is_empty() {
            let rendered = self.job().render();
            self.take_over(rendered)?;
        }
        Ok(())
    }

    /// Takes over what became of the first run. Cancel-safe: it stays until it is done.
    ///
    /// # Errors
    ///
    /// As [`Self::keep_up`].
    pub(crate) async fn take_run(&mut self) -> Result<(), Error> {
        let Some(first) = self.parallel.running.front_mut() else { return Ok(()) };
        let rendered = first.await;
        self.parallel.running.pop_front();
        let rendered = rendered.map_err(|_| Error::Bug("a task that renders rows has ended"))?;
        self.take_over(rendered)
    }

    fn take_over(&mut self, rendered: Rendered) -> Result<(), Error> {
        let Rendered { parts, rows, mut run, error } = rendered;
        let Run { event_us, server_id, .. } = run;
        let rendered: usize = parts.iter().map(HeldRecords::size_bytes).sum();
        if let Some(wanted) = BATCH_BYTES.saturating_mul(run.bytes.len()).checked_div(rendered) {
            self.parallel.run_bytes = wanted.clamp(LEAST_RUN_BYTES, MOST_RUN_BYTES);
        }
        run.bytes.clear();
        run.events.clear();
        if run.bytes.capacity() <= EVENT_BYTES
            && self.parallel.spare.len() <= RUNS_PER_TASK * self.parallel.tasks
        {
            self.parallel.spare.push(run);
        }
        let before = self.tracker.rows_done();
        for records in parts {
            // What was rendered at once comes first.
            self.ready.extend(self.batch.finish());
            let Self { batch, tracker, xa, birth, lineage, .. } = self;
            let (snapshot, birth) = (self.snapshot, birth.as_ref());
            let place = Place { tracker, xa, birth, event_us, server_id, snapshot, lineage };
            batch.adopt(records, before, place.view_with(None));
        }
        self.tracker.rows_apart(rows);
        self.finish_full();
        if error.is_some() {
            // What comes behind an error is not delivered.
            self.parallel.run = Run::default();
            self.parallel.running.clear();
        }
        error.map_or(Ok(()), Err)
    }
}

impl Job {
    fn render(mut self) -> Rendered {
        let (mut parts, mut rows) = (Vec::new(), 0);
        let error = self.events(&mut parts, &mut rows).err();
        parts.extend(self.batch.take_closed());
        Rendered { parts, rows, run: self.run, error }
    }

    fn events(&mut self, parts: &mut Vec<HeldRecords>, rows: &mut u64) -> Result<(), Error> {
        let Self { run, config, schemas, lineage, file, batch } = self;
        let mut row = Row::new();
        for event in &run.events {
            let RunEvent { map, context, end, position, ordinal, .. } = event;
            let stored = event.rows.load(&run.bytes);
            let stored = stored.ok_or(Error::Bug("rows that wait were changed"))?;
            let place = RowsPlace { file, position: *position, ordinal: *ordinal };
            let failed = |error| row_error((file, *position), map, Some(context), error);
            let mut reader = row_reader((file, *position), &stored, map)?;
            let mut index = 0;
            while reader.read(&mut row).map_err(failed)? {
                *rows += 1;
                let change = RowChange { place, context, kind: stored.kind(), row: &row, index };
                let mut renderer =
                    Renderer { config, schemas, lineage, end, transaction: None, batch };
                if let Err(error) = renderer.row(&change) {
                    batch.drop_group();
                    return Err(convert_error(&change, error));
                }
                index += 1;
                batch.close_counted(event.events, index, *rows);
                if config.queue.is_full(batch.len(), batch.size_bytes()) {
                    parts.extend(batch.take_closed());
                }
            }
        }
        Ok(())
    }
}
