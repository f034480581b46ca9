//! When resets that have failed are tried again.

use std::time::Duration;

/// How long nothing is tried after a failure, if somebody waits for space.
pub const IN_NEED: Duration = Duration::from_millis(100);

/// And at most, however often it has failed: the zone is not missed then.
const AT_MOST: Duration = Duration::from_secs(64);

/// Nothing is tried for so many times as long as the last failure took, for whoever needs space waits for that too.
const PAUSES: u32 = 10;

/// The failures of resets of some zones, of which one is tried at a time: a drive may take long to fail, and if one is reset,
/// the next may be too.
#[derive(Default, Debug)]
pub struct Retries {
    /// The last failure, if some zone is left to be tried.
    failed_at: Option<Duration>,
    wait: Duration,
    /// How long the last one that was tried took to fail.
    took: Duration,
}

impl Retries {
    /// When the next one is to be tried.
    pub fn due_at(&self) -> Option<Duration> {
        self.failed_at.map(|failed_at| failed_at + self.wait)
    }

    /// Whether one is to be tried now, if that is to be no later than `at_most` after the last failure.
    pub fn is_due(&self, now: Duration, at_most: Duration) -> bool {
        let at_most = at_most.max(self.took * PAUSES);
        let due = |failed_at: Duration| now >= failed_at + self.wait.min(at_most);
        self.failed_at.is_some_and(due)
    }

    /// The first reset of a zone has failed. That puts the next try off only if there was none to come.
    pub fn begin(&mut self, now: Duration) {
        if self.failed_at.is_none() {
            let wait = IN_NEED;
            (self.failed_at, self.wait, self.took) = (Some(now), wait, Duration::ZERO);
        }
    }

    /// One that was tried from `began` on has failed.
    pub fn failed_again(&mut self, began: Duration, now: Duration) {
        self.took = now.saturating_sub(began);
        let wait = (2 * self.wait).max(self.took * PAUSES);
        (self.failed_at, self.wait) = (Some(now), wait.min(AT_MOST));
    }

    /// No zone is left.
    pub fn end(&mut self) {
        self.failed_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which seconds of a day somebody tries, who looks each second, if all fails.
    fn tried(at_most: Duration) -> Vec<u64> {
        let mut retries = Retries::default();
        let second = Duration::from_secs;
        assert!(!retries.is_due(second(1000), at_most));
        retries.begin(second(0));
        let mut tried = Vec::new();
        for now in 1..86_400 {
            // Others fail for the first time all along.
            retries.begin(second(now));
            if retries.is_due(second(now), at_most) {
                retries.failed_again(second(now), second(now));
                tried.push(now);
            }
        }
        tried
    }

    #[test]
    fn what_fails_for_long_is_tried_once_a_minute() {
        let tried = tried(Duration::MAX);
        assert_eq!(tried[..6], [1, 2, 3, 4, 6, 10]);
        assert!((1_340..1_360).contains(&tried.len()), "{}", tried.len());
    }

    #[test]
    fn whoever_needs_space_does_not_wait_for_that() {
        assert_eq!(tried(IN_NEED).len(), 86_399);
    }

    #[test]
    fn what_takes_long_to_fail_is_not_waited_for_most_of_the_time() {
        let (mut now, mut waited) = (Duration::ZERO, Duration::ZERO);
        let (minute, took) = (Duration::from_secs(60), Duration::from_secs(5));
        let mut retries = Retries::default();
        retries.begin(now);
        while now < 60 * minute {
            if retries.is_due(now, IN_NEED) {
                retries.failed_again(now, now + took);
                waited += took;
                now += took;
            }
            now += IN_NEED;
        }
        assert!(waited > 4 * minute && waited < 6 * minute, "{waited:?}");
    }

    #[test]
    fn behind_the_last_zone_nothing_is_tried() {
        let mut retries = Retries::default();
        retries.begin(Duration::ZERO);
        retries.end();
        assert!(!retries.is_due(Duration::from_secs(1_000), Duration::ZERO));
    }
}
