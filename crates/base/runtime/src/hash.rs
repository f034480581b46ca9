//! Hash tables whose order is the same in every run.

use rustc_hash::FxBuildHasher;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Hashes numbers of our own (zones, inodes, places). Names and other keys that somebody chooses
/// belong into a `BTreeMap`, for they could be chosen to collide.
pub type NumberHash = FxBuildHasher;

/// A map by numbers of our own.
pub type HashMap<K, V> = std::collections::HashMap<K, V, NumberHash>;

/// A set of the same kind of keys.
pub type HashSet<T> = std::collections::HashSet<T, NumberHash>;

/// Hashes with a key, so that nobody without it can choose values that collide (`SipHash`).
#[derive(Clone, Copy)]
pub struct KeyedHash(u64);

impl KeyedHash {
    pub(crate) const fn new(key: u64) -> Self {
        Self(key)
    }

    /// The hash of a value.
    pub fn hash_one(self, value: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        value.hash(&mut hasher);
        hasher.finish()
    }
}
