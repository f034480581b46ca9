//! Seek times of the arm.

use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Seek times as in a data sheet.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekTimes {
    /// Milliseconds of a seek to the next track.
    pub track_to_track_ms: f64,
    /// Milliseconds of a mean seek: between two random tracks.
    pub average_ms: f64,
    /// Milliseconds of a seek across all tracks.
    pub full_stroke_ms: f64,
    /// Milliseconds of a switch to another surface at the same cylinder.
    pub head_switch_ms: f64,
    /// Milliseconds that the arm settles longer for a write.
    pub write_settle_ms: f64,
}

/// The curve s + (f − s)·(w·√x + (1 − w)·x) through those three times, x being the part of the full
/// stroke. The weight of the root follows from the mean, for E|x − y| = 1/3 and E√|x − y| = 8/15 of
/// two random places.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SeekCurve {
    least_ns: f64,
    root_ns: f64,
    linear_ns: f64,
    head_switch: Span,
    write_settle: Span,
}

impl SeekTimes {
    /// Whether a curve that never falls can have these three times.
    pub fn check(&self) -> bool {
        let all = [
            self.track_to_track_ms,
            self.average_ms,
            self.full_stroke_ms,
            self.head_switch_ms,
            self.write_settle_ms,
        ];
        all.iter().all(|t| t.is_finite() && *t >= 0.0)
            && self.track_to_track_ms <= self.average_ms
            && self.average_ms <= self.full_stroke_ms
            && self.weight() <= 2.0
            && self.weight() >= 0.0
    }

    /// Range of means, in milliseconds, that such a curve can have.
    pub fn average_range(&self) -> (f64, f64) {
        let range = self.full_stroke_ms - self.track_to_track_ms;
        let at = |part: f64| self.track_to_track_ms + range * part;
        (at(1.0 / 3.0), at(11.0 / 15.0))
    }

    fn weight(&self) -> f64 {
        let range = self.full_stroke_ms - self.track_to_track_ms;
        if range <= 0.0 {
            return 0.0;
        }
        let mean = (self.average_ms - self.track_to_track_ms) / range;
        (mean - 1.0 / 3.0) / (8.0 / 15.0 - 1.0 / 3.0)
    }
}

impl SeekCurve {
    /// The curve for a drive of this many cylinders.
    pub fn new(times: &SeekTimes, cylinders: u32) -> Self {
        let span = f64::from(cylinders.max(2) - 1);
        let range = (times.full_stroke_ms - times.track_to_track_ms) * 1e6;
        let weight = times.weight();
        Self {
            least_ns: times.track_to_track_ms * 1e6,
            root_ns: range * weight / span.sqrt(),
            linear_ns: range * (1.0 - weight) / span,
            head_switch: Span::from_millis(times.head_switch_ms),
            write_settle: Span::from_millis(times.write_settle_ms),
        }
    }

    /// Duration of a seek over a distance in cylinders; zero for no distance.
    pub fn seek(&self, cylinders: u32) -> Span {
        if cylinders == 0 {
            return Span::ZERO;
        }
        let distance = f64::from(cylinders);
        let ns = self.least_ns + self.root_ns * distance.sqrt() + self.linear_ns * distance;
        Span::from_nanos(ns as u64)
    }

    /// Duration of a seek from one cylinder and surface to another, which may be the same.
    pub fn to(&self, from: (u32, u32), to: (u32, u32), writes: bool) -> Span {
        if from == to {
            return Span::ZERO;
        }
        let seek = self.seek(from.0.abs_diff(to.0));
        let moved = if from.1 == to.1 {
            seek
        } else {
            seek.max(self.head_switch)
        };
        if writes {
            moved + self.write_settle
        } else {
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SeekTimes = SeekTimes {
        track_to_track_ms: 1.0,
        average_ms: 8.5,
        full_stroke_ms: 16.0,
        head_switch_ms: 1.5,
        write_settle_ms: 0.5,
    };

    #[test]
    fn the_curve_goes_through_the_times_of_the_data_sheet() {
        assert!(TIMES.check());
        let n = 2_000u32;
        let curve = SeekCurve::new(&TIMES, n);
        assert!((curve.seek(1).millis() - 1.0).abs() < 0.3);
        assert!((curve.seek(n - 1).millis() - 16.0).abs() < 0.01);
        let mut sum = 0.0;
        for d in 1..n {
            // 2(n − d) of n² pairs are d apart.
            sum += curve.seek(d).millis() * 2.0 * f64::from(n - d);
        }
        let mean = sum / f64::from(n).powi(2);
        assert!((mean - 8.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn another_surface_costs_a_head_switch() {
        let curve = SeekCurve::new(&TIMES, 2_000);
        assert_eq!(curve.to((5, 1), (5, 1), true), Span::ZERO);
        assert_eq!(curve.to((5, 1), (5, 0), false), Span::from_millis(1.5));
        assert_eq!(curve.to((5, 1), (5, 0), true), Span::from_millis(2.0));
        assert!(curve.to((5, 1), (1_500, 0), false) > Span::from_millis(8.0));
    }
}
