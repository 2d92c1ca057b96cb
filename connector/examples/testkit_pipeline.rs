//! A test of a pipeline without a server: a made-up log, stores in memory, a crash at the worst moment.
//!
//! ```text
//! cargo run --example testkit_pipeline --features testkit
//! ```

use std::collections::HashSet;
use std::error::Error;

use holdfast_connector::testkit::{
    self, Fault, LogBuilder, ScriptedServer, TestColumn, TestStores, TestValue,
};

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let log = LogBuilder::new("binlog.000001")
        .query("shop", "CREATE TABLE orders (id INT PRIMARY KEY)")
        .begin()
        .table_map(1, "shop", "orders", &[TestColumn::int()])
        .write_rows(1, &[&[TestValue::Int(1)], &[TestValue::Int(2)]])
        .xid(1);
    let server = ScriptedServer::new(log);
    server.complete();
    server.fault_after(4, Fault::Disconnect);
    let stores = TestStores::new();
    let mut ledger = HashSet::new(); // the pipeline under test drops what it has seen
    for crashes in [true, false] {
        let config = testkit::config(&[
            ("include.schema.changes", "false"),
            ("retriable.restart.connector.wait.ms", "1"),
        ])?;
        let mut engine = server.engine(config, &stores)?.start().await?;
        while let Some(batch) = engine.next_batch().await? {
            for change in batch.changes() {
                let is_new = ledger.insert(change.identity());
                assert_eq!(is_new, crashes, "what comes again has the same identity");
            }
            if crashes {
                break; // applied, and never acknowledged
            }
            batch.acknowledge();
        }
        if crashes { engine.abandon().await } else { engine.close().await? }
    }
    assert_eq!(ledger.len(), 2, "two rows, each applied once");
    assert_eq!(stores.offset().map(|offset| offset.pos), Some(server.position()));
    Ok(())
}
