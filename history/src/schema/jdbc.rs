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

    /// The code that Debezium gives the DDL type `type_name` (upper case, with its modifiers).
    ///
    /// TINYINT has the code of SMALLINT, as in Debezium 3.6; a type that is not known is
    /// [`JdbcType::OTHER`].
    pub fn from_type_name(type_name: &str) -> Self {
        let mut words = type_name.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let varying = ["VARYING", "VARCHAR", "VARCHARACTER"].iter().any(|word| rest.contains(word));
        match first {
            "BIT" => Self::BIT,
            "BOOL" | "BOOLEAN" => Self::BOOLEAN,
            "TINYINT" | "INT1" | "SMALLINT" | "INT2" => Self::SMALLINT,
            "MEDIUMINT" | "INT3" | "MIDDLEINT" | "INT" | "INTEGER" | "INT4" | "YEAR" => {
                Self::INTEGER
            }
            "BIGINT" | "INT8" | "SERIAL" => Self::BIGINT,
            "FLOAT" | "FLOAT4" => Self::FLOAT,
            "DOUBLE" | "FLOAT8" => Self::DOUBLE,
            "REAL" => Self::REAL,
            "DECIMAL" | "DEC" | "FIXED" => Self::DECIMAL,
            "NUMERIC" => Self::NUMERIC,
            "NCHAR" | "NATIONAL" if varying => Self::NVARCHAR,
            "NCHAR" | "NATIONAL" => Self::NCHAR,
            "CHAR" | "CHARACTER" if varying => Self::VARCHAR,
            "CHAR" | "CHARACTER" | "ENUM" | "SET" => Self::CHAR,
            "NVARCHAR" => Self::NVARCHAR,
            "LONG" if rest.contains(&"VARBINARY") => Self::BLOB,
            "VARCHAR" | "VARCHARACTER" | "TINYTEXT" | "TEXT" | "MEDIUMTEXT" | "LONGTEXT"
            | "LONG" => Self::VARCHAR,
            "BINARY" => Self::BINARY,
            "VARBINARY" => Self::VARBINARY,
            "TINYBLOB" | "BLOB" | "MEDIUMBLOB" | "LONGBLOB" => Self::BLOB,
            "DATE" => Self::DATE,
            "TIME" => Self::TIME,
            "DATETIME" => Self::TIMESTAMP,
            "TIMESTAMP" => Self::TIMESTAMP_WITH_TIMEZONE,
            _ => Self::OTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_follows_from_the_type_name() {
        let cases = [
            ("TINYINT UNSIGNED", JdbcType::SMALLINT),
            ("YEAR", JdbcType::INTEGER),
            ("NATIONAL CHARACTER VARYING", JdbcType::NVARCHAR),
            ("NATIONAL CHAR", JdbcType::NCHAR),
            ("CHARACTER VARYING", JdbcType::VARCHAR),
            ("CHAR BINARY", JdbcType::CHAR),
            ("LONG VARBINARY", JdbcType::BLOB),
            ("LONG VARCHAR", JdbcType::VARCHAR),
            ("VECTOR", JdbcType::OTHER),
        ];
        for (name, expected) in cases {
            assert_eq!(JdbcType::from_type_name(name), expected, "{name}");
        }
    }
}
