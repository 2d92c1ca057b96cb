//! Whose an offset file is: a lock on `<path>.lock`.
//!
//! The kernel frees the lock when its process ends, in whatever way, and the empty file stays. It is not the offset file
//! itself, which each write replaces. Engines of one process may share a file under keys of their own: the process has
//! the lock once, and knows which keys are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::OffsetStoreError;

/// Holds an offset until it is dropped; clones hold the same.
#[derive(Debug, Clone)]
#[must_use = "an offset is claimed only while this is held"]
pub struct Claim {
    _held: Option<Arc<Key>>,
}

impl Claim {
    /// Nothing to hold.
    pub const fn none() -> Self {
        Self { _held: None }
    }

    /// Locks the offset of `key` in the file at `path`.
    pub(super) fn file(path: &Path, key: &str) -> Result<Self, OffsetStoreError> {
        let location = path.display().to_string();
        let mut lock_path = path.to_path_buf().into_os_string();
        lock_path.push(".lock");
        let lock_path = PathBuf::from(lock_path);
        let in_use = || OffsetStoreError::InUse {
            location: location.clone(),
            lock: lock_path.display().to_string(),
        };
        let failed =
            |source| OffsetStoreError::Io { action: "lock", location: location.clone(), source };
        std::fs::create_dir_all(super::file::folder_of(path)).map_err(failed)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed)?;
        let name = std::fs::canonicalize(&lock_path).map_err(failed)?;
        let mut locks = locks();
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = match locks.get(&name).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                match file.try_lock() {
                    Ok(()) => {}
                    Err(TryLockError::WouldBlock) => return Err(in_use()),
                    Err(TryLockError::Error(error)) => return Err(failed(error)),
                }
                let lock = Arc::new(Lock { _file: file, keys: Mutex::default() });
                locks.insert(name, Arc::downgrade(&lock));
                lock
            }
        };
        drop(locks);
        if !lock.keys().insert(key.to_owned()) {
            return Err(in_use());
        }
        Ok(Self { _held: Some(Arc::new(Key { lock, key: key.to_owned() })) })
    }
}

/// The files that this process has locked.
fn locks() -> MutexGuard<'static, BTreeMap<PathBuf, Weak<Lock>>> {
    static LOCKS: Mutex<BTreeMap<PathBuf, Weak<Lock>>> = Mutex::new(BTreeMap::new());
    LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Lock {
    /// Closing it frees the lock.
    _file: File,
    keys: Mutex<BTreeSet<String>>,
}

impl Lock {
    fn keys(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Key {
    lock: Arc<Lock>,
    key: String,
}

impl Drop for Key {
    fn drop(&mut self) {
        self.lock.keys().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_once_and_other_keys_of_the_file_are_free_in_this_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not there yet/offsets.json");
        let one = Claim::file(&path, "one").unwrap();
        let error = Claim::file(&path, "one").unwrap_err();
        let lock = path.with_file_name("offsets.json.lock").display().to_string();
        assert!(matches!(error, OffsetStoreError::InUse { .. }), "{error}");
        assert!(error.to_string().contains(&lock), "{error}");
        let two = Claim::file(&path, "two").unwrap();
        let again = one.clone();
        drop(one);
        assert!(Claim::file(&path, "one").is_err(), "a clone holds it");
        drop(again);
        drop(Claim::file(&path, "one").unwrap());
        // A lock of another opening of the file, as another process has it.
        let other = File::open(folder.path().join("not there yet/offsets.json.lock")).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(two);
        other.try_lock().unwrap();
        let error = Claim::file(&path, "one").unwrap_err();
        assert!(matches!(error, OffsetStoreError::InUse { .. }), "{error}");
    }
}
