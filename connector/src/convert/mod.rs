//! From physical values to what records carry: `(Value, &Column, modes)` to [`Datum`] or to JSON. No I/O.
//!
//! A [`TableConverter`] is planned once per table and schema version. It holds a [`ColumnConverter`] per column, which
//! knows what the column's type and the modes make of a value; a value is then decided and printed in one step, without
//! memory of its own for the common types.
//!
//! The reference is Debezium 3.6.3.Final. Where it gives different values for the same column in a snapshot and while
//! streaming, [`Origin`] tells which of the two is meant.

mod charset_tables;
mod column;
mod datum;
mod default;
mod digest;
mod enum_set;
mod error;
mod geometry;
mod json;
mod mapping;
mod numeric;
mod options;
mod plan;
mod schema;
mod table;
mod temporal;
mod text;
mod uniform;

#[cfg(test)]
pub(crate) mod tests;

pub use column::ColumnConverter;
pub use datum::{Datum, DecimalDatum};
pub(crate) use digest::{ALGORITHMS, Algorithm, Hash, HashedForm};
pub use error::{ConvertError, ConvertFailure, Warning};
pub(crate) use mapping::{ColumnCast, ColumnRule, ColumnSettings};
pub use options::{
    BigintUnsignedMode, BinaryMode, ConversionOptions, DecimalMode, FailureMode, JsonForm,
    TimePrecisionMode, UniformTypes,
};
pub use schema::{FieldSchema, FieldType};
pub use table::{ColumnSelection, FieldNaming, TableConverter};
pub(crate) use temporal::{Moment, parse_datetime};
pub(crate) use text::Charset;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A query. Text is in UTF-8, whatever the column's character set, except where that is `binary`; ENUM, SET, UUID
    /// and addresses are text. FLOAT has six digits, TIMESTAMP has as many fraction digits as it needs.
    Snapshot,
    /// A rows event. Text is in the column's character set. TIMESTAMP has all its fraction digits.
    Stream,
}
