//! Replays of made-up histories: what holds for all of them.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::offset::{HoldfastMembers, SnapshotKind};
use crate::schema::{Column, JdbcType, Table};
use crate::store::{HistoryStore, MemoryHistory};

/// One record of a made-up history.
#[derive(Debug, Clone)]
struct Made {
    step: Step,
    /// The place in the log, in steps of 100 bytes.
    place: u64,
    /// Of a snapshot.
    snapshot: bool,
    /// Of a refresh that read its definitions so far on.
    refreshed_from: Option<u64>,
    /// What the position says of the log it is in.
    log: Log,
    /// Which GTIDs it has.
    gtids: u8,
    foreign: bool,
}

#[derive(Debug, Clone, Copy)]
enum Log {
    Unknown,
    Epoch(u64),
}

#[derive(Debug, Clone)]
enum Step {
    Create(Name, u8),
    Alter(Name, u8),
    Rename(Name, Name, u8),
    Drop(Name),
    /// Two names take each other's place.
    Swap(Name, Name, u8),
    /// A statement without definitions.
    Text(&'static str),
}

/// One of few names, some of which differ in their case alone.
type Name = usize;

const NAMES: [(&str, &str); 6] =
    [("d", "a"), ("d", "b"), ("D", "A"), ("e", "a"), ("d", "c"), ("e", "x\"y")];

const TEXTS: [&str; 9] = [
    "DROP DATABASE d",
    "CREATE DATABASE e CHARACTER SET latin1",
    "SET character_set_server = utf8mb4",
    "CREATE TABLE d.b LIKE d.a",
    "ALTER TABLE d.a ADD COLUMN added VARCHAR(9)",
    "RENAME TABLE d.a TO d.c, d.b TO d.a",
    "DROP TABLE IF EXISTS d.c, e.a",
    "CREATE TABLE d.a (id INT PRIMARY KEY, t TEXT)",
    "this is no statement",
];

fn id(name: Name) -> TableId {
    let (database, table) = NAMES[name];
    TableId::new(database, table)
}

fn definition(name: Name, shape: u8) -> Arc<Table> {
    let columns = (0..=shape % 4)
        .map(|number| Column::new(format!("c{number}_{shape}"), "INT", JdbcType::INTEGER))
        .collect();
    let comment = shape.is_multiple_of(5).then(|| format!("comment {shape}"));
    Arc::new(Table { columns, comment, ..Table::new(id(name)) })
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => (name(), any::<u8>()).prop_map(|(name, shape)| Step::Create(name, shape)),
        5 => (name(), any::<u8>()).prop_map(|(name, shape)| Step::Alter(name, shape)),
        2 => (name(), name(), any::<u8>()).prop_map(|(from, to, shape)| Step::Rename(from, to, shape)),
        1 => name().prop_map(Step::Drop),
        1 => (name(), name(), any::<u8>()).prop_map(|(a, b, shape)| Step::Swap(a, b, shape)),
        2 => (0..TEXTS.len()).prop_map(|text| Step::Text(TEXTS[text])),
    ]
}

fn made() -> impl Strategy<Value = Made> {
    let log = prop_oneof![
        4 => Just(Log::Unknown),
        8 => Just(Log::Epoch(2)),
        1 => Just(Log::Epoch(1)),
        1 => Just(Log::Epoch(3)),
    ];
    let refreshed = prop_oneof![6 => Just(None), 1 => (0_u64..40).prop_map(Some)];
    let whether = |one_in: u32| prop_oneof![one_in - 1 => Just(false), 1 => Just(true)];
    (step(), 0_u64..30, whether(4), refreshed, log, 0..5_u8, whether(12)).prop_map(
        |(step, place, snapshot, refreshed_from, log, gtids, foreign)| Made {
            step,
            place,
            snapshot,
            refreshed_from: refreshed_from.filter(|_| snapshot),
            log,
            gtids,
            foreign,
        },
    )
}

impl Made {
    /// The record as the one of that number. Most are in the order of the log, as histories are; every `stray`th is not.
    fn record(&self, number: usize, stray: usize) -> HistoryRecord {
        let table_changes = match &self.step {
            Step::Create(name, shape) => vec![TableChange::Create(definition(*name, *shape))],
            Step::Alter(name, shape) => {
                vec![TableChange::Alter { table: definition(*name, *shape), previous: None }]
            }
            Step::Rename(from, to, shape) => vec![TableChange::Alter {
                table: definition(*to, *shape),
                previous: Some(id(*from)),
            }],
            Step::Drop(name) => vec![TableChange::Drop(id(*name))],
            Step::Swap(a, b, shape) => vec![
                TableChange::Alter { table: definition(*b, *shape), previous: Some(id(*a)) },
                TableChange::Alter { table: definition(*a, shape / 2), previous: Some(id(*b)) },
            ],
            Step::Text(_) => Vec::new(),
        };
        let ddl = match &self.step {
            Step::Text(text) => (*text).to_owned(),
            step @ (Step::Create(..)
            | Step::Alter(..)
            | Step::Rename(..)
            | Step::Drop(_)
            | Step::Swap(..)) => format!("statement {number} {step:?}"),
        };
        let in_order = u64::try_from(number).unwrap();
        let place = if number % stray == stray - 1 { self.place } else { in_order };
        HistoryRecord {
            source: if self.foreign { "other" } else { "inv" }.to_owned(),
            position: SourceOffset {
                gtids: gtids(self.gtids, place),
                ..position(place, self.log, self.snapshot, self.refreshed_from)
            },
            ts_ms: 5,
            database_name: "d".to_owned(),
            ddl: Some(ddl),
            table_changes,
        }
    }
}

/// Ten places a file.
fn position(place: u64, log: Log, snapshot: bool, refreshed_from: Option<u64>) -> SourceOffset {
    let file = |place: u64| format!("mysql-bin.{:06}", place / 10 + 1);
    let pos = |place: u64| 100 + place % 10 * 100;
    let refresh_head = refreshed_from.map(|place| format!("{}:{}", file(place), pos(place)));
    let members = HoldfastMembers {
        lineage: Some("A".to_owned()),
        refresh_head,
        closed: Some("1:mysql-bin.000002:300".to_owned()),
        ..HoldfastMembers::default()
    };
    let holdfast = match log {
        Log::Epoch(epoch) => Some(HoldfastMembers { epoch, ..members }),
        Log::Unknown => members.refresh_head.is_some().then_some(members),
    };
    SourceOffset {
        file: file(place),
        pos: pos(place),
        snapshot: snapshot.then_some(SnapshotKind::Initial),
        holdfast,
        ..SourceOffset::default()
    }
}

/// The offset that is recovered: of epoch 2.
fn offset(place: u64, kind: u8) -> SourceOffset {
    SourceOffset { gtids: gtids(kind, place), ..position(place, Log::Epoch(2), false, None) }
}

/// What a log with one source of GTIDs has executed at a place, with two, and with holes.
fn gtids(kind: u8, place: u64) -> Option<String> {
    const U: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const V: &str = "9f0e11fa-71ca-11e1-9e33-c80aa9429562";
    let end = 10 + place;
    match kind {
        1 => Some(format!("{U}:1-{end}")),
        2 => Some(format!("{U}:1-{end},{V}:1-{}", 1 + place / 3)),
        3 => Some(format!("{U}:1-{}:{}", 5 + place / 2, end)),
        _ => None,
    }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn same(a: &Recovered, b: &Recovered) {
    assert_eq!(a.tables, b.tables);
    assert_eq!(a.report, b.report);
    assert_eq!(a.guard, b.guard);
    assert_eq!(a.ahead, b.ahead);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn definitions_that_are_read_late_are_the_same(
        made in prop::collection::vec(made(), 0..30),
        place in 0_u64..32,
        gtids in 0..5_u8,
        lower_case_names in any::<bool>(),
        prefer_ddl in prop_oneof![4 => Just(false), 1 => Just(true)],
    ) {
        let records: Vec<HistoryRecord> =
            made.iter().enumerate().map(|(number, made)| made.record(number, 5)).collect();
        let store = MemoryHistory::new().open().unwrap();
        let context = DdlContext::default();
        let options = RecoverOptions {
            skip_unparseable: true,
            lower_case_names,
            prefer_ddl,
            ..RecoverOptions::new(&context)
        };
        let offset = offset(place, gtids);
        let late = run(async {
            for record in &records {
                store.append(std::slice::from_ref(record)).await.unwrap();
            }
            recover_store(&store, "inv", &offset, &options).await.unwrap()
        });
        same(&late, &recover(&records, "inv", &offset, &options).unwrap());
    }

    #[test]
    fn a_checkpoint_and_the_records_after_it_give_what_all_records_give(
        made in prop::collection::vec(made(), 1..30),
        stray in 4_usize..40,
        gtids in 0..5_u8,
        lower_case_names in any::<bool>(),
        cuts in [any::<prop::sample::Index>(), any::<prop::sample::Index>()],
        places in [0_u64..32, 0_u64..32, 0_u64..32],
    ) {
        let records: Vec<HistoryRecord> =
            made.iter().enumerate().map(|(number, made)| made.record(number, stray)).collect();
        let mut cuts = cuts.map(|cut| cut.index(records.len()));
        let mut places = places;
        cuts.sort_unstable();
        places.sort_unstable();
        let context = DdlContext::default();
        let options = RecoverOptions {
            skip_unparseable: true,
            lower_case_names,
            checkpoint: true,
            ..RecoverOptions::new(&context)
        };
        let [first, second, last] = places.map(|place| offset(place, gtids));
        let history = MemoryHistory::new();
        let (mut resumed, check) = run(async {
            // Appends of one, two and three records.
            let append = async |from: usize, to: usize| {
                let store = history.open().unwrap();
                let mut rest = &records[from..to];
                while !rest.is_empty() {
                    let (some, more) = rest.split_at(rest.len().min(1 + rest.len() % 3));
                    store.append(some).await.unwrap();
                    rest = more;
                }
                store
            };
            let store = append(0, cuts[0]).await;
            write_checkpoint(&store, "inv", &first, &options).await.unwrap();
            drop(store);
            let store = append(cuts[0], cuts[1]).await;
            write_checkpoint(&store, "inv", &second, &options).await.unwrap();
            drop(store);
            let store = append(cuts[1], records.len()).await;
            let resumed = recover_store(&store, "inv", &last, &options).await.unwrap();
            (resumed, check_checkpoint(&store, "inv", &last, &options).await.unwrap())
        });
        match (check, resumed.report.from_checkpoint) {
            (CheckpointCheck::None | CheckpointCheck::Unused(_), 0) => {}
            (CheckpointCheck::Agrees { records }, used) => prop_assert_eq!(records, used),
            (check, _) => prop_assert!(false, "{:?}", check),
        }
        resumed.report.from_checkpoint = 0;
        same(&resumed, &recover(&records, "inv", &last, &options).unwrap());
    }
}
