//! Reported losses are exactly the bytes that cannot be read, in every object that shares them.

use super::{all, fresh};
use crate::common::{options, pattern, put, seed};
use device::MemoryDrive;
use std::collections::BTreeMap;
use store::{Compression, Store, Transaction};
use zone::{ZoneAddress, ZoneCondition};

/// Flips a bit of a random written byte in a random data zone.
fn flip(drive: &MemoryDrive, store: &Store, random: &mut fastrand::Rng) -> ZoneAddress {
    let zones = store.zones();
    let zone = zones[random.usize(..zones.len())];
    let at = ZoneAddress::new(zone.zone, random.u64(..zone.written_bytes));
    drive.decay(at, 1, |bytes| bytes[0] ^= 1 << random.u8(..8));
    at
}

/// Offsets of the 512-byte pieces of each object that cannot be read; asserts that the others are right.
fn unreadable(store: &Store, expected: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u64>> {
    const STEP: usize = 512;
    let mut found = BTreeMap::new();
    for (name, data) in expected {
        let object = store.open("c", name).unwrap();
        for (number, part) in data.chunks(STEP).enumerate() {
            let mut bytes = vec![0; part.len()];
            let at = (number * STEP) as u64;
            match object.read_at(at, &mut bytes) {
                Ok(_) => assert!(bytes == part, "{name} at {at}"),
                Err(_) => found
                    .entry(format!("c/{name}"))
                    .or_insert_with(Vec::new)
                    .push(at),
            }
        }
    }
    found
}

/// Stores objects with clones, holes, truncated, compressed and inline data. Returns their bytes.
fn mixed(store: &Store, random: &mut fastrand::Rng) -> BTreeMap<String, Vec<u8>> {
    let mut expected = BTreeMap::new();
    for number in 0..40_u32 {
        let name = format!("object {number}");
        let size = 1 << random.u32(6..20);
        let data = match number % 4 {
            0 => vec![number as u8; size],
            _ => pattern(random.u64(..), size + random.usize(..5000)),
        };
        put(store, &name, &data).unwrap();
        expected.insert(name.clone(), data.clone());
        if number.is_multiple_of(5) {
            let (copy, part) = (format!("clone {number}"), data.len() as u64 / 2);
            let mut tx = Transaction::new();
            tx.clone_object(("c", &name), ("c", &copy));
            tx.truncate("c", &copy, part);
            store.commit(tx).unwrap();
            expected.insert(copy, data[..part as usize].to_vec());
        }
        if number.is_multiple_of(7) && data.len() > 9000 {
            let mut tx = Transaction::new();
            tx.punch("c", &name, 1000, 5000);
            store.commit(tx).unwrap();
            expected.get_mut(&name).unwrap()[1000..6000].fill(0);
        }
    }
    expected
}

fn round(number: u64, compression: &str) {
    let mut random = fastrand::Rng::with_seed(seed() + number);
    let (drive, device, store) = fresh();
    store.unmount().unwrap();
    let mut options = options();
    options.data.compression = compression.parse::<Compression>().unwrap();
    let store = Store::mount(device, options).unwrap();
    let expected = mixed(&store, &mut random);
    for _ in 0..random.usize(1..6) {
        flip(&drive, &store, &mut random);
    }
    if number.is_multiple_of(3) {
        let zones = store.zones();
        let zone = zones[random.usize(..zones.len())].zone;
        drive.set_condition(zone, ZoneCondition::Offline).unwrap();
    }
    let report = store.fsck(true, &mut |_, _| {}).unwrap();
    let mut named: Vec<String> = expected.keys().map(|name| format!("c/{name}")).collect();
    named.retain(|name| {
        report
            .details
            .iter()
            .any(|d| d.starts_with(&format!("{name}: ")))
    });
    assert_eq!(report.unnamed, 0);
    all(&store);
    let lost = unreadable(&store, &expected);
    // Every object that shares damaged bytes, and no other.
    assert_eq!(
        named,
        lost.keys().cloned().collect::<Vec<_>>(),
        "{report:?}"
    );
    let health = store.health().unwrap();
    let mut told: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for loss in &health.losses {
        let size = expected[loss.object.strip_prefix("c/").unwrap()].len() as u64;
        let is_lost = |at: &u64| {
            let end = (at + 512).min(size);
            loss.ranges.iter().any(|r| r.start < end && *at < r.end)
        };
        let parts = (0..size).step_by(512).filter(is_lost);
        told.insert(loss.object.clone(), parts.collect());
    }
    assert_eq!(told, lost, "{number}: {health:#?}");
    assert_eq!(health.lost_objects, told.len() as u64);
    assert_eq!(health.is_healthy(), lost.is_empty(), "{health:?}");
    // With the damaged objects, the losses are removed.
    for object in told.keys() {
        let mut tx = Transaction::new();
        tx.remove("c", object.strip_prefix("c/").unwrap());
        store.commit(tx).unwrap();
    }
    assert_eq!(store.health().unwrap().lost_objects, 0);
    all(&store);
    assert_eq!(store.scrub_status().unwrap().damaged_places, 0);
}

#[test]
fn losses_are_told_as_they_are() {
    for number in 0..8 {
        round(number, "none");
    }
}

#[test]
fn losses_of_compressed_objects_are_told_as_they_are() {
    for number in 0..4 {
        round(number, "force");
    }
}
