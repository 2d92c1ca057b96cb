//! The column types of random workloads, each with the values that go into it.
//!
//! Left out is what Holdfast reads otherwise than Debezium on purpose (`docs/DIFFERENCES.md`), such as FLOAT(M,D), labels
//! with escapes, the year 0 and days before 1583, and JSON numbers whose spelling differs. The cases of `tests/cases`
//! have those.

use std::fmt::Write as _;

use super::Limits;
use crate::random::Random;
use crate::server::Flavour;

/// A type as it is written in a definition.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) sql: &'static str,
    values: Values,
    /// Literals for DEFAULT; none where there can't be one.
    pub(super) defaults: &'static [&'static str],
}

/// What goes into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Values {
    Int(i64, i64),
    /// BIGINT UNSIGNED.
    Large,
    /// Digits before and after the point.
    Decimal(u32, u32),
    Float,
    Double,
    Bits(u32),
    /// Characters at most, and the words that it can hold.
    Text(usize, &'static [&'static str]),
    Bytes(usize),
    Date,
    Time(usize),
    DateTime(usize),
    Timestamp(usize),
    Year,
    Label(&'static [&'static str]),
    Json,
    Point,
    Uuid,
    Inet6,
}

const WORDS: &[&str] = &["", "a", "Word", "it''s", "a\\\\b", "line\\nbreak", "tab\\there", "q\"q"];
const LATIN: &[&str] = &["", "a", "é", "Größe", "ÿ", "x y "];
const CYRILLIC: &[&str] = &["", "a", "Привет", "ё"];
const CHINESE: &[&str] = &["", "a", "中文", "漢字 x"];
const ANY: &[&str] = &["", "a", "é", "中文", "😀", "ß𝄞", "\\0"];

const fn kind(sql: &'static str, values: Values, defaults: &'static [&'static str]) -> Kind {
    Kind { sql, values, defaults }
}

const COMMON: &[Kind] = &[
    kind("TINYINT", Values::Int(-128, 127), &["1", "-5", "'7'"]),
    kind("TINYINT UNSIGNED", Values::Int(0, 255), &["200"]),
    kind("TINYINT(1)", Values::Int(-128, 127), &["1", "0"]),
    kind("BOOL", Values::Int(0, 1), &["TRUE", "0"]),
    kind("SMALLINT", Values::Int(-32768, 32767), &["-300"]),
    kind("SMALLINT UNSIGNED", Values::Int(0, 65535), &["65535"]),
    kind("MEDIUMINT", Values::Int(-8_388_608, 8_388_607), &["70000"]),
    kind("MEDIUMINT UNSIGNED", Values::Int(0, 16_777_215), &["0"]),
    kind("INT", Values::Int(-2_147_483_648, 2_147_483_647), &["0", "5", "-1"]),
    kind("INT(5) UNSIGNED ZEROFILL", Values::Int(0, 4_294_967_295), &["42"]),
    kind("INTEGER UNSIGNED", Values::Int(0, 4_294_967_295), &["4294967295"]),
    kind("BIGINT", Values::Int(i64::MIN, i64::MAX), &["0", "-9223372036854775808"]),
    kind("BIGINT UNSIGNED", Values::Large, &["0", "18446744073709551615"]),
    kind("DECIMAL(5,2)", Values::Decimal(3, 2), &["1.50", "-0.01", "2"]),
    kind("DECIMAL(10)", Values::Decimal(10, 0), &["7"]),
    kind("NUMERIC(30,10)", Values::Decimal(20, 10), &["0.0000000001"]),
    kind("DECIMAL(18,9)", Values::Decimal(9, 9), &["0"]),
    kind("FLOAT", Values::Float, &["1.5", "0"]),
    kind("DOUBLE", Values::Double, &["-2.25", "1e10"]),
    kind("DOUBLE PRECISION", Values::Double, &["0.1"]),
    kind("BIT", Values::Bits(1), &["b'1'", "b'0'"]),
    kind("BIT(7)", Values::Bits(7), &["b'101'"]),
    kind("BIT(33)", Values::Bits(33), &["b'1000000000000000000000001'"]),
    kind("CHAR(9)", Values::Text(9, WORDS), &["'x'", "''"]),
    kind("VARCHAR(40)", Values::Text(40, WORDS), &["'word'", "''"]),
    kind("VARCHAR(20) CHARACTER SET latin1", Values::Text(20, LATIN), &["'lat'"]),
    kind("CHAR(8) CHARACTER SET latin1", Values::Text(8, LATIN), &["'l'"]),
    kind("VARCHAR(20) CHARACTER SET cp1251", Values::Text(20, CYRILLIC), &["'c'"]),
    kind("VARCHAR(20) CHARACTER SET gbk", Values::Text(20, CHINESE), &["'g'"]),
    kind("VARCHAR(20) CHARACTER SET ucs2", Values::Text(20, CHINESE), &[]),
    kind("VARCHAR(20) CHARACTER SET utf8mb4", Values::Text(20, ANY), &["'u'"]),
    kind("NVARCHAR(12)", Values::Text(12, CHINESE), &["'n'"]),
    kind("NCHAR(5)", Values::Text(5, CHINESE), &[]),
    kind("TINYTEXT", Values::Text(30, WORDS), &[]),
    kind("TEXT CHARACTER SET utf8mb4", Values::Text(200, ANY), &[]),
    kind("MEDIUMTEXT", Values::Text(300, WORDS), &[]),
    kind("LONGTEXT", Values::Text(50, WORDS), &[]),
    kind("BINARY(4)", Values::Bytes(4), &[]),
    kind("VARBINARY(30)", Values::Bytes(30), &[]),
    kind("TINYBLOB", Values::Bytes(20), &[]),
    kind("BLOB", Values::Bytes(300), &[]),
    kind("LONGBLOB", Values::Bytes(40), &[]),
    kind("DATE", Values::Date, &["'2020-01-02'"]),
    kind("TIME", Values::Time(0), &["'01:02:03'"]),
    kind("TIME(3)", Values::Time(3), &["'10:00:00.5'"]),
    kind("TIME(6)", Values::Time(6), &[]),
    kind("DATETIME", Values::DateTime(0), &["'2020-01-02 03:04:05'", "CURRENT_TIMESTAMP"]),
    kind("DATETIME(3)", Values::DateTime(3), &["'2020-01-02 03:04:05.678'"]),
    kind("DATETIME(6)", Values::DateTime(6), &["CURRENT_TIMESTAMP(6)"]),
    kind("TIMESTAMP", Values::Timestamp(0), &["'2020-01-02 03:04:05'", "CURRENT_TIMESTAMP"]),
    kind("TIMESTAMP(2)", Values::Timestamp(2), &["CURRENT_TIMESTAMP(2)"]),
    kind("TIMESTAMP(6)", Values::Timestamp(6), &["'2020-01-02 03:04:05.000001'"]),
    kind("YEAR", Values::Year, &["2020", "'1999'"]),
    kind("ENUM('a','b','long label','ü')", Values::Label(&["a", "b", "long label"]), &["'b'"]),
    kind("ENUM('x')", Values::Label(&["x"]), &["'x'"]),
    kind("SET('r','w','x')", Values::Label(&["r", "w", "r,x", "r,w,x", ""]), &["'r,x'", "''"]),
    kind("JSON", Values::Json, &[]),
    kind("POINT", Values::Point, &[]),
    kind("GEOMETRY", Values::Point, &[]),
];

const MARIADB: &[Kind] = &[kind("UUID", Values::Uuid, &[]), kind("INET6", Values::Inet6, &[])];

/// Types of primary keys, with few values, so that rows meet.
const KEYS: &[Kind] = &[
    kind("INT", Values::Int(0, 30), &[]),
    kind("INT", Values::Int(0, 30), &[]),
    kind("BIGINT UNSIGNED", Values::Int(0, 30), &[]),
    kind("SMALLINT", Values::Int(-9, 9), &[]),
    kind("VARCHAR(20)", Values::Label(&["k1", "k2", "k3", "K 4", "k''5", "k6"]), &[]),
    kind("CHAR(3)", Values::Label(&["a", "b", "c", "d", "e"]), &[]),
    kind("DECIMAL(6,2)", Values::Decimal(1, 0), &[]),
    kind("VARBINARY(4)", Values::Bytes(1), &[]),
    kind("DATE", Values::Label(&["2020-01-01", "2020-02-29", "1999-12-31", "2037-01-01"]), &[]),
    kind("ENUM('p','q','r')", Values::Label(&["p", "q", "r"]), &[]),
];

/// A type of any column.
pub(super) fn any(random: &mut Random, flavour: Flavour) -> &'static Kind {
    if flavour == Flavour::MariaDb && random.one_in(20) {
        return random.one(MARIADB);
    }
    random.one(COMMON)
}

/// A type of a column of a key.
pub(super) fn of_key(random: &mut Random) -> &'static Kind {
    random.one(KEYS)
}

impl Kind {
    /// A type that most values of this one convert to.
    pub(super) fn wider(&'static self, random: &mut Random) -> &'static Self {
        let fits = |other: &&Self| match self.values {
            Values::Int(..) | Values::Large => {
                matches!(other.values, Values::Int(..) | Values::Large | Values::Decimal(..))
            }
            Values::Decimal(..) | Values::Float | Values::Double => {
                matches!(other.values, Values::Decimal(..) | Values::Float | Values::Double)
            }
            Values::Text(..) | Values::Label(_) => matches!(other.values, Values::Text(..)),
            Values::Bytes(_) => matches!(other.values, Values::Bytes(_)),
            Values::Date | Values::DateTime(_) | Values::Timestamp(_) => {
                matches!(other.values, Values::Date | Values::DateTime(_))
            }
            Values::Time(_) => matches!(other.values, Values::Time(_)),
            Values::Bits(_)
            | Values::Year
            | Values::Json
            | Values::Point
            | Values::Uuid
            | Values::Inet6 => other.values == self.values,
        };
        let choices: Vec<&'static Self> = COMMON.iter().filter(fits).collect();
        if choices.is_empty() { self } else { random.one::<&'static Self>(&choices) }
    }

    /// A literal.
    pub(super) fn value(&self, random: &mut Random, limits: Limits) -> String {
        match self.values {
            Values::Int(least, most) => int(random, least, most).to_string(),
            Values::Large => match random.below(3) {
                0 => "18446744073709551615".to_owned(),
                1 => "9223372036854775808".to_owned(),
                _ => random.below(1_000_000).to_string(),
            },
            Values::Decimal(before, after) => decimal(random, before, after),
            Values::Float => number(random, &["0.1", "123456.789", "1e10", "-1e-7", "16777217"]),
            Values::Double => number(random, &["0.1", "3.14159", "1e100", "-1e-7", "1e21"]),
            Values::Bits(length) => {
                format!("b'{:b}'", random.below(1 << 40) & ((1_u64 << length) - 1))
            }
            Values::Text(most, words) => text(random, most, words),
            Values::Bytes(most) => bytes(random, most),
            Values::Date => date(random, limits),
            Values::Time(digits) => time(random, digits, limits),
            Values::DateTime(digits) => match date(random, limits).as_str() {
                "'0000-00-00'" => "'0000-00-00 00:00:00'".to_owned(),
                day => format!("{} {}'", day.trim_end_matches('\''), clock(random, digits)),
            },
            Values::Timestamp(digits) => {
                if limits.zero_dates && random.one_in(9) {
                    return "'0000-00-00 00:00:00'".to_owned();
                }
                let (year, month, day) =
                    (1971 + random.below(66), 1 + random.below(12), 1 + random.below(28));
                format!("'{year}-{month:02}-{day:02} {}'", clock(random, digits))
            }
            Values::Year => (1901 + random.below(255)).to_string(),
            Values::Label(labels) => format!("'{}'", random.one(labels)),
            Values::Json => format!("'{}'", json(random, 0)),
            Values::Point => {
                format!("ST_GeomFromText('POINT({} {}.5)')", random.below(180), random.below(90))
            }
            Values::Uuid => format!(
                "'{:08x}-0000-4000-8000-{:012x}'",
                random.below(1 << 32),
                1 + random.below(1 << 40)
            ),
            Values::Inet6 => format!("'2001:db8::{:x}'", 1 + random.below(1 << 16)),
        }
    }
}

fn int(random: &mut Random, least: i64, most: i64) -> i64 {
    match random.below(6) {
        0 => least,
        1 => most,
        2 => 0.clamp(least, most),
        _ => {
            let span = u64::try_from(i128::from(most) - i128::from(least)).unwrap_or(u64::MAX - 1);
            let above = i64::try_from(random.below(span.saturating_add(1).min(1 << 31)))
                .unwrap_or_default();
            least.saturating_add(above)
        }
    }
}

fn digits(random: &mut Random, count: u32) -> String {
    (0..count).map(|_| char::from(b'0' + u8::try_from(random.below(10)).unwrap_or(0))).collect()
}

fn decimal(random: &mut Random, before: u32, after: u32) -> String {
    let sign = random.pick("", &["-", ""]);
    let whole = match random.below(4) {
        0 => "0".to_owned(),
        1 => "9".repeat(usize::try_from(before).unwrap_or(1)),
        _ => digits(random, 1 + before / 3),
    };
    match (after, random.below(3)) {
        (0, _) | (_, 0) => format!("{sign}{whole}"),
        (_, 1) => format!("{sign}{whole}.{}", digits(random, 1)),
        _ => format!("{sign}{whole}.{}", digits(random, after)),
    }
}

/// Numbers whose text is the same in every Java.
fn number(random: &mut Random, special: &[&str]) -> String {
    if random.one_in(2) {
        return (*random.one(special)).to_owned();
    }
    let sign = random.pick("", &["-"]);
    let quarters = random.pick("0", &["25", "5", "75"]);
    format!("{sign}{}.{quarters}", random.below(10_000))
}

fn text(random: &mut Random, most: usize, words: &[&str]) -> String {
    let mut text = String::new();
    let mut left = most;
    for _ in 0..=random.below(4) {
        let word = random.one(words);
        let length = word.chars().count();
        if length > left {
            break;
        }
        left -= length;
        text.push_str(word);
    }
    format!("'{text}'")
}

fn bytes(random: &mut Random, most: usize) -> String {
    let length = random.below(u64::try_from(most.min(24)).unwrap_or(1) + 1);
    let mut literal = "x'".to_owned();
    for _ in 0..length {
        let any = random.below(256);
        let byte = random.pick(0, &[255, 0x41, 0x80, any]);
        // Writing to a String cannot fail.
        let _ = write!(literal, "{byte:02x}");
    }
    literal.push('\'');
    literal
}

fn date(random: &mut Random, limits: Limits) -> String {
    if limits.zero_dates && random.one_in(8) {
        return random.pick("'0000-00-00'", &["'2024-00-10'", "'2024-05-00'"]).to_owned();
    }
    let (first, years) = if limits.near_dates { (1700, 560) } else { (1583, 8416) };
    let year = if random.one_in(3) { 1970 + random.below(60) } else { first + random.below(years) };
    format!("'{year:04}-{:02}-{:02}'", 1 + random.below(12), 1 + random.below(28))
}

/// Hours, minutes, seconds and a fraction of at most so many digits.
fn clock(random: &mut Random, fraction: usize) -> String {
    let mut text =
        format!("{:02}:{:02}:{:02}", random.below(24), random.below(60), random.below(60));
    if fraction > 0 && !random.one_in(3) {
        let length = 1 + random.below(u64::try_from(fraction).unwrap_or(1));
        let _ = write!(text, ".{}", digits(random, u32::try_from(length).unwrap_or(1)));
    }
    text
}

fn time(random: &mut Random, fraction: usize, limits: Limits) -> String {
    let text = clock(random, fraction);
    if limits.day_times || random.one_in(2) {
        return format!("'{text}'");
    }
    match random.below(4) {
        0 => "'-838:59:59'".to_owned(),
        1 => "'838:59:59'".to_owned(),
        2 => format!("'-{text}'"),
        _ => format!("'{}{text}'", 1 + random.below(7)),
    }
}

fn json(random: &mut Random, depth: u32) -> String {
    match random.below(if depth > 2 { 7 } else { 10 }) {
        0 => "null".to_owned(),
        1 => random.pick("true", &["false"]).to_owned(),
        2 => (i64::try_from(random.below(4_000_000)).unwrap_or_default() - 2_000_000).to_string(),
        3 => random
            .pick("1.5", &["-0.25", "1234.5", "0.0", "9007199254740993", "-4294967296"])
            .to_owned(),
        4 | 5 => {
            format!("\"{}\"", random.pick("", &["a", "é", "中😀", "it''s", "a/b", "q\\\\\"q"]))
        }
        6 => "{}".to_owned(),
        7 => {
            let elements: Vec<String> =
                (0..random.below(4)).map(|_| json(random, depth + 1)).collect();
            format!("[{}]", elements.join(", "))
        }
        _ => {
            let mut members = Vec::new();
            for name in ["b", "a", "aa", "key é"] {
                if random.one_in(2) {
                    members.push(format!("\"{name}\": {}", json(random, depth + 1)));
                }
            }
            format!("{{{}}}", members.join(","))
        }
    }
}
