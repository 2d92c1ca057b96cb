//! Where things are: the workspace, the cache of servers and jars, the folders of running servers.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Context, Result};

/// The root of the workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A file or folder of `tests/`.
#[must_use]
pub fn tests(name: &str) -> PathBuf {
    workspace().join("tests").join(name)
}

/// Servers and jars that were unpacked once: `HOLDFAST_CACHE`, else `$XDG_CACHE_HOME/holdfast`, else `~/.cache/holdfast`.
#[must_use]
pub fn cache() -> PathBuf {
    let var = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    var("HOLDFAST_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|base| base.join("holdfast")))
        .or_else(|| var("HOME").map(|home| home.join(".cache/holdfast")))
        .unwrap_or_else(|| PathBuf::from("/tmp/holdfast-cache"))
}

/// The build directory: `CARGO_TARGET_DIR`, else `target/` of the workspace.
#[must_use]
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace().join("target"), |dir| workspace().join(dir))
}

/// A new, empty folder under `target/holdfast-tests`, named after `label`, this process and a counter.
///
/// # Errors
///
/// When it cannot be made.
pub fn fresh(label: &str) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path =
        target().join("holdfast-tests").join(format!("{label}-{}-{number}", std::process::id()));
    if path.exists() {
        std::fs::remove_dir_all(&path).context(|| format!("cannot empty {}", path.display()))?;
    }
    std::fs::create_dir_all(&path).context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}
