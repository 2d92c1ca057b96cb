//! Records as lines of a file, and what a crash leaves of the last ones.
//!
//! Debezium's `FileSchemaHistory` writes one record per line with a newline after each; its S3 store writes the newline
//! before. Both are read, blank lines are skipped, and lines end with `\n`, `\r\n` or `\r`, as Java's `readLine` has it.
//!
//! An append is one write, of which a crash can leave a first part. That part is told by three signs: the last line has
//! no newline and is no record; or the last line is record 2 of a group of 5 (`holdfast_group`); or both. The group is
//! then incomplete and is cut off. A bad line anywhere else was once written in full: that is damage, and an error.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use memchr::memchr2;

use super::{Place, Visit};
use crate::codec::{Group, RecordError, RecordLine, peek_group, write_record};
use crate::error::Error;
use crate::record::HistoryRecord;

/// How much of a file is complete appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bytes from the start that hold complete groups; what follows is an incomplete one.
    pub(super) complete: u64,
    /// Whether the last of those bytes ends a line, so that an append can go on.
    pub(super) at_line_start: bool,
    /// Whether there is a record in them.
    pub(super) any: bool,
}

/// How much of the end is looked at first.
const END: u64 = 64 << 10;

/// Finds the end of the last complete append in the first `len` bytes. Only the end of the file is read, as much of it as
/// holds the last append.
pub(super) fn measure(mut file: impl Read + Seek, len: u64) -> io::Result<Extent> {
    let mut window = END;
    loop {
        let from = len.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut tail = BufReader::new((&mut file).take(len - from));
        let mut skipped = 0;
        if from > 0 {
            // Where a line begins.
            skipped = u64::try_from(tail.skip_until(b'\n')?).unwrap_or(u64::MAX);
        }
        if let Some(extent) = measure_end(tail, from.saturating_add(skipped), from == 0)? {
            return Ok(extent);
        }
        window = window.saturating_mul(4);
    }
}

/// What is known of the append that a line belongs to.
#[derive(Clone, Copy)]
enum Open {
    /// Its beginning is further up.
    Unknown,
    No,
    /// A group that is not complete yet, and what is complete without it.
    Since(Extent),
}

/// As [`measure`], of a file of which `start` bytes are not read: all that are left are lines. `None` when more of it has
/// to be read.
fn measure_end(reader: impl BufRead, start: u64, whole: bool) -> io::Result<Option<Extent>> {
    let mut lines = Lines::new(reader, Place { end: start, ..Place::default() });
    let mut extent = Extent { complete: start, at_line_start: true, any: false };
    let mut open = if whole { Open::No } else { Open::Unknown };
    loop {
        let before = Extent { complete: lines.place.end, at_line_start: true, ..extent };
        let Some(line) = lines.next()? else { break };
        if line.bytes.is_empty() {
            extent = Extent { complete: line.place.end, at_line_start: true, ..extent };
            continue;
        }
        if !line.terminated && parse(line.bytes).is_err() {
            extent = before;
            break;
        }
        match peek_group(line.bytes) {
            Some(group) if group.index == group.count => open = Open::No,
            Some(Group { index: 1, .. }) => open = Open::Since(before),
            Some(_) => {}
            None => open = Open::No,
        }
        extent = Extent { complete: line.place.end, at_line_start: line.terminated, any: true };
    }
    let found = match open {
        Open::Unknown => return Ok(None),
        Open::No => extent,
        Open::Since(before) => before,
    };
    // What is not read may be blank lines alone.
    Ok((whole || found.any).then_some(found))
}

/// Hands the records of complete appends to `visit`, in order. The reader is at `start`, which is where an append begins.
pub(super) fn visit_lines(
    reader: impl BufRead,
    start: Place,
    location: &str,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let damaged = |line, source| Error::Damaged { location: location.to_owned(), line, source };
    let mut lines = Lines::new(reader, start);
    // The line on which the open group began, and its record seen last.
    let mut open: Option<(u64, Group)> = None;
    loop {
        let line = lines.next().map_err(|source| Error::Read {
            location: location.to_owned(),
            action: "read",
            source,
        })?;
        let Some(line) = line else { break };
        if line.bytes.is_empty() {
            continue;
        }
        let number = line.place.line;
        let mut record = parse(line.bytes).map_err(|error| damaged(number, error))?;
        record.place = line.terminated.then_some(line.place);
        match (open, record.group) {
            (None, None) => {}
            (None, Some(group @ Group { index: 1, .. })) => open = Some((number, group)),
            (Some((start, last)), Some(next))
                if next.count == last.count && Some(next.index) == last.index.checked_add(1) =>
            {
                open = Some((start, next));
            }
            (None, Some(group)) => return Err(damaged(number, alone(group))),
            (Some((start, last)), None | Some(_)) => return Err(damaged(start, alone(last))),
        }
        open = open.filter(|(_, last)| last.index < last.count);
        visit(number, &record)?;
    }
    match open {
        Some((start, last)) => Err(damaged(start, alone(last))),
        None => Ok(()),
    }
}

/// Appends the lines of one append.
pub(super) fn encode(records: &[HistoryRecord], out: &mut Vec<u8>) {
    let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
    for (index, record) in (1_u32..).zip(records) {
        write_record(record, (count > 1).then_some(Group { index, count }), out);
        out.push(b'\n');
    }
}

/// Appends the lines of one append that is alone in its file, which is there as a whole or not at all.
#[cfg(feature = "opendal")]
pub(super) fn encode_alone(records: &[HistoryRecord], out: &mut Vec<u8>) {
    for record in records {
        write_record(record, None, out);
        out.push(b'\n');
    }
}

fn parse(line: &[u8]) -> Result<RecordLine<'_>, RecordError> {
    let text = std::str::from_utf8(line)
        .map_err(|error| RecordError::NotUtf8 { valid: error.valid_up_to() })?;
    RecordLine::parse(text)
}

const fn alone(group: Group) -> RecordError {
    RecordError::BrokenGroup { index: group.index, count: group.count }
}

/// What identifies the first `end` bytes: checksums of their beginning and of their end. A file of other records has
/// others; one that was edited in between may not. `None` when no line ends there.
pub(super) fn fingerprint(mut file: impl Read + Seek, end: u64) -> io::Result<Option<String>> {
    let mut checksum = |from: u64, to: u64| {
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        (&mut file).take(to - from).read_to_end(&mut bytes)?;
        let whole = u64::try_from(bytes.len()) == Ok(to - from);
        let ends_line = bytes.last() == Some(&b'\n');
        Ok::<_, io::Error>((whole && ends_line).then(|| crc32fast::hash(&bytes)))
    };
    let Some(last) = checksum(end.saturating_sub(END), end)? else { return Ok(None) };
    file.seek(SeekFrom::Start(0))?;
    let mut first = Vec::new();
    file.take(END.min(end)).read_to_end(&mut first)?;
    Ok(Some(format!("{:08x}-{last:08x}", crc32fast::hash(&first))))
}

struct Line<'a> {
    bytes: &'a [u8],
    /// Its end, line break included. Blank lines count.
    place: Place,
    terminated: bool,
}

/// Reads a file line by line. A line that is in the reader's buffer as a whole is handed out there, any other is put
/// together first: no more than one line is held.
struct Lines<R> {
    reader: R,
    /// How much of the reader's buffer was handed out.
    taken: usize,
    /// A line that was put together.
    pieces: Vec<u8>,
    /// The end of the line handed out last.
    place: Place,
}

/// Where a line ends.
enum End {
    InBuffer { line: usize, line_break: usize },
    InPieces { line_break: usize },
}

impl<R: BufRead> Lines<R> {
    const fn new(reader: R, start: Place) -> Self {
        Self { reader, taken: 0, pieces: Vec::new(), place: start }
    }

    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.reader.consume(std::mem::take(&mut self.taken));
        let Some(end) = self.find_end()? else { return Ok(None) };
        let (bytes, line_break) = match end {
            End::InBuffer { line, line_break } => {
                self.taken = line + line_break;
                (self.reader.fill_buf()?.get(..line).unwrap_or_default(), line_break)
            }
            End::InPieces { line_break } => (self.pieces.as_slice(), line_break),
        };
        let len = u64::try_from(bytes.len() + line_break).unwrap_or(u64::MAX);
        self.place.line += 1;
        self.place.end = self.place.end.saturating_add(len);
        Ok(Some(Line { bytes, place: self.place, terminated: line_break > 0 }))
    }

    /// Finds the end of the next line; `None` at the end of the file.
    fn find_end(&mut self) -> io::Result<Option<End>> {
        let buffer = self.reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(None);
        }
        if let Some(line) = memchr2(b'\n', b'\r', buffer) {
            match buffer.get(line..).unwrap_or_default() {
                [b'\r', b'\n', ..] => return Ok(Some(End::InBuffer { line, line_break: 2 })),
                // Whether a newline follows is in what comes next.
                [b'\r'] => {}
                _ => return Ok(Some(End::InBuffer { line, line_break: 1 })),
            }
        }
        self.pieces.clear();
        loop {
            let buffer = self.reader.fill_buf()?;
            let end = memchr2(b'\n', b'\r', buffer);
            let len = end.unwrap_or(buffer.len());
            self.pieces.extend_from_slice(buffer.get(..len).unwrap_or_default());
            let last = buffer.get(len).copied();
            let is_over = buffer.is_empty();
            self.reader.consume(len + usize::from(last.is_some()));
            match last {
                None if is_over => return Ok(Some(End::InPieces { line_break: 0 })),
                None => {}
                Some(b'\r') if self.reader.fill_buf()?.first() == Some(&b'\n') => {
                    self.reader.consume(1);
                    return Ok(Some(End::InPieces { line_break: 2 }));
                }
                Some(_) => return Ok(Some(End::InPieces { line_break: 1 })),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

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
    fn a_line_may_end_anywhere_in_the_readers_buffer() {
        let text = b"a\r\nbb\n\rccc\r\r\n\n\ndddddd";
        let expected =
            [("a", 2), ("bb", 1), ("", 1), ("ccc", 1), ("", 2), ("", 1), ("", 1), ("dddddd", 0)];
        for size in 1..=text.len() + 1 {
            let mut lines =
                Lines::new(BufReader::with_capacity(size, text.as_slice()), Place::default());
            let mut end = 0;
            for (number, (line, line_break)) in (1..).zip(expected) {
                end += line.len() + line_break;
                let found = lines.next().unwrap().unwrap();
                assert_eq!(found.bytes, line.as_bytes(), "line {number}, buffer of {size}");
                assert_eq!(found.place.line, number);
                assert_eq!(found.place.end, u64::try_from(end).unwrap());
                assert_eq!(found.terminated, line_break > 0);
            }
            assert!(lines.next().unwrap().is_none());
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
    fn the_end_is_found_whatever_is_read_of_the_file() {
        // Groups larger than what is looked at first, records after them, and every kind of end.
        let large: Vec<HistoryRecord> = (0..300).map(record).collect();
        let mut bytes = Vec::new();
        encode(&large, &mut bytes);
        encode(&[record(1)], &mut bytes);
        encode(&large, &mut bytes);
        assert!(bytes.len() > 4 * usize::try_from(END).unwrap());
        let mut ends = vec![bytes.len(), bytes.len() - 1, bytes.len() - 30];
        let breaks = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        ends.extend(breaks.map(|(at, _)| at).filter(|at| at % 7 == 0));
        for end in ends {
            for blank in ["", "\n\n", "\r\n"] {
                let text = [&bytes[..end], blank.as_bytes()].concat();
                let found =
                    measure(Cursor::new(&text), u64::try_from(text.len()).unwrap()).unwrap();
                let whole = measure_end(text.as_slice(), 0, true).unwrap().unwrap();
                assert_eq!(found, whole, "{end} of {}", bytes.len());
            }
        }
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
            let error = scan(text.as_bytes(), "h").err().unwrap();
            assert_eq!(error.to_string(), message);
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), cause);
        }
        let error = scan(b"\xff\xff\n", "h").err().unwrap();
        assert_eq!(
            std::error::Error::source(&error).unwrap().to_string(),
            "not UTF-8 (after 0 bytes)"
        );
    }

    /// What opening and reading a file of these bytes gives.
    fn scan(bytes: &[u8], location: &str) -> Result<Scan, Error> {
        let extent = measure(Cursor::new(bytes), u64::try_from(bytes.len()).unwrap()).unwrap();
        let complete = usize::try_from(extent.complete).unwrap();
        let mut records = Vec::new();
        visit_lines(&bytes[..complete], Place::default(), location, &mut |number, line| {
            let damaged =
                |source| Error::Damaged { location: location.to_owned(), line: number, source };
            records.push(line.to_record().map_err(damaged)?);
            Ok(())
        })?;
        assert_eq!(!records.is_empty(), extent.any);
        Ok(Scan { records, complete, at_line_start: extent.at_line_start })
    }

    struct Scan {
        records: Vec<HistoryRecord>,
        complete: usize,
        at_line_start: bool,
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
