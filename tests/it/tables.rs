//! Stores in Debezium's JDBC layout: the conformance suites, tables as Debezium makes them, and an engine on them. MySQL
//! and MariaDB.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use holdfast_connector::config::Secret;
use holdfast_connector::offset_store::{
    OffsetKey, OffsetStore, OffsetStoreError, conformance as offsets,
};
use holdfast_connector::table_store::{TableHistoryStore, TableLocation, TableOffsetStore};
use holdfast_history::error::{Error, ErrorClass};
use holdfast_history::store::conformance::{self as histories, record};
use holdfast_history::{HistoryRecord, HistoryStore};
use holdfast_tests::engine::{Engine, Process, Properties, RunOptions};
use holdfast_tests::server::{Options, Server, shared};
use holdfast_tests::{case, paths};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};

const DATABASE: &str = "table_stores";
/// Debezium's own statements, for a database whose text is latin1: in others the server refuses the first.
const THEIR_HISTORY: &str = "CREATE TABLE %s(id VARCHAR(36) NOT NULL,history_data VARCHAR(65000),history_data_seq INTEGER,\
     record_insert_ts TIMESTAMP NOT NULL,record_insert_seq INTEGER NOT NULL,PRIMARY KEY (id, history_data_seq)) \
     CHARACTER SET latin1";
const THEIR_OFFSETS: &str = "CREATE TABLE %s (id VARCHAR(36) NOT NULL, offset_key VARCHAR(1255), offset_val VARCHAR(1255),\
     record_insert_ts TIMESTAMP NOT NULL,record_insert_seq INTEGER NOT NULL,PRIMARY KEY (id))";

/// One table, made by the store.
struct Table(TableLocation);

/// A new name in the store's database at `server`.
fn location(server: &Server, ddl: Option<&str>) -> TableLocation {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let url = format!("jdbc:mysql://{}:{}/{DATABASE}", server.host(), server.port());
    let table = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let password = Secret::new(server.password());
    TableLocation::from_jdbc(&url, Some(server.user()), Some(&password), &table, ddl).unwrap()
}

fn make_database(server: &Server) {
    server.sql(&format!("DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}")).unwrap();
}

async fn execute(location: &TableLocation, sql: &str) {
    let options = OptsBuilder::default()
        .ip_or_hostname(location.host.clone())
        .tcp_port(location.port)
        .user(Some(location.user.clone()))
        .pass(Some(location.password.expose()))
        .db_name(Some(location.database.clone()))
        .prefer_socket(false);
    let mut conn = Conn::new(options).await.unwrap();
    conn.query_drop(sql.replace("%s", &location.table)).await.unwrap();
    conn.disconnect().await.unwrap();
}

#[async_trait]
impl histories::Place for Table {
    async fn open(&self) -> Result<Box<dyn HistoryStore>, Error> {
        Ok(Box::new(TableHistoryStore::open(self.0.clone()).await?))
    }

    async fn crash_in_append(&self, _: &[HistoryRecord], _: usize) -> Option<usize> {
        // A transaction that has not ended leaves nothing.
        None
    }

    async fn damage(&self, number: u64) {
        let sql = format!("UPDATE %s SET history_data = '{{' WHERE record_insert_seq = {number}");
        execute(&self.0, &sql).await;
    }
}

#[async_trait]
impl offsets::Place for Table {
    async fn open(&self) -> Box<dyn OffsetStore> {
        Box::new(TableOffsetStore::new(self.0.clone()))
    }

    async fn damage(&self) {
        execute(&self.0, "UPDATE %s SET offset_val = LEFT(offset_val, 20)").await;
    }
}

/// Runs `test` on MySQL and both MariaDBs.
fn on_all_servers(mut test: impl AsyncFnMut(&Server)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for options in [Options::mysql(), Options::mariadb(), Options::mariadb_11()] {
        let server = shared(&options).unwrap();
        make_database(&server);
        runtime.block_on(test(&server));
    }
}

#[test]
fn table_stores_keep_the_contracts() {
    on_all_servers(async |server| {
        histories::run(&|| Box::new(Table(location(server, None)))).await;
        histories::run(&|| Box::new(Table(location(server, Some(THEIR_HISTORY))))).await;
        offsets::run(&|| Box::new(Table(location(server, None)))).await;
    });
}

#[test]
fn a_record_longer_than_a_part_comes_back_whole_and_keeps_its_place() {
    on_all_servers(async |server| {
        for ddl in [None, Some(THEIR_HISTORY)] {
            let place = location(server, ddl);
            let store = TableHistoryStore::open(place.clone()).await.unwrap();
            let long = HistoryRecord {
                ddl: Some(format!("CREATE TABLE x (a INT COMMENT '{}')", "数据😀é".repeat(30_000))),
                ..record(2)
            };
            let all = [record(1), long, record(3)];
            store.append(&all).await.unwrap();
            assert_eq!(store.load().await.unwrap(), all);
            let parts = server
                .value(&format!("SELECT MAX(history_data_seq) FROM {DATABASE}.{}", place.table))
                .unwrap();
            assert!(parts.parse::<u32>().unwrap() > 3, "{parts}");
            // A part that is lost is damage.
            execute(&place, "DELETE FROM %s WHERE history_data_seq = 1").await;
            let error = store.load().await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Data);
            assert!(error.to_string().contains(", line 2:"), "{error}");
        }
    });
}

#[test]
fn records_stay_in_order_when_the_clock_goes_back_and_a_foreign_writer_fences() {
    on_all_servers(async |server| {
        let place = location(server, None);
        let store = TableHistoryStore::open(place.clone()).await.unwrap();
        store.append(&[record(1)]).await.unwrap();
        drop(store);
        // As if the last record had been written an hour ahead.
        execute(
            &place,
            "UPDATE %s SET record_insert_ts = record_insert_ts + INTERVAL 1 HOUR, record_insert_seq = 41",
        )
        .await;
        let store = TableHistoryStore::open(place.clone()).await.unwrap();
        store.append(&[record(2)]).await.unwrap();
        store.append(&[record(3)]).await.unwrap();
        assert_eq!(store.load().await.unwrap(), [record(1), record(2), record(3)]);
        execute(&place, "DELETE FROM %s WHERE record_insert_seq = 41").await;
        let error = store.append(&[record(4)]).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Fenced, "{error}");
        assert_eq!(store.load().await.unwrap(), [record(2), record(3)]);
    });
}

#[test]
fn a_table_that_cannot_hold_a_history_or_an_offset_is_refused_with_what_to_do() {
    on_all_servers(async |server| {
        let place = location(
            server,
            Some("CREATE TABLE %s (id VARCHAR(36), history_data TEXT) ENGINE=MyISAM"),
        );
        let error = TableHistoryStore::open(place).await.unwrap_err();
        assert!(format!("{error:?}").contains("no transactions"), "{error:?}");

        let mut place = location(server, None);
        place.password = Secret::new("wrong");
        let error = TableHistoryStore::open(place).await.unwrap_err();
        assert!(matches!(error, Error::Read { .. }), "{error:?}");
        assert!(!format!("{error:?}").contains("wrong"), "{error:?}");

        // Debezium's column has 1255 characters.
        let store = TableOffsetStore::new(location(server, Some(THEIR_OFFSETS)));
        let key = OffsetKey { engine: "e".to_owned(), server: "s".to_owned() };
        store.store(&key, &offsets::offset(1)).await.unwrap();
        let long =
            holdfast_history::SourceOffset { gtids: Some("x".repeat(1300)), ..offsets::offset(2) };
        let error = store.store(&key, &long).await.unwrap_err();
        let OffsetStoreError::Io { source, .. } = error else { panic!("{error:?}") };
        assert!(source.to_string().contains("MODIFY offset_val LONGTEXT"), "{source}");
        assert_eq!(store.load(&key).await.unwrap(), Some(offsets::offset(1)));
    });
}

#[test]
fn an_offset_that_another_engine_stored_meanwhile_fences() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        make_database(&server);
        let table = location(&server, None);
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let (first, second) =
                (TableOffsetStore::new(table.clone()), TableOffsetStore::new(table.clone()));
            let key = OffsetKey { engine: "one".to_owned(), server: "s".to_owned() };
            let other = OffsetKey { engine: "two".to_owned(), server: "s".to_owned() };
            first.store(&key, &offsets::offset(1)).await.unwrap();
            assert_eq!(second.load(&key).await.unwrap(), Some(offsets::offset(1)));
            second.store(&other, &offsets::offset(7)).await.unwrap();
            first.store(&key, &offsets::offset(2)).await.unwrap();
            for _ in 0..2 {
                let error = second.store(&key, &offsets::offset(3)).await.unwrap_err();
                assert!(matches!(error, OffsetStoreError::Fenced { .. }), "{error}");
            }
            second.store(&other, &offsets::offset(8)).await.unwrap();
            assert_eq!(first.load(&key).await.unwrap(), Some(offsets::offset(2)));
            // Whoever loads takes over, and it is the other that stops.
            assert_eq!(second.load(&key).await.unwrap(), Some(offsets::offset(2)));
            second.store(&key, &offsets::offset(4)).await.unwrap();
            let error = first.store(&key, &offsets::offset(5)).await.unwrap_err();
            assert!(matches!(error, OffsetStoreError::Fenced { .. }), "{error}");
        });
    }
}

#[test]
fn an_engine_keeps_offset_and_history_in_tables_and_stops_when_it_is_fenced() {
    for options in [Options::mysql(), Options::mariadb()] {
        let server = shared(&options).unwrap();
        let folder = paths::fresh("table-stores").unwrap();
        make_database(&server);
        server
            .sql(
                "DROP DATABASE IF EXISTS tabled; CREATE DATABASE tabled; CREATE TABLE tabled.t (id INT PRIMARY KEY);
                 INSERT INTO tabled.t VALUES (1)",
            )
            .unwrap();
        case::make_marker(&server).unwrap();
        let mut properties = Properties::new(&server, &folder);
        properties.store_in_tables(&server, DATABASE).unwrap();
        properties.set("database.include.list", format!("tabled,{}", case::MARKER));
        let start = |name: &str| {
            Process::start(Engine::Holdfast, &properties, &folder, name, RunOptions::default())
                .unwrap()
        };
        let mark = |id: i64| {
            server.sql(&format!("INSERT INTO {}.marker VALUES ({id})", case::MARKER)).unwrap();
        };
        let mut first = start("first");
        case::snapshot_end(&mut first).unwrap();
        server.sql("ALTER TABLE tabled.t ADD a INT DEFAULT 5").unwrap();
        mark(2);
        case::marker_row(&mut first, 2).unwrap();
        first.stop().unwrap();

        server.sql("INSERT INTO tabled.t VALUES (2, 6)").unwrap();
        mark(3);
        let mut second = start("second");
        case::marker_row(&mut second, 3).unwrap();
        let rows: Vec<String> = second
            .records()
            .iter()
            .filter(|record| record.source().text("db") == Some("tabled"))
            .map(|record| record.value().get("after").unwrap().to_string())
            .collect();
        assert_eq!(rows, [r#"{"id":2,"a":6}"#]);

        // Somebody else writes the history: the next statement must not be added.
        let before =
            server.value(&format!("SELECT COUNT(*) FROM {DATABASE}.debezium_database_history"));
        server
            .sql(&format!(
                "INSERT INTO {DATABASE}.debezium_database_history SELECT 'other', history_data, 0, record_insert_ts, 99
                 FROM {DATABASE}.debezium_database_history ORDER BY record_insert_seq LIMIT 1;
                 ALTER TABLE tabled.t ADD b INT; INSERT INTO tabled.t VALUES (3, 3, 3)"
            ))
            .unwrap();
        let status = second.wait_end(std::time::Duration::from_secs(30)).unwrap();
        assert_eq!(status.code(), Some(6), "{}", second.log_tail());
        let after =
            server.value(&format!("SELECT COUNT(*) FROM {DATABASE}.debezium_database_history"));
        let number = |count: holdfast_tests::Result<String>| count.unwrap().parse::<u32>().unwrap();
        assert_eq!(number(after), number(before) + 1);
    }
}
