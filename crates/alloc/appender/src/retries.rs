//! When resets that have failed are tried again.

use std::time::Duration;

/// How long nothing is tried after a failure, if somebody waits for space.
pub const IN_NEED: Duration = Duration::from_millis(100);

/// And at most, however often it has failed: the zone is not missed then.
const AT_MOST: Duration = Duration::from_secs(64);

/// The failures of resets of some zones, of which one is tried at a time: a drive may take long to fail, and if one is reset,
/// the next may be too.
#[derive(Default, Debug)]
pub struct Retries {
    /// The last failure, if some zone is left to be tried.
    failed_at: Option<Duration>,
    wait: Duration,
}

impl Retries {
    /// Whether one is to be tried now, if that is to be no later than `at_most` after the last failure.
    pub fn is_due(&self, now: Duration, at_most: Duration) -> bool {
        let due = |failed_at: Duration| now >= failed_at + self.wait.min(at_most);
        self.failed_at.is_some_and(due)
    }

    /// The first reset of a zone has failed. That puts the next try off only if there was none to come.
    pub fn begin(&mut self, now: Duration) {
        if self.failed_at.is_none() {
            (self.failed_at, self.wait) = (Some(now), IN_NEED);
        }
    }

    /// One that was tried has failed.
    pub fn failed_again(&mut self, now: Duration) {
        (self.failed_at, self.wait) = (Some(now), (2 * self.wait).min(AT_MOST));
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
                retries.failed_again(second(now));
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
    fn behind_the_last_zone_nothing_is_tried() {
        let mut retries = Retries::default();
        retries.begin(Duration::ZERO);
        retries.end();
        assert!(!retries.is_due(Duration::from_secs(1_000), Duration::ZERO));
    }
}
