//! Locks of objects during commits: commits that change the same object exclude each other.

use runtime::KeyedHash;
use runtime::sync::Mutex;

const STRIPES: usize = 1024;

/// A fixed number of locks; an object's is chosen by the hash of its name.
pub(crate) struct Stripes {
    /// Keyed, because clients choose names.
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
