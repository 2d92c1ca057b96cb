//! The settings that are one of a few names.

use std::fmt;
use std::str::FromStr;

use crate::convert::{BigintUnsignedMode, BinaryMode, DecimalMode, FailureMode, TimePrecisionMode};
use crate::topic::NameAdjustment;

/// A text that is none of the names of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be one of {0}")]
pub struct UnknownName(&'static str);

/// Defines an enum whose variants have names in properties files.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $first:literal $(| $other:literal)*, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$variant_meta])* $variant, )+ }

        impl $name {
            /// The name in properties files.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $first, )+ }
            }
        }

        /// In any case, blanks around it ignored.
        impl FromStr for $name {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text.trim().to_ascii_lowercase().as_str() {
                    $( $first $(| $other)* => Ok(Self::$variant), )+
                    _ => Err(UnknownName(concat!($( $first, " ", )+))),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

named! {
    /// `database.ssl.mode`, with the names of both flavors.
    pub enum SslMode {
        /// No TLS.
        Disabled = "disabled" | "disable",
        /// TLS where the server has it, without checking its certificate.
        Preferred = "preferred",
        /// TLS, without checking the certificate (MariaDB: `trust`).
        Required = "required" | "trust",
        /// TLS, and the certificate comes from a trusted authority.
        VerifyCa = "verify_ca" | "verify-ca",
        /// The same, and it names the host (MariaDB: `verify-full`).
        VerifyIdentity = "verify_identity" | "verify-full",
    }
}

named! {
    /// `snapshot.locking.mode`.
    pub enum LockingMode {
        /// Global read lock until positions and definitions are read.
        Minimal = "minimal",
        /// LOCK TABLES FOR BACKUP instead.
        MinimalPercona = "minimal_percona",
        /// The same, never falling back to table locks.
        MinimalPerconaNoTableLocks = "minimal_percona_no_table_locks",
        /// Global read lock until all rows are read.
        Extended = "extended",
        /// No lock.
        None = "none",
    }
}

named! {
    /// `snapshot.tables.order.by.row.count`.
    pub enum TableOrder {
        /// The order of the include list, then of names.
        Disabled = "disabled",
        /// Small tables first.
        Ascending = "ascending",
        /// Large tables first.
        Descending = "descending",
    }
}

named! {
    /// `guardrail.collections.limit.action`.
    pub enum GuardrailAction {
        /// Go on with a warning.
        Warn = "warn",
        /// Stop at start.
        Fail = "fail",
    }
}

/// Names of enums that are defined where they are used.
macro_rules! parse {
    ($(#[$meta:meta])* $function:ident -> $name:ident { $( $text:literal => $variant:ident, )+ }) => {
        $(#[$meta])*
        pub(super) fn $function(text: &str) -> Option<$name> {
            match text.trim().to_ascii_lowercase().as_str() {
                $( $text => Some($name::$variant), )+
                _ => None,
            }
        }
    };
}

parse! {
    /// `decimal.handling.mode`.
    decimal -> DecimalMode { "precise" => Precise, "string" => String, "double" => Double, }
}

parse! {
    /// `bigint.unsigned.handling.mode`.
    bigint_unsigned -> BigintUnsignedMode { "long" => Long, "precise" => Precise, }
}

parse! {
    /// `binary.handling.mode`.
    binary -> BinaryMode {
        "bytes" => Bytes, "base64" => Base64, "base64-url-safe" => Base64UrlSafe, "hex" => Hex,
    }
}

parse! {
    /// `time.precision.mode`.
    time_precision -> TimePrecisionMode {
        "adaptive_time_microseconds" => AdaptiveTimeMicroseconds,
        "connect" => Connect,
        "isostring" => IsoString,
        "microseconds" => Microseconds,
        "nanoseconds" => Nanoseconds,
    }
}

parse! {
    /// The properties named `….failure.handling.mode`, and `inconsistent.schema.handling.mode`.
    failure -> FailureMode { "fail" => Fail, "warn" => Warn, "skip" => Skip, "ignore" => Skip, }
}

parse! {
    /// `schema.name.adjustment.mode` and `field.name.adjustment.mode`.
    adjustment -> NameAdjustment { "none" => None, "avro" => Avro, "avro_unicode" => AvroUnicode, }
}

/// `snapshot.mode`: what is read at start, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotMode {
    /// Definitions and rows when there is no offset; then stream.
    Initial,
    /// The same, but end after the rows.
    InitialOnly,
    /// Definitions and rows at every start; then stream.
    Always,
    /// Definitions only when there is no offset; then stream.
    NoData,
    /// As `Initial`, and again when the offset is no longer on the server.
    WhenNeeded,
    /// Rebuild the schema history at the stored offset; then stream.
    Recovery,
    /// As the five `snapshot.mode.configuration.based.*` say.
    ConfigurationBased(ConfiguredSnapshot),
    /// As the [`SnapshotRules`] say that the engine is given.
    Custom,
}

impl SnapshotMode {
    /// Whether a snapshot reads rows.
    #[must_use]
    pub const fn reads_rows(self) -> bool {
        match self {
            Self::Initial | Self::InitialOnly | Self::Always | Self::WhenNeeded => true,
            Self::NoData | Self::Recovery | Self::Custom => false,
            Self::ConfigurationBased(configured) => configured.data,
        }
    }

    /// Whether the log is read after the snapshot.
    #[must_use]
    pub const fn streams(self) -> bool {
        match self {
            Self::InitialOnly => false,
            Self::Initial
            | Self::Always
            | Self::NoData
            | Self::WhenNeeded
            | Self::Recovery
            | Self::Custom => true,
            Self::ConfigurationBased(configured) => configured.stream,
        }
    }

    /// Whether a new snapshot is taken when the stored position is gone.
    #[must_use]
    pub const fn reads_rows_anew(self) -> bool {
        match self {
            Self::WhenNeeded => true,
            Self::ConfigurationBased(configured) => configured.on_data_error,
            Self::Initial
            | Self::InitialOnly
            | Self::Always
            | Self::NoData
            | Self::Recovery
            | Self::Custom => false,
        }
    }
}

/// `snapshot.mode.configuration.based.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ConfiguredSnapshot {
    /// `….snapshot.data`: read rows.
    pub data: bool,
    /// `….snapshot.schema`: read definitions.
    pub schema: bool,
    /// `….start.stream`: stream afterwards.
    pub stream: bool,
    /// `….snapshot.on.schema.error`: read definitions when the history is lost.
    pub on_schema_error: bool,
    /// `….snapshot.on.data.error`: read rows when the position is gone.
    pub on_data_error: bool,
}

/// Where definitions of tables come from (`holdfast.schema.source`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SchemaSource {
    /// The schema history alone; a row that does not fit is an error.
    #[default]
    History,
    /// The schema history where it says what the log says, else the log's own metadata, which must be `FULL`.
    Metadata,
}

/// What a start finds, for [`SnapshotRules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StartState {
    /// Whether an offset is stored.
    pub has_offset: bool,
    /// Whether that offset is of a snapshot that was not complete.
    pub is_interrupted: bool,
}

/// `snapshot.mode=custom`: what is read at a start, decided by who embeds the engine. Asked once, at the start.
///
/// A closure is one:
///
/// ```
/// use holdfast_connector::config::{ConfiguredSnapshot, StartState};
///
/// let rules = |found: StartState| ConfiguredSnapshot {
///     data: !found.has_offset || found.is_interrupted,
///     schema: true,
///     stream: true,
///     ..ConfiguredSnapshot::default()
/// };
/// # let _ = rules;
/// ```
pub trait SnapshotRules: Send + Sync {
    /// What to read. Without an offset it must be definitions or rows; an offset stays where definitions alone are read.
    fn decide(&self, found: StartState) -> ConfiguredSnapshot;
}

impl<F: Fn(StartState) -> ConfiguredSnapshot + Send + Sync> SnapshotRules for F {
    fn decide(&self, found: StartState) -> ConfiguredSnapshot {
        self(found)
    }
}

/// What a row that does not fit its definition, or a table without one, leads to (`holdfast.history.on.mismatch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnMismatch {
    /// The engine stops with an error.
    #[default]
    Fail,
    /// The definition is rebuilt at the frontier where every guard passes, once per place; else the engine stops.
    Refresh,
}
