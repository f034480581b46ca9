//! Collections by hash: how an object's hash is computed, and which hashes a collection covers.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64;

const HASH_BITS: u8 = 32;

/// How an object's hash is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashSource {
    /// The upper half of XXH3-64 (seed 0) of the name.
    Xxh3 = 1,
    /// The name's first four bytes, big-endian, a shorter name padded with zeros: for callers whose names begin with a
    /// hash. Hashes are then in the order of names.
    Name = 2,
}

impl HashSource {
    /// Both sources, with names and descriptions.
    pub const ALL: &'static [(&'static str, Self, &'static str)] = &[
        ("xxh3", Self::Xxh3, "XXH3 of the name"),
        ("name", Self::Name, "the name's first four bytes"),
    ];

    /// The source with this number in on-disk records.
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

/// The hashes that begin with the same bits; as text these bits and a star, `01*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HashPrefix {
    bits: u8,
    first: u32,
}

impl HashPrefix {
    /// Every hash.
    pub const ALL: Self = Self { bits: 0, first: 0 };

    /// The hashes whose upper `bits` are those of `first`, the lowest of them. `None` if `bits` is above 32 or `first`
    /// has lower bits set.
    pub const fn new(bits: u8, first: u32) -> Option<Self> {
        if bits > HASH_BITS || first & Self::below(bits) != 0 {
            return None;
        }
        Some(Self { bits, first })
    }

    /// Mask of the bits below the first `bits`.
    const fn below(bits: u8) -> u32 {
        match u32::MAX.checked_shr(bits as u32) {
            Some(mask) => mask,
            None => 0,
        }
    }

    /// Number of leading bits that all these hashes share.
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

    /// Whether the two have a hash in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.covers(other.first) || other.covers(self.first)
    }

    /// The lower and the upper half; `None` for a single hash.
    pub fn halves(self) -> Option<(Self, Self)> {
        let bits = self.bits + 1;
        let lower = Self::new(bits, self.first)?;
        let upper = Self::new(bits, self.first | (1 << (HASH_BITS - bits)))?;
        Some((lower, upper))
    }

    /// The prefix of which these two are the halves, in any order; `None` if they are not.
    pub fn whole(self, other: Self) -> Option<Self> {
        let bits = self.bits.checked_sub(1)?;
        let whole = Self::new(bits, self.first & !Self::below(bits))?;
        let (lower, upper) = whole.halves()?;
        ((lower, upper) == (self, other) || (lower, upper) == (other, self)).then_some(whole)
    }
}

/// A text that is no [`HashPrefix`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write the bits that all hashes begin with, 32 at most, as 01*; * has all hashes")]
pub struct HashPrefixError;

impl FromStr for HashPrefix {
    type Err = HashPrefixError;

    fn from_str(text: &str) -> Result<Self, HashPrefixError> {
        let digits = text.strip_suffix('*').unwrap_or(text);
        let is_bits = digits.bytes().all(|byte| matches!(byte, b'0' | b'1'));
        let bits = u8::try_from(digits.len())
            .ok()
            .filter(|bits| is_bits && *bits <= HASH_BITS);
        let first = digits
            .bytes()
            .fold(0, |first: u32, byte| first << 1 | u32::from(byte == b'1'));
        let found = bits.and_then(|bits| {
            let first = first.checked_shl(u32::from(HASH_BITS - bits)).unwrap_or(0);
            Self::new(bits, first)
        });
        found.ok_or(HashPrefixError)
    }
}

/// The text that [`FromStr`] reads.
impl fmt::Display for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032b}", self.first);
        write!(f, "{}*", &digits[..self.bits.into()])
    }
}

impl TryFrom<String> for HashPrefix {
    type Error = HashPrefixError;

    fn try_from(text: String) -> Result<Self, HashPrefixError> {
        text.parse()
    }
}

impl From<HashPrefix> for String {
    fn from(prefix: HashPrefix) -> Self {
        prefix.to_string()
    }
}

/// The properties of a collection by hash. Collections of one family have no hash in common, and all use the same
/// source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hashed {
    /// A number that the caller chooses; collections of one family can be split and merged.
    pub family: u32,
    /// How hashes are computed.
    pub source: HashSource,
    /// The hashes that the collection covers.
    pub prefix: HashPrefix,
}

/// In words, as `by xxh3, family 1, hashes 01*`.
impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = HashSource::ALL
            .iter()
            .find(|(_, source, _)| *source == self.source);
        let source = source.map_or("", |(name, ..)| *name);
        write!(
            f,
            "by {source}, family {}, hashes {}",
            self.family, self.prefix
        )
    }
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
    fn prefixes_as_people_write_them() {
        let one = "1".repeat(32) + "*";
        for text in ["*", "0*", "01*", &one] {
            assert_eq!(text.parse::<HashPrefix>().unwrap().to_string(), text);
        }
        assert_eq!("01".parse(), Ok(HashPrefix::new(2, 1 << 30).unwrap()));
        for wrong in ["2", "**", "0x1", &"0".repeat(33), &"0".repeat(300)] {
            assert_eq!(wrong.parse::<HashPrefix>(), Err(HashPrefixError), "{wrong}");
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
