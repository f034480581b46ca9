//! Placements: which blocks share a zone.

use crate::placer::{Heat, Placer};
use crate::sepbit::SepBit;
use zone_alloc::{ByLifetime, Clock, History};

/// Which blocks share a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Placement {
    /// All blocks.
    #[default]
    Mixed,
    /// Blocks that the user writes, apart from those that the cleaner moves.
    MovedApart,
    /// Hot blocks apart from cold ones, with the heat known beforehand: the upper bound for placements that infer it.
    ByHeat,
    /// Blocks of about the same lifetime, as [`ByLifetime`] infers it.
    ByLifetime,
    /// Blocks of about the same lifetime, as [`SepBit`] infers it.
    SepBit,
}

impl Placement {
    /// Each variant with its name and a description.
    pub const ALL: [(&str, Self, &str); 5] = [
        ("mixed", Self::Mixed, "All"),
        (
            "moved-apart",
            Self::MovedApart,
            "What is written, and what is moved",
        ),
        (
            "by-heat",
            Self::ByHeat,
            "The hot and the cold, known beforehand",
        ),
        (
            "by-lifetime",
            Self::ByLifetime,
            "Those that will live about as long, inferred from overwrites",
        ),
        (
            "sepbit",
            Self::SepBit,
            "The same, as SepBIT infers it (Wang et al., FAST 2022)",
        ),
    ];

    pub(crate) fn of(self, blocks: u32) -> Box<dyn Placer> {
        match self {
            Self::Mixed => Box::new(Mixed),
            Self::MovedApart => Box::new(MovedApart),
            Self::ByHeat => Box::new(ByHeat),
            Self::ByLifetime => Box::new(Inferred {
                histories: vec![History::new(0); blocks as usize],
            }),
            Self::SepBit => Box::new(SepBit::new(blocks)),
        }
    }
}

struct Mixed;

impl Placer for Mixed {
    fn streams(&self) -> usize {
        1
    }

    fn written(&mut self, _block: u32, _heat: Heat, _now: u64) -> usize {
        0
    }

    fn moved(&mut self, _block: u32, _heat: Heat, _from: usize, _now: u64) -> usize {
        0
    }
}

struct MovedApart;

impl Placer for MovedApart {
    fn streams(&self) -> usize {
        2
    }

    fn written(&mut self, _block: u32, _heat: Heat, _now: u64) -> usize {
        0
    }

    fn moved(&mut self, _block: u32, _heat: Heat, _from: usize, _now: u64) -> usize {
        1
    }
}

struct ByHeat;

impl Placer for ByHeat {
    fn streams(&self) -> usize {
        2
    }

    fn written(&mut self, _block: u32, heat: Heat, _now: u64) -> usize {
        usize::from(heat == Heat::Hot)
    }

    fn moved(&mut self, block: u32, heat: Heat, _from: usize, now: u64) -> usize {
        self.written(block, heat, now)
    }
}

struct Inferred {
    histories: Vec<History>,
}

impl Inferred {
    fn clock(&self, now: u64) -> Clock {
        Clock {
            now,
            live: self.histories.len() as u64,
        }
    }
}

impl Placer for Inferred {
    fn streams(&self) -> usize {
        let streams = ByLifetime::default();
        streams.user_streams() + streams.moved_streams()
    }

    fn written(&mut self, block: u32, _heat: Heat, now: u64) -> usize {
        let clock = self.clock(now);
        let history = &mut self.histories[block as usize];
        *history = match history.written_at {
            0 => History::new(now),
            _ => history.overwritten(now),
        };
        ByLifetime::default().written(*history, clock)
    }

    fn moved(&mut self, block: u32, _heat: Heat, _from: usize, now: u64) -> usize {
        let (streams, clock) = (ByLifetime::default(), self.clock(now));
        streams.user_streams() + streams.moved(self.histories[block as usize], clock)
    }
}
