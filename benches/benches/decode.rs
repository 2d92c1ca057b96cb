//! Decoding a whole binlog from memory, one thread, checksums verified.
//!
//! In the loop: reading (a copy into the reader's buffer), cutting into events, checksum, every event parsed, every
//! value decoded and looked at. Not in the loop: building the corpus, opening a file, records and their JSON.
//!
//! | name | what it does |
//! | --- | --- |
//! | `walk/CORPUS` | reads, cuts, computes checksums; decodes nothing |
//! | `decode/sink/CORPUS` | every value to a `RowSink` |
//! | `decode/rows/CORPUS` | every value into a `Row` |
//! | `decode/final/CORPUS` | as `sink`; DECIMAL to an integer, DATETIME to microseconds, JSON to text |
//!
//! Throughput is in bytes of the file; the number of rows is printed with each corpus. `HOLDFAST_BENCH_MB` sets the size.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use holdfast_benches::corpus;
use holdfast_benches::decode::{self, Work};

/// Size in a test, where each bench runs once to show that it does.
const TEST_SIZE: u64 = 1_000_000;

fn decoding(criterion: &mut Criterion) {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    // As criterion has it: `cargo bench` says `--bench`.
    let is_test = has("--test") || !has("--bench");
    let size = if is_test { TEST_SIZE } else { corpus::size() };
    for name in ["narrow", "wide", "blob", "compressed"] {
        let Some(corpus) = corpus::by_name(name, size) else { continue };
        println!("{name}: {} bytes, {:?}", corpus.bytes.len(), corpus.facts);
        let works = [
            ("walk", Work::Walk),
            ("decode/sink", Work::Sink),
            ("decode/rows", Work::Row),
            ("decode/final", Work::Final),
        ];
        for (title, work) in works {
            let mut group = criterion.benchmark_group(title);
            group.sample_size(10);
            group.throughput(Throughput::Bytes(corpus.bytes.len() as u64));
            group.bench_function(name, |bencher| {
                bencher.iter_batched(
                    || corpus.bytes.as_slice(),
                    |bytes| decode::run(bytes, work).expect("a corpus has no errors"),
                    BatchSize::PerIteration,
                );
            });
            group.finish();
        }
    }
}

criterion_group!(benches, decoding);
criterion_main!(benches);
