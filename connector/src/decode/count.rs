//! The format `count`: how much is in a log.

use std::fmt::Write as _;

use holdfast_binlog::event::rows::RowsKind;
use holdfast_binlog::event::{Event, EventType};

/// Counts a file, and all files.
#[derive(Debug, Default)]
pub(super) struct Counter {
    file: Counts,
    total: Counts,
    files: u64,
}

#[derive(Debug)]
struct Counts {
    /// Of the events in the file, headers and checksums included.
    bytes: u64,
    /// By type code; events inside a compressed transaction count by their own type too.
    events: [u64; 256],
    transactions: u64,
    inserts: u64,
    updates: u64,
    deletes: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Self { bytes: 0, events: [0; 256], transactions: 0, inserts: 0, updates: 0, deletes: 0 }
    }
}

impl Counter {
    pub(super) fn event(&mut self, event: &Event<'_>, begins_transaction: bool) {
        let code = usize::from(event.header.event_type.code());
        if let Some(count) = self.file.events.get_mut(code) {
            *count += 1;
        }
        self.file.transactions += u64::from(begins_transaction);
    }

    pub(super) const fn add_bytes(&mut self, bytes: u64) {
        self.file.bytes += bytes;
    }

    /// The number of rows of a kind, to be counted up.
    pub(super) const fn rows(&mut self, kind: RowsKind) -> &mut u64 {
        match kind {
            RowsKind::Write => &mut self.file.inserts,
            RowsKind::Update | RowsKind::PartialUpdate => &mut self.file.updates,
            RowsKind::Delete => &mut self.file.deletes,
        }
    }

    pub(super) fn end_file(&mut self, name: &str, out: &mut Vec<u8>) {
        let counts = std::mem::take(&mut self.file);
        out.extend_from_slice(counts.line(name).as_bytes());
        self.total.add(&counts);
        self.files += 1;
    }

    pub(super) fn total(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.total.line(&format!("total files={}", self.files)).as_bytes());
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.transactions += other.transactions;
        self.inserts += other.inserts;
        self.updates += other.updates;
        self.deletes += other.deletes;
        for (code, count) in self.events.iter_mut().enumerate() {
            *count += other.events.get(code).copied().unwrap_or_default();
        }
    }

    /// `name bytes=… events=… transactions=… rows=… inserts=… updates=… deletes=…`, then the types of events.
    fn line(&self, name: &str) -> String {
        let Self { bytes, transactions, inserts, updates, deletes, .. } = self;
        let events: u64 = self.events.iter().sum();
        let rows = inserts + updates + deletes;
        let mut line = format!(
            "{name} bytes={bytes} events={events} transactions={transactions} rows={rows} inserts={inserts} \
             updates={updates} deletes={deletes}"
        );
        for code in 0..=u8::MAX {
            let count = self.events.get(usize::from(code)).copied().unwrap_or_default();
            if count == 0 {
                continue;
            }
            // Writing to a String does not fail.
            let kind = EventType::from(code);
            let _ = if matches!(kind, EventType::Other(_)) {
                write!(line, " TYPE_{code}={count}")
            } else {
                write!(line, " {}={count}", kind.name())
            };
        }
        line.push('\n');
        line
    }
}
