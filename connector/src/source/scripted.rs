//! Streaming from a made-up log.

use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::Recovered;

use super::{Ended, Source, StreamStart};
use crate::assemble::Origins;
use crate::error::Error;
use crate::offset::file_of;
use crate::stores::recover;
use crate::testkit::ScriptedServer;

impl Source {
    /// Streams from a made-up log. It has no tables to take a snapshot of: without a stored offset reading begins at its
    /// start, where nothing is there yet.
    pub(super) async fn capture_scripted(
        &mut self,
        server: ScriptedServer,
    ) -> Result<Ended, Error> {
        if let Some(ended) = self.hold().await {
            return Ok(ended);
        }
        let facts = server.facts();
        let offset = self.stored.clone().unwrap_or_else(|| SourceOffset {
            gtids: facts.has_gtids().then(String::new),
            ..server.start()
        });
        file_of(&offset)?;
        let Recovered { tables, guard, report, ahead } =
            recover(&self.config, &*self.history, &offset, facts.lower_case_names()).await?;
        let lineage = self.lineage(&facts, Some(&offset));
        self.signals.snapshot().skip();
        let origins = Origins::new(Some(report.origins));
        let elsewhere = false;
        let start = StreamStart { offset, tables, guard, ahead, origins, lineage, elsewhere };
        self.stream(&facts, start).await
    }
}
