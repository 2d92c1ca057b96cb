//! MariaDB's transaction ids and positions: `domain-server-sequence`, joined by commas.
//!
//! Inside one domain sequences rise, whichever server wrote the transaction (MariaDB manual, "Global Transaction
//! ID"), so that one id per domain says everything that has been seen.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::str::FromStr;

use super::{GtidError, GtidErrorKind};

/// The id of one MariaDB transaction. Its text is `domain-server-sequence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MariaDbGtid {
    /// Replication domain.
    pub domain: u32,
    /// Id of the server that wrote the transaction first; says nothing about the order.
    pub server: u32,
    /// Sequence number inside the domain.
    pub sequence: u64,
}

impl fmt::Display for MariaDbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

impl FromStr for MariaDbGtid {
    type Err = GtidError;

    /// Parses one id; blanks around it are allowed.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_one(text, 0)
    }
}

/// A position in MariaDB's log: the newest transaction seen of every domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GtidPos {
    // By domain; a key is the domain of its value.
    domains: BTreeMap<u32, MariaDbGtid>,
}

impl GtidPos {
    /// The position before everything.
    #[must_use]
    pub const fn new() -> Self {
        Self { domains: BTreeMap::new() }
    }

    /// Parses a list of ids; blank text is the empty position, and of several ids in one domain the one with the
    /// highest sequence counts.
    ///
    /// # Errors
    ///
    /// [`GtidErrorKind::NotATriple`] or [`GtidErrorKind::TooLarge`], with the byte offset of the id.
    pub fn parse(text: &str) -> Result<Self, GtidError> {
        let mut position = Self::new();
        let mut at = 0;
        for part in text.split(',') {
            if !part.trim_ascii().is_empty() {
                position.advance(parse_one(part, at)?);
            }
            at += part.len() + 1;
        }
        Ok(position)
    }

    /// Notes a transaction; one that is older than the domain's newest changes nothing.
    pub fn advance(&mut self, gtid: MariaDbGtid) {
        match self.domains.entry(gtid.domain) {
            Entry::Vacant(entry) => {
                entry.insert(gtid);
            }
            Entry::Occupied(mut entry) => {
                if entry.get().sequence <= gtid.sequence {
                    entry.insert(gtid);
                }
            }
        }
    }

    /// Keeps the domains for whose newest id `keep` says true.
    pub fn retain(&mut self, mut keep: impl FnMut(MariaDbGtid) -> bool) {
        self.domains.retain(|_, gtid| keep(*gtid));
    }

    /// Whether everything that `self` has seen, `other` has seen too: for every domain of `self`, `other` has it
    /// with the same or a higher sequence. The servers do not matter.
    #[must_use]
    pub fn at_or_before(&self, other: &Self) -> bool {
        self.domains.values().all(|gtid| other.contains(*gtid))
    }

    /// Whether the transaction is at or before this position.
    #[must_use]
    pub fn contains(&self, gtid: MariaDbGtid) -> bool {
        self.domains.get(&gtid.domain).is_some_and(|newest| gtid.sequence <= newest.sequence)
    }

    /// Whether no domain has been seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The newest id of every domain, sorted by domain.
    pub fn iter(&self) -> impl Iterator<Item = MariaDbGtid> {
        self.domains.values().copied()
    }
}

impl fmt::Display for GtidPos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, gtid) in self.domains.values().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{gtid}")?;
        }
        Ok(())
    }
}

impl FromStr for GtidPos {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

fn parse_one(text: &str, at: usize) -> Result<MariaDbGtid, GtidError> {
    let mut parts = text.trim_ascii().split('-');
    let mut next = || {
        let digits = parts.next().filter(|part| !part.is_empty());
        let digits = digits.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        digits.ok_or_else(|| GtidErrorKind::NotATriple.at(at))
    };
    let (domain, server, sequence) = (next()?, next()?, next()?);
    if parts.next().is_some() {
        return Err(GtidErrorKind::NotATriple.at(at));
    }
    let too_large = |largest| GtidErrorKind::TooLarge { largest }.at(at);
    Ok(MariaDbGtid {
        domain: domain.parse().map_err(|_| too_large("2^32-1"))?,
        server: server.parse().map_err(|_| too_large("2^32-1"))?,
        sequence: sequence.parse().map_err(|_| too_large("2^64-1"))?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_way_to_write_a_position_prints_in_one_way() {
        let table = [
            ("", ""),
            (" , ", ""),
            ("1-5-7, 0-3-9", "0-3-9,1-5-7"),
            ("0-1-5,0-2-9", "0-2-9"),
            ("0-2-9,0-1-5", "0-2-9"),
            ("0-1-5,0-2-5", "0-2-5"),
            ("10-1-1,\n9-1-1", "9-1-1,10-1-1"),
            (
                "4294967295-4294967295-18446744073709551615",
                "4294967295-4294967295-18446744073709551615",
            ),
        ];
        for (text, canonical) in table {
            assert_eq!(GtidPos::parse(text).unwrap().to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_position_are_errors_that_say_where() {
        let largest = |largest| GtidErrorKind::TooLarge { largest };
        let table = [
            ("0-1", GtidErrorKind::NotATriple, 0),
            ("0-1-2,0-1-2-3", GtidErrorKind::NotATriple, 6),
            ("0--2", GtidErrorKind::NotATriple, 0),
            ("0-1-+2", GtidErrorKind::NotATriple, 0),
            ("a-1-2", GtidErrorKind::NotATriple, 0),
            ("4294967296-1-2", largest("2^32-1"), 0),
            ("0-4294967296-2", largest("2^32-1"), 0),
            ("0-1-18446744073709551616", largest("2^64-1"), 0),
        ];
        for (text, kind, at) in table {
            assert_eq!(GtidPos::parse(text), Err(kind.at(at)), "{text}");
        }
    }

    #[test]
    fn a_position_is_at_or_before_another_by_the_sequence_of_every_domain() {
        let table = [
            ("", "", true),
            ("", "0-1-1", true),
            ("0-1-1", "", false),
            ("0-2-892554529", "0-1-964871206", true),
            ("0-1-5", "0-1-5", true),
            ("0-1-6", "0-9-5", false),
            ("0-1-5,1-1-1", "0-1-5", false),
            ("0-9-4", "0-1-5,1-1-1", true),
        ];
        for (left, right, expected) in table {
            let (left, right) = (GtidPos::parse(left).unwrap(), GtidPos::parse(right).unwrap());
            assert_eq!(left.at_or_before(&right), expected, "{left} {right}");
        }
    }

    proptest! {
        #[test]
        fn a_position_is_the_maximum_per_domain(ids in prop::collection::vec((0..3_u32, 0..4_u32, 0..50_u64), 0..30)) {
            let mut position = GtidPos::new();
            for (domain, server, sequence) in &ids {
                position.advance(MariaDbGtid { domain: *domain, server: *server, sequence: *sequence });
            }
            for domain in 0..3 {
                let newest = ids.iter().filter(|id| id.0 == domain).map(|id| id.2).max();
                let found = position.iter().find(|gtid| gtid.domain == domain).map(|gtid| gtid.sequence);
                prop_assert_eq!(found, newest);
            }
            prop_assert_eq!(GtidPos::parse(&position.to_string()).unwrap(), position);
        }

        #[test]
        fn any_text_ends_in_a_value_or_an_error(text in "[-0-9, a]{0,60}|.{0,40}") {
            let _ = GtidPos::parse(&text);
        }
    }
}
