//! Binlog files as text: one JSON line per row, a listing for people, or counts. No server, no engine.
//!
//! ```text
//! files ──BinlogFileReader──▶ EventStream ──Event──▶ Decoder ──▶ json | text | count ──▶ output
//!                                                      │ │                                  ▲
//!                          tables: names and types of columns └─ rows ──▶ RowPrinter, on all threads
//! ```
//!
//! Names and types of columns come from definitions (SQL text, or a schema history at an offset), which the DDL in the
//! log moves on; without a definition from the table maps of the log itself, as far as they tell.

mod count;
mod json;
mod rows;
mod schema_text;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod workers;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_binlog::event::mariadb::MariaDbGtidEvent;
use holdfast_binlog::event::rows::RowsEvent;
use holdfast_binlog::event::table_map::TableMap;
use holdfast_binlog::event::{Event, EventData, Query};
use holdfast_binlog::file::BinlogFileReader;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_history::codec::RecordLine;
use holdfast_history::ddl::{self, DdlContext, DdlError, StatementClass};
use holdfast_history::offset::OffsetError;
use holdfast_history::recover::RecoverOptions;
use holdfast_history::store::HistoryStore;
use holdfast_history::{Recovered, SourceOffset, TableId, recover_store};

use crate::assemble::Nothing;
use crate::charset::decode_statement;
use crate::error::Error;
use crate::events::Events;
use count::Counter;
use rows::{Image, ValueError};
use tables::Model;
use workers::{Printing, Workers};

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
    /// How many threads work: this one, which reads, and others that decode and print rows with it. What is printed is
    /// the same, in the order of the log.
    pub threads: NonZero<usize>,
}

impl Options {
    /// Prints everything, on this thread.
    #[must_use]
    pub const fn new(format: Format) -> Self {
        Self { format, start_position: None, stop_position: None, threads: NonZero::<usize>::MIN }
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
        if !sources.contains(&*record.source) {
            sources.insert(record.source.clone().into_owned());
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
    // Counting looks at no values, and there is nothing to share.
    let others = match options.format {
        Format::Json | Format::Text => options.threads.get() - 1,
        Format::Count => 0,
    };
    let result = std::thread::scope(|scope| {
        let printing =
            Printing::new(options.format, output, Workers::start(scope, others, options.format));
        let mut decoder = Decoder::new(definitions, options, printing);
        let decoded = decoder.files(inputs);
        if matches!(decoded, Err(DecodeError::Output(_))) {
            return decoded;
        }
        match (decoded, decoder.end()) {
            (Err(error), Err(DecodeError::Output(_))) => Err(error),
            // What was found while printing is before the place that decoding had reached.
            (_, Err(error)) => Err(error),
            (decoded, Ok(())) => decoded,
        }
    });
    match result {
        Err(DecodeError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Goes through files: finds events, follows transactions and definitions, prints all but rows, and has those printed.
struct Decoder<W> {
    options: Options,
    printing: Printing<W>,
    counter: Counter,
    model: Model,
    unit: Unit,
    /// The name of the file that the log says it is in.
    file: Arc<str>,
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
    fn new(definitions: Definitions, options: Options, printing: Printing<W>) -> Self {
        Self {
            options,
            printing,
            counter: Counter::default(),
            model: Model::new(definitions),
            unit: Unit::default(),
            file: Arc::from(""),
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
        if self.options.format == Format::Count {
            self.counter.end_file(base_name(name), self.printing.text());
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
        let mut log = Events::new(EventStream::new(name, StreamOptions::default()));
        loop {
            let position = reader.position();
            if position >= stop {
                return Ok(());
            }
            let Some(bytes) = reader.next_event()? else { return Ok(()) };
            let shown = position >= start;
            let event = log.decode(bytes)?;
            self.event(&event, shown)?;
            if shown {
                self.counter.add_bytes(event.header.event_size.into());
            }
            while let Some(inner) = log.inner() {
                self.event(&inner?, shown)?;
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
            let out = self.printing.text();
            match self.options.format {
                Format::Json => {
                    if let Some(statement) = statement.as_ref().filter(|sql| !sql.is_control()) {
                        json::statement(event, self.unit.gtid(), statement, out);
                    }
                }
                Format::Text => text::event(event, statement.as_ref(), out),
                Format::Count => self.counter.event(event, begins),
            }
            if let EventData::Rows { rows, table } = &event.data {
                self.rows(event, rows, table)?;
            }
            self.printing.print_if_full()?;
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
        let kind = rows.kind();
        if self.options.format == Format::Count {
            let mut reader = rows.rows(map).map_err(|error| event.decode_error(error))?;
            let count = self.counter.rows(kind);
            while reader.read_into(&mut Nothing).map_err(|error| event.row_error(map, error))? {
                *count += 1;
            }
            return Ok(());
        }
        let table = self.model.table(event, map)?;
        let shared = match self.options.format {
            Format::Json => {
                let out = self.printing.text();
                Some(json::begin_rows(event, self.unit.gtid(), kind, map, out))
            }
            Format::Text | Format::Count => None,
        };
        if *self.file != *event.file {
            self.file = Arc::from(event.file);
        }
        self.printing.rows(event, &self.file, rows, &table, shared)
    }

    /// Writes what is left.
    fn end(&mut self) -> Result<(), DecodeError> {
        if self.options.format == Format::Count {
            self.counter.total(self.printing.text());
        }
        self.printing.end()
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
