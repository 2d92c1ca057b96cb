//! Arguments and configuration.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use holdfast_tests::engine::holdfast_binary;
use holdfast_tests::paths;

use super::judge;

/// Runs the binary to its end.
pub(super) fn holdfast(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(holdfast_binary().unwrap()).args(arguments).output().unwrap();
    let log = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&log).into_owned())
}

/// A configuration that nothing is wrong with, and lines after it. No server is at its address.
fn config(name: &str, more: &str) -> PathBuf {
    let folder = paths::fresh(name).unwrap();
    let path = folder.join("holdfast.properties");
    let text = format!(
        "name=usage\nconnector.class=io.debezium.connector.mysql.MySqlConnector\ntopic.prefix=srv\n\
         database.hostname=127.0.0.1\ndatabase.port=1\ndatabase.user=u\ndatabase.password=p\ndatabase.server.id=77\n\
         schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory\n\
         schema.history.internal.file.filename={0}/history.jsonl\noffset.storage.file.filename={0}/offsets.dat\n{more}",
        folder.display()
    );
    fs::write(&path, text).unwrap();
    path
}

fn run_fails(name: &str, lines: &str, arguments: &[&str], code: i32, texts: &[&str]) {
    let path = config(name, lines);
    let mut line = vec!["run", "--config", path.to_str().unwrap()];
    line.extend(arguments);
    let (found, log) = holdfast(&line);
    judge(found, &log, code, texts);
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn an_unknown_property_is_named_with_its_line_and_the_nearest_known_one() {
    let texts = [
        "holdfast.properties",
        "'tabel.include.list' in line 12",
        "did you mean 'table.include.list'?",
    ];
    run_fails("unknown-property", "tabel.include.list=d.t\n", &[], 2, &texts);
}

#[test]
fn all_errors_of_a_configuration_are_told_at_once() {
    let lines = "database.port=x\nsnapshot.mode=sometimes\nmax.batch.size=0\nhoge=1\n";
    let texts =
        ["'database.port'", "'snapshot.mode'", "recovery", "'max.batch.size'", "'hoge' in line 15"];
    run_fails("several-errors", lines, &[], 2, &texts);
}

#[test]
fn a_malformed_set_names_what_it_takes() {
    run_fails(
        "set-malformed",
        "",
        &["--set", "max.batch.size"],
        2,
        &["--set", "KEY=VALUE", "\"max.batch.size\""],
    );
    run_fails("set-no-key", "", &["--set", "=5"], 2, &["--set", "KEY=VALUE", "\"=5\""]);
    run_fails(
        "set-unknown",
        "",
        &["--set", "max.batch.sise=5"],
        2,
        &["'max.batch.sise'", "did you mean 'max.batch.size'?"],
    );
    run_fails(
        "set-value",
        "",
        &["--set", "max.batch.size=many"],
        2,
        &["'max.batch.size'", "An integer is expected"],
    );
}

#[test]
fn a_configuration_that_is_not_there_or_no_properties_is_named() {
    let texts = ["/no/such/holdfast.properties", "No such file"];
    let (code, log) = holdfast(&["run", "--config", "/no/such/holdfast.properties"]);
    judge(code, &log, 2, &texts);
    run_fails("bad-escape", "a=\\u12\n", &[], 2, &["holdfast.properties"]);
    let (code, log) = holdfast(&["run"]);
    judge(code, &log, 2, &["--config"]);
    let (code, log) = holdfast(&["walk"]);
    judge(code, &log, 2, &["walk"]);
}

#[test]
fn an_unreachable_server_is_an_error_at_once_that_names_host_and_port() {
    let texts = ["127.0.0.1:1 ", "'u'", "refused"];
    run_fails("unreachable", "", &[], 5, &texts);
    run_fails(
        "no-such-host",
        "database.hostname=no-such-host.invalid\n",
        &[],
        5,
        &["no-such-host.invalid:1 "],
    );
}

#[test]
fn snapshot_modes_that_are_not_for_the_command_line_are_refused_before_anything_is_done() {
    let modes = [
        (
            "snapshot.mode=custom\nsnapshot.mode.custom.name=x",
            "snapshot.mode=custom is for the library",
        ),
        ("snapshot.locking.mode=custom", "Java"),
    ];
    for (lines, text) in modes {
        run_fails("mode", &format!("{lines}\n"), &[], 2, &[text]);
    }
}

#[test]
fn an_output_that_cannot_be_opened_is_named() {
    let path = config("output", "");
    let folder = path.parent().unwrap();
    let below = super::not_a_folder(folder).join("out.jsonl");
    for output in [below.as_path(), folder] {
        let output = output.to_str().unwrap();
        let (code, log) =
            holdfast(&["run", "--config", path.to_str().unwrap(), "--output", output]);
        judge(code, &log, 7, &[output]);
    }
    fs::remove_dir_all(folder).unwrap();
}
