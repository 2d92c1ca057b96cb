use proptest::prelude::*;

use super::*;
use crate::offset::SnapshotKind;
use crate::schema::TableId;

/// A record as Debezium writes it: every kind of column member is there.
const CREATE: &str = concat!(
    r#"{"source":{"server":"RW_CDC_1001"},"#,
    r#""position":{"ts_sec":1767225600,"file":"mysql-bin.000012","pos":1534,"server_id":0,"snapshot":"INITIAL"},"#,
    r#""ts_ms":1767225600123,"databaseName":"shop","ddl":"CREATE TABLE `item` (...)","#,
    r#""tableChanges":[{"type":"CREATE","id":"\"shop\".\"item\"","table":{"defaultCharsetName":"utf8mb4","#,
    r#""primaryKeyColumnNames":["id"],"columns":["#,
    r#"{"name":"id","jdbcType":-5,"typeName":"BIGINT UNSIGNED","typeExpression":"BIGINT UNSIGNED","charsetName":null,"#,
    r#""position":1,"optional":false,"autoIncremented":true,"generated":true,"comment":null,"#,
    r#""hasDefaultValue":false,"enumValues":[]},"#,
    r#"{"name":"price","jdbcType":3,"typeName":"DECIMAL","typeExpression":"DECIMAL","charsetName":null,"length":10,"#,
    r#""scale":3,"position":2,"optional":false,"autoIncremented":false,"generated":false,"comment":"net","#,
    r#""hasDefaultValue":true,"defaultValueExpression":"1.5","enumValues":[]},"#,
    r#"{"name":"kind","jdbcType":1,"typeName":"ENUM","typeExpression":"ENUM","charsetName":"latin1","length":1,"#,
    r#""position":3,"optional":true,"autoIncremented":false,"generated":false,"comment":null,"#,
    r#""hasDefaultValue":true,"enumValues":["'x'","'it''s'"]}"#,
    r#"],"attributes":[]},"comment":"goods"}]}"#
);

/// The same table in a schema change record.
const CREATE_CONNECT: &str = concat!(
    r#"[{"type":"CREATE","id":"\"shop\".\"item\"","table":{"defaultCharsetName":"utf8mb4","#,
    r#""primaryKeyColumnNames":["id"],"columns":["#,
    r#"{"name":"id","jdbcType":-5,"nativeType":null,"typeName":"BIGINT UNSIGNED","typeExpression":"BIGINT UNSIGNED","#,
    r#""charsetName":null,"length":null,"scale":null,"position":1,"optional":false,"autoIncremented":true,"#,
    r#""generated":true,"comment":null,"defaultValueExpression":null,"enumValues":null},"#,
    r#"{"name":"price","jdbcType":3,"nativeType":null,"typeName":"DECIMAL","typeExpression":"DECIMAL","#,
    r#""charsetName":null,"length":10,"scale":3,"position":2,"optional":false,"autoIncremented":false,"#,
    r#""generated":false,"comment":"net","defaultValueExpression":"1.5","enumValues":null},"#,
    r#"{"name":"kind","jdbcType":1,"nativeType":null,"typeName":"ENUM","typeExpression":"ENUM","#,
    r#""charsetName":"latin1","length":1,"scale":null,"position":3,"optional":true,"autoIncremented":false,"#,
    r#""generated":false,"comment":null,"defaultValueExpression":null,"enumValues":["'x'","'it''s'"]}"#,
    r#"],"comment":"goods"}}]"#
);

const RENAME: &str = concat!(
    r#"{"source":{"server":"spa"},"position":{"ts_sec":1,"file":"b.000001","pos":9,"server_id":7},"ts_ms":5,"#,
    r#""databaseName":"a","ddl":"rename table a1 to b1","tableChanges":[{"type":"ALTER","id":"\"a\".\"b1\"","#,
    r#""previousId":"\"a\".\"a\"\"1\"","table":{"defaultCharsetName":null,"primaryKeyColumnNames":[],"columns":[],"#,
    r#""attributes":[]},"comment":null},{"type":"DROP","id":"\"a\".\"c\""}]}"#
);

const SET: &str = concat!(
    r#"{"source":{"server":"spa"},"position":{"file":"b.000001","pos":9},"ts_ms":5,"databaseName":"","#,
    r#""ddl":"SET character_set_server=utf8mb4, collation_server=utf8mb4_0900_ai_ci","tableChanges":[]}"#
);

#[test]
fn records_have_the_bytes_that_debezium_writes() {
    for line in [CREATE, RENAME, SET] {
        let (record, group) = read_record(line).unwrap();
        assert_eq!(group, None);
        let mut out = Vec::new();
        write_record(&record, None, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), line);
    }
}

/// The history file of a real run: Debezium 3.6.3.Final, MySQL 9.7.4, GTIDs on, `include.schema.comments=true`; a snapshot
/// of two tables with every kind of column, then ALTER, RENAME, CREATE, DROP of two tables, and CREATE INDEX.
const DEBEZIUM_FILE: &str = include_str!("golden/debezium-3.6.3-mysql-9.7.jsonl");

#[test]
fn a_history_file_of_debezium_survives_reading_and_writing_byte_for_byte() {
    let mut out = Vec::new();
    for line in DEBEZIUM_FILE.lines() {
        let (record, group) = read_record(line).unwrap();
        assert_eq!((record.source.as_str(), group), ("spa", None));
        write_record(&record, None, &mut out);
        out.push(b'\n');
    }
    assert_eq!(String::from_utf8(out).unwrap(), DEBEZIUM_FILE);
    assert_eq!(DEBEZIUM_FILE.lines().count(), 14);
}

#[test]
fn what_a_record_says_arrives_in_the_model() {
    let (record, _) = read_record(CREATE).unwrap();
    assert_eq!(record.source, "RW_CDC_1001");
    assert_eq!(record.position.snapshot, Some(SnapshotKind::Initial));
    assert_eq!(record.ts_ms, 1_767_225_600_123);
    let TableChange::Create(table) = &record.table_changes[0] else { panic!("not a CREATE") };
    assert_eq!(table.id, TableId::new("shop", "item"));
    assert_eq!(table.comment.as_deref(), Some("goods"));
    let defaults: Vec<_> = table.columns.iter().map(|column| column.default.clone()).collect();
    assert_eq!(
        defaults,
        [DefaultValue::Absent, DefaultValue::Expression("1.5".into()), DefaultValue::Null]
    );
    assert_eq!(table.columns[2].enum_values, ["'x'", "'it''s'"]);

    let (record, _) = read_record(RENAME).unwrap();
    let TableChange::Alter { previous, .. } = &record.table_changes[0] else {
        panic!("not an ALTER")
    };
    assert_eq!(previous, &Some(TableId::new("a", "a\"1")));
    assert_eq!(record.table_changes[1], TableChange::Drop(TableId::new("a", "c")));
}

#[test]
fn schema_change_records_have_all_members() {
    let (record, _) = read_record(CREATE).unwrap();
    let mut out = Vec::new();
    write_table_changes_connect(&record.table_changes, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), CREATE_CONNECT);

    let mut out = Vec::new();
    write_table_changes_connect(&[TableChange::Drop(TableId::new("gold", "q`\"t"))], &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"[{"type":"DROP","id":"\"gold\".\"q`\"\"t\"","table":null}]"#
    );
}

#[test]
fn a_table_comment_is_found_beside_the_table_and_inside_it() {
    let comment = |line: &str| {
        let (record, _) = read_record(line).unwrap();
        let TableChange::Create(table) = &record.table_changes[0] else { panic!("not a CREATE") };
        table.comment.clone()
    };
    let inside = CREATE.replace(
        r#""attributes":[]},"comment":"goods""#,
        r#""attributes":[],"comment":"inner"},"comment":null"#,
    );
    assert_eq!(comment(CREATE).as_deref(), Some("goods"));
    assert_eq!(comment(&inside).as_deref(), Some("inner"));
}

#[test]
fn computed_columns_are_an_attribute_of_the_table() {
    let attribute = r#"[{"name":"holdfast.computed.columns","value":"[\"price\",\"kind\"]"}]"#;
    let line = CREATE.replace(r#""attributes":[]"#, &format!(r#""attributes":{attribute}"#));
    assert_ne!(line, CREATE);
    let (record, group) = read_record(&line).unwrap();
    let TableChange::Create(table) = &record.table_changes[0] else { panic!("not a CREATE") };
    let flags: Vec<bool> = table.columns.iter().map(|column| column.is_computed).collect();
    assert_eq!(flags, [false, true, true]);
    let mut out = Vec::new();
    write_record(&record, group, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), line);
    // Schema change records have no attributes, and those of others mean nothing here.
    let mut out = Vec::new();
    write_table_changes_connect(&record.table_changes, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), CREATE_CONNECT);
    let foreign = line.replace("holdfast.computed.columns", "other");
    assert_eq!(read_record(&foreign).unwrap().0, read_record(CREATE).unwrap().0);
    let broken = line.replace(r#"[\"price\","#, "{");
    assert!(read_record(&broken).unwrap_err().to_string().contains("attributes"));
}

#[test]
fn members_that_old_versions_leave_out_are_optional() {
    let line = r#"{"source":{"server":"s"},"position":{"file":"b.1","pos":4},"tableChanges":[{"type":"CREATE",
        "id":"db.t","table":{"columns":[{"name":"b","jdbcType":4,"typeName":"INT","position":2,"optional":true,
        "autoIncremented":false,"generated":false},{"name":"a","jdbcType":4,"typeExpression":"INT","position":1,
        "optional":true,"autoIncremented":false,"generated":false}]}}],"schemaName":null,"more":{}}"#;
    let (record, _) = read_record(&line.replace('\n', " ")).unwrap();
    let TableChange::Create(table) = &record.table_changes[0] else { panic!("not a CREATE") };
    assert_eq!(table.id, TableId::new("db", "t"));
    assert_eq!(
        table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert_eq!((record.ts_ms, record.database_name.as_str(), record.ddl), (0, "", None));
}

#[test]
fn a_wrong_record_names_the_member_by_its_path() {
    let cases = [
        ("", "not a JSON object (column 0)"),
        (r#"{"source":{},"position":{"file":"b.1"}}"#, "member 'source.server' is missing"),
        (
            r#"{"source":{"server":1},"position":{"file":"b.1"}}"#,
            "member 'source.server' is not a string",
        ),
        (r#"{"source":{"server":"s"}}"#, "member 'position' is missing"),
        (r#"{"source":{"server":"s"},"position":{}}"#, "member 'position' cannot be read"),
        (&CREATE.replace("1767225600123", "\"x\""), "member 'ts_ms' is not a whole number"),
        (
            &CREATE.replace(r#""name":"price","#, ""),
            "member 'tableChanges[0].table.columns[1].name' is missing",
        ),
        (
            &CREATE.replace(r#""length":10"#, r#""length":10000000000"#),
            "member 'tableChanges[0].table.columns[1].length' is not a whole number of 32 bits",
        ),
        (
            &CREATE.replace(r#""position":2"#, r#""position":7"#),
            "member 'tableChanges[0].table.columns' is not a list with the positions 1, 2, 3 and so on",
        ),
        (
            &CREATE.replace("CREATE\"", "MAKE\""),
            "member 'tableChanges[0].type' is not one of CREATE, ALTER, DROP",
        ),
        (
            &CREATE.replace(r#""\"shop\".\"item\"""#, r#""\"shop\"""#),
            "member 'tableChanges[0].id' is not a quoted database and table name",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(read_record(line).unwrap_err().to_string(), message, "{line}");
    }
}

#[test]
fn a_group_is_read_back_and_stands_last() {
    let (record, _) = read_record(SET).unwrap();
    let mut out = Vec::new();
    let group = Group { index: 2, count: 5 };
    write_record(&record, Some(group), &mut out);
    let line = String::from_utf8(out).unwrap();
    assert!(line.ends_with(r#""tableChanges":[],"holdfast_group":"2/5"}"#), "{line}");
    assert_eq!(read_record(&line).unwrap(), (record, Some(group)));
    for bad in ["6/5", "0/5", "5", "a/b"] {
        assert!(read_record(&line.replace("2/5", bad)).is_err(), "{bad}");
    }
}

#[test]
fn the_fast_way_takes_what_is_written_and_nothing_that_the_slow_way_reads_otherwise() {
    for line in [CREATE, RENAME, SET] {
        assert!(RecordLine::parse(line).unwrap().raw_changes().is_some());
        both_ways(line);
    }
    let changed = [
        ("\"source\":{\"server\":\"RW_CDC_1001\"}", "\"source\":[\"RW_CDC_1001\"]"),
        ("\"type\":\"CREATE\"", "\"type\":{\"CREATE\":null}"),
        ("\"type\":\"CREATE\"", "\"type\":\"CR\\u0045ATE\""),
        ("\"attributes\":[]", "\"attributes\":[],\"columns\":[]"),
        ("\"attributes\":[]", "\"comment\":\"inside\""),
        ("\"comment\":\"goods\"", "\"comment\":null"),
        ("\"comment\":\"goods\"", "\"comment\":1"),
        ("\"position\":3", "\"position\":4"),
        ("\"position\":3", "\"position\":3.0"),
        ("\"typeName\":\"ENUM\",", ""),
        ("\"ts_ms\":1767225600123", "\"ts_ms\":null"),
        ("\"ts_ms\":1767225600123,", "\"holdfast_group\":null,"),
        ("\"ts_ms\":1767225600123,", "\"tableChanges\":null,"),
        ("\"databaseName\":\"shop\"", "\"databaseName\":1"),
        ("\"ddl\":\"CREATE TABLE `item` (...)\"", "\"ddl\":null"),
    ];
    for (from, to) in changed {
        let line = CREATE.replacen(from, to, 1);
        assert_ne!(line, CREATE, "{from}");
        both_ways(&line);
    }
}

#[test]
fn a_line_with_white_space_between_its_tokens_is_read_the_fast_way_too() {
    for line in [CREATE, RENAME, SET].into_iter().chain(DEBEZIUM_FILE.lines()) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let spaced = serde_json::to_string_pretty(&value).unwrap().replace('\n', "\t");
        let read = RecordLine::parse(&spaced).unwrap();
        assert!(read.raw_changes().is_some());
        assert_eq!(read.to_record(), RecordLine::parse(line).unwrap().to_record());
        both_ways(&spaced);
    }
}

#[test]
fn damage_in_a_definition_that_nobody_needs_is_an_error_all_the_same() {
    let damaged = [
        ("\"jdbcType\":3", "\"jdbcType\":03"),
        ("\"jdbcType\":3", "\"jdbcType\" 3"),
        ("\"comment\":\"net\"", "\"comment\":\"n\u{1}t\""),
        ("\"comment\":\"net\"", "\"comment\":\"\\x\""),
        ("\"enumValues\":[]},", "\"enumValues\":[},"),
        ("\"optional\":true", "\"optional\":tru"),
        ("],\"attributes\"", "}],\"attributes\""),
    ];
    for (from, to) in damaged {
        let line = CREATE.replacen(from, to, 1);
        assert_ne!(line, CREATE, "{from}");
        let error = RecordLine::parse(&line).unwrap_err();
        assert!(matches!(error, RecordError::NotAnObject { column: 1.. }), "{line}: {error}");
    }
}

/// Asserts that a line is read the same with and without the short cuts.
fn both_ways(line: &str) {
    let slow = RecordLine::parse_members(line).and_then(|line| line.to_record());
    let fast = RecordLine::parse(line).and_then(|line| line.to_record());
    match (fast, slow) {
        (Ok(fast), Ok(slow)) => assert_eq!(fast, slow),
        (fast, slow) => assert_eq!(fast.is_err(), slow.is_err(), "{fast:?} {slow:?} {line}"),
    }
}

proptest! {
    #[test]
    fn any_text_is_a_record_or_an_error(line in ".{0,200}") {
        let _ = read_record(&line);
    }

    #[test]
    fn a_cut_or_changed_record_never_panics(
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in 0x20_u8..0x7f,
    ) {
        for line in [CREATE, RENAME, SET] {
            let mut bytes = line.as_bytes().to_vec();
            bytes[at.index(line.len())] = byte;
            both_ways(std::str::from_utf8(&bytes).unwrap());
        }
        prop_assert!(read_record(&CREATE[..cut.index(CREATE.len())]).is_err());
    }

    #[test]
    fn any_json_value_is_table_changes_or_an_error(json in "[\\[\\]{}\",:a-z0-9 ]{0,60}") {
        if let Ok(value) = serde_json::from_str(&json) {
            let _ = read_table_changes(&value);
        }
    }
}
