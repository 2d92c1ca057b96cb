//! Collation ids of the wire: which character set, and how wide its characters are.

/// First and last id of a run of collations, and their character set; in order of the ids.
///
/// Source: `information_schema.COLLATIONS` of MySQL 9.7 and MariaDB 10.11 and 11.8. The two agree where both have an id.
const RANGES: [(u16, u16, &str); 105] = [
    (1, 1, "big5"),
    (2, 2, "latin2"),
    (3, 3, "dec8"),
    (4, 4, "cp850"),
    (5, 5, "latin1"),
    (6, 6, "hp8"),
    (7, 7, "koi8r"),
    (8, 8, "latin1"),
    (9, 9, "latin2"),
    (10, 10, "swe7"),
    (11, 11, "ascii"),
    (12, 12, "ujis"),
    (13, 13, "sjis"),
    (14, 14, "cp1251"),
    (15, 15, "latin1"),
    (16, 16, "hebrew"),
    (18, 18, "tis620"),
    (19, 19, "euckr"),
    (20, 20, "latin7"),
    (21, 21, "latin2"),
    (22, 22, "koi8u"),
    (23, 23, "cp1251"),
    (24, 24, "gb2312"),
    (25, 25, "greek"),
    (26, 26, "cp1250"),
    (27, 27, "latin2"),
    (28, 28, "gbk"),
    (29, 29, "cp1257"),
    (30, 30, "latin5"),
    (31, 31, "latin1"),
    (32, 32, "armscii8"),
    (33, 33, "utf8mb3"),
    (34, 34, "cp1250"),
    (35, 35, "ucs2"),
    (36, 36, "cp866"),
    (37, 37, "keybcs2"),
    (38, 38, "macce"),
    (39, 39, "macroman"),
    (40, 40, "cp852"),
    (41, 42, "latin7"),
    (43, 43, "macce"),
    (44, 44, "cp1250"),
    (45, 46, "utf8mb4"),
    (47, 49, "latin1"),
    (50, 52, "cp1251"),
    (53, 53, "macroman"),
    (54, 55, "utf16"),
    (56, 56, "utf16le"),
    (57, 57, "cp1256"),
    (58, 59, "cp1257"),
    (60, 61, "utf32"),
    (62, 62, "utf16le"),
    (63, 63, "binary"),
    (64, 64, "armscii8"),
    (65, 65, "ascii"),
    (66, 66, "cp1250"),
    (67, 67, "cp1256"),
    (68, 68, "cp866"),
    (69, 69, "dec8"),
    (70, 70, "greek"),
    (71, 71, "hebrew"),
    (72, 72, "hp8"),
    (73, 73, "keybcs2"),
    (74, 74, "koi8r"),
    (75, 75, "koi8u"),
    (76, 76, "utf8mb3"),
    (77, 77, "latin2"),
    (78, 78, "latin5"),
    (79, 79, "latin7"),
    (80, 80, "cp850"),
    (81, 81, "cp852"),
    (82, 82, "swe7"),
    (83, 83, "utf8mb3"),
    (84, 84, "big5"),
    (85, 85, "euckr"),
    (86, 86, "gb2312"),
    (87, 87, "gbk"),
    (88, 88, "sjis"),
    (89, 89, "tis620"),
    (90, 90, "ucs2"),
    (91, 91, "ujis"),
    (92, 93, "geostd8"),
    (94, 94, "latin1"),
    (95, 96, "cp932"),
    (97, 98, "eucjpms"),
    (99, 99, "cp1250"),
    (101, 124, "utf16"),
    (128, 151, "ucs2"),
    (159, 159, "ucs2"),
    (160, 183, "utf32"),
    (192, 215, "utf8mb3"),
    (223, 223, "utf8mb3"),
    (224, 247, "utf8mb4"),
    (248, 250, "gb18030"),
    (255, 323, "utf8mb4"),
    (576, 607, "utf8mb3"),
    (608, 639, "utf8mb4"),
    (640, 671, "ucs2"),
    (672, 703, "utf16"),
    (736, 767, "utf32"),
    (2048, 2303, "utf8mb3"),
    (2304, 2559, "utf8mb4"),
    (2560, 2815, "ucs2"),
    (2816, 3071, "utf16"),
    (3072, 3327, "utf32"),
];

/// What MariaDB adds to an id for the collation that does not pad (`MY_NOPAD_ID` in `include/m_ctype.h`).
const NO_PAD: u64 = 1024;

/// The character set, lower case, of a collation id; `None` for one that this version does not know. 63 is `binary`.
#[must_use]
pub fn charset_of_collation(id: u64) -> Option<&'static str> {
    let id = if (NO_PAD..2 * NO_PAD).contains(&id) { id - NO_PAD } else { id };
    let id = u16::try_from(id).ok()?;
    let after = RANGES.partition_point(|(first, _, _)| *first <= id);
    let (_, last, charset) = RANGES.get(after.checked_sub(1)?)?;
    (id <= *last).then_some(*charset)
}

/// The most bytes that a character takes in a character set, 1 to 4; `None` for one that this version does not know, and
/// for `utf8`, which is 3 on MySQL and either on MariaDB (`old_mode`).
#[must_use]
pub fn bytes_per_character(charset: &str) -> Option<u32> {
    match charset {
        "utf8mb4" | "utf16" | "utf16le" | "utf32" | "gb18030" => Some(4),
        "utf8mb3" | "ujis" | "eucjpms" => Some(3),
        "ucs2" | "gbk" | "gb2312" | "big5" | "sjis" | "cp932" | "euckr" => Some(2),
        "utf8" => None,
        known => RANGES.iter().any(|(_, _, charset)| *charset == known).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_in_order() {
        for pair in RANGES.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:?}");
        }
    }

    #[test]
    fn a_collation_has_one_character_set() {
        let cases = [
            (8, Some("latin1")),
            (63, Some("binary")),
            (255, Some("utf8mb4")),
            (1024 + 45, Some("utf8mb4")),
            (1024 + 63, Some("binary")),
            (2304, Some("utf8mb4")),
            (0, None),
            (17, None),
            (500, None),
            (u64::MAX, None),
        ];
        for (id, charset) in cases {
            assert_eq!(charset_of_collation(id), charset, "{id}");
        }
    }

    #[test]
    fn characters_have_widths() {
        let cases = [
            ("utf8mb4", Some(4)),
            ("utf8mb3", Some(3)),
            ("utf8", None),
            ("gbk", Some(2)),
            ("latin1", Some(1)),
            ("binary", Some(1)),
            ("klingon", None),
        ];
        for (charset, bytes) in cases {
            assert_eq!(bytes_per_character(charset), bytes, "{charset}");
        }
    }
}
