//! The states that a power cut may leave, enumerated or drawn at random. Pure: the input is the number of
//! blocks of each unflushed write in each zone, not their content.

use runtime::HashSet;
use std::collections::BTreeMap;
use zone::ZoneId;

/// Limits of the enumeration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrashLimits {
    /// Most states that are enumerated.
    pub max_states: usize,
    /// Most choices for one zone: nothing, everything, and others spread evenly over its unflushed commands.
    pub max_choices_per_zone: usize,
    /// Seed of the random states, which follow if there are more combinations than `max_states`.
    pub seed: u64,
}

impl Default for CrashLimits {
    fn default() -> Self {
        Self {
            max_states: 256,
            max_choices_per_zone: 64,
            seed: 0,
        }
    }
}

/// The unflushed commands that a power cut kept, by zone.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CrashState {
    /// The choice for each zone with unflushed commands; of a zone that is not listed nothing is kept.
    pub zones: BTreeMap<ZoneId, ZoneChoice>,
}

/// The unflushed commands of one zone that a power cut kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ZoneChoice {
    /// In a sequential zone: the first commands, and of the next one, if it is a write, the first bytes.
    Prefix {
        /// Number of commands that are kept.
        operations: usize,
        /// Bytes of the next write that are kept: whole blocks, less than all.
        torn_bytes: u64,
    },
    /// In a conventional zone: for each block of each write, in order, whether it is kept.
    Blocks {
        /// One flag for each block of each write.
        kept: Vec<bool>,
    },
}

/// The sizes of a zone's unflushed commands.
pub(super) struct ZoneLog {
    pub zone: ZoneId,
    /// Whether the zone is sequential, so that only a prefix can be kept.
    pub ordered: bool,
    pub block_size: u64,
    /// Number of blocks of each write; `None` for a reset or finish.
    pub write_blocks: Vec<Option<u64>>,
}

impl ZoneLog {
    fn blocks(&self) -> usize {
        self.write_blocks.iter().flatten().sum::<u64>() as usize
    }

    fn nothing(&self) -> ZoneChoice {
        if self.ordered {
            ZoneChoice::Prefix {
                operations: 0,
                torn_bytes: 0,
            }
        } else {
            ZoneChoice::Blocks {
                kept: vec![false; self.blocks()],
            }
        }
    }

    fn everything(&self) -> ZoneChoice {
        if self.ordered {
            ZoneChoice::Prefix {
                operations: self.write_blocks.len(),
                torn_bytes: 0,
            }
        } else {
            ZoneChoice::Blocks {
                kept: vec![true; self.blocks()],
            }
        }
    }

    /// The choices for this zone: nothing, everything, then choices in between; at most `limit`, at least the
    /// first two.
    fn choices(&self, limit: usize) -> Vec<ZoneChoice> {
        let mut between = Vec::new();
        if self.ordered {
            for (operations, blocks) in self.write_blocks.iter().enumerate() {
                if operations > 0 {
                    between.push(ZoneChoice::Prefix {
                        operations,
                        torn_bytes: 0,
                    });
                }
                if let Some(blocks) = blocks.filter(|blocks| *blocks > 1) {
                    let torn_bytes = blocks / 2 * self.block_size;
                    between.push(ZoneChoice::Prefix {
                        operations,
                        torn_bytes,
                    });
                }
            }
        } else {
            let blocks = self.blocks();
            if blocks > 2 {
                // The later half without the earlier one, as if writes were reordered.
                let kept = (0..blocks).map(|block| block >= blocks / 2).collect();
                between.push(ZoneChoice::Blocks { kept });
            }
            if blocks > 1 {
                between.extend((0..blocks).map(|missing| ZoneChoice::Blocks {
                    kept: (0..blocks).map(|block| block != missing).collect(),
                }));
            }
        }
        let room = limit.saturating_sub(2);
        let mut choices = vec![self.nothing(), self.everything()];
        if between.len() <= room {
            choices.append(&mut between);
        } else {
            let spread = (0..room).map(|i| between[i * between.len() / room].clone());
            choices.extend(spread);
        }
        choices
    }

    fn random(&self, random: &mut Random) -> ZoneChoice {
        match random.below(4) {
            0 => return self.nothing(),
            1 => return self.everything(),
            _ => {}
        }
        if self.ordered {
            let operations = random.below(self.write_blocks.len() as u64 + 1) as usize;
            let next = self
                .write_blocks
                .get(operations)
                .copied()
                .flatten()
                .unwrap_or(1);
            ZoneChoice::Prefix {
                operations,
                torn_bytes: random.below(next) * self.block_size,
            }
        } else {
            // The share of kept blocks varies from almost none to almost all.
            let of_eight = 1 + random.below(7);
            let kept = (0..self.blocks())
                .map(|_| random.below(8) < of_eight)
                .collect();
            ZoneChoice::Blocks { kept }
        }
    }
}

/// See [`super::PowerCut::crash_states`].
pub(super) fn enumerate(logs: &[ZoneLog], limits: CrashLimits) -> Vec<CrashState> {
    let choices: Vec<(ZoneId, Vec<ZoneChoice>)> = logs
        .iter()
        .map(|log| (log.zone, log.choices(limits.max_choices_per_zone)))
        .collect();
    let combinations = choices
        .iter()
        .try_fold(1_usize, |product, (_, choices)| {
            product.checked_mul(choices.len())
        })
        .filter(|product| *product <= limits.max_states);
    let mut states = States {
        limit: limits.max_states,
        seen: HashSet::default(),
        all: Vec::new(),
    };
    if let Some(combinations) = combinations {
        for combination in 0..combinations {
            let mut rest = combination;
            states.add(choices.iter().map(|(zone, choices)| {
                let choice = &choices[rest % choices.len()];
                rest /= choices.len();
                (*zone, choice.clone())
            }));
        }
        return states.all;
    }
    let uniform = |index: usize| {
        choices
            .iter()
            .map(move |(zone, of)| (*zone, of[index].clone()))
    };
    let except = |zone: ZoneId, choice: &ZoneChoice, others: usize| {
        let mut state: BTreeMap<_, _> = uniform(others).collect();
        state.insert(zone, choice.clone());
        state
    };
    const NOTHING: usize = 0;
    const EVERYTHING: usize = 1;
    states.add(uniform(NOTHING));
    states.add(uniform(EVERYTHING));
    for (zone, of) in &choices {
        states.add(except(*zone, &of[NOTHING], EVERYTHING));
        states.add(except(*zone, &of[EVERYTHING], NOTHING));
    }
    for (zone, of) in &choices {
        for choice in &of[2..] {
            states.add(except(*zone, choice, EVERYTHING));
            states.add(except(*zone, choice, NOTHING));
        }
    }
    // Random states may repeat, so they need not reach the limit.
    for seed in 0..limits.max_states as u64 {
        if states.all.len() >= limits.max_states {
            break;
        }
        states.add(random(logs, limits.seed.wrapping_add(seed)).zones);
    }
    states.all
}

/// See [`super::PowerCut::random_crash_state`].
pub(super) fn random(logs: &[ZoneLog], seed: u64) -> CrashState {
    let mut random = Random(seed);
    CrashState {
        zones: logs
            .iter()
            .map(|log| (log.zone, log.random(&mut random)))
            .collect(),
    }
}

struct States {
    limit: usize,
    seen: HashSet<CrashState>,
    all: Vec<CrashState>,
}

impl States {
    fn add(&mut self, zones: impl IntoIterator<Item = (ZoneId, ZoneChoice)>) {
        let state = CrashState {
            zones: zones.into_iter().collect(),
        };
        if self.all.len() < self.limit && self.seen.insert(state.clone()) {
            self.all.push(state);
        }
    }
}

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0. The distribution is slightly uneven, which is harmless in
    /// tests.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
