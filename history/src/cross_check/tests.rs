use holdfast_binlog::event::table_map::TableIdWidth;

use super::*;
use crate::ddl::{DdlContext, Flavor, apply_statement};
use crate::schema::{TableId, Tables};

/// The type code and the metadata bytes of a column, and whether the definition fits.
type Case = (&'static str, u8, &'static [u8], bool);

#[test]
fn a_definition_fits_the_types_that_its_servers_make_of_it() {
    let cases: &[Case] = &[
        ("TINYINT", 1, &[], true),
        ("BOOL", 1, &[], true),
        ("TINYINT", 2, &[], false),
        ("SMALLINT UNSIGNED", 2, &[], true),
        ("MEDIUMINT", 9, &[], true),
        ("INT", 3, &[], true),
        ("INT", 8, &[], false),
        ("BIGINT", 8, &[], true),
        ("SERIAL", 8, &[], true),
        ("FLOAT", 4, &[4], true),
        ("FLOAT(7,3)", 4, &[4], true),
        ("FLOAT(25)", 5, &[8], true),
        ("FLOAT", 5, &[8], false),
        ("DOUBLE", 4, &[4], false),
        ("REAL", 5, &[8], true),
        ("REAL", 4, &[4], true),
        ("DECIMAL", 246, &[10, 0], true),
        ("DECIMAL(0)", 246, &[10, 0], true),
        ("DECIMAL(12,3)", 246, &[12, 3], true),
        ("DECIMAL(12,3)", 246, &[12, 4], false),
        ("DECIMAL(12,3)", 246, &[11, 3], false),
        ("BIT", 16, &[0, 1], true),
        ("BIT(9)", 16, &[0, 2], true),
        ("BIT(9)", 16, &[1, 1], true),
        ("BIT(9)", 16, &[0, 1], false),
        ("CHAR", 254, &[254, 4], true),
        ("CHAR(10)", 254, &[254, 40], true),
        ("CHAR(10)", 254, &[254, 44], false),
        ("CHAR(255)", 254, &[0xce, 0xfc], true),
        ("CHAR(10) CHARACTER SET latin1", 254, &[254, 10], true),
        ("CHAR(10) CHARACTER SET latin1", 254, &[254, 40], false),
        ("CHAR(0)", 254, &[254, 0], true),
        ("CHAR(10)", 15, &[40, 0], false),
        ("BINARY(16)", 254, &[254, 16], true),
        ("BINARY(16)", 254, &[254, 15], false),
        ("VARCHAR(10)", 15, &[40, 0], true),
        ("VARCHAR(0)", 15, &[0, 0], true),
        ("VARCHAR(10)", 15, &[0xb0, 0x04], false),
        ("VARCHAR(10) CHARACTER SET utf8", 15, &[30, 0], true),
        ("VARCHAR(10)", 252, &[2], false),
        ("VARCHAR(70000)", 252, &[3], true),
        ("VARBINARY(10)", 15, &[10, 0], true),
        ("VARBINARY(10)", 15, &[11, 0], false),
        ("TINYTEXT", 252, &[1], true),
        ("TEXT", 252, &[2], true),
        ("TEXT", 252, &[3], true),
        ("TEXT", 252, &[1], false),
        ("TEXT(20)", 252, &[1], true),
        ("LONG VARCHAR", 252, &[3], true),
        ("LONGTEXT", 252, &[4], true),
        ("LONGTEXT", 252, &[3], false),
        ("BLOB", 252, &[2], true),
        ("BLOB(70000)", 252, &[3], true),
        ("BLOB(70000)", 252, &[2], false),
        ("BLOB", 15, &[10, 0], false),
        ("DATE", 10, &[], true),
        ("TIME", 11, &[], true),
        ("TIME(3)", 19, &[3], true),
        ("TIME(3)", 19, &[0], false),
        ("TIME(3)", 11, &[], false),
        ("DATETIME", 18, &[0], true),
        ("DATETIME", 12, &[], true),
        ("DATETIME", 18, &[6], false),
        ("TIMESTAMP(6)", 17, &[6], true),
        ("TIMESTAMP", 7, &[], true),
        ("TIMESTAMP", 18, &[0], false),
        ("YEAR", 13, &[], true),
        ("ENUM('a','b')", 254, &[247, 1], true),
        ("ENUM('a','b')", 254, &[247, 2], false),
        ("ENUM('a','b')", 254, &[248, 1], false),
        ("SET('a','b','c','d','e','f','g','h','i')", 254, &[248, 2], true),
        ("SET('a','b','c','d','e','f','g','h','i')", 254, &[248, 1], false),
        ("POINT", 255, &[4], true),
        ("JSON", 245, &[4], true),
        ("JSON", 252, &[4], false),
        ("VECTOR(3)", 242, &[4], true),
        // A type from the future is for the decoder to refuse.
        ("INT", 99, &[], true),
    ];
    for &(definition, code, metadata, fits) in cases {
        let table = table(&[definition], Flavor::MySql);
        let map = map(&[(code, metadata)], &[]);
        let result = check(&table, &map, Dialect::MySql);
        assert_eq!(result.is_ok(), fits, "{definition} and {code} {metadata:?}: {result:?}");
    }
}

#[test]
fn mariadb_has_types_of_its_own() {
    let cases: &[Case] = &[
        ("JSON", 252, &[4], true),
        ("JSON", 245, &[4], false),
        ("UUID", 254, &[254, 16], true),
        ("INET6", 254, &[254, 16], true),
        ("INET4", 254, &[254, 4], true),
        ("INET4", 254, &[254, 16], false),
        ("VECTOR(3)", 15, &[12, 0], true),
        ("VECTOR(3)", 15, &[16, 0], false),
        ("VARCHAR(10) COMPRESSED", 141, &[41, 0], true),
        ("VARCHAR(10) COMPRESSED", 141, &[40, 0], false),
        ("TEXT COMPRESSED", 140, &[2], true),
        ("VARCHAR(10) CHARACTER SET utf8", 15, &[40, 0], true),
    ];
    for &(definition, code, metadata, fits) in cases {
        let table = table(&[definition], Flavor::MariaDb);
        let map = map(&[(code, metadata)], &[]);
        let result = check(&table, &map, Dialect::MariaDb);
        assert_eq!(result.is_ok(), fits, "{definition} and {code} {metadata:?}: {result:?}");
    }
}

#[test]
fn what_the_log_says_beside_the_types_must_fit_too() {
    const INT: (u8, &[u8]) = (3, &[]);
    const VARCHAR: (u8, &[u8]) = (15, &[40, 0]);
    const ENUM: (u8, &[u8]) = (254, &[247, 1]);
    let cases = [
        ("INT", INT, &[1, 1, 0x80][..], Some(Property::Signedness)),
        ("INT UNSIGNED", INT, &[1, 1, 0x80], None),
        ("INT UNSIGNED", INT, &[1, 1, 0], Some(Property::Signedness)),
        ("INT ZEROFILL", INT, &[1, 1, 0x80], None),
        ("YEAR", (13, &[][..]), &[1, 1, 0x80], None),
        ("VARCHAR(10)", VARCHAR, &[2, 1, 45], None),
        ("VARCHAR(10)", VARCHAR, &[2, 1, 8], Some(Property::Charset)),
        ("VARCHAR(10)", VARCHAR, &[2, 1, 63], Some(Property::Charset)),
        ("VARBINARY(40)", VARCHAR, &[2, 1, 63], None),
        ("VARBINARY(40)", VARCHAR, &[2, 1, 45], Some(Property::Charset)),
        ("BLOB", (252, &[2]), &[2, 1, 45], Some(Property::Charset)),
        // A collation that is not known says nothing.
        ("VARCHAR(10)", VARCHAR, &[2, 3, 0xfc, 0xf4, 0x01], None),
        ("INT", INT, b"\x04\x03\x02c0", None),
        ("INT", INT, b"\x04\x03\x02C0", None),
        ("INT", INT, b"\x04\x03\x02c1", Some(Property::Name)),
        ("ENUM('a','b')", ENUM, b"\x06\x05\x02\x01a\x01b", None),
        ("ENUM('a','b ')", ENUM, b"\x06\x05\x02\x01a\x01b", None),
        ("ENUM('a','b')", ENUM, b"\x06\x05\x02\x01b\x01a", Some(Property::Labels)),
        ("ENUM('a','b')", ENUM, b"\x06\x07\x03\x01a\x01b\x01c", Some(Property::Labels)),
        ("ENUM('\u{e9}') CHARACTER SET latin1", ENUM, b"\x06\x03\x01\x01\xe9", None),
        ("ENUM('\u{e9}')", ENUM, b"\x06\x04\x01\x02\xc3\xa8", Some(Property::Labels)),
        ("ENUM('a') CHARACTER SET ucs2", ENUM, b"\x06\x04\x01\x02\x00b", None),
        ("VECTOR(3)", (242, &[4]), &[13, 1, 3], None),
        ("VECTOR(3)", (242, &[4]), &[13, 1, 4], Some(Property::Dimensions)),
        // Metadata that can't be read is as none.
        ("INT", INT, &[1, 9], None),
    ];
    for (definition, column, optional, expected) in cases {
        let table = table(&[definition], Flavor::MySql);
        let result = check(&table, &map(&[column], optional), Dialect::MySql);
        let property = result.as_ref().err().map(|mismatch| mismatch.property);
        assert_eq!(property, expected, "{definition} and {optional:?}: {result:?}");
    }
}

#[test]
fn a_null_that_the_definition_does_not_allow_is_a_difference() {
    // The map of these tests says of every column that it can be NULL.
    let nullable = map(&[(3, &[])], &[]);
    let mismatch = check(&table(&["INT NOT NULL"], Flavor::MySql), &nullable, Dialect::MySql);
    let mismatch = mismatch.unwrap_err();
    assert_eq!(mismatch.property, Property::Nullness);
    assert_eq!(
        mismatch.to_string(),
        "column 1 differs in whether it can be NULL: the definition has `c0` INT NOT NULL, the log has INT that can be NULL"
    );
    let not_null = not_null(&[(3, &[])], &[]);
    for definition in ["INT NOT NULL", "INT"] {
        let table = table(&[definition], Flavor::MySql);
        assert_eq!(check(&table, &not_null, Dialect::MySql), Ok(()), "{definition}");
    }
    // What the model makes NOT NULL because it is the key says nothing.
    for definition in ["INT", "INT NOT NULL PRIMARY KEY", "INT NOT NULL UNIQUE"] {
        let table = table(&[definition], Flavor::MySql);
        assert_eq!(check(&table, &nullable, Dialect::MySql), Ok(()), "{definition}");
    }
}

#[test]
fn a_column_too_few_or_too_many_is_found_where_it_is() {
    let table = table(&["INT", "VARCHAR(10)"], Flavor::MySql);
    let longer = map(&[(3, &[]), (15, &[40, 0]), (8, &[])], &[]);
    let mismatch = check(&table, &longer, Dialect::MySql).unwrap_err();
    assert_eq!((mismatch.index, mismatch.counts), (2, (2, 3)));
    assert_eq!(
        mismatch.to_string(),
        "column 3 is not on both sides: the definition has none, the log has BIGINT"
    );
    // One in the middle moves those behind it.
    let inserted = map(&[(3, &[]), (8, &[]), (15, &[40, 0])], &[]);
    let mismatch = check(&table, &inserted, Dialect::MySql).unwrap_err();
    assert_eq!((mismatch.index, mismatch.property), (1, Property::Type));
    let shorter = map(&[(3, &[])], &[]);
    let mismatch = check(&table, &shorter, Dialect::MySql).unwrap_err();
    assert_eq!(
        mismatch.to_string(),
        "column 2 is not on both sides: the definition has `c1` VARCHAR(10) CHARACTER SET utf8mb4, the log has none"
    );
}

#[test]
fn a_hash_that_mariadb_adds_is_no_column_of_the_table() {
    let columns: &[(u8, &[u8])] = &[(252, &[2]), (8, &[])];
    let table = table(&["BLOB"], Flavor::MariaDb);
    let named = map(columns, b"\x04\x11\x02c0\x0dDB_ROW_HASH_1");
    assert_eq!(check(&table, &named, Dialect::MariaDb), Ok(()));
    assert_eq!(key_difference(&table, &named, Dialect::MariaDb), None);
    assert!(check(&table, &named, Dialect::MySql).is_err());
    assert!(check(&table, &map(columns, &[]), Dialect::MariaDb).is_err());
}

#[test]
fn both_shapes_can_be_shown() {
    let table = table(&["INT UNSIGNED", "VARCHAR(10)", "ENUM('a','b')"], Flavor::MySql);
    assert_eq!(
        definition_shape(&table),
        "`c0` INT UNSIGNED, `c1` VARCHAR(10) CHARACTER SET utf8mb4, `c2` ENUM of 2 labels CHARACTER SET utf8mb4"
    );
    let columns: &[(u8, &[u8])] = &[(3, &[]), (15, &[40, 0]), (254, &[247, 1])];
    assert_eq!(
        wire_shape(&map(columns, &[]), Dialect::MySql),
        "INT, VARCHAR or VARBINARY of 40 bytes, ENUM of 1 bytes"
    );
    let optional = b"\x01\x01\x80\x02\x01\x2d\x04\x09\x02c0\x02c1\x02c2\x06\x05\x02\x01a\x01b";
    assert_eq!(
        wire_shape(&map(columns, optional), Dialect::MySql),
        "`c0` INT UNSIGNED, `c1` VARCHAR(10) CHARACTER SET utf8mb4, `c2` ENUM of 2 labels"
    );
}

#[test]
fn keys_are_compared_where_the_log_names_columns() {
    let mut table = table(&["INT", "INT"], Flavor::MySql);
    let columns: &[(u8, &[u8])] = &[(3, &[]), (3, &[])];
    const NAMES: &[u8] = b"\x04\x06\x02c0\x02c1";
    let keyed = |key: &[u8]| map(columns, &[NAMES, key].concat());
    assert_eq!(key_difference(&table, &keyed(&[]), Dialect::MySql), None);
    let difference = key_difference(&table, &keyed(&[8, 1, 1]), Dialect::MySql);
    assert_eq!(difference, Some(("no key".to_owned(), "(c1)".to_owned())));
    table.primary_key = vec!["c1".to_owned()];
    assert_eq!(key_difference(&table, &keyed(&[8, 1, 1]), Dialect::MySql), None);
    assert_eq!(key_difference(&table, &map(columns, &[]), Dialect::MySql), None);
}

#[test]
fn the_end_of_a_rows_life_is_in_no_key_of_a_definition() {
    let mut table = table(&["INT", "TIMESTAMP(6)", "TIMESTAMP(6)"], Flavor::MariaDb);
    table.primary_key = vec!["c0".to_owned()];
    let columns: &[(u8, &[u8])] = &[(3, &[]), (17, &[6]), (17, &[6])];
    let keyed = map(columns, b"\x04\x09\x02c0\x02c1\x02c2\x08\x02\x00\x02");
    assert_eq!(key_difference(&table, &keyed, Dialect::MariaDb), None);
    let difference = key_difference(&table, &keyed, Dialect::MySql);
    assert_eq!(difference, Some(("(c0)".to_owned(), "(c0, c2)".to_owned())));
}

#[test]
fn a_sequence_is_told_by_its_columns() {
    let columns: [(u8, &[u8]); 8] =
        [(8, &[]), (8, &[]), (8, &[]), (8, &[]), (8, &[]), (8, &[]), (1, &[]), (8, &[])];
    assert!(is_sequence(&not_null(&columns, &[]), Dialect::MariaDb));
    assert!(!is_sequence(&not_null(&columns, &[]), Dialect::MySql));
    assert!(!is_sequence(&not_null(&columns[..7], &[]), Dialect::MariaDb));
    assert!(!is_sequence(&map(&columns, &[]), Dialect::MariaDb));
    let mut named = vec![4, 24];
    (0..8).for_each(|index| named.extend([2, b'c', b'0' + index]));
    assert!(!is_sequence(&not_null(&columns, &named), Dialect::MariaDb));
}

/// A table with columns `c0`, `c1` … in utf8mb4.
fn table(definitions: &[&str], flavor: Flavor) -> Table {
    let columns: Vec<String> = definitions
        .iter()
        .enumerate()
        .map(|(index, definition)| format!("c{index} {definition}"))
        .collect();
    let sql = format!("CREATE TABLE d.t ({}) CHARACTER SET utf8mb4", columns.join(", "));
    let mut tables = Tables::new(false);
    let context = DdlContext { flavor, ..DdlContext::default() };
    apply_statement(&sql, &context, &mut tables).unwrap();
    tables.get(&TableId::new("d", "t")).unwrap().as_ref().clone()
}

/// A table map of `d.t` with columns of these type codes and metadata bytes, and optional metadata.
fn map(columns: &[(u8, &[u8])], optional: &[u8]) -> TableMap {
    let metadata: Vec<u8> = columns.iter().flat_map(|(_, bytes)| *bytes).copied().collect();
    let count = u8::try_from(columns.len()).unwrap();
    let mut body = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0".to_vec();
    body.push(count);
    body.extend(columns.iter().map(|(code, _)| code));
    body.push(u8::try_from(metadata.len()).unwrap());
    body.extend(metadata);
    body.extend(vec![0xff; columns.len().div_ceil(8)]);
    body.extend(optional);
    TableMap::parse(&body, TableIdWidth::Six).unwrap()
}

/// As [`map`], with up to eight columns that are NOT NULL.
fn not_null(columns: &[(u8, &[u8])], optional: &[u8]) -> TableMap {
    let mut body = map(columns, optional).body().to_vec();
    let at = body.len() - optional.len() - 1;
    body[at] = 0;
    TableMap::parse(&body, TableIdWidth::Six).unwrap()
}
