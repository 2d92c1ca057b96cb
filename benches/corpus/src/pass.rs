//! The line that a measured process prints: time, CPU time and what was found.
//!
//! ```text
//! SECONDS CPU_SECONDS TRANSACTIONS ROWS IMAGES CELLS
//! ```
//!
//! The programs for other decoders under `benches/peers` print the same.

use std::time::Instant;

use crate::corpus::Facts;

/// What one process measured: the mean of its passes over the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pass {
    /// Wall time, seconds.
    pub seconds: f64,
    /// Time on a CPU, seconds; 0 where the system does not tell.
    pub cpu_seconds: f64,
    /// What was counted in one pass.
    pub facts: Facts,
}

impl Pass {
    /// Runs `pass` until half a second is over, at least once.
    ///
    /// # Errors
    ///
    /// That of `pass`.
    pub fn measure<E>(mut pass: impl FnMut() -> Result<Facts, E>) -> Result<Self, E> {
        let (started, cpu) = (Instant::now(), on_cpu());
        let mut passes = 0_u32;
        loop {
            let facts = pass()?;
            passes += 1;
            let seconds = started.elapsed().as_secs_f64();
            if seconds > 0.5 {
                let cpu_seconds = (on_cpu() - cpu) / f64::from(passes);
                return Ok(Self { seconds: seconds / f64::from(passes), cpu_seconds, facts });
            }
        }
    }

    /// The line.
    #[must_use]
    pub fn to_line(&self) -> String {
        let Self { seconds, cpu_seconds, facts } = self;
        let Facts { transactions, rows, images, cells } = facts;
        format!("{seconds:.6} {cpu_seconds:.6} {transactions} {rows} {images} {cells}")
    }

    /// Reads the line; nothing when it is another.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let mut next = || words.next();
        let (seconds, cpu_seconds) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let mut count = || next()?.parse().ok();
        let facts =
            Facts { transactions: count()?, rows: count()?, images: count()?, cells: count()? };
        Some(Self { seconds, cpu_seconds, facts })
    }
}

/// Seconds that this thread has been on a CPU (Linux, `Documentation/scheduler/sched-stats.rst`).
fn on_cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds")]
    let nanos = nanos.unwrap_or_default() as f64;
    nanos / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_reads_back() {
        let facts = Facts { transactions: 1, rows: 2, images: 3, cells: 4 };
        let pass = Pass { seconds: 0.25, cpu_seconds: 0.125, facts };
        assert_eq!(Pass::from_line(&pass.to_line()), Some(pass));
        assert_eq!(Pass::from_line("0.25 0.125 1 2 3"), None);
    }
}
