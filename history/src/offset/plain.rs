//! Offsets as they are written, read without a stop at each member.

use std::borrow::Cow;

use super::{HoldfastMembers, SnapshotKind, SourceOffset};
use crate::json::{Scanner, once};

/// Reads an offset whose members are those that are written, each once and of the type that it has then. `None` for any
/// other, which may be an offset all the same.
pub(super) fn read(json: &str) -> Option<SourceOffset> {
    let mut scanner = Scanner::new(json);
    let offset = scan(&mut scanner)?;
    scanner.end()?;
    Some(offset)
}

/// As [`read`], in the middle of a text.
pub(super) fn scan(scanner: &mut Scanner<'_>) -> Option<SourceOffset> {
    let mut plain = Plain::default();
    scanner.object(|scanner, name| plain.member(scanner, name))?;
    plain.into_offset()
}

#[derive(Default)]
struct Plain<'a> {
    file: Option<Cow<'a, str>>,
    pos: Option<u64>,
    event: Option<u64>,
    row: Option<u64>,
    gtids: Option<Option<Cow<'a, str>>>,
    ts_sec: Option<i64>,
    server_id: Option<u64>,
    snapshot: Option<SnapshotKind>,
    transaction_id: Option<Option<Cow<'a, str>>>,
    has_ours: bool,
    version: Option<u32>,
    lineage: Option<Cow<'a, str>>,
    epoch: Option<u64>,
    birth: Option<u32>,
    check: Option<u32>,
    unit: Option<Cow<'a, str>>,
    unit_pos: Option<u64>,
    rows: Option<u64>,
    held: Option<Cow<'a, str>>,
    progress: Option<Cow<'a, str>>,
    closed: Option<Cow<'a, str>>,
    refresh_head: Option<Cow<'a, str>>,
}

impl<'a> Plain<'a> {
    fn member(&mut self, scanner: &mut Scanner<'a>, name: &str) -> Option<()> {
        if let Some(ours) = name.strip_prefix("holdfast_") {
            self.has_ours = true;
            return self.member_of_ours(scanner, ours);
        }
        match name {
            "file" => once(&mut self.file, scanner.text()?),
            "pos" => once(&mut self.pos, scanner.integer()?),
            "event" => once(&mut self.event, scanner.integer()?),
            "row" => once(&mut self.row, scanner.integer()?),
            "gtids" => once(&mut self.gtids, scanner.text_or_null()?),
            "ts_sec" => once(&mut self.ts_sec, scanner.integer()?),
            "server_id" => once(&mut self.server_id, scanner.integer()?),
            "snapshot" => once(&mut self.snapshot, SnapshotKind::named(&scanner.text()?)?),
            "transaction_id" => once(&mut self.transaction_id, scanner.text_or_null()?),
            _ => None,
        }
    }

    fn member_of_ours(&mut self, scanner: &mut Scanner<'a>, name: &str) -> Option<()> {
        match name {
            "v" => once(&mut self.version, scanner.integer()?),
            "lineage" => once(&mut self.lineage, scanner.text()?),
            "epoch" => once(&mut self.epoch, scanner.integer()?),
            "birth" => once(&mut self.birth, scanner.integer()?),
            "check" => once(&mut self.check, scanner.integer()?),
            "unit" => once(&mut self.unit, scanner.text()?),
            "unit_pos" => once(&mut self.unit_pos, scanner.integer()?),
            "rows" => once(&mut self.rows, scanner.integer()?),
            "held" => once(&mut self.held, scanner.text()?),
            "progress" => once(&mut self.progress, scanner.text()?),
            "closed" => once(&mut self.closed, scanner.text()?),
            "refresh_head" => once(&mut self.refresh_head, scanner.text()?),
            _ => None,
        }
    }

    fn into_offset(self) -> Option<SourceOffset> {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let holdfast = match self.version {
            Some(HoldfastMembers::VERSION) => Some(HoldfastMembers {
                version: HoldfastMembers::VERSION,
                lineage: owned(self.lineage),
                epoch: self.epoch.unwrap_or(0),
                birth: self.birth,
                check: self.check,
                unit: owned(self.unit),
                unit_pos: self.unit_pos,
                rows: self.rows.unwrap_or(0),
                held: owned(self.held),
                progress: owned(self.progress),
                closed: owned(self.closed),
                refresh_head: owned(self.refresh_head),
            }),
            // The members of ours make sense together with their version only.
            None if !self.has_ours => None,
            Some(_) | None => return None,
        };
        let mut gtids = self.gtids.flatten();
        if gtids.as_deref().is_some_and(|text| text.contains(['\n', '\r'])) {
            gtids = gtids.map(|text| Cow::Owned(text.replace(['\n', '\r'], "")));
        }
        if gtids.as_deref().is_some_and(|text| text.trim().is_empty()) {
            gtids = holdfast.is_some().then_some(Cow::Borrowed(""));
        }
        Some(SourceOffset {
            file: self.file?.into_owned(),
            pos: self.pos.unwrap_or(0),
            event: self.event.unwrap_or(0),
            row: self.row.unwrap_or(0),
            gtids: owned(gtids),
            ts_sec: self.ts_sec,
            server_id: self.server_id,
            snapshot: self.snapshot,
            transaction_id: owned(self.transaction_id.flatten()),
            transaction_order: Vec::new(),
            holdfast,
            other: Vec::new(),
        })
    }
}
