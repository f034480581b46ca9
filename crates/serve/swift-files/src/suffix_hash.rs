//! Hashes of a suffix, by which two nodes find out whether they have the same objects.

use crate::choice::{Choice, Policy};
use crate::file_name::Kind;
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Computes the hashes of one suffix; its objects have to be added in the order of their hashes.
#[derive(Clone, Debug, Default)]
pub struct SuffixHash {
    /// Running hashes by fragment index; `None` is that of files that belong to no fragment.
    running: BTreeMap<Option<u32>, Md5>,
}

/// An MD5 in 32 hexadecimal digits. Of these a partition has thousands, so none has memory of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest([u8; 32]);

/// Hashes of a suffix in order of fragment indices; `None` is the hash of files that belong to no fragment.
pub type FragmentHashes = Vec<(Option<u32>, Digest)>;

impl Digest {
    fn of(hash: Md5) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let hash = hash.finalize();
        Self(std::array::from_fn(|at| {
            let byte = hash[at / 2];
            DIGITS[usize::from(if at % 2 == 0 { byte >> 4 } else { byte & 15 })]
        }))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        // All of them are ASCII, so this does not fail.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl FromStr for Digest {
    type Err = ();

    /// From lower-case digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits: [u8; 32] = text.as_bytes().try_into().map_err(|_| ())?;
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        digits
            .iter()
            .all(is_digit)
            .then_some(Self(digits))
            .ok_or(())
    }
}

impl SuffixHash {
    /// A suffix without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object, chosen from the files that remain after removal of all that can be removed. For erasure
    /// coding, the choice must not ask for a fragment.
    pub fn add(&mut self, object: &Choice) {
        for file in object.meta.iter().chain(&object.tombstone) {
            self.update(
                None,
                &format!("{}{}", file.timestamp, file.kind.extension()),
            );
        }
        match object.data.map(|data| (data.timestamp, data.kind)) {
            Some((time, Kind::Data)) => self.update(None, &format!("{time}.data")),
            _ => {
                for (time, index) in object.fragments.all() {
                    self.update(Some(index), &time.to_string());
                }
                let durable = object.fragments.durable();
                if let Some(durable) = durable {
                    self.update(None, &format!("{durable}.durable"));
                }
            }
        }
        if let Some(file) = object.content_type
            && let Kind::Meta {
                content_type: Some(time),
            } = file.kind
        {
            self.update(None, &format!("{time}_ctype"));
        }
    }

    fn update(&mut self, of: Option<u32>, text: &str) {
        self.running.entry(of).or_default().update(text);
    }

    /// The hashes in order of fragments: one with replication; with erasure coding one for each fragment index, before
    /// these one for all other files if there are any.
    pub fn finish(self, policy: Policy<'_>) -> FragmentHashes {
        let mut running = self.running;
        if policy == Policy::Replication {
            running.entry(None).or_default();
        }
        let each = running.into_iter();
        each.map(|(of, hash)| (of, Digest::of(hash))).collect()
    }
}
