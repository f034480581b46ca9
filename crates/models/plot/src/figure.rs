//! Figures as data: panels with axes and series, without the drawing.

/// The axis label of latencies.
pub const LATENCY: &str = "latency (ms)";

/// A figure of a paper, with values that were measured here.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its number in the paper, such as «2.4».
    pub number: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The workload, and an explanation.
    pub caption: String,
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// A drawing with two axes.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Its title; empty if the figure's title is enough.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic: bool,
    /// Labels of the positions 0, 1, 2 and so on. If there are any, series are drawn as bars.
    pub names: Vec<String>,
    /// The series.
    pub series: Vec<Series>,
}

/// A series of points, or a line through them.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Name in the legend; empty for none.
    pub name: String,
    /// Whether points are joined by a line.
    pub line: bool,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    /// A panel of points, without series yet.
    pub fn new(title: impl Into<String>, x: &str, y: &str) -> Self {
        Self {
            title: title.into(),
            x: x.into(),
            y: y.into(),
            logarithmic: false,
            names: Vec::new(),
            series: Vec::new(),
        }
    }

    /// A panel of bars in groups of these names, without series yet.
    pub fn bars(title: impl Into<String>, names: &[&str], y: &str) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Self::new(title, "", y)
        }
    }

    /// Makes the vertical axis logarithmic.
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// Adds a series of points.
    pub fn points(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (name, line) = (name.into(), false);
        self.series.push(Series { name, line, points });
        self
    }

    /// Adds a line.
    pub fn line(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (name, line) = (name.into(), true);
        self.series.push(Series { name, line, points });
        self
    }
}

/// Values with their indices.
pub fn numbered(values: &[f64]) -> Vec<(f64, f64)> {
    let number = |(n, value): (usize, &f64)| (n as f64, *value);
    values.iter().enumerate().map(number).collect()
}

/// Most points of a drawn series.
pub const MOST_POINTS: usize = 700;

/// Reduces a series to the lowest and the highest point of each run of points; returns the length of a run too, 1 if
/// all points are kept.
pub fn thinned(points: &[(f64, f64)]) -> (Vec<(f64, f64)>, u64) {
    if points.len() <= MOST_POINTS {
        return (points.to_vec(), 1);
    }
    let stretch = (2 * points.len()).div_ceil(MOST_POINTS);
    let mut kept = Vec::with_capacity(MOST_POINTS + 2);
    for all in points.chunks(stretch) {
        let order = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (Some(low), Some(high)) = (all.iter().min_by(order), all.iter().max_by(order)) else {
            continue;
        };
        let (first, second) = if low.0 <= high.0 {
            (low, high)
        } else {
            (high, low)
        };
        kept.push(*first);
        if second != first {
            kept.push(*second);
        }
    }
    (kept, stretch as u64)
}

/// A note for the caption if not every point is drawn.
pub fn thinning(of: u64) -> String {
    if of <= 1 {
        String::new()
    } else {
        format!(" Of every {of} in a row the lowest and the highest are drawn.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_of_many_points_are_left() {
        let points: Vec<(f64, f64)> = (0..100_000u32)
            .map(|n| {
                (
                    f64::from(n),
                    if n == 54_321 { -5.0 } else { f64::from(n % 10) },
                )
            })
            .collect();
        let (kept, of) = thinned(&points);
        assert!(kept.len() <= MOST_POINTS && of > 100);
        assert!(kept.contains(&(54_321.0, -5.0)));
        assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(thinned(&points[..9]), (points[..9].to_vec(), 1));
    }
}
