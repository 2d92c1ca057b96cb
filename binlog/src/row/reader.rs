//! One pass over the rows of an event.

use std::fmt;

use super::image::Row;
use super::plan::Step;
use crate::event::rows::{RowsEvent, RowsKind};
use crate::event::table_map::{Bitmap, TableMap};
use crate::value::{JsonDiffs, Value};
use crate::wire::{Cursor, DecodeError};

/// Which image of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The row as it was: deletes and updates.
    Before,
    /// The row as it became: inserts and updates.
    After,
}

/// Takes the values of a row as they are decoded: all of the before image, then all of the after image, each in table
/// order. A column that an image does not carry is not called for.
///
/// The decoder calls [`value`](Self::value) in a place of its own for every type, where the kind of the value is known.
/// An implementation that is marked `#[inline(always)]` loses its `match` there; one that is not is called with the
/// value in memory and looks at the kind again, which takes about as long as decoding did.
pub trait RowSink<'a> {
    /// Takes one value. `column` is zero-based in the table map.
    fn value(&mut self, side: Side, column: usize, value: Value<'a>);
}

/// Why a row could not be decoded, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowError {
    /// Zero-based index of the row in its event.
    pub row: usize,
    /// The image.
    pub side: Side,
    /// Zero-based index of the column; `None` when the image's header is what is wrong.
    pub column: Option<usize>,
    /// What is wrong.
    pub error: DecodeError,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Before => "before",
            Side::After => "after",
        };
        match self.column {
            Some(column) => write!(f, "row {}, {side} image, column {column}", self.row),
            None => write!(f, "row {}, {side} image", self.row),
        }
    }
}

impl std::error::Error for RowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The columns that one side of an event's rows carries.
#[derive(Debug, Clone, Copy)]
struct Present<'a> {
    columns: Bitmap<'a>,
    /// How many they are.
    count: usize,
}

impl<'a> Present<'a> {
    fn new(columns: Bitmap<'a>) -> Self {
        Self { columns, count: columns.count_ones() }
    }

    const fn is_full(&self) -> bool {
        self.count == self.columns.len()
    }
}

/// Reads the rows of one event, in order, each in one pass.
#[derive(Debug, Clone)]
pub struct RowReader<'a, 't> {
    steps: &'t [Step],
    rows: Cursor<'a>,
    before: Option<Present<'a>>,
    after: Option<Present<'a>>,
    partial: bool,
    /// Index of the next row.
    row: usize,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Images that carry all columns: those from the first side to the last.
    Full(Side, Side),
    /// Images that may lack columns or have diffs.
    Sparse,
    /// A row without any column takes no bytes: an INSERT of defaults alone with `binlog_row_image=MINIMAL`. The
    /// event stands for one row: MySQL 9.7 writes it so, and refuses to log a second row like it.
    OneEmptyRow,
    Failed(RowError),
}

impl<'a, 't> RowReader<'a, 't> {
    pub(crate) fn new(event: &RowsEvent<'a>, table: &'t TableMap) -> Result<Self, DecodeError> {
        let steps = table.plan()?.steps();
        if event.table_id() != table.table_id() {
            return Err(DecodeError::Mismatch {
                field: "table id of a rows event",
                found: event.table_id(),
                expected: table.table_id(),
            });
        }
        if event.column_count() != steps.len() {
            return Err(DecodeError::Mismatch {
                field: "column count of a rows event",
                found: event.column_count() as u64,
                expected: steps.len() as u64,
            });
        }
        let before = event.before_columns().map(Present::new);
        let after = event.after_columns().map(Present::new);
        let rows = Cursor::new(event.rows_bytes());
        let partial = event.kind() == RowsKind::PartialUpdate;
        let columns = before.map_or(0, |side| side.count) + after.map_or(0, |side| side.count);
        let is_full = |side: &Option<Present<'_>>| side.as_ref().is_none_or(Present::is_full);
        let state = if columns == 0 && rows.is_empty() {
            State::OneEmptyRow
        } else if columns == 0 {
            let left = rows.left() as u64;
            return Err(DecodeError::Trailing { field: "a row without columns", left });
        } else if partial || !is_full(&before) || !is_full(&after) {
            State::Sparse
        } else {
            let first = if before.is_some() { Side::Before } else { Side::After };
            let last = if after.is_some() { Side::After } else { Side::Before };
            State::Full(first, last)
        };
        Ok(Self { steps, rows, before, after, partial, row: 0, state })
    }

    /// Zero-based index of the row that the next call reads.
    #[must_use]
    pub const fn row_index(&self) -> usize {
        self.row
    }

    /// Reads the next row into `row`; false after the last one. Allocates only while the buffers of `row` grow to the
    /// table's width.
    ///
    /// # Errors
    ///
    /// [`RowError`] when the bytes do not decode; from then on every call gives the same error.
    #[inline]
    pub fn read(&mut self, row: &mut Row<'a>) -> Result<bool, RowError> {
        let columns = self.steps.len();
        match &self.before {
            Some(side) => row.before.start(columns, side.is_full()),
            None => row.before.clear(),
        }
        match &self.after {
            Some(side) => row.after.start(columns, side.is_full()),
            None => row.after.clear(),
        }
        self.read_into(row)
    }

    /// Reads the next row and hands each value to `sink`; false after the last one, without a call. After an error the
    /// sink may have got a part of the row.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    #[inline]
    pub fn read_into<S: RowSink<'a>>(&mut self, sink: &mut S) -> Result<bool, RowError> {
        let is_read = if let State::Full(first, last) = self.state {
            self.full_row(first, last, sink)
        } else {
            self.other_row(sink)
        };
        if is_read {
            self.row += 1;
            return Ok(true);
        }
        if let State::Failed(error) = self.state { Err(error) } else { Ok(false) }
    }

    /// Reads the images from the side `first` to `last`, which carry all columns. False without a row: at the end, and when
    /// it fails, by the state.
    #[inline(always)]
    fn full_row<S: RowSink<'a>>(&mut self, first: Side, last: Side, sink: &mut S) -> bool {
        if self.rows.is_empty() {
            return false;
        }
        let (mut rows, mut side) = (self.rows, first);
        loop {
            match full_image(self.steps, rows, side, sink) {
                Some(behind) => rows = behind,
                None => return self.fail(),
            }
            if side == last {
                self.rows = rows;
                return true;
            }
            side = last;
        }
    }

    /// Finds out why the next row does not decode, by reading it once more the slow way: where values are read for the
    /// first time, keeping what an error says would take registers from them.
    #[cold]
    #[inline(never)]
    fn fail(&mut self) -> bool {
        if self.sparse_row(&mut Discard) {
            let error = DecodeError::Invalid { field: "row", value: self.row as u64 };
            self.state =
                State::Failed(RowError { row: self.row, side: Side::After, column: None, error });
        }
        false
    }

    /// Reads a row of images that may lack columns. False as with [`Self::full_row`].
    fn other_row<S: RowSink<'a>>(&mut self, sink: &mut S) -> bool {
        match self.state {
            State::Full(..) | State::Sparse => !self.rows.is_empty() && self.sparse_row(sink),
            State::OneEmptyRow => self.row == 0,
            State::Failed(_) => false,
        }
    }

    fn sparse_row<S: RowSink<'a>>(&mut self, sink: &mut S) -> bool {
        match self.sparse_images(sink) {
            Ok(rows) => {
                self.rows = rows;
                true
            }
            Err((side, column, error)) => {
                self.state = State::Failed(RowError { row: self.row, side, column, error });
                false
            }
        }
    }

    /// Gives what is behind the row.
    fn sparse_images<S: RowSink<'a>>(
        &self,
        sink: &mut S,
    ) -> Result<Cursor<'a>, (Side, Option<usize>, DecodeError)> {
        let mut rows = self.rows;
        if let Some(present) = self.before {
            let side = Side::Before;
            sparse_image(self.steps, &mut rows, side, present, sink, |_| false)
                .map_err(|(column, error)| (side, column, error))?;
        }
        if let Some(present) = self.after {
            let side = Side::After;
            if self.partial {
                partial_image(self.steps, &mut rows, present, sink)
            } else {
                sparse_image(self.steps, &mut rows, side, present, sink, |_| false)
            }
            .map_err(|(column, error)| (side, column, error))?;
        }
        Ok(rows)
    }
}

/// Takes values to nowhere.
struct Discard;

impl<'a> RowSink<'a> for Discard {
    #[inline(always)]
    fn value(&mut self, _: Side, _: usize, _: Value<'a>) {}
}

/// Reads an image that carries all columns, a null bitmap and the values, and gives what is behind it. What is wrong
/// with one that does not decode is not said.
#[inline(always)]
fn full_image<'a, S: RowSink<'a>>(
    steps: &[Step],
    mut rows: Cursor<'a>,
    side: Side,
    sink: &mut S,
) -> Option<Cursor<'a>> {
    let nulls = rows.take(steps.len().div_ceil(8), "null bitmap").ok()?;
    let mut column = 0;
    loop {
        let null = next_null(nulls, column).min(steps.len());
        let before = steps.get(column..null).unwrap_or_default();
        rows = values(before, rows, side, column, sink)?;
        if null == steps.len() {
            return Some(rows);
        }
        sink.value(side, null, Value::Null);
        column = null + 1;
    }
}

/// Reads values that are not NULL, and gives what is behind them. On its own, so that the compiler has all registers for
/// this loop.
#[inline(never)]
fn values<'a, S: RowSink<'a>>(
    steps: &[Step],
    mut rows: Cursor<'a>,
    side: Side,
    mut column: usize,
    sink: &mut S,
) -> Option<Cursor<'a>> {
    for step in steps {
        step.read(&mut rows, side, column, sink).ok()?;
        column += 1;
    }
    Some(rows)
}

/// The first column from one on that is NULL by an image's bitmap; any number beyond the columns when there is none.
#[inline(always)]
fn next_null(bytes: &[u8], column: usize) -> usize {
    let (mut index, mut mask) = (column / 8, 0xff << (column % 8));
    while let Some(byte) = bytes.get(index) {
        let bits = byte & mask;
        if bits != 0 {
            return 8 * index + bits.trailing_zeros() as usize;
        }
        index += 1;
        mask = 0xff;
    }
    usize::MAX
}

type ImageError = (Option<usize>, DecodeError);

/// Reads an image that lacks columns, or whose JSON columns may be diffs.
fn sparse_image<'a, S: RowSink<'a>>(
    steps: &[Step],
    rows: &mut Cursor<'a>,
    side: Side,
    present: Present<'a>,
    sink: &mut S,
    is_diff: impl Fn(usize) -> bool,
) -> Result<(), ImageError> {
    let nulls =
        rows.take(present.count.div_ceil(8), "null bitmap").map_err(|error| (None, error))?;
    let nulls = Bitmap::new(nulls, present.count);
    let carried = steps.iter().enumerate().filter(|(column, _)| present.columns.contains(*column));
    for (index, (column, step)) in carried.enumerate() {
        if nulls.contains(index) {
            sink.value(side, column, Value::Null);
        } else if is_diff(column) {
            let diffs = JsonDiffs::read(rows).map_err(|error| (Some(column), error))?;
            sink.value(side, column, Value::JsonDiffs(diffs));
        } else {
            read_apart(*step, rows, side, column, sink).map_err(|error| (Some(column), error))?;
        }
    }
    Ok(())
}

/// Reads a value, not inlined: the decoding of all types is large, and images that lack columns are rarer.
#[inline(never)]
fn read_apart<'a, S: RowSink<'a>>(
    step: Step,
    rows: &mut Cursor<'a>,
    side: Side,
    column: usize,
    sink: &mut S,
) -> Result<(), DecodeError> {
    step.read(rows, side, column, sink)
}

/// Reads the after image of a partial update: options, a bit per JSON column of the table, then the image.
fn partial_image<'a, S: RowSink<'a>>(
    steps: &[Step],
    rows: &mut Cursor<'a>,
    present: Present<'a>,
    sink: &mut S,
) -> Result<(), ImageError> {
    /// The bit of the options that says that the other bits follow (MySQL, `enum_binlog_row_value_options`).
    const PARTIAL_JSON: u64 = 1;
    let at_header = |error| (None, error);
    let options = rows.lenenc("value options").map_err(at_header)?;
    if options & !PARTIAL_JSON != 0 {
        return Err((None, DecodeError::Invalid { field: "value options", value: options }));
    }
    if options == 0 {
        return sparse_image(steps, rows, Side::After, present, sink, |_| false);
    }
    let count = steps.iter().filter(|step| step.is_json()).count();
    let bits = rows.take(count.div_ceil(8), "partial bits").map_err(at_header)?;
    let partial = Bitmap::new(bits, count);
    // The bits count the JSON columns of the table, those that the image lacks included.
    let is_diff = |column: usize| {
        let (before, from) = steps.split_at_checked(column).unwrap_or_default();
        from.first().is_some_and(|step| step.is_json())
            && partial.contains(before.iter().filter(|step| step.is_json()).count())
    };
    sparse_image(steps, rows, Side::After, present, sink, is_diff)
}
