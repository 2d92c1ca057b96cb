//! Tables as the stream needs them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use holdfast_binlog::Value;
use holdfast_binlog::event::rows::RowsKind;
use holdfast_binlog::row::Row;
use holdfast_history::{ShapeMismatch, Table, TableId};

use crate::config::Config;
use crate::convert::TableConverter;
use crate::error::Error;
use crate::format::connect_schema::TableSchemas;

/// A table as the stream needs it at one schema version.
#[derive(Debug)]
pub(crate) struct TableContext {
    pub(crate) id: Arc<TableId>,
    pub(crate) topic: Arc<str>,
    pub(crate) converter: TableConverter,
    pub(crate) schemas: TableSchemas,
    /// Indexes of the key columns.
    pub(super) key: Vec<usize>,
    pub(super) table: Arc<Table>,
    /// Whether it was told that the log has another key.
    pub(super) key_told: AtomicBool,
    /// Whether it was told that the log lacks values of generated columns.
    pub(super) computed_told: AtomicBool,
}

/// What a wire table id stands for.
#[derive(Debug, Clone)]
pub(super) enum Resolved {
    /// Not captured: rows are counted and not looked at.
    Ignored,
    /// Captured, and the definition is known.
    Captured(Arc<TableContext>),
    /// Captured, and the definition does not fit the log.
    Unfit(Arc<TableContext>, Arc<ShapeMismatch>),
    /// Captured, and there is no definition.
    Unknown(TableId),
    /// Captured; definitions come from the log, which does not tell this one, and the history has none that fits.
    Untold(TableId),
}

impl TableContext {
    pub(crate) fn new(table: Arc<Table>, config: &Config) -> Result<Self, Error> {
        let id = Arc::new(table.id.clone());
        let too_complex = |error| Error::Start(format!("a pattern gives up on {id}: {error}"));
        let topic = config.topics.data(&id).map_err(too_complex)?;
        let selection = config.column_selection(&table);
        let naming = config.field_naming(&topic);
        let (converter, warnings) =
            TableConverter::with_naming(&table, &config.conversion, &selection, &naming);
        for warning in warnings {
            tracing::warn!(table = %id, warning = %warning, "column not as defined");
        }
        if let Some(raw) = &topic.replaced {
            tracing::warn!(table = %id, topic = topic.name, raw, "characters of the topic name were replaced");
        }
        let schemas = TableSchemas::new(&topic, &converter, config);
        Ok(Self {
            schemas,
            topic: topic.name.into(),
            id,
            converter,
            key: selection.key,
            table,
            key_told: AtomicBool::new(false),
            computed_told: AtomicBool::new(false),
        })
    }

    /// Its definition.
    pub(crate) const fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(super) fn key_changed(&self, kind: RowsKind, row: &Row<'_>) -> bool {
        matches!(kind, RowsKind::Update | RowsKind::PartialUpdate)
            && self.key.iter().any(|column| is_changed(row, *column))
    }

    pub(super) fn unchanged(&self, row: &Row<'_>) -> bool {
        self.converter.value_columns().all(|column| {
            let index = column.index();
            let (before, after) = (row.before.get_ref(index), row.after.get_ref(index));
            is_absent(before, after) || column.is_same(before, after)
        })
    }
}

/// Whether a column has another value after an update.
fn is_changed(row: &Row<'_>, column: usize) -> bool {
    let (before, after) = (row.before.get_ref(column), row.after.get_ref(column));
    !is_absent(before, after) && before != after
}

/// Whether an image lacks a column. It is a generated one, whose value follows from the others.
const fn is_absent(before: Option<&Value<'_>>, after: Option<&Value<'_>>) -> bool {
    before.is_none() || after.is_none()
}
