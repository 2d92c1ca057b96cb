//! `holdfast offset`.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use holdfast_connector::offset_store::{OffsetKey, open_offsets};

use crate::exit::{Failure, REFUSED};
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

/// Prints the stored offset; exit code 1 when there is none.
pub(crate) async fn show(arguments: ShowArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let store = open_offsets(&config);
    let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
    let offset = store
        .load(&key)
        .await
        .map_err(|error| Failure::from(holdfast_connector::Error::from(error)))?;
    let Some(offset) = offset else {
        return Err(Failure::new(
            REFUSED,
            format!("no offset of {} in {}", key.to_json(), store.location()),
        ));
    };
    let json = offset.to_json();
    let text = match arguments.format {
        Format::Json => json,
        Format::Text => members(&json),
    };
    writeln!(io::stdout(), "{text}").map_err(|error| {
        Failure::new(crate::exit::STORAGE, format!("cannot write to standard output: {error}"))
    })
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
