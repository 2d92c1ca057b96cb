//! Binlog files as text: one JSON line per row, a listing for people, or counts. No server, no engine.
//!
//! ```text
//! files ──BinlogFileReader──▶ EventStream ──Event──▶ Decoder ──▶ json | text | count ──▶ output
//!                                                      │
//!                                          tables: names and types of columns
//! ```
//!
//! Names and types of columns come from definitions (SQL text, or a schema history at an offset), which the DDL in the
//! log moves on; without a definition from the table maps of the log itself, as far as they tell.

mod count;
mod json;
mod schema_text;
mod tables;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use holdfast_binlog::Value;
use holdfast_binlog::event::mariadb::MariaDbGtidEvent;
use holdfast_binlog::event::rows::{RowsEvent, RowsKind};
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::event::{Event, EventData, PayloadReader, Query};
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::row::{Row, RowError, RowImage, Side};
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::value::JsonStyle;
use holdfast_binlog::wire::DecodeError as DecodeFailure;
use holdfast_history::codec::RecordLine;
use holdfast_history::ddl::{self, DdlContext, DdlError, StatementClass};
use holdfast_history::offset::OffsetError;
use holdfast_history::recover::RecoverOptions;
use holdfast_history::store::HistoryStore;
use holdfast_history::{Recovered, SourceOffset, TableId, recover_store};

use crate::assemble::Nothing;
use crate::charset::decode_statement;
use crate::convert::ConvertError;
use crate::error::{ConvertFailed, Error};
use count::Counter;
use json::JsonPrinter;
use tables::{LogTable, Model};
use text::TextPrinter;

/// How the log is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per row and per statement, each on a line.
    Json,
    /// A listing of all events for people, like `mysqlbinlog -v --base64-output=DECODE-ROWS`.
    Text,
    /// One line per file and a total: bytes, events, transactions and rows. Values are not looked at.
    Count,
}

/// What is printed, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How.
    pub format: Format,
    /// Print from the first event at this offset or behind it, bytes, in the first file. What is before is decoded all
    /// the same: its table maps and DDL are needed.
    pub start_position: Option<u64>,
    /// Stop before the first event at this offset or behind it, bytes, in the last file.
    pub stop_position: Option<u64>,
}

impl Options {
    /// Prints everything.
    #[must_use]
    pub const fn new(format: Format) -> Self {
        Self { format, start_position: None, stop_position: None }
    }
}

/// A binlog file.
pub enum Input {
    /// On disk.
    File(PathBuf),
    /// From anywhere, such as standard input.
    Reader {
        /// Name, for what is printed and for errors.
        name: String,
        /// The bytes.
        reader: Box<dyn Read>,
    },
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Reader { name, .. } => {
                f.debug_struct("Reader").field("name", name).finish_non_exhaustive()
            }
        }
    }
}

/// Where names and types of columns come from.
#[derive(Debug)]
pub enum Definitions {
    /// From the table maps alone.
    Log,
    /// From the statements of an SQL text, such as a dump without data, as of the start of the log.
    Sql {
        /// Name of the text, for errors.
        name: String,
        /// The statements, each ended by `;`.
        text: String,
    },
    /// From a schema history, as of an offset. Statements of the log up to there are not applied again.
    History {
        /// What the history says.
        recovered: Box<Recovered>,
        /// The offset.
        offset: Box<SourceOffset>,
    },
}

impl Definitions {
    /// Recovers the definitions at `offset`, the JSON of a source offset, from a history that holds the records of one
    /// source, or from those of the source `server` in it (its `topic.prefix`).
    ///
    /// # Errors
    ///
    /// [`DecodeError::Offset`], [`DecodeError::History`], and [`DecodeError::Log`] for a history that can't be read.
    pub async fn from_history(
        store: &dyn HistoryStore,
        server: Option<&str>,
        offset: &str,
    ) -> Result<Self, DecodeError> {
        let offset = SourceOffset::from_json(offset)?;
        let server = match server {
            Some(server) => server.to_owned(),
            None => only_source(store).await?,
        };
        let context = DdlContext::default();
        let recovered = recover_store(store, &server, &offset, &RecoverOptions::new(&context))
            .await
            .map_err(Error::from)?;
        Ok(Self::History { recovered: Box::new(recovered), offset: Box::new(offset) })
    }
}

/// The source that all records of a history are of.
async fn only_source(store: &dyn HistoryStore) -> Result<String, DecodeError> {
    let mut sources = BTreeSet::new();
    let mut note = |_: u64, record: &RecordLine<'_>| {
        if !sources.contains(&record.source) {
            sources.insert(record.source.clone());
        }
        Ok(())
    };
    store.read(&mut note).await.map_err(Error::from)?;
    let location = store.location();
    let what = match (sources.pop_first(), sources.is_empty()) {
        (Some(only), true) => return Ok(only),
        (None, _) => "holds no records".to_owned(),
        (Some(first), false) => {
            let mut names = first;
            for source in sources {
                names.push_str(", ");
                names.push_str(&source);
            }
            format!("holds records of several sources ({names}): name one")
        }
    };
    Err(DecodeError::History { location, what })
}

/// Why decoding ended before the end of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The log, or the history, can't be read or decoded.
    #[error(transparent)]
    Log(#[from] Error),
    /// Rows do not fit the definition of their table.
    #[error(
        "rows of {table} in {file} at {position} have {found} columns and their definition has {expected}; definitions \
         must be those at the start of the first file, or at the offset of the history"
    )]
    Mismatch {
        /// The table.
        table: TableId,
        /// Binlog file.
        file: String,
        /// Position of the rows event, bytes.
        position: u64,
        /// Columns of the rows.
        found: usize,
        /// Columns of the definition.
        expected: usize,
    },
    /// A statement of the SQL text with the definitions can't be understood.
    #[error("{name}, line {line}: the statement can't be understood")]
    Schema {
        /// Name of the text.
        name: String,
        /// Line on which the statement begins, from 1.
        line: usize,
        /// What is wrong with it.
        source: Box<DdlError>,
    },
    /// The offset for the history is none.
    #[error("the offset can't be read")]
    Offset(#[from] OffsetError),
    /// The history does not say what is asked for.
    #[error("the schema history {location} {what}")]
    History {
        /// Where it is.
        location: String,
        /// What is wrong with it.
        what: String,
    },
    /// The output could not be written.
    #[error("can't write the output")]
    Output(#[source] io::Error),
}

impl DecodeError {
    /// The message with all its causes, on one line.
    #[must_use]
    pub fn chain(&self) -> String {
        if let Self::Log(error) = self {
            return error.chain();
        }
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}

impl From<holdfast_binlog::Error> for DecodeError {
    fn from(error: holdfast_binlog::Error) -> Self {
        Self::Log(error.into())
    }
}

/// Prints the logs in `inputs`, one after the other, to `output`. It is written in large pieces; a reader that closes
/// it (`head`) ends the work without an error.
///
/// # Errors
///
/// [`DecodeError`]. What came before the place of the error is printed.
pub fn decode<W: Write>(
    inputs: Vec<Input>,
    definitions: Definitions,
    options: Options,
    output: W,
) -> Result<(), DecodeError> {
    let mut decoder = Decoder::new(definitions, options, output);
    let decoded = decoder.files(inputs);
    let flushed = match decoded {
        Err(DecodeError::Output(_)) => Ok(()),
        Ok(()) | Err(_) => decoder.end(),
    };
    match decoded.and(flushed) {
        Err(DecodeError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The output behind a buffer.
struct Output<W> {
    buffer: Vec<u8>,
    writer: W,
}

/// Bytes that are gathered before they are written.
const OUTPUT_BUFFER: usize = 256 << 10;

impl<W: Write> Output<W> {
    fn write_if_full(&mut self) -> Result<(), DecodeError> {
        if self.buffer.len() < OUTPUT_BUFFER { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> Result<(), DecodeError> {
        let result = self.writer.write_all(&self.buffer);
        self.buffer.clear();
        result.map_err(DecodeError::Output)
    }

    fn flush(&mut self) -> Result<(), DecodeError> {
        self.write()?;
        self.writer.flush().map_err(DecodeError::Output)
    }
}

enum Printer {
    Json(JsonPrinter),
    Text(TextPrinter),
    Count(Box<Counter>),
}

/// Goes through files.
struct Decoder<W> {
    options: Options,
    output: Output<W>,
    printer: Printer,
    model: Model,
    unit: Unit,
    row: Row<'static>,
}

/// A statement of the log.
struct Statement<'a> {
    class: StatementClass,
    text: Cow<'a, str>,
    /// The session's database, empty for none.
    database: Cow<'a, str>,
}

impl<'a> Statement<'a> {
    fn new(query: &Query<'a>) -> Self {
        let text = decode_statement(query.sql, query.status.charset.map(|charset| charset.client));
        let class = ddl::classify(trimmed(&text));
        Self { class, text, database: String::from_utf8_lossy(query.schema) }
    }

    fn text(&self) -> &str {
        trimmed(&self.text)
    }

    fn is_xa_start(&self) -> bool {
        self.class == StatementClass::Xa
            && self.text().get(..8).is_some_and(|start| start.eq_ignore_ascii_case("XA START"))
    }

    /// Whether it only begins or ends transactions, or a part of one.
    const fn is_control(&self) -> bool {
        matches!(
            self.class,
            StatementClass::Begin
                | StatementClass::Commit
                | StatementClass::Rollback
                | StatementClass::Savepoint
                | StatementClass::Xa
        )
    }
}

fn trimmed(sql: &str) -> &str {
    sql.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

impl<W: Write> Decoder<W> {
    fn new(definitions: Definitions, options: Options, writer: W) -> Self {
        let printer = match options.format {
            Format::Json => Printer::Json(JsonPrinter::default()),
            Format::Text => Printer::Text(TextPrinter),
            Format::Count => Printer::Count(Box::default()),
        };
        let buffer = Vec::with_capacity(OUTPUT_BUFFER + OUTPUT_BUFFER / 4);
        Self {
            options,
            output: Output { buffer, writer },
            printer,
            model: Model::new(definitions),
            unit: Unit::default(),
            row: Row::new(),
        }
    }

    fn files(&mut self, inputs: Vec<Input>) -> Result<(), DecodeError> {
        let last = inputs.len().saturating_sub(1);
        for (index, input) in inputs.into_iter().enumerate() {
            let start = self.options.start_position.filter(|_| index == 0).unwrap_or(0);
            let stop = self.options.stop_position.filter(|_| index == last).unwrap_or(u64::MAX);
            match input {
                Input::File(path) => {
                    let name = path.display().to_string();
                    let file = File::open(&path).map_err(|source| {
                        let file = name.clone();
                        Error::from(holdfast_binlog::Error::Io { file, position: 0, source })
                    })?;
                    self.file(&name, file, start, stop)?;
                }
                Input::Reader { name, reader } => self.file(&name, reader, start, stop)?,
            }
        }
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        name: &str,
        reader: R,
        start: u64,
        stop: u64,
    ) -> Result<(), DecodeError> {
        let result = self.events(name, reader, start, stop);
        if let Printer::Count(counter) = &mut self.printer {
            counter.end_file(base_name(name), &mut self.output.buffer);
        }
        result
    }

    fn events<R: Read>(
        &mut self,
        name: &str,
        reader: R,
        start: u64,
        stop: u64,
    ) -> Result<(), DecodeError> {
        let mut reader = BinlogFileReader::new(reader, name)?;
        let mut stream = EventStream::new(name, StreamOptions::default());
        let mut payloads = PayloadReader::default();
        loop {
            let position = reader.position();
            if position >= stop {
                return Ok(());
            }
            let Some(bytes) = reader.next_event()? else { return Ok(()) };
            let shown = position >= start;
            let event = stream.decode(bytes)?;
            self.event(&event, shown)?;
            if let (Printer::Count(counter), true) = (&mut self.printer, shown) {
                counter.add_bytes(event.header.event_size.into());
            }
            if let EventData::TransactionPayload(payload) = event.data {
                let span = event.span();
                payloads.open(&event, &payload)?;
                while let Some(bytes) = payloads.next_event()? {
                    let event = stream.decode_nested(bytes, span)?;
                    self.event(&event, shown)?;
                }
            }
        }
    }

    /// Prints an event if it is to be shown, and learns from it.
    fn event(&mut self, event: &Event<'_>, shown: bool) -> Result<(), DecodeError> {
        let statement = if let EventData::Query(query) = &event.data {
            Some(Statement::new(query))
        } else {
            None
        };
        if let EventData::FormatDescription(format) = event.data {
            self.model.server(format)?;
        }
        let begins = self.unit.before(event, statement.as_ref());
        if shown {
            let out = &mut self.output.buffer;
            match &mut self.printer {
                Printer::Json(printer) => {
                    if let Some(statement) = statement.as_ref().filter(|sql| !sql.is_control()) {
                        printer.statement(event, self.unit.gtid(), statement, out);
                    }
                }
                Printer::Text(printer) => printer.event(event, statement.as_ref(), out),
                Printer::Count(counter) => counter.event(event, begins),
            }
            if let EventData::Rows { rows, table } = &event.data {
                self.rows(event, rows, table)?;
            }
            self.output.write_if_full()?;
        }
        if let (Some(statement), EventData::Query(query)) = (&statement, &event.data)
            && matches!(statement.class, StatementClass::Ddl)
        {
            self.model.apply(event, query, statement, self.unit.position)?;
        }
        self.unit.after(event, statement.as_ref());
        Ok(())
    }

    fn rows(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Result<(), DecodeError> {
        let mut reader = rows.rows(map).map_err(|error| event.decode_error(error))?;
        let failed = |error: RowError| DecodeError::from(event.row_error(map, error));
        if let Printer::Count(counter) = &mut self.printer {
            let count = counter.rows(rows.kind());
            while reader.read_into(&mut Nothing).map_err(failed)? {
                *count += 1;
            }
            return Ok(());
        }
        let table = self.model.table(event, map)?;
        let kind = rows.kind();
        if let Printer::Json(printer) = &mut self.printer {
            printer.begin_rows(event, self.unit.gtid(), kind, map);
        }
        let mut row = std::mem::take(&mut self.row).recycle();
        let mut index = 0_u64;
        while reader.read(&mut row).map_err(failed)? {
            if index == 0 && kind == RowsKind::PartialUpdate && lacks_documents(&row) {
                tracing::warn!(
                    binlog_file = event.file,
                    binlog_position = event.position,
                    table = %TableId::new(map.database(), map.table()),
                    "changes of JSON documents are left out: the before images don't carry the documents"
                );
            }
            let start = self.output.buffer.len();
            if let Err(error) = self.row(&table, map, kind, index, &row) {
                self.output.buffer.truncate(start);
                return Err(error.locate(event, map, index));
            }
            self.output.write_if_full()?;
            index += 1;
        }
        self.row = row.recycle();
        Ok(())
    }

    fn row(
        &mut self,
        table: &LogTable,
        map: &TableMap,
        kind: RowsKind,
        index: u64,
        row: &Row<'_>,
    ) -> Result<(), ValueError> {
        let patched = match kind {
            RowsKind::PartialUpdate => patched_documents(row)?,
            RowsKind::Write | RowsKind::Update | RowsKind::Delete => Vec::new(),
        };
        let has_before = kind != RowsKind::Write;
        let has_after = kind != RowsKind::Delete;
        let before = has_before.then_some(Image { image: &row.before, patched: &[] });
        let after = has_after.then_some(Image { image: &row.after, patched: &patched });
        let out = &mut self.output.buffer;
        match &self.printer {
            Printer::Json(printer) => printer.row(table, index, before, after, out),
            Printer::Text(printer) => printer.row(table, map, before, after, out),
            Printer::Count(_) => Ok(()),
        }
    }

    /// Writes what is left.
    fn end(&mut self) -> Result<(), DecodeError> {
        if let Printer::Count(counter) = &self.printer {
            counter.total(&mut self.output.buffer);
        }
        self.output.flush()
    }
}

/// One side of a row, with the JSON documents that a partial update makes of the other side.
#[derive(Debug, Clone, Copy)]
struct Image<'i, 'r> {
    image: &'i RowImage<'r>,
    patched: &'i [PatchedDocument],
}

impl<'i, 'r: 'i> Image<'i, 'r> {
    fn get(self, column: usize) -> Option<Value<'i>> {
        let value = self.image.get(column)?;
        if !matches!(value, Value::JsonDiffs(_)) {
            return Some(value);
        }
        let document = self.patched.iter().find(|document| document.column == column);
        document.map(|document| Value::JsonText(&document.text))
    }
}

/// A JSON document that a partial update made.
#[derive(Debug)]
struct PatchedDocument {
    column: usize,
    /// The document as text.
    text: Vec<u8>,
}

/// The documents that the differences of a partial update make of those in the before image. Where that does not carry
/// the document (`binlog_row_image=MINIMAL`), the new one can't be told.
fn patched_documents(row: &Row<'_>) -> Result<Vec<PatchedDocument>, ValueError> {
    let mut documents = Vec::new();
    for (column, value) in row.after.iter() {
        let Value::JsonDiffs(differences) = value else { continue };
        let before = match row.before.get(column) {
            None => continue,
            Some(Value::Json(before)) => before,
            Some(_) => {
                let error = DecodeFailure::Empty { field: "JSON document in the before image" };
                return Err(ValueError::Decode(Side::After, column, error));
            }
        };
        let mut text = Vec::new();
        differences
            .write_text(before, JsonStyle::Debezium, &mut text)
            .map_err(|error| ValueError::Decode(Side::After, column, error))?;
        documents.push(PatchedDocument { column, text });
    }
    Ok(documents)
}

/// Whether there are changes of documents that the before image does not carry.
fn lacks_documents(row: &Row<'_>) -> bool {
    row.after.iter().any(|(column, value)| {
        matches!(value, Value::JsonDiffs(_)) && row.before.get(column).is_none()
    })
}

/// Why a value could not be printed.
enum ValueError {
    Convert(ConvertError),
    /// The bytes of a column, zero-based.
    Decode(Side, usize, DecodeFailure),
}

impl ValueError {
    #[cold]
    fn locate(self, event: &Event<'_>, map: &TableMap, row: u64) -> DecodeError {
        match self {
            Self::Convert(source) => Error::Convert(Box::new(ConvertFailed {
                table: TableId::new(map.database(), map.table()),
                file: event.file.to_owned(),
                position: event.position,
                source,
            }))
            .into(),
            Self::Decode(side, column, error) => {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                event.row_error(map, RowError { row, side, column: Some(column), error }).into()
            }
        }
    }
}

/// The transaction, or the statement that stands alone, that the log is in.
#[derive(Debug, Default)]
struct Unit {
    state: State,
    /// Empty without one.
    gtid: String,
    /// Where it begins, bytes.
    position: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// Its GTID has come: a BEGIN or a statement that stands alone follows.
    Announced,
    Open,
}

impl Unit {
    /// Before an event is printed. Whether a unit begins with it.
    fn before(&mut self, event: &Event<'_>, statement: Option<&Statement<'_>>) -> bool {
        use std::fmt::Write as _;

        let begins = match (&event.data, statement) {
            (EventData::FormatDescription(_), _) => {
                self.close();
                false
            }
            (EventData::Gtid(gtid), _) => {
                self.gtid.clear();
                if let Some(gtid) = gtid.gtid {
                    // Writing to a String does not fail.
                    let _ = write!(self.gtid, "{gtid}");
                }
                self.state = State::Announced;
                true
            }
            (EventData::MariaDbGtid(gtid), _) => {
                self.gtid.clear();
                let _ = write!(self.gtid, "{}", gtid.gtid);
                let alone = gtid.flags & MariaDbGtidEvent::STANDALONE != 0;
                self.state = if alone { State::Announced } else { State::Open };
                true
            }
            (_, Some(statement)) => {
                let begins = self.state == State::Closed
                    && !matches!(
                        statement.class,
                        StatementClass::Commit
                            | StatementClass::Rollback
                            | StatementClass::Savepoint
                    );
                if statement.class == StatementClass::Begin || statement.is_xa_start() {
                    self.state = State::Open;
                }
                begins
            }
            (_, None) => false,
        };
        if begins {
            self.position = event.position;
        }
        begins
    }

    /// After it.
    fn after(&mut self, event: &Event<'_>, statement: Option<&Statement<'_>>) {
        let ends = match (&event.data, statement) {
            (EventData::Xid(_) | EventData::XaPrepare(_), _) => true,
            (_, Some(statement)) => match statement.class {
                StatementClass::Commit | StatementClass::Rollback => true,
                StatementClass::Begin
                | StatementClass::Savepoint
                | StatementClass::Xa
                | StatementClass::Dml
                | StatementClass::Truncate
                | StatementClass::Filtered
                | StatementClass::Ddl => self.state == State::Announced,
            },
            (_, None) => false,
        };
        if ends {
            self.close();
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.gtid.clear();
    }

    fn gtid(&self) -> Option<&str> {
        (!self.gtid.is_empty()).then_some(&*self.gtid)
    }
}

/// A file's name without its folders: what the server calls it.
fn base_name(name: &str) -> &str {
    Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name)
}
