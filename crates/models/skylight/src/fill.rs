//! Writing until the drive begins to clean.

use crate::samples::Samples;
use crate::target::{Target, TargetError, serve};
use drive_model::{Request, Span, Time};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Result of a fill.
#[derive(Clone, PartialEq, Debug)]
pub struct Filled {
    /// Number of writes before the first one that waited for cleaning; all writes if none did.
    pub writes: u64,
    /// Whether a write waited for cleaning.
    pub stalled: bool,
    /// Mean milliseconds of a write before that.
    pub before_ms: f64,
    /// Milliseconds of the first write that waited.
    pub stall_ms: f64,
    /// Mean milliseconds of the writes after it, if any were requested.
    pub beyond_ms: Option<f64>,
    /// Latencies of the writes, in milliseconds.
    pub latencies: Samples,
}

/// Factor by which a drive is slower while it cleans.
const SLOWER: f64 = 10.0;

/// Limits of a fill.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Until {
    /// Most writes.
    pub most: u64,
    /// Number of writes after the first one that waited, to see how the drive continues.
    pub beyond: u64,
    /// Milliseconds that a drive may need for its map from time to time: less than for cleaning.
    pub hiccup_ms: f64,
}

/// Writes until the drive slows down to less than a tenth for longer than a hiccup.
///
/// # Errors
/// The target does not answer.
pub fn until_cleaning(
    target: &mut dyn Target,
    depth: usize,
    until: Until,
    writes: impl FnMut(u64) -> Request,
) -> Result<Filled, TargetError> {
    let Until {
        most,
        beyond,
        hiccup_ms,
    } = until;
    let window = (4 * depth).max(8);
    let mut recent: VecDeque<(Time, Span)> = VecDeque::with_capacity(window + 1);
    let mut usual: Vec<f64> = Vec::new();
    let mut filled = Filled {
        writes: 0,
        stalled: false,
        before_ms: 0.0,
        stall_ms: 0.0,
        beyond_ms: None,
        latencies: Samples::default(),
    };
    let mut requests = (0..most + beyond).map(writes);
    let mut under_way = 0;
    let mut later = (0.0, 0u32);
    let start = target.now();
    serve(target, depth, &mut requests, &mut |answer| {
        filled.latencies.push(answer.latency.millis());
        // Writes that were under way at the stall still count.
        under_way += usize::from(filled.stalled);
        if under_way >= depth || filled.writes == most {
            later = (later.0 + answer.latency.millis(), later.1 + 1);
            return if filled.stalled && filled.latencies.count() < filled.writes + beyond {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            };
        }
        filled.writes += 1;
        recent.push_back((answer.at, answer.latency));
        if recent.len() <= window {
            return ControlFlow::Continue(());
        }
        let from = recent.pop_front().map_or(start, |(at, _)| at);
        let each = answer.at.since(from).millis() / window as f64;
        if usual.len() < 64 {
            usual.push(each);
            filled.before_ms = crate::statistics::median(&usual);
            return ControlFlow::Continue(());
        }
        let before = filled.before_ms;
        if each > SLOWER * before
            && answer.at.since(from).millis() > before * window as f64 + hiccup_ms
        {
            filled.stalled = true;
            if beyond == 0 {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    if filled.stalled && later.1 >= depth as u32 {
        filled.beyond_ms = Some(later.0 / f64::from(later.1));
    }
    if filled.stalled {
        // The first of the window that had to wait, and what came behind it does not count.
        let slow = |(_, latency): &(Time, Span)| {
            latency.millis() > SLOWER * filled.before_ms * depth as f64
                && latency.millis() > hiccup_ms
        };
        let first = recent.iter().position(slow).unwrap_or(recent.len() - 1);
        let behind = (recent.len() - first + depth - 1) as u64;
        filled.stall_ms = recent
            .get(first)
            .map_or(0.0, |(_, latency)| latency.millis());
        filled.writes = filled.writes.saturating_sub(behind);
    }
    Ok(filled)
}

/// The `n`-th of positions that are spread over `count` as evenly as possible, in an order in which no two are close
/// to each other: the fractional parts of multiples of the golden ratio.
pub fn spread(n: u64, count: u64) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    ((u128::from(n.wrapping_mul(GOLDEN)) * u128::from(count)) >> 64) as u64
}

/// The `n`-th of `count` places in an order that visits each of them once in every `count`, and in
/// which no two are near each other: steps of about the golden section that have no factor in common
/// with the count.
pub fn visit(n: u64, count: u64) -> u64 {
    let golden = (count as f64 * 0.618_033_988_749_895) as u64;
    let step = (golden.max(1)..)
        .find(|step| gcd(*step, count) == 1)
        .unwrap_or(1);
    (u128::from(n) * u128::from(step) % u128::from(count)) as u64
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_place_is_visited_once() {
        for count in [1, 2, 3, 10, 97, 1_000] {
            let places: HashSet<u64> = (0..count).map(|n| visit(n, count)).collect();
            assert_eq!(places.len() as u64, count);
            assert!(places.iter().all(|place| *place < count));
        }
        assert!((0..1_000).all(|n| spread(n, 7) < 7));
    }
}
