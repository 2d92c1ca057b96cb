//! The incident that `holdfast refresh` is for, from beginning to end on real servers.
//!
//! The source is swapped for a replica that replays days of backlog with the original event times. The definition that was
//! read there does not count (the store was put back to what it was before; a comparison by event times comes to the same),
//! so that the one of weeks ago comes back, and the first row ends the engine, at every start. One refresh repairs it: the
//! offset keeps its bytes, the history's objects keep theirs and get one more, and the stream goes on with the next row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use holdfast_history::SourceOffset;
use holdfast_history::codec::read_record;
use holdfast_history::store::{ObjectUrl, S3Credentials};
use holdfast_tests::engine::{Engine, Process, Properties, RunOptions, holdfast_binary};
use holdfast_tests::json::Json;
use holdfast_tests::refreshed::changes;
use holdfast_tests::replica::{self, Pair};
use holdfast_tests::s3::{KEY, S3};
use holdfast_tests::server::Server;
use holdfast_tests::{case, paths};

const LIMIT: Duration = Duration::from_secs(90);

/// What the objects of a store hold, by their paths.
pub(crate) type Objects = BTreeMap<String, Vec<u8>>;

/// A connector whose history is in RisingWave's layout and its offset in an object of its own.
struct Connector<'a> {
    pair: &'a Pair,
    database: &'static str,
    files: PathBuf,
    properties: Properties,
    history: ObjectUrl,
    offset: ObjectUrl,
    marker: i64,
    runs: u32,
}

impl<'a> Connector<'a> {
    /// With its stores below a URL; an S3 server's options come after its path.
    fn new(pair: &'a Pair, database: &'static str, place: impl Fn(&Path, &str) -> String) -> Self {
        let files = paths::fresh(database).unwrap();
        let mut properties = Properties::new(&pair.source, &files);
        for property in [
            "offset.storage",
            "offset.storage.file.filename",
            "schema.history.internal",
            "schema.history.internal.file.filename",
        ] {
            properties.remove(property);
        }
        let urls =
            ["rw-cdc-schema-history/source-1", "offsets.json"].map(|name| place(&files, name));
        properties.set("holdfast.history.url", &urls[0]);
        properties.set("holdfast.offsets.url", &urls[1]);
        properties.set("holdfast.s3.access.key.id", KEY);
        properties.set("holdfast.s3.secret.access.key", KEY);
        properties.set("database.include.list", format!("{database},{}", case::MARKER));
        let [history, offset] = urls.map(|url| with_key(ObjectUrl::parse(&url).unwrap()));
        Self { pair, database, files, properties, history, offset, marker: 1, runs: 0 }
    }

    fn reads(&mut self, server: &Server) {
        self.properties.set("database.hostname", server.host());
        self.properties.set("database.port", server.port().to_string());
    }

    /// Statements at the source whose events say that they happened days ago.
    fn days_ago(&self, days: u32, script: &str) {
        let database = self.database;
        let time = format!("SET timestamp = UNIX_TIMESTAMP() - {days} * 86400");
        self.pair.source.sql(&format!("{time}; USE {database}; {script}")).unwrap();
    }

    fn start(&mut self, options: RunOptions) -> Process {
        self.runs += 1;
        let name = format!("run-{}", self.runs);
        Process::start(Engine::Holdfast, &self.properties, &self.files, &name, options).unwrap()
    }

    fn settle(&mut self, process: &mut Process) {
        self.marker += 1;
        case::settle(process, &self.pair.source, self.marker).unwrap();
    }

    /// All that comes from the stored offset on; all of it is acknowledged.
    fn run(&mut self) -> Vec<String> {
        let mut process = self.start(RunOptions::default());
        self.settle(&mut process);
        process.stop().unwrap();
        assert!(!process.log().contains("ERROR"), "{}", process.log());
        changes(process.records())
    }

    fn objects(&self) -> Objects {
        objects(&self.history)
    }

    fn offset(&self) -> Vec<u8> {
        block_on(async {
            let operator = self.offset.operator().unwrap();
            operator.read(self.offset.path()).await.unwrap().to_vec()
        })
    }

    /// Takes objects away.
    fn remove<'p>(&self, url: &ObjectUrl, paths: impl IntoIterator<Item = &'p str>) {
        block_on(async {
            for path in paths {
                url.operator().unwrap().delete(path).await.unwrap();
            }
        });
    }

    fn refresh(&self) -> Json {
        let config = self.files.join("refresh.properties");
        self.properties.write(&config).unwrap();
        let output = Command::new(holdfast_binary().unwrap())
            .args(["refresh", "--yes", "--format", "json", "--config"])
            .arg(config)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{log}");
        Json::parse(String::from_utf8_lossy(&output.stdout).trim()).unwrap()
    }
}

/// With the key of the tests' S3 server.
pub(crate) fn with_key(url: ObjectUrl) -> ObjectUrl {
    url.with_credentials(Some(S3Credentials {
        access_key_id: KEY.to_owned(),
        secret_access_key: KEY.to_owned(),
        session_token: None,
    }))
}

/// The objects of a history.
pub(crate) fn objects(url: &ObjectUrl) -> Objects {
    block_on(async {
        let operator = url.operator().unwrap();
        let mut objects = Objects::new();
        for entry in operator.list(&format!("{}/", url.path())).await.unwrap() {
            if entry.path().ends_with(".dat") {
                let bytes = operator.read(entry.path()).await.unwrap().to_vec();
                objects.insert(entry.path().to_owned(), bytes);
            }
        }
        objects
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// What happens to the table from the snapshot on the replica on.
const CHANGES: [&str; 13] = [
    r#"r {"id":1,"a":1,"b":null}"#,
    r#"r {"id":2,"a":2,"b":2}"#,
    r#"c {"id":3,"a":3,"b":3}"#,
    r#"u {"id":3,"a":33,"b":3}"#,
    r#"c {"id":4,"a":4,"b":4}"#,
    r#"c {"id":5,"a":5,"b":5}"#,
    r#"u {"id":4,"a":44,"b":4}"#,
    r#"d {"id":2,"a":2,"b":2}"#,
    r#"c {"id":6,"a":6,"b":6}"#,
    r#"c {"id":7,"a":7,"b":7}"#,
    r#"u {"id":1,"a":1,"b":11}"#,
    r#"c {"id":8,"a":8,"b":8}"#,
    r#"d {"id":3,"a":33,"b":3}"#,
];

fn the_incident(mut connector: Connector<'_>) {
    let pair = connector.pair;
    let database = connector.database;
    pair.source
        .sql(&format!(
            "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database};
             CREATE TABLE {database}.t (id INT PRIMARY KEY)"
        ))
        .unwrap();
    case::make_marker(&pair.source).unwrap();

    // Weeks ago, on the old source.
    let mut process = connector.start(RunOptions::default());
    case::snapshot_end(&mut process).unwrap();
    connector.days_ago(20, "ALTER TABLE t ADD a INT; INSERT INTO t VALUES (1, 1)");
    connector.settle(&mut process);
    process.stop().unwrap();
    let of_old = connector.objects();

    // The table gets a column. The source is swapped for the replica, where a new snapshot is taken.
    connector.days_ago(5, "ALTER TABLE t ADD b INT; INSERT INTO t VALUES (2, 2, 2)");
    pair.level().unwrap();
    connector.reads(&pair.replica);
    connector.remove(&connector.offset, [connector.offset.path()]);
    let mut process = connector.start(RunOptions::default());
    process
        .wait_for("the rows of the snapshot", LIMIT, |record| {
            changes(std::slice::from_ref(record)).contains(&CHANGES[1].to_owned())
        })
        .unwrap();
    connector.days_ago(4, "INSERT INTO t VALUES (3, 3, 3); UPDATE t SET a = 33 WHERE id = 3");
    connector.settle(&mut process);
    process.stop().unwrap();
    let mut delivered = changes(process.records());

    // The backlog goes on. The engine is killed in the middle of a transaction.
    connector.days_ago(
        4,
        "BEGIN; INSERT INTO t VALUES (4, 4, 4), (5, 5, 5); UPDATE t SET a = 44 WHERE id = 4; \
         DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (6, 6, 6); COMMIT; INSERT INTO t VALUES (7, 7, 7)",
    );
    let mut process = connector.start(RunOptions { ack_first: Some(3), ..RunOptions::default() });
    // The second marker comes when what was acknowledged before it is stored.
    connector.settle(&mut process);
    connector.settle(&mut process);
    process.kill().unwrap();
    delivered.extend(changes(&process.records()[..3]));
    assert_eq!(delivered, CHANGES[..7]);

    // The snapshot's records were written days after the event at which the engine stands.
    let offset = connector.offset();
    let stored = Json::parse(&String::from_utf8_lossy(&offset)).unwrap();
    let [(_, stored)] = stored.get("offsets").unwrap().members() else { panic!("{stored}") };
    let stored = SourceOffset::from_json(&stored.to_string()).unwrap();
    let whole = connector.objects();
    let on_replica: Vec<&str> =
        whole.keys().filter(|path| !of_old.contains_key(*path)).map(String::as_str).collect();
    assert!(!on_replica.is_empty());
    for path in &on_replica {
        for line in String::from_utf8_lossy(&whole[*path]).lines() {
            let record = read_record(line).unwrap().0;
            assert!(record.position.ts_sec > stored.ts_sec, "{record:?} {stored:?}");
        }
    }

    // Without them the definition of weeks ago counts, and every start ends at the first row.
    connector.remove(&connector.history, on_replica);
    for _ in 0..2 {
        let mut process = connector.start(RunOptions::default());
        let status = process.wait_end(LIMIT).unwrap();
        assert_eq!(status.code(), Some(3), "{}", process.log());
        let log = process.log();
        assert!(log.contains("internal schema size 2, but row size 3"), "{log}");
        let command = format!("holdfast refresh --config FILE --table {database}.t");
        assert!(log.contains(&command), "{log}");
        assert_eq!(changes(process.records()), Vec::<String>::new());
    }
    assert_eq!((connector.objects(), connector.offset()), (of_old.clone(), offset.clone()));

    // Meanwhile the backlog grows.
    connector.days_ago(3, "UPDATE t SET b = 11 WHERE id = 1; INSERT INTO t VALUES (8, 8, 8)");
    pair.level().unwrap();
    let report = connector.refresh();
    assert_eq!(report.get("written"), Some(&Json::Bool(true)), "{report}");
    assert_eq!(connector.offset(), offset, "the offset keeps its bytes");
    let mut after = connector.objects();
    let last = after.pop_last().unwrap();
    assert_eq!(after, of_old, "what was there keeps its bytes, and there is one more");
    assert!(last.0.ends_with(&format!("/schema_history_{}.dat", of_old.len() + 1)), "{}", last.0);

    // Once more there is nothing to do, and nothing is written.
    let report = connector.refresh();
    assert_eq!(report.get("records").and_then(Json::as_i64), Some(0), "{report}");
    assert_eq!(connector.objects().len(), of_old.len() + 1);

    connector.days_ago(2, "DELETE FROM t WHERE id = 3");
    delivered.extend(connector.run());
    assert_eq!(delivered, CHANGES, "nothing is missing, and nothing comes twice");
    std::fs::remove_dir_all(connector.files).unwrap();
}

#[test]
fn the_incident_is_repaired_on_a_file_system() {
    let pair = replica::shared().unwrap();
    the_incident(Connector::new(&pair, "incident_fs", |files, name| {
        format!("file://{}/{name}", files.display())
    }));
}

#[test]
fn the_incident_is_repaired_on_object_storage() {
    let pair = replica::shared().unwrap();
    let bucket = S3::start().unwrap();
    the_incident(Connector::new(&pair, "incident_s3", |_, name| {
        bucket.url(&format!("data/{name}"))
    }));
}
