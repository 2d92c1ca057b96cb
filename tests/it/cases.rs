//! The cases of `tests/cases`, one test each, with the `holdfast` binary on a real server.

use holdfast_tests::case::Case;
use holdfast_tests::engine::Engine;
use holdfast_tests::paths;
use holdfast_tests::server::{Server, shared};

/// Makes a test of every case, and the list of them.
macro_rules! cases {
    ($($test:ident = $folder:literal,)*) => {
        $(
            #[test]
            fn $test() {
                run($folder);
            }
        )*

        /// The folders that have a test here.
        const RUN: &[&str] = &[$($folder),*];
    };
}

cases! {
    json_doubles = "001-json-doubles",
    json_partial_update = "003-json-partial-update",
    old_dates_and_year_zero = "005-old-dates-and-year-zero",
    enum_set_literals = "015-enum-set-literals",
    reset_binlogs_same_server = "091-reset-binlogs-same-server",
    fraction_digits = "007-fraction-digits",
    unsigned_integers = "009-unsigned-integers",
    bit_fields = "011-bit-fields",
    floats = "013-floats",
    charsets_enum_set = "017-charsets-enum-set",
    charset_inheritance = "019-charset-inheritance",
    vector = "021-vector",
    invisible_and_gipk = "023-invisible-and-gipk",
    implicit_nullability = "025-implicit-nullability",
    nonreserved_keywords = "031-nonreserved-keywords",
    ansi_quotes = "033-ansi-quotes",
    executable_comments = "035-executable-comments",
    partition_operations = "037-partition-operations",
    create_like_and_select = "039-create-like-and-select",
    pt_osc_triggers = "041-pt-osc-triggers",
    drop_variants = "043-drop-variants",
    stored_programs = "045-stored-programs",
    constraints = "047-constraints",
    dml_as_statement = "049-dml-as-statement",
    ddl_without_binlog = "051-ddl-without-binlog",
    ddl_in_same_batch = "053-ddl-in-same-batch",
    xa_transactions = "055-xa-transactions",
    savepoints = "057-savepoints",
    rows_query = "059-rows-query",
    foreign_key_cascades = "061-foreign-key-cascades",
    upsert_and_replace = "063-upsert-and-replace",
    primary_key_ddl = "065-primary-key-ddl",
    spatial_reference_ddl = "067-spatial-reference-ddl",
    compressed_transactions = "069-compressed-transactions",
    gtids_foreign_and_tagged = "071-gtids-foreign-and-tagged",
    multi_table_transaction = "073-multi-table-transaction",
    table_and_column_options = "077-table-and-column-options",
    ddl_in_client_charset = "079-ddl-in-client-charset",
    pk_update_half_acked = "080-pk-update-half-acked",
    ddl_after_restart_point_no_gtid = "083-ddl-after-restart-point-no-gtid",
    rename_and_drop_after_restart_point = "085-rename-and-drop-after-restart-point",
    rotation_inside_backlog = "087-rotation-inside-backlog",
    position_purged = "089-position-purged",
    caching_sha2_without_tls = "093-caching-sha2-without-tls",
    server_setting_changed_live = "095-server-setting-changed-live",
    refresh_then_add_column_again = "099-refresh-then-add-column-again",
    refresh_then_rename_table_again = "101-refresh-then-rename-table-again",
    refresh_with_old_rows_ahead = "103-refresh-with-old-rows-ahead",
    refresh_then_rename_column_again = "105-refresh-then-rename-column-again",
    alter_refers_to_new_names = "107-alter-refers-to-new-names",
    defaults_and_keys_in_one_statement = "109-defaults-and-keys-in-one-statement",
    mariadb_compressed_events = "111-mariadb-compressed-events",
    mariadb_types = "113-mariadb-types",
    mariadb_versioned_and_sequences = "115-mariadb-versioned-and-sequences",
}

/// Those of `data.rs`.
const DATA: &[&str] = &[
    "121-gtid-set-algebra",
    "123-mariadb-zero-end-pos",
    "125-history-directory-prefix",
    "127-idle-source-heartbeat",
    "129-history-scale",
    "131-duplicate-server-id",
    "133-purge-and-numbering",
    "135-chunk-key-order",
    "137-ddl-corpus-2",
];

fn run(folder: &str) {
    let case = Case::load(paths::tests("cases").join(folder)).unwrap();
    let result = if case.needs_own_server() {
        case.run_apart(Engine::Holdfast, &Server::start(case.server()).unwrap())
    } else {
        case.run_apart(Engine::Holdfast, &shared(&case.server()).unwrap())
    };
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// A folder that nobody runs would look like a case that passes.
#[test]
fn every_case_is_run_or_listed_as_waiting() {
    let readme = std::fs::read_to_string(paths::tests("cases/README.md")).unwrap();
    let (_, waiting) = readme.split_once("\n## Waiting\n").expect("a section Waiting");
    for case in Case::all(&paths::tests("cases")).unwrap() {
        let name = case.name();
        let listed = waiting.contains(&format!("| {name} |"));
        let run = RUN.contains(&name.as_str()) || DATA.contains(&name.as_str());
        assert!(run || listed, "{name} is neither run nor listed under Waiting");
        assert!(!(run && listed), "{name} is run and listed under Waiting");
    }
}
