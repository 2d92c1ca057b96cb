//! Random DDL on real servers: the definitions that the logged statements give are those that the server has.

mod definition;
mod generate;
mod written;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use holdfast_binlog::client::{BinlogClient, ClientOptions, DumpStart, DumpStream, Password};
use holdfast_binlog::event::{ChecksumAlgorithm, Event, EventData, Query};
use holdfast_binlog::position::BinlogPosition;
use holdfast_binlog::stream::{EventStream, StreamOptions};
use holdfast_history::Tables;
use holdfast_history::ddl::{
    DdlContext, Flavor, SqlMode, StatementClass, apply_statement, classify,
};
use holdfast_tests::server::{Flavour, Options, Server, shared};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

use definition::{
    Definition, Definitions, ServerColumn, charset_name, differences, of_model, of_table,
};
use generate::{DATABASES, Generator, Known, Random, Session};

/// Sequences of a server, unless `HOLDFAST_SEQUENCES` says more.
const SEQUENCES: u64 = 250;
/// Statements of a sequence that the server has to accept.
const STATEMENTS: usize = 9;
/// Sequences whose log is read in one go.
const CHUNK: u64 = 50;

/// What the server had when the log had reached a position.
struct Checkpoint {
    seed: u64,
    statement: String,
    place: (String, u64),
    first: bool,
    definitions: Definitions,
    /// `SHOW CREATE TABLE` by database and table, at the end of a sequence.
    texts: Vec<(String, String, String)>,
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn campaign(server: &Server) {
    sequences(server, number("HOLDFAST_SEED", 20_260_101), number("HOLDFAST_SEQUENCES", SEQUENCES));
}

/// Sequences that nobody has run yet, unless the variables say which.
fn long_campaign(server: &Server) {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    sequences(server, number("HOLDFAST_SEED", now << 16), number("HOLDFAST_SEQUENCES", 5000));
}

fn sequences(server: &Server, seed: u64, count: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("seed {seed}, {count} sequences; HOLDFAST_SEED and HOLDFAST_SEQUENCES set others");
    let mut failures = Vec::new();
    let mut statements = 0;
    let mut done = 0;
    while done < count {
        let chunk = CHUNK.min(count - done);
        let (checkpoints, log) = runtime.block_on(run(server, seed + done, chunk));
        statements += checkpoints.len();
        judge(server.flavour(), &checkpoints, log, &mut failures);
        done += chunk;
    }
    println!("{statements} accepted statements in {count} sequences");
    assert!(
        statements >= usize::try_from(count).unwrap() * STATEMENTS / 2,
        "the server refuses too many statements: {statements} in {count} sequences"
    );
    assert!(
        failures.is_empty(),
        "{} of {count} sequences differ\n{}",
        failures.len(),
        failures.iter().take(25).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// A logged statement and its session, or the end of an event.
struct Logged {
    file: String,
    end: u64,
    database: String,
    sql: String,
    sql_mode: u64,
    server_charset: Option<String>,
    implicit_timestamps: bool,
    failed: bool,
}

/// Runs sequences and reads what they left in the log.
async fn run(server: &Server, seed: u64, count: u64) -> (Vec<Checkpoint>, Vec<Logged>) {
    let mut writer = connect(server).await;
    let mut reader = connect(server).await;
    let start = place(&mut reader, server.flavour()).await;
    let mut checkpoints = Vec::new();
    for sequence in seed..seed + count {
        run_sequence(server.flavour(), sequence, &mut writer, &mut reader, &mut checkpoints).await;
    }
    let collations = collations(&mut reader).await;
    writer.disconnect().await.unwrap();
    reader.disconnect().await.unwrap();
    (checkpoints, read_log(server, start, &collations).await)
}

/// The character set of each collation.
async fn collations(conn: &mut Conn) -> HashMap<u16, String> {
    let sql =
        "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL";
    let collations: Vec<(u16, String)> = conn.query(sql).await.unwrap();
    collations.into_iter().collect()
}

async fn connect(server: &Server) -> Conn {
    let options = OptsBuilder::default()
        .ip_or_hostname(server.host())
        .tcp_port(server.port())
        .user(Some(server.user()))
        .pass(Some(server.password()))
        .prefer_socket(false);
    let mut conn = Conn::new(options).await.unwrap();
    conn.query_drop("SET NAMES utf8mb4").await.unwrap();
    conn
}

async fn place(conn: &mut Conn, flavour: Flavour) -> (String, u64) {
    let sql = match flavour {
        Flavour::MySql => "SHOW BINARY LOG STATUS",
        Flavour::MariaDb => "SHOW MASTER STATUS",
    };
    let row: mysql_async::Row = conn.query_first(sql).await.unwrap().unwrap();
    (row.get(0).unwrap(), row.get(1).unwrap())
}

async fn run_sequence(
    flavour: Flavour,
    seed: u64,
    writer: &mut Conn,
    reader: &mut Conn,
    checkpoints: &mut Vec<Checkpoint>,
) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.below(1);
    let session = Session {
        mariadb: flavour == Flavour::MariaDb,
        ansi_quotes: random.below(4) == 0,
        no_backslash_escapes: random.below(4) == 0,
    };
    let mut mode = ["", "STRICT_TRANS_TABLES", "REAL_AS_FLOAT"][random.below(3)].to_owned();
    for (set, name) in [
        (session.ansi_quotes, "ANSI_QUOTES"),
        (session.no_backslash_escapes, "NO_BACKSLASH_ESCAPES"),
    ] {
        if set {
            write!(mode, ",{name}").unwrap();
        }
    }
    let charset = ["utf8mb4", "utf8mb4", "latin1", "utf8mb3"][random.below(4)];
    let mut settings = vec![
        format!("SET SESSION sql_mode='{}'", mode.trim_start_matches(',')),
        format!("SET SESSION character_set_server={charset}"),
        format!("SET SESSION explicit_defaults_for_timestamp={}", random.below(4).min(1)),
    ];
    if session.mariadb {
        settings.push("SET SESSION system_versioning_alter_history=KEEP".to_owned());
    }
    let mut prepare = settings;
    prepare.push("SET SESSION foreign_key_checks=0".to_owned());
    for name in DATABASES {
        prepare.push(format!("DROP DATABASE IF EXISTS `{name}`"));
    }
    for sql in prepare {
        writer.query_drop(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let mut accepted = 0;
    let mut tried = 0;
    let mut first = true;
    let mut database = DATABASES[0];
    let mut known: Vec<Known> = Vec::new();
    while accepted < STATEMENTS && tried < STATEMENTS * 6 {
        tried += 1;
        let mut generator = Generator { random: &mut random, session, known: &known, database };
        let sql = if accepted < DATABASES.len() {
            generator.create_database(DATABASES[accepted])
        } else {
            generator.statement()
        };
        if let Err(error) = writer.query_drop(&sql).await {
            if std::env::var_os("HOLDFAST_VERBOSE").is_some() {
                println!("refused: {sql}\n         {error}");
            }
            assert!(matches!(error, mysql_async::Error::Server(_)), "seed {seed}: {sql}: {error}");
            continue;
        }
        accepted += 1;
        if accepted == DATABASES.len() {
            writer.query_drop(format!("USE `{database}`")).await.unwrap();
        } else if random.below(12) == 0 && accepted > DATABASES.len() {
            database = DATABASES[random.below(2)];
            // It may have been dropped.
            let _ = writer.query_drop(format!("USE `{database}`")).await;
        }
        let (definitions, now) = server_definitions(reader, flavour, &DATABASES).await;
        known = now;
        let texts =
            if accepted >= STATEMENTS { create_texts(reader, &known).await } else { Vec::new() };
        checkpoints.push(Checkpoint {
            seed,
            statement: sql,
            place: place(reader, flavour).await,
            first: std::mem::take(&mut first),
            definitions,
            texts,
        });
    }
}

async fn create_texts(conn: &mut Conn, known: &[Known]) -> Vec<(String, String, String)> {
    let mut texts = Vec::new();
    for Known { database, table, .. } in known {
        let name = |text: &str| format!("`{}`", text.replace('`', "``"));
        let row: mysql_async::Row = conn
            .query_first(format!("SHOW CREATE TABLE {}.{}", name(database), name(table)))
            .await
            .unwrap()
            .unwrap();
        texts.push((database.clone(), table.clone(), row.get(1).unwrap()));
    }
    texts
}

/// What `information_schema` says of all tables.
async fn server_definitions<T: AsRef<str>>(
    conn: &mut Conn,
    flavour: Flavour,
    databases: &[T],
) -> (Definitions, Vec<Known>) {
    let mariadb = flavour == Flavour::MariaDb;
    // An empty list would be no SQL.
    let names = databases.iter().map(|name| format!("'{}'", name.as_ref().replace('\'', "''")));
    let databases = names.chain(["''".to_owned()]).collect::<Vec<_>>().join(",");
    let mut definitions = BTreeMap::new();
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let tables: Vec<(String, String, Option<String>, Option<String>)> = conn
        .query(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_COLLATION, TABLE_COMMENT FROM information_schema.TABLES
             WHERE TABLE_SCHEMA IN ({databases}) AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED')"
        ))
        .await
        .unwrap();
    for (database, table, collation, comment) in tables {
        let id = format!("{database}.{table}");
        let charset = collation.unwrap_or_default();
        let charset = charset_name(charset.split('_').next().unwrap_or_default());
        let definition = Definition {
            columns: Vec::new(),
            key: None,
            charset,
            comment: comment.unwrap_or_default(),
        };
        definitions.insert(id.clone(), definition);
        known.insert(id, Known { database, table, ..Known::default() });
    }
    let columns: Vec<mysql_async::Row> = conn
        .query(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME,
                    COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, CAST(CHARACTER_MAXIMUM_LENGTH AS CHAR),
                    CAST(NUMERIC_PRECISION AS CHAR), CAST(NUMERIC_SCALE AS CHAR), CAST(DATETIME_PRECISION AS CHAR)
             FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({databases})
             ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION"
        ))
        .await
        .unwrap();
    for row in columns {
        let text = |at: usize| row.get::<Option<String>, usize>(at).unwrap();
        let id = format!("{}.{}", text(0).unwrap(), text(1).unwrap());
        let column = ServerColumn {
            name: text(2).unwrap(),
            column_type: text(3).unwrap(),
            nullable: text(4).unwrap(),
            charset: text(5),
            default: text(6),
            extra: text(7).unwrap_or_default(),
            comment: text(8).unwrap_or_default(),
            characters: text(9),
            precision: text(10),
            scale: text(11),
            fraction: text(12),
        };
        let (Some(definition), Some(known)) = (definitions.get_mut(&id), known.get_mut(&id)) else {
            continue;
        };
        definition.columns.push(column.print(mariadb));
        let is_number = ["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "double"]
            .iter()
            .any(|name| column.column_type.starts_with(name));
        if is_number && column.extra.is_empty() {
            known.numbers.push(column.name.clone());
        }
        known.columns.push(column.name);
    }
    let keys: Vec<(String, String, String, Option<String>)> = conn
        .query(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
             WHERE TABLE_SCHEMA IN ({databases}) ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        ))
        .await
        .unwrap();
    for (database, table, index, column) in keys {
        let id = format!("{database}.{table}");
        let (Some(definition), Some(known)) = (definitions.get_mut(&id), known.get_mut(&id)) else {
            continue;
        };
        if index == "PRIMARY" {
            definition.key.get_or_insert_default().push(column.unwrap());
        } else if !known.indexes.contains(&index) {
            known.indexes.push(index);
        }
    }
    (definitions, known.into_values().collect())
}

async fn read_log(
    server: &Server,
    (file, position): (String, u64),
    collations: &HashMap<u16, String>,
) -> Vec<Logged> {
    let mut options = ClientOptions::new(server.host(), server.port(), server.user(), 4_999);
    options.password = Password::new(server.password());
    options.stop_at_end = true;
    let client = BinlogClient::connect(&options).await.unwrap();
    let start = DumpStart::Position(BinlogPosition::new(file.parse().unwrap(), position));
    let mut dump: DumpStream = client.dump(start).await.unwrap();
    let checksum = dump.server().checksum.then_some(ChecksumAlgorithm::Crc32);
    let mut stream = EventStream::new(file, StreamOptions { checksum, ..StreamOptions::default() });
    let mut logged = Vec::new();
    while let Some(bytes) = dump.next_event().await.unwrap() {
        let event = stream.decode(bytes).unwrap();
        if let EventData::Query(query) = &event.data {
            logged.push(statement(&event, query, collations, server.flavour() == Flavour::MariaDb));
        }
    }
    logged
}

fn statement(
    event: &Event<'_>,
    query: &Query<'_>,
    collations: &HashMap<u16, String>,
    mariadb: bool,
) -> Logged {
    Logged {
        file: event.file.to_owned(),
        end: event.end,
        database: String::from_utf8(query.schema.to_vec()).unwrap(),
        sql: String::from_utf8(query.sql.to_vec()).unwrap(),
        sql_mode: query.status.sql_mode.unwrap_or_default(),
        server_charset: query
            .status
            .charset
            .and_then(|charset| collations.get(&charset.server).cloned()),
        implicit_timestamps: match query.status.explicit_defaults_for_timestamp {
            Some(explicit) => !explicit,
            // MariaDB has it among its session options (`OPTION_EXPLICIT_DEF_TIMESTAMP`, `sql/sql_priv.h`).
            None => mariadb && query.status.flags2.is_some_and(|flags| flags & 1 << 24 == 0),
        },
        failed: query.error_code != 0,
    }
}

/// Applies the logged statements and compares at every checkpoint.
fn judge(
    flavour: Flavour,
    checkpoints: &[Checkpoint],
    log: Vec<Logged>,
    failures: &mut Vec<String>,
) {
    let mariadb = flavour == Flavour::MariaDb;
    let flavor = if mariadb { Flavor::MariaDb } else { Flavor::MySql };
    let mut tables = Tables::new(false);
    let mut log = log.into_iter().peekable();
    let mut failed = false;
    for checkpoint in checkpoints {
        if checkpoint.first {
            failed = false;
        }
        let mut report = String::new();
        while let Some(logged) = log.next_if(|logged| {
            logged.file < checkpoint.place.0
                || (logged.file == checkpoint.place.0 && logged.end <= checkpoint.place.1)
        }) {
            if std::env::var_os("HOLDFAST_VERBOSE").is_some() {
                println!("logged {} [{}]: {}", logged.end, logged.database, logged.sql);
            }
            if !matches!(classify(&logged.sql), StatementClass::Ddl | StatementClass::Truncate) {
                continue;
            }
            let context = DdlContext {
                database: Some(logged.database).filter(|name| !name.is_empty()),
                sql_mode: SqlMode(logged.sql_mode),
                flavor,
                server_charset: logged.server_charset,
                implicit_timestamp_defaults: logged.implicit_timestamps,
                failed: logged.failed,
                comments: true,
                ..DdlContext::default()
            };
            if let Err(error) = apply_statement(&logged.sql, &context, &mut tables) {
                writeln!(report, "    {error} in {}", logged.sql).unwrap();
            }
        }
        if failed {
            continue;
        }
        compare(&checkpoint.definitions, &of_model(&tables, mariadb), mariadb, &mut report);
        for (database, table, text) in &checkpoint.texts {
            let mut alone = Tables::new(false);
            let context =
                DdlContext { flavor, comments: true, ..DdlContext::in_database(database.clone()) };
            if let Err(error) = apply_statement(text, &context, &mut alone) {
                writeln!(report, "    {error} in {text}").unwrap();
                continue;
            }
            let read = alone.iter().map(|table| of_table(table, mariadb)).next();
            let id = format!("{database}.{table}");
            for line in differences(&checkpoint.definitions[&id], &read.unwrap(), mariadb) {
                writeln!(report, "    SHOW CREATE TABLE of {id}: {line}\n{text}").unwrap();
            }
        }
        if !report.is_empty() {
            failed = true;
            failures.push(format!("seed {}: {}\n{report}", checkpoint.seed, checkpoint.statement));
        }
    }
}

fn compare(server: &Definitions, model: &Definitions, mariadb: bool, report: &mut String) {
    let names: std::collections::BTreeSet<&String> = server.keys().chain(model.keys()).collect();
    for name in names {
        match (server.get(name), model.get(name)) {
            (Some(server), Some(model)) => {
                for line in differences(server, model, mariadb) {
                    writeln!(report, "  {name}\n    {line}").unwrap();
                }
            }
            (Some(_), None) => writeln!(report, "  {name} is not in the model").unwrap(),
            (None, _) => writeln!(report, "  {name} is not on the server").unwrap(),
        }
    }
}

#[test]
fn random_ddl_gives_the_definitions_of_mysql() {
    campaign(&shared(&Options::mysql()).unwrap());
}

#[test]
fn random_ddl_gives_the_definitions_of_mariadb() {
    campaign(&shared(&Options::mariadb()).unwrap());
}

#[test]
#[ignore = "takes many minutes"]
fn much_random_ddl_gives_the_definitions_of_mariadb_11() {
    long_campaign(&shared(&Options::mariadb_11()).unwrap());
}

#[test]
#[ignore = "takes many minutes"]
fn much_random_ddl_gives_the_definitions_of_mysql() {
    long_campaign(&shared(&Options::mysql()).unwrap());
}

#[test]
#[ignore = "takes many minutes"]
fn much_random_ddl_gives_the_definitions_of_mariadb() {
    long_campaign(&shared(&Options::mariadb()).unwrap());
}
