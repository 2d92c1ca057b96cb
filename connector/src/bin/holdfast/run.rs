//! `holdfast run`: records as JSON lines, on standard output or appended to a file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use holdfast_connector::{Batch, Control, Engine, EngineState, RecordKind};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::exit::{BUG, Failure, STORAGE};
use crate::{ConfigArguments, settings};

/// `holdfast run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    config: ConfigArguments,
    /// Where records go: a file, appended to, or `-` for standard output.
    #[arg(long, value_name = "FILE|-", default_value = "-")]
    output: PathBuf,
    /// End after so many records; the last ack group is finished.
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,
    /// End once no record came for so long after streaming began.
    #[arg(long, value_name = "SECONDS")]
    idle_timeout: Option<f64>,
    /// Acknowledge only the first so many records of this process, and commit them at once.
    #[arg(long, value_name = "N")]
    ack_first: Option<u64>,
    /// Serve metrics for Prometheus at this address, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
}

/// Runs until stopped, idle or failed.
pub(crate) async fn run(arguments: RunArguments) -> Result<(), Failure> {
    let config = settings::load(&arguments.config)?;
    let idle_timeout = match arguments.idle_timeout.map(Duration::try_from_secs_f64) {
        None => None,
        Some(Ok(timeout)) => Some(timeout),
        Some(Err(error)) => {
            return Err(Failure::new(crate::exit::USAGE, format!("--idle-timeout: {error}")));
        }
    };
    let output = Output::open(&arguments.output)?;
    if let Some(address) = arguments.metrics {
        serve_metrics(address)?;
    }
    let engine = Engine::builder(config).start().await?;
    let control = engine.control();
    if arguments.metrics.is_some() {
        tokio::spawn(measure_lag(control.clone()));
    }
    stop_on_signals(control.clone())?;
    let mut run = Run { engine, control, output, arguments, lines: 0 };
    let result = run.consume(idle_timeout).await;
    let closed = run.engine.close().await;
    result?;
    closed.map_err(Failure::from)
}

fn serve_metrics(address: SocketAddr) -> Result<(), Failure> {
    PrometheusBuilder::new().with_http_listener(address).install().map_err(|error| {
        Failure::new(crate::exit::USAGE, format!("--metrics {address}: {error}"))
    })?;
    holdfast_connector::metrics::describe();
    tracing::info!(%address, "metrics are served");
    Ok(())
}

/// Asks the server now and then how much of its log is still to be read.
async fn measure_lag(control: Control) {
    loop {
        tokio::time::sleep(Duration::from_secs(15)).await;
        if let Err(error) = control.lag_bytes().await {
            tracing::debug!(error = error.chain(), "the lag in bytes is not known");
        }
    }
}

struct Run {
    engine: Engine,
    control: Control,
    output: Output,
    arguments: RunArguments,
    /// Records written by this process.
    lines: u64,
}

impl Run {
    async fn consume(&mut self, idle_timeout: Option<Duration>) -> Result<(), Failure> {
        // None until streaming began.
        let mut idle_since: Option<Instant> = None;
        let control = self.control.clone();
        loop {
            let idle_end = match (idle_timeout, idle_since) {
                (Some(timeout), Some(since)) => Some(since + timeout),
                (_, _) => None,
            };
            let starting = idle_timeout.is_some() && idle_since.is_none();
            tokio::select! {
                biased;
                batch = self.engine.next_batch() => match batch? {
                    None => return Ok(()),
                    Some(batch) => {
                        let (done, data) = self.write(&batch).await?;
                        if done {
                            return Ok(());
                        }
                        if data && idle_since.is_some() {
                            idle_since = Some(Instant::now());
                        }
                    }
                },
                () = streaming(&control), if starting => idle_since = Some(Instant::now()),
                () = sleep_until(idle_end), if idle_end.is_some() => {
                    if control.status().state != EngineState::Streaming {
                        // Not idle but cut off.
                        idle_since = Some(Instant::now());
                        continue;
                    }
                    tracing::info!(records = self.lines, "idle: no record came; ending");
                    return Ok(());
                }
            }
        }
    }

    /// Writes a batch, makes it durable, and acknowledges it. Tells whether that was enough, and whether there were
    /// records other than heartbeats.
    async fn write(&mut self, batch: &Batch) -> Result<(bool, bool), Failure> {
        let mut text = Vec::with_capacity(batch.size_bytes() + batch.len() * 64);
        let mut written = Vec::with_capacity(batch.len());
        let mut data = false;
        let mut done = false;
        for change in batch.changes() {
            change.write_json(&mut text);
            text.push(b'\n');
            data |= change.kind() != RecordKind::Heartbeat;
            written.push(change);
            let lines = self.lines + written.len() as u64;
            if self.arguments.max_records.is_some_and(|most| lines >= most)
                && change.is_last_of_group()
            {
                done = true;
                break;
            }
        }
        self.output.write(&text)?;
        let acknowledged = match self.arguments.ack_first {
            None => written.len() as u64,
            Some(most) => most.saturating_sub(self.lines).min(written.len() as u64),
        };
        self.lines += written.len() as u64;
        if acknowledged == batch.len() as u64 {
            batch.acknowledge();
        } else {
            for change in written.iter().take(usize::try_from(acknowledged).unwrap_or(usize::MAX)) {
                change.acknowledge();
            }
        }
        if self.arguments.ack_first.is_some() && acknowledged > 0 {
            self.control.flush().await?;
        }
        Ok((done, data))
    }
}

/// Waits until the log is being read.
async fn streaming(control: &Control) {
    let mut state = control.status().state;
    while state != EngineState::Streaming {
        state = control.changed_from(state).await;
        if state == EngineState::Stopped {
            // The end comes as a batch's absence.
            std::future::pending::<()>().await;
        }
    }
}

async fn sleep_until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

/// SIGINT and SIGTERM stop reading; what was read is delivered.
fn stop_on_signals(control: Control) -> Result<(), Failure> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error| Failure::new(BUG, format!("cannot listen for signals: {error}")))
    };
    let (mut interrupt, mut terminate) =
        (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: delivering what was read");
        control.stop();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // Somebody does not want to wait. What was not committed comes again.
        std::process::exit(130);
    });
    Ok(())
}

/// Where lines go.
enum Output {
    Stdout,
    File { file: File, path: PathBuf },
}

impl Output {
    fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        open_for_append(path).map(|file| Self::File { file, path: path.to_owned() }).map_err(
            |error| Failure::new(STORAGE, format!("cannot open {}: {error}", path.display())),
        )
    }

    /// Writes whole lines; when it returns they are where they should be.
    fn write(&mut self, lines: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush()).map_err(|error| {
                    Failure::new(STORAGE, format!("cannot write to standard output: {error}"))
                })
            }
            Self::File { file, path } => {
                file.write_all(lines).and_then(|()| file.sync_data()).map_err(|error| {
                    Failure::new(STORAGE, format!("cannot write to {}: {error}", path.display()))
                })
            }
        }
    }
}

/// Opens a file of lines behind its last whole line: what a killed process left of a line was never acknowledged.
fn open_for_append(path: &Path) -> io::Result<File> {
    const BLOCK: u64 = 64 << 10;
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let len = file.metadata()?.len();
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(end - start).map_err(io::Error::other)?];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(newline) = block.iter().rposition(|byte| *byte == b'\n') {
            end = start + newline as u64 + 1;
            break;
        }
        end = start;
    }
    if end < len {
        tracing::warn!(path = %path.display(), bytes = len - end, "a torn last line was cut off");
        file.set_len(end)?;
        file.sync_data()?;
    }
    file.seek(SeekFrom::Start(end))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_cut_off_and_whole_lines_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        let long = "x".repeat(200_000);
        for (before, after) in [
            ("", String::new()),
            ("{}\n{}\n", "{}\n{}\n".to_owned()),
            ("{}\n{\"a", "{}\n".to_owned()),
            ("{\"a", String::new()),
            (&format!("{{}}\n{long}"), "{}\n".to_owned()),
            (&format!("{long}\n"), format!("{long}\n")),
        ] {
            std::fs::write(&path, before).unwrap();
            let mut file = open_for_append(&path).unwrap();
            file.write_all(b"next\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{after}next\n"));
        }
    }
}
