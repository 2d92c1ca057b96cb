//! The transactions done so far, as each unit names them.

use std::fmt;
use std::sync::Arc;

use super::{Gtids, TransactionGtid};
use crate::gtid::set::Interval;
use crate::gtid::{Gtid, MariaDbGtid};

/// The transactions done so far, cheap to clone while they grow.
///
/// Every unit of a log names the transactions before it, and most differ from those of the unit before by one more of the
/// same source. So there are two parts: a set that clones share, and the latest run of one source (MariaDB: the latest of
/// one domain) beside it. The run goes into the set when another source comes.
#[derive(Debug, Clone)]
pub struct Executed {
    shared: Arc<Gtids>,
    latest: Option<Latest>,
}

/// Transactions that are not in the shared set yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latest {
    /// `first` to the number `last`, of one source and tag.
    MySql {
        first: Gtid,
        last: u64,
    },
    MariaDb(MariaDbGtid),
}

impl Executed {
    /// Whether nothing is done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.latest.is_none() && self.shared.is_empty()
    }

    /// Whether a transaction is done.
    #[must_use]
    pub fn contains(&self, gtid: TransactionGtid) -> bool {
        let latest = match (self.latest, gtid) {
            (Some(Latest::MySql { first, last }), TransactionGtid::MySql(gtid)) => {
                (gtid.source, gtid.tag) == (first.source, first.tag)
                    && (first.number..=last).contains(&gtid.number)
            }
            (Some(Latest::MariaDb(latest)), TransactionGtid::MariaDb(gtid)) => {
                gtid.domain == latest.domain && gtid.sequence <= latest.sequence
            }
            (_, _) => false,
        };
        latest || self.shared.contains(gtid)
    }

    /// Adds one transaction. A GTID of the other family is left out: a log has one family, and a set of the other would be
    /// wrong either way; so is a number of zero or beyond the server's range, which names no transaction that could be
    /// asked for again.
    pub(super) fn add(&mut self, gtid: TransactionGtid) {
        let next = match (&*self.shared, gtid) {
            (Gtids::MySql(_), TransactionGtid::MySql(gtid)) => {
                if Interval::new(gtid.number, gtid.number).is_err() {
                    return;
                }
                if let Some(Latest::MySql { first, last }) = &mut self.latest
                    && (first.source, first.tag) == (gtid.source, gtid.tag)
                    && *last + 1 == gtid.number
                {
                    *last = gtid.number;
                    return;
                }
                Latest::MySql { first: gtid, last: gtid.number }
            }
            (Gtids::MariaDb(_), TransactionGtid::MariaDb(gtid)) => {
                if let Some(Latest::MariaDb(latest)) = &mut self.latest
                    && latest.domain == gtid.domain
                {
                    if latest.sequence <= gtid.sequence {
                        *latest = gtid;
                    }
                    return;
                }
                Latest::MariaDb(gtid)
            }
            (Gtids::MySql(_), TransactionGtid::MariaDb(_))
            | (Gtids::MariaDb(_), TransactionGtid::MySql(_)) => return,
        };
        if let Some(latest) = self.latest.replace(next) {
            latest.add_to(Arc::make_mut(&mut self.shared));
        }
    }

    /// All of them in one set.
    #[must_use]
    pub fn to_gtids(&self) -> Gtids {
        let mut gtids = (*self.shared).clone();
        if let Some(latest) = self.latest {
            latest.add_to(&mut gtids);
        }
        gtids
    }
}

impl Latest {
    fn add_to(self, gtids: &mut Gtids) {
        match (self, gtids) {
            (Self::MySql { first, last }, Gtids::MySql(set)) => {
                if let Ok(run) = Interval::new(first.number, last) {
                    set.add_run(first.source, first.tag, run);
                }
            }
            (Self::MariaDb(gtid), Gtids::MariaDb(position)) => position.advance(gtid),
            // The two are of one family.
            (Self::MySql { .. }, Gtids::MariaDb(_)) | (Self::MariaDb(_), Gtids::MySql(_)) => {}
        }
    }
}

impl From<Gtids> for Executed {
    fn from(gtids: Gtids) -> Self {
        Self { shared: Arc::new(gtids), latest: None }
    }
}

/// Equal are those that hold the same transactions.
impl PartialEq for Executed {
    fn eq(&self, other: &Self) -> bool {
        let same_parts = Arc::ptr_eq(&self.shared, &other.shared) && self.latest == other.latest;
        same_parts || self.to_gtids() == other.to_gtids()
    }
}

impl Eq for Executed {}

/// As [`Gtids`] are printed.
impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.latest {
            None => self.shared.fmt(f),
            Some(_) => self.to_gtids().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gtid::{GtidPos, GtidSet, Uuid};

    fn mysql(source: u8, number: u64) -> TransactionGtid {
        TransactionGtid::MySql(Gtid::new(Uuid::from_bytes([source; 16]), number))
    }

    fn mariadb(domain: u32, sequence: u64) -> TransactionGtid {
        TransactionGtid::MariaDb(MariaDbGtid { domain, server: 1, sequence })
    }

    #[test]
    fn clones_share_the_set_while_one_source_goes_on() {
        let start = GtidSet::parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10").unwrap();
        let mut executed = Executed::from(Gtids::MySql(start));
        let before = executed.clone();
        (1..=100).for_each(|number| executed.add(mysql(1, number)));
        assert!(Arc::ptr_eq(&before.shared, &executed.shared));
        assert!(executed != before && executed.contains(mysql(1, 100)));
        assert!(!executed.contains(mysql(1, 101)) && !before.contains(mysql(1, 1)));
        executed.add(mysql(2, 1));
        assert!(!Arc::ptr_eq(&before.shared, &executed.shared));
        assert!(executed.contains(mysql(1, 100)) && executed.contains(mysql(2, 1)));
    }

    #[test]
    fn what_names_no_transaction_is_left_out() {
        let mut executed = Executed::from(Gtids::MySql(GtidSet::new()));
        for gtid in [mysql(1, 0), mysql(1, u64::MAX), mariadb(0, 1)] {
            executed.add(gtid);
        }
        assert!(executed.is_empty() && executed.to_string().is_empty());
        let mut executed = Executed::from(Gtids::MariaDb(GtidPos::new()));
        executed.add(mysql(1, 1));
        assert!(executed.is_empty());
    }

    proptest! {
        /// It holds what one set alone would, in whatever order transactions come.
        #[test]
        fn it_is_the_set_of_all_transactions(
            gtids in prop::collection::vec((0_u8..3, 1_u64..12), 0..40),
            is_mysql: bool,
        ) {
            let (mut set, mut position) = (GtidSet::new(), GtidPos::new());
            let empty = if is_mysql { Gtids::MySql(GtidSet::new()) } else { Gtids::MariaDb(GtidPos::new()) };
            let mut executed = Executed::from(empty);
            for &(source, number) in &gtids {
                let gtid = if is_mysql { mysql(source, number) } else { mariadb(source.into(), number) };
                executed.add(gtid);
                match gtid {
                    TransactionGtid::MySql(gtid) => set.add(gtid).unwrap(),
                    TransactionGtid::MariaDb(gtid) => position.advance(gtid),
                }
            }
            let whole = if is_mysql { Gtids::MySql(set) } else { Gtids::MariaDb(position) };
            prop_assert_eq!(&executed.to_gtids(), &whole);
            prop_assert_eq!(executed.to_string(), whole.to_string());
            prop_assert_eq!(executed.is_empty(), whole.is_empty());
            for source in 0..3 {
                for number in 1..12 {
                    let gtid = if is_mysql { mysql(source, number) } else { mariadb(source.into(), number) };
                    prop_assert_eq!(executed.contains(gtid), whole.contains(gtid));
                }
            }
            prop_assert_eq!(&executed, &Executed::from(whole));
        }
    }
}
