//! Stores the frontier: never backwards, and only when the place moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_history::offset::SourceOffset;
use tokio::sync::Mutex;

use crate::ack::SharedLedger;
use crate::config::Config;
use crate::control::Signals;
use crate::offset::{OffsetOrder, OffsetPoint, compare};
use crate::offset_store::{Claim, MemoryOffsetStore, OffsetKey, OffsetStore, OffsetStoreError};

/// Stores the frontier.
pub(crate) struct Committer {
    pub(crate) ledger: SharedLedger,
    offsets: Arc<dyn OffsetStore>,
    key: OffsetKey,
    mariadb: bool,
    /// Held while writing, so that two writes never overtake each other.
    written: Mutex<Written>,
    pub(crate) counts: CommitCounts,
}

/// What became of offsets.
#[derive(Debug, Default)]
pub(crate) struct CommitCounts {
    commits: AtomicU64,
    failures: AtomicU64,
    regressions: AtomicU64,
}

impl CommitCounts {
    /// Offsets stored.
    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Offsets that could not be stored.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Offsets that were refused, as they would have moved the stored one backwards.
    pub(crate) fn regressions(&self) -> u64 {
        self.regressions.load(Ordering::Relaxed)
    }
}

/// What is stored.
struct Written {
    /// The ledger's version that was dealt with.
    version: u64,
    offset: Option<SourceOffset>,
}

impl Committer {
    /// `stored`: what the store holds under `key`.
    pub(crate) fn new(
        offsets: Arc<dyn OffsetStore>,
        key: OffsetKey,
        stored: Option<SourceOffset>,
        mariadb: bool,
    ) -> Self {
        Self {
            ledger: SharedLedger::new(OffsetPoint::closed_at("", 0)),
            offsets,
            key,
            mariadb,
            written: Mutex::new(Written { version: 0, offset: stored }),
            counts: CommitCounts::default(),
        }
    }

    /// One that has nothing to store.
    pub(crate) fn idle(config: &Config) -> Self {
        let key = OffsetKey { engine: config.name.clone(), server: config.topic_prefix.clone() };
        Self::new(Arc::new(MemoryOffsetStore::new()), key, None, config.is_mariadb())
    }

    /// What is stored.
    pub(crate) async fn stored(&self) -> Option<SourceOffset> {
        self.written.lock().await.offset.clone()
    }

    /// Stores the frontier if it moved since the last time. One that would move the stored offset backwards is refused:
    /// the old one stays, and nothing else ends.
    pub(crate) async fn commit(&self) -> Result<(), OffsetStoreError> {
        let mut written = self.written.lock().await;
        let (version, offset) = {
            let ledger = self.ledger.lock();
            (ledger.version(), ledger.frontier().clone())
        };
        if version == written.version {
            return Ok(());
        }
        if !offset.is_known() {
            // In the log of another server, before its first place.
            written.version = version;
            return Ok(());
        }
        let offset = offset.to_source_offset();
        if let Some(stored) = &written.offset {
            if same_place(stored, &offset, self.mariadb) {
                written.version = version;
                return Ok(());
            }
            if moves_back(stored, &offset, self.mariadb) {
                self.counts.regressions.fetch_add(1, Ordering::Relaxed);
                tracing::error!(
                    stored = stored.to_json(),
                    refused = offset.to_json(),
                    "an offset that would move backwards is not stored"
                );
                written.version = version;
                return Ok(());
            }
        }
        self.write(&offset).await?;
        *written = Written { version, offset: Some(offset) };
        Ok(())
    }

    /// Stores an offset that no record carries: the position of a snapshot before its first record.
    pub(crate) async fn store(&self, offset: &OffsetPoint) -> Result<(), OffsetStoreError> {
        let mut written = self.written.lock().await;
        let offset = offset.to_source_offset();
        self.write(&offset).await?;
        written.offset = Some(offset);
        Ok(())
    }

    async fn write(&self, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let result = self.offsets.store(&self.key, offset).await;
        let counts = &self.counts;
        let counter = if result.is_ok() { &counts.commits } else { &counts.failures };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }
}

/// Commits whenever the frontier moved, at most once per interval. A failed write is tried again at the next; when the
/// offset is somebody else's now, the engine ends.
pub(crate) async fn commit_forever(
    committer: Arc<Committer>,
    interval: Duration,
    signals: Arc<Signals>,
    _claim: Claim,
) {
    loop {
        let version = committer.written.lock().await.version;
        committer.ledger.moved_from(version).await;
        tokio::time::sleep(interval).await;
        if let Err(error) = committer.commit().await {
            if matches!(error, OffsetStoreError::Fenced { .. }) {
                signals.fence(error);
                return;
            }
            let error = crate::error::Error::from(error).chain();
            tracing::error!(error, "the offset could not be stored; trying again");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Whether both begin a restart at the same place: what differs says only when the last event came, and from whom.
fn same_place(stored: &SourceOffset, new: &SourceOffset, mariadb: bool) -> bool {
    let mut new = new.clone();
    new.ts_sec = stored.ts_sec;
    new.server_id = stored.server_id;
    if stored.holdfast.is_none() {
        // Debezium wrote it. Its counts of the open unit hold until the unit has come, and ours are not known before.
        new.holdfast = None;
    }
    if crate::offset::gtids_of(stored, mariadb)
        .is_ok_and(|known| crate::offset::gtids_of(&new, mariadb) == Ok(known))
    {
        new.gtids.clone_from(&stored.gtids);
    }
    *stored == new
}

/// Whether `new` is before `stored` in the same log, or in another history of it. Places of different logs have no order.
fn moves_back(stored: &SourceOffset, new: &SourceOffset, mariadb: bool) -> bool {
    match compare(new, stored, mariadb) {
        OffsetOrder::Before | OffsetOrder::Diverged => true,
        OffsetOrder::Same | OffsetOrder::After | OffsetOrder::Unrelated => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use async_trait::async_trait;

    use super::*;

    fn offset(json: &str) -> SourceOffset {
        SourceOffset::from_json(json).unwrap()
    }

    #[test]
    fn an_offset_moves_back_by_gtids_or_else_by_coordinates() {
        const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let gtids = |file: &str, pos: u64, last: u64| {
            format!(r#"{{"file":"{file}","pos":{pos},"gtids":"{UUID}:1-{last}"}}"#)
        };
        let plain = |file: &str, pos: u64, rows: u64| {
            format!(
                r#"{{"file":"{file}","pos":{pos},"holdfast_v":1,"holdfast_lineage":"a","holdfast_epoch":1,"holdfast_rows":{rows}}}"#
            )
        };
        let of_log = |log: &str, pos: u64| {
            format!(
                r#"{{"file":"b.000001","pos":{pos},"holdfast_v":1,"holdfast_lineage":"{log}","holdfast_epoch":1}}"#
            )
        };
        for (stored, new, back) in [
            (plain("b.000009", 500, 0), plain("b.000010", 4, 0), false),
            (plain("b.000010", 4, 0), plain("b.000009", 500, 0), true),
            (plain("b.999999", 4, 0), plain("b.1000000", 4, 0), false),
            (plain("b.000009", 500, 3), plain("b.000009", 500, 2), true),
            (plain("b.000009", 500, 3), plain("b.000009", 500, 3), false),
            (plain("b.000009", 500, 3), plain("b.000009", 501, 0), false),
            (plain("b.000009", 500, 3), plain("c.000001", 4, 0), false),
            // GTIDs decide alone: the other server's file has a lower number.
            (gtids("b.000009", 500, 7), gtids("b.000001", 4, 8), false),
            (gtids("b.000001", 4, 8), gtids("b.000009", 500, 7), true),
            (gtids("b.000001", 4, 8), gtids("b.000001", 3, 8), true),
            (of_log("a", 9), of_log("b", 4), false),
        ] {
            assert_eq!(moves_back(&offset(&stored), &offset(&new), false), back, "{stored} {new}");
        }
        let mariadb =
            |gtids: &str| offset(&format!(r#"{{"file":"b.000001","pos":4,"gtids":"{gtids}"}}"#));
        assert!(moves_back(&mariadb("0-1-8"), &mariadb("0-1-7"), true));
        assert!(!moves_back(&mariadb("0-1-8"), &mariadb("0-1-8,1-2-3"), true));
    }

    /// Keeps everything that was stored.
    #[derive(Default)]
    struct Recorder(StdMutex<Vec<SourceOffset>>);

    #[async_trait]
    impl OffsetStore for Recorder {
        async fn load(&self, _: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
            Ok(None)
        }

        async fn store(
            &self,
            _: &OffsetKey,
            offset: &SourceOffset,
        ) -> Result<(), OffsetStoreError> {
            self.0.lock().unwrap().push(offset.clone());
            Ok(())
        }

        fn location(&self) -> String {
            "a recorder".to_owned()
        }
    }

    #[tokio::test]
    async fn a_refused_offset_leaves_the_old_one_and_an_equal_place_is_not_written() {
        let recorder = Arc::new(Recorder::default());
        let key = OffsetKey { engine: "e".to_owned(), server: "s".to_owned() };
        let stored = offset(r#"{"file":"b.000002","pos":50,"ts_sec":7,"server_id":3}"#);
        let committer = Committer::new(Arc::clone(&recorder) as _, key, Some(stored), false);
        let advance = |file: &str, pos: u64| {
            let point = OffsetPoint::closed_at(file, pos);
            committer.ledger.update(|ledger| ledger.advance(point));
        };
        for (file, pos, writes, refused) in [
            ("b.000002", 50, 0, 0),
            ("b.000001", 90, 0, 1),
            ("b.000002", 49, 0, 2),
            ("b.000002", 51, 1, 2),
            ("b.000002", 51, 1, 2),
            ("b.000002", 50, 1, 3),
            ("b.000003", 4, 2, 3),
        ] {
            advance(file, pos);
            committer.commit().await.unwrap();
            let stored = recorder.0.lock().unwrap().len();
            assert_eq!((stored, committer.counts.regressions()), (writes, refused), "{file} {pos}");
        }
    }
}
