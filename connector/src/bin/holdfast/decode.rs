//! `holdfast decode`: binlog files as JSON lines, as a listing, or as counts.

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueEnum};
use holdfast_binlog::{Error as BinlogError, ErrorClass};
use holdfast_connector::Error;
use holdfast_connector::decode::{self as log, DecodeError, Definitions, Input, Options};
use holdfast_history::store::{FileHistoryStore, HistoryStore, ObjectUrl, OpendalHistoryStore};

use crate::exit::{BUG, DATA, Failure, STORAGE, USAGE};

/// What the long help says beside the arguments.
const NOTES: &str = "\
JSON: a row is {file, pos, row, ts_ms, server_id, gtid, op, database, table, before, after}, op being c, u or d; a
statement is {file, pos, ts_ms, server_id, gtid, kind, database, statement}. Values are those of change records with
Debezium's default modes, except that a NULL is never replaced by a default and that a value which can't be converted is
an error. Columns that a row image does not carry are left out.

Without a definition, names of columns come from the log where it has them (binlog_row_metadata=FULL), else they are @1,
@2 and so on. Numbers are signed and text is UTF-8 unless the log says otherwise; ENUM and SET without labels are numbers.

Exit codes: 0 done, also when the reader of the output closed it; 2 usage, or a file that can't be opened; 3 a log, a
statement or a history that can't be decoded, after what comes before was printed; 7 a read or write that failed.";

/// `holdfast decode`.
#[derive(Debug, Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct DecodeArguments {
    /// Binlog files in the order of the log; `-` is standard input.
    #[arg(required = true, value_name = "BINLOG_FILE|-")]
    files: Vec<PathBuf>,
    /// SQL statements with the definitions of the tables at the start of the first file, such as a dump without data.
    /// `USE` says which database they are in. DDL in the log moves the definitions on.
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    schema: Option<PathBuf>,
    /// A schema history to take the definitions from, as of `--offset`: a file, or a URL as in `holdfast.history.url`.
    #[arg(long, value_name = "FILE_OR_URL", requires = "offset")]
    history: Option<PathBuf>,
    /// The place in the log that the definitions are needed for: an offset, such as {"file":"binlog.000003","pos":4}.
    #[arg(long, value_name = "JSON", requires = "history")]
    offset: Option<String>,
    /// The topic.prefix of the history's records to use, if it holds those of several sources.
    #[arg(long, value_name = "NAME", requires = "history")]
    server: Option<String>,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
    /// Print from the first event at this byte offset or behind it, in the first file.
    #[arg(long, value_name = "N")]
    start_position: Option<u64>,
    /// Stop before the first event at this byte offset or behind it, in the last file.
    #[arg(long, value_name = "N")]
    stop_position: Option<u64>,
    /// Threads that decode. The output is the same. Default: one for each core.
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line for each row, and for each statement that is more than the begin or end of a transaction.
    Json,
    /// All events, for people.
    Text,
    /// A line for each file and a total: bytes, events, transactions and rows.
    Count,
}

/// Prints the files.
pub(crate) async fn decode(arguments: DecodeArguments) -> Result<(), Failure> {
    let definitions = match (&arguments.schema, &arguments.history, &arguments.offset) {
        (Some(path), _, _) => {
            let name = path.display().to_string();
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::new(USAGE, format!("cannot read {name}: {error}")))?;
            Definitions::Sql { name, text }
        }
        (None, Some(path), Some(offset)) => {
            let store = open_history(path)?;
            Definitions::from_history(&*store, arguments.server.as_deref(), offset)
                .await
                .map_err(failure)?
        }
        (None, _, _) => Definitions::Log,
    };
    let inputs = arguments.files.into_iter().map(|path| {
        if path.as_os_str() == "-" {
            Input::Reader { name: "-".to_owned(), reader: Box::new(io::stdin()) }
        } else {
            Input::File(path)
        }
    });
    let options = Options {
        format: match arguments.format {
            Format::Json => log::Format::Json,
            Format::Text => log::Format::Text,
            Format::Count => log::Format::Count,
        },
        start_position: arguments.start_position,
        stop_position: arguments.stop_position,
        threads: arguments
            .threads
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZero::<usize>::MIN),
    };
    log::decode(inputs.collect(), definitions, options, io::stdout().lock()).map_err(failure)
}

fn open_history(name: &Path) -> Result<Box<dyn HistoryStore>, Failure> {
    let url = name.to_str().filter(|name| ObjectUrl::is_url(name));
    if let Some(url) = url {
        let url = ObjectUrl::parse(url)
            .map_err(|error| Failure::new(USAGE, format!("--history: {error}")))?;
        let store = OpendalHistoryStore::open_url_read_only(&url).map_err(Error::from)?;
        return Ok(Box::new(store));
    }
    // A store that is not there has no records; a path that is not there is a mistake.
    fs::metadata(name)
        .map_err(|error| Failure::new(USAGE, format!("cannot read {}: {error}", name.display())))?;
    Ok(Box::new(FileHistoryStore::open_read_only(name)))
}

fn failure(error: DecodeError) -> Failure {
    let code = match &error {
        DecodeError::Log(Error::Binlog(error @ BinlogError::Io { .. })) => {
            if error.class() == ErrorClass::Config { USAGE } else { STORAGE }
        }
        // A size beyond every limit is damage here.
        DecodeError::Log(Error::Binlog(_))
        | DecodeError::Mismatch { .. }
        | DecodeError::Schema { .. }
        | DecodeError::History { .. } => DATA,
        DecodeError::Offset(_) => USAGE,
        DecodeError::Output(_) => STORAGE,
        DecodeError::Log(_) | _ => BUG,
    };
    if code != BUG {
        return Failure::new(code, error.chain());
    }
    let message = error.chain();
    // What is no matter of the log has the code that it has everywhere.
    if let DecodeError::Log(error) = error { error.into() } else { Failure::new(BUG, message) }
}
