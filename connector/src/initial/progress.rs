//! Which tables of a snapshot are done, as an offset keeps it.

use std::sync::Arc;

use holdfast_history::TableId;

/// Tables of a snapshot that are done.
///
/// Text form, in `holdfast_progress`: `<check>:<bits>`, both in hexadecimal. The bits stand for the tables sorted by
/// name, four to a digit, the first table the lowest bit of the first digit; the check is a hash of the names, so that
/// bits of other tables are told apart. A thousand tables take 267 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Progress {
    tables: Vec<TableId>,
    done: Vec<bool>,
}

impl Progress {
    /// Nothing of `tables` is done.
    pub(super) fn new(tables: &[TableId]) -> Self {
        let mut tables = tables.to_vec();
        tables.sort_unstable();
        let done = vec![false; tables.len()];
        Self { tables, done }
    }

    /// What a text says of `tables`; `None` when it is not of these tables.
    pub(super) fn restore(tables: &[TableId], text: &str) -> Option<Self> {
        let mut progress = Self::new(tables);
        let (check, bits) = text.split_once(':')?;
        if check != progress.check() || bits.len() != progress.tables.len().div_ceil(4) {
            return None;
        }
        let digits: Option<Vec<u32>> = bits.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits?;
        for (index, done) in progress.done.iter_mut().enumerate() {
            *done = digits.get(index / 4)? >> (index % 4) & 1 == 1;
        }
        Some(progress)
    }

    /// A table is done.
    pub(super) fn finish(&mut self, table: &TableId) {
        if let Ok(index) = self.tables.binary_search(table)
            && let Some(done) = self.done.get_mut(index)
        {
            *done = true;
        }
    }

    pub(super) fn is_done(&self, table: &TableId) -> bool {
        let index = self.tables.binary_search(table).ok();
        index.and_then(|index| self.done.get(index)).is_some_and(|done| *done)
    }

    /// The text form; `None` while nothing is done.
    pub(super) fn text(&self) -> Option<Arc<str>> {
        if !self.done.contains(&true) {
            return None;
        }
        let digits = self.done.chunks(4).filter_map(|four| {
            let bits = four.iter().enumerate().map(|(bit, done)| u32::from(*done) << bit);
            char::from_digit(bits.sum(), 16)
        });
        Some(format!("{}:{}", self.check(), digits.collect::<String>()).into())
    }

    /// FNV-1a of the names.
    fn check(&self) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for table in &self.tables {
            for name in [&table.database, &table.table] {
                for byte in name.bytes().chain([0]) {
                    hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }
        format!("{hash:016x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(count: usize) -> Vec<TableId> {
        (0..count).rev().map(|number| TableId::new("d", format!("t{number:03}"))).collect()
    }

    #[test]
    fn what_is_done_is_read_back_for_any_number_of_tables() {
        for count in [0, 1, 3, 4, 5, 9, 1000] {
            let tables = tables(count);
            let mut progress = Progress::new(&tables);
            assert_eq!(progress.text(), None);
            for table in tables.iter().step_by(3) {
                progress.finish(table);
            }
            progress.finish(&TableId::new("other", "t"));
            let Some(text) = progress.text() else {
                assert_eq!(count, 0);
                continue;
            };
            assert_eq!(Progress::restore(&tables, &text), Some(progress.clone()));
            for (number, table) in tables.iter().enumerate() {
                assert_eq!(progress.is_done(table), number % 3 == 0);
            }
        }
    }

    #[test]
    fn a_text_of_other_tables_or_of_another_form_is_not_taken() {
        let mut progress = Progress::new(&tables(9));
        progress.finish(&TableId::new("d", "t004"));
        let text = progress.text().unwrap();
        assert!(text.ends_with(":010"), "{text}");
        assert!(Progress::restore(&tables(9), &text).is_some());
        assert!(Progress::restore(&tables(8), &text).is_none());
        for bad in
            ["", "x", "0:0", &text[..text.len() - 1], &format!("{text}0"), &text.replace('1', "g")]
        {
            assert_eq!(Progress::restore(&tables(9), bad), None, "{bad}");
        }
    }
}
