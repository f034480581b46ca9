//! Locks on files of the host.

use std::fs::{File, TryLockError};
use std::ops::Deref;

/// A file with an exclusive or shared lock that is held until it is dropped; or without a lock.
///
/// The lock is released explicitly: a process that is just being spawned holds a copy of the descriptor for a
/// moment, and a lock that is only closed would stay with that copy.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Takes an exclusive lock on `file`.
    ///
    /// # Errors
    /// Another has it locked, or the host's error.
    pub fn exclusive(file: File) -> Result<Self, TryLockError> {
        file.try_lock().map(|()| Self(file))
    }

    /// Takes a lock on `file` that other readers can share.
    ///
    /// # Errors
    /// As [`Self::exclusive`].
    pub fn shared(file: File) -> Result<Self, TryLockError> {
        file.try_lock_shared().map(|()| Self(file))
    }

    /// Takes `file` with the lock that the caller has taken on it.
    pub const fn locked(file: File) -> Self {
        Self(file)
    }

    /// Takes `file` without a lock, whoever has it locked.
    pub const fn without_lock(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // The close that follows releases the lock too if this fails.
        let _ = self.0.unlock();
    }
}
