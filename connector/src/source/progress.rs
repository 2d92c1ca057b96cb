//! How far a reading of the log is.

use holdfast_history::offset::SourceOffset;
use holdfast_snapshot::BinlogFileInfo;

/// Tells somebody, at every percent and at the end, how many bytes were read of how many.
pub(crate) struct LogProgress {
    /// The files, and how many bytes of the log lie before each.
    files: Vec<(String, u64)>,
    /// Bytes of the log before the place where the reading begins.
    start: u64,
    total: u64,
    /// How many bytes were told of last.
    told: u64,
    tell: Box<dyn Fn(u64, u64) + Send>,
}

impl LogProgress {
    /// For a reading of `files`, as the server lists them now, that begins at `offset`.
    pub(crate) fn new(
        files: Vec<BinlogFileInfo>,
        offset: &SourceOffset,
        tell: Box<dyn Fn(u64, u64) + Send>,
    ) -> Self {
        let mut before = 0_u64;
        let mut start = 0;
        let files = files
            .into_iter()
            .map(|BinlogFileInfo { name, size }| {
                let place = (name, before);
                if place.0 == offset.file {
                    start = before.saturating_add(offset.pos);
                }
                before = before.saturating_add(size);
                place
            })
            .collect();
        Self { files, start, total: before.saturating_sub(start), told: 0, tell }
    }

    /// The event that ends at `end` of `file` was read.
    pub(crate) fn read(&mut self, file: &str, end: u64) {
        let Some((_, before)) = self.files.iter().rfind(|(name, _)| name == file) else { return };
        let done = before.saturating_add(end).saturating_sub(self.start).min(self.total);
        if done > self.told && done - self.told > self.total / 100 {
            self.told = done;
            (self.tell)(done, self.total);
        }
    }

    /// Everything was read.
    pub(crate) fn end(&self) {
        (self.tell)(self.total, self.total);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn bytes_are_counted_over_files_and_told_at_every_percent() {
        let files = [("b.000001", 500), ("b.000002", 1000), ("b.000003", 2000)];
        let files = files.map(|(name, size)| BinlogFileInfo { name: name.to_owned(), size });
        let offset = SourceOffset { file: "b.000002".to_owned(), pos: 400, ..Default::default() };
        let (sender, told) = mpsc::channel();
        let tell = Box::new(move |done, total| sender.send((done, total)).unwrap());
        let mut progress = LogProgress::new(files.to_vec(), &offset, tell);
        progress.read("b.000002", 300);
        progress.read("b.000002", 410);
        progress.read("b.000002", 1000);
        progress.read("b.000003", 4);
        progress.read("b.000003", 1500);
        progress.read("b.000004", 1500);
        progress.read("b.000003", 9999);
        progress.end();
        drop(progress);
        let told: Vec<(u64, u64)> = told.iter().collect();
        assert_eq!(told, [(600, 2600), (2100, 2600), (2600, 2600), (2600, 2600)]);
    }
}
