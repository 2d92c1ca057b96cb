//! The converter of one column.

use holdfast_binlog::Value;
use holdfast_binlog::value::Compressed;
use holdfast_history::schema::{Column, ColumnType, DefaultValue};

use super::datum::{Datum, Logical};
use super::error::{ConvertError, ConvertFailure, Warning};
use super::mapping::{ColumnCast, ColumnSettings, Mapped, zero_date};
use super::options::{ConversionOptions, TimePrecisionMode};
use super::plan::Plan;
use super::schema::FieldSchema;
use super::uniform::canonical;
use super::{Origin, default};
use crate::format::json as token;
use std::borrow::Cow;

/// Bytes that a compressed value may have in the end: what a packet of the server can hold.
const MAX_VALUE_BYTES: usize = 1 << 30;

/// Converts the values of one column at one schema version.
#[derive(Debug, Clone)]
pub struct ColumnConverter {
    index: usize,
    plan: Plan,
    /// What NULL is printed as; none for `null`.
    null_json: Option<Box<[u8]>>,
    /// Apart, so that the columns of a wide table stay close together.
    details: Box<Details>,
}

/// What the printing of a value does not need.
#[derive(Debug, Clone)]
struct Details {
    name: String,
    /// Name of the field in records.
    field: String,
    column_type: ColumnType,
    optional: bool,
    /// The column's default, converted.
    default: Option<Rendered>,
    /// What NULL is in a record.
    null: Datum<'static>,
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
        Self::with_settings(index, column, options, &ColumnSettings::default(), warnings)
    }

    /// As [`Self::new`], with what is set for the column beside its type and the modes.
    pub(crate) fn with_settings(
        index: usize,
        column: &Column,
        options: &ConversionOptions,
        settings: &ColumnSettings,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let Settled { plan, column, options, zero } =
            Settled::new(column, options, settings, warnings);
        let (column, options) = (&*column, &*options);
        let mut default = default::convert(&plan, column).unwrap_or_else(|_| {
            let (column, type_name) = (column.name.clone(), column.type_name.clone());
            warnings.push(Warning::UnusableDefault { column, type_name });
            None
        });
        let mut fallback = default.clone().unwrap_or_else(|| plan.fallback());
        if let Plan::Mapped(mapped) = &plan {
            fallback = fallback.cast(mapped);
            default = default.map(|default| default.cast(mapped));
        }
        if let Some(zero) = &zero {
            fallback = zero.clone();
            default = default.map(|_| zero.clone());
        }
        let null = match &zero {
            None if column.optional => Datum::Null,
            Some(_) | None => fallback.datum.clone(),
        };
        let null_json = match &default {
            _ if !column.optional || zero.is_some() => Some(&fallback.json),
            Some(default) if options.value_json.replace_null_with_default => Some(&default.json),
            _ => None,
        };
        let null_json = null_json.map(|json| json.as_slice().into());
        let schema = FieldSchema::new(
            &plan,
            column,
            options,
            settings.rule.as_ref(),
            default.as_ref().map(|default| default.json.clone()),
        );
        let details = Details {
            name: column.name.clone(),
            field: column.name.clone(),
            column_type: column.column_type(),
            optional: column.optional,
            default,
            null,
            schema,
        };
        Self { index, plan, null_json, details: Box::new(details) }
    }

    /// The same, for a field of another name.
    pub(super) fn with_field(mut self, field: String) -> Self {
        self.details.field = field;
        self
    }

    /// Appends the Connect schema of the field.
    pub(super) fn write_field(&self, out: &mut Vec<u8>) {
        self.details.schema.write(&self.details.field, out);
    }

    /// Index of the column in its table, zero-based.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Name of the column.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.details.name
    }

    /// Whether the column has NULLs.
    #[must_use]
    pub fn optional(&self) -> bool {
        self.details.optional
    }

    /// The Connect schema of the column's values.
    #[must_use]
    pub fn schema(&self) -> &FieldSchema {
        &self.details.schema
    }

    /// The column's default, converted.
    #[must_use]
    pub fn default(&self) -> Option<&Datum<'static>> {
        self.details.default.as_ref().map(|default| &default.datum)
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
            let datum = self.datum(&Value::Bytes(&plain), origin)?;
            return Ok(datum.map_or_else(|| self.details.null.clone(), Datum::into_owned));
        }
        Ok(self.datum(value, origin)?.unwrap_or_else(|| self.details.null.clone()))
    }

    /// Converts a value; none for NULL and what counts as NULL.
    fn datum<'v>(
        &'v self,
        value: &Value<'v>,
        origin: Origin,
    ) -> Result<Option<Datum<'v>>, ConvertError> {
        let datum = if let Plan::Mapped(mapped) = &self.plan {
            mapped.apply(value, origin)
        } else {
            self.plan
                .apply(value, origin)
                .and_then(|logical| logical.map(Logical::into_datum).transpose())
        };
        datum.map_err(|failure| self.error(failure))
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
        if self.plan.write_common(value, origin, out) {
            return Ok(());
        }
        self.write_other(value, origin, out)
    }

    /// Appends what the plan does not print at once.
    #[inline(never)]
    fn write_other(
        &self,
        value: &Value<'_>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let is_mapped = matches!(self.plan, Plan::Mapped(_));
        if let Value::Null = value
            && !is_mapped
        {
            self.write_null(out);
            return Ok(());
        }
        if let Value::Compressed(compressed) = value {
            let plain = self.decompressed(*compressed)?;
            return self.write_json(&Value::Bytes(&plain), origin, out);
        }
        if is_mapped {
            match self.datum(value, origin)? {
                Some(datum) => datum.write_json(out),
                None => self.write_null(out),
            }
            return Ok(());
        }
        let start = out.len();
        let written = match self.plan.apply(value, origin) {
            Ok(Some(logical)) => logical.write_json(out),
            Ok(None) => {
                self.write_null(out);
                Ok(())
            }
            Err(failure) => Err(failure),
        };
        written.map_err(|failure| {
            out.truncate(start);
            self.error(failure)
        })
    }

    #[inline]
    fn write_null(&self, out: &mut Vec<u8>) {
        match &self.null_json {
            None => token::write_null(out),
            Some(json) => out.extend_from_slice(json),
        }
    }

    /// Whether two values of a row that was updated convert to the same one. A NULL is not its default, although records can
    /// print it so.
    pub(crate) fn is_same(&self, before: Option<&Value<'_>>, after: Option<&Value<'_>>) -> bool {
        if before == after {
            return true;
        }
        let printed = |value: Option<&Value<'_>>| {
            let mut json = Vec::new();
            self.convert(value.unwrap_or(&Value::Null), Origin::Stream).ok()?.write_json(&mut json);
            Some(json)
        };
        let before = printed(before);
        before.is_some() && before == printed(after)
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
        if self.details.optional {
            Some(self.null_json.as_deref().unwrap_or(b"null"))
        } else {
            self.details.default.as_ref().map(|default| default.json.as_slice())
        }
    }

    #[cold]
    fn error(&self, failure: ConvertFailure) -> ConvertError {
        ConvertError::new(
            self.index,
            &self.details.name,
            self.details.column_type,
            self.plan.becomes(),
            failure,
        )
    }
}

/// A column's plan, and what its settings make of the rest.
struct Settled<'c> {
    plan: Plan,
    column: Cow<'c, Column>,
    options: Cow<'c, ConversionOptions>,
    /// What stands for a zero date, and for NULL.
    zero: Option<Rendered>,
}

impl<'c> Settled<'c> {
    fn new(
        column: &'c Column,
        options: &'c ConversionOptions,
        settings: &ColumnSettings,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let column = match canonical(column, options.uniform) {
            Some(column) => Cow::Owned(column),
            None => Cow::Borrowed(column),
        };
        let mut settled =
            Self { plan: Plan::Unknown, column, options: Cow::Borrowed(options), zero: None };
        if let Some(ColumnCast::ZeroDate(fallback)) = settings.converter {
            let options = settled.options.to_mut();
            options.time_adjuster = false;
            options.time_precision = TimePrecisionMode::AdaptiveTimeMicroseconds;
            settled.plan = Plan::new(&settled.column, &settled.options, warnings);
            if let Plan::Timestamp { digits, .. } = &mut settled.plan {
                *digits = None;
            }
            let value = fallback.and_then(|micros| zero_date(&settled.plan, micros));
            settled.zero = value.and_then(|value| Rendered::of(value).ok());
            if settled.zero.is_none() {
                let column = settled.column.to_mut();
                column.optional = true;
                column.default = DefaultValue::Absent;
            }
        } else {
            settled.plan = Plan::new(&settled.column, options, warnings);
            let is_real =
                matches!(settings.converter, Some(ColumnCast::Double | ColumnCast::Float));
            // A converter is given what the server has.
            if is_real && matches!(settled.plan, Plan::DoubleAsFloat) {
                settled.plan = Plan::Double;
            } else if is_real && matches!(settled.plan, Plan::FloatAsDouble) {
                settled.plan = Plan::Float { whole: false };
            }
        }
        let rule = settings.rule.as_ref();
        if let Some(mapped) = Mapped::new(&settled.plan, &settled.column, settings.converter, rule)
        {
            settled.plan = Plan::Mapped(Box::new(mapped));
        }
        settled
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

    /// What the column's converter makes of it.
    fn cast(self, mapped: &Mapped) -> Self {
        let datum = mapped.cast(self.datum);
        let mut json = Vec::new();
        datum.write_json(&mut json);
        Self { datum, json }
    }
}
