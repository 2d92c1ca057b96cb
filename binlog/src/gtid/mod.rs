//! Global transaction ids: one id, and the sets and positions made of them.
//!
//! MySQL: `source:number` or `source:tag:number`, sets of intervals ([`GtidSet`]). MariaDB: `domain-server-sequence`,
//! a position is one id per domain ([`GtidPos`]).

pub mod mariadb;
pub mod set;

use std::fmt;
use std::str::FromStr;

pub use mariadb::{GtidPos, MariaDbGtid};
pub use set::GtidSet;

/// The largest number of a MySQL transaction, 2^63 − 2 (`GNO_END` − 1 in `sql/rpl_gtid.h`).
pub const MAX_NUMBER: u64 = i64::MAX.unsigned_abs() - 1;

/// The UUID of the server that a transaction comes from. Ordered by its bytes, which is the order of its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// Length of the text form in bytes.
    pub const TEXT_LEN: usize = 36;

    /// From the 16 bytes that stand in an event, in text order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Parses `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` in either case.
    ///
    /// # Errors
    ///
    /// [`GtidErrorKind::NotAUuid`] for anything else.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        Self::from_text(text.as_bytes()).ok_or(GtidErrorKind::NotAUuid.at(0))
    }

    /// The bytes in text order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    fn from_text(text: &[u8]) -> Option<Self> {
        if text.len() != Self::TEXT_LEN {
            return None;
        }
        let mut bytes = [0; 16];
        let mut rest = text;
        for (index, byte) in bytes.iter_mut().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                rest = rest.strip_prefix(b"-")?;
            }
            let ([high, low], tail) = rest.split_first_chunk()?;
            *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
            rest = tail;
        }
        Some(Self(bytes))
    }

    /// The lower-case text, without an allocation.
    fn text(self) -> [u8; Self::TEXT_LEN] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
        let mut text = [b'-'; Self::TEXT_LEN];
        let mut places =
            text.iter_mut().enumerate().filter(|(at, _)| !matches!(at, 8 | 13 | 18 | 23));
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 15] {
                if let Some((_, place)) = places.next() {
                    *place = digit(nibble);
                }
            }
        }
        text
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// The tag of a transaction id (MySQL 8.3 and later), lower case; [`Tag::NONE`] for ids without one.
///
/// A letter or underscore, then letters, digits and underscores, 32 at most (MySQL 8.4,
/// `libs/mysql/gtid/tag.h`). Ordered as text, no tag first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl Tag {
    /// No tag.
    pub const NONE: Self = Self { bytes: [0; Self::MAX_LEN], len: 0 };

    /// Longest tag in bytes.
    pub const MAX_LEN: usize = 32;

    /// Parses a tag in either case; the empty text is [`Tag::NONE`].
    ///
    /// # Errors
    ///
    /// [`GtidErrorKind::NotATag`] for a text that breaks the rules above.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        Self::from_bytes(text.as_bytes()).ok_or(GtidErrorKind::NotATag.at(0))
    }

    /// From the bytes that stand in an event, `None` when they break the rules above.
    #[must_use]
    pub fn from_bytes(text: &[u8]) -> Option<Self> {
        if text.first().is_some_and(u8::is_ascii_digit)
            || !text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        {
            return None;
        }
        let mut tag = Self::NONE;
        tag.bytes.get_mut(..text.len())?.copy_from_slice(text);
        tag.bytes.make_ascii_lowercase();
        tag.len = u8::try_from(text.len()).ok()?;
        Some(tag)
    }

    /// The text, empty for no tag.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.bytes
            .get(..usize::from(self.len))
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .unwrap_or_default()
    }

    /// Whether this stands for no tag.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The id of one MySQL transaction. Its text is `uuid:number` or `uuid:tag:number`, lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gtid {
    /// Server that the transaction comes from.
    pub source: Uuid,
    /// Tag, or [`Tag::NONE`].
    pub tag: Tag,
    /// Number in (source, tag), 1 to [`MAX_NUMBER`].
    pub number: u64,
}

impl Gtid {
    /// An id without a tag.
    #[must_use]
    pub const fn new(source: Uuid, number: u64) -> Self {
        Self { source, tag: Tag::NONE, number }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.source)?;
        if !self.tag.is_none() {
            write!(f, "{}:", self.tag)?;
        }
        write!(f, "{}", self.number)
    }
}

impl FromStr for Gtid {
    type Err = GtidError;

    /// Parses one id; a set that holds exactly one is read as that one.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let set = GtidSet::parse(text)?;
        set.single().ok_or(GtidErrorKind::NotOneId.at(0))
    }
}

/// Why a text is not a transaction id, a set or a position, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("GTID text, byte {at}: {kind}")]
pub struct GtidError {
    /// Byte offset in the text, zero-based.
    pub at: usize,
    /// What is wrong there.
    pub kind: GtidErrorKind,
}

/// What is wrong in a GTID text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GtidErrorKind {
    /// A source is not in the form `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    #[error("not a uuid")]
    NotAUuid,
    /// A tag is longer than 32 bytes or holds other characters than letters, digits and underscores.
    #[error("not a tag")]
    NotATag,
    /// A source or a tag is not followed by an interval.
    #[error("an interval is missing")]
    NoInterval,
    /// An interval begins at 0.
    #[error("an interval starts at 1, not at 0")]
    Zero,
    /// An interval ends before it begins.
    #[error("reversed interval")]
    Reversed,
    /// A number is beyond [`MAX_NUMBER`]; MariaDB: beyond 32 bits for domain and server, 64 for the sequence.
    #[error("a number beyond the largest number ({largest})")]
    TooLarge {
        /// The largest number allowed, in words.
        largest: &'static str,
    },
    /// Something other than what the grammar wants.
    #[error("unexpected text")]
    Unexpected,
    /// One id was wanted; the text holds none, or several.
    #[error("not one transaction id")]
    NotOneId,
    /// A MariaDB id is not `domain-server-sequence`.
    #[error("not in the form domain-server-sequence")]
    NotATriple,
}

impl GtidErrorKind {
    pub(crate) const fn at(self, at: usize) -> GtidError {
        GtidError { at, kind: self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const U: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn a_uuid_reads_either_case_and_prints_lower_case() {
        for text in [U, "3E11FA47-71CA-11E1-9E33-C80AA9429562"] {
            assert_eq!(Uuid::parse(text).unwrap().to_string(), U);
        }
        assert_eq!(Uuid::parse(U).unwrap().as_bytes()[..3], [0x3e, 0x11, 0xfa]);
        for text in [
            "",
            "nope",
            &U[1..],
            &U.replace('-', ""),
            &U.replace("fa", "g0"),
            &U.replacen('-', "_", 1),
        ] {
            assert_eq!(Uuid::parse(text), Err(GtidErrorKind::NotAUuid.at(0)), "{text}");
        }
    }

    #[test]
    fn a_tag_is_a_short_identifier() {
        let longest = "a".repeat(32);
        for (text, printed) in [("", ""), ("_", "_"), ("Blue_2", "blue_2"), (&longest, &longest)] {
            assert_eq!(Tag::parse(text).unwrap().as_str(), printed);
        }
        for text in ["2a", "a-b", "ä", &"a".repeat(33)] {
            assert_eq!(Tag::parse(text), Err(GtidErrorKind::NotATag.at(0)), "{text}");
        }
        assert!(Tag::parse("a").unwrap() < Tag::parse("ab").unwrap());
        assert!(Tag::NONE < Tag::parse("_").unwrap());
    }

    #[test]
    fn one_id_prints_its_tag_only_if_it_has_one() {
        for text in [format!("{U}:7"), format!("{U}:blue:7"), format!("{U}:9223372036854775806")] {
            assert_eq!(text.parse::<Gtid>().unwrap().to_string(), text);
        }
        for text in [
            String::new(),
            format!("{U}:1-2"),
            format!("{U}:1:a:1"),
            format!("{U}:1,{}:1", U.replace('3', "4")),
        ] {
            assert_eq!(text.parse::<Gtid>(), Err(GtidErrorKind::NotOneId.at(0)), "{text}");
        }
    }
}
