//! Which databases, tables and columns are captured.
//!
//! A list is comma-separated Java regular expressions (`\,` is a comma inside one, each is trimmed). Each ignores the
//! case of ASCII letters and must match the *whole* name: a database, `database.table`, or `database.table.column`.
//! An include list wins over an exclude list. Nothing is cached here: callers keep the answer per table.
//!
//! Source: Debezium 3.6.3.Final, `Predicates#includes`, `Strings#setOfRegex`, `RelationalTableFilters`.

mod java_regex;

use holdfast_history::TableId;

pub use java_regex::{JavaRegex, PatternError, TooComplex};

/// Databases of the server itself, which are not captured.
const BUILT_IN: [&str; 4] = ["mysql", "performance_schema", "sys", "information_schema"];

/// Whether `database` belongs to the server: `mysql`, `performance_schema`, `sys`, `information_schema`, in any case.
#[must_use]
pub fn is_built_in(database: &str) -> bool {
    BUILT_IN.iter().any(|name| name.eq_ignore_ascii_case(database))
}

/// A comma-separated list of patterns, in the order written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegexList(Vec<JavaRegex>);

impl RegexList {
    /// Reads a list; an empty text is an empty list.
    ///
    /// # Errors
    ///
    /// [`PatternError`] for the first pattern that cannot be compiled.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        split_list(text)
            .iter()
            .map(|part| JavaRegex::case_insensitive(part))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether there is no pattern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index of the first pattern that matches `name`. A pattern that gives up on `name` counts as `on_give_up`.
    fn position(&self, name: &str, on_give_up: bool) -> Option<usize> {
        self.0.iter().position(|regex| {
            regex.matches(name).unwrap_or_else(|error| {
                tracing::warn!(pattern = regex.as_str(), name, %error, taken_as_match = on_give_up, "filter gave up");
                on_give_up
            })
        })
    }

    /// Whether a pattern matches the whole of `name`.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.position(name, false).is_some()
    }
}

/// Splits at commas that no backslash escapes, as `Strings.RegExSplitter` does: parts trimmed, empty ones dropped.
#[must_use]
pub fn split_list(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        match c {
            ',' => parts.push(String::new()),
            '\\' => match chars.next() {
                Some(',') => part.push(','),
                next => {
                    part.push('\\');
                    part.extend(next);
                }
            },
            plain => part.push(plain),
        }
    }
    // Java's trim: everything up to U+0020.
    parts
        .iter()
        .map(|part| part.trim_matches(|c| c <= ' ').to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// One pair of lists. A pattern that gives up on a name errs on the side of capturing it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// Neither list is set: everything.
    #[default]
    All,
    /// Only what a pattern matches.
    Include(RegexList),
    /// Everything that no pattern matches.
    Exclude(RegexList),
}

impl Selection {
    /// Makes a selection of the two lists; an empty list is none, and the include list wins.
    #[must_use]
    pub fn new(include: RegexList, exclude: RegexList) -> Self {
        if !include.is_empty() {
            Self::Include(include)
        } else if !exclude.is_empty() {
            Self::Exclude(exclude)
        } else {
            Self::All
        }
    }

    /// Whether `name` is selected.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Include(list) => list.position(name, true).is_some(),
            Self::Exclude(list) => list.position(name, false).is_none(),
        }
    }

    /// The zero-based index of the include pattern that selects `name`; `None` without an include list.
    #[must_use]
    pub fn include_rank(&self, name: &str) -> Option<usize> {
        match self {
            Self::Include(list) => list.position(name, true),
            Self::All | Self::Exclude(_) => None,
        }
    }
}

/// Which databases: `database.include.list`, `database.exclude.list`, `table.ignore.builtin`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseFilter {
    /// The two lists.
    pub selection: Selection,
    /// Whether the server's own databases are left out.
    pub ignore_built_in: bool,
}

impl Default for DatabaseFilter {
    fn default() -> Self {
        Self { selection: Selection::All, ignore_built_in: true }
    }
}

impl DatabaseFilter {
    /// Whether tables of `database` can be captured.
    #[must_use]
    pub fn includes(&self, database: &str) -> bool {
        !(self.ignore_built_in && is_built_in(database)) && self.selection.includes(database)
    }
}

/// Which tables: those of a captured database that `table.include.list` or `table.exclude.list` selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableFilter {
    /// The filter on the database.
    pub databases: DatabaseFilter,
    /// The two lists, on `database.table`.
    pub selection: Selection,
}

impl TableFilter {
    /// Whether changes of `table` are captured.
    #[must_use]
    pub fn captures(&self, table: &TableId) -> bool {
        self.databases.includes(&table.database) && self.selection.includes(&table.to_string())
    }

    /// Orders `tables` as a snapshot reads them: by the first include pattern that matches, then by the text
    /// `database.table` (`RelationalSnapshotChangeEventSource#toTableIds`).
    pub fn sort_for_snapshot(&self, tables: &mut [TableId]) {
        tables.sort_by_cached_key(|table| {
            let name = table.to_string();
            (self.selection.include_rank(&name).unwrap_or(usize::MAX), name)
        });
    }
}

/// Which columns appear in `before` and `after`: `column.include.list`, `column.exclude.list`. Keys are not filtered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnFilter {
    /// The two lists, on `database.table.column`.
    pub selection: Selection,
}

impl ColumnFilter {
    /// Whether `column` of `table` is kept.
    #[must_use]
    pub fn includes(&self, table: &TableId, column: &str) -> bool {
        match &self.selection {
            Selection::All => true,
            selection @ (Selection::Include(_) | Selection::Exclude(_)) => {
                selection.includes(&format!("{table}.{column}"))
            }
        }
    }
}

/// `message.key.columns`: which columns make the key of which tables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyColumns(Vec<JavaRegex>);

/// Why a text is not a list of key columns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyColumnsError {
    /// An entry without table, colon or column.
    #[error("{0} has an invalid format (expecting '^\\s*([^:]+):([^:,]+(,[^:,]+)*)\\s*$')")]
    Format(String),
    /// The table part is not a regular expression.
    #[error("A comma-separated list of valid regular expressions is expected, but {0}")]
    Pattern(#[from] PatternError),
}

impl KeyColumns {
    /// Reads `table:column,column;table:column`; the table is a Java regular expression.
    ///
    /// # Errors
    ///
    /// [`KeyColumnsError`] for the first entry that is not of this form.
    pub fn parse(text: &str) -> Result<Self, KeyColumnsError> {
        let mut entries: Vec<&str> = text.split(';').collect();
        // Java's split drops empty parts at the end.
        while entries.len() > 1 && entries.last().is_some_and(|entry| entry.is_empty()) {
            entries.pop();
        }
        let mut patterns = Vec::new();
        for entry in entries {
            let format = || KeyColumnsError::Format(entry.to_owned());
            let (table, columns) = entry.split_once(':').ok_or_else(format)?;
            let table = table.trim_start();
            if table.is_empty() || columns.contains(':') {
                return Err(format());
            }
            for column in columns.trim_end().split(',') {
                if column.is_empty() {
                    return Err(format());
                }
                patterns.push(JavaRegex::case_insensitive(&format!("{table}.{}", column.trim()))?);
            }
        }
        Ok(Self(patterns))
    }

    /// Zero-based indexes of the key columns of `table`, in key order: by entry as written, then by table order.
    /// `None` when no entry matches: the table keeps its own key.
    pub fn of_table<'a>(
        &self,
        table: &TableId,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Option<Vec<usize>> {
        if self.0.is_empty() {
            return None;
        }
        let names: Vec<String> =
            columns.into_iter().map(|column| format!("{table}.{column}")).collect();
        let mut key = Vec::new();
        for pattern in &self.0 {
            for (index, name) in names.iter().enumerate() {
                if !key.contains(&index) && pattern.matches(name).unwrap_or_default() {
                    key.push(index);
                }
            }
        }
        (!key.is_empty()).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn include(list: &str) -> Selection {
        Selection::new(RegexList::parse(list).unwrap(), RegexList::default())
    }

    fn exclude(list: &str) -> Selection {
        Selection::new(RegexList::default(), RegexList::parse(list).unwrap())
    }

    fn tables(selection: Selection) -> Vec<&'static str> {
        let filter = TableFilter { databases: DatabaseFilter::default(), selection };
        ["gold.t1", "gold.T2", "gold.skipme", "gold.t-3.x", "other.t1", "mysql.user"]
            .into_iter()
            .filter(|name| {
                let (database, table) = name.split_once('.').unwrap();
                filter.captures(&TableId::new(database, table))
            })
            .collect()
    }

    /// Rows F01 to F03 of the filter cases, observed on Debezium 3.6.3.Final.
    #[test]
    fn tables_are_selected_by_whole_name_in_any_case() {
        assert_eq!(tables(include("gold.t1,gold.t2")), ["gold.t1", "gold.T2"]);
        assert_eq!(tables(exclude("gold\\.skip.*,gold.t-3.x")), ["gold.t1", "gold.T2", "other.t1"]);
        assert!(tables(include("gold.t")).is_empty());
        assert_eq!(tables(include(" gold\\.t(1) , OTHER.* ")), ["gold.t1", "other.t1"]);
        assert_eq!(
            tables(include("")),
            ["gold.t1", "gold.T2", "gold.skipme", "gold.t-3.x", "other.t1"]
        );
    }

    #[test]
    fn lists_are_split_at_plain_commas() {
        assert_eq!(
            split_list("a, b ,,c\\,d,e\\.f,g\\\\,h"),
            ["a", "b", "c,d", "e\\.f", "g\\\\", "h"]
        );
        assert!(split_list("  ").is_empty());
        let twice = include("gold\\.t{1\\,2}");
        assert!(twice.includes("gold.tt") && !twice.includes("gold.ttt"));
    }

    #[test]
    fn a_database_filter_bounds_tables_and_built_in_ones_can_be_asked_for() {
        let databases = DatabaseFilter { selection: include("gold,mysql"), ignore_built_in: true };
        assert!(
            databases.includes("GOLD")
                && !databases.includes("other")
                && !databases.includes("mysql")
        );
        let filter = TableFilter {
            databases: DatabaseFilter { ignore_built_in: false, ..databases },
            selection: include(".*"),
        };
        assert!(filter.captures(&TableId::new("mysql", "user")));
        assert!(!filter.captures(&TableId::new("other", "t")));
    }

    #[test]
    fn the_order_of_the_include_list_is_the_order_of_the_snapshot() {
        let filter =
            TableFilter { selection: include("gold.z.*,gold.a"), ..TableFilter::default() };
        let mut found: Vec<_> = ["a", "z2", "z1"].map(|table| TableId::new("gold", table)).into();
        filter.sort_for_snapshot(&mut found);
        assert_eq!(found, ["z1", "z2", "a"].map(|table| TableId::new("gold", table)));
        let mut found =
            [TableId::new("gold", "t1"), TableId::new("gold", "T2"), TableId::new("gold-2", "t")];
        TableFilter::default().sort_for_snapshot(&mut found);
        assert_eq!(found.map(|table| table.to_string()), ["gold-2.t", "gold.T2", "gold.t1"]);
    }

    /// Rows F06 and F07.
    #[test]
    fn columns_are_selected_by_their_full_name() {
        let (t1, t2) = (TableId::new("gold", "t1"), TableId::new("gold", "T2"));
        let included = ColumnFilter { selection: include("gold.t1.(id|name),gold.T2.id") };
        assert!(included.includes(&t1, "name") && included.includes(&t2, "id"));
        assert!(!included.includes(&t1, "secret") && !included.includes(&t2, "v"));
        let excluded = ColumnFilter { selection: exclude("gold.t1.secret,.*\\.num") };
        assert!(!excluded.includes(&t1, "secret") && !excluded.includes(&t2, "num"));
        assert!(excluded.includes(&t2, "secret"));
    }

    /// Row F15.
    #[test]
    fn key_columns_come_in_the_order_written() {
        let keys = KeyColumns::parse("gold.t1:name,num;gold.T2:v;(.*).skipme:v,id").unwrap();
        let of = |table: &str, columns: &[&str]| {
            keys.of_table(&TableId::new("gold", table), columns.iter().copied())
        };
        assert_eq!(of("t1", &["id", "num", "name"]), Some(vec![2, 1]));
        assert_eq!(of("skipme", &["id", "v"]), Some(vec![1, 0]));
        assert_eq!(of("other", &["id", "v"]), None);
        assert!(KeyColumns::parse("a:b;c:d,e;").is_ok());
        for bad in ["abc", "a:b:c", "", ":a", "a:", "a:b,", "a:b;;c:d"] {
            assert!(matches!(KeyColumns::parse(bad), Err(KeyColumnsError::Format(_))), "{bad}");
        }
        assert!(matches!(KeyColumns::parse("[:a"), Err(KeyColumnsError::Pattern(_))));
    }
}
