//! Debezium's comparison of a history record's position with an offset, written down naively in the three forms that are
//! in use. Whether a record of ours is read there is asked of these.
//!
//! Source: `BinlogHistoryRecordComparator#isPositionAtOrBefore` of Debezium 3.6.3 and of its main branch, and RisingWave's
//! patched copy. The loaders of the first two drop `server_id` and `ts_sec` of a stored offset.

use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_history::offset::SourceOffset;
use holdfast_history::{HistoryRecord, Table, TableChange, TableId};

use crate::{Failure, Result};

/// A form of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Debezium 3.6.3.
    Stock,
    /// Debezium's main branch.
    Main,
    /// RisingWave's copy, which compares event times where the server ids differ.
    Patched,
}

impl Comparator {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Stock, Self::Main, Self::Patched];

    /// A stored offset as its loader gives it to the comparison.
    #[must_use]
    pub fn loads(self, mut stored: SourceOffset) -> SourceOffset {
        if self != Self::Patched {
            (stored.server_id, stored.ts_sec) = (None, None);
        }
        stored
    }

    /// Whether a record at `recorded` belongs to what the tables looked like at `desired`.
    ///
    /// # Errors
    ///
    /// Where Debezium throws: file names that it can't compare, GTIDs that can't be read.
    pub fn applies(self, recorded: &SourceOffset, desired: &SourceOffset) -> Result<bool> {
        let gtids = |offset: &SourceOffset| offset.gtids.clone().filter(|text| !text.is_empty());
        match (gtids(recorded), gtids(desired)) {
            (Some(recorded_set), Some(desired_set)) => {
                if is_subset(&recorded_set, &desired_set)?
                    && is_subset(&desired_set, &recorded_set)?
                {
                    return Ok(!(recorded.snapshot.is_none() && desired.snapshot.is_some())
                        && recorded.event <= desired.event);
                }
                return is_subset(&recorded_set, &desired_set);
            }
            (None, Some(_)) => return Ok(true),
            (Some(_), None) => return Ok(false),
            (None, None) => {}
        }
        let time = |offset: &SourceOffset| offset.ts_sec.unwrap_or(0);
        let ids = (recorded.server_id, desired.server_id);
        let differ = ids.0.unwrap_or(0) != ids.1.unwrap_or(0);
        match self {
            // It looks for `ts_ms`, which is in neither document.
            Self::Stock if differ => return Ok(true),
            Self::Main if differ && ids.0.is_some() && ids.1.is_some() => {
                return Ok(time(recorded) <= time(desired));
            }
            Self::Patched if differ => return Ok(time(recorded) <= time(desired)),
            Self::Stock | Self::Main | Self::Patched => {}
        }
        let (base, number) = split(&recorded.file)?;
        let (desired_base, desired_number) = split(&desired.file)?;
        if base != desired_base {
            return if self == Self::Main {
                Ok(true)
            } else {
                Err(Failure::new("Cannot compare binlog filenames with different base names"))
            };
        }
        // An absent row is -1.
        let row = |offset: &SourceOffset| i128::from(offset.row) - i128::from(offset.row == 0);
        let place =
            |number: u64, offset: &SourceOffset| (number, offset.pos, offset.event, row(offset));
        Ok(place(number, recorded) <= place(desired_number, desired))
    }

    /// The table that a replay leaves, from the definitions in the records.
    ///
    /// # Errors
    ///
    /// As [`Self::applies`].
    pub fn replay(
        self,
        records: &[HistoryRecord],
        id: &TableId,
        desired: &SourceOffset,
    ) -> Result<Option<Table>> {
        let mut table = None;
        for record in records {
            if !self.applies(&record.position, desired)? {
                continue;
            }
            for change in &record.table_changes {
                match change {
                    TableChange::Create(created) if created.id == *id => {
                        table = Some((**created).clone());
                    }
                    TableChange::Alter { table: altered, .. } if altered.id == *id => {
                        table = Some((**altered).clone());
                    }
                    TableChange::Drop(dropped) if dropped == id => table = None,
                    TableChange::Create(_) | TableChange::Alter { .. } | TableChange::Drop(_) => {}
                }
            }
        }
        Ok(table)
    }
}

/// MySQL's sets, or MariaDB's positions, in which a domain's highest number stands for all.
fn is_subset(a: &str, b: &str) -> Result<bool> {
    match (GtidSet::parse(a), GtidSet::parse(b)) {
        (Ok(a), Ok(b)) => Ok(a.is_subset_of(&b)),
        (_, _) => match (GtidPos::parse(a), GtidPos::parse(b)) {
            (Ok(a), Ok(b)) => Ok(a.at_or_before(&b)),
            (_, _) => Err(Failure::new(format!("GTIDs of two kinds: {a:?} and {b:?}"))),
        },
    }
}

fn split(file: &str) -> Result<(&str, u64)> {
    file.rsplit_once('.')
        .and_then(|(base, number)| Some((base, number.parse().ok()?)))
        .ok_or_else(|| Failure::new(format!("no binlog file: {file:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_answer_as_the_classes_do() {
        const U: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let offset = |place: &str| {
            let (file, pos) = place.split_once(':').unwrap();
            let (pos, more) = pos.split_once(' ').unwrap_or((pos, ""));
            let more = more.replace("U:", &format!("{U}:"));
            SourceOffset::from_json(&format!(r#"{{"file":"{file}","pos":{pos}{more}}}"#)).unwrap()
        };
        const AT_150: &str = r#"b.000003:150 ,"server_id":7,"ts_sec":1500"#;
        // Recorded, desired, and what 3.6.3, main and the patched copy were seen to say.
        for (recorded, desired, expected) in [
            (r#"b.000003:100 ,"server_id":7,"ts_sec":10"#, "b.000003:150", [true, true, false]),
            (r#"b.000003:200 ,"server_id":7,"ts_sec":20"#, "b.000003:150", [true, false, false]),
            (r#"b.000003:200 ,"server_id":7,"ts_sec":20"#, AT_150, [false; 3]),
            (r#"b.000003:100 ,"snapshot":"INITIAL""#, "b.000003:150", [true; 3]),
            (
                r#"b.000003:100 ,"server_id":0,"ts_sec":2000,"snapshot":"INITIAL""#,
                AT_150,
                [true, false, false],
            ),
            (
                r#"b.000003:900 ,"server_id":0,"ts_sec":1000,"snapshot":"INITIAL""#,
                AT_150,
                [true; 3],
            ),
            ("b.000002:9000 ,\"server_id\":7", "b.000003:4", [true; 3]),
            ("b.999999:100", "b.1000000:4", [true; 3]),
            (r#"b.000003:100 ,"server_id":8,"ts_sec":3000"#, AT_150, [true, false, false]),
            (
                r#"b.000003:2202 ,"event":2,"row":2,"snapshot":"INITIAL""#,
                "b.000003:2202",
                [false; 3],
            ),
            (r#"a.000002:1 ,"gtids":"U:1-9""#, r#"b.000002:1 ,"gtids":"U:1-11""#, [true; 3]),
            (r#"a.000002:1 ,"gtids":"U:1-12""#, r#"b.000002:9 ,"gtids":"U:1-11""#, [false; 3]),
            (r#"a.000002:9 ,"gtids":"U:1-11""#, r#"a.000002:5 ,"gtids":"U:1-11""#, [true; 3]),
            ("a.000001:1", r#"a.000002:9 ,"gtids":"U:1-11""#, [true; 3]),
            (r#"a.000001:1 ,"gtids":"U:1-11""#, "a.000002:9", [false; 3]),
        ] {
            for (form, expected) in Comparator::ALL.into_iter().zip(expected) {
                let got = form.applies(&offset(recorded), &offset(desired)).unwrap();
                assert_eq!(got, expected, "{recorded} {desired} {form:?}");
            }
        }
        let (old, new) = (offset("binlog.000900:100"), offset("mysql-bin.000001:100"));
        assert!(Comparator::Main.applies(&old, &new).unwrap());
        Comparator::Stock.applies(&old, &new).unwrap_err();
    }
}
