//! What the columns of a table in the log are: by its definition, or by its table map alone.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::event::table_map::{ColumnMetadata, Dialect, TableMap};
use holdfast_binlog::event::{Event, FormatDescription, Query};
use holdfast_binlog::position::BinlogFile;
use holdfast_binlog::row::WireType;
use holdfast_history::ddl::{self, DdlContext, DdlErrorKind, Flavor, SqlMode};
use holdfast_history::recover::{ReplayGuard, StreamedStatement};
use holdfast_history::schema::{Column, ColumnType, JdbcType};
use holdfast_history::{Recovered, SourceOffset, TableId, Tables};
use mysql_common::collations::{Collation, CollationId};

use super::{DecodeError, Definitions, Statement, base_name, schema_text};
use crate::convert::{Charset, ColumnConverter, ConversionOptions, FailureMode, JsonForm};
use crate::error::{DdlFailure, Error};
use crate::format::json::write_string;

/// The tables whose columns are kept; more are looked up again.
const MAX_TABLES: usize = 4096;

/// The definitions as the log moves them on, and the columns of the tables met last.
#[derive(Debug)]
pub(super) struct Model {
    /// None: nothing is known but what table maps say.
    tables: Option<Tables>,
    /// SQL text that is read once the server of the log is known.
    unread: Option<(String, String)>,
    /// Where the definitions are from, if from a history.
    offset: Option<(SourceOffset, ReplayGuard)>,
    flavor: Flavor,
    dialect: Dialect,
    options: ConversionOptions,
    /// By table id of the log.
    known: HashMap<u64, Arc<LogTable>>,
}

/// The columns of a table.
#[derive(Debug)]
pub(super) struct LogTable {
    /// One per column of the table map.
    pub(super) columns: Vec<LogColumn>,
    /// The table map that this was made for.
    pub(super) map: TableMap,
    /// Whether labels are not known, so that ENUM and SET are numbers.
    numbers: bool,
}

/// A column.
#[derive(Debug)]
pub(super) struct LogColumn {
    /// Its name, where it is known.
    pub(super) name: Option<String>,
    /// `"name":`.
    pub(super) key: Vec<u8>,
    pub(super) converter: ColumnConverter,
    /// Whether a number has no sign.
    pub(super) unsigned: bool,
    /// The character set of text; none for bytes.
    pub(super) charset: Option<Charset>,
}

impl LogTable {
    /// The value as a converter of this table takes it.
    #[inline]
    pub(super) fn plain<'v>(&self, value: Value<'v>) -> Value<'v> {
        if !self.numbers {
            return value;
        }
        if let Value::Enum(index) = value {
            Value::Int32(index.into())
        } else if let Value::Set(bits) = value {
            Value::Int64(bits)
        } else {
            value
        }
    }
}

impl Model {
    pub(super) fn new(definitions: Definitions) -> Self {
        let (tables, unread, offset) = match definitions {
            Definitions::Log => (None, None, None),
            Definitions::Sql { name, text } => (Some(Tables::default()), Some((name, text)), None),
            Definitions::History { recovered, offset } => {
                let Recovered { tables, guard, .. } = *recovered;
                (Some(tables), None, Some((*offset, guard)))
            }
        };
        // A value that does not convert is an error, and a NULL is a NULL: this shows what the log holds.
        let options = ConversionOptions {
            converting_failure: FailureMode::Fail,
            value_json: JsonForm { replace_null_with_default: false, ..JsonForm::default() },
            ..ConversionOptions::default()
        };
        Self {
            tables,
            unread,
            offset,
            flavor: Flavor::MySql,
            dialect: Dialect::MySql,
            options,
            known: HashMap::new(),
        }
    }

    /// Learns who wrote the file.
    pub(super) fn server(&mut self, format: &FormatDescription) -> Result<(), DecodeError> {
        (self.flavor, self.dialect) = if format.is_mariadb() {
            (Flavor::MariaDb, Dialect::MariaDb)
        } else {
            (Flavor::MySql, Dialect::MySql)
        };
        self.known.clear();
        if let (Some((name, text)), Some(tables)) = (self.unread.take(), &mut self.tables) {
            schema_text::apply(&name, &text, self.flavor, tables)?;
        }
        Ok(())
    }

    /// Moves the definitions on by a statement of the log; `unit` is where its transaction begins.
    pub(super) fn apply(
        &mut self,
        event: &Event<'_>,
        query: &Query<'_>,
        statement: &Statement<'_>,
        unit: u64,
    ) -> Result<(), DecodeError> {
        if self.has_effect_of(event, statement, unit) {
            return Ok(());
        }
        let Some(tables) = &mut self.tables else { return Ok(()) };
        let context = DdlContext {
            database: Some(statement.database.to_string()).filter(|name| !name.is_empty()),
            sql_mode: SqlMode(query.status.sql_mode.unwrap_or_default()),
            flavor: self.flavor,
            ..DdlContext::default()
        };
        match ddl::apply_statement(statement.text(), &context, tables) {
            Ok(_) => {
                self.known.clear();
                Ok(())
            }
            // The statement is about a table of which nothing was said: its rows are decoded by their table maps.
            Err(error) if matches!(error.kind, DdlErrorKind::UnknownTable { .. }) => {
                tracing::warn!(
                    binlog_file = event.file,
                    binlog_position = event.position,
                    error = %error,
                    "statement ignored"
                );
                Ok(())
            }
            Err(error) => Err(Error::Ddl(Box::new(DdlFailure {
                file: event.file.to_owned(),
                position: event.position,
                error,
                fix: "definitions must be those at the start of the first file, or at the offset of the history",
            }))
            .into()),
        }
    }

    /// Whether the definitions are from a history that has the statement already.
    fn has_effect_of(&self, event: &Event<'_>, statement: &Statement<'_>, unit: u64) -> bool {
        let Some((offset, guard)) = &self.offset else { return false };
        let file = base_name(event.file);
        let place = StreamedStatement {
            file,
            unit_position: (self.flavor == Flavor::MariaDb).then_some(unit),
            end_position: event.end,
            ddl: statement.text(),
        };
        let is_before = match (BinlogFile::parse(file), BinlogFile::parse(&offset.file)) {
            (Ok(here), Ok(there)) if here.base() == there.base() => {
                (here.number(), event.end) <= (there.number(), offset.pos)
            }
            _ => false,
        };
        is_before || guard.is_replay(&place)
    }

    /// The columns of a table.
    pub(super) fn table(
        &mut self,
        event: &Event<'_>,
        map: &TableMap,
    ) -> Result<Arc<LogTable>, DecodeError> {
        if let Some(table) = self.known.get(&map.table_id())
            && map.same_as(table.map.body())
        {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(self.resolve(event, map)?);
        if self.known.len() >= MAX_TABLES {
            self.known.clear();
        }
        self.known.insert(map.table_id(), Arc::clone(&table));
        Ok(table)
    }

    fn resolve(&self, event: &Event<'_>, map: &TableMap) -> Result<LogTable, DecodeError> {
        let metadata =
            map.optional_metadata(self.dialect).map_err(|error| event.decode_error(error))?;
        let id = TableId::new(map.database(), map.table());
        let definition = match self.tables.as_ref().map(|tables| tables.get(&id)) {
            Some(Some(table)) if table.columns.len() == map.column_count() => Some(table),
            Some(Some(table)) => {
                return Err(DecodeError::Mismatch {
                    table: id,
                    file: event.file.to_owned(),
                    position: event.position,
                    found: map.column_count(),
                    expected: table.columns.len(),
                });
            }
            Some(None) => {
                tracing::warn!(table = %id, "no definition: decoded by what the log tells");
                None
            }
            None => None,
        };
        let nothing = ColumnMetadata::default();
        let has_labels = |index: usize| {
            let defined = definition.and_then(|table| table.columns.get(index));
            defined.is_some_and(|column| !column.enum_values.is_empty())
                || metadata.columns.get(index).is_some_and(|column| column.labels.is_some())
        };
        let numbers = map.columns().iter().enumerate().any(|(index, column)| {
            matches!(column.wire_type, WireType::Enum { .. } | WireType::Set { .. })
                && !has_labels(index)
        });
        let mut columns = Vec::with_capacity(map.column_count());
        for (index, wire) in map.columns().iter().enumerate() {
            let metadata = metadata.columns.get(index).unwrap_or(&nothing);
            let defined = definition.and_then(|table| table.columns.get(index));
            let name = match defined {
                Some(column) => Some(column.name.clone()),
                None => metadata.name.as_deref().map(str::to_owned),
            };
            let label = name.clone().unwrap_or_else(|| format!("@{}", index + 1));
            let is_labelled =
                matches!(wire.wire_type, WireType::Enum { .. } | WireType::Set { .. });
            let column = match defined {
                Some(column)
                    if column.column_type() != ColumnType::Unknown && !(is_labelled && numbers) =>
                {
                    column.clone()
                }
                _ => wire_column(label, wire.wire_type, metadata, numbers),
            };
            columns.push(self.column(index, name, &column));
        }
        Ok(LogTable { columns, map: map.clone(), numbers })
    }

    fn column(&self, index: usize, name: Option<String>, column: &Column) -> LogColumn {
        let mut key = Vec::new();
        write_string(&column.name, &mut key);
        key.push(b':');
        let mut warnings = Vec::new();
        let converter = ColumnConverter::new(index, column, &self.options, &mut warnings);
        for warning in warnings {
            tracing::warn!(warning = %warning, "column not as defined");
        }
        let charset = column
            .column_type()
            .has_charset()
            .then(|| column.charset.as_deref().and_then(Charset::named).unwrap_or(Charset::UTF8));
        LogColumn { name, key, converter, unsigned: column.is_unsigned(), charset }
    }
}

/// The column that a table map describes. It may be NULL: a zero date then is null, not a day of 1970.
fn wire_column(
    name: String,
    wire: WireType,
    metadata: &ColumnMetadata<'_>,
    numbers: bool,
) -> Column {
    let unsigned = metadata.unsigned == Some(true);
    let charset = charset_of(metadata);
    let is_binary = charset.as_deref() == Some("binary");
    let (type_name, length, scale) = match wire {
        WireType::Tiny => ("TINYINT", None, None),
        WireType::Short => ("SMALLINT", None, None),
        WireType::Int24 => ("MEDIUMINT", None, None),
        WireType::Long => ("INT", None, None),
        WireType::LongLong => ("BIGINT", None, None),
        WireType::Float => ("FLOAT", None, None),
        WireType::Double => ("DOUBLE", None, None),
        WireType::NewDecimal { precision, scale } => {
            ("DECIMAL", Some(precision.into()), Some(scale.into()))
        }
        WireType::Null => ("CHAR", None, None),
        WireType::Timestamp => ("TIMESTAMP", None, None),
        WireType::Timestamp2 { fsp } => ("TIMESTAMP", Some(fsp.into()), None),
        WireType::Date => ("DATE", None, None),
        WireType::Time => ("TIME", None, None),
        WireType::Time2 { fsp } => ("TIME", Some(fsp.into()), None),
        WireType::DateTime => ("DATETIME", None, None),
        WireType::DateTime2 { fsp } => ("DATETIME", Some(fsp.into()), None),
        WireType::Year => ("YEAR", None, None),
        WireType::Bit { bits } => ("BIT", Some(bits.into()), None),
        WireType::VarChar { max_bytes } | WireType::VarCharCompressed { max_bytes } => {
            (if is_binary { "VARBINARY" } else { "VARCHAR" }, Some(max_bytes.into()), None)
        }
        WireType::String { max_bytes } => {
            (if is_binary { "BINARY" } else { "CHAR" }, Some(max_bytes.into()), None)
        }
        WireType::Blob { .. } | WireType::BlobCompressed { .. } => {
            (if is_binary { "BLOB" } else { "TEXT" }, None, None)
        }
        WireType::Json { .. } => ("JSON", None, None),
        WireType::Geometry { .. } => ("GEOMETRY", None, None),
        WireType::Vector { .. } => ("VECTOR", None, None),
        WireType::Enum { .. } if numbers => ("INT UNSIGNED", None, None),
        WireType::Set { .. } if numbers => ("BIGINT UNSIGNED", None, None),
        WireType::Enum { .. } => ("ENUM", None, None),
        WireType::Set { .. } => ("SET", None, None),
        // A table with such a column has no decoding plan.
        WireType::Unknown { .. } | _ => ("UNKNOWN", None, None),
    };
    let type_name = if unsigned { format!("{type_name} UNSIGNED") } else { type_name.to_owned() };
    let jdbc_type = JdbcType::from_type_name(&type_name);
    let mut column = Column::new(name, type_name, jdbc_type);
    column.length = length;
    column.scale = scale;
    if let (false, Some(labels)) = (numbers, &metadata.labels) {
        let charset = charset.as_deref().and_then(Charset::named).unwrap_or(Charset::UTF8);
        column.enum_values = labels
            .iter()
            .map(|label| format!("'{}'", charset.decode(label).replace('\'', "''")))
            .collect();
    }
    column.charset = charset.filter(|_| !is_binary);
    column
}

/// The character set that a table map gives a column, if it is one that can be decoded.
fn charset_of(metadata: &ColumnMetadata<'_>) -> Option<String> {
    let id = u16::try_from(metadata.collation?).ok()?;
    let name = Collation::resolve(CollationId::from(id)).charset().to_owned();
    Charset::named(&name).map(|_| name)
}
