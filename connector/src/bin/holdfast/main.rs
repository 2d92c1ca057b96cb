//! The `holdfast` command line: arguments, logs, signals and exit codes. What is done is in the library.

mod check;
mod decode;
mod exit;
mod history;
mod offset;
mod refresh;
mod run;
mod settings;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::exit::Failure;

/// Change data capture from MySQL and MariaDB.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stream changes as JSON lines.
    Run(run::RunArguments),
    /// Try every precondition on the server, and say what to do about those that fail.
    Check(check::CheckArguments),
    /// Print binlog files.
    Decode(decode::DecodeArguments),
    /// Look at the schema history.
    History {
        #[command(subcommand)]
        command: history::HistoryCommand,
    },
    /// Rebuild the schema history at the stored offset, which stays as it is.
    Refresh(refresh::RefreshArguments),
    /// Show, set or move the stored offset.
    Offset {
        #[command(subcommand)]
        command: OffsetCommand,
    },
}

#[derive(Debug, Subcommand)]
enum OffsetCommand {
    /// Print the stored offset.
    Show(offset::ShowArguments),
    /// Set it, after checks on the server.
    Set(offset::SetArguments),
    /// Take over the offset file of Debezium, which is kept as `<path>.debezium`.
    Import(offset::ImportArguments),
    /// Write the stored offset as a file for Debezium.
    Export(offset::ExportArguments),
}

/// Where the configuration comes from.
#[derive(Debug, clap::Args)]
struct ConfigArguments {
    /// A Debezium properties file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Set a property, over what the file says; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors. A failed print leaves nothing better to say.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(exit::USAGE)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .init();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(error = %error, "cannot start");
            return ExitCode::from(exit::BUG);
        }
    };
    let result = runtime.block_on(async {
        match arguments.command {
            Command::Run(arguments) => run::run(arguments).await,
            Command::Check(arguments) => check::run(arguments).await,
            Command::Decode(arguments) => decode::decode(arguments).await,
            Command::History { command } => history::history(command).await,
            Command::Refresh(arguments) => refresh::run(arguments).await,
            Command::Offset { command } => match command {
                OffsetCommand::Show(arguments) => offset::show(arguments).await,
                OffsetCommand::Set(arguments) => offset::set(arguments).await,
                OffsetCommand::Import(arguments) => offset::import(&arguments),
                OffsetCommand::Export(arguments) => offset::export(arguments).await,
            },
        }
    });
    // Tasks that wait for the network are not waited for.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, message }) => {
            tracing::error!("{message}");
            ExitCode::from(code)
        }
    }
}
