//! A history with records that are not written yet.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_history::codec::{RecordLine, write_record};
use holdfast_history::store::{HistoryStore, Visit};
use holdfast_history::{Error, HistoryRecord};

/// Reads as the store will once the records are appended. Nothing is written.
pub(super) struct Overlay {
    store: Arc<dyn HistoryStore>,
    lines: Vec<String>,
}

impl Overlay {
    pub(super) fn new(store: Arc<dyn HistoryStore>, records: &[HistoryRecord]) -> Self {
        let line = |record: &HistoryRecord| {
            let mut line = Vec::new();
            write_record(record, None, &mut line);
            String::from_utf8_lossy(&line).into_owned()
        };
        Self { store, lines: records.iter().map(line).collect() }
    }
}

#[async_trait]
impl HistoryStore for Overlay {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        self.store.read(visit).await?;
        for (number, line) in (1..).zip(&self.lines) {
            let damaged =
                |source| Error::Damaged { location: self.location(), line: number, source };
            visit(number, &RecordLine::parse(line).map_err(damaged)?)?;
        }
        Ok(())
    }

    async fn append(&self, _: &[HistoryRecord]) -> Result<(), Error> {
        Err(Error::ReadOnly { location: self.location() })
    }

    async fn exists(&self) -> Result<bool, Error> {
        Ok(!self.lines.is_empty() || self.store.exists().await?)
    }

    fn location(&self) -> String {
        format!("{} with the planned records", self.store.location())
    }
}
