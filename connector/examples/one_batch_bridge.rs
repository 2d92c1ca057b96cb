//! A pipeline with a bridge of capacity one: its callback blocks until the batch that it was handed is done, and its sink
//! writes rows and a ledger entry in one transaction.
//!
//! ```text
//! cargo run --example one_batch_bridge -- connector.properties mysql://user:password@sink.example:3306/warehouse
//! ```
//!
//! A crash after the sink's commit and before the acknowledgement brings the batch again; the ledger knows the identities
//! of its records, so that nothing is applied twice.

use std::error::Error as StdError;
use std::path::Path;

use holdfast_connector::config::Properties;
use holdfast_connector::{Batch, ChangeRecord, Config, Engine, Op, RecordKind};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, TxOpts};
use tokio::runtime::Runtime;

type Failure = Box<dyn StdError + Send + Sync>;

/// What happened to a batch in the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    /// Records that were applied.
    pub(crate) applied: u64,
    /// Records that the ledger knew.
    pub(crate) known: u64,
}

/// Hands batches to `callback`, one at a time and on this thread, until it or the engine ends. A batch is acknowledged, and
/// the offset behind it stored, when the callback returns; when it fails, the batch comes again in the next run.
pub(crate) fn bridge(
    config: Config,
    mut callback: impl FnMut(&Batch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // The reader runs on the runtime's threads; this one may block.
    let runtime = Runtime::new()?;
    let mut engine = runtime.block_on(Engine::builder(config).start())?;
    let control = engine.control();
    while let Some(batch) = runtime.block_on(engine.next_batch())? {
        // A batch never ends inside a group: whatever the callback writes in one transaction is whole.
        debug_assert!(batch.changes().last().is_none_or(|change| change.is_last_of_group()));
        callback(&batch)?;
        batch.acknowledge();
        runtime.block_on(control.flush())?;
    }
    Ok(runtime.block_on(engine.close())?)
}

/// A sink in a database: `rows` has the current row by table and key, `ledger` the identities of what was applied.
#[derive(Debug)]
pub(crate) struct Sink {
    runtime: Runtime,
    conn: Conn,
}

impl Sink {
    /// Connects, and makes the tables.
    pub(crate) fn open(url: &str) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let conn = runtime.block_on(async {
            let mut conn = Conn::new(Opts::from_url(url)?).await?;
            conn.query_drop(
                "CREATE TABLE IF NOT EXISTS ledger (id VARBINARY(700) PRIMARY KEY) ENGINE=InnoDB",
            )
            .await?;
            conn.query_drop(
                "CREATE TABLE IF NOT EXISTS `rows` (source VARBINARY(200), id VARBINARY(500), content LONGTEXT CHARACTER SET utf8mb4, \
                 PRIMARY KEY (source, id)) ENGINE=InnoDB",
            )
            .await?;
            Ok::<_, Failure>(conn)
        })?;
        Ok(Self { runtime, conn })
    }

    /// Writes a batch and its ledger entries in one transaction.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<Written, Failure> {
        self.runtime.block_on(async {
            let mut transaction = self.conn.start_transaction(TxOpts::default()).await?;
            let mut written = Written::default();
            for change in batch.changes() {
                let id = change.identity().to_string();
                transaction.exec_drop("INSERT IGNORE INTO ledger VALUES (?)", (id,)).await?;
                if transaction.affected_rows() == 0 {
                    written.known += 1;
                    continue;
                }
                let (source, key) = (change.table().to_string(), change.key());
                match change.kind() {
                    RecordKind::Data(Op::Create | Op::Update | Op::Read) => {
                        let statement = "REPLACE INTO `rows` VALUES (?, ?, ?)";
                        transaction.exec_drop(statement, (source, key, after(&change)?)).await?;
                    }
                    RecordKind::Data(Op::Delete) => {
                        let statement = "DELETE FROM `rows` WHERE source = ? AND id = ?";
                        transaction.exec_drop(statement, (source, key)).await?;
                    }
                    RecordKind::Data(_)
                    | RecordKind::Tombstone
                    | RecordKind::SchemaChange
                    | RecordKind::Heartbeat
                    | RecordKind::Transaction
                    | _ => continue,
                }
                written.applied += 1;
            }
            transaction.commit().await?;
            Ok(written)
        })
    }
}

/// The row that a change leaves.
fn after(change: &ChangeRecord<'_>) -> Result<String, Failure> {
    let value: serde_json::Value = serde_json::from_slice(change.value())?;
    Ok(value.get("after").ok_or("an envelope without after")?.to_string())
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (Some(properties), Some(url)) = (args.next(), args.next()) else {
        return Err("usage: one_batch_bridge PROPERTIES SINK_URL".into());
    };
    let properties = Properties::parse(&std::fs::read_to_string(&properties)?)?;
    let (config, _) = Config::from_properties(&properties, Path::new("."))?;
    let mut sink = Sink::open(&url)?;
    bridge(config, |batch| {
        println!("{:?}", sink.write(batch)?);
        Ok(())
    })
}
