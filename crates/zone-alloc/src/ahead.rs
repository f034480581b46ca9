//! Cleaning ahead of need: which zone, or none yet, and how much may be moved for it. Both follow
//! from counts that the caller gives, so that a run can be replayed; there is no clock here.

use crate::Candidate;

/// How many zones are free, and from when on that matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Zones that can be taken.
    pub free: u32,
    /// With fewer than this, it matters how much of the rest is dead.
    pub tidy: u32,
    /// With fewer than this, cleaning begins.
    pub begin: u32,
    /// With fewer than this, somebody will soon have to wait for it.
    pub urgent: u32,
}

/// What may be moved, by how much there is left of two [`Allowance`]s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// To have few dead bytes.
    pub to_tidy: bool,
    /// To have free zones before they are needed.
    pub ahead: bool,
}

/// Dead bytes for each live one that are left alone while zones are free: a 32nd.
const TIDY: u64 = 32;

/// The zone to clean next, or `None` if there is time or nothing is worth it: always the one with the
/// fewest live bytes, and of equals the lower.
///
/// With zones to spare only what is cheap is moved: out of zones that are dead by half or more, and
/// only while of all zones together more than a 32nd is dead. What is live anywhere else may be deleted by
/// itself, and mostly is. When zones get few, out of those that are dead by more than a quarter. When it is
/// urgent, allowed or not, out of any from which more than a sixteenth is gained.
///
/// *Not* by benefit to cost with the age of a zone (Rosenblum and Ousterhout, *The Design and
/// Implementation of a Log-Structured File System*, 1992): that pays where what has lived long lives
/// on, and tables die by where their keys lie (`ARCHITECTURE.md`).
pub fn next_to_clean(
    supply: Supply,
    allowed: Allowed,
    candidates: &[Candidate],
) -> Option<Candidate> {
    let sixteenths = if supply.free < supply.urgent {
        1
    } else if supply.free < supply.begin && allowed.ahead {
        4
    } else if supply.free < supply.tidy && allowed.to_tidy && is_untidy(candidates) {
        8
    } else {
        return None;
    };
    let worth_it = candidates.iter().filter(|c| gains(c, sixteenths));
    worth_it.min_by_key(|c| (c.live, c.zone)).copied()
}

/// Whether more than so many sixteenths of what is written are dead.
fn gains(c: &Candidate, sixteenths: u32) -> bool {
    let dead = u128::from(c.written.saturating_sub(c.live));
    dead * 16 > u128::from(c.written) * u128::from(sixteenths)
}

fn is_untidy(candidates: &[Candidate]) -> bool {
    let live: u64 = candidates.iter().map(|c| c.live).sum();
    let dead: u64 = candidates
        .iter()
        .map(|c| c.written.saturating_sub(c.live))
        .sum();
    dead > live / TIDY
}

/// How much may be moved ahead of need: a token bucket that fills with what users write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    per_mille: u32,
    most: u64,
    /// What users had written when it was last filled.
    seen: u64,
    /// Thousandths of bytes; below zero after a zone that cost more than there was.
    left: i128,
}

impl Allowance {
    /// `per_mille` bytes for every thousand that users write, and at most so many saved up. A zone may
    /// be begun as long as anything is left, so `most` need not be as large as one.
    pub const fn new(per_mille: u32, most: u64) -> Self {
        let left = most as i128 * 1000;
        Self {
            per_mille,
            most,
            seen: 0,
            left,
        }
    }

    /// Users have written so many bytes in all.
    pub fn earn(&mut self, written: u64) {
        let new = i128::from(written.saturating_sub(self.seen));
        self.seen = self.seen.max(written);
        let most = i128::from(self.most) * 1000;
        self.left = (self.left + new * i128::from(self.per_mille)).min(most);
    }

    /// So many bytes were moved.
    pub fn spend(&mut self, moved: u64) {
        self.left -= i128::from(moved) * 1000;
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

    const fn zone(id: u32, live: u64) -> Candidate {
        Candidate {
            zone: ZoneId(id),
            live,
            written: 160,
            filled_at: 0,
        }
    }

    fn next(free: u32, to_tidy: bool, ahead: bool, zones: &[Candidate]) -> Option<u32> {
        let supply = Supply {
            free,
            tidy: 20,
            begin: 10,
            urgent: 4,
        };
        next_to_clean(supply, Allowed { to_tidy, ahead }, zones).map(|c| c.zone.0)
    }

    #[test]
    fn nothing_is_moved_while_there_are_zones_to_spare_or_without_an_allowance() {
        let zones = [zone(1, 10)];
        assert_eq!(next(20, true, true, &zones), None);
        assert_eq!(next(19, true, false, &zones), Some(1));
        assert_eq!(next(19, false, true, &zones), None);
        assert_eq!(next(9, false, false, &zones), None);
        assert_eq!(next(9, false, true, &zones), Some(1));
        assert_eq!(next(3, false, false, &zones), Some(1));
    }

    #[test]
    fn the_emptiest_goes_first_and_the_lower_of_equals() {
        let zones = [zone(1, 40), zone(5, 20), zone(3, 20), zone(4, 60)];
        for free in [19, 9, 3] {
            assert_eq!(next(free, true, true, &zones), Some(3));
        }
    }

    #[test]
    fn what_is_moved_may_cost_more_the_fewer_zones_are_free() {
        let half = [zone(1, 80)];
        assert_eq!(next(19, true, true, &half), None);
        assert_eq!(next(19, true, true, &[zone(1, 79)]), Some(1));
        assert_eq!(next(9, true, true, &half), Some(1));
        let mostly_live = [zone(1, 120)];
        assert_eq!(next(9, true, true, &mostly_live), None);
        assert_eq!(next(9, true, true, &[zone(1, 119)]), Some(1));
        assert_eq!(next(3, true, true, &mostly_live), Some(1));
        assert_eq!(next(0, true, true, &[zone(1, 150)]), None);
        assert_eq!(next(0, true, true, &[]), None);
    }

    #[test]
    fn a_few_dead_bytes_among_many_live_ones_are_left_alone() {
        let mut zones = vec![zone(1, 60)];
        zones.extend((2..20).map(|id| zone(id, 160)));
        assert_eq!(next(19, true, true, &zones), Some(1), "100 of 2,940");
        zones.extend((20..30).map(|id| zone(id, 160)));
        assert_eq!(next(19, true, true, &zones), None, "100 of 4,540");
        assert_eq!(next(9, true, true, &zones), Some(1));
    }

    #[test]
    fn an_allowance_follows_what_users_write() {
        let mut allowance = Allowance::new(250, 100);
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
        let mut allowance = Allowance::new(500, 1000);
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
