//! The offset: where a restart begins, with Debezium's JSON members and ours.
//!
//! ```text
//! {"ts_sec":1767225600,"file":"mysql-bin.000012","pos":3687,"gtids":"…:1-10","row":6,"server_id":1,"event":10,
//!  "holdfast_v":1,"holdfast_lineage":"3e11fa47-…","holdfast_epoch":1,"holdfast_rows":10}
//! ```
//!
//! Debezium's members come first, in the order in which its hash map hands them out (`BinlogOffsetContext#getOffset`
//! fills a `HashMap` of 16 buckets), so that an offset without our members has Debezium's bytes; ours follow, then what
//! we do not know. Order never matters on reading. The same object is the `position` of a history record.

mod plain;

use std::cmp::Ordering;
use std::fmt;

use holdfast_binlog::position::BinlogFile;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::{Members, ObjectWriter, Scanner, write_compact};

/// A restart point. Every number has 64 bits; Debezium's own reader takes some of them as 32, which is one of its defects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceOffset {
    /// `file`: binlog file of the restart point, `""` before anything was read.
    pub file: String,
    /// `pos`: byte offset of the restart point in `file`: start of the open unit, or the end of the last closed one.
    pub pos: u64,
    /// `event`: Debezium's count of events of the open unit that are done, its first one included; 0 is not written.
    pub event: u64,
    /// `row`: Debezium's count of rows done in the event after those; 0 is not written.
    pub row: u64,
    /// `gtids`: GTID set (MySQL) or position (MariaDB) completed before the open unit, as text, without line breaks.
    ///
    /// `Some("")` says that the set is known to be empty. It is read as such only beside our own members: a blank set in
    /// an offset that Debezium wrote means that none is known.
    pub gtids: Option<String>,
    /// `ts_sec`: event time in whole seconds since 1970 UTC; in a snapshot the time of reading.
    pub ts_sec: Option<i64>,
    /// `server_id` of the last event's header: the origin's, not that of the server we are connected to. 0 is written by
    /// some writers for "none" and kept.
    pub server_id: Option<u64>,
    /// `snapshot`: set while a snapshot is incomplete.
    pub snapshot: Option<SnapshotKind>,
    /// `transaction_id`: GTID or `file=…,pos=…` of the open transaction, with `provide.transaction.metadata`.
    pub transaction_id: Option<String>,
    /// `transaction_data_collection_order_<db.table>`: records emitted per `db.table` in the open transaction, with
    /// `provide.transaction.metadata`.
    pub transaction_order: Vec<(String, u64)>,
    /// Our own members, absent in offsets that Debezium wrote.
    pub holdfast: Option<HoldfastMembers>,
    /// Members that we do not know, kept as they were (name, JSON text on one line).
    pub other: Vec<(String, String)>,
}

impl SourceOffset {
    /// Reads an offset from its JSON object, ours, Debezium's or one written by hand.
    ///
    /// Numbers may be JSON numbers or numeric strings; an absent or null number is 0 or unknown. `snapshot` may be the
    /// legacy `true` or `"true"`; `false`, or `snapshot_completed: true` beside it, means that no snapshot is open. Source:
    /// Debezium, `MySqlOffsetContext.Loader#load`, `OffsetUtils#longOffsetValue`. `server_id` and `ts_sec` are restored
    /// here and are not there.
    ///
    /// # Errors
    ///
    /// [`OffsetError`]: not a JSON object, no `file`, a member of another type than it must have, a newer format.
    pub fn from_json(json: &str) -> Result<Self, OffsetError> {
        plain::read(json).map_or_else(|| Self::from_members(json), Ok)
    }

    /// Reads an offset that stands next in a text. `None` when it is none, or the text is no JSON up to its end.
    pub(crate) fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        let start = scanner.clone();
        plain::scan(scanner).or_else(|| {
            *scanner = start;
            Self::from_members(scanner.value()?).ok()
        })
    }

    /// Reads it member by member: slower, takes more, and says what is wrong.
    fn from_members(json: &str) -> Result<Self, OffsetError> {
        let members: Members<'_> = serde_json::from_str(json).map_err(|error| {
            OffsetError::NotAnObject { line: error.line(), column: error.column() }
        })?;
        let mut offset = Self::default();
        let mut ours = HoldfastMembers::default();
        let mut has_ours = false;
        let mut has_file = false;
        let mut completed = false;
        for (name, raw) in members.0 {
            let member = Member { name: &name, raw };
            if let Some(table) = name.strip_prefix(TRANSACTION_ORDER) {
                if let Some(count) = member.unsigned()? {
                    offset.transaction_order.retain(|(known, _)| known != table);
                    offset.transaction_order.push((table.to_owned(), count));
                }
                continue;
            }
            let mut is_ours = true;
            match name.as_str() {
                "holdfast_v" => {
                    ours.version = member.unsigned32()?.unwrap_or(HoldfastMembers::VERSION)
                }
                "holdfast_lineage" => ours.lineage = member.string()?,
                "holdfast_epoch" => ours.epoch = member.unsigned()?.unwrap_or(0),
                "holdfast_birth" => ours.birth = member.unsigned32()?,
                "holdfast_check" => ours.check = member.unsigned32()?,
                "holdfast_unit" => ours.unit = member.string()?,
                "holdfast_unit_pos" => ours.unit_pos = member.unsigned()?,
                "holdfast_rows" => ours.rows = member.unsigned()?.unwrap_or(0),
                "holdfast_held" => ours.held = member.string()?,
                "holdfast_progress" => ours.progress = member.string()?,
                "holdfast_closed" => ours.closed = member.string()?,
                "holdfast_refresh_head" => ours.refresh_head = member.string()?,
                _ => is_ours = false,
            }
            if is_ours {
                has_ours = true;
                continue;
            }
            match name.as_str() {
                "file" => {
                    if let Some(file) = member.string()? {
                        offset.file = file;
                        has_file = true;
                    }
                }
                "pos" => offset.pos = member.unsigned()?.unwrap_or(0),
                "event" => offset.event = member.unsigned()?.unwrap_or(0),
                "row" => offset.row = member.unsigned()?.unwrap_or(0),
                "gtids" => {
                    offset.gtids = member.string()?.map(|text| text.replace(['\n', '\r'], ""))
                }
                "ts_sec" => offset.ts_sec = member.signed()?,
                "server_id" => offset.server_id = member.unsigned()?,
                "snapshot" => offset.snapshot = member.snapshot()?,
                "snapshot_completed" => completed = member.flag()?,
                "transaction_id" => offset.transaction_id = member.string()?,
                _ => {
                    let mut text = Vec::with_capacity(raw.get().len());
                    write_compact(raw.get(), &mut text);
                    let text = String::from_utf8(text)
                        .expect("removing ASCII bytes between tokens leaves UTF-8");
                    offset.other.retain(|(known, _)| *known != name);
                    offset.other.push((name, text));
                }
            }
        }
        if !has_file {
            return Err(OffsetError::MissingFile);
        }
        if has_ours && ours.version != HoldfastMembers::VERSION {
            return Err(OffsetError::Version { found: ours.version });
        }
        if completed {
            offset.snapshot = None;
        }
        if offset.gtids.as_deref().is_some_and(|text| text.trim().is_empty()) {
            offset.gtids = has_ours.then(String::new);
        }
        offset.holdfast = has_ours.then_some(ours);
        Ok(offset)
    }

    /// The offset as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(160 + self.gtids.as_ref().map_or(0, String::len));
        self.write_json(&mut out);
        String::from_utf8(out).expect("the writer copies whole strings and ASCII")
    }

    /// Appends the offset as one line of JSON, without a line break.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        if let Some(id) = &self.transaction_id {
            object.string("transaction_id", id);
        }
        for (table, count) in &self.transaction_order {
            object.integer(&format!("{TRANSACTION_ORDER}{table}"), count);
        }
        if let Some(seconds) = self.ts_sec {
            object.integer("ts_sec", seconds);
        }
        object.string("file", &self.file);
        object.integer("pos", self.pos);
        if let Some(gtids) = &self.gtids {
            object.string("gtids", gtids);
        }
        if self.row != 0 {
            object.integer("row", self.row);
        }
        if let Some(id) = self.server_id {
            object.integer("server_id", id);
        }
        if self.event != 0 {
            object.integer("event", self.event);
        }
        if let Some(kind) = self.snapshot {
            object.string("snapshot", kind.as_str());
        }
        if let Some(ours) = &self.holdfast {
            ours.write_members(&mut object);
        }
        for (name, json) in &self.other {
            object.member(name).extend_from_slice(json.as_bytes());
        }
        object.end();
    }

    /// The number of the log that the position belongs to, when the writer knew it.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.holdfast.as_ref().map(|ours| ours.epoch).filter(|&epoch| epoch != 0)
    }

    /// The server that the writer was connected to, when it said so.
    #[must_use]
    pub fn lineage(&self) -> Option<&str> {
        self.holdfast.as_ref().and_then(|ours| ours.lineage.as_deref())
    }
}

/// The kind of snapshot that is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// `INITIAL`.
    Initial,
    /// `BLOCKING`.
    Blocking,
    /// `INCREMENTAL`: a read record of an incremental snapshot; streaming goes on beside it.
    Incremental,
}

impl SnapshotKind {
    /// The word in the JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initial => "INITIAL",
            Self::Blocking => "BLOCKING",
            Self::Incremental => "INCREMENTAL",
        }
    }

    /// The kind of that word.
    fn named(word: &str) -> Option<Self> {
        [Self::Initial, Self::Blocking, Self::Incremental]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// The `holdfast_*` members. Flat and primitive in JSON, so that Debezium carries and ignores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldfastMembers {
    /// `holdfast_v`: version of these members, [`Self::VERSION`].
    pub version: u32,
    /// `holdfast_lineage`: UUID (MariaDB: `server_uid`, else id) of the server connected to.
    pub lineage: Option<String>,
    /// `holdfast_epoch`: raised when the log is found to be another one; starts at 1. 0 is "not known" and not written.
    pub epoch: u64,
    /// `holdfast_birth`: timestamp in the format description of `file`, seconds.
    pub birth: Option<u32>,
    /// `holdfast_check`: checksum of the event that ends at `pos`.
    pub check: Option<u32>,
    /// `holdfast_unit`: GTID of the open unit.
    pub unit: Option<String>,
    /// `holdfast_unit_pos`: position of the open unit's GTID event, bytes from the start of its file.
    pub unit_pos: Option<u64>,
    /// `holdfast_rows`: rows of the open unit that are done; an UPDATE is one row. 0 is not written.
    pub rows: u64,
    /// `holdfast_held`: XA units that are prepared and undecided, as text.
    pub held: Option<String>,
    /// `holdfast_progress`: tables done of a snapshot, as text.
    pub progress: Option<String>,
    /// `holdfast_closed`: closing coordinates of earlier epochs, the text form of [`ClosedEpochs`].
    pub closed: Option<String>,
    /// `holdfast_refresh_head`: where the definitions of the last refresh were read, the text form of [`LogPlace`].
    pub refresh_head: Option<String>,
}

impl HoldfastMembers {
    /// The version that this code writes, and the only one it reads.
    pub const VERSION: u32 = 1;

    fn write_members(&self, object: &mut ObjectWriter<'_>) {
        object.integer("holdfast_v", self.version);
        if let Some(lineage) = &self.lineage {
            object.string("holdfast_lineage", lineage);
        }
        if self.epoch != 0 {
            object.integer("holdfast_epoch", self.epoch);
        }
        if let Some(seconds) = self.birth {
            object.integer("holdfast_birth", seconds);
        }
        if let Some(checksum) = self.check {
            object.integer("holdfast_check", checksum);
        }
        if let Some(gtid) = &self.unit {
            object.string("holdfast_unit", gtid);
        }
        if let Some(position) = self.unit_pos {
            object.integer("holdfast_unit_pos", position);
        }
        if self.rows != 0 {
            object.integer("holdfast_rows", self.rows);
        }
        let texts = [
            ("holdfast_held", &self.held),
            ("holdfast_progress", &self.progress),
            ("holdfast_closed", &self.closed),
            ("holdfast_refresh_head", &self.refresh_head),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                object.string(name, text);
            }
        }
    }
}

impl Default for HoldfastMembers {
    fn default() -> Self {
        Self {
            version: Self::VERSION,
            lineage: None,
            epoch: 0,
            birth: None,
            check: None,
            unit: None,
            unit_pos: None,
            rows: 0,
            held: None,
            progress: None,
            closed: None,
            refresh_head: None,
        }
    }
}

/// Where the logs of earlier epochs were left: the last committed coordinates in each.
///
/// Text form: `epoch:file:pos`, joined by commas; `%` and `,` inside a file name are written `%25` and `%2C`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClosedEpochs(pub Vec<ClosedEpoch>);

/// The end of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEpoch {
    /// Its number, 1 or more.
    pub epoch: u64,
    /// The file in which it was left.
    pub file: String,
    /// The committed position there, bytes from the start of the file.
    pub pos: u64,
}

impl ClosedEpochs {
    /// Reads the text form; `None` when it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        text.split(',').map(ClosedEpoch::parse).collect::<Option<Vec<_>>>().map(Self)
    }

    /// The end of `epoch`, when it is known.
    #[must_use]
    pub fn find(&self, epoch: u64) -> Option<&ClosedEpoch> {
        self.0.iter().find(|closed| closed.epoch == epoch)
    }
}

impl fmt::Display for ClosedEpochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, closed) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let file = closed.file.replace('%', "%25").replace(',', "%2C");
            write!(f, "{}:{file}:{}", closed.epoch, closed.pos)?;
        }
        Ok(())
    }
}

impl ClosedEpoch {
    fn parse(text: &str) -> Option<Self> {
        let (epoch, rest) = text.split_once(':')?;
        let (file, pos) = rest.rsplit_once(':')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            file: file.replace("%2C", ",").replace("%25", "%"),
            pos: pos.parse().ok()?,
        })
    }
}

/// A place in the log. Text form: `file:pos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlace {
    /// The binlog file.
    pub file: String,
    /// Bytes from its start.
    pub pos: u64,
}

impl LogPlace {
    /// Reads the text form; `None` when it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (file, pos) = text.rsplit_once(':')?;
        Some(Self { file: file.to_owned(), pos: pos.parse().ok()? })
    }

    /// Whether `offset` is at or before this place; false where the two cannot be compared.
    #[must_use]
    pub fn is_at_or_after(&self, offset: &SourceOffset) -> bool {
        self.reaches(&offset.file, offset.pos)
    }

    /// Whether `pos` of `file` is at or before this place; false where the two cannot be compared.
    #[must_use]
    pub fn reaches(&self, file: &str, pos: u64) -> bool {
        let files = BinlogFile::parse(file).ok().zip(BinlogFile::parse(&self.file).ok());
        let order = files.and_then(|(there, here)| there.partial_cmp(&here));
        order.is_some_and(|order| order.then(pos.cmp(&self.pos)) != Ordering::Greater)
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.pos)
    }
}

/// Why an offset cannot be read. The stored text is damaged or foreign: this is never the same as "no offset".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetError {
    /// The text is no JSON object.
    #[error("source offset is not a JSON object (line {line}, column {column})")]
    NotAnObject {
        /// Line of the first wrong byte, from 1.
        line: usize,
        /// Its column in bytes, from 1; 0 where the text ends too early.
        column: usize,
    },
    /// There is no `file`. The words are Debezium's.
    #[error("Source offset 'file' parameter is missing")]
    MissingFile,
    /// A member that counts or measures holds something else.
    #[error("source offset member '{member}' is not a whole number that fits its range")]
    NotANumber {
        /// Name of the member.
        member: String,
    },
    /// A member has a value of another type.
    #[error("source offset member '{member}' is not {expected}")]
    WrongType {
        /// Name of the member.
        member: String,
        /// What it must be.
        expected: &'static str,
    },
    /// Our members have a version that this program does not know.
    #[error(
        "source offset has version {found} of the holdfast members, and this program reads version 1; use the program that wrote it, or a newer one"
    )]
    Version {
        /// The version found.
        found: u32,
    },
}

/// Prefix of the members that count the records of a table in the open transaction.
const TRANSACTION_ORDER: &str = "transaction_data_collection_order_";

/// One member while it is read: the error needs its name.
struct Member<'a> {
    name: &'a str,
    raw: &'a RawValue,
}

impl Member<'_> {
    fn value(&self) -> Result<Value, OffsetError> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("a JSON value"))
    }

    fn wrong(&self, expected: &'static str) -> OffsetError {
        OffsetError::WrongType { member: self.name.to_owned(), expected }
    }

    fn not_a_number(&self) -> OffsetError {
        OffsetError::NotANumber { member: self.name.to_owned() }
    }

    fn string(&self) -> Result<Option<String>, OffsetError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.wrong("a string"))
            }
        }
    }

    /// The digits of a JSON number or of a numeric string.
    fn digits(&self) -> Result<Option<String>, OffsetError> {
        match self.value()? {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text)),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(self.not_a_number()),
        }
    }

    fn unsigned(&self) -> Result<Option<u64>, OffsetError> {
        self.digits()?.map(|digits| digits.parse().map_err(|_| self.not_a_number())).transpose()
    }

    fn unsigned32(&self) -> Result<Option<u32>, OffsetError> {
        self.digits()?.map(|digits| digits.parse().map_err(|_| self.not_a_number())).transpose()
    }

    fn signed(&self) -> Result<Option<i64>, OffsetError> {
        self.digits()?.map(|digits| digits.parse().map_err(|_| self.not_a_number())).transpose()
    }

    fn flag(&self) -> Result<bool, OffsetError> {
        match self.value()? {
            Value::Null => Ok(false),
            Value::Bool(flag) => Ok(flag),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.wrong("a boolean"))
            }
        }
    }

    fn snapshot(&self) -> Result<Option<SnapshotKind>, OffsetError> {
        match self.value()? {
            Value::Null | Value::Bool(false) => Ok(None),
            Value::Bool(true) => Ok(Some(SnapshotKind::Initial)),
            Value::String(text) => match text.to_ascii_uppercase().as_str() {
                "FALSE" => Ok(None),
                "TRUE" => Ok(Some(SnapshotKind::Initial)),
                word => match SnapshotKind::named(word) {
                    Some(kind) => Ok(Some(kind)),
                    None => Err(self.wrong(SNAPSHOT_KINDS)),
                },
            },
            Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.wrong(SNAPSHOT_KINDS))
            }
        }
    }
}

const SNAPSHOT_KINDS: &str = "one of INITIAL, BLOCKING, INCREMENTAL, true, false";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_members_stand_in_the_order_of_debeziums_map() {
        let offset = SourceOffset {
            file: "mysql-bin.000012".into(),
            pos: 3_000_000_000,
            event: 10,
            row: 6,
            gtids: Some("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10".into()),
            ts_sec: Some(1_767_225_600),
            server_id: Some(4_000_000_000),
            snapshot: Some(SnapshotKind::Blocking),
            transaction_id: Some("file=mysql-bin.000012,pos=3".into()),
            transaction_order: vec![("shop.item".into(), 2)],
            holdfast: Some(HoldfastMembers {
                lineage: Some("A".into()),
                epoch: 3,
                birth: Some(u32::MAX),
                check: Some(7),
                unit: Some("U:11".into()),
                unit_pos: Some(3608),
                rows: 10,
                held: Some("x".into()),
                progress: Some("p".into()),
                closed: Some("1:mysql-bin.000001:4".into()),
                refresh_head: Some("h".into()),
                ..HoldfastMembers::default()
            }),
            other: vec![("incremental_snapshot_collections".into(), "\"[{}]\"".into())],
        };
        assert_eq!(
            offset.to_json(),
            concat!(
                r#"{"transaction_id":"file=mysql-bin.000012,pos=3","transaction_data_collection_order_shop.item":2,"#,
                r#""ts_sec":1767225600,"file":"mysql-bin.000012","pos":3000000000,"#,
                r#""gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10","row":6,"server_id":4000000000,"event":10,"#,
                r#""snapshot":"BLOCKING","holdfast_v":1,"holdfast_lineage":"A","holdfast_epoch":3,"#,
                r#""holdfast_birth":4294967295,"holdfast_check":7,"holdfast_unit":"U:11","holdfast_unit_pos":3608,"#,
                r#""holdfast_rows":10,"holdfast_held":"x","holdfast_progress":"p","#,
                r#""holdfast_closed":"1:mysql-bin.000001:4","holdfast_refresh_head":"h","#,
                r#""incremental_snapshot_collections":"[{}]"}"#
            )
        );
        assert_eq!(SourceOffset::from_json(&offset.to_json()), Ok(offset));
    }

    proptest! {
        #[test]
        fn both_ways_of_reading_agree(at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f) {
            let texts = [
                r#"{"ts_sec":1,"file":"b.000001","pos":9,"gtids":"a:1-2","row":6,"server_id":7,"event":10}"#,
                r#"{"file":"b.000001","pos":9,"snapshot":"INITIAL","transaction_id":null,"gtids":" "}"#,
                r#"{"file":"b.000001","pos":9,"holdfast_v":1,"holdfast_lineage":"A","holdfast_epoch":3,"holdfast_rows":2}"#,
            ];
            for text in texts {
                let read = plain::read(text).expect("it is as it is written");
                prop_assert_eq!(Ok(read), SourceOffset::from_members(text));
                let mut bytes = text.as_bytes().to_vec();
                bytes[at.index(text.len())] = byte;
                let changed = String::from_utf8(bytes).unwrap();
                if let Some(read) = plain::read(&changed) {
                    prop_assert_eq!(Ok(read), SourceOffset::from_members(&changed));
                }
            }
        }
    }

    #[test]
    fn zero_and_unknown_members_are_not_written() {
        let offset = SourceOffset { file: "b.000001".into(), pos: 4, ..SourceOffset::default() };
        assert_eq!(offset.to_json(), r#"{"file":"b.000001","pos":4}"#);
    }

    #[test]
    fn foreign_forms_of_an_offset_are_read() {
        let base = SourceOffset { file: "b.000012".into(), pos: 1534, ..SourceOffset::default() };
        let initial = SourceOffset { snapshot: Some(SnapshotKind::Initial), ..base.clone() };
        let cases = [
            (r#"{"file":"b.000012","pos":1534}"#, base.clone()),
            (r#"{"pos":"1534","file":"b.000012","event":"0","row":null}"#, base.clone()),
            (r#"{"file":"b.000012","pos":1534,"snapshot":false}"#, base.clone()),
            (r#"{"file":"b.000012","pos":1534,"snapshot":true}"#, initial.clone()),
            (r#"{"file":"b.000012","pos":1534,"snapshot":"true"}"#, initial.clone()),
            (
                r#"{"file":"b.000012","pos":1534,"snapshot":"INITIAL","snapshot_completed":false}"#,
                initial,
            ),
            (
                r#"{"file":"b.000012","pos":1534,"snapshot":true,"snapshot_completed":true}"#,
                base.clone(),
            ),
            (r#"{"transaction_id":null,"file":"b.000012","pos":1534,"gtids":" \n"}"#, base.clone()),
            (
                r#"{"file":"b.000012","pos":1534,"gtids":"U:1-3,\r\nW:1"}"#,
                SourceOffset { gtids: Some("U:1-3,W:1".into()), ..base.clone() },
            ),
            (
                r#"{"file":"b.000012","pos":1534,"gtids":"","holdfast_v":1}"#,
                SourceOffset {
                    gtids: Some(String::new()),
                    holdfast: Some(HoldfastMembers::default()),
                    ..base.clone()
                },
            ),
            (r#"{"file":""}"#, SourceOffset::default()),
            (
                "{\"file\":\"b.000012\",\"pos\":1534,\"x\":{ \"a\" : [1.50,\n 2 ] }}",
                SourceOffset { other: vec![("x".into(), r#"{"a":[1.50,2]}"#.into())], ..base },
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(SourceOffset::from_json(json), Ok(expected), "{json}");
        }
    }

    #[test]
    fn what_cannot_be_read_names_the_member() {
        let cases = [
            (r#"{"pos":4}"#, "Source offset 'file' parameter is missing"),
            (r#"{"file":null,"pos":4}"#, "Source offset 'file' parameter is missing"),
            (
                r#"{"file":"b.1","pos":"x"}"#,
                "source offset member 'pos' is not a whole number that fits its range",
            ),
            (
                r#"{"file":"b.1","pos":-1}"#,
                "source offset member 'pos' is not a whole number that fits its range",
            ),
            (
                r#"{"file":"b.1","row":1.5}"#,
                "source offset member 'row' is not a whole number that fits its range",
            ),
            (r#"{"file":7}"#, "source offset member 'file' is not a string"),
            (
                r#"{"file":"b.1","snapshot":"SOME"}"#,
                "source offset member 'snapshot' is not one of INITIAL, BLOCKING, INCREMENTAL, true, false",
            ),
            (
                r#"{"file":"b.1","holdfast_check":4294967296}"#,
                "source offset member 'holdfast_check' is not a whole number that fits its range",
            ),
            (
                r#"{"file":"b.1","holdfast_v":2}"#,
                "source offset has version 2 of the holdfast members, and this program reads version 1; use the \
                 program that wrote it, or a newer one",
            ),
            ("[]", "source offset is not a JSON object (line 1, column 0)"),
            ("{\"file\":\n\"b", "source offset is not a JSON object (line 2, column 2)"),
        ];
        for (json, message) in cases {
            assert_eq!(SourceOffset::from_json(json).unwrap_err().to_string(), message, "{json}");
        }
    }

    #[test]
    fn closing_coordinates_survive_their_text_form() {
        let closed = ClosedEpochs(vec![
            ClosedEpoch { epoch: 1, file: "mysql-bin.000050".into(), pos: 8123 },
            ClosedEpoch { epoch: 2, file: "odd:%2C,name.000001".into(), pos: u64::MAX },
        ]);
        assert_eq!(ClosedEpochs::parse(&closed.to_string()), Some(closed.clone()));
        assert_eq!(closed.find(1).map(|end| end.pos), Some(8123));
        assert_eq!(ClosedEpochs::parse("1:a"), None);
        assert_eq!(ClosedEpochs::parse(""), Some(ClosedEpochs::default()));
    }

    fn members() -> impl Strategy<Value = HoldfastMembers> {
        let texts = || proptest::option::of(".{0,12}");
        (
            (
                texts(),
                any::<u64>(),
                any::<Option<u32>>(),
                any::<Option<u32>>(),
                texts(),
                any::<Option<u64>>(),
            ),
            (any::<u64>(), texts(), texts(), texts(), texts()),
        )
            .prop_map(
                |(
                    (lineage, epoch, birth, check, unit, unit_pos),
                    (rows, held, progress, closed, refresh_head),
                )| {
                    HoldfastMembers {
                        version: HoldfastMembers::VERSION,
                        lineage,
                        epoch,
                        birth,
                        check,
                        unit,
                        unit_pos,
                        rows,
                        held,
                        progress,
                        closed,
                        refresh_head,
                    }
                },
            )
    }

    fn offsets() -> impl Strategy<Value = SourceOffset> {
        let kind = prop_oneof![
            Just(None),
            Just(Some(SnapshotKind::Initial)),
            Just(Some(SnapshotKind::Blocking)),
            Just(Some(SnapshotKind::Incremental)),
        ];
        (
            (
                ".{0,12}",
                any::<u64>(),
                any::<u64>(),
                any::<u64>(),
                proptest::option::of("[A-F:0-9,-]{1,20}"),
            ),
            (any::<Option<i64>>(), any::<Option<u64>>(), kind, proptest::option::of(".{0,12}")),
            (proptest::option::of(any::<u64>()), proptest::option::of(members())),
        )
            .prop_map(
                |(
                    (file, pos, event, row, gtids),
                    (ts_sec, server_id, snapshot, transaction_id),
                    (order, holdfast),
                )| SourceOffset {
                    file,
                    pos,
                    event,
                    row,
                    gtids,
                    ts_sec,
                    server_id,
                    snapshot,
                    transaction_id,
                    transaction_order: order
                        .map(|count| ("a.b".to_owned(), count))
                        .into_iter()
                        .collect(),
                    holdfast,
                    other: vec![("unknown".to_owned(), "[1,{\"a\":2e400}]".to_owned())],
                },
            )
    }

    proptest! {
        #[test]
        fn an_offset_survives_its_json(offset in offsets()) {
            let json = offset.to_json();
            prop_assert!(!json.contains('\n'));
            prop_assert_eq!(SourceOffset::from_json(&json), Ok(offset));
        }

        #[test]
        fn a_cut_offset_is_an_error(offset in offsets(), cut in any::<prop::sample::Index>()) {
            let json = offset.to_json();
            let mut end = cut.index(json.len());
            while !json.is_char_boundary(end) {
                end -= 1;
            }
            prop_assert!(SourceOffset::from_json(&json[..end]).is_err());
        }
    }
}
