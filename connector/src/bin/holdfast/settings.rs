//! From `--config` and `--set` to a checked configuration.

use std::fs;
use std::path::Path;

use holdfast_connector::Config;
use holdfast_connector::config::Properties;

use crate::ConfigArguments;
use crate::exit::{Failure, USAGE};

/// Reads and checks the configuration; its notes are logged.
pub(crate) fn load(arguments: &ConfigArguments) -> Result<Config, Failure> {
    let path = arguments.config.display();
    let text = fs::read_to_string(&arguments.config).map_err(|error| {
        Failure::new(USAGE, format!("cannot read the configuration {path}: {error}"))
    })?;
    let mut properties = Properties::parse(&text).map_err(|error| {
        Failure::new(USAGE, format!("the configuration {path} is not a properties file: {error}"))
    })?;
    for setting in &arguments.set {
        let Some((key, value)) = setting.split_once('=').filter(|(key, _)| !key.trim().is_empty())
        else {
            return Err(Failure::new(USAGE, format!("--set takes KEY=VALUE, not {setting:?}")));
        };
        properties.set(key.trim(), value);
    }
    let base = arguments.config.parent().unwrap_or_else(|| Path::new("."));
    let (config, notes) = Config::from_properties(&properties, base).map_err(|errors| {
        Failure::new(USAGE, format!("the configuration {path} can't be used: {errors}"))
    })?;
    for note in notes {
        tracing::info!(property = note.property, "{}", note.text);
    }
    Ok(config)
}
