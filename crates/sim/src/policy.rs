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
    /// By free space, age and cost.
    CostBenefit,
    /// The one that was filled first.
    Fifo,
    /// Any.
    Random,
}

/// What a policy cost under a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cost {
    /// The policy's name.
    pub policy: &'static str,
    /// By the user.
    pub blocks_written: u64,
    /// By the cleaner.
    pub blocks_moved: u64,
    /// Reset.
    pub zones_cleaned: u64,
    /// Blocks written to the drive ÷ blocks that the user wrote.
    pub write_amplification: f64,
    /// The same by the closed form, where there is one; under a skew, the least with hot and cold blocks apart.
    pub theory: Option<f64>,
}

impl Cost {
    /// For people, the head in front.
    pub fn rows(costs: &[Self]) -> Vec<Vec<String>> {
        let head = ["policy", "write amplification", "theory", "ratio"];
        let or_dash = |value: Option<f64>| {
            value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
        };
        let row = |cost: &Self| {
            let measured = cost.write_amplification;
            let ratio = cost.theory.map(|theory| measured / theory);
            let numbers = [Some(measured), cost.theory, ratio].map(or_dash);
            [vec![cost.policy.to_owned()], numbers.to_vec()].concat()
        };
        let head = vec![head.map(str::to_owned).to_vec()];
        head.into_iter().chain(costs.iter().map(row)).collect()
    }
}

impl Policy {
    /// All, each with its name and what it takes.
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

    /// What it is called.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, policy, _)| *policy == self);
        found.map_or("", |(name, ..)| name)
    }

    /// What decides; a seed for the one that draws.
    pub fn decides(self, seed: u64) -> Box<dyn CleaningPolicy> {
        match self {
            Self::Greedy => Box::new(Greedy),
            Self::CostBenefit => Box::new(CostBenefit),
            Self::Fifo => Box::new(Fifo),
            Self::Random => Box::new(Random { seed }),
        }
    }

    /// Bears `load` and cleans by this policy. `each` is told the writes done of all there are, now and then.
    ///
    /// # Errors
    /// For a load that cannot be.
    pub fn measure(self, load: &Load, each: impl FnMut(u64, u64)) -> Result<Cost, Impossible> {
        let outcome = load.run(&*self.decides(load.seed), each)?;
        Ok(Cost {
            policy: self.name(),
            blocks_written: outcome.written,
            blocks_moved: outcome.moved,
            zones_cleaned: outcome.cleaned,
            write_amplification: outcome.write_amplification(),
            theory: self.theory(load),
        })
    }

    fn theory(self, load: &Load) -> Option<f64> {
        let u = load.utilization;
        match (load.skew, self) {
            (Some(skew), _) => Some(closed_form::two_groups(u, skew.data, skew.writes)),
            (None, Self::Greedy) => Some(closed_form::greedy(u, load.blocks_per_zone)),
            (None, Self::Fifo) => Some(closed_form::fifo(u)),
            (None, Self::Random) => Some(closed_form::random(u)),
            (None, Self::CostBenefit) => None,
        }
    }
}
