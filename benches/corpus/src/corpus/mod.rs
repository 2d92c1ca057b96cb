//! Binlogs in memory: the shapes that real logs have, scaled.
//!
//! | corpus | what is in it |
//! | --- | --- |
//! | narrow | 5 columns; bulk transactions with row events of 8 KB, many transactions of 10 rows, some of one row |
//! | wide | 60 columns of all types, 10 rows a transaction |
//! | blob | one row with 64 KiB a transaction |
//! | compressed | transactions of 10 narrow rows or 5 wide ones, each in a `TRANSACTION_PAYLOAD` |
//!
//! All have checksums, GTIDs and full row images. Of five transactions two insert, two update and one deletes.

mod tables;
pub mod wire;

use holdfast_binlog::Gtid;
use holdfast_binlog::gtid::Uuid;
use holdfast_binlog::testkit::LogBuilder;

use crate::random::Random;
use tables::{BLOB, NARROW, Table, TestRow, WIDE};

/// Name of the log file of every corpus.
pub const FILE: &str = "mysql-bin.000001";

/// Environment variable for the size of the narrow corpus, megabytes; the others are in proportion.
pub const SIZE_VARIABLE: &str = "HOLDFAST_BENCH_MB";

/// Size of the narrow corpus in a benchmark, megabytes.
const DEFAULT_MEGABYTES: u64 = 64;

/// What was put into a corpus. A decoder that finds anything else did not decode it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Transactions.
    pub transactions: u64,
    /// Changed rows; an update is one.
    pub rows: u64,
    /// Row images; an update has two.
    pub images: u64,
    /// Values, NULLs included, in all images.
    pub cells: u64,
}

/// A binlog file in memory.
#[derive(Debug, Clone)]
pub struct Corpus {
    /// Its name, as in the names of benchmarks.
    pub name: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
    /// What is in it.
    pub facts: Facts,
}

/// The size that the environment asks for, in bytes of the narrow corpus.
#[must_use]
pub fn size() -> u64 {
    let asked = std::env::var(SIZE_VARIABLE).ok().and_then(|text| text.parse::<u64>().ok());
    asked.unwrap_or(DEFAULT_MEGABYTES) * 1_000_000
}

/// The corpus of that name, where the narrow one would have `size` bytes.
#[must_use]
pub fn by_name(name: &str, size: u64) -> Option<Corpus> {
    match name {
        "narrow" => Some(narrow(size)),
        "wide" => Some(wide(size)),
        "blob" => Some(blob(size)),
        "compressed" => Some(compressed(size)),
        _ => None,
    }
}

/// Five columns, of about `size` bytes.
#[must_use]
pub fn narrow(size: u64) -> Corpus {
    // Per megabyte: 8700 rows in bulk transactions, 485 transactions of 10 rows, 97 of one row. Bulk transactions come
    // by fives, so that there are all kinds of them in small logs, too.
    let bulks = 5 * size.div_ceil(50_000_000);
    let bulk_rows = size * 87 / 10_000 / bulks;
    let tens = size * 485 / 1_000_000 / bulks;
    let ones = tens / 5;
    let mut writer = Writer::new("narrow", 1);
    for bulk in 0..bulks {
        writer.transaction(NARROW, Change::of(bulk), bulk_rows);
        for at in 0..tens + ones {
            writer.transaction(NARROW, Change::of(at), if at % 6 == 5 { 1 } else { 10 });
        }
    }
    writer.finish()
}

/// Sixty columns, of about two thirds of `size` bytes.
#[must_use]
pub fn wide(size: u64) -> Corpus {
    let mut writer = Writer::new("wide", 2);
    for at in 0..size / 20_000 {
        writer.transaction(WIDE, Change::of(at), 10);
    }
    writer.finish()
}

/// Large values, of about half of `size` bytes.
#[must_use]
pub fn blob(size: u64) -> Corpus {
    let mut writer = Writer::new("blob", 3);
    for at in 0..size.div_ceil(180_000) {
        writer.transaction(BLOB, Change::of(at), 1);
    }
    writer.finish()
}

/// Compressed transactions, of about a quarter of `size` bytes.
#[must_use]
pub fn compressed(size: u64) -> Corpus {
    let mut writer = Writer::new("compressed", 4);
    for at in 0..size / 5_000 {
        if at % 10 == 9 {
            writer.compressed(WIDE, Change::of(at / 10), 5);
        } else {
            writer.compressed(NARROW, Change::of(at), 10);
        }
    }
    writer.finish()
}

/// Bytes of row images after which a rows event is closed: the server's `binlog_row_event_max_size`.
const EVENT_SIZE: usize = 8192;

#[derive(Debug, Clone, Copy)]
enum Change {
    Insert,
    Update,
    Delete,
}

impl Change {
    /// Of five transactions two insert, two update and one deletes.
    const fn of(turn: u64) -> Self {
        match turn % 5 {
            0 | 3 => Self::Insert,
            1 | 4 => Self::Update,
            _ => Self::Delete,
        }
    }
}

/// Writes transactions one after the other.
struct Writer {
    name: &'static str,
    /// Taken out while a transaction is written.
    log: LogBuilder,
    random: Random,
    facts: Facts,
}

impl Writer {
    fn new(name: &'static str, seed: u64) -> Self {
        let log = LogBuilder::new(FILE);
        Self { name, log, random: Random::new(seed), facts: Facts::default() }
    }

    fn finish(self) -> Corpus {
        Corpus { name: self.name, bytes: self.log.into_bytes(), facts: self.facts }
    }

    fn transaction(&mut self, table: Table, change: Change, rows: u64) {
        let log = std::mem::replace(&mut self.log, LogBuilder::new(FILE));
        let log = self.start(log).begin();
        self.log = self.body(log, table, change, rows);
    }

    fn compressed(&mut self, table: Table, change: Change, rows: u64) {
        let log = std::mem::replace(&mut self.log, LogBuilder::new(FILE));
        self.log =
            self.start(log).compressed(|inner| self.body(inner.begin(), table, change, rows));
    }

    fn start(&mut self, log: LogBuilder) -> LogBuilder {
        self.facts.transactions += 1;
        let source = Uuid::from_bytes(*b"holdfast-benches");
        log.gtid(Gtid::new(source, self.facts.transactions))
    }

    /// The table map, the rows and the commit.
    fn body(&mut self, log: LogBuilder, table: Table, change: Change, rows: u64) -> LogBuilder {
        let columns = (table.columns)();
        let mut log = log.table_map(table.id, "bench", table.name, &columns);
        let mut images = Vec::new();
        let mut size = 0;
        let copies = if matches!(change, Change::Update) { 2 } else { 1 };
        for row in 0..rows {
            for _ in 0..copies {
                let values = (table.row)(self.facts.rows + 1, &mut self.random);
                size += values.iter().map(estimate).sum::<usize>();
                images.push(values);
                self.facts.images += 1;
                self.facts.cells += columns.len() as u64;
            }
            self.facts.rows += 1;
            if size > EVENT_SIZE || row + 1 == rows {
                log = event(log.statement_goes_on(row + 1 < rows), table.id, change, &images);
                images.clear();
                size = 0;
            }
        }
        log.xid(self.facts.transactions)
    }
}

/// About the bytes that a value takes.
fn estimate(value: &holdfast_binlog::testkit::TestValue) -> usize {
    use holdfast_binlog::testkit::TestValue as V;
    match value {
        V::Null => 0,
        V::Int(_) | V::Double(_) => 4,
        V::Bytes(bytes) => bytes.len() + 1,
        V::Raw(bytes) => bytes.len(),
    }
}

fn event(log: LogBuilder, id: u64, change: Change, images: &[TestRow]) -> LogBuilder {
    let rows = || images.iter().map(Vec::as_slice).collect::<Vec<_>>();
    match change {
        Change::Insert => log.write_rows(id, &rows()),
        Change::Delete => log.delete_rows(id, &rows()),
        Change::Update => {
            let (pairs, _) = images.as_chunks::<2>();
            let pairs = pairs.iter().map(|[before, after]| (before.as_slice(), after.as_slice()));
            log.update_rows(id, &pairs.collect::<Vec<_>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{self, Work};

    #[test]
    fn what_was_put_in_comes_out() {
        for name in ["narrow", "wide", "blob", "compressed"] {
            let corpus = by_name(name, 500_000).unwrap();
            assert!(corpus.facts.rows > 0, "{name}");
            for work in [Work::Walk, Work::Sink, Work::Row, Work::Final] {
                let found = decode::run(corpus.bytes.as_slice(), work).unwrap();
                let expected = match work {
                    Work::Walk => Facts { rows: 0, images: 0, cells: 0, ..corpus.facts },
                    Work::Sink | Work::Row | Work::Final => corpus.facts,
                };
                assert_eq!(found.facts, expected, "{name} {work:?}");
            }
        }
    }

    #[test]
    fn sizes_are_near_what_is_asked_for() {
        for (name, share) in [("narrow", 1.0), ("wide", 0.67), ("blob", 0.5), ("compressed", 0.25)]
        {
            let size = 2_000_000;
            let corpus = by_name(name, size).unwrap();
            #[expect(clippy::cast_precision_loss, reason = "only for a ratio")]
            let ratio = corpus.bytes.len() as f64 / size as f64 / share;
            assert!((0.7..1.3).contains(&ratio), "{name}: {ratio}");
        }
    }
}
