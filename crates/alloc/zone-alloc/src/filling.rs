//! How many zones will be filled until somebody who has to wait may clean. Pure: the moment comes from the caller.

use std::collections::VecDeque;
use std::time::Duration;

/// What was written in so long says how much will be.
const LOOKS_BACK: Duration = Duration::from_secs(10);
/// Between two looks that are remembered.
const APART: Duration = Duration::from_millis(500);
/// Of all zones, one in so many is kept free for it at most.
const MOST_PART: u32 = 8;

/// How fast users fill zones, as far as it was looked at.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    /// Moments, and bytes that had been written then.
    looks: VecDeque<(Duration, u64)>,
}

impl Filling {
    /// Zones of so many bytes that will be filled in `time`, if it goes on as in the last ten seconds: an eighth of `all`
    /// at most. `written` are the bytes that have been written up to `now`.
    pub fn zones_in(
        &mut self,
        time: Duration,
        (now, written): (Duration, u64),
        (zone_bytes, all): (u64, u32),
    ) -> u32 {
        while self
            .looks
            .get(1)
            .is_some_and(|(at, _)| *at + LOOKS_BACK <= now)
        {
            self.looks.pop_front();
        }
        let (since, before) = self.looks.front().copied().unwrap_or((now, written));
        if self.looks.back().is_none_or(|(at, _)| *at + APART <= now) {
            self.looks.push_back((now, written));
        }
        let took = now.saturating_sub(since).max(APART).as_secs_f64();
        let bytes = written.saturating_sub(before) as f64 / took * time.as_secs_f64();
        let zones = (bytes / zone_bytes.max(1) as f64).ceil();
        // Above the most that a number holds, it holds that.
        (zones as u32).min(all / MOST_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn zones_are_filled_as_fast_as_in_the_last_seconds() {
        let mut filling = Filling::default();
        let mut look = |tenths: u64, written| {
            let now = (Duration::from_millis(tenths * 100), written);
            filling.zones_in(MINUTE, now, (100, 1_000))
        };
        assert_eq!(look(0, 5_000), 0, "what was there before is not counted");
        // Ten bytes a second.
        let found: Vec<u32> = (1..=300)
            .map(|tenths| look(tenths, 5_000 + tenths))
            .collect();
        assert!(found[4..].iter().all(|zones| *zones == 6), "{found:?}");
        assert_eq!(look(320, 6_300), 65, "it gets faster");
        assert_eq!(look(323, 1_000_000), 125, "an eighth of all");
        look(400, 1_000_000);
        assert_eq!(look(520, 1_000_000), 0, "nothing is written any more");
        assert_eq!(look(521, 0), 0, "it was never that little");
    }
}
