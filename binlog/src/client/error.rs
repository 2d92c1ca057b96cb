//! What can go wrong between this crate and a server.

use std::fmt;
use std::io;

use super::{Compression, Flavor};
use crate::error::ErrorClass;
use crate::wire::DecodeError;

/// Why a replication connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No TCP connection could be made.
    #[error("unable to connect to {endpoint}")]
    Connect {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
        /// What the system says.
        source: io::Error,
    },
    /// Connecting, login and session set-up together took too long.
    #[error("timed out after {seconds} seconds while waiting to connect to {endpoint}")]
    ConnectTimeout {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
        /// The limit, seconds.
        seconds: f64,
    },
    /// The server does not let this user in: wrong password, unknown user, or a host that is not allowed.
    #[error(
        "failed to authenticate to {endpoint}: check user, password and the host the user may connect from"
    )]
    AccessDenied {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
        /// What the server says.
        source: Box<ServerError>,
    },
    /// The user is in, but may not read the binlog.
    #[error(
        "the user may not read the binlog: grant it REPLICATION SLAVE and REPLICATION CLIENT on *.*"
    )]
    MissingPrivilege {
        /// What the server says.
        source: Box<ServerError>,
    },
    /// The user's authentication plugin is not one that this client offers.
    #[error(
        "the authentication plugin '{plugin}' is not supported: identify the user with caching_sha2_password or mysql_native_password"
    )]
    UnsupportedAuth {
        /// Name of the plugin, as the server sent it.
        plugin: String,
    },
    /// The server, or the user's account, wants an encrypted connection.
    #[error(
        "the server wants an encrypted connection: set database.ssl.mode to required, or to a mode that verifies"
    )]
    TlsRequired {
        /// What the server says.
        source: Box<ServerError>,
    },
    /// TLS is asked for, and the server does not offer it.
    #[error(
        "{endpoint} does not offer TLS, which database.ssl.mode asks for: give the server a certificate (ssl_cert, ssl_key)"
    )]
    TlsNotOffered {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
    },
    /// Compression is asked for, and the server does not offer it.
    #[error(
        "{endpoint} does not offer to compress by {compression}, which holdfast.binlog.compression asks for: set it to none, or to what the server has (MySQL: protocol_compression_algorithms; MariaDB: zlib alone)"
    )]
    CompressionNotOffered {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
        /// What was asked for.
        compression: Compression,
    },
    /// The handshake failed: the server's certificate is not one to trust, or there is no common ground.
    #[error("no TLS with {endpoint}: {reason}; {fix}")]
    Tls {
        /// Whom we tried to reach.
        endpoint: Box<Endpoint>,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        fix: &'static str,
    },
    /// Certificates or key of [`TlsOptions`](super::TlsOptions) can't be used.
    #[error("TLS can't be set up: {reason} (holdfast.ssl.ca, holdfast.ssl.cert, holdfast.ssl.key)")]
    TlsSetup {
        /// What is wrong.
        reason: String,
    },
    /// The server's public key, which the password has to be encrypted with, is not an RSA key in PEM form.
    #[error("the server's RSA public key can't be used: {reason}")]
    PublicKey {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The server refused a statement or a command.
    #[error("the server refused to {during}")]
    Server {
        /// What we wanted, as a verb phrase.
        during: &'static str,
        /// What the server says.
        source: Box<ServerError>,
    },
    /// The server refused to start or to go on with the dump.
    #[error("the server ended the binlog dump: {kind}")]
    Dump {
        /// Which of its reasons.
        kind: DumpRefusal,
        /// What the server says.
        source: Box<ServerError>,
    },
    /// The server sent bytes that the protocol does not allow.
    #[error("the server sent a malformed packet while we wanted to {during}")]
    Protocol {
        /// What we wanted, as a verb phrase.
        during: &'static str,
        /// What is wrong with the packet.
        source: DecodeError,
    },
    /// A packet is missing or came twice.
    #[error(
        "packet number {found} came where {expected} was due: bytes were lost on the connection"
    )]
    OutOfSequence {
        /// The number that was due.
        expected: u8,
        /// The number that came.
        found: u8,
    },
    /// A large compressed transaction can't be written to a temporary file.
    #[error(
        "a large compressed transaction can't be put into a temporary file: make room in {}, or name another folder by TMPDIR",
        std::env::temp_dir().display()
    )]
    Spill {
        /// What the system says.
        source: io::Error,
    },
    /// An event is larger than [`ClientOptions::max_event_bytes`](super::ClientOptions::max_event_bytes).
    #[error("the server sent a packet of at least {size} bytes, above the limit of {limit}")]
    PacketTooLarge {
        /// Size as far as it is known, bytes.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// The connection broke.
    #[error("the connection to the server broke")]
    Io(#[from] io::Error),
    /// Nothing came for too long, not even a heartbeat: the server or the network is gone.
    #[error("nothing came from the server for {seconds} seconds, not even a heartbeat")]
    Silent {
        /// The limit, seconds.
        seconds: f64,
    },
    /// The kind of start is one that the other kind of server offers.
    #[error("{found} servers can't start a dump by {start}")]
    WrongFlavor {
        /// The kind of start.
        start: &'static str,
        /// What the server is.
        found: Flavor,
    },
    /// The server can be asked for positions below 4 GiB only.
    #[error(
        "position {position} is beyond 4 GiB, and the server can't start there: it needs MySQL with gtid_mode=ON; start at the file's beginning or by GTIDs"
    )]
    PositionTooLarge {
        /// The position asked for, bytes from the start of the file.
        position: u64,
    },
    /// An option is out of range.
    #[error("{option} is out of range: {rule}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What it has to be.
        rule: &'static str,
    },
    /// The stream was read again after it had failed.
    #[error("the stream has failed before and can't be read further")]
    Failed,
}

impl ClientError {
    /// What a caller can do about it.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Server { .. }
            | Self::Protocol { .. }
            | Self::OutOfSequence { .. }
            | Self::Io(_)
            | Self::Silent { .. } => ErrorClass::Transient,
            Self::AccessDenied { .. }
            | Self::MissingPrivilege { .. }
            | Self::UnsupportedAuth { .. }
            | Self::TlsRequired { .. }
            | Self::TlsNotOffered { .. }
            | Self::CompressionNotOffered { .. }
            | Self::Tls { .. }
            | Self::TlsSetup { .. }
            | Self::PublicKey { .. }
            | Self::PacketTooLarge { .. }
            | Self::Spill { .. }
            | Self::WrongFlavor { .. }
            | Self::PositionTooLarge { .. }
            | Self::Option { .. } => ErrorClass::Config,
            Self::Dump { kind, .. } => kind.class(),
            Self::Failed => ErrorClass::Bug,
        }
    }

    /// The server's own error, where it sent one.
    #[must_use]
    pub fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::AccessDenied { source, .. }
            | Self::MissingPrivilege { source }
            | Self::TlsRequired { source }
            | Self::Server { source, .. }
            | Self::Dump { source, .. } => Some(source),
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::UnsupportedAuth { .. }
            | Self::TlsNotOffered { .. }
            | Self::CompressionNotOffered { .. }
            | Self::Tls { .. }
            | Self::TlsSetup { .. }
            | Self::PublicKey { .. }
            | Self::Protocol { .. }
            | Self::OutOfSequence { .. }
            | Self::PacketTooLarge { .. }
            | Self::Spill { .. }
            | Self::Io(_)
            | Self::Silent { .. }
            | Self::WrongFlavor { .. }
            | Self::PositionTooLarge { .. }
            | Self::Option { .. }
            | Self::Failed => None,
        }
    }

    /// A server error met outside the dump.
    pub(super) fn server(during: &'static str, error: ServerError) -> Self {
        let source = Box::new(error);
        match source.code {
            // ER_SPECIFIC_ACCESS_DENIED_ERROR
            1227 => Self::MissingPrivilege { source },
            _ => Self::Server { during, source },
        }
    }

    /// A server error met in the registration as a replica, where MySQL says "access denied" for a missing right.
    pub(super) fn register(error: ServerError) -> Self {
        match error.code {
            1045 => Self::MissingPrivilege { source: error.into() },
            _ => Self::server("register as a replica", error),
        }
    }

    /// A server error met during login.
    pub(super) fn login(endpoint: &Endpoint, error: ServerError) -> Self {
        match error.code {
            // ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR, ER_HOST_NOT_PRIVILEGED,
            // ER_ACCESS_DENIED_NO_PASSWORD_ERROR, ER_MUST_CHANGE_PASSWORD_LOGIN, ER_ACCOUNT_HAS_BEEN_LOCKED
            1044 | 1045 | 1130 | 1698 | 1862 | 3118 => {
                Self::AccessDenied { endpoint: endpoint.clone().into(), source: error.into() }
            }
            // ER_SECURE_TRANSPORT_REQUIRED
            3159 => Self::TlsRequired { source: error.into() },
            _ => Self::server("log in", error),
        }
    }

    /// A server error met in the dump.
    pub(super) fn dump(error: ServerError) -> Self {
        match error.code {
            // ER_SOURCE_FATAL_ERROR_READING_BINLOG
            1236 => Self::Dump { kind: DumpRefusal::of(&error.message), source: error.into() },
            // ER_SLAVE_SAME_ID of MariaDB
            4052 => Self::Dump { kind: DumpRefusal::DuplicateServerId, source: error.into() },
            _ => Self::server("send the binlog", error),
        }
    }
}

/// Why a server ends a dump: the reasons of error 1236, told apart by its message, and those with a number of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DumpRefusal {
    /// Transactions that are needed are in files that have been removed.
    Purged,
    /// The file asked for is not in the server's index: removed, or of another server.
    MissingFile,
    /// The position asked for is beyond the end of the file: the log was reset, restored, or belongs to another server.
    PastEnd,
    /// The GTIDs asked for are not the server's: it lost transactions, or is another server.
    Diverged,
    /// Another client with our server id, or server UUID, has connected.
    DuplicateServerId,
    /// A dump by GTIDs was asked of a MySQL server whose `gtid_mode` is not `ON`.
    GtidModeOff,
    /// An event is larger than the server may send; it also says so where it takes other bytes for an event's length.
    EventTooLarge,
    /// The server can't read an event where it was told to: the position is not the start of an event, or the log is damaged.
    Unreadable,
    /// Another reason; the message says which.
    Other,
}

impl DumpRefusal {
    /// Tells the reasons apart by parts of their messages, in the wording of MySQL 5.7 ("master", "slave"), of MySQL
    /// 8.4 ("source", "replica") and of MariaDB. Sources: `sql/rpl_binlog_sender.cc` and `share/messages_to_clients.txt`
    /// of MySQL, `sql/sql_repl.cc` of MariaDB.
    fn of(message: &str) -> Self {
        const PARTS: [(&str, DumpRefusal); 23] = [
            ("with the same server_uuid", DumpRefusal::DuplicateServerId),
            ("with the same server_id", DumpRefusal::DuplicateServerId),
            ("purged required binary logs", DumpRefusal::Purged),
            ("purged binary logs containing gtids", DumpRefusal::Purged),
            ("binlog files have been purged", DumpRefusal::Purged),
            ("could not find gtid state requested", DumpRefusal::Purged),
            ("could not find first log file name", DumpRefusal::MissingFile),
            ("could not open log file", DumpRefusal::MissingFile),
            ("position > file size", DumpRefusal::PastEnd),
            ("from impossible position", DumpRefusal::PastEnd),
            ("has more gtids than", DumpRefusal::Diverged),
            ("not in the master's binlog", DumpRefusal::Diverged),
            ("missing the gtid", DumpRefusal::Diverged),
            ("in auto_position mode", DumpRefusal::GtidModeOff),
            ("exceeded max_allowed_packet", DumpRefusal::EventTooLarge),
            ("truncated in the middle of event", DumpRefusal::Unreadable),
            ("bogus data in log event", DumpRefusal::Unreadable),
            ("corrupted", DumpRefusal::Unreadable),
            ("checksum failure", DumpRefusal::Unreadable),
            ("crc check", DumpRefusal::Unreadable),
            ("not a binlog", DumpRefusal::Unreadable),
            ("event too small", DumpRefusal::Unreadable),
            ("read error", DumpRefusal::Unreadable),
        ];
        let message = message.to_ascii_lowercase();
        PARTS.iter().find(|(part, _)| message.contains(part)).map_or(Self::Other, |(_, kind)| *kind)
    }

    /// What a caller can do about it.
    #[must_use]
    pub const fn class(self) -> ErrorClass {
        match self {
            Self::Purged | Self::MissingFile | Self::PastEnd | Self::Diverged => ErrorClass::Purged,
            Self::DuplicateServerId | Self::GtidModeOff | Self::EventTooLarge | Self::Other => {
                ErrorClass::Config
            }
            Self::Unreadable => ErrorClass::Data,
        }
    }
}

impl fmt::Display for DumpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Purged => {
                "it has removed binlogs that are needed; take a new snapshot, or go on from another position"
            }
            Self::MissingFile => "it does not have the binlog file",
            Self::PastEnd => "its binlog file ends before the position",
            Self::Diverged => "it does not know the transactions we have seen",
            Self::DuplicateServerId => {
                "another client has connected with our server id; give every client an id of its own"
            }
            Self::GtidModeOff => "its gtid_mode is not ON, and the start is by GTIDs",
            Self::EventTooLarge => {
                "an event is larger than its max_allowed_packet, or the position is not the start of an event (were the logs \
                 reset since?)"
            }
            Self::Unreadable => {
                "it can't read an event there: the position is not the start of an event (were the logs reset since?), or the \
                 log is damaged"
            }
            Self::Other => "see its message",
        })
    }
}

/// An error packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {code}, SQL state {})", sql_state_text(.sql_state))]
pub struct ServerError {
    /// The server's error number.
    pub code: u16,
    /// SQLSTATE, five ASCII characters; `HY000` when the server sent none.
    pub sql_state: [u8; 5],
    /// The server's message, 1 KiB of it at most.
    pub message: String,
}

fn sql_state_text(state: &[u8; 5]) -> &str {
    std::str::from_utf8(state).unwrap_or("HY000")
}

/// Whom a client connects to, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// User name.
    pub user: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the database at {}:{} with user '{}'", self.host, self.port, self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_of_error_1236_are_told_apart_by_their_messages() {
        use DumpRefusal::{
            Diverged, DuplicateServerId, EventTooLarge, GtidModeOff, MissingFile, Other, PastEnd,
            Purged, Unreadable,
        };
        let table = [
            (
                "Cannot replicate because the source purged required binary logs. Replicate the missing transactions",
                Purged,
            ),
            (
                "The slave is connecting using CHANGE MASTER TO MASTER_AUTO_POSITION = 1, but the master has purged binary logs containing GTIDs that the slave requires.",
                Purged,
            ),
            (
                "Could not find GTID state requested by slave in any binlog files. Probably the slave state is too old and required binlog files have been purged.",
                Purged,
            ),
            ("Could not find first log file name in binary log index file", MissingFile),
            ("Client requested source to start replication from position > file size", PastEnd),
            ("Client requested master to start replication from impossible position", PastEnd),
            (
                "Replica has more GTIDs than the source has, using the source's SERVER_UUID.",
                Diverged,
            ),
            (
                "Error: connecting slave requested to start from GTID 0-1-9, which is not in the master's binlog",
                Diverged,
            ),
            (
                "A slave with the same server_uuid/server_id as this slave has connected to the master; the first event",
                DuplicateServerId,
            ),
            (
                "A replica with the same server_uuid/server_id as this replica has connected to the source",
                DuplicateServerId,
            ),
            (
                "log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source",
                EventTooLarge,
            ),
            ("bogus data in log event; the first event 'b.000001' at 5", Unreadable),
            (
                "The replication sender thread cannot start in AUTO_POSITION mode: this server has GTID_MODE = OFF",
                GtidModeOff,
            ),
            ("a reason of a later version", Other),
            ("", Other),
        ];
        for (message, kind) in table {
            assert_eq!(DumpRefusal::of(message), kind, "{message}");
        }
    }

    #[test]
    fn only_what_another_try_can_cure_is_transient() {
        let error = |code| ServerError {
            code,
            sql_state: *b"HY000",
            message: "purged required binary logs".into(),
        };
        let endpoint = Endpoint { host: "h".into(), port: 1, user: "u".into() };
        let table = [
            (ClientError::login(&endpoint, error(1045)), ErrorClass::Config),
            (ClientError::login(&endpoint, error(3159)), ErrorClass::Config),
            (ClientError::login(&endpoint, error(1040)), ErrorClass::Transient),
            (ClientError::register(error(1045)), ErrorClass::Config),
            (ClientError::server("read", error(1227)), ErrorClass::Config),
            (ClientError::server("read", error(1205)), ErrorClass::Transient),
            (ClientError::dump(error(1236)), ErrorClass::Purged),
            (ClientError::dump(error(4052)), ErrorClass::Config),
            (ClientError::dump(error(1053)), ErrorClass::Transient),
            (ClientError::dump(error(1227)), ErrorClass::Config),
            (io::Error::from(io::ErrorKind::ConnectionReset).into(), ErrorClass::Transient),
        ];
        for (error, class) in table {
            assert_eq!(error.class(), class, "{error}");
        }
    }
}
