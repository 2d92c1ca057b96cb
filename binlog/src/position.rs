//! Places in a binary log: file, position in the file, and the row coordinate.
//!
//! All orders here are partial: two places whose files have different base names belong to different logs and have no
//! order. That two equal base names belong to the *same* log is for the caller to know.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// Name of one binary log file, `base.number`, as `SHOW BINARY LOGS` and rotate events give it.
///
/// The number has six digits at least and more after the 999999th file (MySQL and MariaDB, `MYSQL_BIN_LOG`
/// in `sql/binlog.cc`, `sql/log.cc`), so that names do not sort as texts; files compare by number. Equal are files
/// with equal base name and number. A clone costs a reference count.
#[derive(Debug, Clone)]
pub struct BinlogFile {
    text: Arc<str>,
    base_len: usize,
    number: u64,
}

impl BinlogFile {
    /// Parses `base.number`. The base name may hold dots itself.
    ///
    /// # Errors
    ///
    /// [`BinlogFileError`]: no dot, an empty base name, or an extension that is not a number of 64 bits.
    pub fn parse(text: &str) -> Result<Self, BinlogFileError> {
        let (base, digits) = text.rsplit_once('.').ok_or(BinlogFileError::NoNumber)?;
        if base.is_empty() {
            return Err(BinlogFileError::NoBase);
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BinlogFileError::NoNumber);
        }
        let number = digits.parse().map_err(|_| BinlogFileError::TooLarge)?;
        Ok(Self { text: text.into(), base_len: base.len(), number })
    }

    /// Parses the bytes of a rotate event.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], and [`BinlogFileError::NotUtf8`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BinlogFileError> {
        Self::parse(std::str::from_utf8(bytes).map_err(|_| BinlogFileError::NotUtf8)?)
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the last dot.
    #[must_use]
    pub fn base(&self) -> &str {
        self.text.get(..self.base_len).unwrap_or_default()
    }

    /// The part after the last dot; the server's first file is 1.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl PartialEq for BinlogFile {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
            && (Arc::ptr_eq(&self.text, &other.text) || self.base() == other.base())
    }
}

impl Eq for BinlogFile {}

impl Hash for BinlogFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.base().hash(state);
        self.number.hash(state);
    }
}

impl PartialOrd for BinlogFile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.base() == other.base()).then(|| self.number.cmp(&other.number))
    }
}

impl fmt::Display for BinlogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for BinlogFile {
    type Err = BinlogFileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// Why a text is not the name of a binary log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BinlogFileError {
    /// There is no dot, or what follows the last one is not decimal.
    #[error("a binlog file name ends with a dot and a number")]
    NoNumber,
    /// Nothing stands before the last dot.
    #[error("a binlog file name has a base name before its number")]
    NoBase,
    /// The number does not fit 64 bits.
    #[error("the number of a binlog file is beyond 64 bits")]
    TooLarge,
    /// The name is not UTF-8.
    #[error("the name of a binlog file is not UTF-8")]
    NotUtf8,
}

/// A place between two events: the next event begins `position` bytes from the start of `file`.
///
/// Ordered by file, then position; `None` between files of different base names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct BinlogPosition {
    /// The file.
    pub file: BinlogFile,
    /// Offset from the start of the file in bytes; the first event is at [`Self::FIRST`].
    pub position: u64,
}

impl BinlogPosition {
    /// Where the first event of every file begins, after the 4 magic bytes.
    pub const FIRST: u64 = 4;

    /// The place `position` bytes into `file`.
    #[must_use]
    pub const fn new(file: BinlogFile, position: u64) -> Self {
        Self { file, position }
    }
}

impl fmt::Display for BinlogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// Names one row in a log: position, event index in the transaction, row index in the event.
///
/// Ordered by the three in turn; `None` between files of different base names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct Coordinate {
    /// Where the event, or the compressed transaction it is part of, begins.
    pub position: BinlogPosition,
    /// Zero-based index of the event in its transaction.
    pub event: u64,
    /// Zero-based index of the row in the event.
    pub row: u64,
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} event {} row {}", self.position, self.event, self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_by_number_and_only_inside_one_base() {
        use Ordering::{Equal, Greater, Less};
        let table = [
            ("mysql-bin.999999", "mysql-bin.1000000", Some(Less)),
            ("b.000010", "b.000009", Some(Greater)),
            ("b.000010", "b.10", Some(Equal)),
            ("a.b.000001", "a.b.000002", Some(Less)),
            ("a.000001", "b.000001", None),
            ("a.000001", "A.000001", None),
        ];
        for (left, right, order) in table {
            let (left, right) = (file(left), file(right));
            assert_eq!(left.partial_cmp(&right), order, "{left} {right}");
            assert_eq!(right.partial_cmp(&left), order.map(Ordering::reverse), "{left} {right}");
            assert_eq!(left == right, order == Some(Equal));
        }
    }

    #[test]
    fn a_name_keeps_its_text_and_its_parts() {
        let name = file("db-1.log.000042");
        assert_eq!(
            (name.base(), name.number(), name.as_str()),
            ("db-1.log", 42, "db-1.log.000042")
        );
        assert_eq!(format!("{name:>17}|"), "  db-1.log.000042|");
    }

    #[test]
    fn texts_that_are_no_file_name_are_typed_errors() {
        let table = [
            ("", BinlogFileError::NoNumber),
            ("binlog", BinlogFileError::NoNumber),
            ("binlog.", BinlogFileError::NoNumber),
            ("binlog.index", BinlogFileError::NoNumber),
            ("binlog.+1", BinlogFileError::NoNumber),
            (".000001", BinlogFileError::NoBase),
            ("binlog.18446744073709551616", BinlogFileError::TooLarge),
        ];
        for (text, error) in table {
            assert_eq!(BinlogFile::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(BinlogFile::from_bytes(b"b\xff.000001"), Err(BinlogFileError::NotUtf8));
        assert_eq!(file("binlog.18446744073709551615").number(), u64::MAX);
    }

    #[test]
    fn positions_and_coordinates_order_by_file_then_offset_then_row() {
        let at = |name: &str, position| BinlogPosition::new(file(name), position);
        assert!(at("b.999999", 9_000_000_000) < at("b.1000000", 4));
        assert!(at("b.000001", 4) < at("b.000001", 5));
        assert_eq!(at("a.000001", 4).partial_cmp(&at("b.000001", 4)), None);
        let row =
            |position, event, row| Coordinate { position: at("b.000001", position), event, row };
        assert!(
            row(4, 9, 9) < row(5, 0, 0)
                && row(4, 1, 9) < row(4, 2, 0)
                && row(4, 1, 1) < row(4, 1, 2)
        );
        assert_eq!(row(4, 1, 2).to_string(), "b.000001:4 event 1 row 2");
    }

    fn file(text: &str) -> BinlogFile {
        BinlogFile::parse(text).unwrap()
    }
}
