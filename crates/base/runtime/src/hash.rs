//! Hash tables whose iteration order is the same in every run.

use rustc_hash::FxBuildHasher;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Hashes numbers of our own (zones, inodes, offsets). Names and other keys that users choose belong in a
/// `BTreeMap`, because they could be chosen to collide.
pub type NumberHash = FxBuildHasher;

/// A map with numbers of our own as keys.
pub type HashMap<K, V> = std::collections::HashMap<K, V, NumberHash>;

/// A set of numbers of our own.
pub type HashSet<T> = std::collections::HashSet<T, NumberHash>;

/// A keyed hash (`SipHash`): without the key, values that collide cannot be chosen.
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
