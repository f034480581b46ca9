//! Cleaning ahead of need: the pressure that follows from the number of free zones, and the bytes that may be
//! moved for it.
//!
//! Both are computed from counts that the caller passes in. There is no clock, so a run can be replayed.

use crate::Pressure;

/// The number of free zones and the thresholds that it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Free zones.
    pub free: u32,
    /// Below this, zones are cleaned if many of their bytes are dead.
    pub tidy: u32,
    /// With fewer than this, cleaning begins.
    pub begin: u32,
    /// Below this, a writer will soon have to wait for the cleaner.
    pub urgent: u32,
}

/// Which of two [`Allowance`]s have bytes left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// The allowance for reducing dead bytes.
    pub to_tidy: bool,
    /// The allowance for freeing zones before they are needed.
    pub ahead: bool,
}

impl Supply {
    /// The pressure to clean at now, or `None` if no zone needs to be cleaned. [`Pressure::Urgent`] needs no
    /// allowance.
    pub const fn pressure(self, allowed: Allowed) -> Option<Pressure> {
        if self.free < self.urgent {
            Some(Pressure::Urgent)
        } else if self.free < self.begin && allowed.ahead {
            Some(Pressure::Ahead)
        } else if self.free < self.tidy && allowed.to_tidy {
            Some(Pressure::Tidy)
        } else {
            None
        }
    }
}

/// The bytes that may be moved ahead of need: a token bucket that fills with the bytes that users write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    per_mille: u32,
    most: u64,
    /// Bytes that users had written in all when the bucket was last filled.
    seen: u64,
    /// Thousandths of bytes; negative after a zone that cost more than was left.
    left: i128,
}

impl Allowance {
    /// Earns `per_mille` bytes for every thousand that users write and saves up at most `most` bytes. A zone
    /// may be begun while anything is left, so `most` may be smaller than a zone.
    pub const fn new(per_mille: u32, most: u64) -> Self {
        let left = most as i128 * 1000;
        Self {
            per_mille,
            most,
            seen: 0,
            left,
        }
    }

    /// Fills the bucket; `written` is the total of bytes that users have written.
    pub fn earn(&mut self, written: u64) {
        let new = i128::from(written.saturating_sub(self.seen));
        self.seen = self.seen.max(written);
        let most = i128::from(self.most) * 1000;
        self.left = (self.left + new * i128::from(self.per_mille)).min(most);
    }

    /// Takes `moved` bytes out of the bucket.
    pub fn spend(&mut self, moved: u64) {
        self.left -= i128::from(moved) * 1000;
    }

    /// Whether another zone may be cleaned ahead of need.
    pub const fn allows(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_moved_while_there_are_zones_to_spare_or_without_an_allowance() {
        let pressure = |free, to_tidy, ahead| {
            let supply = Supply {
                free,
                tidy: 20,
                begin: 10,
                urgent: 4,
            };
            supply.pressure(Allowed { to_tidy, ahead })
        };
        assert_eq!(pressure(20, true, true), None);
        assert_eq!(pressure(19, true, false), Some(Pressure::Tidy));
        assert_eq!(pressure(19, false, true), None);
        assert_eq!(pressure(9, false, false), None);
        assert_eq!(pressure(9, false, true), Some(Pressure::Ahead));
        assert_eq!(pressure(3, false, false), Some(Pressure::Urgent));
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
        // Savings are limited to `most`.
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
