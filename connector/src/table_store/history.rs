//! The schema history in a table.

use std::io;

use async_trait::async_trait;
use holdfast_history::HistoryRecord;
use holdfast_history::codec::{RecordError, RecordLine, write_record};
use holdfast_history::error::{Error, Written};
use holdfast_history::store::{HistoryStore, Visit};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};
use tokio::sync::Mutex;

use super::link::{Failure, Link, TextColumn, fit, is_no_table, prepare};
use super::location::TableLocation;

/// The column of the records' text.
const DATA: &str = "history_data";
/// Debezium cuts records into parts of so many characters; parts of so many bytes are never longer.
const MAX_PART: u64 = 65_000;
/// No record is larger.
const MAX_RECORD: usize = 256 << 20;

/// A schema history in one table.
///
/// A writer remembers what the table held after its last append. Each append locks the rows, compares, and is refused
/// when somebody else has added or removed records since.
#[derive(Debug)]
pub struct TableHistoryStore {
    location: TableLocation,
    writer: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// What the table takes; `None` before a writer has looked.
    column: Option<TextColumn>,
    /// What the table held when we were done with it last; `None` when that is not known.
    left: Option<Content>,
}

/// What tells one content of a history from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    rows: u64,
    last_ts: Option<String>,
    last_seq: Option<i64>,
}

impl TableHistoryStore {
    /// Opens a history for reading and appending; the table is created if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] when the server can't be reached or the table can't be used.
    pub async fn open(location: TableLocation) -> Result<Self, Error> {
        let store = Self::new(location, true);
        {
            let mut state = store.state.lock().await;
            let State { link, column, left } = &mut *state;
            let conn = link.ready().await.map_err(|error| store.unread("open", error))?;
            let opened = async {
                let found = prepare(conn, &store.location, &create(&store.location), DATA).await?;
                let content = content(conn, &store.location, "").await?;
                Ok::<_, Failure>((found, content))
            };
            let (found, content) =
                opened.await.map_err(|error| store.unread("open", error.into_io()))?;
            *column = Some(found);
            *left = Some(content);
        }
        Ok(store)
    }

    /// Opens a history for reading only; a table that is not there is an empty history.
    #[must_use]
    pub fn open_read_only(location: TableLocation) -> Self {
        Self::new(location, false)
    }

    fn new(location: TableLocation, writer: bool) -> Self {
        let link = Link::new(location.clone());
        Self { location, writer, state: Mutex::new(State { link, column: None, left: None }) }
    }

    fn unread(&self, action: &'static str, source: io::Error) -> Error {
        Error::Read { location: self.location(), action, source }
    }

    /// One try of an append. `tried` says that an earlier one may have reached its commit.
    async fn append_once(
        &self,
        conn: &mut Conn,
        batch: &Batch,
        left: &Content,
        tried: &mut bool,
    ) -> Result<Appended, Failure> {
        conn.query_drop("START TRANSACTION").await?;
        let now = content(conn, &self.location, "FOR UPDATE").await?;
        if now != *left {
            let ours = *tried
                && now.rows == left.rows.saturating_add(batch.rows())
                && batch.is_there(conn, &self.location).await?;
            conn.query_drop("ROLLBACK").await?;
            return Ok(if ours { Appended::Yes(now) } else { Appended::Changed });
        }
        let insert = conn
            .prep(format!(
                "INSERT INTO {} (id, history_data, history_data_seq, record_insert_ts, record_insert_seq) \
                 VALUES (?, ?, ?, GREATEST(CURRENT_TIMESTAMP, COALESCE(?, CURRENT_TIMESTAMP)), ?)",
                self.location.quoted_table()
            ))
            .await?;
        let mut seq = left.last_seq.unwrap_or(0);
        for (id, parts) in &batch.records {
            seq = seq.checked_add(1).filter(|&seq| seq <= i64::from(i32::MAX)).ok_or_else(|| {
                Failure::Final(io::Error::other(
                    "record_insert_seq is at its largest value; number the rows anew from 1 in their order",
                ))
            })?;
            for (number, part) in (0_u64..).zip(parts) {
                let row = Params::from((id, part, number, &left.last_ts, seq));
                conn.exec_drop(&insert, row).await?;
            }
        }
        let after = content(conn, &self.location, "").await?;
        *tried = true;
        conn.query_drop("COMMIT").await?;
        conn.close(insert).await?;
        Ok(Appended::Yes(after))
    }
}

/// How a try of an append ended.
enum Appended {
    /// It is there, and this is the content now.
    Yes(Content),
    /// Somebody else was at it.
    Changed,
}

/// The records of one append with their ids, cut into parts.
struct Batch {
    records: Vec<(String, Vec<String>)>,
}

impl Batch {
    async fn new(
        conn: &mut Conn,
        records: &[HistoryRecord],
        column: TextColumn,
    ) -> Result<Self, Failure> {
        let room = usize::try_from(column.room.min(MAX_PART)).unwrap_or(1);
        let mut batch = Vec::with_capacity(records.len());
        for record in records {
            let mut json = Vec::new();
            write_record(record, None, &mut json);
            let json =
                String::from_utf8(json).map_err(|error| Failure::Final(io::Error::other(error)))?;
            // The server's: it is random enough, and there is nothing of the kind here.
            let id: Option<String> = conn.query_first("SELECT UUID()").await?;
            let id =
                id.ok_or_else(|| Failure::Final(io::Error::other("SELECT UUID() gave nothing")))?;
            batch.push((id, cut(&fit(json, column), room)));
        }
        Ok(Self { records: batch })
    }

    fn rows(&self) -> u64 {
        let rows: usize = self.records.iter().map(|(_, parts)| parts.len()).sum();
        u64::try_from(rows).unwrap_or(u64::MAX)
    }

    /// Whether the first record is in the table: then all are.
    async fn is_there(&self, conn: &mut Conn, location: &TableLocation) -> Result<bool, Failure> {
        let Some((id, _)) = self.records.first() else { return Ok(true) };
        let found: Option<u64> = conn
            .exec_first(
                format!("SELECT COUNT(*) FROM {} WHERE id = ?", location.quoted_table()),
                (id,),
            )
            .await?;
        Ok(found.is_some_and(|rows| rows > 0))
    }
}

/// Cuts text into parts of at most `room` bytes, between characters; a part has one character or more.
fn cut(text: &str, room: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.floor_char_boundary(room).max(first.len_utf8());
        let (part, after) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = after;
    }
    parts
}

/// What the table holds; `lock` may be `FOR UPDATE`, which keeps others from adding rows.
async fn content(
    conn: &mut Conn,
    location: &TableLocation,
    lock: &str,
) -> Result<Content, Failure> {
    let query = format!(
        "SELECT COUNT(*), CAST(MAX(record_insert_ts) AS CHAR), MAX(record_insert_seq) FROM {} {lock}",
        location.quoted_table()
    );
    let found: Option<(u64, Option<String>, Option<i64>)> = conn.query_first(query).await?;
    let (rows, last_ts, last_seq) =
        found.ok_or_else(|| Failure::Final(io::Error::other("counting rows gave nothing")))?;
    Ok(Content { rows, last_ts, last_seq })
}

/// Debezium's table, with a text column that takes any record.
fn create(location: &TableLocation) -> String {
    format!(
        "CREATE TABLE {} (id VARCHAR(36) NOT NULL, history_data LONGTEXT, history_data_seq INTEGER NOT NULL, \
         record_insert_ts TIMESTAMP NOT NULL, record_insert_seq INTEGER NOT NULL, PRIMARY KEY (id, history_data_seq)) \
         ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4",
        location.quoted_table()
    )
}

#[async_trait]
impl HistoryStore for TableHistoryStore {
    /// The line of a record is its number, from 1, in the order of reading.
    async fn read(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        let conn = state.link.ready().await.map_err(|error| self.unread("read", error))?;
        let failed = |error| self.unread("read", Failure::from(error).into_io());
        let query = format!(
            "SELECT id, history_data_seq, history_data FROM {} \
             ORDER BY record_insert_ts, record_insert_seq, id, history_data_seq",
            self.location.quoted_table()
        );
        let mut rows = match conn.query_iter(query).await {
            Err(error) if is_no_table(&error) => return Ok(()),
            rows => rows.map_err(failed)?,
        };
        let mut assembly = Assembly { location: self.location(), number: 0, open: None };
        let outcome = loop {
            let row = match rows.next().await {
                Ok(Some(row)) => row,
                Ok(None) => break assembly.finish(visit),
                Err(error) => break Err(failed(error)),
            };
            let part: Result<(String, Option<u64>, Option<Vec<u8>>), _> =
                mysql_async::from_row_opt(row);
            let added = match part {
                Ok((id, part, data)) => assembly.add(id, part, data, visit),
                Err(error) => Err(self.unread("read", io::Error::other(error))),
            };
            if added.is_err() {
                break added;
            }
        };
        drop(rows);
        if outcome.is_err() {
            // The rest of the answer is not wanted.
            state.link.abandon();
        }
        outcome
    }

    async fn append(&self, records: &[HistoryRecord]) -> Result<(), Error> {
        if !self.writer {
            return Err(Error::ReadOnly { location: self.location() });
        }
        if records.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock().await;
        let State { link, column, left: remembered } = &mut *state;
        let (Some(column), Some(left)) = (*column, remembered.take()) else {
            return Err(Error::Unknown { location: self.location() });
        };
        let failed = |source, tried| Error::Write {
            location: self.location(),
            written: if tried { Written::Maybe } else { Written::No },
            source,
        };
        let mut tried = false;
        let mut attempt = 1;
        let mut batch = None;
        let result = loop {
            let outcome = async {
                let conn = link.ready().await.map_err(Failure::Final)?;
                let batch = match &batch {
                    Some(batch) => batch,
                    None => batch.insert(Batch::new(conn, records, column).await?),
                };
                self.append_once(conn, batch, &left, &mut tried).await
            };
            match outcome.await {
                Ok(Appended::Yes(now)) => {
                    *remembered = Some(now);
                    return Ok(());
                }
                Ok(Appended::Changed) => {
                    break Error::Fenced { location: self.location() };
                }
                Err(Failure::Final(error)) => {
                    link.abandon();
                    break failed(error, tried);
                }
                Err(Failure::Passing(error)) => {
                    link.abandon();
                    attempt += 1;
                    tracing::warn!(store = %self.location, %error, attempt, "an append to the schema history failed");
                    if !link.wait_before(attempt).await {
                        break failed(error, tried);
                    }
                }
            }
        };
        if !tried {
            // Nothing of it is there, so that what we left is what there should be.
            *remembered = Some(left);
        }
        Err(result)
    }

    async fn exists(&self) -> Result<bool, Error> {
        let mut state = self.state.lock().await;
        let conn = state.link.ready().await.map_err(|error| self.unread("read", error))?;
        let query = format!("SELECT 1 FROM {} LIMIT 1", self.location.quoted_table());
        match conn.query_first::<u8, _>(query).await {
            Ok(found) => Ok(found.is_some()),
            Err(error) if is_no_table(&error) => Ok(false),
            Err(error) => Err(self.unread("read", Failure::from(error).into_io())),
        }
    }

    fn location(&self) -> String {
        self.location.to_string()
    }
}

/// Puts records together from their parts.
struct Assembly {
    location: String,
    /// Records begun so far.
    number: u64,
    open: Option<Open>,
}

/// A record of which parts were read.
struct Open {
    id: String,
    /// Number of the next part.
    next: u64,
    json: Vec<u8>,
}

impl Assembly {
    fn add(
        &mut self,
        id: String,
        part: Option<u64>,
        data: Option<Vec<u8>>,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        if self.open.as_ref().is_none_or(|open| open.id != id) {
            self.finish(visit)?;
            self.number = self.number.saturating_add(1);
        }
        let mut open = self.open.take().unwrap_or_else(|| Open { id, next: 0, json: Vec::new() });
        let missing = RecordError::MissingPart { part: open.next };
        let Some(data) = data.filter(|_| part == Some(open.next)) else {
            return Err(self.damaged(&open.id, missing));
        };
        if open.json.len().saturating_add(data.len()) > MAX_RECORD {
            return Err(self.damaged(&open.id, RecordError::TooLarge { limit: MAX_RECORD }));
        }
        open.json.extend_from_slice(&data);
        open.next = open.next.saturating_add(1);
        self.open = Some(open);
        Ok(())
    }

    /// Hands out the record whose last part was read.
    fn finish(&mut self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let Some(Open { id, json, .. }) = self.open.take() else { return Ok(()) };
        let text = std::str::from_utf8(&json).map_err(|error| {
            self.damaged(&id, RecordError::NotUtf8 { valid: error.valid_up_to() })
        })?;
        let record = RecordLine::parse(text).map_err(|error| self.damaged(&id, error))?;
        visit(self.number, &record)
    }

    fn damaged(&self, id: &str, source: RecordError) -> Error {
        let location = format!("{}, id {id}", self.location);
        Error::Damaged { location, line: self.number, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Id, number and text of parts.
    type Parts<'a> = &'a [(&'a str, u64, &'a str)];

    const RECORD: &str = r#"{"source":{"server":"s"},"position":{"file":"b.1","pos":4},"ts_ms":1}"#;

    #[test]
    fn parts_are_cut_between_characters_and_give_the_text_again() {
        for (text, room, parts) in
            [("", 3, 0), ("abcdef", 3, 2), ("abcdefg", 3, 3), ("ä€😀x", 3, 4), ("ä€😀x", 1, 4)]
        {
            let cut = cut(text, room);
            assert_eq!((cut.concat().as_str(), cut.len()), (text, parts), "{text} by {room}");
        }
    }

    #[test]
    fn a_record_is_put_together_from_its_parts_and_a_gap_names_the_row() {
        let read = |parts: Parts<'_>| {
            let mut assembly =
                Assembly { location: "table d.t at h:1".to_owned(), number: 0, open: None };
            let mut seen = Vec::new();
            let mut visit = |line: u64, record: &RecordLine<'_>| {
                seen.push((line, record.position.pos));
                Ok(())
            };
            for (id, part, data) in parts {
                assembly.add(
                    (*id).to_owned(),
                    Some(*part),
                    Some(data.as_bytes().to_vec()),
                    &mut visit,
                )?;
            }
            assembly.finish(&mut visit)?;
            Ok::<_, Error>(seen)
        };
        let (head, tail) = RECORD.split_at(30);
        assert_eq!(
            read(&[("a", 0, RECORD), ("b", 0, head), ("b", 1, tail), ("c", 0, RECORD)]).unwrap(),
            [(1, 4), (2, 4), (3, 4)]
        );
        let cases: [(Parts<'_>, &str); 4] = [
            (&[("a", 0, RECORD), ("b", 1, tail)], "id b, line 2: history record cannot be read"),
            (&[("a", 0, head), ("a", 2, tail)], "id a, line 1: history record cannot be read"),
            (&[("a", 0, head), ("b", 0, RECORD)], "id a, line 1: history record cannot be read"),
            (&[("a", 0, "\u{0}")], "id a, line 1: history record cannot be read"),
        ];
        for (parts, expected) in cases {
            let error = read(parts).unwrap_err().to_string();
            assert_eq!(error, format!("table d.t at h:1, {expected}"));
        }
    }
}
