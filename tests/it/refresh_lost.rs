//! A schema history that is lost or damaged while the offset is there: every change behind the head comes, in every mode
//! that rebuilds the history; the other modes say so and leave everything as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use holdfast_tests::refreshed::make_changes;
use holdfast_tests::server::{Options, shared};

use crate::story::Story;

const BASED: &str = "snapshot.mode.configuration.based";

/// Its name, its properties, and whether it rebuilds a history that is missing.
type Mode = (&'static str, &'static [(&'static str, &'static str)], bool);

/// The modes that rebuild the history.
const REBUILDING: [Mode; 4] = [
    ("recovery", &[("snapshot.mode", "recovery")], true),
    (
        "configuration_based, on a schema error",
        &[
            ("snapshot.mode", "configuration_based"),
            ("snapshot.mode.configuration.based.start.stream", "true"),
            ("snapshot.mode.configuration.based.snapshot.on.schema.error", "true"),
        ],
        true,
    ),
    (
        "configuration_based, the schema at every start",
        &[
            ("snapshot.mode", "configuration_based"),
            ("snapshot.mode.configuration.based.start.stream", "true"),
            ("snapshot.mode.configuration.based.snapshot.schema", "true"),
        ],
        true,
    ),
    ("on a mismatch", &[("holdfast.history.on.mismatch", "refresh")], false),
];

/// The files of a folder and what they hold.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect()
}

#[test]
fn ten_thousand_changes_behind_the_head_come_in_every_mode_that_rebuilds() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "behind", &[]);
    let (offset, history) = (story.bytes("offsets.dat"), story.bytes("history.jsonl"));
    // Not in the log, so that the history which is there is wrong.
    story.sql("SET sql_log_bin=0; ALTER TABLE t ADD b INT DEFAULT 7");
    make_changes(&mysql, "behind", "t (id, a)", 2..=10_001).unwrap();
    let expected: Vec<String> =
        (2..=10_001).map(|id| format!(r#"c {{"id":{id},"a":{id},"b":7}}"#)).collect();
    let begin_again = |story: &Story<'_>, is_lost: bool| {
        fs::write(story.files.join("offsets.dat"), &offset).unwrap();
        fs::write(story.files.join("history.jsonl"), &history).unwrap();
        if is_lost {
            story.lose_history();
        }
    };
    let ordinary = story.properties.clone();
    for (name, settings, is_lost) in REBUILDING {
        begin_again(&story, is_lost);
        for (key, value) in settings {
            story.properties.set(key, *value);
        }
        assert!(story.run() == expected, "{name}");
        story.properties = ordinary.clone();
    }
    for is_lost in [true, false] {
        begin_again(&story, is_lost);
        story.refreshes(&[]);
        assert!(story.run() == expected, "holdfast refresh, lost: {is_lost}");
    }
    // The others end, and say what to do.
    for mode in ["initial", "no_data", "when_needed", "configuration_based"] {
        begin_again(&story, true);
        story.properties.set("snapshot.mode", mode);
        story.properties.set(&format!("{BASED}.start.stream"), "true");
        let (code, log) = story.fails();
        assert_eq!(code, Some(2), "{mode}: {log}");
        assert!(log.contains("holdfast refresh --config FILE"), "{mode}: {log}");
        assert_eq!(story.bytes("offsets.dat"), offset, "{mode}");
        assert_eq!(story.bytes("history.jsonl"), b"", "{mode}");
    }
    story.end();
}

#[test]
fn a_damaged_history_is_set_aside_under_recovery_and_by_command_and_never_otherwise() {
    let mysql = shared(&Options::mysql()).unwrap();
    let mut story = Story::new(&mysql, "damaged", &[]);
    let damage = |story: &Story<'_>| {
        let text = String::from_utf8(story.bytes("history.jsonl")).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines[2] = r#"{"source":"#;
        fs::write(story.files.join("history.jsonl"), lines.join("\n") + "\n").unwrap();
        story.bytes("history.jsonl")
    };
    story.sql("INSERT INTO t VALUES (2, 2)");
    let damaged = damage(&story);

    // An ordinary start and an ordinary refresh leave it as it is.
    let (code, log) = story.fails();
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("line 3: history record cannot be read"), "{log}");
    assert!(log.contains("holdfast refresh --config FILE --set-aside-damaged"), "{log}");
    let text = story.refuses(&["--yes"], 3);
    assert!(text.contains("line 3: history record cannot be read"), "{text}");
    let text = story.refuses(&["--dry-run", "--set-aside-damaged"], 0);
    assert!(text.contains("it is set aside and begun anew"), "{text}");
    assert_eq!(story.bytes("history.jsonl"), damaged);

    let ordinary = story.properties.clone();
    let (_, recovery, _) = REBUILDING[0];
    let (_, on_schema_error, _) = REBUILDING[1];
    for (number, settings) in (1..).zip([recovery, on_schema_error]) {
        for (key, value) in settings {
            story.properties.set(key, *value);
        }
        let mut process = story.start(holdfast_tests::engine::RunOptions::default());
        story.settle(&mut process);
        process.stop().unwrap();
        let aside = format!("history.jsonl.damaged-{number}");
        let log = process.log();
        assert!(log.contains("was set aside") && log.contains(&aside), "{log}");
        assert_eq!(story.bytes(&aside), damaged, "it is kept as it was");
        story.properties = ordinary.clone();
        story.sql(&format!("INSERT INTO t VALUES ({0}, {0})", number + 2));
        assert_eq!(story.run(), [format!(r#"c {{"id":{0},"a":{0}}}"#, number + 2)]);
        fs::write(story.files.join("history.jsonl"), &damaged).unwrap();
    }

    // What is refused leaves the damaged one in its place.
    story.sql(
        "INSERT INTO t VALUES (8, 8); ALTER TABLE t ADD b INT; INSERT INTO t VALUES (9, 9, 9)",
    );
    story.refuses(&["--yes", "--set-aside-damaged"], 1);
    let before = files(&story.files);
    let sql = story.files.join("t.sql");
    fs::write(&sql, "CREATE TABLE t (id INT PRIMARY KEY, a INT)").unwrap();
    let given = format!("damaged.t={}", sql.display());
    let output = story.refresh(&["--yes", "--set-aside-damaged", "--definition", &given]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(story.bytes("history.jsonl.damaged-3"), before["history.jsonl"]);
    assert_eq!(
        story.run(),
        [r#"c {"id":8,"a":8}"#, "ALTER TABLE t ADD b INT", r#"c {"id":9,"a":9,"b":9}"#]
    );
    story.end();
}

#[test]
fn damaged_objects_are_set_aside_and_a_folder_that_cannot_be_listed_is_no_lost_history() {
    let mysql = shared(&Options::mysql()).unwrap();
    let folder = holdfast_tests::paths::fresh("damaged-objects").unwrap();
    let url = format!("file://{}/history", folder.display());
    let mut story = Story::new(&mysql, "damaged_objects", &[("holdfast.history.url", &url)]);
    story.sql("ALTER TABLE u ADD x INT");
    story.run();
    let history = folder.join("history");
    let whole = files(&history);
    assert!(whole.len() >= 2, "{:?}", whole.keys());
    fs::write(history.join("schema_history_1.dat"), "no record\n").unwrap();
    let damaged = files(&history);
    story.sql("INSERT INTO t VALUES (2, 2); INSERT INTO u VALUES (3, 3)");
    let (code, log) = story.fails();
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(files(&history), damaged);

    story.properties.set("snapshot.mode", "recovery");
    let rows = [r#"c {"id":2,"a":2}"#, r#"c {"id":3,"x":3}"#];
    assert_eq!(story.run(), rows);
    let now = files(&history);
    for (name, bytes) in damaged.iter().filter(|(name, _)| name.ends_with(".dat")) {
        assert_eq!(now.get(&format!("{name}.damaged-1")), Some(bytes), "{name} is kept");
    }
    let new = now.keys().filter(|name| name.ends_with(".dat"));
    assert_eq!(new.count(), 1, "{:?}", now.keys());

    // What can't be listed is neither lost nor damaged, whatever the mode.
    story.sql("INSERT INTO t VALUES (4, 4)");
    fs::rename(&history, folder.join("elsewhere")).unwrap();
    fs::write(&history, "no folder").unwrap();
    let (code, log) = story.fails();
    assert_eq!(code, Some(7), "{log}");
    assert_eq!(fs::read(&history).unwrap(), b"no folder");
    fs::remove_file(&history).unwrap();
    fs::rename(folder.join("elsewhere"), &history).unwrap();
    assert_eq!(story.run(), [r#"c {"id":4,"a":4}"#]);
    fs::remove_dir_all(folder).unwrap();
    story.end();
}
