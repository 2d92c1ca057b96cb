//! Stored positions that the server does not have.

use std::time::Instant;

use holdfast_tests::server::{Options, shared};

use super::{DUMPS, LIMIT, Stage};

/// Purges everything before a new file, and returns its name.
fn purge(stage: &Stage<'_>) -> String {
    stage.sql("FLUSH BINARY LOGS");
    let server = stage.server;
    let newest = server.query("SHOW BINARY LOGS").unwrap().last().unwrap()[0].clone();
    // A file stays while a dump that was closed has not noticed it, and on MariaDB until its transactions are in the
    // tables.
    let start = Instant::now();
    loop {
        for dump in server.query(DUMPS).unwrap() {
            // It may be gone in between.
            let _ = server.sql(&format!("KILL {}", dump[0]));
        }
        stage.sql(&format!("PURGE BINARY LOGS TO '{newest}'"));
        if server.query("SHOW BINARY LOGS").unwrap()[0][0] == newest {
            return newest;
        }
        assert!(start.elapsed() < LIMIT, "the logs before {newest} stay");
    }
}

#[test]
fn a_purged_file_is_named_beside_the_oldest_that_is_there() {
    let server = shared(&Options::mysql().without_gtids()).unwrap();
    let stage = Stage::stored(&server, "err_purged");
    let before = std::fs::read(stage.file("offsets.dat")).unwrap();
    let wanted = stage.offset("file");
    stage.insert(2);
    let oldest = purge(&stage);
    let wanted = format!("{} was purged", wanted.as_text().unwrap());
    stage.fails(4, &[&wanted, &oldest, "no longer on the server", "snapshot.mode=when_needed"]);
    assert_eq!(std::fs::read(stage.file("offsets.dat")).unwrap(), before);
}

#[test]
fn a_position_beyond_the_end_and_a_file_that_never_was_are_told() {
    let server = shared(&Options::mysql().without_gtids()).unwrap();
    let stage = Stage::stored(&server, "err_beyond");
    let (file, pos) = (stage.offset("file"), stage.offset("pos"));
    let file = file.as_text().unwrap();
    stage.edit_offset(&format!("\"pos\":{pos}"), "\"pos\":4000000000");
    stage.fails(4, &[file, "4000000000", "beyond the end"]);
    stage.edit_offset("\"pos\":4000000000", &format!("\"pos\":{pos}"));
    let later = file.replace("-bin.", "-bin.9");
    stage.edit_offset(file, &later);
    stage.fails(4, &[&later, file, "never on the server"]);
    stage.edit_offset(&later, "other-log.000001");
    stage.fails(4, &["other-log.000001", file, "never on the server"]);
}

#[test]
fn a_position_inside_an_event_is_told() {
    let server = shared(&Options::mysql().without_gtids()).unwrap();
    let stage = Stage::stored(&server, "err_inside");
    stage.insert(2);
    let pos = stage.offset("pos").as_i64().unwrap();
    stage.edit_offset(&format!("\"pos\":{pos}"), &format!("\"pos\":{}", pos + 7));
    stage.fails(3, &["not the start of an event"]);
}

#[test]
fn purged_transactions_are_named() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_gtid_purged");
    stage.insert(2);
    let uuid = server.value("SELECT @@server_uuid").unwrap();
    purge(&stage);
    stage.fails(4, &["no longer on the server", &uuid, "purged", "snapshot.mode=when_needed"]);
}

#[test]
fn transactions_that_the_server_never_saw_are_named() {
    let server = shared(&Options::mysql()).unwrap();
    let stage = Stage::stored(&server, "err_gtid_unknown");
    let foreign = "11111111-2222-3333-4444-555555555555:1-5";
    let known = stage.offset("gtids");
    let known = known.as_text().unwrap();
    stage.edit_offset(known, &format!("{foreign},{known}"));
    stage.fails(4, &["has not executed", foreign]);
    stage.edit_offset(&format!("{foreign},{known}"), "no-gtid-set");
    stage.fails(3, &["gtids"]);
}

#[test]
fn mariadb_positions_that_were_purged_or_never_were_are_told() {
    let server = shared(&Options::mariadb()).unwrap();
    let stage = Stage::stored(&server, "err_gtid_mariadb");
    let known = stage.offset("gtids");
    let known = known.as_text().unwrap();
    stage.edit_offset(&format!("\"gtids\":\"{known}\""), "\"gtids\":\"0-99-99999999\"");
    stage.fails(4, &["0-99-99999999", known, "has not executed"]);
    // The file is the newest, so that only the GTID position tells.
    stage.edit_offset("\"gtids\":\"0-99-99999999\"", &format!("\"gtids\":\"{known}\""));
    stage.insert(2);
    let newest = purge(&stage);
    let (file, pos) = (stage.offset("file"), stage.offset("pos"));
    stage.edit_offset(file.as_text().unwrap(), &newest);
    stage.edit_offset(&format!("\"pos\":{pos}"), "\"pos\":4");
    stage.fails(4, &["removed binlogs that are needed"]);
}
