//! Applying records to tables.

use std::collections::HashSet;

use super::deferred::Deferred;
use super::{RecoverOptions, RecoveryReport};
use crate::ahead::Ahead;
use crate::codec::{RawChange, RecordError};
use crate::ddl::{DdlContext, apply_statement};
use crate::error::Error;
use crate::offset::{LogPlace, SourceOffset};
use crate::record::{HistoryRecord, TableChange};
use crate::schema::{TableId, Tables};

/// A replay under way.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    pub(super) options: RecoverOptions<'a>,
    /// As the records say, but for what is in `deferred`.
    pub(super) tables: Tables,
    /// The definitions that are not read yet, and whose origins are not in the report yet.
    deferred: Deferred,
    pub(super) report: RecoveryReport,
    /// Statements applied by their text: a second record of one is a retry after a lost answer.
    pub(super) statements: HashSet<(String, u64, String, String)>,
    /// Definitions of which statements on the way may be in effect already.
    pub(super) ahead: Ahead,
}

impl<'a> Replay<'a> {
    pub(super) fn new(options: RecoverOptions<'a>) -> Self {
        Self {
            tables: Tables::new(options.lower_case_names),
            options,
            deferred: Deferred::default(),
            report: RecoveryReport::default(),
            statements: HashSet::new(),
            ahead: Ahead::default(),
        }
    }

    /// Whether the definitions of a record at `position` need not be read before the next statement.
    pub(super) fn may_defer(&self, position: &SourceOffset) -> bool {
        let refreshed =
            || position.holdfast.as_ref().is_some_and(|ours| ours.refresh_head.is_some());
        !self.options.prefer_ddl
            && (position.snapshot.is_none() || (self.ahead.is_empty() && !refreshed()))
    }

    /// Applies the changes of record `number`, on `line` of its file, without reading their definitions.
    pub(super) fn defer(
        &mut self,
        number: usize,
        line: u64,
        changes: &[RawChange<'_>],
    ) -> Result<(), RecordError> {
        for (index, change) in changes.iter().enumerate() {
            let under = |error: RecordError| error.under(&format!("tableChanges[{index}]"));
            let name = self.deferred.name(change, &self.tables).map_err(under)?;
            if let Some(previous) = change.previous().map_err(under)? {
                self.forget(&previous);
            }
            let Some(definition) = change.definition().map_err(under)? else {
                self.forget(&name.0);
                continue;
            };
            if let Some((id, record)) = self.deferred.put(name, number, definition, (line, index)) {
                self.report.origins.insert(TableId::clone(&id), record);
            }
        }
        self.report.applied += 1;
        Ok(())
    }

    fn forget(&mut self, id: &TableId) {
        if let Some(definition) = self.deferred.remove(id, &self.tables) {
            self.report.origins.insert(TableId::clone(&definition.id), definition.record);
        }
        self.tables.remove(id);
        self.report.origins.remove(id);
    }

    /// Reads the definitions that were left. An error comes with the line of its definition.
    pub(super) fn settle(&mut self) -> Result<(), (u64, RecordError)> {
        if self.deferred.is_empty() {
            return Ok(());
        }
        for definition in self.deferred.take() {
            self.report.origins.insert(TableId::clone(&definition.id), definition.record);
            self.tables.put(definition.read()?);
        }
        Ok(())
    }

    /// Applies record `number`. Nothing may be deferred.
    pub(super) fn apply(&mut self, number: usize, record: &HistoryRecord) -> Result<(), Error> {
        debug_assert!(self.deferred.is_empty(), "definitions are deferred");
        if !self.options.prefer_ddl && !record.table_changes.is_empty() {
            for change in &record.table_changes {
                self.apply_image(change);
                self.note_origin(number, change);
            }
            self.report.applied += 1;
        } else if let Some(ddl) = &record.ddl {
            self.apply_statement(number, record, ddl)?;
        } else {
            self.report.without_effect += 1;
        }
        Ok(())
    }

    fn apply_image(&mut self, change: &TableChange) {
        match change {
            TableChange::Create(table) => {
                self.tables.put(table.clone());
            }
            TableChange::Alter { table, previous } => {
                if let Some(previous) = previous {
                    self.tables.remove(previous);
                }
                self.tables.put(table.clone());
            }
            TableChange::Drop(id) => {
                self.tables.remove(id);
            }
        }
    }

    fn apply_statement(
        &mut self,
        number: usize,
        record: &HistoryRecord,
        ddl: &str,
    ) -> Result<(), Error> {
        if self.options.ddl_filter.is_some_and(|filter| filter(ddl)) {
            self.report.without_effect += 1;
            return Ok(());
        }
        if record.position.snapshot.is_none() {
            let place = (record.position.file.clone(), record.position.pos);
            if !self.statements.insert((
                place.0,
                place.1,
                record.database_name.clone(),
                ddl.to_owned(),
            )) {
                self.report.duplicates += 1;
                return Ok(());
            }
        }
        let place = LogPlace { file: record.position.file.clone(), pos: record.position.pos };
        let context = DdlContext {
            database: Some(record.database_name.clone()).filter(|name| !name.is_empty()),
            ..self.options.ddl.clone()
        };
        let context = DdlContext { definitions_are_ahead: self.ahead.covers(&place), ..context };
        let applied = apply_statement(ddl, &context, &mut self.tables)
            .or_else(|error| self.ahead.despite(&place, &error, ddl).ok_or(error));
        match applied {
            Ok(mut events) => {
                self.ahead.keep(&place, &mut self.tables, &mut events);
                for change in events.iter().flat_map(|event| &event.changes) {
                    self.note_origin(number, change);
                }
                self.report.applied += 1;
                Ok(())
            }
            Err(error) if self.options.skip_unparseable => {
                self.report.unparseable += 1;
                tracing::warn!(
                    record = number,
                    binlog_file = %record.position.file,
                    binlog_position = record.position.pos,
                    error = %error,
                    "a statement of the schema history cannot be applied and is left out"
                );
                Ok(())
            }
            Err(source) => Err(Error::Statement {
                record: number,
                file: record.position.file.clone(),
                position: record.position.pos,
                source: Box::new(source),
            }),
        }
    }

    fn note_origin(&mut self, number: usize, change: &TableChange) {
        match change {
            TableChange::Create(table) => {
                self.report.origins.insert(table.id.clone(), number);
            }
            TableChange::Alter { table, previous } => {
                if let Some(previous) = previous {
                    self.report.origins.remove(previous);
                }
                self.report.origins.insert(table.id.clone(), number);
            }
            TableChange::Drop(id) => {
                self.report.origins.remove(id);
            }
        }
    }
}
