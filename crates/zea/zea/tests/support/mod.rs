//! Small drives, and a model of a zone's extents.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod unreadable;

use device::ZonedDevice;
use runtime::Runtime;
use std::sync::Arc;
use zea::{Error, Instance, LogicalAddress, Options, Placed, Sequence};
use zone::{Geometry, ZoneId, ZoneKind};

/// Zones of 64 KiB, capacity 48 KiB, in blocks of 512 bytes; the first zone is conventional.
pub fn geometry(sequential_kind: ZoneKind) -> Geometry {
    Geometry {
        block_size: 512,
        zone_size: 64 << 10,
        zone_capacity: 48 << 10,
        zone_count: 6,
        conventional_zones: 1,
        conventional_parts: 1,
        sequential_kind,
        max_open_zones: 4,
        max_active_zones: 4,
        max_append_bytes: 0,
    }
}

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

/// `length` pseudo-random bytes that depend on `seed`.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// The extents of a zone, in order.
#[derive(Clone, Default, Debug)]
pub struct Model {
    pub extents: Vec<(Placed, Vec<u8>)>,
}

impl Model {
    pub fn placed(&self) -> Vec<Placed> {
        self.extents.iter().map(|(placed, _)| *placed).collect()
    }
}

pub fn format(
    device: &Arc<dyn ZonedDevice>,
    zone: u32,
    back_pointers: u32,
    sequence: &Sequence,
    seed: u64,
) -> Result<Instance, Error> {
    let options = Options { back_pointers };
    let runtime = Runtime::seeded(seed);
    Instance::format(
        device.clone(),
        ZoneId(zone),
        options,
        sequence.clone(),
        &runtime,
    )
}

pub fn put(instance: &Instance, model: &mut Model, address: u64, data: Vec<u8>) -> Placed {
    let placed = instance.put(LogicalAddress(address), &data).unwrap();
    model.extents.push((placed, data));
    placed
}

/// Both iterators find the model's extents, and each has its bytes.
#[track_caller]
pub fn assert_same(instance: &Instance, model: &Model) {
    let forward: Vec<Placed> = instance.forward().map(Result::unwrap).collect();
    assert_eq!(forward, model.placed());
    let mut backward: Vec<Placed> = instance.backward().map(Result::unwrap).collect();
    backward.reverse();
    assert_eq!(backward, model.placed());
    for (placed, data) in &model.extents {
        assert!(instance.get(placed.lba, placed.length).unwrap() == *data);
    }
    let checked = zea::check(instance, true).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
}
