//! Listings by a prefix, as Swift's drive daemon makes for each request: a prefix without names costs no reads.

use crate::common::*;
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{Attributes, LISTED_NAME, MountOptions, Store, Transaction};
use zone::Geometry;

const GROUPS: u64 = 30_000;

/// The prefix that the names of a group share, in no order.
fn group(number: u64) -> Vec<u8> {
    let mut name = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    name[0] = 0x61;
    let any = name.iter().cycle();
    let shaped = LISTED_NAME.iter().zip(any);
    shaped
        .map(|(byte, any)| if *byte == 0 { *any } else { *byte })
        .collect()
}

fn names(number: u64) -> impl Iterator<Item = Vec<u8>> {
    let files = (0..number % 3).map(|file| file.to_string());
    files.map(move |file| [group(number), file.into_bytes()].concat())
}

fn listed(store: &Store, prefix: &[u8]) -> Vec<Vec<u8>> {
    let found = store.list("c", prefix, b"", 10).unwrap();
    found.iter().map(|o| o.name.as_ref().to_vec()).collect()
}

#[test]
fn what_is_not_there_is_listed_without_a_read_of_what_is() {
    let geometry = Geometry {
        zone_size: 16 << 20,
        zone_capacity: 16 << 20,
        ..geometry(64)
    };
    let drive = Arc::new(Stats::new(MemoryDrive::new(geometry).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = Store::mount(device.clone(), options()).unwrap();
    create_collection(&store);
    let mut all = BTreeSet::from([b"a".to_vec(), b"b/short".to_vec(), group(1)]);
    all.extend((0..GROUPS).flat_map(names));
    let in_no_order: Vec<&Vec<u8>> = all.iter().rev().collect();
    for some in in_no_order.chunks(100) {
        let mut tx = Transaction::new();
        for name in some {
            let data = written(&store, b"data").unwrap();
            tx.put("c", name.as_slice(), data, Attributes::new());
        }
        store.commit(tx).unwrap();
    }
    let check = |store: &Store| {
        for number in 0..GROUPS {
            let prefix = group(number);
            let there = all.range(prefix.clone()..);
            let there = there.take_while(|name| name.starts_with(&prefix));
            assert_eq!(listed(store, &prefix), there.cloned().collect::<Vec<_>>());
        }
        assert_eq!(listed(store, b"b/"), [b"b/short"]);
        assert_eq!(store.list("c", b"", b"", 100_000).unwrap().len(), all.len());
    };
    check(&store);
    store.unmount().unwrap();
    // A compaction reads, too.
    let settled = MountOptions {
        engine: Arc::new(Settled(options().engine, Duration::from_secs(600))),
        ..options()
    };
    let store = Store::mount(device, settled).unwrap();
    check(&store);

    // The block cache holds almost nothing.
    let reads = |numbers: std::ops::Range<u64>| {
        let before = drive.snapshot();
        for number in numbers {
            let found = listed(&store, &group(number));
            assert_eq!(
                found.is_empty(),
                number >= GROUPS || number % 3 == 0 && number != 1
            );
        }
        drive.snapshot().since(&before).read.operations
    };
    let there: u64 = (1..300)
        .step_by(3)
        .map(|number| reads(number..number + 1))
        .sum();
    let missing = reads(GROUPS..GROUPS + 100);
    assert!(
        missing * 5 < there,
        "{missing} reads of nothing, {there} of what is there"
    );
}
