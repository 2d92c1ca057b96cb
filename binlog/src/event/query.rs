//! `QUERY_EVENT`: a statement, and the session settings it ran under.
//!
//! ```text
//! thread_id       u32le
//! execution_time  u32le
//! schema_length   u8
//! error_code      u16le
//! status_length   u16le
//! status          status_length bytes: (code u8, data) pairs
//! schema          schema_length bytes, then NUL
//! sql             rest
//! ```
//!
//! Source: MySQL 8.4, `Query_event` in `libs/mysql/binlog/event/statement_events.h`; MariaDB 11.8, `Query_log_event`
//! in `sql/log_event.cc`.

use crate::wire::{Cursor, DecodeError};

/// A statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// Connection id of the session on the server of origin.
    pub thread_id: u32,
    /// How long the statement took, seconds.
    pub execution_time: u32,
    /// The error that the statement ended with on the server of origin; 0 for none.
    pub error_code: u16,
    /// The session settings that the statement depends on.
    pub status: QueryStatus,
    /// The default database, in the server's system character set; empty for none.
    pub schema: &'a [u8],
    /// The text, in the client character set of [`QueryStatus::charset`].
    pub sql: &'a [u8],
}

/// Session settings that came with a statement. Those that the server did not write are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueryStatus {
    /// Session options such as `foreign_key_checks=0`, as the server's bits.
    pub flags2: Option<u32>,
    /// `sql_mode`, as the server's bits.
    pub sql_mode: Option<u64>,
    /// Client, connection and server character set.
    pub charset: Option<QueryCharset>,
    /// Collation id of the default database.
    pub database_collation: Option<u16>,
    /// Fraction of the statement's time of day, microseconds.
    pub microseconds: Option<u32>,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// `default_collation_for_utf8mb4`, a collation id.
    pub default_utf8mb4_collation: Option<u16>,
    /// `sql_require_primary_key`.
    pub require_primary_key: Option<bool>,
}

/// The character sets of a session, each as a collation id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryCharset {
    /// `character_set_client`, what the text is written in.
    pub client: u16,
    /// `collation_connection`.
    pub connection: u16,
    /// `collation_server`.
    pub server: u16,
}

impl<'a> Query<'a> {
    /// Parses a body.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Truncated`] inside a field, [`DecodeError::Invalid`] for a schema without its NUL.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let thread_id = cursor.u32_le("thread_id")?;
        let execution_time = cursor.u32_le("execution_time")?;
        let schema_length = cursor.u8("schema_length")?;
        let error_code = cursor.u16_le("error_code")?;
        let status_length = cursor.u16_le("status_length")?;
        let status = QueryStatus::parse(cursor.take(status_length.into(), "status")?)?;
        let schema = cursor.take(schema_length.into(), "schema")?;
        match cursor.u8("schema terminator")? {
            0 => {}
            other => {
                return Err(DecodeError::Invalid {
                    field: "schema terminator",
                    value: other.into(),
                });
            }
        }
        Ok(Self { thread_id, execution_time, error_code, status, schema, sql: cursor.rest() })
    }
}

impl QueryStatus {
    /// Parses the (code, data) pairs. The length of an unknown code's data is unknown, so reading ends there, as on
    /// the server; servers write new codes behind the old ones.
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let mut status = Self::default();
        while !cursor.is_empty() {
            match cursor.u8("status code")? {
                0 => status.flags2 = Some(cursor.u32_le("flags2")?),
                1 => status.sql_mode = Some(cursor.u64_le("sql_mode")?),
                // Catalog with a terminator, MySQL 5.0.0 to 5.0.3.
                2 => {
                    let length = cursor.u8("catalog")?;
                    cursor.take(usize::from(length) + 1, "catalog")?;
                }
                3 => drop(cursor.u32_le("auto_increment")?),
                4 => {
                    status.charset = Some(QueryCharset {
                        client: cursor.u16_le("charset")?,
                        connection: cursor.u16_le("charset")?,
                        server: cursor.u16_le("charset")?,
                    });
                }
                5 => skip_short_text(&mut cursor, "time_zone")?,
                6 => skip_short_text(&mut cursor, "catalog")?,
                7 => drop(cursor.u16_le("lc_time_names")?),
                8 => status.database_collation = Some(cursor.u16_le("charset_database")?),
                9 => drop(cursor.u64_le("table_map_for_update")?),
                10 => drop(cursor.u32_le("master_data_written")?),
                11 => {
                    skip_short_text(&mut cursor, "invoker user")?;
                    skip_short_text(&mut cursor, "invoker host")?;
                }
                12 => skip_updated_databases(&mut cursor)?,
                13 => status.microseconds = Some(cursor.u24_le("microseconds")?),
                16 => {
                    status.explicit_defaults_for_timestamp =
                        Some(cursor.u8("explicit_defaults_for_timestamp")? != 0);
                }
                17 => drop(cursor.u64_le("ddl_xid")?),
                18 => {
                    status.default_utf8mb4_collation =
                        Some(cursor.u16_le("default_collation_for_utf8mb4")?);
                }
                19 => status.require_primary_key = Some(cursor.u8("sql_require_primary_key")? != 0),
                20 => drop(cursor.u8("default_table_encryption")?),
                // MariaDB: Q_HRNOW, microseconds.
                128 => status.microseconds = Some(cursor.u24_le("hrnow")?),
                // MariaDB: Q_XID.
                129 => drop(cursor.u64_le("xid")?),
                _ => break,
            }
        }
        Ok(status)
    }
}

fn skip_short_text(cursor: &mut Cursor<'_>, field: &'static str) -> Result<(), DecodeError> {
    let length = cursor.u8(field)?;
    cursor.take(length.into(), field)?;
    Ok(())
}

/// Skips the names of databases that a statement changed: a count and names with terminators. 254 stands for "more
/// than can be listed" and is followed by nothing.
fn skip_updated_databases(cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
    const FIELD: &str = "updated_databases";
    const TOO_MANY: u8 = 254;
    let count = cursor.u8(FIELD)?;
    if count == TOO_MANY {
        return Ok(());
    }
    for _ in 0..count {
        while cursor.u8(FIELD)? != 0 {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(status: &[u8], schema: &[u8], sql: &[u8]) -> Vec<u8> {
        let mut body = vec![7, 0, 0, 0, 2, 0, 0, 0];
        body.push(u8::try_from(schema.len()).unwrap());
        body.extend([5, 0]);
        body.extend(u16::try_from(status.len()).unwrap().to_le_bytes());
        body.extend(status);
        body.extend(schema);
        body.push(0);
        body.extend(sql);
        body
    }

    #[test]
    fn the_settings_of_a_mysql_9_statement_are_read() {
        let mut status = vec![0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0, 6, 3];
        status.extend(
            b"std\x04\xff\x00\xfe\x00\x08\x00\x05\x06SYSTEM\x0c\x02a\0bc\0\x0d\x01\x02\x03",
        );
        status.extend([8, 255, 0, 16, 1, 17, 1, 0, 0, 0, 0, 0, 0, 0, 18, 255, 0, 19, 1, 20, 0]);
        let body = body(&status, b"db", b"CREATE TABLE t (a INT)");
        let query = Query::parse(&body).unwrap();
        assert_eq!((query.thread_id, query.execution_time, query.error_code), (7, 2, 5));
        assert_eq!((query.schema, query.sql), (&b"db"[..], &b"CREATE TABLE t (a INT)"[..]));
        let expected = QueryStatus {
            flags2: Some(0),
            sql_mode: Some(4),
            charset: Some(QueryCharset { client: 255, connection: 254, server: 8 }),
            database_collation: Some(255),
            microseconds: Some(0x03_0201),
            explicit_defaults_for_timestamp: Some(true),
            default_utf8mb4_collation: Some(255),
            require_primary_key: Some(true),
        };
        assert_eq!(query.status, expected);
    }

    #[test]
    fn an_unknown_setting_ends_the_settings_and_keeps_the_text() {
        let body = body(&[1, 4, 0, 0, 0, 0, 0, 0, 0, 99, 1, 2, 3], b"", b"BEGIN");
        let query = Query::parse(&body).unwrap();
        assert_eq!(query.status, QueryStatus { sql_mode: Some(4), ..QueryStatus::default() });
        assert_eq!(query.sql, b"BEGIN");
    }

    #[test]
    fn a_list_of_too_many_databases_is_followed_by_the_next_setting() {
        let body = body(&[12, 254, 8, 9, 0], b"", b"BEGIN");
        assert_eq!(Query::parse(&body).unwrap().status.database_collation, Some(9));
    }

    #[test]
    fn every_short_setting_and_every_short_body_is_an_error() {
        for code in (0..=13).chain(16..=20).chain(128..=129) {
            assert!(Query::parse(&body(&[code], b"", b"x")).is_err(), "{code}");
        }
        let whole = body(&[8, 9, 0], b"db", b"");
        for len in 0..whole.len() {
            assert!(Query::parse(&whole[..len]).is_err(), "{len}");
        }
        let mut unterminated = whole;
        *unterminated.last_mut().unwrap() = 1;
        assert_eq!(
            Query::parse(&unterminated),
            Err(DecodeError::Invalid { field: "schema terminator", value: 1 })
        );
    }
}
