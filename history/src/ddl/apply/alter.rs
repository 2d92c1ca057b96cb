//! ALTER TABLE.
//!
//! The server takes the clauses of one statement together (MySQL, `mysql_prepare_alter_table` in `sql/sql_table.cc`):
//! old names are those of the table before, AFTER names those of the table as it becomes, keys are dropped before new
//! ones are added. Debezium goes clause by clause, which gives the same result as long as clauses do not depend on each
//! other, and a wrong one else.

use std::sync::Arc;

use super::super::ast::{AlterTable, Charset, Clause, ClauseKind, ColumnDefinition, Name, Place};
use super::super::{DdlContext, DdlError, DdlErrorKind, DdlEvent, DdlEventKind, Flavor};
use super::column::{self, Charsets};
use super::{Scope, check_columns, set_primary_key, unique_key};
use crate::record::TableChange;
use crate::schema::{Column, DefaultValue, Table, TableId, same_name};

impl Scope<'_> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a step looks at the clauses that are its own"
    )]
    pub(super) fn alter_table(&mut self, alter: &AlterTable) -> Result<Vec<DdlEvent>, DdlError> {
        let id = self.resolve(&alter.name)?;
        let Some(old) = self.tables.get(&id).cloned() else {
            return Ok(self.without_effect());
        };
        let clauses = flatten(&alter.clauses);
        let database_charset = self.charset_in(&old.id.database);
        let session_charset =
            self.context.database.as_deref().and_then(|name| self.charset_in(name));
        let mut table =
            Alteration::new(&old, &clauses, self.context, database_charset, session_charset)
                .run()?;

        let mut other_changes = Vec::new();
        let mut previous = None;
        for clause in &clauses {
            match &clause.kind {
                ClauseKind::Rename(name) => {
                    let to = self.resolve_beside(name, &old.id);
                    if to != table.id {
                        table.id = to;
                        previous = Some(old.id.clone());
                    }
                }
                ClauseKind::ConvertPartitionToTable(name) => {
                    let copy = Table { id: self.resolve_beside(name, &old.id), ..table.clone() };
                    other_changes.push(TableChange::Create(Arc::new(copy)));
                }
                ClauseKind::ConvertTableToPartition(name) => {
                    other_changes.push(TableChange::Drop(self.resolve_beside(name, &old.id)));
                }
                _ => {}
            }
        }

        if previous.is_some() {
            self.tables.remove(&old.id);
        }
        let table = Arc::new(table);
        self.tables.put(Arc::clone(&table));
        for change in &other_changes {
            match change {
                TableChange::Create(table) | TableChange::Alter { table, .. } => {
                    self.tables.put(Arc::clone(table));
                }
                TableChange::Drop(id) => {
                    self.tables.remove(id);
                }
            }
        }
        let id = table.id.clone();
        let mut changes = vec![TableChange::Alter { table, previous }];
        changes.extend(other_changes);
        Ok(vec![self.event(DdlEventKind::Alter, id, changes)])
    }

    /// A name without a database is in the session's, or where the altered table is.
    fn resolve_beside(&self, name: &Name, altered: &TableId) -> TableId {
        self.resolve(name)
            .unwrap_or_else(|_| TableId::new(altered.database.clone(), name.table.clone()))
    }
}

fn flatten(clauses: &[Clause]) -> Vec<&Clause> {
    let mut flat = Vec::with_capacity(clauses.len());
    for clause in clauses {
        if let ClauseKind::List(inner) = &clause.kind {
            flat.extend(inner);
        } else {
            flat.push(clause);
        }
    }
    flat
}

/// One ALTER TABLE on its way from the old table to the new one.
struct Alteration<'a> {
    old: &'a Table,
    clauses: &'a [&'a Clause],
    context: &'a DdlContext,
    database_charset: Option<String>,
    /// Of the session's database.
    session_charset: Option<String>,
    /// The table as it becomes.
    table: Table,
    /// For each column of `table` the index of the clause that defined it.
    origins: Vec<Option<usize>>,
    /// For each column of the old table its name in the new one; `None` when it is dropped.
    new_names: Vec<Option<String>>,
}

impl<'a> Alteration<'a> {
    fn new(
        old: &'a Table,
        clauses: &'a [&'a Clause],
        context: &'a DdlContext,
        database_charset: Option<String>,
        session_charset: Option<String>,
    ) -> Self {
        let mut table = Table::new(old.id.clone());
        table.default_charset.clone_from(&old.default_charset);
        table.comment.clone_from(&old.comment);
        let new_names = old.columns.iter().map(|column| Some(column.name.clone())).collect();
        Self {
            old,
            clauses,
            context,
            database_charset,
            session_charset,
            table,
            origins: Vec::new(),
            new_names,
        }
    }

    fn run(mut self) -> Result<Table, DdlError> {
        self.set_options();
        self.keep_change_and_drop()?;
        self.add_and_move()?;
        self.refuse_duplicates()?;
        self.convert_charset();
        self.set_versioning();
        let origins = std::mem::take(&mut self.origins);
        column::set_timestamp_defaults(&mut self.table.columns, self.context, |index, _| {
            origins.get(index).is_some_and(Option::is_some)
        });
        self.set_key()?;
        Ok(self.table)
    }

    /// Options first: new columns get the new character set.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a step looks at the clauses that are its own"
    )]
    fn set_options(&mut self) {
        for clause in self.clauses {
            match &clause.kind {
                ClauseKind::Options(options) => {
                    if let Some(charset) = &options.charset {
                        self.table.default_charset = self.named(charset);
                    }
                    if let Some(comment) =
                        options.comment.as_ref().filter(|_| self.context.comments)
                    {
                        self.table.comment = Some(comment.clone());
                    }
                }
                // A character set among the options wins, wherever it stands.
                ClauseKind::ConvertCharset(charset) if !self.sets_charset() => {
                    self.table.default_charset = self.converted(charset)
                }
                _ => {}
            }
        }
    }

    /// The columns of the old table, changed, renamed or left out, in their old order.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a step looks at the clauses that are its own"
    )]
    fn keep_change_and_drop(&mut self) -> Result<(), DdlError> {
        let mut kept: Vec<Option<(Column, Option<usize>)>> =
            self.old.columns.iter().map(|column| Some((column.clone(), None))).collect();
        for (at, clause) in self.clauses.iter().enumerate() {
            let (name, if_exists, verb) = match &clause.kind {
                ClauseKind::Change { old, if_exists, .. } => (old, *if_exists, "CHANGE or MODIFY"),
                ClauseKind::RenameColumn { old, if_exists, .. } => {
                    (old, *if_exists, "RENAME COLUMN")
                }
                ClauseKind::DropColumn { name, if_exists } => (name, *if_exists, "DROP COLUMN"),
                ClauseKind::SetDefault { name, if_exists, .. }
                | ClauseKind::DropDefault { name, if_exists } => (name, *if_exists, "ALTER COLUMN"),
                _ => continue,
            };
            // Renamed already: the definition is applied to what is there.
            let renamed = || match &clause.kind {
                ClauseKind::Change { column, .. } if self.context.definitions_are_ahead => {
                    self.old.column_index(&column.name)
                }
                _ => None,
            };
            let Some(index) = self.old.column_index(name).or_else(renamed) else {
                if if_exists
                    || self.context.definitions_are_ahead
                    || self.adds_before(at, &clause.kind)
                {
                    continue;
                }
                return Err(self.unknown(name, verb, clause.offset));
            };
            let (Some(slot), Some(new_name)) = (kept.get_mut(index), self.new_names.get_mut(index))
            else {
                continue;
            };
            match &clause.kind {
                ClauseKind::Change { column, .. } => {
                    let charsets = Charsets {
                        table: self.table.default_charset.as_deref(),
                        database: self.database_charset.as_deref(),
                    };
                    *slot = Some((column::build(column, &charsets, self.context), Some(at)));
                    *new_name = Some(column.name.clone());
                }
                ClauseKind::RenameColumn { new, .. } => {
                    if let Some((column, _)) = slot {
                        column.name.clone_from(new);
                    }
                    *new_name = Some(new.clone());
                }
                ClauseKind::DropColumn { .. } => {
                    *slot = None;
                    *new_name = None;
                }
                ClauseKind::SetDefault { default, .. } => {
                    if let Some((column, _)) = slot {
                        column.default = column::default_value(default, column.column_type());
                    }
                }
                ClauseKind::DropDefault { .. } => {
                    if let Some((column, _)) = slot {
                        column.default = DefaultValue::Absent;
                    }
                }
                _ => {}
            }
        }
        (self.table.columns, self.origins) = kept.into_iter().flatten().unzip();
        Ok(())
    }

    /// New columns, and columns that go to another place, in the order of the clauses.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a step looks at the clauses that are its own"
    )]
    fn add_and_move(&mut self) -> Result<(), DdlError> {
        for (at, clause) in self.clauses.iter().enumerate() {
            match &clause.kind {
                ClauseKind::Add { column, place, if_not_exists } => {
                    let there = self.table.column(&column.name).is_some();
                    if there && (*if_not_exists || self.context.definitions_are_ahead) {
                        continue;
                    }
                    let built = self.build(column);
                    self.insert(built, at, place, clause.offset)?;
                }
                // The column that an earlier clause has added, defined anew.
                ClauseKind::Change { column, place, .. }
                    if self.adds_before(at, &clause.kind)
                        && self.old.column_index(&column.name).is_none() =>
                {
                    if let Some(added) = self.table.column_index(&column.name) {
                        self.table.columns.remove(added);
                        self.origins.remove(added);
                    }
                    let built = self.build(column);
                    self.insert(built, at, place, clause.offset)?;
                }
                ClauseKind::Change { place: place @ (Place::First | Place::After(_)), .. } => {
                    let Some(from) = self.origins.iter().position(|origin| *origin == Some(at))
                    else {
                        continue;
                    };
                    self.origins.remove(from);
                    let column = self.table.columns.remove(from);
                    self.insert(column, at, place, clause.offset)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the clause at `at` is a MODIFY of a column that a clause before it adds, which MariaDB allows
    /// (`mysql_prepare_alter_table` in `sql/sql_table.cc`, "modify for newly added field").
    fn adds_before(&self, at: usize, kind: &ClauseKind) -> bool {
        let ClauseKind::Change { old, column, .. } = kind else { return false };
        self.context.flavor == Flavor::MariaDb
            && same_name(old, &column.name)
            && self.clauses.iter().take(at).any(|clause| {
                matches!(&clause.kind, ClauseKind::Add { column: added, .. }
                    if same_name(&added.name, old))
            })
    }

    fn insert(
        &mut self,
        column: Column,
        clause: usize,
        place: &Place,
        offset: usize,
    ) -> Result<(), DdlError> {
        // The hidden columns of a versioned table stay the last.
        let end = self
            .table
            .columns
            .iter()
            .position(Column::is_hidden)
            .unwrap_or(self.table.columns.len());
        let at = match place {
            Place::First => 0,
            Place::Unchanged => end,
            Place::After(name) => match self.table.column_index(name) {
                Some(index) => index + 1,
                None if self.context.definitions_are_ahead => end,
                None => return Err(self.unknown(name, "AFTER", offset)),
            },
        };
        self.table.columns.insert(at, column);
        self.origins.insert(at, Some(clause));
        check_columns(&self.table, offset)
    }

    fn refuse_duplicates(&self) -> Result<(), DdlError> {
        let mut names: Vec<String> =
            self.table.columns.iter().map(|column| column.name.to_lowercase()).collect();
        names.sort_unstable();
        let Some(twice) =
            names.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[String]>::first)
        else {
            return Ok(());
        };
        let origin = self
            .table
            .columns
            .iter()
            .zip(&self.origins)
            .filter(|(column, _)| same_name(&column.name, twice));
        let clause = origin
            .filter_map(|(_, origin)| *origin)
            .next_back()
            .and_then(|at| self.clauses.get(at));
        let offset = clause.or_else(|| self.clauses.first()).map_or(0, |clause| clause.offset);
        let kind = DdlErrorKind::DuplicateColumn { column: twice.clone() };
        Err(DdlError::at(offset, kind).about(&self.old.id))
    }

    fn convert_charset(&mut self) {
        for clause in self.clauses {
            if let ClauseKind::ConvertCharset(charset) = &clause.kind
                && let Some(charset) = self.converted(charset)
            {
                for column in &mut self.table.columns {
                    column::convert_charset(column, &charset, self.context.flavor);
                }
            }
        }
    }

    fn set_versioning(&mut self) {
        let has = |wanted: fn(&ClauseKind) -> bool| {
            self.clauses.iter().any(|clause| wanted(&clause.kind))
        };
        let adds = has(|kind| matches!(kind, ClauseKind::AddSystemVersioning));
        let drops = has(|kind| matches!(kind, ClauseKind::DropSystemVersioning));
        let period = has(|kind| matches!(kind, ClauseKind::AddSystemPeriod));
        if drops {
            self.table.columns.retain(|column| !column.is_hidden());
        }
        if adds && !period && !self.table.columns.iter().any(Column::is_hidden) {
            self.table.columns.extend(Column::hidden_period());
        }
    }

    /// The key: the old one under its new names unless it is dropped; then primary keys; then, without any, the first
    /// unique index that can be one.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a step looks at the clauses that are its own"
    )]
    fn set_key(&mut self) -> Result<(), DdlError> {
        let dropped =
            self.clauses.iter().any(|clause| matches!(clause.kind, ClauseKind::DropPrimaryKey));
        if !dropped {
            let names = self.old.primary_key.iter().filter_map(|name| self.old.column_index(name));
            self.table.primary_key =
                names.filter_map(|index| self.new_names.get(index).cloned().flatten()).collect();
        }
        // Beside a primary key that is added, the old one can only have been a unique index.
        let added = self.clauses.iter().any(|clause| match &clause.kind {
            ClauseKind::AddPrimaryKey(_) => true,
            ClauseKind::Add { column, .. } | ClauseKind::Change { column, .. } => {
                column.primary_key
            }
            _ => false,
        });
        if !dropped && !added {
            self.keep_key_not_null();
        }
        let ahead = self.context.definitions_are_ahead;
        for clause in self.clauses {
            match &clause.kind {
                ClauseKind::AddPrimaryKey(columns) => {
                    set_primary_key(&mut self.table, columns, clause.offset, ahead)?;
                }
                ClauseKind::Add { column, .. } | ClauseKind::Change { column, .. }
                    if column.primary_key =>
                {
                    let columns = std::slice::from_ref(&column.name);
                    set_primary_key(&mut self.table, columns, clause.offset, ahead)?;
                }
                _ => {}
            }
        }
        for clause in self.clauses {
            if !self.table.primary_key.is_empty() {
                break;
            }
            let key = match &clause.kind {
                ClauseKind::AddUnique(Some(columns)) => unique_key(&self.table, columns),
                ClauseKind::Add { column, .. } | ClauseKind::Change { column, .. }
                    if column.unique =>
                {
                    self.table.column(&column.name).map(|column| vec![column.name.clone()])
                }
                _ => None,
            };
            self.table.primary_key = key.unwrap_or_default();
        }
        Ok(())
    }

    /// A key column that is redefined without NOT NULL stays NOT NULL, as it does in a primary key. Whether the key is
    /// one, or a unique index that stands for it, is not known here: records do not say it.
    fn keep_key_not_null(&mut self) {
        for index in self.old.key_columns() {
            let was_not_null = self.old.columns.get(index).is_some_and(|column| !column.optional);
            let Some(Some(name)) = self.new_names.get(index).filter(|_| was_not_null) else {
                continue;
            };
            let given_null = self.clauses.iter().any(|clause| {
                matches!(&clause.kind, ClauseKind::Change { column, .. }
                    if column.nullable == Some(true) && same_name(&column.name, name))
            });
            if !given_null
                && let Some(column) =
                    self.table.column_index(name).and_then(|at| self.table.columns.get_mut(at))
            {
                column::set_not_null(column);
            }
        }
    }

    fn build(&self, definition: &ColumnDefinition) -> Column {
        let charsets = Charsets {
            table: self.table.default_charset.as_deref(),
            database: self.database_charset.as_deref(),
        };
        column::build(definition, &charsets, self.context)
    }

    /// `DEFAULT` is the database's.
    fn named(&self, charset: &Charset) -> Option<String> {
        match charset {
            Charset::Named(name) => Some(name.clone()),
            Charset::Database | Charset::Inherited => self.database_charset.clone(),
        }
    }

    fn sets_charset(&self) -> bool {
        self.clauses.iter().any(
            |clause| matches!(&clause.kind, ClauseKind::Options(options) if options.charset.is_some()),
        )
    }

    /// Of CONVERT TO, where MySQL's `DEFAULT` is that of the session's database (`collation_database`), wherever the table
    /// is.
    fn converted(&self, charset: &Charset) -> Option<String> {
        match charset {
            Charset::Named(name) => Some(name.clone()),
            Charset::Database | Charset::Inherited if self.context.flavor == Flavor::MariaDb => {
                self.database_charset.clone()
            }
            Charset::Database | Charset::Inherited => {
                self.session_charset.clone().or_else(|| self.database_charset.clone())
            }
        }
    }

    fn unknown(&self, column: &str, clause: &'static str, offset: usize) -> DdlError {
        let kind = DdlErrorKind::UnknownColumn { column: column.to_owned(), clause };
        DdlError::at(offset, kind).about(&self.old.id)
    }
}
