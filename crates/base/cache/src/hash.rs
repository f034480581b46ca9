//! The hash of cache keys: the same in every run, with every bit depending on every bit of the key.
//!
//! [`NumberHash`] is not enough: a cache's shard is chosen by bits in the middle of the hash, and these are all
//! the same for keys that differ in their upper bits only, such as offsets that are multiples of 64 KiB.

use runtime::NumberHash;
use std::hash::{BuildHasher, Hasher};

/// The golden ratio's: odd and without a pattern.
const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Default)]
pub(crate) struct MixedHash(NumberHash);

pub(crate) struct Mixed(<NumberHash as BuildHasher>::Hasher);

impl BuildHasher for MixedHash {
    type Hasher = Mixed;

    fn build_hasher(&self) -> Mixed {
        Mixed(self.0.build_hasher())
    }
}

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u32(&mut self, number: u32) {
        self.0.write_u32(number);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.0.finish()) * FACTOR;
        product as u64 ^ (product >> 64) as u64
    }
}
