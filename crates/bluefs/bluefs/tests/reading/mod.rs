//! Reads through the cache, with readahead and of many ranges at once return the bytes that were written, in every life
//! of a file and of a zone.

mod damaged;
mod history;
mod in_order;
mod later;
mod lives;
mod young_files;

use crate::support;
use crate::support::{format, pool};
use bluefs::{BlueFs, Lifetime, MountOptions, Reader, Role};
use device::faults::{Fault, Faults, Plan};
use device::{FileDrive, MemoryDrive, ZonedDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zone::{Geometry, ZoneCommand, ZoneKind};

const BUDGET: u64 = 500 << 10;

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 256 << 10,
        zone_capacity: 256 << 10,
        zone_count: 40,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    }
}

fn mounted<D: ZonedDevice + 'static>(device: Arc<D>, cache_bytes: u64) -> BlueFs {
    mounted_with(device, cache_bytes, false)
}

fn mounted_with<D: ZonedDevice + 'static>(
    device: Arc<D>,
    cache_bytes: u64,
    cache_writes: bool,
) -> BlueFs {
    format(&*device, Role::Alone);
    let options = MountOptions {
        cache_bytes,
        cache_writes,
        ..MountOptions::default()
    };
    let pool = pool(&*device);
    BlueFs::mount(device, pool, options).unwrap()
}

/// A xorshift generator: the same seed gives the same numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}
