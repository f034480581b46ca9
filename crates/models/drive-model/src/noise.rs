//! Irregular timing of a disk: jitter, internal pauses, retries and background scans.
//!
//! All of it comes from the seed, one random number after another in the order of requests.

use crate::disk::Disk;
use crate::mechanics::{SeekTimes, Shape};
use crate::profile_error::{ProfileError, must};
use crate::request::Pba;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// The noise of a disk, as in a profile. A value of 0, and a missing one, switches that kind of noise off.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoiseShape {
    /// Most microseconds that a completion is late; uniformly distributed from 0.
    pub jitter_most_us: f64,
    /// Of a million requests, those after which the drive does internal work.
    pub outliers_per_million: f64,
    /// Least milliseconds of this work; uniformly distributed.
    pub outlier_least_ms: f64,
    /// Most milliseconds of this work.
    pub outlier_most_ms: f64,
    /// Of a million accesses to the medium, those that need further tries.
    pub retries_per_million: f64,
    /// Most turns that further tries take, at least 1.
    pub retry_most_turns: u32,
    /// Milliseconds of idle time until the drive begins to scan its medium, a step at a time.
    pub scan_idle_ms: f64,
    /// Milliseconds from the start of one scan step to the next.
    pub scan_every_ms: f64,
    /// Blocks read in a scan step, which is not interrupted.
    pub scan_blocks: u32,
}

impl NoiseShape {
    /// Checks that the numbers fit together and with the disk.
    pub(crate) fn check(&self, shape: &Shape, seek: &SeekTimes) -> Result<(), ProfileError> {
        let (least, most) = (self.outlier_least_ms, self.outlier_most_ms);
        must(
            most >= least && (self.outliers_per_million == 0.0) == (most == 0.0),
            "noise.outlier_most_ms",
            most,
            format_args!("at least outlier_least_ms, {least}, and 0 only without outliers"),
        )?;
        must(
            (self.retries_per_million == 0.0) == (self.retry_most_turns == 0)
                && self.retry_most_turns <= MOST_TURNS,
            "noise.retry_most_turns",
            self.retry_most_turns,
            format_args!("1 to {MOST_TURNS}, and 0 only without retries"),
        )?;
        let track = shape.inner_track_blocks;
        must(
            (self.scan_idle_ms == 0.0) == (self.scan_blocks == 0) && self.scan_blocks <= track,
            "noise.scan_blocks",
            self.scan_blocks,
            format_args!("1 to {track}, the shortest track, and 0 only without scan_idle_ms"),
        )?;
        // Each step ends before the next one begins.
        let step_ms = seek.full_stroke_ms + 4.0 * 60e3 / f64::from(shape.rpm);
        must(
            self.scan_blocks == 0 || self.scan_every_ms >= step_ms,
            "noise.scan_every_ms",
            self.scan_every_ms,
            format_args!("at least {step_ms:.1}, a full stroke and four turns"),
        )
    }
}

/// A drive with more turns for one read would be broken.
const MOST_TURNS: u32 = 1_000;

/// The noise of a drive: parameters and state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Noise {
    shape: NoiseShape,
    random: u64,
    /// First block of the next scan step.
    scan_next: Pba,
}

impl Noise {
    /// Noise with this seed; the same seed gives the same noise.
    pub fn new(shape: NoiseShape, seed: u64) -> Self {
        Self {
            shape,
            random: seed,
            scan_next: Pba(0),
        }
    }

    /// SplitMix64: a number from 0 up to 1, excluding 1.
    fn part(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1u64 << 53) as f64
    }

    fn happens(&mut self, per_million: f64) -> bool {
        per_million > 0.0 && self.part() * 1e6 < per_million
    }

    /// How late the next completion is.
    pub fn jitter(&mut self) -> Span {
        if self.shape.jitter_most_us == 0.0 {
            return Span::ZERO;
        }
        Span::from_micros(self.part() * self.shape.jitter_most_us)
    }

    /// Duration of the internal work after a request; mostly zero.
    pub fn outlier(&mut self) -> Span {
        if !self.happens(self.shape.outliers_per_million) {
            return Span::ZERO;
        }
        let (least, most) = (self.shape.outlier_least_ms, self.shape.outlier_most_ms);
        Span::from_millis(least + self.part() * (most - least))
    }

    /// Delay of an access by further tries, each a turn later; mostly zero.
    pub fn retries(&mut self, turn: Span) -> Span {
        if !self.happens(self.shape.retries_per_million) {
            return Span::ZERO;
        }
        let more = self.part() * f64::from(self.shape.retry_most_turns);
        turn.times(1 + more as u64)
    }

    /// Time at which the drive is free for a request that arrives at `now`, if it has been idle since `quiet`: a scan
    /// step that has begun ends first, and leaves the arm at its end. Earlier steps have no visible effect.
    pub fn scan(&mut self, disk: &mut Disk, quiet: Time, now: Time) -> Time {
        let first = quiet + Span::from_millis(self.shape.scan_idle_ms);
        let every = Span::from_millis(self.shape.scan_every_ms).nanos();
        let blocks = u64::from(self.shape.scan_blocks);
        if blocks == 0 || now <= first {
            return now;
        }
        let step = (now.since(first).nanos() - 1) / every.max(1);
        let begun = first + Span::from_nanos(step.saturating_mul(every));
        let room = disk.blocks().saturating_sub(blocks).max(1);
        let at = (u128::from(self.scan_next.0) + u128::from(step) * u128::from(blocks))
            % u128::from(room);
        let at = Pba(at as u64);
        self.scan_next = at.plus(blocks);
        now.max(disk.fetch(begun, at, blocks))
    }
}
