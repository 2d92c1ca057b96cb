//! Encrypted connections: each mode on both kinds of connection, with a server whose certificate is for `localhost`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use holdfast_binlog::client::{BinlogClient, ClientOptions, Password, TlsMode, TlsOptions};
use holdfast_snapshot::ServerOptions;
use holdfast_tests::server::{Options, Server};
use mysql_async::prelude::Queryable;

use TlsMode::{Disabled, Preferred, Required, VerifyCa, VerifyIdentity};

/// An authority, another one, and a server's certificate for the name `localhost`.
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
        chmod a+r *.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn server(options: Options, folder: &Path) -> Server {
    let file = |name: &str| folder.join(name).display().to_string();
    let options = options
        .arg(format!("--ssl-ca={}", file("ca.pem")))
        .arg(format!("--ssl-cert={}", file("server.pem")))
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
    let server = server(Options::mysql(), path);
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
