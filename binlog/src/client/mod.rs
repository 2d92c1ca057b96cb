//! The replication connection: log in, ask for the binlog from a place, receive events.
//!
//! ```text
//! BinlogClient::connect ── greeting, login, session set-up, registration as a replica
//!   └─ dump(start) ──▶ DumpStream ── next_event(), next_event(), … ── None | error
//! ```
//!
//! The events are whole, as they stand in the log, in one reused buffer; nothing is decoded or copied here. Only a
//! compressed transaction that is too large for a buffer goes to a temporary file.

mod auth;
mod command;
mod compression;
mod error;
mod packet;
mod public_key;
mod query;
mod tls;

use std::fmt;
use std::time::Duration;

use tokio::net::TcpStream;

pub use compression::Compression;
pub use error::{ClientError, DumpRefusal, Endpoint, ServerError};
#[cfg(any(test, feature = "testkit"))]
pub use packet::Pipe;
pub use query::QueryClient;
pub use tls::{TlsMode, TlsOptions, name_presented};

use crate::error::Error;
use crate::event::{RawEvent, SPILL_ABOVE};
use crate::gtid::{GtidPos, GtidSet};
use crate::position::BinlogPosition;
use crate::wire::DecodeError;
use auth::{Greeting, Login, Security, Step};
use command::Answer;
use packet::{Packet, PacketStream, Transport};

/// Which kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// MySQL and servers that speak as it does.
    MySql,
    /// MariaDB.
    MariaDb,
}

impl Flavor {
    /// MariaDB puts its name into its version, everywhere.
    fn of(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") { Self::MariaDb } else { Self::MySql }
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        })
    }
}

/// A password; prints as `***`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes the password in clear text.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// How to connect. [`Self::new`] fills in defaults; change the fields as needed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Host name or address. Default `localhost`.
    pub host: String,
    /// TCP port. Default 3306.
    pub port: u16,
    /// User name.
    pub user: String,
    /// Password; may be empty.
    pub password: Password,
    /// Whether the connection is encrypted. Default no.
    pub tls: TlsOptions,
    /// How the connection is compressed, inside TLS; an error where the server does not offer it. Default not at all.
    pub compression: Compression,
    /// Our id among the server's replicas, 1 or more. Two clients with one id throw each other out.
    pub server_id: u32,
    /// Limit for connecting, login and session set-up together. Default 30 s.
    pub connect_timeout: Duration,
    /// How often the server says that it is alive while there are no events; zero for never. The server takes periods
    /// up to 4,294,967 s. Default 48 s.
    pub heartbeat_period: Duration,
    /// How long nothing at all may come before the connection counts as dead; `None` waits for ever. More than
    /// `heartbeat_period`. Default 60 s.
    pub silence_timeout: Option<Duration>,
    /// The kind of server; `None` tells by the version it announces. Default `None`.
    pub flavor: Option<Flavor>,
    /// Whether MariaDB shall send the statement texts of row events. (MySQL always sends those it has logged.) Default no.
    pub annotate_rows: bool,
    /// `net_write_timeout` of the session: how long the server waits for us to read, whole seconds; `None` leaves the server's.
    pub net_write_timeout: Option<Duration>,
    /// `net_read_timeout` of the session, whole seconds; `None` leaves the server's.
    pub net_read_timeout: Option<Duration>,
    /// Largest event accepted, bytes. Default 1 GiB, the largest the server sends, and 64 KiB.
    pub max_event_bytes: usize,
    /// A compressed transaction whose event has more bytes is put into a temporary file, in the system's folder for
    /// them, and read from there when it is whole. Writing happens between the reads of the connection, in pieces as
    /// they come. Default: 8 MiB.
    pub spill_above: usize,
    /// Whether the dump ends at the end of the log as it is then, rather than waiting for more. Default no.
    pub stop_at_end: bool,
}

impl ClientOptions {
    /// Options with defaults for the rest.
    #[must_use]
    pub fn new(
        host: impl Into<String>,
        port: u16,
        user: impl Into<String>,
        server_id: u32,
    ) -> Self {
        Self {
            host: host.into(),
            port,
            user: user.into(),
            password: Password::default(),
            tls: TlsOptions::default(),
            compression: Compression::Off,
            server_id,
            connect_timeout: Duration::from_secs(30),
            heartbeat_period: Duration::from_secs(48),
            silence_timeout: Some(Duration::from_secs(60)),
            flavor: None,
            annotate_rows: false,
            net_write_timeout: None,
            net_read_timeout: None,
            max_event_bytes: (1 << 30) + (64 << 10),
            spill_above: SPILL_ABOVE,
            stop_at_end: false,
        }
    }

    fn check(&self) -> Result<(), ClientError> {
        // MySQL's limit of the period is 4294967 s (SLAVE_MAX_HEARTBEAT_PERIOD, `sql/rpl_replica.h`).
        let rules = [
            (self.server_id > 0, "server_id", "1 or more"),
            (!self.user.contains('\0'), "user", "no NUL characters"),
            (!self.password.0.contains('\0'), "password", "no NUL characters"),
            (
                self.heartbeat_period.as_secs() <= 4_294_967,
                "heartbeat_period",
                "at most 4294967 seconds",
            ),
            (
                self.silence_timeout.is_none_or(|silence| silence > self.heartbeat_period),
                "silence_timeout",
                "longer than heartbeat_period",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, option, rule)) => Err(ClientError::Option { option, rule }),
            None => Ok(()),
        }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { host: self.host.clone(), port: self.port, user: self.user.clone() }
    }
}

/// Largest packet before the dump, bytes: greeting, login and the answers to our statements are far smaller, and who the
/// server is is not known yet.
const MAX_BEFORE_DUMP: usize = 1 << 20;

/// Where a dump begins.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DumpStart {
    /// The first event of the oldest file that the server has.
    First,
    /// A place between two events. Positions below 4 are taken as 4.
    Position(BinlogPosition),
    /// MySQL: every transaction that is not in the set, in the server's order.
    Gtids(GtidSet),
    /// MariaDB: every transaction after the position, per domain.
    MariaDbGtids(GtidPos),
}

/// What is known of the server since the connection was set up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerInfo {
    /// The version as announced, without the `5.5.5-` that MariaDB puts before its own.
    pub version: String,
    /// The kind of server.
    pub flavor: Flavor,
    /// Id of our connection, as `SHOW PROCESSLIST` shows it.
    pub connection_id: u32,
    /// The version of TLS, such as `TLSv1_3`; `None` when the connection is not encrypted.
    pub tls: Option<&'static str>,
    /// The server's own id. Events may carry others: that of the server they were first written on.
    pub server_id: u32,
    /// The server's UUID; `None` for MariaDB.
    pub server_uuid: Option<String>,
    /// Whether the events of this connection end with a CRC-32 of 4 bytes until a format description says otherwise.
    pub checksum: bool,
}

/// A connection that is logged in and set up, before the dump.
#[derive(Debug)]
pub struct BinlogClient {
    packets: PacketStream,
    server: ServerInfo,
    server_id: u32,
    flags: u16,
}

impl BinlogClient {
    /// Connects, logs in, sets the session up for a dump, and registers with the server as a replica.
    ///
    /// Without TLS nothing is encrypted but the password.
    ///
    /// # Errors
    ///
    /// [`Error::Client`]: [`ClientError::Connect`], [`ClientError::ConnectTimeout`], [`ClientError::AccessDenied`],
    /// [`ClientError::MissingPrivilege`], [`ClientError::UnsupportedAuth`], [`ClientError::PublicKey`],
    /// [`ClientError::TlsNotOffered`], [`ClientError::Tls`], [`ClientError::TlsSetup`],
    /// [`ClientError::CompressionNotOffered`], [`ClientError::Option`], or what a broken connection gives.
    pub async fn connect(options: &ClientOptions) -> Result<Self, Error> {
        open(options, async |transport, endpoint| Self::set_up(transport, options, endpoint).await)
            .await
    }

    /// As [`Self::connect`], over a stream that takes the place of the connection: no time-out, and no TLS.
    ///
    /// # Errors
    ///
    /// As [`Self::connect`].
    #[cfg(any(test, feature = "testkit"))]
    pub async fn connect_over(
        pipe: impl Pipe + 'static,
        options: &ClientOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        Ok(Self::set_up(Transport::Pipe(Box::new(pipe)), options, &options.endpoint()).await?)
    }

    async fn set_up(
        transport: Transport,
        options: &ClientOptions,
        endpoint: &Endpoint,
    ) -> Result<Self, ClientError> {
        let (mut packets, mut server) = log_in(transport, options, endpoint).await?;
        set_session(&mut packets, &mut server, options).await?;
        register(&mut packets, options.server_id).await?;
        packets.silence_after(options.silence_timeout);
        packets.accept_up_to(options.max_event_bytes.saturating_add(1));
        packets.spill_above(options.spill_above);
        let mut flags = 0;
        if options.stop_at_end {
            flags |= command::FLAG_NON_BLOCK;
        }
        if options.annotate_rows && server.flavor == Flavor::MariaDb {
            flags |= command::FLAG_ANNOTATE_ROWS;
        }
        Ok(Self { packets, server, server_id: options.server_id, flags })
    }

    /// Asks for the log. The server's refusal comes as the first result of [`DumpStream::next_event`].
    ///
    /// Positions from 4 GiB on do not fit the plain command. MySQL is then asked with the command for GTIDs, a file, the
    /// position and an empty set, which leaves nothing out; this needs `gtid_mode=ON`.
    ///
    /// # Errors
    ///
    /// [`Error::Client`]: [`ClientError::WrongFlavor`] for GTIDs of the other kind of server,
    /// [`ClientError::PositionTooLarge`], or what a broken connection gives.
    pub async fn dump(mut self, start: DumpStart) -> Result<DumpStream, Error> {
        let command = self.dump_command(start).await?;
        self.packets.command(&command).await?;
        Ok(DumpStream { packets: self.packets, server: self.server, state: DumpState::Open })
    }

    async fn dump_command(&mut self, start: DumpStart) -> Result<Vec<u8>, ClientError> {
        let (flags, id, flavor) = (self.flags, self.server_id, self.server.flavor);
        const FIRST: u32 = 4;
        let wrong = |start| ClientError::WrongFlavor { start, found: flavor };
        match (start, flavor) {
            (DumpStart::First, _) => Ok(command::dump("", FIRST, flags, id)),
            (DumpStart::Position(place), _) => {
                let file = place.file.as_str();
                let position = place.position.max(BinlogPosition::FIRST);
                let far = ClientError::PositionTooLarge { position };
                match u32::try_from(position) {
                    Ok(position) => Ok(command::dump(file, position, flags, id)),
                    Err(_) if flavor == Flavor::MySql && self.gtid_mode().await? => {
                        let flags = flags | command::FLAG_THROUGH_POSITION;
                        command::dump_gtid(file, position, &GtidSet::new(), flags, id).ok_or(far)
                    }
                    Err(_) => Err(far),
                }
            }
            (DumpStart::Gtids(set), Flavor::MySql) => {
                let flags = flags | command::FLAG_THROUGH_GTID;
                let large = ClientError::Option { option: "GTID set", rule: "at most 4 GiB" };
                command::dump_gtid("", FIRST.into(), &set, flags, id).ok_or(large)
            }
            (DumpStart::MariaDbGtids(position), Flavor::MariaDb) => {
                let during = "start from a GTID position";
                // Digits, dashes and commas: nothing that would have to be escaped.
                let state = format!("SET @slave_connect_state = '{position}'");
                for sql in [
                    state.as_str(),
                    "SET @slave_gtid_strict_mode = 0",
                    "SET @slave_gtid_ignore_duplicates = 0",
                ] {
                    execute(&mut self.packets, sql, during).await?;
                }
                Ok(command::dump("", FIRST, flags, id))
            }
            (DumpStart::Gtids(_), Flavor::MariaDb) => Err(wrong("a MySQL GTID set")),
            (DumpStart::MariaDbGtids(_), Flavor::MySql) => Err(wrong("a MariaDB GTID position")),
        }
    }

    async fn gtid_mode(&mut self) -> Result<bool, ClientError> {
        let [mode] =
            select(&mut self.packets, "SELECT @@global.gtid_mode", "read gtid_mode").await?;
        Ok(mode.is_some_and(|mode| mode.eq_ignore_ascii_case("ON")))
    }

    /// Says good-bye and closes the connection. Dropping the client closes it too, without a word.
    ///
    /// # Errors
    ///
    /// [`Error::Client`] with [`ClientError::Io`] when the connection is broken already.
    pub async fn close(mut self) -> Result<(), Error> {
        self.packets.command(&command::quit()).await?;
        self.packets.shutdown().await?;
        Ok(())
    }

    /// What is known of the server.
    #[must_use]
    pub const fn server(&self) -> &ServerInfo {
        &self.server
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DumpState {
    Open,
    Ended,
    Failed,
}

/// Events from the server, one after the other.
#[derive(Debug)]
pub struct DumpStream {
    packets: PacketStream,
    server: ServerInfo,
    state: DumpState,
}

impl DumpStream {
    /// The next event: header, body and checksum, as they stand in the log, in memory or, by
    /// [`ClientOptions::spill_above`], in a file. `None` when the server has ended the dump. The bytes are valid until
    /// the next call.
    ///
    /// Cancel-safe: a future that is dropped loses no bytes, since a read takes bytes only when it completes and what has
    /// been read is kept here; the next call goes on where it stopped.
    ///
    /// # Errors
    ///
    /// [`Error::Client`]: [`ClientError::Dump`] for the reasons of error 1236, [`ClientError::MissingPrivilege`] and
    /// [`ClientError::Server`] for other errors of the server, [`ClientError::PacketTooLarge`], [`ClientError::Spill`],
    /// [`ClientError::Silent`], or what a broken connection gives. After an error the stream is at its end: further calls
    /// are [`ClientError::Failed`].
    pub async fn next_event(&mut self) -> Result<Option<RawEvent<'_>>, Error> {
        match self.state {
            DumpState::Open => {}
            DumpState::Ended => return Ok(None),
            DumpState::Failed => return Err(ClientError::Failed.into()),
        }
        match self.packets.next_of_dump().await {
            Ok(Packet::Event(event)) => Ok(Some(event)),
            Ok(Packet::Other(packet)) if command::is_eof(packet) => {
                self.state = DumpState::Ended;
                Ok(None)
            }
            Ok(Packet::Other(packet)) => {
                self.state = DumpState::Failed;
                Err(refused(packet).into())
            }
            Err(error) => {
                self.state = DumpState::Failed;
                Err(error.into())
            }
        }
    }

    /// Whether the next event is here already, so that [`Self::next_event`] will not wait. May be false for an event of
    /// 16 MiB or more that is here, and for one that is still compressed.
    #[must_use]
    pub fn has_buffered(&self) -> bool {
        self.state == DumpState::Open && self.packets.has_buffered()
    }

    /// What is known of the server.
    #[must_use]
    pub const fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Closes the connection; the server notices when it sends next. Dropping the stream closes it too.
    ///
    /// # Errors
    ///
    /// [`Error::Client`] with [`ClientError::Io`] when the connection is broken already.
    pub async fn close(mut self) -> Result<(), Error> {
        // A dump is the last command of a connection: the server reads nothing more, not even COM_QUIT.
        Ok(self.packets.shutdown().await?)
    }
}

/// A packet above the limit is no matter of the limit before the dump: who sends it does not speak the protocol.
fn no_server(error: ClientError) -> ClientError {
    if let ClientError::PacketTooLarge { size, .. } = error {
        let source = DecodeError::Invalid { field: "packet_length", value: size };
        ClientError::Protocol { during: "log in", source }
    } else {
        error
    }
}

/// The error that a packet stands for that is neither an event nor the end.
fn refused(packet: &[u8]) -> ClientError {
    const DURING: &str = "read events";
    let protocol = |source| ClientError::Protocol { during: DURING, source };
    match packet.first() {
        Some(0xff) => match command::server_error(packet, DURING) {
            Ok(error) => ClientError::dump(error),
            Err(error) => error,
        },
        Some(other) => {
            protocol(DecodeError::Invalid { field: "dump_packet_type", value: (*other).into() })
        }
        None => protocol(DecodeError::Empty { field: "dump_packet" }),
    }
}

/// Makes a TCP connection and hands it to `set_up`, both within the time-out.
async fn open<T>(
    options: &ClientOptions,
    set_up: impl AsyncFnOnce(Transport, &Endpoint) -> Result<T, ClientError>,
) -> Result<T, Error> {
    options.check()?;
    let endpoint = options.endpoint();
    let limit = options.connect_timeout;
    let connecting = async {
        let stream = TcpStream::connect((options.host.as_str(), options.port))
            .await
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|source| ClientError::Connect { endpoint: endpoint.clone().into(), source })?;
        let client = set_up(Transport::Tcp(stream), &endpoint).await;
        // With TLS 1.3 the server refuses our certificate only after the handshake.
        client.map_err(|error| no_server(ClientError::tls_told_apart(&endpoint, error)))
    };
    match tokio::time::timeout(limit, connecting).await {
        Ok(client) => Ok(client?),
        Err(_) => {
            let seconds = limit.as_secs_f64();
            Err(ClientError::ConnectTimeout { endpoint: endpoint.into(), seconds }.into())
        }
    }
}

/// Greeting, TLS and login.
async fn log_in(
    transport: Transport,
    options: &ClientOptions,
    endpoint: &Endpoint,
) -> Result<(PacketStream, ServerInfo), ClientError> {
    let mut packets = PacketStream::new(transport, MAX_BEFORE_DUMP);
    let mut greeting = Greeting::parse(packets.next().await?, endpoint)?;
    let flavor = options.flavor.unwrap_or_else(|| Flavor::of(&greeting.version));
    let version = greeting.version.strip_prefix("5.5.5-").filter(|_| flavor == Flavor::MariaDb);
    let mut server = ServerInfo {
        version: version.unwrap_or(&greeting.version).to_owned(),
        flavor,
        connection_id: greeting.connection_id,
        tls: None,
        server_id: 0,
        server_uuid: None,
        checksum: false,
    };
    if !greeting.compress(options.compression) {
        let (endpoint, compression) = (endpoint.clone().into(), options.compression);
        return Err(ClientError::CompressionNotOffered { endpoint, compression });
    }
    let tls = &options.tls;
    match (tls.mode, greeting.offers_tls()) {
        (TlsMode::Disabled, _) | (TlsMode::Preferred, false) => {}
        (_, true) => {
            packets.send(&greeting.tls_request()).await?;
            packets = packets.encrypt(tls, endpoint).await?;
            server.tls = packets.tls_version();
        }
        (_, false) => {
            return Err(ClientError::TlsNotOffered { endpoint: endpoint.clone().into() });
        }
    }
    let security = match (packets.is_secure(), tls.mode.verifies()) {
        (false, _) => Security::Plain,
        (true, false) => Security::Encrypted,
        (true, true) => Security::Verified,
    };
    let mut login = Login::new(greeting, endpoint, &options.password.0, security);
    let answer = login.answer();
    packets.send(&answer).await?;
    loop {
        match login.handle(packets.next().await?)? {
            Step::Send(payload) => packets.send(&payload).await?,
            Step::Wait => {}
            Step::Done => break,
        }
    }
    packets.compress(options.compression)?;
    Ok((packets, server))
}

/// Prepares the session for a dump.
async fn set_session(
    packets: &mut PacketStream,
    server: &mut ServerInfo,
    options: &ClientOptions,
) -> Result<(), ClientError> {
    let [checksum] =
        select(packets, "SELECT @@global.binlog_checksum", "read binlog_checksum").await?;
    server.checksum = checksum.is_some_and(|checksum| !checksum.eq_ignore_ascii_case("NONE"));
    // Says that we know checksums; without it the server refuses to send events that have one. Newer servers read the
    // variables that are named after sources, older ones and MariaDB those named after masters.
    let checksums = "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum";
    execute(packets, checksums, "negotiate checksums").await?;

    let during = "read the server's identity";
    let id = match server.flavor {
        Flavor::MySql => {
            let [id, uuid] =
                select(packets, "SELECT @@global.server_id, @@global.server_uuid", during).await?;
            server.server_uuid = uuid;
            id
        }
        Flavor::MariaDb => {
            let [id] = select(packets, "SELECT @@global.server_id", during).await?;
            id
        }
    };
    server.server_id = id.and_then(|id| id.parse().ok()).unwrap_or_default();

    let period = options.heartbeat_period.as_nanos();
    let heartbeat =
        format!("SET @master_heartbeat_period = {period}, @source_heartbeat_period = {period}");
    execute(packets, &heartbeat, "set the heartbeat period").await?;
    for (variable, timeout) in [
        ("net_write_timeout", options.net_write_timeout),
        ("net_read_timeout", options.net_read_timeout),
    ] {
        if let Some(timeout) = timeout {
            let sql = format!("SET SESSION {variable} = {}", timeout.as_secs());
            execute(packets, &sql, "set the network timeouts").await?;
        }
    }
    if server.flavor == Flavor::MariaDb {
        // 4 is "knows GTIDs" (MARIA_SLAVE_CAPABILITY_GTID, `sql/log_event.h`); less gets BEGIN instead of GTID events.
        execute(packets, "SET @mariadb_slave_capability = 4", "announce GTIDs").await?;
    }
    Ok(())
}

/// Puts us on the server's list of replicas. It also tells early whether we may read the binlog at all.
async fn register(packets: &mut PacketStream, server_id: u32) -> Result<(), ClientError> {
    let during = "register as a replica";
    packets.command(&command::register_replica(server_id)).await?;
    let packet = packets.next().await?;
    if packet.first() == Some(&0xff) {
        return Err(ClientError::register(command::server_error(packet, during)?));
    }
    match command::answer(packet, during)? {
        Answer::Ok => Ok(()),
        Answer::Columns(count) => Err(unexpected("column_count", count, during)),
    }
}

/// Runs a statement that returns no rows.
async fn execute(
    packets: &mut PacketStream,
    sql: &str,
    during: &'static str,
) -> Result<(), ClientError> {
    packets.command(&command::query(sql)).await?;
    match command::answer(packets.next().await?, during)? {
        Answer::Ok => Ok(()),
        Answer::Columns(count) => Err(unexpected("column_count", count, during)),
    }
}

/// Runs a query that returns one row of `N` columns.
async fn select<const N: usize>(
    packets: &mut PacketStream,
    sql: &str,
    during: &'static str,
) -> Result<[Option<String>; N], ClientError> {
    packets.command(&command::query(sql)).await?;
    match command::answer(packets.next().await?, during)? {
        Answer::Columns(count) if count == N as u64 => {}
        Answer::Columns(count) => return Err(unexpected("column_count", count, during)),
        Answer::Ok => return Err(unexpected("column_count", 0, during)),
    }
    for _ in 0..N {
        packets.next().await?;
    }
    end_of_list(packets.next().await?, during)?;
    let row = packets.next().await?;
    if row.first() == Some(&0xff) {
        return Err(ClientError::server(during, command::server_error(row, during)?));
    }
    let row = command::row(row).map_err(|source| ClientError::Protocol { during, source })?;
    end_of_list(packets.next().await?, during)?;
    let values = row.len() as u64;
    row.try_into().map_err(|_| unexpected("row_values", values, during))
}

fn end_of_list(packet: &[u8], during: &'static str) -> Result<(), ClientError> {
    if command::is_eof(packet) {
        return Ok(());
    }
    if packet.first() == Some(&0xff) {
        return Err(ClientError::server(during, command::server_error(packet, during)?));
    }
    let value = packet.first().copied().unwrap_or_default();
    Err(unexpected("end_of_list", value.into(), during))
}

const fn unexpected(field: &'static str, value: u64, during: &'static str) -> ClientError {
    ClientError::Protocol { during, source: DecodeError::Invalid { field, value } }
}

#[cfg(test)]
mod tests;
