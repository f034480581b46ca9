//! Cleaning policies by their names, each beside its closed form.

use crate::baseline::{Fifo, Random};
use crate::cleaning::{Impossible, Load};
use crate::closed_form;
use serde::Serialize;
use zone_alloc::{CleaningPolicy, CostBenefit, Greedy};

/// Which zone is cleaned next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// The one with the fewest live bytes.
    Greedy,
    /// The one with the highest ratio of free space times age to cost.
    CostBenefit,
    /// The one that was filled first.
    Fifo,
    /// Any zone.
    Random,
}

/// The measured cost of a policy under a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// The policy's name.
    pub policy: &'static str,
    /// Blocks that the user wrote.
    pub blocks_written: u64,
    /// Blocks that the cleaner moved.
    pub blocks_moved: u64,
    /// Zones that the cleaner reset.
    pub zones_cleaned: u64,
    /// Blocks written to the drive ÷ blocks that the user wrote.
    pub write_amplification: f64,
    /// The write amplification by a closed form, where one holds.
    pub theory: Option<f64>,
    /// The name of that form.
    pub theory_of: Option<&'static str>,
}

impl Cost {
    /// A table for people, its head first.
    pub fn rows(costs: &[Self]) -> Vec<Vec<String>> {
        let head = [
            "policy",
            "write amplification",
            "theory",
            "ratio",
            "theory is of",
        ];
        let or_dash = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
        };
        let row = |cost: &Self| {
            let measured = cost.write_amplification;
            let ratio = cost.theory.map(|theory| measured / theory);
            let numbers = [Some(measured), cost.theory, ratio].map(or_dash);
            let of = cost.theory_of.unwrap_or("–").to_owned();
            [vec![cost.policy.to_owned()], numbers.to_vec(), vec![of]].concat()
        };
        let head = vec![head.map(str::to_owned).to_vec()];
        head.into_iter().chain(costs.iter().map(row)).collect()
    }
}

impl Policy {
    /// Each variant with its name and a description.
    pub const ALL: [(&str, Self, &str); 4] = [
        (
            "greedy",
            Self::Greedy,
            "The zone with the fewest live bytes",
        ),
        (
            "cost-benefit",
            Self::CostBenefit,
            "The most free space times age for what it costs (Rosenblum and Ousterhout)",
        ),
        ("fifo", Self::Fifo, "The zone that was filled first"),
        ("random", Self::Random, "Any zone"),
    ];

    /// The name in [`Self::ALL`].
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, policy, _)| *policy == self);
        found.map_or("", |(name, ..)| name)
    }

    /// The policy itself; `seed` is used by [`Self::Random`] only.
    pub fn decides(self, seed: u64) -> Box<dyn CleaningPolicy> {
        match self {
            Self::Greedy => Box::new(Greedy),
            Self::CostBenefit => Box::new(CostBenefit),
            Self::Fifo => Box::new(Fifo),
            Self::Random => Box::new(Random { seed }),
        }
    }

    /// Runs `load` and cleans by this policy. `each` is called now and then with the number of writes done and of all
    /// writes.
    ///
    /// # Errors
    /// The load cannot be simulated.
    pub fn measure(self, load: &Load, each: impl FnMut(u64, u64)) -> Result<Cost, Impossible> {
        let outcome = load.run(&*self.decides(load.seed), each)?;
        let (theory, theory_of) = self.theory(load).unzip();
        Ok(Cost {
            policy: self.name(),
            blocks_written: outcome.written,
            blocks_moved: outcome.moved,
            zones_cleaned: outcome.cleaned,
            write_amplification: outcome.write_amplification(),
            theory,
            theory_of,
        })
    }

    /// The closed form to compare this policy with, and its name. Under a skew, it is the same for all policies and
    /// no lower bound: cost-benefit with hot and cold blocks apart costs a little less.
    fn theory(self, load: &Load) -> Option<(f64, &'static str)> {
        let u = load.utilization;
        let (cost, of) = match (load.skew, self) {
            (Some(skew), _) => (
                closed_form::two_groups(u, skew.data, skew.writes),
                "fifo, hot and cold apart",
            ),
            // The form holds for zones of many blocks: for few, it gives less than any policy reaches.
            (None, Self::Greedy) if load.blocks_per_zone >= closed_form::GREEDY_LEAST_BLOCKS => {
                (closed_form::greedy(u, load.blocks_per_zone), "greedy")
            }
            (None, Self::Fifo) => (closed_form::fifo(u), "fifo"),
            (None, Self::Random) => (closed_form::random(u), "random"),
            (None, Self::Greedy | Self::CostBenefit) => return None,
        };
        // A result below 1 is wrong: the drive writes at least the user's blocks.
        (cost >= 1.0).then_some((cost, of))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::placement::Placement;

    #[test]
    fn theory_is_said_only_where_it_holds() {
        for blocks_per_zone in [1, 2, 4, 8, 16, 64] {
            for utilization in [0.1, 0.5, 0.8, 0.9] {
                let load = Load {
                    zones: 16_384 / blocks_per_zone,
                    blocks_per_zone,
                    utilization,
                    skew: None,
                    placement: Placement::Mixed,
                    writes: 20_000,
                    seed: 1,
                };
                let said = Policy::Greedy.theory(&load);
                assert!(said.is_none_or(|(cost, _)| cost >= 1.0), "{load:?}");
                assert_eq!(said.is_some(), said.is_some_and(|(_, of)| of == "greedy"));
                if blocks_per_zone <= 16
                    && let Some((cost, _)) = said
                {
                    let measured = Policy::Greedy.measure(&load, |_, _| {}).unwrap();
                    let ratio = measured.write_amplification / cost;
                    assert!((0.95..1.05).contains(&ratio), "{load:?}: {ratio}");
                }
            }
        }
    }
}
