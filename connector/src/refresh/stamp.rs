//! The records of a refresh: a snapshot's statements in a snapshot's order, at the offset.

use holdfast_history::ddl::apply_statement;
use holdfast_history::offset::{HoldfastMembers, LogPlace, SnapshotKind, SourceOffset};
use holdfast_history::{HistoryRecord, TableChange, Tables};
use holdfast_snapshot::{SchemaStatement, ServerFacts};

use super::definitions::{Live, context, create_table};
use super::plan::PlannedTable;
use super::report::DefinitionSource;
use super::{RefreshOptions, place_of};
use crate::assemble::history_record;
use crate::config::Config;
use crate::error::{DdlFailure, Error};
use crate::source::now_ns;

/// All records, to be appended at once.
pub(super) fn records(
    config: &Config,
    facts: &ServerFacts,
    offset: &SourceOffset,
    live: &Live,
    planned: &[PlannedTable],
    options: &RefreshOptions,
) -> Result<Vec<HistoryRecord>, Error> {
    let at_offset = position(config, facts, offset, None);
    let ahead = position(config, facts, offset, Some(&live.read_at));
    let ts_ms = now_ns().div_euclid(1_000_000);
    let mut tables = Tables::new(facts.lower_case_names());
    let mut records = Vec::new();
    for statement in statements(live, planned, options) {
        let planned = statement
            .table
            .as_ref()
            .and_then(|table| planned.iter().find(|planned| planned.id() == table));
        let is_ahead =
            planned.is_some_and(|planned| planned.source() == Some(DefinitionSource::Server));
        let position = if is_ahead { &ahead } else { &at_offset };
        let events =
            apply_statement(&statement.ddl, &context(config, &statement.database), &mut tables)
                .map_err(|error| {
                    Error::Ddl(Box::new(DdlFailure {
                        file: "the plan of the refresh".to_owned(),
                        position: 0,
                        error,
                        fix: "report the definition",
                    }))
                })?;
        for event in &events {
            let mut record = history_record(event, config, position, ts_ms);
            // A definition that was recorded is kept as it was, whatever its text makes of it.
            if let Some(table) = planned.and_then(PlannedTable::definition) {
                for change in &mut record.table_changes {
                    if let TableChange::Create(created) = change
                        && created.id == table.id
                    {
                        created.clone_from(table);
                    }
                }
            }
            records.push(record);
        }
    }
    Ok(records)
}

/// The statements: all of a snapshot, or for chosen tables nothing but theirs.
fn statements(
    live: &Live,
    planned: &[PlannedTable],
    options: &RefreshOptions,
) -> Vec<SchemaStatement> {
    let drop_table = |planned: &PlannedTable| SchemaStatement {
        database: planned.id().database.clone(),
        table: Some(planned.id().clone()),
        ddl: format!(
            "DROP TABLE IF EXISTS `{}`.`{}`",
            planned.id().database.replace('`', "``"),
            planned.id().table.replace('`', "``")
        ),
    };
    let create = |planned: &PlannedTable| -> Option<SchemaStatement> {
        let ddl = match planned.source()? {
            DefinitionSource::Server => live
                .statements
                .iter()
                .rfind(|statement| statement.table.as_ref() == Some(planned.id()))
                .map(|statement| statement.ddl.clone())?,
            DefinitionSource::Operator
            | DefinitionSource::History { .. }
            | DefinitionSource::RowMetadata => match planned.ddl() {
                Some(ddl) => ddl.trim().trim_end_matches(';').to_owned(),
                None => create_table(planned.definition()?),
            },
        };
        let id = planned.id();
        Some(SchemaStatement { database: id.database.clone(), table: Some(id.clone()), ddl })
    };
    let drops = planned.iter().map(drop_table);
    if !options.tables.is_empty() {
        return drops.chain(planned.iter().filter_map(create)).collect();
    }
    // Those of the server without a table, in place; a database's tables after its USE.
    let mut all = Vec::new();
    let of_server = live.statements.iter().filter(|statement| statement.table.is_none());
    let (settings, databases): (Vec<_>, Vec<_>) =
        of_server.cloned().partition(|statement| statement.database.is_empty());
    all.extend(settings);
    all.extend(drops);
    let mut told: Vec<String> = Vec::new();
    for statement in databases {
        let database = statement.database.clone();
        let is_last = statement.ddl.starts_with("USE ");
        all.push(statement);
        if is_last {
            let of_database = planned.iter().filter(|planned| planned.id().database == database);
            all.extend(of_database.filter_map(create));
            told.push(database);
        }
    }
    let rest = planned.iter().filter(|planned| !told.contains(&planned.id().database));
    all.extend(rest.filter_map(create));
    all
}

/// The offset without what is done of its unit: the schema does not change inside one. `read_at` is where definitions
/// were read that are ahead of it.
fn position(
    config: &Config,
    facts: &ServerFacts,
    offset: &SourceOffset,
    read_at: Option<&LogPlace>,
) -> SourceOffset {
    let ours = offset.holdfast.as_ref();
    let server = config.source_id.clone().unwrap_or_else(|| facts.identity().to_owned());
    let holdfast = HoldfastMembers {
        lineage: Some(ours.and_then(|ours| ours.lineage.clone()).unwrap_or(server)),
        epoch: ours.map_or(1, |ours| ours.epoch.max(1)),
        birth: ours.and_then(|ours| ours.birth),
        closed: ours.and_then(|ours| ours.closed.clone()),
        refresh_head: read_at.map(ToString::to_string),
        ..HoldfastMembers::default()
    };
    let place = place_of(offset);
    SourceOffset {
        file: place.file,
        pos: place.pos,
        gtids: offset.gtids.clone(),
        ts_sec: offset.ts_sec,
        server_id: offset.server_id,
        snapshot: Some(SnapshotKind::Initial),
        holdfast: Some(holdfast),
        ..SourceOffset::default()
    }
}
