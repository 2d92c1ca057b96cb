//! Character sets that collations imply.

/// Character sets of MySQL and MariaDB, whose collations are named after them.
const CHARSETS: [&str; 42] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf8", "utf8mb3", "utf8mb4",
];

/// The character set of a collation, lower case: the text before the first underscore. `None` for a name that implies
/// none, as MariaDB's `uca1400_ai_ci`, which fits several.
pub(crate) fn of_collation(collation: &str) -> Option<String> {
    let name = collation.split('_').next().unwrap_or_default().to_ascii_lowercase();
    CHARSETS.contains(&name.as_str()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collation_implies_its_character_set() {
        let cases = [
            ("utf8mb4_0900_ai_ci", Some("utf8mb4")),
            ("LATIN1_swedish_ci", Some("latin1")),
            ("utf8_general_ci", Some("utf8")),
            ("binary", Some("binary")),
            ("uca1400_ai_ci", None),
            ("", None),
        ];
        for (collation, charset) in cases {
            assert_eq!(of_collation(collation).as_deref(), charset, "{collation}");
        }
    }
}
