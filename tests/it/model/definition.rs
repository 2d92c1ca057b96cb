//! A table's definition in words that the model and the server share.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a step names the types that are its own; a new type is compared as it is"
)]

use std::collections::BTreeMap;

use holdfast_history::Tables;
use holdfast_history::schema::{Column, ColumnType, DefaultValue, Table};

/// Definitions by `database.table`.
pub(super) type Definitions = BTreeMap<String, Definition>;

/// One table, a line for each thing that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) columns: Vec<String>,
    /// `None` when the server has no primary key. The model may then have a unique one in its place, which need not be
    /// there any more: records do not say which indexes there are, so the model can't, and Debezium's is the same.
    pub(super) key: Option<Vec<String>>,
    pub(super) charset: String,
    pub(super) comment: String,
}

/// The lines in which a definition of the model differs from the server's.
///
/// Whether a key column is nullable is left out where the model can't know: when its key is a unique one, which a
/// statement may have made nullable, and on MariaDB, which takes NULL for a column of a primary key and ignores it.
pub(super) fn differences(server: &Definition, model: &Definition, mariadb: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let count = server.columns.len().max(model.columns.len());
    let vague: Vec<String> = match &model.key {
        Some(key) if server.key.is_none() || mariadb => {
            key.iter().map(|name| format!("`{name}` ")).collect()
        }
        _ => Vec::new(),
    };
    let known = |line: &str| match vague.iter().any(|name| line.starts_with(name)) {
        true => line.replacen(" NOT NULL ", " NULL ", 1),
        false => line.to_owned(),
    };
    for index in 0..count {
        let (ours, theirs) = (model.columns.get(index), server.columns.get(index));
        if ours.map(|line| known(line)) != theirs.map(|line| known(line)) {
            lines.push(format!("server: {theirs:?}\n    model:  {ours:?}"));
        }
    }
    if server.key.is_some() && server.key != model.key {
        lines.push(format!("key, server: {:?}\n    key, model:  {:?}", server.key, model.key));
    }
    for (what, theirs, ours) in
        [("charset", &server.charset, &model.charset), ("comment", &server.comment, &model.comment)]
    {
        if theirs != ours {
            lines.push(format!("{what}, server: {theirs}\n    {what}, model:  {ours}"));
        }
    }
    lines
}

/// All tables of the model.
pub(super) fn of_model(tables: &Tables, mariadb: bool) -> Definitions {
    tables.iter().map(|table| (table.id.to_string(), of_table(table, mariadb))).collect()
}

/// One table of the model. MariaDB's hidden period columns are in no view of the server.
pub(super) fn of_table(table: &Table, mariadb: bool) -> Definition {
    let columns = table.columns.iter().filter(|column| !column.is_hidden());
    Definition {
        columns: columns.map(|column| of_column(column, mariadb)).collect(),
        key: Some(table.primary_key.clone()),
        charset: charset_name(table.default_charset.as_deref().unwrap_or("-")),
        comment: table.comment.clone().unwrap_or_default(),
    }
}

fn of_column(column: &Column, mariadb: bool) -> String {
    let mut column_type = column.column_type();
    // To MySQL, `binary` is no character set.
    let charset = column.charset.as_deref().filter(|name| *name != "binary");
    let mut charset = charset.filter(|_| column_type.has_charset());
    match column_type {
        // BOOL is TINYINT(1) on the server; the model keeps the word.
        ColumnType::Boolean => column_type = ColumnType::TinyInt { unsigned: false },
        // MariaDB's JSON is a LONGTEXT; the model keeps the word, which decides how Debezium shows it.
        ColumnType::Json if mariadb => {
            column_type = ColumnType::Text;
            charset = Some("utf8mb4");
        }
        _ => {}
    }
    let default = match &column.default {
        DefaultValue::Absent | DefaultValue::Null => None,
        DefaultValue::Expression(text) => Some(text.as_str()),
    };
    Line {
        name: &column.name,
        kind: column_type,
        size: (column.length, column.scale),
        optional: column.optional,
        charset,
        default,
        labels: column.enum_labels(),
        auto: column.auto_incremented,
        comment: column.comment.as_deref().unwrap_or_default(),
    }
    .print()
}

/// A column as `information_schema` shows it.
pub(super) struct ServerColumn {
    pub(super) name: String,
    pub(super) column_type: String,
    pub(super) nullable: String,
    pub(super) charset: Option<String>,
    pub(super) default: Option<String>,
    pub(super) extra: String,
    pub(super) comment: String,
    pub(super) characters: Option<String>,
    pub(super) precision: Option<String>,
    pub(super) scale: Option<String>,
    pub(super) fraction: Option<String>,
}

impl ServerColumn {
    pub(super) fn print(&self, mariadb: bool) -> String {
        let number =
            |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<i32>().ok());
        let (head, rest) = self.column_type.split_once('(').unwrap_or((&self.column_type, ""));
        let (inner, tail) = rest.rsplit_once(')').unwrap_or((rest, ""));
        let kind = ColumnType::from_type_name(&format!("{head} {tail}"), None, None);
        let extra = self.extra.to_ascii_lowercase();
        let default =
            self.default.as_deref().and_then(|text| server_default(text, &extra, mariadb));
        let size = match kind {
            ColumnType::Bit => (number(&self.precision), None),
            ColumnType::Decimal | ColumnType::Float | ColumnType::Double => {
                (number(&self.precision), number(&self.scale))
            }
            ColumnType::Time | ColumnType::DateTime | ColumnType::Timestamp => {
                (number(&self.fraction), None)
            }
            ColumnType::Vector => (inner.parse().ok(), None),
            _ => (number(&self.characters), None),
        };
        let labels = match kind {
            ColumnType::Enum | ColumnType::Set => split_labels(inner),
            _ => Vec::new(),
        };
        Line {
            name: &self.name,
            kind,
            size,
            optional: self.nullable == "YES",
            charset: self.charset.as_deref().filter(|name| kind.has_charset() && *name != "binary"),
            default: default.as_deref(),
            labels,
            auto: extra.contains("auto_increment") || extra.contains("on update"),
            comment: &self.comment,
        }
        .print()
    }
}

/// The value that a default stands for, in the model's words; `None` for what the model does not know.
fn server_default(text: &str, extra: &str, mariadb: bool) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    // LOCALTIMESTAMP keeps its name on MariaDB 11.8.
    let is_now = ["current_timestamp", "localtimestamp"].iter().any(|name| lower.starts_with(name));
    if is_now && (mariadb || extra.contains("default_generated")) {
        return Some(NOW.to_owned());
    }
    if !mariadb {
        return (!extra.contains("default_generated")).then(|| text.to_owned());
    }
    if let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return Some(unescape(inner));
    }
    // MariaDB 11.8 shows bytes as `x'…'`.
    let is_bytes = text.starts_with("b'") || text.starts_with("x'");
    let plain = is_bytes || text.parse::<f64>().is_ok();
    plain.then(|| text.to_owned())
}

/// Debezium's marker for CURRENT_TIMESTAMP, which the model keeps.
const NOW: &str = "1970-01-01 00:00:00";

struct Line<'a> {
    name: &'a str,
    kind: ColumnType,
    size: (Option<i32>, Option<i32>),
    optional: bool,
    charset: Option<&'a str>,
    default: Option<&'a str>,
    labels: Vec<String>,
    auto: bool,
    comment: &'a str,
}

impl Line<'_> {
    fn print(&self) -> String {
        let (length, scale) = self.size;
        let size = match self.kind {
            ColumnType::Decimal => format!("{length:?},{scale:?}"),
            // Without digits after the point, the length only chose between 4 and 8 bytes.
            ColumnType::Float | ColumnType::Double if scale.is_some() => {
                format!("{length:?},{scale:?}")
            }
            ColumnType::Bit | ColumnType::VarChar | ColumnType::VarBinary => format!("{length:?}"),
            // CHAR is CHAR(1).
            ColumnType::Char | ColumnType::Binary => format!("{}", length.unwrap_or(1)),
            ColumnType::Time | ColumnType::DateTime | ColumnType::Timestamp => {
                format!("{}", length.unwrap_or(0))
            }
            ColumnType::Vector => format!("{}", length.unwrap_or(2048)),
            // Display widths are no longer kept by the server; TEXT(n) chose a size class, which decodes alike.
            _ => String::new(),
        };
        let charset = self.charset.map(charset_name).unwrap_or_default();
        // MySQL gives no zeros to a TIMESTAMP in a key, although it does to others.
        let default = self.default.filter(|text| !text.starts_with("0000-00-00"));
        // Of an ENUM or SET in `binary`, MySQL shows the bytes.
        let is_binary =
            matches!(self.kind, ColumnType::Enum | ColumnType::Set) && charset.is_empty();
        let default = default.map(|text| if is_binary { "some" } else { text });
        let default = default.map(|text| default_value(text, self.kind, self.size));
        format!(
            "`{}` {:?}({size}) {} {charset} default {default:?} labels {:?} auto {} comment {:?}",
            self.name,
            self.kind,
            if self.optional { "NULL" } else { "NOT NULL" },
            self.labels,
            self.auto,
            self.comment
        )
    }
}

/// `utf8` is the DDL's word for utf8mb3; the server prints the long one.
pub(super) fn charset_name(name: &str) -> String {
    if name == "utf8" { "utf8mb3".to_owned() } else { name.to_owned() }
}

/// A default by its value: `7` and `'7'`, `b'1'` and `1`, `1.50` and `1.5` are one.
fn default_value(
    text: &str,
    kind: ColumnType,
    (length, scale): (Option<i32>, Option<i32>),
) -> String {
    match kind {
        ColumnType::TinyInt { .. }
        | ColumnType::Boolean
        | ColumnType::SmallInt { .. }
        | ColumnType::MediumInt { .. }
        | ColumnType::Int { .. }
        | ColumnType::BigInt { .. }
        | ColumnType::Float
        | ColumnType::Double
        | ColumnType::Year => match text.to_ascii_lowercase().as_str() {
            "true" => "1".to_owned(),
            "false" => "0".to_owned(),
            number => match number.parse::<f64>() {
                Ok(value) => format!("{value}"),
                Err(_) => text.to_owned(),
            },
        },
        // The server rounds to the digits that the column has; the model keeps what was written.
        ColumnType::Decimal => text.parse::<f64>().map_or_else(
            |_| text.to_owned(),
            |value| match scale {
                Some(0) => format!("{}", value.round()),
                _ => format!("{value}"),
            },
        ),
        // The server writes the digits behind the second out.
        ColumnType::Time | ColumnType::DateTime | ColumnType::Timestamp => {
            text.split('.').next().unwrap_or(text).to_owned()
        }
        ColumnType::Bit => {
            let digits = text.trim_start_matches("b'").trim_end_matches('\'');
            u64::from_str_radix(digits, 2).map_or_else(|_| text.to_owned(), |bits| bits.to_string())
        }
        // The server pads BINARY with zeros, and shows bytes in forms of its own.
        ColumnType::Binary | ColumnType::VarBinary => "some".to_owned(),
        // `DATE '2020-01-02'`, of which the model keeps the text.
        ColumnType::Date => text.split('\'').nth(1).unwrap_or(text).to_owned(),
        // Without strict mode the server cuts what is too long; the model keeps what was written.
        ColumnType::Char | ColumnType::VarChar => text
            .chars()
            .take(length.and_then(|length| length.try_into().ok()).unwrap_or(1))
            .collect(),
        _ => text.to_owned(),
    }
}

/// The labels between the parentheses of a `COLUMN_TYPE`.
fn split_labels(inner: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut rest = inner;
    while let Some(start) = rest.strip_prefix(',').unwrap_or(rest).strip_prefix('\'') {
        let mut end = 0;
        let bytes = start.as_bytes();
        while end < bytes.len() {
            match bytes[end] {
                b'\\' => end += 2,
                b'\'' if bytes.get(end + 1) == Some(&b'\'') => end += 2,
                b'\'' => break,
                _ => end += 1,
            }
        }
        labels.push(unescape(&start[..end]));
        rest = &start[end + 1..];
    }
    labels
}

fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                chars.next();
                out.push('\'');
            }
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('0') => out.push('\0'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}
