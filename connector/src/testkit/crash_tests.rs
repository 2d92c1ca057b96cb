//! Random logs, read by engines that are torn down at random points.
//!
//! A first engine reads the log undisturbed; its records are held against what the log was made of. Then engines with
//! other batch sizes read it from the stores that the one before left, lose connections, meet damaged events, acknowledge
//! and give back at random, and are dropped. Each must begin exactly behind the stored frontier and deliver the same
//! records, byte for byte.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config as Settings;

use super::*;
use crate::format::debezium_json::Op;
use crate::identity::EventId;
use crate::record::RecordKind;

const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

/// What one statement changes.
#[derive(Debug, Clone)]
enum Change {
    Insert(Vec<i64>),
    Update(Vec<i64>),
    /// From the first of each to the second.
    Keys(Vec<(i64, i64)>),
    Delete(Vec<i64>),
}

/// How a transaction is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    Plain,
    Compressed,
    /// Its rows events in fragments, the first of so many bytes.
    Fragments(usize),
}

/// What a prepared transaction comes to, and after how many more units.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Commit(usize),
    Rollback(usize),
    OnePhase,
}

#[derive(Debug, Clone)]
enum Unit {
    Transaction { changes: Vec<Change>, form: Form },
    Xa { changes: Vec<Change>, outcome: Outcome },
    AddColumn,
    Rotate,
}

/// Records that a unit gives: the operation, or what else it is, and the key.
type Expected = Vec<(RecordKind, Option<i64>)>;

fn key() -> impl Strategy<Value = i64> {
    0_i64..50
}

fn change() -> impl Strategy<Value = Change> {
    let some = || prop::collection::vec(key(), 1..5);
    prop_oneof![
        3 => some().prop_map(Change::Insert),
        2 => some().prop_map(Change::Update),
        2 => prop::collection::vec((key(), 50_i64..99), 1..3).prop_map(Change::Keys),
        2 => some().prop_map(Change::Delete),
    ]
}

fn unit() -> impl Strategy<Value = Unit> {
    let changes = || prop::collection::vec(change(), 1..4);
    let outcome = prop_oneof![
        (0_usize..3).prop_map(Outcome::Commit),
        (0_usize..3).prop_map(Outcome::Rollback),
        Just(Outcome::OnePhase),
    ];
    let form = prop_oneof![
        2 => Just(Form::Plain),
        2 => Just(Form::Compressed),
        1 => (1_usize..60).prop_map(Form::Fragments),
    ];
    prop_oneof![
        5 => (changes(), form).prop_map(|(changes, form)| Unit::Transaction { changes, form }),
        3 => (changes(), outcome).prop_map(|(changes, outcome)| Unit::Xa { changes, outcome }),
        2 => Just(Unit::AddColumn),
        1 => Just(Unit::Rotate),
    ]
}

/// What the consumer does with one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Acknowledge,
    FirstPart,
    Reject,
    Nothing,
}

/// One engine's life.
#[derive(Debug, Clone)]
struct Run {
    batch_size: usize,
    /// Batches that it gives out.
    batches: usize,
    /// One for each group, again from the first when there are more groups.
    answers: Vec<Answer>,
    /// Whether groups are answered from the last to the first.
    backwards: bool,
    /// Whether the frontier is stored before the end.
    flushed: bool,
    fault: Option<(u64, Fault)>,
}

fn run() -> impl Strategy<Value = Run> {
    let answer = prop_oneof![
        8 => Just(Answer::Acknowledge),
        1 => Just(Answer::FirstPart),
        1 => Just(Answer::Reject),
        1 => Just(Answer::Nothing),
    ];
    let fault = (1_u64..60, prop_oneof![3 => Just(Fault::Disconnect), 1 => Just(Fault::Corrupt)]);
    (
        prop_oneof![Just(1_usize), Just(2), Just(7), Just(2048)],
        0_usize..8,
        prop::collection::vec(answer, 1..12),
        any::<bool>(),
        any::<bool>(),
        prop::option::of(fault),
    )
        .prop_map(|(batch_size, batches, answers, backwards, flushed, fault)| Run {
            batch_size,
            batches,
            answers,
            backwards,
            flushed,
            fault,
        })
}

/// Writes units into a log and notes what each is to give.
struct Story {
    server: ScriptedServer,
    gtids: bool,
    transactions: u64,
    files: u32,
    added: usize,
    /// Prepared transactions: number, records, the outcome, and units until then.
    prepared: Vec<(u64, Expected, Outcome, usize)>,
    expected: Vec<Expected>,
}

impl Story {
    fn new(gtids: bool) -> Self {
        let mut this = Self {
            server: ScriptedServer::new(LogBuilder::new("binlog.000001")),
            gtids,
            transactions: 0,
            files: 1,
            added: 0,
            prepared: Vec::new(),
            expected: Vec::new(),
        };
        this.statement("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
        this
    }

    /// The log of all units, and the records in the order of delivery.
    fn of(units: &[Unit], gtids: bool) -> (ScriptedServer, Expected) {
        let mut this = Self::new(gtids);
        for unit in units {
            this.unit(unit);
            let due = |unit: &(_, _, _, usize)| unit.3 == 0;
            while let Some(index) = this.prepared.iter().position(due) {
                this.decide(index);
            }
            for prepared in &mut this.prepared {
                prepared.3 -= 1;
            }
        }
        this.decide_all();
        this.server.complete();
        (this.server, this.expected.concat())
    }

    fn decide_all(&mut self) {
        while !self.prepared.is_empty() {
            self.decide(0);
        }
    }

    fn unit(&mut self, unit: &Unit) {
        match unit {
            Unit::Transaction { changes, form } => {
                let added = self.added;
                let number = self.gtid();
                let body = |log: LogBuilder| rows(log.begin(), changes, added).xid(number);
                self.server.write(|log| match *form {
                    Form::Plain => body(log),
                    Form::Compressed => log.compressed(body),
                    Form::Fragments(size) => log.in_fragments(&[size, 9], body),
                });
                self.expected.push(records(changes));
            }
            Unit::Xa { changes, outcome } => {
                let added = self.added;
                let number = self.gtid();
                let name = number.to_be_bytes();
                let xid = XaId { format_id: 1, gtrid: &name, bqual: b"" };
                let one_phase = matches!(outcome, Outcome::OnePhase);
                self.server.write(|log| {
                    let log = log.query("shop", &format!("XA START {xid}"));
                    let log = rows(log, changes, added);
                    log.query("shop", &format!("XA END {xid}")).xa_prepare(xid, one_phase)
                });
                let records = records(changes);
                match *outcome {
                    Outcome::OnePhase => self.expected.push(records),
                    Outcome::Commit(after) | Outcome::Rollback(after) => {
                        self.prepared.push((number, records, *outcome, after));
                    }
                }
            }
            Unit::AddColumn => {
                // A prepared transaction keeps its tables as they are.
                self.decide_all();
                self.added += 1;
                self.statement(&format!("ALTER TABLE t ADD COLUMN c{} INT", self.added));
            }
            Unit::Rotate => {
                self.files += 1;
                self.server.rotate(&format!("binlog.{:06}", self.files));
            }
        }
    }

    fn statement(&mut self, sql: &str) {
        self.gtid();
        self.server.write(|log| log.query("shop", sql));
        self.expected.push(vec![(RecordKind::SchemaChange, None)]);
    }

    fn decide(&mut self, index: usize) {
        let (number, records, outcome, _) = self.prepared.remove(index);
        let name = number.to_be_bytes();
        let xid = XaId { format_id: 1, gtrid: &name, bqual: b"" };
        self.gtid();
        let verb = if matches!(outcome, Outcome::Commit(_)) {
            self.expected.push(records);
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        self.server.write(|log| log.query("shop", &format!("XA {verb} {xid}")));
    }

    /// Announces the next transaction; its number.
    fn gtid(&mut self) -> u64 {
        self.transactions += 1;
        let number = self.transactions;
        let gtids = self.gtids;
        self.server.write(|log| {
            if gtids {
                log.gtid(format!("{SOURCE}:{number}").parse().unwrap())
            } else {
                log.anonymous_gtid()
            }
        });
        number
    }
}

fn rows(log: LogBuilder, changes: &[Change], added: usize) -> LogBuilder {
    let mut columns = vec![TestColumn::int(), TestColumn::int().nullable()];
    columns.extend(vec![TestColumn::int().nullable(); added]);
    let image = |id: i64, v: i64| -> Vec<TestValue> {
        let mut row = vec![TestValue::Int(id), TestValue::Int(v)];
        row.extend(vec![TestValue::Null; added]);
        row
    };
    let mut log = log;
    for change in changes {
        log = log.table_map(9, "shop", "t", &columns);
        log = match change {
            Change::Insert(ids) => {
                log.write_rows(9, &slices(&ids.iter().map(|id| image(*id, 1)).collect::<Vec<_>>()))
            }
            Change::Delete(ids) => {
                log.delete_rows(9, &slices(&ids.iter().map(|id| image(*id, 1)).collect::<Vec<_>>()))
            }
            Change::Update(ids) => update(log, ids.iter().map(|id| (image(*id, 1), image(*id, 2)))),
            Change::Keys(keys) => {
                update(log, keys.iter().map(|(old, new)| (image(*old, 1), image(*new, 1))))
            }
        };
    }
    log
}

fn slices(rows: &[Vec<TestValue>]) -> Vec<&[TestValue]> {
    rows.iter().map(|row| &row[..]).collect()
}

fn update(
    log: LogBuilder,
    rows: impl Iterator<Item = (Vec<TestValue>, Vec<TestValue>)>,
) -> LogBuilder {
    let rows: Vec<_> = rows.collect();
    let rows: Vec<(&[TestValue], &[TestValue])> =
        rows.iter().map(|(before, after)| (&before[..], &after[..])).collect();
    log.update_rows(9, &rows)
}

fn records(changes: &[Change]) -> Expected {
    let data = |op, id: i64| (RecordKind::Data(op), Some(id));
    let mut all = Vec::new();
    for change in changes {
        match change {
            Change::Insert(ids) => all.extend(ids.iter().map(|id| data(Op::Create, *id))),
            Change::Update(ids) => all.extend(ids.iter().map(|id| data(Op::Update, *id))),
            Change::Keys(keys) => all.extend(keys.iter().flat_map(|(old, new)| {
                [
                    data(Op::Delete, *old),
                    (RecordKind::Tombstone, Some(*old)),
                    data(Op::Create, *new),
                ]
            })),
            Change::Delete(ids) => all.extend(
                ids.iter()
                    .flat_map(|id| [data(Op::Delete, *id), (RecordKind::Tombstone, Some(*id))]),
            ),
        }
    }
    all
}

/// One record as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    identity: EventId,
    kind: RecordKind,
    text: String,
}

/// The records of one ack group.
type Group = Vec<Seen>;

fn groups(batch: &crate::Batch) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for change in batch.changes() {
        let mut text = Vec::new();
        change.write_json(&mut text);
        let seen = Seen {
            identity: change.identity(),
            kind: change.kind(),
            text: String::from_utf8(text).unwrap(),
        };
        match groups.last_mut() {
            Some(group) if change.part() > 0 => group.push(seen),
            _ => groups.push(vec![seen]),
        }
    }
    groups
}

fn settings(batch_size: usize) -> Config {
    let size = batch_size.to_string();
    let properties = [
        ("max.batch.size", &*size),
        ("max.queue.size", "8192"),
        ("offset.flush.interval.ms", "3600000"),
        ("tombstones.on.delete", "true"),
        ("include.schema.changes", "true"),
    ];
    config(&properties).unwrap()
}

/// What undisturbed reading gives.
async fn reference(server: &ScriptedServer) -> Vec<Group> {
    let mut engine = server.engine(settings(3), &TestStores::new()).unwrap().start().await.unwrap();
    let mut all = Vec::new();
    while let Some(batch) = engine.next_batch().await.unwrap() {
        all.extend(groups(&batch));
        batch.acknowledge();
    }
    engine.close().await.unwrap();
    all
}

/// What is known of the groups of a log over all runs.
struct Known<'a> {
    reference: &'a [Group],
    /// Groups that are acknowledged in the current run.
    acknowledged: BTreeSet<usize>,
    /// The first group that the stored offset has not done.
    stored: usize,
}

impl Known<'_> {
    fn frontier(&self) -> usize {
        (self.stored..).find(|group| !self.acknowledged.contains(group)).unwrap_or_default()
    }

    /// One engine's life, up to its violent end.
    async fn run(&mut self, server: &ScriptedServer, stores: &TestStores, run: &Run) {
        let first = self.stored;
        self.acknowledged.clear();
        if let Some((events, fault)) = run.fault {
            server.fault_after(events, fault);
        }
        let builder = server.engine(settings(run.batch_size), stores).unwrap();
        let mut engine = builder.max_redeliveries(u32::MAX).start().await.unwrap();
        let mut next = first;
        for _ in 0..run.batches {
            // A damaged event is a crash like any other.
            let Ok(Some(batch)) = engine.next_batch().await else { break };
            let came = groups(&batch);
            let index =
                |group: &crate::AckGroup| first + usize::try_from(group.number().0).unwrap() - 1;
            let begin = index(&batch.changes().next().unwrap().ack_group());
            if batch.redelivery() == 0 {
                assert_eq!(begin, next, "the batch goes on behind the one before");
                next += came.len();
            }
            assert_eq!(came[..], self.reference[begin..begin + came.len()]);
            let mut handles: Vec<_> = batch
                .changes()
                .filter(|change| change.part() == 0)
                .map(|c| c.ack_group())
                .collect();
            if run.backwards {
                handles.reverse();
            }
            for group in handles {
                let number = index(&group);
                let parts = self.reference[number].len();
                let is_done = match run.answers[number % run.answers.len()] {
                    Answer::Reject if batch.redelivery() == 0 => {
                        group.reject();
                        false
                    }
                    Answer::Acknowledge | Answer::Reject => {
                        group.acknowledge();
                        true
                    }
                    Answer::FirstPart => {
                        group.acknowledge_part(0);
                        parts == 1
                    }
                    Answer::Nothing => false,
                };
                if is_done {
                    self.acknowledged.insert(number);
                }
            }
        }
        if run.flushed {
            engine.control().flush().await.unwrap();
            self.stored = self.frontier();
        }
        engine.abandon().await;
    }
}

fn check(units: &[Unit], gtids: bool, runs: &[Run]) {
    let (server, expected) = Story::of(units, gtids);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let reference = reference(&server).await;
        let seen: Vec<&Seen> = reference.iter().flatten().collect();
        let kinds: Vec<RecordKind> = expected.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(seen.iter().map(|seen| seen.kind).collect::<Vec<_>>(), kinds);
        for (seen, (_, key)) in seen.iter().zip(&expected) {
            let Some(key) = key else { continue };
            assert!(
                seen.text.contains(&format!(r#""key":{{"id":{key}}}"#)),
                "{key}: {}",
                seen.text
            );
        }
        let distinct: BTreeSet<String> =
            seen.iter().map(|seen| seen.identity.to_string()).collect();
        assert_eq!(distinct.len(), seen.len(), "identities are distinct");

        let stores = TestStores::new();
        let mut known = Known { reference: &reference, acknowledged: BTreeSet::new(), stored: 0 };
        for run in runs {
            known.run(&server, &stores, run).await;
        }
        // One last time: what is left comes, and nothing else. Faults that did not happen yet do so now, each once.
        let mut left = Vec::new();
        let mut errors = 0;
        let engine = 'engines: loop {
            let builder = server.engine(settings(5), &stores).unwrap();
            let mut engine = builder.start().await.unwrap();
            loop {
                match engine.next_batch().await {
                    Ok(Some(batch)) => {
                        left.extend(groups(&batch));
                        batch.acknowledge();
                    }
                    Ok(None) => break 'engines engine,
                    Err(error) => {
                        errors += 1;
                        assert!(errors <= runs.len(), "{}", error.chain());
                        engine.close().await.unwrap();
                        break;
                    }
                }
            }
        };
        engine.close().await.unwrap();
        assert_eq!(left, reference[known.stored..]);
    });
}

proptest! {
    #![proptest_config(Settings { cases: 200, ..Settings::default() })]

    #[test]
    fn what_is_acknowledged_is_never_lost_and_nothing_else_comes_twice(
        units in prop::collection::vec(unit(), 1..12),
        gtids in any::<bool>(),
        runs in prop::collection::vec(run(), 0..6),
    ) {
        check(&units, gtids, &runs);
    }
}
