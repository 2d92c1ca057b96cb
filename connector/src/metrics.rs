//! Metrics through the `metrics` crate: names, units, descriptions. A recorder of the host's choice takes them; without
//! one they cost nothing.
//!
//! All have the label `server`, the topic prefix. Counters of the hot path are added up per batch and published once a
//! second and at the end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use holdfast_binlog::position::BinlogFile;
use holdfast_history::recover::RecoveryReport;
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use tokio::time::Instant;

use crate::assemble::{LeftOut, Why};
use crate::batch::Batch;
use crate::control::{Control, EngineState};
use crate::error::{Error, ErrorClass};
use crate::format::debezium_json::Op;
use crate::initial::SnapshotState;
use crate::record::RecordKind;

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name; counters end in `_total`.
    pub name: &'static str,
    /// What it measures, with its labels beside `server`.
    pub description: &'static str,
    /// Its unit.
    unit: Unit,
}

impl Metric {
    /// The unit's name, in lower case: `seconds`, `bytes`, `count`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        self.unit.as_str()
    }

    /// Whether it only grows.
    #[must_use]
    pub fn is_counter(&self) -> bool {
        self.name.ends_with("_total")
    }
}

macro_rules! metrics_table {
    ($($constant:ident = $name:literal, $unit:ident, $description:literal;)*) => {
        $(const $constant: &str = $name;)*

        /// Every metric.
        pub const ALL: &[Metric] =
            &[$(Metric { name: $name, description: $description, unit: Unit::$unit }),*];
    };
}

metrics_table! {
    EVENTS = "holdfast_events_total", Count, "binlog events read";
    RECORDS = "holdfast_records_total", Count, "records put into batches, by kind: create, update, delete, read, truncate, tombstone, schema_change, heartbeat, transaction";
    RECORD_BYTES = "holdfast_record_bytes_total", Bytes, "JSON text of records put into batches";
    LAG = "holdfast_lag_seconds", Seconds, "how long after it was logged the last event was read; 0 when the server had nothing more";
    LAG_BYTES = "holdfast_lag_bytes", Bytes, "bytes of the server's binary logs that are still to be read; only where it is asked for";
    CONNECTED = "holdfast_connected", Count, "1 while the log is read, else 0";
    PAUSED = "holdfast_paused", Count, "1 while the engine stands still, else 0";
    RECONNECTS = "holdfast_reconnects_total", Count, "connections of the log that were lost and made again";
    REDELIVERIES = "holdfast_redeliveries_total", Count, "redeliveries that were asked for";
    ERRORS = "holdfast_errors_total", Count, "errors met, also those that were got over, by class";
    LEFT_OUT = "holdfast_left_out_total", Count, "events whose rows were left out because a failure handling mode says so, by why: undecodable, definition, statement, xa; and rows: value";
    BINLOG_FILE = "holdfast_binlog_file_number", Count, "number of the binlog file that is read";
    BINLOG_POSITION = "holdfast_binlog_position_bytes", Bytes, "position in it: the start of the open transaction, or the end of the last one";
    LINEAGE_EPOCH = "holdfast_lineage_epoch", Count, "epoch of the log, raised when it is found to be another one";
    QUEUE_BYTES = "holdfast_queue_bytes", Bytes, "text of batches that wait for the consumer";
    QUEUE_CAPACITY_BYTES = "holdfast_queue_capacity_bytes", Bytes, "bound on it";
    QUEUE_CAPACITY_RECORDS = "holdfast_queue_capacity_records", Count, "records that may wait for the consumer";
    OPEN_GROUPS = "holdfast_open_groups", Count, "ack groups read and not acknowledged";
    OLDEST_OPEN_GROUP = "holdfast_oldest_open_group_age_seconds", Seconds, "how long the first ack group that is not acknowledged has been waiting, to the second; 0 when all are";
    FRONTIER_LAG = "holdfast_frontier_lag_seconds", Seconds, "how long ago the last change was made that is acknowledged with all before it; 0 when nothing read is open";
    ACKS_DUPLICATE = "holdfast_acks_duplicate_total", Count, "acknowledgements of what was acknowledged before";
    ACKS_STALE = "holdfast_acks_stale_total", Count, "acknowledgements of what was given up by a redelivery, or never given out";
    ACKS_REJECTED = "holdfast_acks_rejected_total", Count, "ack groups that the consumer gave back, and that came again for it";
    COMMITS = "holdfast_offset_commits_total", Count, "offsets stored";
    COMMIT_FAILURES = "holdfast_offset_commit_failures_total", Count, "offsets that could not be stored, and were tried again";
    REGRESSIONS = "holdfast_offset_regressions_total", Count, "offsets refused, as they would have moved the stored one backwards";
    SNAPSHOT_RUNNING = "holdfast_snapshot_running", Count, "1 while a snapshot is taken, else 0";
    SNAPSHOT_COMPLETED = "holdfast_snapshot_completed", Count, "1 once all of the snapshot was read, else 0";
    SNAPSHOT_ABORTED = "holdfast_snapshot_aborted", Count, "1 after a snapshot ended before all was read, until it goes on, else 0";
    SNAPSHOT_SKIPPED = "holdfast_snapshot_skipped", Count, "1 when streaming began at a stored offset, without a snapshot, else 0";
    SNAPSHOT_DURATION = "holdfast_snapshot_duration_seconds", Seconds, "how long the snapshot took, or takes so far, with its pauses";
    SNAPSHOT_ROWS = "holdfast_snapshot_rows_total", Count, "rows read by snapshots";
    SNAPSHOT_TABLES = "holdfast_snapshot_tables", Count, "tables of the last snapshot, by state: total, remaining";
    SCHEMA_CHANGES = "holdfast_schema_changes_total", Count, "statements of the log that changed definitions";
    REPLAYED_DDL = "holdfast_replayed_ddl_suppressed_total", Count, "statements of the log met again whose effect the schema history had";
    REFRESH_RUNS = "holdfast_refresh_runs_total", Count, "refreshes of the schema history by this engine, failed ones included";
    REFRESH_FAILURES = "holdfast_refresh_failures_total", Count, "of these, those that failed or were refused";
    REFRESH_FILE = "holdfast_last_refresh_file_number", Count, "number of the binlog file of the offset of the last refresh that succeeded";
    REFRESH_POSITION = "holdfast_last_refresh_position_bytes", Bytes, "position in it";
    SUSPICIOUS = "holdfast_history_suspicious_skips", Count, "records of the schema history skipped at the last recovery although they lie before the offset; anything but 0 wants to be looked at";
    HISTORY_RECOVERED = "holdfast_history_recovered", Count, "records of the schema history read at the last recovery";
    HISTORY_APPLIED = "holdfast_history_applied", Count, "of these, records applied, by the rule that decided it";
    HISTORY_SKIPPED = "holdfast_history_skipped", Count, "of these, records beyond the offset, by the rule that decided it";
}

/// Sums that the reader keeps.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    events: AtomicU64,
    record_bytes: AtomicU64,
    records: [AtomicU64; KINDS.len()],
    schema_changes: AtomicU64,
    snapshot_rows: AtomicU64,
    replayed: AtomicU64,
    left_out: [AtomicU64; Why::LABELS.len()],
    refresh_runs: AtomicU64,
    refresh_failures: AtomicU64,
    last_refresh: Mutex<Option<(u64, u64)>>,
}

const KINDS: [&str; 9] = [
    "create",
    "update",
    "delete",
    "read",
    "truncate",
    "tombstone",
    "schema_change",
    "heartbeat",
    "transaction",
];

const fn kind_index(kind: RecordKind) -> usize {
    match kind {
        RecordKind::Data(Op::Create) => 0,
        RecordKind::Data(Op::Update) => 1,
        RecordKind::Data(Op::Delete) => 2,
        RecordKind::Data(Op::Read) => 3,
        RecordKind::Data(Op::Truncate) => 4,
        RecordKind::Tombstone => 5,
        RecordKind::SchemaChange => 6,
        RecordKind::Heartbeat => 7,
        RecordKind::Transaction => 8,
    }
}

impl Counters {
    /// Counts the records of a batch.
    pub(crate) fn batch(&self, batch: &Batch) {
        let mut sums = [0_u64; KINDS.len()];
        for change in batch.changes() {
            if let Some(sum) = sums.get_mut(kind_index(change.kind())) {
                *sum += 1;
            }
        }
        for (index, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
            if let Some(counter) = self.records.get(index) {
                counter.fetch_add(*sum, Ordering::Relaxed);
            }
        }
        self.record_bytes.fetch_add(batch.size_bytes() as u64, Ordering::Relaxed);
    }

    pub(crate) fn events(&self, events: u64) {
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn schema_change(&self) {
        self.schema_changes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn replayed(&self, statements: u64) {
        self.replayed.fetch_add(statements, Ordering::Relaxed);
    }

    pub(crate) fn left_out(&self, counts: LeftOut) {
        for (index, count) in counts.into_iter().enumerate() {
            if let Some(counter) = self.left_out.get(index) {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Counts a refresh at a place, and hands on how it went.
    pub(crate) fn refreshed<T>(
        &self,
        (file, pos): (String, u64),
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        self.refresh_runs.fetch_add(1, Ordering::Relaxed);
        if result.is_err() {
            self.refresh_failures.fetch_add(1, Ordering::Relaxed);
        } else if let Ok(file) = BinlogFile::parse(&file) {
            *self.last_refresh.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((file.number(), pos));
        }
        result
    }

    pub(crate) fn snapshot_rows(&self, rows: u64) {
        self.snapshot_rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Tells the recorder what the metrics are.
pub fn describe() {
    for metric in ALL {
        if metric.is_counter() {
            describe_counter!(metric.name, metric.unit, metric.description);
        } else {
            describe_gauge!(metric.name, metric.unit, metric.description);
        }
    }
}

/// How old open groups are: the ledger has no clock, so it is looked at from time to time.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    /// Numbers that the next group had, and when.
    seen: VecDeque<(u64, Instant)>,
}

impl Ages {
    /// Looks at the ledger: the number of the first open group, and the one that the next group gets.
    fn look(&mut self, first_open: u64, next: u64, now: Instant) -> Duration {
        const MOST: usize = 3600;
        if self.seen.back().is_none_or(|(number, _)| *number != next) {
            self.seen.push_back((next, now));
        }
        while self.seen.front().is_some_and(|(number, _)| *number <= first_open) {
            self.seen.pop_front();
        }
        if self.seen.len() > MOST {
            self.seen.remove(1);
        }
        match self.seen.front() {
            Some((_, since)) if first_open < next => now.duration_since(*since),
            Some(_) | None => Duration::ZERO,
        }
    }
}

/// Publishes once a second.
pub(crate) async fn publish_forever(control: Control) {
    let mut ages = Ages::default();
    let server: Arc<str> = control.config().topic_prefix.as_str().into();
    loop {
        let (first_open, next, done_sec) = control.window();
        let age = ages.look(first_open, next, Instant::now());
        let behind = match done_sec {
            Some(sec) if first_open < next => {
                crate::source::now_ns().div_euclid(1_000_000_000).saturating_sub(sec).max(0)
            }
            Some(_) | None => 0,
        };
        gauge!(OLDEST_OPEN_GROUP, "server" => Arc::clone(&server)).set(age.as_secs_f64());
        gauge!(FRONTIER_LAG, "server" => Arc::clone(&server)).set(seconds(behind));
        publish(&control);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floating point numbers")]
const fn seconds(seconds: i64) -> f64 {
    seconds as f64
}

/// Publishes what an engine says of itself.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point numbers")]
pub(crate) fn publish(control: &Control) {
    let config = control.config();
    let server: Arc<str> = config.topic_prefix.as_str().into();
    let set = |name: &'static str, value: f64| {
        gauge!(name, "server" => Arc::clone(&server)).set(value);
    };
    let total = |name: &'static str, value: u64| {
        counter!(name, "server" => Arc::clone(&server)).absolute(value);
    };
    let status = control.status();
    let counters = &control.signals().counters;
    let is = |state| f64::from(u8::from(status.state == state));
    total(EVENTS, counters.events.load(Ordering::Relaxed));
    for (kind, count) in KINDS.iter().zip(&counters.records) {
        counter!(RECORDS, "server" => Arc::clone(&server), "kind" => *kind)
            .absolute(count.load(Ordering::Relaxed));
    }
    for (why, count) in Why::LABELS.into_iter().zip(&counters.left_out) {
        counter!(LEFT_OUT, "server" => Arc::clone(&server), "why" => why)
            .absolute(count.load(Ordering::Relaxed));
    }
    total(RECORD_BYTES, counters.record_bytes.load(Ordering::Relaxed));
    if let Some(lag) = status.lag {
        set(LAG, lag.as_secs_f64());
    }
    set(CONNECTED, is(EngineState::Streaming));
    set(PAUSED, is(EngineState::Paused));
    for (name, state) in [
        (SNAPSHOT_RUNNING, SnapshotState::Running),
        (SNAPSHOT_COMPLETED, SnapshotState::Completed),
        (SNAPSHOT_ABORTED, SnapshotState::Aborted),
        (SNAPSHOT_SKIPPED, SnapshotState::Skipped),
    ] {
        set(name, f64::from(u8::from(status.snapshot == state)));
    }
    let took = control.signals().snapshot().took(Instant::now());
    set(SNAPSHOT_DURATION, took.as_secs_f64());
    total(RECONNECTS, status.reconnects);
    total(REDELIVERIES, control.signals().wanted().rewinds);
    if let Some(position) = &status.position {
        if let Ok(file) = crate::offset::file_of(position) {
            set(BINLOG_FILE, file.number() as f64);
        }
        set(BINLOG_POSITION, position.pos as f64);
        let epoch = position.holdfast.as_ref().map_or(0, |ours| ours.epoch);
        set(LINEAGE_EPOCH, epoch as f64);
    }
    set(QUEUE_BYTES, status.queued_bytes as f64);
    set(QUEUE_CAPACITY_BYTES, config.queue.max_bytes as f64);
    set(QUEUE_CAPACITY_RECORDS, config.queue.max_records as f64);
    set(OPEN_GROUPS, status.open_groups as f64);
    total(ACKS_DUPLICATE, status.acks.duplicate);
    total(ACKS_STALE, status.acks.stale);
    total(ACKS_REJECTED, status.acks.rejected);
    total(COMMITS, status.offset_commits);
    total(COMMIT_FAILURES, status.offset_commit_failures);
    total(REGRESSIONS, status.offset_regressions);
    total(SNAPSHOT_ROWS, counters.snapshot_rows.load(Ordering::Relaxed));
    total(SCHEMA_CHANGES, counters.schema_changes.load(Ordering::Relaxed));
    total(REPLAYED_DDL, counters.replayed.load(Ordering::Relaxed));
    total(REFRESH_RUNS, counters.refresh_runs.load(Ordering::Relaxed));
    total(REFRESH_FAILURES, counters.refresh_failures.load(Ordering::Relaxed));
    let refreshed = *counters.last_refresh.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((file, pos)) = refreshed {
        set(REFRESH_FILE, file as f64);
        set(REFRESH_POSITION, pos as f64);
    }
}

/// Bytes of the log that are still to be read.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point numbers")]
pub(crate) fn lag_bytes(server: &str, bytes: u64) {
    gauge!(LAG_BYTES, "server" => server.to_owned()).set(bytes as f64);
}

/// An error was met.
pub(crate) fn error(server: &str, class: ErrorClass) {
    let class = match class {
        ErrorClass::Transient => "transient",
        ErrorClass::Config => "config",
        ErrorClass::Data => "data",
        ErrorClass::Purged => "purged",
        ErrorClass::Fenced => "fenced",
        ErrorClass::Storage => "storage",
        ErrorClass::Bug => "bug",
    };
    counter!(ERRORS, "server" => server.to_owned(), "class" => class).increment(1);
}

/// The schema history was recovered.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point numbers")]
pub(crate) fn recovered(server: &str, report: &RecoveryReport) {
    gauge!(HISTORY_RECOVERED, "server" => server.to_owned()).set(report.recovered as f64);
    let suspicious = report.suspicious().count();
    gauge!(SUSPICIOUS, "server" => server.to_owned()).set(suspicious as f64);
    for (name, by) in [(HISTORY_APPLIED, &report.applied_by), (HISTORY_SKIPPED, &report.skipped_by)]
    {
        for (rule, records) in by {
            let rule = rule.letter().to_string();
            gauge!(name, "server" => server.to_owned(), "rule" => rule).set(*records as f64);
        }
    }
}

/// Tables of a snapshot, and those that are still to be read.
#[expect(clippy::cast_precision_loss, reason = "gauges are floating point numbers")]
pub(crate) fn snapshot_tables(server: &str, total: usize, remaining: usize) {
    for (state, tables) in [("total", total), ("remaining", remaining)] {
        gauge!(SNAPSHOT_TABLES, "server" => server.to_owned(), "state" => state).set(tables as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_group_is_as_old_as_the_first_look_after_it_was_given_out() {
        let mut ages = Ages::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut age = |first, next, second| ages.look(first, next, at(second)).as_secs();
        assert_eq!(age(1, 1, 0), 0);
        assert_eq!(age(1, 5, 1), 0);
        assert_eq!(age(1, 9, 4), 3);
        // Those of the first look are done; the others were there at the second.
        assert_eq!(age(6, 9, 6), 2);
        assert_eq!(age(9, 9, 9), 0);
        assert_eq!(age(9, 10, 12), 0);
        assert_eq!(age(9, 10, 20), 8);
    }

    #[test]
    fn the_documentation_lists_every_metric() {
        let text = include_str!("../../docs/metrics.md");
        for metric in ALL {
            assert!(text.contains(&format!("`{}`", metric.name)), "{} is missing", metric.name);
        }
    }

    #[test]
    fn names_are_the_project_s_and_each_kind_has_its_own_counter() {
        let mut names: Vec<&str> = ALL.iter().map(|metric| metric.name).collect();
        assert!(names.iter().all(|name| name.starts_with("holdfast_")));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(KINDS.get(kind_index(RecordKind::Tombstone)), Some(&"tombstone"));
        assert_eq!(KINDS.get(kind_index(RecordKind::Data(Op::Truncate))), Some(&"truncate"));
        assert_eq!(KINDS.get(kind_index(RecordKind::Transaction)), Some(&"transaction"));
    }
}
