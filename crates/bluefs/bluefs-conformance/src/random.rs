//! Pseudorandom numbers from a seed.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `end` - 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % end
    }

    /// A number from 1 to `most`; small ones are more likely.
    pub fn size(&mut self, most: u64) -> u64 {
        let most = 1 + self.below(most);
        1 + self.below(most)
    }
}

/// Mixes the bits of a number, so that similar numbers give dissimilar results.
pub(super) const fn mix(number: u64) -> u64 {
    let mut x = number;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
