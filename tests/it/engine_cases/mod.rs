//! The cases of the engine's specification, on real servers: offsets and restarts, starting, acknowledgements.
//!
//! Most drive the library, with offset and history in memory, so that a "crash" is an engine that is dropped: what was
//! committed stays, and nothing else. The tables say which test shows what; a name without a path is a test of this folder.
//!
//! Offsets and restart:
//!
//! | id | shown by |
//! | --- | --- |
//! | O01 O08 O09 O10 O26 | `every_record_carries_the_offset_of_its_row` |
//! | O02 O16 | `identities_are_the_same_in_batches_of_any_size` |
//! | O03 O04 O06 | `restarts.rs`: every prefix of the 39 records is acknowledged and resumed |
//! | O05 A03 | `a_group_of_which_a_part_is_open_comes_again_as_a_whole` |
//! | O07 | `errors/streaming.rs`: `a_signal_delivers_and_commits_what_was_read` |
//! | O11 O12 O13 | `history/src/offset.rs`: `foreign_forms_of_an_offset_are_read`, `what_cannot_be_read_names_the_member` |
//! | O14 | `counters_of_a_transaction_go_on_after_a_restart` |
//! | O15 | `a_compressed_transaction_goes_on_at_its_row` |
//! | O17 O18 O19 | `xa.rs`, case 055 |
//! | O20 G14 | `the_first_transaction_of_a_server_is_resumed_inside` |
//! | O21 | `an_offset_inside_another_unit_is_refused_and_loses_nothing` |
//! | O22 | `a_setting_that_changes_the_count_of_events_loses_nothing` |
//! | O23 | `heartbeats_at_a_restart_leave_the_offset_inside_its_transaction` |
//! | O24 | `a_rotated_log_moves_the_offset` |
//! | O25 | case 087 |
//! | O27 | `a_statement_that_debezium_had_done_is_not_applied_twice` |
//! | O28 | `connector/src/committer.rs`: `a_refused_offset_leaves_the_old_one_and_an_equal_place_is_not_written` |
//!
//! Start position, GTIDs, client:
//!
//! | id | shown by |
//! | --- | --- |
//! | G01 | `binlog/src/gtid/set/tests.rs`, case 121 |
//! | G02 G03 G04 G05 | `sources_are_merged_and_left_out_as_configured` |
//! | G06 | `connector/src/config/tests.rs`: `pairs_of_properties_are_checked_in_debeziums_words` |
//! | G07 G09 G11 G12 | `errors/positions.rs` |
//! | G08 | `a_purged_place_is_filled_by_a_snapshot_where_that_is_wanted` |
//! | G10 | `an_offset_ahead_of_the_server_is_refused_and_kept` |
//! | G13 G15 | `a_start_by_position_on_a_server_with_gtids` |
//! | G16 | `tags_stay_in_the_set` |
//! | G17 | `a_log_without_checksums_is_read` |
//! | G18 | `a_connection_that_falls_silent_is_made_again` |
//! | G19 | `errors/usage.rs`, `errors/rights.rs` |
//! | G20 | `binlog/src/client/error.rs`: `the_reasons_of_error_1236_are_told_apart_by_their_messages`; `errors/positions.rs`: `mariadb_positions_that_were_purged_or_never_were_are_told` |
//! | G21 | case 059, golden `operations-query` |
//! | G22 G23 | `a_transaction_comes_whole_whatever_the_buffer_is_set_to` |
//! | G24 | case 057 |
//! | G25 | case 049; `errors/streaming.rs` |
//! | G26 | `left_out.rs`; damaged logs: `damage.rs` |
//! | G27 | `rows_of_an_unknown_table_are_an_error_or_left_out` |
//! | G28 | case 051, `history.rs` |
//!
//! Failover to another server of the topology, and logs that were reset: `failover.rs`.
//!
//! Acknowledgements and metrics:
//!
//! | id | shown by |
//! | --- | --- |
//! | A01 A04 | `rows_acknowledged_out_of_order_are_stored_up_to_the_first_gap` |
//! | A02 | `a_key_change_is_one_delivery_in_batches_of_one` |
//! | A05 | `rows_that_are_filtered_move_the_offset` |
//! | A06 | `connector/src/ack.rs`: `the_frontier_waits_for_every_part_of_a_group` |
//! | A07 A08 | `offsets_are_written_when_the_interval_says_and_again_after_a_failure` |
//! | A09 | `a_stop_stores_what_is_acknowledged_and_no_more` |
//! | A10 | kills between, during and after acknowledgements: `kills.rs`, `restarts.rs`; after a DDL's record: `history_cases.rs`; during an append: `refresh.rs`, `errors/stores.rs`; during an offset write: `connector/src/offset_store/file.rs`; in a snapshot: `a_snapshot_that_was_cut_short_is_taken_again` |
//! | M01 M03 | `metrics_have_the_names_that_are_documented` |
//! | M02 | the same, for `no_data`; `a_snapshot_is_aborted_by_a_stop_then_completed_and_skipped_from_then_on` |
//! | M04 | `history/src/recover/tests.rs`: `records_up_to_the_offset_are_applied_and_later_ones_counted` |

mod acks;
mod failover;
mod left_out;
mod metrics;
mod offsets;
mod snapshots;
mod sources;
mod start;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdfast_connector::config::Properties as ConnectorProperties;
use holdfast_connector::offset_store::{MemoryOffsetStore, OffsetKey};
use holdfast_connector::{Batch, ChangeRecord, Config, Engine, Error, OffsetStore, RecordKind};
use holdfast_history::SourceOffset;
use holdfast_history::store::{MemoryHistory, MemoryHistoryStore};
use holdfast_tests::engine::{PREFIX, Properties};
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};

const PATIENCE: Duration = Duration::from_secs(90);

/// The id of the row that ends what a test looks at.
const END: i64 = 999;

/// Runs `test` on a shared server; its guard is held outside of the runtime.
fn on(options: &Options, test: impl AsyncFnOnce(&Server)) {
    let server = shared(options).unwrap();
    run(test(&server));
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

/// Who embeds the engine: the table `t (id, label)` of a database of its own, its settings, and its stores, which outlive
/// the engine.
struct Host<'s> {
    server: &'s Server,
    database: &'static str,
    folder: PathBuf,
    properties: Properties,
    history: MemoryHistory,
    offsets: Arc<dyn OffsetStore>,
}

impl<'s> Host<'s> {
    /// With an offset that is stored behind the table's creation.
    async fn new(server: &'s Server, database: &'static str) -> Self {
        let host = Self::unstored(server, database);
        let mut engine = host.start().await;
        host.insert(0);
        let batches = until(&mut engine, 0).await;
        batches.iter().for_each(Batch::acknowledge);
        engine.close().await.unwrap();
        assert_eq!(host.stored().await.snapshot, None);
        host
    }

    /// Without an offset.
    fn unstored(server: &'s Server, database: &'static str) -> Self {
        let statements = format!(
            "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; \
             CREATE TABLE {database}.t (id INT PRIMARY KEY, label VARCHAR(20) NOT NULL DEFAULT '')"
        );
        server.sql(&statements).unwrap();
        let folder = paths::fresh(database).unwrap();
        let mut properties = Properties::new(server, &folder);
        properties.set("snapshot.mode", "no_data");
        properties.set("database.include.list", database);
        properties.set("include.schema.changes", "false");
        properties.set("retriable.restart.connector.wait.ms", "100");
        Self {
            server,
            database,
            folder,
            properties,
            history: MemoryHistory::new(),
            offsets: Arc::new(MemoryOffsetStore::new()),
        }
    }

    fn set(&mut self, key: &str, value: impl Into<String>) {
        self.properties.set(key, value);
    }

    fn sql(&self, script: &str) {
        self.server.sql(&format!("USE {}; {script}", self.database)).unwrap();
    }

    fn insert(&self, id: i64) {
        self.sql(&format!("INSERT INTO t (id) VALUES ({id})"));
    }

    fn config(&self) -> Config {
        let path = self.folder.join("connector.properties");
        self.properties.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let parsed = ConnectorProperties::parse(&text).unwrap();
        Config::from_properties(&parsed, Path::new(&self.folder)).unwrap().0
    }

    /// Starts an engine, and waits until it reads the log.
    async fn start(&self) -> Engine {
        let mut engine = self.try_start().await;
        if !engine.control().streaming().await {
            panic!("the engine ended: {:?}", engine.next_batch().await);
        }
        engine
    }

    async fn try_start(&self) -> Engine {
        Engine::builder(self.config())
            .history(Arc::new(self.own_history().await))
            .offsets(Arc::clone(&self.offsets))
            .start()
            .await
            .unwrap()
    }

    /// The history, as soon as the tasks of an engine that was dropped are gone.
    async fn own_history(&self) -> MemoryHistoryStore {
        let begun = std::time::Instant::now();
        loop {
            match self.history.open() {
                Ok(history) => return history,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Starts an engine that ends with an error.
    async fn fails(&self) -> Error {
        let mut engine = self.try_start().await;
        loop {
            match tokio::time::timeout(PATIENCE, engine.next_batch()).await.expect("no error came")
            {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the engine ended without an error"),
                Err(error) => return error,
            }
        }
    }

    fn key(&self) -> OffsetKey {
        OffsetKey {
            engine: self.properties.get("name").unwrap().to_owned(),
            server: PREFIX.to_owned(),
        }
    }

    async fn stored(&self) -> SourceOffset {
        self.offsets.load(&self.key()).await.unwrap().expect("an offset is stored")
    }

    async fn store(&self, offset: &SourceOffset) {
        self.offsets.store(&self.key(), offset).await.unwrap();
    }

    /// Everything from the stored offset to the row [`END`], which it writes, read by a new engine that is dropped.
    async fn rest(&self) -> Vec<Seen> {
        self.insert(END);
        self.read_rest().await
    }

    /// As [`rest`](Self::rest), with the row there already.
    async fn read_rest(&self) -> Vec<Seen> {
        let mut engine = self.start().await;
        let mut rows = seen(&until(&mut engine, END).await);
        let end = rows.iter().position(|row| row.id == END && row.op != "END");
        rows.truncate(end.expect("it came"));
        rows
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// What tests look at of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// `c`, `u`, `d` and so on; `tombstone`, `heartbeat`, `BEGIN`, `END`.
    op: String,
    /// The row's id; of a transaction's END the number of its records, else 0.
    id: i64,
    identity: String,
    offset: SourceOffset,
    /// The value's JSON.
    value: serde_json::Value,
}

impl Seen {
    fn new(record: &ChangeRecord<'_>) -> Self {
        let json = |bytes: &[u8]| -> serde_json::Value { serde_json::from_slice(bytes).unwrap() };
        let (key, value) = (json(record.key()), json(record.value()));
        let text = |name: &str| value.get(name).and_then(|op| op.as_str()).map(str::to_owned);
        let op = match record.kind() {
            RecordKind::Tombstone => Some("tombstone".to_owned()),
            RecordKind::Heartbeat => Some("heartbeat".to_owned()),
            RecordKind::Transaction => text("status"),
            RecordKind::Data(_) | RecordKind::SchemaChange | _ => text("op"),
        };
        let id = value.get("event_count").or_else(|| key.get("id")).and_then(|id| id.as_i64());
        Self {
            op: op.unwrap_or_default(),
            id: id.unwrap_or_default(),
            identity: record.identity().to_string(),
            offset: record.offset(),
            value,
        }
    }

    fn op_and_id(&self) -> (&str, i64) {
        (&self.op, self.id)
    }
}

fn seen(batches: &[Batch]) -> Vec<Seen> {
    batches.iter().flat_map(Batch::changes).map(|change| Seen::new(&change)).collect()
}

fn ids(rows: &[Seen]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

fn brief(rows: &[Seen]) -> Vec<(&str, i64)> {
    rows.iter().map(Seen::op_and_id).collect()
}

async fn next(engine: &mut Engine) -> Batch {
    let next = tokio::time::timeout(PATIENCE, engine.next_batch()).await.expect("no batch came");
    next.unwrap().expect("the engine ended")
}

/// Batches up to the one with the row `id`; nothing is acknowledged.
async fn until(engine: &mut Engine, id: i64) -> Vec<Batch> {
    let mut batches = Vec::new();
    loop {
        let batch = next(engine).await;
        let found = batch.changes().map(|change| Seen::new(&change)).any(|row| {
            row.id == id && row.op != "heartbeat" && row.op != "BEGIN" && row.op != "END"
        });
        batches.push(batch);
        if found {
            return batches;
        }
    }
}

/// Acknowledges the first groups.
fn acknowledge(batches: &[Batch], groups: usize) {
    let changes = batches.iter().flat_map(Batch::changes);
    for change in changes.filter(ChangeRecord::is_last_of_group).take(groups) {
        change.ack_group().acknowledge();
    }
}

/// The engine ends without a last word: what is acknowledged is stored, and nothing else happens.
async fn crash(engine: Engine) {
    engine.control().flush().await.unwrap();
    drop(engine);
}
