//! Columns of every type: how they are declared, literals for them, and one form of a value for both sides.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a value of another kind than its column fails the test"
)]

use holdfast_binlog::Value;
use holdfast_binlog::value::{JsonBinary, JsonStyle};
use holdfast_tests::server::Flavour;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::literals;

/// A value of either side: what the server prints for it, brought to one form; `None` for NULL.
pub(super) type Cell = Option<String>;

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Its type as it is declared.
    pub(super) declared: String,
    pub(super) kind: Kind,
}

/// What decides how values are asked for and compared.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// The integers: bits and whether signed.
    Int(u32, bool),
    Float,
    Double,
    Decimal(u32, u32),
    Bit(u32),
    Year,
    Date,
    /// Fraction digits.
    Time(u32),
    DateTime(u32),
    Timestamp(u32),
    /// Text of so many characters.
    Text(usize),
    /// Bytes, and to which length they are filled up with zeros.
    Binary(usize, usize),
    /// So many labels.
    Enum(u64),
    Set(u32),
    Json,
    /// MariaDB's, which is text.
    JsonText,
    Geometry,
    /// Dimensions.
    Vector(usize),
    Uuid,
    Inet4,
    Inet6,
}

/// Which server, as far as its types go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    pub(super) flavour: Flavour,
    /// MariaDB 11.7 and later.
    pub(super) has_vectors: bool,
}

/// A column of any type that the server has.
pub(super) fn column(dialect: Dialect) -> BoxedStrategy<Column> {
    let mut kinds = vec![
        integer(),
        floating(),
        decimal(),
        (1..=64_u32).prop_map(|bits| of(format!("BIT({bits})"), Kind::Bit(bits))).boxed(),
        temporal(),
        temporal(),
        text(),
        text(),
        binary(),
        labels(),
        geometry(),
    ];
    match dialect.flavour {
        Flavour::MySql => {
            let vector = |size| of(format!("VECTOR({size})"), Kind::Vector(size));
            kinds.push(Just(of("JSON".to_owned(), Kind::Json)).boxed());
            kinds.push(Just(of("JSON".to_owned(), Kind::Json)).boxed());
            kinds.push((1..20_usize).prop_map(vector).boxed());
        }
        Flavour::MariaDb => {
            let compressed = [
                ("VARCHAR(800) COMPRESSED", Kind::Text(800)),
                ("MEDIUMTEXT COMPRESSED", Kind::Text(2000)),
                ("VARBINARY(900) COMPRESSED", Kind::Binary(900, 0)),
                ("BLOB COMPRESSED", Kind::Binary(2000, 0)),
                ("UUID", Kind::Uuid),
                ("INET4", Kind::Inet4),
                ("INET6", Kind::Inet6),
                ("JSON", Kind::JsonText),
            ];
            let compressed = compressed.map(|(declared, kind)| of(declared.to_owned(), kind));
            kinds.push(select(compressed.to_vec()).boxed());
            if dialect.has_vectors {
                let vector = |size| of(format!("VECTOR({size})"), Kind::Vector(size));
                kinds.push((1..20_usize).prop_map(vector).boxed());
            }
        }
    }
    proptest::strategy::Union::new(kinds).boxed()
}

const fn of(declared: String, kind: Kind) -> Column {
    Column { declared, kind }
}

fn integer() -> BoxedStrategy<Column> {
    let types = [("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)];
    let signs = ["", " UNSIGNED", " ZEROFILL"];
    (select(types.to_vec()), select(signs.to_vec()))
        .prop_map(|((name, bits), sign)| {
            of(format!("{name}{sign}"), Kind::Int(bits, sign.is_empty()))
        })
        .boxed()
}

fn floating() -> BoxedStrategy<Column> {
    let types = [
        ("FLOAT", Kind::Float),
        ("FLOAT UNSIGNED", Kind::Float),
        ("FLOAT(7,3)", Kind::Float),
        ("FLOAT(30)", Kind::Double),
        ("DOUBLE", Kind::Double),
        ("REAL", Kind::Double),
        ("DOUBLE(20,5)", Kind::Double),
    ];
    select(types.to_vec()).prop_map(|(name, kind)| of(name.to_owned(), kind)).boxed()
}

fn decimal() -> BoxedStrategy<Column> {
    (1..=65_u32, 0..=30_u32, any::<bool>())
        .prop_map(|(precision, scale, is_unsigned)| {
            let scale = scale.min(precision);
            let sign = if is_unsigned { " UNSIGNED" } else { "" };
            let declared = format!("DECIMAL({precision},{scale}){sign}");
            of(declared, Kind::Decimal(precision, scale))
        })
        .boxed()
}

fn temporal() -> BoxedStrategy<Column> {
    (0..=6_u32, 0..5)
        .prop_map(|(digits, which)| match which {
            0 => of("YEAR".to_owned(), Kind::Year),
            1 => of("DATE".to_owned(), Kind::Date),
            2 => of(format!("TIME({digits})"), Kind::Time(digits)),
            3 => of(format!("DATETIME({digits})"), Kind::DateTime(digits)),
            _ => of(format!("TIMESTAMP({digits}) NULL"), Kind::Timestamp(digits)),
        })
        .boxed()
}

fn text() -> BoxedStrategy<Column> {
    const CHARSETS: [&str; 11] = [
        "utf8mb4", "utf8mb3", "latin1", "ascii", "ucs2", "utf16", "utf32", "gbk", "sjis", "cp1251",
        "koi8r",
    ];
    let types = [
        ("CHAR", 0),
        ("CHAR", 1),
        ("CHAR", 63),
        ("CHAR", 64),
        ("CHAR", 255),
        ("VARCHAR", 0),
        ("VARCHAR", 1),
        ("VARCHAR", 63),
        ("VARCHAR", 64),
        ("VARCHAR", 127),
        ("VARCHAR", 255),
        ("VARCHAR", 256),
        ("VARCHAR", 700),
        ("TINYTEXT", 60),
        ("TEXT", 2000),
        ("MEDIUMTEXT", 3000),
        ("LONGTEXT", 3000),
    ];
    (select(types.to_vec()), select(CHARSETS.to_vec()))
        .prop_map(|((name, length), charset)| {
            let size = if name.ends_with("CHAR") { format!("({length})") } else { String::new() };
            of(format!("{name}{size} CHARACTER SET {charset}"), Kind::Text(length))
        })
        .boxed()
}

fn binary() -> BoxedStrategy<Column> {
    let types = [
        ("BINARY(0)", 0, 0),
        ("BINARY(1)", 1, 1),
        ("BINARY(255)", 255, 255),
        ("VARBINARY(0)", 0, 0),
        ("VARBINARY(255)", 255, 0),
        ("VARBINARY(256)", 256, 0),
        ("VARBINARY(3000)", 3000, 0),
        ("TINYBLOB", 255, 0),
        ("BLOB", 3000, 0),
        ("MEDIUMBLOB", 3000, 0),
        ("LONGBLOB", 3000, 0),
    ];
    select(types.to_vec())
        .prop_map(|(name, size, filled)| of(name.to_owned(), Kind::Binary(size, filled)))
        .boxed()
}

fn labels() -> BoxedStrategy<Column> {
    let names =
        |count: u64| (0..count).map(|label| format!("'l{label}'")).collect::<Vec<_>>().join(",");
    let enums = select(vec![1_u64, 2, 255, 256, 300])
        .prop_map(move |count| of(format!("ENUM({})", names(count)), Kind::Enum(count)));
    let sets = select(vec![1_u32, 8, 9, 16, 17, 24, 25, 32, 33, 64])
        .prop_map(move |count| of(format!("SET({})", names(count.into())), Kind::Set(count)));
    prop_oneof![enums, sets].boxed()
}

fn geometry() -> BoxedStrategy<Column> {
    let types = [
        "GEOMETRY",
        "POINT",
        "LINESTRING",
        "POLYGON",
        "MULTIPOINT",
        "MULTILINESTRING",
        "MULTIPOLYGON",
        "GEOMETRYCOLLECTION",
    ];
    select(types.to_vec()).prop_map(|name| of(name.to_owned(), Kind::Geometry)).boxed()
}

impl Column {
    /// A literal, as SQL. Not all fit: the session's mode lets the server make of them what it will.
    pub(super) fn literal(&self, dialect: Dialect) -> BoxedStrategy<String> {
        let some = match &self.kind {
            Kind::Int(bits, _) => literals::integer(*bits),
            Kind::Float => literals::float(true),
            Kind::Double => literals::float(false),
            Kind::Decimal(precision, scale) => literals::decimal(*precision, *scale),
            Kind::Bit(bits) | Kind::Set(bits) => literals::bits(*bits),
            Kind::Year => literals::year(),
            Kind::Date => literals::date(),
            Kind::Time(_) => literals::time(),
            Kind::DateTime(_) => literals::datetime(9999),
            Kind::Timestamp(_) => literals::datetime(2038),
            Kind::Text(length) => literals::text(*length),
            Kind::Binary(size, _) => literals::binary(*size),
            Kind::Enum(count) => (0..=*count).prop_map(|index| index.to_string()).boxed(),
            Kind::Json => literals::json(),
            Kind::JsonText => literals::json_text(),
            Kind::Geometry => literals::geometry(&self.declared),
            Kind::Vector(size) => literals::vector(*size, dialect.flavour),
            Kind::Uuid => literals::uuid(),
            Kind::Inet4 => literals::inet4(),
            Kind::Inet6 => literals::inet6(),
        };
        prop_oneof![1 => Just("NULL".to_owned()), 8 => some].boxed()
    }

    /// What an update sets the column `name` to: a literal, or a change of its document.
    pub(super) fn change(&self, name: &str, dialect: Dialect) -> BoxedStrategy<String> {
        let literal = self.literal(dialect);
        match self.kind {
            Kind::Json => prop_oneof![1 => literal, 3 => literals::json_change(name)].boxed(),
            _ => literal,
        }
    }

    /// The expression that a query asks for the column by.
    pub(super) fn expression(&self, name: &str) -> String {
        match &self.kind {
            Kind::Int(_, true) => format!("CAST({name} AS SIGNED)"),
            Kind::Int(_, false) | Kind::Bit(_) | Kind::Year | Kind::Enum(_) | Kind::Set(_) => {
                format!("CAST({name} AS UNSIGNED)")
            }
            // All digits, and a minus of zero.
            Kind::Float | Kind::Double => format!("{name} * 1e0"),
            Kind::Timestamp(_) => format!("UNIX_TIMESTAMP({name})"),
            Kind::Text(_)
            | Kind::JsonText
            | Kind::Binary(..)
            | Kind::Geometry
            | Kind::Vector(_) => {
                format!("HEX({name})")
            }
            Kind::Decimal(..)
            | Kind::Date
            | Kind::Time(_)
            | Kind::DateTime(_)
            | Kind::Json
            | Kind::Uuid
            | Kind::Inet4
            | Kind::Inet6 => name.to_owned(),
        }
    }

    /// What a query gave for [`Self::expression`], in the form that both sides have.
    pub(super) fn selected(&self, text: Cell) -> Cell {
        let text = text?;
        Some(match &self.kind {
            Kind::Float | Kind::Double => bits_of(text.parse().unwrap()),
            Kind::Timestamp(_) => {
                let (seconds, fraction) = text.split_once('.').unwrap_or((&text, ""));
                format!("{seconds}.{fraction:0<6}")
            }
            _ => text,
        })
    }

    /// A value of the log in that form. `before` is the document that diffs are of.
    pub(super) fn logged(&self, value: &Value<'_>, before: Option<JsonBinary<'_>>) -> Cell {
        let mut text = Vec::new();
        match (&self.kind, *value) {
            (_, Value::Null) => return None,
            (Kind::Int(bits, is_signed), value) => {
                let number = match value {
                    Value::Int8(number) => number.into(),
                    Value::Int16(number) => number.into(),
                    Value::Int24(number) | Value::Int32(number) => number.into(),
                    Value::Int64(number) => number,
                    other => panic!("{other:?} in {}", self.declared),
                };
                let number = i128::from(number);
                let is_negative = *is_signed && number >> (bits - 1) & 1 == 1;
                return Some((number - if is_negative { 1 << bits } else { 0 }).to_string());
            }
            (Kind::Float, Value::Float(number)) => return Some(bits_of(number.into())),
            (Kind::Double, Value::Double(number)) => return Some(bits_of(number)),
            (Kind::Decimal(..), Value::Decimal(number)) => number.write_text(&mut text),
            (Kind::Bit(_), Value::Bit(bytes)) => {
                let number = bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
                return Some(number.to_string());
            }
            (Kind::Year, Value::Year(0)) => return Some("0".to_owned()),
            (Kind::Year, Value::Year(year)) => return Some((1900 + u32::from(year)).to_string()),
            (Kind::Date, Value::Date(date)) => {
                return Some(format!("{:04}-{:02}-{:02}", date.year, date.month, date.day));
            }
            (Kind::Time(digits), Value::Time(time)) => {
                assert_eq!(u32::from(time.fsp), *digits);
                let sign = if time.micros < 0 { "-" } else { "" };
                let (seconds, micros) = (
                    time.micros.unsigned_abs() / 1_000_000,
                    time.micros.unsigned_abs() % 1_000_000,
                );
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                let fraction = fraction(micros, *digits);
                return Some(format!(
                    "{sign}{hours:02}:{minutes:02}:{:02}{fraction}",
                    seconds % 60
                ));
            }
            (Kind::DateTime(digits), Value::DateTime(moment)) => {
                assert_eq!(u32::from(moment.fsp), *digits);
                let date = moment.date;
                return Some(format!(
                    "{:04}-{:02}-{:02} {:02}:{:02}:{:02}{}",
                    date.year,
                    date.month,
                    date.day,
                    moment.hour,
                    moment.minute,
                    moment.second,
                    fraction(moment.micro.into(), *digits)
                ));
            }
            (Kind::Timestamp(digits), Value::Timestamp(moment)) => {
                assert_eq!(u32::from(moment.fsp), *digits);
                return Some(format!("{}.{:06}", moment.seconds, moment.micro));
            }
            (Kind::Enum(_), Value::Enum(index)) => return Some(index.to_string()),
            (Kind::Set(_), Value::Set(bits)) => return Some(bits.to_string()),
            (Kind::Text(_) | Kind::JsonText, Value::Bytes(bytes))
            | (Kind::Geometry, Value::Geometry(bytes))
            | (Kind::Vector(_), Value::Vector(bytes) | Value::Bytes(bytes)) => {
                return Some(hex(bytes));
            }
            (Kind::Binary(_, filled), Value::Bytes(bytes)) => {
                let mut bytes = bytes.to_vec();
                bytes.resize(bytes.len().max(*filled), 0);
                return Some(hex(&bytes));
            }
            (Kind::Text(_) | Kind::Binary(..), Value::Compressed(compressed)) => {
                compressed.decompress(1 << 20, &mut text).unwrap();
                return Some(hex(&text));
            }
            (Kind::Json, Value::Json(document)) => {
                document.write_text(JsonStyle::Server, &mut text).unwrap();
            }
            (Kind::Json, Value::JsonDiffs(diffs)) => {
                let before = before.expect("the document before");
                diffs.write_text(before, JsonStyle::Server, &mut text).unwrap();
            }
            (Kind::Uuid, Value::Bytes(bytes)) => {
                let mut text = hex(&filled::<16>(bytes)).to_lowercase();
                for at in [20, 16, 12, 8] {
                    text.insert(at, '-');
                }
                return Some(text);
            }
            (Kind::Inet4, Value::Bytes(bytes)) => {
                return Some(std::net::Ipv4Addr::from(filled(bytes)).to_string());
            }
            (Kind::Inet6, Value::Bytes(bytes)) => {
                return Some(std::net::Ipv6Addr::from(filled(bytes)).to_string());
            }
            (_, other) => panic!("{other:?} in {}", self.declared),
        }
        Some(String::from_utf8(text).unwrap())
    }
}

/// A number with all its bits.
fn bits_of(number: f64) -> String {
    format!("{number:e} {:016x}", number.to_bits())
}

fn fraction(micros: u64, digits: u32) -> String {
    let digits = usize::try_from(digits).unwrap();
    if digits == 0 { String::new() } else { format!(".{}", &format!("{micros:06}")[..digits]) }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The bytes with the zeros that the log leaves out.
fn filled<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

/// Literals of all columns, one row of them.
pub(super) fn row(columns: &[Column], dialect: Dialect) -> Vec<BoxedStrategy<String>> {
    columns.iter().map(|column| column.literal(dialect)).collect()
}

/// Columns of a table.
pub(super) fn columns(dialect: Dialect) -> BoxedStrategy<Vec<Column>> {
    vec(column(dialect), 1..12).boxed()
}
