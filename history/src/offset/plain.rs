//! Offsets as they are written, read without a stop at each member.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{HoldfastMembers, Member, SourceOffset};
use crate::json::Object;

/// Reads an offset whose members are those that are written, each once and of the type that it has then. `None` for any
/// other, which may be an offset all the same.
pub(super) fn read(json: &str) -> Option<SourceOffset> {
    let Object(plain) = serde_json::from_str::<Object<Plain<'_>>>(json).ok()?;
    // The members of ours make sense together with their version only.
    if plain.version.is_none() && json.contains("holdfast_") {
        return None;
    }
    let holdfast = match plain.version {
        Some(HoldfastMembers::VERSION) => Some(HoldfastMembers {
            version: HoldfastMembers::VERSION,
            lineage: plain.lineage,
            epoch: plain.epoch,
            birth: plain.birth,
            check: plain.check,
            unit: plain.unit,
            unit_pos: plain.unit_pos,
            rows: plain.rows,
            held: plain.held,
            progress: plain.progress,
            closed: plain.closed,
            refresh_head: plain.refresh_head,
        }),
        Some(_) => return None,
        None => None,
    };
    let snapshot = match plain.snapshot {
        Some(raw) => Member { name: "snapshot", raw }.snapshot().ok()?,
        None => None,
    };
    let mut gtids = plain.gtids.map(|text| text.replace(['\n', '\r'], ""));
    if gtids.as_deref().is_some_and(|text| text.trim().is_empty()) {
        gtids = holdfast.is_some().then(String::new);
    }
    Some(SourceOffset {
        file: plain.file.into_owned(),
        pos: plain.pos,
        event: plain.event,
        row: plain.row,
        gtids,
        ts_sec: plain.ts_sec,
        server_id: plain.server_id,
        snapshot,
        transaction_id: plain.transaction_id,
        transaction_order: Vec::new(),
        holdfast,
        other: Vec::new(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'a> {
    #[serde(borrow)]
    file: Cow<'a, str>,
    #[serde(default)]
    pos: u64,
    #[serde(default)]
    event: u64,
    #[serde(default)]
    row: u64,
    #[serde(borrow, default)]
    gtids: Option<Cow<'a, str>>,
    ts_sec: Option<i64>,
    server_id: Option<u64>,
    #[serde(borrow)]
    snapshot: Option<&'a RawValue>,
    transaction_id: Option<String>,
    #[serde(rename = "holdfast_v")]
    version: Option<u32>,
    #[serde(rename = "holdfast_lineage")]
    lineage: Option<String>,
    #[serde(default, rename = "holdfast_epoch")]
    epoch: u64,
    #[serde(rename = "holdfast_birth")]
    birth: Option<u32>,
    #[serde(rename = "holdfast_check")]
    check: Option<u32>,
    #[serde(rename = "holdfast_unit")]
    unit: Option<String>,
    #[serde(rename = "holdfast_unit_pos")]
    unit_pos: Option<u64>,
    #[serde(default, rename = "holdfast_rows")]
    rows: u64,
    #[serde(rename = "holdfast_held")]
    held: Option<String>,
    #[serde(rename = "holdfast_progress")]
    progress: Option<String>,
    #[serde(rename = "holdfast_closed")]
    closed: Option<String>,
    #[serde(rename = "holdfast_refresh_head")]
    refresh_head: Option<String>,
}
