//! Where a server's log is now.

use holdfast_history::offset::{HoldfastMembers, SourceOffset};

use crate::available::tracks_gtids;
use crate::config::Config;
use crate::error::Error;
use crate::source::server_options;

/// Asks the server where its log ends, without an engine: what is written after the call comes to an engine that starts
/// there ([`crate::EngineBuilder::resume_at`]). The schema history must then have the definitions as of that place.
///
/// # Errors
///
/// [`Error::Snapshot`] when the server can't be asked, or writes no binary log.
pub async fn current_offset(config: &Config) -> Result<SourceOffset, Error> {
    let mut conn = holdfast_snapshot::connect(&server_options(config)).await?;
    let facts = holdfast_snapshot::facts(&mut conn).await?;
    let position = holdfast_snapshot::log_position(&mut conn, facts.flavor).await?;
    let gtids = tracks_gtids(config, &facts).then(|| position.gtids.unwrap_or_default());
    let lineage = config.source_id.clone().unwrap_or_else(|| facts.identity().to_owned());
    let holdfast =
        HoldfastMembers { lineage: Some(lineage), epoch: 1, ..HoldfastMembers::default() };
    Ok(SourceOffset {
        file: position.file,
        pos: position.pos,
        gtids,
        holdfast: Some(holdfast),
        ..SourceOffset::default()
    })
}
