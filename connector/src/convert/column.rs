//! The converter of one column.

use holdfast_binlog::Value;
use holdfast_binlog::value::Compressed;
use holdfast_history::schema::{Column, ColumnType};

use super::datum::{Datum, Logical};
use super::error::{ConvertError, ConvertFailure, Warning};
use super::options::ConversionOptions;
use super::plan::Plan;
use super::schema::FieldSchema;
use super::{Origin, default};

/// Bytes that a compressed value may have in the end: what a packet of the server can hold.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// Converts the values of one column at one schema version.
#[derive(Debug, Clone)]
pub struct ColumnConverter {
    index: usize,
    name: String,
    column_type: ColumnType,
    optional: bool,
    plan: Plan,
    /// The column's default, converted.
    default: Option<Rendered>,
    /// What stands for NULL in a column that has no NULL: the default, else the type's own.
    fallback: Rendered,
    /// What NULL is printed as.
    null_json: Vec<u8>,
    schema: FieldSchema,
}

impl ColumnConverter {
    /// Plans a column. `index` is its zero-based place in the table.
    #[must_use]
    pub fn new(
        index: usize,
        column: &Column,
        options: &ConversionOptions,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let plan = Plan::new(column, options, warnings);
        let default = default::convert(&plan, column).unwrap_or_else(|_| {
            let (column, type_name) = (column.name.clone(), column.type_name.clone());
            warnings.push(Warning::UnusableDefault { column, type_name });
            None
        });
        let fallback = default.clone().unwrap_or_else(|| plan.fallback());
        let null_json = match &default {
            _ if !column.optional => fallback.json.clone(),
            Some(default) if options.replace_null_with_default => default.json.clone(),
            _ => b"null".to_vec(),
        };
        let schema = FieldSchema::new(
            &plan,
            column,
            options,
            default.as_ref().map(|default| default.json.clone()),
        );
        Self {
            index,
            name: column.name.clone(),
            column_type: column.column_type(),
            optional: column.optional,
            plan,
            default,
            fallback,
            null_json,
            schema,
        }
    }

    /// Index of the column in its table, zero-based.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Name of the column.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the column has NULLs.
    #[must_use]
    pub fn optional(&self) -> bool {
        self.optional
    }

    /// The Connect schema of the column's values.
    #[must_use]
    pub fn schema(&self) -> &FieldSchema {
        &self.schema
    }

    /// The column's default, converted.
    #[must_use]
    pub fn default(&self) -> Option<&Datum<'static>> {
        self.default.as_ref().map(|default| &default.datum)
    }

    /// Converts a value. NULL, and a zero date, is [`Datum::Null`] in a column that has NULLs, else the default, else
    /// what the type has in its place.
    ///
    /// # Errors
    ///
    /// [`ConvertError`] where the value does not fit the column or what the modes make of it.
    pub fn convert<'v>(
        &'v self,
        value: &Value<'v>,
        origin: Origin,
    ) -> Result<Datum<'v>, ConvertError> {
        if let Value::Compressed(compressed) = value {
            let plain = self.decompressed(*compressed)?;
            let datum = match self.plan.apply(&Value::Bytes(&plain), origin) {
                Ok(Some(logical)) => logical.into_datum().map(Datum::into_owned),
                Ok(None) => Ok(Datum::Null),
                Err(failure) => Err(failure),
            };
            return datum.map_err(|failure| self.error(failure));
        }
        match self.plan.apply(value, origin) {
            Ok(Some(logical)) => logical.into_datum().map_err(|failure| self.error(failure)),
            Ok(None) if self.optional => Ok(Datum::Null),
            Ok(None) => Ok(self.fallback.datum.clone()),
            Err(failure) => Err(self.error(failure)),
        }
    }

    /// Appends a value as JSON. A NULL is printed as the column's default, if it has one and the options say so.
    ///
    /// # Errors
    ///
    /// As [`Self::convert`]. Then `out` is as it was.
    #[inline]
    pub fn write_json(
        &self,
        value: &Value<'_>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        if let Value::Compressed(compressed) = value {
            let plain = self.decompressed(*compressed)?;
            return self.write_json(&Value::Bytes(&plain), origin, out);
        }
        if self.plan.write_common(value, origin, out) {
            return Ok(());
        }
        let start = out.len();
        let written = match self.plan.apply(value, origin) {
            Ok(Some(logical)) => logical.write_json(out),
            Ok(None) => {
                out.extend_from_slice(&self.null_json);
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        written.map_err(|failure| {
            out.truncate(start);
            self.error(failure)
        })
    }

    #[cold]
    fn decompressed(&self, compressed: Compressed<'_>) -> Result<Vec<u8>, ConvertError> {
        let mut plain = Vec::new();
        match compressed.decompress(MAX_VALUE_BYTES, &mut plain) {
            Ok(()) => Ok(plain),
            Err(_) => Err(self.error(ConvertFailure::Malformed)),
        }
    }

    /// What stands for a value that did not convert: the default, else null if the column has NULLs.
    pub(super) fn unset_json(&self) -> Option<&[u8]> {
        if self.optional {
            Some(&self.null_json)
        } else {
            self.default.as_ref().map(|default| default.json.as_slice())
        }
    }

    #[cold]
    fn error(&self, failure: ConvertFailure) -> ConvertError {
        ConvertError::new(self.index, &self.name, self.column_type, self.plan.becomes(), failure)
    }
}

/// A value in both of its forms, made while planning.
#[derive(Debug, Clone)]
pub(super) struct Rendered {
    pub(super) datum: Datum<'static>,
    pub(super) json: Vec<u8>,
}

impl Rendered {
    pub(super) fn of(value: Logical<'_>) -> Result<Self, ConvertFailure> {
        let mut json = Vec::new();
        value.write_json(&mut json)?;
        Ok(Self { datum: value.into_datum()?.into_owned(), json })
    }
}
