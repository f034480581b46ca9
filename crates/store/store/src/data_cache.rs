//! What was read of objects and compared with its checksums, in memory: for drives that have no cache below.
//!
//! Units are kept: what lies under one checksum, and of a compressed blob all. A unit is named by the place of its first
//! byte, by how often that zone had been reset since the mount, and by its length and checksum. A place is written once
//! between two resets, so a name stands for the same bytes for ever, and nothing needs to be forgotten: what was
//! overwritten, removed or moved is asked for no more, and is evicted.
//!
//! Readers look up and keep units within the read gate, from before they find the place. The count changes when nobody
//! can find a place in the zone and those who had found one have left, so nobody names a unit by another count than that
//! of its bytes.

use bytes::Bytes;
use cache::{Cache, CacheStatistics};
use object::{Blob, Codec};
use runtime::sync::atomic::AtomicU32;
use std::ops::Range;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId};

/// About the length of a unit: 64 KiB of large objects, a few KiB of small ones.
const TYPICAL: u64 = 32 << 10;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    at: ZoneAddress,
    resets: u32,
    length: u32,
    /// 0 of bytes without.
    checksum: u32,
}

pub(crate) struct DataCache {
    units: Cache<Name>,
    /// Of each zone; none where nothing is kept.
    resets: Vec<AtomicU32>,
}

impl DataCache {
    pub fn new(budget: u64, zone_count: u32) -> Self {
        let units = Cache::new(budget, TYPICAL);
        let zones = if units.is_on() { zone_count } else { 0 };
        let resets = (0..zones).map(|_| AtomicU32::new(0)).collect();
        Self { units, resets }
    }

    pub fn is_on(&self) -> bool {
        self.units.is_on()
    }

    pub fn statistics(&self) -> CacheStatistics {
        self.units.statistics()
    }

    /// Nothing that was kept of `zone` is found any more. Nobody must be able to read there by now.
    pub fn zone_is_reset(&self, zone: ZoneId) {
        if let Some(resets) = self.resets.get(zone.index()) {
            resets.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The stored bytes `unit` of `blob`, of which it is one unit.
    pub fn get(&self, blob: &Blob, unit: &Range<u32>) -> Option<Bytes> {
        let name = self.name(blob, unit)?;
        self.units.get(&name, unit.len())
    }

    /// The same for those who read what they do not find, and count the miss then.
    pub fn find(&self, blob: &Blob, unit: &Range<u32>) -> Option<Bytes> {
        let name = self.name(blob, unit)?;
        self.units.find(&name, unit.len())
    }

    /// Keeps units of `blob`: the stored bytes from `start` on, which were compared with their checksums.
    pub fn put(&self, blob: &Blob, start: u32, stored: &[u8], block_size: u32) {
        if !self.is_on() {
            return;
        }
        let unit = match blob.codec {
            Codec::None => blob.unit(block_size) as usize,
            _ => stored.len().max(1),
        };
        for (at, bytes) in (start..).step_by(unit).zip(stored.chunks(unit)) {
            if let Some(name) = self.name(blob, &(at..at + bytes.len() as u32)) {
                self.units.put(name, Bytes::copy_from_slice(bytes));
            }
        }
    }

    fn name(&self, blob: &Blob, unit: &Range<u32>) -> Option<Name> {
        let at = blob.place(unit.start)?;
        let checksum = unit.start / blob.checksum_block.bytes();
        let checksum = blob.checksums.get(checksum as usize);
        Some(Name {
            at,
            resets: self.resets.get(at.zone.index())?.load(Ordering::Relaxed),
            length: unit.end - unit.start,
            checksum: checksum.copied().unwrap_or(0),
        })
    }
}
