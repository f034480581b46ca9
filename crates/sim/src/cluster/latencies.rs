//! Latencies of requests. Every one is kept, so that percentiles are exact.

use drive_model::Span;
use serde::Serialize;

/// Latencies of requests of one kind.
#[derive(Clone, Default, Debug)]
pub struct Latencies(Vec<Span>);

/// A summary of latencies in milliseconds; all 0 if there is none.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Percentiles {
    /// Requests.
    pub count: u64,
    /// The sum ÷ the count.
    pub mean_ms: f64,
    /// Half take no longer.
    pub p50_ms: f64,
    /// 90 of 100 take no longer.
    pub p90_ms: f64,
    /// 99 of 100.
    pub p99_ms: f64,
    /// 999 of 1,000.
    pub p999_ms: f64,
    /// The longest.
    pub most_ms: f64,
}

impl Latencies {
    /// Adds a latency.
    pub fn push(&mut self, latency: Span) {
        self.0.push(latency);
    }

    /// All figures at once. Sorts the latencies.
    pub fn percentiles(&mut self) -> Percentiles {
        let all = &mut self.0;
        all.sort_unstable();
        let Some(most) = all.last() else {
            return Percentiles::default();
        };
        // The least latency that a share of `part` does not exceed (nearest rank).
        let at = |part: f64| {
            let rank = (part * all.len() as f64).ceil().max(1.0) as usize;
            all[rank.min(all.len()) - 1].millis()
        };
        let sum: f64 = all.iter().map(|span| span.millis()).sum();
        Percentiles {
            count: all.len() as u64,
            mean_ms: sum / all.len() as f64,
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            most_ms: most.millis(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let mut all = Latencies::default();
        assert_eq!(all.percentiles(), Percentiles::default());
        (1..=1000)
            .rev()
            .for_each(|ms| all.push(Span::from_millis(f64::from(ms))));
        let p = all.percentiles();
        assert_eq!((p.p50_ms, p.p90_ms, p.p99_ms), (500.0, 900.0, 990.0));
        assert_eq!((p.p999_ms, p.most_ms, p.count), (999.0, 1000.0, 1000));
        assert_eq!(p.mean_ms, 500.5);
    }
}
