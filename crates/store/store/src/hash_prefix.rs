//! Collections by hash: where an object's hash comes from, and which hashes a collection has.

use xxhash_rust::xxh3::xxh3_64;

const HASH_BITS: u8 = 32;

/// Where an object's hash comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashSource {
    /// The upper half of XXH3-64 (seed 0) of the name.
    Xxh3 = 1,
    /// The name's first four bytes, big-endian, with zeros behind a shorter name: for callers whose names
    /// begin with a hash. The order of hashes is that of names then.
    Name = 2,
}

impl HashSource {
    /// The source with this number in records.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Xxh3, Self::Name]
            .into_iter()
            .find(|source| *source as u8 == number)
    }

    /// The hash of a name.
    pub fn hash(self, name: &[u8]) -> u32 {
        match self {
            Self::Xxh3 => (xxh3_64(name) >> HASH_BITS) as u32,
            Self::Name => {
                let mut first = [0; 4];
                let length = name.len().min(first.len());
                first[..length].copy_from_slice(&name[..length]);
                u32::from_be_bytes(first)
            }
        }
    }
}

/// The hashes that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HashPrefix {
    bits: u8,
    first: u32,
}

impl HashPrefix {
    /// Every hash.
    pub const ALL: Self = Self { bits: 0, first: 0 };

    /// The hashes whose upper `bits` are those of `first`, the lowest of them. `None` for more than 32 bits,
    /// or if `first` has others set.
    pub const fn new(bits: u8, first: u32) -> Option<Self> {
        if bits > HASH_BITS || first & Self::below(bits) != 0 {
            return None;
        }
        Some(Self { bits, first })
    }

    /// What may be set behind so many bits.
    const fn below(bits: u8) -> u32 {
        match u32::MAX.checked_shr(bits as u32) {
            Some(mask) => mask,
            None => 0,
        }
    }

    /// How many bits all these hashes share.
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// The lowest of these hashes.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The highest of these hashes.
    pub const fn last(self) -> u32 {
        self.first | Self::below(self.bits)
    }

    /// Whether this is one of the hashes.
    pub const fn covers(self, hash: u32) -> bool {
        self.first <= hash && hash <= self.last()
    }

    /// Whether some hash begins with both.
    pub const fn overlaps(self, other: Self) -> bool {
        self.covers(other.first) || other.covers(self.first)
    }

    /// The lower and the upper half; `None` of a single hash.
    pub fn halves(self) -> Option<(Self, Self)> {
        let bits = self.bits + 1;
        let lower = Self::new(bits, self.first)?;
        let upper = Self::new(bits, self.first | (1 << (HASH_BITS - bits)))?;
        Some((lower, upper))
    }

    /// What these are the halves of, in any order; `None` if they are not.
    pub fn whole(self, other: Self) -> Option<Self> {
        let bits = self.bits.checked_sub(1)?;
        let whole = Self::new(bits, self.first & !Self::below(bits))?;
        let (lower, upper) = whole.halves()?;
        ((lower, upper) == (self, other) || (lower, upper) == (other, self)).then_some(whole)
    }
}

/// What makes a collection one by hash. No two collections of a family have a hash in common, and all find
/// hashes in the same place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hashed {
    /// A number that the caller chooses; collections of one family can be split and merged.
    pub family: u32,
    /// Where hashes come from.
    pub source: HashSource,
    /// The hashes of its objects.
    pub prefix: HashPrefix,
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_come_from_where_the_source_says() {
        assert_eq!(HashSource::Xxh3.hash(b""), 0x2d06_8005);
        assert_eq!(HashSource::Name.hash(b"abcdef"), 0x6162_6364);
        assert_eq!(HashSource::Name.hash(b"\xff"), 0xff00_0000);
        for number in 0..=255 {
            let source = HashSource::of_number(number);
            assert_eq!(source.map_or(number, |s| s as u8), number);
            assert_eq!(source.is_some(), [1, 2].contains(&number));
        }
    }

    #[test]
    fn a_prefix_has_no_bits_behind_it() {
        assert_eq!(HashPrefix::new(0, 0), Some(HashPrefix::ALL));
        assert_eq!(HashPrefix::ALL.last(), u32::MAX);
        assert!(HashPrefix::new(32, 7).is_some());
        for (bits, first) in [(0, 1), (1, 1 << 30), (33, 0), (255, 0)] {
            assert_eq!(HashPrefix::new(bits, first), None);
        }
    }

    proptest! {
        #[test]
        fn halves_cover_what_the_whole_does(bits in 0u8..32, first: u32, hash: u32) {
            let whole = HashPrefix::new(bits, first & !HashPrefix::below(bits)).unwrap();
            let (lower, upper) = whole.halves().unwrap();
            prop_assert_eq!(whole.covers(hash), lower.covers(hash) || upper.covers(hash));
            prop_assert!(!lower.overlaps(upper) && whole.overlaps(upper));
            prop_assert_eq!(lower.whole(upper), Some(whole));
            prop_assert_eq!(upper.whole(lower), Some(whole));
            prop_assert_eq!(lower.whole(lower), None);
            prop_assert_eq!(upper.whole(whole), None);
        }

        /// The order of names is kept, also of those shorter than a hash.
        #[test]
        fn hashes_in_names_are_in_the_order_of_names(a: Vec<u8>, b: Vec<u8>) {
            let key = |name: &Vec<u8>| (HashSource::Name.hash(name), name.clone());
            prop_assert_eq!(a.cmp(&b), key(&a).cmp(&key(&b)));
        }
    }

    #[test]
    fn a_single_hash_has_no_halves() {
        let one = HashPrefix::new(32, 5).unwrap();
        assert_eq!(one.halves(), None);
        assert!(one.covers(5) && !one.covers(4));
    }
}
