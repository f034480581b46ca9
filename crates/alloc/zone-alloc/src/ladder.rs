//! How many of the last free zones each tenant has to leave to tenants of higher priority. Pure.
//!
//! Tenants are an array and are named by their positions in it. A tenant takes a free zone only while more are
//! free than those of higher priority are guaranteed, so no tenant is brought below its guarantee by a lower
//! one. While a zone is free, the highest tenant can go on. Tenants that give zones back (a journal that is
//! compacted, a cleaner) therefore stand above those that only take.

/// A user of zones with its share of the free and of the active ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenant {
    /// Free zones that no tenant of lower priority may take.
    pub guaranteed: u32,
    /// A smaller number is a higher priority. Tenants of equal priority keep nothing back for each other.
    pub priority: u8,
    /// Most active zones that it may hold; `None`: shares the part of the drive's limit that the others' quotas
    /// leave.
    pub active_quota: Option<u32>,
}

impl Tenant {
    /// A tenant without an active quota of its own.
    pub const fn new(guaranteed: u32, priority: u8) -> Self {
        Self {
            guaranteed,
            priority,
            active_quota: None,
        }
    }
}

/// The tenants of a drive's zones. Shares free zones and active zones out among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ladder<const N: usize>(pub [Tenant; N]);

impl<const N: usize> Ladder<N> {
    /// Free zones that the tenant at this position has to leave to those of higher priority.
    pub const fn kept_from(&self, tenant: usize) -> u32 {
        let (mut kept, mut other) = (0u32, 0);
        while other < N {
            if self.0[other].priority < self.0[tenant].priority {
                kept = kept.saturating_add(self.0[other].guaranteed);
            }
            other += 1;
        }
        kept
    }

    /// Whether the tenant at this position may take one of `free` free zones.
    pub const fn may_take(&self, tenant: usize, free: u32) -> bool {
        free > self.kept_from(tenant)
    }

    /// Places of a common limit that the tenant at this position has to leave to all others, whatever their
    /// priority: the part of each guarantee that is not held yet. If each tenant takes a place only while more
    /// than these are left, every tenant reaches its guarantee.
    pub fn owed_to_others(&self, tenant: usize, held: [u32; N]) -> u32 {
        let others = self.0.iter().zip(held).enumerate();
        let others = others.filter(|(position, _)| *position != tenant);
        others
            .map(|(_, (other, held))| other.guaranteed.saturating_sub(held))
            .fold(0, u32::saturating_add)
    }

    /// Active zones that the tenant at this position may hold, out of the drive's `limit`. Quotas are served by
    /// priority; tenants without a quota share the rest.
    pub fn active_quota(&self, tenant: usize, limit: u32) -> u32 {
        let own = self.0[tenant];
        let before = |(position, other): &(usize, &Tenant)| {
            let first = (other.priority, *position) < (own.priority, tenant);
            other.active_quota.is_some() && (own.active_quota.is_none() || first)
        };
        let others = self.0.iter().enumerate().filter(before);
        let taken = others.fold(0u32, |sum, (_, other)| {
            sum.saturating_add(other.active_quota.unwrap_or(0))
        });
        let left = limit.saturating_sub(taken);
        own.active_quota.map_or(left, |quota| quota.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tenants() -> impl Strategy<Value = [Tenant; 5]> {
        let tenant = (0..4u32, 0..4u8, prop::option::of(0..6u32));
        let tenant = tenant.prop_map(|(guaranteed, priority, active_quota)| Tenant {
            guaranteed,
            priority,
            active_quota,
        });
        prop::array::uniform5(tenant)
    }

    fn highest(ladder: &Ladder<5>) -> usize {
        (0..5).min_by_key(|t| ladder.0[*t].priority).unwrap()
    }

    proptest! {
        /// Whatever the others take first, all of one priority together find what they are guaranteed,
        /// if those above take no more than that.
        #[test]
        fn nobody_is_brought_below_its_guarantee_by_a_lower_one(
            tenants in tenants(),
            priority in 0..4u8,
            takers in prop::collection::vec(0..5usize, 0..40),
        ) {
            let ladder = Ladder(tenants);
            let all: u32 = tenants.iter().map(|t| t.guaranteed).sum();
            let mut free = all + 4;
            let lower = |t: &usize| tenants[*t].priority > priority;
            for taker in takers.into_iter().filter(lower) {
                free -= u32::from(ladder.may_take(taker, free));
            }
            let upper: u32 = tenants.iter().filter(|t| t.priority <= priority).map(|t| t.guaranteed).sum();
            prop_assert!(free >= upper);
        }

        #[test]
        fn somebody_can_always_go_on(tenants in tenants(), free in 1..20u32) {
            let ladder = Ladder(tenants);
            prop_assert!(ladder.may_take(highest(&ladder), free));
        }

        /// Whoever takes and gives back, those who hold less than they are guaranteed find a place.
        #[test]
        fn everybody_finds_the_places_that_it_is_guaranteed(
            tenants in tenants(),
            more in 0..4u32,
            steps in prop::collection::vec((0..5usize, any::<bool>()), 0..60),
        ) {
            let ladder = Ladder(tenants);
            let limit = tenants.iter().map(|t| t.guaranteed).sum::<u32>() + more;
            let mut held = [0_u32; 5];
            let may_take = |t: usize, held: [u32; 5]| {
                held.iter().sum::<u32>() + ladder.owed_to_others(t, held) < limit
            };
            for (tenant, takes) in steps {
                if !takes {
                    held[tenant] = held[tenant].saturating_sub(1);
                } else if may_take(tenant, held) {
                    held[tenant] += 1;
                }
                for (t, own) in tenants.iter().enumerate() {
                    prop_assert!(held[t] >= own.guaranteed || may_take(t, held));
                }
            }
        }

        #[test]
        fn no_active_zone_is_over_the_limit(tenants in tenants(), limit in 0..20u32) {
            let ladder = Ladder(tenants);
            let quota = |t: usize| ladder.active_quota(t, limit);
            let with_quota = (0..5).filter(|t| tenants[*t].active_quota.is_some());
            let without = (0..5).find(|t| tenants[*t].active_quota.is_none());
            let sum: u32 = with_quota.chain(without).map(quota).sum();
            prop_assert!(sum <= limit);
            prop_assert!(without.is_none() || sum == limit);
        }
    }
}
