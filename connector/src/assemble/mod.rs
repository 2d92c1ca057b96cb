//! Events to change records: one physical row to its records and its ack group.
//!
//! The assembler follows the log event by event. It keeps the units, the definitions, and the batch that is being
//! filled, and does no I/O: a statement that changes the schema comes back as a [`PendingDdl`], and the engine makes it
//! durable before it is applied, so that no row is delivered whose definition a restart could not find.

mod context;
mod left_out;
mod origins;
mod parallel;
mod render;
mod rows;
mod statement;
mod verify;
mod xa;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_binlog::event::mariadb::{AlterPhase, MariaDbGtidEvent};
use holdfast_binlog::event::table_map::{Dialect, TableMap};
use holdfast_binlog::event::{Event, EventData, EventType, GtidEvent};
use holdfast_binlog::row::Row;
use holdfast_binlog::txn::{Gtids, Opened, RestartPoint, TransactionGtid, TxnTracker};
use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::cross_check;
use holdfast_history::offset::{LogPlace, SnapshotKind};
use holdfast_history::recover::ReplayGuard;
use holdfast_history::{Ahead, TableId, Tables};

pub(crate) use context::TableContext;
pub(crate) use left_out::{LeftOut, Why};
pub(crate) use origins::Origins;
pub(crate) use render::{write_identity_header, write_key};
pub(crate) use rows::Nothing;
pub(crate) use statement::{PendingDdl, history_record, schema_change_record};
pub(crate) use verify::{FirstRows, LogScan, ScannedStatement, Verification};
pub(crate) use xa::HeldRef;

use context::Resolved;
use parallel::Parallel;
use xa::XaState;

use crate::ack::SharedLedger;
use crate::batch::{Batch, BatchBuilder, RecordHead, RecordOrigin};
use crate::config::{Config, SchemaSource};
use crate::error::Error;
use crate::filter::Selection;
use crate::format::connect_schema::FixedSchemas;
use crate::format::debezium_json::{self as json, EnvelopeEnd};
use crate::offset::{Lineage, OffsetPoint, OffsetView};
use crate::record::RecordKind;
use crate::refresh::from_log;
use crate::source::check_not_ahead;
use crate::transaction::Transaction;

/// What we print as `source.version`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The wire table ids whose definition is remembered; more are looked up again.
const MAX_RESOLVED: usize = 10_000;

/// What the engine has to do after an event.
#[derive(Debug)]
#[must_use]
pub(crate) enum Step {
    /// Nothing more.
    Done,
    /// Append the history records, then call [`Assembler::apply_ddl`].
    Ddl(Box<PendingDdl>),
}

/// What the assembler starts from.
#[derive(Debug)]
pub(crate) struct AssemblerStart {
    pub(crate) config: Arc<Config>,
    pub(crate) tables: Tables,
    pub(crate) guard: ReplayGuard,
    /// Definitions that a refresh has read further on in the log.
    pub(crate) ahead: Ahead,
    pub(crate) origins: Origins,
    pub(crate) tracker: TxnTracker,
    pub(crate) offset: OffsetPoint,
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) ledger: SharedLedger,
    /// Prepared XA transactions that the offset names.
    pub(crate) held: Vec<HeldRef>,
    /// Whether GTIDs are recorded: the server has them and nobody said to ignore them.
    pub(crate) track_gtids: bool,
}

/// Follows the log and fills batches.
#[derive(Debug)]
pub(crate) struct Assembler {
    config: Arc<Config>,
    tables: Tables,
    guard: ReplayGuard,
    ahead: Ahead,
    origins: Origins,
    /// Set when definitions are only checked and no row is delivered.
    verification: Option<Verification>,
    tracker: TxnTracker,
    batch: BatchBuilder,
    /// Records of a batch at most, beside what the configuration says.
    batch_limit: usize,
    ready: VecDeque<Batch>,
    lineage: Arc<Lineage>,
    lineage_name: Arc<str>,
    track_gtids: bool,
    resolved: HashMap<u64, (TableId, Resolved)>,
    contexts: HashMap<TableId, Arc<TableContext>>,
    /// What the log itself says of tables, each with the table map that said it.
    told: HashMap<TableId, (Box<[u8]>, Arc<TableContext>)>,
    no_table: Arc<TableId>,
    schema_topic: Arc<str>,
    transaction_topic: Arc<str>,
    heartbeat_topic: Arc<str>,
    schemas: Arc<FixedSchemas>,
    /// Time of the change at the source, microseconds.
    event_us: i64,
    /// Whether `event_us` came from a GTID event, which then counts for the whole transaction.
    gtid_time: bool,
    server_id: u32,
    /// When the current file was made, once its format description has come.
    birth: Option<(Arc<str>, u32)>,
    snapshot: Option<SnapshotKind>,
    /// Whether the rows of the announced or open unit are left out, because its source does not count.
    filtered: bool,
    /// Whether the statement of the announced unit has no effect.
    ignore_statement: bool,
    /// Whether the announced or open unit is done already: it is passed over.
    passing: bool,
    /// Statements met again, since they were last asked for.
    replayed: u64,
    /// Rows left out, since they were last asked for.
    left_out: LeftOut,
    thread: Option<u64>,
    query: Option<String>,
    gtid_text: String,
    gtid_of_text: Option<TransactionGtid>,
    transaction: Option<Transaction>,
    xa: XaState,
    row: Row<'static>,
    envelope_end: EnvelopeEnd,
    parallel: Parallel,
}

impl Assembler {
    pub(crate) fn new(start: AssemblerStart) -> Self {
        let AssemblerStart {
            config,
            tables,
            guard,
            ahead,
            origins,
            tracker,
            offset,
            lineage,
            ledger,
            held,
            track_gtids,
        } = start;
        let lineage_name = lineage.name();
        let snapshot = offset.snapshot;
        let server_id = offset.server_id;
        let birth = offset.birth.map(|birth| (Arc::clone(&offset.restart.unit.file), birth));
        Self {
            batch: BatchBuilder::new(offset, Arc::clone(&lineage_name), ledger)
                .with_chain(config.chain()),
            batch_limit: usize::MAX,
            ready: VecDeque::new(),
            resolved: HashMap::new(),
            contexts: HashMap::new(),
            told: HashMap::new(),
            no_table: Arc::new(TableId::new("", "")),
            schema_topic: config.topics.schema_changes().into(),
            transaction_topic: config.topics.transactions().into(),
            heartbeat_topic: config.topics.heartbeats().into(),
            schemas: Arc::new(FixedSchemas::new(&config)),
            event_us: 0,
            gtid_time: false,
            server_id,
            birth,
            snapshot,
            filtered: false,
            ignore_statement: false,
            passing: false,
            replayed: 0,
            left_out: LeftOut::default(),
            thread: None,
            query: None,
            gtid_text: String::new(),
            gtid_of_text: None,
            transaction: None,
            xa: XaState::from_offset(held),
            row: Row::new(),
            envelope_end: EnvelopeEnd::default(),
            parallel: Parallel::off(),
            config,
            tables,
            guard,
            ahead,
            origins,
            verification: None,
            tracker,
            lineage,
            lineage_name,
            track_gtids,
        }
    }

    /// Takes the next event. `now_ns` is the time of processing, nanoseconds since the epoch. A compressed
    /// transaction's inner events come here one by one before the payload event itself.
    pub(crate) fn handle(&mut self, event: &Event<'_>, now_ns: i64) -> Result<Step, Error> {
        self.batch.stream_moves();
        if event.header.server_id != 0 && !event.header.is_artificial() {
            self.server_id = event.header.server_id;
        }
        let step = if self.catches_up(event, now_ns)? {
            Step::Done
        } else {
            self.dispatch(event, now_ns)?
        };
        if let Some(failure) = self.batch.take_failure() {
            let place = format!("{} at {}", event.file, event.position);
            return Err(Error::Transform { failure, place });
        }
        // A format description is sent again at each connection, with the time at which its file was made.
        let is_of_now = !event.header.is_artificial()
            && event.header.event_type != EventType::FormatDescription;
        if is_of_now && !self.gtid_time && event.header.timestamp != 0 {
            self.event_us = i64::from(event.header.timestamp) * 1_000_000;
        }
        self.batch.stream_moves();
        Ok(step)
    }

    fn dispatch(&mut self, event: &Event<'_>, now_ns: i64) -> Result<Step, Error> {
        match &event.data {
            EventData::Rotate(rotate) => {
                let file = rotate.file;
                if **self.tracker.file() != *file {
                    self.resolved.clear();
                }
                self.tracker.rotate(file.into(), rotate.position);
                self.note_progress();
            }
            EventData::Gtid(gtid) => {
                let id = gtid.gtid.filter(|_| self.track_gtids).map(TransactionGtid::MySql);
                self.note_gtid(gtid);
                self.replays(event, id);
                // A dump that leaves sources out of its start set gets all their transactions again. (On MariaDB a
                // lower number of a domain may be another server's, and new.)
                self.passes_over(event, id);
                self.tracker.gtid(event.position, id);
            }
            EventData::MariaDbGtid(gtid) => {
                let id = self.track_gtids.then_some(TransactionGtid::MariaDb(gtid.gtid));
                self.note_mariadb_gtid(gtid);
                self.replays(event, id);
                self.tracker.gtid(event.position, id);
                // The first of two logged halves changes nothing yet, and a failed one never does.
                self.ignore_statement =
                    matches!(gtid.alter, Some(AlterPhase::Start | AlterPhase::Rollback(_)));
                if gtid.is_standalone() {
                    self.tracker.standalone();
                } else {
                    let prepared = gtid.flags & MariaDbGtidEvent::XA_PREPARED != 0;
                    self.begin(event, None, !prepared)?;
                    if let Some(xid) = gtid.xid.filter(|_| prepared) {
                        self.xa_started(event, xid.to_string());
                    }
                }
            }
            EventData::Query(query) => return self.query(event, query, now_ns),
            EventData::TableMap(map) => {
                self.resolve(map)?;
            }
            EventData::Rows { rows, table } => self.rows(event, rows, table, now_ns)?,
            EventData::Xid(_) => self.close(event.end)?,
            EventData::XaPrepare(prepare) => self.xa_prepared(event.end, prepare.one_phase)?,
            EventData::RowsQuery(text) if self.config.events.query => {
                self.query = Some(String::from_utf8_lossy(text).into_owned());
            }
            EventData::Incident(incident) => {
                return Err(Error::Incident {
                    file: event.file.to_owned(),
                    position: event.position,
                    message: String::from_utf8_lossy(incident.message).into_owned(),
                });
            }
            EventData::StatementContext
                if event.header.event_type == EventType::ExecuteLoadQuery && !self.passing =>
            {
                self.load_data(event)?;
            }
            EventData::Heartbeat(heartbeat) => {
                // The server says how far it has read; in between there was nothing for us.
                if heartbeat.file.is_none_or(|file| file == self.tracker.file().as_bytes())
                    && let Some(position) = heartbeat.position
                    && !self.tracker.is_open()
                {
                    self.tracker.event_done(position);
                }
                self.note_progress();
                return Ok(Step::Done);
            }
            EventData::FormatDescription(_) => {
                self.birth = Some((Arc::clone(self.tracker.file()), event.header.timestamp));
            }
            // A start by position does not know what is executed; a new file does.
            EventData::PreviousGtids(set) if self.wants_gtids(event) => {
                if let Ok(set) = GtidSet::decode(set) {
                    self.tracker.learn(Gtids::MySql(set));
                }
            }
            EventData::MariaDbGtidList(list) if self.wants_gtids(event) => {
                let mut position = GtidPos::new();
                list.entries().for_each(|gtid| position.advance(gtid));
                self.tracker.learn(Gtids::MariaDb(position));
            }
            EventData::Stop
            | EventData::PreviousGtids(_)
            | EventData::TransactionPayload(_)
            | EventData::StatementContext
            | EventData::MariaDbGtidList(_)
            | EventData::MariaDbBinlogCheckpoint(_)
            | EventData::RowsQuery(_)
            | EventData::Ignored
            | _ => {}
        }
        if event.header.event_type != EventType::Rotate {
            self.tracker.event_done(event.end);
        }
        Ok(Step::Done)
    }

    /// Whether what is executed is to be known and is not, at the start of a file.
    fn wants_gtids(&self, event: &Event<'_>) -> bool {
        self.track_gtids
            && self.tracker.executed().is_none()
            && !self.xa.is_replaying()
            && !event.header.is_artificial()
    }

    /// What a GTID event says of the rows that follow: their time, and whether they count.
    fn note_gtid(&mut self, event: &GtidEvent) {
        self.gtid_time = false;
        if self.track_gtids
            && event.gtid.is_some()
            && let Some(micros) =
                event.original_commit_timestamp.and_then(|micros| i64::try_from(micros).ok())
            && micros != 0
        {
            self.event_us = micros;
            self.gtid_time = true;
        }
        self.filtered = event.gtid.is_some_and(|gtid| self.is_filtered(&gtid.source));
    }

    /// The same for MariaDB, whose events have their own times.
    fn note_mariadb_gtid(&mut self, event: &MariaDbGtidEvent<'_>) {
        let source = format_args!("{}-{}", event.gtid.domain, event.gtid.server);
        self.filtered = self.is_filtered(&source);
    }

    /// A unit opens. `marked`: it has BEGIN and END records, where those are wanted.
    fn begin(&mut self, event: &Event<'_>, thread: Option<u64>, marked: bool) -> Result<(), Error> {
        self.parallel.unit_opens();
        let was_resuming = self.tracker.is_resuming();
        let opened = self.tracker.begin(event.position);
        if opened == Opened::Mismatch {
            if !self.track_gtids {
                return Err(Error::PositionLost {
                    what: "the log does not go on where the stored offset says".to_owned(),
                    detail: format!(
                        "the first transaction begins in {} at {}; the offset is inside another one. Restore the offset \
                         or set it anew",
                        event.file, event.position
                    ),
                });
            }
            tracing::warn!(
                binlog_file = event.file,
                binlog_position = event.position,
                "the transaction that the stored offset is inside of did not come; the first one is delivered whole"
            );
        } else if was_resuming {
            tracing::debug!(
                binlog_file = event.file,
                binlog_position = event.position,
                "transaction resumed"
            );
        }
        self.thread = thread;
        self.query = None;
        if marked && self.config.events.transaction_metadata {
            let id = match self.tracker.current_gtid() {
                Some(gtid) => gtid.to_string(),
                None => format!("file={},pos={}", self.tracker.file(), event.position),
            };
            let transaction = Transaction::new(id);
            if opened != Opened::Resumed {
                let ts_ms = self.event_us.div_euclid(1000);
                let origin = origin(&self.no_table, &self.tracker, event.position, 0);
                let topic = &self.transaction_topic;
                let head = RecordHead { kind: RecordKind::Transaction, topic, origin };
                let [key, value] = &self.schemas.transaction;
                self.batch.record(head, |record| {
                    record.end_headers();
                    key.begin(record.out());
                    json::write_transaction_key(transaction.id(), record.out());
                    key.end(record.out());
                    record.end_key();
                    value.begin(record.out());
                    json::write_transaction_begin(transaction.id(), ts_ms, record.out());
                    value.end(record.out());
                    Ok::<_, Error>(())
                })?;
                // With its record the BEGIN is done: it does not come again.
                self.at_place(Some((1, 0, 0)), BatchBuilder::close_group);
                self.finish_full();
            }
            self.transaction = Some(transaction);
        }
        Ok(())
    }

    /// The unit ends at byte `end`.
    fn close(&mut self, end: u64) -> Result<(), Error> {
        if std::mem::take(&mut self.passing) {
            self.resume_stream();
            return Ok(());
        }
        let position = self.tracker.restart_point().unit.position;
        self.tracker.close(end);
        if let Some(transaction) = self.transaction.take() {
            let ts_ms = self.event_us.div_euclid(1000);
            let origin = origin(&self.no_table, &self.tracker, position, 1);
            let topic = &self.transaction_topic;
            let head = RecordHead { kind: RecordKind::Transaction, topic, origin };
            let [key, value] = &self.schemas.transaction;
            self.batch.record(head, |record| {
                record.end_headers();
                key.begin(record.out());
                json::write_transaction_key(transaction.id(), record.out());
                key.end(record.out());
                record.end_key();
                value.begin(record.out());
                let tables = transaction.tables();
                json::write_transaction_end(
                    transaction.id(),
                    transaction.total(),
                    tables,
                    ts_ms,
                    record.out(),
                );
                value.end(record.out());
                Ok::<_, Error>(())
            })?;
            self.close_group();
        } else {
            self.note_progress();
        }
        self.thread = None;
        self.query = None;
        Ok(())
    }

    /// Whether rows of transactions of `source` are left out.
    fn is_filtered(&self, source: &dyn std::fmt::Display) -> bool {
        let gtids = &self.config.gtids;
        gtids.filter_rows
            && gtids.sources != Selection::All
            && !gtids.sources.includes(&source.to_string())
    }

    /// Finds out what a table map stands for.
    fn resolve(&mut self, map: &TableMap) -> Result<Resolved, Error> {
        if let Some((id, resolved)) = self.resolved.get(&map.table_id())
            && id.database == map.database()
            && id.table == map.table()
        {
            return Ok(resolved.clone());
        }
        let id = TableId::new(map.database(), map.table());
        let resolved = if !self.config.tables.captures(&id) || self.tables.is_sequence(&id) {
            Resolved::Ignored
        } else {
            self.resolve_captured(&id, map)?
        };
        if self.resolved.len() >= MAX_RESOLVED {
            self.resolved.clear();
        }
        self.resolved.insert(map.table_id(), (id, resolved.clone()));
        Ok(resolved)
    }

    fn resolve_captured(&mut self, id: &TableId, map: &TableMap) -> Result<Resolved, Error> {
        let dialect = self.dialect();
        let context = self.context(id)?;
        if context.is_none() && cross_check::is_sequence(map, dialect) {
            tracing::info!(table = %id, "a sequence that was there before: its rows are no rows of a table");
            return Ok(Resolved::Ignored);
        }
        let checked = context.map(|context| {
            let checked = cross_check::check(&context.table, map, dialect);
            (context, checked)
        });
        if self.config.history.source == SchemaSource::Metadata && self.verification.is_none() {
            return Ok(match checked {
                Some((context, Ok(())))
                    if cross_check::key_difference(&context.table, map, dialect).is_none() =>
                {
                    Resolved::Captured(context)
                }
                Some(_) | None => match self.told_by(map, id)? {
                    Some(context) => Resolved::Captured(context),
                    None => Resolved::Untold(id.clone()),
                },
            });
        }
        Ok(match checked {
            Some((context, Ok(()))) => {
                self.check_key(&context, map);
                Resolved::Captured(context)
            }
            Some((context, Err(mismatch))) => Resolved::Unfit(context, Arc::new(mismatch)),
            None => Resolved::Unknown(id.clone()),
        })
    }

    /// The context by what the table map itself says, `None` when it says too little.
    fn told_by(
        &mut self,
        map: &TableMap,
        id: &TableId,
    ) -> Result<Option<Arc<TableContext>>, Error> {
        if let Some((body, context)) = self.told.get(id)
            && map.same_as(body)
        {
            return Ok(Some(Arc::clone(context)));
        }
        let Some(table) = from_log::definition(&self.config, map, self.dialect()) else {
            return Ok(None);
        };
        tracing::info!(
            table = %id,
            definition = cross_check::definition_shape(&table),
            "definition taken from the log"
        );
        let context = Arc::new(TableContext::new(table, &self.config)?);
        if self.told.len() >= MAX_RESOLVED {
            self.told.clear();
        }
        self.told.insert(id.clone(), (map.body().into(), Arc::clone(&context)));
        Ok(Some(context))
    }

    /// A key that differs proves nothing, as of several unique indexes the server and the model may take different ones;
    /// it is told once.
    fn check_key(&mut self, context: &TableContext, map: &TableMap) {
        let dialect = self.dialect();
        let Some(keys) = cross_check::key_difference(&context.table, map, dialect) else { return };
        if context.key_told.swap(true, Ordering::Relaxed) {
            return;
        }
        match &mut self.verification {
            Some(verification) => {
                verification.keys.insert((*context.id).clone(), keys);
            }
            None => {
                let (definition, log) = keys;
                tracing::warn!(table = %context.id, definition, log, "the log has another key than the definition");
            }
        }
    }

    /// Whose table maps they are.
    fn dialect(&self) -> Dialect {
        if self.config.is_mariadb() { Dialect::MariaDb } else { Dialect::MySql }
    }

    /// The context of a captured table, `None` when its definition is not known.
    fn context(&mut self, id: &TableId) -> Result<Option<Arc<TableContext>>, Error> {
        if let Some(context) = self.contexts.get(id) {
            return Ok(Some(Arc::clone(context)));
        }
        let Some(table) = self.tables.get(id) else { return Ok(None) };
        let context = Arc::new(TableContext::new(Arc::clone(table), &self.config)?);
        self.contexts.insert(id.clone(), Arc::clone(&context));
        Ok(Some(context))
    }

    /// A sign of life: a group of one part whose offset is the stream's position.
    pub(crate) fn heartbeat(&mut self, now_ns: i64) -> Result<(), Error> {
        let is_placed = !self.tracker.restart_point().unit.file.is_empty();
        if self.xa.is_open() || self.xa.is_replaying() || !is_placed {
            return Ok(());
        }
        let position = self.tracker.restart_point().unit.position;
        // Nothing else at an idle position tells one from the next.
        let origin = origin(&self.no_table, &self.tracker, position, now_ns.unsigned_abs());
        let topic = &self.heartbeat_topic;
        let head = RecordHead { kind: RecordKind::Heartbeat, topic, origin };
        let name = &self.config.topic_prefix;
        let [key, value] = &self.schemas.heartbeat;
        self.batch.record(head, |record| {
            record.end_headers();
            key.begin(record.out());
            json::write_heartbeat_key(name, record.out());
            key.end(record.out());
            record.end_key();
            value.begin(record.out());
            json::write_heartbeat_value(now_ns.div_euclid(1_000_000), record.out());
            value.end(record.out());
            Ok::<_, Error>(())
        })?;
        self.close_group();
        Ok(())
    }

    fn close_group(&mut self) {
        if self.xa.is_open() && self.batch.open_parts() == 0 {
            // Progress, of which nothing is known before the outcome.
            return;
        }
        let groups = self.batch.group_count();
        let is_plain = !self.xa.is_open() && !self.xa.is_replaying();
        if !is_plain || !self.batch.close_next_group(self.tracker.restart_point()) {
            self.at_place(None, BatchBuilder::close_group);
        }
        if self.xa.is_open() && self.batch.group_count() > groups {
            self.xa.group_done(self.tracker.rows_done());
        }
        self.finish_full();
    }

    /// Sets a full batch aside; the records of an open XA unit stay together.
    fn finish_full(&mut self) {
        if !self.xa.is_open()
            && (self.batch.len() >= self.batch_limit
                || self.config.queue.is_full(self.batch.len(), self.batch.size_bytes()))
            && let Some(batch) = self.batch.finish()
        {
            self.ready.push_back(batch);
        }
    }

    /// Notes that the stream went on without a record.
    fn note_progress(&mut self) {
        if self.xa.is_open() || self.xa.is_replaying() {
            return;
        }
        self.at_place(None, BatchBuilder::advance);
    }

    /// All inner events of a compressed transaction were handled; the payload event ends at byte `end`.
    pub(crate) fn payload_done(&mut self, end: u64) {
        self.tracker.event_done(end);
        self.note_progress();
    }

    /// The log is read over a new connection, from where `tracker` is. Definitions and what was assembled stay.
    pub(crate) fn reconnect(&mut self, tracker: TxnTracker) {
        self.xa_reconnected();
        self.tracker = tracker;
        self.resolved.clear();
        self.thread = None;
        self.query = None;
        self.transaction = None;
        self.gtid_time = false;
        self.filtered = false;
        self.ignore_statement = false;
        self.passing = false;
    }

    /// How many statements were met again whose effect the schema history has, since it was last asked.
    pub(crate) const fn take_replayed(&mut self) -> u64 {
        std::mem::replace(&mut self.replayed, 0)
    }

    /// Whether the log may go on as one of `server`: see [`check_not_ahead`].
    ///
    /// # Errors
    ///
    /// [`Error::PositionLost`] while definitions are ahead of the stream.
    pub(crate) fn check_not_ahead(&self, server: &str) -> Result<(), Error> {
        let offset = self.offset().to_source_offset();
        let place = LogPlace { file: offset.file, pos: offset.pos };
        check_not_ahead(&self.ahead, &place, offset.gtids.as_deref(), server)
    }

    /// The log goes on as another one, in `file` where that is known.
    pub(crate) fn change_log(
        &mut self,
        lineage: Arc<Lineage>,
        tracker: TxnTracker,
        file: Option<&str>,
    ) {
        self.lineage_name = lineage.name();
        self.lineage = lineage;
        self.birth = None;
        // Their places are of the log before.
        (self.guard, self.ahead) = (ReplayGuard::default(), Ahead::default());
        self.batch.change_log(Arc::clone(&self.lineage_name));
        self.reconnect(tracker);
        if let Some(file) = file {
            self.tracker.rotate(file.into(), 4);
        }
    }

    /// Batches get so many records at most, from the next group on.
    pub(crate) const fn limit_batches(&mut self, records: usize) {
        self.batch_limit = records;
    }

    /// Takes batches that are full.
    pub(crate) fn take_ready(&mut self) -> Option<Batch> {
        self.ready.pop_front()
    }

    /// Takes what there is, full or not.
    pub(crate) fn take_batch(&mut self) -> Option<Batch> {
        let ready = self.ready.pop_front();
        if ready.is_some() || self.xa.is_open() { ready } else { self.batch.finish() }
    }

    /// The offset with everything handled so far done.
    pub(crate) fn offset(&self) -> OffsetPoint {
        self.place().view().to_point()
    }

    fn place(&self) -> Place<'_> {
        let Self { tracker, xa, birth, lineage, .. } = self;
        let Self { event_us, server_id, snapshot, .. } = *self;
        Place { tracker, xa, birth: birth.as_ref(), event_us, server_id, snapshot, lineage }
    }

    /// Tells the batch where the stream is. The records of an open XA unit stay in the batch until its outcome is known,
    /// and have the offsets that hold after it. `counts`: other ones than the tracker's.
    fn at_place(
        &mut self,
        counts: Option<(u64, u64, u64)>,
        tell: impl FnOnce(&mut BatchBuilder, OffsetView<'_>),
    ) {
        let Self { batch, tracker, xa, birth, lineage, event_us, server_id, snapshot, .. } = self;
        let (event_us, server_id, snapshot) = (*event_us, *server_id, *snapshot);
        let birth = birth.as_ref();
        let place = Place { tracker, xa, birth, event_us, server_id, snapshot, lineage };
        tell(batch, place.view_with(counts));
    }
}

/// What an offset is made of, borrowed apart from the batch that takes it.
struct Place<'a> {
    tracker: &'a TxnTracker,
    xa: &'a XaState,
    birth: Option<&'a (Arc<str>, u32)>,
    event_us: i64,
    server_id: u32,
    snapshot: Option<SnapshotKind>,
    lineage: &'a Arc<Lineage>,
}

impl<'a> Place<'a> {
    /// Nothing of a unit whose outcome is not known counts as done.
    fn view(self) -> OffsetView<'a> {
        let undecided = self.xa.undecided();
        self.view_with(undecided)
    }

    /// With other counts than the tracker's.
    fn view_with(self, counts: Option<(u64, u64, u64)>) -> OffsetView<'a> {
        let tracker = self.xa.suspended().unwrap_or(self.tracker);
        let RestartPoint { unit, events, event_row, rows } = tracker.restart_point();
        let counts = counts.unwrap_or((*events, *event_row, *rows));
        let birth = self.birth.filter(|(file, _)| *file == unit.file).map(|(_, birth)| *birth);
        OffsetView {
            unit,
            events: counts.0,
            event_row: counts.1,
            rows: counts.2,
            ts_sec: (self.event_us != 0).then(|| self.event_us.div_euclid(1_000_000)),
            server_id: self.server_id,
            birth,
            snapshot: self.snapshot,
            progress: None,
            held: self.xa.text(),
            lineage: Some(self.lineage),
        }
    }
}

/// Where a record that is no row came from. `row` tells apart what has the same position.
const fn origin<'a>(
    table: &'a Arc<TableId>,
    tracker: &'a TxnTracker,
    pos: u64,
    row: u64,
) -> RecordOrigin<'a> {
    RecordOrigin { table, file: tracker.file(), pos, ordinal: 0, row }
}
