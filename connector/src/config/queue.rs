//! Memory, batches and waiting.

use std::time::Duration;

use super::Checked;

/// The bound on waiting bytes where `max.queue.size.in.bytes` is 0.
const DEFAULT_QUEUE_BYTES: u64 = 32 << 20;

/// Bytes of a batch to which the next record is not added: few enough that the batches that are filled, wait and are
/// consumed stay in the cache of a processor, and enough that the consumer is not woken for every few large records.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Memory, batches and waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    /// `max.batch.size`: records of one batch, 1 and more; the last ack group is finished.
    pub max_batch: usize,
    /// `max.queue.size`: records that wait, more than `max_batch`.
    pub max_records: usize,
    /// `max.queue.size.in.bytes`: bytes that wait; 32 MiB where the property is 0.
    pub max_bytes: u64,
    /// `poll.interval.ms`: how long to wait for records.
    pub poll_interval: Duration,
    /// `holdfast.tasks`: how many tasks render the rows of a large transaction; 0 for as many as the runtime has threads.
    pub tasks: usize,
}

impl QueueConfig {
    /// Batches that may wait for the consumer, 1 and more; one more is being filled and one being consumed.
    pub(crate) fn batches(&self) -> usize {
        (self.max_records / self.max_batch.max(1)).clamp(1, 64)
    }

    /// Tasks that render rows. Unless they are given, one where the runtime has one thread.
    pub(crate) fn tasks(&self) -> usize {
        /// More than these would wait for the one that reads.
        const MOST: usize = 4;
        match self.tasks {
            0 => tokio::runtime::Handle::try_current()
                .map_or(1, |runtime| runtime.metrics().num_workers().clamp(1, MOST)),
            tasks => tasks,
        }
    }

    /// Whether a batch of so many records and bytes is to be given out. All batches together keep to `max_bytes`.
    pub(crate) fn is_full(&self, records: usize, bytes: usize) -> bool {
        let is_large = bytes >= BATCH_BYTES;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let batches = u64::try_from(self.batches() + 2).unwrap_or(u64::MAX);
        records >= self.max_batch || is_large || bytes.saturating_mul(batches) >= self.max_bytes
    }
}

impl Checked<'_> {
    pub(super) fn queue(&self) -> QueueConfig {
        QueueConfig {
            max_batch: self.integer("max.batch.size"),
            max_records: self.integer("max.queue.size"),
            max_bytes: match self.integer("max.queue.size.in.bytes") {
                0 => DEFAULT_QUEUE_BYTES,
                bytes => bytes,
            },
            poll_interval: self.millis("poll.interval.ms"),
            tasks: self.integer("holdfast.tasks"),
        }
    }
}
