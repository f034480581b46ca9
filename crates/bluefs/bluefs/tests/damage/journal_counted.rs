//! A deep check counts damaged copies of journal frames and of the superblock once each, while mounted and after an
//! unmount, and a scrub repairs all of them.

use super::*;
use crate::support::Random;

const FILES: usize = 40;
const IN_ONE: &str = "one of two copies of a journal frame is damaged";
const IN_ALL: &str = "journal frame is damaged";
const SUPERBLOCK: &str = "a copy of the superblock is lost";

/// Addresses of the blocks that begin with `magic` and for which `which` returns a number, by that number.
fn blocks(
    device: &MemoryDrive,
    magic: &[u8],
    which: &dyn Fn(&[u8]) -> Option<u64>,
) -> BTreeMap<u64, Vec<ZoneAddress>> {
    let mut found = BTreeMap::<u64, Vec<ZoneAddress>>::new();
    for (zone, all) in device.geometry().zones().zip(image(device)) {
        for (number, block) in all.chunks(BLOCK).enumerate() {
            if let Some(name) = which(block).filter(|_| block.starts_with(magic)) {
                let at = ZoneAddress::new(zone, (number * BLOCK) as u64);
                found.entry(name).or_default().push(at);
            }
        }
    }
    found
}

fn u64_at(block: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*block[at..].first_chunk().unwrap())
}

/// Addresses of the copies of each frame of an epoch, by the frame's number.
pub(super) fn frames(device: &MemoryDrive, epoch: u64) -> BTreeMap<u64, Vec<ZoneAddress>> {
    let which = |block: &[u8]| (u64_at(block, 8) == epoch).then(|| u64_at(block, 16));
    blocks(device, b"BFJL", &which)
}

/// The copies of the newest superblock.
fn superblocks(device: &MemoryDrive) -> Vec<ZoneAddress> {
    let all = blocks(device, b"ZSBLUEFS", &|block| Some(u64_at(block, 32)));
    all.into_values().next_back().unwrap()
}

pub(super) fn flip(device: &MemoryDrive, at: ZoneAddress, random: &mut Random) {
    // Flips a bit of the header.
    let at = ZoneAddress::new(at.zone, at.offset + random.below(40));
    device.decay(at, 1, |bytes| bytes[0] ^= 1 << random.below(8));
}

/// Damages random frames and superblocks, and returns the counts that a check has to find. `wished` says whether frames
/// are damaged in one copy and in all copies.
fn plant(
    device: &MemoryDrive,
    epoch: u64,
    wished: [bool; 2],
    most_superblocks: usize,
    random: &mut Random,
) -> BTreeMap<String, u64> {
    let mut planted = BTreeMap::<String, u64>::new();
    let mut count = |kind: &str| *planted.entry(kind.to_owned()).or_default() += 1;
    let all = frames(device, epoch);
    assert!(all.len() > 3, "{all:?}");
    for copies in all.into_values() {
        match random.below(5) {
            0 if copies.len() == 2 && wished[0] => {
                flip(device, copies[random.below(2) as usize], random);
                count(IN_ONE);
            }
            1 if wished[1] => {
                copies.iter().for_each(|at| flip(device, *at, random));
                count(IN_ALL);
            }
            _ => {}
        }
    }
    let copies = superblocks(device);
    assert_eq!(copies.len(), 2);
    let first = random.below(2) as usize;
    for index in 0..random.below(most_superblocks as u64 + 1) as usize {
        flip(device, copies[(first + index) % 2], random);
        count(SUPERBLOCK);
    }
    planted
}

#[test]
fn damaged_frames_and_superblocks_are_counted_exactly() {
    let mut seen = BTreeMap::<String, u64>::new();
    for round in 0..24 {
        let mut random = Random(support::seed() + round);
        let shape = [
            geometry(200, 0, 0),
            geometry(200, 16, 0),
            geometry(200, 0, 14),
        ];
        let device = Arc::new(MemoryDrive::new(shape[round as usize % 3].clone()).unwrap());
        let copies = 1 + (round / 3 % 2) as u32;
        format_copies(&*device, Role::Alone, copies);
        let fs = mount(device.clone()).unwrap();
        for number in 0..FILES {
            let data = vec![number as u8; 1 + random.below(2000) as usize];
            support::put(&fs, &format!("/{number}.sst"), &data);
        }
        support::assert_clean(&fs);
        let check = |expected: &BTreeMap<String, u64>| {
            let report = fs.check(true).unwrap();
            assert_eq!(
                report.errors, *expected,
                "round {round}: {:#?}",
                report.details
            );
        };
        let planted = plant(
            &device,
            fs.info().journal_epoch,
            [true, true],
            2,
            &mut random,
        );
        check(&planted);
        // The check itself changes nothing.
        check(&planted);
        let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
        assert_eq!(u64::from(scrubbed.repaired), planted.values().sum::<u64>());
        assert!(scrubbed.lost.is_empty(), "{scrubbed:?}");
        check(&BTreeMap::new());
        for (kind, count) in planted {
            *seen.entry(kind).or_default() += count;
        }
        fs.unmount().unwrap();
        let fs = mount(device).unwrap();
        support::assert_clean(&fs);
        for number in 0..FILES {
            let data = read(&fs, &format!("/{number}.sst")).unwrap();
            assert!(data.iter().all(|byte| *byte == number as u8));
        }
        fs.unmount().unwrap();
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn frames_and_superblocks_are_counted_by_whoever_only_reads() {
    let mut seen = BTreeMap::<String, u64>::new();
    for round in 0..16 {
        let mut random = Random(100 + support::seed() + round);
        let shape = [geometry(200, 0, 0), geometry(200, 16, 0)];
        let device = Arc::new(MemoryDrive::new(shape[round as usize % 2].clone()).unwrap());
        format_copies(&*device, Role::Alone, 1 + (round / 2 % 2) as u32);
        let fs = mount(device.clone()).unwrap();
        for number in 0..FILES {
            support::put(&fs, &format!("/{number}.sst"), &[number as u8; 700]);
        }
        let epoch = fs.info().journal_epoch;
        fs.unmount().unwrap();
        let reading =
            |device: &Arc<MemoryDrive>| mount_in(device.clone(), pool_of(&**device), true).unwrap();
        support::assert_clean(&reading(&device));
        // After a frame lost in both copies, a mount with pairs finds less, for that frame may have named a pair. So
        // each round damages frames in one copy or in all copies only.
        let in_all = round % 4 < 2;
        let planted = plant(&device, epoch, [!in_all, in_all], 1, &mut random);
        let report = reading(&device).check(true).unwrap();
        for kind in [IN_ONE, IN_ALL, SUPERBLOCK] {
            let counts = [report.errors.get(kind), planted.get(kind)].map(|c| c.copied());
            assert_eq!(
                counts[0], counts[1],
                "round {round}, {kind}: {:#?}",
                report.details
            );
        }
        for (kind, count) in planted {
            *seen.entry(kind).or_default() += count;
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn frames_that_change_places_are_damage() {
    let device = Arc::new(MemoryDrive::new(geometry(60, 0, 0)).unwrap());
    format_copies(&*device, Role::Alone, 1);
    let fs = mount(device.clone()).unwrap();
    for number in 0..6 {
        support::put(&fs, &format!("/{number}.sst"), &[number; 700]);
    }
    let epoch = fs.info().journal_epoch;
    fs.unmount().unwrap();
    let all = frames(&device, epoch);
    let places: Vec<ZoneAddress> = all.into_values().flatten().collect();
    assert!(places.len() > 3, "{places:?}");
    for pair in places.windows(2) {
        let exchanged = [
            (pair[0], block(&device, pair[1])),
            (pair[1], block(&device, pair[0])),
        ];
        let swapped: Arc<dyn ZonedDevice> = changed(&device, &exchanged);
        let told = mount(swapped.clone()).err().unwrap().to_string();
        assert!(!told.contains(": 0 of"), "{told}");
        let pool = support::pool(&*swapped);
        let fs = support::mount_in(swapped, pool, true).unwrap();
        assert!(!fs.check(true).unwrap().is_clean());
    }
}
