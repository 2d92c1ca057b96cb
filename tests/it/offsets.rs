//! `holdfast offset`: set, and moves from and to Debezium's file. MySQL with GTIDs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use holdfast_tests::engine::{Engine, Process, Properties, RunOptions, holdfast_binary};
use holdfast_tests::json::Json;
use holdfast_tests::server::{Options, Server, shared};
use holdfast_tests::{case, paths};

/// Runs `holdfast offset` with the configuration that the first engine ran with.
fn offset(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(holdfast_binary().unwrap())
        .arg("offset")
        .args(arguments)
        .arg("--config")
        .arg(folder.join("first.properties"))
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn stored(folder: &Path) -> String {
    text(&offset(folder, &["show", "--format", "json"]).stdout)
}

/// Ids of the inserted rows, in order.
fn inserted(process: &Process) -> Vec<i64> {
    process
        .records()
        .iter()
        .filter(|record| record.source().text("db") == Some("offset_db"))
        .filter(|record| record.value().text("op") == Some("c"))
        .filter_map(|record| record.key().get("id").and_then(Json::as_i64))
        .collect()
}

fn insert(server: &Server, id: i64) {
    server.sql(&format!("INSERT INTO offset_db.t VALUES ({id})")).unwrap();
}

#[test]
fn an_offset_is_set_checked_exported_and_imported() {
    let server = shared(&Options::mysql()).unwrap();
    let folder = paths::fresh("offsets").unwrap();
    server
        .sql("DROP DATABASE IF EXISTS offset_db; CREATE DATABASE offset_db; CREATE TABLE offset_db.t(id INT PRIMARY KEY);")
        .unwrap();
    case::make_marker(&server).unwrap();
    let mut properties = Properties::new(&server, &folder);
    properties.set("database.include.list", format!("offset_db,{}", case::MARKER));
    let start = |name: &str| {
        Process::start(Engine::Holdfast, &properties, &folder, name, RunOptions::default()).unwrap()
    };
    let mut first = start("first");
    case::snapshot_end(&mut first).unwrap();
    let gtids = || server.value("SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')").unwrap();
    insert(&server, 1);
    let after_one = gtids();
    insert(&server, 2);
    case::settle(&mut first, &server, 2).unwrap();
    first.stop().unwrap();
    assert_eq!(inserted(&first), [1, 2]);

    // What the server does not have is refused, and nothing changes.
    let before = stored(&folder);
    let offset_json = Json::parse(&before).unwrap();
    let file = offset_json.text("file").unwrap();
    let pos = offset_json.get("pos").and_then(Json::as_i64).unwrap();
    let middle = (pos - 1).to_string();
    let ahead = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";
    for (arguments, reason) in [
        (vec!["--file", file, "--pos", "999999999"], "beyond the end of the server's log"),
        (vec!["--file", "nothing.000001", "--pos", "4"], "there is no nothing.000001"),
        (vec!["--file", file, "--pos", &middle], "is no place to start from"),
        (vec!["--gtids", ahead], "has not executed all transactions"),
    ] {
        let refused = offset(&folder, &[&["set"], arguments.as_slice()].concat());
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(reason), "{arguments:?}: {}", text(&refused.stderr));
        assert_eq!(stored(&folder), before, "{arguments:?}");
    }

    // Back to the first row, as GTIDs and as the place that they were found at.
    let set = offset(&folder, &["set", "--gtids", &after_one]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    assert!(text(&set.stdout).contains("\nreplays "), "{}", text(&set.stdout));
    let place = Json::parse(&stored(&folder)).unwrap();
    assert_eq!(place.text("gtids"), Some(after_one.as_str()));
    let mut second = start("second");
    case::settle(&mut second, &server, 3).unwrap();
    second.stop().unwrap();
    assert_eq!(inserted(&second), [2], "replayed by GTIDs");
    let pos = place.get("pos").and_then(Json::as_i64).unwrap().to_string();
    let set = offset(
        &folder,
        &["set", "--file", place.text("file").unwrap(), "--pos", &pos, "--new-lineage"],
    );
    assert!(set.status.success(), "{}", text(&set.stderr));
    assert!(stored(&folder).contains("\"holdfast_epoch\":2,"), "{}", stored(&folder));
    let forced = offset(&folder, &["set", "--file", "nothing.000001", "--pos", "4", "--force"]);
    assert!(forced.status.success(), "{}", text(&forced.stderr));

    // Debezium's form and back; the run goes on from there.
    let set = offset(&folder, &["set", "--gtids", &after_one, "--new-lineage"]);
    assert!(set.status.success(), "{}", text(&set.stderr));
    let wanted = stored(&folder);
    let (ours, export) = (folder.join("offsets.dat"), folder.join("export.dat"));
    let exported = offset(&folder, &["export", export.to_str().unwrap()]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    fs::rename(&export, &ours).unwrap();
    let shown = offset(&folder, &["show"]);
    assert_eq!(shown.status.code(), Some(3));
    assert!(text(&shown.stderr).contains("offset import"), "{}", text(&shown.stderr));
    assert!(offset(&folder, &["import"]).status.success());
    assert_eq!(stored(&folder), wanted);
    assert!(folder.join("offsets.dat.debezium").exists());
    assert_eq!(offset(&folder, &["import"]).status.code(), Some(1), "imported already");
    let mut third = start("third");
    case::settle(&mut third, &server, 4).unwrap();
    third.stop().unwrap();
    assert_eq!(inserted(&third), [2], "after the import");
    fs::remove_dir_all(folder).unwrap();
}
