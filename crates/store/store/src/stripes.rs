//! Locks of commits on objects: those on one object exclude each other.

use runtime::KeyedHash;
use runtime::sync::Mutex;

const STRIPES: usize = 1024;

/// Locks of commits on objects, by hash of the name.
pub(crate) struct Stripes {
    /// Clients choose names.
    hash: KeyedHash,
    locks: Vec<Mutex<()>>,
}

impl Stripes {
    pub fn new(hash: KeyedHash) -> Self {
        let locks = (0..STRIPES).map(|_| Mutex::new(())).collect();
        Self { hash, locks }
    }

    pub fn index(&self, collection: &str, object: &[u8]) -> usize {
        self.hash.hash_one((collection, object)) as usize % STRIPES
    }

    pub fn lock(&self, index: usize) -> &Mutex<()> {
        &self.locks[index]
    }
}
