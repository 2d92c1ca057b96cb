//! Rows as arrays of values: buffers that are filled again for every row.

use super::reader::{RowSink, Side};
use crate::value::Value;

/// One row: its image before and after the change. Reused from row to row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row<'a> {
    /// The row as it was; empty for an inserted row.
    pub before: RowImage<'a>,
    /// The row as it became; empty for a deleted row.
    pub after: RowImage<'a>,
}

impl Row<'_> {
    /// An empty row without buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self { before: RowImage::new(), after: RowImage::new() }
    }

    /// Empties the row and keeps its buffers for rows of another event.
    #[must_use]
    pub fn recycle<'b>(self) -> Row<'b> {
        Row { before: self.before.recycle(), after: self.after.recycle() }
    }
}

impl<'a> RowSink<'a> for Row<'a> {
    #[inline(always)]
    fn value(&mut self, side: Side, column: usize, value: Value<'a>) {
        let image = match side {
            Side::Before => &mut self.before,
            Side::After => &mut self.after,
        };
        if let Some(slot) = image.values.get_mut(column) {
            *slot = Some(value);
        }
    }
}

/// The values that one side of a change carries, by column of the table map.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowImage<'a> {
    values: Vec<Option<Value<'a>>>,
}

impl<'a> RowImage<'a> {
    /// An image that carries nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// Makes room for the values of a table's columns. `full` promises that each of them is written.
    #[inline]
    pub(super) fn start(&mut self, columns: usize, full: bool) {
        if self.values.len() != columns || !full {
            self.values.clear();
            self.values.resize(columns, None);
        }
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
    }

    /// Whether there is no image on this side.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The value of the column with a zero-based index in the table map; `None` when the image does not carry it
    /// (`binlog_row_image` MINIMAL or NOBLOB). SQL NULL is [`Value::Null`].
    #[inline]
    #[must_use]
    pub fn get(&self, column: usize) -> Option<Value<'a>> {
        self.values.get(column).copied().flatten()
    }

    /// As [`Self::get`], without a copy: where many values pass, a copy of each costs more than to print it.
    #[inline]
    #[must_use]
    pub fn get_ref(&self, column: usize) -> Option<&Value<'a>> {
        self.values.get(column)?.as_ref()
    }

    /// The values the image carries, with their column indexes, in table order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, Value<'a>)> + '_ {
        self.values.iter().enumerate().filter_map(|(column, value)| Some((column, (*value)?)))
    }

    /// Empties the image and keeps its buffer. Collecting a vector of equal layout reuses the allocation.
    fn recycle<'b>(mut self) -> RowImage<'b> {
        self.values.clear();
        RowImage { values: self.values.into_iter().map(|_| None).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycling_keeps_the_allocation() {
        let bytes = b"text".to_vec();
        let mut row = Row::new();
        row.after.start(100, true);
        row.value(Side::After, 99, Value::Bytes(&bytes));
        assert_eq!(row.after.get(99), Some(Value::Bytes(b"text")));
        let buffer = row.after.values.as_ptr().addr();
        let capacity = row.after.values.capacity();
        let mut row: Row<'static> = row.recycle();
        drop(bytes);
        assert!(row.after.is_empty());
        row.after.start(100, true);
        assert_eq!(row.after.values.as_ptr().addr(), buffer);
        assert_eq!(row.after.values.capacity(), capacity);
        assert_eq!(row.after.get(99), None);
    }
}
