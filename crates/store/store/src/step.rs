//! The operations of a transaction and their arguments.

use crate::{Hashed, Name, Written};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Least bytes that a row takes in the database, its key included.
pub(crate) const ROW: u64 = 64;

/// Bytes by which a rename, or a put without data, may always enlarge the metadata.
const FEW: u64 = 1 << 10;

/// Attributes of an object or a collection: short names, small values.
pub type Attributes = BTreeMap<String, Vec<u8>>;

/// Keys of an object in byte order, with their values.
pub type Omap = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change of an omap.
#[derive(Debug)]
pub(crate) enum OmapStep {
    Set(Omap),
    Remove(Vec<Vec<u8>>),
    /// Removes keys from the first (inclusive) to the second (exclusive).
    RemoveRange(Vec<u8>, Vec<u8>),
    Clear,
}

/// Condition on an object without which a transaction is not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// The object does not exist.
    Absent,
    /// The object exists.
    Present,
    /// The object exists, and this attribute has this value.
    AttributeIs(String, Vec<u8>),
    /// The object exists, and this attribute is missing.
    AttributeMissing(String),
    /// The object exists, and its data last changed at this time (Unix time in microseconds).
    ModifiedAt(u64),
    /// The object does not exist, or this attribute is missing or has another value.
    AttributeIsNot(String, Vec<u8>),
}

impl Condition {
    /// Whether the condition holds for an object, given its attributes and the time of its last change, or for no
    /// object.
    pub fn holds(&self, object: Option<(&Attributes, u64)>) -> bool {
        let value = |name: &str| object.and_then(|(attributes, _)| attributes.get(name));
        match self {
            Self::Absent => object.is_none(),
            Self::Present => object.is_some(),
            Self::AttributeIs(name, wanted) => value(name) == Some(wanted),
            Self::AttributeMissing(name) => object.is_some() && value(name).is_none(),
            Self::ModifiedAt(micros) => object.is_some_and(|(_, modified)| modified == *micros),
            Self::AttributeIsNot(name, unwanted) => value(name) != Some(unwanted),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub collection: String,
    pub object: Name,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection, self.object)
    }
}

/// What a removal accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Removal {
    /// An object.
    Existing,
    /// Also that there is none.
    IfPresent,
    /// Also an object whose record cannot be read.
    EvenDamaged,
}

#[derive(Debug)]
pub(crate) enum Step {
    CreateCollection {
        collection: String,
        /// `None`: objects in order of names.
        hashed: Option<Hashed>,
        attributes: Attributes,
    },
    RemoveCollection {
        collection: String,
    },
    SetCollectionAttributes {
        collection: String,
        attributes: Attributes,
    },
    SetCollectionCreated {
        collection: String,
        micros: u64,
    },
    SplitCollection {
        collection: String,
        into: String,
        attributes: Attributes,
    },
    MergeCollection {
        collection: String,
        into: String,
    },
    Require {
        target: Target,
        condition: Condition,
    },
    Put {
        target: Target,
        data: Written,
        attributes: Attributes,
    },
    Write {
        target: Target,
        offset: u64,
        data: Written,
    },
    Append {
        target: Target,
        data: Written,
    },
    Truncate {
        target: Target,
        size: u64,
    },
    Remove {
        target: Target,
        removal: Removal,
    },
    SetAttributes {
        target: Target,
        attributes: Attributes,
    },
    Touch {
        target: Target,
    },
    SetModified {
        target: Target,
        micros: u64,
    },
    UpdateAttributes {
        target: Target,
        set: Attributes,
        remove: Vec<String>,
    },
    Omap {
        target: Target,
        step: OmapStep,
    },
    Assemble {
        target: Target,
        parts: Vec<Target>,
        attributes: Attributes,
    },
    Rename {
        from: Target,
        to: Target,
    },
    Punch {
        target: Target,
        offset: u64,
        length: u64,
    },
    Clone {
        from: Target,
        to: Target,
    },
    CloneRange {
        from: Target,
        range: Range<u64>,
        to: Target,
        offset: u64,
    },
}

impl Step {
    /// The written data of the step, and the object that gets it.
    pub fn data(&self) -> Option<(&Target, &Written)> {
        match self {
            Self::Put { target, data, .. }
            | Self::Write { target, data, .. }
            | Self::Append { target, data } => Some((target, data)),
            _ => None,
        }
    }

    /// The objects that the step reads or changes.
    pub fn targets(&self) -> Vec<&Target> {
        match self {
            Self::CreateCollection { .. }
            | Self::RemoveCollection { .. }
            | Self::SetCollectionAttributes { .. }
            | Self::SetCollectionCreated { .. }
            | Self::SplitCollection { .. }
            | Self::MergeCollection { .. } => Vec::new(),
            Self::Require { target, .. }
            | Self::Put { target, .. }
            | Self::Write { target, .. }
            | Self::Append { target, .. }
            | Self::Truncate { target, .. }
            | Self::Punch { target, .. }
            | Self::Remove { target, .. }
            | Self::SetAttributes { target, .. }
            | Self::UpdateAttributes { target, .. }
            | Self::SetModified { target, .. }
            | Self::Touch { target }
            | Self::Omap { target, .. } => vec![target],
            Self::Assemble { target, parts, .. } => std::iter::once(target).chain(parts).collect(),
            Self::Rename { from, to }
            | Self::Clone { from, to }
            | Self::CloneRange { from, to, .. } => vec![from, to],
        }
    }

    /// The collections whose records the step changes.
    pub fn collections(&self) -> Vec<&str> {
        match self {
            Self::CreateCollection { collection, .. }
            | Self::RemoveCollection { collection }
            | Self::SetCollectionAttributes { collection, .. }
            | Self::SetCollectionCreated { collection, .. } => vec![collection],
            Self::SplitCollection {
                collection, into, ..
            }
            | Self::MergeCollection { collection, into } => vec![collection, into],
            _ => Vec::new(),
        }
    }

    /// Whether the step may enlarge the metadata other than by data whose writer was already admitted. Renames and
    /// removals do not count: they have to work on a full drive.
    pub fn adds_metadata(&self) -> bool {
        match self {
            Self::CreateCollection { .. }
            | Self::SetCollectionAttributes { .. }
            | Self::SplitCollection { .. }
            | Self::Touch { .. }
            | Self::Clone { .. }
            | Self::CloneRange { .. } => true,
            Self::SetAttributes { attributes, .. } => !attributes.is_empty(),
            Self::UpdateAttributes { set, .. } => !set.is_empty(),
            Self::Omap { step, .. } => matches!(step, OmapStep::Set(_)),
            // Empty data, as of a tombstone, had no writer that was admitted.
            Self::Put { data, .. } => data.is_empty() && self.metadata_bytes() > FEW,
            Self::Rename { from, to } => {
                to.object.len().saturating_sub(from.object.len()) as u64 > FEW
            }
            Self::RemoveCollection { .. }
            | Self::SetCollectionCreated { .. }
            | Self::SetModified { .. }
            | Self::MergeCollection { .. }
            | Self::Require { .. }
            | Self::Write { .. }
            | Self::Append { .. }
            | Self::Truncate { .. }
            | Self::Remove { .. }
            | Self::Assemble { .. }
            | Self::Punch { .. } => false,
        }
    }

    /// Bytes of metadata that the step adds.
    pub fn metadata_bytes(&self) -> u64 {
        let attributes = self.attributes().into_iter().flatten();
        let attributes = attributes.map(|(name, value)| name.len() + value.len());
        let inline = self.data().and_then(|(_, data)| data.inline.as_ref());
        let inline = inline.map_or(0, Vec::len);
        let rest = match self {
            Self::Omap {
                step: OmapStep::Set(rows),
                ..
            } => rows
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum(),
            _ => 0,
        };
        (attributes.sum::<usize>() + inline + rest) as u64
    }

    /// Bytes that the step writes to remove rows, as far as known without reading the database.
    pub fn taken_bytes(&self) -> u64 {
        let each = |name: &[u8]| name.len() as u64 + ROW;
        match self {
            Self::Remove { target, .. } => each(&target.object),
            Self::Omap {
                step: OmapStep::Remove(keys),
                ..
            } => keys.iter().map(|key| each(key)).sum(),
            _ => 0,
        }
    }

    /// The attributes it sets.
    pub fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::CreateCollection { attributes, .. }
            | Self::SetCollectionAttributes { attributes, .. }
            | Self::SplitCollection { attributes, .. }
            | Self::Put { attributes, .. }
            | Self::SetAttributes { attributes, .. }
            | Self::UpdateAttributes {
                set: attributes, ..
            }
            | Self::Assemble { attributes, .. } => Some(attributes),
            _ => None,
        }
    }
}
