//! A deep check counts each extent that is damaged in one of its two copies once, and none that a scrub has repaired.

use super::*;
use crate::support::Random;

const FILES: usize = 24;
/// Bytes at the end of a file, in its last extent, by which its copies are found.
const PART: usize = 64;

/// The addresses at which these bytes are on the drive.
fn places(device: &MemoryDrive, bytes: &[u8]) -> Vec<ZoneAddress> {
    let mut found = Vec::new();
    for (zone, all) in device.geometry().zones().zip(image(device)) {
        let here = all.windows(bytes.len()).enumerate();
        let here = here.filter(|(_, window)| *window == bytes);
        found.extend(here.map(|(offset, _)| ZoneAddress::new(zone, offset as u64)));
    }
    found
}

fn flip(device: &MemoryDrive, at: ZoneAddress, random: &mut Random) {
    let at = ZoneAddress::new(at.zone, at.offset + random.below(PART as u64));
    device.decay(at, 1, |bytes| bytes[0] ^= 1 << random.below(8));
}

#[test]
fn damaged_copies_are_counted_exactly() {
    for round in 0..12 {
        let mut random = Random(support::seed() + round);
        let device = Arc::new(MemoryDrive::new(geometry(200, 0, 0)).unwrap());
        format_copies(&*device, Role::Alone, 2);
        let fs = mount(device.clone()).unwrap();
        // SSTs, a quarter of them with an extent of one block, and logs; no two blocks are the same.
        let name = |number: usize| match number % 3 {
            0 => format!("/{number}.log"),
            _ => format!("/{number}.sst"),
        };
        let data = |number: usize| {
            let mut data = vec![0; BLOCK * (1 + number % 4)];
            let mut random = Random(number as u64);
            data.fill_with(|| random.below(256) as u8);
            data
        };
        for number in 0..FILES {
            support::put(&fs, &name(number), &data(number));
        }
        assert!(fs.check(true).unwrap().is_clean());
        let mut planted = 0;
        for number in 0..FILES {
            if random.below(3) > 0 {
                continue;
            }
            let data = data(number);
            let copies = places(&device, data.last_chunk::<PART>().unwrap());
            assert_eq!(copies.len(), 2, "{number}: {copies:?}");
            let at = copies[random.below(2) as usize];
            flip(&device, at, &mut random);
            // Damage to two blocks of an extent is one damaged copy.
            if data.len() > BLOCK && number % 3 > 0 && random.below(2) == 0 {
                let before = ZoneAddress::new(at.zone, at.offset - BLOCK as u64);
                flip(&device, before, &mut random);
            }
            planted += 1;
        }
        let check = |fs: &BlueFs, expected: u64| {
            let report = fs.check(true).unwrap();
            let kind = "one of two copies is damaged";
            let found = report.errors.get(kind).copied().unwrap_or(0);
            assert_eq!(found, expected, "round {round}: {:#?}", report.details);
            assert_eq!(report.errors.len(), usize::from(expected > 0));
            assert!(report.has_copies());
        };
        check(&fs, planted);
        // The check itself changes nothing.
        check(&fs, planted);
        fs.scrub(&mut |_| true).unwrap().unwrap();
        check(&fs, 0);
        for number in 0..FILES {
            assert!(read(&fs, &name(number)).unwrap() == data(number));
        }
        fs.unmount().unwrap();
        check(&mount(device).unwrap(), 0);
    }
}
