//! Rows of a table, read by a query, as the physical values that the stream yields.
//!
//! Cells come in the text protocol: text in UTF-8 whatever the column's character set, temporals in UTC, UUIDs and
//! addresses as text. Numbers of ENUM and SET are asked for instead of their labels, as the log has them.
//!
//! A row is looked at in the connection's buffer; nothing is allocated for it or its cells.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::client::{ClientOptions, Password, QueryClient};
use holdfast_binlog::value::{Date, DateTime, Decimal, Time, Timestamp};
use holdfast_binlog::wire::Cursor;
use holdfast_history::schema::ColumnType;
use holdfast_history::{Column, Table, TableId};

use crate::error::{Account, Error};
use crate::server::{LogPosition, ServerFacts, ServerFlavor, ServerOptions, session};
use crate::snapshotter::quoted;

/// A connection that reads rows of tables, inside one read view once [`Self::open_view`] was called.
#[derive(Debug)]
pub struct RowReader {
    client: QueryClient,
    account: Box<Account>,
    whole_floats: bool,
}

impl RowReader {
    /// Connects and sets the session up as [`crate::connect`] does.
    ///
    /// # Errors
    ///
    /// [`Error::Reader`].
    pub async fn connect(options: &ServerOptions) -> Result<Self, Error> {
        let account = Box::new(Account {
            user: options.user.clone(),
            host: options.host.clone(),
            port: options.port,
        });
        // The number is that of a replica; this connection is none.
        let mut client_options =
            ClientOptions::new(options.host.clone(), options.port, options.user.clone(), 1);
        client_options.password = Password::new(options.password.clone());
        client_options.tls = options.tls.clone();
        client_options.connect_timeout = options.connect_timeout;
        let client = QueryClient::connect(&client_options).await.map_err(|source| {
            Error::reader(account.clone(), "open a connection for rows", "USAGE", source)
        })?;
        let mut reader = Self { client, account, whole_floats: false };
        for statement in session(options) {
            reader.execute(statement).await?;
        }
        Ok(reader)
    }

    /// Has FLOAT columns read with all their digits, not with the six that the server prints.
    pub const fn read_whole_floats(&mut self) {
        self.whole_floats = true;
    }

    /// Fixes what this connection sees: everything committed so far, and nothing after it.
    ///
    /// # Errors
    ///
    /// [`Error::Reader`].
    pub async fn open_view(&mut self) -> Result<(), Error> {
        self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT").await
    }

    /// The place in the log up to which the view shows changes, where the server knows it (MariaDB, Percona Server).
    pub(crate) async fn view_position(
        &mut self,
        facts: &ServerFacts,
    ) -> Result<Option<LogPosition>, Error> {
        let rows = self.select("SHOW STATUS LIKE 'binlog_snapshot_%'").await?;
        let value = |name: &str| {
            rows.iter().find_map(|row| match row.as_slice() {
                [Some(found), Some(value)] if found.eq_ignore_ascii_case(name) => {
                    Some(value.clone())
                }
                _ => None,
            })
        };
        let file = value("binlog_snapshot_file").filter(|file| !file.is_empty());
        let pos = value("binlog_snapshot_position").and_then(|pos| pos.parse::<u64>().ok());
        let (Some(file), Some(pos)) = (file, pos) else { return Ok(None) };
        let gtids = match facts.flavor {
            ServerFlavor::MySql => value("binlog_snapshot_gtid_executed")
                .map(|set| set.replace(['\n', '\r'], ""))
                .filter(|_| facts.has_gtids()),
            ServerFlavor::MariaDb => {
                let name = file.replace('\'', "''");
                let rows = self.select(&format!("SELECT BINLOG_GTID_POS('{name}', {pos})")).await?;
                rows.into_iter().next().and_then(|row| row.into_iter().next().flatten())
            }
        };
        Ok(Some(LogPosition { file, pos, gtids: gtids.filter(|set| !set.is_empty()) }))
    }

    /// How many rows the server thinks that tables have, in the order of `tables`.
    ///
    /// # Errors
    ///
    /// [`Error::Reader`].
    pub async fn row_estimates(&mut self, tables: &[TableId]) -> Result<Vec<u64>, Error> {
        let mut estimates = Vec::with_capacity(tables.len());
        for table in tables {
            let text = |name: &str| name.replace('\\', "\\\\").replace('\'', "''");
            let sql = format!(
                "SELECT table_rows FROM information_schema.tables WHERE table_schema = '{}' AND table_name = '{}'",
                text(&table.database),
                text(&table.table)
            );
            let rows = self.select(&sql).await?;
            let rows = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
            estimates.push(rows.and_then(|rows| rows.parse().ok()).unwrap_or_default());
        }
        Ok(estimates)
    }

    /// Starts reading a table's rows, in the server's order. `select` replaces `SELECT <columns> FROM <table>`
    /// (`snapshot.select.statement.overrides`); it must give the table's columns.
    ///
    /// # Errors
    ///
    /// [`Error::Privilege`] without SELECT, [`Error::Reader`], [`Error::ColumnCount`], [`Error::DefinitionChanged`].
    pub async fn read(
        &mut self,
        table: &Arc<Table>,
        select: Option<&str>,
    ) -> Result<TableReader<'_>, Error> {
        let shape = Arc::new(Shape::of(table));
        let columns = shape.columns(self.whole_floats);
        let query = match select {
            // The statement chooses rows; their columns are read as always.
            Some(select) => {
                let select = select.trim().trim_end_matches(';');
                format!("SELECT {columns} FROM ({select}) AS holdfast_rows")
            }
            None => {
                let TableId { database, table: name } = &table.id;
                format!("SELECT {columns} FROM {}.{}", quoted(database), quoted(name))
            }
        };
        let expected = shape.types.len();
        let found = self
            .client
            .query(&query)
            .await
            .map_err(|source| Error::rows(self.account.clone(), &table.id, source))?;
        if found != expected as u64 {
            let found = usize::try_from(found).unwrap_or(usize::MAX);
            return Err(Error::ColumnCount { table: table.id.clone(), expected, found });
        }
        Ok(TableReader { client: &mut self.client, account: &self.account, shape })
    }

    /// Ends the view and the connection.
    ///
    /// # Errors
    ///
    /// [`Error::Reader`].
    pub async fn close(mut self) -> Result<(), Error> {
        self.execute("ROLLBACK").await?;
        self.client.close().await.map_err(|source| {
            Error::reader(self.account, "close a connection for rows", "USAGE", source)
        })
    }

    async fn execute(&mut self, statement: &str) -> Result<(), Error> {
        self.client.execute(statement).await.map_err(|source| {
            let action = format!("run {statement}");
            Error::reader(self.account.clone(), action, "what the statement needs", source)
        })
    }

    async fn select(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        self.client.select(sql).await.map_err(|source| {
            Error::reader(self.account.clone(), format!("run {sql}"), "USAGE", source)
        })
    }
}

/// The rows of one table, in the server's order. Reads from the socket as it is asked.
#[derive(Debug)]
pub struct TableReader<'c> {
    client: &'c mut QueryClient,
    account: &'c Account,
    shape: Arc<Shape>,
}

impl TableReader<'_> {
    /// The next row, `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Reader`] when the connection breaks; [`Error::DefinitionChanged`].
    pub async fn next(&mut self) -> Result<Option<SnapshotRow<'_>>, Error> {
        let row = self.client.next_row().await.map_err(|source| {
            Error::rows(Box::new(self.account.clone()), &self.shape.table.id, source)
        })?;
        Ok(row.map(|packet| SnapshotRow { packet, shape: &self.shape }))
    }
}

/// The columns that a row has.
#[derive(Debug)]
struct Shape {
    table: Arc<Table>,
    types: Vec<ColumnType>,
}

impl Shape {
    fn of(table: &Arc<Table>) -> Self {
        let types = table.columns.iter().map(Column::column_type).collect();
        Self { table: Arc::clone(table), types }
    }

    /// The columns as they are asked for: numbers of ENUM and SET instead of labels.
    fn columns(&self, whole_floats: bool) -> String {
        let columns = self.table.columns.iter().zip(&self.types);
        let columns: Vec<String> = columns
            .map(|(column, column_type)| {
                let name = quoted(&column.name);
                if matches!(column_type, ColumnType::Enum | ColumnType::Set) {
                    format!("CAST({name} AS UNSIGNED)")
                } else if whole_floats && *column_type == ColumnType::Float {
                    // A FLOAT is printed with six digits, its sum with a DOUBLE with all.
                    format!("{name} + 0e0")
                } else {
                    name
                }
            })
            .collect();
        columns.join(", ")
    }
}

/// One row, a view of what the server sent.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotRow<'r> {
    packet: &'r [u8],
    shape: &'r Arc<Shape>,
}

/// One row that owns its bytes.
#[derive(Debug, Clone)]
pub struct SnapshotRowBuf {
    packet: Vec<u8>,
    shape: Arc<Shape>,
}

impl SnapshotRowBuf {
    /// Takes another row of the same table into the same memory.
    pub fn replace(&mut self, row: SnapshotRow<'_>) {
        self.packet.clear();
        self.packet.extend_from_slice(row.packet);
    }

    /// The same without owning it.
    #[must_use]
    pub fn as_row(&self) -> SnapshotRow<'_> {
        SnapshotRow { packet: &self.packet, shape: &self.shape }
    }
}

impl<'r> SnapshotRow<'r> {
    /// The row, to be kept.
    #[must_use]
    pub fn to_owned(self) -> SnapshotRowBuf {
        SnapshotRowBuf { packet: self.packet.into(), shape: Arc::clone(self.shape) }
    }

    /// Bytes that the row took on the wire.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        self.packet.len()
    }

    /// The row's values in column order, appended to `values`.
    ///
    /// # Errors
    ///
    /// [`Error::Cell`] for a cell that is not of its column's type.
    pub fn values(self, values: &mut Vec<Value<'r>>) -> Result<(), Error> {
        let Shape { table, types } = &**self.shape;
        let mut cursor = Cursor::new(self.packet);
        for (column, column_type) in table.columns.iter().zip(types) {
            let cell = next_cell(&mut cursor).and_then(|cell| match cell {
                Some(text) => parse_cell(text, column, *column_type),
                None => Ok(Value::Null),
            });
            values.push(cell.map_err(|what| Error::Cell {
                table: table.id.clone(),
                column: column.name.clone(),
                type_name: column.type_name.clone(),
                what,
            })?);
        }
        Ok(())
    }
}

/// The next cell of a row in the text protocol, `None` for NULL.
#[inline]
fn next_cell<'r>(cursor: &mut Cursor<'r>) -> Result<Option<&'r [u8]>, &'static str> {
    if cursor.peek().first() == Some(&0xfb) {
        return cursor.u8("cell").map(|_| None).map_err(|_| "the row ends early");
    }
    cursor.lenenc_bytes("cell").map(Some).map_err(|_| "the row ends early")
}

/// Reads one cell's text as its column's type.
fn parse_cell<'r>(
    text: &'r [u8],
    column: &Column,
    column_type: ColumnType,
) -> Result<Value<'r>, &'static str> {
    let fsp = || u8::try_from(column.length.unwrap_or(0)).unwrap_or(6).min(6);
    Ok(match column_type {
        ColumnType::TinyInt { .. } | ColumnType::Boolean => {
            Value::Int8(integer(text)?.to_le_bytes()[0])
        }
        ColumnType::SmallInt { .. } => {
            let [a, b, ..] = integer(text)?.to_le_bytes();
            Value::Int16(u16::from_le_bytes([a, b]))
        }
        ColumnType::MediumInt { .. } => {
            let [a, b, c, ..] = integer(text)?.to_le_bytes();
            Value::Int24(u32::from_le_bytes([a, b, c, 0]))
        }
        ColumnType::Int { .. } => {
            let [a, b, c, d, ..] = integer(text)?.to_le_bytes();
            Value::Int32(u32::from_le_bytes([a, b, c, d]))
        }
        ColumnType::BigInt { .. } => Value::Int64(u64::from_le_bytes(integer(text)?.to_le_bytes())),
        ColumnType::Float => Value::Float(number(text)?),
        ColumnType::Double => Value::Double(number(text)?),
        ColumnType::Decimal => Value::Decimal(Decimal::Text(text)),
        ColumnType::Bit => Value::Bit(text),
        ColumnType::Date => {
            let mut parts = Parts { text };
            Value::Date(parts.date()?)
        }
        ColumnType::Time => Value::Time(Time { micros: Parts { text }.time()?, fsp: fsp() }),
        ColumnType::DateTime => Value::DateTime(Parts { text }.date_time(fsp())?),
        ColumnType::Timestamp => Value::Timestamp(timestamp(Parts { text }.date_time(fsp())?)?),
        ColumnType::Year => {
            let year: u16 = number(text)?;
            Value::Year(match year {
                0 => 0,
                year => year
                    .checked_sub(1900)
                    .and_then(|year| u8::try_from(year).ok())
                    .ok_or("a year outside 1901 to 2155")?,
            })
        }
        ColumnType::Enum => Value::Enum(number(text)?),
        ColumnType::Set => Value::Set(number(text)?),
        ColumnType::Json => Value::JsonText(text),
        ColumnType::Geometry => Value::Geometry(text),
        ColumnType::Vector => Value::Vector(text),
        ColumnType::Char
        | ColumnType::VarChar
        | ColumnType::Text
        | ColumnType::Binary
        | ColumnType::VarBinary
        | ColumnType::Blob
        | ColumnType::Uuid
        | ColumnType::Inet4
        | ColumnType::Inet6
        | ColumnType::Unknown
        | _ => Value::Bytes(text),
    })
}

/// A number, signed or not, as 64 bits in two's complement.
fn integer(text: &[u8]) -> Result<i64, &'static str> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        Some(_) | None => (false, text),
    };
    const WRONG: &str = "not a number of this type";
    // Up to 18 digits always fit; more are left to the checked way.
    if digits.is_empty() || digits.len() > 18 {
        return match negative {
            true => number(text),
            false => number::<u64>(text).map(|unsigned| i64::from_le_bytes(unsigned.to_le_bytes())),
        };
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(WRONG);
        }
        value = value * 10 + i64::from(digit);
    }
    Ok(if negative { -value } else { value })
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Result<T, &'static str> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or("not a number of this type")
}

/// Seconds since the epoch: the session's time zone is UTC.
fn timestamp(at: DateTime) -> Result<Timestamp, &'static str> {
    let fsp = at.fsp;
    if at.date == (Date { year: 0, month: 0, day: 0 }) {
        return Ok(Timestamp { seconds: 0, micro: 0, fsp });
    }
    let micros = at.micros_since_epoch().ok_or("no such date")?;
    let seconds = u32::try_from(micros.div_euclid(1_000_000))
        .map_err(|_| "outside the range of TIMESTAMP")?;
    Ok(Timestamp { seconds, micro: at.micro, fsp })
}

/// Reads the parts of `YYYY-MM-DD`, `[-]H+:MM:SS[.f+]` and both with a space between.
struct Parts<'a> {
    text: &'a [u8],
}

impl Parts<'_> {
    fn date(&mut self) -> Result<Date, &'static str> {
        let year = self.digits()?;
        self.expect(b'-')?;
        let month = self.digits()?;
        self.expect(b'-')?;
        let day = self.digits()?;
        Ok(Date {
            year: u16::try_from(year).map_err(|_| "a year above 65535")?,
            month: u8::try_from(month).map_err(|_| "a month above 255")?,
            day: u8::try_from(day).map_err(|_| "a day above 255")?,
        })
    }

    fn date_time(&mut self, fsp: u8) -> Result<DateTime, &'static str> {
        let date = self.date()?;
        self.expect(b' ')?;
        let (hour, minute, second, micro) = self.clock()?;
        let small = |part: u64| u8::try_from(part).map_err(|_| "a time part above 255");
        Ok(DateTime {
            date,
            hour: small(hour)?,
            minute: small(minute)?,
            second: small(second)?,
            fsp,
            micro,
        })
    }

    fn time(&mut self) -> Result<i64, &'static str> {
        let negative = self.text.first() == Some(&b'-');
        if negative {
            self.expect(b'-')?;
        }
        let (hour, minute, second, micro) = self.clock()?;
        if hour > 838 || minute > 59 || second > 59 {
            return Err("a time outside -838:59:59 to 838:59:59");
        }
        let micros = ((hour * 60 + minute) * 60 + second) * 1_000_000 + u64::from(micro);
        let micros = i64::try_from(micros).map_err(|_| "a time that is too long")?;
        Ok(if negative { -micros } else { micros })
    }

    fn clock(&mut self) -> Result<(u64, u64, u64, u32), &'static str> {
        let hour = self.digits()?;
        self.expect(b':')?;
        let minute = self.digits()?;
        self.expect(b':')?;
        let second = self.digits()?;
        let micro = if self.text.is_empty() { 0 } else { self.fraction()? };
        Ok((hour, minute, second, micro))
    }

    fn fraction(&mut self) -> Result<u32, &'static str> {
        self.expect(b'.')?;
        let len = self.text.len();
        let scale = u32::try_from(len)
            .ok()
            .and_then(|len| 6_u32.checked_sub(len))
            .ok_or("a fraction of over 6 digits")?;
        let fraction = u32::try_from(self.digits()?).map_err(|_| "a fraction that is too long")?;
        Ok(fraction * 10_u32.pow(scale))
    }

    /// One to nine digits.
    fn digits(&mut self) -> Result<u64, &'static str> {
        let len = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 || len > 9 {
            return Err("a part that is not 1 to 9 digits");
        }
        let (digits, rest) = self.text.split_at_checked(len).ok_or("too short")?;
        self.text = rest;
        Ok(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    fn expect(&mut self, separator: u8) -> Result<(), &'static str> {
        match self.text.split_first() {
            Some((first, rest)) if *first == separator => {
                self.text = rest;
                Ok(())
            }
            Some(_) | None => Err("a separator is missing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_are_read_and_anything_else_is_refused() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("007", 7),
            ("-128", -128),
            ("999999999999999999", 999_999_999_999_999_999),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("18446744073709551615", -1),
        ] {
            assert_eq!(integer(text.as_bytes()), Ok(value), "{text}");
        }
        for text in ["", "-", "+1", "1x", "18446744073709551616", "-9223372036854775809", "1.0"] {
            assert!(integer(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn cells_end_where_their_length_says_and_a_short_row_is_refused() {
        let mut cursor = Cursor::new(b"\x012\xfb\x00\x03abc");
        let cells: Vec<_> =
            std::iter::from_fn(|| (!cursor.is_empty()).then(|| next_cell(&mut cursor).unwrap()))
                .collect();
        assert_eq!(cells, [Some(&b"2"[..]), None, Some(&b""[..]), Some(&b"abc"[..])]);
        for short in [&b""[..], b"\x05abc", b"\xfc\x05"] {
            assert!(next_cell(&mut Cursor::new(short)).is_err());
        }
    }
}
