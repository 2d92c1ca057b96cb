use std::sync::Arc;

use super::guard::same_statement;
use super::*;
use crate::offset::{HoldfastMembers, SnapshotKind};
use crate::schema::{Column, JdbcType, Table};
use crate::store::{FileHistoryStore, MemoryHistory};

#[test]
fn records_up_to_the_offset_are_applied_and_later_ones_counted() {
    let records = [
        record(at(100), "create table t", vec![create("d.t", &["id"])]),
        record(at(200), "alter table t", vec![alter("d.t", &["id", "a"], None)]),
        record(at(300), "alter table t", vec![alter("d.t", &["id", "a", "b"], None)]),
    ];
    let recovered = replay(&records, &at(250));
    assert_eq!(columns(&recovered, "d.t"), ["id", "a"]);
    let report = &recovered.report;
    assert_eq!((report.recovered, report.applied, report.skipped.len()), (3, 2, 1));
    assert_eq!(report.applied_by, BTreeMap::from([(Rule::Coordinates, 2)]));
    assert_eq!(report.skipped_by, BTreeMap::from([(Rule::Coordinates, 1)]));
    assert_eq!(report.skipped[0].record, 3);
    assert_eq!(report.skipped[0].tables, [id("d.t")]);
    assert_eq!(report.origins, BTreeMap::from([(id("d.t"), 2)]));
}

#[test]
fn storage_order_decides_not_position() {
    let records = [
        record(at(200), "alter", vec![alter("d.t", &["new"], None)]),
        record(snapshot(at(100)), "create", vec![create("d.t", &["old"])]),
    ];
    assert_eq!(columns(&replay(&records, &at(250)), "d.t"), ["old"]);
}

#[test]
fn records_of_another_source_are_left_out() {
    let mut other = record(at(100), "create", vec![create("d.u", &["id"])]);
    other.source = "other".into();
    let records = [record(at(100), "create", vec![create("d.t", &["id"])]), other];
    let recovered = replay(&records, &at(250));
    assert_eq!((recovered.report.foreign, recovered.tables.len()), (1, 1));
}

#[test]
fn a_rename_takes_the_old_name_away_and_chains_end_at_the_last_name() {
    let records = [
        record(at(100), "create", vec![create("d.a", &["id"]), create("d.b", &["x"])]),
        record(
            at(200),
            "rename table a to c, b to a, c to b",
            vec![
                alter("d.c", &["id"], Some("d.a")),
                alter("d.a", &["x"], Some("d.b")),
                alter("d.b", &["id"], Some("d.c")),
            ],
        ),
    ];
    let recovered = replay(&records, &at(250));
    assert_eq!(recovered.tables.len(), 2);
    assert_eq!(columns(&recovered, "d.a"), ["x"]);
    assert_eq!(columns(&recovered, "d.b"), ["id"]);
    assert_eq!(recovered.report.origins, BTreeMap::from([(id("d.a"), 2), (id("d.b"), 2)]));
}

#[test]
fn a_dropped_table_is_gone_and_its_comment_survives_while_it_is_there() {
    let mut table = Table::clone(&table("d.t", &["id"]));
    table.comment = Some("goods".into());
    let records = [
        record(at(100), "create", vec![TableChange::Create(Arc::new(table))]),
        record(at(200), "drop", vec![TableChange::Drop(id("d.t"))]),
    ];
    let before = replay(&records, &at(150));
    assert_eq!(before.tables.get(&id("d.t")).unwrap().comment.as_deref(), Some("goods"));
    let after = replay(&records, &at(200));
    assert!(after.tables.is_empty() && after.report.origins.is_empty());
}

#[test]
fn a_snapshot_taken_on_a_new_instance_is_applied_although_its_clock_is_ahead() {
    // The events carry the origin's time, the snapshot the wall clock of a later day.
    let mut taken = snapshot(at(100));
    taken.server_id = Some(0);
    taken.ts_sec = Some(2000);
    let mut offset = at(150);
    offset.server_id = Some(7);
    offset.ts_sec = Some(1500);
    let records = [
        record(at(50), "create", vec![create("d.t", &["id"])]),
        record(taken, "create", vec![create("d.t", &["id", "added"])]),
    ];
    assert_eq!(columns(&replay(&records, &offset), "d.t"), ["id", "added"]);
}

#[test]
fn a_skip_with_earlier_coordinates_is_suspicious_and_names_record_and_table() {
    let gtids = |pos, set: &str| SourceOffset { gtids: Some(format!("{UUID}:{set}")), ..at(pos) };
    let records = [record(gtids(100, "1-12"), "create", vec![create("d.t", &["id"])])];
    let recovered = replay(&records, &gtids(900, "1-11"));
    let suspicious: Vec<_> = recovered.report.suspicious().collect();
    assert_eq!(suspicious.len(), 1);
    assert_eq!((suspicious[0].record, suspicious[0].verdict.rule), (1, Rule::Gtids));
    assert_eq!(suspicious[0].tables, [id("d.t")]);
    assert_eq!(replay(&records, &gtids(900, "1-12")).report.suspicious().count(), 0);
}

#[test]
fn a_history_of_another_base_name_is_applied() {
    let old = SourceOffset { file: "binlog.000900".into(), ..at(100) };
    let recovered = replay(&[record(old, "create", vec![create("d.t", &["id"])])], &at(100));
    assert_eq!(recovered.report.applied_by, BTreeMap::from([(Rule::Undecided, 1)]));
    assert_eq!(columns(&recovered, "d.t"), ["id"]);
}

#[test]
fn positions_beyond_31_bits_keep_their_order() {
    let records = [
        record(at(100), "create", vec![create("d.t", &["id"])]),
        record(at(3_000_000_000), "alter", vec![alter("d.t", &["id", "a"], None)]),
    ];
    assert_eq!(columns(&replay(&records, &at(2_999_999_999)), "d.t"), ["id"]);
    assert_eq!(columns(&replay(&records, &at(3_000_000_000)), "d.t"), ["id", "a"]);
}

#[test]
fn after_a_reset_the_records_of_the_earlier_epoch_are_applied() {
    let old = ours(SourceOffset { file: "mysql-bin.000050".into(), ..at(4) }, 1);
    let offset = ours(at(9), 2);
    let recovered = replay(&[record(old, "create", vec![create("d.t", &["id"])])], &offset);
    assert_eq!(recovered.report.applied_by, BTreeMap::from([(Rule::Epoch, 1)]));
}

#[test]
fn on_a_replica_coordinates_decide_whatever_the_origins_say() {
    let from = |pos, server, ts_sec| SourceOffset {
        server_id: Some(server),
        ts_sec: Some(ts_sec),
        ..at(pos)
    };
    let records = [
        record(from(100, 1, 30), "create", vec![create("d.t", &["id"])]),
        record(from(200, 2, 10), "alter", vec![alter("d.t", &["id", "a"], None)]),
    ];
    assert_eq!(columns(&replay(&records, &from(150, 2, 20)), "d.t"), ["id"]);
    // An operator who knows better can say that the id is that of the connected server.
    let context = DdlContext::default();
    let options = RecoverOptions { server_id_is_connected: true, ..RecoverOptions::new(&context) };
    let recovered = recover(&records, "inv", &from(150, 2, 20), &options).unwrap();
    assert_eq!(
        recovered.report.skipped_by,
        BTreeMap::from([(Rule::EventTime, 1), (Rule::Coordinates, 1)])
    );
}

#[test]
fn an_applied_statement_is_recognised_when_it_comes_again() {
    let ddl = "ALTER TABLE t RENAME COLUMN label TO name";
    let records = [
        record(snapshot(at(90)), "CREATE TABLE t", vec![create("d.t", &["label"])]),
        record(at(100), ddl, vec![alter("d.t", &["name"], None)]),
        record(at(200), "ALTER TABLE t ADD x INT", vec![alter("d.t", &["name", "x"], None)]),
    ];
    let guard = replay(&records, &at(100)).guard;
    let streamed = |file, end_position, ddl| StreamedStatement {
        file,
        unit_position: Some(end_position - 40),
        end_position,
        ddl,
    };
    assert_eq!(
        guard.find(&streamed(FILE, 100, "/* app */ ALTER TABLE  t\n RENAME COLUMN label TO name;")),
        Some(2)
    );
    for new in [
        streamed(FILE, 100, "ALTER TABLE t RENAME COLUMN name TO label"),
        streamed(FILE, 101, ddl),
        streamed("mysql-bin.000004", 100, ddl),
        streamed(FILE, 200, "ALTER TABLE t ADD x INT"),
        streamed(FILE, 90, "CREATE TABLE t"),
    ] {
        assert!(!guard.is_replay(&new), "{new:?}");
    }
}

#[test]
fn mariadb_statements_are_recognised_at_their_gtid_event() {
    let mut position = at(1654);
    position.event = 1;
    let records =
        [record(position.clone(), "ALTER TABLE t ADD x INT", vec![alter("d.t", &["x"], None)])];
    let guard = replay(&records, &position).guard;
    let ddl = "ALTER TABLE t ADD x INT";
    assert!(guard.is_replay(&StreamedStatement {
        file: FILE,
        unit_position: Some(1654),
        end_position: 1790,
        ddl
    }));
}

#[test]
fn the_statement_behind_the_last_one_is_no_replay_of_it() {
    let records = [record(ours(at(100), 1), "CREATE TABLE t", vec![create("d.t", &["a"])])];
    let guard = replay(&records, &ours(at(100), 1)).guard;
    for ddl in ["ALTER TABLE t ADD x INT", "CREATE TABLE t"] {
        let next =
            StreamedStatement { file: FILE, unit_position: Some(100), end_position: 260, ddl };
        assert!(!guard.is_replay(&next), "{ddl}");
    }
}

#[test]
fn the_same_statement_right_behind_itself_is_new() {
    let ddl = "RENAME TABLE a TO c, b TO a, c TO b";
    let records = [record(at(100), ddl, vec![alter("d.b", &["id"], Some("d.a"))])];
    let guard = replay(&records, &at(100)).guard;
    let streamed =
        |end_position| StreamedStatement { file: FILE, unit_position: None, end_position, ddl };
    assert!(guard.is_replay(&streamed(100)));
    assert!(!guard.is_replay(&streamed(180)));
}

#[test]
fn inside_a_proven_log_the_place_alone_proves_a_replay() {
    let records =
        [record(ours(at(100), 1), "DROP TABLE `d`.`t`", vec![TableChange::Drop(id("d.t"))])];
    let guard = replay(&records, &ours(at(100), 1)).guard;
    let streamed = StreamedStatement {
        file: FILE,
        unit_position: None,
        end_position: 100,
        ddl: "drop table t, u",
    };
    assert!(guard.is_replay(&streamed));
    assert!(replay(&records, &ours(at(100), 2)).guard.is_empty());
}

#[test]
fn rewritten_and_clipped_texts_are_the_same_statement() {
    let cases = [
        ("DROP TABLE `d`.`t`", "DROP TABLE t, u", true),
        ("RENAME TABLE a TO b", "rename table a to b, c to d", true),
        ("UNIQUE INDEX u ON t (b)", "CREATE UNIQUE INDEX u ON t (b)", true),
        ("DROP TABLE t", "RENAME TABLE t TO u", false),
        ("", "DROP TABLE t", false),
    ];
    for (recorded, streamed, same) in cases {
        assert_eq!(same_statement(recorded, streamed), same, "{recorded} / {streamed}");
    }
}

#[test]
fn records_without_definitions_are_applied_by_their_statement() {
    let records = [
        record(at(10), "SET character_set_server=latin1", vec![]),
        record(at(20), "CREATE DATABASE d CHARSET utf8mb4", vec![]),
        record(at(30), "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(5))", vec![]),
        record(at(40), "CREATE INDEX i ON t (v)", vec![]),
        record(at(50), "CREATE TABLE u (id INT)", vec![create("d.u", &["id"])]),
        record(at(60), "DROP DATABASE e", vec![]),
    ];
    let recovered = replay(&records, &at(100));
    assert_eq!(columns(&recovered, "d.t"), ["id", "v"]);
    let table = recovered.tables.get(&id("d.t")).unwrap();
    assert_eq!(
        (table.primary_key.as_slice(), table.columns[1].charset.as_deref()),
        (["id".to_owned()].as_slice(), Some("utf8mb4"))
    );
    assert_eq!(recovered.report.origins[&id("d.t")], 3);
    assert_eq!(recovered.report.applied, 6);
}

#[test]
fn prefer_ddl_takes_the_statement_where_the_definitions_disagree() {
    let records =
        [record(at(10), "CREATE TABLE t (a INT, b INT)", vec![create("d.t", &["image"])])];
    assert_eq!(columns(&replay(&records, &at(100)), "d.t"), ["image"]);
    let context = DdlContext::default();
    let options = RecoverOptions { prefer_ddl: true, ..RecoverOptions::new(&context) };
    assert_eq!(columns(&recover(&records, "inv", &at(100), &options).unwrap(), "d.t"), ["a", "b"]);
}

#[test]
fn a_statement_that_cannot_be_applied_fails_or_is_counted_as_configured() {
    let records = [
        record(at(10), "CREATE TABLE t (a INT)", vec![]),
        record(at(20), "ALTER TABLE t DROP COLUMN", vec![]),
        record(at(30), "CREATE TABLE u (b INT)", vec![]),
    ];
    let context = DdlContext::default();
    let options = RecoverOptions::new(&context);
    let error = recover(&records, "inv", &at(100), &options).unwrap_err();
    assert!(matches!(error, Error::Statement { record: 2, position: 20, .. }), "{error}");
    assert_eq!(error.class(), crate::ErrorClass::Data);
    let options = RecoverOptions { skip_unparseable: true, ..options };
    let recovered = recover(&records, "inv", &at(100), &options).unwrap();
    assert_eq!((recovered.report.unparseable, recovered.report.applied), (1, 2));
}

#[test]
fn a_streamed_statement_that_was_recorded_twice_is_applied_once() {
    let rename = record(at(20), "ALTER TABLE t RENAME COLUMN a TO b", vec![]);
    let records = [record(at(10), "CREATE TABLE t (a INT)", vec![]), rename.clone(), rename];
    let recovered = replay(&records, &at(100));
    assert_eq!(columns(&recovered, "d.t"), ["b"]);
    assert_eq!(recovered.report.duplicates, 1);
    // Snapshots at one place repeat their statements, and the last one counts.
    let drop = record(snapshot(at(10)), "DROP TABLE IF EXISTS `d`.`t`", vec![]);
    let one = record(snapshot(at(10)), "CREATE TABLE t (a INT)", vec![]);
    let two = record(snapshot(at(10)), "CREATE TABLE t (a INT, b INT)", vec![]);
    let records = [drop.clone(), one.clone(), drop.clone(), two, drop, one];
    assert_eq!(columns(&replay(&records, &at(100)), "d.t"), ["a"]);
}

#[test]
fn statements_up_to_the_refresh_head_may_be_in_effect_already() {
    let mut refreshed = ours(snapshot(at(100)), 1);
    refreshed.holdfast.as_mut().unwrap().refresh_head = Some(format!("{FILE}:300"));
    let add = |pos| record(ours(at(pos), 1), "ALTER TABLE t ADD COLUMN b INT", vec![]);
    let image =
        record(refreshed, "CREATE TABLE t (a INT, b INT)", vec![create("d.t", &["a", "b"])]);
    let recovered = replay(&[image.clone(), add(200)], &ours(at(400), 1));
    assert_eq!(columns(&recovered, "d.t"), ["a", "b"]);
    let context = DdlContext::default();
    let beyond =
        recover(&[image, add(301)], "inv", &ours(at(400), 1), &RecoverOptions::new(&context));
    assert!(matches!(beyond, Err(Error::Statement { record: 2, .. })));
}

#[test]
fn filtered_statements_are_left_out() {
    let filter = |sql: &str| sql.starts_with("CREATE TABLE rds");
    let context = DdlContext::default();
    let options = RecoverOptions { ddl_filter: Some(&filter), ..RecoverOptions::new(&context) };
    let records = [record(at(10), "CREATE TABLE rds_heartbeat (a INT)", vec![])];
    let recovered = recover(&records, "inv", &at(100), &options).unwrap();
    assert_eq!((recovered.report.without_effect, recovered.tables.len()), (1, 0));
}

/// See the codec's tests.
const DEBEZIUM_FILE: &str = include_str!("../codec/golden/debezium-3.6.3-mysql-9.7.jsonl");

#[test]
fn a_history_of_debezium_gives_the_same_tables_by_images_and_by_statements_at_every_offset() {
    let read = |line| crate::codec::read_record(line).unwrap().0;
    let records: Vec<HistoryRecord> = DEBEZIUM_FILE.lines().map(read).collect();
    let context = DdlContext { comments: true, ..DdlContext::default() };
    let mut seen = Vec::new();
    for record in &records {
        let recover_by = |prefer_ddl| {
            let options = RecoverOptions { prefer_ddl, ..RecoverOptions::new(&context) };
            recover(&records, "spa", &record.position, &options).unwrap()
        };
        let (images, statements) = (recover_by(false), recover_by(true));
        // Debezium was restarted after the snapshot and lost the comment of `t` there, so its later images have none.
        let without_comment = |table: &Arc<Table>| Table { comment: None, ..Table::clone(table) };
        let tables = |recovered: &Recovered| {
            recovered.tables.iter().map(without_comment).collect::<Vec<_>>()
        };
        assert_eq!(tables(&images), tables(&statements), "at {}", record.position.pos);
        assert_eq!(images.report.origins, statements.report.origins);
        let names: Vec<String> = images.tables.iter().map(|table| table.id.to_string()).collect();
        seen.push(format!("{} {}", record.position.pos, names.join(" ")));
    }
    seen.dedup();
    let expected = [
        "1063 spa.a1 spa.t",
        "1616 spa.a1 spa.t",
        "1798 spa.b1 spa.t",
        "1984 spa.b1 spa.c1 spa.t",
        "2191 spa.t",
        "2378 spa.t",
    ];
    assert_eq!(seen, expected);
    // The offset that Debezium stores for a statement has the GTIDs before it, so a restart delivers the statement again.
    let recovered =
        recover(&records, "spa", &records[13].position, &RecoverOptions::new(&context)).unwrap();
    let again = |end_position, ddl| StreamedStatement {
        file: "mysql-bin.000001",
        unit_position: None,
        end_position,
        ddl,
    };
    assert_eq!(recovered.guard.find(&again(2378, "create index i on t(n)")), Some(14));
    assert_eq!(recovered.guard.find(&again(2191, "drop table c1, b1")), Some(12));
}

#[tokio::test]
async fn a_store_is_replayed_line_by_line_with_the_same_outcome() {
    let history = MemoryHistory::new();
    let store = history.open().unwrap();
    let records = [
        record(at(100), "create", vec![create("d.t", &["id"]), create("d.a", &["id"])]),
        record(at(110), "create", vec![create("e.u", &["id"])]),
        record(at(120), "rename", vec![alter("d.b", &["id"], Some("d.a"))]),
        record(at(130), "CREATE TABLE s (id INT)", vec![]),
        record(at(300), "create", vec![create("d.v", &["id"])]),
    ];
    store.append(&records).await.unwrap();
    let context = DdlContext::default();
    let options = RecoverOptions::new(&context);
    let offset = at(200);
    let by_line = recover_store(&store, "inv", &offset, &options).await.unwrap();
    let in_memory = recover(&records, "inv", &offset, &options).unwrap();
    assert_eq!(by_line.tables, in_memory.tables);
    assert_eq!(by_line.report, in_memory.report);
    assert_eq!(by_line.guard, in_memory.guard);

    let wanted = |id: &TableId| id.database == "d" && id.table != "t";
    let options = RecoverOptions { tables: Some(&wanted), ..options };
    let filtered = recover_store(&store, "inv", &offset, &options).await.unwrap();
    let names: Vec<String> = filtered.tables.iter().map(|table| table.id.to_string()).collect();
    assert_eq!(names, ["d.b", "d.s", "d.t"]);
    assert_eq!(filtered.report.unwanted, 1);
}

#[tokio::test]
async fn a_record_whose_definitions_cannot_be_read_names_its_line() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("history.dat");
    let good = DEBEZIUM_FILE.lines().nth(6).unwrap();
    let bad = good.replace("\"optional\":false", "\"optional\":7");
    let context = DdlContext::default();
    let options = RecoverOptions::new(&context);
    let offset =
        SourceOffset { file: "mysql-bin.000001".into(), pos: 9999, ..SourceOffset::default() };

    std::fs::write(&path, format!("{good}\n{bad}\n")).unwrap();
    let store = FileHistoryStore::open_read_only(&path);
    let error = recover_store(&store, "spa", &offset, &options).await.unwrap_err();
    let text = format!("{}, line 2: history record cannot be read", path.display());
    assert_eq!(error.to_string(), text);
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.starts_with("member 'tableChanges[0].table.columns[0].optional'"), "{cause}");

    // One that is replaced further on is of no account.
    std::fs::write(&path, format!("{good}\n{bad}\n{good}\n")).unwrap();
    let recovered = recover_store(&store, "spa", &offset, &options).await.unwrap();
    assert_eq!(recovered.report.origins.values().collect::<Vec<_>>(), [&3]);
}

const FILE: &str = "mysql-bin.000003";
const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn replay(records: &[HistoryRecord], offset: &SourceOffset) -> Recovered {
    let context = DdlContext::default();
    recover(records, "inv", offset, &RecoverOptions::new(&context)).unwrap()
}

fn at(pos: u64) -> SourceOffset {
    SourceOffset { file: FILE.into(), pos, ..SourceOffset::default() }
}

fn snapshot(offset: SourceOffset) -> SourceOffset {
    SourceOffset { snapshot: Some(SnapshotKind::Initial), ..offset }
}

fn ours(offset: SourceOffset, epoch: u64) -> SourceOffset {
    let members =
        HoldfastMembers { lineage: Some("A".into()), epoch, ..HoldfastMembers::default() };
    SourceOffset { holdfast: Some(members), ..offset }
}

fn record(position: SourceOffset, ddl: &str, table_changes: Vec<TableChange>) -> HistoryRecord {
    HistoryRecord {
        source: "inv".into(),
        position,
        ts_ms: 0,
        database_name: "d".into(),
        ddl: Some(ddl.into()),
        table_changes,
    }
}

fn id(name: &str) -> TableId {
    let (database, table) = name.split_once('.').unwrap();
    TableId::new(database, table)
}

fn table(name: &str, columns: &[&str]) -> Arc<Table> {
    let columns = columns.iter().map(|name| Column::new(*name, "INT", JdbcType::INTEGER)).collect();
    Arc::new(Table { columns, ..Table::new(id(name)) })
}

fn create(name: &str, columns: &[&str]) -> TableChange {
    TableChange::Create(table(name, columns))
}

fn alter(name: &str, columns: &[&str], previous: Option<&str>) -> TableChange {
    TableChange::Alter { table: table(name, columns), previous: previous.map(id) }
}

fn columns(recovered: &Recovered, name: &str) -> Vec<String> {
    let table = recovered.tables.get(&id(name)).unwrap();
    table.columns.iter().map(|column| column.name.clone()).collect()
}
