//! `Swaiting`: rows that wait for a segment summary while the store is not mounted.

use codec::{Put, Reader};
use std::collections::BTreeSet;

const VERSION: u32 = 1;
/// A row of no version, which says that nothing is known.
pub(crate) const UNKNOWN: [u8; 4] = 0_u32.to_le_bytes();

pub(crate) fn encode(keys: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(VERSION);
    for key in keys {
        out.put_u32(key.len() as u32);
        out.extend_from_slice(key);
    }
    out
}

/// Keys in order, each once; `None` if they are not.
pub(crate) fn decode(value: &[u8]) -> Option<BTreeSet<Vec<u8>>> {
    let mut r = Reader(value);
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
    if r.u32()? != VERSION {
        return None;
    }
    while !r.0.is_empty() {
        let length = r.u32()? as usize;
        let key = r.take(length)?;
        if keys.last().is_some_and(|last| last.as_slice() >= key) {
            return None;
        }
        keys.insert(key.to_vec());
    }
    Some(keys)
}
