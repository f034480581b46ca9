//! The schedule on which failed resets and finishes of zones are retried: exponential backoff, shortened while a caller
//! waits for space.

use std::time::Duration;

/// Pause after the first failure of a reset, and the longest pause while a caller waits for space.
pub const IN_NEED: Duration = Duration::from_millis(100);

/// Longest pause, however often the reset has failed, unless [`PAUSES`] asks for more: the zone is not missed then.
const AT_MOST: Duration = Duration::from_secs(64);

/// A pause is at least this many times as long as the last failed reset took, because callers that need space
/// wait for the reset too.
const PAUSES: u32 = 10;

/// Backoff state for a set of zones whose resets have failed. One zone is retried at a time: a drive may take
/// long to fail, and once one reset succeeds, the next may too.
#[derive(Default, Debug)]
pub struct Retries {
    /// Time of the last failure, or `None` if no zone is left to be retried.
    failed_at: Option<Duration>,
    wait: Duration,
    /// How long the last retry took to fail.
    took: Duration,
}

impl Retries {
    /// Time of the next retry, or `None` if there is nothing to retry.
    pub fn due_at(&self) -> Option<Duration> {
        self.failed_at.map(|failed_at| failed_at + self.wait)
    }

    /// Whether a zone is to be retried at `now`, if the pause after the last failure is limited to `at_most`
    /// (or to ten times the last retry's time, if that is longer).
    pub fn is_due(&self, now: Duration, at_most: Duration) -> bool {
        let at_most = at_most.max(self.took * PAUSES);
        let due = |failed_at: Duration| now >= failed_at + self.wait.min(at_most);
        self.failed_at.is_some_and(due)
    }

    /// Records that the first reset of a zone has failed. A retry that is scheduled already keeps its time.
    pub fn begin(&mut self, now: Duration) {
        if self.failed_at.is_none() {
            let wait = IN_NEED;
            (self.failed_at, self.wait, self.took) = (Some(now), wait, Duration::ZERO);
        }
    }

    /// Records that a retry which began at `began` has failed at `now`, and doubles the pause.
    pub fn failed_again(&mut self, began: Duration, now: Duration) {
        self.took = now.saturating_sub(began);
        let wait = (2 * self.wait).min(AT_MOST).max(self.took * PAUSES);
        (self.failed_at, self.wait) = (Some(now), wait);
    }

    /// Records that no zone is left to be retried.
    pub fn end(&mut self) {
        self.failed_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds of a day at which a caller that checks every second retries, if every retry fails.
    fn tried(at_most: Duration) -> Vec<u64> {
        let mut retries = Retries::default();
        let second = Duration::from_secs;
        assert!(!retries.is_due(second(1000), at_most));
        retries.begin(second(0));
        let mut tried = Vec::new();
        for now in 1..86_400 {
            // Other zones fail for the first time in every second.
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
        let minute = Duration::from_secs(60);
        // A drive may need half a minute for each (a timeout of the kernel).
        for took in [5, 30].map(Duration::from_secs) {
            let (mut now, mut waited) = (Duration::ZERO, Duration::ZERO);
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
    }

    #[test]
    fn behind_the_last_zone_nothing_is_tried() {
        let mut retries = Retries::default();
        retries.begin(Duration::ZERO);
        retries.end();
        assert!(!retries.is_due(Duration::from_secs(1_000), Duration::ZERO));
    }
}
