//! Reading the tables: over as many connections as there are readers, each turning rows into records, and one place where
//! they become batches.
//!
//! ```text
//! reader 1 ── table, table, … ──┐
//! reader 2 ── table, … ─────────┼─▶ bounded channel of pieces ──▶ markers, progress, batches
//! ```
//!
//! A table is read by one reader and its pieces come in order, so that its rows do. The first and the last row of a table
//! come unconverted, since their markers depend on the other tables; all rows between are marked `true`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_history::{TableId, Tables};
use holdfast_snapshot::{RowReader, SnapshotRowBuf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::SnapshotRun;
use super::record::{RowWriter, Scratch};
use crate::assemble::TableContext;
use crate::batch::{BatchBuilder, HeldRecords};
use crate::error::Error;
use crate::source::Source;

/// JSON text that a reader hands over at once, bytes, unless one row is larger.
const PIECE_BYTES: usize = 1 << 20;

/// Pieces of each reader that may wait.
const PIECES: usize = 2;

/// Below so many records a piece is put together with others.
const SMALL: usize = 256;

/// How often the log says how far it is.
const REPORT: Duration = Duration::from_secs(30);

/// A table to be read.
struct Task {
    context: Arc<TableContext>,
    select: Option<String>,
}

/// What a reader hands over.
enum Piece {
    /// The table's first row, its last, or both.
    Edge(Edge),
    /// Rows between them, as records, and how many were read.
    Rows(HeldRecords, u64),
    /// The table has no more rows.
    Done { table: Arc<TableContext>, rows: u64 },
}

struct Edge {
    context: Arc<TableContext>,
    row: SnapshotRowBuf,
    number: u64,
    is_first: bool,
    is_last: bool,
}

/// One reader: takes tables until there are none.
struct Reader {
    rows: RowReader,
    tasks: Arc<Mutex<VecDeque<Task>>>,
    pieces: mpsc::Sender<Result<Piece, Error>>,
    writer: RowWriter,
    batch: BatchBuilder,
    most: usize,
}

/// Nobody takes pieces any more.
struct Gone;

impl Reader {
    async fn run(mut self) {
        loop {
            let task = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(task) = task else { break };
            match self.read(&task).await {
                Ok(Ok(())) => {}
                Ok(Err(Gone)) => return,
                Err(error) => {
                    // Without a receiver the snapshot has ended already.
                    let _ = self.pieces.send(Err(error)).await;
                    return;
                }
            }
        }
        if let Err(error) = self.rows.close().await {
            tracing::debug!(
                error = Error::from(error).chain(),
                "a reader's connection was not closed"
            );
        }
    }

    async fn read(&mut self, task: &Task) -> Result<Result<(), Gone>, Error> {
        let context = &task.context;
        let (batch, writer) = (&mut self.batch, &self.writer);
        let mut reader = self.rows.read(context.table(), task.select.as_deref()).await?;
        let mut scratch = Scratch::default();
        // The latest row: its record is in the open group, to be taken back when it turns out to be the last.
        let mut first: Option<SnapshotRowBuf> = None;
        let mut latest: Option<SnapshotRowBuf> = None;
        let mut end = writer.end(context, "true");
        let mut count = 0_u64;
        // Rows in pieces and before them; the first stands alone.
        let mut passed = 1_u64;
        while let Some(row) = reader.next().await? {
            count += 1;
            if count == 1 {
                first = Some(row.to_owned());
                continue;
            }
            if let Some(row) = first.take() {
                let edge = edge(context, row, 0, true, false);
                if self.pieces.send(Ok(edge)).await.is_err() {
                    return Ok(Err(Gone));
                }
            }
            if batch.open_parts() > 0 {
                batch.close_sibling_group();
            }
            if batch.len() >= self.most || batch.size_bytes() >= PIECE_BYTES {
                let rows = Piece::Rows(batch.take_all(), count - 1 - passed);
                passed = count - 1;
                if self.pieces.send(Ok(rows)).await.is_err() {
                    return Ok(Err(Gone));
                }
                end = writer.end(context, "true");
            }
            writer.write(batch, context, row, count - 1, &end, &mut scratch)?;
            match &mut latest {
                Some(latest) => latest.replace(row),
                None => latest = Some(row.to_owned()),
            }
        }
        let mut pieces = Vec::with_capacity(3);
        if let Some(row) = first {
            pieces.push(edge(context, row, 0, true, true));
        }
        if let Some(row) = latest {
            batch.drop_group();
            if batch.len() > 0 {
                pieces.push(Piece::Rows(batch.take_all(), count - 1 - passed));
            }
            pieces.push(edge(context, row, count - 1, false, true));
        }
        pieces.push(Piece::Done { table: Arc::clone(context), rows: count });
        for piece in pieces {
            if self.pieces.send(Ok(piece)).await.is_err() {
                return Ok(Err(Gone));
            }
        }
        Ok(Ok(()))
    }
}

fn edge(
    context: &Arc<TableContext>,
    row: SnapshotRowBuf,
    number: u64,
    is_first: bool,
    is_last: bool,
) -> Piece {
    Piece::Edge(Edge { context: Arc::clone(context), row, number, is_first, is_last })
}

/// Where the records of all readers come together.
struct Merge {
    /// The last row of a table, which is the last of all when no other row comes.
    pending: Option<Edge>,
    /// No row came yet, and the first table is not found to be empty: then no row is marked as the first of all.
    is_first: bool,
    scratch: Scratch,
}

impl Source {
    /// Reads the tables that are not done, in this order; `None` when nobody takes records any more.
    pub(super) async fn read_tables(
        &mut self,
        readers: Vec<RowReader>,
        run: &mut SnapshotRun,
        tables: &Tables,
        read: &[TableId],
    ) -> Result<Option<()>, Error> {
        let mut tasks = VecDeque::new();
        for id in read.iter().filter(|id| !run.progress.is_done(id)) {
            let table = tables.get(id).map(Arc::clone).ok_or_else(|| Error::UnknownTable {
                table: id.clone(),
                file: run.writer.file.to_string(),
                position: run.writer.pos,
            })?;
            let select = self.config.snapshot.select_overrides.get(&id.to_string()).cloned();
            let context = Arc::new(TableContext::new(table, &self.config)?);
            tasks.push_back(Task { context, select });
        }
        let (total, mut remaining) = (read.len(), tasks.len());
        let tasks = Arc::new(Mutex::new(tasks));
        let (sender, mut pieces) = mpsc::channel(readers.len().max(1) * PIECES);
        // Dropped, and with it the readers' connections, whatever ends this.
        let mut running = JoinSet::new();
        let fetch = self.config.snapshot.fetch_size.filter(|rows| *rows > 0);
        let fetch = fetch.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        for rows in readers {
            let reader = Reader {
                rows,
                tasks: Arc::clone(&tasks),
                pieces: sender.clone(),
                writer: run.writer.clone(),
                batch: run.batch.sibling().with_chain(self.config.chain()),
                most: self.config.queue.max_batch.min(fetch).max(1),
            };
            running.spawn(reader.run());
        }
        drop(sender);
        let mut merge = Merge { pending: None, is_first: true, scratch: Scratch::default() };
        let mut report = Instant::now() + REPORT;
        while remaining > 0 {
            if self.is_stopped() || self.hold().await.is_some() {
                return Ok(None);
            }
            let signals = Arc::clone(&self.signals);
            let wanted = signals.wanted();
            // Cancel-safe: neither branch takes anything unless it completes.
            let piece = tokio::select! {
                biased;
                () = signals.until(|now| *now != wanted) => continue,
                piece = pieces.recv() => piece,
            };
            match piece {
                None => {
                    let failed = running.join_next().await.and_then(Result::err);
                    let reason = failed.map_or_else(String::new, |error| format!(": {error}"));
                    return Err(Error::Start(format!(
                        "a reader of the snapshot ended early{reason}"
                    )));
                }
                Some(Err(error)) => return Err(error),
                Some(Ok(Piece::Edge(edge))) => {
                    self.count_rows(run, 1);
                    if self.edge(run, &mut merge, edge).await?.is_none() {
                        return Ok(None);
                    }
                }
                Some(Ok(Piece::Rows(records, rows))) => {
                    self.count_rows(run, rows);
                    self.flush_pending(run, &mut merge)?;
                    if self.pass(run, records).await.is_none() {
                        return Ok(None);
                    }
                }
                Some(Ok(Piece::Done { table, rows })) => {
                    remaining -= 1;
                    merge.is_first &= rows > 0 || read.first() != Some(&table.id);
                    run.finish(&table.id);
                    crate::metrics::snapshot_tables(&self.config.topic_prefix, total, remaining);
                    tracing::info!(table = %table.id, rows, remaining, "table read");
                }
            }
            if Instant::now() >= report {
                report = Instant::now() + REPORT;
                tracing::info!(rows = run.rows, tables = total, remaining, "the snapshot goes on");
            }
        }
        if let Some(last) = merge.pending.take() {
            let end = run.complete.clone();
            self.emit(run, &mut merge, &last, "last", &end)?;
        }
        Ok(Some(()))
    }

    fn count_rows(&self, run: &mut SnapshotRun, rows: u64) {
        run.rows += rows;
        self.signals.counters.snapshot_rows(rows);
    }

    /// A table's first or last row.
    async fn edge(
        &mut self,
        run: &mut SnapshotRun,
        merge: &mut Merge,
        edge: Edge,
    ) -> Result<Option<()>, Error> {
        self.flush_pending(run, merge)?;
        if edge.is_last {
            merge.pending = Some(edge);
            return Ok(Some(()));
        }
        let marker = if merge.is_first { "first" } else { "first_in_data_collection" };
        let after = run.incomplete.clone();
        self.emit(run, merge, &edge, marker, &after)?;
        Ok(self.send_full(run).await)
    }

    /// Gives out the last row of a table that is not the last of all. The first of all is that, whatever else it is.
    fn flush_pending(&self, run: &mut SnapshotRun, merge: &mut Merge) -> Result<(), Error> {
        let Some(edge) = merge.pending.take() else { return Ok(()) };
        let is_first_of_all = edge.is_first && merge.is_first;
        let marker = if is_first_of_all { "first" } else { "last_in_data_collection" };
        let after = run.incomplete.clone();
        self.emit(run, merge, &edge, marker, &after)
    }

    fn emit(
        &self,
        run: &mut SnapshotRun,
        merge: &mut Merge,
        edge: &Edge,
        marker: &'static str,
        after: &crate::offset::OffsetPoint,
    ) -> Result<(), Error> {
        let end = run.writer.end(&edge.context, marker);
        let (row, context) = (edge.row.as_row(), &edge.context);
        let scratch = &mut merge.scratch;
        run.writer.write(&mut run.batch, context, row, edge.number, &end, scratch)?;
        run.batch.close_group(after.view());
        merge.is_first = false;
        Ok(())
    }

    /// Gives records on: as a batch of their own where there are many, and no faster than is wanted.
    async fn pass(&mut self, run: &mut SnapshotRun, records: HeldRecords) -> Option<()> {
        let groups = records.groups();
        if groups > self.batch_limit() {
            for group in 0..groups {
                run.batch.paste(&records, group, run.incomplete.view());
                self.send_full(run).await?;
            }
            return Some(());
        }
        if groups >= SMALL || run.batch.len() + groups > self.batch_limit() {
            self.send_all(run).await?;
        }
        run.batch.append(records, run.incomplete.view());
        if groups >= SMALL { self.send_all(run).await } else { self.send_full(run).await }
    }
}

impl SnapshotRun {
    /// A table is done: the groups that follow say so.
    fn finish(&mut self, table: &TableId) {
        self.progress.finish(table);
        self.incomplete.progress = self.progress.text();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Progress;
    use super::*;

    #[test]
    fn progress_is_kept_in_the_offset_of_an_incomplete_snapshot() {
        let tables = [TableId::new("d", "a"), TableId::new("d", "b")];
        let mut progress = Progress::new(&tables);
        progress.finish(&tables[0]);
        let mut point = crate::offset::OffsetPoint::closed_at("b.000001", 4);
        point.lineage = Some(Arc::new(crate::offset::Lineage {
            server: "s".to_owned(),
            epoch: 1,
            closed: None,
            refresh_head: None,
        }));
        point.progress = progress.text();
        let stored = point.to_source_offset().to_json();
        let read = holdfast_history::offset::SourceOffset::from_json(&stored).unwrap();
        let text = read.holdfast.unwrap().progress.unwrap();
        assert_eq!(Progress::restore(&tables, &text), Some(progress));
    }
}
