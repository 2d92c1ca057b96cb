//! What records become, in the forms that goldens do not reach; those compare the rest with the real Debezium.

use super::*;

const ENVELOPE: &str = concat!(
    r#"{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"},"source":{"version":"1","connector":"mysql","#,
    r#""name":"srv","ts_ms":1000,"snapshot":"false","db":"gold","table":"t","server_id":7,"file":"b.1","pos":4,"#,
    r#""row":0,"thread":null},"transaction":null,"op":"u","ts_ms":5}"#
);

fn chain(transform: Transform) -> Chain {
    let step = Step { name: "x".to_owned(), predicate: None, negate: false, transform };
    let config = TransformConfig { steps: vec![step], cloud_events: None };
    Chain::new(&config, NO_SCHEMAS).unwrap()
}

const NO_SCHEMAS: WithSchemas = WithSchemas { key: false, value: false, header: false };

fn text<'a>(value: &'a str, envelope: bool) -> RecordText<'a> {
    RecordText {
        topic: "srv.gold.t",
        headers: b"",
        key: b"{\"id\":1}",
        value: value.as_bytes(),
        envelope,
    }
}

/// Topic, headers, key and value.
fn printed(draft: Option<Draft>) -> Option<[String; 4]> {
    let draft = draft?;
    let mut out = Vec::new();
    let (headers, key) = draft.write(&mut out);
    let part = |from: usize, to: usize| String::from_utf8(out[from..to].to_vec()).unwrap();
    Some([draft.topic.clone(), part(0, headers), part(headers, key), part(key, out.len())])
}

fn unwrap(deletes: DeleteHandling, fields: &[&str]) -> Transform {
    let fields = fields.iter().map(|field| FieldReference::parse("__", field).unwrap()).collect();
    Transform::ExtractNewRecordState(ExtractNewRecordState {
        deletes,
        route_by_field: None,
        fields,
        headers: vec![FieldReference::parse("__", "op").unwrap()],
    })
}

#[test]
fn every_way_to_handle_deletes() {
    use DeleteHandling::{DeleteToTombstone, Drop, Rewrite, RewriteWithTombstone, Tombstone};
    let delete = ENVELOPE.replace(r#""after":{"id":1,"name":"b"}"#, r#""after":null"#);
    let row = |deleted: bool| {
        let name = if deleted { "a" } else { "b" };
        format!(r#"{{"id":1,"name":"{name}","__deleted":"{deleted}"}}"#)
    };
    let plain = r#"{"id":1,"name":"b"}"#.to_owned();
    let null = Some("null".to_owned());
    for (mode, update, deleted, tombstone) in [
        (Drop, plain.clone(), None, None),
        (Tombstone, plain.clone(), null.clone(), None),
        (DeleteToTombstone, plain, null.clone(), None),
        (Rewrite, row(false), Some(row(true)), None),
        (RewriteWithTombstone, row(false), Some(row(true)), null),
    ] {
        let mut chain = chain(unwrap(mode, &[]));
        let mut value = |value: &str, envelope: bool| {
            printed(chain.apply(text(value, envelope)).unwrap()).map(|[.., value]| value)
        };
        assert_eq!(value(ENVELOPE, true), Some(update), "{mode:?}");
        assert_eq!(value(&delete, true), deleted, "{mode:?}");
        assert_eq!(value("null", false), tombstone, "{mode:?}");
        assert_eq!(value(r#"{"ts_ms":1}"#, false).as_deref(), Some(r#"{"ts_ms":1}"#));
    }
}

#[test]
fn members_of_envelopes_are_found_by_their_short_names() {
    let fields = [
        "op",
        "table",
        "source.ts_ms",
        "pos:at",
        "snapshot",
        "total_order",
        "transaction.id:tx",
        "nothing",
    ];
    let mut chain = chain(unwrap(DeleteHandling::Tombstone, &fields));
    let [topic, headers, key, value] = printed(chain.apply(text(ENVELOPE, true)).unwrap()).unwrap();
    assert_eq!((topic.as_str(), key.as_str()), ("srv.gold.t", r#"{"id":1}"#));
    assert_eq!(headers, r#"{"__op":"u"}"#);
    let expected = r#"{"id":1,"name":"b","__op":"u","__table":"t","__source_ts_ms":1000,"__at":4,"__snapshot":null,"__total_order":null,"__tx":null}"#;
    assert_eq!(value, expected);
    for wrong in ["", "a.b.c", "a:b:c", ".x"] {
        assert_eq!(FieldReference::parse("__", wrong), None, "{wrong}");
    }
}

#[test]
fn a_predicate_says_which_records_a_step_is_for() {
    let topic = JavaRegex::case_sensitive(".*\\.t").unwrap();
    for (predicate, negate, kept) in [
        (Predicate::TopicNameMatches(topic.clone()), false, false),
        (Predicate::TopicNameMatches(topic), true, true),
        (Predicate::RecordIsTombstone, false, true),
        (Predicate::HasHeaderKey("x".to_owned()), true, false),
    ] {
        let step = Step {
            name: "f".to_owned(),
            predicate: Some(predicate),
            negate,
            transform: Transform::Filter,
        };
        let config = TransformConfig { steps: vec![step], cloud_events: None };
        let mut chain = Chain::new(&config, NO_SCHEMAS).unwrap();
        assert_eq!(chain.apply(text(ENVELOPE, true)).unwrap().is_some(), kept);
    }
}

#[test]
fn an_outbox_that_lacks_a_column_is_an_error_that_names_it() {
    let router = EventRouter {
        id: "id".to_owned(),
        key: "id".to_owned(),
        payload: "payload".to_owned(),
        schema_version: None,
        expand: None,
        route_by: "name".to_owned(),
        route: (
            JavaRegex::case_sensitive("(?<routedByValue>.*)").unwrap(),
            "o.${routedByValue}".to_owned(),
        ),
        tombstone_on_empty: false,
        on_update: UnexpectedUpdate::Fatal,
        additional: Vec::new(),
        ignore_missing: false,
    };
    let insert = ENVELOPE.replace(r#""op":"u""#, r#""op":"c""#);
    let mut lacking = chain(Transform::EventRouter(Box::new(router.clone())));
    let failure = lacking.apply(text(&insert, true)).unwrap_err();
    assert_eq!(
        failure,
        "transform x on topic srv.gold.t: unable to find payload field payload in event"
    );
    let failure = lacking.apply(text(ENVELOPE, true)).unwrap_err();
    assert!(failure.ends_with("an UPDATE of the outbox is not expected"), "{failure}");

    let mut fitting = chain(Transform::EventRouter(Box::new(EventRouter {
        payload: "name".to_owned(),
        ..router
    })));
    let [topic, headers, key, value] =
        printed(fitting.apply(text(&insert, true)).unwrap()).unwrap();
    assert_eq!([topic, headers, key, value], ["o.b", r#"{"id":1}"#, "1", "\"b\""]);
}

#[test]
fn a_cloud_event_has_the_envelope_in_its_attributes() {
    let config =
        TransformConfig { steps: Vec::new(), cloud_events: Some(CloudEvents { extensions: true }) };
    let mut chain = Chain::new(&config, NO_SCHEMAS).unwrap();
    let [.., value] = printed(chain.apply(text(ENVELOPE, true)).unwrap()).unwrap();
    let expected = concat!(
        r#"{"id":"name:srv;file:b.1;pos:4","source":"/debezium/mysql/srv","specversion":"1.0","#,
        r#""type":"io.debezium.connector.mysql.DataChangeEvent","time":"1970-01-01T00:00:01.000Z","#,
        r#""datacontenttype":"application/json","iodebeziumop":"u","iodebeziumversion":"1","#,
        r#""iodebeziumconnector":"mysql","iodebeziumname":"srv","iodebeziumtsms":"1000","#,
        r#""iodebeziumsnapshot":"false","iodebeziumdb":"gold","iodebeziumtable":"t","iodebeziumserverid":"7","#,
        r#""iodebeziumfile":"b.1","iodebeziumpos":"4","iodebeziumrow":0,"iodebeziumthread":null,"#,
        r#""iodebeziumtxid":null,"iodebeziumtxtotalorder":null,"iodebeziumtxdatacollectionorder":null,"#,
        r#""data":{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"}}}"#
    );
    assert_eq!(value, expected);
    let [.., value] = printed(chain.apply(text(r#"{"ts_ms":1}"#, false)).unwrap()).unwrap();
    assert_eq!(value, "null");
}

/// DELETE, tombstone and CREATE of a key change, of which the tombstone is dropped; then a row that is dropped whole.
#[test]
fn a_group_is_complete_without_what_was_dropped() {
    use crate::ack::SharedLedger;
    use crate::batch::{BatchBuilder, RecordHead, RecordOrigin};
    use crate::format::debezium_json::Op;
    use crate::offset::OffsetPoint;
    use crate::record::RecordKind;

    let at = |pos: u64| OffsetPoint::closed_at("b.1", pos);
    let ledger = SharedLedger::new(at(0));
    let unwrapped = Step {
        name: "u".to_owned(),
        predicate: Some(Predicate::TopicNameMatches(JavaRegex::case_sensitive("kept").unwrap())),
        negate: false,
        transform: unwrap(DeleteHandling::Tombstone, &[]),
    };
    let filtered = Step {
        predicate: Some(Predicate::TopicNameMatches(JavaRegex::case_sensitive("gone").unwrap())),
        transform: Transform::Filter,
        ..unwrapped.clone()
    };
    let config = TransformConfig { steps: vec![unwrapped, filtered], cloud_events: None };
    let chain = Chain::new(&config, NO_SCHEMAS);
    let mut builder = BatchBuilder::new(at(0), "l".into(), ledger.clone()).with_chain(chain);
    let (table, file) = (Arc::new(holdfast_history::TableId::new("d", "t")), Arc::from("b.1"));
    let delete = ENVELOPE.replace(r#""after":{"id":1,"name":"b"}"#, r#""after":null"#);
    let record = |builder: &mut BatchBuilder, topic: &str, kind: RecordKind, value: &str| {
        let origin = RecordOrigin { table: &table, file: &file, pos: 1, ordinal: 0, row: 0 };
        let head = RecordHead { kind, topic: &Arc::from(topic), origin };
        let written = builder.record(head, |record| {
            record.end_headers();
            record.out().extend_from_slice(b"{\"id\":1}");
            record.end_key();
            record.out().extend_from_slice(value.as_bytes());
            Ok::<_, std::convert::Infallible>(())
        });
        written.unwrap();
    };
    record(&mut builder, "kept", RecordKind::Data(Op::Delete), &delete);
    record(&mut builder, "kept", RecordKind::Tombstone, "null");
    record(&mut builder, "kept", RecordKind::Data(Op::Create), ENVELOPE);
    builder.close_group(at(10).view());
    record(&mut builder, "gone", RecordKind::Data(Op::Create), ENVELOPE);
    builder.close_group(at(20).view());

    let batch = builder.finish().unwrap();
    let values: Vec<&[u8]> = batch.changes().map(|change| change.value()).collect();
    assert_eq!(values, [&b"null"[..], br#"{"id":1,"name":"b"}"#]);
    let frontier = || ledger.lock().frontier().clone();
    let mut changes = batch.changes();
    changes.next().unwrap().acknowledge();
    assert_eq!(frontier(), at(0));
    changes.next().unwrap().acknowledge();
    assert_eq!(frontier(), at(20));
}
