//! Telling a statement that comes again from a new one.

use std::collections::BTreeMap;

use holdfast_binlog::position::BinlogFile;

use crate::codec::RecordError;
use crate::offset::SourceOffset;

/// Statements that recovery applied and that the stream may deliver again.
///
/// Debezium records a MySQL statement with the GTID set before it, so a restart by GTIDs delivers the statement although
/// its effect is in the recovered tables. Parsing it once more fails (the renamed column is not there any more) or is
/// wrong; such a statement is neither parsed nor recorded again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplayGuard {
    statements: BTreeMap<(String, u64), Vec<Guarded>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Guarded {
    record: usize,
    /// The statement's text where only that proves it is the same one; `None` where the lineage does.
    ddl: Option<String>,
}

/// A statement from the stream, to be looked up in a [`ReplayGuard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamedStatement<'a> {
    /// The binlog file, as the stream names it.
    pub file: &'a str,
    /// Position of the statement's GTID event on MariaDB, bytes from the start of the file, which is where Debezium records
    /// a statement there. `None` on MySQL: it records the end there, which is where the next statement's unit begins.
    pub unit_position: Option<u64>,
    /// Position after the statement's event, bytes from the start of the file.
    pub end_position: u64,
    /// The statement's text.
    pub ddl: &'a str,
}

impl ReplayGuard {
    /// Whether recovery has applied this statement. The stream must be of the offset's log.
    #[must_use]
    pub fn is_replay(&self, statement: &StreamedStatement<'_>) -> bool {
        self.find(statement).is_some()
    }

    /// The number, from 1, of the history record that recovery applied for this statement.
    #[must_use]
    pub fn find(&self, statement: &StreamedStatement<'_>) -> Option<usize> {
        let at = |position: u64| {
            self.statements.get(&(statement.file.to_owned(), position)).into_iter().flatten()
        };
        let same = |ddl: &String| same_statement(ddl, statement.ddl);
        // Where a unit begins, the one before it ends, and our own records are at the end of theirs: the place alone proves
        // nothing there.
        let found = at(statement.end_position)
            .find(|guarded| guarded.ddl.as_ref().is_none_or(same))
            .or_else(|| {
                let mut begin = statement.unit_position.into_iter().flat_map(at);
                begin.find(|guarded| guarded.ddl.as_ref().is_some_and(same))
            });
        found.map(|guarded| guarded.record)
    }

    /// Whether there is nothing to guard against.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// The statements: file, position, number of the record, and the text where it counts.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, u64, usize, Option<&str>)> + '_ {
        self.statements.iter().flat_map(|((file, position), statements)| {
            statements
                .iter()
                .map(move |one| (file.as_str(), *position, one.record, one.ddl.as_deref()))
        })
    }

    /// Takes a statement, unless a restart at `desired` can't read it any more.
    pub(super) fn insert(
        &mut self,
        (file, position, record, ddl): (String, u64, usize, Option<String>),
        desired: &SourceOffset,
    ) {
        if can_return(&file, desired) {
            self.statements.entry((file, position)).or_default().push(Guarded { record, ddl });
        }
    }

    /// Remembers an applied record when its statement can come again: a restart goes back a unit at most, which is in the
    /// offset's file or, after a rotation, in the one before.
    pub(super) fn note(
        &mut self,
        number: usize,
        position: &SourceOffset,
        same_log: Option<bool>,
        desired: &SourceOffset,
        ddl: impl FnOnce() -> Result<Option<String>, RecordError>,
    ) -> Result<(), RecordError> {
        if position.snapshot.is_some()
            || same_log == Some(false)
            || !can_return(&position.file, desired)
        {
            return Ok(());
        }
        let Some(ddl) = ddl()? else { return Ok(()) };
        let place = (position.file.clone(), position.pos);
        let proven = same_log == Some(true);
        let guarded = Guarded { record: number, ddl: (!proven).then_some(ddl) };
        self.statements.entry(place).or_default().push(guarded);
        Ok(())
    }
}

/// Whether a restart at `desired` may read statements of `file` again.
fn can_return(file: &str, desired: &SourceOffset) -> bool {
    let number_of = |file: &str| BinlogFile::parse(file).map(|file| file.number());
    match (number_of(file), number_of(&desired.file)) {
        (Ok(recorded), Ok(current)) => recorded.saturating_add(1) >= current,
        (Ok(_), Err(_)) | (Err(_), Ok(_) | Err(_)) => true,
    }
}

/// Whether a recorded text and a streamed one at the same place are one statement. Debezium records what its parser saw:
/// without leading comments and the last `;`, clipped at the front, or written anew for one table of a DROP or RENAME.
pub(super) fn same_statement(recorded: &str, streamed: &str) -> bool {
    let plain = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").trim_end_matches([';', ' ']).to_lowercase()
    };
    let (recorded, streamed) = (plain(recorded), plain(streamed));
    let rewritten = ["drop table ", "rename table "];
    !recorded.is_empty()
        && (streamed.contains(&recorded)
            || rewritten
                .iter()
                .any(|start| recorded.starts_with(start) && streamed.contains(start)))
}
