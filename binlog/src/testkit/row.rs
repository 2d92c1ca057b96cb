//! Columns and values of made-up rows.

/// A column of a made-up table: its type code and metadata as in a table map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestColumn {
    /// Type code, as in `enum_field_types`.
    pub code: u8,
    /// Metadata of the type, 0 to 2 bytes.
    pub metadata: Vec<u8>,
    /// Whether the column may be NULL.
    pub nullable: bool,
    encoding: Encoding,
}

/// How a [`TestValue`] becomes bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// A number of so many bytes.
    Int(usize),
    Float,
    Double,
    /// Bytes behind a length of so many bytes.
    Prefixed(usize),
    /// Only [`TestValue::Raw`] will do.
    Raw,
}

impl TestColumn {
    const fn new(code: u8, metadata: Vec<u8>, encoding: Encoding) -> Self {
        Self { code, metadata, nullable: false, encoding }
    }

    /// TINYINT.
    #[must_use]
    pub const fn tinyint() -> Self {
        Self::new(1, Vec::new(), Encoding::Int(1))
    }

    /// SMALLINT.
    #[must_use]
    pub const fn smallint() -> Self {
        Self::new(2, Vec::new(), Encoding::Int(2))
    }

    /// MEDIUMINT.
    #[must_use]
    pub const fn mediumint() -> Self {
        Self::new(9, Vec::new(), Encoding::Int(3))
    }

    /// INT.
    #[must_use]
    pub const fn int() -> Self {
        Self::new(3, Vec::new(), Encoding::Int(4))
    }

    /// BIGINT.
    #[must_use]
    pub const fn bigint() -> Self {
        Self::new(8, Vec::new(), Encoding::Int(8))
    }

    /// FLOAT.
    #[must_use]
    pub fn float() -> Self {
        Self::new(4, vec![4], Encoding::Float)
    }

    /// DOUBLE.
    #[must_use]
    pub fn double() -> Self {
        Self::new(5, vec![8], Encoding::Double)
    }

    /// VARCHAR or VARBINARY of up to `max_bytes` bytes.
    #[must_use]
    pub fn varchar(max_bytes: u16) -> Self {
        let prefix = if max_bytes > 255 { 2 } else { 1 };
        Self::new(15, max_bytes.to_le_bytes().to_vec(), Encoding::Prefixed(prefix))
    }

    /// CHAR or BINARY of up to `max_bytes` bytes, 1023 at most.
    #[must_use]
    pub fn char(max_bytes: u16) -> Self {
        let [low, high] = max_bytes.to_le_bytes();
        // The two upper bits of the length, inverted, are hidden in the type code.
        let metadata = vec![254 ^ ((high & 3) << 4), low];
        let prefix = if max_bytes > 255 { 2 } else { 1 };
        Self::new(254, metadata, Encoding::Prefixed(prefix))
    }

    /// TINYBLOB or TINYTEXT (1) to LONGBLOB or LONGTEXT (4): the bytes that a value's length takes.
    #[must_use]
    pub fn blob(length_bytes: u8) -> Self {
        Self::new(252, vec![length_bytes], Encoding::Prefixed(length_bytes.into()))
    }

    /// JSON; values are in the server's binary form.
    #[must_use]
    pub fn json() -> Self {
        Self::new(245, vec![4], Encoding::Prefixed(4))
    }

    /// Any type; values are [`TestValue::Raw`].
    #[must_use]
    pub fn raw(code: u8, metadata: &[u8]) -> Self {
        Self::new(code, metadata.to_vec(), Encoding::Raw)
    }

    /// The same column, which may be NULL.
    #[must_use]
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }
}

/// A value of a made-up row.
#[derive(Debug, Clone, PartialEq)]
pub enum TestValue {
    /// NULL.
    Null,
    /// A whole number, cut to the width of its column. Unsigned numbers are given by the same bits.
    Int(i64),
    /// A number for FLOAT and DOUBLE.
    Double(f64),
    /// Text or bytes; the length in front is added.
    Bytes(Vec<u8>),
    /// The bytes of the wire, whatever the column.
    Raw(Vec<u8>),
}

impl From<&str> for TestValue {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl From<i64> for TestValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl TestValue {
    /// Appends the value as it stands in a row of `column`. NULL has no bytes.
    ///
    /// # Panics
    ///
    /// When the column takes no such value.
    pub(super) fn write(&self, column: &TestColumn, out: &mut Vec<u8>) {
        match (self, column.encoding) {
            (Self::Null, _) => {}
            (Self::Raw(bytes), _) => out.extend(bytes),
            (Self::Int(number), Encoding::Int(width)) => {
                out.extend(number.to_le_bytes().iter().take(width));
            }
            (Self::Double(number), Encoding::Double) => out.extend(number.to_le_bytes()),
            #[expect(clippy::cast_possible_truncation, reason = "a FLOAT holds the nearest value")]
            (Self::Double(number), Encoding::Float) => out.extend((*number as f32).to_le_bytes()),
            (Self::Bytes(bytes), Encoding::Prefixed(width)) => {
                let length = (bytes.len() as u64).to_le_bytes();
                let fits = length.iter().skip(width).all(|byte| *byte == 0);
                assert!(fits, "{} bytes do not fit into type {}", bytes.len(), column.code);
                out.extend(length.iter().take(width));
                out.extend(bytes);
            }
            (Self::Int(_) | Self::Double(_) | Self::Bytes(_), _) => {
                let code = column.code;
                assert!(matches!(self, Self::Null), "a column of type {code} takes no such value");
            }
        }
    }
}
