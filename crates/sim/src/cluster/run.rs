//! A load while it is borne: what is still to begin, and what is counted.

use super::coordinator;
use super::latencies::Latencies;
use super::rebuild::Rebuild;
use super::report::{Cleaned, Rebuilt, Report};
use super::scenario::{Layout, Load, Scenario, Until};
use drive_model::{Span, Time};

/// What all drives and links have done until a moment.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Totals {
    /// The moment.
    pub at: Time,
    /// Seconds that drives worked.
    pub busy: f64,
    /// Seconds that they cleaned.
    pub cleaning: f64,
    /// Moved by cleaners.
    pub moved_bytes: u64,
    /// Zones that they reset.
    pub zones: u64,
    /// Free zones of all drives.
    pub free_zones: u64,
    /// Written to drives for users and rebuilds.
    pub written_bytes: u64,
    /// Writes that waited for a zone.
    pub waited: u64,
    /// In and out of nodes.
    pub node_bytes: u64,
    /// In how many shifts drives clean; none without.
    pub shifts: Option<u32>,
    /// Who cleaned beside whom.
    pub turns: coordinator::Counts,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is asked for.
    pub load: Load,
    counted_from: Time,
    counted_to: Option<Time>,
    /// What comes now may begin.
    pub is_open: bool,
    has_begun_to_count: bool,
    begun: u64,
    ended: u64,
    /// Those that the end of the load counts.
    limit: u64,
    answered: [u64; 2],
    latencies: [Latencies; 2],
    /// The last answer that was given.
    pub last_answer: Time,
    /// When counting began, and ended.
    pub at_first: Totals,
    /// See above.
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

    /// No load at all.
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

    /// When it ends, if that is known.
    pub const fn counted_to(&self) -> Option<Time> {
        self.counted_to
    }

    /// Whether counting begins with what happens at `at`: true once.
    pub fn is_counted_from(&mut self, at: Time) -> bool {
        let is_first = !self.has_begun_to_count && at >= self.counted_from;
        self.has_begun_to_count |= is_first;
        is_first
    }

    /// Whether the load ends with what happens at `at`.
    pub fn is_over_at(&self, at: Time) -> bool {
        self.is_open && self.counted_to.is_some_and(|end| at >= end)
    }

    /// Whether another request may begin.
    pub const fn begins_more(&self) -> bool {
        self.is_open
    }

    /// Which part of the load is behind at `now`.
    pub fn progress(&self, now: Time) -> f64 {
        match self.load.until {
            Until::Seconds(seconds) => now.since(self.counted_from).seconds() / seconds,
            Until::Requests(count) => self.limit as f64 / count as f64,
        }
    }

    /// A request begins; whether it is counted.
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

    /// A request that began at `begun` has its answer at `at`.
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

    /// What it came to.
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
