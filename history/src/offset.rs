//! The offset: where a restart begins, with Debezium's JSON members and ours.

/// Placeholder until the codec stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceOffset {
    /// Binlog file of the restart point, `""` before anything was read.
    pub file: String,
    /// Byte offset of the restart point: start of the open unit, or the end of the last closed one.
    pub pos: u64,
    /// Debezium's count of events of the open unit that are done; 0 is not written.
    pub event: u64,
    /// Debezium's count of rows done in the event after those; 0 is not written.
    pub row: u64,
    /// GTID set (MySQL) or position (MariaDB) completed before the open unit, as text.
    pub gtids: Option<String>,
    /// Event time in whole seconds.
    pub ts_sec: Option<i64>,
    /// `server_id` of the last event's header: the origin's, not that of the server we are connected to.
    pub server_id: Option<u64>,
    /// Set while a snapshot is incomplete.
    pub snapshot: Option<SnapshotKind>,
    /// GTID or `file=…,pos=…` of the open transaction, with `provide.transaction.metadata`.
    pub transaction_id: Option<String>,
    /// Rows emitted per `db.table` in the open transaction, with `provide.transaction.metadata`.
    pub transaction_order: Vec<(String, u64)>,
    /// Our own members, absent in offsets that Debezium wrote.
    pub holdfast: Option<HoldfastMembers>,
    /// Members that we do not know, kept as they were (name, JSON text).
    pub other: Vec<(String, String)>,
}

/// The kind of snapshot that is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// `INITIAL`.
    Initial,
    /// `BLOCKING`.
    Blocking,
    /// `INCREMENTAL`.
    Incremental,
}

/// The `holdfast_*` members. Flat and primitive in JSON, so that Debezium carries and ignores them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HoldfastMembers {
    /// `holdfast_v`: version of these members, 1.
    pub version: u32,
    /// `holdfast_lineage`: UUID (MariaDB: `server_uid`, else id) of the server connected to.
    pub lineage: Option<String>,
    /// `holdfast_epoch`: raised when the log is found to be another one; starts at 1.
    pub epoch: u64,
    /// `holdfast_birth`: timestamp in the format description of `file`, seconds.
    pub birth: Option<u32>,
    /// `holdfast_check`: checksum of the event that ends at `pos`.
    pub check: Option<u32>,
    /// `holdfast_unit`: GTID of the open unit.
    pub unit: Option<String>,
    /// `holdfast_unit_pos`: position of the open unit's GTID event.
    pub unit_pos: Option<u64>,
    /// `holdfast_rows`: rows of the open unit that are done; an UPDATE is one row.
    pub rows: u64,
    /// `holdfast_held`: XA units that are prepared and undecided, as text.
    pub held: Option<String>,
    /// `holdfast_progress`: tables done of a snapshot, as text.
    pub progress: Option<String>,
    /// `holdfast_closed`: closing coordinates of earlier epochs, as text.
    pub closed: Option<String>,
    /// `holdfast_refresh_head`: where the definitions of the last refresh were read.
    pub refresh_head: Option<String>,
}
