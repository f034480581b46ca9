//! Cleaning policies whose cost theory knows exactly, for the simulator only: they also choose zones without a dead
//! byte, so that no store should use them.

use zone_alloc::{Candidate, CleaningPolicy, Pressure, ZoneView};

/// The zone that was filled first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl CleaningPolicy for Fifo {
    fn choose(&self, view: ZoneView<'_>, _pressure: Pressure) -> Option<Candidate> {
        let zones = view.zones.iter();
        zones.min_by_key(|c| (c.filled_at, c.zone)).copied()
    }
}

/// Any zone, all with the same probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random {
    /// Another seed gives other choices.
    pub seed: u64,
}

impl CleaningPolicy for Random {
    fn choose(&self, view: ZoneView<'_>, _pressure: Pressure) -> Option<Candidate> {
        // Seeds that are close to each other give similar first numbers, hence two generators.
        let seed = fastrand::Rng::with_seed(self.seed ^ view.now).u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        random.choice(view.zones).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneId;

    fn zones() -> Vec<Candidate> {
        let zone = |id| Candidate {
            zone: ZoneId(id),
            live: 10,
            written: 10,
            filled_at: 20 - u64::from(id),
        };
        (0..8).map(zone).collect()
    }

    #[test]
    fn fifo_takes_the_oldest() {
        let view = ZoneView {
            zones: &zones(),
            now: 30,
        };
        assert_eq!(Fifo.choose(view, Pressure::Any).unwrap().zone, ZoneId(7));
    }

    #[test]
    fn random_choices_are_even_and_repeatable() {
        let mut chosen = [0; 8];
        for now in 0..8000 {
            let view = ZoneView {
                zones: &zones(),
                now,
            };
            let choice = Random { seed: 1 }.choose(view, Pressure::Any);
            assert_eq!(choice, Random { seed: 1 }.choose(view, Pressure::Any));
            chosen[choice.unwrap().zone.index()] += 1;
        }
        assert!(chosen.iter().all(|n| (850..1150).contains(n)), "{chosen:?}");
    }
}
