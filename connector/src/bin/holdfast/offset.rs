//! `holdfast offset`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use holdfast_connector::Config;
use holdfast_connector::config::StoreKind;
use holdfast_connector::offset_store::{
    OffsetKey, TakeOverError, export_debezium, import_debezium, open_offsets,
};
use holdfast_history::offset::SourceOffset;

use crate::exit::{DATA, Failure, REFUSED, STORAGE, USAGE};
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
    let store = open_offsets(config);
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
            | TakeOverError::NoSuchKey { .. } => REFUSED,
            TakeOverError::Io { .. } => STORAGE,
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
