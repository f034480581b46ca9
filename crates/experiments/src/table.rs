//! The table of an experiment: measured numbers beside printed ones.

use crate::expected::{Expected, Origin, Tolerance};
use serde::Serialize;

/// A printed number or range, and the measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The quantity and the drive.
    pub what: String,
    /// Unit of the numbers; `yes` for a statement that holds (1) or not (0).
    pub unit: &'static str,
    /// Printed minimum and maximum; `None` for no limit, both if no numbers are printed.
    pub printed: (Option<f64>, Option<f64>),
    /// The printed words, where no number is printed.
    pub printed_words: Option<&'static str>,
    /// Minimum and maximum that are asked for, where no numbers are printed.
    pub asked: (Option<f64>, Option<f64>),
    /// The measurement.
    pub measured: f64,
    /// Measured ÷ expected, if one number other than 0 is expected.
    pub ratio: Option<f64>,
    /// Distance below (negative) or above the expected range, in its unit.
    pub off: f64,
    /// The largest allowed distance.
    pub tolerance: Tolerance,
    /// Whether the distance is within the tolerance.
    pub within: bool,
}

/// An experiment's result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Table {
    /// Id of the experiment.
    pub id: &'static str,
    /// Title of the experiment.
    pub title: &'static str,
    /// Where the numbers are printed: paper and section.
    pub source: &'static str,
    /// The rows in the order of the print.
    pub rows: Vec<Row>,
}

impl Row {
    fn new(expected: Expected, measured: f64) -> Self {
        let single = expected.single().filter(|printed| *printed != 0.0);
        let limit = |bound: f64| bound.is_finite().then_some(bound);
        let range = (limit(expected.low), limit(expected.high));
        let (printed, printed_words, asked) = match expected.origin {
            Origin::Printed => (range, None, (None, None)),
            Origin::Words(words) => ((None, None), Some(words), range),
            Origin::Ours => ((None, None), None, range),
        };
        Self {
            printed,
            printed_words,
            asked,
            measured,
            ratio: single.map(|printed| measured / printed),
            off: expected.off(measured),
            tolerance: expected.tolerance,
            within: expected.is_met_by(measured),
            unit: expected.unit,
            what: expected.what,
        }
    }

    /// The row for people: quantity, printed, measured, ratio, tolerance, and whether it is out of tolerance. A range
    /// that is asked for without being printed stands with the quantity.
    fn cells(&self) -> Vec<String> {
        let answer = self.unit == "yes";
        let value = |value: f64| match value {
            1.0 if answer => "yes".to_owned(),
            0.0 if answer => "no".to_owned(),
            value => number(value),
        };
        let range = |range| match range {
            (Some(low), Some(high)) if low == high => value(low),
            (Some(low), Some(high)) => format!("{}–{}", value(low), value(high)),
            (Some(low), None) => format!("≥ {}", value(low)),
            (None, Some(high)) => format!("≤ {}", value(high)),
            (None, None) => String::new(),
        };
        let what = match self.unit {
            "" | "yes" => self.what.clone(),
            unit => format!("{}, {unit}", self.what),
        };
        let what = match self.asked {
            (None, None) => what,
            asked => format!("{what} (asked: {})", range(asked)),
        };
        let printed = self.printed_words.map(str::to_owned);
        let printed = printed.unwrap_or_else(|| range(self.printed));
        let tolerance = match self.tolerance {
            Tolerance::Part(part) => format!("{} %", number(part * 100.0)),
            Tolerance::By(0.0) => String::new(),
            Tolerance::By(by) => number(by),
        };
        let ratio = self.ratio.filter(|_| !answer);
        vec![
            what,
            printed,
            value(self.measured),
            ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default(),
            tolerance,
            if self.within { "" } else { "out of tolerance" }.to_owned(),
        ]
    }
}

impl Table {
    /// Rows without a measurement are NaN, and so out of tolerance.
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

    /// The table for people, its head first.
    pub fn in_words(&self) -> Vec<Vec<String>> {
        let head = ["", "printed", "measured", "ratio", "tolerance", ""];
        let head = head.map(str::to_owned).to_vec();
        let rows = self.rows.iter().map(Row::cells);
        std::iter::once(head).chain(rows).collect()
    }

    /// Rows that are out of tolerance.
    pub fn contradictions(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| !row.within)
    }
}

/// Formats a number with no more digits than are needed to compare it.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "–".into();
    }
    let digits = match value.abs() {
        1000.0.. => 0,
        10.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if digits == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_printed_is_shown_as_printed() {
        let expected = vec![
            Expected::value("a", "ms", 2.0).by(1.0),
            Expected::range("b", "", 1.0, 1.1).words("about 1"),
            Expected::at_least("c", "GiB", 5.0).ours(),
            Expected::yes("d").ours(),
        ];
        let table = Table::new(("", "", ""), expected, &[2.0, 1.3, 4.0, 1.0]);
        let cells = table.rows.iter().map(Row::cells);
        let shown: Vec<_> = cells
            .map(|cells| [0, 1, 5].map(|at| cells[at].clone()))
            .collect();
        let wanted = [
            ["a, ms", "2", ""],
            ["b (asked: 1–1.1)", "about 1", "out of tolerance"],
            ["c, GiB (asked: ≥ 5)", "", "out of tolerance"],
            ["d (asked: yes)", "", ""],
        ];
        assert_eq!(shown, wanted);
        let printed = table.rows.iter().map(|row| row.printed);
        let printed: Vec<_> = printed.collect();
        assert_eq!(printed[0], (Some(2.0), Some(2.0)));
        assert_eq!(printed[1..], [(None, None); 3]);
        assert_eq!(table.contradictions().count(), 2);
    }
}
