//! `docs/operations.md` shows what the commands really say.
//!
//! The stories of that page are lived through on real servers. Each block of the page that begins with `$ holdfast` is
//! compared, in order, with what that command prints: numbers and UUIDs may be others. With `HOLDFAST_WRITE_PAGE=1` the
//! page gets what was printed.

use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use holdfast_tests::case;
use holdfast_tests::engine::holdfast_binary;
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};

use crate::story::Story;

/// Where the page keeps the files.
const FOLDER: &str = "/var/lib/holdfast";

/// The page, and how far it is lived through.
struct Page {
    text: String,
    /// Where the next block is looked for.
    at: usize,
    differences: Vec<String>,
}

impl Page {
    fn read() -> Self {
        let text = std::fs::read_to_string(Self::path()).unwrap();
        Self { text, at: 0, differences: Vec::new() }
    }

    fn path() -> PathBuf {
        paths::workspace().join("docs/operations.md")
    }

    /// The next command, and where its output is.
    fn next(&mut self) -> Option<(String, Range<usize>)> {
        const START: &str = "```text\n$ holdfast ";
        let start = self.at + self.text[self.at..].find(START)? + START.len();
        let output = start + self.text[start..].find('\n').unwrap() + 1;
        let end = output + self.text[output..].find("\n```").unwrap();
        Some((self.text[start..output - 1].to_owned(), output..end))
    }

    fn end(&mut self) {
        assert_eq!(self.next(), None, "every command of the page was run");
        if std::env::var_os("HOLDFAST_WRITE_PAGE").is_some() {
            std::fs::write(Self::path(), &self.text).unwrap();
        } else {
            assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
        }
    }

    /// Runs the next command of the page, which must begin like this, and compares.
    fn shows(&mut self, story: &Story<'_>, begins: &str, code: i32) {
        let (command, output_at) = self.next().unwrap_or_else(|| panic!("no {begins} is left"));
        assert!(command.starts_with(begins), "{command} comes before {begins}");
        let config = story.files.join("shop.properties");
        story.properties.write(&config).unwrap();
        let gtids = || story.server.value("SELECT @@gtid_executed").unwrap().replace('\n', "");
        let arguments = command.split(' ').map(|argument| match argument {
            "shop.properties" => config.display().to_string(),
            set if set.contains(":1-") => gtids(),
            other => other.to_owned(),
        });
        let output = Command::new(holdfast_binary().unwrap())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        // Of the log the error alone.
        let error = log.lines().filter_map(|line| line.split_once("ERROR ")).map(|(_, text)| text);
        let errors: Vec<String> = error.map(|text| format!("ERROR {}", text.trim())).collect();
        let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), errors.join("\n"));
        let printed = printed.trim_end().replace(&story.files.display().to_string(), FOLDER);
        assert_eq!(output.status.code(), Some(code), "{command}\n{log}");
        self.at = output_at.end;
        if masked(&printed) != masked(&self.text[output_at.clone()]) {
            self.differences.push(format!("$ holdfast {command}\n{printed}\n"));
            self.at = output_at.start + printed.len();
            self.text.replace_range(output_at, &printed);
        }
    }
}

/// Without numbers, UUIDs and what a set of GTIDs holds.
fn masked(text: &str) -> String {
    let is_uuid = |word: &str| {
        word.len() == 36
            && word.char_indices().all(|(at, c)| match at {
                8 | 13 | 18 | 23 => c == '-',
                _ => c.is_ascii_hexdigit(),
            })
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.get(..36).is_some_and(is_uuid) {
            out.push_str("UUID");
            rest = &rest[36..];
            if rest.starts_with(':') {
                rest = rest
                    .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || ":-,_".contains(c));
            }
        } else if c.is_ascii_digit() {
            out.push('N');
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[test]
fn the_runbooks_show_what_the_commands_say() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut page = Page::read();
    let mut story = Story::new(&mysql, "shop", &[("include.schema.changes", "false")]);

    // The history is lost.
    story.sql("INSERT INTO t VALUES (2, 2)");
    story.lose_history();
    page.shows(&story, "run ", 2);
    page.shows(&story, "refresh --config shop.properties --dry-run", 0);
    page.shows(&story, "refresh --config shop.properties --yes", 0);
    assert_eq!(story.run(), [r#"c {"id":2,"a":2}"#]);

    // A row does not fit.
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD note VARCHAR(20); SET sql_log_bin=1; INSERT INTO t VALUES (3, 3, 'x')");
    page.shows(&story, "run ", 3);
    page.shows(&story, "refresh --config shop.properties --table shop.t --yes", 0);
    assert_eq!(story.run(), [r#"c {"id":3,"a":3,"note":"x"}"#]);

    // Rows of an older definition are ahead.
    story.sql(
        "INSERT INTO t VALUES (4, 4, 'y'); ALTER TABLE t DROP note; INSERT INTO t VALUES (5, 5)",
    );
    page.shows(&story, "refresh --config shop.properties --yes", 1);
    page.shows(
        &story,
        "refresh --config shop.properties --definition shop.t=@recorded --dry-run",
        0,
    );
    assert_eq!(story.run(), [r#"c {"id":4,"a":4,"note":"y"}"#, r#"c {"id":5,"a":5}"#]);

    // Another server that has the transactions, as a replica has them: the same GTIDs, another log.
    let other = Server::start(Options::mysql()).unwrap();
    let done = mysql.value("SELECT @@gtid_executed").unwrap().replace('\n', "").replace("\\n", "");
    other
        .sql(&format!(
            "SET sql_log_bin=0; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, a INT);
             CREATE TABLE u (id INT PRIMARY KEY); CREATE DATABASE {0};
             CREATE TABLE {0}.marker (id INT PRIMARY KEY); SET sql_log_bin=1; SET GLOBAL gtid_purged='+{done}'",
            case::MARKER
        ))
        .unwrap();
    story.properties.set("database.port", other.port().to_string());
    let mut story = Story { server: &other, ..story };
    page.shows(&story, "refresh --config shop.properties --yes", 4);
    page.shows(&story, "offset set ", 0);
    story.sql("INSERT INTO t VALUES (6, 6)");
    page.shows(&story, "refresh --config shop.properties --yes", 0);
    assert_eq!(story.run(), [r#"c {"id":6,"a":6}"#]);

    // The log begins anew.
    other.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    page.shows(&story, "run ", 4);
    page.shows(&story, "refresh --config shop.properties --yes", 4);
    page.end();
    story.end();
}
