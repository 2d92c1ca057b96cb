//! The type codes of `java.sql.Types`, which Debezium's records print.

/// A code of `java.sql.Types`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JdbcType(pub i32);

impl JdbcType {
    /// `BIT`.
    pub const BIT: Self = Self(-7);
    /// `TINYINT`.
    pub const TINYINT: Self = Self(-6);
    /// `SMALLINT`.
    pub const SMALLINT: Self = Self(5);
    /// `INTEGER`.
    pub const INTEGER: Self = Self(4);
    /// `BIGINT`.
    pub const BIGINT: Self = Self(-5);
    /// `FLOAT`.
    pub const FLOAT: Self = Self(6);
    /// `REAL`.
    pub const REAL: Self = Self(7);
    /// `DOUBLE`.
    pub const DOUBLE: Self = Self(8);
    /// `NUMERIC`.
    pub const NUMERIC: Self = Self(2);
    /// `DECIMAL`.
    pub const DECIMAL: Self = Self(3);
    /// `CHAR`.
    pub const CHAR: Self = Self(1);
    /// `VARCHAR`.
    pub const VARCHAR: Self = Self(12);
    /// `NCHAR`.
    pub const NCHAR: Self = Self(-15);
    /// `NVARCHAR`.
    pub const NVARCHAR: Self = Self(-9);
    /// `BINARY`.
    pub const BINARY: Self = Self(-2);
    /// `VARBINARY`.
    pub const VARBINARY: Self = Self(-3);
    /// `BLOB`.
    pub const BLOB: Self = Self(2004);
    /// `BOOLEAN`.
    pub const BOOLEAN: Self = Self(16);
    /// `DATE`.
    pub const DATE: Self = Self(91);
    /// `TIME`.
    pub const TIME: Self = Self(92);
    /// `TIMESTAMP`.
    pub const TIMESTAMP: Self = Self(93);
    /// `TIMESTAMP_WITH_TIMEZONE`.
    pub const TIMESTAMP_WITH_TIMEZONE: Self = Self(2014);
    /// `OTHER`.
    pub const OTHER: Self = Self(1111);
}
