//! Values as rows events have them, for the types that the testkit takes only as bytes.

/// Bytes that 0 to 9 digits of a DECIMAL take.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// A DECIMAL: groups of nine digits from the point to both sides, big-endian, top bit set, all flipped when negative
/// (MySQL, `strings/decimal.cc`, `decimal2bin`). `digits` are all digits of the column, each 0 to 9.
#[must_use]
pub fn decimal(digits: &[u8], scale: usize, is_negative: bool) -> Vec<u8> {
    let (before, after) = digits.split_at(digits.len() - scale);
    let (part, groups) = before.split_at(before.len() % 9);
    let mut bytes: Vec<u8> = Vec::new();
    for group in std::iter::once(part).chain(groups.chunks(9)).chain(after.chunks(9)) {
        let value = group.iter().fold(0_u32, |value, digit| value * 10 + u32::from(*digit));
        let width = DIGIT_BYTES.get(group.len()).copied().unwrap_or_default();
        bytes.extend(value.to_be_bytes().iter().skip(4 - width));
    }
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    if is_negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    bytes
}

/// A DATE.
#[must_use]
pub fn date(year: u32, month: u32, day: u32) -> Vec<u8> {
    (year << 9 | month << 5 | day).to_le_bytes().into_iter().take(3).collect()
}

/// A DATETIME with `fsp` fraction digits.
#[must_use]
pub fn datetime(date: [u64; 3], clock: [u64; 3], micros: u32, fsp: u8) -> Vec<u8> {
    let [year, month, day] = date;
    let [hour, minute, second] = clock;
    let date = (year * 13 + month) << 5 | day;
    let packed = 1 << 39 | date << 17 | hour << 12 | minute << 6 | second;
    let mut bytes = tail(packed.to_be_bytes(), 3);
    bytes.extend(fraction(micros, fsp));
    bytes
}

/// A TIMESTAMP with `fsp` fraction digits.
#[must_use]
pub fn timestamp(seconds: u32, micros: u32, fsp: u8) -> Vec<u8> {
    let mut bytes = seconds.to_be_bytes().to_vec();
    bytes.extend(fraction(micros, fsp));
    bytes
}

/// A TIME with `fsp` fraction digits.
#[must_use]
pub fn time(is_negative: bool, clock: [i64; 3], micros: u32, fsp: u8) -> Vec<u8> {
    let [hour, minute, second] = clock;
    let fraction = fraction(micros, fsp);
    let bits = 8 * fraction.len();
    let low = fraction.iter().fold(0, |low, byte| low << 8 | i64::from(*byte));
    let size = (hour << 12 | minute << 6 | second) << bits | low;
    let packed = (0x80_0000 << bits) + if is_negative { -size } else { size };
    tail(packed.to_be_bytes(), 5 - fraction.len())
}

/// The fraction of a second: `ceil(fsp / 2)` bytes, big-endian, in units of 10 ms, 100 µs or 1 µs.
fn fraction(micros: u32, fsp: u8) -> Vec<u8> {
    let digits = 10_u32.pow(6 - u32::from(fsp));
    let micros = micros / digits * digits;
    match fsp.div_ceil(2) {
        0 => Vec::new(),
        1 => tail((micros / 10_000).to_be_bytes(), 3),
        2 => tail((micros / 100).to_be_bytes(), 2),
        _ => tail(micros.to_be_bytes(), 1),
    }
}

/// What is left behind the first `skip` bytes.
fn tail<const N: usize>(bytes: [u8; N], skip: usize) -> Vec<u8> {
    bytes.into_iter().skip(skip).collect()
}

/// A JSON value, to be written in the server's binary form (MySQL, `sql-common/json_binary.h`, the small format).
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// A number of 16 bits, which stands in its entry.
    Int(i16),
    /// `true`, `false`, or `null` for none, which stands in its entry.
    Literal(Option<bool>),
    /// A number with a fraction.
    Double(f64),
    /// A text of less than 128 bytes.
    Text(Vec<u8>),
    /// Values in order.
    Array(Vec<Self>),
    /// Members; the keys must be sorted by length, then by bytes.
    Object(Vec<(&'static str, Self)>),
}

impl Json {
    /// The document: a type and the value.
    #[must_use]
    pub fn document(&self) -> Vec<u8> {
        let mut bytes = vec![self.code()];
        bytes.extend(self.body());
        bytes
    }

    const fn code(&self) -> u8 {
        match self {
            Self::Object(_) => 0,
            Self::Array(_) => 2,
            Self::Literal(_) => 4,
            Self::Int(_) => 5,
            Self::Double(_) => 11,
            Self::Text(_) => 12,
        }
    }

    fn body(&self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_le_bytes().to_vec(),
            Self::Literal(literal) => vec![match literal {
                None => 0,
                Some(true) => 1,
                Some(false) => 2,
            }],
            Self::Double(number) => number.to_le_bytes().to_vec(),
            Self::Text(text) => {
                let len = u8::try_from(text.len()).expect("a text is short");
                std::iter::once(len).chain(text.iter().copied()).collect()
            }
            Self::Array(values) => container(&[], &values.iter().collect::<Vec<_>>()),
            Self::Object(members) => {
                let keys = members.iter().map(|(key, _)| *key).collect::<Vec<_>>();
                container(&keys, &members.iter().map(|(_, value)| value).collect::<Vec<_>>())
            }
        }
    }
}

/// Count, size, key entries (offset, length), value entries (type, offset or value), keys, values.
fn container(keys: &[&str], values: &[&Json]) -> Vec<u8> {
    let short = |number: usize| u16::try_from(number).expect("a small document").to_le_bytes();
    let mut keys_at = 4 + 4 * keys.len() + 3 * values.len();
    let mut entries = Vec::new();
    for key in keys {
        entries.extend(short(keys_at));
        entries.extend(short(key.len()));
        keys_at += key.len();
    }
    let mut bodies = Vec::new();
    for value in values {
        entries.push(value.code());
        if let Json::Int(_) | Json::Literal(_) = value {
            let mut inline = value.body();
            inline.resize(2, 0);
            entries.extend(inline);
        } else {
            entries.extend(short(keys_at + bodies.len()));
            bodies.extend(value.body());
        }
    }
    let mut bytes = short(values.len()).to_vec();
    bytes.extend(short(keys_at + bodies.len()));
    bytes.extend(entries);
    bytes.extend(keys.concat().bytes());
    bytes.extend(bodies);
    bytes
}
