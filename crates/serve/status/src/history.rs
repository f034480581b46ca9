//! Requests of the last two minutes by second, which the page draws when it is opened.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Seconds kept.
const KEPT: u64 = 120;
/// Durations are counted in 36 steps, from 125 µs on, each longer by a factor of √2.
const STEPS: usize = 36;
const FIRST_MICROS: f64 = 125.0;

/// Requests and bytes of a second.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Requests that ended.
    pub requests: u64,
    /// Those of them with status 5xx, or not answered to the end.
    pub errors: u64,
    /// Bytes received in bodies of requests.
    pub received_bytes: u64,
    /// Bytes sent in bodies of answers.
    pub sent_bytes: u64,
    /// Median duration in milliseconds; `None` without requests.
    pub p50_ms: Option<f64>,
    /// 99th percentile of durations in milliseconds.
    pub p99_ms: Option<f64>,
}

#[derive(Clone)]
struct Slot {
    second: u64,
    told: Second,
    durations: [u32; STEPS],
}

/// Seconds with any traffic, the oldest first.
#[derive(Default)]
pub(crate) struct History(VecDeque<Slot>);

impl History {
    fn slot(&mut self, second: u64) -> &mut Slot {
        // If another thread has begun the next second already, this counts in that one.
        if self.0.back().is_none_or(|last| last.second < second) {
            self.0.push_back(Slot {
                second,
                told: Second::default(),
                durations: [0; STEPS],
            });
            if self.0.len() as u64 > KEPT + 1 {
                self.0.pop_front();
            }
        }
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    pub(crate) fn moved(&mut self, second: u64, received: u64, sent: u64) {
        let told = &mut self.slot(second).told;
        told.received_bytes += received;
        told.sent_bytes += sent;
    }

    pub(crate) fn answered(&mut self, second: u64, took: Duration, is_error: bool) {
        let slot = self.slot(second);
        slot.told.requests += 1;
        slot.told.errors += u64::from(is_error);
        let steps = 2.0 * (took.as_micros() as f64 / FIRST_MICROS).log2().max(0.0);
        slot.durations[(steps.ceil() as usize).min(STEPS - 1)] += 1;
    }

    /// The up to 120 seconds before `now`, including those without traffic.
    pub(crate) fn told(&self, now: u64) -> Vec<Second> {
        let first = now.saturating_sub(KEPT);
        let mut told = vec![Second::default(); (now - first) as usize];
        for slot in self.0.iter().filter(|s| (first..now).contains(&s.second)) {
            told[(slot.second - first) as usize] = Second {
                p50_ms: quantile(&slot.durations, 0.5),
                p99_ms: quantile(&slot.durations, 0.99),
                ..slot.told
            };
        }
        told
    }
}

/// Upper bound of the step that the quantile is in, in milliseconds.
fn quantile(durations: &[u32; STEPS], part: f64) -> Option<f64> {
    let all: u32 = durations.iter().sum();
    let wanted = (f64::from(all) * part).ceil() as u32;
    let mut below = 0;
    let step = durations.iter().position(|count| {
        below += count;
        below >= wanted && below > 0
    })?;
    Some(FIRST_MICROS / 1000.0 * 2f64.powf(step as f64 / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own() {
        let mut history = History::default();
        for micros in [1, 1000, 1000, 90_000] {
            history.answered(3, Duration::from_micros(micros), micros == 1);
        }
        history.moved(5, 10, 20);
        let told = history.told(6);
        assert_eq!(told.len(), 6);
        assert_eq!((told[3].requests, told[3].errors), (4, 1));
        let (p50, p99) = (told[3].p50_ms.unwrap(), told[3].p99_ms.unwrap());
        assert!((0.99..1.5).contains(&p50) && (89.0..130.0).contains(&p99));
        assert_eq!((told[5].received_bytes, told[5].sent_bytes), (10, 20));
        assert_eq!((told[4], told[5].p50_ms), (Second::default(), None));
        // The present one is not over yet.
        assert_eq!(history.told(5).len(), 5);
    }

    #[test]
    fn old_seconds_go() {
        let mut history = History::default();
        (0..1000).for_each(|second| history.moved(second, second, 0));
        let told = history.told(1000);
        assert_eq!((told.len(), told[0].received_bytes), (120, 880));
        assert_eq!(history.told(5000), vec![Second::default(); 120]);
    }
}
