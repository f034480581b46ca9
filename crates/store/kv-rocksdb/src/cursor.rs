//! RocksDB's iterator as a [`Cursor`].

use crate::bridge::ffi;
use crate::outcome::check;
use cxx::UniquePtr;
use kv::{Cursor, Result};
use std::marker::PhantomData;

pub(crate) struct RocksCursor<'a> {
    inner: UniquePtr<ffi::Cursor>,
    done: bool,
    /// Ties the iterator to the database, which has to outlive it.
    database: PhantomData<&'a ()>,
}

impl RocksCursor<'_> {
    pub fn new(inner: UniquePtr<ffi::Cursor>) -> Self {
        Self {
            inner,
            done: false,
            database: PhantomData,
        }
    }
}

impl Cursor for RocksCursor<'_> {
    fn seek(&mut self, key: &[u8]) {
        if !self.inner.valid() && check(self.inner.status()).is_err() {
            // After a block that cannot be read, a seek to a whole block may find RocksDB's iterator still with the
            // error. A seek after all rows makes it give up its block (`BlockBasedTableIterator::ResetDataIter`).
            self.inner.pin_mut().seek(&[0xff; 64]);
        }
        self.inner.pin_mut().seek(key);
        self.done = false;
    }
}

impl Iterator for RocksCursor<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if !self.inner.valid() {
            self.done = true;
            return check(self.inner.status()).err().map(Err);
        }
        let entry = (self.inner.key().to_vec(), self.inner.value().to_vec());
        self.inner.pin_mut().next();
        Some(Ok(entry))
    }
}
