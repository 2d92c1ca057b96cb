use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const U: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const V: &str = "f0e1d2c3-0000-0000-0000-00000000000a";

#[test]
fn every_way_to_write_a_set_prints_in_one_way() {
    let table = [
        ("", ""),
        (" \n ,, ", ""),
        ("U:5", "U:5"),
        ("U:5-5", "U:5"),
        ("U:4-6:1-3", "U:1-6"),
        ("U:1-3:5-9:2-7", "U:1-9"),
        ("U:1-3:5", "U:1-3:5"),
        ("V:1,U:2,V:2", "U:2,V:1-2"),
        ("U : 1 - 3\n,\nV:7 ,", "U:1-3,V:7"),
        ("U:1:Red:1-2:blue:9,U:2:red:3", "U:1-2:blue:9:red:1-3"),
        ("U:tag:4", "U:tag:4"),
        ("U:9223372036854775806", "U:9223372036854775806"),
        ("U:1-9223372036854775805:9223372036854775806", "U:1-9223372036854775806"),
        ("U:007", "U:7"),
    ];
    for (text, canonical) in table {
        assert_eq!(set(text).to_string(), named(canonical), "{text}");
        let upper = named(text).to_uppercase();
        assert_eq!(GtidSet::parse(&upper).unwrap(), set(canonical), "{text}");
    }
    assert_eq!(set("U:1-3:5:t:7").as_ranges().to_string(), named("U:1-3:5-5:t:7-7"));
}

#[test]
fn texts_that_are_no_set_are_errors_that_say_where() {
    use GtidErrorKind::{NoInterval, NotATag, NotAUuid, Reversed, Unexpected, Zero};
    let table = [
        ("nope:1", NotAUuid, 0),
        ("U:1,nope", NotAUuid, 39),
        ("U", NoInterval, 36),
        ("U:", NoInterval, 37),
        ("U::1", NoInterval, 37),
        ("U:tag", NoInterval, 40),
        ("U:1:tag,V:1", NoInterval, 42),
        ("U:1-", NoInterval, 39),
        ("U:0", Zero, 37),
        ("U:1:0-4", Zero, 39),
        ("U:5-3", Reversed, 37),
        ("U:9223372036854775807", TOO_LARGE, 37),
        ("U:1-99999999999999999999999999", TOO_LARGE, 39),
        ("U:1;", Unexpected, 38),
        ("U:1 V:1", Unexpected, 39),
        ("U:-1", Unexpected, 37),
        ("U:1-2-3", Unexpected, 40),
        ("U:abcdefghijabcdefghijabcdefghijabc:1", NotATag, 37),
        ("U:a-b:1", NotATag, 37),
        ("U:\u{e9}:1", Unexpected, 37),
    ];
    for (text, kind, at) in table {
        assert_eq!(GtidSet::parse(&named(text)), Err(kind.at(at)), "{text}");
    }
}

#[test]
fn containment_union_and_subtraction_work_per_source_and_tag() {
    let subsets = [
        ("", "", true),
        ("", "U:1", true),
        ("U:1", "", false),
        ("U:1-9", "U:1-5:6-9", true),
        ("U:1-11", "U:1-5:7-20", false),
        ("U:2-3:7", "U:1-10", true),
        ("U:2-11", "U:1-10", false),
        ("U:tag:1", "U:1-10", false),
        ("U:1-5:tag:1-3", "U:1-9:tag:1-2", false),
        ("U:1", "V:1", false),
    ];
    for (inner, outer, expected) in subsets {
        assert_eq!(set(inner).is_subset_of(&set(outer)), expected, "{inner} in {outer}");
    }
    let differences = [
        ("U:1-9", "U:3-4", "U:1-2:5-9"),
        ("U:1-9", "U:1-9", ""),
        ("U:1-9:20-29", "U:5-22:25:40", "U:1-4:23-24:26-29"),
        ("U:1-9,V:1", "V:1-5", "U:1-9"),
        ("U:1-9:t:1-9", "U:t:1-8", "U:1-9:t:9"),
        ("U:1-9223372036854775806", "U:9223372036854775806", "U:1-9223372036854775805"),
    ];
    for (left, right, expected) in differences {
        assert_eq!(set(left).subtract(&set(right)), set(expected), "{left} - {right}");
    }
    assert_eq!(set("U:1-3").union(&set("U:4-5,V:1")), set("U:1-5,V:1"));
}

#[test]
fn an_overlay_replaces_sources_and_a_filter_drops_them() {
    let mut start = set("U:1-50:t:1,V:1-7");
    start.overlay(&set("U:1-10"));
    assert_eq!(start, set("U:1-10:t:1,V:1-7"));
    let only = set("U:1:t:2,V:7").filter(|source| source.to_string() == V);
    assert_eq!(only, set("V:7"));
    start.retain(|_, tag| !tag.is_none());
    assert_eq!(start, set("U:t:1"));
}

/// Body of the `PREVIOUS_GTIDS_EVENT` that MySQL 9.7.4 wrote after transactions `:1` and `:mytag:1`.
const TAGGED: &[u8] = b"\x01\x02\0\0\0\0\0\x01\
    \x5e\xe3\x9d\x77\xec\x5e\x11\xf1\xb0\x70\x02\xfc\0\0\0\x01\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\
    \x5e\xe3\x9d\x77\xec\x5e\x11\xf1\xb0\x70\x02\xfc\0\0\0\x01\x0amytag\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";

#[test]
fn the_binary_form_is_the_servers() {
    let text = "5ee39d77-ec5e-11f1-b070-02fc00000001:1:mytag:1-2";
    let set = GtidSet::decode(TAGGED).unwrap();
    assert_eq!(set.to_string(), text);
    assert_eq!(set.encode(), TAGGED);
    for len in 0..TAGGED.len() {
        assert!(GtidSet::decode(&TAGGED[..len]).is_err(), "{len}");
    }
    let untagged = GtidSet::parse(&named("U:2-3")).unwrap().encode();
    assert_eq!(untagged.len(), 8 + 16 + 8 + 16);
    assert_eq!(untagged[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(untagged[32..], [2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(GtidSet::new().encode(), [0; 8]);
}

#[test]
fn hostile_bytes_are_errors_and_take_no_memory() {
    let good = GtidSet::parse(&named("U:2-3")).unwrap().encode();
    let patched = |at: usize, bytes: &[u8]| {
        let mut all = good.clone();
        all[at..at + bytes.len()].copy_from_slice(bytes);
        all
    };
    let invalid = |field, value| Err(DecodeError::Invalid { field, value });
    assert_eq!(GtidSet::decode(&patched(7, &[2])), invalid("gtid_set_format", 2));
    assert_eq!(GtidSet::decode(&patched(40, &[2])), invalid("gtid_interval_end", 2));
    assert_eq!(GtidSet::decode(&patched(32, &[0])), invalid("gtid_interval_end", 4));
    assert_eq!(GtidSet::decode(&patched(40, &[0])), invalid("gtid_interval_end", 0));
    assert_eq!(GtidSet::decode(&patched(40, &[0xff; 8])), invalid("gtid_interval_end", u64::MAX));
    let short = DecodeError::Truncated { field: "gtid_interval_start", needed: 8, left: 0 };
    assert_eq!(GtidSet::decode(&patched(24, &[0xff; 8])), Err(short));
    let short = DecodeError::Truncated { field: "gtid_source", needed: 16, left: 0 };
    assert_eq!(GtidSet::decode(&patched(0, &[0xff; 6])), Err(short));
    let mut longer = good;
    longer.push(0);
    assert_eq!(GtidSet::decode(&longer), Err(DecodeError::Trailing { field: "gtid_set", left: 1 }));
}

#[test]
fn numbers_that_no_transaction_has_are_not_added() {
    let mut set = GtidSet::new();
    let source = Uuid::parse(U).unwrap();
    assert_eq!(set.add(Gtid::new(source, 0)), Err(GtidErrorKind::Zero.at(0)));
    assert_eq!(set.add(Gtid::new(source, MAX_NUMBER + 1)), Err(TOO_LARGE.at(0)));
    assert!(set.is_empty());
    set.add(Gtid::new(source, MAX_NUMBER)).unwrap();
    assert!(set.contains(Gtid::new(source, MAX_NUMBER)));
}

/// The naive model: every transaction by itself.
type Model = BTreeSet<(u8, u8, u64)>;

fn gtid((source, tag, number): (u8, u8, u64)) -> Gtid {
    let tag = ["", "a", "ab"][usize::from(tag)];
    Gtid { source: Uuid::from_bytes([source; 16]), tag: Tag::parse(tag).unwrap(), number }
}

fn models() -> impl Strategy<Value = Vec<(u8, u8, u64)>> {
    prop::collection::vec((0..2_u8, 0..3_u8, 1..30_u64), 0..60)
}

fn build(ids: &[(u8, u8, u64)]) -> (GtidSet, Model) {
    let mut set = GtidSet::new();
    for id in ids {
        set.add(gtid(*id)).unwrap();
    }
    (set, ids.iter().copied().collect())
}

fn check(set: &GtidSet, model: &Model) {
    let ids: Vec<_> = model.iter().copied().collect();
    assert_eq!(*set, build(&ids).0);
    for source in 0..2 {
        for tag in 0..3 {
            for number in 0..31 {
                let id = (source, tag, number);
                assert_eq!(set.contains(gtid(id)), model.contains(&id), "{id:?} in {set}");
            }
        }
    }
    for (_, _, intervals) in set.iter() {
        assert!(!intervals.is_empty());
        assert!(intervals.windows(2).all(|pair| pair[0].last() + 1 < pair[1].first()), "{set}");
    }
}

proptest! {
    #[test]
    fn sets_obey_the_model(left in models(), right in models()) {
        let ((a, model_a), (b, model_b)) = (build(&left), build(&right));
        check(&a, &model_a);
        check(&a.union(&b), &model_a.union(&model_b).copied().collect());
        check(&a.subtract(&b), &model_a.difference(&model_b).copied().collect());
        prop_assert_eq!(a.is_subset_of(&b), model_a.is_subset(&model_b));
        prop_assert!(a.is_subset_of(&a.union(&b)));
        prop_assert_eq!(GtidSet::parse(&a.to_string()).unwrap(), a.clone());
        prop_assert_eq!(GtidSet::parse(&a.as_ranges().to_string()).unwrap(), a.clone());
        prop_assert_eq!(GtidSet::decode(&a.encode()).unwrap(), a);
    }

    #[test]
    fn any_text_and_any_bytes_end_in_a_value_or_an_error(text in ".{0,80}", bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = GtidSet::parse(&text);
        let _ = GtidSet::parse(&named(&format!("U{text}")));
        let _ = GtidSet::decode(&bytes);
    }
}

/// `U` and `V` in a text stand for two UUIDs.
fn named(text: &str) -> String {
    text.replace('U', U).replace('V', V)
}

fn set(text: &str) -> GtidSet {
    GtidSet::parse(&named(text)).unwrap()
}
