//! The scripts of goldens and cases, statement by statement: the model after each is what the server has.

use holdfast_history::ddl::{StatementClass, classify};
use holdfast_tests::case::{Case, Kind};
use holdfast_tests::golden;
use holdfast_tests::paths;
use holdfast_tests::server::{Options, Server, shared};
use mysql_async::prelude::Queryable;

use super::{Checkpoint, connect, judge, place, read_log, server_definitions};

/// Where the model differs, knowingly.
const LEFT_OUT: [&str; 6] = [
    // Sessions in other character sets, which this test does not follow.
    "017-charsets-enum-set",
    "079-ddl-in-client-charset",
    // Statements that are kept out of the log.
    "051-ddl-without-binlog",
    // The model keeps the text of a default as it is written.
    "ddl-defaults",
    // MariaDB makes period columns NOT NULL, and adds the end of a row's life to the primary key.
    "115-mariadb-versioned-and-sequences",
    "versioning-and-sequences",
];

/// The statements of a script for the command-line client.
fn statements(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut delimiter = ";".to_owned();
    let mut current = String::new();
    let mut quote: Option<char> = None;
    for line in script.lines() {
        if quote.is_none() && current.trim().is_empty() {
            if let Some(new) = line.trim().strip_prefix("DELIMITER ") {
                new.trim().clone_into(&mut delimiter);
                continue;
            }
            if line.trim_start().starts_with("--") {
                continue;
            }
        }
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            if quote.is_none()
                && let Some(after) = rest.strip_prefix(delimiter.as_str())
            {
                found.push(std::mem::take(&mut current));
                rest = after;
                continue;
            }
            let mut taken = next.len_utf8();
            match quote {
                Some('\'' | '"') if next == '\\' => {
                    taken += rest[taken..].chars().next().map_or(0, char::len_utf8);
                }
                Some(open) if next == open => quote = None,
                None if matches!(next, '\'' | '"' | '`') => quote = Some(next),
                Some(_) | None => {}
            }
            current.push_str(&rest[..taken]);
            rest = &rest[taken..];
        }
        current.push('\n');
    }
    found.push(current);
    found.retain(|sql| !sql.trim().is_empty());
    found
}

/// Those for this very server.
fn scripts(server: &Server, options: &Options) -> Vec<Case> {
    let mut cases = golden::cases(server.flavour()).unwrap();
    cases.retain(|case| case.name().contains("ddl-") || case.name().contains("versioning"));
    cases.extend(Case::all(&paths::tests("cases")).unwrap());
    cases.retain(|case| {
        let name = case.name();
        let here = matches!(case.kind(), Ok(Kind::Stream | Kind::Restart));
        here && !case.needs_own_server()
            && case.server() == *options
            && !LEFT_OUT.iter().any(|left_out| name.ends_with(left_out))
    });
    cases
}

fn run(options: &Options) {
    let server = shared(options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = scripts(&server, options);
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    let mut checked = 0;
    for (number, case) in (0..).zip(&cases) {
        let (checkpoints, log) = runtime.block_on(async {
            let mut reader = connect(&server).await;
            for name in databases(&mut reader).await {
                reader.query_drop(format!("DROP DATABASE `{name}`")).await.unwrap();
            }
            let start = place(&mut reader, server.flavour()).await;
            let mut checkpoints: Vec<Checkpoint> = Vec::new();
            for script in ["setup.sql", "workload.sql", "between.sql"] {
                let Ok(text) = std::fs::read_to_string(case.folder().join(script)) else {
                    continue;
                };
                let mut writer = connect(&server).await;
                for sql in statements(&text) {
                    // Some fail on purpose.
                    let failed = writer.query_drop(&sql).await.is_err();
                    if failed || classify(&sql) != StatementClass::Ddl {
                        continue;
                    }
                    let databases = databases(&mut reader).await;
                    let definitions =
                        server_definitions(&mut reader, server.flavour(), &databases).await.0;
                    checkpoints.push(Checkpoint {
                        seed: number,
                        statement: format!("{}: {}", case.name(), sql.trim()),
                        place: place(&mut reader, server.flavour()).await,
                        first: checkpoints.is_empty(),
                        definitions,
                        texts: Vec::new(),
                    });
                }
                writer.disconnect().await.unwrap();
            }
            let collations = super::collations(&mut reader).await;
            reader.disconnect().await.unwrap();
            (checkpoints, read_log(&server, start, &collations).await)
        });
        checked += checkpoints.len();
        judge(server.flavour(), &checkpoints, log, &mut failures);
    }
    println!("{checked} statements of {} scripts", cases.len());
    assert!(checked > cases.len(), "{checked} statements only");
    assert!(failures.is_empty(), "{} scripts differ\n{}", failures.len(), failures.join("\n"));
}

/// All that are not the server's own.
async fn databases(conn: &mut mysql_async::Conn) -> Vec<String> {
    conn.query(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA
         WHERE SCHEMA_NAME NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')",
    )
    .await
    .unwrap()
}

#[test]
fn scripts_split_where_the_client_splits_them() {
    let text = "-- x;\nUSE a; INSERT INTO t VALUES (';', 'it\\'s;', `b;`);\nDELIMITER //\nCREATE x; y//\nDELIMITER ;\nSELECT 1";
    let found: Vec<String> = statements(text).iter().map(|sql| sql.trim().to_owned()).collect();
    assert_eq!(
        found,
        ["USE a", "INSERT INTO t VALUES (';', 'it\\'s;', `b;`)", "CREATE x; y", "SELECT 1"]
    );
}

#[test]
fn the_ddl_of_goldens_and_cases_gives_the_definitions_of_mysql() {
    run(&Options::mysql());
}

#[test]
fn the_ddl_of_goldens_and_cases_gives_the_definitions_of_mariadb() {
    run(&Options::mariadb());
    run(&Options::mariadb_11());
}
