//! `Sretired`: the zones that are out of use because they cannot be read.

use codec::{Put, Reader};
use std::collections::BTreeSet;
use zone::ZoneId;

const VERSION: u32 = 1;

pub(crate) fn encode(zones: &BTreeSet<ZoneId>) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(VERSION);
    for zone in zones {
        out.put_u32(zone.0);
    }
    out
}

/// Zones in order, each once; `None` if they are not.
pub(crate) fn decode(value: &[u8]) -> Option<BTreeSet<ZoneId>> {
    let mut r = Reader(value);
    let mut zones = BTreeSet::new();
    if r.u32()? != VERSION {
        return None;
    }
    while !r.0.is_empty() {
        let zone = ZoneId(r.u32()?);
        if zones.last().is_some_and(|last| *last >= zone) {
            return None;
        }
        zones.insert(zone);
    }
    Some(zones)
}
