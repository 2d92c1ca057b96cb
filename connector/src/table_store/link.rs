//! The connection of a store: made when it is needed, and made again after it was lost.

use std::io;
use std::time::Duration;

use holdfast_snapshot::{Error as ServerError, ServerOptions};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};

use super::location::TableLocation;

/// Longest time for a connection to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What a failed statement means for the next attempt.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection is gone, or the server took the transaction back; the same may work the next time.
    Passing(io::Error),
    /// The server refuses it.
    Final(io::Error),
}

impl Failure {
    pub(super) fn into_io(self) -> io::Error {
        match self {
            Self::Passing(error) | Self::Final(error) => error,
        }
    }
}

impl From<mysql_async::Error> for Failure {
    fn from(error: mysql_async::Error) -> Self {
        // ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK, ER_SERVER_SHUTDOWN.
        const PASSING: [u16; 3] = [1205, 1213, 1053];
        let mysql_async::Error::Server(error) = error else {
            return Self::Passing(io::Error::other(error));
        };
        match error.code {
            code if PASSING.contains(&code) => Self::Passing(io::Error::other(error)),
            // ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR.
            1044 | 1142 | 1227 => {
                Self::Final(io::Error::new(io::ErrorKind::PermissionDenied, error))
            }
            _ => Self::Final(io::Error::other(error)),
        }
    }
}

/// What the server says of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextColumn {
    /// Characters that fit, 1 and more.
    pub(super) room: u64,
    /// Whether any text can be stored as it is.
    pub(super) is_utf8: bool,
}

/// One connection to the server of a table.
#[derive(Debug)]
pub(super) struct Link {
    location: TableLocation,
    conn: Option<Conn>,
}

impl Link {
    pub(super) const fn new(location: TableLocation) -> Self {
        Self { location, conn: None }
    }

    /// The connection, checked to be alive, or a new one.
    pub(super) async fn ready(&mut self) -> io::Result<&mut Conn> {
        let alive = match &mut self.conn {
            Some(conn) => conn.ping().await.is_ok(),
            None => false,
        };
        if !alive {
            self.conn = Some(self.connect().await?);
        }
        self.conn.as_mut().ok_or_else(|| io::Error::other("the connection is gone"))
    }

    /// Drops the connection, and with it what its transaction did.
    pub(super) fn abandon(&mut self) {
        self.conn = None;
    }

    /// Waits before another attempt; `false` when there were enough.
    pub(super) async fn wait_before(&self, attempt: u32) -> bool {
        if attempt > self.location.max_attempts {
            return false;
        }
        tokio::time::sleep(self.location.retry_delay).await;
        true
    }

    async fn connect(&self) -> io::Result<Conn> {
        let mut attempt = 1;
        loop {
            match self.connect_once().await {
                Ok(conn) => return Ok(conn),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(error)) => {
                    attempt += 1;
                    tracing::warn!(store = %self.location, %error, "no connection to a store");
                    if !self.wait_before(attempt).await {
                        return Err(error);
                    }
                }
            }
        }
    }

    async fn connect_once(&self) -> Result<Conn, Failure> {
        let location = &self.location;
        let options = ServerOptions {
            host: location.host.clone(),
            port: location.port,
            user: location.user.clone(),
            password: location.password.expose().to_owned(),
            tls: location.tls.clone(),
            connect_timeout: CONNECT_TIMEOUT,
            initial_statements: Vec::new(),
        };
        let mut conn = holdfast_snapshot::connect(&options).await.map_err(|error| match error {
            // The properties that those texts name are the captured server's, not the store's.
            ServerError::AccessDenied { message, .. } => {
                Failure::Final(io::Error::new(io::ErrorKind::PermissionDenied, message))
            }
            ServerError::Unreachable { source, .. } => Failure::Passing(source),
            ServerError::ConnectTimeout { .. } => {
                Failure::Passing(io::Error::from(io::ErrorKind::TimedOut))
            }
            ServerError::Connect { source, .. } => source.into(),
            other @ (ServerError::UnsupportedAuth { .. } | _) => {
                Failure::Final(io::Error::other(other))
            }
        })?;
        // Text that does not fit must be an error, and sorting a large table must not need more than there is. Nobody
        // holds a lock for long, except a snapshot in locking mode `extended`.
        conn.query_drop(
            "SET SESSION sql_mode='STRICT_ALL_TABLES', SESSION sort_buffer_size=16777216, SESSION lock_wait_timeout=30, \
             SESSION innodb_lock_wait_timeout=30",
        )
        .await?;
        conn.query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        conn.query_drop(format!("USE {}", location.quoted_database())).await?;
        Ok(conn)
    }
}

/// Creates the table unless it is there, and reads what its column of text takes.
pub(super) async fn prepare(
    conn: &mut Conn,
    location: &TableLocation,
    create: &str,
    column: &'static str,
) -> Result<TextColumn, Failure> {
    if let Some(found) = text_column(conn, location, column).await? {
        return Ok(found);
    }
    tracing::info!(store = %location, "creating the table of a store");
    let create = location.ddl.as_deref().unwrap_or(create);
    match conn.query_drop(create).await {
        // ER_TABLE_EXISTS_ERROR: another engine was quicker.
        Err(mysql_async::Error::Server(error)) if error.code == 1050 => {}
        created => created?,
    }
    let found = text_column(conn, location, column).await?;
    found.ok_or_else(|| {
        Failure::Final(io::Error::other(format!(
            "the table is not there after its statement (jdbc.table.ddl) was run, or has no column {column}"
        )))
    })
}

/// What a column of text takes; `None` when there is no such table.
async fn text_column(
    conn: &mut Conn,
    location: &TableLocation,
    column: &'static str,
) -> Result<Option<TextColumn>, Failure> {
    type Found = (String, Option<u64>, Option<String>, Option<String>);
    let found: Vec<Found> = conn
        .exec(
            "SELECT c.COLUMN_NAME, c.CHARACTER_MAXIMUM_LENGTH, c.CHARACTER_SET_NAME, e.TRANSACTIONS \
             FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME) \
             LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
             WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ?",
            Params::from((&location.database, &location.table)),
        )
        .await?;
    if found.is_empty() {
        return Ok(None);
    }
    let refuse =
        |text: String| Err(Failure::Final(io::Error::new(io::ErrorKind::Unsupported, text)));
    let Some((_, room, charset, transactions)) =
        found.into_iter().find(|(name, ..)| name.eq_ignore_ascii_case(column))
    else {
        return refuse(format!(
            "the table has no column {column}; it is not a table of Debezium's layout"
        ));
    };
    if !transactions.is_some_and(|answer| answer.eq_ignore_ascii_case("yes")) {
        return refuse(
            "the table's engine has no transactions; ALTER TABLE … ENGINE=InnoDB".to_owned(),
        );
    }
    let is_utf8 = charset.is_some_and(|charset| charset == "utf8mb4");
    Ok(Some(TextColumn { room: room.unwrap_or(0).max(1), is_utf8 }))
}

/// Whether a statement failed because there is no such table.
pub(super) fn is_no_table(error: &mysql_async::Error) -> bool {
    // ER_NO_SUCH_TABLE.
    matches!(error, mysql_async::Error::Server(error) if error.code == 1146)
}

/// JSON for a column: as it is, or with all characters beyond ASCII escaped where the column can't hold them.
pub(super) fn fit(json: String, column: TextColumn) -> String {
    if column.is_utf8 || json.is_ascii() {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for character in json.chars() {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            // Outside strings JSON is ASCII, so this is inside one.
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04X}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_a_columns_characters_is_escaped_and_is_the_same_json() {
        let json = "{\"name\":\"naïve 数据 😀 \\\"x\\\"\"}".to_owned();
        let narrow = TextColumn { room: 10, is_utf8: false };
        let escaped = fit(json.clone(), narrow);
        assert!(escaped.is_ascii(), "{escaped}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&escaped), read(&json));
        assert_eq!(fit(json.clone(), TextColumn { room: 10, is_utf8: true }), json);
    }
}
