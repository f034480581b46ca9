//! Chooses which files of an object count, and which can be removed. Pure.

use crate::file_name::{FileName, Kind};
use crate::fragments::{Fragments, Wanted};
use crate::timestamp::Timestamp;
use std::cmp::Reverse;

/// Kind of a storage policy, and for erasure coding the fragment to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy<'a> {
    /// Each replica is the whole object.
    Replication,
    /// Each node has a fragment, sometimes several.
    ErasureCoding(Wanted<'a>),
}

/// The files of an object that count, and those that can be removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The data to read.
    pub data: Option<FileName>,
    /// The newest metadata, unless it is that of the data file.
    pub meta: Option<FileName>,
    /// The file with the newest content type, if that is newer than the data: `meta`, or an older metadata file.
    pub content_type: Option<FileName>,
    /// The tombstone, if the object is deleted.
    pub tombstone: Option<FileName>,
    /// Files that can be removed at once.
    pub obsolete: Vec<FileName>,
    /// Files that can be removed once they are old: their data may still arrive.
    pub strays: Vec<FileName>,
    /// All fragments of an object with erasure coding.
    pub fragments: Fragments,
}

/// Age from which tombstones and strays can be removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reclaim {
    /// Least age, in units of 10 µs.
    pub age: u64,
    /// The present time, in units of 10 µs since 1970.
    pub now: u64,
}

impl Reclaim {
    fn takes(self, timestamp: Timestamp) -> bool {
        self.now.saturating_sub(timestamp.ticks()) > self.age
    }
}

/// Chooses among the files of an object.
pub fn choose(files: &[FileName], policy: Policy<'_>) -> Choice {
    let mut choice = Choice::default();
    let mut files = files.to_vec();
    if let Some(tombstone) = newest(&files, |kind| kind == Kind::Tombstone) {
        choice.drop_from(&mut files, |file| {
            *file != tombstone && file.timestamp <= tombstone.timestamp
        });
    }
    let metas = retained_metas(&files);
    choice.drop_from(&mut files, |file| is_meta(file) && !metas.contains(file));
    match policy {
        Policy::Replication => choice.replicated(&mut files),
        Policy::ErasureCoding(wanted) => choice.erasure_coded(&mut files, wanted),
    }
    let metas: Vec<FileName> = metas
        .into_iter()
        .filter(|meta| files.contains(meta))
        .collect();
    if let Some(data) = choice.data {
        choice.meta = metas.first().copied();
        let last = metas.last().copied();
        choice.content_type = last.filter(|meta| content_type(meta) > Some(data.timestamp));
    } else {
        choice.tombstone = newest(&files, |kind| kind == Kind::Tombstone);
    }
    choice
}

impl Choice {
    /// Whether the object has neither data nor a tombstone.
    pub const fn is_empty(&self) -> bool {
        self.data.is_none() && self.tombstone.is_none()
    }

    /// Removes files that are too old to matter from the choice, and returns all files that can be removed.
    /// `is_young` is true for fragments whose commit may still arrive.
    pub fn reclaim(
        &mut self,
        reclaim: Reclaim,
        is_young: impl Fn(&FileName) -> bool,
    ) -> Vec<FileName> {
        let mut going = std::mem::take(&mut self.obsolete);
        going.extend(self.tombstone.take_if(|file| reclaim.takes(file.timestamp)));
        self.strays.retain(|file| {
            let is_fragment = matches!(file.kind, Kind::Fragment { .. });
            let goes = reclaim.takes(file.timestamp) && !(is_fragment && is_young(file));
            if goes {
                going.push(*file);
            }
            !goes
        });
        going
    }

    fn drop_from(&mut self, files: &mut Vec<FileName>, is_obsolete: impl Fn(&FileName) -> bool) {
        self.obsolete
            .extend(files.extract_if(.., |file| is_obsolete(file)));
    }

    fn replicated(&mut self, files: &mut Vec<FileName>) {
        self.data = newest(files, |kind| kind == Kind::Data);
        match self.data {
            // Metadata with the data's timestamp or an older one is superseded by that of the data.
            Some(data) => self.drop_from(files, |file| {
                *file != data && file.timestamp <= data.timestamp
            }),
            None => self
                .strays
                .extend(files.iter().filter(|file| is_meta(file))),
        }
    }

    fn erasure_coded(&mut self, files: &mut Vec<FileName>, wanted: Wanted<'_>) {
        let fragments = Fragments::new(files);
        let durable = fragments.durable();
        let (chosen, data) = fragments.read(wanted);
        self.data = data;
        self.strays.extend(fragments.strays(chosen));
        if data.is_some() && chosen != durable {
            // Older metadata may belong to the durable fragments.
            files.retain(|file| !is_meta(file) || Some(file.timestamp) > chosen);
        }
        match durable {
            Some(durable) => self.drop_from(files, |file| file.timestamp < durable),
            None => self
                .strays
                .extend(files.iter().filter(|file| is_meta(file))),
        }
        self.fragments = fragments;
    }
}

/// The newest metadata file, followed by another one if that has a newer content type. Of files with one timestamp,
/// the last by name comes first, as in Swift.
fn retained_metas(files: &[FileName]) -> Vec<FileName> {
    let mut metas: Vec<FileName> = files.iter().copied().filter(is_meta).collect();
    metas.sort_by_cached_key(|file| Reverse((file.timestamp, file.to_string())));
    let Some((first, others)) = metas.split_first() else {
        return metas;
    };
    // Of several files with the newest content type, the first.
    let newest = others.iter().rev().max_by_key(|file| content_type(file));
    match newest.filter(|file| content_type(file) > content_type(first)) {
        None => vec![*first],
        Some(newest) if newest.timestamp == first.timestamp => vec![*newest],
        Some(newest) => vec![*first, *newest],
    }
}

const fn is_meta(file: &FileName) -> bool {
    matches!(file.kind, Kind::Meta { .. })
}

/// Timestamp of the content type in a metadata file.
const fn content_type(file: &FileName) -> Option<Timestamp> {
    match file.kind {
        Kind::Meta { content_type } => content_type,
        _ => None,
    }
}

fn newest(files: &[FileName], is: impl Fn(Kind) -> bool) -> Option<FileName> {
    let those = files.iter().copied().filter(|file| is(file.kind));
    those.max_by_key(|file| file.timestamp)
}
