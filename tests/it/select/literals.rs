//! SQL literals: edge values and random ones, as strategies.

use std::fmt::Write as _;

use holdfast_tests::server::Flavour;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

type Literals = BoxedStrategy<String>;

fn one_of(texts: &[&str]) -> Literals {
    select(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).boxed()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Text in UTF-8, whatever its characters are.
fn quoted(text: &str) -> String {
    format!("_utf8mb4 x'{}'", hex(text.as_bytes()))
}

/// Around the limits of every width, and beyond.
pub(super) fn integer(bits: u32) -> Literals {
    let edges = (0..=bits, -1..=1_i128, any::<bool>()).prop_map(|(bits, step, is_negative)| {
        let number = (1_i128 << bits) + step;
        (if is_negative { -number } else { number }).to_string()
    });
    let numbers = any::<i64>().prop_map(move |number| (number >> (64 - bits.min(63))).to_string());
    prop_oneof![edges, numbers].boxed()
}

pub(super) fn bits(bits: u32) -> Literals {
    let all = u64::MAX >> (64 - bits);
    prop_oneof![select(vec![0, 1, all, all ^ 1]), any::<u64>().prop_map(move |number| number & all)]
        .prop_map(|number| number.to_string())
        .boxed()
}

pub(super) fn float(is_single: bool) -> Literals {
    let edges = [
        "0e0",
        "-0e0",
        "1e0",
        "-1.5e0",
        "3.4028234663852886e38",
        "-3.4028235e38",
        "1.1754943508222875e-38",
        "1.401298464324817e-45",
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "2.2250738585072014e-308",
        "5e-324",
        "0.1e0",
        "16777217e0",
        "9007199254740993e0",
        "1e15",
        "1e16",
        "123456.789e0",
    ];
    let random = if is_single {
        any::<f32>().prop_map(|number| format!("{number:e}")).boxed()
    } else {
        any::<f64>().prop_map(|number| format!("{number:e}")).boxed()
    };
    let random = random.prop_filter("a number", |text| !text.contains(['N', 'i']));
    prop_oneof![one_of(&edges), random].boxed()
}

pub(super) fn decimal(precision: u32, scale: u32) -> Literals {
    let digits = usize::try_from(precision).unwrap_or(65);
    let scale = usize::try_from(scale).unwrap_or_default();
    // Zeros and nines more often: groups of nine digits have their own layout.
    let digit = prop_oneof![Just('0'), Just('9'), proptest::char::range('0', '9')];
    (vec(digit, digits), 0..=digits, any::<bool>())
        .prop_map(move |(mut digits, zeros, is_negative)| {
            digits[..zeros].fill('0');
            let whole = digits.len() - scale;
            let (whole, part) = digits.split_at(whole);
            let text = |digits: &[char]| digits.iter().collect::<String>();
            let sign = if is_negative { "-" } else { "" };
            // A dot without digits on one side is no number.
            format!("{sign}0{}.{}0", text(whole), text(part))
        })
        .boxed()
}

pub(super) fn year() -> Literals {
    prop_oneof![
        one_of(&["0", "'0'", "'00'", "69", "70"]),
        (1901..=2155_u32).prop_map(|year| year.to_string())
    ]
    .boxed()
}

pub(super) fn date() -> Literals {
    let edges = [
        "'0000-00-00'",
        "'2024-00-00'",
        "'2024-02-31'",
        "'0001-01-01'",
        "'9999-12-31'",
        "'0000-01-01'",
    ];
    let random = (0..=9999_u32, 0..=12_u32, 0..=31_u32)
        .prop_map(|(year, month, day)| format!("'{year:04}-{month:02}-{day:02}'"));
    prop_oneof![1 => one_of(&edges), 3 => random].boxed()
}

pub(super) fn time() -> Literals {
    let edges = [
        "'838:59:59'",
        "'-838:59:59.999999'",
        "'00:00:00'",
        "'-00:00:00.000001'",
        "'-00:00:01'",
        "'-00:00:00.9'",
        "'00:00:00.999999'",
    ];
    let random = (any::<bool>(), 0..=838_u32, 0..=59_u32, 0..=59_u32, 0..=999_999_u32).prop_map(
        |(is_negative, hours, minutes, seconds, micros)| {
            let sign = if is_negative { "-" } else { "" };
            format!("'{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}'")
        },
    );
    prop_oneof![1 => one_of(&edges), 3 => random].boxed()
}

/// DATETIME and TIMESTAMP up to a year.
pub(super) fn datetime(last: u32) -> Literals {
    let edges = [
        "'0000-00-00 00:00:00'",
        "'1970-01-01 00:00:01'",
        "'1970-01-01 00:00:00.000001'",
        "'2038-01-19 03:14:07.499999'",
        "'9999-12-31 23:59:59'",
        "'2024-02-29 23:59:59.5'",
        "'1000-01-01 00:00:00.000001'",
        "'2000-00-00 00:00:00'",
        "'2024-02-31 01:02:03'",
    ];
    let first = if last > 2038 { 0 } else { 1970 };
    let clock = (0..=23_u32, 0..=59_u32, 0..=59_u32, 0..=999_999_u32);
    let random = (first..=last, 1..=12_u32, 1..=31_u32, clock).prop_map(
        |(year, month, day, (hour, minute, second, micros))| {
            format!("'{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}'")
        },
    );
    prop_oneof![1 => one_of(&edges), 3 => random].boxed()
}

/// Text of about so many characters at most: short, around a length byte's end, or long.
pub(super) fn text(length: usize) -> Literals {
    let character = prop_oneof![
        8 => proptest::char::range(' ', '~'),
        2 => select(vec!['\0', '\n', '\'', '\\', 'ä', 'ß', 'Ж', 'я', '中', '表', '€', '😀', ' ']),
        1 => any::<char>(),
    ];
    let short = vec(character.clone(), 0..=length.min(20));
    let random = short.prop_map(|text| quoted(&text.into_iter().collect::<String>()));
    let near = select(vec![length, length.saturating_sub(1), 255.min(length), 256.min(length)]);
    let repeated = (character, near).prop_map(|(character, count)| {
        format!("REPEAT({}, {count})", quoted(&character.to_string()))
    });
    prop_oneof![3 => random, 1 => repeated].boxed()
}

pub(super) fn binary(size: usize) -> Literals {
    // Zeros at the end are left out of the log where the length is fixed.
    let byte = prop_oneof![Just(0), any::<u8>()];
    let random = vec(byte, 0..=size.min(40)).prop_map(|bytes| format!("x'{}'", hex(&bytes)));
    let near = select(vec![size, size.saturating_sub(1), 255.min(size), 256.min(size)]);
    let repeated =
        (any::<u8>(), near).prop_map(|(byte, count)| format!("REPEAT(x'{byte:02x}', {count})"));
    prop_oneof![3 => random, 1 => repeated].boxed()
}

/// Any document, as JSON text.
fn document() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<i16>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        (-1000..1000_i32).prop_map(|number| (f64::from(number) / 8.0).into()),
        "[ -~äЖ中😀\\n\"\\\\]{0,20}".prop_map(Into::into),
        (100..400_usize).prop_map(|count| "x".repeat(count).into()),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Into::into),
            vec(("[a-zÄ ]{0,6}", inner), 0..8)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Values that JSON text has no form for.
fn opaque() -> Literals {
    let values = [
        "CAST('2024-02-29' AS DATE)",
        "CAST('0000-00-00' AS DATE)",
        "CAST('-12:34:56.789' AS TIME(3))",
        "CAST('838:59:59' AS TIME)",
        "CAST('2024-02-29 01:02:03.456789' AS DATETIME(6))",
        "CAST(-1.50 AS DECIMAL(10,3))",
        "CAST('12345678901234567890123456789.000000001' AS DECIMAL(65,9))",
        "18446744073709551615",
        "x'00ff10'",
        "b'101'",
        "1e300",
        "0.1",
        "TRUE",
        "NULL",
        "'text'",
    ];
    let values = vec(one_of(&values), 0..6);
    let array = values.clone().prop_map(|values| format!("JSON_ARRAY({})", values.join(", ")));
    let object = values.prop_map(|values| {
        let members =
            values.iter().enumerate().map(|(index, value)| format!("'k{index}', {value}"));
        format!("JSON_OBJECT({})", members.collect::<Vec<_>>().join(", "))
    });
    prop_oneof![array, object].boxed()
}

pub(super) fn json_text() -> Literals {
    document().prop_map(|document| quoted(&document.to_string())).boxed()
}

pub(super) fn json() -> Literals {
    // Above 64 KiB a document has wider offsets.
    let large = (65_000..66_000_u32, document()).prop_map(|(count, document)| {
        let member = quoted(&document.to_string());
        format!("JSON_OBJECT('a', REPEAT('x', {count}), 'b', CAST({member} AS JSON), 'c', JSON_ARRAY(1, 'd'))")
    });
    prop_oneof![8 => json_text(), 4 => opaque(), 1 => large].boxed()
}

/// A change of a document, which may be logged as such.
pub(super) fn json_change(name: &str) -> Literals {
    let name = name.to_owned();
    let functions = ["JSON_SET", "JSON_REPLACE", "JSON_REMOVE"];
    let paths = ["'$.a'", "'$.b'", "'$.k0'", "'$[0]'", "'$[1].a'", "'$.c[1]'", "'$.b.a'"];
    let value = prop_oneof![
        one_of(&["1", "'y'", "NULL", "1.5e0", "'a longer text than there was'"]),
        document().prop_map(|document| format!("CAST({} AS JSON)", quoted(&document.to_string()))),
    ];
    (select(functions.to_vec()), one_of(&paths), value)
        .prop_map(move |(function, path, value)| match function {
            "JSON_REMOVE" => format!("JSON_REMOVE({name}, {path})"),
            _ => format!("{function}({name}, {path}, {value})"),
        })
        .boxed()
}

/// A geometry of the column's type.
pub(super) fn geometry(kind: &str) -> Literals {
    let kind = kind.to_owned();
    let points = vec((-80_i32..80, -80_i32..80), 4);
    (points, select(vec![0, 4326]), 0..7_usize)
        .prop_map(move |(points, srid, which)| {
            let kinds = [
                "POINT",
                "LINESTRING",
                "POLYGON",
                "MULTIPOINT",
                "MULTILINESTRING",
                "MULTIPOLYGON",
                "GEOMETRYCOLLECTION",
            ];
            let kind = if kind == "GEOMETRY" { kinds[which] } else { &kind };
            let at = |index: usize| {
                let (x, y) = points[index];
                format!("{} {}", f64::from(x) / 4.0, f64::from(y) * 1.5 / 2.0)
            };
            let line = format!("({}, {}, {})", at(0), at(1), at(2));
            let ring = format!("(({0}, {1}, {2}, {0}))", at(0), at(1), at(3));
            let text = match kind {
                "POINT" => format!("POINT({})", at(0)),
                "LINESTRING" => format!("LINESTRING{line}"),
                "POLYGON" => format!("POLYGON{ring}"),
                "MULTIPOINT" => format!("MULTIPOINT({}, {})", at(0), at(1)),
                "MULTILINESTRING" => format!("MULTILINESTRING({line}, {line})"),
                "MULTIPOLYGON" => format!("MULTIPOLYGON({ring})"),
                _ => format!("GEOMETRYCOLLECTION(POINT({}), LINESTRING{line})", at(3)),
            };
            format!("ST_GeomFromText('{text}', {srid})")
        })
        .boxed()
}

pub(super) fn vector(size: usize, flavour: Flavour) -> Literals {
    let function = match flavour {
        Flavour::MySql => "STRING_TO_VECTOR",
        Flavour::MariaDb => "VEC_FromText",
    };
    vec(-1e6..1e6_f32, size).prop_map(move |numbers| format!("{function}('{numbers:?}')")).boxed()
}

pub(super) fn uuid() -> Literals {
    prop_oneof![
        one_of(&[
            "'00000000-0000-0000-0000-000000000000'",
            "'ffffffff-ffff-ffff-ffff-ffffffffff00'"
        ]),
        any::<u128>().prop_map(|bits| {
            let mut text = format!("{bits:032x}");
            for at in [20, 16, 12, 8] {
                text.insert(at, '-');
            }
            format!("'{text}'")
        }),
    ]
    .boxed()
}

pub(super) fn inet4() -> Literals {
    let random = any::<u32>().prop_map(|bits| format!("'{}'", std::net::Ipv4Addr::from(bits)));
    prop_oneof![one_of(&["'0.0.0.0'", "'1.2.0.0'", "'255.255.255.255'"]), random].boxed()
}

pub(super) fn inet6() -> Literals {
    let random = any::<u128>().prop_map(|bits| format!("'{}'", std::net::Ipv6Addr::from(bits)));
    prop_oneof![one_of(&["'::'", "'::1'", "'fe80::'", "'::ffff:1.2.3.4'"]), random].boxed()
}
