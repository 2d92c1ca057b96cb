//! What a column's type is to decoding, derived from the type's name.

/// What a column's type is to decoding and conversion, derived from [`Column::type_name`] and its lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// TINYINT and INT1.
    TinyInt {
        /// Whether UNSIGNED (ZEROFILL implies it).
        unsigned: bool,
    },
    /// BOOL and BOOLEAN as written in the DDL (the server makes TINYINT(1) of it).
    Boolean,
    /// SMALLINT and INT2.
    SmallInt {
        /// Whether UNSIGNED.
        unsigned: bool,
    },
    /// MEDIUMINT, INT3 and MIDDLEINT.
    MediumInt {
        /// Whether UNSIGNED.
        unsigned: bool,
    },
    /// INT, INTEGER and INT4.
    Int {
        /// Whether UNSIGNED.
        unsigned: bool,
    },
    /// BIGINT, INT8 and SERIAL.
    BigInt {
        /// Whether UNSIGNED.
        unsigned: bool,
    },
    /// FLOAT stored in 4 bytes.
    Float,
    /// DOUBLE, FLOAT8, REAL, and FLOAT(p) with p of 25 and more: 8 bytes.
    Double,
    /// DECIMAL, NUMERIC, DEC and FIXED.
    Decimal,
    /// BIT(n).
    Bit,
    /// CHAR, NCHAR and their synonyms.
    Char,
    /// VARCHAR, NVARCHAR and their synonyms.
    VarChar,
    /// TINYTEXT, TEXT, MEDIUMTEXT, LONGTEXT, LONG.
    Text,
    /// BINARY.
    Binary,
    /// VARBINARY.
    VarBinary,
    /// TINYBLOB, BLOB, MEDIUMBLOB, LONGBLOB, LONG VARBINARY.
    Blob,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// DATETIME.
    DateTime,
    /// TIMESTAMP.
    Timestamp,
    /// YEAR.
    Year,
    /// ENUM.
    Enum,
    /// SET.
    Set,
    /// JSON.
    Json,
    /// GEOMETRY, POINT, LINESTRING, POLYGON, the MULTI kinds and GEOMETRYCOLLECTION.
    Geometry,
    /// VECTOR.
    Vector,
    /// MariaDB UUID.
    Uuid,
    /// MariaDB INET4.
    Inet4,
    /// MariaDB INET6.
    Inet6,
    /// A type this version does not know: its column is left out of records with a warning.
    Unknown,
}

impl ColumnType {
    /// Derives the type from the name that the model keeps, in any case: `int unsigned`, `DOUBLE PRECISION`.
    ///
    /// `length` and `scale` decide only between 4 and 8 bytes of `FLOAT(p)`.
    pub fn from_type_name(type_name: &str, length: Option<i32>, scale: Option<i32>) -> Self {
        let upper = type_name.to_ascii_uppercase();
        let mut words = upper.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let has = |word: &str| rest.contains(&word);
        let unsigned = has("UNSIGNED") || has("ZEROFILL");
        match first {
            "TINYINT" | "INT1" => Self::TinyInt { unsigned },
            "BOOL" | "BOOLEAN" => Self::Boolean,
            "SMALLINT" | "INT2" => Self::SmallInt { unsigned },
            "MEDIUMINT" | "INT3" | "MIDDLEINT" => Self::MediumInt { unsigned },
            "INT" | "INTEGER" | "INT4" => Self::Int { unsigned },
            "BIGINT" | "INT8" => Self::BigInt { unsigned },
            "SERIAL" => Self::BigInt { unsigned: true },
            "FLOAT" | "FLOAT4" => match length {
                Some(25..) if scale.is_none() => Self::Double,
                _ => Self::Float,
            },
            "DOUBLE" | "FLOAT8" | "REAL" => Self::Double,
            "DECIMAL" | "NUMERIC" | "DEC" | "FIXED" => Self::Decimal,
            "BIT" => Self::Bit,
            "CHAR" | "CHARACTER" | "NCHAR" | "NATIONAL" => {
                if has("VARYING") || has("VARCHAR") || has("VARCHARACTER") {
                    Self::VarChar
                } else {
                    Self::Char
                }
            }
            "VARCHAR" | "VARCHARACTER" | "NVARCHAR" => Self::VarChar,
            "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT" => Self::Text,
            "LONG" => {
                if has("VARBINARY") {
                    Self::Blob
                } else {
                    Self::Text
                }
            }
            "BINARY" => Self::Binary,
            "VARBINARY" => Self::VarBinary,
            "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => Self::Blob,
            "DATE" => Self::Date,
            "TIME" => Self::Time,
            "DATETIME" => Self::DateTime,
            "TIMESTAMP" => Self::Timestamp,
            "YEAR" => Self::Year,
            "ENUM" => Self::Enum,
            "SET" => Self::Set,
            "JSON" => Self::Json,
            "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" | "GEOMCOLLECTION" => Self::Geometry,
            "VECTOR" => Self::Vector,
            "UUID" => Self::Uuid,
            "INET4" => Self::Inet4,
            "INET6" => Self::Inet6,
            _ => Self::Unknown,
        }
    }

    /// Whether the type holds text in a character set: CHAR, VARCHAR, TEXT, ENUM and SET.
    pub fn has_charset(self) -> bool {
        matches!(self, Self::Char | Self::VarChar | Self::Text | Self::Enum | Self::Set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_follows_from_its_name() {
        let cases = [
            ("INT UNSIGNED ZEROFILL", ColumnType::Int { unsigned: true }),
            ("int(11) unsigned", ColumnType::Unknown),
            ("tinyint unsigned", ColumnType::TinyInt { unsigned: true }),
            ("SERIAL", ColumnType::BigInt { unsigned: true }),
            ("INT SIGNED", ColumnType::Int { unsigned: false }),
            ("DOUBLE PRECISION UNSIGNED", ColumnType::Double),
            ("NATIONAL CHARACTER VARYING", ColumnType::VarChar),
            ("NATIONAL CHARACTER", ColumnType::Char),
            ("CHAR VARYING BINARY", ColumnType::VarChar),
            ("LONG VARBINARY", ColumnType::Blob),
            ("LONG VARCHAR", ColumnType::Text),
            ("LONG", ColumnType::Text),
            ("GEOMCOLLECTION", ColumnType::Geometry),
            ("INET6", ColumnType::Inet6),
            ("", ColumnType::Unknown),
        ];
        for (name, expected) in cases {
            assert_eq!(ColumnType::from_type_name(name, None, None), expected, "{name}");
        }
    }

    #[test]
    fn a_float_of_25_digits_is_stored_in_8_bytes() {
        assert_eq!(ColumnType::from_type_name("FLOAT", Some(24), None), ColumnType::Float);
        assert_eq!(ColumnType::from_type_name("FLOAT", Some(25), None), ColumnType::Double);
        assert_eq!(ColumnType::from_type_name("FLOAT", Some(30), Some(2)), ColumnType::Float);
    }
}
