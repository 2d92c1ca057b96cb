//! SQL that fills the logs of real servers: tables, and statements with how many records they make.

/// `SELECT columns` for the numbers `i` from `first`.
#[must_use]
pub fn numbers(first: u64, count: u64, columns: &str) -> String {
    let last = first + count - 1;
    format!(
        "WITH RECURSIVE s (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM s WHERE i < {last}) SELECT {columns} FROM s"
    )
}

/// The table of 5 columns.
pub const NARROW: &str = "CREATE TABLE narrow (id INT PRIMARY KEY, name VARCHAR(64), n INT, at DATETIME(6), amount DECIMAL(12,2))";

/// Of ten records five are inserted and one deleted by bulk statements, two are updated so, and two are inserted in
/// transactions of ten.
#[must_use]
pub fn narrow_statements(rows: u64) -> Vec<(String, u64)> {
    let tenth = rows / 10;
    let columns = "i, CONCAT('row number ', i, ' of many'), i * 7919 % 1000003, \
                   TIMESTAMPADD(MICROSECOND, i * 1237, '2024-01-01'), (i % 200000) / 100 - 300";
    let mut statements = Vec::new();
    for part in 0..5 {
        let select = numbers(part * tenth + 1, tenth, columns);
        statements.push((format!("INSERT INTO narrow {select}"), tenth));
        if part < 2 {
            let range = format!("id BETWEEN {} AND {}", part * tenth + 1, (part + 1) * tenth);
            let update = format!("UPDATE narrow SET n = n + 1, amount = amount + 1 WHERE {range}");
            statements.push((update, tenth));
        }
    }
    statements.push((format!("DELETE FROM narrow WHERE id <= {tenth}"), tenth));
    let (first, transactions) = (5 * tenth + 1, tenth / 5);
    let end = first + transactions * 10;
    let tens = format!(
        "DROP PROCEDURE IF EXISTS tens;\nDELIMITER //\n\
         CREATE PROCEDURE tens() BEGIN DECLARE first INT DEFAULT {first}; WHILE first < {end} DO \
         INSERT INTO narrow SELECT id - 2 * {tenth} - 1 + first, name, n, at, amount FROM narrow \
         WHERE id BETWEEN 2 * {tenth} + 1 AND 2 * {tenth} + 10; \
         SET first = first + 10; END WHILE; END//\nDELIMITER ;\nCALL tens()"
    );
    statements.push((tens, transactions * 10));
    statements
}

/// Names, types and values for the number `i` of the 59 columns beside the key.
const WIDE: [(&str, &str, u32); 24] = [
    ("TINYINT", "i % 100", 2),
    ("SMALLINT UNSIGNED", "i % 60000", 2),
    ("MEDIUMINT", "i % 8000000", 2),
    ("INT", "i * 17 % 2000000000", 4),
    ("BIGINT", "i * 1000003", 4),
    ("FLOAT", "i / 64", 2),
    ("DOUBLE", "i / 1024", 2),
    ("DECIMAL(5,2)", "i % 99999 / 100", 2),
    ("DECIMAL(18,6)", "i * 1000 / 7", 2),
    ("DECIMAL(30,10)", "i * 1000000 / 7", 2),
    ("BIT(12)", "i % 4096", 1),
    ("DATE", "DATE_ADD('2000-01-01', INTERVAL i % 9000 DAY)", 3),
    ("DATETIME(3)", "TIMESTAMPADD(MICROSECOND, i * 7777000, '2010-01-01')", 3),
    ("DATETIME(6)", "TIMESTAMPADD(MICROSECOND, i * 7777, '2010-01-01')", 3),
    ("TIMESTAMP(6) NULL", "TIMESTAMPADD(MICROSECOND, i * 7777, '2010-01-01')", 3),
    ("TIME(3)", "SEC_TO_TIME(i % 86400)", 2),
    ("YEAR", "2000 + i % 50", 2),
    ("CHAR(10)", "LEFT(LEFT(SHA2(i, 256), 32), 10)", 3),
    ("VARCHAR(50)", "CONCAT('some text ', i)", 4),
    ("TEXT", "REPEAT(LEFT(SHA2(i, 256), 32), 3)", 3),
    ("ENUM('one','two','three')", "1 + i % 3", 2),
    ("SET('a','b','c','d')", "i % 16", 2),
    ("VARBINARY(32)", "UNHEX(LEFT(SHA2(i, 256), 32))", 2),
    (
        "JSON",
        "JSON_OBJECT('number', i, 'name', CONCAT('n', i), 'list', JSON_ARRAY(1, 2.5, TRUE, NULL))",
        2,
    ),
];

fn wide_columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    WIDE.iter().flat_map(|(kind, value, times)| (0..*times).map(move |_| (*kind, *value)))
}

/// The types of the 59 columns of the wide table beside its key.
pub fn wide_types() -> impl Iterator<Item = &'static str> {
    wide_columns().map(|(kind, _)| kind)
}

/// The table of 60 columns.
#[must_use]
pub fn wide_table() -> String {
    let mut sql = "CREATE TABLE wide (id INT PRIMARY KEY".to_owned();
    for (number, (kind, _)) in wide_columns().enumerate() {
        sql.push_str(&format!(", c{number} {kind}"));
    }
    sql + ")"
}

/// Of four records three are inserted and one is updated.
#[must_use]
pub fn wide_statements(rows: u64) -> Vec<(String, u64)> {
    let quarter = rows / 4;
    let values = wide_columns().map(|(_, value)| value).collect::<Vec<_>>().join(", ");
    let mut statements = (0..3)
        .map(|part| {
            let select = numbers(part * quarter + 1, quarter, &format!("i, {values}"));
            (format!("INSERT INTO wide {select}"), quarter)
        })
        .collect::<Vec<_>>();
    statements.push((format!("UPDATE wide SET c0 = c0 + 1 WHERE id <= {quarter}"), quarter));
    statements
}
