//! A row that `SELECT` gives and the row that the log has are the same, value by value, for every type: random tables on
//! real servers, through the client and the decoder of `holdfast_binlog`.
//!
//! Each table gets rows, updates of some and loses all of them again. The rows events are played on an empty table: what
//! it holds after the inserts and after the updates is what `SELECT` gave there, and every image before a change is what
//! it holds at that moment. Row images, compression of transactions and partial updates change from table to table.

mod literals;
mod types;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use holdfast_binlog::client::{
    BinlogClient, ClientOptions, DumpStart, DumpStream, Password, QueryClient,
};
use holdfast_binlog::event::rows::RowsKind;
use holdfast_binlog::event::{ChecksumAlgorithm, EventData, PayloadReader};
use holdfast_binlog::row::Row;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_binlog::{BinlogPosition, Event, Value};
use holdfast_tests::server::{Flavour, Options, Server, shared};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use types::{Cell, Column, Dialect};

const DATABASE: &str = "select_db";
const LIMIT: Duration = Duration::from_secs(120);

/// A table and what happens to it.
#[derive(Clone)]
struct Case {
    /// `SET` statements before all else.
    session: Vec<&'static str>,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// The row, and the columns that get other values.
    updates: Vec<(usize, Vec<(usize, String)>)>,
}

impl Case {
    fn create(&self, table: &str) -> String {
        let declared = |(index, column): (usize, &Column)| format!("c{index} {}", column.declared);
        let declared: Vec<_> = self.columns.iter().enumerate().map(declared).collect();
        let columns = declared.join(", ");
        format!("CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4")
    }

    fn inserts(&self, table: &str) -> Vec<String> {
        let insert = |(id, row): (usize, &Vec<String>)| {
            format!("INSERT INTO {table} VALUES ({id}, {})", row.join(", "))
        };
        self.rows.iter().enumerate().map(insert).collect()
    }

    fn updates(&self, table: &str) -> Vec<String> {
        let update = |(id, changes): &(usize, Vec<(usize, String)>)| {
            let changes = changes.iter().map(|(index, value)| format!("c{index} = {value}"));
            let changes = changes.collect::<Vec<_>>().join(", ");
            format!("UPDATE {table} SET {changes} WHERE id = {id}")
        };
        self.updates.iter().map(update).collect()
    }
}

/// As SQL.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "SET SESSION {};\n{};", self.session.join(", "), self.create("t"))?;
        for statement in self.inserts("t").iter().chain(&self.updates("t")) {
            writeln!(f, "{statement};")?;
        }
        Ok(())
    }
}

fn session(dialect: Dialect) -> BoxedStrategy<Vec<&'static str>> {
    match dialect.flavour {
        Flavour::MySql => {
            let images = [
                "binlog_row_image = 'FULL', binlog_row_value_options = ''",
                "binlog_row_image = 'FULL', binlog_row_value_options = 'PARTIAL_JSON'",
                "binlog_row_image = 'MINIMAL', binlog_row_value_options = ''",
                "binlog_row_image = 'NOBLOB', binlog_row_value_options = ''",
            ];
            let compression =
                ["binlog_transaction_compression = OFF", "binlog_transaction_compression = ON"];
            (select(images.to_vec()), select(compression.to_vec()))
                .prop_map(|(images, compression)| vec![images, compression])
                .boxed()
        }
        Flavour::MariaDb => {
            let images = [
                "binlog_row_image = FULL",
                "binlog_row_image = MINIMAL",
                "binlog_row_image = NOBLOB",
            ];
            select(images.to_vec()).prop_map(|images| vec![images]).boxed()
        }
    }
}

fn case(dialect: Dialect) -> impl Strategy<Value = Case> {
    (session(dialect), types::columns(dialect)).prop_flat_map(move |(session, columns)| {
        let rows = proptest::collection::vec(types::row(&columns, dialect), 1..6);
        let changes: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let change = column.change(&format!("c{index}"), dialect);
                proptest::option::of(change.prop_map(move |change| (index, change)))
            })
            .collect();
        let updates = proptest::collection::vec((any::<Index>(), changes), 0..4);
        (Just(session), Just(columns), rows, updates).prop_map(
            |(session, columns, rows, updates)| {
                let updates = updates.into_iter().map(|(row, changes)| {
                    (row.index(rows.len()), changes.into_iter().flatten().collect::<Vec<_>>())
                });
                let updates = updates.filter(|(_, changes)| !changes.is_empty()).collect();
                Case { session, columns, rows, updates }
            },
        )
    })
}

/// Rows by the key that every table has.
type Rows = BTreeMap<String, Vec<Cell>>;

/// A connection for statements, and one that reads the log behind it.
struct Connections {
    sql: QueryClient,
    dump: DumpStream,
    stream: EventStream,
    payloads: PayloadReader,
    tables: u32,
    /// Values that were compared.
    values: u64,
}

impl Connections {
    async fn open(server: &Server) -> Self {
        let mut options = ClientOptions::new(server.host(), server.port(), server.user(), 79_001);
        options.password = Password::new(server.password());
        let mut sql = QueryClient::connect(&options).await.unwrap();
        for statement in [
            "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'".to_owned(),
            format!("DROP DATABASE IF EXISTS {DATABASE}"),
            format!("CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4"),
            format!("USE {DATABASE}"),
        ] {
            sql.execute(&statement).await.unwrap();
        }
        let status = match server.flavour() {
            Flavour::MySql => "SHOW BINARY LOG STATUS",
            Flavour::MariaDb => "SHOW MASTER STATUS",
        };
        let status = sql.select(status).await.unwrap();
        let [file, position, ..] = status[0].as_slice() else { panic!("{status:?}") };
        let file = file.as_deref().unwrap();
        let place = BinlogPosition::new(
            file.parse().unwrap(),
            position.as_deref().unwrap().parse().unwrap(),
        );
        let client = BinlogClient::connect(&options).await.unwrap();
        let dump = client.dump(DumpStart::Position(place)).await.unwrap();
        let checksum = Some(ChecksumAlgorithm::Crc32);
        let stream = EventStream::new(file, StreamOptions { checksum, ..StreamOptions::default() });
        let payloads = PayloadReader::default();
        Self { sql, dump, stream, payloads, tables: 0, values: 0 }
    }

    /// Makes the table, changes it as the case says and compares.
    async fn check(&mut self, case: &Case) -> Result<(), String> {
        self.tables += 1;
        let table = format!("t{}", self.tables);
        for setting in &case.session {
            self.execute(&format!("SET SESSION {setting}")).await?;
        }
        self.execute(&case.create(&table)).await?;
        for statement in case.inserts(&table) {
            self.execute(&statement).await?;
        }
        let inserted = self.select(&table, &case.columns).await?;
        for statement in case.updates(&table) {
            self.execute(&statement).await?;
        }
        let updated = self.select(&table, &case.columns).await?;
        self.execute(&format!("DELETE FROM {table}")).await?;
        let mut played = Played {
            table: table.clone(),
            columns: &case.columns,
            is_full: case.session.iter().any(|setting| setting.contains("FULL")),
            rows: Rows::new(),
            inserted: None,
            updated: None,
            deleted: 0,
            values: 0,
        };
        tokio::time::timeout(LIMIT, self.play(&mut played, case.rows.len()))
            .await
            .map_err(|_| format!("{table}: no end of the log within {LIMIT:?}"))??;
        self.execute(&format!("DROP TABLE {table}")).await?;
        let Played { inserted: logged, updated: logged_updated, values, .. } = played;
        same("after the inserts", &case.columns, &inserted, &logged.unwrap_or_default())?;
        same("after the updates", &case.columns, &updated, &logged_updated.unwrap_or_default())?;
        self.values += values;
        Ok(())
    }

    async fn execute(&mut self, sql: &str) -> Result<(), String> {
        let result = self.sql.execute(sql).await;
        result.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!("{sql}: {error}: {}", cause.unwrap_or_default())
        })
    }

    async fn select(&mut self, table: &str, columns: &[Column]) -> Result<Rows, String> {
        let expression =
            |(index, column): (usize, &Column)| column.expression(&format!("c{index}"));
        let expressions: Vec<_> = columns.iter().enumerate().map(expression).collect();
        let sql = format!("SELECT id, {} FROM {table}", expressions.join(", "));
        let rows = self.sql.select(&sql).await.map_err(|error| format!("{sql}: {error}"))?;
        let row = |row: Vec<Option<String>>| {
            let mut cells = row.into_iter();
            let id = cells.next().flatten().expect("a key");
            (id, columns.iter().zip(cells).map(|(column, text)| column.selected(text)).collect())
        };
        Ok(rows.into_iter().map(row).collect())
    }

    /// Reads the log until all rows of the table are deleted.
    async fn play(&mut self, played: &mut Played<'_>, rows: usize) -> Result<(), String> {
        while played.deleted < rows {
            let bytes = self.dump.next_event().await.map_err(|error| error.to_string())?;
            let bytes = bytes.ok_or("the server ended the dump")?;
            let event = self.stream.decode(bytes).map_err(|error| error.to_string())?;
            played.event(&event)?;
            if let EventData::TransactionPayload(payload) = event.data {
                let span = event.span();
                self.payloads.open(&event, &payload).map_err(|error| error.to_string())?;
                while let Some(bytes) =
                    self.payloads.next_event().map_err(|error| error.to_string())?
                {
                    let event = self
                        .stream
                        .decode_nested(bytes, span)
                        .map_err(|error| error.to_string())?;
                    played.event(&event)?;
                }
            }
        }
        Ok(())
    }
}

/// What the rows events of a table make of it.
struct Played<'c> {
    table: String,
    columns: &'c [Column],
    /// Whether every image has all columns.
    is_full: bool,
    rows: Rows,
    inserted: Option<Rows>,
    updated: Option<Rows>,
    deleted: usize,
    values: u64,
}

impl Played<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), String> {
        let EventData::Rows { rows, table } = &event.data else { return Ok(()) };
        if table.database() != DATABASE || table.table() != self.table {
            return Ok(());
        }
        if rows.kind() != RowsKind::Write && self.inserted.is_none() {
            self.inserted = Some(self.rows.clone());
        }
        if rows.kind() == RowsKind::Delete && self.updated.is_none() {
            self.updated = Some(self.rows.clone());
        }
        let mut reader = rows.rows(table).map_err(|error| error.to_string())?;
        let mut row = Row::new();
        while reader.read(&mut row).map_err(|error| format!("{error}: {}", error.error))? {
            self.row(rows.kind(), &row)?;
        }
        Ok(())
    }

    fn row(&mut self, kind: RowsKind, row: &Row<'_>) -> Result<(), String> {
        let image = if kind == RowsKind::Write { &row.after } else { &row.before };
        let Some(Value::Int32(id)) = image.get(0) else {
            return Err("an image without key".into());
        };
        let id = id.to_string();
        let sides = match kind {
            RowsKind::Write => vec![&row.after],
            RowsKind::Update | RowsKind::PartialUpdate => vec![&row.before, &row.after],
            RowsKind::Delete => vec![&row.before],
        };
        for (side, image) in sides.into_iter().enumerate() {
            let is_new = kind == RowsKind::Write || side == 1;
            for (index, column) in self.columns.iter().enumerate() {
                let Some(value) = image.get(index + 1) else {
                    if self.is_full || kind == RowsKind::Write {
                        return Err(format!("{kind:?} {side}: c{index} is missing"));
                    }
                    continue;
                };
                let before = match row.before.get(index + 1) {
                    Some(Value::Json(document)) => Some(document),
                    _ => None,
                };
                let cell = column.logged(&value, before);
                self.values += 1;
                let cells = self.rows.entry(id.clone()).or_default();
                if is_new {
                    if cells.len() <= index {
                        cells.resize(index + 1, None);
                    }
                    cells[index] = cell;
                } else if cells.get(index) != Some(&cell) {
                    return Err(format!(
                        "{kind:?} of row {id}, c{index} {}: the image before has {cell:?}, the row had {:?}",
                        column.declared,
                        cells.get(index)
                    ));
                }
            }
        }
        if kind == RowsKind::Delete {
            self.rows.remove(&id);
            self.deleted += 1;
        }
        Ok(())
    }
}

fn same(when: &str, columns: &[Column], selected: &Rows, logged: &Rows) -> Result<(), String> {
    if selected.keys().ne(logged.keys()) {
        return Err(format!("{when}: rows {:?} and {:?}", selected.keys(), logged.keys()));
    }
    for (id, cells) in selected {
        for (index, column) in columns.iter().enumerate() {
            let (selected, logged) = (&cells[index], &logged[id][index]);
            if selected != logged {
                return Err(format!(
                    "{when}: row {id}, c{index} {}: SELECT has {selected:?}, the log has {logged:?}",
                    column.declared
                ));
            }
        }
    }
    Ok(())
}

fn number(variable: &str, otherwise: u32) -> u32 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// So many tables. The seed is printed with what fails.
fn select_equals_log(options: &Options, has_vectors: bool, cases: u32) {
    let server = shared(options).unwrap();
    let dialect = Dialect { flavour: server.flavour(), has_vectors };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connections = RefCell::new(runtime.block_on(Connections::open(&server)));
    let seed = number("HOLDFAST_SEED", 1);
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let config =
        Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&case(dialect), |case| {
        let mut connections = connections.borrow_mut();
        runtime.block_on(connections.check(&case)).map_err(TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("{}, HOLDFAST_SEED={seed}: {error}", server.version());
    }
    assert!(connections.borrow().values > u64::from(cases));
    println!("{}: {cases} tables, {} values", server.version(), connections.borrow().values);
    server.sql(&format!("DROP DATABASE {DATABASE}")).unwrap();
}

#[test]
fn mysql_selects_what_its_log_has() {
    select_equals_log(&Options::mysql(), true, 40);
}

#[test]
fn mariadb_selects_what_its_log_has() {
    select_equals_log(&Options::mariadb(), false, 40);
}

#[test]
fn mariadb_11_selects_what_its_log_has() {
    select_equals_log(&Options::mariadb_11(), true, 40);
}

/// `HOLDFAST_EPISODES` tables of each server, from `HOLDFAST_SEED` on.
#[test]
#[ignore = "takes minutes: a thousand tables"]
fn servers_select_what_their_logs_have() {
    let cases = number("HOLDFAST_EPISODES", 1000);
    select_equals_log(&Options::mysql(), true, cases);
    select_equals_log(&Options::mariadb(), false, cases);
    select_equals_log(&Options::mariadb_11(), true, cases);
}
