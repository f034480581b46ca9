//! Finds where rows can be read again after damage of the database: a walk over rows ends at the first block of an SST
//! that cannot be read, and cannot tell where the next block begins.

use crate::Result;
use kv::View;

/// The key of the first row after `from` that can be read, before `upper`; `None` if there is none. `from` lies in or
/// before the damage.
///
/// The keys of a damaged block are one range. Its end is found by bisection, with a seek for each step: of the longest
/// prefix of `from` after which rows can be read again with the next possible byte, then of the bytes that follow.
///
/// # Errors
/// Rows after `upper` cannot be read either, as when the drive is gone.
pub(crate) fn readable_after(
    kv: &dyn View,
    from: &[u8],
    upper: Option<&[u8]>,
) -> Result<Option<Vec<u8>>> {
    // The first row from a key on, or an error.
    let first = |key: &[u8], upper| {
        let row = kv.scan(key, upper).next().transpose();
        row.map(|row| row.map(|(key, _)| key))
    };
    let (mut fails, mut reads) = (from.to_vec(), upper.map(<[u8]>::to_vec));
    // Other damage may lie after this one.
    'prefixes: for length in (0..from.len()).rev() {
        for byte in from[length]..u8::MAX {
            let next = [&from[..length], &[byte + 1]].concat();
            if upper.is_some_and(|upper| next[..] >= *upper) {
                break 'prefixes;
            }
            if first(&next, upper).is_ok() {
                reads = Some(next);
                break 'prefixes;
            }
            fails = next;
        }
    }
    let Some(mut reads) = reads else {
        return Ok(None);
    };
    // Rows whose keys differ only in later bytes are skipped.
    let precision = from.len().max(reads.len()) + 32;
    while let Some(middle) = between(&fails, &reads, precision) {
        match first(&middle, upper) {
            Ok(_) => reads = middle,
            Err(_) => fails = middle,
        }
    }
    let found = first(&reads, upper)?;
    if found.is_none() {
        first(&reads, None)?;
    }
    Ok(found)
}

/// The key half-way between two, as fractions of so many bytes; `None` if there is none.
fn between(low: &[u8], high: &[u8], precision: usize) -> Option<Vec<u8>> {
    let digit = |key: &[u8], at: usize| u16::from(key.get(at).copied().unwrap_or_default());
    let (mut sum, mut carry) = (vec![0; precision], 0);
    for at in (0..precision).rev() {
        carry += digit(low, at) + digit(high, at);
        sum[at] = carry & 0xff;
        carry >>= 8;
    }
    let mut middle = Vec::with_capacity(precision);
    for digit in sum {
        let all = carry << 8 | digit;
        middle.push((all / 2) as u8);
        carry = all % 2;
    }
    let is_between = &middle[..] > low && middle[..] < *high;
    is_between.then_some(middle)
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kv::{Cursor, Error, Scan};
    use std::collections::BTreeSet;
    use std::ops::Range;

    /// Keys in order, of which a range cannot be read, or, beyond `gone`, nothing.
    struct Damaged {
        keys: Vec<Vec<u8>>,
        damaged: Range<usize>,
        is_gone: bool,
    }

    struct Walk<'a>(&'a Damaged, usize, Option<Vec<u8>>);

    impl Cursor for Walk<'_> {
        fn seek(&mut self, key: &[u8]) {
            self.1 = self.0.keys.partition_point(|k| &k[..] < key);
        }
    }

    impl Iterator for Walk<'_> {
        type Item = kv::Result<(Vec<u8>, Vec<u8>)>;

        fn next(&mut self) -> Option<Self::Item> {
            let at = self.1;
            self.1 += 1;
            if self.0.damaged.contains(&at) || self.0.is_gone {
                let message = String::new();
                return Some(Err(Error::Corruption { message }));
            }
            let key = self.0.keys.get(at)?.clone();
            let upper = self.2.as_ref();
            let is_below = upper.is_none_or(|upper| key < *upper);
            is_below.then_some(Ok((key, Vec::new())))
        }
    }

    impl View for Damaged {
        fn get(&self, _: &[u8]) -> kv::Result<Option<Vec<u8>>> {
            unimplemented!()
        }

        fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
            let mut walk = Walk(self, 0, upper.map(<[u8]>::to_vec));
            walk.seek(lower);
            Box::new(walk)
        }
    }

    #[test]
    fn the_next_row_that_can_be_read_is_found_whatever_the_keys() {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..500 {
            let bytes = random.choice([3, 10, 256]).unwrap();
            let length = random.usize(1..12);
            let of_digits = |random: &mut fastrand::Rng| -> Vec<u8> {
                let length = random.usize(0..=length);
                let digits = std::iter::repeat_with(|| random.u16(1..bytes) as u8);
                [b"O".to_vec(), digits.take(length).collect()].concat()
            };
            let keys: BTreeSet<_> = (0..random.usize(1..80))
                .map(|_| of_digits(&mut random))
                .collect();
            let keys: Vec<_> = keys.into_iter().collect();
            let from = random.usize(0..keys.len());
            let to = random.usize(from + 1..=keys.len());
            // As a walk is at the end of the block before.
            let at = match from {
                0 => b"O".to_vec(),
                from => [&keys[from - 1][..], &[0]].concat(),
            };
            let expected = keys.get(to).cloned();
            let damaged = from..to;
            let mut drive = Damaged {
                keys,
                damaged,
                is_gone: false,
            };
            let found = readable_after(&drive, &at, Some(b"P"));
            assert_eq!(found.unwrap(), expected, "{:?}", drive.keys);
            drive.is_gone = true;
            readable_after(&drive, &at, Some(b"P")).unwrap_err();
        }
    }
}
