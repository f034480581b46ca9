//! Quantiles of the latencies of commands of one kind.

use serde::Serialize;
use std::time::Duration;

/// Latency quantiles in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Latencies {
    /// Half of the commands took no longer.
    pub median: f64,
    /// Of a hundred commands, 99 took no longer.
    pub p99: f64,
    /// The longest latency.
    pub max: f64,
}

impl Latencies {
    /// The quantiles of `times`; `None` if there are none.
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |part: f64| times[(last as f64 * part).round() as usize].as_secs_f64() * 1e6;
        Some(Self {
            median: at(0.5),
            p99: at(0.99),
            max: at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let times = (0..=100).rev().map(Duration::from_micros).collect();
        let of = Latencies::of(times).unwrap();
        assert_eq!((of.median, of.p99, of.max), (50.0, 99.0, 100.0));
        assert_eq!(Latencies::of(Vec::new()), None);
    }
}
