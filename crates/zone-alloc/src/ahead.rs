//! Cleaning ahead of need: which zone, or none yet, and how much may be moved for it. Both follow
//! from counts that the caller gives, so that a run can be replayed; there is no clock here.

use crate::Candidate;

/// How many zones are free, and from when on that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Zones that can be taken.
    pub free: u32,
    /// With fewer than this, cleaning begins.
    pub begin: u32,
    /// With fewer than this, somebody will soon have to wait for it.
    pub urgent: u32,
}

/// The zone to clean next, or `None` if there is time or nothing is worth it.
///
/// With zones to spare nothing is moved, for what is live may be deleted by itself. Then the zone
/// with the best ratio of benefit to cost, (1 − u) · age / (1 + u) with u the live share of it
/// (Rosenblum and Ousterhout, *The Design and Implementation of a Log-Structured File System*, 1992),
/// out of those that are live by less than three quarters, if `allowed` (see [`Allowance`]). When it is
/// urgent, the zone with the fewest live bytes, allowed or not, unless a sixteenth of it would be
/// gained at most. `now` counts as [`Candidate::filled_at`] does. Ties go to the lower zone.
pub fn next_to_clean(
    supply: Supply,
    allowed: bool,
    now: u64,
    candidates: impl IntoIterator<Item = Candidate>,
) -> Option<Candidate> {
    let candidates = candidates.into_iter();
    let ordered = |a: &Candidate, b: &Candidate| b.zone.cmp(&a.zone);
    if supply.free < supply.urgent {
        candidates
            .filter(|c| gains(c, 1))
            .max_by(|a, b| b.live.cmp(&a.live).then(ordered(a, b)))
    } else if supply.free < supply.begin && allowed {
        candidates.filter(|c| gains(c, 4)).max_by(|a, b| {
            let order = benefit(a, now).total_cmp(&benefit(b, now));
            order.then(ordered(a, b))
        })
    } else {
        None
    }
}

/// Whether more than so many sixteenths of what is written are dead.
fn gains(c: &Candidate, sixteenths: u32) -> bool {
    let dead = u128::from(c.written.saturating_sub(c.live));
    dead * 16 > u128::from(c.written) * u128::from(sixteenths)
}

/// (1 − u) · age / (1 + u)
fn benefit(c: &Candidate, now: u64) -> f64 {
    // At least one, so that zones of this very moment are told apart by what is live.
    let age = now.saturating_sub(c.filled_at).saturating_add(1);
    let dead = c.written.saturating_sub(c.live);
    dead as f64 * age as f64 / c.written.saturating_add(c.live).max(1) as f64
}

/// How much may be moved ahead of need: a token bucket that fills with what users write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    percent: u32,
    most: u64,
    /// What users had written when it was last filled.
    seen: u64,
    /// Hundredths of bytes; below zero after a zone that cost more than there was.
    left: i128,
}

impl Allowance {
    /// `percent` bytes for every hundred that users write, and at most so many saved up. A zone may
    /// be begun as long as anything is left, so `most` need not be as large as one.
    pub const fn new(percent: u32, most: u64) -> Self {
        let left = most as i128 * 100;
        Self {
            percent,
            most,
            seen: 0,
            left,
        }
    }

    /// Users have written so many bytes in all.
    pub fn earn(&mut self, written: u64) {
        let new = i128::from(written.saturating_sub(self.seen));
        self.seen = self.seen.max(written);
        let most = i128::from(self.most) * 100;
        self.left = (self.left + new * i128::from(self.percent)).min(most);
    }

    /// So many bytes were moved.
    pub fn spend(&mut self, moved: u64) {
        self.left -= i128::from(moved) * 100;
    }

    /// Whether another zone may be begun.
    pub const fn allows(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneId;

    const fn zone(id: u32, live: u64, filled_at: u64) -> Candidate {
        Candidate {
            zone: ZoneId(id),
            live,
            written: 160,
            filled_at,
        }
    }

    const fn free(free: u32) -> Supply {
        Supply {
            free,
            begin: 10,
            urgent: 4,
        }
    }

    fn next(supply: Supply, allowed: bool, zones: &[Candidate]) -> Option<u32> {
        next_to_clean(supply, allowed, 100, zones.iter().copied()).map(|c| c.zone.0)
    }

    #[test]
    fn nothing_is_moved_while_there_are_zones_to_spare_or_without_an_allowance() {
        let zones = [zone(1, 0, 0)];
        assert_eq!(next(free(10), true, &zones), None);
        assert_eq!(next(free(9), false, &zones), None);
        assert_eq!(next(free(9), true, &zones), Some(1));
        assert_eq!(next(free(3), false, &zones), Some(1));
    }

    #[test]
    fn an_old_zone_is_worth_more_than_an_emptier_young_one() {
        // (1 - u) * age / (1 + u): 80 * 91 / 240 = 30.3 and 120 * 11 / 200 = 6.6.
        let zones = [zone(1, 80, 10), zone(2, 40, 90)];
        assert_eq!(next(free(9), true, &zones), Some(1));
        assert_eq!(next(free(3), true, &zones), Some(2));
        // Of one age, the emptier one; of equals, the lower one.
        let zones = [zone(3, 80, 90), zone(5, 40, 90), zone(4, 40, 90)];
        assert_eq!(next(free(9), true, &zones), Some(4));
        assert_eq!(next(free(3), true, &zones), Some(4));
    }

    #[test]
    fn what_is_mostly_live_waits_until_it_is_urgent_and_what_gains_nothing_for_ever() {
        let zones = [zone(1, 120, 0)];
        assert_eq!(next(free(9), true, &zones), None);
        assert_eq!(next(free(3), true, &zones), Some(1));
        assert_eq!(next(free(9), true, &[zone(1, 119, 0)]), Some(1));
        assert_eq!(next(free(0), true, &[zone(1, 150, 0)]), None);
        assert_eq!(next(free(0), true, &[]), None);
    }

    #[test]
    fn an_allowance_follows_what_users_write() {
        let mut allowance = Allowance::new(25, 100);
        assert!(allowance.allows());
        allowance.spend(150);
        assert!(!allowance.allows());
        allowance.earn(200);
        assert!(!allowance.allows(), "50 of 50 are paid back");
        allowance.earn(204);
        assert!(allowance.allows());
        // What is not used is saved up to the most only.
        allowance.earn(1_000_000);
        allowance.spend(100);
        assert!(!allowance.allows());
        allowance.earn(5);
        assert!(!allowance.allows(), "a total that falls earns nothing");
    }

    #[test]
    fn in_the_long_run_a_share_of_what_users_write_is_moved() {
        let mut allowance = Allowance::new(50, 1000);
        let mut moved = 0u64;
        for written in (0..1_000_000).step_by(10) {
            allowance.earn(written);
            if allowance.allows() {
                allowance.spend(700);
                moved += 700;
            }
        }
        assert!((500_000..=501_700).contains(&moved), "{moved}");
    }
}
