//! What was answered, in classes. The log gets a line with the first answer of a class, the tenth, the
//! hundredth and so on: it says what clients do, and its length does not grow with how much they do.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// How many answers of each class there were.
pub struct Classes<K>(Mutex<BTreeMap<K, u64>>);

impl<K> Default for Classes<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Classes<K> {
    /// Counts an answer: how many of its class there are now, if that is worth a line.
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
