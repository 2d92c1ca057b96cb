//! The snapshot at the start: definitions into the history, rows into records, and the offset that streaming begins at.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::txn::{Gtids, RestartPoint};
use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::ddl::{self, DdlContext, DdlEvent};
use holdfast_history::offset::SnapshotKind;
use holdfast_history::recover::ReplayGuard;
use holdfast_history::{Ahead, HistoryRecord, TableId, Tables};
use holdfast_snapshot::{LogPosition, ServerFacts, SnapshotOptions, SnapshotRow, Snapshotter};
use mysql_async::Conn;

use crate::assemble::{Origins, TableContext, VERSION, history_record, schema_change_record};
use crate::batch::{BatchBuilder, RecordHead, RecordOrigin};
use crate::config::LockingMode;
use crate::convert::Origin;
use crate::error::{ConvertFailed, DdlFailure, Error};
use crate::format::connect_schema::FixedSchemas;
use crate::format::debezium_json::{self as json, EnvelopeEnd, Op, SourceInfo};
use crate::offset::{Lineage, OffsetPoint};
use crate::record::RecordKind;
use crate::source::{Source, StreamStart, now_ns};

/// What all records of one snapshot share.
struct SnapshotRun {
    position: LogPosition,
    file: Arc<str>,
    /// Stored until the last record is acknowledged.
    incomplete: OffsetPoint,
    /// The offset of the last record.
    complete: OffsetPoint,
    batch: BatchBuilder,
    schemas: Arc<FixedSchemas>,
    rows: u64,
}

/// A row that waits for what comes after it, since that decides its marker.
struct Held {
    context: Arc<TableContext>,
    first_of_table: bool,
    first_of_all: bool,
    row: SnapshotRow,
    number: u64,
}

impl Source {
    /// Takes a snapshot: definitions, and rows where the mode wants them. `None` when nobody takes records any more.
    ///
    /// The position is stored, marked incomplete, before the first record is given out.
    pub(crate) async fn take_snapshot(
        &mut self,
        conn: Conn,
        facts: &ServerFacts,
    ) -> Result<Option<StreamStart>, Error> {
        let config = Arc::clone(&self.config);
        let with_data = config.snapshot.mode.reads_rows() || self.fills_gap;
        if !config.snapshot.delay.is_zero() {
            tokio::time::sleep(config.snapshot.delay).await;
        }
        let locking = match config.snapshot.locking {
            LockingMode::Minimal => holdfast_snapshot::LockingMode::Minimal,
            LockingMode::Extended => holdfast_snapshot::LockingMode::Extended,
            LockingMode::None => holdfast_snapshot::LockingMode::None,
            LockingMode::MinimalPercona | LockingMode::MinimalPerconaNoTableLocks => {
                return Err(Error::Start(
                    "snapshot.locking.mode: LOCK TABLES FOR BACKUP is not there yet; use minimal, extended or none"
                        .to_owned(),
                ));
            }
        };
        let wants_schema = |table: &TableId| config.wants_definition(table);
        let options = SnapshotOptions {
            locking,
            lock_timeout: config.snapshot.lock_timeout,
            wants_schema: &wants_schema,
        };
        let mut snapshot = Snapshotter::begin(conn, facts, &options).await?;
        let position = snapshot.position().clone();
        tracing::info!(
            binlog_file = position.file,
            binlog_position = position.pos,
            gtids = position.gtids,
            tables = snapshot.tables().len(),
            "snapshot began"
        );
        let lineage = self.lineage(facts, None);
        let mut run = self.begin_run(facts, &position, &lineage)?;
        // Definitions and position are read. Stores may be tables of the same server, which our lock would keep waiting.
        snapshot.unlock().await?;
        self.committer.store(&run.incomplete).await?;
        self.committer.ledger.lock().start_at(run.incomplete.clone());

        let (tables, events) = self.definitions(facts, &snapshot)?;
        self.check_guardrail(&tables)?;
        let ts_ms = now_ns().div_euclid(1_000_000);
        let stored_position = run.incomplete.to_source_offset();
        let records: Vec<HistoryRecord> = events
            .iter()
            .map(|event| history_record(event, &config, &stored_position, ts_ms))
            .collect();
        self.history.append(&records).await?;

        let mut captured: Vec<TableId> = snapshot
            .tables()
            .iter()
            .filter(|table| config.tables.captures(table))
            .cloned()
            .collect();
        if captured.is_empty() {
            tracing::warn!(
                user = config.connection.user,
                "no table is captured: none fits the include and exclude lists, or the user may not SELECT from it"
            );
        }
        config.tables.sort_for_snapshot(&mut captured);
        if config.events.schema_changes
            && self.schema_changes(&mut run, &events, with_data).await?.is_none()
        {
            return Ok(None);
        }
        if with_data {
            let read = captured
                .iter()
                .filter(|table| config.snapshot.include.includes(&table.to_string()));
            let read: Vec<TableId> = read.cloned().collect();
            if self.read_tables(&mut snapshot, &mut run, &tables, &read).await?.is_none() {
                return Ok(None);
            }
        }
        // With or without records, the snapshot is complete once everything before is acknowledged.
        run.batch.advance(run.complete.view());
        if self.send_all(&mut run).await.is_none() {
            return Ok(None);
        }
        snapshot.finish().await?;
        tracing::info!(rows = run.rows, "snapshot complete");
        if !config.snapshot.streaming_delay.is_zero() {
            tokio::time::sleep(config.snapshot.streaming_delay).await;
        }
        let offset = run.complete.to_source_offset();
        let (guard, origins) = (ReplayGuard::default(), Origins::new(None));
        let ahead = Ahead::default();
        Ok(Some(StreamStart { offset, tables, guard, ahead, origins, lineage }))
    }

    fn begin_run(
        &self,
        facts: &ServerFacts,
        position: &LogPosition,
        lineage: &Arc<Lineage>,
    ) -> Result<SnapshotRun, Error> {
        let file: Arc<str> = position.file.as_str().into();
        let gtids = if self.tracks_gtids(facts) {
            Some(Arc::new(parse_gtids(position.gtids.as_deref(), self.config.is_mariadb())?))
        } else {
            None
        };
        let complete = OffsetPoint {
            restart: RestartPoint::closed(Arc::clone(&file), position.pos, gtids),
            ts_sec: Some(now_ns().div_euclid(1_000_000_000)),
            server_id: 0,
            birth: None,
            snapshot: None,
            held: None,
            lineage: Some(Arc::clone(lineage)),
        };
        let incomplete = OffsetPoint { snapshot: Some(SnapshotKind::Initial), ..complete.clone() };
        let batch =
            BatchBuilder::new(incomplete.clone(), lineage.name(), self.committer.ledger.clone())
                .with_chain(self.config.chain());
        Ok(SnapshotRun {
            position: position.clone(),
            file,
            incomplete,
            complete,
            batch,
            schemas: Arc::new(FixedSchemas::new(&self.config)),
            rows: 0,
        })
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
            let context = DdlContext {
                database: (!statement.database.is_empty()).then(|| statement.database.clone()),
                flavor: self.config.ddl_flavor(),
                comments: self.config.events.schema_comments,
                ..DdlContext::default()
            };
            let applied =
                ddl::apply_statement(&statement.ddl, &context, &mut tables).map_err(|error| {
                    Error::Ddl(Box::new(DdlFailure {
                        file: "the server's definition".to_owned(),
                        position: 0,
                        error,
                        fix: "report the definition that SHOW CREATE TABLE gives",
                    }))
                })?;
            events.extend(applied);
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
        let file = Arc::clone(&run.file);
        let config = Arc::clone(&self.config);
        let last = events.len().saturating_sub(1);
        let schemas = Arc::clone(&run.schemas);
        for (number, event) in events.iter().enumerate() {
            let marker = if number == last && !with_data { "last" } else { "true" };
            let source = source_info(
                &config.topic_prefix,
                config.connector.connector_name(),
                run,
                marker,
                &event.database,
                None,
            );
            let origin = RecordOrigin {
                table: &no_table,
                file: &file,
                pos: run.position.pos,
                ordinal: 0,
                row: number as u64,
            };
            let source = SourceInfo { file: &file, ..source };
            let to = (&topic, &*schemas);
            schema_change_record(&mut run.batch, event, source, to, origin, now_ns())?;
            run.batch.close_group(run.incomplete.view());
            run.check_transforms()?;
            if self.send_full(run).await.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    async fn read_tables(
        &mut self,
        snapshot: &mut Snapshotter,
        run: &mut SnapshotRun,
        tables: &Tables,
        read: &[TableId],
    ) -> Result<Option<()>, Error> {
        let config = Arc::clone(&self.config);
        let mut held: Option<Held> = None;
        for (number, id) in read.iter().enumerate() {
            let table = tables.get(id).map(Arc::clone).ok_or_else(|| Error::UnknownTable {
                table: id.clone(),
                file: run.position.file.clone(),
                position: run.position.pos,
            })?;
            let context = Arc::new(TableContext::new(Arc::clone(&table), &config)?);
            let select = config.snapshot.select_overrides.get(&id.to_string()).map(String::as_str);
            let mut reader = snapshot.read(&table, select).await?;
            let mut first_of_table = true;
            let mut count = 0_u64;
            while let Some(row) = reader.next().await? {
                if self.is_stopped() || self.hold().await.is_some() {
                    return Ok(None);
                }
                let next = Held {
                    context: Arc::clone(&context),
                    first_of_table,
                    first_of_all: number == 0 && first_of_table,
                    row,
                    number: run.rows,
                };
                if let Some(previous) = held.replace(next) {
                    let ends_table = first_of_table && !previous.first_of_all;
                    let marker =
                        if ends_table { "last_in_data_collection" } else { previous.marker() };
                    self.emit(run, &previous, marker, false)?;
                    if self.send_full(run).await.is_none() {
                        return Ok(None);
                    }
                }
                first_of_table = false;
                run.rows += 1;
                count += 1;
            }
            self.signals.counters.snapshot_rows(count);
            crate::metrics::snapshot_tables(
                &config.topic_prefix,
                read.len(),
                read.len() - number - 1,
            );
            tracing::info!(table = %id, rows = count, "table read");
        }
        if let Some(last) = held {
            self.emit(run, &last, "last", true)?;
        }
        Ok(Some(()))
    }

    fn emit(
        &self,
        run: &mut SnapshotRun,
        held: &Held,
        marker: &'static str,
        is_last: bool,
    ) -> Result<(), Error> {
        let context = &held.context;
        let config = &self.config;
        let mut values: Vec<Value<'_>> = Vec::new();
        held.row.values(&mut values)?;
        let image = |column: usize| values.get(column);
        let file = Arc::clone(&run.file);
        let db = context.id.database.as_str();
        let name = config.connector.connector_name();
        let source =
            source_info(&config.topic_prefix, name, run, marker, db, Some(&context.id.table));
        let now = now_ns();
        let end = EnvelopeEnd::new(&SourceInfo { file: &file, ..source }, now);
        let head = RecordHead {
            kind: RecordKind::Data(Op::Read),
            topic: &context.topic,
            origin: RecordOrigin {
                table: &context.id,
                file: &file,
                pos: run.position.pos,
                ordinal: 0,
                row: held.number,
            },
        };
        let identity = config.identity_header.then(|| head.origin.identity(run.batch.lineage(), 0));
        let text_header = &run.schemas.text_header;
        run.batch
            .record(head, |record| {
                crate::assemble::write_identity_header(record, identity.as_ref(), text_header);
                crate::assemble::write_key(record, context, image, Origin::Snapshot)?;
                let out = record.out();
                context.schemas.value.begin(out);
                json::begin_before(out);
                out.extend_from_slice(b"null");
                json::begin_after(out);
                context.converter.write_row(image, Origin::Snapshot, out)?;
                end.write(0, None, Op::Read, out);
                context.schemas.value.end(out);
                Ok(())
            })
            .map_err(|source| {
                Error::Convert(Box::new(ConvertFailed {
                    table: (*context.id).clone(),
                    file: "the snapshot".to_owned(),
                    position: run.position.pos,
                    source,
                }))
            })?;
        let offset = if is_last { &run.complete } else { &run.incomplete };
        run.batch.close_group(offset.view());
        run.check_transforms()
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

impl SnapshotRun {
    /// The failure of a transform, if there was one.
    fn check_transforms(&mut self) -> Result<(), Error> {
        match self.batch.take_failure() {
            Some(failure) => Err(Error::Transform { failure, place: "the snapshot".to_owned() }),
            None => Ok(()),
        }
    }
}

impl Held {
    const fn marker(&self) -> &'static str {
        match (self.first_of_all, self.first_of_table) {
            (true, _) => "first",
            (false, true) => "first_in_data_collection",
            (false, false) => "true",
        }
    }
}

fn source_info<'a>(
    name: &'a str,
    connector: &'static str,
    run: &SnapshotRun,
    marker: &'static str,
    db: &'a str,
    table: Option<&'a str>,
) -> SourceInfo<'a> {
    SourceInfo {
        version: VERSION,
        connector,
        name,
        ts_us: now_ns().div_euclid(1_000_000) * 1000,
        snapshot: marker,
        db,
        table,
        server_id: 0,
        gtid: None,
        file: "",
        pos: run.position.pos,
        row: 0,
        thread: None,
        query: None,
    }
}

fn parse_gtids(text: Option<&str>, mariadb: bool) -> Result<Gtids, Error> {
    let text = text.unwrap_or_default();
    let parsed = if mariadb {
        GtidPos::parse(text).map(Gtids::MariaDb)
    } else if text.is_empty() {
        Ok(Gtids::MySql(GtidSet::new()))
    } else {
        GtidSet::parse(text).map(Gtids::MySql)
    };
    parsed.map_err(|error| Error::Start(format!("the server's GTIDs can't be read: {error}")))
}
