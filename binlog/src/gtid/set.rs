//! MySQL's GTID set: which transactions have been executed.
//!
//! Text, with blanks and newlines allowed between all parts, as `@@gtid_executed` prints it (MySQL manual, "GTID Sets"):
//!
//! ```text
//! set       source [, source]...
//! source    uuid [:tag]? [:interval]... [[:tag] [:interval]...]...
//! interval  n | n-m                      1-based, both ends included
//! ```
//!
//! Bytes, in `PREVIOUS_GTIDS_EVENT` and `COM_BINLOG_DUMP_GTID` (`Gtid_set::encode` in `sql/rpl_gtid_set.cc`; the
//! tagged form since MySQL 8.3, used when a set holds a tag, compared with captures of MySQL 9.7):
//!
//! ```text
//! untagged  u64le count of sources
//! tagged    01, u48le count of (source, tag) pairs, 01
//! entry     16 bytes uuid; tagged: tag length times 2 as one byte, tag;
//!           u64le count of intervals; per interval u64le first, u64le last + 1
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::{Gtid, GtidError, GtidErrorKind, MAX_NUMBER, Tag, Uuid};
use crate::wire::{Cursor, DecodeError};

/// A run of transaction numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    first: u64,
    last: u64,
}

impl Interval {
    /// The numbers `first` to `last`.
    ///
    /// # Errors
    ///
    /// [`GtidErrorKind::Zero`], [`GtidErrorKind::Reversed`] or [`GtidErrorKind::TooLarge`], at byte 0.
    pub const fn new(first: u64, last: u64) -> Result<Self, GtidError> {
        if first == 0 {
            return Err(GtidErrorKind::Zero.at(0));
        }
        if last < first {
            return Err(GtidErrorKind::Reversed.at(0));
        }
        if last > MAX_NUMBER {
            return Err(TOO_LARGE.at(0));
        }
        Ok(Self { first, last })
    }

    /// The first number, 1 or more.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.first
    }

    /// The last number, itself part of the run; [`MAX_NUMBER`] at most.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.last
    }
}

const TOO_LARGE: GtidErrorKind = GtidErrorKind::TooLarge { largest: "2^63-2" };

/// A set of MySQL transaction ids: sorted, merged intervals per source and tag. Two sets are equal when they hold
/// the same transactions, however they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GtidSet {
    // No value is empty; every value is sorted, and between two of its intervals at least one number is missing.
    sources: BTreeMap<(Uuid, Tag), Vec<Interval>>,
}

impl GtidSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { sources: BTreeMap::new() }
    }

    /// Parses the text form; blank text is the empty set. Empty elements between commas are skipped, as the server
    /// does. Takes memory in proportion to the text.
    ///
    /// # Errors
    ///
    /// [`GtidError`] with the byte offset.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        let mut parser = Parser { text: text.as_bytes(), at: 0 };
        let mut set = Self::new();
        loop {
            while parser.eat(b',') {}
            if parser.peek().is_none() {
                break;
            }
            parser.source(&mut set.sources)?;
            if parser.peek().is_some() && !parser.eat(b',') {
                return Err(GtidErrorKind::Unexpected.at(parser.at));
            }
        }
        for intervals in set.sources.values_mut() {
            merge(intervals);
        }
        Ok(set)
    }

    /// Decodes the binary form, tagged or not, which must fill `bytes`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes end early, are left over, or hold an impossible interval, tag or format.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let head = cursor.u64_le("gtid_set_count")?;
        let (tagged, count) = match head >> 56 {
            0 => (false, head),
            1 => (true, (head << 8) >> 16),
            other => return Err(DecodeError::Invalid { field: "gtid_set_format", value: other }),
        };
        let mut set = Self::new();
        for _ in 0..count {
            let source = Uuid::from_bytes(cursor.array("gtid_source")?);
            let tag = if tagged { decode_tag(&mut cursor)? } else { Tag::NONE };
            let runs = cursor.u64_le("gtid_interval_count")?;
            if runs == 0 {
                continue;
            }
            let intervals = set.sources.entry((source, tag)).or_default();
            for _ in 0..runs {
                let first = cursor.u64_le("gtid_interval_start")?;
                let end = cursor.u64_le("gtid_interval_end")?;
                let interval = end.checked_sub(1).and_then(|last| Interval::new(first, last).ok());
                let invalid = DecodeError::Invalid { field: "gtid_interval_end", value: end };
                intervals.push(interval.ok_or(invalid)?);
            }
        }
        if !cursor.is_empty() {
            return Err(DecodeError::Trailing { field: "gtid_set", left: cursor.left() as u64 });
        }
        for intervals in set.sources.values_mut() {
            merge(intervals);
        }
        Ok(set)
    }

    /// Adds one transaction. Cheap when it follows the last one of its source.
    ///
    /// # Errors
    ///
    /// [`GtidErrorKind::Zero`] or [`GtidErrorKind::TooLarge`] for a number that no transaction has.
    pub fn add(&mut self, gtid: Gtid) -> Result<(), GtidError> {
        let new = Interval::new(gtid.number, gtid.number)?;
        self.add_run(gtid.source, gtid.tag, new);
        Ok(())
    }

    /// Adds a run of transactions of one source.
    pub(crate) fn add_run(&mut self, source: Uuid, tag: Tag, run: Interval) {
        insert(self.sources.entry((source, tag)).or_default(), run);
    }

    /// Adds all transactions of `other`.
    pub fn union_with(&mut self, other: &Self) {
        for (key, theirs) in &other.sources {
            let ours = self.sources.entry(*key).or_default();
            ours.extend_from_slice(theirs);
            merge(ours);
        }
    }

    /// Replaces the intervals of every (source, tag) that `other` has by those of `other`: no union. Debezium
    /// computes the set it starts from this way (`GtidSet#with`).
    pub fn overlay(&mut self, other: &Self) {
        for (key, theirs) in &other.sources {
            self.sources.insert(*key, theirs.clone());
        }
    }

    /// Keeps the sources for which `keep` says true.
    pub fn retain(&mut self, mut keep: impl FnMut(Uuid, Tag) -> bool) {
        self.sources.retain(|(source, tag), _| keep(*source, *tag));
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.sources.clear();
    }

    /// All transactions of `self` and `other`.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.union_with(other);
        union
    }

    /// The transactions of `self` that are not in `other`.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let mut sources = BTreeMap::new();
        for (key, ours) in &self.sources {
            let left =
                other.sources.get(key).map_or_else(|| ours.clone(), |theirs| without(ours, theirs));
            if !left.is_empty() {
                sources.insert(*key, left);
            }
        }
        Self { sources }
    }

    /// The transactions of sources for which `keep` says true.
    #[must_use]
    pub fn filter(&self, mut keep: impl FnMut(Uuid) -> bool) -> Self {
        let kept = self.sources.iter().filter(|((source, _), _)| keep(*source));
        Self { sources: kept.map(|(key, intervals)| (*key, intervals.clone())).collect() }
    }

    /// Whether one transaction is in the set.
    #[must_use]
    pub fn contains(&self, gtid: Gtid) -> bool {
        self.sources
            .get(&(gtid.source, gtid.tag))
            .is_some_and(|intervals| covering(intervals, gtid.number).is_some())
    }

    /// Whether every transaction of `self` is in `other`; true for the empty set.
    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.sources.iter().all(|(key, ours)| {
            other.sources.get(key).is_some_and(|theirs| {
                ours.iter().all(|run| {
                    covering(theirs, run.first).is_some_and(|cover| run.last <= cover.last)
                })
            })
        })
    }

    /// Whether no transaction is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether an id in the set has a tag.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.sources.keys().any(|(_, tag)| !tag.is_none())
    }

    /// Whether the set has transactions of this source with this tag.
    #[must_use]
    pub fn has_source(&self, source: Uuid, tag: Tag) -> bool {
        self.sources.contains_key(&(source, tag))
    }

    /// The sources, sorted by UUID and tag, with their merged intervals, which are never empty.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, Tag, &[Interval])> {
        self.sources.iter().map(|((source, tag), intervals)| (*source, *tag, intervals.as_slice()))
    }

    /// The only transaction of the set, if it is exactly one.
    #[must_use]
    pub fn single(&self) -> Option<Gtid> {
        let mut entries = self.sources.iter();
        match (entries.next(), entries.next()) {
            (Some(((source, tag), intervals)), None) => match intervals.as_slice() {
                [only] if only.first == only.last => {
                    Some(Gtid { source: *source, tag: *tag, number: only.first })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The text as Debezium writes it once it has added a transaction itself: a single number as `n-n`. (What
    /// [`fmt::Display`] prints is the server's own form: `n`.)
    pub fn as_ranges(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| self.write(f, true))
    }

    /// Encodes the binary form: the tagged one only when a tag is in the set, so that older servers understand it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let tagged = self.has_tags();
        let mut bytes = Vec::with_capacity(self.encoded_len());
        let count = self.sources.len() as u64;
        let head = if tagged { 1 << 56 | count << 8 | 1 } else { count };
        bytes.extend_from_slice(&head.to_le_bytes());
        for ((source, tag), intervals) in &self.sources {
            bytes.extend_from_slice(source.as_bytes());
            if tagged {
                bytes.push(tag.len << 1);
                bytes.extend_from_slice(tag.as_str().as_bytes());
            }
            bytes.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
            for run in intervals {
                bytes.extend_from_slice(&run.first.to_le_bytes());
                bytes.extend_from_slice(&(run.last + 1).to_le_bytes());
            }
        }
        bytes
    }

    /// Upper bound of the encoded length in bytes.
    fn encoded_len(&self) -> usize {
        let entry = |intervals: &Vec<Interval>| 16 + 1 + Tag::MAX_LEN + 8 + 16 * intervals.len();
        8 + self.sources.values().map(entry).sum::<usize>()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, ranges: bool) -> fmt::Result {
        let mut before = None;
        for ((source, tag), intervals) in &self.sources {
            if before != Some(*source) {
                let comma = if before.is_some() { "," } else { "" };
                write!(f, "{comma}{source}")?;
                before = Some(*source);
            }
            if !tag.is_none() {
                write!(f, ":{tag}")?;
            }
            for run in intervals {
                if run.first == run.last && !ranges {
                    write!(f, ":{}", run.first)?;
                } else {
                    write!(f, ":{}-{}", run.first, run.last)?;
                }
            }
        }
        Ok(())
    }
}

/// The server's canonical text: lower case, sources sorted, no blanks, a single number as `n`.
impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl FromStr for GtidSet {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

fn decode_tag(cursor: &mut Cursor<'_>) -> Result<Tag, DecodeError> {
    // A variable-length integer whose lowest bit says that more bytes follow; a tag is too short to need them.
    let length = cursor.u8("gtid_tag_length")?;
    let invalid = DecodeError::Invalid { field: "gtid_tag_length", value: length.into() };
    if length & 1 == 1 || usize::from(length >> 1) > Tag::MAX_LEN {
        return Err(invalid);
    }
    Tag::from_bytes(cursor.take(usize::from(length >> 1), "gtid_tag")?)
        .ok_or_else(|| DecodeError::Invalid { field: "gtid_tag", value: length.into() })
}

/// The interval that holds `number`.
fn covering(intervals: &[Interval], number: u64) -> Option<Interval> {
    let after = intervals.partition_point(|run| run.first <= number);
    let run = intervals.get(after.checked_sub(1)?)?;
    (number <= run.last).then_some(*run)
}

/// Sorts, and joins what overlaps or touches.
fn merge(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, kept| {
        let joins = next.first <= kept.last + 1;
        if joins {
            kept.last = kept.last.max(next.last);
        }
        joins
    });
}

fn insert(intervals: &mut Vec<Interval>, new: Interval) {
    match intervals.last_mut() {
        Some(last) if last.last + 1 == new.first => last.last = new.last,
        Some(last) if last.first <= new.first && new.last <= last.last => {}
        Some(last) if new.first <= last.last => {
            // A number from before the last interval: rare, so simple.
            intervals.push(new);
            merge(intervals);
        }
        Some(_) | None => intervals.push(new),
    }
}

/// `ours` without `theirs`; both merged, so is the result.
fn without(ours: &[Interval], theirs: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::with_capacity(ours.len());
    for run in ours {
        let mut first = run.first;
        let from = theirs.partition_point(|cut| cut.last < run.first);
        for cut in theirs.iter().skip(from).take_while(|cut| cut.first <= run.last) {
            if first < cut.first {
                left.push(Interval { first, last: cut.first - 1 });
            }
            first = cut.last + 1;
        }
        if first <= run.last {
            left.push(Interval { first, last: run.last });
        }
    }
    left
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += 1;
        }
        found
    }

    /// The bytes up to the next blank or separator.
    fn word(&mut self) -> &[u8] {
        let start = self.at;
        while self
            .text
            .get(self.at)
            .is_some_and(|byte| !byte.is_ascii_whitespace() && !b",:".contains(byte))
        {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn source(
        &mut self,
        sources: &mut BTreeMap<(Uuid, Tag), Vec<Interval>>,
    ) -> Result<(), GtidError> {
        let start = self.at;
        let source =
            Uuid::from_text(self.word()).ok_or_else(|| GtidErrorKind::NotAUuid.at(start))?;
        let mut tag = Tag::NONE;
        let mut wanted = true;
        while self.eat(b':') {
            match self.peek() {
                Some(b'0'..=b'9') => {
                    let interval = self.interval()?;
                    sources.entry((source, tag)).or_default().push(interval);
                    wanted = false;
                }
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let start = self.at;
                    tag = Tag::from_bytes(self.word())
                        .ok_or_else(|| GtidErrorKind::NotATag.at(start))?;
                    wanted = true;
                }
                Some(b',' | b':') | None => return Err(GtidErrorKind::NoInterval.at(self.at)),
                Some(_) => return Err(GtidErrorKind::Unexpected.at(self.at)),
            }
        }
        if wanted { Err(GtidErrorKind::NoInterval.at(self.at)) } else { Ok(()) }
    }

    fn interval(&mut self) -> Result<Interval, GtidError> {
        let start = self.at;
        let first = self.number()?;
        let last = if self.eat(b'-') {
            self.peek();
            self.number()?
        } else {
            first
        };
        Interval::new(first, last).map_err(|error| error.kind.at(start))
    }

    fn number(&mut self) -> Result<u64, GtidError> {
        let start = self.at;
        let mut number = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.at) {
            let next =
                number.checked_mul(10).and_then(|tens| tens.checked_add(u64::from(digit - b'0')));
            number = next.ok_or_else(|| TOO_LARGE.at(start))?;
            self.at += 1;
        }
        if self.at == start { Err(GtidErrorKind::NoInterval.at(start)) } else { Ok(number) }
    }
}

#[cfg(test)]
mod tests;
