//! Counts of answers by class. The log gets a line for the first answer of a class, the tenth, the hundredth and so
//! on: it shows what clients do, and its length does not grow with how much they do.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Number of answers of each class.
pub struct Classes<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Classes<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Classes<K> {
    /// Counts an answer; returns the new count of its class if that is a power of ten, which is worth a line.
    pub fn count(&self, class: K) -> Option<u64> {
        let mut counts = self.0.lock();
        let count = counts.entry(class).or_default();
        *count += 1;
        10u64
            .checked_pow(count.ilog10())
            .filter(|power| power == count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_and_every_tenfold() {
        let classes = Classes::default();
        let told: Vec<u64> = (0..1234).filter_map(|_| classes.count("get")).collect();
        assert_eq!(told, [1, 10, 100, 1000]);
        assert_eq!(classes.count("put"), Some(1));
    }
}
