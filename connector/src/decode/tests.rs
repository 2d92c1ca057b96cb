//! Made-up logs in, text out.

use std::sync::{Arc, Mutex};

use holdfast_binlog::testkit::{LogBuilder, LogOptions, TestColumn, TestServer, TestValue};
use holdfast_history::store::{HistoryStore as _, MemoryHistory};
use holdfast_history::{HistoryRecord, SourceOffset};

use super::workers::OUTPUT_BUFFER;
use super::*;

const GTID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23";

/// Two inserts, an update and a delete on `d.t (INT, VARCHAR(20))`, in one transaction.
fn rows(log: LogBuilder, optional: &[u8]) -> LogBuilder {
    let columns = [TestColumn::int(), TestColumn::varchar(80).nullable()];
    let (one, two) = ([TestValue::Int(-1), "a'b\n".into()], [TestValue::Int(2), TestValue::Null]);
    log.gtid(GTID.parse().unwrap())
        .begin()
        .rows_query("INSERT INTO t VALUES …")
        .table_map_with(7, "d", "t", &columns, optional)
        .write_rows(7, &[&one, &two])
        .update_rows(7, &[(&two, &one)])
        .delete_rows(7, &[&one])
        .xid(9)
}

fn log() -> LogBuilder {
    rows(LogBuilder::new("mysql-bin.000001"), &[])
}

/// Names `id` and `name`, the number unsigned, the text in latin1.
const METADATA: &[u8] = b"\x01\x01\x80\x02\x01\x08\x04\x08\x02id\x04name";

fn input(name: &str, bytes: Vec<u8>) -> Input {
    Input::Reader { name: name.to_owned(), reader: Box::new(io::Cursor::new(bytes)) }
}

/// What is printed for one log, and the error.
fn print(log: LogBuilder, definitions: Definitions, options: Options) -> (String, Option<String>) {
    print_bytes(log.into_bytes(), definitions, options)
}

fn print_bytes(
    log: Vec<u8>,
    definitions: Definitions,
    options: Options,
) -> (String, Option<String>) {
    let mut out = Vec::new();
    let result = decode(vec![input("mysql-bin.000001", log)], definitions, options, &mut out);
    (String::from_utf8(out).unwrap(), result.err().map(|error| error.chain()))
}

fn json(log: LogBuilder, definitions: Definitions) -> Vec<String> {
    let (text, error) = print(log, definitions, Options::new(Format::Json));
    assert_eq!(error, None);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    text.lines().map(str::to_owned).collect()
}

/// The images of a row's line.
fn images(line: &str) -> &str {
    line.split_once("\"before\":").unwrap().1
}

fn sql(text: &str) -> Definitions {
    Definitions::Sql { name: "schema.sql".to_owned(), text: text.to_owned() }
}

#[test]
fn a_row_is_a_line_with_its_place_and_columns_by_number() {
    let lines = json(log(), Definitions::Log);
    assert_eq!(
        lines,
        [
            r#"{"file":"mysql-bin.000001","pos":349,"row":0,"ts_ms":1700000000000,"server_id":1,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","op":"c","database":"d","table":"t","before":null,"after":{"@1":-1,"@2":"a'b\n"}}"#,
            r#"{"file":"mysql-bin.000001","pos":349,"row":1,"ts_ms":1700000000000,"server_id":1,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","op":"c","database":"d","table":"t","before":null,"after":{"@1":2,"@2":null}}"#,
            r#"{"file":"mysql-bin.000001","pos":399,"row":0,"ts_ms":1700000000000,"server_id":1,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","op":"u","database":"d","table":"t","before":{"@1":2,"@2":null},"after":{"@1":-1,"@2":"a'b\n"}}"#,
            r#"{"file":"mysql-bin.000001","pos":450,"row":0,"ts_ms":1700000000000,"server_id":1,"gtid":"3e11fa47-71ca-11e1-9e33-c80aa9429562:23","op":"d","database":"d","table":"t","before":{"@1":-1,"@2":"a'b\n"},"after":null}"#,
        ]
    );
}

#[test]
fn names_signs_and_character_sets_come_from_full_row_metadata() {
    let columns = [TestColumn::int(), TestColumn::varchar(80)];
    let row = [TestValue::Int(-1), TestValue::Bytes(b"\xe9".to_vec())];
    let log = LogBuilder::new("mysql-bin.000001")
        .table_map_with(7, "d", "t", &columns, METADATA)
        .write_rows(7, &[&row]);
    let lines = json(log, Definitions::Log);
    assert_eq!(images(&lines[0]), r#"null,"after":{"id":4294967295,"name":"é"}}"#);
    assert!(lines[0].contains(r#""gtid":null,"#));
}

#[test]
fn enum_and_set_are_numbers_unless_there_are_labels() {
    let columns = [TestColumn::raw(254, &[247, 1]), TestColumn::raw(254, &[248, 1])];
    let row = [TestValue::Raw(vec![2]), TestValue::Raw(vec![3])];
    let build = |optional: &[u8]| {
        LogBuilder::new("mysql-bin.000001")
            .table_map_with(7, "d", "t", &columns, optional)
            .write_rows(7, &[&row])
    };
    let labels = b"\x05\x05\x02\x01x\x01y\x06\x07\x02\x01a\x03b'c";
    for (optional, definitions, expected) in [
        (&[][..], Definitions::Log, r#"{"@1":2,"@2":3}"#),
        (labels, Definitions::Log, r#"{"@1":"b'c","@2":"x,y"}"#),
        (&[], sql("CREATE TABLE d.t (e ENUM('p','q'), s SET('r','s'))"), r#"{"e":"q","s":"r,s"}"#),
    ] {
        let lines = json(build(optional), definitions);
        assert_eq!(images(&lines[0]), format!("null,\"after\":{expected}}}"));
    }
}

#[test]
fn a_schema_names_the_columns_and_ddl_in_the_log_moves_it_on() {
    let columns = [TestColumn::int(), TestColumn::varchar(80).nullable(), TestColumn::tinyint()];
    let log = rows(LogBuilder::new("mysql-bin.000001"), &[])
        .query("d", "ALTER TABLE t ADD flag TINYINT UNSIGNED NOT NULL")
        .table_map(8, "d", "t", &columns)
        .write_rows(8, &[&[TestValue::Int(3), TestValue::Null, TestValue::Int(-1)]])
        .table_map(9, "d", "other", &columns)
        .write_rows(9, &[&[TestValue::Int(3), TestValue::Null, TestValue::Int(-1)]]);
    let schema = "USE d; CREATE TABLE t (id INT NOT NULL, name VARCHAR(20) DEFAULT 'x');";
    let lines = json(log, sql(schema));
    assert_eq!(images(&lines[1]), r#"null,"after":{"id":2,"name":null}}"#);
    assert!(lines[4].ends_with(
        r#","gtid":null,"kind":"statement","database":"d","statement":"ALTER TABLE t ADD flag TINYINT UNSIGNED NOT NULL"}"#
    ));
    assert_eq!(images(&lines[5]), r#"null,"after":{"id":3,"name":null,"flag":255}}"#);
    assert_eq!(images(&lines[6]), r#"null,"after":{"@1":3,"@2":null,"@3":-1}}"#);
    assert_eq!(lines.len(), 7);
}

#[test]
fn text_has_as_many_bits_as_are_declared_and_vectors_as_numbers() {
    // BIT(3), BIT(9) and BIT(16): the bits beside whole bytes, then the bytes; VECTOR with a length of four bytes.
    let columns = [
        TestColumn::raw(16, &[3, 0]),
        TestColumn::raw(16, &[1, 1]),
        TestColumn::raw(16, &[0, 2]),
        TestColumn::raw(242, &[4]),
    ];
    let vector = [8_u32.to_le_bytes(), 1.5_f32.to_le_bytes(), (-0.25_f32).to_le_bytes()].concat();
    let row = [
        TestValue::Raw(vec![5]),
        TestValue::Raw(vec![1, 0]),
        TestValue::Raw(vec![1, 2]),
        TestValue::Raw(vector),
    ];
    let log =
        LogBuilder::new("mysql-bin.000001").table_map(7, "d", "t", &columns).write_rows(7, &[&row]);
    let (text, error) = print(log, Definitions::Log, Options::new(Format::Text));
    assert_eq!(error, None);
    for line in ["@1=b'101'", "@2=b'100000000'", "@3=b'0000000100000010'", "@4=[1.5,-0.25]"] {
        assert!(text.contains(&format!("###   {line}\n")), "{line}: {text}");
    }
}

#[test]
fn a_definition_that_does_not_fit_is_an_error_that_names_the_place() {
    for (schema, expected) in [
        (
            "CREATE TABLE d.t (id INT)",
            "rows of d.t in mysql-bin.000001 at 349 have 2 columns and their definition has 1; definitions must be \
             those at the start of the first file, or at the offset of the history",
        ),
        (
            "CREATE TABLE d.t (id INT, name INT)",
            "cannot convert a row of d.t in mysql-bin.000001 at 349: column 1 `name` of type Int { unsigned: false } \
             does not convert to an integer: found a value of kind bytes; the table definition does not fit the data",
        ),
        (
            "CREATE TABLE d.t (id INT",
            "schema.sql, line 1: the statement can't be understood: expected `,` or `)` after a column or index, \
             found the end at byte 24 of the statement on table d.t",
        ),
    ] {
        let (text, error) = print(log(), sql(schema), Options::new(Format::Json));
        assert_eq!((text.as_str(), error.as_deref()), ("", Some(expected)));
    }
}

#[tokio::test]
async fn a_history_gives_the_definitions_at_an_offset() {
    let store = MemoryHistory::new().open().unwrap();
    let at = |pos| {
        SourceOffset::from_json(&format!(r#"{{"file":"mysql-bin.000001","pos":{pos}}}"#)).unwrap()
    };
    let record = |source: &str, pos, ddl: &str| HistoryRecord {
        source: source.to_owned(),
        position: at(pos),
        ts_ms: 0,
        database_name: "d".to_owned(),
        ddl: Some(ddl.to_owned()),
        table_changes: Vec::new(),
    };
    let create = "CREATE TABLE t (id INT, name VARCHAR(20))";
    let log = LogBuilder::new("mysql-bin.000001").query("d", create);
    let end = log.position();
    let later = record("one", 100_000, "ALTER TABLE t DROP name");
    store.append(&[record("one", end, create), later]).await.unwrap();
    let offset = at(end).to_json();
    let definitions = Definitions::from_history(&store, None, &offset).await.unwrap();
    // The CREATE in the log is known already; the ALTER behind the offset is not.
    let log = rows(log, &[]).query("d", "ALTER TABLE t DROP name");
    let lines = json(log, definitions);
    assert_eq!(images(&lines[1]), r#"null,"after":{"id":-1,"name":"a'b\n"}}"#);
    assert_eq!(lines.len(), 6);

    store.append(&[record("two", 4, "CREATE TABLE u (a INT)")]).await.unwrap();
    let error = Definitions::from_history(&store, None, &offset).await.unwrap_err().to_string();
    assert!(error.ends_with("holds records of several sources (one, two): name one"), "{error}");
    assert!(Definitions::from_history(&store, Some("two"), &offset).await.is_ok());
    let error = Definitions::from_history(&store, None, "{").await.unwrap_err();
    assert!(matches!(error, DecodeError::Offset(_)));
}

#[test]
fn the_listing_shows_all_events_and_rows() {
    let log = rows(LogBuilder::new("mysql-bin.000001"), METADATA).query("d", "DROP TABLE t");
    let (text, error) = print(log, Definitions::Log, Options::new(Format::Text));
    assert_eq!(error, None);
    assert_eq!(
        text,
        "\
# at 4
#2023-11-14T22:13:20Z server id 1  end_log_pos 127  FORMAT_DESCRIPTION  server v 8.4.6
# at 127
#2023-11-14T22:13:20Z server id 1  end_log_pos 199  GTID  3e11fa47-71ca-11e1-9e33-c80aa9429562:23
# at 199
#2023-11-14T22:13:20Z server id 1  end_log_pos 257  QUERY  thread_id=8  exec_time=0  error_code=0
BEGIN
/*!*/;
# at 257
#2023-11-14T22:13:20Z server id 1  end_log_pos 305  ROWS_QUERY
# INSERT INTO t VALUES …
# at 305
#2023-11-14T22:13:20Z server id 1  end_log_pos 365  TABLE_MAP  `d`.`t` mapped to number 7
# at 365
#2023-11-14T22:13:20Z server id 1  end_log_pos 415  WRITE_ROWS  table id 7  flags: STMT_END_F
### INSERT INTO `d`.`t`
### SET
###   @1=4294967295 /* id */
###   @2='a\\x27b\\x0a' /* name */
### INSERT INTO `d`.`t`
### SET
###   @1=2 /* id */
###   @2=NULL /* name */
# at 415
#2023-11-14T22:13:20Z server id 1  end_log_pos 466  UPDATE_ROWS  table id 7  flags: STMT_END_F
### UPDATE `d`.`t`
### WHERE
###   @1=2 /* id */
###   @2=NULL /* name */
### SET
###   @1=4294967295 /* id */
###   @2='a\\x27b\\x0a' /* name */
# at 466
#2023-11-14T22:13:20Z server id 1  end_log_pos 511  DELETE_ROWS  table id 7  flags: STMT_END_F
### DELETE FROM `d`.`t`
### WHERE
###   @1=4294967295 /* id */
###   @2='a\\x27b\\x0a' /* name */
# at 511
#2023-11-14T22:13:20Z server id 1  end_log_pos 542  XID  Xid = 9
# at 542
#2023-11-14T22:13:20Z server id 1  end_log_pos 608  QUERY  thread_id=8  exec_time=0  error_code=0
use `d`;
DROP TABLE t
/*!*/;
"
    );
}

#[test]
fn counts_are_per_file_and_in_total() {
    let one = rows(LogBuilder::new("mysql-bin.000001"), &[])
        .query("d", "DROP TABLE t")
        .rotate("mysql-bin.000002");
    let two = LogBuilder::new("mysql-bin.000002")
        .anonymous_gtid()
        .compressed(|log| {
            log.begin()
                .table_map(7, "d", "t", &[TestColumn::int()])
                .write_rows(7, &[&[TestValue::Int(1)], &[TestValue::Int(2)]])
                .xid(10)
        })
        .stop();
    let sizes = [one.position() - 4, two.position() - 4];
    let inputs =
        vec![input("logs/mysql-bin.000001", one.into_bytes()), input("-", two.into_bytes())];
    let mut out = Vec::new();
    decode(inputs, Definitions::Log, Options::new(Format::Count), &mut out).unwrap();
    let expected = format!(
        "mysql-bin.000001 bytes={} events=11 transactions=2 rows=4 inserts=2 updates=1 deletes=1 QUERY=2 ROTATE=1 \
         FORMAT_DESCRIPTION=1 XID=1 TABLE_MAP=1 ROWS_QUERY=1 WRITE_ROWS=1 UPDATE_ROWS=1 DELETE_ROWS=1 GTID=1\n\
         - bytes={} events=8 transactions=1 rows=2 inserts=2 updates=0 deletes=0 QUERY=1 STOP=1 FORMAT_DESCRIPTION=1 \
         XID=1 TABLE_MAP=1 WRITE_ROWS=1 ANONYMOUS_GTID=1 TRANSACTION_PAYLOAD=1\n\
         total files=2 bytes={} events=19 transactions=3 rows=6 inserts=4 updates=1 deletes=1 QUERY=3 STOP=1 ROTATE=1 \
         FORMAT_DESCRIPTION=2 XID=2 TABLE_MAP=2 ROWS_QUERY=1 WRITE_ROWS=2 UPDATE_ROWS=1 DELETE_ROWS=1 GTID=1 \
         ANONYMOUS_GTID=1 TRANSACTION_PAYLOAD=1\n",
        sizes[0],
        sizes[1],
        sizes[0] + sizes[1]
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn mariadb_transactions_have_their_gtids() {
    let options = LogOptions { server: TestServer::MariaDb, ..LogOptions::default() };
    let log = LogBuilder::with_options("mysql-bin.000001", options)
        .mariadb_gtid("0-5-7".parse().unwrap(), MariaDbGtidEvent::STANDALONE)
        .query("d", "CREATE TABLE t (a INT)")
        .mariadb_gtid("0-5-8".parse().unwrap(), 0)
        .table_map(7, "d", "t", &[TestColumn::int()])
        .write_rows(7, &[&[TestValue::Int(1)]])
        .xid(1);
    let lines = json(log.clone(), sql(""));
    assert!(lines[0].contains(r#""server_id":5,"gtid":"0-5-7","kind":"statement""#), "{lines:?}");
    assert!(lines[1].contains(r#""gtid":"0-5-8","op":"c""#), "{lines:?}");
    assert_eq!(images(&lines[1]), r#"null,"after":{"a":1}}"#);
    let (text, _) = print(log, Definitions::Log, Options::new(Format::Count));
    assert!(text.contains(" transactions=2 rows=1 "), "{text}");
}

#[test]
fn rows_in_fragments_are_printed_once_they_are_whole() {
    let options = LogOptions { server: TestServer::MariaDb, ..LogOptions::default() };
    let rows = |log: LogBuilder| {
        log.table_map(7, "d", "t", &[TestColumn::int()])
            .write_rows(7, &[&[TestValue::Int(1)], &[TestValue::Int(2)]])
    };
    let log = LogBuilder::with_options("mysql-bin.000001", options)
        .mariadb_gtid("0-5-8".parse().unwrap(), 0)
        .in_fragments(&[25, 5], rows)
        .xid(1);
    let lines = json(log.clone(), sql("CREATE TABLE d.t (a INT)"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(images(&lines[1]), r#"null,"after":{"a":2}}"#);
    let (text, error) = print(log.clone(), Definitions::Log, Options::new(Format::Text));
    assert!(error.is_none(), "{error:?}");
    for line in ["PARTIAL_ROW_DATA  fragment 2 of 3\n", "WRITE_ROWS_V1  table id 7", "###   @1=2\n"]
    {
        assert!(text.contains(line), "{text}");
    }
    let (text, _) = print(log, Definitions::Log, Options::new(Format::Count));
    assert!(text.contains(" transactions=1 rows=2 "), "{text}");
}

#[test]
fn a_torn_file_is_an_error_after_everything_before_it() {
    let whole = log().into_bytes();
    let torn = whole[..whole.len() - 40].to_vec();
    for format in [Format::Json, Format::Text, Format::Count] {
        let (text, error) = print_bytes(torn.clone(), Definitions::Log, Options::new(format));
        let expected = match format {
            Format::Json => "\"after\":{\"@1\":-1,\"@2\":\"a'b\\n\"}}\n",
            Format::Text => "###   @2='a\\x27b\\x0a'\n",
            Format::Count => "ROWS_QUERY=1 WRITE_ROWS=1 UPDATE_ROWS=1 GTID=1\n",
        };
        assert!(text.ends_with(expected), "{text}");
        assert_eq!(
            error.as_deref(),
            Some("mysql-bin.000001 ends inside the event at 450: 45 bytes are needed, 36 are left")
        );
    }
}

#[test]
fn damage_is_an_error_that_names_file_position_and_event() {
    let mut damaged = log().into_bytes();
    damaged[440] ^= 1;
    for format in [Format::Json, Format::Text, Format::Count] {
        let (text, error) = print_bytes(damaged.clone(), Definitions::Log, Options::new(format));
        assert!(!text.is_empty());
        let error = error.unwrap();
        assert!(
            error.starts_with(
                "UPDATE_ROWS (31) event at mysql-bin.000001:399 is damaged: its checksum is "
            ),
            "{error}"
        );
    }
    let (text, error) =
        print_bytes(b"# at 4\n".to_vec(), Definitions::Log, Options::new(Format::Json));
    assert_eq!(text, "");
    assert_eq!(error.as_deref(), Some("mysql-bin.000001 is not a binlog: it begins like text"));
}

#[test]
fn positions_bound_the_first_and_the_last_file() {
    let lines = |start_position, stop_position| {
        let inputs = vec![
            input("mysql-bin.000001", log().into_bytes()),
            input("mysql-bin.000002", log().into_bytes()),
        ];
        let options = Options { start_position, stop_position, ..Options::new(Format::Json) };
        let mut out = Vec::new();
        decode(inputs, Definitions::Log, options, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().count()
    };
    assert_eq!(lines(None, None), 8);
    // The table map before the start is known; a position inside an event means the next one.
    assert_eq!(lines(Some(350), None), 6);
    assert_eq!(lines(Some(399), None), 6);
    assert_eq!(lines(None, Some(399)), 6);
    assert_eq!(lines(None, Some(398)), 6);
    assert_eq!(lines(Some(450), Some(4)), 1);
}

#[test]
fn columns_that_an_image_does_not_carry_are_left_out() {
    let columns = [TestColumn::int(), TestColumn::int()];
    let mut body = vec![7, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2, 0b01, 0b10];
    body.extend([0, 5, 0, 0, 0, 0, 6, 0, 0, 0]);
    let log = LogBuilder::new("mysql-bin.000001").table_map(7, "d", "t", &columns).event(
        holdfast_binlog::event::EventType::UpdateRows,
        0,
        &body,
    );
    let lines = json(log, Definitions::Log);
    assert_eq!(images(&lines[0]), r#"{"@1":5},"after":{"@2":6}}"#);
}

/// Takes so many bytes, then is closed or full.
struct Closing {
    taken: Arc<Mutex<usize>>,
    room: usize,
    error: ErrorKind,
}

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.taken.lock().unwrap();
        if *taken + bytes.len() > self.room {
            return Err(self.error.into());
        }
        *taken += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
    let mut log = LogBuilder::new("mysql-bin.000001").table_map(7, "d", "t", &[TestColumn::int()]);
    for _ in 0..5000 {
        log = log.write_rows(7, &[&[TestValue::Int(1)]]);
    }
    // Nothing is decoded after the pipe is closed: the damage behind is not met.
    let mut bytes = log.into_bytes();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    for (error, is_quiet) in [(ErrorKind::BrokenPipe, true), (ErrorKind::StorageFull, false)] {
        let taken = Arc::default();
        let output = Closing { taken: Arc::clone(&taken), room: OUTPUT_BUFFER * 3 / 2, error };
        let inputs = vec![input("mysql-bin.000001", bytes.clone())];
        let result = decode(inputs, Definitions::Log, Options::new(Format::Json), output);
        assert_eq!(result.is_ok(), is_quiet, "{result:?}");
        assert!(*taken.lock().unwrap() >= OUTPUT_BUFFER);
    }
}

#[test]
fn any_number_of_threads_prints_the_same() {
    let columns = [TestColumn::int(), TestColumn::varchar(8000)];
    let mut log = LogBuilder::new("mysql-bin.000001");
    let text = "x".repeat(3000);
    for unit in 0..80 {
        log = log.gtid(GTID.parse().unwrap()).begin().table_map(7, "d", "t", &columns);
        // Now and then an event that is too large to be shared.
        let rows = if unit % 60 == 7 { 400 } else { 3 + unit % 40 };
        let row = [TestValue::Int(unit), text.as_str().into()];
        let rows: Vec<&[TestValue]> = (0..rows).map(|_| &row[..]).collect();
        log = log.write_rows(7, &rows).xid(9);
        if unit % 50 == 3 {
            log = log.query("d", "CREATE TABLE u (a INT)");
        }
    }
    // Damage in the middle of a row: what is before it is printed, and nothing behind.
    let mut damaged = log.clone().table_map(7, "d", "t", &columns);
    damaged =
        damaged.write_rows(7, &[&[1.into(), "a".into()], &[1.into(), TestValue::Raw(vec![9])]]);
    for _ in 0..1000 {
        damaged = damaged.write_rows(7, &[&[2.into(), text.as_str().into()]]);
    }
    for (bytes, fails) in [(log.into_bytes(), false), (damaged.into_bytes(), true)] {
        for format in [Format::Json, Format::Text] {
            let print = |threads: usize| {
                let threads = NonZero::new(threads).unwrap();
                let options = Options { threads, ..Options::new(format) };
                print_bytes(bytes.clone(), Definitions::Log, options)
            };
            let (text, error) = print(1);
            assert_eq!(error.is_some(), fails, "{error:?}");
            assert!(text.len() > 5 << 20);
            for threads in [2, 4] {
                let (same, same_error) = print(threads);
                assert!(same == text, "{threads} threads");
                assert_eq!(same_error, error);
            }
        }
    }
}
