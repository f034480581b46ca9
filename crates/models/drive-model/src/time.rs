//! Virtual time: the clock of a model, independent of the machine's clock.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in time, in nanoseconds since the drive was switched on.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time, in nanoseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The time at which the drive was switched on.
    pub const START: Self = Self(0);

    /// A time `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A span of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of microseconds, rounded to nanoseconds; zero if negative.
    pub fn from_micros(micros: f64) -> Self {
        Self((micros * 1e3).round() as u64)
    }

    /// A span of milliseconds, rounded to nanoseconds; zero if negative.
    pub fn from_millis(millis: f64) -> Self {
        Self::from_micros(millis * 1e3)
    }

    /// A span of seconds, rounded to nanoseconds; zero if negative.
    pub fn from_seconds(seconds: f64) -> Self {
        Self::from_micros(seconds * 1e6)
    }

    /// Nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds.
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `count` times the span; saturates.
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Duration of a transfer of `bytes` at a rate in bytes a second, which must not be 0.
    pub const fn transfer(bytes: u64, bytes_per_second: u64) -> Self {
        let nanos = bytes as u128 * 1_000_000_000 / bytes_per_second as u128;
        Self(if nanos > u64::MAX as u128 {
            u64::MAX
        } else {
            nanos as u64
        })
    }
}

impl Add<Span> for Time {
    type Output = Self;
    /// Saturates at the end of time, after 584 years.
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;
    /// Saturates.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    /// The difference; zero if it would be negative.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.millis())
    }
}

/// Microseconds for people: `8.3 µs`, `12.05 ms`, `1.20 s`.
pub fn micros(micros: f64) -> String {
    match micros {
        n if n < 1e3 => format!("{n:.1} µs"),
        n if n < 1e6 => format!("{:.2} ms", n / 1e3),
        n => format!("{:.2} s", n / 1e6),
    }
}
