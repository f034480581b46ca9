//! Predicts how many zones users will fill during a period in which the cleaner has to wait. Pure: the caller
//! passes the time in.

use std::collections::VecDeque;
use std::time::Duration;

/// The fill rate is measured over this period.
const LOOKS_BACK: Duration = Duration::from_secs(10);
/// Least time between two samples that are kept.
const APART: Duration = Duration::from_millis(500);
/// The prediction is at most one in this many of all zones.
const MOST_PART: u32 = 8;

/// Samples of the bytes written, from which the rate at which users fill zones is computed.
#[derive(Clone, Debug, Default)]
pub struct Filling {
    /// Samples: the time, and the total of bytes written by then.
    looks: VecDeque<(Duration, u64)>,
}

impl Filling {
    /// Number of zones of `zone_bytes` bytes that will be filled within `time` at the rate of the last ten seconds; at
    /// most an eighth of `all`. `written` is the total of bytes written up to `now`.
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
        // A float above `u32::MAX` becomes `u32::MAX` here.
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
