//! What a statement did, one event for each schema-change record.

use std::collections::BTreeSet;

use crate::record::TableChange;
use crate::schema::TableId;

/// One schema-change record's worth of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DdlEvent {
    /// Which kind of statement, as the record's `source` block shows it.
    pub kind: DdlEventKind,
    /// The record's `databaseName`: the affected table's, else the session's; `""` for SET.
    pub database: String,
    /// The record's `ddl`.
    pub ddl: String,
    /// The record's `tableChanges`.
    pub changes: Vec<TableChange>,
    /// All tables that the statement touches, in the order in which Debezium prints them in `source.table`; the same in
    /// all events of a statement. Empty when it touches none.
    pub tables: Vec<TableId>,
}

/// The kind of statement that an event is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DdlEventKind {
    /// CREATE TABLE that created one.
    Create,
    /// ALTER TABLE, RENAME TABLE, and CREATE UNIQUE INDEX that made the key.
    Alter,
    /// DROP TABLE.
    Drop,
    /// TRUNCATE TABLE; the model does not change and no schema-change record is written.
    Truncate,
    /// CREATE DATABASE (of MySQL), DROP DATABASE and USE: `source.table` is null.
    Database,
    /// SET of system variables: `source.table` is null and the database empty.
    Set,
    /// Any other statement, or one without effect on the model: `source.table` is empty.
    Other,
}

/// The order in which Java's `HashSet<TableId>` gives names, which is that of `source.table` in Debezium's records: by
/// bucket of the hash of `database.table`.
pub(crate) fn in_hash_set_order(mut ids: Vec<TableId>) -> Vec<TableId> {
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    let mut buckets = 16_usize;
    while ids.len() > buckets / 4 * 3 {
        buckets *= 2;
    }
    let mask = u32::try_from(buckets - 1).unwrap_or(u32::MAX);
    let bucket = |id: &TableId| {
        let text = id.to_string();
        let hash = text
            .encode_utf16()
            .fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
        (hash ^ hash >> 16) & mask
    };
    ids.sort_by_cached_key(bucket);
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_the_order_of_debeziums_records() {
        // `source.table` of statements on several tables, as Debezium 3.6.3 printed it.
        let cases = [
            ("d3,pre2", "pre2,d3"),
            ("types1,ser1,nosuch", "nosuch,ser1,types1"),
            ("lk,lk2,lk", "lk,lk2"),
            ("t_or3,nosuch4", "t_or3,nosuch4"),
            ("tmp,s1,s2", "tmp,s2,s1"),
        ];
        for (named, printed) in cases {
            let ids = in_hash_set_order(
                named.split(',').map(|name| TableId::new("gold", name)).collect(),
            );
            let found: Vec<&str> = ids.iter().map(|id| id.table.as_str()).collect();
            assert_eq!(found.join(","), printed);
        }
    }
}
