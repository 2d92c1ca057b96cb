//! Following the log to check definitions, without delivering rows.

use std::collections::BTreeMap;

use holdfast_binlog::event::Event;
use holdfast_binlog::event::table_map::TableMap;
use holdfast_history::TableId;
use holdfast_history::ddl::{DdlContext, DdlError, Touched};
use holdfast_history::offset::LogPlace;

use super::Assembler;
use crate::error::Error;

/// What a check of definitions found so far.
#[derive(Debug, Default)]
pub(crate) struct Verification {
    /// Rows events that were looked at, of each captured table.
    pub(crate) events: BTreeMap<TableId, u64>,
    /// For each table the first rows that do not fit, as the error that would end the stream.
    pub(crate) findings: BTreeMap<TableId, Error>,
    /// Tables whose key in the log is another than that of the definition: the definition's, and the log's.
    pub(crate) keys: BTreeMap<TableId, (String, String)>,
    /// Set when the log is only looked at, without definitions.
    scan: Option<LogScan>,
}

/// What the log has between an offset and a place further on.
#[derive(Debug)]
pub(crate) struct LogScan {
    until: LogPlace,
    /// Of each captured table the first rows that are not done.
    pub(crate) rows: BTreeMap<TableId, FirstRows>,
    /// Statements that may change definitions, in order.
    pub(crate) statements: Vec<ScannedStatement>,
}

/// The first rows of a table that are not done.
#[derive(Debug, Clone)]
pub(crate) struct FirstRows {
    /// Start of the rows event.
    pub(crate) place: LogPlace,
    pub(crate) map: TableMap,
}

/// A statement that may change definitions.
#[derive(Debug, Clone)]
pub(crate) struct ScannedStatement {
    /// Start of its event.
    pub(crate) place: LogPlace,
    pub(crate) ddl: String,
    /// What it is about, or why it can't be understood.
    pub(crate) touched: Result<Touched, DdlError>,
}

impl LogScan {
    /// Of what begins up to `until`.
    pub(crate) const fn until(until: LogPlace) -> Self {
        Self { until, rows: BTreeMap::new(), statements: Vec::new() }
    }
}

impl Assembler {
    /// From now on rows are checked and counted, and not delivered.
    pub(crate) fn verify_only(&mut self) {
        self.verification = Some(Verification::default());
    }

    /// From now on rows and statements are noted, and not delivered. No definitions are needed.
    pub(crate) fn scan_only(&mut self, scan: LogScan) {
        self.verification = Some(Verification { scan: Some(scan), ..Verification::default() });
    }

    /// What [`Self::verify_only`] found.
    pub(crate) fn into_verification(self) -> Verification {
        self.verification.unwrap_or_default()
    }

    /// What [`Self::scan_only`] found.
    pub(crate) fn into_scan(self) -> Option<LogScan> {
        self.verification.and_then(|verification| verification.scan)
    }

    /// Whether statements are only noted; if so, notes one.
    pub(super) fn scans(&mut self, event: &Event<'_>, sql: &str, context: &DdlContext) -> bool {
        let Some(scan) = self.verification.as_mut().and_then(|found| found.scan.as_mut()) else {
            return false;
        };
        let file = self.tracker.file().to_string();
        if scan.until.reaches(&file, event.end) {
            let parsed = holdfast_history::ddl::parse(sql, context);
            let touched = parsed.map(|parsed| parsed.touched(context.database.as_deref()));
            let has_effect = touched.as_ref().map_or(true, |touched| {
                !touched.tables.is_empty() || !touched.databases.is_empty()
            });
            if has_effect {
                let place = LogPlace { file, pos: event.position };
                scan.statements.push(ScannedStatement { place, ddl: sql.to_owned(), touched });
            }
        }
        true
    }

    /// Whether rows are only checked; if so, notes that an event of a table came, and what is wrong with it.
    pub(super) fn verifies(&mut self, map: &TableMap, error: Option<Error>) -> bool {
        let Some(verification) = &mut self.verification else { return false };
        let table = TableId::new(map.database(), map.table());
        if let (Some(scan), Some(error)) = (&mut verification.scan, &error)
            && let Error::UnknownTable { position, .. } = error
        {
            let place = LogPlace { file: self.tracker.file().to_string(), pos: *position };
            if scan.until.reaches(&place.file, place.pos) {
                let rows = || FirstRows { place, map: map.clone() };
                scan.rows.entry(table.clone()).or_insert_with(rows);
            }
        }
        if let Some(error) = error {
            verification.findings.entry(table.clone()).or_insert(error);
        }
        *verification.events.entry(table).or_default() += 1;
        true
    }
}
