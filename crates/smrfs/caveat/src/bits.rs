//! A fixed-length bitmap with one bit per block. Pure.

/// A bitmap of fixed length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bits {
    words: Vec<u64>,
    length: u64,
}

impl Bits {
    /// `length` bits, all of them `value`.
    pub fn new(length: u64, value: bool) -> Self {
        let word = if value { u64::MAX } else { 0 };
        let mut bits = Self {
            words: vec![word; length.div_ceil(64) as usize],
            length,
        };
        bits.clear_rest();
        bits
    }

    /// Number of bits.
    pub const fn count(&self) -> u64 {
        self.length
    }

    /// Clears the bits after the end in the last word, so that equal bitmaps compare equal.
    fn clear_rest(&mut self) {
        let rest = self.length % 64;
        if let (Some(last), true) = (self.words.last_mut(), rest > 0) {
            *last &= (1 << rest) - 1;
        }
    }

    /// The value of a bit.
    pub fn get(&self, bit: u64) -> bool {
        self.words[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    /// Sets bits `from..to`, clipped to the length, to `value`; `true` if any bit changed.
    pub fn set(&mut self, from: u64, to: u64, value: bool) -> bool {
        let to = to.min(self.length);
        let mut is_changed = false;
        let mut at = from;
        while at < to {
            let (word, skip) = ((at / 64) as usize, at % 64);
            let take = (64 - skip).min(to - at);
            let mask = (u64::MAX >> (64 - take)) << skip;
            let old = self.words[word];
            let new = if value { old | mask } else { old & !mask };
            is_changed |= new != old;
            self.words[word] = new;
            at += take;
        }
        is_changed
    }

    /// The first bit in `from..to` that is `value`.
    pub fn next(&self, from: u64, to: u64, value: bool) -> Option<u64> {
        let to = to.min(self.length);
        let mut at = from;
        while at < to {
            let word = self.words[(at / 64) as usize];
            let wanted = if value { word } else { !word } >> (at % 64);
            if wanted == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            let found = at + u64::from(wanted.trailing_zeros());
            return (found < to).then_some(found);
        }
        None
    }

    /// Runs of bits in `from..to` that are `value`, each as first bit and end (exclusive).
    pub fn runs_in(&self, from: u64, to: u64, value: bool) -> impl Iterator<Item = (u64, u64)> {
        let to = to.min(self.length);
        let mut at = from;
        std::iter::from_fn(move || {
            let start = self.next(at, to, value)?;
            at = self.next(start, to, !value).unwrap_or(to);
            Some((start, at))
        })
    }

    /// All runs of bits that are `value`, each as first bit and length.
    pub fn runs(&self, value: bool) -> impl Iterator<Item = (u64, u64)> {
        self.runs_in(0, self.length, value)
            .map(|(from, to)| (from, to - from))
    }

    /// Copies bytes `from..from + out.len()` of the bitmap to `out`; the first bit of a byte is the lowest.
    pub fn copy_bytes(&self, from: usize, out: &mut [u8]) {
        for (n, byte) in (from..).zip(out) {
            let word = self.words.get(n / 8).copied().unwrap_or(0);
            *byte = (word >> (n % 8 * 8)) as u8;
        }
    }

    /// The reverse of [`Self::copy_bytes`]; bytes after the end are ignored.
    pub fn set_bytes(&mut self, from: usize, bytes: &[u8]) {
        for (n, byte) in (from..).zip(bytes) {
            if let Some(word) = self.words.get_mut(n / 8) {
                let shift = n % 8 * 8;
                *word = *word & !(0xFF << shift) | u64::from(*byte) << shift;
            }
        }
        self.clear_rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_a_table() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut bits = Bits::new(300, true);
        let mut table = [true; 300];
        for _ in 0..2_000 {
            let (from, value) = (random.u64(0..300), random.bool());
            let to = random.u64(from..=310);
            let part = &mut table[from as usize..to.min(300) as usize];
            let is_changed = part.iter().any(|bit| *bit != value);
            part.fill(value);
            assert_eq!(bits.set(from, to, value), is_changed);
            let found = (from..300).find(|bit| table[*bit as usize] == value);
            assert_eq!(bits.next(from, 400, value), found);
        }
        let total: u64 = bits.runs(true).map(|(_, count)| count).sum();
        assert_eq!(total, table.iter().filter(|bit| **bit).count() as u64);
        let mut bytes = [0; 38];
        bits.copy_bytes(0, &mut bytes);
        let mut same = Bits::new(300, false);
        same.set_bytes(0, &bytes[..7]);
        same.set_bytes(7, &bytes[7..]);
        assert_eq!(same, bits);
        assert!((0..300).all(|bit| same.get(bit) == table[bit as usize]));
    }
}
