//! Many threads on few suffixes: what is hashed beside changes is not kept longer than it is true.
#![allow(clippy::unwrap_used)]

use device::{MemoryDrive, profile};
use fastrand::Rng;
use kv_log::KvLog;
use std::sync::Arc;
use store::{MkfsOptions, MountOptions, Store};
use swift_drive::{Address, ObjectHash, PolicyKind, SwiftDrive};
use swift_files::{FileName, Kind, Reclaim, Timestamp};

const RECLAIM: Reclaim = Reclaim {
    age: 1 << 40,
    now: 0,
};

#[test]
fn hashes_beside_puts() {
    let profile = profile::by_name("test-small").unwrap();
    let drive = Arc::new(MemoryDrive::new(profile.geometry(128 << 20, None).unwrap()).unwrap());
    let options = MkfsOptions {
        uuid: [1; 16],
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(drive.clone(), &options).unwrap();
    let swift = SwiftDrive::new(Store::mount(drive, MountOptions::new(KvLog)).unwrap());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let put = |dice: &mut Rng, ticks| {
        let hash = ObjectHash::new(dice.u128(..32).to_be_bytes());
        let address = Address {
            policy: 0,
            partition: 7,
            hash,
        };
        let kind = if dice.bool() {
            Kind::Data
        } else {
            Kind::Tombstone
        };
        let file = FileName {
            timestamp: Timestamp::new(ticks, 0).unwrap(),
            kind,
        };
        swift.put(address, file, None, Vec::new()).unwrap();
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let mut dice = Rng::with_seed(seed);
                (0..400).for_each(|ticks| put(&mut dice, ticks));
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    swift.hashes(0, 7, &[], RECLAIM).unwrap();
                }
            });
        }
    });
    let (kept, _) = swift.hashes(0, 7, &[], RECLAIM).unwrap();
    let suffixes: Vec<_> = kept.keys().copied().collect();
    let (anew, computed) = swift.hashes(0, 7, &suffixes, RECLAIM).unwrap();
    assert_eq!((kept, computed), (anew, suffixes.len()));
    assert_eq!(swift.hashes(0, 7, &[], RECLAIM).unwrap().1, 0);
}
