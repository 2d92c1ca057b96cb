//! A history with records that are not written yet.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_history::codec::{RecordLine, write_record};
use holdfast_history::store::{HistoryStore, Visit};
use holdfast_history::{Error, HistoryRecord};

/// Reads as the store will once the records are appended. Nothing is written.
pub(super) struct Overlay {
    /// `None` when what is there will be set aside.
    store: Option<Arc<dyn HistoryStore>>,
    location: String,
    lines: Vec<String>,
}

impl Overlay {
    pub(super) fn new(
        store: Option<Arc<dyn HistoryStore>>,
        location: String,
        records: &[HistoryRecord],
    ) -> Self {
        let line = |record: &HistoryRecord| {
            let mut line = Vec::new();
            write_record(record, None, &mut line);
            String::from_utf8_lossy(&line).into_owned()
        };
        Self { store, location, lines: records.iter().map(line).collect() }
    }
}

#[async_trait]
impl HistoryStore for Overlay {
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        if let Some(store) = &self.store {
            store.read(visit).await?;
        }
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
        match &self.store {
            Some(store) if self.lines.is_empty() => store.exists().await,
            Some(_) | None => Ok(!self.lines.is_empty()),
        }
    }

    fn location(&self) -> String {
        format!("{} with the planned records", self.location)
    }
}
