//! `holdfast offset`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use holdfast_connector::config::StoreKind;
use holdfast_connector::offset_store::{
    OffsetKey, OffsetStoreError, TakeOverError, export_debezium, import_debezium, open_offsets,
};
use holdfast_connector::set_offset::{NewOffset, SetOptions, set_offset};
use holdfast_connector::{Config, Error};
use holdfast_history::offset::SourceOffset;

use crate::exit::{DATA, FENCED, Failure, REFUSED, STORAGE, USAGE};
use crate::{ConfigArguments, settings};

/// `holdfast offset show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: one member a line.
    Text,
    /// The stored JSON, one line.
    Json,
}

/// `holdfast offset import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[command(flatten)]
    config: ConfigArguments,
}

/// `holdfast offset export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The file to write; it must not exist.
    path: PathBuf,
    #[command(flatten)]
    config: ConfigArguments,
}

/// `holdfast offset set`.
#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Binlog file, with --pos.
    #[arg(long, requires = "pos", conflicts_with_all = ["gtids", "json"], required_unless_present_any = ["gtids", "json"])]
    file: Option<String>,
    /// Bytes from the start of the file, where a transaction begins.
    #[arg(long, requires = "file")]
    pos: Option<u64>,
    /// The transactions that are done: a GTID set, on MariaDB a GTID position.
    #[arg(long, conflicts_with = "json")]
    gtids: Option<String>,
    /// A whole offset, as `offset show --format json` prints it.
    #[arg(long)]
    json: Option<String>,
    /// The server's log is another one than that of the stored offset.
    #[arg(long)]
    new_lineage: bool,
    /// Store it even when the server does not have it.
    #[arg(long)]
    force: bool,
}

/// Sets the offset; exit code 1 when the server does not have it.
pub(crate) async fn set(arguments: SetArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let new = match (arguments.file, arguments.pos, arguments.gtids, arguments.json) {
        (Some(file), Some(pos), _, _) => NewOffset::Position { file, pos },
        (_, _, Some(gtids), _) => NewOffset::Gtids(gtids),
        (_, _, _, Some(json)) => {
            let offset = SourceOffset::from_json(&json)
                .map_err(|error| Failure::new(USAGE, format!("--json: {error}")))?;
            NewOffset::Offset(Box::new(offset))
        }
        (_, _, _, _) => {
            return Err(Failure::new(USAGE, "give --file and --pos, --gtids or --json"));
        }
    };
    let options = SetOptions { new_lineage: arguments.new_lineage, force: arguments.force };
    let report = set_offset(&config, new, options).await.map_err(|error| {
        if matches!(error, Error::PositionLost { .. }) {
            Failure::new(REFUSED, error.chain())
        } else {
            Failure::from(error)
        }
    })?;
    for warning in report.warnings {
        tracing::warn!("{warning}");
    }
    print(&format!("set {}\n{}", report.offset.to_json(), report.effect))
}

/// Prints the stored offset; exit code 1 when there is none.
pub(crate) async fn show(arguments: ShowArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let json = stored(&config).await?.to_json();
    print(&match arguments.format {
        Format::Json => json,
        Format::Text => members(&json),
    })
}

/// Puts our offset file in the place of Debezium's.
pub(crate) fn import(arguments: &ImportArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let StoreKind::File { path } = &config.offsets.store else {
        return Err(Failure::new(
            USAGE,
            "offset import needs the file of Debezium in offset.storage.file.filename",
        ));
    };
    let imported = import_debezium(path, &key_of(&config))?;
    let mut text = format!(
        "imported {}\nDebezium's file is kept as {}",
        imported.offset.to_json(),
        imported.kept.display()
    );
    for key in imported.others {
        text.push_str(&format!("\nalso taken over: {key}"));
    }
    for key in imported.left_out {
        text.push_str(&format!("\nleft out, since no offset is there: {key}"));
    }
    print(&text)
}

/// Writes the stored offset as a file for Debezium.
pub(crate) async fn export(arguments: ExportArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let offset = stored(&config).await?;
    export_debezium(&arguments.path, &key_of(&config), &offset)?;
    print(&format!("exported {} to {}", offset.to_json(), arguments.path.display()))
}

fn key_of(config: &Config) -> OffsetKey {
    OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() }
}

/// The stored offset; exit code 1 when there is none.
async fn stored(config: &Config) -> Result<SourceOffset, Failure> {
    let store = open_offsets(config).map_err(Error::from)?;
    let key = key_of(config);
    let offset = store
        .load(&key)
        .await
        .map_err(|error| Failure::from(holdfast_connector::Error::from(error)))?;
    offset.ok_or_else(|| {
        Failure::new(REFUSED, format!("no offset of {} in {}", key.to_json(), store.location()))
    })
}

fn print(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}")
        .map_err(|error| Failure::new(STORAGE, format!("cannot write to standard output: {error}")))
}

impl From<TakeOverError> for Failure {
    fn from(error: TakeOverError) -> Self {
        let code = match &error {
            TakeOverError::Ours { .. }
            | TakeOverError::Exists { .. }
            | TakeOverError::Held { .. }
            | TakeOverError::NoSuchKey { .. } => REFUSED,
            TakeOverError::Io { .. } => STORAGE,
            TakeOverError::InUse(OffsetStoreError::InUse { .. }) => FENCED,
            TakeOverError::InUse(_) => STORAGE,
            TakeOverError::NotAMap { .. }
            | TakeOverError::NotAnOffset { .. }
            | TakeOverError::TooLarge { .. }
            | _ => DATA,
        };
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        Self::new(code, format!("{error}{}", cause.unwrap_or_default()))
    }
}

/// One `name: value` a line.
fn members(json: &str) -> String {
    let Ok(serde_json::Value::Object(members)) = serde_json::from_str(json) else {
        return json.to_owned();
    };
    let lines: Vec<String> = members
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}: {text}"),
            None => format!("{name}: {value}"),
        })
        .collect();
    lines.join("\n")
}
