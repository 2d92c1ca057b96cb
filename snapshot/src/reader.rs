//! Rows of a table, read by a query, as the physical values that the stream yields.
//!
//! Cells come in the text protocol: text in UTF-8 whatever the column's character set, temporals in UTC, UUIDs and
//! addresses as text. Numbers of ENUM and SET are asked for instead of their labels, as the log has them.

use std::sync::Arc;

use holdfast_binlog::Value;
use holdfast_binlog::value::{Date, DateTime, Decimal, Time, Timestamp};
use holdfast_history::schema::ColumnType;
use holdfast_history::{Column, Table, TableId};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, QueryResult, Row, TextProtocol};

use crate::error::{Account, Error};
use crate::snapshotter::quoted;

/// The rows of one table, in the server's order. Reads from the socket as it is asked: memory holds one row.
#[derive(Debug)]
pub struct TableReader<'s> {
    rows: QueryResult<'s, 'static, TextProtocol>,
    shape: Arc<Shape>,
}

/// The columns that a row has.
#[derive(Debug)]
struct Shape {
    table: Arc<Table>,
    types: Vec<ColumnType>,
    account: Box<Account>,
}

/// One row. Owns its bytes; [`values`](Self::values) gives views of them.
#[derive(Debug)]
pub struct SnapshotRow {
    row: Row,
    shape: Arc<Shape>,
}

impl<'s> TableReader<'s> {
    pub(crate) async fn open(
        conn: &'s mut Conn,
        table: &Arc<Table>,
        select: Option<&str>,
    ) -> Result<Self, Error> {
        let types: Vec<ColumnType> = table.columns.iter().map(Column::column_type).collect();
        let query = match select {
            // The statement chooses rows; their columns are read as always.
            Some(select) => {
                let select = select.trim().trim_end_matches(';');
                format!("SELECT {} FROM ({select}) AS holdfast_rows", columns_of(table, &types))
            }
            None => select_of(table, &types),
        };
        let account = Account::of(conn);
        let rows = conn.query_iter(query).await.map_err(|error| {
            Error::query_of(
                account.clone(),
                format!("read {}", table.id),
                "SELECT ON the table",
                error,
            )
        })?;
        Ok(Self { rows, shape: Arc::new(Shape { table: Arc::clone(table), types, account }) })
    }

    /// The next row, `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Query`] when the connection breaks, [`Error::ColumnCount`].
    pub async fn next(&mut self) -> Result<Option<SnapshotRow>, Error> {
        let Shape { table, account, .. } = &*self.shape;
        let table = &table.id;
        let row = self.rows.next().await.map_err(|error| {
            Error::query_of(account.clone(), format!("read {table}"), "SELECT ON the table", error)
        })?;
        match row {
            Some(row) if row.len() == self.shape.types.len() => {
                Ok(Some(SnapshotRow { row, shape: Arc::clone(&self.shape) }))
            }
            Some(row) => Err(Error::ColumnCount {
                table: table.clone(),
                expected: self.shape.types.len(),
                found: row.len(),
            }),
            None => Ok(None),
        }
    }
}

impl SnapshotRow {
    /// The row's values in column order, appended to `values`.
    ///
    /// # Errors
    ///
    /// [`Error::Cell`] for a cell that is not of its column's type.
    pub fn values<'r>(&'r self, values: &mut Vec<Value<'r>>) -> Result<(), Error> {
        let Shape { table, types, .. } = &*self.shape;
        for (index, (column, column_type)) in table.columns.iter().zip(types).enumerate() {
            let cell = match self.row.as_ref(index) {
                Some(mysql_async::Value::Bytes(bytes)) => parse_cell(bytes, column, *column_type),
                Some(mysql_async::Value::NULL) => Ok(Value::Null),
                Some(_) | None => Err("not a text cell"),
            };
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

fn select_of(table: &Table, types: &[ColumnType]) -> String {
    let TableId { database, table: name } = &table.id;
    format!("SELECT {} FROM {}.{}", columns_of(table, types), quoted(database), quoted(name))
}

/// The columns as they are asked for: numbers of ENUM and SET instead of labels.
fn columns_of(table: &Table, types: &[ColumnType]) -> String {
    let columns: Vec<String> = table
        .columns
        .iter()
        .zip(types)
        .map(|(column, column_type)| {
            let name = quoted(&column.name);
            if matches!(column_type, ColumnType::Enum | ColumnType::Set) {
                format!("CAST({name} AS UNSIGNED)")
            } else {
                name
            }
        })
        .collect();
    columns.join(", ")
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
    match text.first() {
        Some(b'-') => number(text),
        _ => number::<u64>(text).map(|unsigned| i64::from_le_bytes(unsigned.to_le_bytes())),
    }
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
