//! A table's columns planned together: rows and keys as JSON objects.

use std::collections::BTreeMap;

use holdfast_binlog::Value;
use holdfast_history::schema::{ColumnType, Table};

use super::mapping::ColumnSettings;
use super::options::{ConversionOptions, FailureMode};
use super::{ColumnConverter, ConvertError, ConvertFailure, Origin, Warning};
use crate::format::json as token;
use crate::topic::NameAdjustment;

/// Room made for a value before it is printed, bytes.
const USUAL_VALUE_BYTES: usize = 24;

/// Which columns go where, by zero-based index into the table's columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnSelection {
    /// Columns of the before and after images, ascending.
    pub value: Vec<usize>,
    /// Columns of the key, in key order; empty where records have no key.
    pub key: Vec<usize>,
    /// What is set for single columns.
    pub(crate) settings: BTreeMap<usize, ColumnSettings>,
}

impl ColumnSelection {
    /// All columns, and the primary key as key.
    #[must_use]
    pub fn all(table: &Table) -> Self {
        Self {
            value: (0..table.columns.len()).collect(),
            key: table.key_columns().collect(),
            settings: BTreeMap::new(),
        }
    }
}

/// How the fields of records are named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldNaming {
    /// `field.name.adjustment.mode`.
    pub adjustment: NameAdjustment,
    /// A text field at the end of keys, name and value: what the strategy with a regex adds to keep keys apart.
    pub key_field: Option<(String, String)>,
}

/// Converts the rows of one table at one schema version.
#[derive(Debug, Clone)]
pub struct TableConverter {
    value: Object,
    key: Object,
    /// The key as headers have it, where they print it otherwise.
    header_key: Option<Object>,
    /// `,"name":"value"` at the end of keys, and its schema.
    key_field: Option<(Vec<u8>, Vec<u8>)>,
    /// What is done where a column does not convert.
    failure: FailureMode,
}

/// The columns of an object, in order.
#[derive(Debug, Clone)]
struct Object {
    members: Vec<Member>,
    /// Room made before the object is printed, bytes.
    room: usize,
}

/// A column of an object: what comes before its value, and its converter.
#[derive(Debug, Clone)]
struct Member {
    /// `{"name":` or `,"name":`.
    prefix: token::Constant,
    converter: ColumnConverter,
}

impl TableConverter {
    /// Plans the columns that `selection` names. Columns of an unknown type are left out with a warning; hidden columns
    /// and indexes that the table does not have are left out without.
    #[must_use]
    pub fn new(
        table: &Table,
        options: &ConversionOptions,
        selection: &ColumnSelection,
    ) -> (Self, Vec<Warning>) {
        Self::with_naming(table, options, selection, &FieldNaming::default())
    }

    /// As [`Self::new`], with fields named by `naming`.
    #[must_use]
    pub fn with_naming(
        table: &Table,
        options: &ConversionOptions,
        selection: &ColumnSelection,
        naming: &FieldNaming,
    ) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let keys = without_rules(&selection.settings);
        let printed = |form| ConversionOptions { value_json: form, ..options.clone() };
        let (value, key) = (&selection.value, &selection.key);
        let (settings, adjustment) = (&selection.settings, naming.adjustment);
        let value = object(table, options, value, settings, adjustment, &mut warnings);
        let key_in = |form| object(table, &printed(form), key, &keys, adjustment, &mut Vec::new());
        let header_key =
            (options.header_json != options.key_json).then(|| key_in(options.header_json));
        let key = key_in(options.key_json);
        let key_field = naming.key_field.as_ref().map(|(name, value)| {
            let (mut member, mut schema) = (Vec::new(), Vec::new());
            member.push(b',');
            token::write_string(name, &mut member);
            member.push(b':');
            token::write_string(value, &mut member);
            schema.extend_from_slice(br#",{"type":"string","optional":false,"field":"#);
            token::write_string(name, &mut schema);
            schema.push(b'}');
            (member, schema)
        });
        let failure = options.converting_failure;
        (Self { value, key, header_key, key_field, failure }, warnings)
    }

    /// The converters of the images, in column order.
    pub fn value_columns(&self) -> impl Iterator<Item = &ColumnConverter> {
        self.value.members.iter().map(|member| &member.converter)
    }

    /// The converters of the key, in key order.
    pub fn key_columns(&self) -> impl Iterator<Item = &ColumnConverter> {
        self.key.members.iter().map(|member| &member.converter)
    }

    /// Whether records of the table have a key.
    #[must_use]
    pub fn has_key(&self) -> bool {
        !self.key.members.is_empty()
    }

    /// Appends a row as an object of its columns in column order. `image` gives a column's value by its zero-based index
    /// in the table; none, for a column that the image does not have, is NULL.
    ///
    /// # Errors
    ///
    /// [`ConvertError`] where a value does not convert and the configuration says to fail, or the column must have a
    /// value. Then `out` is as it was.
    pub fn write_row<'a>(
        &self,
        image: impl Fn(usize) -> Option<&'a Value<'a>>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        self.write_object(&self.value, image, origin, out)
    }

    /// Appends the row's key as an object of the key columns in key order. Without a key it appends nothing and gives
    /// `false`.
    ///
    /// # Errors
    ///
    /// As [`Self::write_row`].
    pub fn write_key<'a>(
        &self,
        image: impl Fn(usize) -> Option<&'a Value<'a>>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<bool, ConvertError> {
        self.write_key_object(&self.key, image, origin, out)
    }

    /// The same, as headers have it.
    ///
    /// # Errors
    ///
    /// As [`Self::write_row`].
    pub fn write_header_key<'a>(
        &self,
        image: impl Fn(usize) -> Option<&'a Value<'a>>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<bool, ConvertError> {
        self.write_key_object(self.header_key.as_ref().unwrap_or(&self.key), image, origin, out)
    }

    fn write_key_object<'a>(
        &self,
        key: &Object,
        image: impl Fn(usize) -> Option<&'a Value<'a>>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<bool, ConvertError> {
        if key.members.is_empty() {
            return Ok(false);
        }
        self.write_object(key, image, origin, out)?;
        if let Some((member, _)) = &self.key_field {
            out.pop();
            out.extend_from_slice(member);
            out.push(b'}');
        }
        Ok(true)
    }

    /// Appends the Connect schemas of the image's fields, separated by commas.
    pub(crate) fn write_value_fields(&self, out: &mut Vec<u8>) {
        write_fields(&self.value.members, out);
    }

    /// Appends the Connect schemas of the key's fields, separated by commas, as keys or headers have them.
    pub(crate) fn write_key_fields(&self, in_header: bool, out: &mut Vec<u8>) {
        let key = self.header_key.as_ref().filter(|_| in_header).unwrap_or(&self.key);
        write_fields(&key.members, out);
        if let Some((_, schema)) = &self.key_field {
            out.extend_from_slice(schema);
        }
    }

    fn write_object<'a>(
        &self,
        object: &Object,
        image: impl Fn(usize) -> Option<&'a Value<'a>>,
        origin: Origin,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        let start = out.len();
        out.reserve(object.room);
        if object.members.is_empty() {
            out.push(b'{');
        }
        for member in &object.members {
            member.prefix.write(out);
            let value = image(member.converter.index()).unwrap_or(&Value::Null);
            if let Err(error) = member.converter.write_json(value, origin, out)
                && let Err(error) = self.leave_unset(&member.converter, error, out)
            {
                out.truncate(start);
                return Err(error);
            }
        }
        out.push(b'}');
        Ok(())
    }

    /// Writes what stands for a value that did not convert, unless it has to be an error.
    #[cold]
    fn leave_unset(
        &self,
        converter: &ColumnConverter,
        error: ConvertError,
        out: &mut Vec<u8>,
    ) -> Result<(), ConvertError> {
        if self.failure == FailureMode::Fail || error.failure() == ConvertFailure::InvalidDate {
            return Err(error);
        }
        let Some(unset) = converter.unset_json() else { return Err(error) };
        if self.failure == FailureMode::Warn {
            tracing::warn!(column = converter.name(), error = %error, "value left out of the record");
        }
        out.extend_from_slice(unset);
        Ok(())
    }
}

fn write_fields(members: &[Member], out: &mut Vec<u8>) {
    for (number, member) in members.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        member.converter.write_field(out);
    }
}

/// Masks and the like are for images only.
fn without_rules(settings: &BTreeMap<usize, ColumnSettings>) -> BTreeMap<usize, ColumnSettings> {
    let of_key = |settings: &ColumnSettings| ColumnSettings { rule: None, ..settings.clone() };
    settings.iter().map(|(index, settings)| (*index, of_key(settings))).collect()
}

fn object(
    table: &Table,
    options: &ConversionOptions,
    indexes: &[usize],
    settings: &BTreeMap<usize, ColumnSettings>,
    adjustment: NameAdjustment,
    warnings: &mut Vec<Warning>,
) -> Object {
    let mut members = Vec::with_capacity(indexes.len());
    for &index in indexes {
        let Some(column) = table.columns.get(index).filter(|column| !column.is_hidden()) else {
            continue;
        };
        if column.column_type() == ColumnType::Unknown {
            warnings.push(Warning::UnknownType {
                column: column.name.clone(),
                type_name: column.type_name.clone(),
            });
            continue;
        }
        let mut prefix = vec![if members.is_empty() { b'{' } else { b',' }];
        let field = adjustment.field(&column.name);
        token::write_string(&field, &mut prefix);
        prefix.push(b':');
        let converter = match settings.get(&index) {
            None => ColumnConverter::new(index, column, options, warnings),
            Some(settings) => {
                ColumnConverter::with_settings(index, column, options, settings, warnings)
            }
        };
        let converter = converter.with_field(field);
        members.push(Member { prefix: token::Constant::new(&prefix), converter });
    }
    let room = members.iter().map(|member: &Member| member.prefix.len() + USUAL_VALUE_BYTES).sum();
    Object { members, room }
}
