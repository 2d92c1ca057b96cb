//! The identity of a record: which step of which log it came from.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use holdfast_history::TableId;

/// Names one record of one log. Equal over restarts and batch sizes, distinct for every record, those of compressed
/// transactions included.
///
/// A log written with and without transaction compression is two logs: inside each, identities are distinct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    /// The log: `<server uuid>/<epoch>`.
    pub lineage: Arc<str>,
    /// Database and table; empty names for records of no table.
    pub table: Arc<TableId>,
    /// Binlog file of the event. For a snapshot row, the file of the snapshot's position.
    pub file: Arc<str>,
    /// Position of the event in bytes; of the payload event for a compressed transaction, of the snapshot for its rows.
    pub pos: u64,
    /// Rows events of the unit up to and including this one, from 1. 0 for snapshot rows and for records that are no
    /// rows.
    pub ordinal: u64,
    /// Zero-based row in the event; for a snapshot row, its number in reading order.
    pub row: u64,
    /// Zero-based record of that row: DELETE 0, tombstone 1, CREATE 2 of a key change.
    pub part: u32,
}

/// The text form: `1|lineage|database|table|file|pos|ordinal|row|part`, where the leading number is the version of the
/// form and `%` and `|` inside names are written `%25` and `%7C`.
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1|")?;
        for name in [&*self.lineage, &self.table.database, &self.table.table, &self.file] {
            for c in name.chars() {
                match c {
                    '%' => f.write_str("%25")?,
                    '|' => f.write_str("%7C")?,
                    _ => f.write_char(c)?,
                }
            }
            f.write_char('|')?;
        }
        write!(f, "{}|{}|{}|{}", self.pos, self.ordinal, self.row, self.part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_keeps_names_apart() {
        let id = EventId {
            lineage: "3e11fa47/1".into(),
            table: Arc::new(TableId::new("a|b", "c%")),
            file: "mysql-bin.000001".into(),
            pos: 4323,
            ordinal: 5,
            row: 31,
            part: 0,
        };
        assert_eq!(id.to_string(), "1|3e11fa47/1|a%7Cb|c%25|mysql-bin.000001|4323|5|31|0");
    }
}
