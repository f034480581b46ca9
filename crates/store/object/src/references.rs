//! Reference counts of the bytes of a blob, as a step function.

use std::ops::Range;

/// Counts of references to a blob's raw bytes.
///
/// Invariants: starts ascend strictly, adjacent counts differ, the first count is not zero, the last one is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// Start of a step, and the count from there on.
    steps: Vec<(u32, u32)>,
}

impl References {
    /// One reference to `range`.
    pub fn one(range: Range<u32>) -> Self {
        let mut references = Self::default();
        references.add(range);
        references
    }

    /// References from a record; `None` if the steps break the invariants.
    pub fn from_steps(steps: Vec<(u32, u32)>) -> Option<Self> {
        let ascend = steps
            .windows(2)
            .all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1);
        let ends = match (steps.first(), steps.last()) {
            (Some(first), Some(last)) => first.1 > 0 && last.1 == 0,
            _ => true,
        };
        (ascend && ends).then_some(Self { steps })
    }

    /// The steps in order: first byte, and the count from there on.
    pub fn steps(&self) -> &[(u32, u32)] {
        &self.steps
    }

    /// Whether nothing is referred to.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The end of the last byte that is referred to.
    pub fn end(&self) -> u32 {
        self.steps.last().map_or(0, |(at, _)| *at)
    }

    /// Adds a reference to each byte of `range`; false, and nothing changes, if a count would overflow.
    pub fn add(&mut self, range: Range<u32>) -> bool {
        self.change(range, |count| count.checked_add(1))
    }

    /// Removes a reference from each byte of `range`; false, and nothing changes, if one of them has none.
    pub fn remove(&mut self, range: Range<u32>) -> bool {
        self.change(range, |count| count.checked_sub(1))
    }

    /// The runs of `0..length` without references, in order.
    pub(crate) fn gaps(&self, length: u32) -> Vec<Range<u32>> {
        let mut gaps = Vec::new();
        let mut free_from = Some(0);
        for (at, count) in &self.steps {
            match (free_from, *count) {
                (Some(from), 1..) => {
                    gaps.push(from..*at);
                    free_from = None;
                }
                (None, 0) => free_from = Some(*at),
                _ => {}
            }
        }
        gaps.extend(free_from.map(|from| from..length));
        gaps.retain(|gap| gap.start < gap.end);
        gaps
    }

    fn change(&mut self, range: Range<u32>, new: impl Fn(u32) -> Option<u32>) -> bool {
        if range.is_empty() {
            return true;
        }
        let mut steps = self.steps.clone();
        let first = step_at(&mut steps, range.start);
        let behind = step_at(&mut steps, range.end);
        for (_, count) in &mut steps[first..behind] {
            let Some(changed) = new(*count) else {
                return false;
            };
            *count = changed;
        }
        let mut last = 0;
        steps.retain(|(_, count)| std::mem::replace(&mut last, *count) != *count);
        self.steps = steps;
        true
    }
}

/// The index of the step that begins at `at`, which is inserted if necessary.
fn step_at(steps: &mut Vec<(u32, u32)>, at: u32) -> usize {
    match steps.binary_search_by_key(&at, |(at, _)| *at) {
        Ok(index) => index,
        Err(index) => {
            let count = index.checked_sub(1).map_or(0, |before| steps[before].1);
            steps.insert(index, (at, count));
            index
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_a_plain_array() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..300 {
            let (mut references, mut plain) = (References::default(), [0u32; 24]);
            for _ in 0..12 {
                let from = random.u32(0..24);
                let to = random.u32(from..=24);
                let counts = &mut plain[from as usize..to as usize];
                if random.bool() {
                    assert!(references.add(from..to));
                    counts.iter_mut().for_each(|c| *c += 1);
                } else {
                    let there = counts.iter().all(|c| *c > 0);
                    assert_eq!(references.remove(from..to), there);
                    if there {
                        counts.iter_mut().for_each(|c| *c -= 1);
                    }
                }
                let steps = references.steps().to_vec();
                assert_eq!(References::from_steps(steps), Some(references.clone()));
                assert_eq!(references.is_empty(), plain == [0; 24]);
                let mut free = [true; 24];
                let mut gaps = references.gaps(24).into_iter().flatten();
                (0..24).for_each(|i| free[i] = plain[i] == 0);
                assert!((0..24).filter(|i| free[*i as usize]).eq(&mut gaps));
            }
        }
    }

    #[test]
    fn records_that_break_the_invariants_are_none() {
        for steps in [
            vec![(0, 0)],
            vec![(0, 1)],
            vec![(4, 1), (4, 0)],
            vec![(0, 1), (4, 1), (8, 0)],
            vec![(8, 1), (4, 0)],
        ] {
            assert_eq!(References::from_steps(steps.clone()), None, "{steps:?}");
        }
    }
}
