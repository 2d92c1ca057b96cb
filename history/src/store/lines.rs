//! Records as lines of a file, and what a crash leaves of the last ones.
//!
//! Debezium's `FileSchemaHistory` writes one record per line with a newline after each; its S3 store writes the newline
//! before. Both are read, blank lines are skipped, and lines end with `\n`, `\r\n` or `\r`, as Java's `readLine` has it.
//!
//! An append is one write, of which a crash can leave a first part. That part is told by three signs: the last line has
//! no newline and is no record; or the last line is record 2 of a group of 5 (`holdfast_group`); or both. The group is
//! then incomplete and is cut off. A bad line anywhere else was once written in full: that is damage, and an error.

use crate::codec::{Group, RecordError, read_record, write_record};
use crate::error::Error;
use crate::record::HistoryRecord;

/// What the bytes of a file say.
#[derive(Debug)]
pub(super) struct Scan {
    /// The records of complete groups.
    pub(super) records: Vec<HistoryRecord>,
    /// Bytes from the start that hold them; what follows is an incomplete group.
    pub(super) complete: usize,
    /// Whether the last of those bytes ends a line, so that an append can go on.
    pub(super) at_line_start: bool,
}

/// Reads the lines of `location`.
pub(super) fn scan(bytes: &[u8], location: &str) -> Result<Scan, Error> {
    let damaged = |line, source| Error::Damaged { location: location.to_owned(), line, source };
    let mut records = Vec::new();
    let mut open: Option<OpenGroup> = None;
    let mut torn = None;
    for line in Lines::new(bytes) {
        let read = std::str::from_utf8(line.bytes)
            .map_err(|error| RecordError::NotUtf8 { valid: error.valid_up_to() })
            .and_then(read_record);
        let (record, group) = match read {
            Ok(read) => read,
            Err(_) if !line.terminated => {
                torn = Some(line.start);
                break;
            }
            Err(error) => return Err(damaged(line.number, error)),
        };
        match (&mut open, group) {
            (None, None) => {}
            (None, Some(Group { index: 1, count: 1 })) => {}
            (None, Some(group @ Group { index: 1, .. })) => {
                open = Some(OpenGroup {
                    start: line.start,
                    line: line.number,
                    before: records.len(),
                    last: group,
                });
            }
            (Some(group), Some(next))
                if next.count == group.last.count
                    && Some(next.index) == group.last.index.checked_add(1) =>
            {
                group.last = next;
                if next.index == next.count {
                    open = None;
                }
            }
            (None, Some(group)) => return Err(damaged(line.number, alone(group))),
            (Some(group), None | Some(_)) => return Err(damaged(group.line, alone(group.last))),
        }
        records.push(record);
    }
    if let Some(group) = open {
        records.truncate(group.before);
        torn = Some(group.start);
    }
    let complete = torn.unwrap_or(bytes.len());
    let last = complete.checked_sub(1).and_then(|last| bytes.get(last));
    Ok(Scan { records, complete, at_line_start: matches!(last, None | Some(b'\n' | b'\r')) })
}

/// Appends the lines of one append.
pub(super) fn encode(records: &[HistoryRecord], out: &mut Vec<u8>) {
    let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
    for (index, record) in (1_u32..).zip(records) {
        write_record(record, (count > 1).then_some(Group { index, count }), out);
        out.push(b'\n');
    }
}

/// A group of which not all records were seen yet.
struct OpenGroup {
    /// Where its first line begins, bytes from the start.
    start: usize,
    /// Number of that line.
    line: u64,
    /// Records before it.
    before: usize,
    /// The record seen last.
    last: Group,
}

const fn alone(group: Group) -> RecordError {
    RecordError::BrokenGroup { index: group.index, count: group.count }
}

struct Line<'a> {
    bytes: &'a [u8],
    /// From 1; blank lines count.
    number: u64,
    /// Bytes from the start.
    start: usize,
    terminated: bool,
}

/// The lines that are not blank.
struct Lines<'a> {
    rest: &'a [u8],
    number: u64,
    start: usize,
}

impl<'a> Lines<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, number: 0, start: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (bytes, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            let ending = if rest.starts_with(b"\r\n") { 2 } else { rest.len().min(1) };
            let start = self.start;
            self.number += 1;
            self.start += bytes.len() + ending;
            self.rest = rest.get(ending..).unwrap_or_default();
            if !bytes.is_empty() {
                return Some(Line { bytes, number: self.number, start, terminated: ending > 0 });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::conformance::record;

    #[test]
    fn both_framings_and_all_line_ends_are_read() {
        let lines: Vec<String> = (1..=3).map(line).collect();
        let [a, b, c] = lines.as_slice() else { unreachable!() };
        let cases = [
            (format!("{a}\n{b}\n{c}\n"), true),
            (format!("\n{a}\n{b}\n{c}"), false),
            (format!("{a}\r\n{b}\r{c}\r\n\n\n"), true),
        ];
        for (text, at_line_start) in cases {
            let scan = scan(text.as_bytes(), "h").unwrap();
            assert_eq!(scan.records, [record(1), record(2), record(3)]);
            assert_eq!((scan.complete, scan.at_line_start), (text.len(), at_line_start));
        }
    }

    #[test]
    fn a_torn_end_gives_the_groups_before_it_whatever_its_length() {
        let mut bytes = Vec::new();
        encode(&[record(1)], &mut bytes);
        encode(&[record(2), record(3)], &mut bytes);
        let before = bytes.len();
        encode(&[record(4), record(5), record(6)], &mut bytes);
        let old = [record(1), record(2), record(3)];
        for end in before..bytes.len() - 1 {
            let scan = scan(&bytes[..end], "h").unwrap();
            assert_eq!((scan.records.as_slice(), scan.complete), (old.as_slice(), before), "{end}");
        }
        // Only the last newline is missing: the append is complete.
        for end in [bytes.len() - 1, bytes.len()] {
            let scan = scan(&bytes[..end], "h").unwrap();
            assert_eq!((scan.records.len(), scan.complete), (6, end));
        }
        // A block that was allocated and never written.
        let mut zeros = bytes[..before].to_vec();
        zeros.extend([0; 100]);
        assert_eq!(scan(&zeros, "h").unwrap().complete, before);
    }

    #[test]
    fn damage_before_the_end_names_the_line() {
        let (a, b) = (line(1), line(2));
        let mut group = Vec::new();
        encode(&[record(7), record(8), record(9)], &mut group);
        let group = String::from_utf8(group).unwrap();
        let first_of_group = group.lines().next().unwrap();
        let last_of_group = group.lines().last().unwrap();
        let cases = [
            (
                format!("{a}\n{{\n{b}\n"),
                "h, line 2: history record cannot be read",
                "not a JSON object (column 1)",
            ),
            (
                format!("{a}\n\n{{}}\n"),
                "h, line 3: history record cannot be read",
                "member 'source.server' is missing",
            ),
            (
                format!("{a}\n{first_of_group}\n{b}\n"),
                "h, line 2: history record cannot be read",
                "record 1 of a group of 3 stands alone: the append was cut short, and lines were added after it",
            ),
            (
                format!("{last_of_group}\n{b}\n"),
                "h, line 1: history record cannot be read",
                "record 3 of a group of 3 stands alone: the append was cut short, and lines were added after it",
            ),
        ];
        for (text, message, cause) in cases {
            let error = scan(text.as_bytes(), "h").unwrap_err();
            assert_eq!(error.to_string(), message);
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), cause);
        }
        let error = scan(b"\xff\xff\n", "h").unwrap_err();
        assert_eq!(
            std::error::Error::source(&error).unwrap().to_string(),
            "not UTF-8 (after 0 bytes)"
        );
    }

    fn line(number: u64) -> String {
        let mut bytes = Vec::new();
        write_record(&record(number), None, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn any_bytes_are_records_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(scan) = scan(&bytes, "h") {
                prop_assert!(scan.complete <= bytes.len());
            }
        }

        #[test]
        fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = Vec::new();
            encode(&[record(1), record(2)], &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = scan(&bytes, "h");
        }
    }
}
