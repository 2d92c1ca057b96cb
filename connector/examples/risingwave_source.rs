//! A stream processor's source, driven as RisingWave drives its own: positions are JSON in the host's state, the schema
//! history lies in the host's object store, schema changes and transaction markers are messages, and the running reader is
//! paused, limited and repaired by calls.
//!
//! ```text
//! cargo run --example risingwave_source -- connector.properties STATE_FOLDER
//! ```
//!
//! It prints messages, and takes `pause`, `resume`, `rate N`, `refresh DB.TABLE`, `status` and `stop` on standard input.

use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, TryStreamExt, stream};
use holdfast_connector::check::{Standing, check};
use holdfast_connector::config::Properties;
use holdfast_connector::offset_store::{OffsetKey, OffsetStore, OffsetStoreError};
use holdfast_connector::refresh::RefreshOptions;
use holdfast_connector::{Batch, Config, Control, Engine, Error, RecordKind};
use holdfast_history::codec::{RecordLine, write_record};
use holdfast_history::error::Written;
use holdfast_history::offset::SourceOffset;
use holdfast_history::store::{HistoryStore, Visit};
use holdfast_history::{Error as HistoryError, HistoryRecord, TableId};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;

type Failure = Box<dyn StdError + Send + Sync>;

/// The host's object store: a folder here, a bucket elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Objects(pub(crate) PathBuf);

impl Objects {
    async fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let mut folder = tokio::fs::read_dir(&self.0).await?;
        while let Some(entry) = folder.next_entry().await? {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    async fn get(&self, name: &str) -> io::Result<String> {
        tokio::fs::read_to_string(self.0.join(name)).await
    }

    /// Creates an object, durably; an error when there is one of this name.
    async fn put_new(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let mut file = tokio::fs::File::options().write(true).create_new(true).open(path).await?;
        file.write_all(content).await?;
        file.sync_all().await
    }
}

/// The schema history in the host's object store: an object for each append, of one record per line.
#[derive(Debug)]
pub(crate) struct HostHistory(pub(crate) Objects);

impl HostHistory {
    /// The numbers of the objects that are there, in order.
    async fn numbers(&self) -> Result<Vec<u64>, HistoryError> {
        let names = self.0.list().await.map_err(|error| self.unread("list", error))?;
        let number = |name: &String| {
            name.strip_prefix("schema_history_")?.strip_suffix(".dat")?.parse::<u64>().ok()
        };
        let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn unread(&self, action: &'static str, source: io::Error) -> HistoryError {
        HistoryError::Read { location: self.location(), action, source }
    }
}

#[async_trait]
impl HistoryStore for HostHistory {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), HistoryError> {
        for number in self.numbers().await? {
            let name = format!("schema_history_{number}.dat");
            let text = self.0.get(&name).await.map_err(|error| self.unread("read", error))?;
            for (line, record) in (1..).zip(text.lines()) {
                let record = RecordLine::parse(record).map_err(|source| HistoryError::Damaged {
                    location: format!("{}/{name}", self.location()),
                    line,
                    source,
                })?;
                visit(line, &record)?;
            }
        }
        Ok(())
    }

    async fn append(&self, records: &[HistoryRecord]) -> Result<(), HistoryError> {
        let mut content = Vec::new();
        for record in records {
            write_record(record, None, &mut content);
            content.push(b'\n');
        }
        if content.is_empty() {
            return Ok(());
        }
        let number = self.numbers().await?.last().copied().unwrap_or_default() + 1;
        let name = format!("schema_history_{number}.dat");
        match self.0.put_new(&name, &content).await {
            Ok(()) => Ok(()),
            // Whoever wrote it is the source's owner now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(HistoryError::Fenced { location: self.location() })
            }
            Err(source) => Err(HistoryError::Write {
                location: format!("{}/{name}", self.location()),
                written: Written::Maybe,
                source,
            }),
        }
    }

    async fn exists(&self) -> Result<bool, HistoryError> {
        Ok(!self.numbers().await?.is_empty())
    }

    fn location(&self) -> String {
        self.0.0.display().to_string()
    }
}

/// The state of a split: what the host writes at its barriers, `{"sourcePartition":…,"sourceOffset":…,"isHeartbeat":…}`.
#[derive(Debug, Default)]
pub(crate) struct SplitState(Mutex<Option<String>>);

impl SplitState {
    /// A state that was kept; `None` for a new split.
    pub(crate) fn new(json: Option<String>) -> Self {
        Self(Mutex::new(json))
    }

    /// The state as it is to be kept.
    pub(crate) fn to_json(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The offset inside, ours or one that Debezium wrote.
    pub(crate) fn offset(&self) -> Result<Option<SourceOffset>, Failure> {
        let Some(json) = self.to_json() else { return Ok(None) };
        let state: serde_json::Value = serde_json::from_str(&json)?;
        let offset = state.get("sourceOffset").ok_or("the state has no sourceOffset")?;
        Ok(Some(SourceOffset::from_json(&offset.to_string())?))
    }
}

/// The engine commits into the state what was acknowledged; so the state never runs ahead of what the host has done.
#[async_trait]
impl OffsetStore for SplitState {
    async fn load(&self, _: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        self.offset().map_err(|error| OffsetStoreError::Damaged {
            location: self.location(),
            reason: error.to_string(),
        })
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let partition = serde_json::json!({ "server": key.server });
        let json = format!(
            r#"{{"sourcePartition":{partition},"sourceOffset":{},"isHeartbeat":false}}"#,
            offset.to_json()
        );
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(json);
        Ok(())
    }

    fn location(&self) -> String {
        "the state of the split".to_owned()
    }
}

/// What goes into the stream processor. Every message has the offset to keep once it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// A row: table, key and envelope.
    Data { table: String, key: String, payload: String, offset: String },
    /// DDL with its `tableChanges`.
    SchemaChange { payload: String, offset: String },
    /// BEGIN or END.
    Transaction { payload: String, offset: String },
    /// Nothing happened, or only what is filtered: the position moved on.
    Heartbeat { offset: String },
}

/// The messages of a batch.
pub(crate) fn messages(batch: &Batch) -> Vec<Message> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let message = |change: holdfast_connector::ChangeRecord<'_>| {
        let payload = text(change.value());
        let offset = change.offset().to_json();
        Some(match change.kind() {
            RecordKind::Data(_) => Message::Data {
                table: change.table().to_string(),
                key: text(change.key()),
                payload,
                offset,
            },
            RecordKind::SchemaChange => Message::SchemaChange { payload, offset },
            RecordKind::Transaction => Message::Transaction { payload, offset },
            RecordKind::Heartbeat => Message::Heartbeat { offset },
            RecordKind::Tombstone | _ => return None,
        })
    };
    batch.changes().filter_map(message).collect()
}

/// The source's properties, and beside them what the stream processor always sets.
pub(crate) fn configure(properties: &Properties, has_offset: bool) -> Result<Config, Failure> {
    let mut all = properties.clone();
    for (key, value) in [
        ("decimal.handling.mode", "string"),
        ("time.precision.mode", "microseconds"),
        ("max.batch.size", "1024"),
        ("max.queue.size", "8192"),
        ("heartbeat.interval.ms", "60000"),
        ("provide.transaction.metadata", "true"),
        ("include.schema.changes", "true"),
        ("tombstones.on.delete", "false"),
        ("schema.history.internal.store.only.captured.tables.ddl", "true"),
        ("schema.history.internal.store.only.captured.databases.ddl", "true"),
        ("snapshot.locking.mode", "none"),
    ] {
        all.set(key, value);
    }
    if has_offset {
        // A history that is missing is rebuilt at the offset, which stays.
        all.set("snapshot.mode", "configuration_based");
        all.set("snapshot.mode.configuration.based.start.stream", "true");
        all.set("snapshot.mode.configuration.based.snapshot.on.schema.error", "true");
    } else {
        all.set("snapshot.mode", "no_data");
    }
    let (config, _) = Config::from_properties(&all, Path::new("."))?;
    Ok(config)
}

/// Looks at the server, and starts a reader of the split where its state says.
pub(crate) async fn open(
    properties: &Properties,
    state: Arc<SplitState>,
    history: Arc<HostHistory>,
) -> Result<Engine, Failure> {
    let config = configure(properties, state.offset()?.is_some())?;
    for finding in check(&config).await {
        if finding.standing == Standing::Fails {
            return Err(format!("{}: {}; {}", finding.name, finding.found, finding.fix).into());
        }
    }
    Ok(Engine::builder(config).history(history).offsets(state).start().await?)
}

/// The batches of a reader as a stream. A batch is acknowledged at the barrier after it.
pub(crate) fn batches(engine: Engine) -> impl Stream<Item = Result<Batch, Error>> {
    stream::try_unfold(engine, |mut engine| async {
        Ok::<_, Error>(engine.next_batch().await?.map(|batch| (batch, engine)))
    })
}

/// What an operator, or the stream processor's control plane, wants of a running reader.
pub(crate) async fn command(control: &Control, line: &str) -> Result<String, Failure> {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("pause"), _) => {
            control.pause();
            control.paused().await;
        }
        (Some("resume"), _) => control.resume(),
        (Some("rate"), limit) => control.set_rate_limit(limit.map(str::parse).transpose()?),
        (Some("refresh"), Some(table)) => {
            let (database, table) = table.split_once('.').ok_or("refresh DATABASE.TABLE")?;
            let tables = [TableId::new(database, table)];
            let report =
                control.refresh_schema_history(&tables, &RefreshOptions::default()).await?;
            return Ok(report.to_text());
        }
        (Some("stop"), _) => control.stop(),
        _ => {}
    }
    Ok(format!("{:?}", control.status()))
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (Some(properties), Some(folder)) = (args.next(), args.next()) else {
        return Err("usage: risingwave_source PROPERTIES STATE_FOLDER".into());
    };
    let properties = Properties::parse(&std::fs::read_to_string(&properties)?)?;
    let folder = PathBuf::from(folder);
    let kept = folder.join("split.json");
    let state = Arc::new(SplitState::new(std::fs::read_to_string(&kept).ok()));
    let history = folder.join("history");
    std::fs::create_dir_all(&history)?;
    let history = Arc::new(HostHistory(Objects(history)));

    let engine = open(&properties, Arc::clone(&state), history).await?;
    let control = engine.control();
    let operator = control.clone();
    let (lines, mut typed) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        io::stdin().lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    tokio::spawn(async move {
        while let Some(line) = typed.recv().await {
            match command(&operator, &line).await {
                Ok(answer) => eprintln!("{answer}"),
                Err(error) => eprintln!("{error}"),
            }
        }
    });

    let mut batches = pin!(batches(engine));
    let mut barrier = tokio::time::interval(Duration::from_secs(1));
    let mut since_barrier: Vec<Batch> = Vec::new();
    loop {
        tokio::select! {
            batch = batches.try_next() => {
                let Some(batch) = batch? else { break };
                for message in messages(&batch) {
                    println!("{message:?}");
                }
                since_barrier.push(batch);
            }
            _ = barrier.tick() => {
                // Everything before the barrier is durable downstream.
                since_barrier.drain(..).for_each(|batch| batch.acknowledge());
                control.flush().await?;
                if let Some(json) = state.to_json() {
                    std::fs::write(&kept, json)?;
                }
            }
        }
    }
    Ok(())
}
