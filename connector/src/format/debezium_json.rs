//! Records as Debezium prints them in JSON, without their Connect schemas.
//!
//! A data record's value is put together from pieces, so that what is constant for an event is rendered once:
//!
//! ```text
//! begin_before   {"before":
//!                          null or an object       TableConverter::write_row
//! begin_after    ,"after":
//!                          null or an object       TableConverter::write_row
//! EnvelopeEnd    ,"source":{…},"transaction":null,"op":"c","ts_ms":…,"ts_us":…,"ts_ns":…}
//! ```
//!
//! Field order and names are those of Debezium 3.6.3.Final (`io.debezium.data.Envelope`, `io.debezium.schema.SchemaFactory`,
//! `BinlogSourceInfoStructMaker`).

use std::ops::Range;

use super::json::{
    write_i64, write_null, write_optional_string, write_optional_u64, write_string, write_u64,
};

/// What the `source` block says of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceInfo<'a> {
    /// Version of the connector.
    pub version: &'a str,
    /// `mysql` or `mariadb`.
    pub connector: &'a str,
    /// `topic.prefix`.
    pub name: &'a str,
    /// Time of the change at the source, microseconds since the epoch. Negative only before 1970.
    pub ts_us: i64,
    /// Snapshot marker: `true`, `first`, `first_in_data_collection`, `last_in_data_collection`, `last`, `incremental`;
    /// while streaming `false`, which is the field's default and stands for none where defaults do not stand for NULL.
    pub snapshot: Option<&'static str>,
    /// Database; empty where there is none.
    pub db: &'a str,
    /// Table; of a statement about several tables their names joined by commas.
    pub table: Option<&'a str>,
    /// Server id in the header of the event; 0 in a snapshot.
    pub server_id: u32,
    /// GTID of the transaction.
    pub gtid: Option<&'a str>,
    /// Binlog file.
    pub file: &'a str,
    /// Byte offset where the rows event begins.
    pub pos: u64,
    /// Row in the event, zero-based. [`EnvelopeEnd::write`] puts another in its place.
    pub row: u32,
    /// Id of the thread that began the transaction.
    pub thread: Option<u64>,
    /// Text of the statement, with `include.query`.
    pub query: Option<&'a str>,
}

/// What follows the after image, rendered once for all rows of an event: only the row number, the transaction block and
/// the operation differ between them.
///
/// ```text
/// before_row   ,"source":{…,"row":
/// after_row                       ,"thread":…,"query":…},"transaction":
/// stamp                                                                ","ts_ms":…,"ts_us":…,"ts_ns":…}
/// ```
#[derive(Debug, Clone, Default)]
pub struct EnvelopeEnd {
    /// All three, one behind the other.
    text: Vec<u8>,
    row_at: usize,
    stamp_at: usize,
}

impl EnvelopeEnd {
    /// Renders one. `now_ns` is the time of processing, nanoseconds since the epoch.
    #[must_use]
    pub fn new(source: &SourceInfo<'_>, now_ns: i64) -> Self {
        let mut end = Self::default();
        end.render(source, now_ns);
        end
    }

    /// Renders another one into the same memory.
    pub fn render(&mut self, source: &SourceInfo<'_>, now_ns: i64) {
        let out = &mut self.text;
        out.clear();
        out.extend_from_slice(b",\"source\":");
        write_source_until_row(source, out);
        self.row_at = out.len();
        write_source_after_row(source, out);
        out.extend_from_slice(b",\"transaction\":");
        self.stamp_at = out.len();
        out.extend_from_slice(b"\",\"ts_ms\":");
        write_i64(now_ns.div_euclid(1_000_000), out);
        out.extend_from_slice(b",\"ts_us\":");
        write_i64(now_ns.div_euclid(1000), out);
        out.extend_from_slice(b",\"ts_ns\":");
        write_i64(now_ns, out);
        out.push(b'}');
    }

    fn part(&self, range: Range<usize>) -> &[u8] {
        self.text.get(range).unwrap_or_default()
    }

    /// Ends an envelope after the after image. `row` is the zero-based row in the event.
    pub fn write(
        &self,
        row: u32,
        transaction: Option<&TransactionBlock<'_>>,
        op: Op,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(self.part(0..self.row_at));
        write_u64(u64::from(row), out);
        out.extend_from_slice(self.part(self.row_at..self.stamp_at));
        match transaction {
            None => write_null(out),
            Some(block) => {
                out.extend_from_slice(b"{\"id\":");
                write_string(block.id, out);
                out.extend_from_slice(b",\"total_order\":");
                write_u64(block.total_order, out);
                out.extend_from_slice(b",\"data_collection_order\":");
                write_u64(block.data_collection_order, out);
                out.push(b'}');
            }
        }
        out.extend_from_slice(b",\"op\":\"");
        out.extend_from_slice(op.as_str().as_bytes());
        out.extend_from_slice(self.part(self.stamp_at..self.text.len()));
    }
}

/// Appends a whole `source` block.
pub fn write_source(source: &SourceInfo<'_>, out: &mut Vec<u8>) {
    write_source_until_row(source, out);
    write_u64(u64::from(source.row), out);
    write_source_after_row(source, out);
}

fn write_source_until_row(source: &SourceInfo<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"version\":");
    write_string(source.version, out);
    out.extend_from_slice(b",\"connector\":");
    write_string(source.connector, out);
    out.extend_from_slice(b",\"name\":");
    write_string(source.name, out);
    out.extend_from_slice(b",\"ts_ms\":");
    write_i64(source.ts_us.div_euclid(1000), out);
    out.extend_from_slice(b",\"snapshot\":");
    write_optional_string(source.snapshot, out);
    out.extend_from_slice(b",\"db\":");
    write_string(source.db, out);
    out.extend_from_slice(b",\"sequence\":null,\"ts_us\":");
    write_i64(source.ts_us, out);
    out.extend_from_slice(b",\"ts_ns\":");
    write_i64(source.ts_us.saturating_mul(1000), out);
    out.extend_from_slice(b",\"table\":");
    write_optional_string(source.table, out);
    out.extend_from_slice(b",\"server_id\":");
    write_u64(u64::from(source.server_id), out);
    out.extend_from_slice(b",\"gtid\":");
    write_optional_string(source.gtid, out);
    out.extend_from_slice(b",\"file\":");
    write_string(source.file, out);
    out.extend_from_slice(b",\"pos\":");
    write_u64(source.pos, out);
    out.extend_from_slice(b",\"row\":");
}

fn write_source_after_row(source: &SourceInfo<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"thread\":");
    write_optional_u64(source.thread, out);
    out.extend_from_slice(b",\"query\":");
    write_optional_string(source.query, out);
    out.push(b'}');
}

/// What a data record did, as its envelope names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// `r`: read by a snapshot.
    Read,
    /// `c`: inserted.
    Create,
    /// `u`: updated.
    Update,
    /// `d`: deleted.
    Delete,
    /// `t`: the table was truncated.
    Truncate,
}

impl Op {
    /// The letter in the envelope.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "r",
            Self::Create => "c",
            Self::Update => "u",
            Self::Delete => "d",
            Self::Truncate => "t",
        }
    }
}

/// The `transaction` block of a data record, with `provide.transaction.metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionBlock<'a> {
    /// Id of the transaction: its GTID, or `file=…,pos=…`.
    pub id: &'a str,
    /// Place of the record in the transaction, one-based.
    pub total_order: u64,
    /// Place of the record among those of its table in the transaction, one-based.
    pub data_collection_order: u64,
}

/// Begins an envelope; the before image or `null` follows.
pub fn begin_before(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"before\":");
}

/// Follows the before image; the after image or `null` follows.
pub fn begin_after(out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"after\":");
}

/// Appends the value of a tombstone, and the key of a record of a table without a key.
pub fn write_tombstone(out: &mut Vec<u8>) {
    write_null(out);
}

/// Appends the key of a schema-change record.
pub fn write_schema_change_key(database: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"databaseName\":");
    write_string(database, out);
    out.push(b'}');
}

/// What a schema-change record says beside its table changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaChange<'a> {
    /// The `source` block.
    pub source: SourceInfo<'a>,
    /// Time of processing, milliseconds since the epoch.
    pub ts_ms: i64,
    /// Database of the table, else of the session; empty where there is none.
    pub database: Option<&'a str>,
    /// Text of the statement.
    pub ddl: Option<&'a str>,
}

/// Appends the value of a schema-change record. `table_changes` appends the array, with its brackets.
pub fn write_schema_change_value(
    change: &SchemaChange<'_>,
    table_changes: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"source\":");
    write_source(&change.source, out);
    out.extend_from_slice(b",\"ts_ms\":");
    write_i64(change.ts_ms, out);
    out.extend_from_slice(b",\"databaseName\":");
    write_optional_string(change.database, out);
    out.extend_from_slice(b",\"schemaName\":null,\"ddl\":");
    write_optional_string(change.ddl, out);
    out.extend_from_slice(b",\"tableChanges\":");
    table_changes(out);
    out.push(b'}');
}

/// Appends the key of a heartbeat record. `name` is `topic.prefix`.
pub fn write_heartbeat_key(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"serverName\":");
    write_string(name, out);
    out.push(b'}');
}

/// Appends the value of a heartbeat record. `ts_ms` is the time of processing.
pub fn write_heartbeat_value(ts_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"ts_ms\":");
    write_i64(ts_ms, out);
    out.push(b'}');
}

/// Appends the key of a transaction marker.
pub fn write_transaction_key(id: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    write_string(id, out);
    out.push(b'}');
}

/// Appends the value of the marker that begins a transaction. `ts_ms` is the time at the source.
pub fn write_transaction_begin(id: &str, ts_ms: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"status\":\"BEGIN\",\"id\":");
    write_string(id, out);
    out.extend_from_slice(b",\"event_count\":null,\"data_collections\":null,\"ts_ms\":");
    write_i64(ts_ms, out);
    out.push(b'}');
}

/// Appends the value of the marker that ends a transaction: its data records in all and per table, each named
/// `database.table`. `ts_ms` is the time at the source.
pub fn write_transaction_end<'a>(
    id: &str,
    event_count: u64,
    data_collections: impl IntoIterator<Item = (&'a str, u64)>,
    ts_ms: i64,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"{\"status\":\"END\",\"id\":");
    write_string(id, out);
    out.extend_from_slice(b",\"event_count\":");
    write_u64(event_count, out);
    out.extend_from_slice(b",\"data_collections\":[");
    for (number, (table, count)) in data_collections.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"data_collection\":");
        write_string(table, out);
        out.extend_from_slice(b",\"event_count\":");
        write_u64(count, out);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"ts_ms\":");
    write_i64(ts_ms, out);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: SourceInfo<'static> = SourceInfo {
        version: "V",
        connector: "mysql",
        name: "srv",
        ts_us: 1_795_993_167_760_153,
        snapshot: Some("false"),
        db: "gold",
        table: Some("a"),
        server_id: 1,
        gtid: Some("U:10"),
        file: "binlog.000002",
        pos: 154,
        row: 3,
        thread: Some(8),
        query: None,
    };

    /// The block as Debezium 3.6.3.Final prints it.
    const SOURCE_JSON: &str = concat!(
        r#"{"version":"V","connector":"mysql","name":"srv","ts_ms":1795993167760,"snapshot":"false","db":"gold","#,
        r#""sequence":null,"ts_us":1795993167760153,"ts_ns":1795993167760153000,"table":"a","server_id":1,"#,
        r#""gtid":"U:10","file":"binlog.000002","pos":154,"row":3,"thread":8,"query":null}"#
    );

    #[test]
    fn an_envelope_is_put_together_from_its_pieces() {
        assert_eq!(printed(|out| write_source(&SOURCE, out)), SOURCE_JSON);
        let mut end = EnvelopeEnd::new(&SourceInfo { db: "other", ..SOURCE }, 0);
        end.render(&SOURCE, 1_795_993_167_795_642_149);
        let json = |row| {
            printed(|out| {
                begin_before(out);
                write_null(out);
                begin_after(out);
                out.extend_from_slice(br#"{"id":10}"#);
                end.write(row, None, Op::Create, out);
            })
        };
        let tail = r#""op":"c","ts_ms":1795993167795,"ts_us":1795993167795642,"ts_ns":1795993167795642149}"#;
        let expected = format!(
            r#"{{"before":null,"after":{{"id":10}},"source":{SOURCE_JSON},"transaction":null,{tail}"#
        );
        assert_eq!(json(3), expected);
        assert_eq!(json(12), expected.replace("\"row\":3", "\"row\":12"));
        let block = TransactionBlock { id: "U:1", total_order: 3, data_collection_order: 2 };
        let json = printed(|out| end.write(3, Some(&block), Op::Delete, out));
        assert!(json.contains(
            r#""transaction":{"id":"U:1","total_order":3,"data_collection_order":2},"op":"d","#
        ));
    }

    #[test]
    fn special_records_have_their_shapes() {
        let change = SchemaChange {
            source: SOURCE,
            ts_ms: 5,
            database: Some("gold"),
            ddl: Some("DROP TABLE `a`"),
        };
        let json = printed(|out| {
            write_schema_change_value(&change, |out| out.extend_from_slice(b"[]"), out)
        });
        let tail = r#""ts_ms":5,"databaseName":"gold","schemaName":null,"ddl":"DROP TABLE `a`","tableChanges":[]}"#;
        assert_eq!(json, format!(r#"{{"source":{SOURCE_JSON},{tail}"#));
        assert_eq!(
            printed(|out| write_schema_change_key("gold", out)),
            r#"{"databaseName":"gold"}"#
        );
        assert_eq!(printed(|out| write_heartbeat_key("srv", out)), r#"{"serverName":"srv"}"#);
        assert_eq!(printed(|out| write_heartbeat_value(7, out)), r#"{"ts_ms":7}"#);
        assert_eq!(printed(|out| write_transaction_key("U:1", out)), r#"{"id":"U:1"}"#);
        assert_eq!(
            printed(|out| write_transaction_begin("U:1", 7, out)),
            r#"{"status":"BEGIN","id":"U:1","event_count":null,"data_collections":null,"ts_ms":7}"#
        );
        let counts = [("gold.a", 2), ("gold.comp", 1)];
        assert_eq!(
            printed(|out| write_transaction_end("U:1", 3, counts, 7, out)),
            concat!(
                r#"{"status":"END","id":"U:1","event_count":3,"data_collections":[{"data_collection":"gold.a","#,
                r#""event_count":2},{"data_collection":"gold.comp","event_count":1}],"ts_ms":7}"#
            )
        );
        assert_eq!(printed(write_tombstone), "null");
    }

    fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }
}
