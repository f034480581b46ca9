//! Seeded random numbers for choosing positions: the same seed gives the same numbers.

/// A xorshift generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for any seed, 0 too.
    pub const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`, which must not be 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 as u128 * bound as u128) >> 64) as u64
    }

    /// The numbers below `count` in random order.
    pub fn shuffled(&mut self, count: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..count).collect();
        for last in (1..all.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            all.swap(last, other);
        }
        all
    }
}
