//! Events to change records: one physical row to its records and its ack group.
//!
//! The assembler follows the log event by event. It keeps the units, the definitions, and the batch that is being
//! filled, and does no I/O: a statement that changes the schema comes back as a [`PendingDdl`], and the engine makes it
//! durable before it is applied, so that no row is delivered whose definition a restart could not find.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::event::{Event, EventData, EventType, Query};
use holdfast_binlog::row::{Row, RowError, RowImage, RowReader, RowSink, Side};
use holdfast_binlog::txn::{Opened, TransactionGtid, TxnTracker};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::wire::DecodeError;
use holdfast_history::codec::write_table_changes_connect;
use holdfast_history::ddl::{self, DdlContext, DdlEvent, DdlEventKind, SqlMode, StatementClass};
use holdfast_history::offset::SnapshotKind;
use holdfast_history::recover::{ReplayGuard, StreamedStatement};
use holdfast_history::{HistoryRecord, Table, TableId, Tables};

use crate::ack::SharedLedger;
use crate::batch::{Batch, BatchBuilder, RecordHead, RecordOrigin, RecordWriter};
use crate::charset::decode_statement;
use crate::config::{Config, SkippedOperations};
use crate::convert::{ConvertError, FailureMode, Origin, TableConverter};
use crate::error::{ConvertFailed, DdlFailure, Error, Mismatch, RowFailure};
use crate::format::debezium_json::{
    self as json, Op, SchemaChange, SourceInfo, SourceTemplate, TransactionBlock,
};
use crate::format::json::write_string;
use crate::identity::EventId;
use crate::offset::{Lineage, OffsetPoint};
use crate::record::RecordKind;
use crate::transaction::Transaction;

/// What we print as `source.version`.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The wire table ids whose definition is remembered; more are looked up again.
const MAX_RESOLVED: usize = 10_000;

/// A table as the stream needs it at one schema version.
#[derive(Debug)]
pub(crate) struct TableContext {
    pub(crate) id: Arc<TableId>,
    pub(crate) topic: Arc<str>,
    pub(crate) converter: TableConverter,
    /// Indexes of the key columns.
    key: Vec<usize>,
    table: Arc<Table>,
}

/// What a wire table id stands for.
#[derive(Debug, Clone)]
enum Resolved {
    /// Not captured: rows are counted and not looked at.
    Ignored,
    /// Captured, and the definition is known.
    Captured(Arc<TableContext>),
    /// Captured, and there is no definition.
    Unknown(TableId),
}

/// What the engine has to do after an event.
#[derive(Debug)]
#[must_use]
pub(crate) enum Step {
    /// Nothing more.
    Done,
    /// Append the history records, then call [`Assembler::apply_ddl`].
    Ddl(Box<PendingDdl>),
}

/// A statement that changes the schema, understood and not applied yet.
#[derive(Debug)]
pub(crate) struct PendingDdl {
    /// To be durable before the statement is applied; may be empty.
    pub(crate) records: Vec<HistoryRecord>,
    tables: Tables,
    events: Vec<DdlEvent>,
    position: u64,
    end: u64,
    thread: Option<u64>,
    /// Whether the records are to be given out: not for a statement that an earlier run had acknowledged.
    deliver: bool,
}

/// What the assembler starts from.
#[derive(Debug)]
pub(crate) struct AssemblerStart {
    pub(crate) config: Arc<Config>,
    pub(crate) tables: Tables,
    pub(crate) guard: ReplayGuard,
    pub(crate) tracker: TxnTracker,
    pub(crate) offset: OffsetPoint,
    pub(crate) lineage: Arc<Lineage>,
    pub(crate) ledger: SharedLedger,
    /// Whether GTIDs are recorded: the server has them and nobody said to ignore them.
    pub(crate) track_gtids: bool,
}

/// Follows the log and fills batches.
#[derive(Debug)]
pub(crate) struct Assembler {
    config: Arc<Config>,
    tables: Tables,
    guard: ReplayGuard,
    tracker: TxnTracker,
    batch: BatchBuilder,
    ready: VecDeque<Batch>,
    lineage: Arc<Lineage>,
    lineage_name: Arc<str>,
    track_gtids: bool,
    resolved: HashMap<u64, (TableId, Resolved)>,
    contexts: HashMap<TableId, Arc<TableContext>>,
    no_table: Arc<TableId>,
    schema_topic: Arc<str>,
    transaction_topic: Arc<str>,
    heartbeat_topic: Arc<str>,
    /// Time of the change at the source, microseconds.
    event_us: i64,
    /// Whether `event_us` came from a GTID event, which then counts for the whole transaction.
    gtid_time: bool,
    server_id: u32,
    /// When the current file was made, once its format description has come.
    birth: Option<(Arc<str>, u32)>,
    snapshot: Option<SnapshotKind>,
    thread: Option<u64>,
    query: Option<String>,
    gtid_text: String,
    gtid_of_text: Option<TransactionGtid>,
    transaction: Option<Transaction>,
    row: Row<'static>,
    source: SourceTemplate,
}

impl Assembler {
    pub(crate) fn new(start: AssemblerStart) -> Self {
        let AssemblerStart { config, tables, guard, tracker, offset, lineage, ledger, track_gtids } =
            start;
        let lineage_name = lineage.name();
        let snapshot = offset.snapshot;
        let birth = offset.birth.map(|birth| (Arc::clone(&offset.restart.unit.file), birth));
        Self {
            batch: BatchBuilder::new(offset, Arc::clone(&lineage_name), ledger),
            ready: VecDeque::new(),
            resolved: HashMap::new(),
            contexts: HashMap::new(),
            no_table: Arc::new(TableId::new("", "")),
            schema_topic: config.topics.schema_changes().into(),
            transaction_topic: config.topics.transactions().into(),
            heartbeat_topic: config.topics.heartbeats().into(),
            event_us: 0,
            gtid_time: false,
            server_id: 0,
            birth,
            snapshot,
            thread: None,
            query: None,
            gtid_text: String::new(),
            gtid_of_text: None,
            transaction: None,
            row: Row::new(),
            source: SourceTemplate::default(),
            config,
            tables,
            guard,
            tracker,
            lineage,
            lineage_name,
            track_gtids,
        }
    }

    /// Takes the next event. `now_ns` is the time of processing, nanoseconds since the epoch. A compressed
    /// transaction's inner events come here one by one before the payload event itself.
    pub(crate) fn handle(&mut self, event: &Event<'_>, now_ns: i64) -> Result<Step, Error> {
        if event.header.server_id != 0 && !event.header.is_artificial() {
            self.server_id = event.header.server_id;
        }
        let step = self.dispatch(event, now_ns)?;
        if !self.gtid_time && event.header.timestamp != 0 {
            self.event_us = i64::from(event.header.timestamp) * 1_000_000;
        }
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
                self.gtid_time = false;
                if id.is_some()
                    && let Some(micros) =
                        gtid.original_commit_timestamp.and_then(|micros| i64::try_from(micros).ok())
                    && micros != 0
                {
                    self.event_us = micros;
                    self.gtid_time = true;
                }
                self.tracker.gtid(event.position, id);
            }
            EventData::MariaDbGtid(gtid) => {
                let id = self.track_gtids.then_some(TransactionGtid::MariaDb(gtid.gtid));
                self.tracker.gtid(event.position, id);
                if !gtid.is_standalone() {
                    self.begin(event, None)?;
                }
            }
            EventData::Query(query) => return self.query(event, query, now_ns),
            EventData::TableMap(map) => {
                self.resolve(map)?;
            }
            EventData::Rows { rows, table } => self.rows(event, rows, table, now_ns)?,
            EventData::Xid(_) => self.close(event.end)?,
            EventData::XaPrepare(_) => self.close(event.end)?,
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

    fn query(&mut self, event: &Event<'_>, query: &Query<'_>, now_ns: i64) -> Result<Step, Error> {
        let sql = decode_statement(query.sql, query.status.charset.map(|charset| charset.client));
        let sql = sql.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        match ddl::classify(sql) {
            StatementClass::Begin => {
                if !self.tracker.is_open() {
                    self.begin(event, Some(query.thread_id.into()))?;
                }
                self.tracker.event_done(event.end);
            }
            StatementClass::Commit | StatementClass::Rollback => self.close(event.end)?,
            StatementClass::Xa => {
                let opens =
                    sql.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("XA START"));
                if opens && !self.tracker.is_open() {
                    self.begin(event, None)?;
                    self.tracker.event_done(event.end);
                } else {
                    self.statement_done(event)?;
                }
            }
            StatementClass::Savepoint | StatementClass::Filtered => self.statement_done(event)?,
            StatementClass::Dml => {
                self.statement_change(event, query, sql)?;
                self.statement_done(event)?;
            }
            StatementClass::Ddl | StatementClass::Truncate => {
                return self.prepare_ddl(event, query, sql, now_ns);
            }
        }
        Ok(Step::Done)
    }

    /// A statement without effect: inside a unit it counts as an event, alone it is a unit of its own.
    fn statement_done(&mut self, event: &Event<'_>) -> Result<(), Error> {
        if self.tracker.is_open() {
            self.tracker.event_done(event.end);
            Ok(())
        } else {
            self.close(event.end)
        }
    }

    fn begin(&mut self, event: &Event<'_>, thread: Option<u64>) -> Result<(), Error> {
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
        if self.config.events.transaction_metadata {
            let id = match self.tracker.current_gtid() {
                Some(gtid) => gtid.to_string(),
                None => format!("file={},pos={}", self.tracker.file(), event.position),
            };
            let transaction = Transaction::new(id);
            if opened != Opened::Resumed {
                let ts_ms = self.event_us.div_euclid(1000);
                let origin = self.origin(event.position, 0);
                let topic = Arc::clone(&self.transaction_topic);
                let head = RecordHead { kind: RecordKind::Transaction, topic, origin };
                self.batch.record(head, |record| {
                    record.end_headers();
                    json::write_transaction_key(transaction.id(), record.out());
                    record.end_key();
                    json::write_transaction_begin(transaction.id(), ts_ms, record.out());
                    Ok::<_, Error>(())
                })?;
                self.close_group();
            }
            self.transaction = Some(transaction);
        }
        Ok(())
    }

    /// The unit ends at byte `end`.
    fn close(&mut self, end: u64) -> Result<(), Error> {
        let position = self.tracker.restart_point().unit.position;
        self.tracker.close(end);
        if let Some(transaction) = self.transaction.take() {
            let ts_ms = self.event_us.div_euclid(1000);
            let origin = self.origin(position, 1);
            let head = RecordHead {
                kind: RecordKind::Transaction,
                topic: Arc::clone(&self.transaction_topic),
                origin,
            };
            self.batch.record(head, |record| {
                record.end_headers();
                json::write_transaction_key(transaction.id(), record.out());
                record.end_key();
                let tables = transaction.tables();
                json::write_transaction_end(
                    transaction.id(),
                    transaction.total(),
                    tables,
                    ts_ms,
                    record.out(),
                );
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

    /// Finds out what a table map stands for.
    fn resolve(&mut self, map: &TableMap) -> Result<Resolved, Error> {
        if let Some((id, resolved)) = self.resolved.get(&map.table_id())
            && id.database == map.database()
            && id.table == map.table()
        {
            return Ok(resolved.clone());
        }
        let id = TableId::new(map.database(), map.table());
        let resolved = if !self.config.tables.captures(&id) {
            Resolved::Ignored
        } else {
            match self.context(&id)? {
                Some(context) => Resolved::Captured(context),
                None => Resolved::Unknown(id.clone()),
            }
        };
        if self.resolved.len() >= MAX_RESOLVED {
            self.resolved.clear();
        }
        self.resolved.insert(map.table_id(), (id, resolved.clone()));
        Ok(resolved)
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

    fn rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        now_ns: i64,
    ) -> Result<(), Error> {
        self.tracker.rows_event();
        let context = match self.resolve(map)? {
            Resolved::Captured(context) => context,
            Resolved::Ignored => return self.count_rows(event, rows, map),
            Resolved::Unknown(id) => {
                if !self.tracker.skips_row() {
                    let table = id.clone();
                    let error = Error::UnknownTable {
                        table,
                        file: event.file.to_owned(),
                        position: event.position,
                    };
                    match self.config.events.on_unknown_table {
                        FailureMode::Fail => return Err(error),
                        FailureMode::Warn => tracing::warn!(error = %error, "rows left out"),
                        FailureMode::Skip => {}
                    }
                }
                return self.count_rows(event, rows, map);
            }
        };
        if map.column_count() != context.table.columns.len() {
            return self.mismatch(event, rows, map, &context);
        }
        let kind = rows.kind();
        let skipped_operation = is_skipped(self.config.events.skipped, kind);
        self.render_source(event, &context);
        let mut reader = self.reader(event, rows, map)?;
        let mut row = std::mem::take(&mut self.row).recycle();
        let mut index = 0;
        while reader
            .read(&mut row)
            .map_err(|error| self.row_error(event, map, Some(&context), error))?
        {
            let skips = self.tracker.skips_row();
            self.tracker.row_done();
            if skips {
                if let Some(transaction) = &mut self.transaction
                    && !skipped_operation
                {
                    let records = if context.key_changed(kind, &row) { 2 } else { 1 };
                    transaction.skip(&context.id, records);
                }
            } else if !skipped_operation {
                let change = RowChange { event, context: &context, kind, row: &row, index, now_ns };
                self.deliver(&change)?;
            }
            index += 1;
        }
        self.row = row.recycle();
        Ok(())
    }

    fn reader<'a, 't>(
        &self,
        event: &Event<'_>,
        rows: &RowsEvent<'a>,
        map: &'t TableMap,
    ) -> Result<RowReader<'a, 't>, Error> {
        rows.rows(map).map_err(|error| {
            self.row_error(
                event,
                map,
                None,
                RowError { row: 0, side: Side::After, column: None, error },
            )
        })
    }

    /// Counts rows that are not delivered.
    fn count_rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Result<(), Error> {
        let mut reader = self.reader(event, rows, map)?;
        while reader
            .read_into(&mut Nothing)
            .map_err(|error| self.row_error(event, map, None, error))?
        {
            self.tracker.row_done();
        }
        Ok(())
    }

    fn mismatch(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
        context: &TableContext,
    ) -> Result<(), Error> {
        // What an earlier run did needs no definition; the first row after it does.
        let mut reader = self.reader(event, rows, map)?;
        while reader
            .read_into(&mut Nothing)
            .map_err(|error| self.row_error(event, map, None, error))?
        {
            if !self.tracker.skips_row() {
                let wire: Vec<String> =
                    map.columns().iter().map(|column| format!("{:?}", column.wire_type)).collect();
                let model: Vec<String> = context
                    .table
                    .columns
                    .iter()
                    .map(|column| format!("{} {}", column.name, column.type_name))
                    .collect();
                return Err(Error::Mismatch(Box::new(Mismatch {
                    table: (*context.id).clone(),
                    expected: context.table.columns.len(),
                    found: map.column_count(),
                    file: event.file.to_owned(),
                    position: event.position,
                    wire: wire.join(", "),
                    model: model.join(", "),
                })));
            }
            self.tracker.row_done();
        }
        Ok(())
    }

    /// Renders what all rows of an event share.
    fn render_source(&mut self, event: &Event<'_>, context: &TableContext) {
        let gtid = self.tracker.current_gtid();
        if gtid != self.gtid_of_text {
            use std::fmt::Write as _;
            self.gtid_text.clear();
            if let Some(gtid) = gtid {
                // Writing to a String does not fail.
                let _ = write!(self.gtid_text, "{gtid}");
            }
            self.gtid_of_text = gtid;
        }
        self.source.render(&SourceInfo {
            version: VERSION,
            connector: self.config.connector.connector_name(),
            name: &self.config.topic_prefix,
            ts_us: self.event_us,
            snapshot: "false",
            db: &context.id.database,
            table: Some(&context.id.table),
            server_id: self.server_id,
            gtid: gtid.is_some().then_some(&self.gtid_text),
            file: self.tracker.file(),
            pos: event.position,
            row: 0,
            thread: self.thread,
            query: self.query.as_deref(),
        });
    }

    /// One row to its records, as one group.
    fn deliver(&mut self, change: &RowChange<'_, '_>) -> Result<(), Error> {
        let RowChange { context, kind, row, .. } = *change;
        let before = Image { image: &row.before, patched: &[] };
        let patched = match kind {
            RowsKind::PartialUpdate => patched_documents(row).map_err(|(column, error)| {
                let error = RowError { row: 0, side: Side::After, column: Some(column), error };
                self.row_error_of(change, error)
            })?,
            RowsKind::Write | RowsKind::Update | RowsKind::Delete => Vec::new(),
        };
        let after = Image { image: &row.after, patched: &patched };
        let result = match kind {
            RowsKind::Write => self.record(change, Op::Create, None, Some(after), after, None),
            RowsKind::Delete => self.delete(change, before, None),
            RowsKind::Update | RowsKind::PartialUpdate if context.key_changed(kind, row) => {
                self.delete(change, before, Some(("__debezium.newkey", after))).and_then(|()| {
                    let oldkey = Some(("__debezium.oldkey", before));
                    self.record(change, Op::Create, None, Some(after), after, oldkey)
                })
            }
            RowsKind::Update if self.config.events.skip_unchanged && context.unchanged(row) => {
                Ok(())
            }
            RowsKind::Update | RowsKind::PartialUpdate => {
                self.record(change, Op::Update, Some(before), Some(after), after, None)
            }
        };
        match result {
            Ok(()) => self.close_group(),
            Err(source) => {
                self.batch.drop_group();
                self.convert_failed(change, source)?;
            }
        }
        Ok(())
    }

    fn convert_failed(
        &mut self,
        change: &RowChange<'_, '_>,
        source: ConvertError,
    ) -> Result<(), Error> {
        let error = Error::Convert(Box::new(ConvertFailed {
            table: (*change.context.id).clone(),
            file: change.event.file.to_owned(),
            position: change.event.position,
            source,
        }));
        match self.config.events.on_processing_failure {
            FailureMode::Fail => Err(error),
            FailureMode::Warn => {
                tracing::warn!(error = error.chain(), "row left out");
                self.note_progress();
                Ok(())
            }
            FailureMode::Skip => {
                self.note_progress();
                Ok(())
            }
        }
    }

    fn delete(
        &mut self,
        change: &RowChange<'_, '_>,
        before: Image<'_, '_>,
        header: Option<(&'static str, Image<'_, '_>)>,
    ) -> Result<(), ConvertError> {
        self.record(change, Op::Delete, Some(before), None, before, header)?;
        if !self.config.events.tombstones {
            return Ok(());
        }
        let context = change.context;
        let origin = self.row_origin(change);
        let head =
            RecordHead { kind: RecordKind::Tombstone, topic: Arc::clone(&context.topic), origin };
        let identity = self.identity_of(&head, self.batch.open_parts());
        self.batch.record(head, |record| {
            write_headers(record, context, header, identity.as_ref())?;
            write_key(record, context, |column| before.get(column), Origin::Stream)?;
            json::write_tombstone(record.out());
            Ok(())
        })
    }

    fn record(
        &mut self,
        change: &RowChange<'_, '_>,
        op: Op,
        before: Option<Image<'_, '_>>,
        after: Option<Image<'_, '_>>,
        key: Image<'_, '_>,
        header: Option<(&'static str, Image<'_, '_>)>,
    ) -> Result<(), ConvertError> {
        let context = change.context;
        let origin = self.row_origin(change);
        let head =
            RecordHead { kind: RecordKind::Data(op), topic: Arc::clone(&context.topic), origin };
        let identity = self.identity_of(&head, self.batch.open_parts());
        let row = u32::try_from(change.index).unwrap_or(u32::MAX);
        let block = self.transaction.as_mut().map(|transaction| transaction.next(&context.id));
        let block = block.as_ref().and_then(|(total_order, data_collection_order)| {
            self.transaction.as_ref().map(|transaction| TransactionBlock {
                id: transaction.id(),
                total_order: *total_order,
                data_collection_order: *data_collection_order,
            })
        });
        let source = &self.source;
        self.batch.record(head, |record| {
            write_headers(record, context, header, identity.as_ref())?;
            write_key(record, context, |column| key.get(column), Origin::Stream)?;
            let out = record.out();
            json::begin_before(out);
            write_image(context, before, out)?;
            json::begin_after(out);
            write_image(context, after, out)?;
            json::end(source, row, block.as_ref(), op, change.now_ns, out);
            Ok(())
        })
    }

    fn row_origin(&self, change: &RowChange<'_, '_>) -> RecordOrigin {
        RecordOrigin {
            table: Arc::clone(&change.context.id),
            file: Arc::clone(self.tracker.file()),
            pos: change.event.position,
            ordinal: self.tracker.rows_events(),
            row: change.index,
        }
    }

    /// The identity for the headers, where it was asked for.
    fn identity_of(&self, head: &RecordHead, part: u32) -> Option<EventId> {
        self.config.identity_header.then(|| head.origin.identity(&self.lineage_name, part))
    }

    /// Where a record that is no row came from. `row` tells apart what has the same position.
    fn origin(&self, pos: u64, row: u64) -> RecordOrigin {
        let table = Arc::clone(&self.no_table);
        RecordOrigin { table, file: Arc::clone(self.tracker.file()), pos, ordinal: 0, row }
    }

    fn prepare_ddl(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        sql: &str,
        now_ns: i64,
    ) -> Result<Step, Error> {
        if self.tracker.skips_statement() {
            self.tracker.event_done(event.end);
            return Ok(Step::Done);
        }
        let database = String::from_utf8_lossy(query.schema).into_owned();
        let replayed = self.guard.is_replay(&StreamedStatement {
            file: self.tracker.file(),
            unit_position: self.tracker.announced_at().unwrap_or(event.position),
            end_position: event.end,
            ddl: sql,
        });
        let context = DdlContext {
            database: (!database.is_empty()).then(|| database.clone()),
            sql_mode: SqlMode(query.status.sql_mode.unwrap_or_default()),
            flavor: self.config.ddl_flavor(),
            comments: self.config.events.schema_comments,
            ..DdlContext::default()
        };
        let mut tables = self.tables.clone();
        let events = if replayed {
            tracing::info!(
                binlog_file = event.file,
                binlog_position = event.position,
                "statement met again: the schema history already has its effect"
            );
            Vec::new()
        } else {
            match ddl::apply_statement(sql, &context, &mut tables) {
                Ok(events) => events,
                Err(error) if self.config.history.skip_unparseable => {
                    tracing::warn!(
                        binlog_file = event.file,
                        binlog_position = event.position,
                        error = %error,
                        "statement ignored: it can't be understood"
                    );
                    Vec::new()
                }
                Err(error) => {
                    return Err(Error::Ddl(Box::new(DdlFailure {
                        file: event.file.to_owned(),
                        position: event.position,
                        error,
                        fix: "report the statement, or set schema.history.internal.skip.unparseable.ddl=true if it \
                              touches no captured table",
                    })));
                }
            }
        };
        let events: Vec<DdlEvent> =
            events.into_iter().filter(|event| self.is_recorded(event)).collect();
        let mut pending = PendingDdl {
            records: Vec::new(),
            tables,
            events,
            position: event.position,
            end: event.end,
            thread: if self.tracker.is_open() { self.thread } else { None },
            deliver: !replayed,
        };
        let ts_ms = now_ns.div_euclid(1_000_000);
        let position = self.offset_after_statement(event.end).to_source_offset();
        pending.records = pending
            .events
            .iter()
            .filter(|event| event.kind != DdlEventKind::Truncate)
            .map(|event| HistoryRecord {
                source: self.config.topic_prefix.clone(),
                position: position.clone(),
                ts_ms,
                database_name: event.database.clone(),
                ddl: Some(event.ddl.clone()),
                table_changes: event.changes.clone(),
            })
            .collect();
        Ok(Step::Ddl(Box::new(pending)))
    }

    /// Whether a statement's effect goes into the history and onto the schema-change topic.
    fn is_recorded(&self, event: &DdlEvent) -> bool {
        let history = &self.config.history;
        if event.kind == DdlEventKind::Truncate {
            return event.tables.iter().any(|table| self.config.tables.captures(table));
        }
        if history.only_captured_databases
            && !event.database.is_empty()
            && !self.config.tables.databases.includes(&event.database)
        {
            return false;
        }
        if history.only_captured_tables {
            return event.kind == DdlEventKind::Set
                || event
                    .tables
                    .iter()
                    .chain(event.changes.iter().map(|change| change.id()))
                    .any(|table| self.config.tables.captures(table));
        }
        true
    }

    /// The offset once a statement that ends at byte `end` is done.
    fn offset_after_statement(&self, end: u64) -> OffsetPoint {
        let restart = self.tracker.after_statement(end);
        OffsetPoint { restart, ..self.offset() }
    }

    /// Applies a statement whose history records are durable, and gives out its records as one group.
    pub(crate) fn apply_ddl(&mut self, pending: PendingDdl, now_ns: i64) -> Result<(), Error> {
        let PendingDdl { records: _, tables, events, position, end, thread, deliver } = pending;
        self.tables = tables;
        if events.iter().any(|event| !event.changes.is_empty())
            || events.iter().any(|event| event.kind == DdlEventKind::Database)
        {
            self.resolved.clear();
            self.contexts.clear();
        }
        // Cut to milliseconds, as Debezium does for statements.
        let ts_us = self.event_us.div_euclid(1000) * 1000;
        let gtid = self.tracker.current_gtid().map(|gtid| gtid.to_string());
        if deliver {
            for event in &events {
                let source = SourceInfo {
                    version: VERSION,
                    connector: self.config.connector.connector_name(),
                    name: &self.config.topic_prefix,
                    ts_us,
                    snapshot: "false",
                    db: &event.database,
                    table: None,
                    server_id: self.server_id,
                    gtid: gtid.as_deref(),
                    file: self.tracker.file(),
                    pos: position,
                    row: 0,
                    thread,
                    query: None,
                };
                if event.kind == DdlEventKind::Truncate {
                    if !self.config.events.skipped.truncate {
                        let origin = self.origin(position, 0);
                        truncate_record(
                            &mut self.batch,
                            event,
                            &source,
                            &self.config,
                            origin,
                            now_ns,
                        )?;
                    }
                } else if self.config.events.schema_changes {
                    let origin = self.origin(position, 0);
                    let topic = Arc::clone(&self.schema_topic);
                    schema_change_record(&mut self.batch, event, source, topic, origin, now_ns)?;
                }
            }
        }
        if self.tracker.is_open() {
            self.tracker.event_done(end);
        } else {
            self.tracker.close(end);
        }
        self.close_group();
        Ok(())
    }

    fn statement_change(
        &self,
        event: &Event<'_>,
        query: &Query<'_>,
        sql: &str,
    ) -> Result<(), Error> {
        let database = String::from_utf8_lossy(query.schema);
        let target = statement_target(sql, &database);
        if self.tracker.skips_statement() || !self.config.tables.captures(&target) {
            return Ok(());
        }
        let kind = sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let error = Error::StatementChange {
            kind,
            table: target.to_string(),
            file: event.file.to_owned(),
            position: event.position,
        };
        match self.config.events.on_processing_failure {
            FailureMode::Fail => Err(error),
            FailureMode::Warn => {
                tracing::warn!(error = %error, "change left out");
                Ok(())
            }
            FailureMode::Skip => Ok(()),
        }
    }

    /// A sign of life: a group of one part whose offset is the stream's position.
    pub(crate) fn heartbeat(&mut self, now_ns: i64) -> Result<(), Error> {
        let position = self.tracker.restart_point().unit.position;
        let head = RecordHead {
            kind: RecordKind::Heartbeat,
            topic: Arc::clone(&self.heartbeat_topic),
            origin: self.origin(position, 0),
        };
        let name = &self.config.topic_prefix;
        self.batch.record(head, |record| {
            record.end_headers();
            json::write_heartbeat_key(name, record.out());
            record.end_key();
            json::write_heartbeat_value(now_ns.div_euclid(1_000_000), record.out());
            Ok::<_, Error>(())
        })?;
        self.close_group();
        Ok(())
    }

    fn row_error_of(&self, change: &RowChange<'_, '_>, error: RowError) -> Error {
        let name = error.column.and_then(|column| change.context.table.columns.get(column));
        Error::Row(Box::new(RowFailure {
            table: (*change.context.id).clone(),
            row: usize::try_from(change.index).unwrap_or(usize::MAX),
            column: name.map(|column| column.name.clone()),
            file: change.event.file.to_owned(),
            position: change.event.position,
            error: error.error,
        }))
    }

    fn row_error(
        &self,
        event: &Event<'_>,
        map: &TableMap,
        context: Option<&TableContext>,
        error: RowError,
    ) -> Error {
        let column = error.column.map(|index| {
            let name = context
                .and_then(|context| context.table.columns.get(index))
                .map(|column| column.name.as_str());
            match name {
                Some(name) => name.to_owned(),
                None => format!("number {}", index + 1),
            }
        });
        Error::Row(Box::new(RowFailure {
            table: TableId::new(map.database(), map.table()),
            row: error.row,
            column,
            file: event.file.to_owned(),
            position: event.position,
            error: error.error,
        }))
    }

    fn close_group(&mut self) {
        let offset = self.offset();
        self.batch.close_group(offset);
        if self.config.queue.is_full(self.batch.len(), self.batch.size_bytes())
            && let Some(batch) = self.batch.finish()
        {
            self.ready.push_back(batch);
        }
    }

    /// Notes that the stream went on without a record.
    fn note_progress(&mut self) {
        let offset = self.offset();
        self.batch.advance(offset);
    }

    /// All inner events of a compressed transaction were handled; the payload event ends at byte `end`.
    pub(crate) fn payload_done(&mut self, end: u64) {
        self.tracker.event_done(end);
        self.note_progress();
    }

    /// The log is read over a new connection, from where `tracker` is. Definitions and what was assembled stay.
    pub(crate) fn reconnect(&mut self, tracker: TxnTracker) {
        self.tracker = tracker;
        self.resolved.clear();
        self.thread = None;
        self.query = None;
        self.transaction = None;
        self.gtid_time = false;
    }

    /// Takes batches that are full.
    pub(crate) fn take_ready(&mut self) -> Option<Batch> {
        self.ready.pop_front()
    }

    /// Takes what there is, full or not.
    pub(crate) fn take_batch(&mut self) -> Option<Batch> {
        self.ready.pop_front().or_else(|| self.batch.finish())
    }

    /// The offset with everything handled so far done.
    pub(crate) fn offset(&self) -> OffsetPoint {
        let restart = self.tracker.restart_point().clone();
        let birth = self
            .birth
            .as_ref()
            .filter(|(file, _)| *file == restart.unit.file)
            .map(|(_, birth)| *birth);
        OffsetPoint {
            restart,
            birth,
            ts_sec: (self.event_us != 0).then(|| self.event_us.div_euclid(1_000_000)),
            server_id: self.server_id,
            snapshot: self.snapshot,
            lineage: Some(Arc::clone(&self.lineage)),
        }
    }
}

/// One row of an event on its way to its records.
#[derive(Debug, Clone, Copy)]
struct RowChange<'c, 'r> {
    event: &'c Event<'c>,
    context: &'c Arc<TableContext>,
    kind: RowsKind,
    row: &'c Row<'r>,
    index: u64,
    now_ns: i64,
}

impl TableContext {
    pub(crate) fn new(table: Arc<Table>, config: &Config) -> Result<Self, Error> {
        let id = Arc::new(table.id.clone());
        let too_complex = |error| Error::Start(format!("a pattern gives up on {id}: {error}"));
        let topic = config.topics.data(&id).map_err(too_complex)?;
        let selection = config.column_selection(&table);
        let naming = config.field_naming(&topic);
        let (converter, warnings) =
            TableConverter::with_naming(&table, &config.conversion, &selection, &naming);
        for warning in warnings {
            tracing::warn!(table = %id, warning = %warning, "column not as defined");
        }
        if let Some(raw) = &topic.replaced {
            tracing::warn!(table = %id, topic = topic.name, raw, "characters of the topic name were replaced");
        }
        Ok(Self { topic: topic.name.into(), id, converter, key: selection.key, table })
    }

    fn key_changed(&self, kind: RowsKind, row: &Row<'_>) -> bool {
        matches!(kind, RowsKind::Update | RowsKind::PartialUpdate)
            && self.key.iter().any(|column| row.before.get(*column) != row.after.get(*column))
    }

    fn unchanged(&self, row: &Row<'_>) -> bool {
        self.converter
            .value_columns()
            .all(|column| row.before.get(column.index()) == row.after.get(column.index()))
    }
}

/// One side of a row, with the JSON documents that a partial update makes of the other side.
#[derive(Debug, Clone, Copy)]
struct Image<'i, 'r> {
    image: &'i RowImage<'r>,
    patched: &'i [PatchedDocument],
}

impl<'i, 'r: 'i> Image<'i, 'r> {
    fn get(self, column: usize) -> Option<Value<'i>> {
        let value = self.image.get(column)?;
        if !matches!(value, Value::JsonDiffs(_)) {
            return Some(value);
        }
        let document = self.patched.iter().find(|document| document.column == column);
        document.map(|document| Value::JsonText(&document.text))
    }
}

/// A JSON document that a partial update made.
#[derive(Debug)]
struct PatchedDocument {
    column: usize,
    text: Vec<u8>,
}

/// The documents that the diffs of a partial update make of those in the before image.
fn patched_documents(row: &Row<'_>) -> Result<Vec<PatchedDocument>, (usize, DecodeError)> {
    let mut documents = Vec::new();
    for (column, value) in row.after.iter() {
        let Value::JsonDiffs(diffs) = value else { continue };
        let Some(Value::Json(before)) = row.before.get(column) else {
            return Err((
                column,
                DecodeError::Empty { field: "JSON document in the before image" },
            ));
        };
        let mut text = Vec::new();
        diffs
            .write_text(before, JsonStyle::Debezium, &mut text)
            .map_err(|error| (column, error))?;
        documents.push(PatchedDocument { column, text });
    }
    Ok(documents)
}

/// Takes rows that nobody looks at.
struct Nothing;

impl<'a> RowSink<'a> for Nothing {
    fn value(&mut self, _: Side, _: usize, _: Value<'a>) {}
}

const fn is_skipped(skipped: SkippedOperations, kind: RowsKind) -> bool {
    match kind {
        RowsKind::Write => skipped.create,
        RowsKind::Update | RowsKind::PartialUpdate => skipped.update,
        RowsKind::Delete => skipped.delete,
    }
}

/// Appends the identity as the only header, and ends the headers.
pub(crate) fn write_identity_header(record: &mut RecordWriter<'_>, identity: Option<&EventId>) {
    if let Some(identity) = identity {
        let out = record.out();
        out.extend_from_slice(b"{\"__holdfast.id\":");
        write_string(&identity.to_string(), out);
        out.push(b'}');
    }
    record.end_headers();
}

fn write_headers(
    record: &mut RecordWriter<'_>,
    context: &TableContext,
    header: Option<(&'static str, Image<'_, '_>)>,
    identity: Option<&EventId>,
) -> Result<(), ConvertError> {
    let Some((name, image)) = header else {
        write_identity_header(record, identity);
        return Ok(());
    };
    let out = record.out();
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    context.converter.write_key(|column| image.get(column), Origin::Stream, out)?;
    if let Some(identity) = identity {
        out.extend_from_slice(b",\"__holdfast.id\":");
        write_string(&identity.to_string(), out);
    }
    out.push(b'}');
    record.end_headers();
    Ok(())
}

/// Appends the key, `null` where the table has none.
pub(crate) fn write_key<'a>(
    record: &mut RecordWriter<'_>,
    context: &TableContext,
    image: impl Fn(usize) -> Option<Value<'a>>,
    origin: Origin,
) -> Result<(), ConvertError> {
    let out = record.out();
    if !context.converter.write_key(image, origin, out)? {
        out.extend_from_slice(b"null");
    }
    record.end_key();
    Ok(())
}

fn write_image(
    context: &TableContext,
    image: Option<Image<'_, '_>>,
    out: &mut Vec<u8>,
) -> Result<(), ConvertError> {
    match image {
        Some(image) => context.converter.write_row(|column| image.get(column), Origin::Stream, out),
        None => {
            out.extend_from_slice(b"null");
            Ok(())
        }
    }
}

fn truncate_record(
    batch: &mut BatchBuilder,
    event: &DdlEvent,
    source: &SourceInfo<'_>,
    config: &Config,
    origin: RecordOrigin,
    now_ns: i64,
) -> Result<(), Error> {
    let Some(table) = event.tables.first() else { return Ok(()) };
    let source = SourceTemplate::new(&SourceInfo {
        db: &table.database,
        table: Some(&table.table),
        ..*source
    });
    let origin = RecordOrigin { table: Arc::new(table.clone()), ..origin };
    let topic = config
        .topics
        .data(table)
        .map_err(|error| Error::Start(format!("a pattern gives up on {table}: {error}")))?;
    let head =
        RecordHead { kind: RecordKind::Data(Op::Truncate), topic: topic.name.into(), origin };
    batch.record(head, |record| {
        record.end_headers();
        record.out().extend_from_slice(b"null");
        record.end_key();
        let out = record.out();
        json::begin_before(out);
        out.extend_from_slice(b"null");
        json::begin_after(out);
        out.extend_from_slice(b"null");
        json::end(&source, 0, None, Op::Truncate, now_ns, out);
        Ok(())
    })
}

/// Appends a schema-change record to the open group.
pub(crate) fn schema_change_record(
    batch: &mut BatchBuilder,
    event: &DdlEvent,
    source: SourceInfo<'_>,
    topic: Arc<str>,
    origin: RecordOrigin,
    now_ns: i64,
) -> Result<(), Error> {
    let names: Vec<&str> = event.tables.iter().map(|table| table.table.as_str()).collect();
    let names = names.join(",");
    let table = match event.kind {
        DdlEventKind::Database | DdlEventKind::Set => None,
        DdlEventKind::Create
        | DdlEventKind::Alter
        | DdlEventKind::Drop
        | DdlEventKind::Truncate
        | DdlEventKind::Other
        | _ => Some(names.as_str()),
    };
    let origin = match event.tables.first() {
        Some(table) => RecordOrigin { table: Arc::new(table.clone()), ..origin },
        None => origin,
    };
    let change = SchemaChange {
        source: SourceInfo { table, ..source },
        ts_ms: now_ns.div_euclid(1_000_000),
        database: Some(&event.database),
        ddl: Some(&event.ddl),
    };
    let head = RecordHead { kind: RecordKind::SchemaChange, topic, origin };
    batch.record(head, |record| {
        record.end_headers();
        json::write_schema_change_key(&event.database, record.out());
        record.end_key();
        let changes = |out: &mut Vec<u8>| write_table_changes_connect(&event.changes, out);
        json::write_schema_change_value(&change, changes, record.out());
        Ok(())
    })
}

/// The table that an INSERT, UPDATE, DELETE or REPLACE names, as far as its first words tell.
fn statement_target(sql: &str, database: &str) -> TableId {
    const SKIPPED: [&str; 12] = [
        "INSERT",
        "UPDATE",
        "DELETE",
        "REPLACE",
        "INTO",
        "FROM",
        "IGNORE",
        "LOW_PRIORITY",
        "HIGH_PRIORITY",
        "DELAYED",
        "QUICK",
        "TABLE",
    ];
    let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ',' | ';');
    let name = sql
        .split(is_end)
        .find(|word| {
            !word.is_empty() && !SKIPPED.iter().any(|skipped| word.eq_ignore_ascii_case(skipped))
        })
        .unwrap_or_default()
        .replace('`', "");
    match name.split_once('.') {
        Some((database, table)) => TableId::new(database, table),
        None => TableId::new(database, name),
    }
}
