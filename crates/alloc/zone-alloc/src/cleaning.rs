//! Chooses the next zone to clean. Policies are pure: the same view and pressure give the same choice, so
//! BlueFS, the store and the simulator share them and a run can be replayed.

use std::fmt::Debug;
use zone::ZoneId;

/// A zone that could be cleaned, with its live and written bytes and its age.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The zone.
    pub zone: ZoneId,
    /// Live bytes in the zone, which cleaning has to move.
    pub live: u64,
    /// Bytes that a reset gives back, the live ones among them: up to the write pointer, or up to the
    /// zone's capacity where the tail of a finished zone is lost.
    pub written: u64,
    /// Time at which the zone was filled, on the clock of [`ZoneView::now`]; smaller is older.
    pub filled_at: u64,
}

impl Candidate {
    pub(crate) const fn dead(&self) -> u64 {
        self.written.saturating_sub(self.live)
    }
}

/// The zones that may be cleaned, at one moment.
#[derive(Clone, Copy, Debug)]
pub struct ZoneView<'a> {
    /// The candidates, in any order and without duplicates.
    pub zones: &'a [Candidate],
    /// The present on the clock of [`Candidate::filled_at`]: a counter that only grows.
    pub now: u64,
}

/// How urgently space is needed. The higher the pressure, the fewer dead bytes a zone needs to be worth
/// cleaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Pressure {
    /// Zones are free: cleans only zones that are dead by more than half, and only while more than a 32nd of
    /// the bytes of all candidates is dead. The live data of other zones mostly dies by itself.
    Tidy,
    /// Few zones are left: cleans zones that are dead by more than a quarter.
    Ahead,
    /// A writer will soon have to wait: cleans zones that are dead by more than a sixteenth.
    Urgent,
    /// Cleans any zone with a dead byte.
    Any,
}

impl Pressure {
    /// The zones with enough dead bytes to be cleaned under this pressure.
    fn worthwhile<'a>(self, view: ZoneView<'a>) -> impl Iterator<Item = &'a Candidate> {
        let sixteenths = match self {
            Self::Tidy => 8,
            Self::Ahead => 4,
            Self::Urgent => 1,
            Self::Any => 0,
        };
        let none = self == Self::Tidy && !is_untidy(view.zones);
        let zones = if none { &[] } else { view.zones };
        let dead = |c: &Candidate| u128::from(c.dead()) * 16;
        zones
            .iter()
            .filter(move |c| dead(c) > u128::from(c.written) * sixteenths)
    }
}

/// Under [`Pressure::Tidy`], one dead byte for every 32 live ones is left alone.
const TIDY: u64 = 32;

fn is_untidy(zones: &[Candidate]) -> bool {
    let live: u64 = zones.iter().map(|c| c.live).sum();
    let dead: u64 = zones.iter().map(Candidate::dead).sum();
    dead > live / TIDY
}

/// Picks the next zone to clean.
pub trait CleaningPolicy: Debug + Send + Sync {
    /// The zone to clean, or `None` if none is worth its cost under `pressure`. Between equal candidates, the
    /// lower zone number wins.
    fn choose(&self, view: ZoneView<'_>, pressure: Pressure) -> Option<Candidate>;
}

/// The zone with the fewest live bytes (main document § 5.7.1), which in zones of one capacity is the one
/// with the most dead ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl CleaningPolicy for Greedy {
    fn choose(&self, view: ZoneView<'_>, pressure: Pressure) -> Option<Candidate> {
        let zones = pressure.worthwhile(view);
        zones.min_by_key(|c| (c.live, c.zone)).copied()
    }
}

/// The most benefit for its cost, (1 − u) · age ÷ (1 + u) (Rosenblum and Ousterhout, *The Design and
/// Implementation of a Log-Structured File System*, 1992): what has lived long lives on, so that its
/// space is worth more.
#[derive(Clone, Copy, Debug, Default)]
pub struct CostBenefit;

impl CleaningPolicy for CostBenefit {
    fn choose(&self, view: ZoneView<'_>, pressure: Pressure) -> Option<Candidate> {
        let score = |c: &Candidate| {
            // The one is added because a zone filled just now would score 0 however many bytes in it are dead.
            let age = (view.now.saturating_sub(c.filled_at) + 1) as f64;
            c.dead() as f64 * age / (c.written as f64 + c.live as f64)
        };
        let zones = pressure.worthwhile(view).map(|c| (score(c), c));
        let best =
            zones.max_by(|(a, one), (b, other)| a.total_cmp(b).then(other.zone.cmp(&one.zone)));
        best.map(|(_, c)| *c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn zone(id: u32, live: u64, filled_at: u64) -> Candidate {
        Candidate {
            zone: ZoneId(id),
            live,
            written: 160,
            filled_at,
        }
    }

    fn choose(policy: &dyn CleaningPolicy, zones: &[Candidate], pressure: Pressure) -> Option<u32> {
        let view = ZoneView { zones, now: 100 };
        policy.choose(view, pressure).map(|c| c.zone.0)
    }

    const ALL: [&dyn CleaningPolicy; 2] = [&Greedy, &CostBenefit];

    #[test]
    fn greedy_takes_the_fewest_live_bytes_and_the_lower_of_equals() {
        let zones = [
            zone(1, 40, 0),
            zone(5, 20, 0),
            zone(3, 20, 9),
            zone(4, 60, 0),
        ];
        for pressure in [
            Pressure::Tidy,
            Pressure::Ahead,
            Pressure::Urgent,
            Pressure::Any,
        ] {
            assert_eq!(choose(&Greedy, &zones, pressure), Some(3));
        }
    }

    #[test]
    fn cost_benefit_waits_for_what_is_young() {
        // (60/160) · 101 ÷ (260/160) = 23 against (80/160) · 11 ÷ (240/160) = 3.7.
        let zones = [zone(1, 80, 90), zone(2, 100, 0)];
        assert_eq!(choose(&CostBenefit, &zones, Pressure::Any), Some(2));
        assert_eq!(choose(&Greedy, &zones, Pressure::Any), Some(1));
        let equal = [zone(4, 80, 50), zone(3, 80, 50)];
        assert_eq!(choose(&CostBenefit, &equal, Pressure::Any), Some(3));
        let new = [zone(1, 150, 100), zone(2, 10, 100)];
        assert_eq!(choose(&CostBenefit, &new, Pressure::Any), Some(2));
    }

    #[test]
    fn a_zone_has_to_gain_less_the_more_space_is_needed() {
        use Pressure::{Ahead, Any, Tidy, Urgent};
        for policy in ALL {
            let first = |live, pressure| choose(policy, &[zone(1, live, 0)], pressure);
            for (pressure, too_much) in [(Tidy, 80), (Ahead, 120), (Urgent, 150), (Any, 160)] {
                assert_eq!(first(too_much, pressure), None, "{policy:?} {pressure:?}");
                assert_eq!(
                    first(too_much - 1, pressure),
                    Some(1),
                    "{policy:?} {pressure:?}"
                );
            }
            assert_eq!(choose(policy, &[], Any), None);
        }
    }

    #[test]
    fn a_few_dead_bytes_among_many_live_ones_are_left_alone() {
        let mut zones = vec![zone(1, 60, 0)];
        zones.extend((2..20).map(|id| zone(id, 160, 0)));
        assert_eq!(
            choose(&Greedy, &zones, Pressure::Tidy),
            Some(1),
            "100 of 2,940"
        );
        zones.extend((20..30).map(|id| zone(id, 160, 0)));
        assert_eq!(
            choose(&Greedy, &zones, Pressure::Tidy),
            None,
            "100 of 4,540"
        );
        assert_eq!(choose(&Greedy, &zones, Pressure::Ahead), Some(1));
    }
}
