//! TLS: what is asked of the server, what of its certificate is checked, and the handshake inside the login.
//!
//! The server's greeting says whether it offers TLS. The client then sends the head of its login (`SSLRequest`), both
//! shake hands, and the login follows encrypted (MySQL internals, `Protocol::SSLRequest`).

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::error::{ClientError, Endpoint};

/// Encrypted bytes that are read at once: TLS itself asks for 4 KiB at a time, each a call of the system.
const ENCRYPTED: usize = 64 << 10;

/// A TLS connection.
pub(super) type TlsTransport = TlsStream<BufReader<TcpStream>>;

/// Whether a connection is encrypted, and what is checked of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TlsMode {
    /// No TLS.
    #[default]
    Disabled,
    /// TLS where the server offers it, plain where it does not; nothing is checked. A handshake that fails is an error.
    Preferred,
    /// TLS; nothing is checked, so that somebody in the middle is not noticed.
    Required,
    /// TLS, and the certificate is signed by a trusted authority.
    VerifyCa,
    /// The same, and it is for the host that we connect to.
    VerifyIdentity,
}

impl TlsMode {
    /// Whether the server has to prove who it is.
    #[must_use]
    pub const fn verifies(self) -> bool {
        matches!(self, Self::VerifyCa | Self::VerifyIdentity)
    }
}

/// How a connection is encrypted. The PEM texts are in memory; where they come from is the caller's matter.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Whether, and what is checked.
    pub mode: TlsMode,
    /// Certificates of the trusted authorities, PEM; `None` for those of the system.
    pub ca: Option<Vec<u8>>,
    /// Our certificate and those it is signed by, PEM; with `key` only.
    pub cert: Option<Vec<u8>>,
    /// The key of `cert`, PEM (PKCS#8, PKCS#1 or SEC1), not encrypted.
    pub key: Option<Vec<u8>>,
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("mode", &self.mode)
            .field("ca", &self.ca.is_some())
            .field("cert", &self.cert.is_some())
            .finish_non_exhaustive()
    }
}

impl TlsOptions {
    /// The certificates of the trusted authorities in DER form: those of `ca`, or those of the system. Empty in modes
    /// that check nothing.
    ///
    /// # Errors
    ///
    /// [`ClientError::TlsSetup`] when there are none, or one of `ca` is not a certificate.
    pub fn authorities(&self) -> Result<Vec<Vec<u8>>, ClientError> {
        if !self.mode.verifies() {
            return Ok(Vec::new());
        }
        let mut store = RootCertStore::empty();
        let mut usable = Vec::new();
        if let Some(pem) = &self.ca {
            for certificate in certificates(pem, "CA")? {
                store
                    .add(certificate.clone())
                    .map_err(|error| setup(format!("a CA certificate can't be used: {error}")))?;
                usable.push(certificate.to_vec());
            }
            return Ok(usable);
        }
        // Some systems have certificates that can't be used; they are left out, as everybody does.
        for certificate in rustls_native_certs::load_native_certs().certs {
            if store.add(certificate.clone()).is_ok() {
                usable.push(certificate.to_vec());
            }
        }
        if usable.is_empty() {
            return Err(setup("the system has no CA certificates; name a CA file".to_owned()));
        }
        Ok(usable)
    }

    /// Checks the PEM texts without connecting.
    ///
    /// # Errors
    ///
    /// [`ClientError::TlsSetup`].
    pub fn check(&self) -> Result<(), ClientError> {
        if self.mode != TlsMode::Disabled {
            self.config()?;
        }
        Ok(())
    }

    fn config(&self) -> Result<ClientConfig, ClientError> {
        let provider = Arc::new(ring::default_provider());
        let chain = if self.mode.verifies() {
            let mut store = RootCertStore::empty();
            for der in self.authorities()? {
                // They have been tried.
                let _ = store.add(CertificateDer::from(der));
            }
            let verifier =
                WebPkiServerVerifier::builder_with_provider(store.into(), Arc::clone(&provider));
            Some(verifier.build().map_err(|error| setup(error.to_string()))?)
        } else {
            None
        };
        let verifier = Verifier {
            chain,
            by_name: self.mode == TlsMode::VerifyIdentity,
            provider: Arc::clone(&provider),
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| setup(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
                    setup(format!("the client key is not a PEM key without a pass phrase: {error}"))
                })?;
                builder.with_client_auth_cert(certificates(cert, "client")?, key).map_err(|error| {
                    setup(format!("the client certificate can't be used: {error}"))
                })
            }
            (None, None) => Ok(builder.with_no_client_auth()),
            (_, _) => Err(setup("a client certificate and its key go together".to_owned())),
        }
    }

    /// Shakes hands on a connection whose server has been told to.
    pub(super) async fn shake_hands(
        &self,
        stream: TcpStream,
        endpoint: &Endpoint,
    ) -> Result<TlsTransport, ClientError> {
        let name = match ServerName::try_from(endpoint.host.clone()) {
            Ok(name) => name,
            // The name counts for `verify_identity` only.
            Err(_) if self.mode != TlsMode::VerifyIdentity => {
                ServerName::IpAddress(stream.peer_addr()?.ip().into())
            }
            Err(error) => return Err(setup(format!("the host name can't be verified: {error}"))),
        };
        let connector = TlsConnector::from(Arc::new(self.config()?));
        connector
            .connect(name, BufReader::with_capacity(ENCRYPTED, stream))
            .await
            .map_err(|error| ClientError::tls_told_apart(endpoint, error.into()))
    }
}

impl ClientError {
    /// The failure of TLS behind an error of a connection, if it is one. Trying again does not heal it.
    #[must_use]
    pub fn tls_failure(endpoint: &Endpoint, error: &io::Error) -> Option<Self> {
        let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        Some(Self::Tls {
            endpoint: endpoint.clone().into(),
            reason: error.to_string(),
            fix: advice(error),
        })
    }

    pub(super) fn tls_told_apart(endpoint: &Endpoint, error: Self) -> Self {
        let failure =
            if let Self::Io(error) = &error { Self::tls_failure(endpoint, error) } else { None };
        failure.unwrap_or(error)
    }
}

/// A name that the server's certificate has, where it was refused for having another than the one asked for.
#[must_use]
pub fn name_presented(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
        presented,
        ..
    }) = error
    else {
        return None;
    };
    // `DnsName("db.example")`, as `rustls-webpki` writes names; other kinds can't be asked for.
    presented.iter().find_map(|name| {
        let name = name.strip_prefix("DnsName(\"")?.strip_suffix("\")")?.replace('*', "any");
        ServerName::try_from(name.as_str()).is_ok().then_some(name)
    })
}

/// What to do about an error of TLS.
fn advice(error: &rustls::Error) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "most kinds have no advice of their own")]
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer => {
                "give the certificate of the authority that signed the server's as CA (holdfast.ssl.ca)"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "connect by a name in the server's certificate, give the server one whose subjectAltName has this name, \
                 or use verify_ca"
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "give the server a certificate that is valid now, or set the clock"
            }
            _ => "give the server another certificate",
        },
        rustls::Error::AlertReceived(_) => {
            "see the server's log; it may want a client certificate (holdfast.ssl.cert, holdfast.ssl.key)"
        }
        _ => "the server has to offer TLS 1.2 or 1.3",
    }
}

fn certificates(pem: &[u8], whose: &str) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(setup(format!("the {whose} certificates are not PEM"))),
        Err(error) => Err(setup(format!("the {whose} certificates are not PEM: {error}"))),
    }
}

const fn setup(reason: String) -> ClientError {
    ClientError::TlsSetup { reason }
}

/// Checks what the mode says. That the server has the key of its certificate is checked in each.
#[derive(Debug)]
struct Verifier {
    /// Checks the chain and the name; `None` when neither counts.
    chain: Option<Arc<WebPkiServerVerifier>>,
    by_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // The chain is checked before the name.
        let checked =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match checked {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.by_name => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
