//! Which definition each table gets, or why it gets none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_binlog::event::table_map::Dialect;
use holdfast_history::offset::{LogPlace, SourceOffset};
use holdfast_history::store::HistoryStore;
use holdfast_history::{HistoryRecord, Recovered, Table, TableChange, TableId, cross_check};

use super::definitions::{self, Live};
use super::report::{DefinitionSource, MetStatement, RefusedTable, TableOutcome, TableReport};
use super::{GivenDefinition, RefreshOptions, from_log};
use crate::assemble::{FirstRows, LogScan, ScannedStatement};
use crate::config::Config;
use crate::error::Error;
use crate::history_tool;
use crate::stores::recover;

/// A table of the plan.
#[derive(Debug)]
pub(super) struct PlannedTable {
    definition: Option<Arc<Table>>,
    source: Option<DefinitionSource>,
    ddl: Option<String>,
    report: TableReport,
}

impl PlannedTable {
    pub(super) const fn id(&self) -> &TableId {
        &self.report.table
    }

    pub(super) const fn definition(&self) -> Option<&Arc<Table>> {
        self.definition.as_ref()
    }

    pub(super) const fn source(&self) -> Option<DefinitionSource> {
        self.source
    }

    /// The statement that an operator gave.
    pub(super) fn ddl(&self) -> Option<&str> {
        self.ddl.as_deref()
    }

    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.report.outcome, TableOutcome::Refused(_))
    }

    pub(super) const fn is_unchanged(&self) -> bool {
        matches!(self.report.outcome, TableOutcome::Unchanged)
    }

    pub(super) fn into_report(self) -> TableReport {
        self.report
    }
}

/// What the history holds so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    recovered: Option<Recovered>,
    /// Of each table the definitions that were recorded, the newest last, with their records' numbers.
    recorded: BTreeMap<TableId, Vec<(usize, Arc<Table>)>>,
}

impl Known {
    /// Reads the history, if there is one. One that can't be replayed has definitions all the same.
    pub(super) async fn read(
        config: &Config,
        history: &dyn HistoryStore,
        offset: &SourceOffset,
        lower_case_names: bool,
    ) -> Result<Self, Error> {
        let mut recorded: BTreeMap<TableId, Vec<(usize, Arc<Table>)>> = BTreeMap::new();
        let mut keep = |number, record: HistoryRecord| {
            for change in record.table_changes {
                if let TableChange::Create(table) | TableChange::Alter { table, .. } = change {
                    let of_table = recorded.entry(table.id.clone()).or_default();
                    if of_table.last().is_none_or(|(_, last)| *last != table) {
                        of_table.push((number, table));
                    }
                }
            }
            Ok(())
        };
        history_tool::read(history, &mut keep).await?;
        let recovered = recover(config, history, offset, lower_case_names).await.ok();
        Ok(Self { recovered, recorded })
    }

    /// The newest recorded definition that fits the rows; without rows the newest.
    fn fitting(
        &self,
        id: &TableId,
        rows: Option<&FirstRows>,
        dialect: Dialect,
    ) -> Option<&(usize, Arc<Table>)> {
        self.recorded.get(id)?.iter().rev().find(|(_, table)| {
            rows.is_none_or(|rows| cross_check::check(table, &rows.map, dialect).is_ok())
        })
    }

    /// Whether recovery at the offset already gives this, for all of the way to the last of `statements`.
    fn has(&self, id: &TableId, planned: &PlannedTable, last: Option<&ScannedStatement>) -> bool {
        let Some(recovered) = &self.recovered else { return false };
        let is_ahead = planned.source != Some(DefinitionSource::Server)
            || last.is_none_or(|last| {
                recovered.ahead.get(id, &last.place) == planned.definition.as_ref()
            });
        recovered.tables.get(id) == planned.definition.as_ref() && is_ahead
    }
}

/// Plans all tables, in the order of a snapshot.
pub(super) fn plan(
    config: &Config,
    live: &Live,
    scanned: &LogScan,
    known: &Known,
    options: &RefreshOptions,
) -> Vec<PlannedTable> {
    let dialect = if config.is_mariadb() { Dialect::MariaDb } else { Dialect::MySql };
    let chosen: BTreeSet<TableId> = options.tables.iter().cloned().collect();
    let mut ids: Vec<TableId> = live
        .statements
        .iter()
        .filter(|statement| statement.ddl.starts_with("CREATE TABLE"))
        .filter_map(|statement| statement.table.clone())
        .collect();
    let others = scanned.rows.keys().chain(options.definitions.keys()).chain(&chosen);
    for id in others {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    ids.retain(|id| chosen.is_empty() || chosen.contains(id));
    let mut planned = Vec::with_capacity(ids.len());
    for id in ids {
        let met: Vec<&ScannedStatement> =
            scanned.statements.iter().filter(|statement| concerns(statement, &id)).collect();
        let way = Way { rows: scanned.rows.get(&id), met: &met, dialect };
        let mut table = decide(config, &id, live, known, &way, options);
        if !table.is_refused() && known.has(&id, &table, met.last().copied()) {
            table.report.outcome = TableOutcome::Unchanged;
        }
        planned.push(table);
    }
    planned
}

/// Whether a statement may change a table's definition.
fn concerns(statement: &ScannedStatement, id: &TableId) -> bool {
    match &statement.touched {
        Ok(touched) => touched.tables.contains(id) || touched.databases.contains(&id.database),
        Err(error) => error.table.as_ref() == Some(id),
    }
}

/// What the log has of a table between the offset and the place where the definitions were read.
struct Way<'a> {
    rows: Option<&'a FirstRows>,
    met: &'a [&'a ScannedStatement],
    dialect: Dialect,
}

impl Way<'_> {
    fn misfit(&self, table: &Table) -> Option<String> {
        let rows = self.rows?;
        let mismatch = cross_check::check(table, &rows.map, self.dialect).err()?;
        Some(format!("its first rows, in {}, do not fit: {mismatch}", at(&rows.place)))
    }

    /// Why today's definition is not that of the offset.
    fn contradiction(&self, table: &Table) -> Option<String> {
        let rows = self.rows?;
        let last =
            self.met.last().filter(|last| last.place.reaches(&rows.place.file, rows.place.pos));
        match (last, self.misfit(table)) {
            (_, Some(misfit)) => Some(misfit),
            (Some(last), None) => Some(format!(
                "rows come, from {} on, before the statement in {}",
                at(&rows.place),
                at(&last.place)
            )),
            (None, None) => None,
        }
    }

    /// Whether a statement of the log makes the table before its first rows come.
    fn is_created(&self) -> bool {
        self.met.first().is_some_and(|first| {
            first.touched.as_ref().is_ok_and(|touched| touched.creates)
                && self
                    .rows
                    .is_none_or(|rows| rows.place.reaches(&first.place.file, first.place.pos))
        })
    }
}

fn decide(
    config: &Config,
    id: &TableId,
    live: &Live,
    known: &Known,
    way: &Way<'_>,
    options: &RefreshOptions,
) -> PlannedTable {
    let forced = options.force_tables.contains(id);
    let today = live.tables.get(id);
    let use_it = |definition: &Arc<Table>, source, ddl: Option<&str>, why: Option<String>| {
        let note = why.map(|why| format!("forced, although {why}"));
        let outcome = TableOutcome::Refreshed { source, note };
        let report = report(id, Some(definition), way, outcome);
        let definition = Some(Arc::clone(definition));
        PlannedTable { definition, source: Some(source), ddl: ddl.map(str::to_owned), report }
    };
    let refuse = |why: String| {
        let refused = RefusedTable {
            why,
            recorded: known
                .fitting(id, way.rows, way.dialect)
                .map(|(record, table)| (*record, definitions::create_table(table))),
            from_log: way
                .rows
                .and_then(|rows| from_log::definition(config, &rows.map, way.dialect))
                .map(|table| definitions::create_table(&table)),
        };
        let report = report(id, today, way, TableOutcome::Refused(Box::new(refused)));
        PlannedTable { definition: None, source: None, ddl: None, report }
    };
    let given = match options.definitions.get(id) {
        None => None,
        Some(GivenDefinition::Recorded) => match known.fitting(id, way.rows, way.dialect) {
            Some((record, table)) => {
                Some((Arc::clone(table), DefinitionSource::History { record: *record }, None))
            }
            None => return refuse("no recorded definition fits its rows".to_owned()),
        },
        Some(GivenDefinition::Log) => {
            let table =
                way.rows.and_then(|rows| from_log::definition(config, &rows.map, way.dialect));
            match table {
                Some(table) => Some((table, DefinitionSource::RowMetadata, None)),
                None => {
                    return refuse(
                        "the log does not name its columns (binlog_row_metadata is not FULL), or has no rows of it"
                            .to_owned(),
                    );
                }
            }
        }
        Some(GivenDefinition::Sql(sql)) => match definitions::parse(config, id, sql) {
            Ok(table) => Some((table, DefinitionSource::Operator, Some(sql.as_str()))),
            Err(why) => return refuse(why),
        },
    };
    if let Some((table, source, ddl)) = given {
        return match way.misfit(&table) {
            Some(why) if !forced => refuse(why),
            why => use_it(&table, source, ddl, why),
        };
    }
    match today {
        Some(table) => match way.contradiction(table) {
            None => use_it(table, DefinitionSource::Server, None, None),
            Some(why) if forced => use_it(table, DefinitionSource::Server, None, Some(why)),
            Some(_) if way.is_created() => created_later(id, way),
            Some(why) => refuse(why),
        },
        None if way.is_created() => created_later(id, way),
        None if way.rows.is_none() => {
            refuse("the server has no such table, and the log has no rows of it".to_owned())
        }
        None => {
            refuse("the server does not have it any more, and the log has rows of it".to_owned())
        }
    }
}

/// There is none at the offset: the log makes it.
fn created_later(id: &TableId, way: &Way<'_>) -> PlannedTable {
    let report = report(id, None, way, TableOutcome::CreatedLater);
    PlannedTable { definition: None, source: None, ddl: None, report }
}

fn report(
    id: &TableId,
    definition: Option<&Arc<Table>>,
    way: &Way<'_>,
    outcome: TableOutcome,
) -> TableReport {
    TableReport {
        table: id.clone(),
        outcome,
        definition: definition.map(|table| cross_check::definition_shape(table)),
        first_rows: way
            .rows
            .map(|rows| (rows.place.clone(), cross_check::wire_shape(&rows.map, way.dialect))),
        statements: way
            .met
            .iter()
            .map(|statement| MetStatement {
                place: statement.place.clone(),
                ddl: statement.ddl.clone(),
            })
            .collect(),
    }
}

/// `file at pos`.
fn at(place: &LogPlace) -> String {
    format!("{} at {}", place.file, place.pos)
}
