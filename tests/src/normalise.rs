//! What "the same record" means.
//!
//! [`live`] takes out what differs between two readers of one log: processing times, the version, the run's context
//! headers. What is left (topic, headers, key, value, the order of members, the spelling of numbers) is compared.
//!
//! [`Golden`] also takes out what differs between two runs of the same statements on fresh servers, so that a file can
//! be committed: event times, server ids, thread ids, UUIDs; files and positions become relative to the snapshot's.

use crate::engine::{PREFIX, Record};
use crate::json::Json;

/// Takes out what two readers of the same log may have different.
///
/// - processing times: `ts_*` of envelopes, `ts_ms` of schema changes and heartbeats, `source.ts_*` of snapshot records
/// - `source.version`
/// - headers `__debezium.context.*`
/// - orders that Debezium leaves to a hash map: `data_collections` of an END, the names in a multi-table `source.table`
pub fn live(record: &mut Record) {
    let topic = record.topic().to_owned();
    let snapshot = record.is_snapshot();
    if let Some(Json::Object(headers)) = record.0.get_mut("headers") {
        headers.retain(|(name, _)| !name.starts_with("__debezium.context."));
    }
    let Some(value) = record.part_mut("value") else { return };
    if topic == format!("{PREFIX}.transaction") {
        sort_collections(value);
        return;
    }
    if value.get("specversion").is_some() {
        live_cloud_event(value);
        return;
    }
    clear_times(value);
    if let Some(source) = value.get_mut("source") {
        source.replace("version", Json::string("V"));
        if snapshot {
            clear_times(source);
        }
        if let Some(names) = source.text("table").filter(|names| names.contains(',')) {
            let mut names: Vec<&str> = names.split(',').collect();
            names.sort_unstable();
            let names = names.join(",");
            source.replace("table", Json::String(names));
        }
    }
}

/// The attributes that stand for what [`live`] takes out of envelopes.
fn live_cloud_event(event: &mut Json) {
    event.replace("iodebeziumversion", Json::string("V"));
    // Without attributes there is no telling a snapshot's records from others.
    if event.text("iodebeziumsnapshot").is_none_or(|mark| mark != "false") {
        for name in ["time", "iodebeziumtsms", "iodebeziumtsus", "iodebeziumtsns"] {
            event.replace(name, Json::string("0"));
        }
    }
}

/// Sets the times that a struct has to 0.
fn clear_times(value: &mut Json) {
    for name in ["ts_ms", "ts_us", "ts_ns"] {
        value.replace(name, Json::Number("0".to_owned()));
    }
}

fn sort_collections(value: &mut Json) {
    if let Some(Json::Array(collections)) = value.get_mut("data_collections") {
        collections.sort_by_key(ToString::to_string);
    }
}

/// Makes the records of one run comparable with those of a run on another server of the same version.
///
/// GTIDs are numbered in order of appearance (`U:1`, `U:2`), files too (`F1`, `F2`). Positions in the file where the
/// stream began count from there, so statements that ran before do not matter; those in later files stay.
#[derive(Debug, Default)]
pub struct Golden {
    gtids: Vec<String>,
    files: Vec<String>,
    base: i64,
    ignore_positions: bool,
}

impl Golden {
    /// For a run whose event sizes are not the same every time (compressed transactions): positions become 0.
    #[must_use]
    pub fn without_positions() -> Self {
        Self { ignore_positions: true, ..Self::default() }
    }

    /// Normalises the next record of the run.
    pub fn record(&mut self, record: &mut Record) {
        live(record);
        let topic = record.topic().to_owned();
        if topic == format!("{PREFIX}.transaction") {
            for part in ["key", "value"] {
                if let Some(part) = record.part_mut(part) {
                    self.transaction_id(part);
                    clear_times(part);
                }
            }
            return;
        }
        let Some(value) = record.part_mut("value") else { return };
        if value.get("specversion").is_some() {
            self.cloud_event(value);
            return;
        }
        // Of the source block of a record that was unwrapped.
        if value.get("_thread").and_then(Json::as_i64).is_some() {
            value.replace("_thread", Json::Number("1".to_owned()));
        }
        if let Some(transaction) = value.get_mut("transaction") {
            self.transaction_id(transaction);
        }
        if let Some(source) = value.get_mut("source") {
            self.source(source);
        }
    }

    /// The attributes are those of the source block, as text.
    fn cloud_event(&mut self, event: &mut Json) {
        for name in ["time", "iodebeziumtsms", "iodebeziumtsus", "iodebeziumtsns"] {
            event.replace(name, Json::string("0"));
        }
        for name in ["iodebeziumserverid", "iodebeziumthread"] {
            if event.text(name).is_some_and(|id| id != "0") {
                event.replace(name, Json::string("1"));
            }
        }
        for name in ["iodebeziumgtid", "iodebeziumtxid"] {
            if let Some(gtid) = event.text(name).map(|gtid| self.gtid(gtid)) {
                event.replace(name, Json::String(gtid));
            }
        }
        // `name:srv;file:binlog.000001;pos:4`
        let id = event.text("id").map(str::to_owned).unwrap_or_default();
        let Some((_, place)) = id.split_once(";file:") else { return };
        let Some((file, position)) = place.split_once(";pos:") else { return };
        let position = position.parse().unwrap_or_default();
        if self.files.is_empty() {
            self.base = position;
        }
        let number = index(&mut self.files, file);
        let position = self.position(number, position);
        event.replace("iodebeziumfile", Json::String(format!("F{number}")));
        event.replace("iodebeziumpos", Json::String(position.to_string()));
        event.replace("id", Json::String(format!("name:{PREFIX};file:F{number};pos:{position}")));
    }

    fn source(&mut self, source: &mut Json) {
        clear_times(source);
        if source.get("server_id").and_then(Json::as_i64).is_some_and(|id| id != 0) {
            source.replace("server_id", Json::Number("1".to_owned()));
        }
        if source.get("thread").and_then(Json::as_i64).is_some() {
            source.replace("thread", Json::Number("1".to_owned()));
        }
        if let Some(gtid) = source.text("gtid").map(|gtid| self.gtid(gtid)) {
            source.replace("gtid", Json::String(gtid));
        }
        let Some(file) = source.text("file").filter(|file| !file.is_empty()).map(str::to_owned)
        else {
            return;
        };
        let position = source.get("pos").and_then(Json::as_i64).unwrap_or_default();
        if self.files.is_empty() {
            self.base = position;
        }
        let number = index(&mut self.files, &file);
        source.replace("file", Json::String(format!("F{number}")));
        source.replace("pos", Json::Number(self.position(number, position).to_string()));
    }

    fn position(&self, file: usize, position: i64) -> i64 {
        match (self.ignore_positions, file) {
            (true, _) => 0,
            (false, 1) => position - self.base,
            (false, _) => position,
        }
    }

    fn gtid(&mut self, gtid: &str) -> String {
        format!("U:{}", index(&mut self.gtids, gtid))
    }

    /// A transaction's id is its GTID, or `file=F,pos=P` of its beginning.
    fn transaction_id(&mut self, value: &mut Json) {
        let Some(id) = value.text("id").map(str::to_owned) else { return };
        let position = id.strip_prefix("file=").and_then(|rest| rest.split_once(",pos="));
        let id = match position.and_then(|(file, pos)| Some((file, pos.parse::<i64>().ok()?))) {
            Some((file, position)) => {
                let number = index(&mut self.files, file);
                format!("file=F{number},pos={}", self.position(number, position))
            }
            None => self.gtid(&id),
        };
        value.replace("id", Json::String(id));
    }
}

/// The one-based number of `item`, which is added when it is new.
fn index(items: &mut Vec<String>, item: &str) -> usize {
    let known = items.iter().position(|known| known == item);
    let at = known.unwrap_or_else(|| {
        items.push(item.to_owned());
        items.len() - 1
    });
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(snapshot: &str, gtid: &str, file: &str, pos: u32) -> Record {
        let text = format!(
            r#"{{"topic":"srv.d.t","headers":{{"__debezium.newkey":{{"id":2}},"__debezium.context.taskId":"0"}},
            "key":{{"id":1}},"value":{{"source":{{"version":"3.6.3","ts_ms":5,"snapshot":"{snapshot}","server_id":77,
            "gtid":{gtid},"file":"{file}","pos":{pos},"thread":12}},"op":"u","ts_ms":6,"ts_us":6000}}}}"#
        );
        Record(Json::parse(&text).unwrap())
    }

    #[test]
    fn live_keeps_event_times_positions_and_key_headers() {
        let mut record = row("false", "\"u:9\"", "b.000007", 700);
        live(&mut record);
        assert_eq!(
            record.0.to_string(),
            r#"{"topic":"srv.d.t","headers":{"__debezium.newkey":{"id":2}},"key":{"id":1},"value":{"source":{"version":"V","ts_ms":5,"snapshot":"false","server_id":77,"gtid":"u:9","file":"b.000007","pos":700,"thread":12},"op":"u","ts_ms":0,"ts_us":0}}"#
        );
        let mut record = row("first", "null", "b.000007", 700);
        live(&mut record);
        assert_eq!(record.source().get("ts_ms").unwrap().as_i64(), Some(0));
    }

    #[test]
    fn golden_positions_count_from_the_start_and_gtids_from_one() {
        let mut golden = Golden::default();
        let mut out = Vec::new();
        for (gtid, file, pos) in [
            ("null", "b.000007", 700),
            ("\"u:9\"", "b.000007", 900),
            ("\"u:10\"", "b.000008", 200),
            ("\"u:9\"", "b.000007", 950),
        ] {
            let mut record = row("false", gtid, file, pos);
            golden.record(&mut record);
            let source = record.source();
            out.push(
                ["gtid", "file", "pos", "server_id", "thread"]
                    .map(|name| source.get(name).unwrap().to_string())
                    .join(" "),
            );
        }
        assert_eq!(
            out,
            [
                r#"null "F1" 0 1 1"#,
                r#""U:1" "F1" 200 1 1"#,
                r#""U:2" "F2" 200 1 1"#,
                r#""U:1" "F1" 250 1 1"#
            ]
        );
    }
}
