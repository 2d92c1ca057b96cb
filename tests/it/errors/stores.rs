//! Offsets and histories that are damaged, lost, locked or cannot be written.

use std::fs;
use std::io::Write;

use holdfast_tests::server::{Options, shared};

use super::usage::holdfast;
use super::{Stage, ids, judge, not_a_folder, wait_for_row};

#[test]
fn a_damaged_offset_is_an_error_and_stays_untouched() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_offset");
    let path = stage.file("offsets.dat");
    let whole = fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    let damaged: &[(Vec<u8>, &[&str])] = &[
        (whole[..whole.len() / 2].to_vec(), &["damaged", "EOF"]),
        (Vec::new(), &["damaged"]),
        (b"[]".to_vec(), &["damaged", "not a JSON object"]),
        (
            text.replace("\"holdfast_offsets\":1", "\"holdfast_offsets\":2").into_bytes(),
            &["version is 2"],
        ),
        (text.replace("\"pos\":", "\"pos\":-").into_bytes(), &["damaged", "pos"]),
        (text.replace("\"file\":\"mysql-bin.", "\"file\":\"mysql-bin-").into_bytes(), &["file"]),
        (
            vec![0xac, 0xed, 0x00, 0x05, 0x73, 0x72, 0x00, 0x11],
            &["offset file of Debezium", "untouched"],
        ),
        (vec![0xff; 64], &["damaged"]),
    ];
    for (bytes, texts) in damaged {
        assert_ne!(bytes, &whole);
        fs::write(&path, bytes).unwrap();
        let process = stage.fails(3, texts);
        assert!(process.log().contains("offset"), "{}", process.log());
        assert!(process.records().is_empty());
        assert_eq!(&fs::read(&path).unwrap(), bytes, "the file was touched");
    }
}

#[test]
fn a_damaged_line_of_the_history_is_named() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_history");
    let path = stage.file("history.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines.len() > 3, "{whole}");
    for damage in ["{\"source\":{\"ser", "nonsense", "[]", "{}"] {
        let mut lines = lines.clone();
        lines[1] = damage;
        let text = lines.join("\n") + "\n";
        fs::write(&path, &text).unwrap();
        stage.fails(3, &["history.jsonl, line 2", "history record"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "the file was touched");
    }
    // A line that is gone is missed too: the records of one append say how many they are.
    let mut lines = lines;
    lines.remove(1);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    stage.fails(3, &["history.jsonl, line 1", "cut short"]);
}

#[test]
fn a_torn_last_line_of_the_history_is_kept_aside_and_the_run_goes_on() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_torn");
    let path = stage.file("history.jsonl");
    let whole = fs::read(&path).unwrap();
    let torn = b"{\"source\":{\"server\":\"srv\"},\"posit";
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(torn).unwrap();
    let mut process = stage.start("torn");
    stage.insert(2);
    wait_for_row(&mut process, 2);
    process.stop().unwrap();
    assert_eq!(ids(process.records()), [2]);
    let log = process.log();
    assert!(
        log.contains("WARN")
            && log.contains("incomplete append")
            && log.contains("history.jsonl.torn-1"),
        "{log}"
    );
    assert_eq!(fs::read(stage.file("history.jsonl.torn-1")).unwrap(), torn);
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[test]
fn a_missing_history_beside_an_offset_is_an_error_and_the_offset_stays() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::stored(&server, "err_lost");
    let offset = fs::read(stage.file("offsets.dat")).unwrap();
    stage.insert(2);
    // The first run leaves an empty file behind; the second must not take that for a history.
    fs::remove_file(stage.file("history.jsonl")).unwrap();
    for _ in 0..2 {
        let texts = ["The db history topic is missing.", "recovery", "history.jsonl"];
        let process = stage.fails(2, &texts);
        assert!(process.records().is_empty());
        assert_eq!(fs::read(stage.file("offsets.dat")).unwrap(), offset);
    }
    // With no_data it is the same: a snapshot would move the offset.
    stage.set("snapshot.mode", "no_data");
    stage.fails(2, &["The db history topic is missing."]);
    assert_eq!(fs::read(stage.file("offsets.dat")).unwrap(), offset);
}

#[test]
fn a_history_that_another_process_writes_is_refused() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::new(&server, "err_locked");
    let mut first = stage.start("first");
    wait_for_row(&mut first, 1);
    stage.fails(6, &["history.jsonl", "another process"]);
    stage.insert(2);
    wait_for_row(&mut first, 2);
    first.stop().unwrap();
}

#[test]
fn an_offset_that_another_process_has_is_refused() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::stored(&server, "err_claimed");
    let mut first = stage.start("first");
    stage.insert(2);
    wait_for_row(&mut first, 2);
    let before = stage.file("offsets.dat.lock");
    let lock = before.display().to_string();
    // A history of its own does not help: the offset is one.
    let history = stage.file("other-history.jsonl");
    fs::copy(stage.file("history.jsonl"), &history).unwrap();
    stage.set("schema.history.internal.file.filename", history.display().to_string());
    let second = stage.fails(6, &["offsets.dat are in use", &lock, "stop it first"]);
    assert!(second.records().is_empty());
    let config = stage.file("failing.properties").display().to_string();
    let pos = stage.offset("pos").to_string();
    let file = stage.offset("file");
    let set =
        ["offset", "set", "--file", file.as_text().unwrap(), "--pos", &pos, "--config", &config];
    for arguments in [&set[..], &["offset", "import", "--config", &config]] {
        let (code, log) = holdfast(arguments);
        judge(code, &log, 6, &["offsets.dat are in use", &lock]);
    }
    // The kernel takes the lock of a process that is killed.
    stage.insert(3);
    wait_for_row(&mut first, 3);
    first.kill().unwrap();
    let mut third = stage.start("third");
    stage.insert(4);
    wait_for_row(&mut third, 4);
    third.stop().unwrap();
}

#[test]
fn stores_that_cannot_be_written_are_named_before_any_record() {
    let server = shared(&Options::mysql()).unwrap();
    let mut stage = Stage::new(&server, "err_paths");
    let below = not_a_folder(&stage.folder).join("file").display().to_string();
    let folder = stage.folder.display().to_string();
    let offsets = stage.file("offsets.dat").display().to_string();
    // In /proc nothing can be made, not even by root, and nothing is found either.
    for path in [below.as_str(), &folder, "/proc/holdfast/offsets.dat"] {
        stage.set("offset.storage.file.filename", path);
        let process = stage.fails(7, &[path, "the offsets in"]);
        assert!(process.records().is_empty());
    }
    stage.set("offset.storage.file.filename", offsets);
    for path in [below.as_str(), &folder, "/proc/holdfast/history.jsonl"] {
        stage.set("schema.history.internal.file.filename", path);
        let process = stage.fails(7, &[path, "schema history"]);
        assert!(process.records().is_empty());
    }
}

#[test]
fn a_full_output_ends_the_run_and_acknowledges_nothing() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_full");
    let before = (stage.offset("pos"), stage.offset("gtids"));
    stage.insert(2);
    let config = stage.file("stored.properties");
    let (code, log) =
        holdfast(&["run", "--config", config.to_str().unwrap(), "--output", "/dev/full"]);
    judge(code, &log, 7, &["cannot write to /dev/full", "No space left"]);
    assert_eq!((stage.offset("pos"), stage.offset("gtids")), before);
    // The row that was not written comes in the next run.
    let mut process = stage.start("again");
    wait_for_row(&mut process, 2);
    process.stop().unwrap();
}

#[test]
fn an_offset_that_cannot_be_stored_while_streaming_is_told_and_fails_the_stop() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_commit");
    let mut process = stage.start("commit");
    stage.insert(2);
    wait_for_row(&mut process, 2);
    let path = stage.file("offsets.dat");
    // The engine may just be storing the offset of row 2.
    while fs::create_dir(&path).is_err() {
        let _ = fs::remove_file(&path);
    }
    stage.insert(3);
    wait_for_row(&mut process, 3);
    process.signal("TERM").unwrap();
    let status = process.wait_end(super::LIMIT).unwrap();
    judge(status.code(), &process.log(), 7, &["offsets.dat"]);
}
