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
/// A drive with a full cache is slow again within one of so many parts of the writes until then. Anything may stop a
/// drive once: recovery from an error, a link that is reset.
const AGAIN: u64 = 20;

/// The first write of a slow window that waited.
#[derive(Clone, Copy)]
struct Waited {
    /// Number of writes before it.
    writes: u64,
    /// Its latency in milliseconds.
    millis: f64,
    /// Number of writes by which the drive has to be slow again, if the cache is full.
    again_by: u64,
}

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

/// Writes until the drive slows down to less than a tenth for longer than a hiccup, and does so again within a
/// twentieth of the writes; or until `most` writes, if these end inside that twentieth. The first of the two counts.
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
    let mut first: Option<Waited> = None;
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
        if filled.stalled {
            return ControlFlow::Continue(());
        }
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
            if first.is_some_and(|first| filled.writes <= first.again_by) {
                filled.stalled = true;
                if beyond == 0 {
                    return ControlFlow::Break(());
                }
            } else {
                let (writes, millis) = first_slow(&recent, &filled, depth, hiccup_ms);
                first = Some(Waited {
                    writes,
                    millis,
                    again_by: filled.writes + filled.writes / AGAIN + 2 * window as u64,
                });
                recent.clear();
            }
        }
        ControlFlow::Continue(())
    })?;
    if filled.stalled && later.1 >= depth as u32 {
        filled.beyond_ms = Some(later.0 / f64::from(later.1));
    }
    if let Some(first) = first
        && (filled.stalled || filled.writes <= first.again_by)
    {
        filled.stalled = true;
        filled.writes = first.writes;
        filled.stall_ms = first.millis;
    }
    Ok(filled)
}

/// The number of writes before the first of a slow window that had to wait, and its latency in milliseconds. What was
/// under way with it does not count as written before.
fn first_slow(
    recent: &VecDeque<(Time, Span)>,
    filled: &Filled,
    depth: usize,
    hiccup_ms: f64,
) -> (u64, f64) {
    let slow = |(_, latency): &(Time, Span)| {
        latency.millis() > SLOWER * filled.before_ms * depth as f64 && latency.millis() > hiccup_ms
    };
    let last = recent.len().saturating_sub(1);
    let first = recent.iter().position(slow).unwrap_or(last);
    let behind = (recent.len() - first + depth - 1) as u64;
    let millis = recent.get(first);
    (
        filled.writes.saturating_sub(behind),
        millis.map_or(0.0, |(_, latency)| latency.millis()),
    )
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
    use crate::target::Answer;
    use drive_model::Lba;
    use std::collections::HashSet;

    /// A drive that takes 0.1 ms for a write. All of it stops for a second at some writes, and at each write once
    /// `full` are done.
    struct Stops {
        now: Time,
        writes: u64,
        at: &'static [u64],
        full: u64,
    }

    impl Target for Stops {
        fn blocks(&self) -> u64 {
            1 << 20
        }

        fn now(&self) -> Time {
            self.now
        }

        fn run(
            &mut self,
            depth: usize,
            requests: &mut dyn Iterator<Item = Request>,
            watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
        ) -> Result<(), TargetError> {
            let mut under_way: VecDeque<(Request, Time)> = VecDeque::new();
            let mut going = true;
            loop {
                while going && under_way.len() < depth {
                    let Some(request) = requests.next() else {
                        break;
                    };
                    under_way.push_back((request, self.now));
                }
                let Some((request, submitted)) = under_way.pop_front() else {
                    return Ok(());
                };
                self.writes += 1;
                let stops = self.writes > self.full || self.at.contains(&self.writes);
                self.now += Span::from_millis(if stops { 1_000.0 } else { 0.1 });
                let answer = Answer {
                    request,
                    latency: self.now.since(submitted),
                    at: self.now,
                    result: Ok(()),
                };
                going &= watch(&answer).is_continue();
            }
        }

        fn pause(&mut self, span: Span) {
            self.now += span;
        }

        fn set_volatile_cache(&mut self, _on: bool) -> bool {
            true
        }

        fn set_look_ahead(&mut self, _on: bool) -> bool {
            true
        }

        fn erase(&mut self) -> bool {
            false
        }
    }

    /// A stop of a second was taken for a full cache, whose size was then called exact.
    #[test]
    fn a_drive_that_stops_once_is_not_full() {
        const MOST: u64 = 20_000;
        const NEVER: u64 = u64::MAX;
        let cases: [(&'static [u64], u64); 5] = [
            (&[], 10_000),
            (&[5_000], 10_000),
            (&[5_000, 8_000], NEVER),
            (&[], NEVER),
            // The fill ends before the drive can be slow for a second time.
            (&[], 19_990),
        ];
        for (at, full) in cases {
            for (depth, beyond) in [(1, 0), (1, 300), (31, 0), (31, 300)] {
                let mut drive = Stops {
                    now: Time::START,
                    writes: 0,
                    at,
                    full,
                };
                let until = Until {
                    most: MOST,
                    beyond,
                    hiccup_ms: 400.0,
                };
                let found = until_cleaning(&mut drive, depth, until, |n| Request::write(Lba(n), 1));
                let found = found.map(|filled| (filled.writes, filled.stalled));
                let expected = if full == NEVER {
                    (MOST, false)
                } else {
                    (full + 1 - depth as u64, true)
                };
                assert_eq!(found, Ok(expected), "{at:?}, {full}, {depth}, {beyond}");
            }
        }
    }

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
