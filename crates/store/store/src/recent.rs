//! A rate over the last minute.

use std::time::Duration;

const MINUTE: usize = 60;

/// Bytes in each of the last sixty seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    bytes: [u64; MINUTE],
    /// The seconds of the clock in which something was added first and last.
    first: u64,
    last: u64,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            bytes: [0; MINUTE],
            first: u64::MAX,
            last: 0,
        }
    }
}

impl Recent {
    /// Counts `bytes` in the second `now`.
    pub fn add(&mut self, now: Duration, bytes: u64) {
        self.forget(now.as_secs());
        self.first = self.first.min(now.as_secs());
        self.bytes[now.as_secs() as usize % MINUTE] += bytes;
    }

    /// Bytes a second over the last minute, or since the first count if that is later; `None` if there were none.
    pub fn per_second(&mut self, now: Duration) -> Option<u64> {
        self.forget(now.as_secs());
        let bytes: u64 = self.bytes.iter().sum();
        let since = now.as_secs().saturating_sub(self.first) + 1;
        (bytes > 0).then(|| bytes / since.min(MINUTE as u64))
    }

    fn forget(&mut self, now: u64) {
        let passed = now.saturating_sub(self.last).min(MINUTE as u64);
        for second in 0..passed {
            self.bytes[(now - second) as usize % MINUTE] = 0;
        }
        self.last = self.last.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_remembered() {
        let mut recent = Recent::default();
        let at = Duration::from_secs;
        assert_eq!(recent.per_second(at(5)), None);
        recent.add(at(100), 600);
        assert_eq!(recent.per_second(at(100)), Some(600));
        assert_eq!(recent.per_second(at(105)), Some(100));
        recent.add(at(150), 5_400);
        assert_eq!(recent.per_second(at(159)), Some(100));
        assert_eq!(recent.per_second(at(160)), Some(90));
        assert_eq!(recent.per_second(at(209)), Some(90));
        assert_eq!(recent.per_second(at(210)), None);
        recent.add(at(1_000_000), 60);
        assert_eq!(recent.per_second(at(1_000_000)), Some(1));
    }
}
