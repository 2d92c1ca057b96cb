//! The URL of a place on object storage or in a file system.
//!
//! ```text
//! s3://bucket/folder?endpoint=http://127.0.0.1:9000&region=us-east-1&virtual-host-style=false
//! file:///var/lib/holdfast/history
//! ```
//!
//! A URL has no credentials, so that it can be printed. They come from [`ObjectUrl::with_credentials`], or from where the
//! tools of AWS have them: `AWS_ACCESS_KEY_ID` and its like, `~/.aws`, the role of the machine.

use std::time::Duration;
use std::{fmt, io};

use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::services::{Fs, S3};
use opendal::{Operator, OperatorUri};

/// How long one request may take before it counts as lost.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request is repeated that failed for a reason that may pass.
const RETRIES: usize = 4;

/// A place on object storage or in a file system, and how to get there.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectUrl {
    service: Service,
    /// Without a slash at either end; empty for the top.
    path: String,
}

#[derive(Clone, PartialEq, Eq)]
enum Service {
    File,
    S3(Box<Bucket>),
}

#[derive(Clone, PartialEq, Eq)]
struct Bucket {
    name: String,
    endpoint: Option<String>,
    region: Option<String>,
    virtual_host_style: bool,
    credentials: Option<S3Credentials>,
}

/// An access key of S3. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Credentials {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Token of a temporary session.
    pub session_token: Option<String>,
}

impl fmt::Debug for S3Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("S3Credentials(***)")
    }
}

/// Why a text is no URL of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It is not a URL at all.
    #[error("it is not a URL, as s3://bucket/folder or file:///folder is")]
    NotAUrl,
    /// There is no such service here.
    #[error("there is no service '{scheme}'; there are s3 and file")]
    Scheme {
        /// What stands before `://`.
        scheme: String,
    },
    /// There is no bucket.
    #[error("it names no bucket: s3://bucket/folder")]
    NoBucket,
    /// A file URL with a host.
    #[error("a file is on this machine: file:///folder, with three slashes")]
    FileHost,
    /// It names the top of a file system.
    #[error("it names no folder or file")]
    NoPath,
    /// It has a name or password in front of the host, or a key among its options.
    #[error("credentials do not belong into a URL, which is printed")]
    Credentials,
    /// There is no such option.
    #[error("there is no option '{option}'; there are endpoint, region and virtual-host-style")]
    Option {
        /// Its name.
        option: String,
    },
    /// It is neither `true` nor `false`.
    #[error("virtual-host-style is true or false")]
    NotABoolean,
}

impl ObjectUrl {
    /// Parses `s3://…` or `file:///…`.
    ///
    /// # Errors
    ///
    /// [`UrlError`], which does not repeat the URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        if !Self::is_url(text) {
            return Err(UrlError::NotAUrl);
        }
        let uri = OperatorUri::new(text, []).map_err(|_| UrlError::NotAUrl)?;
        if uri.username().is_some() || uri.password().is_some() {
            return Err(UrlError::Credentials);
        }
        let path = uri.root().unwrap_or_default().to_owned();
        let mut options: Vec<(&String, &String)> = uri.options().iter().collect();
        options.sort();
        let service = match uri.scheme() {
            "file" => {
                if uri.name().is_some() {
                    return Err(UrlError::FileHost);
                }
                if path.is_empty() {
                    return Err(UrlError::NoPath);
                }
                if let Some((option, _)) = options.first() {
                    return Err(UrlError::Option { option: (*option).clone() });
                }
                Service::File
            }
            "s3" => {
                let name = uri.name().ok_or(UrlError::NoBucket)?.to_owned();
                let mut bucket = Bucket {
                    name,
                    endpoint: None,
                    region: None,
                    virtual_host_style: false,
                    credentials: None,
                };
                for (option, value) in options {
                    match option.as_str() {
                        "endpoint" if value.contains('@') => return Err(UrlError::Credentials),
                        "endpoint" => bucket.endpoint = Some(value.clone()),
                        "region" => bucket.region = Some(value.clone()),
                        "virtual-host-style" => {
                            bucket.virtual_host_style =
                                value.parse().map_err(|_| UrlError::NotABoolean)?;
                        }
                        key if key.contains("key") || key.contains("token") => {
                            return Err(UrlError::Credentials);
                        }
                        _ => return Err(UrlError::Option { option: option.clone() }),
                    }
                }
                Service::S3(Box::new(bucket))
            }
            scheme => return Err(UrlError::Scheme { scheme: scheme.to_owned() }),
        };
        Ok(Self { service, path })
    }

    /// Whether a text is meant as a URL, not as a path.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        text.contains("://")
    }

    /// With an access key of its own, where the service has such.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Option<S3Credentials>) -> Self {
        if let Service::S3(bucket) = &mut self.service {
            bucket.credentials = credentials;
        }
        self
    }

    /// Its path below the root of [`Self::operator`]: the bucket, or `/`. No slash at either end.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is on a file system.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.service == Service::File
    }

    /// A handle of the bucket or the file system, which gives a request ten seconds and repeats one that failed for a
    /// reason that may pass. No request is made.
    ///
    /// # Errors
    ///
    /// When a setting is missing, like the region of a bucket.
    pub fn operator(&self) -> io::Result<Operator> {
        let operator = match &self.service {
            Service::File => Operator::new(Fs::default().root("/")).map_err(super::io_error)?,
            Service::S3(bucket) => {
                install_crypto_provider();
                // Without its default features OpenDAL has no client for HTTP. The first one that is installed stays.
                opendal_http_transport_reqwest::install_default();
                let mut builder = S3::default().bucket(&bucket.name);
                if let Some(endpoint) = &bucket.endpoint {
                    builder = builder.endpoint(endpoint);
                }
                if let Some(region) = &bucket.region {
                    builder = builder.region(region);
                }
                if bucket.virtual_host_style {
                    builder = builder.enable_virtual_host_style();
                }
                if let Some(credentials) = &bucket.credentials {
                    builder = builder
                        .access_key_id(&credentials.access_key_id)
                        .secret_access_key(&credentials.secret_access_key);
                    if let Some(token) = &credentials.session_token {
                        builder = builder.session_token(token);
                    }
                }
                Operator::new(builder).map_err(super::io_error)?
            }
        };
        Ok(patient(operator))
    }
}

/// The operator with time-outs and retries.
fn patient(operator: Operator) -> Operator {
    let timeout =
        TimeoutLayer::new().with_timeout(REQUEST_TIMEOUT).with_io_timeout(REQUEST_TIMEOUT);
    let retry = RetryLayer::new()
        .with_jitter()
        .with_max_times(RETRIES)
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5));
    operator.layer(timeout).layer(retry)
}

/// The HTTP client is built without a TLS library of its own, and takes the process's. A host may have chosen one.
fn install_crypto_provider() {
    use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
    if CryptoProvider::get_default().is_none() {
        // An error says that another thread was faster, which is as good.
        let _ = ring::default_provider().install_default();
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.service {
            Service::File => write!(f, "file:///{}", self.path),
            Service::S3(bucket) => write!(f, "s3://{}/{}", bucket.name, self.path),
        }
    }
}

impl fmt::Debug for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_service_and_a_path() {
        let cases = [
            ("file:///var/lib/history", "file:///var/lib/history", "var/lib/history"),
            ("s3://b", "s3://b/", ""),
            (
                "s3://b/a/source-16/?endpoint=http://127.0.0.1:1&region=r",
                "s3://b/a/source-16",
                "a/source-16",
            ),
            ("s3://b/a%20b?virtual-host-style=true", "s3://b/a b", "a b"),
        ];
        for (text, shown, path) in cases {
            let url = ObjectUrl::parse(text).unwrap();
            assert_eq!((url.to_string().as_str(), url.path()), (shown, path), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_of_a_store_is_refused_without_repeating_it() {
        let cases = [
            ("/var/lib", UrlError::NotAUrl),
            ("s3://", UrlError::NotAUrl),
            ("gs://b/x", UrlError::Scheme { scheme: "gs".to_owned() }),
            ("file://host/x", UrlError::FileHost),
            ("file:///", UrlError::NoPath),
            ("file:///x?region=r", UrlError::Option { option: "region".to_owned() }),
            ("s3://key:secret@b/x", UrlError::Credentials),
            ("s3://b/x?secret_access_key=secret", UrlError::Credentials),
            ("s3://b/x?endpoint=http://key:secret@h", UrlError::Credentials),
            ("s3://b/x?regoin=r", UrlError::Option { option: "regoin".to_owned() }),
            ("s3://b/x?virtual-host-style=yes", UrlError::NotABoolean),
        ];
        for (text, expected) in cases {
            let error = ObjectUrl::parse(text).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            if text != "s3://" {
                assert_eq!(error, expected, "{text}");
            }
        }
    }

    #[test]
    fn credentials_are_never_printed() {
        let credentials = S3Credentials {
            access_key_id: "hidden".to_owned(),
            secret_access_key: "hidden".to_owned(),
            session_token: Some("hidden".to_owned()),
        };
        let url = ObjectUrl::parse("s3://b/x?region=r")
            .unwrap()
            .with_credentials(Some(credentials.clone()));
        let operator = url.operator().unwrap();
        let text = format!("{url} {url:?} {credentials:?} {operator:?}");
        assert!(!text.contains("hidden"), "{text}");
    }

    #[test]
    fn a_second_bucket_finds_the_crypto_provider_of_the_first() {
        for _ in 0..2 {
            ObjectUrl::parse("s3://b/x?region=r").unwrap().operator().unwrap();
        }
        assert!(tokio_rustls::rustls::crypto::CryptoProvider::get_default().is_some());
    }
}
