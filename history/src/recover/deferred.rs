//! Definitions that are not read yet: a later record may replace them, and most of a long history is replaced.

use std::collections::HashMap;
use std::sync::Arc;

use crate::codec::{RawChange, RecordError, read_definition};
use crate::schema::{Table, TableId, Tables};

/// The newest definitions of tables, which have only been checked to be JSON.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// The tables' names by their JSON in the records: each is read once. With it the number that `definitions` has it by.
    names: HashMap<String, (Arc<TableId>, usize)>,
    /// The numbers of the tables, by their keys in `Tables`.
    numbers: HashMap<TableId, usize>,
    definitions: HashMap<usize, Definition>,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Definition {
    /// The name in the record.
    pub(super) id: Arc<TableId>,
    /// The number of the record.
    pub(super) record: usize,
    table: String,
    comment: Option<String>,
    /// The line that it is on, and its number in the record, from 0.
    place: (u64, usize),
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// The name of the changed table, and its number.
    pub(super) fn name(
        &mut self,
        change: &RawChange<'_>,
        tables: &Tables,
    ) -> Result<(Arc<TableId>, usize), RecordError> {
        if let Some(known) = self.names.get(change.id_text()) {
            return Ok(known.clone());
        }
        let id = change.id()?;
        let next = self.numbers.len();
        let number = *self.numbers.entry(tables.key(&id)).or_insert(next);
        let name = (Arc::new(id), number);
        self.names.insert(change.id_text().to_owned(), name.clone());
        Ok(name)
    }

    /// Keeps a definition of the table of that number. Returns the name and the record of the one that it replaces, if that
    /// one writes the name in another way.
    pub(super) fn put(
        &mut self,
        (id, number): (Arc<TableId>, usize),
        record: usize,
        (table, comment): (&str, Option<&str>),
        place: (u64, usize),
    ) -> Option<(Arc<TableId>, usize)> {
        let kept = self.definitions.entry(number).or_insert_with(|| Definition {
            id: Arc::clone(&id),
            record,
            table: String::new(),
            comment: None,
            place,
        });
        let before = (kept.id != id).then(|| (Arc::clone(&kept.id), kept.record));
        kept.id = id;
        kept.record = record;
        kept.table.clear();
        kept.table.push_str(table);
        kept.comment = comment.map(str::to_owned);
        kept.place = place;
        before
    }

    /// Removes the definition of a table.
    pub(super) fn remove(&mut self, id: &TableId, tables: &Tables) -> Option<Definition> {
        self.definitions.remove(self.numbers.get(&tables.key(id))?)
    }

    /// All definitions in the order of their lines; none are left.
    pub(super) fn take(&mut self) -> Vec<Definition> {
        let mut all: Vec<Definition> =
            std::mem::take(&mut self.definitions).into_values().collect();
        all.sort_by_key(|definition| definition.place);
        all
    }
}

impl Definition {
    /// Reads it. An error comes with the number of its line.
    pub(super) fn read(self) -> Result<Table, (u64, RecordError)> {
        let (line, index) = self.place;
        read_definition(TableId::clone(&self.id), &self.table, self.comment)
            .map_err(|error| (line, error.under(&format!("tableChanges[{index}]"))))
    }
}
