//! How values are converted: the modes of the configuration, checked.

/// `decimal.handling.mode`: what a DECIMAL becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DecimalMode {
    /// `precise`: the unscaled number in two's complement, with the column's scale.
    #[default]
    Precise,
    /// `string`: plain decimal text at the column's scale.
    String,
    /// `double`: the nearest 64-bit float.
    Double,
}

/// `bigint.unsigned.handling.mode`: what a BIGINT UNSIGNED becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BigintUnsignedMode {
    /// `long`: a signed 64-bit number; values above 2^63 - 1 wrap to negative ones, as in Debezium.
    #[default]
    Long,
    /// `precise`: a decimal of scale 0.
    Precise,
}

/// `binary.handling.mode`: what BINARY, VARBINARY and the BLOB family become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BinaryMode {
    /// `bytes`: bytes, in JSON as standard base64 with padding.
    #[default]
    Bytes,
    /// `base64`: text, standard base64 with padding.
    Base64,
    /// `base64-url-safe`: text, base64 with `-` and `_`, with padding.
    Base64UrlSafe,
    /// `hex`: text, lower-case hexadecimal digits.
    Hex,
}

/// `time.precision.mode`: what DATE, TIME and DATETIME become. YEAR and TIMESTAMP are the same in all modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimePrecisionMode {
    /// `adaptive_time_microseconds`: days, microseconds for TIME, milliseconds for DATETIME(0-3), else microseconds.
    #[default]
    AdaptiveTimeMicroseconds,
    /// `connect`: days, milliseconds for TIME and DATETIME.
    Connect,
    /// `isostring`: ISO 8601 text.
    IsoString,
    /// `microseconds`: days, microseconds for TIME and DATETIME.
    Microseconds,
    /// `nanoseconds`: days, nanoseconds for TIME and DATETIME.
    Nanoseconds,
}

/// What happens when something cannot be converted or processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// The error is returned.
    Fail,
    /// A warning is logged and processing goes on.
    Warn,
    /// Processing goes on silently.
    Skip,
}

/// `holdfast.uniform.types`: whether a column has the same values in a snapshot and while streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum UniformTypes {
    /// As in Debezium: each has its own spelling of some types.
    #[default]
    Off,
    /// The types that MySQL itself names, whole floats, and its layout of JSON.
    MySql,
    /// The same for MariaDB, where JSON is text.
    MariaDb,
}

/// What a JSON converter is told (`key.converter.*`, `value.converter.*`, `header.converter.*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonForm {
    /// `replace.null.with.default`: a NULL is printed as the column's default.
    pub replace_null_with_default: bool,
    /// `decimal.format=NUMERIC`: precise decimals are numbers, not the bytes of their digits in base64.
    pub numeric_decimals: bool,
}

impl Default for JsonForm {
    fn default() -> Self {
        Self { replace_null_with_default: true, numeric_decimals: false }
    }
}

/// All that decides how values are converted. [`Default`] is Debezium's default configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionOptions {
    /// `decimal.handling.mode`.
    pub decimal: DecimalMode,
    /// `bigint.unsigned.handling.mode`.
    pub bigint_unsigned: BigintUnsignedMode,
    /// `binary.handling.mode`.
    pub binary: BinaryMode,
    /// `time.precision.mode`.
    pub time_precision: TimePrecisionMode,
    /// `enable.time.adjuster`: two-digit years of DATE and DATETIME are read as 1970 to 2069. YEAR never does: the server has
    /// done it.
    pub time_adjuster: bool,
    /// Whether TINYINT has the semantic type `int8` instead of `int16` (Debezium 3.7). JSON values are the same.
    pub tinyint_int8: bool,
    /// `event.converting.failure.handling.mode`: a value that its type cannot hold is an error, or is left out.
    pub converting_failure: FailureMode,
    /// `event.processing.failure.handling.mode`, for dates that do not exist: an error, or 1970-01-01 as in Debezium.
    pub processing_failure: FailureMode,
    /// How values are printed.
    pub value_json: JsonForm,
    /// How keys are printed.
    pub key_json: JsonForm,
    /// How the keys in headers are printed.
    pub header_json: JsonForm,
    /// `holdfast.uniform.types`.
    pub uniform: UniformTypes,
}

impl Default for ConversionOptions {
    fn default() -> Self {
        Self {
            decimal: DecimalMode::Precise,
            bigint_unsigned: BigintUnsignedMode::Long,
            binary: BinaryMode::Bytes,
            time_precision: TimePrecisionMode::AdaptiveTimeMicroseconds,
            time_adjuster: true,
            tinyint_int8: false,
            converting_failure: FailureMode::Warn,
            processing_failure: FailureMode::Fail,
            value_json: JsonForm::default(),
            key_json: JsonForm::default(),
            header_json: JsonForm::default(),
            uniform: UniformTypes::Off,
        }
    }
}
