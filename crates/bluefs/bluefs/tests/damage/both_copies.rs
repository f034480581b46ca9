//! Frames of the journal that are damaged in both copies.

use super::journal_counted::{flip, frames};
use super::*;
use crate::support::Random;

const FILES: usize = 40;

/// A drive with two copies of its metadata and an unmounted file system; and the epoch of its journal.
fn unmounted(conventional: u32) -> (Arc<MemoryDrive>, u64) {
    let device = Arc::new(MemoryDrive::new(geometry(200, conventional, 0)).unwrap());
    format_copies(&*device, Role::Alone, 2);
    let fs = mount(device.clone()).unwrap();
    for number in 0..FILES {
        support::put(&fs, &format!("/{number}.sst"), &vec![number as u8; 3000]);
    }
    let epoch = fs.info().journal_epoch;
    fs.unmount().unwrap();
    (device, epoch)
}

/// After a frame that is lost in both copies, frames that are damaged in one copy each are read from the other.
#[test]
fn what_one_copy_has_lost_behind_damage_the_other_one_has() {
    for conventional in [0, 16] {
        let (device, epoch) = unmounted(conventional);
        let mut random = Random(support::seed());
        let all: Vec<Vec<ZoneAddress>> = frames(&device, epoch).into_values().collect();
        assert!(all.len() > 12, "{}", all.len());
        let lost = all.len() / 2;
        all[lost]
            .iter()
            .for_each(|at| flip(&device, *at, &mut random));
        for (number, copy) in [(1, 0), (2, 1), (4, 1), (5, 0)] {
            flip(&device, all[lost + number][copy], &mut random);
        }
        let refused = mount(device.clone()).map(drop).unwrap_err();
        assert!(
            matches!(refused, Error::JournalDamaged { missing: 1, .. }),
            "{refused:?}"
        );
    }
}

/// Whichever frame is lost, even one that names a pair: a read-only mount that accepts damage reads all files but those
/// of the frame.
#[test]
fn a_lost_frame_refuses_nobody_who_reads_and_accepts_it() {
    for conventional in [0, 16] {
        let (device, epoch) = unmounted(conventional);
        for (number, copies) in frames(&device, epoch) {
            let mut random = Random(support::seed() + number);
            let damaged = Arc::new(device.snapshot());
            copies
                .iter()
                .for_each(|at| flip(&damaged, *at, &mut random));
            let told = format!("{conventional} conventional, frame {number} at {copies:?}");
            let fs = mount_in(damaged.clone(), pool_of(&*damaged), true)
                .unwrap_or_else(|error| panic!("{told}: {error}"));
            let there = (0..FILES).filter(|n| {
                let found = read(&fs, &format!("/{n}.sst"));
                found.is_ok_and(|data| data == vec![*n as u8; 3000])
            });
            let there = there.count();
            assert!(there + 4 > FILES || number == 0, "{told}: {there}");
            assert!(!fs.check(false).unwrap().is_clean(), "{told}");
        }
    }
}
