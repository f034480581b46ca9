//! Rates of a workload over time: the completions in each stretch of the drive's time.

use crate::time::{Span, Time, micros};
use serde::Serialize;

/// Sums over completions.
#[derive(Clone, Copy, Default)]
struct Tally {
    requests: u64,
    bytes: u64,
    /// Nanoseconds: the sum and the largest.
    latency: u64,
    most: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64, latency: Span) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency += latency.nanos();
        self.most = self.most.max(latency.nanos());
    }

    fn rates(&self, from: f64, seconds: f64) -> Rates {
        let a_second = |count: u64| count as f64 / seconds.max(1e-9);
        Rates {
            from_seconds: from,
            requests_per_second: a_second(self.requests),
            bytes_per_second: a_second(self.bytes),
            mean_us: self.latency as f64 / 1e3 / self.requests.max(1) as f64,
            max_us: self.most as f64 / 1e3,
        }
    }
}

/// Rates of a stretch.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Rates {
    /// Start of the stretch.
    pub from_seconds: f64,
    /// Requests.
    pub requests_per_second: f64,
    /// Bytes a second of successful requests.
    pub bytes_per_second: f64,
    /// Mean latency.
    pub mean_us: f64,
    /// Largest latency.
    pub max_us: f64,
}

/// Completions by stretch of time.
pub struct Stretches {
    start: Time,
    /// Seconds of a stretch, and number of stretches: later completions count to the last one. `None` if there is
    /// only the total.
    every: Option<(u64, usize)>,
    all: Tally,
    each: Vec<Tally>,
}

impl Stretches {
    /// Empty stretches for a workload of about `seconds`. `every` must not be zero.
    pub fn new(start: Time, every: Option<u64>, seconds: u64) -> Self {
        let count = |every| (every, seconds.div_ceil(every).max(1) as usize);
        Self {
            start,
            every: every.map(count),
            all: Tally::default(),
            each: Vec::new(),
        }
    }

    /// Counts a completion.
    pub fn count(&mut self, at: Time, bytes: u64, latency: Span) {
        self.all.add(bytes, latency);
        if let Some((every, count)) = self.every {
            let stretch = (at.since(self.start).seconds() / every as f64) as usize;
            let stretch = stretch.min(count - 1);
            if self.each.len() <= stretch {
                self.each.resize(stretch + 1, Tally::default());
            }
            self.each[stretch].add(bytes, latency);
        }
    }

    /// Number of completions.
    pub const fn requests(&self) -> u64 {
        self.all.requests
    }

    /// Rates of the whole workload, which took `seconds`.
    pub fn total(&self, seconds: f64) -> Rates {
        self.all.rates(0.0, seconds)
    }

    /// A table of [`rates`](Self::rates), with a head; empty without stretches.
    pub fn rows(&self, seconds: f64) -> Vec<Vec<String>> {
        let head = ["from", "requests/s", "MiB/s", "mean", "max"].map(str::to_owned);
        let rates = self.rates(seconds).into_iter().map(|rates| {
            vec![
                format!("{:.0} s", rates.from_seconds),
                format!("{:.1}", rates.requests_per_second),
                format!("{:.2}", rates.bytes_per_second / f64::from(1 << 20)),
                micros(rates.mean_us),
                micros(rates.max_us),
            ]
        });
        let head = (!self.each.is_empty()).then(|| head.to_vec());
        head.into_iter().chain(rates).collect()
    }

    /// Rates of each stretch. The last one ends with the workload.
    pub fn rates(&self, seconds: f64) -> Vec<Rates> {
        let every = self.every.map_or(1, |(every, _)| every) as f64;
        let rates = |(n, tally): (usize, &Tally)| {
            let from = n as f64 * every;
            let is_last = n + 1 == self.each.len();
            tally.rates(from, if is_last { seconds - from } else { every })
        };
        self.each.iter().enumerate().map(rates).collect()
    }
}
