use proptest::prelude::*;

use super::*;
use crate::offset::{HoldfastMembers, SnapshotKind};

/// What the record and the offset say (file before the comma; U, W: server UUIDs), whether the record applies, by which
/// rule, whether that is a warning, whether it is a suspicious skip.
type Row = (u32, &'static str, &'static str, &'static str, bool, char, bool, bool);

#[rustfmt::skip]
const ROWS: [Row; 40] = [
    (1, "streaming before offset", "mysql-bin.000003, pos 100, server_id 7, ts_sec 10", "mysql-bin.000003, pos 150", true, 'C', false, false),
    (2, "DDL recorded beyond un-acked offset", "mysql-bin.000003, pos 200, server_id 7, ts_sec 20", "mysql-bin.000003, pos 150", false, 'C', false, false),
    (3, "same, offset carries server id", "mysql-bin.000003, pos 200, server_id 7, ts_sec 20", "mysql-bin.000003, pos 150, server_id 7, ts_sec 15", false, 'C', false, false),
    (4, "exactly at offset", "mysql-bin.000003, pos 150, server_id 7", "mysql-bin.000003, pos 150", true, 'C', false, false),
    (5, "snapshot at/before, no ids", "mysql-bin.000003, pos 100, snapshot INITIAL, ts_sec 20", "mysql-bin.000003, pos 150", true, 'C', false, false),
    (6, "snapshot beyond offset, no ids", "mysql-bin.000003, pos 200, snapshot INITIAL, ts_sec 20", "mysql-bin.000003, pos 150", false, 'C', false, false),
    (7, "seed incident: snapshot wall clock newer than event time", "mysql-bin.000003, pos 100, server_id 0, snapshot INITIAL, ts_sec 2000", "mysql-bin.000003, pos 150, server_id 7, ts_sec 1500", true, 'C', false, false),
    (8, "seed incident, wall clock older but beyond offset", "mysql-bin.000003, pos 900, server_id 0, snapshot INITIAL, ts_sec 1000", "mysql-bin.000003, pos 150, server_id 7, ts_sec 1500", false, 'C', false, false),
    (9, "older file, larger pos", "mysql-bin.000002, pos 9000, server_id 7", "mysql-bin.000003, pos 4", true, 'C', false, false),
    (10, "extension grows a digit", "mysql-bin.999999, pos 100", "mysql-bin.1000000, pos 4", true, 'C', false, false),
    (11, "recorded pos above 2^31", "mysql-bin.000003, pos 3000000000", "mysql-bin.000003, pos 100", false, 'C', false, false),
    (12, "desired pos above 2^31", "mysql-bin.000003, pos 100", "mysql-bin.000003, pos 3000000000", true, 'C', false, false),
    (13, "server id above 2^31 vs missing", "mysql-bin.000009, pos 9, server_id 4000000000", "mysql-bin.000003, pos 9", false, 'C', false, false),
    (14, "two server ids above 2^31, differing", "mysql-bin.000003, pos 500, server_id 4000000000, ts_sec 10", "mysql-bin.000003, pos 100, server_id 4000000001, ts_sec 20", true, 'T', true, false),
    (15, "different server ids, event times ordered", "mysql-bin.000003, pos 900, server_id 8, ts_sec 10", "mysql-bin.000003, pos 150, server_id 7, ts_sec 20", true, 'T', true, false),
    (16, "different server ids, recorded later", "mysql-bin.000003, pos 100, server_id 8, ts_sec 30", "mysql-bin.000003, pos 150, server_id 7, ts_sec 20", false, 'T', true, false),
    (17, "replica source: origin ids differ, same connected server", "mysql-bin.000003, pos 100, server_id 1, server_uuid A, ts_sec 30", "mysql-bin.000003, pos 150, server_id 2, server_uuid A, ts_sec 20", true, 'L', false, false),
    (18, "base name changed", "binlog.000900, pos 100, server_id 7", "mysql-bin.000001, pos 100", true, 'P', true, false),
    (19, "desired file empty (nothing read yet)", "mysql-bin.000003, pos 100", ", pos 0", true, 'P', true, false),
    (20, "missing row equals row 0", "mysql-bin.000003, pos 9, row 0", "mysql-bin.000003, pos 9", true, 'C', false, false),
    (21, "refresh stamped mid-transaction, offset fell back to its BEGIN", "mysql-bin.000003, pos 2202, event 2, row 2, snapshot INITIAL", "mysql-bin.000003, pos 2202", true, 'C', false, false),
    (22, "GTID subset across servers", "a.000002, pos 1, gtids U:1-9", "b.000002, pos 1, gtids U:1-11", true, 'G', false, false),
    (23, "GTID superset", "mysql-bin.000003, pos 1, gtids U:1-12", "mysql-bin.000003, pos 9, gtids U:1-11", false, 'G', false, true),
    (24, "GTID equal, DDL recorded after un-acked offset", "mysql-bin.000002, pos 5738, server_id 7, gtids U:1-11", "mysql-bin.000002, pos 5530, gtids U:1-11", false, 'G', false, false),
    (25, "GTID equal, failed over to another server", "mysql-bin.000002, pos 5738, server_id 7, server_uuid A, gtids U:1-11", "mysql-bin.000009, pos 77, server_uuid B, gtids U:1-11", false, 'G', false, false),
    (26, "GTID equal, snapshot image, other server", "mysql-bin.000002, pos 5738, snapshot INITIAL, server_uuid A, gtids U:1-11", "mysql-bin.000009, pos 77, server_uuid B, gtids U:1-11", true, 'G', false, false),
    (27, "GTID hole in desired", "a.000002, pos 1, gtids U:1-11", "b.000002, pos 9, gtids U:1-5:7-20", true, 'G', true, false),
    (28, "GTID overlapping intervals need merging", "a.000002, pos 9, gtids U:1-8", "b.000002, pos 9, gtids U:1-5:6-9", true, 'G', false, false),
    (29, "extra source in recorded only", "a.000002, pos 1, gtids U:1-9,W:1-3", "b.000002, pos 9, gtids U:1-11", true, 'G', false, false),
    (30, "disjoint sources, snapshot image", "a.000002, pos 1, snapshot INITIAL, gtids W:1-12", "b.000002, pos 9, gtids U:1-11", true, 'P', true, false),
    (31, "recorded before GTIDs were enabled", "mysql-bin.000001, pos 100, server_id 7", "mysql-bin.000002, pos 9, gtids U:1-11", true, 'H', false, false),
    (32, "recorded with GTIDs, desired without (GTID recovery off)", "mysql-bin.000001, pos 1, server_id 7, gtids U:1-11", "mysql-bin.000002, pos 9", true, 'C', false, false),
    (33, "recorded with GTIDs, desired without, later", "mysql-bin.000003, pos 1, server_id 7, gtids U:1-31", "mysql-bin.000002, pos 9", false, 'C', false, false),
    (34, "source switched: recorded on the old one", "mysql-bin.009999, pos 1, server_id 3, epoch 1, ts_sec 9000", "mysql-bin.000012, pos 9, server_id 7, epoch 2, ts_sec 1500", true, 'E', false, false),
    (35, "source switched back: recorded on the later one", "mysql-bin.000001, pos 1, server_id 7, epoch 2", "mysql-bin.009999, pos 9, server_id 3, epoch 1", false, 'E', false, false),
    (36, "binlogs reset on the same server (epoch bumped)", "mysql-bin.000050, pos 1, server_id 7, server_uuid A, epoch 1", "mysql-bin.000001, pos 9, server_id 7, server_uuid A, epoch 2", true, 'E', false, false),
    (37, "lineage proven, GTID text lags (MySQL DDL) and offset is past it", "mysql-bin.000002, pos 5738, server_id 7, server_uuid A, gtids U:1-11", "mysql-bin.000002, pos 6100, server_uuid A, gtids U:1-12", true, 'L', false, false),
    (38, "tagged GTIDs", "a.000002, pos 9, gtids U:1-5:tag:1-3", "b.000002, pos 9, gtids U:1-9:tag:1-2", false, 'P', true, false),
    (39, "legacy offset of the DDL itself (needs replay guard)", "mysql-bin.000002, pos 5738, server_id 7, gtids U:1-11", "mysql-bin.000002, pos 5738, gtids U:1-11", true, 'G', false, false),
    (40, "MariaDB DDL, offset before it", "mariadb-bin.000001, pos 1654, event 1, server_id 7, ts_sec 10", "mariadb-bin.000001, pos 1654", false, 'C', false, false),
];

#[test]
fn every_row_of_the_decision_table_is_decided_as_written() {
    for (number, situation, recorded, desired, apply, rule, warn, suspicious) in ROWS {
        let (recorded, desired) = (position(recorded), position(desired));
        let verdict = at_or_before(&recorded, &desired, &CompareContext::default());
        assert_eq!(
            (verdict.apply, verdict.rule.letter(), verdict.warn, verdict.suspicious),
            (apply, rule, warn, suspicious),
            "row {number}, {situation}: {}",
            verdict.why
        );
    }
}

#[test]
fn an_earlier_epoch_applies_up_to_its_closing_coordinates() {
    let mut desired = position("mysql-bin.000001, pos 9, epoch 3");
    desired.holdfast.as_mut().unwrap().closed =
        Some("1:mysql-bin.000050:800,2:other.000002:7".into());
    let cases = [
        ("mysql-bin.000050, pos 800, epoch 1", true, false),
        ("mysql-bin.000050, pos 801, epoch 1", false, false),
        ("mysql-bin.000051, pos 4, epoch 1", false, false),
        ("mysql-bin.000049, pos 9000, epoch 1, snapshot INITIAL", true, false),
        ("mysql-bin.000002, pos 1, epoch 2", true, true),
        ("mysql-bin.000001, pos 1, epoch 4", false, false),
    ];
    for (recorded, apply, warn) in cases {
        let verdict = at_or_before(&position(recorded), &desired, &CompareContext::default());
        assert_eq!(
            (verdict.apply, verdict.rule, verdict.warn),
            (apply, Rule::Epoch, warn),
            "{recorded}"
        );
    }
    desired.holdfast.as_mut().unwrap().closed = Some("damaged".into());
    let verdict = at_or_before(
        &position("mysql-bin.000051, pos 4, epoch 1"),
        &desired,
        &CompareContext::default(),
    );
    assert!(verdict.apply && verdict.warn);
}

#[test]
fn one_epoch_of_two_servers_is_not_one_log() {
    let recorded = position("mysql-bin.000001, pos 9, epoch 1, server_uuid A");
    let desired = position("mysql-bin.000002, pos 4, epoch 1, server_uuid B");
    let verdict = at_or_before(&recorded, &desired, &CompareContext::default());
    assert_eq!((verdict.apply, verdict.rule), (true, Rule::Undecided));
}

#[test]
fn positions_of_records_written_after_the_statement_are_decided_by_gtids_alone() {
    let recorded = position("a.000002, pos 5738, gtids U:1-12");
    for (desired, apply) in
        [("b.000009, pos 77, gtids U:1-11", false), ("b.000009, pos 77, gtids U:1-13", true)]
    {
        let verdict = at_or_before(&recorded, &position(desired), &CompareContext::default());
        assert_eq!((verdict.apply, verdict.rule), (apply, Rule::Gtids), "{desired}");
    }
}

#[test]
fn mariadb_positions_compare_by_domain_whichever_server_wrote() {
    let cases = [
        ("0-1-24", "0-2-30", true, 'G'),
        ("0-1-24,0-2-30", "0-1-20,0-2-40", true, 'G'),
        ("0-1-41", "0-2-40", false, 'G'),
        ("0-1-24,1-1-5", "0-2-30", true, 'G'),
        ("0-1-24,1-1-5", "0-2-30,1-1-4", false, 'P'),
        ("1-1-5", "0-2-30", false, 'P'),
        ("0-1-30", "0-2-30", false, 'G'),
    ];
    for (recorded, desired, apply, rule) in cases {
        let at = |base: &str, gtids: &str| SourceOffset {
            file: format!("{base}.000001"),
            pos: 4,
            gtids: Some(gtids.into()),
            ..SourceOffset::default()
        };
        let verdict =
            at_or_before(&at("a", recorded), &at("b", desired), &CompareContext::default());
        assert_eq!(
            (verdict.apply, verdict.rule.letter()),
            (apply, rule),
            "{recorded} against {desired}"
        );
    }
}

#[test]
fn filtered_sources_do_not_count() {
    let only_u = |source: &str| source == U;
    let context = CompareContext { gtid_sources: Some(&only_u), ..CompareContext::default() };
    let desired = position("b.000001, pos 4, gtids U:1-11,W:1-2");
    let verdict = at_or_before(&position("a.000001, pos 4, gtids U:1-9,W:1-9"), &desired, &context);
    assert_eq!((verdict.apply, verdict.rule), (true, Rule::Gtids));
    let verdict = at_or_before(&position("a.000001, pos 4, gtids W:1-9"), &desired, &context);
    assert_eq!((verdict.apply, verdict.rule), (true, Rule::PredatesGtids));
}

#[test]
fn gtids_that_cannot_be_read_warn_and_do_not_decide() {
    let mut recorded = position("b.000001, pos 4");
    recorded.gtids = Some("nonsense:x".into());
    let verdict = at_or_before(&recorded, &position("b.000001, pos 9"), &CompareContext::default());
    assert_eq!((verdict.apply, verdict.rule, verdict.warn), (true, Rule::Coordinates, true));
}

const U: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const W: &str = "8e11fa47-71ca-11e1-9e33-c80aa9429562";

/// `file, name value, …`.
fn position(text: &str) -> SourceOffset {
    let (file, members) = text.split_once(", ").unwrap();
    let mut offset = SourceOffset { file: file.into(), ..SourceOffset::default() };
    for member in members.split(", ") {
        let (name, value) = member.split_once(' ').unwrap();
        let number = || value.parse::<u64>().unwrap();
        match name {
            "pos" => offset.pos = number(),
            "event" => offset.event = number(),
            "row" => offset.row = number(),
            "server_id" => offset.server_id = Some(number()),
            "ts_sec" => offset.ts_sec = Some(value.parse().unwrap()),
            "gtids" => offset.gtids = Some(value.replace('U', U).replace('W', W)),
            "snapshot" => offset.snapshot = Some(SnapshotKind::Initial),
            "server_uuid" => offset.holdfast.get_or_insert_default().lineage = Some(value.into()),
            "epoch" => offset.holdfast.get_or_insert_default().epoch = number(),
            _ => panic!("unknown member {name}"),
        }
    }
    offset
}

/// A streaming position of one log; few values, so that equal and near ones meet.
fn in_one_log() -> impl Strategy<Value = SourceOffset> {
    let near = || prop_oneof![0..3_u64, Just(u64::MAX), Just(3_000_000_000)];
    (near(), near(), 0..3_u64, 0..3_u64, 1..4_u64, any::<Option<u64>>(), any::<Option<i64>>())
        .prop_map(|(number, pos, event, row, gtid, server_id, ts_sec)| SourceOffset {
            file: format!("mysql-bin.{number:06}"),
            pos,
            event,
            row,
            gtids: Some(format!("{U}:1-{gtid}")),
            ts_sec,
            server_id,
            holdfast: Some(HoldfastMembers {
                lineage: Some("A".into()),
                epoch: 1,
                ..HoldfastMembers::default()
            }),
            ..SourceOffset::default()
        })
}

fn anywhere() -> impl Strategy<Value = SourceOffset> {
    let files = prop_oneof![
        Just("a.000001".to_owned()),
        Just("a.000002".to_owned()),
        Just("b.000001".to_owned()),
        Just(String::new())
    ];
    let gtids = prop_oneof![
        Just(None),
        Just(Some(format!("{U}:1-4:6-9"))),
        Just(Some(format!("{U}:1-5,{W}:1"))),
        Just(Some(format!("{W}:1-3"))),
        Just(Some("0-1-5".to_owned())),
        Just(Some("?".to_owned()))
    ];
    let ours =
        prop_oneof![Just(None), Just(Some(("A", 0))), Just(Some(("A", 1))), Just(Some(("B", 2)))];
    let kind = prop_oneof![Just(None), Just(Some(SnapshotKind::Initial))];
    (
        files,
        0..4_u64,
        0..3_u64,
        gtids,
        ours,
        kind,
        any::<Option<bool>>(),
        proptest::option::of(0..3_i64),
    )
        .prop_map(|(file, pos, event, gtids, ours, snapshot, server, ts_sec)| SourceOffset {
            file,
            pos,
            event,
            gtids,
            snapshot,
            ts_sec,
            server_id: server.map(u64::from),
            holdfast: ours.map(|(lineage, epoch)| HoldfastMembers {
                lineage: Some(lineage.into()),
                epoch,
                ..HoldfastMembers::default()
            }),
            ..SourceOffset::default()
        })
}

proptest! {
    #[test]
    fn positions_of_one_log_are_totally_ordered(a in in_one_log(), b in in_one_log(), c in in_one_log()) {
        let not_after = |left: &SourceOffset, right: &SourceOffset| {
            let verdict = at_or_before(left, right, &CompareContext::default());
            assert_eq!(verdict.rule, Rule::Lineage);
            assert!(!verdict.suspicious && !verdict.warn);
            verdict.apply
        };
        prop_assert!(not_after(&a, &a));
        prop_assert!(not_after(&a, &b) || not_after(&b, &a));
        if not_after(&a, &b) && not_after(&b, &a) {
            prop_assert_eq!((&a.file, a.pos, a.event, a.row), (&b.file, b.pos, b.event, b.row));
        }
        if not_after(&a, &b) && not_after(&b, &c) {
            prop_assert!(not_after(&a, &c));
        }
    }

    #[test]
    fn a_suspicious_skip_is_a_skip_with_earlier_coordinates(recorded in anywhere(), desired in anywhere()) {
        let verdict = at_or_before(&recorded, &desired, &CompareContext::default());
        if verdict.suspicious {
            prop_assert!(!verdict.apply);
            prop_assert!(recorded.file <= desired.file);
        }
        // A clock never decides about a snapshot's record.
        if recorded.snapshot.is_some() {
            prop_assert!(verdict.rule != Rule::EventTime);
        }
        // Guesses are always visible.
        if matches!(verdict.rule, Rule::EventTime | Rule::Undecided) {
            prop_assert!(verdict.warn);
        }
    }
}
