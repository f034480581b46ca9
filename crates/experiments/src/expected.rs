//! An expected number or range, and how far from it a measurement may be.

use serde::Serialize;

/// How far a measurement may be from the expected range.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tolerance {
    /// A share of the printed number: 0.05 is 5 %.
    Part(f64),
    /// A distance in the unit of the printed number.
    By(f64),
}

/// Where an expected number comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A printed number or range.
    Printed,
    /// Printed words, such as “about 1”, for which we have chosen the range.
    Words(&'static str),
    /// Nothing is printed: the number is a parameter of the model, or our own requirement.
    Ours,
}

/// A number or range that is expected. A limit in one direction is infinite in the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// The quantity and the drive.
    pub what: String,
    /// Unit of the numbers; `yes` for a statement that holds (1) or not (0).
    pub unit: &'static str,
    /// The lower bound, inclusive.
    pub low: f64,
    /// The upper bound, inclusive.
    pub high: f64,
    /// The allowed distance from the range.
    pub tolerance: Tolerance,
    /// Whether the range is printed.
    pub origin: Origin,
}

impl Expected {
    /// From `low` to `high`.
    pub fn range(what: impl Into<String>, unit: &'static str, low: f64, high: f64) -> Self {
        Self {
            what: what.into(),
            unit,
            low,
            high,
            tolerance: Tolerance::By(0.0),
            origin: Origin::Printed,
        }
    }

    /// One number.
    pub fn value(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self::range(what, unit, value, value)
    }

    /// A lower limit.
    pub fn at_least(what: impl Into<String>, unit: &'static str, low: f64) -> Self {
        Self::range(what, unit, low, f64::INFINITY)
    }

    /// An upper limit.
    pub fn at_most(what: impl Into<String>, unit: &'static str, high: f64) -> Self {
        Self::range(what, unit, f64::NEG_INFINITY, high)
    }

    /// A statement that has to hold.
    pub fn yes(what: impl Into<String>) -> Self {
        Self::value(what, "yes", 1.0)
    }

    /// A statement that must not hold.
    pub fn no(what: impl Into<String>) -> Self {
        Self::value(what, "yes", 0.0)
    }

    /// Sets a tolerance that is a share of the printed number.
    #[must_use]
    pub fn part(self, part: f64) -> Self {
        let tolerance = Tolerance::Part(part);
        Self { tolerance, ..self }
    }

    /// Sets a tolerance in the unit of the printed number.
    #[must_use]
    pub fn by(self, by: f64) -> Self {
        let tolerance = Tolerance::By(by);
        Self { tolerance, ..self }
    }

    /// Marks the range as our reading of these printed words.
    #[must_use]
    pub fn words(self, words: &'static str) -> Self {
        let origin = Origin::Words(words);
        Self { origin, ..self }
    }

    /// Marks the range as not printed.
    #[must_use]
    pub fn ours(self) -> Self {
        let origin = Origin::Ours;
        Self { origin, ..self }
    }

    /// The expected number, unless it is a range.
    pub fn single(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// Distance of `measured` below (negative) or above the expected range, in its unit.
    pub fn off(&self, measured: f64) -> f64 {
        (measured - self.high).max(0.0) + (measured - self.low).min(0.0)
    }

    /// Whether `measured` is within the tolerance; NaN and infinities are not.
    pub fn is_met_by(&self, measured: f64) -> bool {
        let off = self.off(measured);
        let bound = if off < 0.0 { self.low } else { self.high };
        let most = match self.tolerance {
            Tolerance::Part(part) => bound.abs() * part,
            Tolerance::By(by) => by,
        };
        // Sums of decimal fractions are not exact.
        measured.is_finite() && (off == 0.0 || off.abs() <= most * (1.0 + 1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_begin_where_the_printed_range_ends() {
        let range = Expected::range("", "ms", 10.0, 20.0).by(1.0);
        let met = [8.9, 9.0, 15.0, 21.0, 21.1, f64::NAN].map(|at| range.is_met_by(at));
        assert_eq!(met, [false, true, true, true, false, false]);
        let value = Expected::value("", "ms", -100.0).part(0.02);
        assert!(value.is_met_by(-102.0) && !value.is_met_by(-97.9));
        assert_eq!((value.off(-105.0), range.off(25.0)), (-5.0, 5.0));
        assert_eq!((value.single(), range.single()), (Some(-100.0), None));
        let limit = Expected::at_least("", "", 5.0);
        assert!(limit.is_met_by(1e9) && !limit.is_met_by(4.9));
        assert!(!limit.is_met_by(f64::INFINITY));
        assert!(Expected::yes("").is_met_by(1.0) && !Expected::no("").is_met_by(1.0));
    }
}
