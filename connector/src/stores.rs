//! The stores that a configuration names.

use std::sync::Arc;

use holdfast_history::ddl::DdlContext;
use holdfast_history::offset::SourceOffset;
use holdfast_history::recover::{RecoverOptions, Recovered, recover_store};
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
    let context = DdlContext {
        flavor: config.ddl_flavor(),
        comments: config.events.schema_comments,
        ..DdlContext::default()
    };
    let options = RecoverOptions {
        prefer_ddl: config.history.prefer_ddl,
        skip_unparseable: config.history.skip_unparseable,
        lower_case_names,
        ..RecoverOptions::new(&context)
    };
    recover_store(history, &config.topic_prefix, offset, &options).await
}
