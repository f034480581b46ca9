//! SepBIT, the placement that ours has to beat (Wang et al., *Separating Data via Block Invalidation Time Inference
//! for Write Amplification Reduction in Log-Structured Storage*, FAST 2022, algorithm 1).

use crate::placer::{Heat, Placer};

/// Number of emptied zones of stream 0 over whose ages the mean is taken.
const AVERAGED: u32 = 16;

/// SepBIT's state. It has six streams:
///
/// - 0: blocks that replace short-lived ones; 1: other blocks that the user writes;
/// - 2: blocks moved out of stream 0;
/// - 3 to 5: other moved blocks by age, below 4, below 16, and from 16 mean lifetimes of zones of stream 0 on.
#[derive(Debug)]
pub struct SepBit {
    /// When each block was last written by the user; 0: never.
    written_at: Vec<u64>,
    /// The mean age at which zones of stream 0 were emptied, in blocks written by the user.
    mean: f64,
    ages: u64,
    zones: u32,
}

impl SepBit {
    /// For a device of this many blocks.
    pub fn new(blocks: u32) -> Self {
        Self {
            written_at: vec![0; blocks as usize],
            mean: f64::INFINITY,
            ages: 0,
            zones: 0,
        }
    }
}

impl Placer for SepBit {
    fn streams(&self) -> usize {
        6
    }

    fn written(&mut self, block: u32, _heat: Heat, now: u64) -> usize {
        let before = std::mem::replace(&mut self.written_at[block as usize], now);
        usize::from(before == 0 || (now - before) as f64 >= self.mean)
    }

    fn moved(&mut self, block: u32, _heat: Heat, from: usize, now: u64) -> usize {
        let age = (now - self.written_at[block as usize]) as f64;
        match from {
            0 => 2,
            _ if age < 4.0 * self.mean => 3,
            _ if age < 16.0 * self.mean => 4,
            _ => 5,
        }
    }

    fn emptied(&mut self, stream: usize, age: u64) {
        if stream != 0 {
            return;
        }
        self.ages += age;
        self.zones += 1;
        if self.zones == AVERAGED {
            self.mean = self.ages as f64 / f64::from(AVERAGED);
            (self.ages, self.zones) = (0, 0);
        }
    }
}
