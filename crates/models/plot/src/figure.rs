//! A figure as data: panels with axes and series. How it is drawn is another matter.

/// The axis of what takes time.
pub const LATENCY: &str = "latency (ms)";

/// A figure of a paper, of what was measured here.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its number there: «2.4».
    pub number: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The workload, and how to read it.
    pub caption: String,
    /// Drawings below each other.
    pub panels: Vec<Panel>,
}

/// A drawing.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// What it is of; empty if the figure says it.
    pub title: String,
    /// The horizontal axis with its unit.
    pub x: String,
    /// The vertical axis with its unit.
    pub y: String,
    /// Whether equal distances upwards are equal factors.
    pub logarithmic: bool,
    /// What stands at 0, 1, 2 and so on. Where there are such names, series are bars.
    pub names: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Points, or a line through them.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What it is, for the legend; empty for none.
    pub name: String,
    /// Whether points are joined.
    pub line: bool,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    /// A panel of points without series.
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

    /// A panel of bars, in groups of these names, without series.
    pub fn bars(title: impl Into<String>, names: &[&str], y: &str) -> Self {
        Self {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Self::new(title, "", y)
        }
    }

    /// With a logarithmic vertical axis.
    pub const fn logarithmic(mut self) -> Self {
        self.logarithmic = true;
        self
    }

    /// With another series of points.
    pub fn points(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (name, line) = (name.into(), false);
        self.series.push(Series { name, line, points });
        self
    }

    /// With a line.
    pub fn line(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let (name, line) = (name.into(), true);
        self.series.push(Series { name, line, points });
        self
    }
}

/// Values with their numbers.
pub fn numbered(values: &[f64]) -> Vec<(f64, f64)> {
    let number = |(n, value): (usize, &f64)| (n as f64, *value);
    values.iter().enumerate().map(number).collect()
}

/// Points of a series that are drawn, at most.
pub const MOST_POINTS: usize = 700;

/// The lowest and the highest point of every so many in a row, so that there are not too many; and how
/// many, 1 if all are left.
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

/// What has to be said where not every point is drawn.
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
