//! What is wrong with a configuration, all of it at once.

use std::fmt;

/// One thing that is wrong with one property.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The value does not do. The text is Debezium's where Debezium has one.
    Invalid {
        /// The property's full name.
        property: String,
        /// What is wrong with its value.
        message: String,
    },
    /// Nobody knows this property.
    Unknown {
        /// The property as it was written.
        property: String,
        /// The line of the file, one-based, where it came from a file.
        line: Option<usize>,
        /// What to write instead, when something is close.
        hint: Option<String>,
    },
    /// Debezium knows it and it would change what happens, but Holdfast cannot do it yet.
    Unsupported {
        /// The property's full name.
        property: String,
        /// What is missing, and what to do.
        message: String,
    },
}

impl ConfigError {
    /// The property that it is about.
    #[must_use]
    pub fn property(&self) -> &str {
        match self {
            Self::Invalid { property, .. }
            | Self::Unknown { property, .. }
            | Self::Unsupported { property, .. } => property,
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { property, message } => {
                write!(f, "The '{property}' value is invalid: {message}")
            }
            Self::Unknown { property, line, hint } => {
                write!(f, "unknown property '{property}'")?;
                if let Some(line) = line {
                    write!(f, " in line {line}")?;
                }
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            Self::Unsupported { property, message } => {
                write!(f, "'{property}' is not supported: {message}")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Everything that is wrong with a configuration: never empty. Missing properties come first, then
/// the others in the order of the file, then what is wrong between properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub(crate) Vec<ConfigError>);

impl ConfigErrors {
    /// Each error.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }

    /// The messages about one property, in order, without the leading "The … value is invalid".
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ConfigError> + 'a {
        self.0.iter().filter(move |error| error.property() == name)
    }
}

/// One error a line.
impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Something to say at start that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The property that it is about.
    pub property: String,
    /// What it is.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}
