//! Rows that are left out because the settings say so.

use holdfast_binlog::event::Event;
use holdfast_binlog::event::rows::RowsEvent;
use holdfast_binlog::event::table_map::TableMap;

use super::Assembler;
use super::rows::Nothing;
use crate::convert::FailureMode;
use crate::error::Error;

/// Why rows were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The bytes of a rows event do not decode.
    Undecodable,
    /// The definition of their table is not known, or does not fit.
    Definition,
    /// A value is missing, or can't be converted.
    Value,
    /// They were changed by a logged statement.
    Statement,
    /// Their XA transaction was prepared before reading began.
    Xa,
}

/// How often, by [`Why`]: events, rows for [`Why::Value`].
pub(crate) type LeftOut = [u64; Why::LABELS.len()];

impl Why {
    /// The names, in the order of the variants.
    pub(crate) const LABELS: [&'static str; 5] =
        ["undecodable", "definition", "value", "statement", "xa"];
}

impl Assembler {
    /// What becomes of rows that can't be delivered: an error, a line in the log, or a number alone.
    pub(super) fn leave_out(
        &mut self,
        mode: FailureMode,
        why: Why,
        error: impl Into<Error>,
    ) -> Result<(), Error> {
        let error = error.into();
        match mode {
            FailureMode::Fail => return Err(error),
            FailureMode::Warn => tracing::warn!(error = error.chain(), "left out"),
            FailureMode::Skip => tracing::debug!(error = error.chain(), "left out"),
        }
        if let Some(count) = self.left_out.get_mut(why as usize) {
            *count += 1;
        }
        Ok(())
    }

    /// What was left out since it was last asked; `None` for nothing.
    pub(crate) fn take_left_out(&mut self) -> Option<LeftOut> {
        let some = self.left_out.iter().any(|count| *count > 0);
        some.then(|| std::mem::take(&mut self.left_out))
    }

    /// An event that the stream could not decode: an error, unless it is a rows event that is to be left out. It counts
    /// as a rows event, so that the identities behind it are those that they are without damage, and as no rows.
    pub(crate) fn undecodable(&mut self, error: holdfast_binlog::Error) -> Result<(), Error> {
        let mode = self.config.events.on_processing_failure;
        let Some(end) = error.end_of_rows().filter(|_| mode != FailureMode::Fail) else {
            return Err(error.into());
        };
        let catches_up = self.xa.is_catching_up();
        if catches_up && !self.xa.is_open() {
            return Ok(());
        }
        self.tracker.rows_event();
        if !self.tracker.skips_row() {
            self.leave_out(mode, Why::Undecodable, error)?;
        }
        if !catches_up {
            self.tracker.event_done(end);
        }
        Ok(())
    }

    /// Whether a rows event is left out as a whole, because not all of it decodes: where a row is broken, what stands
    /// before it may have been read wrongly. Without such a setting nothing is looked at, and the error comes with the row.
    pub(super) fn is_undecodable(
        &mut self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Result<bool, Error> {
        let mode = self.config.events.on_processing_failure;
        if mode == FailureMode::Fail {
            return Ok(false);
        }
        let Err(error) = self.read_all(event, rows, map) else { return Ok(false) };
        if !self.tracker.skips_row() {
            self.leave_out(mode, Why::Undecodable, error)?;
        }
        Ok(true)
    }

    fn read_all(
        &self,
        event: &Event<'_>,
        rows: &RowsEvent<'_>,
        map: &TableMap,
    ) -> Result<(), Error> {
        let mut reader = self.reader(event, rows, map)?;
        while reader
            .read_into(&mut Nothing)
            .map_err(|error| self.row_error(event, map, None, error))?
        {}
        Ok(())
    }
}
