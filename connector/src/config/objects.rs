//! The stores on object storage, named by a URL.

use holdfast_history::store::{ObjectUrl, S3Credentials};

use super::{Checked, StoreKind};

/// Where the schema history is.
pub(super) const HISTORY: &str = "holdfast.history.url";
/// Where the offsets are.
pub(super) const OFFSETS: &str = "holdfast.offsets.url";

const KEY_ID: &str = "holdfast.s3.access.key.id";
const SECRET: &str = "holdfast.s3.secret.access.key";
const TOKEN: &str = "holdfast.s3.session.token";

impl Checked<'_> {
    /// The store of the URL under `name`, if there is one; `class` names a store in Debezium's way, and must be absent.
    pub(super) fn object_store(&mut self, name: &'static str, class: &str) -> Option<StoreKind> {
        let text = self.filled(name)?;
        if self.properties.get(class).is_some() {
            self.invalid(name, format!("{class} names another store; remove one of the two"));
        }
        Some(match ObjectUrl::parse(text) {
            Ok(url) if url.path().is_empty() => {
                self.invalid(name, "it names no folder or object in the bucket");
                StoreKind::Memory
            }
            Ok(url) => {
                let credentials = self.s3_credentials();
                StoreKind::Objects(Box::new(url.with_credentials(credentials)))
            }
            Err(error) => {
                self.invalid(name, error.to_string());
                StoreKind::Memory
            }
        })
    }

    fn s3_credentials(&mut self) -> Option<S3Credentials> {
        let (id, secret) = (self.filled(KEY_ID), self.filled(SECRET));
        let session_token = self.filled(TOKEN).map(str::to_owned);
        match (id, secret) {
            (Some(id), Some(secret)) => Some(S3Credentials {
                access_key_id: id.to_owned(),
                secret_access_key: secret.to_owned(),
                session_token,
            }),
            (Some(_), None) => self.lone(KEY_ID, SECRET),
            (None, Some(_)) => self.lone(SECRET, KEY_ID),
            (None, None) if session_token.is_some() => self.lone(TOKEN, KEY_ID),
            (None, None) => None,
        }
    }

    fn lone(&mut self, name: &str, other: &str) -> Option<S3Credentials> {
        if !self.errors.iter().any(|error| error.property() == name) {
            self.invalid(name, format!("it goes together with {other}"));
        }
        None
    }
}
