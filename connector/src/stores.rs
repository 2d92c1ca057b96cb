//! The stores that a configuration names.

use std::sync::Arc;

use holdfast_history::ddl::DdlContext;
use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::{
    self, CheckpointCheck, RecoverOptions, Recovered, recover_store, write_checkpoint,
};
use holdfast_history::store::{FileHistoryStore, HistoryStore, MemoryHistory, OpendalHistoryStore};

use crate::config::{Config, StoreKind};
use crate::error::Error;
use crate::offset_store::{
    FileOffsetStore, MemoryOffsetStore, OffsetStore, OffsetStoreError, OpendalOffsetStore,
};
use crate::table_store::{TableHistoryStore, TableOffsetStore};

/// Opens the schema history for writing.
pub(crate) async fn open_history(config: &Config) -> Result<Arc<dyn HistoryStore>, Error> {
    Ok(match &config.history.store {
        StoreKind::File { path } => Arc::new(FileHistoryStore::open(path)?),
        StoreKind::Table(location) => {
            Arc::new(TableHistoryStore::open((**location).clone()).await?)
        }
        StoreKind::Objects(url) => Arc::new(OpendalHistoryStore::open_url(url).await?),
        StoreKind::Memory => Arc::new(MemoryHistory::new().open()?),
    })
}

/// The schema history for reading only: an engine may be writing it.
pub(crate) fn open_history_read_only(config: &Config) -> Result<Arc<dyn HistoryStore>, Error> {
    match &config.history.store {
        StoreKind::File { path } => Ok(Arc::new(FileHistoryStore::open_read_only(path))),
        StoreKind::Table(location) => {
            Ok(Arc::new(TableHistoryStore::open_read_only((**location).clone())))
        }
        StoreKind::Objects(url) => Ok(Arc::new(OpendalHistoryStore::open_url_read_only(url)?)),
        StoreKind::Memory => Err(Error::Start(
            "the schema history is kept in memory, where only its engine sees it; name a file in \
             schema.history.internal.file.filename"
                .to_owned(),
        )),
    }
}

/// The store of offsets that a configuration names.
///
/// # Errors
///
/// [`OffsetStoreError::Io`] when the URL of object storage lacks a setting. No request is made here.
pub fn open_offsets(config: &Config) -> Result<Arc<dyn OffsetStore>, OffsetStoreError> {
    Ok(match &config.offsets.store {
        StoreKind::File { path } => Arc::new(FileOffsetStore::new(path)),
        StoreKind::Table(location) => Arc::new(TableOffsetStore::new((**location).clone())),
        StoreKind::Objects(url) => Arc::new(OpendalOffsetStore::at_url(url)?),
        StoreKind::Memory => Arc::new(MemoryOffsetStore::new()),
    })
}

/// The definitions as of `offset`, as the configuration says that a history is read.
pub(crate) async fn recover(
    config: &Config,
    history: &dyn HistoryStore,
    offset: &SourceOffset,
    lower_case_names: bool,
) -> Result<Recovered, holdfast_history::Error> {
    let context = ddl_context(config);
    let options = recover_options(config, &context, lower_case_names);
    recover_store(history, &config.topic_prefix, offset, &options).await
}

/// Writes a checkpoint of the definitions as of `offset`. That it can't be written stops nothing.
pub(crate) async fn keep_checkpoint(
    config: &Config,
    history: &dyn HistoryStore,
    offset: &SourceOffset,
    lower_case_names: bool,
) {
    let context = ddl_context(config);
    let options = recover_options(config, &context, lower_case_names);
    match write_checkpoint(history, &config.topic_prefix, offset, &options).await {
        Ok(_) | Err(holdfast_history::Error::ReadOnly { .. }) => {}
        Err(error) => {
            let error = Error::from(error);
            tracing::warn!(
                error = error.chain(),
                "no checkpoint of the schema history was written"
            );
        }
    }
}

/// Compares what the checkpoint gives for `offset` with what all of the history gives.
pub(crate) async fn check_checkpoint(
    config: &Config,
    history: &dyn HistoryStore,
    offset: &SourceOffset,
    lower_case_names: bool,
) -> Result<CheckpointCheck, holdfast_history::Error> {
    let context = ddl_context(config);
    let options = recover_options(config, &context, lower_case_names);
    recover::check_checkpoint(history, &config.topic_prefix, offset, &options).await
}

fn ddl_context(config: &Config) -> DdlContext {
    DdlContext {
        flavor: config.ddl_flavor(),
        comments: config.events.schema_comments,
        ..DdlContext::default()
    }
}

fn recover_options<'a>(
    config: &Config,
    context: &'a DdlContext,
    lower_case_names: bool,
) -> RecoverOptions<'a> {
    RecoverOptions {
        prefer_ddl: config.history.prefer_ddl,
        skip_unparseable: config.history.skip_unparseable,
        lower_case_names,
        checkpoint: config.history.checkpoint_records > 0,
        event_times_decide: config.history.event_times_decide,
        ..RecoverOptions::new(context)
    }
}
