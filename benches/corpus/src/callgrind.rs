//! Instructions counted by valgrind: a measure that a busy machine does not disturb.

use std::error::Error;
use std::ffi::OsStr;
use std::process::Command;

/// Instructions of a process of this program with other arguments.
///
/// # Errors
///
/// When valgrind can't be started, or the process fails.
pub fn instructions(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let collected = errors.lines().find_map(|line| line.split_once("Collected : "));
    match collected {
        Some((_, number)) if output.status.success() => Ok(number.trim().parse()?),
        _ => Err(format!("valgrind says: {errors}").into()),
    }
}
