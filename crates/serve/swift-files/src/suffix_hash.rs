//! Hashes of a suffix, by which two nodes find out whether they have the same objects.

use crate::choice::{Choice, Policy};
use crate::file_name::Kind;
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;

/// Computes the hashes of one suffix; its objects have to be added in the order of their hashes.
#[derive(Clone, Debug, Default)]
pub struct SuffixHash {
    /// Running hashes by fragment index; `None` is that of files that belong to no fragment.
    running: BTreeMap<Option<u32>, Md5>,
}

/// An MD5 in 32 hexadecimal digits.
pub type Digest = String;

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

    /// The hashes: one with replication; with erasure coding one for each fragment index, and one for all other files
    /// if there are any.
    pub fn finish(self, policy: Policy<'_>) -> BTreeMap<Option<u32>, Digest> {
        let mut running = self.running;
        if policy == Policy::Replication {
            running.entry(None).or_default();
        }
        let hex = |hash: Md5| {
            hash.finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        running
            .into_iter()
            .map(|(of, hash)| (of, hex(hash)))
            .collect()
    }
}
