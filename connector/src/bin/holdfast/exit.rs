//! Exit codes: a contract with scripts.

use holdfast_binlog::client::ClientError;
use holdfast_connector::{Error, ErrorClass};

/// A check, a comparison or a guard said no.
pub(crate) const REFUSED: u8 = 1;
/// Usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// Data, DDL or history that can't be decoded.
pub(crate) const DATA: u8 = 3;
/// The position was purged, or the log is another one.
pub(crate) const POSITION: u8 = 4;
/// No connection, or something else that passes by itself.
pub(crate) const CONNECTION: u8 = 5;
/// A newer writer owns a store.
pub(crate) const FENCED: u8 = 6;
/// A store could not be read or written.
pub(crate) const STORAGE: u8 = 7;
/// A defect of this program.
pub(crate) const BUG: u8 = 70;

/// How a command ended badly.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match (&error, error.class()) {
            (Error::Refused(_), _) => REFUSED,
            // A refused login is a matter of the connection, whatever has to be changed.
            (_, ErrorClass::Transient) => CONNECTION,
            (Error::Snapshot(error), _) if is_refused(error) => CONNECTION,
            (Error::Dump(failure), _) if is_login(&failure.source) => CONNECTION,
            (_, ErrorClass::Config) => USAGE,
            (_, ErrorClass::Data) => DATA,
            (_, ErrorClass::Purged) => POSITION,
            (_, ErrorClass::Fenced) => FENCED,
            (_, ErrorClass::Storage) => STORAGE,
            (_, _) => BUG,
        };
        let mut message = error.chain();
        if let Error::History(holdfast_history::Error::Damaged { .. }) = &error {
            message.push_str(
                "; restore the schema history, or rebuild it at the stored offset with `holdfast refresh --config FILE \
                 --set-aside-damaged`, which keeps the damaged one under another name",
            );
        }
        Self::new(code, message)
    }
}

/// Whether the replication connection failed before the server had let us in.
const fn is_login(error: &holdfast_binlog::Error) -> bool {
    matches!(
        error,
        holdfast_binlog::Error::Client(
            ClientError::AccessDenied { .. }
                | ClientError::UnsupportedAuth { .. }
                | ClientError::TlsRequired { .. }
                | ClientError::TlsNotOffered { .. }
                | ClientError::Tls { .. }
                | ClientError::TlsSetup { .. }
                | ClientError::PublicKey { .. }
        )
    )
}

/// Whether the server did not let the query connection in.
const fn is_refused(error: &holdfast_snapshot::Error) -> bool {
    matches!(
        error,
        holdfast_snapshot::Error::AccessDenied { .. }
            | holdfast_snapshot::Error::Tls(_)
            | holdfast_snapshot::Error::UnsupportedAuth { .. }
    )
}
