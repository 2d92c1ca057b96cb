//! Random statements that the server accepts: rows, changed keys, several tables, large transactions, DDL, XA.

use std::fmt::Write as _;

use holdfast_tests::random::Random;
use holdfast_tests::server::Flavour;

/// Keys of `t` that single statements choose from.
const KEYS: u64 = 300;

/// How far `UPDATE t SET id = id + …` moves a key.
const MOVED: u64 = 1000;

/// The tables at the beginning, with rows for the snapshot.
pub(super) fn setup(database: &str) -> String {
    format!(
        "DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}; USE {database};
         CREATE TABLE t(id INT PRIMARY KEY, a INT, b VARCHAR(40));
         CREATE TABLE u(id INT PRIMARY KEY, v INT, w VARCHAR(40));
         CREATE TABLE x(id INT PRIMARY KEY, v INT);
         CREATE TABLE journal(id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(20));
         CREATE TABLE mark(id INT PRIMARY KEY);
         INSERT INTO t WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i+1 FROM n WHERE i<149)
         SELECT i*2, i, CONCAT('s', i) FROM n;
         INSERT INTO u SELECT id, a, b FROM t WHERE id < 100;"
    )
}

/// What the statements so far have made, as far as later ones depend on it.
pub(super) struct Workload {
    flavour: Flavour,
    database: String,
    /// Columns that were added to `t`, and those that are there now.
    added: u32,
    columns: Vec<String>,
    /// `e` exists, and how often it was made.
    extra: bool,
    editions: u32,
    /// XA transactions that are prepared, and the number of the last.
    prepared: Vec<u32>,
    xa: u32,
}

impl Workload {
    pub(super) fn new(flavour: Flavour, database: &str) -> Self {
        Self {
            flavour,
            database: database.to_owned(),
            added: 0,
            columns: Vec::new(),
            extra: false,
            editions: 0,
            prepared: Vec::new(),
            xa: 0,
        }
    }

    /// The scripts of one round, each for a session of its own; `all` allows DDL, which a snapshot that is
    /// being read does not survive, and XA transactions, which its locks would wait for.
    pub(super) fn round(&mut self, random: &mut Random, all: bool) -> Vec<String> {
        let mut script = format!("USE {};\n", self.database);
        match self.flavour {
            Flavour::MySql if random.one_in(3) => {
                script.push_str("SET SESSION binlog_transaction_compression=ON;\n");
            }
            Flavour::MariaDb => {
                let switch = random.pick("OFF", &["OFF", "ON"]);
                let _ = writeln!(
                    script,
                    "SET GLOBAL log_bin_compress_min_len=10; SET GLOBAL log_bin_compress={switch};"
                );
            }
            Flavour::MySql => {}
        }
        for _ in 0..random.below(9) {
            match random.below(24) {
                0 if all => self.ddl(random, &mut script),
                1 => script.push_str("FLUSH BINARY LOGS;\n"),
                2 => large(random, &mut script),
                _ => self.transaction(random, &mut script),
            }
        }
        let mut scripts = vec![script];
        if all && random.one_in(4) {
            scripts.push(self.prepare(random));
        }
        if !self.prepared.is_empty() && random.one_in(2) {
            scripts.push(self.decide(random));
        }
        scripts
    }

    /// Decides what is prepared, so that nothing is locked or held any more.
    pub(super) fn finish(&mut self, random: &mut Random) -> Vec<String> {
        std::iter::from_fn(|| (!self.prepared.is_empty()).then(|| self.decide(random))).collect()
    }

    fn transaction(&self, random: &mut Random, script: &mut String) {
        script.push_str("BEGIN;\n");
        let _ = writeln!(script, "INSERT INTO journal(note) VALUES ('{}');", random.below(1_000));
        for _ in 0..=random.below(4) {
            self.statement(random, script);
        }
        let end = match random.below(10) {
            0 => "ROLLBACK",
            1 => "SAVEPOINT s;\nUPDATE u SET v=v+1;\nROLLBACK TO s;\nCOMMIT",
            _ => "COMMIT",
        };
        let _ = writeln!(script, "{end};");
    }

    fn statement(&self, random: &mut Random, script: &mut String) {
        let (one, other) = (random.below(KEYS), random.below(KEYS));
        let text = random.below(1_000_000);
        let span = random.below(40);
        let statement = match random.below(11) {
            0 => format!("REPLACE INTO t(id,a,b) VALUES ({one},{text},'r{text}'),({other},1,'r')"),
            1 => format!("UPDATE t SET a=a+1 WHERE id BETWEEN {one} AND {one}+{span}"),
            2 => format!("UPDATE IGNORE t SET id=id+{MOVED}, a=a-1 WHERE id={one}"),
            3 => {
                format!("UPDATE IGNORE t SET id=id+{MOVED} WHERE id BETWEEN {one} AND {one}+{span}")
            }
            4 => format!("UPDATE IGNORE t SET id=id-{MOVED} WHERE id>={MOVED}+{other} LIMIT 7"),
            5 => format!("DELETE FROM t WHERE id IN ({one},{other},{other}+{MOVED})"),
            6 => format!(
                "INSERT INTO u VALUES ({one},{text},'u{text}'),({other},2,NULL) ON DUPLICATE KEY UPDATE v=v+1"
            ),
            7 => format!(
                "UPDATE u SET v=v+1, w='{text}' WHERE id BETWEEN {other} AND {other}+{span}"
            ),
            8 => format!(
                "UPDATE t JOIN u USING(id) SET t.a={text}, u.v={text} WHERE t.id BETWEEN {one} AND {one}+9"
            ),
            9 if self.extra => {
                format!("INSERT IGNORE INTO e VALUES ({one},'e{text}'),({other},'e')")
            }
            9 => format!("DELETE FROM u WHERE id={other}"),
            _ => match self.columns.last() {
                Some(column) => {
                    format!("UPDATE t SET {column}={text} WHERE id BETWEEN {one} AND {one}+{span}")
                }
                None => format!("INSERT IGNORE INTO t(id,a) VALUES ({one},{text})"),
            },
        };
        let _ = writeln!(script, "{statement};");
    }

    fn ddl(&mut self, random: &mut Random, script: &mut String) {
        let statement = match random.below(6) {
            0 | 1 if self.columns.len() < 4 => {
                self.added += 1;
                let name = format!("c{}", self.added);
                let place = random.pick("", &[" FIRST", " AFTER a"]);
                self.columns.push(name.clone());
                format!("ALTER TABLE t ADD COLUMN {name} INT{place}")
            }
            2 if !self.columns.is_empty() => {
                let index = random.below(self.columns.len() as u64);
                let name = self.columns.remove(usize::try_from(index).unwrap());
                format!("ALTER TABLE t DROP COLUMN {name}")
            }
            3 => format!("ALTER TABLE u MODIFY w VARCHAR({})", 40 + random.below(200)),
            _ if self.extra => {
                self.extra = false;
                "DROP TABLE e".to_owned()
            }
            _ => {
                self.editions += 1;
                self.extra = true;
                format!("CREATE TABLE e(id INT PRIMARY KEY, s{} VARCHAR(40))", self.editions)
            }
        };
        let _ = writeln!(script, "{statement};");
    }

    /// Prepares a transaction on a table of its own, so that it locks nothing that others change.
    fn prepare(&mut self, random: &mut Random) -> String {
        self.xa += 1;
        self.prepared.push(self.xa);
        let (xa, first) = (self.xa, self.xa * 100);
        let rows: Vec<String> = (first..=first + u32::try_from(random.below(30)).unwrap())
            .map(|id| format!("({id},0)"))
            .collect();
        format!(
            "USE {}; XA START 'x{xa}'; INSERT INTO x VALUES {}; UPDATE x SET v=v+1 WHERE id={first};
             XA END 'x{xa}'; XA PREPARE 'x{xa}';",
            self.database,
            rows.join(",")
        )
    }

    fn decide(&mut self, random: &mut Random) -> String {
        let index = usize::try_from(random.below(self.prepared.len() as u64)).unwrap();
        let xa = self.prepared.remove(index);
        let outcome = random.pick("COMMIT", &["COMMIT", "ROLLBACK"]);
        format!("XA {outcome} 'x{xa}';")
    }
}

/// A transaction of many rows, in several events.
fn large(random: &mut Random, script: &mut String) {
    let first = 5000 + random.below(10) * 400;
    let last = random.below(400);
    let text = "z".repeat(usize::try_from(random.below(40)).unwrap());
    let _ = write!(
        script,
        "BEGIN;
         INSERT IGNORE INTO t(id,a,b) WITH RECURSIVE n AS (SELECT 0 AS i UNION ALL SELECT i+1 FROM n WHERE i<{last})
         SELECT i+{first}, i, '{text}' FROM n;
         UPDATE t SET a=a+1 WHERE id>={first};
         UPDATE u SET v=v-1;
         DELETE FROM t WHERE id BETWEEN 5000 AND {first};
         COMMIT;\n"
    );
}
