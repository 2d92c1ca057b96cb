//! Statements applied to the model.
//!
//! Everything is computed before anything is changed, so that an error leaves the model as it was.

mod alter;
mod column;
mod create;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::ast::{
    Action, Assignment, Charset, DatabaseOptions, DropTables, Name, RenamePair, Statement,
};
use super::event::in_hash_set_order;
use super::{DdlContext, DdlError, DdlErrorKind, DdlEvent, DdlEventKind, Flavor};
use crate::record::TableChange;
use crate::schema::{Table, TableId, Tables};

/// Most columns of a table (MySQL and MariaDB, "Limits on Table Column Count"), and the hidden ones.
const MAX_COLUMNS: usize = 4096 + 2;

/// Applies a parsed statement and tells what it did: one event for each schema-change record that Debezium would write,
/// none for a statement that is ignored.
///
/// With [`DdlContext::definitions_are_ahead`] the model is that of a later time, and the statement may be part of it:
///
/// - ADD COLUMN of a column that is there, and DROP, RENAME and ALTER COLUMN of one that is not, change nothing; MODIFY,
///   and CHANGE of what is already renamed, are applied to what is there;
/// - CREATE TABLE of a table that is there changes nothing and reports it; RENAME TABLE of an unknown table to one that is there
///   changes nothing and reports that one;
/// - a key is set as far as its columns are there; character sets are set;
/// - AFTER an unknown column puts the column at the end.
///
/// # Errors
///
/// [`DdlErrorKind::NoDatabase`]; [`DdlErrorKind::UnknownColumn`] and [`DdlErrorKind::DuplicateColumn`] when the
/// statement does not fit the model; [`DdlErrorKind::UnknownTable`] when a table is to be like one that is not known;
/// [`DdlErrorKind::NoColumns`] for a table without columns, [`DdlErrorKind::TooMany`] for one with too many. `tables` is then as it was.
pub fn apply(
    statement: &Statement,
    context: &DdlContext,
    tables: &mut Tables,
) -> Result<Vec<DdlEvent>, DdlError> {
    let mut scope = Scope { statement, context, tables };
    match &statement.action {
        Action::Ignored => Ok(Vec::new()),
        Action::NoEffect => Ok(scope.without_effect()),
        Action::CreateTable(create) => scope.create_table(create),
        Action::CreateLike { name, source, if_not_exists, or_replace } => {
            scope.create_like(name, source, *if_not_exists, *or_replace)
        }
        Action::AlterTable(alter) => scope.alter_table(alter),
        Action::DropTables(drop) => scope.drop_tables(drop),
        Action::RenameTables(pairs) => scope.rename_tables(pairs),
        Action::Truncate(name) => {
            let id = scope.resolve(name)?;
            Ok(vec![scope.event(DdlEventKind::Truncate, id, Vec::new())])
        }
        Action::CreateUniqueIndex { table, columns } => {
            scope.create_unique_index(table, columns.as_deref())
        }
        Action::CreateDatabase { name, options, or_replace, if_not_exists } => {
            if *or_replace {
                scope.tables.remove_database(name);
            }
            if !(*if_not_exists && scope.tables.database(name).is_some()) {
                let charset = scope.database_charset(options).or_else(|| scope.server_charset());
                scope.tables.set_database_charset(name, charset);
            }
            let mut events = scope.database_event(name);
            // As Debezium's parsers report it.
            if context.flavor == Flavor::MariaDb {
                events.iter_mut().for_each(|event| event.kind = DdlEventKind::Other);
            }
            Ok(events)
        }
        Action::AlterDatabase { name, options } => {
            if let Some(charset) = scope.database_charset(options)
                && let Some(name) = name.as_deref().or(context.database.as_deref())
            {
                scope.tables.set_database_charset(name, Some(charset));
            }
            Ok(scope.without_effect())
        }
        Action::DropDatabase { name } => {
            scope.tables.remove_database(name);
            Ok(scope.database_event(name))
        }
        Action::Use { name } => Ok(scope.database_event(name)),
        Action::Set(assignments) => Ok(scope.set(assignments)),
        Action::CreateSequence(name) => {
            let id = scope.resolve(name)?;
            scope.tables.put_sequence(&id);
            Ok(scope.without_effect())
        }
        Action::DropSequences(names) => {
            let ids =
                names.iter().map(|name| scope.resolve(name)).collect::<Result<Vec<_>, _>>()?;
            for id in &ids {
                scope.tables.remove_sequence(id);
            }
            Ok(scope.without_effect())
        }
    }
}

/// A statement, its context and the model.
struct Scope<'a> {
    statement: &'a Statement,
    context: &'a DdlContext,
    tables: &'a mut Tables,
}

impl Scope<'_> {
    fn drop_tables(&mut self, drop: &DropTables) -> Result<Vec<DdlEvent>, DdlError> {
        let ids =
            drop.names.iter().map(|name| self.resolve(name)).collect::<Result<Vec<_>, _>>()?;
        let all = in_hash_set_order(ids.clone());
        let if_exists = if drop.if_exists { "IF EXISTS " } else { "" };
        let behaviour = drop.behaviour.as_ref().map(|word| format!(" {word}")).unwrap_or_default();
        let events = ids.into_iter().map(|id| {
            self.tables.remove(&id);
            self.tables.remove_sequence(&id);
            DdlEvent {
                kind: DdlEventKind::Drop,
                database: id.database.clone(),
                ddl: format!("DROP TABLE {if_exists}{}{behaviour}", id.backticked()),
                changes: vec![TableChange::Drop(id)],
                tables: all.clone(),
            }
        });
        Ok(events.collect())
    }

    fn rename_tables(&mut self, pairs: &[RenamePair]) -> Result<Vec<DdlEvent>, DdlError> {
        let resolved = pairs
            .iter()
            .map(|pair| Ok((self.resolve(&pair.from)?, self.resolve(&pair.to)?, &pair.ddl)))
            .collect::<Result<Vec<_>, DdlError>>()?;
        let all = in_hash_set_order(resolved.iter().map(|(_, to, _)| to.clone()).collect());
        let renamed: Vec<bool> = resolved
            .iter()
            .map(|(from, to, _)| self.tables.rename(from, to.clone()).is_some())
            .collect();
        // The changes are those of the whole statement: a table that moved on under a later pair is not reported.
        let events = resolved.into_iter().zip(renamed).map(|((from, to, ddl), renamed)| {
            let table =
                self.tables.get(&to).filter(|_| renamed || self.context.definitions_are_ahead);
            let changes = table
                .map(|table| TableChange::Alter { table: Arc::clone(table), previous: Some(from) });
            DdlEvent {
                kind: DdlEventKind::Alter,
                database: to.database,
                ddl: ddl.clone(),
                changes: changes.into_iter().collect(),
                tables: all.clone(),
            }
        });
        Ok(events.collect())
    }

    fn create_unique_index(
        &mut self,
        name: &Name,
        columns: Option<&[String]>,
    ) -> Result<Vec<DdlEvent>, DdlError> {
        let id = self.resolve(name)?;
        let Some(table) = self.tables.get(&id).filter(|table| table.primary_key.is_empty()) else {
            return Ok(self.without_effect());
        };
        let mut table = Table::clone(table);
        if let Some(key) = columns.and_then(|columns| unique_key(&table, columns)) {
            table.primary_key = key;
        }
        let table = Arc::new(table);
        self.tables.put(Arc::clone(&table));
        let id = table.id.clone();
        Ok(vec![self.event(
            DdlEventKind::Alter,
            id,
            vec![TableChange::Alter { table, previous: None }],
        )])
    }

    fn set(&mut self, assignments: &[Assignment]) -> Vec<DdlEvent> {
        for assignment in assignments {
            match assignment {
                Assignment::ServerCharset(charset) => {
                    self.tables.set_server_charset(charset.clone())
                }
                Assignment::DatabaseCharset(charset) => {
                    if let (Some(database), Some(_)) = (&self.context.database, charset) {
                        self.tables.set_database_charset(database, charset.clone());
                    }
                }
                Assignment::LowerCaseNames(lower) => self.tables.set_lower_case_names(*lower),
            }
        }
        vec![DdlEvent {
            kind: DdlEventKind::Set,
            database: String::new(),
            ddl: self.statement.ddl.clone(),
            changes: Vec::new(),
            tables: Vec::new(),
        }]
    }

    /// The table that is meant.
    fn resolve(&self, name: &Name) -> Result<TableId, DdlError> {
        match name.database.as_ref().or(self.context.database.as_ref()) {
            Some(database) => Ok(TableId::new(database.clone(), name.table.clone())),
            None => Err(DdlError::at(
                name.offset,
                DdlErrorKind::NoDatabase { table: name.table.clone() },
            )),
        }
    }

    fn event(&self, kind: DdlEventKind, id: TableId, changes: Vec<TableChange>) -> DdlEvent {
        let ddl = self.statement.ddl.clone();
        DdlEvent { kind, database: id.database.clone(), ddl, changes, tables: vec![id] }
    }

    /// The record of a statement that parses and changes no table.
    fn without_effect(&self) -> Vec<DdlEvent> {
        vec![DdlEvent {
            kind: DdlEventKind::Other,
            database: self.context.database.clone().unwrap_or_default(),
            ddl: self.statement.raw.clone(),
            changes: Vec::new(),
            tables: Vec::new(),
        }]
    }

    fn database_event(&self, name: &str) -> Vec<DdlEvent> {
        vec![DdlEvent {
            kind: DdlEventKind::Database,
            database: name.to_owned(),
            ddl: self.statement.ddl.clone(),
            changes: Vec::new(),
            tables: Vec::new(),
        }]
    }

    fn server_charset(&self) -> Option<String> {
        self.context
            .server_charset
            .as_deref()
            .or_else(|| self.tables.server_charset())
            .map(str::to_owned)
    }

    /// The character set that a database's options name; `DEFAULT` is the server's.
    fn database_charset(&self, options: &DatabaseOptions) -> Option<String> {
        match options.charset.as_ref()? {
            Charset::Named(name) => Some(name.clone()),
            Charset::Database | Charset::Inherited => self.server_charset(),
        }
    }

    /// The character set of a new table in a database.
    fn charset_in(&self, database: &str) -> Option<String> {
        self.tables.database_charset(database).map(str::to_owned).or_else(|| self.server_charset())
    }
}

/// Refuses more columns than a server accepts, which bounds the work on names.
fn check_columns(table: &Table, offset: usize) -> Result<(), DdlError> {
    if table.columns.len() > MAX_COLUMNS {
        let kind = DdlErrorKind::TooMany { what: "columns", limit: MAX_COLUMNS };
        return Err(DdlError::at(offset, kind).about(&table.id));
    }
    Ok(())
}

/// The key that a unique index gives a table without one: all columns are there and none is nullable.
fn unique_key(table: &Table, columns: &[String]) -> Option<Vec<String>> {
    columns
        .iter()
        .map(|name| table.column(name).filter(|c| !c.optional).map(|c| c.name.clone()))
        .collect()
}

/// Makes `columns` the primary key and NOT NULL. Columns that are not there are an error, or left out when
/// `skip_unknown`.
fn set_primary_key(
    table: &mut Table,
    columns: &[String],
    offset: usize,
    skip_unknown: bool,
) -> Result<(), DdlError> {
    let mut key = Vec::with_capacity(columns.len());
    for name in columns {
        let index = table.column_index(name);
        let Some(column) = index.and_then(|index| table.columns.get_mut(index)) else {
            if skip_unknown {
                continue;
            }
            let kind = DdlErrorKind::UnknownColumn { column: name.clone(), clause: "PRIMARY KEY" };
            return Err(DdlError::at(offset, kind).about(&table.id));
        };
        column::set_not_null(column);
        key.push(column.name.clone());
    }
    table.primary_key = key;
    Ok(())
}
