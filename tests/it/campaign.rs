//! The engine is killed, cut off and stopped again and again, on a server that works, rotates, purges and restarts.
//!
//! A campaign is a row of episodes, each on fresh tables with a seed of its own; an episode is a row of rounds, each one
//! process. What every process gives has to fit into the one sequence of records (`model`): it begins no later than what
//! was acknowledged and no earlier than what was committed, and repeats what it repeats without a difference. Every few
//! rounds the tables that the records make are those of the server.
//!
//! `HOLDFAST_EPISODES` sets how many, `HOLDFAST_SEED` the seed of the first. A failing episode prints what replays it.

mod model;
mod plan;
mod workload;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_tests::engine::{Engine, Process, Properties, Record, RunOptions};
use holdfast_tests::faults::{Fault, FaultProxy};
use holdfast_tests::json::Json;
use holdfast_tests::random::Random;
use holdfast_tests::server::{Flavour, Options, Server};
use holdfast_tests::{Context, Failure, Result, paths};

use model::{Acknowledged, Model, Run};
use plan::{End, Plan, Upheaval};
use workload::Workload;

/// Episodes of each campaign, unless `HOLDFAST_EPISODES` says more.
const EPISODES: u64 = 9;

/// Rounds of an episode, and how often the tables are compared.
const ROUNDS: u64 = 20;
const COMPARED: u64 = 6;

/// Longest time for what has to come.
const LIMIT: Duration = Duration::from_secs(240);

/// The exit code of an engine that could not connect.
const NO_CONNECTION: i32 = 5;

/// What was done, for the summary.
#[derive(Debug, Default)]
struct Tally {
    rounds: u64,
    records: usize,
    repeated: usize,
    kills: u64,
    without_connection: u64,
    restarts: u64,
    purges: u64,
    compared: u64,
}

/// One episode that is being played.
struct Episode<'a> {
    server: &'a Server,
    proxy: &'a FaultProxy,
    files: PathBuf,
    database: String,
    properties: Properties,
    random: Random,
    /// Offsets and history are in tables of the server, else in files.
    in_tables: bool,
    workload: Workload,
    model: Model,
    marks: i64,
    tally: &'a mut Tally,
}

impl<'a> Episode<'a> {
    fn new(
        server: &'a Server,
        proxy: &'a FaultProxy,
        files: PathBuf,
        seed: u64,
        tally: &'a mut Tally,
    ) -> Result<Self> {
        let database = format!("crash_{seed}");
        server.sql(&workload::setup(&database))?;
        let mut random = Random::new(seed);
        let mut properties = Properties::new(server, &files);
        properties.set("database.port", proxy.port().to_string());
        properties.set("database.include.list", database.as_str());
        properties.set("holdfast.headers.identity", "true");
        properties.set("retriable.restart.connector.wait.ms", "20");
        let in_tables = random.one_in(4);
        if in_tables {
            let stores = stores(&database);
            server.sql(&format!("DROP DATABASE IF EXISTS {stores}; CREATE DATABASE {stores}"))?;
            properties.store_in_tables(server, &stores)?;
        }
        Ok(Self {
            server,
            proxy,
            files,
            properties,
            random,
            in_tables,
            workload: Workload::new(server.flavour(), &database),
            database,
            model: Model::default(),
            marks: 0,
            tally,
        })
    }

    fn play(&mut self) -> Result<()> {
        for round in 0..ROUNDS {
            let mut random = self.random.split();
            let mut plan = match round {
                // The snapshot. Interrupted ones have tests of their own.
                0 => Plan::settle(),
                _ if round % COMPARED == 1 => Plan::settle_over_breaks(&mut random),
                _ => Plan::draw(&mut random),
            };
            if self.in_tables {
                // A store that is away is an error that says so.
                plan.server = Upheaval::Nothing;
            }
            let scripts = self.workload.round(&mut random, round > 0);
            self.round(round, &plan, &scripts).context(|| format!("round {round}, {plan:?}"))?;
            self.tally.rounds += 1;
        }
        let mut random = self.random.split();
        let scripts = self.workload.finish(&mut random);
        self.round(ROUNDS, &Plan::settle(), &scripts).context(|| "the last round".to_owned())?;
        self.tally.records += self.model.len();
        self.tally.repeated += self.model.repeated;
        let database = &self.database;
        let stores = stores(database);
        self.server.sql(&format!("DROP DATABASE {database}; DROP DATABASE IF EXISTS {stores}"))?;
        Ok(fs::remove_dir_all(&self.files)?)
    }

    fn round(&mut self, round: u64, plan: &Plan, scripts: &[String]) -> Result<()> {
        if plan.purge {
            self.purge()?;
        }
        if plan.from_record {
            // So that there is one.
            self.mark()?;
        }
        if plan.backlog {
            self.write(scripts)?;
        }
        self.proxy.plan(plan.faults.iter().copied());
        let mut process = self.start(round, plan)?;
        if !plan.backlog {
            self.write(scripts)?;
        }
        match plan.server {
            Upheaval::Nothing => {}
            Upheaval::Restart => self.server.restart()?,
            Upheaval::Kill => {
                self.server.kill()?;
                self.server.launch()?;
            }
        }
        self.tally.restarts += u64::from(plan.server != Upheaval::Nothing);
        self.end(&mut process, plan)?;
        let stopped = self.is_well(&mut process, plan)?;
        let run = Run { acknowledged: plan.acknowledged, batch: plan.batch, stopped };
        self.model.process(process.records(), run).map_err(|error| {
            Failure::new(format!("{error}\nthe engine's log ends:\n{}", process.log_tail()))
        })?;
        if plan.end == End::Settle {
            self.compare()?;
        }
        Ok(())
    }

    fn start(&self, round: u64, plan: &Plan) -> Result<Process> {
        let mut properties = self.properties.clone();
        properties.set("max.batch.size", plan.batch.to_string());
        properties.set("max.queue.size", (plan.batch * 2 + 1).to_string());
        properties.set("offset.flush.interval.ms", plan.flush_interval_ms.to_string());
        let encryption = match self.server.flavour() {
            Flavour::MySql if plan.tls => "preferred",
            Flavour::MySql => "disabled",
            // It offers none.
            Flavour::MariaDb => "disable",
        };
        properties.set("database.ssl.mode", encryption);
        if plan.faults.iter().any(|fault| matches!(fault, Fault::Silence { .. })) {
            properties.set("connect.keep.alive.interval.ms", "1000");
        }
        let ack_first = match plan.acknowledged {
            Acknowledged::Soon => None,
            Acknowledged::First(count) => Some(count),
        };
        let options = RunOptions { ack_first, ..RunOptions::default() };
        let name = format!("round-{round}");
        Process::start(Engine::Holdfast, &properties, &self.files, &name, options)
    }

    /// Runs scripts, each in a session of its own.
    fn write(&self, scripts: &[String]) -> Result<()> {
        for script in scripts {
            let mut left = 100;
            while let Err(error) = self.server.sql(script) {
                // MariaDB may not have put a transaction aside yet whose session has ended.
                let early = script.starts_with("XA ") && error.to_string().contains("XAER");
                left -= 1;
                if !early || left == 0 {
                    return Err(error).context(|| script.clone());
                }
                self.server.sql("DO SLEEP(0.1)")?;
            }
        }
        Ok(())
    }

    /// Purges the files before the one that the stored offset names, unless prepared transactions are in them.
    fn purge(&mut self) -> Result<()> {
        let Ok(text) = fs::read_to_string(self.files.join("offsets.dat")) else { return Ok(()) };
        let offsets = Json::parse(&text)?;
        let offset = offsets.get("offsets").and_then(|offsets| offsets.members().first());
        let Some((_, offset)) = offset else { return Ok(()) };
        if let Some(file) = offset.text("file")
            && offset.text("holdfast_held").is_none()
        {
            self.server.sql(&format!("PURGE BINARY LOGS TO '{file}'"))?;
            self.tally.purges += 1;
        }
        Ok(())
    }

    /// Writes a row whose record is to come, and gives its key.
    fn mark(&mut self) -> Result<i64> {
        self.marks += 1;
        let mark = self.marks;
        self.server.sql(&format!("INSERT INTO {}.mark VALUES ({mark})", self.database))?;
        Ok(mark)
    }

    /// Writes a row and waits for its record, whose index it gives.
    fn wait_for_mark(&mut self, process: &mut Process) -> Result<usize> {
        let mark = self.mark()?;
        process.wait_for("the mark", LIMIT, |record| {
            record.source().text("table") == Some("mark")
                && record.key().get("id").and_then(Json::as_i64) == Some(mark)
        })
    }

    /// Waits for the moment at which the round ends.
    fn end(&mut self, process: &mut Process, plan: &Plan) -> Result<()> {
        if plan.from_record {
            let limit = if plan.is_harmed() { Duration::from_secs(3) } else { LIMIT };
            let first = process.wait_for("a record", limit, |_| true);
            if !plan.is_harmed() {
                first?;
            }
        }
        // That nothing is found within the time is no failure here.
        match plan.end {
            End::KillAfter(time) | End::StopAfter(time) => {
                _ = process.wait_for("the moment", Duration::from_millis(time), |_| false);
            }
            End::KillAt(count) => {
                let mut left = count;
                _ = process.wait_for("the record", Duration::from_millis(400), |_| {
                    left -= 1;
                    left == 0
                });
            }
            End::Settle => {
                let first = self.wait_for_mark(process)?;
                if process.records().get(first).is_some_and(Record::is_snapshot) {
                    // It was read with its table, and other tables may follow.
                    process.wait_for("the end of the snapshot", LIMIT, |record| {
                        record.source().text("snapshot") == Some("last")
                    })?;
                    self.wait_for_mark(process)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the process if it has not ended by itself, which only a harmed connection allows. Tells whether it stopped
    /// on request.
    fn is_well(&mut self, process: &mut Process, plan: &Plan) -> Result<bool> {
        let ended = process.wait_end(Duration::ZERO).ok();
        let stopped = ended.is_none() && matches!(plan.end, End::StopAfter(_) | End::Settle);
        match ended {
            Some(status) => {
                if !plan.is_harmed() || status.code() != Some(NO_CONNECTION) {
                    return Err(Failure::new(format!("it ended ({status}):\n{}", process.log())));
                }
                self.tally.without_connection += 1;
            }
            None if stopped => process.stop()?,
            None => {
                process.kill()?;
                self.tally.kills += 1;
            }
        }
        let log = process.log();
        if log.contains("panicked") || ended.is_none() && log.contains("ERROR") {
            return Err(Failure::new(format!("its log has errors:\n{log}")));
        }
        Ok(stopped)
    }

    /// The tables that the records make are those of the server.
    fn compare(&mut self) -> Result<()> {
        let database = &self.database;
        let mut tables: Vec<(String, Vec<String>)> = Vec::new();
        for row in self.server.query(&format!(
            "SELECT table_name, column_name FROM information_schema.columns \
             WHERE table_schema = '{database}' ORDER BY table_name, ordinal_position"
        ))? {
            let [table, column] = row.as_slice() else { return Err(Failure::new("two columns")) };
            match tables.last_mut() {
                Some((last, columns)) if last == table => columns.push(column.clone()),
                _ => tables.push((table.clone(), vec![column.clone()])),
            }
        }
        let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
        let made: Vec<&str> = self.model.tables().collect();
        if names != made {
            return Err(Failure::new(format!("tables {made:?} came, the server has {names:?}")));
        }
        let queries: String = names
            .iter()
            .map(|name| format!("SELECT '#{name}'; SELECT * FROM {database}.{name} ORDER BY id;"))
            .collect();
        let rows = self.server.query(&queries)?;
        let mut server = rows.split(|row| row.first().is_some_and(|text| text.starts_with('#')));
        // Nothing is before the first name.
        server.next();
        for (name, columns) in &tables {
            let (made, there) = (self.model.rows(name, columns), server.next().unwrap_or_default());
            if made != there {
                let (only_made, only_there) = (without(&made, there), without(there, &made));
                return Err(Failure::new(format!(
                    "{name} {columns:?}: the records make {only_made:?}, the server has {only_there:?}"
                )));
            }
        }
        self.tally.compared += 1;
        Ok(())
    }
}

/// The database of the stores that are tables.
fn stores(database: &str) -> String {
    format!("{database}_stores")
}

/// The rows that are not among `others`, at most a few.
fn without<'a>(rows: &'a [Vec<String>], others: &[Vec<String>]) -> Vec<&'a [String]> {
    let missing = rows.iter().filter(|row| !others.contains(row));
    missing.map(Vec::as_slice).take(5).collect()
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn campaign(name: &str, options: Options, episodes: u64) {
    let first = number("HOLDFAST_SEED", 20_260_101);
    println!("{name}: {episodes} episodes of {ROUNDS} rounds from seed {first}");
    let server = Server::start(options).unwrap();
    let proxy = FaultProxy::start(server.port()).unwrap();
    let mut tally = Tally::default();
    for seed in first..first + episodes {
        let files = paths::fresh(name).unwrap();
        let outcome = Episode::new(&server, &proxy, files.clone(), seed, &mut tally)
            .and_then(|mut episode| episode.play());
        if let Err(error) = outcome {
            panic!(
                "{name}, seed {seed}: {error}\nfiles: {}\nreplay with HOLDFAST_SEED={seed} HOLDFAST_EPISODES=1",
                files.display()
            );
        }
    }
    println!("{name}: {tally:?}, {} connections harmed", proxy.harmed());
    if episodes > 3 {
        let enough = tally.records > 1000 && tally.repeated > 100 && proxy.harmed() > 10;
        assert!(enough, "the campaign is too small to show anything");
    }
}

fn episodes() -> u64 {
    number("HOLDFAST_EPISODES", EPISODES)
}

#[test]
fn nothing_is_lost_over_kills_and_faults_with_gtids() {
    campaign("campaign-gtid", Options::mysql(), episodes());
}

#[test]
fn nothing_is_lost_over_kills_and_faults_without_gtids() {
    campaign("campaign-no-gtid", Options::mysql().without_gtids(), episodes());
}

#[test]
fn nothing_is_lost_over_kills_and_faults_on_mariadb() {
    campaign("campaign-mariadb", Options::mariadb(), episodes());
}
