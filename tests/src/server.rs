//! Real servers: started on a free port with a data folder of their own, stopped when the value is dropped.
//!
//! MySQL comes from `tests/scripts/install-mysql`, MariaDB from `tests/scripts/install-mariadb` (the distribution's) and
//! `install-mariadb-11`; they are run when the server is missing. `HOLDFAST_MYSQL_URL` and `HOLDFAST_MARIADB_URL` (`mysql://user:password@host:port`) name a server
//! that is already there; then nothing is started, options are ignored, and what needs a server of its own fails.
//!
//! A server lives under `tests/scripts/keep`, which stops it and removes its folder as soon as this process is gone, in
//! whatever way. So a server may stand in a `static`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Context, Failure, Result, paths, wait};

/// How long a server may take to answer its first query.
const START_LIMIT: Duration = Duration::from_secs(180);

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
}

/// Where a server's programs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Edition {
    /// Debian sid, unpacked into the cache.
    MySql,
    /// The distribution that this machine runs.
    MariaDb,
    /// Debian trixie, unpacked into the cache.
    MariaDb11,
}

impl Edition {
    const fn flavour(self) -> Flavour {
        match self {
            Self::MySql => Flavour::MySql,
            Self::MariaDb | Self::MariaDb11 => Flavour::MariaDb,
        }
    }

    /// The script that installs it.
    const fn script(self) -> &'static str {
        match self {
            Self::MySql => "scripts/install-mysql",
            Self::MariaDb => "scripts/install-mariadb",
            Self::MariaDb11 => "scripts/install-mariadb-11",
        }
    }

    /// The unpacked tree, if it is one.
    fn tree(self) -> Option<PathBuf> {
        match self {
            Self::MySql => Some(paths::cache().join("mysql")),
            Self::MariaDb => None,
            Self::MariaDb11 => Some(paths::cache().join("mariadb-11")),
        }
    }

    /// The folder with the SQL of the system tables.
    fn share(self) -> PathBuf {
        match self {
            Self::MySql | Self::MariaDb => PathBuf::from("/usr/share/mysql"),
            Self::MariaDb11 => paths::cache().join("mariadb-11/usr/share/mariadb"),
        }
    }

    /// The command line of a program up to `--no-defaults`, and for a server where its files are.
    fn program(self, program: Program) -> Vec<String> {
        let name = match (self.flavour(), program) {
            (Flavour::MySql, Program::Server) => "usr/sbin/mysqld",
            (Flavour::MySql, Program::Client) => "usr/bin/mysql",
            (Flavour::MariaDb, Program::Server) => "usr/sbin/mariadbd",
            (Flavour::MariaDb, Program::Client) => "usr/bin/mariadb",
        };
        let Some(tree) = self.tree() else {
            return vec![format!("/{name}"), "--no-defaults".to_owned()];
        };
        // The tree's own dynamic linker and libraries: no chroot, no root, nothing of this machine.
        let mut line = vec![
            tree.join("lib64/ld-linux-x86-64.so.2").display().to_string(),
            "--library-path".to_owned(),
            format!("{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu", tree.display()),
            tree.join(name).display().to_string(),
            "--no-defaults".to_owned(),
        ];
        if let Program::Server = program {
            line.push(format!("--basedir={}", tree.join("usr").display()));
            if self == Self::MariaDb11 {
                line.push(format!("--lc-messages-dir={}", self.share().display()));
                line.push(format!(
                    "--character-sets-dir={}",
                    self.share().join("charsets").display()
                ));
                line.push(format!("--plugin-dir={}", tree.join("usr/lib/mysql/plugin").display()));
            }
        }
        line
    }
}

/// How to start a server: arguments beside the defaults (row format, full row image, CRC32, GTIDs on).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    edition: Edition,
    args: Vec<String>,
}

impl Options {
    /// MySQL with GTIDs.
    #[must_use]
    pub const fn mysql() -> Self {
        Self { edition: Edition::MySql, args: Vec::new() }
    }

    /// MariaDB of the distribution (10.11 on Debian 12). Its GTIDs are always on.
    #[must_use]
    pub const fn mariadb() -> Self {
        Self { edition: Edition::MariaDb, args: Vec::new() }
    }

    /// MariaDB 11.8.
    #[must_use]
    pub const fn mariadb_11() -> Self {
        Self { edition: Edition::MariaDb11, args: Vec::new() }
    }

    /// Adds a server argument, such as `--binlog_row_metadata=FULL`; a later one wins.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// MySQL without GTIDs.
    #[must_use]
    pub fn without_gtids(self) -> Self {
        self.arg("--gtid-mode=OFF").arg("--enforce-gtid-consistency=OFF")
    }

    /// Which server this starts.
    #[must_use]
    pub const fn flavour(&self) -> Flavour {
        self.edition.flavour()
    }
}

/// A running server. Dropping it stops it and removes its folder; the folder stays when the thread is panicking.
#[derive(Debug)]
pub struct Server {
    options: Options,
    host: String,
    port: u16,
    user: String,
    password: String,
    version: String,
    own: Option<Own>,
}

/// A server that this process started.
#[derive(Debug)]
struct Own {
    folder: PathBuf,
    socket: PathBuf,
    server_id: u32,
    keeper: Mutex<Option<Keeper>>,
}

/// The `keep` script and the process that it guards.
#[derive(Debug)]
struct Keeper {
    script: Child,
    server: u32,
}

impl Server {
    /// Starts a server, or connects to the one that the environment names, and waits until it answers.
    ///
    /// # Errors
    ///
    /// When the server cannot be installed, started or reached; the text ends with the server's own log.
    pub fn start(options: Options) -> Result<Self> {
        let variable = match options.flavour() {
            Flavour::MySql => "HOLDFAST_MYSQL_URL",
            Flavour::MariaDb => "HOLDFAST_MARIADB_URL",
        };
        match std::env::var(variable) {
            Ok(url) if !url.is_empty() => {
                Self::outside(options, &url).context(|| variable.to_owned())
            }
            _ => Self::own(options),
        }
    }

    fn outside(options: Options, url: &str) -> Result<Self> {
        let (user, password, host, port) = parse_url(url)
            .ok_or_else(|| Failure::new("expected mysql://user:password@host:port"))?;
        install(options.edition)?;
        let mut server =
            Self { options, host, port, user, password, version: String::new(), own: None };
        server.version = server.value("SELECT VERSION()")?;
        announce(&server.version, "outside", server.port);
        Ok(server)
    }

    fn own(options: Options) -> Result<Self> {
        install(options.edition)?;
        let template = template(options.edition)?;
        let folder = paths::fresh(match options.flavour() {
            Flavour::MySql => "mysql",
            Flavour::MariaDb => "mariadb",
        })?;
        run(Command::new("cp").arg("-a").arg(&template).arg(folder.join("data")))?;
        fs::create_dir_all(folder.join("tmp"))?;
        let port = free_port()?;
        // A socket path may have at most 107 bytes, and a build directory can be deep.
        let socket = std::env::temp_dir().join(format!("holdfast-{port}.sock"));
        let mut server = Self {
            options,
            host: "127.0.0.1".to_owned(),
            port,
            user: "root".to_owned(),
            password: String::new(),
            version: String::new(),
            own: Some(Own { folder, socket, server_id: u32::from(port), keeper: Mutex::new(None) }),
        };
        server.launch()?;
        server.version = server.value("SELECT VERSION()")?;
        announce(&server.version, "started", server.port);
        Ok(server)
    }

    /// Stops the server in the ordinary way and starts it again on the same port and data.
    ///
    /// # Errors
    ///
    /// When it is not ours, or does not come back.
    pub fn restart(&self) -> Result<()> {
        self.halt("TERM")?;
        self.launch()
    }

    /// Kills the server with SIGKILL, as a crash would; [`launch`](Self::launch) starts it again.
    ///
    /// # Errors
    ///
    /// When it is not ours.
    pub fn kill(&self) -> Result<()> {
        self.halt("KILL")
    }

    /// Starts the stopped server on its port and data and waits until it answers.
    ///
    /// # Errors
    ///
    /// When it is not ours, or does not answer in time; the text ends with the server's log.
    pub fn launch(&self) -> Result<()> {
        let own = self.mine()?;
        let mut script = Command::new(paths::tests("scripts/keep"))
            .arg(&own.folder)
            .args(self.command_line(own))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context(|| "cannot run tests/scripts/keep".to_owned())?;
        let mut line = String::new();
        if let Some(out) = script.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let server =
            line.trim().parse().context(|| format!("keep printed {line:?}, not a process id"))?;
        *own.keeper.lock().map_err(poisoned)? = Some(Keeper { script, server });

        let mut last = Failure::new("no answer");
        let ready = wait::until(START_LIMIT, || {
            if !alive(server) {
                return Err(Failure::new("the server ended while starting"));
            }
            if std::net::TcpStream::connect((self.host.as_str(), self.port)).is_err() {
                return Ok(None);
            }
            Ok(self.value("SELECT 1").map_err(|error| last = error).ok())
        });
        match ready {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Failure::new(format!(
                "no answer within {START_LIMIT:?}: {last}\n{}",
                self.log_tail()
            ))),
            Err(error) => Err(Failure::new(format!("{error}\n{}", self.log_tail()))),
        }
    }

    fn halt(&self, signal: &str) -> Result<()> {
        let own = self.mine()?;
        let Some(mut keeper) = own.keeper.lock().map_err(poisoned)?.take() else { return Ok(()) };
        signal_process(keeper.server, signal)?;
        let gone = wait::until(Duration::from_secs(30), || {
            Ok::<_, Failure>((!alive(keeper.server)).then_some(()))
        })?;
        keeper.stop(true);
        gone.ok_or_else(|| Failure::new("the server did not stop within 30 s"))
    }

    fn mine(&self) -> Result<&Own> {
        self.own.as_ref().ok_or_else(|| {
            Failure::new("this needs a server of its own, not one named by the environment")
        })
    }

    fn command_line(&self, own: &Own) -> Vec<String> {
        let mut line = self.options.edition.program(Program::Server);
        let data = own.folder.join("data");
        line.extend(small_server(&data));
        line.extend([
            format!("--port={}", self.port),
            format!("--socket={}", own.socket.display()),
            format!("--pid-file={}", own.folder.join("pid").display()),
            // A MariaDB that starts removes the temporary tables of all others in a shared folder.
            format!("--tmpdir={}", own.folder.join("tmp").display()),
            format!("--log-error={}", own.folder.join("server.log").display()),
            format!("--server-id={}", own.server_id),
            "--bind-address=127.0.0.1".to_owned(),
            "--default-time-zone=+00:00".to_owned(),
            "--binlog-format=ROW".to_owned(),
            "--binlog-row-image=FULL".to_owned(),
            "--sync-binlog=0".to_owned(),
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
        ]);
        let flavour: &[&str] = match self.options.flavour() {
            Flavour::MySql => &[
                "--log-bin=mysql-bin",
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--mysqlx=OFF",
                "--secure-file-priv=NULL",
            ],
            Flavour::MariaDb => &[
                "--log-bin=mariadb-bin",
                "--binlog-annotate-row-events=ON",
                "--character-set-server=utf8mb4",
            ],
        };
        line.extend(flavour.iter().map(|&arg| arg.to_owned()));
        line.extend(self.options.args.iter().cloned());
        line
    }

    /// Runs a script through the server's command-line client (utf8mb4; `DELIMITER` and several statements a line work).
    ///
    /// # Errors
    ///
    /// The client's own message; later statements were not run.
    pub fn sql(&self, script: &str) -> Result<()> {
        self.client(&[], script).map(drop)
    }

    /// As [`sql`](Self::sql), but goes on after a statement that fails, and connects with `charset`.
    ///
    /// # Errors
    ///
    /// When the client cannot be run at all; failing statements are returned as text.
    pub fn sql_force(&self, script: &[u8], charset: &str) -> Result<String> {
        let mut command = self.client_command();
        command.args(["--force", &format!("--default-character-set={charset}")]);
        let output = feed(command, script)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs one query and returns its rows as text; SQL `NULL` reads `NULL`.
    ///
    /// # Errors
    ///
    /// The client's own message.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let text = self.client(&["--batch", "--skip-column-names"], sql)?;
        Ok(text.lines().map(|line| line.split('\t').map(unescape).collect()).collect())
    }

    /// The first column of the first row of a query.
    ///
    /// # Errors
    ///
    /// The client's own message, or that there was no row.
    pub fn value(&self, sql: &str) -> Result<String> {
        let row = self.query(sql)?.into_iter().next().unwrap_or_default();
        row.into_iter().next().ok_or_else(|| Failure::new(format!("no row from: {sql}")))
    }

    /// The first row of a query by the names of its columns; nothing without a row.
    ///
    /// # Errors
    ///
    /// The client's own message.
    pub fn row(&self, sql: &str) -> Result<HashMap<String, String>> {
        let text = self.client(&["--batch"], sql)?;
        let mut lines = text.lines().map(|line| line.split('\t').map(unescape));
        let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
            return Ok(HashMap::new());
        };
        Ok(names.zip(values).collect())
    }

    fn client(&self, args: &[&str], input: &str) -> Result<String> {
        let mut command = self.client_command();
        command.args(args).arg("--default-character-set=utf8mb4");
        let output = feed(command, input.as_bytes())?;
        if !output.status.success() {
            return Err(Failure::new(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The command-line client, ready to connect.
    #[must_use]
    pub fn client_command(&self) -> Command {
        let line = self.options.edition.program(Program::Client);
        let (first, rest) =
            line.split_first().map_or(("false", &[][..]), |(first, rest)| (first.as_str(), rest));
        let mut command = Command::new(first);
        command.args(rest).args([
            format!("--host={}", self.host),
            format!("--port={}", self.port),
            format!("--user={}", self.user),
            "--protocol=TCP".to_owned(),
        ]);
        command.env("MYSQL_PWD", &self.password);
        command
    }

    /// The end of the server's log, for messages.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let Some(own) = &self.own else { return String::new() };
        let text = ["server.log", "server.out"]
            .map(|name| fs::read(own.folder.join(name)).unwrap_or_default())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
    }

    /// The data folder, with the binlog files; none for a server that is not ours.
    #[must_use]
    pub fn data(&self) -> Option<PathBuf> {
        self.own.as_ref().map(|own| own.folder.join("data"))
    }

    /// Which server it is.
    #[must_use]
    pub const fn flavour(&self) -> Flavour {
        self.options.flavour()
    }

    /// `VERSION()`, such as `9.7.4-2` or `10.11.19-MariaDB-0+deb12u1-log`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of the folder with this server's goldens, such as `mysql-9.7.4`.
    #[must_use]
    pub fn golden_name(&self) -> String {
        let number = self.version.split('-').next().unwrap_or(&self.version);
        match self.options.flavour() {
            Flavour::MySql => format!("mysql-{number}"),
            Flavour::MariaDb => format!("mariadb-{number}"),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// A user with all rights.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// That user's password.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(own) = &self.own else { return };
        let failed = std::thread::panicking();
        if let Ok(mut keeper) = own.keeper.lock()
            && let Some(mut keeper) = keeper.take()
        {
            keeper.stop(failed);
        }
        if failed {
            eprintln!("the server's folder is kept: {}", own.folder.display());
        } else {
            // The script has removed it, unless the server was stopped before.
            let _ = fs::remove_dir_all(&own.folder);
        }
    }
}

impl Keeper {
    /// Ends the script and with it the server.
    fn stop(&mut self, keep: bool) {
        if let Some(mut stdin) = self.script.stdin.take()
            && keep
        {
            // When the script is gone already there is nothing to tell it.
            let _ = stdin.write_all(b"keep\n");
        }
        let _ = self.script.wait();
    }
}

/// One server for each set of options, shared by all tests of this process, one at a time: positions and transaction
/// boundaries of one test must not stand between those of another. It ends with the process.
///
/// # Errors
///
/// When it cannot be started; the next call tries again.
pub fn shared(options: &Options) -> Result<MutexGuard<'static, Server>> {
    type Slot = &'static Mutex<Server>;
    static SERVERS: LazyLock<Mutex<HashMap<Options, Slot>>> = LazyLock::new(Mutex::default);
    let server: Slot = {
        let mut servers = SERVERS.lock().map_err(poisoned)?;
        match servers.get(options) {
            Some(server) => server,
            None => {
                let server: Slot = Box::leak(Box::new(Mutex::new(Server::start(options.clone())?)));
                servers.insert(options.clone(), server);
                server
            }
        }
    };
    // A test that failed leaves its databases behind, and every test makes its own anew.
    Ok(server.lock().unwrap_or_else(PoisonError::into_inner))
}

#[derive(Clone, Copy)]
enum Program {
    Server,
    Client,
}

/// Arguments for initialising and running alike: little memory, little disk.
fn small_server(data: &Path) -> Vec<String> {
    let mut args = vec![
        format!("--datadir={}", data.display()),
        "--innodb-buffer-pool-size=64M".to_owned(),
        "--performance-schema=OFF".to_owned(),
    ];
    if is_root() {
        args.push("--user=root".to_owned());
    }
    args
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Runs the install script when it was not run by this process yet.
fn install(edition: Edition) -> Result<()> {
    static DONE: Mutex<Vec<Edition>> = Mutex::new(Vec::new());
    let mut done = DONE.lock().map_err(poisoned)?;
    if !done.contains(&edition) {
        run(&mut Command::new(paths::tests(edition.script())))?;
        done.push(edition);
    }
    Ok(())
}

/// An initialised data folder in the cache, made once per server version and copied for every server.
fn template(edition: Edition) -> Result<PathBuf> {
    let mut line = edition.program(Program::Server);
    let version = run(Command::new(line.remove(0)).args(&line).arg("--version"))?;
    let version: String = version
        .split_once(" Ver ")
        .map_or("unknown", |(_, rest)| rest.split(' ').next().unwrap_or(rest))
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        .collect();
    let folder = paths::cache().join("templates");
    fs::create_dir_all(&folder)?;
    let name = match edition.flavour() {
        Flavour::MySql => format!("mysql-{version}"),
        Flavour::MariaDb => format!("mariadb-{version}"),
    };
    let lock = File::create(folder.join(format!("{name}.lock")))?;
    lock.lock()?;
    let done = folder.join(&name);
    if done.is_dir() {
        return Ok(done);
    }
    let fresh = folder.join(format!("{name}.new"));
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    let mut line = edition.program(Program::Server);
    line.extend(small_server(&fresh));
    match edition.flavour() {
        Flavour::MySql => {
            line.extend(
                ["--innodb-redo-log-capacity=8388608", "--initialize-insecure"].map(str::to_owned),
            );
            run(Command::new(line.remove(0)).args(&line))?;
            // Every copy makes its own server UUID.
            fs::remove_file(fresh.join("auto.cnf"))?;
        }
        Flavour::MariaDb => {
            fs::create_dir_all(&fresh)?;
            line.extend(["--innodb-log-file-size=8M", "--bootstrap"].map(str::to_owned));
            let mut command = Command::new(line.remove(0));
            command.args(&line);
            let output = feed(command, &system_tables(edition)?)?;
            if !output.status.success() {
                return Err(Failure::new(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
        }
    }
    fs::rename(&fresh, &done)?;
    Ok(done)
}

/// What `mariadb-install-db` sends to a server that bootstraps, without help texts and the sys schema.
fn system_tables(edition: Edition) -> Result<Vec<u8>> {
    let mut script =
        b"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n".to_vec();
    for name in ["system_tables", "performance_tables", "system_tables_data"] {
        let path = |prefix| edition.share().join(format!("{prefix}_{name}.sql"));
        // 10.11 names them mysql_*, 11 mariadb_*.
        let text = fs::read(path("mariadb")).or_else(|_| fs::read(path("mysql")));
        script.extend(text.context(|| format!("no {name} in {}", edition.share().display()))?);
    }
    Ok(script)
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn announce(version: &str, how: &str, port: u16) {
    eprintln!("server {how}: {version} on port {port}");
}

fn alive(process: u32) -> bool {
    // A zombie still has its folder in /proc, so ask for its state.
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| {
        !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
    })
}

pub(crate) fn signal_process(process: u32, signal: &str) -> Result<()> {
    run(Command::new("kill").arg(format!("-{signal}")).arg(process.to_string())).map(drop)
}

/// Runs a command to its end and returns its output; stderr is the error's text.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output =
        command.output().context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(Failure::new(format!(
            "{} {}: {}{}",
            command.get_program().display(),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command on `input`.
fn feed(mut command: Command, input: &[u8]) -> Result<std::process::Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context(|| format!("cannot run {}", command.get_program().display()))?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin {
                // A client that stops at an error closes its end; its message says more than this error.
                let _ = stdin.write_all(input);
            }
        });
        Ok(child.wait_with_output()?)
    })
}

/// `mysql://user:password@host:port`, the password being optional.
fn parse_url(url: &str) -> Option<(String, String, String, u16)> {
    let (account, address) = url.strip_prefix("mysql://")?.split_once('@')?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = address.trim_end_matches('/').split_once(':')?;
    Some((user.to_owned(), password.to_owned(), host.to_owned(), port.parse().ok()?))
}

/// Undoes the escapes of the client's batch mode.
fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut chars = field.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('t') => out.push('\t'),
                Some('n') => out.push('\n'),
                Some('0') => out.push('\0'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

fn poisoned<T>(_: T) -> Failure {
    Failure::new("another test failed while it held the server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_gives_account_and_address() {
        let parts =
            |user: &str, password: &str| Some((user.into(), password.into(), "h".into(), 3306));
        assert_eq!(parse_url("mysql://root@h:3306"), parts("root", ""));
        assert_eq!(parse_url("mysql://u:p@h:3306/"), parts("u", "p"));
        assert_eq!(parse_url("postgres://u@h:1"), None);
        assert_eq!(parse_url("mysql://u@h"), None);
    }

    #[test]
    fn batch_output_is_unescaped() {
        assert_eq!(unescape(r"a\tb\\n\n"), "a\tb\\n\n");
    }
}
