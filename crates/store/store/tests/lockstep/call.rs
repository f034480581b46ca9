//! Operations of transactions as plain values, which the store and the model both carry out.

use std::collections::BTreeMap;
use store::{Attributes, HashPrefix, HashSource, Hashed, Omap};

/// Names of collections; the first `BY_NAME` are in order of names, the others hashed.
pub const COLLECTIONS: [&str; 9] = ["c", "d", "e", "h0", "h1", "h2", "h3", "h4", "h5"];
pub const BY_NAME: u8 = 3;
pub const OBJECTS: u8 = 14;

pub type Target = (u8, u8);

/// Seed and length from which the bytes can be made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Data {
    pub seed: u32,
    pub length: u32,
}

/// An offset within an object as a share of its size. The largest value is one byte beyond the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub u16);

/// A key of an omap or of attributes, and the size of its value.
pub type Row = (u8, u16);

#[derive(Clone, Debug, PartialEq)]
pub enum Must {
    BeAbsent,
    BePresent,
    HaveAttribute(Row),
    NotHaveAttribute(Row),
}

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    CreateCollection(u8, Vec<Row>),
    CreateHashed(u8, Hashed),
    RemoveCollection(u8),
    SetCollectionAttributes(u8, Vec<Row>),
    Split(u8, u8),
    Merge(u8, u8),
    Require(Target, Must),
    Put(Target, Data, Vec<Row>),
    Write(Target, Share, Data),
    Append(Target, Data),
    Truncate(Target, Share),
    Punch(Target, Share, u32),
    Remove(Target),
    RemoveIfPresent(Target),
    SetAttributes(Target, Vec<Row>),
    UpdateAttributes(Target, Vec<Row>, u8),
    Touch(Target),
    OmapSet(Target, Vec<Row>),
    OmapRemove(Target, Vec<u8>),
    OmapRemoveRange(Target, u8, u8),
    OmapClear(Target),
    Assemble(Target, Vec<Target>),
    Rename(Target, Target),
    Clone(Target, Target),
    CloneRange(Target, Share, Share, Target, Share),
}

impl Call {
    /// The objects that the call names.
    pub fn targets(&self) -> Vec<Target> {
        match self {
            Self::Require(a, _)
            | Self::Put(a, ..)
            | Self::Write(a, ..)
            | Self::Append(a, _)
            | Self::Truncate(a, _)
            | Self::Punch(a, ..)
            | Self::Remove(a)
            | Self::RemoveIfPresent(a)
            | Self::SetAttributes(a, _)
            | Self::UpdateAttributes(a, ..)
            | Self::Touch(a)
            | Self::OmapSet(a, _)
            | Self::OmapRemove(a, _)
            | Self::OmapRemoveRange(a, ..)
            | Self::OmapClear(a) => vec![*a],
            Self::Assemble(a, parts) => [&[*a][..], parts].concat(),
            Self::Rename(a, b) | Self::Clone(a, b) | Self::CloneRange(a, _, _, b, _) => {
                vec![*a, *b]
            }
            _ => Vec::new(),
        }
    }
}

impl Data {
    /// Pseudo-random bytes; some pieces are compressible.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = crate::common::pattern(self.seed.into(), self.length as usize);
        let first = self.seed as usize % 3;
        for piece in bytes.chunks_mut(50_000).skip(first).step_by(2) {
            let byte = piece[0];
            piece.fill(byte);
        }
        bytes
    }
}

impl Share {
    pub fn of(self, size: usize) -> usize {
        match self.0 {
            u16::MAX => size + 1,
            share => size * usize::from(share) / usize::from(u16::MAX - 1),
        }
    }
}

pub fn collection(number: u8) -> &'static str {
    COLLECTIONS[usize::from(number)]
}

/// The name of an object. Names differ in their first bits, as their hashes do; one is empty, one is long.
pub fn object(number: u8) -> Vec<u8> {
    match number {
        0 => Vec::new(),
        1 => vec![0xff; 600],
        2 => vec![0],
        _ => vec![number.wrapping_mul(73), b'/', number],
    }
}

pub fn key(number: u8) -> Vec<u8> {
    [
        &[0, 1, 0x7f, 0xff][usize::from(number) % 4..][..1],
        &vec![number; usize::from(number) / 4],
    ]
    .concat()
}

pub fn omap(rows: &[Row]) -> Omap {
    let row = |(name, size): &Row| (key(*name), vec![*size as u8; usize::from(*size)]);
    rows.iter().map(row).collect::<BTreeMap<_, _>>()
}

pub fn attributes(rows: &[Row]) -> Attributes {
    let row = |(name, size): &Row| (name.to_string(), vec![*size as u8; usize::from(*size)]);
    rows.iter().map(row).collect()
}

/// A hash range of a family; the first family hashes names, the others take the hash from the name.
pub fn hashed(family: u32, bits: u8, first: u32) -> Hashed {
    let source = if family == 0 {
        HashSource::Xxh3
    } else {
        HashSource::Name
    };
    let first = first.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    let prefix = HashPrefix::new(bits, first).unwrap();
    Hashed {
        family,
        source,
        prefix,
    }
}
