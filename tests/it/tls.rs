//! Encrypted connections: each mode on both kinds of connection, with a server whose certificate is for `localhost`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use holdfast_binlog::client::{BinlogClient, ClientOptions, Password, TlsMode, TlsOptions};
use holdfast_connector::config::Secret;
use holdfast_connector::offset_store::{OffsetKey, OffsetStore};
use holdfast_connector::table_store::{TableLocation, TableOffsetStore};
use holdfast_snapshot::ServerOptions;
use holdfast_tests::server::{Options, Server, shared};
use mysql_async::prelude::Queryable;

use TlsMode::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};

/// An authority, another one, and certificates of the first for the name `localhost`: a server's, a client's, and one of
/// the server that was good until 2021.
fn certificates(folder: &Path) {
    let script = "set -e
        for ca in ca other; do
            openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=$ca -keyout $ca-key.pem -out $ca.pem
        done
        printf 'subjectAltName=DNS:localhost' > names
        for who in server client; do
            openssl req -newkey rsa:2048 -nodes -subj /CN=$who -keyout $who-key.pem -out $who.csr
            openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 30 -extfile names -out $who.pem
        done
        # One whose time is over.
        printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index\nnew_certs_dir=.\ncertificate=ca.pem\nprivate_key=ca-key.pem
serial=serial\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' > ca.cnf
        : > index
        echo 77 > serial
        openssl ca -batch -config ca.cnf -in server.csr -out old.pem -startdate 20200101000000Z -enddate 20210101000000Z \\
            -extfile names -notext
        chmod a+r *.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn server(options: Options, folder: &Path, certificate: &str) -> Server {
    let file = |name: &str| folder.join(name).display().to_string();
    let options = options
        .arg(format!("--ssl-ca={}", file("ca.pem")))
        .arg(format!("--ssl-cert={}", file(certificate)))
        .arg(format!("--ssl-key={}", file("server-key.pem")));
    Server::start(options).unwrap()
}

fn trusting(mode: TlsMode, ca: &Path) -> TlsOptions {
    TlsOptions { mode, ca: Some(fs::read(ca).unwrap()), ..TlsOptions::default() }
}

/// What both connections say: the version of TLS, or the error.
struct Tried {
    dump: Result<Option<&'static str>, String>,
    query: Result<bool, String>,
}

impl Tried {
    fn fails_with(&self, parts: &[&str]) {
        for text in [self.dump.as_ref().unwrap_err(), self.query.as_ref().unwrap_err()] {
            for part in parts {
                assert!(text.contains(part), "{part} is not in: {text}");
            }
        }
    }

    fn is_encrypted(&self, encrypted: bool) {
        assert_eq!(self.dump.as_ref().unwrap().is_some(), encrypted);
        assert_eq!(*self.query.as_ref().unwrap(), encrypted);
    }
}

#[tokio::main]
async fn connect(host: &str, port: u16, (user, password): (&str, &str), tls: &TlsOptions) -> Tried {
    let mut options = ClientOptions::new(host, port, user, 77_001);
    options.password = Password::new(password);
    options.tls = tls.clone();
    let dump = match BinlogClient::connect(&options).await {
        Ok(client) => Ok(client.server().tls),
        Err(error) => {
            let holdfast_binlog::Error::Client(client) = &error else { panic!("{error:?}") };
            assert_eq!(client.class(), holdfast_binlog::ErrorClass::Config, "{error:?}");
            Err(client.to_string())
        }
    };
    let options = ServerOptions {
        host: host.to_owned(),
        port,
        user: user.to_owned(),
        password: password.to_owned(),
        tls: tls.clone(),
        connect_timeout: Duration::from_secs(20),
        initial_statements: Vec::new(),
    };
    let query = match holdfast_snapshot::connect(&options).await {
        Ok(mut conn) => {
            let cipher: Option<(String, String)> =
                conn.query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
            Ok(cipher.is_some_and(|(_, cipher)| !cipher.is_empty()))
        }
        Err(error) => {
            assert_eq!(error.class(), holdfast_snapshot::ErrorClass::Config, "{error:?}");
            Err(error.to_string())
        }
    };
    Tried { dump, query }
}

const WORD: &str = "secret-word";

#[test]
fn each_mode_checks_what_its_name_says_on_both_connections() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    certificates(path);
    let server = server(Options::mysql(), path, "server.pem");
    for (user, needs) in [("any", "NONE"), ("ssl", "SSL"), ("x509", "X509")] {
        server
            .sql(&format!(
                "CREATE USER '{user}'@'%' IDENTIFIED BY '{WORD}' REQUIRE {needs}; \
                 GRANT SELECT, RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{user}'@'%'"
            ))
            .unwrap();
    }
    let ca = path.join("ca.pem");
    let port = server.port();
    let to = |host: &str, user, tls: &TlsOptions| connect(host, port, (user, WORD), tls);

    to("localhost", "any", &trusting(Disabled, &ca)).is_encrypted(false);
    for mode in [Preferred, Required, VerifyCa, VerifyIdentity] {
        to("localhost", "ssl", &trusting(mode, &ca)).is_encrypted(true);
    }
    // The name does not count for `verify_ca`, and does for `verify_identity`.
    to("127.0.0.1", "ssl", &trusting(VerifyCa, &ca)).is_encrypted(true);
    to("127.0.0.1", "any", &trusting(VerifyIdentity, &ca)).fails_with(&[
        "certificate not valid for name",
        "localhost",
        "subjectAltName",
    ]);
    // Who signed counts for both, and for no other.
    let other = path.join("other.pem");
    for mode in [VerifyCa, VerifyIdentity] {
        for host in ["localhost", "127.0.0.1"] {
            to(host, "any", &trusting(mode, &other))
                .fails_with(&["no TLS with", "holdfast.ssl.ca"]);
        }
    }
    to("localhost", "any", &trusting(Required, &other)).is_encrypted(true);
    // A client certificate.
    let mut tls = trusting(VerifyIdentity, &ca);
    assert!(to("localhost", "x509", &tls).dump.unwrap_err().contains("failed to authenticate"));
    tls.cert = Some(fs::read(path.join("client.pem")).unwrap());
    tls.key = Some(fs::read(path.join("client-key.pem")).unwrap());
    to("localhost", "x509", &tls).is_encrypted(true);
    tls.key = None;
    to("localhost", "x509", &tls).fails_with(&["go together", "holdfast.ssl.key"]);
}

#[test]
fn a_server_without_tls_is_used_plain_when_tls_is_only_preferred() {
    let server = Server::start(Options::mariadb().arg("--skip-ssl")).unwrap();
    server
        .sql(&format!(
            "CREATE USER 'plain'@'%' IDENTIFIED BY '{WORD}'; \
             GRANT SELECT, RELOAD, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'plain'@'%'"
        ))
        .unwrap();
    let mut tls = TlsOptions { mode: Preferred, ..TlsOptions::default() };
    connect("127.0.0.1", server.port(), ("plain", WORD), &tls).is_encrypted(false);
    tls.mode = Required;
    connect("127.0.0.1", server.port(), ("plain", WORD), &tls)
        .fails_with(&["does not offer TLS", "database.ssl.mode"]);
}

#[test]
fn a_certificate_whose_time_is_over_is_refused_where_certificates_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    certificates(path);
    let server = server(Options::mysql(), path, "old.pem");
    server.sql(&format!("CREATE USER 'any'@'%' IDENTIFIED BY '{WORD}'")).unwrap();
    server.sql("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'any'@'%'").unwrap();
    let ca = path.join("ca.pem");
    let to = |mode| connect("localhost", server.port(), ("any", WORD), &trusting(mode, &ca));
    for mode in [VerifyCa, VerifyIdentity] {
        to(mode).fails_with(&["no TLS with", "expired"]);
    }
    to(Required).is_encrypted(true);
}

#[test]
fn a_server_that_has_tls_1_2_alone_is_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    certificates(path);
    for options in [Options::mysql(), Options::mariadb()] {
        let server = server(options.arg("--tls-version=TLSv1.2"), path, "server.pem");
        server.sql(&format!("CREATE USER 'any'@'%' IDENTIFIED BY '{WORD}'")).unwrap();
        server.sql("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'any'@'%'").unwrap();
        let tls = trusting(VerifyIdentity, &path.join("ca.pem"));
        let tried = connect("localhost", server.port(), ("any", WORD), &tls);
        tried.is_encrypted(true);
        assert_eq!(tried.dump.unwrap(), Some("TLSv1_2"), "{}", server.version());
    }
}

#[test]
fn accounts_of_mariadbs_own_plugins_log_in_on_both_connections() {
    let server = shared(&Options::mariadb_11()).unwrap();
    for plugin in ["ed25519", "parsec"] {
        server
            .sql(&format!(
                "INSTALL PLUGIN IF NOT EXISTS {plugin} SONAME 'auth_{plugin}'; \
                 CREATE OR REPLACE USER '{plugin}'@'%' IDENTIFIED VIA {plugin} USING PASSWORD('{WORD}'); \
                 GRANT SELECT, RELOAD, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO '{plugin}'@'%'"
            ))
            .unwrap();
        let to = |password, mode| {
            let tls = TlsOptions { mode, ..TlsOptions::default() };
            connect(server.host(), server.port(), (plugin, password), &tls)
        };
        to(WORD, Disabled).is_encrypted(false);
        to(WORD, Required).is_encrypted(true);
        to("another", Disabled).fails_with(&[&format!("user '{plugin}'")]);
        server.sql(&format!("DROP USER '{plugin}'@'%'")).unwrap();
    }
}

#[test]
fn a_store_in_a_table_is_reached_as_its_url_says() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    certificates(path);
    let server = server(Options::mysql().arg("--require-secure-transport=ON"), path, "server.pem");
    server
        .sql(&format!(
            "CREATE DATABASE stores; CREATE USER 'store'@'%' IDENTIFIED BY '{WORD}'; \
             GRANT ALL ON stores.* TO 'store'@'%'"
        ))
        .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = |mode: &str, ca: &str| {
        let url = format!("jdbc:mysql://localhost:{}/stores?sslMode={mode}", server.port());
        let password = Secret::new(WORD);
        let place = TableLocation::from_jdbc(&url, Some("store"), Some(&password), "t", None);
        let mut place = place.unwrap();
        place.tls.ca = Some(fs::read(path.join(ca)).unwrap());
        place.max_attempts = 1;
        place.retry_delay = Duration::ZERO;
        let store = TableOffsetStore::new(place);
        let key = OffsetKey { engine: "name".into(), server: "prefix".into() };
        let loaded = runtime.block_on(store.load(&key));
        loaded.map_err(|error| {
            let error: &dyn std::error::Error = &error;
            let chain = std::iter::successors(Some(error), |error| error.source());
            chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
        })
    };
    for mode in ["PREFERRED", "REQUIRED", "trust", "VERIFY_CA", "VERIFY_IDENTITY"] {
        assert_eq!(open(mode, "ca.pem"), Ok(None), "{mode}");
    }
    assert_eq!(open("REQUIRED", "other.pem"), Ok(None));
    for mode in ["VERIFY_CA", "verify-full"] {
        let refused = open(mode, "other.pem").unwrap_err();
        assert!(refused.contains("holdfast.ssl.ca"), "{refused}");
    }
    let refused = open("DISABLED", "ca.pem").unwrap_err();
    assert!(refused.contains("secure"), "{refused}");
}
