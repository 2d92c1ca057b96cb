//! Offsets in a table.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use holdfast_history::offset::SourceOffset;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};
use serde_json::Value;
use tokio::sync::Mutex;

use super::link::{Failure, Link, TextColumn, fit, is_no_table, prepare};
use super::location::TableLocation;
use crate::offset_store::{OffsetKey, OffsetStore, OffsetStoreError};

/// The column of the offsets.
const DATA: &str = "offset_val";

/// Offsets in one table, each in its row.
#[derive(Debug)]
pub struct TableOffsetStore {
    location: TableLocation,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// What the table takes; `None` before the first offset is stored.
    column: Option<TextColumn>,
    /// Our offsets as they were last loaded or stored, by key; `None` for a key that had none.
    ours: BTreeMap<OffsetKey, Option<Value>>,
    /// What was to be stored under a key when the answer did not come: it may be there.
    pending: BTreeMap<OffsetKey, Value>,
}

/// Why an offset was not stored.
#[derive(Debug)]
enum Refusal {
    Failed(Failure),
    /// Another engine stored one under this key.
    Fenced,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<mysql_async::Error> for Refusal {
    fn from(error: mysql_async::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// A row: its id, key and value.
type Row = (String, Option<String>, Option<String>);

impl TableOffsetStore {
    /// Uses the table at `location`; it is created when the first offset is stored.
    #[must_use]
    pub fn new(location: TableLocation) -> Self {
        let link = Link::new(location.clone());
        let state = State { link, column: None, ours: BTreeMap::new(), pending: BTreeMap::new() };
        Self { location, state: Mutex::new(state) }
    }

    async fn store_once(
        &self,
        state: &mut State,
        key: &OffsetKey,
        offset: &SourceOffset,
    ) -> Result<(), Refusal> {
        let State { link, column, ours, pending } = state;
        let conn = link.ready().await.map_err(Failure::Final)?;
        let column = match column {
            Some(column) => *column,
            None => {
                let create = create(&self.location);
                *column.insert(prepare(conn, &self.location, &create, DATA).await?)
            }
        };
        let table = self.location.quoted_table();
        let json = offset.to_json();
        let new = value_of(Some(&json));
        let value = fit(json, column);
        conn.query_drop("START TRANSACTION").await?;
        let rows: Vec<Row> = select(conn, &table, "FOR UPDATE").await?;
        let mut ids = rows.into_iter().filter(|(_, found, _)| is_key(found.as_deref(), key)).rev();
        let last = ids.next();
        let found = value_of(last.as_ref().and_then(|(_, _, value)| value.as_deref()));
        // Whoever only looks first, and has not loaded, takes what is there.
        let before = ours.entry(key.clone()).or_insert_with(|| found.clone());
        if *before != found && (found.is_none() || found.as_ref() != pending.get(key)) {
            return Err(Refusal::Fenced);
        }
        if let Some(new) = &new {
            pending.insert(key.clone(), new.clone());
        }
        match last {
            Some((id, ..)) => {
                let update = format!(
                    "UPDATE {table} SET offset_val = ?, record_insert_ts = GREATEST(record_insert_ts, CURRENT_TIMESTAMP) \
                     WHERE id = ?"
                );
                conn.exec_drop(update, Params::from((value, id))).await?;
            }
            None => {
                let insert = format!(
                    "INSERT INTO {table} (id, offset_key, offset_val, record_insert_ts, record_insert_seq) \
                     VALUES (UUID(), ?, ?, CURRENT_TIMESTAMP, 1)"
                );
                conn.exec_drop(insert, Params::from((key.to_json(), value))).await?;
            }
        }
        // A key has one row; where there are more, the last is the one that counts.
        for (id, ..) in ids {
            conn.exec_drop(format!("DELETE FROM {table} WHERE id = ?"), (id,)).await?;
        }
        conn.query_drop("COMMIT").await?;
        ours.insert(key.clone(), new);
        pending.remove(key);
        Ok(())
    }

    fn io(&self, action: &'static str, source: io::Error) -> OffsetStoreError {
        OffsetStoreError::Io { action, location: self.location(), source }
    }
}

/// All rows in Debezium's order.
async fn select(conn: &mut Conn, table: &str, lock: &str) -> Result<Vec<Row>, mysql_async::Error> {
    let query = format!(
        "SELECT id, offset_key, offset_val FROM {table} ORDER BY record_insert_ts, record_insert_seq {lock}"
    );
    conn.query(query).await
}

/// An offset's JSON, however it is written; `None` where there is none. Text that is no JSON stands for itself.
fn value_of(text: Option<&str>) -> Option<Value> {
    text.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
}

/// Whether a key is ours, however its JSON is written.
fn is_key(found: Option<&str>, key: &OffsetKey) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    found.is_some_and(|found| {
        found == key.to_json()
            || read(found).is_some_and(|found| Some(found) == read(&key.to_json()))
    })
}

/// Debezium's table, with text columns that take any key and offset.
fn create(location: &TableLocation) -> String {
    format!(
        "CREATE TABLE {} (id VARCHAR(36) NOT NULL, offset_key TEXT, offset_val LONGTEXT, \
         record_insert_ts TIMESTAMP NOT NULL, record_insert_seq INTEGER NOT NULL, PRIMARY KEY (id)) \
         ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4",
        location.quoted_table()
    )
}

/// What to do about an offset that the column has no room for.
fn explain(error: io::Error, location: &TableLocation) -> io::Error {
    // ER_DATA_TOO_LONG.
    let is_long = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<mysql_async::ServerError>())
        .is_some_and(|error| error.code == 1406);
    if !is_long {
        return error;
    }
    let table = location.quoted_table();
    io::Error::other(format!(
        "the offset is longer than column offset_val; make room: ALTER TABLE {table} MODIFY offset_val LONGTEXT"
    ))
}

#[async_trait]
impl OffsetStore for TableOffsetStore {
    async fn load(&self, key: &OffsetKey) -> Result<Option<SourceOffset>, OffsetStoreError> {
        let mut state = self.state.lock().await;
        let conn = state.link.ready().await.map_err(|error| self.io("read", error))?;
        let rows = match select(conn, &self.location.quoted_table(), "").await {
            Ok(rows) => rows,
            Err(error) if is_no_table(&error) => {
                state.ours.insert(key.clone(), None);
                return Ok(None);
            }
            Err(error) => return Err(self.io("read", Failure::from(error).into_io())),
        };
        let found = rows.into_iter().rev().find(|(_, found, _)| is_key(found.as_deref(), key));
        // Debezium writes NULL for an offset that was taken back.
        let Some((id, _, Some(value))) = found else {
            state.ours.insert(key.clone(), None);
            return Ok(None);
        };
        state.ours.insert(key.clone(), value_of(Some(&value)));
        SourceOffset::from_json(&value).map(Some).map_err(|error| OffsetStoreError::Damaged {
            location: format!("{}, id {id}", self.location()),
            reason: error.to_string(),
        })
    }

    async fn store(&self, key: &OffsetKey, offset: &SourceOffset) -> Result<(), OffsetStoreError> {
        let mut state = self.state.lock().await;
        let mut attempt = 1;
        loop {
            // A second try of a store that had happened writes the same again.
            match self.store_once(&mut state, key, offset).await {
                Ok(()) => return Ok(()),
                Err(Refusal::Fenced) => {
                    state.link.abandon();
                    let (location, key) = (self.location(), key.to_json());
                    return Err(OffsetStoreError::Fenced { location, key });
                }
                Err(Refusal::Failed(Failure::Final(error))) => {
                    state.link.abandon();
                    return Err(self.io("write", explain(error, &self.location)));
                }
                Err(Refusal::Failed(Failure::Passing(error))) => {
                    state.link.abandon();
                    attempt += 1;
                    tracing::warn!(store = %self.location, %error, attempt, "storing the offset failed");
                    if !state.link.wait_before(attempt).await {
                        return Err(self.io("write", error));
                    }
                }
            }
        }
    }

    fn location(&self) -> String {
        self.location.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_however_its_json_is_written() {
        let key = OffsetKey { engine: "näme".to_owned(), server: "s".to_owned() };
        let cases = [
            (Some("[\"näme\",{\"server\":\"s\"}]"), true),
            (Some("[ \"n\\u00e4me\", {\"server\": \"s\"} ]"), true),
            (Some("[\"NÄME\",{\"server\":\"s\"}]"), false),
            (Some("[\"näme\",{\"server\":\"t\"}]"), false),
            (Some("no JSON"), false),
            (None, false),
        ];
        for (found, expected) in cases {
            assert_eq!(is_key(found, &key), expected, "{found:?}");
        }
    }
}
