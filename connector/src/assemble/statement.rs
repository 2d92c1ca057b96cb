//! Statements: what begins and ends units, and what changes the schema.

use std::sync::Arc;

use holdfast_binlog::event::{Event, Query, QueryStatus};
use holdfast_history::codec::write_table_changes_connect;
use holdfast_history::ddl::{
    self, DdlContext, DdlError, DdlEvent, DdlEventKind, Flavor, SqlMode, StatementClass,
};
use holdfast_history::offset::{LogPlace, SourceOffset};
use holdfast_history::recover::StreamedStatement;
use holdfast_history::{HistoryRecord, TableId, Tables};

use super::xa::xid_of;
use super::{Assembler, Step, VERSION, Why, origin};
use crate::batch::{BatchBuilder, RecordHead, RecordOrigin};
use crate::charset::{charset_name, decode_statement};
use crate::config::{Config, SchemaSource};
use crate::error::{DdlFailure, Error};
use crate::format::connect_schema::{FixedSchemas, SchemaText};
use crate::format::debezium_json::{self as json, EnvelopeEnd, Op, SchemaChange, SourceInfo};
use crate::offset::OffsetPoint;
use crate::record::RecordKind;

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

impl Assembler {
    pub(super) fn query(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        now_ns: i64,
    ) -> Result<Step, Error> {
        let sql = decode_statement(query.sql, query.status.charset.map(|charset| charset.client));
        let sql = sql.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        if self.passing {
            self.pass_statement(event, sql)?;
            return Ok(Step::Done);
        }
        if std::mem::take(&mut self.ignore_statement) {
            self.statement_done(event)?;
            return Ok(Step::Done);
        }
        match ddl::classify(sql) {
            StatementClass::Begin => {
                if !self.tracker.is_open() {
                    self.begin(event, Some(query.thread_id.into()), true)?;
                }
                self.tracker.event_done(event.end);
            }
            StatementClass::Commit | StatementClass::Rollback => self.close(event.end)?,
            StatementClass::Xa => self.xa_statement(event, sql)?,
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

    /// A statement of a unit that is passed over: it opens or ends the unit, and nothing else.
    fn pass_statement(&mut self, event: &Event<'_>, sql: &str) -> Result<(), Error> {
        let class = ddl::classify(sql);
        if class == StatementClass::Begin || xid_of(sql, "XA START ").is_some() {
            self.tracker.begin(event.position);
        }
        if matches!(class, StatementClass::Commit | StatementClass::Rollback) {
            return self.close(event.end);
        }
        self.statement_done(event)
    }

    fn xa_statement(&mut self, event: &Event<'_>, sql: &str) -> Result<(), Error> {
        if let Some(xid) = xid_of(sql, "XA START ") {
            if !self.tracker.is_open() {
                self.begin(event, None, false)?;
                self.xa_started(event, xid.to_owned());
            }
            self.tracker.event_done(event.end);
            return Ok(());
        }
        if let Some(xid) = xid_of(sql, "XA COMMIT ") {
            return self.xa_committed(event, xid);
        }
        if let Some(xid) = xid_of(sql, "XA ROLLBACK ") {
            return self.xa_rolled_back(event, xid);
        }
        self.statement_done(event)
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
            unit_position: self
                .config
                .is_mariadb()
                .then(|| self.tracker.announced_at().unwrap_or(event.position)),
            end_position: event.end,
            ddl: sql,
        });
        let context = DdlContext {
            database: (!database.is_empty()).then(|| database.clone()),
            sql_mode: SqlMode(query.status.sql_mode.unwrap_or_default()),
            flavor: self.config.ddl_flavor(),
            server_charset: query.status.charset.and_then(|charset| charset_name(charset.server)),
            implicit_timestamp_defaults: has_implicit_timestamp_defaults(
                &query.status,
                self.config.ddl_flavor(),
            ),
            failed: query.error_code != 0,
            comments: self.config.events.schema_comments,
            ..DdlContext::default()
        };
        let place = LogPlace { file: self.tracker.file().to_string(), pos: event.end };
        let context = DdlContext { definitions_are_ahead: self.ahead.covers(&place), ..context };
        let mut tables = self.tables.clone();
        let mut events = if self.scans(event, sql, &context) {
            Vec::new()
        } else if replayed {
            tracing::info!(
                binlog_file = event.file,
                binlog_position = event.position,
                "statement met again: the schema history already has its effect"
            );
            self.replayed += 1;
            Vec::new()
        } else {
            let applied = ddl::apply_statement(sql, &context, &mut tables)
                .or_else(|error| self.ahead.despite(&place, &error, sql).ok_or(error));
            match applied {
                Ok(events) => events,
                Err(error) if self.is_of_no_concern(&error) => {
                    tracing::warn!(
                        binlog_file = event.file,
                        binlog_position = event.position,
                        error = %error,
                        "statement ignored: it can't be understood, and its table is not captured"
                    );
                    Vec::new()
                }
                Err(error)
                    if self.config.history.skip_unparseable
                        || self.config.history.source == SchemaSource::Metadata =>
                {
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
        if self.ahead.covers(&place) {
            self.ahead.keep(&place, &mut tables, &mut events);
        }
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
            .map(|event| history_record(event, &self.config, &position, ts_ms))
            .collect();
        Ok(Step::Ddl(Box::new(pending)))
    }

    /// Whether a statement that can't be understood is about a table that is not captured.
    fn is_of_no_concern(&self, error: &DdlError) -> bool {
        error.table.as_ref().is_some_and(|table| !self.config.tables.captures(table))
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
        self.origins.note(&events, self.tracker.file(), position);
        if events.iter().any(|event| !event.changes.is_empty())
            || events.iter().any(|event| event.tables.is_empty() && event.kind != DdlEventKind::Set)
        {
            self.resolved.clear();
            self.contexts.clear();
        }
        // Cut to milliseconds, as Debezium does for statements.
        let ts_us = self.event_us.div_euclid(1000) * 1000;
        let gtid = self.tracker.current_gtid().map(|gtid| gtid.to_string());
        if deliver {
            if self.config.events.value_schemas {
                for event in events.iter().filter(|event| event.kind == DdlEventKind::Truncate) {
                    for table in &event.tables {
                        self.context(table)?;
                    }
                }
            }
            let contexts = &self.contexts;
            for event in &events {
                let source = SourceInfo {
                    version: VERSION,
                    connector: self.config.connector.connector_name(),
                    name: &self.config.topic_prefix,
                    ts_us,
                    snapshot: self.config.streamed_mark(),
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
                        let origin = origin(&self.no_table, &self.tracker, position, 0);
                        let context = event.tables.first().and_then(|id| contexts.get(id));
                        truncate_record(
                            &mut self.batch,
                            event,
                            &source,
                            (&self.config, context.map(|context| &context.schemas.value)),
                            origin,
                            now_ns,
                        )?;
                    }
                } else if self.config.events.schema_changes {
                    let origin = origin(&self.no_table, &self.tracker, position, 0);
                    let topic = &self.schema_topic;
                    let to = (topic, &*self.schemas);
                    schema_change_record(&mut self.batch, event, source, to, origin, now_ns)?;
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

    /// `LOAD DATA` in statement format: the event does not say which table in a form worth parsing.
    pub(super) fn load_data(&mut self, event: &Event<'_>) -> Result<(), Error> {
        self.lost_change(Error::StatementChange {
            kind: "LOAD DATA".to_owned(),
            table: "a table".to_owned(),
            file: event.file.to_owned(),
            position: event.position,
        })
    }

    fn lost_change(&mut self, error: Error) -> Result<(), Error> {
        self.leave_out(self.config.events.on_processing_failure, Why::Statement, error)
    }

    fn statement_change(
        &mut self,
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
        self.lost_change(error)
    }
}

/// Whether `explicit_defaults_for_timestamp` was OFF.
///
/// Source: MySQL writes it as a status variable of its own; MariaDB has it among the session's options
/// (`OPTION_EXPLICIT_DEF_TIMESTAMP` in `sql/sql_priv.h`), and servers that do not log it have it OFF by default.
fn has_implicit_timestamp_defaults(status: &QueryStatus, flavor: Flavor) -> bool {
    const EXPLICIT: u32 = 1 << 24;
    match flavor {
        Flavor::MySql => status.explicit_defaults_for_timestamp == Some(false),
        Flavor::MariaDb => status.flags2.is_some_and(|flags| flags & EXPLICIT == 0),
    }
}

fn truncate_record(
    batch: &mut BatchBuilder,
    event: &DdlEvent,
    source: &SourceInfo<'_>,
    (config, schema): (&Config, Option<&SchemaText>),
    origin: RecordOrigin<'_>,
    now_ns: i64,
) -> Result<(), Error> {
    let Some(table) = event.tables.first() else { return Ok(()) };
    let source = SourceInfo { db: &table.database, table: Some(&table.table), ..*source };
    let end = EnvelopeEnd::new(&source, now_ns);
    let id = Arc::new(table.clone());
    let origin = RecordOrigin { table: &id, ..origin };
    let topic = config
        .topics
        .data(table)
        .map_err(|error| Error::Start(format!("a pattern gives up on {table}: {error}")))?;
    let topic: Arc<str> = topic.name.into();
    let head = RecordHead { kind: RecordKind::Data(Op::Truncate), topic: &topic, origin };
    batch.record(head, |record| {
        record.end_headers();
        record.out().extend_from_slice(b"null");
        record.end_key();
        let out = record.out();
        if let Some(schema) = schema {
            schema.begin(out);
        }
        json::begin_before(out);
        out.extend_from_slice(b"null");
        json::begin_after(out);
        out.extend_from_slice(b"null");
        end.write(0, None, Op::Truncate, out);
        if let Some(schema) = schema {
            schema.end(out);
        }
        Ok(())
    })
}

/// What the schema history keeps of a statement's effect. `ts_ms` is the time of processing.
pub(crate) fn history_record(
    event: &DdlEvent,
    config: &Config,
    position: &SourceOffset,
    ts_ms: i64,
) -> HistoryRecord {
    HistoryRecord {
        source: config.topic_prefix.clone(),
        position: position.clone(),
        ts_ms,
        database_name: event.database.clone(),
        ddl: Some(event.ddl.clone()),
        table_changes: event.changes.clone(),
    }
}

/// Appends a schema-change record to the open group.
pub(crate) fn schema_change_record(
    batch: &mut BatchBuilder,
    event: &DdlEvent,
    source: SourceInfo<'_>,
    (topic, schemas): (&Arc<str>, &FixedSchemas),
    origin: RecordOrigin<'_>,
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
    let first = event.tables.first().map(|table| Arc::new(table.clone()));
    let origin = RecordOrigin { table: first.as_ref().unwrap_or(origin.table), ..origin };
    let change = SchemaChange {
        source: SourceInfo { table, ..source },
        ts_ms: now_ns.div_euclid(1_000_000),
        database: Some(&event.database),
        ddl: Some(&event.ddl),
    };
    let head = RecordHead { kind: RecordKind::SchemaChange, topic, origin };
    batch.record(head, |record| {
        let [key, value] = &schemas.schema_change;
        record.end_headers();
        key.begin(record.out());
        json::write_schema_change_key(&event.database, record.out());
        key.end(record.out());
        record.end_key();
        let changes = |out: &mut Vec<u8>| write_table_changes_connect(&event.changes, out);
        value.begin(record.out());
        json::write_schema_change_value(&change, changes, record.out());
        value.end(record.out());
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
    let sql = without_comments(sql);
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

/// The statement without the comments that precede it.
fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        match comment.split_once("*/") {
            Some((_, after)) => rest = after.trim_start(),
            None => break,
        }
    }
    rest
}
