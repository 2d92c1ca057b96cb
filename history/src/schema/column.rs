//! A column of the model.

use super::JdbcType;

/// One column, with the members that Debezium's `tableChanges` print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name, case as written.
    pub name: String,
    /// Upper-cased DDL type with its modifiers, without length: `INT UNSIGNED`, `VARCHAR`, `ENUM`.
    pub type_name: String,
    /// The `java.sql.Types` code that Debezium gives this type.
    pub jdbc_type: JdbcType,
    /// Length or precision as the type has it: characters, digits, fraction digits, bits; ENUM 1, SET 2k-1.
    pub length: Option<i32>,
    /// Digits after the point.
    pub scale: Option<i32>,
    /// Character set of a character column, lower case, resolved when the definition was made.
    pub charset: Option<String>,
    /// Whether NULL is allowed.
    pub optional: bool,
    /// AUTO_INCREMENT, SERIAL or ON UPDATE, as Debezium sets it.
    pub auto_incremented: bool,
    /// Set together with `auto_incremented` by Debezium; generated columns are not marked.
    pub generated: bool,
    /// The default clause.
    pub default: DefaultValue,
    /// Column comment, where comments are kept.
    pub comment: Option<String>,
    /// Labels of an ENUM or SET in definition order, each as SQL text with its quotes (`'it''s'`).
    pub enum_values: Vec<String>,
}

/// The default clause of a column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DefaultValue {
    /// No default: `hasDefaultValue` false.
    #[default]
    Absent,
    /// `DEFAULT NULL`, given or implied by a nullable column: `hasDefaultValue` true, no expression.
    Null,
    /// The expression text that Debezium keeps, without the outer quotes.
    Expression(String),
}

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
