//! What is read at start.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Checked, ConfiguredSnapshot, LockingMode, SnapshotMode, TableOrder};
use crate::filter::{RegexList, Selection, split_list};

/// What is read at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotConfig {
    /// `snapshot.mode`.
    pub mode: SnapshotMode,
    /// `snapshot.locking.mode`.
    pub locking: LockingMode,
    /// `snapshot.lock.timeout.ms`.
    pub lock_timeout: Duration,
    /// `snapshot.fetch.size`: rows that a reader hands over at once, at most; `None` leaves it to the reader.
    pub fetch_size: Option<u32>,
    /// `snapshot.max.threads`: readers at a time, 1 and more.
    pub max_threads: u32,
    /// `snapshot.include.collection.list`: captured tables whose rows are read, on `database.table`.
    pub include: Selection,
    /// `snapshot.select.statement.overrides`: the SELECT by `database.table`, as written.
    pub select_overrides: BTreeMap<String, String>,
    /// `snapshot.tables.order.by.row.count`.
    pub table_order: TableOrder,
    /// `snapshot.delay.ms`: the wait before the snapshot; zero for none.
    pub delay: Duration,
    /// `streaming.delay.ms`: the wait between snapshot and streaming; zero for none.
    pub streaming_delay: Duration,
}

impl Checked<'_> {
    pub(super) fn snapshot(&mut self) -> SnapshotConfig {
        let mut select_overrides = BTreeMap::new();
        for table in split_list(self.text("snapshot.select.statement.overrides")) {
            let name = format!("snapshot.select.statement.overrides.{table}");
            match self.properties.get(&name).filter(|statement| !statement.trim().is_empty()) {
                Some(statement) => {
                    select_overrides.insert(table, statement.trim().to_owned());
                }
                None => self.note(&name, "there is no statement for this table: it is read whole"),
            }
        }
        let configured =
            |what: &str| self.bool(&format!("snapshot.mode.configuration.based.{what}"));
        let mode = match self.text("snapshot.mode").trim().to_ascii_lowercase().as_str() {
            "initial_only" => SnapshotMode::InitialOnly,
            "always" => SnapshotMode::Always,
            "no_data" => SnapshotMode::NoData,
            "when_needed" => SnapshotMode::WhenNeeded,
            "recovery" => SnapshotMode::Recovery,
            "custom" => SnapshotMode::Custom,
            "configuration_based" => SnapshotMode::ConfigurationBased(ConfiguredSnapshot {
                data: configured("snapshot.data"),
                schema: configured("snapshot.schema"),
                stream: configured("start.stream"),
                on_schema_error: configured("snapshot.on.schema.error"),
                on_data_error: configured("snapshot.on.data.error"),
            }),
            // Everything else but `initial` is an error already.
            _ => SnapshotMode::Initial,
        };
        SnapshotConfig {
            mode,
            locking: self.choice("snapshot.locking.mode", LockingMode::Minimal),
            lock_timeout: self.millis("snapshot.lock.timeout.ms"),
            fetch_size: self
                .parsed("snapshot.fetch.size", |text| text.parse().ok())
                .filter(|&rows: &u32| rows > 0),
            max_threads: self.integer("snapshot.max.threads"),
            include: Selection::new(
                self.list("snapshot.include.collection.list"),
                RegexList::default(),
            ),
            select_overrides,
            table_order: self.choice("snapshot.tables.order.by.row.count", TableOrder::Disabled),
            delay: self.millis("snapshot.delay.ms"),
            streaming_delay: self.millis("streaming.delay.ms"),
        }
    }
}
