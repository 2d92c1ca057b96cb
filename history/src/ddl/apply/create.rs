//! CREATE TABLE.

use std::sync::Arc;

use super::super::ast::{Charset, CreateTable, Element, Name};
use super::super::{DdlError, DdlErrorKind, DdlEvent, DdlEventKind};
use super::column::{self, Charsets};
use super::{Scope, check_columns, set_primary_key, unique_key};
use crate::record::TableChange;
use crate::schema::{Column, Table, TableId};

impl Scope<'_> {
    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Vec<DdlEvent>, DdlError> {
        let id = self.resolve(&create.name)?;
        if self.keeps(&id, create.if_not_exists, create.or_replace) {
            return Ok(self.kept(&id));
        }
        if self.context.failed {
            return Ok(self.failed_create(id, create.or_replace));
        }
        let database = self.charset_in(&id.database);
        let mut table = Table::new(id);
        table.default_charset = match &create.options.charset {
            Some(Charset::Named(name)) => Some(name.clone()),
            Some(Charset::Database | Charset::Inherited) | None => database.clone(),
        };
        if self.context.comments {
            table.comment.clone_from(&create.options.comment);
        }
        let default_charset = table.default_charset.clone();
        let charsets =
            Charsets { table: default_charset.as_deref(), database: database.as_deref() };
        let mut primary_key = None;
        let mut versioned = create.options.system_versioning;
        let mut period = false;
        for element in &create.elements {
            match element {
                Element::Column(definition) => {
                    if table.column(&definition.name).is_some() {
                        let kind =
                            DdlErrorKind::DuplicateColumn { column: definition.name.clone() };
                        return Err(DdlError::at(definition.offset, kind).about(&table.id));
                    }
                    let column = column::build(definition, &charsets, self.context);
                    versioned |= definition.system_versioning;
                    if definition.primary_key {
                        primary_key = Some(vec![column.name.clone()]);
                    } else if definition.unique && table.primary_key.is_empty() {
                        table.primary_key = vec![column.name.clone()];
                    }
                    table.columns.push(column);
                    check_columns(&table, definition.offset)?;
                }
                Element::PrimaryKey(columns) => primary_key = Some(columns.clone()),
                Element::Unique(columns) => {
                    if table.primary_key.is_empty()
                        && let Some(key) =
                            columns.as_ref().and_then(|columns| unique_key(&table, columns))
                    {
                        table.primary_key = key;
                    }
                }
                Element::SystemPeriod => period = true,
                Element::Skipped => {}
            }
        }
        if table.columns.is_empty() {
            return Err(DdlError::at(create.name.offset, DdlErrorKind::NoColumns).about(&table.id));
        }
        // Before the key makes its columns NOT NULL: one that was given NULL gets no default.
        column::set_timestamp_defaults(&mut table.columns, self.context, |_, _| true);
        if let Some(columns) = primary_key {
            set_primary_key(&mut table, &columns, create.name.offset, false)?;
        }
        if versioned && !period {
            table.columns.extend(Column::hidden_period());
        }
        Ok(self.created(table))
    }

    pub(super) fn create_like(
        &mut self,
        name: &Name,
        source: &Name,
        if_not_exists: bool,
        or_replace: bool,
    ) -> Result<Vec<DdlEvent>, DdlError> {
        let id = self.resolve(name)?;
        let source_id = self.resolve(source)?;
        if self.keeps(&id, if_not_exists, or_replace) {
            return Ok(self.kept(&id));
        }
        if self.context.failed {
            return Ok(self.failed_create(id, or_replace));
        }
        let Some(like) = self.tables.get(&source_id) else {
            let kind = DdlErrorKind::UnknownTable { table: source_id };
            return Err(DdlError::at(source.offset, kind).about(&id));
        };
        let table = Table { id, ..Table::clone(like) };
        Ok(self.created(table))
    }

    /// Whether a table of that name is there and stays. A logged CREATE TABLE without IF NOT EXISTS succeeded, so then
    /// the definition that is there is an old one.
    fn keeps(&self, id: &TableId, if_not_exists: bool, or_replace: bool) -> bool {
        let there = self.tables.get(id).is_some();
        there && !or_replace && (if_not_exists || self.context.definitions_are_ahead)
    }

    /// What is told of a CREATE TABLE of a table that stays. A definition that is ahead is told: whoever saw the table go
    /// before needs it.
    fn kept(&mut self, id: &TableId) -> Vec<DdlEvent> {
        match self.tables.get(id).map(Arc::clone) {
            Some(table) if self.context.definitions_are_ahead => {
                let changes = vec![TableChange::Create(Arc::clone(&table))];
                vec![self.event(DdlEventKind::Create, table.id.clone(), changes)]
            }
            Some(_) | None => self.without_effect(),
        }
    }

    /// MariaDB logs a CREATE OR REPLACE that failed when it had dropped the old table already.
    fn failed_create(&mut self, id: TableId, or_replace: bool) -> Vec<DdlEvent> {
        if !or_replace || self.tables.remove(&id).is_none() {
            return self.without_effect();
        }
        vec![self.event(DdlEventKind::Drop, id.clone(), vec![TableChange::Drop(id)])]
    }

    fn created(&mut self, table: Table) -> Vec<DdlEvent> {
        let table = Arc::new(table);
        self.tables.put(Arc::clone(&table));
        self.tables.remove_sequence(&table.id);
        vec![self.event(DdlEventKind::Create, table.id.clone(), vec![TableChange::Create(table)])]
    }
}
