//! What an append to a schema history on object storage costs as the history grows: one new object here, and the last
//! object written anew with one more line, up to 2,048 lines, in RisingWave. Bytes sent, and time.
//!
//! ```text
//! cargo run --release -p holdfast-benches --bin history_append -- [--appends N] [--s3]
//! ```
//!
//! On a folder, or with `--s3` on a local S3 server, which is slow itself. Ours is synced on a folder, the other way is
//! not. The records are those of `benches/src/history.rs`, over 20 tables.

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdfast_benches::history::HistoryMaker;
use holdfast_history::codec::write_record;
use holdfast_history::store::{HistoryStore, ObjectUrl, OpendalHistoryStore, S3Credentials};
use holdfast_tests::s3::{KEY, S3};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Appends of which the cost is shown, from 1.
const SHOWN: [usize; 7] = [1, 16, 128, 256, 512, 1024, 2048];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("history_append: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The cost of one append.
#[derive(Clone, Copy)]
struct Cost {
    bytes: usize,
    time: Duration,
}

fn run() -> Result<()> {
    let words = std::env::args().skip(1).collect::<Vec<_>>();
    let (mut appends, mut on_s3) = (2048, false);
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
            "--appends" => appends = words.next().ok_or("a number is missing")?.parse()?,
            "--s3" => on_s3 = true,
            other => return Err(format!("what is {other}?").into()),
        }
    }
    let folder = tempfile::tempdir()?;
    let server = on_s3.then(S3::start).transpose()?;
    let url = |name: &str| match &server {
        Some(server) => server.url(name),
        None => format!("file://{}/{name}", folder.path().display()),
    };
    let credentials = S3Credentials {
        access_key_id: KEY.to_owned(),
        secret_access_key: KEY.to_owned(),
        session_token: None,
    };
    let place = |name: &str| -> Result<ObjectUrl> {
        let url = ObjectUrl::parse(&url(name))?;
        Ok(if on_s3 { url.with_credentials(Some(credentials.clone())) } else { url })
    };
    let (ours, theirs) = (place("ours")?, place("rewritten")?);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (new, rewritten) = runtime.block_on(async {
        Ok::<_, Box<dyn Error>>((
            one_object_each(&ours, appends).await?,
            rewrite(&theirs, appends).await?,
        ))
    })?;
    let on = if on_s3 { "a local S3 server" } else { "a folder" };
    println!("{appends} appends of one record on {on}");
    println!("| append | a new object: bytes | µs | rewritten: bytes | µs |");
    println!("| --- | --- | --- | --- | --- |");
    for number in SHOWN.into_iter().filter(|number| *number <= appends) {
        let (Some(new), Some(old)) = (around(&new, number), around(&rewritten, number)) else {
            continue;
        };
        let micros = |cost: Cost| cost.time.as_micros();
        println!(
            "| {number} | {} | {} | {} | {} |",
            new.bytes,
            micros(new),
            old.bytes,
            micros(old)
        );
    }
    let sum = |costs: &[Cost]| {
        let bytes = costs.iter().map(|cost| cost.bytes).sum::<usize>() as f64 / 1e6;
        (bytes, costs.iter().map(|cost| cost.time).sum::<Duration>().as_secs_f64())
    };
    let (new, old) = (sum(&new), sum(&rewritten));
    println!("| all | {:.1} MB | {:.2} s | {:.1} MB | {:.2} s |", new.0, new.1, old.0, old.1);
    Ok(())
}

/// The bytes of an append, and the median of the times of the 15 around it.
fn around(costs: &[Cost], number: usize) -> Option<Cost> {
    let bytes = costs.get(number - 1)?.bytes;
    let from = (number - 1).saturating_sub(7);
    let mut times: Vec<Duration> = costs.iter().skip(from).take(15).map(|cost| cost.time).collect();
    times.sort();
    Some(Cost { bytes, time: *times.get(times.len() / 2)? })
}

async fn one_object_each(url: &ObjectUrl, appends: usize) -> Result<Vec<Cost>> {
    let store = OpendalHistoryStore::open_url(url).await?;
    let mut maker = HistoryMaker::new(20);
    let mut costs = Vec::new();
    for _ in 0..appends {
        let record = [maker.record()?];
        let started = Instant::now();
        store.append(&record).await?;
        let time = started.elapsed();
        costs.push(Cost { bytes: line(&record)?.len(), time });
    }
    Ok(costs)
}

async fn rewrite(url: &ObjectUrl, appends: usize) -> Result<Vec<Cost>> {
    let operator = url.operator()?;
    let mut maker = HistoryMaker::new(20);
    let mut costs = Vec::new();
    let mut lines = Vec::new();
    for number in 0..appends {
        let record = [maker.record()?];
        if number % 2048 == 0 {
            lines.clear();
        }
        let started = Instant::now();
        lines.extend(line(&record)?);
        let path = format!("{}/schema_history_{}.dat", url.path(), number / 2048 + 1);
        operator.write(&path, lines.clone()).await?;
        costs.push(Cost { bytes: lines.len(), time: started.elapsed() });
    }
    Ok(costs)
}

fn line(records: &[holdfast_history::HistoryRecord; 1]) -> Result<Vec<u8>> {
    let [record] = records;
    let mut line = Vec::new();
    write_record(record, None, &mut line);
    line.push(b'\n');
    Ok(line)
}
