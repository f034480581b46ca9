//! Random numbers from a seed.

/// Seed of random cases and histories, from `ZONESTORE_SEED`; 0 by default.
pub fn seed() -> u64 {
    let given = std::env::var("ZONESTORE_SEED").ok();
    given.map_or(0, |seed| seed.parse().unwrap())
}

/// A small generator: the same seed gives the same history.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Random size of a file: of manifests and info logs, of SSTs in upper levels, and of SSTs of half a zone and more.
    pub fn size(&mut self) -> u64 {
        1 + match self.below(10) {
            0..=4 => self.below(3_000),
            5..=7 => self.below(20_000),
            _ => 20_000 + self.below(50_000),
        }
    }
}
