//! The one error of this crate: a text for the person who reads the test's output.

use std::fmt;

/// Why a test or a tool of this crate cannot go on.
///
/// `Debug` prints the same text as `Display`, so that `unwrap` in a test and a `main` that returns it stay readable.
pub struct Failure(String);

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Says what was being done when something failed.
pub trait Context<T> {
    /// Puts `what` in front of the failure's text.
    ///
    /// # Errors
    ///
    /// The failure of `self`, with the text in front.
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure(format!("{}: {error}", what())))
    }
}
