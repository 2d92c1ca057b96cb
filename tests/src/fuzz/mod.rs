//! What the fuzz targets call: bytes in, a panic when what must hold does not.
//!
//! One function for each target of `tests/fuzz`, which is outside the workspace. `cargo test` runs the committed seeds and
//! the crashes found (`tests/fuzz/seeds/TARGET`) through the same functions.

mod ddl;
mod history_line;
mod log;
mod packet;
mod value;

pub use ddl::ddl;
pub use history_line::history_line;
pub use log::{event, payload, rows, table_map};
pub use packet::packet;
pub use value::{decimal, gtid, json};

/// A target: its name, which is that of its folder of seeds, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("ddl", ddl),
    ("history_line", history_line),
    ("packet", packet),
    ("event", event),
    ("table_map", table_map),
    ("rows", rows),
    ("payload", payload),
    ("decimal", decimal),
    ("json", json),
    ("gtid", gtid),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn seeds_and_found_crashes_of_every_target_pass() {
        for &(name, run) in TARGETS {
            let folder = paths::tests("fuzz/seeds").join(name);
            let mut seeds = 0;
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                println!("{}", path.display());
                run(&std::fs::read(path).unwrap());
                seeds += 1;
            }
            assert!(seeds > 0, "no seeds in {}", folder.display());
        }
    }
}
