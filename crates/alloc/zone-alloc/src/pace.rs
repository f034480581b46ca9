//! How fast live data is moved while nobody waits for a zone. Pure: of what was moved, the clock, and what
//! users' requests do follows when the next piece may go.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use zone::{Bytes, SizeError};

/// What the background cleaner is held to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pace {
    /// As fast as the drive goes.
    #[default]
    Full,
    /// So many bytes are moved a second.
    Rate(u64),
    /// Only while no user's request has been under way for so long.
    Idle(Duration),
    /// As fast as 99 of 100 reads of users do not take longer.
    Latency(Duration),
}

/// Why a text is no [`Pace`].
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum PaceError {
    /// Not one of the four.
    #[error("write full, a rate as 100MiB/s, idle:200ms or latency:20ms")]
    Unknown,
    /// The rate is none.
    #[error("{0}")]
    Rate(#[from] SizeError),
    /// At that rate nothing would ever be moved.
    #[error("a rate is a byte a second or more; `store clean --stop` stops the cleaner")]
    NoRate,
    /// The time is none.
    #[error("{0}; write 200ms or 2s")]
    Time(#[from] humantime::DurationError),
    /// Nothing could be held to that.
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

/// As it is read again.
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

/// What users' requests do. The times are those of one clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Requests that have begun and not ended.
    pub under_way: u32,
    /// When the last one ended.
    pub last_ended: Duration,
    /// Reads that have ended.
    pub reads: u64,
    /// Of these, how many took longer than [`Pacer::slow_above`].
    pub slow: u64,
}

/// Between two decisions about the rate, if reads are not slow before.
const INTERVAL: Duration = Duration::from_secs(1);
/// What a rate that follows latencies begins with, gains in an interval, and never falls below or rises
/// above, in bytes a second.
const FIRST: u64 = 8 << 20;
const STEP: u64 = 4 << 20;
const LEAST: u64 = 1 << 20;
const MOST: u64 = 16 << 30;
/// Reads that are looked at together.
const SAMPLE: u64 = 200;

/// Says when the next piece may be moved.
#[derive(Clone, Debug)]
pub struct Pacer {
    pace: Pace,
    /// Not before: what went before has been paid for then.
    next: Duration,
    /// The rate that follows latencies.
    rate: u64,
    /// When that was decided upon, and from which request on reads are counted.
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

    /// What it is held to.
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

    /// A read that takes longer is slow; nobody cares if it is `None`.
    pub const fn slow_above(&self) -> Option<Duration> {
        match self.pace {
            Pace::Latency(target) => Some(target),
            _ => None,
        }
    }

    /// When the next piece may go, or when to ask again: at once if that is not later than `now`.
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

    /// A piece goes: so many bytes are read or written. What is moved is both.
    pub fn spend(&mut self, bytes: u64, now: Duration) {
        if let Some(rate) = self.rate() {
            let nanos = u128::from(bytes) * 500_000_000 / u128::from(rate.max(1));
            let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.next = self.next.max(now).saturating_add(time);
        }
    }

    /// A little faster each second in which few reads are slow, half as fast as soon as too many are (additive
    /// increase, multiplicative decrease, as TCP does). Twice as fast while nobody reads.
    fn adapt(&mut self, now: Duration, requests: &Requests) {
        let reads = requests.reads.saturating_sub(self.since.0);
        let slow = requests.slow.saturating_sub(self.since.1);
        // One is no reason yet.
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
