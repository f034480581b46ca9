//! A load while it runs: whether more requests may begin, and the counts and latencies of which [`Report`] is made.

use super::coordinator;
use super::latencies::Latencies;
use super::rebuild::Rebuild;
use super::report::{Cleaned, Rebuilt, Report};
use super::scenario::{Layout, Load, Scenario, Until};
use drive_model::{Span, Time};

/// Sums over all drives and links, from the start of the simulation to one moment.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Totals {
    /// The moment.
    pub at: Time,
    /// Seconds in which drives were busy.
    pub busy: f64,
    /// Seconds in which drives were cleaning.
    pub cleaning: f64,
    /// Bytes that cleaners moved.
    pub moved_bytes: u64,
    /// Zones that cleaners reset.
    pub zones: u64,
    /// Free zones of all drives.
    pub free_zones: u64,
    /// Bytes written to drives for users and rebuilds.
    pub written_bytes: u64,
    /// Writes that waited for a zone.
    pub waited: u64,
    /// Bytes that nodes have sent and received.
    pub node_bytes: u64,
    /// Number of shifts; `None` if drives clean without shifts.
    pub shifts: Option<u32>,
    /// How drives came to clean, with a turn or without.
    pub turns: coordinator::Counts,
}

/// A load, its requests and their latencies so far.
#[derive(Clone, Debug)]
pub struct Run {
    /// The load.
    pub load: Load,
    counted_from: Time,
    counted_to: Option<Time>,
    /// Whether requests that arrive now may begin.
    pub is_open: bool,
    has_begun_to_count: bool,
    begun: u64,
    ended: u64,
    /// Requests begun, of the kind that [`Until::Requests`] counts.
    limit: u64,
    answered: [u64; 2],
    latencies: [Latencies; 2],
    /// When the last answer arrived.
    pub last_answer: Time,
    /// Sums when counting began.
    pub at_first: Totals,
    /// Sums when counting ended.
    pub at_last: Totals,
}

impl Run {
    /// A load that begins at `now`.
    pub fn new(load: Load, now: Time) -> Self {
        let counted_from = now + Span::from_seconds(load.warm_up_seconds);
        let counted_to = match load.until {
            Until::Seconds(seconds) => Some(counted_from + Span::from_seconds(seconds)),
            Until::Requests(_) => None,
        };
        Self {
            load,
            counted_from,
            counted_to,
            is_open: true,
            has_begun_to_count: false,
            begun: 0,
            ended: 0,
            limit: 0,
            answered: [0; 2],
            latencies: [Latencies::default(), Latencies::default()],
            last_answer: counted_from,
            at_first: Totals::default(),
            at_last: Totals::default(),
        }
    }

    /// A run without requests.
    pub fn nothing() -> Self {
        let load = Load {
            per_second: 0.0,
            reads: 0.0,
            readers: 0,
            writers: 0,
            overwrites: false,
            warm_up_seconds: 0.0,
            until: Until::Requests(0),
        };
        Self {
            is_open: false,
            ..Self::new(load, Time::START)
        }
    }

    /// When counting begins.
    pub const fn counted_from(&self) -> Time {
        self.counted_from
    }

    /// When counting ends; `None` if a number of requests decides.
    pub const fn counted_to(&self) -> Option<Time> {
        self.counted_to
    }

    /// Whether counting begins with the event at `at`; true only once.
    pub fn is_counted_from(&mut self, at: Time) -> bool {
        let is_first = !self.has_begun_to_count && at >= self.counted_from;
        self.has_begun_to_count |= is_first;
        is_first
    }

    /// Whether the load ends with the event at `at`.
    pub fn is_over_at(&self, at: Time) -> bool {
        self.is_open && self.counted_to.is_some_and(|end| at >= end)
    }

    /// Whether another request may begin.
    pub const fn begins_more(&self) -> bool {
        self.is_open
    }

    /// The share of the load that is done at `now`.
    pub fn progress(&self, now: Time) -> f64 {
        match self.load.until {
            Until::Seconds(seconds) => now.since(self.counted_from).seconds() / seconds,
            Until::Requests(count) => self.limit as f64 / count as f64,
        }
    }

    /// Counts a request that begins at `now`. Returns whether its latency is counted.
    pub fn begin(&mut self, is_read: bool, now: Time) -> bool {
        self.begun += 1;
        let writes = self.load.writers > 0 || (self.load.per_second > 0.0 && self.load.reads < 1.0);
        self.limit += u64::from(is_read != writes);
        if let Until::Requests(count) = self.load.until
            && self.limit >= count
        {
            self.is_open = false;
        }
        now >= self.counted_from
    }

    /// Counts the answer of a request that began at `begun` and was answered at `at`.
    pub fn answer(&mut self, is_read: bool, counts: bool, begun: Time, at: Time) {
        self.ended += 1;
        let kind = usize::from(!is_read);
        self.last_answer = self.last_answer.max(at);
        if counts {
            self.latencies[kind].push(at.since(begun));
        }
        let is_in_time = at >= self.counted_from && self.counted_to.is_none_or(|end| at <= end);
        self.answered[kind] += u64::from(is_in_time);
    }

    /// The report of the counted time.
    pub fn report(
        mut self,
        scenario: &Scenario,
        rebuild: Option<&Rebuild>,
        read_for_rebuild: u64,
        events: u64,
    ) -> Report {
        let (first, last) = (self.at_first, self.at_last);
        let seconds = last.at.since(self.counted_from).seconds();
        let a_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let [reads, writes] = self.answered.map(|count| a_second(count as f64));
        let object = scenario.object_bytes as f64;
        let drive_seconds = (f64::from(scenario.drives()) * seconds).max(f64::MIN_POSITIVE);
        let cleaning = matches!(scenario.layout, Layout::Zones { .. }).then(|| {
            let (before, turns) = (first.turns, last.turns);
            let moved = last.moved_bytes - first.moved_bytes;
            let written = last.written_bytes - first.written_bytes;
            let read = (turns.reads - before.reads).max(1);
            Cleaned {
                moved_bytes: moved,
                write_amplification: match written {
                    0 => 1.0,
                    written => (written + moved) as f64 / written as f64,
                },
                zones: last.zones - first.zones,
                time_part: (last.cleaning - first.cleaning) / drive_seconds,
                shifts: last.shifts,
                begun: turns.begun - before.begun,
                forced: turns.forced - before.forced,
                beside: turns.beside - before.beside,
                yielded: turns.yielded - before.yielded,
                reads_from_cleaning: (turns.reads_beside - before.reads_beside) as f64
                    / read as f64,
                writes_waited: last.waited - first.waited,
                free_zones: [first, last]
                    .map(|at| at.free_zones as f64 / f64::from(scenario.drives())),
            }
        });
        let rebuild = rebuild.map(|rebuild| {
            let (bytes, of_bytes) = rebuild.bytes();
            let (took, complete) = rebuild.seconds(last.at);
            let rate = bytes as f64 / took.max(1e-9);
            Rebuilt {
                bytes,
                of_bytes,
                seconds: took,
                complete,
                bytes_per_second: rate,
                seconds_for_all: of_bytes as f64 / rate.max(1e-9),
                read_bytes: read_for_rebuild,
            }
        });
        Report {
            coordination: scenario.coordination.name(),
            seconds,
            reads_per_second: reads,
            writes_per_second: writes,
            read_bytes_per_second: reads * object,
            written_bytes_per_second: writes * object,
            reads: self.latencies[0].percentiles(),
            writes: self.latencies[1].percentiles(),
            drives_busy: (last.busy - first.busy) / drive_seconds,
            node_bytes_per_second: a_second((last.node_bytes - first.node_bytes) as f64),
            cleaning,
            rebuild,
            begun: self.begun,
            ended: self.ended,
            events,
        }
    }
}
