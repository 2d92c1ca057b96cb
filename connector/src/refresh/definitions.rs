//! Definitions: those of the live server, and those that an operator gives.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_history::ddl::{self, DdlContext, DdlEvent};
use holdfast_history::offset::LogPlace;
use holdfast_history::schema::DefaultValue;
use holdfast_history::{Column, Table, TableId, Tables};
use holdfast_snapshot::{SchemaStatement, ServerFacts, SnapshotOptions, Snapshotter};
use mysql_async::Conn;

use super::RefreshOptions;
use crate::config::{Config, LockingMode};
use crate::error::{DdlFailure, Error};

/// The definitions of the live server, and where its log was when they were read.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) read_at: LogPlace,
    /// In the order of a snapshot.
    pub(super) statements: Vec<SchemaStatement>,
    pub(super) tables: BTreeMap<TableId, Arc<Table>>,
}

/// Reads the definitions as a snapshot does, under its lock, and no rows.
pub(super) async fn read(
    config: &Config,
    conn: Conn,
    facts: &ServerFacts,
    options: &RefreshOptions,
) -> Result<Live, Error> {
    let locking = match config.snapshot.locking {
        LockingMode::Minimal
        | LockingMode::Extended
        | LockingMode::MinimalPercona
        | LockingMode::MinimalPerconaNoTableLocks => holdfast_snapshot::LockingMode::Minimal,
        LockingMode::None => holdfast_snapshot::LockingMode::None,
    };
    let wants_schema = |table: &TableId| {
        if options.tables.is_empty() {
            config.wants_definition(table)
        } else {
            options.tables.contains(table)
        }
    };
    let snapshot_options = SnapshotOptions {
        locking,
        lock_timeout: config.snapshot.lock_timeout,
        by_gtids: true,
        wants_schema: &wants_schema,
    };
    let mut snapshot = Snapshotter::begin(conn, Vec::new(), facts, &snapshot_options).await?;
    let position = snapshot.position().clone();
    let statements = snapshot.statements().to_vec();
    snapshot.unlock().await?;
    snapshot.finish().await?;
    let mut tables = Tables::new(facts.lower_case_names());
    for statement in &statements {
        apply_definition(config, statement, &mut tables)?;
    }
    let tables = tables.iter().map(|table| (table.id.clone(), Arc::clone(table))).collect();
    let read_at = LogPlace { file: position.file, pos: position.pos };
    Ok(Live { read_at, statements, tables })
}

/// Applies a statement that a snapshot has read from the server.
pub(crate) fn apply_definition(
    config: &Config,
    statement: &SchemaStatement,
    tables: &mut Tables,
) -> Result<Vec<DdlEvent>, Error> {
    ddl::apply_statement(&statement.ddl, &context(config, &statement.database), tables).map_err(
        |error| {
            Error::Ddl(Box::new(DdlFailure {
                file: "the server's definition".to_owned(),
                position: 0,
                error,
                fix: "report the definition that SHOW CREATE TABLE gives",
            }))
        },
    )
}

/// How statements in a database are understood.
pub(super) fn context(config: &Config, database: &str) -> DdlContext {
    DdlContext {
        database: (!database.is_empty()).then(|| database.to_owned()),
        flavor: config.ddl_flavor(),
        comments: config.events.schema_comments,
        ..DdlContext::default()
    }
}

/// The table that a CREATE TABLE statement makes; the reason when it makes none of that name.
pub(super) fn parse(config: &Config, id: &TableId, sql: &str) -> Result<Arc<Table>, String> {
    let mut tables = Tables::default();
    ddl::apply_statement(sql, &context(config, &id.database), &mut tables)
        .map_err(|error| format!("the definition can't be understood: {error}"))?;
    tables
        .get(id)
        .map(Arc::clone)
        .ok_or_else(|| format!("the definition is no CREATE TABLE of {id}"))
}

/// A CREATE TABLE that makes the table.
pub(super) fn create_table(table: &Table) -> String {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let mut lines: Vec<String> = table
        .columns
        .iter()
        .filter(|column| !column.is_hidden())
        .map(|column| format!("  {} {}", quoted(&column.name), column_text(column)))
        .collect();
    if !table.primary_key.is_empty() {
        let names: Vec<String> = table.primary_key.iter().map(|name| quoted(name)).collect();
        lines.push(format!("  PRIMARY KEY ({})", names.join(",")));
    }
    let mut text = format!("CREATE TABLE {} (\n{}\n)", quoted(&table.id.table), lines.join(",\n"));
    if let Some(charset) = &table.default_charset {
        let _ = write!(text, " DEFAULT CHARSET={charset}");
    }
    if table.columns.iter().any(Column::is_hidden) {
        text.push_str(" WITH SYSTEM VERSIONING");
    }
    text
}

fn column_text(column: &Column) -> String {
    let (base, modifiers) = match column.type_name.split_once(' ') {
        Some((base, modifiers)) if !base.eq_ignore_ascii_case("DOUBLE") => (base, modifiers),
        Some(_) | None => (column.type_name.as_str(), ""),
    };
    let mut text = base.to_owned();
    if !column.enum_values.is_empty() {
        let _ = write!(text, "({})", column.enum_values.join(","));
    } else if let Some(length) = column.length {
        match column.scale {
            Some(scale) => {
                let _ = write!(text, "({length},{scale})");
            }
            None => {
                let _ = write!(text, "({length})");
            }
        }
    }
    if !modifiers.is_empty() {
        text.push(' ');
        text.push_str(modifiers);
    }
    if let Some(charset) = &column.charset {
        let _ = write!(text, " CHARACTER SET {charset}");
    }
    if !column.optional {
        text.push_str(" NOT NULL");
    }
    match &column.default {
        DefaultValue::Absent => {}
        DefaultValue::Null => text.push_str(" DEFAULT NULL"),
        DefaultValue::Expression(value) if value.eq_ignore_ascii_case("CURRENT_TIMESTAMP") => {
            text.push_str(" DEFAULT CURRENT_TIMESTAMP");
        }
        DefaultValue::Expression(value) => {
            let value = value.replace('\\', "\\\\").replace('\'', "''");
            let _ = write!(text, " DEFAULT '{value}'");
        }
    }
    if column.auto_incremented {
        text.push_str(" AUTO_INCREMENT");
    }
    text
}
