//! Cache of objects' data, for drives without a cache below. Only bytes that matched their checksums are kept.
//!
//! Units are kept: the bytes under one checksum, or all of a compressed blob. A unit's name is the place of its first
//! byte, the number of resets of that zone since the mount, its length and its checksum. A place is written once
//! between two resets, so a name always stands for the same bytes, and nothing has to be invalidated: units of
//! overwritten, removed or moved data are not asked for any more, and are evicted.
//!
//! Readers look units up and add them within the read gate, which they enter before they look up the place. The number
//! of resets changes only when no row names a place in the zone and all readers that may have seen one have left, so a
//! name never has another number than that of its bytes.

use bytes::Bytes;
use cache::{Cache, CacheStatistics};
use object::{Blob, Codec};
use runtime::sync::atomic::AtomicU32;
use std::ops::Range;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId};

/// Typical length of a unit: between 64 KiB for large objects and a few KiB for small ones.
const TYPICAL: u64 = 32 << 10;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    at: ZoneAddress,
    resets: u32,
    length: u32,
    /// 0 for bytes without a checksum.
    checksum: u32,
}

pub(crate) struct DataCache {
    units: Cache<Name>,
    /// Number of resets of each zone; empty if the cache is off.
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

    /// Makes all units of `zone` unfindable. No reader may be able to read there any more.
    pub fn zone_is_reset(&self, zone: ZoneId) {
        if let Some(resets) = self.resets.get(zone.index()) {
            resets.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The stored bytes `unit` of `blob`, which must be one unit; counts a hit or a miss.
    pub fn get(&self, blob: &Blob, unit: &Range<u32>) -> Option<Bytes> {
        let name = self.name(blob, unit)?;
        self.units.get(&name, unit.len())
    }

    /// Like [`Self::get`], for callers that read what is missing through [`Self::get`], which counts the miss then.
    pub fn find(&self, blob: &Blob, unit: &Range<u32>) -> Option<Bytes> {
        let name = self.name(blob, unit)?;
        self.units.find(&name, unit.len())
    }

    /// Adds units of `blob`: the stored bytes from `start` on, which have matched their checksums.
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
