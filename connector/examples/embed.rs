//! Embeds the engine: prints each change, and acknowledges a batch when all of it is printed.
//!
//! ```text
//! cargo run --example embed -- connector.properties
//! ```

use std::io::{self, Write};
use std::path::Path;

use holdfast_connector::config::Properties;
use holdfast_connector::{Config, Engine, RecordKind};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: embed PROPERTIES")?;
    let properties = Properties::parse(&std::fs::read_to_string(&path)?)?;
    let base = Path::new(&path).parent().unwrap_or_else(|| Path::new("."));
    let (config, notes) = Config::from_properties(&properties, base)?;
    for note in notes {
        eprintln!("{}: {}", note.property, note.text);
    }

    let mut engine = Engine::builder(config).start().await?;
    let control = engine.control();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            control.stop();
        }
    });

    // Ends with the engine: after `stop`, or with the error that ended it.
    while let Some(batch) = engine.next_batch().await? {
        let mut out = io::stdout().lock();
        for change in batch.changes() {
            if let RecordKind::Data(op) = change.kind() {
                write!(out, "{} {} ", op.as_str(), change.table())?;
                out.write_all(change.key())?;
                writeln!(out, " {}", change.identity())?;
            }
        }
        drop(out);
        batch.acknowledge();
    }
    // Stores the offset of what was acknowledged.
    engine.close().await?;
    Ok(())
}
