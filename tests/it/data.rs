//! Cases that need no server.

use holdfast_binlog::{GtidPos, GtidSet};
use holdfast_tests::json::Json;
use holdfast_tests::paths;

fn vectors(case: &str) -> Vec<Json> {
    let text =
        std::fs::read_to_string(paths::tests("cases").join(case).join("expect.jsonl")).unwrap();
    text.lines().map(|line| Json::parse(line).unwrap()).collect()
}

#[test]
fn gtid_set_algebra() {
    let set = |text: &str| GtidSet::parse(text).unwrap();
    let pos = |text: &str| GtidPos::parse(text).unwrap();
    for vector in vectors("121-gtid-set-algebra") {
        let text = |name: &str| vector.text(name).unwrap_or_default();
        let (a, b) = (text("a"), text("b"));
        let came = match text("op") {
            "canonical" => set(a).to_string(),
            "contains" => set(b).is_subset_of(&set(a)).to_string(),
            "union" => set(a).union(&set(b)).to_string(),
            "subtract" => set(a).subtract(&set(b)).to_string(),
            "error" => {
                assert!(GtidSet::parse(a).is_err(), "{vector}");
                continue;
            }
            "mariadb_canonical" => pos(a).to_string(),
            "mariadb_contains" => pos(b).at_or_before(&pos(a)).to_string(),
            op => panic!("unknown operation {op}"),
        };
        let wanted =
            vector.get("r").map(|r| r.as_text().map_or_else(|| r.to_string(), str::to_owned));
        assert_eq!(Some(came), wanted, "{vector}");
    }
}
