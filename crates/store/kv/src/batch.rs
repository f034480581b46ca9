//! A batch: changes that happen together.

use crate::bridge::ffi;
use cxx::UniquePtr;

/// Changes that happen together or not at all, in the order in which they were added. A range is
/// deleted key by key: scans do not see RocksDB's deleted ranges, so that no error escapes them.
pub struct Batch {
    pub(crate) inner: UniquePtr<ffi::Batch>,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            inner: ffi::new_batch(),
        }
    }
}

impl Batch {
    /// Sets a key.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.inner.pin_mut().put(key, value);
    }

    /// Removes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.inner.pin_mut().remove(key);
    }

    /// Merges `value` into a key's value.
    pub fn merge(&mut self, key: &[u8], value: &[u8]) {
        self.inner.pin_mut().merge(key, value);
    }

    /// Adds bytes that go to the write-ahead log only, for a [`crate::ReplayFilter`] to see.
    pub fn log_data(&mut self, blob: &[u8]) {
        self.inner.pin_mut().log_data(blob);
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.inner.pin_mut().clear();
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.inner.count() == 0
    }

    /// Bytes in the log.
    pub fn byte_len(&self) -> usize {
        self.inner.bytes()
    }
}
