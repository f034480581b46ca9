//! Walking through keys in order, on the state at the beginning of the walk.

use crate::bridge::ffi;
use crate::error::{Result, check};
use cxx::UniquePtr;
use std::marker::PhantomData;

/// Keys and values in order; ends after the first error.
pub struct Scan<'a> {
    pub(crate) cursor: UniquePtr<ffi::Cursor>,
    pub(crate) done: bool,
    /// The database outlives its iterators.
    pub(crate) database: PhantomData<&'a ()>,
}

impl Scan<'_> {
    /// Goes on at the first key that is not below `key`, forward or back.
    pub fn seek(&mut self, key: &[u8]) {
        self.cursor.pin_mut().seek(key);
        self.done = false;
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if !self.cursor.valid() {
            self.done = true;
            return check(self.cursor.status()).err().map(Err);
        }
        let entry = (self.cursor.key().to_vec(), self.cursor.value().to_vec());
        self.cursor.pin_mut().next();
        Some(Ok(entry))
    }
}
