//! One engine goes on where the other has stopped, with the other's schema history and offset.
//!
//! At the offset both must derive the same definitions from the history, all members of all tables. Whether they do when they
//! run shows in what follows: every table is altered without being changed, which prints its whole definition, and gets rows. The other engine goes on with its own files beside it, and both must give
//! the same records. The other kind of takeover is in the middle of a transaction: what the next engine gives must be
//! exactly what the one before was not acknowledged.
//!
//! Holdfast keeps a checkpoint beside a history in a file, which Debezium is to leave alone.
//!
//! Each runs on files and on tables. Files of offsets are converted in between, tables are not.

use std::fs;
use std::path::{Path, PathBuf};

use holdfast_history::codec::read_record;
use holdfast_history::ddl::DdlContext;
use holdfast_history::recover::{RecoverOptions, recover};
use holdfast_history::schema::DefaultValue;
use holdfast_history::{HistoryRecord, SourceOffset, Table};

use crate::engine::{
    Engine, PREFIX, Process, Properties, Record, RunOptions, debezium_definitions,
    read_debezium_offset, write_debezium_offset,
};
use crate::json::{Difference, Json};
use crate::server::Server;
use crate::{Context, Failure, Result, case, golden, paths};

const DATABASE: &str = "takeover";
/// Where the stores in tables are. Its text is latin1, for Debezium's own CREATE TABLE is refused where it is UTF-8.
const STORES: &str = "takeover_stores";

/// Before the first engine stops: every kind of statement that changes a definition.
const FIRST: &str = "
    CREATE TABLE made (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, e ENUM('x','it''s') NOT NULL DEFAULT 'x',
        d DECIMAL(12,4) DEFAULT 1.5, v VARCHAR(30) CHARACTER SET latin1 COMMENT 'note', t TIMESTAMP(3) NULL) COMMENT 'made';
    CREATE TABLE likewise LIKE made;
    ALTER TABLE plain ADD COLUMN b VARCHAR(9) NOT NULL DEFAULT 'b' AFTER id, ADD COLUMN c JSON;
    ALTER TABLE plain MODIFY a BIGINT, DROP COLUMN c;
    ALTER TABLE likewise RENAME COLUMN v TO w;
    RENAME TABLE likewise TO moved;
    ALTER TABLE keyless ADD PRIMARY KEY (k, l);
    ALTER TABLE text ADD u TEXT CHARACTER SET utf8mb4;
    CREATE TABLE gone (a INT); DROP TABLE gone;
    INSERT INTO made (v) VALUES ('é'); INSERT INTO moved (w) VALUES ('m');";

/// Rows for every table, and a statement for each that prints its definition.
const TOUCH: &str = "
    ALTER TABLE plain ALGORITHM=INPLACE; ALTER TABLE made ALGORITHM=INPLACE; ALTER TABLE moved ALGORITHM=INPLACE;
    ALTER TABLE keyless ALGORITHM=INPLACE; ALTER TABLE text ALGORITHM=INPLACE;
    UPDATE plain SET a = a + 1; INSERT INTO made (e, d, v) VALUES ('it''s', 2.25, 'ü');
    UPDATE moved SET w = CONCAT(w, 'x'); DELETE FROM keyless; INSERT INTO keyless VALUES (7, 8, 9);
    UPDATE text SET s = CONCAT(s, 'ö'), u = CONCAT(s, '€');";

/// A transaction of several thousand rows in some hundred events.
const LARGE: &str = "
    SET SESSION cte_max_recursion_depth = 10000;
    BEGIN;
    INSERT INTO large WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
        SELECT i, CONCAT('row ', i, REPEAT('x', i % 50)), i / 3 FROM n;
    INSERT INTO plain SELECT id, id FROM large WHERE id > 2000;
    UPDATE large SET name = UPPER(name) WHERE id % 2 = 0;
    DELETE FROM large WHERE id % 5 = 0;
    COMMIT;";

/// What Holdfast keeps beside `history.jsonl`.
const CHECKPOINT: &str = "history.jsonl.checkpoint";

/// Acknowledged by the first and by the second engine, in the middle of an event.
const ACKNOWLEDGED: [u64; 2] = [733, 1019];

/// What keeps offset and history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// `FileOffsetBackingStore` and `FileSchemaHistory`.
    Files,
    /// `JdbcOffsetBackingStore` and `JdbcSchemaHistory`, on the captured server.
    Tables,
}

/// Debezium stops and Holdfast goes on; then Holdfast stops and Debezium goes on. Says how many records were compared.
///
/// # Errors
///
/// A record that differs, or what kept an engine from running.
pub fn both_ways(server: &Server, stores: Stores) -> Result<String> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; USE {DATABASE};
         CREATE TABLE plain (id INT PRIMARY KEY, a INT); INSERT INTO plain VALUES (1, 1);
         CREATE TABLE keyless (k INT, l INT, m INT); INSERT INTO keyless VALUES (1, 2, 3);
         CREATE TABLE text (id INT PRIMARY KEY, s VARCHAR(50)) CHARACTER SET latin1; INSERT INTO text VALUES (1, 'ä');"
    ))?;
    let root = prepare(server)?;

    let debezium = Place::new(server, stores, &root, "debezium")?;
    let mut process = debezium.start(Engine::Reference, "first", RunOptions::default())?;
    case::snapshot_end(&mut process)?;
    script(server, FIRST, 2)?;
    case::marker_row(&mut process, 2)?;
    case::settle(&mut process, server, 3)?;
    process.stop()?;

    let of_debezium =
        debezium.same_definitions().context(|| "definitions of Debezium's history".to_owned())?;

    let holdfast = debezium.copy(&root, "holdfast")?;
    holdfast.hand_over(Engine::Holdfast)?;
    script(server, TOUCH, 4)?;
    script(
        server,
        "ALTER TABLE plain ADD z INT DEFAULT 3, DROP COLUMN b; INSERT INTO plain VALUES (5, 5, 5)",
        5,
    )?;
    let theirs = debezium.read_to(Engine::Reference, "second", 5)?;
    let ours = holdfast.read_to(Engine::Holdfast, "second", 5)?;
    let forth = same(&theirs, &ours).context(|| "Holdfast with Debezium's history".to_owned())?;

    let of_holdfast =
        holdfast.same_definitions().context(|| "definitions of Holdfast's history".to_owned())?;
    if of_holdfast < of_debezium {
        return Err(Failure::new(format!("{of_debezium} tables, and then {of_holdfast}")));
    }

    // From an offset of its own it writes a checkpoint.
    script(server, "", 6)?;
    holdfast.read_to(Engine::Holdfast, "checkpoint", 6)?;
    if stores == Stores::Files && !holdfast.folder.join(CHECKPOINT).exists() {
        return Err(Failure::new("Holdfast has kept no checkpoint"));
    }

    let back = holdfast.copy(&root, "back")?;
    back.hand_over(Engine::Reference)?;
    script(server, TOUCH, 7)?;
    let theirs = debezium.read_to(Engine::Reference, "third", 7)?;
    let ours = back.read_to(Engine::Reference, "third", 7)?;
    let backwards =
        same(&theirs, &ours).context(|| "Debezium with Holdfast's history".to_owned())?;
    fs::remove_dir_all(root)?;
    Ok(format!(
        "{forth} records forth, {backwards} back, the same definitions of {of_debezium} and {of_holdfast} tables"
    ))
}

/// Three engines share one large transaction: each is killed after some of its rows were acknowledged, and the next must
/// give exactly the others. Says how many records were compared.
///
/// # Errors
///
/// A record that is missing, comes again or differs, or what kept an engine from running.
pub fn in_a_transaction(server: &Server, stores: Stores, engines: [Engine; 3]) -> Result<String> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; USE {DATABASE};
         CREATE TABLE plain (id INT PRIMARY KEY, a INT);
         CREATE TABLE large (id INT PRIMARY KEY, name VARCHAR(100) CHARACTER SET latin1);"
    ))?;
    let root = prepare(server)?;
    let place = Place::new(server, stores, &root, "shared")?;
    let [first, ..] = engines;
    let mut process = place.start(first, "snapshot", RunOptions::default())?;
    case::snapshot_end(&mut process)?;
    script(server, "ALTER TABLE large ADD third DECIMAL(9,3)", 2)?;
    case::marker_row(&mut process, 2)?;
    case::settle(&mut process, server, 3)?;
    process.stop()?;
    script(server, LARGE, 4)?;

    let mut before: Option<(Engine, Vec<Record>)> = None;
    let mut compared = 0;
    let acknowledged = ACKNOWLEDGED.map(Some).into_iter().chain([None]);
    for (number, (engine, ack_first)) in engines.into_iter().zip(acknowledged).enumerate() {
        place.hand_over(engine)?;
        let options = RunOptions { ack_first, ..RunOptions::default() };
        let mut process = place.start(engine, &format!("run-{number}"), options)?;
        case::marker_row(&mut process, 4)?;
        let records = process.records().to_vec();
        if let Some((engine_before, rest)) = &before {
            let live = |records: &[Record]| golden::live(&case::records_of_case(records));
            compared += same(&live(rest), &live(&records))
                .context(|| format!("{} after {}", engine.name(), engine_before.name()))?;
        }
        let Some(acknowledged) = ack_first else {
            process.stop()?;
            break;
        };
        process.kill()?;
        let skipped = usize::try_from(acknowledged).unwrap_or(usize::MAX);
        before = Some((engine, records.into_iter().skip(skipped).collect()));
    }
    fs::remove_dir_all(root)?;
    Ok(format!("{compared} records"))
}

/// Holdfast's snapshot is cut short with a table done, of which its offset says so; Debezium, which does not read that, must
/// give every row once, and what comes after.
///
/// # Errors
///
/// A record that is missing or comes twice, or what kept an engine from running.
pub fn of_a_snapshot(server: &Server) -> Result<String> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}; USE {DATABASE};
         CREATE TABLE a (id INT PRIMARY KEY, v INT); INSERT INTO a VALUES (1, 1), (2, 1), (3, 1);
         CREATE TABLE b (id INT PRIMARY KEY, v INT); INSERT INTO b VALUES (1, 1), (2, 1)"
    ))?;
    let root = prepare(server)?;
    let place = Place::new(server, Stores::Files, &root, "snapshot")?;
    let rows_alone = [("include.schema.changes", "false")];
    let options = RunOptions { ack_first: Some(4), ..RunOptions::default() };
    let mut process = place.start_with(Engine::Holdfast, "first", options, &rows_alone)?;
    case::snapshot_end(&mut process)?;
    case::settle(&mut process, server, 2)?;
    process.kill()?;
    let offset = fs::read_to_string(place.folder.join("offsets.dat"))?;
    if !offset.contains("holdfast_progress") {
        return Err(Failure::new(format!("no table is done: {offset}")));
    }
    server.sql(&format!(
        "USE {DATABASE}; INSERT INTO a VALUES (4, 1); UPDATE b SET v = 2 WHERE id = 1; DELETE FROM a WHERE id = 3"
    ))?;
    place.hand_over(Engine::Reference)?;
    let options = RunOptions::default();
    let mut process = place.start_with(Engine::Reference, "second", options, &rows_alone)?;
    case::snapshot_end(&mut process)?;
    script(server, "INSERT INTO b VALUES (3, 3)", 3)?;
    case::marker_row(&mut process, 3)?;
    let found: Vec<String> = case::records_of_case(process.records()).iter().map(brief).collect();
    process.stop()?;
    if found != ["r a 1", "r a 2", "r a 4", "r b 1", "r b 2", "c b 3"] {
        return Err(Failure::new(format!("Debezium gave {found:?}")));
    }
    fs::remove_dir_all(root)?;
    Ok(format!("{} records", found.len()))
}

/// A restart with nothing acknowledged of a transaction but its BEGIN: what comes first.
///
/// # Errors
///
/// What kept the engine from running.
pub fn behind_a_begin(server: &Server, engine: Engine) -> Result<String> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}; USE {DATABASE};
         CREATE TABLE a (id INT PRIMARY KEY)"
    ))?;
    let root = prepare(server)?;
    let place = Place::new(server, Stores::Files, &root, "begin")?;
    let settings = [("include.schema.changes", "false"), ("provide.transaction.metadata", "true")];
    let start = |run: &str, ack_first| {
        let options = RunOptions { ack_first, ..RunOptions::default() };
        place.start_with(engine, run, options, &settings)
    };
    let mut process = start("first", None)?;
    case::snapshot_end(&mut process)?;
    case::settle(&mut process, server, 2)?;
    process.stop()?;
    script(server, "INSERT INTO a VALUES (1), (2)", 3)?;
    // What else comes before the BEGIN is not the same in every run of Debezium.
    let mut process = start("second", Some(0))?;
    case::marker_row(&mut process, 3)?;
    let begin = begin_of_case(process.records())?;
    process.kill()?;
    let mut process = start("third", Some(begin as u64 + 1))?;
    case::marker_row(&mut process, 3)?;
    if begin_of_case(process.records())? != begin {
        return Err(Failure::new("the BEGIN has another place in another run"));
    }
    case::settle(&mut process, server, 4)?;
    process.kill()?;
    let mut process = start("fourth", None)?;
    case::marker_row(&mut process, 4)?;
    let records = case::records_of_case(process.records());
    process.stop()?;
    fs::remove_dir_all(root)?;
    let texts: Vec<String> = records.iter().map(brief).skip_while(|text| text == "END").collect();
    Ok(texts.join(", "))
}

/// Which record is the BEGIN of the transaction that has the rows.
fn begin_of_case(records: &[Record]) -> Result<usize> {
    let of_row = |record: &Record| {
        let row = record.source().text("table") == Some("a");
        record.value().get("transaction")?.text("id").filter(|_| row).map(str::to_owned)
    };
    let id = records.iter().find_map(of_row);
    let is_begin = |record: &Record| {
        record.value().text("status") == Some("BEGIN") && record.value().text("id") == id.as_deref()
    };
    let begin = records.iter().position(is_begin);
    begin.ok_or_else(|| Failure::new("no BEGIN before the rows"))
}

/// `<op> <table> <id>` of a row, the status of a transaction.
fn brief(record: &Record) -> String {
    let value = record.value();
    if let Some(status) = value.text("status") {
        return status.to_owned();
    }
    let id = record.key().get("id").and_then(Json::as_i64).unwrap_or_default();
    let table = record.source().text("table").unwrap_or_default();
    format!("{} {table} {id}", value.text("op").unwrap_or_default())
}

/// An empty folder, no stores, and a marker table.
fn prepare(server: &Server) -> Result<PathBuf> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {STORES}; CREATE DATABASE {STORES} CHARACTER SET latin1"
    ))?;
    case::make_marker(server)?;
    paths::fresh("takeover")
}

fn script(server: &Server, sql: &str, marker: i64) -> Result<()> {
    server.sql(&format!("USE {DATABASE}; {sql}"))?;
    server.sql(&format!("INSERT INTO {}.marker VALUES ({marker})", case::MARKER))
}

/// Offset and history of an engine.
struct Place<'a> {
    server: &'a Server,
    stores: Stores,
    folder: PathBuf,
    /// Ends the names of its tables.
    name: String,
}

impl<'a> Place<'a> {
    fn new(server: &'a Server, stores: Stores, root: &Path, name: &str) -> Result<Self> {
        let folder = root.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { server, stores, folder, name: name.to_owned() })
    }

    /// Another place with the same offset and history.
    fn copy(&self, root: &Path, name: &str) -> Result<Self> {
        let copy = Self::new(self.server, self.stores, root, name)?;
        match self.stores {
            Stores::Files => {
                for file in ["offsets.dat", "history.jsonl", CHECKPOINT] {
                    // The first engine keeps no checkpoint.
                    if file != CHECKPOINT || self.folder.join(file).exists() {
                        fs::copy(self.folder.join(file), copy.folder.join(file))?;
                    }
                }
            }
            Stores::Tables => {
                for table in ["offsets", "history"] {
                    let (from, to) = (&self.name, &copy.name);
                    self.server.sql(&format!(
                        "USE {STORES}; CREATE TABLE {table}_{to} LIKE {table}_{from};
                         INSERT INTO {table}_{to} SELECT * FROM {table}_{from}"
                    ))?;
                }
            }
        }
        Ok(copy)
    }

    /// Gives the offset the form that an engine reads, if it has another one.
    fn hand_over(&self, to: Engine) -> Result<()> {
        if self.stores == Stores::Tables {
            return Ok(());
        }
        let path = self.folder.join("offsets.dat");
        let is_debezium = fs::read(&path)?.starts_with(&[0xac, 0xed]);
        match to {
            Engine::Holdfast if is_debezium => {
                let (key, offset) = read_debezium_offset(&path)?;
                let key = Json::String(key);
                let document =
                    format!("{{\"holdfast_offsets\":1,\"offsets\":{{{key}:{offset}}}}}\n");
                fs::write(&path, document)?;
            }
            Engine::Reference if !is_debezium => {
                let stored = Json::parse(&fs::read_to_string(&path)?)?;
                let offset = stored.get("offsets").map(Json::members);
                let Some([(key, offset)]) = offset else {
                    return Err(Failure::new(format!("not one offset: {stored}")));
                };
                fs::remove_file(&path)?;
                write_debezium_offset(&path, key, &offset.to_string())?;
            }
            Engine::Holdfast | Engine::Reference => {}
        }
        Ok(())
    }

    fn start(&self, engine: Engine, run: &str, options: RunOptions) -> Result<Process> {
        self.start_with(engine, run, options, &[])
    }

    fn start_with(
        &self,
        engine: Engine,
        run: &str,
        options: RunOptions,
        settings: &[(&str, &str)],
    ) -> Result<Process> {
        let mut properties = self.properties()?;
        if engine == Engine::Holdfast {
            properties.set("holdfast.history.checkpoint.records", "1");
        }
        for (key, value) in settings {
            properties.set(key, *value);
        }
        Process::start(engine, &properties, &self.folder, run, options)
    }

    fn properties(&self) -> Result<Properties> {
        let mut properties = Properties::new(self.server, &self.folder);
        properties.set("database.include.list", format!("{DATABASE},{}", case::MARKER));
        if self.stores == Stores::Tables {
            properties.store_in_tables(self.server, STORES)?;
            for (prefix, table) in
                [("offset.storage", "offsets"), ("schema.history.internal", "history")]
            {
                properties
                    .set(&format!("{prefix}.jdbc.table.name"), format!("{table}_{}", self.name));
            }
            // Debezium stores its snapshot while it keeps all others from writing.
            properties.set("snapshot.locking.mode", "none");
        }
        Ok(properties)
    }

    /// Both engines derive the same from the history at the offset. Says of how many tables.
    fn same_definitions(&self) -> Result<usize> {
        let path = self.folder.join("definitions.properties");
        self.properties()?.write(&path)?;
        let (offset, records) = (self.offset()?, self.history()?);
        let theirs = debezium_definitions(&path, &offset)?;
        let context = DdlContext::default();
        let desired = SourceOffset::from_json(&offset).context(|| offset.clone())?;
        let recovered = recover(&records, PREFIX, &desired, &RecoverOptions::new(&context))
            .context(|| "the history".to_owned())?;
        let mut ours: Vec<String> =
            recovered.tables.iter().flat_map(|table| printed(table)).collect();
        ours.sort();
        for (theirs, ours) in theirs.iter().zip(&ours) {
            if theirs != ours {
                return Err(Failure::new(format!(
                    "Debezium derives\n{theirs}\nand Holdfast\n{ours}"
                )));
            }
        }
        if theirs.len() != ours.len() || ours.is_empty() {
            return Err(Failure::new(format!("{} lines, and {}", theirs.len(), ours.len())));
        }
        Ok(recovered.tables.len())
    }

    /// The stored offset.
    fn offset(&self) -> Result<String> {
        let path = self.folder.join("offsets.dat");
        if self.stores == Stores::Tables {
            let sql = format!("SELECT offset_val FROM {STORES}.offsets_{}", self.name);
            return self.server.value(&sql);
        }
        if fs::read(&path)?.starts_with(&[0xac, 0xed]) {
            return read_debezium_offset(&path).map(|(_, offset)| offset);
        }
        let stored = Json::parse(&fs::read_to_string(&path)?)?;
        match stored.get("offsets").map(Json::members) {
            Some([(_, offset)]) => Ok(offset.to_string()),
            Some(_) | None => Err(Failure::new(format!("not one offset: {stored}"))),
        }
    }

    fn history(&self) -> Result<Vec<HistoryRecord>> {
        let text = match self.stores {
            Stores::Files => fs::read_to_string(self.folder.join("history.jsonl"))?,
            Stores::Tables => {
                // No record of these is so long that it is in parts.
                let rows = self.server.query(&format!(
                    "SELECT history_data FROM {STORES}.history_{} ORDER BY record_insert_ts, record_insert_seq, id",
                    self.name
                ))?;
                rows.concat().join("\n")
            }
        };
        let read = |line: &str| Ok(read_record(line).context(|| line.to_owned())?.0);
        text.lines().filter(|line| !line.is_empty()).map(read).collect()
    }

    /// What comes from the stored offset up to a marker, normalised. An engine that has stopped in order has stored it.
    fn read_to(&self, engine: Engine, run: &str, marker: i64) -> Result<Vec<Json>> {
        let mut process = self.start(engine, run, RunOptions::default())?;
        case::marker_row(&mut process, marker)?;
        process.stop()?;
        Ok(golden::live(&case::records_of_case(process.records())))
    }
}

/// A table as `Definitions.java` prints it.
fn printed(table: &Table) -> Vec<String> {
    let name = &table.id;
    let or_null = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    let mut lines = vec![format!(
        "table {name} charset={} key={}",
        or_null(&table.default_charset),
        table.primary_key.join(",")
    )];
    for (position, column) in (1..).zip(&table.columns) {
        let default = match &column.default {
            DefaultValue::Absent => "none",
            DefaultValue::Null => "null",
            DefaultValue::Expression(expression) => expression,
        };
        let position: u32 = position;
        lines.push(format!(
            "column {name} {position} {} type={}/{} charset={} length={} scale={} optional={} auto={} generated={} \
             default={default} labels={} comment={}",
            column.name,
            column.type_name,
            column.jdbc_type.0,
            or_null(&column.charset),
            column.length.unwrap_or(-1),
            column.scale.unwrap_or(-1),
            column.optional,
            column.auto_incremented,
            column.generated,
            column.enum_values.join(","),
            or_null(&column.comment),
        ));
    }
    lines
}

/// How many records there are, if they are the same.
fn same(theirs: &[Json], ours: &[Json]) -> Result<usize> {
    for (theirs, ours) in theirs.iter().zip(ours) {
        if let Some(Difference { path, left, right }) = theirs.difference(ours) {
            return Err(Failure::new(format!(
                "{path}: {left} of the engine that went on, {right} of the one that took over\n{theirs}\n{ours}"
            )));
        }
    }
    if theirs.len() != ours.len() || theirs.is_empty() {
        return Err(Failure::new(format!("{} records, and {}", theirs.len(), ours.len())));
    }
    Ok(theirs.len())
}
