//! Login: the server's greeting, our answer, and the exchange of the authentication plugin. Pure: packets in, packets
//! out.
//!
//! Offered are `caching_sha2_password` (MySQL's default), `mysql_native_password` (MySQL 5.7, MariaDB) and
//! `sha256_password` (MySQL 5.7; newer servers also feign it for users that do not exist), `client_ed25519` and `parsec`
//! (MariaDB), and `mysql_clear_password` where TLS has verified the server. Other plugins that send the password in a form
//! that a listener can use are refused.
//!
//! Over a connection that is not encrypted the exchanges that need the password itself encrypt it with a public key that
//! the server sends. It keeps listeners out, but not somebody who plays the server.

use mysql_common::scramble::{
    create_response_for_ed25519, create_response_for_parsec, scramble_native, scramble_sha256,
};

use super::command::server_error;
use super::compression::Compression;
use super::error::{ClientError, Endpoint, ServerError};
use super::public_key;
use crate::wire::{Cursor, DecodeError};

const DURING: &str = "log in";

/// Capability flags of the protocol (MySQL, `include/mysql_com.h`).
mod capability {
    pub(super) const LONG_PASSWORD: u32 = 1;
    pub(super) const LONG_FLAG: u32 = 1 << 2;
    pub(super) const COMPRESS: u32 = 1 << 5;
    pub(super) const PROTOCOL_41: u32 = 1 << 9;
    pub(super) const SSL: u32 = 1 << 11;
    pub(super) const TRANSACTIONS: u32 = 1 << 13;
    pub(super) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(super) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(super) const CONNECT_ATTRS: u32 = 1 << 20;
    pub(super) const ZSTD_COMPRESSION: u32 = 1 << 26;
}

/// `utf8mb4_general_ci`, known to every server since 5.5.
const COLLATION: u8 = 45;

/// How hard the server shall try with Zstandard, 1 to 22: the default of MySQL's clients.
const ZSTD_LEVEL: u8 = 3;

/// Length of the challenge that passwords are scrambled with.
const NONCE: usize = 20;

/// The server's first packet, protocol version 10.
///
/// ```text
/// version 0a, server version NUL-terminated, connection id u32le, challenge 8 bytes, 00,
/// capabilities u16le (low), collation u8, status u16le, capabilities u16le (high), challenge length u8, 10 bytes,
/// challenge max(13, length - 8) bytes ending in NUL, plugin name NUL-terminated or to the end
/// ```
///
/// Source: MySQL internals, `Protocol::HandshakeV10`; MariaDB uses some of the 10 bytes for flags of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) connection_id: u32,
    capabilities: u32,
    nonce: Vec<u8>,
    plugin: Vec<u8>,
    /// The flag of the compression that is wanted; 0 for none.
    compression: u32,
}

impl Greeting {
    /// Parses the first packet; a server that refuses the connection at once sends an error packet instead.
    pub(super) fn parse(packet: &[u8], endpoint: &Endpoint) -> Result<Self, ClientError> {
        if packet.first() == Some(&0xff) {
            return Err(ClientError::login(endpoint, server_error(packet, DURING)?));
        }
        Self::parse_v10(packet).map_err(malformed)
    }

    /// Whether the server takes a request for TLS.
    pub(super) const fn offers_tls(&self) -> bool {
        self.capabilities & capability::SSL != 0
    }

    /// Wants the connection compressed. False when the server does not offer it.
    pub(super) const fn compress(&mut self, compression: Compression) -> bool {
        self.compression = match compression {
            Compression::Off => 0,
            Compression::Zlib => capability::COMPRESS,
            Compression::Zstd => capability::ZSTD_COMPRESSION,
        };
        self.capabilities & self.compression == self.compression
    }

    /// The request for TLS: the head of the answer that follows it.
    pub(super) fn tls_request(&self) -> Vec<u8> {
        head(wanted(self.capabilities) | self.compression | capability::SSL)
    }

    fn parse_v10(packet: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(packet);
        let protocol = cursor.u8("protocol_version")?;
        if protocol != 10 {
            return Err(DecodeError::Invalid { field: "protocol_version", value: protocol.into() });
        }
        let version =
            String::from_utf8_lossy(until_nul(&mut cursor, "server_version")?).into_owned();
        let connection_id = cursor.u32_le("connection_id")?;
        let mut nonce = cursor.take(8, "challenge")?.to_vec();
        cursor.take(1, "filler")?;
        let low = cursor.u16_le("capabilities")?;
        cursor.take(3, "collation_and_status")?;
        let high = cursor.u16_le("capabilities")?;
        let length = cursor.u8("challenge_length")?;
        cursor.take(10, "reserved")?;
        let capabilities = u32::from(low) | u32::from(high) << 16;
        let required = capability::PROTOCOL_41 | capability::SECURE_CONNECTION;
        if capabilities & required != required {
            return Err(DecodeError::Unsupported { what: "a server without protocol 4.1" });
        }
        let rest = usize::from(length).saturating_sub(8).max(13);
        nonce.extend_from_slice(cursor.take(rest, "challenge")?);
        nonce.truncate(NONCE);
        let plugin = if capabilities & capability::PLUGIN_AUTH == 0 {
            NATIVE
        } else {
            trim_nul(cursor.rest())
        };
        let plugin = plugin.to_vec();
        Ok(Self { version, connection_id, capabilities, nonce, plugin, compression: 0 })
    }
}

/// What we want of what the server can.
const fn wanted(capabilities: u32) -> u32 {
    let wanted = capability::LONG_PASSWORD
        | capability::LONG_FLAG
        | capability::PROTOCOL_41
        | capability::TRANSACTIONS
        | capability::SECURE_CONNECTION
        | capability::PLUGIN_AUTH
        | capability::CONNECT_ATTRS;
    wanted & capabilities
}

/// The first 32 bytes of our answer.
fn head(flags: u32) -> Vec<u8> {
    let mut packet = Vec::with_capacity(128);
    packet.extend_from_slice(&flags.to_le_bytes());
    packet.extend_from_slice(&(1_u32 << 30).to_le_bytes());
    packet.push(COLLATION);
    packet.extend_from_slice(&[0; 23]);
    packet
}

/// Who may be listening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    /// Anybody.
    Plain,
    /// The server, or somebody who plays it.
    Encrypted,
    /// The server alone.
    Verified,
}

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";
const SHA256: &[u8] = b"sha256_password";
const ED25519: &[u8] = b"client_ed25519";
const PARSEC: &[u8] = b"parsec";
const CLEAR: &[u8] = b"mysql_clear_password";

/// Length of the challenge of `client_ed25519` and `parsec`.
const LONG_NONCE: usize = 32;

/// Length of the salt of `parsec`.
const PARSEC_SALT: usize = 18;

/// Largest work factor of `parsec` that is taken: 1024 << 10 rounds are about a second. MariaDB 11.8 asks for 3.
const PARSEC_FACTOR: u8 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plugin {
    Native,
    CachingSha2,
    Sha256,
    Ed25519,
    Parsec,
    Clear,
}

impl Plugin {
    fn of(name: &[u8]) -> Option<Self> {
        match name {
            NATIVE => Some(Self::Native),
            CACHING_SHA2 => Some(Self::CachingSha2),
            SHA256 => Some(Self::Sha256),
            ED25519 => Some(Self::Ed25519),
            PARSEC => Some(Self::Parsec),
            CLEAR => Some(Self::Clear),
            _ => None,
        }
    }

    const fn name(self) -> &'static [u8] {
        match self {
            Self::Native => NATIVE,
            Self::CachingSha2 => CACHING_SHA2,
            Self::Sha256 => SHA256,
            Self::Ed25519 => ED25519,
            Self::Parsec => PARSEC,
            Self::Clear => CLEAR,
        }
    }

    /// What the plugin sends first: the proof that we know the password, empty for an empty password. `sha256_password`
    /// has no such proof: it asks for the key.
    fn opening(self, password: &str, nonce: &[u8], secure: bool) -> Vec<u8> {
        let bytes = password.as_bytes();
        match self {
            Self::Native => scramble_native(nonce, bytes).map(Vec::from).unwrap_or_default(),
            Self::CachingSha2 => scramble_sha256(nonce, bytes).map(Vec::from).unwrap_or_default(),
            Self::Sha256 if password.is_empty() => vec![0],
            Self::Sha256 if secure => clear(password),
            Self::Sha256 => vec![1],
            Self::Ed25519 => create_response_for_ed25519(bytes, nonce).to_vec(),
            // It asks for the salt.
            Self::Parsec => Vec::new(),
            Self::Clear => clear(password),
        }
    }
}

/// What to do after a packet of the server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this payload, then read a packet.
    Send(Vec<u8>),
    /// Read a packet.
    Wait,
    /// We are logged in.
    Done,
}

/// The login after the greeting: feed it every packet of the server with [`Self::handle`].
///
/// ```text
/// answer() ─▶ Scrambled ── switch: scramble anew ──▶ Scrambled
///                 ├─ OK ───────────────────────────▶ done
///                 ├─ "fast" (cached by the server) ─▶ Scrambled
///                 └─ "full": ask for the key ──────▶ KeyWanted ── key: send the password encrypted ──▶ Scrambled
/// ```
pub(super) struct Login<'a> {
    endpoint: &'a Endpoint,
    password: &'a str,
    secure: bool,
    verified: bool,
    capabilities: u32,
    compression: u32,
    nonce: Vec<u8>,
    plugin: Plugin,
    key_wanted: bool,
}

impl<'a> Login<'a> {
    /// `security`: whether the password may be sent as it is.
    pub(super) fn new(
        greeting: Greeting,
        endpoint: &'a Endpoint,
        password: &'a str,
        security: Security,
    ) -> Self {
        // A server's default plugin says nothing about this user: begin with any, the server switches.
        let plugin = match Plugin::of(&greeting.plugin) {
            Some(plugin @ (Plugin::Native | Plugin::CachingSha2 | Plugin::Sha256)) => plugin,
            Some(Plugin::Ed25519 | Plugin::Parsec | Plugin::Clear) | None => Plugin::Native,
        };
        Self {
            endpoint,
            password,
            secure: security != Security::Plain,
            verified: security == Security::Verified,
            capabilities: greeting.capabilities,
            compression: greeting.compression,
            nonce: greeting.nonce,
            plugin,
            key_wanted: false,
        }
    }

    /// Our answer to the greeting (`Protocol::HandshakeResponse41`).
    pub(super) fn answer(&self) -> Vec<u8> {
        let mut flags = wanted(self.capabilities) | self.compression;
        if self.secure {
            flags |= capability::SSL;
        }
        let proof = self.plugin.opening(self.password, &self.nonce, self.secure);
        let mut packet = head(flags);
        packet.extend_from_slice(self.endpoint.user.as_bytes());
        packet.push(0);
        push_short(&mut packet, &proof);
        if flags & capability::PLUGIN_AUTH != 0 {
            packet.extend_from_slice(self.plugin.name());
            packet.push(0);
        }
        if flags & capability::CONNECT_ATTRS != 0 {
            let mut attributes = Vec::new();
            for text in ["_client_name", "holdfast", "_client_version", env!("CARGO_PKG_VERSION")] {
                push_short(&mut attributes, text.as_bytes());
            }
            push_short(&mut packet, &attributes);
        }
        if flags & capability::ZSTD_COMPRESSION != 0 {
            packet.push(ZSTD_LEVEL);
        }
        packet
    }

    /// Takes one packet of the server.
    pub(super) fn handle(&mut self, packet: &[u8]) -> Result<Step, ClientError> {
        match packet.split_first() {
            Some((0x00, _)) => Ok(Step::Done),
            Some((0xff, _)) => Err(self.refused(server_error(packet, DURING)?)),
            Some((0xfe, [])) => Err(unsupported(b"mysql_old_password")),
            Some((0xfe, body)) => self.switch(body),
            // The first servers with it send the salt without the mark.
            Some((b'P', _)) if self.plugin == Plugin::Parsec => self.more(packet),
            Some((0x01, body)) => self.more(body),
            Some((other, _)) => Err(malformed(DecodeError::Invalid {
                field: "login_packet_type",
                value: (*other).into(),
            })),
            None => Err(malformed(DecodeError::Empty { field: "login_packet" })),
        }
    }

    /// The server wants another plugin: name, NUL, challenge, NUL.
    fn switch(&mut self, body: &[u8]) -> Result<Step, ClientError> {
        let mut cursor = Cursor::new(body);
        let name = until_nul(&mut cursor, "plugin_name").map_err(malformed)?;
        self.plugin = Plugin::of(name).ok_or_else(|| unsupported(name))?;
        self.nonce = match self.plugin {
            Plugin::Clear if !self.verified => return Err(unsupported(name)),
            // Their challenge is binary: it may end in NUL.
            Plugin::Ed25519 | Plugin::Parsec => {
                cursor.take(LONG_NONCE, "challenge").map_err(malformed)?.to_vec()
            }
            Plugin::Native | Plugin::CachingSha2 | Plugin::Sha256 | Plugin::Clear => {
                trim_nul(cursor.rest()).to_vec()
            }
        };
        self.key_wanted = false;
        Ok(Step::Send(self.plugin.opening(self.password, &self.nonce, self.secure)))
    }

    /// Data of the plugin (MySQL, `sql/auth/sha2_password.cc` and `sql/auth/sql_authentication.cc`).
    fn more(&mut self, body: &[u8]) -> Result<Step, ClientError> {
        const FAST: u8 = 3;
        const FULL: u8 = 4;
        const KEY_PLEASE: u8 = 2;
        match (self.plugin, body) {
            (Plugin::CachingSha2, key) if self.key_wanted => {
                self.key_wanted = false;
                Ok(Step::Send(encrypt(self.password, &self.nonce, key)?))
            }
            (Plugin::Sha256, key) if !self.secure && !self.password.is_empty() => {
                Ok(Step::Send(encrypt(self.password, &self.nonce, key)?))
            }
            (Plugin::CachingSha2, [FAST]) => Ok(Step::Wait),
            (Plugin::CachingSha2, [FULL]) if self.secure => Ok(Step::Send(clear(self.password))),
            (Plugin::CachingSha2, [FULL]) => {
                self.key_wanted = true;
                Ok(Step::Send(vec![KEY_PLEASE]))
            }
            // MariaDB, `plugin/auth_parsec`: algorithm, work factor, salt of 18 bytes.
            (Plugin::Parsec, [b'P', factor @ 0..=PARSEC_FACTOR, salt @ ..])
                if salt.len() == PARSEC_SALT =>
            {
                let nonce = self.nonce.first_chunk::<LONG_NONCE>();
                let nonce =
                    nonce.ok_or_else(|| malformed(DecodeError::Empty { field: "challenge" }))?;
                let rounds = 1024_u32 << factor;
                let password = self.password.as_bytes();
                Ok(Step::Send(create_response_for_parsec(password, nonce, rounds, salt).to_vec()))
            }
            (
                Plugin::CachingSha2
                | Plugin::Native
                | Plugin::Sha256
                | Plugin::Ed25519
                | Plugin::Parsec
                | Plugin::Clear,
                _,
            ) => {
                let value = body.first().copied().unwrap_or_default().into();
                Err(malformed(DecodeError::Invalid { field: "login_data", value }))
            }
        }
    }

    fn refused(&self, error: ServerError) -> ClientError {
        match error.code {
            // ER_NOT_SUPPORTED_AUTH_MODE, ER_PLUGIN_IS_NOT_LOADED
            1251 | 1524 => unsupported(self.plugin.name()),
            _ => ClientError::login(self.endpoint, error),
        }
    }
}

/// The password as the server wants it where nobody listens.
fn clear(password: &str) -> Vec<u8> {
    [password.as_bytes(), &[0]].concat()
}

/// The password and a NUL, hidden by the challenge, encrypted with the server's key.
fn encrypt(password: &str, nonce: &[u8], key: &[u8]) -> Result<Vec<u8>, ClientError> {
    let modulus = public_key::check(key).map_err(|reason| ClientError::PublicKey { reason })?;
    let mut secret = clear(password);
    // OAEP with SHA-1 takes 42 bytes of the modulus.
    if secret.len() + 42 > modulus {
        return Err(ClientError::PublicKey { reason: "it is too short for this password" });
    }
    if nonce.is_empty() {
        return Err(malformed(DecodeError::Empty { field: "challenge" }));
    }
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(mysql_common::crypto::encrypt(&secret, key))
}

fn until_nul<'p>(cursor: &mut Cursor<'p>, field: &'static str) -> Result<&'p [u8], DecodeError> {
    let rest = cursor.peek();
    let short =
        DecodeError::Truncated { field, needed: rest.len() as u64 + 1, left: rest.len() as u64 };
    let len = rest.iter().position(|byte| *byte == 0).ok_or(short)?;
    let text = cursor.take(len, field)?;
    cursor.take(1, field)?;
    Ok(text)
}

fn trim_nul(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(&[0]).unwrap_or(bytes)
}

/// A length byte and the bytes; nothing here comes near 251, where the length would need more.
fn push_short(packet: &mut Vec<u8>, bytes: &[u8]) {
    let len = u8::try_from(bytes.len()).unwrap_or(250).min(250);
    packet.push(len);
    packet.extend_from_slice(bytes.get(..usize::from(len)).unwrap_or_default());
}

fn unsupported(plugin: &[u8]) -> ClientError {
    let plugin = plugin.get(..plugin.len().min(64)).unwrap_or_default();
    ClientError::UnsupportedAuth { plugin: String::from_utf8_lossy(plugin).into_owned() }
}

const fn malformed(source: DecodeError) -> ClientError {
    ClientError::Protocol { during: DURING, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::public_key::tests::KEY;

    const CHALLENGE: &[u8] = b"abcdefghijklmnopqrst";

    #[test]
    fn greetings_of_both_kinds_of_server_are_read() {
        let table = [
            ("9.7.4", 21, Some("caching_sha2_password"), CACHING_SHA2),
            ("5.5.5-10.11.6-MariaDB-log", 21, Some("mysql_native_password"), NATIVE),
            ("5.6.10", 21, None, NATIVE),
            ("8.0.11", 0, Some("sha256_password"), b"sha256_password"),
        ];
        for (version, length, plugin, expected) in table {
            let packet = greeting(version, length, plugin, 0);
            let parsed = Greeting::parse(&packet, &endpoint()).unwrap();
            assert_eq!((parsed.version.as_str(), parsed.connection_id), (version, 77));
            assert_eq!((parsed.nonce.as_slice(), parsed.plugin.as_slice()), (CHALLENGE, expected));
            let fixed = packet.len() - plugin.map_or(0, |name| name.len() + 1);
            for len in 0..fixed {
                let short = Greeting::parse(&packet[..len], &endpoint());
                assert!(matches!(short, Err(ClientError::Protocol { .. })), "{len}");
            }
        }
    }

    #[test]
    fn a_greeting_may_claim_any_challenge_length() {
        for length in 0..=255 {
            let packet = greeting("8.4.0", length, Some("caching_sha2_password"), 300);
            let parsed = Greeting::parse(&packet, &endpoint()).unwrap();
            assert_eq!(parsed.nonce, CHALLENGE);
        }
    }

    #[test]
    fn a_server_that_refuses_at_once_is_heard() {
        let too_many =
            Greeting::parse(b"\xff\x10\x04Too many connections", &endpoint()).unwrap_err();
        assert_eq!(too_many.server_error().unwrap().message, "Too many connections");
        let host = Greeting::parse(b"\xff\x6a\x04Host is not allowed", &endpoint()).unwrap_err();
        assert!(matches!(host, ClientError::AccessDenied { .. }));
        let old = Greeting::parse(b"\x09rest", &endpoint()).unwrap_err();
        assert!(matches!(old, ClientError::Protocol { .. }));
    }

    #[test]
    fn the_answer_proves_the_password_and_says_who_we_are() {
        let endpoint = endpoint();
        let login = login(&endpoint, "secret");
        let answer = login.answer();
        assert_eq!(answer[8], COLLATION);
        let mut expected = b"repl\0\x14".to_vec();
        expected.extend(scramble_native(CHALLENGE, b"secret").unwrap());
        expected.extend(b"mysql_native_password\0");
        assert_eq!(answer[32..32 + expected.len()], expected);
        let attributes = &answer[32 + expected.len()..];
        assert_eq!(usize::from(attributes[0]), attributes.len() - 1);
        assert!(attributes.windows(8).any(|window| window == b"holdfast"));
        assert!(!answer.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn compression_is_asked_for_where_it_is_offered() {
        let endpoint = endpoint();
        let greeting =
            Greeting::parse(&greeting("9.7.4", 21, Some("caching_sha2_password"), 0), &endpoint)
                .unwrap();
        let mut lengths = Vec::new();
        for (compression, flag) in [
            (Compression::Off, 0),
            (Compression::Zlib, capability::COMPRESS),
            (Compression::Zstd, capability::ZSTD_COMPRESSION),
        ] {
            let mut offered = greeting.clone();
            assert!(offered.compress(compression));
            let request = offered.tls_request();
            let answer = Login::new(offered, &endpoint, "secret", Security::Plain).answer();
            for packet in [&request, &answer] {
                let flags = u32::from_le_bytes(*packet.first_chunk().unwrap());
                assert_eq!(flags & (capability::COMPRESS | capability::ZSTD_COMPRESSION), flag);
            }
            lengths.push(answer.len());
            let mut other = greeting.clone();
            other.capabilities &= !flag;
            assert_eq!(other.compress(compression), flag == 0);
        }
        // The level.
        assert_eq!((lengths[1], lengths[2]), (lengths[0], lengths[0] + 1));
    }

    #[test]
    fn a_fast_and_a_full_exchange_end_in_a_login() {
        let endpoint = endpoint();
        let mut login = login(&endpoint, "secret");
        let switch = [&b"\xfecaching_sha2_password\0"[..], CHALLENGE, b"\0"].concat();
        let proof = scramble_sha256(CHALLENGE, b"secret").unwrap().to_vec();
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(proof));
        assert_eq!(login.handle(b"\x01\x03").unwrap(), Step::Wait);
        assert_eq!(login.handle(b"\x01\x04").unwrap(), Step::Send(vec![2]));
        let key = [b"\x01", KEY.as_bytes()].concat();
        let Step::Send(encrypted) = login.handle(&key).unwrap() else { panic!("nothing sent") };
        assert_eq!(encrypted.len(), 128);
        assert_eq!(login.handle(b"\0\0\0\x02\0\0\0").unwrap(), Step::Done);
        login.secure = true;
        assert_eq!(login.handle(b"\x01\x04").unwrap(), Step::Send(b"secret\0".to_vec()));
    }

    #[test]
    fn sha256_password_asks_for_the_key_at_once() {
        let endpoint = endpoint();
        let mut login = login(&endpoint, "secret");
        let switch = [&b"\xfesha256_password\0"[..], CHALLENGE, b"\0"].concat();
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(vec![1]));
        let key = [b"\x01", KEY.as_bytes()].concat();
        assert!(matches!(login.handle(&key).unwrap(), Step::Send(sent) if sent.len() == 128));
        login.secure = true;
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(b"secret\0".to_vec()));
        login.password = "";
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(vec![0]));
    }

    #[test]
    fn an_empty_password_sends_an_empty_proof() {
        let endpoint = endpoint();
        let mut login = login(&endpoint, "");
        let switch = [&b"\xfecaching_sha2_password\0"[..], CHALLENGE, b"\0"].concat();
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(Vec::new()));
        assert!(login.answer().windows(7).any(|window| window == b"repl\0\0c"));
    }

    #[test]
    fn plugins_that_give_the_password_away_and_unknown_ones_are_refused() {
        let endpoint = endpoint();
        let table: [(&[u8], &str); 5] = [
            (b"\xfe", "mysql_old_password"),
            (b"\xfemysql_old_password\0abcdefgh\0", "mysql_old_password"),
            (b"\xfemysql_clear_password\0", "mysql_clear_password"),
            (b"\xfeauth_gssapi_client\0abc", "auth_gssapi_client"),
            (b"\xff\xf4\x05#HY000Plugin is not loaded", "mysql_native_password"),
        ];
        for (packet, name) in table {
            match login(&endpoint, "secret").handle(packet) {
                Err(ClientError::UnsupportedAuth { plugin }) => assert_eq!(plugin, name),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_password_itself_is_sent_to_a_verified_server_only() {
        let endpoint = endpoint();
        let greeting = || {
            let packet = greeting("8.0.30", 21, Some("mysql_native_password"), 0);
            Greeting::parse(&packet, &endpoint).unwrap()
        };
        for (security, sent) in [
            (Security::Plain, None),
            (Security::Encrypted, None),
            (Security::Verified, Some(Step::Send(b"secret\0".to_vec()))),
        ] {
            let mut login = Login::new(greeting(), &endpoint, "secret", security);
            let answer = login.handle(b"\xfemysql_clear_password\0").ok();
            assert_eq!(answer, sent, "{security:?}");
        }
    }

    #[test]
    fn the_plugins_of_mariadb_sign_the_challenge() {
        let endpoint = endpoint();
        let challenge = [7; LONG_NONCE];
        let mut login = login(&endpoint, "secret");
        let switch = [&b"\xfeclient_ed25519\0"[..], &challenge].concat();
        let signed = create_response_for_ed25519(b"secret", &challenge).to_vec();
        assert_eq!(login.handle(&switch).unwrap(), Step::Send(signed));
        let switch = [&b"\xfeparsec\0"[..], &challenge].concat();
        for mark in [&b""[..], b"\x01"] {
            assert_eq!(login.handle(&switch).unwrap(), Step::Send(Vec::new()));
            let salt = [mark, b"P\x00", &[9; PARSEC_SALT]].concat();
            assert!(matches!(login.handle(&salt).unwrap(), Step::Send(sent) if sent.len() == 96));
            // A factor that would keep us busy for minutes, and a salt that is too short.
            for wrong in
                [[mark, b"P\x14", &[9; PARSEC_SALT]].concat(), [mark, b"P\x00abc"].concat()]
            {
                assert!(matches!(login.handle(&wrong), Err(ClientError::Protocol { .. })));
            }
        }
        let short = login.handle(b"\xfeparsec\0abc");
        assert!(matches!(short, Err(ClientError::Protocol { .. })));
    }

    #[test]
    fn packets_that_make_no_sense_are_errors() {
        let endpoint = endpoint();
        for packet in [&b""[..], b"\x02", b"\x01\x04", b"\x01", b"\xfename without an end"] {
            let answer = login(&endpoint, "secret").handle(packet);
            assert!(matches!(answer, Err(ClientError::Protocol { .. })), "{packet:?} {answer:?}");
        }
        let denied =
            login(&endpoint, "secret").handle(b"\xff\x15\x04#28000Access denied").unwrap_err();
        assert!(matches!(denied, ClientError::AccessDenied { .. }));
        assert!(!format!("{denied} {denied:?}").contains("secret"));
        let mut full = login(&endpoint, "secret");
        full.handle(b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0").unwrap();
        full.handle(b"\x01\x04").unwrap();
        assert!(matches!(full.handle(b"\x01no key"), Err(ClientError::PublicKey { .. })));
        let long = "x".repeat(100);
        assert!(matches!(
            encrypt(&long, CHALLENGE, KEY.as_bytes()),
            Err(ClientError::PublicKey { .. })
        ));
    }

    fn endpoint() -> Endpoint {
        Endpoint { host: "db".into(), port: 3306, user: "repl".into() }
    }

    fn login<'a>(endpoint: &'a Endpoint, password: &'a str) -> Login<'a> {
        let packet = greeting("8.0.30", 21, Some("mysql_native_password"), 0);
        Login::new(Greeting::parse(&packet, endpoint).unwrap(), endpoint, password, Security::Plain)
    }

    /// A greeting; `spare` bytes of challenge beyond what the protocol uses.
    fn greeting(version: &str, length: u8, plugin: Option<&str>, spare: usize) -> Vec<u8> {
        let flags: u32 = if plugin.is_some() { 0xffff_ffff } else { !capability::PLUGIN_AUTH };
        let mut packet = vec![10];
        packet.extend(version.as_bytes());
        packet.extend([0, 77, 0, 0, 0]);
        packet.extend(&CHALLENGE[..8]);
        packet.push(0);
        packet.extend(&flags.to_le_bytes()[..2]);
        packet.extend([COLLATION, 2, 0]);
        packet.extend(&flags.to_le_bytes()[2..]);
        packet.push(length);
        packet.extend([0; 10]);
        packet.extend(&CHALLENGE[8..]);
        packet.push(0);
        packet.extend(vec![0; spare]);
        if let Some(plugin) = plugin {
            packet.extend(plugin.as_bytes());
            packet.push(0);
        }
        packet
    }
}
