//! History and offsets on object storage, over S3's protocol: the conformance suites, two writers, lost answers, and an
//! engine that is killed and resumed.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_connector::offset_store::{
    OffsetKey, OffsetStore, OffsetStoreError, OpendalOffsetStore, conformance as offsets,
};
use holdfast_history::error::Error;
use holdfast_history::store::conformance::{self as histories, record};
use holdfast_history::store::{ObjectUrl, OpendalHistoryStore, S3Credentials};
use holdfast_history::{HistoryRecord, HistoryStore};
use holdfast_tests::engine::{Engine, Process, Properties, RunOptions, holdfast_binary};
use holdfast_tests::s3::{KEY, S3};
use holdfast_tests::server::{Options, shared};
use holdfast_tests::{case, paths};

/// A folder, or an object, in a bucket.
struct Place(ObjectUrl);

impl Place {
    /// A new name in the bucket of `server`.
    fn new(server: &S3) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let url = server.url(&format!("data/rw-cdc-schema-history/source-{number}"));
        let credentials = S3Credentials {
            access_key_id: KEY.to_owned(),
            secret_access_key: KEY.to_owned(),
            session_token: None,
        };
        Self(ObjectUrl::parse(&url).unwrap().with_credentials(Some(credentials)))
    }

    async fn history(&self) -> OpendalHistoryStore {
        OpendalHistoryStore::open_url(&self.0).await.unwrap()
    }

    fn offsets(&self) -> OpendalOffsetStore {
        OpendalOffsetStore::at_url(&self.0).unwrap()
    }

    async fn put(&self, name: &str, text: &'static str) {
        let path = format!("{}{name}", self.0.path());
        self.0.operator().unwrap().write(&path, text).await.unwrap();
    }
}

#[async_trait]
impl histories::Place for Place {
    async fn open(&self) -> Result<Box<dyn HistoryStore>, Error> {
        Ok(Box::new(OpendalHistoryStore::open_url(&self.0).await?))
    }

    async fn crash_in_append(&self, _: &[HistoryRecord], _: usize) -> Option<usize> {
        // A put is there as a whole, or not at all.
        None
    }

    async fn damage(&self, number: u64) {
        self.put(&format!("/schema_history_{number}.dat"), "{\n").await;
    }
}

#[async_trait]
impl offsets::Place for Place {
    async fn open(&self) -> Box<dyn OffsetStore> {
        Box::new(self.offsets())
    }

    async fn damage(&self) {
        self.put("", "{").await;
    }
}

fn key() -> OffsetKey {
    OffsetKey { engine: "e".to_owned(), server: "s".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_on_s3_keep_the_contracts() {
    let server = S3::start().unwrap();
    histories::run(&|| Box::new(Place::new(&server))).await;
    offsets::run(&|| Box::new(Place::new(&server))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_writers_is_fenced() {
    let server = S3::start().unwrap();
    let place = Place::new(&server);
    let (first, second) = (place.history().await, place.history().await);
    first.append(&[record(1)]).await.unwrap();
    let error = second.append(&[record(2)]).await.unwrap_err();
    assert!(matches!(error, Error::Fenced { .. }), "{error}");
    first.append(&[record(3)]).await.unwrap();
    assert_eq!(place.history().await.load().await.unwrap(), [record(1), record(3)]);

    let place = Place::new(&server);
    let (first, second) = (place.offsets(), place.offsets());
    first.store(&key(), &offsets::offset(1)).await.unwrap();
    assert_eq!(second.load(&key()).await.unwrap(), Some(offsets::offset(1)));
    first.store(&key(), &offsets::offset(2)).await.unwrap();
    let error = second.store(&key(), &offsets::offset(3)).await.unwrap_err();
    assert!(matches!(error, OffsetStoreError::Fenced { .. }), "{error}");
    assert_eq!(first.load(&key()).await.unwrap(), Some(offsets::offset(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_was_lost_is_recognised() {
    let server = S3::start().unwrap();
    let (place, other) = (Place::new(&server), Place::new(&server));
    let (history, offset) = (place.history().await, other.offsets());
    for number in 1..=3 {
        server.proxy.lose_answers.store(1, Ordering::Relaxed);
        history.append(&[record(number)]).await.unwrap();
        server.proxy.lose_answers.store(1, Ordering::Relaxed);
        offset.store(&key(), &offsets::offset(number)).await.unwrap();
        assert_eq!(server.proxy.lose_answers.load(Ordering::Relaxed), 0, "an answer was lost");
    }
    assert_eq!(history.load().await.unwrap(), [1, 2, 3].map(record));
    assert_eq!(offset.load(&key()).await.unwrap(), Some(offsets::offset(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_conditions_is_found_out_when_a_history_is_opened() {
    let server = S3::start().unwrap();
    server.proxy.forget_conditions.store(true, Ordering::Relaxed);
    let error = OpendalHistoryStore::open_url(&Place::new(&server).0).await.unwrap_err();
    assert!(matches!(error, Error::NoFence { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_not_there_is_no_empty_history() {
    let server = S3::start().unwrap();
    let url = server.url("x").replace("s3://holdfast/", "s3://another/");
    let url = ObjectUrl::parse(&url).unwrap().with_credentials(Some(S3Credentials {
        access_key_id: KEY.to_owned(),
        secret_access_key: KEY.to_owned(),
        session_token: None,
    }));
    let store = OpendalHistoryStore::open_url_read_only(&url).unwrap();
    assert!(store.exists().await.is_err());
    assert!(store.load().await.is_err());
    assert!(OpendalHistoryStore::open_url(&url).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_costs_one_request_however_long_the_history_is() {
    const APPENDS: u64 = 150;
    let server = S3::start().unwrap();
    let place = Place::new(&server);
    let store = place.history().await;
    let count = || {
        (server.proxy.requests.load(Ordering::Relaxed), server.proxy.bytes.load(Ordering::Relaxed))
    };
    let before = count();
    for _ in 0..APPENDS {
        store.append(&[record(1)]).await.unwrap();
    }
    let after = count();
    let one = place.0.operator().unwrap();
    let one = one.stat(&format!("{}/schema_history_1.dat", place.0.path())).await.unwrap();
    let bytes = one.content_length() * APPENDS;
    println!("{APPENDS} appends: {} requests, {} bytes", after.0 - before.0, after.1 - before.1);
    assert_eq!((after.0 - before.0, after.1 - before.1), (APPENDS, bytes));
}

#[test]
fn an_engine_on_s3_is_killed_resumed_and_fenced() {
    let bucket = S3::start().unwrap();
    let server = shared(&Options::mysql()).unwrap();
    let folder = paths::fresh("objects").unwrap();
    server
        .sql(
            "DROP DATABASE IF EXISTS objects; CREATE DATABASE objects; CREATE TABLE objects.t (id INT PRIMARY KEY);
             INSERT INTO objects.t VALUES (1)",
        )
        .unwrap();
    case::make_marker(&server).unwrap();
    let mut properties = Properties::new(&server, &folder);
    for property in [
        "offset.storage",
        "offset.storage.file.filename",
        "schema.history.internal",
        "schema.history.internal.file.filename",
    ] {
        properties.remove(property);
    }
    properties.set("holdfast.history.url", bucket.url("run/source-1"));
    properties.set("holdfast.offsets.url", bucket.url("run/offsets.json"));
    properties.set("holdfast.s3.access.key.id", KEY);
    properties.set("holdfast.s3.secret.access.key", KEY);
    properties.set("holdfast.history.checkpoint.records", "2");
    properties.set("database.include.list", format!("objects,{}", case::MARKER));
    let start = |name: &str| {
        Process::start(Engine::Holdfast, &properties, &folder, name, RunOptions::default()).unwrap()
    };
    let mark = |id: i64| {
        server.sql(&format!("INSERT INTO {}.marker VALUES ({id})", case::MARKER)).unwrap();
    };
    let mut first = start("first");
    case::snapshot_end(&mut first).unwrap();
    server.sql("ALTER TABLE objects.t ADD a INT DEFAULT 5").unwrap();
    mark(2);
    case::marker_row(&mut first, 2).unwrap();
    first.kill().unwrap();

    server.sql("INSERT INTO objects.t VALUES (2, 6)").unwrap();
    mark(3);
    let mut second = start("second");
    case::marker_row(&mut second, 3).unwrap();
    let rows: Vec<String> = second
        .records()
        .iter()
        .filter(|record| record.source().text("db") == Some("objects"))
        .filter_map(|record| Some(record.value().get("after")?.to_string()))
        .collect();
    assert!(rows.contains(&r#"{"id":2,"a":6}"#.to_owned()), "{rows:?}");
    assert!(!second.log().contains("ERROR"), "{}", second.log());

    // The command line looks at it, beside the engine and with the checkpoint that its start has written.
    assert!(second.log().contains("a checkpoint of the schema history was written"));
    let history = |command: &str| {
        let output = Command::new(holdfast_binary().unwrap())
            .args(["history", command, "--config"])
            .arg(folder.join("second.properties"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let shown = history("show");
    assert!(shown.contains("ALTER objects.t (`id` INT, `a` INT)"), "{shown}");
    let explained = history("explain");
    assert!(explained.contains("objects.t\n   definition: `id` INT, `a` INT\n"), "{explained}");
    let verified = history("verify");
    assert!(verified.contains("records and says what they say\n"), "{verified}");
    assert!(verified.contains("not fitting: 0"), "{verified}");

    // Another writer takes the next number.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let url = ObjectUrl::parse(&bucket.url("run/source-1")).unwrap();
        let url = url.with_credentials(Some(S3Credentials {
            access_key_id: KEY.to_owned(),
            secret_access_key: KEY.to_owned(),
            session_token: None,
        }));
        let other = OpendalHistoryStore::open_url(&url).await.unwrap();
        other.append(&[record(1)]).await.unwrap();
    });
    server.sql("ALTER TABLE objects.t ADD b INT; INSERT INTO objects.t VALUES (3, 3, 3)").unwrap();
    let status = second.wait_end(Duration::from_secs(30)).unwrap();
    assert_eq!(status.code(), Some(6), "{}", second.log_tail());
}
