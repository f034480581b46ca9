//! What was measured beside what is printed.

use crate::expected::{Expected, Tolerance};
use serde::Serialize;

/// A number in print and the one measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What is measured, on which drive.
    pub what: String,
    /// `yes` for what is so (1) or not (0).
    pub unit: &'static str,
    /// Least and most in print; `None` for no limit.
    pub printed: (Option<f64>, Option<f64>),
    /// The measurement.
    pub measured: f64,
    /// Measured ÷ printed, where one number is printed that is not 0.
    pub ratio: Option<f64>,
    /// How far below (negative) or above what is printed, in its unit.
    pub off: f64,
    /// How far it may be.
    pub tolerance: Tolerance,
    /// Whether it is no farther.
    pub within: bool,
}

/// An experiment's result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// Of the experiment.
    pub id: &'static str,
    /// Of the experiment.
    pub title: &'static str,
    /// Where the numbers are printed.
    pub source: &'static str,
    /// In the order of the print.
    pub rows: Vec<Row>,
}

impl Row {
    fn new(expected: Expected, measured: f64) -> Self {
        let single = expected.single().filter(|printed| *printed != 0.0);
        let limit = |bound: f64| bound.is_finite().then_some(bound);
        Self {
            printed: (limit(expected.low), limit(expected.high)),
            measured,
            ratio: single.map(|printed| measured / printed),
            off: expected.off(measured),
            tolerance: expected.tolerance,
            within: expected.is_met_by(measured),
            unit: expected.unit,
            what: expected.what,
        }
    }
}

impl Table {
    /// What has not been measured is no number, and so not within any tolerance.
    pub(crate) fn new(
        (id, title, source): (&'static str, &'static str, &'static str),
        expected: Vec<Expected>,
        measured: &[f64],
    ) -> Self {
        debug_assert_eq!(expected.len(), measured.len(), "{id}");
        let measured = measured.iter().copied().chain(std::iter::repeat(f64::NAN));
        let rows = expected.into_iter().zip(measured);
        Self {
            id,
            title,
            source,
            rows: rows
                .map(|(row, measured)| Row::new(row, measured))
                .collect(),
        }
    }

    /// Rows that are farther from the print than they may be.
    pub fn contradictions(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.within)
    }
}
