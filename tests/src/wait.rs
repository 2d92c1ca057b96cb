//! Waiting for something outside this process.

use std::time::{Duration, Instant};

/// Asks `probe` every 20 ms until it gives a value; `None` after `limit`.
///
/// # Errors
///
/// The first error of `probe`.
pub(crate) fn until<T, E>(
    limit: Duration,
    mut probe: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let start = Instant::now();
    loop {
        if let Some(value) = probe()? {
            return Ok(Some(value));
        }
        if start.elapsed() > limit {
            return Ok(None);
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this crate is blocking; nothing else runs on the thread"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
