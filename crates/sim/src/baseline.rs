//! Cleaning policies whose cost theory knows exactly, for the simulator only: while any zone is worth its cost, they
//! also choose zones without a dead byte, so that no store should use them. If none is, they choose none, or a drive
//! would move its live data for ever and gain nothing.

use zone_alloc::{Candidate, CleaningPolicy, Greedy, Pressure, ZoneView};

/// The zone that was filled first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl CleaningPolicy for Fifo {
    fn choose(&self, view: ZoneView<'_>, pressure: Pressure) -> Option<Candidate> {
        Greedy.choose(view, pressure)?;
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
    fn choose(&self, view: ZoneView<'_>, pressure: Pressure) -> Option<Candidate> {
        Greedy.choose(view, pressure)?;
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

    /// Only zone 0 has dead bytes.
    fn zones() -> Vec<Candidate> {
        let zone = |id| Candidate {
            zone: ZoneId(id),
            live: if id == 0 { 8 } else { 10 },
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
    fn none_is_chosen_where_no_zone_is_worth_its_cost() {
        let zones = zones();
        for policy in [&Fifo as &dyn CleaningPolicy, &Random { seed: 1 }] {
            let of = |zones, pressure| policy.choose(ZoneView { zones, now: 30 }, pressure);
            assert!(of(&zones, Pressure::Any).is_some());
            assert!(of(&zones, Pressure::Urgent).is_some());
            assert_eq!(of(&zones, Pressure::Ahead), None, "a fifth is dead");
            assert_eq!(of(&zones[1..], Pressure::Any), None, "all is live");
        }
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
