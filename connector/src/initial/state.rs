//! How the snapshot of an engine stands, for its status and metrics.

use std::time::Duration;

use tokio::time::Instant;

/// How the snapshot of an engine stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SnapshotState {
    /// It is not known yet whether one is taken.
    #[default]
    Pending,
    /// None is taken: there was an offset to go on from.
    Skipped,
    /// It is being taken, or stands still because the engine is paused.
    Running,
    /// All of it was read. Whether it was acknowledged is another matter.
    Completed,
    /// It was ended before all was read, by a stop or an error. The next start goes on with it.
    Aborted,
}

/// The state, and how long it took to get there.
#[derive(Debug, Default)]
pub(crate) struct SnapshotTrack {
    state: SnapshotState,
    begun: Option<Instant>,
    took: Duration,
}

impl SnapshotTrack {
    pub(crate) fn begin(&mut self, now: Instant) {
        *self = Self { state: SnapshotState::Running, begun: Some(now), took: Duration::ZERO };
    }

    pub(crate) fn end(&mut self, completed: bool, now: Instant) {
        self.took = self.took(now);
        self.begun = None;
        self.state = if completed { SnapshotState::Completed } else { SnapshotState::Aborted };
    }

    /// Streaming begins without a snapshot. One that this engine has taken before stays known.
    pub(crate) fn skip(&mut self) {
        if self.state == SnapshotState::Pending {
            self.state = SnapshotState::Skipped;
        }
    }

    pub(crate) const fn state(&self) -> SnapshotState {
        self.state
    }

    /// How long it took, or takes so far.
    pub(crate) fn took(&self, now: Instant) -> Duration {
        self.begun.map_or(self.took, |begun| now.duration_since(begun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_that_was_aborted_is_taken_again_and_a_completed_one_stays_known() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut track = SnapshotTrack::default();
        assert_eq!((track.state(), track.took(at(9))), (SnapshotState::Pending, Duration::ZERO));
        track.begin(start);
        assert_eq!(track.took(at(3)), Duration::from_secs(3));
        track.end(false, at(4));
        assert_eq!((track.state(), track.took(at(9)).as_secs()), (SnapshotState::Aborted, 4));
        track.begin(at(10));
        track.end(true, at(12));
        track.skip();
        assert_eq!((track.state(), track.took(at(99)).as_secs()), (SnapshotState::Completed, 2));
        let mut resumed = SnapshotTrack::default();
        resumed.skip();
        assert_eq!(resumed.state(), SnapshotState::Skipped);
    }
}
