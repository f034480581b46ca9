//! Kinds of collections: objects in order of names, or in order of hashes together with others of its family.

use super::key::{self, Holder};
use crate::{HashPrefix, HashSource, Hashed};
use codec::{Put, Reader};

const BY_NAME: u8 = 1;
const BY_HASH: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Keys begin with the collection's own number.
    ByName(u32),
    ByHash(Hashed),
}

impl Kind {
    /// Encodes the 15 bytes of a collection's record after the version.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::ByName(number) => {
                out.extend([BY_NAME, 0, 0]);
                out.put_u32(*number);
                out.put_u64(0);
            }
            Self::ByHash(hashed) => {
                out.extend([BY_HASH, hashed.prefix.bits(), hashed.source as u8]);
                out.put_u32(hashed.family);
                out.put_u32(hashed.prefix.first());
                out.put_u32(0);
            }
        }
    }

    pub fn decode(r: &mut Reader<'_>) -> Option<Self> {
        let (kind, bits, source) = (r.u8()?, r.u8()?, r.u8()?);
        let (number, first, zero) = (r.u32()?, r.u32()?, r.u32()?);
        if zero != 0 {
            return None;
        }
        match (kind, bits, source, first) {
            (BY_NAME, 0, 0, 0) => Some(Self::ByName(number)),
            (BY_HASH, ..) => Some(Self::ByHash(Hashed {
                family: number,
                source: HashSource::of_number(source)?,
                prefix: HashPrefix::new(bits, first)?,
            })),
            _ => None,
        }
    }

    /// The key of an object's onode; `Err` with the name's hash if the collection does not cover it.
    pub fn onode(&self, name: &[u8]) -> Result<Vec<u8>, u32> {
        match self {
            Self::ByName(number) => Ok(key::onode(*number, name)),
            Self::ByHash(hashed) => {
                let hash = hashed.source.hash(name);
                if !hashed.prefix.covers(hash) {
                    return Err(hash);
                }
                Ok(key::hashed_onode(hashed.family, hash, name))
            }
        }
    }

    /// The key of the first row from the name `from` on, in the collection's order; the empty name comes before all
    /// others.
    pub fn position(&self, from: &[u8]) -> Vec<u8> {
        match self {
            Self::ByName(number) => key::onode(*number, from),
            Self::ByHash(hashed) => {
                let first = key::hashed_onode(hashed.family, hashed.prefix.first(), &[]);
                if from.is_empty() {
                    return first;
                }
                let hash = hashed.source.hash(from);
                first.max(key::hashed_onode(hashed.family, hash, from))
            }
        }
    }

    /// The first key after the collection's rows; `None` if there is no such key.
    pub fn end(&self) -> Option<Vec<u8>> {
        key::after_prefix(&match self {
            Self::ByName(number) => key::onode(*number, &[]),
            Self::ByHash(hashed) => key::hashed_onode(hashed.family, hashed.prefix.last(), &[]),
        })
    }

    /// Whether an onode with this key and name belongs to the collection.
    pub fn has(&self, holder: Holder, name: &[u8]) -> bool {
        match (self, holder) {
            (Self::ByName(own), Holder::Collection(number)) => *own == number,
            (Self::ByHash(hashed), Holder::Hash { family, hash }) => {
                hashed.family == family
                    && !name.is_empty()
                    && hashed.prefix.covers(hash)
                    && hashed.source.hash(name) == hash
            }
            _ => false,
        }
    }

    /// Whether both would have rows in common, or a family would have two hash sources.
    pub fn conflicts(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::ByName(own), Self::ByName(number)) => own == number,
            (Self::ByHash(own), Self::ByHash(hashed)) => {
                own.family == hashed.family
                    && (own.source != hashed.source || own.prefix.overlaps(hashed.prefix))
            }
            _ => false,
        }
    }
}
