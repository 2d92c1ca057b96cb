//! Creating an object only if it is not there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::store::file::sync_folder;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Created {
    /// It was not, and is now.
    Yes,
    /// Another object has the name.
    Exists,
}

/// Creates a file as a whole, synced, unless it is there. OpenDAL's own ways are a file that grows under its name, and
/// a rename that overwrites; a link does neither.
pub(super) fn create_file(path: &Path, bytes: &[u8]) -> io::Result<Created> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut temporary = path.as_os_str().to_owned();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".{}-{count}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
    let linked = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&temporary, path));
    let removed = fs::remove_file(&temporary);
    match linked {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Created::Exists),
        Err(error) => return Err(error),
    }
    removed?;
    sync_folder(folder)?;
    Ok(Created::Yes)
}
