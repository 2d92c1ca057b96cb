//! The programs of other decoders, in `benches/peers`: a package of its own.

use std::error::Error;
use std::path::Path;
use std::process::Command;

/// Builds them; the path of the program.
///
/// # Errors
///
/// When it does not build.
pub fn build() -> Result<String, Box<dyn Error>> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let target = package.join("../../target/peers");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()?;
    if !status.success() {
        return Err("benches/peers does not build".into());
    }
    Ok(target.join("release/holdfast-bench-peers").display().to_string())
}
