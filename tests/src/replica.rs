//! A source and a replica of it, without GTIDs where a server can do without: positions then say where an engine stands.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::server::{Flavour, Options, Server};
use crate::{Failure, Result, wait};

/// How long a replica may take for what it has to do.
const LIMIT: Duration = Duration::from_secs(90);

/// Two servers, of which the second follows the first.
#[derive(Debug)]
pub struct Pair {
    /// Where statements are run.
    pub source: Server,
    /// What replays them, and logs them again.
    pub replica: Server,
}

impl Pair {
    /// Starts both, and has the replica replay the source's log from its first event on.
    ///
    /// # Errors
    ///
    /// When a server can't be started.
    pub fn start(flavour: Flavour) -> Result<Self> {
        let options = match flavour {
            Flavour::MySql => Options::mysql().without_gtids(),
            Flavour::MariaDb => Options::mariadb().arg("--log-slave-updates"),
        };
        let of_source = match flavour {
            Flavour::MySql => options.clone(),
            // What the replica does by itself is not counted with what it replays.
            Flavour::MariaDb => options.clone().arg("--gtid-domain-id=1"),
        };
        let pair = Self { source: Server::start(of_source)?, replica: Server::start(options)? };
        let (change, key, base) = match flavour {
            Flavour::MySql => {
                ("CHANGE REPLICATION SOURCE", ", GET_SOURCE_PUBLIC_KEY=1", "mysql-bin")
            }
            Flavour::MariaDb => ("CHANGE MASTER", "", "mariadb-bin"),
        };
        let word = pair.word("SOURCE", "MASTER");
        let Self { source, replica } = &pair;
        replica.sql(&format!(
            "{change} TO {word}_HOST='{}', {word}_PORT={}, {word}_USER='{}', {word}_PASSWORD='{}', \
             {word}_LOG_FILE='{base}.000001', {word}_LOG_POS=4{key}",
            source.host(),
            source.port(),
            source.user(),
            source.password()
        ))?;
        pair.follow()?;
        Ok(pair)
    }

    /// Has the replica go on.
    ///
    /// # Errors
    ///
    /// A statement that fails.
    pub fn follow(&self) -> Result<()> {
        self.replica.sql(&format!("START {}", self.word("REPLICA", "SLAVE")))
    }

    /// Stops the replication.
    ///
    /// # Errors
    ///
    /// A statement that fails.
    pub fn stop(&self) -> Result<()> {
        self.replica.sql(&format!("STOP {}", self.word("REPLICA", "SLAVE")))
    }

    /// Has the replica stay so many seconds behind, or none.
    ///
    /// # Errors
    ///
    /// A statement that fails.
    pub fn delay(&self, seconds: u32) -> Result<()> {
        let slave = self.word("REPLICA", "SLAVE");
        let change =
            self.word("CHANGE REPLICATION SOURCE TO SOURCE_DELAY", "CHANGE MASTER TO MASTER_DELAY");
        self.replica.sql(&format!("STOP {slave}; {change}={seconds}; START {slave}"))
    }

    /// Waits until the replica has all that the source has, and says that it is 0 seconds behind.
    ///
    /// # Errors
    ///
    /// When it does not get there.
    pub fn level(&self) -> Result<()> {
        let status = match self.source.flavour() {
            Flavour::MySql => "SHOW BINARY LOG STATUS",
            Flavour::MariaDb => "SHOW MASTER STATUS",
        };
        let rows = self.source.query(status)?;
        let Some([file, pos, ..]) = rows.first().map(Vec::as_slice) else {
            return Err(Failure::new(format!("no place from {status}: {rows:?}")));
        };
        let wait = self.word("SOURCE_POS_WAIT", "MASTER_POS_WAIT");
        let done =
            self.replica.value(&format!("SELECT {wait}('{file}', {pos}, {})", LIMIT.as_secs()))?;
        if done == "-1" || done == "NULL" {
            return Err(Failure::new(format!("the replica did not come to {file}:{pos}: {done}")));
        }
        self.until_behind("0", |seconds| seconds == "0")
    }

    /// Waits until the replica says that it is behind.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub fn lags(&self) -> Result<()> {
        self.until_behind("more than 0", |seconds| {
            seconds.parse::<u64>().is_ok_and(|seconds| seconds > 0)
        })
    }

    fn until_behind(&self, what: &str, fits: impl Fn(&str) -> bool) -> Result<()> {
        let field = self.word("Seconds_Behind_Source", "Seconds_Behind_Master");
        let found = wait::until(LIMIT, || -> Result<Option<()>> {
            Ok(self.status(field)?.filter(|seconds| fits(seconds)).map(|_| ()))
        })?;
        found.ok_or_else(|| Failure::new(format!("the replica was never {what} seconds behind")))
    }

    /// A field of the replica's status.
    fn status(&self, field: &str) -> Result<Option<String>> {
        let show = format!("SHOW {} STATUS", self.word("REPLICA", "SLAVE"));
        Ok(self.replica.row(&show)?.remove(field))
    }

    fn word(&self, mysql: &'static str, mariadb: &'static str) -> &'static str {
        match self.replica.flavour() {
            Flavour::MySql => mysql,
            Flavour::MariaDb => mariadb,
        }
    }
}

/// One pair of MySQL servers, shared by all tests of this process, one at a time. The replica follows and is level.
///
/// # Errors
///
/// When it can't be started, or does not get level.
pub fn shared() -> Result<MutexGuard<'static, Pair>> {
    static PAIR: Mutex<Option<&'static Mutex<Pair>>> = Mutex::new(None);
    let slot = {
        let mut pair = PAIR.lock().unwrap_or_else(PoisonError::into_inner);
        match *pair {
            Some(slot) => slot,
            None => *pair.insert(Box::leak(Box::new(Mutex::new(Pair::start(Flavour::MySql)?)))),
        }
    };
    let pair = slot.lock().unwrap_or_else(PoisonError::into_inner);
    pair.delay(0)?;
    pair.level()?;
    Ok(pair)
}
