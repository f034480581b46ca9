//! Statistics that replace the paper's visual inspection.

/// The `part` quantile, with `part` from 0 to 1; 0 for no values.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    sorted
        .get((last * part).round() as usize)
        .copied()
        .unwrap_or(0.0)
}

/// The median; 0 for no values.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The mean of the middle half: smoother than the median, and unaffected by the outer quarters; 0 for no values.
pub fn midmean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let outer = sorted.len() / 4;
    mean(&sorted[outer..sorted.len() - outer])
}

/// Share of the values within `range` of `of`; 0 for no values.
pub fn share_near(values: &[f64], of: f64, range: f64) -> f64 {
    let near = values.iter().filter(|value| (**value - of).abs() <= range);
    near.count() as f64 / values.len().max(1) as f64
}

/// The probability that a random value of `low` is less than one of `high`: 1 if the two are separate, one half if
/// they are mixed (the area under the curve of Mann and Whitney).
pub fn order(low: &[f64], high: &[f64]) -> f64 {
    let less = |l: &f64| high.iter().filter(|h| l < *h).count();
    let pairs = (low.len() * high.len()).max(1);
    low.iter().map(less).sum::<usize>() as f64 / pairs as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_what_they_are_called() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&values), 3.0);
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 1.0), 5.0);
        assert_eq!(mean(&values), 3.0);
        assert_eq!(midmean(&[1.0, 90.0, 2.0, 4.0]), 3.0);
        assert_eq!((midmean(&[1.0, 2.0]), midmean(&[])), (1.5, 0.0));
        assert_eq!(share_near(&values, 3.0, 1.0), 0.6);
        assert_eq!(order(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(order(&[1.0, 4.0], &[2.0, 3.0]), 0.5);
        assert_eq!(
            (median(&[]), mean(&[]), share_near(&[], 0.0, 1.0)),
            (0.0, 0.0, 0.0)
        );
    }
}
