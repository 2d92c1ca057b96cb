//! Definitions that are ahead of the offset.
//!
//! A refresh reads definitions from the live server and records them at an older place of the log. The statements between
//! that place and the one at which the definitions were read come in the stream once more. Up to there, and only there,
//! such a table has the definition that was read: what a statement asks for is in effect already, and no row of an older
//! definition comes in between, which the refresh has made sure of. So a statement on the way is reported, and the
//! definition stays, whatever detour the statements take: columns that come and go, tables that change places.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ddl::{DdlError, DdlEvent, DdlEventKind};
use crate::offset::{LogPlace, SourceOffset};
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{Table, TableId, Tables};

/// The tables whose definitions are ahead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ahead {
    tables: BTreeMap<TableId, ReadAhead>,
}

/// A definition, and where in the log it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadAhead {
    table: Arc<Table>,
    read_at: LogPlace,
}

impl Ahead {
    /// Takes note of a history record that was applied, after which the tables are `tables`.
    pub(crate) fn note(&mut self, record: &HistoryRecord, tables: &Tables) {
        if record.position.snapshot.is_none() {
            return;
        }
        let head = record.position.holdfast.as_ref().and_then(|ours| ours.refresh_head.as_deref());
        let read_at = head.and_then(LogPlace::parse);
        for change in &record.table_changes {
            if let (TableChange::Create(table), Some(read_at)) = (change, &read_at) {
                let read_ahead = ReadAhead { table: Arc::clone(table), read_at: read_at.clone() };
                self.tables.insert(table.id.clone(), read_ahead);
            } else {
                self.tables.remove(change.id());
            }
        }
        self.tables.retain(|id, _| tables.get(id).is_some());
    }

    /// Puts back the definitions of tables that are ahead of `offset`: a statement on the way may have been recorded
    /// with a part of its effect.
    pub(crate) fn restore(&mut self, offset: &SourceOffset, tables: &mut Tables) {
        self.tables.retain(|_, ahead| ahead.read_at.is_at_or_after(offset));
        for ahead in self.tables.values() {
            tables.put(Arc::clone(&ahead.table));
        }
    }

    /// The tables, and where they were read.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Arc<Table>, &LogPlace)> + '_ {
        self.tables.values().map(|ahead| (&ahead.table, &ahead.read_at))
    }

    /// Takes a table that was read at a place.
    pub(crate) fn insert(&mut self, table: Arc<Table>, read_at: LogPlace) {
        self.tables.insert(table.id.clone(), ReadAhead { table, read_at });
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether the definition of a table is ahead at a place of the log, and which it is.
    #[must_use]
    pub fn get(&self, id: &TableId, place: &LogPlace) -> Option<&Arc<Table>> {
        self.tables
            .get(id)
            .filter(|ahead| ahead.read_at.reaches(&place.file, place.pos))
            .map(|ahead| &ahead.table)
    }

    /// Whether a statement that ends at `place` may be in effect already, whatever table it is about: one that stands in
    /// for a while, as online schema changes make them, is made like one that is ahead.
    #[must_use]
    pub fn covers(&self, place: &LogPlace) -> bool {
        self.tables.values().any(|ahead| ahead.read_at.reaches(&place.file, place.pos))
    }

    /// The furthest place behind `place` at which a definition was read; `None` where nothing is ahead there.
    #[must_use]
    pub fn read_behind(&self, place: &LogPlace) -> Option<&LogPlace> {
        let next = place.pos.saturating_add(1);
        let ahead = self.tables.values().map(|ahead| &ahead.read_at);
        ahead.filter(|read_at| read_at.reaches(&place.file, next)).reduce(|furthest, read_at| {
            if read_at.reaches(&furthest.file, furthest.pos) { read_at } else { furthest }
        })
    }

    /// After a statement that ends at `place` was applied to `tables` and gave `events`: the tables that are ahead keep
    /// their definitions, and the events say so.
    pub fn keep(&self, place: &LogPlace, tables: &mut Tables, events: &mut [DdlEvent]) {
        for (id, ahead) in &self.tables {
            if !ahead.read_at.reaches(&place.file, place.pos) {
                continue;
            }
            // Where the statement leaves the table, as those see it who read the events.
            let mut is_there = true;
            for change in events.iter_mut().flat_map(|event| &mut event.changes) {
                match change {
                    TableChange::Create(table) | TableChange::Alter { table, .. }
                        if table.id == *id =>
                    {
                        *table = Arc::clone(&ahead.table);
                        is_there = true;
                    }
                    TableChange::Alter { previous: Some(previous), .. } if previous == id => {
                        is_there = false;
                    }
                    // It is made again further on.
                    TableChange::Drop(dropped) if dropped == id => is_there = true,
                    TableChange::Create(_) | TableChange::Alter { .. } | TableChange::Drop(_) => {}
                }
            }
            if !is_there && let Some(last) = events.last_mut() {
                last.changes.push(TableChange::Create(Arc::clone(&ahead.table)));
            }
            if tables.get(id) != Some(&ahead.table) {
                tables.put(Arc::clone(&ahead.table));
            }
        }
    }

    /// The events of a statement that ends at `place` and does not fit the definition of a table that is ahead.
    #[must_use]
    pub fn despite(&self, place: &LogPlace, error: &DdlError, ddl: &str) -> Option<Vec<DdlEvent>> {
        let id = error.table.as_ref()?;
        let table = self.get(id, place)?;
        Some(vec![DdlEvent {
            kind: DdlEventKind::Alter,
            database: id.database.clone(),
            ddl: ddl.to_owned(),
            changes: vec![TableChange::Alter { table: Arc::clone(table), previous: None }],
            tables: vec![id.clone()],
        }])
    }
}

#[cfg(test)]
mod tests {
    use crate::ddl::DdlContext;

    use super::*;
    use crate::ddl::apply_statement;
    use crate::offset::{HoldfastMembers, SnapshotKind};

    fn refreshed(sql: &str) -> (Ahead, Tables) {
        let mut tables = Tables::new(false);
        let context = DdlContext::in_database("d");
        let events = apply_statement(sql, &context, &mut tables).unwrap();
        let holdfast = HoldfastMembers {
            refresh_head: Some("b.000001:300".to_owned()),
            ..HoldfastMembers::default()
        };
        let position = SourceOffset {
            file: "b.000001".to_owned(),
            pos: 100,
            snapshot: Some(SnapshotKind::Initial),
            holdfast: Some(holdfast),
            ..SourceOffset::default()
        };
        let record = HistoryRecord {
            source: "s".to_owned(),
            position,
            ts_ms: 0,
            database_name: "d".to_owned(),
            ddl: Some(sql.to_owned()),
            table_changes: events.into_iter().flat_map(|event| event.changes).collect(),
        };
        let mut ahead = Ahead::default();
        ahead.note(&record, &tables);
        (ahead, tables)
    }

    fn place(pos: u64) -> LogPlace {
        LogPlace { file: "b.000001".to_owned(), pos }
    }

    /// Applies statements as a stream does, and replays their events as a history does.
    fn meet(ahead: &Ahead, tables: &mut Tables, statements: &[&str]) -> Tables {
        let mut replayed = tables.clone();
        for sql in statements {
            let context =
                DdlContext { definitions_are_ahead: true, ..DdlContext::in_database("d") };
            let mut events = match apply_statement(sql, &context, tables) {
                Ok(events) => events,
                Err(error) => ahead.despite(&place(200), &error, sql).unwrap(),
            };
            ahead.keep(&place(200), tables, &mut events);
            for change in events.iter().flat_map(|event| &event.changes) {
                match change {
                    TableChange::Create(table) => {
                        replayed.put(Arc::clone(table));
                    }
                    TableChange::Alter { table, previous } => {
                        if let Some(previous) = previous {
                            replayed.remove(previous);
                        }
                        replayed.put(Arc::clone(table));
                    }
                    TableChange::Drop(id) => {
                        replayed.remove(id);
                    }
                }
            }
        }
        replayed
    }

    #[test]
    fn statements_on_the_way_leave_the_definition_that_was_read() {
        let id = TableId::new("d", "t");
        let ways: &[(&str, &[&str])] = &[
            ("CREATE TABLE t (a INT, b INT)", &["ALTER TABLE t ADD b INT"]),
            ("CREATE TABLE t (a INT)", &["ALTER TABLE t ADD b INT", "ALTER TABLE t DROP b"]),
            (
                "CREATE TABLE t (b INT, a INT)",
                &["ALTER TABLE t ADD b INT", "ALTER TABLE t MODIFY b INT FIRST"],
            ),
            (
                "CREATE TABLE t (c INT, a INT)",
                &["ALTER TABLE t RENAME COLUMN a TO c", "ALTER TABLE t ADD a INT"],
            ),
            (
                "CREATE TABLE t (a BIGINT)",
                &["ALTER TABLE t MODIFY a INT", "ALTER TABLE t MODIFY a BIGINT"],
            ),
            // As online schema changes do it.
            (
                "CREATE TABLE t (a INT, b INT)",
                &[
                    "CREATE TABLE _t_new (a INT)",
                    "ALTER TABLE _t_new ADD b INT",
                    "RENAME TABLE t TO _t_old, _t_new TO t",
                    "DROP TABLE _t_old",
                ],
            ),
            ("CREATE TABLE t (a INT)", &["DROP TABLE t", "CREATE TABLE t (a INT)"]),
            ("CREATE TABLE t (a INT)", &["DROP TABLE t", "CREATE TABLE IF NOT EXISTS t (a INT)"]),
            ("CREATE TABLE t (a INT)", &["RENAME TABLE old TO t"]),
            (
                "CREATE TABLE t (a INT)",
                &["ALTER TABLE t ADD PRIMARY KEY (a)", "ALTER TABLE t DROP PRIMARY KEY"],
            ),
            (
                "CREATE TABLE t (a VARCHAR(5) CHARACTER SET utf8mb4) CHARSET utf8mb4",
                &[
                    "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
                    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
                ],
            ),
        ];
        for (definition, statements) in ways {
            let (ahead, mut tables) = refreshed(definition);
            let read = Arc::clone(tables.get(&id).unwrap());
            let replayed = meet(&ahead, &mut tables, statements);
            assert_eq!(tables.get(&id), Some(&read), "{statements:?}");
            assert_eq!(replayed.get(&id), Some(&read), "{statements:?}");
        }
    }

    #[test]
    fn beyond_the_place_of_reading_a_statement_counts() {
        let (ahead, mut tables) = refreshed("CREATE TABLE t (a INT)");
        assert!(ahead.covers(&place(300)) && !ahead.covers(&place(301)));
        assert_eq!(ahead.read_behind(&place(299)), Some(&place(300)));
        assert_eq!(ahead.read_behind(&place(300)), None, "there everything has come");
        let context = DdlContext::in_database("d");
        let mut events = apply_statement("ALTER TABLE t ADD b INT", &context, &mut tables).unwrap();
        ahead.keep(&place(301), &mut tables, &mut events);
        assert_eq!(tables.get(&TableId::new("d", "t")).unwrap().columns.len(), 2);
    }
}
