//! Limits how fast live data is moved while no writer waits for a zone. Pure: the time of the next move follows
//! from the bytes moved, the clock and the load of user requests.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use zone::{Bytes, SizeError};

/// The limit on the background cleaner's speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pace {
    /// As fast as the drive allows.
    #[default]
    Full,
    /// At most this many bytes are moved a second.
    Rate(u64),
    /// Data is moved only when no user request has been under way for this long.
    Idle(Duration),
    /// As fast as possible while 99 of 100 user reads take no longer than this.
    Latency(Duration),
}

/// Why a text is no [`Pace`].
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PaceError {
    /// The text is none of the four forms.
    #[error("write full, a rate as 100MiB/s, idle:200ms or latency:20ms")]
    Unknown,
    /// The rate is not a valid size.
    #[error("{0}")]
    Rate(#[from] SizeError),
    /// At that rate nothing would ever be moved.
    #[error("a rate is a byte a second or more; `store clean --stop` stops the cleaner")]
    NoRate,
    /// The time is not a valid duration.
    #[error("{0}; write 200ms or 2s")]
    Time(#[from] humantime::DurationError),
    /// The time is outside the allowed range.
    #[error("write a time from 1ms to 1h")]
    OutOfRange,
}

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, PaceError> {
        let time = |text: &str| {
            let time = humantime::parse_duration(text.trim())?;
            let sensible = Duration::from_millis(1)..=Duration::from_secs(3600);
            sensible
                .contains(&time)
                .then_some(time)
                .ok_or(PaceError::OutOfRange)
        };
        let text = text.trim();
        if text == "full" {
            Ok(Self::Full)
        } else if let Some(text) = text.strip_prefix("idle:") {
            time(text).map(Self::Idle)
        } else if let Some(text) = text.strip_prefix("latency:") {
            time(text).map(Self::Latency)
        } else if let Some(rate) = text.strip_suffix("/s") {
            match rate.parse::<Bytes>()?.0 {
                0 => Err(PaceError::NoRate),
                rate => Ok(Self::Rate(rate)),
            }
        } else {
            Err(PaceError::Unknown)
        }
    }
}

/// Writes the form that [`FromStr`] reads.
impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match self {
            Self::Full => f.write_str("full"),
            Self::Rate(rate) => {
                let whole = UNITS.iter().find(|(unit, _)| rate.is_multiple_of(*unit));
                let (unit, name) = whole.copied().unwrap_or((1, "B"));
                write!(f, "{}{name}/s", rate / unit)
            }
            Self::Idle(time) => write!(f, "idle:{}", humantime::format_duration(*time)),
            Self::Latency(time) => write!(f, "latency:{}", humantime::format_duration(*time)),
        }
    }
}

crate::written_as_text!(Pace);

/// The load of user requests. All times are on one clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Requests that have begun and not ended.
    pub under_way: u32,
    /// When the last one ended.
    pub last_ended: Duration,
    /// Reads that have ended.
    pub reads: u64,
    /// Of [`Self::reads`], those that took longer than [`Pacer::slow_above`].
    pub slow: u64,
}

/// Time between two changes of the rate, unless too many reads are slow before.
const INTERVAL: Duration = Duration::from_secs(1);
/// The rate of [`Pace::Latency`] in bytes a second: its first value, its gain in an interval, and its lower and
/// upper bound.
const FIRST: u64 = 8 << 20;
const STEP: u64 = 4 << 20;
const LEAST: u64 = 1 << 20;
const MOST: u64 = 16 << 30;
/// Number of reads over which the share of slow ones is taken.
const SAMPLE: u64 = 200;

/// Computes when the next piece of data may be moved.
#[derive(Clone, Debug)]
pub struct Pacer {
    pace: Pace,
    /// Earliest time of the next move: the bytes moved before it are within the rate by then.
    next: Duration,
    /// The current rate under [`Pace::Latency`], in bytes a second.
    rate: u64,
    /// When the rate was last changed.
    decided_at: Duration,
    since: (u64, u64),
}

impl Pacer {
    /// Begins at full speed with nothing moved.
    pub const fn new(pace: Pace) -> Self {
        Self {
            pace,
            next: Duration::ZERO,
            rate: FIRST,
            decided_at: Duration::ZERO,
            since: (0, 0),
        }
    }

    /// The limit that this pacer enforces.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Bytes that are moved a second at most; `None` where that is not limited.
    pub const fn rate(&self) -> Option<u64> {
        match self.pace {
            Pace::Rate(rate) => Some(rate),
            Pace::Latency(_) => Some(self.rate),
            Pace::Full | Pace::Idle(_) => None,
        }
    }

    /// Latency above which a read counts as slow; `None` if latencies do not matter.
    pub const fn slow_above(&self) -> Option<Duration> {
        match self.pace {
            Pace::Latency(target) => Some(target),
            _ => None,
        }
    }

    /// Time of the next move, or the time to ask again; not later than `now` if data may be moved at once.
    pub fn next(&mut self, now: Duration, requests: &Requests) -> Duration {
        match self.pace {
            Pace::Full => now,
            Pace::Rate(_) => self.next,
            Pace::Idle(time) if requests.under_way > 0 => now + time,
            Pace::Idle(time) => requests.last_ended + time,
            Pace::Latency(_) => {
                self.adapt(now, requests);
                self.next
            }
        }
    }

    /// Records that a piece is moved; `bytes` counts both its read and its write.
    pub fn spend(&mut self, bytes: u64, now: Duration) {
        if let Some(rate) = self.rate() {
            let nanos = u128::from(bytes) * 500_000_000 / u128::from(rate.max(1));
            let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.next = self.next.max(now).saturating_add(time);
        }
    }

    /// Raises the rate each second in which few reads are slow, and halves it as soon as too many are (additive
    /// increase, multiplicative decrease, as TCP does). Doubles it while there are no reads.
    fn adapt(&mut self, now: Duration, requests: &Requests) {
        let reads = requests.reads.saturating_sub(self.since.0);
        let slow = requests.slow.saturating_sub(self.since.1);
        // A single slow read does not lower the rate.
        let is_too_slow = slow > 1 + reads / 100;
        if !is_too_slow && now < self.decided_at + INTERVAL {
            return;
        }
        self.rate = match (is_too_slow, reads) {
            (true, _) => self.rate / 2,
            (false, 0) => self.rate.saturating_mul(2),
            (false, _) => self.rate + STEP,
        };
        self.rate = self.rate.clamp(LEAST, MOST);
        self.decided_at = now;
        if is_too_slow || reads == 0 || reads >= SAMPLE {
            self.since = (requests.reads, requests.slow);
        }
    }
}

#[cfg(test)]
mod tests;
