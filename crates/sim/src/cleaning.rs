//! Measures the write amplification of a cleaning policy: blocks of a device that lies on zones are overwritten at
//! random, and the blocks that the cleaner moves are counted.

use crate::placement::Placement;
use crate::placer::{Heat, Placer};
use crate::zones::Zones;
use std::str::FromStr;
use zone_alloc::{CleaningPolicy, Pressure, ZoneView};

/// Overwrites of the whole device before counting begins, in which the zones reach a steady state.
const SETTLING_OVERWRITES: u64 = 6;

/// Blocks of the largest drive; each takes some 16 bytes of memory.
const MOST_BLOCKS: u64 = 1 << 28;

/// A share of the blocks (the hot ones) that gets another share of the writes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Skew {
    /// Share of all blocks that are hot.
    pub data: f64,
    /// Share of all writes that go to hot blocks.
    pub writes: f64,
    /// Whether the hot blocks change: after as many writes as there are blocks, the next blocks are hot.
    pub shifts: bool,
}

impl FromStr for Skew {
    type Err = &'static str;

    /// `20/80`: 20 per cent of the data get 80 per cent of the writes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let part = |text: &str| -> Option<f64> {
            let percent = text.trim().parse().ok();
            let percent = percent.filter(|percent| (*percent > 0.0) && (*percent < 100.0));
            percent.map(|percent: f64| percent / 100.0)
        };
        let parts = text.split_once('/').and_then(|(data, writes)| {
            Some(Self {
                data: part(data)?,
                writes: part(writes)?,
                shifts: false,
            })
        });
        parts.ok_or("two numbers between 0 and 100 with a slash between them, such as 20/80")
    }
}

/// A load and the drive that it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Usable zones; open and reserved ones are on top.
    pub zones: u32,
    /// Blocks in each zone.
    pub blocks_per_zone: u32,
    /// Live data ÷ usable capacity.
    pub utilization: f64,
    /// `None`: all blocks alike.
    pub skew: Option<Skew>,
    /// Which blocks share a zone.
    pub placement: Placement,
    /// Writes that are counted.
    pub writes: u64,
    /// Another seed gives other writes.
    pub seed: u64,
}

/// Why a load cannot be simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Impossible {
    /// There is no block, or no zone to move one to.
    #[error("utilization is above 0 and leaves a zone free")]
    Utilization,
    /// More than can be numbered.
    #[error(
        "zones times blocks are at least 1 and at most 256 million, which take 4 GiB of memory"
    )]
    Size,
    /// A share is not above 0 and below 1, or there are fewer than two blocks.
    #[error("both shares of a skew are above 0 and below 1, and there are two blocks at least")]
    Skew,
}

/// The counts of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Blocks that the user wrote.
    pub written: u64,
    /// Blocks that the cleaner moved.
    pub moved: u64,
    /// Zones that the cleaner emptied.
    pub cleaned: u64,
}

impl Outcome {
    /// Blocks written to the drive ÷ blocks that the user wrote.
    pub fn write_amplification(&self) -> f64 {
        (self.written + self.moved) as f64 / self.written as f64
    }
}

impl Load {
    /// Runs the load and cleans as `policy` says. `each` is called now and then with the number of writes done and of
    /// all writes.
    ///
    /// # Errors
    /// The load cannot be simulated.
    pub fn run(
        &self,
        policy: &dyn CleaningPolicy,
        mut each: impl FnMut(u64, u64),
    ) -> Result<Outcome, Impossible> {
        let mut drive = SimulatedDrive::new(self, policy)?;
        let mut random = fastrand::Rng::with_seed(self.seed);
        for block in 0..drive.blocks {
            drive.write(block);
        }
        let settling = u64::from(drive.blocks) * SETTLING_OVERWRITES;
        let all = settling.saturating_add(self.writes);
        for done in 0..all {
            if done == settling {
                drive.outcome = Outcome {
                    written: 0,
                    moved: 0,
                    cleaned: 0,
                };
            }
            if done % 65_536 == 0 {
                each(done, all);
            }
            if self.skew.is_some_and(|skew| skew.shifts) && done % u64::from(drive.blocks) == 0 {
                drive.shift();
            }
            let block = drive.draw(self.skew, &mut random);
            drive.write(block);
        }
        Ok(drive.outcome)
    }
}

struct SimulatedDrive<'a> {
    zones: Zones,
    policy: &'a dyn CleaningPolicy,
    placer: Box<dyn Placer>,
    /// Zones that stay free for moved blocks.
    kept: usize,
    blocks: u32,
    /// The first hot block; the hot blocks go on at block 0 after the last block.
    first_hot: u32,
    /// Number of hot blocks.
    hot: u32,
    /// Blocks that the user has written so far.
    now: u64,
    outcome: Outcome,
}

impl<'a> SimulatedDrive<'a> {
    fn new(load: &Load, policy: &'a dyn CleaningPolicy) -> Result<Self, Impossible> {
        let capacity = u64::from(load.zones) * u64::from(load.blocks_per_zone);
        if capacity > MOST_BLOCKS {
            return Err(Impossible::Size);
        }
        if !(0.0..=1.0).contains(&load.utilization) {
            return Err(Impossible::Utilization);
        }
        let blocks = (capacity as f64 * load.utilization).round() as u64;
        let placer = load.placement.of(blocks as u32);
        let streams = placer.streams();
        // Moved blocks begin at most as many zones as were emptied, and one for each stream.
        let kept = 3 * streams;
        // An open zone is half full on average.
        let zones = u64::from(load.zones) + kept as u64 + streams.div_ceil(2) as u64;
        if capacity == 0 || zones * u64::from(load.blocks_per_zone) >= u64::from(u32::MAX) {
            return Err(Impossible::Size);
        }
        if blocks == 0 || blocks + u64::from(load.blocks_per_zone) > capacity {
            return Err(Impossible::Utilization);
        }
        let blocks = blocks as u32;
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        let hot = match load.skew {
            None => 0,
            Some(s) if is_share(s.data) && is_share(s.writes) && blocks > 1 => {
                ((f64::from(blocks) * s.data).round() as u32).clamp(1, blocks - 1)
            }
            Some(_) => return Err(Impossible::Skew),
        };
        Ok(Self {
            zones: Zones::new(zones as u32, load.blocks_per_zone, blocks, streams),
            policy,
            placer,
            kept,
            blocks,
            first_hot: 0,
            hot,
            now: 0,
            outcome: Outcome {
                written: 0,
                moved: 0,
                cleaned: 0,
            },
        })
    }

    fn draw(&self, skew: Option<Skew>, random: &mut fastrand::Rng) -> u32 {
        let from_first_hot = match skew {
            None => random.u32(..self.blocks),
            Some(skew) if random.f64() < skew.writes => random.u32(..self.hot),
            Some(_) => random.u32(self.hot..self.blocks),
        };
        let block = u64::from(self.first_hot) + u64::from(from_first_hot);
        (block % u64::from(self.blocks)) as u32
    }

    fn shift(&mut self) {
        let first = u64::from(self.first_hot) + u64::from(self.hot);
        self.first_hot = (first % u64::from(self.blocks)) as u32;
    }

    fn heat(&self, block: u32) -> Heat {
        let behind = if block < self.first_hot {
            self.blocks
        } else {
            0
        };
        if block.wrapping_add(behind).wrapping_sub(self.first_hot) < self.hot {
            Heat::Hot
        } else {
            Heat::Cold
        }
    }

    fn write(&mut self, block: u32) {
        self.now += 1;
        let stream = self.placer.written(block, self.heat(block), self.now);
        // One zone is cleaned when another is needed; more if moved blocks have opened zones of other streams.
        while self.zones.free() <= self.kept
            && (self.zones.needs_a_zone(stream) || self.zones.free() <= self.kept / 3 * 2)
            && self.clean()
        {}
        let done = self.zones.write(block, stream, self.now);
        debug_assert!(done, "a zone is kept for each stream");
        self.outcome.written += 1;
    }

    /// Empties the zone that the policy chooses; false if it chooses none.
    fn clean(&mut self) -> bool {
        let view = ZoneView {
            zones: self.zones.full(),
            now: self.zones.now(),
        };
        let Some(victim) = self.policy.choose(view, Pressure::Any) else {
            return false;
        };
        let (from, opened_at) = self.zones.origin(victim.zone);
        self.placer.emptied(from, self.now - opened_at);
        for block in self.zones.empty(victim.zone) {
            let stream = self.placer.moved(block, self.heat(block), from, self.now);
            let done = self.zones.write(block, stream, self.now);
            debug_assert!(done, "a zone is kept for each stream");
            self.outcome.moved += 1;
        }
        self.zones.reset(victim.zone);
        self.outcome.cleaned += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skews_are_two_parts_of_a_hundred() {
        let skew = Skew {
            data: 0.2,
            writes: 0.8,
            shifts: false,
        };
        assert_eq!("20/80".parse(), Ok(skew));
        for wrong in ["", "20", "0/80", "20/100", "x/y", "20/80/1"] {
            assert!(wrong.parse::<Skew>().is_err(), "{wrong}");
        }
    }
}
