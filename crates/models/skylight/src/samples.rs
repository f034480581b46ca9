//! A bounded sample of many latencies, for a figure.

/// The lowest and the highest value of each stretch of consecutive values.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// Number of values in a stretch.
    step: u64,
    count: u64,
    /// For each stretch, its lowest and highest value, each with its index.
    stretches: Vec<[(u64, f64); 2]>,
}

/// Limit on stretches; at twice as many, they are merged in pairs.
const STRETCHES: usize = 1024;

impl Default for Samples {
    fn default() -> Self {
        Self {
            step: 1,
            count: 0,
            stretches: Vec::new(),
        }
    }
}

impl Samples {
    /// Adds the next value.
    pub fn push(&mut self, value: f64) {
        let point = (self.count, value);
        if self.count.is_multiple_of(self.step) {
            self.stretches.push([point, point]);
        } else if let Some(last) = self.stretches.last_mut() {
            *last = join(*last, [point, point]);
        }
        self.count += 1;
        if self.stretches.len() == 2 * STRETCHES && self.count.is_multiple_of(self.step) {
            self.step *= 2;
            let pairs = self.stretches.chunks_exact(2);
            self.stretches = pairs.map(|pair| join(pair[0], pair[1])).collect();
        }
    }

    /// Number of values added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Number of values in a stretch; 1 if all values were kept.
    pub const fn step(&self) -> u64 {
        self.step
    }

    /// The kept values with their indices, in order.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let mut all = Vec::with_capacity(2 * self.stretches.len());
        for [low, high] in &self.stretches {
            let (first, second) = if low.0 <= high.0 {
                (low, high)
            } else {
                (high, low)
            };
            all.push((first.0 as f64, first.1));
            if second.0 != first.0 {
                all.push((second.0 as f64, second.1));
            }
        }
        all
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut samples = Self::default();
        values.into_iter().for_each(|value| samples.push(value));
        samples
    }
}

fn join(a: [(u64, f64); 2], b: [(u64, f64); 2]) -> [(u64, f64); 2] {
    let low = if b[0].1 < a[0].1 { b[0] } else { a[0] };
    let high = if b[1].1 > a[1].1 { b[1] } else { a[1] };
    [low, high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_kept_and_of_many_the_extremes() {
        let few: Samples = [3.0, 1.0, 2.0].into_iter().collect();
        assert_eq!(few.points(), [(0.0, 3.0), (1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(few.step(), 1);
        let many: Samples = (0..1_000_000u32)
            .map(|n| if n == 777_777 { 99.0 } else { f64::from(n % 7) })
            .collect();
        assert_eq!(many.count(), 1_000_000);
        let points = many.points();
        assert!(points.len() <= 4 * STRETCHES);
        assert!(points.contains(&(777_777.0, 99.0)));
        assert!(points.is_sorted_by(|a, b| a.0 < b.0));
        assert!(points.iter().any(|(_, value)| *value == 0.0));
    }
}
