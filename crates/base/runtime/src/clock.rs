//! Clocks: time of day for recorded times, monotonic time for durations, both real and simulated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send + Sync {
    /// Unix time in microseconds. May go backwards, as the host's clock does.
    fn unix_micros(&self) -> u64;
    /// Minutes that the local time zone is ahead of UTC.
    fn utc_offset_minutes(&self) -> i16 {
        0
    }
    /// Minutes since midnight in the local time zone.
    fn minute_of_day(&self) -> u16 {
        let utc = (self.unix_micros() / 60_000_000 % (24 * 60)) as i16;
        (utc + self.utc_offset_minutes())
            .rem_euclid(24 * 60)
            .unsigned_abs()
    }
    /// Monotonic time since some fixed moment.
    fn now(&self) -> Duration;
    /// Returns when [`Self::now`] is at least `moment`.
    fn wait_until(&self, moment: Duration);
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn unix_micros(&self) -> u64 {
        (**self).unix_micros()
    }

    fn utc_offset_minutes(&self) -> i16 {
        (**self).utc_offset_minutes()
    }

    fn now(&self) -> Duration {
        (**self).now()
    }

    fn wait_until(&self, moment: Duration) {
        (**self).wait_until(moment);
    }
}

/// The host's clock; [`Clock::now`] counts from its creation.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn unix_micros(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        u64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(u64::MAX)
    }

    fn utc_offset_minutes(&self) -> i16 {
        // Offsets are less than 26 hours.
        (jiff::Zoned::now().offset().seconds() / 60) as i16
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn wait_until(&self, moment: Duration) {
        super::thread::sleep(moment.saturating_sub(self.now()));
    }
}

/// Time that passes only by waiting and by [`Self::advance`]. Each reading of the time of day also advances it
/// by a microsecond, so that no two readings are equal.
#[derive(Debug)]
pub struct SimulatedClock {
    unix_micros: AtomicU64,
    passed_nanos: AtomicU64,
}

impl SimulatedClock {
    /// A clock whose first reading of the time of day is `unix_micros`.
    pub const fn starting_at(unix_micros: u64) -> Self {
        Self {
            unix_micros: AtomicU64::new(unix_micros),
            passed_nanos: AtomicU64::new(0),
        }
    }

    /// Advances the monotonic time by `by`.
    pub fn advance(&self, by: Duration) {
        self.wait_until(self.now() + by);
    }
}

impl Default for SimulatedClock {
    fn default() -> Self {
        Self::starting_at(1_700_000_000_000_000)
    }
}

impl Clock for SimulatedClock {
    fn unix_micros(&self) -> u64 {
        self.unix_micros.fetch_add(1, Ordering::Relaxed)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.passed_nanos.load(Ordering::Relaxed))
    }

    fn wait_until(&self, moment: Duration) {
        let moment = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        let before = self.passed_nanos.fetch_max(moment, Ordering::Relaxed);
        let micros = moment.saturating_sub(before) / 1000;
        self.unix_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_passes_only_when_told() {
        let clock = SimulatedClock::starting_at(77);
        assert_eq!((clock.unix_micros(), clock.unix_micros()), (77, 78));
        assert_eq!(clock.now(), Duration::ZERO);
        clock.advance(Duration::from_secs(1));
        clock.wait_until(Duration::from_millis(10));
        assert_eq!(clock.now(), Duration::from_secs(1));
        assert_eq!(clock.unix_micros(), 1_000_079);
        clock.advance(Duration::from_secs(25 * 3600 + 120));
        assert_eq!(clock.minute_of_day(), 62);
    }

    #[test]
    fn the_hosts_minute_is_one_of_a_day_in_its_time_zone() {
        let clock = SystemClock::default();
        let utc = (clock.unix_micros() / 60_000_000 % 1440) as u16;
        let local = clock.minute_of_day();
        assert!(local < 1440);
        // Time zones differ from each other by quarters of hours; a minute may have passed.
        assert!(matches!((local + 1440 - utc) % 15, 0 | 1), "{local} {utc}");
    }
}
