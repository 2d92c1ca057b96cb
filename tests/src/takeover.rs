//! One engine goes on where the other has stopped, with the other's schema history and offset.
//!
//! Whether it derives the same definitions shows in what follows: every table is altered without being changed, which
//! prints its whole definition, and gets rows. The other engine goes on with its own files beside it, and both must give
//! the same records.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::{
    Engine, Process, Properties, RunOptions, read_debezium_offset, write_debezium_offset,
};
use crate::json::{Difference, Json};
use crate::server::Server;
use crate::{Context, Failure, Result, case, golden, paths};

const DATABASE: &str = "takeover";

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

/// Debezium stops and Holdfast goes on; then Holdfast stops and Debezium goes on. Says how many records were compared.
///
/// # Errors
///
/// A record that differs, or what kept an engine from running.
pub fn both_ways(server: &Server) -> Result<String> {
    server.sql(&format!(
        "DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4; USE {DATABASE};
         CREATE TABLE plain (id INT PRIMARY KEY, a INT); INSERT INTO plain VALUES (1, 1);
         CREATE TABLE keyless (k INT, l INT, m INT); INSERT INTO keyless VALUES (1, 2, 3);
         CREATE TABLE text (id INT PRIMARY KEY, s VARCHAR(50)) CHARACTER SET latin1; INSERT INTO text VALUES (1, 'ä');"
    ))?;
    case::make_marker(server)?;
    let root = paths::fresh("takeover")?;

    let debezium = Place::new(&root, "debezium")?;
    let mut process = debezium.start(server, Engine::Reference, "first")?;
    case::snapshot_end(&mut process)?;
    script(server, FIRST, 2)?;
    case::marker_row(&mut process, 2)?;
    case::settle(&mut process, server, 3)?;
    process.stop()?;

    let holdfast = debezium.copy(&root, "holdfast")?;
    let (key, offset) = read_debezium_offset(&holdfast.offsets())?;
    let ours = format!(
        "{{\"holdfast_offsets\":1,\"offsets\":{{{}:{offset}}}}}\n",
        Json::String(key.clone())
    );
    fs::write(holdfast.offsets(), ours)?;
    script(server, TOUCH, 4)?;
    script(
        server,
        "ALTER TABLE plain ADD z INT DEFAULT 3, DROP COLUMN b; INSERT INTO plain VALUES (5, 5, 5)",
        5,
    )?;
    let theirs = debezium.read_to(server, Engine::Reference, "second", 5)?;
    let ours = holdfast.read_to(server, Engine::Holdfast, "second", 5)?;
    let forth = same(&theirs, &ours).context(|| "Holdfast with Debezium's history".to_owned())?;

    let back = holdfast.copy(&root, "back")?;
    let stored = Json::parse(&fs::read_to_string(holdfast.offsets())?)?;
    let offset = stored
        .get("offsets")
        .and_then(|offsets| offsets.get(&key))
        .ok_or_else(|| Failure::new(format!("no offset of {key} in {stored}")))?;
    fs::remove_file(back.offsets())?;
    write_debezium_offset(&back.offsets(), &key, &offset.to_string())?;
    script(server, TOUCH, 6)?;
    let theirs = debezium.read_to(server, Engine::Reference, "third", 6)?;
    let ours = back.read_to(server, Engine::Reference, "third", 6)?;
    let backwards =
        same(&theirs, &ours).context(|| "Debezium with Holdfast's history".to_owned())?;
    fs::remove_dir_all(root)?;
    Ok(format!("{forth} records forth, {backwards} back"))
}

fn script(server: &Server, sql: &str, marker: i64) -> Result<()> {
    server.sql(&format!("USE {DATABASE}; {sql}"))?;
    server.sql(&format!("INSERT INTO {}.marker VALUES ({marker})", case::MARKER))
}

/// The files of an engine.
struct Place(PathBuf);

impl Place {
    fn new(root: &Path, name: &str) -> Result<Self> {
        let folder = root.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Another folder with the same offset and history.
    fn copy(&self, root: &Path, name: &str) -> Result<Self> {
        let copy = Self::new(root, name)?;
        for file in ["offsets.dat", "history.jsonl"] {
            fs::copy(self.0.join(file), copy.0.join(file))?;
        }
        Ok(copy)
    }

    fn offsets(&self) -> PathBuf {
        self.0.join("offsets.dat")
    }

    fn start(&self, server: &Server, engine: Engine, run: &str) -> Result<Process> {
        let mut properties = Properties::new(server, &self.0);
        properties.set("database.include.list", format!("{DATABASE},{}", case::MARKER));
        Process::start(engine, &properties, &self.0, run, RunOptions::default())
    }

    /// What comes from the stored offset up to a marker, normalised. An engine that has stopped in order has stored it.
    fn read_to(
        &self,
        server: &Server,
        engine: Engine,
        run: &str,
        marker: i64,
    ) -> Result<Vec<Json>> {
        let mut process = self.start(server, engine, run)?;
        case::marker_row(&mut process, marker)?;
        process.stop()?;
        Ok(golden::live(&case::records_of_case(process.records())))
    }
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
